/* cli/cli.h - what the verbs of `gdn` share. */
#ifndef GDN_CLI_CLI_H
#define GDN_CLI_CLI_H
#include "format/folder.h"
#include "text/tokenizer_nfc.h"

#define GDN_VERSION "0.1.0"

/* What the program exits with: results written, something failed, the command line is wrong, or Ctrl-C. */
enum { GDN_EXIT_OK = 0, GDN_EXIT_FAILED = 1, GDN_EXIT_USAGE = 2, GDN_EXIT_INTERRUPTED = 130 };

/* A verb gets the arguments after its name and returns an exit status.  It writes results to stdout, all else to stderr. */
typedef int gdn_verb_fn(int argc, char **argv);
gdn_verb_fn gdn_verb_bench, gdn_verb_chat, gdn_verb_info, gdn_verb_run, gdn_verb_tokenize;

typedef enum gdn_option_kind {
    GDN_OPTION_FLAG,     /* int, set to 1 */
    GDN_OPTION_TEXT,     /* const char * */
    GDN_OPTION_TEXTS,    /* gdn_texts: the option may come again */
    GDN_OPTION_INT,      /* int in [least, most] */
    GDN_OPTION_NUMBER,   /* double in [least, most] */
    GDN_OPTION_ARGUMENT, /* const char *, NULL at first: an argument that stands without a name */
} gdn_option_kind;

enum { GDN_TEXTS_MAX = 64 };
typedef struct gdn_texts {
    int         n;
    const char *text[GDN_TEXTS_MAX];
} gdn_texts;

typedef struct gdn_option {
    const char     *name; /* with its dashes; of an argument what the help calls it */
    gdn_option_kind kind;
    void           *value;
    double          least, most;
} gdn_option;

/* Read "--name value" and "--name=value" into the options' values.  Returns GDN_EXIT_OK, or says what is wrong and returns
 * GDN_EXIT_USAGE. */
int gdn_options_read(const char *verb, int argc, char **argv, const gdn_option *options, int n_options);

/* The folder of the model that the user means by `name`: that folder, or the one of that file; else an id of the Hugging Face
 * cache, or a part of just one id there (the newest snapshot); NULL: the demo model.  Returns GDN_EXIT_OK, or says what is
 * wrong and returns GDN_EXIT_FAILED. */
int gdn_cli_find_model(gdn_path *model, const char *verb, const char *name);

/* " (did you mean NAME?)" with that of n names, each the first member of an entry of `entry_bytes` bytes, which is nearest to
 * `word`; "" if none is near.  Valid until the next call. */
const char *gdn_cli_hint(const char *word, const void *names, int n, size_t entry_bytes);

/* Seconds since this process started to run; the first call, at the start of main, counts what came before as the processor
 * time that it took. */
double gdn_cli_seconds(void);

/* Append all bytes of a file, of standard input if it is NULL or "-".  Returns GDN_EXIT_OK, or says what is wrong and returns
 * GDN_EXIT_FAILED. */
int gdn_cli_read(gdn_text *text, const char *verb, const char *file);

/* Write "gdn VERB: sentence" to stderr ("gdn: sentence" when verb is NULL) and return `status`. */
__attribute__((format(printf, 3, 4))) int gdn_cli_fail(int status, const char *verb, const char *format, ...);

/* The commit that the program was built from, or "unknown". */
const char *gdn_cli_commit(void);

/* Flush stdout.  GDN_EXIT_OK, or GDN_EXIT_FAILED with a sentence if not everything could be written; it is said once, and
 * not at all when the reader has gone away. */
int gdn_cli_flush(void);

#endif
