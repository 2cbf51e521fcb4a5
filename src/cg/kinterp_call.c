/* kinterp_call.c - frames of functions, and the few functions a host lends.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kinterp_int.h"
#include "cg/kprint.h"
#include "cg/x86/x86_int.h"

#include <stdio.h>
#include <string.h>

enum { HEAP_BYTES = 8 << 20 };

static br_code
no_memory(ki_run *r)
{
    return br_fail(r->st, BR_E_OOM, "kernel: out of memory");
}

br_code
ki_fn_ready(ki_run *r, uint32_t fn)
{
    ki_fn *k = &r->fns[fn];
    const br_kfn *f = &r->m->fns.at[fn];

    if (k->order)
        return BR_OK;
    k->order = br_try_calloc(2 * f->blks.n + 1, sizeof *k->order);
    if (!k->order || !br_kfn_order(f, k->order))
        return no_memory(r);
    k->place = k->order + f->blks.n;
    for (uint32_t p = 0; p < f->blks.n; p++)
        k->place[k->order[p]] = p;
    for (size_t i = 0; i < f->ins.n && !k->waits; i++)
        k->waits =
            f->ins.at[i].op == BR_K_ATOM || f->ins.at[i].op == BR_K_CAS ||
            f->ins.at[i].op == BR_K_CAS2 || f->ins.at[i].op == BR_K_XCHG2 ||
            f->ins.at[i].op == BR_K_CALL || f->ins.at[i].op == BR_K_CALLI;
    return BR_OK;
}

/* A row of lanes for each value, the constants filled in. */
ki_row *
ki_rows(const br_kfn *f)
{
    ki_row *rows = br_try_calloc(f->vals.n + 1, sizeof *rows);

    for (size_t v = 0; rows && v < f->vals.n; v++)
        for (unsigned k = 0; k < KI_LANES && f->vals.at[v].kind == BR_KV_CONST;
             k++)
            rows[v][k] = f->vals.at[v].bits;
    return rows;
}

br_code
ki_push(ki_run *r, ki_warp *w, uint32_t fn, uint32_t mask)
{
    const br_kfn *f = &r->m->fns.at[fn];
    ki_frame x = {.f = f, .came = mask, .mask = mask};
    const ki_frame *below = w->frames.n ? ki_top(w) : NULL;

    if (w->frames.n == KI_MAX_FRAMES)
        return ki_fault(r, "calls over %d deep", KI_MAX_FRAMES);
    BR_TRY(ki_fn_ready(r, fn));
    x.k = &r->fns[fn];
    for (unsigned k = 0; below && k < KI_LANES; k++)
        x.base = BR_MAX(x.base, below->top[k]);
    x.base = (x.base + 15) & ~15u;
    for (unsigned k = 0; k < KI_LANES; k++)
        x.top[k] = x.base + f->frame_bytes;
    BR_TRY(ki_local_room(r, w, (uint64_t)x.base + f->frame_bytes));
    if (r->native)
        BR_TRY(x86_frame(r, w, &x, fn));
    else
        x.vals = ki_rows(f);
    x.pend = br_try_calloc(3 * f->blks.n + 1, sizeof *x.pend);
    if (!x.vals || !x.pend || !br_vec_push(&w->frames, x)) {
        if (!r->native)
            br_free(x.vals);
        br_free(x.slots_alloc);
        br_free(x.pend);
        return no_memory(r);
    }
    x.tail = x.pend + f->blks.n;
    x.hold = x.tail + f->blks.n;
    x.pend[x.k->place[0]] = mask;
    *ki_top(w) = x;
    return BR_OK;
}

void
ki_pop(ki_run *r, ki_warp *w)
{
    ki_frame f = *ki_top(w);

    (void)r;
    if (!f.native)
        br_free(f.vals);
    br_free(f.slots_alloc);
    br_free(f.pend);
    w->frames.n--;
    if (w->frames.n) {
        ki_frame *below = ki_top(w);

        below->hold[f.call] &= ~f.came;
        below->tail[f.call] |= f.came & w->live;
        below->low = 0;
    }
}

/* Copies between a frame's parameters and the caller's variables. */
static br_code
transfer(ki_run *r, ki_warp *w, bool results, uint32_t mask)
{
    const ki_frame *f = ki_top(w), *c = f - 1;
    const br_kblk *b = &c->f->blks.at[c->k->order[f->call]];
    const br_kins *i = &c->f->ins.at[b->ins.at[b->ins.n - 2]];
    unsigned first = i->op == BR_K_CALLI;

    if (c->slots)
        x86_fetch(c, i, mask);
    for (size_t k = 0; k < f->f->params.n; k++) {
        const br_kparam *p = &f->f->params.at[k];

        if (p->result != results)
            continue;
        ki_each_lane(lane, mask)
        {
            uint64_t theirs = ki_arg(c, i, first + (unsigned)k)[lane];
            uint8_t *lane_at = w->local + (size_t)lane * w->local_bytes;
            uint8_t *init = r->l->check
                                ? w->local_init + (size_t)lane * w->local_bytes
                                : NULL;
            uint64_t ours = (uint64_t)f->base + p->offset;
            uint64_t to = results ? theirs : ours;
            uint64_t from = results ? ours : theirs;

            r->lane = lane;
            if (theirs > w->local_bytes || w->local_bytes - theirs < p->bytes)
                return ki_fault(r, "an argument outside of local memory");
            memmove(lane_at + to, lane_at + from, p->bytes);
            if (init)
                memmove(init + to, init + from, p->bytes);
        }
    }
    return BR_OK;
}

br_code
ki_return(ki_run *r, ki_warp *w, uint32_t mask)
{
    ki_frame *f = ki_top(w);

    f->mask &= ~mask;
    return transfer(r, w, true, mask);
}

/* ---- functions of the host ---------------------------------------------- */

/* A string of global memory, up to its NUL or the end of the region. */
static bool
string_at(ki_run *r, ki_warp *w, uint64_t addr, char *buf, size_t size)
{
    size_t n = 0;

    for (; n + 1 < size; n++) {
        const char *p = ki_at(r, w, 0, addr + n, 1, KI_READ);

        if (!p)
            return false;
        if (!*p)
            break;
        buf[n] = *p;
    }
    buf[n] = 0;
    return true;
}

typedef struct printed {
    ki_run *r;
    ki_warp *w;
    uint64_t at; /* of the next argument */
    unsigned n;  /* so many were there */
} printed;

static bool
next_arg(void *ctx, bool wide, uint64_t *v)
{
    printed *p = ctx;
    const void *at;

    p->at = wide ? (p->at + 7) & ~7ull : p->at;
    at = ki_at(p->r, p->w, 0, p->at, wide ? 8 : 4, KI_READ);
    *v = at ? ki_load(at, wide ? 8 : 4) : 0;
    p->at += wide ? 8 : 4;
    p->n++;
    return at != NULL;
}

static bool
next_text(void *ctx, uint64_t v, char *buf, size_t size)
{
    printed *p = ctx;

    if (v)
        return string_at(p->r, p->w, v, buf, size);
    snprintf(buf, size, "(null)");
    return true;
}

/* What it returns is CUDA's: so many arguments, not characters; -1: no format. */
static br_code
host_print(ki_run *r, ki_warp *w, const uint64_t *a, uint64_t *res)
{
    char f[BR_KPRINT_MAX];
    br_str out = {0};
    printed p = {.r = r, .w = w, .at = a[1]};
    br_kprint_from from = {next_arg, next_text, &p};
    bool ok;

    *res = UINT64_MAX;
    if (!a[0])
        return BR_OK;
    ok = string_at(r, w, a[0], f, sizeof f) && br_kprint(&out, f, &from);
    *res = p.n;
    if (ok && r->l->print && out.n)
        r->l->print(r->l->arg, out.at, out.n);
    ok = ok && !out.oom;
    br_str_fini(&out);
    return ok ? BR_OK : BR_E_FAULT;
}

static br_code
add_region(ki_run *r, br_kregion g)
{
    if (!br_vec_push(&r->regions, g))
        return no_memory(r);
    for (size_t p = r->regions.n - 1; p && r->regions.at[p - 1].addr > g.addr;
         p--) {
        r->regions.at[p] = r->regions.at[p - 1];
        r->regions.at[p - 1] = g;
    }
    return BR_OK;
}

static br_code
host_malloc(ki_run *r, uint64_t bytes, uint64_t *out)
{
    br_kregion g = {.name = "memory of malloc"};

    *out = 0;
    g.bytes = bytes = (bytes + 15) & ~15ull;
    if (bytes == 0 || bytes > HEAP_BYTES)
        return BR_OK; /* as on a device: NULL */
    if (r->l->heap_get) {
        g.host = r->l->heap_get(r->l->arg, bytes);
        g.addr = *out = (uint64_t)(uintptr_t)g.host;
        return g.host ? add_region(r, g) : BR_OK;
    }
    if (bytes > HEAP_BYTES - r->heap_top)
        return BR_OK;
    if (!r->heap)
        r->heap = br_try_calloc(HEAP_BYTES, 1);
    if (!r->heap)
        return no_memory(r);
    g.addr = *out = KI_HEAP + r->heap_top;
    g.host = r->heap + r->heap_top;
    r->heap_top += bytes;
    return add_region(r, g);
}

static br_code
host_free(ki_run *r, uint64_t addr)
{
    size_t k = 0;

    if (!addr || !r->l->heap_put)
        return BR_OK;
    while (k < r->regions.n && r->regions.at[k].addr != addr)
        k++;
    if (k == r->regions.n || !r->l->heap_put(r->l->arg, r->regions.at[k].host))
        return ki_fault(r, "free of 0x%llx, which malloc did not give",
                        (unsigned long long)addr);
    memmove(r->regions.at + k, r->regions.at + k + 1,
            (--r->regions.n - k) * sizeof *r->regions.at);
    return BR_OK;
}

static br_code
host_assert(ki_run *r, ki_warp *w, const uint64_t *a)
{
    char what[200], file[200];

    if (!string_at(r, w, a[0], what, sizeof what) ||
        !string_at(r, w, a[1], file, sizeof file))
        return BR_E_FAULT;
    r->l->fault = BR_KFAULT_ASSERT;
    return ki_fault(r, "assertion `%s' failed at %s:%llu", what, file,
                    (unsigned long long)(uint32_t)a[2]);
}

/* What a function without a body does, lane by lane. */
static br_code
host(ki_run *r, ki_warp *w, const br_kfn *fn, const br_kins *i, uint32_t exec)
{
    const ki_frame *f = ki_top(w);
    unsigned first = i->op == BR_K_CALLI;

    ki_each_lane(lane, exec)
    {
        uint64_t a[8] = {0}, res = 0, to = 0;
        unsigned n = 0, res_bytes = 0;
        br_code code = BR_OK;

        r->lane = lane;
        for (unsigned k = 0; k < fn->params.n; k++) {
            const br_kparam *p = &fn->params.at[k];
            uint64_t at = ki_arg(f, i, first + k)[lane];
            const void *v;

            if (p->result) {
                to = at;
                res_bytes = BR_MIN(p->bytes, 8u);
                continue;
            }
            v = ki_at(r, w, BR_KM_SPACE_LOCAL, at, BR_MIN(p->bytes, 8u),
                      KI_READ);
            if (!v)
                return BR_E_FAULT;
            if (n < BR_COUNT(a))
                a[n++] = ki_load(v, BR_MIN(p->bytes, 8u));
        }
        if (br_text_is(fn->name, "vprintf"))
            code = host_print(r, w, a, &res);
        else if (br_text_is(fn->name, "malloc"))
            code = host_malloc(r, a[0], &res);
        else if (br_text_is(fn->name, "__assertfail"))
            code = host_assert(r, w, a);
        else if (br_text_is(fn->name, "free"))
            code = host_free(r, a[0]);
        else
            code = ki_fault(r, "the function %.*s has no body",
                            (int)BR_MIN(fn->name.n, (size_t)80), fn->name.p);
        if (code == BR_OK && res_bytes) {
            void *p = ki_at(r, w, BR_KM_SPACE_LOCAL, to, res_bytes, KI_WRITE);

            if (!p)
                return BR_E_FAULT;
            ki_store(p, res, res_bytes);
        }
        BR_TRY(code);
    }
    return BR_OK;
}

/* ---- calls -------------------------------------------------------------- */

static br_code
call_one(ki_run *r, ki_warp *w, const br_kins *i, uint32_t fn, uint32_t exec)
{
    const br_kfn *f = &r->m->fns.at[fn];

    if (f->external)
        return host(r, w, f, i, exec);
    if (f->entry || f->params.n + (i->op == BR_K_CALLI) != i->n_arg)
        return ki_fault(r, "the call does not fit the function %.*s",
                        (int)BR_MIN(f->name.n, (size_t)80), f->name.p);
    BR_TRY(ki_push(r, w, fn, exec));
    ki_top(w)->call = r->pos;
    return transfer(r, w, false, exec);
}

/* The functions that lanes point at, one after another. */
static br_code
call_each(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    size_t depth = w->frames.n;

    while (exec) {
        const uint64_t *at = ki_arg(ki_top(w), i, 0);
        uint64_t target = at[__builtin_ctz(exec)];
        uint32_t same = 0;

        r->lane = (unsigned)__builtin_ctz(exec);
        if (target < KI_CODE || (target - KI_CODE) % 16 ||
            (target - KI_CODE) / 16 >= r->m->fns.n)
            return ki_fault(r, "a call of 0x%llx, which is no function",
                            (unsigned long long)target);
        ki_each_lane(lane, exec) same |= (uint32_t)(at[lane] == target) << lane;
        exec &= ~same;
        BR_TRY(call_one(r, w, i, (uint32_t)((target - KI_CODE) / 16), same));
        if (w->frames.n > depth) { /* it has a body */
            ki_top(w)->rest = exec;
            break;
        }
    }
    return BR_OK;
}

br_code
ki_call(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec)
{
    return i->op == BR_K_CALLI ? call_each(r, w, i, exec)
                               : call_one(r, w, i, i->sym & ~BR_KFN_SYM, exec);
}

br_code
ki_called(ki_run *r, ki_warp *w)
{
    uint32_t rest = ki_top(w)->rest & w->live, call = ki_top(w)->call;
    const br_kblk *b;
    const br_kins *i;
    ki_frame *f;
    size_t depth;

    ki_pop(r, w);
    if (!rest)
        return BR_OK;
    f = ki_top(w);
    b = &f->f->blks.at[f->k->order[call]];
    i = &f->f->ins.at[b->ins.at[b->ins.n - 2]];
    if (f->slots)
        x86_fetch(f, i, rest);
    r->pos = call;
    depth = w->frames.n;
    BR_TRY(call_each(r, w, i, rest));
    f = &w->frames.at[depth - 1];
    if (w->frames.n == depth) { /* all were the host's */
        f->hold[call] &= ~rest;
        f->tail[call] |= rest;
    }
    return BR_OK;
}
