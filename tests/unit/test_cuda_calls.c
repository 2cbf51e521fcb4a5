/* test_cuda_calls.c - what CUDA's documentation says of a call beside its result: when it
 * is done, what it spoils, what it tells.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cuda/cuda_int.h"

#include "cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* They are in CUDA's header, not in ours. */
CUresult cuFuncSetBlockShape(CUfunction f, int x, int y, int z);
CUresult cuFuncSetSharedSize(CUfunction f, unsigned bytes);
CUresult cuParamSetSize(CUfunction f, unsigned bytes);
CUresult cuParamSetv(CUfunction f, int offset, void *p, unsigned n);
CUresult cuParamSeti(CUfunction f, int offset, unsigned value);
CUresult cuParamSetf(CUfunction f, int offset, float value);
CUresult cuLaunch(CUfunction f);
CUresult cuLaunchGrid(CUfunction f, int width, int height);
CUresult cuLaunchGridAsync(CUfunction f, int width, int height, CUstream s);

static void
start(void)
{
    CUcontext ctx;

    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxCreate(&ctx, 0, 0), CUDA_SUCCESS);
}

static void
end(void)
{
    ck_assert_int_eq(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
}

static CUfunction
kernel(const char *ptx)
{
    CUmodule mod;
    CUfunction f = NULL;

    ck_assert_int_eq(cuModuleLoadData(&mod, ptx), CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleGetFunction(&f, mod, "k"), CUDA_SUCCESS);
    return f;
}

/* A kernel's own arrays are of the 48 KB that a launch may have unasked. */
TEST(cuda_shared_memory_of_both_kinds_is_counted)
{
    CUfunction f;
    int most;

    start();
    f = kernel(HEAD ".visible .entry k() { .shared .align 4 .b8 s[48000];\n"
                    ".reg .b32 %r; ld.shared.u32 %r,[s]; st.shared.u32 "
                    "[s+4],%r; ret; }\n");
    ck_assert_int_eq(
        cuFuncGetAttribute(&most,
                           CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f),
        CUDA_SUCCESS);
    ck_assert_int_eq(most, 1152);
    ck_assert_int_eq(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 1152, 0, NULL, NULL),
                     CUDA_SUCCESS);
    ck_assert_int_eq(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 1153, 0, NULL, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(
        cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                           1153),
        CUDA_SUCCESS);
    ck_assert_int_eq(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 1153, 0, NULL, NULL),
                     CUDA_SUCCESS);
    end();
}

/* Of host and managed memory a fill is done when it returns; of device memory, when what
 * is launched next reads it: also in a stream that does not wait for the null stream. */
TEST(cuda_fills_are_done_before_what_comes_next)
{
    enum { BYTES = 32 << 20 };
    CUfunction f;
    uint32_t *m, *h, last = BYTES - 4, got;
    CUdeviceptr p, out;
    CUstream s;

    start();
    f = kernel(HEAD ".visible .entry k(.param .u64 o, .param .u64 p) {\n"
                    ".reg .b64 %d<2>; .reg .b32 %r; ld.param.u64 %d0,[o];\n"
                    "ld.param.u64 %d1,[p]; ld.global.u32 %r,[%d1];\n"
                    "st.global.u32 [%d0],%r; ret; }\n");
    ck_assert_int_eq(cudaMallocManaged((void **)&m, BYTES, 1), cudaSuccess);
    ck_assert_int_eq(cudaMallocHost((void **)&h, BYTES), cudaSuccess);
    ck_assert_int_eq(cuMemAlloc(&p, BYTES), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc(&out, 4), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    m[BYTES / 4 - 1] = h[BYTES / 4 - 1] = 0;
    ck_assert_int_eq(cudaMemset(m, 1, BYTES), cudaSuccess);
    ck_assert_uint_eq(m[BYTES / 4 - 1], 0x01010101);
    ck_assert_int_eq(cudaMemset2D(m, 4, 2, 4, BYTES / 4), cudaSuccess);
    ck_assert_uint_eq(m[BYTES / 4 - 1], 0x02020202);
    ck_assert_int_eq(cuMemsetD32((CUdeviceptr)(uintptr_t)h, 3, BYTES / 4),
                     CUDA_SUCCESS);
    ck_assert_uint_eq(h[BYTES / 4 - 1], 3);
    ck_assert_int_eq(
        cuMemsetD2D16((CUdeviceptr)(uintptr_t)h, 4, 4, 2, BYTES / 4),
        CUDA_SUCCESS);
    ck_assert_uint_eq(h[BYTES / 4 - 1], 0x00040004);
    ck_assert_int_eq(cuMemsetD32(p, 5, BYTES / 4), CUDA_SUCCESS);
    p += last;
    ck_assert_int_eq(
        cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, (void *[]){&out, &p}, NULL),
        CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamSynchronize(s), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyDtoH(&got, out, 4), CUDA_SUCCESS);
    ck_assert_uint_eq(got, 5);
    end();
}

/* Who waits for what is being captured, or asks after it, has spoiled it. */
TEST(cuda_captures_are_spoiled_by_who_waits)
{
    cudaStream_t s;
    cudaEvent_t e;
    cudaGraph_t g = (cudaGraph_t)&s;
    cudaStreamCaptureStatus status;
    void *p;

    start();
    ck_assert_int_eq(cudaMalloc(&p, 4), cudaSuccess);
    ck_assert_int_eq(cudaStreamCreate(&s), cudaSuccess);
    ck_assert_int_eq(cudaEventCreate(&e), cudaSuccess);
    for (int k = 0; k < 4; k++) {
        ck_assert_int_eq(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal),
                         cudaSuccess);
        ck_assert_int_eq(cudaMemsetAsync(p, 0, 4, s), cudaSuccess);
        ck_assert_int_eq(cudaEventRecord(e, s), cudaSuccess);
        ck_assert_int_eq(k == 0   ? cudaStreamSynchronize(s)
                         : k == 1 ? cudaStreamQuery(s)
                         : k == 2 ? cudaEventSynchronize(e)
                                  : cudaEventQuery(e),
                         k < 2 ? cudaErrorStreamCaptureUnsupported
                               : cudaErrorCapturedEvent);
        ck_assert_int_eq(cudaStreamIsCapturing(s, &status), cudaSuccess);
        ck_assert_int_eq(status, cudaStreamCaptureStatusInvalidated);
        ck_assert_int_eq(cudaMemsetAsync(p, 0, 4, s),
                         cudaErrorStreamCaptureInvalidated);
        ck_assert_int_eq(cudaStreamEndCapture(s, &g),
                         cudaErrorStreamCaptureInvalidated);
        ck_assert_ptr_null(g);
        ck_assert_int_eq(cudaMemsetAsync(p, 0, 4, s), cudaSuccess);
        ck_assert_int_eq(cudaStreamSynchronize(s), cudaSuccess);
    }
    end();
}

/* The legacy stream would wait for a blocking stream, which cannot be while that one
 * captures: it takes nothing, and what it is asked for spoils the capture. Whether it
 * captures may be asked. Streams that do not block have nothing to do with it. */
TEST(cuda_legacy_stream_is_of_no_use_beside_a_capture)
{
    cudaStreamCaptureStatus status;
    cudaStream_t s;
    cudaGraph_t g;
    void *p;

    start();
    ck_assert_int_eq(cudaMalloc(&p, 4), cudaSuccess);
    for (int k = 0; k < 12; k++) {
        const int what = k % 6;
        const bool blocking = k < 6, spoilt = blocking && what != 5;

        ck_assert_int_eq(
            cudaStreamCreateWithFlags(&s, blocking ? 0 : cudaStreamNonBlocking),
            cudaSuccess);
        ck_assert_int_eq(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal),
                         cudaSuccess);
        ck_assert_int_eq(what == 0   ? cudaMemset(p, 0, 4)
                         : what == 1 ? cudaMemsetAsync(p, 0, 4, 0)
                         : what == 2 ? cudaStreamSynchronize(0)
                         : what == 3 ? cudaStreamQuery(cudaStreamLegacy)
                         : what == 4 ? cudaMemcpy(&g, p, 4, cudaMemcpyDefault)
                                     : cudaStreamIsCapturing(0, &status),
                         blocking ? cudaErrorStreamCaptureImplicit
                                  : cudaSuccess);
        ck_assert_int_eq(cudaStreamEndCapture(s, &g),
                         spoilt ? cudaErrorStreamCaptureInvalidated
                                : cudaSuccess);
        if (!spoilt)
            ck_assert_int_eq(cudaGraphDestroy(g), cudaSuccess);
        ck_assert_int_eq(cudaMemset(p, 0, 4), cudaSuccess);
        ck_assert_int_eq(cudaStreamDestroy(s), cudaSuccess);
    }
    end();
}

/* Nor can the whole device be waited for while any of its streams captures. */
TEST(cuda_captures_are_spoiled_by_who_waits_for_the_device)
{
    cudaStream_t s;
    cudaGraph_t g;

    start();
    for (int k = 0; k < 4; k++) {
        ck_assert_int_eq(
            cudaStreamCreateWithFlags(&s, k & 1 ? cudaStreamNonBlocking : 0),
            cudaSuccess);
        ck_assert_int_eq(
            cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed),
            cudaSuccess);
        ck_assert_int_eq(k < 2 ? (int)cudaDeviceSynchronize()
                               : (int)cuCtxSynchronize(),
                         cudaErrorStreamCaptureUnsupported);
        ck_assert_int_eq(cudaStreamEndCapture(s, &g),
                         cudaErrorStreamCaptureInvalidated);
        ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
        ck_assert_int_eq(cudaStreamDestroy(s), cudaSuccess);
    }
    end();
}

/* The runtime begins what the driver has, which a context that is popped leaves so. */
TEST(cuda_driver_is_begun_without_a_context)
{
    CUcontext ctx;
    CUdeviceptr p;

    ck_assert_int_eq(cuCtxPopCurrent(&ctx), CUDA_ERROR_NOT_INITIALIZED);
    ck_assert_int_eq(cudaFree(NULL), cudaSuccess);
    ck_assert_int_eq(cuCtxPopCurrent(&ctx), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxPopCurrent(&ctx), CUDA_ERROR_INVALID_CONTEXT);
    ck_assert_int_eq(cuMemAlloc(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
    ck_assert_int_eq(cudaFree(NULL), cudaSuccess);
    ck_assert_int_eq(cuMemAlloc(&p, 4), CUDA_SUCCESS);
    end();
}

/* printf of a kernel returns how many arguments it had, -1 without a format; a text that
 * is no address is none. This one prints nothing. */
TEST(cuda_printf_counts_its_arguments)
{
    CUdeviceptr out;
    void *params[] = {&out};
    CUfunction f;
    int got[2];

    start();
    f = kernel(HEAD ".extern .func (.param .b32 r) vprintf(.param .b64 f, "
                    ".param .b64 a);\n"
                    /* "%.0s%.0d" */
                    ".global .b8 text[9] = {37,46,48,115,37,46,48,100,0};\n"
                    ".visible .entry k(.param .u64 out) {\n"
                    ".local .align 8 .b8 args[16]; .reg .b64 %o, %f, %a, %n; "
                    ".reg .b32 %r; mov.u64 %n,0; ld.param.u64 %o,[out];\n"
                    "st.local.u64 [args],%n; st.local.u64 [args+8],%n;\n"
                    "mov.u64 %f,text; cvta.global.u64 %f,%f;\n"
                    "mov.u64 %a,args; cvta.local.u64 %a,%a;\n"
                    "{ .param .b64 p; .param .b64 q; .param .b32 r;\n"
                    "st.param.b64 [p],%f; st.param.b64 [q],%a; call.uni (r), "
                    "vprintf, (p, q); ld.param.b32 %r,[r]; }\n"
                    "st.global.u32 [%o],%r;\n"
                    "{ .param .b64 p; .param .b64 q; .param .b32 r;\n"
                    "st.param.b64 [p],%n; st.param.b64 [q],%a; call.uni (r), "
                    "vprintf, (p, q); ld.param.b32 %r,[r]; }\n"
                    "st.global.u32 [%o+4],%r; ret; }\n");
    ck_assert_int_eq(cuMemAlloc(&out, 8), CUDA_SUCCESS);
    ck_assert_int_eq(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, 0, params, NULL),
                     CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyDtoH(got, out, 8), CUDA_SUCCESS);
    ck_assert_int_eq(got[0], 2);
    ck_assert_int_eq(got[1], -1);
    end();
}

/* Why PTX was refused is in the buffer that the program has for it, as far as it goes. */
TEST(cuda_logs_why_ptx_is_refused)
{
    static const char bad[] = HEAD ".visible .entry k() { add.u32 }";
    CUjit_option options[] = {
        CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    char error[200] = "x", info[200] = "y";
    void *values[] = {error, (void *)(uintptr_t)sizeof error, info,
                      (void *)(uintptr_t)sizeof info};
    CUmodule mod;

    start();
    ck_assert_int_eq(cuModuleLoadDataEx(&mod, bad, 4, options, values),
                     CUDA_ERROR_INVALID_PTX);
    ck_assert_msg(strncmp(error, "line 4: ", 8) == 0, "%s", error);
    ck_assert_uint_eq((uintptr_t)values[1], strlen(error));
    ck_assert_str_eq(info, "");
    values[1] = (void *)(uintptr_t)5;
    ck_assert_int_eq(cuModuleLoadDataEx(&mod, bad, 2, options, values),
                     CUDA_ERROR_INVALID_PTX);
    ck_assert_str_eq(error, "line");
    values[1] = (void *)(uintptr_t)sizeof error;
    ck_assert_int_eq(cuModuleLoadDataEx(&mod,
                                        HEAD ".visible .entry k() { ret; }", 2,
                                        options, values),
                     CUDA_SUCCESS);
    ck_assert_str_eq(error, "");
    ck_assert_uint_eq((uintptr_t)values[1], 0);
    end();
}

/* What an AMD processor has no instructions for is interpreted, and said once. */
TEST(cuda_kernels_without_code_on_amd_are_interpreted)
{
    CUfunction f;
    CUdeviceptr p;
    uint64_t got[2];

    setenv("BRASS_CUDA_ON", "gfx1201", 1);
    start();
    f = kernel(".version 8.3\n.target sm_90\n.address_size 64\n"
               ".visible .entry k(.param .u64 p) { .reg .b64 %d; .reg .b128 "
               "%q<4>;\n.reg .b64 %v<3>; ld.param.u64 %d,[p]; mov.b64 %v0,0;\n"
               "mov.b64 %v1,5; mov.b64 %v2,7; mov.b128 %q0,{%v0,%v0};\n"
               "mov.b128 %q1,{%v1,%v2};\n"
               "atom.global.cas.b128 %q2,[%d],%q0,%q1; ret; }\n");
    ck_assert_int_eq(cuMemAlloc(&p, 16), CUDA_SUCCESS);
    for (int k = 0; k < 2; k++) {
        ck_assert_int_eq(cuMemsetD32(p, 0, 4), CUDA_SUCCESS);
        ck_assert_int_eq(
            cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, 0, (void *[]){&p}, NULL),
            CUDA_SUCCESS);
        ck_assert_int_eq(cuMemcpyDtoH(got, p, 16), CUDA_SUCCESS);
        ck_assert_uint_eq(got[0], 5);
        ck_assert_uint_eq(got[1], 7);
    }
    end();
}

/* The runtime's last error is of its own calls, and a driver's call makes no context. */
TEST(cuda_driver_calls_leave_no_trace)
{
    const CUDA_ARRAY_DESCRIPTOR wide = {8, 8, CU_AD_FORMAT_FLOAT, 1};
    CUarray array;
    CUcontext ctx;
    CUdeviceptr p;

    start();
    ck_assert_int_eq(cuMemAlloc(&p, (size_t)1 << 60), CUDA_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(cuMemFree(77), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL),
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ck_assert_int_eq(cuArrayCreate(&array, &wide), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxPopCurrent(&ctx), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
    ck_assert_int_eq(cuCtxPushCurrent(ctx), CUDA_SUCCESS);
    ck_assert_int_eq(cudaPeekAtLastError(), cudaSuccess);
    ck_assert_int_eq(cudaFree((void *)77), cudaErrorInvalidValue);
    ck_assert_int_eq(cuMemAlloc(&p, (size_t)1 << 60), CUDA_ERROR_OUT_OF_MEMORY);
    ck_assert_int_eq(cuMemAlloc(&p, 4), CUDA_SUCCESS);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorInvalidValue);
    ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
    end();
}

/* What a kernel says of its blocks and clusters holds: of .reqntid each direction, of
 * .maxntid and .maxclusterrank the product. No more of such blocks are told of, either. */
TEST(cuda_launches_keep_to_what_kernels_say)
{
    static const struct {
        const char *says;
        unsigned x, y, z, cluster;
        CUresult code;
    } cases[] = {
        {".reqntid 8, 4", 8, 4, 1, 1, CUDA_SUCCESS},
        {".reqntid 8, 4", 4, 8, 1, 1, CUDA_ERROR_INVALID_VALUE},
        {".reqntid 8, 4", 32, 1, 1, 1, CUDA_ERROR_INVALID_VALUE},
        {".reqntid 32", 32, 1, 1, 1, CUDA_SUCCESS},
        {".reqntid 32", 1, 32, 1, 1, CUDA_ERROR_INVALID_VALUE},
        {".maxntid 8, 4", 32, 1, 1, 1, CUDA_SUCCESS},
        {".maxntid 8, 4", 33, 1, 1, 1, CUDA_ERROR_INVALID_VALUE},
        {".maxntid 32 .minnctapersm 2 .maxclusterrank 4", 32, 1, 1, 4,
         CUDA_SUCCESS},
        {".maxclusterrank 4", 32, 1, 1, 8, CUDA_ERROR_INVALID_CLUSTER_SIZE},
        {".maxclusterrank 1", 32, 1, 1, 2, CUDA_ERROR_INVALID_CLUSTER_SIZE},
    };
    int active;

    start();
    for (size_t k = 0; k < BR_COUNT(cases); k++) {
        CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
        CUlaunchConfig c = {.gridDimX = 16,
                            .gridDimY = 1,
                            .gridDimZ = 1,
                            .blockDimX = cases[k].x,
                            .blockDimY = cases[k].y,
                            .blockDimZ = cases[k].z,
                            .attrs = &a,
                            .numAttrs = 1};
        CUfunction f = kernel(
            t_printf(HEAD ".visible .entry k() %s { ret; }", cases[k].says));

        a.value.clusterDim.x = cases[k].cluster;
        a.value.clusterDim.y = a.value.clusterDim.z = 1;
        ck_assert_msg(cuLaunchKernelEx(&c, f, NULL, NULL) == cases[k].code,
                      "%zu", k);
        ck_assert_int_eq(
            cuOccupancyMaxActiveBlocksPerMultiprocessor(&active, f, 33, 0),
            CUDA_SUCCESS);
        ck_assert_int_eq(active == 0, strstr(cases[k].says, "ntid") != NULL);
        ck_assert_int_eq(
            cudaOccupancyMaxPotentialClusterSize(&active, (const void *)f,
                                                 &(cudaLaunchConfig_t){0}),
            cudaSuccess);
        ck_assert_int_eq(active, strstr(cases[k].says, "rank 4")   ? 4
                                 : strstr(cases[k].says, "rank 1") ? 1
                                                                   : 8);
    }
    end();
}

/* 2^32 blocks are none in 32 bits, by which nothing can be divided. */
TEST(cuda_clusters_that_cannot_be_are_not_counted)
{
    cudaLaunchAttribute a = {.id = cudaLaunchAttributeClusterDimension};
    cudaLaunchConfig_t c = {.attrs = &a, .numAttrs = 1};
    CUfunction f;
    int n;

    start();
    f = kernel(HEAD ".visible .entry k() { ret; }");
    c.gridDim = c.blockDim = (dim3){1, 1, 1};
    a.val.clusterDim.x = a.val.clusterDim.y = 1u << 16;
    a.val.clusterDim.z = 1;
    ck_assert_int_eq(cudaOccupancyMaxActiveClusters(&n, (const void *)f, &c),
                     cudaErrorInvalidClusterSize);
    a.val.clusterDim.x = a.val.clusterDim.y = 2;
    ck_assert_int_eq(cudaOccupancyMaxActiveClusters(&n, (const void *)f, &c),
                     cudaSuccess);
    ck_assert_int_gt(n, 0);
    end();
}

/* Launches of before CUDA 4: the parts first, what was set stays. */
TEST(cuda_driver_launches_in_parts)
{
    CUresult (*const shape)(CUfunction, int, int, int) = cuFuncSetBlockShape;
    CUdeviceptr p;
    CUfunction f;
    uint32_t got[12];
    float quarter;

    start();
    f = kernel(HEAD
               ".visible .entry k(.param .u64 p, .param .u32 a, .param .f32 b) "
               "{\n.reg .b64 %d<3>; .reg .b32 %r<5>; .reg .pred %p; "
               "ld.param.u64 %d0,[p];\n"
               "mov.u32 %r0,%ctaid.x; mov.u32 %r1,%ctaid.y;\n"
               "mad.lo.u32 %r0,%r1,2,%r0; mov.u32 %r1,%tid.x;\n"
               "mad.lo.u32 %r0,%r0,3,%r1; mul.wide.u32 %d1,%r0,4;\n"
               "add.u64 %d0,%d0,%d1; ld.param.u32 %r2,[a]; ld.param.u32 "
               "%r3,[b];\n"
               "add.u32 %r2,%r2,%r0; setp.eq.u32 %p,%r0,0;\n"
               "@%p mov.b32 %r2,%r3; st.global.u32 [%d0],%r2; ret; }\n");
    ck_assert_int_eq(cuMemAlloc(&p, sizeof got), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemsetD32(p, 9, 12), CUDA_SUCCESS);
    ck_assert_int_eq(cuLaunch(f), CUDA_ERROR_INVALID_VALUE); /* no block */
    ck_assert_int_eq(shape(f, 3, 1, 1), CUDA_SUCCESS);
    ck_assert_int_eq(shape(f, 0, 1, 1), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(shape((CUfunction)&f, 3, 1, 1), CUDA_ERROR_INVALID_HANDLE);
    ck_assert_int_eq(cuParamSetv(f, 0, &p, 8), CUDA_SUCCESS);
    ck_assert_int_eq(cuParamSeti(f, 8, 100), CUDA_SUCCESS);
    ck_assert_int_eq(cuParamSetf(f, 12, 0.25f), CUDA_SUCCESS);
    ck_assert_int_eq(cuParamSetf(f, 4094, 0.25f), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuParamSeti(f, -4, 1), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuParamSetSize(f, 4097), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuParamSetSize(f, 16), CUDA_SUCCESS);
    ck_assert_int_eq(cuLaunchGrid(f, 2, 2), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyDtoH(got, p, sizeof got), CUDA_SUCCESS);
    memcpy(&quarter, got, 4);
    ck_assert(quarter == 0.25f);
    for (uint32_t k = 1; k < 12; k++)
        ck_assert_uint_eq(got[k], 100 + k);
    ck_assert_int_eq(cuFuncSetSharedSize(f, 49153), CUDA_SUCCESS);
    ck_assert_int_eq(cuLaunchGridAsync(f, 2, 2, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuLaunchGrid(f, 0, 2), CUDA_ERROR_INVALID_VALUE);
    end();
}

/* Which architecture a kernel was compiled for; by it CUB picks what it runs. */
TEST(cuda_kernels_tell_what_they_were_compiled_for)
{
    static const struct {
        const char *target;
        int version;
    } cases[] = {{"sm_52", 52}, {"sm_80", 80}, {"sm_90a", 90}, {"sm_100", 100}};
    cudaFuncAttributes a;
    int got;

    start();
    for (size_t k = 0; k < BR_COUNT(cases); k++) {
        CUfunction f =
            kernel(t_printf(".version 8.6\n.target %s\n.address_size 64\n"
                            ".visible .entry k() { ret; }",
                            cases[k].target));

        ck_assert_int_eq(
            cuFuncGetAttribute(&got, CU_FUNC_ATTRIBUTE_PTX_VERSION, f),
            CUDA_SUCCESS);
        ck_assert_int_eq(got, cases[k].version);
        ck_assert_int_eq(cudaFuncGetAttributes(&a, (const void *)f),
                         cudaSuccess);
        ck_assert_int_eq(a.ptxVersion, cases[k].version);
    }
    end();
}
