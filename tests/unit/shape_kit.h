/* shape_kit.h - a model of random weights on a tier.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHAPE_KIT_H
#define SHAPE_KIT_H

#include "model/tokenizer.h"
#include "run/lm_model.h"

typedef struct shaped {
    br_str doc; /* its file */
    br_model *m;
    br_lm_model *r;
    const br_lm *lm;
} shaped;

/* spec: as run/shape.h says. The file alone, or with a tier that runs it. */
shaped open_shape_file(const char *spec);
shaped open_shape(const char *spec, const br_lm_config *c);
void close_shape(shaped *on);
/* Words for its 256 tokens. */
br_tok *shape_words(void);

#endif
