/* lower_internal.h - state of one lowering, shared by lower*.c.
 *
 *   lower.c         entry, inputs and outputs, meta, what comes after tasks
 *   lower_emit.c    buffers, counters, tasks; redirects into FUSED recipes
 *   lower_node.c    one function per operation
 *   lower_linear.c  tiles of linears
 *   lower_fuse.c    fusion_grouping: finds groups, decides fused or resident
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_LOWER_INTERNAL_H
#define BR_MEGA_LOWER_INTERNAL_H

#include "mega/builder.h"
#include "mega/config.h"
#include "mega/lower.h"
#include "mega/net_internal.h"

/* What the lowering knows of a tensor of the net. */
typedef struct br_low_tensor {
    int64_t buffer;  /* -1: not made yet; <= -2: scratch of a recipe */
    int64_t scales;  /* of a quantised weight */
    int64_t counter; /* -1: nothing to wait for */
    int64_t threshold;
    int32_t consumer; /* the only node that reads it, else BR_NET_NONE */
    int64_t columns;  /* that all linears which read it make */
} br_low_tensor;

/* A match of fusion_grouping: nodes first..first+n-1. */
typedef struct br_low_group {
    int32_t first, n;
    bool fused;     /* one FUSED task, else resident */
    int32_t unit;   /* resident: unit of slot 0 */
    int32_t result; /* fused: the tensor that leaves it */
} br_low_group;

/* The FUSED task being put together; open while its nodes are lowered. */
typedef struct br_low_recipe {
    bool open;
    int32_t result; /* net tensor written by the final step */
    int64_t out;    /* its buffer */
    int64_t in[BR_MEGA_MAX_INPUTS];
    uint32_t n_in;
    br_mega_wait waits[BR_MEGA_MAX_WAITS];
    uint32_t n_waits;
    br_json *steps;
    int64_t n_scratch;
    BR_VEC(br_mega_buffer) scratch; /* shapes and dtypes; arena's shapes */
    int64_t est_bytes, est_flops;
} br_low_recipe;

typedef struct br_lower {
    const br_mega_net *net;
    const br_mega_target *target;
    br_mega_config cfg;
    bool amk;
    int64_t workers; /* of the target, or what stands for it */
    br_status *st;
    br_mega_builder b;
    br_arena scratch; /* freed at the end of the lowering */
    br_low_tensor *tensors;
    int32_t *group_of; /* node -> group, or BR_NET_NONE */
    BR_VEC(br_low_group) groups;
    BR_VEC(int32_t) units; /* task -> unit (tasks on one worker), or NONE */
    int32_t n_units;
    int32_t unit;           /* of slot 0 of the node being lowered, or NONE */
    int32_t slot;           /* next slot of that node */
    int32_t n_slots;        /* most slots of a member of the group so far */
    int64_t shared_counter; /* of siblings in a resident group; -1: none */
    int64_t shared_n;
    br_low_recipe recipe;
    int64_t reshape_ids; /* buffer, -1: not made */
    br_str text;         /* for names and labels */
    br_mega_lower_stats stats;
} br_lower;

/* ---- lower_emit.c -------------------------------------------------------- */

typedef struct br_low_task {
    br_mega_op op;
    int64_t in[BR_MEGA_MAX_INPUTS];
    uint32_t n_in;
    int64_t out;
    int64_t counter;
    br_mega_wait waits[BR_MEGA_MAX_WAITS];
    uint32_t n_waits;
    br_mega_pv params[10];
    uint32_t n_params;
    int64_t sm; /* 0 and fixed false: not assigned here */
    bool fixed_sm;
    const char *label; /* NULL: what l->text holds */
    int64_t est_bytes, est_flops;
} br_low_task;

typedef struct br_low_buffer {
    const char *name;
    br_mega_kind kind;
    br_mega_dtype dtype;
    uint32_t rank;
    int64_t shape[BR_MEGA_MAX_RANK];
    const char *source;
} br_low_buffer;

/* l->text, formatted anew; "" after a failure. */
const char *br_low_text(br_lower *l, const char *fmt, ...) BR_PRINTF(2, 3);
int64_t br_low_buffer_add(br_lower *l, const br_low_buffer *d);
/* The buffer of a tensor that a node makes. */
int64_t br_low_output(br_lower *l, int32_t tensor);
int64_t br_low_counter(br_lower *l, const char *note);
/* The buffer of a weight as floats, made on first use. */
int64_t br_low_weight(br_lower *l, int32_t tensor);
void br_low_quant_weight(br_lower *l, int32_t tensor, int64_t *weight,
                         int64_t *scales);
void br_low_wait(br_lower *l, br_low_task *t, int32_t tensor);
void br_low_emit(br_lower *l, const br_low_task *t);
void br_low_ready(br_lower *l, int32_t tensor, int64_t counter, int64_t n);
/* a * b * c * d with overflow turned into a LIMIT failure of the lowering. */
int64_t br_low_mul(br_lower *l, int64_t a, int64_t b, int64_t c, int64_t d);
static inline bool
br_low_ok(const br_lower *l)
{
    return l->b.code == BR_OK;
}
br_code br_low_fail(br_lower *l, br_code code); /* records it; returns it */

void br_low_recipe_open(br_lower *l, int32_t result);
void br_low_recipe_close(br_lower *l, const char *label, int64_t counter);

/* ---- the rest ------------------------------------------------------------ */

void br_low_node(br_lower *l, const br_net_node *d);   /* lower_node.c */
void br_low_linear(br_lower *l, const br_net_node *d); /* lower_linear.c */
/* How a linear is cut: tile sizes and counts. */
typedef struct br_low_cut {
    int64_t rows, columns, k;
    int64_t m_tile, n_tile, m_tiles, n_tiles;
} br_low_cut;
br_low_cut br_low_cut_of(br_lower *l, const br_net_node *d);
/* Keys of one attention shard and how many shards there are. */
int64_t br_low_shards(const br_lower *l, const br_net_node *d,
                      int64_t *keys_per_shard);
br_code br_low_find_groups(br_lower *l); /* lower_fuse.c */
void br_low_group_lower(br_lower *l, const br_low_group *g);

#endif
