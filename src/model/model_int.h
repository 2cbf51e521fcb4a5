/* model_int.h - shared by model.c and hparam.c.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MODEL_INT_H
#define BR_MODEL_INT_H

#include "model/model.h"

/* Fills m->hp but for n_vocab. */
br_code br_hparams_read(br_model *m, br_status *st) BR_MUST_USE;

#endif
