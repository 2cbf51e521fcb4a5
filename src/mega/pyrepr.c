/* pyrepr.c - repr() of what a JSON document can hold.
 *
 * Recursion is bounded by the reader's limit on nesting (BR_JSON_MAX_DEPTH).
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/pyrepr.h"

#include <string.h>

static const struct {
    uint32_t lo, hi;
} hidden[] = {
#define U(lo, hi) {lo, hi},
#include "mega/pyprint.def"
#undef U
};

static bool
printable(uint32_t cp)
{
    size_t lo = 0, hi = BR_COUNT(hidden);

    if (cp < 128)
        return cp >= 32 && cp != 127;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (cp > hidden[mid].hi)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo == BR_COUNT(hidden) || cp < hidden[lo].lo;
}

/* The code point at p; the reader has checked the encoding (surrogates are
 * allowed), so only the end is watched. */
static uint32_t
decode(const unsigned char *p, size_t left, size_t *n)
{
    uint32_t cp = p[0];

    *n = cp < 0x80 ? 1 : cp < 0xe0 ? 2 : cp < 0xf0 ? 3 : 4;
    if (*n == 1)
        return cp;
    *n = BR_MIN(*n, left);
    cp &= 0xffu >> (*n + 1);
    for (size_t i = 1; i < *n; i++)
        cp = cp << 6 | (p[i] & 0x3f);
    return cp;
}

static void
escape(br_str *out, uint32_t cp)
{
    if (cp == '\t' || cp == '\n' || cp == '\r')
        br_str_printf(out, "\\%c", cp == '\t' ? 't' : cp == '\n' ? 'n' : 'r');
    else if (cp < 0x100)
        br_str_printf(out, "\\x%02x", cp);
    else if (cp < 0x10000)
        br_str_printf(out, "\\u%04x", cp);
    else
        br_str_printf(out, "\\U%08x", cp);
}

void
br_py_repr_text(br_str *out, br_text t)
{
    bool single = t.n && memchr(t.p, '\'', t.n);
    bool twice = t.n && memchr(t.p, '"', t.n);
    char quote = single && !twice ? '"' : '\'';
    size_t n;

    br_str_putc(out, quote);
    for (size_t i = 0; i < t.n; i += n) {
        uint32_t cp = decode((const unsigned char *)t.p + i, t.n - i, &n);

        if (cp == '\\' || cp == (unsigned char)quote)
            br_str_printf(out, "\\%c", (char)cp);
        else if (printable(cp))
            br_str_put(out, t.p + i, n);
        else
            escape(out, cp);
    }
    br_str_putc(out, quote);
}

static void
items(br_str *out, const br_json *v, char open, char close)
{
    const br_json *m;

    br_str_putc(out, open);
    for (m = v->child; m; m = m->next) {
        if (m != v->child)
            br_str_puts(out, ", ");
        if (open == '{') {
            br_py_repr_text(out, (br_text){m->key, m->key_n});
            br_str_puts(out, ": ");
        }
        br_py_repr(out, m);
    }
    br_str_putc(out, close);
}

void
br_py_repr(br_str *out, const br_json *v)
{
    char num[32];

    switch ((br_json_kind)v->kind) {
    case BR_J_NULL: br_str_puts(out, "None"); break;
    case BR_J_BOOL: br_str_puts(out, v->b ? "True" : "False"); break;
    case BR_J_INT: br_str_printf(out, "%lld", (long long)v->i); break;
    case BR_J_BIGINT: br_str_put(out, v->s, v->n); break;
    case BR_J_FLOAT: br_str_put(out, num, br_f64_repr(num, v->f)); break;
    case BR_J_STR: br_py_repr_text(out, (br_text){v->s, v->n}); break;
    case BR_J_ARR: items(out, v, '[', ']'); break;
    case BR_J_OBJ: items(out, v, '{', '}'); break;
    }
}

void
br_py_str(br_str *out, const br_json *v)
{
    if (v->kind == BR_J_STR)
        br_str_put(out, v->s, v->n);
    else
        br_py_repr(out, v);
}
