/* cpu_task.c - see cpu_task.h.
 *
 * A task has columns of a node for all rows of the step, so it brings the rows
 * that it multiplies into the form its weights want by itself: a few percent of
 * the product, and nobody waits. EMBED, ROPE, SSM_CONV1D, TEMP_SCALE, ARGMAX
 * and the choice of experts are the ref tier's functions, as in br_cpu_step
 * or as fast.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_task.h"

#include "drv/cpu/cpu_int.h"

#include <math.h>
#include <string.h>

typedef struct task_worker {
    uint8_t *act; /* rows in the form of some weights */
    float *pairs; /* products of experts */
    float *att;
    uint32_t *want;
    cpu_moe moe;
} task_worker;

struct br_cpu_tasks {
    br_ref_bodies bodies;
    br_cpu *c; /* weights and kernels; it runs no steps */
    uint32_t *run;
    task_worker *worker;
};

/* A task at hand. */
typedef struct task {
    const br_cpu_tasks *k;
    const br_cpu_ops *ops;
    task_worker *w;
    ref_call *c;
    const br_ir_node *n;
    size_t n_rows;
    int64_t c0;
    size_t cols; /* from c0 on */
} task;

/* ---- matrices ----------------------------------------------------------- */

static const cpu_mat *
matrix(const task *t, int in)
{
    return &t->k->c->mat[t->n->bind[in].value];
}

/* Row r of act: the r-th piece of the rows of x, each as wide as the matrix. */
static void
quantise(const task *t, const cpu_mat *m, const ref_view *x, uint32_t pieces)
{
    size_t bytes = br_act_bytes(m->m.form, m->m.n_in);

    for (size_t r = 0; r < t->n_rows * pieces; r++)
        br_act_row(m->m.isa, m->m.form,
                   ref_row(x, r / pieces) + r % pieces * m->m.n_in, m->m.n_in,
                   t->w->act + r * bytes);
}

static void
multiply(const task *t, const cpu_mat *m, uint64_t slice, const br_mul *mul)
{
    br_mat mat = m->m;
    br_mul all = *mul;

    mat.data = t->k->c->packed + m->at + slice * mat.bytes;
    all.m = &mat;
    all.act = t->w->act;
    br_mat_mul(&all);
}

static void
task_matmul(const task *t)
{
    const ref_view *y = &t->c->out[0], *b = &t->c->in[2];
    const br_step *step = t->c->step;
    br_mul mul = {.n_rows = (uint32_t)t->n_rows,
                  .o0 = (uint32_t)t->c0,
                  .o1 = (uint32_t)t->c->c1,
                  .out = y->f,
                  .out_stride = y->stride};

    quantise(t, matrix(t, 1), &t->c->in[0], 1);
    if (t->n->op == BR_IR_LM_HEAD && step->want) {
        mul.row = t->w->want;
        mul.n_rows = 0;
        for (uint32_t i = 0; i < t->n_rows; i++)
            if (step->want[i])
                t->w->want[mul.n_rows++] = i;
    }
    multiply(t, matrix(t, 1), 0, &mul);
    for (size_t i = 0; t->n->op == BR_IR_MATMUL && b->v && i < t->n_rows; i++)
        t->ops->two(BR_CPU_ADD, ref_row(y, i) + t->c0, b->f + t->c0,
                    ref_row(y, i) + t->c0, t->cols);
}

static void
task_heads(const task *t)
{
    const cpu_mat *m = matrix(t, 1);

    for (uint32_t h = (uint32_t)t->c0 / m->m.n_out;
         h < (uint32_t)t->c->c1 / m->m.n_out; h++) {
        ref_view x = t->c->in[0];
        br_mul mul = {.n_rows = (uint32_t)t->n_rows,
                      .o1 = m->m.n_out,
                      .out = t->c->out[0].f + (size_t)h * m->m.n_out,
                      .out_stride = t->c->out[0].stride};

        x.f += (size_t)h * m->m.n_in;
        quantise(t, m, &x, 1);
        multiply(t, m, h, &mul);
    }
}

static void
norm(const task *t, const float *x, const float *w, float *y, size_t width)
{
    t->ops->norm(x, w, y, width, (float)br_ir_f(t->n, BR_IA_eps, 0));
}

/* RMS_NORM, then some MATMULs of it; columns are of the outputs side by side. */
static void
task_norm_matmuls(const task *t, int n_w)
{
    const ref_view *x = &t->c->in[0], *w = &t->c->in[1];

    for (int i = 0; i < n_w; i++) {
        const cpu_mat *m = matrix(t, 2 + i);
        br_step_span s = br_step_columns(t->n, t->n->n_in + i, t->c0, t->c->c1);
        br_mul mul = {.n_rows = (uint32_t)t->n_rows,
                      .o0 = (uint32_t)s.from,
                      .o1 = (uint32_t)s.to,
                      .out = t->c->out[i].f,
                      .out_stride = t->c->out[i].stride};
        ref_view one = {.f = t->c->s->wide[0]};
        task row = *t;

        if (s.from >= s.to)
            continue;
        row.n_rows = 1;
        row.w = &(task_worker){.act = t->w->act};
        for (size_t r = 0; r < t->n_rows; r++) {
            norm(t, ref_row(x, r), w->v ? w->f : NULL, one.f, (size_t)x->cols);
            quantise(&row, m, &one, 1);
            row.w->act += br_act_bytes(m->m.form, m->m.n_in);
        }
        multiply(t, m, 0, &mul);
    }
}

/* ---- experts ------------------------------------------------------------ */

/* To pairs [row * k + rank][o1 - o0]. */
static void
by_expert(const task *t, const cpu_mat *m, bool x_of_pairs, uint32_t o0,
          uint32_t o1)
{
    const cpu_moe *e = &t->w->moe;

    for (uint32_t i = 0; i < e->n_active; i++)
        multiply(t, m, e->expert[i],
                 &(br_mul){.n_rows = e->start[i + 1] - e->start[i],
                           .row = (x_of_pairs ? e->pair : e->row) + e->start[i],
                           .out_row = e->pair + e->start[i],
                           .o0 = o0,
                           .o1 = o1,
                           .out = t->w->pairs - o0,
                           .out_stride = o1 - o0});
}

/* Products and biases of experts to where they belong. */
static void
put_pairs(const task *t, const ref_view *b, const ref_view *y)
{
    size_t k = (size_t)br_ir_i(t->n, BR_IA_k, 1), ff = (size_t)y->cols / k;
    const ref_view *ids = &t->c->in[5];

    for (size_t i = 0; i < t->n_rows * k; i++) {
        float *to = ref_row(y, i / k) + i % k * ff + t->c0;
        const float *one = t->w->pairs + i * t->cols;
        size_t id = (size_t)ids->i[i / k * ids->stride + i % k];

        if (b->v)
            t->ops->two(BR_CPU_ADD, one, b->f + id * ff + t->c0, to, t->cols);
        else
            memcpy(to, one, t->cols * sizeof *to);
    }
}

/* x gate_w [up_w] [gate_b] [up_b] ids -> gate up. One matrix: gate above up. */
static void
task_gate_up(const task *t)
{
    const ref_call *c = t->c;
    const cpu_mat *gate = matrix(t, 1), *up = c->in[2].v ? matrix(t, 2) : gate;
    uint32_t below = c->in[2].v ? 0 : gate->m.n_out / 2;

    cpu_moe_fill(&t->w->moe, t->n, &c->in[5], &c->in[1], c->step->n_rows);
    quantise(t, gate, &c->in[0], 1);
    by_expert(t, gate, false, (uint32_t)c->c0, (uint32_t)c->c1);
    put_pairs(t, &c->in[3], &c->out[0]);
    if (up->m.form != gate->m.form)
        quantise(t, up, &c->in[0], 1);
    by_expert(t, up, false, below + (uint32_t)c->c0, below + (uint32_t)c->c1);
    put_pairs(t, &c->in[4], &c->out[1]);
}

/* x down_w ids weights [down_b] [down_s] [residual] -> y */
static void
task_down(const task *t)
{
    const ref_call *c = t->c;
    size_t k = (size_t)br_ir_i(t->n, BR_IA_k, 1), n = (size_t)c->out[0].cols;

    cpu_moe_fill(&t->w->moe, t->n, &c->in[2], &c->in[1], c->step->n_rows);
    quantise(t, matrix(t, 1), &c->in[0], (uint32_t)k);
    by_expert(t, matrix(t, 1), true, (uint32_t)c->c0, (uint32_t)c->c1);
    for (size_t r = 0; r < t->n_rows; r++) {
        float *y = ref_row(&c->out[0], r) + t->c0;

        memset(y, 0, t->cols * sizeof *y);
        for (size_t i = 0; i < k; i++) {
            size_t id = (size_t)c->in[2].i[r * c->in[2].stride + i];
            float *one = t->w->pairs + (r * k + i) * t->cols;

            if (c->in[4].v)
                t->ops->two(BR_CPU_ADD, one, c->in[4].f + id * n + t->c0, one,
                            t->cols);
            if (c->in[5].v)
                t->ops->scale(one, one, t->cols, c->in[5].f[id]);
            t->ops->axpy(one, ref_row(&c->in[3], r)[i], y, t->cols);
        }
        if (c->in[6].v)
            t->ops->two(BR_CPU_ADD, y, ref_row(&c->in[6], r) + t->c0, y,
                        t->cols);
    }
}

/* A row times all of a matrix. */
static void
row_times(const task *t, int in, const float *x, float *y)
{
    const cpu_mat *m = matrix(t, in);

    br_act_row(m->m.isa, m->m.form, x, m->m.n_in, t->w->act);
    multiply(t, m, 0, &(br_mul){.n_rows = 1, .o1 = m->m.n_out, .out = y});
}

/* x gate_w up_w down_w [router_w] residual -> y */
static void
task_shared(const task *t)
{
    const ref_call *c = t->c;
    float *gate = c->s->wide[0], *up = c->s->wide[1], *down = c->s->wide[2];

    for (size_t r = 0; r < t->n_rows; r++) {
        const float *x = ref_row(&c->in[0], r);

        row_times(t, 1, x, gate);
        row_times(t, 2, x, up);
        t->ops->act((int)br_ir_i(t->n, BR_IA_act, 0), gate, up, gate,
                    matrix(t, 1)->m.n_out);
        row_times(t, 3, gate, down);
        if (c->in[4].v) {
            row_times(t, 4, x, up);
            t->ops->scale(down, down, t->cols, br_ref_sigmoid(*up));
        }
        t->ops->two(BR_CPU_ADD, ref_row(&c->in[5], r), down,
                    ref_row(&c->out[0], r), t->cols);
    }
}

/* ---- pages and states --------------------------------------------------- */

/* Columns s of a row into its page. */
static void
put_kv(const task *t, const ref_view *kv, size_t row, const float *x,
       br_step_span s)
{
    const br_step *step = t->c->step;
    int32_t pos = step->position[row];
    size_t run = t->k->run[kv->v - t->k->c->v.g->values];
    size_t token = (size_t)pos % BR_PAGE_TOKENS;
    float *to = (float *)(void *)br_state_page(
                    t->c->state, step, kv->place->group, step->slot[row], pos) +
                kv->place->at;

    for (size_t i = (size_t)s.from; i < (size_t)s.to; i++)
        to[(i / run * BR_PAGE_TOKENS + token) * run + i % run] = x[i];
}

/* k [v] position *kv_k [*kv_v] */
static void
task_kv(const task *t)
{
    for (int i = 0; i < 2; i++)
        for (size_t r = 0; t->c->in[i].v && r < t->n_rows; r++)
            put_kv(t, &t->c->in[3 + i], r, ref_row(&t->c->in[i], r),
                   br_step_columns(t->n, i, t->c0, t->c->c1));
}

/* k w freq v position *kv_k *kv_v */
static void
task_norm_rope_kv(const task *t)
{
    for (size_t r = 0; r < t->n_rows; r++) {
        ref_norm_rope_row(t->c, r, t->c->s->wide[1]);
        put_kv(t, &t->c->in[5], r, t->c->s->wide[1],
               (br_step_span){t->c0, t->c->c1});
        if (t->c->in[3].v)
            put_kv(t, &t->c->in[6], r, ref_row(&t->c->in[3], r),
                   br_step_columns(t->n, 3, t->c0, t->c->c1));
    }
}

/* A head of queries of a row; its pages are there. */
static void
add_line(const task *t, br_cpu_att *a, size_t row, size_t head)
{
    const ref_call *c = t->c;
    int32_t pos = c->step->position[row];
    int64_t window = br_ir_i(t->n, BR_IA_window, 0);
    br_cpu_line l = {.q = ref_row(&c->in[0], row) + head * a->head_k,
                     .y = ref_row(&c->out[0], row) + head * a->head_v,
                     .sink = c->in[4].v ? c->in[4].f + head : NULL,
                     .pos = pos};

    if (window > 0 && pos >= window)
        l.lo = (int32_t)(pos - window + 1);
    for (int32_t at = l.lo; at <= pos; at += BR_PAGE_TOKENS)
        (void)br_state_page(c->state, c->step, c->in[1].place->group,
                            c->step->slot[row], at);
    a->line[a->n++] = l;
}

/* Heads h0..h1 - 1 of queries, which read one head of keys: rows of a slot go
 * through them together. */
static void
attend(const task *t, br_cpu_att *a, size_t h0, size_t h1)
{
    const br_step *step = t->c->step;

    for (size_t r = 0; r < t->n_rows; r++)
        for (size_t h = h0; h < h1; h++) {
            add_line(t, a, r, h);
            if (a->n < BR_CPU_LINES &&
                (h + 1 < h1 ||
                 (r + 1 < t->n_rows && step->slot[r + 1] == step->slot[r])))
                continue;
            a->pages = step->pages[(uint32_t)step->slot[r] *
                                       t->c->state->plan.n_groups +
                                   t->c->in[1].place->group];
            t->ops->attend(a);
            a->n = 0;
        }
}

/* q kv_k [kv_v] position [sinks] */
static void
task_attention(const task *t)
{
    const br_state *s = t->c->state;
    const br_state_place *pk = t->c->in[1].place, *pv = t->c->in[2].place;
    size_t per = (size_t)(br_ir_i(t->n, BR_IA_heads, 1) /
                          br_ir_i(t->n, BR_IA_kv_heads, 1));
    br_cpu_att a = {.pool = s->pool[pk->group],
                    .page_bytes =
                        s->plan.group[pk->group].page_elems * sizeof(float),
                    .has_v = pv != NULL,
                    .head_k = (uint32_t)br_ir_i(t->n, BR_IA_head_dim, 0),
                    .head_v = (uint32_t)br_ir_i(t->n, BR_IA_head_v, 0),
                    .scale = (float)br_ir_f(t->n, BR_IA_scale, 1),
                    .cap = (float)br_ir_f(t->n, BR_IA_cap, 0),
                    .s = t->w->att};
    size_t h = (size_t)t->c0 / a.head_v, h1 = (size_t)t->c->c1 / a.head_v;

    for (; h < h1; h = (h / per + 1) * per) {
        size_t g = h / per * BR_PAGE_TOKENS;

        a.k_at = (pk->at + g * a.head_k) * sizeof(float);
        a.v_at = pv ? (pv->at + g * a.head_v) * sizeof(float) : 0;
        attend(t, &a, h, BR_MIN(h1, (h / per + 1) * per));
    }
}

/* y = x / max(|x|, eps) */
static void
unit(const task *t, const float *x, float *y, size_t n)
{
    float len = sqrtf(t->ops->dot(x, x, n));
    float eps = (float)br_ir_f(t->n, BR_IA_eps, 0);

    len = len > eps ? len : eps;
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] / len;
}

/* qkv alpha beta a dt_b *state -> y */
static void
task_delta(const task *t)
{
    const ref_call *c = t->c;
    size_t hv = (size_t)br_ir_i(t->n, BR_IA_heads, 1);
    size_t hk = (size_t)br_ir_i(t->n, BR_IA_kv_heads, 1);
    size_t n = (size_t)br_ir_i(t->n, BR_IA_head_dim, 1);
    bool tile = br_ir_i(t->n, BR_IA_tile, 0) != 0;
    float *q = c->s->wide[0], *k = c->s->wide[1];

    for (size_t r = 0; r < t->n_rows; r++)
        for (size_t h = (size_t)t->c0 / n; h < (size_t)c->c1 / n; h++) {
            size_t from = tile ? h % hk : h / (hv / hk);
            const float *x = ref_row(&c->in[0], r);
            float dt = ref_row(&c->in[1], r)[h] + c->in[4].f[h];

            unit(t, x + from * n, q, n);
            unit(t, x + (hk + from) * n, k, n);
            t->ops->scale(q, q, n, br_ref_rsqrt((float)n));
            t->ops->delta(&(br_cpu_delta){
                .s = ref_slot_state(c, &c->in[5], r) + h * n * n,
                .q = q,
                .k = k,
                .v = x + (2 * hk + h) * n,
                .decay = br_ref_exp(br_ref_softplus(dt) * c->in[3].f[h]),
                .beta = br_ref_sigmoid(ref_row(&c->in[2], r)[h]),
                .d = c->s->wide[2],
                .y = ref_row(&c->out[0], r) + h * n,
                .n = n});
        }
}

/* A head of a row. x: [heads][dim], b and c: [groups][n]. */
static void
scan_head(const task *t, size_t r, size_t h)
{
    const ref_call *c = t->c;
    size_t heads = (size_t)br_ir_i(t->n, BR_IA_heads, 1);
    size_t dim = (size_t)br_ir_i(t->n, BR_IA_head_dim, 1);
    size_t n = (size_t)br_ir_i(t->n, BR_IA_width, 1);
    size_t groups = (size_t)br_ir_i(t->n, BR_IA_groups, 1);
    const float *x = ref_row(&c->in[0], r) + h * dim;
    const float *b =
        ref_row(&c->in[0], r) + heads * dim + h / (heads / groups) * n;
    float *s = ref_slot_state(c, &c->in[5], r) + h * dim * n;
    float dt = br_ref_softplus(ref_row(&c->in[1], r)[h] + c->in[3].f[h]);
    float decay = br_ref_exp(dt * c->in[2].f[h]);

    for (size_t i = 0; i < dim; i++, s += n) {
        float y;

        t->ops->scan(s, b, x[i] * dt, decay, n);
        y = t->ops->dot(s, b + groups * n, n);
        if (c->in[4].v)
            y = fmaf(x[i], c->in[4].f[h], y);
        ref_row(&c->out[0], r)[h * dim + i] = y;
    }
}

/* xbc dt a dt_b [d] *state -> y */
static void
task_scan(const task *t)
{
    size_t dim = (size_t)br_ir_i(t->n, BR_IA_head_dim, 1);

    for (size_t r = 0; r < t->n_rows; r++)
        for (size_t h = (size_t)t->c0 / dim; h < (size_t)t->c->c1 / dim; h++)
            scan_head(t, r, h);
}

/* ---- rows --------------------------------------------------------------- */

static void
norm_rows(const task *t, const ref_view *x, const ref_view *w,
          const ref_view *y)
{
    size_t width = (size_t)br_ir_i(t->n, BR_IA_width, x->cols);

    for (size_t r = 0; r < t->n_rows; r++)
        for (size_t at = (size_t)t->c0; at < (size_t)t->c->c1; at += width)
            norm(t, ref_row(x, r) + at, w->v ? w->f : NULL, ref_row(y, r) + at,
                 width);
}

/* x z [w] -> y; kind 1: silu(z) x is normed, w has all columns */
static void
task_gated_norm(const task *t)
{
    size_t width = (size_t)br_ir_i(t->n, BR_IA_width, 1);
    bool before = br_ir_i(t->n, BR_IA_kind, 0) == 1;
    const ref_view *w = &t->c->in[2];
    float *g = t->c->s->wide[0];

    for (size_t r = 0; r < t->n_rows; r++) {
        const float *x = ref_row(&t->c->in[0], r) + t->c0;
        const float *z = ref_row(&t->c->in[1], r) + t->c0;
        float *y = ref_row(&t->c->out[0], r) + t->c0;

        if (before)
            t->ops->act(BR_ACT_SILU, z, x, g, t->cols);
        for (size_t at = 0; at < t->cols; at += width)
            norm(t, (before ? g : x) + at,
                 w->v ? w->f + (before ? (size_t)t->c0 + at : 0) : NULL, y + at,
                 width);
        if (!before)
            t->ops->act(BR_ACT_SILU, z, y, y, t->cols);
    }
}

static void
two(const task *t, br_cpu_two op, const float *a, const ref_view *b,
    const float *b_row, float *y)
{
    if (b->cols != 1)
        t->ops->two(op, a, b_row + t->c0, y, t->cols);
    else
        for (size_t i = 0; i < t->cols; i++)
            y[i] = op == BR_CPU_ADD ? a[i] + *b_row : a[i] * *b_row;
}

static void
task_elementwise(const task *t)
{
    float by = (float)br_ir_f(t->n, BR_IA_scale, 1);
    int act = (int)br_ir_i(t->n, BR_IA_act, 0);
    const ref_view *b = &t->c->in[1];

    for (size_t r = 0; r < t->n_rows; r++) {
        const float *x = ref_row(&t->c->in[0], r) + t->c0;
        const float *z = b->v ? ref_row(b, r) : NULL;
        float *y = ref_row(&t->c->out[0], r) + t->c0;

        switch (t->n->op) {
        case BR_IR_ADD: two(t, BR_CPU_ADD, x, b, z, y); break;
        case BR_IR_MUL: two(t, BR_CPU_MUL, x, b, z, y); break;
        case BR_IR_SCALE: t->ops->scale(x, y, t->cols, by); break;
        case BR_IR_SOFTCAP: t->ops->softcap(x, y, t->cols, by); break;
        case BR_IR_ACT: t->ops->act(act, x, NULL, y, t->cols); break;
        case BR_IR_COPY: memmove(y, x, t->cols * sizeof *y); break;
        default: t->ops->act(act, x, z + t->c0, y, t->cols); break;
        }
    }
}

static void
task_residual_norm(const task *t)
{
    const ref_call *c = t->c;

    for (size_t r = 0; r < t->n_rows; r++)
        t->ops->two(BR_CPU_ADD, ref_row(&c->in[0], r) + t->c0,
                    ref_row(&c->in[1], r) + t->c0,
                    ref_row(&c->out[0], r) + t->c0, t->cols);
    norm_rows(t, &c->out[0], &c->in[2], &c->out[1]);
}

/* ---- all of them -------------------------------------------------------- */

static void
run(void *ctx, ref_call *c)
{
    const br_cpu_tasks *k = ctx;
    const task t = {k,
                    k->c->ops,
                    &k->worker[c->worker],
                    c,
                    c->n,
                    c->step->n_rows,
                    c->c0,
                    (size_t)(c->c1 - c->c0)};

    switch ((br_ir_op)c->n->op) {
    case BR_IR_RMS_NORM:
        norm_rows(&t, &c->in[0], &c->in[1], &c->out[0]);
        return;
    case BR_IR_RMS_NORM_FUSED_QKV: task_norm_matmuls(&t, 3); return;
    case BR_IR_RMS_NORM_FUSED_MLP_GATE_UP: task_norm_matmuls(&t, 2); return;
    case BR_IR_RMS_NORM_FUSED_ROPE_KV_WRITE: task_norm_rope_kv(&t); return;
    case BR_IR_RESIDUAL_RMS_NORM: task_residual_norm(&t); return;
    case BR_IR_FLASH_ATTN:
    case BR_IR_FLASH_ATTN_BATCHED: task_attention(&t); return;
    case BR_IR_KV_WRITE_BATCHED: task_kv(&t); return;
    case BR_IR_MOE_GATE_TOPK:
        task_matmul(&t); /* a task has all columns of the first output */
        ref_op_pick(c);
        return;
    case BR_IR_MOE_GATE_UP: task_gate_up(&t); return;
    case BR_IR_MOE_DOWN_ACC: task_down(&t); return;
    case BR_IR_SHARED_EXPERT: task_shared(&t); return;
    case BR_IR_SSM_DELTA_NET: task_delta(&t); return;
    case BR_IR_SSM_GATED_NORM: task_gated_norm(&t); return;
    case BR_IR_SSM_SCAN: task_scan(&t); return;
    case BR_IR_MATMUL:
    case BR_IR_MATMUL_WMMA_F16:
    case BR_IR_MATMUL_WMMA_Q4K:
    case BR_IR_LM_HEAD: task_matmul(&t); return;
    case BR_IR_HEAD_MATMUL: task_heads(&t); return;
    case BR_IR_ADD:
    case BR_IR_MUL:
    case BR_IR_SCALE:
    case BR_IR_SOFTCAP:
    case BR_IR_COPY:
    case BR_IR_ACT:
    case BR_IR_GLU:
    case BR_IR_MOE_SWIGLU: task_elementwise(&t); return;
    default: ref_op(c); return;
    }
}

/* ---- life --------------------------------------------------------------- */

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "cpu tier: out of memory");
}

/* How pages hold keys and values: as who reads them wants. */
static br_code
set_runs(br_cpu_tasks *k, const br_ir *g, br_status *st)
{
    k->run = br_arena_zero(&k->c->arena, g->n_values + 1, sizeof *k->run);
    if (!k->run)
        return no_memory(st);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_ir_node *n = &g->nodes[i];
        bool has_v = n->n_in > 2 && n->bind[2].value != BR_IR_NONE;

        if (n->op != BR_IR_FLASH_ATTN && n->op != BR_IR_FLASH_ATTN_BATCHED)
            continue;
        for (int b = 1; b < (has_v ? 3 : 2); b++) {
            int64_t run = b == 2   ? br_ir_i(n, BR_IA_head_v, 1)
                          : !has_v ? br_ir_i(n, BR_IA_head_dim, 1)
                                   : 1;
            uint32_t *at = &k->run[n->bind[b].value];

            if (*at && *at != (uint32_t)run)
                return br_fail(st, BR_E_UNSUPPORTED,
                               "nodes[%u]: two ways to read its keys and "
                               "values",
                               i);
            *at = (uint32_t)run;
        }
    }
    for (uint32_t v = 0; v < g->n_values; v++)
        k->run[v] = BR_MAX(k->run[v], 1u);
    return BR_OK;
}

/* What a worker needs at most, in numbers and bytes. */
typedef struct most {
    size_t act, pairs, product, att, experts;
} most;

static br_code
plan_node(br_cpu *c, const br_ir_node *n, most *s, br_status *st)
{
    size_t k = (size_t)br_ir_i(n, BR_IA_k, 1);
    bool moe = n->op == BR_IR_MOE_GATE_UP || n->op == BR_IR_MOE_DOWN_ACC;

    s->att =
        BR_MAX(s->att, br_cpu_att_floats((size_t)br_ir_i(n, BR_IA_head_dim, 0),
                                         (size_t)br_ir_i(n, BR_IA_head_v, 0)));
    for (int b = 0; b < n->n_in && n->op != BR_IR_EMBED; b++) {
        const cpu_mat *m;

        if (n->bind[b].value == BR_IR_NONE || !br_bind_is_matrix(n, b))
            continue;
        m = cpu_matrix(c, n, b, st);
        if (!m)
            return st->code;
        s->act = BR_MAX(s->act, br_act_bytes(m->m.form, m->m.n_in) *
                                    (n->op == BR_IR_MOE_DOWN_ACC ? k : 1));
        if (moe) {
            s->pairs = BR_MAX(s->pairs, k);
            s->product = BR_MAX(s->product, k * m->m.n_out);
            s->experts = BR_MAX(s->experts, m->slices);
        }
    }
    return BR_OK;
}

static br_code
get_worker(br_cpu *c, task_worker *w, const most *s, br_status *st)
{
    size_t rows = c->c.max_rows;
    uint8_t *act = br_arena_zero(&c->arena, s->act * rows + 64, 1);

    w->pairs = br_arena_new(&c->arena, float, s->product *rows + 1);
    w->att = br_arena_new(&c->arena, float, s->att + 1);
    w->want = br_arena_new(&c->arena, uint32_t, rows);
    if (!act || !w->pairs || !w->att || !w->want)
        return no_memory(st);
    w->act = act + (64 - (uintptr_t)act % 64) % 64;
    return cpu_moe_new(&w->moe, &c->arena, s->pairs * rows, s->experts, st);
}

static br_code
make(br_cpu_tasks *k, const br_model *m, const br_ir *g, br_status *st)
{
    br_cpu *c = k->c;
    most s = {0};

    c->isa = br_isa_best();
    c->ops = br_cpu_ops_of(c->isa);
    c->n_threads = br_cpu_pool_threads(c->c.pool);
    BR_TRY(br_values_bind(&c->v, &c->arena, m, g, st));
    c->mat = br_arena_new(&c->arena, cpu_mat, g->n_values + 1);
    k->worker = br_arena_new(&c->arena, task_worker, c->n_threads);
    if (!c->mat || !k->worker)
        return no_memory(st);
    BR_TRY(set_runs(k, g, st));
    for (uint32_t i = 0; i < g->n_nodes; i++)
        BR_TRY(plan_node(c, &g->nodes[i], &s, st));
    for (uint32_t i = 0; i < c->n_threads; i++)
        BR_TRY(get_worker(c, &k->worker[i], &s, st));
    return cpu_pack(c, st);
}

br_code
br_cpu_tasks_new(br_cpu_tasks **out, const br_model *m, const br_ir *g,
                 br_cpu_pool *pool, uint32_t max_rows, bool exact,
                 br_status *st)
{
    br_cpu_tasks *k = br_try_calloc(1, sizeof *k);
    br_code code;

    *out = NULL;
    if (!k || !(k->c = br_try_calloc(1, sizeof *k->c))) {
        br_free(k);
        return no_memory(st);
    }
    br_arena_init(&k->c->arena, 0);
    k->c->c =
        (br_cpu_config){.pool = pool, .exact = exact, .max_rows = max_rows};
    k->bodies = (br_ref_bodies){run, k};
    code = make(k, m, g, st);
    if (code != BR_OK) {
        br_cpu_tasks_free(k);
        return code;
    }
    *out = k;
    return BR_OK;
}

void
br_cpu_tasks_free(br_cpu_tasks *k)
{
    if (!k)
        return;
    br_cpu_free(k->c);
    br_free(k);
}

const br_ref_bodies *
br_cpu_tasks_bodies(const br_cpu_tasks *k)
{
    return &k->bodies;
}

uint32_t
br_cpu_tasks_run(const br_cpu_tasks *k, uint32_t value)
{
    return k->run[value];
}
