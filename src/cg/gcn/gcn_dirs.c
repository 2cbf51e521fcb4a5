/* gcn_dirs.c - directives of assembly: sections, symbols, data, descriptors.
 *
 * .text and .rodata go into a code object; other sections may be opened, as
 * compilers do, but nothing may be put into them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_asm.h"

#include <string.h>

enum { MAX_FILL = BR_GCN_MAX_IMAGE / 4, MAX_ALIGN = 4096 };

static br_code
wrong(br_gcn_asm *a, const char *what)
{
    return br_gcn_asm_fail(a, a->scan.p, "%s is expected", what);
}

static bool
at_end(br_gcn_asm *a)
{
    br_gcn_space(&a->scan);
    return a->scan.p == a->scan.end;
}

/* ---- values ----------------------------------------------------------- */

/* NUMBER or NAME; a place counts from the begin of its section. */
static br_code
term(br_gcn_asm *a, int64_t *v, uint8_t *place)
{
    const char *p;
    br_text name;
    double d;
    uint32_t k;

    br_gcn_space(&a->scan);
    p = a->scan.p;
    *place = BR_GCN_NOWHERE;
    if (br_gcn_number(&a->scan, v, &d) == 1)
        return BR_OK;
    a->scan.p = p;
    name = br_gcn_asm_name(a);
    if (!name.n)
        return wrong(a, "a number or a name");
    if (br_text_is(name, ".")) {
        *place = (uint8_t)a->place;
        *v = (int64_t)(a->place == BR_GCN_TEXT ? a->text.n : a->data.n);
        return BR_OK;
    }
    if (br_text_is(name, ".amdgcn.gfx_generation_number")) {
        *v = a->isa.cpu->gen;
        return BR_OK;
    }
    k = br_gcn_asm_label(a, name);
    if (k == UINT32_MAX)
        return br_fail(a->st, BR_E_OOM, "no memory for labels");
    if (a->labels.at[k].place == BR_GCN_NOWHERE && !a->labels.at[k].constant)
        return br_gcn_asm_fail(a, p, "%.*s is not there yet",
                               (int)BR_MIN(name.n, 60u), name.p);
    *v = (int64_t)a->labels.at[k].at;
    *place = a->labels.at[k].constant ? BR_GCN_NOWHERE : a->labels.at[k].place;
    return BR_OK;
}

br_code
br_gcn_asm_value(br_gcn_asm *a, int64_t *v)
{
    const char *p = a->scan.p;
    int64_t t;
    int text = 0, data = 0;
    uint8_t place;

    *v = 0;
    for (int sign = 1; sign;) {
        BR_TRY(term(a, &t, &place));
        text += place == BR_GCN_TEXT ? sign : 0;
        data += place == BR_GCN_DATA ? sign : 0;
        *v = (int64_t)((uint64_t)*v + (uint64_t)t * (uint64_t)sign);
        sign = br_gcn_eat(&a->scan, "+")   ? 1
               : br_gcn_eat(&a->scan, "-") ? -1
                                           : 0;
    }
    if (text || data)
        return br_gcn_asm_fail(a, p, "an address is no number here");
    return BR_OK;
}

static br_code
bounded(br_gcn_asm *a, int64_t hi, int64_t *v)
{
    const char *p = a->scan.p;

    BR_TRY(br_gcn_asm_value(a, v));
    if (*v < 0 || *v > hi)
        return br_gcn_asm_fail(a, p, "%lld is out of range", (long long)*v);
    return BR_OK;
}

/* ---- data ------------------------------------------------------------- */

static br_code
put(br_gcn_asm *a, const void *p, size_t n)
{
    br_str *s = a->place == BR_GCN_TEXT ? &a->text : &a->data;

    if (a->place == BR_GCN_NOWHERE)
        return br_gcn_asm_fail(a, a->line, "nothing goes into section %.*s",
                               (int)a->place_name.n, a->place_name.p);
    if (s->n > MAX_FILL - n)
        return br_gcn_asm_fail(a, a->line, "a section of more than %d bytes",
                               MAX_FILL);
    br_str_put(s, p, n);
    return BR_OK;
}

static br_code
numbers(br_gcn_asm *a, int bytes)
{
    int64_t v;

    do {
        BR_TRY(br_gcn_asm_value(a, &v));
        if (bytes < 8 && (v < -(1ll << (bytes * 8 - 1)) || v >> bytes * 8 > 0))
            return wrong(a, "a number of this size");
        BR_TRY(put(a, &v, (size_t)bytes));
    } while (br_gcn_eat(&a->scan, ","));
    return BR_OK;
}

/* .zero N, .fill N[, SIZE[, VALUE]] */
static br_code
fill(br_gcn_asm *a, int zero)
{
    int64_t n, bytes = 1, v = 0;

    BR_TRY(bounded(a, MAX_FILL, &n));
    if (br_gcn_eat(&a->scan, ",")) {
        if (zero)
            BR_TRY(bounded(a, 255, &v));
        else
            BR_TRY(bounded(a, 8, &bytes));
    }
    if (!zero && br_gcn_eat(&a->scan, ","))
        BR_TRY(br_gcn_asm_value(a, &v));
    for (; n && !a->text.oom && !a->data.oom; n--)
        BR_TRY(put(a, &v, (size_t)bytes));
    return BR_OK;
}

static br_code
align(br_gcn_asm *a, int how)
{
    uint32_t with = a->place == BR_GCN_TEXT ? 0xbf800000 : 0; /* s_nop 0 */
    size_t at = a->place == BR_GCN_TEXT ? a->text.n : a->data.n, step;
    int64_t v, w = 0;

    BR_TRY(bounded(a, how == 1 ? MAX_ALIGN : 12, &v));
    if (br_gcn_eat(&a->scan, ",") && !at_end(a)) {
        BR_TRY(bounded(a, UINT32_MAX, &w));
        with = how == 4 || a->place != BR_GCN_TEXT ? (uint32_t)w : with;
    }
    step = how == 1 ? (size_t)v : (size_t)1 << v;
    if (!step || step & (step - 1))
        return wrong(a, "a power of two");
    for (unsigned k = 0; at % step; at++, k++)
        BR_TRY(put(a, (const char *)&with + (at % 4), 1));
    return BR_OK;
}

static br_code
chars(br_gcn_asm *a, int nul)
{
    br_text t;

    if (!br_gcn_eat(&a->scan, "\""))
        return wrong(a, "a text in quotes");
    a->scan.p--;
    t = br_gcn_asm_name(a);
    if (a->scan.p == t.p || memchr(t.p, '\\', t.n))
        return wrong(a, "a text in quotes without escapes");
    BR_TRY(put(a, t.p, t.n));
    return nul ? put(a, "", 1) : BR_OK;
}

/* ---- sections and symbols --------------------------------------------- */

static br_code
section_text(br_gcn_asm *a, int unused)
{
    (void)unused;
    a->place = BR_GCN_TEXT;
    return BR_OK;
}

static br_code
section(br_gcn_asm *a, int unused)
{
    br_text t = br_gcn_asm_name(a);

    (void)unused;
    if (!t.n)
        return wrong(a, "the name of a section");
    a->place = BR_GCN_NOWHERE;
    a->place_name = (br_text){t.p, BR_MIN(t.n, 60u)};
    if (t.n >= 7 && memcmp(t.p, ".rodata", 7) == 0)
        a->place = BR_GCN_DATA;
    if (br_text_is(t, ".text"))
        a->place = BR_GCN_TEXT;
    a->scan.p = a->scan.end; /* flags: a code object has its own */
    return BR_OK;
}

static br_code
nothing(br_gcn_asm *a, int unused)
{
    (void)unused;
    a->scan.p = a->scan.end;
    return BR_OK;
}

static br_code
visible(br_gcn_asm *a, int how)
{
    br_text t = br_gcn_asm_name(a);
    uint32_t k;

    if (!t.n)
        return wrong(a, "a name");
    k = br_gcn_asm_label(a, t);
    if (k == UINT32_MAX)
        return br_fail(a->st, BR_E_OOM, "no memory for labels");
    a->labels.at[k].global |= how == 0;
    a->labels.at[k].hidden |= how == 2;
    return BR_OK;
}

static br_code
named_value(br_gcn_asm *a, uint32_t *label, int64_t *v)
{
    br_text t = br_gcn_asm_name(a);

    if (!t.n || !br_gcn_eat(&a->scan, ","))
        return wrong(a, "NAME, VALUE");
    BR_TRY(br_gcn_asm_value(a, v));
    *label = br_gcn_asm_label(a, t);
    if (*label == UINT32_MAX)
        return br_fail(a->st, BR_E_OOM, "no memory for labels");
    return BR_OK;
}

static br_code
size(br_gcn_asm *a, int unused)
{
    uint32_t label;
    int64_t v;

    (void)unused;
    BR_TRY(named_value(a, &label, &v));
    if (v < 0 || v > BR_GCN_MAX_IMAGE)
        return wrong(a, "a size");
    a->labels.at[label].bytes = (uint64_t)v;
    return BR_OK;
}

static br_code
set(br_gcn_asm *a, int unused)
{
    uint32_t label;
    int64_t v;

    (void)unused;
    BR_TRY(named_value(a, &label, &v));
    if (a->labels.at[label].place != BR_GCN_NOWHERE)
        return wrong(a, "a name that is no label");
    a->labels.at[label].constant = true;
    a->labels.at[label].at = (uint64_t)v;
    return BR_OK;
}

static br_code
target(br_gcn_asm *a, int unused)
{
    br_text t = br_gcn_asm_name(a);
    const char *dash = t.n ? memrchr(t.p, '-', t.n) : NULL;
    size_t n = strlen(a->isa.cpu->name);

    (void)unused;
    if (!dash || (size_t)(t.p + t.n - dash - 1) != n ||
        memcmp(dash + 1, a->isa.cpu->name, n) != 0)
        return br_gcn_asm_fail(a, t.p, "this is for another processor than %s",
                               a->isa.cpu->name);
    return BR_OK;
}

static br_code
version(br_gcn_asm *a, int unused)
{
    int64_t v;

    (void)unused;
    return br_gcn_int(&a->scan, 5, 5, &v) ? BR_OK : wrong(a, "version 5");
}

static br_code
metadata(br_gcn_asm *a, int unused)
{
    const char *begin = a->next;
    br_status st = {0};

    (void)unused;
    if (a->depth)
        return br_gcn_asm_fail(a, a->line, "metadata in a macro");
    while (br_gcn_asm_line(a)) {
        br_text t = br_gcn_asm_name(a);

        if (!br_text_is(t, ".end_amdgpu_metadata"))
            continue;
        if (a->note.n)
            return br_gcn_asm_fail(a, a->line, "metadata twice");
        if (br_gcn_yaml_read(&a->note, begin, (size_t)(a->line - begin), &st))
            return st.code == BR_E_OOM
                       ? br_fail(a->st, BR_E_OOM, "%s", st.msg)
                       : br_gcn_asm_fail(a, a->line, "%s", st.msg);
        return BR_OK;
    }
    return br_gcn_asm_fail(a, a->line, ".end_amdgpu_metadata is missing");
}

/* ---- descriptors ------------------------------------------------------ */

static br_code
kernel(br_gcn_asm *a, int unused)
{
    br_gcn_kernel_kd k = {.name = br_gcn_asm_name(a), .line = a->number};
    uint32_t label;

    (void)unused;
    if (!k.name.n)
        return wrong(a, "the name of a kernel");
    label = br_gcn_asm_label(a, k.name);
    if (label == UINT32_MAX)
        return br_fail(a->st, BR_E_OOM, "no memory for labels");
    a->labels.at[label].global = true;
    for (size_t i = 0; i < a->kernels.n; i++)
        if (br_text_eq(a->kernels.at[i].name, k.name))
            return br_gcn_asm_fail(a, k.name.p, "a descriptor twice");
    while (a->data.n % BR_GCN_KD_BYTES && !a->data.oom)
        br_str_putc(&a->data, 0);
    k.at = a->data.n;
    if (a->kernels.n >= BR_GCN_MAX_KERNELS)
        return wrong(a, "an end of the kernels");
    if (!br_vec_push(&a->kernels, k))
        return br_fail(a->st, BR_E_OOM, "no memory for kernels");
    br_gcn_kd_begin(&a->kd, &a->isa);
    a->in_kd = true;
    return BR_OK;
}

static br_code
in_kernel(br_gcn_asm *a, br_text name)
{
    br_status st = {0};
    int64_t v;

    if (br_text_is(name, ".end_amdhsa_kernel")) {
        a->in_kd = false;
        if (br_gcn_kd_end(&a->kd, &st) != BR_OK)
            return br_gcn_asm_fail(a, name.p, "%s", st.msg);
        br_str_put(&a->data, (const char *)a->kd.bytes, BR_GCN_KD_BYTES);
        return BR_OK;
    }
    if (name.n < 8 || memcmp(name.p, ".amdhsa_", 8) != 0)
        return br_gcn_asm_fail(a, name.p, ".amdhsa_... is expected");
    BR_TRY(br_gcn_asm_value(a, &v));
    name = (br_text){name.p + 8, name.n - 8};
    if (br_gcn_kd_set(&a->kd, &a->isa, name, v, &st) != BR_OK)
        return br_gcn_asm_fail(a, name.p - 8, "%s", st.msg);
    return BR_OK;
}

static const struct {
    const char *name;
    br_code (*fn)(br_gcn_asm *a, int arg);
    int arg;
} dirs[] = {
#define DIR(name, fn, arg) {"." #name, fn, arg},
#include "cg/gcn/dirs.def"
#undef DIR
};

br_code
br_gcn_directive(br_gcn_asm *a)
{
    br_text name = br_gcn_asm_name(a);
    size_t k = 0;

    while (!a->in_kd && k < BR_COUNT(dirs) && !br_text_is(name, dirs[k].name))
        k++;
    if (k == BR_COUNT(dirs))
        return br_gcn_asm_fail(a, name.p, "%.*s: no directive that is known",
                               (int)BR_MIN(name.n, 60u), name.p);
    BR_TRY(a->in_kd ? in_kernel(a, name) : dirs[k].fn(a, dirs[k].arg));
    if (!at_end(a))
        return br_gcn_asm_fail(a, a->scan.p, "nothing is expected here");
    return BR_OK;
}
