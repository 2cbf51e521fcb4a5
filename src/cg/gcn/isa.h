/* isa.h - what the files of cg/gcn share: tables and access to fields.
 *
 * A field is a bit range of a format. An operand is a field read as a kind:
 * O(src0, a1) is the field src0 holding one dword of anything. Kinds print
 * and parse themselves; rows only list them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GCN_ISA_H
#define BR_GCN_ISA_H

#include "cg/gcn/gcn.h"

typedef enum br_gcn_field {
#define FIELD(name) BR_GF_##name,
#include "cg/gcn/fields.def"
#undef FIELD
    BR_GF_COUNT
} br_gcn_field;

typedef enum br_gcn_fmt {
#define FMT(gens, name, ...) BR_FMT_##name,
#include "cg/gcn/formats.def"
#undef FMT
    BR_FMT_COUNT
} br_gcn_fmt;

typedef enum br_gcn_kindid {
    BR_GK_END,
#define KIND(name, width, allow, style, arg, how)        BR_GK_##name,
#define KIND_(name, text, width, allow, style, arg, how) BR_GK_##name,
#include "cg/gcn/kinds.def"
#undef KIND
#undef KIND_
    BR_GK_COUNT
} br_gcn_kindid;

/* What the last word is. */
typedef enum br_gcn_ext {
    BR_EXT_NONE,
    BR_EXT_LIT,
    BR_EXT_DPP8,
    BR_EXT_DPP16
} br_gcn_ext;

typedef struct br_gcn_opnd {
    uint8_t field, kind;
} br_gcn_opnd;

enum { BR_GCN_MAX_OPNDS = 13, BR_GCN_MAX_MODS = 18 };

typedef struct br_gcn_row {
    uint8_t fmt;
    uint16_t op;
    uint64_t flags;
    const char *name;                /* as it is printed, with _e32 or _e64 */
    br_gcn_opnd o[BR_GCN_MAX_OPNDS]; /* ended by BR_GK_END */
} br_gcn_row;

/* ---- flags of rows: what the modifier bits may be --------------------- */

#define BR_RF_NEG(m)    ((uint64_t)(m))       /* sources that may be negated */
#define BR_RF_ABS(m)    ((uint64_t)(m) << 3)  /* ... made absolute; neg_hi */
#define BR_RF_SEL(m)    ((uint64_t)(m) << 6)  /* bits of op_sel */
#define BR_RF_SELHI(m)  ((uint64_t)(m) << 10) /* bits of op_sel_hi */
#define BR_RF_CLAMP     (1ull << 13)
#define BR_RF_OMOD      (1ull << 14)
#define BR_RF_DPP8      (1ull << 15)
#define BR_RF_DPP16     (1ull << 16)
#define BR_RF_MINOR5    (1ull << 17) /* not on gfx110x */
#define BR_RF_MIX       (1ull << 18) /* VOP3P whose neg_hi is abs */
#define BR_RF_RTN       (1ull << 19) /* atomic that returns the old value */
#define BR_RF_NORTN     (1ull << 20) /* its sister that does not */
#define BR_RF_ALIAS     (1ull << 21) /* read as text, never printed */
#define BR_RF_DNEG(m)   ((uint64_t)(m) << 22) /* sources negated under DPP */
#define BR_RF_BUS1      (1ull << 27) /* one scalar value less may be read */
#define BR_RF_NOMODS    (1ull << 28) /* none of its format's modifiers */
#define BR_RF_BYTESEL   (1ull << 29) /* op_sel is byte_sel:N */
#define BR_RF_INDEXKEY  (1ull << 30) /* op_sel is index_key:N */
#define BR_RF_DPPV      (1ull << 31) /* DPP with vector sources only */
/* Images: registers of bias, depth and offset; derivatives, maybe of 16 bits; a
 * level; no place in the image; data of four, whatever dmask says; an atomic;
 * samples; no data of 16 bits; rays. */
#define BR_RF_IEXTRA_AT 32
#define BR_RF_IEXTRA(n) ((uint64_t)(n) << BR_RF_IEXTRA_AT)
#define BR_RF_IGRAD     (1ull << 34)
#define BR_RF_IG16      (1ull << 35)
#define BR_RF_ILOD      (1ull << 36)
#define BR_RF_INOXY     (1ull << 37)
#define BR_RF_IFOUR     (1ull << 38)
#define BR_RF_IATOM     (1ull << 39)
#define BR_RF_IMSAA     (1ull << 40)
#define BR_RF_INOD16    (1ull << 41)
#define BR_RF_IBVH      (1ull << 42)
#define BR_RF_IBVH64    (1ull << 43)
#define BR_RF_SELN(n)   ((uint64_t)(n) << 24) /* entries of op_sel: (...) */

typedef struct br_gcn_kind {
    const char *name;
    uint8_t width;  /* dwords, or bits of an immediate */
    uint16_t allow; /* BR_A_* */
    uint8_t style;  /* BR_S_* */
    int16_t arg;
    const struct br_gcn_how *how;
} br_gcn_kind;

/* What a register operand may be. */
enum {
    BR_A_V = 1, /* vector register */
    BR_A_S = 2, /* s0-s105, vcc, ttmp */
    BR_A_NULL = 4,
    BR_A_M0 = 8,
    BR_A_EXEC = 16,
    BR_A_CONST = 32,  /* inline constant */
    BR_A_SPEC = 64,   /* src_shared_base ... src_scc */
    BR_A_LIT = 128,   /* 32-bit literal */
    BR_A_LOW = 256,   /* only v0-v127 */
    BR_A_HALF = 512,  /* v0.l and v0.h */
    BR_A_NOSCC = 1024 /* SPEC without src_scc */
};
/* arg of a vector register: lanes have parts of it, 64 have smaller ones. */
enum { BR_GCN_SPREAD = 64 };
/* How a constant of a register operand looks. H2, B2: of two halves (f16, bf16)
 * the lower one has it; the literal is both. */
enum {
    BR_S_32,
    BR_S_F16,
    BR_S_I16,
    BR_S_B16,
    BR_S_H2,
    BR_S_B2,
    BR_S_64,
    BR_S_F64,
    BR_S_W64
};

extern const br_gcn_kind br_gcn_kinds[BR_GK_COUNT];
/* Of a register, where waves have as many lanes. */
unsigned br_gcn_dwords(const br_gcn_isa *isa, const br_gcn_kind *k);

/* ---- fields ----------------------------------------------------------- */

typedef struct br_gcn_range {
    uint8_t end, lo; /* bits lo to end - 1; end 0: there is no such field */
} br_gcn_range;

typedef struct br_gcn_format {
    const char *name;
    uint8_t gens; /* bit 0: gfx11, bit 1: gfx12 */
    uint8_t words;
    uint32_t mask, value;  /* of the first word */
    uint8_t op_end, op_lo; /* op_end <= op_lo: one instruction only */
    br_gcn_range f[BR_GF_COUNT];
    br_gcn_opnd mods[BR_GCN_MAX_MODS];
} br_gcn_format;

extern const br_gcn_format br_gcn_formats[BR_FMT_COUNT];

bool br_gcn_has(const br_gcn_inst *in, br_gcn_field f);
unsigned br_gcn_width(const br_gcn_inst *in, br_gcn_field f); /* bits */
uint32_t br_gcn_get(const br_gcn_inst *in, br_gcn_field f);
/* v has to fit. */
void br_gcn_set(br_gcn_inst *in, br_gcn_field f, uint32_t v);

/* Rows of a processor, sorted by format and opcode. */
const br_gcn_row *br_gcn_rows(const br_gcn_cpu *cpu, size_t *n);
/* The first row of a format with this opcode, or NULL. */
const br_gcn_row *br_gcn_row_of(const br_gcn_cpu *cpu, br_gcn_fmt fmt,
                                unsigned op);
/* Rows that another generation has are no rows of this processor. */
bool br_gcn_row_here(const br_gcn_cpu *cpu, const br_gcn_row *row);

/* Walks a row's operands, then its format's modifiers; NULL begins and ends. */
const br_gcn_opnd *br_gcn_next(const br_gcn_row *row, const br_gcn_opnd *o);
/* A fresh instruction: all bits that no operand sets. */
void br_gcn_fresh(br_gcn_inst *in, const br_gcn_row *row,
                  const br_gcn_row *row_y, br_gcn_ext ext);

/* ---- kinds ------------------------------------------------------------ */

/* One direction at a time: printing reads in and appends to out; parsing reads
 * *p and writes fields of in. */
typedef struct br_gcn_ctx {
    const br_gcn_isa *isa;
    br_gcn_inst *in;
    const br_gcn_row *row; /* in->row, or in->row_y while its half is done */
    br_str *out;
    const char *p, *end;
    /* why operands, each of them right, are no instruction */
    const char *apart;
    bool lit_set; /* a literal was parsed; a second has to be the same */
    /* what a parsed operand asks of fields that come later */
    bool buffer;
    unsigned th_scope, n_addr, extra_data;
    unsigned image_data; /* registers */
    uint8_t image_n[5];  /* of each piece of an image's address */
} br_gcn_ctx;

typedef struct br_gcn_how {
    /* Whether the bits are legal; NULL: always. */
    bool (*legal)(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k);
    /* Appends to out; what appends nothing is no operand. */
    void (*print)(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k);
    /* False: not this. */
    bool (*parse)(br_gcn_ctx *c, br_gcn_field f, const br_gcn_kind *k);
    bool mod; /* a modifier: printed after the operands, in any order read */
} br_gcn_how;

#endif
