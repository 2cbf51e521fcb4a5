/* test_mega_target.c - the registry of machines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <string.h>

#include "lower_make.h"
#include "mega/target.h"

static const char *const names[BR_MT_COUNT] = {
#define T(name, def) #name,
#include "mega/target_field.def"
#undef T
};

static void
same_value(const br_json *got, const br_json *want, const char *where)
{
    br_str a = {0}, b = {0};
    br_json_writer w;

    br_json_w_begin(&w, &a, 0);
    br_json_w_tree(&w, got);
    br_json_w_begin(&w, &b, 0);
    br_json_w_tree(&w, want);
    if (strcmp(br_str_z(&a), br_str_z(&b)) != 0)
        ck_abort_msg("%s: %s, not %s", where, br_str_z(&a), br_str_z(&b));
    br_str_fini(&a);
    br_str_fini(&b);
}

TEST(target_rows_are_the_references)
{
    const br_json *m = lm_manifest(), *rows;
    br_arena a;
    int n = 0;

    if (!m)
        t_skip("no ../shared/vectors here");
    br_arena_init(&a, 0);
    rows = br_json_get(br_json_get(m, "tables"), "TARGETS");
    ck_assert_ptr_nonnull(rows);
    for (const br_json *r = rows->child; r; r = r->next, n++) {
        const br_mega_target *t =
            br_mega_target_find((br_text){r->key, r->key_n});
        const br_json *const *f;

        if (!t)
            ck_abort_msg("no target '%s'", r->key);
        f = br_mega_target_fields(t, &a);
        ck_assert_ptr_nonnull(f);
        for (int i = 0; i < BR_MT_COUNT; i++)
            same_value(f[i], br_json_get(r, names[i]),
                       t_printf("%s.%s", r->key, names[i]));
    }
    ck_assert_int_eq(n, 8);
    br_arena_fini(&a);
    lm_manifest_done();
}

TEST(target_rows_make_sense)
{
    for (size_t i = 0; i < br_mega_target_count(); i++) {
        const br_mega_target *t = br_mega_target_at(i);

        ck_assert_ptr_eq(br_mega_target_find(br_text_z(t->name)), t);
        ck_assert_int_gt(t->num_sms, 0);
        ck_assert_int_le(t->smem_bytes_per_block_optin, t->smem_bytes_per_sm);
        ck_assert_int_ge(t->max_threads_per_sm, 256); /* the default block */
        ck_assert_double_gt(t->hbm_bandwidth_gbs, 0);
        ck_assert_double_le(t->measured_bw_gbs, t->hbm_bandwidth_gbs);
        ck_assert_double_gt(t->task_us, 0);
        ck_assert_double_ge(t->share_x, 1);
    }
}

TEST(target_unknown_name_lists_all)
{
    br_mega_target t;
    br_status st = {0};

    ck_assert_int_eq(br_mega_target_get(&t, BR_TEXT("h300"), &st),
                     BR_E_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(st.msg, "h200"));
    ck_assert_ptr_nonnull(strstr(st.msg, "mi300x"));
    ck_assert_ptr_nonnull(strstr(st.msg, "host"));
}

TEST(target_host_is_this_machine)
{
    br_mega_target t;
    br_status st = {0};

    t_ok(br_mega_target_get(&t, BR_TEXT("host"), &st), &st);
    ck_assert_int_ge(t.num_sms, 1);
    ck_assert_int_gt(t.hbm_bytes, 1 << 20);
}

TEST(target_of_a_program_is_the_row_again)
{
    br_mega_net *net = lm_net(1, NULL);
    br_mega_prog *p = lm_lower(net, "r9700", NULL, NULL);
    const br_mega_target *row = br_mega_target_find(BR_TEXT("r9700"));
    br_mega_target t;
    br_status st = {0};

    t_ok(br_mega_target_of(p, &t, &st), &st);
    ck_assert_int_eq(t.num_sms, row->num_sms);
    ck_assert_double_eq(t.hbm_bandwidth_gbs, row->hbm_bandwidth_gbs);
    ck_assert_double_eq(t.task_us, row->task_us);
    p->target = NULL;
    ck_assert_int_eq(br_mega_target_of(p, &t, &st), BR_E_FORMAT);
    br_mega_free(p);
    br_mega_net_free(net);
}

TEST(target_of_a_program_refuses_nonsense)
{
    static const struct {
        br_mega_target_field field;
        double value;
    } bad[] = {
        {BR_MT_num_sms, 0},           {BR_MT_num_sms, 0.5},
        {BR_MT_hbm_bandwidth_gbs, 0}, {BR_MT_hbm_bandwidth_gbs, -1},
        {BR_MT_fp16_tflops, 1e300},   {BR_MT_l2_bytes, -5},
    };
    br_mega_net *net = lm_net(1, NULL);
    br_mega_prog *p = lm_lower(net, "h100", NULL, NULL);

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        const br_json *f[BR_MT_COUNT];
        br_json v = {.kind = BR_J_FLOAT};
        const br_json *const *keep = p->target;
        br_mega_target t;
        br_status st = {0};

        memcpy(f, keep, sizeof f);
        v.f = bad[i].value;
        f[bad[i].field] = &v;
        p->target = f;
        ck_assert_int_eq(br_mega_target_of(p, &t, &st), BR_E_FORMAT);
        ck_assert_ptr_nonnull(strstr(st.msg, names[bad[i].field]));
        f[bad[i].field] = NULL;
        ck_assert_int_eq(br_mega_target_of(p, &t, &st), BR_E_FORMAT);
        p->target = keep;
    }
    br_mega_free(p);
    br_mega_net_free(net);
}
