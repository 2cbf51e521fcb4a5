/* test_invariance.c - a request's logits, to the bit, whatever happens around
 * it: alone, among 15 others, after it lost its slot, with its beginning found
 * in the cache. On the reference tier, with real graphs: full attention,
 * windows, experts, recurrent states.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_kit.h"

#include "base/thread.h"
#include "logits_kit.h"
#include "run/lm_model.h"
#include "run/oracle.h"
#include "tok_kit.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { OTHERS = 15, CTX = 96, SLOTS = 3, PROMPT = 38, OUT = 10 };

static int32_t
token_of(uint64_t seed, uint32_t i, int32_t n_vocab)
{
    uint64_t z = (seed * 1000 + i + 1) * 0x9e3779b97f4a7c15u;

    return (int32_t)((z >> 33) % (uint64_t)n_vocab);
}

static void
make_prompt(ek_req *r, uint32_t n, uint64_t seed, int32_t n_vocab)
{
    *r = (ek_req){.n_prompt = n};
    for (uint32_t i = 0; i < n; i++)
        r->prompt[i] = token_of(seed, i, n_vocab);
}

static void
ask(ek *k, ek_req *r, uint32_t tenant, int64_t n_out)
{
    br_request_desc d = ek_desc(r, n_out);

    d.tenant = tenant;
    d.digest = true;
    d.sample = br_sample_defaults();
    d.sample.seed = 5;
    ek_submit(k, r, &d);
}

static void
same(const char *what, const ek_req *a, const ek_req *b)
{
    ck_assert_msg(a->n_out == OUT && b->n_out == OUT, "%s: %u and %u tokens",
                  what, a->n_out, b->n_out);
    ck_assert_msg(memcmp(a->out, b->out, OUT * sizeof *a->out) == 0,
                  "%s: other tokens", what);
    ck_assert_msg(a->usage.digest == b->usage.digest && a->usage.digest != 0,
                  "%s: other logits", what);
}

/* Behind the first tokens of its answer, as if it had made them. */
static void
goes_on(const char *what, ek *k, const ek_req *whole)
{
    enum { DONE = 4 };
    static ek_req r;
    ek_req *one[] = {&r};
    br_request_desc d;

    r = (ek_req){.n_prompt = PROMPT, .n_out = DONE};
    memcpy(r.prompt, whole->prompt, PROMPT * sizeof *r.prompt);
    memcpy(r.prompt + PROMPT, whole->out, DONE * sizeof *r.prompt);
    memcpy(r.out, whole->out, DONE * sizeof *r.out);
    d = ek_desc(&r, OUT);
    d.n_tokens = PROMPT + DONE;
    d.n_done = DONE;
    d.sample = br_sample_defaults();
    d.sample.seed = 5;
    ek_submit(k, &r, &d);
    ek_await(k, one, 1);
    ck_assert_msg(r.n_out == OUT &&
                      memcmp(r.out, whole->out, OUT * sizeof *r.out) == 0,
                  "%s: goes on with other tokens", what);
    ck_assert_uint_eq(r.usage.n_out, OUT);
    ck_assert_uint_eq(r.usage.n_prompt, PROMPT);
    ck_assert_uint_eq(r.n_text, whole->n_text);
    ck_assert_msg(memcmp(r.text, whole->text, r.n_text) == 0, "%s: other text",
                  what);
}

/* Returns how often the request lost its slot. */
static uint32_t
try_model(const char *name, const br_model *m, const br_tok *tok,
          uint32_t n_others)
{
    static ek_req alone, again, among, other[OTHERS];
    ek_req *one[] = {&alone}, *two[] = {&again}, *all[OTHERS + 1] = {&among};
    br_quota q = br_quota_defaults();
    br_status st = {0};
    br_lm_config c = {.n_ctx = CTX, .n_slots = SLOTS};
    br_lm_model *lm;
    ek k = {0};
    int32_t n_vocab;

    t_ok(br_lm_model_open(&lm, m, &c, &st), &st);
    n_vocab = br_lm_model_lm(lm)->n_vocab;
    k.c = (br_engine_config){.lm = br_lm_model_lm(lm), .tok = tok};
    t_ok(br_engine_new(&k.e, &k.c, &st), &st);
    q.qos = BR_QOS_BATCH;
    t_ok(br_engine_tenant_set(k.e, 1, &q, &st), &st);
    q.qos = BR_QOS_INTERACTIVE;
    t_ok(br_engine_tenant_set(k.e, 2, &q, &st), &st);
    make_prompt(&alone, PROMPT, 1, n_vocab);
    make_prompt(&again, PROMPT, 1, n_vocab);
    make_prompt(&among, PROMPT, 1, n_vocab);
    ask(&k, &alone, 0, OUT);
    ek_await(&k, one, 1);
    ask(&k, &again, 0, OUT); /* finds its beginning */
    ek_await(&k, two, 1);
    same(name, &alone, &again);
    ck_assert_msg(again.usage.n_cached == 32, "%s: %u tokens found", name,
                  again.usage.n_cached);
    goes_on(name, &k, &alone);
    ask(&k, &among, 1, OUT); /* another tenant: finds nothing */
    while (among.n_out < 2)
        (void)br_engine_drain(k.e, 1);
    for (uint32_t i = 0; i < n_others; i++) {
        all[i + 1] = &other[i];
        make_prompt(&other[i], 1 + i * 2, i % 4, n_vocab);
        ask(&k, &other[i], 1 + i % 2, 4);
    }
    ek_await(&k, all, n_others + 1);
    same(name, &alone, &among);
    ck_assert_uint_eq(among.usage.n_cached, 0);
    br_engine_free(k.e);
    br_lm_model_close(lm);
    return among.usage.n_preempted;
}

TEST_WITHIN(engine_logits_do_not_depend_on_company, 60)
{
    static const char *const quick[] = {
        "llama", "gemma3", "qwen35", "falcon-h1", "gpt-oss", "lfm2", "mamba2"};
    tk_vocab v = {.model = "llama", .scores = true};
    uint32_t preempted = 0, n = 0;
    br_tok *tok;

    tk_add_bytes(&v);
    tok = tk_open(&v, NULL);
    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);
        br_model *m;
        br_status st = {0};
        bool is = false;

        /* A sanitizer run takes the first case and one of a recurrent model. */
        for (size_t a = t_sanitized() ? 2 : 0;
             a < (t_sanitized() ? 3 : BR_COUNT(quick)); a++)
            is = is || strcmp(c.arch, quick[a]) == 0;
        if (!c.arch_first || (n && !is))
            continue;
        t_ok(br_model_open_mem(&m, c.file, c.file_n, &st), &st);
        preempted += try_model(c.name, m, tok, OTHERS);
        /* A quick machine may be done before the others ask. */
        for (int again = 0; again < 50 && preempted == 0; again++)
            preempted += try_model(c.name, m, tok, OTHERS);
        br_model_close(m);
        n++;
    }
    ck_assert_uint_gt(preempted, 0);
    br_tok_free(tok);
    lk_end();
}

TEST_WITHIN(engine_logits_of_the_demo_model_do_not_depend_on_company, 60)
{
    br_model *m;
    br_tok *tok;
    br_status st = {0};

    if (t_sanitized())
        t_skip("a minute with sanitizers; the other test is of the same code");
    t_ok(br_model_open(&m, t_repo("models/demo.gguf"), &st), &st);
    t_ok(br_tok_open(&tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    (void)try_model("demo", m, tok, 3);
    br_tok_free(tok);
    br_model_close(m);
}

/* ---- logprobs of a prompt ------------------------------------------------ */

TEST_WITHIN(a_prompts_logprobs_are_those_of_the_oracles_logits, 60)
{
    static ek_req r, other;
    ek_req *all[] = {&r, &other};
    br_lm_config c = {.n_ctx = CTX, .n_slots = SLOTS};
    br_oracle_config oc = {
        .n_ctx = CTX, .act = BR_REF_QUANTISED, .kv = BR_Q_F16, .max_rows = 64};
    br_request_desc d;
    br_status st = {0};
    br_lm_model *lm;
    br_oracle o;
    br_model *m;
    float *logits;
    size_t v;
    ek k = {0};

    t_ok(br_model_open(&m, t_repo("models/demo.gguf"), &st), &st);
    t_ok(br_tok_open(&k.tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    t_ok(br_lm_model_open(&lm, m, &c, &st), &st);
    v = (size_t)m->hp.n_vocab;
    k.c = (br_engine_config){.lm = br_lm_model_lm(lm), .tok = k.tok};
    t_ok(br_engine_new(&k.e, &k.c, &st), &st);
    make_prompt(&r, PROMPT, 1, (int32_t)v);
    make_prompt(&other, PROMPT, 2, (int32_t)v);
    ask(&k, &other, 0, OUT);
    d = ek_desc(&r, 0);
    ek_score(&r, &d);
    ek_submit(&k, &r, &d);
    ek_await(&k, all, 2);
    ck_assert_uint_eq(r.n_scores, PROMPT);
    logits = br_alloc(PROMPT * v * sizeof *logits);
    t_ok(br_cpu_pool_new(&oc.pool, 1, &st), &st);
    t_ok(br_oracle_open(&o, m, &oc, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, r.prompt, PROMPT, 0, logits, &st), &st);
    for (uint32_t i = 1; i < PROMPT; i++) {
        const float *x = logits + (i - 1) * v;
        double sum = 0, best = -1e9, want;

        for (size_t t = 0; t < v; t++) {
            sum += exp((double)x[t]);
            best = fmax(best, (double)x[t]);
        }
        want = (double)x[r.prompt[i]] - log(sum);
        ck_assert_msg(fabs((double)r.scores[i][0].logprob - want) < 2e-5,
                      "%u: %g, not %g", i, (double)r.scores[i][0].logprob,
                      want);
        ck_assert(fabs((double)r.scores[i][1].logprob - best + log(sum)) <
                  2e-5);
    }
    br_free(logits);
    br_oracle_close(&o);
    br_cpu_pool_free(oc.pool);
    br_engine_free(k.e);
    br_lm_model_close(lm);
    br_tok_free(k.tok);
    br_model_close(m);
}

/* ---- embeddings ---------------------------------------------------------- */

enum { TEXT = 40, ROW = 4096 };

/* Column v of the logits of each row is the head's row v times what it reads. */
static void
reads_the_head(const br_model *m, const float *hidden, const float *logits)
{
    const br_gguf_tensor *w = br_model_tensor(m, BR_W_OUT, 0);
    size_t n = (size_t)m->hp.n_embd;
    static float row[ROW];

    w = w ? w : br_model_tensor(m, BR_W_EMBED, 0);
    ck_assert_uint_le(n, ROW);
    for (uint32_t t = 0; t < TEXT; t++)
        for (int64_t v = t; v < m->hp.n_vocab; v += m->hp.n_vocab / 5) {
            double sum = 0, want = logits[t * m->hp.n_vocab + v];

            br_dequant((int)w->type,
                       (const uint8_t *)w->data +
                           w->bytes / (uint64_t)m->hp.n_vocab * (uint64_t)v,
                       row, n);
            for (size_t i = 0; i < n; i++)
                sum += (double)row[i] * (double)hidden[t * n + i];
            ck_assert_msg(fabs(sum - want) < 1e-3 * (1 + fabs(want)),
                          "row %u, token %d: %g, not %g", t, (int)v, sum, want);
        }
}

static void
pool(const float *hidden, size_t n, br_pooling how, float *out)
{
    static double sum[ROW];
    double square = 0;

    memset(sum, 0, sizeof sum);
    for (uint32_t t = 0; t < TEXT; t++)
        for (size_t i = 0; i < n; i++)
            if (how == BR_POOLING_MEAN ||
                t == (how == BR_POOLING_CLS ? 0 : TEXT - 1))
                sum[i] += (double)hidden[t * n + i];
    for (size_t i = 0; i < n; i++)
        square += sum[i] * sum[i];
    for (size_t i = 0; i < n; i++)
        out[i] = (float)(sum[i] / sqrt(square));
}

/* Alone and between two others, whose rows stand in the same steps. */
static void
embeds(const char *tier, const br_model *m, const br_tok *tok,
       const float *hidden)
{
    static float want[ROW];
    static ek_req r[4];
    ek_req *all[] = {&r[0], &r[1], &r[2], &r[3]};
    size_t n = (size_t)m->hp.n_embd;
    br_lm_config c = {
        .n_ctx = CTX, .n_slots = SLOTS, .tier = tier, .exact = true};
    br_lm_model *model;
    br_status st = {0};

    t_ok(br_lm_model_open(&model, m, &c, &st), &st);
    for (br_pooling how = BR_POOLING_MEAN; how <= BR_POOLING_LAST; how++) {
        br_lm lm = *br_lm_model_lm(model);
        ek k = {.c = {.lm = &lm, .tok = tok}};

        lm.pooling = how;
        lm.chunk = 16;
        pool(hidden, n, how, want);
        t_ok(br_engine_new(&k.e, &k.c, &st), &st);
        for (int i = 0; i < 4; i++) {
            br_request_desc d;

            make_prompt(&r[i], i % 2 ? 9 : TEXT, i % 2 ? 2 : 1, lm.n_vocab);
            d = ek_desc(&r[i], 0);
            ek_embed(&r[i], &d);
            ek_submit(&k, &r[i], &d);
            if (i == 0)
                ek_await(&k, all, 1);
        }
        ek_await(&k, all, 4);
        for (int i = 0; i < 4; i += 2) {
            ck_assert_uint_eq(r[i].n_embedding, n);
            ck_assert_msg(memcmp(r[i].embedding, want, n * 4) == 0,
                          "%s, pooling %d, text %d", tier, how, i);
        }
        br_engine_free(k.e);
    }
    br_lm_model_close(model);
}

TEST(engine_embeddings_are_of_what_the_head_reads)
{
    static int32_t text[TEXT];
    br_oracle_config c = {.n_ctx = CTX};
    size_t n;
    float *hidden, *logits;
    br_status st = {0};
    br_oracle o;
    tk_vocab v = {.model = "llama", .scores = true};
    lk_case file = lk_get(0);
    br_model *m;
    br_tok *tok;

    tk_add_bytes(&v);
    tok = tk_open(&v, NULL);
    t_ok(br_model_open_mem(&m, file.file, file.file_n, &st), &st);
    n = (size_t)m->hp.n_embd;
    hidden = br_alloc(TEXT * n * sizeof *hidden);
    logits = br_alloc(TEXT * (size_t)m->hp.n_vocab * sizeof *logits);
    for (uint32_t i = 0; i < TEXT; i++)
        text[i] = token_of(1, i, (int32_t)m->hp.n_vocab);
    for (int act = BR_REF_F32; act <= (int)BR_REF_QUANTISED; act++) {
        c.act = (br_ref_act)act;
        t_ok(br_oracle_open(&o, m, &c, &st), &st);
        t_ok(br_oracle_feed(&o, 0, 0, text, TEXT, 0, logits, &st), &st);
        memcpy(hidden, br_oracle_hidden(&o, BR_IR_PREFILL, &st),
               TEXT * n * sizeof *hidden);
        br_oracle_close(&o);
        if (act == BR_REF_F32)
            reads_the_head(m, hidden, logits);
    }
    embeds("ref", m, tok, hidden);
    embeds("cpu", m, tok, hidden);
    br_free(hidden);
    br_free(logits);
    br_tok_free(tok);
    br_model_close(m);
    lk_end();
}

/* ---- steps that are cancelled ---------------------------------------------- */

typedef struct flipper {
    br_thread thread;
    _Atomic int64_t delay_ns; /* -1: none is wanted */
    atomic_bool flag, over;
} flipper;

/* The flag goes up some time after a feed has begun. */
static void
flip(void *arg)
{
    flipper *f = arg;

    while (!atomic_load(&f->over)) {
        int64_t delay = atomic_exchange(&f->delay_ns, -1);
        int64_t till = br_now_ns() + delay;

        while (delay >= 0 && br_now_ns() < till)
            br_cpu_relax();
        if (delay >= 0)
            atomic_store(&f->flag, true);
        br_cpu_relax();
    }
}

/* Logits after all tokens, in two steps; `most` are cancelled at other places. */
static float *
read_through(const lk_case *c, const br_model *m, const char *tier,
             uint32_t most, uint32_t *cancelled)
{
    enum { PLACES = 16 };
    br_lm_config how = {.n_ctx = CTX, .tier = tier, .threads = 1};
    float *logits = t_keep(calloc(c->n_vocab, sizeof *logits));
    flipper f = {.delay_ns = -1};
    uint32_t n = 0, half = c->n_tokens / 2;
    int64_t step_ns = 0;
    br_status st = {0};
    br_lm_model *r;
    const br_lm *lm;

    t_ok(br_lm_model_open(&r, m, &how, &st), &st);
    lm = br_lm_model_lm(r);
    t_ok(br_thread_start(&f.thread, "flip", flip, &f, &st), &st);
    for (uint32_t at = 0; at < c->n_tokens;) {
        uint32_t rows = at ? c->n_tokens - at : half, kept;
        int64_t begin = br_now_ns();
        br_status why = {0};

        /* The first of each round whatever the other thread is at. */
        atomic_store(&f.flag, n < most && step_ns && n % PLACES == 0);
        lm->until(lm->ctx, n < most && step_ns ? &f.flag : NULL);
        if (n < most && step_ns)
            atomic_store(&f.delay_ns, step_ns * (n % PLACES) / PLACES);
        if (lm->feed(lm->ctx, 0, at, c->tokens + at, rows, logits, &why) ==
            BR_OK) {
            if (!step_ns) { /* how long it takes, then again */
                step_ns = br_now_ns() - begin;
                ck_assert_uint_eq(lm->keep(lm->ctx, 0, 0), 0);
                continue;
            }
            n++; /* it was over before the flag went up */
            at += rows;
            continue;
        }
        ck_assert_msg(why.code == BR_E_CANCELLED, "%s", why.msg);
        kept = lm->keep(lm->ctx, 0, at);
        ck_assert_msg(kept == at || kept == 0, "%u of %u", kept, at);
        at = kept;
        n++;
        ++*cancelled;
    }
    atomic_store(&f.over, true);
    br_thread_join(&f.thread);
    br_lm_model_close(r);
    return logits;
}

TEST_WITHIN(a_step_that_was_cancelled_leaves_nothing_behind, 60)
{
    static const char *const archs[] = {"llama", "gemma3", "qwen35",
                                        "falcon-h1", "lfm2"};

    for (int ref = 0; ref < 2; ref++) {
        uint32_t n = 0, none = 0;

        for (size_t i = 0; i < lk_count(); i++) {
            const char *tier = ref ? "ref" : "cpu";
            lk_case c = lk_get(i);
            br_status st = {0};
            bool is = false;
            float *a, *b;
            br_model *m;

            for (size_t k = 0; k < BR_COUNT(archs); k++)
                is = is || strcmp(c.arch, archs[k]) == 0;
            if (!c.arch_first || (n && !is))
                continue;
            t_ok(br_model_open_mem(&m, c.file, c.file_n, &st), &st);
            a = read_through(&c, m, tier, 0, &none);
            b = read_through(&c, m, tier, 40, &n);
            ck_assert_msg(memcmp(a, b, c.n_vocab * sizeof *a) == 0,
                          "%s on %s: other logits", c.name, tier);
            br_model_close(m);
        }
        ck_assert_uint_gt(n, 0);
        ck_assert_uint_eq(none, 0);
    }
    lk_end();
}
