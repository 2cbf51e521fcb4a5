/* check_int.h - shared by the parts of br_mega_check.
 *
 *   check.c            entry, report, its JSON
 *   check_task.c       rules about one task, texts shared by both modes
 *
 *   compatible mode (what the reference says, holes included)
 *   check_compat.c     values, ids, order of the sections
 *   check_compat_race.c  provenance, write-after-write, pages
 *   check_cycle.c      the cycle witness (both modes)
 *
 *   sound mode (what is true)
 *   check_sound.c      one pass over the records; order of the sections
 *   check_recipe.c     FUSED
 *   check_queue.c      workers' queues, on-chip memory
 *   check_race.c       who wrote what one reads
 *   check_region.c     the same for buffers written more than once
 *   check_front.c      the last writers of a row of cells
 *   check_hb.c         does counter c complete before task t starts?
 *   check_page.c       buffers that share memory
 *   check_config.c     target and configuration
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_CHECK_INT_H
#define BR_MEGA_CHECK_INT_H

#include "mega/footprint.h"
#include "mega/graph.h"
#include "mega/mega.h"

enum {
    /* Messages kept; the rest is counted. A compatible verdict lists all that
     * the reference would, up to what memory bears. */
    BR_CHK_MAX_SOUND = 1000,
    BR_CHK_MAX_COMPAT = 100000,
    BR_CHK_MAX_TEXT = 64 << 20, /* bytes of them: labels are as long as files */
};

typedef struct br_chk {
    const br_mega_prog *p;
    br_mega_report *r;
    br_mega_mode mode;
    br_arena tmp; /* all scratch of one check */
    br_str text;  /* the message in the making */
    size_t kept;  /* bytes of messages */
    br_status *st;
    bool oom;             /* sticky: of messages */
    struct br_cm *compat; /* NULL in sound mode */
} br_chk;

/* ---- check.c: messages -------------------------------------------------- */

void br_chk_error(br_chk *k, const char *fmt, ...) BR_PRINTF(2, 3);
void br_chk_warn(br_chk *k, const char *fmt, ...) BR_PRINTF(2, 3);
/* For texts put together in k->text: take it as an error or a warning. */
void br_chk_take_error(br_chk *k);
void br_chk_take_warning(br_chk *k);
/* True when further errors would only be counted. */
bool br_chk_full(const br_chk *k);
void *br_chk_get(br_chk *k, size_t n, size_t size) BR_MUST_USE;
void *br_chk_zero(br_chk *k, size_t n, size_t size) BR_MUST_USE;
/* br_fail with OOM. */
br_code br_chk_oom(br_chk *k);

/* ---- values as the file has them ---------------------------------------- */

/* A Python value: j, or the integer i when j is NULL. */
typedef struct br_pv {
    const br_json *j;
    int64_t i;
} br_pv;

/* The misfit of (field, index, sub), or the typed value. */
br_pv br_pv_of(const br_mega_prog *p, br_mega_field f, uint32_t index,
               uint32_t sub, int64_t plain);
const br_json *br_misfit_of(const br_mega_prog *p, br_mega_field f,
                            uint32_t index, uint32_t sub);
br_pv br_pv_id(const br_mega_prog *p, uint32_t task);
br_pv br_pv_in(const br_mega_prog *p, uint32_t task, uint32_t k);
br_pv br_pv_out(const br_mega_prog *p, uint32_t task, uint32_t k);
br_pv br_pv_ctr(const br_mega_prog *p, uint32_t task);
br_pv br_pv_wait(const br_mega_prog *p, uint32_t task, uint32_t k);
br_pv br_pv_thr(const br_mega_prog *p, uint32_t task, uint32_t k);
br_pv br_pv_sm(const br_mega_prog *p, uint32_t task); /* a null is a null */
bool br_pv_is_null(br_pv v);
bool br_truthy(const br_json *v); /* Python's bool() */
bool br_pv_eq(br_pv a, br_pv b);  /* Python's == */
/* True and the value for an int or a bool within 64 bits. */
bool br_pv_int(br_pv v, int64_t *out);
void br_pv_put(br_str *s, br_pv v);      /* str() */
void br_pv_put_repr(br_str *s, br_pv v); /* repr() */
void br_put_label(br_str *s, const br_mega_prog *p, uint32_t task);
/* "task 3 (label)" */
void br_put_task(br_str *s, const br_mega_prog *p, uint32_t task);
/* label, or the op's name where the label is empty */
void br_put_node(br_str *s, const br_mega_prog *p, uint32_t task);
void br_put_buffer(br_str *s, const br_mega_prog *p, uint32_t buffer);

/* ---- check_task.c ------------------------------------------------------- */

/* Every rule about task t alone, in the reference's order and words. In
 * compatible mode false means that the reference raises. */
bool br_chk_task(br_chk *k, uint32_t t);
/* Says that the threshold of wait i is none. */
void br_chk_threshold(br_chk *k, uint32_t t, uint32_t i);
/* Its waits against np[i] = producers of the counter of wait i. */
void br_chk_task_waits(br_chk *k, uint32_t t, const uint32_t *np);
void br_chk_outputs(br_chk *k, const uint8_t *produced);
void br_chk_gpu_label(br_chk *k);

/* ---- check_cycle.c ------------------------------------------------------ */

/* A graph as lists: successors of node v are succ[lo[v]..hi[v]), ascending. */
typedef struct br_succs {
    uint32_t n;
    const uint32_t *lo, *hi, *succ;
} br_succs;

/* The first cycle that a depth-first walk over the roots in their order meets,
 * its first node again at the end; *n 0: none. */
br_code br_chk_cycle(br_chk *k, const br_succs *g, const uint32_t *roots,
                     uint32_t n_roots, uint32_t **cycle,
                     uint32_t *n) BR_MUST_USE;

/* ---- the two modes ------------------------------------------------------ */

br_code br_chk_compat(br_chk *k) BR_MUST_USE;
br_code br_chk_sound(br_chk *k) BR_MUST_USE;

#endif
