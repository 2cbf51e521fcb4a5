/* grammar_check.c - grammars that would never end, see grammar.h.
 *
 * Two ways not to: a rule whose texts have no end, so that an answer could go
 * on but never be over; and a rule that calls itself before it reads a byte,
 * so that its stacks would have no end.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/grammar_int.h"

/* For each state: can it come to RET, at all and without reading. Worked out
 * backwards: `first` and `next` list who hangs on a state. */
typedef struct ends {
    const gstate *s;
    uint32_t n;
    uint32_t *first, *next; /* [n], [2n] edge 2i+k: i hangs on its a or b */
    uint8_t *can, *empty;
    uint32_t *queue;
} ends;

static bool
follows(const ends *e, const uint8_t *set, uint32_t i, bool reading)
{
    const gstate *s = &e->s[i];

    switch ((gkind)s->kind) {
    case G_BYTE: return reading && set[s->a];
    case G_SPLIT: return set[s->a] || set[s->b];
    case G_CALL: return set[s->a] && set[s->b];
    case G_RET: return true;
    }
    br_unreachable("no such state");
}

static void
spread(ends *e, uint8_t *set, bool reading)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < e->n; i++)
        if (e->s[i].kind == G_RET) {
            set[i] = 1;
            e->queue[n++] = i;
        }
    while (n) {
        uint32_t at = e->queue[--n];

        for (uint32_t k = e->first[at]; k; k = e->next[k - 1]) {
            uint32_t user = (k - 1) / 2;

            if (set[user] || !follows(e, set, user, reading))
                continue;
            set[user] = 1;
            e->queue[n++] = user;
        }
    }
}

static void
hang(ends *e, uint32_t user, uint32_t which, uint32_t on)
{
    uint32_t k = 2 * user + which;

    e->next[k] = e->first[on];
    e->first[on] = k + 1;
}

/* Kahn's order over "reached from without reading": what is left over goes
 * round. Splits alone go round in (a*)*, harmlessly, so only calls of rules
 * count: edges lead from rule to rule. */
static uint32_t
left_calls(const ends *e, uint32_t *work, uint8_t *seen, uint32_t start,
           uint32_t *out)
{
    uint32_t n = 0, n_out = 0;

    work[n++] = start;
    while (n) {
        uint32_t i = work[--n];
        const gstate *s = &e->s[i];

        if (seen[i])
            continue;
        seen[i] = 1;
        if (s->kind == G_SPLIT) {
            work[n++] = s->a;
            work[n++] = s->b;
        } else if (s->kind == G_CALL) {
            out[n_out++] = s->a;
            if (e->empty[s->a])
                work[n++] = s->b;
        }
    }
    return n_out;
}

typedef struct lefts {
    uint32_t *rule_of; /* [n_states]: start state -> rule + 1 */
    uint32_t *begin;   /* [n_rules + 1] */
    uint32_t *to, *in; /* edges; how many lead into a rule */
    uint32_t *work, *out;
    uint8_t *seen;
} lefts;

static void
find_lefts(const grules *rs, const ends *e, lefts *l)
{
    uint32_t n = 0;

    for (uint32_t r = 0; r < rs->n; r++)
        if (rs->at[r].start)
            l->rule_of[rs->at[r].start - 1] = r + 1;
    for (uint32_t r = 0; r < rs->n; r++) {
        uint32_t k = 0;

        l->begin[r] = n;
        if (rs->at[r].start)
            k = left_calls(e, l->work, l->seen, rs->at[r].start - 1, l->out);
        for (uint32_t i = 0; i < k; i++) {
            l->to[n] = l->rule_of[l->out[i]] - 1;
            l->in[l->to[n++]]++;
        }
    }
    l->begin[rs->n] = n;
}

static br_code
check_left(const grules *rs, const ends *e, lefts *l, br_status *st)
{
    uint32_t n_queue = 0, gone = 0, any = 0;

    find_lefts(rs, e, l);
    for (uint32_t r = 0; r < rs->n; r++)
        if (l->in[r] == 0)
            l->work[n_queue++] = r;
    while (n_queue) {
        uint32_t r = l->work[--n_queue];

        gone++;
        for (uint32_t i = l->begin[r]; i < l->begin[r + 1]; i++)
            if (--l->in[l->to[i]] == 0)
                l->work[n_queue++] = l->to[i];
    }
    if (gone == rs->n)
        return BR_OK;
    while (l->in[any] == 0)
        any++;
    return br_fail(st, BR_E_FORMAT,
                   "grammar: rule '%.*s' calls itself before it has read "
                   "anything, or is called by one that does",
                   (int)BR_MIN(rs->at[any].name.n, (size_t)60),
                   rs->at[any].name.p);
}

static bool
allocate(br_arena *a, ends *e, lefts *l, uint32_t n_rules)
{
    size_t n = e->n;

    e->first = br_arena_new(a, uint32_t, n);
    e->next = br_arena_new(a, uint32_t, 2 * n);
    e->can = br_arena_new(a, uint8_t, n);
    e->empty = br_arena_new(a, uint8_t, n);
    e->queue = br_arena_new(a, uint32_t, n);
    l->rule_of = br_arena_new(a, uint32_t, n);
    l->begin = br_arena_new(a, uint32_t, (size_t)n_rules + 1);
    l->to = br_arena_new(a, uint32_t, n);
    l->in = br_arena_new(a, uint32_t, n_rules);
    l->work = br_arena_new(a, uint32_t, 2 * n + n_rules);
    l->out = br_arena_new(a, uint32_t, n);
    l->seen = br_arena_new(a, uint8_t, n);
    return e->first && e->next && e->can && e->empty && e->queue &&
           l->rule_of && l->begin && l->to && l->in && l->work && l->out &&
           l->seen;
}

br_code
br_grammar_check(const br_grammar *g, const grules *rs, br_arena *a,
                 br_status *st)
{
    ends e = {.s = g->states.at, .n = (uint32_t)g->states.n};
    lefts l = {0};

    if (!allocate(a, &e, &l, rs->n))
        return br_fail(st, BR_E_OOM, "grammar: out of memory");
    for (uint32_t i = 0; i < e.n; i++) {
        if (e.s[i].kind != G_RET)
            hang(&e, i, 0, e.s[i].a);
        if (e.s[i].kind == G_SPLIT || e.s[i].kind == G_CALL)
            hang(&e, i, 1, e.s[i].b);
    }
    spread(&e, e.can, true);
    spread(&e, e.empty, false);
    for (uint32_t r = 0; r < rs->n; r++)
        if (rs->at[r].start && !e.can[rs->at[r].start - 1])
            return br_fail(
                st, BR_E_FORMAT, "grammar: no text of rule '%.*s' has an end",
                (int)BR_MIN(rs->at[r].name.n, (size_t)60), rs->at[r].name.p);
    return check_left(rs, &e, &l, st);
}
