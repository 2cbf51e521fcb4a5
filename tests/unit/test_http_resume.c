/* test_http_resume.c - answers that a restart breaks off go on after it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MS   INT64_C(1000000)
#define FILE "requests.json"

static void
open_server(sk *k, int64_t step_ns)
{
    br_http_config c = br_http_config_default();

    c.port = 0;
    c.resume = t_printf("%s/" FILE, t_tmpdir());
    sk_open(k, &(sk_config){.http = c, .fake = {.step_ns = step_ns}});
}

/* As two SIGTERMs do: the time to drain is over at once. */
static void
break_off(sk *k)
{
    br_http_stop(k->http);
    br_http_stop(k->http);
}

static void
close_broken(sk *k)
{
    br_thread_join(&k->thread);
    k->running = false;
    sk_close(k);
}

/* A request under way. */
static int
begin(const sk *k, const char *path, const char *body)
{
    const char *text = t_printf("POST %s HTTP/1.1\r\nHost: localhost\r\n"
                                "Content-Length: %zu\r\n\r\n%s",
                                path, strlen(body), body);
    int fd = sk_connect(k);

    sk_send(fd, text, strlen(text));
    return fd;
}

static void
await_tokens(const sk *k, uint64_t n)
{
    br_engine_stats s;

    do {
        br_sleep_ns(MS);
        br_engine_stats_get(k->ek.e, &s);
    } while (s.out_tokens < n);
}

static sk_answer
await_answer(const sk *k, const char *id)
{
    const char *what = t_printf("GET /v1/requests/%s", id);
    sk_answer a = sk_ask(k, what, "", NULL);

    while (a.status == 202) {
        ck_assert_msg(strstr(a.body, "\"status\":\"in_progress\""), "%s",
                      a.body);
        br_sleep_ns(5 * MS);
        a = sk_ask(k, what, "", NULL);
    }
    return a;
}

static char *
id_of(sk_answer a)
{
    char *id = sk_between(a.body, "GET /v1/requests/", " has it");

    ck_assert_msg(id != NULL, "%s", a.body);
    return id;
}

/* At 10 ms a step they take seconds, and are not over when a test breaks them off. */
#define CHAT                                                                \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\"" \
    ":500,\"seed\":7"
#define TEXT                                                                 \
    "{\"prompt\":\"Once\",\"echo\":true,\"n\":2,\"max_tokens\":500,\"stop\"" \
    ":[\"@@\"]}"

TEST(http_answers_go_on_after_a_restart)
{
    char *path, *whole, *text, *chat_id, *text_id;
    struct stat file;
    sk_answer a, b;
    int fd[2];
    sk k;

    path = t_printf("%s/" FILE, t_tmpdir());
    open_server(&k, 0);
    a = sk_ask(&k, "POST /v1/chat/completions", "", CHAT "}");
    whole = sk_between(a.body, "\"content\":\"", "\",\"refusal");
    a = sk_ask(&k, "POST /v1/completions", "", TEXT);
    text = sk_between(a.body, "\"choices\":", ",\"usage\"");
    sk_close(&k);
    ck_assert_int_ne(access(path, F_OK), 0);
    open_server(&k, 10 * MS);
    fd[0] = begin(&k, "/v1/chat/completions", CHAT ",\"stream\":true}");
    fd[1] = begin(&k, "/v1/completions", TEXT);
    await_tokens(&k, 9);
    break_off(&k);
    a = sk_read(fd[0], true);
    b = sk_read(fd[1], true);
    ck_assert_msg(strstr(a.body, "event: preempted\n") &&
                      strstr(a.body, "\"code\":\"restarting\"") &&
                      strstr(a.body, "data: [DONE]\n\n"),
                  "%s", a.body);
    ck_assert_msg(b.status == 503 && strstr(b.body, "\"code\":\"restarting\""),
                  "%s", b.body);
    chat_id = id_of(a);
    text_id = id_of(b);
    close(fd[0]);
    close(fd[1]);
    close_broken(&k);
    ck_assert_int_eq(stat(path, &file), 0);
    ck_assert_uint_eq(file.st_mode & 0777, 0600);

    open_server(&k, 10 * MS); /* and broken off once more */
    ck_assert_int_eq(
        sk_ask(&k, t_printf("GET /v1/requests/%s", chat_id), "", NULL).status,
        202);
    await_tokens(&k, 9);
    break_off(&k);
    close_broken(&k);

    open_server(&k, 0);
    a = await_answer(&k, chat_id);
    ck_assert_int_eq(a.status, 200);
    ck_assert_str_eq(sk_between(a.body, "\"content\":\"", "\",\"refusal"),
                     whole);
    ck_assert_msg(strstr(a.body, t_printf("{\"id\":\"%s\",\"object\":\"chat."
                                          "completion\",",
                                          chat_id)) &&
                      strstr(a.body, "\"finish_reason\":\"length\"") &&
                      strstr(a.body, "\"completion_tokens\":500,"),
                  "%s", a.body);
    b = await_answer(&k, text_id);
    ck_assert_str_eq(sk_between(b.body, "\"choices\":", ",\"usage\""), text);
    a = sk_ask(&k, "GET /v1/requests/cmpl-0", "", NULL);
    ck_assert_int_eq(a.status, 404);
    sk_close(&k);
    ck_assert_int_ne(access(path, F_OK), 0);
}

/* What the engine that is about to end has counted, onto the others'. */
static void
add_ledger(const sk *k, br_ledger *sum)
{
    br_engine_stats s;
    br_ledger l;

    do {
        br_sleep_ns(MS);
        br_engine_stats_get(k->ek.e, &s);
    } while (s.n_running + s.n_queued);
    ck_assert(br_engine_ledger(k->ek.e, 0, &l));
    sum->requests_done += l.requests_done;
    sum->tokens_prompted += l.tokens_prompted;
    sum->tokens_generated += l.tokens_generated;
}

/* One slot: when it is broken off the first choice is over, the second under way,
 * and the third has not begun. */
TEST(http_counts_once_what_goes_on_after_a_restart)
{
    static const char ask[] =
        "{\"prompt\":\"Once\",\"n\":3,\"max_tokens\":50,\"ignore_eos\":true}";
    br_http_config c = br_http_config_default();
    br_ledger is = {0}, at_once = {0};
    sk_config config = {.fake = {.n_slots = 1}};
    char *id;
    sk k;
    int fd;

    c.port = 0;
    c.resume = t_printf("%s/" FILE, t_tmpdir());
    config.http = c;
    sk_open(&k, &config);
    ck_assert_int_eq(sk_ask(&k, "POST /v1/completions", "", ask).status, 200);
    add_ledger(&k, &at_once);
    sk_close(&k);
    ck_assert_uint_eq(at_once.requests_done, 3);
    ck_assert_uint_eq(at_once.tokens_generated, 150);

    config.fake.step_ns = 10 * MS;
    sk_open(&k, &config);
    fd = begin(&k, "/v1/completions", ask);
    await_tokens(&k, 55);
    break_off(&k);
    id = id_of(sk_read(fd, true));
    close(fd);
    br_thread_join(&k.thread);
    k.running = false;
    add_ledger(&k, &is);
    sk_close(&k);

    config.fake.step_ns = 0;
    sk_open(&k, &config);
    ck_assert_int_eq(await_answer(&k, id).status, 200);
    add_ledger(&k, &is);
    sk_close(&k);
    ck_assert_uint_eq(is.requests_done, at_once.requests_done);
    ck_assert_uint_eq(is.tokens_prompted, at_once.tokens_prompted);
    ck_assert_uint_eq(is.tokens_generated, at_once.tokens_generated);
}

/* What was running waits, too: as many as had slots are beyond what may wait. */
TEST(http_goes_on_with_more_answers_than_may_wait)
{
    br_http_config c = br_http_config_default();
    br_quota q = br_quota_defaults();
    br_status st = {0};
    sk_config config = {.fake = {.n_slots = 4, .step_ns = 10 * MS}};
    char *id;
    sk k;
    int fd;

    c.port = 0;
    c.resume = t_printf("%s/" FILE, t_tmpdir());
    config.http = c;
    sk_open(&k, &config);
    fd = begin(&k, "/v1/completions",
               "{\"prompt\":\"Once\",\"n\":20,\"max_tokens\":50}");
    await_tokens(&k, 9);
    break_off(&k);
    id = id_of(sk_read(fd, true));
    close(fd);
    close_broken(&k);

    config.fake.step_ns = 0;
    config.loading = true;
    sk_open(&k, &config);
    q.max_queued = 1;
    t_ok(br_engine_tenant_set(k.ek.e, 0, &q, &st), &st);
    sk_ready(&k);
    ck_assert_int_eq(await_answer(&k, id).status, 200);
    sk_close(&k);
}

/* What holds the answer to its form stands where it stood; temperature 2, so
 * that it is the seed that draws. */
TEST(http_answers_with_a_form_go_on)
{
    static const char ask[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"seed\":3,"
        "\"temperature\":2,\"max_tokens\":70,\"response_format\":{\"type\":"
        "\"json_schema\",\"json_schema\":{\"name\":\"a\",\"schema\":{"
        "\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":9,"
        "\"maxItems\":9}}}}";
    char *whole, *id;
    sk_answer a;
    sk k;
    int fd;

    open_server(&k, 0);
    a = sk_ask(&k, "POST /v1/chat/completions", "", ask);
    ck_assert_int_eq(a.status, 200);
    whole = sk_between(a.body, "\"choices\":", ",\"usage\"");
    ck_assert_msg(strstr(whole, "\"content\":\"["), "%s", whole);
    sk_close(&k);
    open_server(&k, 50 * MS);
    fd = begin(&k, "/v1/chat/completions", ask);
    await_tokens(&k, 7);
    break_off(&k);
    id = id_of(sk_read(fd, true));
    close(fd);
    close_broken(&k);
    open_server(&k, 0);
    a = await_answer(&k, id);
    ck_assert_str_eq(sk_between(a.body, "\"choices\":", ",\"usage\""), whole);
    sk_close(&k);
}

TEST(http_requests_that_cannot_go_on_say_so)
{
    sk_answer a;
    sk k;
    int fd;

    open_server(&k, 10 * MS);
    fd = begin(&k, "/v1/chat/completions", CHAT ",\"logprobs\":true}");
    await_tokens(&k, 2);
    break_off(&k);
    a = sk_read(fd, true);
    ck_assert_msg(a.status == 503 && strstr(a.body, "shutting down"), "%s",
                  a.body);
    close(fd);
    close_broken(&k);
    ck_assert_int_ne(access(t_printf("%s/" FILE, t_tmpdir()), F_OK), 0);
}

/* While files have so much room. */
static void
break_one_off(const struct rlimit *room, const struct rlimit *all)
{
    sk k;
    int fd;

    open_server(&k, 10 * MS);
    fd = begin(&k, "/v1/completions", TEXT);
    await_tokens(&k, 2);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, room), 0);
    break_off(&k);
    ck_assert_int_eq(sk_read(fd, true).status, 503);
    close(fd);
    close_broken(&k);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, all), 0);
}

/* No file of nothing is left, nor half of one in the place of what was there. */
TEST(http_answers_that_cannot_be_kept_leave_what_was_there)
{
    struct rlimit full = {.rlim_cur = 10}, all;
    char *path = t_printf("%s/" FILE, t_tmpdir()), *was = NULL, *is;
    size_t n = 0, m;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &all), 0);
    full.rlim_max = all.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    break_one_off(&full, &all);
    ck_assert_int_ne(access(path, F_OK), 0);
    break_one_off(&all, &all);
    was = t_read(path, &n);
    break_one_off(&full, &all);
    is = t_read(path, &m);
    ck_assert_uint_eq(m, n);
    ck_assert_mem_eq(is, was, n);
}

/* What is no request is left out; what its model refuses has its error. */
TEST(http_reads_what_was_kept_with_doubt)
{
#define LINE(id, path, tenant, choices, body)                                 \
    "{\"id\":\"" id "\",\"path\":\"/v1/" path                                 \
    "\",\"model\":\"fake\",\"tenant\":" tenant ",\"created\":1,"              \
    "\"seed_high\":1,\"seed_low\":2,\"choices\":" choices ",\"body\":\"" body \
    "\"}"
#define ASK "{\\\"prompt\\\":\\\"a\\\",\\\"max_tokens\\\":3}"
    static const char *const lines[] = {
        "{",
        "[]",
        LINE("a", "completions", "9999", "[[]]", ASK),
        LINE("b", "other", "0", "[[]]", ASK),
        LINE("c", "completions", "0", "[[-1]]", ASK),
        LINE("d", "completions", "0", "[[4294967296]]", ASK),
        LINE("e", "completions", "0", "[7]", ASK),
        LINE("f\\\"", "completions", "0", "[[]]", ASK),
        LINE("forty-characters-are-too-many-for-a-name", "completions", "0",
             "[[]]", ASK),
        LINE("g", "completions", "0",
             "[[]],\"turn\":{\"kept\":true,\"items\":[]}", ASK),
        LINE("h", "responses", "0", "[[]],\"turn\":7", ASK),
        LINE("i", "responses", "0", "[[]],\"turn\":{\"items\":[7]}", ASK),
        LINE("j", "completions", "0", "[[]],\"counted\":7", ASK),
        LINE("k", "completions", "0", "[[]],\"counted\":[-1]", ASK),
        LINE("right", "completions", "0", "[[5]],\"counted\":[3]", ASK),
        LINE("late", "completions", "0", "[[5,5,5]]", ASK),
        LINE("token", "completions", "0", "[[2147483647]]", ASK),
        LINE("body", "completions", "0", "[[]]", "{"),
        LINE("tenant", "completions", "7", "[[]]", ASK),
        "{\"id\":",
    };
    static const char *const gone[] = {
        "a",
        "b",
        "c",
        "d",
        "e",
        "f\"",
        "forty-characters-are-too-many-for-a-name",
        "g",
        "h",
        "i",
        "j",
        "k"};
    static const struct {
        const char *id, *says;
        int status;
    } rows[] = {{"right", "\"finish_reason\":\"length\"", 200},
                {"late", "3 tokens are done of 3", 400},
                {"token", "is not below", 400},
                {"body", "expected a key", 400}};
    const char *text = "";
    sk_answer a;
    sk k;

    for (size_t i = 0; i < BR_COUNT(lines); i++)
        text = t_printf("%s%s\n", text, lines[i]);
    t_write(t_printf("%s/" FILE, t_tmpdir()), text, strlen(text));
    open_server(&k, 0);
    for (size_t i = 0; i < BR_COUNT(gone); i++)
        ck_assert_int_eq(
            sk_ask(&k, t_printf("GET /v1/requests/%s", gone[i]), "", NULL)
                .status,
            404);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        a = await_answer(&k, rows[i].id);
        ck_assert_msg(a.status == rows[i].status &&
                          strstr(a.body, rows[i].says),
                      "%s: %d %s", rows[i].id, a.status, a.body);
    }
    /* somebody else's */
    a = sk_ask(&k, "GET /v1/requests/tenant", "", NULL);
    ck_assert_int_eq(a.status, 404);
    sk_close(&k);
}

static bool
note_wanted(void *ctx, const char *name, char *comes, size_t n)
{
    (void)snprintf(comes, n, "%s", name);
    if (strcmp(name, "another") == 0)
        atomic_fetch_add((atomic_int *)ctx, 1);
    return true;
}

/* --memory may have no room for all models at the start, and nobody asks for one
 * but who waits for that answer. */
TEST(http_asks_for_the_models_of_answers_that_a_restart_broke_off)
{
    static atomic_int asked;
    br_http_config c = br_http_config_default();
    const char *line =
        "{\"id\":\"a\",\"path\":\"/v1/completions\",\"model\":\"another\","
        "\"tenant\":0,\"created\":1,\"seed_high\":1,\"seed_low\":2,"
        "\"choices\":[[]],\"body\":\"{}\"}\n";
    int64_t by = br_now_ns() + 30000 * MS;
    sk k;

    c.port = 0;
    c.resume = t_printf("%s/" FILE, t_tmpdir());
    c.wanted = note_wanted;
    c.ctx = &asked;
    t_write(c.resume, line, strlen(line));
    sk_open(&k, &(sk_config){.http = c});
    while (!atomic_load(&asked)) {
        ck_assert_msg(br_now_ns() < by, "nobody asks for it");
        br_sleep_ns(MS);
    }
    ck_assert_int_eq(sk_ask(&k, "GET /v1/requests/a", "", NULL).status, 202);
    sk_close(&k);
}

/* A name that nothing has is no reason to wait; its line stays for a server that
 * has it. */
TEST(http_says_that_the_model_of_a_broken_answer_is_gone)
{
    br_http_config c = br_http_config_default();
    const char *line =
        "{\"id\":\"a\",\"path\":\"/v1/completions\",\"model\":\"gone\","
        "\"tenant\":0,\"created\":1,\"seed_high\":1,\"seed_low\":2,"
        "\"choices\":[[]],\"body\":\"{}\"}\n";
    sk_answer a;
    sk k;

    c.port = 0;
    c.resume = t_printf("%s/" FILE, t_tmpdir());
    t_write(c.resume, line, strlen(line));
    sk_open(&k, &(sk_config){.http = c});
    a = sk_ask(&k, "GET /v1/requests/a", "", NULL);
    ck_assert_msg(a.status == 404 &&
                      strstr(a.body, "it cannot go on: model: 'gone' is not "
                                     "here; this server has 'fake'"),
                  "%d %s", a.status, a.body);
    sk_close(&k);
    ck_assert_str_eq(t_read(c.resume, NULL), line);
}
