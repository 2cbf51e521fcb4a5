/* x86_run.c - machine code of kernels at work: frames, steps, warps, blocks.
 *
 * Launches, blocks, warps, barriers and calls are the interpreter's (kinterp.c);
 * a frame whose function has code runs that instead. What the code leaves to C
 * is a step: arguments go from the rows to the interpreter's, the instruction is
 * done there, results come back. So there is nothing that only one of the two
 * can do, and a fault says the same words. Code is written, then made executable:
 * never both.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_int.h"

#include "cg/ktarget.h"

#include <string.h>

enum { MAX_BAILS = 16 }; /* then code for lines is not worth it */

/* ---- rows ----------------------------------------------------------------- */

uint64_t
x86_get_lane(const ki_frame *f, uint32_t v, unsigned lane)
{
    const uint8_t *p = f->slots + f->native->slot[v];
    unsigned cls = f->f->vals.at[v].cls;
    bool one = f->native->uniform[v];
    uint64_t x = 0;

    if (x86_even(f->native, v)) {
        unsigned bytes = cls == BR_KC_B64 ? 8 : 4;

        memcpy(&x, p + lane / X86_LANES * bytes, bytes);
        x += (uint64_t)(lane % X86_LANES * x86_step_by(f->native, v));
        return bytes == 4 ? (uint32_t)x : x;
    }

    if (cls == BR_KC_PRED) {
        memcpy(&x, p, 4);
        return one ? x & 1 : x >> lane & 1;
    }
    if (cls == BR_KC_B64)
        memcpy(&x, p + (one ? 0 : 8 * lane), 8);
    else
        memcpy(&x, p + (one ? 0 : 4 * lane), 4);
    return x;
}

void
x86_put_lane(ki_frame *f, uint32_t v, unsigned lane, uint64_t bits)
{
    uint8_t *p = f->slots + f->native->slot[v];
    unsigned cls = f->f->vals.at[v].cls;
    bool one = f->native->uniform[v];
    uint32_t w = (uint32_t)bits;

    if (cls == BR_KC_PRED && one) {
        w = (uint32_t) - (int32_t)w;
        memcpy(p, &w, 4);
    } else if (cls == BR_KC_PRED) {
        memcpy(&w, p, 4);
        w = (w & ~(1u << lane)) | (uint32_t)(bits & 1) << lane;
        memcpy(p, &w, 4);
    } else if (cls == BR_KC_B64) {
        memcpy(p + (one ? 0 : 8 * lane), &bits, 8);
    } else {
        memcpy(p + (one ? 0 : 4 * lane), &w, 4);
    }
}

void
x86_fetch(const ki_frame *f, const br_kins *i, uint32_t exec)
{
    for (unsigned a = 0; a < i->n_arg; a++) {
        uint32_t v = f->f->args.at[i->arg + a];

        if (f->f->vals.at[v].kind == BR_KV_INS)
            ki_each_lane(lane, exec) f->vals[v][lane] =
                x86_get_lane(f, v, lane);
    }
}

/* ---- frames --------------------------------------------------------------- */

static uint64_t
preset(ki_run *r, const ki_warp *w, const ki_frame *f, const br_kins *i,
       unsigned lane)
{
    if (i->op == BR_K_TOGEN || i->op == BR_K_FROMGEN)
        i = &f->f->ins.at[f->f->vals.at[f->f->args.at[i->arg]].def];
    if (i->op == BR_K_SREG)
        return ki_special(w, (br_ksreg)i->imm, lane);
    if (i->op == BR_K_LD)
        return ki_load(r->l->params +
                           f->f->vals.at[f->f->args.at[i->arg]].bits + i->imm,
                       br_ktinfo_of[i->type].bytes);
    return ki_address(r, f, i, 0);
}

static void
fill(ki_run *r, const ki_warp *w, ki_frame *f, uint32_t ins)
{
    const br_kins *i = &f->f->ins.at[ins];
    unsigned n = f->native->uniform[i->res] ? 1 : KI_LANES;

    if (f->native->slot[i->res] == X86_NO_SLOT)
        return;
    for (unsigned q = 0; x86_even(f->native, i->res) && q < X86_QUARTERS; q++) {
        uint32_t first = (uint32_t)preset(r, w, f, i, q * X86_LANES);

        memcpy(f->slots + f->native->slot[i->res] + 4 * q, &first, 4);
        n = 0;
    }
    for (unsigned lane = 0; lane < n; lane++)
        x86_put_lane(f, i->res, lane, preset(r, w, f, i, lane));
}

br_code
x86_frame(ki_run *r, ki_warp *w, ki_frame *f, uint32_t fn)
{
    const x86_fn *x = &r->native->fns[fn];
    uintptr_t at;

    if (!r->rows[fn])
        r->rows[fn] = ki_rows(f->f);
    f->vals = r->rows[fn];
    f->native = x;
    f->slots_alloc = br_try_calloc(x->frame_bytes + 64u, 1);
    if (!f->slots_alloc || !f->vals) {
        br_free(f->slots_alloc);
        return br_fail(r->st, BR_E_OOM, "kernel: out of memory");
    }
    at = (uintptr_t)f->slots_alloc;
    f->slots = (uint8_t *)f->slots_alloc + (63 & (64 - at % 64));
    for (size_t k = 0; k < x->presets.n; k++)
        fill(r, w, f, x->presets.at[k]);
    return BR_OK;
}

void
x86_again(const ki_warp *w, ki_frame *f)
{
    const struct br_x86 *x = w->b->r->native;
    const x86_fn *fn = &x->fns[w->b->r->l->fn];
    size_t n = f->native == fn ? fn->n_block_presets : fn->presets.n;

    f->native = fn;
    for (size_t k = 0; k < n; k++) {
        const br_kins *i = &f->f->ins.at[fn->presets.at[k]];

        if (k < fn->n_block_presets && fn->uniform[i->res] &&
            fn->slot[i->res] != X86_NO_SLOT)
            memcpy(f->slots + fn->slot[i->res],
                   &w->b->ctaid[i->imm - BR_KS_CTAID_X], 4);
        else
            fill(w->b->r, w, f, fn->presets.at[k]);
    }
}

/* ---- what code calls ------------------------------------------------------ */

static uint32_t
result_of(x86_ctx *c, br_code code)
{
    c->code = code;
    return code == BR_OK ? X86_ON : X86_FAULT;
}

static void
tell_left(x86_ctx *c)
{
    if (c->left)
        ki_end_lanes(c->warp, c->left);
    c->left = 0;
}

static uint32_t
x86_step(x86_ctx *c, uint32_t site, uint32_t exec)
{
    const x86_site *s = &c->fn->sites.at[site];
    ki_frame *f = ki_top(c->warp);
    const br_kins *i = &f->f->ins.at[s->ins];
    size_t depth = c->warp->frames.n;
    unsigned first = (unsigned)__builtin_ctz(exec);
    br_code code;

    tell_left(c);
    c->run->w = c->warp;
    c->run->pos = s->pos;
    if ((i->op == BR_K_SHFL && x86_shuffle(f, i, exec)) ||
        x86_rows(f, i, exec, s->uniform) || x86_atomic(c, site, f, i, exec))
        return X86_ON;
    if (i->op == BR_K_BAR) {
        x86_fetch(f, i, exec);
        ki_barrier(c->run, c->warp, i, exec);
        /* All that are left wait: there is nothing else to run. */
        return depth == 1 && exec == c->warp->live ? X86_CALLED : X86_ON;
    }
    if (s->uniform && !(br_kopinfo_of[i->op].props & BR_KP_CONV))
        exec = 1u << first;
    x86_fetch(f, i, exec);
    code = ki_step(c->run, c->warp, i, exec);
    if (code != BR_OK)
        return result_of(c, code);
    if (c->run->gives_way && c->fuel) { /* the next jump back ends the turn */
        c->rest = c->fuel;
        c->fuel = 0;
    }
    if (c->warp->frames.n > depth)
        return X86_CALLED;
    f = ki_top(c->warp);
    for (unsigned r = 0; r < i->n_res && i->op != BR_K_BARRED; r++) {
        if (s->uniform)
            x86_put_lane(f, i->res + r, first, f->vals[i->res + r][first]);
        else if (f->native->slot[i->res + r] != X86_NO_SLOT)
            ki_each_lane(lane, exec)
                x86_put_lane(f, i->res + r, lane, f->vals[i->res + r][lane]);
    }
    return X86_ON;
}

static uint32_t
x86_leave(x86_ctx *c, uint32_t site, uint32_t exec)
{
    const ki_frame *f = ki_top(c->warp);

    c->run->ins = &f->f->ins.at[c->fn->sites.at[site].ins];
    c->run->lane = (unsigned)__builtin_ctz(exec);
    return result_of(c, ki_leave(c->run, c->warp, c->run->ins, exec));
}

/* Lanes that go to target number c->result. */
static uint32_t
x86_choose(x86_ctx *c, uint32_t site, uint32_t exec)
{
    const ki_frame *f = ki_top(c->warp);
    const x86_site *s = &c->fn->sites.at[site];
    const br_kins *i = &f->f->ins.at[s->ins];
    size_t n = f->f->blks.at[c->fn->order[s->pos]].succ.n;

    c->edge = 0;
    c->run->ins = i;
    x86_fetch(f, i, exec);
    ki_each_lane(lane, exec)
    {
        uint64_t v = ki_arg(f, i, 0)[lane];

        c->run->lane = lane;
        if (v >= n)
            return result_of(
                c,
                ki_fault(c->run, "a jump beyond its table of %zu targets", n));
        c->edge |= (uint32_t)(v == c->result) << lane;
    }
    return X86_ON;
}

static void
remember(x86_ctx *c, const br_kins *i, uint32_t site, unsigned bytes)
{
    const br_kregion *g = c->run->last < c->run->regions.n
                              ? &c->run->regions.at[c->run->last]
                              : NULL;
    unsigned lanes = c->fn->own->zmm ? X86_MOST : X86_LANES;
    unsigned span = bytes * (c->fn->sites.at[site].uniform ? 1 : lanes);
    unsigned space = br_kmod(i->mods, BR_KF_SPACE);
    x86_window *w = &c->windows[site];

    if (space == BR_KM_SPACE_SHARED || space == BR_KM_SPACE_LOCAL || !g)
        return;
    w->any_lo = g->addr;
    w->any_bytes = g->bytes;
    w->any_host = (uint64_t)(uintptr_t)g->host - g->addr;
    if (g->bytes < span)
        return;
    w->lo = g->addr;
    w->size = g->bytes - span + 1;
    w->host = w->any_host;
}

static uint8_t *
place_of(x86_ctx *c, const br_kins *i, uint32_t site, uint64_t addr)
{
    bool load = i->op == BR_K_LD;
    unsigned n = load ? i->n_res : i->n_arg - 1u;
    unsigned bytes = n * br_ktinfo_of[i->type].bytes;
    unsigned space = br_kmod(i->mods, BR_KF_SPACE);
    const x86_window *w = &c->windows[site];
    uint8_t *p;

    if (addr % bytes == 0 && bytes <= w->any_bytes &&
        addr - w->any_lo <= w->any_bytes - bytes)
        return (uint8_t *)(uintptr_t)(w->any_host + addr);
    p = ki_at(c->run, c->warp, space, addr, bytes, load ? KI_READ : KI_WRITE);
    if (p && (space != 0 || addr < KI_CODE))
        remember(c, i, site, bytes);
    return p;
}

static uint32_t
x86_memory(x86_ctx *c, uint32_t site, uint32_t quarter)
{
    const x86_site *s = &c->fn->sites.at[site];
    const br_kins *i = &c->fn->f->ins.at[s->ins];
    bool load = i->op == BR_K_LD;
    unsigned n = load ? i->n_res : i->n_arg - 1u, parts = s->uniform ? 1 : 2;
    unsigned size = br_ktinfo_of[i->type].bytes, wide = size == 8 ? parts : 1;
    unsigned from =
        s->uniform ? (unsigned)__builtin_ctz(c->exec) : quarter * X86_LANES;
    unsigned per = c->fn->own->zmm ? X86_MOST / 2 : X86_LANES / 2;
    uint32_t exec = s->uniform ? 1 : c->exec >> from & ((1u << 2 * per) - 1);

    c->run->w = c->warp;
    c->run->ins = i;
    c->run->pos = s->pos;
    if (x86_narrow(c, site, i, exec))
        return X86_ON;
    ki_each_lane(k, exec)
    {
        uint64_t addr = c->save[s->reg[k / per]][k % per] + (uint64_t)i->imm;
        uint8_t *p;

        c->run->lane = from + k;
        p = place_of(c, i, site, addr);
        if (!p)
            return result_of(c, BR_E_FAULT);
        for (unsigned e = 0; e < n; e++) {
            const uint8_t *rg = s->reg + parts + wide * e;
            uint8_t *v = size == 8 ? (uint8_t *)&c->save[rg[k / per]][k % per]
                                   : (uint8_t *)c->save[rg[0]] + 4 * k;
            size_t bytes = size == 8 ? 8 : 4;
            uint32_t x = 0;

            if (!load) {
                memcpy(p + e * size, v, size);
            } else if (size == 8) {
                memcpy(v, p + e * size, 8);
            } else {
                memcpy(&x, p + e * size, size);
                if (i->type == BR_KT_S8)
                    x = (uint16_t)(int8_t)x;
                memcpy(v, &x, 4);
            }
            /* Of a uniform load, all of the register. */
            for (size_t at = bytes; load && s->uniform && at < 32; at += bytes)
                memcpy(v + at, v, bytes);
        }
    }
    return X86_ON;
}

void
x86_calls(x86_ctx *c)
{
    c->step = x86_step;
    c->leave = x86_leave;
    c->choose = x86_choose;
    c->memory = x86_memory;
    c->locate = x86_locate;
}

/* ---- warps ---------------------------------------------------------------- */

/* First lanes become rows: from here on the frame is run by code for rows. */
static br_code
to_rows(ki_run *r, ki_frame *f)
{
    const x86_fn *x = f->native, *to;

    BR_TRY(x86_rows_code(r->native, r->st));
    to = &r->native->more->rows->fns[x - r->native->fns];
    for (uint32_t v = 0; v < f->f->vals.n; v++) {
        uint64_t row[KI_LANES];

        if (!x86_even(x, v) || x->slot[v] == X86_NO_SLOT)
            continue;
        for (unsigned lane = 0; lane < KI_LANES; lane++)
            row[lane] = x86_get_lane(f, v, lane);
        f->native = to;
        for (unsigned lane = 0; lane < KI_LANES; lane++)
            x86_put_lane(f, v, lane, row[lane]);
        f->native = x;
    }
    f->native = to;
    return BR_OK;
}

/* Lanes spin while others of theirs could go on: the frame is interpreted from
 * here on, where each lane has its own of everything and turns are fair. */
static br_code
to_lanes(ki_run *r, ki_frame *f)
{
    ki_row *vals = ki_rows(f->f);

    if (!vals)
        return br_fail(r->st, BR_E_OOM, "kernel: out of memory");
    for (uint32_t v = 0; v < f->f->vals.n; v++)
        for (unsigned lane = 0;
             f->f->vals.at[v].kind == BR_KV_INS &&
             f->native->slot[v] != X86_NO_SLOT && lane < KI_LANES;
             lane++)
            vals[v][lane] = x86_get_lane(f, v, lane);
    br_free(f->slots_alloc);
    f->slots_alloc = NULL;
    f->slots = NULL;
    f->native = NULL;
    f->vals = vals;
    return BR_OK;
}

static bool
starves(ki_frame *f, bool ended, uint32_t jumps)
{
    uint32_t some = 0;

    f->starved = ended ? 0 : f->starved + jumps;
    if (f->starved < KI_STARVED * X86_FUEL || !f->k->waits)
        return false;
    for (uint32_t p = 0; p < f->f->blks.n; p++)
        some += (f->pend[p] | f->tail[p]) != 0;
    return some > 1;
}

typedef uint32_t (*entry_fn)(x86_ctx *c, uint8_t *rows, uint32_t *masks,
                             const uint8_t *to);

static br_code
use_fn(ki_run *r, const x86_fn *x)
{
    x86_ctx *c = r->ctx;
    size_t fn = (size_t)(x - x->own->fns) + x->own->kind * r->m->fns.n;

    c->fn = x;
    if (!c->tables[fn])
        c->tables[fn] = br_try_calloc(x->sites.n + 1, sizeof(x86_window));
    c->windows = c->tables[fn];
    return c->windows ? BR_OK
                      : br_fail(r->st, BR_E_OOM, "kernel: out of memory");
}

static uint32_t
run_code(x86_ctx *c, const x86_fn *x, uint8_t *rows, uint32_t *masks,
         uint32_t at)
{
    union { /* data becomes code */
        const uint8_t *data;
        entry_fn code;
    } u = {.data = x->own->code};

    return u.code(c, rows, masks, u.data + at);
}

/* A warp from some place in its code on, with ctx.exec. */
static br_code
resume(ki_run *r, ki_warp *w, uint32_t to)
{
    x86_ctx *c = r->ctx;
    ki_frame *f = ki_top(w);
    uint32_t was, jumps, depth = (uint32_t)w->frames.n - 1;

    r->w = c->warp = w;
    c->fuel = X86_FUEL;
    c->rest = 0;
    c->shared = w->b->shared;
    c->shared_bytes = w->b->shared_bytes;
    for (;;) {
        if (c->fn != f->native)
            BR_TRY(use_fn(r, f->native));
        was = run_code(c, f->native, f->slots, f->pend, to);
        if (was != X86_ROWS)
            break;
        BR_TRY(to_rows(r, f));
        to = f->native->region_at[c->result];
    }
    tell_left(c);
    /* The code ends where nothing is pending, or without fuel. */
    f = &w->frames.at[depth];
    f->low = c->fuel > X86_FUEL ? 0 : (uint32_t)f->f->blks.n;
    jumps = X86_FUEL + 1 -
            (r->gives_way         ? c->rest
             : c->fuel > X86_FUEL ? 0
                                  : c->fuel);
    if (was == X86_ON && starves(f, c->fuel <= X86_FUEL, jumps))
        BR_TRY(to_lanes(r, f));
    w->steps += jumps;
    return was == X86_FAULT ? c->code : BR_OK;
}

br_code
x86_enter(ki_run *r, ki_warp *w, uint32_t pos)
{
    return resume(r, w, ki_top(w)->native->at[pos]);
}

/* ---- blocks --------------------------------------------------------------- */

/* A value of warp `at` does not go evenly: warps before it are done with the
 * region, it and those after it are not. */
static br_code
part_as_rows(ki_run *r, ki_block *b, uint32_t at)
{
    uint32_t region = r->ctx->result;

    for (uint32_t k = 0; k < b->n_warps; k++) {
        ki_frame *f = ki_top(&b->warps[k]);
        const x86_fn *x;

        BR_TRY(to_rows(r, f));
        x = f->native;
        r->ctx->exec = UINT32_MAX;
        BR_TRY(resume(r, &b->warps[k],
                      x->region_at[region + (k < at ? x->n_regions : 0)]));
    }
    return BR_OK;
}

/* The same where warps had parted: only that warp is in a region. */
static br_code
parted_as_rows(ki_run *r, ki_block *b, uint32_t at)
{
    uint32_t region = r->ctx->result;

    for (uint32_t k = 0; k < b->n_warps; k++)
        BR_TRY(to_rows(r, ki_top(&b->warps[k])));
    return resume(r, &b->warps[at],
                  ki_top(&b->warps[at])->native->region_at[region]);
}

static void
end_warps(ki_block *b)
{
    for (uint32_t k = 0; k < b->n_warps; k++) {
        b->warps[k].live = 0;
        ki_top(&b->warps[k])->mask = 0;
        ki_top(&b->warps[k])->low = (uint32_t)ki_top(&b->warps[k])->f->blks.n;
    }
    b->n_done = b->n_threads;
}

/* The next warp whose numbers code asks for: of lines the first alone does, of
 * planes three. Frames of all warps are more than the first cache holds. */
static uint32_t
seat_after(const ki_run *r, const ki_block *b, bool first, uint32_t k)
{
    if (first && r->wide->own->kind == X86_LINES)
        return b->n_warps;
    return first && k == 1 ? BR_MAX(b->n_warps - 1, 2) : k + 1;
}

/* The block's numbers in the rows of warps that have not begun. */
static void
place_warps(ki_run *r, const ki_block *b)
{
    const x86_fn *fn = &r->native->fns[r->l->fn];
    const x86_seat *s = r->ctx->seats;

    for (size_t p = 0; p < fn->n_block_presets; p++) {
        uint32_t ins = fn->presets.at[p];
        const br_kins *i = &fn->f->ins.at[ins];
        const uint32_t *id = &b->ctaid[i->imm - BR_KS_CTAID_X];
        bool first = r->wide->own->kind != X86_BLOCKS &&
                     r->wide->line[i->res] & X86_FIRST;

        for (uint32_t k = 0; k < b->n_warps; k = seat_after(r, b, first, k))
            if (!fn->uniform[i->res])
                fill(r, s[k].warp, ki_top(s[k].warp), ins);
            else if (fn->slot[i->res] != X86_NO_SLOT)
                memcpy(s[k].rows + fn->slot[i->res], id, 4);
    }
}

/* Code for lines or planes left a block that did not end: where it bailed out, code for
 * blocks goes on. */
static br_code
leave_line(ki_run *r, ki_block *b, uint32_t *was)
{
    const x86_fn *line = r->wide, *wide;
    x86_ctx *c = r->ctx;

    (line->own->kind == X86_LINES ? x86_spread : x86_plane_spread)(
        line, c->seats, b->n_warps);
    if (*was != X86_BAIL)
        return BR_OK;
    BR_TRY(x86_wide_code(r->native, X86_BLOCKS, r->l->fn, &wide, r->st));
    BR_TRY(use_fn(r, wide));
    *was = run_code(c, wide, NULL, NULL, wide->region_at[c->result]);
    if (++c->bails == MAX_BAILS)
        r->wide = wide;
    return BR_OK;
}

/* Blocks after this one that code may go on with by itself: of those taken, in
 * the same row of blocks, if nothing else has to be made new. */
static uint32_t
blocks_after(const ki_run *r, const ki_block *b)
{
    const uint32_t *g = r->l->grid;
    uint64_t all = (uint64_t)g[0] * g[1] * g[2];
    uint64_t end = BR_MIN(r->mine_end, all);

    if (b->warps[0].local_bytes || (b->shared_bytes && !r->no_shared) ||
        r->mine >= end)
        return 0;
    return (uint32_t)BR_MIN(end - r->mine, (uint64_t)(g[0] - b->ctaid[0] - 1));
}

static uint32_t
run_block(ki_run *r, ki_block *b)
{
    x86_ctx *c = r->ctx;
    uint32_t was, left, n = blocks_after(r, b);

    c->fuel = X86_FUEL;
    c->again = n;
    c->ctaid_x = &b->ctaid[0];
    was = run_code(c, r->wide, NULL, NULL, r->wide->at[0]);
    left = c->again > n ? 0 : c->again; /* counted down to -1 */
    r->mine += n - left;
    b->number += n - left;
    r->l->steps += (uint64_t)(n - left) * b->n_warps;
    return was;
}

/* Again while blocks end, as their warps then are as if they had not begun. */
static br_code
run_blocks(ki_run *r, ki_block *b, uint32_t *was, bool *more)
{
    x86_ctx *c = r->ctx;

    for (;;) {
        if (c->fn != r->wide)
            BR_TRY(use_fn(r, r->wide));
        *was = run_block(r, b);
        if (*was == X86_ENDED)
            c->bails = 0;
        else if (r->wide->own->kind != X86_BLOCKS)
            BR_TRY(leave_line(r, b, was));
        r->l->steps += (uint64_t)(X86_FUEL - (int32_t)c->fuel) * b->n_warps + 1;
        if (*was != X86_ENDED || b->warps[0].local_bytes)
            return BR_OK;
        *more = ki_next_block(b);
        if (!*more)
            return BR_OK;
        place_warps(r, b);
    }
}

br_code
x86_block(ki_run *r, ki_block *b, bool *more)
{
    x86_ctx *c = r->ctx;
    uint32_t was;

    for (uint32_t k = 0; k < b->n_warps; k++) {
        ki_frame *f = ki_top(&b->warps[k]);

        c->seats[k] = (x86_seat){f->slots, f->pend, &b->warps[k]};
        f->pend[f->k->place[0]] = 0;
    }
    c->seats_end = c->seats + b->n_warps;
    c->last_seat = c->seats_end - 1;
    c->warp_steps = b->n_warps - 1;
    c->exec = UINT32_MAX;
    c->shared = b->shared;
    c->shared_bytes = b->shared_bytes;
    BR_TRY(run_blocks(r, b, &was, more));
    if (was == X86_FAULT)
        return c->code;
    if (was == X86_ROWS)
        return part_as_rows(r, b, (uint32_t)(c->seat - c->seats));
    if (was == X86_PARTED)
        return parted_as_rows(r, b, (uint32_t)(c->seat - c->seats));
    if (was == X86_ENDED)
        end_warps(b);
    for (uint32_t k = 0; was == X86_LEFT && k < b->n_warps; k++)
        c->seats[k].masks[c->result] = UINT32_MAX;
    return BR_OK;
}
