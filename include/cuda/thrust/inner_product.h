/* inner_product.h - see reduce.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_INNER_PRODUCT
#define BRASS_THRUST_INNER_PRODUCT
#include "reduce.h"
#endif
