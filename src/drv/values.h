/* values.h - where the values of a graph live in a processor's memory.
 *
 *   value      memory
 *   t. step.   a buffer of max_rows rows, shared by values whose lives do not
 *              overlap
 *   model.     matrices stay in the file; vectors are dequantised once
 *   state.     pages and slot pieces: the plan
 *
 * What every tier that runs node by node on a processor begins with.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_VALUES_H
#define BR_VALUES_H

#include "drv/drv.h"
#include "model/model.h"

typedef struct br_value_mem {
    float *p;                /* temps; vectors of the model */
    const br_gguf_tensor *t; /* of the model; NULL: a constant of the graph */
    int64_t cols;
    int64_t first, last; /* nodes that write and read it; -1: none */
    bool made;           /* a node writes it */
    bool want;           /* has rows only for rows that want logits */
} br_value_mem;

enum { BR_VALUES_ASIDE = 4, BR_VALUES_REST = 16 };

typedef struct br_values_config {
    uint32_t max_rows;
    /* Most rows of a step that want logits: what comes of LM_HEAD then has
     * those rows only, and step.logits is the caller's memory. 0: like any
     * other value, max_rows of them. */
    uint32_t max_want;
    bool apart; /* nodes run in no fixed order: no two values share memory */
    bool tight; /* as little memory as can be; a GLU may write what it reads */
    /* [n_nodes]: for how many nodes, below BR_VALUES_REST, memory rests of values
     * that die with a node; NULL: for none. */
    const uint8_t *rest;
    /* rows of so many numbers elsewhere, which br_values never touches; NULL: the
     * arena's. */
    float *(*place)(void *ctx, size_t cols, size_t rows);
    /* Numbers of a row that a node wants beside its outputs while it runs, in
     * several pieces; NULL: none does. */
    void (*aside)(void *ctx, uint32_t node, size_t cols[BR_VALUES_ASIDE]);
    void *ctx;
} br_values_config;

typedef struct br_values {
    const br_model *m;
    const br_ir *g;
    br_state_plan plan;
    br_value_mem *at;                 /* [n_values of the graph] */
    float *(*aside)[BR_VALUES_ASIDE]; /* [n_nodes], where anybody asked */
    uint32_t logits;                  /* step.logits */
    uint32_t hidden; /* what LM_HEAD reads; there until the next step */
    int64_t widest;  /* columns of any row or matrix, at least 512 */
    int64_t apart;   /* columns of the widest binding that stands apart */
} br_values;

/* Somebody who looks at what nodes have just written: value is the whole first
 * output, rows of cols numbers, of which the node wrote its binding's columns.
 * Nodes without outputs are not shown. */
typedef struct br_watch {
    void (*seen)(void *ctx, uint32_t node, const float *value, int64_t cols,
                 uint32_t n_rows);
    void *ctx;
} br_watch;

/* All but the memory of t. and step. values, after a look whether the verified
 * graph is of this model. Model and graph outlive it; what
 * it takes is the arena's but for the plan. fini also after an error. */
br_code br_values_bind(br_values *v, br_arena *arena, const br_model *m,
                       const br_ir *g, br_status *st) BR_MUST_USE;
/* That memory, for values that have none by then. */
br_code br_values_place(br_values *v, br_arena *arena,
                        const br_values_config *c, br_status *st) BR_MUST_USE;
void br_values_fini(br_values *v);

/* What LM_HEAD read in the latest step, [its rows][n_embd]; NULL: a graph
 * without one. */
const float *br_values_hidden(const br_values *v);

/* Columns of a row that stand together in memory. */
bool br_bind_together(const br_ir_bind *b);
/* Is binding i a matrix, read row by row and never whole? */
bool br_bind_is_matrix(const br_ir_node *n, int i);

#endif
