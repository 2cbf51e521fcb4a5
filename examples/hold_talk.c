/* hold_talk.c - two messages of one talk: the second asks about the first.
 *
 *     cc hold_talk.c $(pkg-config --cflags --libs brass) -o hold_talk
 *     ./hold_talk models/demo.gguf
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <brass/brass.h>

#include <stdio.h>

static int
print(void *ctx, const char *text, size_t n)
{
    (void)ctx;
    fwrite(text, 1, n, stdout);
    return 1;
}

static int
say(br_seq *s, const char *message, br_error *e)
{
    br_sampling how;

    br_sampling_init(&how);
    how.temperature = 0; /* always the likeliest */
    printf("> %s\n", message);
    if (br_seq_say(s, message, &how, print, NULL, e) != BRASS_OK)
        return 0;
    printf("\n");
    return 1;
}

int
main(int argc, char **argv)
{
    br_error *e = br_error_new();
    int ok = 0;
    br_llm *m;
    br_seq *s;

    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL.gguf\n", argv[0]);
        return 2;
    }
    m = br_llm_open(argv[1], 0, 1, e);
    s = m ? br_seq_new(m, e) : NULL;
    if (s)
        ok = say(s, "Tell me a story about a brave mouse named Pip.", e) &&
             say(s, "Who is the story about?", e);
    if (!ok)
        fprintf(stderr, "%s\n", br_error_text(e));
    br_seq_free(s);
    br_llm_close(m);
    br_error_free(e);
    return !ok;
}
