/* metrics.h - counters of the server, and their text for Prometheus.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_METRICS_H
#define BR_METRICS_H

#include "run/engine.h"

enum { BR_HIST_BUCKETS = 14 };

typedef struct br_hist {
    uint64_t bucket[BR_HIST_BUCKETS]; /* not cumulative */
    uint64_t n;
    double sum;
} br_hist;

typedef enum br_hist_id {
#define X(name, unit, text) BR_HIST_##name,
#include "http/hist.def"
#undef X
    BR_HIST_COUNT
} br_hist_id;

typedef struct br_metrics {
    uint64_t answers[6]; /* by hundreds of the status; 0: others */
    uint64_t too_slow;
    int64_t user_ns, system_ns; /* of the loop's thread */
} br_metrics;

typedef struct br_model_metrics { /* begin anew when the model comes again */
    uint64_t finished[BR_FINISH_COUNT];
    br_hist hist[BR_HIST_COUNT];
} br_model_metrics;

typedef struct br_metrics_model {
    const char *name;
    const br_model_metrics *m;
    br_engine_stats s;
} br_metrics_model;

void br_metrics_answer(br_metrics *m, int status);
void br_metrics_usage(br_model_metrics *m, const br_usage *u);
/* From one token of an answer to the next. */
void br_metrics_gap(br_model_metrics *m, int64_t ns);
/* What a request asks for; max_tokens negative: it does not say. */
void br_metrics_asked(br_model_metrics *m, int64_t n, int64_t max_tokens);
/* Where the q-th part lies, as if a bucket were filled evenly; 0: none. */
double br_hist_quantile(const br_model_metrics *m, br_hist_id id, double q);
bool br_hist_is_seconds(br_hist_id id);
/* Before the samples of a figure, room (brass_) and name; and of one of them,
 * {model_name="..", without what closes it. */
void br_metrics_head(br_str *out, const char *room, const char *name,
                     const char *type, const char *help);
void br_metrics_name(br_str *out, const char *room, const char *name,
                     const char *model);
/* models: no two of one name. */
void br_metrics_text(const br_metrics *m, const br_metrics_model *models,
                     size_t n, uint32_t conns, br_str *out);

#endif
