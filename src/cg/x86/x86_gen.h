/* x86_gen.h - the state of the generator of one function.
 *
 * A block is cut into regions: runs of instructions that concern one lane each.
 * A region's code does a quarter of the warp after another, its values in ymm
 * registers (x86_reg.c); uniform instructions make a region of their own, run
 * once. With AVX-512 it is two quarters at a time, in zmm registers, and
 * predicates are in mask registers; what is uniform is done as with AVX2.
 * Between regions values lie in their rows. What has no vector form is a
 * call of C for the whole warp (a step).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_X86_GEN_H
#define BR_X86_GEN_H

#include "cg/x86/x86_int.h"

#include <stddef.h>

enum { NO_REG = 0xff };
/* Places for what no register is left for: most functions need none, one of
 * thousands of values, as unrolled attention, some hundred at once. */
enum { MIN_SPILLS = 64, MAX_SPILLS = 1024, VALUES_PER_SPILL = 4 };
/* Registers: vectors, then masks from MASK_REGS on, of which k0 says none. */
enum { VEC_REGS = 32, MASK_REGS = 32, NREGS = 40 };
#define NEVER  0xffffffffu
/* Of a site or region noted for later: it is parted code's. */
#define PARTED 0x80000000u

enum { ONLY_ALL, ONLY_WARPS, ONLY_FIRST }; /* x86_line.c */

struct gen;
/* Makes the code of an instruction in a region. */
typedef void (*x86_sel)(struct gen *g, const br_kins *i);

typedef struct gen {
    br_x86_asm *a;
    const br_kir *m;
    const br_kfn *f;
    x86_fn *fn;
    uint8_t *mixed;                /* by block */
    uint32_t n;                    /* blocks */
    uint32_t pos;                  /* of the block at work */
    uint32_t *start, *tail, *term; /* labels by position */
    uint32_t done, fault;          /* labels */
    /* by instruction: its region; by value: where it is made */
    uint32_t *region, n_regions, *next_use, *site; /* site + 1 */
    uint8_t *group_of; /* by instruction: its group + 1, or 0 */
    uint32_t here;     /* the region at work */
    struct {
        uint32_t addr, site, align, span; /* site: whose window it is */
        int32_t from, to;                 /* bytes from the address on */
        bool shared;
    } group[X86_GROUPS];
    unsigned n_groups;
    bool zmm;       /* AVX-512 */
    bool z;         /* this region's code works on two quarters */
    bool streams;   /* stores may go past the caches */
    bool wide;      /* all warps of a block, all their lanes */
    bool line;      /* and once what goes evenly through the block */
    bool plane;     /* of blocks in two dimensions, for three warps */
    bool lined;     /* in a region: of the groups, likewise */
    bool through;   /* and straight through the block */
    bool parted;    /* code for a warp within code for blocks */
    uint32_t *meet; /* by block: where its ways meet (x86_part.c) */
    uint8_t *part;  /* by position: is in the part at work */
    uint32_t *part_start, *part_todo;
    uint8_t quarter;       /* of code straight through */
    bool no_line;          /* there are too many of them */
    uint8_t only;          /* which phis of an edge */
    bool fast;             /* quarters are full or empty, groups are checked */
    bool kept;             /* where the groups are is in registers */
    uint32_t hosts_at;     /* and in the frame */
    BR_VEC(uint32_t) rows; /* label, region: where an index ran over */
    uint8_t *masked;       /* by value: other lanes' parts of its row live */
    uint32_t *pool;        /* by value: label of a constant */
    BR_VEC(uint64_t) consts; /* bits, for those without a value */
    BR_VEC(uint32_t) const_label;
    BR_VEC(uint32_t) list; /* instructions of the region at work */
    BR_VEC(uint32_t) rest; /* those that x86_fast has not done */
    BR_VEC(uint32_t) uni;  /* those that are uniform */
    BR_VEC(uint32_t) ones; /* and of these what the first warp does alone */
    uint32_t spill_at;     /* rows for what no register is left for */
    unsigned n_spills;     /* so many */
    /* the region at work */
    bool uniform;
    uint32_t at; /* number of the instruction in it */
    struct {
        uint32_t val;
        uint8_t part;
        bool busy, pinned, temp;
    } reg[NREGS];
    uint8_t *regs;         /* by value * 2 + part */
    uint32_t *next;        /* by value: its next use in the region */
    uint16_t *spill;       /* by value * 2 + part: slot + 1, or 0 */
    uint16_t spilled;      /* slots in use */
    BR_VEC(uint32_t) slow; /* label of the slow path, site, label after it */
    bool too_many;
} gen;

#define EXEC(g)   ((uint32_t)(g)->f->vals.n)     /* mask of lanes, 32 bits */
#define EXEC64(g) ((uint32_t)(g)->f->vals.n + 1) /* its halves, 64 bits each */
#define LANES(g)  ((g)->z ? X86_MOST : X86_LANES)
/* Bytes of a register. */
#define PART(g)   ((g)->z ? 64 : 32)

static inline unsigned
cls_of(const gen *g, uint32_t v)
{
    return v == EXEC(g)     ? BR_KC_PRED
           : v == EXEC64(g) ? BR_KC_B64
                            : g->f->vals.at[v].cls;
}
/* Instructions of the uniform region: once for the warp. */
static inline bool
is_once(const gen *g, const br_kins *i)
{
    return i->n_res && (g->fn->uniform[i->res] || x86_even(g->fn, i->res));
}
static inline unsigned
parts_of(const gen *g, unsigned cls)
{
    return cls == BR_KC_B64 && !g->uniform ? 2 : 1;
}
static inline bool
is_const(const gen *g, uint32_t v)
{
    return v < g->f->vals.n && g->f->vals.at[v].kind != BR_KV_INS;
}
static inline uint32_t
arg_of(const gen *g, const br_kins *i, unsigned n)
{
    return g->f->args.at[i->arg + n];
}

/* x86_reg.c */
unsigned x86_use(gen *g, uint32_t v, unsigned part);
unsigned x86_def(gen *g, uint32_t v, unsigned part);
unsigned x86_tmp(gen *g);
void x86_drop(gen *g, unsigned reg); /* a temporary that is done */
unsigned x86_ktmp(gen *g);           /* a mask register */
void x86_kdrop(gen *g, unsigned k);
void x86_region(gen *g, const uint32_t *list, size_t n, bool uniform);
void x86_quarters(gen *g, const uint32_t *list, size_t n);
void x86_straight(gen *g, const uint32_t *list, size_t n);
void x86_forget(gen *g); /* all that registers hold */
void x86_ones(gen *g, unsigned to);
void x86_load_even(gen *g, uint32_t v, unsigned part, unsigned to);
void x86_mask_row(gen *g, unsigned to, unsigned offset); /* from x86_ctx */
br_x86_arg x86_const(gen *g, uint64_t bits);
br_x86_arg x86_const_row(gen *g, const uint32_t lanes[X86_MOST]);
/* What lanes are beyond the first of their quarter: of 16, or of 4 or 8. */
br_x86_arg x86_steps32(gen *g, uint32_t v);
br_x86_arg x86_steps64(gen *g, uint32_t v, unsigned part);
br_x86_arg x86_ctx_at(size_t offset);

/* x86_sel.c, x86_mem.c: NULL, it has no vector form */
x86_sel x86_select(const gen *g, const br_kins *i);
x86_sel x86_select_cvt(const br_kins *i);
x86_sel x86_select_bytes(const gen *g, const br_kins *i);
x86_sel x86_select_mem(const gen *g, const br_kins *i);
unsigned x86_access(const br_kins *i); /* bytes of a lane's */

/* x86_zmm.c: for 16 lanes */
br_x86_op x86_twin(br_x86_op op);
/* Another way than x86_select's, or NULL. */
x86_sel x86_select_z(const gen *g, const br_kins *i);
void x86_z_narrow(gen *g, unsigned d, unsigned lo, unsigned hi, bool high);
unsigned x86_flushed(gen *g, unsigned a);
unsigned x86_z_flushed(gen *g, unsigned a);
void x86_float_end(gen *g, const br_kins *i, unsigned d);
unsigned x86_z_divisor(gen *g, unsigned b);

/* x86_several.c: 8 or 16 lanes one after another, or one for all of them */
void x86_load_row(gen *g, const br_kins *i, const uint8_t *d, br_x86_arg at);
void x86_store_row(gen *g, const br_kins *i, const uint8_t *s, br_x86_arg at);
/* Values of 8 and 16 bits that are a lane's word, its low bytes first. */
void x86_apart(gen *g, const br_kins *i, const uint8_t *d, unsigned word);
void x86_together(gen *g, const br_kins *i, unsigned word, const uint8_t *s,
                  unsigned n);

/* x86_stream.c */
void x86_stream_find(gen *g);
bool x86_is_loaded(const gen *g, uint32_t addr);
bool x86_stream(gen *g, const br_kins *i, const uint8_t *r, br_x86_arg at,
                uint32_t site);

/* x86_gather.c */
bool x86_gathers(const br_kins *i);
void x86_gather_begin(gen *g); /* where code has not parted yet */
void x86_gather(gen *g, const br_kins *i, uint32_t site, uint32_t slow);
void x86_gather_local(gen *g, const br_kins *i, uint32_t site, uint32_t slow);

/* x86_stride.c */
bool x86_strides(const br_kins *i, int64_t by); /* it can do that one */
void x86_strided(gen *g, const br_kins *i, const uint8_t *r, br_x86_arg at,
                 int32_t by);

/* x86_fast.c */
bool x86_fast(gen *g, const uint32_t *list, size_t n, uint32_t slow);
void x86_fast_top(gen *g);
unsigned x86_fast_base(gen *g, unsigned group); /* register: its bytes */
void x86_add_constant(gen *g, unsigned r, int64_t n);
bool x86_small(const gen *g, uint32_t v); /* no thread's number runs over */
void x86_no_wrap(gen *g, const br_kins *i);

/* x86_gen.c */
bool x86_is_preset(const br_kfn *f, const br_kins *i);
bool x86_edge_spoils(const gen *g, uint32_t from, uint32_t e, uint32_t other);
void x86_take_edge(gen *g, uint32_t from, uint32_t e);
void x86_branch(gen *g, uint32_t blk, const br_kins *i);
void x86_block_code(gen *g, uint32_t blk);

/* x86_wide.c */
uint32_t x86_seats(gen *g); /* code for each warp from here on, ... */
void x86_seats_end(gen *g, uint32_t top);
void x86_wide_warp(gen *g); /* before a call of C */
void x86_wide_end(gen *g, uint32_t blk, const br_kins *i);

/* x86_lanes.c */
typedef enum x86_by { X86_BY_C, X86_BY_CODE, X86_BY_BOTH } x86_by;
/* Code for a step, of one warp, or for what of it does not go to slow, to C. */
x86_by x86_lanes(gen *g, const br_kins *i, uint32_t slow);

/* x86_part.c */
bool x86_part(gen *g, uint32_t blk, const br_kins *i);

/* x86_line.c */
void x86_line_find(gen *g);
bool x86_first(const gen *g, uint32_t v);
void x86_line_region(gen *g);
br_x86_arg x86_line_at(gen *g, unsigned group);
/* Code that looks where a group's accesses go: all within its window of memory,
 * or to miss; never one, or to bail. */
typedef void x86_look(gen *g, unsigned group, uint32_t miss, uint32_t bail);
/* All groups. What no window holds is asked for, once; then all are looked at
 * again, as C does not keep the registers. */
void x86_looks(gen *g, x86_look *at, uint32_t bail);
bool x86_line_holds(gen *g, uint32_t c);
void x86_line_bail(gen *g, uint32_t label);
void x86_line_end(gen *g);
void x86_line_edge(gen *g, uint32_t blk, uint32_t e);
uint32_t x86_line_bail_out(gen *g, uint32_t region);
/* An access into its group; reach: bytes to its last lane, if the address is that
 * of a quarter's first. */
void x86_line_join(gen *g, uint32_t ins, int32_t reach);
/* Whether an instruction's argument has to be there for some warps alone. */
typedef bool x86_asks(const gen *g, const br_kins *i, unsigned a);
bool x86_take_firsts(gen *g, const br_kins *i, x86_asks *asks);
/* What values are, from `best` on until no look changes any; sort: of each block
 * before, or NULL. */
typedef void x86_sort_fn(gen *g, const br_kblk *b);
typedef bool x86_look_fn(gen *g, const br_kins *i);
void x86_find(gen *g, uint8_t best, x86_sort_fn *sort, x86_look_fn *look);

/* x86_plane.c */
void x86_plane_find(gen *g);
void x86_plane_region(gen *g);
bool x86_plane_holds(gen *g, uint32_t c);
void x86_plane_edge(gen *g, uint32_t blk, uint32_t e);

/* one instruction */
void e3(gen *g, br_x86_op op, unsigned d, unsigned a, unsigned b);
void e3i(gen *g, br_x86_op op, unsigned d, unsigned a, unsigned b, int imm);
void e2(gen *g, br_x86_op op, unsigned d, unsigned a);
void e2i(gen *g, br_x86_op op, unsigned d, unsigned a, int imm);
void em(gen *g, br_x86_op op, unsigned d, br_x86_arg m);
void e3m(gen *g, br_x86_op op, unsigned d, unsigned a, br_x86_arg m);
void es(gen *g, br_x86_op op, br_x86_arg m, unsigned s);
void ei(gen *g, br_x86_op op, br_x86_arg m, int64_t imm);
void ej(gen *g, br_x86_op op, uint32_t label);
uint32_t x86_site_of(gen *g, const br_kins *i);

#endif
