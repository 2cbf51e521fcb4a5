/* pm4.h - command streams of AMD's compute queues, for gfx11 and gfx12.
 *
 *     header   3 << 30 | (body dwords - 1) << 16 | op << 8
 *     body     see pm4.def; the processor stops at the write pointer, so
 *              packets need no publishing of their own
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_DRV_AMD_PM4_H
#define BR_DRV_AMD_PM4_H

#include "base/base.h"

typedef enum br_pm4_op {
#define PM4(name, op, body) BR_PM4_##name = op,
#include "drv/amd/pm4.def"
#undef PM4
} br_pm4_op;

enum {
    BR_PM4_MAX_BODY = 0x3fff,
    BR_PM4_SH_LAST = 0x3ff,       /* last compute register, from 0x2c00 on */
    BR_PM4_BEFORE = 0x3f0,        /* GCR_CNTL: K$, V$, L1 are dropped */
    BR_PM4_PARTIAL_FLUSH = 0x407, /* all waves of earlier dispatches end */
};

/* A stream in memory of the caller. */
typedef struct br_pm4 {
    uint32_t *at;
    size_t n, cap; /* dwords */
    bool full;     /* something did not fit; nothing is added any more */
} br_pm4;

void br_pm4_put(br_pm4 *s, br_pm4_op op, const uint32_t *body, size_t n);
/* n registers from reg on (0x20c: PGM_LO). */
void br_pm4_set_sh(br_pm4 *s, unsigned reg, const uint32_t *v, size_t n);
void br_pm4_dispatch(br_pm4 *s, const uint32_t groups[3], bool wave64);
/* Caches named by gcr are dropped before what follows reads. */
void br_pm4_acquire(br_pm4 *s, uint32_t gcr);
/* After all earlier work: caches are written back, then value is stored. */
void br_pm4_release(br_pm4 *s, uint64_t address, uint32_t value);

typedef struct br_pm4_view {
    br_pm4_op op;
    const uint32_t *body;
    size_t n; /* dwords of body */
} br_pm4_view;

/* Reads one packet; returns its dwords with the header, 0 where there is no
 * whole packet with a body of the right length. */
size_t br_pm4_next(const uint32_t *w, size_t n, br_pm4_view *out);

#endif
