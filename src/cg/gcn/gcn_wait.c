/* gcn_wait.c - waits for memory, as weak as they may be.
 *
 *   global_load v1     load counter: v1 0 younger
 *   global_load v2                   v1 1 younger, v2 0
 *   v_add v3, v1, v1   needs v1: wait until at most 1 is open
 *
 * The state is, for each counter and register, how many operations of that
 * counter were begun after the one that fills the register; NONE where nothing
 * does. What comes back in order is there when at most that many are open; of
 * scalar loads and flat ones, which come in any order, when none is. Where ways
 * meet, the smaller number holds: the stronger wait is right on both. Before a
 * barrier the group's memory has to be in order: LDS and stores are waited for.
 *
 * Requires  encoded instructions, nodes and their ways
 * Changes   inserts waits; waits that are there already count, and go where
 *           nothing is under way
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_code.h"

#include <string.h>

enum { NONE = 255, MOST = 62 };

typedef struct state {
    uint8_t age[GCN_COUNTERS][GCN_REGS];
    bool open[GCN_COUNTERS];  /* anything is under way */
    bool loose[GCN_COUNTERS]; /* something that comes in any order is */
    bool known;
} state;

static void
waited(state *s, int c, int n)
{
    for (int r = 0; r < GCN_REGS; r++)
        if (s->age[c][r] >= n)
            s->age[c][r] = NONE;
    if (n == 0)
        s->open[c] = s->loose[c] = false;
}

static void
begun(state *s, const gcn_memory *m, const gcn_use *u, unsigned n)
{
    for (int c = 0; c < GCN_COUNTERS; c++) {
        if (!m->on[c])
            continue;
        for (int r = 0; r < GCN_REGS; r++)
            if (s->age[c][r] < MOST)
                s->age[c][r]++;
        for (unsigned k = 0; k < n; k++)
            for (unsigned w = 0; u[k].write && w < u[k].words; w++)
                s->age[c][u[k].code + w] = 0;
        s->open[c] = true;
        s->loose[c] |= m->smem || m->flat;
    }
}

static void
needs(const gcn_code *c, const state *s, const br_gcn_inst *in,
      int need[GCN_COUNTERS])
{
    gcn_use u[GCN_MAX_USES];
    unsigned n = gcn_uses(c->isa, in, u);
    bool bar = gcn_is(in, "s_barrier") && !gcn_is(in, "s_barrier_wait");

    for (int k = 0; k < GCN_COUNTERS; k++) {
        need[k] = NONE;
        if (bar && s->open[k] && (k == GCN_DS || k == GCN_STORE))
            need[k] = 0;
        for (unsigned a = 0; a < n; a++)
            for (unsigned w = 0; w < u[a].words; w++) {
                uint8_t age = s->age[k][u[a].code + w];

                if (age != NONE)
                    need[k] = s->loose[k] ? 0 : BR_MIN(need[k], age);
            }
    }
}

static void
push_waits(gcn_code *c, gcn_node *to, const int need[GCN_COUNTERS],
           uint32_t line)
{
    static const char *const names[] = {"s_wait_loadcnt", "s_wait_storecnt",
                                        "s_wait_dscnt", "s_wait_kmcnt"};

    if (c->isa->cpu->gen > 11) {
        for (int k = 0; k < GCN_COUNTERS; k++)
            if (need[k] != NONE)
                gcn_push(c, to, names[k], (uint32_t)need[k], line);
        return;
    }
    if (need[GCN_LOAD] != NONE || need[GCN_DS] != NONE)
        gcn_push(c, to, "s_waitcnt",
                 (uint32_t)(BR_MIN(need[GCN_LOAD], 63) << 10 |
                            BR_MIN(need[GCN_DS], 63) << 4 | 7),
                 line);
    if (need[GCN_STORE] != NONE)
        gcn_push(c, to, "s_waitcnt_vscnt", (uint32_t)need[GCN_STORE], line);
}

/* Whether it waits for nothing that is under way: a fence's, mostly. */
static bool
is_idle(const gcn_code *c, const state *s, const br_gcn_inst *in)
{
    int wait[GCN_COUNTERS];

    if (!gcn_is_wait(c->isa, in, wait))
        return false;
    for (int x = 0; x < GCN_COUNTERS; x++)
        if (wait[x] >= 0 && s->open[x])
            return false;
    return true;
}

/* Of a wait for two counters what is under way alone. */
static void
no_wider(const state *s, br_gcn_inst *in)
{
    uint32_t v;

    if (strcmp(in->row->name, "s_waitcnt") != 0)
        return;
    v = br_gcn_get(in, BR_GF_simm16);
    v |= s->open[GCN_LOAD] ? 0 : 63u << 10;
    v |= s->open[GCN_DS] ? 0 : 63u << 4;
    br_gcn_set(in, BR_GF_simm16, v);
}

/* Over a node; to: NULL, or where it goes with its waits. */
static void
walk(gcn_code *c, const gcn_node *n, state *s, gcn_node *to)
{
    for (size_t k = 0; k < n->code.n; k++) {
        const gcn_line *l = &n->code.at[k];
        int need[GCN_COUNTERS], wait[GCN_COUNTERS];
        gcn_use u[GCN_MAX_USES];
        gcn_memory m = gcn_memory_of(c->isa, &l->in);

        needs(c, s, &l->in, need);
        for (int x = 0; x < GCN_COUNTERS; x++)
            if (need[x] != NONE)
                waited(s, x, need[x]);
        if (to)
            push_waits(c, to, need, l->line);
        if (to && !is_idle(c, s, &l->in)) {
            gcn_line own = *l;

            no_wider(s, &own.in);
            c->oom |= !br_vec_push(&to->code, own);
        }
        if (gcn_is_wait(c->isa, &l->in, wait)) {
            for (int x = 0; x < GCN_COUNTERS; x++)
                if (wait[x] >= 0)
                    waited(s, x, wait[x]);
            continue;
        }
        begun(s, &m, u, gcn_uses(c->isa, &l->in, u));
    }
}

static bool
join(state *to, const state *from)
{
    state was = *to;

    if (!to->known) {
        *to = *from;
        to->known = true;
        return true;
    }
    for (int c = 0; c < GCN_COUNTERS; c++) {
        for (int r = 0; r < GCN_REGS; r++)
            to->age[c][r] = BR_MIN(to->age[c][r], from->age[c][r]);
        to->open[c] |= from->open[c];
        to->loose[c] |= from->loose[c];
    }
    return memcmp(&was, to, sizeof was) != 0;
}

void
gcn_pass_wait(gcn_code *c)
{
    state *in = br_try_calloc(c->n + 1, sizeof *in);
    bool change = in != NULL;

    if (!in) {
        c->oom = true;
        return;
    }
    memset(in->age, NONE, sizeof in->age);
    in[1] = in[0]; /* the body of the first place */
    in[1].known = true;
    while (change) {
        change = false;
        for (size_t n = 0; n < c->n; n++) {
            state s = in[n];

            if (!s.known)
                continue;
            walk(c, &c->node[n], &s, NULL);
            for (size_t k = 0; k < c->node[n].n_succ; k++)
                change |= join(&in[c->node[n].succ[k]], &s);
        }
    }
    for (size_t n = 0; n < c->n && !c->oom; n++) {
        gcn_node to = c->node[n];
        state s = in[n];

        if (!s.known)
            continue;
        memset(&to.code, 0, sizeof to.code);
        walk(c, &c->node[n], &s, &to);
        br_vec_fini(&c->node[n].code);
        c->node[n] = to;
    }
    br_free(in);
}
