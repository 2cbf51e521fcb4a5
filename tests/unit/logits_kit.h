/* logits_kit.h - golden logits: models, their tokens, what they have to say.
 *
 * The cases of ../shared/vectors/logits where that folder is, else the three
 * of tests/data/logits.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LOGITS_KIT_H
#define LOGITS_KIT_H

#include "run/oracle.h"

typedef struct lk_case {
    const char *name, *arch;
    char *file; /* the model's bytes, this test's own */
    size_t file_n;
    int32_t tokens[64];
    uint32_t n_tokens, n_vocab;
    const float *want; /* [n_tokens][n_vocab] */
    int32_t greedy[16];
    double margin[16];
    uint32_t n_greedy;
    double tol_quantised;
    int arch_first; /* the first case of its architecture */
} lk_case;

/* Every test ends with it. */
void lk_end(void);
size_t lk_count(void);
/* Case i, its model read anew. */
lk_case lk_get(size_t i);
size_t lk_find(const char *name); /* or lk_count() */
/* The first case at `from` or after it of this architecture, or lk_count(). */
size_t lk_of_arch(br_arch_id id, size_t from);
bool lk_complete(void); /* the cases of every architecture are here */

typedef struct lk_run {
    br_model *model;
    br_oracle o;
    br_status st;
} lk_run;

/* The case's file again, with what `set` adds or changes. */
struct br_gguf_writer;
void lk_rewrite(lk_case *c, void (*set)(struct br_gguf_writer *w));
/* Within such a `set`: a vector of four numbers more. */
void lk_add_four(struct br_gguf_writer *w, const char *name, const float *v);
/* Opens the case's bytes; not BR_OK: st says why, nothing is left open. */
br_code lk_open(lk_run *r, const lk_case *c, const br_oracle_config *config);
void lk_close(lk_run *r);
/* Logits of the first n tokens, kept till the test ends. */
float *lk_logits(lk_run *r, const lk_case *c, uint32_t n, uint32_t chunk);

/* Of so many threads; the test frees it. */
br_cpu_pool *lk_pool(uint32_t n);
/* Is case i one that tests of many runs leave out? */
bool lk_skips(const lk_case *c, size_t i);
/* All logits of the case are the same bits; else the test fails and names the first. */
void lk_same(const lk_case *c, const float *a, const float *b,
             const char *what);

typedef struct lk_error {
    double nmse, median; /* over all; of the positions' own */
} lk_error;
lk_error lk_compare(const float *got, const float *want, uint32_t n,
                    uint32_t n_vocab);

/* sensitivity.json of the case: key i and its NMSE; false: no more. */
bool lk_sensitivity(const char *name, size_t i, const char **key, double *nmse);

#endif
