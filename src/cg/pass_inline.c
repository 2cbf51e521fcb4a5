/* pass_inline.c - calls of small functions become their blocks.
 *
 *   b3: st.b32.local [frame 8] %4      b3: st.b32.local [frame 8] %4
 *       call @square %7 %8                 %30 = ld.b32.local [frame 8]
 *       br b5                    ->        st.b32.local [frame 36] %30
 *                                          br b9     its frame is now 32 to 47
 *                                      b9: ...       its blocks; ret is br b14
 *                                      b14: result to the caller's place; br b5
 *
 * Why       A call takes a frame and goes by the interpreter's stack; whoever
 *           calls is no code for blocks.
 * Requires  br_kir_verify.
 * Changes   calls of functions of at most MAX_BODY instructions that do not
 *           come back to themselves and take no memory by alloca, until the
 *           caller has MAX_FN. Then parameters become values (pass_frame.c).
 * Cost      what is copied; nothing where nobody calls.
 *
 * A function that is known only at run time, or has no body, is called still.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir_pass.h"

#include <string.h>

enum {
    MAX_BODY = 1000,
    MAX_FN = 20000,
    MAX_PARAMS = 4096,   /* bytes of a function's, that are copied */
    MAX_FRAME = 64 << 10 /* bytes, of the caller's with what is put in */
};

enum { UNKNOWN, FITS, FITS_NOT };

typedef struct put {
    br_kir *m;
    br_kfn *f;
    uint8_t *fits, *seen; /* of each function of the module */
    BR_VEC(br_kobj) objs;
    bool any, vague; /* places overlap: only the whole frame is an object */
} put;

/* ---- which calls -------------------------------------------------------- */

/* Whether calls lead from a function back to it. */
static bool
comes_back(put *p, uint32_t fn)
{
    BR_VEC(uint32_t) todo = {0};
    bool back = false;

    memset(p->seen, 0, p->m->fns.n);
    p->m->oom |= !br_vec_push(&todo, fn);
    while (!back && !p->m->oom && todo.n) {
        const br_kfn *g = &p->m->fns.at[todo.at[--todo.n]];

        for (size_t k = 0; k < g->ins.n; k++) {
            uint32_t to = g->ins.at[k].sym & ~BR_KFN_SYM;

            if (g->ins.at[k].op != BR_K_CALL)
                continue;
            back |= to == fn;
            if (!p->seen[to] && !br_vec_push(&todo, to))
                p->m->oom = true;
            p->seen[to] = 1;
        }
    }
    br_vec_fini(&todo);
    return back;
}

static bool
looks_small(const br_kfn *g)
{
    if (g->external || g->entry || g->ins.n > MAX_BODY)
        return false;
    for (size_t k = 0; k < g->params.n; k++)
        if ((uint64_t)g->params.at[k].offset + g->params.at[k].bytes >
            MAX_PARAMS)
            return false;
    for (size_t k = 0; k < g->ins.n; k++)
        if (g->ins.at[k].op == BR_K_ALLOCA || g->ins.at[k].op == BR_K_STACK)
            return false;
    return true;
}

static bool
fits(put *p, uint32_t fn)
{
    const br_kfn *g = &p->m->fns.at[fn];

    if (p->fits[fn] == UNKNOWN)
        p->fits[fn] = looks_small(g) && !comes_back(p, fn) ? FITS : FITS_NOT;
    return p->fits[fn] == FITS && g != p->f &&
           p->f->ins.n + g->ins.n <= MAX_FN &&
           (uint64_t)p->f->frame_bytes + g->frame_bytes + 32 <= MAX_FRAME;
}

/* ---- parameters --------------------------------------------------------- */

/* Where a function's accesses of its parameters begin, and the shortest there.
 * all: an address gets about, so what is not seen may be accessed, too. */
typedef struct accesses {
    uint8_t bytes[MAX_PARAMS];
    bool all;
} accesses;

static bool
frame_place(const br_kfn *g, uint32_t v, int64_t *at)
{
    const br_kval *x = &g->vals.at[v];

    if (x->kind != BR_KV_INS || g->ins.at[x->def].op != BR_K_FRAME)
        return false;
    *at = g->ins.at[x->def].imm;
    return true;
}

static void
note(accesses *acc, const br_kins *i, int64_t at)
{
    uint8_t bytes = br_ktinfo_of[i->type].bytes;
    unsigned n = i->op == BR_K_LD ? i->n_res : i->n_arg - 1u;

    for (unsigned k = 0; k < n; k++, at += bytes)
        if (at >= 0 && at < MAX_PARAMS &&
            (!acc->bytes[at] || acc->bytes[at] > bytes))
            acc->bytes[at] = bytes;
}

static void
look(const br_kfn *g, accesses *acc)
{
    int64_t at;

    memset(acc, 0, sizeof *acc);
    for (size_t k = 0; k < g->ins.n; k++) {
        const br_kins *i = &g->ins.at[k];
        bool is_access = i->op == BR_K_LD || i->op == BR_K_ST;

        for (unsigned a = 0; a < i->n_arg; a++) {
            if (!frame_place(g, br_kargs(g, i)[a], &at))
                continue;
            if (is_access && a == 0)
                note(acc, i, at + i->imm);
            else
                acc->all = true;
        }
    }
}

/* How much of a parameter is copied from at on; 0: nothing of this byte. */
static uint32_t
piece(const accesses *acc, uint64_t at, uint64_t end)
{
    uint32_t n = 8;

    if (acc->bytes[at] && at + acc->bytes[at] <= end)
        return acc->bytes[at];
    if (!acc->all)
        return 0;
    for (; n > 1; n /= 2) {
        bool ok = at % n == 0 && at + n <= end;

        for (uint32_t k = 1; ok && k < n; k++)
            ok = !acc->bytes[at + k];
        if (ok)
            break;
    }
    return n;
}

static uint32_t
emit(put *p, uint32_t blk, br_kins i, const uint32_t *args)
{
    uint32_t id;

    i.sym = BR_KNONE;
    id = br_kfn_ins(p->m, p->f, blk, &i, args);
    return p->m->oom ? 0 : p->f->ins.at[id].res;
}

/* Its bytes, between the place that addr is and the frame's. */
static void
pass(put *p, uint32_t blk, const br_kparam *q, const accesses *acc,
     uint32_t base, uint32_t addr, uint32_t line)
{
    uint64_t end = (uint64_t)q->offset + q->bytes;
    uint32_t near, n, a[2];

    near = emit(p, blk, (br_kins){.op = BR_K_FRAME, .line = line, .imm = base},
                NULL);
    for (uint64_t at = q->offset; at < end; at += n ? n : 1) {
        br_kins i = {.line = line,
                     .mods = br_kmod_put(BR_KF_SPACE, BR_KM_SPACE_LOCAL)};
        int64_t here = (int64_t)at, there = (int64_t)(at - q->offset);

        n = piece(acc, at, end);
        if (!n)
            continue;
        i.type = n == 8   ? BR_KT_B64
                 : n == 4 ? BR_KT_B32
                 : n == 2 ? BR_KT_B16
                          : BR_KT_B8;
        i.op = BR_K_LD;
        i.n_arg = i.n_res = 1;
        i.imm = q->result ? here : there;
        a[1] = emit(p, blk, i, q->result ? &near : &addr);
        a[0] = q->result ? addr : near;
        i.op = BR_K_ST;
        i.n_arg = 2;
        i.n_res = 0;
        i.imm = q->result ? there : here;
        emit(p, blk, i, a);
    }
}

/* ---- objects of the frame ----------------------------------------------- */

static void
object(put *p, uint64_t at, uint64_t bytes)
{
    br_kobj o = {at, bytes};

    if (bytes && !br_vec_push(&p->objs, o))
        p->m->oom = true;
}

/* What the caller has a call's parameters in; addresses that are no place in
 * the frame are whatever they are. */
static void
places(put *p, const br_kins *i)
{
    const br_kfn *g = &p->m->fns.at[i->sym & ~BR_KFN_SYM];
    int64_t at;

    for (unsigned a = 0; a < i->n_arg; a++) {
        uint32_t bytes = g->params.at[a].bytes;
        bool there = false;

        if (!frame_place(p->f, br_kargs(p->f, i)[a], &at) || at < 0)
            continue;
        for (size_t k = 0; k < p->objs.n; k++) {
            const br_kobj *o = &p->objs.at[k];

            if ((uint64_t)at == o->at && bytes == o->bytes)
                there = true;
            else if ((uint64_t)at < o->at + o->bytes &&
                     (uint64_t)at + bytes > o->at)
                p->vague = true;
        }
        if (!there)
            object(p, (uint64_t)at, bytes);
    }
}

static bool
find_places(put *p)
{
    const br_kfn *f = p->f;
    bool found = false;

    for (size_t k = 0; k < f->ins.n; k++) {
        p->vague |= f->ins.at[k].op == BR_K_CALLI;
        if (f->ins.at[k].op != BR_K_CALL)
            continue;
        places(p, &f->ins.at[k]);
        found = true;
    }
    return found;
}

/* ---- blocks ------------------------------------------------------------- */

/* g's instructions behind each other, arguments still g's; val: its values'. */
static void
copy_instructions(put *p, const br_kfn *g, uint32_t first, uint32_t base,
                  uint32_t *val)
{
    for (uint32_t v = 0; v < g->vals.n; v++) {
        const br_kval *x = &g->vals.at[v];

        if (x->kind == BR_KV_CONST)
            val[v] = br_kfn_const(p->m, p->f, (br_kclass)x->cls, x->bits);
        else if (x->kind == BR_KV_UNDEF)
            val[v] = br_kfn_undef(p->m, p->f, (br_kclass)x->cls);
    }
    for (uint32_t b = 0; b < g->blks.n; b++)
        for (size_t k = 0; k < g->blks.at[b].ins.n && !p->m->oom; k++) {
            const br_kins *i = &g->ins.at[g->blks.at[b].ins.at[k]];
            br_kins copy = *i;
            uint32_t id;

            if (i->op == BR_K_FRAME)
                copy.imm += base;
            if (i->op == BR_K_RET)
                copy.op = BR_K_BR;
            id = br_kfn_ins(p->m, p->f, first + b, &copy, br_kargs(g, i));
            for (unsigned r = 0; r < i->n_res; r++)
                val[i->res + r] = p->f->ins.at[id].res + r;
        }
}

static void
copy_edges(put *p, const br_kfn *g, uint32_t first, uint32_t from,
           uint32_t back)
{
    for (uint32_t b = 0; b < g->blks.n && !p->m->oom; b++) {
        const br_kblk *old = &g->blks.at[b];
        br_kblk *k = &p->f->blks.at[first + b];
        bool ok = true;

        for (size_t s = 0; s < old->succ.n; s++)
            ok &= br_vec_push(&k->succ, first + old->succ.at[s]);
        for (size_t e = 0; e < old->pred.n; e++)
            ok &= br_vec_push(&k->pred, first + old->pred.at[e]);
        if (b == 0)
            ok &= br_vec_push(&k->pred, from);
        if (g->ins.at[old->ins.at[old->ins.n - 1]].op == BR_K_RET)
            ok &= br_vec_push(&k->succ, back) &&
                  br_vec_push(&p->f->blks.at[back].pred, first + b);
        p->m->oom |= !ok;
    }
}

/* What followed b follows `back` now, its terminator too. */
static void
hand_on(put *p, uint32_t b, uint32_t back, uint32_t terminator)
{
    br_kblk *k = &p->f->blks.at[b], *to = &p->f->blks.at[back];
    bool ok = br_vec_push(&to->ins, terminator);

    for (size_t s = 0; ok && s < k->succ.n; s++)
        ok = br_vec_push(&to->succ, k->succ.at[s]);
    p->m->oom |= !ok;
    k->succ.n = 0;
    for (size_t s = 0; ok && s < to->succ.n; s++) {
        br_kblk *x = &p->f->blks.at[to->succ.at[s]];

        for (size_t e = 0; e < x->pred.n; e++)
            if (x->pred.at[e] == b)
                x->pred.at[e] = back;
        br_kfn_sort_preds(p->f, x);
    }
}

/* The call that ends block b. acc: room. */
static void
put_in(put *p, uint32_t b, const br_kfn *g, accesses *acc)
{
    br_kfn *f = p->f;
    uint32_t first = (uint32_t)f->blks.n, back = first + (uint32_t)g->blks.n;
    uint32_t base = (f->frame_bytes + 15) & ~15u;
    size_t n = f->blks.at[b].ins.n;
    uint32_t terminator = f->blks.at[b].ins.at[n - 1];
    br_kins call = f->ins.at[f->blks.at[b].ins.at[n - 2]];
    uint32_t *val = br_try_calloc(g->vals.n + call.n_arg + 1, sizeof *val);
    uint32_t *arg = val ? val + g->vals.n : NULL, from = (uint32_t)f->ins.n;

    for (uint32_t k = first; k <= back; k++)
        br_kfn_blk(p->m, f);
    if (!val || p->m->oom) {
        p->m->oom = true;
        br_free(val);
        return;
    }
    memcpy(arg, br_kargs(f, &call), call.n_arg * sizeof *arg);
    look(g, acc);
    f->blks.at[b].ins.n -= 2;
    copy_instructions(p, g, first, base, val);
    for (size_t k = from; k < f->ins.n && !p->m->oom; k++)
        for (unsigned a = 0; a < f->ins.at[k].n_arg; a++) {
            uint32_t *x = &br_kargs(f, &f->ins.at[k])[a];

            *x = val[*x];
        }
    for (size_t k = 0; k < g->params.n; k++)
        pass(p, g->params.at[k].result ? back : b, &g->params.at[k], acc, base,
             arg[k], call.line);
    emit(p, b, (br_kins){.op = BR_K_BR, .line = call.line}, NULL);
    if (!p->m->oom) {
        hand_on(p, b, back, terminator);
        copy_edges(p, g, first, b, back);
        br_kfn_edge(p->m, f, b, first);
    }
    for (size_t k = 0; k < g->params.n; k++)
        object(p, base + (uint64_t)g->params.at[k].offset,
               g->params.at[k].bytes);
    object(p, base, g->frame_bytes);
    f->frame_bytes = base + g->frame_bytes;
    p->any = true;
    br_free(val);
}

static void
each_call(put *p, accesses *acc)
{
    for (uint32_t b = 0; b < p->f->blks.n && !p->m->oom; b++) {
        const br_kblk *k = &p->f->blks.at[b];
        const br_kins *i =
            k->ins.n > 1 ? &p->f->ins.at[k->ins.at[k->ins.n - 2]] : NULL;

        if (i && i->op == BR_K_CALL && fits(p, i->sym & ~BR_KFN_SYM))
            put_in(p, b, &p->m->fns.at[i->sym & ~BR_KFN_SYM], acc);
    }
}

bool
br_kpass_inline(br_kir *m, br_kfn *f)
{
    put p = {.m = m, .f = f};
    accesses *acc = NULL;

    if (!find_places(&p)) {
        br_vec_fini(&p.objs);
        return false;
    }
    p.fits = br_try_calloc(2 * m->fns.n, 1);
    acc = br_try_alloc(sizeof *acc);
    if (!p.fits || !acc)
        m->oom = true;
    p.seen = p.fits ? p.fits + m->fns.n : NULL;
    if (!m->oom)
        each_call(&p, acc);
    if (p.any && !m->oom)
        br_kfn_drop_dead(m, f);
    if (p.vague)
        p.objs.n = 0;
    object(&p, 0, f->frame_bytes);
    if (p.any && !m->oom && !br_kfn_promote(m, f, p.objs.at, p.objs.n))
        m->oom = true;
    br_vec_fini(&p.objs);
    br_free(p.fits);
    br_free(acc);
    return p.any;
}
