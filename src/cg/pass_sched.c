/* pass_sched.c - instructions go where fewer values are alive.
 *
 *   %1 = ld.f32 %0                     %1 = ld.f32 %0
 *   %2 = ld.f32 %0 4                   %4 = fma.f32 %1 %1 %9
 *   %3 = ld.f32 %0 8             ->    %2 = ld.f32 %0 4
 *   %4 = fma.f32 %1 %1 %9              %5 = fma.f32 %2 %2 %4
 *   %5 = fma.f32 %2 %2 %4              %3 = ld.f32 %0 8
 *   %6 = fma.f32 %3 %3 %5              %6 = fma.f32 %3 %3 %5
 *
 * Why       Compilers for GPUs put loads in front and have 255 registers; a lane's
 *           32 bits are two of AVX-512's 32, or four of AVX2's 16. What does not
 *           fit goes to memory and back.
 * Requires  br_kir_verify.
 * Changes   the order of blocks where more than ROOM words are alive at once:
 *           operations that are PURE, plain loads between the writes around
 *           them; the rest keeps its order. An order is taken that has GAIN fewer
 *           alive at its worst.
 * Cost      instructions x WINDOW, of such blocks alone. Values from outside of
 *           the block count for nothing: no order here ends them.
 *
 * From the end: of what everything that uses it is placed already, what makes
 * the fewest values alive comes next; of equals the one that stood last.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/kir_pass.h"

#include <string.h>

enum { ROOM = 20, GAIN = 4, WINDOW = 32, MAX_INS = 1 << 13 };

typedef struct sched {
    br_kfn *f;
    uint32_t b;
    uint32_t *blk, *place; /* by instruction: its block, its place there */
    uint8_t *out, *alive;  /* by value: used in other blocks; alive now */
    const uint32_t *in;    /* the instructions that may move, and what stays */
    size_t n;
    uint32_t *waits; /* by place: how many have to be placed before */
    uint32_t *ready; /* places, in order */
    uint32_t *order; /* instructions, from the end of it on */
    size_t n_ready;
} sched;

static unsigned
words(const sched *s, uint32_t v)
{
    switch (s->f->vals.at[v].cls) {
    case BR_KC_PRED: return 0; /* a mask */
    case BR_KC_B64: return 2;
    default: return 1;
    }
}

/* A value that an instruction of this block makes. */
static bool
mine(const sched *s, uint32_t v)
{
    const br_kval *k = &s->f->vals.at[v];

    return k->kind == BR_KV_INS && s->blk[k->def] == s->b;
}

static bool
is_load(const br_kins *i)
{
    return i->op == BR_K_LD && !br_kmod(i->mods, BR_KF_SEM);
}

/* Whether it keeps its place among others like it. */
static bool
stays(const br_kins *i)
{
    return !(br_kopinfo_of[i->op].props & BR_KP_PURE) && !is_load(i);
}

/* ---- how many are alive -------------------------------------------------- */

/* About what pass_by would say. */
static int
change(const sched *s, const br_kins *i)
{
    const uint32_t *a = br_kargs(s->f, i);
    int by = 0;

    for (unsigned r = 0; r < i->n_res; r++)
        if (s->alive[i->res + r])
            by -= (int)words(s, i->res + r);
    for (unsigned k = 0; k < i->n_arg; k++)
        if (mine(s, a[k]) && !s->alive[a[k]] && !(k && a[k] == a[k - 1]))
            by += (int)words(s, a[k]);
    return by;
}

/* From below i to above it. */
static int
pass_by(sched *s, const br_kins *i)
{
    int by = 0;

    for (unsigned r = 0; r < i->n_res; r++)
        if (s->alive[i->res + r]) {
            s->alive[i->res + r] = 0;
            by -= (int)words(s, i->res + r);
        }
    for (unsigned k = 0; k < i->n_arg; k++) {
        uint32_t v = br_kargs(s->f, i)[k];

        if (mine(s, v) && !s->alive[v]) {
            s->alive[v] = 1;
            by += (int)words(s, v);
        }
    }
    return by;
}

/* The values alive where what moves ends: those of other blocks, and those that
 * the rest of this one takes. */
static int
begin(sched *s, const br_kblk *k)
{
    int now = 0;

    for (size_t at = 0; at < k->ins.n; at++) {
        const br_kins *i = &s->f->ins.at[k->ins.at[at]];

        for (unsigned r = 0; r < i->n_res; r++) {
            s->alive[i->res + r] = s->out[i->res + r];
            now += s->out[i->res + r] ? (int)words(s, i->res + r) : 0;
        }
    }
    for (size_t at = k->ins.n; &k->ins.at[at] > s->in + s->n;)
        now += pass_by(s, &s->f->ins.at[k->ins.at[--at]]);
    return now;
}

static int
worst(sched *s, const br_kblk *k, const uint32_t *ids)
{
    int now = begin(s, k), most = now;

    for (size_t at = s->n; at-- > 0;) {
        now += pass_by(s, &s->f->ins.at[ids[at]]);
        most = now > most ? now : most;
    }
    return most;
}

/* ---- another order ------------------------------------------------------- */

/* One fewer of those that have to stand behind the one at this place. */
static void
hear(sched *s, uint32_t at)
{
    size_t k;

    if (--s->waits[at])
        return;
    for (k = s->n_ready++; k > 0 && s->ready[k - 1] > at; k--)
        s->ready[k] = s->ready[k - 1];
    s->ready[k] = at;
}

/* Everyone that has to stand before the one at this place: by +1 it waits for
 * that, by -1 it is placed. */
static void
each_before(sched *s, uint32_t at, bool placed)
{
    const br_kins *i = &s->f->ins.at[s->in[at]];

    for (unsigned a = 0; a < i->n_arg; a++) {
        uint32_t v = br_kargs(s->f, i)[a], def;

        if (!mine(s, v))
            continue;
        def = s->place[s->f->vals.at[v].def];
        if (def >= s->n)
            continue; /* a phi, which stands before all */
        if (placed)
            hear(s, def);
        else
            s->waits[def]++;
    }
    for (uint32_t k = at; (stays(i) || is_load(i)) && k-- > 0;) {
        const br_kins *j = &s->f->ins.at[s->in[k]];
        bool end = stays(j);

        if (end || (stays(i) && is_load(j))) {
            if (placed)
                hear(s, k);
            else
                s->waits[k]++;
        }
        if (end)
            break;
    }
}

/* The place of what comes next, going up. */
static size_t
best(const sched *s)
{
    size_t from = s->n_ready > WINDOW ? s->n_ready - WINDOW : 0;
    size_t at = s->n_ready - 1;
    int least = change(s, &s->f->ins.at[s->in[s->ready[at]]]);

    for (size_t k = at; k-- > from;) {
        int by = change(s, &s->f->ins.at[s->in[s->ready[k]]]);

        if (by < least) {
            least = by;
            at = k;
        }
    }
    return at;
}

static void
place_all(sched *s, const br_kblk *k)
{
    size_t left = s->n;

    memset(s->waits, 0, s->n * sizeof *s->waits);
    s->n_ready = 0;
    (void)begin(s, k);
    for (uint32_t at = 0; at < s->n; at++)
        each_before(s, at, false);
    for (uint32_t at = 0; at < s->n; at++)
        if (!s->waits[at])
            s->ready[s->n_ready++] = at;
    while (s->n_ready) {
        size_t x = best(s);
        uint32_t at = s->ready[x];

        memmove(&s->ready[x], &s->ready[x + 1],
                (--s->n_ready - x) * sizeof *s->ready);
        s->order[--left] = s->in[at];
        (void)pass_by(s, &s->f->ins.at[s->in[at]]);
        each_before(s, at, true);
    }
    br_assert(left == 0 && "instructions of a block wait for no ring");
}

static bool
block(sched *s, uint32_t b)
{
    br_kblk *k = &s->f->blks.at[b];
    size_t first = br_kblk_phis(s->f, k), end = k->ins.n - 1;
    int before;

    if (end &&
        (br_kopinfo_of[s->f->ins.at[k->ins.at[end - 1]].op].props & BR_KP_BAR))
        end--;
    if (end < first + 3 || end - first > MAX_INS)
        return false;
    s->b = b;
    s->in = k->ins.at + first;
    s->n = end - first;
    before = worst(s, k, s->in);
    if (before <= ROOM)
        return false;
    for (size_t at = 0; at < k->ins.n; at++)
        s->place[k->ins.at[at]] =
            at < first ? BR_KNONE : (uint32_t)(at - first);
    place_all(s, k);
    if (worst(s, k, s->order) + GAIN > before)
        return false;
    memcpy(k->ins.at + first, s->order, s->n * sizeof *s->order);
    return true;
}

/* Values that more than their own block uses. */
static void
find_out(sched *s)
{
    for (uint32_t b = 0; b < s->f->blks.n; b++)
        for (size_t k = 0; k < s->f->blks.at[b].ins.n; k++)
            s->blk[s->f->blks.at[b].ins.at[k]] = b;
    for (uint32_t b = 0; b < s->f->blks.n; b++)
        for (size_t k = 0; k < s->f->blks.at[b].ins.n; k++) {
            const br_kins *i = &s->f->ins.at[s->f->blks.at[b].ins.at[k]];

            for (unsigned a = 0; a < i->n_arg; a++) {
                uint32_t v = br_kargs(s->f, i)[a];

                if (s->f->vals.at[v].kind == BR_KV_INS)
                    s->out[v] |=
                        i->op == BR_K_PHI || s->blk[s->f->vals.at[v].def] != b;
            }
        }
}

bool
br_kpass_sched(br_kir *m, br_kfn *f)
{
    bool any = false;
    size_t ni = f->ins.n + 1, nv = f->vals.n + 1;
    uint32_t *mem = br_try_alloc((2 * ni + 3 * MAX_INS) * sizeof *mem);
    sched s = {.f = f, .out = br_try_calloc(2 * nv, 1)};

    if (!mem || !s.out) {
        m->oom = true;
        goto done;
    }
    s.blk = mem;
    s.place = mem + ni;
    s.waits = mem + 2 * ni;
    s.ready = s.waits + MAX_INS;
    s.order = s.ready + MAX_INS;
    s.alive = s.out + nv;
    memset(s.blk, 0xff, ni * sizeof *s.blk);
    find_out(&s);
    for (uint32_t b = 0; b < f->blks.n; b++)
        any |= block(&s, b);
done:
    br_free(mem);
    br_free(s.out);
    return any;
}
