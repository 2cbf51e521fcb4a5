/* shape.h - models of real shapes with random weights, for measuring.
 *
 *     shape:llama-3.2-1b:Q8_0        a row of mega/shapes.def or shape.def,
 *     shape:qwen3-8b:BF16:7          a number format or a mixture, a seed
 *
 * Weights are normal with the spread a trained model has, in the format asked
 * for, so a step costs what it costs with the real file, and logits are finite.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SHAPE_H
#define BR_SHAPE_H

#include "base/base.h"

bool br_shape_is(const char *spec); /* begins with "shape:" */
/* A GGUF file in memory, without tokenizer; br_str_fini. small: one layer, 256
 * words, and of large experts those that one token picks. USAGE, listing what there is:
 * no such shape or format. */
br_code br_shape_model(br_str *out, const char *spec, bool small,
                       br_status *st) BR_MUST_USE;
const char *br_shape_name(size_t i); /* NULL: no more */

#endif
