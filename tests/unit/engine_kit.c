/* engine_kit.c - see engine_kit.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_kit.h"

#include "base/rng.h"
#include "base/thread.h"

#include <stdio.h>
#include <string.h>

void
ek_open(ek *k, br_lm_fake_config fc, br_engine_config ec)
{
    br_status st = {0};

    *k = (ek){0};
    t_ok(br_tok_open(&k->tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    fc.n_vocab = br_tok_count(k->tok);
    if (fc.n_common == 0) { /* no token that would end an answer */
        size_t n;
        const int32_t *eog = br_tok_eog(k->tok, &n);

        fc.n_common = fc.n_vocab;
        for (size_t i = 0; i < n; i++)
            if (eog[i] > fc.n_vocab / 2)
                fc.n_common = BR_MIN(fc.n_common, eog[i]);
    }
    t_ok(br_lm_fake_open(&k->fake, &fc, &st), &st);
    ec.lm = br_lm_fake_lm(k->fake);
    ec.tok = k->tok;
    k->c = ec;
    t_ok(br_engine_new(&k->e, &ec, &st), &st);
}

void
ek_open_on(ek *k, br_tok *tok, br_engine_config ec)
{
    br_status st = {0};

    *k = (ek){.tok = tok};
    ec.tok = tok;
    k->c = ec;
    t_ok(br_engine_new(&k->e, &ec, &st), &st);
}

void
ek_close(ek *k)
{
    br_engine_free(k->e);
    br_lm_fake_close(k->fake);
    br_tok_free(k->tok);
}

atomic_bool ek_begun, ek_go;

bool
ek_waits_to_go(void *ctx, float *logits, int32_t n_vocab)
{
    (void)ctx, (void)logits, (void)n_vocab;
    atomic_store(&ek_begun, true);
    while (!atomic_load(&ek_go))
        br_sleep_ns(100000);
    return true;
}

void
ek_prompt(ek_req *r, uint32_t n, uint64_t seed)
{
    br_rng g;

    ck_assert_uint_le(n, BR_COUNT(r->prompt));
    br_rng_init(&g, seed, 7);
    for (uint32_t i = 0; i < n; i++)
        r->prompt[i] = (int32_t)br_rng_below(&g, 1000);
    r->n_prompt = n;
}

static void
on_output(void *ctx, const br_output *o)
{
    ek_req *r = ctx;

    ck_assert(!r->over && o->id == r->id);
    r->n_events++;
    if (o->text.n) {
        ck_assert(r->n_text + o->text.n < sizeof r->text);
        memcpy(r->text + r->n_text, o->text.p, o->text.n);
        r->n_text += o->text.n;
    }
    switch (o->kind) {
    case BR_OUTPUT_TOKEN:
        ck_assert_uint_eq(o->head.generated_pos, r->n_out);
        ck_assert_uint_lt(r->n_out, EK_MAX_OUT);
        r->out[r->n_out++] = (int32_t)o->head.token;
        break;
    case BR_OUTPUT_PREEMPTED: /* behind all tokens that it made */
        ck_assert(!r->n_out || o->head.generated_pos + 1 == r->n_out);
        r->n_preempted++;
        break;
    case BR_OUTPUT_PROGRESS: break; /* none is asked for */
    case BR_OUTPUT_END:
        ck_assert_uint_eq(o->head.eot, 1);
        r->over = true;
        r->usage = *o->usage;
        r->code = o->code;
        (void)snprintf(r->error, sizeof r->error, "%s", o->error);
        ck_assert_uint_eq(r->usage.n_out, r->n_out);
        ck_assert_uint_eq(r->usage.n_prompt, r->n_prompt);
        break;
    }
}

br_request_desc
ek_desc(ek_req *r, int64_t max_tokens)
{
    br_request_desc d = br_request_defaults();

    d.tokens = r->prompt;
    d.n_tokens = r->n_prompt;
    d.sample.temperature = 0;
    d.max_tokens = max_tokens;
    d.ignore_eog = true;
    d.output = on_output;
    d.ctx = r;
    return d;
}

void
ek_submit(ek *k, ek_req *r, const br_request_desc *d)
{
    br_status st = {0};

    t_ok(br_engine_submit(k->e, d, &r->id, &st), &st);
}

void
ek_await(ek *k, ek_req *const *r, size_t n)
{
    int64_t end = br_now_ns() + INT64_C(60000000000);

    for (size_t i = 0; i < n;) {
        if (r[i]->over) {
            i++;
            continue;
        }
        ck_assert_msg(br_now_ns() < end, "request %zu of %zu hangs", i, n);
        if (br_engine_drain(k->e, 1000) == 0)
            (void)br_engine_wait(k->e, 100000000);
    }
}

void
ek_right(ek *k, const ek_req *r)
{
    int32_t all[BR_COUNT(r->prompt) + EK_MAX_OUT];

    memcpy(all, r->prompt, r->n_prompt * sizeof *all);
    for (uint32_t i = 0; i < r->n_out; i++) {
        uint32_t n = r->n_prompt + i;

        all[n] = br_lm_fake_next(k->fake, all, n);
        if (all[n] != r->out[i])
            ck_abort_msg("token %u of %u is %d, not %d", i, r->n_out, r->out[i],
                         all[n]);
    }
}
