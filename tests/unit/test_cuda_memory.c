/* test_cuda_memory.c - the CUDA tier's memory, on the emulated device of tests/emu:
 * which experts stay in the host's, what does not fit, what a row takes.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "like_kit.h"
#include "logits_kit.h"
#include "shape_kit.h"

#include "model/gguf_write.h"
#include "run/shape.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "t.h"

static br_code
open_with(const br_model *m, uint64_t memory, br_status *st)
{
    br_oracle_config cc = {
        .gpu = {.tier = "cuda"}, .kv = BR_Q_F16, .gpu_memory = memory};
    br_oracle o;
    br_code code = br_oracle_open(&o, m, &cc, st);

    if (code == BR_OK)
        br_oracle_close(&o);
    return code;
}

/* Logits of a few tokens by lists and by pairs, with so much memory; what it took. */
static br_cun_costs
costs_with(const br_model *m, uint64_t memory, float *logits)
{
    br_oracle_config cc = {
        .gpu = {.tier = "cuda"}, .gpu_memory = memory, .kv = BR_Q_F16};
    const int32_t tokens[] = {3, 1, 7, 9, 2, 5, 11, 100, 4};
    const size_t vocab = (size_t)m->hp.n_vocab;
    br_status st = {0};
    br_cun_costs c;
    br_oracle o;

    t_ok(br_oracle_open(&o, m, &cc, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, tokens, 8, 0, logits, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 8, tokens + 8, 1, 0, logits + 8 * vocab, &st),
         &st);
    c = br_cun_costs_of(o.cun);
    br_oracle_close(&o);
    return c;
}

/* The least memory that the model runs with. */
static uint64_t
least_of(const br_model *m)
{
    uint64_t low = 0, high = UINT64_C(1) << 30;
    br_status st = {0};

    while (high - low > 1) {
        const uint64_t mid = low + (high - low) / 2;
        const br_code code = open_with(m, mid, &st);

        ck_assert_msg(code == BR_OK || code == BR_E_OOM, "%s", st.msg);
        *(code == BR_OK ? &high : &low) = mid;
    }
    return high;
}

/* Experts that do not fit stay in the host's memory, op by op: the same bits, and
 * so many bytes less of the device's. */
static void
experts_in_host(const char *spec)
{
    shaped on = open_shape_file(spec);
    const size_t n = 9 * (size_t)on.m->hp.n_vocab;
    float *near = t_keep(calloc(n, sizeof *near));
    float *far = t_keep(calloc(n, sizeof *far));
    const br_cun_costs all = costs_with(on.m, 0, near);
    ck_assert_uint_eq(all.host, 0);
    ck_assert_uint_eq(all.host_ops, 0);
    ck_assert_uint_gt(all.experts, 0);
    const br_cun_costs none = costs_with(on.m, least_of(on.m), far);
    ck_assert_mem_eq(near, far, n * sizeof *near);
    ck_assert_uint_eq(all.weight_allocations, 2); /* one a class */
    ck_assert_uint_eq(none.weight_allocations, 1);
    ck_assert_uint_eq(none.experts, 0);
    ck_assert_uint_eq(none.host, all.experts);
    ck_assert_uint_eq(none.weights, all.weights - all.experts);
    ck_assert_uint_eq(none.rest, all.rest);
    ck_assert_uint_eq(none.host_ops, 2);
    /* room for one op's, and a byte less than for both */
    const uint64_t lots = UINT64_C(1) << 40;
    const br_cun_costs with = costs_with(on.m, lots, far);
    ck_assert_uint_eq(with.host_ops, 0);
    const br_cun_costs some =
        costs_with(on.m, lots - with.left + all.experts - 1, far);
    ck_assert_mem_eq(near, far, n * sizeof *near);
    ck_assert_uint_eq(some.left, all.experts - 1);
    ck_assert_uint_eq(some.host_ops, 1);
    ck_assert_uint_eq(some.host + some.experts, all.experts);
    ck_assert_uint_gt(some.experts, 0);
    ck_assert_uint_eq(
        costs_with(on.m, lots - with.left + all.experts, far).host_ops, 0);
    close_shape(&on);
}

TEST_WITHIN(cuda_experts_that_do_not_fit_stay_in_the_hosts_memory, 240)
{
    t_emulate_cuda();
    experts_in_host("shape:qwen3moe-256:MXFP4");
    experts_in_host("shape:qwen3moe-256:Q4_K_M");
    experts_in_host("shape:qwen3moe-128:BF16");
    t_emulate_end();
}

typedef struct far_model {
    br_model *m;
    uint64_t memory;
} far_model;

static br_code
open_far(void *ctx, br_status *st)
{
    const far_model *f = ctx;

    return open_with(f->m, f->memory, st);
}

/* Each call for memory of the device, or of the host that the device reads, fails
 * once: an error of memory, and nothing is left (the emulated device looks). */
TEST_WITHIN(cuda_experts_give_back_what_they_had_of_too_little_memory, 240)
{
    br_oracle_config cc = {.gpu = {.tier = "cuda"}, .kv = BR_Q_F16};
    br_code code = BR_E_OOM;
    br_status st = {0};
    br_oracle o;
    int n = 0;

    t_emulate_cuda();
    shaped on = open_shape_file("shape:qwen3moe-128:MXFP4");
    far_model far = {on.m, least_of(on.m)};
    for (int none = 0; none < 2; none++) {
        cc.gpu_memory = none ? far.memory : 0; /* of experts on the device */
        for (n = 1; n < 1000; n++) {
            ck_assert_int_eq(setenv("BR_EMU_NO_MEMORY", t_printf("%d", n), 1),
                             0);
            st = (br_status){0};
            code = br_oracle_open(&o, on.m, &cc, &st);
            if (code == BR_OK)
                break;
            ck_assert_msg(code == BR_E_OOM && st.msg[0], "call %d: %s: %s", n,
                          br_code_name(code), st.msg);
        }
        t_ok(code, &st);
        br_oracle_close(&o);
        ck_assert_int_gt(n, 20);
    }
    unsetenv("BR_EMU_NO_MEMORY");
    t_each_oom(open_far, &far);
    close_shape(&on);
    t_emulate_end();
}

/* Of layers as wide as k says. */
static br_cun_costs
costs_like(const br_gguf *g, const like *k)
{
    br_oracle_config cc = {.gpu = {.tier = "cuda"}, .kv = BR_Q_F16};
    br_status st = {0};
    br_cun_costs c;
    br_oracle o;
    br_model *m;
    size_t n;
    uint8_t *p = model_like(g, k, &n);

    if (!p)
        t_skip("no room for so many addresses");
    t_ok(br_model_open_mem(&m, p, n, &st), &st);
    ck_assert_int_eq(m->hp.layer[0].n_ff, k->narrows ? k->ff : k->ff / 4);
    t_ok(br_oracle_open(&o, m, &cc, &st), &st);
    c = br_cun_costs_of(o.cun);
    br_oracle_close(&o);
    br_model_close(m);
    munmap(p, n);
    return c;
}

/* A GLU's rows have memory once, as it was counted, where later layers are wider. Values
 * may lie otherwise: by less than even the narrowest's rows take. */
TEST_WITHIN(cuda_counts_the_widest_glu_once, 60)
{
    enum { WIDE = 1024, LAYERS = 4, ROWS = 256 };
    const like grows = {"llama", LAYERS, 0, WIDE, false};
    const like narrows = {"llama", LAYERS, 0, WIDE, true};

    t_emulate_cuda();
    shaped on = open_shape_file("shape:llama-512:BF16");
    ck_assert_uint_lt(costs_like(on.m->gguf, &grows).rest,
                      costs_like(on.m->gguf, &narrows).rest +
                          WIDE / LAYERS * 2 * ROWS);
    close_shape(&on);
    t_emulate_end();
}

/* What a row of a step takes in scratch, and so a slot that makes tokens: 256 KB at most
 * of all shapes but 70B's (three rows of 28,672 numbers about its GLU). */
TEST_WITHIN(cuda_rows_take_little_scratch, 120)
{
    enum { MOST = 256 << 10, ROWS = 3 };
    t_emulate_cuda();
    for (size_t i = 0; br_shape_name(i); i++) {
        br_cun_costs c = {0};
        br_cun_config cc = {.n_slots = 1,
                            .n_ctx = 4096,
                            .n_pages = {1, 1, 1, 1},
                            .max_rows = ROWS,
                            .max_want = 1,
                            .memory = 1,
                            .plan = &c};
        br_status st = {0};
        br_cun *x;
        br_model *m;
        br_ir *g;
        size_t n;

        shaped on =
            open_shape_file(t_printf("shape:%s:Q4_0", br_shape_name(i)));
        uint8_t *p = model_like(
            on.m->gguf, &(like){.arch = on.m->arch->name, .layers = 4}, &n);
        if (!p)
            t_skip("no room for so many addresses");
        t_ok(br_model_open_mem(&m, p, n, &st), &st);
        t_ok(br_ir_of_model(&g, m, BR_IR_PREFILL, cc.n_ctx, &st), &st);
        ck_assert_int_eq(br_cun_open(&x, m, g, &cc, &st), BR_E_OOM);
        ck_assert_uint_gt(c.row, 0);
        ck_assert_msg(c.row <= (strstr(br_shape_name(i), "70b") ? 2 : 1) * MOST,
                      "%s: %zu bytes", br_shape_name(i), (size_t)c.row);
        br_ir_free(g);
        br_model_close(m);
        munmap(p, n);
        close_shape(&on);
    }
    t_emulate_end();
}

/* A byte less than what is not experts: said before a matrix is sent, with all that
 * counts; nothing is left of it. So of a model without experts, by either way. */
TEST_WITHIN(cuda_says_what_does_not_fit, 120)
{
    static const char *const specs[] = {"shape:qwen3moe-128:MXFP4",
                                        "shape:llama-512:BF16"};
    br_status st = {0};

    t_emulate_cuda();
    for (size_t i = 0; i < BR_COUNT(specs); i++) {
        br_lm_config c = {.tier = "cuda", .n_ctx = 64, .gpu_memory = 1 << 20};
        br_lm_model *lm;

        shaped on = open_shape_file(specs[i]);
        const uint64_t least = least_of(on.m);
        st = (br_status){0};
        ck_assert_int_eq(open_with(on.m, least - 1, &st), BR_E_OOM);
        ck_assert_msg(
            strstr(st.msg, " MB are needed, ") &&
                strstr(st.msg, t_printf("%.1f MB are given (--gpu-memory)",
                                        (double)(least - 1) / (1 << 20))),
            "%s", st.msg);
        ck_assert((strstr(st.msg, "0.9 MB of experts can stay in the host's") !=
                   NULL) == (i == 0));
        /* before anything is taken: the first call for memory would fail */
        ck_assert_int_eq(setenv("BR_EMU_NO_MEMORY", "1", 1), 0);
        st = (br_status){0};
        ck_assert_int_eq(open_with(on.m, least - 1, &st), BR_E_OOM);
        ck_assert_ptr_nonnull(strstr(st.msg, " MB are needed, "));
        st = (br_status){0};
        ck_assert_int_eq(br_lm_model_open(&lm, on.m, &c, &st), BR_E_OOM);
        ck_assert_msg(strstr(st.msg,
                             " MB are needed, 1.0 MB are given (--gpu-memory): "
                             "weights "),
                      "%s", st.msg);
        /* so of a device that has no more */
        ck_assert_int_eq(setenv("BR_EMU_MEMORY", t_printf("%d", 1 << 20), 1),
                         0);
        c.gpu_memory = 0;
        st = (br_status){0};
        ck_assert_int_eq(br_lm_model_open(&lm, on.m, &c, &st), BR_E_OOM);
        ck_assert_msg(strstr(st.msg,
                             " MB are needed, 1.0 MB are free on the device: "
                             "weights "),
                      "%s", st.msg);
        st = (br_status){0};
        ck_assert_int_eq(open_with(on.m, 0, &st), BR_E_OOM);
        ck_assert_ptr_nonnull(strstr(st.msg, " MB are free on the device: "));
        unsetenv("BR_EMU_MEMORY");
        unsetenv("BR_EMU_NO_MEMORY");
        st = (br_status){0};
        close_shape(&on);
    }
    t_emulate_end();
}

/* More rows than a launch has tiles for are named, before anything is allocated. */
TEST_WITHIN(cuda_names_matrices_of_too_many_rows, 60)
{
    br_model *wide;
    br_status st = {0};
    uint8_t *p;
    size_t n;

    t_emulate_cuda();
    shaped on = open_shape_file("shape:qwen3moe-128:MXFP4");
    p = model_like(on.m->gguf,
                   &(like){"qwen3moe", 1, 65535 * 128 + 64, 0, false}, &n);
    if (!p)
        t_skip("no room for so many addresses");
    t_ok(br_model_open_mem(&wide, p, n, &st), &st);
    ck_assert_int_eq(open_with(wide, 0, &st), BR_E_LIMIT);
    ck_assert_str_eq(st.msg, "blk.0.ffn_gate_exps.weight: 8388544 rows; tier "
                             "cuda takes up to 8388480 of its format");
    br_model_close(wide);
    munmap(p, n);
    close_shape(&on);
    t_emulate_end();
}

/* What is drawn has its memory within the limit, too; nothing goes beyond it. */
TEST_WITHIN(cuda_stays_within_the_memory_that_is_given, 120)
{
    br_status st = {0};

    t_emulate_cuda();
    shaped on = open_shape_file("shape:qwen3moe-128:Q4_0");
    br_oracle_config cc = {
        .gpu = {.tier = "cuda"}, .kv = BR_Q_F16, .gpu_memory = least_of(on.m)};
    br_oracle o;
    t_ok(br_oracle_open(&o, on.m, &cc, &st), &st);
    const int32_t slot = 0, position = 0, first = 3;
    br_step s = {1, &slot, &position, &first, NULL, NULL, false, NULL};
    const br_cun_pick p = {.seed = 1, .temperature = 1, .top_p = 1};
    int32_t got = -1;
    t_ok(br_oracle_step(&o, &s, BR_IR_DECODE, NULL, &st), &st);
    t_ok(br_cun_draw(o.cun, &p, 1, &got, &st), &st);
    ck_assert(got >= 0 && got < on.m->hp.n_vocab);
    ck_assert_uint_le(br_cun_costs_of(o.cun).all, cc.gpu_memory);
    br_oracle_close(&o);
    close_shape(&on);
    t_emulate_end();
}

/* Draws that find no memory, for one thing after another, are errors of their steps; what
 * they took is not taken again. */
TEST_WITHIN(cuda_draws_that_find_no_memory_may_be_tried_again, 120)
{
    static const char *const fails[] = {"1", "3", "5", "7"}; /* calls */
    const br_oracle_config cc = {.gpu = {.tier = "cuda"}, .kv = BR_Q_F16};
    const br_cun_pick p = {.seed = 1, .temperature = 1, .top_p = 1};
    const int32_t slot = 0, position = 0, first = 3;
    br_status st = {0};
    int32_t got[2] = {-1, -2};
    uint64_t all[2];
    br_oracle o;

    t_emulate_cuda();
    shaped on = open_shape_file("shape:toy:Q4_0");
    for (size_t with = 0; with < 2; with++) {
        br_step s = {1, &slot, &position, &first, NULL, NULL, false, NULL};

        t_ok(br_oracle_open(&o, on.m, &cc, &st), &st);
        t_ok(br_oracle_step(&o, &s, BR_IR_DECODE, NULL, &st), &st);
        for (size_t i = 0; with && i < BR_COUNT(fails); i++) {
            st = (br_status){0};
            ck_assert_int_eq(setenv("BR_EMU_NO_MEMORY", fails[i], 1), 0);
            ck_assert_int_eq(br_cun_draw(o.cun, &p, 1, &got[1], &st), BR_E_OOM);
        }
        unsetenv("BR_EMU_NO_MEMORY");
        st = (br_status){0};
        t_ok(br_cun_draw(o.cun, &p, 1, &got[with], &st), &st);
        all[with] = br_cun_costs_of(o.cun).all;
        br_oracle_close(&o);
    }
    ck_assert_int_eq(got[0], got[1]);
    ck_assert_uint_eq(all[0], all[1]);
    close_shape(&on);
    t_emulate_end();
}

/* Experts stay packed: bits a weight on the device. */
TEST_WITHIN(cuda_experts_take_no_more_than_packed, 60)
{
    static const struct {
        const char *type;
        double bits;
    } form[] = {{"MXFP4", 4.5}, {"Q4_0", 5}, {"Q8_0", 9}, {"Q6_K", 9}};

    t_emulate_cuda();
    for (size_t i = 0; i < BR_COUNT(form); i++) {
        /* of eight; 192 rows fill two tiles of 128 but for 64 */
        const double weights = 8 * (2 * 256. * 256 + 256. * 192);
        float *logits;

        shaped on =
            open_shape_file(t_printf("shape:qwen3moe-256:%s", form[i].type));
        logits = t_keep(calloc(9 * (size_t)on.m->hp.n_vocab, sizeof *logits));
        const br_cun_costs c = costs_with(on.m, 0, logits);
        ck_assert_uint_eq(c.experts, (uint64_t)(weights * form[i].bits / 8));
        close_shape(&on);
    }
    t_emulate_end();
}

/* Where memory went, and that packed weights stay packed: Q4_0 has 4.5 bits in a
 * file and 5 on the device, with a factor a row and rows that fill no tile. */
TEST_WITHIN(cuda_tells_what_a_model_takes, 60)
{
    br_oracle_config cc = {.gpu = {.tier = "cuda"}, .kv = BR_Q_F16};
    const int32_t tokens[] = {3, 1, 7};
    br_status st = {0};
    br_oracle o;

    t_emulate_cuda();
    shaped on = open_shape_file("shape:llama-512:Q4_0");
    t_ok(br_oracle_open(&o, on.m, &cc, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, tokens, 3, 1, NULL, &st), &st);
    const br_cun_costs c = br_cun_costs_of(o.cun);
    ck_assert_uint_eq(c.steps, 3);
    ck_assert_uint_gt(c.submit_ns, 0);
    ck_assert_uint_gt(c.load_ns, 0);
    ck_assert_uint_gt(c.load_bytes, on.doc.n / 2);
    ck_assert_uint_le(c.load_bytes, on.doc.n);
    ck_assert_uint_gt(c.weights, c.load_bytes);
    ck_assert_uint_lt(c.weights, c.load_bytes * 5 / 4);
    ck_assert_uint_eq(c.weight_allocations, 1);
    ck_assert_uint_gt(c.pages, 0);
    ck_assert_uint_eq(c.states, 0);
    ck_assert_uint_lt(c.rest, UINT64_C(1) << 32); /* nothing counted twice */
    /* steps of one row: one graph, a MB of that device */
    ck_assert_uint_eq(c.graphs, 1 << 20);
    br_oracle_close(&o);
    close_shape(&on);
    t_emulate_end();
}

/* A server that is told to end while it loads does not finish that first. */
TEST_WITHIN(a_model_that_is_opened_can_be_stopped, 60)
{
    static const char *const tiers[] = {"cpu", "cuda"};

    t_emulate_cuda();
    for (size_t i = 0; i < BR_COUNT(tiers); i++) {
        atomic_bool stop = true;
        br_lm_config c = {
            .tier = tiers[i], .n_ctx = 64, .n_slots = 2, .stop = &stop};
        shaped on = open_shape_file("shape:toy:Q8_0");
        br_status st = {0};

        ck_assert_int_eq(br_lm_model_open(&on.r, on.m, &c, &st),
                         BR_E_CANCELLED);
        atomic_store(&stop, false);
        st = (br_status){0};
        t_ok(br_lm_model_open(&on.r, on.m, &c, &st), &st);
        close_shape(&on);
    }
    t_emulate_end();
}
