/* cuda_plan.c - a graph's nodes as launches, made once.
 *
 * Columns that stand apart are gathered into rows before a node and scattered
 * after it; a product with integer weights quantises its activations first,
 * unless the launch before had the same ones (q, k and v of one norm).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"

#include <string.h>

/* A node while its launches are made. */
typedef struct planner {
    br_cun *x;
    const br_ir_node *n;
    uint32_t node;
    bool want;
    struct br_nd_rows in[BR_IR_MAX_BINDINGS], out[BR_IR_MAX_BINDINGS];
    struct br_nd_rows quantised; /* what xq holds */
    uint32_t quantised_block;
    bool quantised_want;
    br_status *st;
} planner;

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "launches of a step: out of memory");
}

/* A launch over n numbers of a row, or of n blocks. */
static br_code
put(planner *p, enum cun_fn fn, enum cun_grid grid, uint32_t n,
    const struct br_nd_args *a)
{
    const br_cun *x = p->x;
    cun_launch l = {.fn = (uint8_t)fn,
                    .grid = (uint8_t)grid,
                    .want = p->want,
                    .node = p->node,
                    .x = n,
                    .a = *a};

    if (fn == CUN_attend)
        l.shared = (a->head_k + a->head_v) * 4;
    if (grid == CUN_QUERIES)
        l.shared = BR_ND_WARPS * 16 * a->head_k * 4;
    l.a.s = (struct br_nd_step){
        .slot = (const void *)(uintptr_t)(x->block + x->at.slot),
        .position = (const void *)(uintptr_t)(x->block + x->at.position),
        .want = (const void *)(uintptr_t)(x->block + x->at.want),
        .at = (const void *)(uintptr_t)(x->block + x->at.at),
        .tables = (const void *)(uintptr_t)(x->block + x->at.tables),
        .n_groups = x->v.plan.n_groups};
    return br_vec_push(&p->x->launches, l) ? BR_OK : no_memory(p->st);
}

static struct br_nd_rows
rows_at(uint64_t p, uint32_t stride, uint32_t cols)
{
    return (struct br_nd_rows){(void *)(uintptr_t)p, stride, cols};
}

static br_code
move_runs(planner *p, const br_ir_bind *b, struct br_nd_rows near, bool in)
{
    const br_value_mem *v = &p->x->v.at[b->value];
    struct br_nd_args a = {.x = {v->p, (uint32_t)v->cols, (uint32_t)v->cols},
                           .y = near,
                           .off = b->off,
                           .width = b->width,
                           .pitch = b->stride,
                           .count = b->count,
                           .scatter = !in};

    return put(p, CUN_runs, CUN_NUMBERS, b->width * b->count, &a);
}

/* Binding i as rows that stand together. Matrices and states have none. */
static br_code
view(planner *p, int i)
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
    return in && !br_bind_together(b) ? move_runs(p, b, *to, true) : BR_OK;
}

static br_code
each(planner *p, enum br_nd_one op, struct br_nd_rows x, struct br_nd_rows b,
     struct br_nd_rows y)
{
    static const uint8_t acts[] = {[BR_ACT_SILU] = BR_ND_SILU,
                                   [BR_ACT_GELU] = BR_ND_GELU,
                                   [BR_ACT_OAI] = BR_ND_OAI,
                                   [BR_ACT_SIGMOID] = BR_ND_SIGMOID};
    struct br_nd_args a = {
        .op = op,
        .act = acts[br_ir_i(p->n, BR_IA_act, 0)],
        .x = x,
        .b = b,
        .y = y,
        .scale = (float)br_ir_f(p->n, BR_IA_scale, op == BR_ND_TEMP ? 0 : 1),
        .width = (uint32_t)br_ir_i(p->n, BR_IA_field, 1)};

    return put(p, CUN_each, CUN_NUMBERS, y.cols, &a);
}

static bool
same_rows(const struct br_nd_rows *a, const struct br_nd_rows *b)
{
    return a->p == b->p && a->stride == b->stride && a->cols == b->cols;
}

/* a's input as its product wants it, in xq, unless it is there: `block` says
 * in which form. */
static br_code
ready(planner *p, const struct br_nd_args *a, enum cun_fn fn,
      enum cun_grid grid, uint32_t n, uint32_t block)
{
    if (same_rows(&a->x, &p->quantised) && block == p->quantised_block &&
        p->want == p->quantised_want)
        return BR_OK;
    p->quantised = a->x;
    p->quantised_block = block;
    p->quantised_want = p->want;
    return put(p, fn, grid, n, a);
}

/* y = m x for all rows of the launch. */
static br_code
product(planner *p, const struct br_nd_mat *m, struct br_nd_rows x,
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

    if (m->kind == BR_ND_BF16 && !p->x->c.exact && m->n_in % 32 == 0) {
        a.lows = p->x->padded;
        BR_TRY(ready(p, &a, CUN_split, CUN_NUMBERS, m->n_in / 2, 1));
        return put(p, CUN_mma_8, CUN_MMA, m->n_out, &a);
    }
    if (m->kind != BR_ND_INT)
        return put(p, (enum cun_fn)floats[m->kind], CUN_TILES,
                   (m->n_out + 15) / 16, &a);
    BR_TRY(ready(p, &a, CUN_quantise, CUN_ROWS,
                 (m->n_in / m->block + BR_ND_WARPS - 1) / BR_ND_WARPS,
                 m->block));
    if (m->block == 32 && !m->dmin)
        return put(p, CUN_imma_8, CUN_MMA, m->n_out, &a);
    return put(p, m->block == 32 ? CUN_mul_int32 : CUN_mul_int256, CUN_TILES,
               (m->n_out + BR_ND_WARPS - 1) / BR_ND_WARPS, &a);
}

static br_code
matmul(planner *p)
{
    const uint32_t w = p->n->bind[1].value;

    BR_TRY(cun_matrix(p->x, w, p->st));
    BR_TRY(product(p, &p->x->mat[w], p->in[0], p->out[0]));
    if (p->n->op == BR_IR_MATMUL && p->in[2].p)
        return each(p, BR_ND_ADD, p->out[0], p->in[2], p->out[0]);
    return BR_OK;
}

static br_code
head(planner *p)
{
    const uint32_t w = p->n->bind[1].value;
    struct br_nd_rows few =
        rows_at(p->x->hidden_rows, p->in[0].cols, p->in[0].cols);
    struct br_nd_args a = {.x = p->in[0], .y = few};

    p->want = true;
    BR_TRY(cun_matrix(p->x, w, p->st));
    BR_TRY(put(p, CUN_wanted, CUN_NUMBERS, few.cols, &a));
    return product(p, &p->x->mat[w], few, p->out[0]);
}

/* A matrix of its own for each head. */
static br_code
head_matmul(planner *p)
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
        BR_TRY(product(p, &one, x, y));
    }
    return BR_OK;
}

static br_code
norm(planner *p, struct br_nd_rows x, struct br_nd_rows w, struct br_nd_rows y)
{
    struct br_nd_args a = {.x = x,
                           .y = y,
                           .w = w,
                           .width =
                               (uint32_t)br_ir_i(p->n, BR_IA_width, x.cols),
                           .eps = (float)br_ir_f(p->n, BR_IA_eps, 0)};

    return put(p, CUN_norm, CUN_ROWS, x.cols / a.width, &a);
}

static br_code
rope(planner *p)
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
    return put(p, CUN_rope, CUN_NUMBERS,
               (a.n_rot / 2 + a.head_k - a.n_rot) * a.heads, &a);
}

/* The state that binding i is; pool NULL where it is left out. */
static struct br_nd_cache
cache(const planner *p, int i)
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
keep(planner *p)
{
    for (int i = 0; i < 2; i++) {
        struct br_nd_args a = {.x = p->in[i]};

        if (p->n->bind[i].value == BR_IR_NONE)
            continue;
        a.k = cache(p, 3 + i);
        BR_TRY(put(p, CUN_keep, CUN_NUMBERS, a.x.cols, &a));
    }
    return BR_OK;
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
           a->per_kv <= 16 && aligned(&a->k) && aligned(&a->v);
}

static br_code
attend(planner *p)
{
    const br_ir_node *n = p->n;
    const uint32_t heads = (uint32_t)br_ir_i(n, BR_IA_heads, 1);
    struct br_nd_args a = {.x = p->in[0],
                           .y = p->out[0],
                           .k = cache(p, 1),
                           .v = cache(p, 2),
                           .w = p->in[4],
                           .heads = heads,
                           .per_kv =
                               heads / (uint32_t)br_ir_i(n, BR_IA_kv_heads, 1),
                           .head_k = (uint32_t)br_ir_i(n, BR_IA_head_dim, 0),
                           .head_v = (uint32_t)br_ir_i(n, BR_IA_head_v, 0),
                           .scale = (float)br_ir_f(n, BR_IA_scale, 1),
                           .cap = (float)br_ir_f(n, BR_IA_cap, 0),
                           .window = (uint32_t)br_ir_i(n, BR_IA_window, 0)};

    if (on_tensor_cores(&a))
        return put(p, a.head_k == 64 ? CUN_flash_64 : CUN_flash_128,
                   CUN_QUERIES, heads / a.per_kv, &a);
    return put(p, CUN_attend, CUN_ROWS, heads, &a);
}

static br_code
embed(planner *p)
{
    const cun_embed *e = p->x->embed;

    while (e->value != p->n->bind[1].value)
        e++;
    return each(p, BR_ND_COPY, rows_at(p->x->block + e->rows, e->cols, e->cols),
                (struct br_nd_rows){0}, p->out[0]);
}

static br_code
one_node(planner *p)
{
    switch ((br_ir_op)p->n->op) {
    case BR_IR_EMBED: return embed(p);
    case BR_IR_RMS_NORM: return norm(p, p->in[0], p->in[1], p->out[0]);
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
    case BR_IR_ADD: return each(p, BR_ND_ADD, p->in[0], p->in[1], p->out[0]);
    case BR_IR_MUL: return each(p, BR_ND_MUL, p->in[0], p->in[1], p->out[0]);
    case BR_IR_GLU: return each(p, BR_ND_GLU, p->in[0], p->in[1], p->out[0]);
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
    case BR_IR_BARRIER: return BR_OK;
    default: break;
    }
    return br_fail(p->st, BR_E_UNSUPPORTED,
                   "nodes[%u]: tier cuda has no %s yet", p->node,
                   br_ir_opinfo_of(p->n->op)->name);
}

/* A value that xq was made of is written: it is made anew. */
static void
forget(planner *p)
{
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

br_code
cun_plan(br_cun *x, br_status *st)
{
    planner p = {.x = x, .st = st};

    for (; p.node < x->v.g->n_nodes; p.node++) {
        const size_t before = x->launches.n;
        const br_ir_node *n = p.n = &x->v.g->nodes[p.node];

        p.want = n->n_out > 0 && n->op != BR_IR_LM_HEAD &&
                 x->v.at[n->bind[n->n_in].value].want;
        for (int i = 0; i < n->n_in + n->n_out; i++)
            BR_TRY(view(&p, i));
        BR_TRY(one_node(&p));
        for (int i = n->n_in; i < n->n_in + n->n_out; i++)
            if (!br_bind_together(&n->bind[i]))
                BR_TRY(move_runs(&p, &n->bind[i], p.out[i - n->n_in], false));
        forget(&p);
        if (x->launches.n > before)
            x->launches.at[x->launches.n - 1].last = true;
    }
    return BR_OK;
}
