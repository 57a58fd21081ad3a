#include "cli/show.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DIM "\033[2m"
#define PLAIN "\033[0m"

void gdn_show_start(gdn_show *show, int quiet)
{
    *show = (gdn_show){.out_terminal = isatty(STDOUT_FILENO), .err_terminal = isatty(STDERR_FILENO), .quiet = quiet};
}

/* C0 and DEL are one byte; C1, which many terminals obey as well, is C2 80 to C2 9F. */
static size_t control(const char *text, size_t n)
{
    const unsigned char c = (unsigned char)*text;
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) return 1;
    return c == 0xc2 && n > 1 && (unsigned char)text[1] < 0xa0 ? 2 : 0;
}

void gdn_show_text(FILE *f, bool is_terminal, const char *text, size_t n)
{
    size_t start = 0;
    for (size_t i = 0; is_terminal && i < n;) {
        const size_t skip = control(text + i, n - i);
        if (skip) fwrite(text + start, 1, i - start, f);
        i += skip ? skip : 1;
        if (skip) start = i;
    }
    fwrite(text + start, 1, n - start, f);
}

static void end_thoughts(gdn_show *show)
{
    if (show->thinking) fputc('\n', stderr);
    show->thinking = 0;
}

void gdn_show_event(void *arg, const gdn_output_event *event)
{
    gdn_show *show = arg;
    if (event->kind == GDN_OUTPUT_REASONING) {
        if (show->quiet || !show->err_terminal) return;
        show->thinking = 1;
        fputs(DIM, stderr);
        gdn_show_text(stderr, true, event->text, event->n_bytes);
        fputs(PLAIN, stderr);
        return;
    }
    end_thoughts(show);
    if (event->kind == GDN_OUTPUT_CALL) {
        if (show->last && show->last != '\n') putchar('\n');
        printf("[call ");
        gdn_show_text(stdout, show->out_terminal, event->name, strlen(event->name));
        putchar(' ');
        gdn_show_text(stdout, show->out_terminal, event->text, event->n_bytes);
        putchar(']');
        show->last = ']';
    } else {
        if (show->calling) putchar('\n');
        gdn_show_text(stdout, show->out_terminal, event->text, event->n_bytes);
        show->last = event->text[event->n_bytes - 1];
    }
    show->calling = event->kind == GDN_OUTPUT_CALL;
    show->failed |= gdn_cli_flush();
}

int gdn_show_end(gdn_show *show)
{
    end_thoughts(show);
    putchar('\n');
    show->failed |= gdn_cli_flush();
    return show->failed;
}

static const char *how(const gdn_answer *a)
{
    switch (a->finish) {
    case GDN_FINISH_STOP: return "";
    case GDN_FINISH_LENGTH: return ", cut off by -n";
    case GDN_FINISH_CONTEXT: return ", the context is full";
    case GDN_FINISH_INTERRUPTED: break;
    }
    return ", interrupted";
}

static double rate(int n, double seconds) { return seconds > 0 ? n / seconds : 0; }

static void show_drafts(const gdn_draft_stats *s)
{
    if (!s->n_drafted) return;
    fprintf(stderr, "; %lld of %lld drafts accepted", s->n_accepted, s->n_drafted);
    if (s->seconds > 0) fprintf(stderr, ", %.2f times as fast", s->plain_seconds / s->seconds);
}

void gdn_show_summary(const gdn_show *show, const gdn_session *s, const gdn_answer *a)
{
    const gdn_compute *compute = gdn_engine_compute(s->engine);
    if (show->quiet) return;
    char cached[64] = "";
    if (a->n_computed < a->n_prompt)
        snprintf(cached, sizeof cached, "cached %d of %d tokens; ", a->n_prompt - a->n_computed, a->n_prompt);
    fprintf(stderr, "%s%sprompt %d tokens, %.0f a second; answer %d tokens, %.0f a second; %s, %d thread%s",
            show->err_terminal ? DIM : "", cached, a->n_computed, rate(a->n_computed, a->prompt_seconds), a->n_made,
            rate(a->n_made, a->made_seconds), gdn_compute_level(compute), gdn_compute_threads(compute),
            gdn_compute_threads(compute) == 1 ? "" : "s");
    show_drafts(&a->drafts);
    fprintf(stderr, "%s%s\n", how(a), show->err_terminal ? PLAIN : "");
}
