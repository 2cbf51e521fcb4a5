/* plan.h - how many rows a step may have, and whose they are.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_PLAN_H
#define BR_PLAN_H

#include "run/tenant.h"

/* What steps cost: ns = base + rows * row, by least squares over the latest
 * ones, older ones counting less and less. Zero-initialise. */
typedef struct br_steptime {
    double n, x, y, xx, xy; /* sums, halved every 44 steps */
    double base_ns, row_ns;
} br_steptime;

void br_steptime_note(br_steptime *t, uint32_t rows, int64_t ns);
double br_steptime_of(const br_steptime *t, uint32_t rows); /* 0: unknown */

enum {
    BR_PLAN_MIN_ROWS = 16,     /* of prefill in a step, so that it gets on */
    BR_PLAN_FIRST_ROWS = 64,   /* while nothing is known */
    BR_PLAN_IDLE_MS = 50,      /* of a step, where nobody decodes: who comes */
                               /* next waits for its end */
    BR_PLAN_STANDARD_MS = 100, /* what a step of decoding may be longer by */
};

/* Rows a step may have beside n_decode rows that decode. best: the best class
 * that decodes; BR_QOS_COUNT: nobody. A step in which an interactive request
 * decodes is at most a quarter longer than without prefill, and never longer
 * by more than its jitter budget; but BR_PLAN_MIN_ROWS always fit. */
uint32_t br_plan_budget(const br_steptime *t, uint32_t n_decode, br_qos best,
                        uint32_t max_rows);

/* A slot that reads its prompt. */
typedef struct br_plan_want {
    uint32_t rows; /* it could take */
    br_qos qos;
    uint32_t give;   /* it gets */
    uint32_t credit; /* what it is owed of fractions, in 1/256 rows; kept */
} br_plan_want;

/* Shares the budget out by the classes' prefill weights (16 : 4 : 1), so that
 * all get on and nobody waits for a long prompt to end; what one cannot use
 * goes to the others, in order of the array. */
void br_plan_share(br_plan_want *w, uint32_t n, uint32_t budget);

#endif
