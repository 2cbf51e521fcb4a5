/* x86_stride.c - loads and stores of lanes that are some bytes apart.
 *
 *   struct { float x, y, z; }    lanes 12 bytes apart:  x..x..x..x..x..
 *   tile[lane][n], 33 a row      lanes 132 bytes apart
 *   a[n - 1 - i]                 lanes -4 bytes apart
 *
 * The distance is known and the places have been looked at (x86_fast.c,
 * x86_line.c). Near lanes are a few registers of neighbours, from which a
 * permutation picks (AVX-512, 32 bits); far ones are taken one by one, four to a
 * part of a register. On Zen 5 16 lanes 68 bytes apart take 3.9 ns that way, by
 * gathers of 8 5.8 ns. SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

enum { NEAR = 4 }; /* so many registers hold what 16 lanes want */
enum { MAX_PARTS = 4 };

bool
x86_strides(const br_kins *i, int64_t by)
{
    unsigned bytes = x86_access(i), one = br_ktinfo_of[i->type].bytes;

    return (bytes == one || bytes <= 4) && by % (int64_t)bytes == 0;
}

static br_x86_arg
beside(br_x86_arg at, int32_t bytes)
{
    at.disp += bytes;
    return at;
}

/* How many lanes 4 bytes wide lie between two, 0: too many for a permutation. */
static int
near(const gen *g, const br_kins *i, int32_t by)
{
    return g->z && x86_access(i) == 4 && by >= -4 * NEAR && by <= 4 * NEAR
               ? by / 4
               : 0;
}

/* ---- neighbours ----------------------------------------------------------- */

/* Word number lane * |m|, counted from the lowest, of each lane: in which of the
 * registers loaded so far, and where. The last register ends with the last lane. */
static void
load_near(gen *g, unsigned d, br_x86_arg at, int m)
{
    unsigned n = (unsigned)(m < 0 ? -m : m), all = (X86_MOST - 1) * n + 1;
    unsigned have = x86_tmp(g), next = x86_tmp(g);
    uint32_t from[X86_MOST];

    if (m < 0)
        at.disp += 4 * (X86_MOST - 1) * m;
    em(g, BR_X_MOVUPS_L, have, at);
    for (unsigned j = 1; j < BR_MAX(n, 2u); j++) {
        unsigned first = BR_MIN(X86_MOST * j, all - X86_MOST);

        for (unsigned k = 0; k < X86_MOST; k++) {
            unsigned w = n * (m < 0 ? X86_MOST - 1 - k : k);

            from[k] =
                w < X86_MOST * j ? (j == 1 ? w : k) : X86_MOST + w - first;
            from[k] %= 2 * X86_MOST; /* of a later one: anything */
        }
        if (n > 1)
            em(g, BR_X_MOVUPS_L, next, beside(at, 4 * (int32_t)first));
        em(g, BR_X_MOVUPS_L, d, x86_const_row(g, from));
        e3(g, BR_X_ZPERMI2D, d, have, n > 1 ? next : have);
        if (j + 1 < n)
            e2(g, BR_X_MOVAPS, have, d);
    }
    x86_drop(g, have);
    x86_drop(g, next);
}

/* What lies between stays as it is. */
static void
store_near(gen *g, unsigned s, br_x86_arg at, int m)
{
    unsigned n = (unsigned)(m < 0 ? -m : m), t = x86_tmp(g), k = x86_ktmp(g);

    if (m < 0)
        at.disp += 4 * (X86_MOST - 1) * m;
    for (unsigned j = 0; j < n; j++) {
        uint32_t from[X86_MOST] = {0}, mask = 0;

        for (unsigned p = 0; p < X86_MOST; p++) {
            unsigned w = X86_MOST * j + p, lane = w / n;

            if (w % n)
                continue;
            from[p] = m < 0 ? X86_MOST - 1 - lane : lane;
            mask |= 1u << p;
        }
        em(g, BR_X_MOVUPS_L, t, x86_const_row(g, from));
        e3(g, BR_X_ZPERMI2D, t, s, s);
        em(g, BR_X_KMOVW, k, x86_const(g, mask));
        br_x86_put(g->a, BR_X_ZMOVUPS_SK,
                   (br_x86_arg[]){beside(at, 4 * (int32_t)(X86_MOST * j)),
                                  br_x86_reg(t), br_x86_reg(k)});
    }
    x86_drop(g, t);
    x86_kdrop(g, k);
}

/* ---- one by one ----------------------------------------------------------- */

/* Instructions of a word's low byte, its low half, and all of it. */
typedef struct piece {
    br_x86_op put, z_put, get, z_get;
    int32_t unit; /* how many of them are a word */
} piece;
static const piece pieces[] = {
    [1] = {BR_X_PINSRB, BR_X_ZPINSRB, BR_X_PEXTRB, BR_X_ZPEXTRB, 4},
    [2] = {BR_X_PINSRW, BR_X_ZPINSRW, BR_X_PEXTRW, BR_X_ZPEXTRW, 2},
    [4] = {BR_X_PINSRD, BR_X_ZPINSRD, BR_X_PEXTRD, BR_X_ZPEXTRD, 1},
};

/* 16 bytes: two lanes or four. */
static void
load_part(gen *g, unsigned d, br_x86_arg at, int32_t by, unsigned bytes)
{
    const piece *p = &pieces[bytes & 7];

    if (bytes == 8) {
        em(g, BR_X_MOVQ_XR, d, at);
        e3m(g, BR_X_MOVHPS_L, d, d, beside(at, by));
        return;
    }
    if (bytes == 4)
        em(g, BR_X_MOVD_XR, d, at);
    else
        e3(g, BR_X_PXOR, d, d, d);
    for (int k = bytes == 4; k < 4; k++)
        br_x86_put(g->a, g->z ? p->z_put : p->put,
                   (br_x86_arg[]){br_x86_reg(d), br_x86_reg(d),
                                  beside(at, k * by), br_x86_imm(k * p->unit)});
}

static void
load_far(gen *g, unsigned d, br_x86_arg at, int32_t by, unsigned bytes)
{
    unsigned parts = (unsigned)PART(g) / 16, t[MAX_PARTS] = {d};
    int32_t lanes = bytes == 8 ? 2 : 4;

    for (unsigned p = 0; p < parts; p++) {
        if (p)
            t[p] = x86_tmp(g);
        load_part(g, t[p], beside(at, (int32_t)p * lanes * by), by, bytes);
    }
    for (unsigned p = 1; p < parts; p++) {
        if (g->z)
            br_x86_put(g->a, BR_X_ZINSERT128,
                       (br_x86_arg[]){br_x86_reg(d), br_x86_reg(d),
                                      br_x86_reg(t[p]), br_x86_imm(p)});
        else
            e3i(g, BR_X_INSERT128, d, d, t[p], 1);
        x86_drop(g, t[p]);
    }
}

static void
store_far(gen *g, unsigned s, br_x86_arg at, int32_t by, unsigned bytes)
{
    unsigned parts = (unsigned)PART(g) / 16, t = x86_tmp(g);
    const piece *c = &pieces[bytes & 7];
    int32_t lanes = bytes == 8 ? 2 : 4;

    for (unsigned p = 0; p < parts; p++) {
        unsigned x = p ? t : s;

        if (p)
            br_x86_put(
                g->a, g->z ? BR_X_ZEXTRACT128 : BR_X_EXTRACT128,
                (br_x86_arg[]){br_x86_reg(t), br_x86_reg(s), br_x86_imm(p)});
        if (bytes == 8) {
            es(g, BR_X_MOVQ_RX, at, x);
            es(g, BR_X_MOVHPS_S, beside(at, by), x);
        } else if (bytes == 4) {
            es(g, BR_X_MOVD_RX, at, x);
        }
        for (int k = bytes == 4; bytes < 8 && k < 4; k++)
            br_x86_put(g->a, g->z ? c->z_get : c->get,
                       (br_x86_arg[]){beside(at, k * by), br_x86_reg(x),
                                      br_x86_imm(k * c->unit)});
        at.disp += lanes * by;
    }
    x86_drop(g, t);
}

/* ---- an instruction ------------------------------------------------------- */

/* r: registers of what is loaded or stored; at: lane 0's. */
void
x86_strided(gen *g, const br_kins *i, const uint8_t *r, br_x86_arg at,
            int32_t by)
{
    unsigned bytes = x86_access(i), word = r[0];
    bool narrow = br_ktinfo_of[i->type].bytes < 4, load = i->op == BR_K_LD;
    int m = near(g, i, by);

    if (narrow)
        word = x86_tmp(g);
    if (narrow && !load)
        x86_together(g, i, word, r, i->n_arg - 1u);
    if (m)
        (load ? load_near : store_near)(g, word, at, m);
    for (unsigned p = 0; !m && p < (bytes == 8 ? 2u : 1u); p++) {
        (load ? load_far : store_far)(g, p ? r[p] : word, at, by, bytes);
        at.disp += LANES(g) / 2 * by;
    }
    if (narrow && load)
        x86_apart(g, i, r, word);
    if (narrow)
        x86_drop(g, word);
}
