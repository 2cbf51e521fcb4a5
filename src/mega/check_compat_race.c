/* check_compat_race.c - provenance and multiple writers, as the reference
 * proves them: with a row of ancestor bits for every task.
 *
 * Its rules are stricter than need be (every writer of a buffer has to precede
 * every reader) and looser than safe (writes to weights are not looked at);
 * both are kept. Row of slot s: words * 64 bits, bit x set iff slot x precedes.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "mega/check_compat.h"

static bool
no_memory(br_cm *m)
{
    m->k->oom = true;
    return br_cm_raise(m, "out of memory");
}

static uint64_t *
row(const br_cm_anc *a, uint32_t s)
{
    return a->bits + (size_t)s * a->words;
}

static bool
bit(const br_cm_anc *a, uint32_t s, uint32_t x)
{
    return row(a, s)[x / 64] >> x % 64 & 1;
}

bool
br_cm_before(br_cm *m, const br_cm_anc *a, uint32_t x, uint32_t y, bool *out)
{
    *out = false;
    if (m->slot_id[x] < 0)
        return br_cm_raise(m, "shifts by a negative task id");
    *out = bit(a, y, x);
    return true;
}

/* Rows through the counters: what a completed counter knows is what all its
 * producers know. ctr_row[c] = the row of counter c, or NONE. */
static bool
ancestors(br_cm *m, br_cm_anc *a)
{
    uint32_t n = m->n_slots, words = (n + 63) / 64, n_rows = 0;
    uint32_t *ctr_row = br_chk_get(m->k, m->n_cls, 4);
    uint64_t *known;

    if (!ctr_row)
        return no_memory(m);
    memset(ctr_row, 0xff, (size_t)m->n_cls * 4);
    for (uint32_t t = 0; t < n; t++)
        if (ctr_row[m->octr[t]] == BR_NONE)
            ctr_row[m->octr[t]] = n_rows++;
    a->words = words;
    a->bits = br_chk_zero(m->k, (size_t)n * words, 8);
    known = br_chk_zero(m->k, (size_t)n_rows * words, 8);
    if (!a->bits || !known)
        return no_memory(m);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = m->topo[i], t = m->slot_task[s];
        uint64_t *to = row(a, s),
                 *out = known + (size_t)ctr_row[m->octr[t]] * words;

        for (uint32_t j = m->wait_off[t]; j < m->wait_off[t + 1]; j++) {
            uint32_t r = ctr_row[m->wait[j]];

            for (uint32_t w = 0; r != BR_NONE && w < words; w++)
                to[w] |= known[(size_t)r * words + w];
        }
        for (uint32_t w = 0; w < words; w++)
            out[w] |= to[w];
        out[s / 64] |= 1ull << s % 64;
    }
    return true;
}

/* ---- 5: every writer before every reader -------------------------------- */

typedef struct reading {
    uint32_t slot, task; /* the reader: its id, and what is in its place */
    uint32_t input, buffer;
    bool is_kv;
} reading;

static void
put_reading(br_cm *m, const reading *r, bool kv_word)
{
    br_str *s = &m->k->text;

    br_str_puts(s, "task ");
    br_pv_put(s, br_pv_id(m->k->p, m->slot_task[r->slot]));
    br_str_puts(s, " (");
    br_put_label(s, m->k->p, r->task);
    br_str_puts(s, kv_word && r->is_kv ? ") reads KV cache #"
                                       : ") reads buffer #");
    br_pv_put(s, br_pv_in(m->k->p, r->task, r->input));
    br_str_puts(s, " ('");
    br_put_buffer(s, m->k->p, r->buffer);
    br_str_puts(s, "')");
}

/* Puts the list of writers that do not precede into k->text; *n of them. */
static bool
missing(br_cm *m, const br_cm_anc *a, const reading *r, const uint32_t *ws,
        uint32_t n_ws, uint32_t *n)
{
    bool before;

    *n = 0;
    for (uint32_t i = 0; i < n_ws; i++) {
        uint32_t s = m->slot_of[ws[i]];

        if (s == r->slot)
            continue;
        if (!br_cm_before(m, a, s, r->slot, &before))
            return false;
        if (before)
            continue;
        if (*n == 0) {
            put_reading(m, r, true);
            br_str_puts(&m->k->text, " but writer task(s) [");
        } else {
            br_str_puts(&m->k->text, ", ");
        }
        br_pv_put(&m->k->text, br_pv_id(m->k->p, ws[i]));
        (*n)++;
    }
    return true;
}

static bool
read_one(br_cm *m, const br_cm_anc *a, const reading *r, const uint32_t *ws,
         uint32_t n_ws)
{
    uint32_t n, others = 0;

    for (uint32_t i = 0; i < n_ws; i++)
        others += m->slot_of[ws[i]] != r->slot;
    if (n_ws == 0) {
        put_reading(m, r, false);
        br_str_puts(&m->k->text, " that is never produced");
        br_chk_take_error(m->k);
        return true;
    }
    if (!missing(m, a, r, ws, n_ws, &n))
        return false;
    if (n) {
        br_str_puts(&m->k->text, "] are NOT ordered before it, data RACE");
        br_chk_take_error(m->k);
    } else if (others == 0 && !r->is_kv) {
        put_reading(m, r, false);
        br_str_puts(&m->k->text, " in place with no external producer (reads "
                                 "its own uninitialized output?)");
        br_chk_take_warning(m->k);
    }
    return true;
}

static bool
provenance(br_cm *m, const br_cm_users *writers, const br_cm_anc *a)
{
    const br_mega_prog *p = m->k->p;

    for (uint32_t i = 0; i < m->n_slots; i++) {
        reading r = {.slot = m->topo[i]};

        if (m->slot_id[r.slot] < 0 && m->lo[r.slot] != m->hi[r.slot])
            return br_cm_raise(m, "shifts by a negative task id");
        if (!br_cm_place(m->slot_id[r.slot], p->n_tasks, &r.task))
            return br_cm_raise(m, "a task id is no place in the list");
        for (r.input = 0; r.input < p->tasks[r.task].n_in; r.input++) {
            uint32_t cls = m->in[m->in_off[r.task] + r.input];
            uint32_t from = writers->off[cls], n = writers->off[cls + 1] - from;
            int64_t at;

            if (!m->is_buf[cls])
                continue;
            if (!br_cm_buffer_at(m, r.task, r.input, false, &at))
                return br_cm_raise(m, "a buffer id is no place in the list");
            r.buffer = (uint32_t)at;
            r.is_kv = p->buffers[at].kind == BR_MBK_KV_CACHE;
            if (br_mega_kind_readonly(p->buffers[at].kind) ||
                (r.is_kv && n == 0))
                continue;
            if (!read_one(m, a, &r, writers->task + from, n))
                return false;
        }
    }
    return true;
}

/* ---- 5a: two writers of one buffer -------------------------------------- */

typedef struct region {
    int64_t r0, r1, c0, c1; /* r1 -1: all rows */
    bool known;
} region;

/* A JSON integer >= lo, saturated. */
static bool
int_param(const br_mega_task *t, br_mega_param p, int64_t lo, int64_t *out)
{
    const br_json *m;

    for (m = t->params->child; m && m->tag != p + 1; m = m->next)
        ;
    if (!m)
        return false;
    if (m->kind == BR_J_BIGINT && m->s[0] != '-')
        *out = INT64_MAX / 4;
    else if (m->kind == BR_J_INT)
        *out = BR_MIN(m->i, INT64_MAX / 4);
    else
        return false;
    return *out >= lo;
}

static region
region_of(const br_mega_task *t)
{
    region r = {.r1 = -1, .known = true};
    int64_t m, rows;

    if ((t->op != BR_MOP_GEMV_TILE && t->op != BR_MOP_GEMM_TILE) ||
        !int_param(t, BR_MP_n_off, 0, &r.c0) ||
        !int_param(t, BR_MP_N_tile, 1, &r.c1))
        return (region){0};
    r.c1 += r.c0;
    if (t->op == BR_MOP_GEMM_TILE && int_param(t, BR_MP_m_off, 0, &m) &&
        int_param(t, BR_MP_M_tile, 1, &rows)) {
        r.r0 = m;
        r.r1 = m + rows;
    }
    return r;
}

static bool
disjoint(const region *a, const region *b)
{
    bool rows = a->r1 != -1 && b->r1 != -1 && !(a->r0 < b->r1 && b->r0 < a->r1);

    return a->known && b->known && (rows || !(a->c0 < b->c1 && b->c0 < a->c1));
}

typedef struct pairing {
    const uint32_t *ws; /* tasks */
    uint32_t n;
    region *regions;
    bool one_counter;
} pairing;

static bool
all_disjoint(const pairing *w)
{
    for (uint32_t i = 0; i < w->n; i++)
        for (uint32_t j = i + 1; j < w->n; j++)
            if (!disjoint(&w->regions[i], &w->regions[j]))
                return false;
    return true;
}

static bool
ordered(br_cm *m, const br_cm_anc *a, const pairing *w, uint32_t i, uint32_t j,
        bool *out)
{
    uint32_t x = m->slot_of[w->ws[i]], y = m->slot_of[w->ws[j]];

    if (!br_cm_before(m, a, x, y, out))
        return false;
    return *out || br_cm_before(m, a, y, x, out);
}

/* The pair to blame; *fine when every pair is ordered. */
static bool
culprits(br_cm *m, const br_cm_anc *a, const pairing *w, uint32_t who[2],
         bool *fine)
{
    bool found = false, yes;

    *fine = true;
    who[0] = 0;
    who[1] = 1;
    for (uint32_t i = 0; i < w->n && !found; i++)
        for (uint32_t j = i + 1; j < w->n && !found; j++) {
            if (!ordered(m, a, w, i, j, &yes))
                return false;
            *fine &= yes;
            if (!yes && !disjoint(&w->regions[i], &w->regions[j])) {
                who[0] = i;
                who[1] = j;
                found = true;
            }
        }
    return true;
}

/* The writer's id names a place, and what stands there tells op and label. */
static bool
place_of(br_cm *m, uint32_t task, uint32_t *at)
{
    return br_cm_place(m->slot_id[m->slot_of[task]], m->k->p->n_tasks, at) ||
           br_cm_raise(m, "a task id is no place in the list");
}

static bool
put_culprits(br_cm *m, const pairing *w, const uint32_t who[2], br_pv id,
             uint32_t buffer)
{
    br_str *s = &m->k->text;
    const char *sep[2] = {"): writers ", " and "};
    uint32_t at;

    br_str_puts(s, "multi-writer WAW race on buffer #");
    br_pv_put(s, id);
    br_str_puts(s, " ('");
    br_put_buffer(s, m->k->p, buffer);
    br_str_putc(s, '\'');
    for (int i = 0; i < 2; i++) {
        if (!place_of(m, w->ws[who[i]], &at))
            return false;
        br_str_puts(s, sep[i]);
        br_pv_put(s, br_pv_id(m->k->p, w->ws[who[i]]));
        br_str_puts(s, " ('");
        br_put_label(s, m->k->p, at);
        br_str_puts(s, "')");
    }
    br_str_puts(s, w->one_counter ? " share a counter but their tiles OVERLAP; "
                                  : " share no counter; ");
    br_str_puts(s, "neither is ordered happens-before the other, "
                   "write-after-write RACE");
    br_chk_take_error(m->k);
    return true;
}

static bool
write_pairs(br_cm *m, const br_cm_anc *a, pairing *w, br_pv id, uint32_t buffer)
{
    uint32_t who[2], at, first;
    bool fine;

    if (w->n > BR_CM_MAX_WRITERS)
        return br_cm_raise(m, "too many writers of one buffer to judge");
    w->regions = br_chk_get(m->k, w->n, sizeof *w->regions);
    if (!w->regions)
        return no_memory(m);
    w->one_counter = true;
    for (uint32_t i = 0; i < w->n; i++) {
        if (!place_of(m, w->ws[i], &at) || !place_of(m, w->ws[0], &first))
            return false;
        w->one_counter &= m->octr[at] == m->octr[first];
        w->regions[i] = region_of(&m->k->p->tasks[at]);
    }
    if (w->one_counter && all_disjoint(w))
        return true;
    if (!culprits(m, a, w, who, &fine))
        return false;
    return fine || put_culprits(m, w, who, id, buffer);
}

static bool
multi_writers(br_cm *m, const br_cm_users *writers, const br_cm_anc *a)
{
    const br_mega_prog *p = m->k->p;
    uint8_t *done = br_chk_zero(m->k, m->n_cls, 1);

    if (!done)
        return no_memory(m);
    for (uint32_t t = 0; t < p->n_tasks; t++)
        for (uint32_t i = 0; i < p->tasks[t].n_out; i++) {
            uint32_t cls = m->out[m->out_off[t] + i];
            pairing w = {.ws = writers->task + writers->off[cls],
                         .n = writers->off[cls + 1] - writers->off[cls]};
            int64_t at;

            if (done[cls] || w.n < 2 || !m->is_buf[cls])
                continue;
            done[cls] = 1;
            if (!br_cm_buffer_at(m, t, i, true, &at))
                return br_cm_raise(m, "a buffer id is no place in the list");
            if (br_mega_kind_readonly(p->buffers[at].kind))
                continue;
            if (!write_pairs(m, a, &w, br_pv_out(p, t, i), (uint32_t)at))
                return false;
        }
    return true;
}

bool
br_cm_race(br_cm *m, const br_cm_users *writers, br_cm_anc *anc)
{
    if (m->k->p->n_tasks == 0)
        return true;
    return ancestors(m, anc) && provenance(m, writers, anc) &&
           multi_writers(m, writers, anc);
}
