/* gcn_mods.c - modifiers of vector instructions: signs, op_sel, DPP.
 *
 * Signs are bits of neg and abs (VOP3), of neg and neg_hi (mixed precision),
 * or of the DPP word (VOP1, VOP2, VOPC). Which of them a row may set is in its
 * flags.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kinds.h"

bool
br_gcn_lit(br_gcn_ctx *c, uint32_t v)
{
    if (c->in->ext == BR_EXT_NONE) {
        if (c->in->words == BR_GCN_MAX_WORDS)
            return false;
        c->in->words++;
        c->in->ext = BR_EXT_LIT;
        c->lit_set = false;
    }
    if (c->in->ext != BR_EXT_LIT)
        return false;
    if (c->lit_set && br_gcn_get(c->in, BR_GF_lit) != v)
        return false;
    br_gcn_set(c->in, BR_GF_lit, v);
    c->lit_set = true;
    return true;
}

bool
br_gcn_dpp_checks(const br_gcn_ctx *c, br_gcn_field f)
{
    return f == BR_GF_src1 || (f == BR_GF_src2 && c->row->flags & BR_RF_DPPV &&
                               !(c->row->flags & BR_RF_MIX));
}

bool
br_gcn_dpp_src1(const br_gcn_ctx *c, unsigned code)
{
    return code >= 256 || (c->isa->cpu->minor5 && code != 255 &&
                           !(c->row->flags & BR_RF_DPPV));
}

static unsigned
source_of(br_gcn_field f)
{
    return f == BR_GF_src0                       ? 0
           : f == BR_GF_src1 || f == BR_GF_vsrc1 ? 1
           : f == BR_GF_src2                     ? 2
                                                 : 3;
}

/* Where the bit stands; false: this source has none. */
static bool
sign_bit(const br_gcn_ctx *c, br_gcn_field f, bool abs, br_gcn_field *where,
         unsigned *bit)
{
    uint64_t flags = c->row->flags;
    unsigned s = source_of(f);

    if (s == 3)
        return false;
    if (br_gcn_has(c->in, BR_GF_neg)) {
        if (c->row->fmt == BR_FMT_VOP3P && !(flags & BR_RF_MIX))
            return false;
        *where = !abs                          ? BR_GF_neg
                 : c->row->fmt == BR_FMT_VOP3P ? BR_GF_neg_hi
                                               : BR_GF_abs;
        *bit = s;
        return flags >> (abs ? 3 : 0) >> s & 1;
    }
    if (c->in->ext != BR_EXT_DPP16 || s > 1)
        return false;
    *where = s ? (abs ? BR_GF_xabs1 : BR_GF_xneg1)
               : (abs ? BR_GF_xabs0 : BR_GF_xneg0);
    *bit = 0;
    return flags >> 22 >> s & 1;
}

bool
br_gcn_mod_get(const br_gcn_ctx *c, br_gcn_field f, bool abs)
{
    br_gcn_field where;
    unsigned bit;

    return sign_bit(c, f, abs, &where, &bit) &&
           (br_gcn_get(c->in, where) >> bit & 1);
}

bool
br_gcn_sext(const br_gcn_ctx *c, br_gcn_field f)
{
    unsigned s = source_of(f);

    return s < 3 && br_gcn_has(c->in, BR_GF_abs) && c->row->flags >> s & 1 &&
           !(c->row->flags >> (3 + s) & 1);
}

bool
br_gcn_mod_set(br_gcn_ctx *c, br_gcn_field f, bool neg, bool abs)
{
    br_gcn_field where;
    unsigned bit;

    for (int k = 0; k < 2; k++) {
        if (!(k ? abs : neg))
            continue;
        if (!sign_bit(c, f, k, &where, &bit))
            return false;
        br_gcn_set(c->in, where, br_gcn_get(c->in, where) | 1u << bit);
    }
    return true;
}

static bool
within(br_gcn_ctx *c, br_gcn_field f, uint64_t mask)
{
    return (br_gcn_get(c->in, f) & ~mask) == 0;
}

static bool
neg_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    return within(c, f, c->row->flags & 7);
}

static bool
abs_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    return within(c, f, c->row->flags >> 3 & 7);
}

const br_gcn_how br_gcn_how_neg = {neg_legal, NULL, NULL, true};
const br_gcn_how br_gcn_how_abs = {abs_legal, NULL, NULL, true};

/* ---- lists of bits: name:[1,0,1] -------------------------------------- */

static void
list_print(br_gcn_ctx *c, const char *name, uint32_t v, unsigned n)
{
    br_str_printf(c->out, " %s:[", name);
    for (unsigned k = 0; k < n; k++)
        br_str_printf(c->out, "%s%u", k ? "," : "", v >> k & 1);
    br_str_putc(c->out, ']');
}

static bool
list_parse(br_gcn_ctx *c, const char *name, uint32_t *v, unsigned n)
{
    int64_t b;

    if (!br_gcn_word(c, name) || !br_gcn_eat(c, ":") || !br_gcn_eat(c, "["))
        return false;
    *v = 0;
    for (unsigned k = 0; k < n; k++) {
        if ((k && !br_gcn_eat(c, ",")) || !br_gcn_int(c, 0, 1, &b))
            return false;
        *v |= (uint32_t)b << k;
    }
    return br_gcn_eat(c, "]");
}

/* Sources of the row that can have a bit in a list. */
static unsigned
n_sources(const br_gcn_row *r)
{
    unsigned n = 0;

    for (const br_gcn_opnd *o = r->o; o->kind != BR_GK_END; o++)
        if (o->field == BR_GF_src0 || o->field == BR_GF_src1 ||
            o->field == BR_GF_src2)
            n++;
    return n;
}

/* op_sel of VOP3: a bit a source, then bit 3 for the destination. Rows whose
 * list is shorter or longer say so (SELN). */
static unsigned
sel_entries(const br_gcn_row *r)
{
    unsigned n = (unsigned)(r->flags >> 24 & 7);

    return n ? n : n_sources(r) + (r->flags & BR_RF_SEL(8) ? 1 : 0);
}

static uint32_t
sel_pack(const br_gcn_row *r, uint32_t v, bool in)
{
    unsigned n = sel_entries(r);
    uint32_t low = v & ((1u << (n - 1)) - 1);

    if (!(r->flags & BR_RF_SEL(8)) || r->fmt == BR_FMT_VOP3P)
        return v;
    return in ? low | (v >> (n - 1) & 1) << 3 : low | (v >> 3 & 1) << (n - 1);
}

/* Rows whose op_sel is one number: byte_sel has its two bits swapped where
 * they are those of the source, index_key has them as they are. */
static const char *
sel_name(const br_gcn_row *r)
{
    return r->flags & BR_RF_BYTESEL    ? "byte_sel"
           : r->flags & BR_RF_INDEXKEY ? "index_key"
                                       : NULL;
}

static uint32_t
sel_number(const br_gcn_row *r, uint32_t v)
{
    if (r->flags & BR_RF_INDEXKEY)
        return v;
    return r->flags & BR_RF_SEL(8) ? v >> 2 : v >> 1 | (v & 1) << 1;
}

static bool
opsel_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    return within(c, f, c->row->flags >> 6 & 15);
}

static void
opsel_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f);

    (void)k;
    if (v && sel_name(c->row))
        br_str_printf(c->out, " %s:%u", sel_name(c->row),
                      sel_number(c->row, v));
    else if (v)
        list_print(c, "op_sel", sel_pack(c->row, v, false),
                   sel_entries(c->row));
}

static bool
opsel_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v, allowed = c->row->flags >> 6 & 15;
    int64_t n;

    (void)k;
    if (sel_name(c->row)) {
        if (!br_gcn_word(c, sel_name(c->row)) || !br_gcn_eat(c, ":") ||
            !br_gcn_int(c, 0, 3, &n))
            return false;
        for (v = 0; v < 16 && (v & ~allowed || sel_number(c->row, v) != n);)
            v++;
        if (v == 16)
            return false;
        br_gcn_set(c->in, f, v);
        return true;
    }
    if (!allowed || !list_parse(c, "op_sel", &v, sel_entries(c->row)))
        return false;
    v = sel_pack(c->row, v, true);
    br_gcn_set(c->in, f, v);
    return !(v & ~allowed);
}

const br_gcn_how br_gcn_how_opsel = {opsel_legal, opsel_print, opsel_parse,
                                     true};

static void
psel_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    opsel_print(c, f, k);
}

static bool
psel_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    return within(c, f, c->row->flags >> 6 & 7);
}

const br_gcn_how br_gcn_how_psel = {psel_legal, psel_print, opsel_parse, true};

/* op_sel_hi is all ones where nothing is said, but for mixed precision. */
static uint32_t
hi_default(const br_gcn_row *r)
{
    return r->flags & BR_RF_MIX ? 0 : 7;
}

static uint32_t
hi_get(const br_gcn_inst *in)
{
    return br_gcn_get(in, BR_GF_opsel_hi) | br_gcn_get(in, BR_GF_opsel_hi2)
                                                << 2;
}

static bool
pselhi_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t allowed = c->row->flags >> 10 & 7;

    (void)f;
    (void)k;
    return ((hi_get(c->in) ^ hi_default(c->row)) & ~allowed) == 0;
}

static void
pselhi_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = hi_get(c->in), mask = (1u << n_sources(c->row)) - 1;

    (void)f;
    (void)k;
    if ((v ^ hi_default(c->row)) & mask)
        list_print(c, "op_sel_hi", v, n_sources(c->row));
}

static bool
pselhi_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v, n = n_sources(c->row), all = (1u << n) - 1;

    (void)k;
    if (!(c->row->flags >> 10 & 7) || !list_parse(c, "op_sel_hi", &v, n))
        return false;
    v |= hi_default(c->row) & ~all;
    br_gcn_set(c->in, f, v & 3);
    br_gcn_set(c->in, BR_GF_opsel_hi2, v >> 2);
    return true;
}

const br_gcn_how br_gcn_how_pselhi = {pselhi_legal, pselhi_print, pselhi_parse,
                                      true};

static void
pneg_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f);

    (void)k;
    if (v && !(c->row->flags & BR_RF_MIX))
        list_print(c, f == BR_GF_neg ? "neg_lo" : "neg_hi", v,
                   n_sources(c->row));
}

static bool
pneg_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint64_t allowed = c->row->flags >> (f == BR_GF_neg ? 0 : 3) & 7;
    uint32_t v;

    (void)k;
    if (!allowed || c->row->flags & BR_RF_MIX ||
        !list_parse(c, f == BR_GF_neg ? "neg_lo" : "neg_hi", &v,
                    n_sources(c->row)))
        return false;
    br_gcn_set(c->in, f, v);
    return !(v & ~allowed);
}

const br_gcn_how br_gcn_how_pneg = {neg_legal, pneg_print, pneg_parse, true};
const br_gcn_how br_gcn_how_pneghi = {abs_legal, pneg_print, pneg_parse, true};

/* ---- clamp, output multiplier ----------------------------------------- */

static bool
clamp_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    return within(c, f, c->row->flags & BR_RF_CLAMP ? 1 : 0);
}

static void
clamp_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    if (br_gcn_get(c->in, f))
        br_str_puts(c->out, " clamp");
}

static bool
clamp_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    if (!(c->row->flags & BR_RF_CLAMP) || !br_gcn_word(c, "clamp"))
        return false;
    br_gcn_set(c->in, f, 1);
    return true;
}

const br_gcn_how br_gcn_how_clamp = {clamp_legal, clamp_print, clamp_parse,
                                     true};

static const char *const omods[4] = {"", "mul:2", "mul:4", "div:2"};

static bool
omod_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    return within(c, f, c->row->flags & BR_RF_OMOD ? 3 : 0);
}

static void
omod_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v = br_gcn_get(c->in, f);

    (void)k;
    if (v)
        br_str_printf(c->out, " %s", omods[v]);
}

static bool
omod_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    (void)k;
    if (c->row->flags & BR_RF_OMOD)
        for (unsigned v = 1; v < 4; v++)
            if (br_gcn_word(c, omods[v])) {
                br_gcn_set(c->in, f, v);
                return true;
            }
    return false;
}

const br_gcn_how br_gcn_how_omod = {omod_legal, omod_print, omod_parse, true};
