/* Which variable a name means.  jinja2 decides it before a template runs, by rules that are not those of a walk at run
 * time (a name that a block sets anywhere is the block's own in all of it), so we decide it likewise:
 *
 * Every block with variables of its own (the template, the body of a loop or a macro, ...) has symbols.  They are
 * collected from its statements, not entering inner blocks; a name that is read and known nowhere comes out of the
 * variables of the rendering, one that is set is the block's own, and begins as a copy of the outer one if there is one. */
#include "text/jinja_node.h"
#include <string.h>

typedef struct function {
    int n_slots;
} function;

/* What one path through the block has made of a name. */
typedef struct state {
    bool    defined, stored;
    uint8_t action, hops; /* as in jinja_load */
    int     from;
} state;

typedef struct names {
    const jinja_string **name;
    int                 *slot;
    int                  n, cap;
} names;

typedef struct symbols symbols;
struct symbols {
    const symbols *outer;
    function      *function; /* whose frame the slots are in */
    names         *names;    /* shared by all paths */
    state         *states;   /* of this path, by index of names */
    int            n_states;
};

typedef struct resolver {
    jinja_run *run;     /* of the template */
    jinja_run *scratch; /* of the tables, which end with the resolver */
    bool       soft;    /* inside an if: an unknown filter fails only when it is used */
} resolver;

/* ---- the table ----------------------------------------------------------------------------------------------------------- */

static bool open_symbols(resolver *r, symbols *s, const symbols *outer, bool own_function)
{
    *s = (symbols){.outer = outer, .function = outer ? outer->function : NULL};
    s->names = gdn_jinja_alloc(r->scratch, sizeof *s->names);
    if (own_function) s->function = gdn_jinja_alloc(r->scratch, sizeof *s->function);
    if (!s->names || !s->function) return false;
    *s->names = (names){.name = NULL};
    if (own_function) s->function->n_slots = 0;
    return true;
}

static int find(const symbols *s, const jinja_string *name)
{
    for (int i = 0; i < s->n_states; i++)
        if (s->states[i].defined && gdn_jinja_same(s->names->name[i], name)) return i;
    return -1;
}

/* The slot of a name in these symbols or around them; *hops: how many functions out. */
static bool find_ref(const symbols *s, const jinja_string *name, uint8_t *hops, int *slot)
{
    *hops = 0;
    for (; s; s = s->outer) {
        const int i = find(s, name);
        if (i >= 0) {
            *slot = s->names->slot[i];
            return true;
        }
        *hops = (uint8_t)(*hops + (s->outer && s->outer->function != s->function));
    }
    return false;
}

static int add_name(resolver *r, symbols *s, const jinja_string *name)
{
    names *all = s->names;
    if (all->n == all->cap) {
        const size_t old = (size_t)all->n, cap = old ? 2 * old : 8;
        all->name = gdn_jinja_grow(r->scratch, all->name, old * sizeof *all->name, cap * sizeof *all->name);
        all->slot =
            all->name ? gdn_jinja_grow(r->scratch, all->slot, old * sizeof *all->slot, cap * sizeof *all->slot) : NULL;
        if (!all->slot) return -1;
        all->cap = (int)cap;
    }
    all->name[all->n] = name;
    all->slot[all->n] = s->function->n_slots++;
    return all->n++;
}

static state *define(resolver *r, symbols *s, const jinja_string *name, state what)
{
    int i = 0;
    if (!gdn_jinja_charge(r->scratch, (size_t)s->names->n + 1)) return NULL;
    while (i < s->names->n && !gdn_jinja_same(s->names->name[i], name)) i++;
    if (i == s->names->n) i = add_name(r, s, name);
    if (i < 0) return NULL;
    if (i >= s->n_states) {
        const size_t old = (size_t)s->n_states, n = (size_t)s->names->cap;
        s->states = gdn_jinja_grow(r->scratch, s->states, old * sizeof what, n * sizeof what);
        if (!s->states) return NULL;
        memset(s->states + old, 0, (n - old) * sizeof what);
        s->n_states = (int)n;
    }
    s->states[i] = what;
    s->states[i].defined = true;
    return &s->states[i];
}

static bool declare(resolver *r, symbols *s, const jinja_string *name)
{
    return define(r, s, name, (state){.stored = true, .action = LOAD_KEEP}) != NULL;
}

static bool load(resolver *r, symbols *s, const jinja_string *name)
{
    uint8_t hops;
    int     slot;
    return find_ref(s, name, &hops, &slot) || define(r, s, name, (state){.action = LOAD_RESOLVE});
}

/* What a name that the block sets is when the block begins. */
static state before(const symbols *s, const jinja_string *name, uint8_t otherwise)
{
    state from = {.stored = true, .action = LOAD_ALIAS};
    if (s->outer && find_ref(s->outer, name, &from.hops, &from.from)) {
        from.hops = (uint8_t)(from.hops + (s->outer->function != s->function));
        return from;
    }
    return (state){.stored = true, .action = otherwise};
}

static bool store(resolver *r, symbols *s, const jinja_string *name)
{
    const int i = find(s, name);
    if (i >= 0 && s->states) {
        s->states[i].stored = true;
        return true;
    }
    return define(r, s, name, before(s, name, LOAD_MISSING)) != NULL;
}

/* ---- collecting ------------------------------------------------------------------------------------------------------------ */

static bool collect(resolver *r, symbols *s, const jinja_node *node);

static bool collect_kids(resolver *r, symbols *s, const jinja_node *node, int first, int last, int step)
{
    for (int i = first; i < last; i += step)
        if (node->kids[i] && !collect(r, s, node->kids[i])) return false;
    return true;
}

static bool copy_path(resolver *r, const symbols *s, symbols *path)
{
    *path = *s;
    path->states = gdn_jinja_array(r->scratch, (size_t)s->n_states, sizeof *s->states);
    if (!path->states || !gdn_jinja_charge(r->scratch, (size_t)s->n_states)) return false;
    if (s->n_states) memcpy(path->states, s->states, (size_t)s->n_states * sizeof *s->states);
    return true;
}

/* Join the paths of an if: what only some of them set begins as what it was before. */
static bool join(resolver *r, symbols *s, const symbols paths[3])
{
    symbols old;
    if (!copy_path(r, s, &old)) return false;
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < paths[k].n_states; i++)
            if (paths[k].states[i].defined && !define(r, s, s->names->name[i], paths[k].states[i])) return false;
    for (int i = 0; i < s->n_states; i++) {
        bool stored = false;
        for (int k = 0; k < 3; k++) stored |= i < paths[k].n_states && paths[k].states[i].stored;
        if (!s->states[i].defined || !stored) continue;
        const bool had = i < old.n_states && old.states[i].stored;
        if (!had) s->states[i] = before(s, s->names->name[i], LOAD_RESOLVE);
        s->states[i].defined = s->states[i].stored = true;
    }
    return true;
}

static bool collect_if(resolver *r, symbols *s, const jinja_node *node)
{
    symbols paths[3];
    if (!collect(r, s, node->kids[0])) return false;
    for (int k = 0; k < 3; k++)
        if (!copy_path(r, s, &paths[k]) || (node->kids[k + 1] && !collect(r, &paths[k], node->kids[k + 1])))
            return false;
    return join(r, s, paths);
}

static bool collect(resolver *r, symbols *s, const jinja_node *node)
{
    if (!gdn_jinja_charge(r->scratch, 1)) return false;
    switch (node->kind) {
    case NODE_NAME:
        return node->op == 'l'   ? load(r, s, node->name)
               : node->op == 's' ? store(r, s, node->name)
                                 : declare(r, s, node->name);
    case NODE_NSREF: return load(r, s, node->name);
    case NODE_IF: return collect_if(r, s, node);
    case NODE_MACRO: return store(r, s, node->name);
    case NODE_SET: return collect(r, s, node->kids[1]) && collect(r, s, node->kids[0]);
    case NODE_SET_BLOCK: return collect(r, s, node->kids[0]);
    case NODE_FOR: return collect(r, s, node->kids[1]);
    case NODE_CALL_BLOCK: return collect_kids(r, s, node, 0, 1, 1);
    case NODE_FILTER_BLOCK: return collect(r, s, node->kids[1]);
    case NODE_WITH: return collect_kids(r, s, node, 1, node->n_kids - 1, 2);
    default: return collect_kids(r, s, node, 0, node->n_kids, 1);
    }
}

/* ---- scopes ------------------------------------------------------------------------------------------------------------------ */

static bool resolve(resolver *r, symbols *s, jinja_node *node);

static bool close_symbols(resolver *r, const symbols *s, bool own_function, jinja_scope **out)
{
    jinja_scope *scope = gdn_jinja_alloc(r->run, sizeof *scope);
    if (!scope) return false;
    *scope = (jinja_scope){.function = own_function,
                           .n_slots = s->function->n_slots,
                           .loop = -1,
                           .caller = -1,
                           .kwargs = -1,
                           .varargs = -1};
    scope->loads = gdn_jinja_array(r->run, (size_t)s->names->n, sizeof *scope->loads);
    if (!scope->loads) return false;
    for (int i = 0; i < s->n_states; i++)
        if (s->states[i].defined)
            scope->loads[scope->n_loads++] = (jinja_load){.action = s->states[i].action,
                                                          .hops = s->states[i].hops,
                                                          .slot = s->names->slot[i],
                                                          .from = s->states[i].from,
                                                          .name = s->names->name[i]};
    *out = scope;
    return true;
}

static bool resolve_kids(resolver *r, symbols *s, const jinja_node *node, int first, int last, int step)
{
    for (int i = first; i < last; i += step)
        if (node->kids[i] && !resolve(r, s, node->kids[i])) return false;
    return true;
}

/* The statements of a new scope. */
static bool resolve_inner(resolver *r, symbols *inner, jinja_node *body)
{
    const bool soft = r->soft;
    r->soft = false;
    const bool ok = !body || resolve(r, inner, body);
    r->soft = soft;
    return ok;
}

/* Whether the name is read before it is set, in the order of the text. */
static bool reads(const jinja_node *node, const jinja_string *name, bool *set)
{
    if (node->kind == NODE_NAME && gdn_jinja_same(node->name, name)) {
        if (node->op == 'l') return true;
        *set = true;
    }
    for (int i = 0; i < node->n_kids && !*set; i++)
        if (node->kids[i] && reads(node->kids[i], name, set)) return true;
    return false;
}

static bool sets_loop(const jinja_node *node)
{
    if (node->kind == NODE_NAME && (node->op == 's' || node->op == 't') && gdn_jinja_is(node->name, "loop"))
        return true;
    for (int i = 0; i < node->n_kids; i++)
        if (node->kids[i] && sets_loop(node->kids[i])) return true;
    return false;
}

static int slot_of(const symbols *s, const jinja_string *name)
{
    const int i = find(s, name);
    return i < 0 ? -1 : s->names->slot[i];
}

static const jinja_string name_loop = {.bytes = "loop", .n = 4, .n_chars = 4};
static const jinja_string name_caller = {.bytes = "caller", .n = 6, .n_chars = 6};
static const jinja_string name_kwargs = {.bytes = "kwargs", .n = 6, .n_chars = 6};
static const jinja_string name_varargs = {.bytes = "varargs", .n = 7, .n_chars = 7};

static bool resolve_for(resolver *r, symbols *s, jinja_node *node)
{
    jinja_node  *otherwise = node->kids[3], *test = node->kids[4];
    const bool   recursive = node->op == 'r';
    symbols      body, rest, tested;
    jinja_scope *scope;
    if (sets_loop(node)) return gdn_jinja_fail(r->run, GDN_BAD_FILE, "a loop cannot assign to 'loop'");
    if (!resolve(r, s, node->kids[1]) || !open_symbols(r, &body, s, recursive) || !declare(r, &body, &name_loop) ||
        !collect(r, &body, node->kids[0]) || !collect(r, &body, node->kids[2]) ||
        !resolve_inner(r, &body, node->kids[0]) || !resolve_inner(r, &body, node->kids[2]))
        return false;
    if (otherwise) {
        if (!open_symbols(r, &rest, s, false)) return false;
        rest.function = body.function;
        if (!collect(r, &rest, otherwise) || !resolve_inner(r, &rest, otherwise) ||
            !close_symbols(r, &rest, false, &scope))
            return false;
        node->else_scope = scope;
    }
    if (test) {
        if (!open_symbols(r, &tested, s, true) || !collect(r, &tested, node->kids[5]) || !collect(r, &tested, test) ||
            !resolve_inner(r, &tested, node->kids[5]) || !resolve_inner(r, &tested, test) ||
            !close_symbols(r, &tested, true, &scope))
            return false;
        node->test_scope = scope;
    }
    if (!close_symbols(r, &body, recursive, &scope)) return false;
    scope->loop = slot_of(&body, &name_loop);
    node->scope = scope;
    return true;
}

/* A macro, or the body of a call block: pairs of parameter and default from kids[first] on, then the body. */
static bool resolve_macro(resolver *r, symbols *s, jinja_node *node, int first)
{
    const int         last = node->n_kids - 1;
    const jinja_node *body = node->kids[last];
    symbols           inner;
    jinja_scope      *scope;
    bool              explicit_caller = false, set[3] = {false};
    if (!open_symbols(r, &inner, s, true)) return false;
    for (int i = first; i < last; i += 2) {
        const bool caller = gdn_jinja_same(node->kids[i]->name, &name_caller);
        explicit_caller |= caller;
        if (caller && !node->kids[i + 1])
            return gdn_jinja_fail(r->run, GDN_BAD_FILE, "the parameter 'caller' of a macro needs a default");
        if (!declare(r, &inner, node->kids[i]->name)) return false;
    }
    const bool kwargs = reads(body, &name_kwargs, &set[0]) && find(&inner, &name_kwargs) < 0;
    const bool varargs = reads(body, &name_varargs, &set[1]) && find(&inner, &name_varargs) < 0;
    const bool caller = reads(body, &name_caller, &set[2]);
    if ((caller && !explicit_caller && !declare(r, &inner, &name_caller)) ||
        (kwargs && !declare(r, &inner, &name_kwargs)) || (varargs && !declare(r, &inner, &name_varargs)) ||
        !collect_kids(r, &inner, node, first + 1, last, 2) || !collect(r, &inner, body))
        return false;
    const bool soft = r->soft;
    r->soft = false;
    if (!resolve_kids(r, &inner, node, first, node->n_kids, 1) || !close_symbols(r, &inner, true, &scope)) return false;
    r->soft = soft;
    if (caller && !explicit_caller) scope->caller = slot_of(&inner, &name_caller);
    if (kwargs) scope->kwargs = slot_of(&inner, &name_kwargs);
    if (varargs) scope->varargs = slot_of(&inner, &name_varargs);
    scope->explicit_caller = explicit_caller;
    node->scope = scope;
    return true;
}

/* SET_BLOCK, FILTER_BLOCK, WITH: scopes in the frame around them. */
static bool resolve_block(resolver *r, symbols *s, jinja_node *node)
{
    const bool   with = node->kind == NODE_WITH;
    symbols      inner;
    jinja_scope *scope;
    if (node->kind == NODE_SET_BLOCK && !resolve(r, s, node->kids[0])) return false;
    if (with && !resolve_kids(r, s, node, 1, node->n_kids - 1, 2)) return false;
    if (!open_symbols(r, &inner, s, false)) return false;
    const bool soft = r->soft;
    const int  first = node->kind == NODE_SET_BLOCK ? 1 : 0, step = with ? 2 : 1;
    r->soft = false;
    if (!collect_kids(r, &inner, node, first, node->n_kids, step) ||
        !resolve_kids(r, &inner, node, first, node->n_kids, step) || !close_symbols(r, &inner, false, &scope))
        return false;
    r->soft = soft;
    node->scope = scope;
    return true;
}

static bool check_filter(resolver *r, const jinja_node *node)
{
    const jinja_string *name = node->name;
    const bool          test = node->kind == NODE_TEST;
    if (r->soft || (test && node->test) || (!test && node->filter && node->filter->fn)) return true;
    if (!test && node->filter)
        return gdn_jinja_fail(r->run, GDN_UNSUPPORTED, "the filter '%s' is not supported", node->filter->name);
    return gdn_jinja_fail(r->run, GDN_BAD_FILE, "there is no %s '%.*s'", test ? "test" : "filter", (int)name->n,
                          name->bytes);
}

static bool resolve_name(resolver *r, const symbols *s, jinja_node *node, const jinja_string *name)
{
    if (find_ref(s, name, &node->hops, &node->slot)) return true;
    return gdn_jinja_fail(r->run, GDN_BAD_FILE, "the name '%.*s' cannot be resolved", (int)name->n, name->bytes);
}

static bool resolve(resolver *r, symbols *s, jinja_node *node)
{
    const bool soft = r->soft;
    bool       ok = true;
    r->run->line = node->line;
    switch (node->kind) {
    case NODE_NAME:
    case NODE_NSREF: return resolve_name(r, s, node, node->name);
    case NODE_FOR: return resolve_for(r, s, node);
    case NODE_MACRO: return resolve_name(r, s, node, node->name) && resolve_macro(r, s, node, 0);
    case NODE_CALL_BLOCK: return (!node->kids[0] || resolve(r, s, node->kids[0])) && resolve_macro(r, s, node, 1);
    case NODE_SET_BLOCK:
    case NODE_FILTER_BLOCK:
    case NODE_WITH: return resolve_block(r, s, node);
    case NODE_FILTER:
    case NODE_TEST: ok = check_filter(r, node); break;
    case NODE_IF:
    case NODE_COND: r->soft = true; break;
    default: break;
    }
    ok = ok && resolve_kids(r, s, node, 0, node->n_kids, 1);
    r->soft = soft;
    return ok;
}

bool gdn_jinja_resolve(jinja_run *run, jinja_node *root, jinja_scope **scope)
{
    jinja_run                 scratch = {.limits = run->limits, .err = run->err, .line = 1};
    resolver                  r = {.run = run, .scratch = &scratch};
    symbols                   all;
    static const jinja_string name_self = {.bytes = "self", .n = 4, .n_chars = 4};
    bool                      set = false;
    if (reads(root, &name_self, &set)) return gdn_jinja_fail(run, GDN_UNSUPPORTED, "the name 'self' is not supported");
    bool ok = open_symbols(&r, &all, NULL, true) && collect(&r, &all, root) && resolve(&r, &all, root) &&
              close_symbols(&r, &all, true, scope);
    if (scratch.status) run->status = scratch.status;
    gdn_jinja_release(&scratch);
    return ok;
}
