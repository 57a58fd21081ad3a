/* Running the blocks of a template. */
#include "text/jinja_node.h"
#include <string.h>

static bool put_kid(jinja_run *run, const jinja_node *node)
{
    jinja_value v;
    if (node->kind == NODE_CONST) return gdn_jinja_put_value(run, run->out, &node->value);
    return gdn_jinja_eval(run, node, &v) && gdn_jinja_put_value(run, run->out, &v);
}

/* Run a body and take what it writes. */
static jinja_flow capture(jinja_run *run, const jinja_node *body, jinja_value *out)
{
    jinja_text text = {.bytes = NULL}, *outer = run->out;
    run->out = &text;
    const jinja_flow flow = gdn_jinja_exec(run, body);
    run->out = outer;
    if (flow == FLOW_FAIL || !gdn_jinja_take(run, &text, out)) return FLOW_FAIL;
    return flow;
}

/* ---- macros ---------------------------------------------------------------------------------------------------------------- */

static jinja_value new_macro(jinja_run *run, const jinja_node *node)
{
    jinja_macro *macro = gdn_jinja_alloc(run, sizeof *macro);
    if (macro) *macro = (jinja_macro){node, run->frame};
    return (jinja_value){.kind = macro ? JINJA_MACRO : JINJA_MISSING, .as.macro = macro};
}

static bool too_many(jinja_run *run, const jinja_macro *macro, const jinja_string *name)
{
    const jinja_string *called = macro->node->name;
    const int           n = called ? (int)called->n : 9;
    const char         *bytes = called ? called->bytes : "call body";
    if (name)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "the macro %.*s takes no argument '%.*s'", n, bytes, (int)name->n,
                              name->bytes);
    return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "the macro %.*s is given too many arguments", n, bytes);
}

/* Sort the arguments of a call into the frame of the macro. */
static bool bind_arguments(jinja_run *run, const jinja_macro *macro, const jinja_args *args, jinja_frame *frame,
                           int first)
{
    static const jinja_string no_caller = {.bytes = "the macro was not called by a call block", .n = 40, .n_chars = 40};
    const jinja_node         *node = macro->node;
    const jinja_scope        *scope = node->scope;
    const int                 n_params = (node->n_kids - 1 - first) / 2;
    jinja_dict               *rest = gdn_jinja_alloc(run, sizeof *rest);
    if (!rest) return false;
    *rest = (jinja_dict){.keys = NULL};
    for (int i = 0; i < n_params && i < args->n; i++) frame->slots[node->kids[first + 2 * i]->slot] = args->at[i];
    if (scope->caller >= 0)
        frame->slots[scope->caller] =
            (jinja_value){.kind = JINJA_UNDEFINED, .tag = JINJA_HINT, .as.string = &no_caller};
    for (int k = 0; k < args->n_named; k++) {
        int i = args->n;
        while (i < n_params && !gdn_jinja_same(node->kids[first + 2 * i]->name, args->names[k])) i++;
        const jinja_value key = gdn_jinja_str(args->names[k]);
        if (i < n_params) frame->slots[node->kids[first + 2 * i]->slot] = args->named[k];
        else if (scope->caller >= 0 && gdn_jinja_is(args->names[k], "caller"))
            frame->slots[scope->caller] = args->named[k];
        else if (scope->kwargs < 0) return too_many(run, macro, args->names[k]);
        else if (!gdn_jinja_dict_set(run, rest, &key, &args->named[k])) return false;
    }
    if (scope->kwargs >= 0) frame->slots[scope->kwargs] = (jinja_value){.kind = JINJA_DICT, .as.dict = rest};
    const int n_rest = args->n > n_params ? args->n - n_params : 0;
    if (scope->varargs < 0) return n_rest == 0 || too_many(run, macro, NULL);
    if (!gdn_jinja_new_list(run, JINJA_TUPLE, (size_t)n_rest, &frame->slots[scope->varargs])) return false;
    const jinja_list *rest_args = frame->slots[scope->varargs].as.list;
    if (n_rest) memcpy(rest_args->at, args->at + n_params, rest_args->n * sizeof *rest_args->at);
    return true;
}

static bool eval_defaults(jinja_run *run, const jinja_node *node, int first)
{
    static const jinja_string hint = {.bytes = "a parameter of a macro was not given", .n = 36, .n_chars = 36};
    for (int i = first; i < node->n_kids - 1; i += 2) {
        jinja_value v = {.kind = JINJA_UNDEFINED, .tag = JINJA_HINT, .as.string = &hint};
        if (run->frame->slots[node->kids[i]->slot].kind != JINJA_MISSING) continue;
        if (node->kids[i + 1] && !gdn_jinja_eval(run, node->kids[i + 1], &v)) return false;
        run->frame->slots[node->kids[i]->slot] = v;
    }
    return true;
}

static bool run_macro(jinja_run *run, const jinja_macro *macro, const jinja_args *args, jinja_value *out)
{
    const jinja_node *node = macro->node;
    const int         first = node->kind == NODE_CALL_BLOCK;
    jinja_frame      *frame = gdn_jinja_new_frame(run, node->scope, macro->outer), *caller = run->frame;
    if (!frame || !bind_arguments(run, macro, args, frame, first)) return false;
    run->frame = frame;
    const bool ok = gdn_jinja_enter_scope(run, node->scope) && eval_defaults(run, node, first) &&
                    capture(run, node->kids[node->n_kids - 1], out) != FLOW_FAIL;
    run->frame = caller;
    return ok;
}

bool gdn_jinja_call_macro(jinja_run *run, const jinja_macro *macro, const jinja_args *args, jinja_value *out)
{
    if (!gdn_jinja_enter(run)) return false;
    const bool ok = run_macro(run, macro, args, out);
    gdn_jinja_leave(run);
    return ok;
}

static bool exec_call_block(jinja_run *run, const jinja_node *node)
{
    const jinja_value body = new_macro(run, node);
    const jinja_node *call = node->kids[0];
    jinja_value       callee, out;
    jinja_args        args = {.at = NULL};
    if (body.kind == JINJA_MISSING) return false;
    if (!call) {
        if (!gdn_jinja_call_macro(run, body.as.macro, &args, &out)) return false;
    } else {
        if (!gdn_jinja_eval(run, call->kids[0], &callee) || !gdn_jinja_eval_args(run, call, 1, &body, &args))
            return false;
        run->line = call->line;
        if (!gdn_jinja_call(run, &callee, &args, &out)) return false;
    }
    return gdn_jinja_put_value(run, run->out, &out);
}

/* ---- loops ------------------------------------------------------------------------------------------------------------------- */

static bool passes(jinja_run *run, const jinja_loop *loop, const jinja_value *v, bool *passed)
{
    jinja_frame *frame = run->frame;
    jinja_value  holds;
    run->frame = loop->test_frame;
    const bool ok = gdn_jinja_store(run, loop->node->kids[5], v) && gdn_jinja_eval(run, loop->node->kids[4], &holds);
    run->frame = frame;
    *passed = ok && gdn_jinja_truth(&holds);
    return ok;
}

/* The next item that passes the loop's test; MISSING at the end. */
static bool fetch(jinja_run *run, jinja_loop *loop, jinja_value *out)
{
    const jinja_value *item;
    bool               passed = false;
    while (!passed && (item = gdn_jinja_iter_next(&loop->source))) {
        if (!gdn_jinja_charge(run, 1)) return false;
        *out = *item;
        passed = !loop->test_frame;
        if (!passed && !passes(run, loop, out, &passed)) return false;
    }
    if (!passed) *out = (jinja_value){.kind = JINJA_MISSING};
    return true;
}

static bool peek(jinja_run *run, jinja_loop *loop)
{
    return loop->after.kind != JINJA_MISSING || fetch(run, loop, &loop->after);
}

static bool next(jinja_run *run, jinja_loop *loop)
{
    jinja_value item = loop->after;
    loop->after = (jinja_value){.kind = JINJA_MISSING};
    if (item.kind == JINJA_MISSING && !fetch(run, loop, &item)) return false;
    loop->before = loop->current;
    loop->current = item;
    loop->index0++;
    return true;
}

/* The number of items; of a lazy source, what is left is fetched for it. */
static bool measure(jinja_run *run, jinja_loop *loop)
{
    if (loop->length >= 0) return true;
    const int64_t known = loop->index0 + 1 + (loop->after.kind != JINJA_MISSING);
    if (loop->source.sized && !loop->test_frame) {
        loop->length = (int64_t)loop->source.items.n;
        return true;
    }
    const size_t left = loop->source.items.n - *loop->source.at;
    jinja_list   rest = {gdn_jinja_array(run, left, sizeof *rest.at), 0, false};
    if (!rest.at) return false;
    for (;;) {
        jinja_value item;
        if (!fetch(run, loop, &item)) return false;
        if (item.kind == JINJA_MISSING) break;
        rest.at[rest.n++] = item;
    }
    loop->source = (jinja_iter){.items = rest};
    loop->source.at = &loop->source.own;
    loop->test_frame = NULL;
    loop->length = known + (int64_t)rest.n;
    return true;
}

static bool run_loop(jinja_run *run, const jinja_node *node, jinja_loop *loop, jinja_flow *flow)
{
    const jinja_scope *scope = node->scope;
    bool               completed = false; /* once the body ran to its end; until then the else counts */
    for (;;) {
        if (!next(run, loop)) return false;
        if (loop->current.kind == JINJA_MISSING) break;
        if (!gdn_jinja_store(run, node->kids[0], &loop->current)) return false;
        run->frame->slots[scope->loop] = (jinja_value){.kind = JINJA_LOOP, .as.loop = loop};
        if (!gdn_jinja_enter_scope(run, scope)) return false;
        *flow = gdn_jinja_exec(run, node->kids[2]);
        if (*flow == FLOW_FAIL) return false;
        if (*flow == FLOW_BREAK) break;
        completed |= *flow == FLOW_NEXT;
    }
    *flow = FLOW_NEXT;
    if (completed || !node->kids[3]) return true;
    if (!gdn_jinja_enter_scope(run, node->else_scope)) return false;
    *flow = gdn_jinja_exec(run, node->kids[3]);
    return *flow != FLOW_FAIL;
}

static bool open_test(jinja_run *run, jinja_loop *loop)
{
    jinja_frame *frame = run->frame;
    loop->test_frame = gdn_jinja_new_frame(run, loop->node->test_scope, loop->outer);
    if (!loop->test_frame) return false;
    run->frame = loop->test_frame;
    const bool ok = gdn_jinja_enter_scope(run, loop->node->test_scope);
    run->frame = frame;
    return ok;
}

/* Loop over v; a recursive loop runs in a frame of its own. */
static bool open_loop(jinja_run *run, const jinja_node *node, jinja_frame *outer, const jinja_value *v, int depth0,
                      jinja_flow *flow)
{
    jinja_loop *loop = gdn_jinja_alloc(run, sizeof *loop);
    if (!loop) return false;
    *loop = (jinja_loop){.node = node, .outer = outer, .index0 = -1, .length = -1, .depth0 = depth0};
    if (!gdn_jinja_iter_open(run, v, &loop->source)) return false;
    if (node->kids[4] && !open_test(run, loop)) return false;
    jinja_frame *frame = run->frame;
    if (node->op == 'r' && !(run->frame = gdn_jinja_new_frame(run, node->scope, outer))) return false;
    const bool ok = run_loop(run, node, loop, flow);
    run->frame = frame;
    return ok;
}

bool gdn_jinja_loop_call(jinja_run *run, jinja_loop *loop, const jinja_args *args, jinja_value *out)
{
    jinja_value slots[JINJA_MAX_PARAMS];
    jinja_text  text = {.bytes = NULL}, *outer = run->out;
    jinja_flow  flow;
    if (!gdn_jinja_bind(run, "loop", "iterable", args, slots)) return false;
    if (loop->node->op != 'r')
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "only a loop marked 'recursive' can be called");
    if (!gdn_jinja_enter(run)) return false;
    run->out = &text;
    const bool ok = open_loop(run, loop->node, loop->outer, &slots[0], loop->depth0 + 1, &flow);
    run->out = outer;
    gdn_jinja_leave(run);
    return ok && gdn_jinja_take(run, &text, out);
}

static jinja_flow exec_for(jinja_run *run, const jinja_node *node)
{
    jinja_value v;
    jinja_flow  flow;
    if (!gdn_jinja_eval(run, node->kids[1], &v) || !open_loop(run, node, run->frame, &v, 0, &flow)) return FLOW_FAIL;
    return flow;
}

/* ---- attributes of loops ------------------------------------------------------------------------------------------------------ */

static bool cycle(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[],
                  jinja_value *out)
{
    (void)slots;
    if (args->n == 0 || args->n_named)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "loop.cycle needs values to cycle through");
    *out = args->at[self->as.loop->index0 % args->n];
    return true;
}

static bool changed(jinja_run *run, const jinja_value *self, const jinja_args *args, const jinja_value slots[],
                    jinja_value *out)
{
    jinja_loop *loop = self->as.loop;
    jinja_value now;
    bool        same = false;
    (void)slots;
    if (args->n_named) return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "loop.changed takes no named arguments");
    if (!gdn_jinja_new_list(run, JINJA_TUPLE, (size_t)args->n, &now)) return false;
    for (int i = 0; i < args->n; i++) now.as.list->at[i] = args->at[i];
    if (!gdn_jinja_equal(run, &loop->changed, &now, &same)) return false;
    loop->changed = now;
    *out = gdn_jinja_bool(!same);
    return true;
}

static bool neighbour(const jinja_value *item, jinja_value *out)
{
    static const jinja_string hint = {.bytes = "there is no such item in the loop", .n = 33, .n_chars = 33};
    *out = *item;
    if (item->kind == JINJA_MISSING)
        *out = (jinja_value){.kind = JINJA_UNDEFINED, .tag = JINJA_HINT, .as.string = &hint};
    return true;
}

static bool loop_method(jinja_run *run, jinja_loop *loop, const jinja_filter *fn, jinja_value *out)
{
    jinja_method *method = gdn_jinja_alloc(run, sizeof *method);
    if (!method) return false;
    *method = (jinja_method){{.kind = JINJA_LOOP, .as.loop = loop}, fn};
    *out = (jinja_value){.kind = JINJA_METHOD, .as.method = method};
    return true;
}

static bool loop_count(jinja_run *run, jinja_loop *loop, int64_t minus, jinja_value *out)
{
    if (!measure(run, loop)) return false;
    *out = gdn_jinja_int(loop->length - minus);
    return true;
}

bool gdn_jinja_loop_attr(jinja_run *run, jinja_loop *loop, const jinja_string *name, jinja_value *out)
{
    static const jinja_filter methods[] = {{"cycle", NULL, cycle}, {"changed", NULL, changed}};
    *out = (jinja_value){.kind = JINJA_MISSING};
    if (gdn_jinja_is(name, "index0")) *out = gdn_jinja_int(loop->index0);
    else if (gdn_jinja_is(name, "index")) *out = gdn_jinja_int(loop->index0 + 1);
    else if (gdn_jinja_is(name, "first")) *out = gdn_jinja_bool(loop->index0 == 0);
    else if (gdn_jinja_is(name, "depth0")) *out = gdn_jinja_int(loop->depth0);
    else if (gdn_jinja_is(name, "depth")) *out = gdn_jinja_int(loop->depth0 + 1);
    else if (gdn_jinja_is(name, "length")) return loop_count(run, loop, 0, out);
    else if (gdn_jinja_is(name, "revindex")) return loop_count(run, loop, loop->index0, out);
    else if (gdn_jinja_is(name, "revindex0")) return loop_count(run, loop, loop->index0 + 1, out);
    else if (gdn_jinja_is(name, "cycle")) return loop_method(run, loop, &methods[0], out);
    else if (gdn_jinja_is(name, "changed")) return loop_method(run, loop, &methods[1], out);
    else if (gdn_jinja_is(name, "previtem")) return neighbour(&loop->before, out);
    else if (gdn_jinja_is(name, "nextitem")) return peek(run, loop) && neighbour(&loop->after, out);
    else if (gdn_jinja_is(name, "last")) {
        if (!peek(run, loop)) return false;
        *out = gdn_jinja_bool(loop->after.kind == JINJA_MISSING);
    }
    return true;
}

/* ---- the rest ------------------------------------------------------------------------------------------------------------------ */

static bool exec_with(jinja_run *run, const jinja_node *node)
{
    if (!gdn_jinja_enter_scope(run, node->scope)) return false;
    for (int i = 0; i < node->n_kids - 1; i += 2) {
        jinja_value v;
        if (!gdn_jinja_eval(run, node->kids[i + 1], &v) || !gdn_jinja_store(run, node->kids[i], &v)) return false;
    }
    return true;
}

static jinja_flow exec_set_block(jinja_run *run, const jinja_node *node)
{
    jinja_value v;
    if (!gdn_jinja_enter_scope(run, node->scope)) return FLOW_FAIL;
    const jinja_flow flow = capture(run, node->kids[2], &v);
    if (flow != FLOW_NEXT) return flow;
    run->piped = v;
    if (node->kids[1] && !gdn_jinja_eval(run, node->kids[1], &v)) return FLOW_FAIL;
    return gdn_jinja_store(run, node->kids[0], &v) ? FLOW_NEXT : FLOW_FAIL;
}

static jinja_flow exec_filter_block(jinja_run *run, const jinja_node *node)
{
    jinja_value v;
    if (!gdn_jinja_enter_scope(run, node->scope)) return FLOW_FAIL;
    const jinja_flow flow = capture(run, node->kids[0], &v);
    if (flow != FLOW_NEXT) return flow;
    run->piped = v;
    return put_kid(run, node->kids[1]) ? FLOW_NEXT : FLOW_FAIL;
}

static jinja_flow exec_if(jinja_run *run, const jinja_node *node)
{
    jinja_value condition;
    for (int i = 0;; i++) {
        const jinja_node *branch = i ? node->kids[2]->kids[i - 1] : node;
        if (!gdn_jinja_eval(run, branch->kids[0], &condition)) return FLOW_FAIL;
        if (gdn_jinja_truth(&condition)) return gdn_jinja_exec(run, branch->kids[1]);
        if (i == node->kids[2]->n_kids) break;
    }
    return node->kids[3] ? gdn_jinja_exec(run, node->kids[3]) : FLOW_NEXT;
}

static jinja_flow exec_block(jinja_run *run, const jinja_node *node)
{
    jinja_flow flow = FLOW_NEXT;
    for (int i = 0; i < node->n_kids && flow == FLOW_NEXT; i++) flow = gdn_jinja_exec(run, node->kids[i]);
    return flow;
}

static bool exec_set(jinja_run *run, const jinja_node *node)
{
    jinja_value v;
    return gdn_jinja_eval(run, node->kids[1], &v) && gdn_jinja_store(run, node->kids[0], &v);
}

static bool exec_macro(jinja_run *run, const jinja_node *node)
{
    const jinja_value macro = new_macro(run, node);
    const jinja_node  target = {.kind = NODE_NAME, .hops = node->hops, .slot = node->slot};
    return macro.kind != JINJA_MISSING && gdn_jinja_store(run, &target, &macro);
}

static bool exec_output(jinja_run *run, const jinja_node *node)
{
    for (int i = 0; i < node->n_kids; i++)
        if (!put_kid(run, node->kids[i])) return false;
    return true;
}

static jinja_flow exec(jinja_run *run, const jinja_node *node)
{
    bool ok;
    switch (node->kind) {
    case NODE_BLOCK: return exec_block(run, node);
    case NODE_IF: return exec_if(run, node);
    case NODE_FOR: return exec_for(run, node);
    case NODE_SET_BLOCK: return exec_set_block(run, node);
    case NODE_FILTER_BLOCK: return exec_filter_block(run, node);
    case NODE_WITH: return exec_with(run, node) ? gdn_jinja_exec(run, node->kids[node->n_kids - 1]) : FLOW_FAIL;
    case NODE_BREAK: return FLOW_BREAK;
    case NODE_CONTINUE: return FLOW_CONTINUE;
    case NODE_OUTPUT: ok = exec_output(run, node); break;
    case NODE_SET: ok = exec_set(run, node); break;
    case NODE_MACRO: ok = exec_macro(run, node); break;
    default: ok = exec_call_block(run, node); break;
    }
    return ok ? FLOW_NEXT : FLOW_FAIL;
}

jinja_flow gdn_jinja_exec(jinja_run *run, const jinja_node *node)
{
    if (!gdn_jinja_charge(run, 1) || !gdn_jinja_enter(run)) return FLOW_FAIL;
    run->line = node->line;
    const jinja_flow flow = exec(run, node);
    gdn_jinja_leave(run);
    return flow;
}
