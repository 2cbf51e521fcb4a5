/* aql.h - packets of a queue of HSA: what launches a kernel on an AMD GPU.
 *
 * A packet is 64 bytes. Its first 16 bits, the header, are written last and
 * with release order: until then the slot holds an invalid packet and the
 * processor waits. Partner of that store: the packet processor's acquire.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_AMD_AQL_H
#define BR_DRV_AMD_AQL_H

#include "base/base.h"

#include <stdatomic.h>

typedef enum br_aql_type {
    BR_AQL_VENDOR = 0,
    BR_AQL_INVALID = 1,
    BR_AQL_DISPATCH = 2,
    BR_AQL_BARRIER_AND = 3,
    BR_AQL_BARRIER_OR = 5,
} br_aql_type;

/* Who has to see what was written before, who sees what is written. */
typedef enum br_aql_scope {
    BR_AQL_SCOPE_NONE,
    BR_AQL_SCOPE_AGENT,
    BR_AQL_SCOPE_SYSTEM,
} br_aql_scope;

typedef struct br_aql_packet {
    _Atomic uint16_t header; /* type, barrier, scopes; see br_aql_header */
    uint16_t setup;          /* bits 1-0: dimensions of the grid */
    uint16_t group[3];       /* work-items of a work-group */
    uint16_t reserved0;
    uint32_t grid[3];                    /* in work-items, not work-groups */
    uint32_t private_bytes, group_bytes; /* scratch of a lane, LDS */
    uint64_t kernel;                     /* address of the descriptor, k.kd */
    uint64_t kernarg;
    uint64_t reserved2;
    uint64_t completion; /* signal that is counted down, or 0 */
} br_aql_packet;

_Static_assert(sizeof(br_aql_packet) == 64, "one slot of a queue");
_Static_assert(offsetof(br_aql_packet, grid) == 12, "HSA 1.2, 2.9.6");
_Static_assert(offsetof(br_aql_packet, kernel) == 32, "HSA 1.2, 2.9.6");
_Static_assert(offsetof(br_aql_packet, completion) == 56, "HSA 1.2, 2.9.6");

typedef struct br_aql_launch {
    uint32_t groups[3], group[3]; /* work-groups; work-items of one */
    uint32_t private_bytes, group_bytes;
    uint64_t kernel, kernarg, completion;
} br_aql_launch;

uint16_t br_aql_header(br_aql_type type, bool barrier, br_aql_scope acquire,
                       br_aql_scope release);
/* Fills the slot but for its header, which stays invalid. */
br_code br_aql_fill(br_aql_packet *p, const br_aql_launch *l,
                    br_status *st) BR_MUST_USE;
/* From here on the processor may take the packet. */
void br_aql_publish(br_aql_packet *p, uint16_t header);

#endif
