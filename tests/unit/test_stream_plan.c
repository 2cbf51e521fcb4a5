/* test_stream_plan.c - the weights of a model spread over the workers of the
 * CUDA megakernel: every tile once, no two in one place, nobody with much more
 * than his share; the kernels' own text on the emulated device of tests/emu;
 * and the lock of a card.
 * On a GPU: make bench-cuda_decode.
 * SPDX-License-Identifier: Apache-2.0 */
#include "shape_kit.h"
#include "t.h"

#include "../../kernels/cuda/mega_table.h"
#include "base/thread.h"
#include "drv/cuda/cuda_api.h"
#include "drv/cuda/stream_plan.h"
#include "model/model.h"
#include "run/lm_cuda.h"
#include "run/oracle.h"
#include "run/sample.h"
#include "run/shape.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const br_cu_shape llama_1b = {
    "llama-3.2-1b", BR_CU_BF16, 16,    2048,  32,   8,    64,   8192,
    128256,         5e5f,       1e-5f, false, true, true, NULL, false};
static const br_cu_shape qwen_8b = {
    "qwen3-8b", BR_CU_Q8_0, 36,    4096, 32,    8,     128,  12288,
    151936,     1e6f,       1e-6f, true, false, false, NULL, false};

static int
by_value(const void *a, const void *b)
{
    unsigned long long x = *(const unsigned long long *)a;
    unsigned long long y = *(const unsigned long long *)b;

    return (x > y) - (x < y);
}

/* Chunks of nobody that a phase ends with, as the next begins with a copy's first. */
static uint32_t
padding_of(const br_stream_plan *p, const br_cu_shape *s,
           const struct br_mk_inst *in)
{
    const uint32_t n = (uint32_t)in->n_tiles * in->segs;

    ck_assert_uint_eq(p->together, s->format == BR_CU_Q4_K ? 2 : 1);
    return n % p->together;
}

/* Sorted, no two chunks lie in one place and none lies outside; there are as
 * many as the workers read, and places left over only where streams end. */
static void
every_byte_once(const br_stream_plan *p, const br_cu_shape *s)
{
    const uint32_t mats = s->n_layers * 4 + 1;
    const uint64_t bytes = br_cu_chunk_bytes(s);
    size_t n = 0, k = 0, twice = 0, odd = 0, pads = 0;
    uint32_t most = 0, least = UINT32_MAX;
    unsigned long long *at;

    for (uint32_t w = 0; w < p->n_workers; w++) {
        n += p->stream_chunks[w];
        most = BR_MAX(most, p->stream_chunks[w]);
        least = BR_MIN(least, p->stream_chunks[w]);
        for (uint32_t i = 0; i < p->n_inst; i++)
            pads += padding_of(p, s, &p->inst[w * p->n_inst + i]);
    }
    n -= pads;
    at = t_keep(malloc(n * sizeof *at));
    for (uint32_t m = 0; m < mats; m++) {
        enum br_cu_matrix kind = m == mats - 1 ? BR_CU_HEAD : m % 4;
        ck_assert_uint_eq(p->n_tiles[m], (br_cu_rows(s, kind) + 15) / 16);
        for (uint32_t t = 0; t < p->n_tiles[m]; t++)
            for (uint32_t seg = 0; seg < br_cu_cols(s, kind) / 512; seg++) {
                ck_assert(k < n);
                at[k++] = br_stream_plan_chunk(p, p->tile_at[m][t], seg);
            }
    }
    ck_assert_uint_eq(k, n);
    qsort(at, n, sizeof *at, by_value);
    for (size_t i = 0; i < n; i++) {
        twice += i && at[i] == at[i - 1];
        odd += at[i] % bytes != 0;
    }
    ck_assert_uint_eq(twice + odd, 0);
    ck_assert_uint_le(at[n - 1] + bytes, p->stream_bytes);
    ck_assert_uint_le(p->stream_bytes / bytes - n,
                      (uint64_t)(most - least) * p->n_workers + pads);
}

/* What the kernel takes for granted of an instruction. */
static void
kernel_limits_hold(const br_stream_plan *p, const br_cu_shape *s)
{
    for (uint32_t w = 0; w < p->n_workers; w++) {
        uint32_t chunk = 0;
        for (uint32_t i = 0; i < p->n_inst; i++) {
            const struct br_mk_inst *in = &p->inst[w * p->n_inst + i];
            ck_assert_uint_eq(in->chunk0, chunk);
            chunk += (uint32_t)in->n_tiles * in->segs + padding_of(p, s, in);
            ck_assert_uint_le((uint32_t)in->n_tiles * in->segs,
                              BR_MK_MAX_PARTS);
            ck_assert_uint_le(in->n_tiles * 16u, BR_MK_THREADS);
            /* 16 activations, two tiles, are rounded with one scale */
            if (in->op == BR_MK_GLU && s->format != BR_CU_BF16)
                ck_assert_uint_eq((in->tile0 | in->n_tiles) & 1, 0);
        }
        ck_assert_uint_eq(chunk, p->stream_chunks[w]);
    }
}

static void
shares_are_fair(const br_stream_plan *p, double most)
{
    uint32_t max = 0;
    double mean = 0;

    for (uint32_t w = 0; w < p->n_workers; w++) {
        max = BR_MAX(max, p->stream_chunks[w]);
        mean += (double)p->stream_chunks[w] / p->n_workers;
    }
    ck_assert_msg(max <= most * mean, "largest share %u chunks, mean %.1f", max,
                  mean);
}

static void
check_plan(const br_cu_shape *s, uint32_t workers, double most)
{
    br_stream_plan p;
    br_status st = {0};

    ck_assert_msg(br_stream_plan_make(&p, s, workers, &st) == BR_OK, "%s",
                  st.msg);
    every_byte_once(&p, s);
    kernel_limits_hold(&p, s);
    shares_are_fair(&p, most);
    br_stream_plan_free(&p);
}

TEST(stream_plan_llama_1b_on_132)
{
    check_plan(&llama_1b, 132, 1.005);
}
TEST(stream_plan_qwen_8b_on_132)
{
    check_plan(&qwen_8b, 132, 1.005);
}
TEST(stream_plan_llama_1b_on_108)
{
    check_plan(&llama_1b, 108, 1.005);
}

TEST(stream_plan_refuses_what_the_kernel_cannot)
{
    br_stream_plan p;
    br_cu_shape s = llama_1b;
    br_status st = {0};

    s.head_dim = 96;
    ck_assert_int_eq(br_stream_plan_make(&p, &s, 132, &st), BR_E_UNSUPPORTED);
    s = llama_1b;
    s.inter = 8000;
    st = (br_status){0};
    ck_assert_int_eq(br_stream_plan_make(&p, &s, 132, &st), BR_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(st.msg, "8000"));
    st = (br_status){0};
    ck_assert_int_eq(br_stream_plan_make(&p, &llama_1b, 0, &st), BR_E_LIMIT);
    st = (br_status){0};
    ck_assert_int_eq(br_stream_plan_make(&p, &llama_1b, 256, &st), BR_E_LIMIT);
    st = (br_status){0};
    ck_assert_int_eq(br_stream_plan_make(&p, &llama_1b, 8, &st), BR_E_LIMIT);
    ck_assert_str_eq(st.msg, "llama-3.2-1b: 2048 rows of 8192 columns are too "
                             "many for 8 multiprocessors");
}

static br_code
make_1b(void *arg, br_status *st)
{
    br_cu_shape tiny = llama_1b;
    br_stream_plan p;
    br_code rc;

    (void)arg;
    tiny.n_layers = 2;
    tiny.vocab = 1024;
    rc = br_stream_plan_make(&p, &tiny, 40, st);
    if (rc == BR_OK)
        br_stream_plan_free(&p);
    return rc;
}

TEST(stream_plan_survives_oom)
{
    t_each_oom(make_1b, NULL);
}

TEST(cuda_without_a_driver_says_so)
{
    br_cuda cu;
    br_status st = {0};
    br_code rc = br_cuda_open(&cu, 0, &st);

    if (rc == BR_OK) {
        br_cuda_close(&cu);
        t_skip("a CUDA device is here");
    }
    ck_assert_int_eq(rc, BR_E_NO_DEVICE);
    ck_assert_uint_gt(strlen(st.msg), 0);
}

/* The checked-in PTX is what clang-19 makes of the sources. */
TEST_WITHIN(cuda_ptx_is_current, 120)
{
    static const char *const names[] = {
        "cuda/ptx/mega_decode",    "cuda/ptx/setup",
        "cuda/ptx/pick",           "cuda/ptx/nodes",
        "cuda/ptx/prog",           "cuda/ptx/experts",
        "cuda/ptx/nodes_portable", "cuda/ptx/mega_nodes",
        "cuda/ptx/stay",           "host/host"};
    const char *dir = t_tmpdir();

    if (t_sanitized())
        t_skip("clang makes the PTX: nothing of ours runs");
    if (system("command -v clang-19 >/dev/null 2>&1") != 0)
        t_skip("no clang-19 here: the PTX is not made again");
    ck_assert_int_eq(system(t_printf("make -s ptx PTX_OUT=%s "
                                     "HOST_PTX=%s/host.ptx",
                                     dir, dir)),
                     0);
    for (size_t i = 0; i < BR_COUNT(names); i++)
        ck_assert_int_eq(system(t_printf("cmp %s/%s.ptx kernels/%s.ptx", dir,
                                         strrchr(names[i], '/') + 1, names[i])),
                         0);
}

/* The place on the bus of the emulated card, one for each parent process. */
static const char *
card(void)
{
    return t_printf("gpu-emulated-%d", (int)getpid());
}

static void
forget_card(void)
{
    unlink(t_printf("/run/lock/brass-%s.lock", card()));
    unlink(t_printf("/tmp/brass-%s.lock", card()));
}

static void
bench_emulated(t_proc *r, const char *shape, int n_sm)
{
    const char *dir = t_repo(t_printf("build/%s", t_conf()));
    const char *bin = t_printf("%s/bench_cuda_decode", dir);
    const char *lib = t_printf("%s/emu/libcuda.so.1", dir);

    if (access(lib, R_OK) != 0)
        t_skip("no emulated CUDA device in this build");
    t_exec(r,
           (const char *[]){"env", t_printf("LD_LIBRARY_PATH=%s/emu", dir),
                            t_printf("BR_EMU_SM=%d", n_sm), bin, shape,
                            "--quick", NULL},
           NULL, 0);
    forget_card();
}

TEST(a_gpu_is_one_process_s)
{
    br_status st = {0};
    br_os_lock mine;
    t_proc r;

    t_ok(br_os_lock_device(&mine, card(), &st), &st);
    bench_emulated(&r, "tiny", 7);
    br_os_lock_drop(&mine);
    ck_assert_int_ne(r.exit, 0);
    ck_assert_ptr_nonnull(strstr(r.err, "emulated device: gpu-emulated-"));
    ck_assert_ptr_nonnull(
        strstr(r.err, t_printf("in use by process %d\n", (int)getpid())));
}

/* The benchmark's checks, on tests/emu instead of a GPU. */
static void
emulate(const char *shape, int n_sm)
{
    t_proc r;

    bench_emulated(&r, shape, n_sm);
    ck_assert_msg(r.exit == 0, "%s%s", r.out, r.err);
    ck_assert(strstr(r.out, "emulated device"));
    ck_assert(strstr(r.out, "packets==mega yes"));
}

TEST_WITHIN(cuda_kernels_emulated_bf16, 300)
{
    emulate("tiny", 7);
}
TEST_WITHIN(cuda_kernels_emulated_bf16_wide_heads, 300)
{
    emulate("tiny-128", 7);
}
TEST_WITHIN(cuda_kernels_emulated_q8_0, 300)
{
    emulate("tiny-q8_0", 7);
}
TEST_WITHIN(cuda_kernels_emulated_q8_0_wide_heads, 300)
{
    emulate("tiny-128-q8_0", 7);
}

TEST_WITHIN(cuda_kernels_emulated_q4_k, 300)
{
    emulate("tiny-128-q4_k", 7);
}

/* So many multiprocessors that keys are copied a step before they are read:
 * with seven of them a row that is not put over its copy goes unnoticed. */
TEST_WITHIN(cuda_kernels_emulated_a_step_ahead, 300)
{
    emulate("tiny-ahead", 28);
}

static void
open_emulated(void)
{
    const char *lib = t_repo(t_printf("build/%s/emu/libcuda.so.1", t_conf()));

    if (access(lib, R_OK) != 0)
        t_skip("no emulated CUDA device in this build");
    ck_assert_msg(dlopen(lib, RTLD_NOW | RTLD_LOCAL), "%s", dlerror());
}

static br_model *
model_of(const char *spec, br_str *doc)
{
    br_status st = {0};
    br_model *m;

    ck_assert_msg(br_shape_model(doc, spec, true, &st) == BR_OK, "%s", st.msg);
    t_ok(br_model_open_mem(&m, doc->at, doc->n, &st), &st);
    return m;
}

/* A model file in the megakernel: the ref tier's logits, but for BF16
 * activations or keys. */
static void
same_as_ref(const char *spec, double most)
{
    static const int32_t tokens[] = {3, 250, 7, 99};
    enum { N = BR_COUNT(tokens) };
    br_oracle_config oc = {.act = BR_REF_QUANTISED};
    br_lm_config c = {.tier = "cuda", .n_ctx = 32};
    br_str doc = {0};
    br_status st = {0};
    double e = 0, s = 0;
    float *got, *want;
    br_lm_model *r;
    br_oracle o;
    br_model *m;

    open_emulated();
    m = model_of(spec, &doc);
    t_ok(br_lm_model_open(&r, m, &c, &st), &st);
    const br_lm *lm = br_lm_model_lm(r);
    size_t n = (size_t)lm->n_vocab;
    ck_assert(lm->pick); /* not node by node */
    got = t_keep(calloc(N * n, sizeof *got));
    want = t_keep(calloc(N * n, sizeof *want));
    for (uint32_t i = 0; i < N; i++)
        t_ok(lm->feed(lm->ctx, 0, i, &tokens[i], 1, got + i * n, &st), &st);
    br_lm_model_close(r);
    t_ok(br_oracle_open(&o, m, &oc, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, tokens, N, 0, want, &st), &st);
    br_oracle_close(&o);
    br_model_close(m);
    br_str_fini(&doc);
    t_emulate_end();
    for (size_t i = 0; i < N * n; i++) {
        double d = (double)got[i] - (double)want[i];
        e += d * d;
        s += (double)want[i] * (double)want[i];
    }
    ck_assert_msg(s > 0 && e / s < most, "%s: NMSE %g", spec, e / s);
}

TEST_WITHIN(cuda_tier_runs_llama_files, 120)
{
    same_as_ref("shape:llama-512:BF16", 1e-4);
    same_as_ref("shape:llama-512:Q8_0", 1e-3);
    same_as_ref("shape:llama-512:Q4_K", 1e-3);
}
TEST_WITHIN(cuda_tier_runs_qwen3_files, 120)
{
    same_as_ref("shape:qwen3-512:BF16", 1e-4);
}

/* Who is to read more than to write goes by steps of many rows. */
TEST_WITHIN(cuda_long_prompts_are_read_by_many_rows, 120)
{
    static const struct {
        uint32_t prompt, answer;
        bool whole; /* steps in one launch */
    } want[] = {{0, 0, true},  {512, 0, true},  {513, 0, false},
                {64, 1, true}, {65, 64, false}, {600, 600, true}};

    t_emulate_cuda();
    for (size_t i = 0; i < BR_COUNT(want); i++) {
        const br_lm_config c = {.tier = "cuda",
                                .n_ctx = 64,
                                .prompt = want[i].prompt,
                                .answer = want[i].answer};
        shaped on = open_shape("shape:llama-512:Q4_K", &c);

        ck_assert_msg((on.lm->pick != NULL) == want[i].whole, "row %zu", i);
        close_shape(&on);
    }
    t_emulate_end();
}

enum { DRAWS = 5 };

/* A text of so many tokens: drawn by the tier, or from its logits. */
static void
write_text(const br_lm *lm, const br_sample_params *p, bool tier, int32_t *out)
{
    static const int32_t prompt[] = {3, 250};
    float *x = t_keep(malloc((size_t)lm->n_vocab * sizeof *x));
    const int32_t *next = prompt;
    uint32_t n = BR_COUNT(prompt), held = 0;
    br_status st = {0};
    br_sampler *s;

    t_ok(br_sampler_new(&s, lm->n_vocab, 8, p, &st), &st);
    lm->keep(lm->ctx, 0, 0);
    for (int i = 0; i < DRAWS; i++) {
        t_ok(lm->feed(lm->ctx, 0, held, next, n, tier ? NULL : x, &st), &st);
        held += n;
        if (tier)
            t_ok(lm->pick(lm->ctx, p, held, &out[i], &st), &st);
        else
            t_ok(br_sampler_pick(s, x, held, &out[i], &st), &st);
        next = &out[i];
        n = 1;
    }
    br_sampler_free(s);
}

/* The library that is open already is the one that the tier finds. */
TEST_WITHIN(cuda_tier_draws_what_the_sampler_does, 120)
{
    br_lm_config c = {.tier = "cuda", .n_ctx = 32};
    br_sample_params p = br_sample_defaults();
    int32_t got[DRAWS], want[DRAWS], best[DRAWS];
    br_str doc = {0};
    br_status st = {0};
    br_lm_model *r;
    br_model *m;

    open_emulated();
    m = model_of("shape:llama-512:BF16", &doc);
    t_ok(br_lm_model_open(&r, m, &c, &st), &st);
    const br_lm *lm = br_lm_model_lm(r);
    p.seed = 7;
    p.temperature = 2.0f;
    write_text(lm, &p, true, got);
    write_text(lm, &p, false, want);
    p.temperature = 0;
    write_text(lm, &p, true, best);
    ck_assert_mem_eq(got, want, sizeof got);
    ck_assert_mem_ne(got, best, sizeof got); /* a draw, not the best */
    br_lm_model_close(r);
    br_model_close(m);
    br_str_fini(&doc);
    t_emulate_end();
}

/* Models that the megakernel does not take run node by node. */
TEST_WITHIN(cuda_megakernel_says_what_it_lacks, 60)
{
    static const char *const row[][2] = {
        {"shape:llama-512:F16",
         "matrices of F16: tier cuda takes BF16, Q8_0 and Q4_K"},
        {"shape:gemma3-1b:BF16", "tier cuda does not run gemma3 with "},
        {"shape:toy:BF16", "head_dim 8: 64 and 128 are"},
    };
    br_lm_config c = {.tier = "cuda", .n_ctx = 32};

    open_emulated();
    for (size_t i = 0; i < BR_COUNT(row); i++) {
        br_str doc = {0};
        br_status st = {0};
        br_model *m = model_of(row[i][0], &doc);
        br_lm_cuda *r;
        br_lm lm;

        ck_assert_int_eq(br_lm_cuda_open(&r, &lm, m, &c, &st),
                         BR_E_UNSUPPORTED);
        ck_assert_msg(strstr(st.msg, row[i][1]), "%s", st.msg);
        br_model_close(m);
        br_str_fini(&doc);
    }
    t_emulate_end();
}
