/* jinja_filter.c - filters over lists, numbers and JSON.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/jinja_lib.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- plain ones --------------------------------------------------------- */

LIB_FN(abs)
{
    jj_val zero = jj_int(0);

    (void)a;
    if (b->type == JV_FLOAT) {
        *out = jj_float(fabs(b->f));
        return BR_OK;
    }
    if (b->type != JV_INT)
        return jj_err(r, "'abs' needs a number, not %s", jj_type_name(b));
    *out = *b;
    return b->i < 0 ? jj_binary(r, JO_SUB, &zero, b, out) : BR_OK;
}

LIB_FN(default)
{
    const jj_val *def = jj_arg(a, 0, "default_value");
    bool falsy = jj_arg_true(a, 1, "boolean") && !jj_truth(b);

    (void)r;
    *out = b->type != JV_UNDEF && !falsy ? *b
           : def                         ? *def
                                         : jj_str(BR_TEXT(""));
    return BR_OK;
}

LIB_FN(length)
{
    (void)a;
    switch ((jj_type)b->type) {
    case JV_STR: *out = jj_int((int64_t)jj_utf8_len(jj_text(b))); break;
    case JV_LIST:
    case JV_TUPLE: *out = jj_int((int64_t)b->list->n); break;
    case JV_DICT: *out = jj_int((int64_t)b->dict->n); break;
    case JV_UNDEF: *out = jj_int(0); break;
    default: return jj_err(r, "%s has no length", jj_type_name(b));
    }
    return BR_OK;
}

LIB_FN(safe)
{
    (void)r;
    (void)a;
    *out = *b;
    return BR_OK;
}

LIB_FN(string)
{
    (void)a;
    return jj_to_str(r, b, out);
}

/* Digits of a whole number, after its sign: "007" is 7. */
static bool
is_whole(br_text t)
{
    size_t n = t.n && (*t.p == '-' || *t.p == '+');
    bool any = n < t.n;

    for (; n < t.n; n++)
        any &= t.p[n] >= '0' && t.p[n] <= '9';
    return any;
}

static bool
read_whole(br_text t, int64_t *out)
{
    bool minus = *t.p == '-';

    for (t.p++, t.n--; t.n > 1 && *t.p == '0'; t.n--)
        t.p++;
    if (!br_json_to_i64(t, out)) /* -2^63 is not for templates */
        return false;
    *out = minus ? -*out : *out;
    return true;
}

/* What int() and float() read: +5, 007, .5, 5., 1_000, inf. *whole: a sign, digits. */
static br_code
number_text(jj_run *r, const jj_val *b, br_text *out, bool *whole)
{
    jj_val s;
    br_str text = {0};
    br_code rc;
    br_text t;

    BR_TRY(jj_f_trim(r, b, &(jj_args){0}, &s));
    t = jj_text(&s);
    if (t.n && *t.p != '-' && *t.p != '+')
        br_str_putc(&text, '+');
    for (size_t i = 0; i < t.n; i++) {
        bool between = i && i + 1 < t.n && t.p[i - 1] >= '0' &&
                       t.p[i - 1] <= '9' && t.p[i + 1] >= '0' &&
                       t.p[i + 1] <= '9';

        if (t.p[i] == 'x' || t.p[i] == 'X') /* no hexadecimal fraction */
            br_str_putc(&text, '?');
        if (t.p[i] != '_' || !between)
            br_str_putc(&text, t.p[i]);
    }
    rc = text.oom ? jj_oom(r)
                  : jj_str_copy(r, (br_text){br_str_z(&text), text.n}, &s);
    br_str_fini(&text);
    *out = jj_text(&s);
    *whole = rc == BR_OK && is_whole(*out);
    return rc;
}

/* Beyond 64 bits there is none. */
static br_code
to_whole(jj_run *r, double f, jj_val *out)
{
    if (fabs(f) >= 9e18 && isfinite(f))
        return jj_err(r, "an integer that does not fit 64 bits");
    if (isfinite(f))
        *out = jj_int((int64_t)f);
    return BR_OK;
}

LIB_FN(int)
{
    int64_t def = jj_arg_int(a, 0, "default", 0), i;
    br_text t;
    bool whole;
    double f;

    if (jj_arg_int(a, 1, "base", 10) != 10)
        return jj_err(r, "'int' reads base 10 alone");
    *out = jj_int(def);
    if (b->type == JV_INT || b->type == JV_BOOL) {
        *out = jj_int(b->type == JV_INT ? b->i : b->b);
    } else if (b->type == JV_FLOAT) {
        return to_whole(r, b->f, out);
    } else if (b->type == JV_STR) {
        BR_TRY(number_text(r, b, &t, &whole));
        if (whole && read_whole(t, &i))
            *out = jj_int(i);
        else if (br_f64_read(t, &f))
            return to_whole(r, f, out);
    }
    return BR_OK;
}

LIB_FN(float)
{
    const jj_val *def = jj_arg(a, 0, "default");
    bool whole;
    br_text t;
    double f;

    *out = def ? *def : jj_float(0);
    if (b->type == JV_INT || b->type == JV_BOOL)
        *out = jj_float(b->type == JV_INT ? (double)b->i : b->b);
    else if (b->type == JV_FLOAT)
        *out = *b;
    if (b->type != JV_STR)
        return BR_OK;
    BR_TRY(number_text(r, b, &t, &whole));
    if (br_f64_read(t, &f))
        *out = jj_float(f);
    return BR_OK;
}

/* To tens, hundreds and so on, halves to the even one: an integer, exactly. */
static br_code
round_whole(jj_run *r, int64_t v, int64_t zeros, jj_val *out)
{
    int64_t unit = 1, rest, more;

    for (int64_t i = 0; i < zeros; i++)
        unit *= 10;
    rest = v % unit;
    v -= rest;
    more = rest < 0 ? -unit : unit;
    rest = rest < 0 ? -rest : rest;
    if (rest * 2 < unit || (rest * 2 == unit && v / unit % 2 == 0))
        more = 0;
    if (__builtin_add_overflow(v, more, &v))
        return jj_err(r, "an integer that does not fit 64 bits");
    *out = jj_int(v);
    return BR_OK;
}

LIB_FN(round)
{
    int64_t digits = jj_arg_int(a, 0, "precision", 0);
    const jj_val *how = jj_arg(a, 1, "method");
    int64_t whole = b->type == JV_BOOL ? b->b : b->i;
    double f = b->type == JV_FLOAT ? b->f : (double)whole, unit;

    if (b->type != JV_INT && b->type != JV_BOOL && b->type != JV_FLOAT)
        return jj_err(r, "'round' needs a number, not %s", jj_type_name(b));
    if (digits < -15 || digits > 15)
        return jj_err(r, "'round' to -15 to 15 digits");
    unit = pow(10, (double)digits);
    /* Python's ceil and floor are integers: there is no -0 of them. */
    if (how && how->type == JV_STR && br_text_is(jj_text(how), "ceil")) {
        *out = jj_float((ceil(f * unit) + 0.0) / unit);
    } else if (how && how->type == JV_STR &&
               br_text_is(jj_text(how), "floor")) {
        *out = jj_float((floor(f * unit) + 0.0) / unit);
    } else if (b->type != JV_FLOAT) {
        return round_whole(r, whole, BR_MAX(-digits, (int64_t)0), out);
    } else if (digits < 0) {
        *out = jj_float(nearbyint(f * unit) / unit);
    } else {
        *out = jj_float(br_f64_round(f, (int)digits));
    }
    return BR_OK;
}

/* ---- JSON --------------------------------------------------------------- */

struct dump {
    br_str out;
    br_text item, key; /* separators */
    int64_t indent;    /* -1: one line */
    bool ascii, sort;
};

/* What stands between the quotes. */
static void
dump_part(struct dump *d, br_text t)
{
    br_json_writer w;
    br_str s = {0};

    br_json_w_begin(&w, &s, 0);
    w.utf8 = !d->ascii;
    br_json_w_str(&w, t);
    d->out.oom |= s.oom;
    if (!s.oom)
        br_str_put(&d->out, s.at + 1, s.n - 2);
    br_str_fini(&s);
}

/* Marks stay as they are; ASCII alone would escape them. */
static void
dump_str(struct dump *d, br_text t)
{
    size_t at = 0;

    br_str_putc(&d->out, '"');
    for (size_t i = 0; i < t.n; i++) {
        if (!jj_is_mark(t, i))
            continue;
        dump_part(d, (br_text){t.p + at, i - at});
        br_str_put(&d->out, t.p + i, BR_JINJA_MARK_BYTES);
        at = i + BR_JINJA_MARK_BYTES;
        i = at - 1;
    }
    dump_part(d, (br_text){t.p + at, t.n - at});
    br_str_putc(&d->out, '"');
}

static void
line_break(struct dump *d, int depth)
{
    if (d->indent >= 0)
        br_str_printf(&d->out, "\n%*s", (int)(d->indent * depth), "");
}

static int
by_key(const void *x, const void *y)
{
    const jj_val *a = *(const jj_val *const *)x, *b = *(const jj_val *const *)y;
    size_t n = BR_MIN(a->n, b->n);
    int c = n ? memcmp(a->s, b->s, n) : 0;

    return c ? c : (a->n > b->n) - (a->n < b->n);
}

static br_code dump(jj_run *r, struct dump *d, const jj_val *v, int depth);

static br_code
dump_dict(jj_run *r, struct dump *d, const jj_dict *x, int depth)
{
    const jj_val **keys = br_arena_new(&r->arena, const jj_val *, x->n + 1);

    if (!keys)
        return jj_oom(r);
    for (size_t i = 0; i < x->n; i++) {
        if (x->key[i].type > JV_STR || (d->sort && x->key[i].type != JV_STR))
            return jj_err(r, "'tojson' needs strings as keys, not %s",
                          jj_type_name(&x->key[i]));
        keys[i] = &x->key[i];
    }
    if (d->sort)
        qsort(keys, x->n, sizeof *keys, by_key);
    br_str_putc(&d->out, '{');
    for (size_t i = 0; i < x->n; i++) {
        if (i)
            br_str_put(&d->out, d->item.p, d->item.n);
        line_break(d, depth + 1);
        if (keys[i]->type == JV_STR) {
            dump_str(d, jj_text(keys[i]));
        } else { /* 1 is "1", none is "null" */
            br_str_putc(&d->out, '"');
            BR_TRY(dump(r, d, keys[i], depth));
            br_str_putc(&d->out, '"');
        }
        br_str_put(&d->out, d->key.p, d->key.n);
        BR_TRY(dump(r, d, &x->val[keys[i] - x->key], depth + 1));
    }
    if (x->n)
        line_break(d, depth);
    br_str_putc(&d->out, '}');
    return BR_OK;
}

static br_code
dump_list(jj_run *r, struct dump *d, const jj_list *x, int depth)
{
    br_str_putc(&d->out, '[');
    for (size_t i = 0; i < x->n; i++) {
        if (i)
            br_str_put(&d->out, d->item.p, d->item.n);
        line_break(d, depth + 1);
        BR_TRY(dump(r, d, &x->at[i], depth + 1));
    }
    if (x->n)
        line_break(d, depth);
    br_str_putc(&d->out, ']');
    return BR_OK;
}

static br_code
dump(jj_run *r, struct dump *d, const jj_val *v, int depth)
{
    char num[32];

    if (depth > BR_JSON_MAX_DEPTH)
        return jj_err(r, "'tojson': nested deeper than %d", BR_JSON_MAX_DEPTH);
    if (d->out.n > BR_JINJA_MAX_OUTPUT_BYTES)
        return br_fail(r->st, BR_E_LIMIT,
                       "line %u: 'tojson' of more than %d "
                       "bytes",
                       r->line, BR_JINJA_MAX_OUTPUT_BYTES);
    switch ((jj_type)v->type) {
    case JV_NONE: br_str_puts(&d->out, "null"); return BR_OK;
    case JV_BOOL: br_str_puts(&d->out, v->b ? "true" : "false"); return BR_OK;
    case JV_INT: br_str_printf(&d->out, "%lld", (long long)v->i); return BR_OK;
    case JV_FLOAT:
        if (isnan(v->f))
            br_str_puts(&d->out, "NaN");
        else if (isinf(v->f))
            br_str_puts(&d->out, v->f < 0 ? "-Infinity" : "Infinity");
        else
            br_str_put(&d->out, num, br_f64_repr(num, v->f));
        return BR_OK;
    case JV_STR: dump_str(d, jj_text(v)); return BR_OK;
    case JV_LIST:
    case JV_TUPLE: return dump_list(r, d, v->list, depth);
    case JV_DICT: return dump_dict(r, d, v->dict, depth);
    default: return jj_err(r, "'tojson' does not take %s", jj_type_name(v));
    }
}

/* json.dumps(x, ensure_ascii=False, indent, separators, sort_keys) */
LIB_FN(tojson)
{
    const jj_val *sep = jj_arg(a, 2, "separators"),
                 *indent = jj_arg(a, 1, "indent");
    struct dump d = {.item = BR_TEXT(", "), .key = BR_TEXT(": "), .indent = -1};
    br_code rc;

    /* Jinja's own filter has indent first; by name both mean the same */
    if (a->n_pos == 1)
        indent = &a->pos[0];
    d.ascii = jj_arg_true(a, 9, "ensure_ascii");
    d.sort = jj_arg_true(a, 9, "sort_keys");
    if (indent && indent->type == JV_INT) {
        if (indent->i > BR_JINJA_MAX_INDENT)
            return jj_err(r, "'tojson' indents by at most %d",
                          BR_JINJA_MAX_INDENT);
        d.indent = BR_MAX(indent->i, 0); /* as Python: a line each */
        d.item = BR_TEXT(",");
    }
    if (sep && (sep->type == JV_TUPLE || sep->type == JV_LIST) &&
        sep->list->n == 2 && sep->list->at[0].type == JV_STR &&
        sep->list->at[1].type == JV_STR) {
        d.item = jj_text(&sep->list->at[0]);
        d.key = jj_text(&sep->list->at[1]);
    }
    rc = dump(r, &d, b, 0);
    if (rc == BR_OK)
        rc = d.out.oom
                 ? jj_oom(r)
                 : jj_str_copy(r, (br_text){br_str_z(&d.out), d.out.n}, out);
    br_str_fini(&d.out);
    return rc;
}

LIB_FN(from_json)
{
    br_status st = {0};
    br_json *j;

    (void)a;
    if (b->type != JV_STR)
        return jj_err(r, "'from_json' needs a string, not %s", jj_type_name(b));
    if (br_json_parse(&j, &r->arena, b->s, b->n, 0, &st) != BR_OK)
        return jj_err(r, "'from_json': %.200s", st.msg);
    return jj_from_json(r, j, out);
}

/* ---- lists -------------------------------------------------------------- */

LIB_FN(list)
{
    jj_list *l;

    (void)a;
    BR_TRY(jj_iterate(r, b, &l));
    BR_TRY(jj_list_new(r, JV_LIST, out));
    for (size_t i = 0; i < l->n; i++)
        BR_TRY(jj_push(r, out->list, l->at[i]));
    return BR_OK;
}

static br_code
end_of(jj_run *r, const jj_val *b, bool last, jj_val *out)
{
    jj_list *l;

    BR_TRY(jj_iterate(r, b, &l));
    *out = l->n ? l->at[last ? l->n - 1 : 0]
                : jj_undef(last ? BR_TEXT("last") : BR_TEXT("first"));
    return BR_OK;
}

LIB_FN(first)
{
    (void)a;
    return end_of(r, b, false, out);
}

LIB_FN(last)
{
    (void)a;
    return end_of(r, b, true, out);
}

LIB_FN(reverse)
{
    br_str s = {0};
    br_code rc;
    jj_list *l;

    (void)a;
    BR_TRY(jj_iterate(r, b, &l));
    BR_TRY(jj_list_new(r, JV_LIST, out));
    for (size_t i = l->n; i-- > 0;)
        BR_TRY(jj_push(r, out->list, l->at[i]));
    if (b->type != JV_STR)
        return BR_OK;
    for (size_t i = 0; i < out->list->n; i++)
        jj_put_str(&s, &out->list->at[i]);
    rc = s.oom ? jj_oom(r) : jj_str_copy(r, (br_text){br_str_z(&s), s.n}, out);
    br_str_fini(&s);
    return rc;
}

/* How many per row or column, and what fills the last (NULL: nothing). */
static br_code
grid(jj_run *r, const jj_args *a, const char *name, size_t *n,
     const jj_val **fill)
{
    int64_t i = jj_arg_int(a, 0, name, 0);

    if (i < 1 || i > BR_JINJA_MAX_RANGE)
        return jj_err(r, "argument '%s' must be 1 to %d", name,
                      BR_JINJA_MAX_RANGE);
    *n = (size_t)i;
    *fill = jj_arg(a, 1, "fill_with");
    if (*fill && (*fill)->type == JV_NONE)
        *fill = NULL;
    return BR_OK;
}

/* Lists of n elements each, the last one of what is left. */
LIB_FN(batch)
{
    const jj_val *fill;
    jj_val row = {0};
    jj_list *l;
    size_t n;

    BR_TRY(grid(r, a, "linecount", &n, &fill));
    BR_TRY(jj_iterate(r, b, &l));
    BR_TRY(jj_list_new(r, JV_LIST, out));
    for (size_t i = 0; i < l->n || (fill && i % n); i++) {
        if (i % n == 0) {
            BR_TRY(jj_list_new(r, JV_LIST, &row));
            BR_TRY(jj_push(r, out->list, row));
        }
        BR_TRY(jj_push(r, row.list, i < l->n ? l->at[i] : *fill));
    }
    return BR_OK;
}

/* n lists of nearly one length, longer ones first; fill evens them out. */
LIB_FN(slice)
{
    const jj_val *fill;
    size_t n, at = 0;
    jj_list *l;

    BR_TRY(grid(r, a, "slices", &n, &fill));
    BR_TRY(jj_iterate(r, b, &l));
    BR_TRY(jj_list_new(r, JV_LIST, out));
    for (size_t i = 0; i < n; i++) {
        size_t end = at + l->n / n + (i < l->n % n);
        jj_val row;
        BR_TRY(jj_list_new(r, JV_LIST, &row));
        while (at < end)
            BR_TRY(jj_push(r, row.list, l->at[at++]));
        if (fill && i >= l->n % n)
            BR_TRY(jj_push(r, row.list, *fill));
        BR_TRY(jj_push(r, out->list, row));
    }
    return BR_OK;
}

/* x.a.b for attribute="a.b"; numbers index. NULL attribute: x itself. */
static br_code
member(jj_run *r, const jj_val *v, const jj_val *attr, jj_val *out)
{
    br_text t;

    *out = *v;
    if (!attr)
        return BR_OK;
    if (attr->type != JV_STR)
        return jj_get_item(r, v, attr, out);
    for (t = jj_text(attr); t.n;) {
        const char *dot = memchr(t.p, '.', t.n);
        size_t n = dot ? (size_t)(dot - t.p) : t.n;
        jj_val base = *out, key = jj_str((br_text){t.p, n});
        int64_t i;
        if (br_json_to_i64((br_text){t.p, n}, &i))
            key = jj_int(i);
        BR_TRY(jj_get_item(r, &base, &key, out));
        t.p += n + (dot != NULL);
        t.n -= n + (dot != NULL);
    }
    return BR_OK;
}

/* What map, select and reject go through: of what is false (None, 0), nothing. */
static br_code
if_any(jj_run *r, const jj_val *b, jj_list **out)
{
    const jj_val nothing = {.type = JV_UNDEF};

    return jj_iterate(r, jj_truth(b) ? b : &nothing, out);
}

/* select, reject and their attr forms: what passes a test (or is true) stays */
static br_code
sieve(jj_run *r, const jj_val *b, const jj_args *a, bool attr, bool keep,
      jj_val *out)
{
    size_t skip = attr ? 1 : 0;
    jj_args rest = {0};
    int row = -1;
    jj_list *l;

    if (attr && !a->n_pos)
        return jj_err(r, "needs the name of an attribute");
    if (a->n_pos > skip) {
        const jj_val *name = &a->pos[skip];
        row = name->type == JV_STR ? jj_test_find(jj_text(name)) : -1;
        if (row < 0)
            return jj_err(r, "no such test");
        rest =
            (jj_args){.pos = a->pos + skip + 1, .n_pos = a->n_pos - skip - 1};
    }
    BR_TRY(if_any(r, b, &l));
    BR_TRY(jj_list_new(r, JV_LIST, out));
    for (size_t i = 0; i < l->n; i++) {
        jj_val v;
        bool yes;
        BR_TRY(member(r, &l->at[i], attr ? &a->pos[0] : NULL, &v));
        yes = jj_truth(&v);
        if (row >= 0)
            BR_TRY(jj_test_call(r, row, &v, &rest, &yes));
        if (yes == keep)
            BR_TRY(jj_push(r, out->list, l->at[i]));
    }
    return BR_OK;
}

LIB_FN(select)
{
    return sieve(r, b, a, false, true, out);
}

LIB_FN(reject)
{
    return sieve(r, b, a, false, false, out);
}

LIB_FN(selectattr)
{
    return sieve(r, b, a, true, true, out);
}

LIB_FN(rejectattr)
{
    return sieve(r, b, a, true, false, out);
}

LIB_FN(map)
{
    const jj_val *attr = jj_arg(a, 99, "attribute"),
                 *def = jj_arg(a, 99, "default");
    jj_args rest = {0};
    int row = -1;
    jj_list *l;

    if (!attr) {
        if (!a->n_pos || a->pos[0].type != JV_STR ||
            (row = jj_filter_find(jj_text(&a->pos[0]))) < 0)
            return jj_err(r, "'map' needs an attribute or a filter");
        rest = *a;
        rest.pos++;
        rest.n_pos--;
    }
    BR_TRY(if_any(r, b, &l));
    BR_TRY(jj_list_new(r, JV_LIST, out));
    for (size_t i = 0; i < l->n; i++) {
        jj_val v;
        if (attr)
            BR_TRY(member(r, &l->at[i], attr, &v));
        else
            BR_TRY(jj_filter_call(r, row, &l->at[i], &rest, &v));
        if (v.type == JV_UNDEF && def)
            v = *def;
        BR_TRY(jj_push(r, out->list, v));
    }
    return BR_OK;
}

/* Case does not count unless asked: the key of a string is its lower case. */
static br_code
sort_key(jj_run *r, const jj_val *v, const jj_val *attr, bool exact,
         jj_val *out)
{
    jj_val m;

    BR_TRY(member(r, v, attr, &m));
    if (m.type == JV_STR && !exact)
        return jj_f_lower(r, &m, &(jj_args){0}, out);
    *out = m;
    return BR_OK;
}

/* Stable merge sort of idx by key; comparing may fail, so not qsort. sign: -1
 * for what is largest first; equals keep their order then, too. */
static br_code
merge_sort(jj_run *r, const jj_val *key, size_t *idx, size_t *tmp, size_t n,
           int sign)
{
    size_t half = n / 2, i = 0, j = half, k = 0;

    if (n < 2)
        return BR_OK;
    BR_TRY(merge_sort(r, key, idx, tmp, half, sign));
    BR_TRY(merge_sort(r, key, idx + half, tmp, n - half, sign));
    while (i < half && j < n) {
        int c;
        BR_TRY(jj_compare(r, &key[idx[j]], &key[idx[i]], &c));
        tmp[k++] = c * sign < 0 ? idx[j++] : idx[i++];
    }
    while (i < half)
        tmp[k++] = idx[i++];
    while (j < n)
        tmp[k++] = idx[j++];
    memcpy(idx, tmp, n * sizeof *idx);
    return BR_OK;
}

static br_code
sorted(jj_run *r, const jj_list *l, const jj_val *attr, bool exact,
       bool reverse, size_t **order)
{
    jj_val *key = br_arena_new(&r->arena, jj_val, l->n + 1);
    size_t *idx = br_arena_new(&r->arena, size_t, 2 * l->n + 1);

    if (!key || !idx)
        return jj_oom(r);
    for (size_t i = 0; i < l->n; i++) {
        idx[i] = i;
        BR_TRY(sort_key(r, &l->at[i], attr, exact, &key[i]));
    }
    *order = idx;
    return merge_sort(r, key, idx, idx + l->n, l->n, reverse ? -1 : 1);
}

LIB_FN(sort)
{
    size_t *order;
    jj_list *l;

    BR_TRY(jj_iterate(r, b, &l));
    BR_TRY(sorted(r, l, jj_arg(a, 2, "attribute"),
                  jj_arg_true(a, 1, "case_sensitive"),
                  jj_arg_true(a, 0, "reverse"), &order));
    BR_TRY(jj_list_new(r, JV_LIST, out));
    for (size_t i = 0; i < l->n; i++)
        BR_TRY(jj_push(r, out->list, l->at[order[i]]));
    return BR_OK;
}

/* (key, those that have it) for each key, in order */
LIB_FN(groupby)
{
    const jj_val *attr = jj_arg(a, 0, "attribute");
    bool exact = jj_arg_true(a, 2, "case_sensitive");
    jj_val group = {0}, last = {0}, key, name;
    size_t *order;
    jj_list *l;

    if (!attr)
        return jj_err(r, "'groupby' needs an attribute");
    BR_TRY(jj_iterate(r, b, &l));
    BR_TRY(sorted(r, l, attr, exact, false, &order));
    BR_TRY(jj_list_new(r, JV_LIST, out));
    for (size_t i = 0; i < l->n; i++) {
        const jj_val *v = &l->at[order[i]];
        jj_val pair;

        BR_TRY(sort_key(r, v, attr, exact, &key));
        if (i == 0 || !jj_equal(r, &key, &last)) {
            BR_TRY(member(r, v, attr, &name));
            BR_TRY(jj_list_new(r, JV_TUPLE, &pair));
            pair.list->group = true;
            BR_TRY(jj_list_new(r, JV_LIST, &group));
            BR_TRY(jj_push(r, pair.list, name));
            BR_TRY(jj_push(r, pair.list, group));
            BR_TRY(jj_push(r, out->list, pair));
        }
        BR_TRY(jj_push(r, group.list, *v));
        last = key;
    }
    return BR_OK;
}

LIB_FN(dictsort)
{
    const jj_val *by = jj_arg(a, 1, "by");
    bool value = by && by->type == JV_STR && br_text_is(jj_text(by), "value");
    jj_val pairs, at = jj_int(value);
    size_t *order;

    BR_TRY(jj_f_items(r, b, a, &pairs));
    BR_TRY(sorted(r, pairs.list, &at, jj_arg_true(a, 0, "case_sensitive"),
                  jj_arg_true(a, 2, "reverse"), &order));
    BR_TRY(jj_list_new(r, JV_LIST, out));
    for (size_t i = 0; i < pairs.list->n; i++)
        BR_TRY(jj_push(r, out->list, pairs.list->at[order[i]]));
    return BR_OK;
}

LIB_FN(unique)
{
    jj_list *l;
    jj_val seen;

    BR_TRY(jj_iterate(r, b, &l));
    BR_TRY(jj_list_new(r, JV_LIST, out));
    BR_TRY(jj_list_new(r, JV_LIST, &seen));
    for (size_t i = 0; i < l->n; i++) {
        jj_val key;
        bool there;
        BR_TRY(sort_key(r, &l->at[i], jj_arg(a, 1, "attribute"),
                        jj_arg_true(a, 0, "case_sensitive"), &key));
        BR_TRY(jj_contains(r, &seen, &key, &there));
        if (there)
            continue;
        BR_TRY(jj_push(r, seen.list, key));
        BR_TRY(jj_push(r, out->list, l->at[i]));
    }
    return BR_OK;
}

static br_code
extreme(jj_run *r, const jj_val *b, const jj_args *a, int sign, jj_val *out)
{
    jj_val best = {0}, key;
    jj_list *l;
    int c;

    BR_TRY(jj_iterate(r, b, &l));
    *out = jj_undef(BR_TEXT("element"));
    for (size_t i = 0; i < l->n; i++) {
        BR_TRY(sort_key(r, &l->at[i], jj_arg(a, 1, "attribute"),
                        jj_arg_true(a, 0, "case_sensitive"), &key));
        if (i)
            BR_TRY(jj_compare(r, &key, &best, &c));
        if (i == 0 || c * sign > 0) {
            best = key;
            *out = l->at[i];
        }
    }
    return BR_OK;
}

LIB_FN(max)
{
    return extreme(r, b, a, 1, out);
}

LIB_FN(min)
{
    return extreme(r, b, a, -1, out);
}

LIB_FN(sum)
{
    const jj_val *start = jj_arg(a, 1, "start"),
                 *attr = jj_arg(a, 0, "attribute");
    jj_list *l;

    BR_TRY(jj_iterate(r, b, &l));
    *out = start ? *start : jj_int(0);
    for (size_t i = 0; i < l->n; i++) {
        jj_val x = *out, v;
        BR_TRY(member(r, &l->at[i], attr, &v));
        BR_TRY(jj_binary(r, JO_ADD, &x, &v, out));
    }
    return BR_OK;
}
