/* x86_gen.c - a function of kernel IR as x86-64 code.
 *
 *   block at position p     start: no lanes pending? to p + 1
 *                           regions and steps, in order
 *                           term: phis of each edge, lanes into the targets'
 *                           masks, back to a target that lies before, else on
 *
 * So the lowest block with lanes runs next, as in the interpreter
 * (kir_order.c), whose frames these are. After a barrier or a call a block is
 * left with its lanes in `hold`; the scheduler brings them back to `term` by
 * way of `tail`. Jumps back count down fuel, so that warps take turns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

#include <string.h>

#define IN_STEP 0xfffffffeu

uint32_t
x86_site_of(gen *g, const br_kins *i)
{
    uint32_t ins = (uint32_t)(i - g->f->ins.at);
    x86_site s = {.ins = ins, .pos = g->pos, .uniform = g->uniform};

    if (!g->fast && g->site[ins])
        return g->site[ins] - 1;
    if (!br_vec_push(&g->fn->sites, s)) {
        g->a->oom = true;
        return 0;
    }
    if (!g->fast) /* fast code has other registers */
        g->site[ins] = (uint32_t)g->fn->sites.n;
    return (uint32_t)g->fn->sites.n - 1;
}

/* ---- which region, which row ---------------------------------------------- */

bool
x86_is_preset(const br_kfn *f, const br_kins *i)
{
    uint32_t a = i->n_arg ? f->args.at[i->arg] : 0;
    const br_kins *of = NULL;

    switch (i->op) {
    case BR_K_TOGEN:
    case BR_K_FROMGEN: /* of a parameter, where it is the same number */
        if (f->vals.at[a].kind == BR_KV_INS)
            of = &f->ins.at[f->vals.at[a].def];
        return of && of->op == BR_K_LD && x86_is_preset(f, of) &&
               ki_window(br_kmod(i->mods, BR_KF_SPACE)) == 0;
    case BR_K_ADDR:
    case BR_K_FRAME: return true;
    case BR_K_SREG:
        return i->imm <= BR_KS_NSMID ||
               (i->imm >= BR_KS_MASK_EQ && i->imm <= BR_KS_MASK_GT);
    case BR_K_LD:
        return f->entry && i->n_res == 1 &&
               br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_PARAM &&
               f->vals.at[a].kind == BR_KV_CONST && i->type != BR_KT_S8 &&
               i->imm >= 0 && i->imm <= f->param_bytes &&
               f->vals.at[a].bits <= f->param_bytes &&
               f->vals.at[a].bits + (uint64_t)i->imm +
                       br_ktinfo_of[i->type].bytes <=
                   f->param_bytes &&
               (f->vals.at[a].bits + (uint64_t)i->imm) %
                       br_ktinfo_of[i->type].bytes ==
                   0;
    default: return false;
    }
}

static bool
list_presets(gen *g)
{
    bool ok = true;

    for (uint32_t b = 0; b < g->n; b++)
        for (size_t s = 0; s < g->f->blks.at[b].ins.n; s++)
            if (x86_is_preset(g->f, &g->f->ins.at[g->f->blks.at[b].ins.at[s]]))
                ok &= br_vec_push(&g->fn->presets, g->f->blks.at[b].ins.at[s]);
    for (size_t k = 0; ok && k < g->fn->presets.n; k++) {
        uint32_t *at = g->fn->presets.at, t = at[k];
        const br_kins *i = &g->f->ins.at[t];

        if (i->op != BR_K_SREG || i->imm < BR_KS_CTAID_X ||
            i->imm > BR_KS_CTAID_Z)
            continue;
        at[k] = at[g->fn->n_block_presets];
        at[g->fn->n_block_presets++] = t;
    }
    return ok;
}

static void
need_row(gen *g, uint32_t v)
{
    if (!is_const(g, v))
        g->fn->slot[v] = 0;
}

/* Whether it is done once for a warp, or would be, did values go evenly: code
 * for rows has the same regions and rows, so that it can take over. */
static bool
may_be_once(const gen *g, const br_kins *i)
{
    return i->n_res && g->fn->step[i->res] != BR_KSTEP_NONE;
}

/* A quarter of the warp runs a region to its end before the next begins, but
 * programs that leave barriers out among a warp's lanes, as was the rule before
 * Volta and goes on working on GPUs, count on every lane having loaded or stored
 * before any goes on. So of two accesses to shared memory, or volatile ones, of
 * which one stores, the second begins a region, unless lanes meet themselves alone
 * or in the order of quarters. Two stores count where one is volatile. */
enum { MAX_MEET = 24 };

typedef struct accesses {
    const br_kins *at[MAX_MEET];
    size_t n;
} accesses;

static bool
is_volatile(const br_kins *i)
{
    return br_kmod(i->mods, BR_KF_SEM) == BR_KM_SEM_VOLATILE;
}

/* Whether what lane x does at a, a lane of a later quarter does not see, or sees
 * too early, at b. Of evenly placed lanes those that begin at one address and lie
 * fewer than a warp's bytes after it. */
static bool
lanes_may_meet(const gen *g, const br_kins *a, const br_kins *b)
{
    bool stores = a->op != BR_K_LD || b->op != BR_K_LD;
    bool loads = a->op == BR_K_LD || b->op == BR_K_LD;
    bool marked = is_volatile(a) || is_volatile(b);
    uint32_t v = arg_of(g, a, 0);
    int64_t by, far = b->imm - a->imm;

    if (!stores || (!loads && !marked))
        return false;
    if (v != arg_of(g, b, 0) || a->op == BR_K_ATOM || b->op == BR_K_ATOM)
        return true;
    if (!is_const(g, v) && g->fn->step[v] == BR_KSTEP_NONE)
        return far != 0 || marked;
    by = is_const(g, v) ? 0 : x86_step_by(g->fn, v);
    if (by == 0)
        return far == 0;
    return by > 0 ? far > 0 && far < 32 * by : far < 0 && far > 32 * by;
}

/* Notes an access of the region; false: it begins the next one. */
static bool
fits_region(const gen *g, accesses *m, const br_kins *i)
{
    bool memory = i->op == BR_K_LD || i->op == BR_K_ST || i->op == BR_K_ATOM;

    if (!memory || (br_kmod(i->mods, BR_KF_SPACE) != BR_KM_SPACE_SHARED &&
                    !is_volatile(i)))
        return true;
    for (size_t k = 0; k < m->n; k++)
        if (m->n == MAX_MEET || lanes_may_meet(g, m->at[k], i))
            return false;
    m->at[m->n++] = i;
    return true;
}

/* Regions are numbered; what a step makes or reads has a row. */
static void
number_regions(gen *g, uint32_t b)
{
    const br_kblk *k = &g->f->blks.at[b];
    uint32_t here = ++g->n_regions;
    bool stored = false;
    accesses met = {.n = 0};

    for (size_t s = 0; s < k->ins.n; s++) {
        uint32_t id = k->ins.at[s];
        const br_kins *i = &g->f->ins.at[id];

        if (i->op == BR_K_PHI || x86_is_preset(g->f, i)) {
            g->region[id] = IN_STEP;
        } else if ((br_kopinfo_of[i->op].props & BR_KP_TERM) ||
                   !x86_select(g, i)) {
            g->region[id] = IN_STEP;
            here = ++g->n_regions;
            stored = false;
            met.n = 0;
        } else {
            /* A uniform load comes before all of its region: no store may. */
            if ((i->op == BR_K_LD && may_be_once(g, i) && stored) ||
                !fits_region(g, &met, i)) {
                here = ++g->n_regions;
                stored = false;
                met.n = 0;
                (void)fits_region(g, &met, i);
            }
            stored |= i->op == BR_K_ST;
            g->region[id] = here;
        }
    }
}

static void
find_rows(gen *g)
{
    const br_kfn *f = g->f;

    memset(g->fn->slot, 0xff, (f->vals.n + 2) * sizeof *g->fn->slot);
    for (uint32_t b = 0; b < f->blks.n; b++)
        number_regions(g, b);
    for (uint32_t b = 0; b < f->blks.n; b++)
        for (size_t s = 0; s < f->blks.at[b].ins.n; s++) {
            uint32_t id = f->blks.at[b].ins.at[s];
            const br_kins *i = &f->ins.at[id];

            for (unsigned a = 0; a < i->n_arg; a++) {
                uint32_t v = arg_of(g, i, a);

                if (!is_const(g, v) &&
                    (g->region[id] == IN_STEP ||
                     g->region[f->vals.at[v].def] != g->region[id]))
                    need_row(g, v);
            }
            for (unsigned r = 0; r < i->n_res; r++) {
                g->masked[i->res + r] = g->mixed[b] || i->op == BR_K_PHI;
                if (g->region[id] == IN_STEP || may_be_once(g, i))
                    need_row(g, i->res + r);
            }
        }
}

static void
place_rows(gen *g)
{
    static const uint16_t bytes[] = {8, 128, 128, 256};
    uint32_t top = 0;

    for (int wide = 1; wide >= 0; wide--)
        for (uint32_t v = 0; v < g->f->vals.n; v++) {
            bool w = !g->fn->uniform[v] && cls_of(g, v) != BR_KC_PRED;

            if (g->fn->slot[v] == X86_NO_SLOT || w != wide)
                continue;
            g->fn->slot[v] = top;
            top += w ? bytes[cls_of(g, v)] : 8;
        }
    g->spill_at = (top + 31) & ~31u;
    g->n_spills = (unsigned)BR_MIN(MIN_SPILLS + g->f->vals.n / VALUES_PER_SPILL,
                                   (size_t)MAX_SPILLS);
    g->hosts_at = g->spill_at + (g->zmm ? 64 : 32) * g->n_spills;
    g->fn->frame_bytes = g->hosts_at + 32 * X86_GROUPS;
}

/* ---- steps ---------------------------------------------------------------- */

static void
call_c(gen *g, const br_kins *i, size_t which)
{
    uint32_t site = x86_site_of(g, i);

    x86_wide_warp(g);
    br_x86_put(g->a, BR_X_ZEROUPPER, NULL);
    e2(g, BR_X_MOV64, RDI, RBX);
    ei(g, BR_X_MOV32_I, br_x86_reg(RSI), site);
    e2(g, BR_X_MOV32, RDX, R13);
    br_x86_put(g->a, BR_X_CALL_M, (br_x86_arg[]){x86_ctx_at(which)});
}

/* The lanes wait here; the scheduler knows when they go on. */
static void
hold(gen *g)
{
    es(g, BR_X_OR32_S, br_x86_mem(RBP, (int32_t)(4 * (2 * g->n + g->pos))),
       R13);
}

static void
step(gen *g, const br_kins *i)
{
    uint32_t top, slow, done;
    x86_by by;

    if (g->wide && i->op == BR_K_BAR) /* all are here */
        return;
    slow = br_x86_label(g->a);
    done = br_x86_label(g->a);
    top = x86_seats(g);
    g->uniform = i->n_res && g->fn->uniform[i->res];
    by = x86_lanes(g, i, slow);
    if (by == X86_BY_BOTH)
        ej(g, BR_X_JMP, done);
    br_x86_bind(g->a, slow);
    if (by == X86_BY_CODE) {
        x86_seats_end(g, top);
        return;
    }
    call_c(g, i, offsetof(x86_ctx, step));
    e2(g, BR_X_TEST32, RAX, RAX);
    if (i->op == BR_K_CALL || i->op == BR_K_CALLI) {
        uint32_t on = br_x86_label(g->a);

        ej(g, BR_X_JE, on);
        ei(g, BR_X_CMP32_I, br_x86_reg(RAX), X86_FAULT);
        ej(g, BR_X_JE, g->fault);
        hold(g);
        ej(g, BR_X_JMP, g->done);
        br_x86_bind(g->a, on);
        return;
    }
    if (i->op == BR_K_BAR) {
        hold(g);
        e2(g, BR_X_TEST32, RAX, RAX);
        ej(g, BR_X_JE, g->start[g->pos]); /* other lanes may have come */
        ej(g, BR_X_JMP, g->done);
        return;
    }
    ej(g, BR_X_JNE, g->fault);
    br_x86_bind(g->a, done);
    x86_seats_end(g, top);
    if (i->op == BR_K_BARRED) {
        hold(g);
        ej(g, BR_X_JMP, g->start[g->pos]); /* other lanes may have come */
    }
}

static void
flush(gen *g)
{
    uint32_t top;

    if (!(g->uni.n + g->ones.n + g->list.n))
        return;
    if (g->fn->region_at && !g->parted)
        g->fn->region_at[g->here] = (uint32_t)g->a->code.n;
    if (g->line || g->plane) {
        if (g->line)
            x86_line_region(g);
        else
            x86_plane_region(g);
        g->uni.n = g->ones.n = g->list.n = 0;
        return;
    }
    top = x86_seats(g);
    /* The second may use what the first left in registers. */
    x86_region(g, g->uni.at, g->uni.n, true);
    x86_region(g, g->list.at, g->list.n, false);
    x86_forget(g);
    x86_seats_end(g, top);
    if (g->fn->own->kind == X86_KEEP_ROWS)
        g->fn->region_at[g->fn->n_regions + g->here] = (uint32_t)g->a->code.n;
    g->uni.n = g->list.n = 0;
}

/* On to the next block with lanes: one before this, else those after. */
static void
go_on(gen *g, uint32_t blk)
{
    const br_kblk *b = &g->f->blks.at[blk];
    uint32_t low = 0;

    for (;;) { /* targets before this one, the first one first */
        uint32_t best = NEVER, not = br_x86_label(g->a);

        for (size_t s = 0; s < b->succ.n; s++) {
            uint32_t p = g->fn->place[b->succ.at[s]];

            if (p <= g->pos && p >= low)
                best = BR_MIN(best, p);
        }
        if (best == NEVER) {
            br_x86_bind(g->a, not );
            break;
        }
        ei(g, BR_X_CMP32_I, br_x86_mem(RBP, (int32_t)(4 * best)), 0);
        ej(g, BR_X_JE, not );
        ei(g, BR_X_SUB32_I, x86_ctx_at(offsetof(x86_ctx, fuel)), 1);
        ej(g, BR_X_JS, g->done);
        ej(g, BR_X_JMP, g->start[best]);
        br_x86_bind(g->a, not );
        low = best + 1;
    }
    if (g->tail[g->pos]) /* it may have been a tail: the block comes again */
        ej(g, BR_X_JMP, g->start[g->pos]);
}

void
x86_branch(gen *g, uint32_t blk, const br_kins *i)
{
    uint32_t c = arg_of(g, i, 0), e = x86_edge_spoils(g, blk, 0, 1);

    if (is_const(g, c))
        ei(g, BR_X_MOV64_I, br_x86_reg(RAX),
           -(int64_t)(g->f->vals.at[c].bits & 1));
    else
        em(g, BR_X_MOV32, RAX, br_x86_mem(R12, (int32_t)g->fn->slot[c]));
    g->too_many |= e && x86_edge_spoils(g, blk, 1, 0);
    es(g, BR_X_MOV32_S, x86_ctx_at(offsetof(x86_ctx, result)), RAX);
    for (int n = 0; n < 2; n++, e = !e) {
        uint32_t skip = br_x86_label(g->a);

        if (n)
            em(g, BR_X_MOV32, RAX, x86_ctx_at(offsetof(x86_ctx, result)));
        if (e)
            br_x86_put(g->a, BR_X_NOT32, (br_x86_arg[]){br_x86_reg(RAX)});
        e2(g, BR_X_AND32, RAX, R13);
        ej(g, BR_X_JE, skip);
        es(g, BR_X_MOV32_S, x86_ctx_at(offsetof(x86_ctx, edge)), RAX);
        x86_take_edge(g, blk, e);
        br_x86_bind(g->a, skip);
    }
}

/* Edges that spoil others come after them. */
static bool
comes_late(gen *g, uint32_t blk, uint32_t e)
{
    bool late = false;

    for (uint32_t other = 0; other < g->f->blks.at[blk].succ.n; other++)
        late |= x86_edge_spoils(g, blk, e, other);
    return late;
}

static void
switch_to(gen *g, uint32_t blk, const br_kins *i)
{
    const uint32_t n = (uint32_t)g->f->blks.at[blk].succ.n;

    for (uint32_t turn = 0; turn < 2 * n; turn++) {
        uint32_t e = turn % n, skip;

        if (comes_late(g, blk, e) != (turn >= n))
            continue;
        for (uint32_t o = e + 1; turn >= n && o < n; o++)
            g->too_many |=
                comes_late(g, blk, o) && x86_edge_spoils(g, blk, e, o);
        skip = br_x86_label(g->a);
        /* Says ctx.edge for target number ctx.result. */
        ei(g, BR_X_MOVM32_I, x86_ctx_at(offsetof(x86_ctx, result)), e);
        call_c(g, i, offsetof(x86_ctx, choose));
        e2(g, BR_X_TEST32, RAX, RAX);
        ej(g, BR_X_JNE, g->fault);
        ei(g, BR_X_CMP32_I, x86_ctx_at(offsetof(x86_ctx, edge)), 0);
        ej(g, BR_X_JE, skip);
        x86_take_edge(g, blk, e);
        br_x86_bind(g->a, skip);
    }
}

static void
terminator(gen *g, uint32_t blk, const br_kins *i)
{
    switch (i->op) {
    case BR_K_BR:
        es(g, BR_X_MOV32_S, x86_ctx_at(offsetof(x86_ctx, edge)), R13);
        x86_take_edge(g, blk, 0);
        break;
    case BR_K_CBR: x86_branch(g, blk, i); break;
    case BR_K_SWITCH: switch_to(g, blk, i); break;
    default:
        if (g->f->entry) { /* nobody calls it: the lanes end */
            es(g, BR_X_OR32_S, x86_ctx_at(offsetof(x86_ctx, left)), R13);
            break;
        }
        call_c(g, i, offsetof(x86_ctx, leave));
        e2(g, BR_X_TEST32, RAX, RAX);
        ej(g, BR_X_JNE, g->fault);
        break;
    }
    go_on(g, blk);
}

/* ---- blocks --------------------------------------------------------------- */

static bool
waits(const gen *g, uint32_t blk)
{
    const br_kblk *b = &g->f->blks.at[blk];

    return b->ins.n > 1 &&
           (br_kopinfo_of[g->f->ins.at[b->ins.at[b->ins.n - 2]].op].props &
            BR_KP_BAR);
}

static void
head(gen *g)
{
    br_x86_arg pend = br_x86_mem(RBP, (int32_t)(4 * g->pos));

    br_x86_bind(g->a, g->start[g->pos]);
    if (g->wide)
        return;
    if (g->tail[g->pos]) {
        ei(g, BR_X_CMP32_I, br_x86_mem(RBP, (int32_t)(4 * (g->n + g->pos))), 0);
        ej(g, BR_X_JNE, g->tail[g->pos]);
    }
    em(g, BR_X_MOV32, R13, pend);
    e2(g, BR_X_TEST32, R13, R13);
    ej(g, BR_X_JE, g->pos + 1 < g->n ? g->start[g->pos + 1] : g->done);
    ei(g, BR_X_MOVM32_I, pend, 0);
    es(g, BR_X_MOV32_S, x86_ctx_at(offsetof(x86_ctx, exec)), R13);
}

static void
tail(gen *g)
{
    br_x86_arg at = br_x86_mem(RBP, (int32_t)(4 * (g->n + g->pos)));

    ej(g, BR_X_JMP, g->term[g->pos]);
    br_x86_bind(g->a, g->tail[g->pos]);
    em(g, BR_X_MOV32, R13, at);
    ei(g, BR_X_MOVM32_I, at, 0);
    es(g, BR_X_MOV32_S, x86_ctx_at(offsetof(x86_ctx, exec)), R13);
    br_x86_bind(g->a, g->term[g->pos]);
}

void
x86_block_code(gen *g, uint32_t blk)
{
    const br_kblk *b = &g->f->blks.at[blk];

    head(g);
    for (size_t s = 0; s + 1 < b->ins.n; s++) {
        uint32_t id = b->ins.at[s];
        const br_kins *i = &g->f->ins.at[id];
        bool ok = true;

        if (i->op == BR_K_PHI || x86_is_preset(g->f, i))
            continue;
        if (!x86_select(g, i)) {
            flush(g);
            step(g, i);
        } else {
            if (g->here != g->region[id])
                flush(g);
            g->here = g->region[id];
            ok = !is_once(g, i)         ? br_vec_push(&g->list, id)
                 : x86_first(g, i->res) ? br_vec_push(&g->ones, id)
                                        : br_vec_push(&g->uni, id);
        }
        g->a->oom |= !ok;
    }
    flush(g);
    if (g->wide) {
        g->fn->region_at[g->fn->n_regions + g->pos] = (uint32_t)g->a->code.n;
        x86_wide_end(g, blk, &g->f->ins.at[b->ins.at[b->ins.n - 1]]);
        return;
    }
    if (g->tail[g->pos])
        tail(g);
    terminator(g, blk, &g->f->ins.at[b->ins.at[b->ins.n - 1]]);
}

/* ---- functions ------------------------------------------------------------ */

static void
keep_registers(gen *g, bool back)
{
    size_t at = offsetof(x86_ctx, save), masks = offsetof(x86_ctx, save_k);

    g->z = g->zmm;
    for (unsigned r = 0; r < (g->z ? VEC_REGS : 16u); r++)
        if (back)
            em(g, BR_X_MOVUPS_L, r, x86_ctx_at(at + 64 * r));
        else
            es(g, BR_X_MOVUPS_S, x86_ctx_at(at + 64 * r), r);
    for (unsigned k = 1; g->z && k < NREGS - MASK_REGS; k++)
        if (back)
            em(g, BR_X_KMOVQ, k, x86_ctx_at(masks + 8 * k));
        else
            es(g, BR_X_KMOVQ_S, x86_ctx_at(masks + 8 * k), k);
    g->z = false;
}

/* Saves the registers, lets C do the access, takes them back. esi: site. */
static void
memory_stub(gen *g, uint32_t label, bool parted)
{
    br_x86_bind(g->a, label);
    ei(g, BR_X_SUB64_I, br_x86_reg(RSP), 8);
    keep_registers(g, false);
    if (!parted) /* its warp is known */
        x86_wide_warp(g);
    br_x86_put(g->a, BR_X_ZEROUPPER, NULL);
    e2(g, BR_X_MOV64, RDI, RBX);
    e2(g, BR_X_MOV32, RDX, R15);
    br_x86_put(g->a, BR_X_CALL_M,
               (br_x86_arg[]){x86_ctx_at(offsetof(x86_ctx, memory))});
    keep_registers(g, true);
    ei(g, BR_X_ADD64_I, br_x86_reg(RSP), 8);
    e2(g, BR_X_TEST32, RAX, RAX);
    br_x86_put(g->a, BR_X_RET, NULL);
}

static void
slow_paths(gen *g)
{
    uint32_t stub[2] = {br_x86_label(g->a), br_x86_label(g->a)};

    for (size_t k = 0; k + 2 < g->slow.n; k += 3) {
        uint32_t site = g->slow.at[k + 1];

        br_x86_bind(g->a, g->slow.at[k]);
        ei(g, BR_X_MOV32_I, br_x86_reg(RSI), site & ~PARTED);
        ej(g, BR_X_CALL, stub[site & PARTED ? 1 : 0]);
        ej(g, BR_X_JE, g->slow.at[k + 2]);
        ej(g, BR_X_JMP, g->fault);
    }
    for (int parted = 0; parted < 2; parted++)
        if (g->slow.n && (!parted || g->meet))
            memory_stub(g, stub[parted], parted);
        else
            br_x86_bind(g->a, stub[parted]);
}

/* Out to C, which goes on with code for rows or blocks. */
static void
rows_paths(gen *g)
{
    for (size_t k = 0; k + 1 < g->rows.n; k += 2) {
        uint32_t region = g->rows.at[k + 1], parted = region & PARTED;

        br_x86_bind(g->a, g->rows.at[k]);
        if (g->wide && !parted)
            es(g, BR_X_MOV64_S, x86_ctx_at(offsetof(x86_ctx, seat)), RBP);
        ei(g, BR_X_MOVM32_I, x86_ctx_at(offsetof(x86_ctx, result)),
           region & ~PARTED);
        ei(g, BR_X_MOV32_I, br_x86_reg(RAX),
           parted                ? X86_PARTED
           : g->line || g->plane ? X86_BAIL
                                 : X86_ROWS);
        ej(g, BR_X_JMP, 0);
    }
}

static void
ending(gen *g)
{
    ej(g, BR_X_JMP, g->done);
    slow_paths(g);
    rows_paths(g);
    br_x86_bind(g->a, g->fault);
    ei(g, BR_X_MOV32_I, br_x86_reg(RAX), X86_FAULT);
    ej(g, BR_X_JMP, 0); /* label 0: the way out */
    br_x86_bind(g->a, g->done);
    e2(g, BR_X_XOR32, RAX, RAX);
    ej(g, BR_X_JMP, 0);
    g->fn->code_to = (uint32_t)g->a->code.n;
    for (size_t k = 0; k < g->const_label.n; k++) {
        br_x86_bind(g->a, g->const_label.at[k]);
        br_x86_bytes(g->a, &g->consts.at[k], 8);
    }
}

/* rdi ctx, rsi rows, rdx masks, rcx where to go */
void
x86_gen_entry(br_x86_asm *a)
{
    static const uint8_t saved[] = {RBX, RBP, R12, R13, R14, R15};
    static const uint8_t moves[][2] = {{RBX, RDI}, {R12, RSI}, {RBP, RDX}};
    gen g = {.a = a};
    uint32_t out = br_x86_label(a);

    for (int k = 0; k < 6; k++)
        br_x86_put(a, BR_X_PUSH, (br_x86_arg[]){br_x86_reg(saved[k])});
    ei(&g, BR_X_SUB64_I, br_x86_reg(RSP), 8);
    for (int k = 0; k < 3; k++)
        e2(&g, BR_X_MOV64, moves[k][0], moves[k][1]);
    em(&g, BR_X_MOV32, R13, x86_ctx_at(offsetof(x86_ctx, exec)));
    br_x86_put(a, BR_X_JMP_M, (br_x86_arg[]){br_x86_reg(RCX)});
    br_x86_bind(a, out);
    ei(&g, BR_X_ADD64_I, br_x86_reg(RSP), 8);
    for (int k = 5; k >= 0; k--)
        br_x86_put(a, BR_X_POP, (br_x86_arg[]){br_x86_reg(saved[k])});
    br_x86_put(a, BR_X_ZEROUPPER, NULL);
    br_x86_put(a, BR_X_RET, NULL);
}

static br_code
alloc(gen *g, const br_kfn *f, void **mem)
{
    size_t v = f->vals.n + 2, n = f->blks.n;
    uint32_t *w = br_try_calloc(2 * f->ins.n + f->args.n + v + 6 * n + 1, 4);
    uint8_t *b = br_try_calloc(7 * v + 2 * n + f->ins.n + 1, 1);

    mem[0] = w;
    mem[1] = b;
    if (!w || !b)
        return BR_E_OOM;
    g->region = w;
    g->next_use = w + f->ins.n;
    g->next = g->next_use + f->args.n;
    g->start = g->next + v;
    g->tail = g->start + n;
    g->term = g->tail + n;
    g->part_start = g->term + n;
    g->part_todo = g->part_start + n;
    if (g->fn->own->kind == X86_BLOCKS)
        g->meet = g->part_todo + n;
    g->site = g->part_todo + 2 * n;
    memset(g->next, 0xff, v * 4);
    g->spill = (uint16_t *)(void *)b;
    g->regs = b + 4 * v;
    g->masked = b + 6 * v;
    g->mixed = b + 7 * v;
    g->part = g->mixed + n;
    g->group_of = g->part + n;
    memset(g->regs, NO_REG, 2 * v);
    return BR_OK;
}

static void
blocks(gen *g)
{
    g->done = br_x86_label(g->a);
    g->fault = br_x86_label(g->a);
    for (uint32_t p = 0; p < g->n; p++) {
        g->start[p] = br_x86_label(g->a);
        if (!g->wide && waits(g, g->fn->order[p])) {
            g->tail[p] = br_x86_label(g->a);
            g->term[p] = br_x86_label(g->a);
        }
    }
    for (uint32_t p = 0; p < g->n; p++) {
        g->fn->at[p] = (uint32_t)g->a->code.n;
        g->pos = p;
        x86_block_code(g, g->fn->order[p]);
    }
    ending(g);
}

br_code
x86_gen_fn(br_x86_asm *a, const br_kir *m, x86_fn *fn, br_status *st)
{
    const br_kfn *f = fn->f;
    gen g = {.a = a,
             .m = m,
             .f = f,
             .fn = fn,
             .n = (uint32_t)f->blks.n,
             .zmm = fn->own->zmm,
             .wide = x86_wide(fn),
             .line = fn->own->kind == X86_LINES,
             .plane = fn->own->kind == X86_PLANES};
    void *mem[2];
    br_code code = alloc(&g, f, mem);

    fn->code_from = (uint32_t)a->code.n;
    if (code == BR_OK &&
        !br_kfn_uniform(f, false, fn->order, fn->place, fn->uniform, fn->step,
                        g.mixed, &fn->odd))
        code = BR_E_OOM;
    if (code == BR_OK && g.meet && !br_kfn_meet(f, g.meet))
        code = BR_E_OOM;
    /* One of each: pushes that find no memory then use the first. */
    if (code == BR_OK && (!list_presets(&g) || !br_vec_reserve(&fn->sites, 4)))
        code = BR_E_OOM;
    if (code == BR_OK) {
        find_rows(&g);
        fn->n_regions = g.n_regions + 1;
        if (fn->own->kind != X86_WARPS)
            fn->region_at = br_try_calloc(2 * (size_t)fn->n_regions, 4);
        if (fn->own->kind != X86_WARPS && !fn->region_at)
            code = BR_E_OOM;
    }
    if (code == BR_OK) {
        place_rows(&g);
        x86_stream_find(&g);
        if (g.line)
            x86_line_find(&g);
        if (g.plane)
            x86_plane_find(&g);
        blocks(&g);
        if (g.no_line)
            fn->n_looks = 0;
    }
    br_vec_fini(&g.consts);
    br_vec_fini(&g.const_label);
    br_vec_fini(&g.list);
    br_vec_fini(&g.rest);
    br_vec_fini(&g.uni);
    br_vec_fini(&g.ones);
    br_vec_fini(&g.slow);
    br_vec_fini(&g.rows);
    br_free(mem[0]);
    br_free(mem[1]);
    if (code == BR_OK && g.too_many)
        return br_fail(st, BR_E_LIMIT,
                       "line %u: %.*s needs more than %d places besides "
                       "registers at once, over what x86-64 code has",
                       f->line, (int)BR_MIN(f->name.n, (size_t)80), f->name.p,
                       MAX_SPILLS);
    return a->oom || code != BR_OK ? br_fail(st, BR_E_OOM, "out of memory")
                                   : BR_OK;
}
