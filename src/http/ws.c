/* ws.c - see ws.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/ws.h"

#include "model/unicode.h"

#include <string.h>

/* ---- frames in ---------------------------------------------------------- */

static br_ws_got
bad(br_ws *w, uint16_t code, const char *why)
{
    w->code = code;
    w->why = why;
    return BR_WS_BAD;
}

static bool
is_control(const br_ws *w)
{
    return w->opcode >= BR_WS_CLOSE;
}

/* The first two bytes are there. */
static br_ws_got
read_kind(br_ws *w)
{
    uint8_t size = w->head[1] & 127;

    w->fin = w->head[0] >> 7;
    w->opcode = w->head[0] & 15;
    if (w->head[0] & 0x70)
        return bad(w, 1002, "a reserved bit is set");
    if (!(w->head[1] & 128))
        return bad(w, 1002, "a frame of a client has to be masked");
    if (w->opcode > BR_WS_PONG || (w->opcode > BR_WS_BINARY && !is_control(w)))
        return bad(w, 1002, "no such opcode");
    if (is_control(w) && (!w->fin || size > 125))
        return bad(w, 1002, "a control frame is whole and short");
    if (!is_control(w) && (w->opcode == 0) != (w->kind != 0))
        return bad(w, 1002,
                   w->opcode ? "the message before is not complete"
                             : "no message to go on with");
    w->need = (uint8_t)(6 + (size == 126 ? 2 : size == 127 ? 8 : 0));
    return BR_WS_MORE;
}

/* All of the head is. */
static br_ws_got
read_size(br_ws *w)
{
    size_t n = w->need - 6u;

    w->left = n ? 0 : w->head[1] & 127u;
    for (size_t i = 0; i < n; i++)
        w->left = w->left << 8 | w->head[2 + i];
    if (n && w->left <= (n == 2 ? 125u : 65535u))
        return bad(w, 1002, "a length is not in its shortest form");
    if (!is_control(w) && w->left > w->max_message - w->message.n)
        return bad(w, 1009, "the message is too large");
    if (!is_control(w) && w->opcode)
        w->kind = w->opcode;
    w->at_mask = 0;
    w->n_control = 0;
    return BR_WS_MORE;
}

static bool
is_utf8(const char *text, size_t size)
{
    const uint8_t *p = (const uint8_t *)text, *end = p + size;

    while (p < end) {
        uint32_t c;
        size_t n = br_utf8_next(p, end, &c);

        if (c == BR_REPLACEMENT &&
            !(n == 3 && memcmp(p, "\xef\xbf\xbd", 3) == 0))
            return false;
        p += n;
    }
    return true;
}

/* What a client may say for the end: RFC 6455, 7.4, and what IANA has added. */
static bool
is_code(uint32_t code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

/* A client's last word: nothing, or a code and why. */
static br_ws_got
end_close(br_ws *w)
{
    uint32_t code =
        (uint32_t)(uint8_t)w->control[0] << 8 | (uint8_t)w->control[1];

    if (!w->n_control)
        return BR_WS_OVER;
    if (w->n_control == 1)
        return bad(w, 1002, "half a code");
    if (!is_code(code))
        return bad(w, 1002, "no such code");
    return is_utf8(w->control + 2, w->n_control - 2)
               ? BR_WS_OVER
               : bad(w, 1007, "a reason is not UTF-8");
}

/* The frame is complete. */
static br_ws_got
end_frame(br_ws *w)
{
    w->n_head = 0;
    switch (w->opcode) {
    case BR_WS_PING: return BR_WS_ASKED;
    case BR_WS_PONG: return BR_WS_MORE;
    case BR_WS_CLOSE: return end_close(w);
    default: break;
    }
    if (!w->fin)
        return BR_WS_MORE;
    if (w->message.oom)
        return bad(w, 1011, "out of memory");
    if (w->kind == BR_WS_TEXT && w->message.n &&
        !is_utf8(w->message.at, w->message.n))
        return bad(w, 1007, "a text is not UTF-8");
    w->taken = true;
    return BR_WS_MESSAGE;
}

static void
take(br_ws *w, const char *p, size_t n)
{
    const uint8_t *mask = w->head + w->need - 4;
    size_t at = w->message.n;
    char *to = w->control + w->n_control;

    if (is_control(w)) {
        memcpy(to, p, n);
        w->n_control = (uint8_t)(w->n_control + n);
    } else {
        br_str_put(&w->message, p, n);
        if (w->message.oom)
            return;
        to = w->message.at + at;
    }
    for (size_t i = 0; i < n; i++)
        to[i] = (char)(to[i] ^ mask[(w->at_mask + i) & 3]);
    w->at_mask = (uint8_t)((w->at_mask + n) & 3);
}

br_ws_got
br_ws_feed(br_ws *w, const char *p, size_t n, size_t *used)
{
    br_ws_got got = BR_WS_MORE;
    size_t i = 0;

    if (w->taken) {
        br_str_clear(&w->message);
        w->kind = 0;
        w->taken = false;
    }
    while (got == BR_WS_MORE && i < n) {
        size_t some;

        if (w->n_head < 2 || w->n_head < w->need) {
            w->head[w->n_head++] = (uint8_t)p[i++];
            if (w->n_head == 2)
                got = read_kind(w);
            if (got == BR_WS_MORE && w->n_head > 2 && w->n_head == w->need)
                got = read_size(w);
        } else {
            some = (size_t)BR_MIN((uint64_t)(n - i), w->left);
            take(w, p + i, some);
            i += some;
            w->left -= some;
        }
        if (got == BR_WS_MORE && w->n_head > 2 && w->n_head == w->need &&
            w->left == 0)
            got = end_frame(w);
    }
    *used = i;
    return got;
}

void
br_ws_fini(br_ws *w)
{
    br_str_fini(&w->message);
}

/* ---- frames out --------------------------------------------------------- */

void
br_ws_put(br_str *out, uint8_t opcode, const void *p, size_t n)
{
    br_str_putc(out, (char)(0x80 | opcode));
    if (n < 126) {
        br_str_putc(out, (char)n);
    } else {
        int bytes = n < 65536 ? 2 : 8;

        br_str_putc(out, bytes == 2 ? 126 : 127);
        while (bytes--)
            br_str_putc(out, (char)((uint64_t)n >> (8 * bytes)));
    }
    br_str_put(out, p, n);
}

void
br_ws_put_close(br_str *out, uint16_t code, const char *why)
{
    char text[125] = {(char)(code >> 8), (char)code};
    size_t n = BR_MIN(strlen(why), sizeof text - 2);

    memcpy(text + 2, why, n);
    br_ws_put(out, BR_WS_CLOSE, text, n + 2);
}

/* ---- the handshake's digest: SHA-1, which protects nothing here --------- */

static uint32_t
rol(uint32_t v, int n)
{
    return v << n | v >> (32 - n);
}

static void
sha1_block(uint32_t h[5], const uint8_t *p)
{
    static const uint32_t k[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc,
                                  0xca62c1d6};
    uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 80; i++)
        w[i] = rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? (b & c) | (~b & d)
                     : i < 40 ? b ^ c ^ d
                     : i < 60 ? (b & c) | (b & d) | (c & d)
                              : b ^ c ^ d;
        uint32_t t = rol(a, 5) + f + e + k[i / 20] + w[i];

        e = d;
        d = c;
        c = rol(b, 30);
        b = a;
        a = t;
    }
    h[0] += a;
    h[1] += b;
    h[2] += c;
    h[3] += d;
    h[4] += e;
}

void
br_ws_accept(br_text key, br_str *out)
{
    static const char salt[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    uint32_t h[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                     0xc3d2e1f0};
    uint8_t text[128] = {0}, d[20];
    size_t n = BR_MIN(key.n, (size_t)24), bits;

    memcpy(text, key.p, n);
    memcpy(text + n, salt, sizeof salt - 1);
    n += sizeof salt - 1;
    text[n] = 0x80;
    bits = n * 8; /* at most 480: two blocks if over 55 bytes */
    n = n > 55 ? 128 : 64;
    text[n - 2] = (uint8_t)(bits >> 8);
    text[n - 1] = (uint8_t)bits;
    for (size_t i = 0; i < n; i += 64)
        sha1_block(h, text + i);
    for (int i = 0; i < 20; i++)
        d[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
    br_str_put_base64(out, d, sizeof d);
}
