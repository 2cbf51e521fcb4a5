/* ktarget.c - the targets there are, and kernels as .zrt files for them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/ktarget.h"

#include "cg/x86/x86_int.h"
#include "cg/x86/x86_pack.h"

#include <string.h>

static br_code
interp_compile(br_kcode **out, const br_kir *m, br_status *st)
{
    (void)m;
    (void)st;
    *out = NULL;
    return BR_OK;
}

static void
interp_free(br_kcode *c)
{
    (void)c;
}

static br_code
interp_launch(br_kcode *c, br_klaunch *l, br_status *st)
{
    (void)c;
    return br_kinterp_run(l, st);
}

const br_ktarget br_ktargets[] = {
    {"interp", interp_compile, interp_free, interp_launch, NULL, NULL, NULL},
    {"x86-64", x86_compile_all, x86_free, x86_launch, x86_text, NULL,
     br_x86_zrt},
    {"x86-64-avx2", x86_compile_avx2, x86_free, x86_launch, x86_text, NULL,
     br_x86_zrt},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};

const br_ktarget *
br_ktarget_find(const char *name)
{
    const br_ktarget *t = br_ktargets;

    for (; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    for (t = br_gcn_targets; t->name; t++)
        if (strcmp(t->name, name) == 0)
            return t;
    return NULL;
}

/* What PTX says of a kernel. It does not say which parameters are pointers:
 * those of 8 bytes are taken for buffers. */
static void
describe(br_zrt *z, const br_kir *m, const br_kfn *f)
{
    uint64_t shared = 0;

    for (size_t k = 0; k < f->params.n; k++)
        if (f->params.at[k].bytes == 8)
            z->buffers++;
        else
            z->push_bytes += f->params.at[k].bytes;
    for (size_t k = 0; k < m->vars.n; k++) {
        const br_kvar *v = &m->vars.at[k];

        if (v->space == BR_KM_SPACE_SHARED && !v->external)
            shared = ((shared + v->align - 1) & ~(uint64_t)(v->align - 1)) +
                     v->bytes;
    }
    z->name = f->name;
    z->lds_bytes = (uint32_t)BR_MIN(shared, UINT32_MAX);
    z->occupancy = f->req_threads ? f->req_threads : f->max_threads;
}

br_code
br_ktarget_zrt(const br_ktarget *t, const br_kcode *c, const br_kir *m,
               uint32_t fn, bool lines, br_str *out, br_status *st)
{
    br_str code = {0}, line = {0};
    br_zrt z = {0};
    br_code err;

    describe(&z, m, &m->fns.at[fn]);
    err = t->zrt(c, fn, &z, &code, lines ? &line : NULL, st);
    z.code = (br_text){code.at, code.n};
    z.debug = (br_text){line.at, line.n};
    if (err == BR_OK && z.lds_bytes > BR_ZRT_MAX_LDS)
        err = br_fail(st, BR_E_LIMIT,
                      "%.*s has %u bytes of shared memory, and a .zrt at most "
                      "%d",
                      (int)BR_MIN(z.name.n, (size_t)80), z.name.p, z.lds_bytes,
                      BR_ZRT_MAX_LDS);
    if (err == BR_OK)
        err = br_zrt_write(out, &z, st);
    br_zrt_fini(&z);
    br_str_fini(&code);
    br_str_fini(&line);
    return err;
}
