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

br_code
br_fail_at(br_status *st, const char *file, int line, br_code code,
           const char *fmt, ...)
{
    va_list ap;

    br_assert(code != BR_OK && "a failure needs a code");
    if (!st)
        return code;
    if (st->code != BR_OK)
        return st->code;
    st->code = code;
    st->file = file;
    st->line = line;
    va_start(ap, fmt);
    vsnprintf(st->msg, sizeof st->msg, fmt, ap);
    va_end(ap);
    return code;
}

br_code
br_prefix(br_status *st, const char *fmt, ...)
{
    char old[sizeof st->msg];
    va_list ap;
    int n;

    if (!st || st->code == BR_OK)
        return st ? st->code : BR_E_INTERNAL;
    memcpy(old, st->msg, sizeof old);
    va_start(ap, fmt);
    n = vsnprintf(st->msg, sizeof st->msg, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n + 2 < sizeof st->msg) {
        size_t left = sizeof st->msg - (size_t)n - 3;

        memcpy(st->msg + n, ": ", 2);
        old[left < sizeof old ? left : sizeof old - 1] = 0;
        memcpy(st->msg + n + 2, old, strlen(old) + 1);
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
