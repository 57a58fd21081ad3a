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

static bool check(const json_t *messages, char why[GDN_WHY])
{
    size_t  i;
    json_t *message;
    if (!json_array_size(messages)) return refuse(why, "has no messages");
    json_array_foreach((json_t *)(uintptr_t)messages, i, message)
    {
        const json_t *content = json_object_get(message, "content"), *calls = json_object_get(message, "tool_calls");
        if (!json_is_string(json_object_get(message, "role")))
            return refuse(why, "has a message (number %zu) that is no object with a role", i + 1);
        if (!json_is_string(content) && !json_is_array(content) && !(json_is_null(content) || json_is_array(calls)))
            return refuse(why, "has a message (number %zu) without content", i + 1);
    }
    return true;
}

json_t *gdn_messages_parse(const char *text, size_t n, bool *meant, char why[GDN_WHY])
{
    json_error_t error;
    json_t      *vars = json_loadb(text ? text : "", n, 0, &error);
    if (meant) *meant = json_is_array(vars) || json_object_get(vars, "messages");
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
    else if (json_object_get(vars, "tools") && !json_is_array(json_object_get(vars, "tools")))
        refuse(why, "has tools that are no list");
    else if (check(json_object_get(vars, "messages"), why)) return vars;
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
