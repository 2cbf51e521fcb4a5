/* http_kit.c - see http_kit.h. SPDX-License-Identifier: Apache-2.0 */
#include "http_kit.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "t.h"

static const char *log_path;

typedef struct request {
    char path[200];
    size_t from; /* of the range; 0: none is asked for */
    int times;   /* this path was asked for, this one included */
} request;

static bool
put(int fd, const void *p, size_t n)
{
    const char *at = p;

    while (n > 0) {
        ssize_t k = send(fd, at, n, MSG_NOSIGNAL);

        if (k <= 0)
            return false;
        at += k;
        n -= (size_t)k;
    }
    return true;
}

static void
head(int fd, const char *status, const char *more)
{
    char text[512];

    put(fd, text,
        (size_t)snprintf(text, sizeof text,
                         "HTTP/1.1 %s\r\nConnection: close\r\n%s\r\n", status,
                         more));
}

/* The file from byte `from` on, at most `most` bytes of it. */
static void
serve_file(int fd, const char *p, size_t n, size_t from, size_t most)
{
    char more[256];

    if (from > n) {
        head(fd, "416 Range Not Satisfiable", "Content-Length: 0\r\n");
        return;
    }
    snprintf(more, sizeof more,
             "ETag: \"v1\"\r\nContent-Length: %zu\r\n"
             "Content-Range: bytes %zu-%zu/%zu\r\n",
             n - from, from, n - 1, n);
    if (from)
        head(fd, "206 Partial Content", more);
    else {
        *strstr(more, "Content-Range") = 0;
        head(fd, "200 OK", more);
    }
    put(fd, p + from, BR_MIN(n - from, most));
}

static void
serve_odd(int fd, const request *r, const char *p, size_t n)
{
    char more[256];

    if (strncmp(r->path, "/none", 5) == 0) {
        head(fd, "404 Not Found", "Content-Length: 4\r\n");
        put(fd, "none", 4);
    } else if (strncmp(r->path, "/moved", 6) == 0) {
        snprintf(more, sizeof more, "Location: /ok%.100s\r\n", r->path + 6);
        head(fd, "302 Found", more);
    } else if (strncmp(r->path, "/html", 5) == 0) {
        head(fd, "200 OK", "Content-Length: 27\r\n");
        put(fd, "<html>please log in</html>\n", 27);
    } else if (strncmp(r->path, "/else", 5) == 0) {
        snprintf(more, sizeof more, "Content-Range: bytes 7-%zu/%zu\r\n", n - 1,
                 n);
        head(fd, "206 Partial Content", more);
        put(fd, p + 7, n - 7);
    } else if (strncmp(r->path, "/long", 5) == 0) {
        head(fd, "200 OK", "");
        put(fd, p, n);
        put(fd, p, 1000);
    } else if (strncmp(r->path, "/short", 6) == 0) {
        head(fd, "200 OK", "");
        put(fd, p, n / 2);
    } else {
        head(fd, "503 Service Unavailable", "Content-Length: 0\r\n");
    }
}

static void
serve(int fd, const request *r, char *p, size_t n)
{
    if (strncmp(r->path, "/ok", 3) == 0 ||
        (strncmp(r->path, "/busy", 5) == 0 && r->times > 2)) {
        serve_file(fd, p, n, r->from, n);
    } else if (strncmp(r->path, "/files/", 7) == 0) {
        char *file = t_read(t_printf("%s%.150s", t_tmpdir(), r->path), &n);

        serve_file(fd, file, n, r->from, n / 3 + 1);
    } else if (strncmp(r->path, "/drop", 5) == 0) {
        serve_file(fd, p, n, r->from, n / 3 + 1);
    } else if (strncmp(r->path, "/whole", 6) == 0) {
        serve_file(fd, p, n, 0, r->times > 1 ? n : n / 2);
    } else if (strncmp(r->path, "/wrong", 6) == 0) {
        p[n / 2] ^= 1;
        serve_file(fd, p, n, r->from, n);
        p[n / 2] ^= 1;
    } else {
        serve_odd(fd, r, p, n);
    }
}

static bool
read_request(int fd, request *r)
{
    char text[4096] = "", *range;
    size_t n = 0;

    while (!strstr(text, "\r\n\r\n") && n < sizeof text - 1) {
        ssize_t k = recv(fd, text + n, sizeof text - 1 - n, 0);

        if (k <= 0)
            return false;
        n += (size_t)k;
        text[n] = 0;
    }
    if (sscanf(text, "GET %199s HTTP", r->path) != 1)
        return false;
    range = strcasestr(text, "range: bytes=");
    r->from = range ? strtoul(range + 13, NULL, 10) : 0;
    return true;
}

static int
times_of(const char *path)
{
    static struct {
        char path[200];
        int n;
    } seen[32];

    for (size_t i = 0; i < BR_COUNT(seen); i++) {
        if (!*seen[i].path)
            snprintf(seen[i].path, sizeof seen[i].path, "%s", path);
        if (strcmp(seen[i].path, path) == 0)
            return ++seen[i].n;
    }
    abort();
}

static void
loop(int listener, char *p, size_t n)
{
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        request r = {.from = 0};
        FILE *log;

        if (fd < 0)
            _exit(1);
        if (read_request(fd, &r)) {
            r.times = times_of(r.path);
            log = fopen(log_path, "a");
            fprintf(log, "%s %zu-\n", r.path, r.from);
            fclose(log);
            serve(fd, &r, p, n);
        }
        shutdown(fd, SHUT_WR);
        close(fd);
    }
}

int
hk_serve(const void *p, size_t n)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    log_path = t_printf("%s/requests", t_tmpdir());
    t_write(log_path, "", 0);
    if (fd < 0 || bind(fd, (void *)&a, sizeof a) != 0 || listen(fd, 8) != 0 ||
        getsockname(fd, (void *)&a, &len) != 0)
        t_skip("no sockets here");
    fflush(NULL);
    if (fork() == 0) {
        char *copy = malloc(n);

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        memcpy(copy, p, n);
        loop(fd, copy, n);
    }
    close(fd);
    return ntohs(a.sin_port);
}

char *
hk_log(void)
{
    return t_read(log_path, NULL);
}
