/* test_bench.c - brass bench, as a program, and models of random weights.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/cli.h"
#include "ir/ir.h"
#include "model/model.h"
#include "run/shape.h"

#include "t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static double
number(const br_json *doc, const char *key)
{
    const br_json *v = br_json_get(doc, key);

    ck_assert_msg(v != NULL, "no '%s'", key);
    return v->kind == BR_J_INT ? (double)v->i : v->f;
}

/* What depth costs, of an answer that is not at the least depth, 0. */
static void
check_than(const br_json *than, bool is)
{
    int pairs;

    ck_assert_int_eq(than != NULL, is);
    if (!is)
        return;
    pairs = (int)number(than, "pairs");
    ck_assert_int_eq((int)number(than, "depth"), 0);
    ck_assert_int_ge(pairs, 0);
    ck_assert_int_le(pairs, 2);
    ck_assert_int_eq(br_json_get(than, "times") != NULL, pairs > 0);
    if (pairs > 0)
        ck_assert(number(than, "times") > 0);
    /* toy: 3 layers, 5 tokens more, of a few hundred kilobytes */
    ck_assert(number(than, "bytes") > 1);
    ck_assert(number(than, "bytes") < 1.2);
}

static void
check_line(const char *line, size_t n, const char *test, int batch, int depth)
{
    static const char *const positive[] = {"tok_s",     "min",    "max",
                                           "ms_step",   "gb_s",   "pct_floor",
                                           "read_gb_s", "threads"};
    br_status st = {0};
    br_arena a;
    const br_json *how;
    br_json *doc;

    br_arena_init(&a, 0);
    t_ok(br_json_parse(&doc, &a, line, n, 0, &st), &st);
    ck_assert_str_eq(br_json_get(doc, "test")->s, test);
    ck_assert_int_eq((int)number(doc, "batch"), batch);
    ck_assert_int_eq((int)number(doc, "depth"), depth);
    ck_assert_str_eq(br_json_get(doc, "tier")->s, "cpu");
    for (size_t i = 0; i < BR_COUNT(positive); i++)
        ck_assert_msg(number(doc, positive[i]) > 0, "%s", positive[i]);
    ck_assert(number(doc, "min") <= number(doc, "tok_s"));
    ck_assert(number(doc, "tok_s") <= number(doc, "max"));
    ck_assert(number(doc, "pct_floor") <= 111);
    ck_assert_int_eq(br_json_get(doc, "pct_reads_beside") != NULL,
                     test[0] == 't');
    if (test[0] == 't')
        ck_assert(number(doc, "pct_reads_beside") > 0);
    check_than(br_json_get(doc, "than"), test[0] == 't' && depth > 0);
    ck_assert(br_json_get(doc, "correct")->kind == BR_J_BOOL);
    ck_assert(br_json_get(doc, "correct")->b);
    how = br_json_get(doc, "execution");
    ck_assert_str_eq(br_json_get(how, "mode")->s, "packets");
    ck_assert(number(how, "ops_on_tier") > 10);
    ck_assert_int_eq((int)number(how, "ops_elsewhere"), 0);
    br_arena_fini(&a);
}

TEST_WITHIN(bench_prints_a_line_for_each_test, 120)
{
    static const struct {
        const char *test;
        int batch, depth;
    } want[] = {{"pp8", 1, 0}, {"tg4", 1, 0}, {"pp8", 1, 5}, {"tg4", 1, 5},
                {"pp8", 3, 0}, {"tg4", 3, 0}, {"pp8", 3, 5}, {"tg4", 3, 5}};
    const char *at;
    t_proc r;

    t_run(&r, "bench", "shape:toy:Q8_0:3", "-p", "8", "-n", "4", "-b", "1,3",
          "-d", "0,5", "-r", "2", "-t", "2", "--json");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    at = r.out;
    for (size_t i = 0; i < BR_COUNT(want); i++) {
        size_t n = strcspn(at, "\n");

        check_line(at, n, want[i].test, want[i].batch, want[i].depth);
        at += n + 1;
    }
    ck_assert_str_eq(at, "");
    t_run(&r, "bench", t_repo("tests/data/logits/mamba2.gguf"), "-p", "0", "-n",
          "3", "-d", "2");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_ptr_nonnull(strstr(r.out, "\ntg3  "));
    ck_assert_ptr_null(strstr(r.out, "in turn"));
}

/* States that are no keys are those of the depth, of both. */
TEST_WITHIN(bench_compares_depths_in_turn, 120)
{
    t_proc r;
    const char *at;
    unsigned pairs, all;

    for (int tries = 0;; tries++) {
        t_run(&r, "bench", t_repo("tests/data/logits/mamba2.gguf"), "-p", "0",
              "-n", "3", "-d", "40,2", "-b", "2", "-r", "40", "-t", "2");
        ck_assert_msg(r.exit == 0, "%s", r.err);
        at = strstr(r.out, "        in turn with depth 2: ");
        if (at || tries == 5)
            break;
    }
    ck_assert_msg(at != NULL, "%s", r.out);
    at = strchr(at, '(');
    ck_assert_int_eq(sscanf(at, "(%u of %u pairs)", &pairs, &all), 2);
    ck_assert_uint_ge(pairs, 1);
    ck_assert_uint_le(pairs, all);
    ck_assert_uint_eq(all, 40);
    ck_assert_ptr_null(strstr(at, "in turn"));
}

/* Who mistypes a shape or a format sees those that there are. */
TEST(bench_lists_shapes_and_formats)
{
    t_proc r;

    t_run(&r, "bench", "shape:tyo:Q8_0");
    ck_assert_int_eq(r.exit, 2);
    ck_assert_ptr_nonnull(
        strstr(r.err, "shape 'tyo' is not one of: toy smollm2-135m "));
    t_run(&r, "bench", "shape:toy:Q9");
    ck_assert_int_eq(r.exit, 2);
    ck_assert_msg(strstr(r.err, "format 'Q9' is not one of: F32 F16 ") != NULL,
                  "%s", r.err);
    ck_assert_ptr_nonnull(strstr(r.err, " Q4_K_M "));
    ck_assert_ptr_nonnull(strstr(r.err, " F8_E4M3 "));
}

/* On the emulated device, with so much memory. */
static int
bench_with(t_proc *r, const char *memory)
{
    t_run_emulated(r,
                   (const char *[]){"bench", "shape:qwen3moe-128:Q4_0",
                                    "--tier", "cuda", "--gpu-memory", memory,
                                    "-p", "0", "-n", "2", "-r", "1", "--json",
                                    NULL},
                   NULL, 0);
    return r->exit;
}

/* Where a CUDA device's memory goes, as one document: experts that do not fit are the
 * host's, by op. */
TEST_WITHIN(bench_tells_where_a_devices_memory_goes, 120)
{
    const char *const keys[] = {"weights", "weight_allocations",
                                "experts", "for_experts",
                                "host",    "host_ops",
                                "pages",   "states",
                                "rest",    "row"};
    br_status st = {0};
    br_arena a;
    br_json *doc;
    const br_json *m;
    t_proc r;

    ck_assert_int_ne(bench_with(&r, "1"), 0);
    const char *need = strstr(r.err, " MB are needed, 0.0 MB are given");
    ck_assert_msg(need && strstr(r.err, "; 2.0 MB of experts can stay"), "%s",
                  r.err);
    while (need[-1] != ' ')
        need--;
    /* beside what is needed less than any op's experts */
    (void)bench_with(&r,
                     t_printf("%.0f", (strtod(need, NULL) + 0.1) * (1 << 20)));
    ck_assert_msg(r.exit == 0, "%s", r.err);
    br_arena_init(&a, 0);
    t_ok(br_json_parse(&doc, &a, r.out, strcspn(r.out, "\n"), 0, &st), &st);
    m = br_json_get(br_json_get(doc, "execution"), "memory");
    ck_assert_ptr_nonnull(m);
    for (size_t i = 0; i < BR_COUNT(keys); i++) {
        ck_assert_msg(br_json_get(m, keys[i]) != NULL, "%s", keys[i]);
        ck_assert_int_eq(br_json_get(m, keys[i])->kind, BR_J_INT);
    }
    ck_assert_int_eq(br_json_get(m, "experts")->i, 0);
    ck_assert_int_eq(br_json_get(m, "host_ops")->i, 4); /* of two layers */
    /* 40 experts of gate, up (64 rows fill half a tile) and down, 5 bits */
    ck_assert_int_eq(br_json_get(m, "host")->i,
                     2 * 40 * (2 * 128 * 128 + 128 * 64) * 5 / 8);
    br_arena_fini(&a);
}

/* A command on the emulated device, whose attention never ends. */
static void
hangs(const char *const *args)
{
    const char *hang = t_printf("%s/hang", t_tmpdir());
    t_proc r;

    setenv("BR_EMU_HANG", hang, 1);
    t_write(hang, "br_nd_flash", 11);
    t_run_emulated(&r, args, NULL, 0);
    ck_assert_int_ne(r.exit, 0);
    ck_assert_msg(strstr(r.err, "has not ended in 2 s (--gpu-timeout): this "
                                "process has to be started anew") != NULL,
                  "%s: %s", args[0], r.err);
}

/* The time that is given is that after which a hang is told, by each command. */
TEST_WITHIN(cuda_a_hang_is_told_after_the_time_that_is_given, 120)
{
    const char *model = t_repo("models/demo.gguf");
    const char *const all[][14] = {
        {"bench", "shape:llama-256:BF16", "--tier", "cuda", "--gpu-timeout",
         "2", "-p", "0", "-n", "2", "-r", "1", NULL},
        {"run", model, "A mouse", "--tier", "cuda", "--gpu-timeout", "2", NULL},
        {"logits", model, "--tokens", "3,1", "-o", "/dev/null", "--tier",
         "cuda", "--gpu-timeout", "2", NULL},
        {"validate", model, "-p", "A mouse", "--tiers", "ref,cuda",
         "--gpu-timeout", "2", NULL},
    };

    for (size_t i = 0; i < BR_COUNT(all); i++)
        hangs(all[i]);
}

TEST(bench_refuses_what_no_machine_can)
{
    br_status st = {0};

    t_ok(br_bench_believe(1, 1, &st), &st);
    t_ok(br_bench_believe(1, 1.09, &st), &st);
    ck_assert_int_eq(br_bench_believe(1, 1.11, &st), BR_E_REJECTED);
    ck_assert_ptr_nonnull(strstr(st.msg, "not believed"));
}

TEST(bench_refuses_in_one_line)
{
    t_proc r;

    t_run(&r, "bench", "shape:nobody:Q8_0");
    ck_assert_int_eq(r.exit, 2);
    ck_assert_ptr_nonnull(strstr(r.err, "'nobody' is not one of: toy "));
    t_run(&r, "bench", "shape:toy:Q9");
    ck_assert_int_eq(r.exit, 2);
    t_run(&r, "bench", "shape:toy");
    ck_assert_int_eq(r.exit, 2);
    t_run(&r, "bench", "shape:toy:Q8_0", "-b", "1,x");
    ck_assert_int_eq(r.exit, 2);
    ck_assert_ptr_nonnull(strstr(r.err, "-b: 'x' is not a number of 1 to 256"));
    t_run(&r, "bench", "shape:toy:Q8_0", "-p", "0", "-n", "0");
    ck_assert_int_eq(r.exit, 2);
    t_run(&r, "bench", "shape:toy:Q8_0", "--tier", "cuda");
    ck_assert_int_eq(r.exit, 5);
    t_run(&r, "bench", "no-such-file.gguf");
    ck_assert_int_eq(r.exit, 3);
}

/* Every shape, cut short, opens as a model that has a graph. */
TEST_WITHIN(shapes_are_models, 60)
{
    static const char *const formats[] = {"Q4_K_M", "Q8_0", "BF16", "Q4_0"};

    t_not_for_tsan(NULL);
    for (size_t i = 0; br_shape_name(i); i++) {
        const char *spec =
            t_printf("shape:%s:%s", br_shape_name(i), formats[i % 4]);
        br_status st = {0};
        br_str file = {0};
        br_model *m;
        br_ir *g;

        t_ok(br_shape_model(&file, spec, true, &st), &st);
        t_ok(br_model_open_mem(&m, file.at, file.n, &st), &st);
        t_ok(br_ir_of_model(&g, m, BR_IR_PREFILL, 64, &st), &st);
        ck_assert_int_eq(m->hp.n_layer, 1);
        br_ir_free(g);
        br_model_close(m);
        br_str_fini(&file);
    }
}

static br_code
make_once(void *arg, br_status *st)
{
    br_str file = {0};
    br_code code = br_shape_model(&file, arg, true, st);

    br_str_fini(&file);
    return code;
}

TEST_WITHIN(a_shape_survives_any_lack_of_memory, 60)
{
    char spec[] = "shape:toy:Q8_0";

    t_each_oom(make_once, spec);
}
