/* cuda_weights.c - matrices of a model file in a device's memory, for kernels
 * that take a node each (node_table.h).
 *
 *   F16 BF16          as tiles of F16 with a factor a row (node_tiles.cuh)
 *   integer formats   as packed tiles of four or eight bits (node_packed.cuh), but
 *                     Q2_K
 *   F32               as it is
 *   the rest          as F32
 *
 * Experts likewise, each as tiles of its own (cuda_experts.c). Where arithmetic is
 * exact, and of rows that are no whole 64s: F16 and BF16 as they are, integers
 * unpacked: a byte a weight, scales of sub-blocks and of blocks beside them; a Q4_K
 * matrix takes 1.8 times its bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"

#include "base/thread.h"
#include "model/qint.h"

#include <math.h>
#include <string.h>

enum {
    PIECE = 1 << 20, /* weights on their way, of the host */
    SLAB = 16 << 20  /* of those that become tiles on the device */
};

typedef struct sending {
    br_cun *x;
    const br_gguf_tensor *t;
    const br_qinfo *info;
    struct br_nd_mat *m;
    uint64_t n;    /* weights */
    uint64_t to;   /* room for arrays that are read once, or 0 */
    uint64_t file; /* the blocks as the file has them, on the device, or 0 */
    br_status *st;
    uint8_t *q;
    int8_t *scale, *min;
    float *d, *dmin;
} sending;

static br_code
send(sending *s, const void *to, uint64_t at, const void *from, size_t bytes)
{
    return bytes ? cun_put(s->x, (uintptr_t)to + at, from, bytes, s->st)
                 : BR_OK;
}

static br_code
room(sending *s, const void **p, uint64_t bytes)
{
    uint64_t d;

    if (s->to) {
        *p = (const void *)(uintptr_t)s->to;
        s->to += (bytes + 15) / 16 * 16;
        return BR_OK;
    }
    BR_TRY(cun_take(s->x, CUN_MATRICES, &d, bytes, s->st));
    *p = (const void *)(uintptr_t)d;
    s->x->weight_bytes += bytes;
    return BR_OK;
}

static void
advance(sending *s, uint64_t weights)
{
    br_cun *x = s->x;

    x->sent += weights / s->info->elems * s->info->bytes;
    if (x->c.progress)
        x->c.progress(x->c.ctx, BR_MIN(x->sent, x->all_bytes), x->all_bytes);
}

/* Looked at between matrices, and slabs of large ones. */
static br_code
go_on(const br_cun *x, br_status *st)
{
    if (br_is_told(x->c.stop))
        return br_fail(st, BR_E_CANCELLED, "stopped while weights were sent");
    return BR_OK;
}

static br_code
send_floats(sending *s, uint32_t kind)
{
    const uint32_t bytes = kind == BR_ND_F32 ? 4 : 2;
    br_code code;

    s->m->kind = kind;
    BR_TRY(go_on(s->x, s->st));
    BR_TRY(room(s, &s->m->q, s->n * bytes));
    if (s->info->elems == 1 && s->info->bytes == bytes) {
        code = send(s, s->m->q, 0, s->t->data, s->n * bytes);
        advance(s, s->n);
        return code;
    }
    s->d = br_try_alloc(PIECE * sizeof *s->d);
    if (!s->d)
        return br_fail(s->st, BR_E_OOM, "weights: out of memory");
    code = BR_OK;
    for (uint64_t i = 0; code == BR_OK && i < s->n; i += PIECE) {
        uint64_t n = BR_MIN(s->n - i, (uint64_t)PIECE);

        br_dequant(s->t->type, s->t->data + i / s->info->elems * s->info->bytes,
                   s->d, n);
        code = send(s, s->m->q, i * 4, s->d, n * 4);
        advance(s, n);
    }
    br_free(s->d);
    return code;
}

/* Blocks from weight i on, unpacked; false: a number needs more than a byte. */
static bool
unpack(sending *s, uint64_t i, uint64_t n)
{
    const uint8_t *p = s->t->data + i / s->info->elems * s->info->bytes;
    uint64_t b = 0, at = 0;
    br_qint o;

    for (; at < n; b++, p += s->info->bytes) {
        const int subs = (int)(s->m->block / s->m->sub);

        br_qint_block(s->t->type, p, &o);
        for (int k = 0; k < o.n; k++, at++) {
            if (o.q[k] < -128 || o.q[k] > 127)
                return false;
            s->q[at] = (uint8_t)o.q[k];
        }
        s->d[b] = o.d;
        s->dmin[b] = o.has_min ? o.dmin : 0;
        for (int k = 0; k < subs; k++) {
            const int min = o.has_min ? o.min[k] : 0;

            if (o.scale[k] < -128 || o.scale[k] > 127 || min < -128 ||
                min > 127 || (s->m->block == 32 && o.scale[k] != 1))
                return false;
            s->scale[b * (uint64_t)subs + (uint64_t)k] = (int8_t)o.scale[k];
            s->min[b * (uint64_t)subs + (uint64_t)k] = (int8_t)min;
        }
    }
    return true;
}

static br_code
send_blocks(sending *s, bool min)
{
    struct br_nd_mat *m = s->m;
    const bool subs = m->block == 256;
    br_code code = BR_OK;

    for (uint64_t i = 0; code == BR_OK && i < s->n; i += PIECE) {
        const uint64_t n = BR_MIN(s->n - i, (uint64_t)PIECE);
        const uint64_t b = i / m->block, nb = n / m->block;

        if (!unpack(s, i, n))
            return br_fail(s->st, BR_E_INTERNAL,
                           "%s: its integers are wider than bytes",
                           s->info->name);
        code = send(s, m->q, i, s->q, n);
        if (code == BR_OK)
            code = send(s, m->d, b * 4, s->d, nb * 4);
        if (code == BR_OK && subs)
            code = send(s, m->scale, i / m->sub, s->scale, n / m->sub);
        if (code == BR_OK && subs && min)
            code = send(s, m->min, i / m->sub, s->min, n / m->sub);
        if (code == BR_OK && min)
            code = send(s, m->dmin, b * 4, s->dmin, nb * 4);
        advance(s, n);
    }
    return code;
}

/* Formats that are taken apart on the device, by far the most common. */
static enum br_nd_file
file_of(int type)
{
    switch (type) {
    case BR_Q_Q8_0: return BR_ND_FILE_Q8_0;
    case BR_Q_Q4_0: return BR_ND_FILE_Q4_0;
    case BR_Q_Q4_K: return BR_ND_FILE_Q4_K;
    case BR_Q_Q5_K: return BR_ND_FILE_Q5_K;
    case BR_Q_Q6_K: return BR_ND_FILE_Q6_K;
    default: return BR_ND_FILE_NO;
    }
}

static br_code
unpack_there(sending *s)
{
    enum { EACH = 4 * BR_ND_WARPS * 32, Q6_K_SCALE = 208 };
    br_cun *x = s->x;
    struct br_nd_args a = {.op = file_of(s->t->type),
                           .m = *s->m,
                           .x.p = (void *)(uintptr_t)s->file,
                           .width = (uint32_t)s->info->bytes,
                           .slot_elems = s->n};

    a.off = a.op == BR_ND_FILE_Q6_K ? Q6_K_SCALE : 0;
    BR_TRY(cun_put(x, s->file, s->t->data, s->t->bytes, s->st));
    BR_TRY(BR_CU(&x->cu, s->st,
                 cuLaunchKernel(x->fn[CUN_unpack],
                                (unsigned)((s->n + EACH - 1) / EACH), 1, 1,
                                BR_ND_WARPS * 32, 1, 1, 0, x->cu.stream,
                                (void *[]){&a}, NULL)));
    advance(s, s->n);
    return BR_OK;
}

static br_code
send_ints(sending *s)
{
    struct br_nd_mat *m = s->m;
    br_qint first;
    br_code code = BR_OK;

    br_qint_block(s->t->type, s->t->data, &first);
    m->kind = BR_ND_INT;
    m->block = (uint32_t)first.n;
    m->sub = (uint32_t)first.sub;
    br_check((m->block == 32 || m->block == 256) && "blocks of the contract");
    BR_TRY(room(s, &m->q, s->n));
    BR_TRY(room(s, (const void **)&m->d, s->n / m->block * 4));
    if (m->block == 256)
        BR_TRY(room(s, (const void **)&m->scale, s->n / m->sub));
    if (m->block == 256 && first.has_min)
        BR_TRY(room(s, (const void **)&m->min, s->n / m->sub));
    if (first.has_min)
        BR_TRY(room(s, (const void **)&m->dmin, s->n / m->block * 4));
    if (s->file)
        return unpack_there(s);
    s->q = br_try_alloc(PIECE);
    s->scale = br_try_alloc(PIECE / 16);
    s->min = br_try_alloc(PIECE / 16);
    s->d = br_try_alloc(PIECE / 32 * sizeof *s->d);
    s->dmin = br_try_alloc(PIECE / 32 * sizeof *s->dmin);
    if (!s->q || !s->scale || !s->min || !s->d || !s->dmin)
        code = br_fail(s->st, BR_E_OOM, "weights: out of memory");
    if (code == BR_OK)
        code = send_blocks(s, first.has_min);
    br_free(s->q);
    br_free(s->scale);
    br_free(s->min);
    br_free(s->d);
    br_free(s->dmin);
    return code;
}

enum br_nd_kind
cun_form_of(int type)
{
    switch (type) {
    case BR_Q_F16:
    case BR_Q_BF16: return BR_ND_TILES;
    case BR_Q_Q4_0:
    case BR_Q_Q4_1:
    case BR_Q_Q4_K: return BR_ND_PACK_4_MIN;
    case BR_Q_Q5_1:
    case BR_Q_Q5_K: return BR_ND_PACK_8_MIN;
    case BR_Q_Q2_K: return BR_ND_INT; /* a minimum every 16 */
    default: return br_qint_has(type) ? BR_ND_PACK_8 : BR_ND_F32;
    }
}

bool
cun_exact_form(const br_cun *x)
{
    return x->c.exact || x->plain;
}

bool
cun_tiled(const br_cun *x, uint32_t v)
{
    const br_gguf_tensor *t = x->v.at[v].t;
    const br_ir_value *value = &x->v.g->values[v];

    return t && !cun_exact_form(x) && value->rank == 2 &&
           cun_form_of(t->type) >= BR_ND_TILES && value->dim[1] % 64 == 0 &&
           value->dim[1] <= BR_ND_ROW_MOST;
}

bool
cun_alike(const br_cun *x, uint32_t v, uint32_t w)
{
    return cun_form_of(x->v.at[v].t->type) == cun_form_of(x->v.at[w].t->type);
}

bool
cun_has_rows(const br_cun *x, uint32_t v)
{
    const br_gguf_tensor *t = x->v.at[v].t;

    return t->type == BR_Q_F32 || t->type == BR_Q_F16 || t->type == BR_Q_BF16 ||
           cun_tiled(x, v);
}

/* Into how many pieces a matrix's columns are cut (`blocks` 64s of them, of
 * `tiles` of rows): as many as fill the multiprocessors of an H200 evenly. A
 * piece costs what its sums are carried. It is part of the arithmetic, so the
 * device at hand has no say. */
uint32_t
cun_piece_of(uint64_t tiles, uint32_t blocks)
{
    enum {
        AT_ONCE = 132,
        MOST = BR_ND_PIECES,
        CARRY = 64 /* tiles and pieces a block */
    };
    uint64_t least = UINT64_MAX;
    uint32_t best = blocks;

    for (uint32_t n = 1; n <= BR_MIN((uint32_t)MOST, blocks); n++) {
        const uint32_t each = (blocks + n - 1) / n;
        const uint64_t pieces = (blocks + each - 1) / each;
        const uint64_t rounds = (tiles * pieces + AT_ONCE - 1) / AT_ONCE;
        const uint64_t cost =
            rounds * each * CARRY + (pieces > 1 ? tiles * pieces : 0);

        if (cost < least) {
            least = cost;
            best = each;
        }
    }
    return best;
}

/* Of integers unpacked: a byte, two f32 every 32, two bytes every 16; five arrays, each
 * begins at 16 bytes. */
#define BYTES_OF_INTS(n) ((n) + (n) / 4 + (n) / 8 + 5 * 16)

/* The buffer that matrices pass through has room for so much. */
static br_code
room_on_the_way(br_cun *x, uint64_t bytes, br_status *st)
{
    if (bytes <= x->raw_bytes)
        return BR_OK;
    br_cuda_free(&x->cu, x->raw);
    x->raw = x->raw_bytes = 0;
    BR_TRY(br_cuda_alloc(&x->cu, &x->raw, bytes, st));
    x->raw_bytes = bytes;
    return BR_OK;
}

/* The tensor to that buffer, as m says: floats and `raw` formats as the file has them,
 * integers unpacked. */
static br_code
on_the_way(br_cun *x, const br_gguf_tensor *t, bool raw, struct br_nd_mat *m,
           br_status *st)
{
    sending s = {.x = x,
                 .t = t,
                 .info = br_qinfo_of(t->type),
                 .m = m,
                 .n = t->dim[0] * t->dim[1],
                 .st = st};

    BR_TRY(go_on(x, st));
    m->n_in = (uint32_t)t->dim[0];
    m->n_out = (uint32_t)t->dim[1];
    if (raw) {
        BR_TRY(room_on_the_way(x, t->bytes, st));
        BR_TRY(cun_put(x, x->raw, t->data, t->bytes, st));
        advance(&s, s.n);
        return BR_OK;
    }
    if (cun_form_of(t->type) != BR_ND_TILES) {
        const uint64_t most = BYTES_OF_INTS(s.n);

        BR_TRY(room_on_the_way(x, most + t->bytes, st));
        s.to = x->raw;
        s.file = file_of(t->type) ? x->raw + most : 0;
        return send_ints(&s);
    }
    BR_TRY(room_on_the_way(x, t->bytes, st));
    m->q = (const void *)(uintptr_t)x->raw;
    m->kind = t->type == BR_Q_F16 ? BR_ND_F16 : BR_ND_BF16;
    BR_TRY(cun_put(x, x->raw, t->data, t->bytes, st));
    advance(&s, s.n);
    return BR_OK;
}

/* Rows of a tensor that pass at once: whole eights. */
static uint64_t
rows_at_once(const br_gguf_tensor *t)
{
    return BR_MIN(t->dim[1], BR_MAX(SLAB / t->dim[0] / 8 * 8, (uint64_t)8));
}

static br_gguf_tensor
rows_of(const br_gguf_tensor *t, uint64_t first, uint64_t n)
{
    const uint64_t each = t->bytes / t->dim[1];
    br_gguf_tensor some = *t;

    some.dim[1] = n;
    some.data += first * each;
    some.bytes = n * each;
    return some;
}

uint64_t
cun_way_of(const br_gguf_tensor *t)
{
    const uint64_t rows = rows_at_once(t), n = rows * t->dim[0];
    const br_qinfo *info = br_qinfo_of(t->type);
    const uint64_t bytes = n / info->elems * info->bytes;

    if (cun_form_of(t->type) < BR_ND_INT || cun_form_of(t->type) == BR_ND_TILES)
        return bytes;
    return BYTES_OF_INTS(n) + bytes;
}

/* Rows of a tensor as tiles, from row `at` of the matrix on; squares: of two
 * matrices whose rows take turns. */
static br_code
send_rows(br_cun *x, const br_gguf_tensor *t, const struct br_nd_mat *m,
          uint32_t at, uint64_t squares, br_status *st)
{
    struct br_nd_args a = {.op = m->kind,
                           .xq = (void *)(uintptr_t)m->q,
                           .xd = (float *)(uintptr_t)m->d,
                           .lows = m->sub,
                           .sums = (void *)(uintptr_t)squares,
                           .pitch = squares ? 8 : 0,
                           .off = at};
    const bool raw = m->kind >= BR_ND_PACK_MX; /* as the file has it */

    BR_TRY(on_the_way(x, t, raw, &a.m, st));
    a.x.p = raw ? (void *)(uintptr_t)x->raw : NULL;
    return BR_CU(&x->cu, st,
                 cuLaunchKernel(x->fn[m->kind == BR_ND_PACK_MX ? CUN_pack_mx
                                      : raw                    ? CUN_pack_f8
                                      : m->kind == BR_ND_TILES ? CUN_tile
                                                               : CUN_pack],
                                (a.m.n_out + BR_ND_WARPS - 1) / BR_ND_WARPS, 1,
                                1, BR_ND_WARPS * 32, 1, 1, 0, x->cu.stream,
                                (void *[]){&a}, NULL));
}

br_code
cun_send_tiles(br_cun *x, const br_gguf_tensor *t, const struct br_nd_mat *m,
               uint32_t at, uint64_t squares, br_status *st)
{
    const uint64_t most = rows_at_once(t);

    for (uint64_t r = 0; r < t->dim[1]; r += most) {
        const br_gguf_tensor some = rows_of(t, r, BR_MIN(most, t->dim[1] - r));

        BR_TRY(send_rows(x, &some, m, at + (uint32_t)(squares ? 2 * r : r),
                         squares ? squares + r * sizeof(float) : 0, st));
    }
    return BR_OK;
}

/* Room for a matrix of so many tiles of rows, n_in set. */
static br_code
room_for_tiles(br_cun *x, uint32_t tiles, struct br_nd_mat *out, br_status *st)
{
    struct br_nd_mat m = {.kind = out->kind, .n_in = out->n_in};
    const uint64_t rows = (uint64_t)tiles * BR_ND_TILE_ROWS;
    const uint64_t bytes =
        m.kind == BR_ND_TILES
            ? rows * m.n_in * 2
            : (uint64_t)tiles * (m.n_in / 64) * BR_ND_PACK_BYTES(m.kind);
    uint64_t q, d, pieces;

    m.n_out = (uint32_t)rows;
    m.sub = (uint32_t)(rows / 8);
    m.block = cun_piece_of(tiles, m.n_in / 64);
    pieces = (m.n_in / 64 + m.block - 1) / m.block;
    br_check(pieces < 2 || (BR_MAX(tiles, (uint32_t)CUN_FULL) <= x->n_met &&
                            BR_MAX(tiles, (uint32_t)CUN_FULL) * pieces <=
                                x->n_sums)); /* cuda_fit.c */
    BR_TRY(cun_take(x, CUN_MATRICES, &q, bytes, st));
    BR_TRY(cun_take(x, CUN_MATRICES, &d, rows * 4, st));
    BR_TRY(br_cuda_fill(&x->cu, q, 0, bytes / 4, st));
    BR_TRY(br_cuda_fill(&x->cu, d, 0, rows, st));
    m.q = (const void *)(uintptr_t)q;
    m.d = (const float *)(uintptr_t)d;
    *out = m;
    return BR_OK;
}

static struct br_nd_mat
tiles_like(const br_cun *x, uint32_t v)
{
    return (struct br_nd_mat){.n_in = (uint32_t)x->v.g->values[v].dim[1],
                              .kind = cun_form_of(x->v.at[v].t->type)};
}

br_code
cun_stack(br_cun *x, const uint32_t *v, uint32_t n, struct br_nd_mat *out,
          uint32_t *end, br_status *st)
{
    uint32_t tiles = 0;

    *out = tiles_like(x, v[0]);
    for (uint32_t i = 0; i < n; i++) {
        tiles += (uint32_t)((x->v.at[v[i]].t->dim[1] + BR_ND_TILE_ROWS - 1) /
                            BR_ND_TILE_ROWS);
        end[i] = tiles;
    }
    BR_TRY(room_for_tiles(x, tiles, out, st));
    if (n == 1)
        out->n_out = (uint32_t)x->v.at[v[0]].t->dim[1];
    for (uint32_t i = 0; i < n; i++) {
        const br_gguf_tensor *t = x->v.at[v[i]].t;

        BR_TRY(cun_send_tiles(x, t, out, i ? end[i - 1] * BR_ND_TILE_ROWS : 0,
                              0, st));
        x->weight_bytes += t->bytes;
    }
    return BR_OK;
}

br_code
cun_pair(br_cun *x, const uint32_t *v, struct br_nd_mat *out, float *most,
         br_status *st)
{
    /* the bound of tensor cores' sums, and of what is rounded for them */
    const double slack = 1.01;
    const size_t rows = (size_t)x->v.at[v[0]].t->dim[1];
    float *square = br_try_calloc(2 * rows, sizeof *square);
    uint64_t p = 0;
    double top = 0;
    br_code code;

    if (!square)
        return br_fail(st, BR_E_OOM, "weights: out of memory");
    *out = tiles_like(x, v[0]);
    code = room_for_tiles(x, (uint32_t)(2 * rows / BR_ND_TILE_ROWS), out, st);
    if (code == BR_OK)
        code = br_cuda_alloc(&x->cu, &p, 2 * rows * sizeof *square, st);
    for (uint32_t i = 0; code == BR_OK && i < 2; i++) {
        const br_gguf_tensor *t = x->v.at[v[i]].t;

        code =
            cun_send_tiles(x, t, out, 8 * i, p + i * rows * sizeof *square, st);
        x->weight_bytes += t->bytes;
    }
    if (code == BR_OK)
        code = cun_wait(x, st);
    if (code == BR_OK)
        code = cun_get(x, square, p, 2 * rows * sizeof *square, st);
    for (size_t i = 0; i < rows; i++)
        top = BR_MAX(top, (double)square[i] * (double)square[rows + i]);
    *most = (float)(sqrt(top) * slack);
    br_cuda_free(&x->cu, p);
    br_free(square);
    return code;
}

/* What a matrix takes: as send_ints, send_floats and room_for_tiles say, each array up to
 * a multiple of 256. */
uint64_t
cun_matrix_bytes(const br_cun *x, uint32_t v)
{
    enum { ARRAYS = 6, MORE = ARRAYS * 256 };
    const br_gguf_tensor *t = x->v.at[v].t;
    const uint64_t tiles = (t->dim[1] + BR_ND_TILE_ROWS - 1) / BR_ND_TILE_ROWS;
    const enum br_nd_kind form = cun_form_of(t->type);
    uint64_t n = 1, rest;
    br_qint b;

    for (uint32_t i = 0; i < t->n_dims; i++)
        n *= t->dim[i];
    if (cun_asked_as_tiles(x, v))
        return tiles * BR_ND_TILE_ROWS * 4 * t->dim[2] + MORE;
    if (cun_tiled(x, v))
        return tiles * (BR_ND_TILE_ROWS * 4 +
                        t->dim[0] / 64 *
                            (form == BR_ND_TILES ? BR_ND_TILE_ROWS * 128u
                                                 : BR_ND_PACK_BYTES(form))) +
               MORE;
    if (!br_qint_has(t->type))
        return n * (t->type == BR_Q_F16 || t->type == BR_Q_BF16 ? 2 : 4) + MORE;
    br_qint_block(t->type, t->data, &b);
    rest = n / (uint32_t)b.n * 4;
    if (b.n == 256)
        rest += n / (uint32_t)b.sub;
    return n + rest * (b.has_min ? 2 : 1) + MORE;
}

br_code
cun_matrix(br_cun *x, uint32_t v, br_status *st)
{
    const br_gguf_tensor *t = x->v.at[v].t;
    const br_ir_value *value = &x->v.g->values[v];
    const int r = value->rank;
    struct br_nd_mat *m = &x->mat[v];
    sending s = {
        .x = x, .t = t, .info = br_qinfo_of(t->type), .m = m, .n = 1, .st = st};

    if (m->q)
        return BR_OK;
    br_assert(!cun_asked_as_tiles(x, v) && "see cun_expert_tiles");
    if (cun_tiled(x, v))
        return cun_stack(x, &v, 1, m, &(uint32_t){0}, st);
    for (uint32_t i = 0; i < t->n_dims; i++)
        s.n *= t->dim[i];
    m->n_in = (uint32_t)value->dim[r - 1];
    m->n_out = (uint32_t)(r > 1 ? value->dim[r - 2] : 1);
    if (br_qint_has(t->type))
        return send_ints(&s);
    return send_floats(&s, t->type == BR_Q_F16    ? BR_ND_F16
                           : t->type == BR_Q_BF16 ? BR_ND_BF16
                                                  : BR_ND_F32);
}
