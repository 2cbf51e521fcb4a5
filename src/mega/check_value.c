/* check_value.c - the values of a program as the reference's Python has them.
 *
 * A field is a typed number unless a misfit says otherwise; almost no program
 * has misfits, so the lookups are a branch. The list is sorted by (field,
 * index, sub).
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "mega/check_int.h"
#include "mega/pyrepr.h"

static const br_json null_value = {.kind = BR_J_NULL};

static int
order(const br_mega_misfit *m, br_mega_field f, uint32_t index, uint32_t sub)
{
    if (m->field != f)
        return m->field < f ? -1 : 1;
    if (m->index != index)
        return m->index < index ? -1 : 1;
    return m->sub < sub ? -1 : m->sub > sub;
}

const br_json *
br_misfit_of(const br_mega_prog *p, br_mega_field f, uint32_t index,
             uint32_t sub)
{
    size_t lo = 0, hi = p->n_misfits;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = order(&p->misfits[mid], f, index, sub);

        if (c == 0)
            return p->misfits[mid].value;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

br_pv
br_pv_of(const br_mega_prog *p, br_mega_field f, uint32_t index, uint32_t sub,
         int64_t plain)
{
    const br_json *j = p->n_misfits ? br_misfit_of(p, f, index, sub) : NULL;

    return (br_pv){j, plain};
}

br_pv
br_pv_id(const br_mega_prog *p, uint32_t t)
{
    return br_pv_of(p, BR_MF_TASK_ID, t, 0, p->tasks[t].id);
}

br_pv
br_pv_in(const br_mega_prog *p, uint32_t t, uint32_t k)
{
    return br_pv_of(p, BR_MF_TASK_IN, t, k, p->tasks[t].in[k]);
}

br_pv
br_pv_out(const br_mega_prog *p, uint32_t t, uint32_t k)
{
    return br_pv_of(p, BR_MF_TASK_OUT, t, k, p->tasks[t].out[k]);
}

br_pv
br_pv_ctr(const br_mega_prog *p, uint32_t t)
{
    return br_pv_of(p, BR_MF_TASK_OUT_COUNTER, t, 0, p->tasks[t].out_counter);
}

br_pv
br_pv_wait(const br_mega_prog *p, uint32_t t, uint32_t k)
{
    return br_pv_of(p, BR_MF_TASK_WAIT_CTR, t, k, p->tasks[t].waits[k].counter);
}

br_pv
br_pv_thr(const br_mega_prog *p, uint32_t t, uint32_t k)
{
    return br_pv_of(p, BR_MF_TASK_WAIT_THR, t, k,
                    p->tasks[t].waits[k].threshold);
}

br_pv
br_pv_sm(const br_mega_prog *p, uint32_t t)
{
    br_pv v = br_pv_of(p, BR_MF_TASK_SM, t, 0, p->tasks[t].sm);

    if (!v.j && v.i == BR_MEGA_SM_NONE)
        v.j = &null_value;
    return v;
}

bool
br_pv_is_null(br_pv v)
{
    return v.j && v.j->kind == BR_J_NULL;
}

bool
br_pv_int(br_pv v, int64_t *out)
{
    if (v.j && v.j->kind != BR_J_INT && v.j->kind != BR_J_BOOL)
        return false;
    *out = !v.j ? v.i : v.j->kind == BR_J_INT ? v.j->i : v.j->b;
    return true;
}

/* ---- equality ----------------------------------------------------------- */

static bool json_eq(const br_json *a, const br_json *b);

static bool
is_num(const br_json *v)
{
    return v->kind == BR_J_INT || v->kind == BR_J_BOOL ||
           v->kind == BR_J_FLOAT || v->kind == BR_J_BIGINT;
}

static bool
num_eq(const br_json *a, const br_json *b)
{
    int64_t x, y;
    bool ix = br_pv_int((br_pv){a, 0}, &x), iy = br_pv_int((br_pv){b, 0}, &y);

    if (ix && iy)
        return x == y;
    if (a->kind == BR_J_BIGINT && b->kind == BR_J_BIGINT)
        return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
    if (a->kind == BR_J_FLOAT && b->kind == BR_J_FLOAT)
        return a->f == b->f;
    if (b->kind == BR_J_FLOAT && ix) /* exact: -2^63 <= f < 2^63 */
        return b->f >= -0x1p63 && b->f < 0x1p63 && (int64_t)b->f == x &&
               (double)(int64_t)b->f == b->f;
    if (a->kind == BR_J_FLOAT && iy)
        return num_eq(b, a);
    return false; /* a float against a number beyond 64 bits: never seen */
}

static bool
list_eq(const br_json *a, const br_json *b)
{
    const br_json *x = a->child, *y = b->child;

    for (; x && y; x = x->next, y = y->next)
        if (!json_eq(x, y))
            return false;
    return !x && !y;
}

static bool
dict_eq(const br_json *a, const br_json *b)
{
    const br_json *x, *y;

    if (a->n != b->n)
        return false;
    for (x = a->child; x; x = x->next) {
        y = br_json_get(b, x->key);
        if (!y || !json_eq(x, y))
            return false;
    }
    return true;
}

static bool
json_eq(const br_json *a, const br_json *b)
{
    if (is_num(a) && is_num(b))
        return num_eq(a, b);
    if (a->kind != b->kind)
        return false;
    switch ((br_json_kind)a->kind) {
    case BR_J_NULL: return true;
    case BR_J_STR: return a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
    case BR_J_ARR: return list_eq(a, b);
    case BR_J_OBJ: return dict_eq(a, b);
    case BR_J_BOOL:
    case BR_J_INT:
    case BR_J_BIGINT:
    case BR_J_FLOAT: break;
    }
    return false;
}

bool
br_pv_eq(br_pv a, br_pv b)
{
    br_json x = {.kind = BR_J_INT, .i = a.i}, y = {.kind = BR_J_INT, .i = b.i};

    return json_eq(a.j ? a.j : &x, b.j ? b.j : &y);
}

/* ---- texts -------------------------------------------------------------- */

void
br_pv_put(br_str *s, br_pv v)
{
    if (v.j)
        br_py_str(s, v.j);
    else
        br_str_printf(s, "%lld", (long long)v.i);
}

void
br_pv_put_repr(br_str *s, br_pv v)
{
    if (v.j)
        br_py_repr(s, v.j);
    else
        br_str_printf(s, "%lld", (long long)v.i);
}

void
br_put_label(br_str *s, const br_mega_prog *p, uint32_t t)
{
    const br_json *j =
        p->n_misfits ? br_misfit_of(p, BR_MF_TASK_LABEL, t, 0) : NULL;

    if (j)
        br_py_str(s, j);
    else
        br_str_put(s, p->tasks[t].label, p->tasks[t].label_n);
}

void
br_put_task(br_str *s, const br_mega_prog *p, uint32_t t)
{
    br_str_puts(s, "task ");
    br_pv_put(s, br_pv_id(p, t));
    br_str_puts(s, " (");
    br_put_label(s, p, t);
    br_str_puts(s, ")");
}

/* Python's truth of a value. */
bool
br_truthy(const br_json *v)
{
    switch ((br_json_kind)v->kind) {
    case BR_J_NULL: return false;
    case BR_J_BOOL: return v->b;
    case BR_J_INT: return v->i != 0;
    case BR_J_BIGINT: return true;
    case BR_J_FLOAT: return v->f != 0.0;
    case BR_J_STR:
    case BR_J_ARR:
    case BR_J_OBJ: return v->n != 0;
    }
    return false;
}

void
br_put_node(br_str *s, const br_mega_prog *p, uint32_t t)
{
    const br_json *j =
        p->n_misfits ? br_misfit_of(p, BR_MF_TASK_LABEL, t, 0) : NULL;

    if (j ? br_truthy(j) : p->tasks[t].label_n != 0)
        br_put_label(s, p, t);
    else
        br_str_puts(s, br_mega_op_name(p->tasks[t].op));
}

void
br_put_buffer(br_str *s, const br_mega_prog *p, uint32_t b)
{
    const br_json *j =
        p->n_misfits ? br_misfit_of(p, BR_MF_BUF_NAME, b, 0) : NULL;

    if (j)
        br_py_str(s, j);
    else
        br_str_put(s, p->buffers[b].name, p->buffers[b].name_n);
}
