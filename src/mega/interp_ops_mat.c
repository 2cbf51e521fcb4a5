/* interp_ops_mat.c - matrix products and dequantisation.
 *
 *            K                      n_off  n_off + N_tile
 *      +-----------+                  |      |
 *    M |     x     |   @ W.T  =  +----+------+-----+
 *      +-----------+           M |    | tile |     |   out [M, N]
 *                                +----+------+-----+
 *
 * W is [N, K] as in a linear layer. A task writes the columns of its tile and
 * nothing else; every output element is one dot product over K in the order
 * of br_vm_dot, in f32, cast once at the end.
 *
 * Quantised (qdtype I4 or I8, and a third input): W holds integers, scales are
 * [N, ceil(K / group)], and a weight is (float)q * scale. I4 rows are packed,
 * low nibble = even column, nibble - 8.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/interp_int.h"

typedef struct tile {
    int64_t m0, rows; /* rows of x and out */
    int64_t n0, cols; /* columns of out = rows of W */
    int64_t k;        /* inner dimension */
    int64_t group;    /* 0: W holds its values */
    int64_t groups;   /* columns of scales */
    bool packed;      /* W is nibbles */
} tile;

static br_code
tile_range(br_vm_call *c, const char *what, int64_t off, int64_t n, int64_t of)
{
    if (off >= 0 && n > 0 && n <= of && off <= of - n)
        return BR_OK;
    return br_vm_fail(c, BR_E_FORMAT,
                      "%s %lld..%lld of a tile lie outside %lld", what,
                      (long long)off, (long long)(off + n - 1), (long long)of);
}

/* Rows: all of x, or with GEMM's m_off the M_tile rows from there. */
static br_code
row_range(br_vm_call *c, tile *t)
{
    int64_t off;

    t->m0 = 0;
    t->rows = c->in[0]->rows;
    BR_TRY(br_vm_int_or(c, BR_MP_m_off, -1, &off));
    if (c->op != BR_MOP_GEMM_TILE || !br_json_get(c->params, "m_off"))
        return BR_OK;
    t->m0 = off;
    BR_TRY(br_vm_int(c, BR_MP_M_tile, &t->rows));
    return tile_range(c, "rows", t->m0, t->rows, c->in[0]->rows);
}

/* W's logical rows and columns against K and the tile. */
static br_code
weight_shape(br_vm_call *c, const tile *t)
{
    const br_vmt *w = c->in[1];
    int64_t cols =
        t->packed && w->dtype == BR_MDT_U8 ? t->k / 2 + t->k % 2 : t->k;

    if (w->row != cols)
        return br_vm_fail(c, BR_E_FORMAT, "%s has rows of %lld, K is %lld",
                          br_vm_operand(c, 1), (long long)w->row,
                          (long long)t->k);
    return tile_range(c, "columns", t->n0, t->cols, w->rows);
}

static br_code
quant_shape(br_vm_call *c, tile *t, int64_t qdtype)
{
    const br_vmt *w = c->in[1], *s = c->in[2];

    t->packed = qdtype == BR_MDT_I4;
    if (t->packed ? w->dtype != BR_MDT_I4 && w->dtype != BR_MDT_U8
                  : w->dtype != BR_MDT_I8)
        return br_vm_fail(c, BR_E_FORMAT, "%s is %s, qdtype says %s",
                          br_vm_operand(c, 1), br_dt_name(w->dtype),
                          br_dt_name((int)qdtype));
    BR_TRY(br_vm_int_or(c, BR_MP_group, t->k, &t->group));
    if (t->group <= 0)
        return br_vm_fail(c, BR_E_FORMAT, "group is %lld", (long long)t->group);
    t->groups = (t->k + t->group - 1) / t->group;
    if (s->row != t->groups || s->rows != w->rows)
        return br_vm_fail(
            c, BR_E_FORMAT, "%s is [%lld, %lld], not [%lld, %lld]",
            br_vm_operand(c, 2), (long long)s->rows, (long long)s->row,
            (long long)w->rows, (long long)t->groups);
    return BR_OK;
}

static br_code
tile_shape(br_vm_call *c, tile *t)
{
    const br_vmt *x = c->in[0], *out = c->out[0];
    int64_t qdtype;

    *t = (tile){.group = 0};
    BR_TRY(br_vm_int(c, BR_MP_K, &t->k));
    BR_TRY(br_vm_int(c, BR_MP_n_off, &t->n0));
    BR_TRY(br_vm_int(c, BR_MP_N_tile, &t->cols));
    BR_TRY(br_vm_int_or(c, BR_MP_qdtype, 0, &qdtype));
    if (t->k <= 0 || x->row != t->k)
        return br_vm_fail(c, BR_E_FORMAT, "%s has rows of %lld, K is %lld",
                          br_vm_operand(c, 0), (long long)x->row,
                          (long long)t->k);
    if (x->rows != out->rows)
        return br_vm_fail(c, BR_E_FORMAT, "%lld rows into the %lld of %s",
                          (long long)x->rows, (long long)out->rows,
                          br_vm_operand(c, 100));
    BR_TRY(row_range(c, t));
    if ((qdtype == BR_MDT_I4 || qdtype == BR_MDT_I8) && c->n_in > 2)
        BR_TRY(quant_shape(c, t, qdtype));
    BR_TRY(weight_shape(c, t));
    BR_TRY(tile_range(c, "columns", t->n0, t->cols, out->row));
    return br_vm_work(c, br_vm_mul(t->rows, br_vm_mul(t->cols, t->k)));
}

/* Row n of W as f32; buf holds k floats. */
static const float *
weight_row(br_vm_call *c, const tile *t, int64_t n, float *buf)
{
    const unsigned char *p;
    const float *q = buf, *s;

    if (!t->group)
        return br_vm_f32(c, 1, n * t->k, t->k, buf);
    s = br_vm_f32(c, 2, n * t->groups, t->groups, buf + t->k);
    if (!s)
        return NULL;
    if (t->packed) {
        p = br_vm_row_bytes(c, 1, n);
        if (!p)
            return NULL;
        for (int64_t k = 0; k < t->k; k++)
            buf[k] = (float)((p[k / 2] >> (k & 1) * 4 & 15) - 8);
    } else {
        q = br_vm_f32(c, 1, n * t->k, t->k, buf);
        if (!q)
            return NULL;
    }
    for (int64_t k = 0; k < t->k; k++)
        buf[k] = q[k] * s[k / t->group];
    return buf;
}

/* y [rows, cols] = x @ W.T (+ bias) */
static br_code
product(br_vm_call *c, const tile *t, float *y, float *buf)
{
    const float *x = br_vm_f32(c, 0, t->m0 * t->k, t->rows * t->k, NULL);
    const float *bias;

    if (!x)
        return c->st->code;
    for (int64_t n = 0; n < t->cols; n++) {
        const float *w = weight_row(c, t, t->n0 + n, buf);

        if (!w)
            return c->st->code;
        for (int64_t m = 0; m < t->rows; m++)
            y[m * t->cols + n] = c->vm->dot(x + m * t->k, w, (size_t)t->k);
    }
    if (t->group || c->n_in < 3)
        return BR_OK;
    bias = br_vm_f32(c, 2, t->n0, t->cols, NULL);
    if (!bias)
        return c->st->code;
    for (int64_t i = 0; i < t->rows * t->cols; i++)
        y[i] += bias[i % t->cols];
    return BR_OK;
}

/* x [.., K], W [N, K] (, bias [N] | scales [N, G]) -> out [.., N] columns
 * n_off .. n_off + N_tile */
br_code
br_vmop_GEMV_TILE(br_vm_call *c)
{
    float *y, *buf;
    tile t;

    BR_TRY(tile_shape(c, &t));
    y = br_vm_scratch(c, t.rows * t.cols);
    buf = y ? br_vm_scratch(c, t.k + t.groups) : NULL;
    if (!buf)
        return c->st->code;
    BR_TRY(product(c, &t, y, buf));
    for (int64_t m = 0; m < t.rows; m++)
        BR_TRY(br_vm_store(c, (t.m0 + m) * c->out[0]->row + t.n0, t.cols,
                           y + m * t.cols));
    return BR_OK;
}

/* The same. With m_off, only rows m_off .. m_off + M_tile. */
br_code
br_vmop_GEMM_TILE(br_vm_call *c)
{
    return br_vmop_GEMV_TILE(c);
}

/* q [.., K] of integers, scales [.., G] (, zeros [.., G]), G = K / group:
 * out = (q - zero) * scale. Operands hold one value per element; packing is
 * only a matter of how an I4 buffer stores them. */
br_code
br_vmop_DEQUANT(br_vm_call *c)
{
    const br_vmt *t = c->in[0];
    const float *q, *s, *z = NULL;
    int64_t group, groups, qdtype;
    float *y;

    BR_TRY(br_vm_int(c, BR_MP_qdtype, &qdtype)); /* the buffer has the truth */
    BR_TRY(br_vm_int(c, BR_MP_group, &group));
    if (group <= 0 || t->row % group || t->numel != c->out[0]->numel)
        return br_vm_fail(c, BR_E_FORMAT,
                          "group %lld, rows of %lld, %lld elements into %lld",
                          (long long)group, (long long)t->row,
                          (long long)t->numel, (long long)c->out[0]->numel);
    groups = t->row / group;
    for (uint32_t k = 1; k < c->n_in; k++)
        if (c->in[k]->numel != br_vm_mul(t->rows, groups))
            return br_vm_fail(c, BR_E_FORMAT, "%s: %lld elements, not %lld",
                              br_vm_operand(c, k), (long long)c->in[k]->numel,
                              (long long)br_vm_mul(t->rows, groups));
    BR_TRY(br_vm_work(c, t->numel));
    q = br_vm_all(c, 0);
    s = q ? br_vm_all(c, 1) : NULL;
    if (s && c->n_in > 2)
        z = br_vm_all(c, 2);
    y = c->st->code ? NULL : br_vm_scratch(c, t->numel);
    if (!y)
        return c->st->code;
    for (int64_t i = 0; i < t->numel; i++) {
        int64_t g = i / t->row * groups + i % t->row / group;

        y[i] = (z ? q[i] - z[g] : q[i]) * s[g];
    }
    return br_vm_store(c, 0, t->numel, y);
}
