/* http_none.c - for builds without libcurl.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/http_get.h"

#if !defined BR_HAVE_CURL

bool
br_http_here(void)
{
    return false;
}

br_http_end
br_http_fetch(const br_http_get *g, long *status, char why[256])
{
    (void)g;
    *status = 0;
    why[0] = 0;
    return BR_HTTP_NEVER;
}

#endif
