/* quantize.h - weights [rows, cols] to integers in groups along a row.
 *
 *   symmetric   scale = max(amax / qmax, 1e-8)     q = round(w / scale)
 *               int8: q in -127..127, signed bytes; int4: q in -8..7, q + 8
 *   asymmetric  scale = max((max - min) / levels, 1e-8)
 *               zero = round(-min / scale), q = round(w / scale + zero) in
 *               0..levels: unsigned bytes or nibbles
 *
 * All in f32, ties to even; the last group of a row is padded with zeros, which
 * count in min and max. int4 rows are ceil(cols / 2) bytes, even column in the
 * low nibble, an odd last one beside a zero nibble. The task program reads the
 * symmetric forms (GEMV_TILE, qdtype I8 and I4) with scales in F16.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_QUANTIZE_H
#define BR_MEGA_QUANTIZE_H

#include "base/base.h"

typedef struct br_quantize {
    int64_t rows, cols;
    int64_t group;
    int bits; /* 4 or 8 */
    bool symmetric;
} br_quantize;

/* What the caller has to provide; -1: not possible. */
int64_t br_quantize_groups(const br_quantize *d);    /* scales per row */
int64_t br_quantize_row_bytes(const br_quantize *d); /* packed */

/* packed: rows * row_bytes; scales and zeros: rows * groups (zeros NULL when
 * symmetric). FORMAT when a weight is not finite or the numbers are not
 * possible. */
br_code br_quantize_weights(const br_quantize *d, const float *w,
                            unsigned char *packed, float *scales, float *zeros,
                            br_status *st) BR_MUST_USE;

#endif
