/* fuzz_trace.c - any bytes as a trace: read, and drawn as a timeline.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/trace_replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    br_str out = {0};
    bool cut;

    (void)!br_trace_timeline(p, n, &out, &cut, NULL);
    br_str_fini(&out);
    return 0;
}
