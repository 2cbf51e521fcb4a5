/* pg_kit.c - see pg_kit.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "pg_kit.h"

#include "base/thread.h"
#include "run/tstore.h"
#include "t.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PASSWORD "s3cr3t word"

const char *
pg_url(const pg_server *p, const char *password, const char *db)
{
    return t_printf("postgres://brass:%s@127.0.0.1:%d/%s", password, p->port,
                    db);
}

static const char *
url(const pg_server *p)
{
    return pg_url(p, "s3cr3t%20word", "postgres");
}

int
pg_start(pg_server *p)
{
    const char *port = t_printf("%d", p->port);
    br_status st = {0};
    int status = 0;

    p->pid = fork();
    ck_assert_int_ge(p->pid, 0);
    if (p->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        execl(t_repo("tests/pg.sh"), "pg.sh", p->dir, port, PASSWORD, NULL);
        _exit(1);
    }
    while (waitpid(p->pid, &status, WNOHANG) == 0) {
        br_tstore *s;

        st = (br_status){0};
        if (br_tstore_open(&s, url(p), &st) == BR_OK) {
            br_tstore_close(s);
            return 0;
        }
        ck_assert_msg(st.code == BR_E_IO || st.code == BR_E_TIMEOUT, "%s",
                      st.msg);
        br_sleep_ns(20000000);
    }
    return WEXITSTATUS(status);
}

void
pg_stop(pg_server *p)
{
    int status;

    (void)kill(p->pid, SIGTERM);
    ck_assert_int_eq(waitpid(p->pid, &status, 0), p->pid);
}

const char *
pg_sql(const pg_server *p, const char *sql)
{
    t_proc r;

    t_exec(&r,
           (const char *[]){"psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", sql,
                            url(p), NULL},
           NULL, 0);
    ck_assert_msg(r.exit == 0, "%s: %s", sql, r.err);
    r.out[strcspn(r.out, "\n")] = 0;
    return r.out;
}

const char *
pg_db(const pg_server *p)
{
    (void)pg_sql(p, "DROP SCHEMA IF EXISTS brass CASCADE");
    return url(p);
}

/* One that was free just now. */
static int
free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)(void *)&a, n), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)(void *)&a, &n), 0);
    (void)close(fd);
    return ntohs(a.sin_port);
}

static void
sweep(const pg_server *p)
{
    t_proc r;

    t_exec(&r, (const char *[]){"rm", "-rf", p->dir, NULL}, NULL, 0);
}

void
pg_begin(pg_server *p)
{
    br_status st = {0};
    br_tstore *s;
    int code;

    *p = (pg_server){.dir = "/tmp/brass-pg-XXXXXX", .port = free_port()};
    if (br_tstore_open(&s, "postgres://127.0.0.1:1/x", &st) == BR_E_UNSUPPORTED)
        t_skip("built without libpq");
    if (!t_have_program("psql"))
        t_skip("no PostgreSQL here");
    ck_assert_ptr_nonnull(mkdtemp(p->dir));
    code = pg_start(p);
    if (code)
        sweep(p);
    if (code == 77)
        t_skip("no PostgreSQL here");
    ck_assert_int_eq(code, 0);
}

void
pg_end(pg_server *p)
{
    pg_stop(p);
    sweep(p);
}
