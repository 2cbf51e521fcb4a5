/* gcn_mir.h - a kernel as AMD instructions, before and after they have
 * registers.
 *
 *     KIR --gcn_flow--> places and masks      what lanes wait for their turn
 *         --gcn_sel-->  gm_ins of vregs       one gm_blk a node of the flow
 *         --gcn_peep--> fewer of them
 *         --gcn_alloc-> gm_ins of registers
 *         --gcn_code--> br_gcn_inst           encoded, modes, waits, hazards
 *
 * A place is a block of KIR or an edge that has to be a block of its own, in
 * the order in which lanes that part run (kir_order.c). Each place has three
 * nodes: its head takes the mask of lanes that wait for it, its body does the
 * work, its stub is the second way out of a branch.
 *
 * A vreg is one to four registers of one file: S of the wave, V of the lanes. A
 * mask of lanes is one scalar, or two where a wave has 64.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GCN_MIR_H
#define BR_GCN_MIR_H

#include "cg/gcn/gcn_kinds.h"
#include "cg/kir.h"

enum {
    GM_MAX_OPS = 6,
    GM_MAX_SETS = 3,
    GM_MAX_PLACES = 1 << 15, /* blocks of a kernel, edges included */
    GM_MAX_VREGS = 1 << 20,
    GM_MAX_LDS = 64 << 10,
    GM_SGPRS = 106,
    GM_VGPRS = 256,
    GM_NO = -1,
    GM_HIDDEN_BYTES = 24,      /* of sizes of grid and group */
    GM_MAX_SCRATCH = 64 << 10, /* of a lane */
    GM_WINDOW = 4096,          /* bytes that an instruction's offset reaches */
};

/* Codes of registers: of a source operand, as gcn_reg.c has them. */
enum {
    GM_VCC = 106,
    GM_TTMP7 = 115,
    GM_TTMP9 = 117,
    GM_NULL = 124,
    GM_M0 = 125,
    GM_EXEC = 126,
    GM_SHARED_BASE = 235,
    GM_PRIVATE_BASE = 237,
    GM_V0 = 256
};

typedef enum gm_kind { GM_EMPTY, GM_VREG, GM_CODE, GM_IMM } gm_kind;

typedef struct gm_op {
    uint8_t kind, sub; /* sub: first word of a vreg */
    bool neg, abs;
    uint32_t v; /* vreg, code of a register, or 32 bits */
} gm_op;

/* One instruction; op in the order of its row's operands, without hidden ones
 * and modifiers. */
typedef struct gm_ins {
    const br_gcn_row *row;
    gm_op op[GM_MAX_OPS];
    struct {
        uint8_t field;
        uint32_t v;
    } set[GM_MAX_SETS]; /* modifiers */
    uint8_t n_op, n_set;
    bool keep;      /* the rest of the vreg that op[0] defines stays */
    bool early;     /* the result may not lie on an argument */
    bool lanes;     /* reads registers of lanes that do not run */
    uint16_t dpp;   /* GM_DPP and how src0 comes from other lanes; 0: not */
    uint8_t mode;   /* rounding | denormals << 4 that it needs; 0: any */
    int32_t target; /* of a branch: a node; GM_NO */
    uint32_t line;
} gm_ins;

enum {
    GM_DPP = 1 << 15,     /* of a row that has DPP16; no lane there: 0 */
    GM_DPP_XMASK = 0x160, /* the lane whose number differs in these bits */
};
enum { GM_MODE = 0xf0 }; /* round to nearest even, denormals kept */

typedef struct gm_vreg {
    char file; /* S V */
    uint8_t words, align;
    int16_t phys;  /* number in its file; GM_NO: none yet */
    uint32_t hint; /* a vreg whose register would do; BR_KNONE */
    bool fixed;    /* is not spilled */
    bool whole;    /* has its register from begin to end */
} gm_vreg;

typedef struct gm_blk {
    BR_VEC(gm_ins) ins;
    BR_VEC(uint32_t) wave;  /* nodes that may follow */
    BR_VEC(uint32_t) lanes; /* nodes where lanes of this one go on */
} gm_blk;

typedef struct gm_place {
    uint32_t blk;       /* of KIR; of an edge BR_KNONE */
    uint32_t from, nth; /* of an edge: its block and successor */
    uint32_t succ[2], n_succ;
    bool split;    /* lanes part here */
    uint32_t mask; /* vreg of lanes that wait; BR_KNONE: none ever do */
    bool headed;
} gm_place;

enum { GM_HEAD, GM_BODY, GM_STUB, GM_NODES };
#define GM_NODE(place, which) ((place)*GM_NODES + (which))

/* Where a value of KIR is. */
typedef struct gm_val {
    char file;     /* S V, M: a mask of lanes */
    uint32_t vreg; /* BR_KNONE: not made yet */
    uint8_t sub;
    uint32_t home; /* of a mask that other blocks read: 0 or 1 by lane */
    uint32_t blk;  /* that makes it */
    bool far;      /* a phi or another block reads it */
} gm_val;

typedef struct gm_fn {
    const br_gcn_isa *isa;
    const br_kir *m;
    const br_kfn *f;
    br_map *rows;         /* name -> row */
    uint32_t *order, *at; /* blocks of KIR: in order; place of each */
    uint32_t *turn;       /* of each block: its place in order */
    uint8_t *uniform, *mixed;
    gm_val *vals;
    BR_VEC(gm_place) places;
    BR_VEC(gm_blk) blks; /* by node, then a trap and the end */
    BR_VEC(gm_vreg) vregs;
    uint64_t *pend, *head; /* of each place: places where lanes may wait */
    size_t words;          /* of one of those sets */
    uint32_t node, line;   /* where instructions go now */
    uint8_t mode;
    uint32_t kernarg, tid, group[3]; /* vregs that the hardware fills */
    uint32_t args_bytes;             /* of parameters, hidden ones not */
    uint32_t kernarg_bytes, lds_bytes, scratch_bytes, max_threads;
    uint32_t *lds;         /* of each variable: where it is in LDS */
    BR_VEC(uint32_t) vars; /* that it has the addresses of */
    /* Spilled: bytes of vectors in scratch, and scalars that say where each
     * GM_WINDOW of them begins; what keeps scalars, lanes used of all. */
    uint32_t spill_bytes, keep_used;
    BR_VEC(uint32_t) joined; /* results of products that others made */
    BR_VEC(uint32_t) windows;
    BR_VEC(uint32_t) keeps;
    uint8_t ids;
    bool one_id;  /* of work-items: x alone is asked for */
    bool hidden;  /* asks for sizes of grid and group */
    bool dynamic; /* ... and for that of the launch's shared memory */
    uint16_t vgprs, sgprs;
    br_code code; /* first failure */
    br_status *st;
} gm_fn;

/* ---- gcn_emit.c: instructions into a node ---------------------------- */

/* Fails once; the message begins with the line of the source. */
void gm_fail(gm_fn *g, br_code code, const char *fmt, ...) BR_PRINTF(3, 4);
void gm_oom(gm_fn *g);
uint32_t gm_new(gm_fn *g, char file, unsigned words);
gm_op gm_new_mask(gm_fn *g); /* of lanes: as many scalars as that takes */
gm_op gm_reg(uint32_t vreg, unsigned sub);
gm_op gm_code(unsigned code);
gm_op gm_imm(uint32_t v);
/* Name without _e64; one that ends with m instead of 32 or 64 is of masks.
 * NULL in row: g has failed. Operands become what the row
 * takes: constants and scalars that it cannot read are moved first. */
gm_ins *gm_emit(gm_fn *g, const char *name, const gm_op *op, unsigned n);
void gm_set(gm_ins *i, br_gcn_field field, uint32_t v);
void gm_goto(gm_fn *g, const char *name, uint32_t node);
const br_gcn_row *gm_row(gm_fn *g, const char *name, unsigned n_op);
#define GM(g, name, ...)                         \
    gm_emit((g), (name), (gm_op[]){__VA_ARGS__}, \
            sizeof((gm_op[]){__VA_ARGS__}) / sizeof(gm_op))
/* Operands of a row that are written as text. */
bool gm_counts(const br_gcn_opnd *o);
bool gm_defines(const br_gcn_row *row, const br_gcn_opnd *o);
/* Vreg that operand n names and whether it is defined; BR_KNONE: none. */
uint32_t gm_named(const gm_ins *i, unsigned n, bool *def);
/* Whether it defines operand n and the rest of that vreg stays. */
bool gm_keeps(const gm_ins *i, unsigned n);
/* Dwords of an operand. */
unsigned gm_width(const gm_fn *g, const gm_ins *i, unsigned n);

/* ---- gcn_flow.c ------------------------------------------------------- */

bool gm_flow_begin(gm_fn *g); /* places, sets; needs uniform and vals' files */
void gm_flow_head(gm_fn *g, uint32_t place);
/* Code that traps where lanes wait at other places that do more than end. */
void gm_flow_gather(gm_fn *g, uint32_t place);
/* Out of a body: cond of a split place a mask; of other branches a scalar that
 * is not zero where the first way is taken. */
void gm_flow_out(gm_fn *g, uint32_t place, gm_op cond);

/* gcn_spin.c: of two warps in a wave, one may wait for the other in a loop. */
void gm_refuse_spins(gm_fn *g);

/* ---- gcn_sel.c, gcn_sel_mem.c, gcn_sel_warp.c -------------------------- */

void gm_classes(gm_fn *g); /* files of all values */
void gm_select(gm_fn *g, uint32_t place);
/* An argument as an operand; sub: word of it, or both (GM_NO). */
gm_op gm_arg(gm_fn *g, const br_kins *i, unsigned n, int sub);
gm_op gm_arg_v(gm_fn *g, const br_kins *i, unsigned n, int sub); /* in V */
gm_op gm_res(gm_fn *g, const br_kins *i, unsigned n);
bool gm_select_mem(gm_fn *g, const br_kins *i); /* false: not its business */
/* why: a note's number, 0 or as traps.def has it, and a note of that text is that. */
void gm_trap(gm_fn *g, uint32_t why);
/* Whether an argument is a constant. */
bool gm_literal(const gm_fn *g, const br_kins *i, unsigned n, uint64_t *v);
/* Whether a load is of a parameter whose place is known, and where that is. */
bool gm_param_at(const gm_fn *g, const br_kins *i, uint64_t *at);
gm_op gm_lane_id(gm_fn *g);
bool gm_vote(gm_fn *g, const br_kins *i); /* these two as gm_select_mem */
bool gm_shuffle(gm_fn *g, const br_kins *i);
bool gm_wmma(gm_fn *g, const br_kins *i); /* of gm_is_wmma */
int64_t gm_of_one(int64_t sreg);          /* as of a cluster of one block */
bool gm_place_shared(gm_fn *g);
/* Says what it is and, of waves of 64 lanes, that others may have code for it. */
void gm_refuse(gm_fn *g, const br_kins *i);

/* ---- gcn_peep.c ------------------------------------------------------- */

void gm_peep(gm_fn *g);

/* ---- gcn_live.c, gcn_alloc.c, gcn_spill.c ------------------------------ */

typedef struct gm_span {
    uint32_t from, to; /* points, both in */
} gm_span;

typedef struct gm_spans {
    gm_span *at; /* a BR_VEC, the last first */
    size_t n, cap;
} gm_spans;

/* By vreg; points: of the kernel. */
bool gm_live(gm_fn *g, gm_spans *of, uint32_t *points);

/* One that gets no register, and from where to where it lives. */
typedef struct gm_victim {
    uint32_t v, from, to;
} gm_victim;

/* They live elsewhere, each use of one in a vreg of its own. Changes order. */
bool gm_spill(gm_fn *g, gm_victim *v, size_t n);
bool gm_alloc(gm_fn *g);

#endif
