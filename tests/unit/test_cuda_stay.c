/* test_cuda_stay.c - steps that a CUDA device takes from the host's memory, one
 * after another in a launch that stays, on the emulated device of tests/emu.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_kit.h"
#include "shape_kit.h"

#include "base/thread.h"
#include "drv/cuda/cuda_api.h"
#include "run/sample.h"
#include "run/tier_diff.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t.h"

enum { SLOTS = 3, PAGES = 4, CTX = PAGES * BR_PAGE_TOKENS };

/* Slots whose next token the device draws, or the host from the logits. */
typedef struct talk {
    const br_lm *lm;
    const uint32_t *tables[(SLOTS + 1) * BR_MAX_KV_GROUPS];
    uint32_t page[SLOTS + 1][PAGES];
    int32_t fed[SLOTS][CTX];
    br_sample_params how[SLOTS];
    int32_t token[SLOTS], said[64];
    uint32_t n[SLOTS], n_said;
    float *logits;
    bool by_host;
} talk;

/* Pages in an order of their own: a launch that stays has to be told each. */
static void
begin_talk(talk *k, const br_lm *lm, bool by_host)
{
    *k = (talk){.lm = lm, .by_host = by_host};
    k->logits = t_keep(calloc(SLOTS * (size_t)lm->n_vocab, sizeof *k->logits));
    for (uint32_t i = 0; i < (SLOTS + 1) * PAGES; i++)
        k->page[i / PAGES][i % PAGES] = i * (by_host ? 5 : 7) % (SLOTS * PAGES);
    for (uint32_t i = 0; i < PAGES; i++)
        k->page[SLOTS][i] = SLOTS * PAGES + i;
    for (uint32_t i = 0; i < (SLOTS + 1) * lm->plan->n_groups; i++)
        k->tables[i] = k->page[i / lm->plan->n_groups];
    for (uint32_t s = 0; s < SLOTS; s++) {
        k->how[s] = way_to_draw(s);
        lm->reset(lm->ctx, s);
    }
}

static void
as_a_prompt(const talk *k, uint32_t slot)
{
    same_as_a_prompt(k->lm, k->tables, slot, SLOTS, k->fed[slot], k->n[slot]);
}

/* n tokens of a prompt, in one step. */
static void
feed_talk(talk *k, uint32_t slot, uint32_t n)
{
    feed_slot(k->lm, k->tables, slot, k->n[slot], n, k->fed[slot]);
    k->n[slot] += n;
    k->token[slot] = (int32_t)slot + 3;
}

static int32_t
drawn_by_host(const talk *k, uint32_t slot, float *logits)
{
    br_status st = {0};
    br_sampler *s;
    int32_t id;

    t_ok(br_sampler_new(&s, k->lm->n_vocab, CTX, &k->how[slot], &st), &st);
    t_ok(br_sampler_pick(s, logits, k->n[slot], &id, &st), &st);
    br_sampler_free(s);
    return id;
}

/* The next token of each of these slots. */
static void
say(talk *k, const char *which)
{
    int32_t slots[SLOTS], position[SLOTS], tokens[SLOTS], got[SLOTS];
    const br_sample_params *how[SLOTS];
    uint32_t at[SLOTS], n = (uint32_t)strlen(which);
    const br_step s = {n,    slots,     position, tokens,
                       NULL, k->tables, false,    NULL};
    br_status st = {0};

    for (uint32_t i = 0; i < n; i++) {
        const uint32_t slot = (uint32_t)(which[i] - '0');

        slots[i] = (int32_t)slot;
        position[i] = (int32_t)k->n[slot]++;
        tokens[i] = k->fed[slot][position[i]] = k->token[slot];
        how[i] = &k->how[slot];
        at[i] = k->n[slot];
    }
    if (k->by_host)
        t_ok(k->lm->step(k->lm->ctx, &s, k->logits, &st), &st);
    else
        t_ok(k->lm->draw(k->lm->ctx, &s, how, at, n, got, &st), &st);
    for (uint32_t i = 0; i < n; i++) {
        if (k->by_host)
            got[i] = drawn_by_host(k, (uint32_t)slots[i],
                                   k->logits + i * (size_t)k->lm->n_vocab);
        k->token[slots[i]] = got[i];
        k->said[k->n_said++] = got[i];
    }
}

static void
said_the_same(const talk *device, const talk *host)
{
    ck_assert_uint_eq(host->n_said, device->n_said);
    for (uint32_t i = 0; i < host->n_said; i++)
        ck_assert_msg(host->said[i] == device->said[i], "token %u: %d, not %d",
                      i, device->said[i], host->said[i]);
}

static br_lm_gpu
gpu_of(const br_lm *lm)
{
    br_lm_gpu g;

    lm->gpu(lm->ctx, &g);
    return g;
}

static void
say_often(talk *k, const char *which, int times)
{
    for (int i = 0; i < times; i++)
        say(k, which);
}

/* Alone, over the end of a page; in company, of others, in another order; prompts
 * and steps whose logits are looked at in between; a pause that is longer than a
 * launch's patience. */
static void
all_kinds(talk *k)
{
    const br_lm *lm = k->lm;
    br_lm_gpu g;

    feed_talk(k, 0, 12);
    say_often(k, "0", 9);
    g = gpu_of(lm);
    if (!k->by_host) /* three steps until it is seen that they are alike */
        ck_assert_msg(g.resident == 6 && g.entered >= 1 && g.exited == 0,
                      "%d %d %d", (int)g.resident, (int)g.entered,
                      (int)g.exited);
    feed_talk(k, 1, 5);
    feed_talk(k, 2, 30);
    if (!k->by_host)
        ck_assert_uint_eq(gpu_of(lm).exited, 1);
    say(k, "2");
    say_often(k, "12", 5);
    say(k, "21");
    say(k, "0");
    usleep(100000);
    say(k, "1");
    lm->reset(lm->ctx, 2); /* a slot begins anew, with another's pages */
    k->n[2] = 0;
    feed_talk(k, 2, 3);
    say(k, "20");
    say(k, "20");
    g = gpu_of(lm);
    if (!k->by_host)
        ck_assert(g.resident == 14 && g.entered >= 6 && g.exited == 4);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        as_a_prompt(k, slot);
}

static void
same_tokens(const char *spec)
{
    br_lm_config c = {.tier = "cuda", .n_ctx = CTX, .n_slots = SLOTS + 1};
    talk host, device;

    shaped on = open_shape(spec, &c);
    begin_talk(&host, on.lm, true);
    all_kinds(&host);
    ck_assert_uint_eq(gpu_of(on.lm).entered, 0);
    begin_talk(&device, on.lm, false);
    all_kinds(&device);
    said_the_same(&device, &host);
    close_shape(&on);
}

TEST_WITHIN(cuda_a_launch_that_stays_draws_what_the_host_draws, 240)
{
    t_emulate_cuda();
    same_tokens("shape:llama-256:BF16");
    t_emulate_end();
}

/* A draw has as many rows as there are multiprocessors: of more, one after the
 * other. What a step brings of draws has room for as many, too. */
TEST_WITHIN(cuda_more_rows_than_multiprocessors_are_drawn, 240)
{
    br_lm_config c = {.tier = "cuda", .n_ctx = CTX, .n_slots = SLOTS + 1};
    talk k[2];

    setenv("BR_EMU_SM", "2", 1);
    t_emulate_cuda();
    shaped on = open_shape("shape:llama-256:BF16", &c);
    for (int i = 0; i < 2; i++) {
        begin_talk(&k[i], on.lm, i == 1);
        for (uint32_t s = 0; s < SLOTS; s++)
            feed_talk(&k[i], s, 5);
        say_often(&k[i], "1", 5);
        say_often(&k[i], "012", 5);
        say_often(&k[i], "20", 5);
    }
    ck_assert_uint_eq(gpu_of(on.lm).resident, 4); /* of fewer rows */
    said_the_same(&k[0], &k[1]);
    close_shape(&on);
    t_emulate_end();
}

/* A driver that has no memory for the launch, with steps before it in ordinary
 * ways: the step is an ordinary one, and so are all after it. */
TEST_WITHIN(cuda_a_launch_that_is_refused_costs_no_token, 240)
{
    br_lm_config c = {.tier = "cuda", .n_ctx = CTX, .n_slots = SLOTS + 1};
    talk k[2];

    t_emulate_cuda();
    shaped on = open_shape("shape:llama-256:BF16", &c);
    for (int i = 0; i < 2; i++) {
        begin_talk(&k[i], on.lm, i == 0);
        feed_talk(&k[i], 1, 5);
        feed_talk(&k[i], 2, 5);
        say_often(&k[i], "12", 6); /* which stays */
        ck_assert_uint_eq(gpu_of(on.lm).resident, i == 0 ? 0 : 3);
        setenv("BR_EMU_NO_LOOP", "1", 1);
        say_often(&k[i], "1", 9);
        unsetenv("BR_EMU_NO_LOOP");
        say_often(&k[i], "1", 6);
        say_often(&k[i], "12", 3); /* that launch is still there */
    }
    ck_assert_uint_eq(gpu_of(on.lm).resident, 6);
    said_the_same(&k[1], &k[0]);
    close_shape(&on);
    t_emulate_end();
}

/* The token after `token` at a slot's position, by a launch that stays. */
static int32_t
draw_one(const br_lm *lm, int32_t slot, int32_t position, int32_t token,
         const uint32_t *const *tables)
{
    br_sample_params greedy = br_sample_defaults();
    const br_sample_params *how[] = {&greedy};
    const uint32_t at[] = {(uint32_t)position + 1};
    const br_step s = {1, &slot, &position, &token, NULL, tables, false, NULL};
    br_status st = {0};
    int32_t got;

    greedy.temperature = 0;
    t_ok(lm->draw(lm->ctx, &s, how, at, 1, &got, &st), &st);
    return got;
}

/* A slot that begins with more pages than a step brings (found in the cache of
 * beginnings): they are sent before it, with the same bits as in a step of any
 * rows. */
TEST_WITHIN(cuda_a_slot_may_begin_with_many_pages, 240)
{
    enum { N = 140, FED = 40, AT = (N - 1) * BR_PAGE_TOKENS + 7 };
    const br_lm_config c = {
        .tier = "cuda", .n_ctx = N * BR_PAGE_TOKENS, .n_slots = 4};
    uint32_t page[N] = {0}, fed[] = {7, 9, 8};
    const uint32_t *tables[4 * BR_MAX_KV_GROUPS];
    int32_t slot[FED], position[FED], tokens[FED], want[FED] = {0};
    br_step s = {FED, slot, position, tokens, want, tables, false, NULL};
    br_status st = {0};
    float *all, *few;

    t_emulate_cuda();
    shaped on = open_shape("shape:llama-256:BF16", &c);
    const size_t bytes = (size_t)on.lm->n_vocab * sizeof *all;
    all = t_keep(malloc(bytes));
    few = t_keep(malloc(bytes));
    for (uint32_t i = 0; i < 4 * on.lm->plan->n_groups; i++)
        tables[i] = i / on.lm->plan->n_groups == 1 ? fed : page;
    for (int i = 0; i < FED; i++) {
        slot[i] = 1;
        position[i] = i;
        tokens[i] = i * 37 % on.lm->n_vocab;
    }
    t_ok(on.lm->step(on.lm->ctx, &s, NULL, &st), &st);
    page[N - 4] = 8, page[N - 3] = 7, page[N - 2] = 9,
             page[N - 1] = 5; /* page 0 is empty */
    slot[0] = 0, slot[1] = 1;
    position[0] = AT, position[1] = 1; /* the same key again */
    want[0] = 1;
    s.n_rows = 1;
    t_ok(on.lm->step(on.lm->ctx, &s, few, &st), &st);
    slot[0] = 2;
    s.n_rows = 2;
    t_ok(on.lm->step(on.lm->ctx, &s, all, &st), &st);
    ck_assert_mem_eq(few, all, bytes);
    for (int i = 0; i < 5; i++)
        draw_one(on.lm, 1, 1, tokens[1], tables);
    ck_assert_uint_eq(gpu_of(on.lm).resident, 2);
    ck_assert_int_eq(draw_one(on.lm, 3, AT, tokens[0], tables),
                     (int32_t)br_argmax(all, (uint32_t)on.lm->n_vocab));
    ck_assert_uint_eq(gpu_of(on.lm).resident, 3);
    t_ok(on.lm->step(on.lm->ctx, &s, few, &st), &st);
    ck_assert_mem_eq(few, all, bytes); /* its key went where the list says */
    close_shape(&on);
    t_emulate_end();
}

/* ---- behind an engine ---------------------------------------------------- */

enum { LONG = 40 };

/* An engine with its model. */
typedef struct host {
    shaped on;
    ek k;
} host;

static host
open_host_within(uint32_t timeout_s)
{
    const br_lm_config c = {
        .tier = "cuda", .n_ctx = 128, .n_slots = 3, .gpu_timeout_s = timeout_s};
    host h;

    h.on = open_shape("shape:llama-256:BF16", &c);
    ek_open_on(&h.k, shape_words(), (br_engine_config){.lm = h.on.lm});
    return h;
}

static host
open_host(void)
{
    return open_host_within(0);
}

static void
close_host(host *h)
{
    ek_close(&h->k);
    close_shape(&h->on);
}

static br_lm_gpu
gpu_of_engine(const host *h)
{
    br_engine_stats s;

    br_engine_stats_get(h->k.e, &s);
    return s.gpu;
}

/* A request with tokens of this vocabulary. */
static void
ask(host *h, ek_req *r, uint64_t seed, int64_t max_tokens, int64_t deadline_ns)
{
    ek_prompt(r, 10, seed);
    for (uint32_t i = 0; i < r->n_prompt; i++)
        r->prompt[i] %= 256;
    br_request_desc d = ek_desc(r, max_tokens);
    d.sample.temperature = seed % 2 ? 0.8f : 0;
    d.sample.seed = seed;
    d.deadline_ns = deadline_ns;
    ek_submit(&h->k, r, &d);
}

static void
until(host *h, const ek_req *r, uint32_t n_out)
{
    while (!r->over && r->n_out < n_out)
        if (br_engine_drain(h->k.e, 1) == 0)
            (void)br_engine_wait(h->k.e, 100000000);
    ck_assert(!r->over);
}

static void
alone(host *h, ek_req *r, uint64_t seed)
{
    ask(h, r, seed, LONG, 0);
    ek_await(&h->k, &r, 1);
    ck_assert_uint_eq(r->n_out, LONG);
}

static void
same_answer(const ek_req *a, const ek_req *b)
{
    ck_assert_uint_le(b->n_out, a->n_out);
    ck_assert_mem_eq(a->out, b->out, b->n_out * sizeof *a->out);
}

/* One stream decodes in a launch that stays; others come, end, are cancelled, run
 * out of time or are held: it gets its tokens, and the launch comes back. */
TEST_WITHIN(cuda_an_engine_stays_while_streams_come_and_go, 240)
{
    ek_req *first = t_keep(calloc(8, sizeof *first)), *r = first + 2;

    t_emulate_cuda();
    host h = open_host();
    alone(&h, &first[0], 2);
    br_lm_gpu g = gpu_of_engine(&h), was = g;
    ck_assert_uint_ge(g.resident, LONG - 8);
    ck_assert(g.entered >= 1 && g.submit_ns > 0);
    ck_assert(g.ahead >= LONG / 2 && g.vain == 0);
    ask(&h, &r[0], 2, LONG, 0);
    until(&h, &r[0], 8);
    ask(&h, &r[1], 3, 3, 0); /* comes and ends */
    ek_await(&h.k, &(ek_req *){&r[1]}, 1);
    g = gpu_of_engine(&h);
    ck_assert_uint_gt(g.exited, was.exited);
    until(&h, &r[0], r[0].n_out + 3);
    ask(&h, &r[2], 5, 100, 0); /* is cancelled */
    until(&h, &r[2], 2);
    br_engine_cancel(h.k.e, r[2].id);
    ek_await(&h.k, &(ek_req *){&r[2]}, 1);
    ask(&h, &r[3], 7, 100, br_now_ns() + 1000000000); /* has not the time */
    ek_await(&h.k, &(ek_req *){&r[3]}, 1);
    was = gpu_of_engine(&h);
    br_engine_hold(h.k.e, r[0].id, true); /* nobody decodes */
    usleep(100000);
    br_engine_hold(h.k.e, r[0].id, false);
    ek_await(&h.k, &(ek_req *){&r[0]}, 1);
    same_answer(&first[0], &r[0]);
    ck_assert_uint_eq(r[0].n_out, LONG);
    alone(&h, &r[4], 2);
    same_answer(&first[0], &r[4]);
    ck_assert_uint_gt(gpu_of_engine(&h).resident, was.resident + LONG - 8);
    alone(&h, &first[1], 5);
    same_answer(&first[1], &r[2]);
    close_host(&h);
    t_emulate_end();
}

/* Copies of one model wait for what another has under way: a launch that stays ends
 * within a step of another's being loaded, or asked, and comes back when that is a
 * while ago. */
TEST_WITHIN(cuda_a_launch_makes_way_for_another_model, 240)
{
    enum { QUIET = 32 };
    const br_lm_config c = {.tier = "cuda", .n_ctx = CTX, .n_slots = SLOTS + 1};
    talk k, l;

    t_emulate_cuda();
    shaped on = open_shape("shape:llama-256:BF16", &c);
    begin_talk(&k, on.lm, false);
    say_often(&k, "0", 6);
    ck_assert_uint_eq(gpu_of(on.lm).resident, 3);
    shaped other = open_shape("shape:toy:BF16", &c);
    say_often(&k, "0", QUIET);
    br_lm_gpu g = gpu_of(on.lm);
    ck_assert(g.resident == 3 && g.exited == 1);
    say_often(&k, "0", 3);
    ck_assert_uint_eq(gpu_of(on.lm).resident, 6);
    begin_talk(&l, other.lm, false);
    say_often(&l, "1", 6);
    ck_assert_uint_eq(gpu_of(other.lm).resident, 0);
    say(&k, "0");
    g = gpu_of(on.lm);
    ck_assert(g.resident == 6 && g.exited == 2);
    close_shape(&other);
    say_often(&k, "0", 3);
    ck_assert_uint_eq(gpu_of(on.lm).resident, 9);
    as_a_prompt(&k, 0);
    close_shape(&on);
    t_emulate_end();
}

/* Another model whose load finds no memory, at each of its calls for some: what it had
 * is given back, and the launch stays on or comes again, with the same tokens. */
TEST_WITHIN(cuda_a_launch_outlives_loads_that_fail, 240)
{
    enum { SOME = 7 /* one of so many calls */ };
    const br_lm_config c = {.tier = "cuda", .n_ctx = CTX, .n_slots = SLOTS + 1};
    br_lm_model *r = NULL;
    int asked = 0, failed = 0;
    br_code code = BR_E_OOM;
    br_status st = {0};
    talk plain, k;

    t_emulate_cuda();
    shaped on = open_shape("shape:toy:BF16", &c);
    begin_talk(&plain, on.lm, true);
    say_often(&plain, "0", 40);
    begin_talk(&k, on.lm, false);
    for (int n = 1; code != BR_OK; n += SOME) {
        say_often(&k, "0", failed ? 3 : 6);
        setenv("BR_EMU_NO_MEMORY", t_printf("%d", asked + n), 1);
        st = (br_status){0};
        code = br_lm_model_open(&r, on.m, &c, &st);
        unsetenv("BR_EMU_NO_MEMORY");
        asked += n;
        failed += code != BR_OK;
        ck_assert_msg(code == BR_OK || code == BR_E_OOM, "call %d: %s", n,
                      st.msg);
        ck_assert(failed < 11);
    }
    br_lm_model_close(r);
    ck_assert_int_gt(failed, 2);
    say_often(&k, "0", (int)(plain.n_said - k.n_said));
    ck_assert_mem_eq(k.said, plain.said, plain.n_said * sizeof *k.said);
    ck_assert_uint_gt(gpu_of(on.lm).resident, 6);
    as_a_prompt(&k, 0);
    close_shape(&on);
    t_emulate_end();
}

/* Who asks the device's legacy stream without rest, as a load does: a capture in any stream
 * that this one waits for fails, and so does the call. */
typedef struct asker {
    br_cuda cu;
    uint64_t p;
    br_thread thread;
    atomic_bool end;
} asker;

static void
ask_on(void *arg)
{
    asker *a = arg;
    uint32_t got;
    br_status st = {0};

    t_ok(BR_CU(&a->cu, &st, cuCtxSetCurrent(a->cu.ctx)), &st);
    while (!atomic_load(&a->end)) {
        t_ok(BR_CU(&a->cu, &st, cuMemcpyDtoH(&got, a->p, sizeof got)), &st);
        br_sleep_ns(100000);
    }
}

static void
begin_to_ask(asker *a)
{
    br_status st = {0};

    t_ok(br_cuda_open(&a->cu, 0, &st), &st);
    t_ok(br_cuda_alloc(&a->cu, &a->p, sizeof(uint32_t), &st), &st);
    br_cuda_says(&a->cu, true); /* others may capture */
    t_ok(br_thread_start(&a->thread, "asks", ask_on, a, &st), &st);
}

static void
ask_no_more(asker *a)
{
    atomic_store(&a->end, true);
    br_thread_join(&a->thread);
    br_cuda_free(&a->cu, a->p);
    br_cuda_close(&a->cu);
}

/* What a model of states does outside of its turns: they come and go, again and again. */
typedef struct states {
    const br_lm *lm;
    atomic_bool end;
    uint32_t rounds;
} states;

static void
come_and_go(void *arg)
{
    states *s = arg;
    const br_lm *lm = s->lm;
    const size_t n = lm->plan->slot_elems;
    float *kept = calloc(n, sizeof *kept), *again = calloc(n, sizeof *again);

    for (size_t i = 0; i < n; i++)
        kept[i] = (float)(i % 977);
    while (!atomic_load(&s->end) || !s->rounds) {
        lm->restore(lm->ctx, 0, kept);
        lm->save(lm->ctx, 0, again);
        ck_assert_mem_eq(kept, again, n * sizeof *kept);
        lm->reset(lm->ctx, 0);
        s->rounds++;
    }
    free(kept);
    free(again);
}

/* Steps of one to three rows, whose launches are captured when they come first. */
static void
some_kinds(talk *k)
{
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        feed_talk(k, slot, 3 + slot);
    say(k, "1");
    say(k, "02");
    say(k, "012");
    say_often(k, "21", 3);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        as_a_prompt(k, slot);
}

/* Two models in threads of their own: while one makes its graphs, the other one's copies
 * wait for the device, and neither is in the other's way. */
TEST_WITHIN(cuda_two_models_at_once_without_turns, 240)
{
    br_lm_config c = {.tier = "cuda", .n_ctx = CTX, .n_slots = SLOTS + 1};
    asker *asks = t_keep(calloc(1, sizeof *asks));
    states s = {0};
    br_thread thread;
    br_status st = {0};
    br_lm_model *r;
    br_model *m;
    talk alone, k;

    t_emulate_cuda();
    shaped on = open_shape("shape:llama-256:BF16", &c);
    begin_talk(&alone, on.lm, false);
    some_kinds(&alone);
    close_shape(&on);
    t_ok(br_model_open(&m, t_repo("tests/data/logits/mamba2.gguf"), &st), &st);
    t_ok(br_lm_model_open(&r, m, &c, &st), &st);
    s.lm = br_lm_model_lm(r);
    ck_assert(s.lm->plan->slot_elems > 0);
    begin_to_ask(asks);
    for (int i = 0; i < 3; i++) {
        on = open_shape("shape:llama-256:BF16", &c);
        begin_talk(&k, on.lm, false);
        atomic_store(&s.end, false);
        t_ok(br_thread_start(&thread, "states", come_and_go, &s, &st), &st);
        some_kinds(&k);
        atomic_store(&s.end, true);
        br_thread_join(&thread);
        ck_assert_uint_eq(k.n_said, alone.n_said);
        ck_assert_mem_eq(k.said, alone.said, k.n_said * sizeof *k.said);
        close_shape(&on);
    }
    ask_no_more(asks);
    br_lm_model_close(r);
    br_model_close(m);
    t_emulate_end();
}

typedef struct opener {
    const br_model *m;
    atomic_bool end;
} opener;

/* A model of one sequence, which makes its graphs as it is opened. */
static void
open_and_close(void *arg)
{
    opener *o = arg;
    const br_lm_config c = {.tier = "cuda", .n_ctx = CTX};
    br_lm_model *r;
    br_status st = {0};

    for (int i = 0; i < 3; i++) {
        t_ok(br_lm_model_open(&r, o->m, &c, &st), &st);
        ck_assert(br_lm_model_lm(r)->pick != NULL);
        br_lm_model_close(r);
    }
    atomic_store(&o->end, true);
}

/* Models of one sequence come and go while another one's steps, and the copies of their
 * logits, go on. */
TEST_WITHIN(cuda_graphs_are_made_beside_steps_of_another_model, 240)
{
    br_lm_config c = {.tier = "cuda", .n_ctx = CTX, .n_slots = SLOTS + 1};
    asker *asks = t_keep(calloc(1, sizeof *asks));
    br_thread thread;
    br_status st = {0};
    opener o = {0};
    talk alone, k;

    t_emulate_cuda();
    shaped on = open_shape("shape:llama-512:BF16", &c);
    o.m = on.m;
    begin_talk(&alone, on.lm, true);
    feed_talk(&alone, 1, 5);
    say_often(&alone, "1", 8);
    begin_to_ask(asks);
    t_ok(br_thread_start(&thread, "opens", open_and_close, &o, &st), &st);
    do {
        begin_talk(&k, on.lm, true);
        feed_talk(&k, 1, 5);
        say_often(&k, "1", 8);
        ck_assert_mem_eq(k.said, alone.said, 8 * sizeof *k.said);
    } while (!atomic_load(&o.end));
    br_thread_join(&thread);
    ask_no_more(asks);
    close_shape(&on);
    t_emulate_end();
}

/* A request runs by a launch that stays; then the device finds the file. */
static void
stay_then(host *h, ek_req *r, const char *file, const char *text)
{
    ask(h, &r[0], 2, 100, 0);
    until(h, &r[0], 12);
    ck_assert_uint_gt(gpu_of_engine(h).resident, 0);
    t_write(file, text, strlen(text));
}

/* That request is told so, and one that comes after it. */
static void
both_time_out(host *h, ek_req *r, const char *says)
{
    for (int i = 0; i < 2; i++) {
        if (i == 1)
            ask(h, &r[1], 3, 100, 0);
        ek_await(&h->k, &(ek_req *){&r[i]}, 1);
        ck_assert_int_eq(r[i].code, BR_E_TIMEOUT);
        ck_assert_msg(strstr(r[i].error, says), "%s", r[i].error);
    }
}

static void
same_when_loaded_anew(ek_req *r)
{
    host h = open_host();

    ask(&h, &r[2], 2, 12, 0);
    ek_await(&h.k, &(ek_req *){&r[2]}, 1);
    ck_assert_int_eq(r[2].code, BR_OK);
    same_answer(&r[0], &r[2]);
    close_host(&h);
}

/* A device that is lost under a launch that stays: the request ends and says why;
 * the model can be loaded again. */
static void
lose(int rc, br_code want)
{
    const char *file = t_printf("%s/lost", t_tmpdir());
    const char *number = t_printf("%d", rc);
    ek_req *r = t_keep(calloc(3, sizeof *r));

    ck_assert_int_eq(setenv("BR_EMU_LOST", file, 1), 0);
    host h = open_host();
    stay_then(&h, r, file, number);
    ek_await(&h.k, &(ek_req *){&r[0]}, 1);
    ck_assert_int_eq(r[0].code, want);
    ck_assert_msg(strncmp(r[0].error, "cu", 2) == 0, "%s", r[0].error);
    ask(&h, &r[1], 3, 100, 0);
    ek_await(&h.k, &(ek_req *){&r[1]}, 1);
    ck_assert_int_eq(r[1].code, want);
    close_host(&h);
    same_when_loaded_anew(r);
    unsetenv("BR_EMU_LOST");
}

TEST_WITHIN(cuda_a_device_lost_under_a_launch_that_stays_is_told, 240)
{
    enum { ILLEGAL_ADDRESS = 700, LAUNCH_TIMEOUT = 702 };

    t_emulate_cuda();
    lose(ILLEGAL_ADDRESS, BR_E_IO);
    lose(LAUNCH_TIMEOUT, BR_E_TIMEOUT);
    t_emulate_end();
}

/* A draw that waits in vain for one of its blocks gives up: the request is told so, and
 * the model can be loaded again. */
TEST_WITHIN(cuda_a_draw_that_waits_in_vain_is_a_timeout, 240)
{
    const char *file = t_printf("%s/drop", t_tmpdir());
    ek_req *r = t_keep(calloc(3, sizeof *r));

    t_emulate_cuda();
    ck_assert_int_eq(setenv("BR_EMU_DROP", file, 1), 0);
    host h = open_host();
    stay_then(&h, r, file, "");
    both_time_out(&h, r, "has to be loaded anew");
    ck_assert_int_ne(access(file, F_OK), 0);
    close_host(&h);
    same_when_loaded_anew(r);
    unsetenv("BR_EMU_DROP");
    t_emulate_end();
}

/* A launch that stays and never ends: the request is told so when the time is over,
 * the next one and who opens a model at once; nothing waits for the device. */
TEST_WITHIN(cuda_a_launch_that_stays_and_hangs_is_a_timeout, 240)
{
    enum { TIMEOUT_S = 8 };
    const br_lm_config c = {.tier = "cuda", .n_ctx = 128};
    const char *file = t_printf("%s/hang", t_tmpdir());
    ek_req *r = t_keep(calloc(2, sizeof *r));
    br_lm_model *again;
    br_status st = {0};

    t_emulate_cuda();
    ck_assert_int_eq(setenv("BR_EMU_HANG", file, 1), 0);
    host h = open_host_within(TIMEOUT_S);
    stay_then(&h, r, file, "");
    both_time_out(&h, r, "has not ended in 8 s");
    ck_assert_uint_eq(r[1].n_out, 0);
    ck_assert_int_eq(br_lm_model_open(&again, h.on.m, &c, &st), BR_E_TIMEOUT);
    ck_assert_msg(strstr(st.msg, "does not answer: this process has to be "
                                 "started anew"),
                  "%s", st.msg);
    close_host(&h);
    unsetenv("BR_EMU_HANG");
}
