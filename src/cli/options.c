#include "cli/cli.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    if (said++) return GDN_EXIT_FAILED;
    return gdn_cli_fail(GDN_EXIT_FAILED, NULL,
                        "the results could not be written to standard output (%s); they are incomplete",
                        errno ? strerror(errno) : "write error");
}

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
        return gdn_cli_fail(GDN_EXIT_USAGE, verb, "%s takes a %snumber from %g to %g, not '%s'; see 'gdn %s --help'",
                            option->name, whole ? "whole " : "", option->least, option->most, text, verb);
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

int gdn_options_read(const char *verb, int argc, char **argv, const gdn_option *options, int n_options)
{
    for (int i = 0; i < argc; i++) {
        const char       *arg = argv[i], *value = NULL;
        size_t            length = strcspn(arg, "=");
        const gdn_option *option = find_option(arg, options, n_options);
        if (!option) {
            return gdn_cli_fail(GDN_EXIT_USAGE, verb, "%s '%s'; see 'gdn %s --help'",
                                *arg == '-' ? "unknown option" : "unexpected argument", arg, verb);
        }
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
        } else if (read_number(verb, option, value)) {
            return GDN_EXIT_USAGE;
        }
    }
    return GDN_EXIT_OK;
}
