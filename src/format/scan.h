/* format/scan.h - a cursor over JSON of a known form, for headers with many thousands of entries.  It builds nothing, recurses
 * to a fixed depth, and reads no byte outside its text. */
#ifndef GDN_FORMAT_SCAN_H
#define GDN_FORMAT_SCAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After the first thing that is not as expected, every call returns false and changes nothing. */
typedef struct gdn_scan {
    const char *text;
    size_t      n, at;
    const char *expected; /* what should have stood at `at`, for a message; NULL: nothing was wrong */
} gdn_scan;

/* The members of an object or the elements of an array, `open` being '{' or '[':
 *     for (bool more = gdn_scan_begin(s, '{'); more; more = gdn_scan_more(s, '}')) { read one }
 * The loop also ends when something is wrong. */
bool gdn_scan_begin(gdn_scan *s, char open);
bool gdn_scan_more(gdn_scan *s, char close);

/* A string of printable ASCII, unescaped, into dst [size] with a closing 0; *length without it.  Other characters are refused:
 * these strings are names, and end up in messages and paths. */
bool gdn_scan_string(gdn_scan *s, char *dst, size_t size, size_t *length);

/* A string as above and the colon behind it. */
bool gdn_scan_key(gdn_scan *s, char *dst, size_t size, size_t *length);

/* A whole number, 0 .. 2^64-1. */
bool gdn_scan_whole(gdn_scan *s, uint64_t *value);

/* Any value, nested at most 32 deep. */
bool gdn_scan_skip(gdn_scan *s);

/* Nothing but white space is left. */
bool gdn_scan_end(gdn_scan *s);

#endif
