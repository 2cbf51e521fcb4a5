/* cu_launch.c - launches: what is checked before, what runs, what it may have.
 *
 * exec() is the one place where a kernel is handed to who runs it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cuda_int.h"

#include "base/options.h"
#include "drv/sim/sim.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct run {
    br_klaunch l;
    const char *name;
    bc_module *mod;
    struct CUfunc_st *f;
    bool cooperative;
    void **args; /* into params, when somebody asks */
    uint8_t params[];
} run;

static void *
heap_get(void *arg, uint64_t bytes)
{
    void *p = NULL;

    (void)arg;
    bc_lock();
    if (bc_rt.heap_bytes - bc_rt.heap_used >= bytes &&
        bc_mem_get(&p, bytes, 16, BC_MEM_HEAP, 0) == cudaSuccess)
        bc_rt.heap_used += bytes;
    bc_unlock();
    return p;
}

static bool
heap_put(void *arg, void *p)
{
    const bc_mem *m;
    uint64_t bytes;
    bool ok;

    (void)arg;
    bc_lock();
    m = bc_mem_find(p);
    bytes = m ? m->bytes : 0;
    ok = bc_mem_put(p, BC_MEM_HEAP) == cudaSuccess;
    bc_rt.heap_used -= ok ? bytes : 0;
    bc_unlock();
    return ok;
}

static cudaError_t
error_of(br_code code, br_kfault fault)
{
    if (code == BR_OK)
        return cudaSuccess;
    if (code != BR_E_FAULT)
        return code == BR_E_OOM ? cudaErrorMemoryAllocation
                                : cudaErrorLaunchFailure;
    switch (fault) {
    case BR_KFAULT_ADDRESS: return cudaErrorIllegalAddress;
    case BR_KFAULT_ALIGN: return cudaErrorMisalignedAddress;
    case BR_KFAULT_ASSERT: return cudaErrorAssert;
    case BR_KFAULT_UNKNOWN: return cudaErrorIllegalInstruction;
    case BR_KFAULT_STUCK: return cudaErrorLaunchTimeout;
    case BR_KFAULT_OTHER: break;
    }
    return cudaErrorLaunchFailure;
}

/* ---- compiled modules on disk --------------------------------------------- */

static br_kcache cache;
static char cache_folder[4096]; /* as long as the process */
static br_once cache_once = BR_ONCE;

static void
keep_in(br_str *at, uint64_t most)
{
    br_str_puts(at, "/kernels");
    if (at->oom || at->n >= sizeof cache_folder)
        return;
    memcpy(cache_folder, at->at, at->n + 1);
    cache = (br_kcache){cache_folder, most};
}

/* What kernels run on but this processor, or NULL; of no letters it is not set. */
static const char *
runs_on(void)
{
    const char *on = getenv("BRASS_CUDA_ON");

    return on && *on ? on : NULL;
}

/* BRASS_KERNEL_CACHE_BYTES, as brass kernel cache has it. */
static void
find_cache(void)
{
    static const br_option row = {.name = "kernel-cache-bytes",
                                  .def = BR_KCACHE_BYTES,
                                  .hi = INT64_MAX,
                                  .type = BR_OPTION_BYTES};
    br_status st = {0};
    br_options o;
    br_str at = {0};

    if (runs_on() || br_options_init(&o, &row, 1, "BRASS_", &st) != BR_OK)
        return;
    br_options_take(&o, 0);
    if (br_options_env(&o, environ, &st) != BR_OK ||
        br_options_defaults(&o, &st) != BR_OK)
        bc_say("no kernels are kept: %s", st.msg);
    else if (br_folder_user(environ, "XDG_CACHE_HOME", ".cache", &at))
        keep_in(&at, (uint64_t)o.values[0].i);
    br_str_fini(&at);
    br_options_fini(&o);
}

const br_kcache *
bc_cache(void)
{
    br_once_run(&cache_once, find_cache);
    return &cache;
}

/* Code for this processor, or for the simulated one that BRASS_CUDA_ON names. */
static void
make_code(bc_module *mod)
{
    static br_ktarget sim;
    const char *on = runs_on();
    br_status st = {0};

    if (on && br_sim_target(&sim, on)) {
        mod->on = &sim;
    } else if (on) {
        mod->on = br_ktarget_find(on);
        if (!mod->on)
            bc_say("BRASS_CUDA_ON: there is no target '%s'", on);
    } else {
        mod->on = br_ktarget_find("x86-64");
    }
    if (!mod->on)
        mod->on = br_ktarget_find("interp");
    if (mod->on->compile(&mod->code, mod->m, &st) != BR_OK)
        bc_say("kernels are interpreted: %s", st.msg);
    else if (mod->key[0])
        br_kcache_keep(bc_cache(), mod->key, mod->code);
}

static bool
takes_turns(const br_ktarget *t)
{
    return t->launch == br_ktarget_find("x86-64")->launch;
}

/* Kernels one at a time: their atomics are so to each other. Blocks that wait
 * for each other all take turns here, but not on a simulated processor. */
static br_code
exec(const run *r, br_klaunch *l, br_status *st)
{
    uint32_t cluster[3];
    bool interpret;
    br_code code;

    br_mutex_lock(&bc_rt.exec);
    if (!r->mod->on)
        make_code(r->mod);
    /* Clocks go at the 1 GHz of the properties; the others count by themselves. */
    l->now = takes_turns(r->mod->on) ? br_now_ns : NULL;
    interpret = !r->mod->code || r->f->interpreted ||
                ((r->cooperative || br_kcluster(l, cluster) > 1) &&
                 !takes_turns(r->mod->on));
    code = interpret ? BR_OK : r->mod->on->launch(r->mod->code, l, st);
    if (l->no_code) { /* the simulated processor's is made at the launch */
        bc_say("kernel %s is interpreted: %s", r->name, st->msg);
        *st = (br_status){0};
        r->f->interpreted = interpret = true;
    }
    if (interpret)
        code = br_kinterp_run(l, st);
    br_mutex_unlock(&bc_rt.exec);
    return code;
}

/* Whether memory ends with its last byte. */
static bool
is_strict(void)
{
    const char *s = getenv("BRASS_CUDA_STRICT");

    return s && strcmp(s, "0") != 0;
}

/* Once in a process, as it is most often one kernel that is launched again. */
static void
tell_outside(const run *r, const char *what)
{
    static _Atomic bool told;

    if (what[0] && !atomic_exchange(&told, true))
        bc_say("kernel %s: %s: let through, as a GPU would; "
               "BRASS_CUDA_STRICT=1 makes it an error",
               r->name, what);
}

static cudaError_t
do_launch(void *payload)
{
    run *r = payload;
    br_klaunch l = r->l; /* a graph runs one payload again and again */
    br_status st = {0};
    br_kregion *regions;
    br_code code;

    bc_lock();
    if (r->mod->gone) {
        bc_unlock();
        return cudaErrorInvalidResourceHandle;
    }
    regions = bc_mem_regions(&l.n_regions);
    if (!is_strict())
        bc_mem_gaps(&l);
    bc_unlock();
    if (!regions)
        return cudaErrorMemoryAllocation;
    l.regions = regions;
    l.params = r->params;
    l.print = bc_print;
    l.heap_get = heap_get;
    l.heap_put = heap_put;
    l.block_of_all = &bc_rt.block;
    code = exec(r, &l, &st);
    br_free(regions);
    tell_outside(r, l.outside);
    if (code != BR_OK)
        bc_say("kernel %s: %s", r->name, st.msg);
    return error_of(code, l.fault);
}

size_t
bc_shared_optin(void)
{
    const char *on = runs_on();

    return on && br_gcn_cpu_find(on) ? (size_t)BR_SIM_MAX_LDS
                                     : (size_t)BC_SHARED_OPTIN;
}

static size_t
static_shared(const struct CUfunc_st *f)
{
    return (size_t)f->mod->at->shared[f->fn];
}

/* What a launch may ask for: what the program has allowed, else what its own variables
 * leave of 48 KB. */
static size_t
most_dynamic(const struct CUfunc_st *f)
{
    size_t own = BR_MIN(static_shared(f), (size_t)BC_MAX_SHARED);

    return BR_MAX((size_t)f->max_dynamic, BC_MAX_SHARED - own);
}

/* Eight blocks, as any program may have; more where the kernel's attribute allows it. The
 * kernel's own size is the one. */
static cudaError_t
check_cluster(const bc_launch *l, const br_kfn *f)
{
    uint64_t n = 1;

    for (int k = 0; k < 3; k++) {
        const uint32_t c = l->cluster[k] ? l->cluster[k] : f->cluster[k];

        if (c && (c > BR_KMAX_CLUSTER || l->grid[k] % c ||
                  (f->cluster[k] && f->cluster[k] != c)))
            return cudaErrorInvalidClusterSize;
        n *= BR_MAX(c, 1u);
    }
    if (f->max_cluster && n > f->max_cluster)
        return cudaErrorInvalidClusterSize;
    if (n > 1 && l->cooperative) /* they run one after another */
        return cudaErrorNotSupported;
    return n > (l->f->large_clusters ? BR_KMAX_CLUSTER : 8)
               ? cudaErrorInvalidClusterSize
               : cudaSuccess;
}

static cudaError_t
check(const bc_launch *l)
{
    const br_kfn *f = bc_kfn(l->f);
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    uint64_t most = most_dynamic(l->f);
    cudaError_t e;
    int active;

    for (int k = 0; k < 3; k++)
        if (!l->grid[k] || !l->block[k] ||
            l->grid[k] > (k ? 65535u : INT32_MAX) ||
            l->block[k] > (k == 2 ? 64u : BC_MAX_THREADS))
            return cudaErrorInvalidConfiguration;
    if (threads > BC_MAX_THREADS)
        return cudaErrorInvalidConfiguration;
    if ((f->max_threads && threads > f->max_threads) ||
        (f->req_threads && threads != f->req_threads))
        return cudaErrorInvalidValue;
    for (int k = 0; k < 3; k++)
        if (f->req_block[k] && l->block[k] != f->req_block[k])
            return cudaErrorInvalidValue;
    if (l->shared > most || l->shared + static_shared(l->f) > bc_shared_optin())
        return cudaErrorInvalidValue;
    e = check_cluster(l, f);
    if (e != cudaSuccess)
        return e;
    if (!l->cooperative)
        return cudaSuccess;
    bc_occupancy(l->f, (int)threads, l->shared, &active);
    return blocks >
                   (uint64_t)active * (uint64_t)bc_device()->multiProcessorCount
               ? cudaErrorCooperativeLaunchTooLarge
               : cudaSuccess;
}

static void
drop(void *payload)
{
    bc_module_drop(((run *)payload)->mod);
}

bool
bc_kernel_gone(const void *payload)
{
    return ((const run *)payload)->mod->gone;
}

cudaError_t
bc_launch_op(const bc_launch *l, void **payload)
{
    const br_kfn *f;
    cudaError_t e = bc_kernel_ready(l->f);
    size_t args;
    run *r;

    if (e == cudaSuccess)
        e = check(l);
    if (e != cudaSuccess)
        return e;
    f = bc_kfn(l->f);
    if (f->params.n && !l->args && !l->packed)
        return cudaErrorInvalidValue;
    args = (f->param_bytes + 1u + _Alignof(void *)) & ~(_Alignof(void *) - 1);
    r = bc_op_new(sizeof *r + args + f->params.n * sizeof(void *), do_launch);
    if (!r)
        return cudaErrorMemoryAllocation;
    r->f = l->f;
    r->args = (void **)(void *)(r->params + args);
    r->name = l->f->name;
    r->mod = l->f->mod;
    r->mod->works++;
    bc_op_of(r)->drop = drop;
    r->cooperative = l->cooperative;
    r->l = (br_klaunch){.image = l->f->mod->at,
                        .fn = l->f->fn,
                        .shared_bytes = (uint32_t)l->shared};
    memcpy(r->l.grid, l->grid, sizeof l->grid);
    memcpy(r->l.block, l->block, sizeof l->block);
    memcpy(r->l.cluster, l->cluster, sizeof l->cluster);
    for (size_t k = 0; l->args && k < f->params.n; k++)
        memcpy(r->params + f->params.at[k].offset, l->args[k],
               f->params.at[k].bytes);
    if (!l->args && l->packed)
        memcpy(r->params, l->packed,
               BR_MIN((size_t)f->param_bytes, l->packed_bytes));
    bc_op_of(r)->type = cudaGraphNodeTypeKernel;
    *payload = r;
    return cudaSuccess;
}

void
bc_kernel_params(void *payload, cudaKernelNodeParams *out)
{
    run *r = payload;
    const br_kfn *f = bc_kfn(r->f);
    const uint32_t *g = r->l.grid, *b = r->l.block;
    union { /* the interface gives back what it got */
        const void *c;
        void *p;
    } func = {r->f->host ? r->f->host : r->f};

    for (size_t k = 0; k < f->params.n; k++)
        r->args[k] = r->params + f->params.at[k].offset;
    *out = (cudaKernelNodeParams){.func = func.p,
                                  .gridDim = {g[0], g[1], g[2]},
                                  .blockDim = {b[0], b[1], b[2]},
                                  .sharedMemBytes = r->l.shared_bytes,
                                  .kernelParams = r->args};
}

const char *
bc_kernel_name(const void *payload)
{
    return ((const run *)payload)->name;
}

bool
bc_is_cooperative(const void *payload)
{
    return ((const run *)payload)->cooperative;
}

cudaError_t
bc_launch_attr(bc_launch *l, const cudaLaunchAttribute *a)
{
    const cudaLaunchAttributeValue *v = &a->val;

    switch (a->id) {
    case cudaLaunchAttributeCooperative:
        l->cooperative = v->cooperative != 0;
        return cudaSuccess;
    case cudaLaunchAttributeClusterDimension:
        l->cluster[0] = v->clusterDim.x;
        l->cluster[1] = v->clusterDim.y;
        l->cluster[2] = v->clusterDim.z;
        return l->cluster[0] && l->cluster[1] && l->cluster[2]
                   ? cudaSuccess
                   : cudaErrorInvalidValue;
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeSynchronizationPolicy:
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
    case cudaLaunchAttributeProgrammaticStreamSerialization:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributeMemSyncDomain:
    case cudaLaunchAttributePreferredSharedMemoryCarveout: return cudaSuccess;
    /* events that somebody waits for; a size of clusters; nodes changed later */
    case cudaLaunchAttributeProgrammaticEvent:
    case cudaLaunchAttributePreferredClusterDimension:
    case cudaLaunchAttributeLaunchCompletionEvent:
    case cudaLaunchAttributeDeviceUpdatableKernelNode:
        return cudaErrorNotSupported;
    }
    return cudaErrorInvalidValue;
}

cudaError_t
bc_launch_on(const bc_launch *l, cudaStream_t hs)
{
    struct CUstream_st *s = bc_stream_of(hs);
    cudaError_t e;
    void *p;

    if (!s)
        return cudaErrorInvalidResourceHandle;
    if (bc_rt.sticky)
        return bc_rt.sticky;
    e = bc_launch_op(l, &p);
    return e == cudaSuccess ? bc_issue(s, p) : e;
}

/* ---- what a kernel is, and may have ------------------------------------- */

static int
most_threads(const br_kfn *k)
{
    const uint32_t most = k->req_threads ? k->req_threads : k->max_threads;

    return most ? (int)BR_MIN(most, (uint32_t)BC_MAX_THREADS) : BC_MAX_THREADS;
}

/* Of "sm_90a" 90: CUB takes what it made for the newest that is not beyond, and finds
 * none where this is less than all. */
static int
ptx_version(br_text target)
{
    int n = 0;

    for (size_t k = 0; k < target.n; k++)
        if (target.p[k] >= '0' && target.p[k] <= '9' && n < 1000)
            n = n * 10 + (target.p[k] - '0');
    return n ? n : 80;
}

cudaError_t
bc_attributes(struct CUfunc_st *f, cudaFuncAttributes *a)
{
    const br_kfn *k = bc_kfn(f);

    *a = (cudaFuncAttributes){.sharedSizeBytes = static_shared(f),
                              .localSizeBytes = k->frame_bytes,
                              .maxThreadsPerBlock = most_threads(k),
                              .numRegs = 32,
                              .ptxVersion = ptx_version(f->mod->m->target),
                              .binaryVersion = 80,
                              .maxDynamicSharedSizeBytes = (int)most_dynamic(f),
                              .preferredShmemCarveout = f->carveout,
                              .clusterDimMustBeSet = k->cluster[0] != 0,
                              .requiredClusterWidth = (int)k->cluster[0],
                              .requiredClusterHeight = (int)k->cluster[1],
                              .requiredClusterDepth = (int)k->cluster[2],
                              .nonPortableClusterSizeAllowed =
                                  f->large_clusters};
    for (size_t v = 0; v < f->mod->m->vars.n; v++)
        if (f->mod->m->vars.at[v].space == BR_KM_SPACE_CONST)
            a->constSizeBytes += (size_t)f->mod->m->vars.at[v].bytes;
    return cudaSuccess;
}

cudaError_t
bc_set_attribute(struct CUfunc_st *f, cudaFuncAttribute attr, int value)
{
    switch (attr) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
        if (value < 0 || (uint64_t)value + static_shared(f) > bc_shared_optin())
            return cudaErrorInvalidValue;
        f->max_dynamic = value;
        return cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
        if (value < -1 || value > 100)
            return cudaErrorInvalidValue;
        f->carveout = value;
        return cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
        f->large_clusters = value != 0;
        return cudaSuccess;
    case cudaFuncAttributeClusterSchedulingPolicyPreference:
        return cudaSuccess; /* a hint */
    default: return cudaErrorInvalidValue;
    }
}

cudaError_t
bc_occupancy(struct CUfunc_st *f, int block, size_t shared, int *blocks)
{
    size_t each = shared + static_shared(f);
    int warps = (block + 31) / 32;

    if (block <= 0 || !blocks)
        return cudaErrorInvalidValue;
    *blocks = 0;
    if (block > most_threads(bc_kfn(f)) || each > bc_shared_optin())
        return cudaSuccess;
    *blocks = BR_MIN((int)BC_SM_BLOCKS, BC_SM_THREADS / 32 / warps);
    if (each)
        *blocks =
            BR_MIN(*blocks, (int)((bc_shared_optin() + 1024) / (each + 1024)));
    return cudaSuccess;
}
