/* kir_print.c - the kernel IR as text.
 *
 *   kir sm_90
 *   note 12 "foo.bar.u32 is not known"
 *   var shared sh align 16 bytes 1024
 *   var global tab align 4 bytes 8 init 0100000002000000
 *     at 0 bytes 8 sym other 4 generic
 *   func k_0 entry line 4 param_bytes 16
 *     param pi 0 8 8
 *   b0:
 *     %0 = ld.param.u64 0x0 #8 !5
 *     %1, %2 = unpack.b64 %0
 *     cbr %3 b1 b2
 *   end
 *
 * Results are numbered in the order of the text, so that printing what was
 * parsed gives the same text. An instruction is results =
 * operation.modifiers.type.type2, arguments, then @symbol, #number, $register, targets
 * bN, !line. Constants stand where they are used; their class follows from the signature.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir.h"

static void
put_text(br_str *out, br_text t)
{
    br_str_put(out, t.p, t.n);
}

/* num: value -> its number in the text; NULL: its index. */
typedef struct printer {
    const br_kir *m;
    const br_kfn *f;
    const uint32_t *num;
    br_str *out;
} printer;

static void
put_val(const printer *p, uint32_t v)
{
    const br_kval *k = &p->f->vals.at[v];
    br_str *out = p->out;

    switch (k->kind) {
    case BR_KV_CONST:
        if (k->bits < 10)
            br_str_printf(out, "%u", (unsigned)k->bits);
        else
            br_str_printf(out, "0x%llx", (unsigned long long)k->bits);
        break;
    case BR_KV_UNDEF: br_str_puts(out, "undef"); break;
    default: br_str_printf(out, "%%%u", p->num ? p->num[v] : v); break;
    }
}

static void
put_op(const br_kins *i, br_str *out)
{
    const br_kopinfo *o = &br_kopinfo_of[i->op];

    br_str_puts(out, o->text);
    for (const br_kminfo *m = br_kminfo_of; m->letter; m++)
        for (const char *g = o->groups; *g; g++)
            if (*g == m->letter && br_kmod(i->mods, m->field) == m->value)
                br_str_printf(out, ".%s", m->text);
    if (i->type)
        br_str_printf(out, ".%s", br_ktinfo_of[i->type].text);
    if (i->type2)
        br_str_printf(out, ".%s", br_ktinfo_of[i->type2].text);
}

/* blk: for phi and targets; NULL where the instruction stands alone. */
static void
put_ins(const printer *p, const br_kblk *blk, const br_kins *i)
{
    const br_kir *m = p->m;
    br_str *out = p->out;
    unsigned props = br_kopinfo_of[i->op].props;

    for (unsigned r = 0; r < i->n_res; r++)
        br_str_printf(out, "%s%%%u", r ? ", " : "",
                      p->num ? p->num[i->res + r] : i->res + r);
    br_str_puts(out, i->n_res ? " = " : "");
    put_op(i, out);
    for (unsigned a = 0; a < i->n_arg; a++) {
        br_str_putc(out, ' ');
        if (i->op == BR_K_PHI && blk)
            br_str_printf(out, "b%u:", blk->pred.at[a]);
        put_val(p, br_kargs(p->f, i)[a]);
    }
    if ((props & BR_KP_SYM) && i->sym != BR_KNONE) {
        bool fn = i->sym & BR_KFN_SYM;
        uint32_t s = i->sym & ~BR_KFN_SYM;

        br_str_puts(out, fn ? " @&" : " @");
        put_text(out, fn ? m->fns.at[s].name : m->vars.at[s].name);
    }
    if ((props & BR_KP_IMM) && i->imm)
        br_str_printf(out, " #%lld", (long long)i->imm);
    if (props & BR_KP_SREG)
        br_str_printf(out, " $%s", br_ksreg_text[i->imm]);
    if ((props & BR_KP_TERM) && blk)
        for (size_t s = 0; s < blk->succ.n; s++)
            br_str_printf(out, " b%u", blk->succ.at[s]);
    if (i->line)
        br_str_printf(out, " !%u", i->line);
}

void
br_kins_print(const br_kir *m, const br_kfn *f, const br_kins *i, br_str *out)
{
    put_ins(&(printer){m, f, NULL, out}, NULL, i);
}

/* Number of each value in the order of the text; NULL: out of memory. */
static uint32_t *
numbers(const br_kfn *f)
{
    uint32_t *num = br_try_calloc(f->vals.n + 1, sizeof *num), next = 0;

    for (size_t b = 0; num && b < f->blks.n; b++)
        for (size_t k = 0; k < f->blks.at[b].ins.n; k++) {
            const br_kins *i = &f->ins.at[f->blks.at[b].ins.at[k]];

            for (unsigned r = 0; r < i->n_res; r++)
                num[i->res + r] = next++;
        }
    return num;
}

void
br_kfn_print(const br_kir *m, const br_kfn *f, br_str *out)
{
    uint32_t *num = numbers(f);
    printer p = {m, f, num, out};

    if (!num)
        out->oom = true;
    br_str_puts(out, "func ");
    put_text(out, f->name);
    br_str_puts(out, f->entry ? " entry" : "");
    br_str_puts(out, f->external ? " extern" : "");
    if (f->line)
        br_str_printf(out, " line %u", f->line);
    if (f->param_bytes)
        br_str_printf(out, " param_bytes %u", f->param_bytes);
    if (f->frame_bytes)
        br_str_printf(out, " frame_bytes %u", f->frame_bytes);
    if (f->max_threads)
        br_str_printf(out, " max_threads %u", f->max_threads);
    if (f->req_threads)
        br_str_printf(out, " req_threads %u", f->req_threads);
    if (f->req_block[0])
        br_str_printf(out, " block_x %u block_y %u block_z %u", f->req_block[0],
                      f->req_block[1], f->req_block[2]);
    if (f->max_cluster)
        br_str_printf(out, " max_cluster %u", f->max_cluster);
    if (f->cluster[0])
        br_str_printf(out, " cluster_x %u cluster_y %u cluster_z %u",
                      f->cluster[0], f->cluster[1], f->cluster[2]);
    br_str_putc(out, '\n');
    for (size_t i = 0; i < f->params.n; i++) {
        const br_kparam *q = &f->params.at[i];

        br_str_puts(out, q->result ? "  result " : "  param ");
        put_text(out, q->name);
        br_str_printf(out, " %u %u %u\n", q->offset, q->bytes, q->align);
    }
    for (uint32_t b = 0; b < f->blks.n; b++) {
        const br_kblk *k = &f->blks.at[b];

        br_str_printf(out, "b%u:\n", b);
        for (size_t i = 0; i < k->ins.n; i++) {
            br_str_puts(out, "  ");
            put_ins(&p, k, &f->ins.at[k->ins.at[i]]);
            br_str_putc(out, '\n');
        }
    }
    br_str_puts(out, "end\n");
    br_free(num);
}

static const char *
space_text(unsigned space)
{
    for (const br_kminfo *m = br_kminfo_of; m->letter; m++)
        if (m->field == BR_KF_SPACE && m->value == space)
            return m->text;
    return "generic";
}

static void
put_var(const br_kir *m, const br_kvar *v, br_str *out)
{
    br_str_printf(out, "var %s ", space_text(v->space));
    put_text(out, v->name);
    br_str_printf(out, "%s align %u bytes %llu", v->external ? " extern" : "",
                  v->align, (unsigned long long)v->bytes);
    if (v->init) {
        br_str_puts(out, " init ");
        for (uint64_t i = 0; i < v->bytes; i++)
            br_str_printf(out, "%02x", v->init[i]);
    }
    br_str_putc(out, '\n');
    for (size_t i = 0; i < v->relocs.n; i++) {
        const br_kreloc *r = &v->relocs.at[i];
        bool fn = r->sym & BR_KFN_SYM;
        uint32_t s = r->sym & ~BR_KFN_SYM;

        br_str_printf(out, "  at %u bytes %u sym %s", r->offset, r->bytes,
                      fn ? "&" : "");
        put_text(out, fn ? m->fns.at[s].name : m->vars.at[s].name);
        br_str_printf(out, " %lld%s\n", (long long)r->addend,
                      r->generic ? " generic" : "");
    }
}

void
br_kir_print(const br_kir *m, br_str *out)
{
    br_str_puts(out, "kir ");
    put_text(out, m->target);
    br_str_putc(out, '\n');
    for (size_t i = 0; i < m->notes.n; i++) {
        br_str_printf(out, "note %u \"", m->notes.at[i].line);
        put_text(out, m->notes.at[i].text);
        br_str_puts(out, "\"\n");
    }
    for (size_t i = 0; i < m->vars.n; i++)
        put_var(m, &m->vars.at[i], out);
    for (size_t i = 0; i < m->fns.n; i++)
        br_kfn_print(m, &m->fns.at[i], out);
}
