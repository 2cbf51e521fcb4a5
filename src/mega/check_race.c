/* check_race.c - every read finds what was written before it, and no write
 * meets another access that it is not ordered with.
 *
 *   for each read of a simple buffer:   does the task wait for the counter of
 *                                       its writers?      (almost always)
 *          no |
 *             v
 *   check_hb.c: is that counter complete before it all the same?
 *
 *   for each other buffer:              check_region.c
 *
 * Order means dependency edges alone. The order of a worker's queue is no
 * proof: the same program may run as packets, or with another placement.
 *
 * The tiles of a simple buffer are disjoint and cover it, on one counter:
 * whoever waits for that waits for all. So one question per reader proves
 * everything about it, and nothing is left to ask between the writers.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "mega/check_sound.h"

static bool
settle_kinds(br_snd *s)
{
    for (uint32_t b = 0; b < s->nb; b++) {
        br_wsum *w = &s->ws[b];

        if (w->n && !w->complex && s->val[b].kind != BR_MBK_KV_CACHE)
            w->complex = !br_snd_covered(s, b);
    }
    return !s->k->oom;
}

bool
br_snd_same_waits(const br_snd *s, uint32_t a, uint32_t b)
{
    uint32_t n = s->wait_off[a + 1] - s->wait_off[a];

    return n == s->wait_off[b + 1] - s->wait_off[b] &&
           memcmp(s->wait + s->wait_off[a], s->wait + s->wait_off[b],
                  n * sizeof *s->wait) == 0;
}

static bool
waits_for(const br_snd *s, uint32_t t, uint32_t c)
{
    for (uint32_t i = s->wait_off[t]; i < s->wait_off[t + 1]; i++)
        if (s->wait[i] == c)
            return true;
    return false;
}

/* The reads that are not settled by the reader's own waits. A cache with one
 * writer is simple until a reader does not wait for it: that one may read
 * other rows. */
static bool
quick_reads(br_snd *s)
{
    for (uint32_t t = 0; t < s->n; t++)
        for (uint32_t i = s->in_off[t]; i < s->in_off[t + 1]; i++) {
            uint32_t b = s->in[i];
            br_wsum *w = &s->ws[b];

            if (w->several && !w->complex)
                w->complex = !br_snd_after_tiles(s, t, b);
            if (w->complex || w->several ||
                (w->n && waits_for(s, t, w->counter)))
                continue;
            if (s->val[b].kind == BR_MBK_KV_CACHE) {
                w->complex |= w->n != 0;
                continue;
            }
            if (!br_vec_push(&s->reads, ((br_pair){w->first, t, b, 0})))
                return br_snd_no_memory(s);
        }
    return true;
}

static bool
start_hb(br_snd *s)
{
    br_hb *h = &s->hb;
    uint32_t *cpos;

    h->n_tasks = s->n;
    h->n_counters = s->nc;
    h->ctr = s->ctr;
    h->wait_off = s->wait_off;
    h->wait = s->wait;
    h->cpos = s->last;
    if (s->in_list_order)
        return true;
    if (!br_snd_graph(s))
        return false;
    cpos = br_chk_get(s->k, s->nc, 4);
    if (!cpos)
        return br_snd_no_memory(s);
    memset(cpos, 0xff, s->nc * sizeof *cpos);
    for (uint32_t i = 0; i < s->n; i++)
        cpos[s->ctr[s->g.topo[i]]] = i;
    h->cpos = cpos;
    h->order = s->g.topo;
    h->rank = s->g.rank;
    return true;
}

static bool
slow_reads(br_snd *s)
{
    for (size_t i = 0; i < s->reads.n; i++) {
        br_pair *r = &s->reads.at[i];
        const br_wsum *w = &s->ws[r->buffer];
        br_unread u = {.task = r->b, .buffer = r->buffer};

        if (w->n == 0) {
            u.rect = (br_mega_rect){0, s->val[r->buffer].rows, 0,
                                    s->val[r->buffer].cols};
            if (!br_vec_push(&s->unread, u))
                return br_snd_no_memory(s);
        } else if (!br_hb_require(&s->hb, w->first, r->b, r->buffer,
                                  BR_CLASH_WR)) {
            return false;
        }
    }
    return true;
}

/* ---- the other buffers -------------------------------------------------- */

static uint32_t
task_at(const br_snd *s, uint32_t place)
{
    return s->hb.order ? s->hb.order[place] : place;
}

/* For each complex buffer the tasks that touch it, in topological order (a
 * task that reads and writes, or reads twice, comes once). */
static bool
regions(br_snd *s)
{
    uint32_t *off = br_chk_zero(s->k, (size_t)s->nb + 2, 4), *list;
    uint32_t total = 0, longest = 0;

    if (!off)
        return br_snd_no_memory(s);
    for (uint32_t t = 0; t < s->n; t++) {
        for (uint32_t i = s->in_off[t]; i < s->in_off[t + 1]; i++)
            off[s->in[i] + 2] += s->ws[s->in[i]].complex;
        for (uint32_t i = s->out_off[t]; i < s->out_off[t + 1]; i++)
            off[s->out[i] + 2] += s->ws[s->out[i]].complex;
    }
    for (uint32_t b = 0; b < s->nb; b++) {
        longest = BR_MAX(longest, off[b + 2]);
        total += off[b + 2];
        off[b + 2] += off[b + 1];
    }
    if (total == 0)
        return true;
    list = br_chk_get(s->k, total, 4);
    if (!list)
        return br_snd_no_memory(s);
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t t = task_at(s, i);

        for (uint32_t j = s->in_off[t]; j < s->in_off[t + 1]; j++)
            if (s->ws[s->in[j]].complex)
                list[off[s->in[j] + 1]++] = t;
        for (uint32_t j = s->out_off[t]; j < s->out_off[t + 1]; j++)
            if (s->ws[s->out[j]].complex)
                list[off[s->out[j] + 1]++] = t;
    }
    for (uint32_t b = 0; b < s->nb; b++) {
        uint32_t n = 0, *at = list + off[b];

        for (uint32_t i = off[b]; i < off[b + 1]; i++)
            if (n == 0 || at[n - 1] != list[i])
                at[n++] = list[i];
        if (n && !br_snd_regions(s, b, at, n))
            return false;
    }
    return true;
}

/* ---- saying so ---------------------------------------------------------- */

typedef struct finding { /* one (reader, buffer), or a pair of writers */
    uint32_t reader, buffer, writer;
    uint32_t other; /* second writer, when reader is NONE */
} finding;

static int
by_reader(const void *x, const void *y)
{
    const finding *a = x, *b = y;

    if (a->reader != b->reader)
        return a->reader < b->reader ? -1 : 1;
    if (a->buffer != b->buffer)
        return a->buffer < b->buffer ? -1 : 1;
    if (a->writer != b->writer)
        return a->writer < b->writer ? -1 : 1;
    return a->other < b->other ? -1 : a->other > b->other;
}

static bool
overlap(const br_mega_rect *a, const br_mega_rect *b)
{
    return a->r0 < b->r1 && b->r0 < a->r1 && a->c0 < b->c1 && b->c0 < a->c1;
}

/* Does what `reader` reads of the buffer meet what `writer` writes? */
static bool
meets(const br_snd *s, uint32_t reader, uint32_t writer, uint32_t buffer)
{
    const br_mega_task *r = &s->p->tasks[reader], *w = &s->p->tasks[writer];
    br_mega_rect in, out;
    uint32_t k = 0;

    while (k + 1 < w->n_out && w->out[k] != buffer)
        k++;
    if (!br_mega_footprint(s->p, w, k, true, &out))
        return false;
    for (uint32_t i = 0; i < r->n_in; i++)
        if (r->in[i] == buffer && br_mega_footprint(s->p, r, i, false, &in) &&
            overlap(&in, &out))
            return true;
    return false;
}

typedef BR_VEC(finding) findings;

/* A pair stands for its counter: every writer of the buffer on the counter of
 * the first is as unordered as the first is. At most MAX_LISTED of them. */
enum { MAX_LISTED = 64 };

static bool
expand(br_snd *s, const br_pair *p, findings *out)
{
    uint32_t n = 0;

    for (uint32_t t = 0; t < s->n && n < MAX_LISTED; t++) {
        if (!br_snd_writes(s, t, p->buffer) || s->ctr[t] != s->ctr[p->a] ||
            t == p->b || !meets(s, p->b, t, p->buffer))
            continue;
        if (!br_vec_push(out, ((finding){p->b, p->buffer, t, 0})))
            return br_snd_no_memory(s);
        n++;
    }
    if (n == 0 && !br_vec_push(out, ((finding){p->b, p->buffer, p->a, 0})))
        return br_snd_no_memory(s); /* a bad pair is never passed over */
    return true;
}

static bool
find_all(br_snd *s, findings *out)
{
    for (size_t i = 0; i < s->hb.bad.n; i++) {
        const br_pair *p = &s->hb.bad.at[i];
        finding f = {p->a, p->buffer, p->b, 0};

        if (i >= BR_CHK_MAX_SOUND)
            break;
        switch ((br_clash)p->kind) {
        case BR_CLASH_WR:
            if (!expand(s, p, out))
                return false;
            continue;
        case BR_CLASH_RW: break;
        case BR_CLASH_WW:
            f = (finding){BR_NONE, p->buffer, BR_MIN(p->a, p->b),
                          BR_MAX(p->a, p->b)};
            break;
        }
        if (!br_vec_push(out, f))
            return br_snd_no_memory(s);
    }
    if (out->n)
        qsort(out->at, out->n, sizeof *out->at, by_reader);
    return true;
}

static void
say_reader(br_snd *s, const finding *f, size_t n)
{
    br_str *out = &s->k->text;

    br_snd_put(s, f->reader,
               s->val[f->buffer].kind == BR_MBK_KV_CACHE ? " reads KV cache #"
                                                         : " reads buffer #");
    br_str_printf(out, "%u ('", f->buffer);
    br_put_buffer(out, s->p, f->buffer);
    br_str_puts(out, "') but writer task(s) [");
    for (size_t i = 0; i < n; i++)
        if (i == 0 || f[i].writer != f[i - 1].writer)
            br_str_printf(out, "%s%u", i ? ", " : "", f[i].writer);
    br_str_puts(out, "] are NOT ordered before it, data RACE");
    br_chk_take_error(s->k);
}

static void
say_writers(br_snd *s, const finding *f)
{
    br_str *out = &s->k->text;
    bool one = s->ctr[f->writer] == s->ctr[f->other];

    br_str_printf(out, "multi-writer WAW race on buffer #%u ('", f->buffer);
    br_put_buffer(out, s->p, f->buffer);
    br_str_printf(out, "'): writers %u ('", f->writer);
    br_put_label(out, s->p, f->writer);
    br_str_printf(out, "') and %u ('", f->other);
    br_put_label(out, s->p, f->other);
    br_str_puts(out, one ? "') share a counter but their tiles OVERLAP; "
                         : "') share no counter; ");
    br_str_puts(out, "neither is ordered happens-before the other, "
                     "write-after-write RACE");
    br_chk_take_error(s->k);
}

static bool
raced(const findings *all, uint32_t reader, uint32_t buffer)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->at[i].reader == reader && all->at[i].buffer == buffer)
            return true;
    return false;
}

/* Reads of what nobody has written. Where an unordered writer is known, that
 * is the better message. */
static void
say_unread(br_snd *s, const findings *all)
{
    br_str *out = &s->k->text;

    for (size_t i = 0; i < s->unread.n; i++) {
        const br_unread *u = &s->unread.at[i];

        if (u->task == BR_NONE || raced(all, u->task, u->buffer))
            continue;
        br_snd_put(s, u->task, " reads buffer #");
        br_str_printf(out, "%u ('", u->buffer);
        br_put_buffer(out, s->p, u->buffer);
        if (u->own) {
            br_str_puts(out, "') in place with no external producer (reads "
                             "its own uninitialized output?)");
            br_chk_take_warning(s->k);
            continue;
        }
        if (s->ws[u->buffer].n == 0)
            br_str_puts(out, "') that is never produced");
        else
            br_str_printf(out,
                          "') rows [%lld,%lld) columns [%lld,%lld), which no "
                          "task ordered before it has written",
                          (long long)u->rect.r0, (long long)u->rect.r1,
                          (long long)u->rect.c0, (long long)u->rect.c1);
        br_chk_take_error(s->k);
    }
    for (size_t i = 0; i < s->unread.n; i++) {
        const br_unread *u = &s->unread.at[i];

        if (u->task != BR_NONE)
            continue;
        br_str_puts(out, "IO_OUTPUT ");
        br_snd_put_buffer(s, u->buffer);
        br_str_printf(out,
                      " is written only in part: rows [%lld,%lld) columns "
                      "[%lld,%lld) have no writer",
                      (long long)u->rect.r0, (long long)u->rect.r1,
                      (long long)u->rect.c0, (long long)u->rect.c1);
        br_chk_take_error(s->k);
    }
    s->k->r->more_errors += s->more_unread;
}

static bool
say_all(br_snd *s)
{
    findings all = {0};
    bool ok = find_all(s, &all);

    for (size_t i = 0, n; ok && i < all.n; i += n) {
        const finding *f = &all.at[i];

        for (n = 1; i + n < all.n && f[n].reader == f->reader &&
                    f[n].buffer == f->buffer;
             n++)
            ;
        if (f->reader == BR_NONE)
            say_writers(s, f);
        else
            say_reader(s, f, n);
    }
    if (ok)
        say_unread(s, &all);
    s->k->r->more_errors += s->hb.more_bad;
    br_vec_fini(&all);
    return ok;
}

bool
br_snd_race(br_snd *s)
{
    return settle_kinds(s) && start_hb(s) && quick_reads(s) && slow_reads(s) &&
           regions(s) && br_hb_settle(&s->hb) &&
           ((s->hb.bad.n == 0 && s->unread.n == 0) || say_all(s));
}
