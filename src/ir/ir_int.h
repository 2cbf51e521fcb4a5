/* ir_int.h - the flat form's head and what passes of this folder share.
 *
 *   head | values | nodes | data | strings      each part 8-aligned
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_IR_INT_H
#define BR_IR_INT_H

#include "ir/ir.h"

#define BR_IR_MAGIC "BRIR"
enum { BR_IR_VERSION = 1 };

typedef struct br_ir_head {
    char magic[4];
    uint32_t version;
    uint32_t stage;
    uint32_t n_values, n_nodes, n_data, n_strings;
    uint32_t name; /* offset of the graph's name, NUL-terminated */
    uint32_t value_bytes, node_bytes; /* of one record */
    uint64_t values_at, nodes_at, data_at, strings_at, total;
} br_ir_head;

_Static_assert(sizeof(br_ir_value) == 56, "on disk");
_Static_assert(sizeof(br_ir_node) == 272, "on disk");
_Static_assert(sizeof(br_ir_head) == 80, "on disk");

/* Sets the views of g from a block whose head was checked. */
void br_ir_view(br_ir *g, const void *block);
/* The kind that a name says, or BR_IK_COUNT. */
br_ir_kind br_ir_kind_of(br_text name);

#endif
