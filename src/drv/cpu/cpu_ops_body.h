/* cpu_ops_body.h - the functions of cpu_ops.h, compiled once for each
 * instruction set by cpu_ops_c.c and its sisters.
 *
 * Polynomials and orders: docs/arithmetic.md; ref_math.c is the same text one
 * number at a time. Nothing is contracted: v_fma stands where one rounding is
 * meant.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_OPS_BODY_H
#define BR_CPU_OPS_BODY_H

#include "drv/cpu/cpu_ops.h"
#include "drv/cpu/cpu_vec.h"
#include "model/model.h"

/* ---- elementary functions ----------------------------------------------- */

V_LONG vf
v_exp(vf x)
{
    vf k = v_rint(v_mul(x, v_set(0x1.715476p+0f)));
    vf r = v_fma(k, v_set(-0x1.62e4p-1f), x), p, e;

    r = v_fma(k, v_set(-0x1.7f7d1cp-20f), r);
    p = v_set(0x1.6d10fcp-10f);
    p = v_fma(p, r, v_set(0x1.120b62p-7f));
    p = v_fma(p, r, v_set(0x1.55551ap-5f));
    p = v_fma(p, r, v_set(0x1.5554dep-3f));
    p = v_fma(p, r, v_set(0.5f));
    e = v_ldexp(v_add(v_fma(v_mul(p, r), r, r), v_set(1)), k);
    e = v_less(x, v_set(88.73f), e, v_add(x, v_set(INFINITY)));
    return v_less(x, v_set(-104.0f), v_set(0), e);
}

V_LONG vf
v_tanh(vf x)
{
    vf a = v_abs(x), z = v_mul(x, x), p, q;

    p = v_set(-0x1.8f8de4p-8f);
    p = v_fma(p, z, v_set(0x1.58048ep-6f));
    p = v_fma(p, z, v_set(-0x1.b9258ap-5f));
    p = v_fma(p, z, v_set(0x1.110e1cp-3f));
    p = v_fma(p, z, v_set(-0x1.555552p-2f));
    p = v_fma(v_mul(p, z), x, x);
    q = v_add(v_exp(v_mul(v_set(2), a)), v_set(1));
    q = v_sub(v_set(1), v_div(v_set(2), q));
    return v_less(a, v_set(0.625f), p, v_less(x, v_set(0), v_neg(q), q));
}

V_LONG vf
v_silu(vf x)
{
    return v_div(x, v_add(v_set(1), v_exp(v_neg(x))));
}

V_LONG vf
v_gelu(vf x)
{
    vf u = v_mul(v_set(0x1.6e4e26p-5f), x);

    u = v_mul(x, v_fma(u, x, v_set(1)));
    u = v_tanh(v_mul(v_set(0x1.988454p-1f), u));
    return v_mul(v_mul(v_set(0.5f), x), v_add(v_set(1), u));
}

V_LONG vf
v_oai(vf g, vf u)
{
    g = v_less(g, v_set(7), g, v_set(7));
    u = v_less(u, v_set(7), u, v_set(7));
    u = v_less(v_set(-7), u, u, v_set(-7));
    g = v_div(g, v_add(v_set(1), v_exp(v_mul(v_set(-1.702f), g))));
    return v_mul(g, v_add(u, v_set(1)));
}

/* ---- rows --------------------------------------------------------------- */

static float
dot(const float *a, const float *b, size_t n)
{
    vf sum = v_set(0);
    float lane[16];
    size_t k = 0;

    for (; k + 16 <= n; k += 16)
        sum = v_fma(v_load(a + k), v_load(b + k), sum);
    if (k == n)
        return v_sum(sum);
    v_store(lane, sum);
    for (size_t l = 0; k + l < n; l++)
        lane[l] = fmaf(a[k + l], b[k + l], lane[l]);
    return v_sum(v_load(lane));
}

static void
norm(const float *x, const float *w, float *y, size_t n, float eps)
{
    float r = 1.0f / sqrtf(dot(x, x, n) / (float)n + eps);
    vf by = v_set(r);
    size_t k = 0;

    for (; w && k + 16 <= n; k += 16)
        v_store(y + k, v_mul(v_mul(v_load(x + k), by), v_load(w + k)));
    for (; k < n; k++)
        y[k] = w ? (x[k] * r) * w[k] : x[k] * r;
}

V_INLINE vf
act_of(int act, vf x, vf up, bool glu)
{
    vf y;

    if (act == BR_ACT_OAI)
        return v_oai(x, up);
    y = act == BR_ACT_SILU ? v_silu(x)
        : act == BR_ACT_GELU
            ? v_gelu(x)
            : v_div(v_set(1), v_add(v_set(1), v_exp(v_neg(x))));
    return glu ? v_mul(y, up) : y;
}

V_LONG void
act_rows(int act, const float *x, const float *up, float *y, size_t n)
{
    bool glu = up != NULL;
    size_t k = 0;

    for (; k + 16 <= n; k += 16)
        v_store(y + k, act_of(act, v_load(x + k),
                              glu ? v_load(up + k) : v_set(0), glu));
    if (k < n)
        v_store_n(y + k,
                  act_of(act, v_load_n(x + k, n - k),
                         glu ? v_load_n(up + k, n - k) : v_set(0), glu),
                  n - k);
}

static void
act(int kind, const float *x, const float *up, float *y, size_t n)
{
    switch ((br_act)kind) {
    case BR_ACT_SILU: act_rows(BR_ACT_SILU, x, up, y, n); return;
    case BR_ACT_GELU: act_rows(BR_ACT_GELU, x, up, y, n); return;
    case BR_ACT_SIGMOID: act_rows(BR_ACT_SIGMOID, x, up, y, n); return;
    case BR_ACT_OAI:
        br_assert(up && "a gate that is clamped with its other half");
        act_rows(BR_ACT_OAI, x, up, y, n);
        return;
    case BR_ACT_COUNT: break;
    }
    br_unreachable("act");
}

static void
softcap(const float *x, float *y, size_t n, float cap)
{
    vf c = v_set(cap);

    for (; n >= 16; n -= 16, x += 16, y += 16)
        v_store(y, v_mul(c, v_tanh(v_div(v_load(x), c))));
    if (n)
        v_store_n(y, v_mul(c, v_tanh(v_div(v_load_n(x, n), c))), n);
}

static void
two(br_cpu_two op, const float *a, const float *b, float *y, size_t n)
{
    size_t k = 0;

    for (; op == BR_CPU_ADD && k + 16 <= n; k += 16)
        v_store(y + k, v_add(v_load(a + k), v_load(b + k)));
    for (; op == BR_CPU_MUL && k + 16 <= n; k += 16)
        v_store(y + k, v_mul(v_load(a + k), v_load(b + k)));
    for (; k < n; k++)
        y[k] = op == BR_CPU_ADD ? a[k] + b[k] : a[k] * b[k];
}

static void
scale(const float *x, float *y, size_t n, float by)
{
    size_t k = 0;

    for (; k + 16 <= n; k += 16)
        v_store(y + k, v_mul(v_load(x + k), v_set(by)));
    for (; k < n; k++)
        y[k] = x[k] * by;
}

static void
axpy(const float *x, float by, float *y, size_t n)
{
    size_t k = 0;

    for (; k + 16 <= n; k += 16)
        v_store(y + k, v_fma(v_load(x + k), v_set(by), v_load(y + k)));
    for (; k < n; k++)
        y[k] = fmaf(x[k], by, y[k]);
}

static void
turn(const float *u, const float *v, const float *c, const float *s, float *yu,
     float *yv, size_t n)
{
    size_t k = 0;

    for (; k + 16 <= n; k += 16) {
        vf a = v_load(u + k), b = v_load(v + k);
        vf co = v_load(c + k), si = v_load(s + k);

        v_store(yu + k, v_fma(a, co, v_neg(v_mul(b, si))));
        v_store(yv + k, v_fma(a, si, v_mul(b, co)));
    }
    for (; k < n; k++) {
        float a = u[k], b = v[k];

        yu[k] = fmaf(a, c[k], -(b * s[k]));
        yv[k] = fmaf(a, s[k], b * c[k]);
    }
}

static void
to_f16(const float *x, uint16_t *y, size_t n)
{
    size_t k = 0;

    for (; k + 16 <= n; k += 16)
        v_store_f16(y + k, v_load(x + k));
    for (; k < n; k++)
        y[k] = br_f32_to_f16(x[k]);
}

/* ---- attention ---------------------------------------------------------- */

V_INLINE vf
load_kv(const uint8_t *p, size_t i, bool f16)
{
    return f16 ? v_load_f16((const uint16_t *)(const void *)p + i)
               : v_load((const float *)(const void *)p + i);
}

static const uint8_t *
page_of(const br_cpu_att *a, int32_t pos)
{
    return a->pool + a->pages[pos / 16] * a->page_bytes;
}

/* A head's scores of a block, its fold, and what a block's values come to. */
V_INLINE float *
scores_of(const br_cpu_att *a, uint32_t i)
{
    return a->s + i * (BR_CPU_BLOCK + 2 * (size_t)a->head_v);
}

V_INLINE float *
block_of(const br_cpu_att *a, uint32_t i)
{
    return scores_of(a, i) + BR_CPU_BLOCK + a->head_v;
}

/* Lane l of the dot products of sixteen keys, for each of n heads from i0 on.
 * kt: [head_k][16 keys] */
V_INLINE void
lane_of(const br_cpu_att *a, const uint8_t *kt, uint32_t l, uint32_t i0, int n,
        bool f16, vf *x)
{
    const float *q = a->q + i0 * a->head_k;

    V_UNROLL
    for (int i = 0; i < n; i++)
        x[i] = v_set(0);
    for (uint32_t d = l; d < a->head_k; d += 16) {
        vf k = load_kv(kt, d * 16, f16);

        V_UNROLL
        for (int i = 0; i < n; i++)
            x[i] = v_fma(v_set(q[(uint32_t)i * a->head_k + d]), k, x[i]);
    }
}

/* Scores of sixteen keys; lanes are joined as 8-4-2-1. */
V_LONG void
scores16(const br_cpu_att *a, const uint8_t *kt, size_t to, uint32_t i0, int n,
         bool f16)
{
    vf lane[16][BR_CPU_HEADS];

    for (uint32_t l = 0; l < 16; l++)
        lane_of(a, kt, l, i0, n, f16, lane[l]);
    for (uint32_t half = 8; half > 0; half /= 2)
        for (uint32_t l = 0; l < half; l++)
            V_UNROLL
    for (int i = 0; i < n; i++)
        lane[l][i] = v_add(lane[l][i], lane[l + half][i]);
    for (int i = 0; i < n; i++)
        v_store(scores_of(a, i0 + (uint32_t)i) + to, lane[0][i]);
}

static float
score_row(const br_cpu_att *a, const float *q, const uint8_t *k)
{
    float lane[16];
    vf sum = v_set(0);
    uint32_t d = 0;

    if (!a->f16)
        return dot(q, (const float *)(const void *)k, a->head_k);
    for (; d + 16 <= a->head_k; d += 16)
        sum = v_fma(v_load(q + d), load_kv(k, d, true), sum);
    v_store(lane, sum);
    for (uint32_t l = 0; d + l < a->head_k; l++)
        lane[l] = fmaf(
            q[d + l], br_f16_to_f32(((const uint16_t *)(const void *)k)[d + l]),
            lane[l]);
    return v_sum(v_load(lane));
}

/* Products with the sixteen keys from p on, not scaled, for every head. */
static void
key_products(const br_cpu_att *a, int32_t p, int32_t to)
{
    size_t step = a->row * (a->f16 ? 2 : 4), at = (size_t)p % BR_CPU_BLOCK;
    const uint8_t *k = page_of(a, p) + a->k_at;

    for (uint32_t i = 0; !a->has_v && i < a->n; i++)
        for (int j = 0; j < 16; j++)
            scores_of(a, i)[at + (size_t)j] =
                p + j < to
                    ? score_row(a, a->q + i * a->head_k, k + (size_t)j * step)
                    : 0;
    if (a->has_v && a->n == 4 && a->f16)
        scores16(a, k, at, 0, 4, true);
    else if (a->has_v && a->n == 4)
        scores16(a, k, at, 0, 4, false);
    else
        for (uint32_t i = 0; a->has_v && i < a->n; i++)
            if (a->f16)
                scores16(a, k, at, i, 1, true);
            else
                scores16(a, k, at, i, 1, false);
}

/* From products of the keys from..to - 1 to exp(score - top); returns top. */
static float
block_scores(const br_cpu_att *a, float *s, int32_t from, int32_t to)
{
    float top = -INFINITY;
    int32_t end = to % BR_CPU_BLOCK ? to % BR_CPU_BLOCK : BR_CPU_BLOCK;
    int32_t first = from % BR_CPU_BLOCK / 16 * 16;
    vf m = v_set(-INFINITY), by = v_set(a->scale), cap = v_set(a->cap);

    for (int32_t i = first; i < end; i += 16) {
        v_store(s + i, v_mul(v_load(s + i), by));
        if (a->cap > 0)
            v_store(s + i, v_mul(cap, v_tanh(v_div(v_load(s + i), cap))));
    }
    for (int32_t i = first; i < from % BR_CPU_BLOCK; i++)
        s[i] = -INFINITY; /* not seen: outside of the window */
    for (int32_t i = end; i % 16; i++)
        s[i] = -INFINITY; /* not yet written */
    for (int32_t i = first; i < end; i += 16)
        m = v_max(v_load(s + i), m);
    for (int i = 0; i < 16; i++) {
        float lane[16];

        v_store(lane, m);
        top = lane[i] > top ? lane[i] : top;
    }
    for (int32_t i = first; i < end; i += 16)
        v_store(s + i, v_exp(v_sub(v_load(s + i), v_set(top))));
    return top;
}

/* acc[d] = sum of e[j] v[j][d] for the 16 nv columns from d0 of nq heads from
 * i0 on, j ascending. */
V_LONG void
weigh(const br_cpu_att *a, int32_t from, int32_t to, uint32_t d0, int nv,
      uint32_t i0, int nq, bool f16)
{
    size_t size = f16 ? 2 : 4, step = a->row * size;
    size_t at = (a->has_v ? a->v_at : a->k_at) + d0 * size;
    const float *s = scores_of(a, i0);
    size_t head = BR_CPU_BLOCK + 2 * (size_t)a->head_v;
    vf sum[4];

    V_UNROLL
    for (int i = 0; i < nv * nq; i++)
        sum[i] = v_set(0);
    for (int32_t j = from; j < to;) {
        const uint8_t *v = page_of(a, j) + at + (size_t)(j % 16) * step;
        int32_t end = BR_MIN(to, j / 16 * 16 + 16);

        for (; j < end; j++, v += step) {
            V_UNROLL
            for (int i = 0; i < nv; i++) {
                vf x = load_kv(v, 16 * (size_t)i, f16);

                V_UNROLL
                for (int q = 0; q < nq; q++)
                    sum[i * nq + q] = v_fma(
                        v_set(s[(size_t)q * head + (size_t)j % BR_CPU_BLOCK]),
                        x, sum[i * nq + q]);
            }
        }
    }
    V_UNROLL
    for (int i = 0; i < nv * nq; i++)
        v_store(block_of(a, i0 + (uint32_t)(i % nq)) + d0 + 16 * (i / nq),
                sum[i]);
}

static void
weigh_tail(const br_cpu_att *a, int32_t from, int32_t to, uint32_t d,
           uint32_t i)
{
    size_t size = a->f16 ? 2 : 4, at = a->has_v ? a->v_at : a->k_at;
    float sum = 0;

    for (int32_t j = from; j < to; j++) {
        const uint8_t *p =
            page_of(a, j) + at + ((size_t)(j % 16) * a->row + d) * size;
        float v;

        if (a->f16) {
            uint16_t h;

            memcpy(&h, p, sizeof h);
            v = br_f16_to_f32(h);
        } else {
            memcpy(&v, p, sizeof v);
        }
        sum = fmaf(scores_of(a, i)[j % BR_CPU_BLOCK], v, sum);
    }
    block_of(a, i)[d] = sum;
}

static void
block_values(const br_cpu_att *a, int32_t from, int32_t to, uint32_t i)
{
    uint32_t d = 0;

    for (; d + 64 <= a->head_v; d += 64)
        if (a->f16)
            weigh(a, from, to, d, 4, i, 1, true);
        else
            weigh(a, from, to, d, 4, i, 1, false);
    for (; d + 16 <= a->head_v; d += 16)
        if (a->f16)
            weigh(a, from, to, d, 1, i, 1, true);
        else
            weigh(a, from, to, d, 1, i, 1, false);
    for (; d < a->head_v; d++)
        weigh_tail(a, from, to, d, i);
}

/* Four heads at once, where columns are whole vectors: a value is loaded and
 * widened once for all of them. */
static void
all_values(const br_cpu_att *a, int32_t from, int32_t to)
{
    if (a->n != 4 || a->head_v % 16 != 0) {
        for (uint32_t i = 0; i < a->n; i++)
            block_values(a, from, to, i);
        return;
    }
    for (uint32_t d = 0; d < a->head_v; d += 16)
        if (a->f16)
            weigh(a, from, to, d, 1, 0, 4, true);
        else
            weigh(a, from, to, d, 1, 0, 4, false);
}

static float
exp1(float x)
{
    float lane[16];

    v_store(lane, v_exp(v_set(x)));
    return lane[0];
}

typedef struct att_fold {
    float top, sum;
} att_fold;

/* A block of head i, its maximum and the sum of its weights, to the fold. */
static void
fold_block(const br_cpu_att *a, uint32_t i, att_fold *f, att_fold block,
           bool first)
{
    float *fold = scores_of(a, i) + BR_CPU_BLOCK, *acc = block_of(a, i);
    float both = f->top > block.top ? f->top : block.top, old, fresh;

    if (first) {
        memcpy(fold, acc, a->head_v * sizeof *acc);
        *f = block;
        return;
    }
    old = exp1(f->top - both);
    fresh = exp1(block.top - both);
    f->sum = fmaf(block.sum, fresh, f->sum * old);
    f->top = both;
    for (uint32_t d = 0; d < a->head_v; d++)
        fold[d] = fmaf(acc[d], fresh, fold[d] * old);
}

static void
finish_head(const br_cpu_att *a, uint32_t i, att_fold f)
{
    float *fold = scores_of(a, i) + BR_CPU_BLOCK;

    if (a->sink) { /* one more score, with no value */
        float both = f.top > a->sink[i] ? f.top : a->sink[i];
        float old = exp1(f.top - both);

        f.sum = f.sum * old + exp1(a->sink[i] - both);
        scale(fold, fold, a->head_v, old);
    }
    for (uint32_t d = 0; d < a->head_v; d++)
        a->y[i * a->head_v + d] = fold[d] / f.sum;
}

static void
attend(const br_cpu_att *a)
{
    att_fold fold[BR_CPU_HEADS] = {{0, 0}}, block[BR_CPU_HEADS];

    for (int32_t b = a->lo / 256; b <= a->pos / 256; b++) {
        int32_t from = BR_MAX(a->lo, b * 256);
        int32_t to = BR_MIN(a->pos + 1, (b + 1) * 256);

        for (int32_t p = from / 16 * 16; p < to; p += 16)
            key_products(a, p, to);
        for (uint32_t i = 0; i < a->n; i++)
            block[i] =
                (att_fold){block_scores(a, scores_of(a, i), from, to), 0};
        for (int32_t j = from; j < to; j++) /* heads side by side: latency */
            for (uint32_t i = 0; i < a->n; i++)
                block[i].sum += scores_of(a, i)[j % BR_CPU_BLOCK];
        all_values(a, from, to);
        for (uint32_t i = 0; i < a->n; i++)
            fold_block(a, i, &fold[i], block[i], b == a->lo / 256);
    }
    for (uint32_t i = 0; i < a->n; i++)
        finish_head(a, i, fold[i]);
}

/* ---- states ------------------------------------------------------------- */

/* S *= decay; d = beta (v - S'k); S += k d'; y = S'q; sums over keys ascend. */
static void
delta(const br_cpu_delta *e)
{
    size_t n = e->n;

    for (size_t j = 0; j < n; j++)
        e->d[j] = e->y[j] = 0;
    for (size_t i = 0; i < n; i++) {
        float *s = e->s + i * n;
        size_t j = 0;

        for (; j + 16 <= n; j += 16) {
            vf x = v_mul(v_load(s + j), v_set(e->decay));

            v_store(s + j, x);
            v_store(e->d + j, v_fma(x, v_set(e->k[i]), v_load(e->d + j)));
        }
        for (; j < n; j++) {
            s[j] = s[j] * e->decay;
            e->d[j] = fmaf(s[j], e->k[i], e->d[j]);
        }
    }
    for (size_t j = 0; j < n; j++)
        e->d[j] = e->beta * (e->v[j] - e->d[j]);
    for (size_t i = 0; i < n; i++) {
        float *s = e->s + i * n;
        size_t j = 0;

        for (; j + 16 <= n; j += 16) {
            vf x = v_fma(v_set(e->k[i]), v_load(e->d + j), v_load(s + j));

            v_store(s + j, x);
            v_store(e->y + j, v_fma(x, v_set(e->q[i]), v_load(e->y + j)));
        }
        for (; j < n; j++) {
            s[j] = fmaf(e->k[i], e->d[j], s[j]);
            e->y[j] = fmaf(s[j], e->q[i], e->y[j]);
        }
    }
}

static void
scan(float *row, const float *b, float xd, float decay, size_t n)
{
    size_t j = 0;

    for (; j + 16 <= n; j += 16)
        v_store(row + j, v_fma(v_load(b + j), v_set(xd),
                               v_mul(v_load(row + j), v_set(decay))));
    for (; j < n; j++)
        row[j] = fmaf(b[j], xd, row[j] * decay);
}

#define CPU_OPS                                                          \
    {                                                                    \
        dot, norm, act, softcap, two, scale, axpy, turn, to_f16, attend, \
            delta, scan                                                  \
    }

#endif
