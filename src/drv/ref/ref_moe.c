/* ref_moe.c - experts: who is asked, what they say, how it is summed.
 *
 * Ties go to the lowest id; sums run in order of rank.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/ref/ref_int.h"

#include <math.h>
#include <string.h>

typedef struct router {
    int64_t n, k, groups, groups_used;
    int gating;
    bool norm, biased; /* choices have a bias */
    float scale;
} router;

static void
softmax(const float *x, float *p, int64_t n)
{
    float m = -INFINITY, sum = 0;

    for (int64_t i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    for (int64_t i = 0; i < n; i++) {
        p[i] = br_ref_exp(x[i] - m);
        sum = sum + p[i];
    }
    for (int64_t i = 0; i < n; i++)
        p[i] = p[i] / sum;
}

/* A group's score: its best, or the two best added. */
static float
group_score(const float *x, int64_t n, bool two)
{
    float a = -INFINITY, b = -INFINITY;

    for (int64_t i = 0; i < n; i++)
        if (x[i] > a) {
            b = a;
            a = x[i];
        } else if (x[i] > b) {
            b = x[i];
        }
    return two ? a + b : a;
}

/* Experts of groups that are not among the best cannot be chosen. */
static void
drop_groups(const router *g, float *choice)
{
    int64_t per = g->n / g->groups;
    float score[4096];
    bool keep[4096] = {false};

    for (int64_t i = 0; i < g->groups; i++)
        score[i] = group_score(choice + i * per, per, g->biased);
    for (int64_t r = 0; r < g->groups_used; r++) {
        int64_t best = -1;

        for (int64_t i = 0; i < g->groups; i++)
            if (!keep[i] && (best < 0 || score[i] > score[best]))
                best = i;
        keep[best] = true;
    }
    for (int64_t i = 0; i < g->n; i++)
        if (!keep[i / per])
            choice[i] = -INFINITY;
}

static void
pick(const router *g, float *choice, int32_t *ids)
{
    for (int64_t r = 0; r < g->k; r++) {
        int64_t best = -1;

        for (int64_t i = 0; i < g->n; i++) {
            bool taken = false;

            for (int64_t j = 0; j < r; j++)
                taken = taken || ids[j] == i;
            if (!taken && (best < 0 || choice[i] > choice[best]))
                best = i;
        }
        ids[r] = (int32_t)best;
    }
}

static void
weigh(const router *g, const float *logits, const float *probs,
      const int32_t *ids, float *w)
{
    float sum = 0;

    for (int64_t r = 0; r < g->k; r++)
        w[r] = g->gating == BR_GATE_PICKED ? logits[ids[r]] : probs[ids[r]];
    if (g->gating == BR_GATE_PICKED)
        softmax(w, w, g->k);
    if (g->norm) {
        for (int64_t r = 0; r < g->k; r++)
            sum = sum + w[r];
        sum = sum > 6.103515625e-5f ? sum : 6.103515625e-5f;
        for (int64_t r = 0; r < g->k; r++)
            w[r] = w[r] / sum;
    }
    if (g->scale != 0 && g->scale != 1)
        for (int64_t r = 0; r < g->k; r++)
            w[r] = w[r] * g->scale;
}

/* The logits are there: what follows from them. */
void
ref_op_pick(ref_call *c)
{
    const br_ir_node *n = c->n;
    ref_mat m = ref_matrix(&c->in[1], 0);
    router g = {(int64_t)m.n_out,
                br_ir_i(n, BR_IA_k, 1),
                br_ir_i(n, BR_IA_groups, 1),
                br_ir_i(n, BR_IA_groups_used, 1),
                (int)br_ir_i(n, BR_IA_gating, 0),
                br_ir_i(n, BR_IA_norm_w, 0) != 0,
                c->in[3].v != NULL,
                (float)br_ir_f(n, BR_IA_scale, 0)};
    float *probs = c->s->wide[0], *choice = c->s->wide[1];

    for (size_t t = 0; t < c->step->n_rows; t++) {
        float *x = ref_row(&c->out[0], t);
        int32_t *ids = c->out[1].i + t * c->out[1].stride;

        for (int64_t i = 0; c->in[2].v && i < g.n; i++)
            x[i] += c->in[2].f[i];
        memcpy(probs, x, (size_t)g.n * sizeof *x);
        if (g.gating == BR_GATE_SOFTMAX)
            softmax(x, probs, g.n);
        for (int64_t i = 0; g.gating == BR_GATE_SIGMOID && i < g.n; i++)
            probs[i] = br_ref_sigmoid(x[i]);
        for (int64_t i = 0; i < g.n; i++)
            choice[i] = c->in[3].v ? probs[i] + c->in[3].f[i] : probs[i];
        if (g.groups > 1)
            drop_groups(&g, choice);
        pick(&g, choice, ids);
        weigh(&g, x, probs, ids, ref_row(&c->out[2], t));
    }
}

/* x router_w [router_b] [choice_b] -> logits ids weights */
void
ref_op_gate_topk(ref_call *c)
{
    ref_mat m = ref_matrix(&c->in[1], 0);

    ref_matmul(c, &m, &c->in[0], 0, c->step->n_rows, &c->out[0]);
    ref_op_pick(c);
}

/* Rows of a matrix. */
typedef struct part {
    int64_t from, to;
} part;

/* y = rows of the matrix of expert id times x; one row of the step. */
static void
by_expert(ref_call *c, ref_mat m, part p, const float *x, float *y)
{
    ref_view in = {.stride = 0}, out = {.stride = 0};
    union {
        const float *c;
        float *p;
    } from = {x};

    in.f = from.p;
    out.f = y;
    m.from = (uint64_t)p.from;
    m.to = (uint64_t)p.to;
    ref_matmul(c, &m, &in, 0, 1, &out);
}

static void
add_bias(float *y, const ref_view *b, int32_t id, int64_t n, part p)
{
    for (int64_t i = p.from; b->v && i < p.to; i++)
        y[i] += b->f[id * n + i];
}

/* x gate_w [up_w] [gate_b] [up_b] ids -> gate up. One matrix: gate above up. */
void
ref_op_gate_up(ref_call *c)
{
    int64_t k = br_ir_i(c->n, BR_IA_k, 1), ff = c->out[0].cols / k;
    part p = {c->c0, c->c1}, below = {ff + c->c0, ff + c->c1};
    float *both = c->s->wide[0];
    size_t bytes = (size_t)(c->c1 - c->c0) * sizeof(float);

    for (size_t t = 0; t < c->step->n_rows; t++)
        for (int64_t r = 0; r < k; r++) {
            const float *x = ref_row(&c->in[0], t);
            int32_t id = c->in[5].i[t * c->in[5].stride + (size_t)r];
            float *gate = ref_row(&c->out[0], t) + r * ff;
            float *up = ref_row(&c->out[1], t) + r * ff;
            ref_mat m = ref_matrix(&c->in[1], (uint64_t)id);

            by_expert(c, m, p, x, both);
            memcpy(gate + p.from, both + p.from, bytes);
            if (c->in[2].v) {
                by_expert(c, ref_matrix(&c->in[2], (uint64_t)id), p, x, up);
            } else {
                by_expert(c, m, below, x, both);
                memcpy(up + p.from, both + below.from, bytes);
            }
            add_bias(gate, &c->in[3], id, ff, p);
            add_bias(up, &c->in[4], id, ff, p);
        }
}

void
ref_op_moe_act(ref_call *c)
{
    int act = (int)br_ir_i(c->n, BR_IA_act, 0);

    for (size_t t = 0; t < c->step->n_rows; t++)
        for (int64_t i = c->c0; i < c->c1; i++)
            ref_row(&c->out[0], t)[i] = br_ref_glu1(
                act, ref_row(&c->in[0], t)[i], ref_row(&c->in[1], t)[i]);
}

/* x down_w ids weights [down_b] [down_s] [residual] -> y */
void
ref_op_down_acc(ref_call *c)
{
    int64_t k = br_ir_i(c->n, BR_IA_k, 1), ff = c->in[0].cols / k;
    int64_t n = c->out[0].cols;
    part p = {c->c0, c->c1};
    float *one = c->s->wide[0];

    for (size_t t = 0; t < c->step->n_rows; t++) {
        float *y = ref_row(&c->out[0], t);

        for (int64_t i = p.from; i < p.to; i++)
            y[i] = 0;
        for (int64_t r = 0; r < k; r++) {
            int32_t id = c->in[2].i[t * c->in[2].stride + (size_t)r];
            float w = ref_row(&c->in[3], t)[r];

            by_expert(c, ref_matrix(&c->in[1], (uint64_t)id), p,
                      ref_row(&c->in[0], t) + r * ff, one);
            add_bias(one, &c->in[4], id, n, p);
            for (int64_t i = p.from; i < p.to; i++) {
                float v = c->in[5].v ? one[i] * c->in[5].f[id] : one[i];

                y[i] = fmaf(v, w, y[i]);
            }
        }
        for (int64_t i = p.from; c->in[6].v && i < p.to; i++)
            y[i] = y[i] + ref_row(&c->in[6], t)[i];
    }
}

/* x gate_w up_w down_w [router_w] residual -> y */
void
ref_op_shared(ref_call *c)
{
    ref_mat m = ref_matrix(&c->in[1], 0), d = ref_matrix(&c->in[3], 0);
    part ff = {0, (int64_t)m.n_out}, cols = {0, (int64_t)d.n_out};
    int act = (int)br_ir_i(c->n, BR_IA_act, 0);
    float *gate = c->s->wide[0], *up = c->s->wide[1], *down = c->s->wide[2];

    for (size_t t = 0; t < c->step->n_rows; t++) {
        const float *x = ref_row(&c->in[0], t);
        float *y = ref_row(&c->out[0], t), g = 1;

        by_expert(c, m, ff, x, gate);
        by_expert(c, ref_matrix(&c->in[2], 0), ff, x, up);
        for (uint64_t i = 0; i < m.n_out; i++)
            gate[i] = br_ref_glu1(act, gate[i], up[i]);
        by_expert(c, d, cols, gate, down);
        if (c->in[4].v) {
            by_expert(c, ref_matrix(&c->in[4], 0), (part){0, 1}, x, &g);
            g = br_ref_sigmoid(g);
        }
        for (int64_t i = 0; i < c->out[0].cols; i++) {
            float add = c->in[4].v ? down[i] * g : down[i];

            y[i] = ref_row(&c->in[5], t)[i] + add;
        }
    }
}
