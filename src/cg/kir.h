/* kir.h - the kernel IR: typed SSA for one thread of a grid.
 *
 *   br_kir     a module: variables, functions, notes; one arena
 *   br_kfn     a function: values, instructions, blocks, all by index
 *   br_kval    a class (pred 16 32 64) and where it comes from
 *   br_kins    operation, types, modifiers, arguments, results, source line
 *
 *     b1:
 *       %4 = phi.b32 b0:%2 b2:%9
 *       %5 = setp.lt.s32 %4, 100
 *       cbr %5 b2 b3
 *
 * Values are bits; operations say what the bits mean. Every lane of a warp runs
 * the same text, so a phi is per lane: it takes what came along the edge that
 * the lane took. Block 0 is the entry and has no predecessors. kir.def lists
 * the operations, docs in br_kir_verify the grammar of what is legal.
 *
 * Out of memory is sticky: pushes then overwrite slot 0, and whoever built the
 * function asks m->oom at the end.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_KIR_H
#define BR_KIR_H

#include "base/map.h"

typedef enum br_ktype {
#define X(name, text, cls, bytes, cat, kind, lanes, elem) BR_KT_##name,
#include "cg/ktype.def"
#undef X
    BR_KT_COUNT
} br_ktype;

typedef enum br_kclass {
    BR_KC_PRED,
    BR_KC_B16,
    BR_KC_B32,
    BR_KC_B64
} br_kclass;

typedef struct br_ktinfo {
    const char *text;
    uint8_t cls, bytes, lanes, elem;
    char cat, kind;
} br_ktinfo;
extern const br_ktinfo br_ktinfo_of[BR_KT_COUNT];

typedef enum br_kop {
#define X(name, text, sig, types, groups, props, doc) BR_K_##name,
#include "cg/kir.def"
#undef X
    BR_K_COUNT
} br_kop;

enum { /* properties */
       BR_KP_PURE = 1,
       BR_KP_COMM = 2,
       BR_KP_READ = 4,
       BR_KP_WRITE = 8,
       BR_KP_CONV = 16,
       BR_KP_BAR = 32,
       BR_KP_TERM = 64,
       BR_KP_IMM = 128,
       BR_KP_SYM = 256,
       BR_KP_SREG = 512
};

typedef struct br_kopinfo {
    const char *text, *sig, *types, *groups;
    uint16_t props;
    const char *doc;
} br_kopinfo;
extern const br_kopinfo br_kopinfo_of[BR_K_COUNT];

/* Fields of br_kins.mods: first bit and width. */
enum {
    BR_KF_RND = 0x0004,
    BR_KF_APPROX = 0x0402,
    BR_KF_FTZ = 0x0601,
    BR_KF_SAT = 0x0702,
    BR_KF_RELU = 0x0901,
    BR_KF_NAN = 0x0a01,
    BR_KF_XABS = 0x0b01,
    BR_KF_CMP = 0x0c04,
    BR_KF_SPACE = 0x1003,
    BR_KF_SEM = 0x1303,
    BR_KF_SCOPE = 0x1602,
    BR_KF_SUB = 0x1805
};
#define br_kmod(mods, field) \
    (((mods) >> ((field) >> 8)) & ((1u << ((field)&0xff)) - 1))
#define br_kmod_put(field, v) ((uint32_t)(v) << ((field) >> 8))

enum { /* values of the fields */
#define G(group, letter, field)
#define M(group, name, text, value) BR_KM_##group##_##name = (value),
#include "cg/kmod.def"
#undef G
#undef M
       BR_KM_END
};
typedef struct br_kminfo {
    char letter;
    uint16_t field;
    uint8_t value;
    const char *text;
} br_kminfo;
extern const br_kminfo br_kminfo_of[]; /* ends with a letter of 0 */

typedef enum br_ksreg {
#define X(name, text, cls) BR_KS_##name,
#include "cg/sreg.def"
#undef X
    BR_KS_COUNT
} br_ksreg;
extern const char *const br_ksreg_text[BR_KS_COUNT];
extern const uint8_t br_ksreg_class[BR_KS_COUNT];

#define BR_KNONE        0xffffffffu
#define BR_KFN_SYM      0x80000000u /* in a symbol: a function, not a variable */
/* What a pointer to a function holds. */
#define BR_KFN_ADDR(fn) (0x4000000000000000ull + 16ull * (fn))
enum {
    BR_KMAX_ARGS = 1024,    /* of an instruction, edges into a block too */
    BR_KMAX_BYTES = 1 << 30 /* of a variable */
};

typedef enum br_kvkind { BR_KV_INS, BR_KV_CONST, BR_KV_UNDEF } br_kvkind;
typedef struct br_kval {
    uint8_t cls, kind;
    uint32_t def;  /* instruction */
    uint64_t bits; /* of a constant */
} br_kval;

typedef struct br_kins {
    uint8_t op, type, type2, n_res;
    uint16_t n_arg;
    uint32_t mods;
    uint32_t line; /* of the source; 0: none */
    uint32_t res;  /* first result; the others follow */
    uint32_t arg;  /* first argument in br_kfn.args */
    uint32_t sym;  /* variable, or function of a call; BR_KNONE */
    int64_t imm;
} br_kins;

typedef struct br_kblk {
    BR_VEC(uint32_t) ins;
    BR_VEC(uint32_t) succ;
    BR_VEC(uint32_t) pred; /* in order of (block, place) of the edges */
} br_kblk;

typedef struct br_kparam {
    br_text name;
    uint32_t offset, bytes, align;
    bool result;
} br_kparam;

enum { BR_KBAR_CLUSTER = 16, BR_KMAX_CLUSTER = 16 };
typedef struct br_kfn {
    br_text name;
    bool entry, external; /* external: no body */
    uint32_t line;
    uint32_t param_bytes; /* of an entry: its parameter block */
    uint32_t frame_bytes; /* of local memory, parameters of a call included */
    uint32_t max_threads, req_threads; /* 0: not said */
    uint32_t req_block[3];             /* their x, y and z */
    uint32_t cluster[3];  /* blocks that a cluster has to have; 0: not said */
    uint32_t max_cluster; /* or may have, of all directions; 0: not said */
    BR_VEC(br_kparam) params; /* results first */
    BR_VEC(br_kval) vals;
    BR_VEC(br_kins) ins;
    BR_VEC(uint32_t) args;
    BR_VEC(br_kblk) blks;
    br_map consts; /* (bits, class) -> value */
} br_kfn;

typedef struct br_kreloc {
    uint32_t offset, bytes;
    uint32_t sym; /* number of a variable, or of a function | BR_KFN_SYM */
    int64_t addend;
    bool generic;
} br_kreloc;

typedef struct br_kvar {
    br_text name;
    uint8_t space; /* BR_KM_SPACE_ */
    bool external; /* of shared: the dynamic part */
    uint32_t align;
    uint64_t bytes;
    const uint8_t *init; /* bytes long, NULL: zeros, or none of shared */
    BR_VEC(br_kreloc) relocs;
} br_kvar;

typedef struct br_knote {
    uint32_t line;
    br_text text;
} br_knote;

typedef struct br_kir {
    br_arena arena;
    bool oom;
    br_text target; /* "sm_90" */
    BR_VEC(br_kvar) vars;
    BR_VEC(br_kfn) fns;
    BR_VEC(br_knote) notes; /* what was not understood; TRAP's imm */
    br_map vars_by_name, fns_by_name;
} br_kir;

/* ---- building (kir.c) ---------------------------------------------------- */

br_kir *br_kir_new(br_status *st) BR_MUST_USE; /* NULL: out of memory */
void br_kir_free(br_kir *m);
/* All by number. After a failure 0 and m->oom; there is always a slot 0. */
uint32_t br_kir_var(br_kir *m, br_text name);
uint32_t br_kir_fn(br_kir *m, br_text name);
uint32_t br_kir_note(br_kir *m, uint32_t line, const char *fmt, ...)
    BR_PRINTF(3, 4);
/* BR_KNONE: not there. */
uint32_t br_kir_find_fn(const br_kir *m, br_text name);
uint32_t br_kir_find_var(const br_kir *m, br_text name);
uint32_t br_kfn_blk(br_kir *m, br_kfn *f);
uint32_t br_kfn_const(br_kir *m, br_kfn *f, br_kclass c, uint64_t bits);
uint32_t br_kfn_undef(br_kir *m, br_kfn *f, br_kclass c);
uint32_t br_kfn_val(br_kir *m, br_kfn *f, br_kclass c, uint32_t def);
void br_kfn_edge(br_kir *m, br_kfn *f, uint32_t from, uint32_t to);
void br_kfn_preds(br_kir *m, br_kfn *f); /* from the successors */
/* Appends to a block (BR_KNONE: to none yet); makes the results by signature,
 * n_res of them where it says T* or W*. Returns the instruction. */
uint32_t br_kfn_ins(br_kir *m, br_kfn *f, uint32_t blk, const br_kins *proto,
                    const uint32_t *args);

static inline uint32_t *
br_kargs(const br_kfn *f, const br_kins *i)
{
    return f->args.at + i->arg;
}
br_kclass br_kclass_half(br_kclass c);
unsigned br_kclass_bits(br_kclass c); /* 1 16 32 64 */
/* Class that a signature's letter means for this instruction. */
br_kclass br_kclass_of(char letter, const br_kins *i);
/* Reverse post order from block 0: out[n_blks], returns how many are reached. */
uint32_t br_kfn_rpo(const br_kfn *f, uint32_t *out, uint32_t *place);
/* Immediate dominators of the blocks of a reverse post order. */
void br_kfn_idom(const br_kfn *f, const uint32_t *rpo, uint32_t n,
                 const uint32_t *place, uint32_t *idom);
bool br_kdominates(const uint32_t *idom, const uint32_t *place, uint32_t a,
                   uint32_t b);

/* The order in which divergent blocks run: reverse post order with every loop
 * in one piece (kir_order.c). out[n_blks]; false: out of memory. */
bool br_kfn_order(const br_kfn *f, uint32_t *out) BR_MUST_USE;

/* How a value goes from lane to lane in each 8 lanes from a multiple of 8 on:
 * by 0; by 2^(step - 1); beyond that by what the function's table says; or not
 * evenly. */
enum {
    BR_KSTEP_MAX = 12,
    BR_KSTEP_ODDS = 32,
    BR_KSTEP_FAR = 1 << 16, /* no table has more than that */
    BR_KSTEP_NONE = 0xff
};
typedef struct br_ksteps {
    uint32_t n;
    int32_t by[BR_KSTEP_ODDS];
} br_ksteps;
/* odd: NULL where there is none. */
int64_t br_kstep_by(const br_ksteps *odd, uint8_t step);
/* Of each value, whether all lanes that run together have the same, and its
 * step, if 8 threads of a block's row lie in 8 lanes; of each block, whether a
 * loop around it is left or walked by some lanes before others (kir_uniform.c).
 * warps: lanes of several run together. order and place as br_kfn_order has them; odd,
 * which begins empty: NULL, powers of two alone are steps. false: out of memory. */
bool br_kfn_uniform(const br_kfn *f, bool warps, const uint32_t *order,
                    const uint32_t *place, uint8_t *uniform, uint8_t *step,
                    uint8_t *mixed, br_ksteps *odd) BR_MUST_USE;
/* Of each block its immediate post-dominator: f->blks.n, the end; BR_KNONE, it
 * never ends. false: out of memory. */
bool br_kfn_meet(const br_kfn *f, uint32_t *meet) BR_MUST_USE;

/* ---- text (kir_print.c, kir_parse.c) ------------------------------------- */

void br_kir_print(const br_kir *m, br_str *out);
void br_kfn_print(const br_kir *m, const br_kfn *f, br_str *out);
void br_kins_print(const br_kir *m, const br_kfn *f, const br_kins *i,
                   br_str *out);
/* What it reads has passed br_kir_verify. */
br_code br_kir_parse(br_kir **out, const char *p, size_t n,
                     br_status *st) BR_MUST_USE;

/* ---- what is legal (kir_verify.c) ---------------------------------------- */

br_code br_kir_verify(const br_kir *m, br_status *st) BR_MUST_USE;
/* The rule of types and modifiers that an instruction breaks, or NULL. */
const char *br_kins_rule(const br_kins *i);

/* ---- what it computes (kir_eval.c) --------------------------------------- */

/* One lane of an instruction that is PURE and no ADDR, FRAME or address
 * conversion; arguments and results as bits. Predicates are 0 or 1, narrow
 * values are zero-extended. */
void br_keval(const br_kins *i, const uint64_t *arg, uint64_t *res);
bool br_kevals(br_kop op); /* whether br_keval knows it */
/* a op b as an atomic operation of type t. */
uint64_t br_keval_atom(unsigned op, br_ktype t, uint64_t a, uint64_t b);

/* ---- passes --------------------------------------------------------------- */

/* Whether it may have changed the function. */
typedef bool (*br_kpass_fn)(br_kir *m, br_kfn *f);
typedef struct br_kpass {
    const char *name;
    br_kpass_fn run;
} br_kpass;
extern const br_kpass br_kpasses[]; /* in order; ends with a NULL name */
/* The passes up to the one named last, or all (NULL), over all functions;
 * verified after each that may have changed one. */
br_code br_kir_optimise(br_kir *m, const char *last, br_status *st) BR_MUST_USE;

#endif
