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
    int stuck;  /* what it was given last hangs, or waits for what does */
    int broken; /* its capture: what waits for all streams was asked beside it */
    uint64_t last; /* of what is done late: what it was given */
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
/* A launch, here and now. */
int emu_launch_blocks(void *fn, const struct shape *s, void **params,
                      int together);
/* All of them at once, whatever else is so. */
int emu_launch_together(void *fn, const struct shape *s, void **params);
extern __thread int emu_beside; /* runs launches; is not the caller's */

/* ---- emu_graph.c ---- */
enum { EMU_SHARED = 232448 }; /* of a block */
uint64_t emu_from_env(const char *name, uint64_t otherwise);
int emu_major(void);
int emu_n_sm(void);
void emu_make_all(void); /* what was asked for and is not done yet */
int emu_rc(void);        /* what went wrong, or 0 */
void emu_begin_anew(void);
int emu_barred(int legacy); /* by a capture; or there is no context */
/* Before anything else is given to a stream than to capture: is it to be done, now
 * that what was asked for before is done, or without that? Else that is what the
 * call says. */
int emu_into(struct stream *s, int behind_all, int *rc);
int emu_copy_later(struct stream *s, uint64_t to, const void *from, size_t n);
/* On a thread of its own, of all blocks at once; the parameter is copied. */
int emu_launch_beside(struct stream *to, void *fn, const struct shape *s,
                      void **params);
int emu_note(struct graph *g, void *fn, const struct shape *s, void **params,
             int together);
int emu_run_graph(struct graph *g);
size_t
emu_graph_bytes(void); /* of the device's memory, of all that can be launched */

#endif
