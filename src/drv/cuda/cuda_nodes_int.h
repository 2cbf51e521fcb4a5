/* cuda_nodes_int.h - the inside of cuda_nodes.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_NODES_INT_H
#define BR_CUDA_NODES_INT_H

#include "../../../kernels/cuda/stay_table.h"
#include "drv/cuda/cuda_api.h"
#include "drv/cuda/cuda_nodes.h"
#include "drv/cuda/cuda_upload.h"

enum cun_fn {
#define K(name) CUN_##name,
#include "drv/cuda/cuda_nodes.def"
#define K(name) CUN_##name,
#include "drv/cuda/cuda_experts.def"
    CUN_COUNT,
    CUN_EXPERTS = CUN_pack_mx /* from here on: of a module of their own */
};

/* How many blocks: of so many threads for all numbers; or x blocks a row, rows
 * or tiles of rows below each other; or of a product on tensor cores, by whose
 * x rows of weights, or tiles of them; or of attention, x KV heads a tile of
 * queries; or one a row, of x threads. Or of experts (cuda_experts.c): lists; places;
 * x tiles of those who are asked. */
enum cun_grid {
    CUN_NUMBERS,
    CUN_ROWS,
    CUN_TILES,
    CUN_MMA,
    CUN_PRODUCT,
    CUN_QUERIES,
    CUN_ROW,
    CUN_LISTS,
    CUN_PLACES,
    CUN_ASK
};

typedef struct cun_launch {
    uint8_t fn, grid;
    bool want;   /* of the rows that want logits only */
    bool last;   /* of its node */
    bool lone;   /* only where somebody looks at every node ... */
    bool joint;  /* ... and does for several nodes where nobody does */
    bool lean;   /* then nobody reads y */
    bool turns;  /* the attention after it can do it */
    bool spread; /* a block a multiprocessor, by shared memory */
    bool single; /* the same by registers, where there is a kernel for it */
    bool apart;  /* its reader adds the pieces */
    bool
        picks; /* rows that want logits; where all do, they are there already */
    bool whole;          /* then it reads those, with factors of their own */
    uint32_t of, turn;   /* 1 + launch: whose pieces it reads, what it can do */
    uint32_t calls;      /* 1 + launch: the attention whose keys it may call */
    uint32_t node, also; /* also: another node that it does, or BR_IR_NONE */
    uint32_t x;          /* numbers of a row; blocks */
    uint32_t shared;
    uint32_t times; /* rows for each of the step's; 0: one */
    uint32_t experts;
    uint64_t dense; /* its matrix for few rows, or 0 */
    struct br_nd_args a;
} cun_launch;

typedef struct cun_place { /* of the step's block, in bytes */
    size_t slot, position, token, want, tile, at, tables, total;
} cun_place;

enum {
    CUN_EMBEDS = 4,
    CUN_GRAPHS = 64, /* rows of a step that is one launch of a graph */
    CUN_PARTS = 3,   /* matrices side by side in one product */
    CUN_FULL = 100   /* blocks that are enough for a device */
};
/* Weights are pieces of one allocation each. */
enum cun_class { CUN_MATRICES, CUN_ASKED_TILES, CUN_DENSE, CUN_CLASSES };
typedef struct cun_pile {
    uint64_t at, end; /* of what is left */
} cun_pile;

typedef struct cun_fresh { /* entries of the block's tables */
    uint32_t at, n;
} cun_fresh;

/* The next step of a launch that stays, told before this one is over (cuda_ahead.c). */
typedef struct cun_ahead {
    bool (*fn)(void *arg); /* br_cun_ahead */
    void *arg;
    const br_step *step; /* at hand, and is to be asked about; or NULL */
    const br_cun_pick *how;
    int64_t from_ns;  /* when the device had it, or could */
    int64_t due_ns;   /* when to ask */
    bool known;       /* there was one in this launch: */
    uint32_t took_ns; /* the latest */
    uint32_t rows;    /* that are told, and not asked for yet; 0: none are */
    uint32_t epoch;   /* of their head */
    int32_t slot[BR_STAY_ROWS], position[BR_STAY_ROWS];
    br_cun_pick pick[BR_STAY_ROWS];
} cun_ahead;

/* Steps from the host's memory (cuda_stay.c). */
typedef struct cun_loop {
    bool off; /* the driver, or memory, does not do for a launch that stays */
    void *mod, *fn;
    struct br_stay_host *host; /* pinned */
    uint64_t state;            /* br_stay_state */
    void *graph[CUN_GRAPHS + 1];
    uint32_t like, n_like; /* the latest n steps had so many rows */
    uint64_t hands; /* of br_cuda_alone, at the latest step; steps since */
    uint32_t quiet; /* it was another */
    uint32_t epoch; /* of the latest head */
    uint32_t rows;  /* of the launch that stays; 0: there is none */
    cun_ahead ahead;
} cun_loop;

typedef struct cun_embed { /* a table whose rows the step brings */
    const br_gguf_tensor *t;
    uint32_t value, cols;
    size_t rows; /* in the block, in bytes */
} cun_embed;

struct br_cun {
    bool counts;        /* what it would take, and takes none (cuda_memory.c) */
    br_cuda cu;         /* or */
    br_nd_dev *dev;     /* cuda_memory.c: whose memory it is */
    br_nd_stats opened; /* what opening cost */
    br_cun_config c;
    br_values v;
    br_arena arena;
    void *mod, *experts_mod, *fn[CUN_COUNT];
    BR_VEC(uint64_t) held; /* device memory */
    BR_VEC(cun_launch) launches;
    struct br_nd_mat *mat; /* [n_values] */
    cun_pile pile[CUN_CLASSES];
    uint64_t pool[BR_MAX_KV_GROUPS];
    uint64_t gather[BR_IR_MAX_BINDINGS], xq, xd, hidden_rows;
    uint64_t slots;        /* [n_slots][slot_elems] */
    bool *asks;            /* [n_values] a matrix that experts.cu may ask */
    bool *far;             /* [n_nodes] its experts are in the host's memory */
    BR_VEC(void *) pinned; /* those */
    struct cun_asked {     /* what experts that are tiles read, and where */
        uint64_t xq, xd, pair, part, n, zeros;
        uint32_t places; /* there is room for */
        uint32_t k;      /* of a row, at most */
        uint64_t cols;
    } asked;
    br_cuda_upload *upload; /* while the model is loaded */
    bool plain; /* older than sm_90, or not NVIDIA's: portable kernels alone */
    bool has_experts;
    bool lost;     /* a slot's state did not arrive */
    uint64_t left; /* for experts on the device */
    uint64_t raw,
        raw_bytes;       /* a piece of a matrix as a file has it, on its way */
    uint64_t sums, met;  /* of pieces of products */
    uint64_t glu, glu_d; /* as xq and xd: what a product makes of two */
    uint32_t glu_cols;   /* the widest */
    uint64_t n_sums, n_met; /* so many, of BR_ND_TILE_TOKENS tokens */
    /* by rows, all of which want logits; [1]: each of a slot of its own */
    void *graph[2][CUN_GRAPHS + 1];
    uint64_t ones;  /* [padded]: factors of f16 that has none */
    uint64_t block; /* the step, as the device sees it */
    uint8_t *stage; /* as it is made */
    cun_place at;
    uint32_t *listed; /* [n_slots][group][table_n] pages as they were told */
    BR_VEC(cun_fresh) fresh; /* what the step at hand changed of the tables */
    uint32_t n_fresh;        /* entries */
    bool fetched;         /* the next launch waits for all of the one before */
    int64_t begun_ns;     /* when the step at hand was staged */
    int32_t *last;        /* [n_slots] its last position in this step */
    int32_t *first;       /* [n_slots] its least one */
    uint32_t padded;      /* rows that xq has room for */
    uint32_t table_n;     /* pages of a slot and group at most */
    uint32_t n_rows;      /* of the latest step */
    uint32_t most_per_kv; /* query heads of a KV head */
    uint32_t tile_rows;   /* most of a tile of attention */
    uint32_t n_tiles, least_tile, most_tile; /* of the latest step; rows */
    bool alone;                              /* its rows are of a slot each */
    bool all_want;                           /* logits */
    cun_embed embed[CUN_EMBEDS];
    uint32_t n_embeds;
    void *pick_mod, *pick, *pick_stage; /* cuda_pick.c */
    uint64_t pick_space, pick_weights, pick_io;
    uint32_t pick_rows, *pick_turn;
    cun_loop stay;
    struct cun_meanwhile { /* br_cun_meanwhile; done: in this step */
        void (*fn)(void *arg);
        void *arg;
        bool done;
    } meanwhile;
    uint32_t n_want; /* rows of the latest step that wanted logits */
    bool busy;       /* with it: its block is still read */
    float *hidden, *watched;
    br_watch watch;
    uint64_t weight_bytes, all_bytes, sent, steps, kv_bytes;
    uint64_t spared, few_steps; /* bytes of weights in a step of few rows */
    br_cun_costs costs;         /* rest: all memory that was asked for */
};

/* Factors of rows in xq of which some are about to be picked, whose own are at xd:
 * behind those, as a row has room for one every 32 columns, of 64 at least. */
static inline uint64_t
cun_whole_d(const br_cun *x)
{
    return x->xd + 4ull * x->padded;
}

/* ---- cuda_memory.c, on either device ---- */
const char *cun_tier(const br_cun *x); /* for messages: cuda, amd-t1 ... */
/* Memory that close gives back; shared: the host's in every step. */
br_code cun_alloc(br_cun *x, uint64_t *p, size_t bytes,
                  br_status *st) BR_MUST_USE;
br_code cun_shared(br_cun *x, uint64_t *p, size_t bytes,
                   br_status *st) BR_MUST_USE;
/* Memory of all weights of a class; a piece of it, at a multiple of 256. Devices of
 * other tiers give each piece for itself. */
br_code cun_pile_up(br_cun *x, enum cun_class c, uint64_t bytes,
                    br_status *st) BR_MUST_USE;
br_code cun_take(br_cun *x, enum cun_class c, uint64_t *p, uint64_t bytes,
                 br_status *st) BR_MUST_USE;
br_code cun_zero(br_cun *x, uint64_t p, uint64_t numbers,
                 br_status *st) BR_MUST_USE;
br_code cun_put(br_cun *x, uint64_t to, const void *from, size_t bytes,
                br_status *st) BR_MUST_USE;
/* The same, in order with launches; from stays as it is until cun_wait. */
br_code cun_send(br_cun *x, uint64_t to, const void *from, size_t bytes,
                 br_status *st) BR_MUST_USE;
br_code cun_get(br_cun *x, void *to, uint64_t from, size_t bytes,
                br_status *st) BR_MUST_USE;
br_code cun_use(br_cun *x, br_status *st) BR_MUST_USE; /* by this thread */
br_code cun_wait(br_cun *x, br_status *st) BR_MUST_USE;
/* code, or TIMEOUT where a kernel waited in vain. */
br_code cun_why(const br_cun *x, br_code code, br_status *st) BR_MUST_USE;
/* cuda_weights.c: the matrix of value v, once. */
br_code cun_matrix(br_cun *x, uint32_t v, br_status *st) BR_MUST_USE;
/* What a matrix of the format becomes: some kind of tiles, or as it is. */
enum br_nd_kind cun_form_of(int type);
bool cun_exact_form(const br_cun *x); /* no tiles: arithmetic or device */
/* Into how many pieces (64s of columns each) a matrix's columns are cut. */
uint32_t cun_piece_of(uint64_t tiles, uint32_t blocks);
/* A tensor of two dimensions as tiles m, from row `at` on. squares: 0, or of two
 * matrices whose rows take turns. */
br_code cun_send_tiles(br_cun *x, const br_gguf_tensor *t,
                       const struct br_nd_mat *m, uint32_t at, uint64_t squares,
                       br_status *st) BR_MUST_USE;
/* What a matrix takes; of experts that are tiles their factors alone. */
uint64_t cun_matrix_bytes(const br_cun *x, uint32_t v);
/* What passes through on its way to tiles, at once. */
uint64_t cun_way_of(const br_gguf_tensor *t);

/* ---- cuda_dense.c ---- */
/* Matrices for steps of few rows, where there is room for them; when all is planned. */
br_code cun_dense(br_cun *x, br_status *st) BR_MUST_USE;

/* ---- cuda_room.c ---- */
/* The graph's values, by this model; then memory for all that is no matrix. */
br_code cun_bind(br_cun *x, const br_model *m, const br_ir *g,
                 br_status *st) BR_MUST_USE;
br_code cun_lay_out(br_cun *x, br_status *st) BR_MUST_USE;
/* OOM: that and the matrices are more than there is; nothing has been taken. */
br_code cun_count_first(const br_cun *x, const br_model *m, const br_ir *g,
                        br_status *st) BR_MUST_USE;
void cun_forget(br_cun *x); /* what of it is on the host */

/* ---- cuda_fit.c ---- */
typedef struct cun_need {
    uint64_t matrices, later, way, experts;
} cun_need;
/* Says what does not fit, makes room for matrices, leaves x->left for experts. LIMIT,
 * OOM. */
br_code cun_fit(br_cun *x, br_status *st) BR_MUST_USE;
/* LIMIT: a matrix has more rows than a launch has blocks for. Before anything else: its
 * rows of numbers would take all memory. */
br_code cun_check_rows(const br_cun *x, br_status *st) BR_MUST_USE;
/* ---- cuda_pick.c ---- */
uint64_t cun_pick_bytes(const br_cun *x); /* memory that draws take */
br_code cun_open_pick(br_cun *x, bool weighs, br_status *st) BR_MUST_USE;
/* How the device is to draw row i, whose space takes turns. */
struct br_pick_how cun_how(br_cun *x, uint32_t i, const br_cun_pick *p);
void cun_forget_draws(br_cun *x); /* the latest may not have run */
/* Queues the draw of n rows of logits, from row `from` on. */
br_code cun_start_pick(br_cun *x, uint32_t from, uint32_t n,
                       br_status *st) BR_MUST_USE;
uint64_t cun_drawn(const br_cun *x); /* where the tokens are then */
/* Do so many rows fit one draw? */
bool cun_draws_at_once(const br_cun *x, uint32_t n);

/* ---- cuda_stage.c: a step's block ---- */
/* No table has been sent. */
br_code cun_open_tables(br_cun *x, br_status *st) BR_MUST_USE;
void
cun_forget_tables(br_cun *x); /* what the device has of them is not known */
void cun_stage(br_cun *x, const br_step *step);
br_code cun_send_tables(br_cun *x, br_status *st) BR_MUST_USE;
br_code cun_send_step(br_cun *x, const br_step *step,
                      br_status *st) BR_MUST_USE; /* the tables, too */

/* ---- cuda_nodes.c ---- */
/* Checks the step, stages it, waits until the one before is over. */
br_code cun_begin(br_cun *x, const br_step *step, uint32_t *n_want,
                  br_status *st) BR_MUST_USE;
void cun_end(br_cun *x, const br_step *step, uint32_t n_want);
/* What br_cun_step does after that. */
br_code cun_step_staged(br_cun *x, const br_step *step, uint32_t n_want,
                        float *logits, br_status *st) BR_MUST_USE;
/* Queues the launches. */
br_code cun_start_all(br_cun *x, uint32_t rows, uint32_t n_want,
                      br_status *st) BR_MUST_USE;

/* ---- cuda_stay.c ---- */
/* Can the step that is staged come from the host's memory: few rows, all of which
 * want logits, of a slot each? */
bool cun_can_fetch(const br_cun *x, uint32_t rows, uint32_t n_want);
br_code cun_open_stay(br_cun *x, br_status *st) BR_MUST_USE;
/* The first launch of a graph of such a step. */
br_code cun_start_fetch(br_cun *x, uint32_t rows, br_status *st) BR_MUST_USE;
/* Writes it where that launch finds it; p: how tokens are drawn, or NULL. */
void cun_tell(br_cun *x, const br_step *step, const br_cun_pick *p);
/* Ends the launch that stays, which has nothing to do. Nobody waits for it; but for a
 * step ahead, which was for nothing. */
void cun_leave(br_cun *x);
void cun_close_stay(br_cun *x);
/* The next head; the rest is there. Returns its epoch. */
uint32_t cun_say_head(br_cun *x, uint32_t rows, uint32_t pages);

/* ---- cuda_ahead.c ---- */
/* The launch that stays has the step, of these draws: what follows may ask about the
 * one after it, once, while its tokens are waited for. */
void cun_await_ahead(br_cun *x, const br_step *step, const br_cun_pick *p);
void cun_look_ahead(br_cun *x);
/* Is the step that is staged the one that was told ahead, or rows of it? row[i]: which. */
bool cun_is_ahead(const br_cun *x, const br_step *step, const br_cun_pick *p,
                  uint8_t *row);
void cun_call_off(br_cun *x);

/* ---- cuda_experts.c ---- */
/* Numbers of a row that xq is to have room for, because of experts. */
uint64_t cun_experts_need(const br_cun *x);
/* For br_values_config, of a br_cun: rows of experts between products. */
void cun_experts_aside(void *ctx, uint32_t node, size_t cols[BR_VALUES_ASIDE]);
/* Which matrices may be asked; first of all. */
br_code cun_experts_find(br_cun *x, br_status *st) BR_MUST_USE;
/* Room for what experts that are tiles read. */
br_code cun_experts_room(br_cun *x, br_status *st) BR_MUST_USE;
/* Which ops' experts stay in the host's memory: those that do not fit. */
br_code cun_experts_place(br_cun *x, br_status *st) BR_MUST_USE;
uint64_t cun_experts_bytes(const br_cun *x, uint32_t v); /* those tiles */
/* Does that become tiles, expert by expert? */
bool cun_asked_as_tiles(const br_cun *x, uint32_t v);
/* The blocks of a launch of CUN_LISTS .. CUN_ASK for so many pairs, its kernel and
 * record; false: it is left out. */
bool cun_experts_start(const br_cun *x, const cun_launch *l, uint32_t pairs,
                       br_cuda_launch *how, enum cun_fn *fn,
                       struct br_nd_routed *r);
/* Does that become tiles? Two that do, of one form? */
bool cun_tiled(const br_cun *x, uint32_t v);
bool cun_alike(const br_cun *x, uint32_t v, uint32_t w);
/* Are the rows of such a table found on the device? Else the host unpacks
 * them. */
bool cun_has_rows(const br_cun *x, uint32_t v);
/* Several such that are as wide, one below the other; each begins with a tile
 * of rows, the next one at end[i]. */
br_code cun_stack(br_cun *x, const uint32_t *v, uint32_t n,
                  struct br_nd_mat *out, uint32_t *end,
                  br_status *st) BR_MUST_USE;
/* The same of two, of as many rows, eight rows of each in turns. For any x,
 * |v[0]'s row . x| |v[1]'s row . x| <= *most (x . x). */
br_code cun_pair(br_cun *x, const uint32_t *v, struct br_nd_mat *out,
                 float *most, br_status *st) BR_MUST_USE;
/* ---- cuda_plan_join.c ---- */
/* A product of few rows has a multiprocessor for each of its blocks. */
bool cun_at_once(const br_cun *x, const cun_launch *l);
/* Are the product's pieces left to their reader in a step of so many rows? Does
 * attention do this turn? */
bool cun_is_apart(const br_cun *x, const cun_launch *l, uint32_t rows);
bool cun_turns(const br_cun *x, const cun_launch *turn, uint32_t rows);
/* Is attention of so many rows, each of a slot of its own, a launch of blocks that
 * stay? Its kernel and blocks. */
bool cun_stays(const br_cun *x, const cun_launch *l, uint32_t rows);
enum cun_fn cun_stay(const br_cun *x, cun_launch *l, br_cuda_launch *how);
/* The product before such attention (calls) has its first keys brought to the L2. */
void cun_call_pages(const br_cun *x, cun_launch *l, uint32_t rows);
/* How else attention of few queries is launched, how->gx KV heads, gy rows. */
void cun_few(const br_cun *x, cun_launch *l, br_cuda_launch *how);
/* Blocks a KV head of attention that turns its heads: as many as there are
 * multiprocessors for. More than one are a cluster. */
uint32_t cun_shares(const br_cun *x, const cun_launch *l, uint32_t rows);
/* The record of a launch that reads pieces, or does what two did, and its
 * kernel; false: it is neither. */
bool cun_join(const br_cun *x, const cun_launch *l, uint32_t rows,
              enum cun_fn *fn, struct br_nd_joined *j);
/* cuda_plan.c: the launches of every node. */
br_code cun_plan(br_cun *x, br_status *st) BR_MUST_USE;

#endif
