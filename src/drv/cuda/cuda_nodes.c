/* cuda_nodes.c - see cuda_nodes.h.
 *
 * Everything that launches read is on the device before the first step:
 * weights, values, pages, scratch. A step sends one block (slots, positions,
 * tokens, page tables, and rows of tables of packed numbers, dequantised here)
 * and fetches logits:
 *
 *   block   slot | position | token | want | at [row][group] | tables | rows
 *
 * A step of few rows, all of which want logits, is one launch of a graph, made
 * when so many rows are seen first: nothing else of a launch changes from step
 * to step.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"

#include "base/thread.h"
#include "model/quant.h"

#include <string.h>

extern const char br_ptx_nodes[], br_ptx_experts[], br_ptx_portable[];
extern const char br_cubin_nodes[], br_cubin_experts[];

static const struct kernel {
    const char *name;
    uint32_t threads, shared;
    bool waits; /* for the launch before, itself */
} kernels[CUN_COUNT] = {
#define K(name)                  {"br_nd_" #name, BR_ND_WARPS * 32, 0, false},
#define W(name)                  {"br_nd_" #name, BR_ND_WARPS * 32, 0, true},
#define T(name, threads, shared) {"br_nd_" #name, threads, shared, true},
#include "drv/cuda/cuda_nodes.def"
#define K(name)                  {"br_nd_" #name, BR_ND_WARPS * 32, 0, false},
#define W(name)                  {"br_nd_" #name, BR_ND_WARPS * 32, 0, true},
#define T(name, threads, shared) {"br_nd_" #name, threads, shared, true},
#include "drv/cuda/cuda_experts.def"
};

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "nodes of the graph: out of memory");
}

/* ---- opening ------------------------------------------------------------ */

/* Of nodes.cu without what sm_90 alone has; what is not there is not launched. */
static br_code
open_portable(br_cun *x, br_status *st)
{
    BR_TRY(
        br_cuda_module(&x->cu, &x->mod, "nodes_portable", br_ptx_portable, st));
    for (int i = 0; i <= CUN_gated; i++)
        if (i != CUN_imma_8 && i != CUN_imma_32)
            BR_TRY(
                BR_CU(&x->cu, st,
                      cuModuleGetFunction(&x->fn[i], x->mod, kernels[i].name)));
    return BR_OK;
}

static br_code
open_kernels(br_cun *x, br_status *st)
{
    if (x->dev)
        return BR_OK;
    if (x->plain)
        return open_portable(x, st);
    BR_TRY(br_cuda_module(&x->cu, &x->mod, "nodes",
                          br_cuda_image(&x->cu, br_ptx_nodes, br_cubin_nodes),
                          st));
    if (x->has_experts)
        BR_TRY(br_cuda_module(
            &x->cu, &x->experts_mod, "experts",
            br_cuda_image(&x->cu, br_ptx_experts, br_cubin_experts), st));
    for (int i = 0; i < (x->has_experts ? CUN_COUNT : CUN_EXPERTS); i++) {
        BR_TRY(BR_CU(&x->cu, st,
                     cuModuleGetFunction(
                         &x->fn[i], i < CUN_EXPERTS ? x->mod : x->experts_mod,
                         kernels[i].name)));
        const uint32_t most = BR_MAX(kernels[i].shared, BR_ND_SPREAD_SHARED);

        BR_TRY(br_cuda_all_shared(&x->cu, x->fn[i], st));
        if (kernels[i].shared > 48 << 10)
            BR_TRY(BR_CU(&x->cu, st,
                         cuFuncSetAttribute(x->fn[i], BR_CU_FUNC_DYN_SHARED,
                                            (int)most)));
    }
    for (int i = CUN_flash_few_64; i <= CUN_flash_stay_turn_64; i++)
        BR_TRY(BR_CU(&x->cu, st,
                     cuFuncSetAttribute(x->fn[i], BR_CU_FUNC_DYN_SHARED,
                                        BR_ND_STAY_SHARED)));
    return BR_OK;
}

/* Without tensor cores a chunk of 2048 tokens of 8B, 3e13 operations, is minutes on a
 * small card, and more where the device is emulated. */
enum { SLOW_TIMEOUT_S = 3600 };

static br_code
open_all(br_cun *x, const br_model *m, const br_ir *g, br_status *st)
{
    bool known;

    if (!x->dev)
        BR_TRY(br_cuda_open(&x->cu, 0, st));
    x->plain = x->dev || x->cu.major < 9;
    x->cu.limit = x->c.memory;
    x->cu.timeout_s = x->c.timeout_s;
    if (!x->cu.timeout_s && cun_exact_form(x))
        x->cu.timeout_s = SLOW_TIMEOUT_S;
    if (!x->dev)
        BR_TRY(cun_count_first(x, m, g, st));
    BR_TRY(cun_bind(x, m, g, st));
    BR_TRY(open_kernels(x, st));
    BR_TRY(cun_lay_out(x, st));
    BR_TRY(cun_open_stay(x, st));
    x->tile_rows = BR_ND_QUERIES;
    x->costs.load_ns = (uint64_t)br_now_ns();
    if (!x->dev)
        BR_TRY(br_cuda_upload_new(&x->upload, &x->cu, st));
    BR_TRY(cun_plan(x, st));
    BR_TRY(cun_wait(x, st)); /* for what unpacks matrices */
    br_cuda_upload_free(x->upload);
    x->upload = NULL;
    BR_TRY(cun_dense(x, st));
    x->costs.load_ns = (uint64_t)br_now_ns() - x->costs.load_ns;
    if (!x->dev) {
        br_cuda_says(&x->cu, true);
        return BR_OK;
    }
    BR_TRY(
        x->dev->ops->begin(x->dev, (br_nd_key){0}, x->launches.n, &known, st));
    x->opened = x->dev->stats;
    return BR_OK;
}

br_code
br_cun_open(br_cun **out, const br_model *m, const br_ir *g,
            const br_cun_config *c, br_status *st)
{
    br_cun *x = br_try_calloc(1, sizeof *x);
    br_code code;

    *out = NULL;
    if (!x && c->dev)
        c->dev->ops->close(c->dev);
    if (!x)
        return no_memory(st);
    x->dev = c->dev;
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

/* What it has of the device, and memory that the device sees. */
static void
give_back(br_cun *x)
{
    for (size_t i = 0; i < 2 * BR_COUNT(x->graph[0]); i++) {
        void *g = x->graph[i % 2][i / 2];

        if (g)
            x->cu.cuGraphExecDestroy(g);
    }
    cun_close_stay(x);
    for (size_t i = 0; i < x->held.n; i++)
        br_cuda_free(&x->cu, x->held.at[i]);
    for (size_t i = 0; i < x->pinned.n; i++)
        x->cu.cuMemFreeHost(x->pinned.at[i]);
    br_cuda_free(&x->cu, x->raw);
    if (x->stage)
        x->cu.cuMemFreeHost(x->stage);
    if (x->pick_stage)
        x->cu.cuMemFreeHost(x->pick_stage);
    if (x->pick_mod)
        x->cu.cuModuleUnload(x->pick_mod);
    if (x->mod)
        x->cu.cuModuleUnload(x->mod);
    if (x->experts_mod)
        x->cu.cuModuleUnload(x->experts_mod);
}

/* Of a device that does not answer nothing is asked. */
void
br_cun_close(br_cun *x)
{
    if (!x)
        return;
    if (x->cu.ctx)
        br_cuda_says(&x->cu, false); /* what is given back waits for all */
    if (x->cu.ctx && !br_cuda_hung(&x->cu)) {
        (void)x->cu.cuCtxSetCurrent(x->cu.ctx);
        cun_leave(x);
        (void)!br_cuda_wait(&x->cu, NULL); /* it looks at our memory */
    }
    br_cuda_upload_free(x->upload);
    if (x->cu.ctx && !br_cuda_hung(&x->cu))
        give_back(x);
    if (x->dev) {
        x->dev->ops->close(x->dev);
        br_free(x->stage);
    }
    br_cuda_close(&x->cu);
    br_vec_fini(&x->held);
    br_vec_fini(&x->pinned);
    br_vec_fini(&x->launches);
    cun_forget(x);
    br_free(x->hidden);
    br_free(x->watched);
    br_free(x);
}

void
br_cun_watch(br_cun *x, const br_watch *w)
{
    cun_leave(x);
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
    *weight_bytes = x->weight_bytes * x->steps - x->spared * x->few_steps;
    *kv_bytes = x->kv_bytes;
}

const char *
br_cun_device(const br_cun *x)
{
    return x->dev ? x->dev->name : x->cu.device_name;
}

const br_nd_dev *
br_cun_dev(const br_cun *x)
{
    return x->dev;
}

static uint64_t
slot_at(const br_cun *x, uint32_t slot)
{
    br_assert(slot < x->c.n_slots);
    return x->slots + x->v.plan.slot_elems * 4 * slot;
}

void
br_cun_slot_reset(br_cun *x, uint32_t slot)
{
    const uint64_t n = x->v.plan.slot_elems;

    if (n)
        cun_leave(x);
    x->lost |= n && (cun_use(x, NULL) != BR_OK ||
                     cun_zero(x, slot_at(x, slot), n, NULL) != BR_OK);
}

void
br_cun_slot_save(br_cun *x, uint32_t slot, float *out)
{
    const uint64_t n = x->v.plan.slot_elems;

    if (n)
        cun_leave(x);
    x->lost |= n && (cun_use(x, NULL) != BR_OK ||
                     cun_get(x, out, slot_at(x, slot), n * 4, NULL) != BR_OK);
}

void
br_cun_slot_restore(br_cun *x, uint32_t slot, const float *from)
{
    const uint64_t n = x->v.plan.slot_elems;

    if (n)
        cun_leave(x);
    x->lost |= n && (cun_use(x, NULL) != BR_OK ||
                     cun_put(x, slot_at(x, slot), from, n * 4, NULL) != BR_OK);
}

/* Keys and values that the rows of a step see, each once. */
static void
count_work(br_cun *x, const br_step *step)
{
    x->steps++;
    x->few_steps += step->n_rows <= CUN_GRAPHS;
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

/* The kernel of a product of integers for so many rows, and its tiles. */
static enum cun_fn
mma_tiles(const cun_launch *l, uint32_t rows, uint32_t *gx, uint32_t *gy)
{
    const uint32_t tokens = rows > 8 ? BR_ND_WIDE : 8;

    *gx = (rows + tokens - 1) / tokens;
    *gy = (l->x + 31) / 32;
    return rows > 8 ? CUN_imma_32 : CUN_imma_8;
}

static uint64_t
rounds(uint64_t blocks, uint64_t at_once)
{
    return (blocks + at_once - 1) / at_once;
}

/* A tile for each multiprocessor, pieces for two rounds of blocks, and no reader that
 * adds them: by blocks that stay (8B on an H200: gate and up, the head). */
static bool
goes_round(const br_cun *x, const cun_launch *l, uint32_t rows)
{
    const uint32_t sms = (uint32_t)x->cu.n_sm;

    return rows <= CUN_GRAPHS && l->a.m.kind == BR_ND_TILES &&
           l->a.op == BR_ND_MEET_FAR && !cun_is_apart(x, l, rows) &&
           l->x >= sms && l->a.segs * l->x >= 2 * sms;
}

/* Of few rows. */
static enum cun_fn
few_product(const br_cun *x, const cun_launch *l, uint32_t rows, uint32_t *gx,
            uint32_t *gy)
{
    static const enum cun_fn by[3][4] = {
        {CUN_tiles_8, CUN_tiles_16, CUN_tiles_32, CUN_tiles_64},
        {CUN_packed_16, CUN_packed_16, CUN_packed_32, CUN_packed_64},
        {CUN_dense_16, CUN_dense_16, CUN_dense_32, CUN_dense_64}};
    static const enum cun_fn round[2][4] = {
        {CUN_round_16, CUN_round_16, CUN_round_32, CUN_round_64},
        {CUN_round_dense_16, CUN_round_dense_16, CUN_round_dense_32,
         CUN_round_dense_64}};
    const uint32_t form = l->dense ? 2 : l->a.m.kind != BR_ND_TILES;
    const uint32_t wide = (rows > 8) + (rows > 16) + (rows > 32);

    *gx = l->a.segs;
    *gy = l->x;
    if (!goes_round(x, l, rows))
        return by[form][wide];
    *gx = (uint32_t)x->cu.n_sm;
    *gy = 1;
    return round[form / 2][wide];
}

/* The same of tiles: a block a piece of the columns, until there are blocks
 * enough without. Then those that stay, unless their wider tiles leave more of
 * the device without work than they gain, an eighth at least. */
static enum cun_fn
tile_product(const br_cun *x, const cun_launch *l, uint32_t rows, uint32_t *gx,
             uint32_t *gy)
{
    const bool packed = l->a.m.kind != BR_ND_TILES;
    const uint32_t wide = (rows + BR_ND_TILE_TOKENS - 1) / BR_ND_TILE_TOKENS;
    const uint32_t sms = BR_MAX((uint32_t)x->cu.n_sm, 1u);
    const uint64_t stay =
        (uint64_t)l->x * ((rows + BR_ND_WIDE_TOKENS - 1) / BR_ND_WIDE_TOKENS);

    if (rows <= CUN_GRAPHS)
        return few_product(x, l, rows, gx, gy);
    *gx = wide;
    *gy = l->x;
    if (l->a.segs > 1 && (uint64_t)wide * l->x < CUN_FULL) {
        *gx = wide * l->a.segs;
        return packed ? CUN_packed_128 : CUN_tiles_128;
    }
    if (packed)
        return CUN_packed_many;
    if (rounds(stay, sms) * BR_ND_WIDE_TOKENS * 8 >=
        rounds((uint64_t)wide * l->x, sms) * BR_ND_TILE_TOKENS * 9)
        return CUN_tiles_many;
    *gx = (uint32_t)BR_MIN(stay, (uint64_t)sms);
    *gy = 1;
    return CUN_tiles_wide;
}

/* The blocks of a launch and its kernel, for so many rows; few: of attention,
 * tiles of few queries. */
static enum cun_fn
blocks_of(const br_cun *x, cun_launch *l, uint32_t rows, bool few,
          br_cuda_launch *how)
{
    const uint32_t tile = x->dev ? x->dev->tile : BR_ND_TILE;
    enum cun_fn fn = l->fn;

    how->gx = l->x;
    switch ((enum cun_grid)l->grid) {
    case CUN_NUMBERS:
        how->gx = (uint32_t)(((uint64_t)l->x * rows + 255) / 256);
        break;
    case CUN_ROWS: how->gy = rows; break;
    case CUN_TILES: how->gy = (rows + tile - 1) / tile; break;
    case CUN_MMA: fn = mma_tiles(l, rows, &how->gx, &how->gy); break;
    case CUN_PRODUCT: fn = tile_product(x, l, rows, &how->gx, &how->gy); break;
    case CUN_QUERIES: /* a graph is for any tiles of few queries */
        how->gy = rows <= CUN_GRAPHS ? rows : x->n_tiles;
        if (!few)
            break;
        if (cun_stays(x, l, rows))
            return cun_stay(x, l, how);
        cun_few(x, l, how);
        fn += CUN_flash_few_64 - CUN_flash_64;
        break;
    case CUN_ROW: how->gx = rows; break;
    case CUN_LISTS:
    case CUN_PLACES:
    case CUN_ASK: break; /* cuda_experts.c */
    }
    return fn;
}

/* A row whose pieces are added has a cluster of blocks, of as many as it has warps
 * for: warps shared out (H200, 16 rows of 1B: .933 ms a step by one block, .902 by
 * eight). Two at least, though one of them may have no columns: in a launch without
 * clusters an H200 ends st.async as an illegal instruction. */
static uint32_t
blocks_of_row(br_cuda_launch *how, uint32_t rows, struct br_nd_pieces *in)
{
    const uint32_t warps = how->bx / 32;
    uint32_t n = BR_ND_ROW_BLOCKS;

    while (n > 2 && n > warps)
        n /= 2;
    in->threads = how->bx;
    how->bx = (warps + n - 1) / n * 32;
    how->gx = rows * n;
    return n;
}

/* A product's pieces meet in a cluster of so many blocks. */
static uint32_t
meets_in(const cun_launch *l, enum cun_fn fn)
{
    const bool whole = fn == CUN_tiles_many || fn == CUN_tiles_wide ||
                       fn == CUN_packed_many; /* a block has all of them */

    return l->grid == CUN_PRODUCT && l->a.op == BR_ND_MEET_NEAR && !whole
               ? l->a.segs
               : 1;
}

/* Threads of a block that has more than half of a multiprocessor's registers; 0: not to be
 * had. */
static uint32_t
threads_alone(const br_cun *x, enum cun_fn fn)
{
    enum { REGISTERS = 65536, LANES = 32, TOGETHER = 8 /* of a lane */ };
    int each = 0, most = 0;

    if (x->cu.cuFuncGetAttribute(&each, BR_CU_FUNC_REGS, x->fn[fn]) ||
        x->cu.cuFuncGetAttribute(&most, BR_CU_FUNC_THREADS, x->fn[fn]) ||
        each <= 0)
        return 0;
    each = (each + TOGETHER - 1) / TOGETHER * TOGETHER;
    const int threads = (REGISTERS / 2 / (LANES * each) + 1) * LANES;
    return threads <= most ? (uint32_t)threads : 0;
}

/* A launch of which no multiprocessor should have two blocks goes to that kernel's like
 * whose blocks have warps that only wait (is_spare). */
static void
be_alone(const br_cun *x, const cun_launch *l, enum cun_fn *fn,
         br_cuda_launch *how)
{
    enum cun_fn alone = *fn;
    uint32_t threads;

    if (l->single && *fn >= CUN_dense_16 && *fn <= CUN_dense_64 &&
        l->a.op != BR_ND_MEET_NEAR)
        alone += CUN_dense_alone_16 - CUN_dense_16;
    else if (*fn == CUN_flash_turn_64 &&
             how->gx * how->gy <= (uint32_t)x->cu.n_sm)
        alone = CUN_flash_alone_64;
    else
        return;
    threads = threads_alone(x, alone);
    if (threads <= how->bx)
        return;
    *fn = alone;
    how->bx = threads;
}

/* What a step of so many rows changes of the launch's arguments. */
static void
suit(const br_cun *x, cun_launch *l, uint32_t rows)
{
    if (cun_is_apart(x, l, rows))
        l->a.op = BR_ND_MEET_READERS;
    if (l->whole && x->all_want)
        l->a.xd = (void *)(uintptr_t)cun_whole_d(x);
    if (l->lean && !x->watch.seen)
        l->a.y.p = NULL;
    if (l->calls && rows <= CUN_GRAPHS)
        cun_call_pages(x, l, rows);
    if (l->dense && rows <= CUN_GRAPHS)
        l->a.m.q = (const void *)(uintptr_t)l->dense;
}

static br_code
start(br_cun *x, cun_launch *l, uint32_t rows, bool few, br_status *st)
{
    br_cuda_attr attrs[2] = {
        {.id = BR_CU_LAUNCH_EARLY, .value = {.on = !x->fetched}},
        {.id = BR_CU_LAUNCH_CLUSTER}};
    br_cuda_launch how = {.gy = 1,
                          .gz = 1,
                          .by = 1,
                          .bz = 1,
                          .stream = x->cu.stream,
                          .attrs = attrs};
    struct br_nd_args was;
    struct br_nd_joined both;
    struct br_nd_routed routed;
    const bool asks = l->grid >= CUN_LISTS;
    uint32_t near;
    enum cun_fn fn;
    bool joined;
    br_code code;

    if (rows == 0)
        return BR_OK;
    rows *= BR_MAX(l->times, 1u);
    l->a.n_rows = rows;
    fn = blocks_of(x, l, rows, few, &how);
    if (asks && !cun_experts_start(x, l, rows, &how, &fn, &routed))
        return BR_OK;
    x->fetched = false;
    if (x->dev)
        return x->dev->ops->launch(
            x->dev,
            &(br_nd_launch){(br_nd_fn)fn, {how.gx, how.gy}, l->shared, &l->a},
            st);
    how.bx = l->grid == CUN_ROW ? l->x : kernels[fn].threads;
    how.shared += kernels[fn].shared + l->shared;
    if (l->spread && rows <= CUN_GRAPHS)
        how.shared = BR_MAX(how.shared, BR_ND_SPREAD_SHARED);
    how.n_attrs = kernels[fn].waits && !x->plain;
    was = l->a;
    suit(x, l, rows);
    near = asks ? routed.l.segs : meets_in(l, fn);
    joined = cun_join(x, l, rows, &fn, &both);
    if (joined && l->grid == CUN_QUERIES)
        how.bx = kernels[fn].threads;
    if (joined && l->grid == CUN_ROW) {
        near = blocks_of_row(&how, rows, &both.in);
        how.shared = kernels[fn].shared; /* of that kernel now */
    }
    if (fn == CUN_flash_far_64 || fn == CUN_flash_far_128) {
        near = cun_shares(x, l, rows);
        how.gx *= near;
    }
    if (near > 1) {
        attrs[1].value.cluster[0] = near;
        attrs[1].value.cluster[1] = attrs[1].value.cluster[2] = 1;
        how.n_attrs = 2;
    }
    be_alone(x, l, &fn, &how);
    code = BR_CU(&x->cu, st,
                 cuLaunchKernelEx(&how, x->fn[fn],
                                  (void *[]){joined ? (void *)&both
                                             : asks ? (void *)&routed
                                                    : (void *)&l->a},
                                  NULL));
    l->a = was;
    return code;
}

/* What the node wrote, to whoever looks. */
static br_code
show(br_cun *x, uint32_t node, uint32_t rows, br_status *st)
{
    const br_ir_node *n = &x->v.g->nodes[node];
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
    BR_TRY(cun_wait(x, st));
    BR_TRY(cun_get(x, x->watched, (uintptr_t)v->p, bytes, st));
    x->watch.seen(x->watch.ctx, node, x->watched, v->cols, rows);
    return BR_OK;
}

br_code
cun_start_all(br_cun *x, uint32_t rows, uint32_t n_want, br_status *st)
{
    x->all_want = n_want == rows && !x->watch.seen;
    for (size_t i = 0; i < x->launches.n; i++) {
        cun_launch *l = &x->launches.at[i];
        const uint32_t n = l->want ? n_want : rows;

        const uint32_t heads = l->a.per_kv;
        const bool tiles = l->grid == CUN_QUERIES;

        if (x->watch.seen ? l->joint : l->lone || cun_turns(x, l, n))
            continue;
        if (l->picks && x->all_want)
            continue;

        if (tiles && x->least_tile * heads <= BR_ND_FLASH_FEW)
            BR_TRY(start(x, l, n, true, st));
        if (!tiles || x->most_tile * heads > BR_ND_FLASH_FEW)
            BR_TRY(start(x, l, n, false, st));
        if (!x->watch.seen || !l->last)
            continue;
        if (l->also != BR_IR_NONE)
            BR_TRY(show(x, l->also, n, st));
        BR_TRY(show(x, l->node, n, st));
    }
    return BR_OK;
}

/* A device that remembers what a step is made of. */
static br_code
run_on_dev(br_cun *x, uint32_t rows, uint32_t n_want, br_status *st)
{
    const br_nd_key key = {x->watch.seen ? 0 : rows, n_want};
    bool known;

    BR_TRY(x->dev->ops->begin(x->dev, key, x->launches.n, &known, st));
    return known ? BR_OK : cun_start_all(x, rows, n_want, st);
}

/* The launches of a step of so many rows, all of which want logits. */
static br_code
start_whole(br_cun *x, uint32_t rows, bool fetch, br_status *st)
{
    br_code code = fetch ? cun_start_fetch(x, rows, st) : BR_OK;

    x->fetched = fetch;
    return code == BR_OK ? cun_start_all(x, rows, rows, st) : code;
}

static br_code
make_graph(br_cun *x, uint32_t rows, bool fetch, br_status *st)
{
    void *graph;

    BR_TRY(br_cuda_record(&x->cu, NULL, st));
    BR_TRY(
        br_cuda_recorded(&x->cu, start_whole(x, rows, fetch, st), &graph, st));
    return br_cuda_graph(&x->cu, &x->graph[x->alone][rows], graph, st);
}

static br_code
run_graph(br_cun *x, uint32_t rows, bool fetch, br_status *st)
{
    void **graph = &x->graph[x->alone][rows];

    if (!*graph) {
        br_code code;

        if (!br_cuda_may_capture(&x->cu))
            return start_whole(x, rows, fetch, st);
        code = make_graph(x, rows, fetch, st);
        br_cuda_captured(&x->cu);
        BR_TRY(code);
    }
    return BR_CU(&x->cu, st, cuGraphLaunch(*graph, x->cu.stream));
}

/* Everything of a step, up to where the device has it. */
static br_code
submit(br_cun *x, const br_step *step, uint32_t n_want, br_status *st)
{
    const uint32_t rows = step->n_rows;

    if (cun_can_fetch(x, rows, n_want)) {
        if (x->n_fresh > BR_STAY_PAGES)
            BR_TRY(cun_send_tables(x, st));
        cun_tell(x, step, NULL);
        return run_graph(x, rows, true, st);
    }
    BR_TRY(cun_send_step(x, step, st));
    if (x->dev)
        return run_on_dev(x, rows, n_want, st);
    if (rows > CUN_GRAPHS || n_want != rows || x->watch.seen ||
        x->most_tile * x->most_per_kv > BR_ND_FLASH_FEW)
        return cun_start_all(x, rows, n_want, st);
    return run_graph(x, rows, false, st);
}

br_code
cun_begin(br_cun *x, const br_step *step, uint32_t *n_want, br_status *st)
{
    BR_TRY(check_step(x, step, n_want, st));
    BR_TRY(cun_use(x, st));
    if (x->lost)
        return br_fail(st, BR_E_IO,
                       "tier %s: a slot's state was not moved: the device "
                       "does not answer",
                       cun_tier(x));
    if (x->busy)
        BR_TRY(cun_wait(x, st));
    x->busy = true;
    x->begun_ns = br_now_ns();
    cun_stage(x, step);
    return BR_OK;
}

void
cun_end(br_cun *x, const br_step *step, uint32_t n_want)
{
    x->costs.submit_ns += (uint64_t)(br_now_ns() - x->begun_ns);
    x->n_rows = step->n_rows;
    x->n_want = n_want;
    count_work(x, step);
}

br_code
cun_step_staged(br_cun *x, const br_step *step, uint32_t n_want, float *logits,
                br_status *st)
{
    const br_value_mem *v = &x->v.at[x->v.logits];
    br_code code;

    cun_leave(x);
    code = submit(x, step, n_want, st);
    if (code != BR_OK) {
        cun_forget_tables(x);
        return code;
    }
    cun_end(x, step, n_want);
    if (!logits && n_want > 0 && !x->dev)
        return BR_OK;
    BR_TRY(cun_wait(x, st));
    x->busy = false;
    if (n_want == 0 || !logits)
        return BR_OK;
    return cun_get(x, logits, (uintptr_t)v->p,
                   (size_t)v->cols * n_want * sizeof *logits, st);
}

br_code
br_cun_step(br_cun *x, const br_step *step, float *logits, br_status *st)
{
    uint32_t n_want = 0;

    BR_TRY(cun_begin(x, step, &n_want, st));
    return cun_step_staged(x, step, n_want, logits, st);
}

const float *
br_cun_hidden(br_cun *x, br_status *st)
{
    const br_value_mem *v;
    size_t bytes;

    br_check(x->v.hidden != BR_IR_NONE); /* a model's graph has a head */
    if (x->stay.ahead.rows) {
        br_fail(st, BR_E_INTERNAL, "a step's rows: it did not ask for them");
        return NULL;
    }
    cun_leave(x);
    v = &x->v.at[x->v.hidden];
    bytes = (size_t)v->cols * x->n_rows * 4;
    if (!x->hidden)
        x->hidden = br_try_alloc((size_t)v->cols * x->c.max_rows * 4);
    if (!x->hidden) {
        br_fail(st, BR_E_OOM, "a step's rows: out of memory");
        return NULL;
    }
    if (cun_use(x, st) != BR_OK ||
        cun_get(x, x->hidden, (uintptr_t)v->p, bytes, st) != BR_OK)
        return NULL;
    return x->hidden;
}
