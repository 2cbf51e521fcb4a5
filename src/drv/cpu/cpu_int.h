/* cpu_int.h - phases: what a step is made of.
 *
 * A graph becomes a list of phases once; a step runs them (cpu_pool.h). What a
 * phase reads and writes is known beforehand but for the number of rows, so a
 * phase is a kind, views of memory, and the node it came from.
 *
 *   MATMUL x3 of one x    quantise x | multiply by all three | ...
 *   RMS_NORM              rows
 *   FLASH_ATTN            (head of keys, rows)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_INT_H
#define BR_CPU_INT_H

#include "base/thread.h"
#include "drv/cpu/cpu.h"
#include "drv/cpu/cpu_ops.h"
#include "drv/cpu/cpu_tune.h"
#include "drv/ref/ref_int.h"

enum {
    CPU_MAX_PARTS = 4,
    CPU_MANY_ROWS = 16, /* from so many on rows are a prompt's */
    /* Workers may read a row that a node was the last to read while nodes up to
     * so many later write theirs (cpu_fuse.c): from ROPE past ROPE, KV_WRITE and
     * BARRIER to attention; with norms of queries, keys and values and TEMP_SCALE
     * eight, and never CPU_MAX_LAG. */
    CPU_LAG = 4,
    CPU_MAX_LAG = 9,
};

/* A matrix of the model, packed; slices (experts, heads) one after another. */
typedef struct cpu_mat {
    br_mat m;
    uint64_t slices, at;     /* where the first begins in the packed block */
    const br_gguf_tensor *t; /* NULL: no matrix */
} cpu_mat;

/* A matrix in a phase that multiplies, and where its products go. */
typedef struct cpu_part {
    const cpu_mat *m;
    const uint8_t *act; /* NULL: none of this part */
    uint32_t o0, o1;    /* outputs of the matrix; o0 goes to column 0 */
    float *y;
    size_t stride;
    const float *bias;
} cpu_part;

typedef struct cpu_phase cpu_phase;
typedef struct cpu_worker cpu_worker;

/* What heads of x go through before attention or a page has them, in a step of
 * one row: those of norm, turn (ROPE) and heat (TEMP_SCALE) that are not NULL. */
typedef struct cpu_chain {
    const ref_view *x;
    const cpu_phase *norm, *turn, *heat;
    const cpu_phase *first; /* of them; none: who has them */
} cpu_chain;

typedef struct cpu_kind {
    uint32_t (*tiles)(br_cpu *c, cpu_phase *p);
    void (*tile)(br_cpu *c, const cpu_phase *p, uint32_t tile, cpu_worker *w);
} cpu_kind;

typedef void cpu_rows_fn(br_cpu *c, const cpu_phase *p, uint32_t t0,
                         uint32_t t1, cpu_worker *w);

/* cos and sin of each row's position, for a table of frequencies. */
typedef struct cpu_table {
    const float *freq;
    float scale;
    int64_t n;        /* pairs */
    float *cos, *sin; /* [max_rows][n] */
} cpu_table;

struct cpu_phase {
    const cpu_kind *kind;
    const br_ir_node *n;
    cpu_rows_fn *rows;       /* of the kind cpu_rows */
    bool want;               /* has the rows that want logits, only */
    bool late;               /* what it writes only those are asked for */
    uint8_t gather, scatter; /* bindings that stand apart, a bit each */
    uint32_t n_rows, per;    /* set by tiles(): rows, rows or panels a tile */
    uint32_t n_done;         /* nodes from n on that are done after it */
    ref_view in[BR_IR_MAX_BINDINGS], out[BR_IR_MAX_BINDINGS];
    /* quantise: x of in[0], `pieces` of n_in each, into act */
    uint8_t *act;
    int form;
    uint32_t n_in, pieces;
    bool pick; /* only rows that want logits, one after another */
    /* multiply */
    cpu_part part[CPU_MAX_PARTS];
    uint32_t n_parts;
    bool by_expert, pairs; /* rows of the plan; act has a row for each pair */
    bool by_head;          /* slices are heads; rows of act by head */
    const cpu_table *table;
    float *temp; /* memory of the phase and those that follow it */
    /* in a step of one row (cpu_fuse.c): */
    bool inside;      /* a product near it does what it does */
    bool norms;       /* each worker has a norm of its own, */
    uint32_t n_forms; /* and so many forms of it, phases before */
    bool glu;
    const float *add;       /* to what is multiplied; NULL: nothing */
    float *into;            /* where then it, or GLU, goes */
    const cpu_phase *keep;  /* attention: KV_WRITE, or none of it */
    cpu_chain chains[3];    /* of queries, keys, values */
    const cpu_phase *heads; /* product: attention that makes them of it */
};

/* Which rows each expert is asked for, from the ids of the layer at hand. */
typedef struct cpu_moe {
    uint32_t n_active;
    uint32_t *expert, *start; /* [n_active + 1] */
    uint32_t *row, *pair;     /* row, and row * k + rank */
    uint32_t *count;          /* [experts] */
} cpu_moe;

/* Blocks of a tile of attention that another does (cpu_lend.c). */
typedef struct cpu_lent {
    uint32_t tile, blocks; /* its last ones */
} cpu_lent;

/* How a step's attention is cut into tiles (cpu_seq.c). */
typedef struct cpu_split {
    uint32_t n_groups, span;    /* of rows; blocks of a tile */
    uint32_t heads;             /* of keys in a tile */
    bool any;                   /* group has more spans than one */
    uint32_t *first;            /* [n_groups + 1]: its first span */
    size_t *at;                 /* [n_groups]: its part of kept_blocks */
    bool paced;                 /* what a block takes a thread is measured */
    uint32_t n_tiles;           /* and one more for each that lends */
    uint32_t n_lent, most_lent; /* of one */
    cpu_lent *lent;             /* [n_threads] */
} cpu_split;

/* Numbers of blocks that wait for their fold: 8 MB, touched as far as needed.
 * 32 heads of 128 fill it at 129,000 tokens; longer pasts are not split into
 * spans, and a tile lends as many blocks as have room. */
enum { CPU_KEPT = 2 << 20 };

struct cpu_worker {
    ref_scratch ref;
    float *att;     /* of br_cpu_att */
    float *wide;    /* the widest row */
    uint8_t *loose; /* br_mul's; NULL: no matrix is tight */
    /* the row of a step of one row that it has made for a phase */
    uint8_t *act[BR_FORM_COUNT];
    const cpu_phase *has;
    uint64_t has_step;
    double pace; /* of attention: ns a block, lately; 0: not known */
};

struct br_cpu {
    br_arena arena;
    br_values v;
    br_cpu_config c;
    br_isa isa;
    const br_cpu_ops *ops;
    void (*attend)(const br_cpu_att *a); /* one of ops; takes so many */
    uint32_t att_lines;                  /* lines at a time */
    uint32_t n_threads; /* of the step that runs; of all, before the first */
    br_cpu_tune tune;
    cpu_mat *mat;          /* [n_values] */
    const uint8_t *packed; /* in packed_block, kept or room */
    uint8_t *packed_block;
    uint64_t packed_bytes;
    size_t loose_bytes; /* of each worker */
    bool loose;         /* BF16 stays as it is: it did not fit twelve bits */
    br_file_map kept;   /* the file, where it was there */
    uint8_t *room;      /* its bytes, where it is new */
    size_t room_bytes;
    br_str kept_path;
    uint8_t kept_key[32];
    br_out out; /* while they are packed: keeps */
    bool keeps;
    br_thread settler; /* brings the file to the disk, till stop */
    bool settles;
    _Atomic bool stop;
    BR_VEC(cpu_phase) phases;
    BR_VEC(cpu_table) tables;
    cpu_worker *worker;
    float *gather[BR_IR_MAX_BINDINGS];
    cpu_moe moe;
    /* of the step that runs */
    const br_step *step;
    br_state *state;
    float *logits;
    uint32_t *want;  /* rows that want logits */
    uint32_t *group; /* rows that go through keys together begin here, of those
                      * of the phase (cpu_row_at) */
    cpu_split split;
    float *kept_blocks; /* [most_kept] */
    size_t most_kept;   /* CPU_KEPT; tests have less */
    uint32_t n_want;
    bool few;   /* and phases that are late have no others */
    bool alone; /* it has one row, which wants logits, and nobody watches */
    bool ended; /* it was cancelled: no further phase has tiles */
    uint64_t n_steps;
    uint64_t n_lent; /* tiles of attention that lent blocks */
    br_cpu_work work;
    br_watch watch;
};

/* Rows of a phase in the step that runs. Those of late phases stand where all
 * of them would: c->want says which they are. */
static inline bool
cpu_has_few(const br_cpu *c, const cpu_phase *p)
{
    return p->late && c->few;
}

static inline uint32_t
cpu_rows_in(const br_cpu *c, const cpu_phase *p)
{
    return p->want || cpu_has_few(c, p) ? c->n_want : c->step->n_rows;
}

/* Which row of the step is row i of those. */
static inline uint32_t
cpu_row_at(const br_cpu *c, const cpu_phase *p, uint32_t i)
{
    return cpu_has_few(c, p) ? c->want[i] : i;
}

/* cpu_plan.c: the phases of the graph; matrices are planned, not packed. */
br_code cpu_plan(br_cpu *c, br_status *st) BR_MUST_USE;
/* Plans the matrix of an input, once; NULL: st says why. */
cpu_mat *cpu_matrix(br_cpu *c, const br_ir_node *n, int in, br_status *st);
br_code cpu_moe_new(cpu_moe *m, br_arena *a, size_t pairs, size_t experts,
                    br_status *st) BR_MUST_USE;
/* cpu_fuse.c: for how many nodes values rest, in the arena, NULL: no memory; what
 * products do besides in a step of one row; a worker's own part of it before its
 * first tile. */
uint8_t *cpu_fuse_rest(const br_ir *g, br_arena *a);
br_code cpu_fuse(br_cpu *c, br_status *st) BR_MUST_USE;
void cpu_fuse_row(br_cpu *c, const cpu_phase *p, cpu_worker *w);
typedef struct cpu_heads {
    int64_t from, to;
} cpu_heads;
/* The queries of heads g of keys, as attention has them; keeps their keys and
 * values, too. */
const float *cpu_fuse_heads(br_cpu *c, const cpu_phase *p, cpu_heads g,
                            bool keep, cpu_worker *w);
/* cpu_pack.c: all matrices planned anew, none tight; what they come to, packed. */
br_code cpu_loosen(br_cpu *c, br_status *st) BR_MUST_USE;
br_code cpu_pack(br_cpu *c, br_status *st) BR_MUST_USE;

/* cpu_cache.c: packed weights that are kept; memory for those that shall be
 * (NULL: they shall not), which cpu_cache_keep names; the end of both. */
bool cpu_cache_find(br_cpu *c);
uint8_t *cpu_cache_room(br_cpu *c);
void cpu_cache_unroom(br_cpu *c); /* the room was too small: another one */
void cpu_cache_keep(br_cpu *c);
void cpu_cache_end(br_cpu *c);

/* cpu_rows.c: opcodes that take rows one by one; NULL: not one of those. */
extern const cpu_kind cpu_rows, cpu_tables;
cpu_rows_fn *cpu_rows_of(const br_ir_node *n);
/* A row, or heads, of a phase that norms: n numbers at x, to y. */
void cpu_norm_row(const br_cpu *c, const cpu_phase *p, const float *x,
                  int64_t n, float *y);
/* n heads of row t of a ROPE, at x, one after another to y. */
void cpu_turn_heads(const br_cpu *c, const cpu_phase *p, size_t t, int64_t n,
                    const float *x, float *y);
cpu_rows_fn cpu_rows_norm, cpu_rows_rope, cpu_rows_nothing, cpu_rows_pick,
    cpu_rows_ref, cpu_rows_join, cpu_rows_shared, cpu_rows_l2, cpu_rows_glu,
    cpu_rows_bias;
/* cpu_mul.c */
extern const cpu_kind cpu_quantise, cpu_multiply, cpu_moe_plan;
/* Pairs of row and rank by expert, rows ascending; w: the experts' matrix. */
void cpu_moe_fill(cpu_moe *m, const br_ir_node *n, const ref_view *ids,
                  const ref_view *w, uint32_t n_rows);
/* cpu_lend.c: how many tiles they are, with those of blocks that are lent. kept:
 * numbers of a block that is. */
uint32_t cpu_lend(br_cpu *c, uint32_t tiles, uint32_t blocks, size_t kept);
void cpu_lend_pace(cpu_worker *w, int64_t ns, uint32_t blocks);
/* Whose blocks they are; a: all of them, then those of the tile. Whether the last
 * is one of them. */
uint32_t cpu_lend_tile(const br_cpu *c, uint32_t tile);
bool cpu_lend_part(const br_cpu *c, uint32_t tile, br_cpu_att *a);
/* cpu_seq.c */
extern const cpu_kind cpu_attention, cpu_fold, cpu_conv, cpu_delta, cpu_scan;
cpu_rows_fn cpu_rows_kv;
/* Row t's part of head h, keys (0) or values (1), to where pages keep it. */
void cpu_keep_head(br_cpu *c, const cpu_phase *p, int i, size_t t, size_t h,
                   const float *x);
/* What attention p, which keeps them, is to write for a worker's heads, called
 * for by then. */
void cpu_call_heads(const br_cpu *c, const cpu_phase *p, uint32_t worker);

#endif
