/* ptx_join.h - device linking, on PTX.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_PTX_JOIN_H
#define BR_CUDA_PTX_JOIN_H

#include "base/base.h"

enum { BR_PTX_MAX_FILES = 4096 };

/* n files as one, appended to out. */
br_code br_ptx_join(const br_text *files, size_t n, br_str *out,
                    br_status *st) BR_MUST_USE;

#endif
