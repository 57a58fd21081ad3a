/* random.h - numbers that stand for the tensors of a checkpoint: of natural size, and the same on every machine. */
#ifndef GDN_MODEL_RANDOM_H
#define GDN_MODEL_RANDOM_H
#include "format/checkpoint.h"

/* A tensor without data: the numbers of a vector lie between least and most. */
typedef struct gdn_random_tensor {
    gdn_tensor tensor; /* first: what holds a pointer to it has one to all */
    float      least, most;
} gdn_random_tensor;

/* A stream of numbers, and the tensors of a checkpoint that are read from it. */
typedef struct gdn_random {
    uint64_t          state;                       /* the seed, at first */
    gdn_random_tensor matrix;                      /* any */
    gdn_random_tensor norm, head_norm, gated_norm; /* [h], [D], [dv] */
    gdn_random_tensor conv, A_log, dt_bias;        /* [CD][1][K], [Hv], [Hv] */
    gdn_layer_tensors layer;                       /* of any kind */
    gdn_mtp_tensors   mtp;
} gdn_random;

/* Everything that `config` asks for points into *random, which must stay where it is. */
void gdn_random_open(gdn_random *random, const gdn_model_config *config, uint64_t seed);

/* The next n numbers, of a vector that is one of the tensors above. */
void gdn_random_f32(gdn_random *random, float *v, const gdn_tensor *vector, size_t n);

/* The next n numbers of a matrix with rows of n, whose outputs are then about as large as its inputs: of both signs, with a root
 * mean square between 0.7 and 1.5 times 1/sqrt(n), none zero or denormal. */
void gdn_random_bf16(gdn_random *random, uint16_t *row, size_t n);

#endif
