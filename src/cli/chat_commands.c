#include "cli/chat.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the messages --------------------------------------------------------------------------------------------------- */

static bool has_role(const json_t *message, const char *role)
{
    const char *is = json_string_value(json_object_get(message, "role"));
    return is && !strcmp(is, role);
}

static int reset(gdn_chat *chat, const char *argument)
{
    (void)argument;
    json_t    *messages = gdn_chat_messages(chat);
    size_t     n = json_array_size(messages);
    const bool system = has_role(json_array_get(messages, 0), "system");
    while (n > (size_t)system) json_array_remove(messages, --n);
    gdn_chat_say(chat, "the conversation is empty%s", system ? "; the system message stays" : "");
    return GDN_EXIT_OK;
}

static int set_system(gdn_chat *chat, const char *text)
{
    json_t    *messages = gdn_chat_messages(chat);
    const bool had = has_role(json_array_get(messages, 0), "system");
    if (had) json_array_remove(messages, 0);
    if (!*text) gdn_chat_say(chat, had ? "the system message is gone" : "there is no system message");
    else if (json_array_insert_new(messages, 0, json_pack("{s:s,s:s}", "role", "system", "content", text)))
        return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "no memory for the system message");
    else gdn_chat_say(chat, "the system message is set");
    return GDN_EXIT_OK;
}

/* Answer again; the old answer stays if there is no new one. */
static int regenerate(gdn_chat *chat, const char *argument)
{
    (void)argument;
    json_t *messages = gdn_chat_messages(chat), *last = json_array_get(messages, json_array_size(messages) - 1);
    if (!last || has_role(last, "system"))
        return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "there is nothing to answer yet; write a message");
    if (!has_role(last, "assistant")) return gdn_chat_answer(chat);
    json_incref(last);
    json_array_remove(messages, json_array_size(messages) - 1);
    const int status = gdn_chat_answer(chat);
    if (status) json_array_append(messages, last);
    else if (chat->session.sampling.temperature == 0)
        gdn_chat_say(chat, "at temperature 0 the answer is the same each time; --temperature changes that");
    if (status == GDN_EXIT_INTERRUPTED) gdn_chat_say(chat, "stopped; the old answer stays");
    json_decref(last);
    return status;
}

static int think(gdn_chat *chat, const char *argument)
{
    const bool on = !strcmp(argument, "on");
    if (!chat->can_think)
        return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "this model's template does not know enable_thinking");
    if (!on && strcmp(argument, "off") != 0) return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "/think takes on or off");
    chat->o.think = on;
    chat->o.no_think = !on;
    gdn_chat_say(chat, "thinking is %s", argument);
    return GDN_EXIT_OK;
}

/* ---- files ---------------------------------------------------------------------------------------------------------- */

/* The file that is meant: ~ is the user's home. */
static int find(gdn_path *path, const char *command, const char *name)
{
    const char *home = !strncmp(name, "~/", 2) ? getenv("HOME") : NULL;
    if (!*name) return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "%s needs the name of a file after it", command);
    const int n = snprintf(path->text, sizeof path->text, "%s%s", home ? home : "", home ? name + 1 : name);
    if (n >= 0 && (size_t)n < sizeof path->text) return GDN_EXIT_OK;
    return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "%s: the name of the file is too long", command);
}

/* "1 message", "2 messages" */
static int count(const gdn_chat *chat, const char **s)
{
    const int n = (int)json_array_size(gdn_chat_messages(chat));
    *s = n == 1 ? "" : "s";
    return n;
}

static int save(gdn_chat *chat, const char *name)
{
    gdn_path    path;
    char        why[GDN_WHY];
    const char *s;
    if (find(&path, "/save", name)) return GDN_EXIT_FAILED;
    json_t *saved = json_copy(chat->vars); /* without what is only for the template */
    json_object_del(saved, "add_generation_prompt");
    json_object_del(saved, "enable_thinking");
    const bool done = saved && gdn_messages_save(path.text, saved, why);
    json_decref(saved);
    if (!done)
        return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "%s %s", path.text, saved ? why : "cannot be written: no memory");
    const int n = count(chat, &s);
    if (!n) gdn_chat_say(chat, "0 messages saved in %s", path.text);
    else if (gdn_chat_state_save(chat, path.text, why))
        gdn_chat_say(chat, "%d message%s saved in %s, what is computed of them in %s.state", n, s, path.text,
                     path.text);
    else gdn_chat_say(chat, "%d message%s saved in %s, not what is computed of them: %s", n, s, path.text, why);
    return GDN_EXIT_OK;
}

static int load(gdn_chat *chat, const char *name)
{
    gdn_path    path;
    char        why[GDN_WHY];
    gdn_text    text = {0};
    gdn_ids     ids = {0};
    gdn_error   err;
    const char *s;
    json_t     *vars = NULL;
    int         thinks, status = find(&path, "/load", name);
    if (!status) status = gdn_cli_read(&text, "chat", path.text);
    if (!status && !(vars = gdn_messages_parse(text.bytes, text.n, NULL, why)))
        status = gdn_cli_fail(GDN_EXIT_FAILED, "chat", "%s %s; the conversation is as it was", path.text, why);
    if (!status && gdn_session_encode(&chat->session, vars, &ids, &thinks, &err))
        status = gdn_cli_fail(GDN_EXIT_FAILED, "chat", "%s: %s; the conversation is as it was", path.text, err.message);
    if (!status) {
        json_decref(chat->vars);
        chat->vars = json_incref(vars);
        const int   n = count(chat, &s), n_computed = gdn_chat_state_load(chat, path.text, why);
        const char *last = has_role(json_array_get(gdn_chat_messages(chat), (size_t)n - 1), "assistant")
                               ? ""
                               : "; /regen answers the last one";
        if (n_computed)
            gdn_chat_say(chat, "%d message%s loaded from %s, %zu tokens, %d of them computed%s", n, s, path.text, ids.n,
                         n_computed, last);
        else
            gdn_chat_say(chat, "%d message%s loaded from %s, %zu tokens, to be computed since %s%s", n, s, path.text,
                         ids.n, why, last);
    }
    json_decref(vars);
    free(ids.id);
    free(text.bytes);
    return status;
}

/* ---- the table ------------------------------------------------------------------------------------------------------ */

static int list(gdn_chat *chat, const char *argument);
static int leave_chat(gdn_chat *chat, const char *argument);

static const struct command {
    const char *name, *argument, *summary;
    int (*run)(gdn_chat *chat, const char *argument);
} commands[] = {
    {"/help", "", "this list", list},
    {"/reset", "", "begin another conversation; the system message stays", reset},
    {"/regen", "", "answer the last message again", regenerate},
    {"/system", "TEXT", "what the model is told before all messages; without TEXT nothing", set_system},
    {"/save", "FILE", "write the conversation as JSON, and what is computed of it to FILE.state", save},
    {"/load", "FILE", "go on with a conversation: a list of messages, or an object with one and perhaps tools", load},
    {"/think", "on|off", "whether the model thinks before it answers", think},
    {"/exit", "", "leave, as Ctrl-D does", leave_chat},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int list(gdn_chat *chat, const char *argument)
{
    (void)argument;
    for (int i = 0; i < N_COMMANDS; i++)
        if (commands[i].run != think || chat->can_think)
            fprintf(stderr, "  %-7s %-7s %s\n", commands[i].name, commands[i].argument, commands[i].summary);
    fprintf(
        stderr,
        "\nA message is a line; one that begins with \"\"\" goes on until a line that ends with \"\"\", and a paste\n"
        "until return.  Ctrl-C stops an answer.\n");
    return GDN_EXIT_OK;
}

static int leave_chat(gdn_chat *chat, const char *argument)
{
    (void)chat, (void)argument;
    return GDN_EXIT_OK;
}

int gdn_chat_command(gdn_chat *chat, const char *line, bool *leave)
{
    char         name[64];
    const size_t n = strcspn(line, " \t\n");
    const char  *argument = line + n + strspn(line + n, " \t\n");
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), line);
    for (int i = 0; i < N_COMMANDS; i++) {
        if (strcmp(name, commands[i].name) != 0) continue;
        if (*argument && !*commands[i].argument)
            return gdn_cli_fail(GDN_EXIT_FAILED, "chat", "%s takes nothing after it", name);
        *leave = commands[i].run == leave_chat;
        return commands[i].run(chat, argument);
    }
    return gdn_cli_fail(GDN_EXIT_FAILED, "chat",
                        "unknown command %s%s; /help lists them, and \"\"\" around a message makes it none", name,
                        gdn_cli_hint(name, commands, N_COMMANDS, sizeof *commands));
}
