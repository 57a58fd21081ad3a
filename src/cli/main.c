/* gdn - the command line.  A verb is a line of the table below. */
#include "cli/cli.h"
#include "gdn/delta.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#ifndef GDN_COMMIT
#define GDN_COMMIT "unknown"
#endif

const char *gdn_cli_commit(void) { return GDN_COMMIT; }

static const struct verb {
    const char  *name, *summary;
    gdn_verb_fn *run;
} verbs[] = {
    {"run", "answer a prompt", gdn_verb_run},
    {"chat", "talk with a model", gdn_verb_chat},
    {"info", "what a model is, and what it needs of this machine", gdn_verb_info},
    {"tokenize", "text to token ids, and back", gdn_verb_tokenize},
    {"bench", "measure a model, or the operations, on this machine", gdn_verb_bench},
};
enum { N_VERBS = sizeof verbs / sizeof *verbs };

static int help(void)
{
    printf("gdn - Gated DeltaNet inference on CPUs\n\n"
           "usage: gdn VERB [options]      gdn VERB --help      gdn --help | --version\n\n"
           "verbs\n");
    for (int i = 0; i < N_VERBS; i++) printf("  %-10s %s\n", verbs[i].name, verbs[i].summary);
    printf("\n"
           "A MODEL is a folder, an id of the Hugging Face cache or a part of just one id\n"
           "there; without it, the demo model.\n"
           "\n"
           "  gdn chat                                     talk with the demo model\n"
           "  gdn run Qwen/Qwen3.5-0.8B --chat -p 'Hi!'    one that Hugging Face's tools got\n"
           "  gdn info 0.8B                                its shapes, parameters, memory\n"
           "  gdn tokenize -p 'Hello, world!'              3360 11 3647 0\n"
           "  gdn bench --shape 0.8B                       its speed without a checkpoint\n"
           "  gdn bench --ops                              every operation, half a minute\n"
           "\n"
           "Results go to standard output, messages to standard error.\n"
           "exit status: 0 done, 1 failed, 2 the command line is wrong, 130 Ctrl-C\n");
    return GDN_EXIT_OK;
}

static int version(void)
{
    struct utsname name;
    gdn_compute   *compute;
    gdn_error      err;
    if (gdn_compute_open(&compute, NULL, 1, &err)) return gdn_cli_fail(GDN_EXIT_FAILED, NULL, "%s", err.message);
    printf("gdn %s (commit %s), CPU level %s, %s, backends: CPU\n", GDN_VERSION, GDN_COMMIT, gdn_compute_level(compute),
           uname(&name) ? "unknown architecture" : name.machine);
    gdn_compute_close(compute);
    return GDN_EXIT_OK;
}

static int run(int argc, char **argv)
{
    static const char *const options[] = {"--help", "--version"};
    const char              *word = argc > 1 ? argv[1] : NULL;
    if (!word) return gdn_cli_fail(GDN_EXIT_USAGE, NULL, "no verb given; see 'gdn --help'");
    int is_help = !strcmp(word, "--help") || !strcmp(word, "-h");
    if (is_help || !strcmp(word, "--version")) {
        if (argc > 2) return gdn_cli_fail(GDN_EXIT_USAGE, NULL, "unexpected argument '%s' after %s", argv[2], word);
        return is_help ? help() : version();
    }
    for (int i = 0; i < N_VERBS; i++) {
        if (!strcmp(word, verbs[i].name)) return verbs[i].run(argc - 2, argv + 2);
    }
    return gdn_cli_fail(GDN_EXIT_USAGE, NULL, "unknown %s '%s'%s; see 'gdn --help'", *word == '-' ? "option" : "verb",
                        word,
                        *word == '-' ? gdn_cli_hint(word, options, 2, sizeof *options)
                                     : gdn_cli_hint(word, verbs, N_VERBS, sizeof *verbs));
}

int main(int argc, char **argv)
{
    gdn_cli_seconds();
    /* Otherwise the next file opened would become standard output. */
    if (fcntl(1, F_GETFD) < 0)
        return gdn_cli_fail(GDN_EXIT_FAILED, NULL, "standard output is closed; nothing to write results to");
    int status = run(argc, argv);
    int written = gdn_cli_flush();
    return status ? status : written;
}
