/* cuda_nodes.c - see cuda_nodes.h.
 *
 * Everything that launches read is on the device before the first step:
 * weights, values, pages, scratch. A step sends one block (slots, positions,
 * page tables, the rows of the embedding table, dequantised here) and fetches
 * logits:
 *
 *   block   slot | position | want | at [row][group] | tables | rows
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"

#include "base/thread.h"
#include "model/quant.h"

#include <string.h>

extern const char br_ptx_nodes[];

static const char *const names[CUN_COUNT] = {
#define K(name) "br_nd_" #name,
#include "drv/cuda/cuda_nodes.def"
#undef K
};

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "tier cuda: out of memory");
}

br_code
cun_alloc(br_cun *x, uint64_t *p, size_t bytes, br_status *st)
{
    BR_TRY(br_cuda_alloc(&x->cu, p, bytes, st));
    if (br_vec_push(&x->held, *p))
        return BR_OK;
    br_cuda_free(&x->cu, *p);
    *p = 0;
    return no_memory(st);
}

/* ---- opening ------------------------------------------------------------ */

static br_code
zeroed(br_cun *x, uint64_t *p, uint64_t numbers, br_status *st)
{
    BR_TRY(cun_alloc(x, p, (numbers + 1) * 4, st));
    return BR_CU(&x->cu, st, cuMemsetD32(*p, 0, numbers + 1));
}

static br_code
open_kernels(br_cun *x, br_status *st)
{
    BR_TRY(br_cuda_open(&x->cu, 0, st));
    BR_TRY(br_cuda_module(&x->cu, &x->mod, "nodes", br_ptx_nodes, st));
    for (int i = 0; i < CUN_COUNT; i++)
        BR_TRY(BR_CU(&x->cu, st,
                     cuModuleGetFunction(&x->fn[i], x->mod, names[i])));
    return BR_CU(&x->cu, st,
                 cuFuncSetAttribute(x->fn[CUN_flash_128], BR_CU_FUNC_DYN_SHARED,
                                    BR_ND_WARPS * 16 * 128 * 4));
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
        BR_TRY(BR_CU(&x->cu, st, cuMemcpyHtoD(p, m->p, n * 4)));
        m->p = (void *)(uintptr_t)p;
    }
    return BR_OK;
}

/* Memory for values, for br_values_place. */
static float *
place(void *ctx, size_t n)
{
    br_cun *x = ctx;
    uint64_t p;

    if (zeroed(x, &p, n, NULL) != BR_OK)
        return NULL;
    return (void *)(uintptr_t)p;
}

static br_code
find_ends(br_cun *x, br_status *st)
{
    const br_ir *g = x->v.g;

    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_ir_node *n = &g->nodes[i];
        cun_embed *e = x->embed;

        if (n->op == BR_IR_LM_HEAD && !x->hidden_rows)
            BR_TRY(zeroed(
                x, &x->hidden_rows,
                (uint64_t)x->v.at[n->bind[0].value].cols * x->c.max_want, st));
        if (n->op != BR_IR_EMBED)
            continue;
        while (e < x->embed + x->n_embeds && e->value != n->bind[1].value)
            e++;
        if (e == x->embed + CUN_EMBEDS)
            return br_fail(st, BR_E_LIMIT, "tier cuda: more than %d tables",
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
    a->want = n, n += rows * 4ull;
    a->at = n, n += 4ull * rows * groups;
    a->tables = n;
    n += 4ull * x->table_n * groups * BR_MIN(rows, x->c.n_slots);
    for (uint32_t i = 0; i < x->n_embeds; i++) {
        x->embed[i].rows = n = (n + 63) / 64 * 64;
        n += 4ull * rows * x->embed[i].cols;
    }
    a->total = n;
    x->stage = br_try_calloc(a->total, 1);
    x->seen = br_try_calloc(x->c.n_slots, sizeof *x->seen);
    x->last = br_try_calloc(x->c.n_slots, sizeof *x->last);
    if (!x->stage || !x->seen || !x->last)
        return no_memory(st);
    return cun_alloc(x, &x->block, a->total, st);
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
            BR_TRY(zeroed(x, &x->gather[b], (uint64_t)x->v.apart * rows, st));
    x->padded = (uint32_t)rows + BR_ND_WIDE;
    BR_TRY(zeroed(x, &x->xq, k * x->padded, st)); /* BF16, twice */
    BR_TRY(zeroed(x, &x->xd, k / 32 * x->padded, st));
    for (uint32_t g = 0; g < x->v.plan.n_groups; g++)
        BR_TRY(zeroed(x, &x->pool[g],
                      x->v.plan.group[g].page_elems * x->c.n_pages[g] /
                          (x->c.exact ? 1 : 2),
                      st));
    return BR_OK;
}

static br_code
open_all(br_cun *x, const br_model *m, const br_ir *g, br_status *st)
{
    br_values_config vc = {.max_rows = x->c.max_rows, .place = place, .ctx = x};

    BR_TRY(br_values_bind(&x->v, &x->arena, m, g, st));
    if (x->v.plan.slot_elems)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "tier cuda does not run recurrent layers yet");
    x->mat = br_arena_new(&x->arena, struct br_nd_mat, g->n_values + 1);
    if (!x->mat)
        return no_memory(st);
    BR_TRY(open_kernels(x, st));
    BR_TRY(send_vectors(x, st));
    BR_TRY(br_values_place(&x->v, &x->arena, &vc, st));
    BR_TRY(find_ends(x, st));
    BR_TRY(make_block(x, st));
    BR_TRY(make_scratch(x, st));
    return cun_plan(x, st);
}

br_code
br_cun_open(br_cun **out, const br_model *m, const br_ir *g,
            const br_cun_config *c, br_status *st)
{
    br_cun *x = br_try_calloc(1, sizeof *x);
    br_code code;

    *out = NULL;
    if (!x)
        return no_memory(st);
    br_assert(c->max_rows > 0 && c->max_want > 0 && c->n_slots > 0);
    br_arena_init(&x->arena, 0);
    x->c = *c;
    code = open_all(x, m, g, st);
    if (code != BR_OK) {
        br_cun_close(x);
        return code;
    }
    *out = x;
    return BR_OK;
}

void
br_cun_close(br_cun *x)
{
    if (!x)
        return;
    if (x->cu.ctx) {
        (void)x->cu.cuCtxSetCurrent(x->cu.ctx);
        for (size_t i = 0; i < x->held.n; i++)
            br_cuda_free(&x->cu, x->held.at[i]);
        if (x->mod)
            x->cu.cuModuleUnload(x->mod);
    }
    br_cuda_close(&x->cu);
    br_vec_fini(&x->held);
    br_vec_fini(&x->launches);
    br_values_fini(&x->v);
    br_arena_fini(&x->arena);
    br_free(x->stage);
    br_free(x->seen);
    br_free(x->last);
    br_free(x->hidden);
    br_free(x->watched);
    br_free(x);
}

void
br_cun_watch(br_cun *x, const br_watch *w)
{
    x->watch = w ? *w : (br_watch){0};
}

uint64_t
br_cun_weight_bytes(const br_cun *x)
{
    return x->weight_bytes;
}

void
br_cun_work(const br_cun *x, uint64_t *weight_bytes, uint64_t *kv_bytes)
{
    *weight_bytes = x->weight_bytes * x->steps;
    *kv_bytes = x->kv_bytes;
}

const char *
br_cun_device(const br_cun *x)
{
    return x->cu.device_name;
}

double
br_cun_probe(br_cun *x)
{
    enum { BYTES = 1 << 30 };
    br_cuda *cu = &x->cu;
    uint64_t p = 0;
    int64_t least = INT64_MAX;

    if (cu->cuMemAlloc(&p, 2ull * BYTES))
        return 0;
    for (int i = 0; i < 4; i++) {
        int64_t t0 = br_now_ns();
        bool bad =
            cu->cuMemcpyDtoD(p, p + BYTES, BYTES) || cu->cuCtxSynchronize();

        least = bad ? INT64_MAX : BR_MIN(least, br_now_ns() - t0);
    }
    cu->cuMemFree(p);
    return least == INT64_MAX ? 0 : 2.0 * BYTES / (double)least;
}

/* Keys and values that the rows of a step see, each once. */
static void
count_work(br_cun *x, const br_step *step)
{
    x->steps++;
    for (uint32_t g = 0; g < x->v.plan.n_groups; g++) {
        const br_kv_group *k = &x->v.plan.group[g];
        const uint64_t each =
            k->page_elems / BR_PAGE_TOKENS * (x->c.exact ? 4 : 2);

        for (uint32_t t = 0; t < step->n_rows; t++) {
            const uint64_t n = (uint64_t)step->position[t] + 1;

            if (x->last[step->slot[t]] == step->position[t])
                x->kv_bytes +=
                    each * (k->window ? BR_MIN(n, (uint64_t)k->window) : n);
        }
    }
}

/* ---- a step ------------------------------------------------------------- */

static br_code
check_step(const br_cun *x, const br_step *step, uint32_t *n_want,
           br_status *st)
{
    if (step->n_rows > x->c.max_rows)
        return br_fail(st, BR_E_LIMIT, "step: %u rows, prepared for %u",
                       step->n_rows, x->c.max_rows);
    *n_want = 0;
    for (uint32_t t = 0; t < step->n_rows; t++)
        *n_want += !step->want || step->want[t];
    if (*n_want > x->c.max_want)
        return br_fail(st, BR_E_LIMIT,
                       "step: %u rows want logits, prepared for %u", *n_want,
                       x->c.max_want);
    BR_TRY(br_step_check(step, x->v.m->hp.n_vocab, x->c.n_slots,
                         x->v.plan.n_groups, st));
    for (uint32_t t = 0; t < step->n_rows; t++)
        if ((uint32_t)step->position[t] / BR_PAGE_TOKENS >= x->table_n)
            return br_fail(st, BR_E_LIMIT, "step row %u: position %d of %u", t,
                           step->position[t], x->c.n_ctx);
    return BR_OK;
}

/* The slots' page lists, each once, as far as their last position. A page that
 * the slot has given back (behind a window) is not looked at: 0. */
static size_t
stage_tables(br_cun *x, const br_step *step)
{
    const uint32_t groups = x->v.plan.n_groups;
    uint32_t *at = (void *)(x->stage + x->at.at);
    uint32_t *tables = (void *)(x->stage + x->at.tables);
    uint32_t n = 0;

    for (uint32_t t = 0; t < step->n_rows; t++)
        x->seen[step->slot[t]] = x->last[step->slot[t]] = -1;
    for (uint32_t t = 0; t < step->n_rows; t++)
        x->last[step->slot[t]] =
            BR_MAX(x->last[step->slot[t]], step->position[t]);
    for (uint32_t t = 0; t < step->n_rows; t++) {
        const int32_t slot = step->slot[t];
        const uint32_t pages = (uint32_t)x->last[slot] / BR_PAGE_TOKENS + 1;

        if (x->seen[slot] < 0) {
            x->seen[slot] = (int32_t)n;
            for (uint32_t g = 0; g < groups; g++, n += pages)
                for (uint32_t i = 0; i < pages; i++) {
                    const uint32_t page =
                        step->pages[(uint32_t)slot * groups + g][i];

                    tables[n + i] = page < x->c.n_pages[g] ? page : 0;
                }
        }
        for (uint32_t g = 0; g < groups; g++)
            at[t * groups + g] = (uint32_t)x->seen[slot] + g * pages;
    }
    return n;
}

/* The tokens' rows of a table. */
static br_code
send_rows(br_cun *x, const cun_embed *e, const br_step *step, br_status *st)
{
    const br_qinfo *q = br_qinfo_of(e->t->type);
    const size_t bytes = e->cols / q->elems * q->bytes;
    float *out = (void *)(x->stage + e->rows);

    for (uint32_t t = 0; t < step->n_rows; t++)
        br_dequant(e->t->type, e->t->data + (size_t)step->token[t] * bytes,
                   out + (size_t)t * e->cols, e->cols);
    return BR_CU(&x->cu, st,
                 cuMemcpyHtoD(x->block + e->rows, out,
                              (size_t)step->n_rows * e->cols * 4));
}

static br_code
send_step(br_cun *x, const br_step *step, br_status *st)
{
    const uint32_t rows = step->n_rows;
    int32_t *want = (void *)(x->stage + x->at.want);
    size_t n;

    memcpy(x->stage + x->at.slot, step->slot, rows * 4ull);
    memcpy(x->stage + x->at.position, step->position, rows * 4ull);
    for (uint32_t t = 0; t < rows; t++)
        if (!step->want || step->want[t])
            *want++ = (int32_t)t;
    n = stage_tables(x, step);
    BR_TRY(BR_CU(&x->cu, st,
                 cuMemcpyHtoD(x->block, x->stage, x->at.tables + n * 4)));
    for (uint32_t i = 0; i < x->n_embeds; i++)
        BR_TRY(send_rows(x, &x->embed[i], step, st));
    return BR_OK;
}

/* The kernel of a product for so many rows, and its tiles. */
static enum cun_fn
mma_tiles(const cun_launch *l, uint32_t rows, uint32_t *gx, uint32_t *gy)
{
    static const struct tiles {
        uint32_t most, tokens, weights; /* rows of a step; of a block */
        enum cun_fn fn;
    } floats[] = {{8, 8, 16, CUN_mma_8},
                  {16, 16, 16, CUN_mma_16},
                  {64, BR_ND_WIDE, 16, CUN_mma_32},
                  {UINT32_MAX, BR_ND_WIDE, BR_ND_MANY_ROWS, CUN_mma_many}},
      ints[] = {{8, 8, 32, CUN_imma_8},
                {UINT32_MAX, BR_ND_WIDE, 32, CUN_imma_32}};
    const struct tiles *k = l->fn == CUN_imma_8 ? ints : floats;

    while (rows > k->most)
        k++;
    *gx = (rows + k->tokens - 1) / k->tokens;
    *gy = (l->x + k->weights - 1) / k->weights;
    return k->fn;
}

static br_code
start(br_cun *x, cun_launch *l, uint32_t rows, br_status *st)
{
    uint32_t gx = l->x, gy = 1;
    enum cun_fn fn = l->fn;

    if (rows == 0)
        return BR_OK;
    l->a.n_rows = rows;
    switch ((enum cun_grid)l->grid) {
    case CUN_NUMBERS:
        gx = (uint32_t)(((uint64_t)l->x * rows + 255) / 256);
        break;
    case CUN_ROWS: gy = rows; break;
    case CUN_TILES: gy = (rows + BR_ND_TILE - 1) / BR_ND_TILE; break;
    case CUN_MMA: fn = mma_tiles(l, rows, &gx, &gy); break;
    case CUN_QUERIES: gy = rows; break; /* most leave at once */
    }
    return BR_CU(&x->cu, st,
                 cuLaunchKernel(x->fn[fn], gx, gy, 1, BR_ND_WARPS * 32, 1, 1,
                                l->shared, x->cu.stream, (void *[]){&l->a},
                                NULL));
}

/* What the node wrote, to whoever looks. */
static br_code
show(br_cun *x, const cun_launch *l, uint32_t rows, br_status *st)
{
    const br_ir_node *n = &x->v.g->nodes[l->node];
    const br_value_mem *v;
    size_t bytes;

    if (n->n_out == 0)
        return BR_OK;
    v = &x->v.at[n->bind[n->n_in].value];
    bytes = (size_t)v->cols * rows * 4;
    br_free(x->watched);
    x->watched = br_try_alloc(bytes + 1);
    if (!x->watched)
        return no_memory(st);
    BR_TRY(BR_CU(&x->cu, st, cuStreamSynchronize(x->cu.stream)));
    BR_TRY(BR_CU(&x->cu, st, cuMemcpyDtoH(x->watched, (uintptr_t)v->p, bytes)));
    x->watch.seen(x->watch.ctx, l->node, x->watched, v->cols, rows);
    return BR_OK;
}

br_code
br_cun_step(br_cun *x, const br_step *step, float *logits, br_status *st)
{
    const br_value_mem *v = &x->v.at[x->v.logits];
    uint32_t n_want = 0;

    BR_TRY(check_step(x, step, &n_want, st));
    BR_TRY(BR_CU(&x->cu, st, cuCtxSetCurrent(x->cu.ctx)));
    BR_TRY(send_step(x, step, st));
    for (size_t i = 0; i < x->launches.n; i++) {
        cun_launch *l = &x->launches.at[i];
        const uint32_t rows = l->want ? n_want : step->n_rows;

        BR_TRY(start(x, l, rows, st));
        if (x->watch.seen && l->last)
            BR_TRY(show(x, l, rows, st));
    }
    BR_TRY(BR_CU(&x->cu, st, cuStreamSynchronize(x->cu.stream)));
    x->n_rows = step->n_rows;
    count_work(x, step);
    if (!logits || n_want == 0)
        return BR_OK;
    return BR_CU(&x->cu, st,
                 cuMemcpyDtoH(logits, (uintptr_t)v->p,
                              (size_t)v->cols * n_want * sizeof *logits));
}

const float *
br_cun_hidden(br_cun *x)
{
    const br_value_mem *v;
    size_t bytes;

    if (x->v.hidden == BR_IR_NONE)
        return NULL;
    v = &x->v.at[x->v.hidden];
    bytes = (size_t)v->cols * x->n_rows * 4;
    if (!x->hidden)
        x->hidden = br_try_alloc((size_t)v->cols * x->c.max_rows * 4);
    if (!x->hidden || x->cu.cuCtxSetCurrent(x->cu.ctx) ||
        x->cu.cuMemcpyDtoH(x->hidden, (uintptr_t)v->p, bytes))
        return NULL;
    return x->hidden;
}
