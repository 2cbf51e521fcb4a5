/* ir_shape.h - widths and attributes, opcode by opcode; see ir_verify.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_IR_SHAPE_H
#define BR_IR_SHAPE_H

#include "ir/ir_int.h"

typedef struct br_ir_ctx { /* a node under examination */
    const br_ir *g;
    const br_ir_node *n;
    uint32_t index;
    br_status *st;
} br_ir_ctx;

br_code br_ir_bad(const br_ir_ctx *c, const char *role, const char *rule);
/* Bindings are in range and of their classes already. */
br_code br_ir_check_shape(const br_ir_ctx *c) BR_MUST_USE;

#endif
