/* x86_bytes.c - vector code for operations on bytes and bits: dp4a, prmt, bfe,
 * popc.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

/* Every other byte as 16 bits, extended. */
static unsigned
every_other(gen *g, unsigned a, bool odd, bool is_signed)
{
    unsigned t = x86_tmp(g);

    if (!odd)
        e2i(g, BR_X_PSLLW_I, t, a, 8);
    e2i(g, is_signed ? BR_X_PSRAW_I : BR_X_PSRLW_I, t, odd ? a : t, 8);
    return t;
}

/* Products of bytes fit 16 bits with their sign, and pairs of them 32. */
static void
sel_dp4a(gen *g, const br_kins *i)
{
    unsigned a = x86_use(g, arg_of(g, i, 0), 0);
    unsigned b = x86_use(g, arg_of(g, i, 1), 0);
    unsigned c = x86_use(g, arg_of(g, i, 2), 0), d = x86_def(g, i->res, 0);

    for (int odd = 0; odd < 2; odd++) {
        unsigned x = every_other(g, a, odd, br_ktinfo_of[i->type].kind == 'S');
        unsigned y = every_other(g, b, odd, br_ktinfo_of[i->type2].kind == 'S');

        e3(g, BR_X_PMADDWD, x, x, y);
        e3(g, BR_X_PADDD, d, odd ? d : c, x);
        x86_drop(g, x);
        x86_drop(g, y);
    }
}

/* Four of a's bytes, and zeros where they are b's; vpshufb counts from each 16
 * bytes on, so each lane's numbers are 4 more than those before. */
static void
pick(gen *g, unsigned d, unsigned a, uint32_t sel, bool second)
{
    unsigned m = x86_tmp(g), t = x86_tmp(g);
    uint32_t from = 0;

    for (unsigned k = 0; k < 4; k++) {
        uint32_t n = sel >> 4 * k & 7;

        from |= (n / 4 == second ? n % 4 : 0x80) << 8 * k;
    }
    em(g, BR_X_BCASTQ, m, x86_const(g, 0x0404040400000000));
    em(g, BR_X_BCASTQ, t, x86_const(g, 0x0c0c0c0c08080808));
    e3(g, BR_X_PUNPCKLQDQ, m, m, t);
    em(g, BR_X_BCASTD, t, x86_const(g, from));
    e3(g, BR_X_POR, m, m, t);
    e3(g, BR_X_PSHUFB, d, a, m);
    x86_drop(g, m);
    x86_drop(g, t);
}

static void
sel_prmt(gen *g, const br_kins *i)
{
    uint32_t sel = (uint32_t)g->f->vals.at[arg_of(g, i, 2)].bits;
    unsigned a = x86_use(g, arg_of(g, i, 0), 0);
    unsigned b = x86_use(g, arg_of(g, i, 1), 0), d, t;
    bool of_b = sel & 0x4444, of_a = (sel & 0x4444) != 0x4444;

    d = x86_def(g, i->res, 0);
    if (of_a)
        pick(g, d, a, sel, false);
    if (!of_b)
        return;
    t = of_a ? x86_tmp(g) : d;
    pick(g, t, b, sel, true);
    if (of_a)
        e3(g, BR_X_POR, d, d, t);
}

static uint64_t
bits_of(const gen *g, const br_kins *i, unsigned a)
{
    return g->f->vals.at[arg_of(g, i, a)].bits & 0xff;
}

/* Of places that are known: up to the top, and down again. */
static void
sel_bfe(gen *g, const br_kins *i)
{
    bool is_signed = br_ktinfo_of[i->type].kind == 'S';
    bool q = br_ktinfo_of[i->type].cls == BR_KC_B64;
    int bits = q ? 64 : 32, pos = (int)bits_of(g, i, 1);
    int len = (int)bits_of(g, i, 2), end;
    br_x86_op down = q ? BR_X_PSRLQ_I : is_signed ? BR_X_PSRAD_I : BR_X_PSRLD_I;

    if (is_signed)
        pos = BR_MIN(pos, bits - 1); /* the sign, again and again */
    end = BR_MIN(pos + len, bits);
    for (unsigned p = 0; p < parts_of(g, br_ktinfo_of[i->type].cls); p++) {
        unsigned a = x86_use(g, arg_of(g, i, 0), p);
        unsigned d = x86_def(g, i->res, p);

        if (len == 0 || pos >= bits) {
            e3(g, BR_X_PXOR, d, d, d);
            continue;
        }
        if (end < bits)
            e2i(g, q ? BR_X_PSLLQ_I : BR_X_PSLLD_I, d, a, bits - end);
        e2i(g, down, d, end < bits ? d : a, pos + bits - end);
    }
}

static void
every(gen *g, unsigned t, uint32_t pattern)
{
    em(g, BR_X_BCASTD, t, x86_const(g, pattern));
}

/* In each byte of x how many of a's bits are set there. */
static void
count_bytes(gen *g, unsigned x, unsigned a, unsigned t, unsigned k)
{
    every(g, k, 0x55555555);
    e2i(g, BR_X_PSRLD_I, t, a, 1);
    e3(g, BR_X_PAND, t, t, k);
    e3(g, BR_X_PSUBD, x, a, t);
    every(g, k, 0x33333333);
    e2i(g, BR_X_PSRLD_I, t, x, 2);
    e3(g, BR_X_PAND, t, t, k);
    e3(g, BR_X_PAND, x, x, k);
    e3(g, BR_X_PADDD, x, x, t);
    e2i(g, BR_X_PSRLD_I, t, x, 4);
    e3(g, BR_X_PADDD, x, x, t);
    every(g, k, 0x0f0f0f0f);
    e3(g, BR_X_PAND, x, x, k);
}

static void
sel_popc(gen *g, const br_kins *i)
{
    unsigned a = x86_use(g, arg_of(g, i, 0), 0);
    unsigned x = x86_tmp(g), t = x86_tmp(g), k = x86_tmp(g);
    unsigned d = x86_def(g, i->res, 0);

    count_bytes(g, x, a, t, k);
    every(g, k, 0x01010101);
    e3(g, BR_X_PMULLD, d, x, k); /* their sum in the highest */
    e2i(g, BR_X_PSRLD_I, d, d, 24);
    x86_drop(g, x);
    x86_drop(g, t);
    x86_drop(g, k);
}

static x86_sel
select_bits(const gen *g, const br_kins *i)
{
    const br_ktinfo *t = &br_ktinfo_of[i->type];

    if (i->op == BR_K_POPC)
        return t->cls == BR_KC_B32 ? sel_popc : NULL;
    return is_const(g, arg_of(g, i, 1)) && is_const(g, arg_of(g, i, 2)) &&
                   t->bytes >= 4 && (t->cls == BR_KC_B32 || t->kind == 'U') &&
                   (g->f->vals.at[arg_of(g, i, 1)].bits |
                    g->f->vals.at[arg_of(g, i, 2)].bits) <= 0xff
               ? sel_bfe
               : NULL;
}

x86_sel
x86_select_bytes(const gen *g, const br_kins *i)
{
    uint32_t sel;

    if (i->op == BR_K_DP4A)
        return sel_dp4a;
    if (i->op == BR_K_BFE || i->op == BR_K_POPC)
        return select_bits(g, i);
    sel = arg_of(g, i, 2);
    return i->op == BR_K_PRMT && !i->mods && is_const(g, sel) &&
                   !(g->f->vals.at[sel].bits & 0x8888)
               ? sel_prmt
               : NULL;
}
