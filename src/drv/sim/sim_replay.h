/* sim_replay.h - a trace of a card (drv/amd/amd_trace.h), done again here.
 *
 * Every call goes to a simulated kernel of the same chip, what the host wrote
 * to the same addresses, every ring of a doorbell to a simulated packet
 * processor. What the two answer and write has to be the same.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_SIM_REPLAY_H
#define BR_DRV_SIM_REPLAY_H

#include "base/base.h"

typedef struct br_simgpu_replayed {
    char chip[16];
    unsigned calls, rings, words; /* done again; words of the GPU's, compared */
    unsigned differences;         /* a line each in `said`, the first ones */
    br_str said;                  /* and what the simulated GPU reports */
} br_simgpu_replayed;

/* patience_ns: for what comes after a doorbell. FORMAT, LIMIT: that is no trace, with
 * the line. OK: done, differences or not; r->said is the caller's to fini either way. */
br_code br_simgpu_replay(br_simgpu_replayed *r, const char *text, size_t n,
                         int64_t patience_ns, br_status *st) BR_MUST_USE;

#endif
