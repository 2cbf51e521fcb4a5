/* config.h - a ScheduleConfig read, checked and ready to lower with. What
 * each field does: docs/schedule.md.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_CONFIG_H
#define BR_MEGA_CONFIG_H

#include "mega/target.h"

enum {
    BR_CFG_MAX_DEPTH = 64, /* pipelining_depth */
    BR_CFG_DEFAULT_DEPTH = 2,
    BR_CFG_MAX_GROUPS = 256,  /* of fusion_grouping */
    BR_CFG_MAX_MEMBERS = 64,  /* of one group */
    BR_CFG_MAX_TILINGS = 256, /* entries of tiling */
    BR_CFG_MAX_SHARDS = 8,    /* an ATTENTION_COMBINE takes 8 inputs */
};

/* One entry of tiling; 0: not given. */
typedef struct br_cfg_tiling {
    const char *op; /* "gemv", "gemm", "attention" or a role */
    int64_t n_tile, m_tile, base_width; /* of linears */
    int64_t kv_block, n_partitions;     /* of attention */
    bool used;                          /* the lowering found a node for it */
} br_cfg_tiling;

typedef struct br_cfg_group {
    const char *const *names;
    size_t n;
} br_cfg_group;

typedef enum br_cfg_sm {
    BR_SM_ROUND_ROBIN,
    BR_SM_LOAD_BALANCE,
    BR_SM_EXPLICIT,
} br_cfg_sm;

typedef struct br_cfg_pin {
    int64_t task, sm;
} br_cfg_pin;

typedef struct br_mega_config {
    br_cfg_tiling *tilings;
    br_cfg_group *groups;
    br_cfg_pin *pins; /* of an explicit assignment, ascending by task */
    size_t n_tilings, n_groups, n_pins;
    br_cfg_sm sm;
    int64_t pipelining_depth, threads_per_block, smem_bytes_per_block;
    const char *page_allocation; /* "linear", "graph_color" or "none" */
} br_mega_config;

/* Every field is range-checked, against the target where there is one; an
 * error (FORMAT) says "config.FIELD: rule". fields: as in a program; a NULL
 * entry means the default, NULL for all means all. */
br_code br_mega_config_read(br_mega_config *c, br_arena *a,
                            const br_json *const *fields,
                            const br_mega_target *t, br_status *st) BR_MUST_USE;
/* The members of a JSON object as fields; an unknown key is an error, and so
 * is a value that is no object. */
br_code br_mega_config_fields(const br_json **fields, const br_json *obj,
                              br_status *st) BR_MUST_USE;
const char *br_mega_config_field_name(br_mega_config_field f);

#endif
