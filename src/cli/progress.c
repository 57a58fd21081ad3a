#include "cli/progress.h"
#include "cli/cli.h"
#include <stdio.h>
#include <unistd.h>

enum { WIDTH = 30 };

typedef struct bar {
    double started; /* when it would first have been shown; 0: not yet */
    int    shown;   /* the percentage that stands there, less 1; 0: nothing does */
} bar;

static void draw(bar *b, const char *what, double done, double total, const char *unit)
{
    static const char full[] = "##############################", empty[] = "..............................";
    const double      now = gdn_cli_seconds();
    const int         percent = total > 0 ? (int)(100 * done / total) : 100;
    if (b->started == 0) b->started = now;
    if (done >= total) {
        if (b->shown) fputs("\r\033[K", stderr);
        *b = (bar){0};
    } else if (now - b->started > 0.3 && percent + 1 != b->shown) {
        const int n = WIDTH * percent / 100;
        fprintf(stderr, "\r%s %.*s%.*s %3d %% of %.4g %s\033[K", what, n, full, WIDTH - n, empty, percent, total, unit);
        b->shown = percent + 1;
    }
}

void gdn_progress_load(void *arg, size_t done_bytes, size_t total_bytes)
{
    static bar load;
    (void)arg;
    if (isatty(STDERR_FILENO)) draw(&load, "loading", (double)done_bytes / 1e9, (double)total_bytes / 1e9, "GB");
}

void gdn_progress_prompt(int done, int total)
{
    static bar prompt;
    if (isatty(STDERR_FILENO)) draw(&prompt, "reading", done, total, "tokens");
}
