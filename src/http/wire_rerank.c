/* wire_rerank.c - answers of /v1/rerank: documents in order of how near they
 * are to a query.
 *
 * Nearness is the cosine between what the model makes of each, so any model
 * that makes embeddings ranks. The choices are the documents, in the order of
 * the request, and the query behind them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/gen.h"

#include <math.h>
#include <stdlib.h>

typedef struct ranked {
    uint32_t index;
    double score;
} ranked;

static int
best_first(const void *a_, const void *b_)
{
    const ranked *a = a_, *b = b_;

    if (a->score != b->score)
        return a->score < b->score ? 1 : -1;
    return a->index < b->index ? -1 : 1;
}

/* Both of length 1, but for what floats are off: what is asked for has 1, no
 * more. */
static double
nearness(const br_choice *a, const br_choice *b)
{
    const float *x = (const float *)(const void *)a->text.at;
    const float *y = (const float *)(const void *)b->text.at;
    size_t n = BR_MIN(a->text.n, b->text.n) / sizeof *x;
    double sum = 0, xx = 0, yy = 0;

    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)y[i];
        xx += (double)x[i] * (double)x[i];
        yy += (double)y[i] * (double)y[i];
    }
    return xx > 0 && yy > 0 ? sum / sqrt(xx * yy) : 0;
}

/* In the words of TEI, or of the others. */
static void
put_one(const br_gen *g, const ranked *r, br_str *out)
{
    bool bare = g->ask.bare;

    br_str_printf(out, "{\"index\":%u,\"%s\":%.9g", r->index,
                  bare ? "score" : "relevance_score", r->score);
    if (g->ask.echo) {
        br_str_puts(out, bare ? ",\"text\":" : ",\"document\":{\"text\":");
        br_put_json(out, g->ask.prompts.at[r->index].text);
        br_str_puts(out, bare ? "" : "}");
    }
    br_str_putc(out, '}');
}

static void
whole(br_gen *g, br_str *out)
{
    uint32_t n = g->n_choices - 1, most = n;
    ranked *r = br_try_calloc(n, sizeof *r);

    if (!r) {
        out->oom = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        r[i] = (ranked){i, nearness(&g->choices[i], &g->choices[n])};
        out->oom |= g->choices[i].text.oom;
    }
    qsort(r, n, sizeof *r, best_first);
    if (g->ask.top_n && g->ask.top_n < (int64_t)n)
        most = (uint32_t)g->ask.top_n;
    if (!g->ask.bare) {
        br_str_puts(out, "{\"id\":");
        br_put_jsonz(out, g->id);
        br_str_puts(out, ",\"object\":\"list\",\"model\":");
        br_put_jsonz(out, g->model->m.name);
        br_str_puts(out, ",\"results\":");
    }
    for (uint32_t i = 0; i < most; i++) {
        br_str_putc(out, i ? ',' : '[');
        put_one(g, &r[i], out);
    }
    br_str_putc(out, ']');
    if (!g->ask.bare)
        br_str_printf(out,
                      ",\"usage\":{\"prompt_tokens\":%u,\"total_tokens\":%u}}",
                      g->n_prompt, g->n_prompt);
    br_free(r);
}

static const br_wire reranking = {
    .id = "rerank-", .api = BR_API_RERANK, .whole = whole, .embeds = true};

void
br_on_rerank(br_http *h, br_http_conn *c)
{
    br_gen_start(h, c, &reranking);
}
