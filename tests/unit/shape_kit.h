/* shape_kit.h - a model of random weights on a tier.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SHAPE_KIT_H
#define SHAPE_KIT_H

#include "model/tokenizer.h"
#include "run/lm_model.h"
#include "run/sample.h"

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
/* n tokens from `from` on into a slot, in one step, and to fed[from ..]. */
void feed_slot(const br_lm *lm, const uint32_t *const *tables, uint32_t slot,
               uint32_t from, uint32_t n, int32_t *fed);
/* The slot's last token of n again, and all of them in a spare slot, as a prompt: keys and
 * values are where they belong. */
void same_as_a_prompt(const br_lm *lm, const uint32_t *const *tables,
                      uint32_t slot, uint32_t spare, const int32_t *fed,
                      uint32_t n);
/* Number i of three ways to draw: the best, of most of the mass, of the likeliest. */
br_sample_params way_to_draw(uint32_t i);
/* Words for its 256 tokens. */
br_tok *shape_words(void);

#endif
