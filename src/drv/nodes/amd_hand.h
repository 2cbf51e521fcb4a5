/* amd_hand.h - kernels that are written by hand for AMD processors, beside those of
 * kernels/cuda/nodes.cu, which do everything that these do not.
 *
 * A file of assembly is one kernel of both generations' names and arguments, with
 * the same bits; it is assembled for the processor when that is opened. What makes
 * it worth having: docs/decisions/0041-kernels-by-hand.md.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_AMD_HAND_H
#define BR_AMD_HAND_H

#include "drv/nodes/node_dev.h"

enum {
#define HAND(fn, file) BR_HAND_##fn,
#include "drv/nodes/amd_hand.def"
#undef HAND
    BR_HANDS
};

typedef struct br_hand {
    br_nd_fn fn;
    br_text text; /* assembly */
} br_hand;

/* The i-th for processors of a generation, 11 or 12. */
br_hand br_hand_at(size_t i, unsigned gen);
/* Whether it does this launch, and with how many groups. */
bool br_hand_takes(const br_nd_launch *l, uint32_t blocks[2]);

#endif
