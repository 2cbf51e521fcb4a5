/* stream_plan.h - which worker multiplies which rows, and where their bytes
 * lie: the host's half of kernels/cuda/mega_table.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_STREAM_PLAN_H
#define BR_STREAM_PLAN_H

#include "base/base.h"

enum br_cu_format { BR_CU_BF16, BR_CU_Q8_0, BR_CU_Q4_K };

typedef struct br_cu_shape { /* a dense transformer */
    const char *name;
    enum br_cu_format format; /* of all matrices */
    uint32_t n_layers, hidden, n_heads, n_kv, head_dim, inter, vocab;
    float rope_theta, eps;
    bool qk_norm, tied, interleaved_rope;
    const float *rope_divisors; /* [head_dim / 2] of the frequencies, or NULL */
    bool plain; /* BF16 in the streams as in a file: 16 bits a weight, not 12 */
} br_cu_shape;

enum br_cu_matrix { /* of a layer, then the head */
                    BR_CU_QKV,
                    BR_CU_OUT,
                    BR_CU_GLU, /* gate and up, interleaved by 8 rows */
                    BR_CU_DOWN,
                    BR_CU_HEAD,
                    BR_CU_MATRICES
};

typedef struct br_stream_plan {
    br_arena arena;
    uint32_t n_workers, n_inst;
    struct br_mk_inst *inst;  /* [n_workers][n_inst] */
    uint32_t *stream_chunks;  /* [n_workers] */
    uint32_t chunk, together; /* bytes of a chunk; chunks beside each other */
    uint64_t copy_stride;     /* from those of a worker to its next ones */
    uint64_t stream_bytes;
    /* byte offset of a tile's first chunk: tile_at[layer*4 + matrix][tile],
     * the head at [n_layers*4] */
    unsigned long long **tile_at;
    uint32_t *n_tiles; /* likewise */
} br_stream_plan;

/* Bytes of 16 rows x 512 columns in the stream, and of columns in a file. */
uint32_t br_cu_chunk_bytes(const br_cu_shape *s);
uint64_t br_cu_row_bytes(enum br_cu_format f, uint64_t cols);
uint32_t br_cu_rows(const br_cu_shape *s, enum br_cu_matrix m);
uint32_t br_cu_cols(const br_cu_shape *s, enum br_cu_matrix m);
/* Attention tasks of a block of 256 positions, 4 query heads each. */
uint32_t br_cu_tasks(const br_cu_shape *s);
/* Refuses shapes that the kernel does not take, naming the limit. */
br_code br_stream_plan_make(br_stream_plan *p, const br_cu_shape *s,
                            uint32_t n_workers, br_status *st) BR_MUST_USE;
/* Where chunk `seg` behind one at tile_at lies. */
uint64_t br_stream_plan_chunk(const br_stream_plan *p, uint64_t tile_at,
                              uint32_t seg);
void br_stream_plan_free(br_stream_plan *p);

#endif
