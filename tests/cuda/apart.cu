/* apart.cu - device code in two files, compiled with -rdc=true and linked: calls,
 * variables, constants and functions' addresses across files, names that are
 * static in both.
 * SPDX-License-Identifier: Apache-2.0 */
#include "apart.h"
#include "check.h"

static __device__ int mine = 100; /* the other file has one, too */
static __device__ __noinline__ int
twist(int x)
{
    return x * 2 + mine;
}

__device__ Force by_name = spring; /* an address from the other file */

__global__ void
simulate(Particle *p, int *o)
{
    int i = threadIdx.x;

    p[i].speed += by_name(p[i].at) * 0.5f;
    p[i].move(0.5f);
    p[i].at = clamp(p[i].at, -10.f, 10.f);
    o[i] = twist(i) + clamp(i, 3, 7);
    count_up(&moved);
}

int
main()
{
    std::vector<Particle> v(64);
    int n = -1, seven = 7;

    for (int i = 0; i < 64; i++)
        v[i].at = (float)i, v[i].speed = 1;
    Dev<Particle> p(v);
    Dev<int> o(64);
    float d = 0.25f;

    EXPECT(others() == 3 * 64); /* the kernel of that file */
    CHECK(cudaMemcpyToSymbol(drag, &d, sizeof d));
    CHECK(cudaMemcpyToSymbol(mine, &seven, sizeof seven));
    simulate<<<1, 64>>>(p.p, o.p);
    CHECK(cudaMemcpyFromSymbol(&n, moved, sizeof n));
    EXPECT(n == 64);
    v = p.get();
    std::vector<int> got = o.get();
    for (int i = 0; i < 64; i++) {
        float speed = 1 + -2.f * i * 0.5f, at;

        speed -= speed * d * 0.5f;
        at = i + speed * 0.5f;
        EXPECT(near(v[i].at, at < -10 ? -10 : at > 10 ? 10 : at, 1e-6));
        EXPECT(got[i] == 2 * i + 7 + (i < 3 ? 3 : i > 7 ? 7 : i));
    }
    return done();
}
