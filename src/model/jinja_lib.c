/* jinja_lib.c - the functions of jinja.def: tests, methods of containers,
 * globals, and the tables that find them all. Filters and methods of strings
 * are in jinja_text.c and jinja_filter.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/jinja_lib.h"
#include "model/unicode.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- arguments ---------------------------------------------------------- */

const jj_val *
jj_arg(const jj_args *a, size_t i, const char *name)
{
    if (i < a->n_pos)
        return &a->pos[i];
    for (size_t k = 0; k < a->n_kw; k++)
        if (br_text_is(a->key[k], name))
            return &a->kw[k];
    return NULL;
}

int64_t
jj_arg_int(const jj_args *a, size_t i, const char *name, int64_t def)
{
    const jj_val *v = jj_arg(a, i, name);

    return v && v->type == JV_INT ? v->i : v && v->type == JV_BOOL ? v->b : def;
}

bool
jj_arg_true(const jj_args *a, size_t i, const char *name)
{
    const jj_val *v = jj_arg(a, i, name);

    return v && jj_truth(v);
}

br_code
jj_arg_text(jj_run *r, const jj_args *a, size_t i, const char *name,
            br_text *out)
{
    const jj_val *v = jj_arg(a, i, name);

    if (!v || v->type != JV_STR)
        return jj_err(r, "argument '%s' must be a string", name);
    *out = jj_text(v);
    return BR_OK;
}

/* ---- tests -------------------------------------------------------------- */

static bool
number(const jj_val *v)
{
    return v->type == JV_INT || v->type == JV_FLOAT || v->type == JV_BOOL;
}

static br_code
order(jj_run *r, const jj_val *b, const jj_args *a, int *c)
{
    if (!a->n_pos)
        return jj_err(r, "this test needs an argument");
    return jj_compare(r, b, &a->pos[0], c);
}

#define TEST_FN(name)                                                     \
    static br_code t_##name(jj_run *r, const jj_val *b, const jj_args *a, \
                            bool *out)
#define SIMPLE(name, condition) \
    TEST_FN(name)               \
    {                           \
        (void)r;                \
        (void)a;                \
        *out = (condition);     \
        return BR_OK;           \
    }
#define ORDER(name, condition)      \
    TEST_FN(name)                   \
    {                               \
        int c;                      \
        BR_TRY(order(r, b, a, &c)); \
        *out = (condition);         \
        return BR_OK;               \
    }

SIMPLE(boolean, b->type == JV_BOOL)
SIMPLE(callable, b->type == JV_MACRO || b->type == JV_FN ||
                     b->type == JV_METHOD || b->type == JV_LOOP ||
                     (b->type == JV_RING && b->ring->joins))
SIMPLE(defined, b->type != JV_UNDEF)
SIMPLE(undefined, b->type == JV_UNDEF)
SIMPLE(no, b->type == JV_BOOL && !b->b)
SIMPLE(yes, b->type == JV_BOOL && b->b)
SIMPLE(none, b->type == JV_NONE)
SIMPLE(float, b->type == JV_FLOAT)
SIMPLE(integer, b->type == JV_INT)
SIMPLE(number, number(b))
SIMPLE(string, b->type == JV_STR)
SIMPLE(mapping, b->type == JV_DICT)
SIMPLE(iterable, b->type == JV_LIST || b->type == JV_TUPLE ||
                     b->type == JV_DICT || b->type == JV_STR ||
                     b->type == JV_UNDEF)
SIMPLE(sequence, b->type == JV_LIST || b->type == JV_TUPLE ||
                     b->type == JV_DICT || b->type == JV_STR ||
                     b->type == JV_UNDEF)
SIMPLE(eq, a->n_pos &&jj_equal(r, b, &a->pos[0]))
SIMPLE(ne, a->n_pos && !jj_equal(r, b, &a->pos[0]))
SIMPLE(sameas,
       a->n_pos && b->type == a->pos[0].type && jj_equal(r, b, &a->pos[0]))
ORDER(lt, c < 0)
ORDER(le, c <= 0)
ORDER(gt, c > 0)
ORDER(ge, c >= 0)

TEST_FN(in)
{
    if (!a->n_pos)
        return jj_err(r, "'in' needs an argument");
    return jj_contains(r, &a->pos[0], b, out);
}

/* Python's value % 2: of true, which is 1, and of fractions, too. */
static br_code
half(jj_run *r, const jj_val *b, double *rest)
{
    if (!number(b))
        return jj_err(r, "'even' and 'odd' need a number, not %s",
                      jj_type_name(b));
    *rest = b->type == JV_FLOAT ? fmod(b->f, 2)
            : b->type == JV_INT ? (double)(b->i % 2)
                                : b->b;
    return BR_OK;
}

TEST_FN(even)
{
    double rest = 0;

    (void)a;
    BR_TRY(half(r, b, &rest));
    *out = rest == 0;
    return BR_OK;
}

TEST_FN(odd)
{
    double rest = 0;

    (void)a;
    BR_TRY(half(r, b, &rest));
    *out = rest == 1 || rest == -1; /* Python's is never below 0 */
    return BR_OK;
}

TEST_FN(divisibleby)
{
    int64_t n = jj_arg_int(a, 0, "num", 0);

    if (b->type != JV_INT || n == 0)
        return jj_err(r, "'divisibleby' needs integers, not zero");
    *out = n == -1 || b->i % n == 0;
    return BR_OK;
}

/* Is there a letter of this case, and none of another? */
static bool
case_is(const jj_val *b, br_uclass want)
{
    const uint8_t *p = (const uint8_t *)b->s, *end;
    bool any = false;
    uint32_t c;

    if (b->type != JV_STR)
        return false;
    for (end = p + b->n; p < end;) {
        p += br_utf8_next(p, end, &c);
        int k = br_unicode_class(c) & 0x0F;
        if (k != (int)want && k >= BR_UC_LU && k <= BR_UC_LT)
            return false;
        any |= k == (int)want;
    }
    return any;
}

SIMPLE(lower, case_is(b, BR_UC_LL))
SIMPLE(upper, case_is(b, BR_UC_LU))

LIB_FN(islower)
{
    (void)r;
    (void)a;
    *out = jj_bool(case_is(b, BR_UC_LL));
    return BR_OK;
}

LIB_FN(isupper)
{
    (void)r;
    (void)a;
    *out = jj_bool(case_is(b, BR_UC_LU));
    return BR_OK;
}

/* ---- methods of dicts and lists ----------------------------------------- */

LIB_FN(get)
{
    const jj_val *k = jj_arg(a, 0, "key"), *def = jj_arg(a, 1, "default");
    const jj_val *v = k ? jj_dict_get(r, b->dict, k) : NULL;

    if (!k)
        return jj_err(r, "'get' needs a key");
    *out = v ? *v : def ? *def : jj_none();
    return BR_OK;
}

static br_code
dict_list(jj_run *r, const jj_dict *d, int what, jj_val *out)
{
    BR_TRY(jj_list_new(r, JV_LIST, out));
    for (size_t i = 0; i < d->n; i++) {
        jj_val pair;
        if (what != 2) {
            BR_TRY(jj_push(r, out->list, what ? d->val[i] : d->key[i]));
            continue;
        }
        BR_TRY(jj_list_new(r, JV_TUPLE, &pair));
        BR_TRY(jj_push(r, pair.list, d->key[i]));
        BR_TRY(jj_push(r, pair.list, d->val[i]));
        BR_TRY(jj_push(r, out->list, pair));
    }
    return BR_OK;
}

LIB_FN(items)
{
    (void)a;
    if (b->type == JV_UNDEF)
        return jj_list_new(r, JV_LIST, out);
    if (b->type != JV_DICT)
        return jj_err(r, "'items' needs a dict, not %s", jj_type_name(b));
    return dict_list(r, b->dict, 2, out);
}

LIB_FN(keys)
{
    (void)a;
    return dict_list(r, b->dict, 0, out);
}

LIB_FN(values)
{
    (void)a;
    return dict_list(r, b->dict, 1, out);
}

LIB_FN(copy)
{
    (void)a;
    if (b->type == JV_DICT) {
        BR_TRY(jj_dict_new(r, JV_DICT, out));
        for (size_t i = 0; i < b->dict->n; i++)
            BR_TRY(jj_dict_set(r, out->dict, b->dict->key[i], b->dict->val[i]));
        return BR_OK;
    }
    BR_TRY(jj_list_new(r, JV_LIST, out));
    for (size_t i = 0; i < b->list->n; i++)
        BR_TRY(jj_push(r, out->list, b->list->at[i]));
    return BR_OK;
}

LIB_FN(update)
{
    const jj_val *o = jj_arg(a, 0, "other");

    for (size_t i = 0; o && o->type == JV_DICT && i < o->dict->n; i++)
        BR_TRY(jj_dict_set(r, b->dict, o->dict->key[i], o->dict->val[i]));
    for (size_t i = 0; i < a->n_kw; i++)
        BR_TRY(jj_dict_set(r, b->dict, jj_str(a->key[i]), a->kw[i]));
    *out = jj_none();
    return BR_OK;
}

LIB_FN(dict_pop)
{
    const jj_val *k = jj_arg(a, 0, "key"), *def = jj_arg(a, 1, "default");
    jj_dict *d = b->dict;

    for (size_t i = 0; k && i < d->n; i++)
        if (jj_equal(r, &d->key[i], k)) {
            *out = d->val[i];
            memmove(&d->key[i], &d->key[i + 1],
                    (d->n - i - 1) * sizeof *d->key);
            memmove(&d->val[i], &d->val[i + 1],
                    (d->n - i - 1) * sizeof *d->val);
            d->n--;
            return BR_OK;
        }
    if (!def)
        return jj_err(r, "'pop': no such key");
    *out = *def;
    return BR_OK;
}

LIB_FN(setdefault)
{
    const jj_val *k = jj_arg(a, 0, "key"), *def = jj_arg(a, 1, "default"), *v;

    if (!k)
        return jj_err(r, "'setdefault' needs a key");
    v = jj_dict_get(r, b->dict, k);
    *out = v ? *v : def ? *def : jj_none();
    return v ? BR_OK : jj_dict_set(r, b->dict, *k, *out);
}

LIB_FN(append)
{
    if (!a->n_pos)
        return jj_err(r, "'append' needs a value");
    *out = jj_none();
    return jj_push(r, b->list, a->pos[0]);
}

LIB_FN(extend)
{
    jj_list *l;

    if (!a->n_pos)
        return jj_err(r, "'extend' needs a list");
    BR_TRY(jj_iterate(r, &a->pos[0], &l));
    *out = jj_none();
    for (size_t i = 0, n = l->n; i < n; i++)
        BR_TRY(jj_push(r, b->list, l->at[i]));
    return BR_OK;
}

LIB_FN(insert)
{
    int64_t n = (int64_t)b->list->n, i = jj_arg_int(a, 0, "index", 0);

    if (a->n_pos < 2)
        return jj_err(r, "'insert' needs an index and a value");
    i = BR_MIN(BR_MAX(i < 0 ? i + n : i, 0), n);
    BR_TRY(jj_push(r, b->list, a->pos[1]));
    memmove(&b->list->at[i + 1], &b->list->at[i],
            (size_t)(n - i) * sizeof *b->list->at);
    b->list->at[i] = a->pos[1];
    *out = jj_none();
    return BR_OK;
}

LIB_FN(list_pop)
{
    int64_t n = (int64_t)b->list->n, i = jj_arg_int(a, 0, "index", n - 1);

    i = i < 0 ? i + n : i;
    if (i < 0 || i >= n)
        return jj_err(r, "'pop': index out of range");
    *out = b->list->at[i];
    memmove(&b->list->at[i], &b->list->at[i + 1],
            (size_t)(n - i - 1) * sizeof *b->list->at);
    b->list->n--;
    return BR_OK;
}

LIB_FN(list_remove)
{
    jj_val at, none;

    BR_TRY(jj_f_list_index(r, b, a, &at));
    *out = jj_none();
    return jj_f_list_pop(r, b, &(jj_args){.pos = &at, .n_pos = 1}, &none);
}

LIB_FN(list_index)
{
    for (size_t i = 0; a->n_pos && i < b->list->n; i++)
        if (jj_equal(r, &b->list->at[i], &a->pos[0])) {
            *out = jj_int((int64_t)i);
            return BR_OK;
        }
    return jj_err(r, "'index': not in the list");
}

LIB_FN(list_count)
{
    int64_t n = 0;

    (void)r;
    for (size_t i = 0; a->n_pos && i < b->list->n; i++)
        n += jj_equal(r, &b->list->at[i], &a->pos[0]);
    *out = jj_int(n);
    return BR_OK;
}

LIB_FN(list_reverse)
{
    jj_list *l = b->list;

    (void)r;
    (void)a;
    for (size_t i = 0; i + 1 < l->n - i; i++) {
        jj_val t = l->at[i];
        l->at[i] = l->at[l->n - 1 - i];
        l->at[l->n - 1 - i] = t;
    }
    *out = jj_none();
    return BR_OK;
}

/* ---- methods of the loop ------------------------------------------------ */

LIB_FN(loop_cycle)
{
    if (!a->n_pos)
        return jj_err(r, "'cycle' needs values");
    *out = a->pos[b->loop->i % a->n_pos];
    return BR_OK;
}

/* Are these values others than those of the call before? */
LIB_FN(loop_changed)
{
    jj_loop *l = b->loop;
    jj_val now;

    BR_TRY(jj_list_new(r, JV_TUPLE, &now));
    for (size_t i = 0; i < a->n_pos; i++)
        BR_TRY(jj_push(r, now.list, a->pos[i]));
    *out = jj_bool(!l->has_changed || !jj_equal(r, &l->last_changed, &now));
    l->last_changed = now;
    l->has_changed = true;
    return BR_OK;
}

/* ---- globals ------------------------------------------------------------ */

static br_code
g_raise_exception(jj_run *r, const jj_args *a, jj_val *out)
{
    br_text t;

    (void)out;
    BR_TRY(jj_arg_text(r, a, 0, "message", &t));
    return br_fail(r->st, BR_E_REJECTED, "%.*s", (int)BR_MIN(t.n, (size_t)460),
                   t.p);
}

static br_code
dict_of(jj_run *r, const jj_args *a, uint8_t type, jj_val *out)
{
    jj_list *l, *pair;
    jj_val pairs;

    BR_TRY(jj_dict_new(r, type, out));
    if (a->n_pos) { /* a dict, or pairs */
        pairs = a->pos[0];
        if (pairs.type == JV_DICT)
            BR_TRY(jj_f_items(r, &a->pos[0], a, &pairs));
        BR_TRY(jj_iterate(r, &pairs, &l));
        for (size_t i = 0; i < l->n; i++) {
            BR_TRY(jj_iterate(r, &l->at[i], &pair));
            if (pair->n != 2)
                return jj_err(r, "'dict' needs pairs");
            BR_TRY(jj_dict_set(r, out->dict, pair->at[0], pair->at[1]));
        }
    }
    for (size_t i = 0; i < a->n_kw; i++)
        BR_TRY(jj_dict_set(r, out->dict, jj_str(a->key[i]), a->kw[i]));
    return BR_OK;
}

static br_code
g_dict(jj_run *r, const jj_args *a, jj_val *out)
{
    return dict_of(r, a, JV_DICT, out);
}

static br_code
g_namespace(jj_run *r, const jj_args *a, jj_val *out)
{
    return dict_of(r, a, JV_NS, out);
}

static br_code
g_range(jj_run *r, const jj_args *a, jj_val *out)
{
    int64_t from = 0, to = jj_arg_int(a, 0, "stop", 0), by = 1;

    if (a->n_pos == 0 || a->pos[0].type != JV_INT)
        return jj_err(r, "'range' needs integers");
    if (a->n_pos > 1) {
        from = to;
        to = jj_arg_int(a, 1, "stop", 0);
        by = jj_arg_int(a, 2, "step", 1);
    }
    if (by == 0)
        return jj_err(r, "'range' with step 0");
    BR_TRY(jj_list_new(r, JV_LIST, out));
    for (int64_t i = from; by > 0 ? i < to : i > to; i += by) {
        if (out->list->n >= BR_JINJA_MAX_RANGE)
            return br_fail(r->st, BR_E_LIMIT,
                           "line %u: a range of more than %d", r->line,
                           BR_JINJA_MAX_RANGE);
        BR_TRY(jj_push(r, out->list, jj_int(i)));
        if (by > 0 ? i > INT64_MAX - by : i < INT64_MIN - by)
            break;
    }
    return BR_OK;
}

/* Through a pointer: the format is the template's, and that is the point. */
static size_t (*const format_time)(char *, size_t, const char *,
                                   const struct tm *) = strftime;

static br_code
g_strftime_now(jj_run *r, const jj_args *a, jj_val *out)
{
    char fmt[128], text[512];
    time_t now = (time_t)r->now;
    struct tm tm;
    br_text t;
    size_t n;

    BR_TRY(jj_arg_text(r, a, 0, "format", &t));
    if (t.n == 0 || t.n >= sizeof fmt || memchr(t.p, 0, t.n))
        return jj_err(r, "'strftime_now': a format of 1 to %zu bytes",
                      sizeof fmt - 1);
    memcpy(fmt, t.p, t.n);
    fmt[t.n] = 0;
    if (!gmtime_r(&now, &tm))
        return jj_err(r, "'strftime_now': no such time");
    n = format_time(text, sizeof text, fmt, &tm);
    return jj_str_copy(r, (br_text){text, n}, out);
}

static br_code
ring_new(jj_run *r, bool joins, jj_val *items, jj_val *out)
{
    jj_ring *g = br_arena_new(&r->arena, jj_ring, 1);

    if (!g)
        return jj_oom(r);
    *g = (jj_ring){.items = items->list, .joins = joins};
    *out = (jj_val){.type = JV_RING, .ring = g};
    return BR_OK;
}

static br_code
g_joiner(jj_run *r, const jj_args *a, jj_val *out)
{
    const jj_val *sep = jj_arg(a, 0, "sep");
    jj_val l;

    BR_TRY(jj_list_new(r, JV_LIST, &l));
    BR_TRY(jj_push(r, l.list, jj_str(BR_TEXT(""))));
    BR_TRY(jj_push(r, l.list, sep ? *sep : jj_str(BR_TEXT(", "))));
    return ring_new(r, true, &l, out);
}

static br_code
g_cycler(jj_run *r, const jj_args *a, jj_val *out)
{
    jj_val l;

    if (!a->n_pos)
        return jj_err(r, "'cycler' needs values");
    BR_TRY(jj_list_new(r, JV_LIST, &l));
    for (size_t i = 0; i < a->n_pos; i++)
        BR_TRY(jj_push(r, l.list, a->pos[i]));
    return ring_new(r, false, &l, out);
}

br_code
jj_ring_call(jj_run *r, jj_ring *g, const jj_args *a, jj_val *out)
{
    if (!g->joins)
        return jj_err(r, "a cycler is not called: it has 'next'");
    if (a->n_pos || a->n_kw)
        return jj_err(r, "a joiner takes no arguments");
    *out = g->items->at[g->i];
    g->i = 1;
    return BR_OK;
}

LIB_FN(cycler_next)
{
    jj_ring *g = b->ring;

    (void)r;
    (void)a;
    *out = g->items->at[g->i];
    g->i = (g->i + 1) % g->items->n;
    return BR_OK;
}

LIB_FN(cycler_reset)
{
    (void)r;
    (void)a;
    b->ring->i = 0;
    *out = jj_none();
    return BR_OK;
}

/* ---- tables ------------------------------------------------------------- */

#define F(name, fn) {#name, jj_f_##fn},
static const struct {
    const char *name;
    jj_lib_fn *fn;
} filters[] = {
#include "model/jinja.def"
};
#undef F

#define T(name, fn) {#name, t_##fn},
static const struct {
    const char *name;
    br_code (*fn)(jj_run *, const jj_val *, const jj_args *, bool *);
} tests[] = {
#include "model/jinja.def"
};
#undef T

#define M(kind, name, fn) {#kind, #name, jj_f_##fn},
static const struct {
    const char *kind, *name;
    jj_lib_fn *fn;
} methods[] = {
#include "model/jinja.def"
};
#undef M

#define G(name, fn) {#name, g_##fn},
static const struct {
    const char *name;
    br_code (*fn)(jj_run *, const jj_args *, jj_val *);
} globals[] = {
#include "model/jinja.def"
};
#undef G

#define FIND(table, text)                        \
    for (size_t i = 0; i < BR_COUNT(table); i++) \
        if (br_text_is((text), (table)[i].name)) \
            return (int)i;                       \
    return -1

int
jj_filter_find(br_text name)
{
    FIND(filters, name);
}

int
jj_test_find(br_text name)
{
    /* select('>', 1) */
    static const char *const op[][2] = {{"==", "eq"}, {"!=", "ne"},
                                        {"<", "lt"},  {"<=", "le"},
                                        {">", "gt"},  {">=", "ge"}};

    for (size_t i = 0; i < BR_COUNT(op); i++)
        if (br_text_is(name, op[i][0]))
            name = br_text_z(op[i][1]);
    FIND(tests, name);
}

int
jj_global_find(br_text name)
{
    FIND(globals, name);
}

int
jj_method_find(const jj_val *self, br_text name)
{
    char kind = self->type == JV_STR                          ? 's'
                : self->type == JV_DICT                       ? 'd'
                : self->type == JV_LIST                       ? 'l'
                : self->type == JV_TUPLE                      ? 't'
                : self->type == JV_LOOP                       ? 'o'
                : self->type == JV_RING && !self->ring->joins ? 'c'
                                                              : 0;

    for (size_t i = 0; kind && i < BR_COUNT(methods); i++)
        if (methods[i].kind[0] == kind && br_text_is(name, methods[i].name))
            return (int)i;
    return -1;
}

br_code
jj_filter_call(jj_run *r, int row, const jj_val *base, const jj_args *a,
               jj_val *out)
{
    return filters[row].fn(r, base, a, out);
}

br_code
jj_test_call(jj_run *r, int row, const jj_val *base, const jj_args *a,
             bool *out)
{
    return tests[row].fn(r, base, a, out);
}

br_code
jj_global_call(jj_run *r, int row, const jj_args *a, jj_val *out)
{
    return globals[row].fn(r, a, out);
}

br_code
jj_method_call(jj_run *r, int row, const jj_val *self, const jj_args *a,
               jj_val *out)
{
    return methods[row].fn(r, self, a, out);
}
