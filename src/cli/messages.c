#include "cli/messages.h"
#include "format/folder.h"
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static bool refuse(char why[GDN_WHY], const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(why, GDN_WHY, format, ap);
    va_end(ap);
    return false;
}

/* What is wrong with a message, in words that may follow "a message", or NULL. */
static const char *problem_of(const json_t *message)
{
    json_t *content = json_object_get(message, "content"), *part;
    size_t  i;
    if (!json_is_string(json_object_get(message, "role"))) return "that is no object with a role";
    if (!content && !json_is_array(json_object_get(message, "tool_calls"))) return "without content";
    if (content && !json_is_string(content) && !json_is_array(content) && !json_is_null(content))
        return "whose content is neither a text nor a list of parts";
    json_array_foreach(content, i, part)
    {
        /* A template would put the marks of an image in its place, and the model would answer without having seen it. */
        if (!json_is_string(json_object_get(part, "text"))) return "with a part that is no text; gdn reads text alone";
    }
    return NULL;
}

static bool check(const json_t *messages, char why[GDN_WHY])
{
    size_t  i;
    json_t *message;
    if (!json_array_size(messages)) return refuse(why, "has no messages");
    json_array_foreach((json_t *)(uintptr_t)messages, i, message)
    {
        const char *problem = problem_of(message);
        if (problem) return refuse(why, "has a message (number %zu) %s", i + 1, problem);
    }
    return true;
}

static bool check_tools(const json_t *tools, char why[GDN_WHY])
{
    size_t  i;
    json_t *tool;
    if (tools && !json_is_array(tools)) return refuse(why, "has tools that are no list");
    json_array_foreach((json_t *)(uintptr_t)tools, i, tool)
    {
        if (!json_is_object(tool)) return refuse(why, "has a tool (number %zu) that is no object", i + 1);
    }
    return true;
}

/* Whether a text that is not JSON was to be messages: nobody begins a message like this. */
static bool begins_as_messages(const char *text, size_t n)
{
    static const char *const beginnings[] = {"[{\"", "[{'", "{\"messages\"", "{'messages'"};
    char                     begun[12] = {0};
    for (size_t i = 0, k = 0; i < n && k + 1 < sizeof begun; i++)
        if (!strchr(" \t\r\n", text[i])) begun[k++] = text[i];
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (!strncmp(begun, beginnings[i], strlen(beginnings[i]))) return true;
    return false;
}

json_t *gdn_messages_parse(const char *text, size_t n, bool *meant, char why[GDN_WHY])
{
    json_error_t error;
    if (!text) text = ""; /* of no bytes */
    json_t *vars = json_loadb(text, n, 0, &error);
    if (meant) *meant = vars ? json_is_array(vars) || json_object_get(vars, "messages") : begins_as_messages(text, n);
    if (!vars) {
        refuse(why, "is not JSON (line %d: %s)", error.line, error.text);
        return NULL;
    }
    if (json_is_array(vars)) {
        json_t *messages = vars;
        vars = json_pack("{s:o}", "messages", messages);
    }
    if (!json_is_array(json_object_get(vars, "messages")))
        refuse(why, "is neither a list of messages nor an object with one");
    else if (check_tools(json_object_get(vars, "tools"), why) && check(json_object_get(vars, "messages"), why))
        return vars;
    json_decref(vars);
    return NULL;
}

/* ---- files --------------------------------------------------------------------------------------------------------- */

/* Whether a file may be overwritten: it holds a conversation, or nothing. */
static bool is_ours(const char *path)
{
    json_t       *saved = json_load_file(path, 0, NULL);
    const json_t *messages = json_is_array(saved) ? saved : json_object_get(saved, "messages");
    char          why[GDN_WHY];
    const bool    ours = json_is_array(messages) && (!json_array_size(messages) || check(messages, why));
    json_decref(saved);
    return ours;
}

bool gdn_messages_save(const char *path, const json_t *vars, char why[GDN_WHY])
{
    gdn_path  fresh;
    const int n = snprintf(fresh.text, sizeof fresh.text, "%s.XXXXXX", path);
    if (n < 0 || (size_t)n >= sizeof fresh.text) return refuse(why, "cannot be written: its name is too long");
    if (gdn_path_is_folder(path)) return refuse(why, "is a folder; name a file");
    if (gdn_path_exists(path) && !is_ours(path))
        return refuse(why, "exists and is not a conversation; it was left as it is, name another file");
    const int fd = mkstemp(fresh.text);
    if (fd < 0) return refuse(why, "cannot be written: %s", strerror(errno));
    FILE *f = fdopen(fd, "w");
    bool  done = f && !json_dumpf(vars, f, JSON_INDENT(2)) && fputc('\n', f) != EOF && !fflush(f) && !fsync(fd);
    int   error = errno;
    if (f) fclose(f);
    else close(fd);
    if (done && rename(fresh.text, path)) {
        error = errno;
        done = false;
    }
    if (done) return true;
    unlink(fresh.text);
    return refuse(why, "cannot be written: %s", strerror(error));
}
