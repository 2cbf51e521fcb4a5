/* drv.h - what every tier is handed: a step, and how states are laid out.
 *
 * A step is data: rows of (slot, position, token). Rows of one slot stand in
 * ascending order of position. Keys and values live in pages of 16 tokens; a
 * page holds those tokens for all layers of one group (full attention, each
 * window size), so that a group whose window is short keeps few of them.
 *
 *   page of group g   layer a: k [16][cols] v [16][cols] | layer b: ...
 *
 * States that do not grow (convolution, recurrence) are one piece per slot.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_H
#define BR_DRV_H

#include "ir/ir.h"

enum {
    BR_PAGE_TOKENS = 16,
    BR_MAX_KV_GROUPS = 8,
};

typedef struct br_step {
    uint32_t n_rows;
    const int32_t *slot, *position, *token; /* [n_rows] */
    const int32_t *want; /* [n_rows], 0: no logits; NULL: all rows */
    /* pages[slot * n_groups + group][position / 16]: index into the pool */
    const uint32_t *const *pages;
    bool hidden; /* what LM_HEAD reads is asked for, of all rows */
    /* Once true the tiers ref and cpu end the step at a node, CANCELLED: its rows'
     * pages are half written, their slots' states are anything. NULL: never. */
    const _Atomic bool *cancel;
} br_step;

typedef struct br_kv_group {
    int64_t window;      /* 0: all positions */
    uint64_t page_elems; /* f32 numbers of one page, all its layers */
    uint32_t n_values;
} br_kv_group;

/* Where a state value lives. */
typedef struct br_state_place {
    uint32_t group; /* pages of this group; BR_IR_NONE: the slot's own */
    uint64_t at;    /* first number, in the page or in the slot's piece */
} br_state_place;

typedef struct br_state_plan {
    br_kv_group group[BR_MAX_KV_GROUPS];
    uint32_t n_groups;
    uint64_t slot_elems;   /* f32 numbers of a slot's own piece */
    br_state_place *place; /* [n_values of the graph]; br_free */
} br_state_plan;

/* The same plan for every graph of a model. */
br_code br_state_plan_of(br_state_plan *p, const br_ir *g,
                         br_status *st) BR_MUST_USE;
void br_state_plan_fini(br_state_plan *p);
/* Graphs of one model lay its states out alike; values may be numbered
 * otherwise, so places are looked up in the executor's own plan. */
bool br_state_plan_same(const br_state_plan *a, const br_state_plan *b);
/* Tokens, slots and positions are in range, and every row has its pages. */
br_code br_step_check(const br_step *step, int64_t n_vocab, uint32_t n_slots,
                      uint32_t n_groups, br_status *st) BR_MUST_USE;

/* ---- executors: how a tier runs the programs of a model ------------------
 *
 * A program (mega/mega.h, made by br_mega_lower_graph) carries its graph; a
 * task is a tile of columns of one node, for all rows of the step:
 *
 *     node = &program->graph->nodes[task.node]     opcode, attributes, bindings
 *     [n_off, n_off + N_tile)                       its columns (mega/step.h)
 *
 * A tier has one function per opcode that takes (node, columns, step), so the
 * same function serves a graph run node by node (all columns), a program run
 * by queues, and packets. Tasks start when their waits are met and add 1 to
 * their counter; a worker takes its tasks in list order, or a tier takes any
 * order that the counters allow: the bits are the same.
 *
 * A tier's executor begins with a br_exec; its callers know nothing else. */
struct br_model;
struct br_mega_prog;

typedef struct br_exec_config {
    const struct br_mega_prog *const *programs; /* of one model, checked */
    uint32_t n_programs;
    uint32_t threads; /* 0: the tier's own choice */
    bool quantised;   /* activations are rounded where weights are integers */
} br_exec_config;

typedef struct br_exec_state br_exec_state; /* the tier's: pages and slots */

typedef struct br_exec {
    const struct br_exec_ops *ops;
} br_exec;

typedef struct br_exec_ops {
    const char *name; /* of the tier */
    /* Model and programs outlive the executor. Everything that a step needs is
     * allocated here: a step allocates nothing. */
    br_code (*open)(br_exec **out, const struct br_model *m,
                    const br_exec_config *c, br_status *st);
    void (*close)(br_exec *x);
    /* Runs a step by programs[i]; at most as many rows as that was made for.
     * logits: [n_rows][n_vocab], rows that want none are left as they are; or
     * NULL. Returns when they are there. */
    br_code (*step)(br_exec *x, uint32_t i, br_exec_state *s,
                    const br_step *step, float *logits, br_status *st);
    /* Zeroed; n_pages of each group of the plan of the model's graphs. */
    br_code (*state_new)(br_exec *x, br_exec_state **out, uint32_t n_slots,
                         const uint32_t *n_pages, br_status *st);
    void (*state_free)(br_exec *x, br_exec_state *s);
    /* A slot's own piece: before a new sequence, and as bytes to put back. */
    void (*slot_reset)(br_exec *x, br_exec_state *s, uint32_t slot);
    size_t (*slot_bytes)(const br_exec *x, const br_exec_state *s);
    void (*slot_save)(br_exec *x, const br_exec_state *s, uint32_t slot,
                      void *out);
    void (*slot_restore)(br_exec *x, br_exec_state *s, uint32_t slot,
                         const void *from);
} br_exec_ops;

#endif
