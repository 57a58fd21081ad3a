/* draft.h - tokens that may come next, guessed cheaply, and how many are worth checking.
 *
 * Drafts change the speed of a text and nothing else: whatever is guessed here, only what the caller's pick returns is kept.
 * So every guess may be stale or wrong, and a failure of memory or room here means no drafts, never an error. */
#ifndef GDN_ENGINE_DRAFT_H
#define GDN_ENGINE_DRAFT_H
#include "engine/parts.h"

/* Where a draft came from: matches of the text with itself by their length in tokens, or the model's MTP layer. */
typedef enum gdn_draft_kind {
    GDN_DRAFT_SHORT,  /* 2 */
    GDN_DRAFT_MIDDLE, /* 3 to 5 */
    GDN_DRAFT_LONG,   /* 6 or more */
    GDN_DRAFT_HEAD,   /* MTP */
    GDN_DRAFT_KINDS
} gdn_draft_kind;

/* The last place of each pair of tokens, by a hash of the pair, and the one before it, and so on. */
typedef struct gdn_lookup {
    int32_t *last;    /* [1 << bits]: the position of the pair's second token, or -1 */
    int32_t *before;  /* [max_tokens]: of the same hash, or -1 */
    int32_t *hash;    /* [max_tokens]: to take a pair out again when its tokens are gone */
    int      bits, n; /* positions 0..n-1 are in */
} gdn_lookup;

/* What is expected of drafts of a kind. */
typedef struct gdn_trust {
    float rate[GDN_DRAFTS_MAX]; /* of drafts that came to be judged, accepted ones */
    int   pause;                /* tokens before one is tried that does not seem to pay */
    int   wait;                 /* the next pause: twice as long each time that nothing is accepted */
} gdn_trust;

/* What a sequence drafts with. */
struct gdn_draft {
    gdn_lookup lookup;
    /* MTP: outputs of the model at the last n_hidden tokens, 1 or more unless the sequence is empty.  The layer's keys and values of
     * all tokens up to the first of these are in the lane's pages. */
    float    *hidden; /* [GDN_DRAFT_HIDDEN][h] */
    int       n_hidden;
    gdn_trust trust[GDN_DRAFT_KINDS];
    bool      tried; /* in this round */
};

enum { GDN_DRAFT_HIDDEN = 128 };

/* ---- draft.c: of a sequence; all allow an engine without a drafter ---------------------------------------------------- */

bool gdn_draft_open(gdn_sequence *sequence, const gdn_engine *engine); /* false: no memory */
void gdn_draft_close(gdn_sequence *sequence);
/* dst, just opened, holds the tokens of src, which is settled. */
void gdn_draft_share(gdn_sequence *dst, const gdn_sequence *src);
/* It holds other tokens now but for the first `kept`; hidden [h]: what the model put out at the last, NULL if there is none or MTP
 * does not draft. */
void gdn_draft_cut(gdn_sequence *sequence, int kept, const float *hidden);
/* It has just been given n tokens; hidden [n][h]: what the model put out at them. */
void gdn_draft_follow(gdn_sequence *sequence, int n, const float *hidden);
/* Before pages are shared: all of MTP that belongs there is computed.  Returns what the model put out at the last token, borrowed, or
 * NULL as above. */
float *gdn_draft_settle(const gdn_sequence *sequence);

/* Guess, for the calls that bring no drafts of their own, what follows: sets e->drafts, e->n_drafted and e->kind.  n_calls: of
 * all. */
void gdn_draft_guess(gdn_engine *engine, int n_calls);
/* The sequence has a token and the n_accepted of n_drafted drafts; `stopped`: the text ended there, not at another token. */
void gdn_draft_judged(gdn_sequence *sequence, int kind, int n_drafted, int n_accepted, bool stopped);

/* The drafts of n_drafts that the call's sequence has room for. */
int gdn_verify_room(const gdn_verify *call, int n_drafts);

/* ---- draft_lookup.c ---------------------------------------------------------------------------------------------------- */

bool gdn_lookup_open(gdn_lookup *lookup, int max_tokens);
void gdn_lookup_close(gdn_lookup *lookup);
void gdn_lookup_cut(gdn_lookup *lookup, int length);
/* What followed the longest recent match of tokens[n] and then `next`, up to `most` tokens: writes them and returns their
 * count; *matched: tokens of the match. */
int gdn_lookup_find(gdn_lookup *lookup, const int32_t *tokens, int n, int32_t next, int most, int32_t *out,
                    int *matched);

/* ---- draft_mtp.c ------------------------------------------------------------------------------------------------------- */

/* Compute the layer's keys and values for all but the last of draft->hidden; `ahead`: tokens that the sequence holds beyond that
 * last one. */
void gdn_mtp_catch_up(const gdn_sequence *sequence, int ahead);
/* Draft depth[lane] tokens for the call of each lane where that is above 0: sets e->drafts and e->n_drafted. */
void gdn_mtp_draft(gdn_engine *engine, const int *depth);

/* ---- draft_cost.c: how many drafts pay --------------------------------------------------------------------------------- */

/* What a round took. */
typedef struct gdn_spent {
    int    n_calls, n_drafts, n_runs; /* of the MTP layer */
    int    n_given, n_given_runs;     /* of those, what calls bring or ask for */
    int    n_gained;                  /* accepted drafts that they do not */
    double seconds;                   /* guessing included */
} gdn_spent;

/* A pass of n_calls tokens, each of another sequence, and of n_drafts took so long, its roll-back included. */
void gdn_costs_pass(gdn_costs *costs, int n_calls, int n_drafts, double seconds);
void gdn_costs_mtp(gdn_costs *costs, double seconds); /* one run of the MTP layer, for all lanes that draft */
/* Seconds of such a pass with so many runs before it; 0: too little is known. */
double gdn_costs_of(const gdn_costs *costs, int n_calls, int n_drafts, int n_runs);
/* Keep the account of what attempts lose.  Returns what the round took without what other programs took; 0: too little is
 * known. */
double gdn_costs_round(gdn_costs *costs, const gdn_spent *spent);

/* Set the depths that promise most tokens a second, or try one; the pass has n_calls and n_drafts without these, and
 * may have max_rows. */
void gdn_costs_choose(const gdn_costs *costs, gdn_offer *offers, int n, int n_calls, int n_drafts, int max_rows);

#endif
