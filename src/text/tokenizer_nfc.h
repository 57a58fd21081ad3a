/* text/tokenizer_nfc.h - the text that tokens are made of: valid UTF-8, in Unicode's normalisation form C. */
#ifndef GDN_TEXT_TOKENIZER_NFC_H
#define GDN_TEXT_TOKENIZER_NFC_H
#include <stdbool.h>
#include <stddef.h>

/* Text that grows; zero it before first use, and free with free(text.bytes). */
typedef struct gdn_text {
    char  *bytes;
    size_t n, capacity;
} gdn_text;

/* Append n bytes; false without memory, and then the text is as it was. */
bool gdn_text_append(gdn_text *text, const char *bytes, size_t n);

/* Room for n more bytes; false without memory. */
bool gdn_text_reserve(gdn_text *text, size_t n);

/* text = `bytes` with U+FFFD for each maximal part that is not UTF-8 (scan_utf8.h), as lossy decoders do.  *needed says
 * whether there was any; if not, `text` is left alone.  false without memory. */
bool gdn_text_repair(gdn_text *text, const char *bytes, size_t n, bool *needed);

/* text = the NFC of valid UTF-8.  *needed is false, and `text` left alone, where a look at each character showed that the
 * bytes are their own NFC.  Linear in n, also for long runs of combining marks.  false without memory. */
bool gdn_text_compose(gdn_text *text, const char *bytes, size_t n, bool *needed);

#endif
