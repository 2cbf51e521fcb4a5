/* apart_2.cu - the other half of apart.cu.
 * SPDX-License-Identifier: Apache-2.0 */
#include "apart.h"
#include "check.h"

__constant__ float drag = 0.5f;
__device__ int moved;
static __device__ int mine = 1;

static __device__ __noinline__ float
twist(float x)
{
    return x * (float)-mine * 2;
}
__device__ float
spring(float x)
{
    return twist(x);
}
__device__ void
Particle::move(float dt)
{
    speed -= speed * drag * dt;
    at += speed * dt;
}
__device__ int
count_up(int *p)
{
    return atomicAdd(p, mine);
}

static __global__ void
kernel(int *sum)
{
    atomicAdd(sum, clamp(1000, 0, 3));
}
int
others()
{
    Dev<int> sum(std::vector<int>(1, 0));

    kernel<<<2, 32>>>(sum.p);
    return sum.get()[0];
}
