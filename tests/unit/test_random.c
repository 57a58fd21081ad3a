/* Models without a checkpoint: the published shapes, and random weights. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/half.h"
#include "law/model.h"
#include "model/random.h"
#include <math.h>

/* The published numbers of parameters of the text models: the sums of their safetensors without MTP and vision. */
static void published_shapes(void **unused)
{
    static const struct {
        const char *name;
        uint64_t    parameters;
        int         linear, full;
    } want[] = {
        {"0.8B", 752393024, 18, 6}, {"2B", 1881825088, 18, 6},    {"4B", 4205751296, 24, 8},
        {"9B", 8953803264, 24, 8},  {"27B", 26895998464, 48, 16}, {"35B-A3B", 34660610688, 30, 10},
    };
    static gdn_model_config c;
    gdn_error               err = {0};
    (void)unused;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        int full = 0;
        must(gdn_model_config_published(&c, want[i].name, &err), want[i].name, &err);
        for (int l = 0; l < c.n_layers; l++) full += c.layers[l].mixer == GDN_MIXER_FULL;
        assert_int_equal(gdn_text_parameters(&c, c.tie == GDN_TIE_YES), want[i].parameters);
        assert_int_equal(full, want[i].full);
        assert_int_equal(c.n_layers - full, want[i].linear);
    }
    assert_int_equal(gdn_model_config_published(&c, "3B", &err), GDN_BAD_ARGUMENT);
    assert_string_equal(err.message, "'3B' is not a published shape; choose one of 0.8B, 2B, 4B, 9B, 27B, 35B-A3B");
}

/* Rows of a matrix have the sizes that were promised, and both signs; what follows them stays. */
static void sizes_of_numbers(void **unused)
{
    static const int lengths[] = {1, 3, 512, 1023, 4098, 17408};
    enum { MOST = 17408 };
    static uint16_t w[MOST + 1];
    (void)unused;
    for (int i = 0; i < 6; i++) {
        gdn_random   random = {.state = 7};
        const int    n = lengths[i];
        const double rms = 1 / sqrt(n);
        double       squares = 0, sum = 0;
        w[n] = 0x1234;
        gdn_random_bf16(&random, w, (size_t)n);
        assert_int_equal(w[n], 0x1234);
        for (int j = 0; j < n; j++) {
            const double x = (double)gdn_f32_of_bf16(w[j]);
            assert_true(fabs(x) > rms / 4 && fabs(x) < rms * 4);
            squares += x * x;
            sum += x;
        }
        if (n < 512) continue;
        assert_true(sqrt(squares / n) > rms * 0.7 && sqrt(squares / n) < rms * 1.5);
        assert_true(fabs(sum / n) < 8 * rms / sqrt(n)); /* six or more standard deviations of the mean */
    }
}

/* ---- models ---------------------------------------------------------------------------------------------------------- */

enum { TOKENS = 9, VOCAB = 80, LAYERS = 4 };

/* Dense with the embedding as output matrix or with its own, or with experts. */
typedef enum kind { TIED, UNTIED, EXPERTS, KINDS } kind;

static const gdn_model_config *tiny(kind k)
{
    static gdn_model_config c;
    c = (gdn_model_config){
        .type = GDN_TENSOR_BF16,
        .vocab_size = VOCAB,
        .hidden_size = 64,
        .n_layers = LAYERS,
        .n_heads = 2,
        .n_kv_heads = 1,
        .head_dim = 32,
        .n_key_heads = 2,
        .n_value_heads = 4,
        .key_dim = 32,
        .value_dim = 32,
        .n_taps = 4,
        .ffn_size = 96,
        .rope_dims = 8,
        .rope_theta = 1e6,
        .rms_eps = 1e-6,
        .max_positions = 64,
        .tie = k == TIED ? GDN_TIE_YES : GDN_TIE_NO,
    };
    if (k == EXPERTS) {
        c.ffn_size = 0;
        c.n_experts = 8;
        c.n_experts_used = 2;
        c.expert_size = c.shared_expert_size = 48;
        c.norm_topk_prob = true;
    }
    for (int l = 0; l < LAYERS; l++)
        c.layers[l] = (gdn_layer_kind){l == LAYERS - 1 ? GDN_MIXER_FULL : GDN_MIXER_LINEAR,
                                       k == EXPERTS ? GDN_FFN_MOE : GDN_FFN_DENSE};
    return &c;
}

static gdn_model *random_model(kind k, uint64_t seed, bool mtp)
{
    gdn_model *model = NULL;
    gdn_error  err = {0};
    must(gdn_model_random(&model, tiny(k), seed, mtp, NULL, NULL, &err), "random", &err);
    return model;
}

/* Logits of the tokens 0, 1, 2 ... times nine, and if not NULL drafts after them: the same again with the outputs for hidden. */
static void logits_of(const gdn_model *model, gdn_compute *compute, float *logits, float *drafts)
{
    const session_config config = {.n_lanes = 1, .max_rows = TOKENS, .max_positions = TOKENS + 1};
    session              s = session_open(model, compute, &config);
    const int            n = TOKENS;
    int32_t              tokens[TOKENS];
    gdn_error            err = {0};
    for (int i = 0; i < TOKENS; i++) tokens[i] = 9 * i;
    float hidden[TOKENS * 64];
    must(session_forward(&s, &n, tokens, logits, hidden, &err), "forward", &err);
    if (drafts) {
        gdn_kv *const kv = mtp_kv_open(model, 1, TOKENS, GDN_F32);
        must(session_mtp(&s, kv, &n, tokens, hidden, drafts, NULL, &err), "mtp", &err);
        gdn_kv_close(kv);
    }
    session_close(&s);
}

/* Finite, of natural size, and different for different tokens. */
static void natural(const float *logits)
{
    double squares = 0;
    for (int i = 0; i < TOKENS * VOCAB; i++) {
        assert_true(isfinite(logits[i]));
        squares += (double)logits[i] * (double)logits[i];
    }
    const double rms = sqrt(squares / (TOKENS * VOCAB));
    assert_true(rms > 0.1 && rms < 10);
    assert_memory_not_equal(logits, logits + VOCAB, VOCAB * sizeof *logits);
}

/* The same seed gives the same bits at every level, and with an MTP part beside it. */
static void same_seed_same_bits(void **unused)
{
    static float want[TOKENS * VOCAB], got[TOKENS * VOCAB], drafts[TOKENS * VOCAB];
    gdn_compute *ref = demo_compute("ref", 1);
    (void)unused;
    for (kind k = TIED; k < KINDS; k++) {
        gdn_model *const model = random_model(k, 11, true), *const again = random_model(k, 11, false),
                         *const other = random_model(k, 12, false);
        logits_of(model, ref, want, drafts);
        natural(want);
        natural(drafts);
        for (int i = 0; gdn_kernels_level(i); i++) {
            gdn_compute     *compute;
            gdn_error        err = {0};
            const gdn_status status = gdn_compute_open(&compute, gdn_kernels_level(i)->name, 1 + i % 2, &err);
            if (status == GDN_UNSUPPORTED && i > 0) continue; /* a level that this CPU lacks */
            must(status, gdn_kernels_level(i)->name, &err);
            logits_of(again, compute, got, NULL);
            assert_memory_equal(got, want, sizeof want);
            gdn_compute_close(compute);
        }
        logits_of(other, ref, got, NULL);
        assert_memory_not_equal(got, want, sizeof want);
        gdn_model_close(model);
        gdn_model_close(again);
        gdn_model_close(other);
    }
    gdn_compute_close(ref);
}

/* A tied model computes what one does that keeps the same embedding beside the output matrix. */
static void tied_rows(void **unused)
{
    static float     want[TOKENS * VOCAB], got[TOKENS * VOCAB];
    static uint16_t  rows[VOCAB * 64];
    gdn_compute     *compute = demo_compute("ref", 1);
    gdn_model *const model = random_model(TIED, 5, false);
    (void)unused;
    assert_null(model->embed);
    logits_of(model, compute, got, NULL);
    for (int n = 0; n < VOCAB; n++) /* from [V/16][h/2][16][2] */
        for (int k = 0; k < 64; k++)
            rows[n * 64 + k] = model->lm_head.w[((n / 16 * 32 + k / 2) * 16 + n % 16) * 2 + k % 2];
    model->embed = rows;
    logits_of(model, compute, want, NULL);
    assert_memory_equal(got, want, sizeof want);
    gdn_model_close(model); /* the rows are not among its blocks */
    gdn_compute_close(compute);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_shapes),
        cmocka_unit_test(sizes_of_numbers),
        cmocka_unit_test(same_seed_same_bits),
        cmocka_unit_test(tied_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
