/* cuda_nodes_int.h - the inside of cuda_nodes.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_NODES_INT_H
#define BR_CUDA_NODES_INT_H

#include "../../../kernels/cuda/node_table.h"
#include "drv/cuda/cuda_api.h"
#include "drv/cuda/cuda_nodes.h"

enum cun_fn {
#define K(name) CUN_##name,
#include "drv/cuda/cuda_nodes.def"
#undef K
    CUN_COUNT
};

/* How many blocks: of so many threads for all numbers; or x blocks a row, rows
 * or tiles of rows below each other; or of a product on tensor cores, by whose
 * x rows of weights; or of attention, x KV heads a tile of queries. */
enum cun_grid { CUN_NUMBERS, CUN_ROWS, CUN_TILES, CUN_MMA, CUN_QUERIES };

typedef struct cun_launch {
    uint8_t fn, grid;
    bool want; /* of the rows that want logits only */
    bool last; /* of its node */
    uint32_t node;
    uint32_t x; /* numbers of a row; blocks */
    uint32_t shared;
    struct br_nd_args a;
} cun_launch;

typedef struct cun_place { /* of the step's block, in bytes */
    size_t slot, position, want, at, tables, total;
} cun_place;

enum { CUN_EMBEDS = 4 };
typedef struct cun_embed { /* a table whose rows the step brings */
    const br_gguf_tensor *t;
    uint32_t value, cols;
    size_t rows; /* in the block, in bytes */
} cun_embed;

struct br_cun {
    br_cuda cu;
    br_cun_config c;
    br_values v;
    br_arena arena;
    void *mod, *fn[CUN_COUNT];
    BR_VEC(uint64_t) held; /* device memory */
    BR_VEC(cun_launch) launches;
    struct br_nd_mat *mat; /* [n_values] */
    uint64_t pool[BR_MAX_KV_GROUPS];
    uint64_t gather[BR_IR_MAX_BINDINGS], xq, xd, hidden_rows;
    uint64_t block; /* the step, as the device sees it */
    uint8_t *stage; /* as it is made */
    cun_place at;
    int32_t *seen;    /* [n_slots] table of the slot in this step, or -1 */
    int32_t *last;    /* [n_slots] its last position in this step */
    uint32_t padded;  /* rows that xq has room for */
    uint32_t table_n; /* pages of a slot and group at most */
    uint32_t n_rows;  /* of the latest step */
    cun_embed embed[CUN_EMBEDS];
    uint32_t n_embeds;
    float *hidden, *watched;
    br_watch watch;
    uint64_t weight_bytes, all_bytes, sent, steps, kv_bytes;
};

/* Device memory that close gives back. */
br_code cun_alloc(br_cun *x, uint64_t *p, size_t bytes,
                  br_status *st) BR_MUST_USE;
/* cuda_weights.c: the matrix of value v, once. */
br_code cun_matrix(br_cun *x, uint32_t v, br_status *st) BR_MUST_USE;
/* cuda_plan.c: the launches of every node. */
br_code cun_plan(br_cun *x, br_status *st) BR_MUST_USE;

#endif
