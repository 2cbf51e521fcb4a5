/* store.h - the tensors of a program's buffers, whoever keeps them.
 *
 *   bind weights, inputs, caches -> run by a runner -> get outputs
 *                                         ^---------------' next token
 *
 * The reference VM keeps them for programs of tensors (interp.h),
 * run/step_run.h for the programs of models. Folders of tensors are bound by
 * bind.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_STORE_H
#define BR_MEGA_STORE_H

#include "mega/walk.h"

/* A tensor in memory, row-major; dtype is that of the data. Rows of I4 start
 * on a byte (dtype.h). */
typedef struct br_mega_value {
    const void *data;
    const int64_t *shape;
    size_t nbytes;
    uint32_t rank;
    int dtype; /* br_mega_dtype */
} br_mega_value;

typedef struct br_mega_store {
    const br_mega_prog *prog;
    /* Would this dtype and shape do for the buffer? (data and nbytes are not
     * looked at.) */
    br_code (*bindable)(const struct br_mega_store *s, int64_t buffer,
                        const br_mega_value *v, br_status *st);
    /* Copies a value into a buffer that is not the program's to make, rounding
     * to nearest even to its dtype. */
    br_code (*bind)(struct br_mega_store *s, int64_t buffer,
                    const br_mega_value *v, br_status *st);
    bool (*bound)(const struct br_mega_store *s, int64_t buffer);
    /* As it stands, in the store's memory, until the next run or bind. */
    br_mega_value (*get)(const struct br_mega_store *s, int64_t buffer);
    /* One pass; caches as the last one left them. */
    br_code (*run)(struct br_mega_store *s, br_mega_runner *r, br_status *st);
} br_mega_store;

/* Bytes that dtype and shape ask for; -1: not possible. */
int64_t br_mega_value_bytes(const br_mega_value *v);

/* Is it written out: an IO_OUTPUT or KV_CACHE? */
static inline bool
br_mega_is_result(const br_mega_buffer *b)
{
    return b->kind == BR_MBK_IO_OUTPUT || b->kind == BR_MBK_KV_CACHE;
}

/* Runs in the given order, then in `orders` others from the same state:
 * reverse, and random ones drawn from seed + 1 on. INTERNAL, naming buffer and
 * order, when an output or cache is not bit-equal. Leaves the result of the
 * first order, and caches as after one run. */
br_code br_mega_adversarial(br_mega_store *s, br_mega_walk *w, int orders,
                            br_mega_order order, uint64_t seed,
                            br_status *st) BR_MUST_USE;

#endif
