/* cli/cli.h - what the verbs of `gdn` share. */
#ifndef GDN_CLI_CLI_H
#define GDN_CLI_CLI_H
#include "format/folder.h"

#define GDN_VERSION "0.1.0"

/* What the program exits with: results written, something failed, or the command line is wrong. */
enum { GDN_EXIT_OK = 0, GDN_EXIT_FAILED = 1, GDN_EXIT_USAGE = 2 };

/* A verb gets the arguments after its name and returns an exit status.  It writes results to stdout, all else to stderr. */
typedef int gdn_verb_fn(int argc, char **argv);
gdn_verb_fn gdn_verb_bench, gdn_verb_info, gdn_verb_run, gdn_verb_tokenize;

typedef enum gdn_option_kind {
    GDN_OPTION_FLAG,     /* int, set to 1 */
    GDN_OPTION_TEXT,     /* const char * */
    GDN_OPTION_INT,      /* int in [least, most] */
    GDN_OPTION_NUMBER,   /* double in [least, most] */
    GDN_OPTION_ARGUMENT, /* const char *, NULL at first: an argument that stands without a name */
} gdn_option_kind;

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

/* Write "gdn VERB: sentence" to stderr ("gdn: sentence" when verb is NULL) and return `status`. */
__attribute__((format(printf, 3, 4))) int gdn_cli_fail(int status, const char *verb, const char *format, ...);

/* The commit that the program was built from, or "unknown". */
const char *gdn_cli_commit(void);

/* Flush stdout.  GDN_EXIT_OK, or GDN_EXIT_FAILED with a sentence (said once) if not everything could be written. */
int gdn_cli_flush(void);

#endif
