/* dtype.h - numbers as the buffers of a task program hold them.
 *
 * Every dtype is exact in a double, so a conversion is always get -> double ->
 * put, and put rounds once, to nearest, ties to even. Rows of I4 start on a
 * byte: two elements per byte, even column in the low nibble, value + 8.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_DTYPE_H
#define BR_MEGA_DTYPE_H

#include "base/half.h"
#include "mega/mega.h"

/* Only inside a FUSED recipe ("float64"); no buffer has it. */
enum { BR_DT_F64 = BR_MDT_COUNT, BR_DT_COUNT };

bool br_dt_is_float(int dt);
const char *br_dt_name(int dt); /* "F64" as well */
/* Bytes of a row of n elements. n is bounded by the caller's memory. */
int64_t br_dt_row_bytes(int dt, int64_t n);
/* Element i of a row. */
double br_dt_get(int dt, const void *row, int64_t i);
/* False, and nothing written, when an integer dtype does not hold the value:
 * NaN, or out of range after rounding. BOOL is v != 0. */
bool br_dt_put(int dt, void *row, int64_t i, double v) BR_MUST_USE;
/* n elements from a row's element i on, as f32 (I32 rounds to nearest even). */
void br_dt_get_f32(int dt, const void *row, int64_t i, int64_t n, float *out);

#endif
