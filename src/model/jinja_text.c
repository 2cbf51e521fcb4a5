/* jinja_text.c - filters and methods of strings. Letters and blanks are
 * Unicode's, by the one table (unicode.h); digits are ASCII's.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/jinja_lib.h"
#include "model/unicode.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

/* WORD: str.title begins a word after whatever is no letter (They'Re), the
 * filter after blanks and brackets (They're). */
enum { CASE_LOW, CASE_UP, CASE_FIRST, CASE_TITLE, CASE_WORD };

enum {
    SHARP_S = 0xDF,   /* its upper case is SS */
    DOTTED_I = 0x130, /* its lower case is i and a dot above */
    DOT_ABOVE = 0x307,
    SIGMA = 0x3A3, /* at the end of a word its lower case is another */
    FINAL_SIGMA = 0x3C2,
};

static bool
cased(uint32_t c)
{
    int k = br_unicode_class(c) & 0x0F;

    return k == BR_UC_LU || k == BR_UC_LL || k == BR_UC_LT;
}

/* As upper case, but for the letters made of two, and Georgian's. */
static uint32_t
titled(uint32_t c)
{
    if (c >= 0x1C4 && c <= 0x1CC)
        return c - (c - 0x1C4) % 3 + 1;
    if (c >= 0x1F1 && c <= 0x1F3)
        return 0x1F2;
    return c >= 0x10D0 && c <= 0x10FF ? c : br_unicode_upper(c);
}

static void
put_char(br_str *s, uint32_t c)
{
    char buf[4];

    br_str_put(s, buf, br_utf8_put(buf, c));
}

/* after, before: does c follow a letter, and does one follow it? */
static void
put_low(br_str *s, uint32_t c, bool after, bool before)
{
    if (c == SIGMA && after && !before)
        c = FINAL_SIGMA;
    put_char(s, c == DOTTED_I ? 'i' : br_unicode_lower(c));
    if (c == DOTTED_I)
        put_char(s, DOT_ABOVE);
}

static void
put_up(br_str *s, uint32_t c, bool whole)
{
    if (c == SHARP_S)
        br_str_puts(s, whole ? "SS" : "Ss");
    else
        put_char(s, whole ? br_unicode_upper(c) : titled(c));
}

/* Of the letters that become two or three, ß and İ; ligatures stay. */
static br_code
recase(jj_run *r, const jj_val *b, int how, jj_val *out)
{
    bool start = true, after = false;
    const uint8_t *p, *end;
    br_str s = {0};
    br_text t;
    uint32_t c, next;
    size_t n;

    BR_TRY(text_of(r, b, &t));
    p = (const uint8_t *)t.p;
    for (end = p + t.n; p < end; p += n) {
        n = br_utf8_next(p, end, &c);
        next = 0;
        if (c == SIGMA && p + n < end)
            br_utf8_next(p + n, end, &next);
        if (c == BR_REPLACEMENT) /* or no UTF-8: as it is */
            br_str_put(&s, (const char *)p, n);
        else if (how == CASE_UP || (how != CASE_LOW && start))
            put_up(&s, c, how == CASE_UP || how == CASE_WORD);
        else
            put_low(&s, c, after, cased(next));
        after = cased(c) && !(how == CASE_WORD && start);
        start = how == CASE_TITLE ? !cased(c)
                : how == CASE_WORD
                    ? br_unicode_class(c) & BR_UC_SPACE ||
                          (c && c < 128 && strchr("-({[<", (int)c))
                    : false;
    }
    return done(r, &s, out);
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

/* Bytes of the character at p < end; *blank: is it white space? */
static size_t
char_at(const char *p, const char *end, bool *blank)
{
    uint32_t c;
    size_t n = br_utf8_next((const uint8_t *)p, (const uint8_t *)end, &c);

    *blank = (br_unicode_class(c) & BR_UC_SPACE) != 0;
    return n;
}

static bool
in_set(const char *p, size_t n, br_text set, bool blanks)
{
    if (blanks)
        return char_at(p, p + n, &blanks) == n && blanks;
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
all_are(const jj_val *b, bool (*kind)(uint32_t), jj_val *out)
{
    const uint8_t *p = (const uint8_t *)b->s, *end = p + b->n;
    bool yes = b->n != 0;
    uint32_t c;

    while (p < end && yes) {
        p += br_utf8_next(p, end, &c);
        yes = kind(c);
    }
    *out = jj_bool(yes);
    return BR_OK;
}

static bool
is_digit(uint32_t c)
{
    return c >= '0' && c <= '9';
}

static bool
is_letter(uint32_t c)
{
    int k = br_unicode_class(c) & 0x0F;

    return k >= BR_UC_LU && k <= BR_UC_LO;
}

static bool
is_word(uint32_t c)
{
    return is_letter(c) || (br_unicode_class(c) & 0x0F) == BR_UC_N;
}

static bool
is_blank(uint32_t c)
{
    return (br_unicode_class(c) & BR_UC_SPACE) != 0;
}

LIB_FN(isdigit)
{
    (void)r;
    (void)a;
    return all_are(b, is_digit, out);
}

LIB_FN(isalpha)
{
    (void)r;
    (void)a;
    return all_are(b, is_letter, out);
}

LIB_FN(isalnum)
{
    (void)r;
    (void)a;
    return all_are(b, is_word, out);
}

LIB_FN(isspace)
{
    (void)r;
    (void)a;
    return all_are(b, is_blank, out);
}

/* ---- cutting and joining ------------------------------------------------ */

/* The first character of t that is blank, or is not; t.n when there is none. */
static size_t
until(br_text t, size_t i, bool want)
{
    bool blank;

    while (i < t.n) {
        size_t n = char_at(t.p + i, t.p + t.n, &blank);
        if (blank == want)
            break;
        i += n;
    }
    return i;
}

/* No separator: runs of blanks. */
static br_code
split_blanks(jj_run *r, br_text t, int64_t max, jj_list *l)
{
    for (size_t i = 0;;) {
        size_t from = until(t, i, false);
        if (from == t.n)
            return BR_OK;
        i = until(t, from, true);
        if (max >= 0 && (int64_t)l->n >= max) /* with the blanks at its end */
            i = t.n;
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
    jj_val all, head;
    size_t cut;

    if (max < 0)
        return jj_f_split(r, b, a, out);
    jj_args only = {.pos = sep, .n_pos = sep != NULL};
    BR_TRY(jj_f_split(r, b, &only, &all));
    if ((int64_t)all.list->n <= max) {
        *out = all;
        return BR_OK;
    }
    cut = all.list->n - (size_t)max; /* pieces that stay together */
    head = jj_str((br_text){b->s, (size_t)(all.list->at[cut - 1].s +
                                           all.list->at[cut - 1].n - b->s)});
    BR_TRY(jj_list_new(r, JV_LIST, out));
    BR_TRY(jj_push(r, out->list, head));
    for (; cut < all.list->n; cut++)
        BR_TRY(jj_push(r, out->list, all.list->at[cut]));
    return BR_OK;
}

/* Bytes of the line break at p, 0 when there is none: those of Python. */
static size_t
line_break(const char *p, const char *end)
{
    uint32_t c;
    size_t n = br_utf8_next((const uint8_t *)p, (const uint8_t *)end, &c);

    if (c == '\r' && p + 1 < end && p[1] == '\n')
        return 2;
    return (c >= '\n' && c <= '\r') || (c >= 0x1c && c <= 0x1e) || c == 0x85 ||
                   c == 0x2028 || c == 0x2029
               ? n
               : 0;
}

LIB_FN(splitlines)
{
    bool keep = jj_arg_true(a, 0, "keepends");
    br_text t = jj_text(b);

    BR_TRY(jj_list_new(r, JV_LIST, out));
    while (t.n) {
        size_t n = 0, whole, ends = 0;
        while (n < t.n && (ends = line_break(t.p + n, t.p + t.n)) == 0)
            n++;
        whole = n + ends;
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
    while (from.n == 0 && left != 0 && s.n <= BR_JINJA_MAX_OUTPUT_BYTES) {
        bool blank; /* before each character, and at the end */
        size_t n = t.n ? char_at(t.p, t.p + t.n, &blank) : 0;
        br_str_put(&s, to.p, to.n);
        br_str_put(&s, t.p, n);
        t = (br_text){t.p + n, t.n - n};
        left = n ? left - 1 : 0;
    }
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

/* Every line but the first by `width` blanks (or a string); empty ones stay empty
 * unless blank is set. Lines are Python's, and end in \n then. */
LIB_FN(indent)
{
    const jj_val *w = jj_arg(a, 0, "width");
    int64_t width = jj_arg_int(a, 0, "width", 4);
    bool first = jj_arg_true(a, 1, "first"), blank = jj_arg_true(a, 2, "blank");
    size_t n = 0, ends = 0;
    br_str s = {0};
    br_text t;

    BR_TRY(text_of(r, b, &t));
    if (width < 0 || width > BR_JINJA_MAX_INDENT)
        return jj_err(r, "'indent' by 0 to %d", BR_JINJA_MAX_INDENT);
    /* Jinja2 puts a \n behind it before it looks for lines. */
    t.n -= t.n && t.p[t.n - 1] == '\r';
    for (bool start = true; start || ends; start = false) {
        br_str_puts(&s, start ? "" : "\n");
        t.p += n + ends;
        t.n -= n + ends;
        for (n = ends = 0; n < t.n; n++)
            if ((ends = line_break(t.p + n, t.p + t.n)))
                break;
        if (!(start ? first : n || blank))
            ;
        else if (w && w->type == JV_STR)
            br_str_put(&s, w->s, w->n);
        else
            br_str_printf(&s, "%*s", (int)width, "");
        br_str_put(&s, t.p, n);
    }
    return done(r, &s, out);
}

/* Runs of letters, digits and _, as \w+ finds them. */
LIB_FN(wordcount)
{
    const uint8_t *p, *end;
    bool in = false, was;
    br_text t;
    int64_t n = 0;
    uint32_t c;

    (void)a;
    BR_TRY(text_of(r, b, &t));
    for (p = (const uint8_t *)t.p, end = p + t.n; p < end; n += in && !was) {
        was = in;
        p += br_utf8_next(p, end, &c);
        in = is_word(c) || c == '_';
    }
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

/* "-8.3": 8 and 3. */
static void
width_of(const char *spec, int64_t *width, int64_t *digits)
{
    char *end;

    *width = strtoll(spec + strspn(spec, "-+ 0#"), &end, 10);
    if (*end == '.')
        *digits = strtoll(end + 1, NULL, 10);
}

static void
put_padded(br_str *s, br_text t, size_t width, bool left)
{
    size_t n = jj_utf8_len(t), pad = width > n ? width - n : 0;

    if (!left)
        br_str_printf(s, "%*s", (int)pad, "");
    br_str_put(s, t.p, t.n);
    if (left)
        br_str_printf(s, "%*s", (int)pad, "");
}

/* The format is the template's, but its letter was looked at and fits. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

/* One conversion after '%': flags, width, precision, letter. */
static br_code
convert(jj_run *r, const char **p, const char *end, const jj_val *v, br_str *s)
{
    char spec[32] = "%";
    int64_t width = 0, digits = INT64_MAX;
    size_t n = 1;
    char c;

    while (*p < end && strchr("-+ 0#.123456789", **p) && **p && n < 16)
        spec[n++] = *(*p)++;
    if (*p >= end)
        return jj_err(r, "a '%%' without its letter");
    c = *(*p)++;
    spec[n] = 0;
    width_of(spec + 1, &width, &digits);
    if (width > BR_JINJA_MAX_INDENT ||
        (digits > BR_JINJA_MAX_INDENT && digits != INT64_MAX))
        return jj_err(r, "a '%%' with a width of more than %d",
                      BR_JINJA_MAX_INDENT);
    if (c == 's' || c == 'r') {
        br_str str = {0};
        (c == 's' ? jj_put_str : jj_put_repr)(&str, v);
        s->oom |= str.oom;
        put_padded(s,
                   jj_utf8_sub((br_text){br_str_z(&str), str.n}, 0,
                               (size_t)BR_MIN(digits, (int64_t)str.n)),
                   (size_t)width, strchr(spec, '-') != NULL);
        br_str_fini(&str);
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
        br_str_printf(s, spec, v->type == JV_INT ? (double)v->i : v->f);
    } else {
        return jj_err(r, "'%%%c' does not take %s", c, jj_type_name(v));
    }
    return BR_OK;
}

#pragma GCC diagnostic pop

/* What "(name)" after a '%' stands for. */
static br_code
named(jj_run *r, const char **p, const char *end, const jj_args *a,
      const jj_val **out)
{
    const char *close = memchr(*p, ')', (size_t)(end - *p));
    br_text name = {*p + 1, close ? (size_t)(close - *p - 1) : 0};

    if (!close)
        return jj_err(r, "a '%%(' without its ')'");
    *p = close + 1;
    for (size_t i = 0; i < a->n_kw; i++)
        if (br_text_eq(a->key[i], name)) {
            *out = &a->kw[i];
            return BR_OK;
        }
    return jj_err(r, "the format's '%.*s' has no value",
                  (int)BR_MIN(name.n, (size_t)60), name.p);
}

/* By place, or with keywords by name. */
static br_code
format_into(jj_run *r, br_text t, const jj_args *a, br_str *s)
{
    const char *p = t.p, *end = t.p + t.n;
    const jj_val *v = NULL;
    size_t used = 0;

    if (a->n_pos && a->n_kw)
        return jj_err(r, "a format takes values by place or by name");

    while (p < end) {
        if (*p != '%') {
            br_str_putc(s, *p++);
        } else if (p + 1 < end && p[1] == '%') {
            br_str_putc(s, '%');
            p += 2;
        } else if (p + 1 < end && p[1] == '(') {
            p++;
            BR_TRY(named(r, &p, end, a, &v));
            BR_TRY(convert(r, &p, end, v, s));
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
