/* ptx_kit.h - PTX for tests: load it, run a kernel of it.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PTX_KIT_H
#define PTX_KIT_H

#include "t.h"

#include "cg/ktarget.h"
#include "cg/ptx/ptx.h"

/* Fails the test where the text is refused. */
br_kir *ptx_load(const char *text);

/* Vectors of ../shared/vectors/ptx: every kernel is k_N(in, out), grid 8, block
 * 128; thread g reads three u64 at in[3g] and writes out[g]. */
enum { PTX_ROWS = 1024 };
typedef struct ptx_case {
    char what[100], dst[16], src[40]; /* of sweep.tsv; of warp.tsv only what */
} ptx_case;
typedef struct ptx_set {
    br_kir *m;
    uint64_t in[PTX_ROWS * 3];
    const uint64_t *out; /* [n][PTX_ROWS] */
    ptx_case *cases;
    int n;
    const br_ktarget *on; /* NULL: the interpreter */
    br_ktarget sim;       /* of a simulated processor */
    bool check;
    br_kcode *code;
} ptx_set;
/* Skips the test where the vectors are not there. */
void ptx_vectors(ptx_set *s, const char *name);
/* Compiles the module for a target (a simulated one: gfx1100); skips where it
 * is not there. */
void ptx_target(ptx_set *s, const char *name);
void ptx_fini(ptx_set *s);
/* Kernel n on the rows; "" or what went wrong. */
const char *ptx_run_case(const ptx_set *s, const br_kir *m, int n,
                         uint64_t *out);

#endif
