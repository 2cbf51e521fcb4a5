/* ref_att.c - paged attention: a fold over blocks of 256 absolute positions.
 *
 *   block b   keys 256b .. 256b+255 that the row sees
 *             m = max score, l = sum exp(s - m), acc = sum exp(s - m) v
 *             each from zero, keys ascending
 *   fold      M' = max(M, m); L and A rescaled by exp(M - M'), block by
 *             exp(m - M'); blocks ascending
 *
 * A block's numbers do not depend on which row asks or how rows were grouped,
 * but for the causal edge and the window, so prefill and decode agree.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/ref/ref_int.h"

#include "model/quant.h"

#include <math.h>
#include <string.h>

enum { BLOCK = 256 };

float *
ref_kv_row(ref_call *c, const ref_view *v, int32_t slot, int32_t pos)
{
    uint8_t *page =
        br_state_page(c->state, c->step, v->place->group, slot, pos);

    return (float *)(void *)page + v->place->at +
           (uint64_t)(pos % BR_PAGE_TOKENS) * v->cols;
}

void
ref_kv_round(const br_state *s, const float *x, float *y, int64_t c0,
             int64_t c1)
{
    uint8_t block[2 + 32];
    float of[32];

    if (s->kv == BR_Q_F32)
        memmove(y + c0, x + c0, (size_t)(c1 - c0) * sizeof *y);
    for (int64_t i = c0; s->kv == BR_Q_F16 && i < c1; i++)
        y[i] = br_f16_to_f32(br_f32_to_f16(x[i]));
    for (int64_t i = c0, to; s->kv == BR_Q_Q8_0 && i < c1; i = to) {
        to = BR_MIN(i / 32 * 32 + 32, c1);
        br_check(br_quant(BR_Q_Q8_0, x + i / 32 * 32, block, 32, NULL));
        br_dequant(BR_Q_Q8_0, block, of, 32);
        memcpy(y + i, of + i % 32, (size_t)(to - i) * sizeof *y);
    }
}

/* k [v] position *kv_k [*kv_v] */
void
ref_op_kv_write(ref_call *c)
{
    for (size_t t = 0; t < c->step->n_rows; t++)
        for (int i = 0; i < 2; i++) {
            const ref_view *x = &c->in[i], *kv = &c->in[3 + i];
            br_step_span s = br_step_columns(c->n, i, c->c0, c->c1);

            if (x->v)
                ref_kv_round(
                    c->state, ref_row(x, t),
                    ref_kv_row(c, kv, c->step->slot[t], c->step->position[t]),
                    s.from, s.to);
        }
}

typedef struct att {
    ref_call *c;
    const ref_view *k, *v;
    int64_t kv_head, head_k, head_v;
    float scale, cap;
    int32_t slot;
    float m, l; /* of the fold so far */
    float *a;   /* [head_v] */
    float *acc; /* [head_v], of the block */
    float *p;   /* [BLOCK] */
} att;

static const float *
value_row(const att *s, int32_t j)
{
    if (!s->v->v) /* latent attention: values are the first columns of keys */
        return ref_kv_row(s->c, s->k, s->slot, j) + s->kv_head * s->head_k;
    return ref_kv_row(s->c, s->v, s->slot, j) + s->kv_head * s->head_v;
}

static float
score(const att *s, const float *q, int32_t j)
{
    const float *k =
        ref_kv_row(s->c, s->k, s->slot, j) + s->kv_head * s->head_k;
    float x = br_ref_dot(q, k, (size_t)s->head_k) * s->scale;

    return s->cap > 0 ? s->cap * br_ref_tanh(x / s->cap) : x;
}

/* Rescales the fold for a new maximum and returns the block's factor. */
static float
rescale(att *s, float m)
{
    float top = s->m > m ? s->m : m;
    float old = br_ref_exp(s->m - top);

    s->l *= old;
    for (int64_t d = 0; d < s->head_v; d++)
        s->a[d] *= old;
    s->m = top;
    return br_ref_exp(m - top);
}

static void
block(att *s, const float *q, int32_t from, int32_t to, bool first)
{
    float m = -INFINITY, l = 0, f;

    for (int32_t j = from; j < to; j++) {
        s->p[j - from] = score(s, q, j);
        m = s->p[j - from] > m ? s->p[j - from] : m;
    }
    memset(s->acc, 0, (size_t)s->head_v * sizeof(float));
    for (int32_t j = from; j < to; j++) {
        const float *v = value_row(s, j);
        float e = br_ref_exp(s->p[j - from] - m);

        l = l + e;
        for (int64_t d = 0; d < s->head_v; d++)
            s->acc[d] = fmaf(e, v[d], s->acc[d]);
    }
    if (first) {
        s->m = m;
        s->l = l;
        memcpy(s->a, s->acc, (size_t)s->head_v * sizeof(float));
        return;
    }
    f = rescale(s, m);
    s->l = fmaf(l, f, s->l);
    for (int64_t d = 0; d < s->head_v; d++)
        s->a[d] = fmaf(s->acc[d], f, s->a[d]);
}

static void
attend(att *s, const float *q, int32_t pos, int64_t window, float *y)
{
    int32_t lo = window > 0 && pos >= window ? (int32_t)(pos - window + 1) : 0;
    bool first = true;

    for (int32_t b = lo / BLOCK; b <= pos / BLOCK; b++) {
        int32_t from = BR_MAX(lo, b * BLOCK);

        block(s, q, from, BR_MIN(pos + 1, (b + 1) * BLOCK), first);
        first = false;
    }
    (void)y;
}

/* q kv_k [kv_v] position [sinks] */
void
ref_op_attention(ref_call *c)
{
    const br_ir_node *n = c->n;
    int64_t heads = br_ir_i(n, BR_IA_heads, 1);
    int64_t per = heads / br_ir_i(n, BR_IA_kv_heads, 1);
    att s = {.c = c,
             .k = &c->in[1],
             .v = &c->in[2],
             .head_k = br_ir_i(n, BR_IA_head_dim, 0),
             .head_v = br_ir_i(n, BR_IA_head_v, 0),
             .scale = (float)br_ir_f(n, BR_IA_scale, 1),
             .cap = (float)br_ir_f(n, BR_IA_cap, 0),
             .a = c->s->wide[0],
             .acc = c->s->wide[1],
             .p = c->s->att};

    for (size_t t = 0; t < c->step->n_rows; t++)
        for (int64_t h = c->c0 / s.head_v; h < c->c1 / s.head_v; h++) {
            float *y = ref_row(&c->out[0], t) + h * s.head_v;

            s.kv_head = h / per;
            s.slot = c->step->slot[t];
            attend(&s, ref_row(&c->in[0], t) + h * s.head_k,
                   c->step->position[t], br_ir_i(n, BR_IA_window, 0), y);
            if (c->in[4].v) { /* one more score, with no value */
                float f = rescale(&s, c->in[4].f[h]);

                s.l = s.l + f;
            }
            for (int64_t d = 0; d < s.head_v; d++)
                y[d] = s.a[d] / s.l;
        }
}
