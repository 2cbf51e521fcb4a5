/* tier_diff.h - two tiers on the same tokens, layer by layer.
 *
 *   pass 1   what each layer hands to the next, from both: the first layer
 *            that differs
 *   pass 2   what every node of that layer writes: the first node
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TIER_DIFF_H
#define BR_TIER_DIFF_H

#include "run/oracle.h"

enum { BR_VALIDATE_TOKENS = 512 }; /* at most, in one step */

typedef struct br_layer_diff {
    int32_t layer; /* -1 before the first; n_layer: the head */
    bool equal;    /* to the bit */
    double nmse;   /* NaN where either has one */
} br_layer_diff;

typedef struct br_diff {
    BR_VEC(br_layer_diff) layers;
    /* The first layer beyond the bound, or NULL; then the node there that
     * differs most early, and its first number that is not the same. */
    const br_layer_diff *first;
    uint32_t node;
    uint32_t row, col;
    float want, got;
} br_diff;

/* Both open on one model, both empty, max_rows and max_want at least n; they
 * are left with the tokens in slot 0. bound: NMSE of a layer that is still
 * right; 0: only equal bits are. */
br_code br_validate(br_diff *d, br_oracle *want, br_oracle *got,
                    const int32_t *tokens, uint32_t n, double bound,
                    br_status *st) BR_MUST_USE;
void br_diff_fini(br_diff *d);

/* (x - want)^2 over want^2. Not a number where either has one that is none, or want is
 * 0 throughout: so ask whether it is below a bound, not above. */
double br_nmse(const float *x, const float *want, size_t n);
/* The first of the highest; 0 where x begins with what is no number. */
uint32_t br_argmax(const float *x, uint32_t n);

#endif
