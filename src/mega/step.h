/* step.h - tasks that compute the nodes of a transformer graph.
 *
 *   graph   node 17: MATMUL  t.x[0] model.attn.q_weight[0] - -> t.q[0]
 *   tasks   STEP_MATMUL node=17 n_off=0   N_tile=512     worker 0
 *           STEP_MATMUL node=17 n_off=512 N_tile=512     worker 1
 *
 * A program made of a model carries its graph (meta.extensions), and a task of
 * an opcode from 32 up is a tile of one node's columns, for all rows of the
 * step: the number of tasks does not depend on the batch. The node's record is
 * the task's CONST parameters, the step its one other binding.
 *
 * Buffer v of the program is value v of the graph. Its shape is that of one
 * row of the step (of one position, of one slot): a buffer of [4, 64] holds
 * 256 columns of each row, seen as a matrix so that columns that stand apart
 * are a rectangle of it. Rows are a full extent that nobody divides, so all
 * that is proved of one row holds for any number of them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_STEP_H
#define BR_MEGA_STEP_H

#include "ir/ir.h"
#include "mega/footprint.h"

enum { BR_STEP_MAX_ROWS = 1 << 20 };

static inline bool
br_mega_is_step(int op)
{
    return op >= BR_MOP_STEP;
}

/* What a node's tiles are cut from. False: no task computes it (BARRIER, and
 * opcodes of a tier's own engine). The node is verified. */
typedef struct br_step_cut {
    int64_t cols, grain;
} br_step_cut;
bool br_step_cut_of(const br_ir_node *n, br_step_cut *c);

/* The columns of binding b (inputs, then outputs) that a tile touches, counted
 * densely from 0; empty where the tile has none of them. */
typedef struct br_step_span {
    int64_t from, to;
} br_step_span;
br_step_span br_step_columns(const br_ir_node *n, int b, int64_t c0,
                             int64_t c1);

/* Columns of a row of the matrix that the binding wants its value to be: those
 * between runs that stand apart, or of one rank; 0: it does not mind. */
int64_t br_step_inner(const br_ir_node *n, int b);

bool br_step_is_side(const br_ir_node *n); /* columns of outputs side by side */
int br_step_parts(const br_ir_node *n);    /* letters of its row in step.def */

/* Bindings that are a task's operands, by their index: a state that is changed
 * in place is both. */
typedef struct br_step_operands {
    uint32_t n_in, n_out;
    uint8_t in[BR_MEGA_MAX_INPUTS], out[BR_MEGA_MAX_INPUTS];
} br_step_operands;
void br_step_operands_of(const br_ir_node *n, br_step_operands *o);

/* The node of a STEP_ task, or NULL: no graph, no such node, another opcode. */
const br_ir_node *br_step_node(const br_mega_prog *p, const br_mega_task *t);

/* An estimate for `rows` rows of a step; attention as if over 256 positions. */
typedef struct br_step_work {
    double weight, state, local; /* bytes */
    double flops;
} br_step_work;
br_step_work br_step_work_of(const br_ir *g, const br_ir_node *n, int64_t c0,
                             int64_t c1, int64_t rows);

/* The rule of STEP_ opcodes: optype.c calls it. */
bool br_step_rule(br_op_call *c);
/* Is buffer v what the graph says of value v? NULL, or how it differs. */
const char *br_step_mirrors(const br_ir *g, uint32_t v,
                            const br_mega_buffer *b);
int br_step_kind(const br_ir *g, uint32_t v); /* br_mega_kind */

/* Reads the graph out of meta.extensions into p->graph; nothing there: OK. */
br_code br_step_read_graph(br_mega_prog *p, br_status *st) BR_MUST_USE;

#endif
