/* state.h - what sequences leave behind in a processor's memory: pages of keys
 * and values, and for each slot a piece of its own.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_STATE_H
#define BR_STATE_H

#include "drv/drv.h"

/* On the CPU pages lie sixteen by sixteen: what one has of a head's keys or
 * values is beside what its neighbours have of it, so that a head's 256 tokens
 * are read in one piece where their pages follow each other.
 *
 *   sheet   [places and heads of a page][16 pages][16 tokens of a head]
 *
 * ref and the tasks of a program take the same memory page by page. */
enum { BR_SHEET = 16 };

/* Beside a kv: numbers are rounded so, but lie in pages as F32. */
enum { BR_KV_WIDE = 1 << 8 };

typedef struct br_state {
    br_state_plan plan;
    int kv;    /* BR_Q_F32, F16 or Q8_0: what keys and values are kept as */
    bool wide; /* BR_KV_WIDE */
    uint32_t n_slots;
    uint32_t n_pages[BR_MAX_KV_GROUPS];
    uint8_t *pool[BR_MAX_KV_GROUPS];
    void *block[BR_MAX_KV_GROUPS]; /* what a pool lies in */
    float *slots;                  /* [n_slots][slot_elems] */
} br_state;

/* n_pages: of each group of the graph's plan. Zeroed. UNSUPPORTED: heads that
 * are no whole blocks of kv. */
br_code br_state_new(br_state **out, const br_ir *g, int kv, uint32_t n_slots,
                     const uint32_t *n_pages, br_status *st) BR_MUST_USE;
void br_state_free(br_state *s);
/* The page of a group that holds a slot's position, by the step's lists. */
uint8_t *br_state_page(const br_state *s, const br_step *step, uint32_t group,
                       int32_t slot, int32_t position);
/* Its number, which is one of the pool's. */
uint32_t br_state_page_number(const br_state *s, const br_step *step,
                              uint32_t group, int32_t slot, int32_t position);
size_t br_state_page_bytes(const br_state *s, uint32_t group);
/* Bytes of n numbers: of Q8_0 whole blocks. */
size_t br_kv_bytes(int kv, uint64_t n);
/* In sheets: `bytes` of a page, at `at` of it. */
static inline size_t
br_kv_piece(size_t page_bytes, uint32_t page, size_t at, size_t bytes)
{
    return ((size_t)(page / BR_SHEET) * page_bytes + at) * BR_SHEET +
           page % BR_SHEET * bytes;
}

/* A slot's own piece (convolution, recurrence): before a new sequence, and as
 * bytes that can be put back. Pages are the caller's to share or drop. */
void br_slot_reset(br_state *s, uint32_t slot);
size_t br_slot_bytes(const br_state *s);
void br_slot_save(const br_state *s, uint32_t slot, void *out);
void br_slot_restore(br_state *s, uint32_t slot, const void *from);

#endif
