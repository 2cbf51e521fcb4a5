/* encode_lanes.h - fits of eight scales at a time, by the processor's vectors.
 *
 * A fit tries some tens of scales, each of which adds over a group of weights in
 * order. Eight of them side by side, candidates of one group or the same
 * candidate of eight groups, add in that order still: the same bits with any
 * vectors, and with none.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_ENCODE_LANES_H
#define BR_ENCODE_LANES_H

#include "model/encode_fit.h"

enum { BR_ENC_LANES = 8, BR_ENC_GROUP = 32 }; /* a group's weights, at most */

/* Scales for which x_max becomes reach, give or take tenths up to `tenths`; l in
 * [lo, hi]. */
typedef struct br_fit_linear_desc {
    int lo, hi;
    float x_max, reach;
    int tenths;
} br_fit_linear_desc;

/* Of eight groups: ls, lm (0 to 63) for scale d ls and minimum dmin lm; l of
 * [0, top], n a group. */
typedef struct br_fit_pairs {
    float d, dmin;
    int top;
    int *ls, *lm, *l;
} br_fit_pairs;

typedef struct br_enc_lanes {
    /* The scale with the least error, of equals the plainest. */
    float (*linear)(const br_fit_linear_desc *d, const float *x, const float *w,
                    int n);
    /* Of eight groups, n weights each and right behind each other: scale and
     * minimum. */
    void (*affine)(const br_fit_affine_desc *d, const float *x, const float *w,
                   int n, float *scale, float *min);
    /* Of the same: ls, lm to the best of the nine pairs around them, l to the
     * integers. */
    void (*settle)(const br_fit_pairs *p, const float *x, const float *w,
                   int n);
    /* l[i] = br_fit_divide(x[i], d, lo, hi) */
    void (*divide)(const float *x, int n, float d, int lo, int hi, int *l);
} br_enc_lanes;

extern const br_enc_lanes br_enc_lanes_plain, br_enc_lanes_avx2,
    br_enc_lanes_avx512;

/* The widest that this processor has. */
const br_enc_lanes *br_enc_lanes_here(void);

#endif
