/* encode_lanes.c - see encode_lanes.h. encode_lanes_avx2.c and _avx512.c are this
 * text for wider vectors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/encode_lanes.h"

#include "base/half.h"

#ifdef __AVX__
#    include <immintrin.h>
#endif

#ifndef ENC_LANES /* the others have names of their own */
#    define ENC_LANES br_enc_lanes_plain
#endif

/* Errors that differ by less, in parts of sum w x^2, are equal, and of equals
 * the first wins: two values fit any pair of integers, and the plain pair
 * loses least when its scale is rounded. */
#define EQUAL 1e-9

enum { N = BR_ENC_LANES, GROUP = BR_ENC_GROUP };
typedef float vf __attribute__((vector_size(4 * N)));
typedef int32_t vi __attribute__((vector_size(4 * N)));
typedef double vd __attribute__((vector_size(8 * N)));
typedef int64_t vl __attribute__((vector_size(8 * N)));

#define PICK(m, a, b)   ((vf)(((m) & (vi)(a)) | (~(m) & (vi)(b))))
#define PICK_D(m, a, b) ((vd)(((m) & (vl)(a)) | (~(m) & (vl)(b))))
#ifdef __AVX512F__ /* gcc 12 makes two halves of it */
#    define DOUBLES(v) ((vd)_mm512_cvtps_pd((__m256)(v)))
#else
#    define DOUBLES(v) __builtin_convertvector(v, vd)
#endif
#define FLOATS(v)   __builtin_convertvector(v, vf)
#define INTEGERS(v) __builtin_convertvector(v, vi)

/* br_fit_round of each: above 1.5 * 2^23 floats are whole numbers. NaN is `lo`, as
 * the instructions have it, which gcc does not find in a choice. */
static inline void
round_to(vf *v, float lo, float hi)
{
    const vf least = lo - (vf){0}, most = hi - (vf){0},
             whole = 0x1.8p23f - (vf){0};

#ifdef __AVX__
    *v = (vf)_mm256_max_ps((__m256)*v, (__m256)least);
    *v = (vf)_mm256_min_ps((__m256)*v, (__m256)most);
#else
    *v = PICK(*v > least, *v, least);
    *v = PICK(*v < most, *v, most);
#endif
    *v = (*v + whole) - whole;
}

/* ---- scale alone: lanes are candidates ----------------------------------- */

/* What is left of the squared error when the scale is the best one is
 * sum w x^2 - gain, so the candidate with the most gain wins. */
static float
linear(const br_fit_linear_desc *d, const float *x, const float *w, int n)
{
    enum { V = 3 }; /* side by side, as one waits for its own sums */
    const vd none = {0};
    const float sign = d->reach < 0 ? -1 : 1;
    double scale = 0, gain = -1;
    vd xl[V] = {none}, ll[V] = {none};
    vf inverse[V];

    br_check(2 * d->tenths < V * N);
    for (int c = 0; c < V * N; c++) {
        /* 0 first, then -1, 1, -2, 2 ...: of equals the plainest wins */
        int step = c % 2 ? -(c + 1) / 2 : c / 2;

        inverse[c / N][c % N] =
            (d->reach + sign * 0.1f * (float)step) / d->x_max;
    }
    for (int i = 0; i < n; i++) {
        double wi = (double)w[i], wx = wi * (double)x[i];

        for (int v = 0; v < V; v++) {
            vf r = inverse[v] * x[i];
            vd l;

            round_to(&r, (float)d->lo, (float)d->hi);
            l = DOUBLES(r);
            xl[v] += wx * l;
            ll[v] += wi * l * l;
        }
    }
    for (int v = 0; v < V; v++) {
        vl some = ll[v] > none;
        vd gains = PICK_D(some, xl[v] * xl[v] / ll[v], none);

        for (int k = 0; k < N && v * N + k <= 2 * d->tenths; k++)
            if (gains[k] > gain) {
                scale = ll[v][k] > 0 ? xl[v][k] / ll[v][k] : 0;
                gain = gains[k];
            }
    }
    return (float)scale;
}

/* ---- scale and minimum: lanes are groups --------------------------------- */

typedef struct affine_fit {
    vd scale, min, error;
} affine_fit;

/* Weights by number, then group; integers l that came from one candidate and
 * weighted sums over them. */
typedef struct groups {
    int n;
    vf x[GROUP];
    vd xd[GROUP], w[GROUP], l[GROUP];
    vd sw, sx, sxx, sl, sll, sxl;
} groups;

static void
lay(groups *g, const float *x, const float *w, int n)
{
    const vd none = {0};

    br_check(n <= GROUP);
    g->n = n;
    g->sw = g->sx = g->sxx = none;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < N; k++) {
            g->x[i][k] = x[k * n + i];
            g->w[i][k] = (double)w[k * n + i];
        }
        g->xd[i] = DOUBLES(g->x[i]);
        g->sw += g->w[i];
        g->sx += g->w[i] * g->xd[i];
        g->sxx += g->w[i] * g->xd[i] * g->xd[i];
    }
}

static inline void
round_all(groups *g, const vf *min, const vf *inverse, int top)
{
    vd sl = {0}, sll = {0}, sxl = {0};

    for (int i = 0; i < g->n; i++) {
        vf v = *inverse * (g->x[i] - *min);
        vd l, wl;

        round_to(&v, 0, (float)top);
        l = g->l[i] = DOUBLES(v);
        wl = g->w[i] * l;
        sl += wl;
        sll += wl * l;
        sxl += wl * g->xd[i];
    }
    g->sl = sl;
    g->sll = sll;
    g->sxl = sxl;
}

static inline void
judge(const groups *g, affine_fit *f)
{
    vd error = {0};

    for (int i = 0; i < g->n; i++) {
        vd d = f->scale * g->l[i] + f->min - g->xd[i];

        error += g->w[i] * d * d;
    }
    f->error = error;
}

/* The best scale and minimum for given integers; the minimum is not above 0.
 * Lanes that are 0: all integers are equal. */
static inline void
solve(const groups *g, affine_fit *f, vl *solved)
{
    const vd none = {0};
    vd det = g->sw * g->sll - g->sl * g->sl;
    vl above;

    *solved = det > none;
    f->scale = (g->sw * g->sxl - g->sx * g->sl) / det;
    f->min = (g->sll * g->sx - g->sl * g->sxl) / det;
    above = f->min > none;
    f->min = PICK_D(above, none, f->min);
    f->scale = PICK_D(above, g->sxl / g->sll, f->scale);
}

/* What a reader will see. */
static void
store(affine_fit *f)
{
    for (int k = 0; k < N; k++) {
        f->scale[k] = (double)br_f16_to_f32(br_f32_to_f16((float)f->scale[k]));
        f->min[k] = (double)br_f16_to_f32(br_f32_to_f16((float)f->min[k]));
    }
}

static void
affine(const br_fit_affine_desc *d, const float *x, const float *w, int n,
       float *scale, float *min)
{
    const vf nothing = {0};
    groups g;
    vf lo = nothing, hi, inverse, least;
    affine_fit best, f;
    vl solved;

    lay(&g, x, w, n);
    hi = g.x[0];
    for (int i = 0; i < n; i++) {
        lo = PICK(g.x[i] < lo, g.x[i], lo);
        hi = PICK(g.x[i] > hi, g.x[i], hi);
    }
    least = lo;
    best.scale = DOUBLES((hi - lo) / (float)d->top);
    best.min = DOUBLES(lo);
    inverse = (float)d->top / (hi - lo);
    round_all(&g, &lo, &inverse, d->top);
    if (d->half)
        store(&best);
    judge(&g, &best);
    for (int i = 0; i <= d->steps; i++) {
        vl wins;

        /* From the best minimum so far: the next ones gain from it. */
        lo = FLOATS(best.min);
        inverse = ((float)d->top + d->first + d->step * (float)i) / (hi - lo);
        round_all(&g, &lo, &inverse, d->top);
        solve(&g, &f, &solved);
        if (d->half)
            store(&f);
        judge(&g, &f);
        wins = solved & (f.error < best.error - EQUAL * g.sxx);
        best.scale = PICK_D(wins, f.scale, best.scale);
        best.min = PICK_D(wins, f.min, best.min);
        best.error = PICK_D(wins, f.error, best.error);
    }
    for (int k = 0; k < N; k++) { /* all alike, not above 0: nothing to scale */
        scale[k] = hi[k] > least[k] ? (float)best.scale[k] : 0;
        min[k] = hi[k] > least[k] ? (float)-best.min[k] : -least[k];
    }
}

/* ---- integers of scale and minimum: lanes are groups --------------------- */

typedef struct settled {
    vd error;
    vi s, m, l[GROUP];
} settled;

/* One candidate; keeps it where it is better. */
static inline void
try_pair(const groups *g, const br_fit_pairs *p, const vi *s, const vi *m,
         settled *best)
{
    const vf nothing = {0};
    const vf scale = p->d * FLOATS(*s), min = p->dmin * FLOATS(*m);
    const vi some = scale != nothing;
    const vl here = __builtin_convertvector(
        (*s >= 0) & (*s <= 63) & (*m >= 0) & (*m <= 63), vl);
    vi l[GROUP], wins;
    vd sum = {0};
    vl better;

    for (int i = 0; i < g->n; i++) {
        vf v = (g->x[i] + min) / scale;
        vd e;

        round_to(&v, 0, (float)p->top);
        v = PICK(some, v, nothing);
        l[i] = INTEGERS(v);
        e = DOUBLES(scale * v - min - g->x[i]);
        sum += g->w[i] * e * e;
    }
    better = here & ~(sum >= best->error);
    wins = __builtin_convertvector(better, vi);
    best->error = PICK_D(better, sum, best->error);
    best->s = (wins & *s) | (~wins & best->s);
    best->m = (wins & *m) | (~wins & best->m);
    for (int i = 0; i < g->n; i++)
        best->l[i] = (wins & l[i]) | (~wins & best->l[i]);
}

static void
settle(const br_fit_pairs *p, const float *x, const float *w, int n)
{
    groups g;
    settled best = {.error = (double)__builtin_inf() - (vd){0}};
    vi s0, m0;

    lay(&g, x, w, n);
    for (int k = 0; k < N; k++) {
        s0[k] = p->ls[k];
        m0[k] = p->lm[k];
    }
    for (int k = 0; k < 9; k++) {
        vi s = s0 + ((k + 1) % 3 - 1), m = m0 + ((k / 3 + 1) % 3 - 1);

        try_pair(&g, p, &s, &m, &best);
    }
    for (int k = 0; k < N; k++) {
        p->ls[k] = best.s[k];
        p->lm[k] = best.m[k];
        for (int i = 0; i < n; i++)
            p->l[k * n + i] = best.l[i][k];
    }
}

/* ---- the last step: lanes are weights ------------------------------------ */

static void
divide(const float *x, int n, float d, int lo, int hi, int *l)
{
    br_check(n % N == 0);
    for (int i = 0; i < n; i += N) {
        vf v;
        vi r;

        memcpy(&v, x + i, sizeof v);
        v = v / d;
        round_to(&v, (float)lo, (float)hi);
        r = d != 0 ? INTEGERS(v) : (vi){0};
        memcpy(l + i, &r, sizeof r);
    }
}

const br_enc_lanes ENC_LANES = {linear, affine, settle, divide};
