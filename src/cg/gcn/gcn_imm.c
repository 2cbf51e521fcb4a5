/* gcn_imm.c - operands that are no registers: literals, implied registers,
 * fixed fields, numbers and names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kinds.h"

#include <string.h>

/* ---- what is not printed ---------------------------------------------- */

static bool
fixed_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    return br_gcn_get(c->in, f) == (uint32_t)k->arg;
}

const br_gcn_how br_gcn_how_fixed = {fixed_legal, NULL, NULL, true};
const br_gcn_how br_gcn_how_hidden = {NULL, NULL, NULL, true};

static void
implied_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)f;
    br_gcn_put_code(c, k, (unsigned)k->arg);
}

static bool
implied_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)f;
    (void)k;
    return br_gcn_word(c, c->isa->wave64 ? "vcc" : "vcc_lo");
}

const br_gcn_how br_gcn_how_implied = {NULL, implied_print, implied_parse,
                                       false};

/* ---- the literal of fmaak and its like -------------------------------- */

static void
literal_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    int32_t v = (int32_t)br_gcn_get(c->in, f);

    if (k->arg && v >= -16 && v <= 64)
        br_str_printf(c->out, "%d", v);
    else
        br_str_printf(c->out, "0x%x", v);
}

static bool
literal_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    bool half = k->style == BR_S_F16;
    uint64_t bits = 0;
    int64_t v;
    double d;
    int what = br_gcn_number(c, &v, &d);

    (void)f;
    if (what == 2) {
        what = br_gcn_small_bits(k, d, &bits);
        v = (int64_t)bits;
    }
    return what && v >= (half ? -32768 : -2147483648ll) &&
           v <= (half ? 0xffff : 0xffffffffll) &&
           br_gcn_lit(c, (uint32_t)v & (half ? 0xffffu : ~0u));
}

static bool
literal_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    return k->style != BR_S_F16 || br_gcn_get(c->in, f) <= 0xffff;
}

const br_gcn_how br_gcn_how_literal = {literal_legal, literal_print,
                                       literal_parse, false};

/* ---- name:number, always there ---------------------------------------- */

static void
always_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    br_str_printf(c->out, " %s:%u", k->name, br_gcn_get(c->in, f));
}

static bool
always_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    int64_t v;

    if (!br_gcn_word(c, k->name) || !br_gcn_eat(c, ":") ||
        !br_gcn_int(c, 0, (1 << k->width) - 1, &v))
        return false;
    br_gcn_set(c->in, f, (uint32_t)v);
    return true;
}

const br_gcn_how br_gcn_how_always = {NULL, always_print, always_parse, true};

/* ---- rules that span operands ----------------------------------------- */

/* What parsed operands asked of modifiers that came after them. */
static bool
promises_kept(br_gcn_ctx *c)
{
    br_gcn_inst *in = c->in;

    if (c->buffer &&
        c->n_addr != br_gcn_get(in, BR_GF_idxen) + br_gcn_get(in, BR_GF_offen))
        return false;
    if (br_gcn_has(in, BR_GF_vaddr0)) {
        if (!br_gcn_image_kept(c))
            return false;
    } else if (br_gcn_has(in, BR_GF_tfe) &&
               c->extra_data != br_gcn_get(in, BR_GF_tfe))
        return false;
    return !br_gcn_has(in, BR_GF_scope) ||
           (br_gcn_get(in, BR_GF_scope) >= c->th_scope &&
            br_gcn_how_th.legal(c, BR_GF_th, NULL));
}

/* Atomics: the bit that asks for the old value goes with a destination. */
static bool
returns(const br_gcn_inst *in)
{
    bool bit = br_gcn_has(in, BR_GF_glc)  ? br_gcn_get(in, BR_GF_glc)
               : br_gcn_has(in, BR_GF_th) ? br_gcn_get(in, BR_GF_th) & 1
                                          : false;

    return in->row->flags & BR_RF_RTN     ? bit
           : in->row->flags & BR_RF_NORTN ? !bit
                                          : true;
}

/* Sources of a vector instruction that may be scalar: 9 bits wide. */
static bool
vector_source(const br_gcn_inst *in, br_gcn_field f)
{
    return (f == BR_GF_src0 || f == BR_GF_src1 || f == BR_GF_src2 ||
            f == BR_GF_srcx0 || f == BR_GF_srcy0) &&
           br_gcn_width(in, f) == 9;
}

/* A vector instruction reads at most two scalar values; a literal is one. */
static bool
bus_free(const br_gcn_isa *isa, const br_gcn_inst *in)
{
    uint32_t seen[3] = {0}, v, n = 0, k;
    unsigned most = in->row->flags & BR_RF_BUS1 ? 1 : 2;

    for (int half = 0; half < (in->row_y ? 2 : 1); half++) {
        const br_gcn_row *r = half ? in->row_y : in->row;

        for (const br_gcn_opnd *o = r->o; o->kind != BR_GK_END; o++) {
            const br_gcn_kind *kind = &br_gcn_kinds[o->kind];

            if (kind->how == &br_gcn_how_literal)
                v = 255;
            else if (o->field == BR_GF_none && kind->arg == 106)
                v = 106;
            else if (vector_source(in, (br_gcn_field)o->field))
                v = br_gcn_get(in, o->field);
            else
                continue;
            if (v >= 256 || v == 124 || (v >= 128 && v < 235) ||
                (v >= 240 && v <= 250))
                continue;
            if (v < 128 && o->field != BR_GF_none) /* s4 and s[4:5] are two */
                v |= br_gcn_dwords(isa, kind) << 16;
            for (k = 0; k < n && seen[k] != v; k++)
                ;
            if (k == n && n < 3)
                seen[n++] = v;
        }
    }
    return n <= most;
}

/* Vector registers that half of a dual instruction reads as source 0, 1, 2;
 * -1: none. Sources 2 are the destination of an accumulation and the last
 * operand of fmamk. */
static void
dual_sources(const br_gcn_inst *in, const br_gcn_row *row, bool y, int src[3])
{
    unsigned s0 = br_gcn_get(in, y ? BR_GF_srcy0 : BR_GF_srcx0);
    unsigned s1 = br_gcn_get(in, y ? BR_GF_vsrcy1 : BR_GF_vsrcx1);
    unsigned x = br_gcn_get(in, BR_GF_vdstx);

    src[0] = s0 >= 256 ? (int)s0 - 256 : -1;
    src[1] =
        strstr(row->name, "mov") || strstr(row->name, "fmamk") ? -1 : (int)s1;
    src[2] = strstr(row->name, "fmamk") ? (int)s1 : -1;
    if (strstr(row->name, "fmac") || strstr(row->name, "acc"))
        src[2] = y ? (int)(br_gcn_get(in, BR_GF_vdsty) * 2 + !(x & 1)) : (int)x;
}

/* Halves of a dual instruction read different banks: of four for sources 0
 * and 1, of two for source 2. On gfx12 the second of two moves reads as if its
 * source were source 2. */
static bool
banks_free(const br_gcn_isa *isa, const br_gcn_inst *in)
{
    int x[3], y[3];

    if (!in->row_y)
        return true;
    dual_sources(in, in->row, false, x);
    dual_sources(in, in->row_y, true, y);
    if (isa->cpu->gen > 11 && strstr(in->row->name, "mov") &&
        strstr(in->row_y->name, "mov"))
        return true;
    for (int k = 0; k < 3; k++)
        if (x[k] >= 0 && y[k] >= 0 && !((x[k] ^ y[k]) & (k < 2 ? 3 : 1)))
            return false;
    return true;
}

bool
br_gcn_together(br_gcn_ctx *c)
{
    if (!returns(c->in))
        c->apart = c->isa->cpu->gen == 11
                       ? "glc and a result go together"
                       : "th:TH_ATOMIC_RETURN and a result go together";
    else if (!bus_free(c->isa, c->in))
        c->apart = "more scalar values than an instruction of vectors reads";
    else if (!banks_free(c->isa, c->in))
        c->apart = "both halves read one bank of registers";
    else if (c->p && !promises_kept(c))
        c->apart = "operands and modifiers that do not go together";
    else
        return true;
    return false;
}
