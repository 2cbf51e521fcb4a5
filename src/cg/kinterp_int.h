/* kinterp_int.h - the state of a launch in the interpreter.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_KINTERP_INT_H
#define BR_KINTERP_INT_H

#include "cg/kinterp.h"

#include <stdatomic.h>

enum { KI_LANES = 32, KI_BARRIERS = 17, KI_MAX_FRAMES = 256 };
/* The last barrier is the cluster's. A block's number there is in an address from this
 * bit on, one more than it is; 0 is the block that asks. */
enum { KI_OF_CLUSTER = BR_KBAR_CLUSTER, KI_RANK_BIT = 24 };

/* Windows of the generic address space, where no memory of a host can lie. */
#define KI_SHARED 0x4000000300000000ull
#define KI_LOCAL  0x4000000200000000ull
#define KI_PARAM  0x4000000100000000ull
#define KI_CODE   BR_KFN_ADDR(0)
#define KI_VARS   0x7a0000000000ull
#define KI_HEAP   0x790000000000ull

typedef uint64_t ki_row[KI_LANES];

/* Of PATIENCE blocks the last TURNS go to all that are pending, one after
 * another; native code gives up after as many jumps back as STARVED turns have. */
enum { KI_PATIENCE = 1024, KI_TURNS = 128, KI_STARVED = 4 };

typedef struct ki_fn {       /* of a function, made when it is first called */
    uint32_t *order, *place; /* position <-> block */
    bool ready;
    bool waits; /* lanes may wait for others: it has atomics, or calls */
} ki_fn;

typedef struct ki_frame {
    const br_kfn *f;
    const ki_fn *k;
    ki_row *vals;
    uint8_t *slots; /* native code: its rows; vals then is lent for a step */
    void *slots_alloc;
    const struct x86_fn *native;
    /* By position: lanes that are to run the block; its terminator alone;
     * that wait at the barrier before it. */
    uint32_t *pend, *tail, *hold;
    uint32_t low;         /* nothing is pending below */
    uint32_t picks, turn; /* blocks run; the last out of turn */
    uint32_t starved;     /* jumps back of native code without an end */
    uint32_t came, mask;  /* lanes that came in; those that have not left */
    uint32_t base, top[KI_LANES]; /* of local memory */
    uint32_t call;                /* position of the call in the frame below */
    uint32_t rest; /* of it: lanes that call something else, after this */
} ki_frame;

typedef struct ki_warp {
    struct ki_block *b;
    uint32_t id;
    uint32_t live; /* lanes not ended */
    BR_VEC(ki_frame) frames;
    uint8_t *local;      /* [lane][local_bytes] */
    uint8_t *local_init; /* check: a byte for each */
    uint32_t local_bytes;
    uint32_t wait[KI_BARRIERS];                          /* lanes */
    uint32_t bar_from[KI_BARRIERS], bar_to[KI_BARRIERS]; /* and their blocks */
    uint32_t arrived[KI_BARRIERS]; /* threads, by bar.arrive */
    uint32_t red_lanes;            /* lanes that wait at a barred */
    uint32_t red_res[KI_LANES];    /* and their result */
    uint32_t red_true;             /* lanes whose predicate holds */
    uint8_t red_op[KI_LANES];
    uint32_t bar_line[KI_LANES];
    uint64_t steps;
    uint32_t clock[KI_LANES]; /* check: of each warp, what this one knows */
    uint32_t meet;            /* check: times its own lanes met */
} ki_warp;

typedef struct ki_touch { /* check: who touched a byte of shared memory */
    uint32_t clock, meet, line;
    uint16_t thread; /* + 1; 0: nobody */
    bool atomic;
} ki_touch;

typedef struct ki_block {
    struct ki_run *r;
    uint64_t number;
    uint32_t ctaid[3];
    uint32_t n_threads, n_warps, n_done;
    ki_warp *warps;
    uint8_t *shared;
    uint32_t shared_bytes;
    uint32_t count[KI_BARRIERS]; /* threads that a barrier waits for; 0: all */
    uint32_t used;               /* barriers where somebody came */
    uint8_t *shared_init;
    ki_touch *wrote, *read_;
} ki_block;

typedef struct ki_run {
    br_klaunch *l;
    const br_kir *m;
    br_status *st;
    ki_fn *fns;
    BR_VEC(br_kregion) regions; /* by address */
    size_t last;                /* the region found last */
    uint8_t *heap;
    uint64_t heap_top;
    _Atomic uint64_t *next;  /* block to start; shared by the workers */
    uint64_t mine, mine_end; /* blocks taken, not begun */
    uint32_t batch;          /* blocks to take at a time; 0: one */
    size_t resident;         /* blocks that are under way */
    uint32_t cluster[3];     /* blocks of one */
    struct ki_block *peers[BR_KMAX_CLUSTER]; /* of it, NULL: ended */
    uint32_t n_peers;                        /* 0: none has several */
    _Atomic bool *stop;                      /* another worker failed */
    const struct br_x86 *native; /* machine code; NULL: interpreted */
    const struct x86_fn *wide;   /* and of whole blocks, or NULL */
    bool no_shared;              /* the kernel cannot reach shared memory */
    bool gives_way;              /* the warp at hand waits for an mbarrier */
    struct x86_ctx *ctx;
    ki_row **rows; /* native: of each function, to step in */
    /* for messages */
    const ki_warp *w;
    const br_kins *ins;
    unsigned lane;
    uint32_t pos;          /* of the block that runs */
    BR_VEC(uint64_t) told; /* findings reported: (kind, line) */
} ki_run;

#define ki_each_lane(lane, mask)                     \
    for (unsigned lane = 0; lane < KI_LANES; lane++) \
        if ((mask) >> lane & 1)

typedef enum ki_access { KI_READ, KI_WRITE, KI_ATOMIC } ki_access;

/* kinterp_mem.c */
const char *ki_how_text(ki_access how);
/* kinterp_global.c: of global memory; NULL: a fault, which is told. */
void *ki_global_at(ki_run *r, uint64_t addr, unsigned bytes, ki_access how);
void *ki_at(ki_run *r, ki_warp *w, unsigned space, uint64_t addr,
            unsigned bytes, ki_access how); /* NULL: status is set */
br_code ki_fault(ki_run *r, const char *fmt, ...) BR_PRINTF(2, 3);
br_code ki_memory(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec);
uint64_t ki_window(unsigned space);
/* Whether a function can say an address of shared memory. */
bool ki_says_shared(const br_kir *m, const br_kfn *f);
br_code ki_local_room(ki_run *r, ki_warp *w, uint64_t bytes);
uint64_t ki_load(const void *p, unsigned bytes);
void ki_store(void *p, uint64_t v, unsigned bytes);

/* kinterp_warp.c */
br_code ki_lanes(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec);

/* kinterp.c */
br_code ki_step(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec);
uint64_t ki_special(const ki_warp *w, br_ksreg s, unsigned lane);
uint64_t ki_address(ki_run *r, const ki_frame *f, const br_kins *i, uint64_t a);
/* Lanes at a RET or EXIT. */
br_code ki_leave(ki_run *r, ki_warp *w, const br_kins *i, uint32_t mask);
void ki_end_lanes(ki_warp *w, uint32_t mask);
br_code ki_check_launch(const br_klaunch *l, br_status *st);
/* Blocks from *next on, until there are none or *stop. */
br_code ki_run_grid(ki_run *r);
/* The next block, in place of one that ended; false: there is none. */
bool ki_next_block(ki_block *b);
br_code ki_run_init(ki_run *r);
void ki_run_fini(ki_run *r);

/* kinterp_bar.c */
void ki_barrier(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec);
bool ki_open_barriers(ki_block *b);
bool ki_open_cluster(ki_run *r);
/* that barrier of all blocks of one */ /* those that are full; whether any was */
br_code ki_deadlock(ki_run *r, ki_block *b); /* says who waits */

/* kinterp_call.c */
ki_row *ki_rows(const br_kfn *f);
br_code ki_fn_ready(ki_run *r, uint32_t fn);
br_code ki_call(ki_run *r, ki_warp *w, const br_kins *i, uint32_t exec);
br_code ki_push(ki_run *r, ki_warp *w, uint32_t fn, uint32_t mask);
void ki_pop(ki_run *r, ki_warp *w);
/* The end of a function that was called: back, or on to what the other lanes
 * of the same instruction call. */
br_code ki_called(ki_run *r, ki_warp *w);
br_code ki_return(ki_run *r, ki_warp *w, uint32_t mask);

/* kinterp_check.c; with check only */
void ki_finding(ki_run *r, const char *kind, const char *fmt, ...)
    BR_PRINTF(3, 4);
void ki_check_shared(ki_run *r, ki_warp *w, uint64_t addr, unsigned bytes,
                     ki_access how);
void ki_check_local(ki_run *r, ki_warp *w, uint64_t addr, unsigned bytes,
                    ki_access how);
void ki_check_barrier(ki_run *r, ki_warp *w, uint32_t exec);
void ki_check_met(ki_block *b, const uint32_t *lanes);

static inline ki_frame *
ki_top(const ki_warp *w)
{
    return &w->frames.at[w->frames.n - 1];
}
static inline uint64_t *
ki_arg(const ki_frame *f, const br_kins *i, unsigned n)
{
    return f->vals[f->f->args.at[i->arg + n]];
}

#endif
