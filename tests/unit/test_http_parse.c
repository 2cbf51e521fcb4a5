/* test_http_parse.c - requests and what the parser makes of them.
 *
 * tests/golden/http/requests.md holds requests, each followed by what they
 * mean; `make golden-update` writes the answers anew.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http_parse.h"

#include "t.h"

#include <string.h>

#define FILE_MD "tests/golden/http/requests.md"

enum { MAX_BODY = 64 };

/* A line of a request in the file is one of the request and ends in CR LF;
 * \n, \r, \0, \t, \\ are themselves, \< at its end takes away the CR LF. */
static void
put_line(br_str *out, br_text line)
{
    for (size_t i = 0; i < line.n; i++) {
        char c = line.p[i];

        if (c != '\\') {
            br_str_putc(out, c);
            continue;
        }
        switch (line.p[++i]) {
        case 'n': br_str_putc(out, '\n'); break;
        case 'r': br_str_putc(out, '\r'); break;
        case 't': br_str_putc(out, '\t'); break;
        case '0': br_str_putc(out, '\0'); break;
        case '<': return;
        default: br_str_putc(out, '\\'); break;
        }
    }
    br_str_puts(out, "\r\n");
}

static void
put_quoted(br_str *out, br_text t)
{
    br_str_putc(out, '"');
    for (size_t i = 0; i < t.n; i++)
        if ((uint8_t)t.p[i] < ' ' || (uint8_t)t.p[i] > '~')
            br_str_printf(out, "\\x%02x", (uint8_t)t.p[i]);
        else
            br_str_putc(out, t.p[i]);
    br_str_puts(out, "\"\n");
}

static void
put_request(br_str *out, const br_http_parser *p)
{
    br_str_printf(out, "%.*s %.*s HTTP/1.%d%s%s%s\n", (int)p->method.n,
                  p->method.p, (int)p->path.n, p->path.p, p->minor,
                  p->keep_alive ? ", stays" : ", closes",
                  p->chunked ? ", chunked" : "",
                  p->wants_100 ? ", waits for 100" : "");
    if (p->query.n) {
        br_str_puts(out, "query ");
        put_quoted(out, p->query);
    }
    for (uint32_t i = 0; i < p->n_headers; i++) {
        br_str_printf(out, "%.*s ", (int)p->headers[i].name.n,
                      p->headers[i].name.p);
        put_quoted(out, p->headers[i].value);
    }
    if (p->body.n) {
        br_str_puts(out, "body ");
        put_quoted(out, (br_text){p->body.at, p->body.n});
    }
}

/* All requests in the bytes, fed `step` at a time. */
static void
parse_all(br_text in, size_t step, br_str *out)
{
    br_http_parser p;
    br_http_got got = BR_HTTP_MORE;

    br_http_parser_init(&p, MAX_BODY);
    while (in.n && got != BR_HTTP_BAD) {
        size_t used, n = BR_MIN(step, in.n);

        got = br_http_parser_feed(&p, in.p, n, &used);
        ck_assert_uint_le(used, n);
        if (got == BR_HTTP_BAD) {
            br_str_printf(out, "%d %s\n", p.status, p.why);
        } else if (got == BR_HTTP_DONE) {
            put_request(out, &p);
            br_http_parser_reset(&p);
        } else {
            ck_assert_uint_eq(used, n);
        }
        in.p += used;
        in.n -= used;
    }
    if (got != BR_HTTP_BAD && br_http_parser_busy(&p))
        br_str_puts(out, "(more to come)\n");
    br_http_parser_fini(&p);
}

static br_text
take_line(const char **p)
{
    const char *end = strchr(*p, '\n');
    br_text line = {*p, end ? (size_t)(end - *p) : strlen(*p)};

    *p += line.n + (end != NULL);
    return line;
}

TEST(http_requests_mean_what_the_file_says)
{
    const char *p = t_read(t_repo(FILE_MD), NULL);
    br_str md = {0}, in = {0}, whole = {0}, bytes = {0};
    enum { PROSE, REQUEST, ANSWER } in_what = PROSE;
    int n = 0;

    while (*p) {
        br_text line = take_line(&p);

        if (in_what == ANSWER) { /* the old answer goes, the new one stands */
            if (br_text_is(line, "```"))
                in_what = PROSE;
            continue;
        }
        br_str_put(&md, line.p, line.n);
        br_str_putc(&md, '\n');
        if (in_what == PROSE && br_text_is(line, "```request")) {
            in_what = REQUEST;
            br_str_clear(&in);
        } else if (in_what == REQUEST && br_text_is(line, "```")) {
            br_str_clear(&whole);
            br_str_clear(&bytes);
            parse_all((br_text){br_str_z(&in), in.n}, in.n, &whole);
            parse_all((br_text){br_str_z(&in), in.n}, 1, &bytes);
            ck_assert_str_eq(br_str_z(&bytes), br_str_z(&whole));
            br_str_printf(&md, "```result\n%s```\n", br_str_z(&whole));
            n++;
        } else if (in_what == REQUEST) {
            put_line(&in, line);
        } else if (br_text_is(line, "```result")) {
            md.n -= line.n + 1;
            in_what = ANSWER;
        }
        if (in_what == REQUEST && br_text_is(line, "```"))
            in_what = PROSE;
    }
    ck_assert_int_ge(n, 30);
    t_golden_n(FILE_MD, br_str_z(&md), md.n);
    br_str_fini(&md);
    br_str_fini(&in);
    br_str_fini(&whole);
    br_str_fini(&bytes);
}

static br_http_got
feed_all(br_http_parser *p, const char *z, size_t n)
{
    size_t used;

    return br_http_parser_feed(p, z, n, &used);
}

TEST(http_heads_end_at_16_kib)
{
    br_http_parser p;
    br_str s = {0};

    for (size_t n = BR_HTTP_MAX_HEAD - 1; n <= BR_HTTP_MAX_HEAD + 1; n++) {
        br_str_clear(&s);
        br_str_puts(&s, "GET / HTTP/1.1\r\nHost: a\r\nX: ");
        while (s.n < n - 4)
            br_str_putc(&s, 'x');
        br_str_puts(&s, "\r\n\r\n");
        br_http_parser_init(&p, 0);
        ck_assert_int_eq(feed_all(&p, s.at, s.n),
                         n <= BR_HTTP_MAX_HEAD ? BR_HTTP_DONE : BR_HTTP_BAD);
        ck_assert_int_eq(p.status, n <= BR_HTTP_MAX_HEAD ? 0 : 431);
        br_http_parser_fini(&p);
    }
    br_str_fini(&s);
}

TEST(http_headers_are_64_at_most)
{
    br_http_parser p;
    br_str s = {0};

    for (int n = 63; n <= 64; n++) {
        br_str_clear(&s);
        br_str_puts(&s, "GET / HTTP/1.1\r\nHost: a\r\n");
        for (int i = 0; i < n; i++)
            br_str_puts(&s, "X: y\r\n");
        br_str_puts(&s, "\r\n");
        br_http_parser_init(&p, 0);
        ck_assert_int_eq(feed_all(&p, s.at, s.n),
                         n == 63 ? BR_HTTP_DONE : BR_HTTP_BAD);
        br_http_parser_fini(&p);
    }
    br_str_fini(&s);
}

static br_code
parse_one(void *arg, br_status *st)
{
    static const char z[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                            "chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    br_http_parser p;
    br_http_got got;

    (void)arg;
    br_http_parser_init(&p, MAX_BODY);
    got = feed_all(&p, z, sizeof z - 1);
    if (got == BR_HTTP_BAD && p.status == 503)
        (void)br_fail(st, BR_E_OOM, "%s", p.why);
    else
        ck_assert(got == BR_HTTP_DONE && p.body.n == 5);
    br_http_parser_fini(&p);
    return st->code;
}

TEST(http_requests_say_when_memory_runs_out)
{
    t_each_oom(parse_one, NULL);
}

TEST(a_word_of_a_path_is_read_as_it_was)
{
    static const struct {
        const char *word, *is; /* NULL: it is none */
    } rows[] = {
        {"demo", "demo"},
        {"org%2Fmo%20del%3a%C3%bc", "org/mo del:\xc3\xbc"},
        {"a%", NULL},
        {"a%4", NULL},
        {"a%4g", NULL},
        {"a%00b", NULL},
        {"123456789012345678901234567", "123456789012345678901234567"},
        {"1234567890123456789012345678", NULL},
        {"", ""},
    };
    char out[28];

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        bool ok = br_http_word(br_text_z(rows[i].word), out, sizeof out);

        ck_assert_msg(ok == (rows[i].is != NULL), "%s", rows[i].word);
        if (ok)
            ck_assert_str_eq(out, rows[i].is);
    }
    ck_assert(!br_http_word(br_text_z(""), out, 0));
}
