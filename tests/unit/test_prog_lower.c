/* test_prog_lower.c - brass prog lower and brass prog targets as commands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <string.h>

static const char *
tmp(const char *name)
{
    return t_printf("%s/%s", t_tmpdir(), name);
}

static const char *
tmp_with(const char *name, const char *text)
{
    t_write(tmp(name), text, strlen(text));
    return tmp(name);
}

static void
says(const t_proc *r, int code, const char *text)
{
    if (r->exit != code || !strstr(r->err, text))
        ck_abort_msg("exit %d, not %d: '%s' should say '%s'", r->exit, code,
                     r->err, text);
}

TEST(prog_lower_writes_to_standard_output_or_a_file)
{
    const char *file = tmp("p.json");
    t_proc a, b, c;
    size_t n;

    t_run(&a, "prog", "lower", "shape:toy:f32", "--target", "l4");
    ck_assert_int_eq(a.exit, 0);
    t_run(&b, "prog", "lower", "shape:toy:f32", "--target", "l4", "-o", file);
    ck_assert_int_eq(b.exit, 0);
    ck_assert_ptr_nonnull(strstr(b.out, "98 tasks"));
    ck_assert_str_eq(t_read(file, &n), a.out);
    t_run(&c, "prog", "lower", "shape:toy:f32", "--target", "l4", "-o", "-");
    ck_assert_str_eq(c.out, a.out);
}

TEST(prog_lower_json_prints_numbers_not_the_program)
{
    t_proc r;

    t_run(&r, "prog", "lower", "shape:toy:f32", "--style", "amk", "--json");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_str_eq(
        r.out,
        "{\"tasks\": 46, \"buffers\": 65, \"counters\": 41, \"pages\": 0, "
        "\"workers\": 0, \"fused_groups\": 0, \"resident_groups\": 0, "
        "\"split_attentions\": 0, \"on_chip_buffers\": 0, \"weight_bytes\": "
        "90752}\n");
}

TEST(prog_lower_of_a_graph_it_wrote_is_the_same_program)
{
    const char *graph = tmp("g.json");
    t_proc a, b;

    t_run(&a, "prog", "lower", "shape:qwen3-0.6b:f16", "--layers", "2",
          "--batch", "3", "--pos", "7", "--quant", "int8", "--group", "64",
          "--graph", "-o", graph);
    ck_assert_int_eq(a.exit, 0);
    t_run(&a, "prog", "lower", "shape:qwen3-0.6b:f16", "--layers", "2",
          "--batch", "3", "--pos", "7", "--quant", "int8", "--group", "64",
          "--target", "b200");
    t_run(&b, "prog", "lower", graph, "--target", "b200");
    ck_assert_int_eq(b.exit, 0);
    ck_assert_str_eq(a.out, b.out);
}

TEST(prog_lower_refuses_with_a_sentence)
{
    t_proc r;

    t_run(&r, "prog", "lower", "shape:llama-9");
    says(&r, 3, "shape 'llama-9': not known; there are toy, ");
    t_run(&r, "prog", "lower", "shape:toy:f8");
    says(&r, 2, "'f8' is not f32, f16 or bf16");
    t_run(&r, "prog", "lower", "shape:toy", "--target", "h300");
    says(&r, 3, "target 'h300': not known; there are rtx5090, ");
    t_run(&r, "prog", "lower", "shape:toy", "--pos", "32");
    says(&r, 3, "pos 32 is not in 0..31");
    t_run(&r, "prog", "lower", "shape:toy", "--batch", "0");
    says(&r, 2, "batch");
    t_run(&r, "prog", "lower", tmp("nothing.json"));
    says(&r, 3, "nothing.json");
    t_run(&r, "prog", "lower", tmp_with("m.gguf", "GGUF\3"));
    says(&r, 3, "the file ends after");
    t_run(&r, "prog", "lower", tmp_with("bad.json", "{\"nodes\": [}"));
    says(&r, 3, "bad.json: line 1");
    t_run(&r, "prog", "lower", tmp_with("g.json", "{}"), "--layers", "1");
    says(&r, 2, "--layers is for shapes");
    t_run(&r, "prog", "lower", "shape:toy", "--config",
          tmp_with("c.json", "{\"tiling\": 3}"));
    says(&r, 3, "c.json: config.tiling: an integer, not an object");
    t_run(&r, "prog", "lower", "shape:toy", "--config", tmp("no.json"));
    says(&r, 3, "no.json");
    t_run(&r, "prog", "lower", "shape:toy", "--style", "amk", "--batch", "2",
          "--quant", "int4");
    says(&r, 1, "style amk");
}

TEST(prog_targets_lists_every_machine)
{
    t_proc r;

    t_run(&r, "prog", "targets");
    ck_assert_int_eq(r.exit, 0);
    t_golden("tests/golden/prog_targets.txt", r.out);
    t_run(&r, "prog", "targets", "--json");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_ptr_nonnull(strstr(r.out, "\"name\": \"mi300x\""));
    ck_assert_ptr_nonnull(strstr(r.out, "\"measured_bw_gbs\": 4396.0"));
}
