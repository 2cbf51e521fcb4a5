/* interp_run.c - counters, and the order of tasks.
 *
 * The reference sweeps over the task list until nothing moves. The same order
 * comes out of one heap without sweeping: a task that becomes ready when task
 * i fires belongs to this sweep when it lies behind i in the list, else to the
 * next, so its key is (sweep, index). The other orders differ only in the key.
 * O((tasks + waits) log tasks), whatever the list looks like.
 *
 *    fire task --> counter += 1 --> waits sorted by threshold: those now met
 *        ^                             |  a task whose last wait is met
 *        `------- heap pop <-----------'
 *
 * Invariant: counters only grow within a run, so a wait once met stays met.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/interp_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- counters --------------------------------------------------------- */

static int
by_counter(const void *pa, const void *pb)
{
    const br_vm_wait *a = pa, *b = pb;

    if (a->counter != b->counter)
        return a->counter < b->counter ? -1 : 1;
    if (a->threshold != b->threshold)
        return a->threshold < b->threshold ? -1 : 1;
    return (a->task > b->task) - (a->task < b->task);
}

static br_code
check_task(const br_mega_prog *p, size_t i, br_status *st)
{
    const br_mega_task *t = &p->tasks[i];

    if (t->id != (int64_t)i)
        return br_fail(st, BR_E_FORMAT,
                       "tasks[%zu] has id %lld: ids are not "
                       "0, 1, 2 ..",
                       i, (long long)t->id);
    if (t->out_counter < 0 || (uint64_t)t->out_counter >= p->n_counters)
        return br_fail(st, BR_E_FORMAT, "task %zu: no counter %lld", i,
                       (long long)t->out_counter);
    if (t->n_in > BR_MEGA_MAX_INPUTS || t->n_out > BR_MEGA_MAX_OUTPUTS)
        return br_fail(st, BR_E_FORMAT,
                       "task %zu: %u inputs and %u outputs, "
                       "at most %d and %d",
                       i, t->n_in, t->n_out, BR_MEGA_MAX_INPUTS,
                       BR_MEGA_MAX_OUTPUTS);
    for (uint32_t k = 0; k < t->n_in + t->n_out; k++) {
        int64_t b = k < t->n_in ? t->in[k] : t->out[k - t->n_in];

        if (b < 0 || (uint64_t)b >= p->n_buffers)
            return br_fail(st, BR_E_FORMAT, "task %zu: no buffer %lld", i,
                           (long long)b);
    }
    for (uint32_t k = 0; k < t->n_waits; k++)
        if (t->waits[k].counter < 0 ||
            (uint64_t)t->waits[k].counter >= p->n_counters)
            return br_fail(st, BR_E_FORMAT, "task %zu: no counter %lld", i,
                           (long long)t->waits[k].counter);
    return BR_OK;
}

br_code
br_vm_make_waits(br_mega_vm *vm, br_status *st)
{
    const br_mega_prog *p = vm->prog;
    size_t n = 0;

    for (size_t i = 0; i < p->n_counters; i++)
        if (p->counters[i].id != (int64_t)i || p->counters[i].init < 0 ||
            p->counters[i].init > UINT32_MAX)
            return br_fail(st, BR_E_FORMAT, "counters[%zu]: id %lld, init %lld",
                           i, (long long)p->counters[i].id,
                           (long long)p->counters[i].init);
    for (size_t i = 0; i < p->n_tasks; i++) {
        BR_TRY(check_task(p, i, st));
        n += p->tasks[i].n_waits;
    }
    if (n >= UINT32_MAX)
        return br_fail(st, BR_E_LIMIT, "%zu waits, at most 2^32", n);
    BR_TRY(br_vm_take(vm, n, sizeof *vm->waits, &vm->waits, st));
    for (size_t i = 0; i < p->n_tasks; i++)
        for (uint32_t k = 0; k < p->tasks[i].n_waits; k++) {
            const br_mega_wait *w = &p->tasks[i].waits[k];

            vm->waits[vm->n_waits++] =
                (br_vm_wait){w->threshold, (uint32_t)w->counter, (uint32_t)i};
        }
    qsort(vm->waits, vm->n_waits, sizeof *vm->waits, by_counter);
    return BR_OK;
}

/* ---- the heap --------------------------------------------------------- */

/* splitmix64: a counter in, a random word out. */
static uint64_t
mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

/* Least first; the low half is the task. current: the task that fired, or
 * UINT32_MAX before the first. */
static uint64_t
key_of(const br_mega_vm *vm, uint32_t task)
{
    uint64_t hi = 0;

    switch (vm->kind) {
    case BR_MEGA_ORDER_SWEEP:
        hi = vm->sweep + (vm->current != UINT32_MAX && task < vm->current);
        break;
    case BR_MEGA_ORDER_REVERSE: hi = UINT32_MAX - task; break;
    case BR_MEGA_ORDER_RANDOM: hi = mix(mix(vm->seed) ^ task) >> 32; break;
    }
    return hi << 32 | task;
}

static void
push(br_mega_vm *vm, uint32_t task)
{
    uint64_t key = key_of(vm, task);
    size_t i = vm->n_heap++;

    for (; i && vm->heap[(i - 1) / 2] > key; i = (i - 1) / 2)
        vm->heap[i] = vm->heap[(i - 1) / 2];
    vm->heap[i] = key;
}

static uint64_t
pop(br_mega_vm *vm)
{
    uint64_t top = vm->heap[0], last = vm->heap[--vm->n_heap];
    size_t i = 0, kid;

    while ((kid = 2 * i + 1) < vm->n_heap) {
        if (kid + 1 < vm->n_heap && vm->heap[kid + 1] < vm->heap[kid])
            kid++;
        if (vm->heap[kid] >= last)
            break;
        vm->heap[i] = vm->heap[kid];
        i = kid;
    }
    vm->heap[i] = last;
    return top;
}

/* ---- a run ------------------------------------------------------------ */

/* The waits on counter c that its value now meets. */
static void
meet(br_mega_vm *vm, br_vm_counter *c)
{
    while (c->next < c->end && vm->waits[c->next].threshold <= c->value) {
        uint32_t task = vm->waits[c->next++].task;

        if (--vm->open[task] == 0)
            push(vm, task);
    }
}

static void
start(br_mega_vm *vm)
{
    const br_mega_prog *p = vm->prog;
    size_t at = 0;

    vm->n_heap = vm->n_order = vm->sweeps = 0;
    vm->sweep = 0;
    vm->current = UINT32_MAX;
    vm->work = 0;
    for (size_t i = 0; i < p->n_tasks; i++) {
        vm->open[i] = p->tasks[i].n_waits;
        if (vm->open[i] == 0)
            push(vm, (uint32_t)i);
    }
    for (size_t i = 0; i < p->n_counters; i++) {
        br_vm_counter *c = &vm->counters[i];

        c->value = p->counters[i].init;
        c->next = (uint32_t)at;
        while (at < vm->n_waits && vm->waits[at].counter == i)
            at++;
        c->end = (uint32_t)at;
        meet(vm, c);
    }
}

static br_code
prepare(br_mega_vm *vm, br_status *st)
{
    for (size_t i = 0; i < vm->prog->n_buffers; i++) {
        br_vmt *t = &vm->tensors[i];

        t->clobbered_by = -1;
        if (br_mega_kind_readonly(t->kind) && !t->bound)
            return br_fail(st, BR_E_NOT_FOUND,
                           "buffer #%zu ('%.80s'), %s, is not bound", i,
                           t->name, br_mega_kind_name(t->kind));
        if (br_mega_kind_readonly(t->kind) || t->kind == BR_MBK_KV_CACHE)
            br_vm_mark(t, 0, t->numel);
        else
            br_vm_unmark(t, 0, t->numel);
    }
    return BR_OK;
}

static br_code
fire(br_mega_vm *vm, uint32_t index, br_status *st)
{
    const br_mega_task *t = &vm->prog->tasks[index];
    br_vm_call c = {.task = t,
                    .params = t->params,
                    .op = t->op,
                    .step = -1,
                    .tmp = &vm->tmp,
                    .st = st,
                    .n_in = t->n_in,
                    .n_out = t->n_out,
                    .work = &vm->work,
                    .max_work = vm->max_work};

    for (uint32_t k = 0; k < t->n_in; k++)
        c.in[k] = &vm->tensors[t->in[k]];
    for (uint32_t k = 0; k < t->n_out; k++)
        c.out[k] = &vm->tensors[t->out[k]];
    BR_TRY(br_vm_work(&c, 1));
    br_arena_reset(&vm->tmp);
    return br_vm_dispatch(&c);
}

br_code
br_vm_dispatch(br_vm_call *c)
{
    static br_code (*const run[BR_MOP_LIMIT])(br_vm_call *) = {
#define X(name, code, lo, hi, out, req, doc) [code] = br_vmop_##name,
#include "mega/minst.def"
#undef X
    };
    const br_mega_opinfo *info = br_mega_opinfo_of(c->op);
    uint32_t max =
        info->max_in < 0 ? BR_MEGA_MAX_INPUTS : (uint32_t)info->max_in;

    br_check((unsigned)c->op < BR_MOP_LIMIT && run[c->op] && "a known opcode");
    if (c->n_in < (uint32_t)info->min_in || c->n_in > max ||
        c->n_out != (uint32_t)info->n_out)
        return br_vm_fail(c, BR_E_FORMAT,
                          "%u inputs and %u outputs, expected %d..%u and %d",
                          c->n_in, c->n_out, info->min_in, max, info->n_out);
    return run[c->op](c);
}

/* Everybody who still waits, and for what. */
static br_code
stuck(const br_mega_vm *vm, br_status *st)
{
    const br_mega_prog *p = vm->prog;
    br_str s = {0};
    size_t shown = 0, left = p->n_tasks - vm->n_order;

    for (size_t i = 0; i < p->n_tasks && shown < 6; i++) {
        const br_mega_task *t = &p->tasks[i];

        if (vm->open[i] == 0)
            continue;
        for (uint32_t k = 0; k < t->n_waits; k++) {
            const br_mega_wait *w = &t->waits[k];
            int64_t has = vm->counters[w->counter].value;

            if (has >= w->threshold)
                continue;
            br_str_printf(&s, "%s task %zu (counter %lld is %lld, needs %lld)",
                          shown ? "," : "", i, (long long)w->counter,
                          (long long)has, (long long)w->threshold);
            break;
        }
        shown++;
    }
    br_fail(st, BR_E_REJECTED, "stuck: %zu of %zu tasks wait for ever:%s%s",
            left, p->n_tasks, br_str_z(&s), left > shown ? ", .." : "");
    br_str_fini(&s);
    return BR_E_REJECTED;
}

static br_code
check_outputs(const br_mega_vm *vm, br_status *st)
{
    for (size_t i = 0; i < vm->prog->n_buffers; i++) {
        const br_vmt *t = &vm->tensors[i];
        int64_t bad = -1;

        if (t->kind == BR_MBK_IO_OUTPUT)
            bad = br_vm_unwritten(t, 0, t->numel);
        if (bad >= 0)
            return br_fail(
                st, BR_E_REJECTED,
                "IO_OUTPUT buffer #%zu ('%.80s'): nobody has written "
                "element %lld",
                i, t->name, (long long)bad);
    }
    return BR_OK;
}

br_code
br_mega_vm_run(br_mega_vm *vm, br_mega_order order, uint64_t seed,
               br_status *st)
{
    br_status own = {.code = BR_OK};

    st = st ? st : &own;
    br_assert(st->code == BR_OK && "a status without an old failure");
    vm->kind = order;
    vm->seed = seed;
    BR_TRY(prepare(vm, st));
    start(vm);
    while (vm->n_heap) {
        uint64_t top = pop(vm);
        uint32_t i = (uint32_t)top;
        br_vm_counter *c = &vm->counters[vm->prog->tasks[i].out_counter];

        if (order == BR_MEGA_ORDER_SWEEP) {
            vm->sweep = (uint32_t)(top >> 32);
            vm->sweeps = vm->sweep + (size_t)1;
        }
        vm->current = i;
        BR_TRY(fire(vm, i, st));
        vm->order[vm->n_order++] = i;
        c->value++;
        meet(vm, c);
    }
    if (vm->n_order < vm->prog->n_tasks)
        return stuck(vm, st);
    return check_outputs(vm, st);
}

/* ---- other orders ----------------------------------------------------- */

static bool
is_result(const br_vmt *t)
{
    return t->kind == BR_MBK_IO_OUTPUT || t->kind == BR_MBK_KV_CACHE;
}

/* Copies results, or only caches, one after the other. */
static void
save(const br_mega_vm *vm, unsigned char *at, bool caches_only)
{
    for (size_t i = 0; i < vm->prog->n_buffers; i++) {
        const br_vmt *t = &vm->tensors[i];

        if (!is_result(t) || (caches_only && t->kind != BR_MBK_KV_CACHE))
            continue;
        memcpy(at, t->data, t->nbytes);
        at += t->nbytes;
    }
}

static void
restore_caches(br_mega_vm *vm, const unsigned char *at)
{
    for (size_t i = 0; i < vm->prog->n_buffers; i++) {
        br_vmt *t = &vm->tensors[i];

        if (t->kind != BR_MBK_KV_CACHE)
            continue;
        memcpy(t->data, at, t->nbytes);
        at += t->nbytes;
    }
}

static br_code
compare(const br_mega_vm *vm, const unsigned char *at, const char *order,
        br_status *st)
{
    for (size_t i = 0; i < vm->prog->n_buffers; i++) {
        const br_vmt *t = &vm->tensors[i];

        if (!is_result(t))
            continue;
        for (size_t k = 0; k < t->nbytes; k++)
            if (t->data[k] != at[k])
                return br_fail(st, BR_E_INTERNAL,
                               "buffer #%zu ('%.80s') differs at byte %zu when "
                               "tasks run in %s",
                               i, t->name, k, order);
        at += t->nbytes;
    }
    return BR_OK;
}

static br_code
one_order(br_mega_vm *vm, int n, uint64_t seed, const unsigned char *want,
          br_status *st)
{
    char name[48] = "reverse order";

    if (n)
        snprintf(name, sizeof name, "the random order of seed %llu",
                 (unsigned long long)(seed + (unsigned)n));
    if (br_mega_vm_run(vm, n ? BR_MEGA_ORDER_RANDOM : BR_MEGA_ORDER_REVERSE,
                       seed + (unsigned)n, st) != BR_OK)
        return br_prefix(st, "in %s", name);
    return compare(vm, want, name, st);
}

/* before: the caches, after: all results of the first run. */
static br_code
all_orders(br_mega_vm *vm, int orders, unsigned char *before,
           unsigned char *after, br_status *st)
{
    br_mega_order order = vm->kind;
    uint64_t seed = vm->seed;

    save(vm, before, true);
    BR_TRY(br_mega_vm_run(vm, order, seed, st));
    save(vm, after, false);
    for (int n = 0; n < orders; n++) {
        restore_caches(vm, before);
        BR_TRY(one_order(vm, n, seed, after, st));
    }
    restore_caches(vm, before);
    return br_mega_vm_run(vm, order, seed, st);
}

br_code
br_mega_vm_adversarial(br_mega_vm *vm, int orders, br_mega_order order,
                       uint64_t seed, br_status *st)
{
    br_status own = {.code = BR_OK};
    size_t kv = 0, all = 0;
    unsigned char *before, *after;
    br_code code;

    st = st ? st : &own;
    for (size_t i = 0; i < vm->prog->n_buffers; i++) {
        const br_vmt *t = &vm->tensors[i];

        kv += t->kind == BR_MBK_KV_CACHE ? t->nbytes : 0;
        all += is_result(t) ? t->nbytes : 0;
    }
    before = br_try_alloc(kv);
    after = br_try_alloc(all);
    vm->kind = order;
    vm->seed = seed;
    code = before && after ? all_orders(vm, orders, before, after, st)
                           : br_fail(st, BR_E_OOM, "no memory to compare runs");
    br_free(before);
    br_free(after);
    return code;
}
