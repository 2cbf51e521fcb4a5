/* faults.c - tests that must fail, each in its own way: test_runner.c runs
 * them and sees the runner report every one. Not part of `make test`'s runner.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST(fault_none)
{
    ck_assert_int_eq(2, 1 + 1);
}

TEST(fault_skip)
{
    t_skip("planted %d", 7);
}

TEST(fault_assert)
{
    ck_assert_int_eq(1, 2);
}

TEST(fault_crash)
{
    raise(SIGSEGV);
}

TEST(fault_check)
{
    br_check(1 > 2 && "planted");
}

TEST(fault_exit)
{
    exit(3);
}

TEST_WITHIN(fault_hang, 0.2)
{
    for (;;)
        pause();
}

TEST(fault_leak)
{
    char *p = br_try_alloc(100);

    ck_assert_ptr_nonnull(p);
}

TEST(fault_past_end)
{
    char *p = br_try_alloc(5);
    char *volatile q = p;

    q[5] = 1;
    br_free(p);
}

TEST(fault_before_begin)
{
    char *p = br_try_alloc(5);
    char *volatile q = p;

    q[-1] = 1;
    br_free(p);
}

TEST(fault_double_free)
{
    void *p = br_try_alloc(5);
    void *volatile q = p;

    br_free(p);
    br_free(q);
}

TEST(fault_golden_text)
{
    t_golden("tests/faults/fault.txt", "one\nzwei\nthree\n");
}

TEST(fault_golden_letter)
{
    t_golden("tests/faults/fault.txt", "one\ntow\nthree\n");
}

TEST(fault_golden_absent)
{
    t_golden("tests/faults/absent.txt", "");
}

static br_code
leaks_on_failure(void *arg, br_status *st)
{
    void *a = br_try_alloc(8), *b = br_try_alloc(8);

    (void)arg;
    if (!a || !b)
        return br_fail(st, BR_E_OOM, "planted");
    br_free(a);
    br_free(b);
    return BR_OK;
}

TEST(fault_oom_leak)
{
    t_each_oom(leaks_on_failure, NULL);
}

static br_code
hides_failure(void *arg, br_status *st)
{
    (void)arg, (void)st;
    br_free(br_try_alloc(8));
    return BR_OK;
}

TEST(fault_oom_hidden)
{
    t_each_oom(hides_failure, NULL);
}

/* Only a sanitizer sees these. */

TEST(fault_only_asan)
{
    char *volatile p = malloc(8);

    memset(p, 1, 8);
    free(p);
    ck_assert_int_ne(p[3], 77);
}

TEST(fault_only_lsan)
{
    char *volatile p = malloc(8);

    t_printf("what the run of tests frees");
    p = NULL;
    (void)p;
}

TEST(fault_only_ubsan)
{
    volatile int big = 0x7fffffff;

    big = big + 1;
}

static int racy;

static void *
race(void *arg)
{
    for (int i = 0; i < 1000; i++)
        racy++;
    return arg;
}

TEST(fault_only_tsan)
{
    pthread_t a, b;

    pthread_create(&a, NULL, race, NULL);
    pthread_create(&b, NULL, race, NULL);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}
