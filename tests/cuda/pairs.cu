/* pairs.cu - with --fp64=emulate doubles are pairs of floats: 2^-44 of what is
 * right, no number and no end where floats have them; and no doubles underneath.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <math.h>

__global__ void
all(int n, const double *x, const double *y, const double *z, double *out)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    out[i] = __dadd_rn(x[i], y[i]);
    out[n + i] = __dmul_rn(x[i], y[i]);
    out[2 * n + i] = fma(x[i], y[i], z[i]);
    out[3 * n + i] = x[i] / y[i];
    out[4 * n + i] = sqrt(fabs(x[i]));
    out[5 * n + i] = __dsub_rn(x[i], y[i]);
}

/* A number that a pair of floats can be. */
static double
pair()
{
    float h = ldexpf((float)rnd() + 0.5f, (int)(rnd() * 40) - 20);

    return ((double)h + (float)(h * (rnd() - 0.5f) * 5.9e-8f)) *
           (rnd() < 0.5 ? -1 : 1);
}

static double
right(int op, double x, double y, double z)
{
    switch (op) {
    case 0: return x + y;
    case 1: return x * y;
    case 2: return fma(x, y, z);
    case 3: return x / y;
    case 4: return sqrt(fabs(x));
    default: return x - y;
    }
}

int
main()
{
    const int n = 1 << 20, ops = 6;
    std::vector<double> x(n), y(n), z(n);

    for (int i = 0; i < n; i++) {
        x[i] = pair();
        y[i] = i % 8 ? pair() : -x[i] * (1 + (i % 64) * 1e-4f);
        y[i] = (float)y[i] + (double)(float)(y[i] - (float)y[i]);
        z[i] = i % 16 ? pair() : (double)(float)(-x[i] * y[i]);
    }
    x[1] = INFINITY, x[2] = NAN, y[3] = 0, x[4] = -0.0, y[4] = -0.0, x[5] = 0;
    Dev<double> dx(x), dy(y), dz(z), out(ops * n);
    all<<<n / 256, 256>>>(n, dx, dy, dz, out);
    std::vector<double> got = out.get();
    for (int op = 0; op < ops; op++) {
        double worst = 0;
        int other = 0;

        for (int i = 0; i < n; i++) {
            double want = right(op, x[i], y[i], z[i]), g = got[op * n + i];

            if (isnan(want) || isinf(want) || want == 0) {
                EXPECT(isnan(want) ? isnan(g) : g == want);
                EXPECT(isnan(want) || signbit(g) == signbit(want));
                continue;
            }
            /* Of a product that cancels, 68 bits. */
            worst = fmax(worst, (fabs(g - want) -
                                 (op == 2 ? 0x1p-68 * fabs(x[i] * y[i]) : 0)) /
                                    fabs(want));
            other += g != want;
        }
        if (worst > 0x1p-44)
            printf("operation %d: 2^%.2f\n", op, log2(worst));
        EXPECT(worst <= 0x1p-44);
        EXPECT(other > n / 8); /* a processor's doubles would be right */
    }
    return done();
}
