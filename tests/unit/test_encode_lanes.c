/* test_encode_lanes.c - eight fits at a time have the bits of one after the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"
#include "base/rng.h"
#include "model/encode_lanes.h"
#include "model/quant.h"
#include "t.h"

#include <math.h>

enum { N = BR_ENC_GROUP, ALL = BR_ENC_LANES * N };

static const br_enc_lanes *
lanes_of(int i, const char **name)
{
    static const char *const names[] = {"plain", "avx2", "avx512"};

    *name = names[i];
    if (i == 0)
        return &br_enc_lanes_plain;
#if defined __x86_64__ && !defined BR_ONE_COPY
    if (i == 1 && __builtin_cpu_supports("avx2"))
        return &br_enc_lanes_avx2;
    if (i == 2 && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return &br_enc_lanes_avx512;
#endif
    return NULL;
}

/* ---- one weight after the other ------------------------------------------ */

static double
one_gain(const br_fit_linear_desc *d, const float *x, const float *w, int n,
         float inverse, double *scale)
{
    double xl = 0, ll = 0;

    for (int i = 0; i < n; i++) {
        double l = br_fit_round(inverse * x[i], d->lo, d->hi);

        xl += (double)w[i] * (double)x[i] * l;
        ll += (double)w[i] * l * l;
    }
    *scale = ll > 0 ? xl / ll : 0;
    return ll > 0 ? xl * xl / ll : 0;
}

static float
one_linear(const br_fit_linear_desc *d, const float *x, const float *w, int n)
{
    double best = 0, most = -1, scale;

    for (int k = 0; k <= 2 * d->tenths; k++) {
        int step = k % 2 ? -(k + 1) / 2 : k / 2;
        float sign = d->reach < 0 ? -1 : 1;
        double g =
            one_gain(d, x, w, n,
                     (d->reach + sign * 0.1f * (float)step) / d->x_max, &scale);

        if (g > most) {
            most = g;
            best = scale;
        }
    }
    return (float)best;
}

typedef struct fit {
    double scale, min, error, sw, sx, sxx, sl, sll, sxl;
    int l[N];
} fit;

static void
one_round(fit *f, const float *x, const float *w, int n, float min,
          float inverse, int top)
{
    f->sw = f->sx = f->sxx = f->sl = f->sll = f->sxl = 0;
    for (int i = 0; i < n; i++) {
        double wi = (double)w[i], xi = (double)x[i];
        int v = f->l[i] = br_fit_round(inverse * (x[i] - min), 0, top);

        f->sw += wi;
        f->sx += wi * xi;
        f->sxx += wi * xi * xi;
        f->sl += wi * v;
        f->sll += wi * v * v;
        f->sxl += wi * v * xi;
    }
}

static void
one_error(fit *f, const float *x, const float *w, int n, bool half)
{
    if (half) {
        f->scale = (double)br_f16_to_f32(br_f32_to_f16((float)f->scale));
        f->min = (double)br_f16_to_f32(br_f32_to_f16((float)f->min));
    }
    f->error = 0;
    for (int i = 0; i < n; i++) {
        double d = f->scale * f->l[i] + f->min - (double)x[i];

        f->error += (double)w[i] * d * d;
    }
}

static float
one_affine(const br_fit_affine_desc *d, const float *x, const float *w, int n,
           float *min)
{
    float lo = 0, hi = x[0];
    fit best, f;

    for (int i = 0; i < n; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    *min = -lo;
    if (hi <= lo)
        return 0;
    best.scale = (double)((hi - lo) / (float)d->top);
    best.min = (double)lo;
    one_round(&best, x, w, n, lo, (float)d->top / (hi - lo), d->top);
    one_error(&best, x, w, n, d->half);
    for (int i = 0; i <= d->steps; i++) {
        double det;

        lo = (float)best.min;
        one_round(&f, x, w, n, lo,
                  ((float)d->top + d->first + d->step * (float)i) / (hi - lo),
                  d->top);
        det = f.sw * f.sll - f.sl * f.sl;
        if (!(det > 0))
            continue;
        f.scale = (f.sw * f.sxl - f.sx * f.sl) / det;
        f.min = (f.sll * f.sx - f.sl * f.sxl) / det;
        if (f.min > 0) {
            f.min = 0;
            f.scale = f.sxl / f.sll;
        }
        one_error(&f, x, w, n, d->half);
        if (f.error < best.error - 1e-9 * f.sxx)
            best = f;
    }
    *min = (float)-best.min;
    return (float)best.scale;
}

static void
one_settle(const br_fit_pairs *p, const float *x, const float *w, int n)
{
    int s0 = *p->ls, m0 = *p->lm, try[N];
    double least = (double)INFINITY;

    for (int k = 0; k < 9; k++) {
        int s = s0 + (k + 1) % 3 - 1, m = m0 + (k / 3 + 1) % 3 - 1;
        float scale = p->d * (float)s, min = p->dmin * (float)m;
        double sum = 0;

        if (s < 0 || s > 63 || m < 0 || m > 63)
            continue;
        for (int i = 0; i < n; i++) {
            double e;

            try[i] = br_fit_divide(x[i] + min, scale, 0, p->top);
            e = (double)(scale * (float)try[i] - min - x[i]);
            sum += (double)w[i] * e * e;
        }
        if (sum >= least)
            continue;
        least = sum;
        *p->ls = s;
        *p->lm = m;
        memcpy(p->l, try, (size_t)n * sizeof *p->l);
    }
}

/* ---- both ------------------------------------------------------------------ */

static float
number(br_rng *r)
{
    return (float)br_rng_below(r, 65536) / 32768.0f - 1;
}

/* Eight groups of one kind each: plain, none negative, all negative, equal, 0,
 * -0 among others, few values, from tiny to large. */
static void
fill(br_rng *r, float *x, float *w, int n)
{
    for (int i = 0; i < BR_ENC_LANES * n; i++) {
        float v = number(r);

        switch (i / n) {
        case 1: v = fabsf(v); break;
        case 2: v = -fabsf(v) - .01f; break;
        case 3: v = .375f; break;
        case 4: v = 0; break;
        case 5: v = i % 3 ? v : -0.0f; break;
        case 6: v = (float)(int)(v * 3); break;
        case 7: v = ldexpf(v, i % 40 - 20); break;
        default: break;
        }
        x[i] = v;
        w[i] = i % 7 ? fabsf(number(r)) : 0;
    }
}

TEST(candidates_side_by_side_find_the_same_scale)
{
    static const int lim[][2] = {{-32, 31}, {-8, 7}, {0, 63}};
    br_rng r;
    float x[ALL], w[ALL];
    const char *name;

    br_rng_init(&r, 7, 0);
    for (int c = 0; c < 3; c++) {
        const br_enc_lanes *here = lanes_of(c, &name);

        for (int round = 0; here && round < 60; round++) {
            const int n = round % 2 ? 16 : 32, k = round % 3;

            fill(&r, x, w, n);
            for (int g = 0; g < BR_ENC_LANES * n; g += n) {
                const br_fit_linear_desc d = {
                    lim[k][0], lim[k][1], round % 5 ? x[g] : .7f,
                    (float)(k == 2 ? 63 : lim[k][0]), k == 2 ? 4 : 9};
                const float is = here->linear(&d, x + g, w + g, n);
                const float was = one_linear(&d, x + g, w + g, n);

                ck_assert_msg(is == was || (isnan(is) && isnan(was)),
                              "%s: group %d: %a for %a", name, g / n,
                              (double)is, (double)was);
            }
        }
    }
}

TEST(groups_side_by_side_have_the_fits_of_each)
{
    static const br_fit_affine_desc kinds[] = {{15, -1.0f, 0.1f, 20, false},
                                               {31, -0.5f, 0.1f, 15, false},
                                               {15, -0.9f, 0.05f, 36, true}};
    br_rng r;
    float x[ALL], w[ALL], scale[BR_ENC_LANES], min[BR_ENC_LANES];
    const char *name;

    br_rng_init(&r, 8, 0);
    for (int c = 0; c < 3; c++) {
        const br_enc_lanes *here = lanes_of(c, &name);

        for (int round = 0; here && round < 60; round++) {
            const br_fit_affine_desc *d = &kinds[round % 3];

            fill(&r, x, w, N);
            here->affine(d, x, w, N, scale, min);
            for (int g = 0; g < BR_ENC_LANES; g++) {
                float m, s = one_affine(d, x + g * N, w + g * N, N, &m);

                ck_assert_msg(s == scale[g] && m == min[g],
                              "%s: group %d: %a, %a for %a, %a", name, g,
                              (double)scale[g], (double)min[g], (double)s,
                              (double)m);
            }
        }
    }
}

TEST(groups_side_by_side_settle_as_each_does)
{
    br_rng r;
    float x[ALL], w[ALL];
    int ls[BR_ENC_LANES], lm[BR_ENC_LANES], l[ALL], one[N];
    const char *name;

    br_rng_init(&r, 9, 0);
    for (int c = 0; c < 3; c++) {
        const br_enc_lanes *here = lanes_of(c, &name);

        for (int round = 0; here && round < 60; round++) {
            const float d = round % 9 ? .002f : 0, dmin = .01f;
            const int top = round % 2 ? 15 : 31;
            int s[BR_ENC_LANES], m[BR_ENC_LANES];

            fill(&r, x, w, N);
            for (int g = 0; g < BR_ENC_LANES; g++) {
                s[g] = ls[g] = (int)br_rng_below(&r, 64);
                m[g] = lm[g] = g ? (int)br_rng_below(&r, 64) : 63 * (round % 2);
            }
            here->settle(&(br_fit_pairs){d, dmin, top, ls, lm, l}, x, w, N);
            for (int g = 0; g < BR_ENC_LANES; g++) {
                one_settle(&(br_fit_pairs){d, dmin, top, s + g, m + g, one},
                           x + g * N, w + g * N, N);
                ck_assert_msg(s[g] == ls[g] && m[g] == lm[g], "%s: group %d",
                              name, g);
                ck_assert_mem_eq(one, l + g * N, sizeof one);
            }
        }
    }
}

TEST(weights_side_by_side_are_divided_as_each_is)
{
    br_rng r;
    const char *name;
    float x[ALL], w[ALL];
    int l[ALL];

    br_rng_init(&r, 10, 0);
    for (int c = 0; c < 3; c++) {
        const br_enc_lanes *here = lanes_of(c, &name);

        for (int round = 0; here && round < 20; round++) {
            const float d = round % 5 ? number(&r) / 30 : 0;

            fill(&r, x, w, N);
            x[1] = d * 2.5f; /* a tie */
            here->divide(x, ALL, d, -32, 31, l);
            for (int i = 0; i < ALL; i++)
                ck_assert_msg(l[i] == br_fit_divide(x[i], d, -32, 31),
                              "%s: weight %d", name, i);
        }
    }
}

/* Blocks behind the last eight, which have fewer beside them. */
TEST(the_last_blocks_of_a_row_are_encoded_as_the_first)
{
    enum { BLOCKS = 11 };
    br_rng r;
    float x[BLOCKS * N], imatrix[BLOCKS * N];
    uint8_t out[BLOCKS * 24];

    br_rng_init(&r, 11, 0);
    for (int i = 0; i < BLOCKS * N; i++) {
        x[i] = i < N ? number(&r) : x[i - N];
        imatrix[i] = i < N ? fabsf(number(&r)) : imatrix[i - N];
    }
    for (int k = 0; k < 2; k++) {
        const size_t size = k ? 24 : 20;

        ck_assert(
            br_quant(k ? BR_Q_Q5_1 : BR_Q_Q4_1, x, out, BLOCKS * N, imatrix));
        ck_assert(memcmp(out, "\0\0\0\0", 4) != 0);
        for (size_t b = 1; b < BLOCKS; b++)
            ck_assert_mem_eq(out, out + b * size, size);
    }
}
