/* http_parse.c - see http_parse.h.
 *
 * The head is gathered line by line and read once it is whole; the body goes
 * straight to its place. Nothing is looked at twice.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http_parse.h"

#include <string.h>

enum {
    IN_HEAD,
    IN_BODY,
    IN_CHUNK_LINE,
    IN_CHUNK,
    IN_CHUNK_END,
    IN_TRAILER,
    IN_DONE,
    IN_BAD,
};

void
br_http_parser_init(br_http_parser *p, size_t max_body_bytes)
{
    *p = (br_http_parser){.max_body = max_body_bytes};
}

void
br_http_parser_fini(br_http_parser *p)
{
    br_str_fini(&p->head);
    br_str_fini(&p->body);
    br_str_fini(&p->between);
}

void
br_http_parser_reset(br_http_parser *p)
{
    br_http_parser_fini(p);
    br_http_parser_init(p, p->max_body);
}

bool
br_http_parser_busy(const br_http_parser *p)
{
    return p->state != IN_HEAD || p->head.n > 0;
}

static br_http_got
bad(br_http_parser *p, int status, const char *why)
{
    p->state = IN_BAD;
    p->status = status;
    p->why = why;
    p->keep_alive = false;
    return BR_HTTP_BAD;
}

/* ---- words --------------------------------------------------------------- */

static char
lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

bool
br_http_same(br_text a, const char *z)
{
    size_t i = 0;

    while (i < a.n && z[i] && lower(a.p[i]) == z[i])
        i++;
    return i == a.n && !z[i];
}

static bool
is_token(br_text t)
{
    static const char more[] = "!#$%&'*+-.^_`|~";

    for (size_t i = 0; i < t.n; i++) {
        char c = t.p[i];

        if (!((lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') ||
              (c && strchr(more, c))))
            return false;
    }
    return t.n > 0;
}

static br_text
trim(br_text t)
{
    while (t.n && (t.p[0] == ' ' || t.p[0] == '\t'))
        t.p++, t.n--;
    while (t.n && (t.p[t.n - 1] == ' ' || t.p[t.n - 1] == '\t'))
        t.n--;
    return t;
}

/* What stands before the first `c`, which is taken off t as well; all of it
 * where there is none. */
static br_text
cut(br_text *t, char c)
{
    const char *at = t->n ? memchr(t->p, c, t->n) : NULL;
    br_text word = {t->p, at ? (size_t)(at - t->p) : t->n};
    size_t gone = word.n + (at != NULL);

    t->p += gone;
    t->n -= gone;
    return word;
}

bool
br_http_list_has(br_text list, const char *word)
{
    while (list.n)
        if (br_http_same(trim(cut(&list, ',')), word))
            return true;
    return false;
}

br_text
br_http_header_of(const br_http_parser *p, const char *name)
{
    for (uint32_t i = 0; i < p->n_headers; i++)
        if (br_http_same(p->headers[i].name, name))
            return p->headers[i].value;
    return (br_text){0};
}

bool
br_http_word(br_text word, char *out, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < word.n; i++) {
        int c = (unsigned char)word.p[i];

        if (c == '%') {
            int hi = word.n - i > 2 ? br_hex_digit(word.p[i + 1]) : -1;
            int lo = word.n - i > 2 ? br_hex_digit(word.p[i + 2]) : -1;

            if (hi < 0 || lo < 0)
                return false;
            c = hi * 16 + lo;
            i += 2;
        }
        if (!c || n + 1 >= size)
            return false;
        out[n++] = (char)c;
    }
    if (size)
        out[n] = 0;
    return size > 0;
}

/* ---- the head ------------------------------------------------------------ */

static br_http_got
read_target(br_http_parser *p, br_text target)
{
    for (size_t i = 0; i < target.n; i++)
        if (target.p[i] <= ' ' || target.p[i] == 0x7F)
            return bad(p, 400, "the request target has a byte it may not have");
    if (target.n >= 7 && br_http_same((br_text){target.p, 7}, "http://")) {
        const char *slash = memchr(target.p + 7, '/', target.n - 7);

        if (!slash)
            return bad(p, 400, "the request target has no path");
        p->host = (br_text){target.p + 7, (size_t)(slash - target.p) - 7};
        target.n -= (size_t)(slash - target.p);
        target.p = slash;
    }
    if (!target.n || target.p[0] != '/')
        return bad(p, 400, "the request target does not begin with '/'");
    p->query = target;
    p->path = cut(&p->query, '?');
    return BR_HTTP_MORE;
}

static br_http_got
read_request_line(br_http_parser *p, br_text line)
{
    br_text target;

    p->method = cut(&line, ' ');
    target = cut(&line, ' ');
    if (p->method.n > BR_HTTP_MAX_METHOD || !is_token(p->method))
        return bad(p, 400, "the request does not begin with a method");
    if (line.n != 8 || memcmp(line.p, "HTTP/", 5) != 0 || line.p[6] != '.')
        return bad(p, 400, "the request line does not end in HTTP/1.1");
    if (line.p[5] != '1' || (line.p[7] != '0' && line.p[7] != '1'))
        return bad(p, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    p->minor = line.p[7] - '0';
    p->keep_alive = p->minor == 1;
    return read_target(p, target);
}

static br_http_got
read_header(br_http_parser *p, br_text line)
{
    br_text value = line, name = cut(&value, ':');

    if (name.n == line.n)
        return bad(p, 400, "a header has no colon");
    if (!is_token(name))
        return bad(p, 400, "a header's name has a byte it may not have");
    value = trim(value);
    for (size_t i = 0; i < value.n; i++)
        if (((uint8_t)value.p[i] < ' ' && value.p[i] != '\t') ||
            value.p[i] == 0x7F)
            return bad(p, 400, "a header's value has a control character");
    if (p->n_headers == BR_HTTP_MAX_HEADERS)
        return bad(p, 431, "over 64 headers");
    p->headers[p->n_headers++] = (br_http_header){name, value};
    return BR_HTTP_MORE;
}

static bool
read_length(br_text t, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < t.n; i++) {
        if (t.p[i] < '0' || t.p[i] > '9' || *out > UINT64_MAX / 10 - 1)
            return false;
        *out = *out * 10 + (uint64_t)(t.p[i] - '0');
    }
    return t.n > 0;
}

/* What the headers say about where the request ends. */
static br_http_got
read_framing(br_http_parser *p)
{
    uint32_t hosts = 0, lengths = 0, codings = 0;

    for (uint32_t i = 0; i < p->n_headers; i++) {
        br_text name = p->headers[i].name, value = p->headers[i].value;

        if (br_http_same(name, "host")) {
            hosts++;
            if (!p->host.p) /* what the target says holds */
                p->host = value;
        } else if (br_http_same(name, "content-length")) {
            lengths++;
            if (!read_length(value, &p->left))
                return bad(p, 400, "Content-Length is not a number");
        } else if (br_http_same(name, "transfer-encoding")) {
            codings++;
            if (!br_http_same(value, "chunked"))
                return bad(p, 501, "only the transfer coding chunked is known");
        } else if (br_http_same(name, "connection")) {
            if (br_http_list_has(value, "close"))
                p->keep_alive = false;
            else if (br_http_list_has(value, "keep-alive"))
                p->keep_alive = true;
        }
    }
    if (hosts > 1 || (hosts == 0 && p->minor == 1))
        return bad(p, 400, "a request has one Host header");
    if (lengths + codings > 1)
        return bad(p, 400,
                   lengths && codings
                       ? "Content-Length and Transfer-Encoding: one of them"
                   : lengths ? "a request has one Content-Length"
                             : "a request has one Transfer-Encoding");
    if (codings && p->minor == 0)
        return bad(p, 400, "HTTP/1.0 has no Transfer-Encoding");
    p->chunked = codings == 1;
    return BR_HTTP_MORE;
}

static br_http_got
begin_body(br_http_parser *p)
{
    br_text expect = br_http_header_of(p, "expect");
    br_text coding = br_http_header_of(p, "content-encoding");

    if (expect.p && !br_http_same(expect, "100-continue"))
        return bad(p, 417, "only Expect: 100-continue is known");
    if (coding.p && !br_http_same(coding, "identity"))
        return bad(p, 415, "Content-Encoding: bodies are read as they are");
    if (p->left > p->max_body)
        return bad(p, 413, "the body is over the limit");
    p->wants_100 = expect.p && p->minor == 1 && (p->chunked || p->left);
    p->head_done = true;
    p->state = p->chunked ? IN_CHUNK_LINE : p->left ? IN_BODY : IN_DONE;
    return p->state == IN_DONE ? BR_HTTP_DONE : BR_HTTP_MORE;
}

static br_http_got
read_head(br_http_parser *p)
{
    br_text rest = {p->head.at, p->head.n};

    for (int i = 0; rest.n; i++) {
        br_text line = cut(&rest, '\n');
        br_http_got got;

        if (!line.n || line.p[line.n - 1] != '\r')
            return bad(p, 400, "a line does not end in CR LF");
        line.n--;
        if (!line.n)
            break;
        got = i ? read_header(p, line) : read_request_line(p, line);
        if (got == BR_HTTP_BAD)
            return got;
    }
    if (read_framing(p) == BR_HTTP_BAD)
        return BR_HTTP_BAD;
    return begin_body(p);
}

/* ---- lines: of the head, of chunks, of the trailer ----------------------- */

/* Adds bytes up to the end of the line at hand. True: it is complete. */
static bool
take_line(br_str *to, const char *at, size_t n, size_t max, size_t *used)
{
    const char *end = memchr(at, '\n', n);

    *used = BR_MIN(end ? (size_t)(end - at) + 1 : n, max - to->n);
    br_str_put(to, at, *used);
    return end && !to->oom && to->at[to->n - 1] == '\n';
}

static br_http_got
feed_head(br_http_parser *p, const char *at, size_t n, size_t *used)
{
    br_str *h = &p->head;
    br_text line;

    if (!h->n && *at != '\r' && *at != '\n' && !is_token((br_text){at, 1}))
        return bad(p, 400, "this is no HTTP request");
    if (!take_line(h, at, n, BR_HTTP_MAX_HEAD, used))
        return h->n == BR_HTTP_MAX_HEAD
                   ? bad(p, 431, "the headers are over 16 KiB")
                   : BR_HTTP_MORE;
    line = (br_text){h->at + p->line, h->n - p->line};
    if (line.n < 2 || line.p[line.n - 2] != '\r')
        return bad(p, 400, "a line does not end in CR LF");
    if (line.n > 2) {
        p->line = h->n;
        return BR_HTTP_MORE;
    }
    if (p->line)
        return read_head(p);
    br_str_clear(h); /* an empty line before the request is let go, once */
    if (p->empty_line)
        return bad(p, 400, "empty lines before the request");
    p->empty_line = true;
    return BR_HTTP_MORE;
}

static br_http_got
read_chunk_size(br_http_parser *p, br_text line)
{
    br_text digits = trim(cut(&line, ';'));
    uint64_t size = 0;

    if (!digits.n || digits.n > 15)
        return bad(p, 400, "a chunk has no size");
    for (size_t i = 0; i < digits.n; i++) {
        char c = lower(digits.p[i]);

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
            return bad(p, 400, "a chunk's size is not hexadecimal");
        size = size * 16 + (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (size > p->max_body - p->body.n)
        return bad(p, 413, "the body is over the limit");
    p->left = size;
    p->state = size ? IN_CHUNK : IN_TRAILER;
    return BR_HTTP_MORE;
}

static br_http_got
feed_between(br_http_parser *p, const char *at, size_t n, size_t *used)
{
    size_t max = p->state == IN_CHUNK_END ? 2 : BR_HTTP_MAX_CHUNK_LINE;
    br_text line;

    if (!take_line(&p->between, at, n, max, used))
        return p->between.n == max ? bad(p, 400, "a chunk has no proper end")
                                   : BR_HTTP_MORE;
    line = (br_text){p->between.at, p->between.n};
    p->between.n = 0;
    if (line.n < 2 || line.p[line.n - 2] != '\r')
        return bad(p, 400, "a line does not end in CR LF");
    line.n -= 2;
    if (p->state == IN_CHUNK_LINE)
        return read_chunk_size(p, line);
    if (p->state == IN_CHUNK_END) {
        p->state = IN_CHUNK_LINE;
        return BR_HTTP_MORE;
    }
    if (!line.n) {
        p->state = IN_DONE;
        return BR_HTTP_DONE;
    }
    /* trailers are dropped, but not for ever */
    return ++p->n_trailers > BR_HTTP_MAX_HEADERS
               ? bad(p, 431, "over 64 headers")
               : BR_HTTP_MORE;
}

static br_http_got
feed_body(br_http_parser *p, const char *at, size_t n, size_t *used)
{
    *used = BR_MIN((uint64_t)n, p->left);
    br_str_put(&p->body, at, *used);
    p->left -= *used;
    if (!p->left)
        p->state = p->chunked ? IN_CHUNK_END : IN_DONE;
    return p->state == IN_DONE ? BR_HTTP_DONE : BR_HTTP_MORE;
}

br_http_got
br_http_parser_feed(br_http_parser *p, const char *at, size_t n, size_t *used)
{
    br_http_got got = BR_HTTP_MORE;

    br_check(p->state != IN_DONE && p->state != IN_BAD);
    *used = 0;
    while (got == BR_HTTP_MORE && *used < n) {
        size_t k = 0, left = n - *used;

        if (p->state == IN_HEAD)
            got = feed_head(p, at + *used, left, &k);
        else if (p->state == IN_BODY || p->state == IN_CHUNK)
            got = feed_body(p, at + *used, left, &k);
        else
            got = feed_between(p, at + *used, left, &k);
        *used += k;
        if (p->head.oom || p->body.oom || p->between.oom)
            got = bad(p, 503, "out of memory");
    }
    return got;
}
