/* gcn_emit.c - instructions made for a kernel, operands as their rows allow.
 *
 * Whoever selects writes what is meant; here a constant becomes inline, a
 * literal or a move before, and what would read a third scalar reads a copy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_mir.h"

#include <stdio.h>
#include <string.h>

void
gm_fail(gm_fn *g, br_code code, const char *fmt, ...)
{
    char text[300];
    va_list ap;

    if (g->code != BR_OK)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    g->code = br_fail(g->st, code, "%.*s: line %u: %s",
                      (int)BR_MIN(g->f->name.n, (size_t)80), g->f->name.p,
                      g->line, text);
}

void
gm_oom(gm_fn *g)
{
    if (g->code == BR_OK)
        g->code = br_fail(g->st, BR_E_OOM, "out of memory");
}

uint32_t
gm_new(gm_fn *g, char file, unsigned words)
{
    gm_vreg v = {.file = file,
                 .words = (uint8_t)words,
                 .align = file == 'V' || words == 1 ? 1
                          : words == 2              ? 2
                                                    : 4,
                 .phys = GM_NO,
                 .hint = BR_KNONE};

    if (g->vregs.n >= GM_MAX_VREGS) {
        gm_fail(g, BR_E_LIMIT, "more than %d values", GM_MAX_VREGS);
        return 0;
    }
    if (!br_vec_push(&g->vregs, v)) {
        gm_oom(g);
        return 0;
    }
    return (uint32_t)g->vregs.n - 1;
}

gm_op
gm_new_mask(gm_fn *g)
{
    return gm_reg(gm_new(g, 'S', br_gcn_mask_words(g->isa)), 0);
}

gm_op
gm_reg(uint32_t vreg, unsigned sub)
{
    return (gm_op){.kind = GM_VREG, .sub = (uint8_t)sub, .v = vreg};
}

gm_op
gm_code(unsigned code)
{
    return (gm_op){.kind = GM_CODE, .v = code};
}

gm_op
gm_imm(uint32_t v)
{
    return (gm_op){.kind = GM_IMM, .v = v};
}

/* ---- rows -------------------------------------------------------------- */

bool
gm_counts(const br_gcn_opnd *o)
{
    const br_gcn_how *how = br_gcn_kinds[o->kind].how;

    return !how->mod && how != &br_gcn_how_hidden &&
           how != &br_gcn_how_implied && how != &br_gcn_how_fixed;
}

static unsigned
count(const br_gcn_row *row)
{
    unsigned n = 0;

    for (const br_gcn_opnd *o = row->o; o->kind != BR_GK_END; o++)
        n += gm_counts(o);
    return n;
}

bool
gm_defines(const br_gcn_row *row, const br_gcn_opnd *o)
{
    if (o->field == BR_GF_sdst)
        return row->fmt != BR_FMT_SOPK || strncmp(row->name, "s_cmpk", 6) != 0;
    return o->field == BR_GF_vdst || o->field == BR_GF_sdata;
}

uint32_t
gm_named(const gm_ins *i, unsigned n, bool *def)
{
    const br_gcn_opnd *o = i->row->o;
    unsigned k = n;

    for (; o->kind != BR_GK_END; o++)
        if (gm_counts(o) && k-- == 0)
            break;
    *def = o->kind != BR_GK_END && gm_defines(i->row, o);
    return i->op[n].kind == GM_VREG ? i->op[n].v : BR_KNONE;
}

bool
gm_keeps(const gm_ins *i, unsigned n)
{
    return i->keep && n == 0;
}

static const char *
renamed(const gm_fn *g, const char *name)
{
    static const char *const names[][2] = {
#define NAME(a, b) {#a, #b},
#include "cg/gcn/gcn_names.def"
#undef NAME
    };

    for (size_t k = 0; g->isa->cpu->gen > 11 && k < BR_COUNT(names); k++)
        if (strcmp(names[k][0], name) == 0)
            return names[k][1];
    return name;
}

const br_gcn_row *
gm_row(gm_fn *g, const char *name, unsigned n_op)
{
    const br_gcn_row *row, *end;
    const char *to = renamed(g, name);
    char wide[64], mask[32];
    br_map_value *v;
    size_t n = strlen(to);

    if (n > 3 && (!strcmp(to + n - 3, "_bm") || !strcmp(to + n - 3, "_um"))) {
        snprintf(mask, sizeof mask, "%.*s%u", (int)n - 1, to,
                 br_gcn_lanes(g->isa));
        to = mask;
    }
    snprintf(wide, sizeof wide, "%s_e64", to);
    v = br_map_get(g->rows, br_text_z(wide));
    if (!v)
        v = br_map_get(g->rows, br_text_z(to));
    row = v ? v->p : NULL;
    end = br_gcn_rows(g->isa->cpu, &n) + n;
    for (const br_gcn_row *r = row; r && r < end && r->op == row->op; r++)
        if (strcmp(r->name, row->name) == 0 && count(r) == n_op &&
            br_gcn_row_here(g->isa->cpu, r))
            return r;
    gm_fail(g, BR_E_UNSUPPORTED, "%s has no %s of %u operands",
            g->isa->cpu->name, to, n_op);
    return NULL;
}

unsigned
gm_width(const gm_fn *g, const gm_ins *i, unsigned n)
{
    const br_gcn_opnd *o = i->row->o;
    const br_gcn_kind *k;

    for (; o->kind != BR_GK_END; o++)
        if (gm_counts(o) && n-- == 0)
            break;
    k = &br_gcn_kinds[o->kind];
    if (k->how == &br_gcn_how_gaddr) { /* the scalar base is the last operand */
        const gm_op *s = &i->op[i->n_op - 1];

        return s->kind == GM_CODE && s->v == GM_NULL ? 2 : 1;
    }
    if (k->how == &br_gcn_how_saddr)
        return (unsigned)k->arg;
    return br_gcn_dwords(g->isa, k);
}

/* ---- operands as the row takes them ----------------------------------- */

static bool
is_inline(uint32_t v)
{
    static const uint32_t floats[] = {0x3f000000, 0xbf000000, 0x3f800000,
                                      0xbf800000, 0x40000000, 0xc0000000,
                                      0x40800000, 0xc0800000, 0x3e22f983};

    for (size_t k = 0; k < BR_COUNT(floats); k++)
        if (v == floats[k])
            return true;
    return v <= 64 || v >= (uint32_t)-16;
}

/* Whether it is a whole number that any width has inline. */
static bool
is_small(uint32_t v)
{
    return v <= 64 || v >= (uint32_t)-16;
}

static gm_op
copy(gm_fn *g, gm_op a, char file, unsigned words)
{
    gm_op t = gm_reg(gm_new(g, file, words), 0);

    for (unsigned w = 0; w < words; w++) {
        gm_op to = t, from = a;
        gm_ins *i;

        to.sub = (uint8_t)w;
        if (from.kind == GM_VREG)
            from.sub = (uint8_t)(from.sub + w);
        else if (from.kind == GM_IMM && w)
            from.v = (int32_t)a.v < 0 ? ~0u : 0;
        from.neg = from.abs = false;
        i = GM(g, file == 'V' ? "v_mov_b32" : "s_mov_b32", to, from);
        if (i)
            i->keep = w > 0;
    }
    t.neg = a.neg;
    t.abs = a.abs;
    return t;
}

typedef struct bus {
    uint32_t seen[3];
    unsigned n, most;
    bool lit;
    uint32_t lit_v;
} bus;

/* Whether a scalar or literal more may be read; then it is. */
static bool
bus_takes(bus *b, uint32_t what)
{
    for (unsigned k = 0; k < b->n; k++)
        if (b->seen[k] == what)
            return true;
    if (b->n == b->most)
        return false;
    b->seen[b->n++] = what;
    return true;
}

static bool
is_vop(const br_gcn_row *row)
{
    return row->fmt == BR_FMT_VOP3 || row->fmt == BR_FMT_VOP3SD ||
           row->fmt == BR_FMT_VOP3P;
}

/* What only a scalar may be, a mask or a carry, comes before what a vector may
 * be, too: v_cndmask_b32 of two scalars reads three. */
static void
bus_reserve(const gm_fn *g, const br_gcn_row *row, const gm_op *op, bus *b)
{
    unsigned k = 0;

    for (const br_gcn_opnd *o = row->o; o->kind != BR_GK_END; o++) {
        const br_gcn_kind *kind = &br_gcn_kinds[o->kind];

        if (!gm_counts(o))
            continue;
        if (kind->how == &br_gcn_how_reg && !gm_defines(row, o) &&
            !(kind->allow & BR_A_V) && op[k].kind == GM_VREG &&
            g->vregs.at[op[k].v].file == 'S')
            (void)bus_takes(b, op[k].v << 2 | op[k].sub);
        k++;
    }
}

static gm_op
legal(gm_fn *g, const br_gcn_row *row, const br_gcn_kind *k, gm_op a, bus *b)
{
    unsigned words = br_gcn_dwords(g->isa, k);
    bool vop = is_vop(row);
    char file = k->allow & BR_A_V ? 'V' : 'S';

    if (a.kind == GM_IMM) {
        bool pairs = row->fmt == BR_FMT_VOP3P;
        bool plain = k->style == BR_S_32 && words == 1 && !pairs;

        if ((k->allow & BR_A_CONST) && (plain ? is_inline : is_small)(a.v))
            return a;
        if (pairs || !(k->allow & BR_A_LIT) || !(k->allow & BR_A_CONST) ||
            words > 1 || (b->lit && b->lit_v != a.v) ||
            (vop && !bus_takes(b, 0x80000000)))
            return copy(g, a, file, words);
        b->lit = true;
        b->lit_v = a.v;
        return a;
    }
    if (a.kind == GM_CODE)
        return a;
    if (g->vregs.at[a.v].file == 'V') {
        br_assert((k->allow & BR_A_V) && "a scalar operation of scalars");
        return a;
    }
    if (!(k->allow & BR_A_S) || (vop && !bus_takes(b, a.v << 2 | a.sub))) {
        br_assert((k->allow & BR_A_V) && "two masks are not read at once");
        return copy(g, a, 'V', words);
    }
    return a;
}

gm_ins *
gm_emit(gm_fn *g, const char *name, const gm_op *op, unsigned n)
{
    const br_gcn_row *row = g->code == BR_OK ? gm_row(g, name, n) : NULL;
    gm_ins i = {.row = row, .n_op = (uint8_t)n, .target = GM_NO};
    gm_blk *to = &g->blks.at[g->node];
    bus b = {.most = 2};
    unsigned k = 0;

    i.line = g->line;
    if (!row)
        return NULL;
    if (row->flags & BR_RF_BUS1)
        b.most = 1;
    br_assert(n <= GM_MAX_OPS && "few operands");
    if (n)
        memcpy(i.op, op, n * sizeof *op);
    if (is_vop(row))
        bus_reserve(g, row, op, &b);
    for (const br_gcn_opnd *o = row->o; o->kind != BR_GK_END; o++) {
        const br_gcn_kind *kind = &br_gcn_kinds[o->kind];

        if (!gm_counts(o))
            continue;
        if (kind->how == &br_gcn_how_reg && !gm_defines(row, o))
            i.op[k] = legal(g, row, kind, op[k], &b);
        else if (kind->how == &br_gcn_how_gaddr && op[k].kind == GM_VREG &&
                 g->vregs.at[op[k].v].file == 'S')
            i.op[k] = copy(g, op[k], 'V', gm_width(g, &i, k));
        k++;
    }
    if (is_vop(row))
        i.mode = g->mode;
    if (g->code != BR_OK)
        return NULL;
    to = &g->blks.at[g->node];
    if (!br_vec_push(&to->ins, i)) {
        gm_oom(g);
        return NULL;
    }
    return &to->ins.at[to->ins.n - 1];
}

void
gm_set(gm_ins *i, br_gcn_field field, uint32_t v)
{
    if (!i)
        return;
    br_assert(i->n_set < GM_MAX_SETS && "few modifiers");
    i->set[i->n_set].field = (uint8_t)field;
    i->set[i->n_set++].v = v;
}

void
gm_goto(gm_fn *g, const char *name, uint32_t node)
{
    gm_ins *i = gm_emit(g, name, (gm_op[]){gm_imm(0)}, 1);

    if (!i)
        return;
    i->target = (int32_t)node;
    if (!br_vec_push(&g->blks.at[g->node].wave, node))
        gm_oom(g);
}
