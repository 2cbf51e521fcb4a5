/* node_dev.c - which devices have kernels of a node each.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/nodes/node_dev.h"

#include <string.h>

bool
br_nd_tier(br_text name)
{
    return br_text_is(name, "cuda") || br_text_is(name, "amd") ||
           br_text_is(name, "amd-t1") || br_text_is(name, "amd-t2");
}
