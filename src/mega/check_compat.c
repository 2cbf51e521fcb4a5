/* check_compat.c - the reference's validate(), section by section.
 *
 *   1 each task   2 its waits   3 cycle   4 provenance   5 multiple writers
 *   6 on-chip   7 queues, range of sm   8 pages   9 outputs, gpu label
 *
 * It reproduces verdicts and texts, the unsound ones included: this mode is
 * for telling what the other implementation would say, never for deciding
 * whether to run. Known differences, all on files that no lowering writes:
 * a task id that is a string, or an integer beyond 64 bits, or a float equal
 * to another id, is refused outright (the reference may get by where the graph
 * has a cycle or more than 8000 tasks); so are a buffer with more than 32768
 * writers and, where ids are duplicate, more than 2^24 edges.
 *
 * Cost      O(records) + the proof, quadratic in tasks and only run up to
 *           8000 of them (at most 16 MB of bit rows).
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/check_compat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
br_cm_raise(br_cm *m, const char *why)
{
    if (!m->why)
        m->why = why;
    return false;
}

static bool
no_memory(br_cm *m)
{
    m->k->oom = true;
    return br_cm_raise(m, "out of memory");
}

/* ---- classes ------------------------------------------------------------ */

enum { K_NONE = 1, K_INT, K_FLOAT, K_BIG, K_STR };

struct br_cm_key {
    const char *s;
    int64_t i; /* also the bits of a float */
    uint32_t n, cls;
    uint8_t kind; /* 0: free */
};

static uint64_t
hash_of(const br_cm_key *key)
{
    uint64_t h = (uint64_t)key->i * 0x9e3779b97f4a7c15u + key->kind;

    for (uint32_t i = 0; i < key->n; i++)
        h = (h ^ (unsigned char)key->s[i]) * 0x100000001b3u;
    h ^= h >> 29;
    return h * 0xbf58476d1ce4e5b9u ^ h >> 32;
}

static bool
same_key(const br_cm_key *a, const br_cm_key *b)
{
    return a->kind == b->kind && a->i == b->i && a->n == b->n &&
           (a->n == 0 || memcmp(a->s, b->s, a->n) == 0);
}

static br_cm_key *
slot_in(br_cm_key *table, uint32_t cap, const br_cm_key *key)
{
    uint32_t at = (uint32_t)hash_of(key) & (cap - 1);

    while (table[at].kind && !same_key(&table[at], key))
        at = (at + 1) & (cap - 1);
    return &table[at];
}

static bool
grow(br_cm *m)
{
    uint32_t cap = m->cap ? m->cap * 2 : 256;
    br_cm_key *table = br_chk_zero(m->k, cap, sizeof *table);

    if (!table)
        return no_memory(m);
    for (uint32_t i = 0; i < m->cap; i++)
        if (m->table[i].kind)
            *slot_in(table, cap, &m->table[i]) = m->table[i];
    m->table = table;
    m->cap = cap;
    return true;
}

static bool
float_key(br_cm *m, double f, br_cm_key *key)
{
    char text[400];

    if (f >= -0x1p63 && f < 0x1p63 && f == rint(f)) {
        *key = (br_cm_key){.kind = K_INT, .i = (int64_t)f};
    } else if (isfinite(f) && f == rint(f)) { /* equals an int beyond 64 bits */
        int n = snprintf(text, sizeof text, "%.0f", f);
        char *s = br_arena_str(&m->k->tmp, text, (size_t)n);

        if (!s)
            return no_memory(m);
        *key = (br_cm_key){.kind = K_BIG, .s = s, .n = (uint32_t)n};
    } else {
        f = isnan(f) ? (double)NAN : f;
        *key = (br_cm_key){.kind = K_FLOAT};
        memcpy(&key->i, &f, sizeof f);
    }
    return true;
}

static bool
key_of(br_cm *m, br_pv v, br_cm_key *key)
{
    int64_t i;

    if (br_pv_int(v, &i)) {
        *key = (br_cm_key){.kind = K_INT, .i = i};
        return true;
    }
    switch ((br_json_kind)v.j->kind) {
    case BR_J_NULL: *key = (br_cm_key){.kind = K_NONE}; return true;
    case BR_J_FLOAT: return float_key(m, v.j->f, key);
    case BR_J_BIGINT:
    case BR_J_STR:
        *key = (br_cm_key){.kind = v.j->kind == BR_J_STR ? K_STR : K_BIG,
                           .s = v.j->s,
                           .n = v.j->n};
        return true;
    case BR_J_ARR:
    case BR_J_OBJ: return br_cm_raise(m, "an id is a list or an object");
    case BR_J_BOOL:
    case BR_J_INT: break;
    }
    br_unreachable("ints are handled above");
}

bool
br_cm_class(br_cm *m, br_pv v, uint32_t *cls)
{
    br_cm_key key, *at;

    if (!v.j && v.i >= 0 && v.i < m->n_small) {
        *cls = (uint32_t)v.i;
        return true;
    }
    if (!key_of(m, v, &key))
        return false;
    if (key.kind == K_INT && key.i >= 0 && key.i < m->n_small) {
        *cls = (uint32_t)key.i;
        return true;
    }
    if (m->n_table * 2 >= m->cap && !grow(m))
        return false;
    at = slot_in(m->table, m->cap, &key);
    if (!at->kind) {
        *at = key;
        at->cls = m->n_cls++;
        m->n_table++;
    }
    *cls = at->cls;
    return true;
}

/* ---- reading the program ------------------------------------------------ */

static bool
alloc_lists(br_cm *m)
{
    const br_mega_prog *p = m->k->p;
    size_t n_in = 0, n_out = 0, n_wait = 0, n = p->n_tasks;

    for (size_t t = 0; t < n; t++) {
        n_in += p->tasks[t].n_in;
        n_out += p->tasks[t].n_out;
        n_wait += p->tasks[t].n_waits;
    }
    if (n_in + n_out + n_wait >= BR_NONE)
        return br_cm_raise(m, "more than 2^32 references");
    m->buf_cls = br_chk_get(m->k, p->n_buffers, 4);
    m->octr = br_chk_get(m->k, n, 4);
    m->in_off = br_chk_get(m->k, n + 1, 4);
    m->out_off = br_chk_get(m->k, n + 1, 4);
    m->wait_off = br_chk_get(m->k, n + 1, 4);
    m->in = br_chk_get(m->k, n_in, 4);
    m->out = br_chk_get(m->k, n_out, 4);
    m->wait = br_chk_get(m->k, n_wait, 4);
    return (m->buf_cls && m->octr && m->in_off && m->out_off && m->wait_off &&
            m->in && m->out && m->wait) ||
           no_memory(m);
}

static bool
read_task(br_cm *m, uint32_t t)
{
    const br_mega_prog *p = m->k->p;
    const br_mega_task *task = &p->tasks[t];
    uint32_t in = m->in_off[t], out = m->out_off[t], wait = m->wait_off[t];

    for (uint32_t i = 0; i < task->n_in; i++)
        if (!br_cm_class(m, br_pv_in(p, t, i), &m->in[in++]))
            return false;
    for (uint32_t i = 0; i < task->n_out; i++)
        if (!br_cm_class(m, br_pv_out(p, t, i), &m->out[out++]))
            return false;
    for (uint32_t i = 0; i < task->n_waits; i++)
        if (!br_cm_class(m, br_pv_wait(p, t, i), &m->wait[wait++]))
            return false;
    m->in_off[t + 1] = in;
    m->out_off[t + 1] = out;
    m->wait_off[t + 1] = wait;
    return br_cm_class(m, br_pv_ctr(p, t), &m->octr[t]);
}

static bool
read_program(br_cm *m)
{
    const br_mega_prog *p = m->k->p;
    uint32_t cls, *ctr_cls = br_chk_get(m->k, p->n_counters, 4);

    m->n_small =
        (uint32_t)BR_MAX(BR_MAX(p->n_buffers, p->n_counters), p->n_tasks) + 64;
    m->n_cls = m->n_small;
    if (!ctr_cls || !alloc_lists(m))
        return no_memory(m);
    for (uint32_t b = 0; b < p->n_buffers; b++)
        if (!br_cm_class(m, br_pv_of(p, BR_MF_BUF_ID, b, 0, p->buffers[b].id),
                         &m->buf_cls[b]))
            return false;
    for (uint32_t c = 0; c < p->n_counters; c++)
        if (!br_cm_class(m, br_pv_of(p, BR_MF_CTR_ID, c, 0, p->counters[c].id),
                         &ctr_cls[c]))
            return false;
    m->in_off[0] = m->out_off[0] = m->wait_off[0] = 0;
    for (uint32_t t = 0; t < p->n_tasks; t++) {
        if (!read_task(m, t))
            return false;
        if (p->n_misfits && br_misfit_of(p, BR_MF_TASK_PARAMS, t, 0))
            return br_cm_raise(m, "params is no object");
    }
    m->is_buf = br_chk_zero(m->k, m->n_cls, 1);
    m->is_ctr = br_chk_zero(m->k, m->n_cls, 1);
    m->np = br_chk_zero(m->k, m->n_cls, 4);
    if (!m->is_buf || !m->is_ctr || !m->np)
        return no_memory(m);
    for (uint32_t b = 0; b < p->n_buffers; b++)
        m->is_buf[m->buf_cls[b]] = 1;
    for (uint32_t c = 0; c < p->n_counters; c++) {
        cls = ctr_cls[c];
        m->is_ctr[cls] = 1;
    }
    for (uint32_t t = 0; t < p->n_tasks; t++)
        m->np[m->octr[t]]++;
    return true;
}

bool
br_cm_known_buffer(const br_cm *m, uint32_t t, uint32_t i, bool write)
{
    return m
        ->is_buf[write ? m->out[m->out_off[t] + i] : m->in[m->in_off[t] + i]];
}

bool
br_cm_known_counter(const br_cm *m, uint32_t t, int64_t wait)
{
    return m->is_ctr[wait < 0 ? m->octr[t] : m->wait[m->wait_off[t] + wait]];
}

bool
br_cm_place(int64_t index, size_t n, uint32_t *at)
{
    int64_t len = (int64_t)n;

    if (index < -len || index >= len)
        return false;
    *at = (uint32_t)(index < 0 ? index + len : index);
    return true;
}

bool
br_cm_buffer_at(const br_cm *m, uint32_t t, uint32_t i, bool write, int64_t *at)
{
    const br_mega_prog *p = m->k->p;
    br_pv v = write ? br_pv_out(p, t, i) : br_pv_in(p, t, i);
    int64_t index;
    uint32_t place;

    if (!br_pv_int(v, &index) || !br_cm_place(index, p->n_buffers, &place))
        return false;
    *at = place;
    return true;
}

/* ---- lists by class ----------------------------------------------------- */

static void
count_list(uint32_t *off, const uint32_t *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        off[list[i] + 1]++;
}

static bool
by_class(br_cm *m, br_cm_users *u, bool reads)
{
    uint32_t n = (uint32_t)m->k->p->n_tasks;
    uint32_t total = m->out_off[n] + (reads ? m->in_off[n] : 0);

    u->off = br_chk_zero(m->k, (size_t)m->n_cls + 2, 4);
    u->task = br_chk_get(m->k, total, 4);
    if (!u->off || !u->task)
        return no_memory(m);
    u->off++; /* off[c] runs while filling; off[-1] is 0 then */
    count_list(u->off, m->out, m->out_off[n]);
    if (reads)
        count_list(u->off, m->in, m->in_off[n]);
    for (uint32_t c = 0; c < m->n_cls; c++)
        u->off[c + 1] += u->off[c];
    for (uint32_t t = 0; t < n; t++) {
        for (uint32_t i = m->in_off[t]; reads && i < m->in_off[t + 1]; i++)
            u->task[u->off[m->in[i]]++] = t;
        for (uint32_t i = m->out_off[t]; i < m->out_off[t + 1]; i++)
            u->task[u->off[m->out[i]]++] = t;
    }
    u->off--; /* each has moved to the end of its list */
    return true;
}

bool
br_cm_writers(br_cm *m, br_cm_users *u)
{
    return by_class(m, u, false);
}

bool
br_cm_all_users(br_cm *m, br_cm_users *u)
{
    return by_class(m, u, true);
}

/* ---- task ids and edges ------------------------------------------------- */

typedef struct pair {
    long double id; /* holds every int64 and every double */
    uint32_t task;
} pair;

static int
by_id(const void *x, const void *y)
{
    const pair *a = x, *b = y;

    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return a->task < b->task ? -1 : a->task > b->task;
}

static bool
read_id(br_pv v, long double *id, bool *is_float)
{
    int64_t i;

    if (br_pv_int(v, &i)) {
        *id = i;
        return true;
    }
    *is_float = true;
    *id = v.j->kind == BR_J_FLOAT ? v.j->f : 0;
    return v.j->kind == BR_J_FLOAT && v.j->f == v.j->f;
}

static bool
read_ids(br_cm *m)
{
    const br_mega_prog *p = m->k->p;
    uint32_t n = (uint32_t)p->n_tasks, s = 0;
    pair *ids = br_chk_get(m->k, n, sizeof *ids);
    bool sorted = true;

    m->slot_id = br_chk_get(m->k, n, sizeof *m->slot_id);
    m->slot_of = br_chk_get(m->k, n, 4);
    m->slot_task = br_chk_get(m->k, n, 4);
    m->last_task = br_chk_get(m->k, n, 4);
    if (!ids || !m->slot_id || !m->slot_of || !m->slot_task || !m->last_task)
        return no_memory(m);
    for (uint32_t t = 0; t < n; t++) {
        ids[t].task = t;
        if (!read_id(br_pv_id(p, t), &ids[t].id, &m->float_ids))
            return br_cm_raise(m, "a task id is no number");
        sorted &= t == 0 || ids[t - 1].id < ids[t].id;
    }
    if (!sorted)
        qsort(ids, n, sizeof *ids, by_id);
    for (uint32_t i = 0; i < n; i++) {
        int64_t id;

        if (i == 0 || ids[i].id != ids[i - 1].id) {
            /* A float is no place, whatever its value. */
            m->slot_id[s] =
                br_pv_int(br_pv_id(p, ids[i].task), &id) ? id : INT64_MIN;
            m->slot_task[s++] = ids[i].task;
        }
        m->slot_of[ids[i].task] = s - 1;
        m->last_task[s - 1] = ids[i].task;
    }
    if (m->float_ids && s != n)
        return br_cm_raise(m, "a task id is a float equal to another");
    m->n_slots = s;
    m->unique = s == n;
    return true;
}

/* Slots are tasks: the compressed graph will do. */
static bool
edges_unique(br_cm *m)
{
    uint32_t n = m->n_slots, at = 0;
    uint32_t *ctr = br_chk_get(m->k, n, 4);
    uint32_t *off = br_chk_get(m->k, (size_t)n + 1, 4);
    uint32_t *wait = br_chk_get(m->k, m->wait_off[n], 4);
    uint32_t *seen = br_chk_get(m->k, m->n_cls, 4);
    br_mega_links l = {n, m->n_cls, ctr, off, wait};

    if (!ctr || !off || !wait || !seen)
        return no_memory(m);
    memset(seen, 0xff, (size_t)m->n_cls * 4);
    for (uint32_t s = 0; s < n; s++) {
        uint32_t t = m->slot_task[s];

        ctr[s] = m->octr[t];
        off[s] = at;
        for (uint32_t i = m->wait_off[t]; i < m->wait_off[t + 1]; i++)
            if (seen[m->wait[i]] != s) {
                seen[m->wait[i]] = s;
                wait[at++] = m->wait[i];
            }
    }
    off[n] = at;
    if (br_mega_graph_from(&m->g, &l, &m->k->tmp, m->k->st) != BR_OK)
        return no_memory(m);
    for (uint32_t s = 0; s < n; s++) {
        m->lo[s] = m->g.wait_off[ctr[s]];
        m->hi[s] = m->g.wait_off[ctr[s] + 1];
    }
    m->succ = m->g.waiter;
    m->topo = m->g.topo;
    m->k->r->n_edges = br_mega_graph_edges(&m->g);
    return true;
}

static int
by_value(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

    return a < b ? -1 : a > b;
}

/* Writes them all down, sorts, and drops the doubles. */
static bool
edges_explicit(br_cm *m)
{
    uint32_t n = (uint32_t)m->k->p->n_tasks, at = 0;
    uint32_t *off = br_chk_zero(m->k, (size_t)m->n_cls + 2, 4), *prod, *succ;
    uint64_t total = 0, n_pairs = 0, *pairs;

    prod = br_chk_get(m->k, n, 4);
    if (!off || !prod)
        return no_memory(m);
    for (uint32_t i = 0; i < m->wait_off[n]; i++)
        total += m->np[m->wait[i]];
    if (total > BR_CM_MAX_EDGES)
        return br_cm_raise(m, "too many edges between duplicate ids");
    pairs = br_chk_get(m->k, (size_t)total, sizeof *pairs);
    succ = br_chk_get(m->k, (size_t)total, 4);
    if (!pairs || !succ)
        return no_memory(m);
    for (uint32_t t = 0; t < n; t++)
        off[m->octr[t] + 2]++;
    for (uint32_t c = 0; c < m->n_cls; c++)
        off[c + 1] += off[c];
    for (uint32_t t = 0; t < n; t++)
        prod[off[m->octr[t] + 1]++] = m->slot_of[t];
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = m->wait_off[t]; i < m->wait_off[t + 1]; i++)
            for (uint32_t j = off[m->wait[i]]; j < off[m->wait[i] + 1]; j++)
                pairs[n_pairs++] = (uint64_t)prod[j] << 32 | m->slot_of[t];
    if (n_pairs)
        qsort(pairs, (size_t)n_pairs, sizeof *pairs, by_value);
    for (uint32_t s = 0, i = 0; s < m->n_slots; s++) {
        m->lo[s] = at;
        for (; i < n_pairs && pairs[i] >> 32 == s; i++)
            if (i == 0 || pairs[i] != pairs[i - 1])
                succ[at++] = (uint32_t)pairs[i];
        m->hi[s] = at;
    }
    m->succ = succ;
    m->k->r->n_edges = at;
    return true;
}

static bool
read_edges(br_cm *m)
{
    m->lo = br_chk_get(m->k, m->n_slots, 4);
    m->hi = br_chk_get(m->k, m->n_slots, 4);
    if (!m->lo || !m->hi)
        return no_memory(m);
    return m->unique ? edges_unique(m) : edges_explicit(m);
}

static bool
describe_cycle(br_cm *m)
{
    br_str *s = &m->k->text;
    br_succs g = {m->n_slots, m->lo, m->hi, m->succ};
    uint32_t n, *cycle, at;

    if (br_chk_cycle(m->k, &g, m->slot_of, (uint32_t)m->k->p->n_tasks, &cycle,
                     &n) != BR_OK)
        return no_memory(m);
    br_str_puts(s, "producer\xe2\x86\x92"
                   "consumer graph has a CYCLE, structural deadlock. cycle: ");
    if (n == 0)
        br_str_puts(s, "<not localized>");
    for (uint32_t i = 0; i < n; i++) {
        if (!br_cm_place(m->slot_id[cycle[i]], m->k->p->n_tasks, &at)) {
            br_str_clear(s);
            return br_cm_raise(m, "a task id is no place in the list");
        }
        br_str_puts(s, i ? " -> " : "");
        br_pv_put(s, br_pv_id(m->k->p, m->slot_task[cycle[i]]));
        br_str_putc(s, ':');
        br_put_node(s, m->k->p, at);
    }
    br_chk_take_error(m->k);
    return true;
}

/* ---- the weight of the weights ------------------------------------------ */

/* A Python number. Ints beyond 128 bits are kept as the nearest long double:
 * their sum is then rounded once more than Python's. */
typedef struct num {
    __extension__ __int128 i;
    long double big;
    double f;
    enum { N_INT, N_BIG, N_FLOAT } kind;
} num;

static long double
num_big(num v)
{
    return v.kind == N_BIG ? v.big : (long double)v.i;
}

/* An int too large for a double raises in Python; *ok tells. */
static double
num_f(num v, bool *ok)
{
    double f = v.kind == N_FLOAT ? v.f
               : v.kind == N_BIG ? (double)v.big
                                 : (double)v.i;

    *ok &= v.kind == N_FLOAT || isfinite(f);
    return f;
}

static num
num_op(num a, num b, char op, bool *ok)
{
    num r = {0};

    if (a.kind == N_FLOAT || b.kind == N_FLOAT) {
        double x = num_f(a, ok), y = num_f(b, ok);

        r.kind = N_FLOAT;
        r.f = op == '*' ? x * y : x + y;
    } else if (a.kind == N_BIG || b.kind == N_BIG ||
               (op == '*' ? __builtin_mul_overflow(a.i, b.i, &r.i)
                          : __builtin_add_overflow(a.i, b.i, &r.i))) {
        r.kind = N_BIG;
        r.big = op == '*' ? num_big(a) * num_big(b) : num_big(a) + num_big(b);
    }
    return r;
}

/* a // 8 */
static num
num_eighth(num a)
{
    if (a.kind == N_FLOAT)
        a.f = isfinite(a.f) ? floor(a.f / 8.0) : (double)NAN;
    else if (a.kind == N_BIG)
        a.big = floorl(a.big / 8.0L);
    else
        a.i = a.i / 8 - (a.i % 8 < 0); /* least as it is, too */
    return a;
}

static bool
num_of(br_pv v, num *out)
{
    int64_t i;

    *out = (num){0};
    if (br_pv_int(v, &i)) {
        out->i = i;
    } else if (v.j->kind == BR_J_FLOAT) {
        out->kind = N_FLOAT;
        out->f = v.j->f;
    } else if (v.j->kind == BR_J_BIGINT) {
        out->kind = N_BIG;
        out->big = strtold(v.j->s, NULL);
    } else {
        return false;
    }
    return true;
}

static bool
weight_bytes(br_cm *m)
{
    const br_mega_prog *p = m->k->p;
    num sum = {0}, n, d;
    bool ok = true;
    double mb;

    for (uint32_t b = 0; b < p->n_buffers; b++) {
        const br_mega_buffer *buf = &p->buffers[b];

        if (buf->kind != BR_MBK_WEIGHT)
            continue;
        n = (num){.i = 1};
        for (uint32_t i = 0; i < buf->rank; i++) {
            if (!num_of(br_pv_of(p, BR_MF_BUF_SHAPE, b, i, buf->shape[i]), &d))
                return br_cm_raise(m, "a dimension of a weight is no number");
            n = num_op(n, d, '*', &ok);
        }
        n = num_op(n, (num){.i = br_mega_dtype_bits(buf->dtype)}, '*', &ok);
        n = num_op(n, (num){.i = 7}, '+', &ok);
        sum = num_op(sum, num_eighth(n), '+', &ok);
    }
    mb = num_f(sum, &ok) / 1e6;
    if (!ok)
        return br_cm_raise(m, "the weights are too large for a float");
    m->k->r->weight_mb = br_f64_round(mb, 2);
    return true;
}

/* ---- the order of things ------------------------------------------------ */

static bool
sections_1_2(br_cm *m)
{
    const br_mega_prog *p = m->k->p;
    uint32_t max = 1, *np;

    for (uint32_t t = 0; t < p->n_tasks; t++) {
        if (!br_chk_task(m->k, t))
            return br_cm_raise(m, "a buffer id is no place in the list");
        max = BR_MAX(max, p->tasks[t].n_waits);
    }
    np = br_chk_get(m->k, max, 4);
    if (!np)
        return no_memory(m);
    for (uint32_t t = 0; t < p->n_tasks; t++) {
        for (uint32_t i = 0; i < p->tasks[t].n_waits; i++)
            np[i] = m->np[m->wait[m->wait_off[t] + i]];
        br_chk_task_waits(m->k, t, np);
    }
    return true;
}

static bool
section_8(br_cm *m, const br_cm_users *writers)
{
    const br_mega_prog *p = m->k->p;
    uint8_t *produced = br_chk_zero(m->k, p->n_buffers, 1);

    if (!produced)
        return no_memory(m);
    for (uint32_t b = 0; b < p->n_buffers; b++)
        produced[b] =
            writers->off[m->buf_cls[b]] != writers->off[m->buf_cls[b] + 1];
    br_chk_outputs(m->k, produced);
    if (p->target && p->meta->kind != BR_J_OBJ)
        return br_cm_raise(m, "meta is no object");
    if (p->target)
        br_chk_gpu_label(m->k);
    return weight_bytes(m);
}

static bool
judge(br_cm *m)
{
    const br_mega_prog *p = m->k->p;
    br_cm_users writers, users;
    br_cm_anc anc = {0};

    if (!read_program(m) || !read_ids(m) || !sections_1_2(m) ||
        !read_edges(m) || !br_cm_writers(m, &writers) ||
        !br_cm_all_users(m, &users))
        return false;
    for (uint32_t t = 0; t < p->n_tasks; t++)
        m->k->r->sm_assigned |= !br_pv_is_null(br_pv_sm(p, t));
    m->k->r->acyclic = m->topo || p->n_tasks == 0;
    if (!m->k->r->acyclic && !describe_cycle(m))
        return false;
    if (m->k->r->acyclic && m->float_ids && p->n_tasks <= BR_CM_MAX_PROOF_TASKS)
        return br_cm_raise(m, "a task id is no place in the list");
    if (m->k->r->acyclic && p->n_tasks > BR_CM_MAX_PROOF_TASKS)
        br_chk_warn(m->k,
                    "transitive RAW-provenance and write-after-write (WAW) "
                    "race checks SKIPPED: %zu tasks > %d limit. "
                    "Deadlock-freedom is still proven (per-SM queue ordering "
                    "verified above); only the cross-task data-hazard checks "
                    "are capped at this task count.",
                    p->n_tasks, BR_CM_MAX_PROOF_TASKS);
    else if (m->k->r->acyclic && !br_cm_race(m, &writers, &anc))
        return false;
    if (!br_cm_onchip(m, &users) ||
        (m->k->r->sm_assigned && !br_cm_queues(m)) ||
        (anc.bits && p->has_pages && !br_cm_pages(m, &writers, &users, &anc)))
        return false;
    return section_8(m, &writers);
}

static void
forget(br_mega_report *r)
{
    for (size_t i = 0; i < r->errors.n; i++)
        br_free(r->errors.at[i]);
    for (size_t i = 0; i < r->warnings.n; i++)
        br_free(r->warnings.at[i]);
    r->errors.n = r->warnings.n = 0;
    r->more_errors = 0;
}

br_code
br_chk_compat(br_chk *k)
{
    br_cm m = {.k = k};
    const br_mega_prog *p = k->p;

    for (size_t i = 0; i < p->n_tasks; i++)
        if (p->tasks[i].op >= BR_MOP_STEP) {
            br_chk_error(k,
                         "the reference fails on this program: tasks[%zu]: "
                         "'%s' is no opcode of version 0.2",
                         i, br_mega_op_name(p->tasks[i].op));
            return BR_OK;
        }
    for (size_t i = 0; i < p->n_buffers; i++)
        if (p->buffers[i].dtype >= BR_MDT_COUNT) {
            br_chk_error(k,
                         "the reference fails on this program: buffers[%zu]: "
                         "'%s' is no dtype of version 0.2",
                         i, br_mega_dtype_name(p->buffers[i].dtype));
            return BR_OK;
        }
    k->compat = &m;
    if (!judge(&m) && !k->oom) {
        forget(k->r);
        br_str_clear(&k->text);
        br_chk_error(k, "the reference fails on this program: %s",
                     m.why ? m.why : "unknown reason");
    }
    return BR_OK;
}
