/* kv.h - who holds which page of keys and values.
 *
 * A pool per group hands out page numbers; a slot holds, per group, the list
 * of its pages in order of position. The bytes are a tier's. Pages that a
 * window has left behind go back to the pool. Reference counts let slots share
 * the pages of a common beginning.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_KV_H
#define BR_KV_H

#include "drv/drv.h"

typedef struct br_kv br_kv;

/* max_tokens: of one slot. n_pages: of each group. */
typedef struct br_kv_config {
    uint32_t n_slots;
    uint32_t max_tokens;
    uint32_t n_pages[BR_MAX_KV_GROUPS];
} br_kv_config;

br_code br_kv_new(br_kv **out, const br_state_plan *plan, const br_kv_config *c,
                  br_status *st) BR_MUST_USE;
void br_kv_free(br_kv *kv);
/* Pages so that positions up to n_tokens - 1 of the slot can be written; LIMIT
 * when the pool has none left, with nothing changed. */
br_code br_kv_grow(br_kv *kv, uint32_t slot, uint32_t n_tokens,
                   br_status *st) BR_MUST_USE;
/* The slot keeps what is before n_tokens (0: gives all back). */
void br_kv_cut(br_kv *kv, uint32_t slot, uint32_t n_tokens);
/* Positions before `position` will not be written again and only windows that
 * reach it will be read: gives back what no window of the group reaches. */
void br_kv_pass(br_kv *kv, uint32_t slot, uint32_t position);
/* `to`, which must be empty, gets the pages of whole 16 tokens among the first
 * n_tokens of `from`. Returns how many tokens those are. */
uint32_t br_kv_share(br_kv *kv, uint32_t from, uint32_t to, uint32_t n_tokens);
/* Pages by number, for who keeps some beside the slots. UINT32_MAX is no page
 * and stays none. attach: the slot's i-th pages, one of each group, whose
 * references it shares; the ones before may follow. */
uint32_t br_kv_count(const br_kv *kv, uint32_t slot); /* of each group */
uint32_t br_kv_page(const br_kv *kv, uint32_t slot, uint32_t group, uint32_t i);
void br_kv_attach(br_kv *kv, uint32_t slot, uint32_t i, const uint32_t *pages);
void br_kv_hold(br_kv *kv, uint32_t group, uint32_t page);
void br_kv_drop(br_kv *kv, uint32_t group, uint32_t page);
/* A free page, held once; UINT32_MAX: there is none. */
uint32_t br_kv_take(br_kv *kv, uint32_t group);
uint32_t br_kv_free_pages(const br_kv *kv, uint32_t group);
/* For br_step.pages; holds for the life of kv. */
const uint32_t *const *br_kv_tables(const br_kv *kv);

#endif
