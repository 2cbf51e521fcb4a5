/* test_http_api.c - what clients send and get, to the byte.
 *
 * tests/golden/http/api.md holds requests, each followed by its answer; `make
 * golden-update` writes the answers anew. The model is the fake one: its
 * answers are nonsense, but always the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include "serve_kit.h"

#include <stdio.h>
#include <string.h>

#define FILE_MD "tests/golden/http/api.md"

/* What differs from run to run. */
static const struct {
    const char *before, *instead;
} changing[] = {
    {"\"chatcmpl-", "ID"},
    {"\"cmpl-", "ID"},
    {"\"msg_", "ID"},
    {"\"resp_", "ID"},
    {"\"msg_resp_", "ID"},
    {"X-Request-Id: chatcmpl-", "ID"},
    {"X-Request-Id: cmpl-", "ID"},
    {"X-Request-Id: msg_", "ID"},
    {"X-Request-Id: resp_", "ID"},
    {"Request-Id: req_", "ID"},
    {"Request-Id: msg_", "ID"},
    {"Request-Id: embd-", "ID"},
    {"Request-Id: ", "ID"},
    {"Date: ", "WHEN"},
    {"\"created\":", "TIME"},
    {"\"created_at\":", "TIME"},
    {"\"queue_ms\":", "MS"},
    {"\"prefill_ms\":", "MS"},
    {"\"decode_ms\":", "MS"},
    {"\"prompt_ms\":", "MS"},
    {"\"prompt_per_token_ms\":", "MS"},
    {"\"prompt_per_second\":", "N"},
    {"\"predicted_ms\":", "MS"},
    {"\"predicted_per_token_ms\":", "MS"},
    {"\"predicted_per_second\":", "N"},
    {"\"kv_page_seconds\":", "S"},
    {"Retry-After: ", "SECONDS"},
    {"Content-Length: ", "N"},
};

static void
put_steady(br_str *out, const char *p)
{
    while (*p) {
        size_t i = 0, n;

        while (i < BR_COUNT(changing) &&
               strncmp(p, changing[i].before, strlen(changing[i].before)) != 0)
            i++;
        if (i == BR_COUNT(changing)) {
            if (*p != '\r')
                br_str_putc(out, *p);
            p++;
            continue;
        }
        n = strlen(changing[i].before);
        br_str_put(out, p, n);
        br_str_puts(out, changing[i].instead);
        p += n + (strncmp(p, "Date: ", 6) == 0
                      ? strcspn(p + n, "\r")
                      : strspn(p + n, "0123456789abcdef."));
    }
}

static br_text
take_line(const char **p)
{
    const char *end = strchr(*p, '\n');
    br_text line = {*p, end ? (size_t)(end - *p) : strlen(*p)};

    *p += line.n + (end != NULL);
    return line;
}

/* First line: method and path; lines with a colon before the first that begins
 * with a brace or is empty: headers; the rest: the body. */
static sk_answer
ask(const sk *k, const char *block)
{
    br_text what = take_line(&block);
    br_str more = {0};
    sk_answer a;

    while (*block && *block != '{' && *block != '[' && *block != '\n') {
        br_text line = take_line(&block);

        br_str_printf(&more, "%.*s\r\n", (int)line.n, line.p);
    }
    a = sk_ask(k, t_printf("%.*s", (int)what.n, what.p), br_str_z(&more),
               *block ? block : NULL);
    br_str_fini(&more);
    return a;
}

TEST_WITHIN(http_answers_are_what_the_file_says, 60)
{
    const char *p = t_read(t_repo(FILE_MD), NULL);
    enum { PROSE, REQUEST, ANSWER } in_what = PROSE;
    br_str md = {0}, in = {0};
    int n = 0;
    sk k;

    sk_open(&k, &(sk_config){.fake = {.pooling = BR_POOLING_MEAN}});
    while (*p) {
        br_text line = take_line(&p);
        bool fence = br_text_is(line, "```");

        if (in_what == ANSWER) {
            in_what = fence ? PROSE : ANSWER;
            continue;
        }
        if (in_what == PROSE && br_text_is(line, "```answer")) {
            in_what = ANSWER;
            continue;
        }
        br_str_put(&md, line.p, line.n);
        br_str_putc(&md, '\n');
        if (in_what == REQUEST && !fence)
            br_str_printf(&in, "%.*s\n", (int)line.n, line.p);
        if (in_what == REQUEST && fence) {
            sk_answer a = ask(&k, br_str_z(&in));

            br_str_puts(&md, "```answer\n");
            put_steady(&md, a.head);
            put_steady(&md, a.body);
            br_str_puts(&md, a.n_body && a.body[a.n_body - 1] == '\n'
                                 ? "```\n"
                                 : "\n```\n");
            in_what = PROSE;
            n++;
        }
        if (in_what == PROSE && br_text_is(line, "```request")) {
            in_what = REQUEST;
            br_str_clear(&in);
        }
    }
    ck_assert_int_ge(n, 30);
    t_golden_n(FILE_MD, br_str_z(&md), md.n);
    br_str_fini(&md);
    br_str_fini(&in);
    sk_close(&k);
}
