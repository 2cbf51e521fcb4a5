/* gcn_encode.c - instructions with registers as machine words.
 *
 *   nodes of gm_ins --encode--> nodes of words --waits, hazards--> gcn_layout.c
 *
 * The mode register (rounding, denormals) is part of what an instruction of
 * floats means: it is set where the next one needs another, and back to the
 * usual before a node is left.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kernel.h"

#include <string.h>

enum { SRC_ZERO = 128, SRC_NEG1 = 193, SRC_FLOAT = 240, SRC_LIT = 255 };

const br_gcn_row *
gcn_row_named(const br_gcn_isa *isa, const char *name)
{
    size_t n;
    const br_gcn_row *r = br_gcn_rows(isa->cpu, &n);

    for (size_t k = 0; k < n; k++)
        if (strcmp(r[k].name, name) == 0)
            return &r[k];
    br_unreachable("an instruction that the processor has");
}

void
gcn_push(gcn_code *c, gcn_node *n, const char *name, uint32_t imm,
         uint32_t line)
{
    gcn_line l = {.target = -1, .line = line};

    br_gcn_fresh(&l.in, gcn_row_named(c->isa, name), NULL, BR_EXT_NONE);
    br_gcn_set(&l.in, BR_GF_simm16, imm);
    if (l.in.row->fmt == BR_FMT_SOPK) /* s_waitcnt_vscnt null, n */
        br_gcn_set(&l.in, BR_GF_sdst, GM_NULL);
    c->oom |= !br_vec_push(&n->code, l);
}

/* ---- operands ---------------------------------------------------------- */

static unsigned
code_of(const gm_fn *g, const gm_op *o, const br_gcn_kind *k, bool *lit)
{
    static const uint32_t floats[] = {0x3f000000, 0xbf000000, 0x3f800000,
                                      0xbf800000, 0x40000000, 0xc0000000,
                                      0x40800000, 0xc0800000, 0x3e22f983};

    *lit = false;
    if (o->kind == GM_CODE)
        return o->v;
    if (o->kind == GM_VREG) {
        const gm_vreg *v = &g->vregs.at[o->v];
        unsigned at = v->phys < 0 ? 0 : (unsigned)v->phys; /* read by nobody */

        return at + o->sub + (v->file == 'V' ? GM_V0 : 0);
    }
    if (o->v <= 64)
        return SRC_ZERO + o->v;
    if (o->v >= (uint32_t)-16)
        return SRC_NEG1 - 1 - o->v;
    for (unsigned f = 0; k->style == BR_S_32 && f < BR_COUNT(floats); f++)
        if (o->v == floats[f])
            return SRC_FLOAT + f;
    *lit = true;
    return SRC_LIT;
}

static bool
is_reg(const br_gcn_kind *k)
{
    return k->how == &br_gcn_how_reg || k->how == &br_gcn_how_gaddr ||
           k->how == &br_gcn_how_saddr || k->how == &br_gcn_how_smoff ||
           k->how == &br_gcn_how_svaddr;
}

static void
operand(const gm_fn *g, br_gcn_inst *in, const br_gcn_opnd *f, const gm_op *o)
{
    const br_gcn_kind *k = &br_gcn_kinds[f->kind];
    unsigned bits = br_gcn_width(in, (br_gcn_field)f->field), v;
    bool lit;

    if (!is_reg(k)) {
        br_gcn_set(in, (br_gcn_field)f->field, o->v);
        return;
    }
    v = code_of(g, o, k, &lit);
    if (lit)
        br_gcn_set(in, BR_GF_lit, o->v);
    if (bits == 8 && v >= GM_V0)
        v -= GM_V0;
    br_gcn_set(in, (br_gcn_field)f->field,
               bits == 6   ? v / 2
               : bits == 5 ? v / 4
                           : v);
}

static void
modifiers(br_gcn_inst *in, const gm_ins *i)
{
    const br_gcn_opnd *o = i->row->o;
    unsigned k = 0;

    for (; o->kind != BR_GK_END; o++) {
        unsigned src = o->field == BR_GF_src0   ? 1
                       : o->field == BR_GF_src1 ? 2
                                                : 4;

        if (!gm_counts(o))
            continue;
        if (i->op[k].neg)
            br_gcn_set(in, BR_GF_neg, br_gcn_get(in, BR_GF_neg) | src);
        if (i->op[k].abs)
            br_gcn_set(in, BR_GF_abs, br_gcn_get(in, BR_GF_abs) | src);
        k++;
    }
    for (k = 0; k < i->n_set; k++)
        br_gcn_set(in, (br_gcn_field)i->set[k].field, i->set[k].v);
}

static void
encode(const gm_fn *g, const gm_ins *i, br_gcn_inst *in)
{
    const br_gcn_opnd *o;
    bool any = false, lit;
    unsigned k = 0;

    for (o = i->row->o; o->kind != BR_GK_END; o++)
        if (gm_counts(o)) {
            if (is_reg(&br_gcn_kinds[o->kind])) {
                code_of(g, &i->op[k], &br_gcn_kinds[o->kind], &lit);
                any |= lit;
            }
            k++;
        }
    br_gcn_fresh(in, i->row, NULL,
                 i->dpp ? BR_EXT_DPP16
                 : any  ? BR_EXT_LIT
                        : BR_EXT_NONE);
    for (o = i->row->o, k = 0; o->kind != BR_GK_END; o++)
        if (gm_counts(o) && i->dpp && o->field == BR_GF_src0)
            br_gcn_set(in, BR_GF_xsrc,
                       code_of(g, &i->op[k++], &br_gcn_kinds[o->kind], &lit) -
                           GM_V0);
        else if (gm_counts(o))
            operand(g, in, o, &i->op[k++]);
    if (i->dpp) {
        br_gcn_set(in, BR_GF_xctrl, i->dpp & ~GM_DPP);
        br_gcn_set(in, BR_GF_xbc, 1);
    }
    modifiers(in, i);
}

static void
set_mode(gcn_code *c, gcn_node *n, uint8_t *mode, uint8_t want, uint32_t line)
{
    if ((*mode ^ want) & 0x0f)
        gcn_push(c, n, "s_round_mode", want & 15, line);
    if ((*mode ^ want) & 0xf0)
        gcn_push(c, n, "s_denorm_mode", want >> 4, line);
    *mode = want;
}

/* A copy of a register to itself. */
static bool
is_idle_move(const gm_fn *g, const gm_ins *i)
{
    const gm_op *d = &i->op[0], *s = &i->op[1];
    const gm_vreg *v = g->vregs.at;

    return i->n_op == 2 && !i->n_set && !i->dpp && d->kind == GM_VREG &&
           s->kind == GM_VREG && !s->neg && !s->abs &&
           (strncmp(i->row->name, "v_mov_b32", 9) == 0 ||
            strncmp(i->row->name, "s_mov_b32", 9) == 0) &&
           v[d->v].file == v[s->v].file &&
           v[d->v].phys + d->sub == v[s->v].phys + s->sub;
}

static void
encode_node(const gm_fn *g, gcn_code *c, uint32_t node)
{
    const gm_blk *b = &g->blks.at[node];
    gcn_node *n = &c->node[node];
    uint8_t mode = GM_MODE;

    n->succ = b->wave.at;
    n->n_succ = b->wave.n;
    for (size_t k = 0; k < b->ins.n; k++) {
        const gm_ins *i = &b->ins.at[k];
        gcn_line l = {.target = i->target, .line = i->line};

        if (is_idle_move(g, i))
            continue;
        if (i->target != GM_NO)
            set_mode(c, n, &mode, GM_MODE, i->line);
        else if (i->mode)
            set_mode(c, n, &mode, i->mode, i->line);
        encode(g, i, &l.in);
        c->oom |= !br_vec_push(&n->code, l);
    }
}

bool
gm_encode(gm_fn *g, gcn_code *c)
{
    c->isa = g->isa;
    c->n = g->blks.n;
    c->node = br_try_calloc(c->n + 1, sizeof *c->node);
    if (!c->node) {
        gm_oom(g);
        return false;
    }
    for (uint32_t b = 0; b < c->n; b++)
        encode_node(g, c, b);
    gcn_push(c, &c->node[c->n - 1], "s_endpgm", 0, g->f->line);
    return true;
}

void
gcn_code_fini(gcn_code *c)
{
    for (size_t k = 0; c->node && k < c->n; k++)
        br_vec_fini(&c->node[k].code);
    br_free(c->node);
}
