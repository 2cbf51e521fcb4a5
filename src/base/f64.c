/* f64.c - numbers and their texts: to int64, to double, shortest from double.
 *
 * Both directions multiply a 64-bit integer by a power of ten cut to 128 bits
 * (pow10.def), which is enough to decide the rounding:
 *
 *   text -> double   Lemire, "Number parsing at a gigabyte per second" (2021);
 *                    Mushtak and Lemire (2022) prove that 19 digits never need
 *                    more. With more digits the first 19 give a lower and an
 *                    upper bound; where those differ, big integers compare the
 *                    text with the point halfway between the two doubles.
 *   double -> text   Giulietti, "The Schubfach way to render doubles" (2020):
 *                    of the decimals with the fewest digits that read back
 *                    equal, the closest. The same text as Python's repr.
 *
 * No C library conversion: that would ask the locale for the decimal point,
 * and is 5 to 200 times slower (bench/bench_json.c: 39 ns to text and 17 ns
 * back for short decimals, 54 and 44 ns for random doubles, AMD EPYC).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/bits.h"
#include "base/json.h"

#include <math.h>
#include <string.h>
#include <strings.h>

__extension__ typedef unsigned __int128 u128;

enum {
    POW10_FIRST = -342,
    POW10_LAST = 324,
    BIAS = 1075,          /* double = mantissa * 2^(exponent - BIAS) */
    EXPONENT_INF = 0x7FF, /* the exponent field of inf and nan */
    DIGITS_64 = 19,       /* so many decimal digits fit 64 bits */
    /* A point halfway between two doubles has at most 768 significant digits:
     * of further digits only "some are not zero" counts. */
    DIGITS_EXACT = 800,
    LIMBS = 64, /* 4096 bits; the largest number compared has below 2900 */
};
#define HIDDEN (UINT64_C(1) << 52)

typedef struct power {
    uint64_t hi, lo;
} power;

static const power pow10_table[] = {
#define X(hi, lo) {hi, lo},
#include "base/pow10.def"
#undef X
};
_Static_assert(BR_COUNT(pow10_table) == POW10_LAST - POW10_FIRST + 1,
               "one row per power");

/* 10^q as 128 bits, cut off or rounded up. Powers of five up to 55 fit and
 * are exact either way; reciprocals never are. */
static inline power
power_of_ten(int64_t q, bool up)
{
    power g = pow10_table[q - POW10_FIRST];

    if (up && (q < 0 || q > 55) && ++g.lo == 0)
        g.hi++;
    return g;
}

static inline bool
is_digit(char c)
{
    return (unsigned)(unsigned char)c - '0' < 10;
}

bool
br_json_to_i64(br_text t, int64_t *out)
{
    bool neg = t.n > 0 && t.p[0] == '-';
    size_t i = neg;
    int64_t v = 0;

    if (i >= t.n || (t.p[i] == '0' && t.n > i + 1))
        return false;
    /* Downwards: the negative side has one number more. */
    for (; i < t.n; i++) {
        if (!is_digit(t.p[i]) || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_sub_overflow(v, t.p[i] - '0', &v))
            return false;
    }
    if (!neg && __builtin_sub_overflow(0, v, &v))
        return false;
    *out = v;
    return true;
}

/* ---- text to double --------------------------------------------------- */

typedef struct decimal {
    bool neg;
    bool cut;                /* digits other than 0 follow those in w */
    uint64_t w;              /* the first DIGITS_64 significant digits */
    int64_t q;               /* value = w * 10^q, and a little more if cut */
    const char *first, *end; /* all digits and the point */
    int64_t last_q;          /* power of ten of the digit before end */
} decimal;

/* Appends the digits at p to w. Those that no longer fit only move q. */
static const char *
take_digits(decimal *d, const char *p, const char *end)
{
    for (; p < end && is_digit(*p); p++) {
        if (d->w < UINT64_C(1000000000000000000)) {
            d->w = d->w * 10 + (uint64_t)(*p - '0');
        } else {
            d->cut |= *p != '0';
            d->q++;
        }
    }
    return p;
}

/* All of t: JSON's grammar of numbers, or C's. */
static bool
scan_decimal(br_text t, bool json, decimal *d)
{
    const char *p = t.p, *end = p + t.n, *from;
    int64_t e = 0;
    size_t whole, part = 0;
    bool e_neg;

    *d = (decimal){.neg = t.n > 0 && *p == '-'};
    d->first = p += d->neg || (!json && t.n > 0 && *p == '+');
    p = take_digits(d, p, end);
    whole = (size_t)(p - d->first);
    if (json && (whole == 0 || (*d->first == '0' && whole > 1)))
        return false;
    if (p < end && *p == '.') {
        from = ++p;
        p = take_digits(d, p, end);
        part = (size_t)(p - from);
        if (json && part == 0)
            return false;
        d->last_q = from - p;
    }
    if (whole + part == 0)
        return false;
    d->end = p;
    if (p < end && (*p | 32) == 'e') {
        e_neg = ++p < end && *p == '-';
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        from = p;
        /* Beyond 10^17 no text is long enough to bring it back. */
        for (; p < end && is_digit(*p); p++)
            e = e < 100000000000000000 ? e * 10 + (*p - '0') : e;
        if (p == from)
            return false;
        e = e_neg ? -e : e;
    }
    d->last_q += e;
    d->q += d->last_q;
    return p == end;
}

/* The bits of the double nearest to w * 10^q, ties to even; w is not 0. */
static uint64_t
nearest(uint64_t w, int64_t q)
{
    int lead, upper, e;
    uint64_t m;
    power g;
    u128 z;

    if (q < POW10_FIRST)
        return 0; /* < 10^19 * 10^-343, below half of the least double */
    if (q > 308)
        return (uint64_t)EXPONENT_INF << 52;
    /* w may be a multiple of 5^-q while that fits 64 bits: a reciprocal that
     * was cut would put the exact quotient just below itself. */
    g = power_of_ten(q, q >= -27 && q < 0);
    lead = __builtin_clzll(w);
    w <<= lead;
    z = (u128)w * g.hi;
    /* The low half of the power can only matter when a carry from it could
     * run up to the rounding bit, that is through a row of ones. */
    if (((uint64_t)(z >> 64) & 0x1FF) == 0x1FF)
        z += (u128)w * g.lo >> 64;
    upper = (int)(z >> 127);
    m = (uint64_t)(z >> (64 + 9 + upper)); /* 53 bits and one to round */
    /* 217706 / 2^16 is log2(10) from below: the binary exponent of 10^q. */
    e = (int)((q * 217706) >> 16) + 63 + upper - lead + 1023;
    if (e <= 0) { /* subnormal: fewer bits, no ties (they need small |q|) */
        if (e < -62)
            return 0;
        m >>= 1 - e;
        return (m + (m & 1)) >> 1; /* may carry into exponent 1: right */
    }
    /* Exactly halfway? Only possible where 5^q or 5^-q fits the mantissa. */
    if ((uint64_t)z <= 1 && q >= -4 && q <= 23 && (m & 3) == 1 &&
        (m << (9 + upper)) == (uint64_t)(z >> 64))
        m &= ~UINT64_C(1);
    m = (m + (m & 1)) >> 1;
    if (m == HIDDEN << 1) {
        m = HIDDEN;
        e++;
    }
    if (e >= EXPONENT_INF)
        return (uint64_t)EXPONENT_INF << 52;
    return (m & ~HIDDEN) | (uint64_t)e << 52;
}

/* An integer for comparing, little-endian; limbs from n up are 0. */
typedef struct big {
    int n;
    uint64_t limb[LIMBS];
} big;

/* b = b * by + add */
static void
big_mul(big *b, uint64_t by, uint64_t add)
{
    u128 carry = add;
    int i;

    for (i = 0; i < b->n; i++) {
        carry += (u128)b->limb[i] * by;
        b->limb[i] = (uint64_t)carry;
        carry >>= 64;
    }
    if (carry) {
        br_check(b->n < LIMBS && "numbers compared are below 2900 bits");
        b->limb[b->n++] = (uint64_t)carry;
    }
}

static void
big_mul_pow5(big *b, int n)
{
    for (; n >= 27; n -= 27)
        big_mul(b, UINT64_C(7450580596923828125), 0); /* 5^27 < 2^63 */
    for (; n > 0; n--)
        big_mul(b, 5, 0);
}

static void
big_shift(big *b, int n)
{
    int limbs = n / 64;

    big_mul(b, UINT64_C(1) << (n % 64), 0);
    br_check(b->n + limbs <= LIMBS && "numbers compared are below 2900 bits");
    memmove(b->limb + limbs, b->limb, (size_t)b->n * sizeof b->limb[0]);
    memset(b->limb, 0, (size_t)limbs * sizeof b->limb[0]);
    b->n += limbs;
}

static int
big_compare(const big *a, const big *b)
{
    int i;

    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (i = a->n - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* The significant digits as an integer. Returns the power of ten of the last
 * one. Digits past DIGITS_EXACT become one digit 1 if any of them is not 0. */
static int
big_from_decimal(big *b, const decimal *d)
{
    const char *p = d->first;
    int64_t q = d->last_q;
    bool more = false;
    int n = 0;

    for (; p < d->end; p++) {
        if (*p == '.' || (n == 0 && *p == '0'))
            continue;
        if (n < DIGITS_EXACT) {
            big_mul(b, 10, (uint64_t)(*p - '0'));
            n++;
        } else {
            more |= *p != '0';
            q++;
        }
    }
    if (more) {
        big_mul(b, 10, 1);
        q--;
    }
    br_assert(q > -1300 && q < 400 && "near a double");
    return (int)q;
}

/* Compares d with the point halfway between the double `bits` and the next. */
static int
against_half(const decimal *d, uint64_t bits)
{
    int e = (int)(bits >> 52), q;
    uint64_t m = bits & (HIDDEN - 1);
    big a = {0}, b = {0};

    if (e > 0)
        m |= HIDDEN;
    else
        e = 1;
    e -= BIAS + 1; /* half = (2m + 1) * 2^e */
    q = big_from_decimal(&a, d);
    big_mul(&b, 0, 2 * m + 1);
    if (q >= 0)
        big_mul_pow5(&a, q);
    else
        big_mul_pow5(&b, -q);
    if (q > e)
        big_shift(&a, q - e);
    else
        big_shift(&b, e - q);
    return big_compare(&a, &b);
}

static bool
named(br_text t, double *out)
{
    if (br_text_is(t, "NaN"))
        *out = (double)NAN;
    else if (br_text_is(t, "Infinity"))
        *out = (double)INFINITY;
    else if (br_text_is(t, "-Infinity"))
        *out = -(double)INFINITY;
    else
        return false;
    return true;
}

static double
f64_of_decimal(const decimal *d)
{
    uint64_t bits = d->w ? nearest(d->w, d->q) : 0;

    if (d->cut && nearest(d->w + 1, d->q) != bits) {
        int c = against_half(d, bits);

        bits += c > 0 || (c == 0 && (bits & 1));
    }
    return br_f64_of(bits | (uint64_t)d->neg << 63);
}

bool
br_json_to_f64(br_text t, double *out)
{
    decimal d;

    if (!scan_decimal(t, true, &d))
        return named(t, out);
    *out = f64_of_decimal(&d);
    return true;
}

static bool
is_word(br_text t, const char *word)
{
    return t.n == strlen(word) && strncasecmp(t.p, word, t.n) == 0;
}

bool
br_f64_read(br_text t, double *out)
{
    decimal d;
    size_t sign;

    if (scan_decimal(t, false, &d)) {
        *out = f64_of_decimal(&d);
        return true;
    }
    if (br_f64_read_hex(t, out))
        return true;
    sign = t.n > 0 && (t.p[0] == '-' || t.p[0] == '+');
    *out = sign && t.p[0] == '-' ? -1. : 1.;
    t = (br_text){t.p + sign, t.n - sign};
    if (is_word(t, "inf") || is_word(t, "infinity"))
        *out *= (double)INFINITY;
    else if (is_word(t, "nan"))
        *out = copysign((double)NAN, *out);
    else
        return false;
    return true;
}

/* ---- double to text --------------------------------------------------- */

/* floor(g * c / 2^128) for 10^k rounded up to 128 bits, with its last bit set
 * when anything was cut off ("round to odd"): it then compares with integers
 * as the exact product does. */
static uint64_t
mul_pow10(int k, uint64_t c)
{
    power g = power_of_ten(k, true);
    u128 z = (u128)g.hi * c + ((u128)g.lo * c >> 64);

    return (uint64_t)(z >> 64) | ((uint64_t)z > 1);
}

static int64_t
floor_shift(int64_t v, int n)
{
    return v >= 0 ? v >> n : ~(~v >> n);
}

/* The shortest decimal *digits * 10^(result) that reads back as the finite,
 * positive double `bits`; it may end in zeros.
 *
 * The doubles that round to v lie between the halfway points below and above:
 *
 *       half below        v        half above        in units of 10^k, times 4
 *   --------+---|---------*---------|---+--------    (lower, middle, upper)
 *               s                  s + 1
 *
 * k is such that one or more, but fewer than ten or so, multiples of 10^k lie
 * between; at most one is a multiple of 10^(k+1), and then that is the one. */
static int
shortest(uint64_t bits, uint64_t *digits)
{
    int e = (int)(bits >> 52), k, h;
    uint64_t c = bits & (HIDDEN - 1), lower, middle, upper, s, t;
    bool narrow = c == 0 && e > 1; /* the double below is half as far away */
    bool odd, low_in, high_in;

    if (e > 0)
        c |= HIDDEN;
    else
        e = 1;
    e -= BIAS;
    odd = c & 1; /* halfway points read back as the even neighbour */
    /* floor(log10(2^e)), or of 3/4 * 2^e where the interval is narrow. */
    k = (int)floor_shift((int64_t)e * 1262611 - (narrow ? 524031 : 0), 22);
    h = e + (int)floor_shift((int64_t)-k * 1741647, 19) + 1;
    lower = mul_pow10(-k, (4 * c - 2 + narrow) << h) + odd;
    middle = mul_pow10(-k, (4 * c) << h);
    upper = mul_pow10(-k, (4 * c + 2) << h) - odd;
    s = middle / 4;
    t = s / 10;
    low_in = t > 0 && lower <= 40 * t;
    high_in = t > 0 && 40 * t + 40 <= upper;
    if (low_in != high_in) {
        *digits = t + high_in;
        return k + 1;
    }
    low_in = lower <= 4 * s;
    high_in = 4 * s + 4 <= upper;
    if (low_in != high_in)
        *digits = s + high_in;
    else
        *digits = s + (middle > 4 * s + 2 || (middle == 4 * s + 2 && (s & 1)));
    return k;
}

/* Python's layout of n digits whose first stands for 10^e10. */
static char *
put_layout(char *p, const char *digits, int n, int e10)
{
    int i;

    if (e10 >= -4 && e10 < 0) {
        for (i = e10; i < 0; i++) {
            *p++ = '0';
            if (i == e10)
                *p++ = '.';
        }
        memcpy(p, digits, (size_t)n);
        return p + n;
    }
    if (e10 >= 0 && e10 < 16) {
        for (i = 0; i < BR_MAX(n, e10 + 2); i++) {
            if (i == e10 + 1)
                *p++ = '.';
            *p++ = i < n ? digits[i] : '0';
        }
        return p;
    }
    *p++ = digits[0];
    if (n > 1) {
        *p++ = '.';
        memcpy(p, digits + 1, (size_t)n - 1);
        p += n - 1;
    }
    *p++ = 'e';
    *p++ = e10 < 0 ? '-' : '+';
    e10 = e10 < 0 ? -e10 : e10;
    if (e10 >= 100)
        *p++ = (char)('0' + e10 / 100);
    *p++ = (char)('0' + e10 / 10 % 10);
    *p++ = (char)('0' + e10 % 10);
    return p;
}

size_t
br_f64_repr(char out[32], double v)
{
    uint64_t bits = br_f64_bits(v), s = 0;
    char digits[20], *d = digits + sizeof digits, *p = out;
    int k = 0, n;

    if (isnan(v)) {
        memcpy(out, "nan", 4);
        return 3;
    }
    if (bits >> 63)
        *p++ = '-';
    bits &= UINT64_MAX >> 1;
    if (isinf(v)) {
        memcpy(p, "inf", 4);
        return (size_t)(p + 3 - out);
    }
    if (bits != 0)
        k = shortest(bits, &s);
    while (s != 0 && s % 10 == 0) {
        s /= 10;
        k++;
    }
    do {
        *--d = (char)('0' + s % 10);
        s /= 10;
    } while (s);
    n = (int)(digits + sizeof digits - d);
    p = put_layout(p, d, n, n + k - 1);
    *p = 0;
    return (size_t)(p - out);
}
