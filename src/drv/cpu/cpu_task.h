/* cpu_task.h - the tasks of a model's program by the CPU tier's kernels.
 *
 *   program --ref_prog.c--> tile: node, columns, views
 *                             |  br_ref_bodies
 *                             v
 *            packed weights, vectors, pages of heads (cpu_ops.h, cpu_mat.h)
 *
 * The walk over tasks, their views and pages are the ref tier's (drv/ref); what
 * a task computes is not. The bits are those of br_cpu_step: with `exact`, the
 * ref tier's with quantised activations. Keys and values are kept in F32.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_TASK_H
#define BR_CPU_TASK_H

#include "drv/cpu/cpu_pool.h"
#include "drv/ref/ref.h"

typedef struct br_cpu_tasks br_cpu_tasks;

/* Packs the weights by the pool's threads, who run the tasks later: any of them
 * at once. Model, graph and pool outlive it. */
br_code br_cpu_tasks_new(br_cpu_tasks **out, const br_model *m, const br_ir *g,
                         br_cpu_pool *pool, uint32_t max_rows, bool exact,
                         br_status *st) BR_MUST_USE;
void br_cpu_tasks_free(br_cpu_tasks *k);
/* For br_ref_config. */
const br_ref_bodies *br_cpu_tasks_bodies(const br_cpu_tasks *k);
/* Columns of a row of this state value that stand together in a page: number
 * i of a token is at (i / run * 16 + token) * run + i % run. */
uint32_t br_cpu_tasks_run(const br_cpu_tasks *k, uint32_t value);

#endif
