/* jinja_value.c - the values of a rendering: Python's, as far as templates see
 * them. Text is UTF-8 and counted in characters. All memory is the rendering's
 * arena; nothing is freed before its end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/jinja_ast.h"
#include "model/unicode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define PRINT_DEPTH 64 /* a list in a list in a list .. printed so deep */

jj_val
jj_none(void)
{
    return (jj_val){.type = JV_NONE};
}

jj_val
jj_bool(bool b)
{
    return (jj_val){.type = JV_BOOL, .b = b};
}

jj_val
jj_int(int64_t i)
{
    return (jj_val){.type = JV_INT, .i = i};
}

jj_val
jj_float(double f)
{
    return (jj_val){.type = JV_FLOAT, .f = f};
}

jj_val
jj_str(br_text t)
{
    return (jj_val){.type = JV_STR, .s = t.p, .n = (uint32_t)t.n};
}

jj_val
jj_undef(br_text name)
{
    return (jj_val){.type = JV_UNDEF, .s = name.p, .n = (uint32_t)name.n};
}

br_text
jj_text(const jj_val *v)
{
    return (br_text){v->s, v->n};
}

br_code
jj_str_copy(jj_run *r, br_text t, jj_val *out)
{
    char *s;

    if (t.n > BR_JINJA_MAX_OUTPUT_BYTES)
        return br_fail(r->st, BR_E_LIMIT,
                       "line %u: a string of more than %d "
                       "bytes",
                       r->line, BR_JINJA_MAX_OUTPUT_BYTES);
    s = br_arena_str(&r->arena, t.p ? t.p : "", t.n);
    if (!s)
        return jj_oom(r);
    *out = jj_str((br_text){s, t.n});
    return BR_OK;
}

const char *
jj_type_name(const jj_val *v)
{
    static const char *const names[] = {
        "undefined", "None",   "a boolean", "an integer", "a float",
        "a string",  "a list", "a tuple",   "a dict",     "a namespace",
        "a loop",    "a ring", "a macro",   "a function", "a method"};

    return names[v->type];
}

/* ---- lists and dicts ---------------------------------------------------- */

br_code
jj_list_new(jj_run *r, uint8_t type, jj_val *out)
{
    *out = (jj_val){.type = type};
    out->list = br_arena_new(&r->arena, jj_list, 1);
    return out->list ? BR_OK : jj_oom(r);
}

br_code
jj_push(jj_run *r, jj_list *l, jj_val v)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 8;
        jj_val *at = br_arena_get(&r->arena, cap * sizeof *at);
        if (!at)
            return jj_oom(r);
        if (l->n)
            memcpy(at, l->at, l->n * sizeof *at);
        l->at = at;
        l->cap = cap;
    }
    l->at[l->n++] = v;
    return BR_OK;
}

br_code
jj_dict_new(jj_run *r, uint8_t type, jj_val *out)
{
    *out = (jj_val){.type = type};
    out->dict = br_arena_new(&r->arena, jj_dict, 1);
    return out->dict ? BR_OK : jj_oom(r);
}

static br_code
dict_append(jj_run *r, jj_dict *d, jj_val key, jj_val v)
{
    if (d->n == d->cap) {
        size_t cap = d->cap ? d->cap * 2 : 8;
        jj_val *k = br_arena_get(&r->arena, 2 * cap * sizeof *k);
        if (!k)
            return jj_oom(r);
        if (d->n) {
            memcpy(k, d->key, d->n * sizeof *k);
            memcpy(k + cap, d->val, d->n * sizeof *k);
        }
        d->key = k;
        d->val = k + cap;
        d->cap = cap;
    }
    d->key[d->n] = key;
    d->val[d->n++] = v;
    return BR_OK;
}

br_code
jj_dict_set(jj_run *r, jj_dict *d, jj_val key, jj_val v)
{
    for (size_t i = 0; i < d->n; i++)
        if (jj_equal(r, &d->key[i], &key)) {
            d->val[i] = v;
            return BR_OK;
        }
    return dict_append(r, d, key, v);
}

const jj_val *
jj_dict_get(jj_run *r, const jj_dict *d, const jj_val *key)
{
    for (size_t i = 0; i < d->n; i++)
        if (jj_equal(r, &d->key[i], key))
            return &d->val[i];
    return NULL;
}

const jj_val *
jj_dict_get_text(const jj_dict *d, br_text key)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->key[i].type == JV_STR && br_text_eq(jj_text(&d->key[i]), key))
            return &d->val[i];
    return NULL;
}

/* The reader limits the depth of j to BR_JSON_MAX_DEPTH. */
br_code
jj_from_json(jj_run *r, const br_json *j, jj_val *out)
{
    jj_val v;
    double big;

    switch ((br_json_kind)j->kind) {
    case BR_J_NULL: *out = jj_none(); return BR_OK;
    case BR_J_BOOL: *out = jj_bool(j->b); return BR_OK;
    case BR_J_INT: *out = jj_int(j->i); return BR_OK;
    case BR_J_FLOAT: *out = jj_float(j->f); return BR_OK;
    case BR_J_STR: *out = jj_str((br_text){j->s, j->n}); return BR_OK;
    case BR_J_BIGINT: /* no big integers here: the nearest float */
        if (!br_json_to_f64((br_text){j->s, j->n}, &big))
            big = 0;
        *out = jj_float(big);
        return BR_OK;
    case BR_J_ARR:
        BR_TRY(jj_list_new(r, JV_LIST, out));
        for (const br_json *c = j->child; c; c = c->next) {
            BR_TRY(jj_from_json(r, c, &v));
            BR_TRY(jj_push(r, out->list, v));
        }
        return BR_OK;
    case BR_J_OBJ:
        BR_TRY(jj_dict_new(r, JV_DICT, out));
        for (const br_json *c = j->child; c; c = c->next) {
            BR_TRY(jj_from_json(r, c, &v));
            BR_TRY(dict_append(r, out->dict,
                               jj_str((br_text){c->key, c->key_n}), v));
        }
        return BR_OK;
    }
    br_unreachable("closed enum");
}

/* ---- truth, equality, order --------------------------------------------- */

bool
jj_truth(const jj_val *v)
{
    switch ((jj_type)v->type) {
    case JV_UNDEF:
    case JV_NONE: return false;
    case JV_BOOL: return v->b;
    case JV_INT: return v->i != 0;
    case JV_FLOAT: return v->f < 0 || v->f > 0 || isnan(v->f);
    case JV_STR: return v->n != 0;
    case JV_LIST:
    case JV_TUPLE: return v->list->n != 0;
    case JV_DICT: return v->dict->n != 0;
    case JV_NS:
    case JV_LOOP:
    case JV_RING:
    case JV_MACRO:
    case JV_FN:
    case JV_METHOD: return true;
    }
    br_unreachable("closed enum");
}

static bool
is_number(const jj_val *v)
{
    return v->type == JV_BOOL || v->type == JV_INT || v->type == JV_FLOAT;
}

static int64_t
as_int(const jj_val *v)
{
    return v->type == JV_BOOL ? v->b : v->i;
}

static double
as_float(const jj_val *v)
{
    return v->type == JV_FLOAT ? v->f : (double)as_int(v);
}

static bool
equal_at(jj_run *r, const jj_val *a, const jj_val *b, int depth)
{
    /* lists that share their elements are more than they look */
    if (++r->steps > BR_JINJA_MAX_STEPS)
        return false; /* jj_within() tells */
    if (is_number(a) && is_number(b)) {
        if (a->type == JV_FLOAT || b->type == JV_FLOAT) {
            double x = as_float(a), y = as_float(b);
            return !(x < y) && !(x > y) && !isnan(x) && !isnan(y);
        }
        return as_int(a) == as_int(b);
    }
    if (a->type != b->type)
        return false;
    if (depth > BR_JINJA_MAX_DEPTH) {
        r->too_deep = true;
        return false;
    }
    switch ((jj_type)a->type) {
    case JV_UNDEF:
    case JV_NONE: return true;
    case JV_STR: return br_text_eq(jj_text(a), jj_text(b));
    case JV_LIST:
    case JV_TUPLE:
        if (a->list->n != b->list->n)
            return false;
        for (size_t i = 0; i < a->list->n; i++)
            if (!equal_at(r, &a->list->at[i], &b->list->at[i], depth + 1))
                return false;
        return true;
    case JV_DICT:
        if (a->dict->n != b->dict->n)
            return false;
        for (size_t i = 0; i < a->dict->n; i++) {
            const jj_val *x = jj_dict_get(r, b->dict, &a->dict->key[i]);
            if (!x || !equal_at(r, &a->dict->val[i], x, depth + 1))
                return false;
        }
        return true;
    case JV_FN: return a->i == b->i;
    case JV_BOOL:
    case JV_INT:
    case JV_FLOAT:
    case JV_NS:
    case JV_LOOP:
    case JV_RING:
    case JV_MACRO:
    case JV_METHOD: return a->s == b->s; /* the same object */
    }
    br_unreachable("closed enum");
}

bool
jj_equal(jj_run *r, const jj_val *a, const jj_val *b)
{
    return equal_at(r, a, b, 0);
}

static int
text_order(br_text a, br_text b)
{
    size_t n = BR_MIN(a.n, b.n);
    int c = n ? memcmp(a.p, b.p, n) : 0; /* UTF-8 sorts as code points do */

    return c ? (c > 0) - (c < 0) : (a.n > b.n) - (a.n < b.n);
}

br_code
jj_compare(jj_run *r, const jj_val *a, const jj_val *b, int *out)
{
    if (is_number(a) && is_number(b)) {
        if (a->type == JV_FLOAT || b->type == JV_FLOAT) {
            double x = as_float(a), y = as_float(b);
            *out = (x > y) - (x < y);
        } else {
            *out = (as_int(a) > as_int(b)) - (as_int(a) < as_int(b));
        }
        return BR_OK;
    }
    if (a->type == JV_STR && b->type == JV_STR) {
        *out = text_order(jj_text(a), jj_text(b));
        return BR_OK;
    }
    if (a->type == b->type && (a->type == JV_LIST || a->type == JV_TUPLE)) {
        for (size_t i = 0; i < BR_MIN(a->list->n, b->list->n); i++)
            if (!jj_equal(r, &a->list->at[i], &b->list->at[i])) {
                if (++r->depth > BR_JINJA_MAX_DEPTH)
                    return jj_err(r, "lists nested too deep to compare");
                BR_TRY(jj_compare(r, &a->list->at[i], &b->list->at[i], out));
                r->depth--;
                return BR_OK;
            }
        *out = (a->list->n > b->list->n) - (a->list->n < b->list->n);
        return BR_OK;
    }
    return jj_err(r, "cannot order %s and %s", jj_type_name(a),
                  jj_type_name(b));
}

static bool
text_in(br_text hay, br_text needle)
{
    return needle.n == 0 || memmem(hay.p, hay.n, needle.p, needle.n) != NULL;
}

br_code
jj_contains(jj_run *r, const jj_val *in, const jj_val *what, bool *out)
{
    *out = false;
    switch ((jj_type)in->type) {
    case JV_STR:
        if (what->type != JV_STR)
            return jj_err(r, "'in' a string needs a string, not %s",
                          jj_type_name(what));
        *out = text_in(jj_text(in), jj_text(what));
        return BR_OK;
    case JV_LIST:
    case JV_TUPLE:
        for (size_t i = 0; i < in->list->n && !*out; i++)
            *out = jj_equal(r, &in->list->at[i], what);
        return BR_OK;
    case JV_DICT:
    case JV_NS: *out = jj_dict_get(r, in->dict, what) != NULL; return BR_OK;
    case JV_UNDEF: return BR_OK;
    default: return jj_err(r, "cannot look inside %s", jj_type_name(in));
    }
}

/* ---- printing ----------------------------------------------------------- */

/* What repr escapes: unassigned, control, format and private characters, and
 * all blanks but the space, such as U+00A0. */
static bool
is_shown(uint32_t c)
{
    int class = br_unicode_class(c) & 0x0F;

    return c == ' ' ||
           (class != BR_UC_NONE && class != BR_UC_OTHER && class != BR_UC_Z);
}

static void
repr_char(br_str *s, uint32_t c, char quote)
{
    if (c == '\n' || c == '\t' || c == '\r')
        br_str_printf(s, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
    else if (c == '\\' || c == (unsigned char)quote)
        br_str_printf(s, "\\%c", (char)c);
    else if (c < 0x100)
        br_str_printf(s, "\\x%02x", c);
    else if (c < 0x10000)
        br_str_printf(s, "\\u%04x", c);
    else
        br_str_printf(s, "\\U%08x", c);
}

/* Python's repr of a string: single quotes unless that costs escapes. */
static void
repr_text(br_str *s, br_text t)
{
    char quote = memchr(t.p, '\'', t.n) && !memchr(t.p, '"', t.n) ? '"' : '\'';
    const uint8_t *p = (const uint8_t *)t.p, *end = p + t.n;

    br_str_putc(s, quote);
    while (p < end) {
        uint32_t c;
        size_t n = br_utf8_next(p, end, &c);

        if (jj_is_mark(t, (size_t)(p - (const uint8_t *)t.p)) ||
            (is_shown(c) && c != '\\' && c != (unsigned char)quote))
            br_str_put(s, (const char *)p, n);
        else
            repr_char(s, c, quote);
        p += n;
    }
    br_str_putc(s, quote);
}

static void put_at(br_str *s, const jj_val *v, bool repr, int depth);

static void
put_list(br_str *s, const jj_val *v, int depth)
{
    bool tuple = v->type == JV_TUPLE;

    br_str_putc(s, tuple ? '(' : '[');
    for (size_t i = 0; i < v->list->n; i++) {
        if (i)
            br_str_puts(s, ", ");
        put_at(s, &v->list->at[i], true, depth + 1);
    }
    br_str_puts(s, tuple ? v->list->n == 1 ? ",)" : ")" : "]");
}

static void
put_dict(br_str *s, const jj_val *v, int depth)
{
    br_str_putc(s, '{');
    for (size_t i = 0; i < v->dict->n; i++) {
        if (i)
            br_str_puts(s, ", ");
        put_at(s, &v->dict->key[i], true, depth + 1);
        br_str_puts(s, ": ");
        put_at(s, &v->dict->val[i], true, depth + 1);
    }
    br_str_putc(s, '}');
}

static void
put_at(br_str *s, const jj_val *v, bool repr, int depth)
{
    char num[32];

    if (depth > PRINT_DEPTH || s->n > BR_JINJA_MAX_OUTPUT_BYTES) {
        br_str_puts(s, "...");
        return;
    }
    switch ((jj_type)v->type) {
    case JV_UNDEF: br_str_puts(s, repr ? "Undefined" : ""); break;
    case JV_NONE: br_str_puts(s, "None"); break;
    case JV_BOOL: br_str_puts(s, v->b ? "True" : "False"); break;
    case JV_INT: br_str_printf(s, "%lld", (long long)v->i); break;
    case JV_FLOAT: br_str_put(s, num, br_f64_repr(num, v->f)); break;
    case JV_STR:
        if (repr)
            repr_text(s, jj_text(v));
        else
            br_str_put(s, v->s, v->n);
        break;
    case JV_LIST:
    case JV_TUPLE: put_list(s, v, depth); break;
    case JV_DICT: put_dict(s, v, depth); break;
    case JV_NS: br_str_puts(s, "<Namespace>"); break;
    case JV_LOOP: br_str_puts(s, "<LoopContext>"); break;
    case JV_RING:
        br_str_puts(s, v->ring->joins ? "<Joiner>" : "<Cycler>");
        break;
    case JV_MACRO: br_str_puts(s, "<Macro>"); break;
    case JV_FN:
    case JV_METHOD: br_str_puts(s, "<function>"); break;
    }
}

void
jj_put_str(br_str *s, const jj_val *v)
{
    put_at(s, v, false, 0);
}

void
jj_put_repr(br_str *s, const jj_val *v)
{
    put_at(s, v, true, 0);
}

br_code
jj_to_str(jj_run *r, const jj_val *v, jj_val *out)
{
    br_str s = {0};
    br_code rc;

    if (v->type == JV_STR) {
        *out = *v;
        return BR_OK;
    }
    jj_put_str(&s, v);
    rc = s.oom ? jj_oom(r) : jj_str_copy(r, (br_text){br_str_z(&s), s.n}, out);
    br_str_fini(&s);
    return rc;
}

/* ---- elements ----------------------------------------------------------- */

br_code
jj_iterate(jj_run *r, const jj_val *v, jj_list **out)
{
    jj_val l;

    switch ((jj_type)v->type) {
    case JV_LIST:
    case JV_TUPLE: *out = v->list; return BR_OK;
    case JV_DICT:
        BR_TRY(jj_list_new(r, JV_LIST, &l));
        for (size_t i = 0; i < v->dict->n; i++)
            BR_TRY(jj_push(r, l.list, v->dict->key[i]));
        break;
    case JV_STR:
        BR_TRY(jj_list_new(r, JV_LIST, &l));
        for (size_t i = 0; i < v->n;) {
            size_t n = jj_char_bytes(jj_text(v), i);
            BR_TRY(jj_push(r, l.list, jj_str((br_text){v->s + i, n})));
            i += n;
        }
        break;
    case JV_UNDEF: BR_TRY(jj_list_new(r, JV_LIST, &l)); break;
    default: return jj_err(r, "cannot loop over %s", jj_type_name(v));
    }
    *out = l.list;
    return BR_OK;
}

/* ---- operators ---------------------------------------------------------- */

static br_code
join2(jj_run *r, br_text a, br_text b, jj_val *out)
{
    char *s;

    if (a.n + b.n > BR_JINJA_MAX_OUTPUT_BYTES)
        return br_fail(r->st, BR_E_LIMIT,
                       "line %u: a string of more than %d bytes", r->line,
                       BR_JINJA_MAX_OUTPUT_BYTES);
    s = br_arena_get(&r->arena, a.n + b.n + 1);
    if (!s)
        return jj_oom(r);
    memcpy(s, a.p, a.n);
    memcpy(s + a.n, b.p, b.n);
    *out = jj_str((br_text){s, a.n + b.n});
    return BR_OK;
}

static br_code
concat_lists(jj_run *r, const jj_val *a, const jj_val *b, jj_val *out)
{
    BR_TRY(jj_list_new(r, a->type, out));
    for (size_t i = 0; i < a->list->n; i++)
        BR_TRY(jj_push(r, out->list, a->list->at[i]));
    for (size_t i = 0; i < b->list->n; i++)
        BR_TRY(jj_push(r, out->list, b->list->at[i]));
    return BR_OK;
}

static br_code
repeat(jj_run *r, const jj_val *a, int64_t times, jj_val *out)
{
    size_t unit = a->type == JV_STR ? a->n : a->list->n;
    br_str s = {0};
    br_code rc;

    times = unit ? BR_MAX(times, 0) : 0; /* of nothing, nothing */
    if (unit && (uint64_t)times > BR_JINJA_MAX_OUTPUT_BYTES / unit)
        return br_fail(r->st, BR_E_LIMIT, "line %u: repeated too often",
                       r->line);
    if (a->type != JV_STR) {
        BR_TRY(jj_list_new(r, a->type, out));
        for (int64_t k = 0; k < times; k++)
            for (size_t i = 0; i < a->list->n; i++)
                BR_TRY(jj_push(r, out->list, a->list->at[i]));
        return BR_OK;
    }
    for (int64_t k = 0; k < times; k++)
        br_str_put(&s, a->s, a->n);
    rc = s.oom ? jj_oom(r) : jj_str_copy(r, (br_text){br_str_z(&s), s.n}, out);
    br_str_fini(&s);
    return rc;
}

static br_code
int_op(jj_run *r, int op, int64_t a, int64_t b, jj_val *out)
{
    int64_t v = 0;
    bool over = false;

    switch (op) {
    case JO_ADD: over = __builtin_add_overflow(a, b, &v); break;
    case JO_SUB: over = __builtin_sub_overflow(a, b, &v); break;
    case JO_MUL: over = __builtin_mul_overflow(a, b, &v); break;
    case JO_FLOOR:
    case JO_MOD:
        if (b == 0)
            return jj_err(r, "division by zero");
        if (b == -1) { /* INT64_MIN / -1 */
            over = op == JO_FLOOR && __builtin_sub_overflow(0, a, &v);
            break;
        }
        v = op == JO_FLOOR ? a / b : a % b;
        if (a % b != 0 && (a % b < 0) != (b < 0))
            v += op == JO_FLOOR ? -1 : b; /* toward minus infinity */
        break;
    case JO_POW:
        v = a == -1 && b % 2 ? -1 : a == 0 && b ? 0 : 1;
        for (int64_t k = 0; (a < -1 || a > 1) && k < b && !over; k++)
            over = __builtin_mul_overflow(v, a, &v); /* 63 times at most */
        break;
    default: br_unreachable("an integer operator");
    }
    if (over)
        return jj_err(r, "an integer that does not fit 64 bits");
    *out = jj_int(v);
    return BR_OK;
}

/* As Python: the rest is exact and has b's sign, so 1 // 0.1 is 9, not the 10 that
 * 1 / 0.1 rounds to. */
static double
floor_div(double a, double b, double *rest)
{
    double mod = fmod(a, b), div = (a - mod) / b, whole;

    if (mod < 0 || mod > 0) {
        if ((b < 0) != (mod < 0)) {
            mod += b;
            div -= 1;
        }
    } else {
        mod = copysign(0, b);
    }
    whole = floor(div);
    *rest = mod;
    return div < 0 || div > 0 ? whole + (div - whole > 0.5)
                              : copysign(0, a / b);
}

static br_code
float_op(jj_run *r, int op, double a, double b, jj_val *out)
{
    bool zero = !(b < 0) && !(b > 0);
    double rest;

    if (zero && (op == JO_DIV || op == JO_FLOOR || op == JO_MOD))
        return jj_err(r, "division by zero");
    switch (op) {
    case JO_ADD: *out = jj_float(a + b); break;
    case JO_SUB: *out = jj_float(a - b); break;
    case JO_MUL: *out = jj_float(a * b); break;
    case JO_DIV: *out = jj_float(a / b); break;
    case JO_FLOOR: *out = jj_float(floor_div(a, b, &rest)); break;
    case JO_MOD:
        (void)floor_div(a, b, &rest);
        *out = jj_float(rest);
        break;
    case JO_POW: *out = jj_float(pow(a, b)); break;
    default: br_unreachable("a float operator");
    }
    return BR_OK;
}

/* "..." % value, values or a dict of named ones */
static br_code
percent(jj_run *r, const jj_val *a, const jj_val *b, jj_val *out)
{
    jj_args args = {.pos = b, .n_pos = 1};

    if (b->type == JV_TUPLE)
        args = (jj_args){.pos = b->list->at, .n_pos = b->list->n};
    if (b->type == JV_DICT && text_in(jj_text(a), BR_TEXT("%("))) {
        br_text *key = br_arena_new(&r->arena, br_text, b->dict->n + 1);

        if (!key)
            return jj_oom(r);
        for (size_t i = 0; i < b->dict->n; i++)
            if (b->dict->key[i].type == JV_STR)
                key[i] = jj_text(&b->dict->key[i]);
        args = (jj_args){.key = key, .kw = b->dict->val, .n_kw = b->dict->n};
    }
    return jj_filter_call(r, jj_filter_find(BR_TEXT("format")), a, &args, out);
}

br_code
jj_binary(jj_run *r, int op, const jj_val *a, const jj_val *b, jj_val *out)
{
    jj_val x, y;

    if (op == JO_CAT) {
        BR_TRY(jj_to_str(r, a, &x));
        BR_TRY(jj_to_str(r, b, &y));
        return join2(r, jj_text(&x), jj_text(&y), out);
    }
    if (is_number(a) && is_number(b)) {
        bool real = a->type == JV_FLOAT || b->type == JV_FLOAT ||
                    op == JO_DIV || (op == JO_POW && as_int(b) < 0);
        return real ? float_op(r, op, as_float(a), as_float(b), out)
                    : int_op(r, op, as_int(a), as_int(b), out);
    }
    if (op == JO_ADD && a->type == JV_STR && b->type == JV_STR)
        return join2(r, jj_text(a), jj_text(b), out);
    if (op == JO_ADD && a->type == b->type &&
        (a->type == JV_LIST || a->type == JV_TUPLE))
        return concat_lists(r, a, b, out);
    if (op == JO_MUL && b->type == JV_INT &&
        (a->type == JV_STR || a->type == JV_LIST || a->type == JV_TUPLE))
        return repeat(r, a, b->i, out);
    if (op == JO_MUL && a->type == JV_INT &&
        (b->type == JV_STR || b->type == JV_LIST || b->type == JV_TUPLE))
        return repeat(r, b, a->i, out);
    if (op == JO_MOD && a->type == JV_STR)
        return percent(r, a, b, out);
    if (a->type == JV_UNDEF || b->type == JV_UNDEF)
        return jj_err(r, "'%.*s' is undefined",
                      (int)(a->type == JV_UNDEF ? a->n : b->n),
                      a->type == JV_UNDEF ? a->s : b->s);
    return jj_err(r, "this operator does not take %s and %s", jj_type_name(a),
                  jj_type_name(b));
}

/* ---- members ------------------------------------------------------------ */

static void
loop_attr(const jj_loop *l, br_text name, jj_val *out)
{
    int64_t i = (int64_t)l->i, n = (int64_t)l->items->n;

    if (br_text_is(name, "index0"))
        *out = jj_int(i);
    else if (br_text_is(name, "index"))
        *out = jj_int(i + 1);
    else if (br_text_is(name, "first"))
        *out = jj_bool(i == 0);
    else if (br_text_is(name, "last"))
        *out = jj_bool(i + 1 == n);
    else if (br_text_is(name, "length"))
        *out = jj_int(n);
    else if (br_text_is(name, "revindex"))
        *out = jj_int(n - i);
    else if (br_text_is(name, "revindex0"))
        *out = jj_int(n - i - 1);
    else if (br_text_is(name, "depth"))
        *out = jj_int(l->depth);
    else if (br_text_is(name, "depth0"))
        *out = jj_int(l->depth - 1);
    else if (br_text_is(name, "previtem") && i > 0)
        *out = l->items->at[i - 1];
    else if (br_text_is(name, "nextitem") && i + 1 < n)
        *out = l->items->at[i + 1];
    else
        *out = jj_undef(name);
}

br_code
jj_get_attr(jj_run *r, const jj_val *v, br_text name, jj_val *out)
{
    const jj_val *x;
    int row = jj_method_find(v, name);

    if (v->type == JV_UNDEF)
        return jj_err(r, "'%.*s' is undefined", (int)v->n, v->s);
    /* obj.x is getattr first, then the item: a dict's own methods win */
    if (row >= 0) {
        jj_method *m = br_arena_new(&r->arena, jj_method, 1);
        if (!m)
            return jj_oom(r);
        *m = (jj_method){*v, row};
        *out = (jj_val){.type = JV_METHOD, .method = m};
        return BR_OK;
    }
    *out = jj_undef(name);
    if (v->type == JV_LOOP)
        loop_attr(v->loop, name, out);
    else if (v->type == JV_RING && !v->ring->joins &&
             br_text_is(name, "current"))
        *out = v->ring->items->at[v->ring->i];
    else if (v->type == JV_TUPLE && v->list->group &&
             (br_text_is(name, "grouper") || br_text_is(name, "list")))
        *out = v->list->at[br_text_is(name, "list")];
    else if ((v->type == JV_DICT || v->type == JV_NS) &&
             (x = jj_dict_get_text(v->dict, name)))
        *out = *x;
    return BR_OK;
}

br_code
jj_get_item(jj_run *r, const jj_val *v, const jj_val *key, jj_val *out)
{
    const jj_val *x;
    int64_t i, n;

    switch ((jj_type)v->type) {
    case JV_UNDEF: return jj_err(r, "'%.*s' is undefined", (int)v->n, v->s);
    case JV_DICT:
    case JV_NS:
        x = jj_dict_get(r, v->dict, key);
        if (x) {
            *out = *x;
            return BR_OK;
        }
        break;
    case JV_LIST:
    case JV_TUPLE:
    case JV_STR:
        if (key->type != JV_INT && key->type != JV_BOOL)
            break;
        i = as_int(key);
        n = v->type == JV_STR ? (int64_t)jj_utf8_len(jj_text(v))
                              : (int64_t)v->list->n;
        if (i < 0)
            i += n;
        if (i < 0 || i >= n)
            break;
        *out = v->type == JV_STR
                   ? jj_str(jj_utf8_sub(jj_text(v), (size_t)i, (size_t)i + 1))
                   : v->list->at[i];
        return BR_OK;
    default: break;
    }
    if (key->type == JV_STR) /* x['name'] falls back to x.name */
        return v->type == JV_DICT ? (*out = jj_undef(jj_text(key)), BR_OK)
                                  : jj_get_attr(r, v, jj_text(key), out);
    *out = jj_undef(BR_TEXT("element"));
    return BR_OK;
}
