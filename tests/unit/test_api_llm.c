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
    ck_assert_ptr_null(br_llm_open(t_repo("models/demo.gguf"), 1025, 1, &e));
    ck_assert_ptr_nonnull(strstr(br_error_text(&e), "made for 1024 tokens"));
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

/* ---- many at once ---------------------------------------------------------- */

typedef struct told {
    uint64_t id;
    char text[2000], end[32];
    size_t n, n_events;
    size_t enough;   /* 0 is returned at that event */
    br_batch *batch; /* cancel is called at the first one */
} told;

static int
be_told(void *ctx, const br_output_event *ev)
{
    told *t = ctx;

    ck_assert_str_eq(t->end, ""); /* nothing comes behind the end */
    ck_assert(t->n + ev->n_text < sizeof t->text);
    memcpy(t->text + t->n, ev->text, ev->n_text);
    t->n += ev->n_text;
    ck_assert_uint_eq(ev->eot, ev->end != NULL);
    if (ev->eot) {
        ck_assert_uint_eq(ev->n_logprobs, 0);
        strcpy(t->end, ev->end);
        return 1;
    }
    ck_assert_uint_eq(ev->generated_pos, t->n_events++);
    ck_assert_uint_eq(ev->n_logprobs, 3);
    ck_assert(ev->logprobs[0] == ev->logprobs[1] &&
              ev->logprobs[1] > ev->logprobs[2]); /* it was the likeliest */
    if (t->batch)
        br_batch_cancel(t->batch, t->id);
    return t->n_events != t->enough;
}

static void
ask(br_llm *m, br_batch *b, const char *text, const br_sampling *how, told *t)
{
    int32_t ids[64];
    br_error e;
    br_request r = {.ids = ids,
                    .n_ids = br_llm_tokenize(m, text, strlen(text),
                                             BRASS_ADD_SPECIAL, ids, 64, &e),
                    .how = how,
                    .n_logprobs = 3,
                    .fn = be_told,
                    .ctx = t};

    t->id = br_batch_submit(b, &r, &e);
    ck_assert_msg(t->id != 0, "%s", e.st.msg);
    memset(ids, 0xff, sizeof ids); /* it was copied */
}

/* Two that are cancelled by who is told of them. Where the machine is busy with others
 * a story of 100 tokens may be over before that is: then once more. */
static void
cancel_two(br_llm *m, br_batch *b, const char *const begin[3], told t[2])
{
    enum { LONG = 400 };
    br_sampling story = greedy(LONG);

    for (int tries = 0; tries < 50; tries++) {
        memset(t, 0, 2 * sizeof *t);
        t[0].enough = 2;
        ask(m, b, begin[0], &story, &t[0]);
        t[1].batch = b;
        ask(m, b, begin[2], &story, &t[1]);
        ck_assert_uint_eq(br_batch_wait(b, 0) <= 5, 1);
        while (br_batch_wait(b, -1))
            ;
        if (strcmp(t[0].end, "cancelled") == 0 &&
            strcmp(t[1].end, "cancelled") == 0)
            break;
    }
    ck_assert_uint_eq(t[0].n_events < LONG && t[1].n_events < LONG, 1);
    ck_assert_str_eq(t[0].end, "cancelled");
    ck_assert_str_eq(t[1].end, "cancelled");
}

TEST_WITHIN(api_answers_in_a_batch_are_those_alone, 120)
{
    static const char *const begin[] = {"Once upon a time", "One windy day",
                                        "There was once a girl"};
    static told t[6];
    br_llm *m = demo(2);
    br_sampling how = greedy(12), stop = greedy(12);
    br_batch *b;
    br_error e;
    heard alone;
    br_seq *s;

    b = br_batch_new(m, &e);
    ck_assert_msg(b != NULL, "%s", e.st.msg);
    ck_assert_ptr_null(br_seq_new(m, &e));
    ck_assert_int_eq(br_error_code(&e), BRASS_E_LIMIT);
    ck_assert_uint_eq(br_batch_wait(b, -1), 0); /* nothing to wait for */
    for (int i = 0; i < 3; i++)
        ask(m, b, begin[i], &how, &t[i]);
    cancel_two(m, b, begin, &t[3]);
    stop.stop = &(const char *){t_printf("%.5s", t[0].text + t[0].n - 5)};
    stop.n_stop = 1;
    ask(m, b, begin[0], &stop, &t[5]);
    while (br_batch_wait(b, -1))
        ;
    ck_assert_str_eq(t[5].end, "stop");
    ck_assert_int_eq(memcmp(t[5].text, t[0].text, t[5].n), 0);
    ck_assert_uint_lt(t[5].n, t[0].n);
    ask(m, b, begin[0], &how, &t[4]); /* nobody hears of it */
    br_batch_free(b);
    for (int i = 0; i < 3; i++) {
        alone = (heard){.n = 0};
        s = br_seq_new(m, &e);
        ck_assert_ptr_null(br_batch_new(m, &e));
        ck_assert_str_eq(br_error_text(&e), "sequence 0 of 2 is in use");
        br_seq_continue(s, begin[i], &how, hear, &alone, &e);
        ck_assert_str_eq(t[i].text, alone.text);
        ck_assert_str_eq(t[i].end, br_seq_end(s));
        br_seq_free(s);
    }
    br_llm_close(m);
}

TEST_WITHIN(api_bad_requests_are_refused, 60)
{
    br_llm *m = demo(1);
    br_error e;
    br_batch *b = br_batch_new(m, &e);
    told t = {.n = 0};
    br_sampling bad = greedy(1), no_stops = greedy(1), good = greedy(9);
    int32_t ids[200] = {0};
    br_request r = {.ids = ids, .n_ids = 1, .fn = be_told, .ctx = &t};
    const br_request rows[] = {
        {.ids = ids, .n_ids = 1},
        {.ids = ids, .n_ids = 0, .fn = be_told},
        {.ids = ids, .n_ids = 128, .fn = be_told},
        {.ids = ids, .n_ids = 1, .fn = be_told, .n_logprobs = 102},
        {.ids = ids, .n_ids = 1, .fn = be_told, .n_logprobs = UINT32_MAX},
        {.ids = &(int32_t){-1}, .n_ids = 1, .fn = be_told},
        {.ids = ids, .n_ids = 1, .fn = be_told, .how = &bad},
        {.ids = NULL, .n_ids = 1, .fn = be_told},
        {.ids = ids, .n_ids = 1, .fn = be_told, .how = &no_stops},
    };

    bad.top_p = -1;
    no_stops.n_stop = 1;
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        ck_assert_uint_eq(br_batch_submit(b, &rows[i], &e), 0);
        ck_assert_int_ne(br_error_code(&e), BRASS_OK);
        ck_assert_uint_eq(br_batch_wait(b, 0), 0);
    }
    r.how = &good;
    r.n_logprobs = 3;
    t.enough = 1;
    t.id = br_batch_submit(b, &r, &e);
    ck_assert_uint_ne(t.id, 0);
    br_batch_cancel(b, t.id + 1); /* nobody's */
    while (br_batch_wait(b, -1))
        ;
    br_batch_cancel(b, t.id);
    br_batch_free(b);
    br_batch_free(NULL);
    br_llm_close(m);
}

TEST_WITHIN(api_texts_that_are_missing_are_refused, 60)
{
    br_llm *m = demo(1);
    br_error e;
    br_seq *s = br_seq_new(m, &e);
    br_sampling how = greedy(1);
    const char *const stops[] = {"x", NULL};
    heard h = {.n = 0};

    ck_assert_int_eq(br_seq_continue(s, NULL, &how, hear, &h, &e),
                     BRASS_E_USAGE);
    ck_assert_str_eq(br_error_text(&e), "prompt: NULL, not a text");
    ck_assert_int_eq(br_seq_say(s, NULL, &how, hear, &h, &e), BRASS_E_USAGE);
    ck_assert_int_eq(br_seq_system(s, NULL, &e), BRASS_E_USAGE);
    how.stop = stops;
    how.n_stop = 2;
    ck_assert_int_eq(br_seq_continue(s, "A", &how, hear, &h, &e),
                     BRASS_E_USAGE);
    ck_assert_str_eq(br_error_text(&e), "stop: string 1 is missing");
    how.n_stop = 1;
    ck_assert_int_eq(br_seq_continue(s, "A", &how, hear, &h, &e), BRASS_OK);
    br_seq_free(s);
    br_llm_close(m);
}

static br_code
batch_oom(void *arg, br_status *st)
{
    br_error e = {.st = {0}};

    br_batch_free(br_batch_new(arg, &e));
    *st = e.st;
    return st->code;
}

TEST_WITHIN(api_batch_survives_every_failed_allocation, 120)
{
    br_llm *m = demo(1);

    t_each_oom(batch_oom, m);
    br_llm_close(m);
}
