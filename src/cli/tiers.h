/* tiers.h - what could run models on this machine, and what stands in the way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TIERS_H
#define BR_TIERS_H

#include "cli/cli.h"
#include "drv/nodes/node_dev.h"
#include "run/lm_model.h"

typedef struct br_tier_here {
    const char *name;
    bool available;     /* --tier NAME runs a model */
    const char *device; /* a node of it that is there, or NULL */
    bool barred;        /* it is there and we may not open it */
    bool simulated;
    char why[120];
} br_tier_here;

enum { BR_TIERS = 9 };
/* sim: of --sim, or NULL */
void br_tiers_look(br_tier_here out[BR_TIERS], const char *sim);
/* What auto picks: the best that is available. */
const br_tier_here *br_tiers_auto(const br_tier_here t[BR_TIERS]);

/* Of --tier: NULL, nobody said, or auto. */
const char *br_cli_tier_said(const br_cli *cli, br_opt_id tier);
/* The same, or AMD's where --sim names a GPU. */
const char *br_cli_tier(const br_cli *cli, br_opt_id tier);
/* Where a tier of a GPU is; tier NULL for all others. */
br_nd_where br_cli_where(const br_cli *cli, const char *tier);
/* How a model is opened, by the options that every command with one takes. The
 * folder of packed weights stands in `cache`, for the caller to free. */
br_lm_config br_cli_lm_config(const br_cli *cli, br_str *cache);
/* USAGE: --ctx has room for more tokens than m was made for. */
br_code br_cli_ctx_check(const br_cli *cli, const br_model *m,
                         br_status *st) BR_MUST_USE;
/* NO_DEVICE: this build runs no models there. */
br_code br_cli_tier_check(const char *tier, br_status *st) BR_MUST_USE;
/* A line for each flag that means nothing on the tier that the options name. */
void br_cli_warn_of_tier(const br_cli *cli);

#endif
