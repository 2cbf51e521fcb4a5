/* sim_salu.c - scalar arithmetic and lane masks: the rows of sim_salu.def.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_float.h"
#include "drv/sim/sim_int.h"

#include <math.h>

typedef struct scalars {
    uint64_t a, b, d, k;
    bool scc;
} scalars;
typedef uint64_t (*scalar_fn)(scalars *x);

/* ---- what rows call --------------------------------------------------- */

#define U(v)  ((uint32_t)(v))
#define I(v)  ((int32_t)(v))
#define f(v)  br_f32_of((uint32_t)(v))
#define h(v)  br_f16_to_f32((uint16_t)(v))
#define uf(v) br_f32_bits(v)
#define uh(v) br_f32_to_f16(v)

static uint64_t
test(scalars *x, bool c)
{
    x->scc = c;
    return 0;
}

static uint64_t
carry(scalars *x, uint64_t sum)
{
    x->scc = sum >> 32 != 0;
    return sum;
}

static uint64_t
borrow(scalars *x, uint64_t difference)
{
    x->scc = difference >> 63;
    return difference;
}

static uint64_t
over(scalars *x, int64_t v)
{
    x->scc = v != (int32_t)v;
    return (uint64_t)v;
}

static uint64_t
pick(scalars *x, bool first, uint64_t a, uint64_t b)
{
    x->scc = first;
    return first ? a : b;
}

static uint64_t
rev64(uint64_t v)
{
    uint64_t r = 0;

    for (int k = 0; k < 64; k++)
        r |= (v >> k & 1) << (63 - k);
    return r;
}

/* Bits equal to the sign from the top on; all of them: -1. */
static uint64_t
cls64(uint64_t v, unsigned bits)
{
    uint64_t n = (uint64_t)__builtin_clrsbll((long long)v) + 1;

    return n >= bits ? ~0ull : n;
}

static uint64_t
twice(uint32_t v)
{
    uint64_t r = 0;

    for (int k = 0; k < 32; k++)
        r |= (v >> k & 1 ? 3ull : 0) << 2 * k;
    return r;
}

static uint64_t
quads(uint64_t v)
{
    uint64_t r = 0;

    for (int k = 0; k < 16; k++)
        r |= (uint64_t)((v >> 4 * k & 15) != 0) << k;
    return r;
}

static uint64_t
whole_quads(uint64_t v)
{
    uint64_t r = 0;

    for (int k = 0; k < 64; k += 4)
        r |= (v >> k & 15 ? 15ull : 0) << k;
    return r;
}

static uint64_t
field(uint64_t v, uint64_t at, uint64_t n, unsigned bits)
{
    n = n > bits ? bits : n;
    return n == 64 ? v >> at : v >> at & ((1ull << n) - 1);
}

static uint64_t
sfield(uint64_t v, uint64_t at, uint64_t n, unsigned bits)
{
    uint64_t s = (uint64_t)((int64_t)v >> at);

    n = n > bits ? bits : n;
    return n ? (uint64_t)((int64_t)(s << (64 - n)) >> (64 - n)) : 0;
}

/* ---- the rows --------------------------------------------------------- */

enum { KEEP = 0, NZ = 1 };

#define SOP(name, value, scc)                        \
    static inline uint64_t scalar_##name(scalars *x) \
    {                                                \
        uint64_t a = x->a, b = x->b;                 \
                                                     \
        (void)a;                                     \
        (void)b;                                     \
        return (uint64_t)(value);                    \
    }
#define EXE(name, value, saves)               \
    static uint64_t scalar_##name(scalars *x) \
    {                                         \
        uint64_t s = x->a, e = x->b;          \
                                              \
        return value;                         \
    }
#include "drv/sim/sim_salu.def"
#undef SOP
#undef EXE

/* A function by its row; C has no void pointers to functions. */
static const scalar_fn functions[] = {
#define SOP(name, value, scc)   scalar_##name,
#define EXE(name, value, saves) scalar_##name,
#include "drv/sim/sim_salu.def"
#undef SOP
#undef EXE
};

const sim_sem sim_salu_rows[] = {
#define SOP(name, value, scc) {"s_" #name, sim_salu, NULL, NULL, 0, {0}, scc},
#define EXE(name, value, saves) \
    {"s_" #name, sim_saveexec, NULL, NULL, 0, {0}, saves},
#include "drv/sim/sim_salu.def"
#undef SOP
#undef EXE
    {NULL, NULL, NULL, NULL, 0, {0}, 0},
};

uint64_t
sim_scalar(const sim_wave *w, const sim_opnd *o)
{
    if (o->file == SIM_K)
        return o->k;
    if (o->reg == SIM_SCC)
        return w->scc;
    return o->n > 1 ? sim_pair(w, o->reg) : w->s[o->reg];
}

void
sim_set_scalar(sim_wave *w, const sim_opnd *o, uint64_t v)
{
    if (o->file != SIM_S || o->reg == SIM_NULL)
        return;
    w->s[o->reg] = (uint32_t)v;
    if (o->n > 1)
        w->s[o->reg + 1] = (uint32_t)(v >> 32);
    w->s[SIM_NULL] = 0;
}

bool
sim_salu(sim_wave *w, const sim_op *o)
{
    scalars x = {.scc = w->scc};
    uint64_t r;

    if (o->n_src > 0)
        x.a = sim_scalar(w, &o->src[0]);
    if (o->n_src > 1)
        x.b = sim_scalar(w, &o->src[1]);
    if (o->n_src > 2)
        x.k = sim_scalar(w, &o->src[2]);
    if (o->dst.file == SIM_S)
        x.d = sim_scalar(w, &o->dst);
    if (o->fmt == BR_FMT_SOPK) {
        x.a = o->n_src ? x.a : x.d;
        x.b = (uint64_t)(int64_t)o->imm;
    }
    r = functions[o->sem - sim_salu_rows](&x);
    if (o->dst.n == 1)
        r = (uint32_t)r;
    w->scc = o->sem->flags & NZ ? r != 0 : x.scc;
    if (!(o->is & IS_READER)) /* s_cmpk names it, and reads it */
        sim_set_scalar(w, &o->dst, r);
    return true;
}

/* ---- the usual: arguments that decoding found ------------------------- */

static inline uint64_t
arg(const sim_wave *w, const sim_args *a, unsigned k)
{
    const uint32_t *p = a->k[k] ? a->k[k] : w->s + a->from[k];
    uint64_t v = p[0];

    return a->wide & 1u << k ? v | (uint64_t)p[1] << 32 : v;
}

#define SOP(name, value, flag)                           \
    static bool run_##name(sim_wave *w, const sim_op *o) \
    {                                                    \
        const sim_args *g = &o->args;                    \
        scalars x = {.a = arg(w, g, 0),                  \
                     .b = arg(w, g, 1),                  \
                     .k = arg(w, g, 2),                  \
                     .d = w->s[g->to],                   \
                     .scc = w->scc};                     \
        uint64_t r;                                      \
                                                         \
        if (g->wide & SIM_ARG_TO_WIDE)                   \
            x.d |= (uint64_t)w->s[g->to + 1] << 32;      \
        r = scalar_##name(&x);                           \
        if (g->wide & SIM_ARG_TO_WIDE)                   \
            w->s[g->to + 1] = (uint32_t)(r >> 32);       \
        else                                             \
            r = (uint32_t)r;                             \
        w->scc = (flag) == NZ ? r != 0 : x.scc;          \
        if (g->out)                                      \
            w->s[g->to] = (uint32_t)r;                   \
        return true;                                     \
    }
#define EXE(name, value, saves)
#include "drv/sim/sim_salu.def"
#undef SOP
#undef EXE

static const sim_fn runs[] = {
#define SOP(name, value, flag)  run_##name,
#define EXE(name, value, saves) NULL,
#include "drv/sim/sim_salu.def"
#undef SOP
#undef EXE
};

sim_fn
sim_salu_fn(sim_op *o)
{
    static const uint32_t zero[2];
    sim_args *a = &o->args;
    bool writes = !(o->is & IS_READER) && o->dst.file == SIM_S;

    *a = (sim_args){.k = {zero, zero, zero}, .out = writes};
    for (unsigned k = 0; k < o->n_src; k++) {
        sim_opnd *p = &o->src[k];

        if (k == BR_COUNT(a->k) ||
            (p->file == SIM_S && p->reg + p->n > SIM_SGPRS))
            return sim_salu; /* SCC, too */
        a->k[k] = p->file == SIM_K ? (uint32_t *)(void *)&p->k : NULL;
        a->from[k] = p->reg;
        a->wide |= (uint8_t)((p->n > 1) << k);
    }
    /* SOPK: what is read and written, and a constant. */
    if (o->fmt == BR_FMT_SOPK ||
        (writes &&
         (o->dst.reg == SIM_NULL || o->dst.reg + o->dst.n > SIM_SGPRS)))
        return sim_salu;
    a->to = writes ? o->dst.reg : 0;
    a->wide |= writes && o->dst.n > 1 ? SIM_ARG_TO_WIDE : 0;
    return runs[o->sem - sim_salu_rows];
}

bool
sim_saveexec(sim_wave *w, const sim_op *o)
{
    sim_opnd exec = {.file = SIM_S, .n = o->dst.n, .reg = SIM_EXEC};
    uint64_t was = sim_scalar(w, &exec), now;
    scalars x = {.a = sim_scalar(w, &o->src[0]), .b = was};

    now = functions[o->sem - sim_salu_rows](&x);
    if (o->dst.n == 1)
        now = (uint32_t)now;
    sim_set_scalar(w, &o->dst, o->sem->flags ? was : now);
    sim_set_scalar(w, &exec, now);
    w->scc = now != 0;
    return true;
}
