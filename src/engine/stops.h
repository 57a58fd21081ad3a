/* engine/stops.h - stop strings over a stream of text.
 *
 * The text ends before the stop string that is completed first; of several that the same byte completes, before the longest.
 * That does not depend on how the stream was cut, and needs no look at what would follow.  What could become the start of a
 * stop string is held back until it is known not to.  Bytes are compared as they are; if the stop strings are whole characters
 * of UTF-8 and so is each piece that is put in, what comes out is whole characters too. */
#ifndef GDN_ENGINE_STOPS_H
#define GDN_ENGINE_STOPS_H
#include "gdn/status.h"
#include <stdbool.h>
#include <stddef.h>

enum { GDN_STOPS_MAX = 256, GDN_STOPS_MAX_BYTES = 4096 }; /* strings; bytes of one */

typedef struct gdn_stop {
    const char *text; /* may hold any bytes */
    size_t      n;    /* 1..GDN_STOPS_MAX_BYTES */
} gdn_stop;

typedef struct gdn_stops gdn_stops;

/* stops[n_stops], 0..GDN_STOPS_MAX, copied; without any, all text passes.  BAD_ARGUMENT: outside these limits (`at`: the
 * string); NO_MEMORY.  *out is written on success only; end it with gdn_stops_close. */
gdn_status gdn_stops_open(gdn_stops **out, const gdn_stop *stops, int n_stops, gdn_error *err);
void       gdn_stops_close(gdn_stops *stops); /* NULL is allowed */

/* The most bytes that can be held back. */
size_t gdn_stops_held_max(const gdn_stops *stops);

/* The next n bytes of the stream.  Writes to out, which holds n + gdn_stops_held_max bytes and must not overlap text, the
 * bytes that can be shown, and returns their count.  Once the text has ended, and until gdn_stops_end, what comes is dropped.
 * Allocates nothing.  Time: bytes times stop strings. */
size_t gdn_stops_put(gdn_stops *stops, const char *text, size_t n, char *out);

/* The stop string that ended the text, or -1. */
int gdn_stops_matched(const gdn_stops *stops);

/* The stream is over: writes what was held back to out[gdn_stops_held_max] and returns its count, 0 if a stop string ended the
 * text.  The next put starts another stream. */
size_t gdn_stops_end(gdn_stops *stops, char *out);

#endif
