/* gcn_delay.c - s_delay_alu: how long until what is read is there.
 *
 *   v_mul_f32 v1, v2, v3
 *   v_mov_b32 v7, v8            s_delay_alu instid0(VALU_DEP_2)
 *   v_add_f32 v4, v1, v5   ->   v_add_f32 v4, v1, v5
 *
 * The hardware knows without it, but only once it has chosen the wave, which
 * then stands still; told before, it lets others go on meanwhile. So a hint that
 * lacks or is wrong costs time and nothing else, and states are of one node:
 * what comes in by a branch is late anyway. One hint speaks of two dependences:
 * of one instruction, or of two at most SKIPS apart.
 *
 * Latencies in turns of the wave, LLVM's for gfx11: 5 of a vector instruction,
 * 10 of a transcendental, 2 of a scalar. What the memory unit is given waits for
 * vector results by itself.
 *
 * Requires  instructions in their last order      Changes   inserts hints
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_code.h"

#include <string.h>

enum {
    LATENCY = 5,
    TRANS_LATENCY = 10,
    SALU_LATENCY = 2,
    VALUS = 4, /* that a hint counts back */
    TRANSES = 3,
    CYCLES = 3,
    SKIPS = 5,
    TRANS_DEP = 4, /* ids: a vector instruction back is its number */
    SALU_CYCLE = 8
};

typedef enum unit { OTHER, SALU, VALU, TRANS } unit;

/* Who wrote a register last. */
typedef struct writer {
    uint8_t unit;
    uint32_t turn, nth; /* of vector or transcendental instructions */
} writer;

typedef struct delays {
    gcn_code *c;
    writer of[GCN_REGS];
    uint32_t turn, valus, transes;
    size_t last; /* line of the last hint; SIZE_MAX: none with room */
} delays;

static unit
unit_of(const br_gcn_inst *in)
{
    if (gcn_is_valu(in))
        return gcn_is_trans(in) ? TRANS : VALU;
    return gcn_is_salu(in) && in->row->fmt != BR_FMT_SOPK ? SALU : OTHER;
}

/* The smaller of two numbers that are not 0. */
static void
nearest(unsigned *to, unsigned n)
{
    *to = *to && *to < n ? *to : n;
}

/* Ids of what an instruction reads too early: two at most, the latter << 7. */
static unsigned
hint(const delays *d, const gcn_use *u, unsigned n)
{
    unsigned valu = 0, trans = 0, cycles = 0, id[3], ids = 0;

    for (unsigned k = 0; k < n; k++)
        for (unsigned w = 0; !u[k].write && w < u[k].words; w++) {
            const writer *x = &d->of[u[k].code + w];
            uint32_t ago = d->turn - x->turn;

            if (x->unit == VALU && ago < LATENCY && d->valus - x->nth < VALUS)
                nearest(&valu, d->valus - x->nth + 1);
            if (x->unit == TRANS && ago < TRANS_LATENCY &&
                d->transes - x->nth < TRANSES)
                nearest(&trans, d->transes - x->nth + 1);
            if (x->unit == SALU && ago + 1 < SALU_LATENCY)
                cycles = BR_MAX(cycles, SALU_LATENCY - 1 - ago);
        }
    if (trans)
        id[ids++] = TRANS_DEP + trans;
    if (valu)
        id[ids++] = valu;
    if (cycles)
        id[ids++] = SALU_CYCLE + BR_MIN(cycles, (unsigned)CYCLES);
    return !ids ? 0 : id[0] | (ids > 1 ? id[1] << 7 : 0);
}

static void
say(delays *d, gcn_node *to, unsigned ids, uint32_t line)
{
    if (d->last != SIZE_MAX && ids < 128) {
        br_gcn_inst *in = &to->code.at[d->last].in;
        size_t skip = to->code.n - d->last - 1;

        if (skip <= SKIPS) {
            br_gcn_set(in, BR_GF_simm16,
                       br_gcn_get(in, BR_GF_simm16) | (uint32_t)skip << 4 |
                           ids << 7);
            d->last = SIZE_MAX;
            return;
        }
    }
    d->last = ids < 128 ? to->code.n : SIZE_MAX;
    gcn_push(d->c, to, "s_delay_alu", ids, line);
}

static void
over_line(delays *d, gcn_node *to, const gcn_line *l)
{
    gcn_use u[GCN_MAX_USES];
    unsigned n = gcn_uses(d->c->isa, &l->in, u), ids;
    unit by = unit_of(&l->in);

    ids = by == OTHER ? 0 : hint(d, u, n);
    if (ids)
        say(d, to, ids, l->line);
    d->c->oom |= !br_vec_push(&to->code, *l);
    d->turn += by != OTHER;
    d->valus += by == VALU;
    d->transes += by == TRANS;
    for (unsigned k = 0; k < n; k++)
        for (unsigned w = 0; u[k].write && w < u[k].words; w++)
            d->of[u[k].code + w] = (writer){
                (uint8_t)by, d->turn, by == TRANS ? d->transes : d->valus};
}

void
gcn_pass_delay(gcn_code *c)
{
    for (size_t n = 0; n < c->n && !c->oom; n++) {
        gcn_node to = c->node[n];
        delays d = {.c = c, .last = SIZE_MAX};

        memset(&to.code, 0, sizeof to.code);
        for (size_t k = 0; k < c->node[n].code.n; k++)
            over_line(&d, &to, &c->node[n].code.at[k]);
        br_vec_fini(&c->node[n].code);
        c->node[n] = to;
    }
}
