#include "cli/chat_input.h"
#include "cli/signals.h"
#include "format/folder.h"
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wchar.h>

enum { HISTORY = 1000 }; /* messages that are kept */

struct gdn_chat_input {
    EditLine *el; /* NULL: stdin is read as it is */
    History  *history;
    gdn_path  file;        /* of the history; empty: none */
    bool      more;        /* a message goes on */
    int       ended;       /* why a line of the terminal did */
    bool      invalid;     /* it is not UTF-8 */
    char      bytes[4096]; /* that were read ahead */
    size_t    at, n;
};

/* ---- bytes --------------------------------------------------------------------------------------------------------- */

enum { AT_END = -1, AT_INTERRUPT = -2, AT_ERROR = -3 };

static int next_byte(gdn_chat_input *in)
{
    while (in->at == in->n) {
        bool redraw;
        if (in->el) fflush(stderr);
        gdn_signals_wait(STDIN_FILENO, &redraw);
        if (gdn_interrupted()) return AT_INTERRUPT;
        if (redraw && in->el) {
            el_resize(in->el);
            el_set(in->el, EL_REFRESH);
            continue;
        }
        const ssize_t n = read(STDIN_FILENO, in->bytes, sizeof in->bytes);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return n ? AT_ERROR : AT_END;
        in->at = 0;
        in->n = (size_t)n;
    }
    return (unsigned char)in->bytes[in->at++];
}

/* ---- a line of a terminal ------------------------------------------------------------------------------------------- */

/* What libedit calls for input: 1 and a character, 0 at the end, -1. */
static int next_character(EditLine *el, wchar_t *c)
{
    gdn_chat_input *in;
    mbstate_t       state = {0};
    el_get(el, EL_CLIENTDATA, &in);
    for (int n = 0;; n++) {
        const int byte = next_byte(in);
        if (byte < 0) {
            in->ended = byte;
            return byte == AT_END ? 0 : -1;
        }
        const size_t used = mbrtowc(c, &(char){(char)byte}, 1, &state);
        if (used == (size_t)-2) continue;
        if (used != (size_t)-1) return 1;
        if (n) in->at--; /* it may begin another one */
        in->invalid = true;
        *c = 0xfffd;
        return 1;
    }
}

/* Insert what stands between ESC [200~ and ESC [201~; a return in it is a new line and sends nothing. */
static unsigned char paste(EditLine *el, wint_t key)
{
    static const wchar_t end[] = L"\033[201~";
    enum { ROOM = 256, N_END = 6 };
    wchar_t text[ROOM + N_END + 1];
    int     n = 0, matched = 0;
    (void)key;
    for (wchar_t c; matched < N_END;) {
        if (next_character(el, &c) != 1) return CC_EOF;
        if (c == end[matched]) {
            matched++;
            continue;
        }
        for (int i = 1; i < matched; i++) text[n++] = end[i]; /* it was not the end; ESC is no text */
        matched = c == *end;
        if (c == L'\r') c = L'\n';
        if (c >= 0x20 || c == L'\n' || c == L'\t') text[n++] = c;
        if (n < ROOM) continue;
        text[n] = 0;
        n = 0;
        if (el_winsertstr(el, text)) return CC_ERROR;
    }
    text[n] = 0;
    return n && el_winsertstr(el, text) ? CC_ERROR : CC_REFRESH;
}

static char *prompt(EditLine *el)
{
    static char     first[] = "> ", next[] = ". ";
    gdn_chat_input *in;
    el_get(el, EL_CLIENTDATA, &in);
    return in->more ? next : first;
}

/* A line of the terminal without its end. */
static gdn_chat_read edit_line(gdn_chat_input *in, gdn_text *text)
{
    int n = 0;
    in->ended = 0;
    el_set(in->el, EL_PREP_TERM, 1); /* before the prompt asks for input */
    fputs("\033[?2004h", stderr);
    const char *line = el_gets(in->el, &n);
    fputs("\033[?2004l", stderr);
    if (in->ended == AT_ERROR) return GDN_CHAT_BROKEN;
    if (in->ended == AT_INTERRUPT) {
        fputc('\n', stderr);
        return GDN_CHAT_INTERRUPT;
    }
    if (!line || n <= 0) {
        fputc('\n', stderr);
        return GDN_CHAT_END;
    }
    const size_t length = strlen(line);
    return gdn_text_append(text, line, length - (line[length - 1] == '\n')) ? GDN_CHAT_MESSAGE : GDN_CHAT_BROKEN;
}

/* ---- a line of a pipe or a file -------------------------------------------------------------------------------------- */

static gdn_chat_read plain_line(gdn_chat_input *in, gdn_text *text)
{
    const size_t start = text->n;
    for (;;) {
        const int  byte = next_byte(in);
        const char c = (char)byte;
        if (byte == AT_INTERRUPT) return GDN_CHAT_INTERRUPT;
        if (byte == AT_ERROR) return GDN_CHAT_BROKEN;
        if (byte == AT_END && text->n == start) return GDN_CHAT_END;
        if (byte == AT_END || c == '\n') break;
        if (!gdn_text_append(text, &c, 1)) return GDN_CHAT_BROKEN;
    }
    if (text->n > start && text->bytes[text->n - 1] == '\r') text->n--;
    return GDN_CHAT_MESSAGE;
}

/* ---- the history ----------------------------------------------------------------------------------------------------- */

/* $XDG_STATE_HOME/gdn/history, or that of ~/.local/state; its folders are made. */
static void find_file(gdn_path *file)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int         n = -1;
    if (state && *state) n = snprintf(file->text, sizeof file->text, "%s/gdn/history", state);
    else if (home && *home) n = snprintf(file->text, sizeof file->text, "%s/.local/state/gdn/history", home);
    if (n < 0 || (size_t)n >= sizeof file->text) n = 0;
    file->text[n] = 0;
    for (char *slash = n ? strchr(file->text + 1, '/') : NULL; slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(file->text, 0700); /* a failure shows when the file is written, and is no reason not to chat */
        *slash = '/';
    }
}

/* The file has either its old messages or all of the new ones. */
static void save_history(gdn_chat_input *in)
{
    HistEvent event;
    gdn_path  fresh;
    const int n = snprintf(fresh.text, sizeof fresh.text, "%s.new", in->file.text);
    if (!*in->file.text || n < 0 || (size_t)n >= sizeof fresh.text) return;
    if (history(in->history, &event, H_SAVE, fresh.text) < 0 || rename(fresh.text, in->file.text)) unlink(fresh.text);
}

static void remember(gdn_chat_input *in, const char *text)
{
    HistEvent event;
    if (!in->history || !*text) return;
    history(in->history, &event, H_ENTER, text);
    save_history(in);
}

/* ---- messages -------------------------------------------------------------------------------------------------------- */

static const char quotes[] = "\"\"\"";
enum { N_QUOTES = 3 };

static bool ends_quoted(const gdn_text *text)
{
    return text->n >= N_QUOTES && !memcmp(text->bytes + text->n - N_QUOTES, quotes, N_QUOTES);
}

static gdn_chat_read read_lines(gdn_chat_input *in, gdn_text *text, bool *quoted)
{
    gdn_chat_read (*const line)(gdn_chat_input *, gdn_text *) = in->el ? edit_line : plain_line;
    gdn_chat_read got = line(in, text);
    *quoted = got == GDN_CHAT_MESSAGE && text->n >= N_QUOTES && !memcmp(text->bytes, quotes, N_QUOTES);
    if (!*quoted) return got;
    in->more = true;
    while (got == GDN_CHAT_MESSAGE && (text->n < 2 * N_QUOTES || !ends_quoted(text)))
        got = gdn_text_append(text, "\n", 1) ? line(in, text) : GDN_CHAT_BROKEN;
    in->more = false;
    return got == GDN_CHAT_END ? GDN_CHAT_UNCLOSED : got;
}

/* Whether there is something to read in it. */
static bool is_blank(const gdn_text *text)
{
    for (size_t i = 0; i < text->n; i++)
        if (!strchr(" \t\r\n", text->bytes[i]) || !text->bytes[i]) return false;
    return true;
}

gdn_chat_read gdn_chat_input_read(gdn_chat_input *in, gdn_text *text, bool *quoted)
{
    gdn_text repaired = {0};
    text->n = 0;
    in->invalid = false;
    gdn_chat_read got = read_lines(in, text, quoted);
    if (got != GDN_CHAT_MESSAGE && got != GDN_CHAT_UNCLOSED) return got;
    if (!gdn_text_append(text, "", 1)) return GDN_CHAT_BROKEN; /* a NUL that is not counted */
    text->n--;
    if (!in->invalid && !gdn_text_repair(&repaired, text->bytes, text->n, &in->invalid)) return GDN_CHAT_BROKEN;
    free(repaired.bytes);
    if (in->invalid) return GDN_CHAT_NOT_UTF8;
    remember(in, text->bytes);
    if (got == GDN_CHAT_UNCLOSED) return got;
    if (*quoted) {
        text->n -= 2 * N_QUOTES;
        memmove(text->bytes, text->bytes + N_QUOTES, text->n);
        text->bytes[text->n] = 0;
    }
    return is_blank(text) ? GDN_CHAT_EMPTY : GDN_CHAT_MESSAGE;
}

/* ---- opening --------------------------------------------------------------------------------------------------------- */

static bool open_terminal(gdn_chat_input *in)
{
    HistEvent event;
    if (!setlocale(LC_CTYPE, "C.UTF-8")) setlocale(LC_CTYPE, ""); /* for the widths of characters */
    in->el = el_init("gdn", stdin, stderr, stderr);
    in->history = history_init();
    if (!in->el || !in->history) return false;
    history(in->history, &event, H_SETSIZE, HISTORY);
    history(in->history, &event, H_SETUNIQUE, 1);
    find_file(&in->file);
    if (*in->file.text) history(in->history, &event, H_LOAD, in->file.text);
    el_set(in->el, EL_CLIENTDATA, in);
    el_set(in->el, EL_EDITOR, "emacs");
    el_set(in->el, EL_HIST, history, in->history);
    el_set(in->el, EL_PROMPT, prompt);
    el_wset(in->el, EL_GETCFN, next_character);
    el_wset(in->el, EL_ADDFN, L"gdn-paste", L"Insert a paste", paste);
    el_wset(in->el, EL_BIND, L"\\e[200~", L"gdn-paste", NULL);
    return true;
}

gdn_chat_input *gdn_chat_input_open(void)
{
    gdn_chat_input *in = calloc(1, sizeof *in);
    if (!in || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO) || open_terminal(in)) return in;
    gdn_chat_input_close(in);
    return NULL;
}

void gdn_chat_input_close(gdn_chat_input *in)
{
    if (!in) return;
    if (in->el) el_end(in->el);
    if (in->history) history_end(in->history);
    free(in);
}

bool gdn_chat_input_is_terminal(const gdn_chat_input *in) { return in->el != NULL; }
