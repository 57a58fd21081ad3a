/* From a checkpoint to packed weights: every number where it belongs, padding zero, bytes as they were planned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "law/model.h"
#include <string.h>

static const char *const folders[] = {DEMO_FOLDER, "tests/checkpoints/tiny-moe", "tests/checkpoints/tiny-moe-fused",
                                      "tests/checkpoints/tiny-next"};
enum { FOLDERS = sizeof folders / sizeof *folders, MOST = 4096 };

typedef struct progress {
    size_t n_calls, done, total;
} progress;

typedef struct opened {
    gdn_model_config config;
    gdn_tensors      tensors;
    gdn_checkpoint   checkpoint;
    progress         progress;
    gdn_model       *model;
} opened;

static void watch(void *arg, size_t done, size_t total)
{
    progress *const p = arg;
    assert_true(done > p->done && done <= total);
    assert_true(p->n_calls == 0 || total == p->total);
    *p = (progress){p->n_calls + 1, done, total};
}

static void open_model(opened *o, const char *folder, bool mtp)
{
    gdn_error err = {0};
    *o = (opened){.model = NULL};
    must(gdn_model_config_load(&o->config, folder, &err), "config", &err);
    must(gdn_tensors_open(&o->tensors, folder, &err), "tensors", &err);
    must(gdn_checkpoint_bind(&o->checkpoint, &o->config, &o->tensors, &err), "bind", &err);
    must(gdn_model_load(&o->model, &o->checkpoint, mtp, watch, &o->progress, &err), "load", &err);
}

static void close_model(opened *o)
{
    gdn_model_close(o->model);
    gdn_checkpoint_close(&o->checkpoint);
    gdn_tensors_close(&o->tensors);
}

/* Row `row` of a packed matrix is numbers first.. of a tensor and zeros, or zeros alone when there is no tensor. */
static void is_row(const gdn_linear *l, int row, const gdn_tensor *t, size_t first, int n)
{
    uint16_t  got[MOST], want[MOST] = {0};
    gdn_error err = {0};
    assert_true(row < l->n_outputs && l->n_inputs <= MOST && n <= l->n_inputs);
    gdn_matmul_unpack_row(got, l->w, row, l->n_inputs);
    if (t) must(gdn_tensor_to_bf16(want, t, first, (size_t)n, &err), t->name, &err);
    for (int i = 0; i < l->n_inputs; i++)
        if (got[i] != want[i]) fail_msg("row %d, column %d: %x, not %x", row, i, got[i], want[i]);
}

/* n_rows rows of a tensor, padded to the matrix's. */
static void is_matrix(const gdn_linear *l, const gdn_tensor *t, size_t first, int n_rows, int n_cols)
{
    for (int i = 0; i < l->n_outputs; i++)
        is_row(l, i, i < n_rows ? t : NULL, first + (size_t)i * n_cols, i < n_rows ? n_cols : 0);
}

/* ---- the vocabulary ----------------------------------------------------------------------------------------------------- */

static void vocabulary(void **unused)
{
    (void)unused;
    for (int i = 0; i < FOLDERS; i++) {
        opened o;
        open_model(&o, folders[i], false);
        const int V = o.config.vocab_size, h = o.config.hidden_size;
        is_matrix(&o.model->lm_head, o.checkpoint.lm_head, 0, V, h);
        assert_int_equal(o.checkpoint.tied, i == 0);
        if (o.checkpoint.tied) {
            assert_null(o.model->embed); /* kept once */
        } else {
            assert_non_null(o.model->embed);
            assert_memory_equal(o.model->embed, o.checkpoint.embed->data, (size_t)V * h * sizeof(uint16_t));
        }
        close_model(&o);
    }
}

/* ---- layers ------------------------------------------------------------------------------------------------------------- */

static void experts(const opened *o, const gdn_moe_weights *w, const gdn_moe_tensors *t)
{
    const int    E = o->config.n_experts, I = o->config.expert_size, h = o->config.hidden_size, padded = gdn_padded(I);
    const size_t n = (size_t)I * h;
    is_matrix(&w->router, t->router, 0, E, h);
    is_matrix(&w->shared_gate, t->shared_gate, 0, 1, h);
    for (int e = 0; e <= E; e++) {
        const gdn_mlp_weights *const m = &w->experts[e];
        const gdn_mlp_tensors        packed = {t->gate_up_proj, t->gate_up_proj, t->down_proj};
        const int                    is_packed = !t->experts && e < E;
        const gdn_mlp_tensors *const from = e == E ? &t->shared : is_packed ? &packed : &t->experts[e];
        const size_t                 gate_up = is_packed ? (size_t)e * 2 * n : 0, down = is_packed ? (size_t)e * n : 0;
        assert_int_equal(m->gate.n_outputs, padded);
        assert_int_equal(m->down.n_inputs, padded);
        is_matrix(&m->gate, from->gate_proj, gate_up, I, h);
        is_matrix(&m->up, from->up_proj, is_packed ? gate_up + n : 0, I, h);
        is_matrix(&m->down, from->down_proj, down, h, I);
    }
}

/* Rows of one head after the other, each followed by zeros: output i of n_heads*padded is row `first` + its place. */
static void is_headed(const gdn_linear *l, int from_row, const gdn_tensor *t, int first, int n_heads, int dim,
                      int padded)
{
    const int h = l->n_inputs;
    for (int i = 0; i < n_heads * padded; i++) {
        const int at = i % padded, row = first + i / padded * dim + at;
        is_row(l, from_row + i, at < dim ? t : NULL, (size_t)row * h, at < dim ? h : 0);
    }
}

/* Columns of one head after the other, each followed by zeros. */
static void is_headed_across(const gdn_linear *l, const gdn_tensor *t, int n_heads, int dim, int padded)
{
    uint16_t  row[MOST], want[MOST];
    gdn_error err = {0};
    for (int i = 0; i < l->n_outputs; i++) {
        gdn_matmul_unpack_row(row, l->w, i, l->n_inputs);
        must(gdn_tensor_to_bf16(want, t, (size_t)i * n_heads * dim, (size_t)n_heads * dim, &err), t->name, &err);
        for (int j = 0; j < l->n_inputs; j++)
            assert_int_equal(row[j], j % padded < dim ? want[j / padded * dim + j % padded] : 0);
    }
}

/* Of Qwen3.5: rows in their own order. */
static void delta_layer(const opened *o, const gdn_delta_layer_weights *w, const gdn_linear_tensors *t)
{
    const gdn_model_config *c = &o->config;
    const gdn_delta_config *d = &o->model->delta;
    const int               keys = c->n_key_heads * c->key_dim, padded_keys = c->n_key_heads * d->key_dim;
    is_headed(&w->in_qkv, 0, t->in_proj_qkv, 0, c->n_key_heads, c->key_dim, d->key_dim);
    is_headed(&w->in_qkv, padded_keys, t->in_proj_qkv, keys, c->n_key_heads, c->key_dim, d->key_dim);
    is_headed(&w->in_qkv, 2 * padded_keys, t->in_proj_qkv, 2 * keys, c->n_value_heads, c->value_dim, d->value_dim);
    is_headed(&w->in_z, 0, t->in_proj_z, 0, c->n_value_heads, c->value_dim, d->value_dim);
    is_matrix(&w->in_a, t->in_proj_a, 0, c->n_value_heads, c->hidden_size);
    is_matrix(&w->in_b, t->in_proj_b, 0, c->n_value_heads, c->hidden_size);
    assert_int_equal(w->in_qkv.n_outputs, gdn_channels(d));
    assert_int_equal(w->out.n_inputs, c->n_value_heads * d->value_dim);
    is_headed_across(&w->out, t->out_proj, c->n_value_heads, c->value_dim, d->value_dim);
}

static void layers(void **unused)
{
    (void)unused;
    for (int i = 0; i < FOLDERS; i++) {
        opened o;
        open_model(&o, folders[i], false);
        for (int l = 0; l < o.config.n_layers; l++) {
            const gdn_layer_weights *const w = &o.model->layers[l];
            const gdn_layer_tensors *const t = &o.checkpoint.layers[l];
            assert_int_equal(w->ffn, i == 0 ? GDN_FFN_DENSE : GDN_FFN_MOE);
            if (w->ffn == GDN_FFN_MOE) experts(&o, &w->moe, &t->moe);
            else is_matrix(&w->mlp.down, t->mlp.down_proj, 0, o.config.hidden_size, o.config.ffn_size);
            if (w->mixer == GDN_MIXER_LINEAR && t->linear.in_proj_qkv) delta_layer(&o, &w->linear, &t->linear);
        }
        close_model(&o);
    }
}

static void is_norm(const float *w, const gdn_tensor *t)
{
    float     want[MOST];
    gdn_error err = {0};
    must(gdn_tensor_to_f32(want, t, 0, gdn_tensor_elements(t), &err), t->name, &err);
    for (size_t i = 0; i < gdn_tensor_elements(t); i++) assert_true(w[i] == want[i] + 1.0f);
}

/* The demo model's own; a checkpoint that has none gives none. */
static void mtp(void **unused)
{
    (void)unused;
    opened o;
    open_model(&o, folders[0], true);
    const gdn_model_config *const  c = &o.config;
    const gdn_mtp_weights *const   w = &o.model->mtp;
    const gdn_mtp_tensors *const   t = &o.checkpoint.mtp;
    const gdn_layer_weights *const l = &w->layer;
    const int                      h = c->hidden_size, I = c->ffn_size, D = c->head_dim;
    assert_true(o.model->has_mtp && l->mixer == GDN_MIXER_FULL && l->ffn == GDN_FFN_DENSE &&
                l->number == o.model->n_attention_layers);
    is_norm(w->norm_embedding, t->norm_embedding);
    is_norm(w->norm_hidden, t->norm_hidden);
    is_norm(w->norm, t->norm);
    is_matrix(&w->fc, t->fc, 0, h, 2 * h);
    is_norm(l->input_norm, t->layer.input_norm);
    is_norm(l->post_norm, t->layer.post_norm);
    is_norm(l->attention.q_norm, t->layer.attention.q_norm);
    is_norm(l->attention.k_norm, t->layer.attention.k_norm);
    is_matrix(&l->attention.q, t->layer.attention.q_proj, 0, 2 * c->n_heads * D, h);
    is_matrix(&l->attention.k, t->layer.attention.k_proj, 0, c->n_kv_heads * D, h);
    is_matrix(&l->attention.v, t->layer.attention.v_proj, 0, c->n_kv_heads * D, h);
    is_matrix(&l->attention.o, t->layer.attention.o_proj, 0, h, c->n_heads * D);
    is_matrix(&l->mlp.gate, t->layer.mlp.gate_proj, 0, I, h);
    is_matrix(&l->mlp.up, t->layer.mlp.up_proj, 0, I, h);
    is_matrix(&l->mlp.down, t->layer.mlp.down_proj, 0, h, I);
    close_model(&o);
    open_model(&o, folders[1], true);
    assert_false(o.model->has_mtp);
    close_model(&o);
}

/* ---- bytes ---------------------------------------------------------------------------------------------------------------- */

/* Of the demo model, whose heads are not padded: matrices in panels of 16 rows and runs of 32 columns, all else in f32
 * and cache lines. */
static size_t bytes_of_tensors(const gdn_tensors *tensors, bool mtp)
{
    size_t n = 0;
    for (size_t i = 0; i < tensors->n; i++) {
        const gdn_tensor *const t = &tensors->all[i];
        if (!mtp && strncmp(t->name, "mtp.", 4) == 0) continue;
        if (t->n_dims == 2) n += (t->shape[0] + 15) / 16 * 16 * ((t->shape[1] + 31) / 32 * 32) * 2;
        else n += (gdn_tensor_elements(t) * 4 + 63) / 64 * 64;
    }
    return n + 32 * 4; /* the frequencies of 64 rotary dims */
}

static void bytes(void **unused)
{
    (void)unused;
    for (int i = -1; i < FOLDERS; i++) { /* the demo model with MTP, then all without it */
        const bool mtp = i < 0;
        opened     o;
        open_model(&o, folders[mtp ? 0 : i], mtp);
        assert_int_equal(o.model->has_mtp, mtp);
        const size_t plan = gdn_model_bytes(&o.config, o.checkpoint.tied, mtp);
        assert_int_equal(o.progress.total, plan);
        assert_int_equal(o.progress.done, plan);
        if (i <= 0) assert_int_equal(plan, bytes_of_tensors(&o.tensors, mtp));
        if (i <= 0) assert_true(o.progress.n_calls > 5); /* 13 MiB */
        close_model(&o);
    }
}

static void refused(void **unused)
{
    (void)unused;
    opened     o;
    gdn_error  err = {0};
    gdn_model *model = NULL;
    open_model(&o, folders[1], false);
    o.checkpoint.config.hidden_size = 48;
    assert_int_equal(gdn_model_load(&model, &o.checkpoint, false, NULL, NULL, &err), GDN_UNSUPPORTED);
    assert_null(model);
    assert_non_null(strstr(err.message, "48"));
    close_model(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(vocabulary), cmocka_unit_test(layers), cmocka_unit_test(mtp),
                                       cmocka_unit_test(bytes), cmocka_unit_test(refused)};
    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
