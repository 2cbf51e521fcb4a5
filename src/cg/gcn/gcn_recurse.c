/* gcn_recurse.c - functions that call themselves, or each other around.
 *
 * The hardware has no calls that vector code could come back from lane by lane,
 * and putting such a function in where it is called has no end. So it is put in
 * once for each call from outside, with its frame on a stack of its own:
 *
 *     outside ---> entry <----------------------+
 *                    |  body: a call moves the  |
 *                    |  arguments to the next --+
 *                    |  frame, with its number
 *                    v
 *                   out: the number says where to go on
 *                    |---> after call 1, 2, ... in a body
 *                    `---> after the call from outside
 *
 * Lanes go different ways there as in any loop. What a body has computed before
 * a call must be found after it, and the same code runs at any depth: values
 * live in the frame wherever they are used in another stretch than the one they
 * were made in. A stretch is a block, or a part of one between such calls.
 *
 * A frame:  its local memory | values | the number of the call
 * Cost      a load or a store for each such value; the stack's STACK bytes of
 *           scratch. Deeper than it reaches is a trap.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_lower_int.h"

#include <string.h>

enum { STACK = 16 << 10, MAX_MEMBERS = 32 };

typedef struct site {
    uint32_t to; /* which member */
    uint32_t blk;
} site;

typedef struct gl_rec {
    uint32_t fn[MAX_MEMBERS];
    copy c[MAX_MEMBERS];
    unsigned n;
    uint32_t stack, top; /* places of our frame: the stack; how much is below */
    BR_VEC(site) sites;
} gl_rec;

/* ---- which functions ------------------------------------------------------ */

/* seen[] of all that fn may come to call. */
static bool
reach(const br_kir *m, uint32_t fn, uint8_t *seen)
{
    BR_VEC(uint32_t) todo = {0};
    bool ok = br_vec_push(&todo, fn);

    while (ok && todo.n) {
        const br_kfn *f = &m->fns.at[todo.at[--todo.n]];

        for (size_t k = 0; k < f->ins.n; k++) {
            const br_kins *i = &f->ins.at[k];

            if (i->op != BR_K_CALL && i->op != BR_K_CALLI)
                continue;
            for (uint32_t g = 0; ok && g < m->fns.n; g++) {
                bool to = i->op == BR_K_CALL ? g == (i->sym & ~BR_KFN_SYM)
                                             : gl_may_be(m, g, i);

                if (!to || seen[g])
                    continue;
                seen[g] = 1;
                ok = br_vec_push(&todo, g);
            }
        }
    }
    br_vec_fini(&todo);
    return ok;
}

bool
gl_calls_itself(lower *l, const br_kir *m, uint32_t fn)
{
    uint8_t *seen;

    if (l->of != m) {
        br_free(l->calls);
        l->of = m;
        l->calls = br_try_calloc(m->fns.n + 1, 1);
    }
    if (!l->calls) {
        l->m->oom = true;
        return false;
    }
    if (!l->calls[fn]) {
        seen = br_try_calloc(m->fns.n + 1, 1);
        if (!seen || !reach(m, fn, seen))
            l->m->oom = true;
        else
            l->calls[fn] = seen[fn] ? 2 : 1;
        br_free(seen);
    }
    return l->calls[fn] == 2;
}

/* Those that call fn and are called by it. */
static bool
find_members(lower *l, copy *from, const br_kins *i, uint32_t fn, gl_rec *r)
{
    const br_kir *m = from->m;
    uint8_t *seen = br_try_calloc(m->fns.n + 1, 1), *back;
    bool ok = seen && reach(m, fn, seen);

    for (uint32_t g = 0; ok && g < m->fns.n; g++) {
        if (!seen[g])
            continue;
        back = br_try_calloc(m->fns.n + 1, 1);
        ok = back && reach(m, g, back);
        if (ok && back[fn]) {
            if (r->n == MAX_MEMBERS) {
                gl_fail(l, from, i, "over 32 functions call each other");
                br_free(back);
                break;
            }
            r->fn[r->n++] = g;
        }
        br_free(back);
    }
    br_free(seen);
    l->m->oom |= !ok;
    return ok && l->code == BR_OK;
}

static unsigned
member(const gl_rec *r, uint32_t fn)
{
    unsigned k = 0;

    while (k < r->n && r->fn[k] != fn)
        k++;
    return k;
}

/* ---- frames --------------------------------------------------------------- */

static uint32_t
add64(lower *l, uint32_t a, uint32_t b)
{
    return gl_one(l, BR_K_ADD, BR_KT_S64, 0, a, b, 0, 2);
}

static uint32_t
top_of(lower *l, const gl_rec *r)
{
    return gl_load(l, gl_frame(l, r->top), 0, BR_KT_B64);
}

static void
set_top(lower *l, const gl_rec *r, uint32_t v)
{
    gl_store(l, gl_frame(l, r->top), 0, BR_KT_B64, v);
}

uint32_t
gl_rec_addr(lower *l, copy *c)
{
    if (c->addr_of != c->stretch) {
        c->addr = add64(l, gl_frame(l, c->rec->stack), top_of(l, c->rec));
        c->addr_of = c->stretch;
    }
    return c->addr;
}

/* Used in another stretch than the one it was made in. */
static void
note_use(copy *c, const uint32_t *made, uint32_t v, uint32_t stretch)
{
    const br_kval *k = &c->f->vals.at[v];

    if (k->kind == BR_KV_INS && made[v] != stretch &&
        c->f->ins.at[k->def].op != BR_K_FRAME)
        c->slot[v] = 1;
}

static bool
splits(const gl_rec *r, const br_kins *i)
{
    return i->op == BR_K_CALLI ||
           (i->op == BR_K_CALL && member(r, i->sym & ~BR_KFN_SYM) < r->n);
}

/* Two walks: where values are made, then where they are used. */
static void
find_slots(const gl_rec *r, copy *c, uint32_t *made)
{
    for (int uses = 0; uses < 2; uses++) {
        uint32_t at = 0;

        for (size_t b = 0; b < c->f->blks.n; b++, at++)
            for (size_t k = 0; k < c->f->blks.at[b].ins.n; k++) {
                const br_kins *i = &c->f->ins.at[c->f->blks.at[b].ins.at[k]];

                for (unsigned a = 0; uses && a < i->n_arg; a++)
                    if (i->op == BR_K_PHI) /* at the edge's other end */
                        c->slot[br_kargs(c->f, i)[a]] |= 1;
                    else
                        note_use(c, made, br_kargs(c->f, i)[a], at);
                at += splits(r, i);
                for (unsigned k2 = 0; !uses && k2 < i->n_res; k2++)
                    made[i->res + k2] = at;
            }
    }
}

/* Where in the frame each value is that needs a place; phis have two. */
static bool
lay_out(lower *l, gl_rec *r, copy *c)
{
    size_t nv = c->f->vals.n;
    uint32_t *mem = br_try_calloc(4 * nv + 1, sizeof *mem);
    uint64_t at = (c->f->frame_bytes + 7ull) & ~7ull;

    if (!mem) {
        l->m->oom = true;
        return false;
    }
    c->seen = mem;
    c->slot = mem + nv;
    c->in_slot = mem + 2 * nv;
    find_slots(r, c, mem + 3 * nv);
    for (size_t v = 0; v < nv && at < STACK; v++) {
        const br_kval *k = &c->f->vals.at[v];
        bool ins = k->kind == BR_KV_INS;

        if (ins && c->slot[v] && c->f->ins.at[k->def].op != BR_K_FRAME) {
            c->slot[v] = (uint32_t)at;
            at += 8;
        } else {
            c->slot[v] = 0;
        }
        if (ins && c->f->ins.at[k->def].op == BR_K_PHI) {
            c->in_slot[v] = (uint32_t)at;
            at += 8;
        }
    }
    c->id_at = (uint32_t)at;
    c->frame = (uint32_t)((at + 8 + 15) & ~15ull);
    if (at + 24 > STACK) {
        l->code = br_fail(l->st, BR_E_LIMIT,
                          "a function that calls itself has over %d bytes of "
                          "local memory",
                          STACK);
        return false;
    }
    return true;
}

/* ---- values --------------------------------------------------------------- */

uint32_t
gl_rec_value(lower *l, copy *c, uint32_t v)
{
    const br_kval *k = &c->f->vals.at[v];
    const br_kins *d = &c->f->ins.at[k->def];

    if (c->seen[v] == c->stretch && c->val[v] != BR_KNONE)
        return c->val[v];
    if (d->op == BR_K_FRAME)
        c->val[v] = add64(l, gl_rec_addr(l, c),
                          gl_number(l, BR_KC_B64, (uint64_t)d->imm));
    else if (!c->slot[v])
        br_unreachable("a value used in another stretch has a place");
    else
        c->val[v] = gl_take(l, gl_rec_addr(l, c), c->slot[v], k->cls);
    c->seen[v] = c->stretch;
    return c->val[v];
}

void
gl_rec_define(lower *l, copy *c, uint32_t v)
{
    c->seen[v] = c->stretch;
    if (c->slot[v])
        gl_give(l, gl_rec_addr(l, c), c->slot[v], c->val[v]);
}

/* All are read before one is written: they come at once. */
void
gl_rec_edges(lower *l, copy *c, uint32_t blk)
{
    const br_kblk *b = &c->f->blks.at[blk];
    BR_VEC(uint32_t) moves = {0};

    for (size_t s = 0; s < b->succ.n; s++) {
        const br_kblk *t = &c->f->blks.at[b->succ.at[s]];

        for (size_t k = 0; k < t->ins.n; k++) {
            const br_kins *i = &c->f->ins.at[t->ins.at[k]];
            uint32_t v = BR_KNONE;

            if (i->op != BR_K_PHI)
                break;
            for (unsigned a = 0; a < i->n_arg; a++) {
                uint32_t x = br_kargs(c->f, i)[a];

                if (t->pred.at[a] != blk)
                    continue;
                if (v != BR_KNONE && v != x)
                    gl_fail(l, c, i, "edges that differ, in a recursion");
                v = x;
            }
            if (v == BR_KNONE || l->code != BR_OK)
                continue;
            v = gl_value(l, c, v);
            l->m->oom |= !br_vec_push(&moves, c->in_slot[i->res]) ||
                         !br_vec_push(&moves, v);
        }
    }
    for (size_t k = 0; k + 1 < moves.n; k += 2)
        gl_give(l, gl_rec_addr(l, c), moves.at[k], moves.at[k + 1]);
    br_vec_fini(&moves);
}

/* ---- calls ---------------------------------------------------------------- */

/* Arguments to the frame at `to`, or results from it. */
static bool
pass(lower *l, copy *from, const br_kins *i, unsigned first, const br_kfn *f,
     uint32_t to, bool results)
{
    for (size_t k = 0; k < f->params.n; k++) {
        const br_kparam *p = &f->params.at[k];
        uint32_t addr;

        if (p->result != results)
            continue;
        if (!gl_place(l, from, i, first + (unsigned)k, &addr))
            return false;
        if (results)
            gl_move(l, addr, 0, to, p->offset, p);
        else
            gl_move(l, to, p->offset, addr, 0, p);
    }
    return true;
}

/* A call within: the next frame is behind ours. */
static void
call_within(lower *l, copy *from, const br_kins *i, unsigned to, unsigned first)
{
    gl_rec *r = from->rec;
    copy *c = &r->c[to];
    uint32_t less = br_kmod_put(BR_KF_CMP, BR_KM_CMP_GT), next, stop, go, top;
    site s = {to, br_kfn_blk(l->m, l->f)};

    top = add64(l, top_of(l, r), gl_number(l, BR_KC_B64, from->frame));
    stop = br_kfn_blk(l->m, l->f);
    go = br_kfn_blk(l->m, l->f);
    gl_branch(l,
              gl_one(l, BR_K_SETP, BR_KT_S64, less, top,
                     gl_number(l, BR_KC_B64, STACK - c->frame), 0, 2),
              stop, go);
    l->cur = stop;
    gl_trap(l, BR_GCN_TRAP_STACK);
    gl_goto(l, go);
    l->cur = go;
    next = add64(l, gl_frame(l, r->stack), top);
    if (!pass(l, from, i, first, c->f, next, false))
        return;
    if (!br_vec_push(&r->sites, s))
        l->m->oom = true;
    gl_store(l, next, c->id_at, BR_KT_B32, gl_number(l, BR_KC_B32, r->sites.n));
    set_top(l, r, top);
    gl_goto(l, c->first[0]);

    l->cur = s.blk;
    from->stretch++;
    top = top_of(l, r);
    next = add64(l, gl_frame(l, r->stack), top);
    set_top(l, r,
            add64(l, top, gl_number(l, BR_KC_B64, -(uint64_t)from->frame)));
    (void)pass(l, from, i, first, c->f, next, true);
}

/* Where the numbers of its calls lead; 0 is the call from outside. */
static void
put_out(lower *l, gl_rec *r, unsigned which, uint32_t outside)
{
    copy *c = &r->c[which];
    uint32_t eq = br_kmod_put(BR_KF_CMP, BR_KM_CMP_EQ), id;

    l->cur = c->out;
    c->stretch++;
    id = gl_load(l, gl_rec_addr(l, c), c->id_at, BR_KT_B32);
    for (uint32_t s = 0; s < r->sites.n; s++)
        if (r->sites.at[s].to == which)
            gl_branch(l,
                      gl_one(l, BR_K_SETP, BR_KT_B32, eq, id,
                             gl_number(l, BR_KC_B32, s + 1), 0, 2),
                      r->sites.at[s].blk, br_kfn_blk(l->m, l->f));
    gl_goto(l, outside);
}

static void
put_members(lower *l, gl_rec *r, copy *from, uint32_t outside)
{
    for (unsigned k = 0; k < r->n && l->code == BR_OK && !l->m->oom; k++) {
        r->c[k] = (copy){.m = from->m,
                         .f = &from->m->fns.at[r->fn[k]],
                         .vars = from->vars,
                         .rec = r,
                         .back = br_kfn_blk(l->m, l->f)};
        r->c[k].out = r->c[k].back;
        if (!gl_begin_copy(l, &r->c[k]) || !lay_out(l, r, &r->c[k]))
            return;
    }
    for (unsigned k = 0; k < r->n && l->code == BR_OK && !l->m->oom; k++)
        gl_walk(l, &r->c[k]);
    for (unsigned k = 0; k < r->n && l->code == BR_OK && !l->m->oom; k++)
        put_out(l, r, k, outside);
}

/* A stack for this level: calls one after another share it. Where frames share,
 * others may lie there by the time of the next: then it is a new one. */
static bool
get_stack(lower *l, gl_rec *r)
{
    if (l->tight)
        l->stacks.n = BR_MIN(l->stacks.n, l->level);
    if (l->stacks.n <= l->level) {
        uint32_t at = gl_more_frame(l, STACK);

        if (l->code != BR_OK || !gl_object(l, at, STACK))
            return false;
        if (!br_vec_push(&l->stacks, at)) {
            l->m->oom = true;
            return false;
        }
    }
    r->stack = l->stacks.at[l->level];
    r->top = gl_more_frame(l, 8);
    return l->code == BR_OK && gl_object(l, r->top, 8);
}

/* From outside: a stack, all functions of the circle, the first frame. */
static void
call_first(lower *l, copy *from, const br_kins *i, uint32_t fn, unsigned first,
           gl_rec *r)
{
    uint32_t cur = l->cur, line = l->line, outside = br_kfn_blk(l->m, l->f);
    copy *c;

    if (!get_stack(l, r))
        return;
    l->level++;
    put_members(l, r, from, outside);
    l->level--;
    if (l->code != BR_OK || l->m->oom)
        return;
    c = &r->c[member(r, fn)];
    l->cur = cur;
    l->line = line;
    if (!pass(l, from, i, first, c->f, gl_frame(l, r->stack), false))
        return;
    gl_store(l, gl_frame(l, r->stack), c->id_at, BR_KT_B32,
             gl_number(l, BR_KC_B32, 0));
    set_top(l, r, gl_number(l, BR_KC_B64, 0));
    gl_goto(l, c->first[0]);
    l->cur = outside;
    (void)pass(l, from, i, first, c->f, gl_frame(l, r->stack), true);
}

void
gl_recurse(lower *l, copy *from, const br_kins *i, uint32_t fn, unsigned first)
{
    gl_rec *r;
    unsigned to = from->rec ? member(from->rec, fn) : 0;

    l->changed = true;
    if (from->rec && to < from->rec->n) {
        call_within(l, from, i, to, first);
        return;
    }
    r = br_try_calloc(1, sizeof *r);
    if (!r) {
        l->m->oom = true;
        return;
    }
    if (find_members(l, from, i, fn, r))
        call_first(l, from, i, fn, first, r);
    for (unsigned k = 0; k < r->n; k++)
        gl_free_copy(&r->c[k]);
    br_vec_fini(&r->sites);
    br_free(r);
}
