/* cli/cli.h - what the verbs of `gdn` share. */
#ifndef GDN_CLI_CLI_H
#define GDN_CLI_CLI_H

#define GDN_VERSION "0.1.0"

/* What the program exits with: results written, something failed, or the command line is wrong. */
enum { GDN_EXIT_OK = 0, GDN_EXIT_FAILED = 1, GDN_EXIT_USAGE = 2 };

/* A verb gets the arguments after its name and returns an exit status.  It writes results to stdout, all else to stderr. */
typedef int gdn_verb_fn(int argc, char **argv);
gdn_verb_fn gdn_verb_bench;

typedef enum gdn_option_kind {
    GDN_OPTION_FLAG,   /* int, set to 1 */
    GDN_OPTION_TEXT,   /* const char * */
    GDN_OPTION_INT,    /* int in [least, most] */
    GDN_OPTION_SECONDS /* double in [least, most] */
} gdn_option_kind;

typedef struct gdn_option {
    const char     *name; /* with its dashes */
    gdn_option_kind kind;
    void           *value;
    double          least, most;
} gdn_option;

/* Read "--name value" and "--name=value" into the options' values.  Returns GDN_EXIT_OK, or says what is wrong and returns
 * GDN_EXIT_USAGE. */
int gdn_options_read(const char *verb, int argc, char **argv, const gdn_option *options, int n_options);

/* Write "gdn VERB: sentence" to stderr ("gdn: sentence" when verb is NULL) and return `status`. */
__attribute__((format(printf, 3, 4))) int gdn_cli_fail(int status, const char *verb, const char *format, ...);

/* Flush stdout.  GDN_EXIT_OK, or GDN_EXIT_FAILED with a sentence (said once) if not everything could be written. */
int gdn_cli_flush(void);

#endif
