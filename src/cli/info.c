#include "cli/info.h"
#include <stdio.h>
#include <string.h>

static int help(void)
{
    printf("gdn info - what a model is, and what it needs of this machine\n\n"
           "usage: gdn info [MODEL] [--json]\n\n"
           "  MODEL    a folder with config.json and .safetensors files, or\n"
           "           an id in the Hugging Face cache ($HF_HOME or ~/.cache/huggingface; the newest snapshot), or\n"
           "           a part of one id there, or\n"
           "           nothing: the demo model\n"
           "  --json   for programs: bytes and counts as numbers\n\n"
           "The files are mapped and checked, the weights are not read.  The memory plan counts\n"
           "  weights    every parameter in bf16\n"
           "  state      of one sequence in the linear layers, whatever its length: conv tails in bf16, S in f32\n"
           "  KV         keys and values of a token in the full attention layers, bf16\n"
           "  fits       tokens whose KV has room beside the weights and one state in what the system has available\n\n"
           "examples\n"
           "  gdn info\n"
           "  gdn info Qwen/Qwen3.5-0.8B\n"
           "  gdn info 0.8B --json | jq .memory\n");
    return GDN_EXIT_OK;
}

int gdn_info_count(const gdn_info *info, gdn_mixer mixer)
{
    int n = 0;
    for (int l = 0; l < info->config.n_layers; l++) n += info->config.layers[l].mixer == mixer;
    return n;
}

size_t gdn_info_tensors(const gdn_info *info, gdn_tensor_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < info->tensors.n; i++) n += info->tensors.all[i].type == type;
    return n;
}

/* ---- the memory plan ----------------------------------------------------------------------------------------------- */

static uint64_t available_bytes(void)
{
    unsigned long long kib = 0;
    char               line[256];
    FILE              *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) break;
    }
    if (f) fclose(f);
    return 1024 * (uint64_t)kib;
}

/* The ranges of a config keep every product below 2^63. */
static void make_plan(gdn_info *info)
{
    enum { BF16_BYTES = 2, F32_BYTES = 4 };
    const gdn_model_config *c = &info->config;
    gdn_plan               *p = &info->plan;

    const uint64_t tail = BF16_BYTES * (uint64_t)(c->n_taps - 1) * (uint64_t)gdn_config_channels(c);
    const uint64_t S = F32_BYTES * (uint64_t)c->n_value_heads * (uint64_t)c->value_dim * (uint64_t)c->key_dim;
    const uint64_t kv = 2 * BF16_BYTES * (uint64_t)c->n_kv_heads * (uint64_t)c->head_dim;
    p->weights = BF16_BYTES * info->parameters;
    p->mtp_weights = BF16_BYTES * info->mtp_parameters;
    p->state = (tail + S) * (uint64_t)gdn_info_count(info, GDN_MIXER_LINEAR);
    p->kv_per_token = kv * (uint64_t)gdn_info_count(info, GDN_MIXER_FULL);
    p->mtp_kv_per_token = info->checkpoint.has_mtp ? kv : 0;

    const uint64_t fixed = p->weights + p->mtp_weights + p->state, token = p->kv_per_token + p->mtp_kv_per_token;
    p->available = available_bytes();
    p->tokens = p->available > fixed && token ? (p->available - fixed) / token : 0;
}

/* ---- opening ------------------------------------------------------------------------------------------------------- */

static gdn_status open_tokenizer(gdn_info *info, gdn_error *err)
{
    gdn_path         path;
    const gdn_status status = gdn_model_path(&path, info->model.text, "tokenizer.json", err);
    if (status || !gdn_path_exists(path.text)) return status;
    return gdn_tokenizer_open(&info->tokenizer, path.text, err);
}

static gdn_status info_open(gdn_info *info, gdn_error *err)
{
    const char *model = info->model.text;
    gdn_status  status = gdn_model_config_load(&info->config, model, err);
    if (!status) status = gdn_generation_config_load(&info->generation, model, &info->config, err);
    if (!status) status = gdn_tensors_open(&info->tensors, model, err);
    if (!status) status = gdn_checkpoint_bind(&info->checkpoint, &info->config, &info->tensors, err);
    if (!status) status = open_tokenizer(info, err);
    if (status) return status;
    info->parameters = gdn_text_parameters(&info->config, info->checkpoint.tied);
    if (info->checkpoint.has_mtp) info->mtp_parameters = gdn_mtp_parameters(&info->config);
    make_plan(info);
    return GDN_OK;
}

static void info_close(gdn_info *info)
{
    gdn_tokenizer_close(info->tokenizer);
    gdn_checkpoint_close(&info->checkpoint);
    gdn_tensors_close(&info->tensors);
}

int gdn_verb_info(int argc, char **argv)
{
    const char      *name = NULL;
    int              json = 0, want_help = 0;
    const gdn_option options[] = {
        {"MODEL", GDN_OPTION_ARGUMENT, &name, 0, 0},
        {"--json", GDN_OPTION_FLAG, &json, 0, 0},
        {"--help", GDN_OPTION_FLAG, &want_help, 0, 0},
    };
    gdn_info  info = {.tokenizer = NULL};
    gdn_error err;
    int       status = gdn_options_read("info", argc, argv, options, sizeof options / sizeof *options);
    if (status) return status;
    if (want_help) return help();
    if ((status = gdn_cli_find_model(&info.model, "info", name))) return status;
    if (info_open(&info, &err)) status = gdn_cli_fail(GDN_EXIT_FAILED, "info", "%s", err.message);
    else if (json) status = gdn_info_print_json(&info);
    else gdn_info_print(&info);
    info_close(&info);
    return status;
}
