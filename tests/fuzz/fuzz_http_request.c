/* fuzz_http_request.c - any bytes as HTTP requests on one connection.
 *
 * Whole or in pieces, the parser uses the same bytes for the same requests and
 * refuses them for the same reason; what it hands out lies inside its head.
 * The first byte chooses the size of the pieces.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/http_parse.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
put(br_str *out, const br_http_parser *p, br_text t)
{
    br_check(!t.n ||
             (t.p >= p->head.at && t.p + t.n <= p->head.at + p->head.n));
    br_str_put(out, t.p, t.n);
    br_str_putc(out, '|');
}

static void
describe(br_str *out, const br_http_parser *p, br_http_got got)
{
    if (got == BR_HTTP_BAD) {
        br_check(p->status >= 400 && p->status < 600 && p->why);
        br_str_printf(out, "%d %s", p->status, p->why);
        return;
    }
    put(out, p, p->method);
    put(out, p, p->path);
    put(out, p, p->query);
    for (uint32_t i = 0; i < p->n_headers; i++) {
        br_check(br_http_header_of(p, "host").n <= p->head.n);
        put(out, p, p->headers[i].name);
        put(out, p, p->headers[i].value);
    }
    br_check(p->body.n <= p->max_body && p->head_done);
    br_str_put(out, p->body.at, p->body.n);
    br_str_printf(out, "%d%d%d%d", p->minor, p->keep_alive, p->chunked,
                  p->wants_100);
}

static void
parse(const uint8_t *data, size_t size, size_t step, br_str *out)
{
    br_http_parser p;
    br_http_got got = BR_HTTP_MORE;

    br_http_parser_init(&p, 256);
    while (size && got != BR_HTTP_BAD) {
        size_t used, n = BR_MIN(step, size);

        got = br_http_parser_feed(&p, (const char *)data, n, &used);
        br_check(used <= n && (got != BR_HTTP_MORE || used == n));
        data += used;
        size -= used;
        if (got == BR_HTTP_MORE)
            continue;
        describe(out, &p, got);
        if (got == BR_HTTP_DONE)
            br_http_parser_reset(&p);
    }
    br_http_parser_fini(&p);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_str whole = {0}, pieces = {0};

    if (size < 1 || size > 65536)
        return 0;
    parse(data + 1, size - 1, size, &whole);
    parse(data + 1, size - 1, 1 + data[0] % 64, &pieces);
    br_check(whole.n == pieces.n &&
             (!whole.n || memcmp(whole.at, pieces.at, whole.n) == 0));
    br_str_fini(&whole);
    br_str_fini(&pieces);
    return 0;
}
