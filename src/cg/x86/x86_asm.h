/* x86_asm.h - x86-64 instructions: bytes from operands, text from bytes.
 *
 * Labels stand for places: of code, and of constants that follow it. Both are
 * reached by 32-bit displacements, patched at the end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_X86_ASM_H
#define BR_X86_ASM_H

#include "base/base.h"

typedef enum br_x86_op {
#define X(name, text, enc, pp, map, w, opcode, ext, ops) BR_X_##name,
#include "cg/x86/x86.def"
#undef X
    BR_X_COUNT
} br_x86_op;

/* Registers: 0 to 15 of the kind that the operand has. */
enum {
    RAX,
    RCX,
    RDX,
    RBX,
    RSP,
    RBP,
    RSI,
    RDI,
    R8,
    R9,
    R10,
    R11,
    R12,
    R13,
    R14,
    R15
};

typedef enum br_x86_kind {
    BR_X_REG,
    BR_X_MEM,
    BR_X_IMM,
    BR_X_LABEL
} br_x86_kind;
typedef struct br_x86_arg {
    uint8_t kind, reg;    /* reg: the base of memory, too */
    uint8_t index, scale; /* scale 0: no index; 1 2 4 8 */
    int32_t disp;         /* or the label */
    int64_t imm;
} br_x86_arg;

/* A place in memory named by a label: base LABEL_BASE, disp the label. */
enum { BR_X_AT_LABEL = 0xff };

typedef struct br_x86_fix {
    uint32_t at, end, label; /* displacement at, counted from end */
} br_x86_fix;

typedef struct br_x86_asm {
    BR_VEC(uint8_t) code;
    BR_VEC(uint32_t) labels; /* offset, or UINT32_MAX */
    BR_VEC(br_x86_fix) fixes;
    bool oom;
} br_x86_asm;

void br_x86_fini(br_x86_asm *a);
uint32_t br_x86_label(br_x86_asm *a);
void br_x86_bind(br_x86_asm *a, uint32_t label);
/* Operands in Intel's order, as many as the row has. */
void br_x86_put(br_x86_asm *a, br_x86_op op, const br_x86_arg *args);
void br_x86_bytes(br_x86_asm *a, const void *p, size_t n);
/* Fills displacements in; all labels are bound. */
void br_x86_patch(br_x86_asm *a);

/* One instruction as text; returns its bytes, 0: it is none of ours. at: its
 * address, for the targets of jumps. */
size_t br_x86_text(const uint8_t *p, size_t n, uint64_t at, br_str *out);
/* The operands column of x86.def; tests make operands by it. */
const char *br_x86_ops(br_x86_op op);
const char *br_x86_name(br_x86_op op);

static inline br_x86_arg
br_x86_reg(unsigned r)
{
    return (br_x86_arg){.kind = BR_X_REG, .reg = (uint8_t)r};
}
static inline br_x86_arg
br_x86_imm(int64_t v)
{
    return (br_x86_arg){.kind = BR_X_IMM, .imm = v};
}
static inline br_x86_arg
br_x86_mem(unsigned base, int32_t disp)
{
    return (br_x86_arg){.kind = BR_X_MEM, .reg = (uint8_t)base, .disp = disp};
}
static inline br_x86_arg
br_x86_memx(unsigned base, unsigned index, unsigned scale, int32_t disp)
{
    return (br_x86_arg){BR_X_MEM,       (uint8_t)base, (uint8_t)index,
                        (uint8_t)scale, disp,          0};
}
static inline br_x86_arg
br_x86_lab(uint32_t label)
{
    return (br_x86_arg){.kind = BR_X_LABEL, .disp = (int32_t)label};
}
/* Memory at a label. */
static inline br_x86_arg
br_x86_at(uint32_t label)
{
    return (br_x86_arg){
        .kind = BR_X_MEM, .reg = BR_X_AT_LABEL, .disp = (int32_t)label};
}

#endif
