/* test_engine_threads.c - what other threads do to an engine in the midst of a step.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_kit.h"

#include "base/thread.h"

#include <stdatomic.h>

static void
submit(ek *k, ek_req *r, uint32_t tenant)
{
    br_request_desc d;

    ek_prompt(r, 20, tenant);
    d = ek_desc(r, 30);
    d.tenant = tenant;
    if (tenant == BR_TENANT_LOCAL)
        d.hook.mask = ek_waits_to_go;
    ek_submit(k, r, &d);
}

/* Tenant 1 is known to the engine's thread when its request comes, tenant 2 is not. */
TEST(engine_cancels_who_arrived_with_a_tenant_that_is_dropped)
{
    ek k;
    static ek_req r[3];
    ek_req *all[] = {&r[0], &r[1], &r[2]};
    br_quota q = br_quota_defaults();
    br_status st = {0};

    ek_open(&k, (br_lm_fake_config){0}, (br_engine_config){0});
    q.reserved_kv_pages = 4;
    t_ok(br_engine_tenant_set(k.e, 1, &q, &st), &st);
    submit(&k, &r[0], BR_TENANT_LOCAL);
    while (!atomic_load(&ek_begun))
        br_sleep_ns(100000);
    t_ok(br_engine_tenant_set(k.e, 2, &q, &st), &st);
    for (uint32_t t = 1; t < 3; t++) {
        submit(&k, &r[t], t);
        br_engine_tenant_drop(k.e, t);
    }
    atomic_store(&ek_go, true);
    ek_await(&k, all, 3);
    ck_assert_int_eq(r[0].usage.finish, BR_FINISH_LENGTH);
    for (int i = 1; i < 3; i++)
        ck_assert_int_eq(r[i].usage.finish, BR_FINISH_CANCELLED);
    ek_close(&k);
}

/* A prompt's logprobs are made while it is told how much of it was read. */
TEST(engine_scores_a_prompt_and_says_how_far_it_is)
{
    ek k;
    static ek_req r;
    ek_req *all[] = {&r};
    br_request_desc d;

    ek_open(&k, (br_lm_fake_config){.chunk = 16, .step_ns = 200000},
            (br_engine_config){0});
    ek_prompt(&r, 300, 1);
    d = ek_desc(&r, 3);
    ek_score(&r, &d);
    d.progress = true;
    ek_submit(&k, &r, &d);
    ek_await(&k, all, 1);
    ck_assert_uint_eq(r.n_scores, r.n_prompt);
    ck_assert_uint_gt(r.n_events, 3 + 1);
    ek_close(&k);
}
