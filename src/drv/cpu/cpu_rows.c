/* cpu_rows.c - opcodes that take rows one by one.
 *
 * A tile is some rows. What stands apart is gathered into rows of its own and
 * scattered back by the tile that needs it. Opcodes that nobody waits for run
 * the ref tier's own function on their rows.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

#include <math.h>
#include <string.h>

enum { TILE_ELEMS = 4096 }; /* about a microsecond of work */

static uint32_t
rows_tiles(br_cpu *c, cpu_phase *p)
{
    int64_t cols = 1;
    uint32_t most = 4 * c->n_threads, tiles;

    for (int i = 0; i < BR_IR_MAX_BINDINGS; i++) {
        cols = BR_MAX(cols, p->in[i].stride ? p->in[i].cols : 1);
        cols = BR_MAX(cols, p->out[i].cols);
    }
    p->n_rows = cpu_rows_in(c, p);
    tiles = (uint32_t)BR_MIN((int64_t)p->n_rows * cols / TILE_ELEMS + 1, most);
    tiles = BR_MIN(tiles, p->n_rows);
    p->per = tiles ? (p->n_rows + tiles - 1) / tiles : 1;
    return (p->n_rows + p->per - 1) / p->per;
}

/* Columns that stand apart, into or out of the dense copy. */
static void
move(const br_cpu *c, const cpu_phase *p, int i, uint32_t t0, uint32_t t1)
{
    const br_ir_bind *b = &p->n->bind[i];
    const br_value_mem *v = &c->v.at[b->value];
    size_t cols = (size_t)b->width * b->count;

    for (size_t t = t0; t < t1; t++)
        for (uint32_t k = 0; k < b->count; k++) {
            float *far =
                v->p + t * (size_t)v->cols + b->off + (size_t)k * b->stride;
            float *near = c->gather[i] + t * cols + (size_t)k * b->width;

            memcpy(i < p->n->n_in ? near : far, i < p->n->n_in ? far : near,
                   b->width * sizeof(float));
        }
}

static void
rows_between(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
             cpu_worker *w)
{
    for (int i = 0; i < BR_IR_MAX_BINDINGS; i++)
        if (p->gather >> i & 1)
            move(c, p, i, t0, t1);
    p->rows(c, p, t0, t1, w);
    for (int i = 0; i < BR_IR_MAX_BINDINGS; i++)
        if (p->scatter >> i & 1)
            move(c, p, i, t0, t1);
}

static void
rows_tile(br_cpu *c, const cpu_phase *p, uint32_t tile, cpu_worker *w)
{
    uint32_t t0 = tile * p->per, t1 = BR_MIN(t0 + p->per, p->n_rows);

    if (!cpu_has_few(c, p))
        rows_between(c, p, t0, t1, w);
    else
        for (uint32_t t = t0; t < t1; t++)
            rows_between(c, p, c->want[t], c->want[t] + 1, w);
}

const cpu_kind cpu_rows = {rows_tiles, rows_tile};

void
cpu_rows_nothing(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
                 cpu_worker *w)
{
    (void)c, (void)p, (void)t0, (void)t1, (void)w;
}

/* ---- by the ref tier ---------------------------------------------------- */

/* The step and the views, as if rows t0..t1 were all. */
static void
ref_part(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1, cpu_worker *w,
         void (*op)(ref_call *))
{
    br_step step = {.n_rows = t1 - t0,
                    .slot = c->step->slot + t0,
                    .position = c->step->position + t0,
                    .token = c->step->token + t0,
                    .pages = c->step->pages};
    ref_call call = {.n = p->n, .step = &step, .act = BR_REF_F32, .s = &w->ref};
    br_step_cut cut;

    br_check(br_step_cut_of(p->n, &cut) && "opcodes of rows have columns");
    call.c1 = cut.cols;
    for (int i = 0; i < BR_IR_MAX_BINDINGS; i++) {
        call.in[i] = p->in[i];
        call.out[i] = p->out[i];
        if (call.in[i].f)
            call.in[i].f += t0 * call.in[i].stride;
        if (call.out[i].f)
            call.out[i].f += t0 * call.out[i].stride;
    }
    op(&call);
}

void
cpu_rows_ref(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
             cpu_worker *w)
{
    ref_part(c, p, t0, t1, w, ref_op);
}

void
cpu_rows_pick(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
              cpu_worker *w)
{
    ref_part(c, p, t0, t1, w, ref_op_pick);
}

/* ---- norms -------------------------------------------------------------- */

static void
norm_row(const br_cpu *c, const br_ir_node *n, const float *x,
         const ref_view *w, float *y, int64_t cols)
{
    int64_t width = br_ir_i(n, BR_IA_width, cols);
    float eps = (float)br_ir_f(n, BR_IA_eps, 0);

    for (int64_t at = 0; at < cols; at += width)
        c->ops->norm(x + at, w->v ? w->f : NULL, y + at, (size_t)width, eps);
}

void
cpu_norm_row(const br_cpu *c, const cpu_phase *p, const float *x, int64_t n,
             float *y)
{
    norm_row(c, p->n, x, &p->in[1], y, n);
}

void
cpu_rows_norm(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
              cpu_worker *w)
{
    (void)w;
    for (size_t t = t0; t < t1; t++)
        cpu_norm_row(c, p, ref_row(&p->in[0], t), p->in[0].cols,
                     ref_row(&p->out[0], t));
}

static void
rows_residual_norm(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
                   cpu_worker *w)
{
    (void)w;
    for (size_t t = t0; t < t1; t++) {
        float *sum = ref_row(&p->out[0], t);

        c->ops->two(BR_CPU_ADD, ref_row(&p->in[0], t), ref_row(&p->in[1], t),
                    sum, (size_t)p->in[0].cols);
        norm_row(c, p->n, sum, &p->in[2], ref_row(&p->out[1], t),
                 p->in[0].cols);
    }
}

/* x z [w] -> y; kind 1: silu(z) x is normed, w has all columns */
static void
rows_gated_norm(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
                cpu_worker *w)
{
    int64_t width = br_ir_i(p->n, BR_IA_width, 1), n = p->in[0].cols;
    bool before = br_ir_i(p->n, BR_IA_kind, 0) == 1;
    float eps = (float)br_ir_f(p->n, BR_IA_eps, 0);
    const ref_view *g = &p->in[2];

    for (size_t t = t0; t < t1; t++) {
        const float *x = ref_row(&p->in[0], t), *z = ref_row(&p->in[1], t);
        float *y = ref_row(&p->out[0], t);

        if (before)
            c->ops->act(BR_ACT_SILU, z, x, w->wide, (size_t)n);
        for (int64_t at = 0; at < n; at += width)
            c->ops->norm((before ? w->wide : x) + at,
                         g->v ? g->f + (before ? at : 0) : NULL, y + at,
                         (size_t)width, eps);
        if (!before)
            c->ops->act(BR_ACT_SILU, z, y, y, (size_t)n);
    }
}

/* q and k of the delta rule, each head divided by its length, into temp. */
void
cpu_rows_l2(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
            cpu_worker *w)
{
    int64_t hk = br_ir_i(p->n, BR_IA_kv_heads, 1);
    int64_t n = br_ir_i(p->n, BR_IA_head_dim, 1);
    float eps = (float)br_ir_f(p->n, BR_IA_eps, 0);
    float by = br_ref_rsqrt((float)n);

    (void)w;
    for (size_t t = t0; t < t1; t++)
        for (int64_t h = 0; h < 2 * hk; h++) {
            const float *x = ref_row(&p->in[0], t) + h * n;
            float *y = p->temp + (size_t)(2 * hk * n) * t + h * n;
            float len = sqrtf(c->ops->dot(x, x, (size_t)n));

            len = len > eps ? len : eps;
            for (int64_t i = 0; i < n; i++)
                y[i] = h < hk ? x[i] / len * by : x[i] / len;
        }
}

/* ---- rope --------------------------------------------------------------- */

static uint32_t
tables_tiles(br_cpu *c, cpu_phase *p)
{
    uint32_t n = c->tables.n ? c->step->n_rows : 0;
    uint32_t tiles = BR_MIN(n / 16 + 1, 4 * c->n_threads);

    p->n_rows = n;
    p->per = n ? (n + tiles - 1) / tiles : 1;
    return (n + p->per - 1) / p->per;
}

static void
tables_tile(br_cpu *c, const cpu_phase *p, uint32_t tile, cpu_worker *w)
{
    uint32_t t0 = tile * p->per, t1 = BR_MIN(t0 + p->per, p->n_rows);

    (void)w;
    for (size_t k = 0; k < c->tables.n; k++) {
        const cpu_table *b = &c->tables.at[k];

        for (size_t t = t0; t < t1; t++)
            for (int64_t i = 0; i < b->n; i++) {
                float *co = &b->cos[t * (size_t)b->n + (size_t)i];
                float *si = &b->sin[t * (size_t)b->n + (size_t)i];

                br_ref_sincos((float)c->step->position[t], b->freq[i], si, co);
                *si *= b->scale;
                *co *= b->scale;
            }
    }
}

const cpu_kind cpu_tables = {tables_tiles, tables_tile};

void
cpu_turn_heads(const br_cpu *c, const cpu_phase *p, size_t t, int64_t n,
               const float *x, float *y)
{
    int64_t head = br_ir_i(p->n, BR_IA_head_dim, 0), half = p->table->n;
    bool neighbours = br_ir_i(p->n, BR_IA_kind, 0) == BR_ROPE_NORM;
    const float *co = p->table->cos + t * (size_t)half;
    const float *si = p->table->sin + t * (size_t)half;

    for (int64_t k = 0; k < n; k++, x += head, y += head) {
        if (neighbours)
            c->ops->turn_pairs(x, co, si, y, (size_t)half);
        else
            c->ops->turn(x, x + half, co, si, y, y + half, (size_t)half);
        for (int64_t i = 2 * half; i < head; i++)
            y[i] = x[i];
    }
}

void
cpu_rows_rope(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
              cpu_worker *w)
{
    (void)w;
    for (size_t t = t0; t < t1; t++)
        cpu_turn_heads(c, p, t, br_ir_i(p->n, BR_IA_heads, 1),
                       ref_row(&p->in[0], t), ref_row(&p->out[0], t));
}

/* ---- elementwise -------------------------------------------------------- */

static void
rows_two(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1, cpu_worker *w)
{
    br_cpu_two op = p->n->op == BR_IR_ADD ? BR_CPU_ADD : BR_CPU_MUL;

    (void)w;
    for (size_t t = t0; t < t1; t++) {
        const float *a = ref_row(&p->in[0], t), *b = ref_row(&p->in[1], t);
        float *y = ref_row(&p->out[0], t);
        size_t n = (size_t)p->out[0].cols;

        if (p->in[1].cols == p->out[0].cols)
            c->ops->two(op, a, b, y, n);
        else
            for (size_t i = 0; i < n; i++)
                y[i] = op == BR_CPU_ADD ? a[i] + *b : a[i] * *b;
    }
}

static void
rows_one(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1, cpu_worker *w)
{
    float by = (float)br_ir_f(p->n, BR_IA_scale, 1);
    size_t n = (size_t)p->out[0].cols;

    (void)w;
    for (size_t t = t0; t < t1; t++) {
        const float *x = ref_row(&p->in[0], t);
        float *y = ref_row(&p->out[0], t);

        if (p->n->op == BR_IR_SCALE)
            c->ops->scale(x, y, n, by);
        else if (p->n->op == BR_IR_SOFTCAP)
            c->ops->softcap(x, y, n, by);
        else
            memcpy(y, x, n * sizeof *y);
    }
}

static void
rows_act(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1, cpu_worker *w)
{
    int act = (int)br_ir_i(p->n, BR_IA_act, 0);
    bool glu = p->n->op != BR_IR_ACT;

    (void)w;
    for (size_t t = t0; t < t1; t++)
        c->ops->act(act, ref_row(&p->in[0], t),
                    glu ? ref_row(&p->in[1], t) : NULL, ref_row(&p->out[0], t),
                    (size_t)p->out[0].cols);
}

cpu_rows_fn *
cpu_rows_of(const br_ir_node *n)
{
    switch ((br_ir_op)n->op) {
    case BR_IR_RMS_NORM: return cpu_rows_norm;
    case BR_IR_RESIDUAL_RMS_NORM: return rows_residual_norm;
    case BR_IR_SSM_GATED_NORM: return rows_gated_norm;
    case BR_IR_ROPE: return cpu_rows_rope;
    case BR_IR_ADD:
    case BR_IR_MUL: return rows_two;
    case BR_IR_SCALE:
    case BR_IR_SOFTCAP:
    case BR_IR_COPY: return rows_one;
    case BR_IR_ACT:
    case BR_IR_GLU:
    case BR_IR_MOE_SWIGLU: return rows_act;
    case BR_IR_KV_WRITE_BATCHED: return cpu_rows_kv;
    case BR_IR_EMBED:
    case BR_IR_TEMP_SCALE:
    case BR_IR_ARGMAX: return cpu_rows_ref;
    default: return NULL;
    }
}

/* ---- experts ------------------------------------------------------------ */

/* MOE_GATE_UP's biases. */
void
cpu_rows_bias(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
              cpu_worker *w)
{
    size_t k = (size_t)br_ir_i(p->n, BR_IA_k, 1);
    size_t ff = (size_t)p->out[0].cols / k;

    (void)w;
    for (size_t t = t0; t < t1; t++)
        for (size_t r = 0; r < 2 * k; r++) {
            const ref_view *b = &p->in[3 + r % 2];
            size_t id = (size_t)p->in[5].i[t * p->in[5].stride + r / 2];
            float *y = ref_row(&p->out[r % 2], t) + r / 2 * ff;

            if (b->v)
                c->ops->two(BR_CPU_ADD, y, b->f + id * ff, y, ff);
        }
}

/* MOE_DOWN_ACC: x down_w ids weights [down_b] [down_s] [residual] -> y, the
 * products in temp. */
void
cpu_rows_join(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
              cpu_worker *w)
{
    size_t k = (size_t)br_ir_i(p->n, BR_IA_k, 1), n = (size_t)p->out[0].cols;

    (void)w;
    for (size_t t = t0; t < t1; t++) {
        float *y = ref_row(&p->out[0], t);

        memset(y, 0, n * sizeof *y);
        for (size_t r = 0; r < k; r++) {
            size_t id = (size_t)p->in[2].i[t * p->in[2].stride + r];
            float *one = p->temp + (t * k + r) * n;

            if (p->in[4].v)
                c->ops->two(BR_CPU_ADD, one, p->in[4].f + id * n, one, n);
            if (p->in[5].v)
                c->ops->scale(one, one, n, p->in[5].f[id]);
            c->ops->axpy(one, ref_row(&p->in[3], t)[r], y, n);
        }
        if (p->in[6].v)
            c->ops->two(BR_CPU_ADD, y, ref_row(&p->in[6], t), y, n);
    }
}

/* SHARED_EXPERT's act: rows [gate ff][up ff].. of temp, per numbers each. */
void
cpu_rows_glu(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
             cpu_worker *w)
{
    float *y = (float *)(void *)p->act;

    (void)w;
    for (size_t t = t0; t < t1; t++)
        c->ops->act((int)br_ir_i(p->n, BR_IA_act, 0), p->temp + t * p->pieces,
                    p->temp + t * p->pieces + p->n_in, y + t * p->n_in,
                    p->n_in);
}

/* SHARED_EXPERT's end: temp has rows [down n][router], pieces numbers apart. */
void
cpu_rows_shared(br_cpu *c, const cpu_phase *p, uint32_t t0, uint32_t t1,
                cpu_worker *w)
{
    size_t n = (size_t)p->out[0].cols;

    (void)w;
    for (size_t t = t0; t < t1; t++) {
        float *d = p->temp + t * p->pieces;

        if (p->in[4].v)
            c->ops->scale(d, d, n, br_ref_sigmoid(d[n]));
        c->ops->two(BR_CPU_ADD, ref_row(&p->in[5], t), d,
                    ref_row(&p->out[0], t), n);
    }
}
