/* sim_valu.c - vector arithmetic: sources to 32 lanes, results to registers.
 *
 *   registers, scalars, constants -> pointers to 32 words -> sim_lane.c
 *     with signs, halves, DPP        copied where they change
 *   results -> clamp and omod -> lanes of EXEC only
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_float.h"
#include "drv/sim/sim_int.h"
#include "drv/sim/sim_plain.h"

#include <string.h>

typedef uint32_t lane_buf[2 * 64];

/* ---- sources ---------------------------------------------------------- */

static void
signs(const sim_opnd *p, unsigned type, uint32_t *b, unsigned w)
{
    uint32_t top = type == T_F16 || type == T_U16 ? 0x8000 : 0x80000000;
    uint32_t *at = type == T_F64 ? b + w : b;

    if (type != T_F16 && type != T_F32 && type != T_F64 && type != T_U32 &&
        type != T_U16)
        return;
    for (unsigned i = 0; i < SIM_LANES; i++) {
        uint32_t v = at[i];

        v = p->abs ? v & ~top : v;
        at[i] = p->neg ? v ^ top : v;
    }
}

/* The DPP permutation of a half; lanes that it leaves out get `old`, and their
 * bits leave *mask. */
static void
permute(const sim_op *o, const uint32_t *from, uint32_t *to, uint32_t exec,
        uint32_t *mask)
{
    for (unsigned i = 0; i < SIM_LANES; i++) {
        unsigned k = o->perm[i];
        bool valid = k != 255 && (o->fi || exec >> k & 1);

        to[i] = valid ? from[k] : 0;
        if (!valid && !o->bc && !o->dpp8)
            *mask &= ~(1u << i);
        if (!(o->row_mask >> (i / 16) & 1) ||
            !(o->bank_mask >> (i / 4 % 4) & 1))
            *mask &= ~(1u << i);
    }
}

typedef struct half_job {
    sim_wave *w;
    const sim_op *o;
    unsigned half;
    uint32_t mask; /* lanes that are written */
    lane_buf buf[3];
} half_job;

static const uint32_t *
raw(half_job *j, const sim_opnd *p, uint32_t *b)
{
    const sim_wave *w = j->w;

    if (p->file == SIM_V)
        return w->v + p->reg * w->w + j->half * SIM_LANES;
    if (p->file == SIM_K)
        return p->wide;
    for (unsigned i = 0; i < SIM_LANES; i++) {
        b[i] = sim_word(w, p->reg, 0);
        if (p->n > 1)
            b[i + w->w] = sim_word(w, p->reg, 1);
    }
    return b;
}

/* Half `hi` of each lane's 32 bits, or f32 bits of it. */
static void
halves(uint32_t *b, bool hi, bool widen)
{
    for (unsigned i = 0; i < SIM_LANES; i++) {
        uint32_t v = hi ? b[i] >> 16 : b[i] & 0xffff;

        b[i] = widen ? br_f32_bits(sim_f16(v)) : v;
    }
}

/* A pair of halves in the order and with the signs that are asked for. */
static void
pairs(const sim_opnd *p, uint32_t *b)
{
    for (unsigned i = 0; i < SIM_LANES; i++) {
        uint32_t lo = p->sel ? b[i] >> 16 : b[i];
        uint32_t hi = p->sel_hi ? b[i] >> 16 : b[i];

        lo ^= p->neg ? 0x8000 : 0;
        hi ^= p->neg_hi ? 0x8000 : 0;
        b[i] = (lo & 0xffff) | hi << 16;
    }
}

static bool
is16(unsigned t)
{
    return t == T_U16 || t == T_I16 || t == T_F16;
}

/* Source k for a half; pass: 1 for the upper elements of a packed one. */
static const uint32_t *
source(half_job *j, unsigned k, unsigned pass)
{
    const sim_op *o = j->o;
    const sim_opnd *p = &o->src[k];
    unsigned t = o->sem->src[k], w = j->w->w;
    bool packed = o->sem->flags & SEM_PACKED, mix = o->sem->flags & SEM_MIX;
    bool pair = o->sem->flags & SEM_PAIRS && t == T_U32;
    const uint32_t *r = raw(j, p, j->buf[k]);
    uint32_t *b = j->buf[k];

    if (o->dpp && k == 0) {
        lane_buf copy;

        memcpy(copy, r, SIM_LANES * sizeof *copy);
        permute(o, copy, b, sim_exec32(j->w, j->half), &j->mask);
        r = b;
    }
    if (packed || pair || mix || p->neg || p->abs || (is16(t) && p->sel)) {
        if (r != b) {
            memcpy(b, r, SIM_LANES * sizeof *b);
            if (p->n > 1)
                memcpy(b + w, r + w, SIM_LANES * sizeof *b);
        }
        if (packed) {
            sim_opnd q = {.neg = pass ? p->neg_hi : p->neg};

            halves(b, pass ? p->sel_hi : p->sel, false);
            signs(&q, T_F16, b, w);
            return b;
        }
        if (pair && !strstr(o->row->name, "_iu")) {
            pairs(p, b);
            return b;
        }
        if (pair)
            return b;
        if (mix && p->sel_hi)
            halves(b, p->sel, true);
        else if (is16(t) && p->sel)
            halves(b, true, false);
        signs(p, t, b, w);
        return b;
    }
    return r;
}

/* ---- results ---------------------------------------------------------- */

static float
limit(float v, unsigned omod, bool clamp)
{
    v = omod == 1 ? v * 2 : omod == 2 ? v * 4 : omod == 3 ? v / 2 : v;
    return clamp ? sim_min(sim_max(v, 0), 1) : v;
}

/* Of floats alone: integers that are clamped are so where they are computed. A
 * result of bits may be one (an FMA of halves), and a pair of halves two. */
static void
finish(const sim_op *o, uint32_t *d)
{
    unsigned t = o->float_dst ? o->float_dst : o->sem->dst;
    bool packed = o->sem->flags & SEM_PACKED;

    if (!(o->omod || o->clamp))
        return;
    for (unsigned i = 0; i < SIM_LANES; i++) {
        if (t == T_F32) {
            d[i] = br_f32_bits(limit(br_f32_of(d[i]), o->omod, o->clamp));
        } else if (t == T_F16) {
            uint32_t high = packed ? d[i] & 0xffff0000 : 0;

            d[i] = br_f32_to_f16(limit(sim_f16(d[i]), o->omod, o->clamp));
            if (packed)
                d[i] |= (uint32_t)br_f32_to_f16(
                            limit(sim_f16(high >> 16), 0, o->clamp))
                        << 16;
        } else if (t == T_F64) {
            double v = br_f64_of((uint64_t)d[i + SIM_LANES] << 32 | d[i]);
            uint64_t u;

            v = o->omod == 1   ? v * 2
                : o->omod == 2 ? v * 4
                : o->omod == 3 ? v / 2
                               : v;
            u = br_f64_bits(o->clamp ? sim_min64(sim_max64(v, 0), 1) : v);
            d[i] = (uint32_t)u;
            d[i + SIM_LANES] = (uint32_t)(u >> 32);
        }
    }
}

static void
store(half_job *j, uint32_t *d)
{
    const sim_op *o = j->o;
    sim_wave *w = j->w;
    uint32_t *to = w->v + o->dst.reg * w->w + j->half * SIM_LANES;
    bool high = o->dst_sel || o->sem->flags & SEM_MIX;

    if (is16(o->sem->dst)) {
        if (o->sem->flags & SEM_MIX)
            high = strstr(o->row->name, "mixhi") != NULL;
        for (unsigned i = 0; i < SIM_LANES; i++)
            d[i] = high ? (to[i] & 0xffff) | d[i] << 16
                        : (to[i] & 0xffff0000) | (d[i] & 0xffff);
    }
    sim_blend(to, d, j->mask);
    if (o->dst.n > 1)
        sim_blend(to + w->w, d + SIM_LANES, j->mask);
}

/* ---- running ---------------------------------------------------------- */

static uint32_t
mask_in(const sim_wave *w, const sim_opnd *p, unsigned half)
{
    if (p->file == SIM_S)
        return sim_word(w, p->reg, w->w == 64 ? half : 0);
    return p->file == SIM_K ? (uint32_t)(half ? p->k >> 32 : p->k) : 0;
}

static bool
lanes(half_job *j, sim_lanes *x)
{
    const sim_op *o = j->o;

    if (o->flushes ||
        ((j->w->mode & 255) != 0xf0 && (o->float_dst || o->float_src[0])))
        return sim_mode_lane(j->w, o, x);
    o->sem->lane(x);
    return true;
}

static bool
compute(half_job *j, sim_lanes *x)
{
    const sim_op *o = j->o;
    const sim_sem *s = o->sem;
    const uint32_t **at[3] = {&x->a, &x->b, &x->c};
    static const uint32_t zero[2 * 64];

    x->w = j->w->w;
    x->to = x->d;
    x->first = j->half * SIM_LANES;
    x->in = mask_in(j->w, &o->mask, j->half);
    x->out = 0;
    x->flags = o->clamp ? SIM_CLAMP : 0;
    if (s->flags & SEM_PAIRS && strstr(o->row->name, "_iu"))
        x->flags |= (o->src[0].neg ? SIM_SIGNED_A : 0) |
                    (o->src[1].neg ? SIM_SIGNED_B : 0);
    for (unsigned k = 0; k < 3; k++)
        *at[k] = k < o->n_src ? source(j, k, 0) : zero;
    if (s->flags & SEM_ACC)
        x->c = j->w->v + o->dst.reg * j->w->w + j->half * SIM_LANES;
    if (s->flags & SEM_ACC && o->dst_sel) {
        memcpy(j->buf[2], x->c, SIM_LANES * sizeof(uint32_t));
        halves(j->buf[2], true, false);
        x->c = j->buf[2];
    }
    if (!lanes(j, x))
        return false;
    if (s->flags & SEM_PACKED) {
        uint32_t low[SIM_LANES];

        memcpy(low, x->d, sizeof low);
        for (unsigned k = 0; k < o->n_src; k++)
            *at[k] = source(j, k, 1);
        if (!lanes(j, x))
            return false;
        for (unsigned i = 0; i < SIM_LANES; i++)
            x->d[i] = (low[i] & 0xffff) | x->d[i] << 16;
    }
    finish(o, x->d);
    return true;
}

/* Whether a result shares no register with any source. */
static bool
is_apart(const sim_op *o)
{
    bool apart = !(o->sem->flags & SEM_ACC);

    for (unsigned k = 0; k < o->n_src; k++)
        apart = apart && (o->src[k].file != SIM_V ||
                          o->src[k].reg >= o->dst.reg + o->dst.n ||
                          o->dst.reg >= o->src[k].reg + o->src[k].n);
    return apart;
}

/* False: there is something that sim_plain.h does not know. */
static bool
find_args(sim_op *o)
{
    const sim_opnd *out = o->sem->dst == T_CMP ? &o->dst : &o->sdst;
    sim_args *a = &o->args;

    *a = (sim_args){.in = SIM_NULL, .out = SIM_NULL};
    for (unsigned k = 0; k < o->n_src && k < 3; k++) {
        const sim_opnd *p = &o->src[k];

        a->k[k] = p->file == SIM_K ? p->wide : NULL;
        a->from[k] = (uint16_t)(p->file == SIM_V ? p->reg * SIM_LANES
                                                 : SIM_ARG_SCALAR | p->reg);
        a->wide |= (uint8_t)((p->file == SIM_S && p->n > 1) << k);
        a->neg |= (uint8_t)(p->neg << k);
        a->abs |= (uint8_t)(p->abs << k);
        a->odd |= (uint8_t)((p->file == SIM_S || p->neg || p->abs) << k);
    }
    a->to = (uint16_t)(o->dst.file == SIM_V ? o->dst.reg * SIM_LANES : 0);
    a->apart = is_apart(o);
    if (o->mask.file == SIM_S)
        a->in = (uint8_t)o->mask.reg;
    if (out->file == SIM_S)
        a->out = (uint8_t)out->reg;
    return o->mask.file != SIM_K && o->mask.reg != SIM_SCC;
}

bool
sim_is_plain(sim_op *o)
{
    unsigned odd = SEM_PACKED | SEM_PAIRS | SEM_MIX;

    if (o->sem->dst != T_CMP && o->dst.file == SIM_S)
        return false;
    if (!o->sem->lane || o->sem->flags & odd || o->dpp || o->omod || o->clamp ||
        o->dst_sel || is16(o->sem->dst) || o->flushes)
        return false;
    for (unsigned k = 0; k < o->n_src && k < 3; k++)
        if (((o->src[k].neg || o->src[k].abs) && o->sem->src[k] != T_F32) ||
            o->src[k].sel)
            return false;
    return find_args(o);
}

/* v_s_rcp_f32 and its like: of scalars, whatever EXEC is; a half has zeros above. */
static bool
of_scalars(sim_wave *w, const sim_op *o)
{
    half_job j;
    sim_lanes x;

    j.w = w;
    j.o = o;
    j.half = 0;
    j.mask = UINT32_MAX;
    if (!compute(&j, &x))
        return false;
    sim_set_scalar(w, &o->dst, is16(o->sem->dst) ? x.d[0] & 0xffff : x.d[0]);
    return true;
}

bool
sim_valu(sim_wave *w, const sim_op *o)
{
    half_job j; /* not zeroed: 1,536 bytes, which cost more than the sum */
    sim_lanes x;
    uint32_t out[2] = {0, 0};
    const sim_opnd *to = o->sem->dst == T_CMP ? &o->dst : &o->sdst;

    if (to != &o->dst && o->dst.file == SIM_S)
        return of_scalars(w, o);
    j.w = w;
    j.o = o;

    for (j.half = 0; j.half < w->w / SIM_LANES; j.half++) {
        j.mask = sim_exec32(w, j.half);
        if (!j.mask && !to->file)
            continue;
        if (!compute(&j, &x))
            return false;
        out[j.half] = x.out & j.mask;
        if (o->sem->dst != T_CMP)
            store(&j, x.d);
    }
    /* Both halves read the masks before either is written. Lanes that are
     * off get zeros. */
    if (to->file == SIM_S && to->reg != SIM_NULL)
        memcpy(&w->s[to->reg], out, w->w / 8);
    return true;
}

/* Both read before either writes. */
bool
sim_dual(sim_wave *w, const sim_op *o)
{
    half_job j, k;
    sim_lanes x, y;

    j.w = k.w = w;
    j.half = k.half = 0;
    j.mask = k.mask = w->s[SIM_EXEC];
    j.o = o;
    k.o = o->y;
    if (!compute(&j, &x) || !compute(&k, &y))
        return false;
    store(&j, x.d);
    store(&k, y.d);
    return true;
}
