/* gcn_lower.h - a kernel in the operations that have AMD code.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GCN_LOWER_H
#define BR_GCN_LOWER_H

#include "cg/gcn/isa.h"
#include "cg/kir.h"

/* A module of one function, a copy with calls put in, operations without code written
 * out (gcn_lib.def) and the frame in values where that can be; variables have
 * their numbers of m, and those of the library follow. Products of matrices may stay
 * where the processor was asked for with them. *out is the caller's. */
br_code gm_lower(br_kir **out, const br_kir *m, uint32_t fn,
                 const br_gcn_isa *isa, br_status *st) BR_MUST_USE;

/* gcn_sel.c: whether an operation has code as it is. */
bool gm_has_code(const br_kfn *f, const br_kins *i);

/* gcn_sel_mma.c: whether v_wmma computes it, but for the order of sums. */
bool gm_is_wmma(const br_kfn *f, const br_kins *i);

/* gcn_lib.c: a function in PTX that computes an operation, `f` with arguments
 * a b c f and results d e. False: there is none. */
bool gm_lib_text(const br_kfn *f, const br_kins *i, br_str *out);
/* What such a function begins with; many: arguments a0 a1 .., results d0 d1 .. */
void gm_mod_text(const br_kins *i, uint16_t field, br_str *out);
void gm_lib_header(const br_kfn *f, const br_kins *i, bool many, br_str *out);
/* gcn_lib_bar.c: the same of barriers and what they hear of. */
bool gm_lib_barrier(const br_kfn *f, const br_kins *i, br_str *out);
/* Whether kernel fn, or what it may call, has barriers that are counted; and what
 * it begins with then. */
bool gm_counts_barriers(const br_kir *m, uint32_t fn);
void gm_lib_begin(br_str *out);
/* Whether some warps wait where others need not come: two that are one wave may never
 * go on. */
bool gm_waits_for_warps(const br_kfn *f, const br_kins *i);
/* Whether threads arrive at a barrier and do not wait. */
bool gm_some_arrive(const br_kfn *f);
/* PTX of the functions that the host has elsewhere: brass_vprintf ... */
br_text gm_host_text(void);

#endif
