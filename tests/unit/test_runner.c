/* test_runner.c - the harness itself: each planted fault must turn red.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <string.h>
#include <unistd.h>

static void
run_faults(t_proc *r, const char *pattern)
{
    const char *bin = t_repo(t_printf("build/%s/brass-faults", t_conf()));

    t_exec(r, (const char *[]){bin, "-k", pattern, NULL}, NULL, 0);
}

static bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

static void
must_fail(const char *name, const char *says)
{
    t_proc r;

    run_faults(&r, name);
    ck_assert_msg(r.exit == 1, "%s: exit code %d\n%s", name, r.exit, r.out);
    ck_assert_msg(ends_with(r.out, "\n0 passed, 1 failed\n"), "%s:\n%s", name,
                  r.out);
    ck_assert_msg(strstr(r.out, t_printf("FAIL %s\n", name)), "%s:\n%s", name,
                  r.out);
    ck_assert_msg(strstr(r.out, says) || strstr(r.err, says),
                  "%s: does not say '%s':\n%s%s", name, says, r.out, r.err);
}

static void
must_pass(const char *name)
{
    t_proc r;

    run_faults(&r, name);
    ck_assert_msg(r.exit == 0, "%s: exit code %d\n%s", name, r.exit, r.out);
    ck_assert_msg(ends_with(r.out, "\n1 passed, 0 failed\n"), "%s:\n%s", name,
                  r.out);
}

TEST(runner_passes_what_passes)
{
    must_pass("fault_none");
}

TEST(runner_reports_a_failed_assertion)
{
    must_fail("fault_assert", "faults.c:");
    must_fail("fault_assert", "1 == 1, 2 == 2");
}

TEST(runner_reports_a_crash)
{
    must_fail("fault_crash", t_sanitized() ? "SEGV" : "signal 11");
    must_fail("fault_check", "planted");
    must_fail("fault_exit", "return value 3");
}

TEST(runner_reports_a_hanging_test)
{
    must_fail("fault_hang", "timeout");
}

TEST(runner_reports_bad_memory)
{
    must_fail("fault_leak", "leaked 1 block, 100 bytes");
    must_fail("fault_past_end", "");
    must_fail("fault_before_begin", "");
    must_fail("fault_double_free", "");
}

TEST(runner_shows_golden_differences)
{
    must_fail("fault_golden_text", "-two\n+zwei\n");
    must_fail("fault_golden_letter", "-two\n+tow\n"); /* as long */
    must_fail("fault_golden_absent", "make golden-update");
}

TEST(oom_sweep_reports_leaks_and_hidden_failures)
{
    must_fail("fault_oom_leak", "blocks leaked when allocation 1 failed");
    must_fail("fault_oom_hidden", "allocation 1 failed, but it returned OK");
}

TEST(runner_counts_a_skip_with_its_reason)
{
    t_proc r;

    run_faults(&r, "fault_skip");
    ck_assert_int_eq(r.exit, 0);
    ck_assert(strstr(r.out, "skip fault_skip: planted 7\n"));
    ck_assert(ends_with(r.out, "\n0 passed, 0 failed, 1 skipped\n"));
}

TEST(runner_fails_when_nothing_ran)
{
    t_proc r;

    run_faults(&r, "no_such_test");
    ck_assert_int_eq(r.exit, 1);
    ck_assert_str_eq(r.out, "0 passed, 0 failed\n");
    ck_assert(strstr(r.err, "no test matches 'no_such_test'"));
}

TEST(runner_selects_by_glob_and_lists)
{
    const char *bin = t_repo(t_printf("build/%s/brass-faults", t_conf()));
    t_proc r;

    t_exec(&r, (const char *[]){bin, "-l", "-k", "fault_oom_*", NULL}, NULL, 0);
    ck_assert_int_eq(r.exit, 0);
    ck_assert(strstr(r.out, "fault_oom_hidden\n"));
    ck_assert(strstr(r.out, "fault_oom_leak\n"));
    ck_assert(!strstr(r.out, "fault_none"));
}

TEST(runner_in_parallel_says_the_same)
{
    const char *bin = t_repo(t_printf("build/%s/brass-faults", t_conf()));
    t_proc r;

    t_exec(&r, (const char *[]){bin, "-j", "3", "-k", "fault_[nsac]*", NULL},
           NULL, 0);
    ck_assert_int_eq(r.exit, 1);
    ck_assert(ends_with(r.out, "\n1 passed, 3 failed, 1 skipped\n"));
}

/* What only a sanitizer can see turns red under that one. Under ASan and UBSan
 * together both faults are caught; the plain build lets them by. */
TEST(sanitizers_are_awake)
{
    bool any = false;

    if (strstr(t_conf(), "address")) {
        must_fail("fault_only_asan", "heap-use-after-free");
        must_fail("fault_only_lsan", "LeakSanitizer");
        any = true;
    }
    if (strstr(t_conf(), "undefined")) {
        must_fail("fault_only_ubsan", "signed integer overflow");
        any = true;
    }
    if (strstr(t_conf(), "thread")) {
        must_fail("fault_only_tsan", "data race");
        any = true;
    }
    if (!any)
        t_skip("no sanitizer in this build");
}

/* ---- helpers ------------------------------------------------------------- */

TEST(exec_gives_input_output_and_exit_code)
{
    t_proc r;

    t_exec(&r, (const char *[]){"sh", "-c", "cat; echo no >&2; exit 5", NULL},
           "a\0b", 3);
    ck_assert_uint_eq(r.n_out, 3);
    ck_assert_mem_eq(r.out, "a\0b", 3);
    ck_assert_str_eq(r.err, "no\n");
    ck_assert_int_eq(r.exit, 5);
    t_exec(&r, (const char *[]){"sh", "-c", "kill -9 $$", NULL}, NULL, 0);
    ck_assert_int_eq(r.exit, 128 + 9);
}

TEST(files_are_written_listed_and_read)
{
    const char *dir = t_tmpdir();
    char **names;
    size_t n;

    t_write(t_printf("%s/b.txt", dir), "two", 3);
    t_write(t_printf("%s/a.txt", dir), "", 0);
    t_write(t_printf("%s/c.bin", dir), "", 0);
    names = t_ls(dir, ".txt");
    ck_assert_str_eq(names[0], "a.txt");
    ck_assert_str_eq(names[1], "b.txt");
    ck_assert_ptr_null(names[2]);
    ck_assert_str_eq(t_read(t_printf("%s/b.txt", dir), &n), "two");
    ck_assert_uint_eq(n, 3);
}

TEST(tests_start_in_the_root_of_the_repository)
{
    ck_assert_int_eq(access("Makefile", R_OK), 0);
    ck_assert_int_eq(access(t_repo("tests/t.h"), R_OK), 0);
    ck_assert_ptr_null(t_vectors("no/such/folder"));
}

static br_code
two_allocations(void *arg, br_status *st)
{
    int *calls = arg;
    void *a = br_try_alloc(8), *b = a ? br_try_alloc(8) : NULL;
    br_code code = BR_OK;

    ++*calls;
    if (!b)
        code = br_fail(st, BR_E_OOM, "no memory");
    br_free(a);
    br_free(b);
    return code;
}

TEST(oom_sweep_fails_each_allocation_once)
{
    int calls = 0;

    t_each_oom(two_allocations, &calls);
    ck_assert_int_eq(calls, 3);
}

TEST(fresh_and_freed_memory_is_junk)
{
    unsigned char *p = br_try_alloc(64);
    unsigned char *volatile was = p;
    int same = 0;

    ck_assert_ptr_nonnull(p);
    for (int i = 0; i < 64; i++)
        same += p[i] == 0;
    ck_assert_int_lt(same, 8);
    ck_assert_uint_eq(t_mem_blocks(), 1);
    ck_assert_uint_eq(t_mem_bytes(), 64);
    p = br_try_realloc(p, 65);
    ck_assert_ptr_nonnull(p);
    ck_assert_ptr_ne(p, was); /* a kept pointer is wrong at once */
    br_free(p);
    ck_assert_uint_eq(t_mem_blocks(), 0);
}
