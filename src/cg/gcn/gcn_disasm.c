/* gcn_disasm.c - a code object as assembly that assembles back to it.
 *
 * Branches get labels; words that are no instruction become .long, as do a
 * code object's bytes of constants. Behind each instruction stand its address
 * and words.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_file.h"

#include "cg/gcn/isa.h"

#include <ctype.h>
#include <string.h>

typedef struct dis {
    const br_gcn_co *co;
    const uint32_t *w;
    size_t n;
    uint8_t *label; /* a bit for each word: somebody goes there */
    br_str *out, line;
    br_status *st;
} dis;

static bool
is_branch(const br_gcn_inst *in)
{
    unsigned op = in->row->op;

    if (in->row->fmt == BR_FMT_SOPP)
        return op >= 32 && op <= 42; /* s_branch ... */
    return in->row->fmt == BR_FMT_SOPK && (op == 20 || op == 22 || op == 23);
}

/* The word that a branch at word `at` goes to; n: outside. */
static size_t
goes_to(const dis *d, const br_gcn_inst *in, size_t at)
{
    int64_t to = (int64_t)at + in->words + (int16_t)(in->w[0] & 0xffff);

    return to < 0 || (size_t)to > d->n ? d->n + 1 : (size_t)to;
}

static size_t
decode(const dis *d, size_t at, br_gcn_inst *in)
{
    size_t n = BR_MIN(d->n - at, (size_t)BR_GCN_MAX_WORDS);

    return br_gcn_decode(&d->co->isa, d->w + at, n, in);
}

static const br_gcn_symbol *
function_at(const dis *d, size_t at)
{
    for (size_t i = 0; i < d->co->n_sym; i++)
        if (d->co->sym[i].place == BR_GCN_TEXT &&
            d->co->sym[i].at == d->co->text_at + at * 4)
            return &d->co->sym[i];
    return NULL;
}

static void
put_label(dis *d, size_t at)
{
    const br_gcn_symbol *s = function_at(d, at);

    if (s)
        br_str_puts(&d->line, s->name);
    else
        br_str_printf(&d->line, ".L%zx", at * 4);
}

static void
put_inst(dis *d, size_t at, const br_gcn_inst *in)
{
    size_t to = is_branch(in) ? goes_to(d, in, at) : d->n + 1;
    br_gcn_inst back;

    br_str_clear(&d->line);
    br_gcn_print(&d->co->isa, in, &d->line);
    d->out->oom |= d->line.oom;
    if (br_gcn_parse(&d->co->isa, br_str_z(&d->line), d->line.n, &back, NULL) !=
            BR_OK ||
        back.words != in->words) {
        /* A literal that an inline constant would say. */
        br_str_puts(d->out, "\t.long\t");
        for (unsigned k = 0; k < in->words; k++)
            br_str_printf(d->out, "%s0x%08x", k ? ", " : "", in->w[k]);
        br_str_printf(d->out, " // %s\n", br_str_z(&d->line));
        return;
    }
    if (to <= d->n && d->line.at) {
        while (d->line.n && d->line.at[d->line.n - 1] != ' ')
            d->line.n--;
        put_label(d, to);
        d->out->oom |= d->line.oom;
    }
    br_str_printf(d->out, "\t%-58s //", br_str_z(&d->line));
    br_str_printf(d->out,
                  " %06llx:", (unsigned long long)(d->co->text_at + at * 4));
    for (unsigned k = 0; k < in->words; k++)
        br_str_printf(d->out, " %08X", in->w[k]);
    br_str_putc(d->out, '\n');
}

/* What stands before the instruction at a word: symbols and labels. */
static void
put_heads(dis *d, size_t at)
{
    bool named = false;

    for (size_t i = 0; i < d->co->n_sym; i++) {
        const br_gcn_symbol *s = &d->co->sym[i];

        if (s->place != BR_GCN_TEXT || s->at != d->co->text_at + at * 4)
            continue;
        br_str_printf(d->out,
                      "\n\t.globl\t%s\n\t.type\t%s,@function\n%s:\n"
                      "\t.size\t%s, %llu\n",
                      s->name, s->name, s->name, s->name,
                      (unsigned long long)s->bytes);
        named = true;
    }
    if (!named && d->label[at / 8] >> at % 8 & 1)
        br_str_printf(d->out, ".L%zx:\n", at * 4);
}

static br_code
code(dis *d)
{
    br_gcn_inst in;
    size_t n;

    for (size_t at = 0; at < d->n; at += n ? n : 1) {
        n = decode(d, at, &in);
        if (n && is_branch(&in) && goes_to(d, &in, at) <= d->n) {
            size_t to = goes_to(d, &in, at);

            d->label[to / 8] |= (uint8_t)(1u << to % 8);
        }
    }
    for (size_t at = 0; at < d->n; at += n) {
        put_heads(d, at);
        n = decode(d, at, &in);
        /* A label inside an instruction: its words, one by one. */
        for (size_t k = 1; k < n; k++)
            if (function_at(d, at + k) ||
                d->label[(at + k) / 8] >> (at + k) % 8 & 1)
                n = 0;
        if (n)
            put_inst(d, at, &in);
        else
            br_str_printf(d->out, "\t.long\t0x%08x\n", d->w[at]);
        n = n ? n : 1;
    }
    if (d->n && d->label[d->n / 8] >> d->n % 8 & 1)
        br_str_printf(d->out, ".L%zx:\n", d->n * 4);
    return BR_OK;
}

static br_code
constants(dis *d)
{
    for (size_t i = 0; i < d->co->n_sym; i++) {
        const br_gcn_symbol *s = &d->co->sym[i];
        size_t n = strlen(s->name);

        if (s->place != BR_GCN_DATA)
            continue;
        if (s->entry) {
            br_str_printf(d->out, "\n\t.amdhsa_kernel %.*s\n", (int)(n - 3),
                          s->name);
            BR_TRY(br_gcn_kd_text(d->out, &d->co->isa, d->co->image + s->at,
                                  d->st));
            br_str_puts(d->out, "\t.end_amdhsa_kernel\n");
            continue;
        }
        br_str_printf(d->out, "\n\t.globl\t%s\n\t.type\t%s,@object\n%s:\n",
                      s->name, s->name, s->name);
        br_str_printf(d->out, "\t.size\t%s, %llu\n", s->name,
                      (unsigned long long)s->bytes);
        for (uint64_t k = 0; k < s->bytes; k++)
            br_str_printf(d->out, "\t.byte\t%u\n", d->co->image[s->at + k]);
    }
    return BR_OK;
}

/* Names in a file may be anything; in assembly they may not. */
static br_code
names(const dis *d)
{
    for (size_t i = 0; i < d->co->n_sym; i++) {
        const char *z = d->co->sym[i].name;
        bool ok = *z && !isdigit((unsigned char)*z) && strcmp(z, ".") != 0;

        for (; *z && ok; z++)
            ok = isalnum((unsigned char)*z) || strchr("_.$", *z);
        if (!ok)
            return br_fail(d->st, BR_E_FORMAT,
                           "symbol %zu has a name that assembly cannot say", i);
    }
    return BR_OK;
}

static br_code
whole(dis *d)
{
    br_str *out = d->out;

    BR_TRY(names(d));
    br_str_printf(out,
                  "\t.amdgcn_target \"amdgcn-amd-amdhsa--%s\"\n"
                  "\t.amdhsa_code_object_version 5\n\t.text\n\t.p2align\t8\n",
                  d->co->isa.cpu->name);
    BR_TRY(code(d));
    br_str_puts(out, "\n\t.section\t.rodata,\"a\",@progbits\n");
    BR_TRY(constants(d));
    if (d->co->note.n) {
        br_str_puts(out, "\n\t.amdgpu_metadata\n---\n");
        BR_TRY(br_gcn_yaml_write(out, d->co->note, d->st));
        br_str_puts(out, "...\n\t.end_amdgpu_metadata\n");
    }
    if (out->oom)
        return br_fail(d->st, BR_E_OOM, "out of memory");
    return BR_OK;
}

br_code
br_gcn_disassemble(br_str *out, const br_gcn_co *co, br_status *st)
{
    dis d = {.co = co,
             .w = (const uint32_t *)(const void *)(co->image + co->text_at),
             .n = co->text_bytes / 4,
             .out = out,
             .st = st};
    br_code c;

    d.label = br_try_calloc(d.n / 8 + 1, 1);
    c = d.label ? whole(&d) : br_fail(st, BR_E_OOM, "out of memory");
    br_free(d.label);
    br_str_fini(&d.line);
    return c;
}
