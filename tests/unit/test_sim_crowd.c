/* test_sim_crowd.c - work-groups of a dispatch on several threads of the host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "sim_kit.h"

#include <string.h>

enum { GROUPS = 448, FIRST_BAD = 300, AT = 1024 };

static const struct {
    const char *cpu, *id;
} chips[] = {{"gfx1100", "s_mov_b32 s3, s15"},
             {"gfx1201", "s_mov_b32 s3, ttmp9"}};

static uint32_t
word(const sim_kit *k, unsigned at)
{
    uint32_t v;

    memcpy(&v, k->memory + at, 4);
    return v;
}

/* s3: the group. Some 800 instructions, then `tail`: others wake after 32768. */
static const char *
busy(size_t chip, const char *tail)
{
    return t_printf("%s\ns_mov_b32 s6, 0x1000000\ns_mov_b32 s4, s3\n"
                    "outer: s_mov_b32 s5, 1\n"
                    "inner: s_mul_i32 s4, s4, 0x41c64e6d\n"
                    "s_lshl_b32 s5, s5, 1\ns_cbranch_scc1 inner\n"
                    "s_lshl_b32 s6, s6, 1\ns_cbranch_scc1 outer\n%s",
                    chips[chip].id, tail);
}

/* Each group adds its lanes to a counter and stores a number of its own. */
TEST(sim_groups_on_threads_leave_what_one_leaves)
{
    for (size_t c = 0; c < BR_COUNT(chips); c++) {
        sim_kit want = {
            .cpu = chips[c].cpu,
            .groups = GROUPS,
            .code = busy(c, "v_mov_b32 v1, 0\nv_mov_b32 v2, 1\n"
                            "global_atomic_add_u32 v1, v2, s[0:1]\n"
                            "s_lshl_b32 s3, s3, 2\nv_mov_b32 v1, s3\n"
                            "v_mov_b32 v2, s4\ns_mov_b32 exec_lo, 1\n"
                            "global_store_b32 v1, v2, s[0:1] offset:1024")};

        ck_assert_int_eq(sim_kit_run(&want), BR_OK);
        ck_assert_uint_eq(word(&want, 0), GROUPS * 32);
        for (uint32_t n = 2; n <= 8; n += 3) {
            sim_kit got = {.cpu = want.cpu,
                           .groups = GROUPS,
                           .threads = n,
                           .code = want.code};

            ck_assert_msg(sim_kit_run(&got) == BR_OK, "%s", got.st.msg);
            ck_assert_mem_eq(got.memory, want.memory, sizeof want.memory);
            ck_assert_uint_eq(got.steps, want.steps);
        }
    }
}

/* However the threads run: the first of those that fault. */
TEST(sim_groups_on_threads_report_the_first_that_faults)
{
    for (size_t c = 0; c < BR_COUNT(chips); c++)
        for (uint32_t n = 1; n <= 8; n++) {
            sim_kit k = {.cpu = chips[c].cpu,
                         .groups = GROUPS,
                         .threads = n,
                         .code = busy(c, "s_cmp_lt_u32 s3, 300\n"
                                         "s_cbranch_scc1 good\n"
                                         "v_mov_b32 v1, 0x7fffffff\n"
                                         "global_load_b32 v2, v1, s[0:1]\n"
                                         "good: v_mov_b32 v1, 0\n"
                                         "v_mov_b32 v2, 1\n"
                                         "global_atomic_add_u32 v1, v2, "
                                         "s[0:1]")};

            ck_assert_int_eq(sim_kit_run(&k), BR_E_FAULT);
            ck_assert_msg(strstr(k.st.msg, "work-group 300,0,0 wave 0"),
                          "%u threads: %s", n, k.st.msg);
            /* Those before it have run to their end. */
            ck_assert_uint_ge(word(&k, 0), FIRST_BAD * 32);
        }
}

/* A thread begins more groups where one waits for others. */
TEST(sim_groups_on_threads_wait_for_each_other)
{
    for (size_t c = 0; c < BR_COUNT(chips); c++) {
        sim_kit k = {.cpu = chips[c].cpu,
                     .groups = 8,
                     .threads = 3,
                     .code =
                         busy(c, "s_mov_b32 exec_lo, 1\nv_mov_b32 v1, 0\n"
                                 "v_mov_b32 v2, 1\n"
                                 "global_atomic_add_u32 v1, v2, s[0:1]\n"
                                 "wait: global_load_b32 v3, v1, s[0:1]\n"
                                 "v_readfirstlane_b32 s5, v3\n"
                                 "s_cmp_lt_u32 s5, 8\ns_cbranch_scc1 wait")};

        k.max_steps = 1 << 28;
        ck_assert_msg(sim_kit_run(&k) == BR_OK, "%s", k.st.msg);
        ck_assert_uint_eq(word(&k, 0), 8);
    }
}

/* Instructions of all threads count. */
TEST(sim_groups_on_threads_end_after_their_steps)
{
    sim_kit k = {.cpu = "gfx1201",
                 .groups = 4,
                 .threads = 4,
                 .code = "for_ever: s_branch for_ever"};

    ck_assert_int_eq(sim_kit_run(&k), BR_E_TIMEOUT);
    ck_assert_msg(strstr(k.st.msg, "more than 1048576 instructions"), "%s",
                  k.st.msg);
}
