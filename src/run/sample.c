/* sample.c - see sample.h.
 *
 * Candidates stand in one array by id, and every filter shortens it in place.
 * top-k and top-p are one function: the shortest head of the order (rank
 * descending, id ascending) whose sum reaches a target, where the sum counts
 * tokens or weights. It is found by four rounds of 256 buckets over the rank's
 * bytes, so nothing is sorted: O(n) for any target. typical is the same with
 * another rank.
 *
 * With top-k, exp is taken of k tokens alone: of those in blocks of 64 whose
 * best is no worse than the k-th best block's. 0.2 ms for 152,000 tokens, where
 * exp of all takes 2.4 ms (on an AMD EPYC; a token at a time 3.3 and 5.4).
 * 24 bytes of memory for each token of the vocabulary.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/sample.h"

#include "base/rng.h"

#include <math.h>
#include <string.h>

__extension__ typedef __int128 i128;

enum {
    /* So many at a time, and compilers use vectors: a vocabulary of 150,000 is
     * looked at twice for every token (350 us without, 77 us with). */
    LANES = 16,
    BLOCK = 64,
};

struct br_sampler {
    br_sample_params p;
    int32_t n_vocab;
    float *x;         /* [n_vocab] logits as the knobs leave them */
    uint32_t *count;  /* [n_vocab] in the penalty window */
    bool counted;     /* some are not 0 */
    uint32_t *dry;    /* [n_vocab] longest repetition it would go on; or 0 */
    bool *breaker;    /* [n_vocab], or NULL */
    int32_t *history; /* [2 * max_history]: the last ones, in order */
    uint32_t *z;      /* [max_history] */
    uint32_t n_history, max_history;
    float *peak;        /* [n_vocab / BLOCK + 1] the best of each block */
    br_candidate *cand; /* [n_vocab] */
    size_t n_cand;
    const int32_t *never;
    size_t n_never;
    size_t n_report;
    br_logprob report[1 + BR_SAMPLE_MAX_LOGPROBS];
};

/* ---- knobs --------------------------------------------------------------- */

br_sample_params
br_sample_defaults(void)
{
    return (br_sample_params){.temperature = 0.8f,
                              .top_k = 40,
                              .top_p = 0.95f,
                              .min_p = 0.05f,
                              .typical = 1,
                              .penalty_last_n = 64,
                              .repeat = 1,
                              .dry_base = 1.75f,
                              .dry_allowed = 2,
                              .dry_last_n = -1};
}

bool
br_sample_plain(const br_sample_params *p)
{
    return p->typical == 1 && p->repeat == 1 && p->presence == 0 &&
           p->frequency == 0 && p->dry_multiplier == 0 && p->n_bias == 0 &&
           !p->logprobs;
}

static br_code
in_range(const char *name, double v, double lo, double hi, br_status *st)
{
    if (v >= lo && v <= hi)
        return BR_OK;
    return br_fail(st, BR_E_USAGE, "%s: %g is not between %g and %g", name, v,
                   lo, hi);
}

static br_code
check_ids(const br_sample_params *p, int32_t n_vocab, br_status *st)
{
    if (p->n_bias > BR_SAMPLE_MAX_BIAS)
        return br_fail(st, BR_E_LIMIT, "logit_bias: %zu rows, at most %d",
                       p->n_bias, BR_SAMPLE_MAX_BIAS);
    if (p->n_dry_breakers > BR_SAMPLE_MAX_BREAKERS)
        return br_fail(st, BR_E_LIMIT, "DRY: %zu breakers, at most %d",
                       p->n_dry_breakers, BR_SAMPLE_MAX_BREAKERS);
    for (size_t i = 0; i < p->n_bias; i++) {
        const br_logit_bias *b = &p->bias[i];

        if (b->id < 0 || (n_vocab && b->id >= n_vocab))
            return br_fail(st, BR_E_USAGE,
                           "logit_bias: there is no token %d (of %d)", b->id,
                           n_vocab);
        if (isnan(b->add) || b->add > 1e6f)
            return br_fail(st, BR_E_USAGE,
                           "logit_bias: token %d: %g is not below 1e6", b->id,
                           (double)b->add);
    }
    for (size_t i = 0; i < p->n_dry_breakers; i++)
        if (p->dry_breakers[i] < 0 ||
            (n_vocab && p->dry_breakers[i] >= n_vocab))
            return br_fail(st, BR_E_USAGE, "DRY: there is no token %d (of %d)",
                           p->dry_breakers[i], n_vocab);
    return BR_OK;
}

br_code
br_sample_params_check(const br_sample_params *p, int32_t n_vocab,
                       br_status *st)
{
    BR_TRY(in_range("temperature", p->temperature, 0, 100, st));
    if (p->temperature > 0)
        BR_TRY(in_range("temperature", p->temperature, 0.001, 100, st));
    BR_TRY(in_range("top-k", p->top_k, 0, INT32_MAX, st));
    BR_TRY(in_range("top-p", p->top_p, 0, 1, st));
    BR_TRY(in_range("min-p", p->min_p, 0, 1, st));
    BR_TRY(in_range("typical", p->typical, 0, 1, st));
    BR_TRY(in_range("repeat penalty window", p->penalty_last_n, -1, INT32_MAX,
                    st));
    BR_TRY(in_range("repeat penalty", p->repeat, 0.01f, 100, st));
    BR_TRY(in_range("presence penalty", p->presence, -100, 100, st));
    BR_TRY(in_range("frequency penalty", p->frequency, -100, 100, st));
    BR_TRY(in_range("DRY multiplier", p->dry_multiplier, 0, 1000, st));
    BR_TRY(in_range("DRY base", p->dry_base, 1, 100, st));
    BR_TRY(in_range("DRY length", p->dry_allowed, 1, INT32_MAX, st));
    BR_TRY(in_range("DRY window", p->dry_last_n, -1, INT32_MAX, st));
    BR_TRY(in_range("logprobs", p->n_logprobs, 0, BR_SAMPLE_MAX_LOGPROBS, st));
    return check_ids(p, n_vocab, st);
}

/* ---- making one ---------------------------------------------------------- */

static bool
allocate(br_sampler *s)
{
    size_t v = (size_t)s->n_vocab, h = s->max_history;

    s->x = br_try_calloc(v, sizeof *s->x);
    s->count = br_try_calloc(v, sizeof *s->count);
    s->dry = br_try_calloc(v, sizeof *s->dry);
    s->history = br_try_calloc(2 * h, sizeof *s->history);
    s->z = br_try_calloc(h, sizeof *s->z);
    s->peak = br_try_calloc(v / BLOCK + 1, sizeof *s->peak);
    s->cand = br_try_calloc(v, sizeof *s->cand);
    s->breaker = br_try_calloc(v, sizeof *s->breaker);
    return s->x && s->count && s->dry && s->history && s->z && s->peak &&
           s->cand && s->breaker;
}

br_code
br_sampler_new(br_sampler **out, int32_t n_vocab, uint32_t max_history,
               const br_sample_params *p, br_status *st)
{
    br_sampler *s;

    *out = NULL;
    br_assert(n_vocab > 0 && max_history > 0 && max_history < 1u << 31);
    BR_TRY(br_sample_params_check(p, n_vocab, st));
    s = br_try_calloc(1, sizeof *s);
    if (!s)
        return br_fail(st, BR_E_OOM, "sampler: out of memory");
    s->n_vocab = n_vocab;
    s->max_history = max_history;
    if (!allocate(s)) {
        br_sampler_free(s);
        return br_fail(st, BR_E_OOM, "sampler: out of memory");
    }
    br_sampler_restart(s, p);
    *out = s;
    return BR_OK;
}

void
br_sampler_restart(br_sampler *s, const br_sample_params *p)
{
    if (s->p.n_dry_breakers) /* that list may be gone */
        memset(s->breaker, 0, (size_t)s->n_vocab * sizeof *s->breaker);
    s->p = *p;
    for (size_t i = 0; i < p->n_dry_breakers; i++)
        s->breaker[p->dry_breakers[i]] = true;
    s->n_report = 0;
    br_sampler_reset(s);
}

void
br_sampler_free(br_sampler *s)
{
    if (!s)
        return;
    br_free(s->x);
    br_free(s->count);
    br_free(s->dry);
    br_free(s->history);
    br_free(s->z);
    br_free(s->peak);
    br_free(s->cand);
    br_free(s->breaker);
    br_free(s);
}

void
br_sampler_never(br_sampler *s, const int32_t *ids, size_t n)
{
    s->never = ids;
    s->n_never = n;
}

/* ---- history ------------------------------------------------------------- */

static uint32_t
window(const br_sampler *s, int32_t last_n)
{
    return last_n < 0 ? s->max_history
                      : BR_MIN((uint32_t)last_n, s->max_history);
}

/* Does anything depend on how often a token came? */
static bool
counts(const br_sample_params *p)
{
    return p->penalty_last_n != 0 &&
           (p->repeat != 1 || p->presence != 0 || p->frequency != 0);
}

void
br_sampler_reset(br_sampler *s)
{
    if (s->counted)
        memset(s->count, 0, (size_t)s->n_vocab * sizeof *s->count);
    s->counted = false;
    s->n_history = 0;
}

void
br_sampler_accept(br_sampler *s, int32_t id)
{
    uint32_t w = window(s, s->p.penalty_last_n);

    br_check(id >= 0 && id < s->n_vocab);
    if (s->n_history == 2 * s->max_history) {
        memcpy(s->history, s->history + s->max_history,
               s->max_history * sizeof *s->history);
        s->n_history = s->max_history;
    }
    s->history[s->n_history++] = id;
    if (!counts(&s->p))
        return; /* a line of memory that nobody has in a cache */
    s->counted = true;
    s->count[id]++;
    if (s->n_history > w)
        s->count[s->history[s->n_history - 1 - w]]--;
}

/* ---- knobs on logits ----------------------------------------------------- */

static void
penalties(br_sampler *s)
{
    const br_sample_params *p = &s->p;

    if (!counts(p))
        return;
    for (int32_t i = 0; i < s->n_vocab; i++) {
        float x = s->x[i];

        if (!s->count[i])
            continue;
        x = x > 0 ? x / p->repeat : x * p->repeat;
        s->x[i] = x - p->presence - p->frequency * (float)s->count[i];
    }
}

/* z[k]: how many tokens before, and with, the k-th last one equal the last
 * ones (the Z function of the reversed history). O(n). */
static void
repetitions(const int32_t *last, uint32_t n, uint32_t *z)
{
    uint32_t l = 0, r = 0; /* [l, r) is the match that reaches farthest */

    z[0] = n;
    for (uint32_t k = 1; k < n; k++) {
        uint32_t len = k < r ? BR_MIN(r - k, z[k - l]) : 0;

        while (k + len < n && last[-(int64_t)len] == last[-(int64_t)(k + len)])
            len++;
        z[k] = len;
        if (k + len > r) {
            l = k;
            r = k + len;
        }
    }
}

static float
dry_penalty(const br_sample_params *p, uint32_t len)
{
    float v = p->dry_multiplier;

    for (uint32_t i = (uint32_t)p->dry_allowed; i < len && v < 1e30f; i++)
        v *= p->dry_base;
    return v;
}

static void
dry(br_sampler *s)
{
    uint32_t n = BR_MIN(s->n_history, window(s, s->p.dry_last_n)), reach = 0;
    const int32_t *last = s->history + s->n_history - 1;

    if (s->p.dry_multiplier == 0 || n < 2)
        return;
    while (reach < n && !s->breaker[last[-(int64_t)reach]])
        reach++;
    repetitions(last, n, s->z);
    for (uint32_t k = 1; k < n; k++) {
        int32_t next = last[1 - (int64_t)k];
        uint32_t len = BR_MIN(s->z[k], reach);

        if (len >= (uint32_t)s->p.dry_allowed && len > s->dry[next])
            s->dry[next] = len;
    }
    for (uint32_t k = 1; k < n; k++) {
        int32_t next = last[1 - (int64_t)k];

        if (s->dry[next])
            s->x[next] -= dry_penalty(&s->p, s->dry[next]);
        s->dry[next] = 0;
    }
}

static br_code
take_logits(br_sampler *s, const float *logits, br_status *st)
{
    int32_t n = s->n_vocab, i = 0, bad[LANES] = {0};
    bool any = false;

    /* NaN and +inf; -inf is a token that cannot come */
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            bad[j] |= !(logits[i + j] < INFINITY);
    for (; i < n; i++)
        any |= !(logits[i] < INFINITY);
    for (int j = 0; j < LANES; j++)
        any |= bad[j] != 0;
    memcpy(s->x, logits, (size_t)n * sizeof *s->x);
    if (any)
        return br_fail(st, BR_E_INTERNAL,
                       "the model's logits hold what is no number");
    for (size_t k = 0; k < s->p.n_bias; k++)
        s->x[s->p.bias[k].id] += s->p.bias[k].add;
    for (size_t k = 0; k < s->n_never; k++)
        s->x[s->never[k]] = -INFINITY;
    penalties(s);
    dry(s);
    return BR_OK;
}

/* ---- weights ------------------------------------------------------------- */

/* exp(z) in units of 2^-44, rounded, z <= 0. Additions, products and a power of
 * two only, so every machine has the same bits; error below 0.002 units. z is
 * overwritten. */
static void
weigh_lanes(double z[LANES], uint64_t w[LANES])
{
    static const double inv_fact[] = {1.0 / 6227020800,
                                      1.0 / 479001600,
                                      1.0 / 39916800,
                                      1.0 / 3628800,
                                      1.0 / 362880,
                                      1.0 / 40320,
                                      1.0 / 5040,
                                      1.0 / 720,
                                      1.0 / 120,
                                      1.0 / 24,
                                      1.0 / 6,
                                      0.5,
                                      1.0,
                                      1.0};
    const double ln2_hi = 0x1.62e42feep-1, ln2_lo = 0x1.a39ef35793c76p-33;
    const double whole = 0x1p52; /* added: no fraction is left */
    double y[LANES], v[LANES];
    int32_t k[LANES];

    for (int j = 0; j < LANES; j++) /* exp(-31.5) * 2^44 = 0.36 rounds to 0 */
        z[j] = z[j] > -31.5 ? z[j] : -31.5;
    for (int j = 0; j < LANES; j++)
        k[j] = -(int32_t)(0.5 - z[j] * 0x1.71547652b82fep0);
    for (int j = 0; j < LANES; j++)
        z[j] = z[j] - k[j] * ln2_hi - k[j] * ln2_lo;
    for (int j = 0; j < LANES; j++)
        y[j] = inv_fact[0];
    for (size_t i = 1; i < BR_COUNT(inv_fact); i++)
        for (int j = 0; j < LANES; j++)
            y[j] = y[j] * z[j] + inv_fact[i];
    for (int j = 0; j < LANES; j++)
        w[j] = (uint64_t)(1023 + 44 + k[j]) << 52;
    memcpy(v, w, sizeof v);
    for (int j = 0; j < LANES; j++)
        v[j] = y[j] * v[j] + 0.5;
    for (int j = 0; j < LANES; j++)
        y[j] = v[j] + whole;
    memcpy(w, y, sizeof y);
    /* down, where adding has rounded up */
    for (int j = 0; j < LANES; j++)
        w[j] = (w[j] & (UINT64_MAX >> 12)) - (y[j] - whole > v[j]);
}

static double
nats_below(float x, float max, float temperature)
{
    return ((double)x - (double)max) / (double)temperature;
}

static void
weigh_floats(const float *x, int32_t n, float max, float temperature,
             uint64_t w[LANES])
{
    double z[LANES];

    for (int j = 0; j < LANES; j++)
        z[j] = nats_below(j < n ? x[j] : -INFINITY, max, temperature);
    weigh_lanes(z, w);
}

/* Unsigned order of the result is the order of floats. */
static uint32_t
rank_of(float x)
{
    uint32_t b;

    x += 0.0f; /* -0 and 0 are equal */
    memcpy(&b, &x, sizeof b);
    return b & 0x80000000u ? ~b : b | 0x80000000u;
}

/* The first of those that are highest. */
static int32_t
best_of(const br_sampler *s)
{
    int32_t n = s->n_vocab, i = 0;
    float most[LANES], top;

    for (int j = 0; j < LANES; j++)
        most[j] = s->x[0];
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++)
            most[j] = s->x[i + j] > most[j] ? s->x[i + j] : most[j];
    top = most[0];
    for (int j = 1; j < LANES; j++)
        top = most[j] > top ? most[j] : top;
    for (; i < n; i++)
        top = s->x[i] > top ? s->x[i] : top;
    for (i = 0; i + LANES <= n; i += LANES) {
        int32_t here = 0;

        for (int j = 0; j < LANES; j++)
            here |= s->x[i + j] == top;
        if (here)
            break;
    }
    while (i < n - 1 && s->x[i] != top)
        i++;
    return i;
}

static void
weigh_all(br_sampler *s, float max)
{
    br_candidate *c = s->cand;
    uint64_t w[LANES];

    for (int32_t i = 0; i < s->n_vocab; i += LANES) {
        int32_t n = BR_MIN(s->n_vocab - i, (int32_t)LANES);

        weigh_floats(s->x + i, n, max, s->p.temperature, w);
        for (int32_t j = 0; j < n; j++)
            if (w[j])
                *c++ = (br_candidate){i + j, rank_of(s->x[i + j]), w[j]};
    }
    s->n_cand = (size_t)(c - s->cand);
}

/* Those that stand there already. */
static void
weigh_candidates(br_sampler *s, float max)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_cand; i += LANES) {
        size_t m = BR_MIN(s->n_cand - i, (size_t)LANES);
        uint64_t w[LANES];
        float x[LANES];

        for (size_t j = 0; j < m; j++)
            x[j] = s->x[s->cand[i + j].id];
        weigh_floats(x, (int32_t)m, max, s->p.temperature, w);
        for (size_t j = 0; j < m; j++)
            if (w[j])
                s->cand[n++] = (br_candidate){s->cand[i + j].id,
                                              s->cand[i + j].rank, w[j]};
    }
    s->n_cand = n;
}

/* ---- filters ------------------------------------------------------------- */

static uint64_t
total(const br_sampler *s)
{
    uint64_t sum = 0; /* < 2^22 tokens of at most 2^44 */

    for (size_t i = 0; i < s->n_cand; i++)
        sum += s->cand[i].weight;
    return sum;
}

/* Keeps the shortest head of (rank descending, id ascending) whose weights, or
 * number, add up to target; all where they never do. */
static void
keep_head(br_sampler *s, uint64_t target, bool by_number)
{
    uint32_t prefix = 0;
    uint64_t above = 0; /* sum of what ranks above the bucket we are in */
    size_t n = 0;

    for (int shift = 24; shift >= 0; shift -= 8) {
        uint64_t sum[256] = {0};
        int b = 255;

        for (size_t i = 0; i < s->n_cand; i++) {
            const br_candidate *c = &s->cand[i];

            if (shift == 24 || c->rank >> (shift + 8) == prefix)
                sum[c->rank >> shift & 255] += by_number ? 1 : c->weight;
        }
        for (; b >= 0 && above + sum[b] < target; b--)
            above += sum[b];
        if (b < 0)
            return; /* in the first round only */
        prefix = prefix << 8 | (uint32_t)b;
    }
    for (size_t i = 0; i < s->n_cand; i++) {
        br_candidate c = s->cand[i];

        if (c.rank < prefix || (c.rank == prefix && above >= target))
            continue;
        if (c.rank == prefix)
            above += by_number ? 1 : c.weight;
        s->cand[n++] = c;
    }
    s->n_cand = n;
}

/* The best of each block; n of the blocks. */
static int32_t
find_peaks(br_sampler *s)
{
    int32_t n = s->n_vocab / BLOCK;

    for (int32_t b = 0; b < n; b++) {
        const float *x = s->x + (size_t)b * BLOCK;
        float most[LANES], top;

        for (int j = 0; j < LANES; j++)
            most[j] = x[j];
        for (int i = LANES; i < BLOCK; i += LANES)
            for (int j = 0; j < LANES; j++)
                most[j] = x[i + j] > most[j] ? x[i + j] : most[j];
        top = most[0];
        for (int j = 1; j < LANES; j++)
            top = most[j] > top ? most[j] : top;
        s->peak[b] = top;
    }
    return n;
}

/* The top_k best, of weight 0. At least k tokens are no worse than the k-th best
 * peak, so none that is worse is among them. False: there are too few blocks
 * for that to say much. */
static bool
take_head(br_sampler *s)
{
    uint64_t k = (uint64_t)s->p.top_k;
    uint32_t least = UINT32_MAX;
    int32_t n = s->n_vocab / BLOCK;
    br_candidate *c = s->cand;

    if (k > (uint64_t)n / 4)
        return false;
    n = find_peaks(s);
    for (int32_t b = 0; b < n; b++)
        s->cand[b] = (br_candidate){b, rank_of(s->peak[b]), 0};
    s->n_cand = (size_t)n;
    keep_head(s, k, true);
    for (size_t i = 0; i < s->n_cand; i++)
        least = BR_MIN(least, s->cand[i].rank);
    for (int32_t i = 0; i < s->n_vocab; i++) {
        uint32_t rank;

        if (i / BLOCK < n && rank_of(s->peak[i / BLOCK]) < least) {
            i += BLOCK - 1;
            continue;
        }
        rank = rank_of(s->x[i]);
        if (rank >= least)
            *c++ = (br_candidate){i, rank, 0};
    }
    s->n_cand = (size_t)(c - s->cand);
    keep_head(s, k, true);
    return true;
}

/* A part of all weights, rounded up, at least 1: something always stays. */
static uint64_t
part_of(const br_sampler *s, float part)
{
    uint64_t all = total(s), p = (uint64_t)((double)part * 0x1p32);
    uint64_t v = (uint64_t)(((i128)all * (i128)p + UINT32_MAX) >> 32);

    return BR_MAX(v, 1);
}

/* Locally typical: nearest to the entropy first. -log p is its mean minus
 * (x - mean of x), so the distance is |x - mean|, and no log is needed. */
static void
typical(br_sampler *s, float max)
{
    i128 sum = 0;
    double mean;

    for (size_t i = 0; i < s->n_cand; i++) {
        br_candidate *c = &s->cand[i];
        double x = nats_below(s->x[c->id], max, s->p.temperature);

        sum += (i128)c->weight * (int64_t)(x * 0x1p32);
    }
    mean = (double)(sum / (i128)total(s)) * 0x1p-32;
    for (size_t i = 0; i < s->n_cand; i++) {
        br_candidate *c = &s->cand[i];
        double x = nats_below(s->x[c->id], max, s->p.temperature);

        c->rank = ~rank_of((float)fabs(x - mean));
    }
    keep_head(s, part_of(s, s->p.typical), false);
    for (size_t i = 0; i < s->n_cand; i++)
        s->cand[i].rank = rank_of(s->x[s->cand[i].id]);
}

/* Relative to the best of what is left: typical may have dropped the best. */
static void
min_p(br_sampler *s)
{
    uint64_t best = 0, least;
    size_t n = 0;

    for (size_t i = 0; i < s->n_cand; i++)
        best = BR_MAX(best, s->cand[i].weight);
    least = (uint64_t)((double)s->p.min_p * (double)best);
    for (size_t i = 0; i < s->n_cand; i++)
        if (s->cand[i].weight >= least)
            s->cand[n++] = s->cand[i];
    s->n_cand = n;
}

static int32_t
draw(br_sampler *s, uint64_t position)
{
    uint64_t at;
    br_rng r;

    br_rng_init(&r, s->p.seed, position);
    at = br_rng_below_u64(&r, total(s));
    for (size_t i = 0; i < s->n_cand; i++) {
        if (at < s->cand[i].weight)
            return s->cand[i].id;
        at -= s->cand[i].weight;
    }
    br_unreachable("the draw is below the sum");
}

/* ---- reports ------------------------------------------------------------- */

/* Into top[n], best first; returns how many there are then. */
static size_t
rank_in(br_logprob *top, size_t n, size_t most, br_logprob l)
{
    if (n == most && (most == 0 || l.logprob <= top[n - 1].logprob))
        return n;
    if (l.logprob == -INFINITY)
        return n;
    n = BR_MIN(n + 1, most);
    for (most = n - 1; most > 0 && top[most - 1].logprob < l.logprob; most--)
        top[most] = top[most - 1];
    top[most] = l;
    return n;
}

size_t
br_sample_logprobs(const float *logits, int32_t n_vocab, int32_t chosen,
                   size_t most, br_logprob *out)
{
    uint64_t sum = 0;
    float max = logits[0];
    size_t n = 0;
    double z;

    out[0] = (br_logprob){chosen, logits[chosen]};
    for (int32_t i = 0; i < n_vocab; i++) {
        if (!(logits[i] < INFINITY))
            return 0;
        max = BR_MAX(max, logits[i]);
        n = rank_in(out + 1, n, most, (br_logprob){i, logits[i]});
    }
    if (!(max > -INFINITY))
        return 0;
    for (int32_t i = 0; i < n_vocab; i += LANES) {
        uint64_t w[LANES];

        weigh_floats(logits + i, BR_MIN(n_vocab - i, (int32_t)LANES), max, 1,
                     w);
        for (int j = 0; j < LANES; j++)
            sum += w[j];
    }
    z = (double)max + log((double)sum * 0x1p-44);
    for (size_t i = 0; i <= n; i++)
        out[i].logprob = (float)((double)out[i].logprob - z);
    return n + 1;
}

/* ---- the pick ------------------------------------------------------------ */

static int32_t
pick(br_sampler *s, int32_t best, uint64_t position)
{
    const br_sample_params *p = &s->p;

    if (p->temperature == 0 || p->top_k == 1) {
        s->cand[0] = (br_candidate){best, rank_of(s->x[best]), BR_SAMPLE_ONE};
        s->n_cand = 1;
        return best;
    }
    if (p->top_k > 0 && take_head(s))
        weigh_candidates(s, s->x[best]);
    else {
        weigh_all(s, s->x[best]);
        if (p->top_k > 0)
            keep_head(s, (uint64_t)p->top_k, true);
    }
    if (p->typical < 1)
        typical(s, s->x[best]);
    if (p->top_p < 1)
        keep_head(s, part_of(s, p->top_p), false);
    if (p->min_p > 0)
        min_p(s);
    return draw(s, position);
}

br_code
br_sampler_pick(br_sampler *s, const float *logits, uint64_t position,
                int32_t *out, br_status *st)
{
    int32_t best;

    BR_TRY(take_logits(s, logits, st));
    best = best_of(s);
    if (!(s->x[best] > -INFINITY))
        return br_fail(st, BR_E_REJECTED, "no token is left to choose from");
    if (!(s->x[best] < INFINITY)) /* 1e37 / 0.01 */
        return br_fail(st, BR_E_LIMIT, "token %d: penalties overflow", best);
    *out = pick(s, best, position);
    s->n_report = 0;
    if (s->p.logprobs)
        s->n_report = br_sample_logprobs(logits, s->n_vocab, *out,
                                         (size_t)s->p.n_logprobs, s->report);
    return BR_OK;
}

const br_logprob *
br_sampler_logprobs(const br_sampler *s, size_t *n)
{
    *n = s->n_report;
    return s->report;
}

const br_candidate *
br_sampler_candidates(const br_sampler *s, size_t *n)
{
    *n = s->n_cand;
    return s->cand;
}

br_code
br_hook_fails(const br_logit_hook *h, br_status *st)
{
    return br_fail(st, h->code ? *h->code : BR_E_REJECTED, "%s", h->error);
}
