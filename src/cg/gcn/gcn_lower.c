/* gcn_lower.c - see gcn_lower.h.
 *
 *     call %a %b @f      ->  f's blocks, its frame behind ours; the places of
 *                            its parameters are those that we filled
 *     div.rz.f64 %a %b   ->  the same with a function of the library
 *     switch             ->  compare and branch, one target after another
 *
 * Blocks are copied in reverse post order, so that all but the arguments of
 * phis are there when they are used; those are filled in the end, when the
 * order of edges is known. Functions that call themselves: gcn_recurse.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_lower_int.h"
#include "cg/gcn/gcn_mir.h"

#include <string.h>

void
gl_fail(lower *l, const copy *c, const br_kins *i, const char *why)
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

uint32_t
gl_emit(lower *l, const br_kins *proto, const uint32_t *args)
{
    br_kins i = *proto;
    uint32_t id;

    i.line = i.line ? i.line : l->line;
    id = br_kfn_ins(l->m, l->f, l->cur, &i, args);
    return l->f->ins.at[id].res;
}

uint32_t
gl_one(lower *l, br_kop op, br_ktype t, uint32_t mods, uint32_t a, uint32_t b,
       uint32_t c, unsigned n)
{
    br_kins i = {.op = (uint8_t)op,
                 .type = (uint8_t)t,
                 .n_arg = (uint16_t)n,
                 .n_res = 1,
                 .mods = mods,
                 .sym = BR_KNONE};

    return gl_emit(l, &i, (uint32_t[]){a, b, c});
}

uint32_t
gl_number(lower *l, br_kclass c, uint64_t v)
{
    return br_kfn_const(l->m, l->f, c, v);
}

void
gl_goto(lower *l, uint32_t blk)
{
    br_kins br = {.op = BR_K_BR, .sym = BR_KNONE};

    gl_emit(l, &br, NULL);
    br_kfn_edge(l->m, l->f, l->cur, blk);
}

void
gl_branch(lower *l, uint32_t p, uint32_t yes, uint32_t no)
{
    br_kins cbr = {.op = BR_K_CBR, .n_arg = 1, .sym = BR_KNONE};

    gl_emit(l, &cbr, &p);
    br_kfn_edge(l->m, l->f, l->cur, yes);
    br_kfn_edge(l->m, l->f, l->cur, no);
    l->cur = no;
}

/* ---- values ------------------------------------------------------------ */

uint32_t
gl_value(lower *l, copy *c, uint32_t v)
{
    const br_kval *k = &c->f->vals.at[v];

    if (k->kind == BR_KV_INS && c->rec)
        return gl_rec_value(l, c, v);
    if (c->val[v] == BR_KNONE)
        c->val[v] = k->kind == BR_KV_CONST
                        ? gl_number(l, (br_kclass)k->cls, k->bits)
                        : br_kfn_undef(l->m, l->f, (br_kclass)k->cls);
    return c->val[v];
}

void
gl_define(lower *l, copy *c, uint32_t v, uint32_t is)
{
    c->val[v] = is;
    if (c->rec)
        gl_rec_define(l, c, v);
}

int64_t
gl_frame_at(const copy *c, int64_t at)
{
    for (size_t k = 0; c->param && k < c->f->params.n; k++) {
        const br_kparam *p = &c->f->params.at[k];

        if (at >= p->offset && at < (int64_t)p->offset + p->bytes)
            return (int64_t)c->param[k] + at - p->offset;
    }
    return c->base + at;
}

uint32_t
gl_frame(lower *l, uint64_t at)
{
    br_kins i = {.op = BR_K_FRAME, .imm = (int64_t)at, .sym = BR_KNONE};

    return gl_emit(l, &i, NULL);
}

uint32_t
gl_more_frame(lower *l, uint32_t bytes)
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

bool
gl_object(lower *l, uint64_t at, uint64_t bytes)
{
    br_kobj o = {at, bytes};

    if (l->tight && at >= l->own) /* what lies there is many things: finish() */
        return true;
    if (bytes && !br_vec_push(&l->objs, o))
        l->m->oom = true;
    return !l->m->oom;
}

static br_kins
access(br_kop op, br_ktype t, int64_t off)
{
    return (br_kins){.op = (uint8_t)op,
                     .type = (uint8_t)t,
                     .n_arg = op == BR_K_LD ? 1 : 2,
                     .n_res = op == BR_K_LD,
                     .mods = br_kmod_put(BR_KF_SPACE, BR_KM_SPACE_LOCAL),
                     .sym = BR_KNONE,
                     .imm = off};
}

uint32_t
gl_load(lower *l, uint32_t addr, int64_t off, br_ktype t)
{
    br_kins i = access(BR_K_LD, t, off);

    return gl_emit(l, &i, &addr);
}

void
gl_store(lower *l, uint32_t addr, int64_t off, br_ktype t, uint32_t v)
{
    br_kins i = access(BR_K_ST, t, off);

    gl_emit(l, &i, (uint32_t[]){addr, v});
}

static br_ktype
bits_type(unsigned cls)
{
    return cls == BR_KC_B64   ? BR_KT_B64
           : cls == BR_KC_B16 ? BR_KT_B16
                              : BR_KT_B32;
}

void
gl_give(lower *l, uint32_t addr, int64_t off, uint32_t v)
{
    unsigned cls = l->f->vals.at[v].cls;

    if (cls == BR_KC_PRED)
        v = gl_one(l, BR_K_SELECT, BR_KT_B32, 0, gl_number(l, BR_KC_B32, 1),
                   gl_number(l, BR_KC_B32, 0), v, 3);
    gl_store(l, addr, off, bits_type(cls), v);
}

uint32_t
gl_take(lower *l, uint32_t addr, int64_t off, unsigned cls)
{
    uint32_t v = gl_load(l, addr, off, bits_type(cls));

    if (cls != BR_KC_PRED)
        return v;
    return gl_one(l, BR_K_SETP, BR_KT_B32, br_kmod_put(BR_KF_CMP, BR_KM_CMP_NE),
                  v, gl_number(l, BR_KC_B32, 0), 0, 2);
}

/* ---- one function ------------------------------------------------------ */

static void
put_phi(lower *l, copy *c, uint32_t blk, const br_kins *i)
{
    br_kins x = *i;
    phi p = {.blk = l->cur, .n = i->n_arg};

    if (c->rec) {
        gl_define(l, c, i->res,
                  gl_take(l, gl_rec_addr(l, c), c->in_slot[i->res],
                          c->f->vals.at[i->res].cls));
        return;
    }
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
                          gl_value(l, c, br_kargs(c->f, i)[a])};

                if (!br_vec_push(&l->edges, e))
                    l->m->oom = true;
            }
        }
}

static void
put_switch(lower *l, copy *c, const br_kblk *b, uint32_t blk, uint32_t v)
{
    uint32_t n = (uint32_t)b->succ.n, mods, p;

    mods = br_kmod_put(BR_KF_CMP, BR_KM_CMP_EQ);
    l->changed = true;
    if (n == 1) {
        gl_goto(l, c->first[b->succ.at[0]]);
        return;
    }
    c->chain[blk] = (uint32_t)l->f->blks.n;
    for (uint32_t s = 0; s + 1 < n; s++)
        br_kfn_blk(l->m, l->f);
    gl_goto(l, c->chain[blk]);
    for (uint32_t s = 0; !l->m->oom && s + 1 < n; s++) {
        l->cur = c->chain[blk] + s;
        p = gl_one(l, BR_K_SETP, BR_KT_B32, mods, v, gl_number(l, BR_KC_B32, s),
                   0, 2);
        gl_branch(l, p, c->first[b->succ.at[s]],
                  s + 2 < n ? l->cur + 1 : c->first[b->succ.at[n - 1]]);
    }
}

static void
put_end(lower *l, copy *c, uint32_t blk, const br_kins *i)
{
    const br_kblk *b = &c->f->blks.at[blk];
    br_kins x = *i;
    uint32_t v = i->n_arg ? gl_value(l, c, br_kargs(c->f, i)[0]) : 0;

    if (c->rec)
        gl_rec_edges(l, c, blk);
    c->last[blk] = l->cur;
    if (i->op == BR_K_SWITCH) {
        put_switch(l, c, b, blk, v);
        return;
    }
    if (i->op == BR_K_RET && c->back != BR_KNONE) {
        x.op = BR_K_BR;
        br_kfn_edge(l->m, l->f, l->cur, c->back);
    }
    gl_emit(l, &x, &v);
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
        gl_call(l, c, i, i->sym & ~BR_KFN_SYM, 0);
    } else if (i->op == BR_K_CALLI) {
        gl_call_any(l, c, i);
    } else if (i->op == BR_K_ADDR && i->sym & BR_KFN_SYM) {
        gl_define(l, c, i->res,
                  gl_number(l, BR_KC_B64, BR_KFN_ADDR(i->sym & ~BR_KFN_SYM)));
    } else if (l->warps && gm_waits_for_warps(c->f, i)) {
        gl_fail(l, c, i,
                "one of the two warps of a wave of 64 lanes may wait here for "
                "the other (try wave32)");
    } else if (!gm_has_code(c->f, i) && !(l->wmma && gm_is_wmma(c->f, i)) &&
               gm_lib_text(c->f, i, &text)) {
        gl_from_lib(l, c, i, &text);
    } else if (i->op != BR_K_FRAME || !c->rec) { /* of these: gl_rec_value */
        if (i->op == BR_K_FRAME)
            x.imm = gl_frame_at(c, i->imm);
        if (i->op == BR_K_ADDR && c->vars)
            x.sym = c->vars[i->sym];
        for (unsigned a = 0; a < i->n_arg; a++)
            args[a] = gl_value(l, c, br_kargs(c->f, i)[a]);
        r = gl_emit(l, &x, args);
        for (unsigned k = 0; k < i->n_res; k++)
            gl_define(l, c, i->res + k, r + k);
    }
    br_str_fini(&text);
}

bool
gl_begin_copy(lower *l, copy *c)
{
    size_t nb = c->f->blks.n, nv = c->f->vals.n;
    uint32_t *mem = br_try_calloc(5 * nb + 1, sizeof *mem);

    c->val = br_try_alloc((nv + 1) * sizeof *c->val);
    c->first = mem;
    if (!mem || !c->val) {
        l->m->oom = true;
        return false;
    }
    memset(c->val, 0xff, nv * sizeof *c->val);
    c->last = mem + nb;
    c->chain = mem + 2 * nb;
    memset(c->chain, 0xff, nb * sizeof *c->chain);
    for (uint32_t b = 0; b < nb; b++)
        c->first[b] = br_kfn_blk(l->m, l->f);
    return !l->m->oom;
}

void
gl_walk(lower *l, copy *c)
{
    const br_kfn *f = c->f;
    size_t nb = f->blks.n, phis = l->phis.n;
    uint32_t *rpo = c->first + 3 * nb;
    uint32_t n = br_kfn_rpo(f, rpo, rpo + nb);

    for (uint32_t k = 0; k < n; k++) {
        const br_kblk *b = &f->blks.at[rpo[k]];

        l->cur = c->first[rpo[k]];
        c->stretch++;
        for (size_t x = 0; x < b->ins.n && l->code == BR_OK && !l->m->oom; x++)
            put_ins(l, c, rpo[k], &f->ins.at[b->ins.at[x]]);
    }
    if (l->code == BR_OK && !l->m->oom && !c->rec)
        fill_phis(l, c, phis);
}

void
gl_free_copy(copy *c)
{
    br_free(c->val);
    br_free(c->first);
    br_free(c->seen);
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
    if (l->tight) {
        l->f->frame_bytes = BR_MAX(l->f->frame_bytes, l->most);
        l->tight = false;
        (void)gl_object(l, l->own, l->f->frame_bytes - l->own);
    }
    if (l->m->oom)
        return;
    if (!br_kfn_promote(l->m, l->f, l->objs.at, l->objs.n))
        l->m->oom = true;
    if (l->m->oom)
        return;
    l->code = br_kir_verify(l->m, l->st);
    if (l->code == BR_OK && l->changed)
        l->code = br_kir_optimise(l->m, NULL, l->st);
    if (l->code == BR_OK && !has_frame(l->f))
        l->f->frame_bytes = 0;
}

/* The kernel's first block: barriers that are counted stand at zero. */
static void
clear_barriers(lower *l, copy *c, uint32_t first)
{
    const br_kins none = {.op = BR_K_BAR};
    br_str text = {0};

    gm_lib_begin(&text);
    l->m->oom |= text.oom;
    l->cur = first;
    if (!text.oom)
        gl_from_lib(l, c, &none, &text);
    if (l->code == BR_OK && !l->m->oom)
        gl_goto(l, c->first[0]);
    br_str_fini(&text);
}

static br_code
lower_fn(br_kir **out, const br_kir *m, uint32_t fn, const br_gcn_isa *isa,
         bool tight, br_status *st)
{
    lower l = {.m = br_kir_new(st),
               .wmma = isa->cpu->wmma,
               .warps = isa->wave64,
               .tight = tight,
               .own = m->fns.at[fn].frame_bytes,
               .st = st};
    copy c = {.m = m, .f = &m->fns.at[fn], .back = BR_KNONE};
    uint32_t first = BR_KNONE;

    *out = NULL;
    if (!l.m)
        return BR_E_OOM;
    begin(&l, m, fn);
    if (gm_counts_barriers(m, fn))
        first = br_kfn_blk(l.m, l.f);
    if (!l.m->oom && gl_object(&l, 0, l.f->frame_bytes) &&
        gl_begin_copy(&l, &c)) {
        if (first != BR_KNONE)
            clear_barriers(&l, &c, first);
        if (l.code == BR_OK)
            gl_walk(&l, &c);
    }
    if (l.code == BR_OK && !l.m->oom)
        finish(&l);
    gl_free_copy(&c);
    for (size_t k = 0; k < l.libs.n; k++) {
        br_free(l.libs.at[k].text);
        br_kir_free(l.libs.at[k].m);
    }
    br_vec_fini(&l.libs);
    br_vec_fini(&l.edges);
    br_vec_fini(&l.phis);
    br_vec_fini(&l.objs);
    br_vec_fini(&l.stacks);
    br_free(l.calls);
    if (l.code == BR_OK && l.m->oom)
        l.code = br_fail(st, BR_E_OOM, "out of memory");
    if (l.code == BR_OK)
        *out = l.m;
    else
        br_kir_free(l.m);
    return l.code;
}

/* Frames of calls are apart, for then most are none in the end; where that is more
 * than there is, as in code without optimisation, they share. */
br_code
gm_lower(br_kir **out, const br_kir *m, uint32_t fn, const br_gcn_isa *isa,
         br_status *st)
{
    BR_TRY(lower_fn(out, m, fn, isa, false, st));
    if ((*out)->fns.at[0].frame_bytes <= GM_MAX_SCRATCH)
        return BR_OK;
    br_kir_free(*out);
    return lower_fn(out, m, fn, isa, true, st);
}
