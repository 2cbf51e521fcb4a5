/* emu_core.h - what the files of the emulated driver share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_EMU_CORE_H
#define BR_EMU_CORE_H

#include "emu.h"

#define E(name)     __attribute__((visibility("default"))) int name
#define IGNORE(...) (void)sizeof((__VA_ARGS__), 0)

struct shape { /* of a launch */
    u32 gx, gy, threads, shared;
    u32 cluster; /* blocks, or 0 */
};

/* ---- emu_core.c ---- */
extern int emu_lost;                    /* what all calls say, or 0 */
void emu_look_for_loss(const char *fn); /* before a launch of it */
int emu_hung(void);                     /* what runs never ends */
int emu_idle(void);                     /* nothing is launched or copied */
void emu_make_all(void); /* what was asked for and is not done yet */
/* A launch, here and now. */
int emu_launch_blocks(void *fn, const struct shape *s, void **params,
                      int together);
/* A graph: as late as may be; on a thread of its own. */
struct graph;
int emu_later(struct graph *g);
int emu_run_beside(struct graph *g);

/* ---- emu_graph.c ---- */
extern struct graph *emu_captured; /* what launches go to, or NULL */
int emu_note(void *fn, const struct shape *s, void **params, int together);
int emu_run_graph(struct graph *g);
size_t
emu_graph_bytes(void); /* of the device's memory, of all that can be launched */

#endif
