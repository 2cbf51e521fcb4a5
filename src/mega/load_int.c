/* load_int.c - integer keys: buffer_to_page and explicit sm_assignment.
 *
 * JSON keys are strings; the format says they are what Python's int() reads:
 * blanks around, a sign, single underscores between digits, and any decimal
 * digit of Unicode. They are written back in canonical form, so "+0" and "0"
 * are one key.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/load.h"

#include <stdlib.h>
#include <string.h>

/* Where each run of ten decimal digits begins (general category Nd of Unicode
 * 14, the version of the reference's interpreter; ASCII is not here). */
static const uint32_t zeros[] = {
    0x660,   0x6f0,   0x7c0,   0x966,   0x9e6,   0xa66,   0xae6,   0xb66,
    0xbe6,   0xc66,   0xce6,   0xd66,   0xde6,   0xe50,   0xed0,   0xf20,
    0x1040,  0x1090,  0x17e0,  0x1810,  0x1946,  0x19d0,  0x1a80,  0x1a90,
    0x1b50,  0x1bb0,  0x1c40,  0x1c50,  0xa620,  0xa8d0,  0xa900,  0xa9d0,
    0xa9f0,  0xaa50,  0xabf0,  0xff10,  0x104a0, 0x10d30, 0x11066, 0x110f0,
    0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730,
    0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50,
    0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950,
    0x1fbf0,
};

/* One code point of valid WTF-8; *i moves past it. */
static uint32_t
code_point(br_text t, size_t *i)
{
    const unsigned char *s = (const unsigned char *)t.p + *i;
    int more = s[0] < 0x80 ? 0 : s[0] < 0xe0 ? 1 : s[0] < 0xf0 ? 2 : 3;
    uint32_t c = more == 0 ? s[0] : s[0] & (0x3fu >> more);

    for (int k = 1; k <= more; k++)
        c = c << 6 | (s[k] & 0x3fu);
    *i += (size_t)more + 1;
    return c;
}

/* The ASCII character int() sees in its place: '?' for what it refuses. */
static char
as_ascii(uint32_t c)
{
    if (c < 0x80)
        return (char)c;
    if (c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
        c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000)
        return ' ';
    for (size_t i = 0; i < BR_COUNT(zeros); i++)
        if (c >= zeros[i] && c < zeros[i] + 10)
            return (char)('0' + (c - zeros[i]));
    return '?';
}

static bool
blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool
br_load_py_int(br_text t, br_str *out)
{
    enum { LEAD, SIGN, DIGIT, UNDER, TAIL } state = LEAD;
    size_t digits = 0, start = out->n;
    bool minus = false;

    for (size_t i = 0; i < t.n;) {
        char c = as_ascii(code_point(t, &i));

        if (c >= '0' && c <= '9' && state != TAIL) {
            state = DIGIT;
            digits++;
            if (minus && out->n == start && c != '0')
                br_str_putc(out, '-');
            if (out->n > start || c != '0')
                br_str_putc(out, c);
        } else if (c == '_' && state == DIGIT) {
            state = UNDER;
        } else if ((c == '+' || c == '-') && state == LEAD) {
            state = SIGN;
            minus = c == '-';
        } else if (blank(c) && (state == DIGIT || state == TAIL)) {
            state = TAIL;
        } else if (!blank(c) || state != LEAD) {
            return false;
        }
    }
    if (out->n == start)
        br_str_putc(out, '0');
    return (state == DIGIT || state == TAIL) && digits <= BR_LOAD_MAX_DIGITS;
}

static bool
canonical(br_text t)
{
    size_t i = t.n > 1 && t.p[0] == '-';

    if (t.n == 0 || t.n > BR_LOAD_MAX_DIGITS || (t.p[i] == '0' && t.n > 1))
        return false;
    for (; i < t.n; i++)
        if (t.p[i] < '0' || t.p[i] > '9')
            return false;
    return true;
}

/* Sorts members by key, then by place. */
typedef struct slot {
    br_json *m;
    size_t place;
} slot;

static int
by_key(const void *a, const void *b)
{
    const slot *x = a, *y = b;
    size_t n = BR_MIN(x->m->key_n, y->m->key_n);
    int c = memcmp(x->m->key, y->m->key, n);

    if (c)
        return c;
    if (x->m->key_n != y->m->key_n)
        return x->m->key_n < y->m->key_n ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

static bool
same_key(const br_json *a, const br_json *b)
{
    return a->key_n == b->key_n && memcmp(a->key, b->key, a->key_n) == 0;
}

/* Leaves of every run of equal keys the first member, with the last's value.
 * A dropped member is marked by key NULL and then unlinked. */
static br_code
merge(br_load *l, br_json *obj)
{
    slot *s = br_try_calloc(obj->n, sizeof *s);
    size_t n = 0;
    br_json **link;

    if (!s)
        return br_load_oom(l);
    for (br_json *m = obj->child; m; m = m->next, n++)
        s[n] = (slot){m, n};
    qsort(s, n, sizeof *s, by_key);
    for (size_t i = 0, j; i < n; i = j) {
        br_json *first = s[i].m;

        for (j = i + 1; j < n && same_key(first, s[j].m); j++)
            ;
        if (j > i + 1) {
            br_json last = *s[j - 1].m;

            last.key = first->key;
            last.key_n = first->key_n;
            last.next = first->next;
            *first = last;
        }
        for (size_t k = i + 1; k < j; k++)
            s[k].m->key = NULL;
    }
    br_free(s);
    for (link = &obj->child; *link;)
        if ((*link)->key)
            link = &(*link)->next;
        else {
            *link = (*link)->next;
            obj->n--;
        }
    return BR_OK;
}

br_code
br_load_int_keys(br_load *l, br_json *obj, const char *where)
{
    br_str key = {0};
    bool any = false;
    br_code code = BR_OK;
    char q[40];

    for (br_json *m = obj->child; m && code == BR_OK; m = m->next) {
        br_text t = {m->key, m->key_n};

        if (canonical(t))
            continue;
        any = true;
        br_str_clear(&key);
        if (!br_load_py_int(t, &key)) {
            code = BR_LOAD_BAD(l, "%s: key '%s' is not an integer", where,
                               br_load_quote(q, t));
        } else if (key.oom || !(m->key = br_arena_str(l->a, key.at, key.n))) {
            code = br_load_oom(l);
        } else {
            m->key_n = (uint32_t)key.n;
        }
    }
    br_str_fini(&key);
    return any && code == BR_OK ? merge(l, obj) : code;
}
