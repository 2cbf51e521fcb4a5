/* tune_search.c - see tune_search.h.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tune_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST = 12, /* pairs of a round, at most */
    AGAIN = 20,
    LAST = 16,
    LEAST = 6, /* before a look may end early */
    /* Of the budget, for the last round: it is what is told. */
    LAST_SHARE = 8,
};

/* What a value has to gain at least. Two copies of one setting, medians of 12
 * pairs on a machine with neighbours: .99 to 1.01. */
static const double least_gain = .01;

typedef struct search {
    const br_tune_meter *m;
    const br_tune_config *c;
    br_tune_result *r;
    uint64_t bits[BR_TUNE_KINDS];
    int64_t end_ns;
    br_status *st;
} search;

const char *
br_tune_kind_name(int kind)
{
    static const char *const names[BR_TUNE_KINDS] = {"answer", "deep", "batch",
                                                     "prompt"};

    return names[kind];
}

const char *
br_tune_verdict_name(br_tune_verdict v)
{
    static const char *const names[BR_TUNE_VERDICTS] = {"slower", "equal",
                                                        "faster", "ended"};

    return names[v];
}

const char *
br_tune_round_name(br_tune_round r)
{
    return r == BR_TUNE_FIRST ? "first" : r == BR_TUNE_AGAIN ? "again" : "last";
}

/* ---- one look ------------------------------------------------------------ */

static int
ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Of n > 0 numbers, which are sorted. */
static double
median(double *x, uint32_t n)
{
    qsort(x, n, sizeof *x, ascending);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* By how much the median of n ratios may be off: twice its standard error, from
 * the median deviation (1.48 of it is a sigma, and 1.25 sigma / sqrt(n) the error
 * of a median), as some pairs meet a neighbour. */
static double
doubt(const double *ratio, uint32_t n, double mid)
{
    double off[AGAIN];

    for (uint32_t i = 0; i < n; i++)
        off[i] = fabs(ratio[i] - mid);
    return BR_MAX(2 * 1.25 * 1.48 * median(off, n) / sqrt(n), least_gain);
}

static void
judge(br_tune_row *row, double *ratio)
{
    double off;

    row->ratio = median(ratio, row->pairs);
    off = doubt(ratio, row->pairs, row->ratio);
    row->verdict = BR_TUNE_EQUAL;
    if (row->ratio < 1 - off && 4 * row->won >= 3 * row->pairs)
        row->verdict = BR_TUNE_FASTER;
    if (row->ratio > 1 + off && 4 * row->won <= row->pairs)
        row->verdict = BR_TUNE_SLOWER;
}

static bool
is_over(const search *s, int64_t end_ns)
{
    if (s->m->stopped && s->m->stopped(s->m->ctx))
        s->r->stopped = true;
    return s->r->stopped || s->m->now_ns(s->m->ctx) >= end_ns;
}

/* Seconds of some steps; the bits have to be the defaults'. */
static br_code
look(search *s, const br_tune_row *row, const br_cpu_tune *t, double *seconds)
{
    uint64_t bits;

    BR_TRY(s->m->look(s->m->ctx, row->kind, t, seconds, &bits, s->st));
    if (bits == s->bits[row->kind])
        return BR_OK;
    if (row->round == BR_TUNE_LAST)
        return br_fail(s->st, BR_E_REJECTED,
                       "what was kept changes the logits of a step (%s)",
                       br_tune_kind_name(row->kind));
    return br_fail(s->st, BR_E_REJECTED,
                   "%s of %u changes the logits of a step (%s): this is a "
                   "fault of brass",
                   br_cpu_knob_name(row->knob), row->value,
                   br_tune_kind_name(row->kind));
}

/* Pairs of `with` and `without` in turn, `most` at most. Who begins changes, as
 * a machine that slows down would favour whoever is first. */
static br_code
compare(search *s, br_tune_row *row, const br_cpu_tune *with,
        const br_cpu_tune *without, uint32_t most)
{
    double ratio[AGAIN], sorted[AGAIN];

    row->pairs = row->won = 0;
    row->ratio = 1;
    row->verdict = BR_TUNE_ENDED;
    while (row->pairs < most) {
        bool begins = row->pairs % 2 == 0;
        double a, b;

        if (is_over(s, s->end_ns))
            break;
        BR_TRY(look(s, row, begins ? with : without, begins ? &a : &b));
        BR_TRY(look(s, row, begins ? without : with, begins ? &b : &a));
        if (!(a > 0 && b > 0))
            return br_fail(s->st, BR_E_INTERNAL, "a step that took no time");
        ratio[row->pairs++] = a / b;
        row->won += a < b;
        if (row->pairs >= LEAST && 2 * row->won <= row->pairs)
            break;
    }
    if (row->pairs >= LEAST) {
        memcpy(sorted, ratio, row->pairs * sizeof *ratio);
        judge(row, sorted);
    }
    if (s->c->told)
        s->c->told(s->c->ctx, row);
    return BR_OK;
}

/* ---- a value ------------------------------------------------------------- */

/* Is it faster in some kind of step, again, and slower in none? It was not tried
 * if the search ended before that was known. */
static br_code
try_value(search *s, br_cpu_knob k, uint32_t value, bool *keep)
{
    br_cpu_tune with = s->r->best;
    bool faster[BR_TUNE_KINDS] = {false}, slower = false;
    int kinds = br_cpu_knob_steps(k) & s->m->kinds;
    br_tune_row row = {.knob = k, .value = value, .than = with.at[k]};

    *keep = false;
    with.at[k] = value;
    for (row.kind = 0; row.kind < BR_TUNE_KINDS && !slower; row.kind++) {
        if (!(kinds & 1 << row.kind))
            continue;
        BR_TRY(compare(s, &row, &with, &s->r->best, FIRST));
        faster[row.kind] = row.verdict == BR_TUNE_FASTER;
        slower = row.verdict == BR_TUNE_SLOWER || row.verdict == BR_TUNE_ENDED;
    }
    row.round = BR_TUNE_AGAIN;
    for (row.kind = 0; row.kind < BR_TUNE_KINDS && !slower; row.kind++) {
        if (!faster[row.kind])
            continue;
        BR_TRY(compare(s, &row, &with, &s->r->best, AGAIN));
        *keep = *keep || row.verdict == BR_TUNE_FASTER;
    }
    if (row.verdict == BR_TUNE_ENDED && !*keep)
        s->r->left++;
    else
        s->r->tried++;
    return BR_OK;
}

static br_code
try_knob(search *s, br_cpu_knob k)
{
    uint32_t value[BR_CPU_TRIES];
    uint32_t n = br_cpu_knob_tries(k, s->c->n_threads, s->r->def.at[k], value);
    bool threads = k == BR_CPU_KNOB_threads || k == BR_CPU_KNOB_many_threads;

    if (!br_cpu_knob_here(k, s->c->isa) ||
        !(br_cpu_knob_steps(k) & s->m->kinds) ||
        (threads && s->c->keep_threads))
        return BR_OK;
    for (uint32_t i = 0; i < n; i++) {
        bool keep;

        if (is_over(s, s->end_ns)) {
            s->r->left++;
            continue;
        }
        BR_TRY(try_value(s, k, value[i], &keep));
        if (keep)
            s->r->best.at[k] = value[i];
    }
    return BR_OK;
}

/* ---- all of it ----------------------------------------------------------- */

static uint32_t
count_kept(const br_tune_result *r)
{
    uint32_t n = 0;

    for (int k = 0; k < BR_CPU_KNOBS; k++)
        n += r->best.at[k] != r->def.at[k];
    return n;
}

/* Kinds of steps in which something is not as the defaults have it. */
static int
kinds_kept(const br_tune_result *r)
{
    int kinds = 0;

    for (br_cpu_knob k = 0; k < BR_CPU_KNOBS; k++)
        if (r->best.at[k] != r->def.at[k])
            kinds |= br_cpu_knob_steps(k);
    return kinds;
}

/* A value stays if some kind of step that reads it was faster beside the defaults
 * and none slower; or if no time was left to look, as it was faster twice. */
static void
drop_others(br_tune_result *r, const br_tune_verdict *verdict)
{
    int looked = 0, faster = 0, slower = 0;

    for (int k = 0; k < BR_TUNE_KINDS; k++) {
        looked |= (verdict[k] != BR_TUNE_ENDED) << k;
        faster |= (verdict[k] == BR_TUNE_FASTER) << k;
        slower |= (verdict[k] == BR_TUNE_SLOWER) << k;
    }
    for (br_cpu_knob k = 0;
         (k = br_cpu_tune_next(&r->best, &r->def, k)) < BR_CPU_KNOBS; k++) {
        int steps = br_cpu_knob_steps(k);

        if ((steps & slower) || ((steps & looked) && !(steps & faster))) {
            r->best.at[k] = r->def.at[k];
            r->dropped++;
        }
    }
    r->n_kept = count_kept(r);
    for (int k = 0; k < BR_TUNE_KINDS; k++)
        if (!(kinds_kept(r) & 1 << k))
            r->ratio[k] = 0;
}

/* What was kept, each value beside those before it, now beside the defaults. */
static br_code
last_round(search *s)
{
    br_tune_row row = {.round = BR_TUNE_LAST, .knob = BR_CPU_KNOBS};
    br_tune_verdict verdict[BR_TUNE_KINDS];
    br_tune_result *r = s->r;
    int kinds = kinds_kept(r) & s->m->kinds;

    for (row.kind = 0; row.kind < BR_TUNE_KINDS; row.kind++) {
        verdict[row.kind] = BR_TUNE_ENDED;
        if (!(kinds & 1 << row.kind))
            continue;
        BR_TRY(compare(s, &row, &r->best, &r->def, LAST));
        verdict[row.kind] = row.verdict;
        if (row.verdict != BR_TUNE_ENDED)
            r->ratio[row.kind] = row.ratio;
    }
    drop_others(r, verdict);
    return BR_OK;
}

br_code
br_tune_search(br_tune_result *r, const br_tune_meter *m,
               const br_tune_config *c, br_status *st)
{
    search s = {.m = m, .c = c, .r = r, .st = st};
    int64_t begun = m->now_ns(m->ctx);
    double seconds;

    *r = (br_tune_result){0};
    br_cpu_tune_default(&r->def, c->n_threads);
    r->best = r->def;
    for (int k = 0; k < BR_TUNE_KINDS; k++)
        if (m->kinds & 1 << k)
            BR_TRY(m->look(m->ctx, k, &r->def, &seconds, &s.bits[k], st));
    s.end_ns = begun + c->budget_ns - c->budget_ns / LAST_SHARE;
    for (br_cpu_knob k = 0; k < BR_CPU_KNOBS; k++)
        BR_TRY(try_knob(&s, k));
    r->n_kept = count_kept(r);
    s.end_ns = begun + c->budget_ns;
    return r->n_kept ? last_round(&s) : BR_OK;
}
