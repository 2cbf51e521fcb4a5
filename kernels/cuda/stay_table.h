/* stay_table.h - what host and device agree on for steps that the device takes
 * from the host's memory.
 *
 *   host     rows, then the head: a step's number; so the rest is there
 *   device   br_stay unpacks it into what the launches of a step read, and says
 *            that it has the step: the next one's head may be written
 *
 * The first kernel of a graph of a step does so once. In a launch that stays it is
 * the last one of each step, too: it says the tokens that were drawn, waits for the
 * next head, and the graph goes round.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_STAY_TABLE_H
#define BR_STAY_TABLE_H

#include "node_table.h"
#include "pick_table.h"

enum {
    BR_STAY_ROWS = 64,
    BR_STAY_PAGES = 128, /* entries of page tables that a step brings */
    BR_STAY_THREADS = 64,
    BR_STAY_DRAWN = -1 /* in place of a token: what the row drew before */
};

struct br_stay_row { /* 16s of bytes, as the device reads them */
    int slot, position, token, unused;
    struct br_pick_how how;
};

struct br_stay_page { /* tables[at] = page */
    unsigned int at, page;
};

/* Memory of the host. The host writes its part when no step is under way that
 * reads it, the head last: epoch | rows << 32, pages. A step ahead is written and
 * told while the one before is read, or not yet: what both have is by epoch & 1.
 * It brings no pages. */
struct br_stay_host {
    unsigned long long head[2];
    struct br_stay_row row[2][BR_STAY_ROWS];
    struct br_stay_page page[BR_STAY_PAGES];
    /* The device's: epoch << 32 | token of each row; epoch << 32 | ns from where it
     * had the step to where it had drawn; the epoch whose head it has taken. */
    unsigned long long out[2][BR_STAY_ROWS], ns[2], taken;
    unsigned int hung, rest; /* a kernel waited in vain, and trapped */
};

struct br_stay_state { /* of the device */
    unsigned int epoch, unused;
    unsigned long long begun; /* ns */
};

struct br_stay_args {
    struct br_stay_host *host;
    struct br_stay_state *state;
    int *slot, *position, *token, *want;
    struct br_nd_tile *tile;
    unsigned int *at, *tables;
    struct br_pick_how *how; /* NULL: nothing is drawn */
    const unsigned int *drawn;
    unsigned int n_groups, table_n; /* entries of a slot and group */
    unsigned int rows;
    unsigned int patience; /* looks at the head, 1.3 us each, before it ends */
    /* Of the loop that the launch stays in; 0: this is before it. */
    unsigned long long loop;
};

#endif
