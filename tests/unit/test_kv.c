/* Paged keys and values: lanes that share pages, against plain arrays that share nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "state/kv.h"
#include "support/random.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LAYERS = 2, HEADS = 2, DIM = 4, LANES = 4, POSITIONS = 3 * GDN_PAGE + 5, LANE_PAGES = 4 };

static gdn_error err;

#define ACCEPTED(call)                                                \
    do {                                                              \
        if ((call) != GDN_OK) fail_msg("%s: %s", #call, err.message); \
    } while (0)

static gdn_kv *kv_of(int n_pages)
{
    const gdn_kv_config config = {.n_layers = LAYERS,
                                  .n_heads = HEADS,
                                  .dim = DIM,
                                  .n_pages = n_pages,
                                  .n_lanes = LANES,
                                  .max_positions = POSITIONS};
    gdn_kv             *kv = NULL;
    ACCEPTED(gdn_kv_open(&kv, &config, &err));
    return kv;
}

/* What a lane must hold: a number for each position, from which its keys and values follow. */
typedef struct lane {
    int   length;
    float number[POSITIONS];
} lane;

static float element(float number, int layer, int head, int i, bool value)
{
    return number * 64 + (float)(((layer * HEADS + head) * DIM + i) * 2 + value);
}

static void append(gdn_kv *kv, lane *l, int which, int n, float first)
{
    for (int t = 0; t < n; t++) {
        const float number = l->number[l->length + t] = first + (float)t;
        for (int layer = 0; layer < LAYERS; layer++) {
            float k[HEADS * DIM], v[HEADS * DIM];
            for (int j = 0; j < HEADS * DIM; j++) {
                k[j] = element(number, layer, j / DIM, j % DIM, false);
                v[j] = element(number, layer, j / DIM, j % DIM, true);
            }
            gdn_kv_write(kv, which, layer, l->length + t, k, v);
        }
    }
    l->length += n;
    gdn_kv_set_length(kv, which, l->length);
}

static void expect(const gdn_kv *kv, int which, const lane *l)
{
    const void *keys[LANE_PAGES], *values[LANE_PAGES];
    assert_int_equal(gdn_kv_length(kv, which), l->length);
    for (int layer = 0; layer < LAYERS; layer++)
        for (int head = 0; head < HEADS; head++) {
            const gdn_kv_view view = {kv, layer};
            gdn_kv_pages(&view, which, head, (l->length + GDN_PAGE - 1) / GDN_PAGE, keys, values);
            for (int t = 0; t < l->length * DIM; t++) {
                const int   at = t / DIM, place = at % GDN_PAGE * DIM + t % DIM;
                const float k = ((const float *)keys[at / GDN_PAGE])[place];
                const float v = ((const float *)values[at / GDN_PAGE])[place];
                if (k != element(l->number[at], layer, head, t % DIM, false) ||
                    v != element(l->number[at], layer, head, t % DIM, true))
                    fail_msg("lane %d, layer %d, head %d, position %d: %g and %g", which, layer, head, at, (double)k,
                             (double)v);
            }
        }
}

/* The page of a lane that holds a position. */
static const void *page(const gdn_kv *kv, int which, int position)
{
    const void       *keys[LANE_PAGES], *values[LANE_PAGES];
    const gdn_kv_view view = {kv, 0};
    gdn_kv_pages(&view, which, 0, position / GDN_PAGE + 1, keys, values);
    return keys[position / GDN_PAGE];
}

/* How many pages are free, by asking for ever more. */
static int n_free(const gdn_kv *kv)
{
    int n = 0;
    while (gdn_kv_check_room(kv, LANES - 1, NULL, 0, (n + 1) * GDN_PAGE, NULL) == GDN_OK) n++;
    return n; /* of a kv whose last lane is empty */
}

static void shared_pages(void **unused)
{
    gdn_kv *kv = kv_of(6);
    lane    lanes[LANES] = {0};
    int     more[LANES] = {GDN_PAGE + 10};
    (void)unused;
    ACCEPTED(gdn_kv_reserve(kv, more, LANES, &err));
    append(kv, &lanes[0], 0, GDN_PAGE + 10, 1);
    assert_int_equal(n_free(kv), 4);
    gdn_kv_share(kv, 1, 0, GDN_PAGE + 10);
    gdn_kv_share(kv, 2, 0, GDN_PAGE + 3); /* a part */
    lanes[1] = lanes[2] = lanes[0];
    lanes[2].length = GDN_PAGE + 3;
    assert_int_equal(n_free(kv), 4); /* nothing is copied until somebody writes */
    for (int i = 0; i < 3; i++) expect(kv, i, &lanes[i]);
    assert_ptr_equal(page(kv, 2, GDN_PAGE), page(kv, 0, GDN_PAGE));

    /* Of three owners two copy the last page; the first page stays common. */
    const int one[LANES] = {1, 1, 1};
    ACCEPTED(gdn_kv_reserve(kv, one, LANES, &err));
    assert_int_equal(n_free(kv), 2);
    for (int i = 0; i < 3; i++) append(kv, &lanes[i], i, 1, (float)(1000 + i));
    for (int i = 0; i < 3; i++) expect(kv, i, &lanes[i]);
    assert_ptr_equal(page(kv, 1, 0), page(kv, 0, 0));
    assert_ptr_equal(page(kv, 2, 0), page(kv, 0, 0));

    /* Cut inside the common page, a lane copies it before it writes. */
    gdn_kv_set_length(kv, 1, 7);
    lanes[1].length = 7;
    assert_int_equal(n_free(kv), 3);
    const int second[LANES] = {0, 2};
    ACCEPTED(gdn_kv_reserve(kv, second, LANES, &err));
    append(kv, &lanes[1], 1, 2, 2000);
    for (int i = 0; i < 3; i++) expect(kv, i, &lanes[i]);
    assert_int_equal(n_free(kv), 2);

    /* The last owner gives a page back. */
    gdn_kv_set_length(kv, 0, 0);
    lanes[0].length = 0;
    assert_int_equal(n_free(kv), 3);
    expect(kv, 2, &lanes[2]);
    gdn_kv_share(kv, 2, 0, 0);
    assert_int_equal(n_free(kv), 5);
    gdn_kv_close(kv);
}

/* Exactly the pages that are needed must be enough, one fewer must not, and then nothing has happened. */
static void all_or_nothing(void **unused)
{
    (void)unused;
    for (int n_pages = 1; n_pages <= 3; n_pages++) {
        gdn_kv   *kv = kv_of(n_pages);
        lane      lanes[LANES] = {0};
        const int first[LANES] = {3}, one[LANES] = {1, 1, 1};
        ACCEPTED(gdn_kv_reserve(kv, first, LANES, &err));
        append(kv, &lanes[0], 0, 3, 5);
        gdn_kv_share(kv, 1, 0, 3);
        gdn_kv_share(kv, 2, 0, 3);
        lanes[1] = lanes[2] = lanes[0];
        const void *const before = page(kv, 0, 0);
        for (int again = 0; again < 2 && n_pages < 3; again++) {
            assert_int_equal(gdn_kv_reserve(kv, one, LANES, &err), GDN_NO_SLOT);
            for (int i = 0; i < 3; i++) assert_ptr_equal(page(kv, i, 0), before);
            assert_int_equal(n_free(kv), n_pages - 1);
        }
        if (n_pages == 2) { /* two of the three still find room when the third has gone */
            gdn_kv_set_length(kv, 2, 0);
            lanes[2].length = 0;
        }
        if (n_pages > 1) {
            const int two[LANES] = {1, 1, n_pages == 3};
            ACCEPTED(gdn_kv_reserve(kv, two, LANES, &err));
            for (int i = 0; i < n_pages; i++) append(kv, &lanes[i], i, 1, (float)(100 * i));
            for (int i = 0; i < 3; i++) expect(kv, i, &lanes[i]);
        }
        gdn_kv_close(kv);
    }
}

/* A holder beside the lanes keeps what they leave, and gives it back to others. */
static void held_pages(void **unused)
{
    (void)unused;
    gdn_kv   *kv = kv_of(4);
    lane      lanes[LANES] = {0};
    const int first[LANES] = {GDN_PAGE + 5}, one[LANES] = {1}, two[LANES] = {1, 1};
    ACCEPTED(gdn_kv_reserve(kv, first, LANES, &err));
    append(kv, &lanes[0], 0, GDN_PAGE + 5, 7);
    const lane kept = lanes[0];
    const int  pages[2] = {gdn_kv_list(kv, 0)[0], gdn_kv_list(kv, 0)[1]};
    for (int i = 0; i < 2; i++) gdn_kv_hold(kv, pages[i]);
    assert_int_equal(gdn_kv_n_alone(kv), 0);
    ACCEPTED(gdn_kv_reserve(kv, one, LANES, &err)); /* the lane goes on in a page of its own */
    append(kv, &lanes[0], 0, 1, 900);
    assert_int_equal(gdn_kv_list(kv, 0)[0], pages[0]);
    assert_int_not_equal(gdn_kv_list(kv, 0)[1], pages[1]);
    assert_true(gdn_kv_alone(kv, pages[1]) && !gdn_kv_alone(kv, pages[0]));
    gdn_kv_set_length(kv, 0, 0);
    assert_int_equal(gdn_kv_n_alone(kv), 2);
    gdn_kv_attach(kv, 0, pages, GDN_PAGE + 5);
    gdn_kv_attach(kv, 1, pages, GDN_PAGE + 5);
    lanes[0] = lanes[1] = kept;
    for (int i = 0; i < 2; i++) expect(kv, i, &kept);
    assert_int_equal(gdn_kv_n_alone(kv), 0);
    ACCEPTED(gdn_kv_reserve(kv, two, LANES, &err)); /* both copy: the page is the holder's too */
    for (int i = 0; i < 2; i++) append(kv, &lanes[i], i, 1, (float)(1000 + i));
    for (int i = 0; i < 2; i++) expect(kv, i, &lanes[i]);
    assert_int_equal(gdn_kv_reserve(kv, (const int[LANES]){0, 0, 1}, LANES, &err), GDN_NO_SLOT);
    /* All that the holder has would be room, but the first page is the lanes', too. */
    assert_int_equal(gdn_kv_check_room(kv, 2, NULL, 0, GDN_PAGE, &err), GDN_OK);
    assert_int_equal(gdn_kv_check_room(kv, 2, NULL, 0, GDN_PAGE + 1, &err), GDN_NO_SLOT);
    assert_int_equal(gdn_kv_check_room(kv, 2, pages, GDN_PAGE, GDN_PAGE + 1, &err), GDN_OK);
    for (int i = 0; i < 2; i++) gdn_kv_drop(kv, pages[i]);
    ACCEPTED(gdn_kv_reserve(kv, (const int[LANES]){0, 0, 1}, LANES, &err));
    gdn_kv_close(kv);
}

/* Random sharing, cutting and growing; room is refused exactly when the pages that distinct owners need are too few, which a
 * lane that is told so by check_room finds in reserve too. */
static void random_sharing(void **unused)
{
    static lane lanes[LANES];
    rng         r = {31};
    long        n_refused = 0, n_cut_shared = 0;
    float       next = 1;
    (void)unused;
    memset(lanes, 0, sizeof lanes);
    gdn_kv *kv = kv_of(8);
    for (int i = 0; i < 20000; i++) {
        const int a = rng_below(&r, LANES), b = rng_below(&r, LANES), n = rng_below(&r, 2 * GDN_PAGE);
        lane     *l = &lanes[a];
        if (rng_below(&r, 4) == 0 && a != b) {
            const int length = rng_below(&r, lanes[b].length + 1);
            gdn_kv_share(kv, a, b, length);
            *l = lanes[b];
            l->length = length;
        } else if (rng_below(&r, 4) == 0) {
            l->length = rng_below(&r, l->length + 1);
            gdn_kv_set_length(kv, a, l->length);
            n_cut_shared += l->length % GDN_PAGE != 0;
        } else if (l->length + n <= POSITIONS) {
            int more[LANES] = {0};
            more[a] = n;
            const gdn_status room = gdn_kv_check_room(kv, a, gdn_kv_list(kv, a), l->length, l->length + n, &err);
            assert_int_equal(gdn_kv_reserve(kv, more, LANES, &err), room);
            n_refused += room == GDN_NO_SLOT;
            if (!room) append(kv, l, a, n, next);
            next += (float)n;
            if (next > 200000) next = 1;
        }
        for (int k = 0; k < LANES; k++) expect(kv, k, &lanes[k]);
    }
    assert_true(n_refused > 500 && n_cut_shared > 500);
    for (int k = 0; k < LANES; k++) gdn_kv_set_length(kv, k, 0);
    assert_int_equal(n_free(kv), 8); /* none is lost */
    gdn_kv_close(kv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shared_pages), cmocka_unit_test(all_or_nothing),
                                       cmocka_unit_test(held_pages), cmocka_unit_test(random_sharing)};
    return cmocka_run_group_tests_name("kv", tests, NULL, NULL);
}
