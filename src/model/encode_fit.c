/* encode_fit.c - see encode_fit.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/encode_fit.h"

#include "model/encode_lanes.h"

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

const br_enc_lanes *
br_enc_lanes_here(void)
{
#if defined __x86_64__ && !defined BR_ONE_COPY
    if (__builtin_cpu_supports("avx512f") &&
        __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return &br_enc_lanes_avx512;
    if (__builtin_cpu_supports("avx2"))
        return &br_enc_lanes_avx2;
#endif
    return &br_enc_lanes_plain;
}

float
br_fit_signed(const float *x, const float *w, int n, int top)
{
    br_fit_linear_desc d = {-top, top - 1, 0, (float)-top, 9};
    float x_max = 0;

    for (int i = 0; i < n; i++) /* no jumps: their guesses would be wrong */
        x_max = fabsf(x[i]) > fabsf(x_max) ? x[i] : x_max;
    if (x_max == 0)
        return 0;
    d.x_max = x_max;
    return br_enc_lanes_here()->linear(&d, x, w, n);
}

float
br_fit_positive(const float *x, const float *w, int n, int top)
{
    br_fit_linear_desc d = {0, top, 0, (float)top, 4};
    float x_max = 0;

    for (int i = 0; i < n; i++)
        x_max = fmaxf(x_max, x[i]);
    if (x_max == 0)
        return 0;
    d.x_max = x_max;
    return br_enc_lanes_here()->linear(&d, x, w, n);
}
