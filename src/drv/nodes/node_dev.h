/* node_dev.h - what kernels of one node each need of a device.
 *
 *     cuda_nodes.c, cuda_plan.c   which launches a step has, and their records
 *         |                       CUDA: launches on a stream, graphs
 *         '--- br_nd_dev ---> amd_nodes.c: packets in one buffer
 *
 * A device is made, used and closed by one thread at a time. Launches run in
 * order, each after what was put before it, and are done when wait returns.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_NODE_DEV_H
#define BR_NODE_DEV_H

#include "../../../kernels/cuda/node_table.h"
#include "base/base.h"

typedef enum br_nd_fn {
#define K(name) BR_ND_FN_##name,
#include "drv/cuda/cuda_nodes.def"
    BR_ND_FNS
} br_nd_fn;

typedef struct br_nd_launch {
    br_nd_fn fn;
    uint32_t blocks[2]; /* of BR_ND_WARPS * 32 threads */
    uint32_t shared;    /* bytes, beside what the kernel has */
    const struct br_nd_args *args;
} br_nd_launch;

/* What a step is made of: launches of the same two are the same. rows 0: a step
 * that nothing is the same as. */
typedef struct br_nd_key {
    uint32_t rows, want;
} br_nd_key;

typedef struct br_nd_dev br_nd_dev;

typedef struct br_nd_ops {
    void (*close)(br_nd_dev *d); /* and all its memory */
    /* shared: written or read by the host in every step. */
    br_code (*alloc)(br_nd_dev *d, uint64_t *p, uint64_t bytes, bool shared,
                     br_status *st);
    br_code (*zero)(br_nd_dev *d, uint64_t p, uint64_t numbers, br_status *st);
    br_code (*put)(br_nd_dev *d, uint64_t to, const void *from, size_t bytes,
                   br_status *st);
    br_code (*get)(br_nd_dev *d, void *to, uint64_t from, size_t bytes,
                   br_status *st);
    /* A step of n launches is coming. *known: they are remembered
     * from a step of the same key, and not given again. */
    br_code (*begin)(br_nd_dev *d, br_nd_key key, size_t n, bool *known,
                     br_status *st);
    br_code (*launch)(br_nd_dev *d, const br_nd_launch *l, br_status *st);
    br_code (*wait)(br_nd_dev *d, br_status *st);
    /* What copies within memory do, GB/s read and written; 0: no answer. */
    double (*probe)(br_nd_dev *d);
} br_nd_ops;

/* How often the host had to do with the device. recorded: launches of which
 * packets were made, by_hand: of those, of kernels of amd_hand.h; ioctls: as far as
 * they are ours (AMD). */
typedef struct br_nd_stats {
    uint64_t steps, launches, recorded, by_hand, submits, ioctls;
} br_nd_stats;

struct br_nd_dev {
    const br_nd_ops *ops;
    const char *tier, *name;
    uint32_t tile; /* rows that a block of a product takes */
    br_nd_stats stats;
};

/* tier: "cuda"; "amd-t1", "amd-t2", or "amd", the first of both that opens; NULL:
 * none. sim: in place of AMD's the simulated GPU of this name, gfx1201, with
 * sim_opts (br_simgpu_read); both may be NULL. mode: of AMD's, "packets" (or
 * NULL), a launch a node; "mega", one a step; "resident", one for good. */
typedef struct br_nd_where {
    const char *tier, *sim, *sim_opts, *mode;
} br_nd_where;

bool br_nd_tier(br_text name); /* is it one of these? */
/* NO_DEVICE says what is missing. */
br_code br_nd_amd_open(br_nd_dev **out, const br_nd_where *w,
                       br_status *st) BR_MUST_USE;

#endif
