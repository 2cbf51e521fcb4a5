/* gcn_target.c - kernels of a module for an AMD processor.
 *
 * Registers that the hardware fills: s[0:1] the kernarg block; on gfx11 the
 * ids of the work-group behind the user registers (13 of them on the processors
 * that start with wrong ones when there are fewer), on gfx12 in ttmp7 and
 * ttmp9; v0 the ids of the work-item, ten bits each.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kernel.h"
#include "cg/gcn/gcn_lower.h"

#include <string.h>

enum { MAX_PARAMS = 32764 }; /* as CUDA has it, from 12.1 on */

/* ---- one kernel -------------------------------------------------------- */

static bool
rows_by_name(const br_gcn_isa *isa, br_map *rows)
{
    size_t n;
    const br_gcn_row *r = br_gcn_rows(isa->cpu, &n);

    for (size_t k = 0; k < n; k++) {
        bool fresh;
        br_map_value *v;

        if (!br_gcn_row_here(isa->cpu, &r[k]))
            continue;
        v = br_map_put(rows, br_text_z(r[k].name), &fresh);
        if (!v)
            return false;
        if (fresh)
            v->p = (void *)(uintptr_t)&r[k];
    }
    return true;
}

/* SGPRs before the three numbers of the work-group. */
static unsigned
users(const br_gcn_isa *isa)
{
    return BR_MAX(2 + 3, br_gcn_least_sgprs(isa)) - 3;
}

static bool
begin(gm_fn *g)
{
    const br_kfn *f = g->f;
    size_t n = f->blks.n;
    uint8_t *flags = br_try_calloc(2 * f->vals.n + n + 1, 1);
    uint32_t *mem = br_try_calloc(3 * n + 1, sizeof *mem);
    bool ok = flags && mem;

    g->uniform = flags;
    g->mixed = flags + 2 * f->vals.n;
    g->order = mem;
    g->vals = br_try_calloc(f->vals.n + 1, sizeof *g->vals);
    ok = ok && g->vals && br_kfn_order(f, g->order);
    if (ok) {
        g->at = mem + n;
        g->turn = mem + 2 * n;
        for (uint32_t p = 0; p < n; p++)
            g->turn[g->order[p]] = p;
        ok = br_kfn_uniform(f, g->isa->wave64, g->order, g->turn, flags,
                            flags + f->vals.n, flags + 2 * f->vals.n, NULL);
    }
    if (!ok) {
        gm_oom(g);
        return false;
    }
    for (uint32_t v = 0; v < f->vals.n; v++)
        g->uniform[v] |= f->vals.at[v].kind != BR_KV_INS;
    g->kernarg = gm_new(g, 'S', 2);
    g->tid = gm_new(g, 'V', 1);
    for (unsigned d = 0; d < 3; d++)
        g->group[d] = gm_new(g, 'S', 1);
    if (g->code != BR_OK)
        return false;
    g->vregs.at[g->kernarg].phys = 0;
    g->vregs.at[g->tid].phys = 0;
    for (unsigned d = 0; d < 3; d++)
        g->vregs.at[g->group[d]].phys = (int16_t)(users(g->isa) + d);
    return true;
}

/* A cluster is one block there: its registers are others, or 0 and 1. */
int64_t
gm_of_one(int64_t r)
{
    if (r >= BR_KS_CLUSTERID_X && r <= BR_KS_CLUSTERID_Z)
        return r - BR_KS_CLUSTERID_X + BR_KS_CTAID_X;
    if (r >= BR_KS_NCLUSTERID_X && r <= BR_KS_NCLUSTERID_Z)
        return r - BR_KS_NCLUSTERID_X + BR_KS_NCTAID_X;
    if (r < BR_KS_CL_CTAID_X)
        return r;
    return r <= BR_KS_CL_CTAID_Z || r == BR_KS_CL_CTARANK ? BR_KS_SMID
                                                          : BR_KS_NSMID;
}

static bool
asks_one_id(const br_kfn *f)
{
    for (uint32_t k = 0; k < f->ins.n; k++) {
        const br_kins *i = &f->ins.at[k];

        if (i->op == BR_K_SREG &&
            (i->imm == BR_KS_TID_Y || i->imm == BR_KS_TID_Z ||
             i->imm == BR_KS_WARPID))
            return false;
    }
    return true;
}

/* Shared variables that the kernel names, in order; dynamic ones last. */
bool
gm_place_shared(gm_fn *g)
{
    uint64_t at = 0;

    g->lds = br_try_calloc(g->m->vars.n + 1, sizeof *g->lds);
    for (size_t k = 0; g->lds && k < g->f->ins.n; k++) {
        const br_kins *i = &g->f->ins.at[k];

        if (i->op == BR_K_ADDR && !(i->sym & BR_KFN_SYM))
            g->lds[i->sym] = 1;
    }
    for (int dynamic = 0; g->lds && dynamic < 2; dynamic++)
        for (size_t k = 0; k < g->m->vars.n; k++) {
            const br_kvar *v = &g->m->vars.at[k];
            uint64_t mask = BR_MAX(v->align, dynamic ? 16u : 1u) - 1;

            if (!g->lds[k] || v->space != BR_KM_SPACE_SHARED ||
                v->external != (bool)dynamic)
                continue;
            at = (at + mask) & ~mask;
            g->lds[k] = (uint32_t)at;
            at += dynamic ? 0 : v->bytes;
            if (at > GM_MAX_LDS) {
                gm_fail(g, BR_E_LIMIT,
                        "%llu bytes of shared memory, counters of barriers "
                        "too; a block has %d here",
                        (unsigned long long)at, GM_MAX_LDS);
                return false;
            }
        }
    g->lds_bytes = (uint32_t)at;
    return g->lds != NULL;
}

static void
select_all(gm_fn *g)
{
    g->one_id = asks_one_id(g->f);
    gm_classes(g);
    if (!gm_flow_begin(g))
        return;
    if (g->isa->wave64)
        gm_refuse_spins(g);
    for (uint32_t p = 0; p < g->places.n && g->code == BR_OK; p++)
        gm_select(g, p);
}

static void
say(gm_fn *g, br_gcn_compiled *out)
{
    static const br_gcn_arg hidden[] = {
        {0, 4, "hidden_block_count_x"},    {4, 4, "hidden_block_count_y"},
        {8, 4, "hidden_block_count_z"},    {12, 2, "hidden_group_size_x"},
        {14, 2, "hidden_group_size_y"},    {16, 2, "hidden_group_size_z"},
        {20, 4, "hidden_dynamic_lds_size"}};
    const br_kfn *f = g->f;
    uint32_t bytes = g->args_bytes + (g->hidden ? GM_HIDDEN_BYTES : 0) +
                     8 * (uint32_t)g->vars.n;
    uint32_t most = f->req_threads ? f->req_threads : f->max_threads;
    bool ok = true;

    out->name = br_try_calloc(f->name.n + 1, 1);
    if (out->name)
        memcpy(out->name, f->name.p, f->name.n);
    for (size_t k = 0; ok && k < f->params.n; k++) {
        const br_kparam *p = &f->params.at[k];
        /* PTX does not say which parameters are pointers. */
        br_gcn_arg a = {p->offset, p->bytes, NULL};

        ok = br_vec_push(&out->args, a);
    }
    for (size_t k = 0; ok && g->hidden && k < BR_COUNT(hidden) - !g->dynamic;
         k++) {
        br_gcn_arg a = hidden[k];

        a.offset += g->args_bytes;
        ok = br_vec_push(&out->args, a);
    }
    for (size_t k = 0; ok && k < g->vars.n; k++) {
        br_gcn_arg a = {g->args_bytes + GM_HIDDEN_BYTES + 8 * (uint32_t)k, 8,
                        NULL};

        ok = br_vec_push(&out->args, a) &&
             br_vec_push(&out->vars, g->vars.at[k]);
    }
    if (!ok || !out->name)
        gm_oom(g);
    out->k = (br_gcn_kernel){.name = out->name,
                             .code = out->words.at,
                             .words = out->words.n,
                             .lds_bytes = g->lds_bytes,
                             .scratch_bytes = g->scratch_bytes,
                             .kernarg_bytes = bytes,
                             .vgprs = (uint16_t)BR_MAX(g->vgprs, 1),
                             .sgprs = g->sgprs,
                             .max_threads = (uint16_t)(most ? most : 1024),
                             .ids = g->ids,
                             .args = out->args.at,
                             .n_args = out->args.n};
}

static void
fini(gm_fn *g)
{
    for (size_t k = 0; k < g->blks.n; k++) {
        br_vec_fini(&g->blks.at[k].ins);
        br_vec_fini(&g->blks.at[k].wave);
        br_vec_fini(&g->blks.at[k].lanes);
    }
    br_vec_fini(&g->blks);
    br_vec_fini(&g->places);
    br_vec_fini(&g->vregs);
    br_vec_fini(&g->vars);
    br_vec_fini(&g->joined);
    br_vec_fini(&g->windows);
    br_vec_fini(&g->keeps);
    br_free(g->pend);
    br_free(g->order);
    br_free(g->uniform);
    br_free(g->vals);
    br_free(g->lds);
}

static void
finish(gm_fn *g, br_gcn_compiled *out)
{
    gcn_code c = {0};

    if (gm_encode(g, &c)) {
        gcn_pass_wait(&c);
        if (!g->isa->wave64) /* has no dual instructions */
            gcn_pass_dual(&c);
        gcn_pass_hazard(&c);
        gcn_pass_delay(&c);
        gcn_pass_short(&c);
        if (c.oom)
            gm_oom(g);
        else
            g->code = gcn_layout(&c, &out->words, g->st);
    }
    gcn_code_fini(&c);
    if (g->code == BR_OK)
        say(g, out);
}

br_code
br_gcn_compile(br_gcn_compiled *out, const br_gcn_isa *isa, const br_kir *m,
               uint32_t fn, br_status *st)
{
    br_map rows = {0};
    br_kir *own;
    const br_kfn *f;
    gm_fn g = {.isa = isa, .rows = &rows, .ids = 1, .st = st};

    memset(out, 0, sizeof *out);
    if (isa->wave64 && isa->cpu->wmma) /* matrices lie otherwise in 64 lanes */
        return br_fail(st, BR_E_UNSUPPORTED,
                       "v_wmma is made for waves of 32 lanes alone");
    f = &m->fns.at[fn];
    if (f->cluster[0] * f->cluster[1] * f->cluster[2] > 1)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "%.*s: line %u: clusters of several blocks are not on "
                       "AMD processors",
                       (int)f->name.n, f->name.p, f->line);
    BR_TRY(gm_lower(&own, m, fn, isa, st));
    f = &own->fns.at[0];
    g.m = own;
    g.f = f;
    g.line = f->line;
    g.args_bytes = (f->param_bytes + 7) & ~7u;
    if (f->param_bytes > MAX_PARAMS)
        gm_fail(&g, BR_E_LIMIT, "%u bytes of parameters; %d are the most",
                f->param_bytes, MAX_PARAMS);
    g.scratch_bytes = (f->frame_bytes + 15) & ~15u;
    if (g.scratch_bytes > GM_MAX_SCRATCH)
        gm_fail(&g, BR_E_LIMIT,
                "%u bytes of local memory of a thread; %d are there: smaller "
                "local arrays, or such in global memory",
                g.scratch_bytes, GM_MAX_SCRATCH);
    if (!rows_by_name(isa, &rows) || !gm_place_shared(&g))
        gm_oom(&g);
    if (g.code == BR_OK && begin(&g))
        select_all(&g);
    if (g.code == BR_OK)
        gm_peep(&g);
    if (g.code == BR_OK && gm_alloc(&g))
        finish(&g, out);
    fini(&g);
    br_map_fini(&rows);
    br_kir_free(own);
    if (g.code != BR_OK)
        br_gcn_compiled_fini(out);
    return g.code;
}

void
br_gcn_compiled_fini(br_gcn_compiled *k)
{
    br_free(k->words.at);
    br_vec_fini(&k->args);
    br_vec_fini(&k->vars);
    br_free(k->name);
    memset(k, 0, sizeof *k);
}

/* ---- the target -------------------------------------------------------- */

static br_code
open_module(br_kcode **out, const char *cpu, bool wave64, const br_kir *m,
            br_status *st)
{
    br_gcn_module *x = br_try_calloc(1, sizeof *x);

    *out = (br_kcode *)(void *)x;
    if (!x)
        return br_fail(st, BR_E_OOM, "out of memory");
    x->isa = (br_gcn_isa){br_gcn_cpu_find(cpu), wave64};
    x->m = m;
    return BR_OK;
}

static void
close_module(br_kcode *c)
{
    br_gcn_module *x = (br_gcn_module *)(void *)c;

    if (x)
        if (!x->host_of_all)
            br_free(x->host);
    br_free(x);
}

static br_code
text(const br_kcode *code, uint32_t fn, br_str *out, br_status *st)
{
    const br_gcn_module *x = (const br_gcn_module *)(const void *)code;
    br_gcn_compiled k;

    if (!x->m->fns.at[fn].entry)
        return BR_OK;
    BR_TRY(br_gcn_compile(&k, &x->isa, x->m, fn, st));
    br_str_printf(out, "%s: ; %u vgprs, %u sgprs, %u bytes of LDS\n", k.k.name,
                  k.k.vgprs, k.k.sgprs, k.k.lds_bytes);
    for (size_t at = 0; at < k.words.n;) {
        br_gcn_inst in;
        unsigned n =
            br_gcn_decode(&x->isa, k.words.at + at, k.words.n - at, &in);

        br_check(n && "code that the disassembler knows");
        br_str_printf(out, "%6zx  ", at * 4);
        br_gcn_print(&x->isa, &in, out);
        br_str_putc(out, '\n');
        at += n;
    }
    br_gcn_compiled_fini(&k);
    return BR_OK;
}

static br_code
file(const br_kcode *code, uint32_t only, br_str *out, br_status *st)
{
    const br_gcn_module *x = (const br_gcn_module *)(const void *)code;
    size_t most = x->m->fns.n, n = 0;
    br_gcn_compiled *k = br_try_calloc(most + 1, sizeof *k);
    br_gcn_kernel *rows = br_try_calloc(most + 1, sizeof *rows);
    br_code c = k && rows ? BR_OK : br_fail(st, BR_E_OOM, "out of memory");

    for (uint32_t f = 0; c == BR_OK && f < most; f++) {
        const br_kfn *fn = &x->m->fns.at[f];

        if (!fn->entry || !fn->blks.n || (only != BR_KNONE && only != f))
            continue;
        c = br_gcn_compile(&k[n], &x->isa, x->m, f, st);
        if (c == BR_OK)
            rows[n] = k[n].k;
        n += c == BR_OK;
    }
    if (c == BR_OK)
        c = br_gcn_object(out, &x->isa, rows, n, st);
    for (size_t f = 0; f < n; f++)
        br_gcn_compiled_fini(&k[f]);
    br_free(k);
    br_free(rows);
    return c;
}

static br_code
zrt(const br_kcode *code, uint32_t fn, br_zrt *z, br_str *out, br_str *lines,
    br_status *st)
{
    const br_gcn_module *x = (const br_gcn_module *)(const void *)code;
    br_gcn_compiled k;

    (void)lines; /* code objects of ours have none */
    z->target = br_zrt_target(x->isa.cpu->name);
    if (!z->target)
        return br_fail(st, BR_E_UNSUPPORTED, ".zrt has no number for %s",
                       x->isa.cpu->name);
    BR_TRY(br_gcn_compile(&k, &x->isa, x->m, fn, st));
    z->subgroup = br_gcn_lanes(&x->isa);
    z->vgprs = k.k.vgprs;
    z->sgprs = k.k.sgprs;
    z->lds_bytes = k.k.lds_bytes;
    br_gcn_compiled_fini(&k);
    return file(code, fn, out, st);
}

#define CPU(name, gen, mach, minor5)                                           \
    static br_code open_##name(br_kcode **out, const br_kir *m, br_status *st) \
    {                                                                          \
        return open_module(out, #name, false, m, st);                          \
    }                                                                          \
    static br_code wmma_##name(br_kcode **out, const br_kir *m, br_status *st) \
    {                                                                          \
        return open_module(out, #name "-wmma", false, m, st);                  \
    }                                                                          \
    static br_code w64_##name(br_kcode **out, const br_kir *m, br_status *st)  \
    {                                                                          \
        return open_module(out, #name, true, m, st);                           \
    }
#include "cg/gcn/cpus.def"
#undef CPU

const br_ktarget br_gcn_targets[] = {
#define CPU(name, gen, mach, minor5)                                       \
    {#name, open_##name, close_module, NULL, text, file, zrt},             \
        {#name "-wmma", wmma_##name, close_module, NULL, text, file, zrt}, \
        {#name "-wave64", w64_##name, close_module, NULL, text, file, zrt},
#include "cg/gcn/cpus.def"
#undef CPU
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
