/* encode_k.c - f32 to K-quants: Q4_K Q5_K Q6_K.
 *
 *   1. a scale (and minimum) for each sub-block, fitted by itself
 *   2. an F16 for all of them, and integers in its place
 *   3. both integers of a sub-block tried one up and one down as well, since
 *      what was best before rounding need not be after it
 *   4. every weight rounded with the scale a reader will compute
 *
 * Without importances large weights count more: by |x| + rms in Q4_K and
 * Q5_K, by x^2 in Q6_K. How wide to search is ggml's choice too (first and
 * step below), so that errors compare; with importances step 2 is a fit as
 * well, weighted by what each sub-block counts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/encode_fit.h"
#include "model/encode_int.h"
#include "model/encode_lanes.h"

#include <math.h>

enum { BLOCK = 256, SUBS = 8, SUB = 32 };

/* ---- Q4_K, Q5_K --------------------------------------------------------- */

typedef struct k_block {
    float scale[SUBS], min[SUBS]; /* fitted */
    float w[BLOCK];               /* how much an error in each counts */
    float weight[SUBS];           /* sums of it */
    int ls[SUBS], lm[SUBS];       /* 0..63 */
    int l[BLOCK];
} k_block;

static void
fit_subs(k_block *b, const float *x, const float *imatrix, int top)
{
    static const br_fit_affine_desc plain4 = {15, -1.0f, 0.1f, 20, false},
                                    plain5 = {31, -0.5f, 0.1f, 15, false};
    const br_fit_affine_desc fine = {top, -0.9f, 0.05f, 36, false};
    const br_fit_affine_desc *fit = imatrix     ? &fine
                                    : top == 15 ? &plain4
                                                : &plain5;
    float var = 2 * br_enc_mean_square(x, BLOCK);

    for (int j = 0; j < SUBS; j++) {
        const float *sub = x + j * SUB;
        float rms = sqrtf(br_enc_mean_square(sub, SUB)), *w = b->w + j * SUB;

        if (imatrix)
            br_enc_weigh(sub, imatrix + j * SUB, SUB, var, w);
        b->weight[j] = 0;
        for (int i = 0; i < SUB; i++) {
            if (!imatrix)
                w[i] = rms + fabsf(sub[i]);
            b->weight[j] += w[i];
        }
    }
    br_enc_lanes_here()->affine(fit, x, b->w, SUB, b->scale, b->min);
}

/* Eight numbers, not negative, to integers of 6 bits and one F16. */
static float
put_six(const float *v, const float *w, uint8_t *p, int *l)
{
    float hi = 0, d;

    for (int j = 0; j < SUBS; j++)
        hi = fmaxf(hi, v[j]);
    d = w ? br_fit_positive(v, w, SUBS, 63) : hi / 63.0f;
    for (int j = 0; j < SUBS; j++)
        l[j] = br_fit_divide(v[j], d, 0, 63);
    return br_put_half(p, d);
}

/* The reverse of br_k_scale. */
static void
put_scales(const k_block *b, uint8_t *q)
{
    memset(q, 0, 12);
    for (int j = 0; j < 4; j++) {
        q[j] = (uint8_t)(b->ls[j] | b->ls[j + 4] >> 4 << 6);
        q[j + 4] = (uint8_t)(b->lm[j] | b->lm[j + 4] >> 4 << 6);
        q[j + 8] = (uint8_t)((b->ls[j + 4] & 15) | (b->lm[j + 4] & 15) << 4);
    }
}

/* Writes the 16 bytes before the weights; leaves those in b->l. */
static void
encode_head(k_block *b, const float *x, const float *imatrix, uint8_t *p,
            int top)
{
    float d, dmin;

    fit_subs(b, x, imatrix, top);
    d = put_six(b->scale, imatrix ? b->weight : NULL, p, b->ls);
    dmin = put_six(b->min, imatrix ? b->weight : NULL, p + 2, b->lm);
    br_enc_lanes_here()->settle(
        &(br_fit_pairs){d, dmin, top, b->ls, b->lm, b->l}, x, b->w, SUB);
    put_scales(b, p + 4);
}

static void
put_nibbles(const int *l, uint8_t *q)
{
    for (int i = 0; i < BLOCK; i += 64)
        for (int k = 0; k < 32; k++)
            *q++ = (uint8_t)((l[i + k] & 15) | (l[i + k + 32] & 15) << 4);
}

void
br_enc_q4_k(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    k_block b;

    for (size_t i = 0; i < n; i += BLOCK, p += 144) {
        encode_head(&b, x + i, imatrix ? imatrix + i : NULL, p, 15);
        put_nibbles(b.l, p + 16);
    }
}

void
br_enc_q5_k(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    k_block b;

    for (size_t i = 0; i < n; i += BLOCK, p += 176) {
        encode_head(&b, x + i, imatrix ? imatrix + i : NULL, p, 31);
        memset(p + 16, 0, 32);
        for (int k = 0; k < BLOCK; k++)
            p[16 + k % 32] |= (uint8_t)(b.l[k] >> 4 << k / 32);
        put_nibbles(b.l, p + 48);
    }
}

/* ---- Q6_K --------------------------------------------------------------- */

enum { SUB6 = 16, SUBS6 = 16 };

/* Sixteen scales of either sign to bytes at p[192] and the F16 at p[208]; the
 * largest becomes -128. Returns that F16. */
static float
put_scales6(const float *scale, uint8_t *p)
{
    float s_max = 0, id;

    for (int j = 0; j < SUBS6; j++)
        if (fabsf(scale[j]) > fabsf(s_max))
            s_max = scale[j];
    id = s_max != 0 ? -128.0f / s_max : 0;
    for (int j = 0; j < SUBS6; j++)
        p[192 + j] = (uint8_t)br_fit_round(id * scale[j], -128, 127);
    return br_put_half(p + 208, s_max / -128.0f);
}

static void
encode_q6_k(const float *x, const float *imatrix, uint8_t *p)
{
    const br_enc_lanes *here = br_enc_lanes_here();
    float scale[SUBS6], w[SUB6], d;
    int r[BLOCK];

    for (int j = 0; j < SUBS6; j++) {
        const float *sub = x + j * SUB6;

        for (int i = 0; i < SUB6; i++)
            w[i] = imatrix ? imatrix[j * SUB6 + i] : sub[i] * sub[i];
        if (imatrix)
            br_enc_no_zero(w, SUB6);
        scale[j] = br_fit_signed(sub, w, SUB6, 32);
    }
    d = put_scales6(scale, p);
    memset(p, 0, 192);
    for (int j = 0; j < SUBS6; j++)
        here->divide(x + j * SUB6, SUB6, d * (float)(int8_t)p[192 + j], -32, 31,
                     r + j * SUB6);
    for (int i = 0; i < BLOCK; i++) {
        int l = r[i] + 32, half = i / 128, row = i / 32 % 4, col = i % 32;

        p[half * 64 + row % 2 * 32 + col] |= (uint8_t)((l & 15) << row / 2 * 4);
        p[128 + half * 32 + col] |= (uint8_t)(l >> 4 << 2 * row);
    }
}

void
br_enc_q6_k(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    for (size_t i = 0; i < n; i += BLOCK, p += 210)
        encode_q6_k(x + i, imatrix ? imatrix + i : NULL, p);
}
