/* lower_make.h - makes networks, configs and programs for tests.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LOWER_MAKE_H
#define LOWER_MAKE_H

#include "mega/lower.h"

/* manifest.json of the vectors; NULL where they are absent. */
const br_json *lm_manifest(void);
void lm_manifest_done(void);

/* The program that a lower_spec of the vectors describes, style amk; NULL and
 * *st on failure. */
br_mega_prog *lm_spec(const br_json *spec, br_status *st);

#endif
