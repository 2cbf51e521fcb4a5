/* qint.h - a block of quantised weights as the integers that it is made of.
 *
 *   w[i] = d * scale[i / sub] * q[i] - dmin * min[i / sub]
 *
 * For the dot product with activations that are integers themselves: then the
 * sums inside a block are exact (docs/arithmetic.md).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_QINT_H
#define BR_QINT_H

#include "model/quant.h"

typedef struct br_qint {
    int16_t q[256];
    int16_t scale[16], min[16];
    int n, sub; /* weights of the block; of a sub-block */
    float d, dmin;
    bool has_min;
} br_qint;

/* Has this format a form in integers here? */
bool br_qint_has(int type);
/* p: one block of the format. */
void br_qint_block(int type, const uint8_t *p, br_qint *out);

#endif
