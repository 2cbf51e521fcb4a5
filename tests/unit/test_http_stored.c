/* test_http_stored.c - responses that clients come back to.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "run/books.h"

#include <stdlib.h>
#include <string.h>

static void
open_keeping(sk *k, br_http_config c)
{
    if (!br_tstore_here())
        t_skip("built without SQLite");
    c.port = 0;
    c.talks = (br_talks_config){
        .path = t_printf("%s/talks.db", t_tmpdir()), .days = 30, .most = 100};
    sk_open(k, &(sk_config){.http = c});
}

static sk_answer
respond(const sk *k, const char *more, const char *fields)
{
    return sk_ask(
        k, "POST /v1/responses", more,
        t_printf("{\"temperature\":0,\"max_output_tokens\":6,%s}", fields));
}

static char *
id_of(sk_answer a)
{
    ck_assert_msg(a.status == 200, "%d %s", a.status, a.body);
    return sk_between(a.body, "{\"id\":\"", "\"");
}

static char *
output_of(sk_answer a)
{
    ck_assert_msg(a.status == 200, "%d %s", a.status, a.body);
    return sk_between(a.body, "\"output\":[", "],\"parallel_tool_calls\"");
}

/* Of two answers the texts: the fake model's tell on each token before them. */
static void
same_text(sk_answer a, sk_answer b)
{
    ck_assert_str_eq(sk_between(a.body, "\"text\":", ",\"annotations\""),
                     sk_between(b.body, "\"text\":", ",\"annotations\""));
}

static int
status_of(const sk *k, const char *method, const char *id, const char *more)
{
    return sk_ask(k, t_printf("%s /v1/responses/%s", method, id), more, NULL)
        .status;
}

TEST(http_goes_on_from_a_response)
{
    br_http_config c = br_http_config_default();
    sk_answer a[3], b, n[2];
    char *all;
    sk k;

    open_keeping(&k, c);
    a[0] = respond(&k, "", "\"input\":\"Hi\",\"instructions\":\"Be brief.\"");
    ck_assert_ptr_nonnull(strstr(a[0].body, "\"store\":true"));
    ck_assert_ptr_nonnull(strstr(a[0].body, "\"previous_response_id\":null"));
    a[1] = respond(&k, "",
                   t_printf("\"input\":[{\"role\":\"user\",\"content\":\"And "
                            "then?\"}],\"previous_response_id\":\"%s\"",
                            id_of(a[0])));
    ck_assert_ptr_nonnull(strstr(
        a[1].body, t_printf("\"previous_response_id\":\"%s\"", id_of(a[0]))));
    sk_close(&k); /* a restart forgets nothing */
    open_keeping(&k, c);
    a[2] = respond(&k, "",
                   t_printf("\"input\":\"Why?\",\"instructions\":\"Be long.\","
                            "\"previous_response_id\":\"%s\"",
                            id_of(a[1])));
    /* The same by hand: each turn, but the instructions of the last alone. */
    all =
        t_printf("\"instructions\":\"Be long.\",\"input\":[{\"role\":\"user\","
                 "\"content\":\"Hi\"},%s,{\"role\":\"user\",\"content\":\"And "
                 "then?\"},%s,{\"role\":\"user\",\"content\":\"Why?\"}]",
                 output_of(a[0]), output_of(a[1]));
    b = respond(&k, "", all);
    same_text(a[2], b);
    n[0] = sk_ask(&k, "POST /v1/responses/input_tokens", "",
                  t_printf("{%s}", all));
    n[1] = sk_ask(&k, "POST /v1/responses/input_tokens", "",
                  t_printf("{\"instructions\":\"Be long.\",\"input\":\"Why?\","
                           "\"previous_response_id\":\"%s\"}",
                           id_of(a[1])));
    ck_assert_int_eq(n[0].status, 200);
    ck_assert_str_eq(n[0].body, n[1].body);
    sk_close(&k);
}

TEST(http_gives_back_and_deletes_responses)
{
    sk_answer a, got;
    char *id;
    sk k;

    open_keeping(&k, br_http_config_default());
    a = respond(&k, "", "\"input\":\"Hi\"");
    id = id_of(a);
    got = sk_ask(&k, t_printf("GET /v1/responses/%s", id), "", NULL);
    ck_assert_int_eq(got.status, 200);
    ck_assert_str_eq(got.body, a.body);
    got =
        sk_ask(&k, t_printf("GET /v1/responses/%s/input_items", id), "", NULL);
    ck_assert_msg(
        strstr(got.body, "\"object\":\"list\",\"data\":[{\"type\":\"message\","
                         "\"id\":\"msg_") &&
            strstr(got.body, "\"status\":\"completed\",\"role\":\"user\","
                             "\"content\":[{\"type\":\"input_text\",\"text\":"
                             "\"Hi\"}]}],\"first_id\":\"msg_") &&
            strstr(got.body, "\"has_more\":false}"),
        "%s", got.body);
    ck_assert_int_eq(
        sk_ask(&k, t_printf("GET /v1/responses/%s/input_items?limit=0", id), "",
               NULL)
            .status,
        400);
    got = sk_ask(&k, t_printf("DELETE /v1/responses/%s", id), "", NULL);
    ck_assert_str_eq(got.body,
                     t_printf("{\"id\":\"%s\",\"object\":\"response\","
                              "\"deleted\":true}",
                              id));
    ck_assert_int_eq(status_of(&k, "GET", id, ""), 404);
    ck_assert_int_eq(status_of(&k, "DELETE", id, ""), 404);
    got = respond(
        &k, "",
        t_printf("\"input\":\"x\",\"previous_response_id\":\"%s\"", id));
    ck_assert_msg(got.status == 400 &&
                      strstr(got.body, "\"message\":\"previous_response_id: no "
                                       "response") &&
                      strstr(got.body, "\"param\":\"previous_response_id\""),
                  "%s", got.body);
    /* a stream's, with the bytes of its last event */
    a = respond(&k, "", "\"input\":\"Hi\",\"stream\":true");
    id = sk_between(a.body, "\"response\":{\"id\":\"", "\"");
    got = sk_ask(&k, t_printf("GET /v1/responses/%s", id), "", NULL);
    ck_assert_int_eq(got.status, 200);
    ck_assert_ptr_nonnull(strstr(a.body, got.body));
    /* and one that is not to be kept */
    a = respond(&k, "", "\"input\":\"Hi\",\"store\":false");
    ck_assert_ptr_nonnull(strstr(a.body, "\"store\":false"));
    ck_assert_int_eq(status_of(&k, "GET", id_of(a), ""), 404);
    ck_assert_int_eq(status_of(&k, "GET", t_printf("%0200d", 1), ""), 404);
    sk_close(&k);
}

TEST(http_without_a_file_keeps_no_responses)
{
    static const char *const rows[] = {"store\":true",
                                       "previous_response_id\":\"resp_1\""};
    br_http_config c = br_http_config_default();
    sk_answer a;
    sk k;

    c.port = 0;
    sk_open(&k, &(sk_config){.http = c});
    a = respond(&k, "", "\"input\":\"Hi\",\"store\":false");
    ck_assert_int_eq(a.status, 200);
    a = respond(&k, "", "\"input\":\"Hi\"");
    ck_assert_ptr_nonnull(strstr(a.body, "\"store\":false"));
    ck_assert_int_eq(status_of(&k, "GET", id_of(a), ""), 404);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        a = respond(&k, "", t_printf("\"input\":\"Hi\",\"%s", rows[i]));
        ck_assert_msg(a.status == 400 &&
                          strstr(a.body, "this server keeps no responses"),
                      "%s", a.body);
    }
    sk_close(&k);
}

TEST(http_shows_responses_to_nobody_else)
{
    br_http_config c = br_http_config_default();
    char key[BR_KEY_CHARS], *who[2], *id;
    br_quota q = br_quota_defaults();
    br_books *books = NULL;
    br_status st = {0};
    br_tstore *store;
    sk_answer a;
    uint32_t n;
    bool lost;
    sk k;

    if (!br_tstore_here())
        t_skip("built without SQLite");
    c.db = t_printf("%s/t.db", t_tmpdir());
    t_ok(br_tstore_open(&store, c.db, &st), &st);
    for (int i = 0; i < 2; i++) {
        t_ok(br_tstore_create(store, i ? "b" : "a", &q, &n, key, &st), &st);
        who[i] = t_printf("Authorization: Bearer %s\r\n", key);
    }
    open_keeping(&k, c);
    t_ok(br_books_open(&books, c.db, NULL, &lost, &st), &st);
    t_ok(br_books_add(books, k.ek.e, "fake", NULL, &st), &st);
    id = id_of(respond(&k, who[0], "\"input\":\"Hi\""));
    ck_assert_int_eq(status_of(&k, "GET", id, who[0]), 200);
    ck_assert_int_eq(status_of(&k, "GET", id, who[1]), 404);
    ck_assert_int_eq(status_of(&k, "GET", id, ""), 401);
    ck_assert_int_eq(status_of(&k, "DELETE", id, who[1]), 404);
    a = respond(
        &k, who[1],
        t_printf("\"input\":\"x\",\"previous_response_id\":\"%s\"", id));
    ck_assert_int_eq(a.status, 400);
    a = respond(
        &k, who[0],
        t_printf("\"input\":\"x\",\"previous_response_id\":\"%s\"", id));
    ck_assert_int_eq(a.status, 200);
    br_books_close(books);
    sk_close(&k);
    br_tstore_close(store);
}
