/* brass_rand.h - random numbers: the algorithms, for device and host alike.
 *
 *   XORWOW         Marsaglia, "Xorshift RNGs", 2003; a subsequence is 2^67 long
 *   MRG32k3a       L'Ecuyer, "Good parameters...", 1999; 2^76
 *   Philox4x32-10  Salmon and others, "As easy as 1, 2, 3", 2011; 2^66
 *   Sobol          Joe and Kuo's direction numbers, points in Gray code's order
 *
 * Written from those papers. How a seed becomes a state is nobody's standard:
 * XORWOW and MRG32k3a take theirs from SplitMix64 here, so their sequences are
 * not those of NVIDIA's library; Philox's key is the seed.
 *
 * A jump in XORWOW: its step is linear over bits, so n steps are x^n modulo the
 * step's polynomial, a sum of fewer than 160 steps. brass_xorwow.def has x^(2^k).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_RAND_H
#define BRASS_RAND_H

#ifdef __CUDA__
#    define BRASS_RAND       static __device__ __forceinline__
#    define BRASS_RAND_TABLE static __device__ const
#else
#    include <math.h>
#    define BRASS_RAND       static inline
#    define BRASS_RAND_TABLE static const
#endif

typedef struct brass_spare { /* the second of two normal numbers */
    float f;
    int has_f, has_d;
    double d;
} brass_spare;
struct curandStateXORWOW {
    unsigned int d, v[5];
    brass_spare spare;
};
struct curandStateMRG32k3a {
    unsigned int s1[3], s2[3]; /* the oldest first */
    brass_spare spare;
};
struct curandStatePhilox4_32_10 {
    unsigned int ctr[4], key[2], out[4], at; /* out[at] is next */
    brass_spare spare;
};

BRASS_RAND unsigned long long
brass_split_mix(unsigned long long *s)
{
    unsigned long long z = *s += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

/* ---- XORWOW ------------------------------------------------------------- */

enum { BRASS_XORWOW_SEQUENCE = 67, BRASS_XORWOW_WEYL = 362437 };
BRASS_RAND_TABLE unsigned int brass_xorwow_pow[131][5] = {
#include "brass_xorwow.def"
};

BRASS_RAND void
brass_xorwow_step(unsigned int *v)
{
    unsigned int t = v[0] ^ v[0] >> 2;

    v[0] = v[1];
    v[1] = v[2];
    v[2] = v[3];
    v[3] = v[4];
    v[4] = v[4] ^ v[4] << 4 ^ t ^ t << 1;
}
BRASS_RAND unsigned int
brass_xorwow(struct curandStateXORWOW *s)
{
    brass_xorwow_step(s->v);
    s->d += BRASS_XORWOW_WEYL;
    return s->d + s->v[4];
}
/* n * 2^first steps; the Weyl sequence is the caller's. */
BRASS_RAND void
brass_xorwow_jump(struct curandStateXORWOW *s, unsigned long long n, int first)
{
    for (int k = first; n; k++, n >>= 1) {
        unsigned int sum[5] = {0, 0, 0, 0, 0};

        if (!(n & 1))
            continue;
        for (int i = 0; i < 160; i++) {
            unsigned int on = 0u - (brass_xorwow_pow[k][i / 32] >> i % 32 & 1);

            for (int w = 0; w < 5; w++)
                sum[w] ^= s->v[w] & on;
            brass_xorwow_step(s->v);
        }
        for (int w = 0; w < 5; w++)
            s->v[w] = sum[w];
    }
}
BRASS_RAND void
brass_xorwow_skip(struct curandStateXORWOW *s, unsigned long long n)
{
    brass_xorwow_jump(s, n, 0);
    s->d += BRASS_XORWOW_WEYL * (unsigned int)n;
}
BRASS_RAND void
brass_xorwow_seed(struct curandStateXORWOW *s, unsigned long long seed)
{
    unsigned long long a = brass_split_mix(&seed), b = brass_split_mix(&seed);
    unsigned long long c = brass_split_mix(&seed);

    s->v[0] = (unsigned int)a; /* a and b differ: never all zero */
    s->v[1] = (unsigned int)(a >> 32);
    s->v[2] = (unsigned int)b;
    s->v[3] = (unsigned int)(b >> 32);
    s->v[4] = (unsigned int)c;
    s->d = (unsigned int)(c >> 32);
    s->spare.has_f = s->spare.has_d = 0;
}

/* ---- MRG32k3a ----------------------------------------------------------- */

enum { BRASS_MRG_C1 = 209, BRASS_MRG_C2 = 22853 };
#define BRASS_MRG_M1 4294967087u /* 2^32 - C1 */
#define BRASS_MRG_M2 4294944443u
/* A1 and A2, what one step does, to the powers 1, 2^76 and 2^127. */
BRASS_RAND_TABLE unsigned int brass_mrg_pow[3][2][9] = {
#include "brass_mrg.def"
};

/* x modulo 2^32 - c: three times, the upper half counts c. */
BRASS_RAND unsigned int
brass_mrg_mod(unsigned long long x, unsigned int c)
{
    unsigned long long m = 0x100000000ull - c;

    for (int k = 0; k < 3; k++)
        x = (x >> 32) * c + (x & 0xffffffffu);
    return (unsigned int)(x >= m ? x - m : x);
}
/* r = a b, of w columns; r is neither. */
BRASS_RAND void
brass_mrg_mul(unsigned int *r, const unsigned int *a, const unsigned int *b,
              int w, unsigned int c)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < w; j++) {
            unsigned long long sum = 0;

            for (int k = 0; k < 3; k++)
                sum += brass_mrg_mod(
                    (unsigned long long)a[3 * i + k] * b[w * k + j], c);
            r[w * i + j] = brass_mrg_mod(sum, c);
        }
}
BRASS_RAND void
brass_mrg_power(unsigned int *v, const unsigned int *by, unsigned long long n,
                unsigned int c)
{
    unsigned int m[9], t[9];

    for (int k = 0; k < 9; k++)
        m[k] = by[k];
    for (; n; n >>= 1) {
        if (n & 1) {
            brass_mrg_mul(t, m, v, 1, c);
            for (int k = 0; k < 3; k++)
                v[k] = t[k];
        }
        brass_mrg_mul(t, m, m, 3, c);
        for (int k = 0; k < 9; k++)
            m[k] = t[k];
    }
}
/* n times 1, 2^76 or 2^127 steps: far is 0, 1, 2. */
BRASS_RAND void
brass_mrg_skip(struct curandStateMRG32k3a *s, unsigned long long n, int far)
{
    brass_mrg_power(s->s1, brass_mrg_pow[far][0], n, BRASS_MRG_C1);
    brass_mrg_power(s->s2, brass_mrg_pow[far][1], n, BRASS_MRG_C2);
}
/* L'Ecuyer's number, 1 to m1, less one. */
BRASS_RAND unsigned int
brass_mrg(struct curandStateMRG32k3a *s)
{
    unsigned int *a = s->s1, *b = s->s2;
    unsigned int p = brass_mrg_mod(
        1403580ull * a[1] + 810728ull * (BRASS_MRG_M1 - a[0]), BRASS_MRG_C1);
    unsigned int q = brass_mrg_mod(
        527612ull * b[2] + 1370589ull * (BRASS_MRG_M2 - b[0]), BRASS_MRG_C2);

    a[0] = a[1];
    a[1] = a[2];
    a[2] = p;
    b[0] = b[1];
    b[1] = b[2];
    b[2] = q;
    return (p > q ? p - q : p - q + BRASS_MRG_M1) - 1;
}
BRASS_RAND void
brass_mrg_seed(struct curandStateMRG32k3a *s, unsigned long long seed)
{
    for (int k = 0; k < 3; k++) { /* none is zero: 1 to m - 1 */
        unsigned long long r = brass_split_mix(&seed);

        s->s1[k] = 1 + (unsigned int)(r & 0xffffffffu) % (BRASS_MRG_M1 - 1);
        s->s2[k] = 1 + (unsigned int)(r >> 32) % (BRASS_MRG_M2 - 1);
    }
    s->spare.has_f = s->spare.has_d = 0;
}

/* ---- Philox ------------------------------------------------------------- */

BRASS_RAND void
brass_philox_block(const unsigned int *ctr, const unsigned int *key,
                   unsigned int *out)
{
    unsigned int a = ctr[0], b = ctr[1], c = ctr[2], d = ctr[3];
    unsigned int k = key[0], l = key[1];

    for (int r = 0; r < 10; r++) {
        unsigned long long p = 0xd2511f53ull * a, q = 0xcd9e8d57ull * c;

        a = (unsigned int)(q >> 32) ^ b ^ k;
        b = (unsigned int)q;
        c = (unsigned int)(p >> 32) ^ d ^ l;
        d = (unsigned int)p;
        k += 0x9e3779b9u;
        l += 0xbb67ae85u;
    }
    out[0] = a;
    out[1] = b;
    out[2] = c;
    out[3] = d;
}
/* The counter's halves: low counts blocks, high subsequences. */
BRASS_RAND void
brass_philox_add(struct curandStatePhilox4_32_10 *s, unsigned long long low,
                 unsigned long long high)
{
    unsigned long long l = (unsigned long long)s->ctr[1] << 32 | s->ctr[0];
    unsigned long long h = (unsigned long long)s->ctr[3] << 32 | s->ctr[2];

    l += low;
    h += high + (l < low);
    s->ctr[0] = (unsigned int)l;
    s->ctr[1] = (unsigned int)(l >> 32);
    s->ctr[2] = (unsigned int)h;
    s->ctr[3] = (unsigned int)(h >> 32);
    brass_philox_block(s->ctr, s->key, s->out);
}
BRASS_RAND void
brass_philox_skip(struct curandStatePhilox4_32_10 *s, unsigned long long n)
{
    unsigned int at = s->at + (unsigned int)(n & 3);

    s->at = at & 3;
    brass_philox_add(s, (n >> 2) + (at >> 2), 0);
}
BRASS_RAND unsigned int
brass_philox(struct curandStatePhilox4_32_10 *s)
{
    unsigned int lo = s->at & 1 ? s->out[1] : s->out[0];
    unsigned int hi = s->at & 1 ? s->out[3] : s->out[2];
    unsigned int r = s->at & 2 ? hi : lo;

    if (++s->at == 4) {
        s->at = 0;
        brass_philox_add(s, 1, 0);
    }
    return r;
}
BRASS_RAND void
brass_philox_seed(struct curandStatePhilox4_32_10 *s, unsigned long long seed)
{
    s->key[0] = (unsigned int)seed;
    s->key[1] = (unsigned int)(seed >> 32);
    s->ctr[0] = s->ctr[1] = s->ctr[2] = s->ctr[3] = s->at = 0;
    s->spare.has_f = s->spare.has_d = 0;
    brass_philox_block(s->ctr, s->key, s->out);
}

/* ---- distributions ------------------------------------------------------ */

/* All in (0, 1]: 32, 53 and 64 random bits, each in the middle of its step. */
BRASS_RAND float
brass_uniform(unsigned int x)
{
    return (float)x * 0x1p-32f + 0x1p-33f;
}
BRASS_RAND double
brass_uniform_double(unsigned int x, unsigned int y)
{
    return (double)(((unsigned long long)y << 32 | x) >> 11) * 0x1p-53 +
           0x1p-54;
}
/* Box and Muller: two uniform numbers become two normal ones. */
BRASS_RAND void
brass_normals(unsigned int x, unsigned int y, float *a, float *b)
{
    float r = sqrtf(-2 * logf(brass_uniform(x)));
    float phi = brass_uniform(y) * 6.2831853f;

    *a = r * sinf(phi);
    *b = r * cosf(phi);
}
BRASS_RAND void
brass_normals_double(double u, double v, double *a, double *b)
{
    double r = sqrt(-2 * log(u)), phi = v * 6.283185307179586;

    *a = r * sin(phi);
    *b = r * cos(phi);
}
/* The normal distribution's x where its integral is p, 0 < p < 1: Abramowitz
 * and Stegun 26.2.23, to 5e-4, then two steps of Halley, which cube that. */
BRASS_RAND double
brass_quantile(double p)
{
    double q = p < 0.5 ? p : 1 - p, t = sqrt(-2 * log(q));
    double x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));

    for (int k = 0; k < 2; k++) {
        double e = 0.5 * erfc(x * 0.7071067811865476) - q;
        double u = e * 2.5066282746310002 * exp(0.5 * x * x);

        x += u / (1 - 0.5 * u * x);
    }
    return p < 0.5 ? -x : x;
}

/* Small lambda: Knuth's product of uniform numbers. Others: Hoermann's PTRS,
 * "The transformed rejection method", 1993. Up to lambda 2^31. */
typedef unsigned int brass_next(void *state);
BRASS_RAND double
brass_draw(brass_next *next, void *state)
{
    unsigned int x = next(state);

    return brass_uniform_double(x, next(state));
}
BRASS_RAND unsigned int
brass_poisson(brass_next *next, void *state, double lambda)
{
    double b = 0.931 + 2.53 * sqrt(lambda), a = -0.059 + 0.02483 * b;
    double alpha = 1.1239 + 1.1328 / (b - 3.4), vr = 0.9277 - 3.6224 / (b - 2);

    if (!(lambda > 0))
        return 0;
    if (lambda < 10) {
        double p = brass_draw(next, state), end = exp(-lambda);
        unsigned int k = 0;

        for (; p > end; k++)
            p *= brass_draw(next, state);
        return k;
    }
    for (;;) {
        double u = brass_draw(next, state) - 0.5, v = brass_draw(next, state);
        double us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + lambda + 0.43);

        if (us >= 0.07 && v <= vr)
            return (unsigned int)k;
        if (k < 0 || (us < 0.013 && v > us))
            continue;
        if (log(v * alpha / (a / (us * us) + b)) <=
            k * log(lambda) - lambda - lgamma(k + 1))
            return (unsigned int)k;
    }
}

#endif
