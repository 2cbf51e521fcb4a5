/* test_engine_ahead.c - what an engine says of its next step while a device has one: the
 * same rows, a token on, or it does not know.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_kit.h"

#include "base/thread.h"
#include "run/engine_int.h"

#include <stdatomic.h>

enum { MOST = 8, DRAWS = 200 };

/* The fake model, which asks about the next step in each. */
typedef struct asking_lm {
    br_lm lm;
    const br_lm *fake;
    br_lm_fake *f;
    br_engine *e;
    void (*meanwhile)(void *arg);
    bool (*ahead)(void *arg);
    void *arg;
    bool yes[DRAWS]; /* what it said in each draw */
    uint32_t n_draws, owed;
    int32_t slot[MOST], next[MOST], token[MOST]; /* of which it said so */
    uint32_t n;
    uint32_t broken; /* draws that were others than it had said */
    /* In a draw of that number the device waits until the test has done what it does. */
    _Atomic uint32_t stops_at;
    atomic_bool stopped, go;
} asking_lm;

static void
meanwhile(void *ctx, void (*fn)(void *arg), void *arg)
{
    asking_lm *s = ctx;

    s->meanwhile = fn;
    (void)arg;
}

static void
ahead(void *ctx, bool (*fn)(void *arg), void *arg)
{
    asking_lm *s = ctx;

    s->ahead = fn;
    s->arg = arg ? arg : s->arg;
}

static bool
as_said(const asking_lm *s, const br_step *step)
{
    bool same = step->n_rows == s->n;

    for (uint32_t i = 0; same && i < s->n; i++)
        same = step->slot[i] == s->slot[i] && step->position[i] == s->next[i] &&
               step->token[i] == s->token[i];
    return same;
}

static void
wait_to_go(asking_lm *s)
{
    atomic_store(&s->stopped, true);
    for (int i = 0; i < 60000 && !atomic_load(&s->go); i++)
        br_sleep_ns(1000000);
    atomic_store(&s->go, false);
}

static br_code
draw(void *ctx, const br_step *step, const br_sample_params *const *p,
     const uint32_t *position, uint32_t n, int32_t *out, br_status *st)
{
    asking_lm *s = ctx;
    const uint32_t i = s->n_draws++;

    s->broken += s->n && !as_said(s, step);
    s->owed += ((br_engine *)s->arg)->n_owed;
    s->meanwhile(s->arg);
    if (i == atomic_load(&s->stops_at))
        wait_to_go(s);
    BR_TRY(s->fake->draw(s->fake->ctx, step, p, position, n, out, st));
    br_check(i < DRAWS);
    s->yes[i] = s->ahead(s->arg);
    s->n = s->yes[i] ? step->n_rows : 0;
    br_check(s->n <= MOST);
    for (uint32_t t = 0; t < s->n; t++) {
        s->slot[t] = step->slot[t];
        s->next[t] = step->position[t] + 1;
        s->token[t] = out[t];
    }
    return BR_OK;
}

static br_code
step(void *ctx, const br_step *st, float *logits, br_status *why)
{
    asking_lm *s = ctx;

    s->broken += s->n > 0;
    s->n = 0;
    return s->fake->step(s->fake->ctx, st, logits, why);
}

static void
reset(void *ctx, uint32_t slot)
{
    const asking_lm *s = ctx;

    s->fake->reset(s->fake->ctx, slot);
}

/* An engine; its first draw waits until the test says go. */
static void
open_asking(asking_lm *s, ek *k, uint32_t n_slots, br_turns *turns)
{
    br_lm_fake_config c = {.n_slots = n_slots};
    br_status st = {0};
    br_tok *tok;

    memset(s, 0, sizeof *s);
    t_ok(br_tok_open(&tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    c.n_vocab = br_tok_count(tok);
    t_ok(br_lm_fake_open(&s->f, &c, &st), &st);
    s->fake = br_lm_fake_lm(s->f);
    s->lm = *s->fake;
    s->lm.ctx = s;
    s->lm.draw = draw;
    s->lm.step = step;
    s->lm.meanwhile = meanwhile;
    s->lm.ahead = ahead;
    s->lm.reset = reset;
    ek_open_on(k, tok, (br_engine_config){.lm = &s->lm, .turns = turns});
}

static void
close_asking(asking_lm *s, ek *k)
{
    ek_close(k);
    ck_assert(!s->ahead); /* it has let go of the model */
    br_lm_fake_close(s->f);
}

static void
ask(ek *k, ek_req *r, uint32_t seed, int64_t out)
{
    br_request_desc d;

    ek_prompt(r, 5 + seed, seed);
    d = ek_desc(r, out);
    d.ignore_eog = true;
    ek_submit(k, r, &d);
}

static void
await_stop(asking_lm *s)
{
    for (int i = 0; i < 60000 && !atomic_load(&s->stopped); i++)
        br_sleep_ns(1000000);
    ck_assert(atomic_exchange(&s->stopped, false));
}

/* The device goes on; it waits again in draw n. */
static void
go(asking_lm *s, uint32_t n)
{
    atomic_store(&s->stops_at, n);
    atomic_store(&s->go, true);
}

static uint32_t
said_yes(const asking_lm *s, uint32_t from, uint32_t to)
{
    uint32_t n = 0;

    for (uint32_t i = from; i < to; i++)
        n += s->yes[i];
    return n;
}

/* Answers of several lengths: where one ends it is not said, in all other steps it is,
 * and what is said comes. With and without turns that nobody else takes. */
static void
lengths(br_turns *turns)
{
    static const int64_t out[] = {10, 20, 30};
    static ek_req r[3];
    static asking_lm s;
    ek k;

    open_asking(&s, &k, 4, turns);
    memset(r, 0, sizeof r);
    ask(&k, &r[0], 0, out[0]);
    await_stop(&s);
    for (uint32_t i = 1; i < 3; i++)
        ask(&k, &r[i], i, out[i]);
    go(&s, UINT32_MAX);
    ek_await(&k, (ek_req *[]){&r[0], &r[1], &r[2]}, 3);
    ck_assert_uint_eq(s.broken, 0);
    ck_assert(!s.yes[0]); /* others had come */
    /* of some 31, a few of which have a prompt, or the last token of an answer */
    ck_assert(!s.yes[s.n_draws - 1]);
    ck_assert_uint_gt(said_yes(&s, 0, s.n_draws), 15);
    ck_assert_uint_gt(s.owed, 30); /* of 60 tokens */
    for (uint32_t i = 0; i < 3; i++)
        ek_right(&(ek){.fake = s.f, .tok = k.tok, .e = k.e}, &r[i]);
    close_asking(&s, &k);
}

TEST_WITHIN(engine_says_that_the_next_step_is_of_the_same, 120)
{
    br_turns turns = {.lock = BR_MUTEX};

    lengths(NULL);
    lengths(&turns);
}

/* Who waits for a slot gets it as soon as there is one. */
TEST_WITHIN(engine_says_nothing_while_somebody_waits, 120)
{
    static ek_req r[3];
    static asking_lm s;
    ek k;

    open_asking(&s, &k, 2, NULL);
    ask(&k, &r[0], 0, 10);
    await_stop(&s);
    ask(&k, &r[1], 1, 40);
    ask(&k, &r[2], 2, 40);
    go(&s, UINT32_MAX);
    ek_await(&k, (ek_req *[]){&r[0], &r[1], &r[2]}, 3);
    ck_assert_uint_eq(s.broken, 0);
    ck_assert_uint_eq(said_yes(&s, 0, 10), 0);
    ck_assert_uint_gt(said_yes(&s, 10, s.n_draws), 10);
    close_asking(&s, &k);
}

static void
take_turn(void *arg)
{
    br_turns *t = arg;
    br_turn me = {0};

    br_turn_take(t, &me);
    br_turn_give(t, &me, 1);
}

/* What comes while the device has a step is seen: a request, the end of one, a reader
 * that is behind, another model's turn. */
TEST_WITHIN(engine_sees_what_comes_while_the_device_has_a_step, 120)
{
    static ek_req r[3];
    static asking_lm s;
    br_turns turns = {.lock = BR_MUTEX};
    br_thread other;
    br_status st = {0};
    ek k;

    open_asking(&s, &k, 4, &turns);
    ask(&k, &r[0], 0, 100);
    await_stop(&s);
    go(&s, 5);
    await_stop(&s);
    ask(&k, &r[1], 1, 100);
    go(&s, 25);
    await_stop(&s);
    br_engine_cancel(k.e, r[1].id);
    go(&s, 45);
    await_stop(&s);
    br_engine_hold(k.e, r[0].id, true);
    br_engine_hold(k.e, r[0].id, false);
    go(&s, 65);
    await_stop(&s);
    t_ok(br_thread_start(&other, "other", take_turn, &turns, &st), &st);
    for (int i = 0; i < 60000 && br_turn_alone(&turns, true); i++)
        br_sleep_ns(1000000);
    go(&s, UINT32_MAX);
    ek_await(&k, (ek_req *[]){&r[0], &r[1]}, 2);
    br_thread_join(&other);
    for (uint32_t i = 5; i <= 65; i += 20)
        ck_assert_msg(s.yes[i - 1] && !s.yes[i], "draw %u: %d %d", i,
                      s.yes[i - 1], s.yes[i]);
    ck_assert_uint_eq(s.broken, 0);
    close_asking(&s, &k);
}
