/* check_queue.c - workers: their queues can be walked, their memory suffices.
 *
 *     SM 0:  t2  t0        t0 -> t1 -> t2 by counters, and t2 stands before
 *     SM 1:  t1            t0 in the queue: nobody ever runs. Neither graph
 *                          has a cycle; together they have.
 *
 * A worker takes its tasks in list order and blocks on each until its waits
 * are met. So the program runs to its end iff dependency edges together with
 * the edges between neighbours of a queue are acyclic. Tasks without a worker
 * are in no queue: they run whenever their waits are met.
 *
 * A list in dependency order cannot have such a cycle, for queue edges go
 * forward in the list as well: then nothing is walked at all.
 *
 * Cost      O(tasks + waits), + a sort when worker numbers are wild.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "mega/check_sound.h"

/* ---- range -------------------------------------------------------------- */

static bool
target_int(const br_snd *s, br_mega_target_field f, int64_t *out)
{
    const br_json *v = s->p->target ? s->p->target[f] : NULL;

    if (!v || v->kind != BR_J_INT)
        return false;
    *out = v->i;
    return true;
}

static bool
sm_fine(const br_snd *s, uint32_t t, int64_t last)
{
    int64_t sm = s->p->tasks[t].sm;

    return sm == BR_MEGA_SM_NONE || (sm >= 0 && sm <= last);
}

static void
check_range(br_snd *s)
{
    int64_t n = INT64_MAX;
    bool known = target_int(s, BR_MT_num_sms, &n);

    for (uint32_t t = 0; t < s->n; t++) {
        if (sm_fine(s, t, known ? BR_MAX(n, 0) - 1 : INT64_MAX))
            continue;
        br_str_printf(&s->k->text, "task %u assigned to SM %lld out of range ",
                      t, (long long)s->p->tasks[t].sm);
        if (known)
            br_str_printf(&s->k->text, "[0,%lld)", (long long)n);
        else
            br_str_puts(&s->k->text, "(it is negative)");
        br_chk_take_error(s->k);
        s->broken = true;
    }
}

/* ---- queues ------------------------------------------------------------- */

typedef struct queues {
    uint32_t *prev, *next; /* neighbours of a task in its queue, or NONE */
} queues;

typedef struct placed {
    int64_t sm;
    uint32_t task;
} placed;

static int
by_worker(const void *x, const void *y)
{
    const placed *a = x, *b = y;

    if (a->sm != b->sm)
        return a->sm < b->sm ? -1 : 1;
    return a->task < b->task ? -1 : a->task > b->task;
}

static bool
build_queues(br_snd *s, queues *q)
{
    placed *all = br_chk_get(s->k, s->n, sizeof *all);
    uint32_t n = 0;

    q->prev = br_chk_get(s->k, s->n, 4);
    q->next = br_chk_get(s->k, s->n, 4);
    if (!all || !q->prev || !q->next)
        return br_snd_no_memory(s);
    memset(q->prev, 0xff, s->n * sizeof *q->prev);
    memset(q->next, 0xff, s->n * sizeof *q->next);
    for (uint32_t t = 0; t < s->n; t++)
        if (s->p->tasks[t].sm != BR_MEGA_SM_NONE)
            all[n++] = (placed){s->p->tasks[t].sm, t};
    qsort(all, n, sizeof *all, by_worker);
    for (uint32_t i = 1; i < n; i++)
        if (all[i].sm == all[i - 1].sm) {
            q->prev[all[i].task] = all[i - 1].task;
            q->next[all[i - 1].task] = all[i].task;
        }
    return true;
}

typedef struct run {
    uint32_t *pending; /* waits, and the neighbour before, that are not done */
    uint32_t *left;    /* of a counter: producers that are not done */
    uint32_t *stack;
    uint32_t done;
} run;

/* Runs what can run, in any order. */
static bool
walk(br_snd *s, const queues *q, run *w)
{
    uint32_t top = 0;

    w->pending = br_chk_get(s->k, s->n, 4);
    w->left = br_chk_get(s->k, s->nc, 4);
    w->stack = br_chk_get(s->k, s->n, 4);
    if (!w->pending || !w->left || !w->stack)
        return br_snd_no_memory(s);
    memcpy(w->left, s->np, s->nc * sizeof *w->left);
    for (uint32_t t = 0; t < s->n; t++) {
        w->pending[t] =
            s->wait_off[t + 1] - s->wait_off[t] + (q->prev[t] != BR_NONE);
        if (w->pending[t] == 0)
            w->stack[top++] = t;
    }
    while (top) {
        uint32_t t = w->stack[--top], c = s->ctr[t];

        w->done++;
        if (q->next[t] != BR_NONE && --w->pending[q->next[t]] == 0)
            w->stack[top++] = q->next[t];
        if (--w->left[c] != 0)
            continue;
        for (uint32_t i = s->g.wait_off[c]; i < s->g.wait_off[c + 1]; i++)
            if (--w->pending[s->g.waiter[i]] == 0)
                w->stack[top++] = s->g.waiter[i];
    }
    return true;
}

/* A direct contradiction has a text of the reference: producer and consumer
 * in one queue, the wrong way round. True when some were found. */
static bool
say_direct(br_snd *s)
{
    bool found = false;

    for (uint32_t a = 0; a < s->n; a++) {
        uint32_t c = s->ctr[a];

        if (s->p->tasks[a].sm == BR_MEGA_SM_NONE)
            continue;
        for (uint32_t i = s->g.wait_off[c]; i < s->g.wait_off[c + 1]; i++) {
            uint32_t b = s->g.waiter[i];

            if (b >= a)
                break; /* ascending */
            if (s->p->tasks[b].sm != s->p->tasks[a].sm)
                continue;
            br_chk_error(s->k,
                         "SM %lld queue order violates dependency %u->%u "
                         "(producer must precede consumer in the same SM's "
                         "serial queue)",
                         (long long)s->p->tasks[a].sm, a, b);
            found = true;
            if (br_chk_full(s->k))
                return true;
        }
    }
    return found;
}

/* Somebody whom the stuck task t waits for, and who is stuck as well. *c: the
 * counter between, or NONE when it is the queue. */
static uint32_t
culprit(const br_snd *s, const queues *q, const run *w, uint32_t t, uint32_t *c)
{
    for (uint32_t i = s->wait_off[t]; i < s->wait_off[t + 1]; i++) {
        *c = s->wait[i];
        if (w->left[*c] == 0)
            continue;
        for (uint32_t j = s->g.prod_off[*c]; j < s->g.prod_off[*c + 1]; j++)
            if (w->pending[s->g.prod[j]] != 0)
                return s->g.prod[j];
    }
    *c = BR_NONE;
    return q->prev[t];
}

/* Walks from a stuck task to its culprit and so on until a task comes twice:
 * that part of the way, read backwards, is the cycle. */
static bool
say_cycle(br_snd *s, const queues *q, const run *w)
{
    uint32_t *way = br_chk_get(s->k, (size_t)s->n + 1, 4), t = 0, n = 0, from;
    uint32_t *via = br_chk_get(s->k, (size_t)s->n + 1, 4);
    uint32_t *seen = br_chk_get(s->k, s->n, 4);
    br_str *out = &s->k->text;

    if (!way || !via || !seen)
        return br_snd_no_memory(s);
    memset(seen, 0xff, s->n * sizeof *seen);
    while (w->pending[t] == 0)
        t++;
    for (; seen[t] == BR_NONE; n++) {
        seen[t] = n;
        way[n] = t;
        t = culprit(s, q, w, t, &via[n]);
    }
    from = seen[t];
    way[n] = t;
    br_str_puts(out, "dependencies and SM queues together have a CYCLE, "
                     "deadlock. cycle: ");
    for (uint32_t i = n; i > from; i--) {
        br_str_printf(out, "%u:", way[i]);
        br_put_node(out, s->p, way[i]);
        if (via[i - 1] == BR_NONE)
            br_str_printf(out, " -[queue of SM %lld]-> ",
                          (long long)s->p->tasks[way[i]].sm);
        else
            br_str_printf(out, " -[counter %u]-> ", via[i - 1]);
    }
    br_str_printf(out, "%u:", way[from]);
    br_put_node(out, s->p, way[from]);
    br_chk_take_error(s->k);
    return true;
}

bool
br_snd_queues(br_snd *s)
{
    queues q;
    run w = {0};

    if (!s->any_sm)
        return true;
    check_range(s);
    if (s->in_list_order || s->broken)
        return true;
    if (!br_snd_graph(s) || !build_queues(s, &q) || !walk(s, &q, &w))
        return false;
    if (w.done == s->n)
        return true;
    s->broken = true;
    return say_direct(s) || say_cycle(s, &q, &w);
}

/* ---- on-chip memory ----------------------------------------------------- */

/* Counters order tasks, they carry no data between workers: what lies on-chip
 * (a page, or a buffer without one) has users on one worker only, and all that
 * one worker holds fits into it. */
typedef struct unit {
    int64_t bytes, sm; /* sm: of its users so far, or NONE */
    uint32_t buffer;   /* one of its buffers, for messages */
    uint8_t space;
    bool used, apart, unplaced; /* some use; two workers; one without */
} unit;

static bool
onchip(int space)
{
    return space == BR_MSP_SMEM || space == BR_MSP_REGISTER;
}

/* A buffer that is on-chip by its own word stays so on a page elsewhere. */
static uint32_t
unit_of(const br_snd *s, uint32_t b)
{
    uint32_t page = s->page_of ? s->page_of[b] : BR_NONE;

    return page != BR_NONE && (onchip(s->p->pages[page].space) ||
                               !onchip(s->p->buffers[b].space))
               ? s->nb + page
               : b;
}

static unit *
make_units(br_snd *s)
{
    uint32_t n_pages = s->page_of ? (uint32_t)s->p->n_pages : 0;
    unit *u = br_chk_zero(s->k, (size_t)s->nb + n_pages, sizeof *u);

    if (!u)
        return NULL;
    for (uint32_t b = 0; b < s->nb; b++)
        u[b] = (unit){.bytes = br_mega_nbytes(&s->p->buffers[b]),
                      .sm = BR_MEGA_SM_NONE,
                      .buffer = b,
                      .space = s->p->buffers[b].space};
    for (uint32_t i = 0; i < n_pages; i++)
        u[s->nb + i] = (unit){.bytes = s->p->pages[i].nbytes,
                              .sm = BR_MEGA_SM_NONE,
                              .buffer = BR_NONE,
                              .space = s->p->pages[i].space};
    return u;
}

static void
use(br_snd *s, unit *units, int64_t id, int64_t sm)
{
    unit *u;

    if ((uint64_t)id >= s->nb)
        return;
    u = &units[unit_of(s, (uint32_t)id)];
    u->used = true;
    u->buffer = (uint32_t)id;
    if (sm == BR_MEGA_SM_NONE)
        u->unplaced = true;
    else if (u->sm == BR_MEGA_SM_NONE)
        u->sm = sm;
    else
        u->apart |= u->sm != sm;
}

static int
ascending(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

    return a < b ? -1 : a > b;
}

static bool
touches(const br_snd *s, const br_mega_task *t, uint32_t at)
{
    for (uint32_t i = 0; i < t->n_in; i++)
        if ((uint64_t)t->in[i] < s->nb && unit_of(s, (uint32_t)t->in[i]) == at)
            return true;
    for (uint32_t i = 0; i < t->n_out; i++)
        if ((uint64_t)t->out[i] < s->nb &&
            unit_of(s, (uint32_t)t->out[i]) == at)
            return true;
    return false;
}

static void
put_unit(br_snd *s, uint32_t at)
{
    if (at < s->nb) {
        br_str_puts(&s->k->text, "on-chip buffer '");
        br_put_buffer(&s->k->text, s->p, at);
        br_str_printf(&s->k->text, "'(#%u", at);
    } else {
        br_str_printf(&s->k->text, "on-chip page %u (%s", at - s->nb,
                      br_mega_space_name(s->p->pages[at - s->nb].space));
    }
}

/* sms: room for a number for each task. */
static void
say_apart(br_snd *s, uint32_t at, const unit *u, int64_t *sms)
{
    br_str *out = &s->k->text;
    uint32_t n = 0;

    if (br_chk_full(s->k)) {
        s->k->r->more_errors++; /* it takes a walk over all tasks to say */
        return;
    }
    for (uint32_t t = 0; t < s->n; t++)
        if (s->p->tasks[t].sm != BR_MEGA_SM_NONE &&
            touches(s, &s->p->tasks[t], at))
            sms[n++] = s->p->tasks[t].sm;
    qsort(sms, n, sizeof *sms, ascending);
    put_unit(s, at);
    br_str_printf(out, "%s%s) is used across SMs [", at < s->nb ? ", " : "",
                  at < s->nb ? br_mega_space_name(u->space) : "");
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || sms[i] != sms[i - 1])
            br_str_printf(out, "%s%lld", i ? ", " : "", (long long)sms[i]);
    br_str_puts(out, "], counters give ordering, not cross-SM data; promote to "
                     "GLOBAL_SCRATCH/HBM or co-locate on one SM");
    br_chk_take_error(s->k);
}

/* What outlives a pass, or is there before it, cannot lie where nothing
 * does. */
static void
say_kept(br_snd *s, uint32_t b)
{
    br_snd_put_buffer(s, b);
    br_str_printf(&s->k->text,
                  " is %s and cannot lie in %s: on-chip memory lasts for one "
                  "pass",
                  br_mega_kind_name(s->val[b].kind),
                  br_mega_space_name(s->p->buffers[b].space));
    br_chk_take_error(s->k);
    s->broken = true;
}

typedef struct load { /* bytes that one worker holds in one space */
    int64_t sm, bytes;
    uint8_t space;
} load;

static int
by_load(const void *x, const void *y)
{
    const load *a = x, *b = y;

    if (a->sm != b->sm)
        return a->sm < b->sm ? -1 : 1;
    return a->space < b->space ? -1 : a->space > b->space;
}

/* Bytes of a worker; false: not known. */
static bool
capacity(const br_snd *s, int space, int64_t *out)
{
    int64_t v;

    if (space == BR_MSP_SMEM)
        return target_int(s, BR_MT_smem_bytes_per_block_optin, out);
    if (!target_int(s, BR_MT_regs_per_sm, &v) || v < 0 || v > INT64_MAX / 4)
        return false;
    *out = v * 4;
    return true;
}

static void
say_full(br_snd *s, const load *l, int64_t bytes, int64_t max)
{
    if (l->sm == BR_MEGA_SM_NONE)
        br_str_printf(&s->k->text, "a single %s", br_mega_space_name(l->space));
    else
        br_str_printf(&s->k->text, "SM %lld holds %s", (long long)l->sm,
                      br_mega_space_name(l->space));
    br_str_printf(&s->k->text, " of %lld bytes, the target has %lld per worker",
                  (long long)bytes, (long long)max);
    br_chk_take_error(s->k);
}

/* Sums by worker; what has no worker yet must fit alone. */
static bool
check_load(br_snd *s, const unit *units, uint32_t n_units)
{
    load *all = br_chk_get(s->k, n_units, sizeof *all);
    uint32_t n = 0;
    int64_t max, sum;

    if (!all)
        return br_snd_no_memory(s);
    for (uint32_t i = 0; i < n_units; i++)
        if (units[i].used && onchip(units[i].space))
            all[n++] = (load){units[i].sm, units[i].bytes, units[i].space};
    qsort(all, n, sizeof *all, by_load);
    for (uint32_t i = 0, j; i < n; i = j) {
        bool alone = all[i].sm == BR_MEGA_SM_NONE;

        sum = all[i].bytes;
        for (j = i + 1; !alone && j < n && by_load(&all[i], &all[j]) == 0; j++)
            if (__builtin_add_overflow(sum, all[j].bytes, &sum))
                sum = INT64_MAX;
        if (!capacity(s, all[i].space, &max)) {
            br_chk_warn(s->k, "on-chip memory is used but the target does not "
                              "say how much there is");
            return true;
        }
        if (sum > max)
            say_full(s, &all[i], sum, max);
    }
    return true;
}

bool
br_snd_onchip(br_snd *s)
{
    uint32_t n_units = s->nb + (s->page_of ? (uint32_t)s->p->n_pages : 0);
    int64_t *sms;
    unit *units;

    if (!s->any_onchip)
        return true;
    units = make_units(s);
    sms = br_chk_get(s->k, s->n, sizeof *sms);
    if (!units || !sms)
        return br_snd_no_memory(s);
    for (uint32_t t = 0; t < s->n; t++) {
        const br_mega_task *task = &s->p->tasks[t];

        for (uint32_t i = 0; i < task->n_in; i++)
            use(s, units, task->in[i], task->sm);
        for (uint32_t i = 0; i < task->n_out; i++)
            use(s, units, task->out[i], task->sm);
    }
    for (uint32_t i = 0; i < n_units; i++) {
        if (!onchip(units[i].space) || !units[i].used)
            continue;
        if (i < s->nb && s->val[i].kind != BR_MBK_ACTIVATION)
            say_kept(s, i);
        if (units[i].apart)
            say_apart(s, i, &units[i], sms);
        if (units[i].apart || !units[i].unplaced)
            continue;
        put_unit(s, i);
        br_str_puts(&s->k->text, ") requires same-SM placement (unverified "
                                 "until sm_assignment runs)");
        br_chk_take_warning(s->k);
    }
    return check_load(s, units, n_units);
}
