/* plan.h - how many rows a step may have, and whose they are.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_PLAN_H
#define BR_PLAN_H

#include "run/tenant.h"

enum { BR_PLAN_COUNTS = 64 + 16 * 16 }; /* of rows; from 64 on 16 an octave */

/* What steps of so many rows took, whoever's they were, without what their
 * positions cost, on a machine of pace 1: about the median, so that pauses do
 * not count. */
typedef struct br_row_time {
    double ns; /* 0: there was none */
    uint64_t seen;
    uint32_t n; /* of them, as far as it matters */
} br_row_time;

/* What steps cost, in two lines by least squares, older steps counting less
 * and less: one of steps that only decode, ns = base + rows * row, and one of
 * what prefill adds to them, ns = rows * (fixed + position * read), because
 * attention makes the rows of a long prompt dearer as it goes on. Zero-initialise. */
typedef struct br_steptime {
    double n, x, y, xx, xy;   /* sums of steps that decode */
    double p, pr, rr, py, ry; /* of prefill: r positions of a row */
    double base_ns, row_ns, fixed_ns, read_ns;
    double steady_ns; /* what steps beside interactive streams were to take */
    uint32_t mixed;   /* steps with prefill since one without */
    uint32_t most;    /* rows of a step that decoded alone */
    /* How much longer than expected steps with prefill were lately, at worst;
     * fades by 1/512 a step, so that budgets hold for the 99th of a hundred
     * where neighbours take the processor away. */
    double over;
    uint32_t known; /* steps with prefill so far, up to BR_PLAN_KNOWN */
    bool late;      /* the latest step took much longer than expected */
    uint64_t steps;
    double pace;     /* how long steps take of late, to one as it is known */
    double usual_ns; /* steps beside interactive streams of late, at pace 1 */
    br_row_time of[BR_PLAN_COUNTS];
} br_steptime;

/* positions: the sum of those of the rows that are prefill. interactive: one of
 * those who decode is. */
typedef struct br_step_rows {
    uint32_t decode, prefill;
    double positions;
    bool interactive;
} br_step_rows;
void br_steptime_note(br_steptime *t, const br_step_rows *r, int64_t ns);
/* A row of prefill at that position; 0: unknown. */
double br_steptime_prefill(const br_steptime *t, double position);

enum {
    BR_PLAN_MIN_ROWS = 8, /* of prefill in a step, so that it gets on */
    BR_PLAN_MAX_OVER = 4,
    BR_PLAN_LONG_MS = 20,
    BR_PLAN_KNOWN = 16,        /* steps: before, what is expected is a guess */
    BR_PLAN_FIRST_ROWS = 64,   /* while nothing is known and nobody decodes */
    BR_PLAN_IDLE_MS = 50,      /* of a step, where nobody decodes: who comes */
                               /* next waits for its end */
    BR_PLAN_SLOW_MS = 150,     /* or twice what a step takes anyway, up to */
                               /* that: 8 rows of a model whose weights take */
                               /* 40 ms to read cost 6.1 ms each, 32 4.8 */
    BR_PLAN_JITTER_MS = 12,    /* planned of an interactive budget of 30 for */
                               /* the least rows: deep in a prompt of 8,192 */
                               /* 8 of them take 24 ms, and with a pause over */
                               /* 40; prefill still has most of all time */
    BR_PLAN_STANDARD_MS = 100, /* what a step of decoding may be longer by */
    BR_PLAN_HALF_MS = 45,      /* of which this is planned, or twice what */
                               /* decoding takes: a pause of the kernel's, 50 */
                               /* ms, fits behind it, and prefill has at */
                               /* least half of all time */
    BR_PLAN_STEADY = 16,       /* steps: what is usual, is over so many */
    BR_PLAN_FRESH = 64,        /* steps: by then it is looked at again what */
                               /* as many rows as run take */
    BR_PLAN_DEAR = 512,        /* and what turned out to take too long */
    BR_PLAN_SURE = 4,          /* by so many steps; until then it is tried */
    BR_PLAN_AGAIN = 16,        /* again after so many */
    BR_PLAN_MIXED = 32,        /* steps: then one decodes alone, so that what */
                               /* decoding costs stays known */
};

/* Rows a step may have beside n_decode rows that decode, where n_read slots read
 * prompts. best: the best class that decodes; BR_QOS_COUNT: nobody. row_ns: of
 * those to come; 0: unknown. A step in which an interactive request decodes has
 * a row for each of them as if all decoded. It is at most a fifth longer than
 * that, or by BR_PLAN_MIN_ROWS or BR_PLAN_JITTER_MS, whichever is less, by the
 * lines and by what steps of so many rows took; and with those no longer than
 * without prefill by more than its jitter budget, unless steps beside it have
 * been so long already. */
uint32_t br_plan_budget(const br_steptime *t, uint32_t n_decode,
                        uint32_t n_read, br_qos best, double row_ns,
                        uint32_t max_rows);

/* A slot that reads its prompt. */
typedef struct br_plan_want {
    uint32_t rows; /* it could take */
    br_qos qos;
    uint32_t give;   /* it gets */
    uint32_t credit; /* what it is owed of fractions, in 1/256 rows; kept */
    uint32_t from;   /* position of the first */
} br_plan_want;

/* What a row costs when they are shared out so; 0: unknown. */
double br_plan_row_ns(const br_steptime *t, const br_plan_want *w, uint32_t n);

/* Shares the budget out by the classes' prefill weights (16 : 4 : 1), so that
 * all get on and nobody waits for a long prompt to end; what one cannot use
 * goes to the others, in order of the array. */
void br_plan_share(br_plan_want *w, uint32_t n, uint32_t budget);

#endif
