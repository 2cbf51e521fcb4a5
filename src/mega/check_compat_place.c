/* check_compat_place.c - where things lie and run, as the reference looks at
 * it: on-chip buffers, queue order, pages.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "mega/check_compat.h"

static bool
no_memory(br_cm *m)
{
    m->k->oom = true;
    return br_cm_raise(m, "out of memory");
}

/* ---- numbers of any type ------------------------------------------------ */

/* a < b for Python numbers; false result: they do not compare. */
static bool
less(br_pv a, br_pv b, bool *out)
{
    int64_t i, j;
    double x, y;
    bool ia = br_pv_int(a, &i), ib = br_pv_int(b, &j);

    if (ia && ib) {
        *out = i < j;
        return true;
    }
    x = (double)i;
    y = (double)j;
    if (!ia && a.j->kind == BR_J_FLOAT)
        x = a.j->f;
    else if (!ia && (a.j->kind != BR_J_BIGINT ||
                     !br_json_to_f64((br_text){a.j->s, a.j->n}, &x)))
        return false;
    if (!ib && b.j->kind == BR_J_FLOAT)
        y = b.j->f;
    else if (!ib && (b.j->kind != BR_J_BIGINT ||
                     !br_json_to_f64((br_text){b.j->s, b.j->n}, &y)))
        return false;
    *out = x < y;
    return true;
}

static bool
both_text(br_pv a, br_pv b, bool *out)
{
    size_t n;
    int c;

    if (!a.j || !b.j || a.j->kind != BR_J_STR || b.j->kind != BR_J_STR)
        return false;
    n = BR_MIN(a.j->n, b.j->n);
    c = n ? memcmp(a.j->s, b.j->s, n) : 0;
    *out = c < 0 || (c == 0 && a.j->n < b.j->n);
    return true;
}

/* ---- 5b: on-chip buffers ------------------------------------------------ */

static bool
hashable(br_pv v)
{
    return !v.j || (v.j->kind != BR_J_ARR && v.j->kind != BR_J_OBJ);
}

static int
by_int(const void *x, const void *y)
{
    const br_pv *a = x, *b = y;

    return a->i < b->i ? -1 : a->i > b->i;
}

/* Insertion: values of other types are few, and may not compare at all. */
static bool
sort_odd(br_cm *m, br_pv *sms, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = i; j > 0; j--) {
            br_pv tmp = sms[j];
            bool lt;

            if (!less(sms[j], sms[j - 1], &lt) &&
                !both_text(sms[j], sms[j - 1], &lt))
                return br_cm_raise(m, "sm values do not compare");
            if (!lt)
                break;
            sms[j] = sms[j - 1];
            sms[j - 1] = tmp;
        }
    return true;
}

/* The distinct workers of a buffer's users, sorted as sorted() would. */
static bool
workers_of(br_cm *m, const uint32_t *tasks, uint32_t n_tasks, br_pv *sms,
           uint32_t *n)
{
    uint32_t all = 0;
    bool odd = false;

    *n = 0;
    for (uint32_t i = 0; i < n_tasks; i++) {
        br_pv sm = br_pv_sm(m->k->p, tasks[i]);

        if (br_pv_is_null(sm))
            continue;
        if (!hashable(sm))
            return br_cm_raise(m, "sm is a list or an object");
        odd |= sm.j != NULL;
        sms[all++] = sm;
    }
    if (!odd && all)
        qsort(sms, all, sizeof *sms, by_int);
    for (uint32_t i = 0; i < all; i++) {
        uint32_t at = odd || *n == 0 ? 0 : *n - 1;

        for (; at < *n && !br_pv_eq(sms[at], sms[i]); at++)
            ;
        if (at == *n)
            sms[(*n)++] = sms[i];
    }
    return !odd || *n < 2 || sort_odd(m, sms, *n);
}

static void
put_onchip(br_cm *m, uint32_t b)
{
    const br_mega_prog *p = m->k->p;

    br_str_puts(&m->k->text, "on-chip buffer '");
    br_put_buffer(&m->k->text, p, b);
    br_str_puts(&m->k->text, "'(#");
    br_pv_put(&m->k->text, br_pv_of(p, BR_MF_BUF_ID, b, 0, p->buffers[b].id));
}

bool
br_cm_onchip(br_cm *m, const br_cm_users *users)
{
    const br_mega_prog *p = m->k->p;
    br_str *s = &m->k->text;
    uint32_t n;
    br_pv *sms = NULL;

    for (uint32_t b = 0; b < p->n_buffers; b++) {
        const br_mega_buffer *buf = &p->buffers[b];
        const uint32_t *off = &users->off[m->buf_cls[b]];

        if (buf->space != BR_MSP_SMEM && buf->space != BR_MSP_REGISTER)
            continue;
        if (!sms)
            sms = br_chk_get(m->k, users->off[m->n_cls], sizeof *sms);
        if (!sms)
            return no_memory(m);
        if (!workers_of(m, users->task + off[0], off[1] - off[0], sms, &n))
            return false;
        if (n > 1) {
            put_onchip(m, b);
            br_str_printf(s, ", %s) is used across SMs [",
                          br_mega_space_name(buf->space));
            for (uint32_t i = 0; i < n; i++) {
                br_str_puts(s, i ? ", " : "");
                br_pv_put_repr(s, sms[i]);
            }
            br_str_puts(s, "], counters give ordering, not cross-SM data; "
                           "promote to GLOBAL_SCRATCH/HBM or co-locate on one "
                           "SM");
            br_chk_take_error(m->k);
        } else if (n == 0 && off[0] != off[1]) {
            put_onchip(m, b);
            br_str_puts(s, ") requires same-SM placement (unverified until "
                           "sm_assignment runs)");
            br_chk_take_warning(m->k);
        }
    }
    return true;
}

/* ---- 6: queues, range --------------------------------------------------- */

/* Is the edge a -> b, both on one worker, against the order of the list? */
static bool
against(br_cm *m, uint32_t a, uint32_t b, const uint32_t *place, bool *out)
{
    br_pv sa, sb;

    *out = false;
    if (place[a] == BR_NONE || place[b] == BR_NONE)
        return br_cm_raise(m, "a task id is no place in the list");
    if (m->last_task[a] < m->last_task[b])
        return true;
    sa = br_pv_sm(m->k->p, place[a]);
    sb = br_pv_sm(m->k->p, place[b]);
    *out = !br_pv_is_null(sa) && br_pv_eq(sa, sb);
    return true;
}

static void
put_order(br_cm *m, uint32_t a, uint32_t b, uint32_t place)
{
    br_str *s = &m->k->text;

    br_str_puts(s, "SM ");
    br_pv_put(s, br_pv_sm(m->k->p, place));
    br_str_puts(s, " queue order violates dependency ");
    br_pv_put(s, br_pv_id(m->k->p, m->slot_task[a]));
    br_str_puts(s, "->");
    br_pv_put(s, br_pv_id(m->k->p, m->slot_task[b]));
    br_str_puts(s, " (producer must precede consumer in the same SM's serial "
                   "queue)");
    br_chk_take_error(m->k);
}

/* Edges a -> b ascending. The edges of a dense join are too many to visit one
 * by one for nothing: last[s] = the least place among the successors of s is
 * found once per list, and only tasks after it are looked at. */
static bool
orders(br_cm *m, const uint32_t *place)
{
    uint32_t least = 0, lo = BR_NONE, hi = BR_NONE;
    bool odd = false, yes;

    for (uint32_t a = 0; a < m->n_slots; a++) {
        if (m->lo[a] == m->hi[a])
            continue;
        if (m->lo[a] != lo || m->hi[a] != hi) {
            lo = m->lo[a];
            hi = m->hi[a];
            least = BR_NONE;
            odd = false;
            for (uint32_t i = lo; i < hi; i++) {
                least = BR_MIN(least, m->last_task[m->succ[i]]);
                odd |= place[m->succ[i]] == BR_NONE;
            }
        }
        if (!odd && place[a] != BR_NONE && m->last_task[a] < least)
            continue;
        for (uint32_t i = lo; i < hi; i++) {
            if (!against(m, a, m->succ[i], place, &yes))
                return false;
            if (yes)
                put_order(m, a, m->succ[i], place[a]);
        }
    }
    return true;
}

static bool
range(br_cm *m, uint32_t t)
{
    const br_json *node = m->k->p->target[BR_MT_num_sms];
    br_pv sm = br_pv_sm(m->k->p, t), zero = {NULL, 0}, n = {node, 0};
    bool negative, inside = false;
    br_str *s = &m->k->text;

    if (br_pv_is_null(sm))
        return true;
    if (!less(sm, zero, &negative))
        return br_cm_raise(m, "sm is no number");
    /* 0 <= NaN is false as well */
    if (sm.j && sm.j->kind == BR_J_FLOAT && sm.j->f != sm.j->f)
        negative = true;
    if (!negative && !less(sm, n, &inside))
        return br_cm_raise(m, "num_sms is no number");
    if (inside)
        return true;
    br_str_puts(s, "task ");
    br_pv_put(s, br_pv_id(m->k->p, t));
    br_str_puts(s, " assigned to SM ");
    br_pv_put(s, sm);
    br_str_puts(s, " out of range [0,");
    br_pv_put(s, n);
    br_str_putc(s, ')');
    br_chk_take_error(m->k);
    return true;
}

bool
br_cm_queues(br_cm *m)
{
    const br_mega_prog *p = m->k->p;
    uint32_t *place = br_chk_get(m->k, m->n_slots, 4);

    if (!place)
        return no_memory(m);
    for (uint32_t s = 0; s < m->n_slots; s++)
        if (!br_cm_place(m->slot_id[s], p->n_tasks, &place[s]))
            place[s] = BR_NONE;
    if (!orders(m, place))
        return false;
    for (uint32_t t = 0; p->target && t < p->n_tasks; t++)
        if (!range(m, t))
            return false;
    return true;
}

/* ---- 7: pages ----------------------------------------------------------- */

/* A buffer of the map; lists are empty when no task knows it. */
typedef struct occupant {
    uint32_t bind;
    const uint32_t *write, *use;
    uint32_t n_write, n_use;
} occupant;

static bool
all_before(br_cm *m, const br_cm_anc *anc, const occupant *a, const occupant *b,
           bool *out)
{
    *out = true;
    for (uint32_t i = 0; i < b->n_write; i++)
        for (uint32_t j = 0; j < a->n_use; j++) {
            if (!br_cm_before(m, anc, m->slot_of[a->use[j]],
                              m->slot_of[b->write[i]], out))
                return false;
            if (!*out)
                return true;
        }
    return true;
}

static bool
put_clobber(br_cm *m, uint32_t first, const occupant *a, const occupant *b)
{
    const br_mega_prog *p = m->k->p;
    const occupant *who[2] = {a, b};
    br_str *s = &m->k->text;
    uint32_t at;

    br_str_puts(s, "page ");
    br_pv_put(s, br_pv_of(p, BR_MF_BIND_PAGE, first, 0, p->binds[first].page));
    br_str_puts(s, " reused by buffers #");
    for (int i = 0; i < 2; i++) {
        br_pv id = br_pv_of(p, BR_MF_BIND_BUFFER, who[i]->bind, 0,
                            p->binds[who[i]->bind].buffer);
        int64_t v;

        if (!br_pv_int(id, &v) || !br_cm_place(v, p->n_buffers, &at)) {
            br_str_clear(s);
            return br_cm_raise(m, "a paged buffer is no place in the list");
        }
        br_str_puts(s, i ? " and #" : "");
        br_pv_put(s, id);
        br_str_puts(s, " ('");
        br_put_buffer(s, p, at);
        br_str_puts(s, "')");
    }
    br_str_puts(s, " whose live ranges are NOT ordered, clobber RACE (page "
                   "reuse needs separated ranges)");
    br_chk_take_error(m->k);
    return true;
}

static bool
page_pairs(br_cm *m, const br_cm_anc *anc, uint32_t first, const occupant *occ,
           uint32_t n)
{
    bool yes;

    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = i + 1; j < n; j++) {
            if (!all_before(m, anc, &occ[i], &occ[j], &yes))
                return false;
            if (!yes && !all_before(m, anc, &occ[j], &occ[i], &yes))
                return false;
            if (!yes && !put_clobber(m, first, &occ[i], &occ[j]))
                return false;
        }
    return true;
}

typedef struct page_map {
    const br_cm_users *writers, *users;
    const uint32_t *buf, *next; /* of a bind: class, next on its page */
    bool negative; /* some task id is: then any comparison may raise */
} page_map;

/* Occupants of the page of bind `first`, in map order. Buffers that nobody
 * writes order themselves before any other and are left out: the reference
 * would find nothing, after looking at every pair. */
static uint32_t
gather(const page_map *map, uint32_t first, occupant *occ)
{
    const br_cm_users *w = map->writers, *u = map->users;
    uint32_t n = 0;

    for (uint32_t e = first; e != BR_NONE; e = map->next[e]) {
        uint32_t c = map->buf[e];

        if (c == BR_NONE || (w->off[c] == w->off[c + 1] && !map->negative))
            continue;
        occ[n++] =
            (occupant){e, w->task + w->off[c], u->task + u->off[c],
                       w->off[c + 1] - w->off[c], u->off[c + 1] - u->off[c]};
    }
    return n;
}

bool
br_cm_pages(br_cm *m, const br_cm_users *writers, const br_cm_users *users,
            const br_cm_anc *anc)
{
    const br_mega_prog *p = m->k->p;
    uint32_t n = (uint32_t)p->n_binds, n_cls = m->n_cls, *buf, *page, *next;
    uint32_t *head, *tail;
    occupant *occ = br_chk_get(m->k, n, sizeof *occ);
    page_map map = {.writers = writers, .users = users};

    buf = br_chk_get(m->k, n, 4);
    page = br_chk_get(m->k, n, 4);
    next = br_chk_get(m->k, n, 4);
    if (!occ || !buf || !page || !next)
        return no_memory(m);
    for (uint32_t e = 0; e < n; e++) {
        if (!br_cm_class(
                m, br_pv_of(p, BR_MF_BIND_BUFFER, e, 0, p->binds[e].buffer),
                &buf[e]) ||
            !br_cm_class(m,
                         br_pv_of(p, BR_MF_BIND_PAGE, e, 0, p->binds[e].page),
                         &page[e]))
            return false;
        if (buf[e] >= n_cls)
            buf[e] = BR_NONE; /* no task names it */
        next[e] = BR_NONE;
    }
    map.buf = buf;
    map.next = next;
    map.negative = m->n_slots && m->slot_id[0] < 0;
    head = br_chk_get(m->k, m->n_cls, 4);
    tail = br_chk_get(m->k, m->n_cls, 4);
    if (!head || !tail)
        return no_memory(m);
    memset(head, 0xff, (size_t)m->n_cls * 4);
    for (uint32_t e = 0; e < n; e++) {
        if (head[page[e]] == BR_NONE)
            head[page[e]] = e;
        else
            next[tail[page[e]]] = e;
        tail[page[e]] = e;
    }
    for (uint32_t e = 0; e < n; e++)
        if (head[page[e]] == e &&
            !page_pairs(m, anc, e, occ, gather(&map, e, occ)))
            return false;
    return true;
}
