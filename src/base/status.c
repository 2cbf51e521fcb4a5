/* status.c - errors as values: a code, a place and one clear sentence.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *text;
    int exit_code, http;
    bool retry;
} rows[BR_E_COUNT] = {
    {"OK", "ok", 0, 200, false},
#define X(name, text, exit_code, http, retry) \
    {#name, text, exit_code, http, retry},
#include "base/errors.def"
#undef X
};

void
br_panic_at(const char *file, int line, const char *what)
{
    fprintf(stderr, "brass: %s:%d: %s\n", file, line, what);
    abort();
}

/* ---- messages that are too long ------------------------------------------- */

enum { MSG = sizeof((br_status *)0)->msg, MOST = 1 << 20 };

static bool
inside_char(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80; /* of UTF-8 */
}

/* The longest word is a name, and what is said of it stands before or behind:
 * so the middle of that word goes, or of the text if it has no such word. */
static void
shorten(char out[MSG], const char *text, size_t n)
{
    size_t excess = n - (MSG - 1) + 3, from = 0, to = 0, head, tail;

    for (size_t i = 0; i < n;) {
        size_t end = i + strcspn(text + i, " ");

        if (end - i > to - from) {
            from = i;
            to = end;
        }
        i = end + 1;
    }
    if (to - from < excess + 2) {
        from = 0;
        to = n;
    }
    head = from + (to - from - excess) / 2;
    tail = head + excess;
    while (head > from && inside_char(text[head]))
        head--;
    while (tail < to && inside_char(text[tail]))
        tail++;
    memcpy(out, text, head);
    memcpy(out + head, "...", 3);
    memcpy(out + head + 3, text + tail, n - tail + 1);
}

/* fmt, and `then` behind it, shortened: for what vsnprintf said has n bytes.
 * Without memory the beginning stays that is there. */
static void BR_PRINTF(4, 0)
    write_short(br_status *st, size_t n, const char *then, const char *fmt,
                va_list ap)
{
    size_t rest = strlen(then);
    char *all = n < MOST ? br_try_alloc(n + rest + 1) : NULL;

    if (!all)
        return;
    vsnprintf(all, n + 1, fmt, ap);
    memcpy(all + n, then, rest + 1);
    shorten(st->msg, all, n + rest);
    br_free(all);
}

br_code
br_fail_at(br_status *st, const char *file, int line, br_code code,
           const char *fmt, ...)
{
    va_list ap;
    int n;

    br_assert(code != BR_OK && "a failure needs a code");
    if (!st)
        return code;
    if (st->code != BR_OK)
        return st->code;
    st->code = code;
    st->file = file;
    st->line = line;
    va_start(ap, fmt);
    n = vsnprintf(st->msg, sizeof st->msg, fmt, ap);
    va_end(ap);
    if (n >= MSG) {
        va_start(ap, fmt);
        write_short(st, (size_t)n, "", fmt, ap);
        va_end(ap);
    }
    return code;
}

br_code
br_prefix(br_status *st, const char *fmt, ...)
{
    char old[2 + sizeof st->msg] = ": ";
    va_list ap;
    int n;

    if (!st || st->code == BR_OK)
        return st ? st->code : BR_E_INTERNAL;
    memcpy(old + 2, st->msg, sizeof st->msg);
    va_start(ap, fmt);
    n = vsnprintf(st->msg, sizeof st->msg, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n + strlen(old) < sizeof st->msg) {
        memcpy(st->msg + n, old, strlen(old) + 1);
    } else if (n >= 0) {
        va_start(ap, fmt);
        write_short(st, (size_t)n, old, fmt, ap);
        va_end(ap);
    }
    return st->code;
}

const char *
br_code_name(br_code c)
{
    return (unsigned)c < BR_E_COUNT ? rows[c].name : "UNKNOWN";
}

const char *
br_code_text(br_code c)
{
    return (unsigned)c < BR_E_COUNT ? rows[c].text : "unknown error";
}

int
br_code_exit(br_code c)
{
    return (unsigned)c < BR_E_COUNT ? rows[c].exit_code : 1;
}

int
br_code_http(br_code c)
{
    return (unsigned)c < BR_E_COUNT ? rows[c].http : 500;
}

bool
br_code_retryable(br_code c)
{
    return (unsigned)c < BR_E_COUNT && rows[c].retry;
}
