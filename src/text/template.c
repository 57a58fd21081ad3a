#include "text/template.h"
#include "text/jinja_node.h"
#include <string.h>

static const gdn_template_limits defaults = {.max_text_bytes = 64u << 20,
                                             .max_memory_bytes = 512u << 20,
                                             .max_steps = 100 * 1000 * 1000,
                                             .max_depth = 800};

static gdn_template_limits with_defaults(gdn_template_limits limits)
{
    if (!limits.max_text_bytes) limits.max_text_bytes = defaults.max_text_bytes;
    if (!limits.max_memory_bytes) limits.max_memory_bytes = defaults.max_memory_bytes;
    if (!limits.max_steps) limits.max_steps = defaults.max_steps;
    if (limits.max_depth <= 0) limits.max_depth = defaults.max_depth;
    return limits;
}

gdn_status gdn_template_open(gdn_template **out, const char *source, size_t n, gdn_error *err)
{
    if (!out || (!source && n))
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "chat template: out and source must not be NULL");
    gdn_template *t = calloc(1, sizeof *t);
    if (t) t->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!t || !t->locale) {
        gdn_template_close(t);
        return gdn_fail(err, GDN_NO_MEMORY, 0, "chat template: no memory to parse it");
    }
    t->run = (jinja_run){.limits = defaults, .err = err, .line = 1};
    const locale_t outer = uselocale(t->locale); /* numbers have a point in every locale */
    const bool     ok =
        gdn_jinja_parse(&t->run, source ? source : "", n, &t->root) && gdn_jinja_resolve(&t->run, t->root, &t->scope);
    uselocale(outer);
    const gdn_status status = t->run.status;
    t->run.err = NULL;
    if (ok) *out = t;
    else gdn_template_close(t);
    return ok ? GDN_OK : status;
}

void gdn_template_close(gdn_template *t)
{
    if (!t) return;
    if (t->locale) freelocale(t->locale);
    gdn_jinja_release(&t->run);
    free(t);
}

/* ---- rendering ------------------------------------------------------------------------------------------------------------ */

static bool trust(jinja_run *run, jinja_dict *vars, const char *name)
{
    for (size_t i = 0; i < vars->n; i++) {
        const jinja_string *s = vars->values[i].kind == JINJA_STRING ? vars->values[i].as.string : NULL;
        if (s && gdn_jinja_is(vars->keys[i].as.string, name) &&
            !gdn_jinja_string(run, s->bytes, s->n, JINJA_TRUSTED, &vars->values[i]))
            return false;
    }
    return true;
}

static bool read_vars(jinja_run *run, const gdn_template_input *input)
{
    jinja_value vars;
    if (!gdn_jinja_from_json(run, input->vars, JINJA_UNTRUSTED, &vars)) return false;
    for (int i = 0; i < input->n_trusted; i++)
        if (!trust(run, vars.as.dict, input->trusted[i])) return false;
    run->vars = vars.as.dict;
    return true;
}

static bool run_template(jinja_run *run, const gdn_template *t)
{
    run->frame = gdn_jinja_new_frame(run, t->scope, NULL);
    return run->frame && gdn_jinja_enter_scope(run, t->scope) && gdn_jinja_exec(run, t->root) != FLOW_FAIL;
}

/* Copy the text out of the arena. */
static bool give(jinja_run *run, const jinja_text *text, gdn_rendered *out)
{
    size_t from = 0;
    out->text = malloc(text->n + 1);
    out->spans = malloc((text->n_spans + 1) * sizeof *out->spans);
    if (!out->text || !out->spans)
        return gdn_jinja_fail(run, GDN_NO_MEMORY, "no memory for its result of %zu bytes", text->n);
    if (text->n) memcpy(out->text, text->bytes, text->n);
    out->text[text->n] = 0;
    out->n_bytes = text->n;
    out->n_spans = text->n_spans;
    for (size_t i = 0; i < text->n_spans; from = text->spans[i].end, i++)
        out->spans[i] = (gdn_text_span){from, text->spans[i].end - from, text->spans[i].mark == JINJA_TRUSTED};
    return true;
}

gdn_status gdn_template_render(const gdn_template *t, const gdn_template_input *input, gdn_rendered *out,
                               gdn_error *err)
{
    if (out) *out = (gdn_rendered){.text = NULL};
    if (!t || !input || !out || !json_is_object(input->vars) || (input->n_trusted > 0 && !input->trusted))
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0,
                        "chat template: template, input and out must not be NULL, and vars an object");
    jinja_text text = {.bytes = NULL};
    jinja_run  run = {.limits = with_defaults(input->limits), .err = err, .line = 1, .out = &text, .now = input->now};
    const locale_t outer = uselocale(t->locale);
    const bool     ok = read_vars(&run, input) && run_template(&run, t) && give(&run, &text, out);
    uselocale(outer);
    gdn_jinja_release(&run);
    if (!ok) gdn_rendered_free(out);
    return ok ? GDN_OK : run.status;
}

void gdn_rendered_free(gdn_rendered *rendered)
{
    free(rendered->text);
    free(rendered->spans);
    *rendered = (gdn_rendered){.text = NULL};
}
