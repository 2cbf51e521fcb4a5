/* kpack.c - kernel IR as bytes, both ways.
 *
 *   module    target, variables, functions, notes
 *   variable  name, space, size, what it begins with, relocations
 *   function  name, sizes, parameters, values, instructions, blocks
 *
 * Names of operations are numbers of this build (zrt.h), and predecessors follow
 * from successors. Lines lie apart, so that a file may go without them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kpack.h"

#include <string.h>

void
br_kpack_raw(br_kpack *p, void *v, size_t n)
{
    if (n == 0) /* v may be NULL */
        return;
    if (p->out) {
        br_str_put(p->out, v, n);
        return;
    }
    if (p->bad || n > (size_t)(p->end - p->at)) {
        p->bad = true;
        memset(v, 0, n);
        return;
    }
    memcpy(v, p->at, n);
    p->at += n;
}

static void
yes_no(br_kpack *p, bool *v)
{
    uint8_t x = *v;

    br_kpack_of(p, &x);
    p->bad |= x > 1;
    *v = x == 1;
}

bool
br_kpack_count(br_kpack *p, size_t *n, size_t each)
{
    uint32_t k = (uint32_t)*n;

    br_kpack_of(p, &k);
    if (!p->out && k > (size_t)(p->end - p->at) / each) {
        p->bad = true;
        k = 0;
    }
    *n = k;
    return k > 0;
}

/* Makes room in a vector, of zeros, where it is read. */
#define VEC(p, v, each)                               \
    do {                                              \
        size_t n_ = (v)->n;                           \
        br_kpack_count((p), &n_, (each));             \
        if (!(p)->out && !br_vec_reserve((v), n_)) {  \
            (p)->oom = (p)->bad = true;               \
            n_ = 0;                                   \
        }                                             \
        if (!(p)->out && n_)                          \
            memset((v)->at, 0, n_ * sizeof *(v)->at); \
        (v)->n = n_;                                  \
    } while (0)

br_text
br_kpack_text(br_kpack *p, br_text t)
{
    br_kpack_count(p, &t.n, 1);
    if (p->out) {
        if (t.n)
            br_str_put(p->out, t.p, t.n);
        return t;
    }
    t.p = (const char *)p->at;
    p->at += t.n;
    return t;
}

static void
line(br_kpack *p, uint32_t *l)
{
    if (p->out && p->lines)
        br_str_put(p->lines, (const char *)l, 4);
    if (p->out)
        return;
    *l = 0;
    if (p->line_end - p->line_at < 4)
        return;
    memcpy(l, p->line_at, 4);
    p->line_at += 4;
}

/* ---- variables ------------------------------------------------------------ */

/* What it begins with; of a constant always, zeros too: it may be patched. */
static void
bytes_of(br_kpack *p, br_kir *m, br_kvar *v)
{
    uint8_t some = v->init || (v->space == BR_KM_SPACE_CONST && !v->external &&
                               v->bytes <= UINT32_MAX);
    uint8_t *copy;

    br_kpack_of(p, &some);
    if (!some)
        return;
    if (p->out) {
        br_zrt_slot s = {v->name, (uint32_t)p->out->n, (uint32_t)v->bytes};

        if (p->slots && v->space == BR_KM_SPACE_CONST &&
            !br_vec_push(&p->slots->slots, s))
            p->oom = true;
        for (uint64_t k = 0; !v->init && k < v->bytes; k++)
            br_str_putc(p->out, 0);
        if (v->init)
            br_str_put(p->out, (const char *)v->init, (size_t)v->bytes);
        return;
    }
    if (v->bytes > (size_t)(p->end - p->at)) {
        p->bad = true;
        return;
    }
    copy = br_arena_dup(&m->arena, p->at, (size_t)v->bytes);
    p->at += v->bytes;
    v->init = copy;
    p->oom |= !copy;
}

static void
variable(br_kpack *p, br_kir *m, br_kvar *v)
{
    br_kpack_of(p, &v->space);
    yes_no(p, &v->external);
    br_kpack_of(p, &v->align);
    br_kpack_of(p, &v->bytes);
    bytes_of(p, m, v);
    VEC(p, &v->relocs, 21);
    for (size_t k = 0; k < v->relocs.n; k++) {
        br_kreloc *r = &v->relocs.at[k];

        br_kpack_of(p, &r->offset);
        br_kpack_of(p, &r->bytes);
        br_kpack_of(p, &r->sym);
        br_kpack_of(p, &r->addend);
        yes_no(p, &r->generic);
    }
}

/* ---- functions ------------------------------------------------------------ */

typedef struct packed_ins { /* no bytes between */
    uint8_t op, type, type2, n_res;
    uint16_t n_arg, zero;
    uint32_t mods, res, arg, sym;
    int64_t imm;
} packed_ins;

static void
instruction(br_kpack *p, br_kins *i)
{
    packed_ins x = {i->op,   i->type, i->type2, i->n_res, i->n_arg, 0,
                    i->mods, i->res,  i->arg,   i->sym,   i->imm};

    _Static_assert(sizeof(packed_ins) == 32, "no bytes between");
    br_kpack_of(p, &x);
    line(p, &i->line);
    if (p->out)
        return;
    *i = (br_kins){.op = x.op,
                   .type = x.type,
                   .type2 = x.type2,
                   .n_res = x.n_res,
                   .n_arg = x.n_arg,
                   .mods = x.mods,
                   .line = i->line,
                   .res = x.res,
                   .arg = x.arg,
                   .sym = x.sym,
                   .imm = x.imm};
}

static void
values(br_kpack *p, br_kfn *f)
{
    VEC(p, &f->vals, 5);
    for (size_t k = 0; k < f->vals.n; k++) {
        br_kval *v = &f->vals.at[k];
        uint8_t what = (uint8_t)(v->cls | v->kind << 2);

        br_kpack_of(p, &what);
        v->cls = what & 3;
        v->kind = what >> 2;
        p->bad |= v->kind > BR_KV_UNDEF;
        if (v->kind == BR_KV_CONST)
            br_kpack_of(p, &v->bits);
        else
            br_kpack_of(p, &v->def);
    }
}

static void
words(br_kpack *p, void *vec)
{
    struct {
        BR_VEC(uint32_t) v;
    } *x = vec;

    VEC(p, &x->v, 4);
    br_kpack_raw(p, x->v.at, x->v.n * 4);
}

/* What no block names is nobody's, and still looked at here and there. */
static bool
in_range(const br_kfn *f)
{
    bool ok = true;

    for (size_t k = 0; k < f->vals.n; k++)
        ok &= f->vals.at[k].kind != BR_KV_INS || f->vals.at[k].def < f->ins.n;
    for (size_t k = 0; k < f->args.n; k++)
        ok &= f->args.at[k] < f->vals.n;
    for (size_t k = 0; k < f->ins.n; k++) {
        const br_kins *i = &f->ins.at[k];

        ok &= i->op < BR_K_COUNT && i->type < BR_KT_COUNT &&
              i->type2 < BR_KT_COUNT &&
              (uint64_t)i->arg + i->n_arg <= f->args.n &&
              (uint64_t)i->res + i->n_res <= f->vals.n;
    }
    for (size_t b = 0; b < f->blks.n; b++)
        for (size_t s = 0; s < f->blks.at[b].succ.n; s++)
            ok &= f->blks.at[b].succ.at[s] < f->blks.n;
    return ok;
}

static void
body(br_kpack *p, br_kir *m, br_kfn *f)
{
    values(p, f);
    VEC(p, &f->ins, sizeof(packed_ins));
    for (size_t k = 0; k < f->ins.n; k++)
        instruction(p, &f->ins.at[k]);
    words(p, &f->args);
    VEC(p, &f->blks, 8);
    for (size_t b = 0; b < f->blks.n; b++) {
        words(p, &f->blks.at[b].ins);
        words(p, &f->blks.at[b].succ);
    }
    if (p->out)
        return;
    p->bad |= !in_range(f);
    if (!p->bad)
        br_kfn_preds(m, f);
}

static void
function(br_kpack *p, br_kir *m, br_kfn *f, bool whole)
{
    bool external = f->external || !whole, entry = f->entry && whole;

    yes_no(p, &entry);
    yes_no(p, &external);
    if (!p->out) {
        f->entry = entry;
        f->external = external;
    }
    line(p, &f->line);
    br_kpack_of(p, &f->param_bytes);
    br_kpack_of(p, &f->frame_bytes);
    br_kpack_of(p, &f->max_threads);
    br_kpack_of(p, &f->req_threads);
    for (int d = 0; d < 3; d++) {
        br_kpack_of(p, &f->req_block[d]);
        br_kpack_of(p, &f->cluster[d]);
    }
    br_kpack_of(p, &f->max_cluster);
    VEC(p, &f->params, 17);
    for (size_t k = 0; k < f->params.n; k++) {
        br_kparam *x = &f->params.at[k];

        x->name = br_kpack_text(p, x->name);
        if (!p->out) {
            const char *s = br_arena_str(&m->arena, x->name.p, x->name.n);

            p->oom |= !s;
            x->name = (br_text){s ? s : "", s ? x->name.n : 0};
        }
        br_kpack_of(p, &x->offset);
        br_kpack_of(p, &x->bytes);
        br_kpack_of(p, &x->align);
        yes_no(p, &x->result);
    }
    if (!external)
        body(p, m, f);
}

/* ---- modules -------------------------------------------------------------- */

static void
mark(uint32_t sym, uint8_t *whole, uint32_t *list, size_t *n)
{
    uint32_t fn = sym & ~BR_KFN_SYM;

    if (sym == BR_KNONE || !(sym & BR_KFN_SYM) || whole[fn])
        return;
    whole[fn] = 1;
    list[(*n)++] = fn;
}

/* Of a module to be written, which functions go with p->only: those that it
 * names, and those that variables do, and on from there. */
static bool
mark_all(const br_kpack *p, const br_kir *m, uint8_t *whole)
{
    uint32_t *list = br_try_calloc(m->fns.n + 1, sizeof *list);
    size_t n = 0;

    if (!list)
        return false;
    mark(p->only | BR_KFN_SYM, whole, list, &n);
    for (size_t v = 0; v < m->vars.n; v++)
        for (size_t k = 0; k < m->vars.at[v].relocs.n; k++)
            mark(m->vars.at[v].relocs.at[k].sym, whole, list, &n);
    for (size_t done = 0; done < n; done++) {
        const br_kfn *f = &m->fns.at[list[done]];

        for (size_t k = 0; k < f->ins.n; k++)
            mark(f->ins.at[k].sym, whole, list, &n);
    }
    br_free(list);
    return true;
}

static void
parts(br_kpack *p, br_kir *m, size_t n[3])
{
    uint8_t *whole;

    for (uint32_t k = 0; k < n[0] && !p->bad; k++) {
        br_text name =
            br_kpack_text(p, p->out ? m->vars.at[k].name : (br_text){NULL, 0});

        if (!p->out && (br_kir_var(m, name) != k || m->oom))
            p->bad = true;
        else
            variable(p, m, &m->vars.at[k]);
    }
    /* Names first: who calls whom is known before there are bodies. */
    for (uint32_t k = 0; k < n[1] && !p->bad; k++) {
        br_text name =
            br_kpack_text(p, p->out ? m->fns.at[k].name : (br_text){NULL, 0});

        p->bad |= !p->out && (br_kir_fn(m, name) != k || m->oom);
    }
    whole = br_try_calloc(n[1] + 1, 1);
    if (!whole || (p->out && p->only != BR_KNONE && !mark_all(p, m, whole)))
        p->oom = p->bad = true;
    else if (!p->out || p->only == BR_KNONE)
        memset(whole, 1, n[1]);
    for (size_t k = 0; k < n[1] && !p->bad; k++)
        function(p, m, &m->fns.at[k], whole[k]);
    br_free(whole);
    for (uint32_t k = 0; k < n[2] && !p->bad; k++) {
        br_knote *note = p->out ? &m->notes.at[k] : NULL;
        br_text t = br_kpack_text(p, note ? note->text : (br_text){NULL, 0});
        uint32_t l = note ? note->line : 0;

        line(p, &l);
        if (!note &&
            br_kir_note(m, l, "%.*s", (int)BR_MIN(t.n, (size_t)399), t.p) != k)
            p->bad = true;
    }
}

br_code
br_kpack_end(const br_kpack *p, br_status *st)
{
    if (p->oom || (p->out && p->out->oom) || (p->lines && p->lines->oom))
        return br_fail(st, BR_E_OOM, ".zrt: out of memory");
    return p->bad ? br_fail(st, BR_E_FORMAT,
                            ".zrt: a count or number that "
                            "cannot be")
                  : BR_OK;
}

br_code
br_kpack_module(br_kpack *p, br_kir *m, br_status *st)
{
    size_t n[3] = {m->vars.n, m->fns.n, m->notes.n};
    br_text target = br_kpack_text(p, m->target);

    br_kpack_count(p, &n[0], 22);
    br_kpack_count(p, &n[1], 26);
    br_kpack_count(p, &n[2], 4);
    if (!p->out) {
        const char *s = br_arena_str(&m->arena, target.p, target.n);

        p->oom |= !s;
        m->target = (br_text){s ? s : "", s ? target.n : 0};
    }
    parts(p, m, n);
    p->oom |= m->oom;
    BR_TRY(br_kpack_end(p, st));
    return p->out ? BR_OK : br_kir_verify(m, st);
}
