/* operations.h - the random operations of the state-machine test: each runs on the library and on the model. */
#ifndef LAW_OPERATIONS_H
#define LAW_OPERATIONS_H
#include "law/wrong_calls.h"
#include "support/folder.h"

/* What to do, as data: the words are read modulo what is there when the operation runs, so that any part of a sequence
 * of operations is one too. */
typedef struct op {
    int      kind;
    uint32_t word[4];
} op;

static long no_slot, refusals[N_WRONG_CALLS];

/* Every do_ function returns false when the operation does not fit the world, and then nothing was called. */

static cache *pick_cache(world *w, const op *o, int *index)
{
    if (w->n_caches == 0) return NULL;
    *index = (int)(o->word[0] % (unsigned)w->n_caches);
    return w->caches[*index];
}

/* ---- caches and lanes -------------------------------------------------------------------------------------------- */

static bool do_open(world *w, const op *o)
{
    const int  max_lanes = 1 + (int)(o->word[1] % MAX_LANES), max_window = (int)(o->word[2] % (MAX_COUNT + 1));
    gdn_cache *real = NULL;
    gdn_error  err;
    if (w->n_caches == MAX_CACHES) return false;
    say(w, "cache %d: open, max_lanes %d, max_window %d\n", w->n_caches, max_lanes, max_window);
    if (must(w, "gdn_cache_open", gdn_cache_open(&real, w->pool, max_lanes, max_window, &err), &err))
        cache_add(w, real, max_lanes, max_window);
    return true;
}

static bool do_close(world *w, const op *o)
{
    int ci;
    if (!pick_cache(w, o, &ci)) return false;
    say(w, "cache %d: close (the last one takes its number)\n", ci);
    cache_drop(w, ci);
    return true;
}

static bool do_add(world *w, const op *o)
{
    int       ci;
    cache    *c = pick_cache(w, o, &ci);
    const int n = 1 + (int)(o->word[1] % 2);
    gdn_error err;
    if (!c || c->armed || c->n + n > c->max_lanes) return false;
    const int64_t offset = o->word[2] % 3 ? 0 : (int64_t)(o->word[2] % 1000);
    say(w, "cache %d: add %d lanes at offset %lld\n", ci, n, (long long)offset);
    if (!must(w, "gdn_cache_add", gdn_cache_add(c->real, n, offset, &err), &err)) return true;
    for (int i = 0; i < n; i++) c->lanes[c->n++] = lane_new(w, offset);
    return true;
}

static bool do_merge(world *w, const op *o)
{
    int       ci, si;
    cache    *dst = pick_cache(w, o, &ci), *src = pick_cache(w, &(op){.word = {o->word[1]}}, &si);
    gdn_error err;
    if (!dst || dst == src || dst->armed || src->armed || dst->n + src->n > dst->max_lanes) return false;
    for (int i = 0; i < src->n; i++)
        if (src->lanes[i]->now.n == 0) return false;
    say(w, "cache %d: merge the %d lanes of cache %d\n", ci, src->n, si);
    if (!must(w, "gdn_cache_merge", gdn_cache_merge(dst->real, src->real, &err), &err)) return true;
    for (int i = 0; i < src->n; i++) dst->lanes[dst->n++] = src->lanes[i];
    if (src->n) dst->padded = dst->padded || src->padded;
    src->n = 0;
    src->padded = false;
    return true;
}

static bool do_filter(world *w, const op *o)
{
    int       ci, n = 0, rows[MAX_LANES];
    cache    *c = pick_cache(w, o, &ci);
    gdn_error err;
    if (!c || c->armed || c->n == 0) return false;
    for (int i = 0; i < c->n; i++)
        if (law_pick(o->word[1], (unsigned)i, 3)) rows[n++] = i;
    say(w, "cache %d: filter to %d of %d lanes:", ci, n, c->n);
    for (int i = 0; i < n; i++) say(w, " %d", rows[i]);
    say(w, "\n");
    if (!must(w, "gdn_cache_filter", gdn_cache_filter(c->real, rows, n, &err), &err)) return true;
    for (int i = 0, kept = 0; i < c->n; i++)
        if (kept < n && rows[kept] == i) c->lanes[kept++] = c->lanes[i];
        else lane_free(w, c->lanes[i]);
    c->n = n;
    return true;
}

static bool do_extract(world *w, const op *o)
{
    int        ci;
    cache     *c = pick_cache(w, o, &ci);
    gdn_cache *real = NULL;
    gdn_error  err;
    if (!c || c->armed || c->n == 0 || w->n_caches == MAX_CACHES) return false;
    const int   li = (int)(o->word[1] % (unsigned)c->n);
    const lane *l = c->lanes[li];
    if (l->now.n == 0) return false;
    say(w, "cache %d: extract lane %d as cache %d\n", ci, li, w->n_caches);
    if (!must(w, "gdn_cache_extract", gdn_cache_extract(c->real, li, &real, &err), &err)) return true;
    cache *made = cache_add(w, real, 1, c->max_window);
    made->n = 1;
    made->lanes[0] = lane_new(w, 0);
    sequence_copy(w, &made->lanes[0]->now, &l->now);
    made->lanes[0]->slot = l->slot;
    w->refs[l->slot]++;
    return true;
}

/* Without padding, which the lane would lose: the model does not know which lanes had any. */
static bool do_share(world *w, const op *o)
{
    int       ci, si;
    cache    *dst = pick_cache(w, o, &ci), *src = pick_cache(w, &(op){.word = {o->word[1]}}, &si);
    gdn_error err;
    if (!dst || dst->armed || src->armed || dst->padded || dst->n == 0 || src->n == 0) return false;
    const int   to = (int)(o->word[2] % (unsigned)dst->n), from = (int)(o->word[2] / 8 % (unsigned)src->n);
    lane       *l = dst->lanes[to];
    const lane *shared = src->lanes[from];
    say(w, "cache %d lane %d: share lane %d of cache %d\n", ci, to, from, si);
    if (!must(w, "gdn_cache_share", gdn_cache_share(dst->real, to, src->real, from, &err), &err) || l == shared)
        return true;
    sequence_copy(w, &l->now, &shared->now);
    slot_drop(w, &l->slot);
    l->slot = shared->slot;
    if (l->slot >= 0) w->refs[l->slot]++;
    return true;
}

static bool do_clear(world *w, const op *o)
{
    int       ci;
    cache    *c = pick_cache(w, o, &ci);
    gdn_error err;
    if (!c || c->armed || c->padded || c->n == 0) return false;
    const int li = (int)(o->word[1] % (unsigned)c->n);
    lane     *l = c->lanes[li];
    say(w, "cache %d lane %d: clear\n", ci, li);
    if (!must(w, "gdn_cache_clear", gdn_cache_clear(c->real, li, &err), &err)) return true;
    l->now.n = 0;
    l->now.offset = 0;
    slot_drop(w, &l->slot);
    return true;
}

/* ---- padding ----------------------------------------------------------------------------------------------------- */

static bool do_prepare(world *w, const op *o)
{
    int        ci, values[MAX_LANES];
    cache     *c = pick_cache(w, o, &ci);
    const bool left = o->word[1] % 2 == 0;
    gdn_error  err;
    if (!c || c->n == 0 || c->armed) return false;
    say(w, "cache %d: prepare %s:", ci, left ? "left_padding" : "lengths");
    for (int i = 0; i < c->n; i++) say(w, " %d", values[i] = law_pick(o->word[2], (unsigned)i, left ? 4 : 7));
    say(w, "\n");
    if (!must(w, "gdn_cache_prepare", gdn_cache_prepare(c->real, left ? values : NULL, left ? NULL : values, &err),
              &err))
        return true;
    for (int i = 0; i < c->n; i++) {
        c->lanes[i]->skip = left ? values[i] : 0;
        c->lanes[i]->limit = left ? -1 : values[i];
    }
    c->padded = true;
    return true;
}

static bool do_finalize(world *w, const op *o)
{
    int    ci;
    cache *c = pick_cache(w, o, &ci);
    if (!c || !c->padded || c->armed) return false;
    say(w, "cache %d: finalize\n", ci);
    gdn_cache_finalize(c->real);
    for (int i = 0; i < c->n; i++) c->lanes[i]->skip = 0, c->lanes[i]->limit = -1;
    c->padded = false;
    return true;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* Tokens for each lane; in a round mostly no more than the window allows. */
static void ragged_counts(const cache *c, uint32_t word, int *rows)
{
    static const int counts[] = {1, 2, 0, 3, 1, 4, 0, 2, 5, 1};
    const bool       fit = c->armed && word % 16;
    for (int i = 0; i < c->n; i++) {
        rows[i] = word ? counts[law_pick(word, (unsigned)i, 10)] : 1;
        if (fit && rows[i] > c->max_window) rows[i] = c->max_window;
    }
}

/* The calls of a forward: one ragged or rectangular call of each layer, or two ragged ones. */
static int make_pieces(world *w, cache *c, const op *o, piece *p)
{
    const int style = (int)(o->word[1] % 8), wanted = 1 + (int)(o->word[2] % 4);
    const int length = c->armed && o->word[2] % 16 && wanted > c->max_window ? c->max_window : wanted;
    if (c->padded || style >= 5) {
        p[0].rect = true;
        p[0].length = length;
        p[0].masked = c->padded ? gdn_cache_make_mask(c->real, length, p[0].mask) != 0 : style >= 6;
        for (int r = 0; r < c->n * length && !c->padded; r++) p[0].mask[r] = law_pick(o->word[2], (unsigned)r, 3) != 0;
        piece_number(w, c, &p[0]);
        return 1;
    }
    ragged_counts(c, o->word[2], p[0].rows);
    if (style < 3 || c->armed) {
        piece_number(w, c, &p[0]);
        return 1;
    }
    for (int i = 0; i < c->n; i++) {
        const int all = p[0].rows[i];
        p[0].rows[i] = law_pick(o->word[2], 100u + (unsigned)i, all + 1);
        p[1].rows[i] = all - p[0].rows[i];
    }
    piece_number(w, c, &p[0]);
    piece_number(w, c, &p[1]);
    return 2;
}

static void say_pieces(const world *w, int ci, const cache *c, const piece *p, int n_pieces)
{
    say(w, "cache %d: forward%s", ci, c->armed ? " in the round" : "");
    for (int k = 0; k < n_pieces; k++) {
        say(w, "%s %s", k ? ", then" : "",
            p[k].masked ? "rectangular with mask"
            : p[k].rect ? "rectangular"
                        : "ragged");
        for (int i = 0; i < c->n; i++) {
            say(w, i ? " | " : " ");
            if (p[k].masked)
                for (int r = p[k].row0[i]; r < p[k].row0[i + 1]; r++) say(w, "%c", p[k].mask[r] ? 'x' : '.');
            else say(w, "%d", p[k].rows[i]);
        }
    }
    say(w, "\n");
}

/* How many slots a forward takes: lanes of one cache that share a slot may each take one, or all but the last. */
static void slots_needed(const world *w, const cache *c, const int *gained, int *least, int *most)
{
    int here[MAX_SLOTS + MAX_LANES] = {0};
    *least = *most = 0;
    for (int i = 0; i < c->n; i++) {
        const int slot = c->lanes[i]->slot;
        if (gained[i] == 0) continue;
        if (slot >= 0) here[slot]++;
        *most += c->armed || slot < 0 || w->refs[slot] > 1;
        *least += c->armed || slot < 0 || w->refs[slot] > here[slot];
    }
}

static void forward_done(world *w, cache *c, const piece *p, int n_pieces)
{
    for (int i = 0; i < c->n; i++) {
        lane *l = c->lanes[i];
        int   gained = 0;
        for (int k = 0; k < n_pieces; k++)
            for (int r = p[k].row0[i]; r < p[k].row0[i + 1]; r++)
                if (p[k].ids[r]) l->now.ids[l->now.n + gained++] = p[k].ids[r];
        l->now.n += gained;
        if (c->armed && gained) {
            l->slot_before = l->slot;
            l->slot = slot_take(w);
        } else if (gained && (l->slot < 0 || w->refs[l->slot] > 1)) {
            slot_drop(w, &l->slot);
            l->slot = slot_take(w);
        }
    }
    c->recorded = c->armed;
}

static bool advance(world *w, cache *c, const piece *p, const int *gained)
{
    int       counts[MAX_LANES];
    gdn_error err;
    if (p->rect && (c->padded || !p->masked)) {
        if (!must(w, "gdn_cache_advance", gdn_cache_advance(c->real, p->length, counts, &err), &err)) return false;
        if (memcmp(counts, gained, (size_t)c->n * sizeof *counts)) return failed(w, "gdn_cache_advance: wrong counts");
    } else if (!must(w, "gdn_cache_advance_rows", gdn_cache_advance_rows(c->real, gained, &err), &err)) {
        return false;
    }
    for (int i = 0; i < c->n; i++) {
        lane *l = c->lanes[i];
        l->now.offset += gained[i];
        if (!c->padded) continue;
        l->skip = l->skip > p->length ? l->skip - p->length : 0;
        if (l->limit >= 0) l->limit = l->limit > p->length ? l->limit - p->length : 0;
    }
    return true;
}

/* Between two layers a lane holds the new memory where a layer has run and the old one elsewhere; and nothing of a
 * round may be resolved. */
static bool check_half(world *w, int ci)
{
    const cache *c = w->caches[ci];
    const int    keep = 0;
    gdn_error    err;
    for (int i = 0; i < c->n; i++)
        for (int layer = 0; layer < w->model.n_layers && c->lanes[i]->now.n; layer++)
            if (!check_memory(w, ci, i, layer)) return false;
    if (!c->armed) return true;
    return refused(w, "commit before the last layer", GDN_BAD_STATE, gdn_round_commit(c->real, &err), &err) &&
           refused(w, "rollback before the last layer", GDN_BAD_STATE,
                   gdn_round_rollback(w->compute, c->real, &keep, 1, &err), &err);
}

static bool run_layers(world *w, int ci, const piece *p, int n_pieces, const int *slots)
{
    cache *c = w->caches[ci];
    for (int layer = 0; layer < w->model.n_layers; layer++) {
        int done[MAX_LANES] = {0};
        for (int k = 0; k < n_pieces; k++) {
            gdn_error        err;
            const gdn_status status = forward_piece(w, c, layer, &p[k], done, &err);
            if (w->failed) return false;
            if (status == GDN_NO_SLOT && layer == 0 && k == 0 && slots_free(w) < slots[1]) {
                say(w, "    NO_SLOT\n");
                no_slot++;
                return false;
            }
            if (!must(w, "gdn_delta_layer", status, &err)) return false;
            if (slots_free(w) < slots[0])
                return failed(w, "a forward that needs %d slots found %d", slots[0], slots_free(w));
        }
        if (layer + 1 < w->model.n_layers && !check_half(w, ci)) return false;
    }
    return true;
}

static bool do_forward(world *w, const op *o)
{
    int    ci, gained[MAX_LANES], slots[2];
    piece  p[2] = {0};
    cache *c = pick_cache(w, o, &ci);
    bool   too_long = false;
    if (!c || c->n == 0 || c->recorded) return false;
    const int n_pieces = make_pieces(w, c, o, p);
    for (int i = 0; i < c->n; i++) {
        gained[i] = piece_valid(&p[0], i) + (n_pieces > 1 ? piece_valid(&p[1], i) : 0);
        if (c->lanes[i]->now.n + gained[i] > MAX_TOKENS) return false;
        too_long = too_long || gained[i] > c->max_window;
    }
    slots_needed(w, c, gained, &slots[0], &slots[1]);
    if (n_pieces > 1 && slots[1] > slots_free(w)) return false;
    say_pieces(w, ci, c, p, n_pieces);
    if (c->armed && too_long) {
        int       done[MAX_LANES] = {0};
        gdn_error err;
        return refused(w, "a window beyond max_window", GDN_BAD_ARGUMENT, forward_piece(w, c, 0, p, done, &err),
                       &err) ||
               true;
    }
    for (int i = 0; i < c->n && c->armed; i++) sequence_copy(w, &c->lanes[i]->before, &c->lanes[i]->now);
    if (!run_layers(w, ci, p, n_pieces, slots)) return true;
    forward_done(w, c, p, n_pieces);
    if (c->armed && o->word[3] % 2) say(w, "    without advance\n");
    else advance(w, c, p, gained);
    return true;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void resolve(world *w, cache *c, const int *keep)
{
    for (int i = 0; i < c->n; i++) {
        lane *l = c->lanes[i];
        if (l->now.n == l->before.n) {
            l->now.offset = l->before.offset; /* without tokens it had no shadow */
        } else if (keep[i] < l->now.n - l->before.n || keep[i] == 0) {
            lane_keep(w, l, keep[i]);
        } else {
            l->now.offset = l->before.offset + keep[i];
            slot_drop(w, &l->slot_before);
        }
    }
    c->recorded = false;
}

static bool do_begin(world *w, const op *o)
{
    static const int none[MAX_LANES] = {0};
    int              ci;
    cache           *c = pick_cache(w, o, &ci);
    gdn_error        err;
    if (!c || c->n == 0 || c->max_window == 0 || c->padded || (c->armed && o->word[1] % 4)) return false;
    say(w, "cache %d: begin a round%s\n", ci, c->recorded ? ", dropping a recorded one" : c->armed ? " again" : "");
    if (!must(w, "gdn_round_begin", gdn_round_begin(c->real, &err), &err)) return true;
    if (c->recorded) resolve(w, c, none);
    c->armed = true;
    return true;
}

static bool do_commit(world *w, const op *o)
{
    int       ci, keep[MAX_LANES];
    cache    *c = pick_cache(w, o, &ci);
    gdn_error err;
    if (!c || !c->recorded) return false;
    say(w, "cache %d: commit\n", ci);
    for (int i = 0; i < c->n; i++) keep[i] = lane_window(c, i);
    if (!must(w, "gdn_round_commit", gdn_round_commit(c->real, &err), &err)) return true;
    resolve(w, c, keep);
    c->armed = false;
    return true;
}

static bool do_rollback(world *w, const op *o)
{
    int        ci, keep[MAX_LANES], least = MAX_COUNT;
    cache     *c = pick_cache(w, o, &ci);
    const bool one = o->word[1] % 3 == 0;
    gdn_error  err;
    if (!c || !c->recorded) return false;
    for (int i = 0; i < c->n; i++) least = lane_window(c, i) < least ? lane_window(c, i) : least;
    say(w, "cache %d: rollback, keep%s", ci, one ? " of every lane" : "");
    for (int i = 0; i < c->n; i++) {
        keep[i] = one ? law_pick(o->word[2], 0, least + 1) : law_pick(o->word[2], (unsigned)i, lane_window(c, i) + 1);
        if (i == 0 || !one) say(w, " %d of %d", keep[i], lane_window(c, i));
    }
    say(w, "\n");
    const fpmode     mine = mode_enter(w);
    const gdn_status status = gdn_round_rollback(w->compute, c->real, keep, one ? 1 : c->n, &err);
    mode_leave(w, mine);
    if (!must(w, "gdn_round_rollback", status, &err)) return true;
    resolve(w, c, keep);
    c->armed = false;
    return true;
}

/* ---- snapshots --------------------------------------------------------------------------------------------------- */

static bool do_take(world *w, const op *o)
{
    int       ci;
    cache    *c = pick_cache(w, o, &ci);
    gdn_error err;
    if (!c || c->n == 0 || c->recorded || w->n_snapshots == MAX_SNAPSHOTS) return false;
    const int   li = (int)(o->word[1] % (unsigned)c->n);
    const lane *l = c->lanes[li];
    snapshot    s = {0};
    if (l->now.n == 0) return false;
    say(w, "snapshot %d: take cache %d lane %d\n", w->n_snapshots, ci, li);
    if (!must(w, "gdn_snapshot_take", gdn_snapshot_take(&s.real, c->real, li, &err), &err)) return true;
    sequence_copy(w, &s.copy, &l->now);
    w->snapshots[w->n_snapshots++] = s;
    return true;
}

static bool do_restore(world *w, const op *o)
{
    int       ci;
    cache    *c = pick_cache(w, o, &ci);
    gdn_error err;
    if (!c || c->n == 0 || c->recorded || w->n_snapshots == 0) return false;
    const int       li = (int)(o->word[1] % (unsigned)c->n), si = (int)(o->word[2] % (unsigned)w->n_snapshots);
    lane           *l = c->lanes[li];
    const bool      needs = l->slot < 0 || w->refs[l->slot] > 1;
    const snapshot *s = &w->snapshots[si];
    say(w, "cache %d lane %d: restore snapshot %d\n", ci, li, si);
    const gdn_status status = gdn_snapshot_restore(c->real, li, s->real, &err);
    if (needs && slots_free(w) == 0) return refused(w, "restore without a slot", GDN_NO_SLOT, status, &err) || true;
    if (!must(w, "gdn_snapshot_restore", status, &err)) return true;
    sequence_copy(w, &l->now, &s->copy);
    if (needs) {
        slot_drop(w, &l->slot);
        l->slot = slot_take(w);
    }
    return true;
}

static bool do_release(world *w, const op *o)
{
    if (w->n_snapshots == 0) return false;
    const int si = (int)(o->word[0] % (unsigned)w->n_snapshots);
    say(w, "snapshot %d: release (the last one takes its number)\n", si);
    snapshot_drop(w, si);
    return true;
}

/* Through a file and back; the snapshot read takes the place of the one written. */
static bool do_reload(world *w, const op *o)
{
    const char   *path = in_folder("snapshot");
    gdn_snapshot *read = NULL;
    gdn_error     err;
    if (w->n_snapshots == 0) return false;
    const int si = (int)(o->word[0] % (unsigned)w->n_snapshots);
    snapshot *s = &w->snapshots[si];
    say(w, "snapshot %d: save and load\n", si);
    if (!must(w, "gdn_snapshot_save", gdn_snapshot_save(s->real, path, &err), &err)) return true;
    if (!must(w, "gdn_snapshot_load", gdn_snapshot_load(&read, w->pool, path, &err), &err)) return true;
    gdn_snapshot_release(s->real);
    s->real = read;
    return true;
}

static bool do_wrong(world *w, const op *o)
{
    int    ci;
    cache *c = pick_cache(w, o, &ci);
    if (!c) return false;
    const int  kind = (int)(o->word[1] % N_WRONG_CALLS);
    const bool made = wrong_calls[kind].call(w, c, o->word[2]);
    if (made) say(w, "cache %d: wrong call: %s\n", ci, wrong_calls[kind].name);
    refusals[kind] += made;
    return made;
}

#endif
