/* pass_join.c - loads side by side become one, stores too.
 *
 *   %2 = ld.shared.f32 %1 16           %2 %3 = ld.shared.f32 %1 16
 *   %4 = mul.f32 %2 %2            ->   %4 = mul.f32 %2 %2
 *   %3 = ld.shared.f32 %1 20
 *
 * Why       An access costs its check of address and bounds, whatever it moves;
 *           lanes 16 bytes apart are four gathers or one row.
 * Requires  br_kir_verify.
 * Changes   runs of two or four plain accesses of one type in one block, 16 bytes
 *           at most, where the first is known to lie so that all of them may be
 *           one: a misaligned one would be a fault. Loads go up to their first if
 *           nothing writes between, stores down to their last if nobody looks.
 * Cost      one walk; MAX_OPEN accesses are remembered.
 *
 * Compilers do this, too; what is left is hand-written PTX, and what became one
 * block here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir_pass.h"

#include <string.h>

enum { MAX_OPEN = 32, MAX_DEPTH = 8, MAX_BYTES = 16 };

typedef struct access { /* at root + at */
    uint32_t id, root;  /* a value, or a variable | BR_KFN_SYM */
    int64_t at;
    size_t place; /* in the block */
} access;

typedef struct joiner {
    br_kir *m;
    br_kfn *f;
    br_kblk *b;
    uint32_t *same;
    uint8_t *gone;
    access open[MAX_OPEN]; /* all loads or all stores, in order */
    size_t n;
} joiner;

/* Of a variable's start plus a number: n, if it is a multiple of 2^n, 4 at most. */
static unsigned
variable(const joiner *s, uint32_t sym, int64_t plus)
{
    unsigned n = (unsigned)__builtin_ctz(s->m->vars.at[sym].align | MAX_BYTES);

    if (plus && (unsigned)__builtin_ctzll((uint64_t)plus) < n)
        n = (unsigned)__builtin_ctzll((uint64_t)plus);
    return n;
}

/* The value is a multiple of 2^n: n, of numbers that are known to be. */
static unsigned
zeros(const joiner *s, uint32_t v, unsigned depth)
{
    const br_kval *k = &s->f->vals.at[v];
    const uint32_t *a;
    const br_kins *i;
    unsigned x, y = 0;

    if (k->kind == BR_KV_CONST)
        return k->bits ? (unsigned)__builtin_ctzll(k->bits) : 31;
    if (k->kind != BR_KV_INS || depth == MAX_DEPTH)
        return 0;
    i = &s->f->ins.at[k->def];
    if (i->n_res != 1 || i->n_arg > 2)
        return 0;
    a = br_kargs(s->f, i);
    x = i->n_arg ? zeros(s, a[0], depth + 1) : 0;
    if (i->n_arg == 2)
        y = zeros(s, a[1], depth + 1);
    switch (i->op) {
    case BR_K_ADDR:
        return i->sym & BR_KFN_SYM ? 0 : variable(s, i->sym, i->imm);
    case BR_K_ADD:
    case BR_K_SUB:
    case BR_K_OR:
        return br_ktinfo_of[i->type].kind == 'F' ||
                       br_kmod(i->mods, BR_KF_SAT) ||
                       br_ktinfo_of[i->type].lanes != 1
                   ? 0
               : x < y ? x
                       : y;
    case BR_K_AND: return x > y ? x : y;
    case BR_K_MUL: return br_ktinfo_of[i->type].kind == 'F' ? 0 : x + y;
    case BR_K_MULWIDE: return x + y;
    case BR_K_SHL:
        return s->f->vals.at[a[1]].kind == BR_KV_CONST &&
                       s->f->vals.at[a[1]].bits < 32
                   ? x + (unsigned)s->f->vals.at[a[1]].bits
                   : x;
    case BR_K_CVT: /* whole numbers, wider or narrower */
        return br_ktinfo_of[i->type].cat == 'i' &&
                       br_ktinfo_of[i->type2].cat == 'i' && !i->mods
                   ? x
                   : 0;
    case BR_K_TOGEN:
    case BR_K_FROMGEN: /* windows are multiples of 4 GiB */
        return br_kmod(i->mods, BR_KF_SPACE) == BR_KM_SPACE_SHARED ? x : 0;
    default: return 0;
    }
}

/* Bytes that root + at is known to be a multiple of, 16 at most. */
static unsigned
aligned(const joiner *s, const access *a)
{
    unsigned n;

    if (a->root & BR_KFN_SYM)
        return 1u << variable(s, a->root & ~BR_KFN_SYM, a->at);
    n = zeros(s, a->root, 0);
    if (n > 4)
        n = 4;
    if (a->at && (unsigned)__builtin_ctzll((uint64_t)a->at) < n)
        n = (unsigned)__builtin_ctzll((uint64_t)a->at);
    return 1u << n;
}

/* An address as a root and a number. */
static void
take_apart(const joiner *s, const br_kins *i, access *a)
{
    uint32_t v = br_kargs(s->f, i)[0];

    a->at = i->imm;
    for (unsigned depth = 0; depth < MAX_DEPTH; depth++) {
        const br_kval *k = &s->f->vals.at[v], *c;
        const br_kins *d;

        if (k->kind != BR_KV_INS)
            break;
        d = &s->f->ins.at[k->def];
        if (d->op == BR_K_ADDR && !(d->sym & BR_KFN_SYM)) {
            a->root = d->sym | BR_KFN_SYM;
            a->at += d->imm;
            return;
        }
        if (d->op != BR_K_ADD || br_ktinfo_of[d->type].cls != BR_KC_B64 ||
            br_ktinfo_of[d->type].kind == 'F' || d->mods)
            break;
        c = &s->f->vals.at[br_kargs(s->f, d)[1]];
        if (c->kind != BR_KV_CONST || (int64_t)c->bits > 1 << 20 ||
            (int64_t)c->bits < -(1 << 20))
            break;
        a->at += (int64_t)c->bits;
        v = br_kargs(s->f, d)[0];
    }
    a->root = v;
}

static bool
plain(const br_kins *i)
{
    unsigned space = br_kmod(i->mods, BR_KF_SPACE);

    return ((i->op == BR_K_LD && i->n_res == 1) ||
            (i->op == BR_K_ST && i->n_arg == 2)) &&
           !br_kmod(i->mods, BR_KF_SEM) &&
           (space == BR_KM_SPACE_SHARED || space == BR_KM_SPACE_GLOBAL ||
            space == BR_KM_SPACE_CONST) &&
           br_ktinfo_of[i->type].bytes >= 4;
}

static bool
alike(const joiner *s, const access *a, const access *b)
{
    const br_kins *i = &s->f->ins.at[a->id], *j = &s->f->ins.at[b->id];

    return a->root == b->root && i->op == j->op && i->type == j->type &&
           i->mods == j->mods;
}

/* The k accesses in the order of their addresses as one, where the first stood
 * (of stores: the last). */
static void
merge(joiner *s, const access *const *run, unsigned k)
{
    const access *where = run[0];
    br_kins i;
    uint32_t args[5], id;

    for (unsigned n = 1; n < k; n++)
        if (s->f->ins.at[where->id].op == BR_K_LD
                ? run[n]->place < where->place
                : run[n]->place > where->place)
            where = run[n];
    i = s->f->ins.at[where->id];
    args[0] = br_kargs(s->f, &i)[0];
    i.imm += run[0]->at - where->at;
    if (i.op == BR_K_LD) {
        i.n_res = (uint8_t)k;
    } else {
        for (unsigned n = 0; n < k; n++)
            args[1 + n] = br_kargs(s->f, &s->f->ins.at[run[n]->id])[1];
        i.n_arg = (uint16_t)(1 + k);
    }
    id = br_kfn_ins(s->m, s->f, BR_KNONE, &i, args);
    if (s->m->oom)
        return;
    for (unsigned n = 0; n < k; n++) {
        if (i.op == BR_K_LD)
            s->same[s->f->ins.at[run[n]->id].res] = s->f->ins.at[id].res + n;
        s->gone[run[n]->id] = 1;
    }
    s->b->ins.at[where->place] = id;
}

/* From open[first], already in order of addresses: how many can be one. */
static unsigned
run_from(const joiner *s, const access *const *in, size_t n, size_t first)
{
    unsigned bytes = br_ktinfo_of[s->f->ins.at[in[first]->id].type].bytes;
    unsigned most = aligned(s, in[first]) / bytes, k = 1;

    while (k < most && first + k < n &&
           in[first + k]->at == in[first]->at + (int64_t)(k * bytes))
        k++;
    return k >= 4 ? 4 : k >= 2 ? 2 : 1;
}

/* What is remembered becomes as few accesses as may be. */
static void
close_all(joiner *s)
{
    const access *in[MAX_OPEN];
    bool done[MAX_OPEN] = {0};

    for (size_t x = 0; x < s->n && s->n > 1; x++) {
        size_t n = 0, k = 0;

        for (size_t y = x; y < s->n; y++) {
            size_t at = n;

            if (done[y] || !alike(s, &s->open[x], &s->open[y]))
                continue;
            done[y] = true;
            for (n++; at > 0 && in[at - 1]->at > s->open[y].at; at--)
                in[at] = in[at - 1];
            in[at] = &s->open[y];
        }
        while (k < n && !s->m->oom) {
            unsigned r = run_from(s, in, n, k);

            if (r > 1)
                merge(s, in + k, r);
            k += r;
        }
    }
    s->n = 0;
}

/* Whether this one stands between what is remembered and its like. */
static bool
parts(const joiner *s, const br_kins *i)
{
    unsigned props = br_kopinfo_of[i->op].props;
    bool loads = s->n && s->f->ins.at[s->open[0].id].op == BR_K_LD;

    if (loads)
        return props & (BR_KP_WRITE | BR_KP_BAR | BR_KP_TERM);
    return props & (BR_KP_READ | BR_KP_WRITE | BR_KP_CONV | BR_KP_TERM);
}

static void
walk(joiner *s)
{
    for (size_t at = 0; at < s->b->ins.n && !s->m->oom; at++) {
        uint32_t id = s->b->ins.at[at];
        const br_kins *i = &s->f->ins.at[id];
        access a = {.id = id, .place = at};

        if (!plain(i)) {
            if (parts(s, i))
                close_all(s);
            continue;
        }
        take_apart(s, i, &a);
        /* A store to another place may be to the same: an order to keep. */
        if (s->n == MAX_OPEN || (s->n && parts(s, i) &&
                                 !(i->op == BR_K_ST && alike(s, &a, s->open))))
            close_all(s);
        s->open[s->n++] = a;
    }
    close_all(s);
}

bool
br_kpass_join(br_kir *m, br_kfn *f)
{
    size_t n = f->ins.n;
    bool any = true;
    joiner s = {.m = m, .f = f};

    s.same = br_ksame_new(m, f);
    s.gone = br_try_calloc(2 * n + 1, 1); /* one is made of two at least */
    if (!s.same || !s.gone)
        m->oom = true;
    for (size_t b = 0; b < f->blks.n && !m->oom; b++) {
        s.b = &f->blks.at[b];
        walk(&s);
    }
    if (!m->oom) {
        any = f->ins.n > n;
        if (any)
            br_ksame_apply(f, s.same);
        (void)br_kfn_sweep(f, s.gone);
    }
    br_free(s.same);
    br_free(s.gone);
    return any;
}
