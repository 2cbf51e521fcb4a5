/* metrics.c - see metrics.h. Each figure has our name and, where dashboards
 * know one, vLLM's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/metrics.h"

#include <stdio.h>

static const double bounds[BR_HIST_BUCKETS - 1] = {
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60};

static const char *const hist_names[] = {
#define X(name, text) text,
#include "http/hist.def"
#undef X
};

void
br_hist_add(br_hist *h, double seconds)
{
    size_t i = 0;

    while (i < BR_COUNT(bounds) && seconds > bounds[i])
        i++;
    h->bucket[i]++;
    h->n++;
    h->sum += seconds;
}

double
br_hist_quantile(const br_hist *h, double q)
{
    double want = q * (double)h->n, sum = 0;

    for (size_t i = 0; i < BR_HIST_BUCKETS; i++) {
        double in = (double)h->bucket[i], lo = i ? bounds[i - 1] : 0;
        double hi = bounds[BR_MIN(i, BR_COUNT(bounds) - 1)];

        if (in > 0 && sum + in >= want)
            return lo + (hi - lo) * (want - sum) / in;
        sum += in;
    }
    return 0;
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
    br_hist_add(&m->hist[BR_HIST_queue], (double)u->queue_ns * 1e-9);
    if (!u->n_out)
        return;
    br_hist_add(&m->hist[BR_HIST_first], (double)u->first_ns * 1e-9);
    br_hist_add(&m->hist[BR_HIST_prefill], (double)u->prefill_ns * 1e-9);
    br_hist_add(&m->hist[BR_HIST_decode], (double)u->decode_ns * 1e-9);
    br_hist_add(&m->hist[BR_HIST_e2e],
                (double)(u->first_ns + u->decode_ns) * 1e-9);
    if (u->n_out > 1)
        br_hist_add(&m->hist[BR_HIST_token],
                    (double)u->decode_ns * 1e-9 / (u->n_out - 1));
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
put_hist(br_str *out, const char *room, const char *name, const br_hist *h,
         const char *label)
{
    uint64_t sum = 0;

    br_str_printf(out,
                  "# HELP %s%s Of requests that ended.\n"
                  "# TYPE %s%s histogram\n",
                  room, name, room, name);
    for (size_t i = 0; i < BR_HIST_BUCKETS; i++) {
        char le[32] = "+Inf";

        sum += h->bucket[i];
        if (i < BR_COUNT(bounds))
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
    if (s)
        put_engine(out, s, br_str_z(&braced));
    for (int i = 0; i < BR_HIST_COUNT; i++) {
        put_hist(out, "brass_", hist_names[i], &m->hist[i], br_str_z(&label));
        put_hist(out, "vllm:", hist_names[i], &m->hist[i], br_str_z(&label));
    }
    out->oom |= label.oom || braced.oom;
    br_str_fini(&label);
    br_str_fini(&braced);
}
