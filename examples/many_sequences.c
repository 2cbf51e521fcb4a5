/* many_sequences.c - one model, three texts that know nothing of each other,
 * and the tokens of one of them.
 *
 *     cc many_sequences.c $(pkg-config --cflags --libs brass) -o many_sequences
 *     ./many_sequences models/demo.gguf
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <brass/brass.h>

#include <stdio.h>
#include <string.h>

enum { N = 3 };

static int
print(void *ctx, const char *text, size_t n)
{
    (void)ctx;
    fwrite(text, 1, n, stdout);
    return 1;
}

static void
show_tokens(br_llm *m, const char *text, br_error *e)
{
    int32_t ids[16];
    size_t n = br_llm_tokenize(m, text, strlen(text), 0, ids, 16, e), i;

    printf("\"%s\" is", text);
    for (i = 0; n != (size_t)-1 && i < n && i < 16; i++)
        printf(" %ld", (long)ids[i]);
    printf("\n");
}

int
main(int argc, char **argv)
{
    static const char *const begin[N] = {"Once upon a time, a fox",
                                         "There was once a girl",
                                         "One windy day, a bear"};
    br_error *e = br_error_new();
    br_seq *s[N] = {NULL, NULL, NULL};
    br_sampling how;
    br_llm *m;
    int i, turn, bad = 0;

    if (argc != 2) {
        fprintf(stderr, "usage: %s MODEL.gguf\n", argv[0]);
        return 2;
    }
    m = br_llm_open(argv[1], 256, N, e);
    if (!m) {
        fprintf(stderr, "%s\n", br_error_text(e));
        br_error_free(e);
        return 3;
    }
    show_tokens(m, begin[0], e);
    br_sampling_init(&how);
    how.temperature = 0;
    how.max_tokens = 8;
    for (i = 0; i < N && !bad; i++)
        bad = !(s[i] = br_seq_new(m, e));
    /* The second time round each still has its beginning in memory. */
    for (turn = 0; turn < 2; turn++) {
        for (i = 0; i < N && !bad; i++) {
            printf("%s", begin[i]);
            bad = br_seq_continue(s[i], begin[i], &how, print, NULL, e) !=
                  BRASS_OK;
            printf(" ...\n");
        }
    }
    if (bad)
        fprintf(stderr, "%s\n", br_error_text(e));
    for (i = 0; i < N; i++)
        br_seq_free(s[i]);
    br_llm_close(m);
    br_error_free(e);
    return bad;
}
