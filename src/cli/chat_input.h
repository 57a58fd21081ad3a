/* cli/chat_input.h - what the user of a chat writes, a message at a time.
 *
 * A message is a line.  One that begins with """ goes on until a line that ends with """, and a paste into a terminal goes on until
 * the user presses return.  A terminal has line editing and a history, which is kept in a file. */
#ifndef GDN_CLI_CHAT_INPUT_H
#define GDN_CLI_CHAT_INPUT_H
#include "text/tokenizer_nfc.h"

typedef struct gdn_chat_input gdn_chat_input;

/* On stdin and, when both are terminals, stderr.  NULL without memory.  End it with gdn_chat_input_close. */
gdn_chat_input *gdn_chat_input_open(void);
void            gdn_chat_input_close(gdn_chat_input *input); /* NULL is allowed */

bool gdn_chat_input_is_terminal(const gdn_chat_input *input);

typedef enum gdn_chat_read {
    GDN_CHAT_MESSAGE,   /* in `text`, without the quotes; *quoted: it had some, and so is no command */
    GDN_CHAT_EMPTY,     /* a line without any text */
    GDN_CHAT_END,       /* the input is over, or Ctrl-D on an empty line */
    GDN_CHAT_INTERRUPT, /* Ctrl-C; what was written until then is gone */
    GDN_CHAT_NOT_UTF8,  /* a message that is not */
    GDN_CHAT_UNCLOSED,  /* the input is over inside a message that """ began; `text` is its text */
    GDN_CHAT_BROKEN,    /* the input cannot be read, or memory is out */
} gdn_chat_read;

/* The next message replaces `text`. */
gdn_chat_read gdn_chat_input_read(gdn_chat_input *input, gdn_text *text, bool *quoted);

#endif
