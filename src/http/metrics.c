/* metrics.c - see metrics.h. Each figure has our name and, where dashboards
 * know one, vLLM's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/metrics.h"

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
add(br_metrics *m, br_hist_id id, double v)
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
br_hist_quantile(const br_metrics *m, br_hist_id id, double q)
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
br_metrics_asked(br_metrics *m, int64_t n, int64_t max_tokens)
{
    add(m, BR_HIST_n, (double)n);
    if (max_tokens >= 0)
        add(m, BR_HIST_most, (double)max_tokens);
}

void
br_metrics_answer(br_metrics *m, int status)
{
    m->answers[status >= 100 && status < 600 ? status / 100 : 0]++;
}

void
br_metrics_usage(br_metrics *m, const br_usage *u)
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
    add(m, BR_HIST_token, (double)u->decode_ns * 1e-9 / (u->n_out - 1));
    add(m, BR_HIST_tpot, (double)u->decode_ns * 1e-9 / (u->n_out - 1));
}

/* ---- text ---------------------------------------------------------------- */

typedef struct row {
    const char *name, *vllm, *type, *help;
    double value;
} row;

static void
put(br_str *out, const char *room, const char *name, const row *r,
    const char *model)
{
    br_str_printf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n%s%s%s ", room, name,
                  r->help, room, name, r->type, room, name, model);
    br_str_printf(out, "%.17g\n", r->value);
}

static void
put_hist(br_str *out, const char *room, br_hist_id id, const br_hist *h,
         const char *label)
{
    const double *bounds = all_bounds[hists[id].unit];
    const char *name = hists[id].name;
    uint64_t sum = 0;

    br_str_printf(out,
                  "# HELP %s%s Of requests that ended.\n"
                  "# TYPE %s%s histogram\n",
                  room, name, room, name);
    for (size_t i = 0; i < BR_HIST_BUCKETS; i++) {
        char le[32] = "+Inf";

        sum += h->bucket[i];
        if (i < BR_HIST_BUCKETS - 1)
            snprintf(le, sizeof le, "%g", bounds[i]);
        br_str_printf(out, "%s%s_bucket{%s,le=\"%s\"} %llu\n", room, name,
                      label, le, (unsigned long long)sum);
    }
    br_str_printf(out, "%s%s_sum{%s} %.9g\n%s%s_count{%s} %llu\n", room, name,
                  label, h->sum, room, name, label, (unsigned long long)h->n);
}

static void
put_engine(br_str *out, const br_engine_stats *s, const char *braced)
{
    double pages =
        s->n_pages ? (double)(s->n_pages - s->pages_free) / s->n_pages : 0;
    const row rows[] = {
#define X(name, vllm, type, value, help) \
    {name, vllm, type, help, (double)(value)},
#include "http/metric.def"
#undef X
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        put(out, "brass_", rows[i].name, &rows[i], braced);
        if (rows[i].vllm)
            put(out, "vllm:", rows[i].vllm, &rows[i], braced);
    }
}

static void
put_answers(const br_metrics *m, br_str *out)
{
    br_str_puts(out, "# HELP brass_http_answers_total Answers by status.\n"
                     "# TYPE brass_http_answers_total counter\n");
    for (int i = 2; i < 6; i++)
        br_str_printf(out, "brass_http_answers_total{status=\"%dxx\"} %llu\n",
                      i, (unsigned long long)m->answers[i]);
    br_str_puts(out, "# HELP brass_request_finished_total Requests by how they "
                     "ended.\n# TYPE brass_request_finished_total counter\n");
    for (int i = 0; i < BR_FINISH_COUNT; i++)
        br_str_printf(out, "brass_request_finished_total{reason=\"%s\"} %llu\n",
                      br_finish_name((br_finish)i),
                      (unsigned long long)m->finished[i]);
}

/* vLLM has three words for it. */
static void
put_success(const br_metrics *m, const char *label, br_str *out)
{
    static const char *const words[] = {"stop", "length", "abort"};
    uint64_t n[3] = {0};

    for (int i = 0; i < BR_FINISH_COUNT; i++) {
        const char *is = br_finish_openai((br_finish)i);
        size_t k = 0;

        while (k < 2 && strcmp(is, words[k]) != 0)
            k++;
        n[k] += m->finished[i];
    }
    br_str_puts(out, "# HELP vllm:request_success_total Requests by how they "
                     "ended.\n# TYPE vllm:request_success_total counter\n");
    for (size_t k = 0; k < 3; k++)
        br_str_printf(
            out, "vllm:request_success_total{%s,finished_reason=\"%s\"} %llu\n",
            label, words[k], (unsigned long long)n[k]);
}

/* A label's value may not hold these as they are. */
static void
put_label(br_str *out, const char *z)
{
    for (; *z; z++) {
        if (*z == '"' || *z == '\\')
            br_str_putc(out, '\\');
        if (*z == '\n')
            br_str_puts(out, "\\n");
        else
            br_str_putc(out, *z);
    }
}

void
br_metrics_text(const br_metrics *m, const br_engine_stats *s,
                const char *model, uint32_t conns, br_str *out)
{
    br_str label = {0}, braced = {0};

    br_str_puts(&label, "model_name=\"");
    put_label(&label, model);
    br_str_puts(&label, "\"");
    br_str_printf(&braced, "{%s}", br_str_z(&label));
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
    put_answers(m, out);
    put_success(m, br_str_z(&label), out);
    if (s)
        put_engine(out, s, br_str_z(&braced));
    for (int i = 0; i < BR_HIST_COUNT; i++) {
        put_hist(out, "brass_", (br_hist_id)i, &m->hist[i], br_str_z(&label));
        put_hist(out, "vllm:", (br_hist_id)i, &m->hist[i], br_str_z(&label));
    }
    out->oom |= label.oom || braced.oom;
    br_str_fini(&label);
    br_str_fini(&braced);
}
