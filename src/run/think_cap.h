/* think_cap.h - a thought has so many tokens at most.
 *
 *   logits --the form's mask--> --cap's--> sampler
 *
 * When a thought has all it may have, what ends it is all that can come; the
 * answer follows as if the model had ended it. Where the answer's form does not
 * let that come yet, the thought goes on until it does.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_THINK_CAP_H
#define BR_THINK_CAP_H

#include "model/tokenizer.h"
#include "run/sample.h"
#include "run/think.h"

typedef struct br_think_cap br_think_cap;

typedef struct br_think_cap_config {
    const br_think *t;
    const br_tok *tok;
    bool open;     /* the prompt has begun a thought */
    uint32_t most; /* tokens of all thoughts together */
    br_logit_hook
        form; /* of the answer, or none; its object outlives the cap */
} br_think_cap_config;

br_code br_think_cap_new(br_think_cap **out, const br_think_cap_config *config,
                         br_status *st) BR_MUST_USE;
void br_think_cap_free(br_think_cap *c);
br_logit_hook br_think_cap_hook(br_think_cap *c);

#endif
