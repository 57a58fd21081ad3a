#include "gdn/gdn.h"
#include "base/status.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* One string, followed as Knuth, Morris and Pratt do. */
typedef struct stop {
    size_t    at, n;    /* its text, stops.bytes[at .. at+n) */
    size_t    n_begun;  /* the longest end of the stream that begins it; below n */
    uint16_t *fallback; /* [n]: of the i+1 first bytes, the longest end, not all of them, that begins the string too */
} stop;

struct gdn_stops {
    int       n, matched;
    size_t    held_max, n_bytes;
    char     *bytes;           /* [n_bytes] */
    uint16_t *fallbacks;       /* [n_bytes] */
    size_t    held_at, n_held; /* what is held back begins a stop string: bytes[held_at .. held_at+n_held) */
    stop      stop[];
};

_Static_assert(GDN_STOPS_MAX_BYTES <= UINT16_MAX, "a length fits a fallback");

/* n_begun after one more byte; n when the string is complete. */
static size_t step(const stop *s, const char *text, size_t n_begun, char byte)
{
    while (n_begun > 0 && text[n_begun] != byte) n_begun = s->fallback[n_begun - 1];
    return n_begun + (text[n_begun] == byte);
}

static gdn_status check(const gdn_stop *stops, int n_stops, gdn_error *err)
{
    if (n_stops < 0 || n_stops > GDN_STOPS_MAX)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "stop strings: %d were given; at most %d are allowed", n_stops,
                        (int)GDN_STOPS_MAX);
    if (n_stops > 0 && !stops)
        return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "stop strings: %d were given, and NULL for them; pass them", n_stops);
    for (int i = 0; i < n_stops; i++) {
        if (!stops[i].text || stops[i].n == 0)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "stop string %d is empty; leave it out", i);
        if (stops[i].n > GDN_STOPS_MAX_BYTES)
            return gdn_fail(err, GDN_BAD_ARGUMENT, i, "stop string %d has %zu bytes; at most %d are allowed", i,
                            stops[i].n, (int)GDN_STOPS_MAX_BYTES);
    }
    return GDN_OK;
}

static void add(gdn_stops *stops, const gdn_stop *from)
{
    stop *s = &stops->stop[stops->n++];
    *s = (stop){.at = stops->n_bytes, .n = from->n, .fallback = stops->fallbacks + stops->n_bytes};
    memcpy(stops->bytes + s->at, from->text, from->n);
    stops->n_bytes += from->n;
    if (s->n - 1 > stops->held_max) stops->held_max = s->n - 1;
    s->fallback[0] = 0;
    for (size_t i = 1; i < s->n; i++) s->fallback[i] = (uint16_t)step(s, from->text, s->fallback[i - 1], from->text[i]);
}

gdn_status gdn_stops_open(gdn_stops **out, const gdn_stop *stops, int n_stops, gdn_error *err)
{
    if (!out) return gdn_fail(err, GDN_BAD_ARGUMENT, 0, "stop strings: out must not be NULL; pass it");
    const gdn_status status = check(stops, n_stops, err);
    if (status) return status;
    size_t n_bytes = 1;
    for (int i = 0; i < n_stops; i++) n_bytes += stops[i].n;
    gdn_stops *s = calloc(1, sizeof *s + (size_t)n_stops * sizeof s->stop[0]);
    if (!s) goto fail;
    s->bytes = malloc(n_bytes);
    s->fallbacks = malloc(n_bytes * sizeof *s->fallbacks);
    if (!s->bytes || !s->fallbacks) goto fail;
    s->matched = -1;
    for (int i = 0; i < n_stops; i++) add(s, &stops[i]);
    *out = s;
    return GDN_OK;
fail:
    gdn_stops_close(s);
    return gdn_fail(err, GDN_NO_MEMORY, 0, "stop strings: no memory for %d", n_stops);
}

void gdn_stops_close(gdn_stops *stops)
{
    if (!stops) return;
    free(stops->bytes);
    free(stops->fallbacks);
    free(stops);
}

size_t gdn_stops_held_max(const gdn_stops *stops) { return stops->held_max; }
int    gdn_stops_matched(const gdn_stops *stops) { return stops->matched; }

/* One byte; returns how many were written. */
static size_t put_byte(gdn_stops *stops, char byte, char *out)
{
    size_t longest = 0, at = 0; /* the longest string, or begun string, that the byte ends */
    for (int i = 0; i < stops->n; i++) {
        stop *s = &stops->stop[i];
        s->n_begun = step(s, stops->bytes + s->at, s->n_begun, byte);
        if (s->n_begun == s->n && (stops->matched < 0 || s->n > stops->stop[stops->matched].n)) stops->matched = i;
        if (s->n_begun > longest) {
            longest = s->n_begun;
            at = s->at;
        }
    }
    if (stops->matched >= 0) longest = stops->stop[stops->matched].n;
    const size_t n_shown = stops->n_held + 1 - longest;
    if (n_shown > 0) {
        const size_t n_old = n_shown < stops->n_held ? n_shown : stops->n_held;
        memcpy(out, stops->bytes + stops->held_at, n_old);
        if (n_shown > n_old) out[n_old] = byte;
    }
    stops->held_at = at;
    stops->n_held = stops->matched < 0 ? longest : 0;
    return n_shown;
}

size_t gdn_stops_put(gdn_stops *stops, const char *text, size_t n, char *out)
{
    size_t n_out = 0;
    for (size_t i = 0; i < n && stops->matched < 0; i++) n_out += put_byte(stops, text[i], out + n_out);
    return n_out;
}

size_t gdn_stops_end(gdn_stops *stops, char *out)
{
    const size_t n_out = stops->n_held;
    memcpy(out, stops->bytes + stops->held_at, n_out);
    stops->n_held = 0;
    stops->matched = -1;
    for (int i = 0; i < stops->n; i++) stops->stop[i].n_begun = 0;
    return n_out;
}
