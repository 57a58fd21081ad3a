/* generate.c - a chat with a model: the answer is written while it is made.
 *
 * Build:  cc generate.c $(pkg-config --cflags --libs gdn-engine) -o generate
 * Run:    ./generate FOLDER 'What is 12 + 30?' */
#include <gdn/gdn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256 }; /* tokens of an answer */

static gdn_error err;

#define MUST(call) must(call, #call)
static void must(gdn_status status, const char *what)
{
    if (!status) return;
    fprintf(stderr, "generate: %s: %s: %s\n", what, gdn_status_name(status), err.message);
    exit(1);
}

/* Text of the answer goes to stdout, thoughts are not shown. */
static void show(void *arg, const gdn_output_event *event)
{
    (void)arg;
    if (event->kind != GDN_OUTPUT_CONTENT) return;
    fwrite(event->text, 1, event->n_bytes, stdout);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const gdn_engine_options options = {.model = argc > 1 ? argv[1] : "models/demo"};
    gdn_engine              *engine;
    gdn_sequence            *sequence;
    gdn_sampler             *sampler;
    gdn_output              *output;
    gdn_ids                  prompt = {0};
    int                      thinks, n_made = 0;
    char                     vars[4096];

    /* The template's variables are JSON; a real program would let a library write it. */
    const char *const question = argc > 2 ? argv[2] : "What is 12 + 30?";
    if (strpbrk(question, "\"\\\n") || strlen(question) > 3072)
        return fprintf(stderr, "generate: a plain question\n"), 2;
    snprintf(vars, sizeof vars,
             "{\"messages\": [{\"role\": \"user\", \"content\": \"%s\"}], \"add_generation_prompt\": true}", question);

    MUST(gdn_engine_open(&engine, &options, &err));
    MUST(gdn_engine_encode_chat(engine, vars, NULL, &prompt, &thinks, &err));
    MUST(gdn_sequence_open(&sequence, engine, &err));
    const gdn_sampler_options sampling = gdn_engine_default_sampling(engine);
    MUST(gdn_sampler_open(&sampler, gdn_engine_vocab_size(engine), gdn_engine_n_usable(engine), &sampling, &err));
    MUST(gdn_output_open(&output, NULL, thinks, show, NULL, &err));
    gdn_decoder decoder = {.tokenizer = gdn_engine_tokenizer(engine), .skip_special = true};
    char *const piece = malloc(gdn_decoder_room(decoder.tokenizer));
    if (!piece) return 1;

    MUST(gdn_sequence_set(sequence, prompt.id, (int)prompt.n, NULL, NULL, NULL, &err));
    for (size_t i = 0; i < prompt.n; i++) gdn_sampler_accept(sampler, prompt.id[i], false);
    while (n_made++ < MOST) {
        const int32_t token = gdn_sampler_pick(sampler, gdn_sequence_logits(sequence), NULL);
        gdn_sampler_accept(sampler, token, true);
        if (gdn_engine_is_stop(engine, token)) break;
        MUST(gdn_output_feed(output, piece, gdn_decoder_put(&decoder, token, piece), &err));
        MUST(gdn_sequence_push(sequence, token, &err));
    }
    MUST(gdn_output_feed(output, piece, gdn_decoder_end(&decoder, piece), &err));
    MUST(gdn_output_end(output, &err));
    putchar('\n');

    free(piece);
    free(prompt.id);
    gdn_output_close(output);
    gdn_sampler_close(sampler);
    gdn_sequence_close(sequence);
    gdn_engine_close(engine);
    return 0;
}
