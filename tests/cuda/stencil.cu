/* stencil.cu - a wave in a box: three time levels, planes kept in registers on
 * the way through, rows with a pitch; and a plane of heat by shared tiles.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

enum { X = 32, Y = 12, Z = 9, EDGE = 16 };

__global__ void
wave(cudaPitchedPtr now, cudaPitchedPtr old, float c)
{
    int x = threadIdx.x, y = blockIdx.x * blockDim.y + threadIdx.y;
    auto at = [=](cudaPitchedPtr p, int z) -> float & {
        return ((float *)((char *)p.ptr + (z * Y + y) * p.pitch))[x];
    };

    if (x < 1 || x >= X - 1 || y < 1 || y >= Y - 1)
        return;
    float below = at(now, 0), here = at(now, 1);
    for (int z = 1; z < Z - 1; z++) {
        float above = at(now, z + 1);
        const float *row = &at(now, z);
        float around = row[-1] + row[1] +
                       *(const float *)((const char *)row - now.pitch) +
                       *(const float *)((const char *)row + now.pitch);

        at(old, z) =
            2 * here - at(old, z) + c * (around + above + below - 6 * here);
        below = here;
        here = above;
    }
}
__global__ void
heat(const float *in, float *out, int n)
{
    __shared__ float t[EDGE + 2][EDGE + 3];
    int gx = blockIdx.x * EDGE, gy = blockIdx.y * EDGE;

    for (int k = threadIdx.y * EDGE + threadIdx.x; k < (EDGE + 2) * (EDGE + 2);
         k += EDGE * EDGE) {
        int x = min(max(gx + k % (EDGE + 2) - 1, 0), n - 1);
        int y = min(max(gy + k / (EDGE + 2) - 1, 0), n - 1);

        t[k / (EDGE + 2)][k % (EDGE + 2)] = in[y * n + x];
    }
    __syncthreads();
    int x = threadIdx.x + 1, y = threadIdx.y + 1;
    if (gx + x <= n && gy + y <= n)
        out[(gy + y - 1) * n + gx + x - 1] =
            t[y][x] + 0.2f * (t[y - 1][x] + t[y + 1][x] + t[y][x - 1] +
                              t[y][x + 1] - 4 * t[y][x]);
}

static void
box()
{
    std::vector<float> now(X * Y * Z, 0.0f), old(now);
    cudaPitchedPtr p[2];
    cudaMemcpy3DParms c = {};

    now[(Z / 2 * Y + Y / 2) * X + X / 2] = 1;
    for (int k = 0; k < 2; k++) {
        CHECK(cudaMalloc3D(&p[k], make_cudaExtent(X * 4, Y, Z)));
        c.srcPtr = make_cudaPitchedPtr((k ? old : now).data(), X * 4, X, Y);
        c.dstPtr = p[k];
        c.extent = make_cudaExtent(X * 4, Y, Z);
        c.kind = cudaMemcpyHostToDevice;
        CHECK(cudaMemcpy3D(&c));
    }
    for (int step = 0; step < 4; step++) {
        wave<<<Y / 4, dim3(X, 4)>>>(p[step & 1], p[~step & 1], 0.1f);
        std::vector<float> next(old);
        for (int z = 1; z < Z - 1; z++)
            for (int y = 1; y < Y - 1; y++)
                for (int x = 1; x < X - 1; x++) {
                    int i = (z * Y + y) * X + x;

                    next[i] = 2 * now[i] - old[i] +
                              0.1f * (now[i - 1] + now[i + 1] + now[i - X] +
                                      now[i + X] + now[i - X * Y] +
                                      now[i + X * Y] - 6 * now[i]);
                }
        old = now;
        now = next;
    }
    std::vector<float> got(X * Y * Z);
    c.srcPtr = p[0];
    c.dstPtr = make_cudaPitchedPtr(got.data(), X * 4, X, Y);
    c.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&c));
    for (size_t i = 0; i < got.size(); i++)
        EXPECT(near(got[i], now[i], 1e-5));
    CHECK(cudaFree(p[0].ptr));
    CHECK(cudaFree(p[1].ptr));
}

static void
plane()
{
    const int n = 40;
    std::vector<float> a(n * n);

    for (float &f : a)
        f = rnd();
    Dev<float> in(a), out(n * n);

    heat<<<dim3(3, 3), dim3(EDGE, EDGE)>>>(in, out, n);
    std::vector<float> got = out.get();
    for (int i = 0; i < n * n; i++) {
        int x = i % n, y = i / n;
        float s = a[i] + 0.2f * (a[std::max(y - 1, 0) * n + x] +
                                 a[std::min(y + 1, n - 1) * n + x] +
                                 a[y * n + std::max(x - 1, 0)] +
                                 a[y * n + std::min(x + 1, n - 1)] - 4 * a[i]);

        EXPECT(near(got[i], s, 1e-6));
    }
}

int
main()
{
    box();
    plane();
    return done();
}
