/* cpu_mul.c - phases around the products of cpu_mat.h.
 *
 * A tile of a multiplication is some panels of one matrix (of one expert) for
 * all rows: its weights are read once, as one stream, by one thread. Biases
 * are added by whoever has just made the products.
 *
 * Of few rows memory is the bound, and it wants long streams: two threads that
 * take 64 KiB in turn read 55 GB/s where halves read 73 (docs/decisions/0029).
 * So tiles begin long and become short, that all may end together. Panels of
 * all parts in a line, two threads:
 *
 *   |   t0    |   t1    |t2 |t3 | ...    15/16 of what is left, each time
 *
 * A tile that begins costs .8 us of the memory's time: half of it the atomic
 * addition on a line of the other core's, half the first lines' way.
 *
 * Of many rows tiles are of one length, as the bound is work, which experts
 * have less or more of.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"
#include "drv/cpu/cpu_probe.h"

#include <string.h>

enum {
    /* Less than this and threads that take turns disturb each other's
     * prefetchers: a third of the bandwidth at 4 KiB, nothing at 64. */
    TILE_BYTES = 64 << 10,
    FEW_ROWS = 8,
    MANY_ROWS = CPU_MANY_ROWS,
};

/* What else sizes tiles is a knob (cpu_tune.def):
 *
 * few_bytes    of few rows, at the end: 24 KiB are 0.7 us of a thread
 * many_tiles   at least so many for each thread, to end together
 * soon_bytes   half of a second cache
 * many_panels  Many rows come from the second or third cache for each tile:
 *              enough panels for what is brought, and pairs, as kernels of many
 *              rows like it,
 * many_bytes   and no more than stay in a second cache of 1 MiB beside 40 to 64
 *              rows, which take them again and again: 8192 columns of Q8_0, two
 *              threads, 340 GOPS each with four panels, 329 with eight; of BF16
 *              227 with two, 221. */
static uint32_t
knob(const br_cpu *c, br_cpu_knob k)
{
    return c->tune.at[k];
}

/* ---- activations -------------------------------------------------------- */

static uint32_t
quantise_tiles(br_cpu *c, cpu_phase *p)
{
    uint64_t rows = p->pick ? c->n_want : cpu_rows_in(c, p);
    uint64_t tiles = rows * p->pieces * p->n_in / 4096 + 1;

    p->n_rows = (uint32_t)rows;
    tiles = BR_MIN(BR_MIN(tiles, 4 * c->n_threads), rows);
    p->per = tiles ? (uint32_t)((rows + tiles - 1) / tiles) : 1;
    return (uint32_t)((rows + p->per - 1) / p->per);
}

static const float *
dense(br_cpu *c, const cpu_phase *p, uint32_t t)
{
    const br_ir_bind *b = &p->n->bind[0];
    const br_value_mem *v = &c->v.at[b->value];
    size_t cols = (size_t)b->width * b->count;
    float *near = c->gather[0] + t * cols;

    for (uint32_t k = 0; k < b->count; k++)
        memcpy(near + (size_t)k * b->width,
               v->p + t * (size_t)v->cols + b->off + (size_t)k * b->stride,
               b->width * sizeof(float));
    return near;
}

static void
quantise_tile(br_cpu *c, const cpu_phase *p, uint32_t tile, cpu_worker *w)
{
    uint32_t t0 = tile * p->per, t1 = BR_MIN(t0 + p->per, p->n_rows);
    size_t bytes = br_act_bytes((br_form)p->form, p->n_in);
    bool heads = p->n->op == BR_IR_HEAD_MATMUL;
    bool picks = p->pick || cpu_has_few(c, p);

    (void)w;
    for (uint32_t t = t0; t < t1; t++) {
        uint32_t from = picks ? c->want[t] : t;
        const float *x = p->temp     ? p->temp + (size_t)t * p->n_in
                         : p->gather ? dense(c, p, from)
                                     : ref_row(&p->in[0], from);

        for (uint32_t r = 0; r < p->pieces; r++) {
            size_t to =
                heads ? (size_t)r * p->n_rows + t : (size_t)t * p->pieces + r;

            br_act_row(c->isa, (br_form)p->form, x + (size_t)r * p->n_in,
                       p->n_in, p->act + to * bytes);
        }
    }
}

const cpu_kind cpu_quantise = {quantise_tiles, quantise_tile};

/* ---- experts ------------------------------------------------------------ */

static uint32_t
plan_tiles(br_cpu *c, cpu_phase *p)
{
    p->n_rows = c->step->n_rows;
    return p->n_rows ? 1 : 0;
}

void
cpu_moe_fill(cpu_moe *m, const br_ir_node *node, const ref_view *ids,
             const ref_view *w, uint32_t n_rows)
{
    uint32_t k = (uint32_t)br_ir_i(node, BR_IA_k, 1), at = 0;
    uint32_t n = (uint32_t)w->v->dim[0];

    memset(m->count, 0, n * sizeof *m->count);
    for (uint32_t t = 0; t < n_rows; t++)
        for (uint32_t r = 0; r < k; r++)
            m->count[ids->i[t * ids->stride + r]]++;
    m->n_active = 0;
    for (uint32_t e = 0; e < n; e++) {
        uint32_t here = m->count[e];

        m->count[e] = at; /* from now on: where its next pair goes */
        if (here == 0)
            continue;
        m->expert[m->n_active] = e;
        m->start[m->n_active++] = at;
        at += here;
    }
    m->start[m->n_active] = at;
    for (uint32_t t = 0; t < n_rows; t++)
        for (uint32_t r = 0; r < k; r++) {
            uint32_t to = m->count[ids->i[t * ids->stride + r]]++;

            m->row[to] = t;
            m->pair[to] = t * k + r;
        }
}

static void
plan_tile(br_cpu *c, const cpu_phase *p, uint32_t tile, cpu_worker *w)
{
    (void)tile, (void)w;
    cpu_moe_fill(&c->moe, p->n, &p->in[p->n->op == BR_IR_MOE_GATE_UP ? 5 : 2],
                 &p->in[1], p->n_rows);
}

const cpu_kind cpu_moe_plan = {plan_tiles, plan_tile};

/* ---- products ----------------------------------------------------------- */

static uint32_t
slices_of(const br_cpu *c, const cpu_phase *p)
{
    return p->by_expert ? c->moe.n_active : p->by_head ? p->pieces : 1;
}

static uint32_t
part_panels(const cpu_part *a)
{
    return (a->o1 - a->o0 + BR_MAT_PANEL - 1) / BR_MAT_PANEL;
}

static uint32_t
part_tiles(const cpu_phase *p, const cpu_part *a)
{
    return (part_panels(a) + p->per - 1) / p->per;
}

/* Are panels dealt in pairs, one of each part? */
static bool
in_pairs(const br_cpu *c, const cpu_phase *p)
{
    return c->alone && p->glu;
}

static uint64_t
all_panels(const br_cpu *c, const cpu_phase *p)
{
    uint64_t n = 0;

    if (in_pairs(c, p))
        return part_panels(&p->part[0]);
    for (uint32_t i = 0; i < p->n_parts; i++)
        n += (uint64_t)slices_of(c, p) * part_panels(&p->part[i]);
    return n;
}

/* What a round deals to each thread of the panels that are left. */
static uint64_t
dealt(const br_cpu *c, uint64_t left)
{
    return left * knob(c, BR_CPU_KNOB_share) / (16 * (uint64_t)c->n_threads);
}

/* Where tile i of few rows begins. Rounds deal until a share would be less than
 * `per`; then all of it goes, by `per`. */
static uint64_t
few_rows_at(const br_cpu *c, const cpu_phase *p, uint64_t panels, uint32_t i)
{
    uint64_t n = c->n_threads, at = 0, each;

    for (;; i -= (uint32_t)n, at += n * each) {
        each = dealt(c, panels - at);
        if (each <= p->per)
            return BR_MIN(at + (uint64_t)i * p->per, panels);
        if (i < n)
            return at + i * each;
    }
}

static uint64_t
few_rows_tiles(const br_cpu *c, const cpu_phase *p, uint64_t panels)
{
    uint64_t n = c->n_threads, at = 0, tiles = 0, each;

    for (;; tiles += n, at += n * each) {
        each = dealt(c, panels - at);
        if (each <= p->per)
            return tiles + (panels - at + p->per - 1) / p->per;
    }
}

/* For br_cpu_work_of. */
static void
count_work(br_cpu *c, const cpu_phase *p, const cpu_part *a, uint32_t slices)
{
    uint64_t outs = a->o1 - a->o0, rows = p->n_rows;
    const br_mat *m = &a->m->m;

    if (p->by_expert)
        rows = c->moe.start[slices];
    else
        rows *= slices;
    c->work.weight_bytes +=
        slices * (br_mat_panels(m) * m->panel_bytes * outs / m->n_out);
    c->work.products[m->form] += rows * outs * m->n_in;
}

static uint32_t
multiply_tiles(br_cpu *c, cpu_phase *p)
{
    uint64_t panels, bytes = 0, most, tiles = 0;
    uint32_t slices = slices_of(c, p);

    p->n_rows = cpu_rows_in(c, p);
    if (p->n_rows == 0 || slices == 0)
        return 0;
    for (uint32_t i = 0; i < p->n_parts; i++)
        bytes = BR_MAX(bytes, p->part[i].m->m.panel_bytes);
    bytes *= in_pairs(c, p) ? 2 : 1;
    panels = all_panels(c, p);
    most = panels / (knob(c, BR_CPU_KNOB_many_tiles) * c->n_threads);
    most = BR_MAX(most, 1);
    most = BR_MAX(most, panels / BR_CPU_MAX_TILES * 2);
    if (p->n_rows >= MANY_ROWS) {
        most = BR_MIN(most, knob(c, BR_CPU_KNOB_many_panels));
        most = BR_MIN(most, BR_MAX(knob(c, BR_CPU_KNOB_many_bytes) / bytes, 2));
        most = most < 2 ? 1 : most / 2 * 2;
    } else {
        most = BR_MIN(most, TILE_BYTES / bytes + 1);
        if (p->n_rows <= FEW_ROWS)
            most = BR_MIN(most, knob(c, BR_CPU_KNOB_few_bytes) / bytes + 1);
    }
    p->per = (uint32_t)most;
    for (uint32_t i = 0; i < p->n_parts; i++)
        tiles += (uint64_t)slices * part_tiles(p, &p->part[i]);
    if (p->n_rows <= FEW_ROWS)
        tiles = few_rows_tiles(c, p, panels);
    for (uint32_t i = 0; i < p->n_parts; i++)
        count_work(c, p, &p->part[i], slices);
    return (uint32_t)BR_MIN(tiles, (uint64_t)BR_CPU_MAX_TILES);
}

static void
add_bias(const br_cpu *c, const br_mul *mul, const float *bias)
{
    for (uint32_t t = 0; t < mul->n_rows; t++) {
        uint32_t row = mul->out_row ? mul->out_row[t] : t;
        float *y = mul->out + row * mul->out_stride + mul->o0;

        c->ops->two(BR_CPU_ADD, y, bias + mul->o0, y, mul->o1 - mul->o0);
    }
}

/* Panels p0..p1 - 1 of a part, of a slice. */
static void
multiply_part(br_cpu *c, const cpu_phase *p, const cpu_part *a, uint32_t slice,
              uint32_t p0, uint32_t p1, const cpu_worker *w)
{
    const cpu_moe *e = &c->moe;
    uint64_t which = p->by_expert ? e->expert[slice] : slice;
    br_mat m = a->m->m;
    br_mul mul = {.m = &m,
                  .act = a->act,
                  .n_rows = p->n_rows,
                  .o0 = a->o0 + p0 * BR_MAT_PANEL,
                  .o1 = BR_MIN(a->o0 + p1 * BR_MAT_PANEL, a->o1),
                  .out = a->y - a->o0,
                  .out_stride = a->stride,
                  .loose = w->loose,
                  .loose_bytes = c->loose_bytes};

    if (cpu_has_few(c, p))
        mul.out_row = c->want;
    m.data = c->packed + a->m->at + which * m.bytes;
    if (p->by_expert) {
        mul.n_rows = e->start[slice + 1] - e->start[slice];
        mul.row = (p->pairs ? e->pair : e->row) + e->start[slice];
        mul.out_row = e->pair + e->start[slice];
    }
    if (p->by_head) {
        mul.act += slice * br_act_bytes(m.form, m.n_in) * p->n_rows;
        mul.out += (size_t)slice * m.n_out;
    }
    if (c->alone && p->n_forms)
        mul.act = w->act[m.form];
    if (c->alone && p->add)
        mul.out = p->into;
    br_mat_mul(&mul);
    if (a->bias)
        add_bias(c, &mul, a->bias);
    if (c->alone && p->add)
        add_bias(c, &mul, p->add);
}

/* Panels p0..p1 - 1 of a gate and what it lets through. */
static void
multiply_glu(br_cpu *c, const cpu_phase *p, uint32_t p0, uint32_t p1,
             const cpu_worker *w)
{
    uint32_t o0 = p0 * BR_MAT_PANEL;
    uint32_t o1 = BR_MIN(p1 * BR_MAT_PANEL, p->part[0].o1);

    multiply_part(c, p, &p->part[0], 0, p0, p1, w);
    multiply_part(c, p, &p->part[1], 0, p0, p1, w);
    c->ops->act((int)br_ir_i(p[1].n, BR_IA_act, 0), p->part[0].y + o0,
                p->part[1].y + o0, p->into + o0, o1 - o0);
}

static const cpu_phase *
next_product(const br_cpu *c, const cpu_phase *p)
{
    const cpu_phase *end = c->phases.at + c->phases.n;

    do
        p = p + 1 < end ? p + 1 : c->phases.at;
    while (p->kind != &cpu_multiply);
    return p;
}

/* What all wait for at the next phase's beginning, as it comes from memory: a
 * norm's weights, 8 KB of 2048 columns, what attention writes. Weights are
 * read, not called for: 13.29 ms a token of Llama-1B in Q4_K_M, so 13.13,
 * called for 13.27. */
static void
bring_next(const br_cpu *c, const cpu_phase *p, uint32_t worker)
{
    const cpu_phase *q = next_product(c, p);

    if (p->heads)
        cpu_call_heads(c, p->heads, worker);
    if (q->norms) {
        const ref_view *by = &q[-(ptrdiff_t)q->n_forms - 1].in[1];

        if (by->v)
            br_probe_lines(by->f, (size_t)by->cols * sizeof *by->f / 64 * 64);
    }
}

/* The next product's first weights, which this worker may bring while it waits
 * for what comes in between. Those of experts nobody knows yet. */
static void
name_next(br_cpu *c, const cpu_phase *p, uint32_t worker)
{
    const cpu_phase *q = next_product(c, p);
    uint64_t from;

    if (q->by_expert)
        return;
    from = dealt(c, all_panels(c, q)) * worker;
    for (uint32_t i = 0; i < q->n_parts; i++) {
        const cpu_part *a = &q->part[i];
        uint64_t n = (uint64_t)slices_of(c, q) * part_panels(a);
        uint64_t at = a->m->at + a->o0 / BR_MAT_PANEL * a->m->m.panel_bytes;

        if (from < n) {
            br_cpu_pool_soon(c->c.pool, worker,
                             c->packed + at + from * a->m->m.panel_bytes,
                             BR_MIN((n - from) * a->m->m.panel_bytes,
                                    (uint64_t)knob(c, BR_CPU_KNOB_soon_bytes)));
            return;
        }
        from -= n;
    }
}

/* A tile may have the end of one slice or part, and the beginning of others. */
static void
multiply_few(br_cpu *c, const cpu_phase *p, uint32_t tile, cpu_worker *w)
{
    uint64_t panels = all_panels(c, p), from = few_rows_at(c, p, panels, tile);
    uint64_t left = few_rows_at(c, p, panels, tile + 1) - from;
    uint32_t slices = slices_of(c, p);

    if (c->alone && p->n_forms)
        cpu_fuse_row(c, p, w);
    if (in_pairs(c, p)) {
        multiply_glu(c, p, (uint32_t)from, (uint32_t)(from + left), w);
        left = 0;
    }
    for (uint32_t i = 0; i < p->n_parts; i++) {
        const cpu_part *a = &p->part[i];
        uint32_t each = part_panels(a);

        for (; left > 0 && from < (uint64_t)each * slices;) {
            uint32_t at = (uint32_t)(from % each);
            uint32_t n = (uint32_t)BR_MIN(each - at, left);

            multiply_part(c, p, a, (uint32_t)(from / each), at, at + n, w);
            from += n;
            left -= n;
        }
        from -= BR_MIN(from, (uint64_t)each * slices);
    }
    if (c->alone && tile < c->n_threads)
        bring_next(c, p, (uint32_t)(w - c->worker));
    name_next(c, p, (uint32_t)(w - c->worker));
}

static void
multiply_tile(br_cpu *c, const cpu_phase *p, uint32_t tile, cpu_worker *w)
{
    uint32_t slices = slices_of(c, p);

    if (p->n_rows <= FEW_ROWS) {
        multiply_few(c, p, tile, w);
        return;
    }
    for (uint32_t i = 0; i < p->n_parts; i++) {
        uint32_t each = part_tiles(p, &p->part[i]);

        if (tile < each * slices) {
            uint32_t at = tile % each * p->per;

            multiply_part(c, p, &p->part[i], tile / each, at, at + p->per, w);
            return;
        }
        tile -= each * slices;
    }
    br_unreachable("tiles are counted");
}

const cpu_kind cpu_multiply = {multiply_tiles, multiply_tile};
