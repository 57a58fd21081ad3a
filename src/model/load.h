/* load.h - what the loading of a model is made of. */
#ifndef GDN_MODEL_LOAD_H
#define GDN_MODEL_LOAD_H
#include "base/alloc.h"
#include "model/model.h"
#include "model/random.h"

/* One model being loaded.  After the first error `status` is set and nothing more is done. */
typedef struct gdn_loader {
    gdn_model            *model;
    gdn_random           *random; /* stands for the data of the tensors; NULL: they have their own */
    uint16_t             *rows;   /* a panel of rows in bf16, before they are packed */
    size_t                rows_size;
    gdn_load_progress_fn *progress; /* or NULL */
    void                 *arg;
    size_t                taken, done, told, total; /* bytes of weights: given out, filled, reported, all */
    gdn_error            *err;
    gdn_status            status;
} gdn_loader;

/* A matrix [n_outputs][n_heads*padded_head] out of a tensor's rows [..][n_heads*head], from element `first` on. */
typedef struct gdn_matrix_source {
    const gdn_tensor *tensor;
    size_t            first;
    int               n_rows;    /* that there are */
    const int        *rows;      /* [n_outputs]: output i is row rows[i], or zeros when that is negative; NULL: row i */
    int               n_outputs; /* with rows NULL those after n_rows are zeros */
    int               n_heads, head, padded_head; /* zeros follow each head */
} gdn_matrix_source;

/* What n_bytes take of the block of weights: whole cache lines. */
static inline size_t gdn_load_bytes(size_t n_bytes) { return (n_bytes + GDN_ALIGN - 1) / GDN_ALIGN * GDN_ALIGN; }

/* The next n_bytes of the block; NULL after a failure, which `status` keeps. */
void *gdn_load_take(gdn_loader *ld, size_t n_bytes);

/* n_bytes, as taken, are filled. */
void gdn_load_count(gdn_loader *ld, size_t n_bytes);

/* Numbers first .. first+n-1 of a vector; of a matrix with rows of n. */
void gdn_load_f32(gdn_loader *ld, float *dst, const gdn_tensor *tensor, size_t first, size_t n);
void gdn_load_bf16(gdn_loader *ld, uint16_t *dst, const gdn_tensor *tensor, size_t first, size_t n);

/* A vector in f32, with `plus` added. */
float *gdn_load_vector(gdn_loader *ld, const gdn_tensor *tensor, float plus);

/* Pack a matrix into w [gdn_linear_bytes], or into memory of its own when w is NULL. */
gdn_linear gdn_load_matrix(gdn_loader *ld, const gdn_matrix_source *source, uint16_t *w);

/* Pack a whole tensor [n_outputs][n_inputs]; its pages are asked for before and given back after. */
gdn_linear gdn_load_linear(gdn_loader *ld, const gdn_tensor *tensor, int n_outputs, int n_inputs);

/* Bytes of the three matrices of an MLP. */
size_t gdn_mlp_bytes(int hidden_size, int width);

/* Of the layer of MTP. */
gdn_layer_kind gdn_mtp_kind(const gdn_model_config *config);

/* The parts of a layer. */
void gdn_load_delta(gdn_loader *ld, gdn_delta_layer_weights *w, const gdn_linear_tensors *t);
void gdn_load_mlp(gdn_loader *ld, gdn_mlp_weights *w, const gdn_mlp_tensors *t, int width);
void gdn_load_moe(gdn_loader *ld, gdn_moe_weights *w, const gdn_moe_tensors *t);

#endif
