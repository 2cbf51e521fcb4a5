/* imatrix.h - importances: how much the inputs of each column of a matrix
 * carried, measured on some text, so that a quantiser errs where it matters
 * least.
 *
 * A GGUF file with, for a tensor NAME of [columns, rows, matrices],
 *   NAME.in_sum2   F32 [columns, matrices]   sums of squares of inputs
 *   NAME.counts    F32 [1, matrices]         how many inputs there were
 * The importance of a column is their quotient; 1 where the count is 0.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_IMATRIX_H
#define BR_IMATRIX_H

#include "model/gguf.h"

typedef struct br_imatrix br_imatrix;

br_code br_imatrix_open(br_imatrix **out, const char *path,
                        br_status *st) BR_MUST_USE;
void br_imatrix_close(br_imatrix *m);

/* dim[0] numbers for each matrix of the tensor, in *out, to be freed by
 * br_free; NULL where the file has none for it. Fails when they do not fit the
 * tensor, are negative or not finite. */
br_code br_imatrix_get(const br_imatrix *m, const br_gguf_tensor *t,
                       float **out, br_status *st) BR_MUST_USE;

#endif
