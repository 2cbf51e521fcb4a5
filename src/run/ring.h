/* ring.h - records from one thread to one other, without a lock.
 *
 *   tail (reader) --> [rec | rec | rec | ....... free ...... ] <-- head (writer)
 *
 * A record is a head and its bytes, in whole words of 8; one that would cross
 * the end of the memory is preceded by padding. What the writer puts becomes
 * visible all at once with br_ring_publish, once a step.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_RING_H
#define BR_RING_H

#include "base/base.h"

#include <stdatomic.h>

typedef struct br_ring {
    uint8_t *at;        /* [size] */
    uint64_t size;      /* a power of two */
    uint64_t put;       /* writer's: behind what is not published */
    uint64_t seen_tail; /* writer's copy of tail, older or equal */
    char pad[64];
    _Atomic uint64_t head; /* published; release by writer, acquire by reader */
    char pad2[64];
    _Atomic uint64_t tail; /* read; release by reader, acquire by writer */
} br_ring;

br_code br_ring_init(br_ring *r, uint32_t size, br_status *st) BR_MUST_USE;
void br_ring_fini(br_ring *r);
/* Writer: room for a record of n bytes, or NULL while the ring is full. n is
 * at most a quarter of the ring. */
void *br_ring_put(br_ring *r, uint32_t n);
/* Writer: is there room for records that take n bytes of the ring, however they come
 * to lie? */
bool br_ring_has(br_ring *r, uint64_t n);
/* What a record of n bytes takes. */
uint64_t br_ring_span(uint32_t n);
/* Writer: false: nothing was put since. */
bool br_ring_publish(br_ring *r);
/* Reader: the oldest record, or NULL; it stays until br_ring_pop. */
const void *br_ring_peek(br_ring *r, uint32_t *n);
void br_ring_pop(br_ring *r);
bool br_ring_empty(const br_ring *r); /* any thread; old news at once */

#endif
