/* places.h - where a list of tokens is worth a snapshot while it is computed. */
#ifndef GDN_ENGINE_PLACES_H
#define GDN_ENGINE_PLACES_H
#include <stdint.h>

/* Places are a function of the list alone, not of how it is cut into calls.  A turn begins where its opening token stands (or at 0).
 *   the end of the list              an exact repeat, another answer, the next turn
 *   the end of the first turn        another conversation with the same system prompt
 *   the beginnings of the last three turns       an edited last message; thoughts that the template takes out of an answer
 *   the beginnings of earlier turns, ever further apart: each at least twice as far from the end of the list as the one after it
 *   64, 128, 256, ... tokens before the end of the first and of the last two turns, at multiples of 64
 * Each but the end saves GDN_PLACE_GAIN tokens at least, counted from the one before it: for less a pass of its own, which reads all
 * weights, costs more than it brings.
 * So a list that differs from this one d tokens before the end of such a turn has at most max(2*d, 64) + 63 + 31 tokens of the turn to
 * compute, and a turn of n tokens costs log2(n/64) snapshots. */
enum { GDN_PLACES = 128, GDN_PLACE_GAIN = 32 };

/* Fill at[GDN_PLACES] with the places after `from`, ascending, the last of them n; returns how many.  turn: the id that opens a
 * turn, or -1. */
int gdn_places(int *at, const int32_t *tokens, int n, int from, int32_t turn);

#endif
