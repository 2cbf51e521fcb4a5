/* jinja_text.c - filters and methods of strings. Case is ASCII's: chat
 * templates change the case of roles and type names, not of what people wrote.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/jinja_lib.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Builds a string, hands it to the arena. */
static br_code
done(jj_run *r, br_str *s, jj_val *out)
{
    br_code rc =
        s->oom ? jj_oom(r) : jj_str_copy(r, (br_text){br_str_z(s), s->n}, out);

    br_str_fini(s);
    return rc;
}

static br_code
text_of(jj_run *r, const jj_val *b, br_text *t)
{
    jj_val s;

    BR_TRY(jj_to_str(r, b, &s));
    *t = jj_text(&s);
    return BR_OK;
}

/* ---- case --------------------------------------------------------------- */

static char
low(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static char
up(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
}

/* WORD: str.title begins a word after whatever is no letter (They'Re), the
 * filter after blanks and brackets (They're). */
enum { CASE_LOW, CASE_UP, CASE_FIRST, CASE_TITLE, CASE_WORD };

static br_code
recase(jj_run *r, const jj_val *b, int how, jj_val *out)
{
    bool start = true;
    br_text t;
    char *s;

    BR_TRY(text_of(r, b, &t));
    BR_TRY(jj_str_copy(r, t, out));
    s = br_arena_str(&r->arena, t.p, t.n);
    if (!s)
        return jj_oom(r);
    for (size_t i = 0; i < t.n; i++) {
        bool letter = isalpha((unsigned char)s[i]) || (unsigned char)s[i] > 127;
        s[i] =
            how == CASE_UP || (how != CASE_LOW && start) ? up(s[i]) : low(s[i]);
        start = how == CASE_TITLE  ? !letter
                : how == CASE_WORD ? strchr(" \t\n\r\f\v-({[<", s[i]) && s[i]
                                   : false;
    }
    *out = jj_str((br_text){s, t.n});
    return BR_OK;
}

LIB_FN(lower)
{
    (void)a;
    return recase(r, b, CASE_LOW, out);
}

LIB_FN(upper)
{
    (void)a;
    return recase(r, b, CASE_UP, out);
}

LIB_FN(capitalize)
{
    (void)a;
    return recase(r, b, CASE_FIRST, out);
}

LIB_FN(title)
{
    (void)a;
    return recase(r, b, CASE_WORD, out);
}

LIB_FN(str_title)
{
    (void)a;
    return recase(r, b, CASE_TITLE, out);
}

/* ---- blanks at the ends ------------------------------------------------- */

static bool
in_set(const char *p, size_t n, br_text set, bool blanks)
{
    if (blanks)
        return n == 1 && strchr(" \t\n\r\f\v", *p) && *p;
    for (size_t i = 0; i < set.n;) {
        size_t k = 1;
        while (i + k < set.n && ((unsigned char)set.p[i + k] & 0xc0) == 0x80)
            k++;
        if (k == n && !memcmp(set.p + i, p, n))
            return true;
        i += k;
    }
    return false;
}

static br_code
strip(jj_run *r, const jj_val *b, const jj_args *a, int sides, jj_val *out)
{
    const jj_val *chars = jj_arg(a, 0, "chars");
    bool blanks = !chars || chars->type != JV_STR;
    br_text t, set = blanks ? (br_text){"", 0} : jj_text(chars);

    BR_TRY(text_of(r, b, &t));
    while ((sides & 1) && t.n) {
        size_t n = 1;
        while (n < t.n && ((unsigned char)t.p[n] & 0xc0) == 0x80)
            n++;
        if (!in_set(t.p, n, set, blanks))
            break;
        t.p += n;
        t.n -= n;
    }
    while ((sides & 2) && t.n) {
        size_t n = 1;
        while (n < t.n && ((unsigned char)t.p[t.n - n] & 0xc0) == 0x80)
            n++;
        if (!in_set(t.p + t.n - n, n, set, blanks))
            break;
        t.n -= n;
    }
    return jj_str_copy(r, t, out);
}

LIB_FN(trim)
{
    return strip(r, b, a, 3, out);
}

LIB_FN(lstrip)
{
    return strip(r, b, a, 1, out);
}

LIB_FN(rstrip)
{
    return strip(r, b, a, 2, out);
}

/* ---- looking ------------------------------------------------------------ */

static bool
begins(br_text t, br_text with)
{
    return with.n <= t.n && !memcmp(t.p, with.p, with.n);
}

static bool
ends(br_text t, br_text with)
{
    return with.n <= t.n && !memcmp(t.p + t.n - with.n, with.p, with.n);
}

/* What lies between the arguments `start` and `end`, in characters. */
static br_text
window(const jj_val *b, const jj_args *a, int64_t *from)
{
    int64_t n = (int64_t)jj_utf8_len(jj_text(b)), to;

    *from = jj_arg_int(a, 1, "start", 0);
    to = jj_arg_int(a, 2, "end", n);
    *from = BR_MIN(BR_MAX(*from < 0 ? *from + n : *from, 0), n);
    to = BR_MIN(BR_MAX(to < 0 ? to + n : to, *from), n);
    return jj_utf8_sub(jj_text(b), (size_t)*from, (size_t)to);
}

/* One string, or any of a tuple of them. */
static br_code
any_of(jj_run *r, const jj_val *b, const jj_args *a,
       bool (*fits)(br_text, br_text), jj_val *out)
{
    const jj_val *v = jj_arg(a, 0, "prefix");
    int64_t from;
    br_text t = window(b, a, &from);
    bool yes = false;

    if (v && v->type == JV_STR)
        yes = fits(t, jj_text(v));
    else if (v && v->type == JV_TUPLE)
        for (size_t i = 0; i < v->list->n && !yes; i++)
            yes = v->list->at[i].type == JV_STR &&
                  fits(t, jj_text(&v->list->at[i]));
    else
        return jj_err(r, "needs a string to look for");
    *out = jj_bool(yes);
    return BR_OK;
}

LIB_FN(startswith)
{
    return any_of(r, b, a, begins, out);
}

LIB_FN(endswith)
{
    return any_of(r, b, a, ends, out);
}

LIB_FN(removeprefix)
{
    br_text t = jj_text(b), p;

    BR_TRY(jj_arg_text(r, a, 0, "prefix", &p));
    if (begins(t, p))
        t = (br_text){t.p + p.n, t.n - p.n};
    *out = jj_str(t);
    return BR_OK;
}

LIB_FN(removesuffix)
{
    br_text t = jj_text(b), p;

    BR_TRY(jj_arg_text(r, a, 0, "suffix", &p));
    if (ends(t, p))
        t.n -= p.n;
    *out = jj_str(t);
    return BR_OK;
}

/* In characters, -1 when not there. */
static br_code
find_in(jj_run *r, const jj_val *b, const jj_args *a, bool last, jj_val *out)
{
    const char *at = NULL;
    int64_t from;
    br_text t = window(b, a, &from), p;

    BR_TRY(jj_arg_text(r, a, 0, "sub", &p));
    for (const char *q = t.p;
         (q = memmem(q, (size_t)(t.p + t.n - q), p.p, p.n)) != NULL; q++) {
        at = q;
        if (!last || q == t.p + t.n)
            break;
    }
    *out = jj_int(-1);
    if (at)
        out->i =
            from + (int64_t)jj_utf8_len((br_text){t.p, (size_t)(at - t.p)});
    return BR_OK;
}

LIB_FN(find)
{
    return find_in(r, b, a, false, out);
}

LIB_FN(rfind)
{
    return find_in(r, b, a, true, out);
}

LIB_FN(str_index)
{
    BR_TRY(find_in(r, b, a, false, out));
    return out->i < 0 ? jj_err(r, "'index': not in the string") : BR_OK;
}

LIB_FN(str_count)
{
    br_text t = jj_text(b), p;
    int64_t n = 0;

    BR_TRY(jj_arg_text(r, a, 0, "sub", &p));
    if (p.n == 0)
        n = (int64_t)jj_utf8_len(t) + 1;
    else
        for (const char *q = t.p;
             (q = memmem(q, (size_t)(t.p + t.n - q), p.p, p.n)) != NULL;
             q += p.n)
            n++;
    *out = jj_int(n);
    return BR_OK;
}

static br_code
all_are(const jj_val *b, int (*kind)(int), jj_val *out)
{
    bool yes = b->n != 0;

    for (size_t i = 0; i < b->n && yes; i++)
        yes = kind((unsigned char)b->s[i]) != 0;
    *out = jj_bool(yes);
    return BR_OK;
}

LIB_FN(isdigit)
{
    (void)r;
    (void)a;
    return all_are(b, isdigit, out);
}

LIB_FN(isalpha)
{
    (void)r;
    (void)a;
    return all_are(b, isalpha, out);
}

LIB_FN(isalnum)
{
    (void)r;
    (void)a;
    return all_are(b, isalnum, out);
}

LIB_FN(isspace)
{
    (void)r;
    (void)a;
    return all_are(b, isspace, out);
}

/* ---- cutting and joining ------------------------------------------------ */

/* No separator: runs of blanks. */
static br_code
split_blanks(jj_run *r, br_text t, int64_t max, jj_list *l)
{
    size_t i = 0;

    for (;;) {
        size_t from;
        while (i < t.n && isspace((unsigned char)t.p[i]))
            i++;
        if (i == t.n)
            return BR_OK;
        from = i;
        if (max >= 0 && (int64_t)l->n >= max) {
            size_t to = t.n;
            while (to > from && isspace((unsigned char)t.p[to - 1]))
                to--;
            return jj_push(r, l, jj_str((br_text){t.p + from, to - from}));
        }
        while (i < t.n && !isspace((unsigned char)t.p[i]))
            i++;
        BR_TRY(jj_push(r, l, jj_str((br_text){t.p + from, i - from})));
    }
}

LIB_FN(split)
{
    const jj_val *sep = jj_arg(a, 0, "sep");
    int64_t max = jj_arg_int(a, 1, "maxsplit", -1);
    br_text t = jj_text(b);
    const char *q;

    BR_TRY(jj_list_new(r, JV_LIST, out));
    if (!sep || sep->type != JV_STR)
        return split_blanks(r, t, max, out->list);
    if (sep->n == 0)
        return jj_err(r, "'split' with an empty separator");
    while ((max < 0 || (int64_t)out->list->n < max) &&
           (q = memmem(t.p, t.n, sep->s, sep->n))) {
        size_t n = (size_t)(q - t.p);
        BR_TRY(jj_push(r, out->list, jj_str((br_text){t.p, n})));
        t.p = q + sep->n;
        t.n -= n + sep->n;
    }
    return jj_push(r, out->list, jj_str(t));
}

LIB_FN(rsplit)
{
    int64_t max = jj_arg_int(a, 1, "maxsplit", -1);
    const jj_val *sep = jj_arg(a, 0, "sep");
    const char *start;
    jj_val all, head;
    size_t cut;

    if (max < 0)
        return jj_f_split(r, b, a, out);
    jj_args only = {.pos = sep, .n_pos = sep != NULL};
    BR_TRY(jj_f_split(r, b, &only, &all));
    if ((int64_t)all.list->n <= max + 1) {
        *out = all;
        return BR_OK;
    }
    cut = all.list->n - (size_t)max; /* pieces that stay together */
    start = sep && sep->type == JV_STR ? b->s : all.list->at[0].s;
    head = jj_str((br_text){start, (size_t)(all.list->at[cut - 1].s +
                                            all.list->at[cut - 1].n - start)});
    BR_TRY(jj_list_new(r, JV_LIST, out));
    BR_TRY(jj_push(r, out->list, head));
    for (; cut < all.list->n; cut++)
        BR_TRY(jj_push(r, out->list, all.list->at[cut]));
    return BR_OK;
}

LIB_FN(splitlines)
{
    bool keep = jj_arg_true(a, 0, "keepends");
    br_text t = jj_text(b);

    BR_TRY(jj_list_new(r, JV_LIST, out));
    while (t.n) {
        const char *q = memchr(t.p, '\n', t.n);
        size_t n = q ? (size_t)(q - t.p) : t.n, whole = n + (q != NULL);
        BR_TRY(jj_push(r, out->list, jj_str((br_text){t.p, keep ? whole : n})));
        t.p += whole;
        t.n -= whole;
    }
    return BR_OK;
}

static br_code
join_list(jj_run *r, br_text sep, const jj_list *l, const jj_val *attr,
          jj_val *out)
{
    br_str s = {0};

    for (size_t i = 0; i < l->n; i++) {
        jj_val v = l->at[i];
        if (attr) {
            br_code rc = jj_get_item(r, &l->at[i], attr, &v);
            if (rc != BR_OK) {
                br_str_fini(&s);
                return rc;
            }
        }
        if (i)
            br_str_put(&s, sep.p, sep.n);
        jj_put_str(&s, &v);
        if (s.n > BR_JINJA_MAX_OUTPUT_BYTES)
            break; /* done() names the limit */
    }
    return done(r, &s, out);
}

LIB_FN(join)
{
    const jj_val *sep = jj_arg(a, 0, "d");
    jj_list *l;

    BR_TRY(jj_iterate(r, b, &l));
    return join_list(
        r, sep && sep->type == JV_STR ? jj_text(sep) : (br_text){"", 0}, l,
        jj_arg(a, 1, "attribute"), out);
}

LIB_FN(str_join)
{
    jj_list *l;

    if (!a->n_pos)
        return jj_err(r, "'join' needs a list");
    BR_TRY(jj_iterate(r, &a->pos[0], &l));
    return join_list(r, jj_text(b), l, NULL, out);
}

LIB_FN(replace)
{
    int64_t left = jj_arg_int(a, 2, "count", -1);
    br_text t, from, to;
    br_str s = {0};
    const char *q;

    BR_TRY(text_of(r, b, &t));
    BR_TRY(jj_arg_text(r, a, 0, "old", &from));
    BR_TRY(jj_arg_text(r, a, 1, "new", &to));
    if (from.n == 0)
        return jj_err(r, "'replace' of an empty string");
    while (left != 0 && s.n <= BR_JINJA_MAX_OUTPUT_BYTES &&
           (q = memmem(t.p, t.n, from.p, from.n))) {
        br_str_put(&s, t.p, (size_t)(q - t.p));
        br_str_put(&s, to.p, to.n);
        t.n -= (size_t)(q - t.p) + from.n;
        t.p = q + from.n;
        left--;
    }
    br_str_put(&s, t.p, t.n);
    return done(r, &s, out);
}

/* Every line but the first by `width` blanks (or a string); empty lines stay
 * empty unless blank is set. */
LIB_FN(indent)
{
    const jj_val *w = jj_arg(a, 0, "width");
    int64_t width = jj_arg_int(a, 0, "width", 4);
    bool first = jj_arg_true(a, 1, "first"), blank = jj_arg_true(a, 2, "blank");
    br_str s = {0};
    br_text t;

    BR_TRY(text_of(r, b, &t));
    if (width < 0 || width > BR_JINJA_MAX_INDENT)
        return jj_err(r, "'indent' by 0 to %d", BR_JINJA_MAX_INDENT);
    for (bool start = true; t.n; start = false) {
        const char *q = memchr(t.p, '\n', t.n);
        size_t n = q ? (size_t)(q - t.p) : t.n;
        if ((!start || first) && (n || blank)) {
            if (w && w->type == JV_STR)
                br_str_put(&s, w->s, w->n);
            else
                br_str_printf(&s, "%*s", (int)width, "");
        }
        br_str_put(&s, t.p, n + (q != NULL));
        t.p += n + (q != NULL);
        t.n -= n + (q != NULL);
    }
    return done(r, &s, out);
}

LIB_FN(wordcount)
{
    br_text t;
    int64_t n = 0;

    (void)a;
    BR_TRY(text_of(r, b, &t));
    for (size_t i = 0; i < t.n; i++)
        n += !isspace((unsigned char)t.p[i]) &&
             (i == 0 || isspace((unsigned char)t.p[i - 1]));
    *out = jj_int(n);
    return BR_OK;
}

LIB_FN(escape)
{
    static const struct {
        char c;
        const char *to;
    } rows[] = {{'&', "&amp;"},
                {'<', "&lt;"},
                {'>', "&gt;"},
                {'"', "&#34;"},
                {'\'', "&#39;"}};
    br_str s = {0};
    br_text t;

    (void)a;
    BR_TRY(text_of(r, b, &t));
    for (size_t i = 0; i < t.n; i++) {
        size_t k = 0;
        while (k < BR_COUNT(rows) && rows[k].c != t.p[i])
            k++;
        if (k < BR_COUNT(rows))
            br_str_puts(&s, rows[k].to);
        else
            br_str_putc(&s, t.p[i]);
    }
    return done(r, &s, out);
}

/* ---- % and format ------------------------------------------------------- */

/* The format is the template's, but its letter was looked at and fits. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/* One conversion after '%': flags, width, precision, letter. */
static br_code
convert(jj_run *r, const char **p, const char *end, const jj_val *v, br_str *s)
{
    char spec[32] = "%", num[400];
    size_t n = 1;
    char c;

    while (*p < end && strchr("-+ 0#.123456789", **p) && **p && n < 16)
        spec[n++] = *(*p)++;
    if (*p >= end)
        return jj_err(r, "a '%%' without its letter");
    c = *(*p)++;
    spec[n] = 0;
    if (c == 's') {
        jj_val t;
        BR_TRY(jj_to_str(r, v, &t));
        br_str_put(s, t.s, t.n);
    } else if (strchr("diuxXo", c) &&
               (v->type == JV_INT || v->type == JV_BOOL ||
                v->type == JV_FLOAT)) {
        long long i = v->type == JV_FLOAT  ? (long long)v->f
                      : v->type == JV_BOOL ? v->b
                                           : v->i;
        snprintf(spec + n, sizeof spec - n, "ll%c", c == 'u' ? 'd' : c);
        br_str_printf(s, spec, i);
    } else if (strchr("eEfFgG", c) &&
               (v->type == JV_INT || v->type == JV_FLOAT)) {
        snprintf(spec + n, sizeof spec - n, "%c", c);
        snprintf(num, sizeof num, spec,
                 v->type == JV_INT ? (double)v->i : v->f);
        br_str_puts(s, num);
    } else {
        return jj_err(r, "'%%%c' does not take %s", c, jj_type_name(v));
    }
    return BR_OK;
}

#pragma GCC diagnostic pop

static br_code
format_into(jj_run *r, br_text t, const jj_args *a, br_str *s)
{
    const char *p = t.p, *end = t.p + t.n;
    size_t used = 0;

    while (p < end) {
        if (*p != '%') {
            br_str_putc(s, *p++);
        } else if (p + 1 < end && p[1] == '%') {
            br_str_putc(s, '%');
            p += 2;
        } else if (used >= a->n_pos) {
            return jj_err(r, "too few values for the format");
        } else {
            p++;
            BR_TRY(convert(r, &p, end, &a->pos[used++], s));
        }
    }
    return used < a->n_pos ? jj_err(r, "too many values for the format")
                           : BR_OK;
}

LIB_FN(format)
{
    br_str s = {0};
    br_text t;
    br_code rc;

    BR_TRY(text_of(r, b, &t));
    rc = format_into(r, t, a, &s);
    if (rc != BR_OK) {
        br_str_fini(&s);
        return rc;
    }
    return done(r, &s, out);
}

/* "{}".format(x), "{0}", "{name}"; no format specifications */
LIB_FN(str_format)
{
    br_text t = jj_text(b);
    size_t next = 0;
    br_str s = {0};

    for (size_t i = 0; i < t.n; i++) {
        const char *close;
        const jj_val *v = NULL;
        size_t n;
        if ((t.p[i] == '{' || t.p[i] == '}') && i + 1 < t.n &&
            t.p[i + 1] == t.p[i]) {
            br_str_putc(&s, t.p[i++]);
            continue;
        }
        if (t.p[i] != '{' || !(close = memchr(t.p + i, '}', t.n - i))) {
            br_str_putc(&s, t.p[i]);
            continue;
        }
        n = (size_t)(close - (t.p + i)) - 1;
        if (n == 0)
            v = next < a->n_pos ? &a->pos[next++] : NULL;
        else if (n == 1 && isdigit((unsigned char)t.p[i + 1]) &&
                 (size_t)(t.p[i + 1] - '0') < a->n_pos)
            v = &a->pos[t.p[i + 1] - '0'];
        for (size_t k = 0; !v && k < a->n_kw; k++)
            if (br_text_eq(a->key[k], (br_text){t.p + i + 1, n}))
                v = &a->kw[k];
        if (!v) {
            br_str_fini(&s);
            return jj_err(r, "'format' has no value for '{%.*s}'",
                          (int)BR_MIN(n, (size_t)40), t.p + i + 1);
        }
        jj_put_str(&s, v);
        i += n + 1;
    }
    return done(r, &s, out);
}
