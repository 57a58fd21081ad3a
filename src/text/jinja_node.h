/* text/jinja_node.h - a parsed template: tokens, nodes, scopes. */
#ifndef GDN_TEXT_JINJA_NODE_H
#define GDN_TEXT_JINJA_NODE_H
#include "text/jinja.h"
#include <locale.h>

enum {
    JINJA_MAX_NESTING = 150, /* of expressions and statements */
    JINJA_MAX_SOURCE = 1 << 20,
};

/* ---- tokens (jinja_lex.c) ---------------------------------------------------------------------------------------- */

typedef enum jinja_token_kind {
    TOKEN_EOF,
    TOKEN_DATA,
    TOKEN_VARIABLE_BEGIN,
    TOKEN_VARIABLE_END,
    TOKEN_BLOCK_BEGIN,
    TOKEN_BLOCK_END,
    TOKEN_NAME,
    TOKEN_CONST, /* a string, an integer or a float */
    TOKEN_OP,    /* op: one of + - * / % ~ [ ] ( ) { } < > = . : | , ; or, for two characters, see below */
} jinja_token_kind;

enum {
    OP_FLOORDIV = 'F',
    OP_POW = 'P',
    OP_EQ = 'e',
    OP_NE = 'n',
    OP_LE = 'l',
    OP_GE = 'g',
    OP_IN = 'i',
    OP_NOT_IN = 'o'
};

typedef struct jinja_token {
    jinja_token_kind    kind;
    char                op;
    int                 line;
    const jinja_string *name; /* of a name, the text of data */
    jinja_value         value;
} jinja_token;

typedef struct jinja_lexer {
    jinja_run       *run;
    const char      *src;
    size_t           n, pos;
    int              line;
    jinja_token_kind inside; /* the kind of the tag we are in, or TOKEN_DATA */
    jinja_token_kind begins; /* the tag that begins after the data just given, or TOKEN_DATA */
    bool             line_starting;
    int              n_closers;
    char             closers[JINJA_MAX_NESTING];
} jinja_lexer;

bool gdn_jinja_lex_open(jinja_lexer *lexer, jinja_run *run, const char *source, size_t n);
bool gdn_jinja_lex(jinja_lexer *lexer, jinja_token *token);
/* The value of the number at src[*pos], *pos behind it; false with run->status 0: there is no number. */
bool gdn_jinja_lex_number(jinja_run *run, const char *src, size_t n, size_t *pos, jinja_value *out);
/* Of the string literal that begins with the quote at src[*pos]; likewise. */
bool gdn_jinja_lex_string(jinja_run *run, const char *src, size_t n, size_t *pos, jinja_value *out);

/* ---- nodes (jinja_parse.c, jinja_statement.c) ---------------------------------------------------------------------- */

/* What the kids are; [x] may be NULL, x* is any number.  Arguments are expressions, then KEYWORDs and SPREADs. */
typedef enum jinja_node_kind {
    NODE_CONST,   /* value */
    NODE_NAME,    /* hops, slot: where its value is; op: 'l' read, 's' set, 't' set by a loop, 'p' a parameter */
    NODE_NSREF,   /* namespace name, attribute text: a place to store to */
    NODE_TUPLE,   /* item* */
    NODE_LIST,    /* item* */
    NODE_DICT,    /* (key, value)* */
    NODE_BINARY,  /* op; left, right */
    NODE_NEGATE,  /* x */
    NODE_PLUS,    /* x */
    NODE_NOT,     /* x */
    NODE_AND,     /* left, right */
    NODE_OR,      /* left, right */
    NODE_CONCAT,  /* x* */
    NODE_COMPARE, /* left, OPERAND* */
    NODE_OPERAND, /* op; right */
    NODE_GETATTR, /* name; x */
    NODE_GETITEM, /* x, key */
    NODE_SLICE,   /* [start], [stop], [step] */
    NODE_CALL,    /* callee, argument* */
    NODE_FILTER,  /* filter, name; [x], argument*; without x it takes the text of the block around it */
    NODE_TEST,    /* test, name; x, argument* */
    NODE_KEYWORD, /* name; x */
    NODE_SPREAD,  /* op '*' or 'P' (**); x */
    NODE_COND,    /* condition, then, [else] */

    NODE_BLOCK,        /* statement* */
    NODE_OUTPUT,       /* expression* */
    NODE_IF,           /* condition, block, [elifs: a BLOCK of IFs], [else] */
    NODE_FOR,          /* target, iterable, body, [else], [test, target of the test]; op 'r' if recursive */
    NODE_SET,          /* target, value */
    NODE_SET_BLOCK,    /* target, [filter], body */
    NODE_MACRO,        /* name; (parameter, [default])*, body */
    NODE_CALL_BLOCK,   /* [call], (parameter, [default])*, body; without a call, the body runs once */
    NODE_FILTER_BLOCK, /* body, filter */
    NODE_WITH,         /* (target, value)*, body */
    NODE_BREAK,
    NODE_CONTINUE,
} jinja_node_kind;

typedef struct jinja_node  jinja_node;
typedef struct jinja_scope jinja_scope;
struct jinja_node {
    uint8_t             kind, op;
    uint8_t             depth; /* 1 + the greatest of its kids */
    uint8_t             hops;
    int                 line, slot, n_kids;
    jinja_node        **kids;
    const jinja_string *name, *text;
    jinja_value         value;
    const jinja_filter *filter;
    const jinja_test   *test;
    const jinja_scope  *scope; /* of the body: FOR, SET_BLOCK, MACRO, CALL_BLOCK, FILTER_BLOCK, WITH */
    const jinja_scope  *else_scope, *test_scope; /* FOR */
};

/* How a variable begins when its scope is entered. */
enum { LOAD_KEEP, LOAD_MISSING, LOAD_RESOLVE, LOAD_ALIAS };
typedef struct jinja_load {
    uint8_t             action, hops;
    int                 slot, from; /* from: the slot `hops` functions out that an alias copies */
    const jinja_string *name;
} jinja_load;

/* The variables that a block has for itself.  Scopes lie in the frames of functions: the template, macros, call blocks,
 * recursive loops and the tests of loops each have one. */
struct jinja_scope {
    jinja_load *loads;
    int         n_loads;
    int         n_slots; /* of the frame, where the scope is a function's */
    bool        function;
    int         loop;                    /* slot of `loop` in the body of a FOR */
    int         caller, kwargs, varargs; /* slots of a macro's implicit parameters; -1: it does not use them */
    bool        explicit_caller;         /* one of its parameters is called caller */
};

struct gdn_template {
    jinja_run    run; /* owns what the nodes are made of */
    locale_t     locale;
    jinja_node  *root;
    jinja_scope *scope;
};

typedef struct jinja_parser {
    jinja_run  *run;
    jinja_lexer lexer;
    jinja_token at, next; /* next.kind is valid if has_next */
    bool        has_next;
    int         nesting;
    int         n_loops; /* around the statement, in its function */
} jinja_parser;

bool gdn_jinja_parse(jinja_run *run, const char *source, size_t n, jinja_node **root);
/* Give every name its slot, and every scope its loads. */
bool gdn_jinja_resolve(jinja_run *run, jinja_node *root, jinja_scope **scope);

/* Of the parser, for its two halves. */
bool        gdn_jinja_advance(jinja_parser *p);
bool        gdn_jinja_peek(jinja_parser *p, const jinja_token **next);
bool        gdn_jinja_at_name(const jinja_parser *p, const char *name);
bool        gdn_jinja_at_op(const jinja_parser *p, char op);
bool        gdn_jinja_skip_name(jinja_parser *p, const char *name, bool *skipped);
bool        gdn_jinja_skip_op(jinja_parser *p, char op, bool *skipped);
bool        gdn_jinja_expect_op(jinja_parser *p, char op);
bool        gdn_jinja_expect(jinja_parser *p, jinja_token_kind kind, const char *wanted);
bool        gdn_jinja_unexpected(jinja_parser *p, const char *wanted);                   /* fails */
bool        gdn_jinja_deeper(jinja_parser *p);                                           /* undo with p->nesting-- */
jinja_node *gdn_jinja_node(jinja_parser *p, jinja_node_kind kind, int line, int n_kids); /* kids NULL */
/* Append a kid; NULL is one too. */
bool        gdn_jinja_add_kid(jinja_parser *p, jinja_node *node, jinja_node *kid);
jinja_node *gdn_jinja_parse_expression(jinja_parser *p, bool with_condition);
enum { TUPLE_CONDITIONS = 1, TUPLE_PARENTHESES = 2, TUPLE_TARGETS = 4, TUPLE_NAMESPACES = 8 };
/* A tuple or a lone expression. */
jinja_node *gdn_jinja_parse_tuple(jinja_parser *p, int flags);
jinja_node *gdn_jinja_parse_primary(jinja_parser *p, bool with_namespace);
jinja_node *gdn_jinja_parse_filters(jinja_parser *p, jinja_node *node, bool has_pipe);

/* ---- running (jinja_eval.c, jinja_exec.c) -------------------------------------------------------------------------- */

struct jinja_frame {
    jinja_frame *outer;
    jinja_value  slots[];
};

struct jinja_macro {
    const jinja_node *node;
    jinja_frame      *outer;
};

struct jinja_loop {
    const jinja_node *node;
    jinja_frame      *outer;      /* where the loop stands */
    jinja_frame      *test_frame; /* NULL: no test */
    jinja_iter        source;
    jinja_value       before, current, after, changed;
    int64_t           index0, length; /* length -1: not known yet */
    int               depth0;
};

typedef enum jinja_flow { FLOW_FAIL, FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE } jinja_flow;

bool         gdn_jinja_eval(jinja_run *run, const jinja_node *node, jinja_value *out);
jinja_flow   gdn_jinja_exec(jinja_run *run, const jinja_node *node);
bool         gdn_jinja_eval_args(jinja_run *run, const jinja_node *node, int first, const jinja_value *caller,
                                 jinja_args *args);
bool         gdn_jinja_store(jinja_run *run, const jinja_node *target, const jinja_value *v);
jinja_frame *gdn_jinja_new_frame(jinja_run *run, const jinja_scope *scope, jinja_frame *outer);
bool         gdn_jinja_enter_scope(jinja_run *run, const jinja_scope *scope);
bool         gdn_jinja_call_macro(jinja_run *run, const jinja_macro *macro, const jinja_args *args, jinja_value *out);
bool         gdn_jinja_loop_attr(jinja_run *run, jinja_loop *loop, const jinja_string *name, jinja_value *out);
bool         gdn_jinja_loop_call(jinja_run *run, jinja_loop *loop, const jinja_args *args, jinja_value *out);
bool         gdn_jinja_resolve_name(jinja_run *run, const jinja_string *name, jinja_value *out); /* or MISSING */

#endif
