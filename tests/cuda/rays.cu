/* rays.cu - a picture of spheres: structures in constant memory, recursion made
 * a loop, a checkered floor, and shadows; the host draws the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

enum { W = 48, H = 32, BALLS = 4 };
struct Vec {
    float x, y, z;
    __host__ __device__ Vec(float a = 0, float b = 0, float c = 0)
        : x(a), y(b), z(c)
    {
    }
};
__host__ __device__ inline Vec
operator+(Vec a, Vec b)
{
    return Vec(a.x + b.x, a.y + b.y, a.z + b.z);
}
__host__ __device__ inline Vec
operator*(float s, Vec a)
{
    return Vec(s * a.x, s * a.y, s * a.z);
}
__host__ __device__ inline Vec
operator-(Vec a, Vec b)
{
    return a + -1.0f * b;
}
__host__ __device__ inline float
dot(Vec a, Vec b)
{
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
struct Ball {
    float x, y, z, r, shine;
};
__constant__ Ball balls[BALLS];

/* How far the ray goes to the ball; 0: past it. */
__host__ __device__ inline float
hit(const Ball &b, Vec from, Vec to)
{
    Vec c = Vec(b.x, b.y, b.z) - from;
    float m = dot(c, to), q = m * m - dot(c, c) + b.r * b.r;

    return q > 0 && m - sqrtf(q) > 1e-3f ? m - sqrtf(q) : 0;
}
__host__ __device__ inline float
shade(const Ball *all, int px, int py)
{
    Vec at(0, 1, -4), way((px - W / 2 + 0.5f) / H, (H / 2 - py - 0.5f) / H, 1);
    const Vec sun(0.48f, 0.8f, -0.36f);
    float light = 0, weight = 1;

    way = 1 / sqrtf(dot(way, way)) * way;
    for (int bounce = 0; bounce < 3; bounce++) {
        float near_ = 1e9f, t;
        int k = -1;

        for (int i = 0; i < BALLS; i++)
            if ((t = hit(all[i], at, way)) > 0 && t < near_) {
                near_ = t;
                k = i;
            }
        if (k < 0 && way.y >= -1e-4f)
            return light + weight * (0.5f + 0.5f * way.y);
        if (k < 0) { /* the floor */
            Vec p = at + at.y / -way.y * way;
            bool dark = false;

            for (int i = 0; i < BALLS; i++)
                dark |= hit(all[i], p, sun) > 0;
            return light + weight * (dark ? 0.1f : 0.6f);
        }
        at = at + near_ * way;
        Vec n = 1 / all[k].r * (at - Vec(all[k].x, all[k].y, all[k].z));
        light += weight * (1 - all[k].shine) * fmaxf(0, dot(n, sun));
        weight *= all[k].shine;
        way = way - 2 * dot(n, way) * n;
    }
    return light;
}
__global__ void
draw(float *picture)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;

    picture[y * W + x] = shade(balls, x, y);
}

int
main()
{
    const Ball b[BALLS] = {{0, 1, 2, 1, 0.5f},
                           {-1.6f, 0.6f, 1, 0.6f, 0.2f},
                           {1.5f, 0.5f, 0.5f, 0.5f, 0.7f},
                           {0.2f, 0.3f, -0.5f, 0.3f, 0}};
    Dev<float> picture(W * H);
    int off = 0;

    CHECK(cudaMemcpyToSymbol(balls, b, sizeof b));
    draw<<<dim3(W / 16, H / 8), dim3(16, 8)>>>(picture);
    std::vector<float> got = picture.get();
    for (int i = 0; i < W * H; i++)
        off += fabs(got[i] - shade(b, i % W, i / W)) > 1e-3;
    EXPECT(off <= 12); /* an edge may fall to its other side */
    return done();
}
