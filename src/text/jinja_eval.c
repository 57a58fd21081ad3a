/* The value of an expression. */
#include "text/jinja_node.h"
#include <stdio.h>
#include <string.h>

/* ---- variables --------------------------------------------------------------------------------------------------------- */

jinja_frame *gdn_jinja_new_frame(jinja_run *run, const jinja_scope *scope, jinja_frame *outer)
{
    jinja_frame *frame = gdn_jinja_alloc(run, sizeof *frame + (size_t)scope->n_slots * sizeof frame->slots[0]);
    if (!frame || !gdn_jinja_charge(run, (size_t)scope->n_slots)) return NULL;
    frame->outer = outer;
    for (int i = 0; i < scope->n_slots; i++) frame->slots[i] = (jinja_value){.kind = JINJA_MISSING};
    return frame;
}

static jinja_value *slot(const jinja_run *run, int hops, int i)
{
    jinja_frame *frame = run->frame;
    while (hops-- > 0) frame = frame->outer;
    return &frame->slots[i];
}

bool gdn_jinja_resolve_name(jinja_run *run, const jinja_string *name, jinja_value *out)
{
    const jinja_value *found = gdn_jinja_dict_find(run->vars, name);
    if (found) *out = *found;
    else if (!gdn_jinja_global(name, out)) *out = (jinja_value){.kind = JINJA_MISSING};
    return gdn_jinja_charge(run, run->vars->n / 4 + 1);
}

bool gdn_jinja_enter_scope(jinja_run *run, const jinja_scope *scope)
{
    for (int i = 0; i < scope->n_loads; i++) {
        const jinja_load *load = &scope->loads[i];
        jinja_value      *to = slot(run, 0, load->slot);
        if (load->action == LOAD_MISSING) *to = (jinja_value){.kind = JINJA_MISSING};
        else if (load->action == LOAD_ALIAS) *to = *slot(run, load->hops, load->from);
        else if (load->action == LOAD_RESOLVE && !gdn_jinja_resolve_name(run, load->name, to)) return false;
    }
    return gdn_jinja_charge(run, (size_t)scope->n_loads);
}

static bool store_tuple(jinja_run *run, const jinja_node *target, const jinja_value *v)
{
    jinja_list items;
    if (!gdn_jinja_items(run, v, &items)) return false;
    if (items.n != (size_t)target->n_kids)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "%d names are to be set to %zu values", target->n_kids, items.n);
    for (int i = 0; i < target->n_kids; i++)
        if (!gdn_jinja_store(run, target->kids[i], &items.at[i])) return false;
    return true;
}

bool gdn_jinja_store(jinja_run *run, const jinja_node *target, const jinja_value *v)
{
    if (target->kind == NODE_TUPLE) return store_tuple(run, target, v);
    jinja_value *to = slot(run, target->hops, target->slot);
    if (target->kind == NODE_NAME) {
        *to = *v;
        return true;
    }
    if (to->kind != JINJA_NAMESPACE)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "'%.*s' is not a namespace, so nothing in it can be set",
                              (int)target->name->n, target->name->bytes);
    const jinja_value key = gdn_jinja_str(target->text);
    return gdn_jinja_dict_set(run, to->as.dict, &key, v);
}

/* ---- calls --------------------------------------------------------------------------------------------------------------- */

static bool add_named(jinja_run *run, jinja_args *args, int cap, const jinja_string *name, const jinja_value *v)
{
    for (int i = 0; i < args->n_named; i++)
        if (gdn_jinja_same(args->names[i], name))
            return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "the argument '%.*s' is given twice", (int)name->n,
                                  name->bytes);
    if (args->n_named == cap) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a call has too many arguments");
    args->names[args->n_named] = name;
    args->named[args->n_named++] = *v;
    return gdn_jinja_charge(run, 1);
}

static bool spread_dict(jinja_run *run, jinja_args *args, int cap, const jinja_value *v)
{
    if (v->kind != JINJA_DICT)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "** takes a dict, not a value of type %s", gdn_jinja_type(v));
    for (size_t i = 0; i < v->as.dict->n; i++) {
        if (v->as.dict->keys[i].kind != JINJA_STRING)
            return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "the keys of a dict behind ** must be strings");
        if (!add_named(run, args, cap, v->as.dict->keys[i].as.string, &v->as.dict->values[i])) return false;
    }
    return true;
}

/* Evaluate what is behind * and **, and count the arguments. */
static bool eval_spreads(jinja_run *run, const jinja_node *node, int first, jinja_list *spread, jinja_value *dict,
                         size_t counts[2])
{
    *spread = (jinja_list){.at = NULL};
    *dict = (jinja_value){.kind = JINJA_MISSING};
    counts[0] = counts[1] = 0;
    for (int i = first; i < node->n_kids; i++) {
        const jinja_node *kid = node->kids[i];
        jinja_value       v;
        if (kid->kind == NODE_KEYWORD) counts[1]++;
        else if (kid->kind != NODE_SPREAD) counts[0]++;
        else if (kid->op == 'P') {
            if (!gdn_jinja_eval(run, kid->kids[0], dict)) return false;
        } else if (!gdn_jinja_eval(run, kid->kids[0], &v) || !gdn_jinja_items(run, &v, spread)) return false;
    }
    counts[0] += spread->n;
    if (dict->kind == JINJA_DICT) counts[1] += dict->as.dict->n;
    return true;
}

bool gdn_jinja_eval_args(jinja_run *run, const jinja_node *node, int first, const jinja_value *caller, jinja_args *args)
{
    static const jinja_string name_caller = {.bytes = "caller", .n = 6, .n_chars = 6};
    jinja_list                spread;
    jinja_value               dict, v;
    size_t                    counts[2];
    *args = (jinja_args){.at = NULL};
    if (first == node->n_kids && !caller) return true;
    if (!eval_spreads(run, node, first, &spread, &dict, counts)) return false;
    if (counts[0] > 100000 || counts[1] > 1000)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a call has too many arguments");
    const int cap = (int)counts[1] + 1;
    args->at = gdn_jinja_array(run, counts[0], sizeof *args->at);
    args->names = gdn_jinja_array(run, (size_t)cap, sizeof *args->names);
    args->named = gdn_jinja_array(run, (size_t)cap, sizeof *args->named);
    if (!args->at || !args->names || !args->named) return false;
    for (int i = first; i < node->n_kids; i++) {
        const jinja_node *kid = node->kids[i];
        if (kid->kind == NODE_SPREAD) continue;
        if (!gdn_jinja_eval(run, kid->kind == NODE_KEYWORD ? kid->kids[0] : kid, &v)) return false;
        if (kid->kind != NODE_KEYWORD) args->at[args->n++] = v;
        else if (!add_named(run, args, cap, kid->name, &v)) return false;
    }
    for (size_t i = 0; i < spread.n; i++) args->at[args->n++] = spread.at[i];
    if (caller && !add_named(run, args, cap, &name_caller, caller)) return false;
    return dict.kind == JINJA_MISSING || spread_dict(run, args, cap, &dict);
}

bool gdn_jinja_call(jinja_run *run, const jinja_value *callee, const jinja_args *args, jinja_value *out)
{
    switch (callee->kind) {
    case JINJA_MACRO: return gdn_jinja_call_macro(run, callee->as.macro, args, out);
    case JINJA_LOOP: return gdn_jinja_loop_call(run, callee->as.loop, args, out);
    case JINJA_FUNCTION: return gdn_jinja_call_function(run, callee->tag, args, out);
    case JINJA_METHOD: return gdn_jinja_apply_filter(run, callee->as.method->fn, &callee->as.method->self, args, out);
    case JINJA_JOINER:
        if (args->n || args->n_named) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a joiner takes no arguments");
        *out = callee->as.joiner->separator;
        if (!callee->as.joiner->used && !gdn_jinja_string(run, "", 0, JINJA_TRUSTED, out)) return false;
        callee->as.joiner->used = true;
        return true;
    case JINJA_UNDEFINED: return gdn_jinja_undefined_error(run, callee);
    default:
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a value of type %s cannot be called", gdn_jinja_type(callee));
    }
}

static bool eval_call(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    jinja_value callee;
    jinja_args  args;
    if (!gdn_jinja_eval(run, node->kids[0], &callee) || !gdn_jinja_eval_args(run, node, 1, NULL, &args)) return false;
    run->line = node->line;
    return gdn_jinja_call(run, &callee, &args, out);
}

static bool eval_filter(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    jinja_value v = run->piped;
    jinja_args  args;
    if ((node->kids[0] && !gdn_jinja_eval(run, node->kids[0], &v)) || !gdn_jinja_eval_args(run, node, 1, NULL, &args))
        return false;
    run->line = node->line;
    if (!node->filter)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "there is no filter '%.*s'", (int)node->name->n,
                              node->name->bytes);
    return gdn_jinja_apply_filter(run, node->filter, &v, &args, out);
}

static bool eval_test(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    jinja_value v;
    jinja_args  args;
    bool        holds;
    if (!gdn_jinja_eval(run, node->kids[0], &v) || !gdn_jinja_eval_args(run, node, 1, NULL, &args)) return false;
    run->line = node->line;
    if (!node->test)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "there is no test '%.*s'", (int)node->name->n, node->name->bytes);
    if (!gdn_jinja_apply_test(run, node->test, &v, &args, &holds)) return false;
    *out = gdn_jinja_bool(holds);
    return true;
}

/* ---- literals of containers ------------------------------------------------------------------------------------------------ */

static bool eval_list(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    jinja_value list;
    if (!gdn_jinja_new_list(run, node->kind == NODE_LIST ? JINJA_LIST : JINJA_TUPLE, (size_t)node->n_kids, &list))
        return false;
    for (int i = 0; i < node->n_kids; i++)
        if (!gdn_jinja_eval(run, node->kids[i], &list.as.list->at[i])) return false;
    *out = list;
    return true;
}

static bool eval_dict(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    jinja_dict *dict = gdn_jinja_alloc(run, sizeof *dict);
    if (!dict) return false;
    *dict = (jinja_dict){.keys = NULL};
    for (int i = 0; i < node->n_kids; i += 2) {
        jinja_value key, v;
        if (!gdn_jinja_eval(run, node->kids[i], &key) || !gdn_jinja_eval(run, node->kids[i + 1], &v)) return false;
        if (!gdn_jinja_hashable(&key))
            return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "a value of type %s cannot be a key", gdn_jinja_type(&key));
        if (!gdn_jinja_dict_set(run, dict, &key, &v)) return false;
    }
    *out = (jinja_value){.kind = JINJA_DICT, .as.dict = dict};
    return true;
}

/* ---- operators --------------------------------------------------------------------------------------------------------------- */

static bool eval_concat(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    jinja_text text = {.bytes = NULL};
    for (int i = 0; i < node->n_kids; i++) {
        jinja_value v;
        if (!gdn_jinja_eval(run, node->kids[i], &v) || !gdn_jinja_to_string(run, &v, &v) ||
            !gdn_jinja_put_string(run, &text, v.as.string))
            return false;
    }
    return gdn_jinja_take(run, &text, out);
}

static bool compare(jinja_run *run, char op, const jinja_value *a, const jinja_value *b, bool *holds)
{
    switch (op) {
    case OP_EQ: return gdn_jinja_equal(run, a, b, holds);
    case OP_NE:
        if (!gdn_jinja_equal(run, a, b, holds)) return false;
        *holds = !*holds;
        return true;
    case OP_IN: return gdn_jinja_contains(run, b, a, holds);
    case OP_NOT_IN:
        if (!gdn_jinja_contains(run, b, a, holds)) return false;
        *holds = !*holds;
        return true;
    default: return gdn_jinja_order(run, op, a, b, holds);
    }
}

static bool eval_compare(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    jinja_value left, right;
    bool        holds = true;
    if (!gdn_jinja_eval(run, node->kids[0], &left)) return false;
    for (int i = 1; i < node->n_kids && holds; i++, left = right) {
        const jinja_node *operand = node->kids[i];
        if (!gdn_jinja_eval(run, operand->kids[0], &right)) return false;
        run->line = operand->line;
        if (!compare(run, (char)operand->op, &left, &right, &holds)) return false;
    }
    *out = gdn_jinja_bool(holds);
    return true;
}

static bool eval_logic(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    if (!gdn_jinja_eval(run, node->kids[0], out)) return false;
    return gdn_jinja_truth(out) == (node->kind == NODE_OR) || gdn_jinja_eval(run, node->kids[1], out);
}

static bool eval_cond(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    static const jinja_string hint = {.bytes = "an if without else was false, so it has no value",
                                      .n = 48,
                                      .n_chars = 48};
    jinja_value               condition;
    if (!gdn_jinja_eval(run, node->kids[0], &condition)) return false;
    if (gdn_jinja_truth(&condition)) return gdn_jinja_eval(run, node->kids[1], out);
    if (node->kids[2]) return gdn_jinja_eval(run, node->kids[2], out);
    *out = (jinja_value){.kind = JINJA_UNDEFINED, .tag = JINJA_HINT, .as.string = &hint};
    return true;
}

static bool eval_getitem(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    const jinja_node *by = node->kids[1];
    jinja_value       v, key, bounds[3];
    if (!gdn_jinja_eval(run, node->kids[0], &v)) return false;
    if (by->kind != NODE_SLICE) return gdn_jinja_eval(run, by, &key) && gdn_jinja_getitem(run, &v, &key, out);
    for (int i = 0; i < 3; i++) {
        bounds[i] = gdn_jinja_none();
        if (by->kids[i] && !gdn_jinja_eval(run, by->kids[i], &bounds[i])) return false;
    }
    return gdn_jinja_slice_of(run, &v, bounds, out);
}

static bool eval_unary(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    jinja_value v;
    if (!gdn_jinja_eval(run, node->kids[0], &v)) return false;
    run->line = node->line;
    if (node->kind == NODE_GETATTR) return gdn_jinja_getattr(run, &v, node->name, out);
    if (node->kind == NODE_NOT) {
        *out = gdn_jinja_bool(!gdn_jinja_truth(&v));
        return true;
    }
    if (!gdn_jinja_negate(run, &v, out)) return false;
    return node->kind == NODE_NEGATE || gdn_jinja_negate(run, out, out);
}

static bool eval_binary(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    jinja_value a, b;
    if (!gdn_jinja_eval(run, node->kids[0], &a) || !gdn_jinja_eval(run, node->kids[1], &b)) return false;
    run->line = node->line;
    return gdn_jinja_binary(run, (char)node->op, &a, &b, out);
}

static bool eval(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    switch (node->kind) {
    case NODE_CONST: *out = node->value; return true;
    case NODE_NAME:
        *out = *slot(run, node->hops, node->slot);
        if (out->kind == JINJA_MISSING)
            *out = (jinja_value){.kind = JINJA_UNDEFINED, .tag = JINJA_NO_NAME, .as.string = node->name};
        return true;
    case NODE_TUPLE:
    case NODE_LIST: return eval_list(run, node, out);
    case NODE_DICT: return eval_dict(run, node, out);
    case NODE_BINARY: return eval_binary(run, node, out);
    case NODE_AND:
    case NODE_OR: return eval_logic(run, node, out);
    case NODE_CONCAT: return eval_concat(run, node, out);
    case NODE_COMPARE: return eval_compare(run, node, out);
    case NODE_GETITEM: return eval_getitem(run, node, out);
    case NODE_CALL: return eval_call(run, node, out);
    case NODE_FILTER: return eval_filter(run, node, out);
    case NODE_TEST: return eval_test(run, node, out);
    case NODE_COND: return eval_cond(run, node, out);
    default: return eval_unary(run, node, out);
    }
}

bool gdn_jinja_eval(jinja_run *run, const jinja_node *node, jinja_value *out)
{
    if (!gdn_jinja_charge(run, 1) || !gdn_jinja_enter(run)) return false;
    run->line = node->line;
    const bool ok = eval(run, node, out);
    gdn_jinja_leave(run);
    return ok;
}
