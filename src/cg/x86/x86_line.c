/* x86_line.c - code for blocks in one dimension: what goes evenly from thread to
 * thread through the whole block is done once, not for each warp.
 *
 *   for each region:  for each warp: what is uniform in it alone
 *                     once:          indices and addresses, as of thread 0
 *                     once:          `i < n` for the first thread and the last;
 *                                    first and last byte of each access: inside?
 *                     for each warp, its quarters: loads, arithmetic, stores at
 *                                    [where thread 0's is + bytes so far]
 *
 * A value is on a line if it is the same for all threads of the block, or that of
 * thread t is that of thread 0 plus t times a power of two. One that only other
 * such values, comparisons and accesses read is made for the first warp alone.
 * Where threads do not agree, or memory ends between them, nothing has happened
 * yet in the region: the first warp's values are spread to the others, and code
 * for blocks (x86_wide.c) goes on from there, with the same frames, to the
 * block's end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_gen.h"

#include <string.h>

enum { FAR = 1 << 24 }; /* displacements from an address */
enum {
    MAX_SCALED = 5
}; /* steps up to 16 bytes: an address's scale says them */
enum { MAX_THROUGH = 32 }; /* instructions that are written four times */

/* ---- which values --------------------------------------------------------- */

static bool
has(const gen *g, uint32_t v, unsigned flag)
{
    return is_const(g, v) || g->fn->line[v] & flag;
}

static bool
steps(const gen *g, uint32_t v)
{
    return !is_const(g, v) && x86_even(g->fn, v) && x86_step_by(g->fn, v) > 0;
}

static bool
same(const gen *g, uint32_t v)
{
    return is_const(g, v) || g->fn->uniform[v] || g->fn->step[v] == 0;
}

/* Of first and last thread it says what all others' is, if both are alike. */
static bool
comparison(const gen *g, const br_kins *i)
{
    const br_ktinfo *t = &br_ktinfo_of[i->type];
    unsigned cmp = br_kmod(i->mods, BR_KF_CMP);
    uint32_t a, b;

    if (i->op != BR_K_SETP || i->n_res != 1 || i->n_arg != 2 ||
        (t->kind != 'S' && t->kind != 'U') || t->lanes != 1 ||
        (t->cls != BR_KC_B32 && t->cls != BR_KC_B64) || is_once(g, i) ||
        g->fn->slot[i->res] == X86_NO_SLOT ||
        (cmp != BR_KM_CMP_LT && cmp != BR_KM_CMP_LE && cmp != BR_KM_CMP_GT &&
         cmp != BR_KM_CMP_GE))
        return false;
    a = arg_of(g, i, 0);
    b = arg_of(g, i, 1);
    return (steps(g, a) && same(g, b)) || (same(g, a) && steps(g, b));
}

static bool
access_on_line(const gen *g, const br_kins *i)
{
    uint32_t v;
    unsigned bytes;
    int64_t by;

    if ((i->op != BR_K_LD && i->op != BR_K_ST) || is_once(g, i) ||
        br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_LOCAL || !x86_select(g, i))
        return false;
    v = arg_of(g, i, 0);
    bytes = x86_access(i);
    if (is_const(g, v) || !has(g, v, X86_LINE) ||
        g->fn->step[v] == BR_KSTEP_NONE || i->imm < -FAR || i->imm > FAR ||
        i->imm % (int64_t)bytes)
        return false;
    by = x86_step_by(g->fn, v);
    return by == 0 ? i->op == BR_K_LD && i->n_res == 1
                   : by == bytes || x86_strides(i, by);
}

static bool
on_line(const gen *g, const br_kins *i)
{
    bool ok;

    if (x86_is_preset(g->f, i))
        return i->op == BR_K_SREG ? i->imm <= BR_KS_NCTAID_Z
                                  : i->op != BR_K_FRAME;
    if (i->op == BR_K_PHI)
        ok = is_once(g, i);
    else if (comparison(g, i))
        ok = true;
    else
        ok = (i->op == BR_K_LD || br_kopinfo_of[i->op].props & BR_KP_PURE) &&
             is_once(g, i) && x86_select(g, i);
    for (unsigned a = 0; ok && a < i->n_arg; a++)
        ok = has(g, arg_of(g, i, a), X86_LINE);
    return ok;
}

/* Whether argument a has to be there for thread 0 alone. */
static bool
asks_first(const gen *g, const br_kins *i, unsigned a)
{
    return x86_is_preset(g->f, i) || i->op == BR_K_CBR ||
           (i->n_res && has(g, i->res, X86_FIRST)) ||
           (a == 0 && access_on_line(g, i));
}

/* What an instruction reads has to be there for all warps, unless it asks for the
 * first's alone. Whether that is new of any. */
bool
x86_take_firsts(gen *g, const br_kins *i, x86_asks *asks)
{
    uint8_t *line = g->fn->line;
    bool change = false;

    for (unsigned a = 0; a < i->n_arg; a++) {
        uint32_t v = arg_of(g, i, a);

        if (is_const(g, v) || !(line[v] & X86_FIRST) || asks(g, i, a))
            continue;
        line[v] &= (uint8_t)~X86_FIRST;
        change = true;
    }
    return change;
}

static bool
look_at(gen *g, const br_kins *i)
{
    uint8_t *line = g->fn->line, keep = X86_LINE | X86_FIRST;
    bool change = false;

    if (i->n_res && line[i->res] & X86_LINE && !on_line(g, i))
        keep = 0;
    for (unsigned r = 0; r < i->n_res; r++) /* all of them, or none */
        keep &= line[i->res + r];
    if (comparison(g, i) && !(keep & X86_FIRST))
        keep = 0;
    for (unsigned r = 0; r < i->n_res; r++) {
        change |= line[i->res + r] != keep;
        line[i->res + r] = keep;
    }
    return x86_take_firsts(g, i, asks_first) || change;
}

/* From the best guess down, as in kir_uniform.c. */
void
x86_find(gen *g, uint8_t best, x86_sort_fn *sort, x86_look_fn *look)
{
    const br_kfn *f = g->f;
    bool change = true;

    for (size_t v = 0; v < f->vals.n; v++)
        g->fn->line[v] =
            f->vals.at[v].kind == BR_KV_INS ? best | X86_FIRST : best;
    while (change) {
        change = false;
        for (uint32_t p = 0; p < g->n; p++) {
            const br_kblk *b = &f->blks.at[g->fn->order[p]];

            if (sort)
                sort(g, b);
            for (size_t s = 0; s < b->ins.n; s++)
                change |= look(g, &f->ins.at[b->ins.at[s]]);
        }
    }
}

void
x86_line_find(gen *g)
{
    x86_find(g, X86_LINE, NULL, look_at);
}

bool
x86_first(const gen *g, uint32_t v)
{
    return (g->line || g->plane) && !is_const(g, v) &&
           g->fn->line[v] & X86_FIRST;
}

/* ---- comparisons ---------------------------------------------------------- */

static void
first_warp(gen *g)
{
    em(g, BR_X_MOV64, RBP, x86_ctx_at(offsetof(x86_ctx, seats)));
    em(g, BR_X_MOV64, R12, br_x86_mem(RBP, offsetof(x86_seat, rows)));
}

/* As of thread 0. */
static void
scalar(gen *g, uint32_t v, unsigned to)
{
    bool wide = cls_of(g, v) == BR_KC_B64;

    if (is_const(g, v))
        ei(g, BR_X_MOV64_I, br_x86_reg(to), (int64_t)g->f->vals.at[v].bits);
    else
        em(g, wide ? BR_X_MOV64 : BR_X_MOV32, to,
           br_x86_mem(R12, (int32_t)g->fn->slot[v]));
}

static br_x86_arg
reach(const gen *g, uint32_t v)
{
    return x86_ctx_at(offsetof(x86_ctx, reach) + 8 * (size_t)g->fn->step[v]);
}

/* rax, rcx: of the first thread and the last; rdx: what both are held against.
 * To bail where the numbers run over between, or the two do not agree. */
static void
compare(gen *g, const br_kins *i, uint32_t bail)
{
    unsigned cmp = br_kmod(i->mods, BR_KF_CMP);
    bool second = !steps(g, arg_of(g, i, 0));
    bool below = (cmp == BR_KM_CMP_LT || cmp == BR_KM_CMP_GE) != second;
    bool not = cmp == BR_KM_CMP_LE || cmp == BR_KM_CMP_GE;
    bool is_signed = br_ktinfo_of[i->type].kind == 'S';
    bool wide = br_ktinfo_of[i->type].cls == BR_KC_B64;
    br_x86_op op = wide ? BR_X_CMP64 : BR_X_CMP32;
    br_x86_op hit =
        is_signed ? (below ? BR_X_JL : BR_X_JG) : (below ? BR_X_JB : BR_X_JA);
    uint32_t v = arg_of(g, i, second), done = br_x86_label(g->a);

    scalar(g, v, RAX);
    scalar(g, arg_of(g, i, !second), RDX);
    e2(g, wide ? BR_X_MOV64 : BR_X_MOV32, RCX, RAX);
    em(g, wide ? BR_X_ADD64 : BR_X_ADD32, RCX, reach(g, v));
    ej(g, is_signed ? BR_X_JO : BR_X_JB, bail);
    ei(g, BR_X_MOV32_I, br_x86_reg(RSI), not ? 0 : -1);
    e2(g, op, below ? RCX : RAX, RDX); /* the one that is last to */
    ej(g, hit, done);
    e2(g, op, below ? RAX : RCX, RDX);
    ej(g, hit, bail);
    ei(g, BR_X_MOV32_I, br_x86_reg(RSI), not ? -1 : 0);
    br_x86_bind(g->a, done);
    es(g, BR_X_MOV32_S, br_x86_mem(R12, (int32_t)g->fn->slot[i->res]), RSI);
}

/* ---- accesses ------------------------------------------------------------- */

static const uint8_t keepers[] = {RSI, RDI, R8, R9, R10, R11};

static bool
in_register(const gen *g, unsigned k)
{
    return g->kept && k < BR_COUNT(keepers);
}

static br_x86_arg
host_at(unsigned k)
{
    return x86_ctx_at(offsetof(x86_ctx, hosts) + 8 * (size_t)k);
}

/* A window of its own: nobody else finds what it has to hold. */
static uint32_t
new_site(gen *g, const br_kins *i)
{
    x86_site s = {.ins = (uint32_t)(i - g->f->ins.at), .pos = g->pos};

    if (!br_vec_push(&g->fn->sites, s)) {
        g->a->oom = true;
        return 0;
    }
    return (uint32_t)g->fn->sites.n - 1;
}

void
x86_line_join(gen *g, uint32_t id, int32_t reach)
{
    const br_kins *i = &g->f->ins.at[id];
    uint32_t v = arg_of(g, i, 0), bytes = x86_access(i);
    bool shared = br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_SHARED;
    int32_t from = (int32_t)i->imm + BR_MIN(reach, 0);
    int32_t to = (int32_t)(i->imm + bytes) + BR_MAX(reach, 0);
    unsigned k = 0;

    while (k < g->n_groups &&
           (g->group[k].addr != v || g->group[k].shared != shared))
        k++;
    if (k == X86_GROUPS) { /* code for blocks is as good */
        g->fn->n_looks = 0;
        g->no_line = true;
        return;
    }
    if (k == g->n_groups) {
        g->n_groups++;
        g->group[k].addr = v;
        g->group[k].site = new_site(g, i);
        g->group[k].shared = shared;
        g->group[k].align = 0;
        g->group[k].from = from;
        g->group[k].to = to;
    }
    if (i->op == BR_K_ST) /* what may be read is not enough */
        g->fn->sites.at[g->group[k].site].ins = id;
    g->group[k].align = BR_MAX(g->group[k].align, bytes);
    g->group[k].from = BR_MIN(g->group[k].from, from);
    g->group[k].to = BR_MAX(g->group[k].to, to);
    g->group_of[id] = (uint8_t)(k + 1);
    g->fn->n_looks++;
}

/* rax: thread 0's address; rcx: where the last place to begin is, r14: where
 * this is, both from the memory's start. Unsigned, so what lies before is far
 * behind. */
static void
look(gen *g, unsigned k, uint32_t miss, uint32_t bail)
{
    uint32_t v = g->group[k].addr;
    int32_t at = (int32_t)(g->group[k].site * sizeof(x86_window));
    bool shared = g->group[k].shared, down = x86_step_by(g->fn, v) < 0;

    em(g, BR_X_MOV64, RAX, br_x86_mem(R12, (int32_t)g->fn->slot[v]));
    if (g->group[k].align > 1) {
        ei(g, BR_X_TEST32_I, br_x86_reg(RAX), g->group[k].align - 1);
        ej(g, BR_X_JNE, bail);
    }
    em(g, BR_X_MOV64, RDX, x86_ctx_at(offsetof(x86_ctx, windows)));
    em(g, BR_X_MOV64, RCX,
       shared ? x86_ctx_at(offsetof(x86_ctx, shared_bytes))
              : br_x86_mem(RDX, at + 8));
    em(g, down ? BR_X_ADD64 : BR_X_SUB64, RCX, reach(g, v));
    ei(g, BR_X_SUB64_I, br_x86_reg(RCX), g->group[k].to - g->group[k].from);
    ej(g, BR_X_JS, shared ? bail : miss);
    e2(g, BR_X_MOV64, R14, RAX);
    if (!shared)
        em(g, BR_X_SUB64, R14, br_x86_mem(RDX, at));
    if (g->group[k].from)
        ei(g, BR_X_ADD64_I, br_x86_reg(R14), g->group[k].from);
    if (down)
        em(g, BR_X_ADD64, R14, reach(g, v));
    e2(g, BR_X_CMP64, R14, RCX);
    ej(g, BR_X_JA, shared ? bail : miss);
    em(g, BR_X_ADD64, RAX,
       shared ? x86_ctx_at(offsetof(x86_ctx, shared))
              : br_x86_mem(RDX, at + 16));
    if (in_register(g, k))
        e2(g, BR_X_MOV64, keepers[k], RAX);
    else
        es(g, BR_X_MOV64_S, host_at(k), RAX);
}

void
x86_looks(gen *g, x86_look *at, uint32_t bail)
{
    uint32_t miss[X86_GROUPS], again = br_x86_label(g->a);
    uint32_t ask = br_x86_label(g->a), ready = br_x86_label(g->a);

    br_x86_bind(g->a, again);
    for (unsigned k = 0; k < g->n_groups; k++) {
        miss[k] = br_x86_label(g->a);
        at(g, k, miss[k], bail);
    }
    ej(g, BR_X_JMP, ready);
    for (unsigned k = 0; k < g->n_groups; k++) {
        br_x86_bind(g->a, miss[k]);
        ei(g, BR_X_MOV32_I, br_x86_reg(RSI), g->group[k].site);
        em(g, BR_X_MOV64, RDX,
           br_x86_mem(R12, (int32_t)g->fn->slot[g->group[k].addr]));
        ej(g, BR_X_JMP, ask);
    }
    br_x86_bind(g->a, ask);
    br_x86_put(g->a, BR_X_ZEROUPPER, NULL);
    e2(g, BR_X_MOV64, RDI, RBX);
    br_x86_put(g->a, BR_X_CALL_M,
               (br_x86_arg[]){x86_ctx_at(offsetof(x86_ctx, locate))});
    e2(g, BR_X_TEST32, RAX, RAX);
    ej(g, BR_X_JE, again);
    ej(g, BR_X_JMP, bail);
    br_x86_bind(g->a, ready);
}

/* Where the quarter's lanes have theirs, but for the instruction's own
 * displacement. r14 counts 4 bytes a lane, r15 an eighth; straight through the
 * block, r14 counts 2. */
br_x86_arg
x86_line_at(gen *g, unsigned k)
{
    unsigned base = in_register(g, k) ? keepers[k] : RCX;
    unsigned step = g->fn->step[g->group[k].addr];
    int64_t by = x86_step_by(g->fn, g->group[k].addr);

    if (base == RCX)
        em(g, BR_X_MOV64, RCX, host_at(k));
    if (step > MAX_SCALED) { /* rax is free */
        br_x86_put(
            g->a, BR_X_IMUL64_I,
            (br_x86_arg[]){br_x86_reg(RAX), br_x86_reg(g->through ? R14 : R15),
                           br_x86_imm(g->through ? by / 2 : X86_LANES * by)});
        return br_x86_memx(base, RAX, 1,
                           g->through ? g->quarter * X86_LANES * (int32_t)by
                                      : 0);
    }
    if (g->through && step)
        return br_x86_memx(base, R14, 1u << (step - 2),
                           g->quarter * X86_LANES << (step - 1));
    switch (step) {
    case 0: return br_x86_mem(base, 0);
    case 1: return br_x86_memx(base, R15, 8, 0);
    case 2:
        em(g, BR_X_LEA64, RCX, br_x86_memx(base, R15, 8, 0));
        return br_x86_memx(RCX, R15, 8, 0);
    default: return br_x86_memx(base, R14, 1u << (step - 3), 0);
    }
}

/* On by the 32 lanes of a warp. */
static void
advance(gen *g)
{
    for (unsigned k = 0; k < g->n_groups; k++) {
        int64_t by = x86_step_by(g->fn, g->group[k].addr);

        if (by)
            ei(g, BR_X_ADD64_I,
               in_register(g, k) ? br_x86_reg(keepers[k]) : host_at(k),
               KI_LANES * by);
    }
}

/* ---- regions -------------------------------------------------------------- */

uint32_t
x86_line_bail_out(gen *g, uint32_t region)
{
    uint32_t label = br_x86_label(g->a);

    if (!br_vec_push(&g->rows, label) || !br_vec_push(&g->rows, region))
        g->a->oom = true;
    return label;
}

/* Leaves in g->rest what each warp does for itself. */
static void
sort(gen *g)
{
    g->n_groups = 0;
    g->rest.n = 0;
    g->kept = true;
    for (size_t k = 0; k < g->list.n; k++) {
        uint32_t id = g->list.at[k];
        const br_kins *i = &g->f->ins.at[id];

        g->group_of[id] = 0;
        if (i->n_res && has(g, i->res, X86_FIRST))
            continue;
        if (!br_vec_push(&g->rest, id))
            g->a->oom = true;
        if (access_on_line(g, i))
            x86_line_join(g, id, 0);
        if (i->op == BR_K_LD || i->op == BR_K_ST)
            g->kept &= g->group_of[id] != 0;
    }
}

/* Whether nothing of it lies in rows of a warp, or may call C. */
static bool
goes_through(const gen *g)
{
    bool ok = g->kept && g->n_groups && g->rest.n <= MAX_THROUGH;

    for (size_t k = 0; ok && k < g->rest.n; k++) {
        const br_kins *i = &g->f->ins.at[g->rest.at[k]];

        for (unsigned r = 0; r < i->n_res; r++)
            ok &= g->fn->slot[i->res + r] == X86_NO_SLOT;
        for (unsigned a = 0; ok && a < i->n_arg; a++) {
            uint32_t v = arg_of(g, i, a);

            if (a == 0 && g->group_of[g->rest.at[k]])
                ok = g->fn->step[v] != 1;
            else if (!is_const(g, v))
                ok = g->fn->slot[v] == X86_NO_SLOT ||
                     (g->fn->uniform[v] && has(g, v, X86_LINE));
        }
    }
    return ok;
}

/* Whether the loop changes memory in place and computes little. Then memory is
 * all, and 32 bytes at a time are better: saxpy of 64 MB in blocks of 256 took
 * 6.3 ms by 64 and 4.4 by 32 (Zen 4, one thread); what the caches hold, 1 to 8 %
 * less. Where lines go past the caches (x86_stream.c), whole ones are wanted. */
static bool
in_place(const gen *g)
{
    unsigned moves = 0, rest = 0;
    bool found = false;

    for (size_t k = 0; k < g->rest.n; k++) {
        const br_kins *i = &g->f->ins.at[g->rest.at[k]];

        for (unsigned r = 0; r < i->n_res; r++)
            if (cls_of(g, i->res + r) == BR_KC_PRED)
                return false;
        for (unsigned a = 0; a < i->n_arg; a++)
            if (cls_of(g, arg_of(g, i, a)) == BR_KC_PRED)
                return false;
        *(i->op == BR_K_LD || i->op == BR_K_ST ? &moves : &rest) += 1;
        found |= i->op == BR_K_ST && x86_is_loaded(g, arg_of(g, i, 0));
    }
    return found && rest <= moves;
}

/* A loop over the block, a warp in each round. */
static void
through(gen *g)
{
    uint32_t top = br_x86_label(g->a);
    bool zmm = g->zmm;

    g->zmm = zmm && !in_place(g);
    g->fast = g->lined = g->through = true;
    g->uniform = false;
    e2(g, BR_X_XOR32, R14, R14);
    br_x86_bind(g->a, top);
    for (unsigned q = 0; q < X86_QUARTERS; q += g->zmm ? 2 : 1) {
        g->quarter = (uint8_t)q;
        x86_straight(g, g->rest.at, g->rest.n);
    }
    ei(g, BR_X_ADD64_I, br_x86_reg(R14), 2 * KI_LANES);
    em(g, BR_X_CMP64, R14, x86_ctx_at(offsetof(x86_ctx, end)));
    ej(g, BR_X_JNE, top);
    g->fast = g->lined = g->through = false;
    x86_forget(g);
    g->zmm = zmm;
}

static void
each_warp(gen *g)
{
    uint32_t top;

    if (!g->rest.n)
        return;
    if (goes_through(g)) {
        through(g);
        return;
    }
    top = x86_seats(g);
    if (g->n_groups) {
        g->fast = g->lined = true;
        g->uniform = false;
        x86_quarters(g, g->rest.at, g->rest.n);
        g->fast = g->lined = false;
        advance(g);
    } else { /* from the list: the rest is written again meanwhile */
        memcpy(g->list.at, g->rest.at, g->rest.n * sizeof *g->rest.at);
        x86_region(g, g->list.at, g->rest.n, false);
    }
    x86_forget(g);
    x86_seats_end(g, top);
}

void
x86_line_region(gen *g)
{
    uint32_t top, bail = x86_line_bail_out(g, g->here);

    if (g->uni.n) {
        top = x86_seats(g);
        x86_region(g, g->uni.at, g->uni.n, true);
        x86_forget(g);
        x86_seats_end(g, top);
    }
    sort(g);
    first_warp(g);
    x86_region(g, g->ones.at, g->ones.n, true);
    x86_forget(g);
    for (size_t k = 0; k < g->list.n; k++) {
        const br_kins *i = &g->f->ins.at[g->list.at[k]];

        if (i->n_res && has(g, i->res, X86_FIRST))
            compare(g, i, bail);
    }
    if (g->n_groups)
        x86_looks(g, look, bail);
    each_warp(g);
}

/* eax, ecx: the condition, if it is one for the block. */
bool
x86_line_holds(gen *g, uint32_t c)
{
    if (!g->line || !has(g, c, X86_LINE))
        return false;
    first_warp(g);
    em(g, BR_X_MOV32, RAX, br_x86_mem(R12, (int32_t)g->fn->slot[c]));
    e2(g, BR_X_MOV32, RCX, RAX);
    return true;
}

void
x86_line_bail(gen *g, uint32_t label)
{
    if (!br_vec_push(&g->rows, label) ||
        !br_vec_push(&g->rows, g->fn->n_regions + g->pos))
        g->a->oom = true;
}

/* Phis that are made for thread 0, before those that each warp has. */
void
x86_line_edge(gen *g, uint32_t blk, uint32_t e)
{
    g->only = ONLY_FIRST;
    first_warp(g);
    x86_take_edge(g, blk, e);
    g->only = ONLY_WARPS;
}

/* The next block in the row of blocks, if all that is new for it are the first
 * warp's values. */
void
x86_line_end(gen *g)
{
    uint32_t out = br_x86_label(g->a);
    const x86_fn *fn = g->fn;

    for (size_t p = 0; p < fn->n_block_presets; p++) {
        const br_kins *i = &g->f->ins.at[fn->presets.at[p]];

        if (i->imm == BR_KS_CTAID_X && fn->slot[i->res] != X86_NO_SLOT &&
            !x86_first(g, i->res))
            return;
    }
    ei(g, BR_X_SUB32_I, x86_ctx_at(offsetof(x86_ctx, again)), 1);
    ej(g, BR_X_JS, out);
    first_warp(g);
    em(g, BR_X_MOV64, RAX, x86_ctx_at(offsetof(x86_ctx, ctaid_x)));
    ei(g, BR_X_SUB32_I, br_x86_mem(RAX, 0), -1);
    for (size_t p = 0; p < fn->n_block_presets; p++) {
        const br_kins *i = &g->f->ins.at[fn->presets.at[p]];

        if (i->imm == BR_KS_CTAID_X && fn->slot[i->res] != X86_NO_SLOT)
            ei(g, BR_X_SUB32_I, br_x86_mem(R12, (int32_t)fn->slot[i->res]), -1);
    }
    ei(g, BR_X_MOVM32_I, x86_ctx_at(offsetof(x86_ctx, fuel)), X86_FUEL);
    ej(g, BR_X_JMP, g->start[0]);
    br_x86_bind(g->a, out);
}

/* ---- at work -------------------------------------------------------------- */

/* The memory that a site's first access is in becomes its window; not 0: it was
 * already, or there is none. */
uint32_t
x86_locate(x86_ctx *c, uint32_t site, uint64_t addr)
{
    const br_kins *i = &c->fn->f->ins.at[c->fn->sites.at[site].ins];
    x86_window *w = &c->windows[site];

    addr += (uint64_t)i->imm;
    if (br_kmod(i->mods, BR_KF_SPACE) == 0 && addr >= KI_CODE)
        return 1;
    for (size_t k = 0; k < c->run->regions.n; k++) {
        const br_kregion *g = &c->run->regions.at[k];
        uint64_t host = (uint64_t)(uintptr_t)g->host - g->addr;

        if (addr - g->addr >= g->bytes)
            continue;
        if ((i->op == BR_K_ST && g->read_only) ||
            (w->lo == g->addr && w->size == g->bytes && w->host == host))
            return 1;
        *w = (x86_window){.lo = g->addr, .size = g->bytes, .host = host};
        return 0;
    }
    return 1;
}

static void
spread_value(const x86_fn *fn, uint32_t v, const uint8_t *from, uint8_t *to,
             uint64_t lanes)
{
    unsigned cls = fn->f->vals.at[v].cls;
    uint64_t by;

    if (!x86_even(fn, v)) {
        memcpy(to, from, 8);
        return;
    }
    by = lanes * (uint64_t)x86_step_by(fn, v);
    for (unsigned q = 0; q < X86_QUARTERS; q++) {
        uint64_t x = 0;
        unsigned bytes = cls == BR_KC_B64 ? 8 : 4;

        memcpy(&x, from + bytes * q, bytes);
        x += by;
        memcpy(to + bytes * q, &x, bytes);
    }
}

/* What the first warp has alone, to the others. */
void
x86_spread(const x86_fn *fn, const x86_seat *seats, uint32_t n)
{
    for (uint32_t v = 0; v < fn->f->vals.n; v++) {
        const uint8_t *from = seats[0].rows + fn->slot[v];

        if (fn->f->vals.at[v].kind != BR_KV_INS || !(fn->line[v] & X86_FIRST) ||
            fn->slot[v] == X86_NO_SLOT)
            continue;
        for (uint32_t k = 1; k < n; k++)
            spread_value(fn, v, from, seats[k].rows + fn->slot[v],
                         (uint64_t)k * KI_LANES);
    }
}
