/* pattern.c - a regular expression as the body of a JSON string, or as a text.
 *
 *   ^a"[^b]$   ->   "a" "\\\"" ([^\x00-\x1f"\\b] | "\\\"" | "\\\\" | "\\n" ...)
 *
 * ECMAScript's syntax without look-around, back references, \b and \p. In JSON,
 * without ^ or $, any text may stand before or behind, characters that JSON
 * escapes come escaped, and control characters without a short escape never
 * come, which is narrower than the pattern. A text is all of it, as if ^ and $
 * were there, and as it is, but for NUL.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/grammar.h"

#include "base/json.h"
#include "model/unicode.h"

#include <string.h>

enum { MAX_DEPTH = 32, MAX_SET = 128 };

typedef struct set {
    struct {
        uint32_t lo, hi;
    } r[MAX_SET];
    size_t n;
    bool inverse;
} set;

typedef struct reader {
    const char *p, *end;
    br_str *out;
    br_status *st;
    bool json;
} reader;

static br_code
refuse(const reader *x, const char *what)
{
    return br_fail(x->st, BR_E_UNSUPPORTED, "%s", what);
}

/* ---- sets of characters -------------------------------------------------- */

static br_code
add(const reader *x, set *s, uint32_t lo, uint32_t hi)
{
    if (s->n == MAX_SET)
        return refuse(x, "a class of over 128 ranges");
    s->r[s->n].lo = lo;
    s->r[s->n++].hi = hi;
    return BR_OK;
}

static bool
holds(const set *s, uint32_t c)
{
    bool in = false;

    for (size_t i = 0; i < s->n; i++)
        in |= c >= s->r[i].lo && c <= s->r[i].hi;
    return in != s->inverse;
}

static bool
is_plain(const reader *x, uint32_t c)
{
    return !x->json || (c >= 0x20 && c != 0x7F && c != '"' && c != '\\');
}

/* Its characters that stand there as they are. ASCII one by one; what is above,
 * as ranges. */
static bool
put_plain(reader *x, const set *s)
{
    bool any = s->inverse;

    br_str_puts(x->out, s->inverse ? "[^\\x00" : "[");
    if (s->inverse && x->json)
        br_str_puts(x->out, "-\\x1f\\x22\\x5c\\x7f");
    for (uint32_t c = 1; c < 0x80; c++) {
        if (!is_plain(x, c) || holds(s, c) == s->inverse)
            continue;
        br_str_printf(x->out, "\\x%02x", c);
        any = true;
    }
    for (size_t i = 0; i < s->n; i++) {
        uint32_t lo = BR_MAX(s->r[i].lo, 0x80u), hi = s->r[i].hi;

        lo = lo >= 0xD800 && lo < 0xE000 ? 0xE000 : lo;
        hi = hi >= 0xD800 && hi < 0xE000 ? 0xD7FF : hi;
        if (lo > hi)
            continue;
        br_str_printf(x->out, "\\U%08x-\\U%08x", lo, hi);
        any = true;
    }
    br_str_putc(x->out, ']');
    return any;
}

static br_code
put_set(reader *x, const set *s)
{
    static const char special[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    size_t begun;
    bool any;

    br_str_putc(x->out, '(');
    begun = x->out->n;
    any = put_plain(x, s);
    if (!any && !x->out->oom)
        x->out->n = begun;
    for (size_t i = 0; x->json && special[i]; i++) {
        if (!holds(s, (uint8_t)special[i]))
            continue;
        br_str_puts(x->out, any ? " | " : "");
        any = true;
        br_grammar_quote(x->out, (br_text){(char[2]){'\\', names[i]}, 2});
    }
    br_str_putc(x->out, ')');
    return any ? BR_OK : refuse(x, "it asks for characters that are not made");
}

/* ---- atoms --------------------------------------------------------------- */

static br_code
hex(reader *x, int n, uint32_t *out)
{
    static const char all[] = "0123456789abcdefABCDEF";

    *out = 0;
    for (int i = 0; i < n; i++, x->p++) {
        const char *at =
            x->p < x->end ? memchr(all, *x->p, sizeof all - 1) : NULL;
        uint32_t v = at ? (uint32_t)(at - all) : 0;

        if (!at)
            return refuse(x, "a hexadecimal digit is missing");
        *out = *out << 4 | (v > 15 ? v - 6 : v);
    }
    return *out >= 0xD800 && *out < 0xE000 ? refuse(x, "half a character")
                                           : BR_OK;
}

/* \d \w \s and their opposites; false: none of them. */
static bool
known_class(char c, set *s)
{
    static const struct {
        char name;
        uint32_t r[10][2];
        size_t n;
    } known[] = {{'d', {{'0', '9'}}, 1},
                 {'w', {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, 4},
                 {'s',
                  {{9, 13},
                   {32, 32},
                   {0xA0, 0xA0},
                   {0x1680, 0x1680},
                   {0x2000, 0x200A},
                   {0x2028, 0x2029},
                   {0x202F, 0x202F},
                   {0x205F, 0x205F},
                   {0x3000, 0x3000},
                   {0xFEFF, 0xFEFF}},
                  10}};

    for (size_t i = 0; i < BR_COUNT(known); i++) {
        if ((c | 0x20) != known[i].name)
            continue;
        for (size_t k = 0; k < known[i].n; k++) {
            s->r[k].lo = known[i].r[k][0];
            s->r[k].hi = known[i].r[k][1];
        }
        s->n = known[i].n;
        s->inverse = c != known[i].name;
        return true;
    }
    return false;
}

/* Behind a backslash: one character into *c, or a class into *s. */
static br_code
escape(reader *x, uint32_t *c, set *s, bool *is_class)
{
    static const char names[] = "nrtfv", values[] = "\n\r\t\f\v";
    const char *at;

    *is_class = false;
    if (x->p == x->end)
        return refuse(x, "a backslash at the end");
    if (known_class(*x->p, s)) {
        *is_class = true;
        x->p++;
        return BR_OK;
    }
    at = strchr(names, *x->p);
    *c = (uint8_t)*x->p;
    if (at && *at)
        *c = (uint8_t)values[at - names];
    else if (*x->p == 'x' || *x->p == 'u')
        return hex(x, *x->p++ == 'x' ? 2 : 4, c);
    else if ((*c | 0x20) >= 'a' && (*c | 0x20) <= 'z')
        return refuse(x, "an escape that cannot be enforced");
    else if (*c >= '0' && *c <= '9')
        return refuse(x, "back references cannot be enforced");
    x->p += *c < 0x80 ? 1
                      : br_utf8_next((const uint8_t *)x->p,
                                     (const uint8_t *)x->end, c);
    return BR_OK;
}

static br_code
one_of_class(reader *x, uint32_t *c, set *sub, bool *is_class)
{
    *is_class = false;
    if (x->p == x->end)
        return refuse(x, "[ without ]");
    if (*x->p == '\\') {
        x->p++;
        if (x->p < x->end && *x->p == 'b') { /* here a backspace */
            *c = '\b';
            x->p++;
            return BR_OK;
        }
        if (x->p < x->end && *x->p == '-') {
            *c = '-';
            x->p++;
            return BR_OK;
        }
        return escape(x, c, sub, is_class);
    }
    x->p += br_utf8_next((const uint8_t *)x->p, (const uint8_t *)x->end, c);
    return BR_OK;
}

static br_code
bracket(reader *x, set *s)
{
    *s = (set){0};
    if (x->p < x->end && *x->p == '^') {
        s->inverse = true;
        x->p++;
    }
    while (x->p == x->end || *x->p != ']') {
        uint32_t lo = 0, hi = 0;
        bool is_class;
        set sub;

        BR_TRY(one_of_class(x, &lo, &sub, &is_class));
        if (is_class && sub.inverse)
            return refuse(x, "\\D, \\W, \\S within [ ] cannot be enforced");
        for (size_t i = 0; is_class && i < sub.n; i++)
            BR_TRY(add(x, s, sub.r[i].lo, sub.r[i].hi));
        if (is_class)
            continue;
        hi = lo;
        if (x->end - x->p >= 2 && *x->p == '-' && x->p[1] != ']') {
            x->p++;
            BR_TRY(one_of_class(x, &hi, &sub, &is_class));
            if (is_class || hi < lo)
                return refuse(x, "not a range");
        }
        BR_TRY(add(x, s, lo, hi));
    }
    x->p++;
    return BR_OK;
}

static br_code alternatives(reader *x, int depth);

static br_code
group(reader *x, int depth)
{
    if (x->p < x->end && *x->p == '?') {
        if (x->end - x->p < 2 || x->p[1] != ':')
            return refuse(x, "(? cannot be enforced");
        x->p += 2;
    }
    BR_TRY(alternatives(x, depth + 1));
    if (x->p == x->end || *x->p != ')')
        return refuse(x, "( without )");
    x->p++;
    return BR_OK;
}

static br_code
atom(reader *x, int depth)
{
    set s = {0};
    bool is_class = false;
    char c = *x->p;
    uint32_t ch = 0;

    if (strchr("*+?{}]", c))
        return refuse(x, "nothing to repeat");
    if (strchr("^$", c))
        return refuse(x, "^ and $ only at the ends can be enforced");
    if (c == '(') {
        x->p++;
        return group(x, depth);
    }
    if (c == '[') {
        x->p++;
        BR_TRY(bracket(x, &s));
        return put_set(x, &s);
    }
    if (c == '.') {
        x->p++;
        s = (set){{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}, 3, true};
        return put_set(x, &s);
    }
    if (c == '\\') {
        x->p++;
        BR_TRY(escape(x, &ch, &s, &is_class));
    } else {
        x->p +=
            br_utf8_next((const uint8_t *)x->p, (const uint8_t *)x->end, &ch);
    }
    if (!is_class)
        BR_TRY(add(x, &s, ch, ch));
    return put_set(x, &s);
}

/* {4,2}; at: behind the {. */
static bool
is_upside_down(const char *at, const char *close)
{
    const char *comma = memchr(at, ',', (size_t)(close - at));
    int64_t least, most;

    return comma &&
           br_json_to_i64((br_text){at, (size_t)(comma - at)}, &least) &&
           br_json_to_i64((br_text){comma + 1, (size_t)(close - comma - 1)},
                          &most) &&
           most < least;
}

/* * + ? {2} {2,} {2,4}, greedy or not: the same texts. */
static br_code
quantifier(reader *x)
{
    const char *at = x->p;
    size_t n = 1;

    if (at == x->end || !strchr("*+?{", *at)) {
        br_str_putc(x->out, ' ');
        return BR_OK;
    }
    if (*at == '{') {
        const char *close = memchr(at, '}', (size_t)(x->end - at));

        if (!close || at[1] < '0' || at[1] > '9')
            return refuse(x, "not a repetition");
        n = (size_t)(close - at) + 1;
        for (size_t i = 1, commas = 0; i + 1 < n; i++)
            if ((at[i] < '0' || at[i] > '9') && (at[i] != ',' || commas++))
                return refuse(x, "not a repetition");
        if (is_upside_down(at + 1, close))
            return refuse(x, "a repetition with less at most than at least");
    }
    br_str_put(x->out, at, n);
    br_str_putc(x->out, ' ');
    x->p += n;
    if (x->p < x->end && *x->p == '?')
        x->p++;
    return x->p < x->end && strchr("*+?{", *x->p)
               ? refuse(x, "nothing to repeat")
               : BR_OK;
}

static br_code
sequence(reader *x, int depth)
{
    bool outer = depth == 0;
    bool begins = outer && x->p < x->end && *x->p == '^', ends = false;

    x->p += begins;
    if (x->json && outer && !begins)
        br_str_puts(x->out, "char* ");
    while (x->p < x->end && *x->p != '|' && *x->p != ')') {
        if (outer && *x->p == '$' && (x->p + 1 == x->end || x->p[1] == '|')) {
            ends = true;
            x->p++;
            break;
        }
        BR_TRY(atom(x, depth));
        BR_TRY(quantifier(x));
    }
    if (x->json && outer && !ends)
        br_str_puts(x->out, "char* ");
    return BR_OK;
}

static br_code
alternatives(reader *x, int depth)
{
    if (depth > MAX_DEPTH)
        return refuse(x, "over 32 ( in each other");
    br_str_puts(x->out, "(");
    for (;;) {
        BR_TRY(sequence(x, depth));
        if (x->p == x->end || *x->p != '|')
            break;
        br_str_puts(x->out, "| ");
        x->p++;
    }
    br_str_putc(x->out, ')');
    return BR_OK;
}

static br_code
translate(br_text pattern, bool json, br_str *out, br_status *st)
{
    reader x = {pattern.p, pattern.p + pattern.n, out, st, json};

    if (pattern.n > 4096)
        return refuse(&x, "over 4096 bytes");
    if (memchr(pattern.p, 0, pattern.n))
        return refuse(&x, "holds a NUL");
    BR_TRY(alternatives(&x, 0));
    if (x.p < x.end)
        return refuse(&x, ") without (");
    return out->oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}

br_code
br_pattern_grammar(br_text pattern, br_str *out, br_status *st)
{
    return translate(pattern, true, out, st);
}

br_code
br_regex_grammar(br_text pattern, br_str *out, br_status *st)
{
    br_str_puts(out, "root ::= ");
    return translate(pattern, false, out, st);
}
