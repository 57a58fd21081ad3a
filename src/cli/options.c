#include "cli/cli.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int gdn_cli_fail(int status, const char *verb, const char *format, ...)
{
    va_list ap;
    fprintf(stderr, "gdn%s%s: ", verb ? " " : "", verb ? verb : "");
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    return status;
}

int gdn_cli_flush(void)
{
    static int said;
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout)) return GDN_EXIT_OK;
    if (said++ || errno == EPIPE) return GDN_EXIT_FAILED;
    return gdn_cli_fail(GDN_EXIT_FAILED, NULL,
                        "the results could not be written to standard output (%s); they are incomplete",
                        errno ? strerror(errno) : "write error");
}

double gdn_cli_seconds(void)
{
    static double   started;
    struct timespec now, used;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    if (started == 0) {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        started = seconds - (double)used.tv_sec - 1e-9 * (double)used.tv_nsec;
    }
    return seconds - started;
}

/* ---- the nearest name ---------------------------------------------------------------------------------------------- */

/* Letters to insert, delete or change between two words of at most 31; more than any limit for longer ones. */
static int distance(const char *a, const char *b)
{
    enum { MOST = 32 };
    const int n = (int)strlen(b);
    int       row[MOST] = {0};
    if (n >= MOST) return MOST;
    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            const int above = row[j], beside = row[j - 1];
            const int least = (above < beside ? above : beside) + 1, change = corner + (a[i - 1] != b[j - 1]);
            row[j] = least < change ? least : change;
            corner = above;
        }
    }
    return row[n];
}

const char *gdn_cli_hint(const char *word, const void *names, int n, size_t entry_bytes)
{
    static char hint[64];
    int         best = 3; /* a name is near with at most two mistakes, and with half of it right */
    for (int i = 0; i < n; i++) {
        const char *name;
        memcpy(&name, (const char *)names + (size_t)i * entry_bytes, sizeof name);
        const int d = distance(word, name), letters = (int)strlen(name + strspn(name, "-"));
        if (d >= best || letters < 3 || 2 * d > letters) continue;
        best = d;
        snprintf(hint, sizeof hint, " (did you mean %s?)", name);
    }
    return best < 3 ? hint : "";
}

/* ---- reading ------------------------------------------------------------------------------------------------------- */

static int read_number(const char *verb, const gdn_option *option, const char *text)
{
    char  *end;
    int    whole = option->kind == GDN_OPTION_INT;
    double number = NAN;
    errno = 0;
    /* strtod would also take white space, hexadecimal, "inf" and "nan"; digits alone, signs and a point are left to it. */
    if (*text && !text[strspn(text, whole ? "-0123456789" : "-.0123456789")]) {
        number = strtod(text, &end);
        if (*end) number = NAN;
    }
    if (!(number >= option->least && number <= option->most)) {
        return gdn_cli_fail(GDN_EXIT_USAGE, verb,
                            "%s takes a %snumber from %.10g to %.10g, not '%s'; see 'gdn %s --help'", option->name,
                            whole ? "whole " : "", option->least, option->most, text, verb);
    }
    if (whole) {
        *(int *)option->value = (int)number;
    } else {
        *(double *)option->value = number;
    }
    return GDN_EXIT_OK;
}

/* The option that a word of the command line names, or the next argument that has no value yet. */
static const gdn_option *find_option(const char *word, const gdn_option *options, int n_options)
{
    size_t length = strcspn(word, "=");
    for (int i = 0; i < n_options; i++) {
        const gdn_option *option = &options[i];
        if (option->kind == GDN_OPTION_ARGUMENT) {
            if (*word != '-' && !*(const char **)option->value) return option;
        } else if (strlen(option->name) == length && !memcmp(option->name, word, length)) {
            return option;
        }
    }
    return NULL;
}

static int unknown(const char *verb, const char *word, const gdn_option *options, int n_options)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    if (*word != '-')
        return gdn_cli_fail(GDN_EXIT_USAGE, verb, "unexpected argument '%s'; see 'gdn %s --help'", word, verb);
    return gdn_cli_fail(GDN_EXIT_USAGE, verb, "unknown option '%s'%s; see 'gdn %s --help'", word,
                        gdn_cli_hint(name, options, n_options, sizeof *options), verb);
}

static int add_text(const char *verb, const char *name, gdn_texts *texts, const char *text)
{
    if (texts->n == GDN_TEXTS_MAX)
        return gdn_cli_fail(GDN_EXIT_USAGE, verb, "%s can be given %d times", name, GDN_TEXTS_MAX);
    texts->text[texts->n++] = text;
    return GDN_EXIT_OK;
}

int gdn_options_read(const char *verb, int argc, char **argv, const gdn_option *options, int n_options)
{
    for (int i = 0; i < argc; i++) {
        const char       *arg = argv[i], *value = NULL;
        size_t            length = strcspn(arg, "=");
        const gdn_option *option = find_option(arg, options, n_options);
        if (!option) return unknown(verb, arg, options, n_options);
        if (option->kind == GDN_OPTION_ARGUMENT) {
            *(const char **)option->value = arg;
            continue;
        }
        if (arg[length]) value = arg + length + 1;
        if (option->kind == GDN_OPTION_FLAG) {
            if (value)
                return gdn_cli_fail(GDN_EXIT_USAGE, verb, "%s takes no value, but got '%s'", option->name, value);
            *(int *)option->value = 1;
            continue;
        }
        if (!value && i + 1 < argc && strncmp(argv[i + 1], "--", 2)) value = argv[++i];
        if (!value) {
            return gdn_cli_fail(GDN_EXIT_USAGE, verb, "%s needs a value after it; see 'gdn %s --help'", option->name,
                                verb);
        }
        if (option->kind == GDN_OPTION_TEXT) {
            *(const char **)option->value = value;
        } else if (option->kind == GDN_OPTION_TEXTS) {
            if (add_text(verb, option->name, option->value, value)) return GDN_EXIT_USAGE;
        } else if (read_number(verb, option, value)) {
            return GDN_EXIT_USAGE;
        }
    }
    return GDN_EXIT_OK;
}
