/* gcn_lower.c - see gcn_lower.h.
 *
 *     call %a %b @f      ->  f's blocks, its frame behind ours; the places of
 *                            its parameters are those that we filled
 *     div.rz.f64 %a %b   ->  the same with a function of the library
 *     switch             ->  compare and branch, one target after another
 *
 * Blocks are copied in reverse post order, so that all but the arguments of
 * phis are there when they are used; those are filled in the end, when the
 * order of edges is known. A function that calls itself has no code here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_lower.h"

#include "cg/kir_pass.h"
#include "cg/ptx/ptx.h"

#include <string.h>

enum {
    MAX_DEPTH = 32,      /* of calls */
    MAX_BLOCKS = 1 << 16 /* of the copy */
};

typedef struct edge {
    uint32_t from, val;
} edge;

typedef struct phi {
    uint32_t ins, blk, first, n; /* of edges */
} phi;

typedef struct lib {
    char *text;
    br_kir *m;
} lib;

typedef struct lower {
    br_kir *m; /* the copy */
    br_kfn *f;
    uint32_t cur, line; /* where instructions go */
    BR_VEC(edge) edges;
    BR_VEC(phi) phis;
    BR_VEC(gm_obj) objs;
    BR_VEC(lib) libs;
    unsigned depth;
    bool changed;
    br_code code;
    br_status *st;
} lower;

/* A function that is copied. */
typedef struct copy {
    const br_kir *m;
    const br_kfn *f;
    uint32_t base;         /* of its frame in ours */
    const uint64_t *param; /* where its parameters are; NULL: in its frame */
    uint32_t back;         /* where it returns to; BR_KNONE: it ends */
    uint32_t *val, *first, *last, *chain;
    const uint32_t *vars; /* number of its variables in ours; NULL: the same */
} copy;

static void put_fn(lower *l, copy *c);

static void
fail(lower *l, const copy *c, const br_kins *i, const char *why)
{
    br_str s = {0};

    if (l->code != BR_OK)
        return;
    br_kins_print(c->m, c->f, i, &s);
    l->code = br_fail(l->st, BR_E_UNSUPPORTED,
                      "%.*s: line %u: has no code for this yet: %s%s%s",
                      (int)BR_MIN(l->f->name.n, (size_t)80), l->f->name.p,
                      i->line ? i->line : l->line,
                      br_str_z(&s) + strspn(br_str_z(&s), " "),
                      *why ? ": " : "", why);
    br_str_fini(&s);
}

static uint32_t
emit(lower *l, const br_kins *proto, const uint32_t *args)
{
    br_kins i = *proto;
    uint32_t id;

    i.line = i.line ? i.line : l->line;
    id = br_kfn_ins(l->m, l->f, l->cur, &i, args);
    return l->f->ins.at[id].res;
}

static uint32_t
one(lower *l, br_kop op, br_ktype t, uint32_t mods, uint32_t a, uint32_t b,
    uint32_t c, unsigned n)
{
    br_kins i = {.op = (uint8_t)op,
                 .type = (uint8_t)t,
                 .n_arg = (uint16_t)n,
                 .n_res = 1,
                 .mods = mods,
                 .sym = BR_KNONE};

    return emit(l, &i, (uint32_t[]){a, b, c});
}

static uint32_t
number(lower *l, br_kclass c, uint64_t v)
{
    return br_kfn_const(l->m, l->f, c, v);
}

/* ---- values ------------------------------------------------------------ */

static uint32_t
value(lower *l, copy *c, uint32_t v)
{
    const br_kval *k = &c->f->vals.at[v];

    if (c->val[v] == BR_KNONE)
        c->val[v] = k->kind == BR_KV_CONST
                        ? number(l, (br_kclass)k->cls, k->bits)
                        : br_kfn_undef(l->m, l->f, (br_kclass)k->cls);
    return c->val[v];
}

/* Where a place of the function's frame is in ours. */
static int64_t
frame_at(const copy *c, int64_t at)
{
    for (size_t k = 0; c->param && k < c->f->params.n; k++) {
        const br_kparam *p = &c->f->params.at[k];

        if (at >= p->offset && at < (int64_t)p->offset + p->bytes)
            return (int64_t)c->param[k] + at - p->offset;
    }
    return c->base + at;
}

static uint32_t
frame(lower *l, uint64_t at)
{
    br_kins i = {.op = BR_K_FRAME, .imm = (int64_t)at, .sym = BR_KNONE};

    return emit(l, &i, NULL);
}

/* As many bytes at the end of our frame. */
static uint32_t
more_frame(lower *l, uint32_t bytes)
{
    uint64_t at = (l->f->frame_bytes + 15ull) & ~15ull;

    if (at + bytes > BR_KMAX_BYTES) {
        l->code = br_fail(l->st, BR_E_LIMIT,
                          "local memory of more than %d "
                          "bytes",
                          BR_KMAX_BYTES);
        return 0;
    }
    l->f->frame_bytes = (uint32_t)(at + bytes);
    return (uint32_t)at;
}

static bool
object(lower *l, uint64_t at, uint64_t bytes)
{
    gm_obj o = {at, bytes};

    if (bytes && !br_vec_push(&l->objs, o))
        l->m->oom = true;
    return !l->m->oom;
}

/* ---- functions put in -------------------------------------------------- */

/* f's blocks between here and a block that is then the current one. */
static void
put_in(lower *l, copy *c)
{
    br_kins br = {.op = BR_K_BR, .sym = BR_KNONE};
    uint32_t from = l->cur, line = l->line;

    if (l->depth == MAX_DEPTH || l->f->blks.n > MAX_BLOCKS) {
        l->code = br_fail(l->st, BR_E_UNSUPPORTED,
                          "%.*s: line %u: has no code for this yet: calls over "
                          "%d deep, or of a function by itself",
                          (int)BR_MIN(l->f->name.n, (size_t)80), l->f->name.p,
                          line, MAX_DEPTH);
        return;
    }
    l->depth++;
    l->changed = true;
    c->base = more_frame(l, c->f->frame_bytes);
    c->back = br_kfn_blk(l->m, l->f);
    if (l->code == BR_OK && object(l, c->base, c->f->frame_bytes))
        put_fn(l, c);
    l->depth--;
    if (l->code != BR_OK || l->m->oom)
        return;
    l->cur = from;
    emit(l, &br, NULL);
    br_kfn_edge(l->m, l->f, from, c->first[0]);
    l->cur = c->back;
    l->line = line;
}

static void
free_copy(copy *c)
{
    br_free(c->val);
    br_free(c->first);
}

static br_kir *
lib_of(lower *l, const char *text, size_t n)
{
    lib x = {0};

    for (size_t k = 0; k < l->libs.n; k++)
        if (strcmp(l->libs.at[k].text, text) == 0)
            return l->libs.at[k].m;
    l->code =
        br_ptx_parse(&x.m, text, n, &(br_ptx_opts){.strict = true}, l->st);
    if (l->code != BR_OK)
        return NULL;
    x.text = br_try_calloc(n + 1, 1);
    if (!x.text || !br_vec_push(&l->libs, x)) {
        br_free(x.text);
        br_kir_free(x.m);
        l->m->oom = true;
        return NULL;
    }
    memcpy(x.text, text, n);
    return x.m;
}

/* Variables of a module that are not in ours yet. */
static void
add_vars(lower *l, const br_kir *m, uint32_t *vars)
{
    for (uint32_t k = 0; k < m->vars.n; k++) {
        const br_kvar *v = &m->vars.at[k];

        vars[k] = br_kir_find_var(l->m, v->name);
        if (vars[k] != BR_KNONE)
            continue;
        vars[k] = br_kir_var(l->m, v->name);
        l->m->vars.at[vars[k]].space = v->space;
        l->m->vars.at[vars[k]].align = v->align;
        l->m->vars.at[vars[k]].bytes = v->bytes;
    }
}

/* The library's function for one without a body: brass_ and its name. */
static bool
host_fn(lower *l, br_text name, copy *c, uint32_t *vars, size_t n_vars)
{
    br_text text = gm_host_text();
    br_kir *m = lib_of(l, text.p, text.n);
    br_str s = {0};
    uint32_t fn;

    if (!m)
        return false;
    br_str_printf(&s, "brass_%.*s", (int)BR_MIN(name.n, (size_t)200), name.p);
    l->m->oom |= s.oom;
    fn = s.oom ? BR_KNONE : br_kir_find_fn(m, (br_text){s.at, s.n});
    br_str_fini(&s);
    if (fn == BR_KNONE)
        return false;
    br_check(m->vars.n <= n_vars && "variables of the host's functions");
    add_vars(l, m, vars);
    c->m = m;
    c->f = &m->fns.at[fn];
    c->vars = vars;
    return true;
}

/* Function fn with the arguments of i from the first-th on. */
static void
call(lower *l, copy *from, const br_kins *i, uint32_t fn, unsigned first)
{
    const br_kfn *f = &from->m->fns.at[fn];
    uint64_t at[64];
    uint32_t vars[4];
    copy c = {.m = from->m, .f = f, .param = at, .vars = from->vars};

    if (f->external && !host_fn(l, f->name, &c, vars, BR_COUNT(vars))) {
        fail(l, from, i, "the function has no body here");
        return;
    }
    f = c.f;
    if (f->entry || f->params.n + first != i->n_arg ||
        f->params.n > BR_COUNT(at)) {
        fail(l, from, i, "the call does not fit the function");
        return;
    }
    for (size_t k = 0; k < f->params.n; k++) {
        const br_kval *v =
            &l->f->vals.at[value(l, from, br_kargs(from->f, i)[first + k])];
        const br_kins *d = &l->f->ins.at[v->def];

        if (v->kind != BR_KV_INS || d->op != BR_K_FRAME) {
            fail(l, from, i, "an argument that is no place of the frame");
            return;
        }
        at[k] = (uint64_t)d->imm;
        if (!object(l, at[k], f->params.at[k].bytes))
            return;
    }
    put_in(l, &c);
    free_copy(&c);
}

/* Whether the module has the address of a function somewhere. */
static bool
address_taken(const br_kir *m, uint32_t fn)
{
    for (size_t f = 0; f < m->fns.n; f++)
        for (size_t k = 0; k < m->fns.at[f].ins.n; k++) {
            const br_kins *i = &m->fns.at[f].ins.at[k];

            if (i->op == BR_K_ADDR && i->sym == (fn | BR_KFN_SYM))
                return true;
        }
    for (size_t v = 0; v < m->vars.n; v++)
        for (size_t k = 0; k < m->vars.at[v].relocs.n; k++)
            if (m->vars.at[v].relocs.at[k].sym == (fn | BR_KFN_SYM))
                return true;
    return false;
}

/* Through a pointer: each function that it may be, compared. */
static void
call_any(lower *l, copy *from, const br_kins *i)
{
    uint32_t eq = br_kmod_put(BR_KF_CMP, BR_KM_CMP_EQ), join, yes, no, p;
    uint32_t to = value(l, from, br_kargs(from->f, i)[0]);
    br_kins cbr = {.op = BR_K_CBR, .n_arg = 1, .sym = BR_KNONE};
    br_kins br = {.op = BR_K_BR, .sym = BR_KNONE};
    br_kins trap = {.op = BR_K_TRAP, .sym = BR_KNONE};

    l->changed = true;
    join = br_kfn_blk(l->m, l->f);
    for (uint32_t fn = 0; fn < from->m->fns.n && l->code == BR_OK; fn++) {
        const br_kfn *f = &from->m->fns.at[fn];

        if (f->external || f->entry || f->params.n + 1 != i->n_arg ||
            !address_taken(from->m, fn))
            continue;
        p = one(l, BR_K_SETP, BR_KT_B64, eq, to,
                number(l, BR_KC_B64, BR_KFN_ADDR(fn)), 0, 2);
        emit(l, &cbr, &p);
        yes = br_kfn_blk(l->m, l->f);
        no = br_kfn_blk(l->m, l->f);
        br_kfn_edge(l->m, l->f, l->cur, yes);
        br_kfn_edge(l->m, l->f, l->cur, no);
        l->cur = yes;
        call(l, from, i, fn, 1);
        emit(l, &br, NULL);
        br_kfn_edge(l->m, l->f, l->cur, join);
        l->cur = no;
    }
    emit(l, &trap, NULL);
    emit(l, &br, NULL);
    br_kfn_edge(l->m, l->f, l->cur, join);
    l->cur = join;
}

/* ---- the library ------------------------------------------------------- */

static br_ktype
bits_type(unsigned cls)
{
    return cls == BR_KC_B64   ? BR_KT_B64
           : cls == BR_KC_B16 ? BR_KT_B16
                              : BR_KT_B32;
}

enum { LOCAL = BR_KM_SPACE_LOCAL };

static void
give(lower *l, uint64_t at, uint32_t v)
{
    unsigned cls = l->f->vals.at[v].cls;
    uint32_t mods = br_kmod_put(BR_KF_SPACE, LOCAL), to = frame(l, at);
    br_kins st = {.op = BR_K_ST,
                  .type = (uint8_t)bits_type(cls),
                  .n_arg = 2,
                  .mods = mods,
                  .sym = BR_KNONE};

    if (cls == BR_KC_PRED)
        v = one(l, BR_K_SELECT, BR_KT_B32, 0, number(l, BR_KC_B32, 1),
                number(l, BR_KC_B32, 0), v, 3);
    emit(l, &st, (uint32_t[]){to, v});
}

static uint32_t
take(lower *l, uint64_t at, unsigned cls)
{
    uint32_t mods = br_kmod_put(BR_KF_SPACE, LOCAL), from = frame(l, at);
    uint32_t v = one(l, BR_K_LD, bits_type(cls), mods, from, 0, 0, 1);

    if (cls != BR_KC_PRED)
        return v;
    return one(l, BR_K_SETP, BR_KT_B32, br_kmod_put(BR_KF_CMP, BR_KM_CMP_NE), v,
               number(l, BR_KC_B32, 0), 0, 2);
}

static void
from_lib(lower *l, copy *from, const br_kins *i, const br_str *text)
{
    br_kir *m = lib_of(l, text->at, text->n);
    const br_kfn *f = m ? &m->fns.at[0] : NULL;
    uint64_t at[64];
    uint32_t vars[4];
    copy c = {.m = m, .f = f, .param = at, .vars = vars};

    if (!m)
        return;
    br_check(f->params.n == (size_t)i->n_arg + i->n_res &&
             f->params.n <= BR_COUNT(at) && m->vars.n <= BR_COUNT(vars) &&
             "a function of the library");
    add_vars(l, m, vars);
    for (size_t k = 0; k < f->params.n; k++) {
        at[k] = more_frame(l, 8);
        if (l->code != BR_OK || !object(l, at[k], f->params.at[k].bytes))
            return;
    }
    for (unsigned k = 0; k < i->n_arg; k++)
        give(l, at[i->n_res + k], value(l, from, br_kargs(from->f, i)[k]));
    put_in(l, &c);
    for (unsigned k = 0; l->code == BR_OK && k < i->n_res; k++)
        from->val[i->res + k] =
            take(l, at[k], from->f->vals.at[i->res + k].cls);
    free_copy(&c);
}

/* ---- one function ------------------------------------------------------ */

static void
put_phi(lower *l, copy *c, uint32_t blk, const br_kins *i)
{
    br_kins x = *i;
    phi p = {.blk = l->cur, .n = i->n_arg};

    x.n_arg = 0;
    p.ins = br_kfn_ins(l->m, l->f, l->cur, &x, NULL);
    c->val[i->res] = l->f->ins.at[p.ins].res;
    p.first = blk; /* until fill_phis */
    if (!br_vec_push(&l->phis, p))
        l->m->oom = true;
}

/* The block that an edge comes from. */
static uint32_t
edge_from(const copy *c, uint32_t to, uint32_t nth)
{
    const br_kblk *t = &c->f->blks.at[to];
    uint32_t from = t->pred.at[nth], same = 0, s = 0;
    const br_kblk *b = &c->f->blks.at[from];

    if (c->chain[from] == BR_KNONE)
        return c->last[from];
    for (uint32_t k = 0; k < nth; k++)
        same += t->pred.at[k] == from;
    while (b->succ.at[s] != to || same-- > 0)
        s++;
    return c->chain[from] + BR_MIN(s, (uint32_t)b->succ.n - 2);
}

/* The arguments of this function's phis, by edges. */
static void
fill_phis(lower *l, copy *c, size_t from)
{
    size_t at = from;

    for (uint32_t b = 0; b < c->f->blks.n; b++)
        for (size_t k = 0; k < c->f->blks.at[b].ins.n; k++) {
            const br_kins *i = &c->f->ins.at[c->f->blks.at[b].ins.at[k]];
            phi *p = NULL;

            if (i->op != BR_K_PHI)
                break;
            for (at = from; at < l->phis.n; at++)
                if (l->f->ins.at[l->phis.at[at].ins].res == c->val[i->res])
                    p = &l->phis.at[at];
            if (!p)
                return;
            p->first = (uint32_t)l->edges.n;
            for (unsigned a = 0; a < i->n_arg; a++) {
                edge e = {edge_from(c, b, a),
                          value(l, c, br_kargs(c->f, i)[a])};

                if (!br_vec_push(&l->edges, e))
                    l->m->oom = true;
            }
        }
}

static void
put_switch(lower *l, copy *c, const br_kblk *b, uint32_t blk, uint32_t v)
{
    uint32_t n = (uint32_t)b->succ.n, mods, p;
    br_kins cbr = {.op = BR_K_CBR, .n_arg = 1, .sym = BR_KNONE};
    br_kins br = {.op = BR_K_BR, .sym = BR_KNONE};

    mods = br_kmod_put(BR_KF_CMP, BR_KM_CMP_EQ);
    l->changed = true;
    if (n == 1) {
        emit(l, &br, NULL);
        br_kfn_edge(l->m, l->f, l->cur, c->first[b->succ.at[0]]);
        return;
    }
    emit(l, &br, NULL);
    c->chain[blk] = (uint32_t)l->f->blks.n;
    for (uint32_t s = 0; s + 1 < n; s++)
        br_kfn_blk(l->m, l->f);
    br_kfn_edge(l->m, l->f, l->cur, c->chain[blk]);
    for (uint32_t s = 0; !l->m->oom && s + 1 < n; s++) {
        l->cur = c->chain[blk] + s;
        p = one(l, BR_K_SETP, BR_KT_B32, mods, v, number(l, BR_KC_B32, s), 0,
                2);
        emit(l, &cbr, &p);
        br_kfn_edge(l->m, l->f, l->cur, c->first[b->succ.at[s]]);
        br_kfn_edge(l->m, l->f, l->cur,
                    s + 2 < n ? l->cur + 1 : c->first[b->succ.at[n - 1]]);
    }
}

static void
put_end(lower *l, copy *c, uint32_t blk, const br_kins *i)
{
    const br_kblk *b = &c->f->blks.at[blk];
    br_kins x = *i;
    uint32_t v = i->n_arg ? value(l, c, br_kargs(c->f, i)[0]) : 0;

    c->last[blk] = l->cur;
    if (i->op == BR_K_SWITCH) {
        put_switch(l, c, b, blk, v);
        return;
    }
    if (i->op == BR_K_RET && c->back != BR_KNONE) {
        x.op = BR_K_BR;
        br_kfn_edge(l->m, l->f, l->cur, c->back);
    }
    emit(l, &x, &v);
    for (size_t s = 0; s < b->succ.n; s++)
        br_kfn_edge(l->m, l->f, l->cur, c->first[b->succ.at[s]]);
}

static void
put_ins(lower *l, copy *c, uint32_t blk, const br_kins *i)
{
    uint32_t args[BR_KMAX_ARGS];
    br_str text = {0};
    br_kins x = *i;
    uint32_t r;

    l->line = i->line ? i->line : l->line;
    x.line = l->line;
    if (i->op == BR_K_PHI) {
        put_phi(l, c, blk, i);
    } else if (br_kopinfo_of[i->op].props & BR_KP_TERM) {
        put_end(l, c, blk, i);
    } else if (i->op == BR_K_CALL) {
        call(l, c, i, i->sym & ~BR_KFN_SYM, 0);
    } else if (i->op == BR_K_CALLI) {
        call_any(l, c, i);
    } else if (i->op == BR_K_ADDR && i->sym & BR_KFN_SYM) {
        c->val[i->res] =
            number(l, BR_KC_B64, BR_KFN_ADDR(i->sym & ~BR_KFN_SYM));
    } else if (!gm_has_code(c->f, i) && gm_lib_text(c->f, i, &text)) {
        from_lib(l, c, i, &text);
    } else {
        if (i->op == BR_K_FRAME)
            x.imm = frame_at(c, i->imm);
        if (i->op == BR_K_ADDR && c->vars)
            x.sym = c->vars[i->sym];
        for (unsigned a = 0; a < i->n_arg; a++)
            args[a] = value(l, c, br_kargs(c->f, i)[a]);
        r = emit(l, &x, args);
        for (unsigned k = 0; k < i->n_res; k++)
            c->val[i->res + k] = r + k;
    }
    br_str_fini(&text);
}

static void
put_fn(lower *l, copy *c)
{
    const br_kfn *f = c->f;
    size_t nb = f->blks.n, nv = f->vals.n, phis = l->phis.n;
    uint32_t *mem = br_try_calloc(5 * nb + 1, sizeof *mem), *rpo, n;

    c->val = br_try_alloc((nv + 1) * sizeof *c->val);
    c->first = mem;
    if (!mem || !c->val) {
        l->m->oom = true;
        return;
    }
    memset(c->val, 0xff, nv * sizeof *c->val);
    c->last = mem + nb;
    c->chain = mem + 2 * nb;
    memset(c->chain, 0xff, nb * sizeof *c->chain);
    rpo = mem + 3 * nb;
    n = br_kfn_rpo(f, rpo, mem + 4 * nb);
    for (uint32_t b = 0; b < nb; b++)
        c->first[b] = br_kfn_blk(l->m, l->f);
    for (uint32_t k = 0; k < n; k++) {
        const br_kblk *b = &f->blks.at[rpo[k]];

        l->cur = c->first[rpo[k]];
        for (size_t x = 0; x < b->ins.n && l->code == BR_OK && !l->m->oom; x++)
            put_ins(l, c, rpo[k], &f->ins.at[b->ins.at[x]]);
    }
    if (l->code == BR_OK && !l->m->oom)
        fill_phis(l, c, phis);
}

/* ---- the whole --------------------------------------------------------- */

/* Phis get their arguments in the order of edges. */
static void
order_phis(lower *l)
{
    br_kfn_preds(l->m, l->f);
    for (size_t k = 0; k < l->phis.n && !l->m->oom; k++) {
        const phi *p = &l->phis.at[k];
        const br_kblk *b = &l->f->blks.at[p->blk];
        uint32_t at = (uint32_t)l->f->args.n;

        for (size_t e = 0; e < b->pred.n; e++)
            for (uint32_t x = 0; x < p->n; x++) {
                edge *y = &l->edges.at[p->first + x];

                if (y->from != b->pred.at[e])
                    continue;
                if (!br_vec_push(&l->f->args, y->val))
                    l->m->oom = true;
                y->from = BR_KNONE;
                break;
            }
        l->f->ins.at[p->ins].arg = at;
        l->f->ins.at[p->ins].n_arg = (uint16_t)(l->f->args.n - at);
    }
}

/* The module's variables with their numbers, and the one function. */
static void
begin(lower *l, const br_kir *m, uint32_t fn)
{
    for (size_t k = 0; k < m->vars.n; k++) {
        const br_kvar *v = &m->vars.at[k];
        br_kvar *x;

        (void)br_kir_var(l->m, v->name);
        x = &l->m->vars.at[l->m->vars.n - 1];
        x->space = v->space;
        x->external = v->external;
        x->align = v->align;
        x->bytes = v->bytes;
    }
    (void)br_kir_fn(l->m, m->fns.at[fn].name);
    for (size_t k = 0; k < m->notes.n; k++)
        (void)br_kir_note(l->m, m->notes.at[k].line, "%.*s",
                          (int)m->notes.at[k].text.n, m->notes.at[k].text.p);
    if (l->m->oom)
        return;
    l->f = &l->m->fns.at[0];
    for (size_t p = 0; p < m->fns.at[fn].params.n; p++)
        if (!br_vec_push(&l->f->params, m->fns.at[fn].params.at[p]))
            l->m->oom = true;
    l->f->entry = true;
    l->f->line = m->fns.at[fn].line;
    l->f->param_bytes = m->fns.at[fn].param_bytes;
    l->f->frame_bytes = m->fns.at[fn].frame_bytes;
    l->f->max_threads = m->fns.at[fn].max_threads;
    l->f->req_threads = m->fns.at[fn].req_threads;
}

/* Whether anything is left in local memory. */
static bool
has_frame(const br_kfn *f)
{
    for (size_t b = 0; b < f->blks.n; b++)
        for (size_t k = 0; k < f->blks.at[b].ins.n; k++)
            if (f->ins.at[f->blks.at[b].ins.at[k]].op == BR_K_FRAME)
                return true;
    return false;
}

static void
finish(lower *l)
{
    order_phis(l);
    if (l->m->oom)
        return;
    br_kfn_drop_dead(l->m, l->f);
    if (!gm_promote(l->m, l->f, l->objs.at, l->objs.n))
        l->m->oom = true;
    if (l->m->oom)
        return;
    l->code = br_kir_verify(l->m, l->st);
    if (l->code == BR_OK && l->changed)
        l->code = br_kir_optimise(l->m, NULL, l->st);
    if (l->code == BR_OK && !has_frame(l->f))
        l->f->frame_bytes = 0;
}

br_code
gm_lower(br_kir **out, const br_kir *m, uint32_t fn, br_status *st)
{
    lower l = {.m = br_kir_new(st), .st = st};
    copy c = {.m = m, .f = &m->fns.at[fn], .back = BR_KNONE};

    *out = NULL;
    if (!l.m)
        return BR_E_OOM;
    begin(&l, m, fn);
    if (!l.m->oom && object(&l, 0, l.f->frame_bytes))
        put_fn(&l, &c);
    if (l.code == BR_OK && !l.m->oom)
        finish(&l);
    free_copy(&c);
    for (size_t k = 0; k < l.libs.n; k++) {
        br_free(l.libs.at[k].text);
        br_kir_free(l.libs.at[k].m);
    }
    br_vec_fini(&l.libs);
    br_vec_fini(&l.edges);
    br_vec_fini(&l.phis);
    br_vec_fini(&l.objs);
    if (l.code == BR_OK && l.m->oom)
        l.code = br_fail(st, BR_E_OOM, "out of memory");
    if (l.code == BR_OK)
        *out = l.m;
    else
        br_kir_free(l.m);
    return l.code;
}
