/* test_cuda_lost.c - a CUDA device that is lost, or whose kernel waits in vain, on
 * the emulated device of tests/emu; an older device's kernels on our own driver.
 * SPDX-License-Identifier: Apache-2.0 */
#include "shape_kit.h"

#include "../../kernels/cuda/mega_table.h"
#include "base/thread.h"
#include "drv/cuda/cuda_load.h"
#include "run/sample.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t.h"

static const int32_t token[] = {3};

/* One token by the tier's way of one sequence or of steps; n_slots 0: the former. */
static br_code
one_token(const br_lm *lm, uint32_t n_slots, float *logits, br_status *st)
{
    static const uint32_t page[] = {0, 1};
    const uint32_t *tables[2 * BR_MAX_KV_GROUPS];
    const br_step s = {1,    &(int32_t){0}, &(int32_t){0}, token,
                       NULL, tables,        false,         NULL};

    for (size_t i = 0; i < BR_COUNT(tables); i++)
        tables[i] = page;
    if (n_slots)
        return lm->step(lm->ctx, &s, logits, st);
    lm->keep(lm->ctx, 0, 0);
    return lm->feed(lm->ctx, 0, 0, token, 1, logits, st);
}

/* brass logits of a model on a tier; a device that another test run has is waited for. */
static void
logits_to(const char *out, const char *model, const char *tier,
          const char *libs)
{
    const char *brass = t_repo(t_printf("build/%s/brass", t_conf()));
    t_proc r;

    for (int i = 0; i < 60; i++) {
        t_exec(&r,
               (const char *[]){"env", t_printf("LD_LIBRARY_PATH=%s", libs),
                                brass, "logits", model, "--tokens", "3,1,7,9",
                                "--tier", tier, "--arith", "exact", "-o", out,
                                NULL},
               NULL, 0);
        if (r.exit == 0 || !strstr(r.err, "in use by process"))
            break;
        sleep(1);
    }
    ck_assert_msg(r.exit == 0, "%s: %s", model, r.err);
}

/* The whole tier on our own CUDA driver, which compiles the PTX that is checked in:
 * an older device's kernels, really run, and the reference tier's bits. */
TEST_WITHIN(cuda_tier_on_our_own_driver_has_the_reference_bits, 120)
{
    static const char *const names[] = {"mamba2", "llama-q-Q8_0",
                                        "gpt-oss-q-MXFP4", "qwen3moe"};
    const char *dir = t_tmpdir();
    const char *lib = t_repo(t_printf("build/%s/libbrasscuda.so", t_conf()));
    const char *got = t_printf("%s/got", dir), *want = t_printf("%s/want", dir);
    const char *folder = t_vectors("logits");
    uint32_t done = 0;

    if (t_sanitized() || access(lib, R_OK) != 0)
        t_skip("our CUDA driver is not in this build");
    ck_assert_int_eq(symlink(lib, t_printf("%s/libcuda.so.1", dir)), 0);
    for (size_t i = 0; i < BR_COUNT(names); i++) {
        const char *model =
            t_printf("%s/%s.gguf",
                     folder ? folder : t_repo("tests/data/logits"), names[i]);
        size_t n[2];

        if (access(model, R_OK) != 0)
            continue;
        logits_to(want, model, "ref", dir);
        logits_to(got, model, "cuda", dir);
        const char *a = t_read(want, &n[0]), *b = t_read(got, &n[1]);
        ck_assert_uint_eq(n[0], n[1]);
        ck_assert_msg(n[0] > 0 && memcmp(a, b, n[0]) == 0, "%s", names[i]);
        done++;
    }
    ck_assert_uint_gt(done, 0);
}

/* A device that is lost under a model: each request is told which call failed and
 * why, and once the model is gone it can be loaded again. */
static void
lose_device(const char *spec, uint32_t n_slots, int rc, br_code want)
{
    const br_lm_config c = {.tier = "cuda", .n_ctx = 128, .n_slots = n_slots};
    const char *file = t_printf("%s/lost", t_tmpdir());
    const char *number = t_printf("%d", rc);
    float *before, *after;

    ck_assert_int_eq(setenv("BR_EMU_LOST", file, 1), 0);
    shaped on = open_shape(spec, &c);
    before = t_keep(calloc((size_t)on.lm->n_vocab, sizeof *before));
    after = t_keep(calloc((size_t)on.lm->n_vocab, sizeof *after));
    br_status st = {0};
    t_ok(one_token(on.lm, n_slots, before, &st), &st);
    t_write(file, number, strlen(number));
    for (int i = 0; i < 2; i++) {
        st = (br_status){0};
        ck_assert_int_eq(one_token(on.lm, n_slots, after, &st), want);
        ck_assert_msg(strncmp(st.msg, "cu", 2) == 0, "%s", st.msg);
    }
    ck_assert_int_ne(access(file, F_OK), 0);
    close_shape(&on);
    on = open_shape(spec, &c);
    st = (br_status){0};
    t_ok(one_token(on.lm, n_slots, after, &st), &st);
    ck_assert_mem_eq(before, after, (size_t)on.lm->n_vocab * sizeof *before);
    close_shape(&on);
    unsetenv("BR_EMU_LOST");
}

TEST_WITHIN(cuda_a_lost_device_is_told_and_loaded_again, 120)
{
    enum { ILLEGAL_ADDRESS = 700, LAUNCH_TIMEOUT = 702 };

    t_emulate_cuda();
    lose_device("shape:qwen3moe-256:Q4_0", 2, ILLEGAL_ADDRESS, BR_E_IO);
    lose_device("shape:qwen3moe-256:Q4_0", 2, LAUNCH_TIMEOUT, BR_E_TIMEOUT);
    lose_device("shape:llama-512:BF16", 0, ILLEGAL_ADDRESS, BR_E_IO);
    lose_device("shape:llama-512:BF16", 0, LAUNCH_TIMEOUT, BR_E_TIMEOUT);
    t_emulate_end();
}

/* What the head read is not copied: no memory for it, or `why`. */
static void
no_hidden(const br_lm *lm, br_code why)
{
    br_status st = {0};

    if (why == BR_E_OOM)
        t_mem_fail_at(1);
    ck_assert(!lm->hidden(lm->ctx, &st));
    t_mem_fail_at(0);
    ck_assert_int_eq(st.code, why);
    ck_assert(st.msg[0]);
}

/* A step that never ends, in either way: TIMEOUT, at once the second time; so is a
 * copy of what its head read. */
static void
hang_device(const char *spec, uint32_t n_slots, bool other)
{
    br_lm_config c = {
        .tier = "cuda", .n_ctx = 128, .n_slots = n_slots, .gpu_timeout_s = 3};
    const char *file = t_printf("%s/hang", t_tmpdir());
    float *logits;
    br_status st = {0};
    int64_t begun;

    t_emulate_cuda();
    ck_assert_int_eq(setenv("BR_EMU_HANG", file, 1), 0);
    shaped on = open_shape(spec, &c), beside = {0};
    if (other)
        beside = open_shape(spec, &c);
    logits = t_keep(calloc((size_t)on.lm->n_vocab, sizeof *logits));
    t_ok(one_token(on.lm, n_slots, logits, &st), &st);
    if (n_slots)
        no_hidden(on.lm, BR_E_OOM);
    t_write(file, "", 0);
    for (int i = 0; i < 3; i++) {
        const br_lm *lm = other && i == 2 ? beside.lm : on.lm;

        st = (br_status){0};
        begun = br_now_ns();
        ck_assert_int_eq(one_token(lm, n_slots, logits, &st), BR_E_TIMEOUT);
        ck_assert_msg(strstr(st.msg, "has not ended in 3 s"), "%s", st.msg);
        ck_assert(i == 0 || br_now_ns() - begun < 2 * (int64_t)1000000000);
    }
    if (n_slots)
        no_hidden(on.lm, BR_E_TIMEOUT);
    if (other)
        close_shape(&beside);
    close_shape(&on);
    unsetenv("BR_EMU_HANG");
}

TEST_WITHIN(cuda_a_step_that_hangs_is_a_timeout, 120)
{
    hang_device("shape:llama-512:BF16", 2, false);
}
TEST_WITHIN(cuda_a_step_of_one_sequence_that_hangs_is_a_timeout, 120)
{
    hang_device("shape:llama-512:BF16", 0, false);
}

/* Another model on it is told at once, and given back without a word to the device. */
TEST_WITHIN(cuda_a_step_that_hangs_is_one_of_all_models, 120)
{
    hang_device("shape:llama-512:BF16", 2, true);
}

/* A sequence of which n tokens are drawn, the most likely ones, and fed back; from
 * there on a kernel hangs: the draw after that. */
static br_code
talk_on(const br_lm *lm, uint32_t from, uint32_t n, int32_t *next,
        br_status *st)
{
    const br_sample_params likely = {.top_p = 1};

    for (uint32_t i = from; i < from + n; i++) {
        BR_TRY(lm->feed(lm->ctx, 0, i, next, 1, NULL, st));
        BR_TRY(lm->pick(lm->ctx, &likely, i + 1, next, st));
    }
    return BR_OK;
}

static void
is_told(const char *who, br_code code, const br_status *st, int64_t begun,
        uint32_t within_s)
{
    ck_assert_msg(code == BR_E_TIMEOUT && strstr(st->msg, "started anew"),
                  "%s: %d %s", who, (int)code, st->msg);
    ck_assert_msg(br_now_ns() - begun < (int64_t)within_s * 1000000000,
                  "%s: late", who);
}

/* Of one sequence: its kernel that stays, in the midst of a step, or a draw. Its
 * next tokens, another model's step and who comes are told at once; all is given
 * back without a word to the device. */
static void
hang_sequence(const char *kernel, uint32_t n)
{
    enum { TIMEOUT_S = 8, AT_ONCE_S = 4 };
    br_lm_config c = {.tier = "cuda", .n_ctx = 128, .gpu_timeout_s = TIMEOUT_S};
    const char *file = t_printf("%s/hang", t_tmpdir());
    br_lm_model *comes;
    int32_t next = token[0];
    int64_t begun;
    br_status st = {0};

    t_emulate_cuda();
    ck_assert_int_eq(setenv("BR_EMU_HANG", file, 1), 0);
    shaped on = open_shape("shape:llama-512:BF16", &c);
    c.n_slots = 2;
    shaped beside = open_shape("shape:llama-512:BF16", &c);
    float *logits = t_keep(calloc((size_t)beside.lm->n_vocab, sizeof *logits));
    ck_assert(on.lm->pick && !beside.lm->pick);
    t_ok(talk_on(on.lm, 0, n, &next, &st), &st);
    t_write(file, kernel, strlen(kernel));
    ck_assert_int_eq(talk_on(on.lm, n, 64, &next, &st), BR_E_TIMEOUT);
    ck_assert_msg(strstr(st.msg, "has not ended in 8 s"), "%s", st.msg);
    ck_assert_int_ne(access(file, F_OK), 0);
    begun = br_now_ns();
    st = (br_status){0};
    next = token[0];
    on.lm->keep(on.lm->ctx, 0, 0);
    is_told("itself", talk_on(on.lm, 0, 1, &next, &st), &st, begun, AT_ONCE_S);
    st = (br_status){0};
    is_told("another", one_token(beside.lm, 2, logits, &st), &st, begun,
            AT_ONCE_S);
    st = (br_status){0};
    is_told("who comes", br_lm_model_open(&comes, on.m, &c, &st), &st, begun,
            AT_ONCE_S);
    close_shape(&on);
    close_shape(&beside);
    unsetenv("BR_EMU_HANG");
}

TEST_WITHIN(cuda_a_kernel_of_one_sequence_that_stays_and_hangs_is_a_timeout,
            120)
{
    hang_sequence("br_mega", 3);
}
TEST_WITHIN(cuda_a_draw_of_one_sequence_that_hangs_is_a_timeout, 120)
{
    hang_sequence("br_pick", 0);
}

/* A kernel of its own that hangs while a model is loaded, before any step. */
static void
hang_load(const char *kernel, const char *spec, uint32_t n_slots)
{
    const br_lm_config c = {
        .tier = "cuda", .n_ctx = 128, .n_slots = n_slots, .gpu_timeout_s = 2};
    const char *file = t_printf("%s/hang", t_tmpdir());
    br_lm_model *r;
    br_status st = {0};

    t_emulate_cuda();
    ck_assert_int_eq(setenv("BR_EMU_HANG", file, 1), 0);
    shaped on = open_shape_file(spec);
    t_write(file, kernel, strlen(kernel));
    ck_assert_int_eq(br_lm_model_open(&r, on.m, &c, &st), BR_E_TIMEOUT);
    ck_assert_msg(strstr(st.msg, "has not ended in 2 s"), "%s", st.msg);
    st = (br_status){0};
    ck_assert_int_eq(br_lm_model_open(&r, on.m, &c, &st), BR_E_TIMEOUT);
    ck_assert_msg(strstr(st.msg, "does not answer"), "%s", st.msg);
    close_shape(&on);
    unsetenv("BR_EMU_HANG");
}

TEST_WITHIN(cuda_a_load_that_hangs_is_a_timeout, 60)
{
    hang_load("br_nd_", "shape:llama-256:BF16", 2);
}
TEST_WITHIN(cuda_a_load_of_one_sequence_that_hangs_is_a_timeout, 60)
{
    hang_load("br_repack", "shape:llama-512:BF16", 0);
}

/* A step in a thread of its own. */
typedef struct stepper {
    const br_lm *lm;
    float *logits;
    br_code code;
    br_status st;
} stepper;

static void
step_alone(void *arg)
{
    stepper *s = arg;

    s->code = one_token(s->lm, 2, s->logits, &s->st);
}

/* While one model's step hangs and nobody knows it yet, another one's states are copied:
 * those calls come back, and say so at the next step. */
TEST_WITHIN(cuda_a_step_that_hangs_keeps_no_copies_of_others, 120)
{
    br_lm_config c = {
        .tier = "cuda", .n_ctx = 128, .n_slots = 2, .gpu_timeout_s = 4};
    const char *file = t_printf("%s/hang", t_tmpdir());
    stepper s = {0};
    br_thread thread;
    br_status st = {0};
    br_lm_model *r;
    br_model *m;

    t_emulate_cuda();
    ck_assert_int_eq(setenv("BR_EMU_HANG", file, 1), 0);
    shaped on = open_shape("shape:llama-512:BF16", &c);
    t_ok(br_model_open(&m, t_repo("tests/data/logits/mamba2.gguf"), &st), &st);
    t_ok(br_lm_model_open(&r, m, &c, &st), &st);
    const br_lm *lm = br_lm_model_lm(r);
    float *state = t_keep(calloc(lm->plan->slot_elems, sizeof *state));
    float *logits = t_keep(calloc((size_t)lm->n_vocab, sizeof *logits));
    s.lm = on.lm;
    s.logits = t_keep(calloc((size_t)on.lm->n_vocab, sizeof *s.logits));
    t_write(file, "", 0);
    t_ok(br_thread_start(&thread, "steps", step_alone, &s, &st), &st);
    while (access(file, F_OK) == 0)
        br_sleep_ns(1000000);
    lm->reset(lm->ctx, 0);
    lm->save(lm->ctx, 0, state);
    lm->restore(lm->ctx, 1, state);
    ck_assert_int_ne(one_token(lm, 2, logits, &st), BR_OK);
    br_thread_join(&thread);
    ck_assert_int_eq(s.code, BR_E_TIMEOUT);
    st = (br_status){0};
    ck_assert_int_eq(one_token(lm, 2, logits, &st), BR_E_TIMEOUT);
    br_lm_model_close(r);
    br_model_close(m);
    close_shape(&on);
    unsetenv("BR_EMU_HANG");
}

/* The first tensor of a model is on its way when another one's step hangs, and that is
 * known before the second. */
typedef struct interrupted {
    stepper by;
    const char *file;
    int calls;
} interrupted;

static void
hang_another(void *ctx, uint64_t done, uint64_t total)
{
    interrupted *i = ctx;

    (void)done, (void)total;
    if (i->calls++)
        return;
    step_alone(&i->by); /* the copy is done, too */
    t_ok(i->by.code, &i->by.st);
    t_write(i->file, "", 0);
    step_alone(&i->by);
    ck_assert_int_eq(i->by.code, BR_E_TIMEOUT);
}

/* A load that fails while another model hangs, and nothing of its own does: what it had is
 * left, as to free it would wait for the other's kernel. */
TEST_WITHIN(cuda_a_load_that_fails_beside_one_that_hangs_frees_nothing, 120)
{
    const br_lm_config c = {
        .tier = "cuda", .n_ctx = 128, .n_slots = 2, .gpu_timeout_s = 4};
    interrupted i = {.file = t_printf("%s/hang", t_tmpdir())};
    br_cu_decode d = {0};
    br_status st = {0};
    br_cu_shape s;
    br_cuda cu;

    t_emulate_cuda();
    ck_assert_int_eq(setenv("BR_EMU_HANG", i.file, 1), 0);
    shaped on = open_shape("shape:llama-512:BF16", &c);
    i.by.lm = on.lm;
    i.by.logits = t_keep(calloc((size_t)on.lm->n_vocab, sizeof *i.by.logits));
    t_ok(br_cu_shape_of(&s, on.m, &st), &st);
    s.n_kv *= 2; /* the second tensor is not as it should be */
    t_ok(br_cuda_open(&cu, 0, &st), &st);
    t_ok(br_cu_decode_new(&d, &cu, &s, 256, NULL, &st), &st);
    ck_assert_int_ne(br_cu_load(&d, on.m, hang_another, &i, &st), BR_OK);
    ck_assert_int_eq(i.calls, 1);
    ck_assert_int_eq(cu.cuStreamQuery(cu.stream), 0);
    br_cu_decode_free(&d);
    br_cuda_close(&cu);
    close_shape(&on);
    unsetenv("BR_EMU_HANG");
}

/* ---- captures beside who comes --------------------------------------------- */

typedef struct comer {
    br_cuda cu;
    atomic_bool came;
} comer;

static void
come(void *arg)
{
    comer *c = arg;
    br_status st = {0};

    t_ok(br_cuda_open(&c->cu, 0, &st), &st);
    atomic_store(&c->came, true);
}

/* While somebody loads, who asks the legacy stream without rest, nothing is captured, and
 * steps are the same; who comes waits for a capture under way. */
TEST_WITHIN(cuda_captures_nothing_beside_who_comes, 120)
{
    const br_lm_config c = {.tier = "cuda", .n_ctx = 128, .n_slots = 2};
    comer *other = t_keep(calloc(1, sizeof *other));
    br_thread thread;
    br_status st = {0};
    br_cuda like, cu; /* one like the model; another one */
    float *logits[2];

    t_emulate_cuda();
    shaped on = open_shape("shape:llama-512:BF16", &c);
    for (size_t i = 0; i < 2; i++)
        logits[i] = t_keep(calloc((size_t)on.lm->n_vocab, sizeof **logits));
    t_ok(br_cuda_open(&like, 0, &st), &st);
    br_cuda_says(&like, true);
    t_ok(br_cuda_open(&cu, 0, &st), &st);
    ck_assert(!br_cuda_may_capture(&like));
    t_ok(one_token(on.lm, 2, logits[0], &st), &st); /* its first */
    br_cuda_says(&cu, true);
    t_ok(one_token(on.lm, 2, logits[1], &st), &st);
    ck_assert_mem_eq(logits[0], logits[1],
                     (size_t)on.lm->n_vocab * sizeof **logits);
    ck_assert(br_cuda_may_capture(&like));
    t_ok(br_thread_start(&thread, "come", come, other, &st), &st);
    br_sleep_ns(200000000);
    ck_assert(!atomic_load(&other->came));
    br_cuda_captured(&like);
    br_thread_join(&thread);
    ck_assert(atomic_load(&other->came) && !br_cuda_may_capture(&like));
    br_cuda_close(&other->cu);
    br_cuda_close(&cu);
    br_cuda_close(&like);
    close_shape(&on);
    t_emulate_end();
}

typedef struct copier {
    br_cuda cu;
    uint64_t p;
} copier;

static void
copy_both_ways(void *arg)
{
    copier *c = arg;
    uint32_t there = 7, back = 0;
    br_status st = {0};

    t_ok(BR_CU(&c->cu, &st, cuCtxSetCurrent(c->cu.ctx)), &st);
    t_ok(BR_CU(&c->cu, &st, cuMemcpyHtoD(c->p, &there, sizeof there)), &st);
    t_ok(BR_CU(&c->cu, &st, cuMemcpyDtoH(&back, c->p, sizeof back)), &st);
    ck_assert_uint_eq(back, there);
}

/* Copies of another thread's model, which wait for every stream that is not apart, go
 * on beside a capture, and it beside them. */
TEST_WITHIN(cuda_captures_beside_copies, 60)
{
    copier *other = t_keep(calloc(1, sizeof *other));
    void *graph = NULL, *stream;
    br_thread thread;
    br_status st = {0};
    br_cuda cu;

    t_emulate_cuda();
    t_ok(br_cuda_open(&cu, 0, &st), &st);
    t_ok(br_cuda_open(&other->cu, 0, &st), &st);
    t_ok(br_cuda_alloc(&other->cu, &other->p, 4, &st), &st);
    stream = cu.stream;
    t_ok(br_cuda_record(&cu, NULL, &st), &st);
    t_ok(br_thread_start(&thread, "copies", copy_both_ways, other, &st), &st);
    br_thread_join(&thread);
    t_ok(br_cuda_recorded(&cu, BR_OK, &graph, &st), &st);
    ck_assert(graph && cu.stream == stream);
    cu.cuGraphDestroy(graph);
    t_ok(br_cuda_record(&cu, NULL, &st), &st); /* a launch of it fails */
    ck_assert_int_eq(br_cuda_recorded(&cu, BR_E_IO, &graph, &st), BR_E_IO);
    ck_assert(!graph && cu.stream == stream);
    br_cuda_free(&other->cu, other->p);
    br_cuda_close(&other->cu);
    br_cuda_close(&cu);
    t_emulate_end();
}

/* What would become a node of a graph and is none of the emulated device's: an error of
 * that call and of the capture, not something that is done at once. */
TEST_WITHIN(cuda_captures_take_launches_alone, 60)
{
    enum { UNSUPPORTED = 900 };
    void *graph, *exec, *event, *s;
    uint32_t host = 7;
    br_status st = {0};
    uint64_t p;
    br_cuda cu;

    t_emulate_cuda();
    t_ok(br_cuda_open(&cu, 0, &st), &st);
    t_ok(br_cuda_alloc(&cu, &p, sizeof host, &st), &st);
    t_ok(br_cuda_put(&cu, p, &host, sizeof host, &st), &st);
    t_ok(BR_CU(&cu, &st, cuEventCreate(&event, 0)), &st);
    t_ok(br_cuda_record(&cu, NULL, &st), &st);
    t_ok(br_cuda_recorded(&cu, BR_OK, &graph, &st), &st);
    t_ok(br_cuda_graph(&cu, &exec, graph, &st), &st);
    s = cu.recorder;
    for (int i = 0; i < 5; i++) {
        t_ok(br_cuda_record(&cu, NULL, &st), &st);
        host = 8;
        const int rc = i == 0   ? cu.cuMemcpyHtoDAsync(p, &host, 4, s)
                       : i == 1 ? cu.cuMemcpyDtoHAsync(&host, p, 4, s)
                       : i == 2 ? cu.cuMemsetD32Async(p, 8, 1, s)
                       : i == 3 ? cu.cuGraphLaunch(exec, s)
                                : cu.cuEventRecord(event, s);
        ck_assert_int_eq(rc, UNSUPPORTED);
        ck_assert_uint_eq(host, 8);
        ck_assert_int_eq(br_cuda_recorded(&cu, BR_OK, &graph, NULL), BR_E_IO);
    }
    t_ok(br_cuda_get(&cu, &host, p, sizeof host, &st), &st);
    ck_assert_uint_eq(host, 7);
    cu.cuEventDestroy(event);
    cu.cuGraphExecDestroy(exec);
    br_cuda_free(&cu, p);
    br_cuda_close(&cu);
    t_emulate_end();
}

static int
ends_while_stopped(void *stream)
{
    static int asked;

    (void)stream;
    if (asked++)
        return 0;
    sleep(2);
    return BR_CU_NOT_READY;
}

/* A process that was stopped for longer than a step may take asks the driver again. */
TEST(cuda_a_stopped_process_is_no_timeout)
{
    br_cuda cu = {.timeout_s = 1, .cuStreamQuery = ends_while_stopped};
    br_status st = {0};

    t_ok(br_cuda_wait(&cu, &st), &st);
    ck_assert(!cu.hung);
}

/* A kernel that gave up waiting says so in the host's memory and traps: what the
 * driver then says is TIMEOUT, not a name of its own. */
TEST_WITHIN(cuda_a_kernel_that_waits_in_vain_is_a_timeout, 60)
{
    const char *file = t_printf("%s/lost", t_tmpdir());
    br_status st = {0};
    br_cu_decode d = {0};
    br_cu_shape s;
    br_cuda cu;

    t_emulate_cuda();
    ck_assert_int_eq(setenv("BR_EMU_LOST", file, 1), 0);
    shaped on = open_shape_file("shape:llama-512:BF16");
    t_ok(br_cu_shape_of(&s, on.m, &st), &st);
    t_ok(br_cuda_open(&cu, 0, &st), &st);
    t_ok(br_cu_decode_new(&d, &cu, &s, 256, NULL, &st), &st);
    t_write(file, "719", 3); /* launch failed */
    ck_assert_int_eq(br_cu_decode_run(&d, BR_CU_MEGA, 1, &st), BR_E_IO);
    d.host->hung = 1;
    st = (br_status){0};
    ck_assert_int_eq(br_cu_decode_wait(&d, &st), BR_E_TIMEOUT);
    ck_assert_msg(strstr(st.msg, "has to be loaded anew"), "%s", st.msg);
    br_cu_decode_free(&d);
    br_cuda_close(&cu);
    close_shape(&on);
    unsetenv("BR_EMU_LOST");
    t_emulate_end();
}

static int
refuses(void *graph, void *stream)
{
    (void)graph;
    (void)stream;
    return BR_CU_OOM;
}

/* Two tokens drawn after token 5; the second launch is refused at first. */
static void
draw_two(br_cuda *cu, const br_model *m, bool refused, uint32_t *out)
{
    const br_cu_pick how = {.seed = 3, .temperature = 1, .top_p = 1};
    br_cu_decode d = {0};
    br_status st = {0};
    br_cu_shape s;

    t_ok(br_cu_shape_of(&s, m, &st), &st);
    t_ok(br_cu_decode_new(&d, cu, &s, 256, NULL, &st), &st);
    t_ok(br_cu_load(&d, m, NULL, NULL, &st), &st);
    br_cu_decode_seek(&d, 5, 0);
    for (int i = 0; i < 2; i++) {
        if (refused && i == 1) {
            int (*launch)(void *graph, void *stream) = cu->cuGraphLaunch;

            cu->cuGraphLaunch = refuses;
            ck_assert_int_eq(br_cu_decode_run_pick(&d, &how, &st), BR_E_OOM);
            cu->cuGraphLaunch = launch;
            st = (br_status){0};
        }
        t_ok(br_cu_decode_run_pick(&d, &how, &st), &st);
        t_ok(br_cu_decode_picked(&d, &out[i], &st), &st);
    }
    ck_assert_uint_eq(d.pos, 2);
    br_cu_decode_free(&d);
}

/* What the driver did not take counts nothing: the same call is the same step and the
 * same draw later. */
TEST_WITHIN(cuda_a_launch_that_is_refused_may_be_tried_again, 60)
{
    uint32_t want[2], got[2];
    br_status st = {0};
    br_cuda cu;

    t_emulate_cuda();
    shaped on = open_shape_file("shape:llama-512:BF16");
    t_ok(br_cuda_open(&cu, 0, &st), &st);
    draw_two(&cu, on.m, false, want);
    draw_two(&cu, on.m, true, got);
    ck_assert(got[0] == want[0] && got[1] == want[1]);
    br_cuda_close(&cu);
    close_shape(&on);
    t_emulate_end();
}
