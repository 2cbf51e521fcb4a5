/* node_table.h - what host and device agree on for kernels of one node each.
 *
 * Packets mode: a launch a node (a few for some), over rows of any slots. A
 * launch's parameters are one record, made once; a step changes row counts,
 * positions and pages, which lie in device memory (br_nd_step).
 *
 *   rows     numbers of a row together, rows a stride apart
 *   matrix   floats as a file has them, or integers (model/qint.h) unpacked:
 *            a byte a weight, then scales of sub-blocks and of blocks
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_NODE_TABLE_H
#define BR_NODE_TABLE_H

enum {
    BR_ND_TILE = 8,        /* rows of a step that a product takes at once */
    BR_ND_MEGA_TILE = 1,   /* in mega mode: branches reach 32767 words */
    BR_ND_WIDE = 32,       /* the same on tensor cores, of integers */
    BR_ND_TILE_ROWS = 128, /* of weights, of a block of a product of tiles */
    BR_ND_TILE_THREADS = 288,
    BR_ND_TILE_TOKENS = 128,  /* most that a block has */
    BR_ND_WIDE_THREADS = 384, /* of a block that stays, for many tokens */
    BR_ND_WIDE_TOKENS = 192,
    BR_ND_PIECES = 8, /* of a matrix's columns at most: blocks of a cluster */
    BR_ND_APART =
        64, /* rows of a step whose pieces their readers add, at most */
    BR_ND_ROW_THREADS = 1024, /* at most */
    BR_ND_ROW_MOST = 32768,   /* columns of a row that become f16 */
    BR_ND_ROW_BLOCKS = 8,     /* a row whose pieces are added: at most */
    BR_ND_WARPS = 8,          /* of a block of most kernels */
    BR_ND_BLOCK = 256,        /* keys of a fold of attention */
    BR_ND_FLASH_KEYS = 64,    /* the same on tensor cores */
    BR_ND_TURN_MOST =
        128, /* dimensions of a head that is turned as it is kept */
    BR_ND_FLASH_STAGES = 4,
    BR_ND_FLASH_THREADS = 384, /* of a block of many queries */
    BR_ND_QUERIES = 128,       /* most of a block of that, heads times rows */
    BR_ND_FAR_BLOCKS = 8,      /* of a KV head's few queries, at most */
    BR_ND_STAY_WARPS = 12,     /* of a block that stays: they compute */
    BR_ND_STAY_FEED = 3,       /* and bring keys; stages are a multiple */
    BR_ND_STAY_TURN = 3,       /* and turn heads, where nobody has */
    BR_ND_STAY_AHEAD = 4,      /* items whose heads are turned at once */
    BR_ND_STAY_THREADS = (BR_ND_STAY_WARPS + BR_ND_STAY_FEED) * 32
};

/* Of a block of attention: keys and values, f16. Of few queries, so many at
 * once, each with sums, that a multiprocessor has room for two blocks; of many,
 * stages and two barriers each. */
#define BR_ND_FLASH_STAGE(head) (BR_ND_FLASH_KEYS * (head)*4u)
#define BR_ND_FLASH_FEW_STAGE(head) \
    (BR_ND_FLASH_STAGE(head) + 8u * ((head) + 4u) * 4u)
/* By a cluster's block: two rounds' sums of a row's queries. */
#define BR_ND_FLASH_FAR_STAGE(head, per_kv) \
    (BR_ND_FLASH_STAGE(head) + 2u * (per_kv) * ((head) + 4u) * 4u)
#define BR_ND_FLASH_SHARED(head) \
    (BR_ND_FLASH_STAGES * (BR_ND_FLASH_STAGE(head) + 16u))
#define BR_ND_FLASH_FEW 16u
/* Of a block that stays: stages and two barriers each, a round's sums. */
#define BR_ND_STAY_SUMS(head, per_kv) \
    (BR_ND_STAY_WARPS * (per_kv) * ((head) + 4u) * 4u)
/* Items' queries, and two barriers each. */
#define BR_ND_STAY_QUERIES(head, per_kv) \
    (BR_ND_STAY_AHEAD * ((per_kv) * ((head) + 4u) * 4u + 16u))
#define BR_ND_STAY_STAGE(head)    (BR_ND_FLASH_STAGE(head) + 16u)
#define BR_ND_STAY_SHARED         (227 * 1024) /* at most; few queries, too */

/* A ring of a product: so many bytes a stage and three barriers, and one of its own. */
#define BR_ND_RING(stages, bytes) ((stages) * ((bytes) + 24u) + 8u)
/* Dense tiles (node_dense.cuh): 64 columns of one; what of them is listed; tokens begin
 * at a multiple of a KiB. */
#define BR_ND_DENSE_LISTED        8u
#define BR_ND_DENSE_BYTES \
    (BR_ND_TILE_ROWS * 96u + BR_ND_TILE_ROWS / 16u * BR_ND_DENSE_LISTED * 4u)
#define BR_ND_DENSE_PLACE ((BR_ND_DENSE_BYTES + 1023u) / 1024u * 1024u)
#define BR_ND_DENSE_SHARED(tokens, stages) \
    BR_ND_RING(stages, BR_ND_DENSE_PLACE + (tokens)*128u)

/* Of a norm by a cluster: three numbers of each warp of a row, then a barrier. */
#define BR_ND_NEAR_SUMS   (BR_ND_ROW_THREADS / 64 * 16u)
#define BR_ND_NEAR_SHARED (BR_ND_NEAR_SUMS + 16u)

/* Of packed tiles (node_packed.cuh): bytes of 64 columns of one. */
#define BR_ND_PACK_SCALES (BR_ND_TILE_ROWS * 8u)
#define BR_ND_PACK_BYTES(kind)                                    \
    (BR_ND_TILE_ROWS * ((kind) == BR_ND_PACK_4_MIN ? 32u : 64u) + \
     BR_ND_PACK_SCALES)
#define BR_ND_PACK_SHARED(tokens, stages) \
    BR_ND_RING(stages, BR_ND_PACK_BYTES(BR_ND_PACK_8) + (tokens)*128u)

/* The same of MXFP4: codes, then a scale of f16 every 32 columns. */
#define BR_ND_MX_BYTES (BR_ND_TILE_ROWS * 32u + BR_ND_TILE_ROWS * 4u)
#define BR_ND_MX_SHARED(tokens, stages) \
    ((stages) * (BR_ND_MX_BYTES + 512u + (tokens)*128u + 16u))
/* The same of numbers of eight bits (F8_E4M3, F8_E5M2): codes, a scale of f16 a row; a
 * file's blocks of 64. */
#define BR_ND_F8_BYTES (BR_ND_TILE_ROWS * 64u + BR_ND_TILE_ROWS * 2u)
#define BR_ND_F8_SHARED(tokens, stages) \
    ((stages) * (BR_ND_F8_BYTES + 768u + (tokens)*128u + 16u))
#define BR_ND_F8_BLOCK 68u
enum {
    BR_ND_ASK_ALONE = 16, /* pairs of a step that are not put into lists */
    BR_ND_ASK_FEW = 16,   /* rows of a part: three kernels of each form */
    BR_ND_ASK_SOME = 32,
    BR_ND_ASK_MANY = 128,
    BR_ND_LIST_THREADS = 1024
};

/* Of a block of a product that is to be alone of its kind on a multiprocessor; there
 * is room for another product's beside it, and for a norm's. */
#define BR_ND_SPREAD_SHARED (113u * 1024)
/* Of a block of a product of tiles: weights, tokens. */
#define BR_ND_TILE_SHARED(tokens, stages) \
    BR_ND_RING(stages, (BR_ND_TILE_ROWS + (tokens)) * 128u)

enum br_nd_kind { /* of a matrix */
                  BR_ND_F32,
                  BR_ND_F16,
                  BR_ND_BF16,
                  BR_ND_INT,
                  BR_ND_TILES,      /* node_tiles.cuh; d: [n_out] */
                  BR_ND_PACK_8,     /* packed: bytes; a scale every 16 */
                  BR_ND_PACK_8_MIN, /* a scale and a minimum every 32 */
                  BR_ND_PACK_4_MIN, /* the same of four bits */
                  BR_ND_PACK_MX,    /* MXFP4 (experts.cu): a scale every 32 */
                  BR_ND_PACK_E4M3, /* eight bits (experts.cu): a scale every 64 */
                  BR_ND_PACK_E5M2
};

enum br_nd_one { /* numbers one by one */
                 BR_ND_COPY,
                 BR_ND_ADD,
                 BR_ND_MUL,
                 BR_ND_SCALE,
                 BR_ND_SOFTCAP,
                 BR_ND_ACT,
                 BR_ND_GLU,
                 BR_ND_TEMP
};

enum br_nd_meet { /* pieces: where they become a sum */
                  BR_ND_MEET_FAR,
                  BR_ND_MEET_NEAR,   /* in a cluster's shared memory */
                  BR_ND_MEET_READERS /* who reads them adds */
};

enum br_nd_act { BR_ND_SILU, BR_ND_GELU, BR_ND_OAI, BR_ND_SIGMOID };

enum br_nd_gating { BR_ND_UNSAID, BR_ND_SOFTMAX, BR_ND_SIGMOIDS, BR_ND_PICKED };

enum br_nd_file { /* blocks of a file that br_nd_unpack takes apart */
                  BR_ND_FILE_NO,
                  BR_ND_FILE_Q8_0,
                  BR_ND_FILE_Q4_0,
                  BR_ND_FILE_Q4_K,
                  BR_ND_FILE_Q5_K,
                  BR_ND_FILE_Q6_K
};

struct br_nd_rows {
    float *p;
    unsigned int stride; /* 0: one row for all */
    unsigned int cols;
};

struct br_nd_mat {
    const void *q;                  /* [n_out][n_in] of kind */
    const signed char *scale, *min; /* [n_out][n_in / sub], or NULL */
    const float *d, *dmin;          /* [n_out][n_in / block]; dmin or NULL */
    /* tiles: block 64s of columns are a piece, eight rows sub times */
    unsigned int kind, n_out, n_in, block, sub;
};

struct br_nd_tile { /* rows of one slot, at consecutive positions */
    unsigned int t, n;
    unsigned int old; /* the slot's keys before this one are of earlier steps */
};

struct br_nd_step { /* of the step at hand; one block of device memory */
    const int *slot, *position, *want; /* want: the rows that do, in order */
    const int *token;
    const struct br_nd_tile *tile; /* no more than rows; n 0 in the rest */
    const unsigned int *at;        /* [row][group]: into tables */
    const unsigned int *tables;
    unsigned int n_groups;
};

struct br_nd_cache {         /* keys or values of a layer */
    void *pool;              /* NULL: there are none */
    unsigned long long page; /* numbers of a page */
    unsigned long long first;
    unsigned int cols, group;
    unsigned int half; /* F16, not F32 */
};

/* Of experts. A pair is (row of the step, rank), row * k + rank; a product
 * whose e.ids is there has a row a pair. */
struct br_nd_route {
    int *ids; /* [row][stride], k of them */
    unsigned int stride, k;
    unsigned int share;       /* pairs that read one row of x: k, or 1 */
    unsigned int rows, first; /* of an expert's matrix; the first that counts */
    unsigned int gating, groups, groups_used, norm_w;
};

struct br_nd_args {
    unsigned int n_rows;          /* set for each launch */
    unsigned int op, act;         /* br_nd_one, or see its kernel; br_nd_act */
    struct br_nd_rows x, b, w, y; /* input, another, a model's vector, output */
    struct br_nd_rows z;          /* another output */
    struct br_nd_mat m;
    struct br_nd_step s;
    struct br_nd_cache k, v;
    signed char *xq;   /* integers of activations, [row][n_in]; or tiles */
    float *xd;         /* [row][n_in / block]; or [row] */
    unsigned int lows; /* rows / 8 of tiles */
    /* of a product of tiles; op: br_nd_meet; pitch: rows of both outputs take
     * turns, eight by eight; then z.p, unless NULL: silu(one) * other as the tiles
     * of the next product, state: their rows' factors */
    unsigned int segs;         /* pieces of the columns */
    unsigned int part_end[2];  /* tiles before the second, third output */
    struct br_nd_rows part[2]; /* those */
    float *sums;               /* of pieces */
    unsigned int *met;         /* pieces that are there, zero in between */
    /* runs of columns: width columns every pitch from off, count of them */
    unsigned int off, width, pitch, count, scatter;
    struct br_nd_route e;
    struct br_nd_rows c, w2, w3;   /* a third input; more vectors */
    float *state;                  /* of slot 0; k.first: where in its piece */
    unsigned long long slot_elems; /* of a slot's piece */
    unsigned int heads, per_kv, head_k, head_v, n_rot, neighbours, window;
    float scale, cap, eps;
    unsigned int calls; /* of a product: pages of each row, see call_pages */
};

/* Pieces of a product that nobody has added: number n of row t of piece i is
 * sums[(i * BR_ND_APART + t) * pitch + n], without factors. */
struct br_nd_pieces {
    const float *sums, *xd, *d; /* [row], [n] */
    unsigned int pitch, segs;   /* segs 0: there are none */
    unsigned int at[3];         /* where the outputs begin */
    unsigned int threads;       /* that a row has, by a cluster */
};

/* A launch that reads such, or that does what two did. */
struct br_nd_joined {
    struct br_nd_args a, turn;
    struct br_nd_pieces in;
};

/* Of experts whose matrices are tiles (experts.cu). A place is a row of what their
 * products read; an expert's places begin at a multiple of eight. */
struct br_nd_part { /* rows of one expert that a block takes */
    unsigned int expert, first, n, reserved;
};
struct br_nd_lists {
    int *pair; /* [place], -1: nobody. NULL: pair i has place 8 i, alone */
    struct br_nd_part *part;
    unsigned int *n;                /* parts, places */
    unsigned int n_experts, tokens; /* of a part at most */
    unsigned int segs; /* blocks of a tile, a cluster: each has a piece */
};
struct br_nd_routed {
    struct br_nd_args a;
    struct br_nd_lists l;
};

/* Mega mode: launches as records, run by one launch of groups that stay. Every
 * group walks the list, takes each n_groups-th block of a record, and waits for
 * the others at its end. */
struct br_nd_phase {
    unsigned int fn; /* its place in cuda_nodes.def */
    unsigned int blocks[2];
    unsigned int reserved;
    struct br_nd_args a;
};

/* What host and a resident kernel tell each other, in memory of the host's. */
struct br_nd_bell {
    unsigned int go, n_phases, quit; /* host: steps asked for; the list's end */
    unsigned int done, alive;        /* kernel: steps done; phases ended */
};

struct br_nd_mega {
    const struct br_nd_phase *phase;
    struct br_nd_bell *bell; /* NULL: one step of n_phases, then the end */
    unsigned int *state;     /* how often a group arrived: 0; n_phases */
    unsigned int n_phases, n_groups;
};

#endif
