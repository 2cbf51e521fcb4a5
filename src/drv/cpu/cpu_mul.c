/* cpu_mul.c - phases around the products of cpu_mat.h.
 *
 * A tile of a multiplication is some panels of one matrix (of one expert) for
 * all rows: its weights are read once, as one stream, by one thread. Biases
 * are added by whoever has just made the products.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_int.h"

#include <string.h>

enum {
    /* Less than this and threads that take turns disturb each other's
     * prefetchers: a third of the bandwidth at 4 KiB, nothing at 64. */
    TILE_BYTES = 64 << 10,
    TILES_EACH = 8, /* at least so many for each thread, to end together */
};

/* ---- activations -------------------------------------------------------- */

static uint32_t
quantise_tiles(br_cpu *c, cpu_phase *p)
{
    uint64_t rows = p->pick || p->want ? c->n_want : c->step->n_rows;
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

    (void)w;
    for (uint32_t t = t0; t < t1; t++) {
        uint32_t from = p->pick ? c->want[t] : t;
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
part_tiles(const cpu_phase *p, const cpu_part *a)
{
    uint32_t panels = (a->o1 - a->o0 + BR_MAT_PANEL - 1) / BR_MAT_PANEL;

    return (panels + p->per - 1) / p->per;
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
    c->work.weight_bytes += slices * (m->bytes * outs / m->n_out);
    c->work.products[m->form] += rows * outs * m->n_in;
}

static uint32_t
multiply_tiles(br_cpu *c, cpu_phase *p)
{
    uint64_t panels = 0, bytes = 0, most, tiles = 0;
    uint32_t slices = slices_of(c, p);

    p->n_rows = p->want ? c->n_want : c->step->n_rows;
    if (p->n_rows == 0 || slices == 0)
        return 0;
    for (uint32_t i = 0; i < p->n_parts; i++) {
        uint64_t n = (p->part[i].o1 - p->part[i].o0) / BR_MAT_PANEL + 1;

        panels += slices * n;
        bytes = BR_MAX(bytes, p->part[i].m->m.panel_bytes);
    }
    most = BR_MAX(panels / (TILES_EACH * c->n_threads), 1);
    most = BR_MAX(most, panels / BR_CPU_MAX_TILES * 2);
    p->per = (uint32_t)BR_MIN(TILE_BYTES / bytes + 1, most);
    for (uint32_t i = 0; i < p->n_parts; i++)
        tiles += (uint64_t)slices * part_tiles(p, &p->part[i]);
    for (uint32_t i = 0; i < p->n_parts; i++)
        count_work(c, p, &p->part[i], slices);
    return (uint32_t)BR_MIN(tiles, (uint64_t)BR_CPU_MAX_TILES);
}

static void
add_bias(const br_cpu *c, const br_mul *mul, const float *bias)
{
    for (uint32_t t = 0; t < mul->n_rows; t++) {
        float *y = mul->out + t * mul->out_stride + mul->o0;

        c->ops->two(BR_CPU_ADD, y, bias + mul->o0, y, mul->o1 - mul->o0);
    }
}

static void
multiply_part(br_cpu *c, const cpu_phase *p, const cpu_part *a, uint32_t slice,
              uint32_t tile)
{
    const cpu_moe *e = &c->moe;
    uint64_t which = p->by_expert ? e->expert[slice] : slice;
    br_mat m = a->m->m;
    br_mul mul = {.m = &m,
                  .act = a->act,
                  .n_rows = p->n_rows,
                  .o0 = a->o0 + tile * p->per * BR_MAT_PANEL,
                  .out = a->y - a->o0,
                  .out_stride = a->stride};

    mul.o1 = BR_MIN(mul.o0 + p->per * BR_MAT_PANEL, a->o1);
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
    br_mat_mul(&mul);
    if (a->bias)
        add_bias(c, &mul, a->bias);
}

static void
multiply_tile(br_cpu *c, const cpu_phase *p, uint32_t tile, cpu_worker *w)
{
    uint32_t slices = slices_of(c, p);

    (void)w;
    for (uint32_t i = 0; i < p->n_parts; i++) {
        uint32_t each = part_tiles(p, &p->part[i]);

        if (tile < each * slices) {
            multiply_part(c, p, &p->part[i], tile / each, tile % each);
            return;
        }
        tile -= each * slices;
    }
    br_unreachable("tiles are counted");
}

const cpu_kind cpu_multiply = {multiply_tiles, multiply_tile};
