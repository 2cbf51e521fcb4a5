/* mega_table.h - what host and device agree on for the decode megakernel.
 *
 * A step of a dense transformer is a queue of phases for each worker (one
 * block per multiprocessor). Weights are re-laid out at load as ONE stream per
 * worker, in the order in which its phases use them, so that copies
 * run ahead without knowing what a phase is:
 *
 *   chunk   16 rows x 512 columns of a matrix, in the order in which the
 *           tensor core takes its A operand: a segment of 512 of the numbers
 *           contract
 *             bf16  32 k-steps of m16n8k16 x 32 lanes x 16 bytes: 16 KiB
 *             bf12  bf16 in 12 bits: a sign, 4 bits of exponent above that of the
 *                   row, 7 of mantissa; two halves, each of 4 groups of 4 k-steps:
 *                   32 lanes x 16 low bytes, twice, then 32 lanes x 4 words of
 *                   their high nibbles; then 64 bytes more (BR_MK_LISTED): 12352
 *             q8_0  16 blocks of m16n8k32 x 32 lanes x 16 bytes, then the
 *                   scales, f16 [16 rows][16 blocks]: 8.5 KiB
 *             q4_k  8 pairs of blocks x 32 lanes x 16 bytes, scales in f16 [16][16],
 *                   minima of 6 bits in bytes as an operand, their d in f16
 *                   [16][2]: 4928 bytes (a file has 4608); two beside each other
 *                   are one copy, a phase begins with a pair
 *   tile    16 rows: K/512 chunks
 *   stream  of a worker: the chunks of its tiles, phase after phase; chunk i of
 *           all workers lies together (2 % faster than streams 19 MB apart)
 *   keys    and values of a worker's attention tasks come in between, before the
 *           chunks of OUT: 16 pages of 16 positions a task, in slots of 8 KiB
 *
 * A page keeps the 16-byte columns of its rows in an order of their own
 * (BR_MK_COLUMN), so that a warp reads keys and values from shared memory
 * without two lanes at one bank: 2 and 4 lanes were.
 *
 * Activations pass between workers as words that say themselves whether they
 * are there, so there is no fence between a value and its flag:
 *
 *   64 bits   value, epoch: the residual h, q, k, v, parts of attention
 *   128 bits  of the normed input x, BR_MK_X_* a tile: three values (or pairs
 *             of bf16) and the epoch; the last of a tile has its sum of h^2
 *   128 bits  of attention's output and of the activations: 8 bf16, which are
 *             never all ones; a step writes one copy and clears the other
 *
 * Word j of tile t lies at j * tiles + t, quarter j of block b (32 values) at
 * j * blocks + b: neighbours in a warp read neighbours in memory.
 *
 * epoch = number of the step since the load. 16 bytes at a multiple of 16 move
 * as one on every device since sm_70. One counter a phase tells readers WHEN to
 * look (without it polling takes half of the L2 from the weights); it orders
 * nothing and may be late or early.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_TABLE_H
#define BR_MEGA_TABLE_H

enum {
    BR_MK_WARPS = 16,
    BR_MK_THREADS = 512, /* that compute; then a group of warps for loading */
    BR_MK_BLOCK = 640,
    BR_MK_SEG = 512,     /* columns of a chunk */
    BR_MK_RING = 197632, /* bytes of chunks in flight */
    BR_MK_CHUNK_BF16 = 16384,
    BR_MK_CHUNK_BF12 = 12352,
    BR_MK_CHUNK_Q8_0 = 8704,
    BR_MK_CHUNK_Q4_K = 4928,
    BR_MK_PAIR_Q4_K = 2 * BR_MK_CHUNK_Q4_K, /* two come in one copy */
    BR_MK_MAX_SLOTS = 24,
    BR_MK_MAX_DEEP = 12,   /* copies under way, at most */
    BR_MK_MAX_K = 12288,   /* widest input vector */
    BR_MK_MAX_PARTS = 124, /* chunks of one phase of one worker */
    BR_MK_MAX_TILES = 32,  /* tiles of one: a thread a row */
    BR_MK_KV_BLOCK = 256,  /* positions folded at once (numbers contract) */
    BR_MK_PAGE = 16,       /* positions of a KV page */
    BR_MK_MAX_WORKERS = 255,
    BR_MK_MAX_INST = 256,
    BR_MK_X_BF16 = 3, /* words of a tile of x */
    BR_MK_X_Q8_0 = 2,
    BR_MK_MAX_LAYERS = 64,
};

enum br_mk_op {
    BR_MK_QKV,   /* norm(h) x Wqkv -> q, k, v of the current position */
    BR_MK_ATTN,  /* norm, rope, append, attention of one 256-block */
    BR_MK_OUT,   /* attention output x Wo + h -> h' */
    BR_MK_GLU,   /* norm(h') x (Wgate | Wup) -> silu(gate) * up */
    BR_MK_DOWN,  /* act x Wdown + h' -> next h */
    BR_MK_HEAD,  /* norm(h) x Wlm, a group of tiles; best so far */
    BR_MK_TOKEN, /* the best of all workers is the next token */
};

#define BR_MK_FIRST 1 /* flags: first group of HEAD */

struct br_mk_inst { /* 16 bytes */
    unsigned char op, flags;
    unsigned short layer;
    unsigned char segs;     /* K / 512 */
    unsigned char n_wait;   /* workers that make this phase's input */
    unsigned short n_tiles; /* of this worker; may be 0 */
    unsigned int tile0;     /* ATTN: this worker's first task */
    unsigned int chunk0;    /* where the phase begins in the stream */
};

/* Counters of a layer: who makes its input (H), attention's output, the input of
 * GLU (MID), the activations. */
enum { BR_MK_HINT_H, BR_MK_HINT_ATTN, BR_MK_HINT_MID, BR_MK_HINT_ACT };

/* Where the program stands: read at launch, moved on by the TOKEN phase. */
struct br_mk_step {
    unsigned int epoch, token, pos;
    unsigned int phase; /* of that step: 0, or the layer at which it was cut */
    unsigned int block; /* where its sequence's pages begin (BR_MK_PLACE) */
    unsigned int unused[3];
};

/* A step's place: a position, and the entry of the page table at which its
 * sequence begins, in blocks of 256 positions. */
#define BR_MK_PLACE(pos, block) \
    ((unsigned int)(pos) | (unsigned int)(block) << 17)
#define BR_MK_POS(place)      ((place)&0x1ffffu)
#define BR_MK_BLOCK_OF(place) ((place) >> 17 & 0x3ff)
#define BR_MK_ELSEWHERE       0x80000000u /* it does not follow the step before */
#define BR_MK_END             0xfffffffeu /* in its place: the launch ends */
#define BR_MK_UNKNOWN         0xffffffffu /* nobody has said */
#define BR_MK_BEST            0xffffffffu /* a token: the most likely one */

/* Where the first step of a launch begins: where br_mk_step stands, at the launch's own
 * epoch, token and place (a copy there costs more than a launch), or where the
 * host's memory says for the epoch of br_mk_step: then all launches are alike, and a graph of
 * one is handed over in 2 us. */
enum { BR_MK_GO_ON, BR_MK_AT, BR_MK_TOLD };

/* What a launch does: phases [first, end) of n_steps steps, the first of which
 * begins with phase `from`. */
struct br_mk_launch {
    unsigned int from, first, end, n_steps;
    unsigned int seek, epoch, token, pos, block;
    unsigned int
        ring; /* the steps after the first one are those of the host's */
    unsigned int serial;   /* of the launch: it is said when this one ends */
    unsigned int patience; /* looks at the ring (1.3 us each) before it ends */
};

/* Words of the exchange: offsets inside a layer's share, and of the argmax
 * pairs (value, id) of all workers, behind which the first worker says where the
 * next steps begin: (token, place, place of the one after, epoch), and where the first
 * step does of a launch that is told: (token, epoch, place, epoch). */
struct br_mk_map {
    unsigned long long layer; /* words of 64 bits per layer */
    unsigned long long h_in, x_in, h_mid, x_mid, qkv, part, best, next, begin;
    /* of 8 values, behind all layers: [step & 1][layer][eights], of which the
     * first ones are attention's */
    unsigned long long eights_at, eights, attn_eights, total;
};

/* Memory of the host that the device reads and writes while a launch runs. */
enum { BR_MK_HOST_TOKENS = 64, BR_MK_RING_STEPS = 64 };
struct br_mk_host {
    unsigned int unused;
    unsigned int cancel; /* not 0: end at a layer's border, in a step's midst */
    unsigned int more[2];
    unsigned int hung; /* a wait took too long */
    unsigned int rest[3];
    unsigned long long token[BR_MK_HOST_TOKENS]; /* epoch << 32 | token */
    /* What a launch that stays is to do, by epoch: epoch << 32 | token, and
     * epoch << 32 | place, so that each half says itself whether it is there. The
     * host writes them at any time, the later step first. */
    unsigned long long ring[BR_MK_RING_STEPS][2];
    unsigned long long drawn; /* turn << 32 | token: of br_pick */
    unsigned long long odd;
    /* Of the launch that has ended: serial << 32 | phase, epoch of what follows. */
    unsigned long long ended[2];
    /* Of launches that are told, by epoch, in the ring's form; the token is one. */
    unsigned long long begin[BR_MK_RING_STEPS][2];
};

struct br_mk_args {
    const struct br_mk_inst *inst;     /* [workers][n_inst] */
    const unsigned char *stream;       /* [chunk][workers] */
    const unsigned int *stream_chunks; /* [workers] chunks of a whole step */
    unsigned long long *words;         /* exchange */
    const unsigned short *embed;       /* [vocab][hidden] bf16 */
    const float *norms;                /* [layers][2][hidden], then [hidden] */
    const float *qk_norms;             /* [layers][2][head_dim], or 0 */
    const float *rope;                 /* [positions][head_dim/2][2] cos, sin */
    unsigned short *kv;                /* pages */
    const unsigned int *pages;         /* page of each 16 positions, 16 n */
    unsigned int *tokens;              /* out, by epoch */
    float *logits;                     /* out: [vocab] of the last step, or 0 */
    struct br_mk_host *host;
    struct br_mk_step *step;
    const unsigned int *more;    /* groups of weights that are listed */
    unsigned int *hints;         /* [layers + 1][4] counters, 128 bytes apart */
    unsigned long long *profile; /* [workers][n_inst][4] clocks, or 0 */
    struct br_mk_map map;
    unsigned int n_inst, n_workers;
    unsigned int tasks, subs; /* of attention: a block, a KV head */
    unsigned int n_layers, hidden, n_heads, n_kv, head_dim, inter, vocab;
    float eps, scale;
    unsigned int depth, deep, few; /* chunks under way at once (load_stream) */
    unsigned int interleaved_rope; /* 1: pairs (2i, 2i+1); 0: (i, i+half) */
    unsigned int head_parts;       /* words of a head: of all its blocks */
};

/* bf12: numbers whose exponent is not among the row's 15 are 0 there and stand in the
 * chunk's list: bits 31..16 the bf16, 13..10 the row, 9..0 where its column is in the
 * segment of x, in bytes; 0 ends it. Behind 12 of them a byte for each of rows
 * 0 8 1 9 .. 7 15. More than 12: the last word has bit 14 and, from bit 15 on, the
 * number of a group elsewhere (br_mk_args.more), 31 of the list and a word like that
 * one, or 0. A row's byte is
 * the exponent of the f32 that the row's sum is multiplied with: in the chunk all
 * exponents are less by byte - 127 + 64, and those of x are more by 64 (exact as long as
 * |x| < 2^63). */
enum {
    BR_MK_LIFT = 64,
    BR_MK_LISTED = 12,
    BR_MK_MOST_LISTED = 1024,
    BR_MK_GROUP = 32, /* words */
    BR_MK_MAX_GROUPS = 1 << 17,
    BR_MK_LINK = 1 << 14,
    BR_MK_BF12_HALF = 6144,
    BR_MK_BF12_LIST = 2 * BR_MK_BF12_HALF, /* where the list is, */
    BR_MK_BF12_ROWS = BR_MK_BF12_LIST + BR_MK_LISTED * 4, /* and rows' bytes */
};

/* Where column d of row r (of a page, or of any 16) lies in the row. */
#define BR_MK_COLUMN(d, r) ((d) ^ ((((r)&6) ^ ((r)&1) << 2) << 3))

#define BR_MK_MAX_BLOCKS   512   /* 256-blocks of context: 131072 positions */
#define BR_MK_TOKENS       65536 /* ring of generated tokens, by epoch - 1 */

/* Dynamic shared memory of a block: slots, x, sums, scratch, reductions,
 * barriers (struct smem in mega_decode.cu). */
#define BR_MK_SHARED                                                 \
    (BR_MK_RING + BR_MK_MAX_K * 2 + BR_MK_MAX_PARTS * 64 + 128 * 4 + \
     BR_MK_MAX_LAYERS * 4 + 64 * 4 + BR_MK_MAX_SLOTS * 16 + 512)

#endif
