#include "cli/cli.h"
#include "cli/json.h"
#include "text/tokenizer.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct options {
    const char *model, *text, *file, *decode;
    int         special, json, help;
} options;

static int help(void)
{
    printf("gdn tokenize - text to token ids, and back\n"
           "\n"
           "usage: gdn tokenize [MODEL] [-p TEXT | -f FILE] [options]   else from stdin\n"
           "       gdn tokenize [MODEL] --decode IDS\n"
           "\n"
           "  MODEL          see 'gdn info --help'\n"
           "  -p TEXT        the text (-p=TEXT if it starts with two dashes)\n"
           "  -f FILE        the text is the file's bytes; - is standard input\n"
           "  --special      what is written like a control token, as <|im_end|>, is one\n"
           "  --decode IDS   the text of these ids, separated by spaces or commas\n"
           "  --json         a list of {\"id\", \"piece\"}, with \"bytes\" where a piece is not\n"
           "                 whole UTF-8; of --decode a string\n"
           "\n"
           "  gdn tokenize -p 'Hello, world!'              3360 11 3647 0\n"
           "  gdn tokenize -f README.md | wc -w            how many tokens a file has\n"
           "  gdn tokenize --decode '3360 11 3647 0'       Hello, world!\n"
           "  gdn tokenize Qwen3.5-0.8B --special --json -p '<|im_start|>user'\n");
    return GDN_EXIT_OK;
}

/* ---- input --------------------------------------------------------------------------------------------------------- */

static int read_text(const options *o, gdn_text *text)
{
    if (o->text) {
        if (gdn_text_append(text, o->text, strlen(o->text))) return GDN_EXIT_OK;
        return gdn_cli_fail(GDN_EXIT_FAILED, "tokenize", "no memory for the text");
    }
    return gdn_cli_read(text, "tokenize", o->file);
}

/* The ids of "1 2, 3", each a token. */
static int read_ids(const char *text, const gdn_tokenizer *tokenizer, gdn_ids *ids)
{
    static const char between[] = " ,\t\r\n";
    ids->id = malloc((strlen(text) / 2 + 1) * sizeof *ids->id);
    if (!ids->id) return gdn_cli_fail(GDN_EXIT_FAILED, "tokenize", "no memory for the ids");
    for (const char *at = text + strspn(text, between); *at; at += strspn(at, between)) {
        const int n = (int)strcspn(at, between);
        size_t    n_bytes;
        if (strspn(at, "0123456789") != (size_t)n)
            return gdn_cli_fail(GDN_EXIT_USAGE, "tokenize",
                                "--decode takes whole numbers separated by spaces or commas, not '%.*s'", n, at);
        const long id = n <= 9 ? strtol(at, NULL, 10) : INT32_MAX;
        if (!gdn_tokenizer_bytes(tokenizer, (int32_t)id, &n_bytes))
            return gdn_cli_fail(GDN_EXIT_USAGE, "tokenize",
                                "--decode: %.*s is no token of this model, whose ids end at %d", n, at,
                                (int)gdn_tokenizer_size(tokenizer) - 1);
        ids->id[ids->n++] = (int32_t)id;
        at += n;
    }
    return GDN_EXIT_OK;
}

/* ---- output -------------------------------------------------------------------------------------------------------- */

static int encode(const options *o, const gdn_tokenizer *tokenizer)
{
    gdn_text  text = {0};
    gdn_ids   ids = {0};
    gdn_error err;
    int       status = read_text(o, &text);
    gdn_span  span = {text.bytes, text.n, o->special};
    if (!status && gdn_tokenizer_encode(tokenizer, &span, 1, &ids, &err))
        status = gdn_cli_fail(GDN_EXIT_FAILED, "tokenize", "%s", err.message);
    if (!status && o->json) {
        printf("[");
        for (size_t i = 0; i < ids.n && !status; i++) {
            printf("%s", i ? " " : "");
            status = gdn_json_print("tokenize", gdn_json_piece(tokenizer, ids.id[i]), i + 1 < ids.n ? ",\n" : "");
        }
        if (!status) printf("]\n");
    } else if (!status) {
        for (size_t i = 0; i < ids.n; i++) printf("%s%d", i ? " " : "", (int)ids.id[i]);
        printf("\n");
    }
    free(ids.id);
    free(text.bytes);
    return status;
}

static int decode(const options *o, const gdn_tokenizer *tokenizer)
{
    gdn_ids   ids = {0};
    char     *text = NULL;
    size_t    n = 0;
    gdn_error err;
    int       status = read_ids(o->decode, tokenizer, &ids);
    if (!status && gdn_decode(tokenizer, ids.id, ids.n, false, &text, &n, &err))
        status = gdn_cli_fail(GDN_EXIT_FAILED, "tokenize", "%s", err.message);
    if (!status && o->json) status = gdn_json_print("tokenize", json_stringn(text, n), "\n");
    else if (!status) fwrite(text, 1, n, stdout);
    free(text);
    free(ids.id);
    return status;
}

static int check(const options *o)
{
    if (o->text && o->file)
        return gdn_cli_fail(GDN_EXIT_USAGE, "tokenize", "-p and -f are two texts; give one of them");
    if (o->decode && (o->text || o->file || o->special))
        return gdn_cli_fail(GDN_EXIT_USAGE, "tokenize", "--decode takes ids instead of a text; leave out %s",
                            o->text   ? "-p"
                            : o->file ? "-f"
                                      : "--special");
    return GDN_EXIT_OK;
}

int gdn_verb_tokenize(int argc, char **argv)
{
    options          o = {.model = NULL};
    const gdn_option all[] = {
        {"MODEL", GDN_OPTION_ARGUMENT, &o.model, 0, 0}, {"-p", GDN_OPTION_TEXT, &o.text, 0, 0},
        {"-f", GDN_OPTION_TEXT, &o.file, 0, 0},         {"--special", GDN_OPTION_FLAG, &o.special, 0, 0},
        {"--json", GDN_OPTION_FLAG, &o.json, 0, 0},     {"--decode", GDN_OPTION_TEXT, &o.decode, 0, 0},
        {"--help", GDN_OPTION_FLAG, &o.help, 0, 0},
    };
    gdn_path       model, path;
    gdn_tokenizer *tokenizer;
    gdn_error      err;
    int            status = gdn_options_read("tokenize", argc, argv, all, sizeof all / sizeof *all);
    if (status) return status;
    if (o.help) return help();
    if ((status = check(&o)) || (status = gdn_cli_find_model(&model, "tokenize", o.model))) return status;
    if (gdn_model_path(&path, model.text, "tokenizer.json", &err) || gdn_tokenizer_open(&tokenizer, path.text, &err))
        return gdn_cli_fail(GDN_EXIT_FAILED, "tokenize", "%s", err.message);
    status = o.decode ? decode(&o, tokenizer) : encode(&o, tokenizer);
    gdn_tokenizer_close(tokenizer);
    return status;
}
