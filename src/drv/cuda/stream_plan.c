/* stream_plan.c - spreads the rows of every matrix over the workers.
 *
 * The memory is the bound, so what must be equal is the number of bytes that
 * each worker streams per step; inside a phase nobody may have a tile more
 * than needed, for the next phase waits for the last. A layer is planned in
 * the order DOWN, OUT, QKV (few tiles, at most one more than the least), then
 * GLU fills up: tile by tile to the worker with the fewest bytes so far, the
 * first 256 keys and values counted for those who read them in this layer.
 * Read-ahead evens out what is left.
 *
 *   1B shape, 132 workers: 192 + 128 + 1024 + 128 tiles a layer, 61 of the
 *   head; largest stream 0.1 % over the mean.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/stream_plan.h"
#include "../../../kernels/cuda/mega_table.h"

#include <string.h>

uint32_t
br_cu_chunk_bytes(const br_cu_shape *s)
{
    return s->format == BR_CU_Q8_0   ? BR_MK_CHUNK_Q8_0
           : s->format == BR_CU_Q4_K ? BR_MK_CHUNK_Q4_K
           : s->plain                ? BR_MK_CHUNK_BF16
                                     : BR_MK_CHUNK_BF12;
}

uint64_t
br_cu_row_bytes(enum br_cu_format f, uint64_t cols)
{
    return f == BR_CU_Q8_0   ? cols / 32 * 34
           : f == BR_CU_Q4_K ? cols / 256 * 144
                             : cols * 2;
}

uint32_t
br_cu_rows(const br_cu_shape *s, enum br_cu_matrix m)
{
    switch (m) {
    case BR_CU_QKV: return (s->n_heads + 2 * s->n_kv) * s->head_dim;
    case BR_CU_OUT: return s->hidden;
    case BR_CU_GLU: return s->inter * 2;
    case BR_CU_DOWN: return s->hidden;
    case BR_CU_HEAD: return s->vocab;
    case BR_CU_MATRICES: break;
    }
    br_unreachable("closed enum");
}

uint32_t
br_cu_cols(const br_cu_shape *s, enum br_cu_matrix m)
{
    switch (m) {
    case BR_CU_OUT: return s->n_heads * s->head_dim;
    case BR_CU_DOWN: return s->inter;
    case BR_CU_QKV:
    case BR_CU_GLU:
    case BR_CU_HEAD: return s->hidden;
    case BR_CU_MATRICES: break;
    }
    br_unreachable("closed enum");
}

uint32_t
br_cu_tasks(const br_cu_shape *s)
{
    return s->n_kv * ((s->n_heads / s->n_kv + 3) / 4);
}

/* A worker's first attention task of a layer: each begins with other workers. */
static uint32_t
first_task(const br_cu_shape *s, uint32_t layer, uint32_t w, uint32_t W)
{
    return (w + W - layer * br_cu_tasks(s) % W) % W;
}

static br_code
check_shape(const br_cu_shape *s, uint32_t n_workers, br_status *st)
{
    if (n_workers == 0 || n_workers > BR_MK_MAX_WORKERS)
        return br_fail(st, BR_E_LIMIT, "%u workers: 1..%d are supported",
                       n_workers, BR_MK_MAX_WORKERS);
    if (s->head_dim != 64 && s->head_dim != 128)
        return br_fail(st, BR_E_UNSUPPORTED, "%s: head_dim %u: 64 and 128 are",
                       s->name, s->head_dim);
    for (int m = 0; m < BR_CU_MATRICES; m++) {
        uint32_t k = br_cu_cols(s, m), n = br_cu_rows(s, m);
        if (k % 512 || k > BR_MK_MAX_K)
            return br_fail(st, BR_E_UNSUPPORTED,
                           "%s: a matrix of %u columns: multiples of 512 up "
                           "to %d are supported",
                           s->name, k, BR_MK_MAX_K);
        if (m != BR_CU_HEAD && n % 16)
            return br_fail(st, BR_E_UNSUPPORTED,
                           "%s: a matrix of %u rows: multiples of 16 are",
                           s->name, n);
    }
    if (s->n_layers > BR_MK_MAX_LAYERS)
        return br_fail(st, BR_E_UNSUPPORTED, "%s: %u layers: up to %d", s->name,
                       s->n_layers, BR_MK_MAX_LAYERS);
    if (s->n_heads > 255)
        return br_fail(st, BR_E_UNSUPPORTED, "%s: %u heads: up to 255", s->name,
                       s->n_heads);
    if (s->hidden > 4096)
        return br_fail(st, BR_E_UNSUPPORTED, "%s: hidden %u: up to 4096",
                       s->name, s->hidden);
    if (s->n_kv == 0 || s->n_heads % s->n_kv)
        return br_fail(st, BR_E_FORMAT, "%s: %u heads over %u KV heads",
                       s->name, s->n_heads, s->n_kv);
    return BR_OK;
}

struct plan {
    br_stream_plan *out;
    const br_cu_shape *s;
    uint64_t *load;  /* [workers] chunks so far, all phases */
    uint32_t *count; /* [phase matrices][workers] tiles */
    uint32_t W;
};

/* n tiles of segs chunks, `by` at once: each goes to the least loaded worker
 * that has fewer than `most` of them (ties: the lowest number). */
static void
deal(struct plan *p, uint32_t *count, uint32_t n, uint32_t by, uint32_t segs,
     uint32_t most)
{
    memset(count, 0, p->W * sizeof *count);
    for (uint32_t t = 0; t < n; t += by) {
        uint32_t best = UINT32_MAX;
        for (uint32_t w = 0; w < p->W; w++)
            if (count[w] < most &&
                (best == UINT32_MAX || p->load[w] < p->load[best]))
                best = w;
        br_check(best != UINT32_MAX && "most * workers covers n");
        count[best] += by;
        p->load[best] += segs * by;
    }
}

/* LIMIT when a worker would have more of a matrix than it has threads and
 * sums for: few workers and a large model. */
static br_code
deal_layer(struct plan *p, uint32_t layer, br_status *st)
{
    static const enum br_cu_matrix order[] = {BR_CU_DOWN, BR_CU_OUT, BR_CU_QKV,
                                              BR_CU_GLU};
    uint32_t *count = p->count + (size_t)layer * 4 * p->W;

    /* 256 keys and values of 2 bytes */
    for (uint32_t w = 0; w < p->W; w++)
        if (first_task(p->s, layer, w, p->W) < br_cu_tasks(p->s))
            p->load[w] += p->s->head_dim * 1024 / br_cu_chunk_bytes(p->s);

    for (size_t i = 0; i < BR_COUNT(order); i++) {
        enum br_cu_matrix m = order[i];
        uint32_t n = br_cu_rows(p->s, m) / 16;
        /* 16 activations have one scale: a worker makes all of them */
        uint32_t by = m == BR_CU_GLU && p->s->format != BR_CU_BF16 ? 2 : 1;
        uint32_t most = (n / by + p->W - 1) / p->W * by;
        uint32_t segs = br_cu_cols(p->s, m) / BR_MK_SEG;
        if (most > BR_MK_MAX_TILES || most * segs > BR_MK_MAX_PARTS)
            return br_fail(st, BR_E_LIMIT,
                           "%s: %u rows of %u columns are too many for %u "
                           "multiprocessors",
                           p->s->name, n * 16, segs * BR_MK_SEG, p->W);
        deal(p, count + m * p->W, n, by, segs, most);
    }
    return BR_OK;
}

/* One phase of all workers: instruction i of each; tiles in worker order. */
static void
emit(struct plan *p, uint32_t i, struct br_mk_inst proto, const uint32_t *count,
     uint32_t skip, uint32_t most)
{
    const uint32_t together = p->out->together;
    uint32_t tile = 0;

    for (uint32_t w = 0; w < p->W; w++) {
        struct br_mk_inst *in = &p->out->inst[w * p->out->n_inst + i];
        uint32_t n = count ? count[w] : 0;
        *in = proto;
        in->tile0 = in->op == BR_MK_ATTN ? first_task(p->s, in->layer, w, p->W)
                                         : tile + BR_MIN(skip, n);
        in->n_tiles = (uint16_t)BR_MIN(n - BR_MIN(skip, n), most);
        in->chunk0 = p->out->stream_chunks[w];
        p->out->stream_chunks[w] +=
            ((uint32_t)in->n_tiles * in->segs + together - 1) / together *
            together;
        tile += n;
    }
}

static uint32_t
most_of(const uint32_t *count, uint32_t n)
{
    uint32_t m = 0;

    for (uint32_t i = 0; i < n; i++)
        m = BR_MAX(m, count[i]);
    return m;
}

/* How many workers make the input of a phase. */
static uint8_t
makers(const struct plan *p, uint32_t layer, int op)
{
    uint32_t at, n = 0;

    switch (op) {
    case BR_MK_OUT: return (uint8_t)p->s->n_heads;
    case BR_MK_GLU: at = layer * 4 + BR_CU_OUT; break;
    case BR_MK_DOWN: at = layer * 4 + BR_CU_GLU; break;
    case BR_MK_QKV:
    case BR_MK_HEAD:
        if (layer == 0)
            return 0;
        at = (layer - 1) * 4 + BR_CU_DOWN;
        break;
    default: return 0;
    }
    for (uint32_t w = 0; w < p->W; w++)
        n += p->count[at * p->W + w] != 0;
    return (uint8_t)n;
}

static void
emit_layers(struct plan *p)
{
    static const struct {
        uint8_t op, matrix;
    } phase[] = {{BR_MK_QKV, BR_CU_QKV},
                 {BR_MK_ATTN, BR_CU_MATRICES},
                 {BR_MK_OUT, BR_CU_OUT},
                 {BR_MK_GLU, BR_CU_GLU},
                 {BR_MK_DOWN, BR_CU_DOWN}};
    uint32_t i = 0;

    for (uint32_t l = 0; l < p->s->n_layers; l++)
        for (size_t k = 0; k < BR_COUNT(phase); k++) {
            struct br_mk_inst in = {.op = phase[k].op, .layer = (uint16_t)l};
            const uint32_t *count = NULL;
            if (phase[k].matrix != BR_CU_MATRICES) {
                in.segs = (uint8_t)(br_cu_cols(p->s, phase[k].matrix) / 512);
                in.n_wait = makers(p, l, in.op);
                count = p->count + (l * 4 + phase[k].matrix) * p->W;
            }
            emit(p, i++, in, count, 0, UINT16_MAX);
        }
}

static void
emit_head(struct plan *p, uint32_t groups, uint32_t group)
{
    const uint32_t L = p->s->n_layers;
    uint32_t i = L * 5;

    for (uint32_t g = 0; g < groups; g++) {
        struct br_mk_inst in = {.op = BR_MK_HEAD,
                                .flags = g == 0 ? BR_MK_FIRST : 0,
                                .layer = (uint16_t)L,
                                .segs = (uint8_t)(p->s->hidden / 512),
                                .n_wait = makers(p, L, BR_MK_HEAD)};
        emit(p, i++, in, p->count + L * 4 * p->W, g * group, group);
    }
    emit(p, i, (struct br_mk_inst){.op = BR_MK_TOKEN, .layer = (uint16_t)L},
         NULL, 0, 0);
}

uint64_t
br_stream_plan_chunk(const br_stream_plan *p, uint64_t tile_at, uint32_t seg)
{
    const uint64_t before = tile_at / p->chunk % p->together; /* in its copy */
    const uint64_t at = before + seg;

    return tile_at - before * p->chunk + at / p->together * p->copy_stride +
           at % p->together * p->chunk;
}

/* Where each tile's bytes are, now that every stream's length is known. */
static void
place_tiles(struct plan *p)
{
    br_stream_plan *o = p->out;

    o->copy_stride = (uint64_t)o->chunk * o->together * p->W;
    o->stream_bytes =
        o->copy_stride * (most_of(o->stream_chunks, p->W) / o->together);
    for (uint32_t w = 0; w < p->W; w++)
        for (uint32_t i = 0; i < o->n_inst; i++) {
            const struct br_mk_inst *in = &o->inst[w * o->n_inst + i];
            uint32_t m = in->op == BR_MK_HEAD  ? p->s->n_layers * 4
                         : in->op == BR_MK_QKV ? in->layer * 4u + BR_CU_QKV
                         : in->op == BR_MK_OUT ? in->layer * 4u + BR_CU_OUT
                         : in->op == BR_MK_GLU ? in->layer * 4u + BR_CU_GLU
                                               : in->layer * 4u + BR_CU_DOWN;
            for (uint32_t t = 0; t < in->n_tiles; t++)
                o->tile_at[m][in->tile0 + t] = br_stream_plan_chunk(
                    o, (uint64_t)w * o->together * o->chunk,
                    in->chunk0 + t * in->segs);
        }
}

static bool
allocate(struct plan *p, uint32_t groups)
{
    br_stream_plan *o = p->out;
    const uint32_t mats = p->s->n_layers * 4 + 1;

    o->n_inst = p->s->n_layers * 5 + groups + 1;
    o->inst =
        br_arena_new(&o->arena, struct br_mk_inst, (size_t)o->n_inst * p->W);
    o->stream_chunks = br_arena_new(&o->arena, uint32_t, p->W);
    o->tile_at = br_arena_new(&o->arena, unsigned long long *, mats);
    o->n_tiles = br_arena_new(&o->arena, uint32_t, mats);
    if (!o->inst || !o->stream_chunks || !o->tile_at || !o->n_tiles)
        return false;
    for (uint32_t m = 0; m < mats; m++) {
        enum br_cu_matrix kind = m == mats - 1 ? BR_CU_HEAD : m % 4;
        o->n_tiles[m] = (br_cu_rows(p->s, kind) + 15) / 16;
        o->tile_at[m] =
            br_arena_new(&o->arena, unsigned long long, o->n_tiles[m]);
        if (!o->tile_at[m])
            return false;
    }
    return true;
}

br_code
br_stream_plan_make(br_stream_plan *out, const br_cu_shape *s,
                    uint32_t n_workers, br_status *st)
{
    struct plan p = {.out = out, .s = s, .W = n_workers};
    const uint32_t L = s->n_layers;
    uint32_t group, groups, n_head;

    *out = (br_stream_plan){.n_workers = n_workers,
                            .chunk = br_cu_chunk_bytes(s),
                            .together = s->format == BR_CU_Q4_K
                                            ? BR_MK_PAIR_Q4_K / BR_MK_CHUNK_Q4_K
                                            : 1};
    BR_TRY(check_shape(s, n_workers, st));
    br_arena_init(&out->arena, 0);
    p.load = br_arena_new(&out->arena, uint64_t, n_workers);
    p.count =
        br_arena_new(&out->arena, uint32_t, (size_t)(L * 4 + 1) * n_workers);
    if (!p.load || !p.count)
        goto oom;
    for (uint32_t l = 0; l < L; l++) {
        br_code rc = deal_layer(&p, l, st);
        if (rc != BR_OK) {
            br_stream_plan_free(out);
            return rc;
        }
    }
    n_head = (s->vocab + 15) / 16;
    deal(&p, p.count + (size_t)L * 4 * n_workers, n_head, 1, s->hidden / 512,
         UINT32_MAX);
    group = BR_MIN(BR_MK_MAX_PARTS / (s->hidden / 512), BR_MK_MAX_TILES);
    groups = most_of(p.count + (size_t)L * 4 * n_workers, n_workers);
    groups = (groups + group - 1) / group;
    if (!allocate(&p, groups))
        goto oom;
    emit_layers(&p);
    emit_head(&p, groups, group);
    place_tiles(&p);
    return BR_OK;
oom:
    br_stream_plan_free(out);
    return br_fail(st, BR_E_OOM, "stream plan of %s", s->name);
}

void
br_stream_plan_free(br_stream_plan *p)
{
    br_arena_fini(&p->arena);
    *p = (br_stream_plan){0};
}
