/* check_sound.h - what the parts of the sound mode share.
 *
 * One pass over the records copies what the proofs need into dense arrays;
 * after it only tasks that are at fault are looked at again.
 *
 * Writes of most buffers are one *epoch*: tiles without gap or overlap, all on
 * one counter. Such a buffer is simple: to wait for its counter is to read what
 * is there. So it is if they have several counters and every reader comes after
 * all (check_tiles.c). All others are proved region by region (check_region.c).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_CHECK_SOUND_H
#define BR_MEGA_CHECK_SOUND_H

#include "mega/check_int.h"

/* What is known of the writes of a buffer after the pass over the records. */
typedef struct br_wsum {
    int64_t lo, hi;   /* columns [lo, hi) are written, by tiles that grew it at
                         either end */
    uint32_t counter; /* of its writers; `several`: of the first */
    uint32_t first;   /* the first of them in the list */
    uint32_t n;       /* how many */
    uint32_t tile;    /* 1 + the last of the tiles that did not; 0: none */
    uint32_t reader;  /* 1 + one that comes after all of them; 0: none yet */
    bool several;     /* counters */
    bool complex;
} br_wsum;
typedef struct br_tile { /* of a buffer */
    br_mega_rect rect;
    uint32_t task, next; /* next: 1 + the one before in the buffer, or 0 */
} br_tile;

/* An unordered pair of accesses: which of the two tasks does what. a comes
 * first in topological order. */
typedef enum br_clash { BR_CLASH_WR, BR_CLASH_RW, BR_CLASH_WW } br_clash;

typedef struct br_pair {
    uint32_t a, b, buffer;
    uint32_t kind; /* br_clash */
} br_pair;

/* ---- check_hb.c --------------------------------------------------------- */

typedef enum br_answer { BR_NO, BR_YES, BR_UNKNOWN } br_answer;

/* Happens-before between "counter c is complete" and "task t starts". */
typedef struct br_hb {
    br_chk *k;
    uint32_t n_tasks, n_counters;
    const uint32_t *ctr, *wait_off, *wait;
    const uint32_t *order, *rank; /* topological; NULL: the list's own */
    const uint32_t
        *cpos; /* counter -> place of its last producer; NONE: none */
    uint32_t *pre, *size; /* tree of one predecessor each; NULL until asked */
    uint32_t *hop; /* to a counter that waits for it, or NONE; with the tree */
    BR_VEC(br_pair) open; /* pairs that need the sweep */
    BR_VEC(br_pair) bad;  /* pairs that are not ordered */
    size_t more_bad;
    uint64_t *reach; /* of the sweep, 4 words for each counter; kept zero */
} br_hb;

void br_hb_fini(br_hb *h);
/* Does everything before c's completion happen before t? */
br_answer br_hb_quick(br_hb *h, uint32_t c, uint32_t t);
/* Requires that a happens before b; settled by the next br_hb_settle. False
 * once memory is out. */
bool br_hb_require(br_hb *h, uint32_t a, uint32_t b, uint32_t buffer,
                   br_clash kind);
/* The pair is known to be unordered. */
bool br_hb_refuse(br_hb *h, uint32_t a, uint32_t b, uint32_t buffer,
                  br_clash kind);
bool br_hb_settle(br_hb *h);
/* Is a complete before b, or a itself? A no means nothing. */
bool br_hb_implies(br_hb *h, uint32_t b, uint32_t a);
/* Which of the two is complete only when both are; NONE: not known. */
uint32_t br_hb_latest(br_hb *h, uint32_t a, uint32_t b);
bool br_hb_no_memory(br_hb *h); /* false */
/* Enough failures seen: more would only be counted. */
bool br_hb_full(const br_hb *h);

/* "Do all tasks of a list come before t?", asked by many t. While they are few
 * each pair is asked for. Once that has cost more than to answer for all tasks
 * at once, such an answer is bought: a bit for each place. */
typedef struct br_deal {
    uint32_t from, to; /* places of the first and the last that ask */
    uint32_t pairs;    /* asked since it was bought last */
    uint32_t mark;     /* the caller's: what of the list it is about */
    uint64_t *after;   /* NULL: nothing bought */
} br_deal;

bool br_hb_worth(const br_deal *d, uint32_t n);
bool br_hb_buy(br_hb *h, br_deal *d, br_arena *a, const uint32_t *task,
               uint32_t n);

static inline uint32_t
br_hb_rank(const br_hb *h, uint32_t t)
{
    return h->rank ? h->rank[t] : t;
}

static inline bool
br_hb_bought(const br_hb *h, const br_deal *d, uint32_t t)
{
    uint32_t place = br_hb_rank(h, t);

    return d->after && d->after[place / 64] >> place % 64 & 1;
}

/* ---- check_front.c ------------------------------------------------------ */

/* The last writer of each cell of a band. */
typedef struct br_front {
    br_hb *hb;
    br_arena *arena;
    uint32_t buffer;
    uint32_t from, to; /* places of the first and the last that ask */
    uint32_t n_cells, room;
    uint32_t lo, hi;            /* nobody has written outside */
    uint32_t now;               /* writes so far */
    uint32_t pairs;             /* asked so far */
    size_t bought;              /* bytes of deals */
    uint32_t *list;             /* room for the writers of a node */
    struct br_front_node *node; /* 2 * n_cells - 1 */
} br_front;

/* Of a band of n cells; nobody has written yet. */
bool br_front_begin(br_front *f, uint32_t n_cells);
void br_front_write(br_front *f, uint32_t task, uint32_t i, uint32_t j);
/* The first cell of [i, j) that nobody has written; j: none. */
uint32_t br_front_hole(br_front *f, uint32_t i, uint32_t j);
/* Requires that the task comes after the writers of all the cells. */
bool br_front_after(br_front *f, uint32_t task, uint32_t i, uint32_t j,
                    br_clash kind);

/* ---- the state of a sound check ----------------------------------------- */

typedef struct br_unread { /* a read of bytes that nobody has written */
    uint32_t task, buffer;
    br_mega_rect rect;
    bool own; /* the only writer is the reader itself */
} br_unread;

typedef struct br_judged { /* the latest good recipe, and its operands */
    const br_json *steps;  /* NULL: none */
    const br_op_val *in[BR_MEGA_MAX_INPUTS], *out;
    uint32_t n_in;
} br_judged;

typedef struct br_snd {
    br_chk *k;
    const br_mega_prog *p;
    uint32_t n, nb, nc;               /* tasks, buffers, counters */
    br_op_val *val;                   /* of each buffer */
    br_wsum *ws;                      /* of each buffer */
    uint32_t *ctr;                    /* of each task */
    uint32_t *in_off, *in, in_cap;    /* inputs that somebody may write */
    uint32_t *out_off, *out, out_cap; /* outputs of tasks that are legal */
    int64_t *tiled; /* columns of each node of the graph that have a task */
    uint32_t *wait_off, *wait, *thr, wait_cap;
    uint32_t *np, *last; /* of each counter: producers, the last in the list */
    bool broken;         /* some rule about single records is broken */
    bool lost;           /* ids are no places: nothing can be looked up */
    bool in_list_order;  /* every wait is for tasks earlier in the list */
    bool any_sm, any_onchip;
    br_mega_graph g;
    bool have_graph;
    br_hb hb;
    BR_VEC(br_pair) reads; /* (task b, buffer) that want a closer look */
    BR_VEC(br_unread) unread;
    size_t n_unread, more_unread; /* of these, errors; those not kept */
    struct br_scratch *scratch;   /* of recipes; */
    uint32_t recipes;             /* how many were looked at */
    br_judged judged;
    BR_VEC(br_tile) tiles; /* of all buffers, out of order */
    uint64_t asked;        /* whether they are before a reader */
    br_arena region;       /* scratch of one buffer */
    uint32_t *page_of;     /* of each buffer, or NONE; NULL: no pages */
} br_snd;

/* Does task t write buffer b? */
static inline bool
br_snd_writes(const br_snd *s, uint32_t t, uint32_t b)
{
    for (uint32_t i = s->out_off[t]; i < s->out_off[t + 1]; i++)
        if (s->out[i] == b)
            return true;
    return false;
}

/* The graph, built when first asked for. False: out of memory. */
bool br_snd_graph(br_snd *s);
bool br_snd_no_memory(br_snd *s);
void br_snd_put(br_snd *s, uint32_t t, const char *sep); /* "task 3 (l)" sep */
/* The text goes on in k->text: "buffer #3 ('x')" */
void br_snd_put_buffer(br_snd *s, uint32_t b);

/* check_recipe.c: true when sound, else the rule is in c->why. */
bool br_chk_recipe(br_snd *s, const br_op_call *task, const br_json *recipe,
                   char why[200]);
/* check_tiles.c: task id writes the tile. False: no memory. */
bool br_snd_tile(br_snd *s, uint32_t id, uint32_t b, const br_mega_rect *r);
/* Do the tiles of the buffer cover it, none another? No: perhaps. */
bool br_snd_covered(br_snd *s, uint32_t b);
/* Does task t come after them all? No: perhaps. */
bool br_snd_after_tiles(br_snd *s, uint32_t t, uint32_t b);
/* check_race.c: reads against writes. */
bool br_snd_race(br_snd *s);
/* The same waits make the same ancestors: what one was asked, the other need
 * not be. */
bool br_snd_same_waits(const br_snd *s, uint32_t a, uint32_t b);
/* check_region.c: one buffer whose writes are no single epoch. */
bool br_snd_regions(br_snd *s, uint32_t buffer, const uint32_t *tasks,
                    uint32_t n);
/* check_queue.c */
bool br_snd_queues(br_snd *s);
bool br_snd_onchip(br_snd *s);
/* check_page.c */
bool br_snd_page_table(br_snd *s); /* before the race: fills page_of */
bool br_snd_pages(br_snd *s);      /* after: order of the occupants */
/* check_config.c */
void br_snd_config(br_snd *s);

#endif
