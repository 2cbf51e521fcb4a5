/* cuda_upload.h - bytes of a model file to a device, through two pinned buffers.
 *
 *   file's pages --threads--> buffer 0 | 1 --copy engine--> device
 *
 * A copy from pageable memory is staged by the driver on one thread (8 GB/s);
 * one from pinned memory is the copy engine's own work and runs while threads
 * fill the other buffer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_UPLOAD_H
#define BR_CUDA_UPLOAD_H

#include "drv/cuda/cuda_api.h"

typedef struct br_cuda_upload br_cuda_upload;

br_code br_cuda_upload_new(br_cuda_upload **out, br_cuda *cu,
                           br_status *st) BR_MUST_USE;
/* In order with launches in cu->stream; from may change once this returns. */
br_code br_cuda_upload_put(br_cuda_upload *u, uint64_t to, const void *from,
                           size_t bytes, br_status *st) BR_MUST_USE;
/* Waits for what is under way. NULL is fine. */
void br_cuda_upload_free(br_cuda_upload *u);

#endif
