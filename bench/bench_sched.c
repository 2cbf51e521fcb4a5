/* bench_sched.c - what planning a step costs with 64 requests that decode.
 *
 * Prints the median and the 99th percentile, and fails when the median is over
 * the 10 us that the scheduler promises at 64 slots. All 64 are checked to be
 * in every step.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "run/sched.h"

#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 64, TENANTS = 8, CTX = 8192, STEPS = 4000 };

static int64_t ns[STEPS];
static int32_t tokens[2 * SLOTS][CTX];

static int
by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void
must(bool c, const char *what)
{
    if (c)
        return;
    fprintf(stderr, "bench_sched: %s\n", what);
    exit(1);
}

int
main(void)
{
    br_state_plan plan = {.n_groups = 1};
    br_sched_config c = {.n_requests = 2 * SLOTS,
                         .n_slots = SLOTS,
                         .n_ctx = CTX,
                         .max_rows = 512,
                         .plan = &plan,
                         .n_pages = {SLOTS * CTX / BR_PAGE_TOKENS},
                         .prefix_percent = 20};
    br_quota q = br_quota_defaults();
    br_sched *s;
    int64_t now = 0;

    must(br_sched_new(&s, &c, NULL) == BR_OK, "no scheduler");
    q.max_slots = SLOTS;
    q.max_kv_pages = q.decode_tokens_per_s = 1 << 30;
    for (uint32_t t = 0; t < TENANTS; t++) {
        q.qos = (br_qos)(t % BR_QOS_COUNT);
        must(br_sched_tenant_set(s, t, &q, NULL) == BR_OK, "no tenant");
    }
    /* As many wait as run: admission has something to look at, too. */
    for (uint32_t h = 0; h < 2 * SLOTS; h++)
        br_sched_add(s, h, h % TENANTS, tokens[h], 1, CTX);
    for (int i = -10; i < STEPS; i++) {
        int64_t begun = br_now_ns();
        const br_plan *p = br_sched_plan(s, now);

        if (i >= 0)
            ns[i] = br_now_ns() - begun;
        must(i < 0 || p->n_decode == SLOTS, "not all are in the step");
        now += 10000000;
        br_sched_stepped(s, now, 10000000);
        for (uint32_t t = 0; t < p->step.n_rows; t++)
            if (p->step.want[t])
                br_sched_append(s, p->row_handle[t]);
    }
    qsort(ns, STEPS, sizeof *ns, by_size);
    printf("plan of a step, %d decoding, %d waiting, %d tenants: median %.2f "
           "us, p99 %.2f us\n",
           SLOTS, SLOTS, TENANTS, (double)ns[STEPS / 2] / 1e3,
           (double)ns[STEPS * 99 / 100] / 1e3);
    br_sched_free(s);
    must(ns[STEPS / 2] <= 10000, "over 10 us");
    return 0;
}
