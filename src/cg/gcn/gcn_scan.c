/* gcn_scan.c - words and numbers of a line of assembly.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kinds.h"

#include "base/half.h"
#include "base/json.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void
br_gcn_space(br_gcn_ctx *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t'))
        c->p++;
}

bool
br_gcn_eat(br_gcn_ctx *c, const char *z)
{
    size_t n = strlen(z);
    const char *p = c->p;

    br_gcn_space(c);
    if ((size_t)(c->end - c->p) >= n && memcmp(c->p, z, n) == 0) {
        c->p += n;
        return true;
    }
    c->p = p;
    return false;
}

bool
br_gcn_word(br_gcn_ctx *c, const char *z)
{
    const char *p = c->p;

    if (br_gcn_eat(c, z) &&
        (c->p == c->end || !(isalnum((unsigned char)*c->p) || *c->p == '_')))
        return true;
    c->p = p;
    return false;
}

static bool
has_any(br_text t, const char *letters)
{
    for (size_t i = 0; i < t.n; i++)
        if (strchr(letters, t.p[i]))
            return true;
    return false;
}

/* All of t from i on, of 64 bits. */
static bool
digits(br_text t, size_t i, unsigned base, uint64_t *v)
{
    if (i == t.n)
        return false;
    for (; i < t.n; i++) {
        int d = br_hex_digit(t.p[i]);

        if (d < 0 || (unsigned)d >= base ||
            __builtin_mul_overflow(*v, base, v) ||
            __builtin_add_overflow(*v, (unsigned)d, v))
            return false;
    }
    return true;
}

int
br_gcn_number(br_gcn_ctx *c, int64_t *v, double *d)
{
    const char *p;
    size_t n = 0;
    bool minus, hex;
    uint64_t u = 0;

    br_gcn_space(c);
    for (p = c->p; p + n < c->end; n++)
        if (!isalnum((unsigned char)p[n]) && p[n] != '.' &&
            ((p[n] != '-' && p[n] != '+') || (n && (p[n - 1] | 32) != 'e')))
            break;
    minus = n && *p == '-';
    if (n == minus || !isdigit((unsigned char)p[minus]))
        return 0;
    hex = n > minus + 1u && p[minus] == '0' && p[minus + 1] == 'x';
    if (!hex && has_any((br_text){p, n}, ".eE")) {
        c->p += n;
        return br_f64_read((br_text){p, n}, d) ? 2 : 0;
    }
    c->p += n;
    if (!digits((br_text){p, n}, minus + 2 * hex, hex ? 16 : 10, &u))
        return 0;
    *v = (int64_t)(minus ? 0 - u : u);
    return 1;
}

bool
br_gcn_int(br_gcn_ctx *c, int64_t lo, int64_t hi, int64_t *v)
{
    const char *p = c->p;
    double d;

    if (br_gcn_number(c, v, &d) == 1 && *v >= lo && *v <= hi)
        return true;
    c->p = p;
    return false;
}

uint64_t
br_gcn_f64_bits(double v)
{
    uint64_t u;

    memcpy(&u, &v, sizeof u);
    return u;
}

bool
br_gcn_small_bits(const br_gcn_kind *k, double v, uint64_t *bits)
{
    float got = (float)v;

    switch (k->style) {
    case BR_S_F16:
    case BR_S_I16:
    case BR_S_H2:
        *bits = br_f64_to_f16(v);
        got = br_f16_to_f32((uint16_t)*bits);
        break;
    case BR_S_B16:
    case BR_S_B2:
        *bits = br_f64_to_bf16(v);
        got = br_bf16_to_f32((uint16_t)*bits);
        break;
    default: *bits = br_f32_bits(got);
    }
    return !isinf(got) == !isinf(v) && (got == 0) == (v == 0);
}
