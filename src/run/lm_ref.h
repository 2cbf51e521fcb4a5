/* lm_ref.h - a model file at work on the reference tier.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_LM_REF_H
#define BR_LM_REF_H

#include "model/model.h"
#include "run/lm.h"

typedef struct br_lm_ref br_lm_ref;

/* What the context is when nobody says: as many tokens as the model was
 * trained for, but no more than this, since pages are taken at once. */
enum { BR_LM_REF_CTX = 4096 };

/* n_ctx 0: see above. The model outlives it. */
br_code br_lm_ref_open(br_lm_ref **out, const br_model *m, uint32_t n_ctx,
                       uint32_t n_slots, br_status *st) BR_MUST_USE;
void br_lm_ref_close(br_lm_ref *r);
const br_lm *br_lm_ref_lm(const br_lm_ref *r);

#endif
