/* mem_sim.h - pages, prefixes and states, taken and given back at random.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEM_SIM_H
#define BR_MEM_SIM_H

#include "base/base.h"

typedef struct br_mem_report {
    uint64_t ops, taken, full, shared, added, evicted, states, passed;
    uint64_t worlds, oom; /* oom: worlds that could not be made, on purpose */
} br_mem_report;

/* About n operations on page lists, the prefix tree and kept states, in worlds
 * of random size. What is free is counted anew after every operation; at the
 * end of a world all is given back. Every eighth world is first made under an
 * allocator that fails at the k-th call, for k = 1, 2, ..., if fail_memory,
 * which takes br_mem_hook for itself. INTERNAL: the message says what was
 * wrong, with the seed. */
br_code br_mem_sim(uint64_t seed, uint64_t n, bool fail_memory,
                   br_mem_report *out, br_status *st) BR_MUST_USE;

#endif
