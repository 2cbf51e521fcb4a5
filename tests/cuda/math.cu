/* math.cu - the device's mathematics against the host's long double, in ULP.
 * With an argument it prints the table of docs/cuda/math.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <float.h>
#include <string.h>

/* name, lowest and highest argument, ULP allowed for double, for float */
#define ONE(X)                                                          \
    X(exp, -700, 700, 1, 1) X(exp2, -1000, 1000, 1, 1)                  \
    X(exp10, -300, 300, 1.5, 1) X(expm1, -5, 5, 1.5, 1)                 \
    X(log, 1e-3, 1e3, 1, 1) X(log2, 1e-3, 1e3, 1, 1)                    \
    X(log10, 1e-3, 1e3, 1, 1) X(log1p, -0.9, 9, 2, 1)                   \
    X(sin, -100, 100, 1, 1) X(cos, -1e15, 1e15, 1, 1)                   \
    X(tan, -10, 10, 2, 1) X(asin, -1, 1, 2, 1) X(acos, -1, 1, 2, 1)     \
    X(atan, -20, 20, 1.5, 1) X(sinh, -20, 20, 2.5, 1)                   \
    X(cosh, -20, 20, 2, 1) X(tanh, -3, 3, 2.5, 1)                       \
    X(asinh, -50, 50, 3, 1) X(acosh, 1, 50, 3, 1)                       \
    X(atanh, -0.99, 0.99, 3, 1) X(cbrt, -1e3, 1e3, 1, 1)                \
    X(sqrt, 0, 1e6, 0.5, 0.5) X(erf, -4, 4, 3, 1) X(erfc, -4, 10, 6, 1) \
    X(tgamma, 0.1, 30, 10, 1) X(lgamma, 3, 100, 6, 1)                   \
    X(floor, -99, 99, 0, 0) X(round, -99, 99, 0, 0) X(rint, -9, 9, 0, 0)
#define TWO(X)                                                           \
    X(pow, 0.01, 20, -30, 30, 1.5, 1) X(atan2, -5, 5, -5, 5, 2, 1)       \
    X(fmod, -1e6, 1e6, 0.1, 3, 0, 0) X(hypot, -9, 9, -9, 9, 1.5, 1)      \
    X(remainder, -1e3, 1e3, 0.1, 3, 0, 0) X(fdim, -3, 3, -3, 3, 0.5, 0.5)

enum { N = 256 };

template <class T> struct Row {
    T x[N], y[N], r[N];
};
enum Fn {
#define X(f, ...) F_##f,
    ONE(X) TWO(X) COUNT
#undef X
};

template <class T> __global__ void run(Row<T> *rows)
{
    Row<T> *r = rows + blockIdx.x;
    int i = threadIdx.x;

    switch (blockIdx.x) {
#define X(f, ...) \
    case F_##f: r->r[i] = f(r->x[i]); break;
        ONE(X)
#undef X
#define X(f, ...) \
    case F_##f: r->r[i] = f(r->x[i], r->y[i]); break;
        TWO(X)
#undef X
    }
}

/* A number of the range, small ones as often as large ones. */
static double pick(double lo, double hi)
{
    double u = rnd() + rnd() / 16777216.0;

    return rnd() < 0.2 ? lo + (hi - lo) * u * u * u * u : lo + (hi - lo) * u;
}

template <class T> static double ulps(T got, long double want)
{
    int e;
    int digits = sizeof(T) == 4 ? FLT_MANT_DIG : DBL_MANT_DIG;

    if (isnan((double)got) || isnan((double)want))
        return isnan((double)got) == isnan((double)want) ? 0 : 1e9;
    if ((long double)got == want || (T)want == got)
        return fabsl((long double)got - want) == 0 ? 0
               : (frexpl(want, &e),
                  (double)(fabsl((long double)got - want) /
                           ldexpl(1, e - digits)));
    frexpl(want, &e);
    return (double)(fabsl((long double)got - want) / ldexpl(1, e - digits));
}

template <class T> static void check(bool table, const char *type)
{
    std::vector<Row<T>> rows(COUNT);
    double worst[COUNT] = {0};
    bool single = sizeof(T) == 4;

    for (int k = 0; k < N; k++) {
#define X(f, lo, hi, ...) rows[F_##f].x[k] = (T)pick(lo, hi);
        ONE(X)
#undef X
#define X(f, lo, hi, lo2, hi2, ...)        \
    rows[F_##f].x[k] = (T)pick(lo, hi);    \
    rows[F_##f].y[k] = (T)pick(lo2, hi2);
        TWO(X)
#undef X
    }
    if (single)
        for (int k = 0; k < N; k++) {
            rows[F_exp].x[k] /= 9, rows[F_exp2].x[k] /= 9;
            rows[F_exp10].x[k] /= 9, rows[F_pow].y[k] /= 3;
            rows[F_erfc].x[k] *= 0.8;
        }
    Dev<Row<T>> d(rows);
    run<T><<<COUNT, N>>>(d);
    CHECK(cudaDeviceSynchronize());
    rows = d.get();
#define M(f, want)                                        \
    for (int k = 0; k < N; k++) {                         \
        const Row<T> &r = rows[F_##f];                    \
        double u = ulps<T>(r.r[k], want);                 \
                                                          \
        worst[F_##f] = u > worst[F_##f] ? u : worst[F_##f]; \
    }
#define R(f, limit, flimit)                                               \
    if (table)                                                            \
        printf("| %s | %s | %.2f |\n", #f, type, worst[F_##f]);           \
    if (!(worst[F_##f] <= (single ? flimit : limit))) {                   \
        failures++;                                                       \
        fprintf(stderr, "%s of %s: %g ULP\n", #f, type, worst[F_##f]);    \
    }
#define X(f, lo, hi, lim, fl) M(f, f##l(r.x[k])) R(f, lim, fl)
    ONE(X)
#undef X
#define X(f, lo, hi, lo2, hi2, lim, fl) M(f, f##l(r.x[k], r.y[k])) R(f, lim, fl)
    TWO(X)
#undef X
}

/* Values where the answer is exact, or special. */
__global__ void special(int *bad)
{
    double inf = INFINITY, q = NAN;

#define T(c) ((c) ? 0 : (printf("%s\n", #c), atomicAdd(bad, 1)))
    T(exp(-inf) == 0 && exp(inf) == inf && isnan(exp(q)) && exp(0.0) == 1);
    T(exp(-745.0) > 0 && exp(-746.5) == 0 && exp(709.5) < inf);
    T(log(0.0) == -inf && isnan(log(-1.0)) && log(1.0) == 0 && log(inf) == inf);
    T(fabs(log(5e-324) + 744.4400719213812) < 1e-12);
    T(pow(0.0, -1.0) == inf && pow(-2.0, 3.0) == -8 && isnan(pow(-2.0, 0.5)));
    T(pow(q, 0.0) == 1 && pow(1.0, q) == 1 && pow(-0.0, 3.0) == 0);
    T(pow(2.0, 10.0) == 1024 && pow(2.0, -1074.0) == 5e-324);
    T(fabs(sin(1e22) + 0.8522008497671888) < 1e-15);
    T(fabs(cos(1.7976931348623157e308) + 0.9999876894265599) < 1e-15);
    T(isnan(sin(inf)) && sin(-0.0) == 0 && signbit(sin(-0.0)));
    T(sinpi(1.0) == 0 && cospi(0.5) == 0 && sinpi(0.5) == 1);
    T(atan2(0.0, -1.0) > 3.14 && atan2(-0.0, -1.0) < -3.14);
    T(fmod(5.5, inf) == 5.5 && isnan(fmod(1.0, 0.0)) && fmod(-7.0, 3.0) == -1);
    T(erf(inf) == 1 && erfc(-inf) == 2 && tgamma(5.0) == 24 &&
      lgamma(1.0) == 0);
    T(fabs(erfinv(0.3) - 0.2724627147267543) < 1e-15);
    T(fabs(normcdfinv(0.975) - 1.959963984540054) < 1e-14);
    T(fabs(normcdf(1.0) - 0.8413447460685429) < 1e-15);
    T(ldexp(1.0, -1074) == 5e-324 && ldexp(1.0, 2000) == inf);
    T(nextafter(1.0, 2.0) == 1 + 2.220446049250313e-16);
    T(fmaxf(NAN, 1.f) == 1 && fminf(2.f, NAN) == 2);
    T(llround(-2.5) == -3 && lrint(2.5) == 2 && rint(-0.4) == 0);
    T(__fadd_rz(1.f, 0x1p-30f) == 1 && __fadd_ru(1.f, 0x1p-30f) > 1);
    T(__float2int_rd(-1.5f) == -2 && __float2int_ru(1.2f) == 2);
    T(__clz(0) == 32 && __popc(255) == 8 && __ffs(8) == 4 &&
      __brev(1) == 0x80000000u);
    T(__mulhi(1 << 30, 8) == 2 && __umul64hi(1ull << 63, 4) == 2);
    T(__byte_perm(0x33221100, 0x77665544, 0x7250) == 0x77225500);
    T(__vadd4(0x01ff0203, 0x01010101) == 0x02000304);
    T(__vabsdiffu4(0x01020304, 0x04030201) == 0x03010103);
    T(__vmaxs2(0xffff0001, 0x00000000) == 0x00000001);
    T(__dp4a(0x01020304, 0x01010101, 5) == 15);
    T(__hadd(7, 8) == 7 && __rhadd(7, 8) == 8 && __sad(3, -4, 1) == 8);
    int e, quo;
    double ip;
    T(frexp(12.0, &e) == 0.75 && e == 4);
    T(modf(-3.25, &ip) == -0.25 && ip == -3);
    T(remquo(10.0, 3.0, &quo) == 1 && (quo & 7) == 3);
    T(__saturatef(1.5f) == 1 && __double2hiint(1.0) == 0x3ff00000);
    T(__int_as_float(0x3f800000) == 1 && __hiloint2double(0x40000000, 0) == 2);
    T(isfinite(1.0f) && !isfinite(inf) && isinf(inf) && isnan(q));
    T(fabsf(__expf(1.f) - 2.7182817f) < 1e-5f &&
      fabsf(__sinf(1.f) - 0.841471f) < 1e-5f);
    T(rsqrtf(4.f) == 0.5f && rsqrt(4.0) == 0.5 && cbrt(27.0) == 3);
    T(std::max(1, 2) == 2 && std::abs(-2.5) == 2.5 && max(3u, 2u) == 3);
#undef T
}

int main(int argc, char **argv)
{
    bool table = argc > 1;
    int bad = 0;

    (void)argv;
    check<double>(table, "double");
    check<float>(table, "float");
    Dev<int> d(std::vector<int>(1, 0));
    special<<<1, 1>>>(d);
    CHECK(cudaDeviceSynchronize());
    bad = d.get()[0];
    EXPECT(bad == 0);
    return done();
}
