/* ptx_narrow.c - mma and wmma of 4 bits and of 1.
 *
 *   4 bits  a register has eight numbers: four and four are bytes, and products of bytes
 *           are there. Which of a row's numbers is which does not matter, as long as it
 *           is the same in A and B.
 *   1 bit   shuffles, and counts of A xor B or A and B: a row of A is one register of
 *           each of four lanes, and so is a column of B
 *
 * Fragments are those of mma.sync: of wmma's m8n8k32 and m8n8k128, which know one layout
 * of A and B, register lane % 4 of line lane / 4.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include <string.h>

typedef struct narrow {
    unsigned m, a, b, d; /* rows of A; registers of A, B and the sums */
    unsigned bits;
    bool signs[2]; /* of A, of B */
} narrow;

static bool
find_shape(px_lower *l, narrow *x)
{
    static const struct {
        uint8_t mod, m, a, b, bits;
    } shapes[] = {{PM_M8N8K32, 8, 1, 1, 4},    {PM_M16N8K32, 16, 2, 1, 4},
                  {PM_M16N8K64, 16, 4, 2, 4},  {PM_M8N8K128, 8, 1, 1, 1},
                  {PM_M16N8K128, 16, 2, 1, 1}, {PM_M16N8K256, 16, 4, 2, 1}};
    const px_opcode *o = l->opc;
    const unsigned bits = px_has(o, PM_B1) ? 1 : 4;

    for (size_t k = 0; k < BR_COUNT(shapes); k++)
        if (px_has(o, (px_mod)shapes[k].mod) && shapes[k].bits == bits) {
            *x = (narrow){.m = shapes[k].m,
                          .a = shapes[k].a,
                          .b = shapes[k].b,
                          .d = shapes[k].m / 4u,
                          .bits = bits};
            return true;
        }
    return PX_NO(l, "this shape or these types are not supported");
}

/* Modifiers have no order: the text has. */
static bool
find_signs(px_lower *l, narrow *x)
{
    unsigned n = 0;
    br_text left = l->opc->text;

    while (left.n) {
        const char *dot = memchr(left.p, '.', left.n);
        const br_text part = {left.p, dot ? (size_t)(dot - left.p) : left.n};

        if (br_text_is(part, "s4") || br_text_is(part, "u4") ||
            br_text_is(part, "b1")) {
            if (n < 2)
                x->signs[n] = part.p[0] == 's';
            n++;
        }
        left = dot ? (br_text){dot + 1, left.n - part.n - 1} : (br_text){0};
    }
    if (n == 2 && l->opc->n_types == 2 && l->opc->types[0] == BR_KT_S32 &&
        l->opc->types[1] == BR_KT_S32)
        return true;
    return PX_NO(l, "this combination of types is not supported");
}

/* ---- four bits ---------------------------------------------------------- */

/* Numbers 0-3 of a register, or 4-7, as bytes. */
static uint32_t
as_bytes(px_lower *l, uint32_t v, unsigned half, bool is_signed)
{
    /* each byte twice: low of one, high of two */
    uint32_t a[3] = {v, v, px_k(l, BR_KC_B32, half ? 0x3322 : 0x1100)};
    uint32_t high;

    v = px_do(l, BR_K_PRMT, 0, a, 3);
    high = px_do2(l, BR_K_SHR, BR_KT_U32, v, px_k(l, BR_KC_B32, 4));
    v = px_do2(
        l, BR_K_OR, BR_KT_B32,
        px_do2(l, BR_K_AND, BR_KT_B32, v, px_k(l, BR_KC_B32, 0x000f000f)),
        px_do2(l, BR_K_AND, BR_KT_B32, high, px_k(l, BR_KC_B32, 0x0f000f00)));
    if (!is_signed)
        return v;
    high = px_do2(l, BR_K_AND, BR_KT_B32, v, px_k(l, BR_KC_B32, 0x08080808));
    return px_do2(
        l, BR_K_OR, BR_KT_B32, v,
        px_do2(l, BR_K_MUL, BR_KT_U32, high, px_k(l, BR_KC_B32, 0x1e)));
}

/* d += a b: one product of bytes; to the registers of A and B come those of the sums. */
static void
of_bytes(px_lower *l, const narrow *x, unsigned k, uint32_t *args, uint16_t n,
         uint32_t *d)
{
    br_kins i = {.op = BR_K_MMA, .type = BR_KT_S32, .n_res = (uint8_t)x->d};
    uint32_t v;

    i.type2 = x->signs[0] ? BR_KT_S8 : BR_KT_U8;
    i.imm = (int64_t)(x->signs[1] ? BR_KT_S8 : BR_KT_U8) << 24 |
            (int64_t)(x->m << 16 | 8u << 8 | k);
    for (unsigned w = 0; w < x->d; w++)
        args[n++] = d[w];
    i.n_arg = n;
    v = px_emit(l, &i, args);
    for (unsigned w = 0; w < x->d; w++)
        d[w] = v + w;
}

static void
four_bits(px_lower *l, const narrow *x, const uint32_t *a, const uint32_t *b,
          uint32_t *d)
{
    uint32_t args[12];

    if (x->m == 8)
        for (unsigned half = 0; half < 2; half++) {
            args[0] = as_bytes(l, a[0], half, x->signs[0]);
            args[1] = as_bytes(l, b[0], half, x->signs[1]);
            of_bytes(l, x, 16, args, 2, d);
        }
    for (unsigned k = 0; x->m == 16 && k < x->b; k++) {
        for (unsigned w = 0; w < 4; w++)
            args[w] = as_bytes(l, a[2 * k + (w & 1)], w >> 1, x->signs[0]);
        for (unsigned w = 0; w < 2; w++)
            args[4 + w] = as_bytes(l, b[k], w, x->signs[1]);
        of_bytes(l, x, 32, args, 6, d);
    }
}

/* ---- one bit ------------------------------------------------------------ */

static void
one_bit(px_lower *l, const narrow *x, const uint32_t *a, const uint32_t *b,
        uint32_t *d)
{
    const br_kop op = px_has(l->opc, PM_AND) ? BR_K_AND : BR_K_XOR;
    uint32_t row, col;

    px_lines(l, &row, &col);
    for (unsigned q = 0; q < 4 * x->b; q++) { /* 32 bits of a row each */
        const uint32_t from =
            px_do2(l, BR_K_ADD, BR_KT_U32, row, px_k(l, BR_KC_B32, q % 4));
        uint32_t bits[2];

        for (uint32_t e = 0; e < 2; e++)
            bits[e] = px_from_lane(l, b[q / 4],
                                   px_do2(l, BR_K_ADD, BR_KT_U32, col,
                                          px_k(l, BR_KC_B32, 4 * e + q % 4)));
        for (unsigned w = 0; w < x->d; w++) {
            const uint32_t word = px_from_lane(l, a[q / 4 * 2 + w / 2], from);
            uint32_t v = px_do2(l, op, BR_KT_B32, word, bits[w & 1]);

            v = px_do(l, BR_K_POPC, BR_KT_B32, &v, 1);
            d[w] = px_do2(l, BR_K_ADD, BR_KT_S32, d[w], v);
        }
    }
}

/* ---- both --------------------------------------------------------------- */

/* Saturation is of the sum, once. */
bool
px_mma_narrow(px_lower *l, const px_ins *ins)
{
    const bool sat = px_has(l->opc, PM_SATFINITE);
    uint32_t in[3][4], d[4];
    uint16_t n[3] = {0};
    narrow x;

    if (!find_shape(l, &x) || !find_signs(l, &x))
        return false;
    if (x.bits == 1 && (!px_has(l->opc, PM_POPC) ||
                        px_has(l->opc, PM_XOR) == px_has(l->opc, PM_AND)))
        return PX_NO(l, "bits are counted after .xor or .and");
    for (unsigned k = 0; k < 3; k++)
        if (!px_words(l, px_op(l, ins, k + 1), BR_KC_B32, in[k], &n[k], 4))
            return false;
    if (n[0] != x.a || n[1] != x.b || n[2] != x.d)
        return PX_NO(l, "the number of registers does not fit the shape");
    for (unsigned w = 0; w < x.d; w++)
        d[w] = sat ? px_k(l, BR_KC_B32, 0) : in[2][w];
    (x.bits == 1 ? one_bit : four_bits)(l, &x, in[0], in[1], d);
    for (unsigned w = 0; sat && w < x.d; w++) {
        br_kins i = {.op = BR_K_ADD, .type = BR_KT_S32, .n_arg = 2};
        const uint32_t args[2] = {in[2][w], d[w]};

        i.mods = br_kmod_put(BR_KF_SAT, BR_KM_SAT_SAT);
        d[w] = px_emit(l, &i, args);
    }
    return px_dst_words(l, px_op(l, ins, 0), BR_KT_B32, d, x.d);
}

/* ---- fragments in memory ------------------------------------------------ */

typedef struct place {
    uint32_t at;    /* address of the first number, or two */
    uint32_t pitch; /* bytes to the second one */
    int64_t plus;
    bool apart;
} place;

/* Line lane / 4 and byte lane % 4 * step of it; sums by columns: the other way. */
static bool
find_place(px_lower *l, const px_ins *ins, unsigned op, unsigned bits, place *p)
{
    const uint32_t lane = px_lane(l);
    uint32_t line = px_do2(l, BR_K_SHR, BR_KT_U32, lane, px_k(l, BR_KC_B32, 2));
    uint32_t in = px_do2(l, BR_K_AND, BR_KT_B32, lane, px_k(l, BR_KC_B32, 3));
    uint32_t base, v;

    p->apart = bits == 32 && px_has(l->opc, PM_COL);
    v = px_k(l, BR_KC_B32, bits == 32 ? 8 : bits == 4 ? 32 : 128);
    if (!px_addr(l, px_op(l, ins, op), &base, &p->plus) ||
        (ins->n_op > 2 && !PX_SRC(l, ins, 2, BR_KT_B32, &v)))
        return false;
    p->pitch =
        px_do2(l, BR_K_SHR, BR_KT_U64,
               px_do2(l, BR_K_MUL, BR_KT_U64, px_resize(l, v, BR_KC_B64, false),
                      px_k(l, BR_KC_B64, bits)),
               px_k(l, BR_KC_B32, 3));
    if (p->apart) {
        v = line;
        line = px_do2(l, BR_K_SHL, BR_KT_B32, in, px_k(l, BR_KC_B32, 1));
        in = v;
    }
    v = px_k(l, BR_KC_B32, bits == 32 && !p->apart ? 3 : 2);
    in = px_do2(l, BR_K_SHL, BR_KT_B32, in, v);
    p->at = px_do2(l, BR_K_ADD, BR_KT_U64, base,
                   px_do2(l, BR_K_MUL, BR_KT_U64, p->pitch,
                          px_resize(l, line, BR_KC_B64, false)));
    p->at = px_do2(l, BR_K_ADD, BR_KT_U64, p->at,
                   px_resize(l, in, BR_KC_B64, false));
    return true;
}

/* Of the sums, which have the same shape: they hold 32 bits. */
static unsigned
bits_in_memory(const px_opcode *o)
{
    return px_has(o, PM_B1)                              ? 1
           : px_has(o, PM_S4) || px_has(o, PM_U4)        ? 4
           : o->n_types == 1 && o->types[0] == BR_KT_S32 ? 32
                                                         : 0;
}

bool
px_wmma_narrow(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    const bool load = px_has(o, PM_LOAD), b = px_has(o, PM_FRAG_B);
    const bool sums = !b && !px_has(o, PM_FRAG_A);
    const unsigned bits = bits_in_memory(o);
    br_kins i = {.op = load ? BR_K_LD : BR_K_ST, .type = BR_KT_B32};
    uint32_t args[2], v[2] = {0};
    uint16_t n = 0;
    place p;

    if (px_has(o, PM_MMA))
        return px_mma_narrow(l, ins);
    if (!bits || sums != (bits == 32) || (!sums && px_has(o, PM_COL) != b) ||
        (sums ? o->n_types != 1 : o->n_types != 0) || (!load && !sums) ||
        (bits == 1 && !px_has(o, PM_M8N8K128)) ||
        (bits == 4 && !px_has(o, PM_M8N8K32)))
        return PX_NO(l, "this shape or these types are not supported");
    if (!find_place(l, ins, load, bits, &p) ||
        (!load && !px_words(l, px_op(l, ins, 1), BR_KC_B32, v, &n, 2)))
        return false;
    if (!load && n != 2)
        return PX_NO(l, "the number of registers does not fit the shape");
    i.n_arg = load ? 1 : 2;
    i.n_res = load;
    i.mods = br_kmod_put(BR_KF_SPACE, px_space(o));
    for (unsigned e = 0; e < (sums ? 2u : 1u); e++) {
        args[0] =
            e && p.apart ? px_do2(l, BR_K_ADD, BR_KT_U64, p.at, p.pitch) : p.at;
        args[1] = v[e];
        i.imm = p.plus + (e && !p.apart ? 4 : 0);
        v[e] = px_emit(l, &i, args);
    }
    return !load ||
           px_dst_words(l, px_op(l, ins, 0), BR_KT_B32, v, sums ? 2 : 1);
}
