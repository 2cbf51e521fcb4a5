/* cuda_target.c - a kernel's PTX on NVIDIA's GPU, as a target of kernel run.
 *
 *   --arg buf:x.bin    memory of the card, its address where ours stood
 *   --on cuda          the file's text, as it is, to the driver's compiler
 *
 * Nothing of ours is between the file and the card, so that kernel diff holds our
 * reading of PTX against NVIDIA's own. What a card does not say it does not say
 * here: which thread stopped, and whether a kernel ran past its memory into
 * somebody else's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_target.h"

#include "drv/cuda/cuda_api.h"

#include <string.h>

enum { SHARED_AT_ONCE = 48 << 10 /* bytes that need not be asked for */ };

typedef struct cut {
    br_cuda cu;
    void *mod;
} cut;

static br_code
compile(br_kcode **out, const br_kir *m, br_status *st)
{
    cut *c = br_try_calloc(1, sizeof *c);
    br_code code;

    (void)m; /* the driver reads the text */
    *out = NULL;
    if (!c)
        return br_fail(st, BR_E_OOM, "out of memory");
    code = br_cuda_open(&c->cu, 0, st);
    if (code == BR_OK)
        *out = (br_kcode *)(void *)c;
    else
        br_free(c);
    return code;
}

static void
close_cut(br_kcode *code)
{
    cut *c = (cut *)(void *)code;

    if (!c)
        return;
    if (c->mod && !br_cuda_hung(&c->cu))
        c->cu.cuModuleUnload(c->mod);
    br_cuda_close(&c->cu);
    br_free(c);
}

/* A name as the driver wants it; NULL: no memory for that. */
static const char *
ended(br_str *s, br_text name)
{
    br_str_clear(s);
    br_str_put(s, name.p, name.n);
    return s->oom ? NULL : br_str_z(s);
}

/* ---- memory --------------------------------------------------------------- */

static br_code
send(cut *c, const br_klaunch *l, uint64_t *at, uint8_t *params, br_status *st)
{
    for (size_t i = 0; i < l->n_regions; i++) {
        const br_kregion *r = &l->regions[i];

        BR_TRY(br_cuda_alloc(&c->cu, &at[i], (size_t)r->bytes, st));
        if (r->bytes)
            BR_TRY(br_cuda_put(&c->cu, at[i], r->host, (size_t)r->bytes, st));
        memcpy(params + l->places[i], &at[i], 8);
    }
    return BR_OK;
}

/* A card lets a kernel write what is read only elsewhere. */
static br_code
unchanged(cut *c, const br_kregion *r, uint64_t at, br_status *st)
{
    uint8_t *now = br_try_alloc((size_t)r->bytes + 1);
    br_code code;
    bool same;

    if (!now)
        return br_fail(st, BR_E_OOM, "out of memory");
    code = br_cuda_get(&c->cu, now, at, (size_t)r->bytes, st);
    same = code != BR_OK || memcmp(now, r->host, (size_t)r->bytes) == 0;
    br_free(now);
    return same ? code
                : br_fail(st, BR_E_FAULT, "the kernel wrote to %s: read only",
                          r->name);
}

static br_code
fetch(cut *c, const br_klaunch *l, const uint64_t *at, br_status *st)
{
    for (size_t i = 0; i < l->n_regions; i++) {
        const br_kregion *r = &l->regions[i];

        if (r->read_only)
            BR_TRY(unchanged(c, r, at[i], st));
        else if (r->bytes)
            BR_TRY(br_cuda_get(&c->cu, r->host, at[i], (size_t)r->bytes, st));
    }
    return BR_OK;
}

/* The module's variables. Such as hold addresses stay as they were, since addresses
 * are the card's; of a name that the driver does not know nothing was used. */
static br_code
fetch_vars(cut *c, const br_klaunch *l, br_status *st)
{
    const br_kir *m = l->image->m;
    br_code code = BR_OK;
    size_t region = 0;
    br_str s = {0};

    for (size_t k = 0; code == BR_OK && k < m->vars.n; k++) {
        const br_kvar *v = &m->vars.at[k];
        const char *name;
        uint64_t at;
        size_t bytes;

        if (v->space == BR_KM_SPACE_SHARED)
            continue;
        const br_kregion *r = &l->image->regions.at[region++];
        if (v->relocs.n)
            continue;
        name = ended(&s, v->name);
        if (!name)
            code = br_fail(st, BR_E_OOM, "out of memory");
        else if (c->cu.cuModuleGetGlobal(&at, &bytes, c->mod, name) == 0 &&
                 bytes >= r->bytes && r->bytes)
            code = br_cuda_get(&c->cu, r->host, at, (size_t)r->bytes, st);
    }
    br_str_fini(&s);
    return code;
}

/* ---- a launch ------------------------------------------------------------- */

static br_code
start(cut *c, const br_klaunch *l, const uint8_t *params, br_status *st)
{
    enum { BUFFER = 1, SIZE = 2 };
    const br_kfn *f = &l->image->m->fns.at[l->fn];
    size_t bytes = f->param_bytes;
    const void *extra[] = {(void *)BUFFER, params, (void *)SIZE, &bytes, NULL};
    const char *name;
    br_str s = {0};
    void *fn;
    br_code code;

    if (!c->mod)
        BR_TRY(br_cuda_module(&c->cu, &c->mod, l->file ? l->file : "kernel",
                              l->ptx, st));
    name = ended(&s, f->name);
    code = name ? BR_CU(&c->cu, st, cuModuleGetFunction(&fn, c->mod, name))
                : br_fail(st, BR_E_OOM, "out of memory");
    br_str_fini(&s);
    if (code == BR_OK && l->shared_bytes > SHARED_AT_ONCE)
        code = BR_CU(&c->cu, st,
                     cuFuncSetAttribute(fn, BR_CU_FUNC_DYN_SHARED,
                                        (int)l->shared_bytes));
    if (code == BR_OK)
        code = BR_CU(&c->cu, st,
                     cuLaunchKernel(fn, l->grid[0], l->grid[1], l->grid[2],
                                    l->block[0], l->block[1], l->block[2],
                                    l->shared_bytes, c->cu.stream, NULL,
                                    (void **)(uintptr_t)extra));
    return code;
}

/* What ends a launch that the driver took is the kernel's doing. And what it
 * printed comes when the context is waited for. */
static br_code
finish(cut *c, br_status *st)
{
    br_code code = br_cuda_wait(&c->cu, st);

    if (code == BR_OK)
        return BR_CU(&c->cu, st, cuCtxSynchronize());
    if (code == BR_E_IO && st)
        st->code = BR_E_FAULT;
    return code == BR_E_IO ? BR_E_FAULT : code;
}

static br_code
launch_with(cut *c, br_klaunch *l, uint64_t *at, uint8_t *params, br_status *st)
{
    BR_TRY(send(c, l, at, params, st));
    BR_TRY(start(c, l, params, st));
    BR_TRY(finish(c, st));
    BR_TRY(fetch(c, l, at, st));
    return fetch_vars(c, l, st);
}

static br_code
launch(br_kcode *code, br_klaunch *l, br_status *st)
{
    cut *c = (cut *)(void *)code;
    const size_t n = l->image->m->fns.at[l->fn].param_bytes;
    uint64_t *at = br_try_calloc(l->n_regions + 1, sizeof *at);
    uint8_t *params = br_try_calloc(n + 1, 1);
    br_code rc;

    l->steps = l->findings = 0;
    l->fault = BR_KFAULT_OTHER;
    if (!at || !params)
        rc = br_fail(st, BR_E_OOM, "out of memory");
    else if (l->check)
        rc = br_fail(st, BR_E_USAGE,
                     "--check is what the interpreter does: --on interp");
    else if (!l->ptx)
        rc =
            br_fail(st, BR_E_USAGE, "%s is no PTX, and cuda takes nothing else",
                    l->file ? l->file : "this");
    else {
        if (n)
            memcpy(params, l->params, n);
        rc = launch_with(c, l, at, params, st);
    }
    for (size_t i = 0; at && i < l->n_regions; i++)
        br_cuda_free(&c->cu, at[i]);
    br_free(at);
    br_free(params);
    return rc;
}

bool
br_cuda_target(br_ktarget *out, const char *name)
{
    if (strcmp(name, "cuda") != 0)
        return false;
    *out = (br_ktarget){.name = "cuda",
                        .compile = compile,
                        .free = close_cut,
                        .launch = launch};
    return true;
}
