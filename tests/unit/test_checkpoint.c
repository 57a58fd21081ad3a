/* Binding a checkpoint: the layouts that are accepted, and the sentence for each thing that is wrong. */
#include "unit/files.h"
#include "format/checkpoint.h"

#define MOE "tests/checkpoints/tiny-moe"
#define FUSED "tests/checkpoints/tiny-moe-fused"
#define DEMO "models/demo"

static gdn_model_config config;
static gdn_tensors      tensors;
static gdn_checkpoint   checkpoint;

/* ---- changing a file ----------------------------------------------------------------------------------------------- */

/* A safetensors file taken apart. */
typedef struct image {
    char          *header;
    unsigned char *data;
    size_t         n_data;
} image;

static image take_apart(const char *model)
{
    char     path[128];
    size_t   n;
    uint64_t n_header;
    snprintf(path, sizeof path, "%s/model.safetensors", model);
    char *bytes = load(path, &n);
    memcpy(&n_header, bytes, sizeof n_header);
    image im = {.n_data = n - 8 - n_header};
    im.header = strndup(bytes + 8, n_header);
    im.data = malloc(im.n_data);
    assert_true(im.header && im.data);
    memcpy(im.data, bytes + 8 + n_header, im.n_data);
    free(bytes);
    return im;
}

static void change(image *im, const char *old, const char *new)
{
    char *header = replaced(im->header, old, new);
    free(im->header);
    im->header = header;
}

/* Add a tensor of zeros. */
static void append(image *im, const char *name, const char *type, int bytes, const char *shape, size_t n)
{
    char         entry[256];
    const size_t n_more = n * (size_t)bytes;
    im->data = realloc(im->data, im->n_data + n_more);
    assert_non_null(im->data);
    memset(im->data + im->n_data, 0, n_more);
    snprintf(entry, sizeof entry, "{\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]},", name, type,
             shape, im->n_data, im->n_data + n_more);
    change(im, "{", entry);
    im->n_data += n_more;
}

static void write_image(image *im)
{
    store_image("model.safetensors", im->header, im->data, im->n_data);
    free(im->header);
    free(im->data);
}

static gdn_status bind(void)
{
    ACCEPTED(gdn_tensors_open(&tensors, folder, &err));
    return gdn_checkpoint_bind(&checkpoint, &config, &tensors, &err);
}

static void unbind(void)
{
    gdn_checkpoint_close(&checkpoint);
    gdn_checkpoint_close(&checkpoint);
    gdn_tensors_close(&tensors);
}

static void bind_changed(image *im)
{
    write_image(im);
    const gdn_status status = bind();
    if (status) fail_msg("%s", err.message);
}

static void refuse_changed(image *im, gdn_status status, const char *sentence)
{
    write_image(im);
    REFUSED(bind(), status, sentence);
    assert_null(checkpoint.layers);
    unbind();
}

static image open_moe(void)
{
    ACCEPTED(gdn_model_config_load(&config, MOE, &err));
    return take_apart(MOE);
}

/* ---- what is accepted ---------------------------------------------------------------------------------------------- */

static void other_prefixes(void **unused)
{
    (void)unused;
    static const char *const prefixes[] = {"", "model.language_model."};
    for (int i = 0; i < 2; i++) {
        image im = open_moe();
        char  prefix[32], name[96];
        snprintf(prefix, sizeof prefix, "\"%s", prefixes[i]);
        for (char *at; (at = strstr(im.header, "\"model.layers")) || (at = strstr(im.header, "\"model.embed")) ||
                       (at = strstr(im.header, "\"model.norm"));) {
            char *head = strndup(im.header, (size_t)(at - im.header)), *header = NULL;
            assert_true(asprintf(&header, "%s%s#%s", head, prefix, at + strlen("\"model.")) > 0);
            free(head);
            free(im.header);
            im.header = header;
        }
        for (char *at; (at = strchr(im.header, '#'));) memmove(at, at + 1, strlen(at));
        bind_changed(&im);
        assert_int_equal(checkpoint.n_unknown, 0);
        snprintf(name, sizeof name, "%slayers.1.linear_attn.A_log", prefixes[i]);
        assert_string_equal(checkpoint.layers[1].linear.A_log->name, name);
        unbind();
    }
}

static void other_tensors(void **unused)
{
    (void)unused;
    image im = open_moe();
    append(&im, "model.visual.blocks.0.attn.qkv.weight", "BF16", 2, "[3,2]", 6);
    append(&im, "visual.merger.norm.weight", "F32", 4, "[1]", 1);
    append(&im, "vision_tower.x", "I64", 8, "[]", 1);
    append(&im, "model.layers.2.self_attn.rotary_emb.inv_freq", "F32", 4, "[4]", 4);
    append(&im, "model.layers.0.linear_attn.extra", "BF16", 2, "[1]", 1);
    bind_changed(&im);
    assert_int_equal(checkpoint.n_vision, 3);
    assert_int_equal(checkpoint.n_unknown, 1);
    assert_string_equal(checkpoint.unknown[0], "model.layers.0.linear_attn.extra");
    unbind();

    im = open_moe();
    for (int i = 0; i < 10; i++) {
        char name[24];
        snprintf(name, sizeof name, "extra.%d", i);
        append(&im, name, "BF16", 2, "[1]", 1);
    }
    bind_changed(&im);
    assert_int_equal(checkpoint.n_unknown, 10);
    for (int i = 0; i < GDN_UNKNOWN_NAMES; i++) {
        char name[24];
        snprintf(name, sizeof name, "extra.%d", i);
        assert_string_equal(checkpoint.unknown[i], name);
    }
    unbind();
}

static void ties(void **unused)
{
    (void)unused;
    for (int tie = GDN_TIE_NO; tie <= GDN_TIE_UNSAID; tie++)
        for (int has_head = 0; has_head < 2; has_head++) {
            image im = open_moe();
            config.tie = (gdn_tie)tie;
            if (!has_head) change(&im, "\"lm_head.weight\"", "\"visual.lm_head.weight\"");
            if (tie == GDN_TIE_NO && !has_head) {
                refuse_changed(&im, GDN_BAD_FILE,
                               "model.safetensors: tensor lm_head.weight is missing; config.json asks for it with "
                               "shape [256, 64]");
                continue;
            }
            bind_changed(&im);
            assert_int_equal(checkpoint.tied, tie == GDN_TIE_YES || !has_head);
            assert_string_equal(checkpoint.lm_head->name,
                                checkpoint.tied ? "model.embed_tokens.weight" : "lm_head.weight");
            assert_int_equal(checkpoint.n_unknown, 0);
            unbind();
        }
}

/* The type of each tensor is its own. */
static void other_types(void **unused)
{
    (void)unused;
    image im = open_moe();
    change(&im, "\"model.norm.weight\"", "\"visual.a\"");
    append(&im, "model.norm.weight", "F16", 2, "[64]", 64);
    change(&im, "\"model.layers.0.linear_attn.A_log\"", "\"visual.b\"");
    append(&im, "model.layers.0.linear_attn.A_log", "F32", 4, "[4]", 4);
    bind_changed(&im);
    assert_int_equal(checkpoint.norm->type, GDN_TENSOR_F16);
    assert_int_equal(checkpoint.layers[0].linear.A_log->type, GDN_TENSOR_F32);
    unbind();
}

static void append_mtp(image *im)
{
    append(im, "mtp.fc.weight", "BF16", 2, "[64,128]", 64 * 128);
    append(im, "mtp.norm.weight", "BF16", 2, "[64]", 64);
    append(im, "mtp.pre_fc_norm_embedding.weight", "BF16", 2, "[64]", 64);
    append(im, "mtp.pre_fc_norm_hidden.weight", "BF16", 2, "[64]", 64);
    append(im, "mtp.layers.0.input_layernorm.weight", "BF16", 2, "[64]", 64);
    append(im, "mtp.layers.0.post_attention_layernorm.weight", "BF16", 2, "[64]", 64);
    append(im, "mtp.layers.0.self_attn.q_proj.weight", "BF16", 2, "[128,64]", 128 * 64);
    append(im, "mtp.layers.0.self_attn.k_proj.weight", "BF16", 2, "[32,64]", 32 * 64);
    append(im, "mtp.layers.0.self_attn.v_proj.weight", "BF16", 2, "[32,64]", 32 * 64);
    append(im, "mtp.layers.0.self_attn.o_proj.weight", "BF16", 2, "[64,64]", 64 * 64);
    append(im, "mtp.layers.0.self_attn.q_norm.weight", "BF16", 2, "[32]", 32);
    append(im, "mtp.layers.0.self_attn.k_norm.weight", "BF16", 2, "[32]", 32);
    append(im, "mtp.layers.0.mlp.gate.weight", "BF16", 2, "[4,64]", 4 * 64);
    append(im, "mtp.layers.0.mlp.shared_expert.gate_proj.weight", "BF16", 2, "[16,64]", 16 * 64);
    append(im, "mtp.layers.0.mlp.shared_expert.up_proj.weight", "BF16", 2, "[16,64]", 16 * 64);
    append(im, "mtp.layers.0.mlp.shared_expert.down_proj.weight", "BF16", 2, "[64,16]", 64 * 16);
    append(im, "mtp.layers.0.mlp.shared_expert_gate.weight", "BF16", 2, "[1,64]", 64);
}

/* The MTP layer of an MoE model, its experts packed and one by one: 19, and 17 + 3*4 tensors. */
static void mtp_of_moe(void **unused)
{
    (void)unused;
    for (int packed = 0; packed < 2; packed++) {
        image im = open_moe();
        append_mtp(&im);
        if (packed) {
            append(&im, "mtp.layers.0.mlp.experts.gate_up_proj", "BF16", 2, "[4,32,64]", 4 * 32 * 64);
            append(&im, "mtp.layers.0.mlp.experts.down_proj", "BF16", 2, "[4,64,16]", 4 * 64 * 16);
        }
        for (int e = 0; e < 4 && !packed; e++) {
            static const char *const names[] = {"gate_proj", "up_proj", "down_proj"};
            for (int k = 0; k < 3; k++) {
                char name[64];
                snprintf(name, sizeof name, "mtp.layers.0.mlp.experts.%d.%s.weight", e, names[k]);
                append(&im, name, "BF16", 2, k < 2 ? "[16,64]" : "[64,16]", 16 * 64);
            }
        }
        bind_changed(&im);
        assert_true(checkpoint.has_mtp);
        assert_int_equal(checkpoint.n_unknown, 0);
        assert_int_equal(tensors.n, 84 + (packed ? 19 : 17 + 3 * 4));
        uint64_t n = 0;
        for (size_t i = 0; i < tensors.n; i++)
            if (!strncmp(tensors.all[i].name, "mtp.", 4)) n += gdn_tensor_elements(&tensors.all[i]);
        assert_int_equal(gdn_mtp_parameters(&config), n);
        assert_int_equal(checkpoint.mtp.layer.moe.experts == NULL, packed);
        unbind();
    }
}

/* ---- shards -------------------------------------------------------------------------------------------------------- */

/* Tensors first .. last-1 as one shard, and their lines of the index. */
static char *write_shard(const gdn_tensors *all, size_t first, size_t last, const char *file, char *line)
{
    size_t         room = 1, n_data = 0;
    char          *header = malloc((last - first) * 256 + 2), *at = header;
    unsigned char *data;
    for (size_t i = first; i < last; i++) room += all->all[i].n_bytes;
    data = malloc(room);
    assert_true(header && data);
    for (size_t i = first; i < last; i++) {
        const gdn_tensor *t = &all->all[i];
        char              shape[64];
        gdn_shape_text(shape, sizeof shape, t->shape, t->n_dims);
        at += snprintf(at, 256, "%c\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                       i == first ? '{' : ',', t->name, gdn_tensor_type_name(t->type), shape, n_data,
                       n_data + t->n_bytes);
        memcpy(data + n_data, t->data, t->n_bytes);
        n_data += t->n_bytes;
        line += sprintf(line, "%s\"%s\":\"%s\"", i ? "," : "", t->name, file);
    }
    memcpy(at, "}", 2);
    store_image(file, header, data, n_data);
    free(header);
    free(data);
    return line;
}

static void shards(void **unused)
{
    (void)unused;
    gdn_tensors whole;
    ACCEPTED(gdn_model_config_load(&config, MOE, &err));
    ACCEPTED(gdn_tensors_open(&whole, MOE, &err));
    char *index = malloc(whole.n * 200 + 100), *at = index;
    assert_non_null(index);
    at += sprintf(at, "{\"metadata\":{},\"weight_map\":{");
    at = write_shard(&whole, 0, 30, "model-00001-of-00003.safetensors", at);
    at = write_shard(&whole, 30, 31, "model-00002-of-00003.safetensors", at);
    at = write_shard(&whole, 31, whole.n, "model-00003-of-00003.safetensors", at);
    strcpy(at, "}}");
    store_text("model.safetensors.index.json", index);
    forget("model.safetensors");
    assert_int_equal(bind(), GDN_OK);
    assert_int_equal(tensors.n, whole.n);
    for (size_t i = 0; i < whole.n; i++) {
        const gdn_tensor *a = &whole.all[i], *b = gdn_tensors_find(&tensors, a->name);
        assert_non_null(b);
        assert_int_equal(a->n_bytes, b->n_bytes);
        assert_memory_equal(a->data, b->data, a->n_bytes);
    }
    unbind();
    char *other = replaced(index, "\"model.layers.1.mlp.gate.weight\"", "\"model.layers.1.mlp.gate.wait\"");
    store_text("model.safetensors.index.json", other);
    assert_int_equal(gdn_tensors_open(&tensors, folder, NULL), GDN_BAD_FILE);
    free(other);
    config.hidden_size = 65;
    store_text("model.safetensors.index.json", index);
    REFUSED(bind(), GDN_BAD_FILE,
            "model-00001-of-00003.safetensors: tensor model.embed_tokens.weight has shape [256, 64]; config.json asks "
            "for [256, 65]");
    unbind();
    config.hidden_size = 64;
    config.n_layers = 4;
    REFUSED(bind(), GDN_BAD_FILE,
            "model.safetensors.index.json: tensor model.layers.3.input_layernorm.weight is missing; config.json asks "
            "for it with "
            "shape [64]");
    unbind();
    gdn_tensors_close(&whole);
    forget("model.safetensors.index.json");
    free(index);
}

/* ---- what is refused ----------------------------------------------------------------------------------------------- */

static const struct {
    const char *old, *new;
    gdn_status  status;
    const char *sentence;
} wrong[] = {
    {"\"model.layers.1.linear_attn.A_log\"", "\"model.layers.1.linear_attn.B_log\"", GDN_BAD_FILE,
     "model.safetensors: tensor model.layers.1.linear_attn.A_log is missing; config.json asks for it with shape [4]"},
    {"\"model.embed_tokens.weight\"", "\"embedding\"", GDN_BAD_FILE,
     "model.safetensors: tensor model.embed_tokens.weight is missing; config.json asks for it with shape [256, 64]"},
    {"\"model.layers.2.mlp.experts.3.up_proj.weight\"", "\"x\"", GDN_BAD_FILE,
     "model.safetensors: tensor model.layers.2.mlp.experts.3.up_proj.weight is missing; config.json asks for it with "
     "shape [16, 64]"},
    {"\"model.layers.0.mlp.shared_expert_gate.weight\":{\"dtype\":\"BF16\",\"shape\":[1,64]",
     "\"model.layers.0.mlp.shared_expert_gate.weight\":{\"dtype\":\"BF16\",\"shape\":[64]", GDN_BAD_FILE,
     "model.safetensors: tensor model.layers.0.mlp.shared_expert_gate.weight has shape [64]; config.json asks for [1, "
     "64]"},
    {"\"model.layers.2.self_attn.q_proj.weight\":{\"dtype\":\"BF16\",\"shape\":[128,64]",
     "\"model.layers.2.self_attn.q_proj.weight\":{\"dtype\":\"BF16\",\"shape\":[64,128]", GDN_BAD_FILE,
     "model.safetensors: tensor model.layers.2.self_attn.q_proj.weight has shape [64, 128]; config.json asks for [128, "
     "64]"},
    {"\"model.layers.0.linear_attn.out_proj.weight\":{\"dtype\":\"BF16\"",
     "\"model.layers.0.linear_attn.out_proj.weight\":{\"dtype\":\"I16\"", GDN_UNSUPPORTED,
     "model.safetensors: tensor model.layers.0.linear_attn.out_proj.weight has type I16; gdn reads BF16, F16 and F32, "
     "no quantised "
     "weights"},
    {"\"model.layers.0.linear_attn.out_proj.weight\":{\"dtype\":\"BF16\",\"shape\":[64,64]",
     "\"model.layers.0.linear_attn.out_proj.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[128,64]", GDN_UNSUPPORTED,
     "model.safetensors: tensor model.layers.0.linear_attn.out_proj.weight has type F8_E4M3; gdn reads BF16, F16 and "
     "F32, no "
     "quantised weights"},
    {"\"model.layers.0.linear_attn.A_log\":{\"dtype\":\"BF16\"",
     "\"model.layers.0.linear_attn.A_log\":{\"dtype\":\"U16\"", GDN_UNSUPPORTED,
     "model.safetensors: tensor model.layers.0.linear_attn.A_log has type U16; gdn reads BF16, F16 and F32, no "
     "quantised weights"},
    {"\"model.layers.0.linear_attn.conv1d.weight\":{\"dtype\":\"BF16\",\"shape\":[128,1,4]",
     "\"model.layers.0.linear_attn.conv1d.weight\":{\"dtype\":\"BF16\",\"shape\":[128,4,1]", GDN_UNSUPPORTED,
     "model.safetensors: tensor model.layers.0.linear_attn.conv1d.weight has the layout of an MLX conversion; gdn "
     "reads the Hugging "
     "Face checkpoint"},
    {"\"model.layers.0.mlp.gate.weight\"", "\"model.layers.0.mlp.gate.scales\"", GDN_UNSUPPORTED,
     "model.safetensors: tensor model.layers.0.mlp.gate.scales says that the checkpoint is quantised by MLX; use the "
     "original in BF16"},
    {"\"model.layers.0.mlp.gate.weight\"", "\"model.layers.0.mlp.gate.weight_scale_inv\"", GDN_UNSUPPORTED,
     "model.safetensors: tensor model.layers.0.mlp.gate.weight_scale_inv says that the checkpoint is quantised to FP8; "
     "use the "
     "original in BF16"},
    {"\"model.layers.0.mlp.experts.0.up_proj.weight\"", "\"model.layers.0.mlp.switch_mlp.up_proj.weight\"",
     GDN_UNSUPPORTED,
     "model.safetensors: tensor model.layers.0.mlp.switch_mlp.up_proj.weight says that the checkpoint is an MLX "
     "conversion; use the "
     "original in BF16"},
    {"\"model.embed_tokens.weight\"", "\"language_model.model.embed_tokens.weight\"", GDN_UNSUPPORTED,
     "model.safetensors: tensor language_model.model.embed_tokens.weight says that the checkpoint is an MLX "
     "conversion; use the "
     "original in BF16"},
};

static void refuses_wrong_tensors(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        image im = open_moe();
        change(&im, wrong[i].old, wrong[i].new);
        refuse_changed(&im, wrong[i].status, wrong[i].sentence);
    }
}

static void refuses_half_an_mtp_layer(void **unused)
{
    (void)unused;
    ACCEPTED(gdn_model_config_load(&config, DEMO, &err));
    image im = take_apart(DEMO);
    change(&im, "\"mtp.pre_fc_norm_hidden.weight\"", "\"mtp.pre_fc_norm.weight\"");
    refuse_changed(
        &im, GDN_BAD_FILE,
        "model.safetensors: tensor mtp.pre_fc_norm_hidden.weight is missing; config.json asks for it with shape [256]");
    im = take_apart(DEMO);
    change(&im, "\"mtp.fc.weight\"", "\"mtp.fq.weight\"");
    bind_changed(&im); /* no MTP layer then, and its other tensors are reported */
    assert_false(checkpoint.has_mtp);
    assert_int_equal(checkpoint.n_unknown, 15);
    unbind();
}

/* Where a tensor's data begin in the file that tiny-moe is. */
static size_t data_of(const image *im, const char *name)
{
    char   quoted[96];
    size_t from;
    snprintf(quoted, sizeof quoted, "\"%s\"", name);
    const char *at = strstr(im->header, quoted);
    assert_non_null(at);
    at = strstr(at, "\"data_offsets\":[");
    assert_int_equal(sscanf(at, "\"data_offsets\":[%zu", &from), 1);
    return from;
}

static void refuses_numbers_that_are_none(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        int         at;
        uint16_t    bits;
        const char *sentence;
    } bad[] = {
        {"model.norm.weight", 63, 0x7fc0,
         "model.safetensors: tensor model.norm.weight holds NaN at 63; every number must be finite"},
        {"model.layers.0.linear_attn.A_log", 0, 0x7f80,
         "model.safetensors: tensor model.layers.0.linear_attn.A_log holds infinity at 0; every number must be finite"},
        {"model.layers.1.linear_attn.dt_bias", 3, 0xff81,
         "model.safetensors: tensor model.layers.1.linear_attn.dt_bias holds NaN at 3; every number must be finite"},
        {"model.layers.1.linear_attn.norm.weight", 2, 0xff80,
         "model.safetensors: tensor model.layers.1.linear_attn.norm.weight holds infinity at 2; every number must be "
         "finite"},
        {"model.layers.2.self_attn.k_norm.weight", 31, 0xffff,
         "model.safetensors: tensor model.layers.2.self_attn.k_norm.weight holds NaN at 31; every number must be "
         "finite"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        image im = open_moe();
        memcpy(im.data + data_of(&im, bad[i].name) + 2 * bad[i].at, &bad[i].bits, 2);
        refuse_changed(&im, GDN_BAD_FILE, bad[i].sentence);
    }
}

/* Each tensor of each layout is needed: without any one of them nothing is bound. */
static void needs_every_tensor(void **unused)
{
    (void)unused;
    static const char *const models[] = {MOE, FUSED, "tests/checkpoints/tiny-next"};
    for (int m = 0; m < 3; m++) {
        gdn_tensors all;
        ACCEPTED(gdn_model_config_load(&config, models[m], &err));
        ACCEPTED(gdn_tensors_open(&all, models[m], &err));
        gdn_tensor *kept = malloc(all.n * sizeof *kept);
        assert_non_null(kept);
        for (size_t gone = 0; gone < all.n; gone++) {
            memcpy(kept, all.all, gone * sizeof *kept);
            memcpy(kept + gone, all.all + gone + 1, (all.n - gone - 1) * sizeof *kept);
            const gdn_tensors part = {.all = kept, .n = all.n - 1, .source = all.source};
            assert_int_equal(gdn_checkpoint_bind(&checkpoint, &config, &part, &err), GDN_BAD_FILE);
            assert_non_null(strstr(err.message, " is missing; config.json asks for it with shape ["));
        }
        free(kept);
        gdn_tensors_close(&all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_prefixes),
        cmocka_unit_test(other_tensors),
        cmocka_unit_test(ties),
        cmocka_unit_test(other_types),
        cmocka_unit_test(mtp_of_moe),
        cmocka_unit_test(shards),
        cmocka_unit_test(refuses_wrong_tensors),
        cmocka_unit_test(refuses_half_an_mtp_layer),
        cmocka_unit_test(refuses_numbers_that_are_none),
        cmocka_unit_test(needs_every_tensor),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
