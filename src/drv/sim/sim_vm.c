/* sim_vm.c - memory that comes and goes while a simulated GPU lives.
 *
 * Code is decoded from memory that a driver may write again. As on the
 * processor, old instructions stay in a cache until it is dropped: behind the
 * decoded operations lie the words that they were made of.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_gpu_int.h"
#include "drv/sim/sim_int.h"

#include <string.h>

static uint32_t *
seen(const sim_code *c)
{
    return (uint32_t *)(void *)(c->ops + c->bytes / 4);
}

br_code
sim_vm_code(br_sim *s, const br_kregion *r, br_status *st)
{
    sim_code *c = br_try_calloc(1, sizeof *c);

    if (c)
        c->ops = br_try_calloc(r->bytes / 4, sizeof *c->ops + 4);
    if (!c || !c->ops || br_sim_map(s, r, st) != BR_OK) {
        if (c)
            br_free(c->ops);
        br_free(c);
        return br_fail(st, BR_E_OOM, "no memory for code");
    }
    c->at = r->addr;
    c->bytes = r->bytes;
    c->words = (const uint32_t *)(const void *)r->host;
    c->isa.cpu = s->cpu;
    memcpy(seen(c), c->words, c->bytes);
    c->made = sim_code_number();
    br_arena_init(&c->arena, 0);
    c->next = s->code;
    s->code = c;
    return BR_OK;
}

void
sim_vm_refresh(br_sim *s)
{
    for (sim_code *c = s->code; c; c = c->next)
        if (memcmp(seen(c), c->words, c->bytes) != 0) {
            memset(c->ops, 0, c->bytes / 4 * sizeof *c->ops);
            br_arena_reset(&c->arena);
            c->made = sim_code_number();
            memcpy(seen(c), c->words, c->bytes);
        }
}

void
sim_vm_unmap(br_sim *s, uint64_t addr)
{
    for (sim_code **at = &s->code; *at; at = &(*at)->next)
        if ((*at)->at == addr) {
            sim_code *c = *at;

            *at = c->next;
            br_arena_fini(&c->arena);
            br_free(c->ops);
            br_free(c);
            break;
        }
    for (size_t k = 0; k < s->regions.n; k++)
        if (s->regions.at[k].addr == addr) {
            memmove(s->regions.at + k, s->regions.at + k + 1,
                    (--s->regions.n - k) * sizeof *s->regions.at);
            break;
        }
}
