/* gcn_hazard.c - orders that the hardware does not look after itself.
 *
 *   gfx11.0  a vector instruction reads what a transcendental one wrote less
 *            than 6 vector and 2 transcendental instructions before
 *   gfx12    a scalar that vector instructions have read is written by one
 *            of the last 11 scalar instructions and read, or by a vector
 *            instruction and read by another; a scalar instruction that reads
 *            one of the latter is held up until all of those are there
 *
 *   gfx11, 64 lanes
 *            a scalar that vector instructions have read as a mask is written
 *            and read: by scalar instructions, or by vector ones
 *            a vector instruction reads two registers that others wrote at most
 *            7 and 4 vector instructions before, and EXEC changed after the
 *            first (of LLVM's distances the sum: some that are none count)
 *
 * Each is answered by a wait for the unit that writes. Where ways meet, what is
 * open on one is open; a scalar instruction is held up only by what is open on
 * all, for it is not on the way where that was not written. Missing s_delay_alu is
 * no hazard: those only tell the hardware what it will see.
 *
 * Requires  waits for memory are in     Changes   inserts waits
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_code.h"

#include <string.h>

enum {
    VALU_BETWEEN = 6,
    TRANS_BETWEEN = 2,
    SALU_BETWEEN = 11,
    OLD_BETWEEN = 8, /* of a register from before EXEC changed, and the other */
    NEW_BETWEEN = 5,
    WAIT_VDST = 0x0fff,
    WAIT_SA_SDST = 0xfffe,
    WAIT_VA_VCC = 0xfffd,
    WAIT_VA_SDST = 0xf1ff,
    SCALARS = 128,
    VCC = 106,
    EXEC = 126,
    V0 = 256
};

typedef struct state {
    uint8_t valu[256], trans[256]; /* since it was written; 255: not by a
                                    * transcendental */
    uint8_t sa[SCALARS];           /* scalar ones since; 255: none wrote it */
    uint8_t va[SCALARS];           /* 0: a vector instruction wrote it; 255 */
    uint8_t seen[SCALARS / 2];     /* 0: one has read of the pair; 255 */
    uint8_t sure_va[SCALARS];      /* 255: as va and seen, on all ways; 0 */
    uint8_t sure_seen[SCALARS / 2];
    uint8_t since[256], same[256]; /* of 64 lanes: vector ones since it was
                                    * written; 0: EXEC has changed since; 255 */
} state;

typedef struct hazards {
    gcn_code *c;
    state s;
} hazards;

static bool
watches_trans(const hazards *h)
{
    return h->c->isa->cpu->gen == 11 && !h->c->isa->cpu->minor5;
}

/* gfx11 in waves of 64 lanes. */
static bool
halves(const hazards *h)
{
    return h->c->isa->cpu->gen == 11 && h->c->isa->wave64;
}

/* Whether vector registers come partly from before EXEC changed. */
static bool
mixes(const hazards *h, const gcn_use *u, unsigned n)
{
    const state *s = &h->s;
    uint8_t r[256];
    unsigned n_r = 0;

    for (unsigned k = 0; k < n; k++)
        for (unsigned w = 0; !u[k].write && w < u[k].words; w++)
            if (u[k].code + w >= V0 && n_r < BR_COUNT(r))
                r[n_r++] = (uint8_t)(u[k].code + w - V0);
    for (unsigned a = 0; a < n_r; a++)
        for (unsigned b = 0; b < n_r; b++)
            if (r[a] != r[b] && !s->same[r[a]] &&
                s->since[r[a]] < OLD_BETWEEN && s->since[r[b]] < NEW_BETWEEN)
                return true;
    return false;
}

/* The mask of units that a read of registers waits for; ~0: none. */
static unsigned
wait_of(const hazards *h, const gcn_use *u, unsigned n, bool valu)
{
    const state *s = &h->s;
    unsigned mask = 0xffff;

    if (valu && halves(h) && mixes(h, u, n))
        mask = WAIT_VDST;
    for (unsigned k = 0; k < n; k++)
        for (unsigned w = 0; !u[k].write && w < u[k].words; w++) {
            unsigned r = u[k].code + w;

            if (r >= V0 && valu && s->valu[r - V0] < VALU_BETWEEN &&
                s->trans[r - V0] < TRANS_BETWEEN)
                mask &= WAIT_VDST;
            if (r >= SCALARS)
                continue;
            if (s->sa[r] < SALU_BETWEEN)
                mask &= WAIT_SA_SDST;
            if (valu && !s->va[r])
                mask &= r >= VCC ? WAIT_VA_VCC : WAIT_VA_SDST;
        }
    return mask;
}

static void
settle(hazards *h, unsigned mask)
{
    state *s = &h->s;

    if (!(mask & 0xf000)) {
        memset(s->valu, 255, sizeof s->valu);
        memset(s->since, 255, sizeof s->since);
    }
    if (!(mask & 1))
        memset(s->sa, 255, sizeof s->sa);
    for (unsigned r = 0; r < SCALARS; r++)
        if (!(mask & (r >= VCC ? 2u : 0xe00u))) {
            s->va[r] = 255;
            s->sure_va[r] = 0;
        }
}

/* A scalar instruction that reads what vector ones wrote: that is there then on all
 * ways, what else they wrote where it was written on all of them. */
static void
held_up(hazards *h, const gcn_use *u, unsigned n)
{
    for (unsigned k = 0; k < n; k++)
        for (unsigned w = 0; !u[k].write && w < u[k].words; w++) {
            unsigned r = u[k].code + w;

            if (r >= SCALARS)
                continue;
            if (h->s.sure_va[r])
                settle(h, r >= VCC ? WAIT_VA_VCC : WAIT_VA_SDST);
            h->s.va[r] = 255;
        }
}

static void
note(hazards *h, const br_gcn_inst *in, const gcn_use *u, unsigned n)
{
    bool valu = gcn_is_valu(in), salu = gcn_is_salu(in),
         trans = gcn_is_trans(in);
    state *s = &h->s;

    for (unsigned r = 0; r < 256 && valu && watches_trans(h); r++) {
        s->valu[r] = (uint8_t)BR_MIN(s->valu[r] + 1, 255);
        s->trans[r] = (uint8_t)BR_MIN(s->trans[r] + trans, 255);
    }
    for (unsigned r = 0; r < SCALARS && salu && !halves(h); r++)
        s->sa[r] = (uint8_t)BR_MIN(s->sa[r] + 1, 255);
    for (unsigned r = 0; r < 256 && valu && halves(h); r++)
        s->since[r] = (uint8_t)BR_MIN(s->since[r] + 1, 255);
    if (salu && !halves(h))
        held_up(h, u, n);
    for (unsigned k = 0; valu && k < n; k++)
        for (unsigned w = 0; !u[k].write && w < u[k].words; w++)
            if (u[k].code + w < VCC + 2u && (u[k].mask || !halves(h))) {
                s->seen[(u[k].code + w) / 2] = 0;
                s->sure_seen[(u[k].code + w) / 2] = 255;
            }
    for (unsigned k = 0; k < n; k++)
        for (unsigned w = 0; u[k].write && w < u[k].words; w++) {
            unsigned r = u[k].code + w;

            if (r >= V0 && watches_trans(h)) {
                s->valu[r - V0] = trans ? 0 : 255;
                s->trans[r - V0] = 0;
            }
            if (r >= V0 && halves(h)) {
                s->since[r - V0] = valu ? 0 : 255;
                s->same[r - V0] = 255;
            }
            if (r / 2 == EXEC / 2 && salu)
                memset(s->same, 0, sizeof s->same);
            /* It is the write that comes too early: one before the read by a
             * vector instruction, on whatever way, is none of these. */
            if (r < VCC + 2 && (h->c->isa->cpu->gen > 11 || halves(h)) &&
                !s->seen[r / 2]) {
                s->sa[r] = salu ? 0 : s->sa[r];
                s->va[r] = valu ? 0 : s->va[r];
                if (valu && s->sure_seen[r / 2])
                    s->sure_va[r] = 255;
            }
        }
}

static void
push_wait(hazards *h, gcn_node *to, unsigned mask, uint32_t line)
{
    if (mask == 0xffff)
        return;
    if (to)
        gcn_push(h->c, to,
                 h->c->isa->cpu->gen > 11 ? "s_wait_alu" : "s_waitcnt_depctr",
                 mask, line);
    settle(h, mask);
}

/* The smaller number is nearer to a hazard. */
static bool
join(state *to, const state *from)
{
    uint8_t *a = (uint8_t *)to;
    const uint8_t *b = (const uint8_t *)from;
    bool change = false;

    for (size_t k = 0; k < sizeof *to; k++)
        if (b[k] < a[k]) {
            a[k] = b[k];
            change = true;
        }
    return change;
}

/* Over a node; to: NULL, or where it goes with its waits. Whether states that
 * nodes begin with change: code may stand behind a branch. */
static bool
walk(hazards *h, const gcn_node *n, gcn_node *to, state *in)
{
    bool change = false;

    for (size_t k = 0; k < n->code.n; k++) {
        const gcn_line *l = &n->code.at[k];
        gcn_use u[GCN_MAX_USES];
        unsigned uses = gcn_uses(h->c->isa, &l->in, u);

        if (gcn_is_valu(&l->in) || gcn_is_salu(&l->in))
            push_wait(h, to, wait_of(h, u, uses, gcn_is_valu(&l->in)), l->line);
        if (to)
            h->c->oom |= !br_vec_push(&to->code, *l);
        note(h, &l->in, u, uses);
        if (l->target >= 0)
            change |= join(&in[l->target], &h->s);
    }
    return change;
}

void
gcn_pass_hazard(gcn_code *c)
{
    hazards h = {.c = c};
    state *in = br_try_calloc(c->n + 1, sizeof *in);
    size_t first = 0; /* node that runs */
    bool change = true;

    if (!in) {
        c->oom = true;
        return;
    }
    memset(in, 255, c->n * sizeof *in);
    while (first + 1 < c->n && !c->node[first].code.n)
        first++;
    memset(in[first].sure_va, 0, sizeof in[first].sure_va);
    memset(in[first].sure_seen, 0, sizeof in[first].sure_seen);
    while (change) {
        change = false;
        for (size_t n = 0; n < c->n; n++) {
            h.s = in[n];
            change |= walk(&h, &c->node[n], NULL, in);
            for (size_t k = 0; k < c->node[n].n_succ; k++)
                change |= join(&in[c->node[n].succ[k]], &h.s);
        }
    }
    for (size_t n = 0; n < c->n && !c->oom; n++) {
        gcn_node to = c->node[n];

        memset(&to.code, 0, sizeof to.code);
        h.s = in[n];
        walk(&h, &c->node[n], &to, in);
        br_vec_fini(&c->node[n].code);
        c->node[n] = to;
    }
    br_free(in);
}
