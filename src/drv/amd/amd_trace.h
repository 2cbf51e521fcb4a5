/* amd_trace.h - what a driver and a GPU said to each other, as text.
 *
 *     amd_dev.c --> br_amd_trace --> the kernel, or the simulated one
 *                        '--> lines, for brass test-pm4 --replay (sim_replay.c)
 *
 * A line is a call with its answer, or memory that one side changed since:
 *
 *     brass-amd-trace 1
 *     read PATH RESULT TEXT        TEXT, STRUCT: hexadecimal; "-": nothing
 *     open PATH RESULT
 *     close FD
 *     ioctl FD REQUEST STRUCT STRUCT RESULT [MORE]    before and after; MORE: what
 *                                  a struct of the render node points to
 *     map FD BYTES OFFSET RESULT
 *     cpu ADDRESS BYTES...         the host wrote that, the higher first
 *     ring OFFSET VALUE            of the doorbells' page
 *     bell HANDLE OFFSET VALUE     of a user queue's doorbell
 *     gpu ADDRESS BYTES...         is there when the host has done waiting
 *
 * For probes: all memory that the host maps is looked at around every call.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_AMD_TRACE_H
#define BR_DRV_AMD_TRACE_H

#include "drv/amd/amd_os.h"

#define BR_AMD_TRACE_HEAD "brass-amd-trace 1"
enum {
    BR_AMD_TRACE_MAX_BYTES = 64 << 20, /* of a file */
    BR_AMD_TRACE_MAX_MAP = 16 << 20,   /* of memory that is looked at */
};

typedef struct br_amd_trace br_amd_trace;

/* NULL: no memory. One thread; one device open at a time, T1 or T2. */
br_amd_trace *br_amd_trace_new(const br_amd_os *under);
const br_amd_os *br_amd_trace_os(br_amd_trace *t);
/* The lines so far; false: some could not be kept. */
bool br_amd_trace_text(const br_amd_trace *t, br_text *out);
void br_amd_trace_free(br_amd_trace *t);

#endif
