/* test_http2.c - HTTP/2 and TLS: the same answers over other wires.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "http/http2.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DATA, HEADERS, RST = 3, SETTINGS, PING = 6, GOAWAY };
enum { END_STREAM = 1, END_HEADERS = 4, ACK = 1 };

static void
frame(br_str *out, uint8_t type, uint8_t flags, uint32_t id, const char *p,
      size_t n)
{
    const uint8_t head[9] = {(uint8_t)(n >> 16),
                             (uint8_t)(n >> 8),
                             (uint8_t)n,
                             type,
                             flags,
                             (uint8_t)(id >> 24),
                             (uint8_t)(id >> 16),
                             (uint8_t)(id >> 8),
                             (uint8_t)id};

    br_str_put(out, (const char *)head, sizeof head);
    br_str_put(out, p, n);
}

static void
literal(br_str *out, const char *name, const char *value)
{
    br_str_putc(out, 0);
    br_str_putc(out, (char)strlen(name));
    br_str_puts(out, name);
    ck_assert_uint_lt(strlen(value), 127);
    br_str_putc(out, (char)strlen(value));
    br_str_puts(out, value);
}

/* "POST /path" and a body, or NULL. more: a header's name and value, or NULL */
static void
ask(br_str *out, uint32_t id, const char *what, const char *body,
    const char *const *more)
{
    br_str h = {0};
    const char *path = strchr(what, ' ') + 1;

    literal(&h, ":method", t_printf("%.*s", (int)(path - what - 1), what));
    literal(&h, ":scheme", "http");
    literal(&h, ":authority", "localhost");
    literal(&h, ":path", path);
    if (more)
        literal(&h, more[0], more[1]);
    frame(out, HEADERS, END_HEADERS | (body ? 0 : END_STREAM), id, h.at, h.n);
    if (body)
        frame(out, DATA, END_STREAM, id, body, strlen(body));
    br_str_fini(&h);
}

static int
connect_h2(const sk *k)
{
    br_str s = {0};
    int fd = sk_connect(k);

    if (!br_h2_here)
        t_skip("built without nghttp2");
    br_str_puts(&s, BR_H2_PREFACE);
    frame(&s, SETTINGS, 0, 0, "", 0);
    for (size_t i = 0; i < s.n; i++) /* each in a packet of its own, or not */
        sk_send(fd, s.at + i, 1);
    br_str_fini(&s);
    return fd;
}

typedef struct got {
    uint8_t type, flags;
    uint32_t id;
    char *p; /* kept; ends in NUL */
    size_t n;
} got;

static bool
read_n(int fd, uint8_t *p, size_t n)
{
    while (n) {
        struct pollfd w = {fd, POLLIN, 0};
        ssize_t r;

        ck_assert_int_eq(poll(&w, 1, 10000), 1);
        r = read(fd, p, n);
        if (r <= 0)
            return false;
        p += r;
        n -= (size_t)r;
    }
    return true;
}

/* The next frame of this type; false: the connection was closed before. */
static bool
next(int fd, uint8_t type, got *g)
{
    do {
        uint8_t h[9];

        if (!read_n(fd, h, 9))
            return false;
        *g = (got){.type = h[3],
                   .flags = h[4],
                   .id = (uint32_t)h[7] << 8 | h[8],
                   .n = (size_t)h[0] << 16 | (size_t)h[1] << 8 | h[2]};
        g->p = t_printf("%*s", (int)g->n, "");
        if (!read_n(fd, (uint8_t *)g->p, g->n))
            return false;
    } while (g->type != type);
    return true;
}

/* All of a stream's body; *status: its first byte of HPACK. Frames of other
 * streams go by. */
static char *
body_of(int fd, uint32_t id, uint8_t *status)
{
    br_str s = {0};
    got g;
    char *out;

    do
        ck_assert(next(fd, HEADERS, &g));
    while (g.id != id);
    *status = (uint8_t)g.p[0];
    while (!(g.flags & END_STREAM) || g.id != id) {
        ck_assert(next(fd, DATA, &g));
        if (g.id == id)
            br_str_put(&s, g.p, g.n);
    }
    out = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return out;
}

enum { OK = 0x88, NOT_FOUND = 0x8d }; /* :status by index */

#define ASK                                                                    \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":3," \
    "\"seed\":1"

TEST(answers_over_http_2_are_those_over_http_1)
{
    sk k;
    br_str s = {0};
    uint8_t status;
    char *one, *two;
    int fd;
    got g;

    sk_open(&k, &(sk_config){0});
    fd = connect_h2(&k);
    one = sk_ask(&k, "GET /v1/models", "", NULL).body;
    ask(&s, 1, "GET /v1/models", NULL, NULL);
    sk_send(fd, s.at, s.n);
    two = body_of(fd, 1, &status);
    ck_assert_uint_eq(status, OK);
    ck_assert_str_eq(one, two);
    br_str_clear(&s);
    ask(&s, 3, "POST /v1/chat/completions", ASK ",\"stream\":true}", NULL);
    ask(&s, 5, "GET /nowhere", NULL, NULL);
    sk_send(fd, s.at, s.n);
    two = body_of(fd, 5, &status); /* while the other goes on, or before */
    ck_assert_uint_eq(status, NOT_FOUND);
    br_str_clear(&s);
    ask(&s, 7, "POST /v1/chat/completions", ASK ",\"stream\":true}", NULL);
    sk_send(fd, s.at, s.n);
    two = body_of(fd, 7, &status);
    ck_assert_uint_eq(status, OK);
    ck_assert_ptr_nonnull(strstr(two, "data: [DONE]\n\n"));
    br_str_clear(&s); /* a target that is none */
    ask(&s, 9, "GET models", NULL, NULL);
    sk_send(fd, s.at, s.n);
    ck_assert(next(fd, RST, &g) && g.id == 9);
    br_str_fini(&s);
    close(fd);
    sk_close(&k);
}

/* A browser sends each cookie of a host by itself, those of other servers, too. */
TEST(cookies_over_http_2_are_no_headers_too_many)
{
    sk k;
    br_str h = {0}, s = {0};
    uint8_t status;
    int fd;

    sk_open(&k, &(sk_config){0});
    fd = connect_h2(&k);
    literal(&h, ":method", "GET");
    literal(&h, ":scheme", "http");
    literal(&h, ":authority", "localhost");
    literal(&h, ":path", "/health");
    for (int i = 0; i < 100; i++)
        literal(&h, "cookie", t_printf("c%d=%d", i, i));
    frame(&s, HEADERS, END_HEADERS | END_STREAM, 1, h.at, h.n);
    sk_send(fd, s.at, s.n);
    ck_assert_str_eq(body_of(fd, 1, &status), "{\"status\":\"ok\"}");
    ck_assert_uint_eq(status, OK);
    br_str_fini(&h);
    br_str_fini(&s);
    close(fd);
    sk_close(&k);
}

/* Its body comes when it was told to go on. */
TEST(who_expects_to_be_told_to_go_on_is_over_http_2)
{
    static const char *const expect[] = {"expect", "100-continue"};
    static const char body[] = "{\"prompt\":\"a\"}";
    br_str s = {0};
    uint8_t status;
    sk k;
    int fd;
    got g;

    sk_open(&k, &(sk_config){0});
    fd = connect_h2(&k);
    ask(&s, 1, "POST /tokenize", "", expect);
    s.n -= 9; /* not the empty frame */
    sk_send(fd, s.at, s.n);
    ck_assert(next(fd, HEADERS, &g));
    ck_assert(g.id == 1 && !(g.flags & END_STREAM));
    ck_assert_uint_ne((uint8_t)g.p[0], OK);
    br_str_clear(&s);
    frame(&s, DATA, 0, 1, body, 3);
    frame(&s, DATA, END_STREAM, 1, body + 3, sizeof body - 4);
    sk_send(fd, s.at, s.n);
    ck_assert_ptr_nonnull(strstr(body_of(fd, 1, &status), "\"tokens\""));
    ck_assert_uint_eq(status, OK);
    br_str_fini(&s);
    close(fd);
    sk_close(&k);
}

TEST(pages_of_other_sites_may_not_ask_over_http_2)
{
    static const char *const evil[] = {"origin", "http://evil.example"};
    sk k;
    br_str s = {0};
    uint8_t status;
    int fd;

    sk_open(&k, &(sk_config){0});
    fd = connect_h2(&k);
    ask(&s, 1, "GET /v1/models", NULL, evil);
    sk_send(fd, s.at, s.n);
    ck_assert_ptr_nonnull(strstr(body_of(fd, 1, &status), "other sites"));
    br_str_fini(&s);
    close(fd);
    sk_close(&k);
}

static void
await_idle(sk *k)
{
    br_engine_stats s;

    for (int i = 0; i < 6000; i++) {
        br_engine_stats_get(k->ek.e, &s);
        if (!s.n_running && !s.n_queued && s.n_cancelled)
            return;
        usleep(10000);
    }
    ck_abort_msg("%u still run, %u wait, %u cancelled", s.n_running, s.n_queued,
                 (unsigned)s.n_cancelled);
}

TEST(a_stream_that_is_reset_frees_its_slot)
{
    sk k;
    br_str s = {0};
    uint8_t status;
    int fd;
    got g;

    sk_open(&k, &(sk_config){.fake = {.step_ns = 5000000}});
    fd = connect_h2(&k);
    ask(&s, 1, "POST /v1/chat/completions",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":"
        "900,\"stream\":true}",
        NULL);
    sk_send(fd, s.at, s.n);
    ck_assert(next(fd, DATA, &g));
    br_str_clear(&s);
    frame(&s, RST, 0, 1, "\0\0\0\10", 4);
    sk_send(fd, s.at, s.n);
    await_idle(&k);
    br_str_clear(&s); /* the connection is well */
    ask(&s, 3, "GET /health", NULL, NULL);
    sk_send(fd, s.at, s.n);
    ck_assert_ptr_nonnull(strstr(body_of(fd, 3, &status), "ok"));
    br_str_clear(&s); /* and gone, it takes its streams along */
    ask(&s, 5, "POST /v1/chat/completions",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":"
        "900,\"stream\":true}",
        NULL);
    sk_send(fd, s.at, s.n);
    ck_assert(next(fd, DATA, &g));
    close(fd);
    await_idle(&k);
    br_str_fini(&s);
    sk_close(&k);
}

TEST(who_only_resets_is_let_go)
{
    sk k;
    int fd;
    got g;
    uint32_t id = 1;

    sk_open(&k, &(sk_config){0});
    fd = connect_h2(&k);
    for (; id < 6000; id += 2) {
        br_str s = {0};

        ask(&s, id, "POST /v1/chat/completions", NULL, NULL);
        s.at[4] = END_HEADERS; /* its body never comes */
        frame(&s, RST, 0, id, "\0\0\0\10", 4);
        if (send(fd, s.at, s.n, MSG_NOSIGNAL) < 0)
            id = 6000;
        br_str_fini(&s);
    }
    ck_assert(!next(fd, PING, &g)); /* it is closed */
    close(fd);
    ck_assert_int_eq(sk_ask(&k, "GET /health", "", NULL).status, 200);
    sk_close(&k);
}

TEST(bodies_of_a_connection_have_a_limit_together)
{
    br_http_config c = br_http_config_default();
    char *big = t_printf("%*s", 3000, "");
    sk k;
    br_str s = {0};
    got g;
    int fd;

    c.port = 0;
    c.limits.body_bytes = 4096;
    sk_open(&k, &(sk_config){.http = c});
    fd = connect_h2(&k);
    for (uint32_t id = 1; id < 4; id += 2) {
        ask(&s, id, "POST /tokenize", "", NULL);
        s.n -= 9; /* not the empty frame */
        frame(&s, DATA, 0, id, big, 3000);
    }
    sk_send(fd, s.at, s.n);
    ck_assert(next(fd, DATA, &g));
    ck_assert_uint_eq(g.id, 3);
    ck_assert_ptr_nonnull(strstr(g.p, "too large"));
    br_str_fini(&s);
    close(fd);
    sk_close(&k);
}

/* Of all connections, that is; what was refused is not held any more. */
TEST(bodies_of_streams_count_among_all)
{
    br_http_config c = br_http_config_default();
    char *big = t_printf("%*s", 15000, "");
    br_str s = {0};
    sk k;
    got g;
    int fd;

    c.port = 0;
    c.limits.all_bytes = 1000; /* but 64 KiB of a connection are read */
    sk_open(&k, &(sk_config){.http = c});
    fd = connect_h2(&k);
    for (uint32_t id = 1; id < 4; id += 2) {
        ask(&s, id, "POST /tokenize", "", NULL);
        s.n -= 9; /* not the empty frame */
        for (int i = 0; i < 2; i++)
            frame(&s, DATA, 0, id, big, 15000);
    }
    ask(&s, 5, "POST /tokenize", "", NULL);
    s.n -= 9;
    frame(&s, DATA, 0, 5, big, 4000);
    sk_send(fd, s.at, s.n);
    br_str_clear(&s);
    frame(&s, DATA, 0, 5, big, 2000);
    sk_send(fd, s.at, s.n);
    ck_assert(next(fd, DATA, &g));
    ck_assert_uint_eq(g.id, 5);
    ck_assert_ptr_nonnull(strstr(g.p, "too large together"));
    br_str_clear(&s);
    frame(&s, DATA, END_STREAM, 3, "", 0);
    sk_send(fd, s.at, s.n);
    ck_assert(next(fd, DATA, &g));
    ck_assert_uint_eq(g.id, 3);
    br_str_fini(&s);
    close(fd);
    sk_close(&k);
}

TEST(nonsense_behind_the_preface_harms_nobody)
{
    uint64_t seed = 5;
    sk k;

    sk_open(&k, &(sk_config){0});
    for (int i = 0; i < 30; i++) {
        int fd = connect_h2(&k);
        char p[400];

        for (size_t j = 0; j < sizeof p; j++)
            p[j] = (char)(t_rand(&seed) % (i % 2 ? 256 : 10));
        (void)!send(fd, p, sizeof p, MSG_NOSIGNAL);
        close(fd);
    }
    ck_assert_int_eq(sk_ask(&k, "GET /health", "", NULL).status, 200);
    sk_close(&k);
}

/* ---- TLS ------------------------------------------------------------------- */

static bool
make_certificate(char **cert, char **key)
{
    *cert = t_printf("%s/c.pem", t_tmpdir());
    *key = t_printf("%s/k.pem", t_tmpdir());
    return system(t_printf("openssl req -x509 -newkey ec -pkeyopt "
                           "ec_paramgen_curve:prime256v1 -nodes -keyout %s "
                           "-out %s -days 2 -subj /CN=localhost 2>/dev/null",
                           *key, *cert)) == 0;
}

TEST(a_key_of_another_certificate_is_told_to_be_that)
{
    br_http_config c = br_http_config_default();
    char *cert, *key, *other = t_printf("%s/other.pem", t_tmpdir());
    br_status st = {0};
    br_http *h;

    if (!make_certificate(&cert, &key) || rename(key, other) != 0 ||
        !make_certificate(&cert, &key))
        t_skip("openssl is not installed");
    c.port = 0;
    c.tls_cert = cert;
    c.tls_key = other;
    if (br_http_new(&h, &c, &st) == BR_E_UNSUPPORTED)
        t_skip("built without OpenSSL");
    ck_assert_msg(strstr(st.msg, "other.pem: not the key of the certificate"),
                  "%s", st.msg);
}

static char *
output_of(const char *command)
{
    char *out = t_printf("%8000s", "");
    FILE *f = popen(command, "r"); /* NOLINT: a test's own words */
    size_t n;

    ck_assert_ptr_nonnull(f);
    n = fread(out, 1, 8000, f);
    out[n] = 0;
    ck_assert_int_eq(pclose(f), 0);
    return out;
}

TEST(answers_over_tls_are_those_without)
{
    br_http_config c = br_http_config_default();
    char *cert, *key, *url;
    br_status st = {0};
    sk k;

    if (!make_certificate(&cert, &key) || system("curl -V >/dev/null") != 0)
        t_skip("openssl or curl is not installed");
    c.port = 0;
    c.tls_cert = cert;
    c.tls_key = key;
    {
        br_http *h;
        br_code code = br_http_new(&h, &c, &st);

        if (code == BR_E_UNSUPPORTED)
            t_skip("built without OpenSSL");
        t_ok(code, &st);
        br_http_free(h);
    }
    sk_open(&k, &(sk_config){.http = c});
    url = t_printf("https://localhost:%u", br_http_port(k.http));
    while (system(t_printf("curl -sf --cacert %s %s/health >/dev/null", cert,
                           url)) != 0)
        usleep(10000);
    for (int v = 1; v < 3; v++) {
        char *curl = t_printf("curl -sN -m 10 --cacert %s --http%s", cert,
                              v == 1 ? "1.1" : "2");

        ck_assert_ptr_nonnull(strstr(
            output_of(t_printf("%s %s/v1/models", curl, url)), "\"fake\""));
        ck_assert_ptr_nonnull(
            strstr(output_of(t_printf("%s %s/v1/chat/completions -d '%s,"
                                      "\"stream\":true}' -w v%%{http_version}",
                                      curl, url, ASK)),
                   v == 1 || !br_h2_here ? "[DONE]\n\nv1.1" : "[DONE]\n\nv2"));
    }
    {
        sk_answer a = sk_ask(&k, "GET /health", "", NULL);

        ck_assert_int_eq(a.status, 400);
        ck_assert_ptr_nonnull(strstr(a.body, "this port speaks TLS"));
    }
    sk_close(&k);
}

TEST(certificates_that_are_none)
{
    br_http_config c = br_http_config_default();
    char *cert, *key, *cert2, *key2;
    br_status st = {0};
    br_http *h;

    c.port = 0;
    c.tls_cert = t_repo("README.md");
    ck_assert_int_eq(br_http_new(&h, &c, &st), BR_E_USAGE);
    c.tls_key = c.tls_cert;
    st = (br_status){0};
    if (br_http_new(&h, &c, &st) == BR_E_UNSUPPORTED)
        t_skip("built without OpenSSL");
    ck_assert_int_eq(st.code, BR_E_FORMAT);
    ck_assert_msg(strstr(st.msg, "no certificate"), "%s", st.msg);
    if (!make_certificate(&cert, &key))
        t_skip("openssl is not installed");
    cert2 = t_printf("%s2", cert);
    key2 = t_printf("%s2", key);
    ck_assert_int_eq(rename(cert, cert2), 0);
    ck_assert_int_eq(rename(key, key2), 0);
    ck_assert(make_certificate(&cert, &key));
    c.tls_cert = cert2;
    c.tls_key = key;
    st = (br_status){0};
    ck_assert_int_eq(br_http_new(&h, &c, &st), BR_E_FORMAT);
    ck_assert_msg(strstr(st.msg, "key"), "%s", st.msg);
}

/* ---- WebSocket (RFC 8441) -------------------------------------------------- */

static void
tunnel(br_str *out, uint32_t id, const char *protocol, const char *path)
{
    br_str h = {0};

    literal(&h, ":method", "CONNECT");
    literal(&h, ":protocol", protocol);
    literal(&h, ":scheme", "http");
    literal(&h, ":authority", "localhost");
    literal(&h, ":path", path);
    literal(&h, "sec-websocket-version", "13");
    frame(out, HEADERS, END_HEADERS, id, h.at, h.n);
    br_str_fini(&h);
}

/* A message of a client, or less of it than its head says; masked by zeros. */
static void
say(br_str *out, uint32_t id, uint8_t first, const char *p, size_t n)
{
    const char head[] = {
        (char)first, (char)(0x80 | 126), (char)(n >> 8), (char)n, 0, 0, 0, 0};
    br_str s = {0};

    br_str_put(&s, head, n < 126 ? 2 : 4);
    if (n < 126)
        s.at[1] = (char)(0x80 | n);
    br_str_put(&s, head + 4, 4);
    br_str_put(&s, p, n);
    frame(out, DATA, 0, id, s.at, s.n);
    br_str_fini(&s);
}

/* What comes on the stream up to these bytes; *events: binary messages in it.
 * Kept. */
static char *
hear(int fd, uint32_t id, const char *until, uint32_t *events)
{
    br_str s = {0}, texts = {0};
    char *out;
    got g;

    do {
        ck_assert_msg(next(fd, DATA, &g), "it was closed before %s came",
                      until);
        if (g.id == id)
            br_str_put(&s, g.p, g.n);
    } while (!memmem(br_str_z(&s), s.n, until, strlen(until)));
    *events = 0;
    for (size_t at = 0; at + 2 <= s.n;) {
        uint8_t first = (uint8_t)s.at[at], size = (uint8_t)s.at[at + 1];
        size_t n = size, head = 2;

        if (size == 126) {
            n = (size_t)(uint8_t)s.at[at + 2] << 8 | (uint8_t)s.at[at + 3];
            head = 4;
        }
        *events += first == 0x82;
        if (first != 0x82)
            br_str_put(&texts, s.at + at + head, BR_MIN(n, s.n - at - head));
        at += head + n;
    }
    out = t_printf("%.*s", (int)texts.n, br_str_z(&texts));
    br_str_fini(&s);
    br_str_fini(&texts);
    return out;
}

TEST(a_websocket_is_a_stream_of_http_2)
{
    static const char ask_1[] = ASK "}";
    br_str s = {0};
    uint32_t events;
    uint8_t status;
    char *text;
    sk k;
    int fd;
    got g;

    sk_open(&k, &(sk_config){0});
    fd = connect_h2(&k);
    ck_assert(next(fd, SETTINGS, &g));
    ck_assert(memmem(g.p, g.n, "\0\10\0\0\0\1", 6)); /* it may be asked for */
    tunnel(&s, 1, "websocket", "/v1/stream");
    sk_send(fd, s.at, s.n);
    ck_assert(next(fd, HEADERS, &g) && g.id == 1);
    ck_assert_uint_eq((uint8_t)g.p[0], OK);
    ck_assert_uint_eq(g.flags & END_STREAM, 0);
    for (int round = 0; round < 2; round++) {
        br_str_clear(&s);
        say(&s, 1, 0x81, ask_1, sizeof ask_1 - 1);
        sk_send(fd, s.at, s.n);
        text = hear(fd, 1, "\"type\":\"done\"}", &events);
        ck_assert_uint_eq(events, 4); /* three tokens and the end */
        ck_assert_ptr_nonnull(strstr(text, "\"type\":\"end\""));
        br_str_clear(&s); /* beside it all is as before */
        ask(&s, 3 + 2 * (uint32_t)round, "GET /health", NULL, NULL);
        sk_send(fd, s.at, s.n);
        body_of(fd, 3 + 2 * (uint32_t)round, &status);
        ck_assert_uint_eq(status, OK);
    }
    br_str_clear(&s);
    say(&s, 1, 0x88, "", 0);
    sk_send(fd, s.at, s.n);
    do
        ck_assert(next(fd, DATA, &g));
    while (!(g.flags & END_STREAM));
    ck_assert_uint_eq(g.id, 1);
    br_str_clear(&s); /* other things to be tunnelled, and other places */
    tunnel(&s, 7, "connect-udp", "/v1/stream");
    sk_send(fd, s.at, s.n);
    ck_assert_ptr_nonnull(strstr(body_of(fd, 7, &status), "WebSockets alone"));
    br_str_clear(&s);
    tunnel(&s, 9, "websocket", "/nowhere");
    sk_send(fd, s.at, s.n);
    body_of(fd, 9, &status);
    ck_assert_uint_eq(status, NOT_FOUND);
    br_str_fini(&s);
    close(fd);
    sk_close(&k);
}

TEST(a_websocket_over_http_2_ends_with_its_stream)
{
    static const char ask_900[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],"
        "\"max_tokens\":900}";
    sk k;
    br_str s = {0};
    int fd;
    got g;

    for (int how = 0; how < 3; how++) {
        sk_open(&k, &(sk_config){.fake = {.step_ns = 5000000}});
        fd = connect_h2(&k);
        br_str_clear(&s);
        tunnel(&s, 1, "websocket", "/v1/stream");
        sk_send(fd, s.at, s.n);
        ck_assert(next(fd, HEADERS, &g));
        br_str_clear(&s);
        say(&s, 1, 0x81, ask_900, sizeof ask_900 - 1);
        sk_send(fd, s.at, s.n);
        ck_assert(next(fd, DATA, &g));
        br_str_clear(&s);
        if (how == 0)
            frame(&s, DATA, END_STREAM, 1, "", 0);
        else if (how == 1)
            frame(&s, RST, 0, 1, "\0\0\0\10", 4);
        else
            say(&s, 1, 0x81, ask_900, sizeof ask_900 - 1); /* out of turn */
        sk_send(fd, s.at, s.n);
        await_idle(&k);
        close(fd);
        sk_close(&k);
    }
    br_str_fini(&s);
}

TEST(messages_of_a_connection_have_a_limit_together)
{
    br_http_config c = br_http_config_default();
    char *big = t_printf("%*s", 3000, "");
    br_str s = {0};
    sk k;
    got g;
    int fd;

    c.port = 0;
    c.limits.body_bytes = 4096;
    sk_open(&k, &(sk_config){.http = c});
    fd = connect_h2(&k);
    for (uint32_t id = 1; id < 4; id += 2) {
        tunnel(&s, id, "websocket", "/v1/stream");
        say(&s, id, 0x01, big, 3000); /* there is more to come */
    }
    sk_send(fd, s.at, s.n);
    ck_assert(next(fd, DATA, &g));
    ck_assert_uint_eq(g.id, 3);
    ck_assert_uint_eq((uint8_t)g.p[0], 0x88);
    ck_assert_uint_eq((uint8_t)g.p[2] << 8 | (uint8_t)g.p[3], 1009);
    br_str_fini(&s);
    close(fd);
    sk_close(&k);
}
