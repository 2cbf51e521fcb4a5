/* state.c - see state.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/state.h"

#include "model/quant.h"

#include <string.h>

static const size_t HUGE_PAGE = (size_t)2 << 20, LINE = 64;

/* Blocks of keys and values end where heads do. */
static br_code
check_heads(const br_ir *g, int kv, br_status *st)
{
    const br_qinfo *q = br_qinfo_of(kv);

    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const br_ir_node *n = &g->nodes[i];
        int64_t k = br_ir_i(n, BR_IA_head_dim, 0);
        int64_t v = br_ir_i(n, BR_IA_head_v, 0);

        if (n->op != BR_IR_FLASH_ATTN && n->op != BR_IR_FLASH_ATTN_BATCHED)
            continue;
        if (k % q->elems || v % q->elems)
            return br_fail(st, BR_E_UNSUPPORTED,
                           "%s keys and values come in blocks of %u numbers; "
                           "this model's heads have %lld and %lld",
                           q->name, q->elems, (long long)k, (long long)v);
    }
    return BR_OK;
}

/* A pool begins with a huge page, a small one with a cache line: in a heap's
 * block, 16 bytes behind the beginning of a page, each line of keys is two.
 * Pages that no sequence has had yet cost no memory (but see state_touch.h). */
static uint8_t *
new_pool(br_state *s, uint32_t group)
{
    size_t n = (size_t)s->n_pages[group] / BR_SHEET + 1, bytes, align;

    if (br_mul_overflows(n, BR_SHEET * br_state_page_bytes(s, group), &bytes))
        return NULL;
    align = bytes < HUGE_PAGE ? LINE : HUGE_PAGE;
    if (__builtin_add_overflow(bytes, align, &bytes))
        return NULL;
    s->block[group] = br_try_pages(bytes, 1);
    if (!s->block[group])
        return NULL;
    return (uint8_t *)s->block[group] +
           (align - (uintptr_t)s->block[group] % align) % align;
}

static br_code
fill(br_state *s, const br_ir *g, const uint32_t *n_pages, br_status *st)
{
    BR_TRY(check_heads(g, s->kv, st));
    BR_TRY(br_state_plan_of(&s->plan, g, st));
    for (uint32_t i = 0; i < s->plan.n_groups; i++) {
        s->n_pages[i] = n_pages[i];
        s->pool[i] = new_pool(s, i);
        if (!s->pool[i])
            return br_fail(st, BR_E_OOM, "pages: out of memory");
    }
    s->slots = br_try_calloc((size_t)s->n_slots + 1,
                             s->plan.slot_elems * sizeof(float) + 4);
    return s->slots ? BR_OK : br_fail(st, BR_E_OOM, "slots: out of memory");
}

br_code
br_state_new(br_state **out, const br_ir *g, int kv, uint32_t n_slots,
             const uint32_t *n_pages, br_status *st)
{
    br_state *s = br_try_calloc(1, sizeof *s);
    br_code code;

    *out = NULL;
    if (!s)
        return br_fail(st, BR_E_OOM, "slots: out of memory");
    s->n_slots = n_slots;
    s->kv = kv & ~BR_KV_WIDE;
    s->wide = kv & BR_KV_WIDE;
    br_assert(s->kv == BR_Q_F32 || s->kv == BR_Q_F16 || s->kv == BR_Q_Q8_0);
    code = fill(s, g, n_pages, st);
    if (code != BR_OK) {
        br_state_free(s);
        return code;
    }
    *out = s;
    return BR_OK;
}

void
br_state_free(br_state *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->plan.n_groups; i++)
        br_free(s->block[i]);
    br_free(s->slots);
    br_state_plan_fini(&s->plan);
    br_free(s);
}

size_t
br_kv_bytes(int kv, uint64_t n)
{
    const br_qinfo *q = br_qinfo_of(kv);

    br_assert(n % q->elems == 0 && "heads are whole blocks");
    return n / q->elems * q->bytes;
}

size_t
br_state_page_bytes(const br_state *s, uint32_t group)
{
    return br_kv_bytes(s->wide ? BR_Q_F32 : s->kv,
                       s->plan.group[group].page_elems);
}

uint32_t
br_state_page_number(const br_state *s, const br_step *step, uint32_t group,
                     int32_t slot, int32_t position)
{
    uint32_t page = step->pages[(uint32_t)slot * s->plan.n_groups + group]
                               [position / BR_PAGE_TOKENS];

    br_check(page < s->n_pages[group] && "pages are the pool's");
    return page;
}

uint8_t *
br_state_page(const br_state *s, const br_step *step, uint32_t group,
              int32_t slot, int32_t position)
{
    return s->pool[group] +
           br_state_page_number(s, step, group, slot, position) *
               br_state_page_bytes(s, group);
}

static float *
slot_at(const br_state *s, uint32_t slot)
{
    br_check(slot < s->n_slots && "slots are the state's");
    return s->slots + (uint64_t)slot * s->plan.slot_elems;
}

size_t
br_slot_bytes(const br_state *s)
{
    return s->plan.slot_elems * sizeof(float);
}

void
br_slot_reset(br_state *s, uint32_t slot)
{
    memset(slot_at(s, slot), 0, br_slot_bytes(s));
}

void
br_slot_save(const br_state *s, uint32_t slot, void *out)
{
    memcpy(out, slot_at(s, slot), br_slot_bytes(s));
}

void
br_slot_restore(br_state *s, uint32_t slot, const void *from)
{
    memcpy(slot_at(s, slot), from, br_slot_bytes(s));
}
