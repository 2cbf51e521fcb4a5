/* cuda_ahead.c - a step ahead: the head of the next step, written while a launch that
 * stays has one.
 *
 *   step N      head N ... br_stay has it ... 3/4 of its time: head N + 1? ... tokens
 *   step N + 1  the same rows, or some of them: its tokens are waited for
 *               anything else: the launch is left, N + 1 was for nothing
 *
 * Its rows say "what you drew" in place of tokens, so the device goes on without
 * waiting for the host. It is of slots whose states are pages alone: what it writes
 * there is behind their tokens, in a page that each of them had to itself when the step
 * before ran, and everything that writes those places for somebody comes behind it.
 * Head N + 1 takes the place of head N, so it waits until the device says that
 * it has taken that one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"

void
br_cun_ahead(br_cun *x, bool (*fn)(void *arg), void *arg)
{
    if (x->stay.ahead.rows)
        cun_leave(x);
    x->stay.ahead.fn = fn;
    x->stay.ahead.arg = arg;
}

static uint64_t
taken(const br_cun *x)
{
    return __atomic_load_n(&x->stay.host->taken, __ATOMIC_ACQUIRE);
}

/* Late in a step: who arrives before does not wait for one ahead. */
void
cun_await_ahead(br_cun *x, const br_step *step, const br_cun_pick *p)
{
    cun_ahead *a = &x->stay.ahead;

    a->step = a->fn && a->known && step->n_rows == x->stay.rows ? step : NULL;
    a->how = p;
    a->due_ns = a->from_ns + a->took_ns / 4 * 3;
}

/* Of the step at hand, is the next one such that it can be ahead? A page that is full
 * has a next one that nobody has named yet. */
static bool
can(const br_cun *x, const br_step *step)
{
    uint64_t hands;

    if (x->v.plan.slot_elems || step->hidden || x->stay.epoch == UINT32_MAX ||
        !br_cuda_alone(&x->cu, &hands) || hands != x->stay.hands)
        return false;
    for (uint32_t t = 0; t < step->n_rows; t++) {
        const uint32_t next = (uint32_t)step->position[t] + 1;

        if (next % BR_PAGE_TOKENS == 0 || next >= x->c.n_ctx)
            return false;
    }
    return true;
}

static void
promise(br_cun *x, const br_step *step, const br_cun_pick *p)
{
    cun_ahead *a = &x->stay.ahead;
    struct br_stay_row *row = x->stay.host->row[(x->stay.epoch + 1) & 1];

    for (uint32_t t = 0; t < step->n_rows; t++) {
        a->slot[t] = step->slot[t];
        a->position[t] = step->position[t] + 1;
        a->pick[t] = p[t];
        a->pick[t].position++;
        row[t].slot = a->slot[t];
        row[t].position = a->position[t];
        row[t].token = BR_STAY_DRAWN;
        row[t].how = cun_how(x, t, &a->pick[t]);
    }
    a->rows = step->n_rows;
    a->epoch = cun_say_head(x, a->rows, 0);
}

void
cun_look_ahead(br_cun *x)
{
    cun_ahead *a = &x->stay.ahead;
    const br_step *step = a->step;
    int64_t now;

    if (!step || (now = br_now_ns()) < a->due_ns || taken(x) != x->stay.epoch)
        return;
    a->step = NULL;
    if (!can(x, step) || !a->fn(a->arg))
        return;
    promise(x, step, a->how);
    x->costs.submit_ns += (uint64_t)(br_now_ns() - now);
}

/* What the step brings of tables are pages that slots have given back, which no row
 * looks at. */
static bool
brings_no_page(const br_cun *x)
{
    for (size_t i = 0; i < x->fresh.n; i++) {
        const cun_fresh *f = &x->fresh.at[i];
        const uint32_t g = f->at / x->table_n % x->v.plan.n_groups;

        for (uint32_t k = 0; k < f->n; k++)
            if (x->listed[f->at + k] < x->c.n_pages[g])
                return false;
    }
    return true;
}

static bool
same_pick(const br_cun_pick *a, const br_cun_pick *b)
{
    return a->seed == b->seed && a->temperature == b->temperature &&
           a->top_p == b->top_p && a->min_p == b->min_p &&
           a->top_k == b->top_k && a->position == b->position;
}

bool
cun_is_ahead(const br_cun *x, const br_step *step, const br_cun_pick *p,
             uint8_t *row)
{
    const cun_ahead *a = &x->stay.ahead;
    const unsigned long long *drew = x->stay.host->out[(a->epoch - 1) & 1];
    uint32_t r = 0;

    if (step->n_rows > a->rows || step->hidden || !x->alone ||
        !brings_no_page(x))
        return false;
    for (uint32_t t = 0; t < step->n_rows; t++, r++) {
        while (r < a->rows && a->slot[r] != step->slot[t])
            r++;
        if (r == a->rows || a->position[r] != step->position[t] ||
            (int32_t)drew[r] != step->token[t] ||
            !same_pick(&a->pick[r], &p[t]))
            return false;
        row[t] = (uint8_t)r;
    }
    return true;
}

/* What comes next may write what it reads: the device ends first. A draw's spaces take
 * turns, which it has only where it ran. */
void
cun_call_off(br_cun *x)
{
    cun_ahead *a = &x->stay.ahead;
    const uint32_t rows = a->rows;
    const int64_t since = br_now_ns();

    a->rows = 0;
    a->step = NULL;
    if (!rows)
        return;
    x->costs.vain++;
    /* what they say the next step will say */
    if (cun_use(x, NULL) != BR_OK || cun_wait(x, NULL) != BR_OK)
        return;
    x->begun_ns += br_now_ns() - since;
    for (uint32_t t = 0; taken(x) != a->epoch && t < rows; t++)
        x->pick_turn[t]--;
}
