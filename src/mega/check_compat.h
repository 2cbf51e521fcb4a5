/* check_compat.h - what the parts of the compatible mode share.
 *
 * The reference keeps buffers, counters and tasks in lists and looks them up
 * by position, but takes their ids from the file, whatever those are. Three
 * numbers stand for one thing here:
 *
 *   class   values that are equal in Python (1, 1.0, True) are one class;
 *           the small integers are their own class
 *   slot    a distinct task id; slots ascend with the ids
 *   place   index in the list, which is what prog.tasks[id] means
 *
 * Where the reference raises, functions return false: the verdict is no.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_CHECK_COMPAT_H
#define BR_MEGA_CHECK_COMPAT_H

#include "mega/check_int.h"

enum {
    BR_CM_MAX_PROOF_TASKS = 8000, /* the reference skips its proof above */
    /* What the reference would take hours for is refused instead. */
    BR_CM_MAX_WRITERS = 1 << 15, /* of one buffer */
    BR_CM_MAX_EDGES = 1 << 24,   /* where ids are duplicate */
};

typedef struct br_cm_key br_cm_key;

typedef struct br_cm {
    br_chk *k;
    /* classes */
    br_cm_key *table;
    uint32_t n_table, cap; /* used; a power of two */
    uint32_t n_small, n_cls;
    uint8_t *is_buf, *is_ctr;
    uint32_t *buf_cls;
    uint32_t *octr;          /* class of a task's counter */
    uint32_t *in_off, *in;   /* classes of inputs */
    uint32_t *out_off, *out; /* classes of outputs */
    uint32_t *wait_off, *wait;
    uint32_t *np; /* by class: producers of the counter */
    /* slots */
    uint32_t n_slots;
    int64_t *slot_id;
    uint32_t *slot_of;               /* of a task */
    uint32_t *slot_task, *last_task; /* first and last with the id */
    bool unique;                     /* slots are tasks */
    bool float_ids;                  /* some id is a float */
    /* edges between slots: successors of s are succ[lo[s]..hi[s]) */
    uint32_t *lo, *hi;
    const uint32_t *succ;
    br_mega_graph g; /* over slots; only when unique */
    const uint32_t *topo;
    const char *why; /* of a raise */
} br_cm;

bool br_cm_known_buffer(const br_cm *m, uint32_t t, uint32_t i, bool write);
/* wait < 0: the task's own counter. */
bool br_cm_known_counter(const br_cm *m, uint32_t t, int64_t wait);
/* Place of the buffer whose id is this operand. */
bool br_cm_buffer_at(const br_cm *m, uint32_t t, uint32_t i, bool write,
                     int64_t *at);
/* Place of a Python index in a list of n: negative ones count from the end. */
bool br_cm_place(int64_t index, size_t n, uint32_t *at);
bool br_cm_raise(br_cm *m, const char *why);
/* The class of a value; a new one, at the end of m->n_cls, when none equals.
 */
bool br_cm_class(br_cm *m, br_pv v, uint32_t *cls);
/* CSR of the tasks that have a class among some lists; by = in, out or both
 * (see check_compat.c). */
typedef struct br_cm_users {
    uint32_t *off, *task;
} br_cm_users;
bool br_cm_writers(br_cm *m, br_cm_users *u);
bool br_cm_all_users(br_cm *m, br_cm_users *u);

/* check_compat_race.c: sections 5 and 5a; needs a topological order. anc:
 * bit rows, slot x slot. */
typedef struct br_cm_anc {
    uint64_t *bits;
    uint32_t words;
} br_cm_anc;
bool br_cm_race(br_cm *m, const br_cm_users *writers, br_cm_anc *anc);
/* *out = slot x precedes slot y; false: shifting by a negative id raises. */
bool br_cm_before(br_cm *m, const br_cm_anc *anc, uint32_t x, uint32_t y,
                  bool *out);
/* check_compat_place.c: sections 5b, 6, 7. */
bool br_cm_onchip(br_cm *m, const br_cm_users *users);
bool br_cm_queues(br_cm *m);
bool br_cm_pages(br_cm *m, const br_cm_users *writers, const br_cm_users *users,
                 const br_cm_anc *anc);

#endif
