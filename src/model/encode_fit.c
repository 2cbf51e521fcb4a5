/* encode_fit.c - see encode_fit.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/encode_fit.h"

#include "base/half.h"

#include <math.h>

int
br_fit_round(float v, int lo, int hi)
{
    v = rintf(v);
    if (!(v > (float)lo))
        return lo;
    return v < (float)hi ? (int)v : hi;
}

int
br_fit_divide(float x, float d, int lo, int hi)
{
    return d != 0 ? br_fit_round(x / d, lo, hi) : 0;
}

/* ---- scale alone -------------------------------------------------------- */

/* What is left of the squared error when the scale is the best one is
 * sum w x^2 - gain, so the candidate with the most gain wins. */
typedef struct linear {
    double scale, gain;
} linear;

static linear
try_linear(const float *x, const float *w, int n, float inverse, const int *lim)
{
    double xl = 0, ll = 0;

    for (int i = 0; i < n; i++) {
        double l = br_fit_round(inverse * x[i], lim[0], lim[1]);

        xl += (double)w[i] * (double)x[i] * l;
        ll += (double)w[i] * l * l;
    }
    return ll > 0 ? (linear){xl / ll, xl * xl / ll} : (linear){0, 0};
}

/* reach: the integer that the largest weight x_max is mapped to, give or take
 * tenths up to `tenths`. */
static float
fit_linear(const float *x, const float *w, int n, const int *lim, float x_max,
           float reach, int tenths)
{
    linear best = {0, -1};

    for (int k = 0; k <= 2 * tenths; k++) {
        /* 0 first, then -1, 1, -2, 2 ...: of equals the plainest wins */
        int step = k % 2 ? -(k + 1) / 2 : k / 2;
        float sign = reach < 0 ? -1 : 1;
        float inverse = (reach + sign * 0.1f * (float)step) / x_max;
        linear f = try_linear(x, w, n, inverse, lim);

        if (f.gain > best.gain)
            best = f;
    }
    return (float)best.scale;
}

float
br_fit_signed(const float *x, const float *w, int n, int top)
{
    const int lim[2] = {-top, top - 1};
    float x_max = 0;

    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(x_max))
            x_max = x[i];
    if (x_max == 0)
        return 0;
    return fit_linear(x, w, n, lim, x_max, (float)-top, 9);
}

float
br_fit_positive(const float *x, const float *w, int n, int top)
{
    const int lim[2] = {0, top};
    float x_max = 0;

    for (int i = 0; i < n; i++)
        x_max = fmaxf(x_max, x[i]);
    if (x_max == 0)
        return 0;
    return fit_linear(x, w, n, lim, x_max, (float)top, 4);
}

/* ---- scale and minimum -------------------------------------------------- */

/* Errors that differ by less, in parts of sum w x^2, are equal, and of equals
 * the first wins: two values fit any pair of integers, and the plain pair
 * loses least when its scale is rounded. */
#define EQUAL 1e-9

typedef struct affine {
    double scale, min, error;
} affine;

/* Weighted sums over integers l that came from one candidate. */
typedef struct sums {
    double w, x, l, ll, xl, xx;
} sums;

static double
error_of(const affine *f, const float *x, const float *w, const uint8_t *l,
         int n)
{
    double e = 0;

    for (int i = 0; i < n; i++) {
        double d = f->scale * l[i] + f->min - (double)x[i];

        e += (double)w[i] * d * d;
    }
    return e;
}

/* The best scale and minimum for given integers; the minimum is not above 0.
 * False: all integers are equal. */
static bool
solve(const sums *s, affine *f)
{
    double det = s->w * s->ll - s->l * s->l;

    if (!(det > 0))
        return false;
    f->scale = (s->w * s->xl - s->x * s->l) / det;
    f->min = (s->ll * s->x - s->l * s->xl) / det;
    if (f->min > 0) {
        f->min = 0;
        f->scale = s->xl / s->ll;
    }
    return true;
}

/* What a reader will see. */
static void
store(affine *f)
{
    f->scale = (double)br_f16_to_f32(br_f32_to_f16((float)f->scale));
    f->min = (double)br_f16_to_f32(br_f32_to_f16((float)f->min));
}

static void
round_all(const float *x, const float *w, int n, float min, float inverse,
          int top, uint8_t *l, sums *s)
{
    *s = (sums){0};
    for (int i = 0; i < n; i++) {
        double wi = (double)w[i], xi = (double)x[i];
        int v = br_fit_round(inverse * (x[i] - min), 0, top);

        l[i] = (uint8_t)v;
        s->w += wi;
        s->x += wi * xi;
        s->l += wi * v;
        s->ll += wi * v * v;
        s->xl += wi * v * xi;
        s->xx += wi * xi * xi;
    }
}

float
br_fit_affine(const br_fit_affine_desc *d, const float *x, const float *w,
              int n, float *min)
{
    float lo = 0, hi = x[0];
    uint8_t l[32];
    affine best, f;
    sums s;

    br_assert(n <= (int)sizeof l);
    for (int i = 0; i < n; i++) {
        lo = fminf(lo, x[i]);
        hi = fmaxf(hi, x[i]);
    }
    *min = -lo;
    if (hi <= lo)
        return 0;
    best = (affine){(double)((hi - lo) / (float)d->top), (double)lo, 0};
    round_all(x, w, n, lo, (float)d->top / (hi - lo), d->top, l, &s);
    if (d->half)
        store(&best);
    best.error = error_of(&best, x, w, l, n);
    for (int i = 0; i <= d->steps; i++) {
        float reach = (float)d->top + d->first + d->step * (float)i;

        /* From the best minimum so far: the next ones gain from it. */
        lo = (float)best.min;
        round_all(x, w, n, lo, reach / (hi - lo), d->top, l, &s);
        if (!solve(&s, &f))
            continue;
        if (d->half)
            store(&f);
        f.error = error_of(&f, x, w, l, n);
        if (f.error < best.error - EQUAL * s.xx)
            best = f;
    }
    *min = (float)-best.min;
    return (float)best.scale;
}
