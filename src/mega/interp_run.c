/* interp_run.c - a run: tasks fire in whatever order a runner has (walk.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/interp_int.h"

static br_code
prepare(br_mega_vm *vm, br_status *st)
{
    for (uint32_t i = 0; i < vm->n_workers; i++)
        vm->workers[i].work = 0;
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
    if (c->vm->op && c->op != BR_MOP_FUSED)
        return c->vm->op(c->vm->ctx, c);
    return run[c->op](c);
}

static br_code
fire(void *ctx, uint32_t worker, uint32_t index, br_status *st)
{
    br_mega_vm *vm = ctx;
    const br_mega_task *t = &vm->prog->tasks[index];
    br_vm_worker *w = &vm->workers[worker];
    br_vm_call c = {.task = t,
                    .params = t->params,
                    .op = t->op,
                    .step = -1,
                    .tmp = &w->tmp,
                    .st = st,
                    .n_in = t->n_in,
                    .n_out = t->n_out,
                    .work = &w->work,
                    .max_work = vm->max_work,
                    .vm = vm};

    for (uint32_t k = 0; k < t->n_in; k++)
        c.in[k] = &vm->tensors[t->in[k]];
    for (uint32_t k = 0; k < t->n_out; k++)
        c.out[k] = &vm->tensors[t->out[k]];
    BR_TRY(br_vm_work(&c, 1));
    br_arena_reset(&w->tmp);
    return br_vm_dispatch(&c);
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
br_mega_vm_run_by(br_mega_vm *vm, br_mega_runner *r, br_status *st)
{
    br_status own = {.code = BR_OK};

    st = st ? st : &own;
    br_assert(st->code == BR_OK && "a status without an old failure");
    br_assert(r->workers <= vm->n_workers && "as many as it was made for");
    vm->ran = r;
    BR_TRY(prepare(vm, st));
    BR_TRY(r->run(r, fire, vm, st));
    return check_outputs(vm, st);
}

br_code
br_mega_vm_run(br_mega_vm *vm, br_mega_order order, uint64_t seed,
               br_status *st)
{
    br_mega_walk_by(vm->walk, order, seed);
    return br_mega_vm_run_by(vm, br_mega_walk_runner(vm->walk), st);
}

br_code
br_mega_vm_adversarial(br_mega_vm *vm, int orders, br_mega_order order,
                       uint64_t seed, br_status *st)
{
    br_status own = {.code = BR_OK};

    return br_mega_adversarial(&vm->store, vm->walk, orders, order, seed,
                               st ? st : &own);
}
