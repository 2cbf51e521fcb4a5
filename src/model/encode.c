/* encode.c - f32 to any format that has an encoder: the way in, the floats.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/encode_int.h"

#include <math.h>

static void
enc_f32(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    (void)imatrix;
    for (; n; n--, p += 4) {
        uint32_t u;

        memcpy(&u, x++, sizeof u);
        br_put_le16(p, u & 0xffff);
        br_put_le16(p + 2, u >> 16);
    }
}

static void
enc_f16(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    (void)imatrix;
    for (; n; n--, p += 2)
        br_put_le16(p, br_f32_to_f16(*x++));
}

static void
enc_bf16(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    (void)imatrix;
    for (; n; n--, p += 2)
        br_put_le16(p, br_f32_to_bf16(*x++));
}

/* Blocks of 64, the largest number at the end of the codes' range. */
static void
enc_f8(const float *x, uint8_t *p, size_t n, float most,
       uint8_t (*code)(double))
{
    for (; n; n -= 64, x += 64, p += 68) {
        float top = 0;

        for (int i = 0; i < 64; i++)
            top = BR_MAX(top, fabsf(x[i]));
        float scale = isfinite(top) ? top / most : 1;
        if (scale < 0x1p-126f)
            scale = 0; /* numbers by such a one could be beyond the codes */
        enc_f32(&scale, p, 1, NULL);
        for (int i = 0; i < 64; i++)
            p[4 + i] = code(scale > 0 ? (double)x[i] / (double)scale : 0);
    }
}

static void
enc_f8_e4m3(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    (void)imatrix;
    enc_f8(x, p, n, 448, br_f64_to_f8e4m3);
}

static void
enc_f8_e5m2(const float *x, uint8_t *p, size_t n, const float *imatrix)
{
    (void)imatrix;
    enc_f8(x, p, n, 57344, br_f64_to_f8e5m2);
}

static const br_encoder encoders[BR_Q_LIMIT] = {
    [BR_Q_F32] = enc_f32,         [BR_Q_F16] = enc_f16,
    [BR_Q_BF16] = enc_bf16,       [BR_Q_Q4_0] = br_enc_q4_0,
    [BR_Q_Q4_1] = br_enc_q4_1,    [BR_Q_Q5_0] = br_enc_q5_0,
    [BR_Q_Q5_1] = br_enc_q5_1,    [BR_Q_Q8_0] = br_enc_q8_0,
    [BR_Q_Q4_K] = br_enc_q4_k,    [BR_Q_Q5_K] = br_enc_q5_k,
    [BR_Q_Q6_K] = br_enc_q6_k,    [BR_Q_MXFP4] = br_enc_mxfp4,
    [BR_Q_F8_E4M3] = enc_f8_e4m3, [BR_Q_F8_E5M2] = enc_f8_e5m2,
};

bool
br_quant(int type, const float *src, void *dst, size_t n, const float *imatrix)
{
    const br_qinfo *q = br_qinfo_of(type);

    if (!(q->flags & BR_QF_ENC))
        return false;
    br_check(encoders[type] && "a format marked ENC has an encoder");
    br_check(n % q->elems == 0 && "whole blocks");
    encoders[type](src, dst, n, imatrix);
    return true;
}

float
br_enc_mean_square(const float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return n ? (float)(sum / (double)n) : 0;
}

void
br_enc_no_zero(float *w, int n)
{
    float sum = 0;

    for (int i = 0; i < n; i++)
        sum += w[i];
    for (int i = 0; i < n && sum == 0; i++)
        w[i] = 1;
}

void
br_enc_weigh(const float *x, const float *imatrix, int n, float var, float *w)
{
    for (int i = 0; i < n; i++)
        w[i] = imatrix[i] * sqrtf(var + x[i] * x[i]);
    br_enc_no_zero(w, n);
}
