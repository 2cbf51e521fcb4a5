/* test_engine_failing.c - steps that fail, and whose fault it is.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_kit.h"

/* What fails is in the third chunk of a prompt: two steps of it alone pass, and so does
 * one of each other. The first one stays in its first row until all are there. */
TEST(engine_finds_what_fails_deep_in_a_prompt)
{
    enum { N = 4, BAD = 2, OUT = 60 };
    static ek_req r[N];
    ek_req *all[N];
    ek k;

    ek_open(
        &k,
        (br_lm_fake_config){.fail_token = 1777, .n_common = 1700, .chunk = 32},
        (br_engine_config){0});
    for (uint32_t i = 0; i < N; i++) {
        br_request_desc d;

        ek_prompt(&r[i], 100 + 50 * (i == BAD), i);
        if (i == BAD)
            r[i].prompt[90] = 1777;
        d = ek_desc(&r[i], OUT);
        if (i == 0)
            d.hook.mask = ek_waits_to_go;
        all[i] = &r[i];
        ek_submit(&k, &r[i], &d);
    }
    atomic_store(&ek_go, true);
    ek_await(&k, all, N);
    for (uint32_t i = 0; i < N; i++) {
        ck_assert_int_eq(r[i].usage.finish,
                         i == BAD ? BR_FINISH_FAILED : BR_FINISH_LENGTH);
        ck_assert_uint_eq(r[i].n_out, i == BAD ? 0 : OUT);
        ck_assert_uint_le(r[i].n_preempted, 1);
        ek_right(&k, &r[i]);
    }
    ek_close(&k);
}
