/* Any bytes as a safetensors file and as an index of shards: refused with a sentence, or every tensor lies inside the file,
 * apart from the others, and is found again.  What is accepted is also bound to a model of two layers. */
#include "format/checkpoint.h"
#include "format/image.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) abort();
}

static void must_explain(gdn_status status, const gdn_error *err)
{
    must(err->code == status && err->message[0]);
    for (const char *c = err->message; *c; c++) must(*c >= 0x20 && *c <= 0x7e);
}

static const gdn_model_config config = {.vocab_size = 4,
                                        .hidden_size = 2,
                                        .n_layers = 2,
                                        .n_heads = 1,
                                        .n_kv_heads = 1,
                                        .head_dim = 32,
                                        .n_key_heads = 1,
                                        .n_value_heads = 1,
                                        .key_dim = 16,
                                        .value_dim = 16,
                                        .n_taps = 2,
                                        .ffn_size = 3,
                                        .n_experts = 2,
                                        .n_experts_used = 1,
                                        .expert_size = 1,
                                        .shared_expert_size = 1,
                                        .tie = GDN_TIE_UNSAID,
                                        .layers = {{GDN_MIXER_LINEAR, GDN_FFN_DENSE}, {GDN_MIXER_FULL, GDN_FFN_MOE}}};

static void try_bind(const gdn_tensors *tensors)
{
    gdn_checkpoint   checkpoint;
    gdn_error        err = {GDN_OK, 0, ""};
    const gdn_status status = gdn_checkpoint_bind(&checkpoint, &config, tensors, &err);
    if (status) must_explain(status, &err);
    must(status == GDN_OK || status == GDN_BAD_FILE || status == GDN_UNSUPPORTED);
    must(status || (checkpoint.embed->shape[0] == 4 && checkpoint.lm_head));
    gdn_checkpoint_close(&checkpoint);
}

/* The numbers of a tensor, added up so that every one is read. */
static float sum(const gdn_tensor *t)
{
    float        total = 0;
    const size_t n = gdn_tensor_elements(t);
    for (size_t i = 0; i < n; i += 64) {
        float    values[64];
        uint16_t halves[64];
        must(gdn_tensor_to_f32(values, t, i, n - i < 64 ? n - i : 64, NULL) == GDN_OK);
        must(gdn_tensor_to_bf16(halves, t, i, n - i < 64 ? n - i : 64, NULL) == GDN_OK);
        total += values[0] + (float)halves[0];
    }
    return total;
}

static void try_file(const uint8_t *data, size_t size)
{
    gdn_tensors      tensors;
    gdn_error        err = {GDN_OK, 0, ""};
    const gdn_status status = gdn_tensors_parse(&tensors, "fuzz", data, size, &err);
    if (status) {
        must(status == GDN_BAD_FILE && !tensors.n);
        must_explain(status, &err);
        return;
    }
    size_t         n_bytes = 0;
    volatile float kept = 0;
    for (size_t i = 0; i < tensors.n; i++) {
        const gdn_tensor *t = &tensors.all[i];
        const uint8_t    *from = t->data;
        must(from >= data && t->n_bytes <= size && from <= data + size - t->n_bytes);
        must(gdn_tensors_find(&tensors, t->name) == t);
        must(gdn_tensor_elements(t) * (size_t)gdn_tensor_type_bits(t->type) == 8 * t->n_bytes);
        n_bytes += t->n_bytes;
        if (t->type <= GDN_TENSOR_F32) kept = kept + sum(t);
    }
    must(n_bytes <= size);
    try_bind(&tensors);
    gdn_tensors_close(&tensors);
}

static void try_index(const uint8_t *data, size_t size)
{
    gdn_index        index;
    gdn_error        err = {GDN_OK, 0, ""};
    const gdn_status status = gdn_index_parse(&index, "fuzz", (const char *)data, size, &err);
    if (status) must_explain(status, &err);
    for (size_t i = 0; !status && i < index.n; i++) {
        must(index.entries[i].file[0] != '.' && !strchr(index.entries[i].file, '/'));
        must(i == 0 || strcmp(index.entries[i - 1].file, index.entries[i].file) <= 0);
    }
    gdn_index_close(&index);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_file(data, size);
    try_index(data, size);
    /* the length of the header keeps a fuzzer outside: also with the one that fits, up to the first zero byte behind it */
    if (size < 8) return 0;
    const uint8_t *end = memchr(data + 8, 0, size - 8);
    const uint64_t n_header = end ? (uint64_t)(end - data - 8) : size - 8;
    uint8_t       *fitted = malloc(size);
    must(fitted != NULL);
    memcpy(fitted, data, size);
    memcpy(fitted, &n_header, sizeof n_header);
    try_file(fitted, size);
    free(fitted);
    return 0;
}
