/* str.c - a string builder whose failure is sticky.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

static bool
room(br_str *s, size_t more)
{
    size_t need, cap;
    char *p;

    if (s->oom)
        return false;
    if (more > SIZE_MAX / 2 - s->n - 1) {
        s->oom = true;
        return false;
    }
    need = s->n + more + 1;
    if (need <= s->cap)
        return true;
    cap = BR_MAX(need, s->cap * 2);
    cap = BR_MAX(cap, (size_t)64);
    p = br_try_realloc(s->at, cap);
    if (!p) {
        s->oom = true;
        return false;
    }
    s->at = p;
    s->cap = cap;
    return true;
}

void
br_str_put(br_str *s, const char *p, size_t n)
{
    if (!room(s, n))
        return;
    if (n)
        memcpy(s->at + s->n, p, n);
    s->n += n;
    s->at[s->n] = 0;
}

void
br_str_puts(br_str *s, const char *z)
{
    br_str_put(s, z, strlen(z));
}

void
br_str_putc(br_str *s, char c)
{
    if (!room(s, 1))
        return;
    s->at[s->n++] = c;
    s->at[s->n] = 0;
}

void
br_str_vprintf(br_str *s, const char *fmt, va_list ap)
{
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    if (n >= 0 && room(s, (size_t)n)) {
        vsnprintf(s->at + s->n, (size_t)n + 1, fmt, again);
        s->n += (size_t)n;
    }
    va_end(again);
}

void
br_str_printf(br_str *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    br_str_vprintf(s, fmt, ap);
    va_end(ap);
}

void
br_str_put_base64(br_str *s, const void *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
                                 "qrstuvwxyz0123456789+/";
    const uint8_t *in = p;

    for (size_t i = 0; i < n; i += 3) {
        size_t k = BR_MIN(n - i, (size_t)3);
        uint32_t v = (uint32_t)in[i] << 16;
        char four[4] = {0, 0, '=', '='};

        v |= k > 1 ? (uint32_t)in[i + 1] << 8 : 0;
        v |= k > 2 ? in[i + 2] : 0;
        for (size_t j = 0; j <= k; j++)
            four[j] = digits[v >> (18 - 6 * j) & 63];
        br_str_put(s, four, 4);
    }
}

const char *
br_str_z(br_str *s)
{
    return s->at && s->n ? s->at : "";
}

void
br_str_clear(br_str *s)
{
    s->n = 0;
    s->oom = false;
    if (s->at)
        s->at[0] = 0;
}

void
br_str_fini(br_str *s)
{
    br_free(s->at);
    *s = (br_str){0};
}

br_text
br_text_z(const char *z)
{
    return (br_text){z, strlen(z)};
}

bool
br_text_eq(br_text a, br_text b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool
br_text_is(br_text a, const char *z)
{
    return br_text_eq(a, br_text_z(z));
}

void
br_hex(const void *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *b = p;

    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[b[i] >> 4];
        out[2 * i + 1] = digits[b[i] & 15];
    }
    out[2 * n] = 0;
}

int
br_hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}
