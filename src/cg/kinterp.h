/* kinterp.h - kernels run by an interpreter: slow, exact, the oracle.
 *
 * A warp is 32 lanes that run one instruction after another under a mask; warps
 * take turns in a fixed order, so a launch gives the same bits each time. Every
 * access is checked against the regions; with check, also for what no
 * processor would say: bytes that nobody wrote, accesses of two threads to the
 * same shared bytes with no barrier between, barriers that a part of a warp
 * reaches.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_KINTERP_H
#define BR_KINTERP_H

#include "cg/kir.h"

/* Memory that a kernel may touch: an address of its own, bytes of ours. */
typedef struct br_kregion {
    uint64_t addr, bytes;
    uint8_t *host;
    bool read_only;
    const char *name;
} br_kregion;

/* A module's variables at their addresses. */
typedef struct br_kimage {
    const br_kir *m;
    uint64_t *addr;   /* of each variable; of .shared ones the offset */
    uint64_t *shared; /* of each function, if a kernel: static bytes */
    BR_VEC(br_kregion) regions;
    BR_VEC(void *) blocks;
} br_kimage;
br_code br_kimage_new(br_kimage **out, const br_kir *m,
                      br_status *st) BR_MUST_USE;
/* The same with each variable in memory that place gives, at its own address;
 * whoever gave it takes it back. NULL: none left. */
typedef void *(*br_kplace_fn)(void *arg, const br_kvar *v);
br_code br_kimage_new_at(br_kimage **out, const br_kir *m, br_kplace_fn place,
                         void *arg, br_status *st) BR_MUST_USE;
void br_kimage_free(br_kimage *im);

/* BR_KMAX_ of a launch. */
enum {
    BR_KMAX_BLOCK = 1024,       /* threads */
    BR_KMAX_SHARED = 228 << 10, /* bytes of a block */
    BR_KMAX_LOCAL = 512 << 10,  /* bytes of a thread */
    BR_KMAX_FINDINGS = 100      /* reported of a launch */
};

/* What stopped a launch. */
typedef enum br_kfault {
    BR_KFAULT_OTHER,
    BR_KFAULT_ADDRESS,
    BR_KFAULT_ALIGN,
    BR_KFAULT_ASSERT,
    BR_KFAULT_UNKNOWN, /* an instruction that was not understood */
    BR_KFAULT_STUCK
} br_kfault;

/* Who wrote a byte last: the interpreter notes it. */
typedef struct br_kwatch {
    uint64_t addr;
    uint32_t block[3], thread[3], line;
    br_ktype type; /* of what was written there, from addr first on */
    uint64_t first;
    bool seen;
} br_kwatch;

typedef struct br_klaunch {
    const br_kimage *image;
    uint32_t fn;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes; /* dynamic */
    const uint8_t *params; /* as many bytes as the function has */
    const br_kregion *regions;
    size_t n_regions;
    const uint32_t *places; /* where in params each region's address stands */
    /* Behind and in front of regions in here so many bytes are nobody's, and let
     * through. */
    uint64_t gaps_from, gaps_to, gap;
    bool check;
    br_kwatch *watch;   /* of the interpreter; may be NULL */
    const char *file;   /* for messages; may be NULL */
    const char *ptx;    /* what the image was read from; NULL: no PTX */
    uint64_t max_steps; /* instructions of a warp; 0: no end */
    uint32_t
        cluster[3];   /* blocks of a cluster; 0: as the kernel says, or one */
    unsigned threads; /* of ours, for native code; 0: as processors */
    void (*print)(void *arg, const char *text, size_t n); /* printf */
    void (*finding)(void *arg, const char *text);         /* a line */
    int64_t (*now)(void); /* the clocks; NULL: they count instructions */
    /* The kernel's malloc and free; NULL: a heap for the time of the launch. */
    void *(*heap_get)(void *arg, uint64_t bytes);
    bool (*heap_put)(void *arg, void *p);
    void *arg;
    /* Where several modules have one block for printf and malloc on AMD processors:
     * made by the first, to br_free. NULL: each has its own. */
    struct br_host_block **block_of_all;
    uint64_t steps, findings; /* out */
    br_kfault fault;          /* out, after BR_E_FAULT */
    bool no_code;             /* out: nothing ran, the target cannot do it */
    char outside[240];        /* out: the first access to a gap, let through */
} br_klaunch;

uint32_t br_kcluster(const br_klaunch *l, uint32_t c[3]);
/* BR_E_FAULT: the kernel did what stops a processor (the message says where).
 * Findings of check do not stop it. */
br_code br_kinterp_run(br_klaunch *l, br_status *st) BR_MUST_USE;

#endif
