/* decode.c - puts a dense transformer on a CUDA device and runs steps.
 * The device's side is kernels/cuda/mega_decode.cu.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/decode.h"
#include "drv/cuda/decode_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATIENCE = 16384 }; /* looks at the ring: 20 ms */

static struct br_mk_map
map_of(const br_cu_shape *s, uint32_t workers, uint32_t blocks)
{
    struct br_mk_map m = {0};
    unsigned long long at = 0;

    const uint64_t x = s->hidden / 16 * 2 *
                       (s->format == BR_CU_BF16 ? BR_MK_X_BF16 : BR_MK_X_Q8_0);

    m.h_in = at, at += s->hidden;
    m.x_in = at, at += x;
    m.best = at; /* what leaves the last layer is the input of one more */
    m.h_mid = at, at += s->hidden;
    m.x_mid = at, at += x;
    m.qkv = at, at += (uint64_t)(s->n_heads + 2 * s->n_kv) * s->head_dim;
    m.part = at;
    at += (uint64_t)s->n_heads * blocks * (s->head_dim + 2);
    m.layer = at;
    m.best += at * s->n_layers;
    m.next = m.best + 2ull * workers;
    m.begin = m.next + 2;
    m.eights_at = m.begin + 2;
    m.attn_eights = (uint64_t)s->n_heads * s->head_dim / 8;
    m.eights = m.attn_eights + s->inter / 8;
    m.total = m.eights_at + m.eights * s->n_layers * 2 * 2;
    return m;
}

/* Of chunks: br_cu_format, or the one after those, 12 bits of BF16. */
static uint32_t
form_of(const br_cu_shape *s)
{
    return s->format == BR_CU_BF16 && !s->plain ? BR_CU_Q4_K + 1u
                                                : (uint32_t)s->format;
}

static uint32_t
blocks_of(const br_cu_decode *d)
{
    return (d->max_pos + BR_MK_KV_BLOCK - 1) / BR_MK_KV_BLOCK;
}

/* For chunks whose list is longer than they are: room for one of sixteen, for each
 * is 1 us more to its phase. */
static uint32_t
groups_of(const br_cu_decode *d)
{
    const uint64_t chunks = d->plan.stream_bytes / br_cu_chunk_bytes(&d->shape);

    return form_of(&d->shape) <= BR_CU_Q4_K
               ? 0
               : (uint32_t)BR_MIN(chunks / 16 + 1, BR_MK_MAX_GROUPS);
}

/* Words of the counters, a line each. */
static size_t
hints_of(const br_cu_decode *d)
{
    return (d->shape.n_layers + 1) * 4ull * 32;
}

static size_t
rope_of(const br_cu_decode *d)
{
    return (size_t)d->max_pos * (d->shape.head_dim / 2) * 2;
}

/* Pages of the last 16 are read at once. */
static uint32_t
pages_of(const br_cu_decode *d)
{
    return (d->max_pos / BR_MK_PAGE + 15) / 16 * 16;
}

/* cos and sin of pos / theta^(2i/hd), in double, rounded once. */
static br_code
upload_rope(br_cu_decode *d, br_status *st)
{
    const uint32_t half = d->shape.head_dim / 2;
    const size_t n = rope_of(d);
    float *t = br_try_calloc(n, sizeof *t);
    br_code rc;

    if (!t)
        return br_fail(st, BR_E_OOM, "rope table");
    for (uint32_t pos = 0; pos < d->max_pos; pos++)
        for (uint32_t i = 0; i < half; i++) {
            const float *by = d->shape.rope_divisors;
            double f = pow((double)d->shape.rope_theta, -(double)i / half) /
                       (by ? (double)by[i] : 1.0);
            t[((size_t)pos * half + i) * 2] = (float)cos(pos * f);
            t[((size_t)pos * half + i) * 2 + 1] = (float)sin(pos * f);
        }
    rc = br_cuda_put(d->cu, d->rope, t, n * sizeof *t, st);
    br_free(t);
    return rc;
}

/* Pages in order for now: position p lies in page p / 16. Page 0 for the rest. */
static br_code
upload_pages(br_cu_decode *d, br_status *st)
{
    const uint32_t n = pages_of(d);
    uint32_t *t = br_try_calloc(n, sizeof *t);
    br_code rc;

    if (!t)
        return br_fail(st, BR_E_OOM, "page table");
    for (uint32_t i = 0; i < n; i++)
        t[i] = i < d->max_pos / BR_MK_PAGE ? i : 0;
    rc = br_cuda_put(d->cu, d->pages, t, n * sizeof *t, st);
    br_free(t);
    return rc;
}

static br_code
upload_args(br_cu_decode *d, br_status *st)
{
    const br_cu_shape *s = &d->shape;
    /* Of copies (of 8192, 8704, 9856, 12352 bytes); measured (decision 0020): the
     * fewer bytes a layer has, the more of its time goes to words, and copies
     * under way delay them. */
    static const struct {
        uint32_t depth[2], deep[2], few[2]; /* [hidden > 2048] */
    } by_format[] = {{{4, 4}, {8, 8}, {12, 12}},
                     {{3, 4}, {5, 8}, {11, 13}},
                     {{2, 3}, {4, 5}, {10, 8}},
                     {{2, 2}, {4, 4}, {8, 8}}};
    const uint32_t form = form_of(s);
    const bool wide = s->hidden > 2048;
    struct br_mk_args a = {
        .inst = (const void *)d->inst,
        .stream = (const void *)d->stream,
        .stream_chunks = (const void *)d->stream_chunks,
        .words = (void *)d->words,
        .embed = (const void *)d->embed,
        .norms = (const void *)d->norms,
        .qk_norms = (const void *)d->qk_norms,
        .rope = (const void *)d->rope,
        .kv = (void *)d->kv,
        .pages = (const void *)d->pages,
        .tokens = (void *)d->tokens,
        .logits = (void *)d->logits,
        .host = d->host,
        .step = (void *)d->step,
        .profile = (void *)d->profile,
        .more = (const void *)d->more,
        .hints = (void *)d->hints,
        .map = map_of(s, d->plan.n_workers, blocks_of(d)),
        .n_inst = d->plan.n_inst,
        .n_workers = d->plan.n_workers,
        .tasks = br_cu_tasks(s),
        .subs = br_cu_tasks(s) / s->n_kv,
        .n_layers = s->n_layers,
        .hidden = s->hidden,
        .n_heads = s->n_heads,
        .n_kv = s->n_kv,
        .head_dim = s->head_dim,
        .inter = s->inter,
        .vocab = s->vocab,
        .eps = s->eps,
        .scale = 1.0f / sqrtf((float)s->head_dim),
        .depth = by_format[form].depth[wide],
        .deep = by_format[form].deep[wide],
        .few = by_format[form].few[wide],
        .interleaved_rope = s->interleaved_rope,
        .head_parts = blocks_of(d) * (s->head_dim + 2),
    };
    size_t bytes = 0;

    br_check(a.depth <= BR_MK_MAX_DEEP && a.deep <= BR_MK_MAX_DEEP);
    BR_TRY(BR_CU(d->cu, st,
                 cuModuleGetGlobal(&d->args, &bytes, d->mega_mod, "args")));
    if (bytes != sizeof a)
        return br_fail(st, BR_E_VERSION,
                       "mega_decode: args of %zu bytes, the host has %zu",
                       bytes, sizeof a);
    return br_cuda_put(d->cu, d->args, &a, sizeof a, st);
}

static br_code
load_kernels(br_cu_decode *d, const void *image, br_status *st)
{
    br_cuda *cu = d->cu;
    static const char *const format[] = {"bf16", "q8_0", "q4_k", "bf12"};
    const char *f = format[form_of(&d->shape)];
    char name[32], repack[32];
    int regs = 0, local = 0;

    snprintf(name, sizeof name, "br_mega_%u_%s", d->shape.head_dim, f);
    snprintf(repack, sizeof repack, "br_repack_%s", f);
    if (!image)
        image = br_cuda_image(cu, br_ptx_mega_decode, br_cubin_mega_decode);
    BR_TRY(br_cuda_module(cu, &d->mega_mod, "mega_decode", image, st));
    BR_TRY(br_cuda_module(cu, &d->setup_mod, "setup",
                          br_cuda_image(cu, br_ptx_setup, br_cubin_setup), st));
    BR_TRY(br_cuda_module(cu, &d->pick_mod, "pick",
                          br_cuda_image(cu, br_ptx_pick, br_cubin_pick), st));
    BR_TRY(
        BR_CU(cu, st, cuModuleGetFunction(&d->pick, d->pick_mod, "br_pick")));
    BR_TRY(BR_CU(cu, st, cuModuleGetFunction(&d->fn, d->mega_mod, name)));
    BR_TRY(
        BR_CU(cu, st, cuModuleGetFunction(&d->repack, d->setup_mod, repack)));
    BR_TRY(
        BR_CU(cu, st,
              cuFuncSetAttribute(d->fn, BR_CU_FUNC_DYN_SHARED, BR_MK_SHARED)));
    BR_TRY(BR_CU(cu, st, cuFuncGetAttribute(&regs, BR_CU_FUNC_REGS, d->fn)));
    BR_TRY(BR_CU(cu, st,
                 cuFuncGetAttribute(&local, BR_CU_FUNC_LOCAL_BYTES, d->fn)));
    d->regs = (uint32_t)regs;
    d->local_bytes = (uint32_t)local;
    return BR_OK;
}

uint64_t
br_cu_way(const br_cu_shape *s)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < BR_CU_MATRICES; i++) {
        const enum br_cu_matrix m = (enum br_cu_matrix)i;

        most = BR_MAX(most, br_cu_rows(s, m) *
                                br_cu_row_bytes(s->format, br_cu_cols(s, m)));
    }
    return most;
}

/* Memory of the device for all, once it is known that all of it fits. */
static br_code
take_all(br_cu_decode *d, br_status *st)
{
    const br_cu_shape *s = &d->shape;
    const br_stream_plan *p = &d->plan;
    const struct br_mk_map map = map_of(s, p->n_workers, blocks_of(d));
    const uint64_t inst = (uint64_t)p->n_inst * p->n_workers;
    uint32_t most = 0; /* tiles of a matrix */
    uint64_t left;

    for (uint32_t m = 0; m < BR_CU_MATRICES; m++)
        most = BR_MAX(most, (br_cu_rows(s, m) + 15) / 16);
    enum { WEIGHTS, PAGES, REST };
    const struct {
        uint64_t *to, bytes;
        int of;
    } all[] = {
        {&d->stream, p->stream_bytes, WEIGHTS},
        {&d->embed, (uint64_t)s->vocab * s->hidden * 2, WEIGHTS},
        {&d->norms, ((uint64_t)s->n_layers * 2 + 1) * s->hidden * 4, WEIGHTS},
        {&d->qk_norms,
         s->qk_norm ? (uint64_t)s->n_layers * 2 * s->head_dim * 4 : 0, WEIGHTS},
        {&d->kv,
         (uint64_t)d->max_pos * s->n_layers * 2 * s->n_kv * s->head_dim * 2,
         PAGES},
        {&d->inst, inst * sizeof *p->inst, REST},
        {&d->stream_chunks, p->n_workers * 4ull, REST},
        {&d->words, map.total * 8, REST},
        {&d->rope, rope_of(d) * 4, REST},
        {&d->pages, pages_of(d) * 4ull, REST},
        {&d->tokens, BR_MK_TOKENS * 4, REST},
        {&d->logits, s->vocab * 4ull, REST},
        {&d->hints, hints_of(d) * 4, REST},
        {&d->profile, inst * 4 * 8, REST},
        {&d->step, sizeof(struct br_mk_step), REST},
        {&d->pick_weights, s->vocab * 8ull, REST},
        {&d->pick_space, 2 * sizeof(struct br_pick_space), REST},
        {&d->pick_told, sizeof(struct br_pick_told), REST},
        {&d->tile_at, 8ull * most, REST},
        {&d->odd, sizeof(br_cu_odd), REST},
        {&d->more, groups_of(d) * BR_MK_GROUP * 4ull, WEIGHTS},
    };
    br_cuda_need need = {.rest = br_cu_way(s)};
    uint64_t *const sum[] = {&need.weights, &need.pages, &need.rest};

    for (size_t i = 0; i < BR_COUNT(all); i++)
        *sum[all[i].of] += all[i].bytes;
    BR_TRY(br_cuda_fits(d->cu, &need, 0, "", &left, st));
    for (size_t i = 0; i < BR_COUNT(all); i++)
        if (all[i].bytes)
            BR_TRY(br_cuda_alloc(d->cu, all[i].to, all[i].bytes, st));
    return BR_OK;
}

static br_code
allocate(br_cu_decode *d, br_status *st)
{
    const br_stream_plan *p = &d->plan;
    const struct br_mk_step first = {.epoch = d->epoch};
    br_cuda *cu = d->cu;

    BR_TRY(take_all(d, st));
    BR_TRY(br_cuda_put(cu, d->step, &first, sizeof first, st));
    BR_TRY(
        br_cuda_fill(cu, d->pick_told, 0, sizeof(struct br_pick_told) / 4, st));
    BR_TRY(br_cuda_put(cu, d->inst, p->inst,
                       (size_t)p->n_inst * p->n_workers * sizeof *p->inst, st));
    BR_TRY(br_cuda_put(cu, d->stream_chunks, p->stream_chunks, p->n_workers * 4,
                       st));
    BR_TRY(br_cuda_fill(cu, d->words, 0xffffffffu,
                        map_of(&d->shape, p->n_workers, blocks_of(d)).total * 2,
                        st));
    BR_TRY(upload_rope(d, st));
    BR_TRY(upload_pages(d, st));
    BR_TRY(BR_CU(cu, st, cuMemAllocHost((void **)&d->host, sizeof *d->host)));
    *d->host = (struct br_mk_host){0};
    BR_TRY(br_cuda_fill(cu, d->hints, 0, hints_of(d), st));
    BR_TRY(br_cuda_fill(cu, d->odd, 0, sizeof(br_cu_odd) / 4, st));
    BR_TRY(
        BR_CU(cu, st, cuMemAllocHost((void **)&d->hints_now, hints_of(d) * 4)));
    memset(d->hints_now, 0, hints_of(d) * 4);
    return br_cuda_fill(cu, d->pick_space, 0,
                        2 * sizeof(struct br_pick_space) / 4, st);
}

br_code
br_cu_decode_new(br_cu_decode *d, br_cuda *cu, const br_cu_shape *s,
                 uint32_t max_pos, const void *mega_image, br_status *st)
{
    br_code rc;

    *d = (br_cu_decode){
        .cu = cu, .shape = *s, .epoch = 1, .heard = 1, .patience = PATIENCE};
    d->max_pos = (max_pos + BR_MK_PAGE - 1) / BR_MK_PAGE * BR_MK_PAGE;
    if (max_pos > BR_MK_MAX_BLOCKS * BR_MK_KV_BLOCK)
        return br_fail(st, BR_E_LIMIT, "context %u: up to %d", max_pos,
                       BR_MK_MAX_BLOCKS * BR_MK_KV_BLOCK);
    if (cu->major < 9)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "%s is sm_%d%d: the megakernel needs sm_90",
                       cu->device_name, cu->major, cu->minor);
    rc = br_stream_plan_make(&d->plan, s, (uint32_t)cu->n_sm, st);
    if (rc == BR_OK)
        rc = load_kernels(d, mega_image, st);
    if (rc == BR_OK)
        rc = allocate(d, st);
    if (rc == BR_OK)
        rc = upload_args(d, st);
    if (rc == BR_OK)
        rc = br_cu_told_open(d, st);
    if (rc != BR_OK)
        br_cu_decode_free(d);
    return rc;
}

/* What it has of the device, and memory that the device sees. */
static void
give_back(br_cu_decode *d)
{
    uint64_t all[] = {
        d->inst,   d->stream,     d->stream_chunks, d->words,     d->embed,
        d->norms,  d->qk_norms,   d->rope,          d->kv,        d->pages,
        d->tokens, d->logits,     d->step,          d->tile_at,   d->profile,
        d->hints,  d->pick_space, d->pick_weights,  d->pick_told, d->odd,
        d->more};

    br_cu_told_close(d);
    for (size_t i = 0; i < BR_COUNT(all); i++)
        br_cuda_free(d->cu, all[i]);
    if (d->host)
        d->cu->cuMemFreeHost(d->host);
    if (d->hints_now)
        d->cu->cuMemFreeHost(d->hints_now);
    if (d->mega_mod)
        d->cu->cuModuleUnload(d->mega_mod);
    if (d->pick_mod)
        d->cu->cuModuleUnload(d->pick_mod);
    if (d->setup_mod)
        d->cu->cuModuleUnload(d->setup_mod);
}

/* Of a device that does not answer nothing is asked. */
void
br_cu_decode_free(br_cu_decode *d)
{
    (void)!br_cuda_wait(d->cu, NULL); /* it looks at our memory */
    if (!br_cuda_hung(d->cu))
        give_back(d);
    br_stream_plan_free(&d->plan);
    *d = (br_cu_decode){0};
}

br_code
br_cu_decode_put(br_cu_decode *d, uint32_t layer, enum br_cu_matrix m,
                 uint64_t a, uint64_t b, br_status *st)
{
    br_cuda *cu = d->cu;
    uint32_t at = m == BR_CU_HEAD ? d->shape.n_layers * 4 : layer * 4 + m;
    uint32_t n = d->plan.n_tiles[at];
    uint32_t rows = br_cu_rows(&d->shape, m), K = br_cu_cols(&d->shape, m);
    uint32_t groups = groups_of(d);
    void *params[] = {
        &d->stream, &d->tile_at,          &a,      &b,       &rows,
        &K,         &d->plan.copy_stride, &d->odd, &d->more, &groups};

    br_assert((b != 0) == (m == BR_CU_GLU) && "GLU has two parts");
    if (b)
        rows /= 2;
    /* in order: after the repack before has read the table */
    BR_TRY(BR_CU(cu, st,
                 cuMemcpyHtoDAsync(d->tile_at, d->plan.tile_at[at], n * 8ull,
                                   cu->stream)));
    return BR_CU(cu, st,
                 cuLaunchKernel(d->repack, n, K / 512, 1, 512, 1, 1, 0,
                                cu->stream, params, NULL));
}

br_code
br_cu_decode_odd(br_cu_decode *d, br_cu_odd *out, br_status *st)
{
    BR_TRY(br_cuda_wait(d->cu, st));
    return br_cuda_get(d->cu, out, d->odd, sizeof *out, st);
}

void
br_cu_decode_seek(br_cu_decode *d, uint32_t token, uint32_t pos)
{
    br_assert(pos < d->max_pos);
    d->token = token;
    d->pos = pos;
    d->block = 0;
    d->phase = 0;
    d->sought = true;
}

void
br_cu_decode_seek_in(br_cu_decode *d, uint32_t block, uint32_t token,
                     uint32_t pos)
{
    br_assert(block * BR_MK_KV_BLOCK + pos < d->max_pos);
    br_cu_decode_seek(d, token, pos);
    d->block = block;
}

/* For who looks at the step in the device's memory. */
static br_code
send_step(br_cu_decode *d, br_status *st)
{
    const struct br_mk_step s = {
        .epoch = d->epoch, .token = d->token, .pos = d->pos, .block = d->block};

    if (!d->sought)
        return BR_OK;
    d->sought = false;
    BR_TRY(br_cu_decode_wait(d, st));
    return br_cuda_put(d->cu, d->step, &s, sizeof s, st);
}

static br_code
launch(br_cu_decode *d, uint32_t first, uint32_t end, uint32_t epoch,
       uint32_t n_steps, br_status *st)
{
    struct br_mk_launch l = {.from = first + d->phase,
                             .first = first,
                             .end = end,
                             .n_steps = n_steps,
                             .seek = d->sought ? BR_MK_AT : BR_MK_GO_ON,
                             .epoch = epoch,
                             .token = d->token,
                             .pos = d->pos,
                             .block = d->block,
                             .ring = d->resident,
                             .serial = ++d->serial,
                             .patience = d->patience};

    if (br_cuda_hung(d->cu))
        return br_cuda_overdue(d->cu, 0, st);
    d->phase = 0;
    d->sought = d->left = false;
    d->launches++;
    return BR_CU(d->cu, st,
                 cuLaunchCooperativeKernel(d->fn, d->plan.n_workers, 1, 1,
                                           BR_MK_BLOCK, 1, 1, BR_MK_SHARED,
                                           d->cu->stream, (void *[]){&l}));
}

/* What the device says of an error, if it is that a wait took too long. */
static br_code
why(const br_cu_decode *d, br_code code, br_status *st)
{
    return br_cuda_why(d->cu, &d->host->hung, code, st);
}

br_code
br_cu_decode_wait(br_cu_decode *d, br_status *st)
{
    BR_TRY(why(d, br_cuda_wait(d->cu, st), st));
    d->heard = d->epoch;
    d->picked = d->picks;
    return BR_OK;
}

static br_code
no_number(br_status *st)
{
    return br_fail(st, BR_E_INTERNAL,
                   "the model's logits hold what is no number");
}

/* A word of the device to the host: tag << 32 | what it says. */
static bool
says(const unsigned long long *p, uint32_t tag, uint32_t *out)
{
    const uint64_t v = __atomic_load_n(p, __ATOMIC_ACQUIRE);

    *out = (uint32_t)v;
    return v >> 32 == tag;
}

/* Looks for a while, then asks the driver. *idle: all launches have ended and it
 * did not say so. */
static br_code
await_word(br_cu_decode *d, const unsigned long long *p, uint32_t tag,
           uint32_t *out, bool *idle, br_status *st)
{
    enum { LOOKS = 1000 }; /* between two questions to the driver */
    const int64_t since = br_now_ns();
    int rc;

    *idle = false;
    while (!says(p, tag, out) && !*idle) {
        for (int i = 0; i < LOOKS && !says(p, tag, out); i++)
            br_cpu_relax();
        if (says(p, tag, out))
            break;
        const int64_t waited = br_now_ns() - since;
        rc = d->cu->cuStreamQuery(d->cu->stream);
        if (rc == BR_CU_NOT_READY && !says(p, tag, out))
            BR_TRY(br_cuda_overdue(d->cu, waited, st));
        if (rc != 0 && rc != BR_CU_NOT_READY)
            return why(d, br_cuda_check(d->cu, rc, "cuStreamQuery", st), st);
        *idle = rc == 0 && !says(p, tag, out);
    }
    return BR_OK;
}

/* ---- resident ----------------------------------------------------------- */

/* A launch's ring has the steps (epoch, d->posted]; the one that follows them
 * continues at d->pos, or where seek said. */
static void
write_ring(br_cu_decode *d, uint32_t epoch, uint32_t token, uint32_t place)
{
    unsigned long long *e = d->host->ring[epoch % BR_MK_RING_STEPS];

    __atomic_store_n(&e[1], (uint64_t)epoch << 32 | place, __ATOMIC_RELEASE);
    __atomic_store_n(&e[0], (uint64_t)epoch << 32 | token, __ATOMIC_RELEASE);
}

static void
clear_ring(br_cu_decode *d)
{
    memset(d->host->ring, 0, sizeof d->host->ring); /* there is no epoch 0 */
}

/* Steps of a launch whose loaders count their copies in 32 bits: 300,000 of 8B
 * at 8192 positions. It enters again by itself after those. */
static uint32_t
most_steps(const br_cu_decode *d)
{
    enum { OF_CHUNK = 2, OF_TASK = 16 }; /* copies, at most */
    const uint64_t tasks =
        (uint64_t)br_cu_tasks(&d->shape) * blocks_of(d) / d->plan.n_workers + 1;
    uint64_t copies = 1;

    for (uint32_t w = 0; w < d->plan.n_workers; w++)
        copies = BR_MAX(copies, (uint64_t)d->plan.stream_chunks[w] * OF_CHUNK);
    copies += tasks * OF_TASK * d->shape.n_layers;
    return (uint32_t)BR_MIN(UINT32_MAX / copies, (uint64_t)1 << 30);
}

static br_code
launch_ring(br_cu_decode *d, br_status *st)
{
    return launch(d, 0, d->plan.n_inst, d->epoch, most_steps(d), st);
}

br_code
br_cu_decode_enter(br_cu_decode *d, br_status *st)
{
    d->resident = true;
    d->posted = d->epoch;
    BR_TRY(launch_ring(d, st));
    d->pos++;
    return BR_OK;
}

void
br_cu_decode_post(br_cu_decode *d)
{
    br_assert(d->resident && d->posted + 1 - d->epoch < BR_MK_RING_STEPS);
    write_ring(d, d->posted + 1, d->sought ? d->token : BR_MK_BEST,
               BR_MK_PLACE(d->pos, d->block));
    d->posted++;
    d->pos++;
    d->sought = false;
}

/* The later one first: who sees the earlier one sees both. */
static void
post_until(br_cu_decode *d, uint32_t epoch)
{
    const uint32_t room = (d->max_pos - d->block * BR_MK_KV_BLOCK) - d->pos;
    uint32_t n = epoch - d->posted;

    if (d->sought) {
        br_cu_decode_post(d);
        n--;
    }
    n = BR_MIN(n, room);
    for (uint32_t i = n; i-- > 0;)
        write_ring(d, d->posted + 1 + i, BR_MK_BEST,
                   BR_MK_PLACE(d->pos + i, d->block));
    d->posted += n;
    d->pos += n;
}

/* The launch has ended by itself, and there is a step for the next one. */
static br_code
enter_again(br_cu_decode *d, br_status *st)
{
    const unsigned long long *e = d->host->ring[d->epoch % BR_MK_RING_STEPS];
    const uint32_t token = (uint32_t)e[0], place = (uint32_t)e[1];
    const uint32_t next[] = {d->token, d->pos, d->block};
    const bool sought = d->sought;
    br_code code;

    d->sought = e[0] >> 32 == d->epoch && token != BR_MK_BEST && !d->phase;
    d->token = token;
    d->pos = BR_MK_POS(place);
    d->block = BR_MK_BLOCK_OF(place);
    code = launch_ring(d, st);
    d->token = next[0], d->pos = next[1], d->block = next[2];
    d->sought = sought;
    return code;
}

br_code
br_cu_decode_next(br_cu_decode *d, uint32_t ahead, uint32_t *out, br_status *st)
{
    bool idle = true;

    br_assert(d->resident && ahead < BR_MK_RING_STEPS / 2);
    if ((int32_t)(d->posted - d->epoch - ahead) < 0)
        post_until(d, d->epoch + ahead);
    if (d->posted < d->epoch)
        return br_fail(st, BR_E_LIMIT, "a context of %u positions is full",
                       d->max_pos);
    while (idle) {
        BR_TRY(await_word(d, &d->host->token[d->epoch % BR_MK_HOST_TOKENS],
                          d->epoch, out, &idle, st));
        if (idle && d->host->cancel)
            return br_fail(st, BR_E_CANCELLED, "decoding is cancelled");
        if (idle)
            BR_TRY(enter_again(d, st));
    }
    d->heard = ++d->epoch;
    return *out < d->shape.vocab ? BR_OK : no_number(st);
}

static void
tell_cancel(br_cu_decode *d, uint32_t on)
{
    __atomic_store_n(&d->host->cancel, on, __ATOMIC_RELEASE);
}

/* Ends the launch at the next border, of a layer or of the steps there are;
 * *epoch: of the step that follows, or is cut (d->phase). */
static br_code
end_launch(br_cu_decode *d, uint32_t *epoch, br_status *st)
{
    const unsigned long long *e = d->host->ended;
    bool idle;

    write_ring(d, d->posted + 1, BR_MK_BEST, BR_MK_END);
    tell_cancel(d, 1);
    BR_TRY(await_word(d, &e[0], d->serial, &d->phase, &idle, st));
    if (idle)
        return br_fail(st, BR_E_INTERNAL, "a launch ended and did not say so");
    memset(d->host->ring[(d->posted + 1) % BR_MK_RING_STEPS], 0,
           sizeof *d->host->ring);
    *epoch = (uint32_t)__atomic_load_n(&e[1], __ATOMIC_ACQUIRE);
    return BR_OK;
}

br_code
br_cu_decode_cancel(br_cu_decode *d, br_status *st)
{
    uint32_t epoch;

    br_assert(d->resident);
    return end_launch(d, &epoch, st);
}

br_code
br_cu_decode_resume(br_cu_decode *d, br_status *st)
{
    tell_cancel(d, 0);
    /* else next does, where there is a step */
    return d->phase ? enter_again(d, st) : BR_OK;
}

/* The step that was cut is given up, so its epoch is used up: the words of it
 * that are there say so. Counters stand as if all had said "out", and both
 * copies of the words that carry no epoch are cleared. */
static br_code
give_up_step(br_cu_decode *d, uint32_t epoch, br_status *st)
{
    enum { LINE = 32 };
    static const uint8_t hint_of[] = {[BR_MK_QKV] = BR_MK_HINT_H,
                                      [BR_MK_OUT] = BR_MK_HINT_ATTN,
                                      [BR_MK_GLU] = BR_MK_HINT_MID,
                                      [BR_MK_DOWN] = BR_MK_HINT_ACT,
                                      [BR_MK_HEAD] = BR_MK_HINT_H};
    const struct br_mk_map map =
        map_of(&d->shape, d->plan.n_workers, blocks_of(d));

    for (uint32_t i = 0; i < d->plan.n_inst; i++) {
        const struct br_mk_inst *in = &d->plan.inst[i]; /* of worker 0 */
        if (in->op != BR_MK_ATTN && in->op != BR_MK_TOKEN)
            d->hints_now[(in->layer * 4u + hint_of[in->op]) * LINE] =
                epoch * in->n_wait;
    }
    BR_TRY(BR_CU(d->cu, st,
                 cuMemcpyHtoDAsync(d->hints, d->hints_now, hints_of(d) * 4,
                                   d->cu->stream)));
    d->phase = 0;
    d->epoch = epoch + 1;
    BR_TRY(BR_CU(d->cu, st,
                 cuMemsetD32Async(d->step + offsetof(struct br_mk_step, epoch),
                                  d->epoch, 1, d->cu->stream)));
    return BR_CU(d->cu, st,
                 cuMemsetD32Async(d->words + map.eights_at * 8, 0xffffffffu,
                                  map.eights * d->shape.n_layers * 2 * 4,
                                  d->cu->stream));
}

br_code
br_cu_decode_leave(br_cu_decode *d, br_status *st)
{
    uint32_t epoch;

    d->left = true;
    if (d->posted < d->epoch) { /* it waits: nobody has to wait for it */
        write_ring(d, d->epoch, BR_MK_BEST, BR_MK_END);
        d->resident = false;
        return BR_OK;
    }
    BR_TRY(end_launch(d, &epoch, st));
    tell_cancel(d, 0);
    clear_ring(d);
    d->resident = false;
    d->epoch = epoch;
    return d->phase ? give_up_step(d, epoch, st) : BR_OK;
}

/* Where a launch that stayed makes way, the device's time counts, not the thread's: a
 * graph begins 3 us later (leave, step, enter: 49 us for 46). */
static bool
is_told(const br_cu_decode *d)
{
    return !d->phase && !d->left;
}

br_code
br_cu_decode_run(br_cu_decode *d, enum br_cu_mode mode, uint32_t n_steps,
                 br_status *st)
{
    const uint32_t n = d->plan.n_inst, head = d->shape.n_layers * 5;
    const uint32_t epoch = d->epoch;

    br_assert(!d->resident);
    if (mode == BR_CU_MEGA && n_steps == 1 && is_told(d))
        return br_cu_told(d, true, NULL, st);
    if (mode == BR_CU_PACKETS)
        BR_TRY(send_step(d, st));
    d->epoch += n_steps;
    if (mode == BR_CU_MEGA) {
        BR_TRY(launch(d, 0, n, epoch, n_steps, st));
        d->pos += n_steps;
        return BR_OK;
    }
    for (uint32_t s = 0; s < n_steps; s++) {
        for (uint32_t i = 0; i < head; i++)
            BR_TRY(launch(d, i, i + 1, 0, 1, st));
        BR_TRY(launch(d, head, n, 0, 1, st));
    }
    d->pos += n_steps;
    return BR_OK;
}

br_code
br_cu_decode_tokens(br_cu_decode *d, uint32_t *out, uint32_t n, br_status *st)
{
    bool idle;

    br_assert(n && n <= BR_MK_HOST_TOKENS);
    for (uint32_t i = n; i-- > 0;) { /* the last one first */
        const uint32_t epoch = d->epoch - n + i;
        BR_TRY(await_word(d, &d->host->token[epoch % BR_MK_HOST_TOKENS], epoch,
                          &out[i], &idle, st));
        if (idle)
            return br_fail(st, BR_E_INTERNAL, "step %u gave no token", epoch);
    }
    d->heard = d->epoch;
    return BR_OK;
}

br_code
br_cu_decode_pick(br_cu_decode *d, const br_cu_pick *p, br_status *st)
{
    BR_TRY(send_step(d, st));
    return br_cu_told(d, false, p, st);
}

br_code
br_cu_decode_run_pick(br_cu_decode *d, const br_cu_pick *p, br_status *st)
{
    br_assert(!d->resident);
    if (is_told(d))
        return br_cu_told(d, true, p, st);
    BR_TRY(br_cu_decode_run(d, BR_CU_MEGA, 1, st));
    return br_cu_decode_pick(d, p, st);
}

br_code
br_cu_decode_picked(br_cu_decode *d, uint32_t *out, br_status *st)
{
    bool idle;

    BR_TRY(await_word(d, &d->host->drawn, d->picks, out, &idle, st));
    if (idle)
        return br_fail(st, BR_E_INTERNAL, "a draw gave no token");
    d->picked = d->picks;
    if (*out == (uint32_t)BR_PICK_NO_NUMBER)
        return no_number(st);
    if (*out == (uint32_t)BR_PICK_NONE)
        return br_fail(st, BR_E_REJECTED, "no token is left to choose from");
    return BR_OK;
}
