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

#endif
