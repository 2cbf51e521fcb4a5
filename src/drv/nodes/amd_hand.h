/* amd_hand.h - kernels that are written by hand for AMD processors, beside those of
 * kernels/cuda/nodes.cu, which do everything that these do not.
 *
 * The files of kernels/gcn are one text of assembly, for gfx11 and gfx12 (macros
 * and conditions say where they part); it is assembled for the processor when that
 * is opened. Its kernels have the arguments and bits of the portable ones.
 * What makes them worth having: docs/decisions/0041-kernels-by-hand.md.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_AMD_HAND_H
#define BR_AMD_HAND_H

#include "drv/nodes/node_dev.h"

typedef enum br_hand {
#define HAND_FILE(file)
#define HAND(kernel) BR_HAND_##kernel,
#include "drv/nodes/amd_hand.def"
    BR_HANDS
} br_hand;

/* Its symbol. */
const char *br_hand_name(br_hand hand);
/* Appends the assembly of all. */
void br_hand_text(br_str *out);
/* Which of them does this launch, and with how many groups; BR_HANDS: none. */
br_hand br_hand_takes(const br_nd_launch *l, uint32_t blocks[3]);

#endif
