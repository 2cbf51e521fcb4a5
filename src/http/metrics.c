/* metrics.c - see metrics.h. Each figure has our name and, where dashboards
 * know one, vLLM's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/metrics.h"

#include "model/unicode.h"

#include <stdio.h>
#include <string.h>

enum { S, N };
static const double all_bounds[2][BR_HIST_BUCKETS - 1] = {
    [S] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10,
           60},
    [N] = {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 20000, 100000}};

static const struct {
    const char *name;
    int unit;
} hists[] = {
#define X(name, unit, text) {text, unit},
#include "http/hist.def"
#undef X
};

bool
br_hist_is_seconds(br_hist_id id)
{
    return hists[id].unit == S;
}

static void
add(br_model_metrics *m, br_hist_id id, double v)
{
    const double *bounds = all_bounds[hists[id].unit];
    br_hist *h = &m->hist[id];
    size_t i = 0;

    while (i < BR_HIST_BUCKETS - 1 && v > bounds[i])
        i++;
    h->bucket[i]++;
    h->n++;
    h->sum += v;
}

double
br_hist_quantile(const br_model_metrics *m, br_hist_id id, double q)
{
    const double *bounds = all_bounds[hists[id].unit];
    const br_hist *h = &m->hist[id];
    double want = q * (double)h->n, sum = 0;

    for (size_t i = 0; i < BR_HIST_BUCKETS; i++) {
        double in = (double)h->bucket[i], lo = i ? bounds[i - 1] : 0;
        double hi = bounds[BR_MIN(i, (size_t)BR_HIST_BUCKETS - 2)];

        if (in > 0 && sum + in >= want)
            return lo + (hi - lo) * (want - sum) / in;
        sum += in;
    }
    return 0;
}

void
br_metrics_asked(br_model_metrics *m, int64_t n, int64_t max_tokens)
{
    add(m, BR_HIST_n, (double)n);
    if (max_tokens >= 0)
        add(m, BR_HIST_most, (double)max_tokens);
}

void
br_metrics_gap(br_model_metrics *m, int64_t ns)
{
    add(m, BR_HIST_token, (double)ns * 1e-9);
}

void
br_metrics_answer(br_metrics *m, int status)
{
    m->answers[status >= 100 && status < 600 ? status / 100 : 0]++;
}

void
br_metrics_usage(br_model_metrics *m, const br_usage *u)
{
    m->finished[u->finish]++;
    add(m, BR_HIST_queue, (double)u->queue_ns * 1e-9);
    add(m, BR_HIST_prompt, u->n_prompt);
    add(m, BR_HIST_generated, u->n_out);
    if (!u->n_out)
        return;
    add(m, BR_HIST_first, (double)u->first_ns * 1e-9);
    add(m, BR_HIST_prefill, (double)u->prefill_ns * 1e-9);
    add(m, BR_HIST_decode, (double)u->decode_ns * 1e-9);
    add(m, BR_HIST_inference, (double)(u->prefill_ns + u->decode_ns) * 1e-9);
    add(m, BR_HIST_e2e, (double)(u->first_ns + u->decode_ns) * 1e-9);
    if (u->n_out < 2)
        return;
    add(m, BR_HIST_tpot, (double)u->decode_ns * 1e-9 / (u->n_out - 1));
}

/* ---- text ---------------------------------------------------------------- */

/* All models' samples of a figure stand together, below its head. */
void
br_metrics_head(br_str *out, const char *room, const char *name,
                const char *type, const char *help)
{
    br_str_printf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", room, name, help,
                  room, name, type);
}

/* name{model_name="demo"; a label's value may not hold all as it is. One byte
 * that is no UTF-8, as names of files may have it, and the scrape is refused. */
void
br_metrics_name(br_str *out, const char *room, const char *name,
                const char *model)
{
    const uint8_t *p = (const uint8_t *)model, *end = p + strlen(model);
    uint32_t c;

    br_str_printf(out, "%s%s{model_name=\"", room, name);
    while (p < end) {
        char utf8[4];

        p += br_utf8_next(p, end, &c);
        if (c == '"' || c == '\\')
            br_str_putc(out, '\\');
        if (c == '\n')
            br_str_puts(out, "\\n");
        else
            br_str_put(out, utf8, br_utf8_put(utf8, c));
    }
    br_str_putc(out, '"');
}

static void
put_hist(br_str *out, const char *room, br_hist_id id,
         const br_metrics_model *model)
{
    const double *bounds = all_bounds[hists[id].unit];
    const br_hist *h = &model->m->hist[id];
    const char *name = hists[id].name;
    char bucket[64], total[64], count[64];
    uint64_t sum = 0;

    snprintf(bucket, sizeof bucket, "%s_bucket", name);
    snprintf(total, sizeof total, "%s_sum", name);
    snprintf(count, sizeof count, "%s_count", name);
    for (size_t i = 0; i < BR_HIST_BUCKETS; i++) {
        char le[32] = "+Inf";

        sum += h->bucket[i];
        if (i < BR_HIST_BUCKETS - 1)
            snprintf(le, sizeof le, "%g", bounds[i]);
        br_metrics_name(out, room, bucket, model->name);
        br_str_printf(out, ",le=\"%s\"} %llu\n", le, (unsigned long long)sum);
    }
    br_metrics_name(out, room, total, model->name);
    br_str_printf(out, "} %.15g\n", h->sum);
    br_metrics_name(out, room, count, model->name);
    br_str_printf(out, "} %llu\n", (unsigned long long)h->n);
}

static void
put_hists(br_str *out, const char *room, br_hist_id id,
          const br_metrics_model *models, size_t n)
{
    br_metrics_head(out, room, hists[id].name, "histogram",
                    "Of requests that ended.");
    for (size_t i = 0; i < n; i++)
        put_hist(out, room, id, &models[i]);
}

static double
engine_value(const br_engine_stats *s, size_t row)
{
    const double pages =
        s->n_pages ? (double)(s->n_pages - s->pages_free) / s->n_pages : 0;
    const double values[] = {
#define X(name, vllm, type, value, help) (double)(value),
#include "http/metric.def"
#undef X
    };

    return values[row];
}

static void
put_engines(br_str *out, const br_metrics_model *models, size_t n)
{
    static const struct {
        const char *names[2], *type, *help;
    } rows[] = {
#define X(name, vllm, type, value, help) {{name, vllm}, type, help},
#include "http/metric.def"
#undef X
    };
    static const char *const rooms[] = {"brass_", "vllm:"};

    for (size_t r = 0; r < BR_COUNT(rows); r++)
        for (size_t k = 0; k < 2 && rows[r].names[k]; k++) {
            br_metrics_head(out, rooms[k], rows[r].names[k], rows[r].type,
                            rows[r].help);
            for (size_t i = 0; i < n; i++) {
                br_metrics_name(out, rooms[k], rows[r].names[k],
                                models[i].name);
                br_str_printf(out, "} %.17g\n", engine_value(&models[i].s, r));
            }
        }
}

static void
put_finished(br_str *out, const br_metrics_model *models, size_t n)
{
    br_metrics_head(out, "brass_", "request_finished_total", "counter",
                    "Requests by how they ended.");
    for (size_t i = 0; i < n; i++)
        for (int f = 0; f < BR_FINISH_COUNT; f++) {
            br_metrics_name(out, "brass_", "request_finished_total",
                            models[i].name);
            br_str_printf(out, ",reason=\"%s\"} %llu\n",
                          br_finish_name((br_finish)f),
                          (unsigned long long)models[i].m->finished[f]);
        }
}

/* vLLM has three words for it. */
static void
put_success(br_str *out, const br_metrics_model *model)
{
    static const char *const words[] = {"stop", "length", "abort"};
    uint64_t n[3] = {0};

    for (int i = 0; i < BR_FINISH_COUNT; i++) {
        const char *is = br_finish_openai((br_finish)i);
        size_t k = 0;

        while (k < 2 && strcmp(is, words[k]) != 0)
            k++;
        n[k] += model->m->finished[i];
    }
    for (size_t k = 0; k < 3; k++) {
        br_metrics_name(out, "vllm:", "request_success_total", model->name);
        br_str_printf(out, ",finished_reason=\"%s\"} %llu\n", words[k],
                      (unsigned long long)n[k]);
    }
}

static void
put_server(br_str *out, const br_metrics *m, uint32_t conns)
{
    br_str_printf(out,
                  "# HELP brass_http_connections Open connections.\n"
                  "# TYPE brass_http_connections gauge\n"
                  "brass_http_connections %u\n"
                  "# HELP brass_http_cpu_seconds_total Time of the server's "
                  "thread.\n"
                  "# TYPE brass_http_cpu_seconds_total counter\n"
                  "brass_http_cpu_seconds_total{mode=\"user\"} %.6f\n"
                  "brass_http_cpu_seconds_total{mode=\"system\"} %.6f\n",
                  conns, (double)m->user_ns * 1e-9,
                  (double)m->system_ns * 1e-9);
    br_metrics_head(out, "brass_", "http_answers_total", "counter",
                    "Answers by status.");
    for (int i = 2; i < 6; i++)
        br_str_printf(out, "brass_http_answers_total{status=\"%dxx\"} %llu\n",
                      i, (unsigned long long)m->answers[i]);
}

void
br_metrics_text(const br_metrics *m, const br_metrics_model *models, size_t n,
                uint32_t conns, br_str *out)
{
    put_server(out, m, conns);
    if (!n)
        return;
    put_finished(out, models, n);
    br_metrics_head(out, "vllm:", "request_success_total", "counter",
                    "Requests by how they ended.");
    for (size_t i = 0; i < n; i++)
        put_success(out, &models[i]);
    put_engines(out, models, n);
    for (int i = 0; i < BR_HIST_COUNT; i++) {
        put_hists(out, "brass_", (br_hist_id)i, models, n);
        put_hists(out, "vllm:", (br_hist_id)i, models, n);
    }
}
