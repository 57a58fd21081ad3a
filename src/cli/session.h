/* cli/session.h - a model that makes text, as the options of a command line ask: what `run` and `chat` share. */
#ifndef GDN_CLI_SESSION_H
#define GDN_CLI_SESSION_H
#include "cli/cli.h"
#include "gdn/gdn.h"
#include <jansson.h>

/* What the user asked for; what is negative at first is the model makers' choice. */
typedef struct gdn_session_options {
    const char *model, *level, *system, *cache_dir, *spec;
    gdn_texts   stops, bias;
    int         most, threads, context, top_k, seed, think, no_think, quiet, drafts;
    double      temperature, top_p, min_p, repeat, presence, frequency;
} gdn_session_options;

#define GDN_SESSION_DEFAULTS \
    ((gdn_session_options){.temperature = -1, .top_k = -1, .top_p = -1, .min_p = -1, .repeat = -1})

/* The lines of an option table that read them, and the lines of the help that say so. */
enum { GDN_SESSION_OPTIONS = 22 };
void              gdn_session_table(gdn_option table[GDN_SESSION_OPTIONS], gdn_session_options *o);
extern const char gdn_session_help[];

typedef struct gdn_session {
    const char                *verb;
    const gdn_session_options *o;
    gdn_path                   model;
    gdn_engine                *engine;
    gdn_sequence              *sequence;
    gdn_stops                 *stops;
    gdn_token_bias             bias[GDN_TEXTS_MAX];
    gdn_sampler_options        sampling;
    char                      *piece, *shown; /* text of a token; what of it may be shown */
} gdn_session;

/* Load the model; from here on Ctrl-C is noted (cli/signals.h).  Returns GDN_EXIT_OK, or says what is wrong and returns another
 * exit status.  Close it in either case. */
int  gdn_session_open(gdn_session *session, const char *verb, const gdn_session_options *o);
void gdn_session_close(gdn_session *session);

/* The ids of a chat, its variables being an object with messages and perhaps tools, for an answer to follow. */
gdn_status gdn_session_encode(const gdn_session *session, json_t *vars, gdn_ids *ids, int *thinks, gdn_error *err);

/* Whether the model's template heeds enable_thinking. */
bool gdn_session_can_think(const gdn_session *session);

/* ---- answers ------------------------------------------------------------------------------------------------------- */

typedef enum gdn_finish { GDN_FINISH_STOP, GDN_FINISH_LENGTH, GDN_FINISH_CONTEXT, GDN_FINISH_INTERRUPTED } gdn_finish;

/* How an answer is made of a prompt. */
typedef struct gdn_question {
    const gdn_ids *prompt;     /* fewer than the context holds */
    int            chat;       /* 0: text that is continued */
    int            thinks;     /* of a chat: the prompt ends inside a think block */
    const json_t  *tools;      /* of a chat; NULL: none */
    uint64_t       seed;       /* is added to that of the options */
    int            n_logprobs; /* of each token, as many alternatives; negative: no logprobs */
    gdn_output_fn *show;       /* is told what comes; returns through *failed whether it could be shown */
    void          *arg;
    const int     *failed;
} gdn_question;

typedef struct gdn_answer {
    gdn_finish      finish;
    gdn_text        text, reasoning;
    json_t         *calls;                /* [{"type": "function", "function": {"name", "arguments"}}] */
    json_t         *logprobs;             /* or NULL */
    int             stop;                 /* the stop string that ended it, or -1 */
    int             n_prompt, n_computed; /* tokens of the prompt; without those that were computed before */
    int             n_made;
    gdn_draft_stats drafts;
    double          prompt_seconds, made_seconds;
    double          first_token; /* seconds after the process started; 0: none came */
} gdn_answer;

/* Make an answer, to be freed with gdn_answer_free in any case.  Returns GDN_EXIT_OK, also when Ctrl-C ended it, or says what is
 * wrong and returns another exit status. */
int  gdn_session_answer(gdn_session *session, const gdn_question *question, gdn_answer *answer);
void gdn_answer_free(gdn_answer *answer);

#endif
