/* cli/signals.h - Ctrl-C while something is made, and what happens to a terminal while a line is read. */
#ifndef GDN_CLI_SIGNALS_H
#define GDN_CLI_SIGNALS_H
#include <stdbool.h>

/* From now on Ctrl-C is noted instead of ending the program. */
void gdn_signals_catch(void);

/* Whether Ctrl-C was pressed since the last gdn_interrupt_clear. */
bool gdn_interrupted(void);
void gdn_interrupt_clear(void);

/* Wait until `fd` can be read, or a signal came: Ctrl-C, or (*redraw) the terminal changed its size or came back. */
void gdn_signals_wait(int fd, bool *redraw);

#endif
