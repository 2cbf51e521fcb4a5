/* brass_math_gamma.h - error functions, gamma and their kin; a part of brass_math.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_MATH_GAMMA_H
#define BRASS_MATH_GAMMA_H

BR_FN double
br_erfcx_pos(double x)
{
    const double c[] = {
        0x1.314198bb2c3c3p-2,   -0x1.b7626fa167205p-2,  0x1.7132be2ff5344p-3,
        -0x1.0b3680a302828p-4,  0x1.4db2773a01cddp-6,   -0x1.651c82be55e2dp-8,
        0x1.41dfb8c99a5e0p-10,  -0x1.d739ca0587292p-13, 0x1.0168762a79d1bp-15,
        -0x1.3717cf1d55eadp-19, -0x1.3a243d8117cbbp-23, 0x1.298c4d56d5f6ap-24,
        -0x1.d900f711ac005p-28, -0x1.790ca7579b51ap-31, 0x1.0e6935b7adc89p-32,
        -0x1.12f671afc2a62p-37, -0x1.9e6de759d5d8ep-38, 0x1.82b40b2d4d89fp-41,
        0x1.1a9ca9f8906fbp-43,  -0x1.fc977824b7cebp-46, -0x1.7727d2ca7360ap-49,
        0x1.276f5b71f4c41p-50,  0x1.082d2f3468ec4p-54,  -0x1.549b8d93c5d0ap-55,
        -0x1.d022e0b86242ap-60, 0x1.93ffa5942565ep-60};
    double t = (x - 4) / (x + 4), a = 0, b = 0, n;

    /* 1 / (x sqrt(pi)), less a series to below 2^-53: the polynomial below has terms of
     * 0.4, and what is left of them is 0.08 here, 0.02 at 25. */
    if (x > 7) {
        t = 0.5 / x / x;
        for (int k = 41; k > 0; k -= 2)
            a = t * k * (1 - a);
        return (1 - a) * (0x1.20dd750429b6dp-1 / x);
    }
    for (int k = (int)(sizeof c / sizeof *c) - 1; k > 0; k--) {
        n = BR_F(2 * t, a, c[k] - b);
        b = a;
        a = n;
    }
    return BR_F(t, a, c[0] - b);
}
/* e^(-x^2) with the bits that x^2 loses. */
BR_FN double
br_gauss(double x)
{
    double s = BR_M(x, x);

    return br_exp2part(-s, -BR_F(x, x, -s));
}
BR_FN double
br_erf_small(double x)
{
    double z = x * x, p = 0;

    for (int k = 22; k >= 0; k--)
        p = 1.0 / (2 * k + 1) - p * z / (k + 1);
    return 0x1.20dd750429b6dp+0 * x * p;
}
BR_FN double
br_erfc(double x)
{
    double a = __builtin_fabs(x), r;

    if (br_isnan(x))
        return x;
    if (a < 0.5)
        return 1 - br_erf_small(x);
    r = a > 28 ? 0 : br_gauss(a) * br_erfcx_pos(a);
    return x < 0 ? 2 - r : r;
}
BR_FN double
br_erf(double x)
{
    double a = __builtin_fabs(x);

    if (br_isnan(x))
        return x;
    if (a < 1)
        return br_erf_small(x);
    return __builtin_copysign(a > 6 ? 1 : 1 - br_gauss(a) * br_erfcx_pos(a), x);
}
BR_FN double
br_erfcx(double x)
{
    if (br_isnan(x) || x < -27)
        return br_isnan(x) ? x : BR_INF;
    if (x >= 0)
        return br_erfcx_pos(x);
    return 2 * br_exp2part(x * x, BR_F(x, x, -(x * x))) - br_erfcx_pos(-x);
}
BR_FN double br_erfinv(double x);
/* A first guess, then Halley's steps. */
BR_FN double
br_erfcinv(double c)
{
    double w, y, t, e;

    if (!(c >= 0 && c <= 2))
        return BR_NAN;
    if (c == 0 || c == 2)
        return c == 0 ? BR_INF : -BR_INF;
    if (c > 0.5 && c < 1.5)
        return br_erfinv(1 - c);
    if (c > 1)
        return -br_erfcinv(2 - c);
    w = br_log(c * (2 - c));
    t = 4.330746750799873 + w / 2;
    y = __nvvm_sqrt_rn_d(__nvvm_sqrt_rn_d(t * t - w / 0.147) - t);
    for (int k = 0; k < 3; k++) {
        e = (br_erfc(y) - c) / (-0x1.20dd750429b6dp+0 * br_gauss(y));
        y -= e / (1 + y * e);
    }
    return y;
}
BR_FN double
br_erfinv(double x)
{
    double a = __builtin_fabs(x), y, e;

    if (!(a <= 1))
        return BR_NAN;
    if (a > 0.5)
        return __builtin_copysign(br_erfcinv(1 - a), x);
    y = x * 0.886226925452758;
    for (int k = 0; k < 4; k++) {
        e = (br_erf_small(y) - x) / (0x1.20dd750429b6dp+0 * br_gauss(y));
        y -= e / (1 + y * e);
    }
    return y;
}
/* Stirling's series, x from 10 on: log(gamma) without its main part. */
BR_FN double
br_stirling(double x)
{
    double z = 1 / (x * x), p = -3617.0 / 122400;

    p = BR_F(p, z, 1.0 / 156);
    p = BR_F(p, z, -691.0 / 360360);
    p = BR_F(p, z, 1.0 / 1188);
    p = BR_F(p, z, -1.0 / 1680);
    p = BR_F(p, z, 1.0 / 1260);
    p = BR_F(p, z, -1.0 / 360);
    p = BR_F(p, z, 1.0 / 12);
    return p / x;
}
/* Of numbers above zero. */
BR_FN double
br_tgamma_up(double x)
{
    double down = 1, s, lost = 0;

    if (x == BR_INF)
        return x;
    if (br_is_int(x) && x < 24) { /* factorials are exact */
        for (s = 1; x > 2; x -= 1)
            s *= x - 1;
        return s;
    }
    for (; x < 10; x = BR_A(x, 1)) { /* no fma of x + 1: its error is known */
        down = BR_M(down, x);
        lost += BR_S(x, BR_S(BR_A(x, 1), 1));
    }
    if (x > 172)
        return BR_INF;
    s = br_pow(x, x / 2 - 0.25);
    s *= 1 + lost * br_log(x) / 2;
    return 2.5066282746310002 * s * br_exp2part(-x, br_stirling(x)) * s / down;
}
BR_FN double
br_tgamma(double x)
{
    double s, c;

    if (br_isnan(x) || x > 0)
        return br_isnan(x) ? x : br_tgamma_up(x);
    if (x == 0)
        return __builtin_copysign(BR_INF, x);
    if (br_is_int(x))
        return BR_NAN;
    br_sincospi(x, &s, &c);
    return x < -184 ? 0 : BR_PI / (s * br_tgamma_up(1 - x));
}
BR_FN double
br_lgamma_up(double x)
{
    double down = 1, s, h, l, p, d, t, lost = 0;

    if (x == 1 || x == 2)
        return 0;
    for (; x < 10; x = BR_A(x, 1)) { /* no fma of x + 1: its error is known */
        down = BR_M(down, x);
        lost += BR_S(x, BR_S(BR_A(x, 1), 1));
    }
    s = BR_S(x, 0.5);
    h = br_log2part(x, &l);
    p = BR_M(s, h);
    l = BR_F(s, h, -p) + s * l + br_stirling(x) + 0x1.d67f1c864beb5p-1 +
        lost * h;
    h = br_log2part(down, &d);
    t = BR_S(p, x);
    l += BR_S(p, BR_A(t, x)) - d;
    p = BR_S(t, h);
    return p + (l + BR_S(t, BR_A(p, h)));
}
BR_FN double
br_lgamma(double x)
{
    double s, c;

    if (br_isnan(x) || br_isinf(x))
        return br_isnan(x) ? x : BR_INF;
    if (x > 0x1p900) /* the series' first terms are infinite before it is */
        return x * (br_log(x) - 1);
    if (x > 0)
        return br_lgamma_up(x);
    if (br_is_int(x))
        return BR_INF;
    if (x > -0x1p-60)
        return -br_log(-x);
    br_sincospi(x, &s, &c);
    return br_log(BR_PI / __builtin_fabs(s)) - br_lgamma_up(1 - x);
}
BR_FN double
br_bessel_i(double x, double first, int order)
{
    double q = x * x / 4, term = first, sum = first;

    for (int k = 1;
         k < 800 && __builtin_fabs(term) > __builtin_fabs(sum) * 0x1p-60; k++) {
        term *= q / ((double)k * (k + order));
        sum += term;
    }
    return sum;
}
#endif
