/* test_http_conversation.c - talks that have a name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "run/tstore.h"

#include <string.h>

static void
open_server(sk *k, bool keeps)
{
    br_http_config c = br_http_config_default();

    if (!br_tstore_here())
        t_skip("built without SQLite");
    c.port = 0;
    if (keeps)
        c.talks = (br_talks_config){.path = t_printf("%s/talks.db", t_tmpdir()),
                                    .days = 30,
                                    .most = 100};
    sk_open(k, &(sk_config){.http = c});
}

static sk_answer
post(const sk *k, const char *path, const char *body)
{
    return sk_ask(k, t_printf("POST /v1/%s", path), "", body);
}

static sk_answer
get(const sk *k, const char *path)
{
    return sk_ask(k, t_printf("GET /v1/conversations/%s", path), "", NULL);
}

static sk_answer
drop(const sk *k, const char *path)
{
    return sk_ask(k, t_printf("DELETE /v1/conversations/%s", path), "", NULL);
}

static char *
id_of(sk_answer a)
{
    ck_assert_msg(a.status == 200, "%d %s", a.status, a.body);
    return sk_between(a.body, "\"id\":\"", "\"");
}

static sk_answer
respond(const sk *k, const char *fields)
{
    sk_answer a = post(
        k, "responses",
        t_printf("{\"temperature\":0,\"max_output_tokens\":6,%s}", fields));

    ck_assert_msg(a.status == 200, "%d %s", a.status, a.body);
    return a;
}

static sk_answer
say(const sk *k, const char *id, const char *text, const char *more)
{
    return respond(k, t_printf("\"conversation\":\"%s\",\"input\":\"%s\"%s", id,
                               text, more));
}

static char *
output_of(sk_answer a)
{
    return sk_between(a.body, "\"output\":[", "],\"parallel_tool_calls\"");
}

static char *
text_of(sk_answer a)
{
    return sk_between(a.body, "\"text\":", ",\"annotations\"");
}

/* Whose texts stand in an answer, in order: "1 3 2". */
static void
tells(sk_answer a, const char *want)
{
    char got[64] = "";

    ck_assert_msg(a.status == 200, "%d %s", a.status, a.body);
    for (const char *at = a.body; (at = strstr(at, "\"text\":\"say ")); at++)
        strncat(got, at + 12, 1);
    ck_assert_msg(strcmp(got, want) == 0, "%s: %s", got, a.body);
}

TEST(http_speaks_in_a_conversation)
{
    sk_answer a[3], b;
    char *id, *all;
    sk k;

    open_server(&k, true);
    a[0] = post(&k, "conversations",
                "{\"items\":[{\"role\":\"user\",\"content\":\"Hi\"}],"
                "\"metadata\":{\"of\":\"x\"}}");
    id = id_of(a[0]);
    ck_assert_ptr_nonnull(strstr(a[0].body, "\"object\":\"conversation\""));
    ck_assert_ptr_nonnull(strstr(a[0].body, "\"metadata\":{\"of\":\"x\"}"));
    a[1] = say(&k, id, "One", "");
    ck_assert_ptr_nonnull(
        strstr(a[1].body, t_printf("\"conversation\":{\"id\":\"%s\"}", id)));
    sk_close(&k); /* a restart forgets nothing */
    open_server(&k, true);
    /* one that is not kept is a part of it all the same */
    a[2] = respond(&k, t_printf("\"conversation\":{\"id\":\"%s\"},\"input\":"
                                "\"Two\",\"store\":false",
                                id));
    all = t_printf("\"input\":[{\"role\":\"user\",\"content\":\"Hi\"},{"
                   "\"role\":\"user\",\"content\":\"One\"},%s,{\"role\":"
                   "\"user\",\"content\":\"Two\"}",
                   output_of(a[1]));
    b = respond(&k, t_printf("%s]", all));
    ck_assert_str_eq(text_of(a[2]), text_of(b));
    b = respond(&k, t_printf("%s,%s,{\"role\":\"user\",\"content\":\"Three\"}]",
                             all, output_of(a[2])));
    a[0] = say(&k, id, "Three", ",\"stream\":true");
    ck_assert_ptr_nonnull(strstr(a[0].body, text_of(b)));
    /* a cancelled one adds nothing; it is none of the responses */
    ck_assert_int_eq(
        sk_ask(&k, t_printf("GET /v1/responses/%s", id), "", NULL).status, 404);
    ck_assert_int_eq(
        post(&k, "responses",
             t_printf("{\"input\":\"x\",\"previous_response_id\":\"%s\"}", id))
            .status,
        400);
    sk_close(&k);
}

TEST(http_lists_what_is_in_a_conversation)
{
    const char *path, *second;
    sk_answer a;
    char *id;
    sk k;

    open_server(&k, true);
    id = id_of(post(&k, "conversations", ""));
    path = t_printf("%s/items", id);
    tells(get(&k, path), "");
    for (int i = 1; i < 6; i++)
        tells(post(&k, t_printf("conversations/%s", path),
                   t_printf("{\"items\":[{\"role\":\"user\",\"content\":\"say "
                            "%d\"}]}",
                            i)),
              t_printf("%d", i));
    tells(get(&k, path), "54321");
    tells(get(&k, t_printf("%s?order=asc", path)), "12345");
    a = get(&k, t_printf("%s?order=asc&limit=2", path));
    tells(a, "12");
    ck_assert_ptr_nonnull(strstr(a.body, "\"has_more\":true"));
    second = sk_between(a.body, "\"last_id\":\"", "\"");
    a = get(&k, t_printf("%s?after=%s&order=asc", path, second));
    tells(a, "345");
    ck_assert_ptr_nonnull(strstr(a.body, "\"has_more\":false"));
    tells(get(&k, t_printf("%s?after=%s", path, second)), "1");
    tells(get(&k, t_printf("%s/%s", path, second)), "2");
    ck_assert_str_eq(id_of(drop(&k, t_printf("%s/%s", path, second))), id);
    tells(get(&k, path), "5431");
    ck_assert_int_eq(drop(&k, t_printf("%s/%s", path, second)).status, 404);
    a = post(&k, t_printf("conversations/%s", id),
             "{\"metadata\":{\"a\":\"b\"}}");
    ck_assert_ptr_nonnull(strstr(a.body, "\"metadata\":{\"a\":\"b\"}"));
    ck_assert_str_eq(get(&k, id).body, a.body);
    tells(get(&k, path), "5431");
    a = drop(&k, id);
    ck_assert_ptr_nonnull(
        strstr(a.body, "\"object\":\"conversation.deleted\""));
    ck_assert_int_eq(get(&k, id).status, 404);
    ck_assert_int_eq(get(&k, path).status, 404);
    sk_close(&k);
}

TEST(http_says_what_is_wrong_with_a_conversation)
{
    static const struct {
        const char *path, *body;
        int status;
        const char *says;
    } rows[] = {
        {"conversations", "{\"items\":\"x\"}", 400, "items: must be a list"},
        {"conversations", "{\"items\":[{\"role\":\"cat\",\"content\":\"x\"}]}",
         400, "\"items[0].role: 'cat'"},
        {"conversations", "{\"items\":[3]}", 400,
         "\"items[0]: must be an object\",\"param\":\"items\""},
        {"conversations", "{\"metadata\":3}", 400,
         "\"metadata: must be an object\",\"param\":\"metadata\""},
        {"conversations", "{\"title\":3}", 400,
         "does not know the field\",\"param\":\"title\""},
        {"conversations", "[]", 400, "not a JSON object"},
        {"conversations/ID/items", "{}", 400, "items: missing"},
        {"conversations/ID/items", "{\"items\":[]}", 400, "items: missing"},
        {"conversations/conv_1/items", "{\"items\":[]}", 404,
         "no conversation 'conv_1' is kept\",\"param\":null"},
        {"conversations/resp_1", "{}", 404, "'resp_1'"},
        {"responses", "{\"input\":\"x\",\"conversation\":\"conv_1\"}", 400,
         "\"param\":\"conversation\""},
        {"responses", "{\"input\":\"x\",\"conversation\":7}", 400,
         "must be the id"},
        {"responses",
         "{\"input\":\"x\",\"conversation\":\"ID\",\"previous_response_id\":"
         "\"resp_1\"}",
         400, "not together"},
    };
    static const char *const queries[] = {"limit=0", "limit=101", "limit=x",
                                          "order=up", "after=msg_1"};
    sk_answer a;
    char *id;
    sk k;

    open_server(&k, true);
    id = id_of(post(&k, "conversations", "{}"));
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        const char *text[2] = {rows[i].path, rows[i].body};

        for (int j = 0; j < 2; j++) {
            const char *at = strstr(text[j], "ID");

            if (at)
                text[j] = t_printf("%.*s%s%s", (int)(at - text[j]), text[j], id,
                                   at + 2);
        }
        a = post(&k, text[0], text[1]);
        ck_assert_msg(a.status == rows[i].status &&
                          strstr(a.body, rows[i].says),
                      "%zu: %d %s", i, a.status, a.body);
    }
    for (size_t i = 0; i < BR_COUNT(queries); i++) {
        a = get(&k, t_printf("%s/items?%s", id, queries[i]));
        ck_assert_msg(a.status == 400 &&
                          strstr(a.body, t_printf("\"param\":\"%.*s\"",
                                                  (int)strcspn(queries[i], "="),
                                                  queries[i])),
                      "%s", a.body);
    }
    sk_close(&k);
    open_server(&k, false);
    ck_assert_int_eq(post(&k, "conversations", "{}").status, 404);
    ck_assert_int_eq(get(&k, id).status, 404);
    a = post(&k, "responses", "{\"input\":\"x\",\"conversation\":\"conv_1\"}");
    ck_assert_msg(a.status == 400 &&
                      strstr(a.body, "conversation: this server"),
                  "%s", a.body);
    sk_close(&k);
}

/* Servers that share a file, or a database, lose nothing of each other's. */
TEST(http_adds_to_a_conversation_where_others_do)
{
    sk_answer a;
    sk k[2];
    char *id;
    size_t n = 0;

    open_server(&k[0], true);
    open_server(&k[1], true);
    id = id_of(post(&k[0], "conversations", "{}"));
    while (get(&k[1], id).status == 404)
        br_sleep_ns(1000000);
    for (int i = 0; i < 10; i++) {
        (void)say(&k[i % 2], id, "say 1", "");
        a = post(&k[(i + 1) % 2], t_printf("conversations/%s/items", id),
                 "{\"items\":[{\"role\":\"user\",\"content\":\"say 2\"}]}");
        ck_assert_msg(a.status == 200, "%s", a.body);
    }
    sk_close(&k[1]);
    sk_close(&k[0]);
    open_server(&k[0], true);
    a = get(&k[0], t_printf("%s/items?limit=100&order=asc", id));
    for (const char *at = a.body; (at = strstr(at, "\"role\":")); at++)
        n++;
    ck_assert_msg(n == 30, "%zu items: %s", n, a.body);
    sk_close(&k[0]);
}

/* A row of somebody else's making. */
static void
keep(const char *id, const char *input, const char *answer)
{
    br_talks_config c = {
        .path = t_printf("%s/talks.db", t_tmpdir()), .days = 30, .most = 100};
    br_turn_kept k = {.created_ms = br_wall_ns() / 1000000,
                      .input = br_text_z(input),
                      .output = BR_TEXT("[]"),
                      .answer = br_text_z(answer)};
    br_status st = {0};
    br_talks *t;

    t_ok(br_talks_open(&t, &c, &st), &st);
    strcpy(k.id, id);
    ck_assert(br_talks_put(t, &k));
    br_talks_close(t);
}

TEST(http_reads_no_items_in_what_is_no_list)
{
    static const char *const odd[] = {"7",  "\"[1]\"",        "true", "1.5",
                                      "{}", "{\"id\":\"x\"}", "null", "["};
    sk_answer a;
    sk k;

    open_server(&k, true);
    for (size_t i = 0; i < BR_COUNT(odd); i++) {
        const char *id = t_printf("conv_%zu", i);

        keep(id, odd[i], "{\"created_at\":\"x\"}");
        a = get(&k, t_printf("%s/items", id));
        ck_assert_msg(a.status >= 400, "%s: %s", odd[i], a.body);
        a = get(&k, t_printf("%s/items/x", id));
        ck_assert_msg(a.status >= 400, "%s: %s", odd[i], a.body);
        a = post(&k, t_printf("conversations/%s", id), "{\"metadata\":{}}");
        ck_assert_msg(a.status == 200 && strstr(a.body, "\"created_at\":0"),
                      "%s: %s", odd[i], a.body);
    }
    sk_close(&k);
}
