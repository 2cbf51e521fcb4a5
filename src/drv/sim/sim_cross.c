/* sim_cross.c - vector instructions that look at other lanes, and the odd ones:
 * readlane, permlane, swaps, matrix products.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_float.h"
#include "drv/sim/sim_int.h"
#include "drv/sim/sim_wide.h"

#include <math.h>
#include <string.h>

static uint32_t *
vgpr(sim_wave *w, unsigned reg)
{
    return w->v + reg * w->w;
}

static bool
nothing(sim_wave *w, const sim_op *o)
{
    (void)w;
    (void)o;
    return true;
}

static bool
read_first(sim_wave *w, const sim_op *o)
{
    uint64_t exec = sim_exec(w);
    unsigned lane = exec ? (unsigned)__builtin_ctzll(exec) : 0;

    sim_set_scalar(w, &o->dst, vgpr(w, o->src[0].reg)[lane]);
    return true;
}

static bool
read_lane(sim_wave *w, const sim_op *o)
{
    unsigned lane = (unsigned)sim_scalar(w, &o->src[1]) & (w->w - 1);

    sim_set_scalar(w, &o->dst, vgpr(w, o->src[0].reg)[lane]);
    return true;
}

static bool
write_lane(sim_wave *w, const sim_op *o)
{
    unsigned lane = (unsigned)sim_scalar(w, &o->src[1]) & (w->w - 1);

    vgpr(w, o->dst.reg)[lane] = (uint32_t)sim_scalar(w, &o->src[0]);
    return true;
}

static bool
swap(sim_wave *w, const sim_op *o)
{
    uint32_t *a = vgpr(w, o->dst.reg), *b = vgpr(w, o->src[0].reg);

    for (unsigned i = 0; i < w->w; i++)
        if (sim_exec(w) >> i & 1) {
            uint32_t t = a[i];

            a[i] = b[i];
            b[i] = t;
        }
    return true;
}

/* Rows of 16 lanes: each lane takes the one that 4 bits of the selectors name,
 * of its own row or of the row beside it. */
static bool
permlane(sim_wave *w, const sim_op *o, bool other)
{
    uint32_t d[64], *to = vgpr(w, o->dst.reg);
    const uint32_t *from = vgpr(w, o->src[0].reg);
    bool var = o->src[1].file == SIM_V;
    uint64_t exec = sim_exec(w), sel = 0;
    bool fi = o->src[0].sel, bc = o->src[1].sel;

    if (!var)
        sel = (uint32_t)sim_scalar(w, &o->src[1]) | sim_scalar(w, &o->src[2])
                                                        << 32;
    for (unsigned i = 0; i < w->w; i++) {
        unsigned k = var ? vgpr(w, o->src[1].reg)[i] & 15
                         : (unsigned)(sel >> 4 * (i & 15)) & 15;
        unsigned lane = ((i & ~15u) ^ (other ? 16 : 0)) | k;

        d[i] = exec >> lane & 1 || fi ? from[lane] : bc ? 0 : to[i];
    }
    for (unsigned i = 0; i < w->w; i++)
        to[i] = exec >> i & 1 ? d[i] : to[i];
    return true;
}

static bool
permlane16(sim_wave *w, const sim_op *o)
{
    return permlane(w, o, false);
}

static bool
permlanex16(sim_wave *w, const sim_op *o)
{
    return permlane(w, o, true);
}

/* The halves of a wave64 change places, lanes that are off included. */
static bool
permlane64(sim_wave *w, const sim_op *o)
{
    uint32_t d[64], *to = vgpr(w, o->dst.reg);

    memcpy(d, vgpr(w, o->src[0].reg), w->w * sizeof *d);
    for (unsigned i = 0; w->w == 64 && i < 64; i++)
        to[i] = sim_exec(w) >> i & 1 ? d[i ^ 32] : to[i];
    return true;
}

static bool
moved(sim_wave *w, const sim_op *o, unsigned to, unsigned from)
{
    if (to >= 256 || from >= 256)
        return sim_fault(w, BR_E_FAULT, "M0 names a register behind v255");
    for (unsigned i = 0; i < w->w; i++)
        if (sim_exec(w) >> i & 1)
            vgpr(w, to)[i] = o->src[0].file == SIM_V
                                 ? vgpr(w, from)[i]
                                 : (uint32_t)sim_scalar(w, &o->src[0]);
    return true;
}

static bool
move_to(sim_wave *w, const sim_op *o)
{
    return moved(w, o, o->dst.reg + w->s[SIM_M0], o->src[0].reg);
}

static bool
move_from(sim_wave *w, const sim_op *o)
{
    return moved(w, o, o->dst.reg, o->src[0].reg + w->s[SIM_M0]);
}

/* The lane that lane i of a half takes from: groups of 4, or of 32; from 0xc000 on
 * they go round, from 0xe000 on they are in the order of an FFT. */
static unsigned
swizzled(unsigned off, unsigned i)
{
    unsigned mask = off & 31, by = off >> 5 & 31, r = 0;

    if (off < 0x8000)
        return ((i & mask) | by) ^ (off >> 10 & 31);
    if (off < 0xc000)
        return (i & ~3u) | (off >> 2 * (i & 3) & 3);
    if (off < 0xe000)
        return (i & mask) | ((off & 0x400 ? i - by : i + by) & 31 & ~mask);
    for (unsigned k = 0; k < 5; k++)
        r |= (i >> k & 1) << (4 - k);
    return r >> __builtin_popcount(mask) | (i & mask);
}

/* Lanes exchange values: nothing is stored. */
bool
sim_exchange(sim_wave *w, const sim_op *o)
{
    unsigned act = o->sem->src[0], off = (unsigned)o->imm;
    uint64_t exec = sim_exec(w);
    uint32_t d[64] = {0}, *to = vgpr(w, o->dst.reg);
    const uint32_t *addr = vgpr(w, o->src[0].reg);
    const uint32_t *data = vgpr(w, o->src[1].reg);

    if (act == ACT_BPERMUTE && o->gathers) {
        sim_wide_permute(to, data, addr, off, (uint32_t)exec);
        return true;
    }
    for (unsigned i = 0; i < w->w; i++) {
        unsigned k, half = i & 32;

        if (!(exec >> i & 1))
            continue;
        if (act == ACT_SWIZZLE) {
            k = half | swizzled(off & 0xffff, i & 31);
            d[i] = exec >> k & 1 ? addr[k] : 0;
            continue;
        }
        k = half | ((addr[i] + off) / 4 & 31);
        if (act == ACT_BPERMUTE)
            d[i] = exec >> k & 1 ? data[k] : 0;
        else
            d[k] = data[i];
    }
    for (unsigned i = 0; i < w->w; i++)
        to[i] = exec >> i & 1 ? d[i] : to[i];
    return true;
}

/* ---- matrix products: D = A B + C, 16 by 16 by 16 --------------------- */

/* Where row r (A) or column r (B), element k lies: the register and the half or
 * part of it. gfx11: all 16 in each of lanes 0-15, and again in 16-31; gfx12:
 * lanes 0-15 hold k 0-7, lanes 16-31 the rest. bits: of an element. */
static uint32_t
element(sim_wave *w, const sim_opnd *p, unsigned r, unsigned k, unsigned bits)
{
    unsigned lane = r, at = k, per = 32 / bits;

    if (w->isa.cpu->gen == 12) {
        unsigned part = w->w == 64 ? 4 : 8; /* of k in a lane */

        lane += k / part * 16;
        at = k % part;
    }
    return vgpr(w, p->reg + at / per)[lane] >> at % per * bits &
           (bits == 32 ? ~0u : (1u << bits) - 1);
}

/* D and C: gfx11 lane l has rows 2 i + l / 16 (wave64: 4 i + l / 16), gfx12
 * rows 8 (l / 16) + i (4 in wave64); column l % 16. */
static unsigned
row_of(const sim_wave *w, unsigned lane, unsigned i)
{
    unsigned parts = w->w / 16;

    return w->isa.cpu->gen == 11 ? parts * i + lane / 16
                                 : 16 / parts * (lane / 16) + i;
}

static float
as_float(uint32_t v, bool bf16)
{
    return bf16 ? br_bf16_to_f32((uint16_t)v) : sim_f16(v);
}

typedef struct matrix {
    sim_wave *w;
    const sim_op *o;
    unsigned bits;
    bool bf16, whole, wide; /* wide: D is 32 bits */
} matrix;

static uint32_t
addend(const matrix *m, unsigned i, unsigned lane)
{
    const sim_opnd *c = &m->o->src[2];
    uint32_t v;

    if (c->file == SIM_K)
        v = (uint32_t)c->k;
    else if (m->wide || m->w->isa.cpu->gen == 11)
        v = vgpr(m->w, c->reg + i)[lane];
    else
        v = vgpr(m->w, c->reg + i / 2)[lane] >> i % 2 * 16;
    if (!m->wide && m->w->isa.cpu->gen == 11)
        v = m->o->src[2].sel ? v >> 16 : v;
    return v;
}

static uint32_t
float_sum(const matrix *m, unsigned i, unsigned lane)
{
    unsigned r = row_of(m->w, lane, i);
    uint32_t c = addend(m, i, lane);
    const sim_opnd *s = m->o->src;
    float sum = m->wide ? br_f32_of(c) : as_float(c & 0xffff, m->bf16);

    if (s[2].neg_hi)
        sum = fabsf(sum);
    sum = s[2].neg ? -sum : sum;
    for (unsigned k = 0; k < 16; k++) {
        float a = as_float(element(m->w, &s[0], r, k, 16), m->bf16);
        float b = as_float(element(m->w, &s[1], lane % 16, k, 16), m->bf16);

        a = (k & 1 ? s[0].neg_hi : s[0].neg) ? -a : a;
        b = (k & 1 ? s[1].neg_hi : s[1].neg) ? -b : b;
        sum = fmaf(a, b, sum);
    }
    if (m->wide)
        return br_f32_bits(sum);
    return m->bf16 ? br_f32_to_bf16(sum) : br_f32_to_f16(sum);
}

static uint32_t
whole_sum(const matrix *m, unsigned i, unsigned lane)
{
    unsigned r = row_of(m->w, lane, i);
    const sim_opnd *s = m->o->src;
    uint32_t top = 1u << (m->bits - 1);
    int64_t sum = (int32_t)addend(m, i, lane);

    for (unsigned k = 0; k < 16; k++) {
        uint32_t a = element(m->w, &s[0], r, k, m->bits);
        uint32_t b = element(m->w, &s[1], lane % 16, k, m->bits);

        sum += (s[0].neg ? (int64_t)(a ^ top) - top : (int64_t)a) *
               (s[1].neg ? (int64_t)(b ^ top) - top : (int64_t)b);
    }
    if (m->o->clamp)
        sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
    return (uint32_t)sum;
}

static bool
wmma(sim_wave *w, const sim_op *o)
{
    const char *name = o->row->name;
    matrix m = {.w = w, .o = o, .bits = 16};
    unsigned n = 256 / w->w;
    uint32_t d[16][64];
    bool pack;

    m.wide = strncmp(name, "v_wmma_f32", 10) == 0 ||
             strncmp(name, "v_wmma_i32", 10) == 0;
    m.whole = strncmp(name, "v_wmma_i32", 10) == 0;
    m.bf16 = strstr(name, "16_bf16") != NULL;
    m.bits = !m.whole ? 16 : strstr(name, "iu8") ? 8 : 4;
    pack = !m.wide && w->isa.cpu->gen == 12;
    if (sim_exec(w) != (w->w == 64 ? ~0ull : UINT32_MAX))
        return sim_fault(w, BR_E_FAULT, "a matrix product with lanes off");
    for (unsigned i = 0; i < n; i++)
        for (unsigned lane = 0; lane < w->w; lane++)
            d[i][lane] =
                m.whole ? whole_sum(&m, i, lane) : float_sum(&m, i, lane);
    for (unsigned i = 0; i < n; i++)
        for (unsigned lane = 0; lane < w->w; lane++) {
            uint32_t *to = vgpr(w, o->dst.reg + (pack ? i / 2 : i)) + lane;
            bool high = pack ? i & 1 : o->src[2].sel;

            if (m.wide)
                *to = d[i][lane];
            else
                *to = high ? (*to & 0xffff) | d[i][lane] << 16
                           : (*to & 0xffff0000) | d[i][lane];
        }
    return true;
}

#define ROW(name, fn)                   \
    {                                   \
        name, fn, NULL, NULL, 0, {0}, 0 \
    }
const sim_sem sim_cross_rows[] = {
    ROW("v_nop", nothing),
    ROW("v_pipeflush", nothing),
    ROW("v_readfirstlane_b32", read_first),
    ROW("v_readlane_b32", read_lane),
    ROW("v_writelane_b32", write_lane),
    ROW("v_swap_b32", swap),
    ROW("v_permlane16_b32", permlane16),
    ROW("v_permlanex16_b32", permlanex16),
    ROW("v_permlane16_var_b32", permlane16),
    ROW("v_permlanex16_var_b32", permlanex16),
    ROW("v_permlane64_b32", permlane64),
    ROW("v_movreld_b32", move_to),
    ROW("v_movrels_b32", move_from),
    ROW("v_wmma_f32_16x16x16_f16", wmma),
    ROW("v_wmma_f32_16x16x16_bf16", wmma),
    ROW("v_wmma_f16_16x16x16_f16", wmma),
    ROW("v_wmma_bf16_16x16x16_bf16", wmma),
    ROW("v_wmma_i32_16x16x16_iu8", wmma),
    ROW("v_wmma_i32_16x16x16_iu4", wmma),
    ROW(NULL, NULL),
};
