/* gcn_corpus.h - the kernels of tests/data/gcn/kernels.cu, run on the simulated
 * GPU: for mutants, counts and speed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GCN_CORPUS_H
#define GCN_CORPUS_H

#include "cg/gcn/gcn_kernel.h"
#include "drv/sim/sim.h"

enum { CORPUS_IN = 256 << 10, CORPUS_BYTES = 64 << 10 };

/* A run, and what it left. */
typedef struct corpus_run {
    uint64_t seed, max_steps, steps, findings;
    uint64_t hints; /* of the steps, s_delay_alu */
    uint64_t *mix;  /* NULL, or where the others are counted by class */
    bool check;
    unsigned repeat;   /* more dispatches, each with memory as at first */
    double seconds;    /* out: of a processor, for all dispatches */
    char finding[300]; /* the first */
    br_status st;
    uint8_t in[CORPUS_IN], out[CORPUS_BYTES], work[CORPUS_BYTES];
} corpus_run;

/* The nth kernel's name; NULL: there are no more. */
const char *corpus_name(const br_kir *m, uint32_t nth, char buf[64]);
/* Clears memory and runs a kernel of a code object, blocks of threads: names of
 * parameters are in, out, work. */
br_code corpus_run_object(corpus_run *r, const br_gcn_co *co,
                          const char *kernel, const uint32_t blocks[3],
                          const uint32_t threads[3]);
/* The same of compiled code, some words changed. */
br_code corpus_run_words(corpus_run *r, const br_gcn_isa *isa,
                         const br_gcn_compiled *k, const uint32_t *words,
                         const uint32_t blocks[3], const uint32_t threads[3]);
/* Whether both left the same. */
bool corpus_same(const corpus_run *a, const corpus_run *b);

#endif
