/* The lexer: jinja2's with trim_blocks and lstrip_blocks on, and keep_trailing_newline off. */
#include "text/jinja_node.h"
#include <string.h>

/* Lines end with \n, \r\n or \r, and the last one's end is dropped. */
static size_t normalize(char *dst, const char *src, size_t n)
{
    size_t length = 0;
    for (size_t i = 0; i < n; i++) {
        if (src[i] == '\r' && i + 1 < n && src[i + 1] == '\n') continue;
        dst[length++] = src[i] == '\r' ? '\n' : src[i];
    }
    return length > 0 && dst[length - 1] == '\n' ? length - 1 : length;
}

bool gdn_jinja_lex_open(jinja_lexer *lexer, jinja_run *run, const char *source, size_t n)
{
    size_t wrong;
    if (n > JINJA_MAX_SOURCE)
        return gdn_jinja_fail(run, GDN_BAD_FILE, "the source has %zu bytes, more than %d", n, JINJA_MAX_SOURCE);
    if (!gdn_jinja_is_utf8(source, n, &wrong))
        return gdn_jinja_fail(run, GDN_BAD_FILE, "byte %zu of the source is not UTF-8", wrong);
    char *copy = gdn_jinja_alloc(run, n);
    if (!copy) return false;
    *lexer = (jinja_lexer){.run = run,
                           .src = copy,
                           .n = normalize(copy, source, n),
                           .line = 1,
                           .inside = TOKEN_DATA,
                           .begins = TOKEN_DATA,
                           .line_starting = true};
    return true;
}

/* ---- small matters ------------------------------------------------------------------------------------------------- */

static bool at(const jinja_lexer *l, size_t pos, const char *text)
{
    const size_t n = strlen(text);
    return n <= l->n - pos && !memcmp(l->src + pos, text, n);
}

static size_t skip_space(const jinja_lexer *l, size_t pos)
{
    while (pos < l->n) {
        size_t next = pos;
        if (!gdn_jinja_is_space(gdn_jinja_char(l->src, &next))) break;
        pos = next;
    }
    return pos;
}

static size_t strip_space(const jinja_lexer *l, size_t from, size_t to)
{
    while (to > from) {
        size_t start = gdn_jinja_char_before(l->src, to), next = start;
        if (!gdn_jinja_is_space(gdn_jinja_char(l->src, &next))) break;
        to = start;
    }
    return to;
}

static void move(jinja_lexer *l, size_t to) /* counting lines */
{
    for (; l->pos < to; l->pos++) l->line += l->src[l->pos] == '\n';
}

/* Behind the end of a tag that is closed by `close`: with "-" all whitespace is skipped, with "+" (where the tag knows it)
 * nothing, else one newline of tags other than variables.  0: no such end here. */
static size_t tag_end(const jinja_lexer *l, size_t pos, const char *close)
{
    const bool   variable = close[0] == '}';
    const size_t sign = pos < l->n && (l->src[pos] == '-' || (l->src[pos] == '+' && !variable));
    if (!at(l, pos + sign, close)) return 0;
    const size_t end = pos + sign + 2;
    if (sign) return l->src[pos] == '-' ? skip_space(l, end) : end;
    return !variable && end < l->n && l->src[end] == '\n' ? end + 1 : end;
}

static void close_tag(jinja_lexer *l, size_t end)
{
    l->line_starting = l->src[end - 1] == '\n';
    move(l, end);
    l->inside = TOKEN_DATA;
}

/* ---- text between tags ----------------------------------------------------------------------------------------------- */

/* Where the text from..to before a tag with this sign ends. */
static size_t trim_before(const jinja_lexer *l, size_t from, size_t to, char sign, bool variable)
{
    if (sign == '-') return strip_space(l, from, to);
    if (sign == '+' || variable) return to;
    size_t line = to;
    while (line > from && l->src[line - 1] != '\n') line--;
    if (line == from && !l->line_starting) return to;
    return strip_space(l, line, to) == line ? line : to;
}

static bool data_token(jinja_lexer *l, size_t from, size_t to, jinja_token *token)
{
    jinja_value text;
    if (!gdn_jinja_string(l->run, l->src + from, to - from, JINJA_TRUSTED, &text)) return false;
    *token = (jinja_token){.kind = TOKEN_DATA, .line = l->line, .name = text.as.string};
    return true;
}

static char sign_at(const jinja_lexer *l, size_t pos)
{
    return pos < l->n && (l->src[pos] == '-' || l->src[pos] == '+') ? l->src[pos] : 0;
}

/* Behind "{% word %}" at pos, where the end follows the rules of raw or of endraw.  0: it is not there. */
static size_t word_tag(const jinja_lexer *l, size_t pos, const char *word)
{
    if (!at(l, pos, "{%")) return 0;
    pos += 2;
    pos = skip_space(l, pos + (sign_at(l, pos) != 0));
    if (!at(l, pos, word)) return 0;
    pos = skip_space(l, pos + strlen(word));
    if (!strcmp(word, "endraw")) return tag_end(l, pos, "%}");
    if (at(l, pos, "-%}")) return skip_space(l, pos + 3);
    return at(l, pos, "%}") ? pos + 2 : 0;
}

static bool skip_comment(jinja_lexer *l)
{
    if (l->pos >= l->n) return true; /* jinja2 lets the last two bytes of a template begin a comment */
    for (size_t pos = l->pos; pos < l->n; pos++) {
        const size_t end = tag_end(l, pos, "#}");
        if (!end) continue;
        close_tag(l, end);
        return true;
    }
    return gdn_jinja_fail(l->run, GDN_BAD_FILE, "a comment is not closed; end it with #}");
}

/* The body of a raw block, behind its opening tag. */
static bool raw_token(jinja_lexer *l, jinja_token *token)
{
    if (l->pos >= l->n) return data_token(l, l->n, l->n, token); /* likewise */
    for (size_t pos = l->pos; pos < l->n; pos++) {
        const size_t end = word_tag(l, pos, "endraw");
        if (!end) continue;
        if (!data_token(l, l->pos, trim_before(l, l->pos, pos, sign_at(l, pos + 2), false), token)) return false;
        close_tag(l, end);
        return true;
    }
    return gdn_jinja_fail(l->run, GDN_BAD_FILE, "a raw block is not closed; end it with {%% endraw %%}");
}

static bool find_tag(const jinja_lexer *l, size_t *pos)
{
    for (*pos = l->pos; *pos + 1 < l->n; ++*pos) {
        const char second = l->src[*pos + 1];
        if (l->src[*pos] == '{' && (second == '{' || second == '%' || second == '#')) return true;
    }
    return false;
}

/* The text up to the next tag, which then begins. */
static bool lex_data(jinja_lexer *l, jinja_token *token)
{
    const size_t from = l->pos;
    size_t       tag;
    if (!find_tag(l, &tag)) {
        if (!data_token(l, from, l->n, token)) return false;
        move(l, l->n);
        return true;
    }
    const size_t raw = word_tag(l, tag, "raw");
    const char   kind = l->src[tag + 1], sign = sign_at(l, tag + 2);
    if (!data_token(l, from, trim_before(l, from, tag, sign, kind == '{'), token)) return false;
    l->begins = raw ? TOKEN_EOF : kind == '{' ? TOKEN_VARIABLE_BEGIN : kind == '%' ? TOKEN_BLOCK_BEGIN : TOKEN_OP;
    l->line_starting = raw && l->src[raw - 1] == '\n';
    move(l, raw ? raw : tag + 2 + (sign != 0));
    return true;
}

/* What l->begins announces: EOF stands for a raw block, OP for a comment, neither of which is a token. */
static bool begin_tag(jinja_lexer *l, jinja_token *token)
{
    const jinja_token_kind begins = l->begins;
    l->begins = TOKEN_DATA;
    l->run->line = l->line;
    if (begins == TOKEN_EOF) return raw_token(l, token);
    *token = (jinja_token){.kind = begins, .line = l->line};
    if (begins == TOKEN_OP) return skip_comment(l);
    l->inside = begins;
    l->n_closers = 0;
    return true;
}

/* ---- inside tags ------------------------------------------------------------------------------------------------------- */

static bool is_name_char(uint32_t c) { return c == '_' || gdn_jinja_is_alnum(c) || gdn_jinja_is_mark(c); }

static bool lex_name(jinja_lexer *l, jinja_token *token)
{
    size_t         end = l->pos;
    const uint32_t first = gdn_jinja_char(l->src, &end);
    for (size_t next = end; next < l->n; end = next)
        if (!is_name_char(gdn_jinja_char(l->src, &next))) break;
    if (first != '_' && !gdn_jinja_is_alpha(first))
        return gdn_jinja_fail(l->run, GDN_BAD_FILE, "a name cannot begin like '%.*s'", (int)(end - l->pos),
                              l->src + l->pos);
    jinja_value text;
    if (!gdn_jinja_string(l->run, l->src + l->pos, end - l->pos, JINJA_TRUSTED, &text)) return false;
    token->kind = TOKEN_NAME;
    token->name = text.as.string;
    l->pos = end;
    return true;
}

static bool balance(jinja_lexer *l, char op)
{
    const char closer = op == '(' ? ')' : op == '[' ? ']' : op == '{' ? '}' : 0;
    if (closer) {
        if (l->n_closers == JINJA_MAX_NESTING)
            return gdn_jinja_fail(l->run, GDN_BAD_FILE, "brackets are nested more than %d deep", JINJA_MAX_NESTING);
        l->closers[l->n_closers++] = closer;
    } else if (op == ')' || op == ']' || op == '}') {
        if (l->n_closers == 0) return gdn_jinja_fail(l->run, GDN_BAD_FILE, "unexpected '%c'", op);
        if (l->closers[--l->n_closers] != op)
            return gdn_jinja_fail(l->run, GDN_BAD_FILE, "unexpected '%c', expected '%c'", op, l->closers[l->n_closers]);
    }
    return true;
}

static bool lex_op(jinja_lexer *l, jinja_token *token)
{
    static const struct {
        char text[3], op;
    } pairs[] = {{"//", OP_FLOORDIV}, {"**", OP_POW}, {"==", OP_EQ}, {"!=", OP_NE}, {">=", OP_GE}, {"<=", OP_LE}};
    token->kind = TOKEN_OP;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (at(l, l->pos, pairs[i].text)) {
            token->op = pairs[i].op;
            l->pos += 2;
            return true;
        }
    token->op = l->src[l->pos];
    if (!token->op || !strchr("+-/*%~[](){}<>=.:|,;", token->op)) {
        size_t end = l->pos;
        gdn_jinja_char(l->src, &end);
        return gdn_jinja_fail(l->run, GDN_BAD_FILE, "unexpected character '%.*s'", (int)(end - l->pos),
                              l->src + l->pos);
    }
    l->pos++;
    return balance(l, token->op);
}

static bool lex_inside(jinja_lexer *l, jinja_token *token)
{
    const bool variable = l->inside == TOKEN_VARIABLE_BEGIN;
    size_t     end = l->n_closers ? 0 : tag_end(l, l->pos, variable ? "}}" : "%}");
    if (!end) {
        move(l, skip_space(l, l->pos));
        end = l->n_closers ? 0 : tag_end(l, l->pos, variable ? "}}" : "%}");
    }
    *token = (jinja_token){.kind = TOKEN_EOF, .line = l->line};
    l->run->line = l->line;
    if (end) {
        token->kind = variable ? TOKEN_VARIABLE_END : TOKEN_BLOCK_END;
        close_tag(l, end);
        return true;
    }
    if (l->pos >= l->n) return true;
    size_t     pos = l->pos;
    const char c = l->src[pos];
    token->kind = TOKEN_CONST;
    if (gdn_jinja_lex_number(l->run, l->src, l->n, &pos, &token->value)) {
        l->pos = pos;
        return true;
    }
    if (l->run->status) return false;
    if ((c == '"' || c == '\'') && gdn_jinja_lex_string(l->run, l->src, l->n, &pos, &token->value)) {
        move(l, pos);
        return true;
    }
    if (l->run->status) return false;
    size_t next = pos;
    return is_name_char(gdn_jinja_char(l->src, &next)) ? lex_name(l, token) : lex_op(l, token);
}

bool gdn_jinja_lex(jinja_lexer *l, jinja_token *token)
{
    for (;;) {
        if (!gdn_jinja_charge(l->run, 1)) return false;
        if (l->inside != TOKEN_DATA) return lex_inside(l, token);
        if (l->begins != TOKEN_DATA) {
            if (!begin_tag(l, token)) return false;
            if (token->kind == TOKEN_OP) continue;
        } else if (l->pos >= l->n) {
            *token = (jinja_token){.kind = TOKEN_EOF, .line = l->line};
        } else if (!lex_data(l, token)) return false;
        if (token->kind != TOKEN_DATA || token->name->n > 0) return true;
    }
}
