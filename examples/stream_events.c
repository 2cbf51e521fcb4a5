/* stream_events.c - several answers at once, token by token, as they are made:
 * which slot made it, how sure the model was, and which token it nearly was.
 *
 *     cc stream_events.c $(pkg-config --cflags --libs brass) -o stream_events
 *     ./stream_events models/demo.gguf
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <brass/brass.h>

#include <stdio.h>
#include <string.h>

enum { N = 4, SLOTS = 2, TOKENS = 6 };

static const char *begin[N] = {"Once upon a time, a fox",
                               "There was once a girl", "One windy day, a bear",
                               "The key was"};

/* ctx: which of begin it goes on from. */
static int
show(void *ctx, const br_output_event *ev)
{
    const char *from = *(const char **)ctx;

    if (ev->eot)
        printf("slot %u  %-24s over: %s %s\n", (unsigned)ev->slot, from,
               ev->end, ev->error);
    else if (ev->preempted)
        printf("slot %u  %-24s waits\n", (unsigned)ev->slot, from);
    else
        printf("slot %u  %-24s %u: token %4u \"%.*s\"  %.2f, next %.2f\n",
               (unsigned)ev->slot, from, (unsigned)ev->generated_pos,
               (unsigned)ev->token, (int)ev->n_text, ev->text,
               (double)ev->logprobs[0], (double)ev->logprobs[2]);
    return 1;
}

static int
ask(br_llm *m, br_batch *b, const char **text, br_error *e)
{
    int32_t ids[64];
    br_sampling how;
    br_request r;
    size_t n =
        br_llm_tokenize(m, *text, strlen(*text), BRASS_ADD_SPECIAL, ids, 64, e);

    if (n == (size_t)-1 || n > 64)
        return 0;
    br_sampling_init(&how);
    how.temperature = 0;
    how.max_tokens = TOKENS;
    memset(&r, 0, sizeof r);
    r.ids = ids;
    r.n_ids = n;
    r.how = &how;
    r.n_logprobs = 3;
    r.fn = show;
    r.ctx = text;
    return br_batch_submit(b, &r, e) != 0;
}

int
main(int argc, char **argv)
{
    br_error *e = br_error_new();
    br_batch *b = NULL;
    br_llm *m;
    int i, ok;

    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL.gguf\n", argv[0]);
        return 2;
    }
    m = br_llm_open(argv[1], 256, SLOTS, e);
    if (m)
        b = br_batch_new(m, e);
    ok = b != NULL;
    for (i = 0; i < N && ok; i++)
        ok = ask(m, b, &begin[i], e);
    while (ok && br_batch_wait(b, -1))
        ;
    if (!ok)
        fprintf(stderr, "%s\n", br_error_text(e));
    br_batch_free(b);
    br_llm_close(m);
    br_error_free(e);
    return !ok;
}
