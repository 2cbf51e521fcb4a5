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
put_number(br_str *out, char *spec, size_t n, bool wide, uint64_t v)
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
    if (!wide)
        v = conv == 'd' || conv == 'i' ? (uint64_t)(int32_t)v : (uint32_t)v;
    br_str_printf(out, spec, (unsigned long long)v);
}
#pragma GCC diagnostic pop

/* From behind a % to spec, in which a width that is an argument is a number;
 * the conversion is its last character. NULL: it has no end, or failed. */
static const char *
conversion(const char *f, char *spec, size_t *n, bool *wide,
           const br_kprint_from *from)
{
    uint64_t v;

    for (; *f && *n < 24; f++) {
        if (*f == '*') {
            if (!from->arg(from->ctx, false, &v))
                return NULL;
            *n += (size_t)snprintf(spec + *n, 8, "%d", (int)v % 1000);
        } else if (*f == 'l' || *f == 'j' || *f == 'z' || *f == 't') {
            *wide = true;
        } else if (*f != 'h') {
            spec[(*n)++] = *f;
            if (!strchr("-+ #0123456789.", *f))
                break;
        }
    }
    spec[*n] = 0;
    *wide |= strchr("fFeEgGaAsp", spec[*n - 1]) != NULL;
    return f;
}

static bool
put_one(br_str *out, char *spec, size_t n, bool wide,
        const br_kprint_from *from)
{
    char text[BR_KPRINT_MAX];
    uint64_t v;

    if (!from->arg(from->ctx, wide, &v))
        return false;
    if (spec[n - 1] == 's') {
        if (!from->text(from->ctx, v, text, sizeof text))
            return false;
        br_str_puts(out, text); /* without the width */
    } else if (spec[n - 1] == 'p') {
        br_str_printf(out, "0x%llx", (unsigned long long)v);
    } else {
        put_number(out, spec, n, wide, v);
    }
    return true;
}

bool
br_kprint(br_str *out, const char *f, const br_kprint_from *from)
{
    while (*f) {
        char spec[40] = "%";
        size_t n = 1;
        bool wide = false;

        if (*f != '%' || f[1] == '%') {
            br_str_putc(out, *f);
            f += *f == '%' ? 2 : 1;
            continue;
        }
        f = conversion(f + 1, spec, &n, &wide, from);
        if (!f)
            return false;
        if (!*f)
            break;
        f++;
        if (!strchr("diouxXcfFeEgGaAsp", spec[n - 1]))
            br_str_puts(out, spec);
        else if (!put_one(out, spec, n, wide, from))
            return false;
    }
    return true;
}
