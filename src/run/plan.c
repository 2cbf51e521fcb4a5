/* plan.c - see plan.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/plan.h"

static const uint32_t jitter_ms[BR_QOS_COUNT] = {
#define X(name, text, weight_q8, ttft_ms, jitter_ms) jitter_ms,
#include "run/qos.def"
#undef X
};

void
br_steptime_note(br_steptime *t, uint32_t rows, int64_t ns)
{
    const double keep = 63.0 / 64;
    double x = rows, y = (double)ns, det;

    t->n = t->n * keep + 1;
    t->x = t->x * keep + x;
    t->y = t->y * keep + y;
    t->xx = t->xx * keep + x * x;
    t->xy = t->xy * keep + x * y;
    det = t->n * t->xx - t->x * t->x;
    /* Steps that are all alike say nothing about the slope. */
    t->row_ns = det > 0.01 * t->xx ? (t->n * t->xy - t->x * t->y) / det : 0;
    t->row_ns = BR_MAX(t->row_ns, 0);
    t->base_ns = (t->y - t->row_ns * t->x) / t->n;
    if (t->base_ns < 0 || t->row_ns <= 0) {
        t->base_ns = t->row_ns > 0 ? 0 : t->y / t->n;
        t->row_ns = t->row_ns > 0 ? t->y / t->x : 0;
    }
}

double
br_steptime_of(const br_steptime *t, uint32_t rows)
{
    return t->base_ns + t->row_ns * rows;
}

uint32_t
br_plan_budget(const br_steptime *t, uint32_t n_decode, br_qos best,
               uint32_t max_rows)
{
    uint32_t room = max_rows > n_decode ? max_rows - n_decode : 0;
    double base = br_steptime_of(t, n_decode), extra = 0, rows;

    switch (best) {
    case BR_QOS_INTERACTIVE:
        extra = BR_MIN(base / 4, jitter_ms[best] * 1e6);
        break;
    case BR_QOS_STANDARD:
    case BR_QOS_BATCH: extra = BR_PLAN_STANDARD_MS * 1e6; break;
    case BR_QOS_COUNT: extra = BR_PLAN_IDLE_MS * 1e6 - base; break;
    }
    if (t->row_ns <= 0)
        return BR_MIN(room, best == BR_QOS_INTERACTIVE
                                ? (uint32_t)BR_PLAN_MIN_ROWS
                                : (uint32_t)BR_PLAN_FIRST_ROWS);
    rows = extra / t->row_ns;
    if (rows < BR_PLAN_MIN_ROWS)
        return BR_MIN(room, (uint32_t)BR_PLAN_MIN_ROWS);
    return rows < room ? (uint32_t)rows : room;
}

void
br_plan_share(br_plan_want *w, uint32_t n, uint32_t budget)
{
    static const uint32_t weight[BR_QOS_COUNT] = {16, 4, 1};
    uint64_t sum = 0;
    uint32_t left = budget;

    for (uint32_t i = 0; i < n; i++) {
        w[i].give = 0;
        sum += weight[w[i].qos];
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t fair =
            w[i].credit + (uint64_t)budget * weight[w[i].qos] * 256 / sum;

        w[i].give = (uint32_t)BR_MIN(BR_MIN(fair / 256, w[i].rows), left);
        w[i].credit = (uint32_t)BR_MIN(fair - w[i].give * UINT64_C(256), 512);
        left -= w[i].give;
    }
    for (uint32_t i = 0; i < n && left; i++) {
        uint32_t more = BR_MIN(left, w[i].rows - w[i].give);

        w[i].give += more;
        left -= more;
    }
}
