/* progress.h - "lowering 31% (3900 of 12738, 4 s)" for whoever watches.
 *
 * A line on stderr that rewrites itself, only if stderr is a terminal that can
 * and the work has taken a second; ten times a second at most; as long as the
 * terminal is wide; gone at the end. One thread, one at a time; what others log
 * meanwhile goes above it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_PROGRESS_H
#define BR_PROGRESS_H

#include "cli/cli.h"

typedef struct br_progress {
    FILE *f;
    bool terminal;
    bool shown;
    bool bytes; /* what is counted: shown as MB, and as MB/s */
    const char *what;
    uint64_t total; /* 0: not known */
    uint64_t begin; /* done before it began */
    int64_t begin_ns, last_ns;
    char line[160]; /* as it is shown */
} br_progress;

void br_progress_begin(br_progress *p, const br_cli *cli, const char *what,
                       uint64_t total);
void br_progress_at(br_progress *p, uint64_t done, int64_t now_ns);
/* The same as a callback: the time is now. */
void br_progress_advance(void *progress, uint64_t done, uint64_t total);
void br_progress_end(br_progress *p);
/* Whole lines to where such a line may be shown. Any thread. */
void br_progress_above(FILE *f, const char *lines, size_t n);

/* br_model_open while a folder's reading is shown, until *stop; NULL: to the end. */
struct br_model;
br_code br_progress_model(const br_cli *cli, struct br_model **out,
                          const char *path, const _Atomic bool *stop,
                          br_status *st) BR_MUST_USE;

/* br_lm_model_open while packing is shown. */
struct br_lm_model;
struct br_lm_config;
br_code br_progress_lm(const br_cli *cli, struct br_lm_model **out,
                       const struct br_model *m, const struct br_lm_config *c,
                       br_status *st) BR_MUST_USE;

#endif
