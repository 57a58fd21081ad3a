/* Every allocation of loading a model, failed in turn: an error, no leak, and success once none fails.  And forwards with
 * experts, of the model and of its MTP layer, which must not allocate at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fault/wrapped.h"
#include "law/model.h"

static const char *const folders[] = {"tests/checkpoints/tiny-moe-fused", "tests/checkpoints/tiny-next"};

static void every_allocation_fails(void **unused)
{
    (void)unused;
    for (int i = 0; i < 2; i++) {
        static gdn_model_config config;
        gdn_tensors             tensors = {0};
        gdn_checkpoint          checkpoint = {0};
        gdn_error               err = {0};
        gdn_status              status = GDN_NO_MEMORY;
        must(gdn_model_config_load(&config, folders[i], &err), "config", &err);
        must(gdn_tensors_open(&tensors, folders[i], &err), "tensors", &err);
        must(gdn_checkpoint_bind(&checkpoint, &config, &tensors, &err), "bind", &err);
        checkpoint_lend_mtp(&checkpoint);
        for (fail_at = 1; status != GDN_OK; fail_at++) {
            gdn_model *model = NULL;
            const long live = n_live;
            n_asked = 0;
            counting = 1;
            status = gdn_model_load(&model, &checkpoint, true, NULL, NULL, &err);
            counting = 0;
            if (status == GDN_OK) gdn_model_close(model);
            else if (status != GDN_NO_MEMORY || model || n_asked < fail_at)
                fail_msg("%s, allocation %ld of %ld: %s", folders[i], fail_at, n_asked, gdn_status_name(status));
            if (n_live != live) fail_msg("%s, allocation %ld: %ld leaked", folders[i], fail_at, n_live - live);
        }
        assert_true(fail_at > 9);
        checkpoint_take_mtp_back(&checkpoint);
        gdn_checkpoint_close(&checkpoint);
        gdn_tensors_close(&tensors);
    }
}

static void a_forward_allocates_nothing(void **unused)
{
    (void)unused;
    enum { TOKENS = 40, V = 256 };
    gdn_model           *model = model_load(folders[1]);
    gdn_compute         *compute = demo_compute(NULL, 2);
    const session_config config = {.n_lanes = 1, .max_rows = TOKENS, .max_positions = 100};
    session              s = session_open(model, compute, &config);
    int32_t              tokens[TOKENS];
    float                logits[V], hidden[TOKENS * 64];
    gdn_kv              *kv = mtp_kv_open(model, 1, 100, GDN_BF16);
    for (int i = 0; i < TOKENS; i++) tokens[i] = i * 37 % V;
    must(gdn_kv_reserve(kv, &(int){TOKENS + 1}, 1, &(gdn_error){0}), "pages", &(gdn_error){0});
    fail_at = 0;
    for (int n = 1, at = 1; n <= TOKENS; n += TOKENS - 1, at++) {
        const int              last = n - 1;
        gdn_error              err = {0};
        const gdn_forward_args args = {.n_lanes = 1,
                                       .n_tokens = &n,
                                       .tokens = tokens,
                                       .n_wanted = 1,
                                       .wanted = &last,
                                       .logits = logits,
                                       .hidden = hidden};
        n_asked = 0;
        counting = 1;
        const gdn_status status = gdn_model_forward(model, compute, s.workspace, s.cache, s.kv, &args, &err);
        const gdn_status mtp = gdn_mtp_forward(model, compute, s.workspace, kv, &args, &at, hidden, &err);
        counting = 0;
        assert_int_equal(status, GDN_OK);
        assert_int_equal(mtp, GDN_OK);
        assert_int_equal(n_asked, 0);
    }
    gdn_kv_close(kv);
    session_close(&s);
    gdn_compute_close(compute);
    gdn_model_close(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails),
                                       cmocka_unit_test(a_forward_allocates_nothing)};
    return cmocka_run_group_tests_name("load, allocations", tests, NULL, NULL);
}
