/* abi_export.c - tasks and buffers into plain records.
 *
 * The codes have one truth, the .def files; abi.h repeats them so that device
 * code needs no other header, and the asserts below hold the two together.
 * Every number is checked against its record before it is narrowed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/abi_export.h"

#include <string.h>

/* clang-format off */
#define SAME(a, b) _Static_assert((int)(a) == (int)(b), #a " is " #b)
/* clang-format on */

#define X(name, code, lo, hi, out, req, doc) SAME(AMK_OP_##name, code);
#include "mega/minst.def"
#undef X
#define X(name, code, lo, hi, out, req, doc) +((code) < AMK_OP_EXT)
_Static_assert((0
#include "mega/minst.def"
                ) == AMK_OP_END_0_2,
               "opcodes below AMK_OP_EXT are those of version 0.2");
#undef X

/* The parameters in order, four bytes each; recipe stays on the host. */
#define I_PARAM(name) SAME(offsetof(amk_params_t, name), 4 * BR_MP_##name);
#define F_PARAM(name) I_PARAM(name)
#define R_PARAM(name)
#define E_PARAM(name)
#define P(name, type) type##_PARAM(name)
#include "mega/param.def"
#undef P

SAME(AMK_F32, BR_MDT_F32);
SAME(AMK_F16, BR_MDT_F16);
SAME(AMK_BF16, BR_MDT_BF16);
SAME(AMK_F8E4M3, BR_MDT_F8E4M3);
SAME(AMK_F8E5M2, BR_MDT_F8E5M2);
SAME(AMK_I32, BR_MDT_I32);
SAME(AMK_I8, BR_MDT_I8);
SAME(AMK_I4, BR_MDT_I4);
SAME(AMK_U8, BR_MDT_U8);
SAME(AMK_BOOL, BR_MDT_BOOL);
SAME(AMK_DTYPE_END_0_2, BR_MDT_COUNT);
SAME(AMK_HBM, BR_MSP_HBM);
SAME(AMK_GLOBAL_SCRATCH, BR_MSP_GLOBAL_SCRATCH);
SAME(AMK_SMEM, BR_MSP_SMEM);
SAME(AMK_REGISTER, BR_MSP_REGISTER);
SAME(AMK_MAX_INPUTS, BR_MEGA_MAX_INPUTS);
SAME(AMK_MAX_OUTPUTS, BR_MEGA_MAX_OUTPUTS);
SAME(AMK_MAX_WAITS, BR_MEGA_MAX_WAITS);
SAME(AMK_MAX_RANK, BR_MEGA_MAX_RANK);
SAME(AMK_FLAG_PARTIAL, BR_MEGA_FLAG_PARTIAL);

typedef struct exporter {
    const br_mega_prog *p;
    br_mega_abi *t;
    const uint32_t *sm_of;
    uint32_t n_sms;
    int32_t depth;
    br_status *st;
} exporter;

#define REFUSE(x, ...) br_fail((x)->st, BR_E_REJECTED, __VA_ARGS__)

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "task tables: out of memory");
}

/* ids[0..n) into a record with room for max, each below limit. */
typedef struct id_list {
    const int64_t *ids;
    uint32_t n, max;
    size_t limit;
    const char *what;
} id_list;

static br_code
put_ids(exporter *x, size_t task, id_list l, int32_t *out)
{
    if (l.n > l.max)
        return REFUSE(x, "tasks[%zu]: %u %s, the record holds %u", task, l.n,
                      l.what, l.max);
    for (uint32_t i = 0; i < l.n; i++) {
        if (l.ids[i] < 0 || (uint64_t)l.ids[i] >= l.limit)
            return REFUSE(x, "tasks[%zu].%s[%u]: no buffer %lld", task, l.what,
                          i, (long long)l.ids[i]);
        out[i] = (int32_t)l.ids[i];
    }
    return BR_OK;
}

static br_code
put_counter(exporter *x, size_t task, int64_t counter, int32_t *out)
{
    if (counter < 0 || (uint64_t)counter >= x->p->n_counters)
        return REFUSE(x, "tasks[%zu]: no counter %lld", task,
                      (long long)counter);
    *out = (int32_t)counter;
    return BR_OK;
}

static br_code
put_waits(exporter *x, size_t task, amk_instruction_t *r)
{
    const br_mega_task *t = &x->p->tasks[task];

    if (t->n_waits > AMK_MAX_WAITS)
        return REFUSE(x, "tasks[%zu]: %u waits, the record holds %d", task,
                      t->n_waits, AMK_MAX_WAITS);
    for (uint32_t i = 0; i < t->n_waits; i++) {
        int64_t threshold = t->waits[i].threshold;

        BR_TRY(put_counter(x, task, t->waits[i].counter, &r->wait_counter[i]));
        if (threshold < 1 || threshold > INT32_MAX)
            return REFUSE(x, "tasks[%zu].waits[%u]: threshold %lld", task, i,
                          (long long)threshold);
        r->wait_threshold[i] = (int32_t)threshold;
    }
    return BR_OK;
}

/* A parameter's place follows from its number: see I_PARAM above. */
static br_code
put_params(exporter *x, size_t task, amk_params_t *out)
{
    const br_mega_task *t = &x->p->tasks[task];

    for (int k = 0; k < BR_MP_COUNT; k++) {
        char *at = (char *)out + 4 * k;
        int64_t i;
        double f;

        if (!(t->param_mask >> k & 1) || br_mega_param_type(k) == 'R' ||
            br_mega_param_type(k) == 'E')
            continue;
        if (br_mega_param_type(k) == 'I') {
            if (!br_mega_get_i(t, (br_mega_param)k, &i) || i < INT32_MIN ||
                i > INT32_MAX)
                return REFUSE(x, "tasks[%zu].params.%s: not an int32", task,
                              br_mega_param_name(k));
            memcpy(at, &(int32_t){(int32_t)i}, 4);
        } else {
            if (!br_mega_get_f(t, (br_mega_param)k, &f))
                return REFUSE(x, "tasks[%zu].params.%s: not a number", task,
                              br_mega_param_name(k));
            memcpy(at, &(float){(float)f}, 4);
        }
    }
    if (t->op == BR_MOP_GEMV_TILE)
        out->M_tile = x->depth;
    return BR_OK;
}

static br_code
put_task(exporter *x, size_t i)
{
    const br_mega_task *t = &x->p->tasks[i];
    amk_instruction_t *r = &x->t->instructions[i];
    id_list in = {t->in, t->n_in, AMK_MAX_INPUTS, x->p->n_buffers, "inputs"};
    id_list out = {t->out, t->n_out, AMK_MAX_OUTPUTS, x->p->n_buffers,
                   "outputs"};

    if (t->op >= BR_MOP_STEP)
        return REFUSE(x, "tasks[%zu]: %s is no opcode of version 0.2", i,
                      br_mega_op_name(t->op));
    if (t->id != (int64_t)i)
        return REFUSE(x, "tasks[%zu]: id %lld is not its place", i,
                      (long long)t->id);
    if (x->sm_of[i] >= x->n_sms)
        return REFUSE(x, "tasks[%zu]: worker %u of %u", i, x->sm_of[i],
                      x->n_sms);
    *r = (amk_instruction_t){
        .op = t->op,
        .n_inputs = (int32_t)t->n_in,
        .n_outputs = (int32_t)t->n_out,
        .n_waits = (int32_t)t->n_waits,
        .sm = (int32_t)x->sm_of[i],
    };
    BR_TRY(put_ids(x, i, in, r->inputs));
    BR_TRY(put_ids(x, i, out, r->outputs));
    BR_TRY(put_counter(x, i, t->out_counter, &r->out_counter));
    BR_TRY(put_waits(x, i, r));
    return put_params(x, i, &r->params);
}

static br_code
put_buffer(exporter *x, size_t i)
{
    const br_mega_buffer *b = &x->p->buffers[i];
    amk_buffer_t *r = &x->t->buffers[i];
    int64_t stride = 1;

    if (b->id != (int64_t)i)
        return REFUSE(x, "buffers[%zu]: id %lld is not its place", i,
                      (long long)b->id);
    if (b->dtype >= BR_MDT_COUNT)
        return REFUSE(x, "buffers[%zu]: %s is no dtype of version 0.2", i,
                      br_mega_dtype_name(b->dtype));
    if (b->rank > AMK_MAX_RANK)
        return REFUSE(x, "buffers[%zu]: rank %u, the record holds %d", i,
                      b->rank, AMK_MAX_RANK);
    *r = (amk_buffer_t){.numel = br_mega_numel(b),
                        .rank = (int32_t)b->rank,
                        .dtype = b->dtype,
                        .space = b->space};
    if (r->numel < 0)
        return REFUSE(x, "buffers[%zu].shape: no size", i);
    for (uint32_t k = b->rank; k-- > 0;) {
        r->shape[k] = b->shape[k];
        r->stride[k] = stride;
        if (__builtin_mul_overflow(stride, b->shape[k], &stride) && k > 0)
            return REFUSE(x, "buffers[%zu].shape: strides beyond 64 bits", i);
    }
    return BR_OK;
}

/* Counting sort of the topological order by worker. */
static br_code
put_queues(exporter *x)
{
    br_mega_abi *t = x->t;
    const size_t n = x->p->n_tasks;
    int32_t *len = br_arena_new(&t->arena, int32_t, x->n_sms);
    const int32_t **start = br_arena_new(&t->arena, const int32_t *, x->n_sms);
    br_mega_graph g;
    int32_t at = 0;

    t->queue = br_arena_new(&t->arena, int32_t, n);
    if (!len || !start || !t->queue)
        return oom(x->st);
    BR_TRY(br_mega_graph_build(&g, x->p, &t->arena, x->st));
    if (!g.topo && n)
        return REFUSE(x, "tasks: the waits form a cycle");
    for (size_t i = 0; i < n; i++)
        len[x->sm_of[i]]++;
    for (uint32_t s = 0; s < x->n_sms; s++) {
        start[s] = t->queue + at;
        at += len[s];
        len[s] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t s = x->sm_of[g.topo[i]];

        t->queue[start[s] - t->queue + len[s]++] = (int32_t)g.topo[i];
    }
    t->program.sm_queue = start;
    t->program.sm_queue_len = len;
    t->program.num_sms = (int32_t)x->n_sms;
    return BR_OK;
}

static br_code
put_all(exporter *x)
{
    const br_mega_prog *p = x->p;
    br_mega_abi *t = x->t;

    if (p->n_misfits)
        return REFUSE(x, "the program holds values of the wrong type");
    if (x->n_sms > INT32_MAX)
        return REFUSE(x, "%u workers", x->n_sms);
    /* One more than needed: an arena's first block may not be empty. */
    t->instructions =
        br_arena_new(&t->arena, amk_instruction_t, p->n_tasks + 1);
    t->buffers = br_arena_new(&t->arena, amk_buffer_t, p->n_buffers);
    if (!t->instructions || !t->buffers)
        return oom(x->st);
    for (size_t i = 0; i < p->n_counters; i++)
        if (p->counters[i].id != (int64_t)i || p->counters[i].init != 0)
            return REFUSE(x,
                          "counters[%zu]: id %lld, init %lld; a counter is "
                          "its place and starts at 0",
                          i, (long long)p->counters[i].id,
                          (long long)p->counters[i].init);
    for (size_t i = 0; i < p->n_buffers; i++)
        BR_TRY(put_buffer(x, i));
    for (size_t i = 0; i < p->n_tasks; i++)
        BR_TRY(put_task(x, i));
    t->program.buffers = t->buffers;
    t->program.n_buffers = (int32_t)p->n_buffers;
    t->program.n_counters = (int32_t)p->n_counters;
    t->program.instructions = t->instructions;
    t->program.n_instructions = (int32_t)p->n_tasks;
    return put_queues(x);
}

br_code
br_mega_abi_export(br_mega_abi *out, const br_mega_prog *p,
                   const uint32_t *sm_of, uint32_t n_sms, int32_t depth,
                   br_status *st)
{
    exporter x = {p, out, sm_of, n_sms, depth, st};
    br_code code;

    *out = (br_mega_abi){0};
    br_arena_init(&out->arena, 0);
    code = put_all(&x);
    if (code != BR_OK)
        br_mega_abi_fini(out);
    return code;
}

void
br_mega_abi_fini(br_mega_abi *t)
{
    br_arena_fini(&t->arena);
    *t = (br_mega_abi){0};
}
