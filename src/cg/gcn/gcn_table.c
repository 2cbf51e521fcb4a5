/* gcn_table.c - the tables of formats, rows and processors; fields in words.
 *
 * A field lives in one word of the encoding; those from `lit` on live in the
 * word that follows the format's own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/isa.h"

#include <string.h>

static const br_gcn_cpu cpus[] = {
#define CPU(name, gen, mach, minor5) {#name, gen, mach, minor5, false, 0, 0},
#include "cg/gcn/cpus.def"
#undef CPU
};
/* The same, as they are asked for by name-wmma. */
static const br_gcn_cpu with_wmma[] = {
#define CPU(name, gen, mach, minor5) {#name, gen, mach, minor5, true, 0, 0},
#include "cg/gcn/cpus.def"
#undef CPU
};

const br_gcn_cpu *
br_gcn_cpu_at(size_t i)
{
    return i < BR_COUNT(cpus) ? &cpus[i] : NULL;
}

const br_gcn_cpu *
br_gcn_cpu_find(const char *name)
{
    for (size_t k = 0; k < BR_COUNT(cpus); k++) {
        size_t n = strlen(cpus[k].name);

        if (strncmp(cpus[k].name, name, n) == 0 &&
            (!name[n] || strcmp(name + n, "-wmma") == 0 ||
             strcmp(name + n, "-wave64") == 0))
            return name[n] && name[n + 2] == 'm' ? &with_wmma[k] : &cpus[k];
    }
    return NULL;
}

const char *
br_gcn_trap_text(uint32_t m0)
{
    static const char *const texts[] = {
#define X(name, text) text,
#include "cg/gcn/traps.def"
#undef X
    };

    m0 -= BR_GCN_TRAPS;
    return m0 < BR_COUNT(texts) ? texts[m0] : "";
}

const br_gcn_format br_gcn_formats[BR_FMT_COUNT] = {
#define F(field, hi, lo) [BR_GF_##field] = {(hi) + 1, lo},
#define M(field, kind)   {BR_GF_##field, BR_GK_##kind},
#define FMT(gens, name, words, mask, value, hi, lo, fields, mods) \
    [BR_FMT_##name] = {#name, gens,     words,                    \
                       mask,  value,    (hi) + 1,                 \
                       lo,    {fields}, {mods{0, BR_GK_END}}},
#include "cg/gcn/formats.def"
#undef F
#undef M
#undef FMT
};

/* The word after the format's own. */
static const br_gcn_range ext_fields[BR_GF_COUNT] = {
    [BR_GF_lit] = {32, 0},    [BR_GF_xsrc] = {8, 0},
    [BR_GF_xctrl] = {17, 8},  [BR_GF_xfi] = {19, 18},
    [BR_GF_xbc] = {20, 19},   [BR_GF_xneg0] = {21, 20},
    [BR_GF_xabs0] = {22, 21}, [BR_GF_xneg1] = {23, 22},
    [BR_GF_xabs1] = {24, 23}, [BR_GF_xbank] = {28, 24},
    [BR_GF_xrow] = {32, 28},  [BR_GF_xlanes] = {32, 8},
};

static const br_gcn_row rows11[] = {
#define O(field, kind) {BR_GF_##field, BR_GK_##kind},
#define I(fmt, op, name, opnds, flags) \
    {BR_FMT_##fmt, op, flags, name, {opnds{0, BR_GK_END}}},
#define NEG      BR_RF_NEG
#define ABS      BR_RF_ABS
#define SEL      BR_RF_SEL
#define SELN     BR_RF_SELN
#define SELHI    BR_RF_SELHI
#define DNEG     BR_RF_DNEG
#define CLAMP    BR_RF_CLAMP
#define OMOD     BR_RF_OMOD
#define DPP8     BR_RF_DPP8
#define DPP16    BR_RF_DPP16
#define MINOR5   BR_RF_MINOR5
#define MIX      BR_RF_MIX
#define RTN      BR_RF_RTN
#define NORTN    BR_RF_NORTN
#define ALIAS    BR_RF_ALIAS
#define BUS1     BR_RF_BUS1
#define NOMODS   BR_RF_NOMODS
#define BYTESEL  BR_RF_BYTESEL
#define INDEXKEY BR_RF_INDEXKEY
#define DPPV     BR_RF_DPPV
#define IEXTRA   BR_RF_IEXTRA
#define IGRAD    BR_RF_IGRAD
#define IG16     BR_RF_IG16
#define ILOD     BR_RF_ILOD
#define INOXY    BR_RF_INOXY
#define IFOUR    BR_RF_IFOUR
#define IATOM    BR_RF_IATOM
#define IMSAA    BR_RF_IMSAA
#define INOD16   BR_RF_INOD16
#define IBVH     BR_RF_IBVH
#define IBVH64   BR_RF_IBVH64
#include "cg/gcn/isa_gfx11.def"
};

static const br_gcn_row rows12[] = {
#include "cg/gcn/isa_gfx12.def"
};

const br_gcn_row *
br_gcn_rows(const br_gcn_cpu *cpu, size_t *n)
{
    *n = cpu->gen == 11 ? BR_COUNT(rows11) : BR_COUNT(rows12);
    return cpu->gen == 11 ? rows11 : rows12;
}

bool
br_gcn_row_here(const br_gcn_cpu *cpu, const br_gcn_row *row)
{
    return cpu->minor5 || !(row->flags & BR_RF_MINOR5);
}

const br_gcn_row *
br_gcn_row_of(const br_gcn_cpu *cpu, br_gcn_fmt fmt, unsigned op)
{
    size_t n;
    const br_gcn_row *r = br_gcn_rows(cpu, &n), *end = r + n;
    unsigned key = (unsigned)fmt << 16 | op;

    while (n) {
        size_t half = n / 2;

        if (((unsigned)r[half].fmt << 16 | r[half].op) < key) {
            r += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return r < end && r->fmt == fmt && r->op == op ? r : NULL;
}

static br_gcn_range
range_of(const br_gcn_inst *in, br_gcn_field f)
{
    return f >= BR_GF_lit ? ext_fields[f] : br_gcn_formats[in->row->fmt].f[f];
}

unsigned
br_gcn_width(const br_gcn_inst *in, br_gcn_field f)
{
    br_gcn_range r = range_of(in, f);

    return (unsigned)(r.end - r.lo);
}

uint32_t
br_gcn_get(const br_gcn_inst *in, br_gcn_field f)
{
    br_gcn_range r = range_of(in, f);
    unsigned at = r.lo / 32 + (f >= BR_GF_lit ? in->words - 1u : 0);

    br_assert(r.end > r.lo && at < BR_GCN_MAX_WORDS && "a field of the format");
    return (uint32_t)((uint64_t)in->w[at] >> r.lo % 32 &
                      ((1ull << (r.end - r.lo)) - 1));
}

void
br_gcn_set(br_gcn_inst *in, br_gcn_field f, uint32_t v)
{
    br_gcn_range r = range_of(in, f);
    unsigned at = r.lo / 32 + (f >= BR_GF_lit ? in->words - 1u : 0);
    uint64_t mask = (1ull << (r.end - r.lo)) - 1;

    br_assert(r.end > r.lo && at < BR_GCN_MAX_WORDS && "a field of the format");
    br_assert(v <= mask && "the value fits its field");
    in->w[at] = (uint32_t)((in->w[at] & ~(mask << r.lo % 32)) |
                           (uint64_t)v << r.lo % 32);
}
