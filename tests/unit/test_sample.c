/* test_sample.c - every filter against its definition, draws against exact
 * probabilities.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/sample.h"

#include "t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

enum { N = 300 };

static br_sample_params
plain(void)
{
    br_sample_params p = br_sample_defaults();

    p.temperature = 1;
    p.top_k = 0;
    p.top_p = p.typical = 1;
    p.min_p = 0;
    return p;
}

static br_sampler *
sampler(const br_sample_params *p, int32_t n)
{
    br_status st = {0};
    br_sampler *s;

    t_ok(br_sampler_new(&s, n, 64, p, &st), &st);
    return s;
}

static int32_t
pick(br_sampler *s, const float *x, uint64_t at)
{
    br_status st = {0};
    int32_t id;

    t_ok(br_sampler_pick(s, x, at, &id, &st), &st);
    return id;
}

/* Logits with many ties: multiples of 1/4 in [-8, 8). */
static void
rough(float *x, int32_t n, uint64_t *state)
{
    for (int32_t i = 0; i < n; i++)
        x[i] = (float)(t_rand(state) % 64) / 4 - 8;
}

/* ---- candidates by definition -------------------------------------------- */

typedef struct row {
    int32_t id;
    double x, by; /* by: what is sorted on, descending */
    uint64_t w;
    bool kept;
} row;

static int
order(const void *a, const void *b)
{
    const row *p = a, *q = b;

    if (p->by != q->by)
        return p->by < q->by ? 1 : -1;
    return p->id < q->id ? -1 : 1;
}

typedef struct table {
    row r[N];
    size_t n;
} table;

/* Shortest head of the sorted rows with sum >= part of all of them. */
static void
head_of(table *t, double part)
{
    uint64_t all = 0, sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        all += t->r[i].w;
    qsort(t->r, t->n, sizeof(row), order);
    while (n < t->n && (n == 0 || (double)sum < part * (double)all))
        sum += t->r[n++].w;
    t->n = n;
}

static void
by_definition(table *t, const float *x, const br_sample_params *p)
{
    double max = -1e30, mean = 0, all = 0;
    uint64_t best = 0;
    size_t n = 0;

    for (int i = 0; i < N; i++)
        max = fmax(max, (double)x[i]);
    for (int i = 0; i < N; i++) {
        double d = ((double)x[i] - max) / (double)p->temperature;
        uint64_t w = (uint64_t)(exp(d) * 0x1p44 + 0.5);

        t->r[i] = (row){i, d, d, w, false};
    }
    t->n = N;
    if (p->top_k && p->top_k < N) {
        qsort(t->r, N, sizeof(row), order);
        t->n = (size_t)p->top_k;
    }
    if (p->typical < 1) {
        for (size_t i = 0; i < t->n; i++) {
            mean += (double)t->r[i].w * t->r[i].x;
            all += (double)t->r[i].w;
        }
        for (size_t i = 0; i < t->n; i++)
            t->r[i].by = -(double)(float)fabs(t->r[i].x - mean / all);
        head_of(t, (double)p->typical);
        for (size_t i = 0; i < t->n; i++)
            t->r[i].by = t->r[i].x;
    }
    if (p->top_p < 1)
        head_of(t, (double)p->top_p);
    for (size_t i = 0; i < t->n; i++)
        best = BR_MAX(best, t->r[i].w);
    for (size_t i = 0; i < t->n; i++)
        if ((double)t->r[i].w >= (double)p->min_p * (double)best)
            t->r[n++] = t->r[i];
    t->n = n;
}

static void
same_set(const br_sampler *s, const table *t)
{
    const br_candidate *c;
    size_t n, wrong = 0;

    c = br_sampler_candidates(s, &n);
    ck_assert_uint_eq(n, t->n);
    for (size_t i = 0; i < n; i++) {
        bool found = false;

        for (size_t k = 0; k < n; k++)
            found |= t->r[k].id == c[i].id &&
                     llabs((int64_t)(t->r[k].w - c[i].weight)) <= 1;
        wrong += !found || (i && c[i].id <= c[i - 1].id);
    }
    ck_assert_uint_eq(wrong, 0);
}

static void
sets_agree(br_sample_params p)
{
    uint64_t state = 7;
    float x[N];
    table *t = t_keep(malloc(sizeof *t));

    for (int round = 0; round < 40; round++) {
        br_sampler *s = sampler(&p, N);

        rough(x, N, &state);
        pick(s, x, (uint64_t)round);
        by_definition(t, x, &p);
        same_set(s, t);
        br_sampler_free(s);
    }
}

TEST(sample_top_k_keeps_the_k_best_ties_by_lowest_id)
{
    for (int32_t k = 2; k < 400; k += 23) {
        br_sample_params p = plain();

        p.top_k = k;
        sets_agree(p);
    }
}

/* Large enough to be looked at in blocks; the last tokens are no whole one. */
TEST(sample_top_k_of_a_large_vocabulary)
{
    enum { LARGE = 64 * 200 + 13 };
    static float x[LARGE];
    static row r[LARGE];
    br_sample_params p = plain();
    uint64_t state = 3;

    for (int round = 0; round < 12; round++) {
        const br_candidate *c;
        uint64_t best = 0;
        br_sampler *s;
        size_t n;

        p.top_k = 2 + round * 4;
        s = sampler(&p, LARGE);
        rough(x, LARGE, &state);
        for (int i = 0; i < LARGE; i++) {
            x[i] = round % 3 == 1 && i % 2   ? -INFINITY
                   : round % 3 == 2 && i < 5 ? 90.0f
                                             : x[i] + (float)(i / 6000);
            r[i] = (row){.id = i, .by = (double)x[i]};
        }
        pick(s, x, (uint64_t)round);
        c = br_sampler_candidates(s, &n);
        qsort(r, LARGE, sizeof *r, order);
        while (best < (uint64_t)p.top_k && r[best].by > r[0].by - 31)
            best++;
        ck_assert_uint_eq(n, best);
        for (size_t i = 0; i < n; i++) {
            size_t k = 0;

            while (k < n && r[k].id != c[i].id)
                k++;
            ck_assert_msg(k < n, "round %d: token %d", round, c[i].id);
        }
        br_sampler_free(s);
    }
}

TEST(sample_top_p_keeps_the_shortest_head)
{
    const float parts[] = {0, 0.01f, 0.25f, 0.5f, 0.77f, 0.9f, 0.999f};

    for (size_t i = 0; i < BR_COUNT(parts); i++) {
        br_sample_params p = plain();

        p.top_p = parts[i];
        sets_agree(p);
        p.temperature = 4;
        sets_agree(p);
    }
}

TEST(sample_min_p_is_relative_to_the_best)
{
    const float parts[] = {0.001f, 0.06f, 0.3f, 1};

    for (size_t i = 0; i < BR_COUNT(parts); i++) {
        br_sample_params p = plain();

        p.min_p = parts[i];
        p.temperature = 2;
        sets_agree(p);
    }
}

TEST(sample_typical_keeps_what_is_near_the_entropy)
{
    const float parts[] = {0.05f, 0.4f, 0.81f, 0.97f};

    for (size_t i = 0; i < BR_COUNT(parts); i++) {
        br_sample_params p = plain();

        p.typical = parts[i];
        p.temperature = 3;
        sets_agree(p);
    }
}

TEST(sample_filters_work_one_after_the_other)
{
    br_sample_params p = plain();

    p.top_k = 120;
    p.typical = 0.95f;
    p.top_p = 0.8f;
    p.min_p = 0.02f;
    p.temperature = 2.5f;
    sets_agree(p);
}

/* ---- draws --------------------------------------------------------------- */

/* 40,000 draws of 12 tokens: chi-square with 11 degrees of freedom is over
 * 50 once in two million. */
static void
draws_fit(float temperature, uint64_t seed)
{
    const float x[12] = {0,     1, -1, 2.5f, 2.5f, -3,
                         0.25f, 2, 1,  -2,   1.5f, -INFINITY};
    enum { DRAWS = 40000 };
    double p[12], z = 0, chi = 0;
    int seen[12] = {0};
    br_sample_params q = plain();
    br_sampler *s;

    q.temperature = temperature;
    q.seed = seed;
    s = sampler(&q, 12);
    for (int i = 0; i < 12; i++)
        z += p[i] = exp((double)x[i] / (double)temperature);
    for (uint64_t at = 0; at < DRAWS; at++)
        seen[pick(s, x, at)]++;
    for (int i = 0; i < 11; i++) {
        double want = DRAWS * p[i] / z;

        chi += (seen[i] - want) * (seen[i] - want) / want;
    }
    ck_assert_int_eq(seen[11], 0);
    ck_assert_msg(chi < 50, "temperature %g: chi-square %g",
                  (double)temperature, chi);
    ck_assert_msg(chi > 0.5, "too good to be chance: %g", chi);
    br_sampler_free(s);
}

TEST(sample_draws_follow_the_probabilities)
{
    draws_fit(1, 1);
    draws_fit(2, 2);
    draws_fit(0.5f, UINT64_MAX);
}

TEST(sample_is_a_function_of_seed_and_position)
{
    br_sample_params p = plain();
    uint64_t state = 3;
    int differ = 0;
    float x[N];
    br_sampler *a, *b, *c;

    p.temperature = 5;
    a = sampler(&p, N);
    b = sampler(&p, N);
    p.seed = 1;
    c = sampler(&p, N);
    rough(x, N, &state);
    for (uint64_t at = 0; at < 100; at++) {
        int32_t first = pick(a, x, at);

        ck_assert_int_eq(first, pick(b, x, at));
        pick(b, x, at + 1000); /* what was drawn before does not matter */
        differ += first != pick(c, x, at);
    }
    ck_assert_int_gt(differ, 80);
    br_sampler_free(a);
    br_sampler_free(b);
    br_sampler_free(c);
}

TEST(sample_greedy_takes_the_lowest_of_the_best)
{
    const float x[6] = {-1, 3, -INFINITY, 3, 2, -0.0f};
    const float zero[4] = {-1, -0.0f, 0.0f, -0.0f};
    br_sample_params p = plain();
    br_sampler *s;

    p.temperature = 0;
    s = sampler(&p, 6);
    ck_assert_int_eq(pick(s, x, 9), 1);
    br_sampler_free(s);
    p = plain();
    p.top_k = 1;
    s = sampler(&p, 4);
    for (uint64_t at = 0; at < 50; at++)
        ck_assert_int_eq(pick(s, zero, at), 1);
    br_sampler_free(s);
}

/* ---- knobs on logits ----------------------------------------------------- */

/* Weight of token i, relative to token 0, in nats. */
static double
shift(br_sampler *s, const float *x, int32_t i)
{
    const br_candidate *c;
    double w0 = 0, w = 0;
    size_t n;

    pick(s, x, 0);
    c = br_sampler_candidates(s, &n);
    for (size_t k = 0; k < n; k++) {
        if (c[k].id == 0)
            w0 = (double)c[k].weight;
        if (c[k].id == i)
            w = (double)c[k].weight;
    }
    return log(w / w0);
}

static bool
near(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

TEST(sample_penalties_by_hand)
{
    const float x[5] = {0, 2, -2, 2, 1};
    br_sample_params p = plain();
    br_sampler *s;

    p.penalty_last_n = 3;
    p.repeat = 2;
    p.presence = 0.5f;
    p.frequency = 0.25f;
    s = sampler(&p, 5);
    ck_assert(near(shift(s, x, 1), 2));
    br_sampler_accept(s, 4); /* will have left the window */
    br_sampler_accept(s, 1);
    br_sampler_accept(s, 2);
    br_sampler_accept(s, 1);
    ck_assert(near(shift(s, x, 1), 2.0 / 2 - 0.5 - 2 * 0.25));
    ck_assert(near(shift(s, x, 2), -2.0 * 2 - 0.5 - 0.25));
    ck_assert(near(shift(s, x, 3), 2));
    ck_assert(near(shift(s, x, 4), 1));
    br_sampler_reset(s);
    ck_assert(near(shift(s, x, 1), 2));
    br_sampler_free(s);
}

/* The window counts right across the point where the history is folded. */
TEST(sample_penalty_window_survives_a_long_text)
{
    float x[20] = {0};
    br_sample_params p = plain();
    uint64_t state = 11;
    int32_t text[500];
    br_sampler *s;

    p.penalty_last_n = -1; /* all: 64 in these tests */
    p.frequency = 0.01f;
    s = sampler(&p, 20);
    for (int i = 0; i < 500; i++) {
        int count[20] = {0};

        text[i] = 1 + (int32_t)(t_rand(&state) % 19);
        br_sampler_accept(s, text[i]);
        for (int k = BR_MAX(0, i - 63); k <= i; k++)
            count[text[k]]++;
        if (i % 7 == 0)
            for (int32_t k = 1; k < 20; k++)
                ck_assert(fabs(shift(s, x, k) + 0.01 * count[k]) < 1e-5);
    }
    br_sampler_free(s);
}

/* Longest n such that text ends in the n tokens that stand before a `next`. */
static uint32_t
repeats(const int32_t *text, int n, int32_t next, int32_t breaker)
{
    uint32_t best = 0;

    for (int j = 1; j < n; j++) {
        uint32_t len = 0;

        if (text[j] != next)
            continue;
        while ((int)len < j &&
               text[j - 1 - (int)len] == text[n - 1 - (int)len] &&
               text[n - 1 - (int)len] != breaker)
            len++;
        best = BR_MAX(best, len);
    }
    return best;
}

TEST(sample_dry_against_its_definition)
{
    const float x[5] = {0};
    const int32_t breaker = 4;
    br_sample_params p = plain();
    uint64_t state = 5;

    p.dry_multiplier = 0.125f;
    p.dry_base = 1.25f;
    p.dry_breakers = &breaker;
    p.n_dry_breakers = 1;
    for (int round = 0; round < 60; round++) {
        br_sampler *s = sampler(&p, 5);
        int32_t text[64];
        int n = 2 + (int)(t_rand(&state) % 50);

        for (int i = 0; i < n; i++) {
            uint64_t v = t_rand(&state) % 9;

            text[i] = v == 8           ? 4
                      : v < 6 && i > 3 ? text[i - 3]
                                       : 1 + (int)v % 3;
            br_sampler_accept(s, text[i]);
        }
        for (int32_t i = 1; i < 5; i++) {
            uint32_t len = repeats(text, n, i, breaker);
            double want = len < 2 ? 0 : 0.125 * pow(1.25, len - 2.0);

            ck_assert_msg(fabs(shift(s, x, i) + want) < 1e-5,
                          "round %d token %d: %g, want %g", round, i,
                          shift(s, x, i), -want);
        }
        br_sampler_free(s);
    }
}

TEST(sample_bias_adds_and_bans)
{
    const float x[3] = {0, 1, 2};
    const br_logit_bias bias[] = {{1, 0.5f}, {2, -INFINITY}};
    const br_logit_bias all[] = {
        {0, -INFINITY}, {1, -INFINITY}, {2, -INFINITY}};
    br_sample_params p = plain();
    br_status st = {0};
    br_sampler *s;
    int32_t id;

    p.bias = bias;
    p.n_bias = 2;
    s = sampler(&p, 3);
    ck_assert(near(shift(s, x, 1), 1.5));
    for (uint64_t at = 0; at < 200; at++)
        ck_assert_int_ne(pick(s, x, at), 2);
    br_sampler_free(s);
    p.bias = all;
    p.n_bias = 3;
    s = sampler(&p, 3);
    ck_assert_int_eq(br_sampler_pick(s, x, 0, &id, &st), BR_E_REJECTED);
    br_sampler_free(s);
}

/* ---- reports and refusals ------------------------------------------------ */

TEST(sample_logprobs_are_the_models_own)
{
    const float x[5] = {1, 3, 2, 3, -INFINITY};
    br_sample_params p = br_sample_defaults();
    double z = log(exp(1) + 2 * exp(3) + exp(2));
    const br_logprob *r;
    br_sampler *s;
    size_t n;
    int32_t id;

    p.logprobs = true;
    p.n_logprobs = 9;
    s = sampler(&p, 5);
    id = pick(s, x, 4);
    r = br_sampler_logprobs(s, &n);
    ck_assert_uint_eq(n, 5); /* the chosen one, and four that can come */
    ck_assert_int_eq(r[0].id, id);
    ck_assert_int_eq(r[1].id, 1);
    ck_assert_int_eq(r[2].id, 3);
    ck_assert_int_eq(r[3].id, 2);
    for (size_t i = 0; i < n; i++)
        ck_assert(fabs((double)r[i].logprob - ((double)x[r[i].id] - z)) < 1e-6);
    br_sampler_free(s);
}

TEST(sample_refuses_what_is_no_number)
{
    br_sample_params p = plain();
    br_sampler *s = sampler(&p, 3);
    br_status st = {0};
    int32_t id;

    ck_assert_int_eq(
        br_sampler_pick(s, (const float[]){0, NAN, 1}, 0, &id, &st),
        BR_E_INTERNAL);
    st = (br_status){0};
    ck_assert_int_eq(
        br_sampler_pick(s, (const float[]){0, INFINITY, 1}, 0, &id, &st),
        BR_E_INTERNAL);
    br_sampler_free(s);
}

static void
refuses(br_sample_params p, const char *text)
{
    br_status st = {0};
    br_sampler *s;

    ck_assert_int_eq(br_sampler_new(&s, 10, 8, &p, &st), BR_E_USAGE);
    ck_assert_str_eq(st.msg, text);
    ck_assert_ptr_null(s);
}

TEST(sample_takes_the_ends_of_what_it_names)
{
    br_sample_params p = plain();
    br_status st = {0};

    p.repeat = 0.01f;
    t_ok(br_sample_params_check(&p, 10, &st), &st);
    p.repeat = 0.0099f;
    refuses(p, "repeat penalty: 0.0099 is not between 0.01 and 100");
    p = plain();
    p.temperature = 0.001f;
    t_ok(br_sample_params_check(&p, 10, &st), &st);
}

TEST(sample_names_the_knob_that_is_wrong)
{
    const br_logit_bias bias = {10, 1};
    br_sample_params p = plain();

    p.top_p = 1.5f;
    refuses(p, "top-p: 1.5 is not between 0 and 1");
    p = plain();
    p.temperature = NAN;
    refuses(p, "temperature: nan is not between 0 and 100");
    p = plain();
    p.bias = &bias;
    p.n_bias = 1;
    refuses(p, "logit_bias: there is no token 10 (of 10)");
}

static br_code
make(void *arg, br_status *st)
{
    br_sample_params p = br_sample_defaults();
    br_sampler *s;
    br_code code = br_sampler_new(&s, 100, 10, &p, st);

    (void)arg;
    br_sampler_free(s);
    return code;
}

TEST(sample_survives_every_failed_allocation)
{
    t_each_oom(make, NULL);
}

TEST(sample_allocates_nothing_per_token)
{
    br_sample_params p = br_sample_defaults();
    uint64_t state = 1;
    br_sampler *s;
    size_t before;
    float x[N];

    p.repeat = 1.1f;
    p.dry_multiplier = 0.8f;
    p.typical = 0.9f;
    p.logprobs = true;
    p.n_logprobs = 5;
    s = sampler(&p, N);
    before = t_mem_count();
    for (uint64_t at = 0; at < 300; at++) {
        rough(x, N, &state);
        br_sampler_accept(s, pick(s, x, at));
    }
    ck_assert_uint_eq(t_mem_count(), before);
    br_sampler_free(s);
}
