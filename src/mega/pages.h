/* pages.h - binds activations to physical pages and shares the pages.
 *
 *   buffers, live ranges --order--> "a entirely before b"
 *                        --pack---> chains = pages      --> prog->pages, binds
 *                        --bound--> bytes no sharing can go below
 *
 * Sound for workers that run in any order the counters allow: two buffers
 * share a page only when every use of the one happens before every write of
 * the other through dependency edges, or when the task that writes the second
 * is the last reader of the first and works element by element in place.
 * How it works, with measured gaps: docs/pages.md.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_PAGES_H
#define BR_MEGA_PAGES_H

#include "mega/mega.h"

enum {
    BR_MEGA_PAGE_ALIGN = 256, /* default; what a device wants of a buffer */
    /* Sharing keeps a bit per pair of buffers: 256 MiB at this many. */
    BR_MEGA_MAX_SHARED = 1 << 16,
};

typedef enum br_mega_page_policy {
    BR_MPP_NONE,        /* "none": no page table; each buffer is its own */
    BR_MPP_LINEAR,      /* "linear": one page per activation, in order */
    BR_MPP_GRAPH_COLOR, /* "graph_color": shared, as few bytes as it can */
    BR_MPP_COUNT
} br_mega_page_policy;

int br_mega_page_policy_find(br_text name); /* -1: none */

typedef struct br_mega_pages_opt {
    br_mega_page_policy policy;
    bool strict;    /* no reuse in place: passes the compatible check too */
    uint32_t align; /* page sizes are multiples; a power of two; 0: 256 */
} br_mega_pages_opt;

/* All sizes after rounding up to align. */
typedef struct br_mega_pages_report {
    int64_t n_buffers; /* activations that some task touches */
    int64_t n_pages;
    int64_t n_in_place;      /* buffers that begin where another ends, in the
                                same task */
    int64_t bytes;           /* sum of the pages */
    int64_t separate_bytes;  /* sum of the buffers: what linear takes */
    int64_t antichain_bytes; /* most bytes alive at once in some order: the
                                maximum-weight antichain */
    int64_t bound_bytes;     /* no page table can have less; >= antichain:
                                a page is as large as its largest buffer */
    bool exact;              /* the two bounds are computed to the end */
} br_mega_pages_report;

/* Fills pages and binds (or clears them: BR_MPP_NONE) for every ACTIVATION
 * that some task touches. Deterministic. Requires a program that the check
 * accepts, pages aside; BR_E_REJECTED when ids, waits or counters say that it
 * would not. The report may be NULL. On failure the program is as it was. */
br_code br_mega_pages_allocate(br_mega_prog *p, br_mega_page_policy policy,
                               br_mega_pages_report *r,
                               br_status *st) BR_MUST_USE;
br_code br_mega_pages_allocate_opt(br_mega_prog *p,
                                   const br_mega_pages_opt *opt,
                                   br_mega_pages_report *r,
                                   br_status *st) BR_MUST_USE;

/* Where a machine with one arena puts each buffer: offset[b] in bytes, -1
 * when buffer b has no page. Pages lie one after the other at multiples of
 * align (0: 256). Room for n_buffers; *total is the size of the arena. */
br_code br_mega_pages_offsets(const br_mega_prog *p, uint32_t align,
                              int64_t *offset, int64_t *total,
                              br_status *st) BR_MUST_USE;

#endif
