/* Numbers of a checkpoint into memory of the model. */
#include "base/alloc.h"
#include "model/load.h"
#include <string.h>

void *gdn_load_take(gdn_loader *ld, size_t n_bytes)
{
    const size_t n = gdn_load_bytes(n_bytes);
    if (ld->status) return NULL;
    if (n > ld->total - ld->taken) {
        ld->status = gdn_fail(ld->err, GDN_BAD_STATE, 0, "model: more weights than the %zu bytes planned", ld->total);
        return NULL;
    }
    unsigned char *const at = ld->model->weights + ld->taken;
    ld->taken += n;
    memset(at + n_bytes, 0, n - n_bytes); /* so that equal weights are equal blocks */
    return at;
}

void gdn_load_count(gdn_loader *ld, size_t n_bytes)
{
    enum { STEP = 1 << 20 }; /* a report is worth this much */
    ld->done += gdn_load_bytes(n_bytes);
    if (!ld->progress || ld->status || (ld->done < ld->total && ld->done - ld->told < STEP)) return;
    ld->progress(ld->arg, ld->done, ld->total);
    ld->told = ld->done;
}

void gdn_load_f32(gdn_loader *ld, float *dst, const gdn_tensor *t, size_t first, size_t n)
{
    if (ld->random) gdn_random_f32(ld->random, dst, t, n);
    else ld->status = gdn_tensor_to_f32(dst, t, first, n, ld->err);
}

void gdn_load_bf16(gdn_loader *ld, uint16_t *dst, const gdn_tensor *t, size_t first, size_t n)
{
    if (ld->random) gdn_random_bf16(ld->random, dst, n);
    else ld->status = gdn_tensor_to_bf16(dst, t, first, n, ld->err);
}

float *gdn_load_vector(gdn_loader *ld, const gdn_tensor *t, float plus)
{
    const size_t n = gdn_tensor_elements(t);
    float       *v = gdn_load_take(ld, n * sizeof *v);
    if (v) gdn_load_f32(ld, v, t, 0, n);
    for (size_t i = 0; v && !ld->status && i < n; i++) v[i] += plus;
    gdn_load_count(ld, n * sizeof *v);
    return v;
}

/* Output i of the matrix, in bf16: heads are moved apart from the last on. */
static void read_row(gdn_loader *ld, const gdn_matrix_source *s, int i, uint16_t *dst)
{
    const size_t n_inputs = (size_t)s->n_heads * s->head, padding = (size_t)(s->padded_head - s->head) * sizeof *dst;
    const int    row = s->rows ? s->rows[i] : i < s->n_rows ? i : -1;
    if (row < 0) {
        memset(dst, 0, (size_t)s->n_heads * s->padded_head * sizeof *dst);
        return;
    }
    gdn_load_bf16(ld, dst, s->tensor, s->first + (size_t)row * n_inputs, n_inputs);
    for (int head = s->n_heads - 1; head >= 0 && padding; head--) {
        uint16_t *const to = dst + (size_t)head * s->padded_head;
        memmove(to, dst + (size_t)head * s->head, (size_t)s->head * sizeof *dst);
        memset(to + s->head, 0, padding);
    }
}

static void reserve_rows(gdn_loader *ld, size_t n)
{
    if (ld->status || n <= ld->rows_size) return;
    free(ld->rows);
    ld->rows = malloc(n * sizeof *ld->rows);
    ld->rows_size = ld->rows ? n : 0;
    if (!ld->rows) ld->status = gdn_fail(ld->err, GDN_NO_MEMORY, 0, "model: no memory to unpack %zu numbers", n);
}

gdn_linear gdn_load_matrix(gdn_loader *ld, const gdn_matrix_source *s, uint16_t *w)
{
    const int    n_inputs = s->n_heads * s->padded_head, k = gdn_padded(n_inputs);
    const size_t panel = (size_t)GDN_PANEL * k;
    if (!w) w = gdn_load_take(ld, gdn_linear_bytes(s->n_outputs, n_inputs));
    const gdn_linear l = {w, s->n_outputs, n_inputs, k};
    reserve_rows(ld, (size_t)GDN_PANEL * n_inputs);
    for (int first = 0; first < s->n_outputs && !ld->status; first += GDN_PANEL, w += panel) {
        const int n = s->n_outputs - first < GDN_PANEL ? s->n_outputs - first : GDN_PANEL;
        for (int i = 0; i < n && !ld->status; i++) read_row(ld, s, first + i, ld->rows + (size_t)i * n_inputs);
        if (ld->status) break;
        gdn_matmul_pack(w, ld->rows, n, n_inputs);
        gdn_load_count(ld, panel * sizeof *w);
    }
    return l;
}

gdn_linear gdn_load_linear(gdn_loader *ld, const gdn_tensor *t, int n_outputs, int n_inputs)
{
    const gdn_matrix_source source = {.tensor = t,
                                      .n_rows = n_outputs,
                                      .n_outputs = n_outputs,
                                      .n_heads = 1,
                                      .head = n_inputs,
                                      .padded_head = n_inputs};
    gdn_tensor_expect(t);
    const gdn_linear l = gdn_load_matrix(ld, &source, NULL);
    gdn_tensor_release(t);
    return l;
}
