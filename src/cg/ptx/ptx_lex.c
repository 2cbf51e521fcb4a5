/* ptx_lex.c - tokens of PTX: words, strings, single characters.
 *
 * A word is a run of letters, digits and _ $ % . :: - so an opcode with all its
 * modifiers is one, and so is %tid.x; one that begins with a dot ends before
 * the next. A sign is part of a number in its exponent alone: 1.0e-5.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include "base/bits.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

br_code
px_fail(px_parser *p, const char *fmt, ...)
{
    char buf[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    return br_fail(p->st, BR_E_FORMAT, "line %u: %s", p->line, buf);
}

br_code
px_oom(px_parser *p)
{
    return br_fail(p->st, BR_E_OOM, "PTX: out of memory");
}

static bool
in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%' ||
           c == '.';
}

static br_code
skip_space(px_parser *p)
{
    while (p->p < p->end) {
        if (*p->p == '\n')
            p->line++, p->p++;
        else if (*p->p == ' ' || *p->p == '\t' || *p->p == '\r' ||
                 *p->p == '\f' || *p->p == '\v')
            p->p++;
        else if (p->end - p->p > 1 && p->p[0] == '/' && p->p[1] == '/')
            while (p->p < p->end && *p->p != '\n')
                p->p++;
        else if (p->end - p->p > 1 && p->p[0] == '/' && p->p[1] == '*') {
            for (p->p += 2; p->end - p->p > 1; p->p++) {
                if (p->p[0] == '*' && p->p[1] == '/')
                    break;
                p->line += *p->p == '\n';
            }
            if (p->end - p->p < 2)
                return px_fail(p, "a comment without its end");
            p->p += 2;
        } else
            break;
    }
    return BR_OK;
}

static size_t
digits_at(const char *p, const char *end)
{
    const char *q = p;

    while (q < end && *q >= '0' && *q <= '9')
        q++;
    return (size_t)(q - p);
}

/* Letters of the decimal with a point or an exponent at p: 1.5, .5, 3., 2e3; 0:
 * there is none. */
static size_t
decimal_at(const char *p, const char *end)
{
    size_t whole = digits_at(p, end), part = 0, n = whole, e;
    bool point = p + n < end && p[n] == '.';

    if (point)
        part = digits_at(p + n + 1, end);
    if (whole + part == 0)
        return 0;
    n += point + part;
    e = n + 1;
    if (p + n >= end || (p[n] != 'e' && p[n] != 'E'))
        return point ? n : 0;
    if (p + e < end && (p[e] == '-' || p[e] == '+'))
        e++;
    part = p + e < end ? digits_at(p + e, end) : 0;
    return part ? e + part : point ? n : 0;
}

br_code
px_next(px_parser *p)
{
    const char *from;
    size_t n;

    BR_TRY(skip_space(p));
    p->word = (br_text){p->p, 0};
    if (p->p == p->end || (*p->p == 0 && p->p + 1 == p->end)) {
        p->tok = 0;
        return BR_OK;
    }
    from = p->p;
    n = decimal_at(from, p->end);
    if (n && (from + n == p->end || !in_word(from[n]))) {
        p->p += n;
        p->tok = 'w';
        p->word = (br_text){from, n};
        return BR_OK;
    }
    if (in_word(*from)) {
        bool directive = *from == '.'; /* .reg.u64 is two words */

        while (p->p < p->end && !(directive && p->p > from && *p->p == '.') &&
               (in_word(*p->p) || (p->end - p->p > 2 && p->p[0] == ':' &&
                                   p->p[1] == ':' && in_word(p->p[2]))))
            p->p += *p->p == ':' ? 2 : 1;
        p->tok = 'w';
        p->word.n = (size_t)(p->p - from);
        return BR_OK;
    }
    p->p++;
    p->tok = *from;
    if (p->tok == 'w' || (unsigned char)p->tok < 0x20 || p->tok == 0x7f ||
        (unsigned char)p->tok > 0x7f)
        return px_fail(p, "byte %02x does not belong here",
                       (unsigned)(unsigned char)*from);
    if (*from == '"') {
        while (p->p < p->end && *p->p != '"' && *p->p != '\n')
            p->p += p->p[0] == '\\' && p->end - p->p > 1 ? 2 : 1;
        if (p->p == p->end || *p->p != '"')
            return px_fail(p, "a string without its end");
        p->word = (br_text){from + 1, (size_t)(p->p - from - 1)};
        p->p++;
    }
    return BR_OK;
}

bool
px_is(const px_parser *p, const char *word)
{
    return p->tok == 'w' && br_text_is(p->word, word);
}

bool
px_number(br_text t, px_opnd *out)
{
    int base = 10;
    size_t i = 0, digits = 0;
    uint64_t v = 0;
    char kind = t.n > 1 && t.p[0] == '0' ? t.p[1] : 0;

    out->kind = O_INT;
    if (t.n && decimal_at(t.p, t.p + t.n) == t.n) {
        double d;

        /* Beyond a double: ptxas has none either. */
        if (!br_f64_read(t, &d) || !isfinite(d))
            return false;
        out->imm = br_f64_bits(d);
        out->kind = O_F64;
        return true;
    }
    if (t.n == 0 || t.p[0] < '0' || t.p[0] > '9')
        return false;
    if (kind == 'x' || kind == 'X')
        base = 16, i = 2;
    else if (kind == 'b' || kind == 'B')
        base = 2, i = 2;
    else if (kind == 'f' || kind == 'F' || kind == 'd' || kind == 'D') {
        base = 16, i = 2;
        out->kind = kind == 'f' || kind == 'F' ? O_F32 : O_F64;
        if (t.n != (out->kind == O_F32 ? 10 : 18))
            return false;
    } else if (kind >= '0' && kind <= '7')
        base = 8, i = 1;
    for (int d; i < t.n && (d = br_hex_digit(t.p[i])) >= 0 && d < base;
         i++, digits++)
        if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
            __builtin_add_overflow(v, (uint64_t)d, &v))
            return false;
    if (i < t.n && (t.p[i] == 'U' || t.p[i] == 'u') && out->kind == O_INT)
        i++;
    out->imm = v;
    return digits > 0 && i == t.n;
}
