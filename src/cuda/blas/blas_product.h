/* blas_product.h - one matrix product, for type T and what the file that
 * includes this may use of the processor.
 *
 *   for each block of c, MB x NC: its sums are kept in T
 *     for KC of the depth            pack b, columns by NR
 *       for MC rows of op(a)           pack a, rows by MR
 *         for each tile MR x NR          sum over KC in registers, then added
 *
 * A tile is two vectors high: 12 sums, 2 of a, 1 of b fill 15 of 16 registers.
 * Packing turns every type into T, and fills up with zeros, so the tile knows
 * neither types nor edges.
 *
 * Define before: T, PRODUCT (the function's name), AVX2 if it may use that.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/blas/blas.h"

#include "base/half.h"

#include <string.h>

#if !defined AVX2 || !defined __x86_64__
#    define FUSED
#elif defined __clang__
#    pragma clang fp contract(fast)
#    define FUSED __attribute__((target("avx2,fma")))
#else
#    define FUSED \
        __attribute__((target("avx2,fma"), optimize("fp-contract=fast")))
#endif

typedef T vec __attribute__((vector_size(32)));
enum { LANES = 32 / sizeof(T), MR = 2 * LANES, NR = 6 };

static inline T
element(const void *at, cudaDataType type, int64_t i)
{
    switch (type) {
    case CUDA_R_64F: return (T)((const double *)at)[i];
    case CUDA_R_16F: return br_f16_to_f32(((const uint16_t *)at)[i]);
    case CUDA_R_16BF: return br_bf16_to_f32(((const uint16_t *)at)[i]);
    case CUDA_R_8I: return ((const int8_t *)at)[i];
    case CUDA_R_32I: return (T)((const int32_t *)at)[i];
    default: return ((const float *)at)[i];
    }
}

/* Lines of n elements with `step` between them become one of `width`. */
static void
pack_line(T *out, const void *at, cudaDataType type, int64_t from, int64_t step,
          int n, int width)
{
    int i = 0;

    if (step == 1 && type == (sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F)) {
        memcpy(out, (const T *)at + from, (size_t)n * sizeof(T));
        i = n;
    }
    for (; i < n; i++)
        out[i] = element(at, type, from + i * step);
    for (; i < width; i++)
        out[i] = 0;
}

/* n lines across (rows of op(a), columns of op(b)) from l0, in groups of
 * width, over depth [k0, k0 + kc). along: elements from line to line. */
static void
pack(T *out, const blas_mat *m, const void *at, bool along_ld, int l0, int n,
     int k0, int kc, int width)
{
    int64_t line = along_ld ? m->ld : 1, deep = along_ld ? 1 : m->ld;

    for (int g = 0; g < n; g += width)
        for (int k = 0; k < kc; k++, out += width)
            pack_line(out, at, m->type, (l0 + g) * line + (k0 + k) * deep, line,
                      BR_MIN(width, n - g), width);
}

/* out[NR][MR] = the sum over kc. */
FUSED static void
tile(int kc, const T *a, const T *b, T *out)
{
    vec s[NR][2] = {0};

    for (int k = 0; k < kc; k++, a += MR, b += NR) {
        vec lo, hi;

        memcpy(&lo, a, sizeof lo);
        memcpy(&hi, a + LANES, sizeof hi);
#pragma GCC unroll 6
        for (int j = 0; j < NR; j++) {
            s[j][0] += lo * b[j];
            s[j][1] += hi * b[j];
        }
    }
    memcpy(out, s, sizeof s);
}

/* Adds a tile to the sums of a block, columns of MB. */
static void
add(T *to, const T *sum, int m, int n)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            to[j * BLAS_MB + i] += sum[j * MR + i];
}

static void
put(void *c, cudaDataType type, int64_t at, T v)
{
    switch (type) {
    case CUDA_R_64F: ((double *)c)[at] = (double)v; break;
    case CUDA_R_16F: ((uint16_t *)c)[at] = br_f32_to_f16((float)v); break;
    case CUDA_R_16BF: ((uint16_t *)c)[at] = br_f32_to_bf16((float)v); break;
    case CUDA_R_32I: /* what is too large wraps */
        ((uint32_t *)c)[at] = (uint32_t)(int64_t)v;
        break;
    default: ((float *)c)[at] = (float)v;
    }
}

static void
block_sums(const blas_product *p, T *sums, int i0, int m, int j0, int n)
{
    const blas_job *j = p->j;
    T *pb = sums + BLAS_MB * BLAS_NC, *pa = pb + BLAS_NC * BLAS_KC;
    T sum[MR * NR];

    memset(sums, 0, (size_t)n * BLAS_MB * sizeof *sums);
    for (int k = 0; k < j->k; k += BLAS_KC) {
        int kc = BR_MIN(BLAS_KC, j->k - k);

        pack(pb, &j->b, p->b, !j->b.t, j0, n, k, kc, NR);
        for (int ic = 0; ic < m; ic += BLAS_MC) {
            int mc = BR_MIN(BLAS_MC, m - ic);

            pack(pa, &j->a, p->a, j->a.t, i0 + ic, mc, k, kc, MR);
            for (int jr = 0; jr < n; jr += NR)
                for (int ir = 0; ir < mc; ir += MR) {
                    tile(kc, pa + ir * kc, pb + jr * kc, sum);
                    add(sums + jr * BLAS_MB + ic + ir, sum, BR_MIN(MR, mc - ir),
                        BR_MIN(NR, n - jr));
                }
        }
    }
}

void
PRODUCT(const blas_product *p)
{
    const blas_job *j = p->j;
    T *sums = p->room;

    for (int j0 = 0; j0 < j->n; j0 += BLAS_NC)
        for (int i0 = 0; i0 < j->m; i0 += BLAS_MB) {
            int n = BR_MIN(BLAS_NC, j->n - j0), m = BR_MIN(BLAS_MB, j->m - i0);

            if (p->alpha != 0)
                block_sums(p, sums, i0, m, j0, n);
            for (int y = 0; y < n; y++)
                for (int x = 0; x < m; x++) {
                    int64_t at = i0 + x + (j0 + y) * j->c.ld;
                    T v = 0;

                    if (p->alpha != 0)
                        v = (T)p->alpha * sums[y * BLAS_MB + x];
                    if (p->beta != 0)
                        v += (T)p->beta * element(p->c, j->c.type, at);
                    put(p->c, j->c.type, at, v);
                }
        }
}
