/* hazard_kit.c - every state that gfx12 code can reach, by its words alone.
 *
 * A state is an instruction, the pairs of scalars that vector instructions have read,
 * and the scalars of those that they wrote since: who reads one of the latter as a
 * vector instruction has to have waited. A wait ends them, or a scalar instruction
 * that reads one. gcn_hazard.c joins ways; here each goes on its own, so what one way
 * knows is not taken for another's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "hazard_kit.h"

#include "t.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 1 << 16, SCALARS = 108, VCC = 106 };

typedef struct state {
    uint64_t at; /* word; plus one: 0 is no state */
    uint64_t seen;
    uint64_t open[2];
} state;

typedef struct walk {
    const br_gcn_isa *isa;
    const uint32_t *w;
    size_t n;
    state *slot, *todo;
    size_t n_slots, n_todo;
    char *says;
} walk;

static void
visit(walk *k, state s, size_t at)
{
    uint64_t h;

    s.at = at + 1;
    h = s.at * 0x9e3779b97f4a7c15u ^ s.seen * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 29) + s.open[0] * 0xc4ceb9fe1a85ec53u;
    h = (h ^ h >> 31) + s.open[1] * 0x94d049bb133111ebu;
    for (size_t p = (h ^ h >> 30) % SLOTS;; p = (p + 1) % SLOTS) {
        if (!memcmp(&k->slot[p], &s, sizeof s))
            return;
        if (k->slot[p].at)
            continue;
        k->slot[p] = s;
        k->n_slots++;
        k->todo[k->n_todo++] = s;
        return;
    }
}

static void
settle(state *s, bool vcc)
{
    const uint64_t both = 3ull << (VCC - 64);

    s->open[0] = vcc ? s->open[0] : 0;
    s->open[1] &= vcc ? ~both : both;
}

/* Scalars that it reads, then those that it writes. */
static void
step(walk *k, state *s, const br_gcn_inst *in)
{
    bool valu = gcn_is_valu(in), salu = gcn_is_salu(in), held[2] = {0};
    gcn_use u[GCN_MAX_USES];
    unsigned n = valu || salu ? gcn_uses(k->isa, in, u) : 0;
    uint64_t seen = 0;

    for (unsigned a = 0; a < n; a++)
        for (unsigned r = u[a].code;
             !u[a].write && r < u[a].code + u[a].words && r < SCALARS; r++) {
            seen |= 1ull << r / 2;
            if (!(s->open[r / 64] >> r % 64 & 1))
                continue;
            held[r >= VCC] = true;
            if (valu)
                k->says = t_printf("word %d reads s%u", (int)s->at - 1, r);
        }
    for (int vcc = 0; salu && vcc < 2; vcc++)
        if (held[vcc])
            settle(s, vcc);
    s->seen |= valu ? seen : 0;
    for (unsigned a = 0; valu && a < n; a++)
        for (unsigned r = u[a].code;
             u[a].write && r < u[a].code + u[a].words && r < SCALARS; r++)
            s->open[r / 64] |= (s->seen >> r / 2 & 1) << r % 64;
}

static void
go(walk *k, state s)
{
    size_t at = s.at - 1;
    br_gcn_inst in;
    unsigned words = br_gcn_decode(k->isa, k->w + at, k->n - at, &in), wait;

    ck_assert_uint_gt(words, 0);
    if (strcmp(in.row->name, "s_wait_alu") == 0) {
        wait = br_gcn_get(&in, BR_GF_simm16);
        if (!(wait & 0xe00))
            settle(&s, false);
        if (!(wait & 2))
            settle(&s, true);
    }
    step(k, &s, &in);
    if (gcn_is(&in, "s_branch") || gcn_is(&in, "s_cbranch"))
        visit(k, s, at + 1 + (size_t)(int16_t)br_gcn_get(&in, BR_GF_simm16));
    if (!gcn_is(&in, "s_branch") && !gcn_is(&in, "s_endpgm"))
        visit(k, s, at + words);
}

const char *
hazard_find(const br_gcn_isa *isa, const uint32_t *w, size_t n, bool *more)
{
    walk k = {.isa = isa, .w = w, .n = n, .says = (char *)(uintptr_t) ""};

    k.slot = calloc(SLOTS, sizeof *k.slot);
    k.todo = calloc(SLOTS, sizeof *k.todo);
    ck_assert(k.slot && k.todo);
    visit(&k, (state){0}, 0);
    while (k.n_todo && !*k.says && k.n_slots < SLOTS / 2)
        go(&k, k.todo[--k.n_todo]);
    *more = k.n_todo && !*k.says;
    free(k.slot);
    free(k.todo);
    return k.says;
}
