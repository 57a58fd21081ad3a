/* The checkpoints that ship: they open and bind whole, and hold what was written into them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "format/checkpoint.h"
#include <stdio.h>
#include <string.h>

#define DEMO "models/demo"
#define MOE "tests/checkpoints/tiny-moe"
#define FUSED "tests/checkpoints/tiny-moe-fused"
#define NEXT "tests/checkpoints/tiny-next"

typedef struct opened {
    gdn_model_config config;
    gdn_tensors      tensors;
    gdn_checkpoint   checkpoint;
} opened;

static void must(gdn_status status, const gdn_error *err)
{
    if (status) fail_msg("%s", err->message);
}

static void open_model(opened *o, const char *folder)
{
    gdn_error err;
    must(gdn_model_config_load(&o->config, folder, &err), &err);
    must(gdn_tensors_open(&o->tensors, folder, &err), &err);
    must(gdn_checkpoint_bind(&o->checkpoint, &o->config, &o->tensors, &err), &err);
    assert_int_equal(o->checkpoint.n_unknown, 0);
    assert_int_equal(o->checkpoint.n_vision, 0);
}

static void close_model(opened *o)
{
    gdn_checkpoint_close(&o->checkpoint);
    gdn_tensors_close(&o->tensors);
}

/* Every number of the file belongs to the text model or its MTP layer, and the shapes alone give the same counts. */
static void check_counts(const opened *o, uint64_t text, uint64_t mtp)
{
    uint64_t in_mtp = 0, in_text = 0;
    for (size_t i = 0; i < o->tensors.n; i++) {
        const gdn_tensor *t = &o->tensors.all[i];
        *(strncmp(t->name, "mtp.", 4) ? &in_text : &in_mtp) += gdn_tensor_elements(t);
    }
    assert_int_equal(in_text, text);
    assert_int_equal(in_mtp, mtp);
    assert_int_equal(gdn_text_parameters(&o->config, o->checkpoint.tied), text);
    if (mtp) assert_int_equal(gdn_mtp_parameters(&o->config), mtp);
}

#define NAMED(tensor, wanted) assert_string_equal((tensor)->name, wanted)

static void names_linear(const gdn_linear_tensors *t, const char *prefix, int fused)
{
    char      name[128];
    const int n = snprintf(name, sizeof name, "%slinear_attn.", prefix);
#define CHECK(field, end)                                       \
    do {                                                        \
        snprintf(name + n, sizeof name - (size_t)n, "%s", end); \
        NAMED(t->field, name);                                  \
    } while (0)
    if (fused) {
        CHECK(in_proj_qkvz, "in_proj_qkvz.weight");
        CHECK(in_proj_ba, "in_proj_ba.weight");
        assert_true(!t->in_proj_qkv && !t->in_proj_z && !t->in_proj_a && !t->in_proj_b);
    } else {
        CHECK(in_proj_qkv, "in_proj_qkv.weight");
        CHECK(in_proj_z, "in_proj_z.weight");
        CHECK(in_proj_a, "in_proj_a.weight");
        CHECK(in_proj_b, "in_proj_b.weight");
        assert_true(!t->in_proj_qkvz && !t->in_proj_ba);
    }
    CHECK(conv1d, "conv1d.weight");
    CHECK(A_log, "A_log");
    CHECK(dt_bias, "dt_bias");
    CHECK(norm, "norm.weight");
    CHECK(out_proj, "out_proj.weight");
}

static void names_attention(const gdn_attention_tensors *t, const char *prefix)
{
    char      name[128];
    const int n = snprintf(name, sizeof name, "%sself_attn.", prefix);
    CHECK(q_proj, "q_proj.weight");
    CHECK(k_proj, "k_proj.weight");
    CHECK(v_proj, "v_proj.weight");
    CHECK(o_proj, "o_proj.weight");
    CHECK(q_norm, "q_norm.weight");
    CHECK(k_norm, "k_norm.weight");
}

static void names_mlp(const gdn_mlp_tensors *t, const char *prefix, const char *part)
{
    char      name[128];
    const int n = snprintf(name, sizeof name, "%s%s", prefix, part);
    CHECK(gate_proj, "gate_proj.weight");
    CHECK(up_proj, "up_proj.weight");
    CHECK(down_proj, "down_proj.weight");
}

static void names_layer(const gdn_layer_tensors *t, const char *prefix)
{
    char      name[128];
    const int n = snprintf(name, sizeof name, "%s", prefix);
    CHECK(input_norm, "input_layernorm.weight");
    CHECK(post_norm, "post_attention_layernorm.weight");
}

static void demo(void **unused)
{
    (void)unused;
    opened    o;
    gdn_error err;
    open_model(&o, DEMO);
    const gdn_checkpoint *c = &o.checkpoint;
    check_counts(&o, 6858800, 853760); /* as its card says */
    assert_true(c->tied && c->has_mtp);
    assert_ptr_equal(c->lm_head, c->embed);
    NAMED(c->embed, "model.embed_tokens.weight");
    NAMED(c->norm, "model.norm.weight");
    assert_int_equal(c->embed->shape[0], 4096);
    assert_int_equal(c->embed->shape[1], 256);
    for (int l = 0; l < 8; l++) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "model.layers.%d.", l);
        names_layer(&c->layers[l], prefix);
        assert_int_equal(o.config.layers[l].mixer, l % 4 == 3 ? GDN_MIXER_FULL : GDN_MIXER_LINEAR);
        if (l % 4 == 3) names_attention(&c->layers[l].attention, prefix);
        else names_linear(&c->layers[l].linear, prefix, 0);
        names_mlp(&c->layers[l].mlp, prefix, "mlp.");
    }
    assert_int_equal(c->layers[0].linear.A_log->type, GDN_TENSOR_F32);
    NAMED(c->mtp.fc, "mtp.fc.weight");
    NAMED(c->mtp.norm, "mtp.norm.weight");
    NAMED(c->mtp.norm_embedding, "mtp.pre_fc_norm_embedding.weight");
    NAMED(c->mtp.norm_hidden, "mtp.pre_fc_norm_hidden.weight");
    names_layer(&c->mtp.layer, "mtp.layers.0.");
    names_attention(&c->mtp.layer.attention, "mtp.layers.0.");
    names_mlp(&c->mtp.layer.mlp, "mtp.layers.0.", "mlp.");

    gdn_generation_config generation;
    must(gdn_generation_config_load(&generation, DEMO, &o.config, &err), &err);
    assert_false(generation.do_sample);
    assert_int_equal(generation.n_stops, 2);
    assert_int_equal(generation.stops[0], 4081);
    assert_int_equal(generation.stops[1], 4079);
    gdn_tokenizer_config tokenizer;
    must(gdn_tokenizer_config_load(&tokenizer, DEMO, &err), &err);
    assert_string_equal(tokenizer.eos_token, "<|im_end|>");
    assert_string_equal(tokenizer.pad_token, "<|endoftext|>");
    assert_null(tokenizer.bos_token);
    assert_int_equal(strlen(tokenizer.chat_template), 5221);
    gdn_tokenizer_config_close(&tokenizer);
    close_model(&o);
}

/* The same weights, one tensor an expert and packed, under two prefixes. */
static void moe_in_both_layouts(void **unused)
{
    (void)unused;
    opened single, packed;
    open_model(&single, MOE);
    open_model(&packed, FUSED);
    check_counts(&single, 131568, 0);
    check_counts(&packed, 131568, 0);
    assert_false(single.checkpoint.tied || packed.checkpoint.tied);
    NAMED(packed.checkpoint.embed, "model.language_model.embed_tokens.weight");
    NAMED(packed.checkpoint.lm_head, "lm_head.weight");
    for (int l = 0; l < 3; l++) {
        char prefix[48];
        snprintf(prefix, sizeof prefix, "model.language_model.layers.%d.", l);
        const gdn_moe_tensors *s = &single.checkpoint.layers[l].moe, *p = &packed.checkpoint.layers[l].moe;
        if (l == 2) names_attention(&packed.checkpoint.layers[l].attention, prefix);
        else names_linear(&packed.checkpoint.layers[l].linear, prefix, 0);
        names_mlp(&p->shared, prefix, "mlp.shared_expert.");
        assert_null(p->experts);
        assert_null(s->gate_up_proj);
        assert_memory_equal(s->router->data, p->router->data, 4 * 64 * 2);
        assert_memory_equal(s->shared_gate->data, p->shared_gate->data, 64 * 2);
        for (int e = 0; e < 4; e++) {
            enum { N = 16 * 64 * 2 }; /* bytes of each matrix of an expert */
            const unsigned char *gate_up = (const unsigned char *)p->gate_up_proj->data + e * 2 * N;
            assert_memory_equal(s->experts[e].gate_proj->data, gate_up, N);
            assert_memory_equal(s->experts[e].up_proj->data, gate_up + N, N);
            assert_memory_equal(s->experts[e].down_proj->data, (const unsigned char *)p->down_proj->data + e * N, N);
        }
    }
    close_model(&single);
    close_model(&packed);
}

static void next(void **unused)
{
    (void)unused;
    opened o;
    open_model(&o, NEXT);
    check_counts(&o, 131568, 0);
    assert_int_equal(o.config.family, GDN_QWEN3_NEXT);
    names_linear(&o.checkpoint.layers[0].linear, "model.layers.0.", 1);
    names_linear(&o.checkpoint.layers[1].linear, "model.layers.1.", 1);
    names_attention(&o.checkpoint.layers[2].attention, "model.layers.2.");
    NAMED(o.checkpoint.layers[1].moe.experts[2].down_proj, "model.layers.1.mlp.experts.2.down_proj.weight");
    close_model(&o);
}

/* Numbers read out of the files by a Python script (struct.unpack). */
static void values(void **unused)
{
    (void)unused;
    static const struct {
        const char *folder, *name;
        size_t      at;
        float       value;
    } known[] = {
        {DEMO, "model.embed_tokens.weight", 1048575, -0x1.2ap-3f},
        {DEMO, "model.layers.0.linear_attn.A_log", 3, 0x1.12p+0f},
        {DEMO, "model.layers.6.linear_attn.norm.weight", 127, 0x1.3cp+0f},
        {DEMO, "model.layers.7.self_attn.q_proj.weight", 200000, -0x1.0ap-3f},
        {DEMO, "mtp.fc.weight", 131071, 0x1.14p-2f},
        {DEMO, "model.norm.weight", 0, 0x1.9p-2f},
        {MOE, "lm_head.weight", 12345, -0x1.16p-4f},
        {MOE, "model.layers.1.linear_attn.conv1d.weight", 511, -0x1.6ap-2f},
        {MOE, "model.layers.2.mlp.experts.3.down_proj.weight", 1023, 0x1.a6p-5f},
        {MOE, "model.layers.0.linear_attn.A_log", 2, 0x1.44p+0f},
        {FUSED, "model.language_model.layers.1.mlp.experts.gate_up_proj", 8191, -0x1.74p-6f},
        {NEXT, "model.layers.1.linear_attn.in_proj_qkvz.weight", 12287, 0x1.68p-4f},
        {NEXT, "model.layers.0.linear_attn.in_proj_ba.weight", 511, 0x1.bap-4f},
        {NEXT, "model.layers.2.self_attn.o_proj.weight", 4000, 0x1.0cp-6f},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        opened    o;
        gdn_error err;
        float     value;
        open_model(&o, known[i].folder);
        const gdn_tensor *t = gdn_tensors_find(&o.tensors, known[i].name);
        assert_non_null(t);
        must(gdn_tensor_to_f32(&value, t, known[i].at, 1, &err), &err);
        assert_true(value == known[i].value);
        close_model(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(demo),
        cmocka_unit_test(moe_in_both_layouts),
        cmocka_unit_test(next),
        cmocka_unit_test(values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
