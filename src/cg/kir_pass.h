/* kir_pass.h - what the passes over a function share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_KIR_PASS_H
#define BR_KIR_PASS_H

#include "cg/kir.h"

/* Each says whether it may have changed the function. */
bool br_kpass_inline(br_kir *m, br_kfn *f);
bool br_kpass_ssa(br_kir *m, br_kfn *f);  /* pass_fold.c */
bool br_kpass_fold(br_kir *m, br_kfn *f); /* pass_fold.c */
bool br_kpass_space(br_kir *m, br_kfn *f);
bool br_kpass_flow(br_kir *m, br_kfn *f);
bool br_kpass_gvn(br_kir *m, br_kfn *f);
bool br_kpass_hoist(br_kir *m, br_kfn *f);
bool br_kpass_join(br_kir *m, br_kfn *f);
bool br_kpass_dce(br_kir *m, br_kfn *f);
bool br_kpass_sched(br_kir *m, br_kfn *f);

/* same[v]: the value that stands for v. NULL: out of memory, sticky. */
uint32_t *br_ksame_new(br_kir *m, const br_kfn *f);
uint32_t br_ksame_find(uint32_t *same, uint32_t v);
void br_ksame_apply(br_kfn *f, uint32_t *same);
void br_kfn_cut(br_kfn *f, uint32_t from, size_t s);
void br_kfn_drop_dead(br_kir *m, br_kfn *f);
/* Instructions that are gone leave their blocks: whether there were any. */
bool br_kfn_sweep(br_kfn *f, const uint8_t *gone);
size_t br_kblk_phis(const br_kfn *f, const br_kblk *b);
/* Predecessors in order again, after one became another, and phis with them. */
void br_kfn_sort_preds(br_kfn *f, br_kblk *b);

/* Bytes of a frame that belong together. */
typedef struct br_kobj {
    uint64_t at, bytes;
} br_kobj;
/* pass_frame.c: places of the frame that are only loaded and stored become
 * values. False: out of memory. */
bool br_kfn_promote(br_kir *m, br_kfn *f, const br_kobj *objs,
                    size_t n) BR_MUST_USE;

#endif
