/* gcn_hazard.c - orders that the hardware does not look after itself.
 *
 *   gfx11.0  a vector instruction reads what a transcendental one wrote less
 *            than 6 vector and 2 transcendental instructions before
 *   gfx12    a scalar that vector instructions read somewhere is written by a
 *            vector instruction, or by one of the last 11 scalar ones, and
 *            read again
 *
 * Each is answered by a wait for the unit that writes. What is open at the end
 * of a node is waited for there, so that no state crosses a branch. Missing
 * s_delay_alu is no hazard: those only tell the hardware what it will see.
 *
 * Requires  waits for memory are in     Changes   inserts waits
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_code.h"

#include <string.h>

enum {
    VALU_BETWEEN = 6,
    TRANS_BETWEEN = 2,
    SALU_BETWEEN = 11,
    WAIT_VDST = 0x0fff,
    WAIT_SA_SDST = 0xfffe,
    WAIT_VA_VCC = 0xfffd,
    WAIT_VA_SDST = 0xf1ff,
    SCALARS = 128,
    VCC = 106,
    V0 = 256
};

typedef struct hazards {
    gcn_code *c;
    uint8_t valu[GCN_REGS], trans[GCN_REGS]; /* since it was written; 255: not
                                              * by a transcendental */
    uint8_t sa[SCALARS]; /* scalar ones since; 255: none wrote it */
    bool va[SCALARS];    /* a vector instruction wrote it */
    bool seen[SCALARS];  /* vector instructions read it somewhere */
} hazards;

static bool
is_trans(const br_gcn_inst *in)
{
    static const char *const names[] = {"v_rcp_", "v_rsq_", "v_sqrt_", "v_exp_",
                                        "v_log_", "v_sin_", "v_cos_"};

    for (size_t k = 0; k < BR_COUNT(names); k++)
        if (gcn_is(in, names[k]))
            return true;
    return false;
}

static bool
watches_trans(const hazards *h)
{
    return h->c->isa->cpu->gen == 11 && !h->c->isa->cpu->minor5;
}

static void
forget(hazards *h)
{
    memset(h->valu, 255, sizeof h->valu);
    memset(h->trans, 255, sizeof h->trans);
    memset(h->sa, 255, sizeof h->sa);
    memset(h->va, 0, sizeof h->va);
}

/* The mask of units that a read of a register waits for; ~0: none. */
static unsigned
wait_of(const hazards *h, const gcn_use *u, unsigned n, bool valu, bool all)
{
    unsigned mask = 0xffff;

    for (unsigned k = 0; k < n; k++)
        for (unsigned w = 0; w < u[k].words; w++) {
            unsigned r = u[k].code + w;

            if (u[k].write && !all)
                continue;
            if (r >= V0 && valu && h->valu[r] < VALU_BETWEEN &&
                h->trans[r] < TRANS_BETWEEN)
                mask &= WAIT_VDST;
            if (r >= SCALARS || !h->seen[r & ~1u])
                continue;
            if (h->sa[r] < SALU_BETWEEN)
                mask &= WAIT_SA_SDST;
            if (h->va[r])
                mask &= r >= VCC ? WAIT_VA_VCC : WAIT_VA_SDST;
        }
    return mask;
}

static void
settle(hazards *h, unsigned mask)
{
    if (!(mask & 0xf000))
        memset(h->valu, 255, sizeof h->valu);
    if (!(mask & 1))
        memset(h->sa, 255, sizeof h->sa);
    for (unsigned r = 0; r < SCALARS; r++)
        if (!(mask & (r >= VCC ? 2u : 0xe00u)))
            h->va[r] = false;
}

static void
note(hazards *h, const br_gcn_inst *in, const gcn_use *u, unsigned n)
{
    bool valu = gcn_is_valu(in), salu = gcn_is_salu(in), trans = is_trans(in);

    for (unsigned r = V0; r < GCN_REGS && valu && watches_trans(h); r++) {
        h->valu[r] = (uint8_t)BR_MIN(h->valu[r] + 1, 255);
        h->trans[r] = (uint8_t)BR_MIN(h->trans[r] + trans, 255);
    }
    for (unsigned r = 0; r < SCALARS && salu; r++)
        h->sa[r] = (uint8_t)BR_MIN(h->sa[r] + 1, 255);
    for (unsigned k = 0; k < n; k++)
        for (unsigned w = 0; u[k].write && w < u[k].words; w++) {
            unsigned r = u[k].code + w;

            if (r >= V0 && watches_trans(h)) {
                h->valu[r] = trans ? 0 : 255;
                h->trans[r] = 0;
            }
            if (r < VCC + 2 && h->c->isa->cpu->gen > 11) {
                h->sa[r] = salu ? 0 : 255;
                h->va[r] = valu;
            }
        }
}

static void
push_wait(hazards *h, gcn_node *to, unsigned mask, uint32_t line)
{
    if (mask == 0xffff)
        return;
    gcn_push(h->c, to,
             h->c->isa->cpu->gen > 11 ? "s_wait_alu" : "s_waitcnt_depctr", mask,
             line);
    settle(h, mask);
}

/* Everything that is open, as if all registers were read next. */
static unsigned
open_mask(const hazards *h)
{
    gcn_use all[2] = {{0, VCC + 2, false}, {V0, 255, false}};
    gcn_use last = {V0 + 255, 1, false};

    return wait_of(h, all, 2, true, false) & wait_of(h, &last, 1, true, false);
}

static void
find_seen(hazards *h)
{
    gcn_use u[GCN_MAX_USES];

    for (size_t b = 0; b < h->c->n; b++)
        for (size_t k = 0; k < h->c->node[b].code.n; k++) {
            const br_gcn_inst *in = &h->c->node[b].code.at[k].in;
            unsigned n = gcn_is_valu(in) ? gcn_uses(h->c->isa, in, u) : 0;

            for (unsigned a = 0; a < n; a++)
                for (unsigned w = 0; w < u[a].words; w++)
                    if (!u[a].write && u[a].code + w < VCC + 2u)
                        h->seen[(u[a].code + w) & ~1u] = true;
        }
}

static void
node(hazards *h, gcn_node *n)
{
    gcn_node to = *n;
    bool ended = false;

    memset(&to.code, 0, sizeof to.code);
    forget(h);
    for (size_t k = 0; k < n->code.n; k++) {
        const gcn_line *l = &n->code.at[k];
        gcn_use u[GCN_MAX_USES];
        unsigned uses = gcn_uses(h->c->isa, &l->in, u);

        if (l->target >= 0 && !ended) {
            push_wait(h, &to, open_mask(h), l->line);
            ended = true;
        }
        if (gcn_is_valu(&l->in) || gcn_is_salu(&l->in))
            push_wait(h, &to, wait_of(h, u, uses, gcn_is_valu(&l->in), false),
                      l->line);
        h->c->oom |= !br_vec_push(&to.code, *l);
        note(h, &l->in, u, uses);
    }
    br_vec_fini(&n->code);
    *n = to;
}

void
gcn_pass_hazard(gcn_code *c)
{
    hazards h = {.c = c};

    find_seen(&h);
    for (size_t k = 0; k < c->n && !c->oom; k++)
        node(&h, &c->node[k]);
}
