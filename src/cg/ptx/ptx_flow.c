/* ptx_flow.c - blocks of a PTX function, and which registers need phis.
 *
 *   setp p, ...                b0: ... cond p b1 b2
 *   @p st [a], x        ->     b1: st [a], x
 *   add b, b, 1                b2: add ...
 *
 * A guard on what can be thrown away becomes a select when it is lowered; on
 * anything else, a branch. Barriers end their block.
 *
 * A register that is written once, above every read, is a value. The others,
 * some tens in a kernel of thousands, are "multi": live sets are computed for
 * those alone, and a block where edges join gets a phi for each that is live.
 *
 * A loop goes back from one place: lanes that "continue" elsewhere than at its end
 * would be in its head, the lowest block, before the others, and votes there, whose
 * masks name all, would miss these (kir_order.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx_int.h"

#include <string.h>

/* blocks x multi registers: 4 bytes each at most. */
enum { MAX_CELLS = 1 << 27 };

static const px_opcode *
opcode(const px_lower *l, const px_ins *i)
{
    return &l->p->opcodes.at[i->opcode];
}

static px_flow
flow_of(const px_lower *l, const px_ins *i)
{
    const px_opcode *o = opcode(l, i);

    if (!o->root || o->bad.n)
        return F_SIDE;
    if (o->root->flow == F_BAR && (px_has(o, PM_WARP) || px_has(o, PM_ARRIVE)))
        return F_SIDE;
    return (px_flow)o->root->flow;
}

/* ---- registers of an instruction ---------------------------------------- */

static void
each_in(px_lower *l, const px_opnd *o, bool write, px_reg_fn fn, void *arg)
{
    switch (o->kind) {
    case O_REG: fn(l, o->a, write, arg); break;
    case O_MEM:
        if (o->a != BR_KNONE)
            each_in(l, &l->p->ops.at[o->a], false, fn, arg);
        break;
    case O_VEC:
    case O_LIST:
        for (uint32_t k = 0; k < o->b; k++)
            each_in(l, &l->p->ops.at[o->a + k], write, fn, arg);
        break;
    case O_PAIR:
        each_in(l, &l->p->ops.at[o->a], write, fn, arg);
        each_in(l, &l->p->ops.at[o->b], write, fn, arg);
        break;
    default: break;
    }
}

/* A barrier's first operand is its number, or its lanes; only .red has a result. */
static bool
has_result(const px_opcode *o)
{
    return o->root->dst && (o->root->how != px_l_bar || px_has(o, PM_RED));
}

void
px_each_reg(px_lower *l, const px_ins *i, px_reg_fn fn, void *arg)
{
    const px_opcode *o = opcode(l, i);
    const px_root *r = o->bad.n ? NULL : o->root;

    if (i->guard != BR_KNONE)
        fn(l, i->guard, false, arg);
    for (unsigned k = 0; k < i->n_op; k++) {
        const px_opnd *x = &l->p->ops.at[i->op + k];
        bool call = r && r->how == px_l_call && x->kind == O_LIST;
        bool write = k == 0 && r && (call || has_result(o)) && x->kind != O_MEM;

        if (!write)
            each_in(l, x, false, fn, arg);
    }
    if (r && (r->how == px_l_carry || br_text_is(br_text_z(r->name), "madc")))
        fn(l, REG_CC, false, arg);
    if (r && i->n_op && l->p->ops.at[i->op].kind != O_MEM &&
        (has_result(o) ||
         (r->how == px_l_call && l->p->ops.at[i->op].kind == O_LIST)))
        each_in(l, &l->p->ops.at[i->op], true, fn, arg);
    if (r && px_has(o, PM_CC))
        fn(l, REG_CC, true, arg);
}

/* ---- blocks ------------------------------------------------------------- */

/* The label that a name in a scope means: the innermost around it. */
static uint32_t
label_of(const px_lower *l, const px_name *n)
{
    const px_parser *p = l->p;
    const br_map_value *id = br_map_get(&p->label_names, n->name), *at;
    uint32_t scope = n->scope;

    while (id) {
        at = br_map_get_u64(&p->label_at, id->u << 32 | scope);
        if (at)
            return p->labels.at[at->u].ins;
        if (scope == 0)
            break;
        scope = p->outer.at[scope];
    }
    return BR_KNONE;
}

static br_code
no_label(px_lower *l, const px_ins *i, br_text name)
{
    l->p->line = i->line;
    return px_fail(l->p, "there is no label '%.*s'",
                   (int)BR_MIN(name.n, (size_t)60), name.p);
}

/* start[i]: instruction i begins a block. */
static br_code
leaders(px_lower *l, uint8_t *start)
{
    px_parser *p = l->p;

    start[0] = 1;
    for (size_t k = 0; k < p->labels.n; k++)
        start[p->labels.at[k].ins] = 1;
    for (uint32_t k = 0; k < p->ins.n; k++) {
        px_flow f = flow_of(l, &p->ins.at[k]);
        bool guarded = p->ins.at[k].guard != BR_KNONE;

        if (f != F_PURE && f != F_SIDE)
            start[k + 1] = 1;
        if (guarded && f != F_PURE && f != F_JUMP) {
            start[k] = 1; /* alone in its block, the branch before it */
            start[k + 1] = 1;
        }
    }
    return BR_OK;
}

static br_code
jump_target(px_lower *l, const px_ins *i, unsigned n, const uint32_t *at,
            uint32_t *out)
{
    const px_opnd *o = n < i->n_op ? &l->p->ops.at[i->op + n] : NULL;
    uint32_t ins;

    if (!o || o->kind != O_NAME)
        return no_label(l, i, BR_TEXT("?"));
    ins = label_of(l, &l->p->names.at[o->a]);
    if (ins == BR_KNONE)
        return no_label(l, i, l->p->names.at[o->a].name);
    *out = at[ins];
    return BR_OK;
}

static br_code
end_of_block(px_lower *l, px_blk *b, const uint32_t *at)
{
    const px_ins *i = &l->p->ins.at[b->first + b->n - 1];
    px_flow f = b->n ? flow_of(l, i) : F_PURE;

    b->end = E_FALL;
    if (f == F_JUMP) {
        BR_TRY(jump_target(l, i, 0, at, &b->to));
        b->end = i->guard == BR_KNONE ? E_JUMP : E_COND;
        b->guard = i->guard;
        b->guard_not = i->guard_not;
    } else if (f == F_RET || f == F_EXIT) {
        b->end = f == F_RET ? E_RET : E_EXIT;
    } else if (f == F_BRX) {
        const px_opnd *o = i->n_op > 1 ? &l->p->ops.at[i->op + 1] : NULL;

        b->end = E_SWITCH;
        b->op = i->op;
        b->targets = BR_KNONE;
        for (size_t k = 0; o && o->kind == O_NAME && k < l->p->targets.n; k++)
            if (br_text_eq(l->p->targets.at[k].name, l->p->names.at[o->a].name))
                b->targets = (uint32_t)k;
        if (b->targets == BR_KNONE)
            return no_label(l, i,
                            o && o->kind == O_NAME ? l->p->names.at[o->a].name
                                                   : BR_TEXT("?"));
    }
    return BR_OK;
}

/* A call whose results are registers: they are read in a block of its own that
 * follows, as a call ends its block. */
static bool
register_results(const px_lower *l, uint32_t ins)
{
    const px_ins *i = &l->p->ins.at[ins];
    const px_opcode *o = opcode(l, i);
    const px_opnd *x = i->n_op ? &l->p->ops.at[i->op] : NULL;

    return o->root && o->root->how == px_l_call && x && x->kind == O_LIST &&
           x->b && l->p->ops.at[x->a].kind == O_REG;
}

/* Before a guarded block that is not a jump stands its branch: a block with no
 * instruction of its own. Block 0 is never a target. */
static br_code
make_blocks(px_lower *l)
{
    px_parser *p = l->p;
    uint32_t n = (uint32_t)p->ins.n;
    uint8_t *start = br_try_calloc(n + 2, 1);
    uint32_t *at = br_try_calloc(n + 2, sizeof *at);
    br_code code = start && at && br_vec_push(&l->blks, ((px_blk){0}))
                       ? leaders(l, start)
                       : px_oom(p);

    if (code == BR_OK)
        l->blks.at[0].next = 1;
    start && (start[n] = 1);
    for (uint32_t k = 0; code == BR_OK && k <= n; k++) {
        px_blk b = {.first = k};
        px_flow f = k < n ? flow_of(l, &p->ins.at[k]) : F_RET;

        if (!start[k])
            continue;
        at[k] = (uint32_t)l->blks.n;
        if (k < n && p->ins.at[k].guard != BR_KNONE && f != F_PURE &&
            f != F_JUMP) {
            b.end = E_COND;
            b.guard = p->ins.at[k].guard;
            b.guard_not = p->ins.at[k].guard_not;
            b.to = at[k] + 1;
            b.next = at[k] + 2 + register_results(l, k);
            if (!br_vec_push(&l->blks, b))
                code = px_oom(p);
            b.end = E_FALL;
        }
        while (b.first + b.n < n && (b.n == 0 || !start[b.first + b.n]))
            b.n++;
        if (k == n)
            b.end = E_RET;
        if (code == BR_OK && !br_vec_push(&l->blks, b))
            code = px_oom(p);
        if (code == BR_OK && b.n && register_results(l, b.first + b.n - 1) &&
            !br_vec_push(&l->blks, ((px_blk){.first = b.first + b.n,
                                             .after_call = true})))
            code = px_oom(p);
    }
    for (uint32_t k = 1; code == BR_OK && k < l->blks.n; k++) {
        px_blk *b = &l->blks.at[k];

        b->next = k + 1 < l->blks.n ? k + 1 : k;
        if (b->n)
            code = end_of_block(l, b, at);
        else if (b->end == E_COND) /* over the block that is guarded */
            b->next = k + 2 + register_results(l, b->first);
    }
    for (size_t k = 0; code == BR_OK && k < p->targets.n; k++)
        for (uint32_t t = 0; t < p->targets.at[k].count; t++) {
            px_name *name = &p->names.at[p->targets.at[k].first + t];
            uint32_t ins = label_of(l, name);

            if (ins == BR_KNONE && p->ins.n)
                code = no_label(l, &p->ins.at[0], name->name);
            else if (ins == BR_KNONE)
                code = px_fail(p, "there is no label");
            else
                name->scope = at[ins]; /* from here on: its block */
        }
    br_free(start);
    br_free(at);
    return code;
}

/* The same graph in KIR: its blocks carry the edges from here on. */
static void
edges(px_lower *l)
{
    for (uint32_t k = 0; k < l->blks.n; k++)
        br_kfn_blk(l->m, l->f);
    for (uint32_t k = 0; k < l->blks.n && !l->m->oom; k++) {
        const px_blk *b = &l->blks.at[k];

        switch ((px_end)b->end) {
        case E_FALL: br_kfn_edge(l->m, l->f, k, b->next); break;
        case E_JUMP: br_kfn_edge(l->m, l->f, k, b->to); break;
        case E_COND:
            br_kfn_edge(l->m, l->f, k, b->to);
            br_kfn_edge(l->m, l->f, k, b->next);
            break;
        case E_SWITCH:
            for (uint32_t t = 0; t < l->p->targets.at[b->targets].count; t++)
                br_kfn_edge(
                    l->m, l->f, k,
                    l->p->names.at[l->p->targets.at[b->targets].first + t]
                        .scope);
            break;
        case E_RET:
        case E_EXIT: break;
        }
    }
}

/* Drops what nothing reaches and numbers blocks in reverse post order. */
static br_code
order(px_lower *l)
{
    size_t n = l->blks.n;
    uint32_t *mem = br_try_calloc(3 * n, sizeof *mem);
    BR_VEC(br_kblk) kept = {0};
    BR_VEC(px_blk) blks = {0};
    br_kfn *f = l->f;

    l->rpo = mem;
    if (!mem || !br_vec_reserve(&kept, n) || !br_vec_reserve(&blks, n)) {
        br_vec_fini(&kept);
        br_vec_fini(&blks);
        return px_oom(l->p);
    }
    l->place = mem + n;
    l->idom = mem + 2 * n;
    l->n_rpo = br_kfn_rpo(f, l->rpo, l->place);
    for (uint32_t k = 0; k < l->n_rpo; k++) {
        kept.at[kept.n++] = f->blks.at[l->rpo[k]];
        blks.at[blks.n++] = l->blks.at[l->rpo[k]];
    }
    for (uint32_t k = 0; k < n; k++)
        if (l->place[k] == BR_KNONE) {
            br_vec_fini(&f->blks.at[k].ins);
            br_vec_fini(&f->blks.at[k].succ);
            br_vec_fini(&f->blks.at[k].pred);
        }
    for (size_t k = 0; k < kept.n; k++)
        for (size_t s = 0; s < kept.at[k].succ.n; s++)
            kept.at[k].succ.at[s] = l->place[kept.at[k].succ.at[s]];
    memcpy(f->blks.at, kept.at, kept.n * sizeof *kept.at);
    memcpy(l->blks.at, blks.at, blks.n * sizeof *blks.at);
    f->blks.n = kept.n;
    l->blks.n = blks.n;
    br_vec_fini(&kept);
    br_vec_fini(&blks);
    for (uint32_t k = 0; k < l->n_rpo; k++)
        l->rpo[k] = l->place[k] = k;
    br_kfn_preds(l->m, f);
    if (l->m->oom)
        return px_oom(l->p);
    br_kfn_idom(f, l->rpo, l->n_rpo, l->place, l->idom);
    return BR_OK;
}

static size_t
ways_back(const px_lower *l, uint32_t head)
{
    size_t n = 0;

    for (size_t k = 0; k < l->f->blks.at[head].pred.n; k++)
        n += br_kdominates(l->idom, l->place, head,
                           l->f->blks.at[head].pred.at[k]);
    return n;
}

/* Blocks that are empty before the heads of loops with several ways back. */
static br_code
one_way_back(px_lower *l)
{
    br_kfn *f = l->f;
    uint32_t n = (uint32_t)f->blks.n, *mem = l->rpo;

    for (uint32_t head = 0; head < n; head++) {
        uint32_t back = (uint32_t)f->blks.n;

        if (ways_back(l, head) < 2)
            continue;
        br_kfn_blk(l->m, f);
        if (l->m->oom || !br_vec_push(&l->blks, ((px_blk){.end = E_FALL})))
            return px_oom(l->p);
        for (uint32_t b = head; b < n; b++)
            for (size_t e = 0; e < f->blks.at[b].succ.n; e++)
                if (f->blks.at[b].succ.at[e] == head &&
                    br_kdominates(l->idom, l->place, head, b))
                    f->blks.at[b].succ.at[e] = back;
        br_kfn_edge(l->m, f, back, head);
    }
    if (f->blks.n == n)
        return BR_OK;
    br_free(mem);
    return order(l);
}

/* ---- registers ---------------------------------------------------------- */

typedef struct reg_use {
    uint32_t writes, blk, at;
} reg_use;
typedef struct scan {
    reg_use *use;
    uint32_t blk, at;
    uint64_t *gen, *kill; /* of the block at hand */
} scan;

static void
count_writes(px_lower *l, uint32_t reg, bool write, void *arg)
{
    scan *s = arg;

    (void)l;
    if (!write)
        return;
    s->use[reg].writes++;
    s->use[reg].blk = s->blk;
    s->use[reg].at = s->at;
}

static void
find_multi(px_lower *l, uint32_t reg, bool write, void *arg)
{
    scan *s = arg;
    const reg_use *u = &s->use[reg];
    bool above;

    if (write || u->writes != 1) {
        if (u->writes > 1)
            l->multi[reg] = 0;
        return;
    }
    above = u->blk == s->blk ? u->at < s->at
                             : br_kdominates(l->idom, l->place, u->blk, s->blk);
    if (!above)
        l->multi[reg] = 0;
}

static void
gen_kill(px_lower *l, uint32_t reg, bool write, void *arg)
{
    scan *s = arg;
    uint32_t m = l->multi[reg];

    if (m == BR_KNONE)
        return;
    if (write)
        s->kill[m / 64] |= 1ull << (m % 64);
    else if (!(s->kill[m / 64] >> (m % 64) & 1))
        s->gen[m / 64] |= 1ull << (m % 64);
}

/* Parameters in registers: written in block 0, results read before a ret. */
static void
each_param(px_lower *l, const scan *s, px_reg_fn fn, void *arg)
{
    const px_blk *b = &l->blks.at[s->blk];

    for (size_t k = 0; k < l->p->regparams.n; k++) {
        const px_regparam *q = &l->p->regparams.at[k];

        if (s->blk == 0 && !q->result)
            fn(l, q->reg, true, arg);
        if (b->end == E_RET && q->result)
            fn(l, q->reg, false, arg);
    }
}

static void
walk(px_lower *l, scan *s, px_reg_fn fn)
{
    for (s->blk = 0; s->blk < l->blks.n; s->blk++) {
        const px_blk *b = &l->blks.at[s->blk];

        for (s->at = 0; s->at < b->n; s->at++)
            px_each_reg(l, &l->p->ins.at[b->first + s->at], fn, s);
        if (b->end == E_COND && b->n == 0)
            fn(l, b->guard, false, s);
        each_param(l, s, fn, s);
    }
}

/* A guarded write of a multi register keeps the old value elsewhere: a read. */
static void
gen_kill_block(px_lower *l, scan *s)
{
    const px_blk *b = &l->blks.at[s->blk];

    for (s->at = 0; s->at < b->n; s->at++) {
        const px_ins *i = &l->p->ins.at[b->first + s->at];
        uint64_t *kill = s->kill;

        if (i->guard != BR_KNONE && i->n_op && flow_of(l, i) == F_PURE) {
            const px_opnd *o = &l->p->ops.at[i->op];

            each_in(l, o, false, gen_kill, s);
        }
        px_each_reg(l, i, gen_kill, s);
        s->kill = kill;
    }
    if (b->end == E_COND && b->n == 0)
        gen_kill(l, b->guard, false, s);
    each_param(l, s, gen_kill, s);
}

static br_code
live_in(px_lower *l, scan *s)
{
    size_t words = (l->n_multi + 63) / 64, nb = l->blks.n;
    uint64_t *kill = br_try_calloc(nb * words + 1, sizeof *kill);
    bool again = true;

    l->live = br_try_calloc(nb * words + 1, sizeof *l->live);
    if (!l->live || !kill) {
        br_free(kill);
        return px_oom(l->p);
    }
    for (s->blk = 0; s->blk < nb; s->blk++) {
        s->gen = l->live + s->blk * words;
        s->kill = kill + s->blk * words;
        gen_kill_block(l, s);
    }
    while (again) {
        again = false;
        for (size_t b = nb; b-- > 0;)
            for (size_t e = 0; e < l->f->blks.at[b].succ.n; e++)
                for (size_t w = 0; w < words; w++) {
                    uint64_t *to = &l->live[b * words + w], was = *to;

                    *to |= l->live[l->f->blks.at[b].succ.at[e] * words + w] &
                           ~kill[b * words + w];
                    again |= *to != was;
                }
    }
    br_free(kill);
    return BR_OK;
}

br_code
px_flow_build(px_lower *l)
{
    size_t n = l->p->regs.n;
    scan s = {0};
    br_code code;

    BR_TRY(make_blocks(l));
    edges(l);
    BR_TRY(order(l));
    BR_TRY(one_way_back(l));
    s.use = br_try_calloc(n + 1, sizeof *s.use);
    l->multi = br_try_alloc((2 * n + 2) * sizeof *l->multi);
    l->single = br_try_alloc((n + 1) * sizeof *l->single);
    if (!s.use || !l->multi || !l->single) {
        br_free(s.use);
        return px_oom(l->p);
    }
    memset(l->multi, 0xff, (n + 1) * sizeof *l->multi);
    l->reg_of = l->multi + n + 1;
    memset(l->single, 0xff, (n + 1) * sizeof *l->single);
    walk(l, &s, count_writes);
    walk(l, &s, find_multi);
    for (uint32_t r = 0; r < n; r++)
        if (l->multi[r] == 0) {
            l->reg_of[l->n_multi] = r;
            l->multi[r] = l->n_multi++;
        }
    if ((uint64_t)l->n_multi * l->blks.n > MAX_CELLS)
        code = br_fail(l->p->st, BR_E_LIMIT,
                       "function %.*s: %u variables in %zu blocks are too many",
                       (int)BR_MIN(l->f->name.n, (size_t)60), l->f->name.p,
                       l->n_multi, l->blks.n);
    else
        code = live_in(l, &s);
    br_free(s.use);
    return code;
}
