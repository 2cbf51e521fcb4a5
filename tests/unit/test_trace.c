/* test_trace.c - an engine's trace, read, drawn and asked again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/trace_replay.h"

#include "base/json.h"
#include "engine_kit.h"

#include <stdlib.h>
#include <string.h>

enum { N = 12 };
static ek_req r[N];

/* A trace of N requests of all sorts, some of which lose their slot. */
static char *
record(ek *k, size_t *n)
{
    static const char *const stop[] = {"zq", "never said"};
    static const br_logit_bias bias[] = {{7, 3}, {900, -2}};
    static const int32_t breakers[] = {3};
    const char *path = t_printf("%s/trace", t_tmpdir());
    br_engine_config c = {0};
    br_quota q = br_quota_defaults();
    ek_req *all[N];
    br_status st = {0};

    t_ok(br_trace_open(&c.trace, path, "the model", &st), &st);
    ek_open(k, (br_lm_fake_config){.n_slots = 3, .step_ns = 100000}, c);
    q.qos = BR_QOS_BATCH;
    t_ok(br_engine_tenant_set(k->e, 1, &q, &st), &st);
    q.qos = BR_QOS_INTERACTIVE;
    t_ok(br_engine_tenant_set(k->e, 2, &q, &st), &st);
    for (uint32_t i = 0; i < N; i++) {
        br_request_desc d;

        r[i] = (ek_req){0};
        all[i] = &r[i];
        ek_prompt(&r[i], 10 + 5 * i, i);
        d = ek_desc(&r[i], 20 + i);
        d.tenant = 1 + i / 6;
        d.sample = br_sample_defaults();
        d.sample.seed = i;
        d.sample.bias = i % 2 ? bias : NULL;
        d.sample.n_bias = i % 2 ? 2 : 0;
        d.sample.dry_breakers = breakers;
        d.sample.n_dry_breakers = i % 3 == 0;
        d.sample.logprobs = i % 4 == 0;
        d.sample.n_logprobs = 2;
        d.stop = stop;
        d.n_stop = i % 3;
        d.stop_tokens = breakers;
        d.n_stop_tokens = i % 2;
        ek_submit(k, &r[i], &d);
    }
    while (r[1].n_out < 2)
        (void)br_engine_drain(k->e, 1);
    br_engine_cancel(k->e, r[1].id);
    ek_await(k, all, N);
    br_engine_stop(k->e, 0);
    t_ok(br_trace_close(c.trace, &st), &st);
    return t_read(path, n);
}

static br_replay_report
again(ek *k, const char *trace, size_t n)
{
    br_engine_config c = k->c;
    br_replay_report out;
    br_status st = {0};

    c.trace = NULL;
    t_ok(br_replay(trace, n, &c, &out, &st), &st);
    return out;
}

TEST(replay_says_the_same_again)
{
    ek k;
    size_t n;
    char *trace = record(&k, &n);
    br_replay_report out = again(&k, trace, n);
    uint64_t tokens = 0;

    for (uint32_t i = 0; i < N; i++)
        tokens += r[i].n_out;
    ck_assert_uint_eq(out.requests, N);
    ck_assert_uint_eq(out.same, N);
    ck_assert_uint_eq(out.tokens, tokens);
    ck_assert_uint_eq(out.differs, 0);
    ek_close(&k);
}

/* An embedding, and an answer that goes on from before a restart. */
TEST(replay_skips_what_is_no_use_to_ask_again)
{
    const char *path = t_printf("%s/trace", t_tmpdir());
    br_engine_config c = {0};
    ek_req *all[3] = {&r[0], &r[1], &r[2]};
    br_status st = {0};
    br_replay_report out;
    char *trace;
    size_t n;
    ek k;

    t_ok(br_trace_open(&c.trace, path, "the model", &st), &st);
    ek_open(&k, (br_lm_fake_config){.n_slots = 3, .pooling = BR_POOLING_MEAN},
            c);
    for (uint32_t i = 0; i < 3; i++) {
        br_request_desc d;

        r[i] = (ek_req){0};
        ek_prompt(&r[i], 12, i);
        d = ek_desc(&r[i], 9);
        if (i == 1)
            ek_embed(&r[i], &d);
        if (i == 2) { /* the last four are of its answer */
            d.n_done = r[i].n_out = 4;
            r[i].n_prompt -= 4;
        }
        ek_submit(&k, &r[i], &d);
    }
    ek_await(&k, all, 3);
    br_engine_stop(k.e, 0);
    t_ok(br_trace_close(c.trace, &st), &st);
    trace = t_read(path, &n);
    out = again(&k, trace, n);
    ck_assert_uint_eq(out.requests, 3);
    ck_assert_uint_eq(out.same, 1);
    ck_assert_uint_eq(out.skipped, 2);
    ck_assert_uint_eq(out.differs, 0);
    ek_close(&k);
}

/* Offset of the n-th record of a kind. */
static size_t
nth(const char *trace, size_t n, uint32_t kind, int which)
{
    size_t at = 8 + 4 + strlen("the model");

    while (at < n) {
        uint32_t size, is;

        memcpy(&size, trace + at, 4);
        memcpy(&is, trace + at + 4, 4);
        if (is == kind && which-- == 0)
            return at;
        at += size;
    }
    ck_abort_msg("no such record");
}

TEST(replay_finds_a_token_that_was_another)
{
    ek k;
    size_t n, at;
    char *trace = record(&k, &n);
    br_replay_report out;

    at = nth(trace, n, BR_TRACE_TOKEN, 40);
    trace[at + 24] ^= 1; /* the token's low bit */
    out = again(&k, trace, n);
    ck_assert_uint_eq(out.same, N - 1);
    ck_assert_uint_ne(out.differs, 0);
    ek_close(&k);
}

/* What came before the end is read, wherever that is. */
TEST(a_trace_that_is_cut_short_is_read_as_far_as_it_goes)
{
    ek k;
    size_t n, head = 8 + 4 + strlen("the model");
    char *trace = record(&k, &n);
    uint64_t tokens = 0;
    uint32_t requests = 0;
    br_replay_report out;

    out = again(&k, trace, n);
    ck_assert(!out.cut);
    for (size_t cut = head; cut < n; cut += 1 + n / 50) {
        br_str doc = {0};
        br_status st = {0};
        bool is = false;

        out = again(&k, trace, cut);
        ck_assert(out.cut);
        ck_assert_uint_eq(out.differs, 0);
        ck_assert_uint_eq(out.same, out.requests);
        ck_assert_uint_ge(out.tokens, tokens);
        ck_assert_uint_ge(out.requests, requests);
        tokens = out.tokens;
        requests = out.requests;
        t_ok(br_trace_timeline(trace, cut, &doc, &is, &st), &st);
        ck_assert(is);
        br_str_fini(&doc);
    }
    ck_assert_uint_eq(requests, N);
    for (size_t cut = 0; cut < head; cut++)
        ck_assert_int_eq(br_replay(trace, cut, &k.c, &out, NULL), BR_E_FORMAT);
    ek_close(&k);
}

TEST(trace_draws_a_timeline)
{
    ek k;
    size_t n;
    char *trace = record(&k, &n);
    br_str doc = {0};
    br_status st = {0};
    br_arena a;
    br_json *j;
    const br_json *events;
    bool cut = true;

    t_ok(br_trace_timeline(trace, n, &doc, &cut, &st), &st);
    ck_assert(!cut);
    br_arena_init(&a, 0);
    t_ok(br_json_parse(&j, &a, doc.at, doc.n, 0, &st), &st);
    events = br_json_get(j, "traceEvents");
    ck_assert_uint_gt(events->n, N * 2);
    br_arena_fini(&a);
    br_str_fini(&doc);
    if (getenv("T_TRACE_SEED")) /* for the fuzzer */
        t_write(getenv("T_TRACE_SEED"), trace, n);
    ek_close(&k);
}
