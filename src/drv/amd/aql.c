/* aql.c - building dispatch packets field by field.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/amd/aql.h"

enum { MAX_GROUP = 1024 }; /* work-items of a work-group */

uint16_t
br_aql_header(br_aql_type type, bool barrier, br_aql_scope acquire,
              br_aql_scope release)
{
    return (uint16_t)(type | (unsigned)barrier << 8 | (unsigned)acquire << 9 |
                      (unsigned)release << 11);
}

br_code
br_aql_fill(br_aql_packet *p, const br_aql_launch *l, br_status *st)
{
    uint64_t items = 1;
    uint16_t dims = 1;

    if (l->kernel % 64 || !l->kernel || l->kernarg % 16)
        return br_fail(st, BR_E_LIMIT,
                       "a descriptor stands on 64 bytes, arguments on 16");
    for (uint16_t d = 0; d < 3; d++) {
        items *= l->group[d] <= MAX_GROUP ? l->group[d] : 0;
        if (!items || items > MAX_GROUP || !l->groups[d] ||
            l->groups[d] > UINT32_MAX / l->group[d])
            return br_fail(st, BR_E_LIMIT,
                           "%u work-groups of %u work-items in dimension %u",
                           l->groups[d], l->group[d], d);
        if (l->groups[d] * l->group[d] > 1)
            dims = (uint16_t)(d + 1);
    }
    atomic_store_explicit(&p->header, BR_AQL_INVALID, memory_order_relaxed);
    p->setup = dims;
    for (int d = 0; d < 3; d++) {
        p->group[d] = (uint16_t)l->group[d];
        p->grid[d] = l->groups[d] * l->group[d];
    }
    p->reserved0 = 0;
    p->private_bytes = l->private_bytes;
    p->group_bytes = l->group_bytes;
    p->kernel = l->kernel;
    p->kernarg = l->kernarg;
    p->reserved2 = 0;
    p->completion = l->completion;
    return BR_OK;
}

void
br_aql_publish(br_aql_packet *p, uint16_t header)
{
    atomic_store_explicit(&p->header, header, memory_order_release);
}
