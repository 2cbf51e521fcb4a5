/* cu_module.c - programs for the device: images, kernels, variables.
 *
 * An image is read when something of it is first used, so that a program
 * starts at once however many it carries. The host knows kernels and variables
 * by the address of a stub or a shadow; a map leads from there.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ptx/ptx.h"
#include "cuda/cuda_int.h"
#include "cuda/ptx_join.h"

#include <string.h>

enum { MANAGED_ALIGN = 512 }; /* __managed__ of host_defines.h */

bc_module *
bc_module_new(const void *image)
{
    bc_module *mod = br_try_calloc(1, sizeof *mod);

    if (!mod)
        return NULL;
    mod->image = image;
    mod->used = true;
    mod->next = bc_rt.modules;
    bc_rt.modules = mod;
    return mod;
}

static void
end(bc_module *mod)
{
    for (size_t k = 0; k < mod->fns.n; k++) {
        br_free(mod->fns.at[k]->parts);
        br_free(mod->fns.at[k]);
    }
    br_vec_fini(&mod->fns);
    br_vec_fini(&mod->vars);
    br_vec_fini(&mod->parts);
    br_kir_free(mod->m);
    if (mod->mine) {
        union { /* ours, and const only for who reads it */
            const void *c;
            void *p;
        } u = {mod->image};

        br_free(u.p);
    }
    br_free(mod);
}

void
bc_module_free(bc_module *mod)
{
    bc_module **at = &bc_rt.modules;

    while (*at && *at != mod)
        at = &(*at)->next;
    if (*at)
        *at = mod->next;
    bc_refs_forget(mod);
    for (size_t k = 0; mod->at && k < mod->at->regions.n; k++) {
        void *p = mod->at->regions.at[k].host;

        if (bc_mem_put(p, BC_MEM_VARIABLE) != cudaSuccess &&
            bc_mem_put(p, BC_MEM_REGISTERED) != cudaSuccess)
            bc_say("a module's variable was not where it has to be");
    }
    if (mod->code)
        mod->on->free(mod->code);
    mod->code = NULL;
    br_kimage_free(mod->at);
    mod->at = NULL;
    mod->gone = true;
    if (!mod->works)
        end(mod);
}

void
bc_module_drop(bc_module *mod)
{
    if (!--mod->works && mod->gone)
        end(mod);
}

static const bc_var *
host_var(const bc_module *mod, br_text name)
{
    for (size_t k = 0; k < mod->vars.n; k++)
        if (br_text_is(name, mod->vars.at[k].name))
            return &mod->vars.at[k];
    return NULL;
}

/* Memory for a variable; that of its shadow if it is managed. */
static void *
place(void *arg, const br_kvar *v)
{
    bc_module *mod = arg;
    const bc_var *h = host_var(mod, v->name);
    void *p;

    if (h && !h->managed && v->align == MANAGED_ALIGN &&
        v->space == BR_KM_SPACE_GLOBAL && h->bytes == v->bytes) {
        union { /* the program's own object, made to be written */
            const void *c;
            void *p;
        } u = {h->host};

        return bc_mem_register(u.p, v->bytes, BC_MEM_REGISTERED, 0) ==
                       cudaSuccess
                   ? u.p
                   : NULL;
    }
    if (bc_mem_get(&p, BR_MAX(v->bytes, 1u), v->align,
                   h && h->managed ? BC_MEM_MANAGED : BC_MEM_VARIABLE,
                   0) != cudaSuccess)
        return NULL;
    memset(p, 0, (size_t)v->bytes);
    if (h && h->managed)
        *h->managed = p;
    return p;
}

/* The images that were compiled apart, as one text. */
static br_code
linked(const bc_module *mod, br_str *out, br_status *st)
{
    size_t n = mod->parts.n;
    br_text *ptx = br_try_calloc(n, sizeof *ptx);
    char **owned = br_try_calloc(n, sizeof *owned);
    br_code code =
        ptx && owned ? BR_OK : br_fail(st, BR_E_OOM, "out of memory");

    for (size_t k = 0; k < n && code == BR_OK; k++)
        code = br_fatbin_ptx(mod->parts.at[k], 0, &ptx[k], &owned[k], st);
    if (code == BR_OK)
        code = br_ptx_join(ptx, n, out, st);
    for (size_t k = 0; owned && k < n; k++)
        br_free(owned[k]);
    br_free(owned);
    br_free(ptx);
    return code;
}

/* As it was left on disk, or from the text. */
static br_code
compile(bc_module *mod, br_text ptx, br_status *st)
{
    if (bc_cache()->most && br_kcache_key(mod->key, ptx.p, ptx.n) &&
        br_kcache_find(bc_cache(), mod->key, &mod->m, &mod->code)) {
        mod->on = br_ktarget_find("x86-64");
        return BR_OK;
    }
    BR_TRY(br_ptx_parse(&mod->m, ptx.p, ptx.n, &(br_ptx_opts){0}, st));
    return br_kir_optimise(mod->m, NULL, st);
}

static br_code
load(bc_module *mod, br_status *st)
{
    char *owned = NULL;
    br_str all = {0};
    br_text ptx = {0};
    br_code code = mod->parts.n ? linked(mod, &all, st)
                                : br_fatbin_ptx(mod->image, mod->image_n, &ptx,
                                                &owned, st);

    if (mod->parts.n)
        ptx = (br_text){all.at, all.n};
    if (code == BR_OK)
        code = compile(mod, ptx, st);
    br_free(owned);
    br_str_fini(&all);
    if (code == BR_OK)
        code = br_kimage_new_at(&mod->at, mod->m, place, mod, st);
    return code;
}

cudaError_t
bc_module_load(bc_module *mod)
{
    br_status st = {0};

    return bc_module_read(mod, &st);
}

cudaError_t
bc_module_read(bc_module *mod, br_status *st)
{
    br_code code;

    if (mod->at || mod->error)
        return mod->error;
    code = load(mod, st);
    if (code == BR_OK)
        return cudaSuccess;
    if (mod->code)
        mod->on->free(mod->code);
    mod->code = NULL;
    br_kir_free(mod->m);
    mod->m = NULL;
    bc_say("%s", st->msg);
    mod->error = code == BR_E_OOM           ? cudaErrorMemoryAllocation
                 : code == BR_E_UNSUPPORTED ? cudaErrorNoKernelImageForDevice
                                            : cudaErrorInvalidPtx;
    return mod->error;
}

const br_kfn *
bc_kfn(const struct CUfunc_st *f)
{
    return &f->mod->m->fns.at[f->fn];
}

cudaError_t
bc_kernel_ready(struct CUfunc_st *f)
{
    cudaError_t e = bc_module_load(f->mod);
    uint32_t fn;

    if (e != cudaSuccess || f->found)
        return e;
    fn = br_kir_find_fn(f->mod->m, br_text_z(f->name));
    if (fn == BR_KNONE || !f->mod->m->fns.at[fn].entry ||
        f->mod->m->fns.at[fn].external)
        return cudaErrorInvalidDeviceFunction;
    f->fn = fn;
    f->found = true;
    return cudaSuccess;
}

cudaError_t
bc_kernel_of(const void *host, struct CUfunc_st **out)
{
    for (bc_module *mod = bc_rt.modules; mod; mod = mod->next)
        for (size_t k = 0; k < mod->fns.n; k++)
            if (mod->fns.at[k] == host || mod->fns.at[k]->host == host) {
                *out = mod->fns.at[k];
                return host ? bc_kernel_ready(*out)
                            : cudaErrorInvalidDeviceFunction;
            }
    return cudaErrorInvalidDeviceFunction;
}

cudaError_t
bc_function(bc_module *mod, const char *name, struct CUfunc_st **out)
{
    struct CUfunc_st *f;
    cudaError_t e = bc_module_load(mod);
    uint32_t fn;

    if (e != cudaSuccess)
        return e;
    for (size_t k = 0; k < mod->fns.n; k++)
        if (strcmp(mod->fns.at[k]->name, name) == 0) {
            *out = mod->fns.at[k];
            return bc_kernel_ready(*out);
        }
    fn = br_kir_find_fn(mod->m, br_text_z(name));
    if (fn == BR_KNONE || !mod->m->fns.at[fn].entry)
        return cudaErrorSymbolNotFound;
    f = br_try_calloc(1, sizeof *f);
    if (!f || !br_vec_push(&mod->fns, f)) {
        br_free(f);
        return cudaErrorMemoryAllocation;
    }
    f->mod = mod;
    f->name = br_arena_str(&mod->m->arena, name, strlen(name));
    f->fn = fn;
    f->found = f->name != NULL;
    *out = f;
    return f->name ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t
bc_variable(bc_module *mod, const char *name, void **p, size_t *n)
{
    cudaError_t e = bc_module_load(mod);
    uint32_t v;

    if (e != cudaSuccess)
        return e;
    v = br_kir_find_var(mod->m, br_text_z(name));
    if (v == BR_KNONE || mod->m->vars.at[v].space == BR_KM_SPACE_SHARED)
        return cudaErrorSymbolNotFound;
    *p = (void *)(uintptr_t)mod->at->addr[v];
    *n = (size_t)mod->m->vars.at[v].bytes;
    return cudaSuccess;
}

cudaError_t
bc_symbol(const void *host, void **p, size_t *n)
{
    for (bc_module *mod = bc_rt.modules; mod; mod = mod->next)
        for (size_t k = 0; k < mod->vars.n; k++)
            if (mod->vars.at[k].host == host && host) {
                cudaError_t e = bc_variable(mod, mod->vars.at[k].name, p, n);

                return e == cudaErrorSymbolNotFound ? cudaErrorInvalidSymbol
                                                    : e;
            }
    return cudaErrorInvalidSymbol;
}
