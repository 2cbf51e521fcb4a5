/* x86_several.c - rows of lanes in memory, of one value a lane or of several.
 *
 *   float4 of lanes 0 1 2 ...:   x y z w x y z w ...    registers: x x.. y y.. z z.. w w..
 *   uchar4:                      a word a lane; its bytes by shifts
 *   double2:                     two registers for each half of the lanes
 *
 * One after another in memory, lanes times values: a few whole registers, which
 * permutations take apart or put together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

static unsigned
count(const br_kins *i)
{
    return i->op == BR_K_LD ? i->n_res : i->n_arg - 1u;
}

static br_x86_arg
beside(br_x86_arg at, unsigned bytes)
{
    at.disp += (int32_t)bytes;
    return at;
}

/* ---- words of 32 bits: apart ---------------------------------------------- */

static void
split2(gen *g, unsigned lo, unsigned hi, unsigned x, unsigned y)
{
    unsigned t = x86_tmp(g);

    e3i(g, BR_X_SHUFPS, t, x, y, 0x88);
    e3i(g, BR_X_SHUFPS, hi, x, y, 0xdd);
    e2i(g, BR_X_PERMQ, lo, t, 0xd8);
    e2i(g, BR_X_PERMQ, hi, hi, 0xd8);
    x86_drop(g, t);
}

/* The same of 16 lanes. Of fours: places 0 2 of lanes 0 to 7 and of 8 to 15,
 * then 1 3. */
static void
split_z(gen *g, const uint8_t *d, unsigned n, const unsigned *t)
{
    unsigned x;

    if (n == 2) {
        x86_z_narrow(g, d[0], t[0], t[1], false);
        x86_z_narrow(g, d[1], t[0], t[1], true);
        return;
    }
    x = x86_tmp(g);
    for (unsigned k = 0; k < 2; k++) {
        x86_z_narrow(g, x, t[0], t[1], k);
        x86_z_narrow(g, d[3], t[2], t[3], k);
        x86_z_narrow(g, d[k], x, d[3], false);
        if (k == 0)
            x86_z_narrow(g, d[2], x, d[3], true);
    }
    x86_z_narrow(g, t[0], x, d[3], true);
    e2(g, BR_X_MOVAPS, d[3], t[0]);
    x86_drop(g, x);
}

/* Pairs or fours of 32 bits into a register for each place. */
static void
load_several(gen *g, const uint8_t *d, unsigned n, br_x86_arg at)
{
    unsigned t[4];

    for (unsigned k = 0; k < n; k++) {
        t[k] = x86_tmp(g);
        em(g, BR_X_MOVUPS_L, t[k], beside(at, (unsigned)PART(g) * k));
    }
    if (g->z) {
        split_z(g, d, n, t);
    } else if (n == 2) {
        split2(g, d[0], d[1], t[0], t[1]);
    } else {
        /* halves of 64 bits first: ab of lanes 0 2 1 3, then in order */
        for (unsigned k = 0; k < 4; k += 2) {
            e3(g, BR_X_PUNPCKHQDQ, d[k], t[k], t[k + 1]);
            e3(g, BR_X_PUNPCKLQDQ, t[k], t[k], t[k + 1]);
            e2i(g, BR_X_PERMQ, t[k], t[k], 0xd8);
            e2i(g, BR_X_PERMQ, t[k + 1], d[k], 0xd8);
        }
        split2(g, d[0], d[1], t[0], t[2]);
        split2(g, d[2], d[3], t[1], t[3]);
    }
    for (unsigned k = 0; k < n; k++)
        x86_drop(g, t[k]);
}

/* ---- words of 32 bits: together ------------------------------------------- */

/* Word number w of what is stored, of n values a lane: among the lanes of two
 * registers, those of the first or second pair of values. */
static br_x86_arg
places(gen *g, unsigned n, unsigned part)
{
    uint32_t from[X86_MOST];

    for (unsigned k = 0; k < X86_MOST; k++) {
        unsigned w = X86_MOST * part + k;

        from[k] = w / n + X86_MOST * (w % n % 2);
    }
    return x86_const_row(g, from);
}

static void
store_several_z(gen *g, const uint8_t *s, unsigned n, br_x86_arg at)
{
    unsigned t = x86_tmp(g), u = x86_tmp(g), k = x86_ktmp(g);

    if (n == 4)
        em(g, BR_X_KMOVW, k, x86_const(g, 0xcccc));
    for (unsigned p = 0; p < n; p++) {
        br_x86_arg from = places(g, n, p);

        em(g, BR_X_MOVUPS_L, t, from);
        e3(g, BR_X_ZPERMI2D, t, s[0], s[1]);
        if (n == 4) {
            em(g, BR_X_MOVUPS_L, u, from);
            e3(g, BR_X_ZPERMI2D, u, s[2], s[3]);
            br_x86_put(g->a, BR_X_ZBLENDD,
                       (br_x86_arg[]){br_x86_reg(t), br_x86_reg(t),
                                      br_x86_reg(u), br_x86_reg(k)});
        }
        es(g, BR_X_MOVUPS_S, beside(at, 64 * p), t);
    }
    x86_drop(g, t);
    x86_drop(g, u);
    x86_kdrop(g, k);
}

/* Halves of a and b, the low ones and then the high ones. */
static void
store_halves(gen *g, unsigned a, unsigned b, br_x86_arg low, br_x86_arg high)
{
    unsigned t = x86_tmp(g);

    e3i(g, BR_X_PERM2I128, t, a, b, 0x20);
    es(g, BR_X_MOVUPS_S, low, t);
    e3i(g, BR_X_PERM2I128, t, a, b, 0x31);
    es(g, BR_X_MOVUPS_S, high, t);
    x86_drop(g, t);
}

static void
store_several(gen *g, const uint8_t *s, unsigned n, br_x86_arg at)
{
    unsigned a, b, c;

    if (g->z) {
        store_several_z(g, s, n, at);
        return;
    }
    a = x86_tmp(g);
    b = x86_tmp(g);
    if (n == 2) {
        e3(g, BR_X_PUNPCKLDQ, a, s[0], s[1]); /* lanes 0 1 | 4 5 */
        e3(g, BR_X_PUNPCKHDQ, b, s[0], s[1]); /* lanes 2 3 | 6 7 */
        store_halves(g, a, b, at, beside(at, 32));
    }
    c = x86_tmp(g);
    for (unsigned k = 0; n == 4 && k < 2; k++) {
        br_x86_op op = k ? BR_X_PUNPCKHDQ : BR_X_PUNPCKLDQ;

        e3(g, op, a, s[0], s[1]);
        e3(g, op, b, s[2], s[3]);
        e3(g, BR_X_PUNPCKLQDQ, c, a, b); /* lanes 0 | 4, or 2 | 6 */
        e3(g, BR_X_PUNPCKHQDQ, a, a, b);
        store_halves(g, c, a, beside(at, 32 * k), beside(at, 64 + 32 * k));
    }
    x86_drop(g, a);
    x86_drop(g, b);
    x86_drop(g, c);
}

/* ---- pairs of 64 bits ----------------------------------------------------- */

/* Of two registers' eight pairs, the first of each or the second: as 32-bit
 * lanes, two for a number. together: what lies in memory of them, its first half
 * or its second. */
static br_x86_arg
pairs(gen *g, unsigned which, bool together)
{
    uint32_t from[X86_MOST];

    for (unsigned k = 0; k < X86_MOST; k++) {
        unsigned q = k / 2; /* number of 64 bits */

        if (together)
            from[k] = 2 * (4 * which + q / 2) + k % 2 + (q % 2 ? X86_MOST : 0);
        else
            from[k] = 2 * (2 * q + which) + k % 2;
    }
    return x86_const_row(g, from);
}

/* d, s: the first's two parts, then the second's. */
static void
load_pairs(gen *g, const uint8_t *d, br_x86_arg at)
{
    unsigned t = x86_tmp(g), u = x86_tmp(g);

    for (unsigned p = 0; p < 2; p++) {
        em(g, BR_X_MOVUPS_L, t, beside(at, 2u * (unsigned)PART(g) * p));
        em(g, BR_X_MOVUPS_L, u, beside(at, (2u * p + 1) * (unsigned)PART(g)));
        for (unsigned e = 0; e < 2; e++) {
            unsigned to = d[2 * e + p];

            if (g->z) {
                em(g, BR_X_MOVUPS_L, to, pairs(g, e, false));
                e3(g, BR_X_ZPERMI2D, to, t, u);
            } else {
                e3(g, e ? BR_X_PUNPCKHQDQ : BR_X_PUNPCKLQDQ, to, t, u);
                e2i(g, BR_X_PERMQ, to, to, 0xd8);
            }
        }
    }
    x86_drop(g, t);
    x86_drop(g, u);
}

static void
store_pairs(gen *g, const uint8_t *s, br_x86_arg at)
{
    unsigned t = x86_tmp(g), u = x86_tmp(g);

    for (unsigned p = 0; p < 2; p++) {
        br_x86_arg low = beside(at, 2u * (unsigned)PART(g) * p);
        br_x86_arg high = beside(low, (unsigned)PART(g));

        if (!g->z) {
            e3(g, BR_X_PUNPCKLQDQ, t, s[p], s[2 + p]); /* lanes 0 | 2 */
            e3(g, BR_X_PUNPCKHQDQ, u, s[p], s[2 + p]);
            store_halves(g, t, u, low, high);
            continue;
        }
        for (unsigned h = 0; h < 2; h++) {
            em(g, BR_X_MOVUPS_L, t, pairs(g, h, true));
            e3(g, BR_X_ZPERMI2D, t, s[p], s[2 + p]);
            es(g, BR_X_MOVUPS_S, h ? high : low, t);
        }
    }
    x86_drop(g, t);
    x86_drop(g, u);
}

/* ---- 8 and 16 bits -------------------------------------------------------- */

/* Bits of a word from `from` on, as the class of 16 bits has them. */
static void
take_bits(gen *g, const br_kins *i, unsigned d, unsigned word, unsigned from)
{
    int bits = 8 * br_ktinfo_of[i->type].bytes;

    e2i(g, BR_X_PSLLD_I, d, word, 32 - bits - (int)from);
    if (i->type == BR_KT_S8) {
        e2i(g, BR_X_PSRAD_I, d, d, 8);
        e2i(g, BR_X_PSRLD_I, d, d, 16);
    } else {
        e2i(g, BR_X_PSRLD_I, d, d, 32 - bits);
    }
}

void
x86_apart(gen *g, const br_kins *i, const uint8_t *d, unsigned word)
{
    for (unsigned e = 0; e < i->n_res; e++)
        take_bits(g, i, d[e], word, 8 * br_ktinfo_of[i->type].bytes * e);
}

static void
load_narrow(gen *g, const br_kins *i, const uint8_t *d, br_x86_arg at)
{
    unsigned size = br_ktinfo_of[i->type].bytes, each = 4 / size;
    uint8_t word[2] = {(uint8_t)x86_tmp(g), 0};

    switch (size * i->n_res) {
    case 1: em(g, BR_X_PMOVZXBD, word[0], at); break;
    case 2: em(g, BR_X_PMOVZXWD, word[0], at); break;
    case 4: em(g, BR_X_MOVUPS_L, word[0], at); break;
    default:
        word[1] = (uint8_t)x86_tmp(g);
        load_several(g, word, 2, at);
        break;
    }
    for (unsigned e = 0; e < i->n_res; e++)
        take_bits(g, i, d[e], word[e / each], 8 * size * (e % each));
    x86_drop(g, word[0]);
    if (word[1])
        x86_drop(g, word[1]);
}

void
x86_together(gen *g, const br_kins *i, unsigned d, const uint8_t *s, unsigned n)
{
    int bits = 8 * br_ktinfo_of[i->type].bytes;
    unsigned t = x86_tmp(g);

    for (unsigned e = 0; e < n; e++) {
        unsigned to = e ? t : d;

        e2i(g, BR_X_PSLLD_I, to, s[e], 32 - bits); /* what is above goes */
        e2i(g, BR_X_PSRLD_I, to, to, 32 - bits - bits * (int)e);
        if (e)
            e3(g, BR_X_POR, d, d, t);
    }
    x86_drop(g, t);
}

/* The low 16 bits, or 8, of each lane. */
static void
store_cut(gen *g, unsigned s, unsigned bytes, br_x86_arg at)
{
    unsigned t;

    if (g->z) {
        es(g, bytes == 2 ? BR_X_ZPMOVDW : BR_X_ZPMOVDB, at, s);
        return;
    }
    t = x86_tmp(g);
    /* What is above is zero: no saturation. */
    e3(g, BR_X_PACKUSDW, t, s, s);
    e2i(g, BR_X_PERMQ, t, t, 0x08);
    if (bytes == 1)
        e3(g, BR_X_PACKUSWB, t, t, t);
    es(g, bytes == 2 ? BR_X_MOVUPS_SX : BR_X_MOVQ_RX, at, t);
    x86_drop(g, t);
}

static void
store_narrow(gen *g, const br_kins *i, const uint8_t *s, br_x86_arg at)
{
    unsigned size = br_ktinfo_of[i->type].bytes, n = count(i), each = 4 / size;
    uint8_t word[2] = {(uint8_t)x86_tmp(g), 0};

    x86_together(g, i, word[0], s, BR_MIN(n, each));
    switch (size * n) {
    case 4: es(g, BR_X_MOVUPS_S, at, word[0]); break;
    case 8:
        word[1] = (uint8_t)x86_tmp(g);
        x86_together(g, i, word[1], s + each, each);
        store_several(g, word, 2, at);
        break;
    default: store_cut(g, word[0], size * n, at); break;
    }
    x86_drop(g, word[0]);
    if (word[1])
        x86_drop(g, word[1]);
}

/* ---- rows ----------------------------------------------------------------- */

void
x86_load_row(gen *g, const br_kins *i, const uint8_t *d, br_x86_arg at)
{
    unsigned size = br_ktinfo_of[i->type].bytes;

    if (size < 4 && !(size == 2 && i->n_res == 1)) {
        load_narrow(g, i, d, at);
    } else if (size == 2) {
        em(g, BR_X_PMOVZXWD, d[0], at);
    } else if (size == 8 && i->n_res == 2) {
        load_pairs(g, d, at);
    } else if (i->n_res > 1) {
        load_several(g, d, i->n_res, at);
    } else {
        em(g, BR_X_MOVUPS_L, d[0], at);
        if (size == 8)
            em(g, BR_X_MOVUPS_L, d[1], beside(at, (unsigned)PART(g)));
    }
}

void
x86_store_row(gen *g, const br_kins *i, const uint8_t *s, br_x86_arg at)
{
    unsigned size = br_ktinfo_of[i->type].bytes, n = count(i);

    if (size < 4 && !(size == 2 && n == 1)) {
        store_narrow(g, i, s, at);
    } else if (size == 2) {
        store_cut(g, s[0], 2, at);
    } else if (size == 8 && n == 2) {
        store_pairs(g, s, at);
    } else if (n > 1) {
        store_several(g, s, n, at);
    } else {
        es(g, BR_X_MOVUPS_S, at, s[0]);
        if (size == 8)
            es(g, BR_X_MOVUPS_S, beside(at, (unsigned)PART(g)), s[1]);
    }
}
