/* f64_hex.c - doubles and texts without the C library's locale: hexadecimal ones,
 * which are exact (%a), and those that people write.
 *
 * A program that this library is in may have called setlocale(): its strtod() then
 * reads "1.5" as 1, and its printf() writes "0x1,8p+0".
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/bits.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

__extension__ typedef unsigned __int128 u128;

enum { FAR = 1 << 20 }; /* an exponent that no text brings back */

/* m * 2^e, and a little more if more: to nearest, ties to even. */
static double
scaled(uint64_t m, bool more, int64_t e)
{
    int drop = 11;
    u128 half, rest;
    uint64_t q;

    if (m == 0)
        return 0;
    while (m >> 63 == 0) {
        m <<= 1;
        e--;
    }
    if (e + drop < -1074)
        drop = (int)BR_MIN(-1074 - e, 66);
    half = (u128)1 << (drop - 1);
    rest = (u128)m & (2 * half - 1);
    q = (uint64_t)((u128)m >> drop);
    q += rest > half || (rest == half && (more || (q & 1)));
    return ldexp((double)q, (int)BR_MIN(e + drop, 2000));
}

/* Digits of base 16 at *t, a point among them: its value's m and e. */
static bool
hex_digits(br_text *t, uint64_t *m, bool *more, int64_t *e)
{
    size_t i = 0;
    bool point = false, any = false;

    for (; i < t->n; i++) {
        int d = br_hex_digit(t->p[i]);

        if (t->p[i] == '.' && !point) {
            point = true;
            continue;
        }
        if (d < 0)
            break;
        any = true;
        if (*m >> 60) {
            *more = *more || d;
            *e += point ? 0 : 4;
        } else {
            *m = *m << 4 | (uint64_t)d;
            *e -= point ? 4 : 0;
        }
    }
    *t = (br_text){t->p + i, t->n - i};
    return any;
}

/* p+12, or nothing. */
static bool
exponent(br_text t, int64_t *e)
{
    int64_t v = 0;
    bool minus;
    size_t i = 1;

    if (t.n == 0)
        return true;
    minus = t.n > 1 && t.p[1] == '-';
    i += minus || (t.n > 1 && t.p[1] == '+');
    if ((t.p[0] | 32) != 'p' || i == t.n)
        return false;
    for (; i < t.n; i++) {
        if (t.p[i] < '0' || t.p[i] > '9')
            return false;
        v = BR_MIN(v * 10 + (t.p[i] - '0'), INT64_C(1) << 40);
    }
    *e = BR_MAX(BR_MIN(*e + (minus ? -v : v), FAR), -FAR);
    return true;
}

bool
br_f64_read_hex(br_text t, double *out)
{
    bool minus = t.n > 0 && t.p[0] == '-', more = false;
    size_t sign = minus || (t.n > 0 && t.p[0] == '+');
    uint64_t m = 0;
    int64_t e = 0;

    t = (br_text){t.p + sign, t.n - sign};
    if (t.n < 2 || t.p[0] != '0' || (t.p[1] | 32) != 'x')
        return false;
    t = (br_text){t.p + 2, t.n - 2};
    if (!hex_digits(&t, &m, &more, &e) || !exponent(t, &e))
        return false;
    *out = copysign(scaled(m, more, e), minus ? -1. : 1.);
    return true;
}

size_t
br_f64_hex(char out[32], double v)
{
    static const char digit[] = "0123456789abcdef";
    uint64_t bits = br_f64_bits(v), m = bits << 12;
    int e = (int)(bits >> 52 & 0x7ff);
    char *p = out;

    if (!isfinite(v))
        return br_f64_repr(out, v);
    if (bits >> 63)
        *p++ = '-';
    *p++ = '0';
    *p++ = 'x';
    *p++ = e ? '1' : '0';
    if (m)
        *p++ = '.';
    for (; m; m <<= 4)
        *p++ = digit[m >> 60];
    e = e ? e - 1023 : bits << 1 ? -1022 : 0;
    p += snprintf(p, 8, "p%+d", e);
    return (size_t)(p - out);
}

double
br_f64_round(double v, int digits)
{
    char text[400];

    /* The one point that both ask the locale for. */
    snprintf(text, sizeof text, "%.*f", digits, v);
    return strtod(text, NULL);
}
