/* sim_int.h - what the files of the simulator share.
 *
 * An instruction is decoded once, to a sim_op: what to call and where its
 * operands are. Vector registers lie lane after lane: register r of a wave of W
 * lanes is v[r * W .. r * W + W - 1]. A vector instruction is computed for 32
 * lanes at a time (a half): operands are pointers to 32 words, and the upper
 * words of a pair lie W words behind.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SIM_INT_H
#define BR_SIM_INT_H

#include "cg/gcn/isa.h"
#include "drv/sim/sim.h"

enum {
    SIM_VCC = 106,
    SIM_TTMP = 108,
    SIM_NULL = 124,
    SIM_M0 = 125,
    SIM_EXEC = 126,
    SIM_SGPRS = 128,
    SIM_SCC = 253,
    SIM_MAX_SRC = 4,
    SIM_MAX_READ = 12, /* vector registers of an instruction */
    SIM_MAX_WRITE = 4,
    SIM_NO_READ = 256, /* a register that is always defined */
    SIM_NO_WRITE = 257,
    SIM_LANES = 32, /* of a half */
};
#define SIM_SHARED_BASE  (1ull << 48)
#define SIM_PRIVATE_BASE (2ull << 48)

/* ---- operands --------------------------------------------------------- */

typedef enum sim_file { SIM_NONE, SIM_V, SIM_S, SIM_K } sim_file;

typedef struct sim_opnd {
    uint8_t file, n; /* sim_file; dwords */
    uint16_t reg;
    bool neg, abs, neg_hi;
    uint8_t sel, sel_hi; /* which half of 16 bits; of the second element */
    uint64_t k;
    const uint32_t *wide; /* k in each lane, 2 * 64 words */
} sim_opnd;

/* ---- lanes ------------------------------------------------------------ */

typedef struct sim_lanes {
    const uint32_t *a, *b, *c; /* sources */
    uint32_t d[2 * SIM_LANES]; /* result: low words, high words */
    uint32_t *to;              /* where it goes: d, or a register */
    unsigned w;                /* how far the high words of sources are */
    uint32_t in, out;          /* a bit for each lane: carry, condition */
    uint32_t flags;            /* clamp, neg bits of dot products */
    unsigned first;            /* number of the first lane: 0 or 32 */
} sim_lanes;
typedef void (*sim_lane_fn)(sim_lanes *x);

enum { SIM_CLAMP = 1, SIM_SIGNED_A = 2, SIM_SIGNED_B = 4 };

typedef enum sim_type {
    T_N,
    T_U32,
    T_I32,
    T_F32,
    T_U16,
    T_I16,
    T_F16,
    T_U64,
    T_I64,
    T_F64,
    T_CMP /* a bit for each lane */
} sim_type;

struct sim_wave;
struct sim_op;
/* False: the wave stops here (its state says why). */
typedef bool (*sim_fn)(struct sim_wave *w, const struct sim_op *o);

typedef enum sim_class { /* br_sim_classes */
                         SIM_SALU = 1,
                         SIM_VALU,
                         SIM_SMEM,
                         SIM_VMEM, /* global, flat, scratch, buffer */
                         SIM_LDS,
                         SIM_FLOW, /* branches, waits, barriers, the rest of SOPP */
} sim_class;

/* The meaning of a name: a row of the tables. */
typedef struct sim_sem {
    const char *name;
    sim_fn fn;           /* what runs it */
    sim_lane_fn lane;    /* for vector arithmetic */
    sim_fn run;          /* the whole of it, where nothing is odd */
    uint8_t dst, src[3]; /* sim_type */
    uint8_t flags;
} sim_sem;

enum {
    SEM_CIN = 1,    /* reads a lane mask */
    SEM_COUT = 2,   /* writes one */
    SEM_ACC = 4,    /* the destination is the last source, too */
    SEM_PACKED = 8, /* lane function is run for both halves */
    SEM_PAIRS = 16, /* sources are pairs of 16 bits, put in order */
    SEM_TRANS = 32, /* transcendental unit */
    SEM_MAD = 128,  /* 32 by 32 bits and a sum of 64 */
    SEM_MIX = 64,   /* sources are f32 or half of 32 bits, as op_sel_hi says */
};

enum {
    IS_CMPX = 1,
    IS_PERMLANE = 2,
    IS_WMMA = 4,
    IS_NOP = 8,
    IS_TRANS = 16,
    IS_READER = 32, /* its scalar destination is only read */
};

/* A bit for each scalar register. */
typedef struct sim_bits {
    uint64_t b[2];
} sim_bits;

/* What an instruction reads and writes, for checks: sim_quick.c. */
typedef struct sim_uses {
    bool quick;   /* it is one of those that this says all of */
    bool memory;  /* whose results are noted once it has run */
    bool strict;  /* sources have to be defined in all lanes that run */
    bool trans;   /* VALU of a chip where results of trans are not waited for */
    bool many;    /* vector registers: more than 4 are read or 2 written */
    bool low;     /* all are below 64: rows say which, both halves' */
    bool waits;   /* nothing is used: it says what is done */
    bool scalars; /* some are written, or seen */
    uint8_t most; /* the vector register of the greatest number */
    /* Up to 4 and 2 without asking how many: the rest are SIM_NO_READ and
     * SIM_NO_WRITE. */
    uint8_t n_read, n_write;
    uint16_t read_v[SIM_MAX_READ], write_v[SIM_MAX_WRITE];
    uint64_t rows_read, rows_written;
    sim_bits read, write;
    sim_bits seen; /* scalars whose writes matter from now on */
} sim_uses;

/* Sources and results of the usual vector instruction, sim_plain.h, and of the
 * usual scalar one, sim_salu.c: there numbers are SGPRs', a constant is 64 bits. */
typedef struct sim_args {
    const uint32_t *k[3]; /* a constant, in all lanes; NULL: none */
    uint16_t from[3];     /* 32 times a VGPR's number, or SIM_ARG_SCALAR + an
                             SGPR's */
    uint16_t to;          /* 32 times a VGPR's number */
    uint8_t wide;         /* bit k: source k is a pair of scalars; 3: result */
    uint8_t in, out;      /* SGPRs of lane masks; SIM_NULL: none */
    uint8_t neg, abs;     /* bit k: of source k, an F32 */
    uint8_t odd;          /* bit k: source k is a scalar, or has a sign */
    bool apart;           /* the result's pair is none of the sources' words */
} sim_args;
enum { SIM_ARG_SCALAR = 0x8000, SIM_ARG_TO_WIDE = 8 };

/* How an instruction goes on. */
typedef enum sim_goes {
    SIM_ON,       /* to what is behind it */
    SIM_BRANCHES, /* there, or to one other place */
    SIM_JUMPS,    /* anywhere, or it may stop the wave */
} sim_goes;

/* What each run needs comes first, a line of 64 bytes, then what checks do. */
typedef struct sim_op {
    sim_fn fn;
    /* Without check: what comes next that does anything, once decoded; NULL:
     * look. Waits and the like between are counted and passed over: with this
     * one they are `span` words, `spends` instructions, of these `spared` are
     * hints. */
    struct sim_op *then;
    uint8_t span, spends, spared;
    uint8_t goes; /* sim_goes */
    uint8_t n_src;
    bool direct;          /* plain, one word a lane, no mask */
    uint8_t words, hints; /* with those s_delay_alu that come after it */
    union {
        sim_args args; /* where plain */
        struct sim_op
            *to[2]; /* SIM_BRANCHES: behind it, elsewhere; NULL: look */
    };
    struct sim_op *next; /* behind it in memory, once decoded; NULL: look */
    uint8_t cls, fmt;
    bool plain; /* no modifiers, no halves, no DPP */
    bool idle;  /* without check it does nothing */
    sim_uses uses;
    struct sim_op *y; /* the other half of a dual instruction */
    const sim_sem *sem;
    const br_gcn_row *row;
    /* Memory: address, data, data, base; mask: scalar offset. */
    sim_opnd dst, sdst, src[SIM_MAX_SRC], mask;
    int32_t imm; /* simm16, offset */
    uint8_t omod, clamp, dst_sel, rtn;
    uint8_t scope; /* gfx12: 0 to 3; gfx11: glc of a load */
    uint8_t is;    /* IS_: for checks */
    /* Floats: T_F16 T_F32 T_F64 or 0. */
    uint8_t float_src[3], float_dst;
    bool flushes, rounds;       /* denormals always; as the mode says */
    bool to_half;               /* v_cvt_f16_f32 */
    bool idxen, offen, gathers; /* gathers: sim_wide.h does */
    bool dpp8, fi, bc;
    uint8_t row_mask, bank_mask;
    bool dpp;
    const uint8_t *perm; /* DPP: which of 32 lanes to read; 255: none */
} sim_op;
/* Zeroed, a line's start; NULL: no memory. */
sim_op *sim_op_new(br_arena *a);

/* ---- waves ------------------------------------------------------------ */

typedef enum sim_state { SIM_RUN, SIM_BARRIER, SIM_DONE, SIM_STOP } sim_state;

typedef struct sim_order sim_order;
struct sim_share;
typedef struct sim_group {
    br_sim *sim;
    unsigned slot; /* among those that run at a time */
    uint64_t nth;  /* of the dispatch's groups */
    const br_aql_packet *packet;
    br_status *st;
    uint32_t id[3], size[3]; /* of this work-group, items that exist */
    uint8_t *lds;
    uint32_t lds_bytes, scratch_bytes;
    unsigned n_waves, live, arrived, phase; /* of the barrier */
    struct sim_wave *waves;
    uint32_t *registers; /* of all of them, and their scratch */
    uint8_t *scratch;
    struct sim_check *check; /* NULL: none */
    sim_order *order;        /* of memory; NULL: none */
    struct sim_share *share; /* NULL: one thread runs all groups */
    br_code code;
} sim_group;

typedef struct sim_wave {
    uint32_t s[SIM_SGPRS];
    uint32_t *v;      /* 256 registers of w lanes */
    uint8_t *scratch; /* scratch_bytes of each lane */
    uint64_t pc, at;  /* next, and the instruction that runs */
    struct sim_code *code;
    unsigned w, id, state, phase; /* w: lanes */
    bool scc, signalled;
    uint32_t mode; /* HW_REG_MODE */
    sim_group *g;
    br_gcn_isa isa;
    uint64_t steps, turn_at; /* instructions; when its turn began */
    struct sim_wcheck *check;
} sim_wave;

static inline uint64_t
sim_pair(const sim_wave *w, unsigned reg)
{
    return (uint64_t)w->s[reg + 1] << 32 | w->s[reg];
}

/* Word k of a scalar source; SCC has one, and zeros above it. */
static inline uint32_t
sim_word(const sim_wave *w, unsigned reg, unsigned k)
{
    if (reg == SIM_SCC)
        return k == 0 && w->scc;
    return w->s[reg + k];
}

/* The bits of EXEC that count. */
static inline uint64_t
sim_exec(const sim_wave *w)
{
    return w->w == 64 ? sim_pair(w, SIM_EXEC) : w->s[SIM_EXEC];
}

static inline uint32_t
sim_exec32(const sim_wave *w, unsigned half)
{
    return w->s[SIM_EXEC + half];
}

/* ---- sim_decode.c ----------------------------------------------------- */

typedef struct sim_code {
    uint64_t at, bytes;
    const uint32_t *words;
    br_gcn_isa isa;
    sim_op **ops; /* by word */
    br_arena arena;
    uint64_t made; /* another number once its words are read anew */
    struct sim_code *next;
} sim_code;

/* A number for `made` that none had before. */
uint64_t sim_code_number(void);

/* The instruction at an address; NULL: the group has an error. */
sim_op *sim_fetch(sim_wave *w);
/* Fills an operation of an instruction; NULL sem: it has no meaning. */
bool sim_decode(br_arena *a, const br_gcn_isa *isa, const br_gcn_inst *in,
                sim_op *o);
const sim_sem *sim_sem_find(const br_gcn_row *row);

/* ---- sim_run.c -------------------------------------------------------- */

/* Fails the dispatch with where we are; false, for `return sim_fault(...)`. */
bool sim_fault(sim_wave *w, br_code code, const char *fmt, ...) BR_PRINTF(3, 4);

/* Appends which wave, pc and instruction. */
void sim_where(const sim_wave *w, uint64_t pc, br_str *out);
/* Lets the waves at a barrier go on once all that live have arrived. */
void sim_release(sim_group *g);

/* ---- by class --------------------------------------------------------- */

/* A scalar source of up to 64 bits. */
uint64_t sim_scalar(const sim_wave *w, const sim_opnd *o);
void sim_set_scalar(sim_wave *w, const sim_opnd *o, uint64_t v);
/* The region that an address is in, NULL: none. who: 0 all but vectors, 1 their
 * loads, 2 their stores, each of which finds at once what it found last. */
const br_kregion *sim_region_find(br_sim *s, uint64_t addr, unsigned who);
static inline const br_kregion *
sim_region(br_sim *s, uint64_t addr, unsigned who)
{
    const br_kregion *r = s->regions.at + s->hit[who];

    return s->hit[who] < s->regions.n && addr - r->addr < r->bytes
               ? r
               : sim_region_find(s, addr, who);
}
/* n bytes of memory, all of one region; NULL: outside. */
uint8_t *sim_at(br_sim *s, uint64_t addr, uint64_t n, bool write);
/* What an atomic of so many bytes makes of `was`. sim_atomic.c */
uint64_t sim_atomic(unsigned act, unsigned bytes, uint64_t was, uint64_t data,
                    uint64_t data1);

/* Lanes in the mode that the wave has: sim_mode.c. False: not there. */
bool sim_mode_lane(sim_wave *w, const sim_op *o, sim_lanes *x);
void sim_mode_decode(sim_op *o);

bool sim_salu(sim_wave *w, const sim_op *o);
/* What runs a scalar row, once its arguments are found. */
sim_fn sim_salu_fn(sim_op *o);
bool sim_saveexec(sim_wave *w, const sim_op *o);
bool sim_valu(sim_wave *w, const sim_op *o);
/* Whether it is plain; then its arguments are found. */
bool sim_is_plain(sim_op *o);
bool sim_dual(sim_wave *w, const sim_op *o);
bool sim_smem(sim_wave *w, const sim_op *o);
bool sim_vmem(sim_wave *w, const sim_op *o);
/* Words of 32 lanes by AVX-512, of global memory and of LDS. */
bool sim_global_words(sim_wave *w, const sim_op *o);
bool sim_lds_words(sim_wave *w, const sim_op *o);
bool sim_ds(sim_wave *w, const sim_op *o);
/* Lanes read each other by LDS's network: ds_bpermute and the like. */
bool sim_exchange(sim_wave *w, const sim_op *o);
bool sim_flow(sim_wave *w, const sim_op *o);
/* What runs a row of sim_flow.def; its goes and idle are set. */
sim_fn sim_flow_fn(sim_op *o);

/* What memory instructions do (sim_mem.def); in src of their rows: act, bytes
 * of an element, elements or flags. */
typedef enum sim_act {
    ACT_LOAD,
    ACT_LOADS,
    ACT_LOAD_LOW,
    ACT_LOADS_LOW,
    ACT_LOAD_HIGH,
    ACT_LOADS_HIGH,
    ACT_STORE,
    ACT_STORE_HIGH,
    ACT_SCALAR,
    ACT_SCALARS,
    ACT_LOAD2,
    ACT_STORE2,
    ACT_SWAP2,
    ACT_LOAD_TID,
    ACT_STORE_TID,
    ACT_BPERMUTE,
    ACT_PERMUTE,
    ACT_SWIZZLE,
    ACT_APPEND,
    ACT_CONSUME,
    ACT_NOTHING, /* from here on nothing is moved */
    ACT_GL0_INV,
    ACT_GL1_INV,
    ACT_INV,
    ACT_WB,
    ACT_ATOMIC, /* from here on */
    ACT_SWAP = ACT_ATOMIC,
    ACT_CMPSWAP,
    ACT_CMPSTORE,
    ACT_ADD,
    ACT_SUB,
    ACT_RSUB,
    ACT_INC,
    ACT_DEC,
    ACT_MINI,
    ACT_MINU,
    ACT_MAXI,
    ACT_MAXU,
    ACT_AND,
    ACT_OR,
    ACT_XOR,
    ACT_MSKOR,
    ACT_CSUB,
    ACT_CONDSUB,
    ACT_FADD,
    ACT_FMIN,
    ACT_FMAX,
    ACT_FCMPSWAP,
    ACT_FCMPSTORE,
    ACT_PKF16,
    ACT_PKBF16,
    ACT_WRAP,
} sim_act;

static inline bool
sim_moves(const sim_op *o)
{
    return o->sem->src[0] < ACT_NOTHING || o->sem->src[0] >= ACT_ATOMIC;
}

/* What the rows of sim_flow.def do. */
enum {
    GO_NOTHING,
    GO_HINT,
    GO_BRANCH,
    GO_SCC0,
    GO_SCC1,
    GO_VCCZ,
    GO_VCCNZ,
    GO_EXECZ,
    GO_EXECNZ,
    GO_END,
    GO_BARRIER,
    GO_SIGNAL,
    GO_WAIT,
    GO_MESSAGE,
    GO_TRAP,
    GO_GETPC,
    GO_SETPC,
    GO_SWAPPC,
    GO_CALL,
    GO_GETREG,
    GO_SETREG,
    GO_ROUND,
    GO_DENORM,
    GO_MOVFROM,
    GO_MOVTO,
    GO_REALTIME,
    GO_W_ALL, /* waits, from here on */
    GO_W_CNT,
    GO_W_ALU,
    GO_W_STORE,
    GO_W_LOAD,
    GO_W_LGKM,
    GO_W_DS,
    GO_W_KM,
    GO_W_LOAD_DS,
    GO_W_STORE_DS
};

/* on x86-64 only */
extern const sim_sem sim_lane_rows_avx2[], sim_lane_rows_avx512[];
/* The tables of names, each ended by a NULL name. */
extern const sim_sem sim_salu_rows[], sim_lane_rows[], sim_cross_rows[],
    sim_mem_rows[], sim_flow_rows[];

#endif
