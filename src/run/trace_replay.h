/* trace_replay.h - asks the requests of a trace again and compares the answers.
 *
 * When and beside whom they ran does not matter: tokens are a function of the
 * request. Answers that were cut off from outside (cancelled, too slow, ...)
 * have to begin alike.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_REPLAY_H
#define BR_REPLAY_H

#include "run/trace.h"

typedef struct br_replay_report {
    bool cut;                         /* the trace's end is missing */
    uint32_t requests, same, skipped; /* skipped: br_trace_rec.apart */
    uint64_t tokens;
    br_request_id differs; /* the first that does, of the trace; 0: none */
    uint32_t at;           /* its first other token */
} br_replay_report;

/* c: a model of the same weights. FORMAT: the trace is malformed or has losses.
 * Answers of one that is cut short have to begin alike. A difference is no
 * failure: the report says it. */
br_code br_replay(const void *trace, size_t n, const br_engine_config *c,
                  br_replay_report *out, br_status *st) BR_MUST_USE;

/* The trace as a timeline for chrome://tracing and Perfetto: steps, and what
 * each slot did. *cut: its end is missing, and requests that run there, too. */
br_code br_trace_timeline(const void *trace, size_t n, br_str *out, bool *cut,
                          br_status *st) BR_MUST_USE;

#endif
