/* ref_ssm.c - opcodes with a state per slot: convolution, delta rule, scan.
 *
 * Rows of a slot are taken one after the other, in the order of the step; the
 * step form defines the bits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/ref/ref_int.h"

#include <math.h>
#include <string.h>

float *
ref_slot_state(const ref_call *c, const ref_view *v, size_t t)
{
    return c->state->slots +
           (uint64_t)c->step->slot[t] * c->state->plan.slot_elems +
           v->place->at;
}

/* x w [b] *state -> y. The state is the last kernel - 1 rows of x. */
void
ref_op_conv1d(ref_call *c)
{
    int64_t k = br_ir_i(c->n, BR_IA_kernel, 1), n = c->in[0].cols;
    const float *w = c->in[1].f;

    for (size_t t = 0; t < c->step->n_rows; t++) {
        float *s = ref_slot_state(c, &c->in[3], t);
        const float *x = ref_row(&c->in[0], t);
        float *y = ref_row(&c->out[0], t);

        for (int64_t i = c->c0; i < c->c1; i++) {
            float a = 0;

            for (int64_t j = 0; j < k - 1; j++)
                a = fmaf(w[i * k + j], s[j * n + i], a);
            a = fmaf(w[i * k + k - 1], x[i], a);
            if (c->in[2].v)
                a = a + c->in[2].f[i];
            y[i] = br_ir_has(c->n, BR_IA_act)
                       ? br_ref_act1((int)br_ir_i(c->n, BR_IA_act, 0), a)
                       : a;
        }
        for (int64_t j = 0; j < k - 1; j++)
            memcpy(s + j * n + c->c0,
                   j < k - 2 ? s + (j + 1) * n + c->c0 : x + c->c0,
                   (size_t)(c->c1 - c->c0) * sizeof *s);
    }
}

/* ---- gated delta rule --------------------------------------------------- */

static void
l2_norm(const float *x, float *y, int64_t n, float eps)
{
    float len = sqrtf(br_ref_dot(x, x, (size_t)n));

    len = len > eps ? len : eps;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] / len;
}

typedef struct delta {
    float *s; /* [key][value] */
    const float *q, *k, *v;
    float decay, beta;
    float *d; /* [value] */
    float *y;
    int64_t n;
} delta;

/* S *= exp(g); d = beta (v - S'k); S += k d'; y = S'q. Sums over keys run
 * ascending. */
static void
delta_step(const delta *e)
{
    int64_t n = e->n;

    for (int64_t j = 0; j < n; j++)
        e->d[j] = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            e->s[i * n + j] = e->s[i * n + j] * e->decay;
            e->d[j] = fmaf(e->s[i * n + j], e->k[i], e->d[j]);
        }
    for (int64_t j = 0; j < n; j++) {
        e->d[j] = e->beta * (e->v[j] - e->d[j]);
        e->y[j] = 0;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            e->s[i * n + j] = fmaf(e->k[i], e->d[j], e->s[i * n + j]);
            e->y[j] = fmaf(e->s[i * n + j], e->q[i], e->y[j]);
        }
}

/* qkv alpha beta a dt_b *state -> y */
void
ref_op_delta(ref_call *c)
{
    const br_ir_node *n = c->n;
    int64_t hv = br_ir_i(n, BR_IA_heads, 1), hk = br_ir_i(n, BR_IA_kv_heads, 1);
    int64_t w = br_ir_i(n, BR_IA_head_dim, 1);
    bool tile = br_ir_i(n, BR_IA_tile, 0) != 0;
    float eps = (float)br_ir_f(n, BR_IA_eps, 0);
    float *q = c->s->wide[0], *k = c->s->wide[1];
    float scale = br_ref_rsqrt((float)w);

    for (size_t t = 0; t < c->step->n_rows; t++) {
        const float *x = ref_row(&c->in[0], t);
        float *s = ref_slot_state(c, &c->in[5], t);

        for (int64_t h = c->c0 / w; h < c->c1 / w; h++) {
            int64_t from = tile ? h % hk : h / (hv / hk);
            float dt = ref_row(&c->in[1], t)[h] + c->in[4].f[h];
            delta e = {s + h * w * w,
                       q,
                       k,
                       x + (2 * hk + h) * w,
                       br_ref_exp(br_ref_softplus(dt) * c->in[3].f[h]),
                       br_ref_sigmoid(ref_row(&c->in[2], t)[h]),
                       c->s->wide[2],
                       ref_row(&c->out[0], t) + h * w,
                       w};

            l2_norm(x + from * w, q, w, eps);
            l2_norm(x + (hk + from) * w, k, w, eps);
            for (int64_t i = 0; i < w; i++)
                q[i] *= scale;
            delta_step(&e);
        }
    }
}

/* ---- Mamba-2 ------------------------------------------------------------ */

/* xbc dt a dt_b [d] *state -> y. x: [heads][head_dim], b and c: [groups][n]. */
void
ref_op_scan(ref_call *c)
{
    const br_ir_node *nd = c->n;
    int64_t heads = br_ir_i(nd, BR_IA_heads, 1);
    int64_t p = br_ir_i(nd, BR_IA_head_dim, 1), n = br_ir_i(nd, BR_IA_width, 1);
    int64_t groups = br_ir_i(nd, BR_IA_groups, 1);

    for (size_t t = 0; t < c->step->n_rows; t++) {
        const float *x = ref_row(&c->in[0], t), *b = x + heads * p;
        const float *cc = b + groups * n;
        float *s = ref_slot_state(c, &c->in[5], t);

        for (int64_t h = c->c0 / p; h < c->c1 / p; h++) {
            int64_t g = h / (heads / groups);
            float dt =
                br_ref_softplus(ref_row(&c->in[1], t)[h] + c->in[3].f[h]);
            float decay = br_ref_exp(dt * c->in[2].f[h]);

            for (int64_t i = 0; i < p; i++) {
                float *row = s + (h * p + i) * n, xi = x[h * p + i];
                float xd = xi * dt, y;

                for (int64_t j = 0; j < n; j++)
                    row[j] = fmaf(b[g * n + j], xd, row[j] * decay);
                y = br_ref_dot(row, cc + g * n, (size_t)n);
                if (c->in[4].v)
                    y = fmaf(xi, c->in[4].f[h], y);
                ref_row(&c->out[0], t)[h * p + i] = y;
            }
        }
    }
}

/* x z [w] -> y; kind 1: silu(z) x is normed, w has all columns */
void
ref_op_gated_norm(ref_call *c)
{
    int64_t width = br_ir_i(c->n, BR_IA_width, 1);
    bool before = br_ir_i(c->n, BR_IA_kind, 0) == 1;
    float eps = (float)br_ir_f(c->n, BR_IA_eps, 0);
    float *g = c->s->wide[0];

    for (size_t t = 0; t < c->step->n_rows; t++) {
        const float *x = ref_row(&c->in[0], t), *z = ref_row(&c->in[1], t);
        float *y = ref_row(&c->out[0], t);

        for (int64_t i = c->c0; i < c->c1; i++)
            g[i] = before ? br_ref_silu(z[i]) * x[i] : x[i];
        for (int64_t at = c->c0; at < c->c1; at += width)
            ref_rms_norm_row(g + at,
                             c->in[2].v ? c->in[2].f + (before ? at : 0) : NULL,
                             y + at, width, eps);
        for (int64_t i = c->c0; !before && i < c->c1; i++)
            y[i] = y[i] * br_ref_silu(z[i]);
    }
}
