/* ptx_wmma.c - wmma: matrices of a warp whose fragments nobody else knows.
 *
 * PTX says how many registers a fragment has, not what is in them. Here they are
 * those of mma.sync, of which a product takes two:
 *
 *   m16n16k16  A once, B twice      m32n8k16  A twice, B once
 *   m8n32k16   as m32n8k16, of the transposed: b is A, a is B, d is turned
 *   m8n8k4     of f64: fragments of mma.sync, too, but fma and shuffles
 *
 * so a layout matters where fragments are loaded and stored alone, and a load is a
 * lane's own loads: a word where its numbers lie side by side. Of f16 there are eight
 * registers always; those too many hold the same again, as on NVIDIA's processors.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

enum { WORDS = 8 }; /* of a fragment at most */

typedef struct shape {
    uint8_t mod, tall, wide, k; /* rows of A, columns of B */
    bool turned;
} shape;

static const shape *
shape_of(const px_opcode *o)
{
    static const shape shapes[] = {{PM_M16N16K16, 16, 16, 16, false},
                                   {PM_M32N8K16, 32, 8, 16, false},
                                   {PM_M8N32K16, 32, 8, 16, true},
                                   {PM_M16N16K8, 16, 16, 8, false},
                                   {PM_M8N8K4, 8, 8, 4, false}};

    for (size_t i = 0; i < BR_COUNT(shapes); i++)
        if (px_has(o, (px_mod)shapes[i].mod))
            return &shapes[i];
    return NULL;
}

static unsigned
bits_of(unsigned type)
{
    return type == BR_KT_TF32 ? 32 : br_ktinfo_of[type].bytes * 8u;
}

static bool
is_input(const shape *s, unsigned type)
{
    return s->k == 4   ? type == BR_KT_F64
           : s->k == 8 ? type == BR_KT_TF32
                       : type == BR_KT_F16 || type == BR_KT_BF16 ||
                             type == BR_KT_S8 || type == BR_KT_U8;
}
static bool
is_sum(const shape *s, unsigned type)
{
    return s->k == 4
               ? type == BR_KT_F64
               : type == BR_KT_F32 || type == BR_KT_F16 || type == BR_KT_S32;
}

/* A fragment in memory. x, y: a row of A and k; a column of B and k; a row and a
 * column of the sums. */
typedef struct frag {
    const shape *s;
    unsigned type, n; /* n: registers that differ */
    bool sums, tall;
    bool along; /* numbers of one x lie side by side */
    unsigned space;
    int64_t plus;
    uint32_t lane, pitch; /* address of the lane's first; bytes of a line */
} frag;

static unsigned
per_word(const frag *f)
{
    return f->type == BR_KT_F64 ? 1 : 32 / bits_of(f->type);
}
static unsigned
word_type(const frag *f)
{
    return f->type == BR_KT_F64 ? BR_KT_B64 : BR_KT_B32;
}

/* Words of one mma.sync's A, B or sums. */
static unsigned
words_of(const frag *f)
{
    if (f->type == BR_KT_F64)
        return 1;
    return f->sums ? (f->type == BR_KT_F16 ? 2 : 4)
                   : f->s->k / (4 * per_word(f)) * (f->tall ? 2 : 1);
}

static unsigned
words_in(const frag *f)
{
    const unsigned times = f->tall ? f->s->tall / 16 : f->s->wide / 8;

    return words_of(f) * (f->sums ? 2 : times ? times : 1);
}

/* Where word w begins, beside the lane's first. */
static void
place(const frag *f, unsigned w, unsigned *x, unsigned *y)
{
    const unsigned each = words_of(f), m = w / each, r = w % each;

    if (f->type == BR_KT_F64) {
        *x = 0;
        *y = w;
        return;
    }
    if (!f->sums) {
        *x = f->tall ? 16 * m + 8 * (r & 1) : 8 * m;
        *y = (f->tall ? r >> 1 : r) * 4 * per_word(f);
        return;
    }
    *x = (f->s->tall == 32 ? 16 * m : 0) +
         8 * (f->type == BR_KT_F16 ? r : r >> 1);
    *y = (f->s->tall == 32 ? 0 : 8 * m) + (f->type == BR_KT_F16 ? 0 : r & 1);
}

/* The address of number x, y of those. */
static uint32_t
address(px_lower *l, const frag *f, unsigned x, unsigned y, int64_t *plus)
{
    const unsigned lines = f->along ? x : y, in = f->along ? y : x;

    *plus = f->plus + (int64_t)in * (bits_of(f->type) / 8);
    if (!lines)
        return f->lane;
    return px_do2(
        l, BR_K_ADD, BR_KT_U64, f->lane,
        px_do2(l, BR_K_MUL, BR_KT_U64, f->pitch, px_k(l, BR_KC_B64, lines)));
}

static uint32_t
load(px_lower *l, const frag *f, unsigned type, unsigned x, unsigned y)
{
    br_kins i = {.op = BR_K_LD, .type = (uint8_t)type, .n_arg = 1, .n_res = 1};
    uint32_t at = address(l, f, x, y, &i.imm);

    i.mods = br_kmod_put(BR_KF_SPACE, f->space);
    return px_emit(l, &i, &at);
}
static void
store(px_lower *l, const frag *f, unsigned type, unsigned x, unsigned y,
      uint32_t v)
{
    br_kins i = {.op = BR_K_ST, .type = (uint8_t)type, .n_arg = 2};
    uint32_t args[2] = {address(l, f, x, y, &i.imm), v};

    i.mods = br_kmod_put(BR_KF_SPACE, f->space);
    px_emit(l, &i, args);
}

static uint32_t
load_word(px_lower *l, const frag *f, unsigned w)
{
    const unsigned n = per_word(f);
    uint32_t part[4];
    unsigned x, y;

    place(f, w, &x, &y);
    if (n == 1 || f->along)
        return load(l, f, word_type(f), x, y);
    for (unsigned e = 0; e < n; e++)
        part[e] = load(l, f, n == 2 ? BR_KT_B16 : BR_KT_B8, x, y + e);
    if (n == 2)
        return px_do2(l, BR_K_PACK, BR_KT_B32, part[0], part[1]);
    return px_do2(l, BR_K_PACK, BR_KT_B32, px_bytes(l, part[0], part[1]),
                  px_bytes(l, part[2], part[3]));
}

static void
store_word(px_lower *l, const frag *f, unsigned w, uint32_t v)
{
    br_kins un = {.op = BR_K_UNPACK, .type = BR_KT_B32, .n_arg = 1};
    unsigned x, y;

    place(f, w, &x, &y);
    if (per_word(f) == 1 || f->along) {
        store(l, f, word_type(f), x, y, v);
        return;
    }
    v = px_emit(l, &un, &v);
    store(l, f, BR_KT_B16, x, y, v);
    store(l, f, BR_KT_B16, x, y + 1, v + 1);
}

/* Bytes of a line: operand `at`, or as long as the matrix is. */
static bool
find_pitch(px_lower *l, const px_ins *ins, unsigned at, unsigned natural,
           frag *f)
{
    uint32_t v = px_k(l, BR_KC_B32, natural);

    if (ins->n_op > at && !PX_SRC(l, ins, at, BR_KT_B32, &v))
        return false;
    f->pitch = px_do2(l, BR_K_MUL, BR_KT_U64, px_resize(l, v, BR_KC_B64, false),
                      px_k(l, BR_KC_B64, bits_of(f->type) / 8));
    return true;
}

/* Where the lane's first number is: lane / 4 is its x, lane % 4 its y, of words. */
static void
find_lane(px_lower *l, frag *f, uint32_t base)
{
    const unsigned bytes = bits_of(f->type) / 8;
    const uint32_t lane = px_lane(l);
    const uint32_t x =
        px_do2(l, BR_K_SHR, BR_KT_U32, lane, px_k(l, BR_KC_B32, 2));
    const uint32_t y =
        px_do2(l, BR_K_MUL, BR_KT_U32,
               px_do2(l, BR_K_AND, BR_KT_B32, lane, px_k(l, BR_KC_B32, 3)),
               px_k(l, BR_KC_B32, f->sums ? 2 : per_word(f)));
    const uint32_t line = px_resize(l, f->along ? x : y, BR_KC_B64, false);
    const uint32_t in = px_resize(l, f->along ? y : x, BR_KC_B64, false);

    base = px_do2(l, BR_K_ADD, BR_KT_U64, base,
                  px_do2(l, BR_K_MUL, BR_KT_U64, line, f->pitch));
    f->lane =
        px_do2(l, BR_K_ADD, BR_KT_U64, base,
               px_do2(l, BR_K_MUL, BR_KT_U64, in, px_k(l, BR_KC_B64, bytes)));
}

/* The fragment of a load or store, whose address is operand `at`. */
static bool
find_frag(px_lower *l, const px_ins *ins, unsigned at, frag *f)
{
    const px_opcode *o = l->opc;
    const bool row = px_has(o, PM_ROW), a = px_has(o, PM_FRAG_A);
    unsigned natural;
    uint32_t base;

    f->s = shape_of(o);
    f->type = o->types[0];
    f->sums = !a && !px_has(o, PM_FRAG_B);
    f->space = px_space(o);
    if (!f->s || o->n_types != 1 || row == px_has(o, PM_COL) ||
        !(f->sums ? is_sum(f->s, f->type) : is_input(f->s, f->type)))
        return PX_NO(l, "this shape or these types are not supported");
    f->tall = a != f->s->turned;
    f->along = f->sums ? row != f->s->turned : row == a;
    f->n = words_in(f);
    natural = f->along ? (f->sums ? f->s->wide : f->s->k)
                       : (f->sums || f->tall ? f->s->tall : f->s->wide);
    if (!px_addr(l, px_op(l, ins, at), &base, &f->plus) ||
        !find_pitch(l, ins, 2, natural, f))
        return false;
    find_lane(l, f, base);
    return true;
}

/* Registers that PTX gives the fragment. */
static unsigned
registers(const frag *f)
{
    return !f->sums && f->type == BR_KT_F16 ? WORDS : f->n;
}

static bool
wmma_load(px_lower *l, const px_ins *ins)
{
    uint32_t v[WORDS];
    frag f = {0};

    if (!find_frag(l, ins, 1, &f))
        return false;
    for (unsigned w = 0; w < registers(&f); w++)
        v[w] = w < f.n ? load_word(l, &f, w) : v[w - f.n];
    return px_dst_words(l, px_op(l, ins, 0), word_type(&f), v, registers(&f));
}

static br_kclass
word_class(const frag *f)
{
    return f->type == BR_KT_F64 ? BR_KC_B64 : BR_KC_B32;
}

static bool
wmma_store(px_lower *l, const px_ins *ins)
{
    uint32_t v[WORDS];
    uint16_t n = 0;
    frag f = {0};

    if (!px_has(l->opc, PM_FRAG_D))
        return PX_NO(l, "only sums are stored");
    if (!find_frag(l, ins, 0, &f) ||
        !px_words(l, px_op(l, ins, 1), word_class(&f), v, &n, WORDS))
        return false;
    if (n != registers(&f))
        return PX_NO(l, "the number of registers does not fit the shape");
    for (unsigned w = 0; w < f.n; w++)
        store_word(l, &f, w, v[w]);
    return true;
}

/* Of 64 bits, from another lane. */
static uint32_t
from_lane(px_lower *l, uint32_t v, uint32_t lane)
{
    br_kins un = {.op = BR_K_UNPACK, .type = BR_KT_B64, .n_arg = 1};
    uint32_t half = px_emit(l, &un, &v), part[2];

    for (unsigned k = 0; k < 2; k++)
        part[k] = px_from_lane(l, half + k, lane);
    return px_do2(l, BR_K_PACK, BR_KT_B64, part[0], part[1]);
}

bool
px_mma_f64(px_lower *l, const px_ins *ins)
{
    uint32_t v[4], row, col;
    uint16_t n = 0;

    for (unsigned k = 1; k < 4; k++)
        if (!px_words(l, px_op(l, ins, k), BR_KC_B64, v, &n, k == 3 ? 2 : 1))
            return false;
    if (px_has(l->opc, PM_RZ) || px_has(l->opc, PM_RM) || px_has(l->opc, PM_RP))
        return PX_NO(l, "only sums to nearest are supported");
    if (n != 4)
        return PX_NO(l, "the number of registers does not fit the shape");
    px_lines(l, &row, &col);
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t a = from_lane(
            l, v[0],
            px_do2(l, BR_K_ADD, BR_KT_U32, row, px_k(l, BR_KC_B32, k)));

        for (uint32_t e = 0; e < 2; e++) {
            const uint32_t args[3] = {
                a,
                from_lane(l, v[1],
                          px_do2(l, BR_K_ADD, BR_KT_U32, col,
                                 px_k(l, BR_KC_B32, 4 * e + k))),
                v[2 + e]};
            v[2 + e] = px_do(l, BR_K_FMA, BR_KT_F64, args, 3);
        }
    }
    return px_dst_words(l, px_op(l, ins, 0), BR_KT_B64, v + 2, 2);
}

/* d, a, b, c: two mma.sync. */
static bool
wmma_mma(px_lower *l, const px_ins *ins)
{
    const px_opcode *o = l->opc;
    const shape *s = shape_of(o);
    const bool four = o->n_types == 4;
    const unsigned ta = four ? o->types[1] : BR_KT_F16;
    const unsigned tb = four ? o->types[2] : BR_KT_F16;
    const unsigned td = o->types[0], tc = o->types[four ? 3 : 1];
    frag fa = {.s = s, .type = ta}, fb = {.s = s, .type = tb};
    frag fc = {.s = s, .type = td, .sums = true};
    br_kins i = {.op = BR_K_MMA};
    uint32_t in[3][WORDS], out[WORDS];
    uint16_t n[3] = {0};

    if (!s || (o->n_types != 2 && !four) || td != tc || !is_sum(s, td) ||
        !is_input(s, ta) || !is_input(s, tb) || bits_of(ta) != bits_of(tb) ||
        (td == BR_KT_S32) != (bits_of(ta) == 8) ||
        (td == BR_KT_F16 && ta != BR_KT_F16))
        return PX_NO(l, "this shape or these types are not supported");
    if (s->k == 4)
        return px_mma_f64(l, ins);
    fa.tall = !s->turned;
    fb.tall = s->turned;
    fa.n = words_in(&fa);
    fb.n = words_in(&fb);
    fc.n = words_in(&fc);
    for (unsigned k = 0; k < 3; k++)
        if (!px_words(l, px_op(l, ins, k + 1), BR_KC_B32, in[k], &n[k], WORDS))
            return false;
    if (n[0] != registers(&fa) || n[1] != registers(&fb) || n[2] != fc.n)
        return PX_NO(l, "the number of registers does not fit the shape");
    i.type = td == BR_KT_F16 ? BR_KT_F16X2 : (uint8_t)td;
    i.type2 = (uint8_t)(s->turned ? tb : ta);
    i.imm = (int64_t)(s->turned ? ta : tb) << 24 |
            (int64_t)(16u << 16 | 8u << 8 | s->k);
    if (px_has(o, PM_SATFINITE))
        i.mods = br_kmod_put(BR_KF_SAT, BR_KM_SAT_SATFINITE);
    i.n_res = (uint8_t)(fc.n / 2);
    for (unsigned m = 0; m < 2; m++) {
        const frag *tall = s->turned ? &fb : &fa, *wide = s->turned ? &fa : &fb;
        const uint32_t *a =
            in[s->turned] + (s->tall == 32) * m * words_of(tall);
        const uint32_t *b =
            in[!s->turned] + (s->tall == 16) * m * words_of(wide);
        uint32_t args[3 * WORDS], v;

        i.n_arg = 0;
        for (unsigned w = 0; w < words_of(tall); w++)
            args[i.n_arg++] = a[w];
        for (unsigned w = 0; w < words_of(wide); w++)
            args[i.n_arg++] = b[w];
        for (unsigned w = 0; w < fc.n / 2; w++)
            args[i.n_arg++] = in[2][m * fc.n / 2 + w];
        v = px_emit(l, &i, args);
        for (unsigned w = 0; w < fc.n / 2; w++)
            out[m * fc.n / 2 + w] = v + w;
    }
    return px_dst_words(l, px_op(l, ins, 0), BR_KT_B32, out, fc.n);
}

bool
px_l_wmma(px_lower *l, const px_ins *ins)
{
    if (px_has(l->opc, PM_M8N8K32) || px_has(l->opc, PM_M8N8K128))
        return px_wmma_narrow(l, ins);
    return px_has(l->opc, PM_LOAD)    ? wmma_load(l, ins)
           : px_has(l->opc, PM_STORE) ? wmma_store(l, ins)
           : px_has(l->opc, PM_MMA)   ? wmma_mma(l, ins)
                                      : PX_NO(l, "this wmma is not known");
}
