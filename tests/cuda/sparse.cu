/* sparse.cu - a sparse matrix times a vector: a thread a row, a warp a row; and
 * breadth-first search over the same matrix as a graph.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

template <class T> struct Rows { /* compressed: passed by value */
    const int *start, *col;
    const T *value;
    int n;
};

template <class T>
__global__ void
by_thread(Rows<T> m, const T *x, T *y)
{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    T sum = 0;

    if (r >= m.n)
        return;
    for (int k = m.start[r]; k < m.start[r + 1]; k++)
        sum += m.value[k] * __ldg(&x[m.col[k]]);
    y[r] = sum;
}
template <class T>
__global__ void
by_warp(Rows<T> m, const T *x, T *y)
{
    int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32,
        lane = threadIdx.x % 32;
    T sum = 0;

    if (r >= m.n)
        return;
    for (int k = m.start[r] + lane; k < m.start[r + 1]; k += 32)
        sum += m.value[k] * x[m.col[k]];
    for (int by = 16; by; by /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, by);
    if (lane == 0)
        y[r] = sum;
}
__global__ void
visit(Rows<double> m, const int *from, int n, int *level, int depth, int *next,
      int *n_next)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        for (int k = m.start[from[i]]; k < m.start[from[i] + 1]; k++)
            if (atomicCAS(&level[m.col[k]], -1, depth) == -1)
                next[atomicAdd(n_next, 1)] = m.col[k];
}

int
main()
{
    const int n = 400;
    std::vector<int> start(1, 0), col, want(n, -1), queue(1, 0);
    std::vector<double> value, x(n);

    for (int r = 0; r < n; r++) {
        for (int k = (int)(rnd() * (r % 50 ? 4 : 90)); k-- > 0;) {
            col.push_back((int)(rnd() * n));
            value.push_back(rnd() - 0.5);
        }
        start.push_back((int)col.size());
        x[r] = rnd();
    }
    Dev<int> ds(start), dc(col);
    Dev<double> dv(value), dx(x), y1(n), y2(n);
    Rows<double> m = {ds, dc, dv, n};

    by_thread<double><<<(n + 127) / 128, 128>>>(m, dx, y1);
    by_warp<double><<<(n * 32 + 127) / 128, 128>>>(m, dx, y2);
    std::vector<double> a = y1.get(), b = y2.get();
    for (int r = 0; r < n; r++) {
        double sum = 0;

        for (int k = start[r]; k < start[r + 1]; k++)
            sum += value[k] * x[col[k]];
        EXPECT(near(a[r], sum, 1e-12) && near(b[r], sum, 1e-12));
    }

    std::vector<int> first(n, -1);
    first[0] = want[0] = 0;
    Dev<int> level(first), q1(n), q2(n), count(1);
    int *now = q1, *next = q2, size = 1, zero = 0;

    CHECK(cudaMemcpy(now, &zero, 4, cudaMemcpyHostToDevice));
    for (int depth = 1; size; depth++) {
        CHECK(cudaMemset(count, 0, 4));
        visit<<<(size + 63) / 64, 64>>>(m, now, size, level, depth, next,
                                        count);
        CHECK(cudaMemcpy(&size, count, 4, cudaMemcpyDeviceToHost));
        std::swap(now, next);
    }
    for (size_t k = 0; k < queue.size(); k++)
        for (int e = start[queue[k]]; e < start[queue[k] + 1]; e++)
            if (want[col[e]] < 0) {
                want[col[e]] = want[queue[k]] + 1;
                queue.push_back(col[e]);
            }
    EXPECT(level.get() == want);
    return done();
}
