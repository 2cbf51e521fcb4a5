/* pick_table.h - what host and device agree on for drawing a token.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_PICK_TABLE_H
#define BR_PICK_TABLE_H

#include "mega_table.h"

enum {
    BR_PICK_THREADS = 512,
    BR_PICK_SHARED = (256 + BR_PICK_THREADS / 32) * 8 + 16,
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

struct br_pick_args {
    const float *logits;
    unsigned long long *weights; /* [n] */
    struct br_pick_space *space; /* [2] */
    struct br_mk_step *step;     /* token: out */
    unsigned int *tokens;
    unsigned long long seed;
    unsigned int n, turn; /* tokens of the vocabulary; space & 1 */
    float temperature;    /* 0: the best one */
    int top_k;            /* 0: off */
    float top_p, min_p;   /* 1, 0: off */
};

#endif
