/* x86_module.c - a module as machine code: all its functions, for any warp; as
 * rows alone, and kernels for whole blocks, when these are first needed.
 *
 * Code is written, then made executable: never both.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/x86/x86_int.h"

#include "cg/ktarget.h"

#if defined(__x86_64__)
#    include <cpuid.h>
#endif

void
x86_free(br_kcode *code)
{
    struct br_x86 *x = (struct br_x86 *)(void *)code;
    size_t n = x ? x->m->fns.n : 0;

    if (!x)
        return;
    if (x->more) {
        x86_free((br_kcode *)(void *)x->more->rows);
        x86_free((br_kcode *)(void *)x->more->narrow);
        for (size_t k = 0; x->more->wide && k < 3 * n; k++)
            x86_free((br_kcode *)(void *)x->more->wide[k]);
        br_free(x->more->wide);
        br_free(x->more->block_ns);
        br_free(x->more);
    }
    for (size_t k = 0; x->fns && k < n; k++) {
        br_free(x->fns[k].order);
        br_free(x->fns[k].uniform);
        br_free(x->fns[k].region_at);
        br_vec_fini(&x->fns[k].sites);
        br_vec_fini(&x->fns[k].presets);
    }
    br_free(x->fns);
    br_os_code_free(x->code, x->bytes);
    br_free(x);
}

br_code
x86_fn_room(struct br_x86 *x, uint32_t n, br_status *st)
{
    const br_kfn *f = &x->m->fns.at[n];
    x86_fn *fn = &x->fns[n];
    size_t blks = f->blks.n;

    fn->f = f;
    fn->own = x;
    fn->order = br_try_calloc(3 * blks + f->vals.n + 3, sizeof *fn->order);
    fn->uniform = br_try_calloc(3 * f->vals.n + 6, 1);
    if (!fn->order || !fn->uniform)
        return br_fail(st, BR_E_OOM, "out of memory");
    fn->step = fn->uniform + f->vals.n + 2;
    fn->line = fn->step + f->vals.n + 2;
    fn->place = fn->order + blks;
    fn->at = fn->order + 2 * blks;
    fn->slot = fn->order + 3 * blks;
    return BR_OK;
}

static br_code
compile_fn(br_x86_asm *a, struct br_x86 *x, uint32_t n, br_status *st)
{
    const br_kfn *f = &x->m->fns.at[n];
    x86_fn *fn = &x->fns[n];

    if (!f->blks.n)
        return BR_OK;
    BR_TRY(x86_fn_room(x, n, st));
    if (!br_kfn_order(f, fn->order))
        return br_fail(st, BR_E_OOM, "out of memory");
    for (uint32_t p = 0; p < f->blks.n; p++)
        fn->place[fn->order[p]] = p;
    return x86_gen_fn(a, x->m, fn, st);
}

static br_code
have_processor(br_status *st)
{
#if defined(__x86_64__)
    unsigned a, b, c = 0, d;

    /* clang 14 does not know f16c by name. */
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C))
        return BR_OK;
#endif
    return br_fail(st, BR_E_NO_DEVICE,
                   "x86-64 code needs a processor with AVX2, FMA and F16C");
}

bool
x86_has_zmm(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}

br_code
x86_new(struct br_x86 **out, const br_kir *m, x86_kind kind, bool zmm,
        br_status *st)
{
    struct br_x86 *x = br_try_calloc(1, sizeof *x);

    *out = x;
    if (!x)
        return br_fail(st, BR_E_OOM, "out of memory");
    x->m = m;
    x->kind = kind;
    x->zmm = zmm;
    x->fns = br_try_calloc(m->fns.n + 1, sizeof *x->fns);
    x->more = br_try_calloc(1, sizeof *x->more);
    if (x->more) {
        x->more->lock = (br_mutex)BR_MUTEX;
        x->more->block_ns =
            br_try_calloc(m->fns.n + 1, sizeof *x->more->block_ns);
    }
    if (x->more && kind == X86_WARPS)
        x->more->wide = br_try_calloc(3 * m->fns.n + 1, sizeof *x->more->wide);
    if (!x->fns || !x->more || !x->more->block_ns ||
        (kind == X86_WARPS && !x->more->wide))
        return br_fail(st, BR_E_OOM, "out of memory");
    for (size_t k = 0; k < m->fns.n; k++) /* its heap is each thread's own */
        x->alone |= br_text_is(m->fns.at[k].name, "malloc");
    return have_processor(st);
}

/* All functions, or only one. */
static br_code
x86_compile(struct br_x86 **out, const br_kir *m, x86_kind kind, bool zmm,
            uint32_t only, br_status *st)
{
    struct br_x86 *x;
    br_x86_asm a = {0};
    br_code code = x86_new(&x, m, kind, zmm, st);

    *out = NULL;
    if (code == BR_OK)
        x86_gen_entry(&a);
    for (uint32_t k = 0; code == BR_OK && k < m->fns.n; k++)
        if (only == BR_KNONE || k == only)
            code = compile_fn(&a, x, k, st);
    if (code == BR_OK && !a.oom) {
        br_x86_patch(&a);
        x->bytes = a.code.n;
        x->code = br_os_code_new(a.code.at, a.code.n);
    }
    if (code == BR_OK && !x->code)
        code = br_fail(st, BR_E_OOM, "out of memory for code");
    br_x86_fini(&a);
    if (code != BR_OK)
        x86_free((br_kcode *)(void *)x);
    else
        *out = x;
    return code;
}

br_code
x86_compile_all(br_kcode **out, const br_kir *m, br_status *st)
{
    struct br_x86 *x;
    br_code code = x86_compile(&x, m, X86_WARPS, x86_has_zmm(), BR_KNONE, st);

    *out = (br_kcode *)(void *)x;
    return code;
}

br_code
x86_compile_avx2(br_kcode **out, const br_kir *m, br_status *st)
{
    struct br_x86 *x;
    br_code code = x86_compile(&x, m, X86_WARPS, false, BR_KNONE, st);

    *out = (br_kcode *)(void *)x;
    return code;
}

br_code
x86_rows_code(const struct br_x86 *x, br_status *st)
{
    br_code code = BR_OK;

    br_mutex_lock(&x->more->lock);
    if (!x->more->rows)
        code = x86_compile(&x->more->rows, x->m, X86_KEEP_ROWS, x->zmm,
                           BR_KNONE, st);
    br_mutex_unlock(&x->more->lock);
    return code;
}

br_code
x86_narrow_code(const struct br_x86 *x, br_status *st)
{
    br_code code = BR_OK;

    br_mutex_lock(&x->more->lock);
    if (!x->more->narrow)
        code =
            x86_compile(&x->more->narrow, x->m, X86_WARPS, false, BR_KNONE, st);
    br_mutex_unlock(&x->more->lock);
    return code;
}

br_code
x86_wide_code(const struct br_x86 *x, x86_kind kind, uint32_t fn,
              const x86_fn **out, br_status *st)
{
    struct br_x86 **at = &x->more->wide[fn + (kind - X86_BLOCKS) * x->m->fns.n];
    br_code code = BR_OK;

    *out = NULL;
    if (!x86_wide_able(&x->m->fns.at[fn]))
        return BR_OK;
    br_mutex_lock(&x->more->lock);
    if (!*at)
        code = x86_compile(at, x->m, kind, x->zmm, fn, st);
    if (code == BR_OK && (kind == X86_BLOCKS || (*at)->fns[fn].n_looks))
        *out = &(*at)->fns[fn];
    br_mutex_unlock(&x->more->lock);
    return code;
}

br_code
x86_text(const br_kcode *code, uint32_t fn, br_str *out, br_status *st)
{
    const struct br_x86 *x = (const struct br_x86 *)(const void *)code;
    const x86_fn *f = &x->fns[fn];
    uint32_t at = f->code_from, pos = 0;

    (void)st;
    br_str_printf(out, "%.*s:\n", (int)f->f->name.n, f->f->name.p);
    while (at < f->code_to) {
        size_t n;

        while (pos < f->f->blks.n && f->at[pos] == at)
            br_str_printf(out, "b%u:\n", f->order[pos++]);
        br_str_printf(out, "%6x  ", at);
        n = br_x86_text(x->code + at, f->code_to - at, at, out);
        br_check(n > 0 && "code that the printer does not know");
        br_str_putc(out, '\n');
        at += (uint32_t)n;
    }
    return BR_OK;
}
