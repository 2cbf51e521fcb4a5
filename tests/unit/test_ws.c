/* test_ws.c - WebSocket: frames in any pieces, and answers over them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include "api/api.h"
#include "http/ws.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* A client's frame: fin and opcode, masked. */
static void
frame(br_str *out, uint8_t first, const char *p, size_t n)
{
    static const char mask[] = "\x12\x34\x56\x78";
    br_str s = {0};

    br_ws_put(&s, 0, p, n);
    s.at[0] = (char)first;
    s.at[1] = (char)(s.at[1] | 0x80);
    br_str_put(out, s.at, s.n - n);
    br_str_put(out, mask, 4);
    for (size_t i = 0; i < n; i++)
        br_str_putc(out, (char)(p[i] ^ mask[i & 3]));
    br_str_fini(&s);
}

/* What is heard of bytes in pieces: "text(..)", "ping(..)", "1002". */
static char *
hear(const br_str *in, size_t piece)
{
    br_ws w = {.max_message = 1000};
    br_str s = {0};
    bool over = false;
    char *out;

    for (size_t i = 0; i < in->n && !over;) {
        size_t used;

        switch (br_ws_feed(&w, in->at + i, BR_MIN(piece, in->n - i), &used)) {
        case BR_WS_MORE: break;
        case BR_WS_MESSAGE:
            br_str_printf(&s, "%s(", w.kind == BR_WS_TEXT ? "text" : "bin");
            br_str_put(&s, br_str_z(&w.message), w.message.n);
            br_str_puts(&s, ")");
            break;
        case BR_WS_ASKED:
            br_str_printf(&s, "ping(%.*s)", w.n_control, w.control);
            break;
        case BR_WS_OVER:
            br_str_puts(&s, "over");
            over = true;
            break;
        case BR_WS_BAD:
            br_str_printf(&s, "%u", w.code);
            over = true;
            break;
        }
        i += used;
    }
    br_ws_fini(&w);
    out = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return out;
}

TEST(frames_are_read_in_any_pieces)
{
    static const struct {
        uint8_t first[3];
        const char *payload[3];
        const char *heard;
    } rows[] = {
        {{0x81}, {"Hello"}, "text(Hello)"},
        {{0x82}, {"\x01"}, "bin(\x01)"},
        {{0x81}, {""}, "text()"},
        {{0x01, 0x00, 0x80}, {"a", "b", "c"}, "text(abc)"},
        {{0x01, 0x89, 0x80}, {"a", "p", "c"}, "ping(p)text(ac)"},
        {{0x8a, 0x81, 0x88}, {"x", "y", ""}, "text(y)over"},
        {{0x81, 0x81}, {"\xc3\xa9", "\xff"}, "text(\xc3\xa9)1007"},
        {{0x01, 0x80}, {"\xc3", "\xa9"}, "text(\xc3\xa9)"},
        {{0xc1}, {"x"}, "1002"},
        {{0x83}, {"x"}, "1002"},
        {{0x8b}, {"x"}, "1002"},
        {{0x80}, {"x"}, "1002"},
        {{0x01, 0x81}, {"x", "y"}, "1002"},
        {{0x09}, {"x"}, "1002"},
        {{0x88}, {"x"}, "1002"},
        {{0x88}, {"\x03\xed"}, "1002"}, /* 1005 is for nobody to say */
        {{0x88}, {"\x13\x88!"}, "1002"},
        {{0x88}, {"\x03\xe8\xc3"}, "1007"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_str in = {0};

        for (int k = 0; k < 3 && rows[i].payload[k]; k++)
            frame(&in, rows[i].first[k], rows[i].payload[k],
                  strlen(rows[i].payload[k]));
        for (size_t piece = 1; piece < 20; piece++)
            ck_assert_str_eq(hear(&in, piece), rows[i].heard);
        br_str_fini(&in);
    }
}

TEST(lengths_of_frames_have_limits)
{
    char big[2000];
    br_str in = {0};

    memset(big, 'x', sizeof big);
    frame(&in, 0x81, big, 1000);
    ck_assert_uint_eq(strlen(hear(&in, 7)), 1006);
    br_str_clear(&in);
    frame(&in, 0x81, big, 1001);
    ck_assert_str_eq(hear(&in, 7), "1009");
    br_str_clear(&in);
    frame(&in, 0x01, big, 999);
    frame(&in, 0x80, big, 2);
    ck_assert_str_eq(hear(&in, 7), "1009");
    br_str_clear(&in);
    frame(&in, 0x89, big, 126);
    ck_assert_str_eq(hear(&in, 7), "1002");
    br_str_clear(&in); /* a short length in the long form; the longest */
    br_str_put(&in, "\x81\xfe\0\5....", 8);
    ck_assert_str_eq(hear(&in, 3), "1002");
    br_str_clear(&in);
    br_str_put(&in, "\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff....", 14);
    ck_assert_str_eq(hear(&in, 3), "1009");
    br_str_clear(&in);
    br_str_put(&in, "\x81\5Hello", 7); /* not masked */
    ck_assert_str_eq(hear(&in, 3), "1002");
    br_str_fini(&in);
}

TEST(the_handshake_is_that_of_the_rfc)
{
    br_str out = {0};

    br_ws_accept(BR_TEXT("dGhlIHNhbXBsZSBub25jZQ=="), &out);
    ck_assert_str_eq(br_str_z(&out), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    br_str_fini(&out);
}

/* ---- over a server --------------------------------------------------------- */

static int
upgrade(const sk *k, const char *more)
{
    char *ask = t_printf("GET /v1/stream HTTP/1.1\r\nHost: localhost\r\n"
                         "Upgrade: websocket\r\nConnection: keep-alive, Upgrade"
                         "\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
                         "dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n",
                         more);
    int fd = sk_connect(k);
    char c = 0;
    br_str head = {0};

    sk_send(fd, ask, strlen(ask));
    while (!strstr(br_str_z(&head), "\r\n\r\n")) {
        ck_assert_int_eq(read(fd, &c, 1), 1);
        br_str_putc(&head, c);
    }
    ck_assert_msg(strstr(head.at, "HTTP/1.1 101 ") == head.at &&
                      strstr(head.at, "Sec-WebSocket-Accept: "
                                      "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"),
                  "%s", head.at);
    br_str_fini(&head);
    return fd;
}

static void
say(int fd, uint8_t opcode, const char *z)
{
    br_str s = {0};

    frame(&s, 0x80 | opcode, z, strlen(z));
    sk_send(fd, s.at, s.n);
    br_str_fini(&s);
}

typedef struct got {
    uint8_t opcode;
    char *p; /* kept, ends in NUL */
    size_t n;
} got;

static void
read_n(int fd, char *p, size_t n)
{
    while (n) {
        ssize_t r = read(fd, p, n);

        ck_assert_int_gt(r, 0);
        p += r;
        n -= (size_t)r;
    }
}

static got
next(int fd)
{
    uint8_t h[4];
    got g = {0};

    read_n(fd, (char *)h, 2);
    g.opcode = h[0] & 15;
    ck_assert_uint_eq(h[0] & 0xf0, 0x80);
    g.n = h[1];
    if (g.n == 126) {
        read_n(fd, (char *)h + 2, 2);
        g.n = (size_t)h[2] << 8 | h[3];
    }
    ck_assert_uint_lt(g.n, 65536);
    g.p = t_printf("%*s", (int)g.n, "");
    read_n(fd, g.p, g.n);
    return g;
}

static uint32_t
u32(const got *g, size_t at)
{
    const uint8_t *p = (const uint8_t *)g->p + at;

    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
           (uint32_t)p[3] << 24;
}

#define ASK \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":3"

TEST(answers_come_as_events_and_texts)
{
    sk k;
    sk_answer whole;
    int fd;

    sk_open(&k, &(sk_config){0});
    whole = sk_ask(&k, "POST /v1/chat/completions", "", ASK ",\"seed\":1}");
    fd = upgrade(&k, "");
    for (int round = 0; round < 2; round++) { /* the connection stays */
        uint32_t n = 0;
        br_str text = {0};
        bool over = false;
        got g;

        say(fd, BR_WS_TEXT,
            ASK ",\"seed\":1,\"logprobs\":true,\"top_logprobs\":2}");
        do {
            g = next(fd);
            if (g.opcode == BR_WS_TEXT && strstr(g.p, "\"type\":\"text\""))
                br_str_puts(&text, sk_between(g.p, "\"text\":\"", "\"}"));
            if (g.opcode != BR_WS_BINARY)
                continue;
            ck_assert_uint_eq(u32(&g, 4), BR_TENANT_LOCAL);
            over = g.p[16];
            ck_assert_uint_eq(g.p[18], over ? 0 : 3); /* chosen and 2 */
            ck_assert_uint_eq(g.n, over ? 20 : 32);
            ck_assert(over || u32(&g, 12) == n++);
        } while (g.opcode != BR_WS_TEXT || !strstr(g.p, "\"type\":\"done\""));
        ck_assert(over);
        ck_assert_uint_eq(n, 3);
        ck_assert_str_eq(br_str_z(&text),
                         sk_between(whole.body, "\"content\":\"", "\""));
        br_str_fini(&text);
    }
    say(fd, BR_WS_PING, "p");
    ck_assert_uint_eq(next(fd).opcode, BR_WS_PONG);
    say(fd, BR_WS_TEXT, "{\"messages\":1}");
    ck_assert_ptr_nonnull(strstr(next(fd).p, "invalid_request_error"));
    say(fd, BR_WS_CLOSE, "");
    ck_assert_uint_eq(next(fd).opcode, BR_WS_CLOSE);
    ck_assert_int_eq(read(fd, (char[1]){0}, 1), 0);
    close(fd);
    sk_close(&k);
}

TEST(a_client_that_asks_twice_is_let_go)
{
    br_engine_stats s;
    sk k;
    int fd;
    got g;

    sk_open(&k, &(sk_config){.fake = {.step_ns = 5000000}});
    fd = upgrade(&k, "");
    say(fd, BR_WS_TEXT,
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]"
        ",\"max_tokens\":900}");
    say(fd, BR_WS_TEXT, ASK "}");
    do
        g = next(fd);
    while (g.opcode != BR_WS_CLOSE);
    ck_assert_uint_eq((uint8_t)g.p[0] << 8 | (uint8_t)g.p[1], 1008);
    for (int i = 0; i < 6000; i++) { /* and its slot is free */
        br_engine_stats_get(k.ek.e, &s);
        if (!s.n_running && s.n_done + s.n_cancelled)
            break;
        usleep(10000);
    }
    ck_assert_uint_eq(s.n_running, 0);
    close(fd);
    sk_close(&k);
}

TEST(who_pings_and_does_not_listen_is_let_go)
{
    br_http_config c = br_http_config_default();
    br_str pings = {0};
    size_t sent = 0;
    sk k;
    int fd;

    c.port = 0;
    c.limits.pending_bytes = 4096;
    sk_open(&k, &(sk_config){.http = c});
    fd = upgrade(&k, "");
    for (int i = 0; i < 1000; i++)
        frame(&pings, 0x80 | BR_WS_PING, "a ping that wants an answer", 27);
    while (send(fd, pings.at, pings.n, MSG_NOSIGNAL) > 0 && sent < 1u << 28)
        sent += pings.n; /* what is not read fills the sockets first */
    ck_assert_uint_lt(sent, 1u << 28);
    br_str_fini(&pings);
    close(fd);
    sk_close(&k);
}

TEST(who_says_nothing_for_long_is_let_go)
{
    br_http_config c = br_http_config_default();
    sk k;
    int fd;
    got g;

    c.port = 0;
    c.limits.idle_ns = 200000000;
    sk_open(&k, &(sk_config){.http = c});
    fd = upgrade(&k, "");
    g = next(fd);
    ck_assert_uint_eq(g.opcode, BR_WS_CLOSE);
    ck_assert_uint_eq((uint8_t)g.p[0] << 8 | (uint8_t)g.p[1], 1001);
    ck_assert_int_eq(read(fd, (char[1]){0}, 1), 0);
    close(fd);
    sk_close(&k);
}

TEST(requests_that_are_no_upgrade)
{
    sk k;
    sk_answer a;

    sk_open(&k, &(sk_config){0});
    ck_assert_int_eq(sk_ask(&k, "GET /v1/stream", "", NULL).status, 400);
    a = sk_ask(&k, "GET /v1/stream",
               "Upgrade: websocket\r\nSec-WebSocket-Version: 12\r\n"
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
               NULL);
    ck_assert_int_eq(a.status, 400);
    a = sk_ask(&k, "GET /v1/stream",
               "Upgrade: websocket\r\nOrigin: http://evil.example\r\n", NULL);
    ck_assert_int_eq(a.status, 403);
    sk_close(&k);
}

/* ---- the library's events -------------------------------------------------- */

/* Which has to be the next frame, byte for byte (of a little endian machine). */
static int
is_frame(void *ctx, const br_output_event *ev)
{
    br_str *want = ctx, s = {0};

    br_str_put(&s, (const char *)ev, 20);
    br_str_put(&s, (const char *)ev->logprobs, ev->n_logprobs * sizeof(float));
    ck_assert_uint_le(s.n, want->n);
    ck_assert_mem_eq(want->at, s.at, s.n);
    want->n -= s.n;
    memmove(want->at, want->at + s.n, want->n);
    br_str_fini(&s);
    return 1;
}

/* The frames of an answer over the WebSocket, without their heads. */
static br_str
frames_of(const sk *k)
{
    int fd = upgrade(k, "");
    br_str all = {0};
    got g;

    say(fd, BR_WS_TEXT,
        ASK ",\"temperature\":0,\"logprobs\":true,\"top_logprobs\":4}");
    do {
        g = next(fd);
        if (g.opcode == BR_WS_BINARY)
            br_str_put(&all, g.p, g.n);
    } while (g.opcode != BR_WS_TEXT || !strstr(g.p, "\"type\":\"done\""));
    close(fd);
    return all;
}

TEST_WITHIN(events_of_the_library_are_those_frames, 60)
{
    sk_config wait = {.loading = true};
    br_http_model model = {.name = "demo", .n_ctx = 128, .tier = "cpu"};
    br_llm *m = br_llm_open(t_repo("models/demo.gguf"), 128, 2, NULL);
    br_sampling how;
    br_engine *engine;
    br_status st = {0};
    br_str frames;
    br_batch *b;
    br_request r = {.how = &how, .n_logprobs = 5, .fn = is_frame};
    br_chat *chat;
    br_tok_ids ids = {0};
    sk k;

    t_ok(br_chat_new(&chat, m->model->gguf, m->tok, &st), &st);
    t_ok(br_chat_add(chat, "user", BR_TEXT("Hi"), &st), &st);
    t_ok(br_chat_prompt(chat, m->work, &ids, &st), &st);
    t_ok(br_engine_new(
             &engine,
             &(br_engine_config){.lm = br_lm_model_lm(m->lm), .tok = m->tok},
             &st),
         &st);
    sk_open(&k, &wait);
    model.engine = engine;
    model.tok = m->tok;
    model.chat = k.chat;
    t_ok(br_http_ready(k.http, &model, &st), &st);
    while (sk_ask(&k, "GET /health", "", NULL).status != 200)
        usleep(1000);
    frames = frames_of(&k);
    sk_close(&k);
    br_engine_free(engine);
    br_sampling_init(&how);
    how.temperature = 0;
    how.max_tokens = 3;
    r.ctx = &frames;
    r.ids = ids.at;
    r.n_ids = ids.n;
    ck_assert_uint_eq(frames.n, 3 * (20 + 5 * 4) + 20);
    b = br_batch_new(m, NULL);
    ck_assert_uint_ne(br_batch_submit(b, &r, NULL), 0);
    while (br_batch_wait(b, -1))
        ;
    ck_assert_uint_eq(frames.n, 0);
    br_str_fini(&frames);
    br_vec_fini(&ids);
    br_chat_free(chat);
    br_batch_free(b);
    br_llm_close(m);
}
