/* continue_text.c - a model goes on with a text, and the text streams.
 *
 *     cc continue_text.c $(pkg-config --cflags --libs brass) -o continue_text
 *     ./continue_text models/demo.gguf "Once upon a time"
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <brass/brass.h>

#include <stdio.h>

static int
print(void *ctx, const char *text, size_t n)
{
    (void)ctx;
    fwrite(text, 1, n, stdout);
    fflush(stdout);
    return !ferror(stdout); /* nobody listens: no need to go on */
}

int
main(int argc, char **argv)
{
    const char *prompt = argc > 2 ? argv[2] : "Once upon a time";
    br_error *e = br_error_new();
    br_sampling how;
    br_llm *m;
    br_seq *s;

    if (argc < 2) {
        fprintf(stderr, "usage: %s MODEL.gguf [TEXT]\n", argv[0]);
        return 2;
    }
    m = br_llm_open(argv[1], 0, 1, e);
    s = m ? br_seq_new(m, e) : NULL;
    br_sampling_init(&how);
    how.seed = 7; /* the same story each time */
    how.max_tokens = 40;
    if (s) {
        printf("%s", prompt);
        br_seq_continue(s, prompt, &how, print, NULL, e);
        printf("\n(%lu tokens, ended by %s)\n", (unsigned long)br_seq_tokens(s),
               br_seq_end(s));
    }
    if (br_error_code(e) != BRASS_OK)
        fprintf(stderr, "%s\n", br_error_text(e));
    br_seq_free(s);
    br_llm_close(m);
    argc = br_error_code(e) != BRASS_OK;
    br_error_free(e);
    return argc;
}
