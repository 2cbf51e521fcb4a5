/* gcn_call.c - calls: of functions of the module, of the host's, of the library
 * for operations that have no code.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_lower_int.h"
#include "cg/ptx/ptx.h"

#include <string.h>

enum {
    MAX_DEPTH = 32,      /* of calls */
    MAX_BLOCKS = 1 << 16 /* of the copy */
};

/* f's blocks between here and a block that is then the current one. */
static void
put_in(lower *l, copy *c)
{
    uint32_t from = l->cur, line = l->line, top = l->f->frame_bytes;

    if (l->depth == MAX_DEPTH || l->f->blks.n > MAX_BLOCKS) {
        l->code = br_fail(l->st, BR_E_UNSUPPORTED,
                          "%.*s: line %u: has no code for this yet: calls over "
                          "%d deep",
                          (int)BR_MIN(l->f->name.n, (size_t)80), l->f->name.p,
                          line, MAX_DEPTH);
        return;
    }
    l->depth++;
    l->changed = true;
    c->base = gl_more_frame(l, c->f->frame_bytes);
    c->back = br_kfn_blk(l->m, l->f);
    if (l->code == BR_OK && gl_object(l, c->base, c->f->frame_bytes) &&
        gl_begin_copy(l, c))
        gl_walk(l, c);
    l->depth--;
    if (l->tight) {
        l->most = BR_MAX(l->most, l->f->frame_bytes);
        l->f->frame_bytes = top;
    }
    if (l->code != BR_OK || l->m->oom)
        return;
    l->cur = from;
    gl_goto(l, c->first[0]);
    l->cur = c->back;
    l->line = line;
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

bool
gl_place(lower *l, copy *from, const br_kins *i, unsigned arg, uint32_t *addr)
{
    const br_kval *v = &from->f->vals.at[br_kargs(from->f, i)[arg]];
    const br_kins *d = &from->f->ins.at[v->def];

    if (v->kind != BR_KV_INS || d->op != BR_K_FRAME) {
        gl_fail(l, from, i, "an argument that is no place of the frame");
        return false;
    }
    *addr = gl_value(l, from, br_kargs(from->f, i)[arg]);
    return true;
}

void
gl_move(lower *l, uint32_t to, int64_t to_off, uint32_t from, int64_t from_off,
        const br_kparam *p)
{
    uint64_t odd = (uint64_t)to_off | (uint64_t)from_off | p->align | 8;
    unsigned most = (unsigned)(odd & -odd);

    for (uint32_t at = 0; at < p->bytes;) {
        unsigned n = most;
        br_ktype t;

        while (n > p->bytes - at)
            n /= 2;
        t = n == 8   ? BR_KT_B64
            : n == 4 ? BR_KT_B32
            : n == 2 ? BR_KT_B16
                     : BR_KT_B8;
        gl_store(l, to, to_off + at, t, gl_load(l, from, from_off + at, t));
        at += n;
    }
}

/* Where the function that is put in finds its parameters: where the caller has
 * them, or, of one on a stack, in places of their own. */
static bool
places(lower *l, copy *from, const br_kins *i, unsigned first, const br_kfn *f,
       uint64_t *at)
{
    for (size_t k = 0; k < f->params.n; k++) {
        const br_kparam *p = &f->params.at[k];
        uint32_t addr;

        if (!gl_place(l, from, i, first + (unsigned)k, &addr))
            return false;
        at[k] = from->rec ? gl_more_frame(l, p->bytes)
                          : (uint64_t)l->f->ins.at[l->f->vals.at[addr].def].imm;
        if (l->code != BR_OK || !gl_object(l, at[k], p->bytes))
            return false;
        if (from->rec && !p->result)
            gl_move(l, gl_frame(l, at[k]), 0, addr, 0, p);
    }
    return true;
}

/* Function fn with the arguments of i from the first-th on. */
void
gl_call(lower *l, copy *from, const br_kins *i, uint32_t fn, unsigned first)
{
    const br_kfn *f = &from->m->fns.at[fn];
    uint64_t at[64];
    uint32_t vars[4], addr;
    copy c = {.m = from->m, .f = f, .param = at, .vars = from->vars};

    if (f->external && !host_fn(l, f->name, &c, vars, BR_COUNT(vars))) {
        gl_fail(l, from, i, "the function has no body here");
        return;
    }
    f = c.f;
    if (f->entry || f->params.n + first != i->n_arg ||
        f->params.n > BR_COUNT(at)) {
        gl_fail(l, from, i, "the call does not fit the function");
        return;
    }
    if (c.m == from->m && gl_calls_itself(l, from->m, fn)) {
        gl_recurse(l, from, i, fn, first);
        return;
    }
    if (!places(l, from, i, first, f, at))
        return;
    put_in(l, &c);
    gl_free_copy(&c);
    for (size_t k = 0; from->rec && l->code == BR_OK && k < f->params.n; k++)
        if (f->params.at[k].result &&
            gl_place(l, from, i, first + (unsigned)k, &addr))
            gl_move(l, addr, 0, gl_frame(l, at[k]), 0, &f->params.at[k]);
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

bool
gl_may_be(const br_kir *m, uint32_t fn, const br_kins *i)
{
    const br_kfn *f = &m->fns.at[fn];

    return !f->external && !f->entry && f->params.n + 1 == i->n_arg &&
           address_taken(m, fn);
}

/* Through a pointer: each function that it may be, compared. */
void
gl_call_any(lower *l, copy *from, const br_kins *i)
{
    uint32_t eq = br_kmod_put(BR_KF_CMP, BR_KM_CMP_EQ), join, yes, no, p;
    uint32_t to = gl_value(l, from, br_kargs(from->f, i)[0]);

    l->changed = true;
    join = br_kfn_blk(l->m, l->f);
    for (uint32_t fn = 0; fn < from->m->fns.n && l->code == BR_OK; fn++) {
        if (!gl_may_be(from->m, fn, i))
            continue;
        p = gl_one(l, BR_K_SETP, BR_KT_B64, eq, to,
                   gl_number(l, BR_KC_B64, BR_KFN_ADDR(fn)), 0, 2);
        yes = br_kfn_blk(l->m, l->f);
        no = br_kfn_blk(l->m, l->f);
        gl_branch(l, p, yes, no);
        from->stretch++;
        l->cur = yes;
        gl_call(l, from, i, fn, 1);
        gl_goto(l, join);
        from->stretch++;
        l->cur = no;
    }
    gl_trap(l, BR_GCN_TRAP_POINTER);
    gl_goto(l, join);
    from->stretch++;
    l->cur = join;
}

void
gl_trap(lower *l, br_gcn_trap why)
{
    br_kins i = {.op = BR_K_TRAP, .sym = BR_KNONE};

    i.imm = 1 + (int64_t)br_kir_note(l->m, l->line, "%s",
                                     br_gcn_trap_text(BR_GCN_TRAPS + why));
    gl_emit(l, &i, NULL);
}

/* ---- the library ------------------------------------------------------- */

void
gl_from_lib(lower *l, copy *from, const br_kins *i, const br_str *text)
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
        at[k] = gl_more_frame(l, 8);
        if (l->code != BR_OK || !gl_object(l, at[k], f->params.at[k].bytes))
            return;
    }
    for (unsigned k = 0; k < i->n_arg; k++)
        gl_give(l, gl_frame(l, at[i->n_res + k]), 0,
                gl_value(l, from, br_kargs(from->f, i)[k]));
    put_in(l, &c);
    for (unsigned k = 0; l->code == BR_OK && k < i->n_res; k++)
        gl_define(l, from, i->res + k,
                  gl_take(l, gl_frame(l, at[k]), 0,
                          from->f->vals.at[i->res + k].cls));
    gl_free_copy(&c);
}
