/* Any bytes as each of a model's JSON files: refused with a sentence, or every number is in the range that config.h names. */
#include "format/checkpoint.h"
#include "format/config.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int holds)
{
    if (!holds) abort();
}

static void must_explain(gdn_status status, const gdn_error *err)
{
    must(status == GDN_BAD_FILE || status == GDN_UNSUPPORTED);
    must(err->code == status && err->message[0]);
    for (const char *c = err->message; *c; c++) must(*c >= 0x20 && *c <= 0x7e);
}

static void in_range(long long value, long long lo, long long hi) { must(value >= lo && value <= hi); }

static void check_stops(const int *stops, int n, int vocab)
{
    in_range(n, 0, GDN_MAX_STOPS);
    for (int i = 0; i < n; i++) in_range(stops[i], 0, vocab - 1);
}

static void check_config(const gdn_model_config *c)
{
    in_range(c->vocab_size, 1, 4194304);
    in_range(c->hidden_size, 1, 65536);
    in_range(c->n_layers, 1, 1024);
    in_range(c->n_heads, 1, 1024);
    in_range(c->n_kv_heads, 1, c->n_heads);
    in_range(c->n_key_heads, 1, 1024);
    in_range(c->n_value_heads, c->n_key_heads, 1024);
    in_range(c->head_dim, 32, 256);
    in_range(c->key_dim, 16, 256);
    in_range(c->value_dim, 16, 256);
    in_range(c->n_taps, 2, 8);
    in_range(c->ffn_size, 0, 1048576);
    in_range(c->n_experts, 0, 4096);
    in_range(c->n_experts_used, c->n_experts > 0, c->n_experts);
    in_range(c->rope_dims, 2, c->head_dim);
    must(c->n_heads % c->n_kv_heads == 0 && c->n_value_heads % c->n_key_heads == 0 && c->rope_dims % 2 == 0);
    must(c->rope_theta >= 1 && c->rope_theta <= 1e12 && c->rms_eps >= 1e-12 && c->rms_eps <= 0.01);
    in_range(c->max_positions, 1, 16777216);
    check_stops(c->stops, c->n_stops, c->vocab_size);
    for (int l = 0; l < c->n_layers; l++) {
        must(c->layers[l].mixer <= GDN_MIXER_FULL && c->layers[l].ffn <= GDN_FFN_MOE);
        must(c->layers[l].ffn == GDN_FFN_MOE ? c->expert_size > 0 && c->shared_expert_size > 0 : c->ffn_size > 0);
    }
    must(gdn_text_parameters(c, false) >= gdn_text_parameters(c, true) && gdn_text_parameters(c, true) > 0);
}

static void try_generation(const gdn_model_config *of, const uint8_t *data, size_t size)
{
    gdn_generation_config g;
    gdn_error             err = {GDN_OK, 0, ""};
    const gdn_status      status = gdn_generation_config_parse(&g, of, data, size, &err);
    if (status) {
        must_explain(status, &err);
        return;
    }
    must(g.temperature >= 0 && g.temperature <= 100 && g.top_p >= 0 && g.top_p <= 1 && g.min_p >= 0 && g.min_p <= 1);
    must(g.top_k >= 0 && g.repetition_penalty >= 0.01 && g.repetition_penalty <= 100);
    check_stops(g.stops, g.n_stops, of->vocab_size);
}

static void try_tokenizer(const uint8_t *data, size_t size)
{
    gdn_tokenizer_config t;
    gdn_error            err = {GDN_OK, 0, ""};
    const gdn_status     status = gdn_tokenizer_config_parse(&t, data, size, &err);
    if (status) must_explain(status, &err);
    else gdn_tokenizer_config_close(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gdn_model_config config;
    gdn_error        err = {GDN_OK, 0, ""};
    const gdn_status status = gdn_model_config_parse(&config, data, size, &err);
    if (status) {
        must_explain(status, &err);
        config = (gdn_model_config){.vocab_size = 1000};
    } else check_config(&config);
    try_generation(&config, data, size);
    try_tokenizer(data, size);
    return 0;
}
