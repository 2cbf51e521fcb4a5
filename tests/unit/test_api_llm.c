/* test_api_llm.c - models, texts and talks through brass.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/api.h"

#include "t.h"

#include <string.h>

typedef struct heard {
    char text[2000];
    size_t n, pieces, enough;
    br_seq *cancel; /* at the first piece */
} heard;

static int
hear(void *ctx, const char *text, size_t n)
{
    heard *h = ctx;

    ck_assert(n > 0 && h->n + n < sizeof h->text);
    memcpy(h->text + h->n, text, n);
    h->n += n;
    if (h->cancel)
        br_seq_cancel(h->cancel);
    return ++h->pieces != h->enough;
}

static br_llm *
demo(uint32_t sequences)
{
    br_error e;
    br_llm *m = br_llm_open(t_repo("models/demo.gguf"), 128, sequences, &e);

    ck_assert_msg(m != NULL, "%s", e.st.msg);
    return m;
}

static br_sampling
greedy(int64_t most)
{
    br_sampling s;

    br_sampling_init(&s);
    s.temperature = 0;
    s.max_tokens = most;
    return s;
}

TEST_WITHIN(api_sequences_do_not_disturb_each_other, 120)
{
    const char *const begin[] = {"Once upon a time", "One windy day"};
    br_llm *m = demo(2);
    br_sampling how = greedy(6);
    heard alone[2], both[2];
    br_error e;
    br_seq *s;

    memset(alone, 0, sizeof alone);
    memset(both, 0, sizeof both);
    for (int i = 0; i < 2; i++) {
        s = br_seq_new(m, &e);
        ck_assert_int_eq(
            br_seq_continue(s, begin[i], &how, hear, &alone[i], &e), BRASS_OK);
        br_seq_free(s);
    }
    ck_assert_str_ne(alone[0].text, alone[1].text);
    {
        br_seq *a = br_seq_new(m, &e), *b = br_seq_new(m, &e);

        ck_assert_ptr_null(br_seq_new(m, &e));
        ck_assert_int_eq(br_error_code(&e), BRASS_E_LIMIT);
        ck_assert_str_eq(br_error_text(&e), "all 2 sequences are in use");
        br_seq_continue(a, begin[0], &how, hear, &both[0], &e);
        br_seq_continue(b, begin[1], &how, hear, &both[1], &e);
        both[0].n = 0;
        br_seq_continue(a, begin[0], &how, hear, &both[0], &e);
        ck_assert_str_eq(both[0].text, alone[0].text);
        ck_assert_str_eq(both[1].text, alone[1].text);
        ck_assert_str_eq(br_seq_end(a), "length");
        ck_assert_uint_eq(br_seq_tokens(a), 6);
        br_seq_free(a);
        br_seq_free(b);
    }
    br_llm_close(m);
}

TEST_WITHIN(api_talk_ends_when_told, 120)
{
    br_llm *m = demo(1);
    br_sampling how = greedy(40);
    br_error e;
    br_seq *s = br_seq_new(m, &e);
    heard h = {.enough = 3}, again = {.cancel = s};

    ck_assert_int_eq(br_seq_system(s, "You tell stories.", &e), BRASS_OK);
    ck_assert_int_eq(br_seq_say(s, "Hello!", &how, hear, &h, &e), BRASS_OK);
    ck_assert_str_eq(br_seq_end(s), "sink");
    ck_assert_uint_eq(h.pieces, 3);
    ck_assert_int_eq(br_seq_say(s, "Hello!", &how, hear, &again, &e), BRASS_OK);
    ck_assert_str_eq(br_seq_end(s), "cancelled");
    br_seq_reset(s);
    ck_assert_int_eq(br_seq_say(s, t_printf("%0999d", 1), &how, hear, &h, &e),
                     BRASS_E_LIMIT);
    br_seq_free(s);
    br_llm_close(m);
}

TEST_WITHIN(api_tokens_there_and_back, 60)
{
    const char *text = "Once upon a time, <|end|>!";
    br_llm *m = demo(1);
    int32_t ids[64];
    br_error e;
    size_t n, len, plain;
    char *back;

    plain = br_llm_tokenize(m, text, strlen(text), 0, NULL, 0, &e);
    n = br_llm_tokenize(m, text, strlen(text), BRASS_PARSE_SPECIAL, ids, 64,
                        &e);
    ck_assert_uint_lt(n, plain);
    back = br_llm_detokenize(m, ids, n, &len, &e);
    ck_assert_str_eq(back, text);
    ck_assert_uint_eq(len, strlen(text));
    br_string_free(back);
    back = br_llm_detokenize(m, ids, 0, NULL, &e);
    ck_assert_str_eq(back, "");
    br_string_free(back);
    ids[0] = br_llm_vocabulary(m);
    ck_assert_ptr_null(br_llm_detokenize(m, ids, 1, NULL, &e));
    ck_assert_uint_eq(br_llm_context(m), 128);
    br_llm_close(m);
    ck_assert_ptr_null(br_llm_open("no/such.gguf", 0, 1, &e));
    ck_assert_int_eq(br_error_code(&e), BRASS_E_NOT_FOUND);
    ck_assert_ptr_null(br_llm_open(t_repo("models/demo.gguf"), 0, 0, &e));
    ck_assert_int_eq(br_error_code(&e), BRASS_E_USAGE);
}

static br_code
talk_oom(void *arg, br_status *st)
{
    br_llm *m = arg;
    br_sampling how = greedy(1);
    br_error e = {.st = {0}};
    br_seq *s = br_seq_new(m, &e);

    if (s && br_seq_system(s, "x", &e) == BRASS_OK)
        (void)br_seq_say(s, "Hello!", &how, NULL, NULL, &e);
    br_seq_free(s);
    *st = e.st;
    return st->code;
}

TEST_WITHIN(api_talk_survives_every_failed_allocation, 120)
{
    br_llm *m = demo(1);

    t_each_oom(talk_oom, m);
    br_llm_close(m);
}
