/* kernel.h - what the kernel commands share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CLI_KERNEL_H
#define BR_CLI_KERNEL_H

#include "cg/kir.h"
#include "cli/cli.h"

/* Reads the command's file, PTX or kernel IR as text. On BR_OK br_kir_free. */
br_code br_kernel_load(br_cli *cli, br_kir **out, br_status *st) BR_MUST_USE;
/* The kernel of --entry, or the only one there is. */
br_code br_kernel_entry(br_cli *cli, const br_kir *m, uint32_t *fn,
                        br_status *st) BR_MUST_USE;

#endif
