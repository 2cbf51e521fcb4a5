/* sim_lane.c - vector arithmetic: a function for each row of sim_lane.def, over
 * 32 lanes. lane_NAME knows nothing of masks or registers: sim_valu.c brings the
 * sources and takes the results. run_NAME is the whole instruction where nothing
 * is odd: one call for what took three.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_float.h"
#include "drv/sim/sim_int.h"
#include "drv/sim/sim_plain.h"

#include <math.h>

enum { USUAL_MODE = 0xf0 }; /* to nearest, denormals as they are */
#ifdef __AVX512DQ__
#    define IS_MAD(fl) ((fl)&SEM_MAD) /* mad64_lanes does it */
#else
#    define IS_MAD(fl) 0
#endif
#ifndef SIM_LANE_ROWS /* sim_lane_avx2.c has a name of its own */
#    define SIM_LANE_ROWS sim_lane_rows
#endif

/* ---- what rows call --------------------------------------------------- */

#define MIN2(x, y)    ((x) < (y) ? (x) : (y))
#define MAX2(x, y)    ((x) > (y) ? (x) : (y))
#define DIFF(x, y)    ((x) > (y) ? (x) - (y) : (y) - (x))
#define I24(v)        ((int32_t)((uint32_t)(v) << 8) >> 8)
#define U24(v)        ((v)&0xffffffu)
#define CLAMP16(v)    ((v) < -32768 ? -32768 : (v) > 32767 ? 32767 : (v))
#define CLAMP8(v)     ((uint32_t)((v) < 0 ? 0 : (v) > 255 ? 255 : (v)))
#define BF(v)         br_bf16_to_f32((uint16_t)(v))
#define CIN           (cin[i] & 1)
#define SUM(x, y, c)  sum_out(x, y, c, m + i, clamps)
#define LESS(x, y, c) less_out(x, y, c, m + i, clamps)
#define CLAMPS        clamps
#define SATU32(v)     (CLAMPS ? sat_u((int64_t)(v), UINT32_MAX) : (uint32_t)(v))
#define SATU16(v)     (CLAMPS ? sat_u(v, 65535) : (uint32_t)(v))
#define SATI32(v)     (CLAMPS ? (int32_t)sat_i(v, INT32_MAX) : (int32_t)(v))
#define SATI16(v)     (CLAMPS ? (int32_t)sat_i(v, 32767) : (v))

static uint32_t
sat_u(int64_t v, uint32_t most)
{
    return v < 0 ? 0 : v > most ? most : (uint32_t)v;
}

static int64_t
sat_i(int64_t v, int64_t most)
{
    return v > most ? most : v < -most - 1 ? -most - 1 : v;
}

/* A bit for each lane of words that are all ones or zero. */
static uint32_t
lane_bits(const uint32_t m[SIM_LANES])
{
    uint32_t r = 0;

#ifdef __AVX512DQ__
    r = (uint32_t)_mm512_movepi32_mask(_mm512_loadu_si512(m)) |
        (uint32_t)_mm512_movepi32_mask(_mm512_loadu_si512(m + 16)) << 16;
#elif defined __AVX2__
    for (unsigned k = 0; k < SIM_LANES; k += 8)
        r |= (uint32_t)_mm256_movemask_ps(
                 _mm256_loadu_ps((const float *)(const void *)(m + k)))
             << k;
#else
    for (unsigned k = 0; k < SIM_LANES; k++)
        r |= (m[k] & 1) << k;
#endif
    return r;
}

/* The other way round. A shift by the lane's number is no vector code of gcc 12. */
static inline void
lane_words(uint32_t m[SIM_LANES], uint32_t bits)
{
#ifdef __AVX512DQ__
    _mm512_storeu_si512(m, _mm512_movm_epi32((__mmask16)bits));
    _mm512_storeu_si512(m + 16, _mm512_movm_epi32((__mmask16)(bits >> 16)));
#elif defined __AVX2__
    __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);

    for (unsigned k = 0; k < SIM_LANES; k += 8) {
        __m256i v = _mm256_set1_epi32((int)(bits >> k & 255));

        v = _mm256_cmpeq_epi32(_mm256_and_si256(v, lane), lane);
        _mm256_storeu_si256((__m256i_u *)(m + k), v);
    }
#else
    for (unsigned k = 0; k < SIM_LANES; k++)
        m[k] = 0u - (bits >> k & 1);
#endif
}

/* By words: of those of 64 bits a vector has half as many. With clamp a sum or
 * difference that does not fit is its limit. */
static inline uint32_t
sum_out(uint32_t a, uint32_t b, uint32_t carry, uint32_t *m, bool clamps)
{
    uint32_t part = a + b, sum = part + carry;

    *m = 0u - ((uint32_t)(part < a) | (uint32_t)(sum < part));
    return clamps ? sum | *m : sum;
}

static inline uint32_t
less_out(uint32_t a, uint32_t b, uint32_t borrow, uint32_t *m, bool clamps)
{
    uint32_t part = a - b, rest = part - borrow;

    *m = 0u - ((uint32_t)(a < b) | (uint32_t)(part < borrow));
    return clamps ? rest & ~*m : rest;
}

/* a * b + c, whose halves are `w` apart, to d; by words, of which a vector has
 * twice as many. A comparison of 64 bits was 130 ns for 32 lanes, 64 bits without
 * one 15. */
static inline void
sim_mad64(uint32_t a, uint32_t b, const uint32_t *c, size_t w, uint32_t *d,
          uint32_t *m)
{
    uint32_t low = a * b, high = (uint32_t)((uint64_t)a * b >> 32);
    uint32_t sum = low + c[0], carry = sum < low;
    uint32_t top = high + c[w], over = top < high;
    uint32_t all = top + carry;

    d[0] = sum;
    d[SIM_LANES] = all;
    *m = 0u - (over | (all < top));
}

/* The same of all lanes, whatever of the sources the result goes to. */
static inline bool
mad64_lanes(sim_lanes *x)
{
#ifdef __AVX512DQ__
    const __mmask16 odd = 0xaaaa;

    x->out = 0;
    for (unsigned k = 0; k < SIM_LANES; k += 16) {
        __m512i a = _mm512_loadu_si512(x->a + k);
        __m512i b = _mm512_loadu_si512(x->b + k);
        __m512i c = _mm512_loadu_si512(x->c + k);
        __m512i h = _mm512_loadu_si512(x->c + x->w + k);
        __m512i even = _mm512_mul_epu32(a, b);
        __m512i odds = _mm512_mul_epu32(_mm512_srli_epi64(a, 32),
                                        _mm512_srli_epi64(b, 32));
        __m512i low = _mm512_mask_shuffle_epi32(even, odd, odds, _MM_PERM_CCAA);
        __m512i high =
            _mm512_mask_mov_epi32(_mm512_srli_epi64(even, 32), odd, odds);
        __m512i sum = _mm512_add_epi32(low, c), top = _mm512_add_epi32(high, h);
        __mmask16 carry = _mm512_cmplt_epu32_mask(sum, low);
        __mmask16 over = _mm512_cmplt_epu32_mask(top, high);

        top = _mm512_mask_add_epi32(top, carry, top, _mm512_set1_epi32(1));
        over |= _mm512_mask_testn_epi32_mask(carry, top, top);
        _mm512_storeu_si512(x->to + k, sum);
        _mm512_storeu_si512(x->to + SIM_LANES + k, top);
        x->out |= (uint32_t)over << k;
    }
    return true;
#else
    (void)x;
    return false;
#endif
}

static inline int64_t
sim_madi64(int64_t product, int64_t c, uint32_t *m, unsigned i)
{
    int64_t r;

    m[i] = __builtin_add_overflow(product, c, &r) ? UINT32_MAX : 0;
    return r;
}

static uint32_t
sim_rev32(uint32_t v)
{
    v = (v >> 1 & 0x55555555) | (v & 0x55555555) << 1;
    v = (v >> 2 & 0x33333333) | (v & 0x33333333) << 2;
    v = (v >> 4 & 0x0f0f0f0f) | (v & 0x0f0f0f0f) << 4;
    return __builtin_bswap32(v);
}

static uint32_t
sim_cls32(int32_t v)
{
    return v == 0 || v == -1 ? ~0u : (uint32_t)__builtin_clrsb(v) + 1;
}

static uint32_t
sim_bfe(uint32_t v, unsigned at, unsigned n)
{
    return v >> at & ((1u << n) - 1);
}

static uint32_t
sim_bfei(uint32_t v, unsigned at, unsigned n)
{
    return n ? (uint32_t)((int64_t)((uint64_t)((int64_t)(int32_t)v >> at)
                                    << (64 - n)) >>
                          (64 - n))
             : 0;
}

static uint32_t
sim_perm(uint32_t a, uint32_t b, uint32_t sel)
{
    uint64_t both = (uint64_t)a << 32 | b;
    uint32_t r = 0;

    for (int k = 0; k < 4; k++) {
        uint32_t s = sel >> 8 * k & 255, v;

        if (s < 8)
            v = (uint32_t)(both >> 8 * s) & 255;
        else if (s < 12) /* the sign of a half */
            v = both >> (16 * (s - 8) + 15) & 1 ? 255 : 0;
        else
            v = s == 12 ? 0 : 255;
        r |= v << 8 * k;
    }
    return r;
}

static uint32_t
sim_sad8(uint32_t a, uint32_t b, bool masked)
{
    uint32_t r = 0;

    for (int k = 0; k < 32; k += 8)
        if (!masked || b >> k & 255)
            r += DIFF(a >> k & 255, b >> k & 255);
    return r;
}

static uint32_t
sim_lerp8(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t r = 0;

    for (int k = 0; k < 32; k += 8)
        r |= ((a >> k & 255) + (b >> k & 255) + (c >> k & 1)) >> 1 << k;
    return r;
}

static uint32_t
sim_dot(uint32_t a, uint32_t b, uint32_t c, int bits, uint32_t flags)
{
    uint32_t m = (1u << bits) - 1, top = 1u << (bits - 1);
    int64_t sum =
        flags & (SIM_SIGNED_A | SIM_SIGNED_B) ? (int32_t)c : (int64_t)c;

    for (int k = 0; k < 32; k += bits) {
        uint32_t p = a >> k & m, q = b >> k & m;
        int64_t u = flags & SIM_SIGNED_A ? (int32_t)(p ^ top) - (int32_t)top
                                         : (int32_t)p;
        int64_t v = flags & SIM_SIGNED_B ? (int32_t)(q ^ top) - (int32_t)top
                                         : (int32_t)q;

        sum += u * v;
    }
    if (flags & SIM_CLAMP)
        return flags & (SIM_SIGNED_A | SIM_SIGNED_B)
                   ? (uint32_t)sat_i(sum, INT32_MAX)
                   : sat_u(sum, UINT32_MAX);
    return (uint32_t)sum;
}

static uint32_t
sim_snorm(float a)
{
    return (uint32_t)(int32_t)rintf(sim_min(sim_max(a, -1), 1) * 32767) &
           0xffff;
}

static uint32_t
sim_unorm(float a)
{
    return (uint32_t)rintf(sim_min(sim_max(a, 0), 1) * 65535);
}

static float
sim_mant(float a)
{
    int e;

    return frexpf(a, &e);
}

static double
sim_mant64(double a)
{
    int e;

    return frexp(a, &e);
}

static double
sim_fract64(double a)
{
    double r = a - floor(a);

    return r >= 1 ? 0x1.fffffffffffffp-1 : r;
}

/* ---- division: scale, multiply, fix up -------------------------------- */

/* quotient, denominator, numerator; no branches, so that it is vector code */
static inline float
sim_fixup32(float q, float d, float n)
{
    uint32_t sign = (br_f32_bits(d) ^ br_f32_bits(n)) & 0x80000000u;
    uint32_t r = (br_f32_bits(q) & 0x7fffffff) | sign;
    bool none = n == 0, zero = d == 0;
    bool far = (br_f32_bits(n) & 0x7fffffff) == 0x7f800000;
    bool wide = (br_f32_bits(d) & 0x7fffffff) == 0x7f800000;

    r = (wide | none) ? sign : r;
    r = (zero | far) ? sign | 0x7f800000 : r;
    r = (none & zero) | (far & wide) ? 0xffc00000 : r;
    r = d != d ? br_f32_bits(d) : r;
    r = n != n ? br_f32_bits(n) : r;
    return br_f32_of(r);
}

static double
sim_fixup64(double q, double d, double n)
{
    bool sign = signbit(d) != signbit(n);

    if (isnan(n) || isnan(d))
        return isnan(n) ? n : d;
    if ((n == 0 && d == 0) || (isinf(n) && isinf(d)))
        return br_f64_of(0xfff8000000000000);
    if (d == 0 || isinf(n))
        return sign ? -(double)INFINITY : (double)INFINITY;
    if (isinf(d) || n == 0)
        return sign ? -0.0 : 0.0;
    return copysign(q, sign ? -1.0 : 1.0);
}

/* The addend's size says which way the sources were scaled. Once rounded: the
 * sum in doubles, the last bit odd where it is not exact, so that what is no
 * normal number is not rounded a second time. */
static float
sim_fmas32(float a, float b, float c)
{
    double p = (double)a * (double)b, add = (double)c, s = p + add;
    double back = s - p, lost = (p - (s - back)) + (add - back);
    uint64_t bits = br_f64_bits(s);

    if (!isfinite(s))
        return fmaf(a, b, c);
    if (lost != 0 && !(bits & 1))
        s = br_f64_of((lost > 0) == (s > 0) ? bits + 1 : bits - 1);
    return (float)ldexp(s, ilogbf(c) > 0 ? 64 : -64);
}

/* Which side of r, which is a * b + c rounded, the exact sum is on (Boldo and
 * Muller: what an FMA loses is two numbers). */
static double
lost64(double a, double b, double c, double r)
{
    double u = a * b, ul = fma(a, b, -u);
    double s = c + ul, x = s - c, sl = (c - (s - x)) + (ul - x);
    double t = u + s, y = t - u, tl = (u - (t - y)) + (s - y);

    return ((t - r) + tl) + sl;
}

/* The same of doubles: where the sum is halfway between two numbers below the
 * normal ones, what it lost decides. */
static double
sim_fmas64(double a, double b, double c)
{
    const int by = ilogb(c) > 0 ? 128 : -128;
    double r = fma(a, b, c), q = ldexp(r, by), off, lost;

    if (by > 0 || !isfinite(r) || fabs(q) >= 0x1p-1022)
        return q;
    off = r - ldexp(q, 128);
    lost = fabs(off) == 0x1p-947 ? lost64(a, b, c, r) : 0;
    return lost != 0 && (lost > 0) == (off > 0) ? q + copysign(0x1p-1074, off)
                                                : q;
}

static int
exponent64(double a)
{
    return (int)(br_f64_bits(a) >> 52 & 2047);
}

/* a: what is scaled, b: denominator, c: numerator; the lane's bit says that
 * div_fmas has to scale back. */
static inline float
sim_scale32(float a, float b, float c, uint32_t *m, unsigned i)
{
    uint32_t x = br_f32_bits(a), y = br_f32_bits(b), z = br_f32_bits(c);
    uint32_t of_b = y >> 23 & 255, of_c = z >> 23 & 255;
    /* Whether 1 / b and c / b are below the normal numbers once they are rounded:
     * less than 2^-126 - 2^-150, a product of 48 bits. A division of a small
     * number takes the processor a hundred cycles. */
    uint32_t size = y & 0x7fffffff;
    bool inverse = (size > 0x7e800000) & (size <= 0x7f800000);
    bool quotient = fabs((double)c) < fabs((double)b) * 0x1.fffffep-127;
    bool apart = (int)of_c - (int)of_b >= 96, small = !of_b;
    bool none = (b == 0) | (c == 0);
    float more = a * 0x1p64f, less = a * 0x1p-64f, r;

    /* What comes first counts: from the last on. */
    r = of_c <= 23 ? more : a;
    r = quotient ? (x == z ? more : a) : r;
    r = inverse ? less : r;
    r = (inverse & quotient) ? (x == y ? less : a) : r;
    r = small ? more : r;
    r = apart ? (x == y ? more : a) : r;
    m[i] = (!none) & (apart | ((!small) & quotient)) ? UINT32_MAX : 0;
    return none ? br_f32_of(0x7fc00000) : r;
}

static double
sim_scale64(double a, double b, double c, uint32_t *m, unsigned i)
{
    int apart = exponent64(c) - exponent64(b);
    double inverse = 1 / b, quotient = c / b;

    if (b == 0 || c == 0)
        return br_f64_of(0x7ff8000000000000);
    if (apart >= 768) {
        m[i] = UINT32_MAX;
        return br_f64_bits(a) == br_f64_bits(b) ? ldexp(a, 128) : a;
    }
    if (exponent64(b) == 0)
        return ldexp(a, 128);
    if (exponent64(inverse) == 0 && exponent64(quotient) == 0) {
        m[i] = UINT32_MAX;
        return br_f64_bits(a) == br_f64_bits(b) ? ldexp(a, -128) : a;
    }
    if (exponent64(inverse) == 0)
        return ldexp(a, -128);
    if (exponent64(quotient) == 0) {
        m[i] = UINT32_MAX;
        return br_f64_bits(a) == br_f64_bits(c) ? ldexp(a, 128) : a;
    }
    return exponent64(c) <= 53 ? ldexp(a, 128) : a;
}

/* ---- the rows --------------------------------------------------------- */

#define C_N       uint32_t
#define C_U32     uint32_t
#define C_I32     int32_t
#define C_F32     float
#define C_U16     uint16_t
#define C_I16     int16_t
#define C_F16     float
#define C_H16     uint16_t
#define C_C32     uint32_t
#define C_U64     uint64_t
#define C_I64     int64_t
#define C_F64     double
#define C_C64     uint64_t

#define WIDE(p)   ((uint64_t)(p)[i + w] << 32 | (p)[i])
#define G_N(p)    0
#define G_U32(p)  (p)[i]
#define G_I32(p)  (int32_t)(p)[i]
#define G_F32(p)  br_f32_of((p)[i])
#define G_U16(p)  (uint16_t)(p)[i]
#define G_I16(p)  (int16_t)(p)[i]
#define G_F16(p)  sim_f16((p)[i])
#define G_H16(p)  (uint16_t)(p)[i]
#define G_C32(p)  (p)[i]
#define G_U64(p)  WIDE(p)
#define G_I64(p)  (int64_t) WIDE(p)
#define G_F64(p)  br_f64_of(WIDE(p))
#define G_C64(p)  WIDE(p)

#define P_U32(v)  d[i] = (uint32_t)(v)
#define P_I32(v)  d[i] = (uint32_t)(v)
#define P_F32(v)  d[i] = br_f32_bits((float)(v))
#define P_U16(v)  d[i] = (uint16_t)(v)
#define P_I16(v)  d[i] = (uint16_t)(v)
#define P_F16(v)  d[i] = br_f32_to_f16(v)
#define P_U64(v)  put64(d, i, (uint64_t)(v))
#define P_I64(v)  put64(d, i, (uint64_t)(v))
#define P_F64(v)  put64(d, i, br_f64_bits(v))
/* It has been put already. */
#define P_BOTH(v) (v)

static inline void
put64(uint32_t *d, unsigned i, uint64_t v)
{
    d[i] = (uint32_t)v;
    d[i + SIM_LANES] = (uint32_t)(v >> 32);
}

/* For modifiers, H16 is an f16 and C32 an f32; what is no float takes none. */
#define T_H16  T_F16
#define T_C32  T_F32
#define T_C64  T_F64
#define T_BOTH T_U64

/* Words that a lane gets. */
#define W_U32  1
#define W_I32  1
#define W_F32  1
#define W_U16  0 /* halves of one: never plain */
#define W_I16  0
#define W_F16  0
#define W_U64  2
#define W_I64  2
#define W_F64  2
#define W_BOTH 2

static inline void
begin(sim_wave *w, const sim_op *o, sim_lanes *x, bool masked)
{
    x->to = x->d;
    x->w = SIM_LANES;
    x->in = masked && o->args.in != SIM_NULL ? w->s[o->args.in] : 0;
    x->out = x->flags = x->first = 0;
}

static inline void
end(sim_wave *w, const sim_op *o, const sim_lanes *x, unsigned words, bool mask)
{
    uint32_t exec = w->s[SIM_EXEC], *to = w->v + o->args.to;

    if (words && x->to == x->d)
        sim_blend(to, x->d, exec);
    if (words > 1 && x->to == x->d)
        sim_blend(to + SIM_LANES, x->d + SIM_LANES, exec);
    if (mask && o->args.out != SIM_NULL)
        w->s[o->args.out] = x->out & exec;
}

/* Pointers of its own that nothing else is reached by: else no loop would
 * become vector code. A source may be the register that the result goes to: a
 * lane reads its own words before it writes its only one. */
#define SOURCES                               \
    const uint32_t *restrict pa = x->a;       \
    const uint32_t *restrict pb = x->b;       \
    const uint32_t *restrict pc = x->c;       \
    const size_t w = x->w;                    \
    const bool clamps = x->flags & SIM_CLAMP; \
    uint32_t m[SIM_LANES] = {0};              \
    uint32_t cin[SIM_LANES];                  \
                                              \
    (void)pa;                                 \
    (void)pb;                                 \
    (void)pc;                                 \
    (void)w;                                  \
    (void)cin;                                \
    (void)clamps;                             \
    (void)m
#define LANE(name, D, A, B, C, value, fl)                           \
    static __attribute__((noinline)) void lane_##name(sim_lanes *x) \
    {                                                               \
        uint32_t *restrict d = x->to;                               \
        SOURCES;                                                    \
                                                                    \
        if ((fl)&SEM_MAD && mad64_lanes(x))                         \
            return;                                                 \
        if ((fl)&SEM_CIN)                                           \
            lane_words(cin, x->in);                                 \
        for (unsigned i = 0; i < SIM_LANES; i++) {                  \
            C_##A a = G_##A(pa);                                    \
            C_##B b = G_##B(pb);                                    \
            C_##C c = G_##C(pc);                                    \
                                                                    \
            (void)a;                                                \
            (void)b;                                                \
            (void)c;                                                \
            P_##D(value);                                           \
        }                                                           \
        if ((fl)&SEM_COUT)                                          \
            x->out = lane_bits(m);                                  \
    }                                                               \
    RUN(name, T_##A, T_##B, T_##C, W_##D, fl)
#define COMPARE(name, A, B, value)                                  \
    static __attribute__((noinline)) void lane_##name(sim_lanes *x) \
    {                                                               \
        SOURCES;                                                    \
                                                                    \
        for (unsigned i = 0; i < SIM_LANES; i++) {                  \
            C_##A a = G_##A(pa);                                    \
            C_##B b = G_##B(pb);                                    \
                                                                    \
            (void)a;                                                \
            (void)b;                                                \
            m[i] = (value) ? UINT32_MAX : 0;                        \
        }                                                           \
        x->out = lane_bits(m);                                      \
    }                                                               \
    RUN(name, T_##A, T_##B, T_N, 0, SEM_COUT)
/* One of the usual mode and sources; words: that a lane gets. */
#define RUN(name, ta, tb, tc, words, fl)                                       \
    static bool run_##name(sim_wave *w, const sim_op *o)                       \
    {                                                                          \
        uint32_t buf[3][2 * SIM_LANES];                                        \
        sim_lanes x;                                                           \
                                                                               \
        if ((w->mode & 255) != USUAL_MODE)                                     \
            return sim_valu(w, o);                                             \
        begin(w, o, &x, (fl)&SEM_CIN);                                         \
        x.a = (ta) == T_N ? NULL : sim_arg(w, &o->args, 0, buf[0]);            \
        x.b = (tb) == T_N ? NULL : sim_arg(w, &o->args, 1, buf[1]);            \
        x.c = (fl)&SEM_ACC  ? w->v + o->args.to                                \
              : (tc) == T_N ? NULL                                             \
                            : sim_arg(w, &o->args, 2, buf[2]);                 \
        if (w->s[SIM_EXEC] == UINT32_MAX &&                                    \
            ((words) == 1 || ((words) == 2 && (o->args.apart || IS_MAD(fl))))) \
            x.to = w->v + o->args.to;                                          \
        lane_##name(&x);                                                       \
        end(w, o, &x, words, (fl)&SEM_COUT);                                   \
        return true;                                                           \
    }
#define PACKED(name, of)
#include "drv/sim/sim_lane.def"
#undef LANE
#undef COMPARE
#undef PACKED
#undef RUN

/* ---- dual instructions ------------------------------------------------ */

static inline void
half(sim_wave *w, const sim_op *o, sim_lanes *x)
{
    static const uint32_t zero[2 * SIM_LANES];
    uint32_t buf[3][2 * SIM_LANES];
    const sim_args *a = &o->args;

    x->a = o->n_src > 0 ? sim_arg(w, a, 0, buf[0]) : zero;
    x->b = o->n_src > 1 ? sim_arg(w, a, 1, buf[1]) : zero;
    x->c = o->sem->flags & SEM_ACC ? w->v + a->to
           : o->n_src > 2          ? sim_arg(w, a, 2, buf[2])
                                   : zero;
    x->w = SIM_LANES;
    x->in = a->in != SIM_NULL ? w->s[a->in] : 0;
    x->out = x->flags = x->first = 0;
    o->sem->lane(x);
}

/* Halves of one word a lane. Both read before either writes: the first one's
 * result waits in x. */
static bool
dual(sim_wave *w, const sim_op *o)
{
    uint32_t exec = w->s[SIM_EXEC], *to = w->v + o->y->args.to;
    sim_lanes x, y;

    if ((w->mode & 255) != USUAL_MODE)
        return sim_dual(w, o);
    x.to = x.d;
    y.to = exec == UINT32_MAX ? to : y.d;
    half(w, o, &x);
    half(w, o->y, &y);
    sim_blend(w->v + o->args.to, x.d, exec);
    if (y.to == y.d)
        sim_blend(to, y.d, exec);
    return true;
}

const sim_sem SIM_LANE_ROWS[] = {
#define LANE(name, D, A, B, C, value, fl)         \
    {"v_" #name, sim_valu, lane_##name,           \
     run_##name, T_##D,    {T_##A, T_##B, T_##C}, \
     fl},
#define COMPARE(name, A, B, value)                                  \
    {"v_" #name,          sim_valu, lane_##name, run_##name, T_CMP, \
     {T_##A, T_##B, T_N}, SEM_COUT},
#define PACKED(name, of)
#include "drv/sim/sim_lane.def"
#undef LANE
#undef COMPARE
#undef PACKED
#define LANE(name, D, A, B, C, value, fl)
#define COMPARE(name, A, B, value)
#define PACKED(name, of)                                                  \
    {"v_" #name, sim_valu, lane_##of, NULL, T_U32, {T_U16, T_U16, T_U16}, \
     SEM_PACKED},
#include "drv/sim/sim_lane.def"
#undef LANE
#undef COMPARE
#undef PACKED
    {NULL, NULL, NULL, dual, 0, {0}, 0}, /* of the usual dual ones */
};
