/* qmix.h - mixtures of number formats: which tensor gets which.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_QMIX_H
#define BR_QMIX_H

#include "model/gguf.h"

typedef struct br_qmix br_qmix; /* a row of qmix.def */

const br_qmix *br_qmix_find(br_text name); /* any case; NULL: none */
const br_qmix *br_qmix_at(size_t i);       /* NULL: no more */
const char *br_qmix_name(const br_qmix *m);
uint32_t br_qmix_code(const br_qmix *m); /* general.file_type */
/* The reverse; NULL where no row has the code. */
const char *br_qmix_code_name(int64_t code);

/* What of a model decides. */
typedef struct br_qmix_model {
    int64_t n_layer;
    bool tied; /* no output.weight */
} br_qmix_model;
void br_qmix_model_of(br_qmix_model *q, const br_gguf *g);

/* The format of a tensor: its own where it is kept. *fell says that the one
 * of the mixture did not fit its rows. */
int br_qmix_type(const br_qmix *m, const br_qmix_model *q,
                 const br_gguf_tensor *t, bool *fell);

#endif
