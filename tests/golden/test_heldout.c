/* Bits per byte of the shipped model on text that it was not trained on (heldout.json), by source, through gdn's tokenizer and
 * forward pass; heldout_bits.json has what the code that trained the model makes of the same text in float32, measured as for
 * the model card (record_heldout.py beside this file says how).  The card itself knows more text of most sources: only of
 * "devil" it is the same, so that one is compared with the card too.
 *
 * A third of the sources by default, all with --all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <jansson.h>
#include "law/model.h"
#include "text/tokenizer.h"
#include <math.h>

enum { WINDOW = 2048, SHORTEST = 16, SOURCES = 34 };

static const double share = 1e-3;          /* that a source may be off by */
static const double devil_of_card = 1.947; /* bits a byte, as printed: to 0.0005 */

static size_t step = 3; /* of the sources that are taken */

typedef struct measure {
    int    n_tokens;
    size_t n_bytes;
    double bits;
} measure;

static gdn_model     *model;
static gdn_compute   *compute;
static gdn_tokenizer *tokenizer;
static float         *logits; /* [WINDOW][V] */
static gdn_error      err;

static void accept(gdn_status status)
{
    if (status != GDN_OK) fail_msg("%s", err.message);
}

/* -log2 p of token `id` */
static double bits_of(const float *x, int n, int32_t id)
{
    const double most = (double)x[argmax_of(x, n)];
    double       sum = 0;
    for (int i = 0; i < n; i++) sum += exp((double)x[i] - most);
    return (log(sum) + most - (double)x[id]) / log(2);
}

/* ids[0..n-1] give ids[1..n]. */
static void measure_window(measure *m, const int32_t *ids, int n)
{
    const session_config config = {.n_lanes = 1, .max_rows = WINDOW, .max_positions = WINDOW};
    const int            V = model->config.vocab_size;
    session              s = session_open(model, compute, &config);
    char                *text;
    size_t               n_text;
    accept(session_forward(&s, &n, ids, logits, NULL, &err));
    session_close(&s);
    for (int t = 0; t < n; t++) m->bits += bits_of(logits + (size_t)t * V, V, ids[t + 1]);
    accept(gdn_decode(tokenizer, ids + 1, (size_t)n, false, &text, &n_text, &err));
    free(text);
    m->n_tokens += n;
    m->n_bytes += n_text;
}

static measure measure_source(const json_t *items, const char *source)
{
    measure       m = {0};
    size_t        i;
    const json_t *item;
    json_array_foreach(items, i, item)
    {
        if (strcmp(json_string_value(json_object_get(item, "source")), source) != 0) continue;
        const json_t  *text = json_object_get(item, "text");
        const gdn_span span = {json_string_value(text), json_string_length(text), false};
        gdn_ids        ids = {0};
        accept(gdn_tokenizer_encode(tokenizer, &span, 1, &ids, &err));
        for (size_t first = 0; first < ids.n; first += WINDOW) {
            const size_t n = ids.n - first < WINDOW + 1 ? ids.n - first : WINDOW + 1;
            if (n > SHORTEST) measure_window(&m, ids.id + first, (int)n - 1);
        }
        free(ids.id);
    }
    return m;
}

static double bits_a_byte(const json_t *recorded)
{
    return json_number_value(json_object_get(recorded, "bits")) /
           (double)json_integer_value(json_object_get(recorded, "bytes"));
}

static void heldout(void **unused)
{
    json_t     *items = json_load_file("tests/golden/heldout.json", 0, NULL);
    json_t     *sources = json_load_file("tests/golden/heldout_bits.json", 0, NULL), *recorded;
    const char *name;
    double      got_bits = 0, want_bits = 0, worst = 0;
    size_t      n_bytes = 0, i = 0, n_compared = 0;
    (void)unused;
    assert_int_equal(json_object_size(sources), SOURCES);
    json_object_foreach(sources, name, recorded)
    {
        const int is_devil = strcmp(name, "devil") == 0;
        if (i++ % step != 0 && !is_devil) continue;
        const measure m = measure_source(items, name);
        const double  got = m.bits / (double)m.n_bytes, want = bits_a_byte(recorded);
        assert_int_equal(m.n_tokens, json_integer_value(json_object_get(recorded, "tokens")));
        assert_int_equal(m.n_bytes, json_integer_value(json_object_get(recorded, "bytes")));
        print_message("%-22s %.5f bits a byte, recorded %.5f (%+.3f %%)\n", name, got, want, 100 * (got / want - 1));
        if (!(fabs(got / want - 1) <= share)) fail_msg("%s: %g bits a byte, recorded %g", name, got, want);
        if (is_devil && !(fabs(got / devil_of_card - 1) <= share))
            fail_msg("%s: %g bits a byte, the card says %g", name, got, devil_of_card);
        got_bits += m.bits;
        want_bits += json_number_value(json_object_get(recorded, "bits"));
        worst = fmax(worst, fabs(got / want - 1));
        n_bytes += m.n_bytes;
        n_compared++;
    }
    print_message(
        "%zu sources, %zu bytes: %.5f bits a byte, recorded %.5f (%+.4f %%); a source is at most %.3f %% off\n",
        n_compared, n_bytes, got_bits / (double)n_bytes, want_bits / (double)n_bytes, 100 * (got_bits / want_bits - 1),
        100 * worst);
    assert_true(n_compared >= (SOURCES + step - 1) / step);
    json_decref(items);
    json_decref(sources);
}

static int open_all(void **unused)
{
    (void)unused;
    model = demo_load();
    compute = demo_compute(NULL, 1);
    must(gdn_tokenizer_open(&tokenizer, DEMO_FOLDER "/tokenizer.json", &err), "tokenizer", &err);
    logits = malloc((size_t)WINDOW * model->config.vocab_size * sizeof *logits);
    return logits ? 0 : -1;
}

static int close_all(void **unused)
{
    (void)unused;
    free(logits);
    gdn_tokenizer_close(tokenizer);
    gdn_compute_close(compute);
    gdn_model_close(model);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--all") == 0) step = 1;

    const struct CMUnitTest tests[] = {cmocka_unit_test(heldout)};
    return cmocka_run_group_tests_name("heldout", tests, open_all, close_all);
}
