/* builder.c - see builder.h. Arrays double inside the arena, so building n
 * tasks wastes at most n tasks' worth of it: 1.4 MB for the 12,738 tasks of an
 * 8B model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/builder.h"

#include <string.h>

/* 4 GiB bounds what a graph or a shape from outside can make us take; the
 * largest program allowed (4 Mi tasks) needs some 2.5 GiB. */
#define ARENA_LIMIT ((size_t)4 << 30)

br_code
br_mega_builder_open(br_mega_builder *b, br_status *st)
{
    *b = (br_mega_builder){.st = st, .prog = br_mega_new(ARENA_LIMIT)};
    if (!b->prog)
        b->code = br_fail(st, BR_E_OOM, "program: out of memory");
    return b->code;
}

void
br_mega_builder_close(br_mega_builder *b)
{
    br_mega_free(b->prog);
    b->prog = NULL;
}

br_mega_prog *
br_mega_builder_take(br_mega_builder *b)
{
    br_mega_prog *p = b->prog;

    br_assert(b->code == BR_OK && "only a whole program is taken");
    b->prog = NULL;
    return p;
}

static void
out_of_memory(br_mega_builder *b)
{
    if (b->code == BR_OK)
        b->code = br_fail(b->st, BR_E_OOM, "program: out of memory");
}

/* An array that grows in the arena: n of *cap elements of a size. */
typedef struct growing {
    void **at;
    size_t n, *cap, elem, max;
    const char *what;
} growing;

/* Room for one more. */
static bool
room(br_mega_builder *b, const growing *g)
{
    void *p;
    size_t want;

    if (b->code != BR_OK)
        return false;
    if (g->n < *g->cap)
        return true;
    if (g->n >= g->max) {
        b->code = br_fail(b->st, BR_E_LIMIT, "program: more than %zu %s",
                          g->max, g->what);
        return false;
    }
    want = BR_MIN(BR_MAX(*g->cap * 2, (size_t)64), g->max);
    p = br_arena_get(&b->prog->arena, want * g->elem);
    if (!p) {
        out_of_memory(b);
        return false;
    }
    if (g->n)
        memcpy(p, *g->at, g->n * g->elem);
    *g->at = p;
    *g->cap = want;
    return true;
}

/* A copy of n elements; NULL only after a failure. */
static const void *
dup(br_mega_builder *b, const void *p, size_t n, size_t elem)
{
    const void *q;

    if (n == 0)
        return "";
    q = br_arena_dup(&b->prog->arena, p, n * elem);
    if (!q)
        out_of_memory(b);
    return q;
}

static const char *
dup_str(br_mega_builder *b, const char *s, size_t n)
{
    const char *q = br_arena_str(&b->prog->arena, n ? s : "", n);

    if (!q)
        out_of_memory(b);
    return q;
}

int64_t
br_mega_add_buffer(br_mega_builder *b, const br_mega_buffer *buf)
{
    br_mega_prog *p = b->prog;
    growing g = {(void *)&p->buffers, p->n_buffers,        &b->cap_buffers,
                 sizeof *p->buffers,  BR_MEGA_MAX_BUFFERS, "buffers"};
    br_mega_buffer *d;

    if (!room(b, &g))
        return 0;
    d = &p->buffers[p->n_buffers];
    *d = *buf;
    d->id = (int64_t)p->n_buffers;
    d->name = dup_str(b, buf->name, buf->name_n);
    if (buf->source)
        d->source = dup_str(b, buf->source, buf->source_n);
    d->shape = dup(b, buf->shape, buf->rank, sizeof *buf->shape);
    if (b->code != BR_OK)
        return 0;
    p->n_buffers++;
    return d->id;
}

int64_t
br_mega_add_counter(br_mega_builder *b, br_text note)
{
    br_mega_prog *p = b->prog;
    growing g = {(void *)&p->counters, p->n_counters,     &b->cap_counters,
                 sizeof *p->counters,  BR_MEGA_MAX_TASKS, "counters"};
    br_mega_counter *d;

    if (!room(b, &g))
        return 0;
    d = &p->counters[p->n_counters];
    *d = (br_mega_counter){.id = (int64_t)p->n_counters,
                           .note = dup_str(b, note.p, note.n),
                           .note_n = (uint32_t)note.n};
    if (b->code != BR_OK)
        return 0;
    p->n_counters++;
    return d->id;
}

int64_t
br_mega_add_task(br_mega_builder *b, const br_mega_task *task)
{
    br_mega_prog *p = b->prog;
    growing g = {(void *)&p->tasks, p->n_tasks,        &b->cap_tasks,
                 sizeof *p->tasks,  BR_MEGA_MAX_TASKS, "tasks"};
    br_mega_task *d;

    if (!room(b, &g))
        return 0;
    br_assert(task->params && "a task has params, made by br_mega_params");
    d = &p->tasks[p->n_tasks];
    *d = *task;
    d->id = (int64_t)p->n_tasks;
    d->in = dup(b, task->in, task->n_in, sizeof *task->in);
    d->out = dup(b, task->out, task->n_out, sizeof *task->out);
    d->waits = dup(b, task->waits, task->n_waits, sizeof *task->waits);
    d->label = dup_str(b, task->label, task->label_n);
    if (b->code != BR_OK)
        return 0;
    d->param_mask = 0;
    for (const br_json *m = d->params->child; m; m = m->next)
        if (m->tag)
            d->param_mask |= (uint32_t)1 << (m->tag - 1);
    p->n_tasks++;
    return d->id;
}

br_json *
br_mega_params(br_mega_builder *b, const br_mega_pv *v, size_t n)
{
    br_json *o;

    if (b->code != BR_OK)
        return NULL;
    o = br_arena_new(&b->prog->arena, br_json, n + 1);
    if (!o) {
        out_of_memory(b);
        return NULL;
    }
    o->kind = BR_J_OBJ;
    o->n = (uint32_t)n;
    o->child = n ? o + 1 : NULL;
    o->last = n ? o + n : NULL;
    for (size_t i = 0; i < n; i++) {
        br_json *m = o + 1 + i;

        m->kind = v[i].real ? BR_J_FLOAT : BR_J_INT;
        if (v[i].real)
            m->f = v[i].f;
        else
            m->i = v[i].i;
        m->key = br_mega_param_name((int)v[i].p);
        m->key_n = (uint32_t)strlen(m->key);
        m->tag = (uint8_t)(v[i].p + 1);
        m->next = i + 1 < n ? m + 1 : NULL;
    }
    return o;
}

void
br_mega_params_put(br_mega_builder *b, br_json *params, br_mega_param p,
                   br_json *v)
{
    if (b->code != BR_OK)
        return;
    if (!v ||
        !br_json_put(&b->prog->arena, params, br_mega_param_name((int)p), v)) {
        out_of_memory(b);
        return;
    }
    v->tag = (uint8_t)(p + 1);
}
