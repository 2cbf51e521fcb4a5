/* test_http_long.c - long prompts are read beside the server's thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* {"before": "many words", ... } of n bytes of words; kept. */
static char *
body_of(const char *before, size_t n, const char *after)
{
    size_t head = strlen(before);
    char *s = t_printf("%s%*s%s", before, (int)n, "", after);

    for (size_t i = 0; i < n; i++)
        s[head + i] = " once upon a time, 12 bears"[i % 27];
    return s;
}

static int
post(const sk *k, const char *path, const char *body)
{
    int fd = sk_connect(k);
    char *head = t_printf("POST %s HTTP/1.1\r\nHost: localhost\r\n"
                          "Content-Length: %zu\r\n\r\n",
                          path, strlen(body));

    sk_send(fd, head, strlen(head));
    sk_send(fd, body, strlen(body));
    return fd;
}

static bool
is_readable(int fd)
{
    struct pollfd p = {fd, POLLIN, 0};

    return poll(&p, 1, 0) == 1;
}

TEST(others_are_answered_while_a_long_text_is_read)
{
    char *text = body_of("{\"prompt\":\"", 2 << 20, "\"}");
    int fd[4];
    bool first = false;
    sk k;

    sk_open(&k, &(sk_config){0});
    for (int i = 0; i < 4; i++)
        fd[i] = post(&k, "/tokenize", text);
    /* Eight megabytes: were they read in the server's thread, no answer could
     * come between theirs. */
    while (!is_readable(fd[3])) {
        ck_assert_int_eq(sk_ask(&k, "GET /v1/models", "", NULL).status, 200);
        first |= !is_readable(fd[3]);
    }
    ck_assert(first);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(sk_read(fd[i], true).status, 200);
        close(fd[i]);
    }
    sk_close(&k);
}

TEST(long_prompts_become_the_same_tokens)
{
    static const char *const say[] = {
        "{\"messages\":[{\"role\":\"user\",\"content\":\"",
        "{\"max_tokens\":2,\"prompt\":[\"short\",\"", "{\"prompt\":\""};
    char *whole, *text = body_of("", 40000, "");
    br_tok_ids ids = {0};
    br_tok_work *w = br_tok_work_new();
    br_status st = {0};
    sk_answer a;
    sk k;

    sk_open(&k, &(sk_config){.fake = {.n_ctx = 36864, .n_pages = 9000}});
    t_ok(br_tok_encode(k.ek.tok, w, br_text_z(text), BR_TOK_ADD_SPECIAL, &ids,
                       &st),
         &st);
    a = sk_ask(&k, "POST /tokenize", "", body_of(say[2], 40000, "\"}"));
    ck_assert_ptr_nonnull(strstr(a.body, t_printf("\"count\":%zu,", ids.n)));
    whole = t_printf(",%d]}", ids.at[ids.n - 1]);
    ck_assert_str_eq(a.body + strlen(a.body) - strlen(whole), whole);
    a = sk_ask(&k, "POST /v1/completions", "", body_of(say[1], 40000, "\"]}"));
    ck_assert_int_eq(a.status, 200);
    ck_assert_ptr_nonnull(sk_between(a.body, "\"index\":1", "}"));
    ids.n = 0;
    t_ok(br_tok_encode(k.ek.tok, w, BR_TEXT("short"), BR_TOK_ADD_SPECIAL, &ids,
                       &st),
         &st);
    whole = sk_between(
        sk_ask(&k, "POST /tokenize", "", body_of(say[2], 40000, "\"}")).body,
        "\"count\":", ",");
    ck_assert_str_eq(sk_between(a.body, "\"prompt_tokens\":", ","),
                     t_printf("%zu", (size_t)atoi(whole) + ids.n));
    a = sk_ask(&k, "POST /v1/chat/completions", "",
               body_of(say[0], 40000, "\"}],\"max_tokens\":2,\"n\":2}"));
    ck_assert_int_eq(a.status, 200);
    ck_assert_str_eq(sk_between(a.body, "\"prompt_tokens\":", ","),
                     sk_between(sk_ask(&k, "POST /v1/messages/count_tokens", "",
                                       body_of(say[0], 40000, "\"}]}"))
                                    .body,
                                ":", "}"));
    /* refused after it was read */
    a = sk_ask(&k, "POST /v1/completions", "",
               body_of(say[2], 40000, "\",\"grammar\":\"root ::= nothing\"}"));
    ck_assert_int_eq(a.status, 400);
    br_vec_fini(&ids);
    br_tok_work_free(w);
    sk_close(&k);
}

TEST(who_goes_while_its_prompt_is_read_leaves_nothing)
{
    char *text = body_of("{\"prompt\":\"", 200000, "\",\"stream\":true}");
    sk k;

    for (int stop = 0; stop < 2; stop++) {
        sk_open(&k, &(sk_config){.fake = {.n_ctx = 262144, .n_pages = 20000}});
        for (int i = 0; i < 8; i++) {
            int fd = post(&k, "/v1/completions", text);

            if (i % 2)
                shutdown(fd, SHUT_RDWR);
            close(fd);
        }
        if (!stop) /* else it ends with texts on the list */
            ck_assert_int_eq(sk_ask(&k, "POST /tokenize", "",
                                    body_of("{\"prompt\":\"", 20000, "\"}"))
                                 .status,
                             200);
        sk_close(&k);
    }
}

/* Some schemas are found to be too much when they are read, some by the first
 * token: 400 and the field's name are told of both. */
TEST(a_schema_that_is_too_much_is_a_mistake)
{
    static const int many[] = {3000, 12000};
    sk k;

    sk_open(&k, &(sk_config){0});
    for (size_t i = 0; i < BR_COUNT(many); i++) {
        br_str s = {0};
        sk_answer a;

        br_str_puts(&s, "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],"
                        "\"response_format\":{\"type\":\"json_schema\","
                        "\"json_schema\":{\"name\":\"a\",\"schema\":{"
                        "\"type\":\"object\",\"properties\":{");
        for (int p = 0; p < many[i]; p++)
            br_str_printf(&s, "%s\"p%d\":{\"type\":\"string\"}", p ? "," : "",
                          p);
        br_str_puts(&s, "},\"additionalProperties\":false}}}}");
        a = sk_ask(&k, "POST /v1/chat/completions", "", br_str_z(&s));
        ck_assert_msg(a.status == 400 && strstr(a.body, "grammar: ") &&
                          strstr(a.body, "\"param\":\"response_format\""),
                      "%d: %d %s", many[i], a.status, a.body);
        br_str_fini(&s);
    }
    sk_close(&k);
}

/* Megabytes that come at once, and none of them late. */
TEST(who_is_told_of_a_long_prompt_is_not_slow)
{
    static const char *const how[] = {
        "\",\"max_tokens\":1,\"stream\":true,\"echo\":true,\"logprobs\":20}",
        "\",\"max_tokens\":1,\"stream\":true,\"echo\":true,\"n\":128}"};
    sk k;

    sk_open(&k, &(sk_config){.fake = {.n_ctx = 36864, .n_pages = 9000}});
    for (size_t i = 0; i < BR_COUNT(how); i++) {
        int fd = post(&k, "/v1/completions",
                      body_of("{\"prompt\":\"", 60000, how[i]));
        sk_answer a = sk_read(fd, true);

        ck_assert_int_eq(a.status, 200);
        ck_assert_uint_gt(a.n_body, 4 << 20);
        ck_assert_ptr_nonnull(strstr(a.body, "data: [DONE]\n\n"));
        close(fd);
    }
    sk_close(&k);
}

/* What max_model_len of /v1/models says, to which clients cut what they send. */
TEST(a_text_without_an_answer_has_the_whole_context)
{
    static const struct {
        const char *path, *field, *more;
        size_t most;
    } rows[] = {
        {"/v1/embeddings", "input", "", 64},
        {"/v1/completions", "prompt", ",\"max_tokens\":0", 64},
        {"/v1/completions", "prompt",
         ",\"max_tokens\":0,\"echo\":true,\"logprobs\":1", 64},
        {"/v1/completions", "prompt", ",\"max_tokens\":1", 63},
        {"/v1/completions", "prompt", "", 63},
    };
    sk k;

    sk_open(&k, &(sk_config){.fake = {.n_ctx = 64,
                                      .n_slots = 2,
                                      .pooling = BR_POOLING_MEAN}});
    for (size_t i = 0; i < BR_COUNT(rows); i++)
        for (size_t n = rows[i].most; n < rows[i].most + 2; n++) {
            br_str s = {0};
            sk_answer a;

            br_str_printf(&s, "{\"%s\":[[5", rows[i].field);
            for (size_t t = 1; t < n; t++)
                br_str_puts(&s, ",5");
            br_str_printf(&s, "]]%s}", rows[i].more);
            a = sk_ask(&k, t_printf("POST %s", rows[i].path), "", br_str_z(&s));
            ck_assert_msg(a.status == (n == rows[i].most ? 200 : 400),
                          "%zu: %zu tokens: %d %s", i, n, a.status, a.body);
            if (a.status == 400)
                ck_assert_ptr_nonnull(strstr(a.body, "the context holds 64"));
            br_str_fini(&s);
        }
    sk_close(&k);
}

/* A list of texts, one of which waits for another. Those over 16 KiB together are
 * read beside the loop. */
TEST(a_list_of_texts_has_no_more_waiting_than_its_tenant_may)
{
    br_status st = {0};
    br_quota q;
    sk k;

    sk_open(&k, &(sk_config){.fake = {.n_slots = 4,
                                      .n_ctx = 4096,
                                      .n_pages = 1024,
                                      .pooling = BR_POOLING_MEAN}});
    for (int bytes = 9; bytes < 4000; bytes += 1200) {
        br_str s = {0};
        sk_answer a, b;
        br_ledger l;

        br_str_puts(&s, "{\"input\":[");
        for (int i = 0; i < 20; i++)
            br_str_printf(&s, "%s\"%d%s\"", i ? "," : "", i,
                          body_of("", (size_t)bytes, ""));
        br_str_puts(&s, "]}");
        ck_assert(br_engine_tenant_quota(k.ek.e, 0, &q));
        q.max_queued = 1000;
        t_ok(br_engine_tenant_set(k.ek.e, 0, &q, &st), &st);
        a = sk_ask(&k, "POST /v1/embeddings", "", br_str_z(&s));
        q.max_queued = 2;
        t_ok(br_engine_tenant_set(k.ek.e, 0, &q, &st), &st);
        b = sk_ask(&k, "POST /v1/embeddings", "", br_str_z(&s));
        ck_assert_msg(a.status == 200 && b.status == 200, "%d %s", b.status,
                      b.body);
        ck_assert_str_eq(a.body, b.body);
        ck_assert(br_engine_ledger(k.ek.e, 0, &l));
        ck_assert_uint_eq(l.requests_rejected, 0);
        br_str_fini(&s);
    }
    sk_close(&k);
}

/* Of many texts the first ones have their embeddings when a later one is met. */
TEST(the_text_of_a_list_that_is_too_long_is_named)
{
    const char *texts = "\"1\",\"2\",\"3\"";
    const char *text = body_of("\"", 200, "\"");
    const struct {
        const char *path, *body, *says[2];
    } rows[] = {
        {"POST /v1/embeddings",
         t_printf("{\"input\":[%s,%s]}", texts, text),
         {"input[3]: the prompt has ", "\"param\":\"input\""}},
        {"POST /v1/embeddings",
         t_printf("{\"input\":%s}", text),
         {"\"the prompt has ", "\"param\":\"input\""}},
        {"POST /v1/completions",
         t_printf("{\"prompt\":[\"a\",%s],\"n\":2}", text),
         {"prompt[1]: the prompt has ", "\"param\":\"prompt\""}},
        {"POST /v1/rerank",
         t_printf("{\"query\":\"a\",\"documents\":[%s,%s,\"b\"]}", texts, text),
         {"documents[3]: the prompt has ", "\"param\":\"documents\""}},
        {"POST /v1/rerank",
         t_printf("{\"query\":%s,\"documents\":[%s]}", text, texts),
         {"query: the prompt has ", "\"param\":\"query\""}},
        {"POST /v1/embeddings",
         t_printf("{\"input\":[%s,%s,%s,%s,%s,%s,%s,%s,%s]}", texts, texts,
                  texts, texts, texts, texts, texts, texts, text),
         {"input[24]: the prompt has ", ""}},
    };
    sk k;

    sk_open(&k, &(sk_config){.fake = {.n_ctx = 64,
                                      .n_pages = 64,
                                      .pooling = BR_POOLING_MEAN}});
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        sk_answer a = sk_ask(&k, rows[i].path, "", rows[i].body);

        ck_assert_msg(a.status == 400 && strstr(a.body, rows[i].says[0]) &&
                          strstr(a.body, rows[i].says[1]) &&
                          strstr(a.body, "context_length_exceeded"),
                      "%zu: %d %s", i, a.status, a.body);
    }
    sk_close(&k);
}

/* Trying again would not help; with as many there is no reason why it should fail. */
TEST(more_answers_than_may_ever_wait_are_no_reason_to_try_again)
{
    static const struct {
        const char *path, *body, *says;
    } rows[] = {
        {"POST /v1/completions", "{\"prompt\":\"a\",\"n\":3}",
         "n: 3 answers at once, of this tenant at most 2 requests may wait"},
        {"POST /v1/completions", "{\"prompt\":\"a\",\"n\":3,\"stream\":true}",
         "\"param\":\"n\""},
        {"POST /v1/completions", "{\"prompt\":[\"a\",\"b\",\"c\"]}",
         "\"param\":\"prompt\""},
        {"POST /v1/completions",
         "{\"prompt\":[\"a\",\"b\"],\"n\":2,\"best_of\":2}", "n: 4 answers"},
        {"POST /v1/chat/completions",
         "{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"n\":128}",
         "n: 128 answers"},
        {"POST /v1/completions", "{\"prompt\":\"a\",\"n\":2}", NULL},
        {"POST /v1/completions", "{\"prompt\":[\"a\",\"b\"]}", NULL},
    };
    br_quota q = br_quota_defaults();
    br_status st = {0};
    sk k;

    sk_open(&k, &(sk_config){0});
    q.max_queued = 2;
    t_ok(br_engine_tenant_set(k.ek.e, 0, &q, &st), &st);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        sk_answer a = sk_ask(&k, rows[i].path, "", rows[i].body);

        ck_assert_msg(a.status == (rows[i].says ? 400 : 200) &&
                          !strstr(a.head, "Retry-After") &&
                          strstr(a.body, rows[i].says ? rows[i].says : "text"),
                      "%zu: %d %s", i, a.status, a.body);
    }
    sk_close(&k);
}

/* Each is allowed; of the two one is too much, whichever was read later. Small ones
 * are read as before, and large ones when it is over. */
TEST(bodies_of_all_connections_have_a_limit)
{
    char *whole = body_of("{\"prompt\":\"", 1 << 20, "\"}");
    size_t part = 600 << 10;
    br_http_config c = br_http_config_default();
    char *head = t_printf("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                          "Content-Length: %zu\r\n\r\n",
                          strlen(whole));
    struct pollfd p[2];
    sk_answer a;
    sk k;
    int late;

    c.port = 0;
    c.limits.all_bytes = 1150 << 10;
    c.limits.body_ns = INT64_C(600000000000);
    sk_open(&k, &(sk_config){.http = c});
    for (int i = 0; i < 2; i++) {
        p[i] = (struct pollfd){.fd = sk_connect(&k), .events = POLLIN};
        sk_send(p[i].fd, head, strlen(head));
        sk_send(p[i].fd, whole, part);
    }
    ck_assert_int_eq(poll(p, 2, 60000), 1);
    late = p[1].revents != 0;
    a = sk_read(p[late].fd, true);
    ck_assert_msg(a.status == 503 && strstr(a.body, "too large together"),
                  "%d %s", a.status, a.body);
    close(p[late].fd);
    a = sk_ask(&k, "POST /tokenize", "", "{\"prompt\":\"a\"}");
    ck_assert_int_eq(a.status, 200);
    sk_send(p[!late].fd, whole + part, strlen(whole) - part);
    a = sk_read(p[!late].fd, true);
    ck_assert_ptr_nonnull(strstr(a.body, "context_length_exceeded"));
    close(p[!late].fd);
    a = sk_ask(&k, "POST /v1/completions", "", whole);
    ck_assert_ptr_nonnull(strstr(a.body, "context_length_exceeded"));
    sk_close(&k);
}
