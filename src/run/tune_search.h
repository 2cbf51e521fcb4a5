/* tune_search.h - which numbers of the CPU tier (drv/cpu/cpu_tune.h) are better?
 *
 *   for each knob, for each other value of it
 *       look      pairs of (with it, as it is now), in turn, who begins changes
 *       again     if it was faster: fresh pairs, more of them
 *       keep      if it was faster again, and slower in no kind of step
 *   at the end    all that was kept beside the defaults; what then makes no kind
 *                 of step faster goes
 *
 * Faster is: the median of the pairs' ratios is below 1 by more than they spread,
 * by a hundredth at least, and three of four pairs were won. A look that wins no
 * more than half of its pairs ends early; equal keeps what is.
 *
 * Every step's logits are to have the bits of the defaults': a value that changes
 * them ends it all as an error that names it.
 *
 * What measures is the caller's, so that tests have a clock and a machine of their
 * own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TUNE_SEARCH_H
#define BR_TUNE_SEARCH_H

#include "drv/cpu/cpu_tune.h"

/* Kinds of steps; kind k is BR_CPU_AT_... 1 << k. */
enum { BR_TUNE_KINDS = 4 };
const char *br_tune_kind_name(int kind); /* "answer" "deep" "batch" "prompt" */

typedef struct br_tune_meter {
    void *ctx;
    int kinds; /* BR_CPU_AT_... that it measures */
    /* Some steps of a kind by these numbers: seconds, a digest of the logits. */
    br_code (*look)(void *ctx, int kind, const br_cpu_tune *t, double *seconds,
                    uint64_t *bits, br_status *st);
    int64_t (*now_ns)(void *ctx);
    bool (*stopped)(void *ctx); /* somebody has had enough */
} br_tune_meter;

typedef enum br_tune_verdict {
    BR_TUNE_SLOWER,
    BR_TUNE_EQUAL,
    BR_TUNE_FASTER,
    BR_TUNE_ENDED, /* before there was one: no time was left */
    BR_TUNE_VERDICTS
} br_tune_verdict;
const char *br_tune_verdict_name(br_tune_verdict v);

typedef enum br_tune_round {
    BR_TUNE_FIRST,
    BR_TUNE_AGAIN, /* of what was faster */
    BR_TUNE_LAST,  /* all that was kept, beside the defaults; no knob */
} br_tune_round;
const char *br_tune_round_name(br_tune_round r);

/* A look: value in place of than. */
typedef struct br_tune_row {
    br_tune_round round;
    br_cpu_knob knob;
    uint32_t value, than;
    int kind;
    double ratio; /* median of the pairs' times, with to without */
    uint32_t pairs, won;
    br_tune_verdict verdict;
} br_tune_row;

typedef struct br_tune_config {
    br_isa isa;
    uint32_t n_threads;
    bool keep_threads; /* they are the user's choice */
    int64_t budget_ns;
    /* After each look; may be NULL. */
    void (*told)(void *ctx, const br_tune_row *row);
    void *ctx;
} br_tune_config;

typedef struct br_tune_result {
    br_cpu_tune def, best;
    uint32_t n_kept;             /* values that are not the defaults */
    uint32_t tried, left;        /* values; left: no time for them */
    double ratio[BR_TUNE_KINDS]; /* of the last round; 0: none */
    uint32_t dropped;            /* that did not stand beside the defaults */
    bool stopped;
} br_tune_result;

/* REJECTED: a value changed bits. */
br_code br_tune_search(br_tune_result *r, const br_tune_meter *m,
                       const br_tune_config *c, br_status *st) BR_MUST_USE;

#endif
