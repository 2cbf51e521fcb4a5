/* fuzz_mega_cost.c - any program that loads meets the cost model.
 *
 * It is refused with a sentence, or its cost is a finite number that is not
 * below its floor and that the critical path adds up to. Ids, shapes, hints
 * and the target are whatever the file says.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "mega/cost.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
meet(const br_mega_prog *p, const br_mega_target *t, int64_t depth)
{
    br_mega_cost_opts o = {.target = t, .depth = depth};
    br_status st = {0};
    br_mega_cost c;
    double sum;

    if (br_mega_cost_of(&c, p, &o, &st) != BR_OK) {
        br_check(st.msg[0] && "a refusal says why");
        return;
    }
    br_check(isfinite(c.us) && c.us >= c.floor_us);
    sum = c.critical.stream_us + c.critical.compute_us + c.critical.overhead_us;
    br_check(fabs(sum - c.us) <= 1e-6 * (1 + c.us));
    br_mega_cost_fini(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    br_mega_prog *p;

    if (br_mega_load(&p, (const char *)data, size, NULL) != BR_OK)
        return 0;
    meet(p, NULL, -1);
    meet(p, br_mega_target_find(BR_TEXT("cpu")), 0);
    meet(p, br_mega_target_find(BR_TEXT("h200")), 3);
    br_mega_free(p);
    return 0;
}
