/* test_http_turns.c - a turn of the server's loop: who comes first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "http/http_loop.h"

#include "t.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MS INT64_C(1000000)

/* An app that answers at once, or streams, and writes down what it hears. */
typedef struct app {
    br_http_loop *loop;
    br_thread thread;
    char path[100];
    char log[100]; /* a letter each: w, or the request's */
    size_t n_log;
    br_http_conn *stream[2]; /* in the order in which they came */
    int n_stream;
    atomic_bool slow; /* a request is being answered slowly */
    atomic_bool sent; /* what comes meanwhile has come */
} app;

static void
note(app *a, char what)
{
    ck_assert_uint_lt(a->n_log, sizeof a->log - 1);
    a->log[a->n_log++] = what;
}

static void
on_request(void *ctx, br_http_conn *c)
{
    app *a = ctx;
    char what = c->in.path.p[1];

    note(a, what);
    if (what == 't') {
        br_http_stream(c, 200, "text/plain", NULL);
        a->stream[a->n_stream++] = c;
        return;
    }
    if (what == 's') {
        atomic_store(&a->slow, true);
        while (!atomic_load(&a->sent))
            br_sleep_ns(MS);
    }
    br_http_answer(c, 200, "text/plain", NULL, (br_text){"ok", 2});
}

static void
on_gone(void *ctx, br_http_conn *c, bool too_slow)
{
    (void)ctx, (void)c, (void)too_slow;
}

static void
on_wake(void *ctx)
{
    app *a = ctx;

    note(a, 'w');
    for (int i = 0; i < a->n_stream; i++)
        br_http_put(a->stream[i], "x", 1);
}

static void
on_drained(void *ctx, br_http_conn *c)
{
    (void)ctx, (void)c;
}

static bool
on_tick(void *ctx, int64_t now_ns, bool stopping)
{
    (void)ctx, (void)now_ns;
    return !stopping;
}

static void
on_refuse(void *ctx, br_http_conn *c, int status, const char *why)
{
    (void)ctx;
    br_http_answer(c, status, NULL, NULL, (br_text){why, strlen(why)});
}

static void
run(void *ctx)
{
    br_http_loop_run(((app *)ctx)->loop);
}

static void
app_open(app *a)
{
    const br_http_app calls = {a,          on_request, on_gone,  on_wake,
                               on_drained, on_tick,    on_refuse};
    br_http_limits limits = br_http_limits_default();
    br_status st = {0};

    *a = (app){0};
    strcpy(a->path, t_printf("%s/door", t_tmpdir()));
    t_ok(br_http_loop_new(&a->loop, &limits, &calls, &st), &st);
    t_ok(br_http_listen_unix(a->loop, a->path, &st), &st);
    t_ok(br_thread_start(&a->thread, "loop", run, a, &st), &st);
}

static void
app_close(app *a)
{
    br_http_loop_stop(a->loop);
    br_thread_join(&a->thread);
    br_http_loop_free(a->loop);
}

/* Unix sockets: what is sent is there when send returns. */
static int
ask(const app *a, const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const char *text =
        t_printf("GET /%s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    strcpy(to.sun_path, a->path);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)(void *)&to, sizeof to), 0);
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL),
                     (ssize_t)strlen(text));
    return fd;
}

static void
read_until(int fd, const char *end)
{
    char got[1000];
    size_t n = 0;

    for (;;) {
        ssize_t k = recv(fd, got + n, sizeof got - 1 - n, 0);

        ck_assert_int_gt(k, 0);
        n += (size_t)k;
        got[n] = 0;
        if (strstr(got, end))
            return;
    }
}

/* While a slow request keeps the loop, another comes and then a token. */
TEST(http_turns_begin_with_tokens)
{
    app a;
    int slow, other, idle;

    app_open(&a);
    idle = ask(&a, "i"); /* accepted: the next ones are events of their own */
    read_until(idle, "ok");
    other = ask(&a, "o");
    read_until(other, "ok");
    slow = ask(&a, "s");
    while (!atomic_load(&a.slow))
        br_sleep_ns(MS);
    ck_assert_int_gt(send(other, "GET /o HTTP/1.1\r\nHost: localhost\r\n\r\n",
                          37, MSG_NOSIGNAL),
                     0);
    br_http_loop_wake(a.loop);
    atomic_store(&a.sent, true);
    read_until(slow, "ok");
    read_until(other, "ok");
    app_close(&a);
    /* Once behind the slow one, which took longer than tokens wait, and once
     * when the turn began. Those before it may have been slow, too. */
    ck_assert_ptr_nonnull(strchr(a.log, 's'));
    ck_assert_str_eq(t_printf("%.4s", strchr(a.log, 's')), "swwo");
    close(slow);
    close(other);
    close(idle);
}

TEST(http_turns_send_first_what_was_put_first)
{
    struct epoll_event e[2];
    int ep = epoll_create1(EPOLL_CLOEXEC), fd[2];
    app a;

    app_open(&a);
    for (int i = 0; i < 2; i++) {
        fd[i] = ask(&a, "t");
        read_until(fd[i], "\r\n\r\n");
    }
    for (int i = 1; i >= 0; i--) {
        e[0] = (struct epoll_event){.events = EPOLLIN, .data.fd = i};
        ck_assert_int_eq(epoll_ctl(ep, EPOLL_CTL_ADD, fd[i], &e[0]), 0);
    }
    for (int round = 0; round < 20; round++) {
        br_http_loop_wake(a.loop);
        br_sleep_ns(5 * MS);
        while (epoll_wait(ep, e, 2, 60000) < 2)
            br_sleep_ns(MS);
        ck_assert_int_eq(e[0].data.fd, 0); /* in the order of their bytes */
        for (int i = 0; i < 2; i++)
            read_until(fd[i], "x\r\n");
    }
    app_close(&a);
    close(fd[0]);
    close(fd[1]);
    close(ep);
}
