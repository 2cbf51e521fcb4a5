/* ptx_int.h - what the parts of the PTX front-end share.
 *
 *   text --lexer--> tokens --parser--> one function's instructions, as written
 *        --flow---> blocks, dominators, which registers need phis
 *        --lower--> KIR, each register renamed as it goes
 *
 * A PTX register is a variable. Most are written once, before every use: those
 * are values at once. The others get phis where paths join.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_PTX_INT_H
#define BR_PTX_INT_H

#include "cg/kir.h"
#include "cg/ptx/ptx.h"

typedef enum px_mod {
#define X(name, text) PM_##name,
#include "cg/ptx/ptx_mod.def"
#undef X
    PM_COUNT
} px_mod;

typedef enum px_flow {
    F_PURE,
    F_SIDE,
    F_BAR,
    F_JUMP,
    F_BRX,
    F_RET,
    F_EXIT
} px_flow;

typedef struct px_lower px_lower;
typedef struct px_ins px_ins;
typedef bool (*px_how)(px_lower *l, const px_ins *i);

typedef struct px_root {
    const char *name;
    px_how how;
    uint8_t dst, flow, kop;
    const char *mods;
} px_root;
extern const px_root px_roots[];

/* An opcode as written, looked up once for each spelling. */
typedef struct px_opcode {
    br_text text;
    const px_root *root; /* NULL: not known */
    uint64_t mods[3];    /* bit of px_mod */
    uint8_t types[4], n_types;
    br_text bad; /* the part that is not known; empty: all is */
} px_opcode;

typedef enum px_kind {
    O_REG,  /* a: register; neg; imm: 0, 1-4 byte 0-3, 5-6 half 0-1 of it */
    O_INT,  /* imm */
    O_F32,  /* imm: bits */
    O_F64,  /* imm: bits */
    O_SREG, /* a */
    O_VAR,  /* a: symbol; imm: plus; b: bits of the address that are left out */
    O_NAME, /* a: a name that is no register or variable: a label, mostly */
    O_VEC,  /* a: first, b: count of operands */
    O_LIST, /* the same in parentheses */
    O_MEM,  /* a: operand of the base (or BR_KNONE); imm: plus; neg: more */
    O_PAIR, /* d|p: a, b: operands */
    O_SINK  /* _ */
} px_kind;

typedef struct px_opnd {
    uint8_t kind;
    bool neg;
    uint32_t a, b;
    uint64_t imm;
} px_opnd;

struct px_ins {
    uint32_t opcode, line;
    uint32_t op; /* first operand */
    uint8_t n_op;
    bool guard_not;
    uint32_t guard; /* register or BR_KNONE */
};

typedef enum px_symkind {
    S_REG,   /* id: register */
    S_RANGE, /* %r<n>: id of the first, count */
    S_VREG,  /* .v2 .v4 .b128: id of the first, count */
    S_VAR,   /* id: variable of the module */
    S_FRAME, /* id: byte of the frame */
    S_PARAM, /* id: byte of a kernel's parameters */
    S_FN     /* id: function of the module */
} px_symkind;

typedef struct px_sym {
    br_text name;
    uint8_t kind;
    bool gone;   /* its braces are closed */
    uint8_t vec; /* S_RANGE: registers of each, side by side */
    uint32_t id, count, bytes;
    uint32_t hidden; /* symbol of the same name outside, or BR_KNONE */
} px_sym;

typedef struct px_label {
    br_text name;
    uint32_t ins, scope;
} px_label;

typedef struct px_name { /* a use of a name that was not known yet */
    br_text name;
    uint32_t scope;
} px_name;

typedef struct px_targets { /* L: .branchtargets A, B; */
    br_text name;
    uint32_t first, count; /* of px_parser.names */
} px_targets;

/* A parameter of a function that is a register: it is loaded from its place in
 * the frame at the start, or stored there before the end. */
typedef struct px_regparam {
    uint32_t reg, offset;
    bool result;
} px_regparam;

typedef struct px_parser {
    br_kir *m;
    const br_ptx_opts *opts;
    br_status *st;
    const char *p, *end;
    /* the token at hand */
    char tok; /* 'w' word, '"' string, 0 end, else the character */
    br_text word;
    uint32_t line, depth;
    bool lists; /* of a call: parentheses hold lists, not numbers */
    bool pairs; /* doubles are computed as pairs of floats (ptx_pairs.c) */
    /* symbols; the map holds the innermost of each name */
    br_map map, ranges, opcodes_by_text; /* %r<9> and %r are two names */
    BR_VEC(px_sym) syms;
    BR_VEC(px_opcode) opcodes;
    BR_VEC(uint32_t) outer; /* scope -> the one around it */
    uint32_t scope;
    /* the function at hand */
    uint32_t fn, cluster; /* blocks that a cluster has to have; 0: not said */
    BR_VEC(px_ins) ins;
    BR_VEC(px_opnd) ops;
    BR_VEC(uint8_t) regs; /* type of each */
    BR_VEC(px_label) labels;
    br_map label_names, label_at; /* name -> number; (number, scope) -> label */
    BR_VEC(px_name) names;
    BR_VEC(px_targets) targets;
    BR_VEC(px_regparam) regparams;
    /* initialisers that name symbols, looked up at the end */
    struct px_late *late;
    size_t n_late, cap_late;
} px_parser;

enum { REG_CC = 0 }; /* the carry flag is register 0 of every function */

/* ptx_lex.c */
br_code px_fail(px_parser *p, const char *fmt, ...) BR_PRINTF(2, 3);
br_code px_oom(px_parser *p);
br_code px_next(px_parser *p) BR_MUST_USE;
bool px_is(const px_parser *p, const char *word);
bool px_number(br_text t, px_opnd *out); /* a literal without its sign */

/* ptx_expr.c: constant expressions; the operand has a number's kind. */
bool px_is_number(const px_parser *p); /* a literal, without a sign */
br_code px_constant(px_parser *p, px_opnd *out) BR_MUST_USE;
/* "+ 4*2 - 8" behind a name or register, as much as there is, added to *sum. */
br_code px_sum(px_parser *p, uint64_t *sum) BR_MUST_USE;

/* ptx_op.c */
br_code px_opcode_of(px_parser *p, br_text text, uint32_t *out) BR_MUST_USE;
static inline bool
px_has(const px_opcode *o, px_mod m)
{
    return o->mods[m >> 6] >> (m & 63) & 1;
}
unsigned px_type(br_text t); /* br_ktype, or 0 */

/* ptx_sreg.c: what a special register's name is; not *is: it is none. */
br_code px_special(px_parser *p, br_text word, px_opnd *o,
                   bool *is) BR_MUST_USE;

/* ptx_parse.c */
px_sym *px_find(px_parser *p, br_text name);
br_code px_declare(px_parser *p, br_text name, px_symkind kind, uint32_t id,
                   uint32_t count, px_sym **out) BR_MUST_USE;
br_code px_expect(px_parser *p, char tok) BR_MUST_USE;

/* ptx_data.c: variables; the token is the space's word (.global ...) */
br_code px_variable(px_parser *p, unsigned linkage) BR_MUST_USE;
br_code px_late_symbols(px_parser *p) BR_MUST_USE;
/* Where the next bytes go, and how many: frames and parameter blocks. */
br_code px_place(px_parser *p, uint32_t *top, uint64_t bytes, uint32_t align,
                 uint32_t *at) BR_MUST_USE;
typedef struct px_decl {
    unsigned space, type; /* BR_KM_SPACE_, br_ktype */
    uint32_t align, vec;
    uint64_t bytes;
    br_text name;
    bool open; /* [] */
} px_decl;
br_code px_declaration(px_parser *p, px_decl *d) BR_MUST_USE;

/* ptx_flow.c, ptx_lower.c */
typedef enum px_end { E_FALL, E_JUMP, E_COND, E_SWITCH, E_RET, E_EXIT } px_end;
typedef struct px_blk {
    uint32_t first, n; /* instructions */
    uint8_t end;
    uint32_t to, next; /* blocks; E_COND: to where the guard holds */
    uint32_t guard;
    bool guard_not;
    uint32_t targets; /* E_SWITCH: of px_parser.targets; operand */
    uint32_t op;
    bool after_call; /* results of the call before it go into registers */
} px_blk;

struct px_lower {
    px_parser *p;
    br_kir *m;
    br_kfn *f;
    BR_VEC(px_blk) blks;
    uint32_t *rpo, *place, *idom, *kblk; /* kblk: block of KIR */
    uint32_t n_rpo;
    uint32_t n_multi;
    uint32_t *multi;  /* register -> number among those that need phis */
    uint32_t *reg_of; /* and back */
    uint32_t *single; /* register -> its value */
    uint64_t *live;   /* [block][multi / 64] live in */
    uint32_t *out;    /* [block][multi] value at the end */
    uint32_t *cur;    /* out of the block at hand */
    uint32_t blk;     /* of KIR, at hand */
    struct {          /* results of the call that ended the block */
        uint32_t reg, at;
    } ret[8];
    unsigned n_ret;
    bool in_pairs; /* ptx_pairs.c is at work */
    const px_ins *ins;
    const px_opcode *opc;
    const char *why; /* an instruction cannot be lowered */
    char why_buf[120];
};
br_code px_flow_build(px_lower *l) BR_MUST_USE; /* blocks, rpo, multi, live */
/* Calls fn(register, arg) for what an instruction writes, or reads. */
typedef void (*px_reg_fn)(px_lower *l, uint32_t reg, bool write, void *arg);
void px_each_reg(px_lower *l, const px_ins *i, px_reg_fn fn, void *arg);
br_code px_lower_fn(px_parser *p) BR_MUST_USE;

/* ptx_lower.c: for the parts that lower */
#define PX_NO(l, text) ((l)->why = (text), false)
const px_opnd *px_op(const px_lower *l, const px_ins *i, unsigned n);
bool px_src(px_lower *l, const px_opnd *o, unsigned type, uint32_t *v);
bool px_src_class(px_lower *l, const px_opnd *o, br_kclass c, uint32_t *v);
bool px_dst(px_lower *l, const px_opnd *o, unsigned type, uint32_t v);
bool px_addr(px_lower *l, const px_opnd *o, uint32_t *base, int64_t *plus);
uint32_t px_emit(px_lower *l, br_kins *i,
                 const uint32_t *args); /* 1st result */
uint32_t px_k(px_lower *l, br_kclass c, uint64_t bits);
uint32_t px_do(px_lower *l, br_kop op, unsigned type, const uint32_t *args,
               unsigned n);
uint32_t px_do2(px_lower *l, br_kop op, unsigned type, uint32_t a, uint32_t b);
/* Two bytes in 16 bits. */
uint32_t px_bytes(px_lower *l, uint32_t low, uint32_t high);
uint32_t px_lane(px_lower *l); /* %laneid */
/* 32 bits of another lane. */
uint32_t px_from_lane(px_lower *l, uint32_t v, uint32_t lane);
/* Of m8n8 whose lines are four lanes each: the first lane of A's line lane / 4, and of
 * B's line 2 (lane % 4). */
void px_lines(px_lower *l, uint32_t *row, uint32_t *col);
/* A shared address that is one only where a cluster has one block. */
uint32_t px_if_alone(px_lower *l, uint32_t addr);
uint32_t px_resize(px_lower *l, uint32_t v, br_kclass to, bool is_signed);
unsigned px_space(const px_opcode *o);
uint32_t px_atom_op(const px_opcode *o); /* .add, ... as modifiers of KIR */
unsigned px_bits_type(unsigned t);       /* b16 for f16, b32 for s32, ... */
/* All registers of a vector operand, or the one. */
bool px_words(px_lower *l, const px_opnd *o, br_kclass c, uint32_t *args,
              uint16_t *n, unsigned most);
/* Writes as many as it has. */
bool px_dst_words(px_lower *l, const px_opnd *d, unsigned type,
                  const uint32_t *v, unsigned n);
/* d, a, b, c: mma.m8n8k4 of f64. */
bool px_mma_f64(px_lower *l, const px_ins *ins);
/* ptx_narrow.c: mma of 4 bits and of 1, and all that wmma does with them. */
bool px_mma_narrow(px_lower *l, const px_ins *ins);
bool px_wmma_narrow(px_lower *l, const px_ins *ins);
uint32_t px_read_reg(px_lower *l, uint32_t reg);
void px_write_reg(px_lower *l, uint32_t reg, uint32_t v);
/* Of arithmetic of f64: the result, by arithmetic of f32. */
uint32_t px_pairs(px_lower *l, const br_kins *i, const uint32_t *args);
/* An operand by position of the type's own class, or a fixed one. */
#define PX_SRC(l, i, n, type, v) px_src((l), px_op((l), (i), (n)), (type), (v))

#define X(root, how, dst, flow, kop, mods) \
    bool px_l_##how(px_lower *l, const px_ins *i);
#include "cg/ptx/ptx.def"
#undef X

#endif
