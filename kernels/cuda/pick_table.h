/* pick_table.h - what host and device agree on for drawing a token.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_PICK_TABLE_H
#define BR_PICK_TABLE_H

#include "mega_table.h"

enum {
    BR_PICK_THREADS = 512,
    BR_PICK_SHARED = (256 + BR_PICK_THREADS / 32) * 8 + 16 + 32,
    BR_PICK_TURNS = 64, /* draws that the host may be ahead */
    /* in place of a token */
    BR_PICK_NO_NUMBER = -1, /* a logit is NaN or +inf */
    BR_PICK_NONE = -2,      /* all are -inf */
};

/* How blocks meet. Zero before a launch; two take turns, and a launch clears
 * the one of the next. */
struct br_pick_space {
    unsigned long long best; /* rank << 32 | ~id */
    unsigned int bad, arrived;
    unsigned long long sums[2][4][256]; /* of a head: round, byte of the rank */
    unsigned long long scans[4][256];   /* of the blocks */
};

struct br_pick_how {
    unsigned long long seed;
    float temperature;           /* 0: the best one */
    int top_k;                   /* 0: off */
    float top_p, min_p;          /* 1, 0: off */
    unsigned int position, turn; /* turn & 1: of the row's spaces */
};

/* Of the device: how this launch draws, once its first block has read it; the turn of
 * the last one. */
struct br_pick_told {
    struct br_pick_how how;
    unsigned int turn, unused[3];
};

/* A row of the grid draws from a row of logits. */
struct br_pick_args {
    const float *logits;         /* [row][n] */
    unsigned long long *weights; /* [row][n] */
    struct br_pick_space *space; /* [row][2] */
    unsigned int n;              /* tokens of the vocabulary */
    unsigned int *tokens;
    const struct br_pick_how *rows; /* [row], tokens by row; NULL: of a step */
    /* After a step of the decode kernel: the next one begins with the token. How is
     * in the host's memory, by turn, so that all launches are alike. */
    struct br_mk_step *step;
    const struct br_pick_how *how;
    struct br_pick_told *told;
    unsigned long long *drawn; /* host's: turn << 32 | token */
    unsigned int *hung;        /* host's: a block waited in vain */
};

#endif
