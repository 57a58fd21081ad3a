/* The parser of expressions: jinja2's grammar, which is not quite Python's. */
#include "text/jinja_node.h"
#include <string.h>

/* ---- tokens ---------------------------------------------------------------------------------------------------------- */

bool gdn_jinja_advance(jinja_parser *p)
{
    if (p->has_next) {
        p->at = p->next;
        p->has_next = false;
    } else if (!gdn_jinja_lex(&p->lexer, &p->at)) return false;
    p->run->line = p->at.line;
    return true;
}

bool gdn_jinja_peek(jinja_parser *p, const jinja_token **next)
{
    if (!p->has_next && !gdn_jinja_lex(&p->lexer, &p->next)) return false;
    p->has_next = true;
    p->run->line = p->at.line;
    *next = &p->next;
    return true;
}

bool gdn_jinja_at_name(const jinja_parser *p, const char *name)
{
    return p->at.kind == TOKEN_NAME && gdn_jinja_is(p->at.name, name);
}

bool gdn_jinja_at_op(const jinja_parser *p, char op) { return p->at.kind == TOKEN_OP && p->at.op == op; }

bool gdn_jinja_skip_name(jinja_parser *p, const char *name, bool *skipped)
{
    *skipped = gdn_jinja_at_name(p, name);
    return !*skipped || gdn_jinja_advance(p);
}

bool gdn_jinja_skip_op(jinja_parser *p, char op, bool *skipped)
{
    *skipped = gdn_jinja_at_op(p, op);
    return !*skipped || gdn_jinja_advance(p);
}

bool gdn_jinja_unexpected(jinja_parser *p, const char *wanted)
{
    static const char *const kinds[] = {[TOKEN_EOF] = "the end of the template",
                                        [TOKEN_DATA] = "text",
                                        [TOKEN_VARIABLE_BEGIN] = "{{",
                                        [TOKEN_VARIABLE_END] = "}}",
                                        [TOKEN_BLOCK_BEGIN] = "{%",
                                        [TOKEN_BLOCK_END] = "%}",
                                        [TOKEN_CONST] = "a literal"};
    if (p->at.kind == TOKEN_NAME)
        return gdn_jinja_fail(p->run, GDN_BAD_FILE, "expected %s, got '%.*s'", wanted, (int)p->at.name->n,
                              p->at.name->bytes);
    if (p->at.kind == TOKEN_OP)
        return gdn_jinja_fail(p->run, GDN_BAD_FILE, "expected %s, got an operator like '%c'", wanted, p->at.op);
    return gdn_jinja_fail(p->run, GDN_BAD_FILE, "expected %s, got %s", wanted, kinds[p->at.kind]);
}

bool gdn_jinja_expect_op(jinja_parser *p, char op)
{
    return gdn_jinja_at_op(p, op) ? gdn_jinja_advance(p) : gdn_jinja_unexpected(p, (char[]){'\'', op, '\'', 0});
}

bool gdn_jinja_expect(jinja_parser *p, jinja_token_kind kind, const char *wanted)
{
    return p->at.kind == kind ? gdn_jinja_advance(p) : gdn_jinja_unexpected(p, wanted);
}

bool gdn_jinja_deeper(jinja_parser *p)
{
    if (p->nesting < JINJA_MAX_NESTING) {
        p->nesting++;
        return true;
    }
    return gdn_jinja_fail(p->run, GDN_BAD_FILE, "expressions or blocks are nested more than %d deep",
                          JINJA_MAX_NESTING);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------- */

jinja_node *gdn_jinja_node(jinja_parser *p, jinja_node_kind kind, int line, int n_kids)
{
    jinja_node *node = gdn_jinja_alloc(p->run, sizeof *node);
    if (!node) return NULL;
    *node = (jinja_node){.kind = (uint8_t)kind, .line = line, .depth = 1};
    for (int i = 0; i < n_kids; i++)
        if (!gdn_jinja_add_kid(p, node, NULL)) return NULL;
    return node;
}

static bool deepen(jinja_parser *p, jinja_node *node, const jinja_node *kid)
{
    if (kid->depth >= JINJA_MAX_NESTING)
        return gdn_jinja_fail(p->run, GDN_BAD_FILE, "an expression or a block is nested more than %d deep",
                              JINJA_MAX_NESTING);
    if (node->depth <= kid->depth) node->depth = (uint8_t)(kid->depth + 1);
    return true;
}

bool gdn_jinja_add_kid(jinja_parser *p, jinja_node *node, jinja_node *kid)
{
    const size_t n = (size_t)node->n_kids;
    if (kid && !deepen(p, node, kid)) return false;
    if (n == 0 || (n >= 4 && (n & (n - 1)) == 0)) { /* full: room for 4, then doubled */
        jinja_node **kids = gdn_jinja_grow(p->run, node->kids, n * sizeof *kids, (n ? 2 * n : 4) * sizeof *kids);
        if (!kids) return false;
        node->kids = kids;
    }
    node->kids[node->n_kids++] = kid;
    return true;
}

static jinja_node *unary(jinja_parser *p, jinja_node_kind kind, int line, jinja_node *x)
{
    jinja_node *node = x ? gdn_jinja_node(p, kind, line, 0) : NULL;
    return node && gdn_jinja_add_kid(p, node, x) ? node : NULL;
}

static jinja_node *binary(jinja_parser *p, jinja_node_kind kind, char op, int line, jinja_node *a, jinja_node *b)
{
    jinja_node *node = b ? unary(p, kind, line, a) : NULL;
    if (!node || !gdn_jinja_add_kid(p, node, b)) return NULL;
    node->op = (uint8_t)op;
    return node;
}

static jinja_node *constant(jinja_parser *p, int line, jinja_value value)
{
    jinja_node *node = gdn_jinja_node(p, NODE_CONST, line, 0);
    if (node) node->value = value;
    return node;
}

/* ---- primaries --------------------------------------------------------------------------------------------------------- */

static jinja_node *parse_name(jinja_parser *p, bool with_namespace)
{
    const jinja_string *name = p->at.name;
    const int           line = p->at.line;
    if (!gdn_jinja_advance(p)) return NULL;
    if (gdn_jinja_is(name, "true") || gdn_jinja_is(name, "True")) return constant(p, line, gdn_jinja_bool(true));
    if (gdn_jinja_is(name, "false") || gdn_jinja_is(name, "False")) return constant(p, line, gdn_jinja_bool(false));
    if (gdn_jinja_is(name, "none") || gdn_jinja_is(name, "None")) return constant(p, line, gdn_jinja_none());
    jinja_node *node = gdn_jinja_node(p, NODE_NAME, line, 0);
    if (!node) return NULL;
    node->name = name;
    node->op = 'l';
    if (with_namespace && gdn_jinja_at_op(p, '.')) {
        if (!gdn_jinja_advance(p)) return NULL;
        node->kind = NODE_NSREF;
        node->text = p->at.name;
        if (!gdn_jinja_expect(p, TOKEN_NAME, "the name of an attribute")) return NULL;
    }
    return node;
}

/* A literal; strings that stand side by side are one. */
static jinja_node *parse_literal(jinja_parser *p)
{
    const int   line = p->at.line;
    jinja_value value = p->at.value;
    if (!gdn_jinja_advance(p)) return NULL;
    while (value.kind == JINJA_STRING && p->at.kind == TOKEN_CONST && p->at.value.kind == JINJA_STRING)
        if (!gdn_jinja_binary(p->run, '+', &value, &p->at.value, &value) || !gdn_jinja_advance(p)) return NULL;
    return constant(p, line, value);
}

static jinja_node *parse_list(jinja_parser *p)
{
    jinja_node *list = gdn_jinja_node(p, NODE_LIST, p->at.line, 0);
    if (!list || !gdn_jinja_expect_op(p, '[')) return NULL;
    while (!gdn_jinja_at_op(p, ']')) {
        if (list->n_kids && !gdn_jinja_expect_op(p, ',')) return NULL;
        if (gdn_jinja_at_op(p, ']')) break;
        jinja_node *item = gdn_jinja_parse_expression(p, true);
        if (!item || !gdn_jinja_add_kid(p, list, item)) return NULL;
    }
    return gdn_jinja_expect_op(p, ']') ? list : NULL;
}

static jinja_node *parse_dict(jinja_parser *p)
{
    jinja_node *dict = gdn_jinja_node(p, NODE_DICT, p->at.line, 0);
    if (!dict || !gdn_jinja_expect_op(p, '{')) return NULL;
    while (!gdn_jinja_at_op(p, '}')) {
        if (dict->n_kids && !gdn_jinja_expect_op(p, ',')) return NULL;
        if (gdn_jinja_at_op(p, '}')) break;
        jinja_node *key = gdn_jinja_parse_expression(p, true);
        if (!key || !gdn_jinja_add_kid(p, dict, key) || !gdn_jinja_expect_op(p, ':')) return NULL;
        jinja_node *value = gdn_jinja_parse_expression(p, true);
        if (!value || !gdn_jinja_add_kid(p, dict, value)) return NULL;
    }
    return gdn_jinja_expect_op(p, '}') ? dict : NULL;
}

jinja_node *gdn_jinja_parse_primary(jinja_parser *p, bool with_namespace)
{
    if (p->at.kind == TOKEN_NAME) return parse_name(p, with_namespace);
    if (p->at.kind == TOKEN_CONST) return parse_literal(p);
    if (gdn_jinja_at_op(p, '[')) return parse_list(p);
    if (gdn_jinja_at_op(p, '{')) return parse_dict(p);
    if (!gdn_jinja_at_op(p, '(')) {
        gdn_jinja_unexpected(p, "an expression");
        return NULL;
    }
    if (!gdn_jinja_advance(p)) return NULL;
    jinja_node *node = gdn_jinja_parse_tuple(p, TUPLE_CONDITIONS | TUPLE_PARENTHESES);
    return node && gdn_jinja_expect_op(p, ')') ? node : NULL;
}

static bool tuple_ends(const jinja_parser *p)
{
    return p->at.kind == TOKEN_VARIABLE_END || p->at.kind == TOKEN_BLOCK_END || gdn_jinja_at_op(p, ')');
}

jinja_node *gdn_jinja_parse_tuple(jinja_parser *p, int flags)
{
    jinja_node *tuple = gdn_jinja_node(p, NODE_TUPLE, p->at.line, 0);
    bool        is_tuple = false;
    if (!tuple) return NULL;
    for (;;) {
        if (tuple->n_kids && !gdn_jinja_expect_op(p, ',')) return NULL;
        if (tuple_ends(p)) break;
        jinja_node *item = flags & TUPLE_TARGETS ? gdn_jinja_parse_primary(p, flags & TUPLE_NAMESPACES)
                                                 : gdn_jinja_parse_expression(p, flags & TUPLE_CONDITIONS);
        if (!item || !gdn_jinja_add_kid(p, tuple, item)) return NULL;
        if (!gdn_jinja_at_op(p, ',')) break;
        is_tuple = true;
    }
    if (is_tuple) return tuple;
    if (tuple->n_kids) return tuple->kids[0];
    if (flags & TUPLE_PARENTHESES) return tuple;
    gdn_jinja_unexpected(p, "an expression");
    return NULL;
}

/* ---- what follows a primary ---------------------------------------------------------------------------------------------- */

/* A key of x[...], which may be a slice. */
static jinja_node *parse_key(jinja_parser *p)
{
    jinja_node *slice = gdn_jinja_node(p, NODE_SLICE, p->at.line, 3);
    jinja_node *parts[3] = {NULL};
    if (!slice) return NULL;
    for (int i = 0; i < 3; i++) {
        bool colon = false;
        if (!gdn_jinja_at_op(p, ':') && (i == 0 || (!gdn_jinja_at_op(p, ']') && !gdn_jinja_at_op(p, ',')))) {
            parts[i] = gdn_jinja_parse_expression(p, true);
            if (!parts[i] || !deepen(p, slice, parts[i])) return NULL;
        }
        if (i < 2 && !gdn_jinja_skip_op(p, ':', &colon)) return NULL;
        if (i == 0 && !colon) return parts[0];
        if (!colon) break;
    }
    memcpy(slice->kids, parts, sizeof parts);
    return slice;
}

static jinja_node *parse_subscript(jinja_parser *p, jinja_node *x)
{
    const int   line = p->at.line;
    jinja_node *keys = gdn_jinja_node(p, NODE_TUPLE, line, 0);
    if (!keys || !gdn_jinja_expect_op(p, '[')) return NULL;
    while (!gdn_jinja_at_op(p, ']')) {
        if (keys->n_kids && !gdn_jinja_expect_op(p, ',')) return NULL;
        jinja_node *key = parse_key(p);
        if (!key || !gdn_jinja_add_kid(p, keys, key)) return NULL;
    }
    for (int i = 0; i < keys->n_kids && keys->n_kids > 1; i++)
        if (keys->kids[i]->kind == NODE_SLICE) {
            gdn_jinja_report(p->run, GDN_BAD_FILE, "a slice cannot be one of several keys");
            return NULL;
        }
    if (!gdn_jinja_expect_op(p, ']')) return NULL;
    return binary(p, NODE_GETITEM, 0, line, x, keys->n_kids == 1 ? keys->kids[0] : keys);
}

static jinja_node *parse_attribute(jinja_parser *p, jinja_node *x)
{
    const int line = p->at.line;
    if (!gdn_jinja_advance(p)) return NULL;
    const jinja_token at = p->at;
    if (at.kind != TOKEN_NAME && !(at.kind == TOKEN_CONST && at.value.kind == JINJA_INT)) {
        gdn_jinja_unexpected(p, "a name or a number after '.'");
        return NULL;
    }
    if (!gdn_jinja_advance(p)) return NULL;
    if (at.kind == TOKEN_CONST) return binary(p, NODE_GETITEM, 0, line, x, constant(p, at.line, at.value));
    jinja_node *node = unary(p, NODE_GETATTR, line, x);
    if (node) node->name = at.name;
    return node;
}

/* One argument of a call.  state: 0 while positional ones may come, 1 after a keyword, 2 after *, 3 after **. */
static jinja_node *parse_argument(jinja_parser *p, int *state)
{
    const jinja_token *next = NULL;
    const int          line = p->at.line;
    const bool         spread = gdn_jinja_at_op(p, '*'), spread_dict = gdn_jinja_at_op(p, OP_POW);
    if (!gdn_jinja_peek(p, &next)) return NULL;
    const bool keyword = p->at.kind == TOKEN_NAME && next->kind == TOKEN_OP && next->op == '=';
    const int  allowed = spread ? 1 : spread_dict || keyword ? 2 : 0;
    if (*state > allowed) {
        gdn_jinja_report(p->run, GDN_BAD_FILE, "an argument of a call stands where it cannot");
        return NULL;
    }
    if (!spread && !spread_dict && !keyword) return gdn_jinja_parse_expression(p, true);
    const jinja_string *name = p->at.name;
    if (!gdn_jinja_advance(p) || (keyword && !gdn_jinja_advance(p))) return NULL;
    jinja_node *node = unary(p, keyword ? NODE_KEYWORD : NODE_SPREAD, line, gdn_jinja_parse_expression(p, true));
    if (!node) return NULL;
    node->name = name;
    node->op = spread ? '*' : 'P';
    if (!keyword) *state = spread ? 2 : 3;
    else if (*state == 0) *state = 1;
    return node;
}

static bool parse_arguments(jinja_parser *p, jinja_node *node)
{
    int       state = 0;
    const int first = node->n_kids;
    if (!gdn_jinja_expect_op(p, '(')) return false;
    while (!gdn_jinja_at_op(p, ')')) {
        if (node->n_kids > first && !gdn_jinja_expect_op(p, ',')) return false;
        if (node->n_kids > first && gdn_jinja_at_op(p, ')')) break;
        jinja_node *argument = parse_argument(p, &state);
        if (!argument) return false;
        for (int i = first; i < node->n_kids && argument->kind == NODE_KEYWORD; i++)
            if (node->kids[i]->kind == NODE_KEYWORD && gdn_jinja_same(node->kids[i]->name, argument->name))
                return gdn_jinja_fail(p->run, GDN_BAD_FILE, "the argument %.*s is given twice", (int)argument->name->n,
                                      argument->name->bytes);
        if (!gdn_jinja_add_kid(p, node, argument)) return false;
    }
    return gdn_jinja_expect_op(p, ')');
}

static jinja_node *parse_call(jinja_parser *p, jinja_node *callee)
{
    jinja_node *node = unary(p, NODE_CALL, p->at.line, callee);
    return node && parse_arguments(p, node) ? node : NULL;
}

static jinja_node *parse_postfix(jinja_parser *p, jinja_node *node)
{
    while (node) {
        if (gdn_jinja_at_op(p, '.')) node = parse_attribute(p, node);
        else if (gdn_jinja_at_op(p, '[')) node = parse_subscript(p, node);
        else if (gdn_jinja_at_op(p, '(')) node = parse_call(p, node);
        else break;
    }
    return node;
}

/* The name of a filter or test, which may have dots. */
static const jinja_string *parse_dotted(jinja_parser *p, const char *what)
{
    const jinja_string *name = p->at.name;
    if (!gdn_jinja_expect(p, TOKEN_NAME, what)) return NULL;
    if (!gdn_jinja_at_op(p, '.')) return name;
    gdn_jinja_report(p->run, GDN_BAD_FILE, "there is no %s with a dot in it", what);
    return NULL;
}

jinja_node *gdn_jinja_parse_filters(jinja_parser *p, jinja_node *node, bool has_pipe)
{
    while (!has_pipe || gdn_jinja_at_op(p, '|')) {
        if (has_pipe && !gdn_jinja_advance(p)) return NULL;
        has_pipe = true;
        jinja_node *filter = gdn_jinja_node(p, NODE_FILTER, p->at.line, 0);
        if (!filter || !gdn_jinja_add_kid(p, filter, node)) return NULL;
        filter->name = parse_dotted(p, "a filter's name");
        if (!filter->name || (gdn_jinja_at_op(p, '(') && !parse_arguments(p, filter))) return NULL;
        filter->filter = gdn_jinja_find_filter(filter->name);
        node = filter;
    }
    return node;
}

/* Whether the argument of a test begins here, written without parentheses. */
static bool at_bare_argument(const jinja_parser *p)
{
    if (p->at.kind == TOKEN_CONST || gdn_jinja_at_op(p, '[') || gdn_jinja_at_op(p, '{')) return true;
    return p->at.kind == TOKEN_NAME && !gdn_jinja_at_name(p, "else") && !gdn_jinja_at_name(p, "or") &&
           !gdn_jinja_at_name(p, "and");
}

static jinja_node *parse_test(jinja_parser *p, jinja_node *x)
{
    const int line = p->at.line;
    bool      negated = false;
    if (!gdn_jinja_advance(p) || !gdn_jinja_skip_name(p, "not", &negated)) return NULL;
    jinja_node *node = unary(p, NODE_TEST, line, x);
    if (!node) return NULL;
    node->name = parse_dotted(p, "a test's name");
    if (!node->name) return NULL;
    if (gdn_jinja_at_op(p, '(')) {
        if (!parse_arguments(p, node)) return NULL;
    } else if (at_bare_argument(p)) {
        if (gdn_jinja_at_name(p, "is")) {
            gdn_jinja_report(p->run, GDN_BAD_FILE, "tests with 'is' cannot be chained; use 'and'");
            return NULL;
        }
        jinja_node *argument = parse_postfix(p, gdn_jinja_parse_primary(p, false));
        if (!argument || !gdn_jinja_add_kid(p, node, argument)) return NULL;
    }
    node->test = gdn_jinja_find_test(node->name);
    return negated ? unary(p, NODE_NOT, line, node) : node;
}

/* ---- operators ----------------------------------------------------------------------------------------------------------- */

static jinja_node *parse_unary(jinja_parser *p, bool with_filter)
{
    const int   line = p->at.line;
    const bool  minus = gdn_jinja_at_op(p, '-'), plus = gdn_jinja_at_op(p, '+');
    jinja_node *node;
    if (!gdn_jinja_deeper(p)) return NULL;
    if (minus || plus)
        node = gdn_jinja_advance(p) ? unary(p, minus ? NODE_NEGATE : NODE_PLUS, line, parse_unary(p, false)) : NULL;
    else node = gdn_jinja_parse_primary(p, false);
    node = parse_postfix(p, node);
    while (node && with_filter) {
        if (gdn_jinja_at_op(p, '|')) node = gdn_jinja_parse_filters(p, node, true);
        else if (gdn_jinja_at_name(p, "is")) node = parse_test(p, node);
        else if (gdn_jinja_at_op(p, '(')) node = parse_call(p, node);
        else break;
    }
    p->nesting--;
    return node;
}

static bool at_any(const jinja_parser *p, const char *ops)
{
    return p->at.kind == TOKEN_OP && p->at.op && strchr(ops, p->at.op);
}

/* Operators that group to the left, weakest first: + and - over ~ over * / // % over **. */
static jinja_node *parse_arithmetic(jinja_parser *p, int level)
{
    static const char *const levels[] = {"+-", "~", "*/F%", "P"};
    if (level == 4) return parse_unary(p, true);
    int         line = p->at.line;
    jinja_node *left = parse_arithmetic(p, level + 1);
    if (level == 1 && left && gdn_jinja_at_op(p, '~')) left = unary(p, NODE_CONCAT, line, left);
    while (left && at_any(p, levels[level])) {
        const char op = p->at.op;
        if (!gdn_jinja_advance(p)) return NULL;
        jinja_node *right = parse_arithmetic(p, level + 1);
        if (level != 1) left = binary(p, NODE_BINARY, op, line, left, right);
        else if (!right || !gdn_jinja_add_kid(p, left, right)) return NULL;
        line = p->at.line;
    }
    return left;
}

/* The comparison that begins here: 0 for none. */
static bool comparison(jinja_parser *p, char *op)
{
    const jinja_token *next;
    *op = 0;
    if (at_any(p, "en<l>g")) *op = p->at.op;
    if (gdn_jinja_at_name(p, "in")) *op = OP_IN;
    if (gdn_jinja_at_name(p, "not")) {
        if (!gdn_jinja_peek(p, &next)) return false;
        if (next->kind == TOKEN_NAME && gdn_jinja_is(next->name, "in")) *op = OP_NOT_IN;
    }
    return true;
}

static jinja_node *parse_compare(jinja_parser *p)
{
    const int   line = p->at.line;
    jinja_node *left = parse_arithmetic(p, 0), *node = NULL;
    char        op;
    while (left) {
        if (!comparison(p, &op)) return NULL;
        if (!op) break;
        if (!node && !(node = unary(p, NODE_COMPARE, line, left))) return NULL;
        if (!gdn_jinja_advance(p) || (op == OP_NOT_IN && !gdn_jinja_advance(p))) return NULL;
        jinja_node *operand = unary(p, NODE_OPERAND, p->at.line, parse_arithmetic(p, 0));
        if (!operand || !gdn_jinja_add_kid(p, node, operand)) return NULL;
        operand->op = (uint8_t)op;
    }
    return left && node ? node : left;
}

static jinja_node *parse_not(jinja_parser *p)
{
    const int line = p->at.line;
    if (!gdn_jinja_at_name(p, "not")) return parse_compare(p);
    if (!gdn_jinja_deeper(p) || !gdn_jinja_advance(p)) return NULL;
    jinja_node *node = unary(p, NODE_NOT, line, parse_not(p));
    p->nesting--;
    return node;
}

static jinja_node *parse_and(jinja_parser *p)
{
    int         line = p->at.line;
    jinja_node *left = parse_not(p);
    while (left && gdn_jinja_at_name(p, "and")) {
        if (!gdn_jinja_advance(p)) return NULL;
        left = binary(p, NODE_AND, 0, line, left, parse_not(p));
        line = p->at.line;
    }
    return left;
}

static jinja_node *parse_or(jinja_parser *p)
{
    int         line = p->at.line;
    jinja_node *left = parse_and(p);
    while (left && gdn_jinja_at_name(p, "or")) {
        if (!gdn_jinja_advance(p)) return NULL;
        left = binary(p, NODE_OR, 0, line, left, parse_and(p));
        line = p->at.line;
    }
    return left;
}

jinja_node *gdn_jinja_parse_expression(jinja_parser *p, bool with_condition)
{
    int         line = p->at.line;
    jinja_node *node = parse_or(p);
    while (node && with_condition && gdn_jinja_at_name(p, "if")) {
        bool        has_else = false;
        jinja_node *cond = gdn_jinja_node(p, NODE_COND, line, 0);
        if (!cond || !gdn_jinja_advance(p)) return NULL;
        jinja_node *condition = parse_or(p), *otherwise = NULL;
        if (!condition || !gdn_jinja_skip_name(p, "else", &has_else)) return NULL;
        if (has_else) {
            if (!gdn_jinja_deeper(p)) return NULL;
            otherwise = gdn_jinja_parse_expression(p, true);
            p->nesting--;
            if (!otherwise) return NULL;
        }
        if (!gdn_jinja_add_kid(p, cond, condition) || !gdn_jinja_add_kid(p, cond, node) ||
            !gdn_jinja_add_kid(p, cond, otherwise))
            return NULL;
        node = cond;
        line = p->at.line;
    }
    return node;
}
