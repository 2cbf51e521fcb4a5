/* encode_block.c - f32 to blocks of 32: Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 MXFP4.
 *
 * Without importances these are the plain rules that define "the" quantised
 * form of a model, so that everybody's file has the same bytes:
 *
 *   Q4_0, Q5_0   the weight that is largest in size becomes -8 (-16)
 *   Q4_1, Q5_1   the least becomes 0, the largest 15 (31)
 *   Q8_0         the largest in size becomes 127 or -127
 *   MXFP4        the scale is the power of two that brings it to 4..8
 *
 * and rounding is half up in f32, with the scale before it became an F16.
 * With importances scale and minimum are fitted (encode_fit.h).
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/encode_fit.h"
#include "model/encode_int.h"
#include "model/encode_lanes.h"

#include <math.h>

enum { N = 32 };

/* Towards zero, kept in [0, top]; NaN gives 0. */
static int
cut(float v, int top)
{
    if (!(v > 0))
        return 0;
    return v < (float)top ? (int)v : top;
}

static float
inverse(float d)
{
    return d != 0 ? 1.0f / d : 0;
}

/* 32 integers: nibbles to qs and, when high is not NULL, fifth bits to it. */
static void
put_bits(const int *l, uint8_t *high, uint8_t *qs)
{
    uint32_t h = 0;

    for (int i = 0; i < N / 2; i++)
        qs[i] = (uint8_t)((l[i] & 15) | (l[i + N / 2] & 15) << 4);
    if (!high)
        return;
    for (int i = 0; i < N; i++)
        h |= (uint32_t)(l[i] >> 4 & 1) << i;
    br_put_le16(high, h & 0xffff);
    br_put_le16(high + 2, h >> 16);
}

/* ---- one scale ---------------------------------------------------------- */

/* l in [0, 2 top), standing for l - top. */
static void
plain_signed(const float *x, uint8_t *p, int top, int *l)
{
    float x_max = 0, id;

    for (int i = 0; i < N; i++)
        if (fabsf(x[i]) > fabsf(x_max))
            x_max = x[i];
    br_put_half(p, x_max / (float)-top);
    id = inverse(x_max / (float)-top);
    for (int i = 0; i < N; i++)
        l[i] = cut(x[i] * id + ((float)top + 0.5f), 2 * top - 1);
}

static void
fitted_signed(const float *x, const float *w, uint8_t *p, int top, int *l)
{
    float d = br_put_half(p, br_fit_signed(x, w, N, top));

    for (int i = 0; i < N; i++)
        l[i] = br_fit_divide(x[i], d, -top, top - 1) + top;
}

static void
enc_signed(const float *x, uint8_t *p, size_t n, const float *imatrix, int top)
{
    float var = imatrix ? br_enc_mean_square(x, n) : 0, w[N];
    size_t high = top == 16 ? 4 : 0;
    int l[N];

    for (size_t i = 0; i < n; i += N, p += 2 + high + N / 2) {
        if (imatrix) {
            br_enc_weigh(x + i, imatrix + i, N, var, w);
            fitted_signed(x + i, w, p, top, l);
        } else {
            plain_signed(x + i, p, top, l);
        }
        put_bits(l, high ? p + 2 : NULL, p + 2 + high);
    }
}

void
br_enc_q4_0(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    enc_signed(x, p, n, imatrix, 8);
}

void
br_enc_q5_0(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    enc_signed(x, p, n, imatrix, 16);
}

/* ---- scale and minimum -------------------------------------------------- */

static void
plain_affine(const float *x, uint8_t *p, int top, int *l)
{
    float lo = x[0], hi = x[0], d, id;

    for (int i = 1; i < N; i++) {
        lo = x[i] < lo ? x[i] : lo;
        hi = x[i] > hi ? x[i] : hi;
    }
    d = (hi - lo) / (float)top;
    id = inverse(d);
    br_put_half(p, d);
    br_put_half(p + 2, lo);
    for (int i = 0; i < N; i++)
        l[i] = cut((x[i] - lo) * id + 0.5f, top);
}

static size_t
put_affine(const int *l, uint8_t *p, bool five)
{
    put_bits(l, five ? p + 4 : NULL, p + 4 + (five ? 4 : 0));
    return 4 + (five ? 4 : 0) + N / 2;
}

/* Eight blocks at a time; what is beyond the last is 0 and costs nothing else. */
static void
fitted_affine(const float *x, uint8_t *p, size_t n, const float *imatrix,
              int top)
{
    enum { MOST = BR_ENC_LANES * N };
    const br_fit_affine_desc fit = {top, -0.9f, 0.05f, 36, true};
    const float var = br_enc_mean_square(x, n);
    float here[MOST], w[MOST], scale[BR_ENC_LANES], min[BR_ENC_LANES];
    int l[N];

    for (size_t done = 0; done < n; done += MOST) {
        size_t count = BR_MIN(n - done, (size_t)MOST);

        memset(here, 0, sizeof here);
        memset(w, 0, sizeof w);
        memcpy(here, x + done, count * sizeof *here);
        for (size_t i = 0; i < count; i += N)
            br_enc_weigh(here + i, imatrix + done + i, N, var, w + i);
        br_enc_lanes_here()->affine(&fit, here, w, N, scale, min);
        for (size_t i = 0; i < count; i += N) {
            float d = br_put_half(p, scale[i / N]);
            float m = br_put_half(p + 2, -min[i / N]);

            for (int k = 0; k < N; k++)
                l[k] = br_fit_divide(here[i + (size_t)k] - m, d, 0, top);
            p += put_affine(l, p, top == 31);
        }
    }
}

static void
enc_affine(const float *x, uint8_t *p, size_t n, const float *imatrix, int top)
{
    int l[N];

    if (imatrix) {
        fitted_affine(x, p, n, imatrix, top);
        return;
    }
    for (size_t i = 0; i < n; i += N) {
        plain_affine(x + i, p, top, l);
        p += put_affine(l, p, top == 31);
    }
}

void
br_enc_q4_1(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    enc_affine(x, p, n, imatrix, 15);
}

void
br_enc_q5_1(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    enc_affine(x, p, n, imatrix, 31);
}

/* ---- the rest: importances change nothing ------------------------------- */

static float
largest(const float *x)
{
    float a = 0;

    for (int i = 0; i < N; i++)
        a = fmaxf(a, fabsf(x[i]));
    return a;
}

void
br_enc_q8_0(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    (void)imatrix;
    for (; n; n -= N, x += N, p += 34) {
        float d = largest(x) / 127.0f, id = inverse(d);

        br_put_half(p, d);
        for (int i = 0; i < N; i++) {
            float v = roundf(x[i] * id); /* half away from zero */

            p[2 + i] = (uint8_t)br_fit_round(v, -127, 127);
        }
    }
}

/* Index of the nearest level times d; the first of equals. */
static int
nearest_fp4(float x, float d)
{
    float least = INFINITY;
    int best = 0;

    for (int i = 0; i < 16; i++) {
        float e = fabsf((float)br_fp4_levels[i] * d - x);

        if (e < least) {
            least = e;
            best = i;
        }
    }
    return best;
}

void
br_enc_mxfp4(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    int l[N];

    (void)imatrix;
    for (; n; n -= N, x += N, p += 17) {
        float a = largest(x), d;
        /* log2 rounded to f32, as the rule has it: 2047.9999 counts as 2^11 */
        float e = a > 0 ? floorf((float)log2((double)a)) - 2 + 127 : 0;

        p[0] = (uint8_t)br_fit_round(e, 0, 254);
        d = ldexpf(1.0f, p[0] - 128);
        for (int i = 0; i < N; i++)
            l[i] = nearest_fp4(x[i], d);
        put_bits(l, NULL, p + 1);
    }
}
