/* sim_code.c - memory that a kernel may touch, and code that is decoded as it is
 * run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/sim/sim_int.h"

#include <stdatomic.h>
#include <string.h>

br_code
br_sim_map(br_sim *s, const br_kregion *r, br_status *st)
{
    size_t at = 0;

    if (!r->bytes || r->addr + r->bytes < r->addr)
        return br_fail(st, BR_E_LIMIT, "%s: no bytes, or past the end",
                       r->name ? r->name : "memory");
    while (at < s->regions.n && s->regions.at[at].addr < r->addr)
        at++;
    if ((at &&
         s->regions.at[at - 1].addr + s->regions.at[at - 1].bytes > r->addr) ||
        (at < s->regions.n && r->addr + r->bytes > s->regions.at[at].addr))
        return br_fail(st, BR_E_LIMIT, "%s: other memory is there already",
                       r->name ? r->name : "memory");
    if (!br_vec_push(&s->regions, *r))
        return br_fail(st, BR_E_OOM, "no memory for regions");
    memmove(s->regions.at + at + 1, s->regions.at + at,
            (s->regions.n - 1 - at) * sizeof *r);
    s->regions.at[at] = *r;
    return BR_OK;
}

const br_kregion *
sim_region_find(br_sim *s, uint64_t addr, unsigned who)
{
    size_t lo = 0, hi = s->regions.n;
    const br_kregion *r;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (s->regions.at[mid].addr <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!lo)
        return NULL;
    r = s->regions.at + lo - 1;
    if (addr - r->addr >= r->bytes)
        return NULL;
    s->hit[who] = lo - 1;
    return r;
}

uint8_t *
sim_at(br_sim *s, uint64_t addr, uint64_t n, bool write)
{
    const br_kregion *r = sim_region(s, addr, 0);

    if (!r || n > r->bytes - (addr - r->addr) || (write && r->read_only))
        return NULL;
    return r->host + (addr - r->addr);
}

uint64_t
sim_code_number(void)
{
    static _Atomic uint64_t n;

    return atomic_fetch_add_explicit(&n, 1, memory_order_relaxed) + 1;
}

br_code
br_sim_load(br_sim *s, const br_gcn_co *co, uint64_t at, br_status *st)
{
    br_kregion r = {.addr = at,
                    .bytes = co->bytes,
                    .host = co->image,
                    .name = "code object"};
    sim_code *c;

    if (at % 4096 || co->isa.cpu->gen != s->cpu->gen)
        return br_fail(st, BR_E_LIMIT, "a code object for %s at 0x%llx",
                       co->isa.cpu->name, (unsigned long long)at);
    BR_TRY(br_sim_map(s, &r, st));
    c = br_try_calloc(1, sizeof *c);
    if (c)
        c->ops = br_try_calloc(co->text_bytes / 4 + 1, sizeof *c->ops);
    if (!c || !c->ops) {
        br_free(c);
        return br_fail(st, BR_E_OOM, "no memory for code");
    }
    c->at = at + co->text_at;
    c->bytes = co->text_bytes & ~3ull;
    c->words = (const uint32_t *)(const void *)(co->image + co->text_at);
    c->isa = co->isa;
    c->made = sim_code_number();
    br_arena_init(&c->arena, 0);
    c->next = s->code;
    s->code = c;
    return BR_OK;
}

/* s_delay_alu, one in six instructions, does nothing: what stands before it is
 * run with it, but for branches and the like. */
static bool
is_hint(const sim_wave *w, uint64_t word)
{
    const sim_code *c = w->code;
    br_gcn_inst in;

    return word < c->bytes / 4 &&
           br_gcn_decode(&w->isa, c->words + word, c->bytes / 4 - word, &in) &&
           strcmp(in.row->name, "s_delay_alu") == 0;
}

static sim_op *
decode(sim_wave *w, uint64_t word)
{
    sim_code *c = w->code;
    sim_op *o = sim_op_new(&c->arena);
    br_gcn_inst in;
    br_str text = {0};

    if (!o) {
        sim_fault(w, BR_E_OOM, "no memory for decoded code");
        return NULL;
    }
    if (!br_gcn_decode(&w->isa, c->words + word, c->bytes / 4 - word, &in)) {
        const br_gcn_format *f = &br_gcn_formats[BR_FMT_VOPD];

        sim_fault(w, BR_E_FAULT, "0x%08x is no instruction of %s%s",
                  c->words[word], w->isa.cpu->name,
                  (c->words[word] & f->mask) == f->value
                      ? ": halves of a dual one that do not go together"
                      : "");
        return NULL;
    }
    if (in.row_y && w->isa.wave64) {
        sim_fault(w, BR_E_FAULT, "a dual instruction in a wave of 64");
        return NULL;
    }
    if (!sim_decode(&c->arena, &w->isa, &in, o)) {
        br_gcn_print(&w->isa, &in, &text);
        sim_fault(w, BR_E_UNSUPPORTED, "the simulator does not know: %s",
                  br_str_z(&text));
        br_str_fini(&text);
        return NULL;
    }
    if (o->goes == SIM_ON && is_hint(w, word + o->words)) {
        o->words++;
        o->hints = 1;
    }
    o->span = o->words;
    o->spends = (uint8_t)(1 + o->hints);
    o->spared = o->hints;
    return c->ops[word] = o;
}

sim_op *
sim_fetch(sim_wave *w)
{
    uint64_t off = w->pc - w->code->at;

    if (off >= w->code->bytes || off % 4) {
        for (sim_code *c = w->g->sim->code; c; c = c->next)
            if (w->pc - c->at < c->bytes && w->pc % 4 == 0) {
                w->code = c;
                return sim_fetch(w);
            }
        sim_fault(w, BR_E_FAULT, "no code at 0x%llx",
                  (unsigned long long)w->pc);
        return NULL;
    }
    return w->code->ops[off / 4] ? w->code->ops[off / 4] : decode(w, off / 4);
}
