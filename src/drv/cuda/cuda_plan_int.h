/* cuda_plan_int.h - what the files that make launches of nodes share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_PLAN_INT_H
#define BR_CUDA_PLAN_INT_H

#include "drv/cuda/cuda_nodes_int.h"

/* A node while its launches are made. */
typedef struct cun_planner {
    br_cun *x;
    const br_ir_node *n;
    uint32_t node;
    bool want;
    struct br_nd_rows in[BR_IR_MAX_BINDINGS], out[BR_IR_MAX_BINDINGS];
    struct br_nd_rows quantised; /* what xq holds */
    uint32_t quantised_block;
    uint32_t quantised_by; /* the node that made it */
    bool quantised_want;
    bool quantised_far;    /* in x->glu, not in x->xq */
    bool quantised_one;    /* by attention: without factors */
    bool quantised_picked; /* of rows that are all there, too */
    uint32_t paired;       /* a GLU whose output goes there */
    uint32_t table;        /* a matrix that EMBED has loaded */
    struct cun_angles {    /* of rows, that are there already */
        const float *w;
        struct br_nd_rows z;
        float scale;
    } angles;
    const int *listed;  /* experts' ids that are in lists */
    struct cun_glu_of { /* what node `by` reads in place of its input */
        const float *gate, *up;
        uint32_t act, by;
    } glu;
    uint32_t turned; /* nodes before this one are done by a joint launch */
    uint32_t done;   /* nodes before this one have their launches */
    const br_ir_node *sum; /* an ADD that the norm after it does */
    struct br_nd_rows sum_in[2], sum_out;
    br_status *st;
} cun_planner;

/* ---- cuda_plan.c ---- */
/* A launch over n numbers of a row, or of n blocks. */
br_code cun_add(cun_planner *p, enum cun_fn fn, enum cun_grid grid, uint32_t n,
                const struct br_nd_args *a) BR_MUST_USE;
/* y = m x for all rows of the launch. */
br_code cun_product(cun_planner *p, const struct br_nd_mat *m,
                    struct br_nd_rows x, struct br_nd_rows y) BR_MUST_USE;
struct br_nd_rows cun_rows_at(uint64_t p, uint32_t stride, uint32_t cols);
/* Binding i as rows that stand together. Matrices and states have none. */
br_code cun_view(cun_planner *p, int i) BR_MUST_USE;
/* The state that binding i is; pool NULL where it is left out. */
struct br_nd_cache cun_cache(const cun_planner *p, int i);
/* Rows of a do not reach into other rows of b, if they share memory. */
bool cun_apart(const br_cun *x, const struct br_nd_rows *a,
               const struct br_nd_rows *b);
/* The BR_ND_* of the node's function. */
uint32_t cun_act_of(const br_ir_node *n);

/* x becomes what products of tiles read, unless it is. */
br_code cun_as_tiles(cun_planner *p, struct br_nd_rows x) BR_MUST_USE;
/* Of a product of such, of n matrices on top of each other. */
struct br_nd_args cun_tile_args(const cun_planner *p, const struct br_nd_mat *m,
                                const uint32_t *end, struct br_nd_rows x,
                                const struct br_nd_rows *y, uint32_t n);
/* Can rows a.x, b become y, which the node writes as `out`, and f16? */
bool cun_can_row16(const cun_planner *p, const br_ir_bind *out,
                   const struct br_nd_args *a);
/* Is the node a product of tiles that reads binding b? */
bool cun_takes(const cun_planner *p, const br_ir_node *n, const br_ir_bind *b);

/* ---- cuda_experts.c ---- */
/* As cun_add, n_times rows for each of the step's. */
br_code cun_put_times(cun_planner *p, uint32_t n_times, enum cun_fn fn,
                      enum cun_grid grid, uint32_t n,
                      const struct br_nd_args *a) BR_MUST_USE;
/* y = rows e->first.. of each pair's matrix w, which are tiles, times x; y: a row a
 * pair. also: another matrix of the same form (or NULL), from its row `first` on. */
typedef struct cun_also {
    uint32_t w, first;
    struct br_nd_rows y;
} cun_also;
br_code cun_ask(cun_planner *p, uint32_t w, const struct br_nd_route *e,
                struct br_nd_rows x, struct br_nd_rows y,
                const cun_also *also) BR_MUST_USE;
/* A GLU of what experts said; left to those who read it, if they can. */
br_code cun_experts_glu(cun_planner *p) BR_MUST_USE;
br_code cun_expert_tiles(cun_planner *p, uint32_t w, uint32_t k) BR_MUST_USE;
/* y = w x of a matrix that all rows pass and that is asked like an expert. */
br_code cun_ask_one(cun_planner *p, uint32_t w, struct br_nd_rows x,
                    struct br_nd_rows y) BR_MUST_USE;

/* ---- cuda_plan_join.c ---- */
/* Two products w of one input and the GLU of them after this node, as one. */
br_code cun_glu(cun_planner *p, uint32_t *w, bool *done) BR_MUST_USE;
/* Heads' norms, rope and what is kept, from this node on, as one launch. */
br_code cun_turn(cun_planner *p) BR_MUST_USE;
/* The launch that makes what xq holds, if it has whole rows. */
cun_launch *cun_maker(br_cun *x);
/* Marks what few rows do in fewer launches: turns that attention does, pieces
 * of products that their reader adds. */
void cun_joins(br_cun *x);
/* Nobody reads the node's output from node `end` on. */
bool cun_gone_by(const br_cun *x, uint32_t node, uint32_t end);
/* Marks launches whose rows only products of tiles read, and those as f16. */
void cun_lean(br_cun *x);

/* ---- cuda_plan_mix.c: the launches of a node ---- */
br_code cun_gate_topk(cun_planner *p) BR_MUST_USE;
br_code cun_gate_up(cun_planner *p) BR_MUST_USE;
br_code cun_down_acc(cun_planner *p) BR_MUST_USE;
br_code cun_shared_expert(cun_planner *p) BR_MUST_USE;
br_code cun_conv(cun_planner *p) BR_MUST_USE;
br_code cun_delta(cun_planner *p) BR_MUST_USE;
br_code cun_scan(cun_planner *p) BR_MUST_USE;
br_code cun_gated_norm(cun_planner *p) BR_MUST_USE;

#endif
