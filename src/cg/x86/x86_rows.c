/* x86_rows.c - pure operations without vector code, row by row.
 *
 * A step of C would ask the evaluator of kir_eval.c for each lane, which splits
 * floats into their fields: 20 to 250 ns a lane. Here an operation is a loop over
 * the 32 lanes of rows, in C's own arithmetic, 0.5 to 10 ns; bits are the
 * evaluator's, and what is not here is asked there as ever. Rows may hold anything
 * on lanes that do not run: nothing here traps. SPDX-License-Identifier: Apache-2.0 */
#include "cg/softfp.h"
#include "cg/x86/x86_int.h"

#include <math.h>
#include <string.h>

enum { ARGS = 4, WIDEST = 8 };

/* One operation on n lanes: rows of 32 or 64 bits, as the values' classes say. */
typedef struct rows {
    const br_kins *i;
    unsigned n;
    const void *a[ARGS];
    void *d;
} rows;

#define U32(k) ((const uint32_t *)r->a[k])[l]
#define S32(k) ((const int32_t *)r->a[k])[l]
#define U64(k) ((const uint64_t *)r->a[k])[l]
#define S64(k) ((const int64_t *)r->a[k])[l]
#define F32(k) ((const float *)r->a[k])[l]
#define F64(k) ((const double *)r->a[k])[l]
/* A loop over the lanes, of one expression. */
#define EACH(type, x)                       \
    do {                                    \
        type *d_ = r->d;                    \
        for (unsigned l = 0; l < r->n; l++) \
            d_[l] = (type)(x);              \
    } while (0)

/* ---- conversions ---------------------------------------------------------- */

static double
whole(double x, unsigned rnd)
{
    switch (rnd) {
    case BR_KM_RND_RNI: return rint(x);
    case BR_KM_RND_RMI: return floor(x);
    case BR_KM_RND_RPI: return ceil(x);
    default: return x; /* as the conversion cuts */
    }
}

/* What does not fit is the nearest that does; a NaN is nan. */
static uint64_t
number(double x, unsigned bits, bool is_signed, uint64_t nan)
{
    double end = is_signed ? 0x1p31 : 0x1p32;

    if (bits == 64)
        end *= 0x1p32;
    if (x != x)
        return nan;
    if (x >= end)
        return ~0ull >> (64 - bits + is_signed);
    if (!is_signed)
        return x > 0 ? (uint64_t)x : 0;
    return (uint64_t)(x <= -end ? (int64_t)-end : (int64_t)x);
}

static bool
to_number(const rows *r)
{
    const br_ktinfo *to = &br_ktinfo_of[r->i->type];
    unsigned rnd = br_kmod(r->i->mods, BR_KF_RND), bits = to->bytes * 8u;
    bool wide = r->i->type2 == BR_KT_F64, s = to->kind == 'S';
    uint64_t nan = wide || bits == 64 ? 1ull << (bits - 1) : 0;

    if (rnd < BR_KM_RND_RNI || bits < 32 || (!wide && r->i->type2 != BR_KT_F32))
        return false;
    if (wide && bits == 64)
        EACH(uint64_t, number(whole(F64(0), rnd), 64, s, nan));
    else if (wide)
        EACH(uint32_t, number(whole(F64(0), rnd), 32, s, nan));
    else if (bits == 64)
        EACH(uint64_t, number(whole((double)F32(0), rnd), 64, s, nan));
    else
        EACH(uint32_t, number(whole((double)F32(0), rnd), 32, s, nan));
    return true;
}

static bool
from_number(const rows *r)
{
    const br_ktinfo *from = &br_ktinfo_of[r->i->type2];
    bool s = from->kind == 'S', wide = r->i->type == BR_KT_F64;

    if (br_kmod(r->i->mods, BR_KF_RND) > BR_KM_RND_RN || from->bytes < 4 ||
        (!wide && r->i->type != BR_KT_F32))
        return false;
    if (wide && from->bytes == 8) {
        if (s)
            EACH(double, S64(0));
        else
            EACH(double, U64(0));
    } else if (wide) {
        if (s)
            EACH(double, S32(0));
        else
            EACH(double, U32(0));
    } else if (from->bytes == 8) {
        if (s)
            EACH(float, S64(0));
        else
            EACH(float, U64(0));
    } else {
        if (s)
            EACH(float, S32(0));
        else
            EACH(float, U32(0));
    }
    return true;
}

static bool
convert(const rows *r)
{
    bool from = br_ktinfo_of[r->i->type2].kind == 'F';
    bool to = br_ktinfo_of[r->i->type].kind == 'F';

    if (br_kmod(r->i->mods, BR_KF_SAT) || br_kmod(r->i->mods, BR_KF_FTZ) ||
        br_kmod(r->i->mods, BR_KF_RELU) || from == to)
        return false;
    return from ? to_number(r) : from_number(r);
}

/* ---- bits ----------------------------------------------------------------- */

static uint32_t
reversed(uint32_t v)
{
    v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
    v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
    v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(v);
}

static uint32_t
ones(uint64_t v)
{
    v -= v >> 1 & 0x5555555555555555;
    v = (v & 0x3333333333333333) + (v >> 2 & 0x3333333333333333);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return (uint32_t)(v * 0x0101010101010101 >> 56);
}

static uint32_t
leading(uint64_t v)
{
    return v ? (uint32_t)__builtin_clzll(v) : 64;
}

/* As kir_eval.c has it: places and lengths of 8 bits. */
static uint32_t
field(uint32_t a, uint32_t pos, uint32_t len, bool is_signed)
{
    uint32_t top, sign;

    pos &= 255;
    len &= 255;
    if (len == 0)
        return 0;
    top = pos + len > 32 ? 31 : pos + len - 1;
    sign = is_signed && a >> top & 1 ? ~0u : 0;
    if (pos >= 32)
        return sign;
    len = BR_MIN(len, 32 - pos);
    a >>= pos;
    return len >= 32 ? a : (a & ((1u << len) - 1)) | sign << len;
}

static uint32_t
put_field(uint32_t a, uint32_t b, uint32_t pos, uint32_t len)
{
    uint32_t mask;

    pos &= 255;
    len &= 255;
    if (pos >= 32 || len == 0)
        return b;
    mask = (len >= 32 ? ~0u : (1u << len) - 1) << pos;
    return (b & ~mask) | (a << pos & mask);
}

/* Place of the highest bit that is no sign, from below, or above. */
static uint32_t
highest(uint64_t v, unsigned bits, bool is_signed, bool above)
{
    uint32_t at;

    if (is_signed && v >> (bits - 1) & 1)
        v = ~v & (~0ull >> (64 - bits));
    if (!v)
        return ~0u;
    at = 63 - (uint32_t)__builtin_clzll(v);
    return above ? bits - 1 - at : at;
}

static bool
bits_of(const rows *r)
{
    const br_ktinfo *t = &br_ktinfo_of[r->i->type];
    bool q = t->bytes == 8, s = t->kind == 'S';
    bool above = br_kmod(r->i->mods, BR_KF_SUB) != 0;

    switch (r->i->op) {
    case BR_K_POPC:
        if (q)
            EACH(uint32_t, ones(U64(0)));
        else
            EACH(uint32_t, ones(U32(0)));
        return true;
    case BR_K_CLZ:
        if (q)
            EACH(uint32_t, leading(U64(0)));
        else
            EACH(uint32_t, leading(U32(0)) - 32);
        return true;
    case BR_K_BREV:
        if (q)
            EACH(uint64_t, (uint64_t)reversed((uint32_t)U64(0)) << 32 |
                               reversed((uint32_t)(U64(0) >> 32)));
        else
            EACH(uint32_t, reversed(U32(0)));
        return true;
    case BR_K_BFIND:
        if (q)
            EACH(uint32_t, highest(U64(0), 64, s, above));
        else
            EACH(uint32_t, highest(U32(0), 32, s, above));
        return true;
    case BR_K_BFE:
        if (!q)
            EACH(uint32_t, field(U32(0), U32(1), U32(2), s));
        return !q;
    case BR_K_BFI:
        if (!q)
            EACH(uint32_t, put_field(U32(0), U32(1), U32(2), U32(3)));
        return !q;
    default: return false;
    }
}

/* ---- whole numbers of 64 bits --------------------------------------------- */

__extension__ typedef __int128 i128;
__extension__ typedef unsigned __int128 u128;

static uint64_t
quotient(uint64_t a, uint64_t b)
{
    if (b == 0)
        return ~0ull;
    return (a | b) >> 32 ? a / b : (uint32_t)a / (uint32_t)b;
}

static uint64_t
rest(uint64_t a, uint64_t b)
{
    if (b == 0)
        return ~0ull;
    return (a | b) >> 32 ? a % b : (uint32_t)a % (uint32_t)b;
}

/* The least number has no opposite: it stays. */
static uint64_t
signed_quotient(int64_t a, int64_t b)
{
    return b == 0 ? ~0ull : b == -1 ? 0 - (uint64_t)a : (uint64_t)(a / b);
}

static uint64_t
signed_rest(int64_t a, int64_t b)
{
    return b == 0 ? ~0ull : b == -1 ? 0 : (uint64_t)(a % b);
}

static bool
whole64(const rows *r)
{
    bool s = br_ktinfo_of[r->i->type].kind == 'S';

    switch (r->i->op) {
    case BR_K_MULHI:
        if (s)
            EACH(uint64_t, (i128)S64(0) * S64(1) >> 64);
        else
            EACH(uint64_t, (u128)U64(0) * U64(1) >> 64);
        return true;
    case BR_K_DIV:
        if (s)
            EACH(uint64_t, signed_quotient(S64(0), S64(1)));
        else
            EACH(uint64_t, quotient(U64(0), U64(1)));
        return true;
    case BR_K_REM:
        if (s)
            EACH(uint64_t, signed_rest(S64(0), S64(1)));
        else
            EACH(uint64_t, rest(U64(0), U64(1)));
        return true;
    case BR_K_MIN:
        if (s)
            EACH(int64_t, S64(0) < S64(1) ? S64(0) : S64(1));
        else
            EACH(uint64_t, U64(0) < U64(1) ? U64(0) : U64(1));
        return true;
    case BR_K_MAX:
        if (s)
            EACH(int64_t, S64(0) > S64(1) ? S64(0) : S64(1));
        else
            EACH(uint64_t, U64(0) > U64(1) ? U64(0) : U64(1));
        return true;
    case BR_K_ABS:
        EACH(uint64_t, s && S64(0) < 0 ? 0 - U64(0) : U64(0));
        return true;
    case BR_K_SHR:
        if (s)
            EACH(int64_t, S64(0) >> BR_MIN(U32(1), 63u));
        else
            EACH(uint64_t, U32(1) > 63 ? 0 : U64(0) >> (U32(1) & 63));
        return true;
    default: return false;
    }
}

/* ---- functions ------------------------------------------------------------ */

static bool
approximate(const rows *r)
{
    bool ftz = br_kmod(r->i->mods, BR_KF_FTZ) != 0;
    br_sf_fn fn;

    switch (r->i->op) {
    case BR_K_LG2: fn = BR_SF_LG2; break;
    case BR_K_SIN: fn = BR_SF_SIN; break;
    case BR_K_COS: fn = BR_SF_COS; break;
    case BR_K_TANH: fn = BR_SF_TANH; break;
    default: return false;
    }
    EACH(uint32_t, br_sf_approx_f32(fn, ftz, U32(0)));
    return true;
}

/* ---- the choice ----------------------------------------------------------- */

static bool
evaluate(const rows *r)
{
    const br_kins *i = r->i;
    const br_ktinfo *t = &br_ktinfo_of[i->type];

    if (i->op == BR_K_CVT)
        return convert(r);
    if (t->lanes != 1 || (t->bytes != 4 && t->bytes != 8) ||
        br_kmod(i->mods, BR_KF_SAT))
        return false;
    if (i->type == BR_KT_F32)
        return approximate(r);
    if (t->kind == 'F')
        return false;
    return bits_of(r) || (t->bytes == 8 && whole64(r));
}

/* An argument's row, made in tmp where it is none. */
static const void *
row_of(const ki_frame *f, uint32_t v, unsigned n, unsigned first, void *tmp)
{
    const x86_fn *fn = f->native;
    const br_kval *k = &f->f->vals.at[v];
    bool even = k->kind == BR_KV_INS && x86_even(fn, v);
    uint32_t *narrow = tmp;
    uint64_t *wide = tmp, x = 0;

    if (k->kind == BR_KV_INS && !even && !fn->uniform[v] && n == KI_LANES)
        return f->slots + fn->slot[v];
    for (unsigned l = 0; l < n; l++) {
        if (l == 0 || even)
            x = k->kind == BR_KV_INS ? x86_get_lane(f, v, first + l) : k->bits;
        if (k->cls == BR_KC_B64)
            wide[l] = x;
        else
            narrow[l] = (uint32_t)x;
    }
    return tmp;
}

static void
give_row(const ki_frame *f, uint32_t v, const void *row, uint32_t exec)
{
    unsigned bytes = f->f->vals.at[v].cls == BR_KC_B64 ? 8 : 4;
    uint8_t *to = f->slots + f->native->slot[v];

    ki_each_lane(l, exec)
        memcpy(to + bytes * l, (const uint8_t *)row + bytes * l, bytes);
}

/* Of a warp, or of what is one number for all of it; false: it was not done. */
bool
x86_rows(ki_frame *f, const br_kins *i, uint32_t exec, bool uniform)
{
    _Alignas(64) uint8_t tmp[ARGS + 1][KI_LANES * WIDEST];
    unsigned first = uniform ? (unsigned)__builtin_ctz(exec) : 0;
    rows r = {.i = i, .n = uniform ? 1 : KI_LANES, .d = tmp[ARGS]};
    uint32_t slot;

    if (i->n_res != 1 || i->n_arg > ARGS ||
        !(br_kopinfo_of[i->op].props & BR_KP_PURE) ||
        f->f->vals.at[i->res].cls < BR_KC_B32)
        return false;
    slot = f->native->slot[i->res];
    for (unsigned a = 0; a < i->n_arg; a++) {
        uint32_t v = f->f->args.at[i->arg + a];

        if (f->f->vals.at[v].cls < BR_KC_B32)
            return false;
        r.a[a] = row_of(f, v, r.n, first, tmp[a]);
    }
    if (!uniform && exec == UINT32_MAX && slot != X86_NO_SLOT)
        r.d = f->slots + slot;
    if (!evaluate(&r))
        return false;
    if (uniform)
        memcpy(f->slots + slot, r.d,
               f->f->vals.at[i->res].cls == BR_KC_B64 ? 8 : 4);
    else if (r.d == tmp[ARGS] && slot != X86_NO_SLOT)
        give_row(f, i->res, r.d, exec);
    return true;
}
