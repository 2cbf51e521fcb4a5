/* tiers.h - what could run models on this machine, and what stands in the way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TIERS_H
#define BR_TIERS_H

#include "cli/cli.h"

typedef struct br_tier_here {
    const char *name;
    bool available;     /* --tier NAME runs a model */
    const char *device; /* a node of it that is there, or NULL */
    bool barred;        /* it is there and we may not open it */
    char why[120];
} br_tier_here;

enum { BR_TIERS = 9 };
void br_tiers_look(br_tier_here out[BR_TIERS]);
/* What auto picks: the best that is available. */
const br_tier_here *br_tiers_auto(const br_tier_here t[BR_TIERS]);

#endif
