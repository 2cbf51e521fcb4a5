/* gcn_scan.c - words and numbers of a line of assembly.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kinds.h"

#include "base/half.h"

#include <ctype.h>
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

int
br_gcn_number(br_gcn_ctx *c, int64_t *v, double *d)
{
    char buf[48], *e;
    size_t n = 0;
    bool hex;

    br_gcn_space(c);
    while (c->p + n < c->end && n < sizeof buf - 1 &&
           (isalnum((unsigned char)c->p[n]) || c->p[n] == '.' ||
            ((c->p[n] == '-' || c->p[n] == '+') &&
             (n == 0 || (buf[n - 1] | 32) == 'e')))) {
        buf[n] = c->p[n];
        n++;
    }
    buf[n] = 0;
    hex = strncmp(buf + (*buf == '-'), "0x", 2) == 0;
    if (!isdigit((unsigned char)buf[*buf == '-']))
        return 0;
    if (!hex && strpbrk(buf, ".eE")) {
        *d = strtod(buf, &e);
        c->p += n;
        return *e ? 0 : 2;
    }
    *v = *buf == '-' ? -(int64_t)strtoull(buf + 1, &e, hex ? 16 : 10)
                     : (int64_t)strtoull(buf, &e, hex ? 16 : 10);
    c->p += n;
    return *e ? 0 : 1;
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

uint32_t
br_gcn_f32_bits(double v)
{
    float f = (float)v;
    uint32_t u;

    memcpy(&u, &f, sizeof u);
    return u;
}

uint32_t
br_gcn_f16_bits(double v)
{
    return br_f32_to_f16((float)v);
}
