/* test_plan.c - how many rows a step has: what steps were seen to cost.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/plan.h"

#include "t.h"

/* 5 ms, 0.2 ms a row that decodes, 0.05 ms one of prefill at position 0, and
 * as much again every 1,000 positions. */
static int64_t
step_ns(const br_step_rows *r)
{
    return 5000000 + 200000 * (int64_t)r->decode + 50000 * (int64_t)r->prefill +
           (int64_t)(50 * r->positions);
}

TEST(plan_learns_what_rows_cost)
{
    br_steptime t = {0};
    double at = 0;

    /* First what decoding costs: a step that decodes alone. */
    ck_assert_uint_eq(br_plan_budget(&t, 1, 1, BR_QOS_INTERACTIVE, 0, 512), 0);
    t = (br_steptime){.n = 1, .most = 1};
    ck_assert_uint_eq(br_plan_budget(&t, 1, 1, BR_QOS_INTERACTIVE, 0, 512),
                      BR_PLAN_MIN_ROWS);
    t = (br_steptime){0};
    for (uint32_t i = 0; i < 60; i++) {
        br_step_rows r = {.decode = 1 + i % 8};

        br_steptime_note(&t, &r, step_ns(&r));
    }
    for (uint32_t i = 0; i < 30; i++, at += 40) {
        br_step_rows r = {1 + i % 8, 40, 40 * at, false};

        br_steptime_note(&t, &r, step_ns(&r));
    }
    ck_assert(t.base_ns > 4.9e6 && t.base_ns < 5.1e6);
    ck_assert(t.row_ns > 1.9e5 && t.row_ns < 2.1e5);
    ck_assert(br_steptime_prefill(&t, 0) > 4e4 &&
              br_steptime_prefill(&t, 0) < 6e4);
    ck_assert(br_steptime_prefill(&t, 9000) > 4.5e5 &&
              br_steptime_prefill(&t, 9000) < 5.5e5);
    /* Such a row is taken for half of one that decodes at least; and rows that
     * no step had are tried one after another. */
    ck_assert_uint_eq(br_plan_budget(&t, 5, 1, BR_QOS_INTERACTIVE, 5e4, 512),
                      4);
    for (uint32_t i = 0; i < 30; i++) {
        br_step_rows r = {5, 4, 0, true};

        r.prefill = br_plan_budget(&t, 5, 1, BR_QOS_INTERACTIVE, 5e4, 512);
        br_steptime_note(&t, &r, step_ns(&r));
    }
    ck_assert_uint_eq(br_plan_budget(&t, 5, 1, BR_QOS_INTERACTIVE, 5e4, 512),
                      14);
    ck_assert_uint_eq(br_plan_budget(&t, 5, 9, BR_QOS_INTERACTIVE, 5e4, 20),
                      15);
    ck_assert_uint_ge(br_plan_budget(&t, 0, 1, BR_QOS_COUNT, 5e4, 4096), 890);
    /* The budget is kept where it is a few rows, or one; and where those that
     * there should be at least are dear, half of it waits for pauses. */
    ck_assert_uint_eq(br_plan_budget(&t, 1, 1, BR_QOS_INTERACTIVE, 1e6, 512),
                      8);
    ck_assert_uint_eq(br_plan_budget(&t, 1, 1, BR_QOS_INTERACTIVE, 3e6, 512),
                      4);
    ck_assert_uint_eq(br_plan_budget(&t, 1, 1, BR_QOS_INTERACTIVE, 6e6, 512),
                      2);
    ck_assert_uint_eq(br_plan_budget(&t, 1, 1, BR_QOS_INTERACTIVE, 6e7, 512),
                      1);
}

/* One step in 25 takes three times as long: the 99th of a hundred still keeps
 * what a standard request is promised. */
TEST(plan_keeps_its_budget_beside_neighbours)
{
    enum { N = 2000 };
    br_steptime t = {0};
    int late = 0, steps = 0;
    uint64_t rows = 0;

    for (uint32_t i = 0; i < N; i++) {
        br_step_rows r = {.decode = 4};
        double row = br_steptime_prefill(&t, 100);
        int64_t ns;

        r.prefill = i < 20 ? 0
                           : br_plan_budget(&t, r.decode, 1, BR_QOS_STANDARD,
                                            row, 4096);
        r.positions = 100.0 * r.prefill;
        ns = step_ns(&r) * (i % 25 == 7 ? 3 : 1);
        br_steptime_note(&t, &r, ns);
        if (i < 200 || !r.prefill)
            continue;
        steps++;
        rows += r.prefill;
        late += ns - step_ns(&(br_step_rows){.decode = 4}) >
                BR_PLAN_STANDARD_MS * INT64_C(1000000);
    }
    ck_assert_msg(late * 100 <= steps, "%d of %d steps late", late, steps);
    ck_assert_uint_gt(rows / (uint64_t)steps, 256); /* and it gets on */
}

/* A server that has just begun and knows nothing of pauses: one of 50 ms, as the
 * kernel makes for others, breaks no promise. */
TEST(plan_leaves_room_for_a_pause)
{
    br_steptime t = {0};
    uint64_t rows = 0;

    for (uint32_t i = 0; i < 110; i++) {
        br_step_rows r = {.decode = 4};
        double row = br_steptime_prefill(&t, 100);
        int64_t alone = step_ns(&r), ns;

        if (i >= 20)
            r.prefill = br_plan_budget(&t, 4, 1, BR_QOS_STANDARD, row, 4096);
        r.positions = 100.0 * r.prefill;
        rows += r.prefill;
        ns = step_ns(&r) + (i % 30 == 29 ? 50000000 : 0);
        br_steptime_note(&t, &r, ns);
        ck_assert_int_le(ns - alone, BR_PLAN_STANDARD_MS * INT64_C(1000000));
    }
    ck_assert_uint_gt(rows / 90, 256); /* and prefill gets on */
    /* where decoding takes long, half of the time is prefill's */
    t = (br_steptime){.base_ns = 8e7, .n = 1};
    ck_assert_uint_eq(br_plan_budget(&t, 1, 1, BR_QOS_STANDARD, 1e6, 512), 80);
    t.base_ns = 3e8;
    ck_assert_uint_eq(br_plan_budget(&t, 1, 1, BR_QOS_STANDARD, 1e6, 512), 90);
}

/* Milliseconds of a model whose weights take long to read. */
static int64_t
slow_step_ns(const br_step_rows *r)
{
    return (25 + 5 * (int64_t)r->decode + 3 * (int64_t)r->prefill) * 1000000;
}

/* Sixteen decode, and when all are done sixteen prompts are read: what is known
 * of decoding is one kind of step. The first that decodes beside the rest of the
 * prompts is promised as much as ever. */
TEST(plan_is_not_misled_by_steps_that_are_alike)
{
    br_steptime t = {0};
    br_step_rows r = {.decode = 16};
    uint32_t rows = 0;

    for (int i = 0; i < 40; i++)
        br_steptime_note(&t, &r, slow_step_ns(&r));
    r.decode = 0;
    for (int i = 0; i < 60; i++) {
        double row = br_steptime_prefill(&t, 100);

        r.prefill = br_plan_budget(&t, 0, 1, BR_QOS_COUNT, row, 512);
        ck_assert_int_le(slow_step_ns(&r), INT64_C(400000000));
        rows += r.prefill;
        r.positions = 100.0 * r.prefill;
        br_steptime_note(&t, &r, slow_step_ns(&r));
    }
    ck_assert_uint_ge(rows,
                      60 * 24); /* reading 8 at a time takes twice as long */
    r = (br_step_rows){.decode = 1};
    br_steptime_note(&t, &r, slow_step_ns(&r)); /* now and then, alone */
    rows = br_plan_budget(&t, 1, 1, BR_QOS_STANDARD,
                          br_steptime_prefill(&t, 100), 512);
    ck_assert_msg(rows >= 8 && 3 * rows <= BR_PLAN_STANDARD_MS, "%u rows",
                  rows);
}

/* The same, with prompts so short that a step of one is quicker than what was
 * taken for the price of any step. Their rows are not taken for free: the first
 * step beside a stream keeps its budget. */
TEST(plan_knows_what_short_prompts_cost_after_steps_alike)
{
    br_steptime t = {0};
    br_step_rows r = {.decode = 16};
    uint32_t rows;

    for (int i = 0; i < 40; i++)
        br_steptime_note(&t, &r, slow_step_ns(&r));
    r = (br_step_rows){0, 8, 800, false};
    for (int i = 0; i < 60; i++)
        br_steptime_note(&t, &r, slow_step_ns(&r));
    r = (br_step_rows){.decode = 1};
    br_steptime_note(&t, &r, slow_step_ns(&r));
    rows = br_plan_budget(&t, 1, 1, BR_QOS_STANDARD,
                          br_steptime_prefill(&t, 100), 512);
    ck_assert_msg(rows >= 8 && 3 * rows <= BR_PLAN_STANDARD_MS, "%u rows",
                  rows);
}

/* Pauses, of one step in ten, are not learned from; what steps take from now on
 * is. */
TEST(plan_tells_pauses_from_slower_steps)
{
    br_steptime t = {0};
    br_step_rows r = {.decode = 4};
    double before;

    for (int i = 0; i < 400; i++) {
        r.decode = 1 + (uint32_t)i % 8;
        br_steptime_note(&t, &r, step_ns(&r) + (i % 10 == 9 ? 50000000 : 0));
    }
    ck_assert(t.base_ns > 4.9e6 && t.base_ns < 5.1e6);
    ck_assert(t.row_ns > 1.9e5 && t.row_ns < 2.1e5);
    r = (br_step_rows){1, 40, 0, false};
    for (int i = 0; i < 400; i++)
        br_steptime_note(&t, &r, step_ns(&r) + (i % 10 == 9 ? 50000000 : 0));
    before = br_steptime_prefill(&t, 0);
    ck_assert(before > 4.5e4 && before < 5.5e4);
    for (int i = 0; i < 100; i++)
        br_steptime_note(&t, &r, 3 * step_ns(&r));
    ck_assert(br_steptime_prefill(&t, 0) > 2 * before);
}

/* Beside an interactive stream: who reads has a row at least, though nothing is
 * known of what rows that decode cost; and that is soon found out. */
TEST(plan_begins_beside_an_interactive_stream)
{
    br_steptime t = {0};
    br_step_rows r = {.decode = 1};

    for (int i = 0; i < 3; i++)
        br_steptime_note(&t, &r, 40000000);
    ck_assert_uint_ge(br_plan_budget(&t, 1, 14, BR_QOS_INTERACTIVE, 2e6, 512),
                      13);
    ck_assert_uint_eq(br_plan_budget(&t, 2, 13, BR_QOS_INTERACTIVE, 2e6, 512),
                      0);
    r.decode = 2;
    br_steptime_note(&t, &r, 47000000);
    ck_assert(t.row_ns > 6e6 && t.row_ns < 8e6);
    ck_assert_uint_gt(br_plan_budget(&t, 3, 12, BR_QOS_INTERACTIVE, 2e6, 512),
                      0);
}

/* Rows go by eights: 16 run, a 17th row would take 8 ms more. It is tried in fewer
 * than one step of a hundred; and had when it costs no more than others. */
TEST(plan_finds_out_where_rows_are_dear)
{
    br_steptime t = {0};
    int dear = 0;
    uint32_t rows = 0;

    for (int i = 0; i < 3000; i++) {
        br_step_rows r = {.decode = 4, .interactive = true};
        uint32_t n;

        r.prefill = br_plan_budget(&t, 4, 12, BR_QOS_INTERACTIVE,
                                   br_steptime_prefill(&t, 0), 512);
        n = r.decode + r.prefill;
        if (i >= 1000)
            rows = BR_MAX(rows, n);
        else if (n > 16)
            dear++;
        br_steptime_note(
            &t, &r,
            9000000 + INT64_C(200000) * n +
                (i < 1000 ? INT64_C(8000000) * ((n - 1) / 8) : 8000000));
    }
    ck_assert_int_ge(dear, 1);
    ck_assert_int_le(dear, 8);
    ck_assert_uint_gt(rows, 20);
}

/* The machine pauses in the very step that has a row more than any before it: that
 * does not make 17 rows dear for the next 512 steps. */
TEST(plan_doubts_a_step_that_was_slow_once)
{
    br_steptime t = {0};
    bool paused = false;
    int more = 0;

    for (int i = 0; i < 200; i++) {
        br_step_rows r = {.decode = 4, .interactive = true};
        uint32_t n;

        r.prefill = br_plan_budget(&t, 4, 12, BR_QOS_INTERACTIVE,
                                   br_steptime_prefill(&t, 0), 512);
        n = r.decode + r.prefill;
        br_steptime_note(&t, &r,
                         9000000 + INT64_C(200000) * n +
                             (n == 17 && !paused ? 3000000 : 0));
        paused |= n == 17;
        more += n > 17;
    }
    ck_assert(paused);
    ck_assert_int_ge(more, 100);
}

/* What many rows cost while the machine was slow is forgotten when few of them
 * are quick again. */
TEST(plan_forgets_a_slow_machine)
{
    br_steptime t = {0};
    br_step_rows r = {.decode = 4};

    for (int i = 0; i < 40; i++)
        br_steptime_note(&t, &r, step_ns(&r));
    r.prefill = 10;
    for (int i = 0; i < 30; i++)
        br_steptime_note(&t, &r, 3 * step_ns(&r));
    ck_assert(br_steptime_prefill(&t, 0) > 5e5);
    r.prefill = 2;
    for (int i = 0; i < 50; i++)
        br_steptime_note(&t, &r, step_ns(&r));
    ck_assert(br_steptime_prefill(&t, 0) < 4e5);
}

TEST(plan_shares_rows_by_class)
{
    br_plan_want w[] = {{.rows = 10, .qos = BR_QOS_INTERACTIVE},
                        {.rows = 1000, .qos = BR_QOS_STANDARD},
                        {.rows = 1000, .qos = BR_QOS_BATCH}};

    br_plan_share(w, 3, 210);
    ck_assert_uint_eq(w[0].give, 10);
    ck_assert_uint_eq(w[2].give, 10);
    ck_assert_uint_eq(w[1].give, 190);
}

TEST(plan_lets_everybody_have_a_row_now_and_then)
{
    br_plan_want w[] = {{.rows = 1000, .qos = BR_QOS_INTERACTIVE},
                        {.rows = 1000, .qos = BR_QOS_BATCH}};
    uint32_t batch = 0;

    for (int i = 0; i < 17; i++) {
        br_plan_share(w, 2, 8);
        batch += w[1].give;
    }
    ck_assert_uint_ge(batch, 7);
}
