/* gcn_reg.c - operands that are registers or constants, both ways.
 *
 * Source codes of all generations here:
 *     0-105 s0..s105   106 vcc   108-123 ttmp0..15   124 null  125 m0  126 exec
 *     128-192 0..64    193-208 -1..-16   235-238, 253 special registers
 *     240-248 0.5 -0.5 1 -1 2 -2 4 -4 1/(2 pi)   255 literal   256- v0..v255
 * A field of 8 bits or less that holds a vector register has its number; one
 * of 6 or 5 bits that holds scalars has it divided by 2 or 4.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_kinds.h"

#include "base/bits.h"

#include <stdlib.h>
#include <string.h>

enum {
    SRC_VCC = 106,
    SRC_TTMP = 108,
    SRC_NULL = 124,
    SRC_M0 = 125,
    SRC_EXEC = 126,
    SRC_ZERO = 128,
    SRC_NEG1 = 193,
    SRC_FLOAT = 240,
    SRC_SCC = 253,
    SRC_LIT = 255,
    SRC_V0 = 256,
    N_FLOAT = 9, /* 1/(2 pi) is the last */
};

static const struct {
    uint16_t code;
    const char *name;
} specials[] = {
    {235, "src_shared_base"},  {236, "src_shared_limit"},
    {237, "src_private_base"}, {238, "src_private_limit"},
    {SRC_SCC, "src_scc"},
};

static const struct {
    const char *text;
    double value;
    uint32_t f32;
    uint16_t f16;
    uint64_t f64;
} floats[N_FLOAT] = {
    {"0.5", 0.5, 0x3f000000, 0x3800, 0x3fe0000000000000},
    {"-0.5", -0.5, 0xbf000000, 0xb800, 0xbfe0000000000000},
    {"1.0", 1, 0x3f800000, 0x3c00, 0x3ff0000000000000},
    {"-1.0", -1, 0xbf800000, 0xbc00, 0xbff0000000000000},
    {"2.0", 2, 0x40000000, 0x4000, 0x4000000000000000},
    {"-2.0", -2, 0xc0000000, 0xc000, 0xc000000000000000},
    {"4.0", 4, 0x40800000, 0x4400, 0x4010000000000000},
    {"-4.0", -4, 0xc0800000, 0xc400, 0xc010000000000000},
    {"0.15915494", 0.15915494309, 0x3e22f983, 0x3118, 0x3fc45f306dc9c882},
};

/* 16 bits that are all there is, or both halves of 32. */
static bool
is_half(const br_gcn_kind *k)
{
    return k->style == BR_S_F16 || k->style == BR_S_I16 || k->style == BR_S_B16;
}

unsigned
br_gcn_dwords(const br_gcn_isa *isa, const br_gcn_kind *k)
{
    unsigned n = k->width ? k->width : br_gcn_mask_words(isa);

    return k->arg == BR_GCN_SPREAD && isa->wave64 && n > 1 ? n / 2 : n;
}

/* The source code of a field's value: scaled fields and plain vector fields
 * are brought to the numbers above. */
static unsigned
code_of(const br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k, uint32_t v)
{
    unsigned bits = br_gcn_width(c->in, f);

    if (k->allow == BR_A_V || (k->allow & ~(BR_A_LOW | BR_A_HALF)) == BR_A_V)
        return bits == 9 ? v : v + SRC_V0;
    return bits == 6 ? v * 2 : bits == 5 ? v * 4 : v;
}

static unsigned
align_of(const br_gcn_ctx *c, const br_gcn_kind *k)
{
    unsigned n = br_gcn_dwords(c->isa, k);

    return k->arg ? (unsigned)k->arg : n == 1 ? 1 : n == 2 ? 2 : 4;
}

static bool
legal_scalar(const br_gcn_ctx *c, const br_gcn_kind *k, unsigned code)
{
    unsigned n = br_gcn_dwords(c->isa, k), lo, end;

    if (code == SRC_NULL)
        return k->allow & BR_A_NULL;
    if (code == SRC_M0)
        return k->allow & BR_A_M0 && n == 1;
    if (code >= SRC_EXEC)
        return k->allow & BR_A_EXEC && n <= 2 && code + n <= SRC_ZERO;
    if (!(k->allow & BR_A_S))
        return false;
    if (code == SRC_VCC || code == SRC_VCC + 1)
        return n <= 2 && code + n <= SRC_TTMP;
    lo = code >= SRC_TTMP ? SRC_TTMP : 0;
    end = code >= SRC_TTMP ? SRC_NULL : SRC_VCC;
    return (code - lo) % align_of(c, k) == 0 && code + n <= end &&
           !(n == 3 && lo); /* three trap registers have no name */
}

static bool
legal_code(const br_gcn_ctx *c, const br_gcn_kind *k, unsigned code)
{
    unsigned v = code - SRC_V0;

    if (code >= SRC_V0)
        return k->allow & BR_A_V && v + br_gcn_dwords(c->isa, k) <=
                                        (k->allow & BR_A_LOW ? 128u : 256u);
    if (code < SRC_ZERO)
        return legal_scalar(c, k, code);
    if (code <= 208 || (code >= SRC_FLOAT && code < SRC_FLOAT + N_FLOAT))
        return k->allow & BR_A_CONST;
    if (code == SRC_LIT)
        return k->allow & BR_A_LIT && c->in->ext == BR_EXT_LIT;
    if (k->allow & BR_A_SPEC)
        for (size_t i = 0; i < BR_COUNT(specials); i++)
            if (specials[i].code == code)
                return code != SRC_SCC || !(k->allow & BR_A_NOSCC);
    return false;
}

/* src0 of a DPP instruction stands in the word behind. */
static br_gcn_field
field_of(const br_gcn_ctx *c, br_gcn_field f)
{
    bool dpp = c->in->ext == BR_EXT_DPP8 || c->in->ext == BR_EXT_DPP16;

    return dpp && f == BR_GF_src0 ? BR_GF_xsrc : f;
}

static bool
reg_legal(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    uint32_t v;

    if (field_of(c, f) == BR_GF_xsrc)
        return !(k->allow & BR_A_LOW) || br_gcn_get(c->in, BR_GF_xsrc) < 128;
    v = br_gcn_get(c->in, f);
    if (f == BR_GF_vdsty)
        v = v * 2 + !(br_gcn_get(c->in, BR_GF_vdstx) & 1);
    if ((c->in->ext == BR_EXT_DPP8 || c->in->ext == BR_EXT_DPP16) &&
        br_gcn_dpp_checks(c, f) && !br_gcn_dpp_src1(c, code_of(c, f, k, v)))
        return false;
    v = code_of(c, f, k, v);
    if (v == SRC_LIT && k->style == BR_S_F64 &&
        (br_gcn_mod_get(c, f, false) || br_gcn_mod_get(c, f, true)))
        return false; /* has no text */
    if (v == SRC_LIT && is_half(k) && br_gcn_get(c->in, BR_GF_lit) > 0xffff)
        return false; /* the text has the lower half alone */
    /* Prints as an integer, which reads back as a literal. */
    if (k->style == BR_S_I16 && v >= SRC_FLOAT && v < SRC_FLOAT + N_FLOAT)
        return false;
    return legal_code(c, k, v);
}

/* ---- printing --------------------------------------------------------- */

static void
put_range(br_str *o, const char *name, unsigned at, unsigned n)
{
    if (n == 1)
        br_str_printf(o, "%s%u", name, at);
    else
        br_str_printf(o, "%s[%u:%u]", name, at, at + n - 1);
}

static void
put_pair(br_str *o, const char *name, unsigned half, unsigned n)
{
    br_str_puts(o, name);
    if (n == 1)
        br_str_puts(o, half ? "_hi" : "_lo");
}

/* Of a constant that is a float. */
static uint64_t
bits_of(const br_gcn_kind *k, unsigned i)
{
    switch (k->style) {
    case BR_S_32: return floats[i].f32;
    case BR_S_B16:
    case BR_S_B2: return floats[i].f32 >> 16;
    case BR_S_F16:
    case BR_S_I16:
    case BR_S_H2: return floats[i].f16;
    default: return floats[i].f64;
    }
}

/* The code of an inline constant with these bits, or SRC_LIT. */
static unsigned
inline_of(const br_gcn_kind *k, int64_t v)
{
    if (v >= 0 && v <= 64)
        return SRC_ZERO + (unsigned)v;
    if (v < 0 && v >= -16)
        return SRC_NEG1 + (unsigned)(-v - 1);
    for (unsigned i = 0; i < N_FLOAT && k->style != BR_S_I16; i++)
        if ((k->style == BR_S_32 ? (uint32_t)v : (uint64_t)v) == bits_of(k, i))
            return SRC_FLOAT + i;
    return SRC_LIT;
}

/* The same of a literal of a double, which is its upper half. */
static unsigned
upper_half(uint32_t lit)
{
    if (!lit)
        return SRC_ZERO;
    for (unsigned i = 0; i < N_FLOAT; i++)
        if ((uint64_t)lit << 32 == floats[i].f64)
            return SRC_FLOAT + i;
    return SRC_LIT;
}

static void
put_const(const br_gcn_ctx *c, const br_gcn_kind *k, unsigned code)
{
    bool half = is_half(k);
    uint32_t lit = code == SRC_LIT ? br_gcn_get(c->in, BR_GF_lit) : 0;

    /* A literal that could have been inline prints as if it were. */
    if (code == SRC_LIT && half)
        code = inline_of(k, (int16_t)lit < 0 && (int16_t)lit >= -16
                                ? (int16_t)lit
                                : (int64_t)(lit & 0xffff));
    else if (code == SRC_LIT && k->style < BR_S_64)
        code = inline_of(k, (int32_t)lit);
    else if (code == SRC_LIT && k->style == BR_S_F64)
        code = upper_half(lit);
    else if (code == SRC_LIT)
        code = inline_of(k, lit);
    if (code == SRC_LIT) {
        br_str_printf(c->out, "0x%x", half ? lit & 0xffff : lit);
    } else if (code < SRC_NEG1) {
        br_str_printf(c->out, "%u", code - SRC_ZERO);
    } else if (code < SRC_FLOAT) {
        br_str_printf(c->out, "-%u", code - SRC_NEG1 + 1);
    } else if (k->style == BR_S_I16) {
        br_str_printf(c->out, "0x%x", floats[code - SRC_FLOAT].f16);
    } else {
        br_str_puts(c->out, floats[code - SRC_FLOAT].text);
        if (code == SRC_FLOAT + N_FLOAT - 1 && k->style >= BR_S_64)
            br_str_puts(c->out, "309189532");
    }
}

void
br_gcn_put_code(const br_gcn_ctx *c, const br_gcn_kind *k, unsigned code)
{
    unsigned n = br_gcn_dwords(c->isa, k);

    if (code >= SRC_V0) {
        put_range(c->out, "v",
                  (code - SRC_V0) & (k->allow & BR_A_HALF ? 127 : ~0u), n);
        if (k->allow & BR_A_HALF)
            br_str_puts(c->out, code - SRC_V0 >= 128 ? ".h" : ".l");
    } else if (code < SRC_VCC) {
        put_range(c->out, "s", code, n);
    } else if (code < SRC_TTMP) {
        put_pair(c->out, "vcc", code - SRC_VCC, n);
    } else if (code < SRC_NULL) {
        put_range(c->out, "ttmp", code - SRC_TTMP, n);
    } else if (code == SRC_NULL) {
        br_str_puts(c->out, "null");
    } else if (code == SRC_M0) {
        br_str_puts(c->out, "m0");
    } else if (code < SRC_ZERO) {
        put_pair(c->out, "exec", code - SRC_EXEC, n);
    } else {
        for (size_t i = 0; i < BR_COUNT(specials); i++)
            if (specials[i].code == code) {
                br_str_puts(c->out, specials[i].name);
                return;
            }
        put_const(c, k, code);
    }
}

static void
reg_print(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    bool neg = br_gcn_mod_get(c, f, false), abs = br_gcn_mod_get(c, f, true);
    unsigned code;
    bool word;

    if (field_of(c, f) == BR_GF_xsrc)
        code = SRC_V0 + br_gcn_get(c->in, BR_GF_xsrc);
    else if (f == BR_GF_vdsty)
        code = SRC_V0 + br_gcn_get(c->in, f) * 2 +
               !(br_gcn_get(c->in, BR_GF_vdstx) & 1);
    else
        code = code_of(c, f, k, br_gcn_get(c->in, f));
    word = neg && !abs && code >= SRC_ZERO && code < SRC_V0 &&
           (code <= 208 || code >= SRC_FLOAT) && code != SRC_SCC;
    if (neg && br_gcn_sext(c, f)) {
        br_str_puts(c->out, "sext(");
        br_gcn_put_code(c, k, code);
        br_str_putc(c->out, ')');
        return;
    }
    br_str_puts(c->out, word ? "neg(" : neg ? "-" : "");
    br_str_puts(c->out, abs ? "|" : "");
    br_gcn_put_code(c, k, code);
    br_str_puts(c->out, abs ? "|" : "");
    br_str_puts(c->out, word ? ")" : "");
}

/* ---- parsing ---------------------------------------------------------- */

static bool
digit(const br_gcn_ctx *c, const char *p)
{
    return p < c->end && *p >= '0' && *p <= '9';
}

/* A register number of at most three digits. */
static bool
number(br_gcn_ctx *c, unsigned *v)
{
    unsigned n = 0;

    for (*v = 0; digit(c, c->p) && n < 3; n++)
        *v = *v * 10 + (unsigned)(*c->p++ - '0');
    return n > 0 && !digit(c, c->p);
}

/* Of numbers, as macros make them: 8+1. */
static bool
sum(br_gcn_ctx *c, unsigned *v)
{
    unsigned w;

    if (!number(c, v))
        return false;
    while (br_gcn_eat(c, "+")) {
        if (!number(c, &w))
            return false;
        *v += w;
    }
    return true;
}

/* After the letters: "5" or "[4:5]" or "[4]". */
static bool
range(br_gcn_ctx *c, unsigned *at, unsigned *n)
{
    unsigned last;

    *n = 1;
    if (!br_gcn_eat(c, "["))
        return number(c, at);
    if (!sum(c, at))
        return false;
    last = *at;
    if (br_gcn_eat(c, ":") && !sum(c, &last))
        return false;
    if (!br_gcn_eat(c, "]") || last < *at)
        return false;
    *n = last - *at + 1;
    return true;
}

/* Halves of vcc and exec, and what has no number. */
static bool
named(br_gcn_ctx *c, unsigned *code, unsigned *n)
{
    static const struct {
        const char *name;
        uint16_t code, n;
    } names[] = {
        {"vcc_lo", SRC_VCC, 1},
        {"vcc_hi", SRC_VCC + 1, 1},
        {"vcc", SRC_VCC, 2},
        {"exec_lo", SRC_EXEC, 1},
        {"exec_hi", SRC_EXEC + 1, 1},
        {"exec", SRC_EXEC, 2},
        {"m0", SRC_M0, 1},
        {"null", SRC_NULL, 0},
    };

    for (size_t i = 0; i < BR_COUNT(names); i++)
        if (br_gcn_word(c, names[i].name)) {
            *code = names[i].code;
            *n = names[i].n;
            return true;
        }
    for (size_t i = 0; i < BR_COUNT(specials); i++)
        if (br_gcn_word(c, specials[i].name)) {
            *code = specials[i].code;
            *n = 0;
            return true;
        }
    return false;
}

/* A register; n: its dwords, 0 for those of any size. */
static bool
reg_name(br_gcn_ctx *c, const br_gcn_kind *k, unsigned *code, unsigned *n)
{
    const char *p = c->p;
    unsigned at;

    if (named(c, code, n))
        return true;
    if (br_gcn_eat(c, "v") && range(c, &at, n)) {
        if (at + *n > 256)
            return false;
        *code = SRC_V0 + at;
        if (!(k->allow & BR_A_HALF))
            return true;
        if (at >= 128)
            return false;
        if (br_gcn_eat(c, ".h"))
            *code += 128;
        else if (!br_gcn_eat(c, ".l"))
            return false;
        return true;
    }
    c->p = p;
    if (br_gcn_eat(c, "ttmp") && range(c, &at, n)) {
        *code = SRC_TTMP + at;
        return at + *n <= 16;
    }
    c->p = p;
    if (br_gcn_eat(c, "s") && range(c, &at, n)) {
        *code = at;
        return at + *n <= 106;
    }
    c->p = p;
    return false;
}

static bool
literal(br_gcn_ctx *c, uint32_t v)
{
    return br_gcn_lit(c, v);
}

/* An integer as a source: inline where it can be, else a literal. */
static bool
int_const(br_gcn_ctx *c, const br_gcn_kind *k, int64_t v, unsigned *code)
{
    bool half = is_half(k);
    int64_t lo = half ? -32768 : -2147483648ll,
            hi = half ? 65535 : 0xffffffffll;

    if (v < lo)
        return false;
    if (!half && k->style < BR_S_64 && v > 0x7fffffff && v <= 0xffffffffll)
        v -= 1ll << 32;
    if (half && v > 0x7fff && v <= 0xffff)
        v -= 1 << 16;
    *code = inline_of(k, half && v < -16                  ? v & 0xffff
                         : k->style == BR_S_32 && v < -16 ? v & 0xffffffff
                                                          : v);
    if (*code == SRC_LIT && k->style == BR_S_F64 && v >= 0 && v <= hi)
        *code = upper_half((uint32_t)v);
    if (*code != SRC_LIT)
        return true;
    if (v > hi || !(k->allow & BR_A_LIT))
        return false;
    return literal(c, half ? (uint32_t)v & 0xffff : (uint32_t)v);
}

static bool
float_const(br_gcn_ctx *c, const br_gcn_kind *k, double v, unsigned *code)
{
    bool wide = k->style >= BR_S_64;
    uint64_t bits;

    if (wide)
        bits = br_gcn_f64_bits(v);
    else if (!br_gcn_small_bits(k, v, &bits))
        return false;
    *code = bits ? SRC_LIT : SRC_ZERO;
    for (unsigned i = 0; i < N_FLOAT; i++) /* bf16 has 1/(2 pi) cut off */
        if (bits == bits_of(k, i) ||
            (!wide && br_f32_bits((float)v) == floats[i].f32))
            *code = SRC_FLOAT + i;
    if (*code != SRC_LIT)
        return true;
    if (!(k->allow & BR_A_LIT) || k->style == BR_S_64 ||
        (wide && bits & 0xffffffff))
        return false; /* of 64 bits of an integer a literal is the lower half */
    return literal(c, (uint32_t)(wide ? bits >> 32 : bits));
}

static bool
constant(br_gcn_ctx *c, const br_gcn_kind *k, unsigned *code)
{
    int64_t v;
    double d;
    int what = br_gcn_number(c, &v, &d);

    if (!(k->allow & BR_A_CONST) || !what)
        return false;
    return what == 1 ? int_const(c, k, v, code) : float_const(c, k, d, code);
}

/* The register or constant itself, as a legal code of the kind. */
static bool
parse_code(br_gcn_ctx *c, const br_gcn_kind *k, unsigned *code)
{
    const char *p = c->p;
    unsigned n;

    if (reg_name(c, k, code, &n)) {
        if (n && n != br_gcn_dwords(c->isa, k))
            return false;
    } else {
        c->p = p;
        if (!constant(c, k, code))
            return false;
    }
    return *code == SRC_LIT || legal_code(c, k, *code);
}

static bool
store(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k, unsigned code)
{
    bool plain_v = (k->allow & ~(BR_A_LOW | BR_A_HALF)) == BR_A_V;
    unsigned bits = br_gcn_width(c->in, f);

    if (f == BR_GF_vdsty) {
        if ((code & 1) != !(br_gcn_get(c->in, BR_GF_vdstx) & 1))
            return false;
        code = (code - SRC_V0) / 2;
    } else if (plain_v && bits < 9) {
        code -= SRC_V0;
    } else if (bits == 6 || bits == 5) {
        if (code % (bits == 6 ? 2 : 4))
            return false;
        code /= bits == 6 ? 2 : 4;
    }
    if (bits < 32 && code >> bits)
        return false;
    br_gcn_set(c->in, f, code);
    return true;
}

static bool
reg_parse(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k)
{
    bool paren = false, abs = false, bar = false, neg, aparen = false;
    const char *p = c->p;
    unsigned code;

    br_gcn_space(c);
    neg = br_gcn_eat(c, br_gcn_sext(c, f) ? "sext(" : "neg(");
    paren = neg;
    if (!neg && c->p < c->end && *c->p == '-' && !digit(c, c->p + 1))
        neg = br_gcn_eat(c, "-");
    bar = br_gcn_eat(c, "|");
    aparen = !bar && br_gcn_eat(c, "abs(");
    abs = bar || aparen;
    if (!parse_code(c, k, &code) ||
        (code == SRC_LIT && k->style == BR_S_F64 && (neg || abs)))
        goto fail;
    if ((bar && !br_gcn_eat(c, "|")) || (aparen && !br_gcn_eat(c, ")")) ||
        (paren && !br_gcn_eat(c, ")")))
        goto fail;
    if (!br_gcn_mod_set(c, f, neg, abs))
        goto fail;
    if (field_of(c, f) == BR_GF_xsrc) {
        if (code < SRC_V0)
            goto fail;
        br_gcn_set(c->in, BR_GF_xsrc, code - SRC_V0);
        return true;
    }
    if (br_gcn_dpp_checks(c, f) &&
        (c->in->ext == BR_EXT_DPP8 || c->in->ext == BR_EXT_DPP16) &&
        !br_gcn_dpp_src1(c, code))
        goto fail;
    if (store(c, f, k, code))
        return true;
fail:
    c->p = p;
    return false;
}

const br_gcn_how br_gcn_how_reg = {reg_legal, reg_print, reg_parse, false};
