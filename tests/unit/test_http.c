/* test_http.c - connections: who stays, who waits, who is let go.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "base/log.h"

#include "run/books.h"

#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MS INT64_C(1000000)

static br_http_config
quick(void)
{
    br_http_config c = br_http_config_default();

    c.port = 0;
    c.limits.head_ns = 1000 * MS;
    c.limits.body_ns = 1000 * MS;
    c.limits.idle_ns = 1000 * MS;
    return c;
}

static void
say(int fd, const char *z)
{
    sk_send(fd, z, strlen(z));
}

static char *
chat(int max_tokens, bool stream)
{
    return t_printf("{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],"
                    "\"temperature\":0,\"max_tokens\":%d,\"stream\":%s}",
                    max_tokens, stream ? "true" : "false");
}

static char *
post(const char *path, const char *body)
{
    return t_printf("POST %s HTTP/1.1\r\nHost: localhost\r\n"
                    "Content-Length: %zu\r\n\r\n%s",
                    path, strlen(body), body);
}

static br_engine_stats
stats(const sk *k)
{
    br_engine_stats s;

    br_engine_stats_get(k->ek.e, &s);
    return s;
}

static void
await_idle(const sk *k)
{
    int64_t end = br_now_ns() + 60000 * MS;

    while (stats(k).n_running + stats(k).n_queued > 0) {
        ck_assert_msg(br_now_ns() < end, "a slot stays taken");
        br_sleep_ns(MS);
    }
}

/* The text of all deltas of a chat stream. */
static char *
streamed_text(const char *body)
{
    br_str s = {0};
    char *kept;

    while ((body = strstr(body, "{\"content\":\""))) {
        const char *end = strstr(body += 12, "\"}");

        br_str_put(&s, body, (size_t)(end - body));
    }
    kept = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return kept;
}

/* ---- connections --------------------------------------------------------- */

TEST(http_answers_many_requests_on_one_connection)
{
    sk k;
    int fd;

    sk_open(&k, &(sk_config){0});
    fd = sk_connect(&k);
    for (int i = 0; i < 3; i++) {
        say(fd, post("/v1/chat/completions", chat(5, i == 1)));
        ck_assert_int_eq(sk_read(fd, true).status, 200);
    }
    close(fd);
    sk_close(&k);
}

TEST(http_answers_in_order_what_came_at_once)
{
    static const char both[] = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
                               "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n"
                               "\r\nGET /nowhere HTTP/1.1\r\nHost: localhost"
                               "\r\n\r\n";
    sk_answer a;
    sk k;
    int fd;

    sk_open(&k, &(sk_config){0});
    for (size_t step = 1; step <= sizeof both - 1; step += sizeof both - 2) {
        fd = sk_connect(&k);
        for (size_t i = 0; i < sizeof both - 1; i += step)
            sk_send(fd, both + i, step);
        a = sk_read(fd, true);
        ck_assert_str_eq(a.body, "{\"status\":\"ok\"}");
        a = sk_read(fd, true);
        ck_assert_ptr_nonnull(strstr(a.body, "\"object\":\"list\""));
        ck_assert_int_eq(sk_read(fd, true).status, 404);
        close(fd);
    }
    sk_close(&k);
}

TEST(http_lets_clients_go_that_take_too_long)
{
    sk_answer a;
    sk k;
    int fd;

    sk_open(&k, &(sk_config){.http = quick()});
    fd = sk_connect(&k);
    say(fd, "GET /health HTTP/1.1\r\nHo");
    a = sk_read(fd, true);
    ck_assert_int_eq(a.status, 408);
    ck_assert_ptr_nonnull(strstr(a.body, "headers took too long"));
    close(fd);
    fd = sk_connect(&k);
    say(fd, "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9"
            "\r\n\r\n{");
    a = sk_read(fd, true);
    ck_assert_int_eq(a.status, 408);
    ck_assert_ptr_nonnull(strstr(a.body, "body took too long"));
    close(fd);
    fd = sk_connect(&k); /* says nothing: closed without a word */
    ck_assert_int_eq(sk_read(fd, true).status, 0);
    close(fd);
    sk_close(&k);
}

static void
count_warning(void *ctx, const br_log_record *r)
{
    if (r->event == BR_EV_http_tls || r->event == BR_EV_http_full)
        atomic_fetch_add((atomic_int *)ctx, 1);
}

TEST(http_says_why_it_closes_on_what_is_no_request)
{
    atomic_int warned = 0;
    br_log_sink sink = {count_warning, &warned, BR_LOG_WARN};
    sk_answer a;
    sk k;
    int fd;

    br_log_install(&sink);
    sk_open(&k, &(sk_config){0});
    fd = sk_connect(&k);
    sk_send(fd, "\x16\x03\x01", 3); /* TLS */
    a = sk_read(fd, true);
    ck_assert_int_eq(a.status, 400);
    ck_assert_ptr_nonnull(strstr(a.head, "Connection: close"));
    ck_assert_ptr_nonnull(strstr(a.body, "http://, not https://"));
    ck_assert_int_eq(atomic_load(&warned), 1);
    br_log_install(NULL);
    close(fd);
    /* A body over the limit: the reason arrives though nobody reads it. */
    fd = sk_connect(&k);
    say(fd, "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
            "99999999\r\n\r\n");
    a = sk_read(fd, true);
    ck_assert_int_eq(a.status, 413);
    close(fd);
    sk_close(&k);
}

TEST(http_asks_for_the_body_when_told_to)
{
    char line[26];
    sk k;
    int fd;

    sk_open(&k, &(sk_config){0});
    fd = sk_connect(&k);
    say(fd, "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nExpect: "
            "100-continue\r\nContent-Length: 16\r\n\r\n");
    ck_assert_int_eq(recv(fd, line, 25, MSG_WAITALL), 25);
    line[25] = 0;
    ck_assert_str_eq(line, "HTTP/1.1 100 Continue\r\n\r\n");
    say(fd, "{\"prompt\":\"abc\"}");
    ck_assert_int_eq(sk_read(fd, true).status, 200);
    close(fd);
    sk_close(&k);
}

TEST(http_refuses_more_connections_than_allowed)
{
    br_http_config c = quick();
    int fd[4];
    sk k;

    c.limits.conns = 3;
    c.limits.idle_ns = c.limits.head_ns = 60000 * MS;
    sk_open(&k, &(sk_config){.http = c});
    for (int i = 0; i < 4; i++)
        fd[i] = sk_connect(&k);
    ck_assert_int_eq(sk_read(fd[3], true).status, 503);
    for (int i = 0; i < 4; i++)
        close(fd[i]);
    sk_close(&k);
}

/* Where fewer files may be open than connections: who cannot be accepted would wait,
 * and be ready to be accepted all the time. */
TEST(http_refuses_connections_that_files_are_lacking_for)
{
    atomic_int full = 0;
    br_log_sink sink = {count_warning, &full, BR_LOG_WARN};
    br_http_config c = quick();
    struct rlimit was, few;
    sk_answer a = {0};
    int fd[40], n = 0;
    sk k;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    few = was;
    few.rlim_cur = 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    c.limits.idle_ns = 60000 * MS; /* nobody makes room */
    sk_open(&k, &(sk_config){.http = c});
    br_log_install(&sink);
    do {
        fd[n] = sk_connect(&k);
        say(fd[n], "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
        a = sk_read(fd[n++], true);
    } while (n < 40 && a.status == 200);
    br_log_install(NULL);
    ck_assert_int_eq(a.status, 503);
    ck_assert_int_eq(atomic_load(&full), 1);
    while (n)
        close(fd[--n]);
    sk_close(&k);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
}

/* Who has a copy of a socket keeps it in epoll: a child between fork and exec,
 * say. What comes for it then came for a connection that was gone. */
TEST(http_forgets_a_socket_that_another_holds)
{
    int fd, copies[64], n = 0;
    sk k;

    if (strstr(t_conf(), "thread"))
        t_skip("TSan takes dup beside close for a race");
    sk_open(&k, &(sk_config){0});
    fd = sk_connect(&k);
    say(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ck_assert_int_eq(sk_read(fd, false).status, 200);
    for (int i = 3; i < 64; i++)
        if ((copies[n] = dup(i)) >= 0)
            n++;
    shutdown(fd, SHUT_RDWR);
    for (int i = 0; i < 20; i++) {
        br_sleep_ns(MS);
        ck_assert_int_eq(sk_ask(&k, "GET /health", "", NULL).status, 200);
    }
    while (n > 0)
        close(copies[--n]);
    close(fd);
    sk_close(&k);
}

/* ---- streams ------------------------------------------------------------- */

TEST(http_streams_say_what_whole_answers_say)
{
    sk_answer a, b;
    sk k;

    sk_open(&k, &(sk_config){0});
    a = sk_ask(&k, "POST /v1/chat/completions", "", chat(60, false));
    b = sk_ask(&k, "POST /v1/chat/completions", "", chat(60, true));
    ck_assert_str_eq(sk_between(a.body, "\"content\":\"", "\",\"refusal\""),
                     streamed_text(b.body));
    ck_assert_ptr_nonnull(strstr(b.body, "data: [DONE]\n\n"));
    sk_close(&k);
}

TEST(http_holds_back_what_may_become_a_stop_string)
{
    sk_answer a;
    sk k;

    sk_open(&k, &(sk_config){0});
    /* The answer begins " Biscuithelped ". */
    a = sk_ask(&k, "POST /v1/chat/completions", "",
               "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],"
               "\"temperature\":0,\"max_tokens\":9,\"stream\":true,"
               "\"stop\":[\"cuithelp\",\"zzz\"]}");
    ck_assert_str_eq(streamed_text(a.body), " Bis");
    ck_assert_ptr_nonnull(strstr(a.body, "\"finish_reason\":\"stop\""));
    a = sk_ask(&k, "POST /v1/messages", "",
               "{\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],"
               "\"temperature\":0,\"max_tokens\":9,"
               "\"stop_sequences\":[\"zzz\",\"helped\"]}");
    ck_assert_ptr_nonnull(strstr(a.body, "\"text\":\" Biscuit\""));
    ck_assert_ptr_nonnull(strstr(a.body, "\"stop_sequence\":\"helped\""));
    sk_close(&k);
}

TEST(http_frees_the_slot_of_a_client_that_leaves)
{
    sk k;

    sk_open(&k, &(sk_config){.fake = {.step_ns = 10 * MS, .n_slots = 2}});
    for (int stream = 0; stream < 2; stream++) {
        int fd = sk_connect(&k);

        say(fd, post("/v1/chat/completions", chat(900, stream)));
        while (!stats(&k).n_running)
            br_sleep_ns(MS);
        close(fd);
        await_idle(&k);
    }
    ck_assert_uint_eq(stats(&k).n_cancelled, 2);
    sk_close(&k);
}

TEST(http_holds_only_the_slot_of_a_slow_client)
{
    br_http_config c = br_http_config_default();
    int fd;
    sk_answer a;
    sk k;

    c.port = 0;
    sk_open(&k, &(sk_config){.http = c,
                             .fake = {.n_ctx = 16384, .n_slots = 2},
                             .engine = {.hold_ns = 300 * MS}});
    fd = sk_connect(&k);
    /* 16 MB, more than any socket buffers: nobody fetches it */
    say(fd, post("/v1/chat/completions",
                 "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],"
                 "\"temperature\":0,\"max_tokens\":8000,\"stream\":true,"
                 "\"logprobs\":true,\"top_logprobs\":20,\"ignore_eos\":true}"));
    a = sk_ask(&k, "POST /v1/chat/completions", "", chat(500, true));
    ck_assert_ptr_nonnull(strstr(a.body, "data: [DONE]\n\n"));
    await_idle(&k);
    a = sk_read(fd, true); /* now it does, and hears why it got no more */
    ck_assert_ptr_nonnull(strstr(a.body, "client_too_slow"));
    close(fd);
    sk_close(&k);
}

/* ---- who may ask --------------------------------------------------------- */

TEST(http_wants_the_key_of_a_tenant)
{
    br_http_config c = br_http_config_default();
    char *db = t_printf("%s/t.db", t_tmpdir()), key[BR_KEY_CHARS], *bearer;
    br_quota q = br_quota_defaults();
    br_books *books = NULL;
    br_status st = {0};
    br_tstore *store;
    sk_answer a;
    uint32_t id;
    bool lost;
    sk k;

    if (!br_tstore_here())
        t_skip("built without SQLite");
    t_ok(br_tstore_open(&store, db, &st), &st);
    t_ok(br_tstore_create(store, "al", &q, &id, key, &st), &st);
    c.port = 0;
    c.db = db;
    sk_open(&k, &(sk_config){.http = c});
    t_ok(br_books_open(&books, db, NULL, &lost, &st), &st);
    t_ok(br_books_add(books, k.ek.e, "fake", NULL, &st), &st);
    bearer = t_printf("Authorization: Bearer %s\r\n", key);
    ck_assert_int_eq(sk_ask(&k, "GET /v1/models", "", NULL).status, 401);
    ck_assert_int_eq(sk_ask(&k, "GET /metrics", "", NULL).status, 401);
    ck_assert_int_eq(sk_ask(&k, "GET /v1/models", bearer, NULL).status, 200);
    a = sk_ask(&k, "POST /v1/chat/completions",
               t_printf("x-api-key: %s\r\n", key), chat(7, false));
    ck_assert_int_eq(a.status, 200);
    bearer[strlen(bearer) - 3] ^= 1;
    ck_assert_int_eq(sk_ask(&k, "GET /v1/models", bearer, NULL).status, 401);
    bearer[strlen(bearer) - 3] ^= 1;
    br_books_close(books); /* writes what there is */
    a = sk_ask(&k, "GET /v1/tenants/me/usage", bearer, NULL);
    ck_assert_ptr_nonnull(strstr(a.body, "\"tokens_generated\":7,"));
    a = sk_ask(&k, t_printf("GET /v1/tenants/%u/usage", id + 1), bearer, NULL);
    ck_assert_int_eq(a.status, 403);
    sk_close(&k);
    br_tstore_close(store);
}

TEST(http_does_not_listen_to_others_by_accident)
{
    br_http_config c = br_http_config_default();
    br_status st = {0};
    br_http *h;

    c.host = "0.0.0.0";
    c.port = 0;
    ck_assert_int_eq(br_http_new(&h, &c, &st), BR_E_USAGE);
    ck_assert_str_eq(st.msg,
                     "--host 0.0.0.0: others could reach it; give "
                     "--db or --api-key-file, or --insecure if that is meant");
    c.insecure = true;
    st = (br_status){0};
    t_ok(br_http_new(&h, &c, &st), &st);
    br_http_free(h);
}

TEST(http_knows_names_that_are_not_its_own)
{
    static const char *const hosts[] = {"evil.example", "localhost.evil.com",
                                        "10.0.0.1",     "127x",
                                        "127.evil.com", "127.0.0.1.nip.io"};
    sk_answer a;
    sk k;
    int fd;

    sk_open(&k, &(sk_config){0});
    for (size_t i = 0; i < BR_COUNT(hosts); i++) {
        fd = sk_connect(&k);
        say(fd, t_printf("GET /v1/models HTTP/1.1\r\nHost: %s:80\r\n\r\n",
                         hosts[i]));
        ck_assert_int_eq(sk_read(fd, true).status, 403);
        close(fd);
    }
    a = sk_ask(&k, "GET /v1/models", "Origin: http://localhost\r\n", NULL);
    ck_assert_int_eq(a.status, 200);
    a = sk_ask(&k, "GET /v1/models", "Origin: null\r\n", NULL);
    ck_assert_int_eq(a.status, 403);
    /* What an absolute target says holds; who says nothing is no browser. */
    fd = sk_connect(&k);
    say(fd, "GET http://evil.example/v1/models HTTP/1.1\r\n"
            "Host: localhost\r\nConnection: close\r\n\r\n");
    ck_assert_int_eq(sk_read(fd, true).status, 403);
    close(fd);
    fd = sk_connect(&k);
    say(fd, "GET /v1/models HTTP/1.0\r\n\r\n");
    ck_assert_int_eq(sk_read(fd, true).status, 200);
    close(fd);
    sk_close(&k);
}

/* ---- overload, beginning and end ----------------------------------------- */

TEST(http_says_when_the_queue_is_full)
{
    sk_answer a;
    int fd[2];
    sk k;

    sk_open(&k, &(sk_config){.fake = {.step_ns = 50 * MS, .n_slots = 1},
                             .engine = {.queue_depth = 1}});
    for (int i = 0; i < 2; i++) { /* one has the slot before the next comes */
        fd[i] = sk_connect(&k);
        say(fd[i], post("/v1/chat/completions", chat(900, false)));
        while (i ? !stats(&k).n_queued : !stats(&k).n_running)
            br_sleep_ns(MS);
    }
    a = sk_ask(&k, "POST /v1/chat/completions", "", chat(9, false));
    ck_assert_int_eq(a.status, 503);
    ck_assert_int_ge(atoi(sk_between(a.head, "Retry-After: ", "\r\n")), 1);
    for (int i = 0; i < 2; i++)
        close(fd[i]);
    sk_close(&k);
}

TEST(http_refuses_what_does_not_fit_the_context)
{
    sk_answer a;
    char *big;
    br_str s = {0};
    sk k;

    sk_open(&k, &(sk_config){0});
    for (int i = 0; i < 2000; i++)
        br_str_puts(&s, " fox");
    a = sk_ask(&k, "POST /v1/completions", "",
               t_printf("{\"prompt\":\"%s\"}", s.at));
    ck_assert_int_eq(a.status, 400);
    ck_assert_ptr_nonnull(strstr(
        a.body, "\"param\":\"prompt\",\"code\":\"context_length_exceeded"));
    br_str_fini(&s);
    /* Megabytes are not even read. */
    big = br_alloc(4 << 20);
    memset(big, 'a', 4 << 20);
    memcpy(big, "{\"prompt\":\"", 11);
    memcpy(big + (4 << 20) - 3, "\"}", 3);
    a = sk_ask(&k, "POST /v1/completions", "", big);
    ck_assert_int_eq(a.status, 400);
    ck_assert_ptr_nonnull(strstr(a.body, "the prompt has 4194"));
    ck_assert_ptr_nonnull(strstr(a.body, "context_length_exceeded"));
    a = sk_ask(&k, "POST /tokenize", "", big);
    ck_assert_int_eq(a.status, 400);
    ck_assert_ptr_nonnull(strstr(a.body, "over 2 MiB"));
    br_free(big);
    sk_close(&k);
}

/* Inputs wait for each other in waves: what is wrong with a late one is what
 * the answer says, and the others end. */
TEST(http_says_what_is_wrong_with_a_late_input)
{
    br_str body = {0};
    sk_answer a;
    sk k;

    sk_open(&k, &(sk_config){.fake = {.n_ctx = 64,
                                      .n_slots = 2,
                                      .pooling = BR_POOLING_MEAN}});
    br_str_puts(&body, "{\"input\":[");
    for (int i = 0; i < 40; i++)
        br_str_puts(&body, "\"fox\",");
    br_str_puts(&body, "[1");
    for (int i = 0; i < 100; i++)
        br_str_puts(&body, ",1");
    br_str_puts(&body, "]]}");
    a = sk_ask(&k, "POST /v1/embeddings", "", br_str_z(&body));
    ck_assert_int_eq(a.status, 400);
    ck_assert_ptr_nonnull(strstr(a.body, "the prompt has 101 tokens"));
    br_str_fini(&body);
    a = sk_ask(&k, "GET /state", "", NULL);
    ck_assert_ptr_nonnull(strstr(a.body, "\"running\":0"));
    a = sk_ask(&k, "GET /state?model=f%61ke", "", NULL);
    ck_assert_ptr_nonnull(strstr(a.body, "\"model\":\"fake\""));
    a = sk_ask(&k, "GET /state?model=other", "", NULL);
    ck_assert_int_eq(a.status, 404);
    ck_assert_str_eq(a.body,
                     "{\"error\":{\"type\":\"invalid_request_error\","
                     "\"message\":\"model: 'other' is not here; this server "
                     "has 'fake'\",\"param\":\"model\","
                     "\"code\":\"model_not_found\"}}");
    sk_close(&k);
}

TEST(http_says_so_while_the_model_is_loaded)
{
    sk_answer a;
    sk k;

    sk_open(&k, &(sk_config){.loading = true});
    a = sk_ask(&k, "GET /health", "", NULL);
    ck_assert_int_eq(a.status, 503);
    ck_assert_str_eq(a.body, "{\"status\":\"loading\"}");
    a = sk_ask(&k, "POST /v1/chat/completions", "", chat(9, false));
    ck_assert_int_eq(a.status, 503);
    sk_ready(&k);
    a = sk_ask(&k, "POST /v1/chat/completions", "", chat(9, false));
    ck_assert_int_eq(a.status, 200);
    sk_close(&k);
}

TEST(http_finishes_what_runs_before_it_ends)
{
    sk_answer a;
    sk k;
    int fd;

    /* long enough for two questions meanwhile, however busy the machine is */
    sk_open(&k, &(sk_config){.fake = {.step_ns = 20 * MS}});
    fd = sk_connect(&k);
    say(fd, post("/v1/chat/completions", chat(200, true)));
    while (!stats(&k).n_running)
        br_sleep_ns(MS);
    br_http_stop(k.http);
    do
        a = sk_ask(&k, "GET /health", "", NULL);
    while (a.status == 200);
    ck_assert_int_eq(a.status, 503);
    ck_assert_str_eq(a.body, "{\"status\":\"draining\"}");
    a = sk_ask(&k, "POST /v1/chat/completions", "", chat(9, false));
    ck_assert_int_eq(a.status, 503);
    a = sk_read(fd, true);
    ck_assert_ptr_nonnull(strstr(a.body, "\"finish_reason\":\"length\""));
    ck_assert_ptr_nonnull(strstr(a.body, "data: [DONE]\n\n"));
    close(fd);
    br_thread_join(&k.thread);
    k.running = false;
    sk_close(&k);
}

TEST(http_ends_at_once_when_told_twice)
{
    sk_answer a;
    sk k;
    int fd;

    sk_open(&k, &(sk_config){.fake = {.step_ns = 50 * MS}});
    fd = sk_connect(&k);
    say(fd, post("/v1/chat/completions", chat(900, true)));
    while (!stats(&k).n_running)
        br_sleep_ns(MS);
    br_http_stop(k.http);
    br_http_stop(k.http);
    a = sk_read(fd, true);
    ck_assert_ptr_nonnull(strstr(a.body, "shutting down"));
    close(fd);
    br_thread_join(&k.thread);
    k.running = false;
    sk_close(&k);
}

TEST(http_has_metrics_of_what_was_done)
{
    sk_answer a;
    sk k;

    sk_open(&k, &(sk_config){0});
    (void)sk_ask(&k, "POST /v1/chat/completions", "", chat(7, false));
    a = sk_ask(&k, "GET /metrics", "", NULL);
    ck_assert_ptr_nonnull(
        strstr(a.body, "\nbrass_request_finished_total{model_name=\"fake\","
                       "reason=\"length\"} 1\n"));
    ck_assert_ptr_nonnull(
        strstr(a.body, "\nvllm:generation_tokens_total{model_name=\"fake\"} "
                       "7\n"));
    ck_assert_ptr_nonnull(strstr(a.body,
                                 "brass_e2e_request_latency_seconds_count{"
                                 "model_name=\"fake\"} 1\n"));
    a = sk_ask(&k, "GET /state", "", NULL);
    ck_assert_ptr_nonnull(strstr(a.body, "\"out_tokens\":7"));
    sk_close(&k);
}

/* ---- several models ------------------------------------------------------ */

static void
on_left(void *ctx, const br_http_model *m)
{
    (void)m;
    atomic_store((atomic_bool *)ctx, true);
}

static char *
ask_model(const char *name, int n)
{
    return t_printf("{\"model\":\"%s\",\"prompt\":[300,301],\"temperature\":0,"
                    "\"max_tokens\":%d,\"ignore_eos\":true}",
                    name, n);
}

static void
on_listed(void *ctx, void (*name)(void *to, const char *name, const char *why),
          void *to)
{
    (void)ctx;
    name(to, "fake", NULL);
    name(to, "a \"third\"", "not \"whole\"");
    name(to, "fourth", NULL);
    name(to, "fake", "no \"place\""); /* in place of the first */
}

TEST(http_models_that_are_not_loaded_are_listed)
{
    static const char absent[] = "\",\"object\":\"model\",\"created\":";
    br_http_config c = br_http_config_default();
    sk_answer a;
    sk k;

    c.port = 0;
    c.listed = on_listed;
    sk_open(&k, &(sk_config){.http = c});
    a = sk_ask(&k, "GET /v1/models", "", NULL);
    ck_assert_msg(
        strstr(a.body, "\"data\":[{\"id\":\"fake\",") &&
            strstr(a.body, ",\"loaded\":true,\"error\":\"no \\\"place\\\"\"},{"
                           "\"id\":\"a \\\"third\\\"") &&
            strstr(a.body, ",\"loaded\":false,\"error\":\"not \\\"whole\\\"\"},"
                           "{\"id\":\"fourth\",") &&
            strstr(a.body, ",\"owned_by\":\"brass\",\"loaded\":false}]}"),
        "%s", a.body);
    a = sk_ask(&k, "GET /v1/models/fourth", "", NULL);
    ck_assert_int_eq(a.status, 200);
    ck_assert_msg(strncmp(a.body, "{\"id\":\"fourth", 13) == 0 &&
                      strstr(a.body, absent) &&
                      strstr(a.body, "\"loaded\":false}"),
                  "%s", a.body);
    a = sk_ask(&k, "GET /v1/models/fake", "", NULL);
    ck_assert(a.status == 200 && strstr(a.body, "\"loaded\":true,\"error\":"));
    a = sk_ask(&k, "GET /v1/models/f%61k%65", "", NULL);
    ck_assert(a.status == 200 && strstr(a.body, "\"loaded\":true,\"error\":"));
    a = sk_ask(&k, "GET /v1/models/fake%00", "", NULL);
    ck_assert_int_eq(a.status, 404);
    a = sk_ask(&k, "GET /v1/models/fifth", "", NULL);
    ck_assert_int_eq(a.status, 404);
    ck_assert_msg(strstr(a.body, "has 'fake', 'a \\\"third\\\"', 'fourth'\""),
                  "%s", a.body);
    ck_assert_str_eq(sk_ask(&k, "GET /state?model=fifth", "", NULL).body,
                     a.body);
    a = sk_ask(&k, "GET /state?model=fake%00", "", NULL);
    ck_assert_int_eq(a.status, 404);
    a = sk_ask(&k, "GET /state?model=fourth", "", NULL); /* it would come */
    ck_assert_msg(a.status == 200 && !strstr(a.body, "\"model\"") &&
                      strstr(a.body, "\"comes\":true"),
                  "%s", a.body);
    sk_close(&k);
}

/* One head for each figure, below it a sample of each model. */
static void
check_metrics(const sk *k, int of_fake, int of_second)
{
    const char *text = sk_ask(k, "GET /metrics", "", NULL).body;
    char *each =
        t_printf("\n# TYPE brass_generation_tokens_total counter\n"
                 "brass_generation_tokens_total{model_name=\"fake\"} %d\n"
                 "brass_generation_tokens_total{model_name=\"second\"} %d\n# ",
                 of_fake, of_second);

    ck_assert_msg(strstr(text, each), "no %s in %s", each, text);
    ck_assert_ptr_nonnull(
        strstr(text, "\nvllm:request_success_total{model_name=\"second\","
                     "finished_reason=\"length\"} 1\n"));
    ck_assert_ptr_nonnull(
        strstr(text, t_printf("\nbrass_request_generation_tokens_sum{"
                              "model_name=\"second\"} %d\n",
                              of_second)));
    for (const char *at = text; (at = strstr(at, "# TYPE ")); at += 7) {
        char *head = t_printf("%.*s ", (int)strcspn(at + 7, " "), at + 7);

        ck_assert_msg(!strstr(at + 7, t_printf("# TYPE %s", head)),
                      "%s has two heads", head);
    }
}

TEST(http_models_come_and_leave_while_others_answer)
{
    static const char path[] = "/v1/completions";
    br_http_config c = br_http_config_default();
    br_turns turns = {.lock = BR_MUTEX};
    br_engine_config ec = {.turns = &turns};
    atomic_bool left = false;
    br_status st = {0};
    sk_answer a, b;
    sk k;
    ek second;
    br_http_model m = {
        .name = "second", .tier = "fake", .n_ctx = 1024, .owner = &second};
    int fd;

    c.port = 0;
    c.left = on_left;
    c.ctx = &left;
    sk_open(&k, &(sk_config){.http = c, .engine = ec});
    /* of fewer tokens: its answers are others */
    ek_open(&second, (br_lm_fake_config){.step_ns = 20 * MS, .n_common = 700},
            ec);
    m.engine = second.e;
    m.tok = second.tok;
    t_ok(br_http_ready(k.http, &m, &st), &st);
    while (!strstr(sk_ask(&k, "GET /v1/models", "", NULL).body, "second"))
        br_sleep_ns(MS);
    a = sk_ask(&k, "POST /v1/completions", "", ask_model("fake", 20));
    b = sk_ask(&k, "POST /v1/completions", "", ask_model("second", 20));
    ck_assert(a.status == 200 && b.status == 200);
    ck_assert_ptr_nonnull(strstr(b.body, "\"model\":\"second\""));
    ck_assert_str_ne(sk_between(a.body, "\"text\":\"", "\","),
                     sk_between(b.body, "\"text\":\"", "\","));
    (void)sk_ask(&k, "POST /v1/completions", "", ask_model("fake", 5));
    check_metrics(&k, 25, 20);
    fd = sk_connect(&k);
    say(fd, post(path, ask_model("second", 150)));
    for (br_engine_stats s = {0}; !s.n_running; br_sleep_ns(MS))
        br_engine_stats_get(second.e, &s);
    br_http_leave(k.http, &second);
    a = sk_ask(&k, "POST /v1/completions", "", ask_model("second", 2));
    ck_assert_int_eq(a.status, 404);
    ck_assert(!atomic_load(&left));
    a = sk_ask(&k, "POST /v1/completions", "", ask_model("fake", 2));
    ck_assert_int_eq(a.status, 200);
    a = sk_read(fd, true); /* what it had to answer is answered */
    ck_assert_ptr_nonnull(strstr(a.body, "\"completion_tokens\":150"));
    close(fd);
    while (!atomic_load(&left))
        br_sleep_ns(MS);
    ek_close(&second);
    a = sk_ask(&k, "GET /v1/models", "", NULL);
    ck_assert_ptr_null(strstr(a.body, "second"));
    a = sk_ask(&k, "GET /metrics", "", NULL);
    ck_assert(strstr(a.body, "\"fake\"") && !strstr(a.body, "\"second\""));
    a = sk_ask(&k, "POST /v1/completions", "", ask_model("fake", 2));
    ck_assert_int_eq(a.status, 200);
    sk_close(&k);
}

/* ---- its thread ---------------------------------------------------------- */

typedef struct slice {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
} slice;

/* The slice of a thread of this process, by the kernel. */
static bool
look_for(const char *name, slice *w)
{
    DIR *d = opendir("/proc/self/task");
    char comm[32];
    bool found = false;

    for (struct dirent *e; d && !found && (e = readdir(d));)
        found =
            br_os_read(t_printf("/proc/self/task/%s/comm", e->d_name), comm,
                       sizeof comm) &&
            strcmp(comm, name) == 0 &&
            syscall(SYS_sched_getattr, atoi(e->d_name), w, sizeof *w, 0) == 0;
    if (d)
        closedir(d);
    return found;
}

/* A thread may be there and not have its name yet. False: not of the class that
 * has slices. */
static bool
slice_of(const char *name, uint64_t *ns, int *nice)
{
    slice w = {0};
    bool found = look_for(name, &w);

    for (int i = 0; i < 10000 && !found; i++, found = look_for(name, &w))
        usleep(1000);
    ck_assert_msg(found, "no thread is called %s", name);
    *ns = w.runtime;
    *nice = w.nice;
    return w.policy == SCHED_OTHER;
}

/* It sends tokens when they are made, though threads that compute have all
 * processors: Linux 6.12 and later look at its slice. */
TEST(http_thread_has_short_slices)
{
    struct utsname u;
    int major = 0, minor = 0, nice, engine;
    uint64_t ns;
    sk k;

    ck_assert_int_eq(uname(&u), 0);
    ck_assert_int_eq(sscanf(u.release, "%d.%d", &major, &minor), 2);
    sk_open(&k, &(sk_config){0});
    ck_assert_int_eq(sk_ask(&k, "GET /health", "", NULL).status, 200);
    if (slice_of("http\n", &ns, &nice) && major * 100 + minor >= 612)
        ck_assert_uint_eq(ns, BR_OS_SOON_NS);
    if (slice_of("engine\n", &ns, &engine) && geteuid() == 0 && engine > -10)
        ck_assert_int_eq(nice, engine - BR_OS_SOON_NICE);
    sk_close(&k);
}
