/* check.h - what the programs here check themselves with.
 *
 *     CHECK(cudaMalloc(&p, n));      a call that has to succeed
 *     EXPECT(x == y);                a condition
 *     return done();                 exit code 0 when all held
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDA_CHECK_H
#define CUDA_CHECK_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

static int failures;

#define EXPECT(c)                    \
    ((c) ? (void)0                   \
         : (void)(failures++ < 20 && \
                  fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c)))
#define CHECK(call)                                                       \
    do {                                                                  \
        cudaError_t e_ = (call);                                          \
        if (e_ != cudaSuccess) {                                          \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                    cudaGetErrorString(e_));                              \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

static inline int
done()
{
    if (failures)
        fprintf(stderr, "%d checks failed\n", failures);
    return failures != 0;
}

/* Numbers in [0, 1), the same everywhere. */
static inline float
rnd()
{
    static unsigned s = 12345;

    s = s * 1664525u + 1013904223u;
    return (float)(s >> 8) / 16777216.0f;
}
static inline bool
near(double a, double b, double tol)
{
    return fabs(a - b) <= tol * (1 + fabs(b));
}

/* Device memory that holds a vector, and goes with it. */
template <class T> struct Dev {
    T *p;
    size_t n;
    explicit Dev(size_t k) : n(k) { CHECK(cudaMalloc(&p, k * sizeof(T))); }
    explicit Dev(const std::vector<T> &v) : n(v.size())
    {
        CHECK(cudaMalloc(&p, n * sizeof(T)));
        CHECK(cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    }
    ~Dev() { cudaFree(p); }
    std::vector<T> get() const
    {
        std::vector<T> v(n);
        CHECK(cudaMemcpy(v.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
        return v;
    }
    operator T *() const { return p; }
};
#endif
