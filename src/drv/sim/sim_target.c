/* sim_target.c - kernels of KIR compiled for an AMD processor and run on the
 * simulated one, as a target of kernel run.
 *
 * The kernarg block is the launch's parameters, then what LLVM calls hidden
 * arguments: block counts and group sizes.
 *
 * A launch goes through driver, kernel interface and packet processor
 * (sim_launch.c); with check straight to the waves, where memory ends at the
 * byte and not at the page.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kernel.h"
#include "drv/sim/sim_host.h"
#include "drv/sim/sim_int.h"
#include "drv/sim/sim_launch.h"

#include <string.h>

#define CODE_AT    0x100000000000ull
#define KERNARG_AT 0x10000ull

typedef struct run {
    br_gcn_module *mod;
    br_klaunch *l;
    br_gcn_compiled k;
    br_gcn_co co;
    br_sim sim;
    uint8_t *kernarg;
    uint32_t kernarg_bytes;
    bool asks; /* something of the host */
} run;

static void
note(void *arg, const char *text)
{
    br_klaunch *l = arg;

    if (l->finding)
        l->finding(l->arg, text);
}

static br_code
arguments(run *r, br_status *st)
{
    const br_klaunch *l = r->l;
    uint32_t bytes = l->image->m->fns.at[l->fn].param_bytes;
    uint32_t hidden = (bytes + 7) & ~7u;

    uint32_t vars = hidden + GM_HIDDEN_BYTES;

    r->kernarg_bytes = vars + 8 * (uint32_t)r->k.vars.n;
    r->kernarg = br_try_calloc(r->kernarg_bytes, 1);
    if (!r->kernarg)
        return br_fail(st, BR_E_OOM, "out of memory");
    if (bytes)
        memcpy(r->kernarg, l->params, bytes);
    for (int d = 0; d < 3; d++) {
        uint16_t group = (uint16_t)l->block[d];

        memcpy(r->kernarg + hidden + 4 * d, &l->grid[d], 4);
        memcpy(r->kernarg + hidden + 12 + 2 * d, &group, 2);
    }
    memcpy(r->kernarg + hidden + 20, &l->shared_bytes, 4);
    for (size_t k = 0; k < r->k.vars.n; k++) {
        uint32_t v = r->k.vars.at[k];
        uint64_t at;

        if (v >= l->image->m->vars.n && !r->asks) {
            BR_TRY(sim_host_begin(r->mod, l, st));
            r->asks = true;
        }
        at = v < l->image->m->vars.n ? l->image->addr[v]
                                     : (uint64_t)(uintptr_t)r->mod->host;
        memcpy(r->kernarg + vars + 8 * k, &at, 8);
    }
    return BR_OK;
}

static br_code
map_all(run *r, br_status *st)
{
    br_kregion k = {.addr = KERNARG_AT,
                    .bytes = r->kernarg_bytes,
                    .host = r->kernarg,
                    .read_only = true,
                    .name = "arguments"};

    BR_TRY(br_sim_map(&r->sim, &k, st));
    if (r->mod->host) { /* another kernel may have got memory there */
        br_kregion h = sim_host_region(r->mod);

        BR_TRY(br_sim_map(&r->sim, &h, st));
    }
    for (size_t i = 0; i < r->l->n_regions; i++)
        if (r->l->regions[i].bytes)
            BR_TRY(br_sim_map(&r->sim, &r->l->regions[i], st));
    for (size_t i = 0; i < r->l->image->regions.n; i++) {
        const br_kregion *v = &r->l->image->regions.at[i];

        /* Variables may lie in memory that the launch has anyway. */
        if (v->bytes && !sim_at(&r->sim, v->addr, v->bytes, false))
            BR_TRY(br_sim_map(&r->sim, v, st));
    }
    return br_sim_load(&r->sim, &r->co, CODE_AT, st);
}

static br_code
dispatch(run *r, const br_gcn_isa *isa, br_status *st)
{
    br_klaunch *l = r->l;
    br_aql_launch a = {.kernarg = KERNARG_AT};
    br_aql_packet p;
    br_str o = {0};
    uint64_t kd;
    br_code c;

    c = br_gcn_compile(&r->k, isa, l->image->m, l->fn, st);
    l->no_code = c == BR_E_UNSUPPORTED;
    BR_TRY(c);
    c = br_gcn_object(&o, isa, &r->k.k, 1, st);
    if (c == BR_OK)
        c = br_gcn_load(&r->co, o.at, o.n, st);
    br_str_fini(&o);
    BR_TRY(c);
    BR_TRY(arguments(r, st));
    kd = br_gcn_kernel_find(&r->co, r->k.k.name)->at;
    a.group_bytes = r->k.k.lds_bytes + l->shared_bytes;
    if (!l->check)
        return sim_launch_run(
            &(sim_launch){.l = l,
                          .mod = r->asks ? r->mod : NULL,
                          .heap = r->mod->host ? r->mod : NULL,
                          .co = &r->co,
                          .kd_at = kd,
                          .lds_bytes = a.group_bytes,
                          .kernarg_bytes = r->kernarg_bytes,
                          .kernarg = r->kernarg},
            st);
    BR_TRY(map_all(r, st));
    memcpy(a.groups, l->grid, sizeof a.groups);
    memcpy(a.group, l->block, sizeof a.group);
    a.kernel = CODE_AT + kd;
    BR_TRY(br_aql_fill(&p, &a, st));
    c = br_sim_dispatch(&r->sim, &p, st);
    return r->asks ? sim_host_end(r->mod, &r->sim, l, c, st) : c;
}

static br_code
launch(br_kcode *code, br_klaunch *l, br_status *st)
{
    br_gcn_module *m = (br_gcn_module *)(void *)code;
    run r = {.mod = m,
             .l = l,
             .sim = {.cpu = m->isa.cpu,
                     .check = l->check,
                     .max_steps = l->max_steps,
                     .finding = note,
                     .arg = l}};
    br_code c;

    l->fault = BR_KFAULT_OTHER;
    sim_host_share(m, l);
    c = dispatch(&r, &m->isa, st);
    if (l->check)
        l->steps = r.sim.steps;
    l->findings = r.sim.findings;
    if (l->fault == BR_KFAULT_OTHER)
        l->fault = r.sim.fault;
    br_sim_fini(&r.sim);
    br_gcn_unload(&r.co);
    br_gcn_compiled_fini(&r.k);
    br_free(r.kernarg);
    return c;
}

bool
br_sim_target(br_ktarget *out, const char *cpu)
{
    const br_ktarget *t = br_ktarget_find(cpu);

    if (!t || !br_gcn_cpu_find(cpu))
        return false;
    *out = *t;
    out->launch = launch;
    return true;
}
