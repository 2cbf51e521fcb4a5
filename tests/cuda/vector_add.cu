/* vector_add.cu - the first program of everybody.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

__global__ void vector_add(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n)
        c[i] = a[i] + b[i];
}

int main()
{
    const int n = 5000;
    float *a, *b, *c, *h = (float *)malloc(n * sizeof *h);

    CHECK(cudaMalloc(&a, n * sizeof *a));
    CHECK(cudaMalloc((void **)&b, n * sizeof *b));
    CHECK(cudaMallocManaged(&c, n * sizeof *c));
    for (int i = 0; i < n; i++)
        h[i] = (float)i;
    CHECK(cudaMemcpy(a, h, n * sizeof *h, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b, a, n * sizeof *h, cudaMemcpyDeviceToDevice));
    vector_add<<<(n + 255) / 256, 256>>>(a, b, c, n);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++)
        EXPECT(c[i] == 2.0f * i);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFree(c));
    EXPECT(cudaFree(h) == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    EXPECT(cudaGetLastError() == cudaSuccess);
    free(h);
    return done();
}
