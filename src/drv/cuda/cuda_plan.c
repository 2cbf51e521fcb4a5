/* cuda_plan.c - a graph's nodes as launches, made once.
 *
 * Columns that stand apart are gathered into rows before a node and scattered
 * after it; a product with integer weights quantises its activations first,
 * unless the launch before had the same ones (q, k and v of one norm).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_plan_int.h"

#include <string.h>

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "launches of a step: out of memory");
}

/* A launch over n numbers of a row, or of n blocks. */
br_code
cun_add(cun_planner *p, enum cun_fn fn, enum cun_grid grid, uint32_t n,
        const struct br_nd_args *a)
{
    const br_cun *x = p->x;
    cun_launch l = {.fn = (uint8_t)fn,
                    .grid = (uint8_t)grid,
                    .want = p->want,
                    .node = p->node,
                    .also = BR_IR_NONE,
                    .lone = p->node < p->turned,
                    .x = n,
                    .a = *a};

    if (fn == CUN_attend)
        l.shared = (a->head_k + a->head_v) * 4;
    if (fn == CUN_topk)
        l.shared = ((a->m.n_out + a->e.groups) * 2 + a->e.k) * 4;
    if (fn == CUN_delta)
        l.shared = a->head_k * 2 * 4;
    l.a.s = (struct br_nd_step){
        .slot = (const void *)(uintptr_t)(x->block + x->at.slot),
        .position = (const void *)(uintptr_t)(x->block + x->at.position),
        .want = (const void *)(uintptr_t)(x->block + x->at.want),
        .token = (const void *)(uintptr_t)(x->block + x->at.token),
        .tile = (const void *)(uintptr_t)(x->block + x->at.tile),
        .at = (const void *)(uintptr_t)(x->block + x->at.at),
        .tables = (const void *)(uintptr_t)(x->block + x->at.tables),
        .n_groups = x->v.plan.n_groups};
    return br_vec_push(&p->x->launches, l) ? BR_OK : no_memory(p->st);
}

struct br_nd_rows
cun_rows_at(uint64_t p, uint32_t stride, uint32_t cols)
{
    return (struct br_nd_rows){(void *)(uintptr_t)p, stride, cols};
}

static br_code
move_runs(cun_planner *p, const br_ir_bind *b, struct br_nd_rows near, bool in)
{
    const br_value_mem *v = &p->x->v.at[b->value];
    struct br_nd_args a = {.x = {v->p, (uint32_t)v->cols, (uint32_t)v->cols},
                           .y = near,
                           .off = b->off,
                           .width = b->width,
                           .pitch = b->stride,
                           .count = b->count,
                           .scatter = !in};

    return cun_add(p, CUN_runs, CUN_NUMBERS, b->width * b->count, &a);
}

br_code
cun_view(cun_planner *p, int i)
{
    const br_ir_bind *b = &p->n->bind[i];
    const bool in = i < p->n->n_in;
    struct br_nd_rows *to = in ? &p->in[i] : &p->out[i - p->n->n_in];
    const br_ir_value *v;
    const br_value_mem *m;

    *to = (struct br_nd_rows){0};
    if (b->value == BR_IR_NONE || br_bind_is_matrix(p->n, i))
        return BR_OK;
    v = &p->x->v.g->values[b->value];
    m = &p->x->v.at[b->value];
    to->cols = b->width * b->count;
    if (v->kind == BR_IK_STATE || !m->p)
        return BR_OK;
    if (v->kind == BR_IK_MODEL) {
        if (v->rank == 1)
            to->cols = (uint32_t)v->dim[0];
        to->p = m->p;
        return BR_OK;
    }
    to->stride = br_bind_together(b) ? (uint32_t)m->cols : to->cols;
    to->p = br_bind_together(b) ? m->p + b->off
                                : (void *)(uintptr_t)p->x->gather[i];
    if (!in || br_bind_together(b))
        return BR_OK;
    if (p->quantised.p == to->p)
        p->quantised.p = NULL; /* others were there */
    return move_runs(p, b, *to, true);
}

uint32_t
cun_act_of(const br_ir_node *n)
{
    static const uint8_t acts[] = {[BR_ACT_SILU] = BR_ND_SILU,
                                   [BR_ACT_GELU] = BR_ND_GELU,
                                   [BR_ACT_OAI] = BR_ND_OAI,
                                   [BR_ACT_SIGMOID] = BR_ND_SIGMOID};

    return acts[br_ir_i(n, BR_IA_act, 0)];
}

static br_code
each(cun_planner *p, enum br_nd_one op, struct br_nd_rows x,
     struct br_nd_rows b, struct br_nd_rows y)
{
    struct br_nd_args a = {
        .op = op,
        .act = cun_act_of(p->n),
        .x = x,
        .b = b,
        .y = y,
        .scale = (float)br_ir_f(p->n, BR_IA_scale, op == BR_ND_TEMP ? 0 : 1),
        .width = (uint32_t)br_ir_i(p->n, BR_IA_field, 1)};

    return cun_add(p, CUN_each, CUN_NUMBERS, y.cols, &a);
}

static bool
same_rows(const struct br_nd_rows *a, const struct br_nd_rows *b)
{
    return a->p == b->p && a->stride == b->stride && a->cols == b->cols;
}

/* xq will hold these. */
static void
holds(cun_planner *p, const struct br_nd_rows *x, uint32_t block)
{
    p->quantised = *x;
    p->quantised_block = block;
    p->quantised_by = p->node;
    p->quantised_want = p->want;
    p->quantised_far = p->node == p->paired;
    p->quantised_one = false;
    p->quantised_picked = false;
}

/* a's input as its product wants it, in xq, unless it is there: `block` says
 * in which form. */
static br_code
ready(cun_planner *p, const struct br_nd_args *a, enum cun_fn fn,
      enum cun_grid grid, uint32_t n, uint32_t block)
{
    if (same_rows(&a->x, &p->quantised) && block == p->quantised_block &&
        p->want == p->quantised_want)
        return BR_OK;
    holds(p, &a->x, block);
    return cun_add(p, fn, grid, n, a);
}

/* ---- tiles --------------------------------------------------------------- */

enum { AS_TILES = 1 /* in place of a block */ };

/* 16 bytes at a time. */
static bool
in_runs(const struct br_nd_rows *v)
{
    return v->p && (uintptr_t)v->p % 16 == 0 && v->stride % 4 == 0 &&
           v->cols % 8 == 0;
}

/* a.x, and what a says is done to it, becomes what a product of tiles reads.
 * Rows of up to 2048 columns have a thread for every four: half of the code (1B,
 * 16 rows, H200: 0.972 ms a step, not 0.997). 1024 threads of longer ones would
 * not fit beside the product ahead (8B: 4.80, not 4.72). */
static br_code
row16(cun_planner *p, enum cun_fn fn, struct br_nd_args *a)
{
    enum { SHORT = 2 * BR_ND_ROW_THREADS, LONG = 8 * BR_ND_ROW_THREADS };
    const bool far = p->node == p->paired;
    const uint32_t cols = a->x.cols, runs = cols / (cols <= SHORT ? 4 : 8);

    a->xq = (void *)(uintptr_t)(far ? p->x->glu : p->x->xq);
    a->xd = (void *)(uintptr_t)(far ? p->x->glu_d : p->x->xd);
    a->lows = p->x->padded / 8;
    return cun_add(
        p,
        fn + (cols <= SHORT ? 1
              : cols > LONG ? 2
                            : 0),
        CUN_ROW, BR_MIN((runs + 31) / 32 * 32, (uint32_t)BR_ND_ROW_THREADS), a);
}

bool
cun_takes(const cun_planner *p, const br_ir_node *n, const br_ir_bind *b)
{
    return n->op == BR_IR_MATMUL && br_bind_together(b) &&
           memcmp(&n->bind[0], b, sizeof *b) == 0 &&
           cun_tiled(p->x, n->bind[1].value);
}

/* Experts of tiles, who read binding b. Rows in f16 are not for them, who make their
 * own; but a row in a block, with what is added, is sooner done than one piece by
 * piece. */
static bool
asks(const cun_planner *p, const br_ir_node *n, const br_ir_bind *b)
{
    return n->op == BR_IR_MOE_GATE_UP && br_bind_together(b) &&
           memcmp(&n->bind[0], b, sizeof *b) == 0 &&
           cun_asked_as_tiles(p->x, n->bind[1].value);
}

/* The head, whose rows are gathered first: a row in a block, with what is added, is sooner
 * done than by a launch for each. */
static bool
heads(const cun_planner *p, const br_ir_node *n, const br_ir_bind *b)
{
    return n->op == BR_IR_LM_HEAD && br_bind_together(b) &&
           memcmp(&n->bind[0], b, sizeof *b) == 0 &&
           cun_tiled(p->x, n->bind[1].value);
}

/* Does a product of tiles come soon that reads it? */
static bool
feeds_tiles(const cun_planner *p, const br_ir_bind *b)
{
    enum { SOON = 4 };
    const br_ir *g = p->x->v.g;

    for (uint32_t i = p->node + 1; i <= p->node + SOON && i < g->n_nodes; i++)
        if (cun_takes(p, &g->nodes[i], b) || asks(p, &g->nodes[i], b) ||
            heads(p, &g->nodes[i], b))
            return true;
    return false;
}

bool
cun_can_row16(const cun_planner *p, const br_ir_bind *out,
              const struct br_nd_args *a)
{
    return !p->x->c.exact && !p->x->plain && feeds_tiles(p, out) &&
           in_runs(&a->x) && in_runs(&a->y) && (!a->b.p || in_runs(&a->b)) &&
           (!a->b.p || a->b.cols == a->x.cols);
}

static uint32_t
tiles_of(uint32_t rows)
{
    return (rows + BR_ND_TILE_ROWS - 1) / BR_ND_TILE_ROWS;
}

/* Do the pieces of a tile meet in a cluster's shared memory, not in the
 * device's? Where all blocks run at once and a piece is short: 1.1 to 1.8 times
 * as fast on an H200 (2048 columns, 8 to 64 rows), 0.98 to 1.1 with 4096, but
 * 0.75 with pieces of 3072 columns and 0.9 with more blocks. The same bits. */
static bool
meets_near(const struct br_nd_args *a)
{
    enum { AT_ONCE = 132, SHORT = 16 /* 64s of columns */ };

    return a->segs > 1 && a->segs * a->count <= AT_ONCE && a->m.block <= SHORT;
}

/* Who made rows x in xq, for all rows of a step; NULL: they are not there. */
static cun_launch *
whole_rows(const cun_planner *p, const struct br_nd_rows *x)
{
    return same_rows(x, &p->quantised) && p->quantised_block == AS_TILES &&
                   !p->quantised_want && !p->quantised_far && !p->quantised_one
               ? cun_maker(p->x)
               : NULL;
}

br_code
cun_as_tiles(cun_planner *p, struct br_nd_rows x)
{
    struct br_nd_args a = {.x = x};
    cun_launch *made;

    if (!in_runs(&x))
        return br_fail(p->st, BR_E_INTERNAL, "nodes[%u]: rows stand apart",
                       p->node);
    if (same_rows(&x, &p->quantised) && p->quantised_block == AS_TILES &&
        p->quantised_want == p->want)
        return BR_OK;
    a.scatter = p->want && p->n->op == BR_IR_LM_HEAD;
    made = a.scatter ? whole_rows(p, &x) : NULL;
    if (made)
        made->a.xd = (void *)(uintptr_t)cun_whole_d(p->x);
    a.w.p = made ? made->a.xd : NULL;
    BR_TRY(row16(p, CUN_row16_copy, &a));
    p->x->launches.at[p->x->launches.n - 1].picks = made != NULL;
    holds(p, &x, AS_TILES);
    p->quantised_picked = made != NULL;
    return BR_OK;
}

struct br_nd_args
cun_tile_args(const cun_planner *p, const struct br_nd_mat *m,
              const uint32_t *end, struct br_nd_rows x,
              const struct br_nd_rows *y, uint32_t n)
{
    const bool far = p->quantised_far;
    struct br_nd_args a = {
        .x = x,
        .y = y[0],
        .m = *m,
        .xq = (void *)(uintptr_t)(far ? p->x->glu : p->x->xq),
        .xd = (void *)(uintptr_t)(far                ? p->x->glu_d
                                  : p->quantised_one ? p->x->ones
                                                     : p->x->xd),
        .lows = p->x->padded / 8,
        .count = tiles_of(m->n_out),
        .segs = (m->n_in / 64 + m->block - 1) / m->block,
        .part_end = {end[0], end[n > 1 ? 1 : 0]}};

    for (uint32_t i = 1; i < n; i++)
        a.part[i - 1] = y[i];
    return a;
}

/* y[i] = m x, of n matrices on top of each other. */
static br_code
tiles(cun_planner *p, const struct br_nd_mat *m, const uint32_t *end,
      struct br_nd_rows x, const struct br_nd_rows *y, uint32_t n)
{
    struct br_nd_args a;

    BR_TRY(cun_as_tiles(p, x));
    a = cun_tile_args(p, m, end, x, y, n);
    a.op = meets_near(&a) ? BR_ND_MEET_NEAR : BR_ND_MEET_FAR;
    BR_TRY(cun_add(p, CUN_tiles_8, CUN_PRODUCT, a.count, &a));
    p->x->launches.at[p->x->launches.n - 1].whole = p->quantised_picked;
    return BR_OK;
}

/* y = m x for all rows of the launch. */
br_code
cun_product(cun_planner *p, const struct br_nd_mat *m, struct br_nd_rows x,
            struct br_nd_rows y)
{
    static const uint8_t floats[] = {[BR_ND_F32] = CUN_mul_f32,
                                     [BR_ND_F16] = CUN_mul_f16,
                                     [BR_ND_BF16] = CUN_mul_bf16};
    struct br_nd_args a = {.x = x,
                           .y = y,
                           .m = *m,
                           .xq = (void *)(uintptr_t)p->x->xq,
                           .xd = (void *)(uintptr_t)p->x->xd};

    if (m->kind >= BR_ND_TILES)
        return tiles(p, m, &(uint32_t){tiles_of(m->n_out)}, x, &y, 1);
    if (m->kind != BR_ND_INT)
        return cun_add(p, (enum cun_fn)floats[m->kind], CUN_TILES,
                       (m->n_out + 15) / 16, &a);
    BR_TRY(ready(p, &a, CUN_quantise, CUN_ROWS,
                 (m->n_in / m->block + BR_ND_WARPS - 1) / BR_ND_WARPS,
                 m->block));
    if (m->block == 32 && !m->dmin && !p->x->plain)
        return cun_add(p, CUN_imma_8, CUN_MMA, m->n_out, &a);
    return cun_add(p, m->block == 32 ? CUN_mul_int32 : CUN_mul_int256,
                   CUN_TILES, (m->n_out + BR_ND_WARPS - 1) / BR_ND_WARPS, &a);
}

/* Products of one input that come together, as one; 1: there is only this. */
static uint32_t
stacked(const cun_planner *p, uint32_t *w)
{
    const br_ir *g = p->x->v.g;
    uint32_t n = 0;

    for (uint32_t i = p->node; i < g->n_nodes && n < CUN_PARTS; i++) {
        const br_ir_node *m = &g->nodes[i];

        if (!cun_takes(p, m, &p->n->bind[0]) || p->x->mat[m->bind[1].value].q ||
            !br_bind_together(&m->bind[m->n_in]) ||
            (n && !cun_alike(p->x, w[0], m->bind[1].value)))
            break;
        w[n++] = m->bind[1].value;
    }
    return n ? n : 1;
}

static br_code
bias(cun_planner *p)
{
    if (p->n->op == BR_IR_MATMUL && p->in[2].p)
        return each(p, BR_ND_ADD, p->out[0], p->in[2], p->out[0]);
    return BR_OK;
}

static br_code
matmul_stack(cun_planner *p, const uint32_t *w, uint32_t n)
{
    const uint32_t first = p->node;
    struct br_nd_rows y[CUN_PARTS];
    struct br_nd_mat m;
    uint32_t end[CUN_PARTS];

    for (uint32_t i = n; i-- > 0;) { /* ends with this node's own */
        p->n = &p->x->v.g->nodes[first + i];
        for (int k = 0; k < p->n->n_in + p->n->n_out; k++)
            BR_TRY(cun_view(p, k));
        y[i] = p->out[0];
    }
    BR_TRY(cun_stack(p->x, w, n, &m, end, p->st));
    BR_TRY(tiles(p, &m, end, p->in[0], y, n));
    p->done = first + n;
    return BR_OK;
}

static br_code
matmul(cun_planner *p)
{
    uint32_t w[CUN_PARTS] = {p->n->bind[1].value};

    if (p->node >= p->done) {
        const uint32_t n = stacked(p, w);
        bool done = false;

        if (n == 2)
            BR_TRY(cun_glu(p, w, &done));
        if (done)
            return BR_OK;
        if (cun_asked_as_tiles(p->x, w[0])) {
            BR_TRY(cun_ask_one(p, w[0], p->in[0], p->out[0]));
        } else if (n > 1) {
            BR_TRY(matmul_stack(p, w, n));
        } else {
            BR_TRY(cun_matrix(p->x, w[0], p->st));
            BR_TRY(cun_product(p, &p->x->mat[w[0]], p->in[0], p->out[0]));
        }
    }
    return bias(p);
}

static br_code
head(cun_planner *p)
{
    const uint32_t w = p->n->bind[1].value;
    struct br_nd_rows few =
        cun_rows_at(p->x->hidden_rows, p->in[0].cols, p->in[0].cols);
    struct br_nd_args a = {.x = p->in[0], .y = few};

    p->want = true;
    if (!cun_asked_as_tiles(p->x, w))
        BR_TRY(cun_matrix(p->x, w, p->st));
    if (w == p->table) /* all of it now */
        p->x->weight_bytes += p->x->v.at[w].t->bytes;
    if (p->x->mat[w].kind >= BR_ND_TILES)
        return cun_product(p, &p->x->mat[w], p->in[0], p->out[0]);
    BR_TRY(cun_add(p, CUN_wanted, CUN_NUMBERS, few.cols, &a));
    if (cun_asked_as_tiles(p->x, w))
        return cun_ask_one(p, w, few, p->out[0]);
    return cun_product(p, &p->x->mat[w], few, p->out[0]);
}

/* A matrix of its own for each head. */
static br_code
head_matmul(cun_planner *p)
{
    const uint32_t w = p->n->bind[1].value;
    const uint32_t heads = (uint32_t)br_ir_i(p->n, BR_IA_heads, 1);
    struct br_nd_mat m;

    BR_TRY(cun_matrix(p->x, w, p->st));
    m = p->x->mat[w];
    for (uint32_t h = 0; h < heads; h++) {
        static const uint8_t bytes[] = {[BR_ND_F32] = 4,
                                        [BR_ND_F16] = 2,
                                        [BR_ND_BF16] = 2,
                                        [BR_ND_INT] = 1};
        const uint64_t at = (uint64_t)h * m.n_out * m.n_in;
        struct br_nd_rows x = p->in[0], y = p->out[0];
        struct br_nd_mat one = m;

        one.q = (const char *)m.q + at * bytes[m.kind];
        if (m.kind == BR_ND_INT) {
            one.d = m.d + at / m.block;
            one.dmin = m.dmin ? m.dmin + at / m.block : NULL;
            one.scale = m.scale ? m.scale + at / m.sub : NULL;
            one.min = m.min ? m.min + at / m.sub : NULL;
        }
        x.p += h * m.n_in;
        x.cols = m.n_in;
        y.p += h * m.n_out;
        y.cols = m.n_out;
        BR_TRY(cun_product(p, &one, x, y));
    }
    return BR_OK;
}

static br_code
norm(cun_planner *p, struct br_nd_rows x, struct br_nd_rows w,
     struct br_nd_rows y)
{
    struct br_nd_args a = {.x = x,
                           .y = y,
                           .w = w,
                           .width =
                               (uint32_t)br_ir_i(p->n, BR_IA_width, x.cols),
                           .eps = (float)br_ir_f(p->n, BR_IA_eps, 0)};

    a.count = x.cols / a.width;
    if (a.width <= 512)
        return cun_add(p, CUN_norm_heads, CUN_NUMBERS, a.count * 16, &a);
    return cun_add(p, CUN_norm, CUN_ROWS, a.count, &a);
}

/* A norm of x, or of x + b that goes to z, whose output products of tiles read;
 * done: it was that. */
static br_code
norm16(cun_planner *p, struct br_nd_rows x, struct br_nd_rows b,
       struct br_nd_rows w, int to, struct br_nd_rows z, bool *done)
{
    const br_ir_bind *out = &p->n->bind[p->n->n_in + to];
    struct br_nd_args a = {.x = x,
                           .b = b,
                           .w = w,
                           .y = p->out[to],
                           .z = z,
                           .eps = (float)br_ir_f(p->n, BR_IA_eps, 0)};

    *done = br_ir_i(p->n, BR_IA_width, x.cols) == x.cols &&
            cun_can_row16(p, out, &a) && (!z.p || in_runs(&z)) &&
            (!w.p || (uintptr_t)w.p % 16 == 0);
    if (!*done)
        return BR_OK;
    BR_TRY(row16(p, b.p ? CUN_row16_add : CUN_row16_norm, &a));
    holds(p, &a.y, AS_TILES);
    return BR_OK;
}

bool
cun_apart(const br_cun *x, const struct br_nd_rows *a,
          const struct br_nd_rows *b)
{
    const uint32_t rows = x->c.max_rows;

    return (a->p == b->p && a->stride == b->stride) ||
           a->p + (size_t)a->stride * rows <= b->p ||
           b->p + (size_t)b->stride * rows <= a->p;
}

/* Is the node after this ADD a norm of its output, that can do both? */
static bool
norm_adds(cun_planner *p)
{
    const br_ir *g = p->x->v.g;
    const br_ir_bind *out = &p->n->bind[2];
    const br_ir_node *next = &g->nodes[p->node + 1];
    cun_planner q = *p;
    struct br_nd_args a = {.x = p->in[0], .b = p->in[1]};

    if (p->node + 1 >= g->n_nodes || next->op != BR_IR_RMS_NORM ||
        memcmp(&next->bind[0], out, sizeof *out) != 0 ||
        !br_bind_together(out) || !br_bind_together(&next->bind[2]))
        return false;
    q.n = next;
    q.node++;
    if (cun_view(&q, 2) != BR_OK)
        return false;
    a.y = q.out[0];
    return br_ir_i(next, BR_IA_width, a.x.cols) == a.x.cols &&
           (next->bind[1].value == BR_IR_NONE ||
            (uintptr_t)p->x->v.at[next->bind[1].value].p % 16 == 0) &&
           cun_can_row16(&q, &next->bind[2], &a) && in_runs(&p->out[0]) &&
           cun_apart(p->x, &a.y, &a.x) && cun_apart(p->x, &a.y, &a.b) &&
           cun_apart(p->x, &p->out[0], &a.x) &&
           cun_apart(p->x, &p->out[0], &a.b);
}

static br_code
add(cun_planner *p)
{
    if (!norm_adds(p))
        return each(p, BR_ND_ADD, p->in[0], p->in[1], p->out[0]);
    p->sum = p->n;
    p->sum_in[0] = p->in[0];
    p->sum_in[1] = p->in[1];
    p->sum_out = p->out[0];
    return BR_OK;
}

static br_code
rms_norm(cun_planner *p)
{
    const struct br_nd_rows none = {0};
    const br_ir_node *sum = p->sum;
    bool done;

    p->sum = NULL;
    if (sum) {
        BR_TRY(norm16(p, p->sum_in[0], p->sum_in[1], p->in[1], 0, p->sum_out,
                      &done));
        br_check(done && "norm_adds said so");
        p->x->launches.at[p->x->launches.n - 1].also = p->node - 1;
        return BR_OK;
    }
    BR_TRY(norm16(p, p->in[0], none, p->in[1], 0, none, &done));
    return done ? BR_OK : norm(p, p->in[0], p->in[1], p->out[0]);
}

static br_code
glu(cun_planner *p)
{
    struct br_nd_args a = {.x = p->in[0], .b = p->in[1], .y = p->out[0]};

    if (cun_act_of(p->n) != BR_ND_SILU || !cun_can_row16(p, &p->n->bind[2], &a))
        return each(p, BR_ND_GLU, p->in[0], p->in[1], p->out[0]);
    BR_TRY(row16(p, CUN_row16_glu, &a));
    holds(p, &a.y, AS_TILES);
    return BR_OK;
}

static br_code
rope(cun_planner *p)
{
    const br_ir_node *n = p->n;
    struct br_nd_args a = {.x = p->in[0],
                           .y = p->out[0],
                           .w = p->in[2],
                           .head_k = (uint32_t)br_ir_i(n, BR_IA_head_dim, 1),
                           .n_rot = (uint32_t)br_ir_i(n, BR_IA_n_rot, 0),
                           .neighbours =
                               br_ir_i(n, BR_IA_kind, 0) == BR_ROPE_NORM,
                           .scale = (float)br_ir_f(n, BR_IA_scale, 1)};

    a.heads = p->in[0].cols / a.head_k;
    return cun_add(p, CUN_rope, CUN_NUMBERS,
                   (a.n_rot / 2 + a.head_k - a.n_rot) * a.heads, &a);
}

struct br_nd_cache
cun_cache(const cun_planner *p, int i)
{
    const br_cun *x = p->x;
    const br_ir_bind *b = &p->n->bind[i];
    const br_state_place *at;

    if (b->value == BR_IR_NONE)
        return (struct br_nd_cache){0};
    at = &x->v.plan.place[b->value];
    return (struct br_nd_cache){.pool = (void *)(uintptr_t)x->pool[at->group],
                                .page = x->v.plan.group[at->group].page_elems,
                                .first = at->at,
                                .cols = b->width * b->count,
                                .group = at->group,
                                .half = !x->c.exact};
}

static br_code
keep(cun_planner *p)
{
    struct br_nd_args a = {.x = p->in[0],
                           .b = p->in[1],
                           .k = cun_cache(p, 3),
                           .v = cun_cache(p, 4)};

    if (p->n->bind[0].value == BR_IR_NONE)
        a.x.cols = 0;
    if (p->n->bind[1].value == BR_IR_NONE)
        a.b.cols = 0;
    return cun_add(p, CUN_keep, CUN_NUMBERS, a.x.cols + a.b.cols, &a);
}

/* Rows of a head begin at multiples of 16 bytes. */
static bool
aligned(const struct br_nd_cache *c)
{
    return c->pool && c->half && c->page % 8 == 0 && c->first % 8 == 0 &&
           c->cols % 8 == 0;
}

static bool
on_tensor_cores(const struct br_nd_args *a)
{
    return (a->head_k == 64 || a->head_k == 128) && a->head_v == a->head_k &&
           a->scale > 0 && a->per_kv <= 16 && aligned(&a->k) && aligned(&a->v);
}

static br_code
attend(cun_planner *p)
{
    const br_ir_node *n = p->n;
    const uint32_t heads = (uint32_t)br_ir_i(n, BR_IA_heads, 1);
    struct br_nd_args a = {.x = p->in[0],
                           .y = p->out[0],
                           .k = cun_cache(p, 1),
                           .v = cun_cache(p, 2),
                           .w = p->in[4],
                           .heads = heads,
                           .per_kv =
                               heads / (uint32_t)br_ir_i(n, BR_IA_kv_heads, 1),
                           .head_k = (uint32_t)br_ir_i(n, BR_IA_head_dim, 0),
                           .head_v = (uint32_t)br_ir_i(n, BR_IA_head_v, 0),
                           .scale = (float)br_ir_f(n, BR_IA_scale, 1),
                           .cap = (float)br_ir_f(n, BR_IA_cap, 0),
                           .window = (uint32_t)br_ir_i(n, BR_IA_window, 0)};

    if (!p->x->plain && on_tensor_cores(&a)) {
        if (feeds_tiles(p, &n->bind[n->n_in]) && in_runs(&a.y)) {
            a.xq = (void *)(uintptr_t)p->x->xq;
            a.lows = p->x->padded / 8;
            holds(p, &a.y, AS_TILES);
            p->quantised_one = true;
        }
        p->x->most_per_kv = BR_MAX(p->x->most_per_kv, a.per_kv);
        p->x->tile_rows = BR_MIN(p->x->tile_rows, BR_ND_QUERIES / a.per_kv);
        return cun_add(p, a.head_k == 64 ? CUN_flash_64 : CUN_flash_128,
                       CUN_QUERIES, heads / a.per_kv, &a);
    }
    return cun_add(p, CUN_attend, CUN_ROWS, heads, &a);
}

static br_code
embed(cun_planner *p)
{
    const uint32_t w = p->n->bind[1].value;
    const uint64_t step = p->x->weight_bytes; /* reads few rows of it */
    const cun_embed *e = p->x->embed;
    struct br_nd_args a = {.y = p->out[0]};

    if (cun_has_rows(p->x, w)) {
        BR_TRY(cun_matrix(p->x, w, p->st));
        p->table = w;
        p->x->weight_bytes = step;
        a.m = p->x->mat[w];
        return cun_add(p, CUN_embed, CUN_NUMBERS, a.y.cols, &a);
    }
    while (e->value != p->n->bind[1].value)
        e++;
    return each(p, BR_ND_COPY,
                cun_rows_at(p->x->block + e->rows, e->cols, e->cols),
                (struct br_nd_rows){0}, p->out[0]);
}

static br_code
one_node(cun_planner *p)
{
    switch ((br_ir_op)p->n->op) {
    case BR_IR_EMBED: return embed(p);
    case BR_IR_RMS_NORM: return rms_norm(p);
    case BR_IR_RESIDUAL_RMS_NORM:
        BR_TRY(each(p, BR_ND_ADD, p->in[0], p->in[1], p->out[0]));
        return norm(p, p->out[0], p->in[2], p->out[1]);
    case BR_IR_MATMUL:
    case BR_IR_MATMUL_WMMA_F16:
    case BR_IR_MATMUL_WMMA_Q4K: return matmul(p);
    case BR_IR_HEAD_MATMUL: return head_matmul(p);
    case BR_IR_LM_HEAD: return head(p);
    case BR_IR_ROPE: return rope(p);
    case BR_IR_KV_WRITE_BATCHED: return keep(p);
    case BR_IR_FLASH_ATTN:
    case BR_IR_FLASH_ATTN_BATCHED: return attend(p);
    case BR_IR_ADD: return add(p);
    case BR_IR_MUL: return each(p, BR_ND_MUL, p->in[0], p->in[1], p->out[0]);
    case BR_IR_GLU: return glu(p);
    case BR_IR_SCALE:
        return each(p, BR_ND_SCALE, p->in[0], (struct br_nd_rows){0},
                    p->out[0]);
    case BR_IR_SOFTCAP:
        return each(p, BR_ND_SOFTCAP, p->in[0], (struct br_nd_rows){0},
                    p->out[0]);
    case BR_IR_ACT:
        return each(p, BR_ND_ACT, p->in[0], (struct br_nd_rows){0}, p->out[0]);
    case BR_IR_COPY:
        return each(p, BR_ND_COPY, p->in[0], (struct br_nd_rows){0}, p->out[0]);
    case BR_IR_TEMP_SCALE:
        return each(p, BR_ND_TEMP, p->in[0], (struct br_nd_rows){0}, p->out[0]);
    case BR_IR_MOE_GATE_TOPK: return cun_gate_topk(p);
    case BR_IR_MOE_GATE_UP: return cun_gate_up(p);
    case BR_IR_MOE_SWIGLU: return cun_experts_glu(p);
    case BR_IR_MOE_DOWN_ACC: return cun_down_acc(p);
    case BR_IR_SHARED_EXPERT: return cun_shared_expert(p);
    case BR_IR_SSM_CONV1D: return cun_conv(p);
    case BR_IR_SSM_DELTA_NET: return cun_delta(p);
    case BR_IR_SSM_SCAN: return cun_scan(p);
    case BR_IR_SSM_GATED_NORM: return cun_gated_norm(p);
    case BR_IR_BARRIER: return BR_OK;
    default: break;
    }
    return br_fail(p->st, BR_E_UNSUPPORTED, "nodes[%u]: tier %s has no %s yet",
                   p->node, cun_tier(p->x), br_ir_opinfo_of(p->n->op)->name);
}

/* A value that xq was made of is written: it is made anew. */
static void
forget(cun_planner *p)
{
    if (p->quantised_by == p->node)
        return; /* made of what the node wrote, or of its input */
    for (int i = 0; i < p->n->n_out; i++) {
        const br_ir_bind *b = &p->n->bind[p->n->n_in + i];

        if (b->value != BR_IR_NONE && p->quantised.p &&
            p->quantised.p >= p->x->v.at[b->value].p &&
            p->quantised.p < p->x->v.at[b->value].p + p->x->v.at[b->value].cols)
            p->quantised.p = NULL;
        if (!br_bind_together(b))
            p->quantised.p = NULL; /* its rows were gathered */
    }
}

/* Room for pieces of products, now that their number is known. */
static br_code
meeting_place(br_cun *x, br_status *st)
{
    const uint64_t each = BR_ND_TILE_ROWS * BR_ND_TILE_TOKENS;

    if (x->plain)
        return BR_OK; /* no tiles there */
    br_cuda_free(&x->cu, x->raw);
    x->raw = x->raw_bytes = 0;
    BR_TRY(cun_alloc(x, &x->sums, x->n_sums * each * 4 + 4, st));
    BR_TRY(cun_alloc(x, &x->met, x->n_met * 4 + 4, st));
    BR_TRY(br_cuda_fill(&x->cu, x->met, 0, x->n_met + 1, st));
    for (size_t i = 0; i < x->launches.n; i++) {
        x->launches.at[i].a.sums = (void *)(uintptr_t)x->sums;
        x->launches.at[i].a.met = (void *)(uintptr_t)x->met;
    }
    return BR_OK;
}

br_code
cun_plan(br_cun *x, br_status *st)
{
    cun_planner p = {.x = x,
                     .st = st,
                     .quantised_by = BR_IR_NONE,
                     .paired = BR_IR_NONE,
                     .glu.by = BR_IR_NONE,
                     .table = BR_IR_NONE};

    BR_TRY(cun_fit(x, st));
    BR_TRY(cun_experts_place(x, st));
    for (; p.node < x->v.g->n_nodes; p.node++) {
        const size_t before = x->launches.n;
        const br_ir_node *n = p.n = &x->v.g->nodes[p.node];

        p.want = n->n_out > 0 && n->op != BR_IR_LM_HEAD &&
                 x->v.at[n->bind[n->n_in].value].want;
        for (int i = 0; i < n->n_in + n->n_out; i++)
            BR_TRY(cun_view(&p, i));
        if (p.node >= p.turned)
            BR_TRY(cun_turn(&p));
        BR_TRY(one_node(&p));
        for (int i = n->n_in; i < n->n_in + n->n_out; i++)
            if (!br_bind_together(&n->bind[i]))
                BR_TRY(move_runs(&p, &n->bind[i], p.out[i - n->n_in], false));
        forget(&p);
        if (x->launches.n > before)
            x->launches.at[x->launches.n - 1].last = true;
    }
    cun_lean(x);
    cun_joins(x);
    return meeting_place(x, st);
}
