/* test_engine_meanwhile.c - what an engine does while a device has a step: tokens of the
 * step before are told, in order, and none is lost.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_kit.h"

#include "base/thread.h"
#include "run/engine_int.h"

#include <stdatomic.h>

enum { N = 3, OUT = 40 };

/* The fake model, whose steps end once all tokens before them are heard. */
typedef struct slow_lm {
    br_lm lm;
    const br_lm *fake;
    void (*fn)(void *arg);
    void *arg;
    uint32_t made, steps, owed;
    bool late; /* they were not heard in a minute */
} slow_lm;

static _Atomic uint32_t heard;
static br_output_fn then;

static void
on_heard(void *ctx, const br_output *o)
{
    then(ctx, o);
    if (o->kind == BR_OUTPUT_TOKEN)
        atomic_fetch_add(&heard, 1);
}

static void
meanwhile(void *ctx, void (*fn)(void *arg), void *arg)
{
    slow_lm *s = ctx;

    s->fn = fn;
    s->arg = arg;
}

static br_code
draw(void *ctx, const br_step *step, const br_sample_params *const *p,
     const uint32_t *position, uint32_t n, int32_t *out, br_status *st)
{
    slow_lm *s = ctx;

    s->owed += ((br_engine *)s->arg)->n_owed;
    s->fn(s->arg);
    for (int i = 0; i < 60000 && atomic_load(&heard) < s->made; i++)
        br_sleep_ns(1000000);
    s->late = s->late || atomic_load(&heard) < s->made;
    BR_TRY(s->fake->draw(s->fake->ctx, step, p, position, n, out, st));
    s->made += n;
    s->steps++;
    return BR_OK;
}

static void
reset(void *ctx, uint32_t slot)
{
    const slow_lm *s = ctx;

    s->fake->reset(s->fake->ctx, slot);
}

static void
tells(br_turns *turns)
{
    static ek_req r[N];
    ek_req *all[N];
    slow_lm s = {0};
    br_lm_fake *fake;
    br_status st = {0};
    br_tok *tok;
    ek k;

    t_ok(br_tok_open(&tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    t_ok(br_lm_fake_open(
             &fake, &(br_lm_fake_config){.n_vocab = br_tok_count(tok)}, &st),
         &st);
    s.fake = br_lm_fake_lm(fake);
    s.lm = *s.fake;
    s.lm.ctx = &s;
    s.lm.draw = draw;
    s.lm.meanwhile = meanwhile;
    s.lm.ahead = NULL;
    s.lm.reset = reset;
    ek_open_on(&k, tok, (br_engine_config){.lm = &s.lm, .turns = turns});
    memset(r, 0, sizeof r);
    atomic_store(&heard, 0);
    for (uint32_t i = 0; i < N; i++) {
        br_request_desc d;

        ek_prompt(&r[i], 5 + i, i);
        all[i] = &r[i];
        d = ek_desc(&r[i], OUT);
        d.ignore_eog = true;
        then = d.output;
        d.output = on_heard;
        ek_submit(&k, &r[i], &d);
    }
    ek_await(&k, all, N);
    for (uint32_t i = 0; i < N; i++)
        ck_assert_uint_eq(r[i].n_out, OUT);
    ek_close(&k);
    ck_assert(!s.late);
    ck_assert_uint_gt(s.owed, N * OUT / 2); /* not told before */
    ck_assert_uint_ge(s.steps, OUT);
    ck_assert(!s.fn); /* it has let go of the model */
    br_lm_fake_close(fake);
}

/* A server's engines take turns, of which nobody else wants one here. */
TEST_WITHIN(engine_tells_tokens_while_the_device_has_the_next_step, 120)
{
    br_turns turns = {.lock = BR_MUTEX};

    tells(NULL);
    tells(&turns);
}
