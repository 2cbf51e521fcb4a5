/* x86_int.h - what generator and runtime of the x86-64 target share.
 *
 * A value of a warp has a row in its frame: 32 lanes of 32 bits (narrow ones
 * extended by zeros), or of 64, or a bit each for a predicate; a uniform one
 * has 8 bytes, a uniform predicate 0 or -1 in them. One that goes evenly from
 * lane to lane (kir_uniform.c) has its first lane of each quarter where its row
 * would be, so that one instruction computes it for the whole warp. Code works
 * on a quarter of a row, 8 lanes, at a time; with AVX-512 on two quarters:
 *
 *   rbx  x86_ctx       rbp  masks of the frame     r12  its rows
 *   r13d lanes of the block    r14  32 * quarter   r15  quarter
 *
 * Two quarters take it that lanes go on evenly from one to the other: blocks in
 * which they do not have code for quarters (x86_launch).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_X86_INT_H
#define BR_X86_INT_H

#include "base/thread.h"
#include "cg/kinterp_int.h"
#include "cg/ktarget.h"
#include "cg/x86/x86_asm.h"

enum { X86_QUARTERS = 4, X86_LANES = 8, X86_STEPS = BR_KSTEP_MAX };
enum { X86_MOST = 16 };      /* lanes at a time */
enum { X86_FUEL = 1 << 14 }; /* jumps back in a turn */
enum { X86_GROUPS = 12 };    /* of accesses to be checked together */

/* A warp of a block as code for whole blocks sees it (x86_wide.c). */
typedef struct x86_seat {
    uint8_t *rows;
    uint32_t *masks;
    ki_warp *warp;
} x86_seat;

/* Memory that a load or store found last: a row of lanes that begins at addr is
 * in it where addr - lo < size; a table may be too small for one, so lanes that
 * are anywhere have bytes of their own to look at. host: of address 0. */
typedef struct x86_window {
    uint64_t lo, size, host;
    uint64_t any_lo, any_bytes, any_host;
} x86_window;

typedef struct x86_ctx {
    uint32_t bits[X86_QUARTERS][X86_LANES];   /* 1 << lane */
    uint32_t lanes[X86_QUARTERS][X86_LANES];  /* number of the lane */
    uint64_t steps[X86_STEPS][X86_MOST];      /* k << row, by lane k */
    uint32_t steps32[X86_STEPS][X86_MOST];    /* the same */
    uint32_t evens[X86_MOST], odds[X86_MOST]; /* 2 k, 2 k + 1 */
    uint64_t save[32][8], save_k[8];          /* ymm or zmm registers, masks */
    uint32_t exec, edge, fuel, result;
    uint32_t rest; /* fuel that who gave way had */
    uint32_t left; /* lanes that ended and that C has not heard of */
    uint64_t shared_bytes;
    uint8_t *shared;
    const uint8_t *params;
    x86_window *windows, **tables; /* of each function, then its rows code */
    uint32_t (*step)(struct x86_ctx *, uint32_t site, uint32_t exec);
    uint32_t (*leave)(struct x86_ctx *, uint32_t site, uint32_t exec);
    uint32_t (*choose)(struct x86_ctx *, uint32_t site, uint32_t exec);
    uint32_t (*memory)(struct x86_ctx *, uint32_t site, uint32_t quarter);
    ki_run *run;
    ki_warp *warp;
    const struct x86_fn *fn;
    br_code code;                       /* of a fault */
    x86_seat *seats, *seats_end, *seat; /* seat: where code for blocks left */
    /* By step: how far the block's last thread is from its first; where the
     * memory of x86_line.c's accesses is. */
    uint64_t reach[X86_STEPS + 1 + BR_KSTEP_ODDS], hosts[X86_GROUPS];
    uint64_t end; /* 2 * threads of a block: what its loop counts */
    /* Of x86_plane.c's accesses: where the next warp's quarters are, and how far
     * warps lie apart; how many of them are behind the first. */
    uint64_t plane_host[X86_GROUPS][4], plane_by[X86_GROUPS][4], warp_steps;
    x86_seat *last_seat;
    /* Blocks that code for lines may go on with, ctaid.x by one each. */
    uint32_t again, *ctaid_x;
    uint32_t (*locate)(struct x86_ctx *, uint32_t site, uint64_t addr);
    uint64_t
        stream_from; /* bytes of memory that stores go past the caches to */
    bool streams;
    uint32_t bails; /* of code for lines, one after another */
} x86_ctx;

/* Where code calls C: an instruction, and for memory the registers that its
 * operands are in: address, then data; of 64 bits two. */
typedef struct x86_site {
    uint32_t ins, pos;
    uint8_t reg[10];
    bool uniform;
} x86_site;

/* What step says, and code: X86_ROWS, that a value does not go evenly, though
 * it should; code that knows rows alone has to go on from region ctx.result.
 * Code for blocks: X86_LEFT, all go on at position ctx.result; X86_ENDED; for
 * lines and planes X86_BAIL, that for blocks has to go on from region ctx.result;
 * X86_PARTED, as X86_ROWS, the lanes ctx.exec of warp ctx.seat in the region, all
 * others wait as their masks say. */
enum {
    X86_ON,
    X86_CALLED,
    X86_FAULT,
    X86_ROWS,
    X86_LEFT,
    X86_ENDED,
    X86_BAIL,
    X86_PARTED
};

/* What of a module code is for: any warp; one whose values are all rows; blocks
 * of full warps that keep together; such blocks in one dimension; in two, where a
 * row of the block is a warp or a part of one. */
typedef enum x86_kind {
    X86_WARPS,
    X86_KEEP_ROWS,
    X86_BLOCKS,
    X86_LINES,
    X86_PLANES,
    X86_KINDS
} x86_kind;

/* x86_fn.line: it goes evenly through the block; for thread 0, or for planes three
 * warps, is enough; it is the same in all warps (planes). */
enum { X86_LINE = 1, X86_FIRST = 2, X86_SAME = 4 };

#define X86_NO_SLOT 0xffffffffu

typedef struct x86_fn {
    const br_kfn *f;
    const struct br_x86 *own;
    uint32_t *order, *place;
    uint8_t *uniform, *step, *line; /* by value */
    br_ksteps odd;                  /* steps that are no powers of two */
    uint32_t n_looks; /* of lines and planes: accesses that gain by it */
    /* Offset of a region's code; then, of rows, of its end, and for blocks, by
     * position, of the terminator. */
    uint32_t *region_at, n_regions;
    uint32_t *slot; /* by value: bytes from r12 */
    uint32_t frame_bytes;
    uint32_t *at; /* by position: offset of code */
    uint32_t code_from, code_to;
    BR_VEC(x86_site) sites;
    BR_VEC(uint32_t) presets; /* known when a frame is made */
    uint32_t n_block_presets; /* the first of them: ctaid */
} x86_fn;

struct br_x86 {
    const br_kir *m;
    x86_fn *fns;
    uint8_t *code;
    size_t bytes;
    bool alone; /* wants one thread */
    bool zmm;   /* AVX-512 */
    x86_kind kind;
    struct x86_more *more;
};

/* The same module as other code, made when it is needed: as rows alone by blocks
 * with 8 lanes in two of their rows and by an index that runs over 2^32; a
 * kernel for blocks by its first launch of full warps; with AVX2 by blocks with
 * 16 lanes in two rows, but not 8. */
typedef struct x86_more {
    br_mutex lock;
    struct br_x86 *rows, **wide; /* wide: by function, then lines', planes' */
    struct br_x86 *narrow;       /* of code with AVX-512: with AVX2 */
    unsigned processors;         /* 0: not counted yet */
    uint64_t cache_bytes;        /* 0: not asked yet */
    uint64_t *block_ns; /* by function: what a block took; 0: not yet */
} x86_more;

static inline bool
x86_wide(const x86_fn *fn)
{
    return fn->own->kind >= X86_BLOCKS;
}

/* Whether a value is kept as its first lanes. */
static inline bool
x86_even(const x86_fn *fn, uint32_t v)
{
    return fn->own->kind != X86_KEEP_ROWS && !fn->uniform[v] &&
           fn->step[v] != BR_KSTEP_NONE;
}

/* What it goes by from lane to lane, if it does. */
static inline int64_t
x86_step_by(const x86_fn *fn, uint32_t v)
{
    return br_kstep_by(&fn->odd, fn->step[v]);
}

/* x86_gen.c: code of a function behind what is there already. */
br_code x86_gen_fn(br_x86_asm *a, const br_kir *m, x86_fn *fn, br_status *st);
void x86_gen_entry(br_x86_asm *a);

/* x86_module.c */
/* No code yet; x86_free, whatever happens. */
br_code x86_new(struct br_x86 **out, const br_kir *m, x86_kind kind, bool zmm,
                br_status *st);
/* Whether this machine, and no flag, has AVX-512 as code uses it. */
bool x86_has_zmm(void);
br_code x86_fn_room(struct br_x86 *x, uint32_t n, br_status *st);
br_code x86_compile_all(br_kcode **out, const br_kir *m, br_status *st);
br_code x86_compile_avx2(br_kcode **out, const br_kir *m, br_status *st);
void x86_free(br_kcode *code);
br_code x86_text(const br_kcode *code, uint32_t fn, br_str *out, br_status *st);
br_code x86_rows_code(const struct br_x86 *x, br_status *st);
br_code x86_narrow_code(const struct br_x86 *x, br_status *st);
/* For blocks, or lines. NULL: a kernel that has none. */
br_code x86_wide_code(const struct br_x86 *x, x86_kind kind, uint32_t fn,
                      const x86_fn **out, br_status *st);

/* x86_wide.c: whether a kernel's code for blocks may be made. */
bool x86_wide_able(const br_kfn *f);

/* x86_warp.c */
uint32_t x86_lane_from(unsigned mode, uint32_t lane, uint32_t by, uint32_t c,
                       bool *in_range);
/* false: it has to be done lane by lane */
bool x86_shuffle(const ki_frame *f, const br_kins *i, uint32_t exec);

/* x86_rows.c: a pure operation; false: the evaluator does it */
bool x86_rows(ki_frame *f, const br_kins *i, uint32_t exec, bool uniform);

/* x86_narrow.c: of 1 or 2 bytes; false: nothing is done */
bool x86_narrow(x86_ctx *c, uint32_t site, const br_kins *i, uint32_t exec);

/* x86_atom.c: of global memory; false: nothing is done */
bool x86_atomic(x86_ctx *c, uint32_t site, ki_frame *f, const br_kins *i,
                uint32_t exec);

/* x86_line.c */
uint32_t x86_locate(x86_ctx *c, uint32_t site, uint64_t addr);
void x86_spread(const x86_fn *fn, const x86_seat *seats, uint32_t n);
/* x86_plane.c */
void x86_plane_spread(const x86_fn *fn, const x86_seat *seats, uint32_t n);

/* x86_launch.c */
br_code x86_launch(br_kcode *code, br_klaunch *l, br_status *st);

/* x86_run.c */
void x86_calls(x86_ctx *c); /* what code may call */
/* for the interpreter's frames */
br_code x86_frame(ki_run *r, ki_warp *w, ki_frame *f, uint32_t fn);
/* The frame of a warp whose block has become another one. */
void x86_again(const ki_warp *w, ki_frame *f);
br_code x86_enter(ki_run *r, ki_warp *w, uint32_t pos);
uint64_t x86_get_lane(const ki_frame *f, uint32_t v, unsigned lane);
void x86_put_lane(ki_frame *f, uint32_t v, unsigned lane, uint64_t bits);
void x86_fetch(const ki_frame *f, const br_kins *i, uint32_t exec);
/* A block that has not begun, if code for blocks is there: it ends, and those
 * after it in its place, or goes on warp by warp. *more: false, there are none
 * after it. */
br_code x86_block(ki_run *r, ki_block *b, bool *more);

#endif
