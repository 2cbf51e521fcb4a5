/* step_run.h - a step of a model's program, on tensors bound to its buffers.
 *
 *   buffer        bound as                        got as
 *   WEIGHT CONST  by the model, by the program
 *   IO_INPUT      [n] or [n, 1]: rows of the step
 *   IO_OUTPUT                                     [rows that want them, cols]
 *   KV_CACHE      [n, cols], positions 0 to n-1   the same, with the step's
 *                 or, a state of the slot, whole  whole
 *
 * One sequence. What is got can be bound: so a step continues another.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_STEP_RUN_H
#define BR_STEP_RUN_H

#include "drv/cpu/cpu_pool.h"
#include "mega/store.h"
#include "model/model.h"

typedef struct br_step_run_config {
    uint32_t workers;   /* of a runner, at most */
    uint64_t max_bytes; /* for values, and again for caches; 0: no limit */
    /* NULL: tasks by the ref tier, in F32. Else by the CPU tier's kernels, its
     * workers these threads. */
    br_cpu_pool *pool;
    bool exact; /* the bits of the ref tier with quantised activations */
} br_step_run_config;

typedef struct br_step_run br_step_run;

/* Program and model outlive it. The program carries a graph and has passed the
 * sound check; a graph of another model is refused. */
br_code br_step_run_new(br_step_run **out, const br_mega_prog *p,
                        const br_model *m, const br_step_run_config *c,
                        br_status *st) BR_MUST_USE;
void br_step_run_free(br_step_run *r);
br_mega_store *br_step_run_store(br_step_run *r);

#endif
