/* interp.c - the reference VM: its buffers, what is bound to them, results.
 *
 * Buffers have storage of their own, pages included: a page is a ring of
 * buffers that overwrite each other (interp_access.c), not shared bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/interp_int.h"

#include <string.h>

#define DEFAULT_BYTES (16ull << 30)
#define MAX_ELEMS     (1ll << 48)

/* ---- buffers ---------------------------------------------------------- */

bool
br_vm_layout(br_vmt *t)
{
    int64_t all = 1; /* empty dimensions counted as 1: every product is safe */

    t->numel = 1;
    t->rows = 1;
    t->row = t->rank ? t->shape[t->rank - 1] : 1;
    for (int i = 0; i < t->rank; i++) {
        if (t->shape[i] < 0 ||
            __builtin_mul_overflow(all, BR_MAX(t->shape[i], 1), &all) ||
            all > MAX_ELEMS)
            return false;
        t->numel *= t->shape[i];
        t->rows *= i + 1 < t->rank ? t->shape[i] : 1;
    }
    t->row_bytes = br_dt_row_bytes(t->dtype, t->row);
    t->nbytes = (size_t)(t->rows * t->row_bytes);
    return true;
}

br_code
br_vm_take(br_mega_vm *vm, size_t n, size_t size, void *out, br_status *st)
{
    size_t bytes;
    void *p;

    if (br_mul_overflows(n, size, &bytes) || bytes > vm->max_bytes - vm->bytes)
        return br_fail(st, BR_E_LIMIT,
                       "the program needs more than the %llu bytes allowed",
                       (unsigned long long)vm->max_bytes);
    p = br_try_calloc(BR_MAX(n, (size_t)1), size);
    if (!p)
        return br_fail(st, BR_E_OOM, "no memory to run the program");
    vm->bytes += bytes;
    memcpy(out, &p, sizeof p);
    return BR_OK;
}

static br_code
take_written(br_mega_vm *vm, br_vmt *t, br_status *st)
{
    if (t->written)
        return BR_OK;
    return br_vm_take(vm, ((size_t)t->numel + 63) / 64, 8, &t->written, st);
}

static br_code
make_tensor(br_mega_vm *vm, size_t i, br_status *st)
{
    const br_mega_buffer *b = &vm->prog->buffers[i];
    br_vmt *t = &vm->tensors[i];

    if (b->id != (int64_t)i)
        return br_fail(st, BR_E_FORMAT,
                       "buffers[%zu] has id %lld: ids are not "
                       "0, 1, 2 ..",
                       i, (long long)b->id);
    if (b->dtype >= BR_MDT_COUNT)
        return br_fail(st, BR_E_UNSUPPORTED,
                       "buffer #%zu is %s, which only "
                       "programs of models have",
                       i, br_mega_dtype_name(b->dtype));
    if (b->rank > BR_MEGA_MAX_RANK)
        return br_fail(st, BR_E_FORMAT, "buffer #%zu has rank %u, at most %d",
                       i, b->rank, BR_MEGA_MAX_RANK);
    t->id = b->id;
    t->clobbered_by = -1;
    t->name = b->name ? b->name : "";
    t->dtype = b->dtype;
    t->kind = b->kind;
    t->rank = (uint8_t)b->rank;
    if (b->rank)
        memcpy(t->shape, b->shape, b->rank * sizeof *t->shape);
    if (!br_vm_layout(t))
        return br_fail(st, BR_E_FORMAT,
                       "buffer #%zu ('%.80s') has an "
                       "impossible shape",
                       i, t->name);
    BR_TRY(br_vm_take(vm, t->nbytes, 1, &t->data, st));
    if (b->kind == BR_MBK_ACTIVATION || b->kind == BR_MBK_IO_OUTPUT)
        BR_TRY(take_written(vm, t, st));
    return BR_OK;
}

/* Buffers of one page form a ring, and every one of them can be overwritten
 * through the page, so each gets a map. */
static br_code
bind_page(br_mega_vm *vm, const br_mega_bind *b, br_vmt **first, br_status *st)
{
    const br_mega_prog *p = vm->prog;
    br_vmt *t, *f;

    if (b->buffer < 0 || (uint64_t)b->buffer >= p->n_buffers || b->page < 0 ||
        (uint64_t)b->page >= p->n_pages || p->pages[b->page].id != b->page)
        return br_fail(st, BR_E_FORMAT,
                       "buffer_to_page: no buffer %lld or no "
                       "page %lld",
                       (long long)b->buffer, (long long)b->page);
    t = &vm->tensors[b->buffer];
    f = first[b->page];
    if (t->page_next)
        return br_fail(st, BR_E_FORMAT, "buffer #%lld has two pages",
                       (long long)b->buffer);
    if (p->pages[b->page].nbytes < 0 ||
        t->nbytes > (uint64_t)p->pages[b->page].nbytes)
        return br_fail(st, BR_E_REJECTED,
                       "buffer #%lld needs %zu bytes, page "
                       "%lld has %lld",
                       (long long)b->buffer, t->nbytes, (long long)b->page,
                       (long long)p->pages[b->page].nbytes);
    t->page_next = f ? f->page_next : t;
    if (f)
        f->page_next = t;
    first[b->page] = t;
    return take_written(vm, t, st);
}

static br_code
bind_pages(br_mega_vm *vm, br_status *st)
{
    const br_mega_prog *p = vm->prog;
    br_vmt **first;
    br_code code = BR_OK;

    if (!p->has_pages || p->n_binds == 0)
        return BR_OK;
    first = br_try_calloc(BR_MAX(p->n_pages, (size_t)1), sizeof(void *));
    if (!first)
        return br_fail(st, BR_E_OOM, "no memory to run the program");
    for (size_t i = 0; i < p->n_binds && code == BR_OK; i++)
        code = bind_page(vm, &p->binds[i], first, st);
    br_free(first);
    return code;
}

/* ---- the VM as a store -------------------------------------------------- */

static const br_mega_vm *
vm_of(const br_mega_store *s)
{
    return (const br_mega_vm *)s;
}

static br_code
may_bind(const br_mega_store *s, int64_t buffer, const br_mega_value *v,
         br_status *st)
{
    return br_mega_vm_bindable(vm_of(s), buffer, v, st);
}

static br_code
do_bind(br_mega_store *s, int64_t buffer, const br_mega_value *v, br_status *st)
{
    return br_mega_vm_bind((br_mega_vm *)s, buffer, v, st);
}

static bool
is_bound(const br_mega_store *s, int64_t buffer)
{
    return br_mega_vm_written(vm_of(s), buffer);
}

static br_mega_value
value(const br_mega_store *s, int64_t buffer)
{
    return br_mega_vm_get(vm_of(s), buffer);
}

static br_code
run(br_mega_store *s, br_mega_runner *r, br_status *st)
{
    return br_mega_vm_run_by((br_mega_vm *)s, r, st);
}

br_mega_store *
br_mega_vm_store(br_mega_vm *vm)
{
    return &vm->store;
}

br_mega_runner *
br_mega_vm_runner(br_mega_vm *vm)
{
    return br_mega_walk_runner(vm->walk);
}

static br_code
check_program(const br_mega_prog *p, br_status *st)
{
    if (p->n_misfits)
        return br_fail(st, BR_E_FORMAT,
                       "the program holds values of the wrong type");
    for (size_t i = 0; i < p->n_tasks; i++)
        if (p->tasks[i].op >= BR_MOP_STEP)
            return br_fail(st, BR_E_UNSUPPORTED,
                           "tasks[%zu]: %s is of a model's program; such run "
                           "on a tier",
                           i, br_mega_op_name(p->tasks[i].op));
    return BR_OK;
}

static br_code
make(br_mega_vm *vm, uint32_t workers, br_status *st)
{
    const br_mega_prog *p = vm->prog;

    BR_TRY(check_program(p, st));
    BR_TRY(br_vm_take(vm, workers, sizeof *vm->workers, &vm->workers, st));
    for (; vm->n_workers < workers; vm->n_workers++)
        br_arena_init(&vm->workers[vm->n_workers].tmp, (size_t)vm->max_bytes);
    BR_TRY(br_vm_take(vm, p->n_buffers, sizeof *vm->tensors, &vm->tensors, st));
    for (size_t i = 0; i < p->n_buffers; i++)
        BR_TRY(make_tensor(vm, i, st));
    BR_TRY(bind_pages(vm, st));
    BR_TRY(br_mega_walk_new(&vm->walk, p, st));
    vm->ran = br_mega_walk_runner(vm->walk);
    return BR_OK;
}

br_code
br_mega_vm_new(br_mega_vm **out, const br_mega_prog *p,
               const br_mega_vm_desc *d, br_status *st)
{
    br_mega_vm *vm = br_try_calloc(1, sizeof *vm);
    br_code code;

    *out = NULL;
    if (!vm)
        return br_fail(st, BR_E_OOM, "no memory to run the program");
    vm->store = (br_mega_store){p, may_bind, do_bind, is_bound, value, run};
    vm->prog = p;
    vm->max_bytes = d && d->max_bytes ? d->max_bytes : DEFAULT_BYTES;
    vm->max_work = d ? d->max_work : 0;
    vm->dot = d && d->dot ? d->dot : br_vm_dot;
    vm->op = d ? d->op : NULL;
    vm->ctx = d ? d->ctx : NULL;
    code = make(vm, d && d->workers ? d->workers : 1, st);
    if (code != BR_OK) {
        br_mega_vm_free(vm);
        return code;
    }
    *out = vm;
    return BR_OK;
}

void
br_mega_vm_free(br_mega_vm *vm)
{
    if (!vm)
        return;
    for (size_t i = 0; vm->tensors && i < vm->prog->n_buffers; i++) {
        br_free(vm->tensors[i].data);
        br_free(vm->tensors[i].written);
    }
    br_free(vm->tensors);
    br_mega_walk_free(vm->walk);
    for (uint32_t i = 0; i < vm->n_workers; i++)
        br_arena_fini(&vm->workers[i].tmp);
    br_free(vm->workers);
    br_free(vm);
}

/* ---- binding ---------------------------------------------------------- */

/* Shapes without their dimensions of 1. */
static bool
same_shape(const br_mega_value *v, const br_vmt *t)
{
    int j = 0;

    for (uint32_t i = 0; i < v->rank; i++) {
        if (v->shape[i] == 1)
            continue;
        while (j < t->rank && t->shape[j] == 1)
            j++;
        if (j == t->rank || t->shape[j++] != v->shape[i])
            return false;
    }
    while (j < t->rank && t->shape[j] == 1)
        j++;
    return j == t->rank;
}

/* An I4 buffer's own bytes: U8 of ceil(columns / 2) columns. */
static bool
is_packed(const br_mega_value *v, const br_vmt *t)
{
    br_vmt bytes = *t;

    if (t->dtype != BR_MDT_I4 || v->dtype != BR_MDT_U8 || t->rank == 0)
        return false;
    bytes.shape[t->rank - 1] = t->row_bytes;
    return same_shape(v, &bytes);
}

static br_code
convert(br_vmt *t, const br_vmt *from, br_status *st)
{
    for (int64_t i = 0; i < t->numel; i++) {
        double v = br_dt_get(
            from->dtype, from->data + i / t->row * from->row_bytes, i % t->row);

        if (!br_dt_put(t->dtype, t->data + i / t->row * t->row_bytes,
                       i % t->row, v))
            return br_fail(st, BR_E_FORMAT,
                           "buffer #%lld ('%.80s'): element "
                           "%lld, %g, does not fit %s",
                           (long long)t->id, t->name, (long long)i, v,
                           br_dt_name(t->dtype));
    }
    return BR_OK;
}

/* The tensor that data of this dtype would be, without the data. */
static br_code
file_tensor(const br_mega_vm *vm, int64_t buffer, const br_mega_value *v,
            br_vmt *from, br_status *st)
{
    const br_vmt *t;

    if (buffer < 0 || (uint64_t)buffer >= vm->prog->n_buffers)
        return br_fail(st, BR_E_FORMAT, "no buffer #%lld", (long long)buffer);
    t = &vm->tensors[buffer];
    if (t->kind == BR_MBK_ACTIVATION || t->kind == BR_MBK_IO_OUTPUT)
        return br_fail(st, BR_E_FORMAT,
                       "buffer #%lld ('%.80s') is %s: the program makes it",
                       (long long)buffer, t->name, br_mega_kind_name(t->kind));
    if ((unsigned)v->dtype >= BR_MDT_COUNT)
        return br_fail(st, BR_E_FORMAT, "buffer #%lld: dtype %d",
                       (long long)buffer, v->dtype);
    *from = *t;
    from->dtype = is_packed(v, t) ? BR_MDT_I4 : (uint8_t)v->dtype;
    if ((from->dtype == v->dtype && !same_shape(v, t)) || !br_vm_layout(from))
        return br_fail(st, BR_E_FORMAT,
                       "buffer #%lld ('%.80s'): the tensor has another shape",
                       (long long)buffer, t->name);
    return BR_OK;
}

br_code
br_mega_vm_bindable(const br_mega_vm *vm, int64_t buffer,
                    const br_mega_value *v, br_status *st)
{
    br_vmt from;

    return file_tensor(vm, buffer, v, &from, st);
}

int64_t
br_mega_value_bytes(const br_mega_value *v)
{
    br_vmt t = {.dtype = (uint8_t)v->dtype, .rank = (uint8_t)v->rank};

    if (v->rank > BR_MEGA_MAX_RANK || (unsigned)v->dtype >= BR_MDT_COUNT)
        return -1;
    if (v->rank)
        memcpy(t.shape, v->shape, v->rank * sizeof *t.shape);
    return br_vm_layout(&t) ? (int64_t)t.nbytes : -1;
}

br_code
br_mega_vm_bind(br_mega_vm *vm, int64_t buffer, const br_mega_value *v,
                br_status *st)
{
    union {
        const void *c;
        unsigned char *d;
    } p = {v->data}; /* only read */
    br_vmt *t, from;

    BR_TRY(file_tensor(vm, buffer, v, &from, st));
    t = &vm->tensors[buffer];
    if (v->nbytes != from.nbytes)
        return br_fail(st, BR_E_FORMAT,
                       "buffer #%lld ('%.80s'): %zu bytes where %zu are "
                       "expected",
                       (long long)buffer, t->name, v->nbytes, from.nbytes);
    t->bound = false;
    from.data = p.d;
    if (from.dtype == t->dtype && t->nbytes)
        memcpy(t->data, v->data, t->nbytes);
    else
        BR_TRY(convert(t, &from, st));
    t->bound = true;
    return BR_OK;
}

/* ---- results ---------------------------------------------------------- */

br_mega_value
br_mega_vm_get(const br_mega_vm *vm, int64_t buffer)
{
    const br_vmt *t;

    br_check(buffer >= 0 && (uint64_t)buffer < vm->prog->n_buffers);
    t = &vm->tensors[buffer];
    return (br_mega_value){t->data, t->shape, t->nbytes, t->rank, t->dtype};
}

bool
br_mega_vm_written(const br_mega_vm *vm, int64_t buffer)
{
    const br_vmt *t;

    br_check(buffer >= 0 && (uint64_t)buffer < vm->prog->n_buffers);
    t = &vm->tensors[buffer];
    if (br_mega_kind_readonly(t->kind) && !t->bound)
        return false;
    return br_vm_unwritten(t, 0, t->numel) < 0;
}

const uint32_t *
br_mega_vm_order(const br_mega_vm *vm, size_t *n)
{
    *n = vm->ran->n_order;
    return vm->ran->order;
}

size_t
br_mega_vm_sweeps(const br_mega_vm *vm)
{
    return vm->ran->sweeps;
}
