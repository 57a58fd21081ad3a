/* cli/show.h - an answer as it is made: its text and calls to stdout, thoughts to a terminal's stderr, dim.
 *
 * What a model writes must not drive a terminal: there, control characters but newline and tab are left out. */
#ifndef GDN_CLI_SHOW_H
#define GDN_CLI_SHOW_H
#include "cli/session.h"
#include <stdio.h>

typedef struct gdn_show {
    bool out_terminal, err_terminal, quiet;
    int  thinking; /* thoughts stand on the current line */
    int  calling;  /* a call does */
    char last;     /* character on stdout; 0: none */
    int  failed;   /* stdout did not take something; it has been said */
} gdn_show;

void gdn_show_start(gdn_show *show, int quiet);
void gdn_show_event(void *arg, const gdn_output_event *event); /* a gdn_output_fn; arg: a gdn_show */

/* The answer is over: end its line.  Returns show->failed. */
int gdn_show_end(gdn_show *show);

/* Write text that is not ours to a stream. */
void gdn_show_text(FILE *f, bool is_terminal, const char *text, size_t n);

/* How fast it went, on stderr. */
void gdn_show_summary(const gdn_show *show, const gdn_session *session, const gdn_answer *answer);

#endif
