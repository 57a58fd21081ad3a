/* parts.h - what stands behind an engine and a sequence. */
#ifndef GDN_ENGINE_PARTS_H
#define GDN_ENGINE_PARTS_H
#include "engine/prefix.h"
#include "engine/store.h"
#include "format/config.h"
#include "gdn/gdn.h"
#include "model/model.h"
#include "text/template.h"

enum { GDN_COSTS_ROWS = 64 };

/* What passes take, and what may be lost on drafts: draft_cost.c. */
typedef struct gdn_costs {
    double plain[GDN_COSTS_ROWS + 1]; /* seconds of passes of so many calls */
    double added[GDN_COSTS_ROWS + 1]; /* by each draft in a pass of so many rows, calls and drafts */
    double mtp;                       /* of a run of the MTP layer */
    int    n_plain[GDN_COSTS_ROWS + 1], n_added[GDN_COSTS_ROWS + 1], n_mtp; /* samples, as far as they are counted */
    int    n_drafted;                                                       /* rounds with drafts in a row */
    double credit;                                                          /* seconds that attempts may lose */
    bool   begun;
} gdn_costs;

/* Drafts that a sequence could have. */
typedef struct gdn_offer {
    const float *rate; /* [most]: how likely each is accepted, once those before it are */
    int          most;
    bool         by_mtp, asked; /* asked: all of them, whether it pays or not */
    bool         due;           /* one may be tried even if it does not seem to pay */
    int          depth;         /* how many to take */
    bool         tried;         /* in that way */
    double       chance;        /* of the next */
} gdn_offer;

typedef struct gdn_draft gdn_draft;

/* A sequence is a lane, of the cache and of kv alike.
 *
 * The pool has two slots for a sequence besides one for each snapshot of the prefix index, and more are never needed: a step takes
 * one for every lane whose slot others see, and lanes that see one slot which is no snapshot came by it in forks.  One more is for
 * a record that is read, and with drafts one for each sequence: the shadow of a round. */
struct gdn_engine {
    gdn_model            *model;
    gdn_generation_config generation;
    gdn_tokenizer        *tokenizer;
    gdn_tokenizer_config  text;
    gdn_template         *chat; /* NULL: the model has none */
    gdn_compute          *compute;
    gdn_pool             *pool;
    gdn_cache            *cache; /* n_sequences lanes */
    gdn_kv               *kv;    /* likewise, and one more: where records are read into */
    gdn_cache            *read;  /* one lane, likewise */
    gdn_prefix           *prefix;
    gdn_store            *store;   /* NULL: no cache_dir */
    uint64_t              binding; /* of records; 0: not known yet */
    int                  *more;    /* [n_sequences + 1], zeros between calls: room for what is read */
    int32_t              *list;    /* [max_tokens]: tokens of a record */
    int32_t               turn;    /* the token that opens a turn of a chat, or -1 */
    gdn_workspace        *workspace;
    int                   n_sequences, max_tokens, max_step;
    int                   piece; /* tokens of a prompt that are computed at a time */
    bool                 *used;  /* [n_sequences]: lanes that a sequence owns */

    /* of the step that runs */
    const gdn_step **step_of;  /* [n_sequences]: NULL for lanes without tokens */
    int             *n_tokens; /* [n_sequences] */
    int             *wanted;   /* [max_rows] */
    int32_t         *tokens;   /* [max_step], lane after lane */
    float           *logits;   /* [max_rows][V] of several rows */

    /* drafts */
    gdn_drafter  drafter;
    int          n_drafts;                                    /* most of a sequence in a pass */
    int          max_rows;                                    /* whose logits there is room for */
    gdn_verify **call_of;                                     /* [n_sequences]: NULL for lanes without one */
    int32_t     *drafts;                                      /* [n_sequences][GDN_DRAFTS_MAX] */
    int         *n_drafted, *kind, *depth, *keep, *first_row; /* [n_sequences] each */
    int         *lanes;                                       /* all five */
    gdn_offer   *offers;                                      /* [n_sequences] */
    gdn_costs    costs;
    /* of MTP; NULL where it does not draft */
    bool     by_mtp;                /* it drafts, and its layer is the last of kv */
    float   *hidden;                /* [max_step][h]: what the model, or MTP, put out */
    int     *mtp_rows, *mtp_places; /* [n_sequences]: rows of a lane; the position of the first */
    int      n_mtp_runs;            /* in the round that runs */
    int32_t *mtp_tokens;            /* [max_step] */
};

struct gdn_sequence {
    gdn_engine     *engine;
    int             lane;
    int32_t        *tokens; /* [max_tokens] */
    int             length;
    bool            has_logits;
    float          *logits; /* [V] */
    gdn_draft      *draft;  /* NULL: the engine does not draft */
    gdn_draft_stats stats;
};

/* As gdn_engine_open, of a model that is loaded and is the engine's from here on, also after a failure: without text. */
gdn_status gdn_engine_open_model(gdn_engine **out, gdn_model *model, const gdn_engine_options *options, gdn_error *err);

/* The sequence becomes empty; what it held goes to the index. */
void gdn_sequence_leave(gdn_sequence *sequence);

/* What a file must have in common with this engine; what the file of a sequence, which is not empty, holds. */
gdn_record gdn_engine_record(gdn_engine *engine);
gdn_record gdn_sequence_record(const gdn_sequence *sequence);

/* Read from cache_dir what goes further in this list than the index does, and pin in the index what goes furthest.  It is never an
 * error if that cannot be done. */
void gdn_engine_fetch(gdn_engine *engine, const int32_t *tokens, int n);
/* Whether cache_dir goes further in this list than so many tokens. */
bool gdn_engine_stores_more(gdn_engine *engine, const int32_t *tokens, int n, int than);
/* Write what is in the index to cache_dir, likewise; a snapshot that leaves it (gdn_prefix_leave_fn). */
void gdn_engine_store(gdn_engine *engine);
void gdn_engine_spill(void *engine, int node);

/* Append; logits are computed if `wanted`, else these sequences have none afterwards.  Else as gdn_engine_step. */
gdn_status gdn_engine_append(gdn_engine *engine, const gdn_step *steps, int n_steps, bool wanted, gdn_error *err);

gdn_status gdn_engine_check_step(const gdn_engine *engine, const gdn_step *step, int i, gdn_error *err);

/* Room and records for drafts; NO_MEMORY. */
gdn_status gdn_engine_open_drafts(gdn_engine *engine, gdn_error *err);
void       gdn_engine_close_drafts(gdn_engine *engine);

/* Ask `pick` for the token after each row of logits [n_drafts+1][V] while it is the next draft.  Returns how many were, and *next,
 * the last token that it said. */
int gdn_judge(const float *logits, size_t V, const int32_t *drafts, int n_drafts, gdn_pick_fn *pick, void *arg,
              int32_t *next);

double gdn_engine_now(void); /* seconds */

#endif
