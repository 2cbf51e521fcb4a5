/* cuda_experts.c - experts whose matrices are tiles: where they are, and who asks
 * them (kernels/cuda/experts.cu).
 *
 *   place   a model's experts that do not fit beside all else on the device stay in
 *           pinned memory of the host, op by op, the first ones on the device; a
 *           product reads either, so no bit changes
 *   load    an expert's tiles are made on the device and, if they are not to stay
 *           there, fetched; factors of rows are always there
 *   ask     lists (of more than BR_ND_ASK_ALONE pairs), what pairs read, products
 *
 *   BR_ND_ASK_ALONE and which kernel how many pairs get are guesses: what else they
 *   could be has not been measured.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_plan_int.h"

#include "model/quant.h"

enum { EIGHT = 8 /* an expert's places begin at a multiple of */ };

/* ---- what they are ------------------------------------------------------ */

static enum br_nd_kind
form_of(int type)
{
    switch (type) {
    case BR_Q_MXFP4: return BR_ND_PACK_MX;
    case BR_Q_F8_E4M3: return BR_ND_PACK_E4M3;
    case BR_Q_F8_E5M2: return BR_ND_PACK_E5M2;
    default: return cun_form_of(type);
    }
}

bool
cun_asked_as_tiles(const br_cun *x, uint32_t v)
{
    const br_gguf_tensor *t = x->v.at[v].t;
    const br_ir_value *value = &x->v.g->values[v];

    return t && !cun_exact_form(x) && x->asks[v] &&
           (value->rank == 3 || form_of(t->type) > BR_ND_PACK_MX) &&
           form_of(t->type) >= BR_ND_TILES && t->dim[0] % 64 == 0 &&
           t->dim[0] <= BR_ND_ROW_MOST;
}

/* A matrix that all rows pass, as the only expert that there is. */
static bool
is_one(const br_cun *x, uint32_t v)
{
    return x->v.g->values[v].rank < 3;
}

br_code
cun_experts_find(br_cun *x, br_status *st)
{
    const br_ir *g = x->v.g;

    x->asks = br_arena_new(&x->arena, bool, g->n_values + 1);
    if (!x->asks)
        return br_fail(st, BR_E_OOM, "weights: out of memory");
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_ir_node *n = &g->nodes[i];

        for (int b = 0; b < n->n_in; b++) {
            const uint32_t v = n->bind[b].value;

            if (v != BR_IR_NONE && br_bind_is_matrix(n, b) &&
                n->op != BR_IR_EMBED && n->op != BR_IR_HEAD_MATMUL)
                x->asks[v] = true;
        }
    }
    for (uint32_t v = 0; v < g->n_values; v++)
        x->has_experts = x->has_experts || cun_asked_as_tiles(x, v);
    return BR_OK;
}

static uint32_t
tiles_of(uint64_t rows)
{
    return (uint32_t)((rows + BR_ND_TILE_ROWS - 1) / BR_ND_TILE_ROWS);
}

/* Bytes of an expert's tiles. */
static uint64_t
each_of(const br_cun *x, uint32_t v)
{
    const br_gguf_tensor *t = x->v.at[v].t;
    const enum br_nd_kind kind = form_of(t->type);
    const uint64_t bytes = kind == BR_ND_TILES     ? BR_ND_TILE_ROWS * 128u
                           : kind == BR_ND_PACK_MX ? BR_ND_MX_BYTES
                           : kind > BR_ND_PACK_MX  ? BR_ND_F8_BYTES
                                                   : BR_ND_PACK_BYTES(kind);

    return tiles_of(t->dim[1]) * (t->dim[0] / 64) * bytes;
}

/* The matrices of an op's experts: bindings of *n. */
static uint32_t
matrices(const br_ir_node *n, uint32_t v[2])
{
    uint32_t count = 0;
    const int end = n->op == BR_IR_MOE_GATE_UP    ? 2
                    : n->op == BR_IR_MOE_DOWN_ACC ? 1
                                                  : 0;

    for (int b = 1; b <= end; b++)
        if (n->bind[b].value != BR_IR_NONE)
            v[count++] = n->bind[b].value;
    return count;
}

uint64_t
cun_experts_bytes(const br_cun *x, uint32_t v)
{
    return each_of(x, v) * x->v.at[v].t->dim[2];
}

/* Those of them that become tiles. */
static uint64_t
bytes_of_op(const br_cun *x, const br_ir_node *n)
{
    uint32_t v[2];
    uint64_t bytes = 0;

    for (uint32_t i = matrices(n, v); i-- > 0;)
        if (cun_asked_as_tiles(x, v[i]) && !is_one(x, v[i]))
            bytes += cun_experts_bytes(x, v[i]);
    return bytes;
}

uint64_t
cun_experts_need(const br_cun *x)
{
    uint64_t xq = 0;

    for (uint32_t i = 0; i < x->v.g->n_nodes; i++) {
        const br_ir_node *n = &x->v.g->nodes[i];

        if (n->op == BR_IR_MOE_DOWN_ACC &&
            !cun_asked_as_tiles(x, n->bind[1].value))
            xq = BR_MAX(xq, (uint64_t)x->v.at[n->bind[0].value].cols);
    }
    return xq;
}

void
cun_experts_aside(void *ctx, uint32_t node, size_t cols[BR_VALUES_ASIDE])
{
    const br_cun *x = ctx;
    const br_ir_node *n = &x->v.g->nodes[node];
    static const uint8_t of[] = {1, 2, 3, 4}; /* gate, up, down, router */

    if (n->op == BR_IR_MOE_DOWN_ACC) /* a row a pair */
        cols[0] = (size_t)br_ir_i(n, BR_IA_k, 1) *
                  (size_t)x->v.at[n->bind[n->n_in].value].cols;
    for (size_t i = 0; n->op == BR_IR_SHARED_EXPERT && i < BR_COUNT(of); i++) {
        const uint32_t v = n->bind[of[i]].value;

        if (v != BR_IR_NONE && x->v.g->values[v].rank > 1)
            cols[i] = (size_t)x->v.g->values[v].dim[0];
        else if (v != BR_IR_NONE)
            cols[i] = 1;
    }
}

/* ---- lists -------------------------------------------------------------- */

/* Rows that a part has at most: an expert's share of the pairs, about. */
static uint32_t
tokens_of(uint32_t pairs, uint32_t experts)
{
    const uint32_t share = pairs / experts;

    return share <= BR_ND_ASK_FEW    ? BR_ND_ASK_FEW
           : share <= BR_ND_ASK_SOME ? BR_ND_ASK_SOME
                                     : BR_ND_ASK_MANY;
}

static uint32_t
most_parts(uint32_t pairs, uint32_t experts, uint32_t tokens)
{
    return BR_MIN(pairs, pairs / tokens + experts);
}

static uint32_t
most_places(uint32_t pairs, uint32_t experts)
{
    return pairs <= BR_ND_ASK_ALONE
               ? pairs * EIGHT
               : pairs + BR_MIN(pairs, experts) * (EIGHT - 1);
}

static br_code
room(br_cun *x, uint64_t *p, uint64_t numbers, br_status *st)
{
    BR_TRY(cun_alloc(x, p, numbers * 4, st));
    return cun_zero(x, *p, numbers, st);
}

/* Counts what experts of matrix v read, k of them each row. */
static void
count_room(br_cun *x, uint32_t v, uint32_t k, uint32_t *parts)
{
    struct cun_asked *a = &x->asked;
    const br_gguf_tensor *t = x->v.at[v].t;
    const uint32_t experts = (uint32_t)t->dim[2];
    const uint32_t pairs = x->c.max_rows * k;

    a->k = BR_MAX(a->k, k);
    a->cols = BR_MAX(a->cols, t->dim[0]);
    a->places = BR_MAX(a->places, most_places(pairs, experts));
    *parts = BR_MAX(*parts, most_parts(pairs, experts, BR_ND_ASK_FEW));
}

br_code
cun_experts_room(br_cun *x, br_status *st)
{
    struct cun_asked *a = &x->asked;
    uint32_t parts = 0;

    for (uint32_t i = 0; i < x->v.g->n_nodes; i++) {
        const br_ir_node *n = &x->v.g->nodes[i];

        for (int b = 0; b < n->n_in; b++) {
            const uint32_t v = n->bind[b].value;

            if (v != BR_IR_NONE && br_bind_is_matrix(n, b) &&
                cun_asked_as_tiles(x, v))
                count_room(x, v,
                           is_one(x, v) ? 1 : (uint32_t)br_ir_i(n, BR_IA_k, 1),
                           &parts);
        }
    }
    if (!a->cols)
        return BR_OK;
    x->costs.row +=
        (uint64_t)a->k * (a->cols * 2 + 4 + 4 + sizeof(struct br_nd_part));
    /* few pairs have eight places each; who reads the last ones, reads on */
    a->places = (BR_MAX(a->places, (uint32_t)BR_ND_ASK_ALONE * EIGHT) +
                 BR_ND_ASK_MANY + EIGHT - 1) /
                EIGHT * EIGHT;
    BR_TRY(room(x, &a->xq, a->cols * a->places / 2, st));
    BR_TRY(room(x, &a->xd, a->places, st));
    BR_TRY(room(x, &a->pair, a->places, st));
    BR_TRY(room(x, &a->part, parts * sizeof(struct br_nd_part) / 4, st));
    BR_TRY(room(x, &a->zeros, x->c.max_rows + BR_MAX(x->c.max_want, 1u), st));
    return room(x, &a->n, 2, st);
}

/* ---- where they are ----------------------------------------------------- */

br_code
cun_experts_place(br_cun *x, br_status *st)
{
    const br_ir *g = x->v.g;
    uint64_t left = x->left, all = 0;

    x->far = br_arena_new(&x->arena, bool, g->n_nodes + 1);
    if (!x->far)
        return br_fail(st, BR_E_OOM, "launches of a step: out of memory");
    if (!x->asked.cols)
        return BR_OK;
    x->costs.left = left;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const uint64_t bytes = bytes_of_op(x, &g->nodes[i]);

        x->far[i] = bytes > left;
        left -= x->far[i] ? 0 : bytes;
        all += x->far[i] ? 0 : bytes;
        x->costs.host_ops += x->far[i];
    }
    x->costs.experts = all;
    return cun_pile_up(x, CUN_ASKED_TILES, all, st);
}

/* ---- at load ------------------------------------------------------------ */

/* Room for all of them; *one: where an expert's tiles are made. */
static br_code
room_for(br_cun *x, enum cun_class c, uint64_t bytes, uint64_t each, bool far,
         uint64_t *q, uint64_t *one, br_status *st)
{
    void *p = NULL;

    if (!far) {
        BR_TRY(cun_take(x, c, q, bytes, st));
        return br_cuda_fill(&x->cu, *q, 0, bytes / 4, st);
    }
    BR_TRY(br_cuda_alloc(&x->cu, one, each, st));
    BR_TRY(br_cuda_fill(&x->cu, *one, 0, each / 4, st));
    if (BR_CU(&x->cu, st, cuMemAllocHost(&p, bytes)) != BR_OK)
        return br_prefix(st,
                         "experts that stay in the host's memory, %zu MB of it",
                         (size_t)(bytes >> 20));
    *q = (uintptr_t)p;
    x->costs.host += bytes;
    if (br_vec_push(&x->pinned, p))
        return BR_OK;
    x->cu.cuMemFreeHost(p);
    return br_fail(st, BR_E_OOM, "experts: out of memory");
}

/* Expert after expert. A device's address of pinned memory is the host's. */
static br_code
send_all(br_cun *x, const br_gguf_tensor *t, const struct br_nd_mat *m,
         uint64_t each, uint64_t one, br_status *st)
{
    const uint64_t n = t->dim[2], rows = m->sub * 8;
    const br_qinfo *info = br_qinfo_of(t->type);
    const uint64_t bytes = t->dim[0] / info->elems * info->bytes * t->dim[1];

    for (uint64_t e = 0; e < n; e++) {
        const uint64_t at = (uintptr_t)m->q + e * each;
        br_gguf_tensor slice = *t;
        struct br_nd_mat own = *m;

        slice.n_dims = 2;
        slice.dim[2] = 1;
        slice.data = t->data + e * bytes;
        slice.bytes = bytes;
        own.q = (const void *)(uintptr_t)(one ? one : at);
        own.d = m->d + e * rows;
        BR_TRY(cun_send_tiles(x, &slice, &own, 0, 0, st));
        if (one)
            BR_TRY(BR_CU(&x->cu, st,
                         cuMemcpyDtoHAsync((void *)(uintptr_t)at, one, each,
                                           x->cu.stream)));
    }
    return BR_OK;
}

br_code
cun_expert_tiles(cun_planner *p, uint32_t w, uint32_t k)
{
    br_cun *x = p->x;
    const br_gguf_tensor *t = x->v.at[w].t;
    struct br_nd_mat *m = &x->mat[w];
    /* gate and up are asked together; a multiprocessor has two blocks */
    const bool halves =
        p->n->op == BR_IR_MOE_GATE_UP && p->n->bind[2].value != BR_IR_NONE;
    uint64_t each, q = 0, d, one = 0;
    br_code code;

    if (m->q || !cun_asked_as_tiles(x, w))
        return cun_matrix(x, w, p->st);
    each = each_of(x, w);
    *m = (struct br_nd_mat){.kind = form_of(t->type),
                            .n_in = (uint32_t)t->dim[0],
                            .n_out = (uint32_t)t->dim[1],
                            .sub = tiles_of(t->dim[1]) * BR_ND_TILE_ROWS / 8};
    m->block = cun_piece_of(
        BR_MAX((uint64_t)k * tiles_of(t->dim[1]) / (halves ? 1 : 2), 1ull),
        m->n_in / 64);
    BR_TRY(cun_take(x, CUN_MATRICES, &d, t->dim[2] * m->sub * 8 * 4, p->st));
    BR_TRY(cun_zero(x, d, t->dim[2] * m->sub * 8, p->st));
    code = room_for(x, is_one(x, w) ? CUN_MATRICES : CUN_ASKED_TILES,
                    each * t->dim[2], each, !is_one(x, w) && x->far[p->node],
                    &q, &one, p->st);
    m->q = (const void *)(uintptr_t)q;
    m->d = (const float *)(uintptr_t)d;
    if (code == BR_OK)
        code = send_all(x, t, m, each, one, p->st);
    if (code == BR_OK && one)
        code = cun_wait(x, p->st);
    br_cuda_free(&x->cu, one);
    x->weight_bytes += t->bytes / t->dim[2] * k;
    return code;
}

/* ---- launches ----------------------------------------------------------- */

br_code
cun_put_times(cun_planner *p, uint32_t n_times, enum cun_fn fn,
              enum cun_grid grid, uint32_t n, const struct br_nd_args *a)
{
    BR_TRY(cun_add(p, fn, grid, n, a));
    p->x->launches.at[p->x->launches.n - 1].times = n_times;
    return BR_OK;
}

static br_code
put(cun_planner *p, uint32_t w, enum cun_fn fn, enum cun_grid grid, uint32_t n,
    const struct br_nd_args *a)
{
    cun_launch *l;

    BR_TRY(cun_put_times(p, a->e.k, fn, grid, n, a));
    l = &p->x->launches.at[p->x->launches.n - 1];
    l->experts = (uint32_t)p->x->v.at[w].t->dim[2];
    if (fn == CUN_lists)
        l->shared = l->experts * 4;
    return BR_OK;
}

static enum cun_fn
ask_of(uint32_t kind)
{
    return kind == BR_ND_TILES     ? CUN_ask_f16_few
           : kind == BR_ND_PACK_MX ? CUN_ask_mx_few
           : kind > BR_ND_PACK_MX  ? CUN_ask_f8_few
                                   : CUN_ask_pack_few;
}

/* What the pairs read: x, or of a GLU that nobody else wants its two inputs. */
static br_code
gather(cun_planner *p, uint32_t w, const struct br_nd_args *a)
{
    struct br_nd_args glu = *a;

    BR_TRY(put(p, w, CUN_gather, CUN_PLACES, 1, a));
    if (p->node != p->glu.by)
        return BR_OK;
    p->x->launches.at[p->x->launches.n - 1].lone = true;
    /* before any launch of this node that writes: their memory may be its output's */
    glu.x = cun_rows_at((uintptr_t)p->glu.gate, a->x.cols, a->x.cols);
    glu.b = cun_rows_at((uintptr_t)p->glu.up, a->x.cols, a->x.cols);
    glu.act = p->glu.act;
    BR_TRY(put(p, w, CUN_gather, CUN_PLACES, 1, &glu));
    p->x->launches.at[p->x->launches.n - 1].joint = true;
    return BR_OK;
}

/* Does the next node, experts of tiles, alone read all of what this GLU writes? */
static bool
reads_glu(const cun_planner *p, const br_ir_node *next,
          const struct br_nd_args *a)
{
    const br_ir_bind *b = p->n->bind;

    return next->op == BR_IR_MOE_DOWN_ACC &&
           memcmp(&next->bind[0], &b[2], sizeof b[2]) == 0 &&
           cun_asked_as_tiles(p->x, next->bind[1].value) &&
           cun_gone_by(p->x, p->node, p->node + 2) && br_bind_together(&b[0]) &&
           br_bind_together(&b[1]) && br_bind_together(&b[2]) &&
           a->x.stride == a->y.cols && a->x.cols == a->y.cols &&
           a->b.stride == a->y.cols && a->b.cols == a->y.cols &&
           a->y.stride == a->y.cols && (uintptr_t)a->x.p % 16 == 0 &&
           (uintptr_t)a->b.p % 16 == 0;
}

/* A GLU that experts of tiles read: they do it themselves. Where somebody looks at every
 * node it is done as well. */
br_code
cun_experts_glu(cun_planner *p)
{
    const br_ir *g = p->x->v.g;
    const br_ir_node *n = p->n;
    struct br_nd_args a = {.op = BR_ND_GLU,
                           .act = cun_act_of(n),
                           .x = p->in[0],
                           .b = p->in[1],
                           .y = p->out[0]};

    BR_TRY(cun_add(p, CUN_each, CUN_NUMBERS, a.y.cols, &a));
    if (p->node + 1 >= g->n_nodes || !reads_glu(p, n + 1, &a))
        return BR_OK;
    p->x->launches.at[p->x->launches.n - 1].lone = true;
    p->glu = (struct cun_glu_of){a.x.p, a.b.p, a.act, p->node + 1};
    return BR_OK;
}

br_code
cun_ask(cun_planner *p, uint32_t w, const struct br_nd_route *e,
        struct br_nd_rows x, struct br_nd_rows y, const cun_also *also)
{
    const br_cun *c = p->x;
    uint32_t tiles;
    struct br_nd_args a = {.x = x,
                           .y = y,
                           .m = c->mat[w],
                           .e = *e,
                           .xq = (void *)(uintptr_t)c->asked.xq,
                           .xd = (void *)(uintptr_t)c->asked.xd,
                           .lows = c->asked.places / EIGHT};

    if ((uintptr_t)x.p % 16 || x.stride % 4 || x.cols != a.m.n_in)
        return br_fail(p->st, BR_E_INTERNAL, "nodes[%u]: rows stand apart",
                       p->node);
    a.e.rows = a.m.sub * 8;
    tiles = a.part_end[0] = tiles_of(e->first % BR_ND_TILE_ROWS + y.cols);
    if (also) {
        a.part[0] = also->y;
        a.part_end[1] = also->first;
        a.w2.p = (void *)(uintptr_t)c->mat[also->w].q;
        a.w3.p = (void *)(uintptr_t)c->mat[also->w].d;
        tiles += tiles_of(also->first % BR_ND_TILE_ROWS + also->y.cols);
    }
    if (p->listed != e->ids)
        BR_TRY(put(p, w, CUN_lists, CUN_LISTS, 1, &a));
    p->listed = e->ids;
    BR_TRY(gather(p, w, &a));
    return put(p, w, ask_of(a.m.kind), CUN_ASK, tiles, &a);
}

static uint32_t
pieces_of(const struct br_nd_mat *m)
{
    const uint32_t n = (m->n_in / 64 + m->block - 1) / m->block;

    br_assert(n <= BR_ND_PIECES && "see cun_piece_of");
    return n;
}

br_code
cun_ask_one(cun_planner *p, uint32_t w, struct br_nd_rows x,
            struct br_nd_rows y)
{
    /* Launches of rows that want logits have lists of their own. */
    const uint64_t ids =
        p->x->asked.zeros + (p->want ? p->x->c.max_rows * sizeof(int) : 0);
    const struct br_nd_route e = {
        .ids = (int *)(uintptr_t)ids, .stride = 1, .k = 1, .share = 1};

    BR_TRY(cun_expert_tiles(p, w, 1));
    return cun_ask(p, w, &e, x, y, NULL);
}

bool
cun_experts_start(const br_cun *x, const cun_launch *l, uint32_t pairs,
                  br_cuda_launch *how, enum cun_fn *fn, struct br_nd_routed *r)
{
    /* A matrix that all rows pass is read for one of them, or for all together. */
    const bool alone = pairs <= (l->experts > 1 ? BR_ND_ASK_ALONE : 1u);
    const uint32_t tokens =
        alone ? (uint32_t)BR_ND_ASK_FEW : tokens_of(pairs, l->experts);

    *r = (struct br_nd_routed){
        .a = l->a,
        .l = {.pair = alone ? NULL : (void *)(uintptr_t)x->asked.pair,
              .part = (void *)(uintptr_t)x->asked.part,
              .n = (void *)(uintptr_t)x->asked.n,
              .n_experts = l->experts,
              .tokens = tokens,
              .segs = 1}};
    switch ((enum cun_grid)l->grid) {
    case CUN_PLACES:
        how->gx = alone ? pairs : most_places(pairs, l->experts);
        break;
    case CUN_ASK:
        if (alone)
            r->l.segs = pieces_of(&l->a.m);
        how->gx =
            alone ? pairs * r->l.segs : most_parts(pairs, l->experts, tokens);
        how->gy = l->x;
        *fn += tokens == BR_ND_ASK_FEW ? 0 : tokens == BR_ND_ASK_SOME ? 1 : 2;
        break;
    default: return !alone; /* lists */
    }
    return true;
}
