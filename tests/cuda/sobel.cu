/* sobel.cu - an image in pitched memory through the driver's interface: boxes
 * copied in and out, borders filled, a filter with a tile in shared memory,
 * launched by a kernel's handle, and replayed as a graph.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <cuda.h>

#define DRV(call) EXPECT((call) == CUDA_SUCCESS)

const int W = 100, H = 70, TILE = 16;

extern "C" __global__ void
sobel(const unsigned char *in, size_t in_pitch, unsigned char *out,
      size_t out_pitch)
{
    __shared__ unsigned char t[TILE + 2][TILE + 2];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;

    for (int v = threadIdx.y; v < TILE + 2; v += TILE) /* with its border */
        for (int u = threadIdx.x; u < TILE + 2; u += TILE) {
            int a = min(blockIdx.x * TILE + u, W + 1);
            int b = min(blockIdx.y * TILE + v, H + 1);

            t[v][u] = in[b * in_pitch + a];
        }
    __syncthreads();
    if (x >= W || y >= H)
        return;
    int u = threadIdx.x, v = threadIdx.y;
    int gx = t[v][u + 2] + 2 * t[v + 1][u + 2] + t[v + 2][u + 2] - t[v][u] -
             2 * t[v + 1][u] - t[v + 2][u];
    int gy = t[v + 2][u] + 2 * t[v + 2][u + 1] + t[v + 2][u + 2] - t[v][u] -
             2 * t[v][u + 1] - t[v][u + 2];

    out[y * out_pitch + x] = (unsigned char)min(abs(gx) + abs(gy), 255);
}

int
main()
{
    std::vector<unsigned char> image(W * H), got(W * H, 1);
    CUdeviceptr in, out;
    size_t ip, op;
    CUdevice dev;
    CUcontext ctx;
    CUstream s;
    cudaFunction_t f;
    CUgraph graph;
    CUgraphExec exec;

    DRV(cuInit(0));
    DRV(cuDeviceGet(&dev, 0));
    DRV(cuDevicePrimaryCtxRetain(&ctx, dev));
    DRV(cuCtxSetCurrent(ctx));
    DRV(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    DRV(cuMemAllocPitch(&in, &ip, W + 2, H + 2, 4));
    DRV(cuMemAllocPitch(&out, &op, W, H, 4));
    for (unsigned char &v : image)
        v = (unsigned char)(rnd() * 256);

    CUDA_MEMCPY2D to = {}, from = {};
    to.srcMemoryType = CU_MEMORYTYPE_HOST;
    to.srcHost = image.data();
    to.srcPitch = W;
    to.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    to.dstDevice = in;
    to.dstPitch = ip;
    to.dstXInBytes = to.dstY = 1; /* inside a border of 9 */
    from.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    from.srcDevice = out;
    from.srcPitch = op;
    from.dstMemoryType = CU_MEMORYTYPE_HOST;
    from.dstHost = got.data();
    from.dstPitch = W;
    to.WidthInBytes = from.WidthInBytes = W;
    to.Height = from.Height = H;

    CHECK(cudaGetFuncBySymbol(&f, (const void *)sobel));
    void *args[] = {&in, &ip, &out, &op};
    DRV(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
    DRV(cuMemsetD2D8Async(in, ip, 9, W + 2, H + 2, s));
    DRV(cuMemcpy2DAsync(&to, s));
    DRV(cuLaunchKernel((CUfunction)f, (W + TILE - 1) / TILE,
                       (H + TILE - 1) / TILE, 1, TILE, TILE, 1, 0, s, args,
                       NULL));
    DRV(cuStreamEndCapture(s, &graph));
    DRV(cuGraphInstantiate(&exec, graph, 0));
    for (int round = 0; round < 2; round++) {
        int bad = 0;

        DRV(cuGraphLaunch(exec, s));
        DRV(cuStreamSynchronize(s));
        DRV(cuMemcpy2D(&from));
        for (int y = 0; y < H; y++)
            for (int x = 0; x < W; x++) {
                int p[3][3], gx, gy;

                for (int j = 0; j < 3; j++)
                    for (int i = 0; i < 3; i++) {
                        int a = x + i - 1, b = y + j - 1;

                        p[j][i] = a < 0 || a >= W || b < 0 || b >= H
                                      ? 9
                                      : image[b * W + a];
                    }
                gx = p[0][2] + 2 * p[1][2] + p[2][2] - p[0][0] - 2 * p[1][0] -
                     p[2][0];
                gy = p[2][0] + 2 * p[2][1] + p[2][2] - p[0][0] - 2 * p[0][1] -
                     p[0][2];
                gx = abs(gx) + abs(gy);
                bad += got[y * W + x] != (gx > 255 ? 255 : gx);
            }
        EXPECT(bad == 0);
        for (unsigned char &v : image) /* a replay reads what is there then */
            v = (unsigned char)(255 - v);
    }
    DRV(cuGraphExecDestroy(exec));
    DRV(cuGraphDestroy(graph));
    DRV(cuMemFree(in));
    DRV(cuMemFree(out));
    DRV(cuStreamDestroy(s));
    return done();
}
