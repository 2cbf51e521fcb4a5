/* few_bits.cu - mma.sync and wmma of 4 bits and of 1, in PTX: every shape, signs mixed,
 * saturated; and mma of bytes, saturated.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <limits.h>

enum { ROWS = 16, COLS = 8, MOST = 256 };

/* Numbers of `bits` bits, each an int in memory, as a register has them: K from `k` on. */
__device__ static unsigned
packed(const int *line, int k, int bits)
{
    unsigned v = 0;

    for (int e = 0; e < 32 / bits; e++)
        v |= ((unsigned)line[k + e] & ((1u << bits) - 1)) << e * bits;
    return v;
}

/* A and B, the second transposed, have MOST numbers a line. Registers are those that the
 * manual of PTX names. NA: rows by 8 of A times words of K. */
template <int M, int K, int BITS, class F>
__device__ static void
run(const int *a, const int *b, int *d, F product)
{
    const int g = threadIdx.x / 4, t = threadIdx.x % 4, each = 32 / BITS;
    const int rows = M / 8, words = K / (4 * each);
    unsigned fa[4], fb[2];
    int fd[4];

    for (int w = 0; w < words; w++) {
        for (int r = 0; r < rows; r++)
            fa[w * rows + r] =
                packed(a + (g + 8 * r) * MOST, w * 4 * each + t * each, BITS);
        fb[w] = packed(b + g * MOST, w * 4 * each + t * each, BITS);
    }
    for (int k = 0; k < 2 * rows; k++)
        fd[k] = d[(g + k / 2 * 8) * COLS + 2 * t + k % 2];
    product(fd, fa, fb);
    for (int k = 0; k < 2 * rows; k++)
        d[(g + k / 2 * 8) * COLS + 2 * t + k % 2] = fd[k];
}

#define SMALL(name, m, k, bits, text)                                                    \
    __global__ void name(const int *a, const int *b, int *d)                             \
    {                                                                                    \
        run<m, k, bits>(a, b, d, [](int *c, const unsigned *x, const unsigned *y) {      \
            asm volatile(text " {%0,%1}, {%2}, {%3}, {%0,%1};"                           \
                         : "+r"(c[0]), "+r"(c[1]) : "r"(x[0]), "r"(y[0]));               \
        });                                                                              \
    }
#define TALL(name, m, k, bits, text)                                                     \
    __global__ void name(const int *a, const int *b, int *d)                             \
    {                                                                                    \
        run<m, k, bits>(a, b, d, [](int *c, const unsigned *x, const unsigned *y) {      \
            asm volatile(text " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"            \
                         : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                \
                         : "r"(x[0]), "r"(x[1]), "r"(y[0]));                             \
        });                                                                              \
    }
#define LONG(name, m, k, bits, text)                                                     \
    __global__ void name(const int *a, const int *b, int *d)                             \
    {                                                                                    \
        run<m, k, bits>(a, b, d, [](int *c, const unsigned *x, const unsigned *y) {      \
            asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"   \
                         : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])                \
                         : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]),        \
                           "r"(y[1]));                                                   \
        });                                                                              \
    }
#define MMA "mma.sync.aligned."
SMALL(s4_s4, 8, 32, 4, MMA "m8n8k32.row.col.s32.s4.s4.s32")
SMALL(u4_s4, 8, 32, 4, MMA "m8n8k32.row.col.satfinite.s32.u4.s4.s32")
TALL(s4_u4, 16, 32, 4, MMA "m16n8k32.row.col.s32.s4.u4.s32")
LONG(u4_u4, 16, 64, 4, MMA "m16n8k64.row.col.s32.u4.u4.s32")
LONG(s4_sat, 16, 64, 4, MMA "m16n8k64.row.col.satfinite.s32.s4.s4.s32")
SMALL(xor_8, 8, 128, 1, MMA "m8n8k128.row.col.s32.b1.b1.s32.xor.popc")
TALL(and_16, 16, 128, 1, MMA "m16n8k128.row.col.s32.b1.b1.s32.and.popc")
LONG(xor_16, 16, 256, 1, MMA "m16n8k256.row.col.s32.b1.b1.s32.xor.popc")
LONG(and_long, 16, 256, 1, MMA "m16n8k256.row.col.s32.b1.b1.s32.and.popc")
SMALL(s8_sat, 8, 16, 8, MMA "m8n8k16.row.col.satfinite.s32.s8.s8.s32")
LONG(s8_u8, 16, 32, 8, MMA "m16n8k32.row.col.satfinite.s32.s8.u8.s32")

/* wmma has no layouts that others know: all of it, in memory. */
#define WMMA(name, shape, type, lc, text)                                                \
    __global__ void name(const unsigned *a, const unsigned *b, const int *c, int *d,     \
                         int lda, int ldb, int ldc)                                      \
    {                                                                                    \
        unsigned x, y;                                                                   \
        int z[2];                                                                        \
        asm volatile("wmma.load.a.sync.aligned.row." shape "." type " {%0}, [%1], %2;"   \
                     : "=r"(x) : "l"(a), "r"(lda));                                      \
        asm volatile("wmma.load.b.sync.aligned.col." shape "." type " {%0}, [%1], %2;"   \
                     : "=r"(y) : "l"(b), "r"(ldb));                                      \
        asm volatile("wmma.load.c.sync.aligned." lc "." shape ".s32 {%0,%1}, [%2], %3;"  \
                     : "=r"(z[0]), "=r"(z[1]) : "l"(c), "r"(ldc));                       \
        asm volatile(text " {%0,%1}, {%2}, {%3}, {%0,%1};"                               \
                     : "+r"(z[0]), "+r"(z[1]) : "r"(x), "r"(y));                         \
        asm volatile("wmma.store.d.sync.aligned." lc "." shape ".s32 [%0], {%1,%2}, %3;" \
                     ::"l"(d), "r"(z[0]), "r"(z[1]), "r"(ldc) : "memory");               \
    }
WMMA(wmma_s4, "m8n8k32", "s4", "row",
     "wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32.satfinite")
WMMA(wmma_u4, "m8n8k32", "u4", "col",
     "wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.u4.s32")
WMMA(wmma_xor, "m8n8k128", "b1", "col",
     "wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32")
WMMA(wmma_and, "m8n8k128", "b1", "row",
     "wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32")

static int
number(int bits, bool is_signed)
{
    const int v = (int)(rnd() * (float)(1 << bits));

    return is_signed ? v - (1 << (bits - 1)) : v;
}

static long long
times(int bits, int op, int a, int b)
{
    return bits > 1 ? (long long)a * b : op == '^' ? (a ^ b) & 1 : a & b & 1;
}

static int
kept(long long v)
{
    return v > INT_MAX ? INT_MAX : v < INT_MIN ? INT_MIN : (int)v;
}

static void
check(void (*fn)(const int *, const int *, int *), int m, int k, int bits, bool sa, bool sb,
      int op)
{
    std::vector<int> a(ROWS * MOST), b(COLS * MOST), c(ROWS * COLS);
    int bad = 0;

    for (int &v : a)
        v = number(bits, sa);
    for (int &v : b)
        v = number(bits, sb);
    for (size_t i = 0; i < c.size(); i++) /* some at the ends of int */
        c[i] = op != 's' || i % 3 ? (int)(rnd() * 1000) - 500 : i % 2 ? INT_MAX : INT_MIN;
    Dev<int> da(a), db(b), d(c);
    fn<<<1, 32>>>(da.p, db.p, d.p);
    std::vector<int> is = d.get();
    for (int i = 0; i < m; i++)
        for (int j = 0; j < COLS; j++) {
            long long v = c[i * COLS + j];

            for (int x = 0; x < k; x++)
                v += times(bits, op, a[i * MOST + x], b[j * MOST + x]);
            bad += is[i * COLS + j] != kept(v);
        }
    for (int i = m * COLS; i < ROWS * COLS; i++)
        bad += is[i] != c[i];
    EXPECT(bad == 0);
}

static int
at(const std::vector<unsigned> &m, int i, int bits, bool is_signed)
{
    const int n = 32 / bits;
    const int v = (int)(m[i / n] >> i % n * bits & ((1u << bits) - 1));

    return is_signed && v >> (bits - 1) ? v - (1 << bits) : v;
}

static void
check_wmma(void (*fn)(const unsigned *, const unsigned *, const int *, int *, int, int, int),
           int k, int bits, bool is_signed, bool rows, int op)
{
    const int lda = 2 * k, ldb = k, ldc = 12;
    std::vector<unsigned> a(8 * lda * bits / 32), b(8 * ldb * bits / 32);
    std::vector<int> c(8 * ldc);
    int bad = 0;

    for (unsigned &v : a)
        v = (unsigned)(rnd() * 65536) << 16 | (unsigned)(rnd() * 65536);
    for (unsigned &v : b)
        v = (unsigned)(rnd() * 65536) << 16 | (unsigned)(rnd() * 65536);
    for (int &v : c)
        v = (int)(rnd() * 1000) - 500;
    Dev<unsigned> da(a), db(b);
    Dev<int> dc(c), dd(c);
    fn<<<1, 32>>>(da.p, db.p, dc.p, dd.p, lda, ldb, ldc);
    std::vector<int> is = dd.get();
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++) {
            const int to = rows ? i * ldc + j : j * ldc + i;
            long long v = c[to];

            for (int x = 0; x < k; x++)
                v += times(bits, op, at(a, i * lda + x, bits, is_signed),
                           at(b, j * ldb + x, bits, is_signed));
            bad += is[to] != v;
            c[to] = is[to];
        }
    EXPECT(bad == 0);
    EXPECT(c == is); /* nothing between lines is written */
}

int
main()
{
    check(s4_s4, 8, 32, 4, true, true, 0);
    check(u4_s4, 8, 32, 4, false, true, 's');
    check(s4_u4, 16, 32, 4, true, false, 0);
    check(u4_u4, 16, 64, 4, false, false, 0);
    check(s4_sat, 16, 64, 4, true, true, 's');
    check(xor_8, 8, 128, 1, false, false, '^');
    check(and_16, 16, 128, 1, false, false, '&');
    check(xor_16, 16, 256, 1, false, false, '^');
    check(and_long, 16, 256, 1, false, false, '&');
    check(s8_sat, 8, 16, 8, true, true, 's');
    check(s8_u8, 16, 32, 8, true, false, 's');
    check_wmma(wmma_s4, 32, 4, true, true, 0);
    check_wmma(wmma_u4, 32, 4, false, false, 0);
    check_wmma(wmma_xor, 128, 1, false, false, '^');
    check_wmma(wmma_and, 128, 1, false, true, '&');
    return done();
}
