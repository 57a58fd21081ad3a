/* What is computed of a conversation, as a file beside its messages. */
#include "cli/chat.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "engine/record.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The ids of the conversation with one more message of the user. */
static gdn_status encode_with(const gdn_chat *chat, const char *message, gdn_ids *ids, gdn_error *err)
{
    json_t *vars = json_copy(chat->vars), *messages = json_copy(gdn_chat_messages(chat));
    json_array_append_new(messages, json_pack("{s:s,s:s}", "role", "user", "content", message));
    json_object_set_new(vars, "messages", messages);
    const gdn_status status = gdn_session_encode(&chat->session, vars, ids, NULL, err);
    json_decref(vars);
    return status;
}

/* What the conversation begins with, whatever the user says next: all up to the control token that opens the message.  It is not
 * what the sequence has after an answer, since templates show an answer otherwise once there is another question. */
static gdn_status encode_lasting(const gdn_chat *chat, gdn_ids *ids, gdn_error *err)
{
    gdn_ids    other = {0};
    size_t     n = 0;
    gdn_status status = encode_with(chat, "a", ids, err);
    if (!status) status = encode_with(chat, "b", &other, err);
    while (n < ids->n && n < other.n && ids->id[n] == other.id[n]) n++;
    while (n && !gdn_tokenizer_is_added(gdn_engine_tokenizer(chat->session.engine), ids->id[--n])) continue;
    ids->n = n;
    free(other.id);
    return status;
}

/* PATH.state; false: it would be too long. */
static bool name_of(gdn_path *state, const char *path, char why[GDN_WHY])
{
    const int n = snprintf(state->text, sizeof state->text, "%s.state", path);
    if (n >= 0 && (size_t)n < sizeof state->text) return true;
    snprintf(why, GDN_WHY, "the name of the file is too long");
    return false;
}

static int on_progress(void *arg, int done, int total)
{
    const gdn_chat *chat = arg;
    if (!chat->o.quiet) gdn_progress_prompt(gdn_interrupted() ? total : done, total);
    return gdn_interrupted();
}

bool gdn_chat_state_save(gdn_chat *chat, const char *path, char why[GDN_WHY])
{
    gdn_path  state;
    gdn_ids   ids = {0};
    gdn_error err;
    if (!name_of(&state, path, why)) return false;
    if (gdn_path_exists(state.text) && !gdn_record_is(state.text)) {
        snprintf(why, GDN_WHY, "%.160s exists and is no state; it was left as it is", state.text);
        return false;
    }
    gdn_sequence *const seq = chat->session.sequence;
    gdn_status          status = encode_lasting(chat, &ids, &err);
    if (!status) status = gdn_sequence_set(seq, ids.id, (int)ids.n, on_progress, chat, NULL, &err);
    const mode_t mask = umask(077); /* as private as the messages are */
    if (!status) status = gdn_sequence_save(seq, state.text, &err);
    umask(mask);
    if (status) snprintf(why, GDN_WHY, "%.*s", GDN_WHY - 1, gdn_interrupted() ? "stopped" : err.message);
    free(ids.id);
    return !status;
}

/* A sequence that holds much may leave too little room for what is read. */
static gdn_status load(gdn_sequence *seq, const char *path, const gdn_ids *ids, gdn_error *err)
{
    const gdn_status status = gdn_sequence_load(seq, path, err);
    if (status != GDN_NO_SLOT || gdn_sequence_set(seq, ids->id, 1, NULL, NULL, NULL, err)) return status;
    return gdn_sequence_load(seq, path, err);
}

int gdn_chat_state_load(gdn_chat *chat, const char *path, char why[GDN_WHY])
{
    gdn_path  state;
    gdn_ids   ids = {0};
    gdn_error err;
    int       n = 0;
    if (!name_of(&state, path, why)) return 0;
    if (!gdn_path_exists(state.text)) {
        snprintf(why, GDN_WHY, "there is no %.200s", state.text);
        return 0;
    }
    gdn_sequence *const seq = chat->session.sequence;
    gdn_status          status = encode_lasting(chat, &ids, &err);
    if (!status) status = load(seq, state.text, &ids, &err);
    if (!status) n = gdn_sequence_length(seq);
    if (status) snprintf(why, GDN_WHY, "%.80s: %.160s", state.text, err.message);
    else if ((size_t)n > ids.n || memcmp(gdn_sequence_tokens(seq), ids.id, (size_t)n * sizeof *ids.id) != 0) {
        snprintf(why, GDN_WHY, "%.200s is of another conversation", state.text);
        n = 0;
    }
    free(ids.id);
    return n;
}
