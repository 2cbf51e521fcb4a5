/* decode_int.h - what the files of the decode megakernel's host share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_DECODE_INT_H
#define BR_CUDA_DECODE_INT_H

#include "drv/cuda/decode.h"

#include "../../../kernels/cuda/pick_table.h"

/* decode_told.c: a step, a draw, and a step with its draw, whose launches are the same
 * each time; p: NULL, no draw. */
br_code br_cu_told_open(br_cu_decode *d, br_status *st) BR_MUST_USE;
void br_cu_told_close(br_cu_decode *d);
br_code br_cu_told(br_cu_decode *d, bool step, const br_cu_pick *p,
                   br_status *st) BR_MUST_USE;

#endif
