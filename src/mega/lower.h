/* lower.h - a network and a ScheduleConfig become a task program.
 *
 *   net + config + target --br_mega_lower--> program, ready to check and run
 *
 * Deterministic: same inputs, same bytes. Tasks are listed in an order in
 * which every task comes after all it waits for, so each worker may walk its
 * tasks in list order whatever the assignment. docs/schedule.md says what each
 * field of the config does.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_LOWER_H
#define BR_MEGA_LOWER_H

#include "mega/net.h"
#include "mega/target.h"

typedef enum br_mega_style {
    BR_LOWER_HOUSE, /* ours: every field of the config has its effect */
    BR_LOWER_AMK,   /* byte for byte what the reference would emit, which
                       reads only N_tile, base_width and n_partitions */
} br_mega_style;

typedef struct br_mega_lower_opts {
    br_mega_style style;
    const br_mega_target *target; /* NULL: none, and no worker is assigned */
    const br_json *config;        /* an object; NULL: none */
} br_mega_lower_opts;

typedef struct br_mega_lower_stats {
    size_t fused_groups, resident_groups; /* matches of fusion_grouping */
    size_t split_attentions;
    size_t on_chip; /* activations moved to SMEM */
    size_t workers; /* that got at least one task */
} br_mega_lower_stats;

/* stats may be NULL. Fails with FORMAT or LIMIT for a config or a net that
 * cannot be lowered, UNSUPPORTED where a field asks for what is not there. */
br_code br_mega_lower(br_mega_prog **out, const br_mega_net *net,
                      const br_mega_lower_opts *opts,
                      br_mega_lower_stats *stats, br_status *st) BR_MUST_USE;

/* A model's graph as tasks (step.h): each node in tiles of columns, each tile
 * a task, waiting for the nodes that write what it reads. */
typedef struct br_step_config {
    int64_t workers; /* 1..BR_ASSIGN_MAX_WORKERS */
    int64_t rows;    /* of a step at most, 1..BR_STEP_MAX_ROWS */
    int64_t tile;    /* columns of a tile; 0: so that each worker has one, and
                        none less than is worth a wait */
} br_step_config;

/* Deterministic. The program owns a copy of the graph. REJECTED where tiles of
 * a node cannot be kept apart, UNSUPPORTED for opcodes no task computes. */
br_code br_mega_lower_graph(br_mega_prog **out, const struct br_ir *g,
                            const br_step_config *c, br_status *st) BR_MUST_USE;

/* The program everybody measures on: a decoder of shapes.def at position 0,
 * bf16, on h100, with the reference's own tiling ("llama-3-8b": 12,738 tasks).
 * NOT_FOUND for a name that shapes.def lacks. */
br_code br_mega_lower_shape(br_mega_prog **out, const char *shape,
                            br_mega_style style, br_status *st) BR_MUST_USE;

#endif
