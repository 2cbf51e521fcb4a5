/* verbs_base.c - values, weights and the small nodes that verbs share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/verbs.h"

#include <stdio.h>

bool
br_verb_none(br_ir_bind x)
{
    return x.value == BR_IR_NONE;
}

int64_t
br_bind_cols(br_ir_bind x)
{
    return (int64_t)x.width * x.count;
}

static void
layer_name(const br_verbs *v, const char *name, char *out, size_t size)
{
    if (v->layer >= 0)
        snprintf(out, size, "%s[%d]", name, v->layer);
    else
        snprintf(out, size, "%s", name);
}

/* ---- weights ------------------------------------------------------------ */

/* "64 x 256", outermost first, as the graph sees it. */
static void
dims_text(int rank, const int64_t *dim, char *out, size_t size)
{
    size_t n = 0;

    out[0] = 0;
    for (int i = 0; i < rank && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%lld", i ? " x " : "",
                              (long long)dim[i]);
}

static bool
same_shape(const br_gguf_tensor *t, int rank, const int64_t *dim)
{
    int at = 0;

    for (int i = (int)t->n_dims - 1; i >= 0; i--) {
        if (t->dim[i] == 1)
            continue;
        while (at < rank && dim[at] == 1)
            at++;
        if (at == rank || (uint64_t)dim[at] != t->dim[i])
            return false;
        at++;
    }
    while (at < rank && dim[at] == 1)
        at++;
    return at == rank;
}

static bool
tensor_ok(br_verbs *v, br_weight w, const br_gguf_tensor *t, int rank,
          const int64_t *dim)
{
    const br_qinfo *q = br_qinfo_of(t->type);
    char msg[320], name[96], want[96], have[96];
    int64_t got[BR_GGUF_MAX_DIMS];

    br_weight_name(w, v->layer, name, sizeof name);
    if (!same_shape(t, rank, dim)) {
        for (uint32_t i = 0; i < t->n_dims; i++)
            got[i] = (int64_t)t->dim[t->n_dims - 1 - i];
        dims_text(rank, dim, want, sizeof want);
        dims_text((int)t->n_dims, got, have, sizeof have);
        snprintf(msg, sizeof msg, "%s: is %s, has to be %s", name, have, want);
        br_ir_builder_fail(v->b, BR_E_FORMAT, msg);
        return false;
    }
    if (!q->name || (q->flags & BR_QF_INT) ||
        dim[rank - 1] % (int64_t)q->elems != 0) {
        snprintf(msg, sizeof msg, "%s: rows of %lld numbers cannot be %s", name,
                 (long long)dim[rank - 1], q->name ? q->name : "of this type");
        br_ir_builder_fail(v->b, BR_E_FORMAT, msg);
        return false;
    }
    return true;
}

bool
br_verb_has(const br_verbs *v, br_weight w)
{
    return br_model_tensor(v->m, w, v->layer) != NULL;
}

bool
br_verb_instead(br_verbs *v, br_weight other, br_weight w)
{
    char a[96], b[96], msg[256];

    if (br_verb_has(v, other))
        return true;
    if (!br_verb_has(v, w)) {
        br_weight_name(w, v->layer, a, sizeof a);
        br_weight_name(other, v->layer, b, sizeof b);
        snprintf(msg, sizeof msg, "%s or %s: the file has neither", a, b);
        br_ir_builder_fail(v->b, BR_E_FORMAT, msg);
    }
    return false;
}

br_ir_bind
br_verb_weight_maybe(br_verbs *v, br_weight w, int rank, const int64_t *dim)
{
    const br_gguf_tensor *t = br_model_tensor(v->m, w, v->layer);
    br_ir_desc d = {.rank = rank, .layer = v->layer};
    char name[96];
    uint32_t id;

    if (!t || !tensor_ok(v, w, t, rank, dim))
        return br_ir_none();
    if (br_weight_layered(w))
        layer_name(v, br_weight_logical(w), name, sizeof name);
    else
        snprintf(name, sizeof name, "%s", br_weight_logical(w));
    id = br_ir_find_value(v->b, name);
    if (id == BR_IR_NONE) {
        d.name = name;
        d.dtype = t->type;
        if (!br_weight_layered(w))
            d.layer = -1;
        for (int i = 0; i < rank; i++)
            d.dim[i] = dim[i];
        id = br_ir_add_value(v->b, &d);
    }
    return br_ir_all(v->b, id);
}

br_ir_bind
br_verb_weight(br_verbs *v, br_weight w, int rank, const int64_t *dim)
{
    char name[96], msg[160];

    if (!br_verb_has(v, w)) {
        br_weight_name(w, v->layer, name, sizeof name);
        snprintf(msg, sizeof msg, "%s: the file has no such tensor", name);
        br_ir_builder_fail(v->b, BR_E_FORMAT, msg);
        return br_ir_none();
    }
    return br_verb_weight_maybe(v, w, rank, dim);
}

/* ---- other values ------------------------------------------------------- */

static br_ir_bind
temp(br_verbs *v, const char *name, int64_t cols, int dtype)
{
    char full[96], base[80];
    br_ir_desc d = {.name = full, .dtype = dtype, .rank = 2, .layer = v->layer};

    snprintf(base, sizeof base, "t.%s", name);
    layer_name(v, base, full, sizeof full);
    d.dim[0] = BR_DIM_T;
    d.dim[1] = cols;
    return br_ir_all(v->b, br_ir_add_value(v->b, &d));
}

br_ir_bind
br_verb_temp(br_verbs *v, const char *name, int64_t cols)
{
    return temp(v, name, cols, BR_Q_F32);
}

br_ir_bind
br_verb_temp_i32(br_verbs *v, const char *name, int64_t cols)
{
    return temp(v, name, cols, BR_Q_I32);
}

br_ir_bind
br_verb_state(br_verbs *v, const char *name, int rank, const int64_t *dim)
{
    char full[96];
    br_ir_desc d = {
        .name = full, .dtype = BR_Q_F32, .rank = rank, .layer = v->layer};

    layer_name(v, name, full, sizeof full);
    for (int i = 0; i < rank; i++)
        d.dim[i] = dim[i];
    return br_ir_all(v->b, br_ir_add_value(v->b, &d));
}

/* ---- small nodes -------------------------------------------------------- */

void
br_verb_node(br_verbs *v, const br_ir_node_desc *d)
{
    (void)br_ir_add_node(v->b, d);
}

br_ir_bind
br_verb_norm(br_verbs *v, const char *name, br_ir_bind x, br_ir_bind w,
             int64_t width)
{
    br_ir_bind y = br_verb_temp(v, name, br_bind_cols(x));

    BR_NODE(v, RMS_NORM, 2, 1, .in = {x, w}, .out = {y});
    br_ir_set_f(v->b, BR_IA_eps, v->hp->eps);
    br_ir_set_i(v->b, BR_IA_width, width);
    return y;
}

br_ir_bind
br_verb_matmul(br_verbs *v, const char *name, br_ir_bind x, br_ir_bind w,
               br_ir_bind bias)
{
    const br_ir_value *wv = br_ir_built_value(v->b, w.value);
    br_ir_bind y = br_verb_temp(v, name, wv ? wv->dim[0] : 1);

    BR_NODE(v, MATMUL, 3, 1, .in = {x, w, bias}, .out = {y});
    return y;
}

br_ir_bind
br_verb_add(br_verbs *v, const char *name, br_ir_bind a, br_ir_bind b)
{
    br_ir_bind y = br_verb_temp(v, name, br_bind_cols(a));

    BR_NODE(v, ADD, 2, 1, .in = {a, b}, .out = {y});
    return y;
}

br_ir_bind
br_verb_mul(br_verbs *v, const char *name, br_ir_bind a, br_ir_bind b)
{
    br_ir_bind y = br_verb_temp(v, name, br_bind_cols(a));

    BR_NODE(v, MUL, 2, 1, .in = {a, b}, .out = {y});
    return y;
}

br_ir_bind
br_verb_scale(br_verbs *v, const char *name, br_ir_bind x, float scale)
{
    br_ir_bind y = br_verb_temp(v, name, br_bind_cols(x));

    BR_NODE(v, SCALE, 1, 1, .in = {x}, .out = {y});
    br_ir_set_f(v->b, BR_IA_scale, scale);
    return y;
}

br_ir_bind
br_verb_act(br_verbs *v, const char *name, br_ir_bind x, br_act act)
{
    br_ir_bind y = br_verb_temp(v, name, br_bind_cols(x));

    BR_NODE(v, ACT, 1, 1, .in = {x}, .out = {y});
    br_ir_set_i(v->b, BR_IA_act, act);
    return y;
}

br_ir_bind
br_verb_glu(br_verbs *v, const char *name, br_ir_bind gate, br_ir_bind up)
{
    br_ir_bind y = br_verb_temp(v, name, br_bind_cols(gate));

    BR_NODE(v, GLU, 2, 1, .in = {gate, up}, .out = {y});
    br_ir_set_i(v->b, BR_IA_act, v->m->arch->act);
    return y;
}
