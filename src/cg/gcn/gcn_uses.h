/* gcn_uses.h - which registers a machine instruction reads and writes, and
 * which counters it raises: what the passes that insert waits and the one that
 * proves them have in common.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_GCN_USES_H
#define BR_GCN_USES_H

#include "cg/gcn/isa.h"

enum {
    GCN_REGS = 512, /* codes of sources: scalars below 128, vectors from 256 */
    GCN_MAX_USES = 16 /* both halves of a dual instruction */
};

typedef struct gcn_use {
    uint16_t code;
    uint8_t words;
    bool write;
    bool mask; /* is read as one of lanes */
} gcn_use;

/* Registers named by fields, and VCC where it is implied; of both halves. */
unsigned gcn_uses(const br_gcn_isa *isa, const br_gcn_inst *in,
                  gcn_use out[GCN_MAX_USES]);

/* Counters of memory; gfx11 has one for SMEM and LDS: GCN_DS. */
typedef enum gcn_counter { GCN_LOAD, GCN_STORE, GCN_DS, GCN_KM } gcn_counter;
enum { GCN_COUNTERS = 4 };

typedef struct gcn_memory {
    bool on[GCN_COUNTERS]; /* which are raised */
    bool smem;             /* comes back in any order */
    bool flat;
} gcn_memory;
gcn_memory gcn_memory_of(const br_gcn_isa *isa, const br_gcn_inst *in);

/* What a wait instruction waits for: counts, or -1 of counters it leaves. */
bool gcn_is_wait(const br_gcn_isa *isa, const br_gcn_inst *in,
                 int wait[GCN_COUNTERS]);
bool gcn_is(const br_gcn_inst *in, const char *prefix);
bool gcn_is_valu(const br_gcn_inst *in);
bool gcn_is_salu(const br_gcn_inst *in);
/* Signs, halves, clamps or lanes of others are asked for. */
bool gcn_is_modified(const br_gcn_inst *in);
bool gcn_is_trans(const br_gcn_inst *in); /* of the transcendental unit */

#endif
