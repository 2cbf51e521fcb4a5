/* sim_quick.c - the checks of an instruction that nothing is wrong with.
 *
 *   decoding    what is read and written: a bit for each scalar, vector ones by
 *               number                                          sim_uses_find
 *   running     scalars in four words at a time, lanes of each vector register;
 *               what is written is noted right away           sim_check_quick
 *
 * As soon as anything is odd nothing is changed, and sim_check.c and
 * sim_hazard.c look at the instruction operand by operand, and say what is
 * wrong or that nothing is. These are the truth: here is only what makes it
 * fast, 5 ns for an instruction where they take 60.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_check.h"
#include "drv/sim/sim_wcheck.h"

enum {
    TRANS_VALUS = 6, /* as in sim_hazard.c */
    FEW_READ = 4,    /* all but a few have no more */
    FEW_WRITE = 2,
};
static const sim_bits plain = {{UINT64_MAX, (1ull << (SIM_NULL - 64)) - 1}};

/* ---- what an instruction uses ----------------------------------------- */

static void
scalars(sim_bits *b, const sim_opnd *p)
{
    unsigned end = BR_MIN(p->reg + p->n, SIM_SGPRS);

    if (p->file != SIM_S || p->reg == SIM_NULL)
        return;
    for (unsigned r = p->reg; r < end; r++)
        b->b[r / 64] |= r == SIM_NULL ? 0 : 1ull << r % 64;
}

/* False: there are too many. */
static bool
vectors(sim_uses *u, const sim_opnd *p, bool write)
{
    uint16_t *v = write ? u->write_v : u->read_v;
    uint8_t *n = write ? &u->n_write : &u->n_read;
    unsigned most = write ? SIM_MAX_WRITE : SIM_MAX_READ;

    for (unsigned i = 0; p->file == SIM_V && i < p->n; i++) {
        if (p->reg + i >= 256 || *n == most)
            return false;
        v[(*n)++] = (uint16_t)(p->reg + i);
        u->most = BR_MAX(u->most, (uint8_t)(p->reg + i));
    }
    u->many = u->n_read > FEW_READ || u->n_write > FEW_WRITE;
    return true;
}

static sim_uses
none(void)
{
    sim_uses u = {.quick = false};

    for (unsigned k = 0; k < FEW_READ; k++)
        u.read_v[k] = SIM_NO_READ;
    for (unsigned k = 0; k < FEW_WRITE; k++)
        u.write_v[k] = SIM_NO_WRITE;
    return u;
}

static bool
reads_data(unsigned act)
{
    return act == ACT_STORE || act == ACT_STORE_HIGH || act == ACT_STORE2 ||
           act == ACT_STORE_TID || act == ACT_BPERMUTE || act == ACT_PERMUTE ||
           act >= ACT_ATOMIC || act == ACT_SWAP2;
}

/* Memory: what it writes is noted once it has run. */
static bool
memory_uses(sim_op *o)
{
    sim_uses *u = &o->uses;
    unsigned act = o->sem->src[0];
    bool ok = sim_moves(o), lane = o->cls != SIM_SMEM;

    scalars(&u->read, &o->src[3]);
    scalars(&u->read, &o->mask);
    if (o->cls == SIM_SMEM)
        scalars(&u->write, &o->dst);
    if (lane && act != ACT_LOAD_TID && act != ACT_STORE_TID &&
        act != ACT_APPEND && act != ACT_CONSUME)
        ok = ok && vectors(u, &o->src[0], false);
    for (unsigned i = 1; lane && reads_data(act) && i < 3; i++)
        ok = ok && vectors(u, &o->src[i], false);
    for (unsigned i = 0; lane && o->rtn && i < o->dst.n; i++)
        u->most = BR_MAX(u->most, (uint8_t)(o->dst.reg + i));
    u->strict = true;
    /* A load that comes behind another is in order: sim_check.c knows. */
    u->write = (sim_bits){{0, 0}};
    return ok;
}

static bool
sources(sim_op *o, sim_uses *u)
{
    bool ok = true;

    for (unsigned i = 0; i < o->n_src; i++) {
        scalars(&u->read, &o->src[i]);
        ok = ok && vectors(u, &o->src[i], false);
    }
    scalars(&u->read, &o->mask);
    if (o->sem->lane && o->sem->flags & SEM_ACC)
        ok = ok && vectors(u, &o->dst, false);
    return ok;
}

/* What gfx12 keeps of scalars that VALU read, and gfx11 of 64 lanes. */
static sim_bits
seen(const sim_op *o, const sim_uses *u, const br_gcn_isa *isa)
{
    sim_bits r = {{0, 0}};

    if (o->cls != SIM_VALU)
        return r;
    if (isa->cpu->gen == 11 && isa->wave64)
        scalars(&r, &o->mask);
    for (unsigned k = 0; k < 2 && isa->cpu->gen == 12; k++) {
        uint64_t b = u->read.b[k] & plain.b[k], even = 0x5555555555555555;

        r.b[k] = b | (b & even) << 1 | (b >> 1 & even);
    }
    return r;
}

void
sim_uses_find(sim_op *o, const br_gcn_isa *isa)
{
    sim_uses *u = &o->uses;

    *u = none();
    if (o->cls == SIM_SMEM || o->cls == SIM_VMEM || o->cls == SIM_LDS) {
        u->quick = u->memory = memory_uses(o);
        return;
    }
    if (o->sem->fn == sim_flow && o->sem->src[0] > GO_EXECNZ)
        return;
    u->quick = sources(o, u) && !(o->is & (IS_PERMLANE | IS_WMMA));
    u->strict =
        o->cls == SIM_VALU && (o->sem->dst == T_CMP || o->dst.file == SIM_S);
    if (!(o->is & IS_READER))
        scalars(&u->write, &o->dst);
    scalars(&u->write, &o->sdst);
    u->seen = seen(o, u, isa);
    u->quick = u->quick && vectors(u, &o->dst, true);
    u->trans = o->cls == SIM_VALU && isa->cpu->gen == 11 && !isa->cpu->minor5;
    if (!o->y)
        return;
    /* The other half has sources of its own; scalars are the first's. */
    o->y->uses = none();
    u->quick = u->quick && sources(o->y, &o->y->uses) &&
               vectors(&o->y->uses, &o->y->dst, true);
    for (unsigned k = 0; k < 2; k++)
        u->read.b[k] |= o->y->uses.read.b[k];
    u->most = BR_MAX(u->most, o->y->uses.most);
    u->seen = seen(o, u, isa);
}

/* ---- as it runs ------------------------------------------------------- */

static bool
scalars_free(sim_wcheck *k, unsigned half, uint64_t m)
{
    for (; m; m &= m - 1)
        if (!sim_is_free(k, false, half * 64 + (unsigned)__builtin_ctzll(m)))
            return false;
    return true;
}

static bool
scalars_fine(sim_wcheck *k, const sim_uses *u)
{
    uint64_t odd = 0, busy[2];

    for (unsigned h = 0; h < 2; h++) {
        odd |=
            u->read.b[h] & (~k->s_def.b[h] | k->s_salu.b[h] | k->s_valu.b[h]);
        busy[h] = (u->read.b[h] | u->write.b[h]) & k->s_busy.b[h];
    }
    return !odd && (!(busy[0] | busy[1]) || (scalars_free(k, 0, busy[0]) &&
                                             scalars_free(k, 1, busy[1])));
}

static bool
vectors_free(sim_wcheck *k, const uint16_t *v, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (k->v_busy[v[i]] && !sim_is_free(k, true, v[i]))
            return false;
    return true;
}

static inline bool
vectors_fine(sim_wcheck *k, const sim_uses *u, uint64_t *def)
{
    const uint16_t *v = u->read_v, *to = u->write_v;
    unsigned busy = k->v_busy[v[0]] | k->v_busy[v[1]] | k->v_busy[v[2]] |
                    k->v_busy[v[3]] | k->v_busy[to[0]] | k->v_busy[to[1]];

    *def = k->v_def[v[0]] & k->v_def[v[1]] & k->v_def[v[2]] & k->v_def[v[3]];
    for (unsigned i = FEW_READ; u->many && i < u->n_read; i++) {
        *def &= k->v_def[v[i]];
        busy |= k->v_busy[v[i]];
    }
    for (unsigned i = FEW_WRITE; u->many && i < u->n_write; i++)
        busy |= k->v_busy[to[i]];
    return !busy ||
           (vectors_free(k, v, u->n_read) && vectors_free(k, to, u->n_write));
}

static inline void
vectors_written(sim_wcheck *k, const sim_uses *u, uint64_t exec, uint64_t def)
{
    uint64_t *a = &k->v_def[u->write_v[0]], *b = &k->v_def[u->write_v[1]];

    def &= exec;
    *a = (*a & ~exec) | def;
    *b = (*b & ~exec) | def;
    for (unsigned i = FEW_WRITE; u->many && i < u->n_write; i++) {
        uint64_t *d = &k->v_def[u->write_v[i]];

        *d = (*d & ~exec) | def;
    }
}

static void
scalars_written(sim_wcheck *k, const sim_op *o)
{
    const sim_uses *u = &o->uses;

    for (unsigned h = 0; h < 2; h++) {
        uint64_t m;

        k->s_def.b[h] |= u->write.b[h];
        k->s_seen.b[h] |= u->seen.b[h];
        m = u->write.b[h] & k->s_seen.b[h] & plain.b[h];
        if (!m)
            continue;
        (o->cls == SIM_SALU ? &k->s_salu : &k->s_valu)->b[h] |= m;
        for (; o->cls == SIM_SALU && m; m &= m - 1)
            k->s_wrote[h * 64 + (unsigned)__builtin_ctzll(m)] = k->n_salu + 1;
    }
}

bool
sim_check_quick(sim_wave *w, const sim_op *o)
{
    sim_wcheck *k = w->check;
    const sim_uses *u = &o->uses;
    uint64_t exec = sim_exec(w), def = UINT64_MAX, def_y = UINT64_MAX;
    bool lanes = o->cls != SIM_SALU && o->cls != SIM_FLOW;

    if (!u->quick || u->most >= k->n_vgprs || !scalars_fine(k, u) ||
        (lanes && !vectors_fine(k, u, &def)) ||
        (o->y && !vectors_fine(k, &o->y->uses, &def_y)) ||
        (u->strict && exec & ~def))
        return false;
    if (u->trans) {
        if (o->is & IS_TRANS || (k->trans_last > k->trans_from &&
                                 k->n_valu + 1 - k->trans_last < TRANS_VALUS))
            return false;
        k->n_valu++;
    }
    k->last = o;
    if (o->cls == SIM_VALU)
        k->last_valu = o;
    scalars_written(k, o);
    k->n_salu += o->cls == SIM_SALU;
    if (lanes)
        vectors_written(k, u, exec, def);
    if (o->y)
        vectors_written(k, &o->y->uses, exec, def_y);
    return true;
}
