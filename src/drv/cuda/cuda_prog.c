/* cuda_prog.c - see cuda_prog.h.
 *
 * A run notes first: the VM fires every task as it would, and each op that it
 * would do becomes an instruction, steps of recipes too. Their shapes, counts
 * and parameters have been checked by then, absent parameters replaced. Then
 * one piece of device memory gets tables and tensors, one launch does it all.
 *
 *   slab   tensors | instructions buffers queues | counters flags | scratch
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_prog.h"

#include "../../../kernels/cuda/prog_table.h"
#include "drv/cuda/cuda_api.h"
#include "mega/abi_export.h"
#include "mega/interp_int.h"

#include <string.h>

extern const char br_ptx_prog[], br_cubin_prog[];

/* About a minute of looks at a counter; no checked program waits so long but
 * for a task of that length. */
enum { PATIENCE = 50 << 20, SHARED = 16 };
#define SLAB_ALIGN 256ull

typedef struct scratch {
    const br_vmt *t;
    int32_t at; /* in buffers */
} scratch;

struct br_cuda_prog {
    br_mega_runner runner;
    const br_mega_prog *p;
    br_mega_walk *walk; /* the order of noting */
    br_arena arena;
    br_cuda cu;
    void *mod, *fn;
    br_mega_abi abi;
    BR_VEC(amk_instruction_t) ins; /* tasks, then steps of recipes */
    BR_VEC(amk_buffer_t) buffers;  /* ptr: from the slab's begin on */
    BR_VEC(scratch) scratch;       /* of the recipe in hand */
    br_vmt **host;                 /* [n_buffers]; NULL: nobody names it */
    uint64_t slab, size;           /* and its bytes so far */
    struct br_pg_run r;
};

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "tier cuda: out of memory");
}

static uint64_t
take(br_cuda_prog *x, uint64_t bytes)
{
    uint64_t at = x->size;

    x->size += (bytes + SLAB_ALIGN - 1) / SLAB_ALIGN * SLAB_ALIGN;
    return at;
}

static void *
at_slab(const br_cuda_prog *x, uint64_t at)
{
    return (void *)(uintptr_t)(x->slab + at);
}

/* ---- noting ------------------------------------------------------------- */

/* Its place in the table; -1: no memory. */
static int32_t
buffer_of(br_cuda_prog *x, br_vmt *t)
{
    amk_buffer_t b = {.numel = t->numel, .rank = t->rank, .dtype = t->dtype};

    if (t->id >= 0) {
        if (!x->host[t->id])
            x->buffers.at[t->id].ptr =
                (void *)(uintptr_t)take(x, (uint64_t)t->nbytes);
        x->host[t->id] = t;
        return (int32_t)t->id;
    }
    for (size_t i = x->scratch.n; i-- > 0;)
        if (x->scratch.at[i].t == t)
            return x->scratch.at[i].at;
    memcpy(b.shape, t->shape, sizeof b.shape);
    b.ptr = (void *)(uintptr_t)take(x, (uint64_t)t->nbytes);
    if (x->buffers.n >= INT32_MAX ||
        !br_vec_push(&x->scratch, ((scratch){t, (int32_t)x->buffers.n})) ||
        !br_vec_push(&x->buffers, b))
        return -1;
    return (int32_t)x->buffers.n - 1;
}

static br_code
note_params(br_vm_call *c, amk_params_t *a)
{
    char *at = (char *)a;

    *a = (amk_params_t){0};
    for (int k = 0; k < BR_MP_COUNT; k++, at += 4) {
        const char type = br_mega_param_type(k);
        int64_t i = 0;

        if (type == 'F')
            BR_TRY(br_vm_real_or(c, (br_mega_param)k,
                                 k == BR_MP_scale ? 1.0f : 0.0f,
                                 (float *)(void *)at));
        if (type != 'I')
            continue;
        BR_TRY(br_vm_int_or(c, (br_mega_param)k, k == BR_MP_dim ? -1 : 0, &i));
        memcpy(at, &(int32_t){(int32_t)i}, 4);
    }
    if (c->op != BR_MOP_GEMV_TILE && c->op != BR_MOP_GEMM_TILE)
        return BR_OK;
    if (c->op == BR_MOP_GEMV_TILE || !br_json_get(c->params, "m_off")) {
        a->m_off = 0;
        a->M_tile = (int32_t)c->in[0]->rows;
    }
    a->group = a->group ? a->group : a->K;
    return BR_OK;
}

/* Bytes that an output waits in, if it is an input as well; scores. */
static void
note_scratch(br_cuda_prog *x, const br_vm_call *c, const amk_instruction_t *t)
{
    for (uint32_t k = 0; k < c->n_in; k++)
        if (c->n_out && c->in[k] == c->out[0])
            x->r.place = BR_MAX(x->r.place, 8ull * (uint64_t)c->out[0]->numel);
    if (c->op == BR_MOP_ATTENTION_TILE)
        x->r.line = BR_MAX(x->r.line, (uint64_t)t->params.kv_len);
}

static br_code
note(void *ctx, br_vm_call *c)
{
    br_cuda_prog *x = ctx;
    const size_t task = (size_t)(c->task - x->p->tasks);
    const bool step = c->step >= 0;
    amk_instruction_t t = x->ins.at[task];

    if (c->step <= 0)
        x->scratch.n = 0;
    if (c->step == 0)
        x->ins.at[task].params = (amk_params_t){.K = (int32_t)x->ins.n};
    if (step)
        t = (amk_instruction_t){.op = c->op};
    t.n_inputs = (int32_t)c->n_in;
    t.n_outputs = (int32_t)c->n_out;
    for (uint32_t k = 0; k < c->n_in; k++)
        if ((t.inputs[k] = buffer_of(x, c->in[k])) < 0)
            return no_memory(c->st);
    for (uint32_t k = 0; k < c->n_out; k++) {
        if ((t.outputs[k] = buffer_of(x, c->out[k])) < 0)
            return no_memory(c->st);
        br_vm_mark(c->out[k], 0, c->out[k]->numel);
    }
    BR_TRY(note_params(c, &t.params));
    note_scratch(x, c, &t);
    if (!step) {
        x->ins.at[task] = t;
        return BR_OK;
    }
    x->ins.at[task].params.N++;
    if (x->ins.n >= INT32_MAX || !br_vec_push(&x->ins, t))
        return no_memory(c->st);
    return BR_OK;
}

/* Every task as the VM would do it, from the program's tables on. */
static br_code
note_all(br_cuda_prog *x, br_mega_fire *fire, void *vm, br_status *st)
{
    const size_t tasks = x->p->n_tasks, buffers = x->p->n_buffers;
    br_mega_runner *order = br_mega_walk_runner(x->walk);

    if (!br_vec_reserve(&x->ins, tasks + 1) ||
        !br_vec_reserve(&x->buffers, buffers + 1))
        return no_memory(st);
    memcpy(x->ins.at, x->abi.instructions, tasks * sizeof *x->ins.at);
    memcpy(x->buffers.at, x->abi.buffers, buffers * sizeof *x->buffers.at);
    memset(x->host, 0, buffers * sizeof(void *));
    x->ins.n = tasks;
    x->buffers.n = buffers;
    x->size = 0;
    x->r = (struct br_pg_run){.patience = PATIENCE};
    return order->run(order, fire, vm, st);
}

/* ---- a launch ----------------------------------------------------------- */

typedef struct tables { /* places in the slab */
    uint64_t ins, buffers, queue, starts, lens, counters, order, words, bad,
        scratch;
} tables;

static br_code
send(br_cuda_prog *x, uint64_t at, const void *from, size_t bytes,
     br_status *st)
{
    return bytes ? BR_CU(&x->cu, st, cuMemcpyHtoD(x->slab + at, from, bytes))
                 : BR_OK;
}

static void
lay_out(br_cuda_prog *x, tables *t)
{
    const uint64_t sms = x->runner.workers, n = x->p->n_tasks;

    x->r.place = (x->r.place + 15) / 16 * 16;
    t->ins = take(x, x->ins.n * sizeof *x->ins.at);
    t->buffers = take(x, x->buffers.n * sizeof *x->buffers.at);
    t->queue = take(x, n * 4);
    t->starts = take(x, sms * 8);
    t->lens = take(x, sms * 4);
    t->counters = take(x, x->p->n_counters * 4ull);
    t->order = take(x, n * 4);
    t->words = take(x, 8);
    t->bad = take(x, sms * sizeof(struct br_pg_bad));
    t->scratch = take(
        x, sms * ((x->r.place + BR_PG_WARPS * 4 * x->r.line + 15) / 16 * 16));
}

static br_code
send_tables(br_cuda_prog *x, const tables *t, br_status *st)
{
    const uint32_t sms = x->runner.workers;
    const amk_program_t *p = &x->abi.program;
    const void **starts = br_try_calloc(sms, sizeof *starts);
    br_code code;

    if (!starts)
        return no_memory(st);
    for (uint32_t s = 0; s < sms; s++)
        starts[s] = at_slab(
            x, t->queue + 4ull * (uint64_t)(p->sm_queue[s] - x->abi.queue));
    code = send(x, t->starts, starts, sms * sizeof *starts, st);
    br_free(starts);
    for (size_t b = 0; b < x->buffers.n; b++)
        x->buffers.at[b].ptr =
            at_slab(x, (uint64_t)(uintptr_t)x->buffers.at[b].ptr);
    BR_TRY(code);
    BR_TRY(send(x, t->ins, x->ins.at, x->ins.n * sizeof *x->ins.at, st));
    BR_TRY(send(x, t->buffers, x->buffers.at,
                x->buffers.n * sizeof *x->buffers.at, st));
    BR_TRY(send(x, t->queue, x->abi.queue, x->p->n_tasks * 4, st));
    BR_TRY(send(x, t->lens, p->sm_queue_len, sms * 4ull, st));
    for (size_t b = 0; b < x->p->n_buffers; b++) {
        const br_vmt *v = x->host[b];

        if (v && (br_mega_kind_readonly(v->kind) || v->kind == BR_MBK_KV_CACHE))
            BR_TRY(BR_CU(&x->cu, st,
                         cuMemcpyHtoD((uintptr_t)x->buffers.at[b].ptr, v->data,
                                      v->nbytes)));
    }
    return BR_OK;
}

static br_code
launch(br_cuda_prog *x, const tables *t, br_status *st)
{
    const uint32_t sms = x->runner.workers;
    amk_program_t p = {
        .buffers = at_slab(x, t->buffers),
        .n_buffers = (int32_t)x->buffers.n,
        .counters = at_slab(x, t->counters),
        .n_counters = (int32_t)x->p->n_counters,
        .instructions = at_slab(x, t->ins),
        .n_instructions = (int32_t)x->ins.n,
        .sm_queue = at_slab(x, t->starts),
        .sm_queue_len = at_slab(x, t->lens),
        .num_sms = (int32_t)sms,
        .scratch = at_slab(x, t->scratch),
        .scratch_bytes = (int64_t)(x->size - t->scratch) / (16 * (int64_t)sms) *
                         (16 * (int64_t)sms),
        .abort_flag = at_slab(x, t->words),
    };
    void *params[] = {&p, &x->r};

    x->r.bad = at_slab(x, t->bad);
    x->r.order = at_slab(x, t->order);
    x->r.begun = at_slab(x, t->words + 4);
    BR_TRY(
        BR_CU(&x->cu, st,
              cuLaunchCooperativeKernel(x->fn, sms, 1, 1, BR_PG_WARPS * 32, 1,
                                        1, SHARED, x->cu.stream, params)));
    return BR_CU(&x->cu, st, cuStreamSynchronize(x->cu.stream));
}

/* ---- what became of it -------------------------------------------------- */

/* The task that an instruction is or belongs to. */
static size_t
task_of(const br_cuda_prog *x, int32_t at)
{
    const amk_params_t *a;

    for (size_t i = 0; i < x->p->n_tasks; i++) {
        a = &x->ins.at[i].params;
        if ((size_t)at == i ||
            (x->ins.at[i].op == AMK_OP_FUSED && at >= a->K && at < a->K + a->N))
            return i;
    }
    br_unreachable("an instruction of the program");
}

static br_code
say_bad(const br_cuda_prog *x, const struct br_pg_bad *b, br_status *st)
{
    const amk_instruction_t *t = &x->ins.at[b->instruction];
    const br_mega_task *task = &x->p->tasks[task_of(x, b->instruction)];
    const char *op = br_mega_op_name(t->op);

    if (b->value)
        return br_fail(st, BR_E_FORMAT,
                       "task %lld (%s): input %d, element %llu: %s",
                       (long long)task->id, op, t->op == AMK_OP_ROPE ? 1 : 0,
                       (unsigned long long)~b->value,
                       t->op == AMK_OP_ROPE ? "no integer, so no position"
                                            : "no row of the table");
    return br_fail(st, BR_E_FORMAT,
                   "task %lld (%s): output, element %llu: does not fit %s",
                   (long long)task->id, op, (unsigned long long)~b->fit,
                   br_dt_name(x->buffers.at[t->outputs[0]].dtype));
}

static br_code
say_stuck(const br_cuda_prog *x, const struct br_pg_bad *b, br_status *st)
{
    const amk_instruction_t *t = &x->ins.at[b->instruction];

    return br_fail(st, BR_E_TIMEOUT,
                   "task %d waits for counter %d to be %d: the device gave up",
                   b->instruction, t->wait_counter[b->wait - 1],
                   t->wait_threshold[b->wait - 1]);
}

static br_code
look(br_cuda_prog *x, const tables *t, br_status *st)
{
    const uint32_t sms = x->runner.workers;
    struct br_pg_bad *bad;
    int32_t words[2];
    br_code code;

    BR_TRY(BR_CU(&x->cu, st, cuMemcpyDtoH(words, x->slab + t->words, 8)));
    if (!words[0] && (uint32_t)words[1] == x->p->n_tasks)
        return BR_OK;
    bad = br_try_calloc(sms, sizeof *bad);
    if (!bad)
        return no_memory(st);
    code = BR_CU(&x->cu, st,
                 cuMemcpyDtoH(bad, x->slab + t->bad, sms * sizeof *bad));
    for (uint32_t s = 0; s < sms && code == BR_OK; s++)
        if (bad[s].value || bad[s].fit)
            code = say_bad(x, &bad[s], st);
    for (uint32_t s = 0; s < sms && code == BR_OK; s++)
        if (words[0] == BR_PG_STUCK && bad[s].wait)
            code = say_stuck(x, &bad[s], st);
    br_free(bad);
    if (code != BR_OK)
        return code;
    return br_fail(st, BR_E_INTERNAL,
                   "the device ran %d of %zu tasks and says %d", words[1],
                   x->p->n_tasks, words[0]);
}

static br_code
fetch(br_cuda_prog *x, const tables *t, br_status *st)
{
    for (size_t b = 0; b < x->p->n_buffers; b++) {
        const br_vmt *v = x->host[b];

        if (v && v->nbytes && !br_mega_kind_readonly(v->kind))
            BR_TRY(BR_CU(&x->cu, st,
                         cuMemcpyDtoH(v->data, (uintptr_t)x->buffers.at[b].ptr,
                                      v->nbytes)));
    }
    x->runner.n_order = x->p->n_tasks;
    if (!x->p->n_tasks)
        return BR_OK;
    return BR_CU(
        &x->cu, st,
        cuMemcpyDtoH(x->runner.order, x->slab + t->order, x->p->n_tasks * 4));
}

static br_code
run(br_mega_runner *r, br_mega_fire *fire, void *vm, br_status *st)
{
    br_cuda_prog *x = (br_cuda_prog *)r;
    tables t;
    br_code code;

    r->n_order = 0;
    BR_TRY(BR_CU(&x->cu, st, cuCtxSetCurrent(x->cu.ctx)));
    BR_TRY(note_all(x, fire, vm, st));
    lay_out(x, &t);
    BR_TRY(br_cuda_alloc(&x->cu, &x->slab, x->size, st));
    code = BR_CU(&x->cu, st, cuMemsetD32(x->slab, 0, x->size / 4));
    if (code == BR_OK)
        code = send_tables(x, &t, st);
    if (code == BR_OK)
        code = launch(x, &t, st);
    if (code == BR_OK)
        code = look(x, &t, st);
    if (code == BR_OK)
        code = fetch(x, &t, st);
    br_cuda_free(&x->cu, x->slab);
    return code;
}

/* ---- life --------------------------------------------------------------- */

static br_code
make(br_cuda_prog *x, br_status *st)
{
    const br_mega_prog *p = x->p;
    uint32_t *sm_of;

    BR_TRY(br_cuda_open(&x->cu, 0, st));
    BR_TRY(br_cuda_module(&x->cu, &x->mod, "prog",
                          br_cuda_image(&x->cu, br_ptx_prog, br_cubin_prog),
                          st));
    BR_TRY(BR_CU(&x->cu, st, cuModuleGetFunction(&x->fn, x->mod, "br_prog")));
    x->runner = (br_mega_runner){
        .run = run,
        .workers = (uint32_t)BR_MAX(1, x->cu.n_sm),
        .order = br_arena_new(&x->arena, uint32_t, p->n_tasks + 1)};
    sm_of = br_arena_new(&x->arena, uint32_t, p->n_tasks + 1);
    x->host = br_arena_zero(&x->arena, p->n_buffers + 1, sizeof(void *));
    if (!x->runner.order || !sm_of || !x->host)
        return no_memory(st);
    for (size_t i = 0; i < p->n_tasks; i++)
        sm_of[i] = (uint32_t)((p->tasks[i].sm == BR_MEGA_SM_NONE
                                   ? i
                                   : (uint64_t)p->tasks[i].sm) %
                              x->runner.workers);
    BR_TRY(br_mega_abi_export(&x->abi, p, sm_of, x->runner.workers, 0, st));
    return br_mega_walk_new(&x->walk, p, st);
}

br_code
br_cuda_prog_new(br_cuda_prog **out, const br_mega_prog *p, br_status *st)
{
    br_cuda_prog *x = br_try_calloc(1, sizeof *x);
    br_code code;

    *out = NULL;
    if (!x)
        return no_memory(st);
    br_arena_init(&x->arena, 0);
    x->p = p;
    code = make(x, st);
    if (code != BR_OK) {
        br_cuda_prog_free(x);
        return code;
    }
    *out = x;
    return BR_OK;
}

void
br_cuda_prog_free(br_cuda_prog *x)
{
    if (!x)
        return;
    if (x->mod)
        x->cu.cuModuleUnload(x->mod);
    br_cuda_close(&x->cu);
    br_mega_walk_free(x->walk);
    br_mega_abi_fini(&x->abi);
    br_vec_fini(&x->ins);
    br_vec_fini(&x->buffers);
    br_vec_fini(&x->scratch);
    br_arena_fini(&x->arena);
    br_free(x);
}

void
br_cuda_prog_desc(br_cuda_prog *x, br_mega_vm_desc *d)
{
    d->workers = x->runner.workers;
    d->op = note;
    d->ctx = x;
}

br_mega_runner *
br_cuda_prog_runner(br_cuda_prog *x)
{
    return &x->runner;
}
