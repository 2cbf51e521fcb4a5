/* gcn_short.c - vector instructions of eight bytes in the four that they need.
 *
 *   v_add_f32_e64 v1, v2, s3              ->  v_add_f32_e32 v1, s3, v2
 *   v_fma_f32     v1, v2, v3, v1          ->  v_fmac_f32_e32 v1, v2, v3
 *   v_fma_f32     v1, v2, v3, 0x40490fdb  ->  v_fmaak_f32 v1, v2, v3, 0x40490fdb
 *
 * The long form is what selection writes, for it takes every operand anywhere.
 * The short one has a vector register as its second source, VCC as its mask and
 * no modifiers; a wave fetches half as much.
 *
 * Requires  registers                     Changes   encodings, no meaning
 * Not       of 16 bits: there the short forms name halves of v0 to v127
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_code.h"

#include "base/map.h"
#include "cg/gcn/gcn_kinds.h"

#include <string.h>

enum { V0 = 256, LIT = 255, VCC = 106, NONE = 1 << 12, MAX_NAME = 48 };

static const char *const swaps[][2] = {
#define SWAP(from, to) {#from, #to},
#include "cg/gcn/short.def"
#undef SWAP
};

/* A long instruction, taken apart. */
typedef struct parts {
    char name[MAX_NAME]; /* without _e64 */
    unsigned s[3], dst, sdst;
    bool lit;
    uint32_t lit_v;
} parts;

static unsigned
field(const br_gcn_inst *in, br_gcn_field f)
{
    for (const br_gcn_opnd *o = in->row->o; o->kind != BR_GK_END; o++)
        if (o->field == f)
            return br_gcn_get(in, f);
    return NONE;
}

static bool
take_apart(const br_gcn_inst *in, parts *p)
{
    static const char end[] = "_e64";
    size_t n = strlen(in->row->name);

    if ((in->row->fmt != BR_FMT_VOP3 && in->row->fmt != BR_FMT_VOP3SD) ||
        gcn_is_modified(in) || n >= MAX_NAME || gcn_is(in, "v_cmpx"))
        return false;
    memcpy(p->name, in->row->name, n + 1);
    if (n > strlen(end) && strcmp(p->name + n - strlen(end), end) == 0)
        p->name[n - strlen(end)] = 0;
    p->s[0] = field(in, BR_GF_src0);
    p->s[1] = field(in, BR_GF_src1);
    p->s[2] = field(in, BR_GF_src2);
    p->dst = field(in, BR_GF_vdst);
    p->sdst = field(in, BR_GF_sdst);
    p->lit = in->ext == BR_EXT_LIT;
    p->lit_v = p->lit ? in->w[in->words - 1] : 0;
    return p->dst != NONE && p->s[0] != NONE;
}

/* ---- the short one ----------------------------------------------------- */

static bool
is_short(const br_gcn_row *r)
{
    if (r->fmt != BR_FMT_VOP1 && r->fmt != BR_FMT_VOP2 && r->fmt != BR_FMT_VOPC)
        return false;
    for (const br_gcn_opnd *o = r->o; o->kind != BR_GK_END; o++)
        if (br_gcn_kinds[o->kind].allow & (BR_A_LOW | BR_A_HALF))
            return false;
    return true;
}

static const br_gcn_row *
short_row(br_map *rows, const char *name)
{
    br_map_value *v = br_map_get(rows, br_text_z(name));

    return v ? v->p : NULL;
}

/* Sums of products: the accumulator is the result, or one operand a literal. */
static const char *
sum_of(parts *p)
{
    unsigned lits = (p->s[0] == LIT) + (p->s[1] == LIT) + (p->s[2] == LIT);

    if (strcmp(p->name, "v_fma_f32") != 0)
        return p->name;
    if (p->s[2] == V0 + p->dst) {
        p->s[2] = NONE;
        return "v_fmac_f32";
    }
    if (lits == 1 && p->s[2] == LIT) {
        p->s[2] = NONE;
        if (p->s[1] < V0) {
            unsigned t = p->s[0];

            p->s[0] = p->s[1];
            p->s[1] = t;
        }
        return "v_fmaak_f32";
    }
    if (lits == 1 && p->s[2] >= V0) {
        p->s[0] = p->s[0] == LIT ? p->s[1] : p->s[0];
        p->s[1] = p->s[2];
        p->s[2] = NONE;
        return "v_fmamk_f32";
    }
    return p->name;
}

/* Masks and carries that a short form does not name are VCC. */
static bool
masks_fit(const br_gcn_row *r, const parts *p)
{
    bool writes = r->fmt == BR_FMT_VOPC;

    if (writes && p->dst != VCC)
        return false;
    if (p->sdst != NONE && p->sdst != VCC)
        return false;
    return p->s[2] == NONE || p->s[2] == VCC;
}

/* Whether both name the same registers in the same way. */
static bool
same_uses(const br_gcn_isa *isa, const br_gcn_inst *a, const br_gcn_inst *b)
{
    gcn_use u[GCN_MAX_USES], v[GCN_MAX_USES];
    unsigned n = gcn_uses(isa, a, u), m = gcn_uses(isa, b, v), k, i;

    for (k = 0; k < n; k++) {
        for (i = 0; i < m; i++)
            if (u[k].code == v[i].code && u[k].words == v[i].words &&
                u[k].write == v[i].write)
                break;
        if (i == m)
            return false;
    }
    return true;
}

static bool
shorten(const gcn_code *c, br_map *rows, br_gcn_inst *in)
{
    parts p;
    const char *name;
    const br_gcn_row *r;
    br_gcn_inst to, back;

    if (!take_apart(in, &p))
        return false;
    name = sum_of(&p);
    for (size_t k = 0; p.s[1] < V0 && p.s[0] >= V0 && k < BR_COUNT(swaps); k++)
        if (strcmp(swaps[k][0], name) == 0) {
            unsigned t = p.s[0];

            p.s[0] = p.s[1];
            p.s[1] = t;
            name = swaps[k][1];
        }
    r = short_row(rows, name);
    if (!r || (p.s[1] != NONE && p.s[1] < V0) || !masks_fit(r, &p))
        return false;
    br_gcn_fresh(&to, r, NULL, p.lit ? BR_EXT_LIT : BR_EXT_NONE);
    if (r->fmt != BR_FMT_VOPC)
        br_gcn_set(&to, BR_GF_vdst, p.dst);
    br_gcn_set(&to, BR_GF_src0, p.s[0]);
    if (p.s[1] != NONE)
        br_gcn_set(&to, BR_GF_vsrc1, p.s[1] - V0);
    if (p.lit)
        br_gcn_set(&to, BR_GF_lit, p.lit_v);
    if (br_gcn_decode(c->isa, to.w, to.words, &back) != to.words ||
        back.row != r || !same_uses(c->isa, in, &to))
        return false;
    *in = to;
    return true;
}

/* Names of short rows, without _e32. */
static bool
short_rows(const br_gcn_isa *isa, br_map *rows)
{
    size_t n;
    const br_gcn_row *r = br_gcn_rows(isa->cpu, &n);

    for (size_t k = 0; k < n; k++) {
        br_text name = br_text_z(r[k].name);
        br_map_value *v;
        bool fresh;

        if (!is_short(&r[k]) || !br_gcn_row_here(isa->cpu, &r[k]) ||
            r[k].flags & BR_RF_ALIAS)
            continue;
        if (name.n > 4 && memcmp(name.p + name.n - 4, "_e32", 4) == 0)
            name.n -= 4;
        v = br_map_put(rows, name, &fresh);
        if (!v)
            return false;
        if (fresh)
            v->p = (void *)(uintptr_t)&r[k];
    }
    return true;
}

void
gcn_pass_short(gcn_code *c)
{
    br_map rows = {0};

    c->oom |= !short_rows(c->isa, &rows);
    for (size_t n = 0; n < c->n && !c->oom; n++)
        for (size_t k = 0; k < c->node[n].code.n; k++)
            (void)shorten(c, &rows, &c->node[n].code.at[k].in);
    br_map_fini(&rows);
}
