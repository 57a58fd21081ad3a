/* golden/items.h - the recorded conversations of eval.json. */
#ifndef GDN_TESTS_GOLDEN_ITEMS_H
#define GDN_TESTS_GOLDEN_ITEMS_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "gdn/gdn.h"
#include <jansson.h>
#include <stdlib.h>

enum { ITEMS = 1504 };

/* Free with json_decref. */
static inline json_t *items_load(void)
{
    json_t *items = json_load_file("tests/golden/eval.json", 0, NULL);
    assert_int_equal(json_array_size(items), ITEMS);
    return items;
}

/* The prompt of an item, to be freed as ids. */
static inline gdn_ids item_prompt(const gdn_engine *engine, const json_t *item)
{
    json_t   *vars = json_pack("{s:O,s:O,s:O,s:b}", "messages", json_object_get(item, "messages"), "tools",
                               json_object_get(item, "tools"), "enable_thinking",
                               json_object_get(item, "enable_thinking"), "add_generation_prompt", 1);
    char     *json = json_dumps(vars, 0);
    gdn_ids   prompt = {0};
    gdn_error err;
    assert_non_null(json);
    if (gdn_engine_encode_chat(engine, json, NULL, &prompt, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(prompt.n, json_integer_value(json_object_get(item, "tokens")));
    free(json);
    json_decref(vars);
    return prompt;
}

#endif
