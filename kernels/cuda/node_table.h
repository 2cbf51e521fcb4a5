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
    BR_ND_WIDE = 32,       /* the same on tensor cores */
    BR_ND_MANY_ROWS = 256, /* of weights, of a block that has many tokens */
    BR_ND_SEG = 256,       /* of K: a sum from zero, for a warp of its own */
    BR_ND_WARPS = 8,       /* of a block of most kernels */
    BR_ND_BLOCK = 256      /* keys of a fold of attention */
};

enum br_nd_kind { /* of a matrix */
                  BR_ND_F32,
                  BR_ND_F16,
                  BR_ND_BF16,
                  BR_ND_INT
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

enum br_nd_act { BR_ND_SILU, BR_ND_GELU, BR_ND_OAI, BR_ND_SIGMOID };

struct br_nd_rows {
    float *p;
    unsigned int stride; /* 0: one row for all */
    unsigned int cols;
};

struct br_nd_mat {
    const void *q;                  /* [n_out][n_in] of kind */
    const signed char *scale, *min; /* [n_out][n_in / sub], or NULL */
    const float *d, *dmin;          /* [n_out][n_in / block]; dmin or NULL */
    unsigned int kind, n_out, n_in, block, sub;
};

struct br_nd_step { /* of the step at hand; one block of device memory */
    const int *slot, *position, *want; /* want: the rows that do, in order */
    const unsigned int *at;            /* [row][group]: into tables */
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

struct br_nd_args {
    unsigned int n_rows;          /* set for each launch */
    unsigned int op, act;         /* br_nd_one, br_nd_act */
    struct br_nd_rows x, b, w, y; /* input, another, a model's vector, output */
    struct br_nd_mat m;
    struct br_nd_step s;
    struct br_nd_cache k, v;
    signed char *xq;   /* integers of activations, [row][n_in]; or BF16 twice */
    float *xd;         /* [row][n_in / block] */
    unsigned int lows; /* rows from a row's BF16s to what they leave out */
    /* runs of columns: width columns every pitch from off, count of them */
    unsigned int off, width, pitch, count, scatter;
    unsigned int heads, per_kv, head_k, head_v, n_rot, neighbours, window;
    float scale, cap, eps;
};

#endif
