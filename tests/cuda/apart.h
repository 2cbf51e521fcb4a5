/* apart.h - what the two halves of apart.cu know of each other.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDA_APART_H
#define CUDA_APART_H

struct Particle {
    float at, speed;
    __device__ void move(float dt);
};
typedef float (*Force)(float);

extern __constant__ float drag;
extern __device__ int moved;
__device__ float spring(float x);
__device__ __noinline__ int count_up(int *p);
int others();

/* In both files; one of the two is taken. */
template <class T>
__device__ __noinline__ T
clamp(T x, T lo, T hi)
{
    __shared__ T last[32];

    last[threadIdx.x % 32] = x < lo ? lo : x > hi ? hi : x;
    return last[threadIdx.x % 32];
}
#endif
