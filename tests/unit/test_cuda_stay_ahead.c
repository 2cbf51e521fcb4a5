/* test_cuda_stay_ahead.c - steps that are told while the one before runs, on the emulated
 * device of tests/emu: the tokens are those of steps that are not.
 * SPDX-License-Identifier: Apache-2.0 */
#include "shape_kit.h"

#include "base/thread.h"
#include "run/sample.h"

#include <stdlib.h>
#include <string.h>

#include "t.h"

enum { SLOTS = 3, PAGES = 7, CTX = PAGES * BR_PAGE_TOKENS };

/* Slots whose tokens the device draws. */
typedef struct talk {
    const br_lm *lm;
    const uint32_t *tables[(SLOTS + 1) * BR_MAX_KV_GROUPS];
    uint32_t page[BR_MAX_KV_GROUPS][SLOTS + 1][PAGES];
    int32_t fed[SLOTS][CTX + 1]; /* and the next one */
    br_sample_params how[SLOTS];
    uint32_t n[SLOTS];
    bool yes; /* to who asks */
    bool asked;
    int64_t sleep_ns; /* before the answer */
} talk;

static bool
asks(void *arg)
{
    talk *k = arg;

    k->asked = true;
    if (k->sleep_ns)
        br_sleep_ns(k->sleep_ns);
    return k->yes;
}

static void
begin_talk(talk *k, const br_lm *lm, bool ahead)
{
    *k = (talk){.lm = lm};
    for (uint32_t g = 0; g < lm->plan->n_groups; g++)
        for (uint32_t i = 0; i < (SLOTS + 1) * PAGES; i++)
            k->page[g][i / PAGES][i % PAGES] =
                i < SLOTS * PAGES ? i * 5 % (SLOTS * PAGES) : i;
    for (uint32_t i = 0; i < (SLOTS + 1) * lm->plan->n_groups; i++)
        k->tables[i] = k->page[i % lm->plan->n_groups][i / lm->plan->n_groups];
    for (uint32_t s = 0; s < SLOTS; s++) {
        k->how[s] = way_to_draw(s);
        lm->reset(lm->ctx, s);
    }
    lm->ahead(lm->ctx, ahead ? asks : NULL, k);
}

static void
as_a_prompt(const talk *k, uint32_t slot)
{
    same_as_a_prompt(k->lm, k->tables, slot, SLOTS, k->fed[slot], k->n[slot]);
}

/* n tokens of a prompt, in one step; then one to go on from. */
static void
feed_talk(talk *k, uint32_t slot, uint32_t n)
{
    feed_slot(k->lm, k->tables, slot, k->n[slot], n, k->fed[slot]);
    k->n[slot] += n;
    k->fed[slot][k->n[slot]] = (int32_t)slot + 3;
}

/* Pages that the next row does not see are given back, as run/kv.h does. */
static void
pass(talk *k, uint32_t slot)
{
    for (uint32_t g = 0; g < k->lm->plan->n_groups; g++) {
        const int64_t window = k->lm->plan->group[g].window;
        const int64_t first = (int64_t)k->n[slot] - window + 1;

        for (int64_t i = 0; window && i < first / BR_PAGE_TOKENS; i++)
            k->page[g][slot][i] = UINT32_MAX;
    }
}

/* The next token of each of these slots. yes: it may be told ahead that the next call is
 * of the same. */
static void
say(talk *k, const char *which, bool yes)
{
    int32_t slots[SLOTS], position[SLOTS], tokens[SLOTS], got[SLOTS];
    const br_sample_params *how[SLOTS] = {NULL};
    uint32_t at[SLOTS] = {0}, n = (uint32_t)strlen(which);
    const br_step s = {n,    slots,     position, tokens,
                       NULL, k->tables, false,    NULL};
    br_status st = {0};

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t slot = (uint32_t)(which[i] - '0');

        slots[i] = (int32_t)slot;
        position[i] = (int32_t)k->n[slot]++;
        tokens[i] = k->fed[slot][position[i]];
        how[i] = &k->how[slot];
        at[i] = k->n[slot];
    }
    k->yes = yes;
    k->asked = false;
    t_ok(k->lm->draw(k->lm->ctx, &s, how, at, n, got, &st), &st);
    for (uint32_t i = 0; i < n; i++) {
        k->fed[slots[i]][k->n[slots[i]]] = got[i];
        pass(k, (uint32_t)slots[i]);
    }
}

static void
say_often(talk *k, const char *which, int times)
{
    for (int i = 0; i < times; i++)
        say(k, which, i + 1 < times);
}

static br_lm_gpu
gpu_of(const talk *k)
{
    br_lm_gpu g;

    k->lm->gpu(k->lm->ctx, &g);
    return g;
}

/* Until the next step of these is told ahead: who was asked has said yes. */
static void
promise(talk *k, const char *which)
{
    enum { TRIES = 20 }; /* a step may be over before it was time to ask */

    say(k, which, true);
    for (int i = 0; !k->asked && i < TRIES; i++)
        say(k, which, true);
    ck_assert_msg(k->asked, "nobody asked");
}

static const uint32_t begins[SLOTS] = {12, 5, 30};

/* What each slot says after its prompt, alone and none of it ahead: all that a test
 * compares with. */
static void
say_alone(talk *k, const br_lm *lm)
{
    static const char *const one[SLOTS] = {"0", "1", "2"};

    begin_talk(k, lm, false);
    for (uint32_t s = 0; s < SLOTS; s++) {
        feed_talk(k, s, begins[s]);
        while (k->n[s] + 1 < CTX)
            say(k, one[s], true);
    }
    ck_assert_uint_eq(gpu_of(k).ahead + gpu_of(k).vain, 0);
}

static void
said_the_same(const talk *k, const talk *alone)
{
    for (uint32_t s = 0; s < SLOTS; s++) {
        for (uint32_t i = 0; i <= k->n[s]; i++)
            ck_assert_msg(k->fed[s][i] == alone->fed[s][i],
                          "slot %u, token %u: %d, not %d", s, i, k->fed[s][i],
                          alone->fed[s][i]);
        as_a_prompt(k, s);
    }
}

/* A model, what its slots say alone, and others that begin. */
typedef struct at_work {
    shaped on;
    talk alone, k;
} at_work;

static at_work *
begin_work(const char *which)
{
    at_work *w = t_keep(calloc(1, sizeof *w));
    const br_lm_config c = {.tier = "cuda", .n_ctx = CTX, .n_slots = SLOTS + 1};

    t_emulate_cuda();
    w->on = open_shape("shape:toy:BF16", &c);
    say_alone(&w->alone, w->on.lm);
    begin_talk(&w->k, w->on.lm, true);
    for (; *which; which++)
        feed_talk(&w->k, (uint32_t)(*which - '0'), begins[*which - '0']);
    return w;
}

static void
end_work(at_work *w)
{
    said_the_same(&w->k, &w->alone);
    close_shape(&w->on);
    t_emulate_end();
}

/* Rows of a launch, over ends of pages, some of which end: the rest is told ahead as
 * it is. Steps ahead are counted as steps, once each. */
TEST_WITHIN(cuda_steps_ahead_draw_the_same, 240)
{
    at_work *w = begin_work("012");
    talk *k = &w->k;
    br_lm_gpu was = gpu_of(k), g;

    say_often(k, "012", 40);
    promise(k, "012");
    g = gpu_of(k);
    ck_assert_uint_gt(g.ahead, was.ahead);
    ck_assert_uint_eq(g.vain, 0);
    ck_assert_uint_le(g.ahead - was.ahead, g.resident - was.resident);
    was = g;
    say(k, "02", false); /* 1 has ended */
    g = gpu_of(k);
    ck_assert(g.ahead == was.ahead + 1 && g.resident == was.resident + 1);
    ck_assert(g.exited == was.exited && g.vain == 0);
    say(k, "02", true);
    ck_assert_uint_eq(gpu_of(k).exited, was.exited + 1);
    say_often(k, "02", 12);
    promise(k, "02");
    say(k, "2", true);
    say_often(k, "2", 12);
    ck_assert_uint_eq(gpu_of(k).vain, 0);
    said_the_same(k, &w->alone);
    say_often(k, "1", 9); /* goes on where it was */
    end_work(w);
}

/* What nobody expected after a step was told: another order, a prompt, other slots,
 * parameters, a step whose logits are looked at, nobody to be asked any more. */
TEST_WITHIN(cuda_steps_ahead_for_nothing_cost_no_token, 240)
{
    at_work *w = begin_work("12");
    talk *k = &w->k;
    br_lm_gpu g = gpu_of(k);
    uint64_t vain = g.vain;

    promise(k, "12");
    say(k, "21", true); /* another order */
    ck_assert_uint_eq(gpu_of(k).vain, ++vain);
    promise(k, "12");
    feed_talk(k, 0, begins[0]); /* a prompt */
    ck_assert_uint_eq(gpu_of(k).vain, ++vain);
    promise(k, "12");
    say(k, "02", true);
    ck_assert_uint_eq(gpu_of(k).vain, ++vain);
    promise(k, "12");
    say(k, "012", true); /* one more */
    ck_assert_uint_eq(gpu_of(k).vain, ++vain);
    promise(k, "12");
    k->how[1].top_k = k->lm->n_vocab; /* all, which is what 0 says */
    say(k, "12", true);
    ck_assert_uint_eq(gpu_of(k).vain, ++vain);
    k->how[1].top_k = 0;
    promise(k, "1");
    as_a_prompt(k, 1);
    ck_assert_uint_eq(gpu_of(k).vain, ++vain);
    promise(k, "1");
    k->lm->ahead(k->lm->ctx, NULL, NULL);
    ck_assert_uint_eq(gpu_of(k).vain, ++vain);
    say_often(k, "012", 9);
    ck_assert_uint_eq(gpu_of(k).vain, vain);
    end_work(w);
}

/* Of the same slot and position, with another token than was drawn. */
TEST_WITHIN(cuda_a_step_ahead_is_of_the_token_that_was_drawn, 240)
{
    at_work *w = begin_work("0");
    talk *k = &w->k;
    uint32_t at;
    int32_t other;

    promise(k, "0");
    at = k->n[0];
    other = (k->fed[0][at] + 1) % k->lm->n_vocab;
    k->fed[0][at] = other;
    say_often(k, "0", 5);
    ck_assert_uint_eq(gpu_of(k).vain, 1);
    ck_assert_int_eq(k->fed[0][at], other);
    as_a_prompt(k, 0);
    k->n[0] = 0;
    k->n[1] = k->n[2] = 0;
    feed_talk(k, 0, begins[0]);
    feed_talk(k, 1, begins[1]);
    feed_talk(k, 2, begins[2]);
    say_often(k, "0", 5);
    end_work(w);
}

/* A host that is late: the launch has ended when the head is written, and the one that is
 * made again begins with it. Or it ended behind the step ahead, before somebody asked. */
TEST_WITHIN(cuda_a_step_ahead_may_come_late, 240)
{
    enum {
        LONG_NS = 150000000,
        TRIES = 4 /* it may be kept from looking, too */
    };
    at_work *w = begin_work("012");
    talk *k = &w->k;
    br_lm_gpu was, g;

    promise(k, "12");
    was = g = gpu_of(k);
    for (int i = 0; i < TRIES && g.entered == was.entered; i++) {
        k->sleep_ns = LONG_NS;
        promise(k, "12");
        k->sleep_ns = 0;
        say(k, "12", false);
        g = gpu_of(k);
    }
    ck_assert(g.entered > was.entered && g.ahead > was.ahead && g.vain == 0);
    was = g;
    for (int i = 0; i < TRIES && g.entered == was.entered; i++) {
        promise(k, "12");
        br_sleep_ns(LONG_NS);
        say_often(k, "12", 2);
        g = gpu_of(k);
    }
    ck_assert(g.entered > was.entered && g.ahead > was.ahead && g.vain == 0);
    /* That never ran: whose turn is it in draws? */
    for (int i = 0; i < 4; i++) {
        k->sleep_ns = LONG_NS;
        promise(k, i % 2 ? "01" : "10");
        k->sleep_ns = 0;
        say_often(k, i % 2 ? "10" : "01", 4);
    }
    ck_assert_uint_eq(gpu_of(k).vain, 4);
    end_work(w);
}

/* Pages that a slot gives back behind a window: a step ahead does not look at them. */
TEST_WITHIN(cuda_steps_ahead_leave_a_window_behind, 240)
{
    const br_lm_config c = {.tier = "cuda", .n_ctx = CTX, .n_slots = SLOTS + 1};
    talk *alone = t_keep(calloc(2, sizeof *alone)), *k = alone + 1;
    br_status st = {0};
    br_lm_model *r;
    br_model *m;
    bool windows = false;

    t_emulate_cuda();
    t_ok(br_model_open(&m, t_repo("tests/data/logits/gpt-oss.gguf"), &st), &st);
    t_ok(br_lm_model_open(&r, m, &c, &st), &st);
    say_alone(alone, br_lm_model_lm(r));
    begin_talk(k, br_lm_model_lm(r), true);
    for (uint32_t s = 0; s < SLOTS; s++)
        feed_talk(k, s, begins[s]);
    say_often(k, "012", 60);
    ck_assert(gpu_of(k).ahead >= 60 - 4 - SLOTS * 4 && gpu_of(k).vain == 0);
    for (uint32_t g = 0; g < k->lm->plan->n_groups; g++)
        windows = windows || k->page[g][2][0] == UINT32_MAX;
    ck_assert(windows);
    said_the_same(k, alone);
    br_lm_model_close(r);
    br_model_close(m);
    t_emulate_end();
}

/* Of a slot's state nothing is taken back, so nobody is asked. */
TEST_WITHIN(cuda_no_step_is_ahead_where_states_are, 240)
{
    const br_lm_config c = {.tier = "cuda", .n_ctx = CTX, .n_slots = SLOTS + 1};
    br_status st = {0};
    br_lm_model *r;
    br_model *m;

    t_emulate_cuda();
    t_ok(br_model_open(&m, t_repo("tests/data/logits/mamba2.gguf"), &st), &st);
    t_ok(br_lm_model_open(&r, m, &c, &st), &st);
    ck_assert(br_lm_model_lm(r)->draw && !br_lm_model_lm(r)->ahead);
    br_lm_model_close(r);
    br_model_close(m);
    t_emulate_end();
}

/* A step is what was drawn before; the last one of a repetition is not followed. */
TEST_WITHIN(cuda_bench_tells_steps_ahead, 120)
{
    const char *const args[] = {"bench",  "shape:toy:BF16",
                                "--tier", "cuda",
                                "-p",     "0",
                                "-n",     "12",
                                "-d",     "1",
                                "-r",     "1",
                                "-b",     "2",
                                "--json", NULL};
    const char *at;
    t_proc r;

    t_run_emulated(&r, args, NULL, 0);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    at = strstr(r.out, "\"ahead\":");
    ck_assert_msg(at != NULL, "%s", r.out);
    ck_assert_int_ge(atoi(at + strlen("\"ahead\":")), 4);
    ck_assert_msg(strstr(at, "\"vain\": 0,") != NULL, "%s", at);
}
