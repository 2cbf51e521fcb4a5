/* ref_ops.c - opcodes that work on rows: norms, matrices, rope, elementwise.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/ref/ref_int.h"
#include "model/qint.h"

#include <math.h>
#include <string.h>

/* ---- matrices ----------------------------------------------------------- */

ref_mat
ref_matrix(const ref_view *w, uint64_t slice)
{
    const br_ir_value *v = w->v;
    int r = v->rank;

    uint64_t n_out = (uint64_t)(r > 1 ? v->dim[r - 2] : 1);

    return (ref_mat){w->t, n_out, (uint64_t)v->dim[r - 1], slice, 0, n_out};
}

/* The rows of the only slice that make the call's columns. */
static ref_mat
tile_matrix(const ref_call *c, const ref_view *w)
{
    ref_mat m = ref_matrix(w, 0);

    m.from = (uint64_t)c->c0;
    m.to = (uint64_t)c->c1;
    return m;
}

void
ref_matrix_row(const ref_mat *m, uint64_t n, float *out)
{
    const br_qinfo *q = br_qinfo_of(m->t->type);
    uint64_t bytes = m->n_in / q->elems * q->bytes;

    br_dequant(m->t->type, m->t->data + (m->slice * m->n_out + n) * bytes, out,
               m->n_in);
}

void
ref_matmul(ref_call *c, const ref_mat *m, const ref_view *x, size_t t0,
           size_t n_rows, const ref_view *y)
{
    if (c->act == BR_REF_QUANTISED && br_qint_has(m->t->type)) {
        ref_matmul_quantised(c, m, x, t0, n_rows, y);
        return;
    }
    for (uint64_t n = m->from; n < m->to; n++) {
        ref_matrix_row(m, n, c->s->row);
        for (size_t t = t0; t < t0 + n_rows; t++)
            ref_row(y, t)[n] = br_ref_dot(ref_row(x, t), c->s->row, m->n_in);
    }
}

static void
op_matmul(ref_call *c)
{
    ref_mat m = tile_matrix(c, &c->in[1]);
    const ref_view *b = &c->in[2], *y = &c->out[0];
    bool bias = c->n->op == BR_IR_MATMUL && b->v;

    ref_matmul(c, &m, &c->in[0], 0, c->step->n_rows, y);
    for (size_t t = 0; bias && t < c->step->n_rows; t++)
        for (int64_t n = c->c0; n < c->c1; n++)
            ref_row(y, t)[n] += b->f[n];
}

static void
op_head(ref_call *c)
{
    ref_mat m = tile_matrix(c, &c->in[1]);

    for (size_t t = 0; t < c->step->n_rows; t++)
        if (!c->step->want || c->step->want[t])
            ref_matmul(c, &m, &c->in[0], t, 1, &c->out[0]);
}

static void
op_head_matmul(ref_call *c)
{
    int64_t width = c->out[0].cols / br_ir_i(c->n, BR_IA_heads, 1);

    for (int64_t h = c->c0 / width; h < c->c1 / width; h++) {
        ref_mat m = ref_matrix(&c->in[1], (uint64_t)h);
        ref_view x = c->in[0], y = c->out[0];

        x.f += (uint64_t)h * m.n_in;
        y.f += (uint64_t)h * m.n_out;
        ref_matmul(c, &m, &x, 0, c->step->n_rows, &y);
    }
}

static void
op_embed(ref_call *c)
{
    ref_mat m = ref_matrix(&c->in[1], 0);

    for (size_t t = 0; t < c->step->n_rows; t++) {
        ref_matrix_row(&m, (uint64_t)c->step->token[t], c->s->row);
        memcpy(ref_row(&c->out[0], t) + c->c0, c->s->row + c->c0,
               (size_t)(c->c1 - c->c0) * sizeof(float));
    }
}

/* ---- norms -------------------------------------------------------------- */

void
ref_rms_norm_row(const float *x, const float *w, float *y, int64_t n, float eps)
{
    float mean = br_ref_dot(x, x, (size_t)n) / (float)n;
    float r = br_ref_rsqrt(mean + eps);

    for (int64_t i = 0; i < n; i++)
        y[i] = w ? (x[i] * r) * w[i] : x[i] * r;
}

void
ref_norm(const ref_call *c, const ref_view *x, const ref_view *w,
         const ref_view *y)
{
    int64_t width = br_ir_i(c->n, BR_IA_width, x->cols);
    float eps = (float)br_ir_f(c->n, BR_IA_eps, 0);

    for (size_t t = 0; t < c->step->n_rows; t++)
        for (int64_t at = c->c0; at < c->c1; at += width)
            ref_rms_norm_row(ref_row(x, t) + at, w->v ? w->f : NULL,
                             ref_row(y, t) + at, width, eps);
}

static void
op_residual_norm(ref_call *c)
{
    const ref_view *x = &c->in[0], *r = &c->in[1];

    for (size_t t = 0; t < c->step->n_rows; t++)
        for (int64_t i = c->c0; i < c->c1; i++)
            ref_row(&c->out[0], t)[i] = ref_row(x, t)[i] + ref_row(r, t)[i];
    ref_norm(c, &c->out[0], &c->in[2], &c->out[1]);
}

/* RMS_NORM into scratch, then a MATMUL per weight. */
static void
op_norm_matmuls(ref_call *c, int n_w)
{
    ref_view y = c->in[0];

    for (size_t t = 0; t < c->step->n_rows; t++) {
        ref_view row = c->in[0], one = y;
        ref_call k = *c;
        br_step step = *c->step;

        step.n_rows = 1;
        k.step = &step;
        k.c0 = 0;
        k.c1 = row.cols;
        row.f = ref_row(&c->in[0], t);
        one.f = c->s->wide[0];
        ref_norm(&k, &row, &c->in[1], &one);
        for (int i = 0; i < n_w; i++) {
            ref_mat m = ref_matrix(&c->in[2 + i], 0);
            br_step_span s =
                br_step_columns(c->n, c->n->n_in + i, c->c0, c->c1);
            ref_view out = c->out[i];

            m.from = (uint64_t)s.from;
            m.to = (uint64_t)s.to;
            out.f = ref_row(&c->out[i], t);
            ref_matmul(&k, &m, &one, 0, 1, &out);
        }
    }
}

/* ---- rope --------------------------------------------------------------- */

typedef struct rope {
    int64_t h0, h1; /* heads */
    int64_t head, n_rot;
    bool neighbours;
    float scale;
    const float *freq;
} rope;

static rope
rope_of(const ref_call *c, const float *freq)
{
    const br_ir_node *n = c->n;
    int64_t head = br_ir_i(n, BR_IA_head_dim, 1);

    return (rope){c->c0 / head,
                  c->c1 / head,
                  head,
                  br_ir_i(n, BR_IA_n_rot, 0),
                  br_ir_i(n, BR_IA_kind, 0) == BR_ROPE_NORM,
                  (float)br_ir_f(n, BR_IA_scale, 1),
                  freq};
}

static void
rope_row(const rope *r, float pos, const float *x, float *y)
{
    for (int64_t h = r->h0; h < r->h1; h++)
        for (int64_t i = r->n_rot; i < r->head; i++)
            y[h * r->head + i] = x[h * r->head + i];
    for (int64_t i = 0; i < r->n_rot / 2; i++) {
        int64_t a = r->neighbours ? 2 * i : i;
        int64_t b = r->neighbours ? 2 * i + 1 : i + r->n_rot / 2;
        float s, c;

        br_ref_sincos(pos, r->freq[i], &s, &c);
        s *= r->scale;
        c *= r->scale;
        for (int64_t h = r->h0; h < r->h1; h++) {
            float u = x[h * r->head + a], v = x[h * r->head + b];

            y[h * r->head + a] = fmaf(u, c, -(v * s));
            y[h * r->head + b] = fmaf(u, s, v * c);
        }
    }
}

static void
op_rope(ref_call *c)
{
    rope r = rope_of(c, c->in[2].f);

    for (size_t t = 0; t < c->step->n_rows; t++)
        rope_row(&r, (float)c->step->position[t], ref_row(&c->in[0], t),
                 ref_row(&c->out[0], t));
}

void
ref_norm_rope_row(const ref_call *c, size_t t, float *y)
{
    rope r = rope_of(c, c->in[2].f);
    float eps = (float)br_ir_f(c->n, BR_IA_eps, 0);

    for (int64_t at = c->c0; at < c->c1; at += r.head)
        ref_rms_norm_row(ref_row(&c->in[0], t) + at, c->in[1].f,
                         c->s->wide[0] + at, r.head, eps);
    rope_row(&r, (float)c->step->position[t], c->s->wide[0], y);
}

/* k w freq v position *kv_k *kv_v */
static void
op_norm_rope_write(ref_call *c)
{
    const ref_view *v = &c->in[3];
    br_step_span s = br_step_columns(c->n, 3, c->c0, c->c1);

    for (size_t t = 0; t < c->step->n_rows; t++) {
        int32_t slot = c->step->slot[t], pos = c->step->position[t];
        float *to;

        to = ref_kv_row(c, &c->in[5], slot, pos);
        ref_norm_rope_row(c, t, to);
        ref_kv_round(c->state, to, to, c->c0, c->c1);
        if (v->v)
            ref_kv_round(c->state, ref_row(v, t),
                         ref_kv_row(c, &c->in[6], slot, pos), s.from, s.to);
    }
}

float
ref_temperature(const br_ir_node *n, int32_t position)
{
    int64_t floor = br_ir_i(n, BR_IA_field, 1);
    float times = (float)(position / floor + 1);

    return fmaf(br_ref_log(times), (float)br_ir_f(n, BR_IA_scale, 0), 1.0f);
}

static void
op_temp_scale(ref_call *c)
{
    const ref_view *x = &c->in[0];

    for (size_t t = 0; t < c->step->n_rows; t++) {
        float m = ref_temperature(c->n, c->step->position[t]);

        for (int64_t i = c->c0; i < c->c1; i++)
            ref_row(&c->out[0], t)[i] = ref_row(x, t)[i] * m;
    }
}

/* ---- elementwise -------------------------------------------------------- */

static float
other(const ref_view *b, size_t t, int64_t i)
{
    return ref_row(b, t)[b->cols == 1 ? 0 : i];
}

static float
one(const ref_call *c, size_t t, int64_t i, float x)
{
    float s;

    switch (c->n->op) {
    case BR_IR_ADD: return x + other(&c->in[1], t, i);
    case BR_IR_MUL: return x * other(&c->in[1], t, i);
    case BR_IR_SCALE: return x * (float)br_ir_f(c->n, BR_IA_scale, 1);
    case BR_IR_SOFTCAP:
        s = (float)br_ir_f(c->n, BR_IA_scale, 1);
        return s * br_ref_tanh(x / s);
    case BR_IR_ACT: return br_ref_act1((int)br_ir_i(c->n, BR_IA_act, 0), x);
    case BR_IR_GLU:
        return br_ref_glu1((int)br_ir_i(c->n, BR_IA_act, 0), x,
                           other(&c->in[1], t, i));
    default: return x; /* COPY */
    }
}

static void
op_elementwise(ref_call *c)
{
    for (size_t t = 0; t < c->step->n_rows; t++)
        for (int64_t i = c->c0; i < c->c1; i++)
            ref_row(&c->out[0], t)[i] = one(c, t, i, ref_row(&c->in[0], t)[i]);
}

static void
op_argmax(ref_call *c)
{
    for (size_t t = 0; t < c->step->n_rows; t++) {
        const float *x = ref_row(&c->in[0], t);
        int32_t best = 0;

        for (int64_t i = 1; i < c->in[0].cols; i++)
            if (x[i] > x[best])
                best = (int32_t)i;
        c->out[0].i[t * c->out[0].stride] = best;
    }
}

/* ---- all of them -------------------------------------------------------- */

void
ref_op(ref_call *c)
{
    switch ((br_ir_op)c->n->op) {
    case BR_IR_EMBED: op_embed(c); return;
    case BR_IR_RMS_NORM: ref_norm(c, &c->in[0], &c->in[1], &c->out[0]); return;
    case BR_IR_RMS_NORM_FUSED_QKV: op_norm_matmuls(c, 3); return;
    case BR_IR_RMS_NORM_FUSED_MLP_GATE_UP: op_norm_matmuls(c, 2); return;
    case BR_IR_ROPE: op_rope(c); return;
    case BR_IR_RMS_NORM_FUSED_ROPE_KV_WRITE: op_norm_rope_write(c); return;
    case BR_IR_FLASH_ATTN:
    case BR_IR_FLASH_ATTN_BATCHED: ref_op_attention(c); return;
    case BR_IR_MOE_GATE_TOPK: ref_op_gate_topk(c); return;
    case BR_IR_MOE_GATE_UP: ref_op_gate_up(c); return;
    case BR_IR_MOE_SWIGLU: ref_op_moe_act(c); return;
    case BR_IR_MOE_DOWN_ACC: ref_op_down_acc(c); return;
    case BR_IR_SHARED_EXPERT: ref_op_shared(c); return;
    case BR_IR_SSM_CONV1D: ref_op_conv1d(c); return;
    case BR_IR_SSM_DELTA_NET: ref_op_delta(c); return;
    case BR_IR_SSM_GATED_NORM: ref_op_gated_norm(c); return;
    case BR_IR_SSM_SCAN: ref_op_scan(c); return;
    case BR_IR_RESIDUAL_RMS_NORM: op_residual_norm(c); return;
    case BR_IR_LM_HEAD: op_head(c); return;
    case BR_IR_ARGMAX: op_argmax(c); return;
    case BR_IR_KV_WRITE_BATCHED: ref_op_kv_write(c); return;
    case BR_IR_MATMUL:
    case BR_IR_MATMUL_WMMA_F16:
    case BR_IR_MATMUL_WMMA_Q4K: op_matmul(c); return;
    case BR_IR_HEAD_MATMUL: op_head_matmul(c); return;
    case BR_IR_TEMP_SCALE: op_temp_scale(c); return;
    case BR_IR_ADD:
    case BR_IR_MUL:
    case BR_IR_SCALE:
    case BR_IR_GLU:
    case BR_IR_ACT:
    case BR_IR_SOFTCAP:
    case BR_IR_COPY: op_elementwise(c); return;
    case BR_IR_BARRIER: return;
    case BR_IR_SAMPLE:
    case BR_IR_STREAM_OUT:
    case BR_IR_LOAD_REQUEST_STATE:
    case BR_IR_STORE_REQUEST_STATE:
    case BR_IR_VERIFY_K:
    case BR_IR_OP_LIMIT: break;
    }
    br_unreachable("prepare refuses other opcodes");
}
