/* sim_hazard.c - what code has to keep apart because the hardware does not.
 *
 *   gfx110x     a VALU reads what a transcendental wrote, fewer than 6 VALU and
 *               2 transcendental instructions between: s_waitcnt_depctr 0xfff
 *   gfx11 wave64  a lane mask that a VALU read is rewritten by SALU and read, or by
 *               VALU and read by VALU: s_waitcnt_depctr sa_sdst(0), va_sdst(0),
 *               va_vcc(0). A VALU reads two VGPRs that VALUs wrote, one before a
 *               SALU wrote EXEC and one after it, at most 2 VALU between those
 *               and 4 to the read: s_waitcnt_depctr va_vdst(0)
 *   gfx12       an SGPR of a pair that a VALU read, rewritten by SALU at most 11 SALU ago
 *               and read, or rewritten by VALU and read by VALU, with no SALU
 *               between that read what VALU wrote:
 *               s_wait_alu sa_sdst(0), va_sdst(0), va_vcc(0)
 *   both        v_cmpx, then permlane: a VALU between; a matrix product whose A
 *               or B is the previous one's D: a VALU between; s_nop before
 *               MSG_DEALLOC_VGPRS
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_wcheck.h"

enum {
    TRANS_VALUS = 6,
    TRANS_TRANS = 2,
    SALU_EXPIRY = 11,
    FWD_BETWEEN = 2,
    FWD_VALUS = 4,
    ALU_VA_VDST = 0xf000,
    ALU_VA_SDST = 0x0e00,
    ALU_VA_VCC = 0x0002,
    ALU_SA_SDST = 0x0001,
};

void
sim_waited_alu(sim_wcheck *k, unsigned imm)
{
    const uint64_t vcc = 3ull << (SIM_VCC - 64);
    uint64_t was = k->s_valu.b[1];

    if (!(imm & ALU_VA_VDST)) {
        k->trans_from = k->n_valu + 1;
        k->fwd_from = k->n_fwd + 1;
    }
    if (!(imm & ALU_SA_SDST))
        k->s_salu = (sim_bits){{0, 0}};
    if (!(imm & ALU_VA_SDST))
        k->s_valu = (sim_bits){{0, was & vcc}};
    if (!(imm & ALU_VA_VCC))
        k->s_valu.b[1] &= ~vcc;
}

static bool
plain_sgpr(unsigned r)
{
    return r < SIM_NULL;
}

static void
read_sgpr(sim_wave *w, const sim_op *o, unsigned r)
{
    sim_wcheck *k = w->check;
    bool valu = o->cls == SIM_VALU, vcc = r == SIM_VCC || r == SIM_VCC + 1;
    bool salu = sim_bits_has(&k->s_salu, r);
    bool recent = salu && k->n_salu + 1 - k->s_wrote[r] <= SALU_EXPIRY;

    sim_bits_put(&k->s_salu, r, w->isa.cpu->gen == 12 ? recent : salu);
    if (w->isa.cpu->gen == 12) {
        if (recent)
            sim_note(w, NOTE_HAZARD,
                     "s%u was read by VALU, written by SALU "
                     "and is read: s_wait_alu sa_sdst(0)",
                     r);
        if (sim_bits_has(&k->s_valu, r) && o->cls == SIM_SALU)
            sim_waited_alu(k, vcc ? ~ALU_VA_VCC : ~ALU_VA_SDST);
        else if (sim_bits_has(&k->s_valu, r))
            sim_note(w, NOTE_HAZARD,
                     "s%u was read and then written by VALU, and is read: "
                     "s_wait_alu %s(0)",
                     r, vcc ? "va_vcc" : "va_sdst");
        /* The hardware knows pairs. */
        k->s_seen.b[r / 64] |= (valu ? 3ull : 0) << (r & 62);
        return;
    }
    if (w->w == 64 && salu)
        sim_note(w, NOTE_HAZARD,
                 "s%u was a lane mask, was written by SALU and "
                 "is read: s_waitcnt_depctr sa_sdst(0)",
                 r);
    if (w->w == 64 && valu && sim_bits_has(&k->s_valu, r))
        sim_note(w, NOTE_HAZARD,
                 "s%u was a lane mask, was written by VALU and "
                 "is read: s_waitcnt_depctr %s(0)",
                 r, vcc ? "va_vcc" : "va_sdst");
}

static void
write_sgpr(sim_wave *w, const sim_op *o, unsigned r)
{
    sim_wcheck *k = w->check;

    if (!sim_bits_has(&k->s_seen, r))
        return;
    if (o->cls == SIM_SALU) {
        sim_bits_put(&k->s_salu, r, true);
        k->s_wrote[r] = k->n_salu + 1;
    } else if (o->cls == SIM_VALU) {
        sim_bits_put(&k->s_valu, r, true);
    }
}

static void
scalars(sim_wave *w, const sim_op *o, const sim_opnd *p, bool write)
{
    for (unsigned i = 0; p->file == SIM_S && i < p->n; i++) {
        if (!plain_sgpr(p->reg + i))
            continue;
        if (write)
            write_sgpr(w, o, p->reg + i);
        else
            read_sgpr(w, o, p->reg + i);
    }
}

static bool
overlap(const sim_opnd *a, const sim_opnd *b)
{
    return a->file == SIM_V && b->file == SIM_V && a->reg < b->reg + b->n &&
           b->reg < a->reg + a->n;
}

static void
trans_use(sim_wave *w, const sim_op *o)
{
    sim_wcheck *k = w->check;

    for (unsigned i = 0; i < o->n_src; i++)
        for (unsigned r = o->src[i].reg;
             o->src[i].file == SIM_V && r < o->src[i].reg + o->src[i].n &&
             r < 256;
             r++)
            if (k->trans_at[r] > k->trans_from &&
                k->n_valu + 1 - k->trans_at[r] < TRANS_VALUS &&
                k->n_trans + 1 - k->trans_no[r] < TRANS_TRANS)
                sim_note(w, NOTE_HAZARD,
                         "v%u comes from a transcendental instruction just "
                         "before: s_waitcnt_depctr 0xfff",
                         r);
}

static void
trans(sim_wave *w, const sim_op *o)
{
    sim_wcheck *k = w->check;
    bool is = o->is & IS_TRANS;

    for (const sim_op *h = o; h; h = h->y)
        trans_use(w, h);
    k->n_valu++;
    k->n_trans += is;
    for (; o; o = o->y)
        for (unsigned i = 0; o->dst.file == SIM_V && i < o->dst.n; i++) {
            k->trans_at[o->dst.reg + i] = is ? k->n_valu + 1 : 0;
            k->trans_no[o->dst.reg + i] = k->n_trans + 1;
            k->trans_last = is ? k->n_valu + 1 : k->trans_last;
        }
}

static void
forwarded_pair(sim_wave *w, unsigned a, unsigned b)
{
    sim_wcheck *k = w->check;

    if (k->v_fwd[a] > k->fwd_from && k->v_fwd[b] > k->v_fwd[a] &&
        k->v_exec[a] < k->v_exec[b] &&
        k->n_fwd + 1 - k->v_fwd[b] <= FWD_VALUS &&
        k->v_fwd[b] - k->v_fwd[a] - 1 <= FWD_BETWEEN)
        sim_note(w, NOTE_HAZARD,
                 "v%u was written just before EXEC was, v%u just after: "
                 "s_waitcnt_depctr 0xfff",
                 a, b);
}

static void
forwarded(sim_wave *w, const sim_op *o)
{
    sim_wcheck *k = w->check;
    uint8_t r[64];
    unsigned n = 0;

    for (unsigned i = 0; i < o->n_src; i++)
        for (unsigned x = 0; o->src[i].file == SIM_V && x < o->src[i].n; x++)
            if (o->src[i].reg + x < 256 && n < BR_COUNT(r) - 1)
                r[n++] = (uint8_t)(o->src[i].reg + x);
    if (o->sem->lane && o->sem->flags & SEM_ACC)
        r[n++] = (uint8_t)o->dst.reg;
    for (unsigned a = 0; a < n; a++)
        for (unsigned b = 0; b < n; b++)
            forwarded_pair(w, r[a], r[b]);
    k->n_fwd++;
    for (unsigned x = 0; o->dst.file == SIM_V && x < o->dst.n; x++) {
        k->v_fwd[o->dst.reg + x] = k->n_fwd + 1;
        k->v_exec[o->dst.reg + x] = k->n_exec;
    }
}

static bool
writes_exec(const sim_op *o)
{
    return o->cls == SIM_SALU &&
           ((o->dst.file == SIM_S && o->dst.reg / 2 == SIM_EXEC / 2) ||
            o->sem->fn == sim_saveexec);
}

static void
vector(sim_wave *w, const sim_op *o)
{
    sim_wcheck *k = w->check;
    const sim_op *l = k->last_valu;

    if (w->isa.cpu->gen == 11 && !w->isa.cpu->minor5)
        trans(w, o);
    if (w->isa.cpu->gen == 11 && w->w == 64)
        forwarded(w, o);
    k->last_valu = o;
    if (!l || !(o->is & (IS_PERMLANE | IS_WMMA)))
        return;
    if (l->is & IS_CMPX && o->is & IS_PERMLANE)
        sim_note(w, NOTE_HAZARD,
                 "v_cmpx right before: a VALU has to be "
                 "between");
    if (l->is & IS_WMMA && o->is & IS_WMMA &&
        (overlap(&l->dst, &o->src[0]) || overlap(&l->dst, &o->src[1])))
        sim_note(w, NOTE_HAZARD,
                 "A or B is the result of the matrix product "
                 "before: a v_nop has to be between");
}

/* On gfx11 only lane masks of 64 lanes matter. */
static bool
scalars_matter(const sim_wave *w)
{
    return w->isa.cpu->gen == 12 || w->w == 64;
}

void
sim_hazards(sim_wave *w, const sim_op *o)
{
    sim_wcheck *k = w->check;
    bool watch = scalars_matter(w), masks = w->isa.cpu->gen == 11;

    if (o->sem->fn == sim_flow && o->sem->src[0] == GO_W_ALU)
        sim_waited_alu(k, (unsigned)o->imm);
    if (o->sem->fn == sim_flow && o->sem->src[0] == GO_MESSAGE &&
        !(k->last && k->last->is & IS_NOP))
        sim_note(w, NOTE_HAZARD, "s_nop has to stand before MSG_DEALLOC_VGPRS");
    k->n_exec += writes_exec(o);
    if (o->cls == SIM_VMEM || o->cls == SIM_LDS) /* wait for VALUs themselves */
        k->fwd_from = k->n_fwd + 1;
    for (const sim_op *h = o; h && watch; h = h->y) {
        for (unsigned i = 0; i < h->n_src; i++)
            scalars(w, h, &h->src[i], false);
        scalars(w, h, &h->mask, false);
    }
    if (o->cls == SIM_VALU) {
        for (unsigned i = 0; masks && o->mask.file == SIM_S && i < o->mask.n;
             i++)
            if (plain_sgpr(o->mask.reg + i))
                sim_bits_put(&k->s_seen, o->mask.reg + i, true);
        vector(w, o);
    }
    if (watch) {
        scalars(w, o, &o->dst, true);
        scalars(w, o, &o->sdst, true);
    }
    k->n_salu += o->cls == SIM_SALU;
    k->last = o;
}
