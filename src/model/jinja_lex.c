/* jinja_lex.c - template source to tokens, with Jinja's rules on whitespace.
 *
 *   {{ e }}  {% tag %}  {# comment #}     - strips, + keeps
 *
 * lstrip_blocks: blanks between the start of a line and {% or {# go.
 * trim_blocks: the newline right after %} or #} goes, but not that of {% raw %}.
 * One newline at the very end of the source goes too, and CR LF counts as LF.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/jinja_ast.h"

#include <string.h>

struct lexer {
    br_arena *a;
    br_status *st;
    const char *p, *end, *begin;
    uint32_t line;
    BR_VEC(jj_token) out;
    bool trim_next;  /* the text that follows loses its first newline */
    bool strip_next; /* ... or all blanks at its start */
};

static br_code
fail(struct lexer *l, const char *what)
{
    return br_fail(l->st, BR_E_FORMAT, "line %u: %s", l->line, what);
}

static br_code
emit(struct lexer *l, jj_tok kind, const char *p, size_t n)
{
    jj_token t = {.kind = (uint8_t)kind, .line = l->line, .text = {p, n}};

    if (!br_vec_push(&l->out, t))
        return br_fail(l->st, BR_E_OOM, "template");
    return BR_OK;
}

static bool
is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' ||
           c == '\v';
}

static void
count_lines(struct lexer *l, const char *from, const char *to)
{
    for (; from < to; from++)
        l->line += *from == '\n';
}

/* The text up to the next tag, cut by the rules on both sides. */
static br_code
text(struct lexer *l, const char *to, bool tag_follows)
{
    const char *p = l->p, *e = to;
    bool block = tag_follows && (to[1] == '%' || to[1] == '#');
    char mark = tag_follows && to + 2 < l->end ? to[2] : 0;

    if (l->strip_next)
        while (p < e && is_space(*p))
            p++;
    else if (l->trim_next && p < e && *p == '\n')
        p++;
    l->strip_next = l->trim_next = false;
    if (mark == '-') {
        while (e > p && is_space(e[-1]))
            e--;
    } else if (block && mark != '+') {
        const char *q = e;
        while (q > l->p && (q[-1] == ' ' || q[-1] == '\t'))
            q--;
        /* only when nothing else stands on the line before the tag */
        if (q == l->begin || q[-1] == '\n')
            e = BR_MAX(q, p);
    }
    if (e > p)
        BR_TRY(emit(l, JT_TEXT, p, (size_t)(e - p)));
    count_lines(l, l->p, to);
    l->p = to;
    return BR_OK;
}

static br_code
comment(struct lexer *l)
{
    const char *p = l->p + 2;

    while (p + 1 < l->end && !(p[0] == '#' && p[1] == '}'))
        p++;
    if (p + 1 >= l->end)
        return fail(l, "a comment without its end: '#}'");
    l->strip_next = p > l->p + 2 && p[-1] == '-';
    l->trim_next = p[-1] != '+';
    count_lines(l, l->p, p);
    l->p = p + 2;
    return BR_OK;
}

static size_t
put_utf8(char *o, uint32_t c)
{
    if (c < 0x80) {
        o[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        o[0] = (char)(0xc0 | c >> 6);
        o[1] = (char)(0x80 | (c & 63));
        return 2;
    }
    if (c < 0x10000) {
        o[0] = (char)(0xe0 | c >> 12);
        o[1] = (char)(0x80 | (c >> 6 & 63));
        o[2] = (char)(0x80 | (c & 63));
        return 3;
    }
    o[0] = (char)(0xf0 | c >> 18);
    o[1] = (char)(0x80 | (c >> 12 & 63));
    o[2] = (char)(0x80 | (c >> 6 & 63));
    o[3] = (char)(0x80 | (c & 63));
    return 4;
}

/* \7, \12, \101: a character by up to three octal digits. */
static size_t
octal(const char *p, const char *end, char *o, size_t *n)
{
    uint32_t c = 0;
    size_t eaten = 0;

    for (; eaten < 3 && p + eaten < end && p[eaten] >= '0' && p[eaten] < '8';
         eaten++)
        c = c << 3 | (uint32_t)(p[eaten] - '0');
    *n = eaten ? put_utf8(o, c) : 0;
    return eaten;
}

/* One escape at p (after the backslash); returns the bytes eaten, 0 when it
 * is none: then the backslash stays, as in Python. */
static size_t
escape(const char *p, const char *end, char *o, size_t *n)
{
    static const char from[] = "ntrbfav\\'\"", to[] = "\n\t\r\b\f\a\v\\'\"";
    const char *k = p < end ? memchr(from, *p, sizeof from - 1) : NULL;
    size_t digits = p >= end    ? 0
                    : *p == 'x' ? 2
                    : *p == 'u' ? 4
                    : *p == 'U' ? 8
                                : 0;
    uint32_t c = 0;

    if (p < end && *p == '\n') { /* a line continued */
        *n = 0;
        return 1;
    }
    if (k) {
        o[0] = to[k - from];
        *n = 1;
        return 1;
    }
    if (!digits)
        return octal(p, end, o, n);
    if ((size_t)(end - p) <= digits)
        return 0;
    for (size_t i = 1; i <= digits; i++) {
        if (br_hex_digit(p[i]) < 0)
            return 0;
        c = c << 4 | (uint32_t)br_hex_digit(p[i]);
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *n = put_utf8(o, c);
    return 1 + digits;
}

static br_code
string(struct lexer *l)
{
    const char quote = *l->p, *p = l->p + 1, *e = p;
    char *o, *out;

    while (e < l->end && *e != quote)
        e += *e == '\\' && e + 1 < l->end ? 2 : 1;
    if (e >= l->end)
        return fail(l, "a string without its end");
    out = o = br_arena_get(l->a, (size_t)(e - p) + 4);
    if (!o)
        return br_fail(l->st, BR_E_OOM, "template");
    while (p < e) {
        size_t n = 0, eaten = *p == '\\' ? escape(p + 1, e, o, &n) : 0;
        if (eaten) {
            p += 1 + eaten;
            o += n;
        } else {
            *o++ = *p++;
        }
    }
    BR_TRY(emit(l, JT_STR, out, (size_t)(o - out)));
    count_lines(l, l->p, e);
    l->p = e + 1;
    return BR_OK;
}

static bool
is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static br_code
number(struct lexer *l)
{
    const char *p = l->p;
    bool real = false;

    while (p < l->end && (is_digit(*p) || *p == '_'))
        p++;
    if (p + 1 < l->end && *p == '.' && is_digit(p[1])) {
        real = true;
        for (p++; p < l->end && is_digit(*p);)
            p++;
    }
    if (p + 1 < l->end && (*p == 'e' || *p == 'E') &&
        (is_digit(p[1]) ||
         (p + 2 < l->end && (p[1] == '-' || p[1] == '+') && is_digit(p[2])))) {
        real = true;
        for (p += 2; p < l->end && is_digit(*p);)
            p++;
    }
    BR_TRY(emit(l, real ? JT_FLOAT : JT_INT, l->p, (size_t)(p - l->p)));
    l->p = p;
    return BR_OK;
}

static br_code
op(struct lexer *l)
{
    static const char *const two[] = {"==", "!=", "<=", ">=", "//", "**"};
    size_t left = (size_t)(l->end - l->p);

    for (size_t i = 0; i < BR_COUNT(two); i++)
        if (left >= 2 && !memcmp(l->p, two[i], 2)) {
            BR_TRY(emit(l, JT_OP, l->p, 2));
            l->p += 2;
            return BR_OK;
        }
    if (!strchr("+-*/%~<>=()[]{},.:|", *l->p) || !*l->p) {
        if ((unsigned char)*l->p < 32)
            return fail(l, "a control character in an expression");
        return br_fail(l->st, BR_E_FORMAT, "line %u: unexpected '%c'", l->line,
                       *l->p);
    }
    BR_TRY(emit(l, JT_OP, l->p, 1));
    l->p++;
    return BR_OK;
}

/* At the end of this tag? Brackets that are open keep "}}" an operator. */
static bool
closes(const struct lexer *l, const char *close, int depth, size_t *n)
{
    const char *p = l->p;

    if (depth > 0)
        return false;
    if (p < l->end && (*p == '-' || *p == '+'))
        p++;
    if (l->end - p < 2 || p[0] != close[0] || p[1] != close[1])
        return false;
    *n = (size_t)(p + 2 - l->p);
    return true;
}

static br_code
tag(struct lexer *l, bool out)
{
    const char *close = out ? "}}" : "%}";
    size_t n = 0;
    int depth = 0;

    BR_TRY(emit(l, out ? JT_OUT_OPEN : JT_TAG_OPEN, l->p, 2));
    l->p += 2;
    if (l->p < l->end && (*l->p == '-' || *l->p == '+'))
        l->p++;
    for (;;) {
        while (l->p < l->end && is_space(*l->p))
            l->line += *l->p++ == '\n';
        if (l->p >= l->end)
            return fail(l, out ? "'{{' without '}}'" : "'{%' without '%}'");
        if (closes(l, close, depth, &n))
            break;
        if (*l->p == '"' || *l->p == '\'') {
            BR_TRY(string(l));
        } else if (is_digit(*l->p)) {
            BR_TRY(number(l));
        } else if (is_alpha(*l->p)) {
            const char *p = l->p;
            while (p < l->end && (is_alpha(*p) || is_digit(*p)))
                p++;
            BR_TRY(emit(l, JT_NAME, l->p, (size_t)(p - l->p)));
            l->p = p;
        } else {
            depth += strchr("([{", *l->p) && *l->p ? 1 : 0;
            depth -= strchr(")]}", *l->p) && *l->p ? 1 : 0;
            BR_TRY(op(l));
        }
    }
    l->strip_next = *l->p == '-';
    l->trim_next = !out && *l->p != '+';
    l->p += n;
    return emit(l, out ? JT_OUT_CLOSE : JT_TAG_CLOSE, l->p - 2, 2);
}

/* {% raw %}: is this tag one? Then everything up to {% endraw %} is text. */
static const char *
tag_named(const char *p, const char *end, const char *name, const char **after)
{
    size_t n = strlen(name);

    p += 2;
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    while (p < end && is_space(*p))
        p++;
    if ((size_t)(end - p) < n || memcmp(p, name, n) != 0)
        return NULL;
    p += n;
    while (p < end && is_space(*p))
        p++;
    if (p < end && (*p == '-' || *p == '+'))
        p++;
    if (end - p < 2 || p[0] != '%' || p[1] != '}')
        return NULL;
    *after = p + 2;
    return p;
}

static br_code
raw(struct lexer *l, const char *close, const char *after)
{
    const char *q = after, *end_after = NULL;

    l->strip_next = close[-1] == '-'; /* the newline behind {% raw %} stays */
    count_lines(l, l->p, after);
    l->p = after;
    while (q + 1 < l->end &&
           !(q[0] == '{' && q[1] == '%' &&
             (close = tag_named(q, l->end, "endraw", &end_after))))
        q++;
    if (!end_after)
        return fail(l, "'raw' without 'endraw'");
    BR_TRY(text(l, q, true));
    l->strip_next = close[-1] == '-';
    l->trim_next = close[-1] != '+';
    l->p = end_after;
    return BR_OK;
}

static br_code
lex(struct lexer *l)
{
    while (l->p < l->end) {
        const char *q = l->p, *after, *close;
        while (q + 1 < l->end &&
               !(q[0] == '{' && (q[1] == '{' || q[1] == '%' || q[1] == '#')))
            q++;
        if (q + 1 >= l->end) {
            BR_TRY(text(l, l->end, false));
            break;
        }
        BR_TRY(text(l, q, true));
        if (q[1] == '#')
            BR_TRY(comment(l));
        else if (q[1] == '%' && (close = tag_named(q, l->end, "raw", &after)))
            BR_TRY(raw(l, close, after));
        else
            BR_TRY(tag(l, q[1] == '{'));
    }
    return emit(l, JT_END, l->end, 0);
}

br_code
jj_lex(jj_tokens *out, br_arena *a, br_text source, br_status *st)
{
    struct lexer l = {.a = a, .st = st, .line = 1};
    char *s = br_arena_get(a, source.n + 1);
    size_t n = 0;
    br_code rc;

    if (!s)
        return br_fail(st, BR_E_OOM, "template");
    for (size_t i = 0; i < source.n; i++)
        if (!(source.p[i] == '\r' && i + 1 < source.n &&
              source.p[i + 1] == '\n'))
            s[n++] = source.p[i] == '\r' ? '\n' : source.p[i];
    if (n && s[n - 1] == '\n')
        n--;
    l.begin = l.p = s;
    l.end = s + n;
    s[n] = 0;
    rc = lex(&l);
    out->n = l.out.n;
    out->at = rc == BR_OK
                  ? br_arena_dup(a, l.out.at, l.out.n * sizeof *l.out.at)
                  : NULL;
    br_vec_fini(&l.out);
    if (rc == BR_OK && !out->at)
        return br_fail(st, BR_E_OOM, "template");
    return rc;
}
