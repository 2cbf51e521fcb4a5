/* tune_meter.h - a model's steps on the CPU tier, by the clock: what
 * br_tune_search looks with.
 *
 *   answer   a token of one sequence, 16 tokens deep
 *   deep     the same at 4096 tokens, which are made up: what keys and values say
 *            costs no time
 *   batch    a token of each of eight sequences
 *   prompt   up to 512 tokens, so many that they take a quarter of a second
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TUNE_METER_H
#define BR_TUNE_METER_H

#include "run/oracle.h"
#include "run/tune_search.h"

typedef struct br_tune_model br_tune_model;

/* The model and the pool outlive it. cache: where packed weights are kept.
 * stop: may be NULL; what else the progress of packing is told. */
typedef struct br_tune_model_config {
    br_cpu_pool *pool;
    br_cpu_cache cache;
    const _Atomic bool *stop;
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
} br_tune_model_config;

br_code br_tune_model_open(br_tune_model **out, const br_model *m,
                           const br_tune_model_config *c,
                           br_status *st) BR_MUST_USE;
void br_tune_model_close(br_tune_model *t);
br_tune_meter br_tune_model_meter(br_tune_model *t);
br_isa br_tune_model_isa(const br_tune_model *t);

#endif
