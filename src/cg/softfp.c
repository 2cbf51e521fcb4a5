/* softfp.c - unpack, compute exactly, round once.
 *
 *   number = (-1)^sign * sig / 2^126 * 2^exp       2^126 <= sig < 2^127
 *
 * The lowest bit of sig is sticky: what was shifted out below leaves a one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/softfp.h"

__extension__ typedef unsigned __int128 u128;

enum { TOP = 126 };
typedef enum kind { ZERO, FINITE, INFINITE, NAN_ } kind;

typedef struct num {
    kind kind;
    bool sign;
    int exp;
    u128 sig;
} num;

static const struct {
    uint8_t ebits, mbits, shift; /* shift: unused bits below */
    uint64_t nan;
} fmts[] = {
    [BR_SF_F16] = {5, 10, 0, 0x7fff},
    [BR_SF_BF16] = {8, 7, 0, 0x7fff},
    [BR_SF_F32] = {8, 23, 0, 0x7fffffff},
    [BR_SF_F64] = {11, 52, 0, 0xfff8000000000000},
    [BR_SF_TF32] = {8, 10, 13, 0x7fffffff},
    [BR_SF_E4M3] = {4, 3, 0, 0x7f},
    [BR_SF_E5M2] = {5, 2, 0, 0x7f},
};

static int
bias(br_sf_fmt f)
{
    return (1 << (fmts[f].ebits - 1)) - 1;
}

uint64_t
br_sf_sign_bit(br_sf_fmt f)
{
    return 1ull << (fmts[f].ebits + fmts[f].mbits + fmts[f].shift);
}

uint64_t
br_sf_nan(br_sf_fmt f)
{
    return fmts[f].nan;
}

uint64_t
br_sf_one(br_sf_fmt f)
{
    return (uint64_t)bias(f) << (fmts[f].mbits + fmts[f].shift);
}

/* x >> n with what falls out kept as a sticky bit. */
static u128
shift_jam(u128 x, int n)
{
    if (n <= 0)
        return x;
    if (n > 127)
        return x != 0;
    return x >> n | ((x & (((u128)1 << n) - 1)) != 0);
}

static num
normal(num x)
{
    if (x.sig == 0) {
        x.kind = ZERO;
        return x;
    }
    if (x.sig >> (TOP + 1)) {
        x.sig = shift_jam(x.sig, 1);
        x.exp++;
    }
    while (!(x.sig >> TOP)) {
        int by = !(x.sig >> 64) ? 62 : !(x.sig >> 96) ? 30 : 1;

        x.sig <<= by;
        x.exp -= by;
    }
    return x;
}

static num
unpack(br_sf s, uint64_t bits)
{
    int e, m = fmts[s.fmt].mbits;
    uint64_t all = (1ull << fmts[s.fmt].ebits) - 1, frac;
    num x = {.sign = bits & br_sf_sign_bit(s.fmt)};

    bits >>= fmts[s.fmt].shift;
    frac = bits & ((1ull << m) - 1);
    e = (int)(bits >> m & all);
    if ((uint64_t)e == all && (s.fmt != BR_SF_E4M3 || frac == 7)) {
        x.kind = frac ? NAN_ : INFINITE;
        return x;
    }
    if (e == 0 && (frac == 0 || s.ftz)) {
        x.kind = ZERO;
        return x;
    }
    x.kind = FINITE;
    x.sig = (u128)(frac | (e ? 1ull << m : 0)) << (TOP - m);
    x.exp = (e ? e : 1) - bias(s.fmt);
    return normal(x);
}

/* Whether to go up, from what is cut off of a magnitude. */
static bool
round_up(br_sf_round r, bool sign, bool odd, u128 rest, u128 half)
{
    switch (r) {
    case BR_SF_RZ: return false;
    case BR_SF_RM: return sign && rest;
    case BR_SF_RP: return !sign && rest;
    case BR_SF_RNA: return rest >= half;
    case BR_SF_RN: break;
    }
    return rest > half || (rest == half && odd);
}

static uint64_t
overflow(br_sf s, bool sign, bool finite)
{
    uint64_t all = (1ull << fmts[s.fmt].ebits) - 1;
    uint64_t inf = all << fmts[s.fmt].mbits, bits = inf;

    if (s.fmt == BR_SF_E4M3) {
        inf = 0x7f; /* there is none: the NaN */
        bits = inf;
    }
    if (finite || s.round == BR_SF_RZ || (s.round == BR_SF_RM && !sign) ||
        (s.round == BR_SF_RP && sign))
        bits = inf - 1;
    return bits << fmts[s.fmt].shift | (sign ? br_sf_sign_bit(s.fmt) : 0);
}

static uint64_t
pack_to(br_sf s, num x, bool finite)
{
    uint64_t sign = x.sign ? br_sf_sign_bit(s.fmt) : 0, q;
    int m = fmts[s.fmt].mbits, emin = 1 - bias(s.fmt), drop = TOP - m;
    u128 rest;

    if (x.kind == NAN_)
        return fmts[s.fmt].nan;
    if (x.kind == ZERO)
        return sign;
    if (x.kind == INFINITE) {
        s.round = BR_SF_RN;
        return overflow(s, x.sign, finite);
    }
    if (x.exp < emin)
        drop += emin - x.exp;
    if (drop > 127) {
        x.sig = shift_jam(x.sig, drop - 127);
        drop = 127;
    }
    q = (uint64_t)(x.sig >> drop);
    rest = x.sig & (((u128)1 << drop) - 1);
    q += round_up(s.round, x.sign, q & 1, rest, (u128)1 << (drop - 1));
    if (x.exp >= emin)
        q += (uint64_t)(x.exp - emin) << m;
    if (q >= ((1ull << fmts[s.fmt].ebits) - 1) << m &&
        (s.fmt != BR_SF_E4M3 || q >= 0x7f))
        return overflow(s, x.sign, finite);
    if (s.ftz && q >> m == 0)
        q = 0;
    return sign | q << fmts[s.fmt].shift;
}

static uint64_t
pack(br_sf s, num x)
{
    return pack_to(s, x, false);
}

static const num not_a_number = {.kind = NAN_};

/* ---- arithmetic --------------------------------------------------------- */

static num
add(br_sf s, num a, num b)
{
    num r = a;

    if (a.kind == NAN_ || b.kind == NAN_ ||
        (a.kind == INFINITE && b.kind == INFINITE && a.sign != b.sign))
        return not_a_number;
    if (a.kind == INFINITE || b.kind == INFINITE)
        return a.kind == INFINITE ? a : b;
    if (a.kind == ZERO && b.kind == ZERO) {
        r.sign = a.sign == b.sign ? a.sign : s.round == BR_SF_RM;
        return r;
    }
    if (a.kind == ZERO || b.kind == ZERO)
        return a.kind == ZERO ? b : a;
    if (a.exp < b.exp || (a.exp == b.exp && a.sig < b.sig)) {
        r = a;
        a = b;
        b = r;
    }
    b.sig = shift_jam(b.sig, a.exp - b.exp);
    r = a;
    r.sig = a.sign == b.sign ? a.sig + b.sig : a.sig - b.sig;
    if (r.sig == 0)
        r.sign = s.round == BR_SF_RM;
    return normal(r);
}

static num
mul(num a, num b)
{
    num r = {.kind = FINITE, .sign = a.sign != b.sign, .exp = a.exp + b.exp};

    if (a.kind == NAN_ || b.kind == NAN_ ||
        (a.kind == INFINITE && b.kind == ZERO) ||
        (a.kind == ZERO && b.kind == INFINITE))
        return not_a_number;
    if (a.kind != FINITE || b.kind != FINITE) {
        r.kind = a.kind == INFINITE || b.kind == INFINITE ? INFINITE : ZERO;
        return r;
    }
    r.sig = (a.sig >> 63) * (b.sig >> 63); /* 53 bits each: nothing is lost */
    return normal(r);
}

uint64_t
br_sf_add(br_sf s, uint64_t a, uint64_t b)
{
    return pack(s, add(s, unpack(s, a), unpack(s, b)));
}

uint64_t
br_sf_mul(br_sf s, uint64_t a, uint64_t b)
{
    return pack(s, mul(unpack(s, a), unpack(s, b)));
}

uint64_t
br_sf_fma(br_sf s, uint64_t a, uint64_t b, uint64_t c)
{
    return pack(s, add(s, mul(unpack(s, a), unpack(s, b)), unpack(s, c)));
}

uint64_t
br_sf_div(br_sf s, uint64_t abits, uint64_t bbits)
{
    num a = unpack(s, abits), b = unpack(s, bbits);
    num r = {.kind = FINITE, .sign = a.sign != b.sign, .exp = a.exp - b.exp};
    u128 n, d;

    if (a.kind == NAN_ || b.kind == NAN_ ||
        (a.kind == b.kind && a.kind != FINITE))
        return pack(s, not_a_number);
    if (a.kind != FINITE || b.kind != FINITE) {
        r.kind = a.kind == INFINITE || b.kind == ZERO ? INFINITE : ZERO;
        return pack(s, r);
    }
    n = a.sig & ~(((u128)1 << 63) - 1); /* 64 bits of each are all there are */
    d = b.sig >> 63;
    r.sig = (n / d) << 63 | (n % d != 0);
    return pack(s, normal(r));
}

uint64_t
br_sf_sqrt(br_sf s, uint64_t bits)
{
    num a = unpack(s, bits);
    u128 m, root = 0;

    if (a.kind == NAN_ || (a.sign && a.kind != ZERO))
        return pack(s, not_a_number);
    if (a.kind != FINITE)
        return pack(s, a);
    m = a.exp & 1 ? a.sig << 1 : a.sig;
    for (int b = 63; b >= 0; b--) {
        u128 t = root | (u128)1 << b;

        if (t * t <= m)
            root = t;
    }
    a.exp = (a.exp - (a.exp & 1)) / 2;
    a.sig = root << 63 | (root * root != m);
    return pack(s, normal(a));
}

/* ---- conversions -------------------------------------------------------- */

uint64_t
br_sf_cvt(br_sf s, br_sf_fmt to, bool finite, uint64_t a)
{
    num x = unpack(s, a);

    s.fmt = to;
    return pack_to(s, x, finite);
}

/* The magnitude as a whole number, 0 .. 2^127. */
static u128
whole(br_sf s, num x)
{
    int drop = TOP - x.exp;
    u128 q, rest, half;

    if (x.kind != FINITE)
        return 0;
    if (drop <= 0)
        return x.sig; /* huge either way */
    if (drop > 127) {
        x.sig = shift_jam(x.sig, drop - 127);
        drop = 127;
    }
    half = (u128)1 << (drop - 1);
    q = x.sig >> drop;
    rest = x.sig & (((u128)1 << drop) - 1);
    return q + round_up(s.round, x.sign, q & 1, rest, half);
}

uint64_t
br_sf_rint(br_sf s, uint64_t a)
{
    num x = unpack(s, a);

    if (x.kind != FINITE || x.exp >= fmts[s.fmt].mbits)
        return pack(s, x);
    x.sig = whole(s, x);
    x.exp = TOP;
    return pack(s, normal(x));
}

uint64_t
br_sf_to_int(br_sf s, uint64_t a, unsigned bits, bool is_signed)
{
    num x = unpack(s, a);
    u128 most = ((u128)1 << (bits - is_signed)) - 1, v = whole(s, x);
    uint64_t mask = bits < 64 ? (1ull << bits) - 1 : ~0ull;

    if (x.kind == NAN_)
        return bits == 64 || s.fmt == BR_SF_F64 ? 1ull << (bits - 1) : 0;
    if (x.sign)
        most = is_signed ? most + 1 : 0;
    if (x.kind == INFINITE || v > most)
        v = most;
    return (uint64_t)(x.sign ? (u128)0 - v : v) & mask;
}

uint64_t
br_sf_from_int(br_sf s, uint64_t v, bool is_signed)
{
    num x = {.kind = FINITE, .exp = TOP};

    x.sign = is_signed && v >> 63;
    x.sig = x.sign ? 0 - v : v;
    return pack(s, normal(x));
}

/* ---- questions ---------------------------------------------------------- */

bool
br_sf_is_nan(br_sf_fmt f, uint64_t a)
{
    return unpack((br_sf){f, BR_SF_RN, false}, a).kind == NAN_;
}

bool
br_sf_is_zero(br_sf s, uint64_t a)
{
    return unpack(s, a).kind == ZERO;
}

uint64_t
br_sf_flush(br_sf s, uint64_t a)
{
    return br_sf_is_zero(s, a) ? a & br_sf_sign_bit(s.fmt) : a;
}

int
br_sf_cmp(br_sf s, uint64_t a, uint64_t b)
{
    uint64_t sign = br_sf_sign_bit(s.fmt);
    bool minus;

    if (br_sf_is_nan(s.fmt, a) || br_sf_is_nan(s.fmt, b))
        return 2;
    a = br_sf_flush(s, a);
    b = br_sf_flush(s, b);
    if (a == b || ((a | b) & ~sign) == 0)
        return 0;
    if ((a ^ b) & sign)
        return a & sign ? -1 : 1;
    minus = a & sign;
    return (a < b) != minus ? -1 : 1;
}
