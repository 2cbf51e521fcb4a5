/* ledger.c - what tenants have had, counted as it happens.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/engine_int.h"

static void
note(histogram *h, int64_t ns)
{
    uint64_t us = (uint64_t)BR_MAX(ns, 1000) / 1000;
    unsigned octave = 63 - (unsigned)__builtin_clzll(us);
    uint64_t part =
        octave < 4 ? (us << (4 - octave)) & 15 : (us >> (octave - 4)) & 15;

    octave = BR_MIN(octave, 31u);
    h->n[octave * 16 + part]++;
    h->sum++;
}

/* Upper end of the bucket, in ms. */
static double
quantile(const histogram *h, double q)
{
    double want = q * (double)h->sum, seen = 0;

    for (uint32_t i = 0; i < BR_COUNT(h->n) && h->sum; i++) {
        seen += h->n[i];
        if (h->n[i] && seen >= want)
            return (double)(UINT64_C(1) << (i / 16)) * (17 + (double)(i % 16)) /
                   16e3;
    }
    return 0;
}

void
br_ledger_token(etenant *t, const token_note *n)
{
    t->ledger.tokens_generated++;
    note(n->first ? &t->first : &t->next, n->ns);
}

void
br_ledger_end(etenant *t, const request *r)
{
    br_ledger *l = &t->ledger;

    l->requests_done += !r->d.counted;
    l->kv_page_seconds += r->usage.kv_page_seconds;
    l->slots_preempted += r->usage.n_preempted;
    l->slots_parked += r->usage.n_parked;
    if (!r->admitted_ns)
        return;
    l->slots_admitted += 1 + r->usage.n_preempted + r->usage.n_parked;
    if (r->d.n_done || r->d.prompt_counted) /* when it began */
        return;
    l->tokens_prompted += r->n_prompt;
    l->tokens_cached += r->usage.n_cached;
    /* half of it is forgotten after 22 requests */
    l->prefix_hit_rate +=
        ((double)r->usage.n_cached / r->n_prompt - l->prefix_hit_rate) / 32;
}

br_ledger
br_ledger_of(const etenant *t)
{
    br_ledger l = t->ledger;

    l.p50_ttft_ms = quantile(&t->first, 0.5);
    l.p99_ttft_ms = quantile(&t->first, 0.99);
    l.p50_decode_ms = quantile(&t->next, 0.5);
    l.p99_decode_ms = quantile(&t->next, 0.99);
    return l;
}
