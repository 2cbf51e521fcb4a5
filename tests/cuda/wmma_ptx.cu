/* wmma_ptx.cu - wmma of PTX itself, as nvcc's mma.h has it (ours has mma.sync): every
 * shape, type and layout, lines longer than a row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define R1(f) "=r"(f[0])
#define R2(f) R1(f), "=r"(f[1])
#define R4(f) R2(f), "=r"(f[2]), "=r"(f[3])
#define R8(f) R4(f), "=r"(f[4]), "=r"(f[5]), "=r"(f[6]), "=r"(f[7])
#define S1(f) "r"(f[0])
#define S2(f) S1(f), "r"(f[1])
#define S4(f) S2(f), "r"(f[2]), "r"(f[3])
#define S8(f) S4(f), "r"(f[4]), "r"(f[5]), "r"(f[6]), "r"(f[7])
#define L1 "{%0}"
#define L2 "{%0,%1}"
#define L4 "{%0,%1,%2,%3}"
#define L8 "{%0,%1,%2,%3,%4,%5,%6,%7}"

/* NA, NB, NC: registers; the numbers of operands follow from them. */
#define KERNEL(name, shape, la, lb, lc, ta, tc, types, NA, NB, NC, dlist, alist, blist,  \
               clist)                                                               \
    __global__ void name(const void *a, const void *b, const void *c, void *d, int lda, \
                         int ldb, int ldc)                                              \
    {                                                                                   \
        unsigned fa[8], fb[8], fc[8], fd[8];                                            \
        asm volatile("wmma.load.a.sync.aligned." la "." shape "." ta " " L##NA          \
                     ", [%" #NA "], %" XP(NA) ";"                                       \
                     : R##NA(fa) : "l"(a), "r"(lda));                                   \
        asm volatile("wmma.load.b.sync.aligned." lb "." shape "." ta " " L##NB          \
                     ", [%" #NB "], %" XP(NB) ";"                                       \
                     : R##NB(fb) : "l"(b), "r"(ldb));                                   \
        asm volatile("wmma.load.c.sync.aligned." lc "." shape "." tc " " L##NC          \
                     ", [%" #NC "], %" XP(NC) ";"                                       \
                     : R##NC(fc) : "l"(c), "r"(ldc));                                   \
        asm volatile("wmma.mma.sync.aligned." la "." lb "." shape types                 \
                     " " dlist ", " alist ", " blist ", " clist ";"                     \
                     : R##NC(fd) : S##NA(fa), S##NB(fb), S##NC(fc));                    \
        asm volatile("wmma.store.d.sync.aligned." lc "." shape "." tc " [%0], "         \
                     STORE##NC ", %" XQ(NC) ";" ::"l"(d), S##NC(fd), "r"(ldc)           \
                     : "memory");                                                       \
    }
#define XP(n) XP##n
#define XP1 "2"
#define XP2 "3"
#define XP4 "5"
#define XP8 "9"
#define XQ(n) XQ##n
#define XQ4 "5"
#define XQ8 "9"
#define STORE4 "{%1,%2,%3,%4}"
#define STORE8 "{%1,%2,%3,%4,%5,%6,%7,%8}"
#define F8_0 "{%0,%1,%2,%3,%4,%5,%6,%7}"
#define F8_8 "{%8,%9,%10,%11,%12,%13,%14,%15}"
#define F8_16 "{%16,%17,%18,%19,%20,%21,%22,%23}"
#define F8_24 "{%24,%25,%26,%27,%28,%29,%30,%31}"
#define F8_12 "{%12,%13,%14,%15,%16,%17,%18,%19}"
#define F8_20 "{%20,%21,%22,%23,%24,%25,%26,%27}"
#define F8_10 "{%10,%11,%12,%13,%14,%15,%16,%17}"
#define F8_18 "{%18,%19,%20,%21,%22,%23,%24,%25}"
#define F8_13 "{%13,%14,%15,%16,%17,%18,%19,%20}"
#define F4_0 "{%0,%1,%2,%3}"
#define F4_8 "{%8,%9,%10,%11}"
#define F4_12 "{%12,%13,%14,%15}"
#define F4_20 "{%20,%21,%22,%23}"
#define F2_8 "{%8,%9}"
#define F2_10 "{%10,%11}"
#define F1_12 "{%12}"

#define HALF(name, shape, la, lb, lc)                                              \
    KERNEL(name, shape, la, lb, lc, "f16", "f32", ".f32.f32", 8, 8, 8, F8_0, F8_8, \
           F8_16, F8_24)
HALF(half_rc, "m16n16k16", "row", "col", "row")
HALF(half_cr, "m16n16k16", "col", "row", "col")
HALF(tall_rr, "m32n8k16", "row", "row", "col")
HALF(tall_cc, "m32n8k16", "col", "col", "row")
HALF(wide_rr, "m8n32k16", "row", "row", "row")
HALF(wide_cc, "m8n32k16", "col", "col", "col")
KERNEL(half_half, "m8n32k16", "row", "col", "col", "f16", "f16", ".f16.f16", 8, 8, 4,
       F4_0, "{%4,%5,%6,%7,%8,%9,%10,%11}", F8_12, F4_20)
KERNEL(bytes_tall, "m32n8k16", "col", "row", "row", "s8", "s32", ".s32.s8.s8.s32", 4, 1,
       8, F8_0, F4_8, F1_12, F8_13)
KERNEL(bytes_square, "m16n16k16", "row", "row", "col", "s8", "s32", ".s32.s8.s8.s32", 2,
       2, 8, F8_0, F2_8, F2_10, F8_12)
KERNEL(brain_wide, "m8n32k16", "row", "col", "row", "bf16", "f32", ".f32.bf16.bf16.f32",
       2, 8, 8, F8_0, F2_8, F8_10, F8_18)
KERNEL(tensor, "m16n16k8", "col", "row", "row", "tf32", "f32", ".f32.tf32.tf32.f32", 4,
       4, 8, F8_0, F4_8, F4_12, "{%16,%17,%18,%19,%20,%21,%22,%23}")

#define DOUBLES(name, la, lb, lc, product)                                              \
    __global__ void name(const void *a, const void *b, const void *c, void *d, int lda, \
                         int ldb, int ldc)                                              \
    {                                                                                   \
        double x, y, z[2];                                                              \
        asm volatile("wmma.load.a.sync.aligned." la ".m8n8k4.f64 {%0}, [%1], %2;"       \
                     : "=d"(x) : "l"(a), "r"(lda));                                     \
        asm volatile("wmma.load.b.sync.aligned." lb ".m8n8k4.f64 {%0}, [%1], %2;"       \
                     : "=d"(y) : "l"(b), "r"(ldb));                                     \
        asm volatile("wmma.load.c.sync.aligned." lc ".m8n8k4.f64 {%0,%1}, [%2], %3;"    \
                     : "=d"(z[0]), "=d"(z[1]) : "l"(c), "r"(ldc));                      \
        asm volatile(product " {%0,%1}, {%2}, {%3}, {%0,%1};"                           \
                     : "+d"(z[0]), "+d"(z[1]) : "d"(x), "d"(y));                        \
        asm volatile("wmma.store.d.sync.aligned." lc ".m8n8k4.f64 [%0], {%1,%2}, %3;"   \
                     ::"l"(d), "d"(z[0]), "d"(z[1]), "r"(ldc) : "memory");              \
    }
DOUBLES(doubles_rc, "row", "col", "row",
        "wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64.rn")
DOUBLES(doubles_cr, "col", "row", "col",
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64")

typedef void (*kernel)(const void *, const void *, const void *, void *, int, int, int);

/* ra: a's rows lie side by side ... */
template <class T, class D>
static void
check(kernel run, int M, int N, int K, bool ra, bool rb, bool rc, float scale)
{
    const int lda = (ra ? K : M) + 16, ldb = (rb ? N : K) + 16, ldc = (rc ? N : M) + 16;
    std::vector<T> a(lda * (ra ? M : K)), b(ldb * (rb ? K : N));
    std::vector<D> c(ldc * (rc ? M : N));
    int bad = 0;

    for (T &v : a)
        v = (T)(float)(int)((rnd() - 0.5f) * scale);
    for (T &v : b)
        v = (T)(float)(int)((rnd() - 0.5f) * scale);
    for (D &v : c)
        v = (D)(float)(int)((rnd() - 0.5f) * scale);
    Dev<T> da(a), db(b);
    Dev<D> dc(c), dd(c);
    run<<<1, 32>>>(da.p, db.p, dc.p, dd.p, lda, ldb, ldc);
    std::vector<D> d = dd.get();
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            const int at = rc ? i * ldc + j : j * ldc + i;
            double sum = (double)(float)c[at];

            for (int k = 0; k < K; k++)
                sum += (double)(float)a[ra ? i * lda + k : k * lda + i] *
                       (double)(float)b[rb ? k * ldb + j : j * ldb + k];
            bad += (double)(float)d[at] != sum; /* whole numbers: exact */
            c[at] = d[at];
        }
    for (size_t i = 0; i < c.size(); i++)
        bad += (float)c[i] != (float)d[i]; /* nothing between lines is written */
    EXPECT(bad == 0);
}

int
main()
{
    check<__half, float>(half_rc, 16, 16, 16, true, false, true, 20);
    check<__half, float>(half_cr, 16, 16, 16, false, true, false, 20);
    check<__half, float>(tall_rr, 32, 8, 16, true, true, false, 20);
    check<__half, float>(tall_cc, 32, 8, 16, false, false, true, 20);
    check<__half, float>(wide_rr, 8, 32, 16, true, true, true, 20);
    check<__half, float>(wide_cc, 8, 32, 16, false, false, false, 20);
    check<__half, __half>(half_half, 8, 32, 16, true, false, false, 8);
    check<signed char, int>(bytes_tall, 32, 8, 16, false, true, true, 250);
    check<signed char, int>(bytes_square, 16, 16, 16, true, true, false, 250);
    check<__nv_bfloat16, float>(brain_wide, 8, 32, 16, true, false, true, 20);
    check<float, float>(tensor, 16, 16, 8, false, true, true, 20);
    check<double, double>(doubles_rc, 8, 8, 4, true, false, true, 20);
    check<double, double>(doubles_cr, 8, 8, 4, false, true, false, 20);
    return done();
}
