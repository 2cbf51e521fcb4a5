/* kprint.c - see kprint.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kprint.h"

#include <stdio.h>
#include <string.h>

/* One conversion: spec is "%-8.3f" without length modifiers. It was checked,
 * character by character, to be one that takes what is given here. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void
put_number(br_str *out, char *spec, size_t n, unsigned bits, uint64_t v)
{
    char conv = spec[n - 1];
    double d;

    memcpy(&d, &v, sizeof d);
    if (strchr("fFeEgGaA", conv)) {
        br_str_printf(out, spec, d);
        return;
    }
    if (conv == 'c') {
        br_str_printf(out, spec, (int)v);
        return;
    }
    memcpy(spec + n - 1, "ll", 2);
    spec[n + 1] = conv;
    spec[n + 2] = 0;
    v <<= 64 - bits;
    v = conv == 'd' || conv == 'i' ? (uint64_t)((int64_t)v >> (64 - bits))
                                   : v >> (64 - bits);
    br_str_printf(out, spec, (unsigned long long)v);
}

/* A text, or a pointer as one: that has no precision. */
static void
put_text(br_str *out, char *spec, size_t n, const char *text)
{
    char *dot = spec[n - 1] == 'p' ? strchr(spec, '.') : NULL;

    if (dot)
        n = (size_t)(dot - spec) + 1;
    spec[n - 1] = 's';
    spec[n] = 0;
    br_str_printf(out, spec, text);
}
#pragma GCC diagnostic pop

/* From behind a % to spec, in which a width that is an argument is a number;
 * the conversion is its last character. NULL: it has no end, or failed. */
static const char *
conversion(const char *f, char *spec, size_t *n, unsigned *bits,
           const br_kprint_from *from)
{
    uint64_t v;

    for (; *f && *n < 24; f++) {
        if (*f == '*') {
            if (!from->arg(from->ctx, false, &v))
                return NULL;
            *n += (size_t)snprintf(spec + *n, 8, "%d", (int)v % 1000);
        } else if (*f == 'l' || *f == 'j' || *f == 'z' || *f == 't') {
            *bits = 64;
        } else if (*f == 'h') {
            *bits = *bits == 16 ? 8 : 16;
        } else {
            spec[(*n)++] = *f;
            if (!strchr("-+ #0123456789.", *f))
                break;
        }
    }
    spec[*n] = 0;
    if (strchr("fFeEgGaAsp", spec[*n - 1]))
        *bits = 64;
    return f;
}

static bool
put_one(br_str *out, char *spec, size_t n, unsigned bits,
        const br_kprint_from *from)
{
    char text[BR_KPRINT_MAX];
    uint64_t v;

    if (!from->arg(from->ctx, bits == 64, &v))
        return false;
    if (spec[n - 1] == 's') {
        if (!from->text(from->ctx, v, text, sizeof text))
            return false;
        put_text(out, spec, n, text);
    } else if (spec[n - 1] == 'p') {
        snprintf(text, sizeof text, "0x%llx", (unsigned long long)v);
        put_text(out, spec, n, text);
    } else {
        put_number(out, spec, n, bits, v);
    }
    return true;
}

bool
br_kprint(br_str *out, const char *f, const br_kprint_from *from)
{
    while (*f) {
        char spec[40] = "%";
        size_t n = 1;
        unsigned bits = 32;

        if (*f != '%' || f[1] == '%') {
            br_str_putc(out, *f);
            f += *f == '%' ? 2 : 1;
            continue;
        }
        f = conversion(f + 1, spec, &n, &bits, from);
        if (!f)
            return false;
        if (!*f)
            break;
        f++;
        if (!strchr("diouxXcfFeEgGaAsp", spec[n - 1]))
            br_str_puts(out, spec);
        else if (!put_one(out, spec, n, bits, from))
            return false;
    }
    return true;
}
