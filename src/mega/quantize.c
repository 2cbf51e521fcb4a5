/* quantize.c - group quantisation by rounding, no calibration.
 *
 * Divisions and roundings are those of the definition in quantize.h, in f32,
 * one at a time: the packed bytes are a function of the weights, not of the
 * machine.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/quantize.h"

#include <math.h>
#include <string.h>

int64_t
br_quantize_groups(const br_quantize *d)
{
    if (d->group <= 0 || d->cols < 0)
        return -1;
    return d->cols / d->group + (d->cols % d->group != 0);
}

int64_t
br_quantize_row_bytes(const br_quantize *d)
{
    if (d->cols < 0 || (d->bits != 4 && d->bits != 8))
        return -1;
    return d->bits == 8 ? d->cols : d->cols / 2 + d->cols % 2;
}

typedef struct group {
    float scale, zero;
    float lo, hi; /* of q */
} group;

/* n weights of a group of d->group. */
static group
measure(const br_quantize *d, const float *w, int64_t n)
{
    int top = 1 << (d->bits - (d->symmetric ? 1 : 0));
    float min = n < d->group ? 0 : INFINITY, max = n < d->group ? 0 : -INFINITY;
    group g = {.lo = 0, .hi = (float)(top - 1)};

    for (int64_t i = 0; i < n; i++) {
        min = w[i] < min ? w[i] : min;
        max = w[i] > max ? w[i] : max;
    }
    if (d->symmetric) {
        g.lo = d->bits == 8 ? -g.hi : -g.hi - 1;
        g.scale = (-min > max ? -min : max) / g.hi;
    } else {
        g.scale = (max - min) / g.hi;
    }
    g.scale = g.scale < 1e-8f ? 1e-8f : g.scale;
    if (!d->symmetric)
        g.zero = rintf(-min / g.scale);
    return g;
}

/* packed holds zeros. */
static void
quantise_row(const br_quantize *d, const float *w, unsigned char *packed,
             float *scales, float *zeros)
{
    int64_t groups = br_quantize_groups(d);

    for (int64_t j = 0; j < groups; j++) {
        int64_t at = j * d->group, n = BR_MIN(d->group, d->cols - at);
        group g = measure(d, w + at, n);

        scales[j] = g.scale;
        if (zeros)
            zeros[j] = g.zero;
        for (int64_t i = at; i < at + n; i++) {
            float q = rintf(w[i] / g.scale + g.zero);
            int v = (int)(q < g.lo ? g.lo : q > g.hi ? g.hi : q);

            if (d->bits == 8)
                packed[i] = (unsigned char)v;
            else
                packed[i / 2] |= (unsigned char)((v + (d->symmetric ? 8 : 0))
                                                 << (i & 1) * 4);
        }
    }
}

br_code
br_quantize_weights(const br_quantize *d, const float *w, unsigned char *packed,
                    float *scales, float *zeros, br_status *st)
{
    int64_t groups = br_quantize_groups(d), bytes = br_quantize_row_bytes(d);
    int64_t all, n;

    if (d->rows < 0 || groups < 0 || bytes < 0 ||
        __builtin_mul_overflow(d->rows, bytes, &all) ||
        __builtin_mul_overflow(d->rows, d->cols, &n))
        return br_fail(st, BR_E_FORMAT,
                       "cannot quantise [%lld, %lld] to int%d in groups of "
                       "%lld",
                       (long long)d->rows, (long long)d->cols, d->bits,
                       (long long)d->group);
    br_assert((d->symmetric || zeros) && "asymmetric needs zeros");
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(w[i]))
            return br_fail(st, BR_E_FORMAT, "weight [%lld, %lld] is %g",
                           (long long)(i / d->cols), (long long)(i % d->cols),
                           (double)w[i]);
    memset(packed, 0, (size_t)all);
    for (int64_t r = 0; r < d->rows; r++)
        quantise_row(d, w + r * d->cols, packed + r * bytes,
                     scales + r * groups,
                     d->symmetric ? NULL : zeros + r * groups);
    return BR_OK;
}
