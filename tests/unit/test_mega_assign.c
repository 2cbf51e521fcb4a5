/* test_mega_assign.c - workers for tasks: the reference loader's rule on its
 * vectors, and ours by its properties.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "lower_make.h"
#include "mega/assign.h"
#include "prog_make.h"

T_ONE_THREAD();

static int64_t *
assign_amk(const br_mega_prog *p, int64_t grid, bool round_robin)
{
    int64_t *sm = t_keep(calloc(p->n_tasks + 1, sizeof *sm));
    br_status st = {0};

    t_ok(br_mega_assign_amk(p, grid, round_robin, sm, &st), &st);
    return sm;
}

TEST(assign_amk_reproduces_the_files)
{
    const char *dir = t_vectors("amk");
    const br_json *m = lm_manifest();
    int n = 0;

    if (!m)
        t_skip("no ../shared/vectors here");
    for (const br_json *e = br_json_get(m, "valid")->child; e; e = e->next) {
        const br_json *a = br_json_get(e, "assign");
        const char *file = br_json_get(e, "file")->s;
        br_status st = {0};
        br_mega_prog *p;
        int64_t *sm, *want;

        if (!a || a->kind != BR_J_OBJ)
            continue;
        t_ok(br_mega_load_file(&p, t_printf("%s/%s", dir, file), &st), &st);
        want = t_keep(calloc(p->n_tasks, sizeof *want));
        for (size_t i = 0; i < p->n_tasks; i++) {
            want[i] = p->tasks[i].sm;
            p->tasks[i].sm = BR_MEGA_SM_NONE;
        }
        sm =
            assign_amk(p, br_json_get(a, "grid")->i,
                       strcmp(br_json_get(a, "policy")->s, "round_robin") == 0);
        if (memcmp(sm, want, p->n_tasks * sizeof *sm) != 0)
            ck_abort_msg("%s: another assignment", file);
        br_mega_free(p);
        n++;
    }
    ck_assert_int_ge(n, 3);
    lm_manifest_done();
}

/* sha256 of the list as JSON without spaces. */
static void
digest_of(const int64_t *sm, size_t n, char hex[BR_SHA256_HEX])
{
    br_str s = {0};

    for (size_t i = 0; i < n; i++)
        br_str_printf(&s, "%s%lld", i ? "," : "[", (long long)sm[i]);
    br_str_puts(&s, "]");
    br_sha256_hex(s.at, s.n, hex);
    br_str_fini(&s);
}

TEST(assign_amk_reproduces_the_digests)
{
    const br_json *m = lm_manifest();
    int n = 0;

    if (!m)
        t_skip("no ../shared/vectors here");
    for (const br_json *e = br_json_get(m, "lower_digests")->child; e;
         e = e->next) {
        const br_json *list = br_json_get(br_json_get(e, "expected"), "assign");
        br_status st = {0};
        br_mega_prog *p = lm_spec(br_json_get(e, "lower_spec"), &st);

        ck_assert_ptr_nonnull(p);
        for (const br_json *a = list->child; a; a = a->next, n++) {
            const char *policy = br_json_get(a, "policy")->s;
            char hex[BR_SHA256_HEX];
            int64_t *sm = assign_amk(p, br_json_get(a, "grid")->i,
                                     strcmp(policy, "round_robin") == 0);

            digest_of(sm, p->n_tasks, hex);
            if (strcmp(hex, br_json_get(a, "sha256_sm_of_by_task_id")->s) != 0)
                ck_abort_msg("%s, %s: another assignment",
                             br_json_get(e, "id")->s, policy);
        }
        br_mega_free(p);
    }
    ck_assert_int_ge(n, 10);
    lm_manifest_done();
}

/* A split attention leaves workers on its shards alone. */
TEST(assign_amk_puts_the_rest_on_worker_zero_and_ours_does_not)
{
    br_mega_step step = {.pos = 40, .dtype = BR_MDT_F32};
    br_mega_net *net = lm_net(1, &step);
    br_mega_lower_opts o = {
        .style = BR_LOWER_AMK,
        .target = br_mega_target_find(BR_TEXT("h100")),
        .config = lm_json("{'tiling':{'attention':{'n_partitions':2}}}")};
    br_mega_assign_opts ours = {.workers = 132};
    br_status st = {0};
    br_mega_prog *p;
    int64_t *sm;
    size_t zero = 0;

    t_ok(br_mega_lower(&p, net, &o, NULL, &st), &st);
    sm = assign_amk(p, 132, false);
    for (size_t i = 0; i < p->n_tasks; i++)
        zero += sm[i] == 0;
    ck_assert_uint_eq(zero, p->n_tasks - 1);
    t_ok(br_mega_assign(p, &ours, &st), &st);
    ck_assert_int_eq(lm_task(p, "L0.attention.s0")->sm, 0);
    ck_assert_int_eq(lm_task(p, "L0.attention.s1")->sm, 1);
    for (zero = 0, sm = NULL; zero < p->n_tasks; zero++)
        ck_assert_int_ne(p->tasks[zero].sm, BR_MEGA_SM_NONE);
    br_mega_free(p);
    br_mega_net_free(net);
    lm_forget();
}

/* 12 tasks that can all run at once, one of them large. */
static mk
wide(void)
{
    mk m = mk_new(2, 12, 12);
    int64_t x = mk_buf(&m, "x", BR_MBK_IO_INPUT, 4);
    int64_t y = mk_buf(&m, "y", BR_MBK_ACTIVATION, 4);

    for (int i = 0; i < 12; i++) {
        mk_task(&m, BR_MOP_COPY, mk_ctr(&m), MK(x), MK(y), MK_NONE);
        m.p->tasks[i].est_bytes = i == 11 ? 1000 : 100;
    }
    return m;
}

TEST(assign_largest_first_within_a_level)
{
    mk m = wide();
    br_mega_assign_opts o = {.workers = 3};
    br_status st = {0};
    int64_t load[3] = {0};

    t_ok(br_mega_assign(m.p, &o, &st), &st);
    ck_assert_int_eq(m.p->tasks[11].sm, 0); /* alone: it is worth ten */
    for (int i = 0; i < 12; i++)
        load[m.p->tasks[i].sm] += m.p->tasks[i].est_bytes;
    ck_assert_int_eq(load[0], 1000);
    ck_assert_int_eq(load[1], 600);
    ck_assert_int_eq(load[2], 500);
    br_mega_free(m.p);
}

TEST(assign_keeps_units_together_and_pins_in_place)
{
    mk m = wide();
    int32_t unit[12] = {0, 0, 0, -1, -1, 1, 1, -1, -1, -1, -1, -1};
    br_mega_assign_opts o = {.workers = 4, .unit = unit, .n_units = 2};
    br_status st = {0};

    m.p->tasks[6].sm = 3; /* its unit follows */
    m.p->tasks[9].sm = 2;
    t_ok(br_mega_assign(m.p, &o, &st), &st);
    ck_assert_int_eq(m.p->tasks[0].sm, m.p->tasks[1].sm);
    ck_assert_int_eq(m.p->tasks[0].sm, m.p->tasks[2].sm);
    ck_assert_int_eq(m.p->tasks[5].sm, 3);
    ck_assert_int_eq(m.p->tasks[6].sm, 3);
    ck_assert_int_eq(m.p->tasks[9].sm, 2);
    br_mega_free(m.p);
}

TEST(assign_refuses_workers_that_are_not_there)
{
    mk m = wide();
    br_mega_assign_opts o = {.workers = 4};
    br_status st = {0}, none = {0};

    m.p->tasks[3].sm = 4;
    ck_assert_int_eq(br_mega_assign(m.p, &o, &st), BR_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(st.msg, "task 3 is on worker 4 of 4"));
    ck_assert_int_eq(m.p->tasks[0].sm, BR_MEGA_SM_NONE); /* as it was */
    o.workers = 0;
    ck_assert_int_eq(br_mega_assign(m.p, &o, &none), BR_E_FORMAT);
    br_mega_free(m.p);
}

/* In every level no worker has more than the largest task above the mean. */
TEST(assign_balances_every_level)
{
    br_status st = {0};
    br_mega_prog *p;
    int64_t load[132] = {0}, sum = 0, most = 0;

    t_ok(br_mega_lower_shape(&p, "llama-3.2-1b", BR_LOWER_HOUSE, &st), &st);
    for (size_t i = 0; i < p->n_tasks; i++)
        if (strncmp(p->tasks[i].label, "L3.gate", 7) == 0 ||
            strncmp(p->tasks[i].label, "L3.up", 5) == 0) {
            load[p->tasks[i].sm] += p->tasks[i].est_bytes;
            sum += p->tasks[i].est_bytes;
            most = BR_MAX(most, p->tasks[i].est_bytes);
        }
    ck_assert_int_gt(sum, 0);
    for (int w = 0; w < 132; w++)
        ck_assert_int_le(load[w], sum / 132 + most);
    br_mega_free(p);
}

static br_code
assign_oom(void *arg, br_status *st)
{
    mk *m = arg;
    int32_t unit[12] = {0, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    br_mega_assign_opts o = {.workers = 5, .unit = unit, .n_units = 1};
    int64_t sm[12];

    for (int i = 0; i < 12; i++)
        m->p->tasks[i].sm = BR_MEGA_SM_NONE;
    BR_TRY(br_mega_assign_amk(m->p, 3, false, sm, st));
    return br_mega_assign(m->p, &o, st);
}

TEST(assign_survives_any_failed_allocation)
{
    mk m = wide();

    t_each_oom(assign_oom, &m);
    br_mega_free(m.p);
}
