/* rand_fill.c - a generator's bits, and numbers made of them.
 *
 * XORWOW and MRG32k3a are 4,096 lanes that lie 2^67 and 2^76 steps apart, and
 * take turns; Philox is 65,536 subsequences that do so by four numbers each, as
 * NVIDIA's library has them; MT19937 is one sequence. Sobol's points come by
 * dimension: all first coordinates, then all second ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/rand/rand.h"

#include <math.h>
#include <string.h>

/* ---- beginning ---------------------------------------------------------- */

/* Lane 0 is at its place; the others follow from lane to lane, and those before
 * the offset's rest have gone one step further. */
static void
start_lanes(rand_engine *e, const rand_start *at)
{
    uint64_t rounds = at->offset / RAND_LANES;
    bool xorwow = e->type == CURAND_RNG_PSEUDO_XORWOW;

    e->at = (unsigned)(at->offset % RAND_LANES);
    if (xorwow) {
        brass_xorwow_seed(&e->xorwow[0], at->seed);
        brass_xorwow_skip(&e->xorwow[0], rounds);
    } else {
        brass_mrg_seed(&e->mrg[0], at->seed);
        brass_mrg_skip(&e->mrg[0], rounds, 0);
    }
    for (unsigned k = 1; k < RAND_LANES; k++) {
        if (xorwow) {
            e->xorwow[k] = e->xorwow[k - 1];
            brass_xorwow_jump(&e->xorwow[k], 1, BRASS_XORWOW_SEQUENCE);
        } else {
            e->mrg[k] = e->mrg[k - 1];
            brass_mrg_skip(&e->mrg[k], 1, 1);
        }
    }
    for (unsigned k = 0; k < e->at; k++)
        xorwow ? (void)brass_xorwow(&e->xorwow[k])
               : (void)brass_mrg(&e->mrg[k]);
}

/* Matsumoto and Nishimura's Mersenne Twister, 1998; its seed has 32 bits. */
static void
start_mt(rand_engine *e, const rand_start *at)
{
    e->mt[0] = (uint32_t)(at->seed ^ at->seed >> 32);
    for (unsigned k = 1; k < RAND_MT; k++)
        e->mt[k] =
            1812433253u * (e->mt[k - 1] ^ e->mt[k - 1] >> 30) + (uint32_t)k;
    e->at = 0;
}

static uint32_t
next_mt(rand_engine *e)
{
    uint32_t *m = e->mt, k = e->at, l = (k + 1) % RAND_MT, y;

    y = (m[k] & 0x80000000u) | (m[l] & 0x7fffffffu);
    y = m[k] = m[(k + 397) % RAND_MT] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    e->at = l;
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* The four numbers that e->index is one of. */
static void
philox_four(rand_engine *e)
{
    uint64_t four = e->index / 4, block = four / RAND_PHILOX;
    struct curandStatePhilox4_32_10 *s = &e->philox;

    s->ctr[0] = (uint32_t)block;
    s->ctr[1] = (uint32_t)(block >> 32);
    s->ctr[2] = four % RAND_PHILOX;
    s->ctr[3] = 0;
    brass_philox_block(s->ctr, s->key, s->out);
}

static bool
start(rand_engine *e, const rand_start *at)
{
    switch (e->type) {
    case CURAND_RNG_PSEUDO_PHILOX4_32_10:
        brass_philox_seed(&e->philox, at->seed);
        e->index = at->offset;
        philox_four(e);
        return true;
    case CURAND_RNG_PSEUDO_MT19937: start_mt(e, at); return true;
    case CURAND_RNG_QUASI_SOBOL32:
    case CURAND_RNG_QUASI_SOBOL64:
        e->index = at->offset;
        if (e->dims == at->dims)
            return true;
        br_free(e->directions);
        e->dims = 0;
        e->directions = br_try_alloc(at->dims * sizeof *e->directions);
        if (!e->directions)
            return false;
        e->dims = at->dims;
        rand_sobol(e->dims, e->directions);
        return true;
    default: start_lanes(e, at); return true;
    }
}

/* ---- numbers ------------------------------------------------------------ */

static uint32_t
next_philox(rand_engine *e)
{
    uint32_t r = e->philox.out[e->index % 4];

    if (++e->index % 4 == 0)
        philox_four(e);
    return r;
}

static unsigned int
next(void *engine)
{
    rand_engine *e = engine;
    unsigned k = e->at;

    switch (e->type) {
    case CURAND_RNG_PSEUDO_PHILOX4_32_10: return next_philox(e);
    case CURAND_RNG_PSEUDO_MT19937: return next_mt(e);
    default: break;
    }
    e->at = (k + 1) % RAND_LANES;
    return e->type == CURAND_RNG_PSEUDO_XORWOW ? brass_xorwow(&e->xorwow[k])
                                               : brass_mrg(&e->mrg[k]);
}

static double
shape(const rand_job *j, double normal)
{
    double x = j->a + j->b * normal;

    return j->kind == RAND_LOG_NORMAL ? exp(x) : x;
}

static void
put(const rand_job *j, size_t k, double x)
{
    if (j->wide)
        ((double *)j->out)[k] = x;
    else
        ((float *)j->out)[k] = (float)x;
}

static void
pairs(const rand_job *j)
{
    for (size_t k = 0; k < j->n; k += 2) { /* n is even */
        double a, b;

        if (j->wide) {
            double u = brass_draw(next, j->e);

            brass_normals_double(u, brass_draw(next, j->e), &a, &b);
        } else {
            unsigned x = next(j->e);
            float f, g;

            brass_normals(x, next(j->e), &f, &g);
            a = (double)f;
            b = (double)g;
        }
        put(j, k, shape(j, a));
        put(j, k + 1, shape(j, b));
    }
}

/* One coordinate as the kind wants it. */
static void
coordinate(const rand_job *j, size_t k, uint64_t x)
{
    bool few = j->e->type == CURAND_RNG_QUASI_SOBOL32;
    uint32_t hi = (uint32_t)(x >> 32);
    double u =
        few ? hi * 0x1p-32 + 0x1p-33 : brass_uniform_double((uint32_t)x, hi);

    if (j->kind == RAND_BITS)
        ((uint32_t *)j->out)[k] = hi;
    else if (j->kind == RAND_BITS64)
        ((uint64_t *)j->out)[k] = x;
    else if (j->kind == RAND_UNIFORM && !j->wide)
        ((float *)j->out)[k] = brass_uniform(hi);
    else if (j->kind == RAND_UNIFORM)
        ((double *)j->out)[k] = u;
    else
        put(j, k, shape(j, brass_quantile(u)));
}

static void
points(const rand_job *j)
{
    size_t n = j->n / j->e->dims;

    for (unsigned d = 0; d < j->e->dims; d++) {
        const uint64_t *v = j->e->directions[d];
        uint64_t i = j->e->index, gray = i ^ i >> 1, x = 0;

        for (unsigned k = 0; k < 64; k++)
            x ^= gray >> k & 1 ? v[k] : 0;
        for (size_t k = 0; k < n; k++, i++) {
            coordinate(j, d * n + k, x);
            x ^= v[~i ? __builtin_ctzll(~i) : 63];
        }
    }
    j->e->index += n;
}

bool
rand_fill(const rand_job *j)
{
    uint32_t *u = j->out;
    float *f = j->out;

    if (j->start && !start(j->e, j->start))
        return false;
    if (j->e->type >= CURAND_RNG_QUASI_SOBOL32) {
        points(j);
        return true;
    }
    switch (j->kind) {
    case RAND_BITS:
        for (size_t k = 0; k < j->n; k++)
            u[k] = next(j->e);
        break;
    case RAND_UNIFORM:
        for (size_t k = 0; k < j->n; k++)
            if (j->wide)
                put(j, k, brass_draw(next, j->e));
            else
                f[k] = brass_uniform(next(j->e));
        break;
    case RAND_NORMAL:
    case RAND_LOG_NORMAL: pairs(j); break;
    case RAND_POISSON:
        for (size_t k = 0; k < j->n; k++)
            u[k] = brass_poisson(next, j->e, j->a);
        break;
    case RAND_BITS64: br_unreachable("only points have 64 bits");
    }
    return true;
}
