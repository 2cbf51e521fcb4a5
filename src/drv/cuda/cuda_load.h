/* cuda_load.h - a model file on a CUDA device.
 *
 * What the decode megakernel takes: dense transformers with one kind of layer,
 * SiLU, rotated heads of 64 or 128, norms of heads or none; matrices of BF16
 * of Q8_0 or of Q4_K. Anything else is refused, naming what it is.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_LOAD_H
#define BR_CUDA_LOAD_H

#include "drv/cuda/decode.h"
#include "model/model.h"

/* UNSUPPORTED, FORMAT: this model cannot, and why. Name points into m. */
br_code br_cu_shape_of(br_cu_shape *s, const br_model *m,
                       br_status *st) BR_MUST_USE;
/* Into d, which was made for the shape of m. Progress may be NULL. */
br_code br_cu_load(br_cu_decode *d, const br_model *m,
                   void (*progress)(void *ctx, uint64_t done, uint64_t total),
                   void *ctx, br_status *st) BR_MUST_USE;

#endif
