/* x86_row.h - a row of x86.def, for encoder and printer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_X86_ROW_H
#define BR_X86_ROW_H

#include "cg/x86/x86_asm.h"

typedef struct br_x86_row {
    const char *text, *ops;
    uint8_t enc, pp, map, w, opcode; /* enc: 0 legacy, 1 VEX */
    int8_t ext;
} br_x86_row;
extern const br_x86_row br_x86_rows[BR_X_COUNT];

#endif
