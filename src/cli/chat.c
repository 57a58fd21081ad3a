/* gdn chat: a conversation with a model. */
#include "cli/chat.h"
#include "cli/chat_input.h"
#include "cli/signals.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int help(void)
{
    printf("gdn chat - talk with a model\n"
           "\n"
           "usage: gdn chat [MODEL] [options]    from a pipe each line is a message\n"
           "\n"
           "  --system TEXT     what the model is told before all messages\n"
           "  --think  --no-think   ask the chat template for thoughts, or for none\n"
           "  -n N              most tokens of an answer (what the context has room for)\n"
           "%s"
           "  --quiet           nothing on stderr but errors\n"
           "\n"
           "A message is a line.  One that begins with \"\"\" goes on until a line that ends\n"
           "with \"\"\", and a paste until return.  Ctrl-C stops an answer, Ctrl-D leaves,\n"
           "/help lists the commands.  The history is ~/.local/state/gdn/history.\n"
           "\n"
           "  gdn chat Qwen/Qwen3.5-0.8B --system 'Answer in French.' --no-think\n"
           "  printf 'What is 2+3?\\nAnd 4+5?\\n' | gdn chat --quiet\n",
           gdn_session_help);
    return GDN_EXIT_OK;
}

json_t *gdn_chat_messages(const gdn_chat *chat) { return json_object_get(chat->vars, "messages"); }

void gdn_chat_say(const gdn_chat *chat, const char *format, ...)
{
    va_list ap;
    if (chat->o.quiet) return;
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
}

/* ---- an answer ----------------------------------------------------------------------------------------------------- */

static json_t *message_of(const gdn_answer *a)
{
    json_t *message =
        json_pack("{s:s,s:s%}", "role", "assistant", "content", a->text.bytes ? a->text.bytes : "", a->text.n);
    if (a->reasoning.n)
        json_object_set_new(message, "reasoning_content", json_stringn(a->reasoning.bytes, a->reasoning.n));
    if (json_array_size(a->calls)) json_object_set(message, "tool_calls", a->calls);
    return message;
}

/* What became of it, in a sentence where it is not whole. */
static void say_how(const gdn_chat *chat, const gdn_answer *a)
{
    gdn_show_summary(&chat->show, &chat->session, a);
    if (a->finish == GDN_FINISH_INTERRUPTED)
        gdn_chat_say(chat, "stopped; what the model said so far stays in the conversation");
    if (a->finish == GDN_FINISH_LENGTH)
        gdn_chat_say(chat, "cut off after %d tokens (-n); what the model said so far stays in the conversation",
                     a->n_made);
    if (a->finish == GDN_FINISH_CONTEXT)
        gdn_chat_say(
            chat,
            "the context of %d tokens is full, and the answer is cut off; /save FILE keeps the conversation, /reset "
            "begins another one, and --context gives more room",
            gdn_engine_max_tokens(chat->session.engine));
}

static int encode(gdn_chat *chat, gdn_ids *ids, int *thinks)
{
    gdn_error err;
    if (gdn_session_encode(&chat->session, chat->vars, ids, thinks, &err))
        return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "%s", err.message);
    if (ids->n < (size_t)gdn_engine_max_tokens(chat->session.engine)) return GDN_EXIT_OK;
    return gdn_cli_fail(
        GDN_EXIT_FAILED, "chat",
        "the conversation would have %zu tokens and the context has room for %d; it is as it was before: "
        "write less, /save it and begin another one with /reset, or start with --context",
        ids->n, gdn_engine_max_tokens(chat->session.engine));
}

int gdn_chat_answer(gdn_chat *chat)
{
    gdn_ids      ids = {0};
    gdn_answer   a = {.calls = NULL};
    gdn_question q = {.prompt = &ids,
                      .chat = 1,
                      .tools = json_object_get(chat->vars, "tools"),
                      .seed = chat->n_made,
                      .n_logprobs = -1,
                      .show = gdn_show_event,
                      .arg = &chat->show,
                      .failed = &chat->show.failed};
    gdn_show_start(&chat->show, chat->o.quiet);
    int status = encode(chat, &ids, &q.thinks);
    if (!status) status = gdn_session_answer(&chat->session, &q, &a);
    if (!status && !a.n_made) status = GDN_EXIT_INTERRUPTED;
    if (!status) {
        gdn_show_end(&chat->show);
        json_t *message = message_of(&a);
        if (!message || json_array_append_new(gdn_chat_messages(chat), message))
            status = gdn_cli_fail(GDN_EXIT_FAILED, "chat", "no memory for the answer; it is not in the conversation");
        chat->n_made++;
        if (!status) say_how(chat, &a);
    }
    gdn_answer_free(&a);
    free(ids.id);
    return status;
}

/* ---- the user ------------------------------------------------------------------------------------------------------ */

/* A message of the user.  One that gets no answer is not kept in the conversation. */
static int ask(gdn_chat *chat, const gdn_text *text)
{
    json_t      *messages = gdn_chat_messages(chat);
    const size_t n = json_array_size(messages);
    if (json_array_append_new(messages, json_pack("{s:s,s:s%}", "role", "user", "content", text->bytes, text->n)))
        return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "no memory for the message; it was not sent");
    const int status = gdn_chat_answer(chat);
    if (status) json_array_remove(messages, n);
    if (status == GDN_EXIT_INTERRUPTED)
        gdn_chat_say(chat, "stopped before the answer began; your message is not in the conversation");
    return status;
}

/* What was read and is not a message.  *leave: it is the last. */
static int heed(gdn_chat *chat, gdn_chat_read got, bool *leave)
{
    switch (got) {
    case GDN_CHAT_INTERRUPT:
        if (chat->terminal) gdn_chat_say(chat, "Ctrl-D or /exit leaves");
        return GDN_EXIT_OK;
    case GDN_CHAT_END: *leave = true; return GDN_EXIT_OK;
    case GDN_CHAT_NOT_UTF8: return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "the message is not UTF-8; it was not sent");
    case GDN_CHAT_UNCLOSED:
        *leave = true;
        return gdn_cli_fail(GDN_EXIT_FAILED, "chat",
                            "the input ended inside a message that \"\"\" began; it was not sent");
    case GDN_CHAT_BROKEN:
        *leave = true;
        return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "standard input cannot be read any more");
    case GDN_CHAT_EMPTY:
    case GDN_CHAT_MESSAGE: break;
    }
    return GDN_EXIT_OK;
}

/* At a terminal a turn that failed is a message on the screen; elsewhere it is the end. */
static int converse(gdn_chat *chat, gdn_chat_input *input)
{
    gdn_text text = {0};
    bool     leave = false, quoted;
    int      status = GDN_EXIT_OK;
    while (!leave) {
        const gdn_chat_read got = gdn_chat_input_read(input, &text, &quoted);
        if (got != GDN_CHAT_MESSAGE) status = heed(chat, got, &leave);
        else if (*text.bytes == '/' && !quoted) status = gdn_chat_command(chat, text.bytes, &leave);
        else status = ask(chat, &text);
        if (gdn_interrupted() && !chat->terminal) status = GDN_EXIT_INTERRUPTED;
        gdn_interrupt_clear();
        if (chat->show.failed) status = GDN_EXIT_FAILED;
        if (chat->show.failed || (status && !chat->terminal)) break;
    }
    free(text.bytes);
    return leave && chat->terminal && !chat->show.failed ? GDN_EXIT_OK : status;
}

static int start(gdn_chat *chat)
{
    int status = gdn_session_open(&chat->session, "chat", &chat->o);
    if (status) return status;
    if (!gdn_engine_has_template(chat->session.engine))
        return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "%s has no chat template; use 'gdn run', which continues a text",
                            chat->session.model.text);
    chat->can_think = gdn_session_can_think(&chat->session);
    chat->vars = json_pack("{s:[]}", "messages");
    if (chat->vars && chat->o.system &&
        json_array_append_new(gdn_chat_messages(chat),
                              json_pack("{s:s,s:s}", "role", "system", "content", chat->o.system)))
        return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "--system is not UTF-8; convert it first");
    return chat->vars ? GDN_EXIT_OK : gdn_cli_fail(GDN_EXIT_FAILED, "chat", "no memory for a conversation");
}

int gdn_verb_chat(int argc, char **argv)
{
    gdn_chat   chat = {.o = GDN_SESSION_DEFAULTS};
    int        want_help = 0;
    gdn_option table[GDN_SESSION_OPTIONS + 1] = {{"--help", GDN_OPTION_FLAG, &want_help, 0, 0}};
    gdn_session_table(table + 1, &chat.o);
    int status = gdn_options_read("chat", argc, argv, table, sizeof table / sizeof *table);
    if (status) return status;
    if (want_help) return help();
    gdn_chat_input *input = gdn_chat_input_open();
    if (!input) return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "no memory for reading messages");
    chat.terminal = gdn_chat_input_is_terminal(input);
    status = start(&chat);
    if (!status && chat.terminal)
        gdn_chat_say(&chat, "%s, %d tokens of context; /help lists the commands, Ctrl-D leaves",
                     chat.session.model.text, gdn_engine_max_tokens(chat.session.engine));
    if (!status) status = converse(&chat, input);
    gdn_chat_input_close(input);
    gdn_session_close(&chat.session);
    json_decref(chat.vars);
    return status;
}
