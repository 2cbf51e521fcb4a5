/* access.c - typed reading of a program's values.
 *
 * A value of another type is never coerced, with one exception that the file
 * format has: where a real number is asked for, an integer or a boolean is
 * one, as in the reference.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/mega.h"

#include <string.h>

static const br_json *
param(const br_mega_task *t, br_mega_param p)
{
    const br_json *m;

    if (!(t->param_mask >> p & 1))
        return NULL;
    for (m = t->params->child; m; m = m->next)
        if (m->tag == p + 1)
            return m;
    return NULL;
}

static bool
real(const br_json *v, double *out)
{
    switch ((br_json_kind)v->kind) {
    case BR_J_INT: *out = (double)v->i; return true;
    case BR_J_FLOAT: *out = v->f; return true;
    case BR_J_BOOL: *out = v->b; return true;
    case BR_J_BIGINT: return br_json_to_f64((br_text){v->s, v->n}, out);
    case BR_J_NULL:
    case BR_J_STR:
    case BR_J_ARR:
    case BR_J_OBJ: return false;
    }
    br_unreachable("kind of a JSON node");
}

bool
br_mega_get_i(const br_mega_task *t, br_mega_param p, int64_t *out)
{
    const br_json *v = param(t, p);

    if (!v || v->kind != BR_J_INT)
        return false;
    *out = v->i;
    return true;
}

bool
br_mega_get_f(const br_mega_task *t, br_mega_param p, double *out)
{
    const br_json *v = param(t, p);

    return v && real(v, out);
}

int64_t
br_mega_get_i_or(const br_mega_task *t, br_mega_param p, int64_t def)
{
    int64_t v;

    return br_mega_get_i(t, p, &v) ? v : def;
}

int64_t
br_mega_numel(const br_mega_buffer *b)
{
    int64_t n = 1;
    bool empty = false, over = false;

    for (uint32_t i = 0; i < b->rank; i++) {
        if (b->shape[i] < 0)
            return -1;
        empty |= b->shape[i] == 0;
        over |= __builtin_mul_overflow(n, b->shape[i], &n);
    }
    return empty ? 0 : over ? -1 : n; /* 0 x 2^62 x 2^62 is 0 */
}

int64_t
br_mega_nbytes(const br_mega_buffer *b)
{
    return br_mega_dtype_bytes(b->dtype, br_mega_numel(b));
}

/* -1 when a weight has no size or the sum overflows. */
int64_t
br_mega_weight_bytes(const br_mega_prog *p)
{
    int64_t sum = 0;

    for (size_t i = 0; i < p->n_buffers; i++) {
        int64_t n;

        if (p->buffers[i].kind != BR_MBK_WEIGHT)
            continue;
        n = br_mega_nbytes(&p->buffers[i]);
        if (n < 0 || __builtin_add_overflow(sum, n, &sum))
            return -1;
    }
    return sum;
}
