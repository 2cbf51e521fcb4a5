/* cuda_room.c - what a model has on a device beside its matrices.
 *
 *   vectors    of the model, and constants of the graph
 *   values     what nodes write and read
 *   block      what a step brings (cuda_nodes.c)
 *   scratch    rows as a product reads them; what stands apart, together
 *   states     of slots, and pages of keys and values
 *
 * Laid out twice: a first time in no memory at all (br_cun.counts), so that what does
 * not fit is said before anything is taken (cuda_fit.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "nodes of the graph: out of memory");
}

static br_code
zeroed(br_cun *x, uint64_t *p, uint64_t numbers, br_status *st)
{
    BR_TRY(cun_alloc(x, p, (numbers + 1) * 4, st));
    return cun_zero(x, *p, numbers + 1, st);
}

/* Vectors of the model and constants of the graph, which are on the host. */
static br_code
send_vectors(br_cun *x, br_status *st)
{
    for (uint32_t v = 0; v < x->v.g->n_values; v++) {
        br_value_mem *m = &x->v.at[v];
        const br_ir_value *value = &x->v.g->values[v];
        uint64_t p, n = 1;

        if (!m->p || value->kind != BR_IK_MODEL)
            continue;
        for (int i = 0; i < value->rank; i++)
            n *= (uint64_t)value->dim[i];
        BR_TRY(cun_alloc(x, &p, n * 4, st));
        BR_TRY(cun_put(x, p, m->p, n * 4, st));
        m->p = (void *)(uintptr_t)p;
    }
    return BR_OK;
}

/* Memory for values, for br_values_place. */
static float *
place(void *ctx, size_t cols, size_t rows)
{
    br_cun *x = ctx;
    uint64_t p;

    if (zeroed(x, &p, (uint64_t)cols * rows, NULL) != BR_OK)
        return NULL;
    if (rows == x->c.max_rows)
        x->costs.row += cols * sizeof(float);
    return (void *)(uintptr_t)p;
}

static br_code
find_ends(br_cun *x, br_status *st)
{
    const br_ir *g = x->v.g;

    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_ir_node *n = &g->nodes[i];
        cun_embed *e = x->embed;

        if (n->op == BR_IR_LM_HEAD && !x->hidden_rows &&
            !cun_tiled(x, n->bind[1].value))
            BR_TRY(zeroed(
                x, &x->hidden_rows,
                (uint64_t)x->v.at[n->bind[0].value].cols * x->c.max_want, st));
        if (n->op != BR_IR_EMBED || cun_has_rows(x, n->bind[1].value))
            continue;
        while (e < x->embed + x->n_embeds && e->value != n->bind[1].value)
            e++;
        if (e == x->embed + CUN_EMBEDS)
            return br_fail(st, BR_E_LIMIT, "more than %d tables of rows",
                           CUN_EMBEDS);
        e->value = n->bind[1].value;
        e->t = x->v.at[e->value].t;
        e->cols = (uint32_t)e->t->dim[0];
        x->n_embeds = BR_MAX(x->n_embeds, (uint32_t)(e - x->embed) + 1);
    }
    return BR_OK;
}

static br_code
make_block(br_cun *x, br_status *st)
{
    const uint32_t rows = x->c.max_rows, groups = x->v.plan.n_groups;
    cun_place *a = &x->at;
    size_t n = 0;

    x->table_n = x->c.n_ctx / BR_PAGE_TOKENS + 2;
    a->slot = n, n += rows * 4ull;
    a->position = n, n += rows * 4ull;
    a->token = n, n += rows * 4ull;
    a->want = n, n += rows * 4ull;
    a->tile = n, n += rows * sizeof(struct br_nd_tile);
    a->at = n, n += 4ull * rows * groups;
    a->tables = n;
    n += 4ull * x->table_n * groups * x->c.n_slots;
    for (uint32_t i = 0; i < x->n_embeds; i++) {
        x->embed[i].rows = n = (n + 63) / 64 * 64;
        n += 4ull * rows * x->embed[i].cols;
    }
    a->total = n;
    x->costs.row += n / rows;
    if (x->dev)
        x->stage = br_try_calloc(a->total, 1);
    else if (!x->counts)
        BR_TRY(BR_CU(&x->cu, st, cuMemAllocHost((void **)&x->stage, a->total)));
    x->last = br_try_calloc(x->c.n_slots, sizeof *x->last);
    x->first = br_try_calloc(x->c.n_slots, sizeof *x->first);
    if (!x->last || !x->first || (!x->stage && !x->counts))
        return no_memory(st);
    BR_TRY(cun_shared(x, &x->block, a->total, st));
    if (!x->dev)
        BR_TRY(cun_alloc(x, &x->stay.state, sizeof(struct br_stay_state), st));
    return cun_open_tables(x, st);
}

static br_code
make_scratch(br_cun *x, br_status *st)
{
    const uint64_t rows = BR_MAX(x->c.max_rows, x->c.max_want);
    uint64_t k = 256;
    bool apart[BR_IR_MAX_BINDINGS] = {false};

    for (uint32_t i = 0; i < x->v.g->n_nodes; i++)
        for (int b = 0; b < BR_IR_MAX_BINDINGS; b++) {
            const br_ir_bind *bind = &x->v.g->nodes[i].bind[b];
            apart[b] = apart[b] ||
                       (bind->value != BR_IR_NONE && !br_bind_together(bind));
        }
    for (uint32_t v = 0; v < x->v.g->n_values; v++)
        if (x->v.at[v].t) {
            const br_gguf_tensor *t = x->v.at[v].t;

            k = BR_MAX(k, t->dim[0]);
            x->all_bytes += t->bytes;
        }
    for (int b = 0; b < BR_IR_MAX_BINDINGS; b++)
        if (apart[b])
            x->costs.row += (uint64_t)x->v.apart * sizeof(float);
    for (int b = 0; b < BR_IR_MAX_BINDINGS; b++)
        if (apart[b])
            BR_TRY(zeroed(x, &x->gather[b], (uint64_t)x->v.apart * rows, st));
    k = BR_MAX(k, cun_experts_need(x));
    x->costs.row += k * 2 + k / 32 * 4; /* xq, xd */
    BR_TRY(cun_experts_room(x, st));
    if (x->v.plan.slot_elems)
        BR_TRY(zeroed(x, &x->slots, x->v.plan.slot_elems * x->c.n_slots, st));
    x->padded = (uint32_t)(rows + BR_ND_WIDE_TOKENS + BR_ND_TILE_TOKENS - 1) /
                BR_ND_TILE_TOKENS * BR_ND_TILE_TOKENS;
    BR_TRY(zeroed(x, &x->xq, k * x->padded / 2, st)); /* F16 at most */
    BR_TRY(zeroed(x, &x->xd, k / 32 * x->padded, st));
    if (!x->dev) {
        BR_TRY(cun_alloc(x, &x->ones, x->padded * 4ull, st));
        if (!x->counts)
            BR_TRY(br_cuda_fill(&x->cu, x->ones, 0x3f800000, x->padded, st));
    }
    x->costs.states = x->v.plan.slot_elems * x->c.n_slots * 4;
    for (uint32_t g = 0; g < x->v.plan.n_groups; g++) {
        const uint64_t numbers = x->v.plan.group[g].page_elems *
                                 x->c.n_pages[g] / (x->c.exact ? 1 : 2);

        BR_TRY(zeroed(x, &x->pool[g], numbers, st));
        x->costs.pages += numbers * 4;
    }
    return BR_OK;
}

br_code
cun_bind(br_cun *x, const br_model *m, const br_ir *g, br_status *st)
{
    BR_TRY(br_values_bind(&x->v, &x->arena, m, g, st));
    x->mat = br_arena_new(&x->arena, struct br_nd_mat, g->n_values + 1);
    if (!x->mat)
        return no_memory(st);
    BR_TRY(cun_experts_find(x, st));
    return cun_check_rows(x, st);
}

br_code
cun_lay_out(br_cun *x, br_status *st)
{
    br_values_config vc = {.max_rows = x->c.max_rows,
                           .max_want = x->c.max_want,
                           .tight = true,
                           .place = place,
                           .aside = cun_experts_aside,
                           .ctx = x};
    uint64_t logits;

    BR_TRY(send_vectors(x, st));
    BR_TRY(cun_shared(x, &logits,
                      (uint64_t)x->v.at[x->v.logits].cols * x->c.max_want * 4,
                      st));
    x->v.at[x->v.logits].p = (void *)(uintptr_t)logits;
    BR_TRY(br_values_place(&x->v, &x->arena, &vc, st));
    BR_TRY(find_ends(x, st));
    BR_TRY(make_block(x, st));
    return make_scratch(x, st);
}

void
cun_forget(br_cun *x)
{
    br_values_fini(&x->v);
    br_arena_fini(&x->arena);
    br_vec_fini(&x->fresh);
    br_free(x->listed);
    br_free(x->last);
    br_free(x->first);
}

br_code
cun_count_first(const br_cun *x, const br_model *m, const br_ir *g,
                br_status *st)
{
    br_cun y = {
        .counts = true, .cu = x->cu, .c = x->c, .plain = x->plain}; /* its cu */
    br_code code;

    br_arena_init(&y.arena, 0);
    code = cun_bind(&y, m, g, st);
    if (code == BR_OK)
        code = cun_lay_out(&y, st);
    if (code == BR_OK)
        code = cun_fit(&y, st);
    cun_forget(&y);
    return code;
}
