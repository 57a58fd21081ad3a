#include "cli/info.h"
#include <stdio.h>
#include <string.h>

static int help(void)
{
    printf("gdn info - what a model is, and what it needs of this machine\n"
           "\n"
           "usage: gdn info [MODEL] [--json]\n"
           "\n"
           "  MODEL    a folder with config.json and .safetensors files, or\n"
           "           an id in the Hugging Face cache (that of $HF_HUB_CACHE, $HF_HOME or\n"
           "           ~/.cache/huggingface; the snapshot of refs/main, else the newest), or\n"
           "           a part of one id there, or\n"
           "           nothing: the demo model\n"
           "  --json   for programs: bytes and counts as numbers\n"
           "\n"
           "The files are mapped and checked, the weights are not read.  The memory plan:\n"
           "  weights  as they are in memory: matrices in bf16, what is small in f32\n"
           "  state    of one sequence in the linear layers, whatever its length, in f32\n"
           "  KV       keys and values of a token in the full attention layers, bf16\n"
           "  fits     tokens whose KV has room beside the weights and one state in what the\n"
           "           system has available\n"
           "\n"
           "  gdn info\n"
           "  gdn info Qwen/Qwen3.5-0.8B\n"
           "  gdn info 0.8B --json | jq .memory\n");
    return GDN_EXIT_OK;
}

size_t gdn_info_tensors(const gdn_info *info, gdn_tensor_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < info->tensors.n; i++) n += info->tensors.all[i].type == type;
    return n;
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
    info->plan = gdn_plan_of(&info->config, info->checkpoint.tied, info->checkpoint.has_mtp);
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
