/* cells.cu - particles that push each other, found by a grid of cells: counted,
 * laid out by prefix sums, sorted by cell; and work from a queue that grows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

enum { SIDE = 8, CELLS = SIDE * SIDE };

__device__ int
cell_of(float2 p)
{
    return min((int)p.y, SIDE - 1) * SIDE + min((int)p.x, SIDE - 1);
}
__global__ void
count(const float2 *p, int n, int *cells)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        atomicAdd(&cells[cell_of(p[i])], 1);
}
__global__ void
starts(const int *cells, int *start, int *next)
{
    __shared__ int s[2][CELLS];
    int i = threadIdx.x, at = 0;

    s[0][i] = cells[i];
    __syncthreads();
    for (int by = 1; by < CELLS; by *= 2, at ^= 1) {
        s[at ^ 1][i] = s[at][i] + (i >= by ? s[at][i - by] : 0);
        __syncthreads();
    }
    start[i + 1] = s[at][i];
    next[i] = s[at][i] - cells[i];
    if (i == 0)
        start[0] = 0;
}
__global__ void
place(const float2 *p, int n, int *next, float2 *sorted, int *id)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n)
        return;
    int to = atomicAdd(&next[cell_of(p[i])], 1);
    sorted[to] = p[i];
    id[to] = i;
}
__host__ __device__ inline float2
push(float2 a, float2 b)
{
    float dx = a.x - b.x, dy = a.y - b.y, r = dx * dx + dy * dy;

    return r < 1 && r > 0 ? float2{dx * (1 - r), dy * (1 - r)} : float2{0, 0};
}
__global__ void
forces(const float2 *p, const int *id, const int *start, int n, float2 *f)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float2 sum = {0, 0};

    if (i >= n)
        return;
    int c = cell_of(p[i]), cx = c % SIDE, cy = c / SIDE;
    for (int y = max(cy - 1, 0); y <= min(cy + 1, SIDE - 1); y++)
        for (int x = max(cx - 1, 0); x <= min(cx + 1, SIDE - 1); x++)
            for (int k = start[y * SIDE + x]; k < start[y * SIDE + x + 1];
                 k++) {
                float2 one = push(p[i], p[k]);

                sum.x += one.x;
                sum.y += one.y;
            }
    f[id[i]] = sum;
}

/* Threads stay and take tasks; a task above 1 puts two more. Every task counts
 * itself, and the last one to go ends it. */
struct Queue {
    int head, tail, open, taken, task[600];
};
__global__ void
work(Queue *q)
{
    while (atomicAdd(&q->open, 0) > 0) {
        int at = atomicAdd(&q->head, 0);

        if (at >= atomicAdd(&q->tail, 0))
            continue;
        if (atomicCAS(&q->head, at, at + 1) != at)
            continue;
        int t;
        while ((t = atomicExch(&q->task[at], -1)) < 0)
            ;
        if (t > 1) {
            atomicAdd(&q->open, 2);
            for (int part : {t / 2, t - t / 2}) {
                int to = atomicAdd(&q->tail, 1);

                atomicExch(&q->task[to], part);
            }
        } else {
            atomicAdd(&q->taken, t);
        }
        __threadfence();
        atomicSub(&q->open, 1);
    }
}

int
main()
{
    const int n = 600, blocks = (n + 127) / 128;
    std::vector<float2> p(n);

    for (float2 &x : p)
        x = make_float2(rnd() * SIDE, rnd() * SIDE);
    Dev<float2> dp(p), sorted(n), f(n);
    Dev<int> cells(std::vector<int>(CELLS, 0)), start(CELLS + 1), next(CELLS),
        id(n);

    count<<<blocks, 128>>>(dp, n, cells);
    starts<<<1, CELLS>>>(cells, start, next);
    place<<<blocks, 128>>>(dp, n, next, sorted, id);
    forces<<<blocks, 128>>>(sorted, id, start, n, f);
    std::vector<float2> got = f.get();
    for (int i = 0; i < n; i += 3) {
        float2 sum = {0, 0};

        for (int k = 0; k < n; k++) {
            float2 one = push(p[i], p[k]);

            sum.x += one.x;
            sum.y += one.y;
        }
        EXPECT(near(got[i].x, sum.x, 1e-4) && near(got[i].y, sum.y, 1e-4));
    }

    Queue *q;
    CHECK(cudaMallocManaged(&q, sizeof *q));
    for (int &t : q->task)
        t = -1;
    q->head = q->taken = 0;
    q->tail = q->open = 1;
    q->task[0] = 200;
    work<<<2, 1>>>(q);
    CHECK(cudaDeviceSynchronize());
    EXPECT(q->taken == 200 && q->tail == 399);
    CHECK(cudaFree(q));
    return done();
}
