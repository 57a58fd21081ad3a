/* The tests behind `is`. */
#include "text/jinja.h"

#define TEST(name) static bool name(jinja_run *run, const jinja_value *v, const jinja_value *arg, bool *holds)

static bool answer(bool *holds, bool value)
{
    *holds = value;
    return true;
}

#define SIMPLE_TEST(name, condition)     \
    TEST(name)                           \
    {                                    \
        (void)run, (void)arg;            \
        return answer(holds, condition); \
    }
SIMPLE_TEST(is_defined, v->kind != JINJA_UNDEFINED)
SIMPLE_TEST(is_undefined, v->kind == JINJA_UNDEFINED)
SIMPLE_TEST(is_none, v->kind == JINJA_NONE)
SIMPLE_TEST(is_boolean, v->kind == JINJA_BOOL)
SIMPLE_TEST(is_true, v->kind == JINJA_BOOL && v->as.flag)
SIMPLE_TEST(is_false, v->kind == JINJA_BOOL && !v->as.flag)
SIMPLE_TEST(is_integer, v->kind == JINJA_INT)
SIMPLE_TEST(is_float, v->kind == JINJA_FLOAT)
SIMPLE_TEST(is_number, gdn_jinja_is_number(v))
SIMPLE_TEST(is_string, v->kind == JINJA_STRING)
SIMPLE_TEST(is_mapping, v->kind == JINJA_DICT)
SIMPLE_TEST(is_iterable, gdn_jinja_iterable(v))
SIMPLE_TEST(is_escaped, v->kind == JINJA_STRING && v->as.string->markup)
SIMPLE_TEST(is_filter, v->kind == JINJA_STRING && gdn_jinja_find_filter(v->as.string))
SIMPLE_TEST(is_test, v->kind == JINJA_STRING && gdn_jinja_find_test(v->as.string))
SIMPLE_TEST(is_sequence, v->kind == JINJA_STRING || v->kind == JINJA_LIST || v->kind == JINJA_TUPLE ||
                             v->kind == JINJA_DICT || v->kind == JINJA_RANGE || v->kind == JINJA_UNDEFINED)
SIMPLE_TEST(is_callable, v->kind == JINJA_MACRO || v->kind == JINJA_FUNCTION || v->kind == JINJA_METHOD ||
                             v->kind == JINJA_LOOP || v->kind == JINJA_JOINER || v->kind == JINJA_UNDEFINED)

TEST(is_lower)
{
    jinja_value s;
    (void)arg;
    return gdn_jinja_to_string(run, v, &s) && answer(holds, gdn_jinja_all_case(s.as.string, false));
}

TEST(is_upper)
{
    jinja_value s;
    (void)arg;
    return gdn_jinja_to_string(run, v, &s) && answer(holds, gdn_jinja_all_case(s.as.string, true));
}

/* v % by == rest */
static bool remainder_is(jinja_run *run, const jinja_value *v, const jinja_value *by, int64_t rest, bool *holds)
{
    const jinja_value wanted = gdn_jinja_int(rest);
    jinja_value       got;
    return gdn_jinja_binary(run, '%', v, by, &got) && gdn_jinja_equal(run, &got, &wanted, holds);
}

TEST(is_odd)
{
    const jinja_value two = gdn_jinja_int(2);
    (void)arg;
    return remainder_is(run, v, &two, 1, holds);
}

TEST(is_even)
{
    const jinja_value two = gdn_jinja_int(2);
    (void)arg;
    return remainder_is(run, v, &two, 0, holds);
}

TEST(is_divisibleby) { return remainder_is(run, v, arg, 0, holds); }

TEST(is_sameas)
{
    if (v->kind != arg->kind) return answer(holds, false);
    if (v->kind == JINJA_NONE) return answer(holds, true);
    if (v->kind == JINJA_BOOL) return answer(holds, v->as.flag == arg->as.flag);
    if (v->kind != JINJA_LIST && v->kind != JINJA_DICT && v->kind != JINJA_NAMESPACE)
        return gdn_jinja_fail(run, GDN_UNSUPPORTED, "'is sameas' on values of type %s", gdn_jinja_type(v));
    return answer(holds, v->as.list == arg->as.list);
}

TEST(is_in) { return gdn_jinja_contains(run, arg, v, holds); }
TEST(is_eq) { return gdn_jinja_equal(run, v, arg, holds); }
TEST(is_ne) { return gdn_jinja_equal(run, v, arg, holds) && answer(holds, !*holds); }
TEST(is_gt) { return gdn_jinja_order(run, '>', v, arg, holds); }
TEST(is_ge) { return gdn_jinja_order(run, 'g', v, arg, holds); }
TEST(is_lt) { return gdn_jinja_order(run, '<', v, arg, holds); }
TEST(is_le) { return gdn_jinja_order(run, 'l', v, arg, holds); }

static const jinja_test tests[] = {
    {"odd", false, is_odd},
    {"even", false, is_even},
    {"divisibleby", true, is_divisibleby},
    {"defined", false, is_defined},
    {"undefined", false, is_undefined},
    {"filter", false, is_filter},
    {"test", false, is_test},
    {"none", false, is_none},
    {"boolean", false, is_boolean},
    {"false", false, is_false},
    {"true", false, is_true},
    {"integer", false, is_integer},
    {"float", false, is_float},
    {"lower", false, is_lower},
    {"upper", false, is_upper},
    {"string", false, is_string},
    {"mapping", false, is_mapping},
    {"number", false, is_number},
    {"sequence", false, is_sequence},
    {"iterable", false, is_iterable},
    {"callable", false, is_callable},
    {"sameas", true, is_sameas},
    {"escaped", false, is_escaped},
    {"in", true, is_in},
    {"==", true, is_eq},
    {"eq", true, is_eq},
    {"equalto", true, is_eq},
    {"!=", true, is_ne},
    {"ne", true, is_ne},
    {">", true, is_gt},
    {"gt", true, is_gt},
    {"greaterthan", true, is_gt},
    {"ge", true, is_ge},
    {">=", true, is_ge},
    {"<", true, is_lt},
    {"lt", true, is_lt},
    {"lessthan", true, is_lt},
    {"<=", true, is_le},
    {"le", true, is_le},
};

const jinja_test *gdn_jinja_find_test(const jinja_string *name)
{
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        if (gdn_jinja_is(name, tests[i].name)) return &tests[i];
    return NULL;
}

bool gdn_jinja_apply_test(jinja_run *run, const jinja_test *test, const jinja_value *v, const jinja_args *args,
                          bool *holds)
{
    if (args->n_named || args->n != test->takes_arg)
        return gdn_jinja_fail(run, GDN_BAD_ARGUMENT, "the test '%s' takes %s", test->name,
                              test->takes_arg ? "one argument" : "no argument");
    return test->fn(run, v, test->takes_arg ? &args->at[0] : NULL, holds);
}
