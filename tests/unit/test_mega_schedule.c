/* test_mega_schedule.c - each field of a ScheduleConfig has its effect.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lower_make.h"

T_ONE_THREAD();

/* ---- tiling -------------------------------------------------------------- */

TEST(schedule_n_tile_sets_the_width_of_every_linear)
{
    br_mega_net *n = lm_net(1, NULL);
    br_mega_prog *p =
        lm_lower(n, "h100", "{'tiling':{'gemv':{'N_tile':7}}}", NULL);

    /* 32 columns in sevens: 4 whole tiles and one of 4. */
    ck_assert_uint_eq(lm_count(p, "L0.q_proj["), 5);
    ck_assert_int_eq(
        br_mega_get_i_or(lm_task(p, "L0.q_proj[t0]"), BR_MP_N_tile, -1), 7);
    ck_assert_int_eq(
        br_mega_get_i_or(lm_task(p, "L0.q_proj[t4]"), BR_MP_N_tile, -1), 4);
    ck_assert_int_eq(
        br_mega_get_i_or(lm_task(p, "L0.q_proj[t4]"), BR_MP_n_off, -1), 28);
    ck_assert_uint_eq(lm_count(p, "L0.gate_proj["), 10);
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

TEST(schedule_a_role_overrides_gemv)
{
    br_mega_net *n = lm_net(1, NULL);
    br_mega_prog *p = lm_lower(
        n, "h100", "{'tiling':{'gemv':{'N_tile':8},'q_proj':{'N_tile':16}}}",
        NULL);

    ck_assert_uint_eq(lm_count(p, "L0.q_proj["), 2);
    ck_assert_uint_eq(lm_count(p, "L0.o_proj["), 4);
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

TEST(schedule_base_width_is_where_the_width_starts)
{
    br_mega_net *n = lm_net(1, NULL);
    br_mega_prog *p =
        lm_lower(n, "h100", "{'tiling':{'gemv':{'base_width':20}}}", NULL);

    /* 20, up to a multiple of the 8 warps of 256 threads. */
    ck_assert_int_eq(
        br_mega_get_i_or(lm_task(p, "L0.gate_proj[t0]"), BR_MP_N_tile, -1), 24);
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

TEST(schedule_m_tile_cuts_rows_of_a_batch)
{
    br_mega_step step = {.batch = 5, .dtype = BR_MDT_F32};
    br_mega_net *n = lm_net(1, &step);
    br_mega_prog *p = lm_lower(
        n, "h100", "{'tiling':{'gemm':{'N_tile':16,'M_tile':2}}}", NULL);
    const br_mega_task *t = lm_task(p, "L0.q_proj[t5]");

    ck_assert_uint_eq(lm_count(p, "L0.q_proj["), 6); /* 2 x (2 + 2 + 1) */
    ck_assert_int_eq(br_mega_get_i_or(t, BR_MP_m_off, -1), 4);
    ck_assert_int_eq(br_mega_get_i_or(t, BR_MP_M_tile, -1), 1);
    ck_assert_int_eq(br_mega_get_i_or(t, BR_MP_n_off, -1), 16);
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

/* Keys of shard s of layer 0, and where they begin. */
static void
shard_is(const br_mega_prog *p, const char *label, int64_t start, int64_t keys)
{
    const br_mega_task *t = lm_task(p, label);

    ck_assert_int_eq(br_mega_get_i_or(t, BR_MP_kv_start, -1), start);
    ck_assert_int_eq(br_mega_get_i_or(t, BR_MP_kv_len, -1), keys);
    ck_assert_int_eq(br_mega_get_i_or(t, BR_MP_flags, -1),
                     BR_MEGA_FLAG_PARTIAL);
}

TEST(schedule_kv_block_splits_attention_at_its_multiples)
{
    br_mega_step step = {.pos = 40, .dtype = BR_MDT_BF16};
    br_mega_net *n = lm_net(1, &step);
    br_mega_lower_stats stats;
    br_mega_prog *p =
        lm_lower(n, "h100", "{'tiling':{'attention':{'kv_block':16}}}", &stats);

    ck_assert_uint_eq(stats.split_attentions, 1);
    shard_is(p, "L0.attention.s0", 0, 16);
    shard_is(p, "L0.attention.s1", 16, 16);
    shard_is(p, "L0.attention.s2", 32, 9);
    ck_assert_uint_eq(lm_task(p, "L0.attention.comb")->n_in, 3);
    /* Sums of exponentials stay in f32 whatever the program's dtype. */
    ck_assert_int_eq(lm_buffer(p, "L0.attn.part0")->dtype, BR_MDT_F32);
    br_mega_free(p);
    /* 41 keys in blocks of 4 are 11 blocks: 8 shards of 2, so 6 of them. */
    p = lm_lower(n, "h100", "{'tiling':{'attention':{'kv_block':4}}}", NULL);
    ck_assert_uint_eq(lm_task(p, "L0.attention.comb")->n_in, 6);
    shard_is(p, "L0.attention.s5", 40, 1);
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

TEST(schedule_n_partitions_bounds_the_shards)
{
    br_mega_step step = {.pos = 40, .dtype = BR_MDT_F32};
    br_mega_net *n = lm_net(1, &step);
    br_mega_prog *p = lm_lower(
        n, "h100", "{'tiling':{'attention':{'n_partitions':2}}}", NULL);

    shard_is(p, "L0.attention.s0", 0, 21);
    shard_is(p, "L0.attention.s1", 21, 20);
    ck_assert_uint_eq(lm_task(p, "L0.attention.comb")->n_in, 2);
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

/* ---- fusion_grouping ----------------------------------------------------- */

TEST(schedule_a_resident_group_shares_workers_and_counter)
{
    static const char tiles[] = "{'tiling':{'gemv':{'N_tile':8}}}";
    static const char grouped[] =
        "{'tiling':{'gemv':{'N_tile':8}},'fusion_grouping':[['gate','up']]}";
    br_mega_net *n = lm_net(2, NULL);
    br_mega_lower_stats stats;
    br_mega_prog *apart = lm_lower(n, "h100", tiles, NULL);
    br_mega_prog *p = lm_lower(n, "h100", grouped, &stats);
    char *g, *u;

    ck_assert_uint_eq(stats.resident_groups, 2);
    for (int i = 0; i < 8; i++) {
        g = t_printf("L1.gate_proj[t%d]", i);
        u = t_printf("L1.up_proj[t%d]", i);
        ck_assert_int_eq(lm_task(p, g)->sm, lm_task(p, u)->sm);
        ck_assert_int_eq(lm_task(p, g)->out_counter,
                         lm_task(p, u)->out_counter);
        ck_assert_int_ne(lm_task(apart, g)->sm, lm_task(apart, u)->sm);
    }
    ck_assert_uint_eq(lm_task(apart, "L1.swiglu")->n_waits, 2);
    ck_assert_uint_eq(lm_task(p, "L1.swiglu")->n_waits, 1);
    ck_assert_int_eq(lm_task(p, "L1.swiglu")->waits[0].threshold, 16);
    br_mega_free(apart);
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

TEST(schedule_a_group_of_single_tasks_becomes_one_fused_task)
{
    static const char config[] = "{'tiling':{'o_proj':{'N_tile':32}},"
                                 "'fusion_grouping':[['o_proj','residual']]}";
    br_mega_net *n = lm_net(1, NULL);
    br_mega_lower_stats stats;
    br_mega_prog *p = lm_lower(n, "h100", config, &stats);
    const br_mega_task *t = lm_task(p, "L0.o_proj+L0.attn_residual");

    ck_assert_uint_eq(stats.fused_groups, 1);
    ck_assert_int_eq(t->op, BR_MOP_FUSED);
    ck_assert_uint_eq(t->n_in, 3); /* attn, the weight, h0 */
    ck_assert_uint_eq(t->n_waits, 2);
    ck_assert_uint_eq(lm_count(p, "L0.o_proj["), 0);
    br_mega_free(p);
    /* Cut into tiles it cannot be one task. */
    p = lm_lower(n, "h100",
                 "{'tiling':{'o_proj':{'N_tile':16}},"
                 "'fusion_grouping':[['o_proj','residual']]}",
                 &stats);
    ck_assert_uint_eq(stats.fused_groups, 0);
    ck_assert_uint_eq(stats.resident_groups, 1);
    ck_assert_int_eq(lm_task(p, "L0.attn_residual")->sm,
                     lm_task(p, "L0.o_proj[t0]")->sm);
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

TEST(schedule_two_results_keep_a_group_from_fusing)
{
    br_mega_net *n = lm_net(1, NULL);
    br_mega_lower_stats stats;
    /* h_attn is read by the norm and, later, by the residual. */
    br_mega_prog *p =
        lm_lower(n, "h100",
                 "{'fusion_grouping':[['attn_residual','post_norm']]}", &stats);

    ck_assert_uint_eq(stats.fused_groups, 0);
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

/* ---- sm_assignment ------------------------------------------------------- */

TEST(schedule_round_robin_deals_tasks_in_order)
{
    br_mega_net *n = lm_net(1, NULL);
    br_mega_prog *p =
        lm_lower(n, "cpu", "{'sm_assignment':'round_robin'}", NULL);
    br_mega_prog *q =
        lm_lower(n, "cpu", "{'sm_assignment':'load_balance'}", NULL);
    int64_t load[8] = {0}, count[8] = {0};
    bool differ = false;

    for (size_t i = 0; i < p->n_tasks; i++) {
        count[p->tasks[i].sm]++;
        load[q->tasks[i].sm] += q->tasks[i].est_bytes;
        differ |= p->tasks[i].sm != q->tasks[i].sm;
    }
    ck_assert(differ);
    for (int w = 1; w < 8; w++) /* dealt: counts differ by one at most */
        ck_assert_int_le(llabs(count[w] - count[0]), 1);
    for (int w = 1; w < 8; w++)
        ck_assert_int_gt(load[w], 0);
    br_mega_free(p);
    br_mega_free(q);
    br_mega_net_free(n);
    lm_forget();
}

TEST(schedule_a_map_pins_tasks_and_spreads_the_rest)
{
    br_mega_net *n = lm_net(1, NULL);
    br_mega_lower_stats stats;
    br_mega_prog *p =
        lm_lower(n, "h100", "{'sm_assignment':{'0':5,'3':1,'10':2}}", &stats);

    ck_assert_int_eq(p->tasks[0].sm, 5);
    ck_assert_int_eq(p->tasks[3].sm, 1);
    ck_assert_int_eq(p->tasks[10].sm, 2);
    /* The reference's loader would put all the others on worker 0. */
    ck_assert_uint_gt(stats.workers, 8);
    for (size_t i = 0; i < p->n_tasks; i++)
        ck_assert_int_ne(p->tasks[i].sm, BR_MEGA_SM_NONE);
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

/* ---- the launch ---------------------------------------------------------- */

TEST(schedule_pipelining_depth_is_the_prefetch_hint_of_gemvs)
{
    br_mega_net *n = lm_net(1, NULL);
    br_mega_prog *p = lm_lower(n, "h100", "{'pipelining_depth':3}", NULL);
    int64_t v;

    ck_assert_int_eq(
        br_mega_get_i_or(lm_task(p, "L0.q_proj[t0]"), BR_MP_M_tile, -1), 3);
    br_mega_free(p);
    p = lm_lower(n, "h100", "{'pipelining_depth':0}", NULL);
    ck_assert(!br_mega_get_i(lm_task(p, "L0.q_proj[t0]"), BR_MP_M_tile, &v));
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

TEST(schedule_threads_per_block_sets_the_grain_of_tiles)
{
    br_mega_net *n = lm_net(1, NULL);
    br_mega_prog *p = lm_lower(n, "h100", "{'threads_per_block':32}", NULL);

    ck_assert_uint_eq(lm_count(p, "lm_head["), 48); /* a column per warp */
    br_mega_free(p);
    p = lm_lower(n, "h100", "{'threads_per_block':512}", NULL);
    ck_assert_uint_eq(lm_count(p, "lm_head["), 3);
    br_mega_free(p);
    br_mega_net_free(n);
    lm_forget();
}

TEST(schedule_shared_memory_takes_what_one_worker_uses_alone)
{
    static const char config[] =
        "{'tiling':{'gemv':{'N_tile':1000}},'sm_assignment':"
        "'load_balance','smem_bytes_per_block':%d}";
    br_mega_net *n = lm_net(1, NULL);
    br_mega_target one = *br_mega_target_find(BR_TEXT("h100"));
    br_mega_lower_opts o = {.target = &one};
    br_mega_lower_stats stats;
    br_status st = {0};
    br_mega_prog *p;
    size_t before = 0;

    one.num_sms = 1; /* every activation is used by one worker */
    for (int bytes = 0; bytes <= 4096; bytes += 1024) {
        int64_t used = 0;

        o.config = lm_json(t_printf(config, bytes));
        t_ok(br_mega_lower(&p, n, &o, &stats, &st), &st);
        for (size_t i = 0; i < p->n_buffers; i++)
            if (p->buffers[i].space == BR_MSP_SMEM)
                used += (br_mega_nbytes(&p->buffers[i]) + 255) / 256 * 256;
        ck_assert_int_le(used, bytes);
        ck_assert(bytes == 0 ? stats.on_chip == 0 : stats.on_chip > before);
        before = stats.on_chip;
        br_mega_free(p);
    }
    br_mega_net_free(n);
    lm_forget();
}

/* ---- page_allocation ----------------------------------------------------- */

static int64_t
page_bytes(const br_mega_prog *p)
{
    int64_t sum = 0;

    for (size_t i = 0; i < p->n_pages; i++)
        sum += p->pages[i].nbytes;
    return sum;
}

TEST(schedule_page_allocation_is_carried_out)
{
    br_mega_net *n = lm_net(3, NULL);
    br_mega_prog *none =
        lm_lower(n, "h100", "{'page_allocation':'none'}", NULL);
    br_mega_prog *linear =
        lm_lower(n, "h100", "{'page_allocation':'linear'}", NULL);
    br_mega_prog *shared =
        lm_lower(n, "h100", "{'page_allocation':'graph_color'}", NULL);
    size_t activations = 0;

    for (size_t i = 0; i < none->n_buffers; i++)
        activations += none->buffers[i].kind == BR_MBK_ACTIVATION;
    ck_assert(!none->has_pages);
    ck_assert_uint_eq(linear->n_pages, activations);
    ck_assert_uint_gt(shared->n_pages, 0);
    ck_assert_int_lt(page_bytes(shared) * 4, page_bytes(linear));
    br_mega_free(none);
    br_mega_free(linear);
    br_mega_free(shared);
    br_mega_net_free(n);
    lm_forget();
}

/* ---- ranges -------------------------------------------------------------- */

TEST(schedule_refuses_what_is_out_of_range)
{
    static const struct {
        const char *config, *says;
    } bad[] = {
        {"[]", "config: an array, not an object"},
        {"{'tilling':{}}", "no field 'tilling'"},
        {"{'tiling':{'gemv':{'N_tile':0}}}", "tiling.gemv.N_tile: 0"},
        {"{'tiling':{'gemv':{'N_tile':1.0}}}", "N_tile"},
        {"{'tiling':{'gemv':{'n_tile':8}}}", "there is no 'n_tile'"},
        {"{'tiling':{'gemv':8}}", "tiling.gemv"},
        {"{'tiling':{'expert':{'N_tile':8}}}", "tiling.expert: neither"},
        {"{'tiling':{'attention':{'N_tile':8}}}", "kv_block"},
        {"{'tiling':{'attention':{'n_partitions':9}}}", "not in 1..8"},
        {"{'fusion_grouping':'gate'}", "fusion_grouping"},
        {"{'fusion_grouping':[['gate']]}", "fusion_grouping[0]"},
        {"{'fusion_grouping':[['gate',1]]}", "fusion_grouping[0][1]"},
        {"{'fusion_grouping':[['up','gate']]}", "'up', 'gate'"},
        {"{'fusion_grouping':[['gate','up'],['gate','up']]}", "[1]"},
        {"{'sm_assignment':'best'}", "sm_assignment"},
        {"{'sm_assignment':{'x':0}}", "'x' is no task id"},
        {"{'sm_assignment':{'-1':0}}", "'-1' is no task id"},
        {"{'sm_assignment':{'-0':0}}", "'-0' is no task id"},
        {"{'sm_assignment':{'0':132}}", "not in 0..131"},
        {"{'sm_assignment':{'99999':0}}", "there is no task 99999"},
        {"{'pipelining_depth':-1}", "pipelining_depth: -1"},
        {"{'pipelining_depth':65}", "not in 0..64"},
        {"{'pipelining_depth':true}", "pipelining_depth"},
        {"{'page_allocation':'best'}", "page_allocation"},
        {"{'threads_per_block':100}", "no multiple of 32"},
        {"{'threads_per_block':0}", "not in 32..1024"},
        {"{'threads_per_block':2048}", "not in 32..1024"},
        {"{'smem_bytes_per_block':232449}", "not in 0..232448"},
        {"{'smem_bytes_per_block':-1}", "smem_bytes_per_block"},
    };
    br_mega_net *n = lm_net(1, NULL);
    br_mega_lower_opts o = {.target = br_mega_target_find(BR_TEXT("h100"))};

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        br_status st = {0};
        br_mega_prog *p;

        o.config = lm_json(bad[i].config);
        if (br_mega_lower(&p, n, &o, NULL, &st) == BR_OK)
            ck_abort_msg("%s was accepted", bad[i].config);
        ck_assert_ptr_null(p);
        ck_assert_int_eq(br_code_exit(st.code), 3);
        if (!strstr(st.msg, bad[i].says) || strncmp(st.msg, "config", 6) != 0)
            ck_abort_msg("%s: '%s'", bad[i].config, st.msg);
    }
    br_mega_net_free(n);
    lm_forget();
}

TEST(schedule_split_attention_takes_one_sequence)
{
    br_mega_step step = {.batch = 2, .pos = 40, .dtype = BR_MDT_F32};
    br_mega_net *n = lm_net(1, &step);
    br_mega_lower_opts o = {
        .target = br_mega_target_find(BR_TEXT("h100")),
        .config = lm_json("{'tiling':{'attention':{'kv_block':8}}}")};
    br_status st = {0};
    br_mega_prog *p;

    ck_assert_int_eq(br_mega_lower(&p, n, &o, NULL, &st), BR_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(st.msg, "tiling.attention"));
    br_mega_net_free(n);
    lm_forget();
}

/* ---- properties ---------------------------------------------------------- */

TEST(schedule_same_inputs_same_bytes)
{
    uint64_t seed = 7;

    for (int i = 0; i < 20; i++) {
        br_mega_net *n = lm_random_net(&seed);
        const br_mega_target *t = br_mega_target_find(BR_TEXT("t4"));
        char *config = lm_random_config(&seed, n, t);
        br_mega_prog *p = lm_lower(n, "t4", config, NULL);
        br_mega_prog *q = lm_lower(n, "t4", config, NULL);

        ck_assert_str_eq(lm_text(p), lm_text(q));
        br_mega_free(p);
        br_mega_free(q);
        br_mega_net_free(n);
    }
    lm_forget();
}

static void
sound(const br_mega_prog *p, const char *config)
{
    br_mega_report r = {0};
    br_status st = {0};

    t_ok(br_mega_check(p, BR_MEGA_SOUND, &r, &st), &st);
    if (!r.ok)
        ck_abort_msg("%s: %s", config, r.errors.at[0]);
    br_mega_report_fini(&r);
}

/* Every config in range gives a program that the sound check accepts, and it
 * computes what the default config computes: the same bits, but for split
 * attention, whose sums are in another order. */
TEST_WITHIN(schedule_every_config_computes_the_same, 60)
{
    uint64_t seed = 2024;
    int rounds = t_sanitized() ? 40 : 150;

    for (int i = 0; i < rounds; i++) {
        br_mega_net *n = lm_random_net(&seed);
        const br_mega_target *t =
            br_mega_target_at(t_rand(&seed) % br_mega_target_count());
        char *config = lm_random_config(&seed, n, t);
        br_mega_lower_stats stats;
        br_mega_prog *p = lm_lower(n, t->name, config, &stats);
        br_mega_prog *q = lm_lower(n, t->name, NULL, NULL);
        size_t np, nq;
        float *a = lm_run(p, &np), *b = lm_run(q, &nq);
        double most = 0;

        ck_assert_uint_eq(np, nq);
        for (size_t k = 0; k < np; k++)
            most = fmax(most, fabs((double)a[k]));
        for (size_t k = 0; k < np; k++) {
            double allow = !stats.split_attentions  ? 0
                           : n->dtype == BR_MDT_F32 ? 1e-4 * (1 + most)
                                                    : 3e-2 * (1 + most);

            if (!(fabs((double)a[k] - (double)b[k]) <= allow))
                ck_abort_msg("round %d, element %zu: %g, not %g (%s)", i, k,
                             (double)a[k], (double)b[k], config);
        }

        sound(p, config);
        sound(q, "no config");
        br_mega_free(p);
        br_mega_free(q);
        br_mega_net_free(n);
        lm_forget();
    }
}
