/* The parser of blocks. */
#include "text/jinja_node.h"
#include <string.h>

static jinja_node *parse_statement(jinja_parser *p);

/* Append what parse functions returned: NULL is their failure. */
static bool add(jinja_parser *p, jinja_node *node, jinja_node *kid) { return kid && gdn_jinja_add_kid(p, node, kid); }

static jinja_node *parse_data(jinja_parser *p)
{
    jinja_node *output = gdn_jinja_node(p, NODE_OUTPUT, p->at.line, 0);
    jinja_node *data = gdn_jinja_node(p, NODE_CONST, p->at.line, 0);
    if (data) data->value = gdn_jinja_str(p->at.name);
    return output && add(p, output, data) && gdn_jinja_advance(p) ? output : NULL;
}

static jinja_node *parse_variable(jinja_parser *p)
{
    jinja_node *output = gdn_jinja_node(p, NODE_OUTPUT, p->at.line, 0);
    if (!output || !gdn_jinja_advance(p) || !add(p, output, gdn_jinja_parse_tuple(p, TUPLE_CONDITIONS))) return NULL;
    return gdn_jinja_expect(p, TOKEN_VARIABLE_END, "'}}'") ? output : NULL;
}

static bool at_word(const jinja_parser *p, const char *const *words)
{
    for (; words && *words; words++)
        if (gdn_jinja_at_name(p, *words)) return true;
    return false;
}

/* Text and blocks up to a tag that begins with one of the words (NULL: to the end), which is then the token. */
static jinja_node *parse_until(jinja_parser *p, const char *const *words)
{
    jinja_node *block = gdn_jinja_node(p, NODE_BLOCK, p->at.line, 0);
    while (block && p->at.kind != TOKEN_EOF) {
        if (p->at.kind == TOKEN_DATA) {
            if (!add(p, block, parse_data(p))) return NULL;
        } else if (p->at.kind == TOKEN_VARIABLE_BEGIN) {
            if (!add(p, block, parse_variable(p))) return NULL;
        } else {
            if (!gdn_jinja_advance(p)) return NULL;
            if (at_word(p, words)) return block;
            if (!add(p, block, parse_statement(p)) || !gdn_jinja_expect(p, TOKEN_BLOCK_END, "'%}'")) return NULL;
        }
    }
    if (block && words) {
        gdn_jinja_report(p->run, GDN_BAD_FILE, "the template ends where {%% %s %%} is expected", words[0]);
        return NULL;
    }
    return block;
}

/* The body of a block, behind its first tag's words; the token is then the word that ended it. */
static jinja_node *parse_body(jinja_parser *p, const char *const *words)
{
    bool colon;
    if (!gdn_jinja_skip_op(p, ':', &colon) || !gdn_jinja_expect(p, TOKEN_BLOCK_END, "'%}'") || !gdn_jinja_deeper(p))
        return NULL;
    jinja_node *body = parse_until(p, words);
    p->nesting--;
    return body;
}

/* A body that ends with one word only, which is skipped. */
static jinja_node *parse_last_body(jinja_parser *p, const char *word)
{
    jinja_node *body = parse_body(p, (const char *const[]){word, NULL});
    return body && gdn_jinja_advance(p) ? body : NULL;
}

/* A body that runs as a function: break and continue do not reach out of it. */
static jinja_node *parse_function_body(jinja_parser *p, const char *word)
{
    const int n_loops = p->n_loops;
    p->n_loops = 0;
    jinja_node *body = parse_last_body(p, word);
    p->n_loops = n_loops;
    return body;
}

/* ---- targets ----------------------------------------------------------------------------------------------------------- */

static bool mark_target(jinja_parser *p, jinja_node *target, char op)
{
    if (target->kind == NODE_NSREF) return true;
    if (target->kind == NODE_NAME) {
        target->op = (uint8_t)op;
        return true;
    }
    if (target->kind != NODE_TUPLE) {
        p->run->line = target->line;
        return gdn_jinja_fail(p->run, GDN_BAD_FILE, "only names and tuples of names can be assigned to");
    }
    for (int i = 0; i < target->n_kids; i++)
        if (!mark_target(p, target->kids[i], op)) return false;
    return true;
}

static jinja_node *parse_target(jinja_parser *p, char op, int flags)
{
    jinja_node *target = gdn_jinja_parse_tuple(p, TUPLE_TARGETS | flags);
    return target && mark_target(p, target, op) ? target : NULL;
}

/* A copy of a target, because the test of a loop has its own variables. */
static jinja_node *copy_target(jinja_parser *p, const jinja_node *target)
{
    jinja_node *copy = gdn_jinja_node(p, (jinja_node_kind)target->kind, target->line, 0);
    if (!copy) return NULL;
    copy->name = target->name;
    copy->op = target->op;
    for (int i = 0; i < target->n_kids; i++)
        if (!add(p, copy, copy_target(p, target->kids[i]))) return NULL;
    return copy;
}

static bool expect_name(jinja_parser *p, const char *name)
{
    return gdn_jinja_at_name(p, name) ? gdn_jinja_advance(p) : gdn_jinja_unexpected(p, name);
}

/* ---- blocks -------------------------------------------------------------------------------------------------------------- */

static jinja_node *parse_if(jinja_parser *p, jinja_node *node)
{
    static const char *const ends[] = {"endif", "elif", "else", NULL};
    jinja_node              *elifs = gdn_jinja_node(p, NODE_BLOCK, node->line, 0), *otherwise = NULL, *branch = node;
    while (elifs) {
        jinja_node *condition = gdn_jinja_parse_tuple(p, 0);
        if (!add(p, branch, condition) || !add(p, branch, parse_body(p, ends))) return NULL;
        while (branch != node && branch->n_kids < 4) /* no elifs, no else of its own */
            if (!gdn_jinja_add_kid(p, branch, NULL)) return NULL;
        if (branch != node && !add(p, elifs, branch)) return NULL;
        const bool more = gdn_jinja_at_name(p, "elif"), last = gdn_jinja_at_name(p, "else");
        if (!gdn_jinja_advance(p)) return NULL;
        if (last && !(otherwise = parse_last_body(p, "endif"))) return NULL;
        if (!more) break;
        branch = gdn_jinja_node(p, NODE_IF, p->at.line, 0);
        if (!branch) return NULL;
    }
    if (!elifs || !gdn_jinja_add_kid(p, node, elifs) || !gdn_jinja_add_kid(p, node, otherwise)) return NULL;
    return node;
}

static jinja_node *parse_for(jinja_parser *p, jinja_node *node)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    jinja_node              *test = NULL, *test_target = NULL, *otherwise = NULL;
    bool                     has_test, recursive;
    jinja_node              *target = parse_target(p, 't', 0);
    if (!target || !expect_name(p, "in")) return NULL;
    jinja_node *iterable = gdn_jinja_parse_tuple(p, 0);
    if (!iterable || !gdn_jinja_skip_name(p, "if", &has_test)) return NULL;
    if (has_test && (!(test = gdn_jinja_parse_expression(p, true)) || !(test_target = copy_target(p, target))))
        return NULL;
    if (!gdn_jinja_skip_name(p, "recursive", &recursive)) return NULL;
    const int n_loops = p->n_loops;
    p->n_loops = recursive ? 1 : n_loops + 1;
    jinja_node *body = parse_body(p, ends);
    p->n_loops = recursive ? 0 : n_loops;
    if (!body) return NULL;
    const bool has_else = gdn_jinja_at_name(p, "else");
    if (!gdn_jinja_advance(p) || (has_else && !(otherwise = parse_last_body(p, "endfor")))) return NULL;
    p->n_loops = n_loops;
    node->op = recursive ? 'r' : 0;
    jinja_node *const kids[] = {target, iterable, body, otherwise, test, test_target};
    for (int i = 0; i < 6; i++)
        if (!gdn_jinja_add_kid(p, node, kids[i])) return NULL;
    return node;
}

static jinja_node *parse_set(jinja_parser *p, jinja_node *node)
{
    bool        assigned;
    jinja_node *target = parse_target(p, 's', TUPLE_NAMESPACES);
    if (!add(p, node, target) || !gdn_jinja_skip_op(p, '=', &assigned)) return NULL;
    if (assigned) return add(p, node, gdn_jinja_parse_tuple(p, TUPLE_CONDITIONS)) ? node : NULL;
    node->kind = NODE_SET_BLOCK;
    jinja_node *filter = gdn_jinja_parse_filters(p, NULL, true);
    if (p->run->status || !gdn_jinja_add_kid(p, node, filter)) return NULL;
    return add(p, node, parse_last_body(p, "endset")) ? node : NULL;
}

/* (a, b=default): pairs of a parameter and its default, which may be NULL. */
static bool parse_signature(jinja_parser *p, jinja_node *node)
{
    bool      defaults = false;
    const int first = node->n_kids;
    if (!gdn_jinja_expect_op(p, '(')) return false;
    while (!gdn_jinja_at_op(p, ')')) {
        if (node->n_kids > first && !gdn_jinja_expect_op(p, ',')) return false;
        jinja_node *parameter = gdn_jinja_node(p, NODE_NAME, p->at.line, 0), *value = NULL;
        bool        has_default;
        if (!parameter) return false;
        parameter->name = p->at.name;
        parameter->op = 'p';
        if (!gdn_jinja_expect(p, TOKEN_NAME, "the name of a parameter") || !gdn_jinja_skip_op(p, '=', &has_default))
            return false;
        for (int i = first; i < node->n_kids; i += 2)
            if (gdn_jinja_same(node->kids[i]->name, parameter->name))
                return gdn_jinja_fail(p->run, GDN_BAD_FILE, "two parameters are called %.*s", (int)parameter->name->n,
                                      parameter->name->bytes);
        if (has_default && !(value = gdn_jinja_parse_expression(p, true))) return false;
        if (defaults && !has_default)
            return gdn_jinja_fail(p->run, GDN_BAD_FILE, "a parameter without a default follows one that has it");
        defaults = has_default;
        if (!gdn_jinja_add_kid(p, node, parameter) || !gdn_jinja_add_kid(p, node, value)) return false;
    }
    return gdn_jinja_expect_op(p, ')');
}

static jinja_node *parse_macro(jinja_parser *p, jinja_node *node)
{
    node->name = p->at.name;
    if (!gdn_jinja_expect(p, TOKEN_NAME, "the name of a macro") || !parse_signature(p, node)) return NULL;
    node->op = 's';
    return add(p, node, parse_function_body(p, "endmacro")) ? node : NULL;
}

static jinja_node *parse_call_block(jinja_parser *p, jinja_node *node)
{
    if (!gdn_jinja_add_kid(p, node, NULL) || (gdn_jinja_at_op(p, '(') && !parse_signature(p, node))) return NULL;
    jinja_node *call = gdn_jinja_parse_expression(p, true);
    if (!call) return NULL;
    if (call->kind != NODE_CALL) {
        gdn_jinja_report(p->run, GDN_BAD_FILE, "{%% call %%} needs a call");
        return NULL;
    }
    if (call->depth >= JINJA_MAX_NESTING || !add(p, node, parse_function_body(p, "endcall"))) return NULL;
    node->kids[0] = call;
    if (node->depth <= call->depth) node->depth = (uint8_t)(call->depth + 1);
    return node;
}

/* transformers marks what the assistant wrote with it; the text is not changed. */
static jinja_node *parse_generation(jinja_parser *p, jinja_node *node)
{
    return gdn_jinja_add_kid(p, node, NULL) && add(p, node, parse_function_body(p, "endgeneration")) ? node : NULL;
}

static jinja_node *parse_filter_block(jinja_parser *p, jinja_node *node)
{
    jinja_node *filter = gdn_jinja_parse_filters(p, NULL, false);
    return filter && add(p, node, parse_last_body(p, "endfilter")) && add(p, node, filter) ? node : NULL;
}

static jinja_node *parse_with(jinja_parser *p, jinja_node *node)
{
    while (p->at.kind != TOKEN_BLOCK_END) {
        if (node->n_kids && !gdn_jinja_expect_op(p, ',')) return NULL;
        if (!add(p, node, parse_target(p, 'p', 0)) || !gdn_jinja_expect_op(p, '=') ||
            !add(p, node, gdn_jinja_parse_expression(p, true)))
            return NULL;
    }
    return add(p, node, parse_last_body(p, "endwith")) ? node : NULL;
}

static jinja_node *parse_print(jinja_parser *p, jinja_node *node)
{
    while (p->at.kind != TOKEN_BLOCK_END) {
        if (node->n_kids && !gdn_jinja_expect_op(p, ',')) return NULL;
        if (!add(p, node, gdn_jinja_parse_expression(p, true))) return NULL;
    }
    return node;
}

static jinja_node *parse_jump(jinja_parser *p, jinja_node *node)
{
    if (p->n_loops > 0) return node;
    gdn_jinja_report(p->run, GDN_BAD_FILE, "break and continue must be inside a loop");
    return NULL;
}

typedef jinja_node *parse_fn(jinja_parser *p, jinja_node *node);

static jinja_node *parse_statement(jinja_parser *p)
{
    static const struct {
        const char     *tag;
        jinja_node_kind kind;
        parse_fn       *parse; /* NULL: Jinja has it, we do not */
    } tags[] = {
        {"if", NODE_IF, parse_if},
        {"for", NODE_FOR, parse_for},
        {"set", NODE_SET, parse_set},
        {"macro", NODE_MACRO, parse_macro},
        {"call", NODE_CALL_BLOCK, parse_call_block},
        {"generation", NODE_CALL_BLOCK, parse_generation},
        {"filter", NODE_FILTER_BLOCK, parse_filter_block},
        {"with", NODE_WITH, parse_with},
        {"print", NODE_OUTPUT, parse_print},
        {"break", NODE_BREAK, parse_jump},
        {"continue", NODE_CONTINUE, parse_jump},
        {"block", NODE_BLOCK, NULL},
        {"extends", NODE_BLOCK, NULL},
        {"include", NODE_BLOCK, NULL},
        {"import", NODE_BLOCK, NULL},
        {"from", NODE_BLOCK, NULL},
        {"autoescape", NODE_BLOCK, NULL},
    };
    if (p->at.kind != TOKEN_NAME) {
        gdn_jinja_unexpected(p, "the name of a tag");
        return NULL;
    }
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        if (!gdn_jinja_at_name(p, tags[i].tag)) continue;
        jinja_node *node = gdn_jinja_node(p, tags[i].kind, p->at.line, 0);
        if (!tags[i].parse) gdn_jinja_report(p->run, GDN_UNSUPPORTED, "{%% %s %%} is not supported", tags[i].tag);
        return node && tags[i].parse && gdn_jinja_advance(p) ? tags[i].parse(p, node) : NULL;
    }
    gdn_jinja_report(p->run, GDN_BAD_FILE, "unknown tag '%.*s'", (int)p->at.name->n, p->at.name->bytes);
    return NULL;
}

bool gdn_jinja_parse(jinja_run *run, const char *source, size_t n, jinja_node **root)
{
    jinja_parser p = {.run = run};
    if (!gdn_jinja_lex_open(&p.lexer, run, source, n) || !gdn_jinja_advance(&p)) return false;
    *root = parse_until(&p, NULL);
    return *root != NULL;
}
