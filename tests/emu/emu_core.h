/* emu_core.h - what the files of the emulated driver share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_EMU_CORE_H
#define BR_EMU_CORE_H

#include "emu.h"

#include <pthread.h>

#define E(name)     __attribute__((visibility("default"))) int name
#define IGNORE(...) (void)sizeof((__VA_ARGS__), 0)

struct shape { /* of a launch */
    u32 gx, gy, threads, shared;
    u32 cluster; /* blocks, or 0 */
};

/* A stream; captured: what launches into it go to, or NULL. */
struct graph;
struct stream {
    int is_there;
    int apart;  /* from the legacy stream */
    int broken; /* its capture: what waits for all streams was asked beside it */
    struct graph *captured;
    pthread_t by;
};

/* ---- emu_core.c ---- */
/* Calls come from several threads, one at a time: to the end of the block. */
int emu_no_context(void); /* of this thread: what calls say then */
void emu_take(void);
void emu_give(int *unused);
#define ONE_AT_A_TIME                                         \
    __attribute__((cleanup(emu_give), unused)) int taken = 0; \
    emu_take()
extern int emu_lost;                    /* what all calls say, or 0 */
void emu_look_for_loss(const char *fn); /* before a launch of it */
int emu_hung(void);                     /* what runs never ends */
int emu_idle(void);                     /* nothing is launched or copied */
void emu_make_all(void); /* what was asked for and is not done yet */
/* A launch, here and now. */
int emu_launch_blocks(void *fn, const struct shape *s, void **params,
                      int together);
/* A graph: as late as may be; on a thread of its own. */
int emu_later(struct graph *g);
int emu_run_beside(struct graph *g);

/* ---- emu_graph.c ---- */
int emu_note(struct graph *g, void *fn, const struct shape *s, void **params,
             int together);
int emu_run_graph(struct graph *g);
size_t
emu_graph_bytes(void); /* of the device's memory, of all that can be launched */

#endif
