/* amd_hand.c - see amd_hand.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/nodes/amd_hand.h"

#include "base/embed.h"

#include <stddef.h>

#define HAND(kernel)
#define HAND_FILE(file)                                    \
    BR_EMBED("br_hand_" #file, "kernels/gcn/" #file ".s"); \
    extern const char br_hand_##file[], br_hand_##file##_end[];
#include "drv/nodes/amd_hand.def"

/* Where the files find an argument. */
#define AT(field, at)                                        \
    _Static_assert(offsetof(struct br_nd_args, field) == at, \
                   "kernels/gcn has " #field " elsewhere")
AT(n_rows, 0x0);
AT(x.p, 0x10);
AT(x.stride, 0x18);
AT(w.p, 0x30);
AT(y.p, 0x40);
AT(y.stride, 0x48);
AT(m.q, 0x60);
AT(m.scale, 0x68);
AT(m.min, 0x70);
AT(m.d, 0x78);
AT(m.dmin, 0x80);
AT(m.n_out, 0x8c);
AT(m.n_in, 0x90);
AT(m.sub, 0x98);
AT(xq, 0x130);
AT(xd, 0x138);
AT(e.ids, 0x198);
AT(e.stride, 0x1a0);
AT(e.k, 0x1a4);
AT(e.share, 0x1a8);
AT(e.rows, 0x1ac);
AT(e.first, 0x1b0);
AT(width, 0x184);
AT(eps, 0x22c);
AT(s.position, 0xa8);
AT(s.at, 0xc8);
AT(s.tables, 0xd0);
AT(s.n_groups, 0xd8);
AT(k.pool, 0xe0);
AT(k.page, 0xe8);
AT(k.first, 0xf0);
AT(k.cols, 0xf8);
AT(k.group, 0xfc);
AT(v.pool, 0x108);
AT(v.page, 0x110);
AT(v.first, 0x118);
AT(v.cols, 0x120);
AT(v.group, 0x124);
AT(per_kv, 0x20c);
AT(head_k, 0x210);
AT(head_v, 0x214);
AT(heads, 0x208);
AT(n_rot, 0x218);
AT(neighbours, 0x21c);
AT(window, 0x220);
AT(scale, 0x224);

const char *
br_hand_name(br_hand hand)
{
    static const char *const names[] = {
#define HAND_FILE(file)
#define HAND(kernel) "br_nd_" #kernel,
#include "drv/nodes/amd_hand.def"
    };

    br_assert(hand < BR_HANDS && "a kernel by hand");
    return names[hand];
}

void
br_hand_text(br_str *out)
{
#define HAND(kernel)
#define HAND_FILE(file)             \
    br_str_put(out, br_hand_##file, \
               (size_t)(br_hand_##file##_end - br_hand_##file));
#include "drv/nodes/amd_hand.def"
}

static bool
wide(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

/* Keys or values that are F16, heads of which begin on 16 bytes. */
static bool
halves(const struct br_nd_cache *c, uint32_t head)
{
    return c->pool && c->half && wide(c->pool) && c->page % 8 == 0 &&
           c->page <= UINT32_MAX && c->first % 8 == 0 && c->cols % 8 == 0 &&
           head % 64 == 0 && head <= 256;
}

/* One row of heads that turn whole, half of which is a power of two. */
static bool
turns(const struct br_nd_args *a)
{
    const uint32_t half = a->n_rot / 2;

    return a->n_rows == 1 && a->n_rot == a->head_k && a->n_rot % 2 == 0 &&
           half && !(half & (half - 1)) &&
           (uint64_t)half * a->heads < 1 << 28 && (uintptr_t)a->x.p % 8 == 0 &&
           (uintptr_t)a->y.p % 8 == 0;
}

/* A matrix whose rows, and those of x, a group of br_nd_mul_int*_rows takes. */
static bool
in_tiles(const struct br_nd_args *a, uint32_t blocks[3])
{
    enum { GROUP_OUT = 16 * BR_ND_WARPS, GROUP_ROWS = 32 };
    const struct br_nd_mat *m = &a->m;

    blocks[0] = (a->n_rows + GROUP_ROWS - 1) / GROUP_ROWS;
    blocks[1] = (m->n_out + GROUP_OUT - 1) / GROUP_OUT;
    return !a->e.ids && m->n_in < 1 << 24 && m->n_out < 1 << 22 &&
           a->y.stride < 1 << 24;
}

/* Sub-blocks, of which the kernels know two sizes. */
static br_hand
sub_blocks(const struct br_nd_args *a, bool row, uint32_t blocks[3])
{
    const struct br_nd_mat *m = &a->m;

    if ((m->sub != 16 && m->sub != 32) || m->n_in % 256)
        return BR_HANDS;
    if (row)
        return BR_HAND_mul_int256;
    return (uintptr_t)m->scale % 8 == 0 && (uintptr_t)m->min % 8 == 0 &&
                   in_tiles(a, blocks)
               ? BR_HAND_mul_int256_rows
               : BR_HANDS;
}

/* Products of integers: of one row, or of pairs; by v_wmma of rows of one matrix. */
static br_hand
integers(const br_nd_launch *l, bool row, uint32_t blocks[3])
{
    const struct br_nd_args *a = l->args;
    const struct br_nd_mat *m = &a->m;

    if (!wide(m->q) || !wide(a->xq))
        return BR_HANDS;
    if (l->fn == BR_ND_FN_mul_int256)
        return sub_blocks(a, row, blocks);
    if (m->dmin || m->n_in % 32)
        return BR_HANDS;
    if (row)
        return BR_HAND_mul_int32;
    return m->n_in % 128 == 0 && wide(m->d) && wide(a->xd) &&
                   in_tiles(a, blocks)
               ? BR_HAND_mul_int32_rows
               : BR_HANDS;
}

static br_hand
floats(const br_nd_launch *l, bool row, uint32_t blocks[3])
{
    enum { WAVE_ROWS = 16 };
    const struct br_nd_args *a = l->args;
    const struct br_nd_mat *m = &a->m;

    blocks[0] =
        (m->n_out + WAVE_ROWS * BR_ND_WARPS - 1) / (WAVE_ROWS * BR_ND_WARPS);
    if (!row || !wide(m->q) || !wide(a->x.p) || a->x.stride % 4 ||
        m->n_in % 16 || m->n_in >= 1 << 24)
        return BR_HANDS;
    return l->fn == BR_ND_FN_mul_f16 ? BR_HAND_mul_f16 : BR_HAND_mul_bf16;
}

static bool
attends(const br_nd_launch *l)
{
    const struct br_nd_args *a = l->args;

    return !a->w.p && !(a->cap > 0) && halves(&a->k, a->head_k) &&
           halves(&a->v, a->head_v) && (uintptr_t)a->y.p % 8 == 0 &&
           a->y.stride % 2 == 0 && l->blocks[0] < 1 << 16;
}

static bool
norms(const struct br_nd_args *a)
{
    return a->w.p && wide(a->w.p) && wide(a->x.p) && wide(a->y.p) &&
           a->x.stride % 4 == 0 && a->y.stride % 4 == 0 &&
           a->width % 256 == 0 && a->width <= 8192 && a->eps >= 0x1p-60f;
}

/* Pairs of rows and experts: a row of x each, or one for those of a row. */
static bool
pairs(const br_nd_launch *l)
{
    const struct br_nd_route *e = &l->args->e;

    return e->k && l->blocks[1] % e->k == 0 && l->blocks[1] / e->k < 1 << 16 &&
           (e->share == 1 || e->share == e->k);
}

br_hand
br_hand_takes(const br_nd_launch *l, uint32_t blocks[3])
{
    const struct br_nd_args *a = l->args;
    const bool row = a->e.ids ? pairs(l) : a->n_rows == 1;

    blocks[0] = l->blocks[0];
    blocks[1] = row && a->e.ids ? a->e.k : l->blocks[1];
    blocks[2] = row && a->e.ids ? l->blocks[1] / a->e.k : 1;
    switch (l->fn) {
    case BR_ND_FN_mul_int32:
    case BR_ND_FN_mul_int256: return integers(l, row, blocks);
    case BR_ND_FN_mul_f16:
    case BR_ND_FN_mul_bf16: return floats(l, row, blocks);
    case BR_ND_FN_attend: return attends(l) ? BR_HAND_attend : BR_HANDS;
    case BR_ND_FN_norm: return norms(a) ? BR_HAND_norm : BR_HANDS;
    case BR_ND_FN_rope: return turns(a) ? BR_HAND_rope : BR_HANDS;
    default: return BR_HANDS;
    }
}
