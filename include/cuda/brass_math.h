/* brass_math.h - the device's mathematics, in double precision.
 *
 * Where float has a function, it is the one here, rounded: half an ULP and a
 * hair. The series are Taylor's, on ranges so short that they end below 2^-60;
 * erfcx has a Chebyshev series in (x - 4) / (x + 4), fitted with 120 bits.
 * BR_A, BR_M and BR_F round once each, whatever fast-math flags say, so that
 * sums of two doubles (a hi and a lo part) stay what they are. Measured errors:
 * docs/cuda/math.md.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_MATH_H
#define BRASS_MATH_H

#define BR_A(a, b)    __nvvm_add_rn_d((a), (b))
#define BR_S(a, b)    __nvvm_add_rn_d((a), -(b))
#define BR_M(a, b)    __nvvm_mul_rn_d((a), (b))
#define BR_F(a, b, c) __nvvm_fma_rn_d((a), (b), (c))
#define BR_INF        __builtin_inf()
#define BR_NAN        __builtin_nan("")
#define BR_FN         static __device__ __inline__
#define BR_LN2_HI     0x1.62e42fee00000p-1 /* a multiple of 2^-32 */
#define BR_LN2_LO     0x1.a39ef35793c76p-33
#define BR_PI         0x1.921fb54442d18p+1

BR_FN unsigned long long
br_bits(double x)
{
    return __builtin_bit_cast(unsigned long long, x);
}
BR_FN double
br_from(unsigned long long b)
{
    return __builtin_bit_cast(double, b);
}
BR_FN bool
br_isnan(double x)
{
    return (br_bits(x) << 1) > 0xffe0000000000000ull;
}
BR_FN bool
br_isinf(double x)
{
    return (br_bits(x) << 1) == 0xffe0000000000000ull;
}

/* x * 2^n, rounded once. */
BR_FN double
br_ldexp(double x, int n)
{
    if (n > 1023) {
        x *= 0x1p1023;
        n -= 1023;
        if (n > 1023) {
            x *= 0x1p1023;
            n = n - 1023 > 1023 ? 1023 : n - 1023;
        }
    } else if (n < -1022) {
        x *= 0x1p-969;
        n += 969;
        if (n < -1022) {
            x *= 0x1p-969;
            n = n + 969 < -1022 ? -1022 : n + 969;
        }
    }
    return x * br_from((unsigned long long)(n + 1023) << 52);
}

/* ---- exponentials ------------------------------------------------------- */

/* e^r - 1 for |r| <= 0.35, to the last bit or so. */
BR_FN double
br_expm1_poly(double r)
{
    double p = 1.0 / 6227020800.0;

    p = BR_F(p, r, 1.0 / 479001600.0);
    p = BR_F(p, r, 1.0 / 39916800.0);
    p = BR_F(p, r, 1.0 / 3628800.0);
    p = BR_F(p, r, 1.0 / 362880.0);
    p = BR_F(p, r, 1.0 / 40320.0);
    p = BR_F(p, r, 1.0 / 5040.0);
    p = BR_F(p, r, 1.0 / 720.0);
    p = BR_F(p, r, 1.0 / 120.0);
    p = BR_F(p, r, 1.0 / 24.0);
    p = BR_F(p, r, 1.0 / 6.0);
    p = BR_F(p, r, 1.0 / 2.0);

    return BR_F(BR_M(p, r), r, r);
}

/* e^(x + tail), tail tiny. */
BR_FN double
br_exp2part(double x, double tail)
{
    double n, r, p;

    if (br_isnan(x))
        return x;
    if (x > 710)
        return BR_INF;
    if (x < -746)
        return 0;
    n = __builtin_rint(x * 0x1.71547652b82fep+0);
    r = BR_F(-n, BR_LN2_HI, x);
    tail = BR_F(-n, BR_LN2_LO, tail);
    p = br_expm1_poly(BR_A(r, tail));
    /* What the sum of r and tail lost. */
    p = BR_A(p, BR_A(BR_S(r, BR_A(r, tail)), tail));
    return br_ldexp(BR_A(1, p), (int)n);
}
BR_FN double
br_exp(double x)
{
    return br_exp2part(x, 0);
}
BR_FN double
br_exp2(double x)
{
    double n = __builtin_rint(x), r = x - n;

    if (br_isnan(x) || x >= 1024 || x < -1076)
        return br_isnan(x) ? x : x > 0 ? BR_INF : 0;
    return br_ldexp(1 + br_expm1_poly(BR_F(r, 0x1.62e42fefa39efp-1,
                                           BR_M(r, 0x1.abc9e3b39803fp-56))),
                    (int)n);
}
BR_FN double
br_exp10(double x)
{
    double h = BR_M(x, 0x1.26bb1bbb55516p+1);

    if (br_isnan(x) || x > 309 || x < -324)
        return br_isnan(x) ? x : x > 0 ? BR_INF : 0;
    return br_exp2part(
        h, BR_F(x, -0x1.f48ad494ea3e9p-53, BR_F(x, 0x1.26bb1bbb55516p+1, -h)));
}
BR_FN double
br_expm1(double x)
{
    double n, r, s;

    if (br_isnan(x) || x == 0)
        return x;
    if (x > 56)
        return br_exp(x);
    if (x < -56)
        return -1;
    n = __builtin_rint(x * 1.4426950408889634);
    r = BR_F(-n, BR_LN2_LO, BR_F(-n, BR_LN2_HI, x));
    s = br_ldexp(1, (int)n);
    return BR_F(s, br_expm1_poly(r), s - 1);
}
BR_FN double
br_sinh(double x)
{
    double a = __builtin_fabs(x), t;

    if (a > 40) {
        t = br_exp(a / 2);
        return __builtin_copysign(t / 2 * t, x);
    }
    t = br_expm1(a);
    return __builtin_copysign(a < 1e-8 ? a : (t + t / (t + 1)) / 2, x);
}
BR_FN double
br_cosh(double x)
{
    double a = __builtin_fabs(x), t;

    if (a > 40) {
        t = br_exp(a / 2);
        return t / 2 * t;
    }
    t = br_exp(a);
    return t / 2 + 0.5 / t;
}
BR_FN double
br_tanh(double x)
{
    double a = __builtin_fabs(x), t;

    if (br_isnan(x))
        return x;
    if (a > 20)
        return __builtin_copysign(1.0, x);
    t = br_expm1(2 * a);
    return __builtin_copysign(a < 1e-8 ? a : t / (t + 2), x);
}

/* ---- logarithms --------------------------------------------------------- */

/* x = 2^e m with m from sqrt(1/2) to sqrt(2); x is finite and above 0. */
BR_FN double
br_split(double x, int *e)
{
    unsigned long long b;

    *e = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        *e = -54;
    }
    b = br_bits(x) + 0x95f6200000000ull; /* carries from sqrt(2) on */
    *e += (int)(b >> 52) - 1023;
    return br_from((b & 0xfffffffffffffull) + 0x3fe6a09e00000000ull);
}
/* 2/3 z + 2/5 z^2 + ...: what log((1 + s) / (1 - s)) / s has over 2. */
BR_FN double
br_log_poly(double z)
{
    double p = 2.0 / 25;

    p = BR_F(p, z, 2.0 / 23);
    p = BR_F(p, z, 2.0 / 21);
    p = BR_F(p, z, 2.0 / 19);
    p = BR_F(p, z, 2.0 / 17);
    p = BR_F(p, z, 2.0 / 15);
    p = BR_F(p, z, 2.0 / 13);
    p = BR_F(p, z, 2.0 / 11);
    p = BR_F(p, z, 2.0 / 9);
    p = BR_F(p, z, 2.0 / 7);
    return BR_F(p, z, 2.0 / 5); /* from z^2 on */
}
/* log(x) as hi + lo, relative error 2^-64 or so; x finite, above 0. */
BR_FN double
br_log2part(double x, double *lo)
{
    int e;
    double m = br_split(x, &e), f = BR_S(m, 1), d = BR_A(2, f);
    double s = f / d, sl, z, zl, t, tl, u, h, l, a;

    sl = BR_F(-s, d, f);
    sl = BR_F(-s, BR_S(f, BR_S(d, 2)), sl) / d;
    z = BR_M(s, s);
    zl = BR_F(s, s, -z) + 2 * s * sl;
    t = BR_M(s, z); /* s^3, then two thirds of it */
    tl = BR_F(s, z, -t) + s * zl + sl * z;
    u = BR_M(t, 0x1.5555555555555p-1);
    tl = BR_F(t, 0x1.5555555555555p-1, -u) + t * 0x1.5555555555555p-55 +
         tl * (2.0 / 3);
    tl = BR_F(t * z, br_log_poly(z), tl);
    h = BR_A(2 * s, u);
    l = BR_A(BR_S(u, BR_S(h, 2 * s)), tl + 2 * sl);
    a = BR_A(e * BR_LN2_HI, h);
    l = BR_A(BR_A(BR_S(h, BR_S(a, e * BR_LN2_HI)), l), e * BR_LN2_LO);
    h = BR_A(a, l);
    *lo = BR_A(BR_S(a, h), l);
    return h;
}
BR_FN bool
br_log_special(double x, double *r)
{
    if (br_isnan(x) || x == BR_INF)
        *r = x;
    else if (x == 0)
        *r = -BR_INF;
    else if (x < 0)
        *r = BR_NAN;
    else
        return false;
    return true;
}
BR_FN double
br_log(double x)
{
    double r, f, s, h, p;
    int e;

    if (br_log_special(x, &r))
        return r;
    f = br_split(x, &e) - 1;
    s = f / (2 + f);
    h = f * f / 2;
    p = s * s;
    p = BR_F(p * p, br_log_poly(p), p * (2.0 / 3));
    return e * BR_LN2_HI - ((h - (s * (h + p) + e * BR_LN2_LO)) - f);
}
BR_FN double
br_log_scaled(double x, double hi, double lo)
{
    double l, h, r;

    if (br_log_special(x, &r))
        return r;
    h = br_log2part(x, &l);
    r = BR_M(h, hi);
    return BR_A(r, BR_A(BR_F(h, hi, -r), BR_F(h, lo, l * hi)));
}
BR_FN double
br_log2(double x)
{
    return br_log_scaled(x, 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56);
}
BR_FN double
br_log10(double x)
{
    return br_log_scaled(x, 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57);
}
BR_FN double
br_log1p(double x)
{
    double u = 1 + x;

    if (br_isnan(x) || x == BR_INF || x <= -1)
        return br_isnan(x) || x == BR_INF ? x : x < -1 ? BR_NAN : -BR_INF;
    if (__builtin_fabs(x) < 0x1p-54)
        return x;
    return br_log(u) + (x - (u - 1)) / u;
}
BR_FN double
br_asinh(double x)
{
    double a = __builtin_fabs(x), s = a * a;

    if (a > 1e8)
        return __builtin_copysign(br_log(a) + 0.6931471805599453, x);
    return __builtin_copysign(br_log1p(a + s / (1 + __nvvm_sqrt_rn_d(1 + s))),
                              x);
}
BR_FN double
br_acosh(double x)
{
    double t = x - 1;

    if (x > 1e8)
        return br_log(x) + 0.6931471805599453;
    return t < 0 ? BR_NAN : br_log1p(t + __nvvm_sqrt_rn_d(t * (t + 2)));
}
BR_FN double
br_atanh(double x)
{
    double a = __builtin_fabs(x);

    return a > 1 ? BR_NAN
                 : __builtin_copysign(br_log1p(2 * a / (1 - a)) / 2, x);
}

/* ---- powers ------------------------------------------------------------- */

BR_FN bool
br_is_int(double y)
{
    return __builtin_trunc(y) == y;
}
/* x^y where |x| is normal: by |x|, hi and lo. */
BR_FN double
br_pow(double x, double y)
{
    double a = __builtin_fabs(x), h, l, p, r;
    bool odd = br_is_int(y) && __builtin_fabs(y) < 0x1p53 && ((long long)y & 1);

    if (x == 1 || y == 0)
        return 1;
    if (br_isnan(x) || br_isnan(y))
        return x + y;
    if (br_isinf(y))
        return a == 1 ? 1 : (a > 1) == (y > 0) ? BR_INF : 0;
    if (a == 0 || br_isinf(a)) {
        r = (a == 0) == (y < 0) ? BR_INF : 0;
        return odd ? __builtin_copysign(r, x) : r;
    }
    if (x < 0 && !br_is_int(y))
        return BR_NAN;
    h = br_log2part(a, &l);
    p = BR_M(h, y);
    r = __builtin_fabs(p) > 800 ? br_exp(p)
                                : br_exp2part(p, BR_F(l, y, BR_F(h, y, -p)));
    return x < 0 && odd ? -r : r;
}
BR_FN double
br_powi(double x, int n)
{
    return br_pow(x, n);
}
BR_FN double
br_cbrt(double x)
{
    double a = __builtin_fabs(x), t, scale = 1;

    if (!(a > 0) || br_isinf(a))
        return x;
    if (a < 0x1p-900) { /* where t^3 would lose bits */
        a *= 0x1p600;
        scale = 0x1p-200;
    }
    t = br_exp(br_log(a) / 3);
    t = BR_F(-BR_F(t * t, t, -a) / (3 * t), 1 / t, t);
    return __builtin_copysign(t * scale, x);
}
/* sqrt(a^2 + b^2 + ...) of n numbers, without overflow on the way. */
BR_FN double
br_norm(const double *v, int n)
{
    double most = 0, sum = 0;
    int e;

    for (int k = 0; k < n; k++) {
        if (br_isinf(v[k]))
            return BR_INF;
        most = __builtin_fabs(v[k]) > most || br_isnan(v[k])
                   ? __builtin_fabs(v[k])
                   : most;
    }
    if (!(most > 0))
        return most;
    e = (int)(br_bits(most) >> 52) - 1023;
    for (int k = 0; k < n; k++) {
        double s = br_ldexp(v[k], -e);

        sum = BR_F(s, s, sum);
    }
    return br_ldexp(__nvvm_sqrt_rn_d(sum), e);
}
BR_FN double
br_hypot(double a, double b)
{
    double v[2] = {a, b};

    return br_norm(v, 2);
}

/* ---- circles ------------------------------------------------------------ */

/* x = quadrant * pi/2 + (r + lo), |r| <= pi/4, for |x| of 2^20 and more: the
 * fraction of x * 2/pi from 192 of its bits. */
BR_FN double
br_reduce_big(double x, double *lo, int *quadrant)
{
    const unsigned long long w[] = {
        0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull,
        0xfe5163abdebbc561ull, 0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull,
        0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull, 0xe99c7026b45f7e41ull,
        0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full,
        0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull,
        0x7527bac7ebe5f17bull, 0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull,
        0x56033046fc7b6babull, 0xf0cfbc209af4361dull};
    unsigned long long b = br_bits(x), m, v[3];
    int e = (int)(b >> 52 & 0x7ff) - 1075, at, shift;
    unsigned __int128 t;
    unsigned long long p[4];
    long long hi;
    double r, f, h, l;

    m = (b & 0xfffffffffffffull) | 0x10000000000000ull;
    /* Bits before this one give multiples of 4, which do not matter. */
    at = e < 2 ? 0 : e - 2;
    shift = at & 63;
    for (int k = 0; k < 3; k++) {
        unsigned long long x0 = w[at / 64 + k], x1 = w[at / 64 + k + 1];

        v[k] = shift ? x0 << shift | x1 >> (64 - shift) : x0;
    }
    t = (unsigned __int128)m * v[2];
    t = (unsigned __int128)m * v[1] + (unsigned long long)(t >> 64);
    p[1] = (unsigned long long)t;
    t = (unsigned __int128)m * v[0] + (unsigned long long)(t >> 64);
    p[2] = (unsigned long long)t;
    p[3] = (unsigned long long)(t >> 64);
    if (e < 2) { /* down to -32 */
        shift = 2 - e;
        p[1] = p[1] >> shift | p[2] << (64 - shift);
        p[2] = p[2] >> shift | p[3] << (64 - shift);
    }
    /* p[2], p[1]: a quarter of x * 2/pi, its fraction. To the nearest. */
    *quadrant = (int)((p[2] >> 62) + (p[2] >> 61 & 1)) & 3;
    hi = (long long)(p[2] << 2 | p[1] >> 62);
    h = (double)hi;
    l = (double)(hi - (long long)h) * 0x1p-64 + (double)(p[1] << 2) * 0x1p-128;
    h *= 0x1p-64;
    r = BR_A(h, l);
    l = BR_A(BR_S(h, r), l);
    f = BR_M(r, 0x1.921fb54442d18p+0);
    *lo = BR_F(r, 0x1.921fb54442d18p+0, -f) + r * 0x1.1a62633145c07p-54 +
          l * 0x1.921fb54442d18p+0;
    return f;
}
BR_FN double
br_reduce(double x, double *lo, int *quadrant)
{
    double n, t, p, r;

    if (x >= 0x1p20)
        return br_reduce_big(x, lo, quadrant);
    n = __builtin_rint(x * 0.63661977236758138);
    t = BR_F(-n, 0x1.921fb54442d18p+0, x);
    p = BR_M(n, 0x1.1a62633145c07p-54);
    r = BR_S(t, p);
    *lo = BR_A(BR_S(BR_S(t, r), p), -BR_F(n, 0x1.1a62633145c07p-54, -p) -
                                        n * -0x1.f1976b7ed8fbcp-110);
    *quadrant = (int)n & 3;
    return r;
}
/* sin and cos of r + lo, |r| <= pi/4. */
BR_FN double
br_sin_poly(double r, double lo)
{
    double z = r * r, p = 1.0 / 355687428096000;

    p = BR_F(p, z, -1.0 / 1307674368000);
    p = BR_F(p, z, 1.0 / 6227020800);
    p = BR_F(p, z, -1.0 / 39916800);
    p = BR_F(p, z, 1.0 / 362880);
    p = BR_F(p, z, -1.0 / 5040);
    p = BR_F(p, z, 1.0 / 120);
    p = BR_F(p, z, -1.0 / 6);
    return BR_A(r, BR_F(z * r, p, lo * (1 - z / 2)));
}
BR_FN double
br_cos_poly(double r, double lo)
{
    double z = r * r, h = z / 2, w = BR_S(1, h), p = -1.0 / 6402373705728000;

    p = BR_F(p, z, 1.0 / 20922789888000);
    p = BR_F(p, z, -1.0 / 87178291200);
    p = BR_F(p, z, 1.0 / 479001600);
    p = BR_F(p, z, -1.0 / 3628800);
    p = BR_F(p, z, 1.0 / 40320);
    p = BR_F(p, z, -1.0 / 720);
    p = BR_F(p, z, 1.0 / 24);
    return BR_A(w, BR_A(BR_S(BR_S(1, w), h), BR_F(z * z, p, -r * lo)));
}
BR_FN void
br_sincos(double x, double *s, double *c)
{
    double a = __builtin_fabs(x), lo, r, t;
    int q;

    if (!(a < BR_INF)) {
        *s = *c = BR_NAN;
        return;
    }
    r = br_reduce(a, &lo, &q);
    *s = br_sin_poly(r, lo);
    *c = br_cos_poly(r, lo);
    if (q & 1) {
        t = *s;
        *s = *c;
        *c = -t;
    }
    if (q & 2) {
        *s = -*s;
        *c = -*c;
    }
    if (x < 0 || (x == 0 && br_bits(x)))
        *s = -*s;
}
BR_FN double
br_sin(double x)
{
    double s, c;

    br_sincos(x, &s, &c);
    return s;
}
BR_FN double
br_cos(double x)
{
    double s, c;

    br_sincos(x, &s, &c);
    return c;
}
BR_FN double
br_tan(double x)
{
    double s, c;

    br_sincos(x, &s, &c);
    return s / c;
}
BR_FN void
br_sincospi(double x, double *s, double *c)
{
    double r = x - 2 * __builtin_rint(x / 2), n = __builtin_rint(2 * r), t, h;
    int q = (int)n & 3;

    if (br_isnan(x) || br_isinf(x)) {
        *s = *c = BR_NAN;
        return;
    }
    r = BR_F(n, -0.5, r);
    h = BR_M(r, BR_PI);
    t = BR_F(r, BR_PI, -h) + r * 0x1.1a62633145c07p-53;
    *s = br_sin_poly(h, t);
    *c = br_cos_poly(h, t);
    if (q & 1) {
        t = *s;
        *s = *c;
        *c = -t;
    }
    if (q & 2) {
        *s = -*s;
        *c = -*c;
    }
    if (*s == 0)
        *s = __builtin_copysign(0.0, x);
    if (*c == 0)
        *c = 0;
}
BR_FN double
br_sinpi(double x)
{
    double s, c;

    br_sincospi(x, &s, &c);
    return s;
}
BR_FN double
br_cospi(double x)
{
    double s, c;

    br_sincospi(x, &s, &c);
    return c;
}

/* atan of a / b, both at least 0, a <= b: from the nearest eighth. */
BR_FN double
br_atan_part(double a, double b)
{
    const double hi[] = {0x0.0p+0,
                         0x1.fd5ba9aac2f6ep-4,
                         0x1.f5b75f92c80ddp-3,
                         0x1.6f61941e4def1p-2,
                         0x1.dac670561bb4fp-2,
                         0x1.1e00babdefeb4p-1,
                         0x1.4978fa3269ee1p-1,
                         0x1.700a7c5784634p-1,
                         0x1.921fb54442d18p-1};
    const double lo[] = {0x0.0p+0,
                         -0x1.cd37686760c17p-59,
                         0x1.8ab6e3cf7afbdp-57,
                         -0x1.c63aae6f6e918p-56,
                         0x1.a2b7f222f65e2p-56,
                         -0x1.928df287a668fp-58,
                         0x1.2419a87f2a458p-56,
                         -0x1.8c34d25aadef6p-56,
                         0x1.1a62633145c07p-55};
    double q = a / b, c = __builtin_rint(q * 8), t, z, p;

    t = BR_F(-c, b / 8, a) / BR_F(c / 8, a, b);
    z = t * t;
    p = -1.0 / 15;
    p = BR_F(p, z, 1.0 / 13);
    p = BR_F(p, z, -1.0 / 11);
    p = BR_F(p, z, 1.0 / 9);
    p = BR_F(p, z, -1.0 / 7);
    p = BR_F(p, z, 1.0 / 5);
    p = BR_F(p, z, -1.0 / 3);
    return BR_A(hi[(int)c], BR_A(BR_F(t * z, p, lo[(int)c]), t));
}
BR_FN double
br_atan2(double y, double x)
{
    double a = __builtin_fabs(y), b = __builtin_fabs(x), r;

    if (br_isnan(x) || br_isnan(y))
        return x + y;
    if (br_isinf(a) && br_isinf(b))
        r = BR_PI / 4;
    else if (a <= b)
        r = a == 0 || br_isinf(b) ? 0 : br_atan_part(a, b);
    else
        r = br_isinf(a)
                ? BR_PI / 2
                : BR_A(BR_PI / 2, 0x1.1a62633145c07p-54 - br_atan_part(b, a));
    if (br_bits(x) >> 63)
        r = BR_A(BR_PI, 0x1.1a62633145c07p-53 - r);
    return __builtin_copysign(r, y);
}
BR_FN double
br_atan(double x)
{
    return br_atan2(x, 1);
}
BR_FN double
br_asin(double x)
{
    double a = __builtin_fabs(x);

    if (!(a <= 1))
        return BR_NAN;
    return br_atan2(x, __nvvm_sqrt_rn_d((1 - a) * (1 + a)));
}
BR_FN double
br_acos(double x)
{
    double a = __builtin_fabs(x);

    if (!(a <= 1))
        return BR_NAN;
    return br_atan2(__nvvm_sqrt_rn_d((1 - a) * (1 + a)), x);
}

#include "brass_math_gamma.h"

/* ---- remainders, parts -------------------------------------------------- */

/* Eleven bits of the quotient at a time. */
BR_FN double
br_fmod(double x, double y)
{
    double a = __builtin_fabs(x), b = __builtin_fabs(y);
    unsigned long long m, n;
    int e, f;

    if (!(a < BR_INF) || !(b > 0))
        return BR_NAN;
    if (br_isnan(y))
        return y;
    if (a < b)
        return x;
    e = (int)(br_bits(a) >> 52);
    f = (int)(br_bits(b) >> 52);
    m = br_bits(a) & 0xfffffffffffffull;
    n = br_bits(b) & 0xfffffffffffffull;
    m = e ? m | 1ull << 52 : m;
    n = f ? n | 1ull << 52 : n;
    e = e ? e : 1;
    f = f ? f : 1;
    m %= n;
    while (e > f) {
        int k = e - f < 11 ? e - f : 11;

        m = (m << k) % n;
        e -= k;
    }
    return __builtin_copysign(br_ldexp((double)m, f - 1075), x);
}
BR_FN double
br_remquo(double x, double y, int *quo)
{
    double b = __builtin_fabs(y), r = x;
    int q = 0;

    *quo = 0;
    if (!(__builtin_fabs(x) < BR_INF) || !(b > 0))
        return BR_NAN;
    if (br_isinf(b))
        return x;
    if (b <= 0x1p1019)
        r = br_fmod(x, 8 * b);
    r = __builtin_fabs(r);
    for (int k = 2; k >= 0; k--)
        if (b <= 0x1p1020 && r >= b * (1 << k)) {
            r -= b * (1 << k);
            q += 1 << k;
        }
    if (b > 0x1p1020 && r >= b) {
        r -= b;
        q++;
    }
    if (r > b - r || (r == b - r && (q & 1))) {
        r -= b;
        q++;
    }
    *quo = (x < 0) != (y < 0) ? -(q & 7) : q & 7;
    return __builtin_signbit(x) ? -r : r;
}
BR_FN double
br_frexp(double x, int *e)
{
    int k;

    *e = 0;
    if (!(__builtin_fabs(x) < BR_INF) || x == 0)
        return x;
    k = (int)(br_bits(x) >> 52 & 0x7ff);
    if (!k) {
        x *= 0x1p54;
        k = (int)(br_bits(x) >> 52 & 0x7ff) - 54;
    }
    *e = k - 1022;
    return br_from((br_bits(x) & 0x800fffffffffffffull) | 1022ull << 52);
}
BR_FN double
br_round(double x)
{
    double a = __builtin_fabs(x), t = __builtin_trunc(a);

    return __builtin_copysign(a - t >= 0.5 ? t + 1 : t, x);
}
BR_FN double
br_nextafter(double x, double y)
{
    unsigned long long b = br_bits(x);

    if (br_isnan(x) || br_isnan(y))
        return x + y;
    if (x == y)
        return y;
    if (x == 0)
        return __builtin_copysign(0x1p-1074, y);
    return br_from((x < y) == (x > 0) ? b + 1 : b - 1);
}
#endif
