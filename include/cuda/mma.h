/* mma.h - nvcuda::wmma: a warp multiplies small matrices.
 *
 * A fragment's elements lie as mma.sync m16n8k16 has them, so that a product is
 * one to four of these. Its two sides are "big", in tiles of 16, and "small", in
 * tiles of 8; where M is 8, B is the big one and the product is transposed:
 *
 *   16x16   1 tile x 2      32x8   2 tiles x 1      8x32   2 tiles of B x 1 of A
 *
 * half, bfloat16, signed and unsigned char; tf32 as 16x16x8, double as 8x8x4,
 * which shuffles do; no bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_MMA_H
#define BRASS_MMA_H
#include "brass_push.h"

#include "cuda_bf16.h"
#include "cuda_fp16.h"

namespace nvcuda
{
namespace wmma
{
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

#define BRASS_W static __device__ __forceinline__

template <class Use> struct brass_use; /* which side: 0 A, 1 B, 2 C */
template <> struct brass_use<matrix_a> {
    static const int side = 0;
};
template <> struct brass_use<matrix_b> {
    static const int side = 1;
};
template <> struct brass_use<accumulator> {
    static const int side = 2;
};

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
    static_assert((M == 16 && N == 16) || (M == 32 && N == 8) ||
                      (M == 8 && N == 32),
                  "wmma shapes are 16x16, 32x8 and 8x32");
    static const int side = brass_use<Use>::side;
    static_assert(K == 16 || (K == 8 && side == 2 && M == 16),
                  "K is 16 for these types");
    static const bool turned = M == 8; /* B is the big side */
    static const bool big = side == (turned ? 1 : 0);
    static const int big_tiles = M == 16 ? 1 : 2, small_tiles = M == 16 ? 2 : 1;
    static const int num_elements = side == 2 ? 8
                                    : big     ? 8 * big_tiles
                                              : 4 * small_tiles;
    typedef T element_type;
    typedef T storage_element_type;
    T x[num_elements];

    /* Where element e of this lane lies: row and column of its matrix. */
    __device__ __forceinline__ static void at(int e, int *row, int *col)
    {
        int lane =
            threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        int g = lane % 32 / 4, t = lane % 4, near, far, i = e % 4;

        if (side == 2) {
            int tile = e / 4;

            near = 16 * (tile / small_tiles) + g + 8 * (i / 2);
            far = 8 * (tile % small_tiles) + 2 * t + i % 2;
        } else if (big) {
            near = 16 * (e / 8) + g;
            near += 8 * (sizeof(T) == 2 ? e / 2 % 2 : e / 4 % 2);
            far = sizeof(T) == 2 ? 2 * t + e % 2 + 8 * (e / 4 % 2) : 4 * t + i;
        } else {
            near = 8 * (e / 4) + g;
            far = sizeof(T) == 2 ? 2 * t + i % 2 + 8 * (i / 2) : 4 * t + i;
        }
        *row = side == 1 || (side == 2 && turned) ? far : near;
        *col = side == 1 || (side == 2 && turned) ? near : far;
    }
};
/* One tile of A, two of B, of 8 in depth: words of 32 bits. */
namespace precision
{
struct tf32;
}
template <class Use, class Layout>
struct fragment<Use, 16, 16, 8, precision::tf32, Layout> {
    static const int side = brass_use<Use>::side, num_elements = 4;
    typedef float element_type;
    typedef float storage_element_type;
    float x[num_elements];

    __device__ __forceinline__ static void at(int e, int *row, int *col)
    {
        int lane =
            threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        int g = lane % 32 / 4, t = lane % 4;
        int near = g + 8 * (side == 0 ? e % 2 : e / 2);
        int far = t + 4 * (side == 0 ? e / 2 : e % 2);

        *row = side == 1 ? far : near;
        *col = side == 1 ? near : far;
    }
};
/* One element of A and B each, two of C. */
template <class Use, class Layout>
struct fragment<Use, 8, 8, 4, double, Layout> {
    static const int side = brass_use<Use>::side;
    static const int num_elements = side == 2 ? 2 : 1;
    typedef double element_type;
    typedef double storage_element_type;
    double x[num_elements];

    __device__ __forceinline__ static void at(int e, int *row, int *col)
    {
        int lane =
            threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        int g = lane % 32 / 4, t = lane % 4;

        *row = side == 1 ? t : g;
        *col = side == 1 ? g : side == 2 ? 2 * t + e : t;
    }
};

template <class L> struct brass_rows;
template <> struct brass_rows<row_major> {
    static const bool value = true;
};
template <> struct brass_rows<col_major> {
    static const bool value = false;
};

template <class F>
BRASS_W void
brass_load(F &f, const typename F::element_type *p, unsigned ld, bool rows)
{
    for (int e = 0; e < F::num_elements; e++) {
        int r, c;

        F::at(e, &r, &c);
        f.x[e] = p[rows ? r * ld + c : c * ld + r];
    }
}
template <class Use, int M, int N, int K, class T, class L>
BRASS_W void
load_matrix_sync(fragment<Use, M, N, K, T, L> &f, const T *p, unsigned ld)
{
    brass_load(f, p, ld, brass_rows<L>::value);
}
template <class Use, class L>
BRASS_W void
load_matrix_sync(fragment<Use, 16, 16, 8, precision::tf32, L> &f,
                 const float *p, unsigned ld)
{
    brass_load(f, p, ld, brass_rows<L>::value);
}
template <int M, int N, int K, class T>
BRASS_W void
load_matrix_sync(fragment<accumulator, M, N, K, T> &f, const T *p, unsigned ld,
                 layout_t layout)
{
    brass_load(f, p, ld, layout == mem_row_major);
}
template <int M, int N, int K, class T>
BRASS_W void
store_matrix_sync(T *p, const fragment<accumulator, M, N, K, T> &f, unsigned ld,
                  layout_t layout)
{
    for (int e = 0; e < f.num_elements; e++) {
        int r, c;

        fragment<accumulator, M, N, K, T>::at(e, &r, &c);
        p[layout == mem_row_major ? r * ld + c : c * ld + r] = f.x[e];
    }
}
template <class Use, int M, int N, int K, class T, class L, class V>
BRASS_W void
fill_fragment(fragment<Use, M, N, K, T, L> &f, const V &v)
{
    for (int e = 0; e < fragment<Use, M, N, K, T, L>::num_elements; e++)
        f.x[e] = (typename fragment<Use, M, N, K, T, L>::element_type)v;
}

/* ---- one m16n8k16 ------------------------------------------------------- */

template <class T>
BRASS_W unsigned
brass_word(const T *p)
{
    unsigned u;

    memcpy(&u, p, 4);
    return u;
}
#define BRASS_MMA(T, types)                                                  \
    BRASS_W void brass_mma(float *d, const T *a, const T *b, const float *c) \
    {                                                                        \
        asm("mma.sync.aligned.m16n8k16.row.col." types                       \
            " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"     \
            : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                 \
            : "r"(brass_word(a)), "r"(brass_word(a + 2)),                    \
              "r"(brass_word(a + 4)), "r"(brass_word(a + 6)),                \
              "r"(brass_word(b)), "r"(brass_word(b + 2)), "f"(c[0]),         \
              "f"(c[1]), "f"(c[2]), "f"(c[3]));                              \
    }
BRASS_MMA(__half, "f32.f16.f16.f32")
BRASS_MMA(__nv_bfloat16, "f32.bf16.bf16.f32")
#undef BRASS_MMA
BRASS_W void
brass_mma(__half *d, const __half *a, const __half *b, const __half *c)
{
    unsigned u, v;

    asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
        " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
        : "=r"(u), "=r"(v)
        : "r"(brass_word(a)), "r"(brass_word(a + 2)), "r"(brass_word(a + 4)),
          "r"(brass_word(a + 6)), "r"(brass_word(b)), "r"(brass_word(b + 2)),
          "r"(brass_word(c)), "r"(brass_word(c + 2)));
    memcpy(d, &u, 4);
    memcpy(d + 2, &v, 4);
}
#define BRASS_MMA(T, types)                                                   \
    BRASS_W void brass_mma(int *d, const T *a, const T *b, const int *c)      \
    {                                                                         \
        asm("mma.sync.aligned.m16n8k16.row.col." types                        \
            " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"                  \
            : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])                  \
            : "r"(brass_word(a)), "r"(brass_word(a + 4)), "r"(brass_word(b)), \
              "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));                    \
    }
BRASS_MMA(signed char, "s32.s8.s8.s32")
BRASS_MMA(unsigned char, "s32.u8.u8.s32")
#undef BRASS_MMA

template <int M, int N, int K, class T, class LA, class LB, class D>
BRASS_W void
mma_sync(fragment<accumulator, M, N, K, D> &d,
         const fragment<matrix_a, M, N, K, T, LA> &a,
         const fragment<matrix_b, M, N, K, T, LB> &b,
         const fragment<accumulator, M, N, K, D> &c)
{
    typedef fragment<accumulator, M, N, K, D> C;
    const T *big = C::turned ? b.x : a.x, *small = C::turned ? a.x : b.x;

    for (int i = 0; i < C::big_tiles; i++)
        for (int j = 0; j < C::small_tiles; j++) {
            int at = 4 * (i * C::small_tiles + j);

            brass_mma(d.x + at, big + 8 * i, small + 4 * j, c.x + at);
        }
}

BRASS_W float
__float_to_tf32(float f)
{
    unsigned u;

    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(f));
    return __uint_as_float(u);
}
template <class LA, class LB>
BRASS_W void
mma_sync(fragment<accumulator, 16, 16, 8, float> &d,
         const fragment<matrix_a, 16, 16, 8, precision::tf32, LA> &a,
         const fragment<matrix_b, 16, 16, 8, precision::tf32, LB> &b,
         const fragment<accumulator, 16, 16, 8, float> &c)
{
    for (int j = 0; j < 2; j++) {
        float *to = d.x + 4 * j;
        const float *from = c.x + 4 * j;

        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
            " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
            : "=f"(to[0]), "=f"(to[1]), "=f"(to[2]), "=f"(to[3])
            : "r"(brass_word(a.x)), "r"(brass_word(a.x + 1)),
              "r"(brass_word(a.x + 2)), "r"(brass_word(a.x + 3)),
              "r"(brass_word(b.x + 2 * j)), "r"(brass_word(b.x + 2 * j + 1)),
              "f"(from[0]), "f"(from[1]), "f"(from[2]), "f"(from[3]));
    }
}
template <class LA, class LB>
BRASS_W void
mma_sync(fragment<accumulator, 8, 8, 4, double> &d,
         const fragment<matrix_a, 8, 8, 4, double, LA> &a,
         const fragment<matrix_b, 8, 8, 4, double, LB> &b,
         const fragment<accumulator, 8, 8, 4, double> &c)
{
    int lane =
        threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int g = lane % 32 / 4, t = lane % 4;
    double sum[2] = {c.x[0], c.x[1]};

    for (int k = 0; k < 4; k++) {
        double of_a = __shfl_sync(0xffffffffu, a.x[0], 4 * g + k);

        for (int j = 0; j < 2; j++)
            sum[j] =
                fma(of_a, __shfl_sync(0xffffffffu, b.x[0], 4 * (2 * t + j) + k),
                    sum[j]);
    }
    d.x[0] = sum[0];
    d.x[1] = sum[1];
}
#undef BRASS_W
} // namespace wmma
} // namespace nvcuda

#include "brass_pop.h"
#endif
