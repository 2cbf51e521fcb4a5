/* json_write.c - a streaming writer, byte for byte Python's json.dumps.
 *
 * No stack: where a comma or a line break goes depends only on whether the
 * innermost container is still empty, and after any close it is not.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <math.h>
#include <string.h>

void
br_json_w_begin(br_json_writer *w, br_str *out, int indent)
{
    *w = (br_json_writer){.out = out, .indent = indent, .first = true};
}

/* A line break and the indentation, after a comma if there is one: in one
 * piece from a text that holds them all. */
static void
new_line(br_json_writer *w, bool comma)
{
    static const char text[] =
        ",\n                                                                ";
    size_t n = (size_t)w->depth * (size_t)w->indent;
    size_t part = BR_MIN(n, sizeof text - 3);

    br_str_put(w->out, text + !comma, comma + 1 + part);
    for (n -= part; n > 0; n -= part) {
        part = BR_MIN(n, sizeof text - 3);
        br_str_put(w->out, text + 2, part);
    }
}

/* What goes between the last thing written and the next. */
static void
before(br_json_writer *w)
{
    bool comma = !w->first;

    if (w->after_key) {
        w->after_key = false;
        return;
    }
    br_assert((w->depth > 0 || w->first) && "one value at the top");
    w->first = false;
    if (w->indent && w->depth)
        new_line(w, comma);
    else if (comma)
        br_str_put(w->out, ", ", w->compact ? 1 : 2);
}

static void
open_with(br_json_writer *w, char c)
{
    before(w);
    br_str_putc(w->out, c);
    w->depth++;
    w->first = true;
}

static void
close_with(br_json_writer *w, char c)
{
    br_assert(w->depth > 0 && !w->after_key && "close what was opened");
    w->depth--;
    if (w->indent && !w->first)
        new_line(w, false);
    w->first = false;
    br_str_putc(w->out, c);
}

void
br_json_w_obj(br_json_writer *w)
{
    open_with(w, '{');
}

void
br_json_w_obj_end(br_json_writer *w)
{
    close_with(w, '}');
}

void
br_json_w_arr(br_json_writer *w)
{
    open_with(w, '[');
}

void
br_json_w_arr_end(br_json_writer *w)
{
    close_with(w, ']');
}

/* ---- strings ---------------------------------------------------------- */

static void
put_u(br_str *out, unsigned unit)
{
    static const char hex[] = "0123456789abcdef";
    char b[6] = {'\\',
                 'u',
                 hex[unit >> 12 & 15],
                 hex[unit >> 8 & 15],
                 hex[unit >> 4 & 15],
                 hex[unit & 15]};

    br_str_put(out, b, sizeof b);
}

/* Bytes of the WTF-8 character at p (UTF-8, or a surrogate in three bytes)
 * and its code point; 0 when there is none. */
static int
wtf8(const char *s, const char *end, unsigned *cp)
{
    static const unsigned least[5] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned c = (unsigned char)*s;
    int n, i;

    n = c < 0x80   ? 1
        : c < 0xC0 ? 0
        : c < 0xE0 ? 2
        : c < 0xF0 ? 3
        : c < 0xF8 ? 4
                   : 0;
    if (n == 0 || end - s < n)
        return 0;
    *cp = n == 1 ? c : c & (0x7Fu >> n);
    for (i = 1; i < n; i++) {
        if (((unsigned char)s[i] & 0xC0) != 0x80)
            return 0;
        *cp = *cp << 6 | ((unsigned char)s[i] & 0x3F);
    }
    return *cp < least[n] || *cp > 0x10FFFF ? 0 : n;
}

static void
put_ascii(br_str *out, unsigned char c)
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    const char *hit = c ? strchr(from, c) : NULL;
    char b[2] = {'\\', hit ? to[hit - from] : 0};

    if (hit)
        br_str_put(out, b, 2);
    else
        put_u(out, c);
}

/* One character that cannot stand as it is (or, with utf8, that may). Returns
 * its length in bytes. */
static int
put_special(br_json_writer *w, const char *p, const char *end)
{
    unsigned cp;
    int n = wtf8(p, end, &cp);

    if (n == 0) {
        cp = 0xFFFD;
        w->replaced = true;
    }
    if (cp < 0x80) {
        put_ascii(w->out, (unsigned char)cp);
    } else if (w->utf8 && (cp < 0xD800 || cp > 0xDFFF)) {
        br_str_put(w->out, n ? p : "\xEF\xBF\xBD", n ? (size_t)n : 3);
    } else if (cp < 0x10000) {
        put_u(w->out, cp);
    } else {
        put_u(w->out, 0xD800 + ((cp - 0x10000) >> 10));
        put_u(w->out, 0xDC00 + ((cp - 0x10000) & 0x3FF));
    }
    return n ? n : 1;
}

static void
put_string(br_json_writer *w, br_text t)
{
    const char *p = t.p, *end = p + t.n, *from = p;

    br_str_putc(w->out, '"');
    while (p < end) {
        unsigned char c = (unsigned char)*p;

        /* DEL counts as special only when the output is to be ASCII. */
        if ((c >= 0x20 && c < 0x7F && c != '"' && c != '\\') ||
            (c == 0x7F && w->utf8)) {
            p++;
            continue;
        }
        br_str_put(w->out, from, (size_t)(p - from));
        p += put_special(w, p, end);
        from = p;
    }
    br_str_put(w->out, from, (size_t)(p - from));
    br_str_putc(w->out, '"');
}

void
br_json_w_key_n(br_json_writer *w, br_text key)
{
    br_assert(w->depth > 0 && !w->after_key && "a key belongs in an object");
    before(w);
    put_string(w, key);
    br_str_put(w->out, ": ", w->compact ? 1 : 2);
    w->after_key = true;
}

void
br_json_w_key(br_json_writer *w, const char *key)
{
    br_json_w_key_n(w, br_text_z(key));
}

void
br_json_w_str(br_json_writer *w, br_text t)
{
    before(w);
    put_string(w, t);
}

void
br_json_w_strz(br_json_writer *w, const char *z)
{
    br_json_w_str(w, br_text_z(z));
}

/* ---- the rest --------------------------------------------------------- */

void
br_json_w_raw(br_json_writer *w, br_text t)
{
    before(w);
    br_str_put(w->out, t.p, t.n);
}

static void
put_digits(br_json_writer *w, uint64_t v, bool neg)
{
    char b[24], *p = b + sizeof b;

    do {
        *--p = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    if (neg)
        *--p = '-';
    br_json_w_raw(w, (br_text){p, (size_t)(b + sizeof b - p)});
}

void
br_json_w_i64(br_json_writer *w, int64_t v)
{
    put_digits(w, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

void
br_json_w_u64(br_json_writer *w, uint64_t v)
{
    put_digits(w, v, false);
}

void
br_json_w_f64(br_json_writer *w, double v)
{
    char b[32];

    if (isnan(v))
        br_json_w_raw(w, BR_TEXT("NaN"));
    else if (isinf(v))
        br_json_w_raw(w, v < 0 ? BR_TEXT("-Infinity") : BR_TEXT("Infinity"));
    else
        br_json_w_raw(w, (br_text){b, br_f64_repr(b, v)});
}

void
br_json_w_bool(br_json_writer *w, bool v)
{
    br_json_w_raw(w, v ? BR_TEXT("true") : BR_TEXT("false"));
}

void
br_json_w_null(br_json_writer *w)
{
    br_json_w_raw(w, BR_TEXT("null"));
}

static void
put_node(br_json_writer *w, const br_json *v)
{
    switch ((br_json_kind)v->kind) {
    case BR_J_NULL: br_json_w_null(w); break;
    case BR_J_BOOL: br_json_w_bool(w, v->b); break;
    case BR_J_INT: br_json_w_i64(w, v->i); break;
    case BR_J_BIGINT: br_json_w_raw(w, (br_text){v->s, v->n}); break;
    case BR_J_FLOAT: br_json_w_f64(w, v->f); break;
    case BR_J_STR: br_json_w_str(w, (br_text){v->s, v->n}); break;
    case BR_J_ARR: br_json_w_arr(w); break;
    case BR_J_OBJ: br_json_w_obj(w); break;
    }
}

static inline bool
is_container(const br_json *v)
{
    return v->kind == BR_J_ARR || v->kind == BR_J_OBJ;
}

/* Depth first with the open containers on a stack of our own: a parsed tree
 * cannot be deeper than the reader allows, a built one must not be. */
void
br_json_w_tree(br_json_writer *w, const br_json *root)
{
    const br_json *open[BR_JSON_MAX_DEPTH], *v = root;
    int n = 0;

    for (;;) {
        if (n > 0 && open[n - 1]->kind == BR_J_OBJ)
            br_json_w_key_n(w, (br_text){v->key, v->key_n});
        put_node(w, v);
        if (is_container(v)) {
            br_check(n < BR_JSON_MAX_DEPTH && "tree deeper than the limit");
            open[n++] = v;
            v = v->child;
        } else {
            v = n > 0 ? v->next : NULL;
        }
        while (!v && n > 0) {
            const br_json *done = open[--n];

            if (done->kind == BR_J_OBJ)
                br_json_w_obj_end(w);
            else
                br_json_w_arr_end(w);
            v = n > 0 ? done->next : NULL;
        }
        if (n == 0)
            return;
    }
}

/* ---- members ----------------------------------------------------------- */

void
br_json_w_key_i64(br_json_writer *w, const char *key, int64_t v)
{
    br_json_w_key(w, key);
    br_json_w_i64(w, v);
}

void
br_json_w_key_u64(br_json_writer *w, const char *key, uint64_t v)
{
    br_json_w_key(w, key);
    br_json_w_u64(w, v);
}

void
br_json_w_key_f64(br_json_writer *w, const char *key, double v)
{
    br_json_w_key(w, key);
    br_json_w_f64(w, v);
}

void
br_json_w_key_bool(br_json_writer *w, const char *key, bool v)
{
    br_json_w_key(w, key);
    br_json_w_bool(w, v);
}

void
br_json_w_key_strz(br_json_writer *w, const char *key, const char *z)
{
    br_json_w_key(w, key);
    br_json_w_strz(w, z);
}
