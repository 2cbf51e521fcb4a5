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
#define RARE __attribute__((noinline))
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

static bool
has_scalars(const sim_bits *b)
{
    return b->b[0] | b->b[1];
}

/* A wait alone: gfx11's for stores names a register, the null one. */
static bool
is_wait(sim_op *o)
{
    sim_uses u = none();

    if (o->sem->fn != sim_flow || o->sem->src[0] < GO_W_ALL)
        return false;
    for (unsigned i = 0; i < o->n_src; i++)
        scalars(&u.read, &o->src[i]);
    scalars(&u.read, &o->mask);
    scalars(&u.read, &o->dst);
    scalars(&u.read, &o->sdst);
    return !has_scalars(&u.read);
}

/* The vector registers of both halves, where 64 bits hold them. */
static void
rows(sim_op *o)
{
    sim_uses *u = &o->uses;

    u->low = u->most < 64;
    for (const sim_op *h = o; u->low && h; h = h->y) {
        for (unsigned i = 0; i < h->uses.n_read; i++)
            u->rows_read |= 1ull << h->uses.read_v[i];
        for (unsigned i = 0; i < h->uses.n_write; i++)
            u->rows_written |= 1ull << h->uses.write_v[i];
    }
}

static void uses_find(sim_op *o, const br_gcn_isa *isa);

void
sim_uses_find(sim_op *o, const br_gcn_isa *isa)
{
    sim_uses *u = &o->uses;

    uses_find(o, isa);
    /* What VALUs forward there is looked at one by one: sim_hazard.c. */
    if (isa->wave64 && isa->cpu->gen == 11)
        u->quick = false;
    u->scalars = has_scalars(&u->write) || has_scalars(&u->seen);
    rows(o);
}

static void
uses_find(sim_op *o, const br_gcn_isa *isa)
{
    sim_uses *u = &o->uses;

    *u = none();
    if (o->cls == SIM_SMEM || o->cls == SIM_VMEM || o->cls == SIM_LDS) {
        u->quick = u->memory = memory_uses(o);
        return;
    }
    u->waits = is_wait(o);
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

/* Not defined, in a hazard, or a load may be out. */
static inline uint64_t
odd_scalars(const sim_wcheck *k, const sim_uses *u, unsigned h)
{
    uint64_t r = u->read.b[h], rw = r | u->write.b[h];

    return (r & (~k->s_def.b[h] | k->s_salu.b[h] | k->s_valu.b[h])) |
           (rw & k->s_busy.b[h]);
}

/* Some are odd: whether it was a load that has come since. */
static RARE bool
scalars_fine(sim_wcheck *k, const sim_uses *u)
{
    for (unsigned h = 0; h < 2; h++)
        if (!scalars_free(k, h,
                          (u->read.b[h] | u->write.b[h]) & k->s_busy.b[h]))
            return false;
    return !(odd_scalars(k, u, 0) | odd_scalars(k, u, 1));
}

static bool
vectors_free(sim_wcheck *k, const uint16_t *v, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (sim_row_has(k->v_busy, v[i]) && !sim_is_free(k, true, v[i]))
            return false;
    return true;
}

static bool
vectors_fine(sim_wcheck *k, const sim_uses *u, uint64_t *def)
{
    *def = k->v_def[u->read_v[0]] & k->v_def[u->read_v[1]] &
           k->v_def[u->read_v[2]] & k->v_def[u->read_v[3]];
    for (unsigned i = FEW_READ; u->many && i < u->n_read; i++)
        *def &= k->v_def[u->read_v[i]];
    return vectors_free(k, u->read_v, u->n_read) &&
           vectors_free(k, u->write_v, u->n_write);
}

static void
vectors_written(sim_wcheck *k, const sim_uses *u, uint64_t exec, uint64_t def)
{
    for (unsigned i = 0; i < u->n_write; i++)
        sim_define(k, u->write_v[i], exec, def);
}

/* Sources have all their lanes, no load is out, and the results are as they were
 * or whole. */
static inline bool
all_whole(const sim_wcheck *k, const sim_uses *u, uint64_t exec)
{
    uint64_t touched = u->rows_read | u->rows_written;
    uint64_t whole = u->rows_read | (exec == k->lanes ? 0 : u->rows_written);

    return u->low && !((touched & k->v_busy[0]) | (whole & ~k->v_full[0]));
}

static void
scalars_written(sim_wcheck *k, const sim_op *o, unsigned h)
{
    const sim_uses *u = &o->uses;
    uint64_t m;

    k->s_def.b[h] |= u->write.b[h];
    k->s_seen.b[h] |= u->seen.b[h];
    m = u->write.b[h] & k->s_seen.b[h] & plain.b[h];
    if (!m)
        return;
    (o->cls == SIM_SALU ? &k->s_salu : &k->s_valu)->b[h] |= m;
    for (; o->cls == SIM_SALU && m; m &= m - 1)
        k->s_wrote[h * 64 + (unsigned)__builtin_ctzll(m)] = k->n_salu + 1;
}

/* What is noted of one that is fine, but for its vector registers. */
static inline void
note(sim_wcheck *k, const sim_op *o)
{
    k->last = o;
    if (o->cls == SIM_VALU)
        k->last_valu = o;
    k->n_valu += o->uses.trans;
    if (o->uses.scalars) {
        scalars_written(k, o, 0);
        scalars_written(k, o, 1);
    }
    k->n_salu += o->cls == SIM_SALU;
}

/* Register by register. */
static RARE bool
by_register(sim_wcheck *k, const sim_op *o, uint64_t exec)
{
    uint64_t def = UINT64_MAX, def_y = UINT64_MAX;

    if (!vectors_fine(k, &o->uses, &def) ||
        (o->y && !vectors_fine(k, &o->y->uses, &def_y)) ||
        (o->uses.strict && exec & ~def))
        return false;
    note(k, o);
    vectors_written(k, &o->uses, exec, def);
    if (o->y)
        vectors_written(k, &o->y->uses, exec, def_y);
    return true;
}

/* Results that were not whole and are now. */
static RARE bool
made_whole(sim_wcheck *k, uint64_t more)
{
    k->v_full[0] |= more;
    for (; more; more &= more - 1)
        k->v_def[__builtin_ctzll(more)] = UINT64_MAX;
    return true;
}

static RARE bool
waited(sim_wave *w, const sim_op *o)
{
    if (o->sem->src[0] == GO_W_ALU)
        sim_waited_alu(w->check, (unsigned)o->imm);
    else
        sim_waited(w, o);
    w->check->last = o;
    return true;
}

static inline bool
trans_is_near(const sim_wcheck *k, const sim_op *o)
{
    return o->is & IS_TRANS || (k->trans_last > k->trans_from &&
                                k->n_valu + 1 - k->trans_last < TRANS_VALUS);
}

/* What is rare is a call at the end, so that the usual needs no registers saved. */
bool
sim_check_quick(sim_wave *w, const sim_op *o)
{
    sim_wcheck *k = w->check;
    const sim_uses *u = &o->uses;
    uint64_t exec = sim_exec(w), more;

    if (!u->quick)
        return u->waits && waited(w, o);
    if (u->most >= k->n_vgprs || (u->trans && trans_is_near(k, o)))
        return false;
    if ((odd_scalars(k, u, 0) | odd_scalars(k, u, 1)) && !scalars_fine(k, u))
        return false;
    if (!all_whole(k, u, exec))
        return by_register(k, o, exec);
    note(k, o);
    more = u->rows_written & ~k->v_full[0];
    return !more || made_whole(k, more);
}
