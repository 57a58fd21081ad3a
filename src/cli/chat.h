/* cli/chat.h - a chat: the conversation, and what its commands do to it. */
#ifndef GDN_CLI_CHAT_H
#define GDN_CLI_CHAT_H
#include "cli/messages.h"
#include "cli/session.h"
#include "cli/show.h"

typedef struct gdn_chat {
    gdn_session_options o;
    gdn_session         session;
    json_t             *vars; /* "messages", and what a file that was loaded had beside them, as "tools" */
    gdn_show            show;
    uint64_t            n_made;    /* answers, so that the next one draws other numbers */
    int                 terminal;  /* the user is at one */
    int                 can_think; /* the template knows enable_thinking */
} gdn_chat;

json_t *gdn_chat_messages(const gdn_chat *chat); /* borrowed */

/* Answer the conversation, which ends with a message that is not the model's, and append the answer.  GDN_EXIT_OK: there is one,
 * perhaps cut off; GDN_EXIT_INTERRUPTED: Ctrl-C came before it began; else it is said what is wrong.  Without an answer the
 * conversation is as it was. */
int gdn_chat_answer(gdn_chat *chat);

/* Say something that is no answer, on stderr. */
__attribute__((format(printf, 2, 3))) void gdn_chat_say(const gdn_chat *chat, const char *format, ...);

/* PATH.state beside the messages in PATH: what an answer to the next message of the user goes on from.  save computes what is
 * missing of it, which the next answer then need not; load returns how many tokens of the conversation are there.  False or
 * 0: it cannot be done, and `why` says so; the conversation is as it was. */
bool gdn_chat_state_save(gdn_chat *chat, const char *path, char why[GDN_WHY]);
int  gdn_chat_state_load(gdn_chat *chat, const char *path, char why[GDN_WHY]);

/* Obey "/NAME ARGUMENT".  *leave: the chat is over.  Returns GDN_EXIT_OK, or says what is wrong and returns GDN_EXIT_FAILED. */
int gdn_chat_command(gdn_chat *chat, const char *line, bool *leave);

#endif
