/* kir.c - tables of the kernel IR, and how a function is built.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir.h"

#include <stdio.h>
#include <string.h>

const br_ktinfo br_ktinfo_of[BR_KT_COUNT] = {
#define X(name, text, cls, bytes, cat, kind, lanes, elem) \
    {text, BR_KC_##cls, bytes, lanes, BR_KT_##elem, cat, kind},
#include "cg/ktype.def"
#undef X
};

#define PURE  BR_KP_PURE
#define COMM  BR_KP_COMM
#define READ  BR_KP_READ
#define WRITE BR_KP_WRITE
#define CONV  BR_KP_CONV
#define BAR   BR_KP_BAR
#define TERM  BR_KP_TERM
#define IMM   BR_KP_IMM
#define SYM   BR_KP_SYM
#define SREG  BR_KP_SREG
const br_kopinfo br_kopinfo_of[BR_K_COUNT] = {
#define X(name, text, sig, types, groups, props, doc) \
    {text, sig, types, groups, props, doc},
#include "cg/kir.def"
#undef X
};

enum {
#define G(group, letter, field) \
    LETTER_##group = (letter), FIELD_##group = BR_KF_##field,
#define M(group, name, text, value)
#include "cg/kmod.def"
#undef G
#undef M
};
const br_kminfo br_kminfo_of[] = {
#define G(group, letter, field)
#define M(group, name, text, value) \
    {LETTER_##group, FIELD_##group, value, text},
#include "cg/kmod.def"
#undef G
#undef M
    {0, 0, 0, NULL},
};

const char *const br_ksreg_text[BR_KS_COUNT] = {
#define X(name, text, cls) text,
#include "cg/sreg.def"
#undef X
};
const uint8_t br_ksreg_class[BR_KS_COUNT] = {
#define X(name, text, cls) BR_KC_##cls,
#include "cg/sreg.def"
#undef X
};

br_kclass
br_kclass_half(br_kclass c)
{
    return c == BR_KC_B64 ? BR_KC_B32 : BR_KC_B16;
}

unsigned
br_kclass_bits(br_kclass c)
{
    static const uint8_t bits[] = {1, 16, 32, 64};

    return bits[c];
}

br_kclass
br_kclass_of(char letter, const br_kins *i)
{
    br_kclass t = br_ktinfo_of[i->type].cls;

    switch (letter) {
    case 'T': return t;
    case 'U': return br_ktinfo_of[i->type2].cls;
    case 'H': return br_kclass_half(t);
    case 'D': return t == BR_KC_B16 ? BR_KC_B32 : BR_KC_B64;
    case 'W': return BR_KC_B32;
    case 'L': return BR_KC_B64;
    default: return BR_KC_PRED;
    }
}

/* ---- modules ------------------------------------------------------------- */

/* Room for one more of any vector below; false and sticky when there is none,
 * and then slot 0, which every vector has, is written over. */
static bool
room(br_kir *m, void *vec, size_t elem, size_t n, size_t cap)
{
    if (n < cap)
        return true;
    if (!br_vec_grow(vec, elem, n + 1)) {
        m->oom = true;
        return false;
    }
    return true;
}
#define PUSH(m, v, x)                                  \
    (room((m), (v), sizeof *(v)->at, (v)->n, (v)->cap) \
         ? ((v)->at[(v)->n] = (x), (uint32_t)(v)->n++) \
         : ((v)->cap ? (void)((v)->at[0] = (x)) : (void)0, 0u))

br_kir *
br_kir_new(br_status *st)
{
    br_kir *m = br_try_calloc(1, sizeof *m);

    if (!m || !br_vec_reserve(&m->vars, 4) || !br_vec_reserve(&m->fns, 4) ||
        !br_vec_reserve(&m->notes, 4)) {
        br_fail(st, BR_E_OOM, "kernel IR: out of memory");
        br_kir_free(m);
        return NULL;
    }
    br_arena_init(&m->arena, 0);
    m->target = BR_TEXT("sm_50");
    return m;
}

static void
fn_fini(br_kfn *f)
{
    for (size_t i = 0; i < f->blks.n; i++) {
        br_vec_fini(&f->blks.at[i].ins);
        br_vec_fini(&f->blks.at[i].succ);
        br_vec_fini(&f->blks.at[i].pred);
    }
    br_vec_fini(&f->params);
    br_vec_fini(&f->vals);
    br_vec_fini(&f->ins);
    br_vec_fini(&f->args);
    br_vec_fini(&f->blks);
    br_map_fini(&f->consts);
}

void
br_kir_free(br_kir *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->fns.n; i++)
        fn_fini(&m->fns.at[i]);
    for (size_t i = 0; i < m->vars.n; i++)
        br_vec_fini(&m->vars.at[i].relocs);
    br_vec_fini(&m->vars);
    br_vec_fini(&m->fns);
    br_vec_fini(&m->notes);
    br_map_fini(&m->vars_by_name);
    br_map_fini(&m->fns_by_name);
    br_arena_fini(&m->arena);
    br_free(m);
}

static br_text
keep(br_kir *m, br_text t)
{
    char *s = br_arena_str(&m->arena, t.p, t.n);

    if (!s) {
        m->oom = true;
        return BR_TEXT("");
    }
    return (br_text){s, t.n};
}

/* The first of a name is the one that is found. */
static void
enter_name(br_kir *m, br_map *map, br_text name, size_t at)
{
    bool fresh;
    br_map_value *v = br_map_put(map, name, &fresh);

    if (!v)
        m->oom = true;
    else if (fresh)
        v->u = at;
}

static uint32_t
find_name(const br_map *map, br_text name)
{
    const br_map_value *v = br_map_get(map, name);

    return v ? (uint32_t)v->u : BR_KNONE;
}

uint32_t
br_kir_var(br_kir *m, br_text name)
{
    br_kvar v = {.name = keep(m, name), .align = 1};

    enter_name(m, &m->vars_by_name, v.name, m->vars.n);
    return PUSH(m, &m->vars, v);
}

uint32_t
br_kir_fn(br_kir *m, br_text name)
{
    br_kfn f = {.name = keep(m, name)};

    if (!br_vec_reserve(&f.params, 4) || !br_vec_reserve(&f.vals, 64) ||
        !br_vec_reserve(&f.ins, 64) || !br_vec_reserve(&f.args, 128) ||
        !br_vec_reserve(&f.blks, 4) ||
        !room(m, &m->fns, sizeof f, m->fns.n, m->fns.cap)) {
        m->oom = true;
        fn_fini(&f);
        return 0;
    }
    enter_name(m, &m->fns_by_name, f.name, m->fns.n);
    m->fns.at[m->fns.n] = f;
    return (uint32_t)m->fns.n++;
}

uint32_t
br_kir_note(br_kir *m, uint32_t line, const char *fmt, ...)
{
    char buf[400];
    br_knote note = {.line = line};
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    for (char *c = buf; *c; c++)
        if (*c == '"' || (unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    note.text = keep(m, br_text_z(buf));
    return PUSH(m, &m->notes, note);
}

uint32_t
br_kir_find_fn(const br_kir *m, br_text name)
{
    return find_name(&m->fns_by_name, name);
}

uint32_t
br_kir_find_var(const br_kir *m, br_text name)
{
    return find_name(&m->vars_by_name, name);
}

/* ---- functions ---------------------------------------------------------- */

uint32_t
br_kfn_blk(br_kir *m, br_kfn *f)
{
    br_kblk b = {0};

    if (!br_vec_reserve(&b.ins, 4) || !br_vec_reserve(&b.succ, 2) ||
        !room(m, &f->blks, sizeof b, f->blks.n, f->blks.cap)) {
        br_vec_fini(&b.ins);
        br_vec_fini(&b.succ);
        m->oom = true;
        return 0;
    }
    f->blks.at[f->blks.n] = b;
    return (uint32_t)f->blks.n++;
}

uint32_t
br_kfn_val(br_kir *m, br_kfn *f, br_kclass c, uint32_t def)
{
    br_kval v = {.cls = (uint8_t)c, .kind = BR_KV_INS, .def = def};

    return PUSH(m, &f->vals, v);
}

uint32_t
br_kfn_const(br_kir *m, br_kfn *f, br_kclass c, uint64_t bits)
{
    unsigned w = br_kclass_bits(c);
    br_kval v = {.cls = (uint8_t)c, .kind = BR_KV_CONST};
    br_map_value *at;
    bool fresh;

    v.bits = w < 64 ? bits & ((1ull << w) - 1) : bits;
    /* One key for (bits, class): the classes share bits below 2^62 only by
     * rotation, and a clash of wider ones just makes a second constant. */
    at = br_map_put_u64(&f->consts, (v.bits << 2 | v.bits >> 62) ^ (uint64_t)c,
                        &fresh);
    if (!at) {
        m->oom = true;
        return 0;
    }
    if (!fresh && f->vals.at[at->u].cls == v.cls &&
        f->vals.at[at->u].kind == BR_KV_CONST &&
        f->vals.at[at->u].bits == v.bits)
        return (uint32_t)at->u;
    at->u = f->vals.n;
    return PUSH(m, &f->vals, v);
}

uint32_t
br_kfn_undef(br_kir *m, br_kfn *f, br_kclass c)
{
    br_kval v = {.cls = (uint8_t)c, .kind = BR_KV_UNDEF};

    return PUSH(m, &f->vals, v);
}

void
br_kfn_edge(br_kir *m, br_kfn *f, uint32_t from, uint32_t to)
{
    if (m->oom)
        return;
    (void)PUSH(m, &f->blks.at[from].succ, to);
}

void
br_kfn_preds(br_kir *m, br_kfn *f)
{
    for (size_t b = 0; b < f->blks.n; b++)
        f->blks.at[b].pred.n = 0;
    for (uint32_t b = 0; b < f->blks.n; b++)
        for (size_t s = 0; s < f->blks.at[b].succ.n; s++) {
            br_kblk *to = &f->blks.at[f->blks.at[b].succ.at[s]];

            if (room(m, &to->pred, sizeof *to->pred.at, to->pred.n,
                     to->pred.cap))
                to->pred.at[to->pred.n++] = b;
        }
}

uint32_t
br_kfn_ins(br_kir *m, br_kfn *f, uint32_t blk, const br_kins *proto,
           const uint32_t *args)
{
    const char *sig = br_kopinfo_of[proto->op].sig;
    uint32_t id = (uint32_t)f->ins.n, got;
    br_kins i = *proto;

    br_assert(i.n_arg <= BR_KMAX_ARGS);
    i.arg = (uint32_t)f->args.n;
    for (unsigned a = 0; a < i.n_arg; a++)
        (void)PUSH(m, &f->args, args[a]);
    i.res = (uint32_t)f->vals.n;
    if (sig[0] != ':' && sig[1] == '*') {
        for (unsigned r = 0; r < i.n_res; r++)
            br_kfn_val(m, f, br_kclass_of(sig[0], &i), id);
    } else {
        for (i.n_res = 0; sig[i.n_res] != ':'; i.n_res++)
            br_kfn_val(m, f, br_kclass_of(sig[i.n_res], &i), id);
    }
    got = PUSH(m, &f->ins, i);
    if (blk != BR_KNONE && !m->oom)
        (void)PUSH(m, &f->blks.at[blk].ins, got);
    return got;
}

/* ---- graph -------------------------------------------------------------- */

uint32_t
br_kfn_rpo(const br_kfn *f, uint32_t *out, uint32_t *place)
{
    uint32_t n = (uint32_t)f->blks.n, top = 0, at = n, reached;
    uint32_t *stack = out; /* grows from below while out fills from above */

    /* place doubles as "next successor to visit, plus one" while it runs. */
    for (uint32_t b = 0; b < n; b++)
        place[b] = 0;
    if (n == 0)
        return 0;
    stack[top++] = 0;
    place[0] = 1;
    while (top) {
        uint32_t b = stack[top - 1];
        const br_kblk *k = &f->blks.at[b];

        if (place[b] <= k->succ.n) {
            uint32_t s = k->succ.at[place[b]++ - 1];

            if (place[s] == 0) {
                place[s] = 1;
                stack[top++] = s;
            }
        } else {
            top--;
            out[--at] = b;
        }
    }
    reached = n - at;
    memmove(out, out + at, reached * sizeof *out);
    for (uint32_t b = 0; b < n; b++)
        place[b] = BR_KNONE;
    for (uint32_t i = 0; i < reached; i++)
        place[out[i]] = i;
    return reached;
}

/* Cooper, Harvey, Kennedy: "A simple, fast dominance algorithm". */
void
br_kfn_idom(const br_kfn *f, const uint32_t *rpo, uint32_t n,
            const uint32_t *place, uint32_t *idom)
{
    bool again = n > 0;

    for (uint32_t b = 0; b < f->blks.n; b++)
        idom[b] = BR_KNONE;
    if (n)
        idom[0] = 0;
    while (again) {
        again = false;
        for (uint32_t k = 1; k < n; k++) {
            const br_kblk *b = &f->blks.at[rpo[k]];
            uint32_t d = BR_KNONE;

            for (size_t p = 0; p < b->pred.n; p++) {
                uint32_t x = b->pred.at[p], y = d;

                if (idom[x] == BR_KNONE)
                    continue;
                while (y != BR_KNONE && x != y) {
                    while (place[x] > place[y])
                        x = idom[x];
                    while (place[y] > place[x])
                        y = idom[y];
                }
                d = x;
            }
            if (d != idom[rpo[k]]) {
                idom[rpo[k]] = d;
                again = true;
            }
        }
    }
}

bool
br_kdominates(const uint32_t *idom, const uint32_t *place, uint32_t a,
              uint32_t b)
{
    while (place[b] > place[a])
        b = idom[b];
    return a == b;
}
