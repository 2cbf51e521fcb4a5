/* host_block.h - what a kernel asks of the host, in memory that both see: what
 * it printed, why it stopped, where its heap lies. The device's side is host.cu,
 * the host's src/drv/sim/sim_host.c; both are little-endian and of 64 bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HOST_BLOCK_H
#define BR_HOST_BLOCK_H

enum {
    BR_HOST_RING = 1 << 20, /* bytes of printf */
    BR_HOST_HEAP = 8 << 20, /* bytes of malloc, as CUDA's default */
    BR_HOST_GRAIN = 16,     /* of both; a block of the heap has 16 << class */
    BR_HOST_CLASSES = 20
};

/* A record of the ring: this, the arguments as vprintf has them, then the texts
 * of its %s, each with its NUL. */
typedef struct br_host_print {
    unsigned bytes;     /* of the record; 0: not written */
    unsigned arg_bytes; /* of the arguments */
    unsigned long long format;
} br_host_print;

enum { BR_HOST_NO_FAULT, BR_HOST_ASSERT, BR_HOST_BAD_FREE };

typedef struct br_host_block {
    unsigned long long ring, heap; /* where they lie */
    unsigned long long used;       /* of the ring; over its size: was full */
    unsigned long long top;        /* of the heap, what was never given out */
    unsigned fault;                /* the first one */
    unsigned line;
    unsigned long long what, file;
    unsigned long long free[BR_HOST_CLASSES]; /* tag << 32 | place / grain */
} br_host_block;

#endif
