/* engine.h - texts for the demo model, the logits that they must have, and engines of it.  The reference is each text alone, in
 * one forward of the model, at the best level with one thread. */
#ifndef LAW_ENGINE_H
#define LAW_ENGINE_H
#include "law/run.h"
#include "gdn/gdn.h"
#include "law/model.h"
#include "support/fpmode.h"
#include "support/random.h"

/* Texts 1 and 2 begin like text 0: up to the end of a page, and up to the middle of one. */
enum { TEXTS = 4, LENGTH = 300, SHORT = 24, COMMON_1 = 64, COMMON_2 = 101 };

static int32_t text[TEXTS][LENGTH];
static float  *want[2][TEXTS]; /* of each type of keys and values: [LENGTH][V] */
static int     V;

static gdn_error err;

#define ACCEPTED(call)                                                                               \
    do {                                                                                             \
        if ((call) != GDN_OK) fail_msg("%s: %s: %s", #call, gdn_status_name(err.code), err.message); \
    } while (0)

static inline const float *wanted(int type, int t, int length) { return want[type][t] + (size_t)(length - 1) * V; }

static inline int open_references(void **unused)
{
    gdn_model   *model = demo_load();
    gdn_compute *compute = demo_compute(NULL, 1);
    rng          r = {77};
    (void)unused;
    V = model->config.vocab_size;
    for (int i = 0; i < TEXTS * LENGTH; i++) text[i / LENGTH][i % LENGTH] = rng_below(&r, V);
    memcpy(text[1], text[0], COMMON_1 * sizeof **text);
    memcpy(text[2], text[0], COMMON_2 * sizeof **text);
    for (int i = 0; i < 2 * TEXTS; i++) {
        const session_config config = {
            .n_lanes = 1, .max_rows = LENGTH, .max_positions = LENGTH, .kv_type = i / TEXTS ? GDN_BF16 : GDN_F32};
        const int n = LENGTH;
        session   s = session_open(model, compute, &config);
        float    *logits = malloc((size_t)LENGTH * V * sizeof *logits);
        assert_non_null(logits);
        ACCEPTED(session_forward(&s, &n, text[i % TEXTS], logits, NULL, &err));
        want[i / TEXTS][i % TEXTS] = logits;
        session_close(&s);
    }
    gdn_compute_close(compute);
    gdn_model_close(model);
    return 0;
}

static inline int close_references(void **unused)
{
    (void)unused;
    for (int i = 0; i < 2 * TEXTS; i++) free(want[i / TEXTS][i % TEXTS]);
    return 0;
}

/* ---- engines and what their sequences must hold --------------------------------------------------------------------- */

static inline gdn_engine *engine_of(const gdn_engine_options *more)
{
    gdn_engine_options options = *more;
    gdn_engine        *engine = NULL;
    options.model = DEMO_FOLDER;
    if (!options.max_tokens) options.max_tokens = LENGTH;
    ACCEPTED(gdn_engine_open(&engine, &options, &err));
    return engine;
}

static inline gdn_sequence *sequence_of(gdn_engine *engine)
{
    gdn_sequence *sequence = NULL;
    ACCEPTED(gdn_sequence_open(&sequence, engine, &err));
    return sequence;
}

/* The first `length` tokens of a text, and their logits. */
static inline void expect(const gdn_sequence *s, int type, int t, int length, const char *what)
{
    assert_int_equal(gdn_sequence_length(s), length);
    assert_memory_equal(gdn_sequence_tokens(s), text[t], (size_t)length * sizeof **text);
    const float *logits = gdn_sequence_logits(s);
    if (!length) {
        assert_null(logits);
        return;
    }
    assert_non_null(logits);
    if (!memcmp(logits, wanted(type, t, length), (size_t)V * sizeof *logits)) return;
    for (int i = 0; i < V; i++)
        if (memcmp(&logits[i], wanted(type, t, length) + i, sizeof *logits) != 0)
            fail_msg("%s: text %d, %d tokens: logit %d is %a, alone it is %a", what, t, length, i, (double)logits[i],
                     (double)wanted(type, t, length)[i]);
}

static inline void set(gdn_sequence *s, int t, int length)
{
    ACCEPTED(gdn_sequence_set(s, text[t], length, NULL, NULL, NULL, &err));
}

#endif
