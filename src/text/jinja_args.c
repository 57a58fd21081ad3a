/* The arguments of filters, tests, methods and functions. */
#include "text/jinja.h"
#include <string.h>

static size_t word_end(const char *params)
{
    size_t n = 0;
    while (params[n] && params[n] != ' ') n++;
    return n;
}

static bool wrong(jinja_run *run, const char *what, const char *how, const jinja_string *name)
{
    return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "%s %s%.*s", what, how, name ? (int)name->n : 0,
                          name ? name->bytes : "");
}

/* The keyword argument with this name; -1: it is not given. */
static int named(const jinja_args *args, const char *name, size_t n)
{
    for (int i = 0; i < args->n_named; i++)
        if (args->names[i]->n == n && !memcmp(args->names[i]->bytes, name, n)) return i;
    return -1;
}

bool gdn_jinja_bind(jinja_run *run, const char *what, const char *params, const jinja_args *args,
                    jinja_value slots[JINJA_MAX_PARAMS])
{
    int  n = 0, n_used = 0;
    bool optional = false;
    for (int i = 0; i < JINJA_MAX_PARAMS; i++) slots[i] = (jinja_value){.kind = JINJA_MISSING};
    if (params[0] && params[strlen(params) - 1] == '/' && args->n_named)
        return wrong(run, what, "takes no named argument, such as ", args->names[0]);
    for (; *params && *params != '/'; n++) {
        optional |= *params == '=';
        params += *params == '=';
        const size_t length = word_end(params);
        const int    k = named(args, params, length);
        if (k >= 0 && n < args->n) return wrong(run, what, "is given twice: ", args->names[k]);
        if (k >= 0) slots[n] = args->named[k];
        else if (n < args->n) slots[n] = args->at[n];
        else if (!optional) return wrong(run, what, "is given too few arguments", NULL);
        n_used += k >= 0;
        params += length + (params[length] == ' ');
    }
    if (args->n > n) return wrong(run, what, "is given too many arguments", NULL);
    if (n_used < args->n_named) return wrong(run, what, "does not take one of its named arguments", NULL);
    return true;
}

bool gdn_jinja_int_arg(jinja_run *run, const char *what, const jinja_value *v, int64_t missing, int64_t *out)
{
    *out = missing;
    if (v->kind == JINJA_MISSING) return true;
    if (v->kind == JINJA_UNDEFINED) return gdn_jinja_undefined_error(run, v);
    if (v->kind != JINJA_INT && v->kind != JINJA_BOOL)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "%s: an integer is needed, not a %s", what, gdn_jinja_type(v));
    *out = gdn_jinja_integer(v);
    return true;
}

bool gdn_jinja_string_arg(jinja_run *run, const char *what, const jinja_value *v, const jinja_string **out)
{
    if (v->kind != JINJA_STRING)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "%s: a string is needed, not a %s", what, gdn_jinja_type(v));
    *out = v->as.string;
    return true;
}
