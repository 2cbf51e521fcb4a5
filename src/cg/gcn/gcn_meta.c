/* gcn_meta.c - metadata of code objects: the YAML of .amdgpu_metadata, and the
 * MessagePack of the note.
 *
 * YAML as LLVM writes it: blocks by indentation, plain and quoted words, lists
 * in brackets. Maps are sorted by their keys and numbers take the fewest bytes,
 * as in LLVM's notes, so that the bytes can be compared.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- writing MessagePack ---------------------------------------------- */

static void
big_endian(br_str *o, int lead, uint64_t v, int bytes)
{
    br_str_putc(o, (char)lead);
    for (int k = bytes - 1; k >= 0; k--)
        br_str_putc(o, (char)(v >> 8 * k));
}

static void
counted(br_str *o, size_t n, int small, size_t most, int wide)
{
    if (n <= most)
        br_str_putc(o, (char)(small | (int)n));
    else if (n <= 0xffff)
        big_endian(o, wide, n, 2);
    else
        big_endian(o, wide + 1, n, 4);
}

void
br_gcn_mp_map(br_str *o, size_t n)
{
    counted(o, n, 0x80, 15, 0xde);
}

void
br_gcn_mp_array(br_str *o, size_t n)
{
    counted(o, n, 0x90, 15, 0xdc);
}

void
br_gcn_mp_text(br_str *o, br_text t)
{
    if (t.n > 31 && t.n <= 255)
        big_endian(o, 0xd9, t.n, 1);
    else
        counted(o, t.n, 0xa0, 31, 0xda);
    br_str_put(o, t.p, t.n);
}

void
br_gcn_mp_uint(br_str *o, uint64_t v)
{
    int lead = v <= 0xff         ? 0xcc
               : v <= 0xffff     ? 0xcd
               : v <= UINT32_MAX ? 0xce
                                 : 0xcf;

    if (v < 128)
        br_str_putc(o, (char)v);
    else
        big_endian(o, lead, v, 1 << (lead - 0xcc));
}

static void
mp_int(br_str *o, int64_t v)
{
    if (v >= 0)
        br_gcn_mp_uint(o, (uint64_t)v);
    else if (v >= -32)
        br_str_putc(o, (char)v);
    else
        big_endian(o, 0xd3, (uint64_t)v, 8);
}

/* ---- reading YAML ----------------------------------------------------- */

typedef struct yaml {
    const char *p, *end; /* the rest of the file, from a line's begin */
    size_t indent;       /* of the current line: columns before its text */
    br_text line;        /* its text, without indent and trailing space */
    unsigned depth, number;
    br_status *st;
} yaml;

static br_code node(yaml *y, size_t indent, br_str *out);

/* Steps to the next line that says something; none: line.n is 0. */
static void
next_line(yaml *y)
{
    y->line = (br_text){y->end, 0};
    while (y->p < y->end && !y->line.n) {
        const char *e = memchr(y->p, '\n', (size_t)(y->end - y->p));
        const char *p = y->p;

        e = e ? e : y->end;
        y->p = e < y->end ? e + 1 : e;
        y->number++;
        y->indent = 0;
        for (; p < e && *p == ' '; p++)
            y->indent++;
        while (e > p && isspace((unsigned char)e[-1]))
            e--;
        y->line = (br_text){p, (size_t)(e - p)};
        if (br_text_is(y->line, "---") || br_text_is(y->line, "...") ||
            (y->line.n && *y->line.p == '#'))
            y->line.n = 0;
    }
}

static br_code
bad(yaml *y, const char *why)
{
    return br_fail(y->st, BR_E_FORMAT, "metadata, line %u: %s", y->number, why);
}

/* Drops n bytes of the line and the spaces behind. */
static void
advance(yaml *y, size_t n)
{
    while (n < y->line.n && y->line.p[n] == ' ')
        n++;
    y->line.p += n;
    y->line.n -= n;
    y->indent += n;
}

/* 'it''s' or "plain"; the bytes that it takes, 0: never ends. */
static size_t
quoted(br_text t, br_str *out)
{
    char q = *t.p;

    for (size_t k = 1; k < t.n; k++) {
        if (t.p[k] == q && q == '\'' && k + 1 < t.n && t.p[k + 1] == q)
            k++;
        else if (t.p[k] == q)
            return k + 1;
        else if (t.p[k] == '\\' && q == '"')
            return 0; /* escapes: LLVM writes none for what we keep */
        br_str_putc(out, t.p[k]);
    }
    return 0;
}

/* A word without quotes: a number, a truth, else text. */
static void
plain(br_text t, br_str *out)
{
    char buf[24], *e = buf;
    unsigned long long u = 0;
    long long v = 0;

    if (br_text_is(t, "true") || br_text_is(t, "false")) {
        br_str_putc(out, (char)(t.n == 4 ? 0xc3 : 0xc2));
        return;
    }
    if (t.n < sizeof buf &&
        (isdigit((unsigned char)*t.p) || (*t.p == '-' && t.n > 1))) {
        memcpy(buf, t.p, t.n);
        buf[t.n] = 0;
        errno = 0;
        if (*buf == '-')
            v = strtoll(buf, &e, 10);
        else
            u = strtoull(buf, &e, 0);
        if (*e == 0 && errno == 0) {
            if (*buf == '-')
                mp_int(out, v);
            else
                br_gcn_mp_uint(out, u);
            return;
        }
    }
    br_gcn_mp_text(out, t);
}

/* A scalar or [a, b] that fills a line. */
static br_code
inline_value(yaml *y, br_text t, br_str *out)
{
    br_str body = {0};
    size_t n = 0, used;
    bool ok;

    if (*t.p == '\'' || *t.p == '"') {
        used = quoted(t, &body);
        br_gcn_mp_text(out, (br_text){br_str_z(&body), body.n});
        out->oom = out->oom || body.oom;
        br_str_fini(&body);
        return used == t.n ? BR_OK : bad(y, "a text in quotes does not end");
    }
    if (br_text_is(t, "{}")) {
        br_gcn_mp_map(out, 0);
        return BR_OK;
    }
    if (*t.p != '[') {
        plain(t, out);
        return BR_OK;
    }
    ok = t.p[t.n - 1] == ']';
    for (size_t at = 1; ok && at < t.n - 1; at++) {
        const char *comma = memchr(t.p + at, ',', t.n - 1 - at);
        size_t end = comma ? (size_t)(comma - t.p) : t.n - 1;
        br_text item;

        while (at < end && t.p[at] == ' ')
            at++;
        item = (br_text){t.p + at, end - at};
        while (item.n && item.p[item.n - 1] == ' ')
            item.n--;
        ok = item.n > 0 && !strchr("[{'\"", *item.p);
        if (ok)
            plain(item, &body);
        n++;
        at = end;
    }
    br_gcn_mp_array(out, n);
    br_str_put(out, br_str_z(&body), body.n);
    out->oom = out->oom || body.oom;
    br_str_fini(&body);
    return ok ? BR_OK : bad(y, "a list in brackets is not of plain words");
}

/* Bytes of "key" before ": " or ":" at the end of the line; 0: it has none. */
static size_t
key_of(br_text t)
{
    for (size_t k = 0; k < t.n && t.p[k] != '\'' && t.p[k] != '"'; k++)
        if (t.p[k] == ':' && (k + 1 == t.n || t.p[k + 1] == ' '))
            return k;
    return 0;
}

typedef struct pair {
    br_text key;
    br_str value;
} pair;

static int
by_key(const void *a, const void *b)
{
    const pair *x = a, *y = b;
    int c = memcmp(x->key.p, y->key.p, BR_MIN(x->key.n, y->key.n));

    return c ? c : (x->key.n > y->key.n) - (x->key.n < y->key.n);
}

static br_code
pair_value(yaml *y, size_t indent, size_t key, br_str *out)
{
    advance(y, key + 1);
    if (y->line.n) {
        BR_TRY(inline_value(y, y->line, out));
        next_line(y);
        return BR_OK;
    }
    next_line(y);
    if (y->line.n &&
        (y->indent > indent || (y->indent == indent && *y->line.p == '-')))
        return node(y, y->indent, out);
    return bad(y, "a key without a value");
}

static br_code
map_node(yaml *y, size_t indent, br_str *out)
{
    BR_VEC(pair) pairs = {0};
    br_code c = BR_OK;

    while (c == BR_OK && y->line.n && y->indent == indent) {
        pair p = {.key = {y->line.p, key_of(y->line)}};

        if (!p.key.n || *y->line.p == '-')
            c = bad(y, "'key: value' is expected");
        else if (!br_vec_push(&pairs, p))
            c = br_fail(y->st, BR_E_OOM, "out of memory");
        else
            c = pair_value(y, indent, p.key.n, &pairs.at[pairs.n - 1].value);
    }
    if (c == BR_OK && y->line.n && y->indent > indent)
        c = bad(y, "deeper than what it belongs to");
    if (pairs.n)
        qsort(pairs.at, pairs.n, sizeof *pairs.at, by_key);
    br_gcn_mp_map(out, pairs.n);
    for (size_t k = 0; k < pairs.n; k++) {
        if (c == BR_OK && k && by_key(&pairs.at[k - 1], &pairs.at[k]) == 0)
            c = bad(y, "a key twice");
        br_gcn_mp_text(out, pairs.at[k].key);
        br_str_put(out, br_str_z(&pairs.at[k].value), pairs.at[k].value.n);
        out->oom = out->oom || pairs.at[k].value.oom;
        br_str_fini(&pairs.at[k].value);
    }
    br_vec_fini(&pairs);
    return c;
}

static br_code
list_node(yaml *y, size_t indent, br_str *out)
{
    br_str body = {0};
    size_t n = 0;
    br_code c = BR_OK;

    while (c == BR_OK && y->line.n && y->indent == indent &&
           *y->line.p == '-' && (y->line.n == 1 || y->line.p[1] == ' ')) {
        advance(y, 1);
        if (!y->line.n)
            next_line(y);
        if (!y->line.n || y->indent <= indent)
            c = bad(y, "an item without a value");
        else
            c = node(y, y->indent, &body);
        n++;
    }
    br_gcn_mp_array(out, n);
    br_str_put(out, br_str_z(&body), body.n);
    out->oom = out->oom || body.oom;
    br_str_fini(&body);
    return c;
}

static br_code
node(yaml *y, size_t indent, br_str *out)
{
    br_code c;

    if (++y->depth > BR_GCN_MAX_DEPTH)
        return br_fail(y->st, BR_E_LIMIT, "metadata deeper than %d",
                       BR_GCN_MAX_DEPTH);
    if (*y->line.p == '-' && (y->line.n == 1 || y->line.p[1] == ' ')) {
        c = list_node(y, indent, out);
    } else if (key_of(y->line)) {
        c = map_node(y, indent, out);
    } else {
        c = inline_value(y, y->line, out);
        next_line(y);
    }
    y->depth--;
    return c;
}

br_code
br_gcn_yaml_read(br_str *msgpack, const char *text, size_t n, br_status *st)
{
    yaml y = {.p = text, .end = text + n, .st = st};

    next_line(&y);
    if (!y.line.n)
        return bad(&y, "nothing there");
    BR_TRY(node(&y, y.indent, msgpack));
    if (y.line.n)
        return bad(&y, "this belongs to nothing");
    if (msgpack->oom)
        return br_fail(st, BR_E_OOM, "out of memory");
    return BR_OK;
}

/* ---- MessagePack to YAML ---------------------------------------------- */

typedef struct pack {
    const uint8_t *p, *end;
    br_str *out;
    br_status *st;
} pack;

typedef enum pack_kind {
    P_UINT,
    P_INT,
    P_BOOL,
    P_TEXT,
    P_ARRAY,
    P_MAP
} pack_kind;

typedef struct item {
    pack_kind kind;
    uint64_t v; /* the number, or how many bytes, items or pairs */
} item;

static br_code
torn(pack *k)
{
    return br_fail(k->st, BR_E_FORMAT,
                   "metadata that is no MessagePack of "
                   "texts, whole numbers, lists and maps");
}

static bool
number(pack *k, unsigned bytes, uint64_t *v)
{
    if ((size_t)(k->end - k->p) < bytes)
        return false;
    *v = 0;
    while (bytes--)
        *v = *v << 8 | *k->p++;
    return true;
}

static bool
head(pack *k, item *i)
{
    unsigned b;

    if (k->p == k->end)
        return false;
    b = *k->p++;
    if (b < 0x80 || b >= 0xe0) {
        *i = (item){b < 0x80 ? P_UINT : P_INT, (uint64_t)(int8_t)b};
        return true;
    }
    if (b < 0xc0) {
        *i = (item){b < 0x90   ? P_MAP
                    : b < 0xa0 ? P_ARRAY
                               : P_TEXT,
                    b & (b < 0xa0 ? 15 : 31)};
    } else if (b == 0xc2 || b == 0xc3) {
        *i = (item){P_BOOL, b & 1};
    } else if (b >= 0xcc && b <= 0xcf) {
        i->kind = P_UINT;
        return number(k, 1u << (b - 0xcc), &i->v);
    } else if (b >= 0xd0 && b <= 0xd3) {
        i->kind = P_INT;
        if (!number(k, 1u << (b - 0xd0), &i->v))
            return false;
        i->v = (uint64_t)((int64_t)(i->v << (64 - (8u << (b - 0xd0)))) >>
                          (64 - (8u << (b - 0xd0))));
        i->kind = (int64_t)i->v < 0 ? P_INT : P_UINT;
        return true;
    } else if (b >= 0xd9 && b <= 0xdb) {
        i->kind = P_TEXT;
        if (!number(k, 1u << (b - 0xd9), &i->v))
            return false;
    } else if (b >= 0xdc && b <= 0xdf) {
        i->kind = b < 0xde ? P_ARRAY : P_MAP;
        if (!number(k, b & 1 ? 4 : 2, &i->v))
            return false;
    } else {
        return false;
    }
    return i->v <= (uint64_t)(k->end - k->p); /* an item has a byte at least */
}

static bool
text_out(pack *k, uint64_t n, bool is_key)
{
    const char *p = (const char *)k->p;
    bool bare = n && (isalpha((unsigned char)*p) || *p == '.' || *p == '_');

    k->p += n;
    for (uint64_t i = 0; i < n; i++) {
        if ((unsigned char)p[i] < ' ')
            return false;
        bare = bare && (isalnum((unsigned char)p[i]) || strchr("._-$", p[i]) ||
                        (p[i] == ' ' && !is_key && i + 1 < n));
    }
    bare = bare && !(n == 4 && memcmp(p, "true", 4) == 0) &&
           !(n == 5 && memcmp(p, "false", 5) == 0);
    if (is_key && !bare)
        return false;
    br_str_puts(k->out, bare ? "" : "'");
    for (uint64_t i = 0; i < n; i++)
        br_str_puts(k->out, p[i] == '\'' ? "''" : (char[2]){p[i], 0});
    br_str_puts(k->out, bare ? "" : "'");
    return true;
}

/* An item at a column; what comes before it on its line is there. */
static br_code
item_out(pack *k, unsigned depth, bool fresh)
{
    item i, key;

    if (!head(k, &i) || depth > BR_GCN_MAX_DEPTH)
        return torn(k);
    if (i.kind < P_ARRAY || !i.v) {
        br_str_puts(k->out, fresh ? "" : " ");
        if (i.kind == P_TEXT && !text_out(k, i.v, false))
            return torn(k);
        if (i.kind == P_UINT || i.kind == P_INT)
            br_str_printf(k->out, i.kind == P_INT ? "%lld" : "%llu",
                          (unsigned long long)i.v);
        if (i.kind != P_TEXT && i.kind != P_UINT && i.kind != P_INT)
            br_str_puts(k->out, i.kind == P_ARRAY ? "[]"
                                : i.kind == P_MAP ? "{}"
                                : i.v             ? "true"
                                                  : "false");
        br_str_putc(k->out, '\n');
        return BR_OK;
    }
    for (uint64_t n = 0; n < i.v; n++) {
        if (n == 0 && !fresh)
            br_str_putc(k->out, '\n');
        if (n || !fresh)
            br_str_printf(k->out, "%*s", (int)(2 * depth), "");
        if (i.kind == P_ARRAY) {
            br_str_puts(k->out, "- ");
            BR_TRY(item_out(k, depth + 1, true));
            continue;
        }
        if (!head(k, &key) || key.kind != P_TEXT || !text_out(k, key.v, true))
            return torn(k);
        br_str_putc(k->out, ':');
        BR_TRY(item_out(k, depth + 1, false));
    }
    return BR_OK;
}

br_code
br_gcn_yaml_write(br_str *out, br_text msgpack, br_status *st)
{
    const uint8_t *p = (const uint8_t *)msgpack.p;
    pack k = {p, p + msgpack.n, out, st};

    BR_TRY(item_out(&k, 0, true));
    if (k.p != k.end)
        return torn(&k);
    return BR_OK;
}
