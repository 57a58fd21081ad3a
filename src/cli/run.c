/* gdn run: a prompt, and the text that the model makes of it. */
#include "cli/cli.h"
#include "gdn/gdn.h"
#include "text/tokenizer_nfc.h"
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct options {
    const char *model, *text, *file, *stop, *level;
    int         chat, think, no_think, most, threads, context, top_k, seed, quiet, help;
    double      temperature, top_p, min_p, repeat;
} options;

static int help(void)
{
    printf(
        "gdn run - answer a prompt\n\n"
        "usage: gdn run [MODEL] [-p TEXT | -f FILE] [options]      without -p and -f the prompt is standard input\n\n"
        "  MODEL              folder, Hugging Face cache id or a part of one ('gdn info --help'); else the demo model\n"
        "  -p TEXT            the prompt; it is continued as it stands\n"
        "  -f FILE            the prompt is the file's text\n"
        "  --chat             the prompt is a user's message, or a JSON list of messages, and is answered\n"
        "  --think, --no-think    with --chat: ask the template for thinking, or for none (its own default otherwise)\n"
        "  -n N               most tokens to make, 1..1000000 (512)\n"
        "  --temperature T    0 is greedy; default: what the model's makers say, as for the next four\n"
        "  --top-k K   --top-p P   --min-p P   --repeat R\n"
        "  --seed N           same seed, same text on every machine (0)\n"
        "  --stop TEXT        end before this text\n"
        "  --context N        most tokens of prompt and answer (what the model was made for, at most 32768)\n"
        "  --threads N        1..256 (what this process may use)\n"
        "  --cpu LEVEL        ref, avx2, avx512, amx or neon: the same text, at another speed\n"
        "  --quiet            nothing on stderr but errors\n\n"
        "examples\n"
        "  gdn run --chat -p 'What is 12 + 30?'\n"
        "  gdn run -p 'Once upon a time' -n 100 --temperature 0.8 --seed 7\n"
        "  gdn run Qwen/Qwen3.5-0.8B --chat -f question.txt\n");
    return GDN_EXIT_OK;
}

/* ---- the generation ---------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

typedef struct generation {
    const options *o;
    gdn_engine    *engine;
    gdn_sequence  *sequence;
    gdn_sampler   *sampler;
    gdn_stops     *stops;  /* NULL: none */
    gdn_output    *output; /* of a chat; NULL: text is printed as it is */
    gdn_decoder    decoder;
    char          *piece, *shown; /* text of a token; what of it may be shown */
    int            n_prompt, n_made, ended, dim, failed;
    double         prompt_seconds, made_seconds;
} generation;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Answers go to stdout; thoughts to a terminal's stderr, dim. */
static void show(void *arg, const gdn_output_event *event)
{
    generation *g = arg;
    if (event->kind == GDN_OUTPUT_CONTENT) {
        fwrite(event->text, 1, event->n_bytes, stdout);
        g->failed |= gdn_cli_flush();
    } else if (event->kind == GDN_OUTPUT_REASONING && g->dim) {
        fprintf(stderr, "\033[2m%.*s\033[0m", (int)event->n_bytes, event->text);
    }
}

static int give(generation *g, const char *text, size_t n)
{
    gdn_error err;
    if (!n) return GDN_EXIT_OK;
    if (g->output) {
        if (gdn_output_feed(g->output, text, n, &err)) return gdn_cli_fail(GDN_EXIT_FAILED, "run", "%s", err.message);
    } else {
        fwrite(text, 1, n, stdout);
        g->failed |= gdn_cli_flush();
    }
    return g->failed;
}

/* Text that tokens have completed, through the stop strings. */
static int pass(generation *g, const char *text, size_t n)
{
    if (!g->stops) return give(g, text, n);
    const size_t n_shown = gdn_stops_put(g->stops, text, n, g->shown);
    g->ended = gdn_stops_matched(g->stops) >= 0;
    return give(g, g->shown, n_shown);
}

static int finish(generation *g)
{
    gdn_error err;
    int       status = GDN_EXIT_OK;
    if (!g->ended) {
        status = pass(g, g->piece, gdn_decoder_end(&g->decoder, g->piece));
        if (!status && g->stops && !g->ended) status = give(g, g->shown, gdn_stops_end(g->stops, g->shown));
    }
    if (!status && g->output && gdn_output_end(g->output, &err))
        status = gdn_cli_fail(GDN_EXIT_FAILED, "run", "%s", err.message);
    return status;
}

static int make_text(generation *g)
{
    gdn_error    err;
    const double start = seconds();
    int          status = GDN_EXIT_OK;
    while (!status && !g->ended && !interrupted && g->n_made < g->o->most) {
        const int32_t token = gdn_sampler_pick(g->sampler, gdn_sequence_logits(g->sequence), NULL);
        gdn_sampler_accept(g->sampler, token, true);
        g->n_made++;
        if (gdn_engine_is_stop(g->engine, token)) break;
        status = pass(g, g->piece, gdn_decoder_put(&g->decoder, token, g->piece));
        if (status || g->ended || g->n_made == g->o->most) break;
        if (gdn_sequence_length(g->sequence) == gdn_engine_max_tokens(g->engine)) {
            if (!g->o->quiet)
                fprintf(stderr, "\ngdn run: the context of %d tokens is full; --context gives more\n",
                        gdn_engine_max_tokens(g->engine));
            break;
        }
        if (gdn_sequence_push(g->sequence, token, &err))
            status = gdn_cli_fail(GDN_EXIT_FAILED, "run", "%s", err.message);
    }
    if (!status) status = finish(g);
    g->made_seconds = seconds() - start;
    return status;
}

static int show_progress(void *arg, int done, int total)
{
    const generation *g = arg;
    if (g->dim && total > 2048)
        fprintf(stderr, "\rprompt %d of %d tokens%s", done, total, done == total ? "\r\033[K" : "");
    return interrupted;
}

/* ---- from the command line to a prompt ---------------------------------------------------------------------------- */

static int read_prompt(const options *o, gdn_text *text)
{
    char   chunk[4096];
    size_t n;
    if (o->text)
        return gdn_text_append(text, o->text, strlen(o->text))
                   ? GDN_EXIT_OK
                   : gdn_cli_fail(GDN_EXIT_FAILED, "run", "no memory for the prompt");
    FILE *f = o->file ? fopen(o->file, "rb") : stdin;
    if (!f) return gdn_cli_fail(GDN_EXIT_FAILED, "run", "%s cannot be opened: %s", o->file, strerror(errno));
    int status = GDN_EXIT_OK;
    while (!status && (n = fread(chunk, 1, sizeof chunk, f)))
        if (!gdn_text_append(text, chunk, n)) status = gdn_cli_fail(GDN_EXIT_FAILED, "run", "no memory for the prompt");
    if (!status && ferror(f))
        status = gdn_cli_fail(GDN_EXIT_FAILED, "run", "the prompt cannot be read: %s", strerror(errno));
    if (f != stdin) fclose(f);
    return status;
}

/* The variables of the chat template: messages from JSON, or one message of the user. */
static json_t *chat_vars(const options *o, const gdn_text *text)
{
    json_t *messages = json_loadb(text->bytes ? text->bytes : "", text->n, 0, NULL);
    if (!json_is_array(messages)) {
        json_decref(messages);
        messages = json_pack("[{s:s,s:s%}]", "role", "user", "content", text->bytes ? text->bytes : "", text->n);
    }
    json_t *vars = json_pack("{s:o,s:b}", "messages", messages, "add_generation_prompt", 1);
    if (vars && (o->think || o->no_think)) json_object_set_new(vars, "enable_thinking", json_boolean(o->think));
    return vars;
}

static int encode_prompt(generation *g, const gdn_text *text, gdn_ids *ids, int *thinks)
{
    gdn_error err;
    *thinks = 0;
    if (!g->o->chat) {
        const gdn_span span = {text->bytes, text->n, false};
        if (gdn_tokenizer_encode(gdn_engine_tokenizer(g->engine), &span, 1, ids, &err))
            return gdn_cli_fail(GDN_EXIT_FAILED, "run", "%s", err.message);
    } else {
        const time_t     now = time(NULL);
        struct tm        local;
        json_t          *vars = chat_vars(g->o, text);
        char            *json = vars ? json_dumps(vars, 0) : NULL;
        const gdn_status s = json
                                 ? gdn_engine_encode_chat(g->engine, json, localtime_r(&now, &local), ids, thinks, &err)
                                 : GDN_NO_MEMORY;
        json_decref(vars);
        free(json);
        if (!json)
            return gdn_cli_fail(GDN_EXIT_FAILED, "run", "the message is not UTF-8, or there is no memory for it");
        if (s) return gdn_cli_fail(GDN_EXIT_FAILED, "run", "%s", err.message);
    }
    if (ids->n == 0)
        return gdn_cli_fail(GDN_EXIT_USAGE, "run", "the prompt is empty; give one with -p, -f or standard input");
    if (ids->n >= (size_t)gdn_engine_max_tokens(g->engine))
        return gdn_cli_fail(GDN_EXIT_FAILED, "run",
                            "the prompt has %zu tokens and the context has room for %d; shorten it, or raise --context",
                            ids->n, gdn_engine_max_tokens(g->engine));
    return GDN_EXIT_OK;
}

static int open_parts(generation *g, int thinks)
{
    const options            *o = g->o;
    const gdn_sampler_options d = gdn_engine_default_sampling(g->engine);
    gdn_error                 err;
    const gdn_sampler_options sampling = {.temperature = o->temperature < 0 ? d.temperature : o->temperature,
                                          .top_k = o->top_k < 0 ? d.top_k : o->top_k,
                                          .top_p = o->top_p < 0 ? d.top_p : o->top_p,
                                          .min_p = o->min_p < 0 ? d.min_p : o->min_p,
                                          .repetition_penalty = o->repeat < 0 ? d.repetition_penalty : o->repeat,
                                          .seed = (uint64_t)o->seed};
    gdn_status s = gdn_sampler_open(&g->sampler, gdn_engine_vocab_size(g->engine), gdn_engine_n_usable(g->engine),
                                    &sampling, &err);
    if (!s && o->stop) s = gdn_stops_open(&g->stops, &(gdn_stop){o->stop, strlen(o->stop)}, 1, &err);
    if (!s && o->chat) s = gdn_output_open(&g->output, NULL, thinks, show, g, &err);
    if (!s) s = gdn_sequence_open(&g->sequence, g->engine, &err);
    if (s) return gdn_cli_fail(s == GDN_BAD_ARGUMENT ? GDN_EXIT_USAGE : GDN_EXIT_FAILED, "run", "%s", err.message);
    const size_t room = gdn_decoder_room(gdn_engine_tokenizer(g->engine)) + 4;
    g->decoder = (gdn_decoder){.tokenizer = gdn_engine_tokenizer(g->engine), .skip_special = true};
    g->piece = malloc(room);
    g->shown = malloc(room + (o->stop ? strlen(o->stop) : 0));
    if (!g->piece || !g->shown) return gdn_cli_fail(GDN_EXIT_FAILED, "run", "no memory");
    return GDN_EXIT_OK;
}

static int generate(generation *g)
{
    gdn_text  text = {0};
    gdn_ids   ids = {0};
    gdn_error err;
    int       thinks, status = read_prompt(g->o, &text);
    if (!status) status = encode_prompt(g, &text, &ids, &thinks);
    if (!status) status = open_parts(g, thinks);
    if (!status) {
        const double start = seconds();
        for (size_t i = 0; i < ids.n; i++) gdn_sampler_accept(g->sampler, ids.id[i], false);
        if (gdn_sequence_set(g->sequence, ids.id, (int)ids.n, show_progress, g, &g->n_prompt, &err) && !interrupted)
            status = gdn_cli_fail(GDN_EXIT_FAILED, "run", "%s", err.message);
        g->prompt_seconds = seconds() - start;
    }
    if (!status && !interrupted) status = make_text(g);
    if (!status && !interrupted) putchar('\n');
    const int flushed = gdn_cli_flush();
    if (!status) status = flushed;
    if (!status && !g->o->quiet && g->made_seconds > 0)
        fprintf(stderr, "prompt %d tokens, %.0f a second; answer %d tokens, %.0f a second; %s, %d threads\n",
                g->n_prompt, g->n_prompt / g->prompt_seconds, g->n_made, g->n_made / g->made_seconds,
                gdn_compute_level(gdn_engine_compute(g->engine)), gdn_compute_threads(gdn_engine_compute(g->engine)));
    free(ids.id);
    free(text.bytes);
    return interrupted ? 130 : status;
}

int gdn_verb_run(int argc, char **argv)
{
    options          o = {.most = 512, .temperature = -1, .top_p = -1, .min_p = -1, .repeat = -1, .top_k = -1};
    const gdn_option table[] = {
        {"MODEL", GDN_OPTION_ARGUMENT, &o.model, 0, 0},
        {"-p", GDN_OPTION_TEXT, &o.text, 0, 0},
        {"-f", GDN_OPTION_TEXT, &o.file, 0, 0},
        {"--chat", GDN_OPTION_FLAG, &o.chat, 0, 0},
        {"--think", GDN_OPTION_FLAG, &o.think, 0, 0},
        {"--no-think", GDN_OPTION_FLAG, &o.no_think, 0, 0},
        {"-n", GDN_OPTION_INT, &o.most, 1, 1000000},
        {"--temperature", GDN_OPTION_NUMBER, &o.temperature, 0, 100},
        {"--top-k", GDN_OPTION_INT, &o.top_k, 0, 1 << 22},
        {"--top-p", GDN_OPTION_NUMBER, &o.top_p, 0, 1},
        {"--min-p", GDN_OPTION_NUMBER, &o.min_p, 0, 1},
        {"--repeat", GDN_OPTION_NUMBER, &o.repeat, 0.01, 100},
        {"--seed", GDN_OPTION_INT, &o.seed, 0, 2147483647},
        {"--stop", GDN_OPTION_TEXT, &o.stop, 0, 0},
        {"--context", GDN_OPTION_INT, &o.context, 1, 1 << 24},
        {"--threads", GDN_OPTION_INT, &o.threads, 1, 256},
        {"--cpu", GDN_OPTION_TEXT, &o.level, 0, 0},
        {"--quiet", GDN_OPTION_FLAG, &o.quiet, 0, 0},
        {"--help", GDN_OPTION_FLAG, &o.help, 0, 0},
    };
    int status = gdn_options_read("run", argc, argv, table, sizeof table / sizeof *table);
    if (status) return status;
    if (o.help) return help();
    if (o.text && o.file) return gdn_cli_fail(GDN_EXIT_USAGE, "run", "-p and -f both give a prompt; use one of them");
    if (o.think && o.no_think)
        return gdn_cli_fail(GDN_EXIT_USAGE, "run", "--think and --no-think contradict each other; use one of them");
    gdn_path model;
    if ((status = gdn_cli_find_model(&model, "run", o.model)) != GDN_EXIT_OK) return status;

    const gdn_engine_options opening = {.model = model.text,
                                        .level = o.level,
                                        .n_threads = o.threads,
                                        .n_sequences = 1,
                                        .max_tokens = o.context,
                                        .kv_type = GDN_F32};
    generation               g = {.o = &o, .dim = !o.quiet && isatty(STDERR_FILENO)};
    gdn_error                err;
    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    if (gdn_engine_open(&g.engine, &opening, &err)) return gdn_cli_fail(GDN_EXIT_FAILED, "run", "%s", err.message);
    status = generate(&g);
    free(g.piece);
    free(g.shown);
    gdn_sequence_close(g.sequence);
    gdn_output_close(g.output);
    gdn_stops_close(g.stops);
    gdn_sampler_close(g.sampler);
    gdn_engine_close(g.engine);
    return status;
}
