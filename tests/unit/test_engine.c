/* test_engine.c - requests on an engine, as who serves them sees it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_kit.h"

#include "base/thread.h"
#include "run/lm_model.h"

#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const br_lm_fake_config no_fake;
static const br_engine_config no_engine;

TEST(engine_answers_as_the_model_wants)
{
    ek k;
    ek_req r = {0}, *all[] = {&r};
    br_request_desc d;

    ek_open(&k, no_fake, no_engine);
    ek_prompt(&r, 37, 1);
    d = ek_desc(&r, 100);
    ek_submit(&k, &r, &d);
    ek_await(&k, all, 1);
    ck_assert_uint_eq(r.n_out, 100);
    ek_right(&k, &r);
    ck_assert_str_eq(br_finish_name(r.usage.finish), "length");
    ck_assert(r.usage.first_ns > 0 && r.n_text > 0);
    ek_close(&k);
}

TEST(engine_answers_many_at_once)
{
    enum { N = 60 };
    static ek_req r[N];
    ek_req *all[N];
    ek k;

    ek_open(&k,
            (br_lm_fake_config){.chunk = 40, .window = 48, .recurrent = true},
            no_engine);
    for (uint32_t i = 0; i < N; i++) {
        br_request_desc d;

        ek_prompt(&r[i], 1 + i * 7 % 300, i);
        d = ek_desc(&r[i], i % 50);
        all[i] = &r[i];
        ek_submit(&k, &r[i], &d);
    }
    ek_await(&k, all, N);
    for (uint32_t i = 0; i < N; i++) {
        ck_assert_uint_eq(r[i].n_out, i % 50);
        ek_right(&k, &r[i]);
    }
    ek_close(&k);
}

TEST(engine_cancels_within_a_step_waiting_or_running)
{
    ek k;
    static ek_req r[3];
    ek_req *all[] = {&r[0], &r[1], &r[2]};

    ek_open(&k, (br_lm_fake_config){.n_slots = 2, .step_ns = 10000000},
            no_engine);
    for (int i = 0; i < 3; i++) {
        br_request_desc d;

        ek_prompt(&r[i], 20, 3);
        d = ek_desc(&r[i], i == 1 ? 30 : 900);
        d.hook.mask = ek_waits_to_go;
        ek_submit(&k, &r[i], &d);
    }
    br_engine_cancel(k.e, r[2].id);
    atomic_store(&ek_go, true);
    ek_await(&k, all + 2, 1);
    ck_assert_uint_eq(r[2].n_out, 0);
    while (r[0].n_out < 5)
        (void)br_engine_drain(k.e, 1);
    br_engine_cancel(k.e, r[0].id);
    ek_await(&k, all, 3);
    ck_assert_str_eq(br_finish_name(r[0].usage.finish), "cancelled");
    ck_assert_uint_lt(r[0].n_out, 900);
    ck_assert_uint_eq(r[1].n_out, 30);
    ek_right(&k, &r[1]);
    br_engine_cancel(k.e, r[0].id); /* dead: nothing happens */
    ek_close(&k);
}

TEST(engine_ends_a_reader_that_stays_behind)
{
    ek k;
    static ek_req r[2];
    ek_req *all[] = {&r[0], &r[1]};

    ek_open(&k, (br_lm_fake_config){.step_ns = 200000},
            (br_engine_config){.hold_ns = 20000000});
    for (int i = 0; i < 2; i++) {
        br_request_desc d;

        ek_prompt(&r[i], 20, 3);
        d = ek_desc(&r[i], 400);
        d.hook.mask = ek_waits_to_go;
        ek_submit(&k, &r[i], &d);
    }
    br_engine_hold(k.e, r[0].id, true);
    atomic_store(&ek_go, true);
    ek_await(&k, all, 2);
    ck_assert_str_eq(br_finish_name(r[0].usage.finish), "client_too_slow");
    ck_assert_uint_eq(r[1].n_out, 400);
    ek_close(&k);
}

typedef struct gate {
    atomic_int calls, open; /* so many calls of it may return */
} gate;

static bool
passes_gate(void *ctx, float *logits, int32_t n)
{
    gate *g = ctx;
    int call = 1 + atomic_fetch_add(&g->calls, 1);

    (void)logits, (void)n;
    while (call > atomic_load(&g->open))
        br_sleep_ns(100000);
    return true;
}

static void
await_call(gate *g, int call)
{
    int64_t end = br_now_ns() + INT64_C(60000000000);

    while (atomic_load(&g->calls) < call) {
        ck_assert_msg(br_now_ns() < end, "call %d does not come", call);
        br_sleep_ns(100000);
    }
}

/* A request that its tenant's pages hold no more waited for ever, and when it was
 * owed all others did. The first request holds the engine up, so that the others are
 * where they have to be: one has the other slot, the rest waits. */
TEST(engine_ends_what_a_smaller_quota_does_not_hold)
{
    static const struct {
        uint32_t tenant, n_prompt, max_tokens;
    } rows[] = {
        {0, 10, 60}, {1, 200, 400}, {1, 300, 9}, {1, 20, 400}, {0, 9, 9}};
    static ek_req r[BR_COUNT(rows)];
    ek_req *all[BR_COUNT(rows)];
    br_quota q = br_quota_defaults();
    br_status st = {0};
    gate g = {0};
    ek k;

    ek_open(&k, (br_lm_fake_config){.n_slots = 2}, (br_engine_config){0});
    t_ok(br_engine_tenant_set(k.e, 1, &q, &st), &st);
    for (uint32_t i = 0; i < BR_COUNT(rows); i++) {
        br_request_desc d;

        all[i] = &r[i];
        ek_prompt(&r[i], rows[i].n_prompt, i);
        d = ek_desc(&r[i], rows[i].max_tokens);
        d.tenant = rows[i].tenant;
        if (i == 0)
            d.hook = (br_logit_hook){.mask = passes_gate, .ctx = &g};
        ek_submit(&k, &r[i], &d);
        if (i == 0)
            await_call(&g, 1);
    }
    atomic_store(&g.open, 49);
    await_call(&g, 50);
    q.max_kv_pages = 10;
    t_ok(br_engine_tenant_set(k.e, 1, &q, &st), &st);
    atomic_store(&g.open, 1000);
    ek_await(&k, all, BR_COUNT(rows));
    ck_assert_int_eq(r[0].usage.finish, BR_FINISH_LENGTH);
    ck_assert_int_eq(r[1].usage.finish, BR_FINISH_CONTEXT);
    ck_assert_uint_gt(r[1].n_out, 0);
    ck_assert_int_eq(r[2].code, BR_E_LIMIT);
    ck_assert_str_eq(r[2].error, "the prompt has 300 tokens; the tenant's KV "
                                 "pages hold 160, the answer included");
    ck_assert_int_eq(r[3].usage.finish, BR_FINISH_CONTEXT);
    ck_assert_uint_eq(r[3].n_out, 140);
    ck_assert_int_eq(r[4].usage.finish, BR_FINISH_LENGTH);
    ek_close(&k);
}

/* One that is held has its slot taken by who waits; then it goes on with the same
 * tokens, or leaves with its tenant. Held while it waits it takes no slot. */
TEST(engine_gives_the_slot_of_who_is_held_to_who_waits)
{
    ek k;
    static ek_req r[5];
    ek_req *last[] = {&r[3]}, *all[] = {&r[0], &r[1], &r[2], &r[3], &r[4]};
    br_quota q = br_quota_defaults();
    br_request_desc again;
    br_status st = {0};

    ek_open(&k, (br_lm_fake_config){.step_ns = 200000, .n_slots = 2},
            (br_engine_config){.park_ns = 1000000});
    t_ok(br_engine_tenant_set(k.e, 1, &q, &st), &st);
    for (int i = 0; i < 5; i++) {
        br_request_desc d;

        ek_prompt(&r[i], 20, (uint64_t)i);
        d = ek_desc(&r[i], 400);
        d.tenant = i == 1;
        d.hook.mask = ek_waits_to_go;
        if (i < 4)
            ek_submit(&k, &r[i], &d);
        if (i < 3)
            br_engine_hold(k.e, r[i].id, true);
    }
    atomic_store(&ek_go, true);
    ek_await(&k, last, 1);
    ck_assert(!r[0].over && !r[1].over && !r[2].over);
    br_engine_tenant_drop(k.e, 1);
    ek_await(&k, (ek_req *const[]){&r[1]}, 1);
    ck_assert_int_eq(r[1].usage.finish, BR_FINISH_CANCELLED);
    br_engine_hold(k.e, r[0].id, false);
    br_engine_hold(k.e, r[2].id, false);
    again = ek_desc(&r[4], 400);
    ek_submit(&k, &r[4], &again);
    ek_await(&k, all, 5);
    for (int i = 0; i < 5; i++)
        if (i != 1) {
            ck_assert_uint_eq(r[i].n_out, 400);
            ek_right(&k, &r[i]);
        }
    ek_close(&k);
}

/* Its reader comes now and then, and is behind again at once. */
TEST(engine_gives_the_slot_of_who_is_mostly_held_to_who_waits)
{
    ek k;
    static ek_req r[2];
    ek_req *all[] = {&r[0], &r[1]};
    br_engine_stats s;

    ek_open(&k, (br_lm_fake_config){.step_ns = 1000000, .n_slots = 1},
            (br_engine_config){.park_ns = 30000000});
    for (int i = 0; i < 2; i++) {
        br_request_desc d;

        ek_prompt(&r[i], 20, (uint64_t)i);
        d = ek_desc(&r[i], i ? 20 : 1500);
        ek_submit(&k, &r[i], &d);
        while (!r[0].n_out) /* it has the slot */
            (void)br_engine_drain(k.e, 1);
    }
    while (!r[0].over && !r[1].over) {
        br_engine_hold(k.e, r[0].id, true);
        br_sleep_ns(9000000);
        br_engine_hold(k.e, r[0].id, false);
        br_sleep_ns(1000000);
        while (br_engine_drain(k.e, 100))
            ;
    }
    ck_assert(!r[0].over);
    ek_await(&k, all, 2);
    ek_right(&k, &r[0]);
    br_engine_stats_get(k.e, &s);
    ck_assert_uint_ge(r[0].usage.n_parked, 1);
    ck_assert_uint_eq(s.n_parked, r[0].usage.n_parked);
    ck_assert_uint_eq(s.n_preempted + r[0].usage.n_preempted, 0);
    ek_close(&k);
}

TEST(engine_keeps_every_token_while_nobody_drains)
{
    ek k;
    static ek_req r[4];
    ek_req *all[] = {&r[0], &r[1], &r[2], &r[3]};
    struct pollfd p = {.events = POLLIN};

    ek_open(&k, no_fake, (br_engine_config){.ring_bytes = 4096});
    p.fd = br_engine_fd(k.e);
    (void)br_engine_drain(k.e, 1); /* sees it empty */
    for (int i = 0; i < 4; i++) {
        br_request_desc d;

        ek_prompt(&r[i], 20, (uint64_t)i);
        d = ek_desc(&r[i], 300);
        ek_submit(&k, &r[i], &d);
    }
    br_sleep_ns(30000000); /* the ring is full by now */
    ck_assert_int_eq(poll(&p, 1, 60000), 1);
    ek_await(&k, all, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(r[i].n_out, 300);
        ek_right(&k, &r[i]);
    }
    while (br_engine_drain(k.e, 100))
        ;
    ck_assert_int_eq(poll(&p, 1, 0), 0);
    ek_close(&k);
}

TEST(engine_refuses_what_it_cannot_do)
{
    ek k;
    static ek_req r[3];
    ek_req *all[] = {&r[0]};
    br_request_desc d;
    br_status st;
    br_request_id id;
    br_quota q = br_quota_defaults();

    ek_open(&k, (br_lm_fake_config){.n_slots = 1, .step_ns = 50000000},
            (br_engine_config){.queue_depth = 2});
    ek_prompt(&r[0], 20, 3);
    d = ek_desc(&r[0], 3);
#define REFUSES(want, change)                                               \
    do {                                                                    \
        br_request_desc was = d;                                            \
        change;                                                             \
        st = (br_status){0};                                                \
        ck_assert_str_eq(br_code_name(br_engine_submit(k.e, &d, &id, &st)), \
                         want);                                             \
        ck_assert_uint_eq(id, 0);                                           \
        d = was;                                                            \
    } while (0)
    const int32_t far = br_lm_fake_lm(k.fake)->n_vocab;
    REFUSES("USAGE", d.n_tokens = 0);
    REFUSES("USAGE", r[0].prompt[3] = -1);
    r[0].prompt[3] = 1;
    REFUSES("LIMIT", d.n_tokens = 1024);
    REFUSES("USAGE", d.sample.top_p = 2);
    REFUSES("LIMIT", d.n_stop_tokens = 9);
    REFUSES("USAGE", (d.n_stop_tokens = 1, d.stop_tokens = &far));
    REFUSES("USAGE", (d.n_stop_tokens = 1, d.stop_tokens = &(int32_t){-1}));
    ck_assert_ptr_nonnull(strstr(st.msg, "there is no stop token -1 (of "));
    REFUSES("NOT_FOUND", d.tenant = 77);
    REFUSES("NOT_FOUND", d.tenant = UINT32_MAX);
    q.max_queued = 1;
    q.max_context_tokens = 50;
    t_ok(br_engine_tenant_set(k.e, 5, &q, &st), &st);
    d.tenant = 5;
    REFUSES("LIMIT", d.n_tokens = 50);
    d.max_tokens = 29; /* the first is there until it is cancelled */
    st = (br_status){0};
    for (int i = 0; i < 3; i++) {
        r[i] = r[0];
        d.ctx = &r[i];
        if (br_engine_submit(k.e, &d, &r[i].id, &st) != BR_OK)
            break;
    }
    ck_assert_int_eq(st.code, BR_E_QUOTA);
    ck_assert_uint_ge(br_engine_retry_ms(k.e), 1000);
    br_engine_begin_drain(k.e);
    REFUSES("BUSY", d.tenant = 0);
    br_engine_cancel(k.e, r[0].id);
    ek_await(&k, all, 1);
    ek_close(&k);
}

/* ---- whatever the neighbours do ------------------------------------------ */

/* 15 others of any class around one request: it is preempted and comes back,
 * finds its prefix or not, and always says the same. */
TEST(engine_answers_alike_alone_in_company_and_preempted)
{
    enum { N = 16 };
    static ek_req r[N], alone;
    ek_req *one[] = {&alone}, *all[N];
    ek k;
    br_request_desc d;
    br_status st = {0};
    uint32_t preempted = 0, cached = 0;

    for (int variant = 0; variant < 3; variant++) {
        br_quota q = br_quota_defaults();

        ek_open(&k,
                (br_lm_fake_config){.n_slots = 3,
                                    .n_pages = 90,
                                    .chunk = 48,
                                    .window = variant == 1 ? 40 : 0,
                                    .recurrent = variant == 2,
                                    .step_ns = 100000},
                (br_engine_config){.prefix_percent = 40});
        for (uint32_t t = 1; t <= 3; t++) {
            q.qos = (br_qos)(t - 1);
            t_ok(br_engine_tenant_set(k.e, t, &q, &st), &st);
        }
        alone = (ek_req){0};
        ek_prompt(&alone, 100, 77);
        d = ek_desc(&alone, 120);
        d.digest = true;
        ek_submit(&k, &alone, &d);
        ek_await(&k, one, 1);
        ek_right(&k, &alone);
        for (uint32_t i = 0; i < N; i++) {
            r[i] = (ek_req){0};
            all[i] = &r[i];
            ek_prompt(&r[i], i == 0 ? 100 : 20 + 30 * (i % 7),
                      i == 0 ? 77 : i % 2);
            d = ek_desc(&r[i], i == 0 ? 120 : 60);
            d.tenant = i == 0 ? 3 : 1 + i % 3;
            d.digest = true;
            ek_submit(&k, &r[i], &d);
            br_sleep_ns(400000);
        }
        ek_await(&k, all, N);
        ck_assert_uint_eq(r[0].usage.digest, alone.usage.digest);
        ck_assert_uint_ne(alone.usage.digest, 0);
        for (uint32_t i = 0; i < N; i++) {
            ek_right(&k, &r[i]);
            ck_assert_uint_eq(r[i].n_preempted, r[i].usage.n_preempted);
            preempted += r[i].n_preempted;
            cached += r[i].usage.n_cached;
            ck_assert(i % 3 != 0 || i == 0 || r[i].n_preempted == 0);
        }
        ek_close(&k);
    }
    ck_assert_uint_gt(preempted, 0);
    ck_assert_uint_gt(cached, 0);
}

/* ---- who is told first --------------------------------------------------- */

typedef struct haste {
    atomic_uint drawn, told; /* tokens of the interactive one, as it decodes */
    bool begun;              /* its prompt was read */
    bool late;               /* one was not told before another's was drawn */
} haste;

static bool
on_urgent_row(void *ctx, float *logits, int32_t n_vocab)
{
    haste *h = ctx;

    (void)logits, (void)n_vocab;
    atomic_fetch_add(&h->drawn, h->begun);
    h->begun = true;
    return true;
}

/* The engine's thread stays here, in the midst of a step. */
static bool
on_other_row(void *ctx, float *logits, int32_t n_vocab)
{
    haste *h = ctx;
    int64_t end = br_now_ns() + INT64_C(5000000000);

    (void)logits, (void)n_vocab;
    while (!h->late && atomic_load(&h->told) < atomic_load(&h->drawn)) {
        h->late = br_now_ns() > end;
        br_sleep_ns(10000);
    }
    return true;
}

static haste in_haste;
static br_output_fn then;

static void
on_urgent_output(void *ctx, const br_output *o)
{
    if (o->kind == BR_OUTPUT_TOKEN && o->head.generated_pos > 0)
        atomic_fetch_add(&in_haste.told, 1);
    then(ctx, o);
}

TEST(engine_tells_an_interactive_token_before_others_are_drawn)
{
    static ek_req r[2];
    ek_req *all[] = {&r[0], &r[1]};
    br_status st = {0};
    ek k;

    ek_open(&k, (br_lm_fake_config){.step_ns = 200000}, no_engine);
    for (uint32_t i = 0; i < 2; i++) {
        br_quota q = br_quota_defaults();
        br_request_desc d;

        q.qos = i ? BR_QOS_INTERACTIVE : BR_QOS_BATCH;
        t_ok(br_engine_tenant_set(k.e, 1 + i, &q, &st), &st);
        ek_prompt(&r[i], 20, i);
        d = ek_desc(&r[i], i ? 30 : 200);
        d.tenant = 1 + i;
        d.hook = (br_logit_hook){.mask = i ? on_urgent_row : on_other_row,
                                 .ctx = &in_haste};
        then = d.output;
        if (i)
            d.output = on_urgent_output;
        ek_submit(&k, &r[i], &d);
    }
    ek_await(&k, all, 2);
    ck_assert_uint_eq(atomic_load(&in_haste.told), 29);
    ck_assert(!in_haste.late);
    ek_right(&k, &r[0]);
    ek_right(&k, &r[1]);
    ek_close(&k);
}

/* Of a prompt by the fake model: tokens and positions, of length 1. */
static void
right_embedding(const ek_req *r, br_pooling how)
{
    double x[BR_LM_FAKE_EMBD] = {0}, square = 0;

    for (uint32_t i = 0; i < r->n_prompt; i++)
        if (how == BR_POOLING_MEAN ||
            i == (how == BR_POOLING_CLS ? 0 : r->n_prompt - 1)) {
            x[0] += 1;
            x[1] += r->prompt[i];
            x[2] += i;
        }
    for (int i = 0; i < BR_LM_FAKE_EMBD; i++)
        square += x[i] * x[i];
    ck_assert_uint_eq(r->n_embedding, BR_LM_FAKE_EMBD);
    for (int i = 0; i < BR_LM_FAKE_EMBD; i++)
        ck_assert(r->embedding[i] == (float)(x[i] / sqrt(square)));
    ck_assert_int_eq(r->usage.finish, BR_FINISH_LENGTH);
    ck_assert_uint_eq(r->n_out, 0);
}

TEST(engine_embeds_alike_alone_in_company_and_preempted)
{
    enum { N = 12 };
    static ek_req r[N];
    ek_req *all[N];
    uint32_t preempted = 0, cached = 0;

    for (br_pooling how = BR_POOLING_MEAN; how <= BR_POOLING_LAST; how++) {
        br_quota q = br_quota_defaults();
        br_status st = {0};
        ek k;

        ek_open(&k,
                (br_lm_fake_config){
                    .n_slots = 2, .chunk = 24, .pooling = how, .row_ns = 20000},
                (br_engine_config){.prefix_percent = 40});
        q.qos = BR_QOS_BATCH;
        t_ok(br_engine_tenant_set(k.e, 1, &q, &st), &st);
        for (uint32_t i = 0; i < N; i++) { /* answers among them */
            br_request_desc d;

            r[i] = (ek_req){0};
            all[i] = &r[i];
            ek_prompt(&r[i], 200 - i % 3, i % 2);
            d = ek_desc(&r[i], 20);
            if (i % 4 != 3)
                ek_embed(&r[i], &d);
            d.tenant = i < 2;
            ek_submit(&k, &r[i], &d);
            br_sleep_ns(i == 1 ? 3000000 : 0);
        }
        ek_await(&k, all, N);
        for (uint32_t i = 0; i < N; i++) {
            preempted += r[i].n_preempted;
            if (i % 4 == 3) {
                ek_right(&k, &r[i]);
                continue;
            }
            right_embedding(&r[i], how);
            cached += r[i].usage.n_cached;
            ck_assert(how == BR_POOLING_LAST || r[i].usage.n_cached == 0);
        }
        ek_close(&k);
    }
    ck_assert_uint_gt(preempted, 0);
    ck_assert_uint_gt(cached, 0);
}

static uint32_t n_hidden; /* of the engine's thread, until it has ended */
static const float *(*fake_hidden)(void *ctx, br_status *st);

static const float *
counted_hidden(void *ctx, br_status *st)
{
    n_hidden++;
    return fake_hidden(ctx, st);
}

static const float *
late_hidden(void *ctx, br_status *st)
{
    (void)ctx;
    br_fail(st, BR_E_TIMEOUT, "it has not ended in 3 s");
    return NULL;
}

/* What the head read may have to be copied from a device: once a step, not once a row; a
 * device that does not give it is an error of the step, which the tier names. */
TEST(engine_asks_for_hidden_rows_once_a_step)
{
    for (int fails = 0; fails < 2; fails++) {
        static ek_req r;
        br_request_desc d;
        br_engine_stats s;
        br_lm lm;
        ek k;

        ek_open(&k,
                (br_lm_fake_config){
                    .n_slots = 2, .chunk = 24, .pooling = BR_POOLING_MEAN},
                (br_engine_config){0});
        lm = *br_lm_fake_lm(k.fake);
        br_engine_free(k.e);
        n_hidden = 0;
        fake_hidden = lm.hidden;
        lm.hidden = fails ? late_hidden : counted_hidden;
        k.c.lm = &lm;
        br_status st = {0};
        t_ok(br_engine_new(&k.e, &k.c, &st), &st);
        r = (ek_req){0};
        ek_prompt(&r, 100, 3);
        d = ek_desc(&r, 20);
        ek_embed(&r, &d);
        ek_submit(&k, &r, &d);
        ek_await(&k, (ek_req *[]){&r}, 1);
        br_engine_stats_get(k.e, &s);
        ek_close(&k);
        if (fails) {
            ck_assert_int_eq(r.code, BR_E_TIMEOUT);
            ck_assert_msg(strstr(r.error, "has not ended in 3 s") != NULL, "%s",
                          r.error);
            continue;
        }
        right_embedding(&r, BR_POOLING_MEAN);
        ck_assert_uint_gt(s.n_steps, 4);
        ck_assert_uint_eq(n_hidden, s.n_steps);
    }
}

/* The fake model's logits are 20 for what it wants and 0 for all else. */
static void
right_scores(const ek *k, const ek_req *r)
{
    double rest = br_lm_fake_lm(k->fake)->n_vocab - 1;
    double sum = log(exp(20) + rest);

    ck_assert_uint_eq(r->n_scores, r->n_prompt);
    ck_assert(isnan(r->scores[0][0].logprob) && r->scores[0][1].id == -1);
    ck_assert_int_eq(r->scores[0][0].id, r->prompt[0]);
    for (uint32_t i = 1; i < r->n_prompt; i++) {
        const br_logprob *l = r->scores[i];
        int32_t best = br_lm_fake_next(k->fake, r->prompt, i);
        double want = (l[0].id == best ? 20 : 0) - sum;

        ck_assert_int_eq(l[0].id, r->prompt[i]);
        ck_assert_int_eq(l[1].id, best);
        ck_assert_msg(fabs((double)l[0].logprob - want) < 1e-5, "%u: %g", i,
                      (double)l[0].logprob);
    }
}

TEST(engine_scores_prompts_alike_in_company_and_preempted)
{
    enum { N = 12 };
    static ek_req r[N];
    ek_req *all[N];
    uint32_t preempted = 0, cached = 0;
    br_quota q = br_quota_defaults();
    br_status st = {0};
    ek k;

    ek_open(&k, (br_lm_fake_config){.n_slots = 3, .chunk = 24, .row_ns = 20000},
            (br_engine_config){.prefix_percent = 40});
    q.qos = BR_QOS_BATCH;
    t_ok(br_engine_tenant_set(k.e, 1, &q, &st), &st);
    for (uint32_t i = 0; i < N; i++) {
        bool alone = i == 5; /* no answer to it */
        br_request_desc d;

        r[i] = (ek_req){0};
        all[i] = &r[i];
        ek_prompt(&r[i], i == 6 ? 1 : 200 - i % 3, i % 2);
        d = ek_desc(&r[i], alone ? 0 : 20);
        if (i % 4 != 3)
            ek_score(&r[i], &d);
        d.tenant = i < 3;
        ek_submit(&k, &r[i], &d);
        br_sleep_ns(i == 2 ? 6000000 : 0);
    }
    ek_await(&k, all, N);
    for (uint32_t i = 0; i < N; i++) {
        preempted += r[i].n_preempted;
        if (i != 5)
            ek_right(&k, &r[i]);
        if (i % 4 == 3) {
            cached += r[i].usage.n_cached;
            continue;
        }
        right_scores(&k, &r[i]);
        ck_assert_uint_eq(r[i].usage.n_cached, 0);
    }
    ck_assert_uint_gt(preempted, 0);
    ck_assert_uint_gt(cached, 0); /* what was scored is known to others */
    ek_close(&k);
    ek_open(&k, (br_lm_fake_config){.n_slots = 8, .chunk = 8},
            (br_engine_config){0});
    {
        br_request_desc d = ek_desc(&r[0], 2);

        ek_score(&r[0], &d);
        ck_assert_int_eq(br_engine_submit(k.e, &d, &r[0].id, NULL),
                         BR_E_UNSUPPORTED);
    }
    ek_close(&k);
}

/* The bad one comes when all others have some tokens, which come before what tells
 * that they lost their slots. */
TEST(engine_lets_a_failing_step_hurt_one_request_alone)
{
    enum { N = 8, BAD = N - 1 };
    static ek_req r[N];
    ek_req *all[N];
    ek k;

    ek_open(&k,
            (br_lm_fake_config){.recurrent = true,
                                .fail_token = 1777,
                                .n_common = 1700,
                                .step_ns = 500000},
            no_engine);
    for (uint32_t i = 0; i < N; i++) {
        br_request_desc d;

        while (i == BAD && r[0].n_out < 3)
            if (br_engine_drain(k.e, 100) == 0)
                (void)br_engine_wait(k.e, 10000000);
        ek_prompt(&r[i], 40, i);
        if (i == BAD)
            r[i].prompt[30] = 1777;
        d = ek_desc(&r[i], 60);
        all[i] = &r[i];
        ek_submit(&k, &r[i], &d);
    }
    ek_await(&k, all, N);
    for (uint32_t i = 0; i < N; i++) {
        if (i == BAD) {
            ck_assert_str_eq(br_finish_name(r[i].usage.finish), "failed");
            ck_assert_ptr_nonnull(strstr(r[i].error, "as told"));
            continue;
        }
        ck_assert_uint_eq(r[i].n_out, 60);
        ek_right(&k, &r[i]);
    }
    ek_close(&k);
}

TEST(engine_ledgers_add_up_to_the_usages)
{
    enum { N = 20 };
    static ek_req r[N];
    ek_req *all[N];
    ek k;
    br_status st = {0};
    br_quota q = br_quota_defaults();
    uint64_t prompt[3] = {0}, out[3] = {0}, cached[3] = {0};
    br_engine_stats s;

    ek_open(&k, no_fake, no_engine);
    for (uint32_t t = 1; t < 3; t++)
        t_ok(br_engine_tenant_set(k.e, t, &q, &st), &st);
    for (uint32_t i = 0; i < N; i++) {
        br_request_desc d;

        ek_prompt(&r[i], 50, i % 3); /* its tenant's */
        d = ek_desc(&r[i], 10 + i);
        d.tenant = i % 3;
        all[i] = &r[i];
        ek_submit(&k, &r[i], &d);
        if (i % 4 == 3)
            ek_await(&k, all, i + 1);
    }
    ek_await(&k, all, N);
    for (uint32_t i = 0; i < N; i++) {
        prompt[i % 3] += r[i].usage.n_prompt;
        cached[i % 3] += r[i].usage.n_cached;
        out[i % 3] += r[i].usage.n_out;
        ck_assert(r[i].usage.kv_page_seconds > 0);
    }
    for (uint32_t t = 0; t < 3; t++) {
        br_ledger l;

        ck_assert(br_engine_ledger(k.e, t, &l));
        ck_assert_uint_eq(l.tokens_prompted, prompt[t]);
        ck_assert_uint_eq(l.tokens_cached, cached[t]);
        ck_assert_uint_eq(l.tokens_generated, out[t]);
        ck_assert_uint_ge(l.kv_pages_peak, 4);
        ck_assert(l.p50_ttft_ms > 0 && l.p99_ttft_ms >= l.p50_ttft_ms);
    }
    ck_assert_uint_gt(cached[0] + cached[1] + cached[2], 0);
    br_engine_stats_get(k.e, &s);
    ck_assert_uint_eq(s.pages_free + s.pages_prefix + s.pages_private,
                      s.n_pages);
    ck_assert_uint_eq(s.pages_private, 0);
    ck_assert_uint_eq(s.n_done, N);
    br_engine_tenant_drop(k.e, 1);
    ck_assert(!br_engine_ledger(k.e, 1, &(br_ledger){0}));
    ek_close(&k);
}

/* ---- what a step may not do ---------------------------------------------- */

static atomic_bool counting;
static _Atomic uint32_t n_allocations; /* of all threads but the drainer's */

static void *
count_allocations(void *ctx, void *p, size_t n)
{
    (void)ctx;
    if (n && atomic_load(&counting) && br_os_thread_id() != (uint32_t)getpid())
        atomic_fetch_add(&n_allocations, 1);
    if (n)
        return realloc(p, n);
    free(p);
    return NULL;
}

static void
steps_without_allocation(ek *k, bool fake)
{
    enum { N = 4, OUT = 90 };
    static ek_req r[N];
    ek_req *all[N];

    for (uint32_t i = 0; i < N; i++) {
        br_request_desc d;

        r[i] = (ek_req){0};
        ek_prompt(&r[i], 40, 70 + i);
        d = ek_desc(&r[i], OUT);
        all[i] = &r[i];
        ek_submit(k, &r[i], &d);
    }
    for (uint32_t i = 0; i < N; i++)
        while (r[i].n_out < 2)
            (void)br_engine_drain(k->e, 1);
    atomic_store(&n_allocations, 0);
    atomic_store(&counting, true);
    for (uint32_t i = 0; i < N; i++)
        while (r[i].n_out < OUT - 20)
            (void)br_engine_drain(k->e, 1);
    atomic_store(&counting, false);
    ck_assert_uint_eq(atomic_load(&n_allocations), 0);
    ek_await(k, all, N);
    for (uint32_t i = 0; fake && i < N; i++)
        ek_right(k, &r[i]);
}

TEST(engine_steps_do_not_allocate)
{
    ek k;

    br_mem_hook(count_allocations, NULL);
    ek_open(&k, (br_lm_fake_config){.window = 48, .step_ns = 200000},
            no_engine);
    steps_without_allocation(&k, true);
    ek_close(&k);
}

TEST(engine_steps_of_a_model_do_not_allocate)
{
    br_lm_config c = {.n_ctx = 160, .n_slots = 4};
    br_lm_model *lm;
    br_model *m;
    br_status st = {0};
    ek k = {0};

    br_mem_hook(count_allocations, NULL);
    t_ok(br_model_open(&m, t_repo("models/demo.gguf"), &st), &st);
    t_ok(br_tok_open(&k.tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    t_ok(br_lm_model_open(&lm, m, &c, &st), &st);
    k.c = (br_engine_config){.lm = br_lm_model_lm(lm), .tok = k.tok};
    t_ok(br_engine_new(&k.e, &k.c, &st), &st);
    steps_without_allocation(&k, false);
    br_engine_free(k.e);
    br_lm_model_close(lm);
    br_tok_free(k.tok);
    br_model_close(m);
}
