/* cuda_plan_mix.c - launches of experts and of layers with a state.
 *
 *   gate_up, down   a row of a product is a pair (row of the step, rank), with
 *                   the matrix of whom the row picked; tiles: cuda_experts.c
 *   shared          products by way of memory that is set aside
 *   states          a block a slot of the step, that takes its rows in order
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_plan_int.h"

/* ---- experts ------------------------------------------------------------ */

/* x as integers in xq, if m has such; times: rows of x for each of the
 * step's. */
static br_code
as_integers(cun_planner *p, const struct br_nd_mat *m, struct br_nd_rows x,
            uint32_t times)
{
    struct br_nd_args a = {.x = x,
                           .m = *m,
                           .xq = (void *)(uintptr_t)p->x->xq,
                           .xd = (void *)(uintptr_t)p->x->xd};

    if (m->kind != BR_ND_INT)
        return BR_OK;
    p->quantised.p = NULL; /* what xq held is gone */
    return cun_put_times(p, times, CUN_quantise, CUN_ROWS,
                         (m->n_in / m->block + BR_ND_WARPS - 1) / BR_ND_WARPS,
                         &a);
}

/* y = rows e->first.. of each pair's matrix w times x; y: a row a pair. */
static br_code
by_expert(cun_planner *p, uint32_t w, const struct br_nd_route *e,
          struct br_nd_rows x, struct br_nd_rows y)
{
    const struct br_nd_mat *m = &p->x->mat[w];
    static const uint8_t floats[] = {[BR_ND_F32] = CUN_mul_f32,
                                     [BR_ND_F16] = CUN_mul_f16,
                                     [BR_ND_BF16] = CUN_mul_bf16};
    struct br_nd_args a = {.x = x,
                           .y = y,
                           .m = *m,
                           .e = *e,
                           .xq = (void *)(uintptr_t)p->x->xq,
                           .xd = (void *)(uintptr_t)p->x->xd};

    if (m->kind >= BR_ND_TILES)
        return cun_ask(p, w, e, x, y, NULL);
    a.m.n_out = y.cols;
    a.e.rows = m->n_out;
    if (m->kind != BR_ND_INT)
        return cun_put_times(p, e->k, (enum cun_fn)floats[m->kind], CUN_ROWS,
                             (y.cols + 15) / 16, &a);
    return cun_put_times(
        p, e->k, m->block == 32 ? CUN_mul_int32 : CUN_mul_int256, CUN_ROWS,
        (y.cols + BR_ND_WARPS - 1) / BR_ND_WARPS, &a);
}

/* y += the bias of each pair's expert, if there is one. */
static br_code
expert_bias(cun_planner *p, const struct br_nd_route *e, struct br_nd_rows b,
            struct br_nd_rows y)
{
    struct br_nd_args a = {.op = BR_ND_ADD, .x = y, .b = b, .y = y, .e = *e};

    if (!b.p)
        return BR_OK;
    return cun_put_times(p, e->k, CUN_each, CUN_NUMBERS, y.cols, &a);
}

static struct br_nd_route
route(const cun_planner *p, struct br_nd_rows ids)
{
    return (struct br_nd_route){.ids = (int *)(void *)ids.p,
                                .stride = ids.stride,
                                .k = (uint32_t)br_ir_i(p->n, BR_IA_k, 1)};
}

/* Rows of k pieces, as a row a pair. */
static br_code
pairs(cun_planner *p, const struct br_nd_rows *x, uint32_t k,
      struct br_nd_rows *out)
{
    if (x->stride != x->cols || x->cols % k)
        return br_fail(p->st, BR_E_UNSUPPORTED,
                       "nodes[%u]: tier %s wants rows of experts together",
                       p->node, cun_tier(p->x));
    *out = (struct br_nd_rows){x->p, x->cols / k, x->cols / k};
    return BR_OK;
}

br_code
cun_gate_topk(cun_planner *p)
{
    enum { MOST = 6144 /* experts and groups: 48 KiB of shared memory */ };
    const br_ir_node *n = p->n;
    const uint32_t w = n->bind[1].value;
    struct br_nd_args a = {.x = p->out[0],
                           .b = p->in[2],
                           .w = p->in[3],
                           .y = p->out[2],
                           .e = route(p, p->out[1]),
                           .scale = (float)br_ir_f(n, BR_IA_scale, 0)};

    if (cun_asked_as_tiles(p->x, w)) {
        BR_TRY(cun_ask_one(p, w, p->in[0], p->out[0]));
    } else {
        BR_TRY(cun_matrix(p->x, w, p->st));
        BR_TRY(cun_product(p, &p->x->mat[w], p->in[0], p->out[0]));
    }
    p->listed = NULL; /* others will be picked */
    a.m.n_out = p->out[0].cols;
    a.e.gating = (uint32_t)br_ir_i(n, BR_IA_gating, 0);
    a.e.groups = (uint32_t)br_ir_i(n, BR_IA_groups, 1);
    a.e.groups_used = (uint32_t)br_ir_i(n, BR_IA_groups_used, 1);
    a.e.norm_w = (uint32_t)br_ir_i(n, BR_IA_norm_w, 0);
    if ((uint64_t)(a.m.n_out + a.e.groups) * 2 + a.e.k > MOST * 2)
        return br_fail(p->st, BR_E_LIMIT,
                       "nodes[%u]: tier %s takes %d experts and groups",
                       p->node, cun_tier(p->x), MOST);
    return cun_add(p, CUN_topk, CUN_ROWS, 1, &a);
}

/* Two matrices that one launch asks. */
static bool
alike(const struct br_nd_mat *a, const struct br_nd_mat *b)
{
    return a->kind >= BR_ND_TILES && a->kind == b->kind &&
           a->block == b->block && a->sub == b->sub;
}

/* x gate_w [up_w] [gate_b] [up_b] ids -> gate up. One matrix: gate above up. */
br_code
cun_gate_up(cun_planner *p)
{
    const br_ir_bind *b = p->n->bind;
    const bool two = b[2].value != BR_IR_NONE;
    const uint32_t g = b[1].value, u = two ? b[2].value : g;
    struct br_nd_route e = route(p, p->in[5]);
    struct br_nd_rows gate, up;

    e.share = e.k;
    BR_TRY(cun_expert_tiles(p, g, e.k));
    BR_TRY(cun_expert_tiles(p, u, e.k));
    BR_TRY(pairs(p, &p->out[0], e.k, &gate));
    BR_TRY(pairs(p, &p->out[1], e.k, &up));
    if (alike(&p->x->mat[g], &p->x->mat[u])) {
        const cun_also also = {u, two ? 0 : gate.cols, up};

        BR_TRY(cun_ask(p, g, &e, p->in[0], gate, &also));
        BR_TRY(expert_bias(p, &e, p->in[3], gate));
        return expert_bias(p, &e, p->in[4], up);
    }
    BR_TRY(as_integers(p, &p->x->mat[g], p->in[0], 1));
    BR_TRY(by_expert(p, g, &e, p->in[0], gate));
    BR_TRY(expert_bias(p, &e, p->in[3], gate));
    if (p->x->mat[u].block != p->x->mat[g].block ||
        p->x->mat[u].kind != p->x->mat[g].kind)
        BR_TRY(as_integers(p, &p->x->mat[u], p->in[0], 1));
    e.first = two ? 0 : gate.cols;
    BR_TRY(by_expert(p, u, &e, p->in[0], up));
    return expert_bias(p, &e, p->in[4], up);
}

/* x down_w ids weights [down_b] [down_s] [residual] -> y */
br_code
cun_down_acc(cun_planner *p)
{
    const uint32_t w = p->n->bind[1].value;
    const uint32_t n = p->out[0].cols;
    struct br_nd_route e = route(p, p->in[2]);
    struct br_nd_rows x, one = {p->x->v.aside[p->node][0], n, n};
    struct br_nd_args a = {.x = one,
                           .b = p->in[3],
                           .w = p->in[5],
                           .c = p->in[6],
                           .y = p->out[0],
                           .e = e};

    e.share = 1;
    BR_TRY(cun_expert_tiles(p, w, e.k));
    BR_TRY(pairs(p, &p->in[0], e.k, &x));
    BR_TRY(as_integers(p, &p->x->mat[w], x, e.k));
    BR_TRY(by_expert(p, w, &e, x, one));
    BR_TRY(expert_bias(p, &e, p->in[4], one));
    return cun_add(p, CUN_fold, CUN_NUMBERS, n, &a);
}

/* y = the matrix of binding `in` times x, into scratch. */
static br_code
aside(cun_planner *p, int in, struct br_nd_rows x, int to, struct br_nd_rows *y)
{
    const uint32_t w = p->n->bind[in].value;
    uint32_t cols;

    if (!cun_asked_as_tiles(p->x, w))
        BR_TRY(cun_matrix(p->x, w, p->st));
    cols = (uint32_t)p->x->v.at[w].t->dim[1];
    *y = (struct br_nd_rows){p->x->v.aside[p->node][to], cols, cols};
    return cun_asked_as_tiles(p->x, w) ? cun_ask_one(p, w, x, *y)
                                       : cun_product(p, &p->x->mat[w], x, *y);
}

static br_code
one_by_one(cun_planner *p, enum br_nd_one op, uint32_t act, struct br_nd_rows x,
           struct br_nd_rows b, struct br_nd_rows y)
{
    struct br_nd_args a = {.op = op, .act = act, .x = x, .b = b, .y = y};

    return cun_add(p, CUN_each, CUN_NUMBERS, y.cols, &a);
}

/* x gate_w up_w down_w [router_w] residual -> y */
br_code
cun_shared_expert(cun_planner *p)
{
    struct br_nd_rows gate, up, down, g, none = {0};

    BR_TRY(aside(p, 1, p->in[0], 0, &gate));
    BR_TRY(aside(p, 2, p->in[0], 1, &up));
    if (p->n->bind[4].value != BR_IR_NONE) {
        BR_TRY(aside(p, 4, p->in[0], 3, &g));
        BR_TRY(one_by_one(p, BR_ND_ACT, BR_ND_SIGMOID, g, none, g));
    }
    BR_TRY(one_by_one(p, BR_ND_GLU, cun_act_of(p->n), gate, up, gate));
    p->quantised.p = NULL; /* scratch may be where that was */
    BR_TRY(aside(p, 3, gate, 2, &down));
    if (p->n->bind[4].value != BR_IR_NONE)
        BR_TRY(one_by_one(p, BR_ND_MUL, 0, down, g, down));
    p->quantised.p = NULL; /* of scratch, which others will write */
    return one_by_one(p, BR_ND_ADD, 0, p->in[5], down, p->out[0]);
}

/* ---- states ------------------------------------------------------------- */

static br_code
put_state(cun_planner *p, int state, enum cun_fn fn, uint32_t blocks,
          struct br_nd_args *a)
{
    a->y = p->out[0];
    a->state = (void *)(uintptr_t)p->x->slots;
    a->slot_elems = p->x->v.plan.slot_elems;
    a->k.first = p->x->v.plan.place[p->n->bind[state].value].at;
    return cun_add(p, fn, CUN_ROWS, blocks, a);
}

/* x w [b] *state -> y */
br_code
cun_conv(cun_planner *p)
{
    struct br_nd_args a = {.x = p->in[0],
                           .w = p->in[1],
                           .b = p->in[2],
                           .op = br_ir_has(p->n, BR_IA_act),
                           .act = cun_act_of(p->n),
                           .width = (uint32_t)br_ir_i(p->n, BR_IA_kernel, 1)};

    return put_state(p, 3, CUN_conv, (a.x.cols + 255) / 256, &a);
}

/* qkv alpha beta a dt_b *state -> y */
br_code
cun_delta(cun_planner *p)
{
    const br_ir_node *n = p->n;
    struct br_nd_args a = {.x = p->in[0],
                           .b = p->in[1],
                           .c = p->in[2],
                           .w = p->in[3],
                           .w2 = p->in[4],
                           .heads = (uint32_t)br_ir_i(n, BR_IA_heads, 1),
                           .per_kv = (uint32_t)br_ir_i(n, BR_IA_kv_heads, 1),
                           .head_k = (uint32_t)br_ir_i(n, BR_IA_head_dim, 1),
                           .neighbours = br_ir_i(n, BR_IA_tile, 0) != 0,
                           .eps = (float)br_ir_f(n, BR_IA_eps, 0)};

    return put_state(p, 5, CUN_delta, a.heads, &a);
}

/* xbc dt a dt_b [d] *state -> y */
br_code
cun_scan(cun_planner *p)
{
    const br_ir_node *n = p->n;
    struct br_nd_args a = {.x = p->in[0],
                           .b = p->in[1],
                           .w = p->in[2],
                           .w2 = p->in[3],
                           .w3 = p->in[4],
                           .heads = (uint32_t)br_ir_i(n, BR_IA_heads, 1),
                           .head_k = (uint32_t)br_ir_i(n, BR_IA_head_dim, 1),
                           .width = (uint32_t)br_ir_i(n, BR_IA_width, 1),
                           .e.groups = (uint32_t)br_ir_i(n, BR_IA_groups, 1)};

    return put_state(p, 5, CUN_scan, (a.heads * a.head_k + 15) / 16, &a);
}

/* x z [w] -> y */
br_code
cun_gated_norm(cun_planner *p)
{
    const br_ir_node *n = p->n;
    struct br_nd_args a = {.x = p->in[0],
                           .b = p->in[1],
                           .w = p->in[2],
                           .y = p->out[0],
                           .op = br_ir_i(n, BR_IA_kind, 0) == 1,
                           .width =
                               (uint32_t)br_ir_i(n, BR_IA_width, p->in[0].cols),
                           .eps = (float)br_ir_f(n, BR_IA_eps, 0)};

    return cun_add(p, CUN_gated, CUN_ROWS, a.x.cols / a.width, &a);
}
