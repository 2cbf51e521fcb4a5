/* encode_int.h - what the encoders share. See quant_int.h for the blocks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_ENCODE_INT_H
#define BR_ENCODE_INT_H

#include "model/quant_int.h"

/* One row: n weights, a multiple of the block; imatrix NULL or n numbers. */
typedef void (*br_encoder)(const float *x, uint8_t *p, size_t n,
                           const float *imatrix);

/* encode_block.c */
void br_enc_q4_0(const float *x, uint8_t *p, size_t n, const float *imatrix);
void br_enc_q4_1(const float *x, uint8_t *p, size_t n, const float *imatrix);
void br_enc_q5_0(const float *x, uint8_t *p, size_t n, const float *imatrix);
void br_enc_q5_1(const float *x, uint8_t *p, size_t n, const float *imatrix);
void br_enc_q8_0(const float *x, uint8_t *p, size_t n, const float *imatrix);
void br_enc_mxfp4(const float *x, uint8_t *p, size_t n, const float *imatrix);
/* encode_k.c */
void br_enc_q4_k(const float *x, uint8_t *p, size_t n, const float *imatrix);
void br_enc_q5_k(const float *x, uint8_t *p, size_t n, const float *imatrix);
void br_enc_q6_k(const float *x, uint8_t *p, size_t n, const float *imatrix);

/* How much an error in each of n weights counts: the importance times the size
 * that the weight has or could have, sqrt(var + x^2). */
void br_enc_weigh(const float *x, const float *imatrix, int n, float var,
                  float *w);
/* Makes all w 1 where all are 0: what nobody measured is still kept well. */
void br_enc_no_zero(float *w, int n);
/* sum x^2 / n */
float br_enc_mean_square(const float *x, size_t n);

static inline void
br_put_le16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

/* Stores a scale as F16; returns what a reader will see. */
static inline float
br_put_half(uint8_t *p, float v)
{
    uint16_t h = br_f32_to_f16(v);

    br_put_le16(p, h);
    return br_f16_to_f32(h);
}

#endif
