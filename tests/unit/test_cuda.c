/* test_cuda.c - the CUDA runtime in this process: modules, launches, streams,
 * errors, fat binaries. PTX by hand, so no compiler is needed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "base/thread.h"
#include "cuda/cuda_int.h"

#include "cuda/cuda.h"
#include "cuda/curand.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
static const char ptx[] =
    HEAD ".global .align 4 .u32 scale = 3;\n.const .align 4 .b32 bias[2] = "
         "{10, 0};\n"
         ".visible .entry mul(.param .u64 p, .param .u32 n) {\n"
         ".reg .b32 %r<9>; .reg .b64 %d<5>; .reg .pred %p;\n"
         "ld.param.u64 %d0,[p]; ld.param.u32 %r0,[n];\n"
         "mov.u32 %r1,%ctaid.x; mov.u32 %r2,%ntid.x; mov.u32 %r3,%tid.x;\n"
         "mad.lo.u32 %r1,%r1,%r2,%r3; setp.ge.u32 %p,%r1,%r0; @%p ret;\n"
         "mul.wide.u32 %d1,%r1,4; add.u64 %d1,%d1,%d0;\n"
         "ld.global.u32 %r4,[scale]; ld.const.u32 %r5,[bias];\n"
         "ld.global.u32 %r6,[%d1]; mad.lo.u32 %r6,%r6,%r4,%r5;\n"
         "st.global.u32 [%d1],%r6; ret; }\n"
         ".visible .entry bad(.param .u64 p) { .reg .b64 %d;\n"
         "ld.param.u64 %d,[p]; st.global.u32 [%d],1; ret; }\n"
         ".visible .entry spin(.param .u64 p) { .reg .b64 %d; .reg .b32 %r;\n"
         ".reg .pred %p; ld.param.u64 %d,[p];\n"
         "L: ld.volatile.global.u32 %r,[%d]; setp.eq.u32 %p,%r,0; @%p bra L;\n"
         "add.u32 %r,%r,1; st.global.u32 [%d],%r; ret; }\n";

static void
start(CUmodule *mod)
{
    CUcontext ctx;

    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxCreate(&ctx, 0, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleLoadData(mod, ptx), CUDA_SUCCESS);
}

static void
end(void)
{
    ck_assert_int_eq(cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
}

static CUfunction
function(CUmodule mod, const char *name)
{
    CUfunction f = NULL;

    ck_assert_int_eq(cuModuleGetFunction(&f, mod, name), CUDA_SUCCESS);
    return f;
}

static CUresult
launch(CUfunction f, unsigned blocks, unsigned threads, CUstream s, void **args)
{
    return cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, s, args, NULL);
}

TEST(cuda_driver_runs_a_module)
{
    uint32_t v[100], got[100], n = 100, five = 5;
    CUdeviceptr p, g;
    CUmodule mod;
    CUfunction f;
    size_t size;

    ck_assert_int_eq(cuModuleLoadData(&mod, ptx), CUDA_ERROR_NOT_INITIALIZED);
    start(&mod);
    for (uint32_t k = 0; k < 100; k++)
        v[k] = k;
    f = function(mod, "mul");
    ck_assert_int_eq(cuMemAlloc(&p, sizeof v), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyHtoD(p, v, sizeof v), CUDA_SUCCESS);
    ck_assert_int_eq(launch(f, 4, 32, NULL, (void *[]){&p, &n}), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyDtoH(got, p, sizeof v), CUDA_SUCCESS);
    for (uint32_t k = 0; k < 100; k++)
        ck_assert_uint_eq(got[k], 3 * k + 10);
    ck_assert_int_eq(cuModuleGetGlobal(&g, &size, mod, "scale"), CUDA_SUCCESS);
    ck_assert_uint_eq(size, 4);
    ck_assert_int_eq(cuMemcpyHtoD(g, &five, 4), CUDA_SUCCESS);
    {
        struct {
            CUdeviceptr p;
            uint32_t n;
        } packed = {p, 1};
        size_t bytes = 12;
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed,
                         CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                         CU_LAUNCH_PARAM_END};

        ck_assert_int_eq(
            cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra),
            CUDA_SUCCESS);
    }
    ck_assert_int_eq(cuMemcpyDtoH(got, p, 8), CUDA_SUCCESS);
    ck_assert_uint_eq(got[0], 60);
    ck_assert_uint_eq(got[1], 13);
    ck_assert_int_eq(cuMemFree(p + 4), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuMemFree(p), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemFree(p), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuModuleUnload(mod), CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleUnload(mod), CUDA_ERROR_INVALID_HANDLE);
    end();
}

TEST(cuda_driver_links_ptx)
{
    static char user[] =
        HEAD ".extern .func (.param .b32 r) plus(.param .b32 a);\n"
             ".visible .entry k(.param .u64 p) { .reg .b64 %d; .reg .b32 %r;\n"
             "ld.param.u64 %d,[p]; ld.global.u32 %r,[%d];\n"
             "{ .param .b32 a; .param .b32 r; st.param.b32 [a],%r;\n"
             "call.uni (r), plus, (a); ld.param.b32 %r,[r]; }\n"
             "st.global.u32 [%d],%r; ret; }\n";
    static char part[] =
        HEAD ".visible .func (.param .b32 r) plus(.param .b32 a) {\n"
             ".reg .b32 %r; ld.param.b32 %r,[a]; add.u32 %r,%r,7;\n"
             "st.param.b32 [r],%r; ret; }\n";
    char log[8] = "dirt";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                              CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log}, *image;
    uint32_t got = 5;
    CUlinkState s;
    CUdeviceptr p;
    CUmodule mod;
    size_t n;

    start(&mod);
    ck_assert_int_eq(cuLinkCreate(2, options, values, &s), CUDA_SUCCESS);
    ck_assert(log[0] == 0 && !values[1]);
    ck_assert_int_eq(cuLinkComplete(s, &image, &n), CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuLinkAddData(s, CU_JIT_INPUT_PTX, user, sizeof user, "u",
                                   0, NULL, NULL),
                     CUDA_SUCCESS);
    ck_assert_int_eq(cuLinkAddData(s, CU_JIT_INPUT_CUBIN, part, sizeof part,
                                   "c", 0, NULL, NULL),
                     CUDA_ERROR_INVALID_IMAGE);
    t_write(t_printf("%s/p.ptx", t_tmpdir()), part, sizeof part - 1);
    ck_assert_int_eq(cuLinkAddFile(s, CU_JIT_INPUT_PTX,
                                   t_printf("%s/p.ptx", t_tmpdir()), 0, NULL,
                                   NULL),
                     CUDA_SUCCESS);
    ck_assert_int_eq(cuLinkComplete(s, &image, &n), CUDA_SUCCESS);
    ck_assert_int_eq(cuModuleLoadData(&mod, image), CUDA_SUCCESS);
    ck_assert_int_eq(cuLinkDestroy(s), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc(&p, 4), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyHtoD(p, &got, 4), CUDA_SUCCESS);
    ck_assert_int_eq(launch(function(mod, "k"), 1, 1, NULL, (void *[]){&p}),
                     CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyDtoH(&got, p, 4), CUDA_SUCCESS);
    ck_assert_uint_eq(got, 12);
    end();
}

TEST(cuda_launches_are_checked)
{
    static const struct {
        unsigned grid, block, shared;
        CUresult code;
    } cases[] = {{0, 32, 0, CUDA_ERROR_INVALID_VALUE},
                 {1, 0, 0, CUDA_ERROR_INVALID_VALUE},
                 {1, 1025, 0, CUDA_ERROR_INVALID_VALUE},
                 {1, 32, 49153, CUDA_ERROR_INVALID_VALUE},
                 {1, 32, 49152, CUDA_SUCCESS}};
    CUdeviceptr p;
    uint32_t n = 0;
    CUmodule mod;
    CUfunction f, none;

    start(&mod);
    f = function(mod, "mul");
    ck_assert_int_eq(cuMemAlloc(&p, 4), CUDA_SUCCESS);
    for (size_t k = 0; k < BR_COUNT(cases); k++)
        ck_assert_int_eq(cuLaunchKernel(f, cases[k].grid, 1, 1, cases[k].block,
                                        1, 1, cases[k].shared, NULL,
                                        (void *[]){&p, &n}, NULL),
                         cases[k].code);
    ck_assert_int_eq(cuModuleGetFunction(&none, mod, "nobody"),
                     CUDA_ERROR_NOT_FOUND);
    ck_assert_int_eq(launch((CUfunction)&n, 1, 1, NULL, (void *[]){&p, &n}),
                     CUDA_ERROR_INVALID_HANDLE);
    ck_assert_int_eq(cuModuleLoadData(&mod, HEAD ".entry k() { add.u32 }"),
                     CUDA_ERROR_INVALID_PTX);
    ck_assert_int_eq(cuModuleLoadData(&mod, "\177ELF..."),
                     CUDA_ERROR_NO_BINARY_FOR_GPU);
    end();
}

/* Hints of a launch are taken; what a kernel would do without, or nobody knows, is an
 * error, and nothing is launched. The runtime's the same. */
TEST(cuda_attributes_of_launches_are_obeyed_or_refused)
{
    static const struct {
        int id;
        unsigned x, y, z;
        CUresult code;
    } cases[] = {{CU_LAUNCH_ATTRIBUTE_IGNORE, 9, 9, 9, CUDA_SUCCESS},
                 {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1, 0,
                  0, CUDA_SUCCESS},
                 {CU_LAUNCH_ATTRIBUTE_PRIORITY, 1, 0, 0, CUDA_SUCCESS},
                 {CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50, 0,
                  0, CUDA_SUCCESS},
                 {CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1, 0, 0, CUDA_SUCCESS},
                 {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 1, 1, 1, CUDA_SUCCESS},
                 /* of two blocks, where there is one */
                 {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 2, 1, 1,
                  (CUresult)cudaErrorInvalidClusterSize},
                 /* 2^32 blocks, which are none in 32 bits */
                 {CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 1u << 16, 1u << 16, 1,
                  (CUresult)cudaErrorInvalidClusterSize},
                 {CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT, 0, 0, 0,
                  CUDA_ERROR_NOT_SUPPORTED},
                 {CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT, 0, 0, 0,
                  CUDA_ERROR_NOT_SUPPORTED},
                 {15, 0, 0, 0, CUDA_ERROR_INVALID_VALUE},
                 {-1, 0, 0, 0, CUDA_ERROR_INVALID_VALUE}};
    CUlaunchAttribute a[2] = {{.id = CU_LAUNCH_ATTRIBUTE_IGNORE}};
    CUlaunchConfig c = {1, 1, 1, 1, 1, 1, 0, NULL, a, 2};
    uint32_t one = 1, got, want = 1;
    CUdeviceptr p;
    CUmodule mod;

    start(&mod);
    CUfunction f = function(mod, "mul");
    ck_assert_int_eq(cuMemAlloc(&p, 4), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyHtoD(p, &one, 4), CUDA_SUCCESS);
    for (size_t k = 0; k < BR_COUNT(cases); k++) {
        a[1].id = (CUlaunchAttributeID)cases[k].id;
        a[1].value.clusterDim.x = cases[k].x;
        a[1].value.clusterDim.y = cases[k].y;
        a[1].value.clusterDim.z = cases[k].z;
        ck_assert_int_eq(cuLaunchKernelEx(&c, f, (void *[]){&p, &one}, NULL),
                         cases[k].code);
        want = cases[k].code ? want : 3 * want + 10;
    }
    ck_assert_int_eq(cuMemcpyDtoH(&got, p, 4), CUDA_SUCCESS);
    ck_assert_uint_eq(got, want);
    c.attrs = NULL;
    ck_assert_int_eq(cuLaunchKernelEx(&c, f, (void *[]){&p, &one}, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuLaunchKernelEx(NULL, f, (void *[]){&p, &one}, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    end();
}

/* A fat binary that says it is longer than its file. */
TEST(cuda_driver_reads_no_further_than_a_file)
{
    static const uint8_t cut[] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0,
                                  0,    0,    1,    0,    0, 0, 0,  0};
    const char *path = t_printf("%s/cut.fatbin", t_tmpdir());
    CUmodule mod;

    start(&mod);
    t_write(path, (const char *)cut, sizeof cut);
    ck_assert_int_ne(cuModuleLoad(&mod, path), CUDA_SUCCESS);
    end();
}

TEST(cuda_faults_stay)
{
    CUdeviceptr p, wild = 0x1000;
    CUmodule mod;
    uint32_t n = 1;

    start(&mod);
    ck_assert_int_eq(cuMemAlloc(&p, 4), CUDA_SUCCESS);
    ck_assert_int_eq(
        launch(function(mod, "bad"), 1, 1, NULL, (void *[]){&wild}),
        CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    ck_assert_int_eq(
        launch(function(mod, "mul"), 1, 1, NULL, (void *[]){&p, &n}),
        CUDA_ERROR_ILLEGAL_ADDRESS);
    ck_assert_int_eq(cudaGetLastError(), cudaErrorIllegalAddress);
    ck_assert_int_eq(cuMemcpyDtoH(&n, p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    ck_assert_str_eq(cudaGetErrorName(cudaErrorIllegalAddress),
                     "cudaErrorIllegalAddress");
    end();
    ck_assert_int_eq(cudaGetLastError(), cudaSuccess);
}

static void
let_go(void *arg)
{
    br_sleep_ns(2000000);
    *(volatile uint32_t *)arg = 1; /* the kernel waits for it */
}

/* A kernel waits for the host, an event for the kernel, a stream for both. */
TEST(cuda_streams_and_events_order)
{
    CUstream a, b;
    CUevent e, t0;
    CUmodule mod;
    CUdeviceptr p, q;
    uint32_t *flag, n = 1, got;
    br_thread th;
    br_status st = {0};
    float ms;

    if (strcmp(t_conf(), "thread") == 0)
        t_skip("host and kernel race for a flag on purpose");
    start(&mod);
    ck_assert_int_eq(cuMemHostAlloc((void **)&flag, 4, 0), CUDA_SUCCESS);
    *flag = 0;
    ck_assert_int_eq(cuMemHostGetDevicePointer(&p, flag, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc(&q, 4), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventCreate(&e, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventCreate(&t0, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventRecord(t0, a), CUDA_SUCCESS);
    ck_assert_int_eq(launch(function(mod, "spin"), 1, 1, a, (void *[]){&p}),
                     CUDA_SUCCESS);
    ck_assert_int_eq(cuEventRecord(e, a), CUDA_SUCCESS);
    ck_assert_int_eq(cuStreamWaitEvent(b, e, 0), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpyAsync(q, p, 4, b), CUDA_SUCCESS);
    ck_assert_int_eq(cuEventQuery(e), CUDA_ERROR_NOT_READY);
    ck_assert_int_eq(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    /* From here on: a stream may be late on a machine that is busy. */
    ck_assert_int_eq(cuEventSynchronize(t0), CUDA_SUCCESS);
    t_ok(br_thread_start(&th, "flag", let_go, flag, &st), &st);
    ck_assert_int_eq(cuStreamSynchronize(b), CUDA_SUCCESS);
    br_thread_join(&th);
    ck_assert_int_eq(cuMemcpyDtoH(&got, q, 4), CUDA_SUCCESS);
    ck_assert_uint_eq(got, 2);
    ck_assert_int_eq(cuEventElapsedTime(&ms, t0, e), CUDA_SUCCESS);
    ck_assert(ms > 1);
    (void)n;
    end();
}

static void
allocate(void *arg)
{
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    void *p[50] = {0};

    for (int k = 0; k < 2000; k++) {
        void **at = &p[t_rand(&seed) % BR_COUNT(p)];
        cudaPointerAttributes a;

        if (*at) {
            ck_assert_int_eq(cudaPointerGetAttributes(&a, (char *)*at + 5),
                             cudaSuccess);
            ck_assert_int_eq(a.type, cudaMemoryTypeDevice);
            ck_assert_int_eq(cudaFree(*at), cudaSuccess);
            *at = NULL;
        } else {
            ck_assert_int_eq(cudaMalloc(at, 10 + t_rand(&seed) % 9000),
                             cudaSuccess);
        }
    }
}

TEST(cuda_memory_is_for_several_threads)
{
    br_thread th[4];
    br_status st = {0};
    size_t before, after, total;

    ck_assert_int_eq(cudaMemGetInfo(&before, &total), cudaSuccess);
    for (uintptr_t k = 0; k < BR_COUNT(th); k++)
        t_ok(
            br_thread_start(&th[k], "allocate", allocate, (void *)(k + 1), &st),
            &st);
    for (size_t k = 0; k < BR_COUNT(th); k++)
        br_thread_join(&th[k]);
    ck_assert_int_eq(cudaDeviceReset(), cudaSuccess);
    ck_assert_int_eq(cudaMemGetInfo(&after, &total), cudaSuccess);
    ck_assert_uint_eq(before, after);
}

/* ---- who waits runs what it waits for ------------------------------------- */

enum { CHAIN = 60, WORDS = 1 << 20 };

typedef struct chain {
    cudaStream_t s;
    uint32_t *dev, *out;
    unsigned turns, wrong, mine; /* by the stream's ops alone: one at a time */
    pthread_t issuer;
    _Atomic bool over;
} chain;

/* After a copy to the device and one back: all of it is what this turn copied. */
static void
turn(void *arg)
{
    chain *c = arg;
    uint32_t want = c->turns++ % 2 + 1;

    c->mine += pthread_equal(c->issuer, pthread_self()) != 0;
    for (size_t k = 0; k < WORDS; k++)
        c->wrong += c->out[k] != want;
}

static void
keep_waiting(void *arg)
{
    chain *c = arg;

    while (!c->over)
        ck_assert_int_eq(cudaStreamSynchronize(c->s), cudaSuccess);
}

/* Several threads wait while one issues: ops run one after another, whoever runs
 * them, and host functions in no thread that waits. */
TEST_WITHIN(cuda_streams_keep_their_order_while_threads_wait, 60)
{
    static uint32_t from[2][WORDS], out[WORDS];
    chain c = {.out = out, .issuer = pthread_self()};
    size_t bytes = sizeof out;
    br_status st = {0};
    br_thread th[2];

    for (size_t k = 0; k < WORDS; k++) {
        from[0][k] = 1;
        from[1][k] = 2;
    }
    ck_assert_int_eq(cudaMalloc((void **)&c.dev, bytes), cudaSuccess);
    ck_assert_int_eq(cudaStreamCreate(&c.s), cudaSuccess);
    for (size_t k = 0; k < BR_COUNT(th); k++)
        t_ok(br_thread_start(&th[k], "waits", keep_waiting, &c, &st), &st);
    for (unsigned k = 0; k < CHAIN; k++) {
        ck_assert_int_eq(cudaMemcpyAsync(c.dev, from[k % 2], bytes,
                                         cudaMemcpyHostToDevice, c.s),
                         cudaSuccess);
        ck_assert_int_eq(
            cudaMemcpyAsync(out, c.dev, bytes, cudaMemcpyDeviceToHost, c.s),
            cudaSuccess);
        ck_assert_int_eq(cudaLaunchHostFunc(c.s, turn, &c), cudaSuccess);
        if (k % 16 == 0)
            ck_assert_int_eq(cudaStreamSynchronize(c.s), cudaSuccess);
    }
    ck_assert_int_eq(cudaDeviceSynchronize(), cudaSuccess);
    c.over = true;
    for (size_t k = 0; k < BR_COUNT(th); k++)
        br_thread_join(&th[k]);
    ck_assert_uint_eq(c.turns, CHAIN);
    ck_assert_uint_eq(c.wrong, 0);
    ck_assert_uint_eq(c.mine, 0);
    ck_assert_int_eq(cudaDeviceReset(), cudaSuccess);
}

/* ---- fat binaries --------------------------------------------------------- */

static void
put(br_str *s, uint64_t v, unsigned bytes)
{
    br_str_put(s, (const char *)&v, bytes);
}

static void
entry(br_str *s, unsigned kind, unsigned sm, const char *text)
{
    size_t n = strlen(text) + 1;

    put(s, kind, 2), put(s, 0x101, 2), put(s, 64, 4), put(s, n, 8);
    put(s, 0, 8), put(s, 0, 4), put(s, sm, 4), put(s, 64, 8), put(s, 1, 8);
    put(s, 0, 8), put(s, 0, 8);
    br_str_put(s, text, n);
}

TEST(cuda_fatbin_gives_the_newest_ptx)
{
    br_str body = {0}, all = {0};
    br_status st = {0};
    char *owned;
    br_text p;

    entry(&body, 2, 90, "machine code");
    entry(&body, 1, 70, "old");
    entry(&body, 1, 80, "new");
    put(&all, 0xba55ed50, 4), put(&all, 1, 2), put(&all, 16, 2);
    put(&all, body.n, 8);
    br_str_put(&all, body.at, body.n);
    t_ok(br_fatbin_ptx(all.at, all.n, &p, &owned, &st), &st);
    ck_assert(br_text_is(p, "new"));
    for (size_t n = 4; n < all.n; n++) { /* cut: never more than is there */
        char *cut = br_alloc(n);

        memcpy(cut, all.at, n);
        ck_assert_int_ne(br_fatbin_ptx(cut, n, &p, &owned, NULL), BR_OK);
        br_free(cut);
    }
    all.at[16] = all.at[16 + 64 + 13] = all.at[16 + 2 * 64 + 17] = 2;
    ck_assert_int_eq(br_fatbin_ptx(all.at, all.n, &p, &owned, &st),
                     BR_E_UNSUPPORTED);
    ck_assert(strstr(st.msg, "machine code") != NULL);
    br_str_fini(&body);
    br_str_fini(&all);
}

/* A box out of one pitched memory into another, both ways round the host. */
TEST(cuda_driver_copies_boxes)
{
    enum { W = 12, H = 5, D = 3 };
    uint8_t from[D][8][32], to[D][8][32] = {{{0}}};
    CUdeviceptr p;
    CUmodule mod;
    CUDA_MEMCPY2D two = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                         .srcHost = from,
                         .srcPitch = 32,
                         .srcXInBytes = 3,
                         .srcY = 2,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstPitch = 64,
                         .dstXInBytes = 4,
                         .dstY = 1,
                         .WidthInBytes = W,
                         .Height = H};
    CUDA_MEMCPY3D three = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                           .srcHost = from,
                           .srcPitch = 32,
                           .srcHeight = 8,
                           .srcY = 1,
                           .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                           .dstPitch = 64,
                           .dstHeight = 8,
                           .dstZ = 1,
                           .WidthInBytes = W,
                           .Height = H,
                           .Depth = 2};
    int bad = 0;

    start(&mod);
    for (int z = 0; z < D; z++)
        for (int y = 0; y < 8; y++)
            for (int x = 0; x < 32; x++)
                from[z][y][x] = (uint8_t)(z * 64 + y * 8 + x);
    ck_assert_int_eq(cuMemAlloc(&p, 64 * 8 * D), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemsetD2D16(p, 64, 0x1234, 32, 8 * D), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemsetD2D16(p + 1, 64, 0, 2, 2),
                     CUDA_ERROR_INVALID_VALUE);
    two.dstDevice = three.dstDevice = p;
    ck_assert_int_eq(cuMemcpy2D(&two), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemcpy3DAsync(&three, NULL), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_SUCCESS);
    for (int z = 0; z < D; z++)
        for (int y = 0; y < 8; y++)
            for (int x = 0; x < 64; x++) {
                uint8_t got = ((uint8_t *)(uintptr_t)p)[z * 512 + y * 64 + x];
                int want = x & 1 ? 0x12 : 0x34;

                if (z == 0 && y >= 1 && y < 1 + H && x >= 4 && x < 4 + W)
                    want = from[0][y + 1][x - 1];
                if (z >= 1 && y < H && x < W)
                    want = from[z - 1][y + 1][x];
                bad += got != want;
            }
    ck_assert_int_eq(bad, 0);
    three.dstMemoryType = CU_MEMORYTYPE_HOST; /* and back */
    three.dstHost = to;
    three.dstPitch = 32;
    three.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    three.srcDevice = p;
    three.srcPitch = 64;
    three.srcY = 0;
    three.srcZ = 1;
    three.dstZ = 0;
    ck_assert_int_eq(cuMemcpy3D(&three), CUDA_SUCCESS);
    ck_assert(memcmp(to[1][4], from[1][5], W) == 0);
    three.srcZ = 2; /* past the end */
    ck_assert_int_eq(cuMemcpy3D(&three), CUDA_ERROR_INVALID_VALUE);
    two.dstXInBytes = 60; /* wider than a row */
    ck_assert_int_eq(cuMemcpy2D(&two), CUDA_ERROR_INVALID_VALUE);
    two.dstXInBytes = ~(size_t)0 - 8;
    ck_assert_int_eq(cuMemcpy2D(&two), CUDA_ERROR_INVALID_VALUE);
    two.dstMemoryType = CU_MEMORYTYPE_ARRAY; /* which is none */
    ck_assert_int_eq(cuMemcpy2D(&two), CUDA_ERROR_INVALID_HANDLE);
    end();
}

#define OK(call) ck_assert_int_eq(call, CUDA_SUCCESS)
#define NO(call) ck_assert_int_eq(call, CUDA_ERROR_INVALID_VALUE)
/* Arrays by their own descriptors, as a side of a box, line by line. */
TEST(cuda_driver_has_arrays)
{
    CUDA_ARRAY3D_DESCRIPTOR three = {
        5, 4, 3, CU_AD_FORMAT_SIGNED_INT16, 2, CUDA_ARRAY3D_SURFACE_LDST};
    CUDA_ARRAY_DESCRIPTOR two = {100, 0, CU_AD_FORMAT_FLOAT, 4}, got;
    uint32_t from[60], to[60] = {0}; /* 5 x 4 x 3 */
    CUDA_MEMCPY3D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = from,
                          .srcPitch = 20,
                          .srcHeight = 4,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .WidthInBytes = 20,
                          .Height = 4,
                          .Depth = 3};
    CUDA_RESOURCE_DESC res = {.resType = CU_RESOURCE_TYPE_ARRAY};
    CUDA_TEXTURE_DESC tex = {.flags = CU_TRSF_NORMALIZED_COORDINATES,
                             .addressMode = {CU_TR_ADDRESS_MODE_MIRROR}};
    const brass_tex *t;
    CUtexObject object;
    CUarray a, b;
    CUmodule mod;

    start(&mod);
    for (size_t k = 0; k < 60; k++)
        from[k] = (uint32_t)k * 65537u;
    OK(cuArray3DCreate(&a, &three));
    memset(&three, 0, sizeof three);
    OK(cuArray3DGetDescriptor(&three, a));
    ck_assert(three.Width == 5 && three.Depth == 3 && three.NumChannels == 2);
    ck_assert_int_eq(three.Format, CU_AD_FORMAT_SIGNED_INT16);
    copy.dstArray = a;
    OK(cuMemcpy3D(&copy));
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.srcArray = a;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = to;
    copy.dstPitch = 20;
    copy.dstHeight = 4;
    OK(cuMemcpy3D(&copy));
    ck_assert(memcmp(from, to, sizeof to) == 0);
    copy.srcZ = 1; /* past the end */
    NO(cuMemcpy3D(&copy));
    OK(cuArrayCreate(&b, &two));
    OK(cuArrayGetDescriptor(&got, b));
    ck_assert(got.Width == 100 && got.NumChannels == 4);
    OK(cuMemcpyHtoA(b, 16, from, 240));
    memset(to, 0, sizeof to);
    OK(cuMemcpyAtoH(to, b, 16, 240));
    ck_assert(memcmp(from, to, sizeof to) == 0);
    NO(cuMemcpyHtoA(b, 1500, from, 240));
    res.res.array.hArray = a;
    OK(cuTexObjectCreate(&object, &res, &tex, NULL));
    t = (const brass_tex *)(uintptr_t)object;
    ck_assert(t->normalized && t->address[0] == cudaAddressModeMirror);
    ck_assert(t->width == 5 && t->channels == 2 && t->bytes == 2);
    OK(cuTexObjectDestroy(object));
    tex.flags |= CU_TRSF_SRGB;
    ck_assert_int_eq(cuTexObjectCreate(&object, &res, &tex, NULL),
                     CUDA_ERROR_NOT_SUPPORTED);
    two.NumChannels = 5;
    NO(cuArrayCreate(&b, &two));
    OK(cuArrayDestroy(a));
    ck_assert_int_eq(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
    end();
}

/* What the runtime has begun, the driver goes on with. */
TEST(cuda_runtime_makes_a_context_current)
{
    CUcontext ctx = NULL;
    CUdevice dev = 7;
    CUdeviceptr p;

    ck_assert_int_eq(cuCtxGetDevice(&dev), CUDA_ERROR_NOT_INITIALIZED);
    ck_assert_int_eq(cudaSetDevice(0), cudaSuccess);
    OK(cuCtxGetDevice(&dev));
    ck_assert_int_eq(dev, 0);
    OK(cuCtxGetCurrent(&ctx));
    ck_assert(ctx != NULL);
    OK(cuMemAlloc(&p, 100));
    OK(cuMemFree(p));
    OK(cuCtxPopCurrent(&ctx));
    OK(cuCtxGetCurrent(&ctx));
    ck_assert(ctx == NULL);
    ck_assert_int_eq(cuMemAlloc(&p, 100), CUDA_ERROR_INVALID_CONTEXT);
    ck_assert_int_eq(cuInit(0), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc(&p, 100), CUDA_ERROR_INVALID_CONTEXT);
    end();
}

/* Two blocks side by side are one piece to a copy and to a kernel; the one
 * mapped twice is seen twice; what is not mapped is not there. */
TEST(cuda_driver_maps_memory)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes =
                                    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc rw = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle h[2], again;
    CUdeviceptr p, q;
    unsigned long long flags;
    uint32_t some[8] = {1, 2, 3, 4, 5, 6, 7, 8}, got[8];
    size_t g, n;
    CUmodule mod;
    int fd;

    OK(cuMemGetAllocationGranularity(&g, &prop,
                                     CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    ck_assert_int_eq(cuMemCreate(&h[0], g, &prop, 0),
                     CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    OK(cuMemCreate(&h[0], g, &prop, 0)); /* without a context */
    OK(cuMemRelease(h[0]));
    start(&mod);
    NO(cuMemCreate(&h[0], g + 1, &prop, 0));
    OK(cuMemCreate(&h[0], g, &prop, 0));
    OK(cuMemCreate(&h[1], 2 * g, &prop, 0));
    OK(cuMemAddressReserve(&p, 4 * g, 8 * g, 0, 0));
    ck_assert(p % (8 * g) == 0);
    OK(cuMemMap(p, g, 0, h[0], 0));
    OK(cuMemMap(p + g, g, g, h[1], 0));
    NO(cuMemMap(p + g, g, 0, h[0], 0));         /* taken */
    NO(cuMemMap(p + 2 * g, g, 2 * g, h[1], 0)); /* past its end */
    NO(cuMemMap(p + 3 * g, 2 * g, 0, h[1], 0)); /* not reserved */
    q = p + g - 16;
    NO(cuMemcpyHtoD(q, some, sizeof some)); /* no access yet */
    OK(cuMemSetAccess(p, g, &rw, 1));
    NO(cuMemcpyHtoD(q, some, sizeof some)); /* to the first only */
    OK(cuMemSetAccess(p, 2 * g, &rw, 1));
    OK(cuMemcpyHtoD(q, some, sizeof some));
    n = 8;
    OK(launch(function(mod, "mul"), 1, 8, NULL, (void *[]){&q, &n}));
    OK(cuMemcpyDtoH(got, q, sizeof got));
    for (uint32_t k = 0; k < 8; k++)
        ck_assert_int_eq(got[k], 3 * some[k] + 10);
    OK(cuMemGetAccess(&flags, &rw.location, p + g));
    ck_assert_int_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    OK(cuMemExportToShareableHandle(
        &fd, h[1], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    OK(cuMemImportFromShareableHandle(
        &again, (void *)(intptr_t)fd,
        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    ck_assert_int_eq(close(fd), 0);
    OK(cuMemMap(p + 3 * g, g, g, again, 0));
    OK(cuMemSetAccess(p + 3 * g, g, &rw, 1));
    OK(cuMemcpyDtoH(got, p + 3 * g, 16));
    ck_assert_int_eq(got[0], 3 * some[4] + 10);
    rw.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
    ck_assert_int_eq(cuMemSetAccess(p, g, &rw, 1), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuMemRelease(h[0]));
    OK(cuMemRelease(h[1]));
    OK(cuMemRelease(again));
    NO(cuMemRelease(h[1]));
    OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(p + 3 * g)));
    OK(cuMemGetAllocationPropertiesFromHandle(&prop, again));
    OK(cuMemRelease(again));
    NO(cuMemUnmap(p, 3 * g)); /* a hole */
    NO(cuMemAddressFree(p, 4 * g));
    OK(cuMemUnmap(p + 3 * g, g));
    OK(cuMemUnmap(p, 2 * g));
    NO(cuMemcpyDtoH(got, q, 16));
    OK(cuMemAddressFree(p, 4 * g));
    end();
}
#undef OK
#undef NO

TEST(cuda_driver_answers_questions)
{
    CUmodule mod, of;
    CUlibrary lib;
    CUkernel kernel;
    CUfunction f, g;
    CUdeviceptr p, base;
    CUmemorytype type;
    CUcontext ctx, now;
    const char *name;
    size_t size;
    int grid, block, can, status;
    void *fn;

    start(&mod);
    f = function(mod, "mul");
    ck_assert_int_eq(cuFuncGetName(&name, f), CUDA_SUCCESS);
    ck_assert_str_eq(name, "mul");
    ck_assert_int_eq(cuFuncGetModule(&of, f), CUDA_SUCCESS);
    ck_assert(of == mod);
    ck_assert_int_eq(
        cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 200),
        CUDA_SUCCESS);
    ck_assert_int_eq(block, 128); /* 16 of them fill 2048 threads */
    ck_assert_int_eq(cuLibraryLoadData(&lib, ptx, NULL, NULL, 0, NULL, NULL, 0),
                     CUDA_SUCCESS);
    ck_assert_int_eq(cuLibraryGetKernel(&kernel, lib, "mul"), CUDA_SUCCESS);
    ck_assert_int_eq(cuKernelGetFunction(&g, kernel), CUDA_SUCCESS);
    ck_assert_int_eq(cuMemAlloc(&p, 4096), CUDA_SUCCESS);
    ck_assert_int_eq(launch(g, 1, 32, NULL, (void *[]){&p, &(uint32_t){4}}),
                     CUDA_SUCCESS);
    ck_assert_int_eq(cuLibraryUnload(lib), CUDA_SUCCESS);
    ck_assert_int_eq(
        cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + 9),
        CUDA_SUCCESS);
    ck_assert_int_eq(type, CU_MEMORYTYPE_DEVICE);
    ck_assert_int_eq(cuPointerGetAttribute(
                         &base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 9),
                     CUDA_SUCCESS);
    ck_assert_int_eq(
        cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p),
        CUDA_SUCCESS);
    ck_assert(base == p && size == 4096);
    ck_assert_int_eq(
        cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_HOST_POINTER, p),
        CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(
        cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_HOST_POINTER, 8),
        CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(cuStreamGetCtx(NULL, &ctx), CUDA_SUCCESS);
    ck_assert_int_eq(cuCtxGetCurrent(&now), CUDA_SUCCESS);
    ck_assert(ctx == now);
    ck_assert_int_eq(cuDeviceCanAccessPeer(&can, 0, 0), CUDA_SUCCESS);
    ck_assert_int_eq(can, 0);
    ck_assert_int_eq(cuCtxEnablePeerAccess(ctx, 0),
                     CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    ck_assert_int_eq(cuTexObjectCreate(NULL, NULL, NULL, NULL),
                     CUDA_ERROR_INVALID_VALUE);
    ck_assert_int_eq(
        cuGetProcAddress_v2("cuNoSuchThing", &fn, 12000, 0, &status),
        CUDA_ERROR_NOT_FOUND);
    ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    ck_assert_int_eq(cuCtxSynchronize(), CUDA_SUCCESS);
    end();
}

#define OK(call) ck_assert_int_eq(call, CURAND_STATUS_SUCCESS)
/* On the device: after what the stream holds, into memory that is there. */
TEST(curand_device_generators_are_in_the_stream)
{
    curandGenerator_t g = NULL, h = NULL;
    double *p, got[100], want[100];
    cudaStream_t s;
    cudaGraph_t graph;

    OK(curandCreateGenerator(&g, CURAND_RNG_PSEUDO_MRG32K3A));
    OK(curandCreateGeneratorHost(&h, CURAND_RNG_PSEUDO_MRG32K3A));
    ck_assert_int_eq(cudaStreamCreate(&s), cudaSuccess);
    ck_assert_int_eq(cudaMalloc((void **)&p, sizeof got), cudaSuccess);
    OK(curandSetStream(g, s));
    OK(curandGenerateLogNormalDouble(g, p, 100, 1, 0.5));
    OK(curandGenerateLogNormalDouble(h, want, 100, 1, 0.5));
    ck_assert_int_eq(
        cudaMemcpyAsync(got, p, sizeof got, cudaMemcpyDeviceToHost, s),
        cudaSuccess);
    ck_assert_int_eq(cudaStreamSynchronize(s), cudaSuccess);
    ck_assert(memcmp(got, want, sizeof got) == 0);
    ck_assert_int_eq(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal),
                     cudaSuccess);
    ck_assert_int_eq(curandGenerateUniformDouble(g, p, 100),
                     CURAND_STATUS_LAUNCH_FAILURE);
    ck_assert_int_eq(cudaStreamEndCapture(s, &graph), cudaSuccess);
    ck_assert_int_eq(cudaGraphDestroy(graph), cudaSuccess);
    OK(curandGenerateUniformDouble(g, p + 1, 100)); /* one too many */
    ck_assert_int_eq(cudaStreamSynchronize(s), cudaErrorIllegalAddress);
    OK(curandDestroyGenerator(g));
    OK(curandDestroyGenerator(h));
    ck_assert_int_eq(cudaDeviceReset(), cudaSuccess);
}
