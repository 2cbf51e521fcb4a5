/* test_come_back.c - streams of responses, told again from what is kept.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "http/retell.h"
#include "run/talks.h"
#include "run/tstore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS     INT64_C(1000000)
#define BEHIND ",\"background\":true"

static void
open_server(sk *k, int64_t step_ns, const char *template)
{
    br_http_config c = br_http_config_default();

    if (!br_tstore_here())
        t_skip("built without SQLite");
    c.port = 0;
    c.talks = (br_talks_config){
        .path = t_printf("%s/talks.db", t_tmpdir()), .days = 30, .most = 100};
    sk_open(k, &(sk_config){.http = c,
                            .fake = {.step_ns = step_ns},
                            .template = template});
}

static sk_answer
respond(const sk *k, const char *more)
{
    sk_answer a =
        sk_ask(k, "POST /v1/responses", "",
               t_printf("{\"temperature\":0,\"input\":\"Hi\"%s}", more));

    ck_assert_msg(a.status == 200, "%d %s", a.status, a.body);
    return a;
}

static char *
id_of(sk_answer a)
{
    return sk_between(a.body, "{\"id\":\"", "\"");
}

static sk_answer
stream(const sk *k, const char *id, const char *more)
{
    return sk_ask(k, t_printf("GET /v1/responses/%s?stream=true%s", id, more),
                  "", NULL);
}

/* ---- the same events, with the same numbers ----------------------------- */

static const char *
nth_event(const char *body, int n)
{
    for (int i = 0; body && i <= n; i++)
        body = strstr(body + (i > 0), "event: ");
    return body;
}

/* check has no room for two whole streams. */
static void
is_same(const char *a, const char *b)
{
    size_t n = 0;

    while (a[n] && a[n] == b[n])
        n++;
    n -= BR_MIN(n, (size_t)60);
    ck_assert_msg(strcmp(a, b) == 0, "%.120s\n is not %.120s", a + n, b + n);
}

static int
events_of(const char *body)
{
    int n = 0;

    while (nth_event(body, n))
        n++;
    return n;
}

#define THINKS                                                         \
    "{% for m in messages %}{{ m.role }}{{ m.reasoning_content }}: "   \
    "{{ m.content }}{% endfor %}{% if enable_thinking is defined and " \
    "not enable_thinking %}<think></think>{% else %}<think>\n{% endif %}"
#define CALLS                                                                \
    "{% for t in tools or [] %}<tool_call>{{ t.function.name }}{% endfor %}" \
    "{% for m in messages %}{{ m.role }}: {{ m.content }}"                   \
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}"                 \
    "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}\"arguments\""

static const struct shape {
    const char *template, *more, *has;
} shapes[] = {
    {NULL, "", "response.output_text.delta"},
    {NULL, ",\"top_logprobs\":2,\"include\":[\"message.output_text.logprobs\"]",
     "\"top_logprobs\":[{"},
    {THINKS, "", "response.reasoning_text.delta"},
    {CALLS,
     ",\"tools\":[{\"type\":\"function\",\"name\":\"weather\",\"strict\":true,"
     "\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{\"enum\":["
     "\"Oslo\"]}},\"required\":[\"city\"],\"additionalProperties\":false}}],"
     "\"tool_choice\":{\"type\":\"function\",\"name\":\"weather\"}",
     "response.function_call_arguments.delta"},
};

TEST(streams_are_told_again_to_the_byte)
{
    for (size_t i = 0; i < BR_COUNT(shapes); i++) {
        sk_answer all, again;
        char *id;
        int n;
        sk k;

        open_server(&k, 0, shapes[i].template);
        all =
            respond(&k, t_printf(",\"max_output_tokens\":90,\"stream\":true%s",
                                 shapes[i].more));
        ck_assert_msg(strstr(all.body, shapes[i].has), "%zu: ... %s", i,
                      all.body + strlen(all.body) - 900);
        id = id_of(all);
        n = events_of(all.body);
        ck_assert_int_gt(n, 8);
        for (int restart = 0; restart < 2; restart++) {
            again = stream(&k, id, "");
            ck_assert_int_eq(again.status, 200);
            is_same(again.body, all.body);
            for (int e = 0; e < n; e += 1 + n / 5)
                is_same(stream(&k, id, t_printf("&starting_after=%d", e)).body,
                        e + 1 < n ? nth_event(all.body, e + 1) : "");
            sk_close(&k);
            open_server(&k, 0, shapes[i].template);
        }
        sk_close(&k);
    }
}

/* One that was not a stream has its text in one piece. */
TEST(what_was_no_stream_is_told_as_one)
{
    sk_answer a, s;
    sk k;

    open_server(&k, 0, NULL);
    a = respond(&k, ",\"max_output_tokens\":20");
    s = stream(&k, id_of(a), "");
    ck_assert_int_eq(s.status, 200);
    ck_assert_int_eq(events_of(s.body), 9);
    ck_assert_str_eq(sk_between(s.body, "\"delta\":", "}\n"),
                     sk_between(a.body, "\"type\":\"output_text\",\"text\":",
                                ",\"annotations\""));
    ck_assert_msg(strstr(s.body, t_printf("\"response\":%s}\n\n", a.body)),
                  "%s", s.body);
    ck_assert_int_eq(
        sk_ask(&k, t_printf("DELETE /v1/responses/%s", id_of(a)), "", NULL)
            .status,
        200);
    ck_assert_int_eq(stream(&k, id_of(a), "").status, 404);
    sk_close(&k);
}

/* ---- made elsewhere ----------------------------------------------------- */

static int
follow(const sk *k, const char *id)
{
    const char *ask = t_printf("GET /v1/responses/%s?stream=true HTTP/1.1\r\n"
                               "Host: localhost\r\n\r\n",
                               id);
    int fd = sk_connect(k);

    sk_send(fd, ask, strlen(ask));
    return fd;
}

static void
await_known(const sk *k, const char *id)
{
    while (sk_ask(k, t_printf("GET /v1/responses/%s", id), "", NULL).status ==
           404)
        br_sleep_ns(MS);
}

/* Two servers of one file: one makes it, the other tells of its end. */
TEST(streams_of_other_servers_come_when_they_are_over)
{
    sk_answer all, a;
    char *id;
    sk k[2];
    int fd[2];

    open_server(&k[0], 10 * MS, NULL);
    open_server(&k[1], 0, NULL);
    id = id_of(respond(&k[0], ",\"max_output_tokens\":60" BEHIND));
    await_known(&k[1], id);
    fd[0] = follow(&k[1], id);
    fd[1] = follow(&k[0], id); /* it was not asked for as a stream */
    for (int i = 0; i < 2; i++) {
        a = sk_read(fd[i], true);
        (void)close(fd[i]);
        ck_assert_int_eq(a.status, 200);
        ck_assert_msg(strstr(a.body, "\"status\":\"queued\"") &&
                          strstr(a.body, "event: response.incomplete\n"),
                      "%s", a.body);
        all = stream(&k[1], id, "");
        is_same(a.body, all.body);
    }
    sk_close(&k[1]);
    sk_close(&k[0]);
}

/* Two servers of one file: k[0] is at work on a long response, k[1] is asked for
 * its stream: where that comes. */
static int
follow_from_the_other(sk k[2], char **id)
{
    open_server(&k[0], 20 * MS, NULL);
    open_server(&k[1], 0, NULL);
    *id = id_of(respond(&k[0], ",\"max_output_tokens\":1000" BEHIND));
    await_known(&k[1], *id);
    return follow(&k[1], *id);
}

TEST(who_waits_for_a_stream_hears_that_it_was_deleted)
{
    sk_answer a;
    char *id;
    sk k[2];
    int fd = follow_from_the_other(k, &id);

    a = sk_ask(&k[0], t_printf("DELETE /v1/responses/%s", id), "", NULL);
    ck_assert_int_eq(a.status, 200);
    a = sk_read(fd, true);
    (void)close(fd);
    ck_assert_msg(strstr(a.body, "event: error\n") &&
                      strstr(a.body, "the response was deleted"),
                  "%s", a.body);
    sk_close(&k[1]);
    sk_close(&k[0]);
}

TEST(who_waits_for_a_stream_hears_that_the_server_ends)
{
    sk_answer a;
    char *id;
    sk k[2];
    int fd = follow_from_the_other(k, &id);

    br_sleep_ns(50 * MS);
    br_http_stop(k[1].http);
    a = sk_read(fd, true);
    (void)close(fd);
    ck_assert_msg(strstr(a.body, "event: response.in_progress\n") &&
                      strstr(a.body, "ask again for the stream"),
                  "%s", a.body);
    ck_assert_int_eq(
        sk_ask(&k[0], t_printf("DELETE /v1/responses/%s", id), "", NULL).status,
        200);
    sk_close(&k[1]);
    sk_close(&k[0]);
}

/* Its server died: who was told more events than there are hears of it. */
TEST(streams_of_dead_servers_have_failed)
{
    const int64_t now = br_wall_ns() / MS;
    br_talks_config c = {.days = 30, .most = 100};
    br_turn_kept t = {.id = "resp_died",
                      .created_ms = now,
                      .alive_ms = now - 100000,
                      .input = BR_TEXT("[]"),
                      .output = BR_TEXT("[]"),
                      .answer =
                          BR_TEXT("{\"id\":\"resp_died\",\"status\":\"queued\","
                                  "\"error\":null,\"background\":true}")};
    br_status st = {0};
    br_talks *talks;
    sk_answer a;
    sk k;

    open_server(&k, 0, NULL);
    c.path = t_printf("%s/talks.db", t_tmpdir());
    t_ok(br_talks_open(&talks, &c, &st), &st);
    ck_assert(br_talks_put(talks, &t));
    br_talks_close(talks);
    a = stream(&k, "resp_died", "");
    ck_assert_int_eq(a.status, 200);
    ck_assert_int_eq(events_of(a.body), 3);
    a = stream(&k, "resp_died", "&starting_after=57");
    ck_assert_msg(strncmp(a.body, "event: response.failed\n", 23) == 0 &&
                      strstr(a.body, "ended before it was over"),
                  "%s", a.body);
    sk_close(&k);
}

/* ---- what is kept may be anything --------------------------------------- */

#define ANSWER                                                              \
    "{\"id\":\"resp_a\",\"status\":\"completed\",\"output\":[{\"id\":"      \
    "\"msg_a\",\"type\":\"message\",\"content\":[{\"type\":\"output_text\"" \
    ",\"text\":\"caf\xc3\xa9!\",\"logprobs\":[1,2]}]}]}"

static const char *
retold(const char *answer, const char *cuts)
{
    br_str out = {0};
    bool fails;
    const char *s;

    if (!br_retell_rest(br_text_z(answer), br_text_z(cuts), &out, &fails)) {
        br_str_fini(&out);
        return NULL;
    }
    s = t_printf("%s", br_str_z(&out));
    br_str_fini(&out);
    return s;
}

/* "a|b" are the pieces that were told. */
static const char *
pieces(const char *cuts)
{
    const char *s = retold(ANSWER, cuts), *at = s, *is = "";

    ck_assert_ptr_nonnull(s);
    for (; (at = strstr(at, "\"delta\":\"")); at++)
        is = t_printf("%s|%s", is, sk_between(at, "\"delta\":\"", "\""));
    return is;
}

TEST(cuts_may_be_anything)
{
    static const struct {
        const char *cuts, *pieces;
    } rows[] = {
        {"", "|caf\xc3\xa9!"},
        {"2,4,", "|ca|f\xc3\xa9!"},
        {"2,", "|ca|f\xc3\xa9!"},
        {"0,2:1,3:1,1,", "||ca|f\xc3\xa9|!"},
        {"4,", "|caf\xc3\xa9!"},
        {"7,", "|caf\xc3\xa9!"},
        {"1,9,1,", "|c|af\xc3\xa9!"},
        {"1", "|caf\xc3\xa9!"},
        {"-1,", "|caf\xc3\xa9!"},
        {"1:,", "|caf\xc3\xa9!"},
        {"x", "|caf\xc3\xa9!"},
        {"99999999999999999999,", "|caf\xc3\xa9!"},
        {"1,#9", "|c|af\xc3\xa9!"},
    };
    static const char *const none[] = {"", "[]", "{", "nul"};

    for (size_t i = 0; i < BR_COUNT(rows); i++)
        ck_assert_str_eq(pieces(rows[i].cuts), rows[i].pieces);
    for (size_t i = 0; i < BR_COUNT(none); i++)
        ck_assert_ptr_null(retold(none[i], ""));
    /* a failure's number is not below what was told */
    ck_assert_ptr_nonnull(strstr(retold("{\"status\":\"failed\"}", "1,2,#57"),
                                 "\"sequence_number\":57,"));
    ck_assert_ptr_nonnull(
        strstr(retold("{\"status\":\"failed\"}", "#99999999999"),
               "\"sequence_number\":2,"));
    ck_assert_ptr_nonnull(retold("{\"output\":[1,{},{\"content\":[1]},"
                                 "{\"content\":[{\"logprobs\":1}]}]}",
                                 "1,"));
}

static br_code
tell(void *ctx, br_status *st)
{
    br_str out = {0};
    bool fails,
        is = br_retell_begin(BR_TEXT(ANSWER), &out) &&
             br_retell_rest(BR_TEXT(ANSWER), BR_TEXT("2:1,"), &out, &fails);

    (void)ctx;
    br_str_fini(&out);
    return is ? BR_OK : br_fail(st, BR_E_OOM, "out of memory");
}

TEST(telling_again_survives_any_lack_of_memory)
{
    t_each_oom(tell, NULL);
}
