/* cli/progress.h - a bar on a terminal's stderr. */
#ifndef GDN_CLI_PROGRESS_H
#define GDN_CLI_PROGRESS_H
#include <stddef.h>

/* While a model loads: `done_bytes` of `total_bytes`; the bar goes away when they are equal.  What takes less than a third of a
 * second shows none.  `arg` is not used. */
void gdn_progress_load(void *arg, size_t done_bytes, size_t total_bytes);

/* While a prompt is read. */
void gdn_progress_prompt(int done, int total);

#endif
