/* test_cpu_machine.c - the CPU tier in what a machine gives it: fewer cores
 * than threads, and memory.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "logits_kit.h"
#include "run/shape.h"
#include "t.h"

#include <stdio.h>
#include <string.h>

/* The bits are the same; the time is reported and not judged: neighbours would
 * decide it. A pool that spun for a core that another thread holds would take
 * longer than a test may. */
TEST_WITHIN(more_threads_than_cores_change_no_bit, 60)
{
    static const char *const threads[] = {"1", "2", "7"};
    lk_case c = lk_get(lk_find("gpt-oss"));
    const char *model = t_printf("%s/m.gguf", t_tmpdir());
    int64_t ns[BR_COUNT(threads)];
    char *got[BR_COUNT(threads)];
    size_t n[BR_COUNT(threads)];
    br_str tokens = {0};
    int cpu;

    if (!t_have_program("taskset"))
        t_skip("no taskset here");
    (void)br_os_cpus(&cpu, 1);
    t_write(model, c.file, c.file_n);
    for (uint32_t i = 0; i < c.n_tokens; i++)
        br_str_printf(&tokens, "%s%d", i ? "," : "", c.tokens[i]);
    for (size_t i = 0; i < BR_COUNT(threads); i++) {
        const char *out = t_printf("%s/%s", t_tmpdir(), threads[i]);
        int64_t from = br_now_ns();
        t_proc r;

        t_exec(&r,
               (const char *[]){"taskset", "-c", t_printf("%d", cpu), t_brass(),
                                "logits", model, "--tokens", br_str_z(&tokens),
                                "--tier", "cpu", "--chunk", "1", "-t",
                                threads[i], "-o", out, NULL},
               NULL, 0);
        ns[i] = br_now_ns() - from;
        ck_assert_msg(r.exit == 0, "%s", r.err);
        got[i] = t_read(out, &n[i]);
        ck_assert_uint_eq(n[i], n[0]);
        ck_assert_mem_eq(got[i], got[0], n[0]);
    }
    printf("one core: 2 threads take %.2f of the time of one, 7 take %.2f\n",
           (double)ns[1] / (double)ns[0], (double)ns[2] / (double)ns[0]);
    br_str_fini(&tokens);
    lk_end();
}

/* Weights are packed beside the file they come from, and counted once: the
 * pages of the file go as its tensors are done. Promised are 150 MB for all
 * that is neither weights nor keys and values; a third of it is asked for, so
 * that one matrix too many shows with a model of 66 MB. */
TEST_WITHIN(memory_is_that_of_the_model_and_little_more, 60)
{
    enum { MORE = 50 << 20 };
    const char *model = t_printf("%s/m.gguf", t_tmpdir());
    br_status st = {0};
    br_str file = {0};
    t_proc r, none;

    if (t_sanitized())
        t_skip("a sanitizer's own memory is counted");
    t_ok(br_shape_model(&file, "shape:llama-3.2-1b:Q8_0", true, &st), &st);
    t_write(model, file.at, file.n);
    t_run(&r, "logits", model, "--tokens", "1,2,3,4,5,6,7,8", "--tier", "cpu",
          "-t", "2", "-o", t_printf("%s/l", t_tmpdir()));
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_msg(r.most_bytes < file.n + MORE,
                  "%.1f MB for a model of %.1f MB", (double)r.most_bytes / 1e6,
                  (double)file.n / 1e6);
    br_str_fini(&file);
    t_run(&none, "--version");
    ck_assert_uint_gt(r.most_bytes, none.most_bytes);
}
