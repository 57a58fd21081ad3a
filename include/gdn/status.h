/* gdn/status.h - the one list of results, and the error that explains one. */
#ifndef GDN_STATUS_H
#define GDN_STATUS_H
#ifdef __cplusplus
extern "C" {
#endif

/* name, value, sentence.  Values are stable. */
#define GDN_STATUS_LIST(X)                                             \
    X(OK, 0, "success")                                                \
    X(NO_MEMORY, 1, "memory could not be allocated")                   \
    X(BAD_ARGUMENT, 2, "an argument is outside its contract")          \
    X(BAD_STATE, 3, "the call does not fit the state of the object")   \
    X(NO_SLOT, 4, "the state pool has no free slot")                   \
    X(NOT_TRIMMABLE, 5, "a recurrent state cannot be trimmed")         \
    X(BAD_FILE, 6, "a file is damaged or is not of the expected kind") \
    X(MISMATCH, 7, "a snapshot was made for another shape or type")    \
    X(IO, 8, "the operating system refused a file operation")          \
    X(UNSUPPORTED, 9, "this CPU or build does not have what was asked for")

typedef enum gdn_status {
#define X(name, value, text) GDN_##name = value,
    GDN_STATUS_LIST(X)
#undef X
} gdn_status;

/* What went wrong: `code` as returned, `at` the index the message speaks of (a lane, a layer, a byte; 0 if none), and
 * one sentence that says what, where and what to do.  Every function that can fail takes one as its last argument, may be
 * given NULL, and writes it only when it fails. */
typedef struct gdn_error {
    gdn_status code;
    long long  at;
    char       message[240];
} gdn_error;

const char *gdn_status_name(gdn_status status); /* "NO_SLOT"; static; "UNKNOWN" for other values */
const char *gdn_status_text(gdn_status status); /* the sentence of the list; static */

#ifdef __cplusplus
}
#endif
#endif
