/* encode_fit.h - scales for groups of weights, by weighted least squares.
 *
 * A group x[0..n) becomes integers l times a scale (plus a minimum). Given the
 * scale, the best integers are the nearest ones; given the integers, the best
 * scale solves a linear equation. So each fit rounds once for every scale of a
 * short list around the obvious one, solves, and keeps the pair with the least
 * error sum w (x - scale l - min)^2. What the caller stores is only the scale;
 * it rounds the weights anew when the scale has become an F16 or an integer.
 *
 * Cost: 5 flops a weight and candidate; 19 to 37 candidates, eight side by side
 * (encode_lanes.h).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_ENCODE_FIT_H
#define BR_ENCODE_FIT_H

#include "base/base.h"

/* Nearest integer, ties to even, kept in [lo, hi]; NaN gives lo. */
int br_fit_round(float v, int lo, int hi);
/* The same of x / d, 0 where d is 0. */
int br_fit_divide(float x, float d, int lo, int hi);

/* l in [-top, top - 1]; the scale may be negative. */
float br_fit_signed(const float *x, const float *w, int n, int top);

/* l in [0, top], x and scale not negative. */
float br_fit_positive(const float *x, const float *w, int n, int top);

/* x ~ scale l - min, with min >= 0: br_enc_lanes.affine. */
typedef struct br_fit_affine_desc {
    int top;           /* l in [0, top] */
    float first, step; /* candidates: (top + first + i step) / (max - min) */
    int steps;         /* i from 0 to steps */
    bool half;         /* scale and minimum will be stored as F16 */
} br_fit_affine_desc;

#endif
