/* x86_pack.c - a module and its code for any warp as bytes, and back.
 *
 *   the build that made them, the module (kpack.c)
 *   of each function with a body: where its code lies, rows, regions, sites
 *   code
 *
 * Code for rows alone and for whole blocks is made when it is needed, as ever.
 * What is read is checked as far as the tables can lead astray; what the code
 * does is the file's affair, as it is of any program.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_pack.h"
#include "cg/kpack.h"
#include "cg/x86/x86_gen.h"

#include <string.h>

#ifndef BR_CG_ID
#    define BR_CG_ID "unknown"
#endif

/* Hash of the compiler's own text (Makefile): the layout of x86_ctx, numbers of
 * operations, what the code takes for granted. */
const char br_x86_build[] = BR_CG_ID;

static void
tables(br_kpack *p, x86_fn *fn)
{
    size_t blks = fn->f->blks.n, vals = fn->f->vals.n;

    br_kpack_of(p, &fn->code_from);
    br_kpack_of(p, &fn->code_to);
    br_kpack_of(p, &fn->frame_bytes);
    br_kpack_of(p, &fn->n_regions);
    br_kpack_of(p, &fn->n_block_presets);
    br_kpack_raw(p, fn->order, 4 * (3 * blks + vals));
    br_kpack_raw(p, fn->uniform, vals);
    br_kpack_raw(p, fn->step, vals);
    br_kpack_of(p, &fn->odd);
    br_kpack_count(p, &fn->sites.n, 19);
    if (!p->out && !br_vec_reserve(&fn->sites, fn->sites.n)) {
        p->oom = p->bad = true;
        fn->sites.n = 0;
    }
    for (size_t k = 0; k < fn->sites.n; k++) {
        x86_site *s = &fn->sites.at[k];
        uint8_t uniform = p->out && s->uniform;

        br_kpack_of(p, &s->ins);
        br_kpack_of(p, &s->pos);
        br_kpack_of(p, &s->reg);
        br_kpack_of(p, &uniform);
        s->uniform = uniform;
    }
    br_kpack_count(p, &fn->presets.n, 4);
    if (!p->out && !br_vec_reserve(&fn->presets, fn->presets.n)) {
        p->oom = p->bad = true;
        fn->presets.n = 0;
    }
    br_kpack_raw(p, fn->presets.at, 4 * fn->presets.n);
}

static bool
rows_fit(const x86_fn *fn)
{
    size_t vals = fn->f->vals.n;
    bool ok = fn->frame_bytes <= 256 * (vals + 1) + 64 * (MAX_SPILLS + 16) &&
              fn->odd.n <= BR_KSTEP_ODDS;

    for (size_t v = 0; v < vals; v++)
        ok = ok && fn->uniform[v] <= 1 &&
             (fn->step[v] <= BR_KSTEP_MAX + fn->odd.n ||
              fn->step[v] == BR_KSTEP_NONE) &&
             (fn->slot[v] == X86_NO_SLOT ||
              (uint64_t)fn->slot[v] + 256 <= fn->frame_bytes);
    return ok;
}

/* Whether tables that were read fit the function and code of so many bytes. */
static bool
fits(const x86_fn *fn, size_t bytes)
{
    const br_kfn *f = fn->f;
    bool ok = fn->code_from <= fn->code_to && fn->code_to <= bytes &&
              fn->n_block_presets <= fn->presets.n && rows_fit(fn);

    for (uint32_t p = 0; ok && p < f->blks.n; p++)
        ok = fn->order[p] < f->blks.n && fn->place[fn->order[p]] == p &&
             fn->at[p] >= fn->code_from && fn->at[p] < fn->code_to;
    for (size_t k = 0; ok && k < fn->sites.n; k++) {
        const x86_site *s = &fn->sites.at[k];

        ok = s->ins < f->ins.n && s->pos < f->blks.n;
        for (size_t r = 0; ok && r < sizeof s->reg; r++)
            ok = s->reg[r] < VEC_REGS;
    }
    for (size_t k = 0; ok && k < fn->presets.n; k++) {
        uint32_t id = fn->presets.at[k];

        ok = id < f->ins.n && f->ins.at[id].n_res == 1 &&
             f->ins.at[id].op < BR_K_COUNT && x86_is_preset(f, &f->ins.at[id]);
        if (ok && k < fn->n_block_presets)
            ok = f->ins.at[id].op == BR_K_SREG &&
                 f->ins.at[id].imm >= BR_KS_CTAID_X &&
                 f->ins.at[id].imm <= BR_KS_CTAID_Z;
    }
    return ok;
}

static bool
same_build(br_kpack *p)
{
    br_text t = br_kpack_text(p, br_text_z(br_x86_build));

    return p->out || br_text_is(t, br_x86_build);
}

br_code
br_x86_pack(br_zrt *z, br_str *out, br_str *lines, const br_kcode *code,
            br_status *st)
{
    const struct br_x86 *x = (const struct br_x86 *)(const void *)code;
    br_kpack p = {.out = out, .lines = lines, .slots = z, .only = BR_KNONE};
    union { /* written from, and const for who reads it */
        const br_kir *c;
        br_kir *m;
    } u = {x->m};
    uint32_t bytes = (uint32_t)x->bytes;
    uint8_t zmm = x->zmm;

    (void)same_build(&p);
    br_kpack_of(&p, &zmm);
    BR_TRY(br_kpack_module(&p, u.m, st));
    for (size_t k = 0; k < x->m->fns.n; k++)
        if (x->m->fns.at[k].blks.n)
            tables(&p, &x->fns[k]);
    br_kpack_of(&p, &bytes);
    z->target = BR_ZRT_X86;
    z->subgroup = KI_LANES;
    z->entry = (uint32_t)out->n;
    br_str_put(out, (const char *)x->code, x->bytes);
    return br_kpack_end(&p, st);
}

static br_code
read_code(br_kpack *p, struct br_x86 *x, br_status *st)
{
    uint32_t bytes = 0;

    for (uint32_t k = 0; k < x->m->fns.n && !p->bad; k++)
        if (x->m->fns.at[k].blks.n) {
            BR_TRY(x86_fn_room(x, k, st));
            tables(p, &x->fns[k]);
        }
    br_kpack_of(p, &bytes);
    BR_TRY(br_kpack_end(p, st));
    if (bytes != (size_t)(p->end - p->at) || bytes == 0)
        return br_fail(st, BR_E_FORMAT, ".zrt: code of another length");
    for (size_t k = 0; k < x->m->fns.n; k++)
        if (x->m->fns.at[k].blks.n && !fits(&x->fns[k], bytes))
            return br_fail(st, BR_E_FORMAT,
                           ".zrt: tables that do not fit the module");
    x->bytes = bytes;
    x->code = br_os_code_new(p->at, bytes);
    return x->code ? BR_OK : br_fail(st, BR_E_OOM, "out of memory for code");
}

br_code
br_x86_unpack(br_kir **m, br_kcode **code, const br_zrt *z, br_status *st)
{
    const uint8_t *at = (const uint8_t *)z->code.p;
    const uint8_t *lines = (const uint8_t *)z->debug.p;
    br_kpack p = {.at = at,
                  .end = at + z->code.n,
                  .line_at = lines,
                  .line_end = lines ? lines + z->debug.n : NULL};
    struct br_x86 *x = NULL;
    uint8_t zmm = 0;
    br_code c;

    *m = NULL;
    *code = NULL;
    if (!same_build(&p))
        return br_fail(st, BR_E_VERSION,
                       "x86-64 code of another build of Brass: compile its "
                       "source again");
    br_kpack_of(&p, &zmm);
    if (zmm && !x86_has_zmm())
        return br_fail(st, BR_E_NO_DEVICE,
                       "x86-64 code for AVX-512, which this processor lacks");
    *m = br_kir_new(st);
    c = *m ? br_kpack_module(&p, *m, st) : BR_E_OOM;
    if (c == BR_OK)
        c = x86_new(&x, *m, X86_WARPS, zmm != 0, st);
    if (c == BR_OK)
        c = read_code(&p, x, st);
    *code = (br_kcode *)(void *)x;
    if (c != BR_OK) {
        x86_free(*code);
        br_kir_free(*m);
        *code = NULL;
        *m = NULL;
    }
    return c;
}

br_code
br_x86_zrt(const br_kcode *all, uint32_t fn, br_zrt *z, br_str *out,
           br_str *lines, br_status *st)
{
    const struct br_x86 *x = (const struct br_x86 *)(const void *)all;
    union { /* written from, and const for who reads it */
        const br_kir *c;
        br_kir *m;
    } u = {x->m};
    br_str text = {0}, line = {0};
    br_kpack w = {.out = &text, .lines = &line, .only = fn}, r;
    br_kir *own = br_kir_new(st);
    br_kcode *code = NULL;
    br_code c = own ? br_kpack_module(&w, u.m, st) : BR_E_OOM;

    /* The kernel and what it calls as a module of their own. */
    r = (br_kpack){.at = (const uint8_t *)text.at,
                   .end = (const uint8_t *)text.at + text.n,
                   .line_at = (const uint8_t *)line.at,
                   .line_end = (const uint8_t *)line.at + line.n};
    if (c == BR_OK)
        c = br_kpack_module(&r, own, st);
    if (c == BR_OK)
        c = (x->zmm ? x86_compile_all : x86_compile_avx2)(&code, own, st);
    if (c == BR_OK)
        c = br_x86_pack(z, out, lines, code, st);
    if (c == BR_OK)
        z->entry += ((struct br_x86 *)(void *)code)->fns[fn].at[0];
    for (size_t k = 0; k < z->slots.n; k++) { /* names that stay */
        br_text *name = &z->slots.at[k].name;

        *name = u.c->vars.at[br_kir_find_var(u.c, *name)].name;
    }
    x86_free(code);
    br_kir_free(own);
    br_str_fini(&text);
    br_str_fini(&line);
    return c;
}
