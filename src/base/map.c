/* map.c - open addressing over a dense list of entries.
 *
 * A slot holds 32 bits of the hash and the number of an entry. Probing is
 * linear; a slot whose entry was deleted keeps it, so that probing goes on
 * past it, until the next rebuild drops all of those. Slots in use stay below
 * 3/4, so a probe of a key that is absent looks at 8.5 slots at worst on
 * average and always ends.
 *
 * SipHash keeps an outsider who chooses the keys (a file with a million names)
 * from choosing the collisions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <string.h>

#define SLOTS_MIN 8u
#define SLOTS_MAX (1u << 31)
#define EMPTY     UINT32_MAX

enum { KIND_NONE, KIND_TEXT, KIND_U64 };

struct br_map_slot {
    uint32_t hash;
    uint32_t at; /* number of an entry, or EMPTY */
};

typedef struct probe {
    uint8_t kind;
    br_text text;
    uint64_t num;
    uint32_t hash;
} probe;

void
br_map_fini(br_map *m)
{
    br_vec_fini(&m->entries);
    br_free(m->slots);
    *m = (br_map){0};
}

void
br_map_seed(br_map *m, br_hash_key key)
{
    br_assert(m->entries.n == 0 && "a key cannot change under entries");
    m->hash_key = key;
    m->keyed = true;
}

static uint32_t
fold(uint64_t h)
{
    return (uint32_t)(h ^ h >> 32);
}

static probe
probe_text(const br_map *m, br_text key)
{
    return (probe){.kind = KIND_TEXT,
                   .text = key,
                   .hash = fold(br_siphash13(m->hash_key, key.p, key.n))};
}

static probe
probe_u64(const br_map *m, uint64_t key)
{
    return (probe){.kind = KIND_U64,
                   .num = key,
                   .hash = fold(br_siphash13_u64(m->hash_key, key))};
}

static bool
same(const br_map_entry *e, const probe *p)
{
    if (!e->live || e->hash != p->hash)
        return false;
    return p->kind == KIND_TEXT ? br_text_eq(e->key.text, p->text)
                                : e->key.num == p->num;
}

/* The slot of the key, or the empty slot where it would go. */
static struct br_map_slot *
find(const br_map *m, const probe *p)
{
    uint32_t mask = m->n_slots - 1;

    for (uint32_t i = p->hash & mask;; i = (i + 1) & mask) {
        struct br_map_slot *s = &m->slots[i];

        if (s->at == EMPTY ||
            (s->hash == p->hash && same(&m->entries.at[s->at], p)))
            return s;
    }
}

/* Squeezes the deleted entries out; the order stays. */
static void
squeeze(br_map *m)
{
    size_t n = 0;

    for (size_t i = 0; i < m->entries.n; i++)
        if (m->entries.at[i].live)
            m->entries.at[n++] = m->entries.at[i];
    m->entries.n = n;
}

static void
fill_slots(br_map *m)
{
    uint32_t mask = m->n_slots - 1;

    memset(m->slots, 0xff, m->n_slots * sizeof *m->slots);
    for (size_t e = 0; e < m->entries.n; e++) {
        uint32_t hash = m->entries.at[e].hash, i = hash & mask;

        while (m->slots[i].at != EMPTY)
            i = (i + 1) & mask;
        m->slots[i] = (struct br_map_slot){hash, (uint32_t)e};
    }
}

static void
rebuild(br_map *m)
{
    squeeze(m);
    fill_slots(m);
}

/* Slots for n entries; the slots are filled anew if their number changes. */
static bool
grow_slots(br_map *m, size_t n)
{
    uint64_t want = SLOTS_MIN;
    struct br_map_slot *slots;

    while (want / 4 * 3 < n && want <= SLOTS_MAX)
        want *= 2;
    if (want <= m->n_slots)
        return true;
    if (want > SLOTS_MAX)
        return false;
    slots = br_try_alloc(want * sizeof *slots);
    if (!slots)
        return false;
    br_free(m->slots);
    m->slots = slots;
    m->n_slots = (uint32_t)want;
    rebuild(m);
    return true;
}

bool
br_map_reserve(br_map *m, size_t n)
{
    if (m->entries.n > m->n_live)
        rebuild(m);
    return br_vec_reserve(&m->entries, n) && grow_slots(m, n);
}

/* Room for one more. Where a third is deleted, or there is no memory, the room
 * is what the deleted ones take: put and del in turn stay O(1) each. */
static bool
make_room(br_map *m)
{
    size_t n = m->entries.n, dead = n - m->n_live;

    if (dead <= m->n_live / 2 && br_vec_reserve(&m->entries, n + 1) &&
        grow_slots(m, n + 1))
        return true;
    if (dead == 0)
        return false;
    rebuild(m);
    return true;
}

static br_map_value *
get(const br_map *m, const probe *p)
{
    struct br_map_slot *s;

    if (m->n_live == 0)
        return NULL;
    br_assert(m->kind == p->kind && "one kind of key to a map");
    s = find(m, p);
    return s->at == EMPTY ? NULL : &m->entries.at[s->at].value;
}

static br_map_value *
put(br_map *m, const probe *p, bool *fresh)
{
    br_map_entry e = {.hash = p->hash, .live = true};
    struct br_map_slot *s;

    br_assert((m->kind == KIND_NONE || m->kind == p->kind) &&
              "one kind of key to a map");
    if (fresh)
        *fresh = false;
    if (m->n_slots) {
        s = find(m, p);
        if (s->at != EMPTY)
            return &m->entries.at[s->at].value;
    }
    if ((m->entries.n == m->entries.cap ||
         m->entries.n >= m->n_slots / 4 * 3) &&
        !make_room(m))
        return NULL;
    m->kind = p->kind;
    if (p->kind == KIND_TEXT)
        e.key.text = p->text;
    else
        e.key.num = p->num;
    s = find(m, p);
    *s = (struct br_map_slot){p->hash, (uint32_t)m->entries.n};
    m->entries.at[m->entries.n++] = e;
    m->n_live++;
    if (fresh)
        *fresh = true;
    return &m->entries.at[s->at].value;
}

static bool
del(br_map *m, const probe *p)
{
    struct br_map_slot *s;

    if (m->n_live == 0)
        return false;
    br_assert(m->kind == p->kind && "one kind of key to a map");
    s = find(m, p);
    if (s->at == EMPTY)
        return false;
    m->entries.at[s->at].live = false;
    m->n_live--;
    return true;
}

/* ---- by kind ------------------------------------------------------------ */

static void
take_key(br_map *m)
{
    if (m->keyed)
        return;
    m->hash_key = br_hash_process_key();
    m->keyed = true;
}

br_map_value *
br_map_get(const br_map *m, br_text key)
{
    probe p = probe_text(m, key);

    return get(m, &p);
}

br_map_value *
br_map_put(br_map *m, br_text key, bool *fresh)
{
    probe p;

    take_key(m);
    p = probe_text(m, key);
    return put(m, &p, fresh);
}

bool
br_map_del(br_map *m, br_text key)
{
    probe p = probe_text(m, key);

    return del(m, &p);
}

br_map_value *
br_map_get_u64(const br_map *m, uint64_t key)
{
    probe p = probe_u64(m, key);

    return get(m, &p);
}

br_map_value *
br_map_put_u64(br_map *m, uint64_t key, bool *fresh)
{
    probe p;

    take_key(m);
    p = probe_u64(m, key);
    return put(m, &p, fresh);
}

bool
br_map_del_u64(br_map *m, uint64_t key)
{
    probe p = probe_u64(m, key);

    return del(m, &p);
}

br_map_entry *
br_map_next(const br_map *m, size_t *i)
{
    while (*i < m->entries.n) {
        br_map_entry *e = &m->entries.at[(*i)++];

        if (e->live)
            return e;
    }
    return NULL;
}
