/* sim_lds.c - LDS: bytes nobody wrote; two waves at the same word without a barrier
 * between, one of them writing; a store that was not waited for before the barrier.
 *
 * Each word remembers who wrote and who read it last, by the number of that wave's
 * operation. Such an operation is behind a barrier if all waves have left one since
 * (`before`), and rightly so if the wave had waited for it when it came there
 * (`done`). Nearly all words that are touched were touched by the wave itself or are
 * behind a barrier: that is asked of whole rows at once, which takes a sixth of the
 * time; who is told no asks word by word.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_wcheck.h"

#include <string.h>

/* Whether the wave knows by atomics that another one is past an operation. */
static inline bool
has_met(const sim_wave *w, unsigned wave, uint32_t seq)
{
    return seq <= w->g->check->meet.waves[w->id][wave - 1];
}

/* Whether no barrier has come since. */
static inline bool
is_now(const sim_wave *w, unsigned wave, uint32_t seq)
{
    return seq > w->g->check->past[wave - 1].before;
}

static void
race(sim_wave *w, lds_word *x, const sim_touch *t)
{
    const lds_past *past = w->g->check->past;
    bool other_w = x->w_wave && x->w_wave != w->id + 1;
    bool other_r = x->r_wave && x->r_wave != w->id + 1;
    bool now_w = other_w && is_now(w, x->w_wave, x->w_seq);
    bool now_r = other_r && is_now(w, x->r_wave, x->r_seq);
    bool unwaited;

    if (now_w && !(t->atomic && x->w_atomic) &&
        !has_met(w, x->w_wave, x->w_seq))
        sim_note(w, NOTE_RACE,
                 "LDS 0x%llx was written by wave %u with no "
                 "barrier between",
                 (unsigned long long)t->at, x->w_wave - 1u);
    else if (t->write && now_r && !t->atomic &&
             !has_met(w, x->r_wave, x->r_seq))
        sim_note(w, NOTE_RACE,
                 "LDS 0x%llx was read by wave %u with no "
                 "barrier between",
                 (unsigned long long)t->at, x->r_wave - 1u);
    unwaited =
        t->write && other_r && !now_r && x->r_seq > past[x->r_wave - 1].done;
    if (unwaited)
        sim_note(w, NOTE_RACE,
                 "LDS 0x%llx was read by wave %u, which did not wait for that "
                 "before the barrier",
                 (unsigned long long)t->at, x->r_wave - 1u);
    unwaited = other_w && !now_w && x->w_seq > past[x->w_wave - 1].done;
    if (unwaited)
        sim_note(w, NOTE_RACE,
                 "LDS 0x%llx was written by wave %u, which did "
                 "not wait for that before the barrier",
                 (unsigned long long)t->at, x->w_wave - 1u);
}

/* Whether what a wave did before is the wave's own, or behind a barrier and was
 * waited for there: 0 or 1, for a row has no branches. */
static inline unsigned
is_safe(const uint32_t *safe, unsigned self, unsigned wave, uint32_t seq)
{
    return (wave == self) | (seq <= safe[wave]);
}

static inline unsigned
word_is_safe(const uint32_t *safe, unsigned self, const lds_word *x, bool write)
{
    return is_safe(safe, self, x->w_wave, x->w_seq) &
           (write ? is_safe(safe, self, x->r_wave, x->r_seq)
                  : (unsigned)x->defined);
}

static inline void
leave(lds_word *x, const sim_touch *t, unsigned self, uint32_t seq)
{
    if (t->write) {
        x->w_wave = (uint8_t)self;
        x->w_seq = seq;
        x->w_atomic = t->atomic;
        x->defined = true;
    } else {
        x->r_wave = (uint8_t)self;
        x->r_seq = seq;
    }
}

static void
touch_word(sim_wave *w, const sim_touch *t, lds_word *x, uint32_t seq)
{
    const uint32_t *safe = w->g->check->safe;
    unsigned self = w->id + 1;

    if (!is_safe(safe, self, x->w_wave, x->w_seq) ||
        (t->write && !is_safe(safe, self, x->r_wave, x->r_seq)))
        race(w, x, t);
    if (t->atomic)
        sim_meet_at(&w->g->check->meet, w->id, seq, &x->meet);
    leave(x, t, self, seq);
}

void
sim_check_lds(sim_wave *w, const sim_touch *t)
{
    sim_check *c = w->g->check;
    uint32_t seq = w->check->c[C_DS].issued + 1;
    uint64_t first = t->at / 4, last = (t->at + t->bytes - 1) / 4;
    bool read = !t->write || t->atomic;

    for (uint64_t k = first; read && k <= last; k++)
        if (!c->lds[k].defined) {
            sim_note(w, NOTE_UNDEF,
                     "lane %u reads LDS 0x%llx, which nothing wrote", t->lane,
                     (unsigned long long)BR_MAX(k * 4, t->at));
            break;
        }
    for (uint64_t k = first; k <= last; k++)
        touch_word(w, t, &c->lds[k], seq);
}

/* Words of LDS, if nothing is to be said of them. */
static inline bool
touch_row(const sim_wave *w, const sim_touch *t, lds_word *x, uint64_t n)
{
    const uint32_t *safe = w->g->check->safe;
    uint32_t seq = w->check->c[C_DS].issued + 1;
    unsigned self = w->id + 1;
    unsigned all = 1;

    for (uint64_t k = 0; k < n; k++)
        all &= word_is_safe(safe, self, &x[k], t->write);
    for (uint64_t k = 0; all && k < n; k++)
        leave(&x[k], t, self, seq);
    return all != 0;
}

bool
sim_check_row(sim_wave *w, bool write, uint64_t at, uint64_t bytes)
{
    sim_touch t = {.write = write};

    return at % 4 == 0 &&
           touch_row(w, &t, &w->g->check->lds[at / 4], bytes / 4);
}

void
sim_check_lanes(sim_wave *w, sim_touch *t, uint64_t exec, const uint64_t *at)
{
    lds_word *lds = w->g->check->lds;
    uint64_t before = UINT64_MAX;

    for (; exec; exec &= exec - 1) {
        uint64_t first;

        t->lane = (unsigned)__builtin_ctzll(exec);
        t->at = at[t->lane];
        first = t->at / 4;
        /* Lanes that read one word, as of a matrix's row. */
        if (t->at != before &&
            !touch_row(w, t, &lds[first],
                       (t->at + t->bytes - 1) / 4 - first + 1))
            sim_check_lds(w, t);
        before = t->at;
    }
}

/* ---- groups and barriers ---------------------------------------------- */

void
sim_lds_begin(sim_group *g)
{
    sim_check *c = g->check;

    memset(c->lds, 0, (g->lds_bytes / 4 + 1) * sizeof *c->lds);
    memset(c->past, 0, sizeof c->past);
    memset(c->safe, 0, sizeof c->safe);
    c->safe[0] = UINT32_MAX; /* nobody */
    sim_meet_begin(&c->meet, g->n_waves);
}

void
sim_lds_arrive(sim_wave *w)
{
    w->g->check->past[w->id].done = w->check->c[C_DS].done;
}

void
sim_lds_barrier(sim_group *g)
{
    for (unsigned k = 0; k < g->n_waves; k++) {
        lds_past *p = &g->check->past[k];

        p->before = g->waves[k].check->c[C_DS].issued;
        g->check->safe[k + 1] = BR_MIN(p->before, p->done);
    }
}
