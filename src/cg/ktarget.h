/* ktarget.h - what kernels run on: a table, and what an entry owes.
 *
 * compile makes code of a module for the target; launch runs a kernel of it; a
 * target that only writes files (AIR, SPIR-V) has no launch. text shows the
 * code of a function for people, file makes what a loader takes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_KTARGET_H
#define BR_KTARGET_H

#include "cg/kinterp.h"
#include "cg/zrt.h"

typedef struct br_kcode br_kcode; /* the target's own */

typedef struct br_ktarget {
    const char *name;
    /* The module outlives the code. */
    br_code (*compile)(br_kcode **out, const br_kir *m, br_status *st);
    void (*free)(br_kcode *c);
    br_code (*launch)(br_kcode *c, br_klaunch *l, br_status *st);
    br_code (*text)(const br_kcode *c, uint32_t fn, br_str *out, br_status *st);
    /* Of one function, or of all (BR_KNONE). */
    br_code (*file)(const br_kcode *c, uint32_t only, br_str *out,
                    br_status *st);
    /* A kernel as the code of a .zrt file, of which z says what is the
     * target's; lines of the source into lines, unless that is NULL. */
    br_code (*zrt)(const br_kcode *c, uint32_t fn, br_zrt *z, br_str *code,
                   br_str *lines, br_status *st);
} br_ktarget;

extern const br_ktarget br_ktargets[]; /* that launch; ends with a NULL name */
extern const br_ktarget br_gcn_targets[]; /* cg/gcn; the same */
/* NULL: there is none of this name here. */
const br_ktarget *br_ktarget_find(const char *name);
/* Appends the .zrt file of a kernel that t->compile made code of. */
br_code br_ktarget_zrt(const br_ktarget *t, const br_kcode *c, const br_kir *m,
                       uint32_t fn, bool lines, br_str *out,
                       br_status *st) BR_MUST_USE;

#endif
