/* x86_row.h - a row of x86.def, for encoder and printer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_X86_ROW_H
#define BR_X86_ROW_H

#include "cg/x86/x86_asm.h"

enum { BR_X_LEG, BR_X_VEX, BR_X_VX1, BR_X_EVX };

typedef struct br_x86_row {
    const char *text, *ops;
    uint8_t enc, pp, map, w, opcode; /* enc: as BR_X_LEG */
    int8_t ext;
} br_x86_row;
extern const br_x86_row br_x86_rows[BR_X_COUNT];

/* Of the operand at s in the ops column, the next one's. */
const char *br_x86_next(const char *s);
/* VEX.L, EVEX.L'L: the widest vector among the operands. */
unsigned br_x86_length(const br_x86_row *row);
/* What an EVEX displacement of 8 bits counts in: bytes of the memory operand. */
unsigned br_x86_unit(const char *op);

#endif
