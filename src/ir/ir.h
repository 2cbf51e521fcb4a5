/* ir.h - the transformer graph: WHAT is computed.
 *
 *   model --verbs--> builder --freeze--> graph --verify--> lower, ref tier
 *                                          |-- text (round-trips), flat file
 *                                          '-- DOT, SVG, JSON
 *
 *   x[T,64] --(MATMUL)--> y[T,256]     a node reads and writes bindings, at
 *                 ^                    most 8 together; a binding is columns
 *   model.attn.q_weight[3] [256,64]    of a value
 *
 * One graph per (model, stage). Shapes are static but for T, the rows of the
 * step, which is a parameter. A value is written by one node, or by several
 * that write different columns; state values are changed in place, and a
 * BARRIER stands between such a change and a read. A frozen graph is one block
 * of bytes: it is its own serialised form, mapped back from a file as it is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_IR_H
#define BR_IR_H

#include "base/base.h"

enum {
    BR_IR_MAX_BINDINGS = 8,
    BR_IR_MAX_RANK = 4,
    BR_IR_MAX_ATTRS = 12,
    BR_IR_MAX_NODES = 1 << 20,
    BR_IR_MAX_VALUES = 1 << 20,
    BR_IR_MAX_NAME_BYTES = 255,
};
#define BR_IR_NONE UINT32_MAX /* no value: an optional binding left out */

/* Dimensions that are not numbers. */
#define BR_DIM_T   (-1) /* rows of the step */
#define BR_DIM_POS (-2) /* positions of a slot: pages */
#define BR_DIM_S   (-3) /* slots */

typedef enum br_ir_op {
#define X(name, code, in, out, attrs, doc) BR_IR_##name = code,
#include "ir/ops.def"
#undef X
    BR_IR_OP_LIMIT = 64
} br_ir_op;

typedef enum br_ir_attr {
#define P(name, type) BR_IA_##name,
#include "ir/attr.def"
#undef P
    BR_IA_COUNT
} br_ir_attr;

typedef enum br_ir_kind { /* by the first word of the name */
                          BR_IK_MODEL,
                          BR_IK_STATE,
                          BR_IK_REQUEST,
                          BR_IK_STEP,
                          BR_IK_TEMP, /* "t." */
                          BR_IK_COUNT
} br_ir_kind;

typedef enum br_ir_stage {
    BR_IR_DECODE,
    BR_IR_PREFILL,
    BR_IR_STAGE_COUNT
} br_ir_stage;

/* ---- records: the same in memory and on disk ---------------------------- */

typedef struct br_ir_value {
    uint32_t name, name_n; /* in the strings */
    uint8_t kind;          /* br_ir_kind */
    uint8_t rank;
    uint16_t pad;
    int32_t dtype; /* br_qtype */
    int32_t layer; /* -1: none */
    uint32_t data; /* constants: offset of the f32s in the data, else NONE */
    int64_t dim[BR_IR_MAX_RANK]; /* outermost first; BR_DIM_* */
} br_ir_value;

/* Columns of a value: `count` runs of `width`, `stride` apart, from `off`. */
typedef struct br_ir_bind {
    uint32_t value; /* or BR_IR_NONE */
    uint32_t off, width, stride, count;
} br_ir_bind;

typedef struct br_ir_node {
    uint16_t op;
    uint8_t n_in, n_out;
    int32_t layer;
    uint32_t attrs; /* bit per br_ir_attr */
    uint32_t pad;
    br_ir_bind bind[BR_IR_MAX_BINDINGS]; /* inputs, then outputs */
    union {
        int64_t i;
        double f;
    } attr[BR_IR_MAX_ATTRS]; /* of the bits set in attrs, ascending */
} br_ir_node;

typedef struct br_ir { /* a frozen graph: views of one block */
    const br_ir_value *values;
    const br_ir_node *nodes;
    const char *strings;
    const float *data; /* constants */
    uint32_t n_values, n_nodes, n_strings, n_data;
    br_ir_stage stage;
    const char *name; /* in the strings */
    const void *block;
    size_t block_bytes;
    bool owned; /* br_ir_free frees the block */
} br_ir;

typedef struct br_ir_opinfo { /* a row of ops.def; name NULL: no such op */
    const char *name, *in, *out, *doc;
    uint32_t attrs;
} br_ir_opinfo;

const br_ir_opinfo *br_ir_opinfo_of(int op); /* never NULL */
int br_ir_op_find(br_text name);             /* -1: none */
const char *br_ir_attr_name(int a);
char br_ir_attr_type(int a); /* 'I' 'F' */
int br_ir_attr_find(br_text name);
/* How many bindings the op's row names, and how the i-th is named there.
 * false: no such binding. Inputs first. */
typedef struct br_ir_role {
    br_text name;
    bool optional, inplace;
} br_ir_role;
bool br_ir_role_at(int op, bool out, int i, br_ir_role *role);

br_text br_ir_value_name(const br_ir *g, uint32_t v);
int64_t br_ir_cols(const br_ir_value *v); /* product of all but the first */
bool br_ir_has(const br_ir_node *n, br_ir_attr a);
/* The attribute, or def where it is not there. */
int64_t br_ir_i(const br_ir_node *n, br_ir_attr a, int64_t def);
double br_ir_f(const br_ir_node *n, br_ir_attr a, double def);

/* ---- building (ir_build.c) ---------------------------------------------- */

typedef struct br_ir_builder br_ir_builder;

/* What to say about a value that is new. */
typedef struct br_ir_desc {
    const char *name; /* decides the kind: model. state. request. step. t. */
    int dtype;
    int rank;
    int64_t dim[BR_IR_MAX_RANK];
    int layer;
    const float *data; /* constants: dim[0] * ... of them */
} br_ir_desc;

br_ir_builder *br_ir_builder_new(const char *name, br_ir_stage stage);
void br_ir_builder_free(br_ir_builder *b);
/* The first thing that went wrong; every call after it does nothing. */
const br_status *br_ir_builder_status(const br_ir_builder *b);
/* Records a failure of the caller's own, unless there is one already. */
void br_ir_builder_fail(br_ir_builder *b, br_code code, const char *msg);

/* A new value. The same name twice, no name, a name of no kind: an error. */
uint32_t br_ir_add_value(br_ir_builder *b, const br_ir_desc *d);
/* The value of this name, or BR_IR_NONE. */
uint32_t br_ir_find_value(const br_ir_builder *b, const char *name);
const br_ir_value *br_ir_built_value(const br_ir_builder *b, uint32_t v);
br_ir_bind br_ir_all(const br_ir_builder *b, uint32_t v); /* every column */
br_ir_bind br_ir_cut(uint32_t v, int64_t off, int64_t width);
br_ir_bind br_ir_none(void);

typedef struct br_ir_node_desc {
    br_ir_op op;
    int layer;
    int n_in, n_out;
    br_ir_bind in[BR_IR_MAX_BINDINGS], out[BR_IR_MAX_BINDINGS];
} br_ir_node_desc;
/* Index of the node. Attributes go to the node added last. */
uint32_t br_ir_add_node(br_ir_builder *b, const br_ir_node_desc *d);
void br_ir_set_i(br_ir_builder *b, br_ir_attr a, int64_t v);
void br_ir_set_f(br_ir_builder *b, br_ir_attr a, float v);

/* Ends the building: verifies and packs. The builder takes nothing more. */
br_code br_ir_freeze(br_ir_builder *b, br_ir **out, br_status *st) BR_MUST_USE;
void br_ir_free(br_ir *g);

/* ---- verifying (ir_verify.c) -------------------------------------------- */

/* The rules, each with its number, are in docs/ir.md. The first that is broken
 * comes back as REJECTED with the node and the rule in the message. */
br_code br_ir_verify(const br_ir *g, br_status *st) BR_MUST_USE;

/* ---- text (ir_text.c), flat file (ir_flat.c), pictures (ir_draw.c) ------ */

void br_ir_print(const br_ir *g, br_str *out);
br_code br_ir_parse(br_ir **out, const char *text, size_t n,
                    br_status *st) BR_MUST_USE;
/* Opens bytes that br_ir.block was written to; they must outlive the graph and
 * be 8-aligned. Everything is checked, then the graph verified. */
br_code br_ir_map(br_ir **out, const void *p, size_t n,
                  br_status *st) BR_MUST_USE;
void br_ir_json(const br_ir *g, br_str *out);
void br_ir_dot(const br_ir *g, br_str *out);
void br_ir_svg(const br_ir *g, br_str *out);

/* ---- fusing (ir_fuse.c) ------------------------------------------------- */

/* The same graph with the opcodes RMS_NORM_FUSED_*, RESIDUAL_RMS_NORM and
 * MOE_DOWN_ACC's residual wherever they fit: bit for bit the same results. */
br_code br_ir_fuse(br_ir **out, const br_ir *g, br_status *st) BR_MUST_USE;

/* ---- from a model (arch_*.c) -------------------------------------------- */

struct br_model;
/* n_ctx: the context the graph will serve (long-context rope factors depend on
 * it). Errors name the tensor that is missing or of the wrong shape. */
br_code br_ir_of_model(br_ir **out, const struct br_model *m, br_ir_stage stage,
                       int64_t n_ctx, br_status *st) BR_MUST_USE;

#endif
