/* hazard_kit.h - that gfx12 code waits for scalars that vector instructions wrote, on
 * all ways through it. SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HAZARD_KIT_H
#define BR_HAZARD_KIT_H

#include "cg/gcn/gcn_code.h"

/* "": it does; else where it does not. *more: there are more states of it than are
 * looked at. */
const char *hazard_find(const br_gcn_isa *isa, const uint32_t *w, size_t n,
                        bool *more);

#endif
