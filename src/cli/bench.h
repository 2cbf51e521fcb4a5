/* bench.h - what the parts of brass bench share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CLI_BENCH_H
#define BR_CLI_BENCH_H

#include "run/oracle.h"

enum { BR_BENCH_CHECKED = 3 }; /* tokens compared with the reference tier */

/* A slot's token at a position: always the same. */
int32_t br_bench_token(const br_model *m, uint32_t slot, uint32_t position);
/* The oracle's logits beside the reference tier's, which slot 0 is used for.
 * logits: room for those of as many rows as are compared. */
br_code br_bench_check(br_oracle *o, const br_model *m, float *logits,
                       br_status *st) BR_MUST_USE;

#endif
