/* lower_emit.c - what the operations of lower_node.c are written in: buffers,
 * counters, tasks.
 *
 * While a recipe is open, the same calls build one FUSED task instead. Buffers
 * of its inner tensors become scratch, numbered -2, -3, ... in place of ids;
 * a task becomes a step; a wait on anything outside is kept for the one task.
 * So an operation is lowered by the same code either way.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/lower_internal.h"

#include <stdarg.h>
#include <string.h>

#define SCRATCH_ID(j)  (-2 - (j))
#define IS_SCRATCH(id) ((id) <= -2)
#define SCRATCH_OF(id) (-2 - (id))

br_code
br_low_fail(br_lower *l, br_code code)
{
    if (l->b.code == BR_OK)
        l->b.code = code;
    return code;
}

static void
out_of_memory(br_lower *l)
{
    br_low_fail(l, br_fail(l->st, BR_E_OOM, "lowering: out of memory"));
}

const char *
br_low_text(br_lower *l, const char *fmt, ...)
{
    va_list ap;

    br_str_clear(&l->text);
    va_start(ap, fmt);
    br_str_vprintf(&l->text, fmt, ap);
    va_end(ap);
    if (l->text.oom) {
        out_of_memory(l);
        return "";
    }
    return br_str_z(&l->text);
}

int64_t
br_low_mul(br_lower *l, int64_t a, int64_t b, int64_t c, int64_t d)
{
    int64_t v;

    if (__builtin_mul_overflow(a, b, &v) || __builtin_mul_overflow(v, c, &v) ||
        __builtin_mul_overflow(v, d, &v)) {
        br_low_fail(l, br_fail(l->st, BR_E_LIMIT,
                               "lowering: the cost of a task overflows"));
        return 0;
    }
    return v;
}

/* ---- buffers and counters ------------------------------------------------ */

static int64_t
add_scratch(br_lower *l, const br_low_buffer *d)
{
    br_mega_buffer s = {.rank = d->rank, .dtype = (uint8_t)d->dtype};
    br_low_recipe *r = &l->recipe;

    s.shape = br_arena_dup(&l->scratch, d->shape, d->rank * sizeof *d->shape);
    if (!s.shape || !br_vec_push(&r->scratch, s)) {
        out_of_memory(l);
        return 0;
    }
    return SCRATCH_ID((int64_t)r->scratch.n - 1);
}

int64_t
br_low_buffer_add(br_lower *l, const br_low_buffer *d)
{
    br_mega_buffer b = {.name = d->name,
                        .name_n = (uint32_t)strlen(d->name),
                        .kind = (uint8_t)d->kind,
                        .dtype = (uint8_t)d->dtype,
                        .space = BR_MSP_HBM,
                        .rank = d->rank,
                        .shape = d->shape,
                        .source = d->source};

    if (d->source)
        b.source_n = (uint32_t)strlen(d->source);
    if (!br_low_ok(l))
        return 0;
    if (l->recipe.open && d->kind == BR_MBK_ACTIVATION)
        return add_scratch(l, d);
    return br_mega_add_buffer(&l->b, &b);
}

static int64_t
add_tensor(br_lower *l, int32_t tensor)
{
    const br_net_tensor *t = &l->net->tensors.at[tensor];
    br_low_buffer d = {.name = t->name,
                       .kind = (br_mega_kind)t->kind,
                       .dtype = (br_mega_dtype)t->dtype,
                       .rank = t->rank,
                       .source = t->kind == BR_MBK_WEIGHT ? t->name : NULL};

    memcpy(d.shape, t->shape, sizeof d.shape);
    return br_low_buffer_add(l, &d);
}

int64_t
br_low_output(br_lower *l, int32_t tensor)
{
    br_low_tensor *t = &l->tensors[tensor];

    if (l->recipe.open && tensor == l->recipe.result)
        t->buffer = l->recipe.out;
    else
        t->buffer = add_tensor(l, tensor);
    return t->buffer;
}

int64_t
br_low_counter(br_lower *l, const char *note)
{
    return l->recipe.open ? -1 : br_mega_add_counter(&l->b, br_text_z(note));
}

int64_t
br_low_weight(br_lower *l, int32_t tensor)
{
    br_low_tensor *t = &l->tensors[tensor];

    if (t->buffer < 0)
        t->buffer = add_tensor(l, tensor);
    return t->buffer;
}

/* Integers in the logical shape [N, K], scales [N, groups of K]. */
void
br_low_quant_weight(br_lower *l, int32_t tensor, int64_t *weight,
                    int64_t *scales)
{
    const br_net_tensor *t = &l->net->tensors.at[tensor];
    br_low_tensor *s = &l->tensors[tensor];

    if (s->buffer < 0) {
        br_low_buffer d = {.name = t->name,
                           .kind = BR_MBK_WEIGHT,
                           .dtype =
                               l->net->quant_bits == 4 ? BR_MDT_I4 : BR_MDT_I8,
                           .rank = 2,
                           .shape = {t->shape[0], t->shape[1]},
                           .source = t->name};
        const char *name;

        s->buffer = br_low_buffer_add(l, &d);
        name = br_low_text(l, "%s.scales", t->name);
        d.name = d.source = name;
        d.dtype = BR_MDT_F16;
        d.shape[1] = (t->shape[1] - 1) / l->net->quant_group + 1;
        s->scales = br_low_buffer_add(l, &d);
    }
    *weight = s->buffer;
    *scales = s->scales;
}

/* ---- waits --------------------------------------------------------------- */

static void
put_wait(br_lower *l, br_mega_wait *waits, uint32_t *n, br_mega_wait w)
{
    /* The reference never meets one counter twice; we may, in a group. */
    for (uint32_t i = 0; i < *n; i++)
        if (waits[i].counter == w.counter)
            return;
    if (*n == BR_MEGA_MAX_WAITS) {
        br_low_fail(l, br_fail(l->st, BR_E_LIMIT,
                               "lowering: a task would need more than %d waits",
                               BR_MEGA_MAX_WAITS));
        return;
    }
    waits[(*n)++] = w;
}

void
br_low_wait(br_lower *l, br_low_task *t, int32_t tensor)
{
    const br_low_tensor *s = &l->tensors[tensor];
    br_mega_wait w = {s->counter, s->threshold};

    if (s->counter < 0)
        return;
    if (l->recipe.open)
        put_wait(l, l->recipe.waits, &l->recipe.n_waits, w);
    else
        put_wait(l, t->waits, &t->n_waits, w);
}

void
br_low_ready(br_lower *l, int32_t tensor, int64_t counter, int64_t n)
{
    l->tensors[tensor].counter = counter; /* -1 inside a recipe */
    l->tensors[tensor].threshold = n;
}

/* ---- tasks --------------------------------------------------------------- */

static void emit_step(br_lower *l, const br_low_task *t);

/* One of the tasks that a node is cut into. */
static bool
is_tile(const br_low_task *t)
{
    return t->op == BR_MOP_GEMV_TILE || t->op == BR_MOP_GEMM_TILE ||
           t->op == BR_MOP_ATTENTION_TILE;
}

void
br_low_emit(br_lower *l, const br_low_task *t)
{
    br_mega_task d = {.op = (uint8_t)t->op,
                      .in = t->in,
                      .n_in = t->n_in,
                      .out = &t->out,
                      .n_out = 1,
                      .waits = t->waits,
                      .n_waits = t->n_waits,
                      .out_counter = t->counter,
                      .sm = t->fixed_sm ? t->sm : BR_MEGA_SM_NONE,
                      .est_bytes = t->est_bytes,
                      .est_flops = t->est_flops};
    int32_t unit = BR_NET_NONE;

    if (!br_low_ok(l))
        return;
    if (l->recipe.open) {
        emit_step(l, t);
        return;
    }
    d.label = t->label ? t->label : br_str_z(&l->text);
    d.label_n = (uint32_t)(t->label ? strlen(t->label) : l->text.n);
    d.params = br_mega_params(&l->b, t->params, t->n_params);
    br_mega_add_task(&l->b, &d);
    if (l->unit != BR_NET_NONE)
        unit = l->unit + (is_tile(t) ? l->slot++ : 0);
    if (!br_vec_push(&l->units, unit))
        out_of_memory(l);
}

/* ---- recipes ------------------------------------------------------------- */

static const char *
recipe_dtype(br_mega_dtype d)
{
    switch (d) {
    case BR_MDT_F32: return "float32";
    case BR_MDT_F16: return "float16";
    case BR_MDT_BF16: return "bfloat16";
    case BR_MDT_I32: return "int32";
    case BR_MDT_I8: return "int8";
    case BR_MDT_F8E4M3:
    case BR_MDT_F8E5M2:
    case BR_MDT_I4:
    case BR_MDT_U8:
    case BR_MDT_BOOL:
    case BR_MDT_COUNT: break;
    }
    return NULL; /* lower_fuse.c lets no such tensor into a recipe */
}

static br_json *
node(br_lower *l, br_json_kind kind)
{
    br_json *v = br_json_new(&l->b.prog->arena, kind);

    if (!v)
        out_of_memory(l);
    return v;
}

static void
put(br_lower *l, br_json *obj, const char *key, br_json *v)
{
    if (br_low_ok(l) && !br_json_put(&l->b.prog->arena, obj, key, v))
        out_of_memory(l);
}

static br_json *
integer(br_lower *l, int64_t v)
{
    return br_json_new_i64(&l->b.prog->arena, v);
}

static br_json *
string(br_lower *l, const char *s)
{
    return br_json_new_str(&l->b.prog->arena, br_text_z(s));
}

/* {"in": k} of the FUSED task, which gets the input if it has it not yet, or
 * {"s": j}. */
static void
put_arg(br_lower *l, br_json *args, int64_t id)
{
    br_low_recipe *r = &l->recipe;
    br_json *arg = node(l, BR_J_OBJ);
    uint32_t k = 0;

    if (!arg)
        return;
    if (IS_SCRATCH(id)) {
        put(l, arg, "s", integer(l, SCRATCH_OF(id)));
    } else {
        while (k < r->n_in && r->in[k] != id)
            k++;
        br_check(k < BR_MEGA_MAX_INPUTS); /* can_fuse counted them */
        if (k == r->n_in)
            r->in[r->n_in++] = id;
        put(l, arg, "in", integer(l, k));
    }
    if (!br_json_append(args, arg))
        out_of_memory(l);
}

static void
put_step_out(br_lower *l, br_json *step, int64_t id)
{
    const br_mega_buffer *s;
    br_json *shape;

    if (!IS_SCRATCH(id)) {
        put(l, step, "out", string(l, "final"));
        return;
    }
    s = &l->recipe.scratch.at[SCRATCH_OF(id)];
    put(l, step, "out", integer(l, SCRATCH_OF(id)));
    shape = node(l, BR_J_ARR);
    for (uint32_t i = 0; shape && i < s->rank; i++)
        if (!br_json_append(shape, integer(l, s->shape[i])))
            out_of_memory(l);
    put(l, step, "out_shape", shape);
    put(l, step, "out_dtype", string(l, recipe_dtype((br_mega_dtype)s->dtype)));
}

static void
emit_step(br_lower *l, const br_low_task *t)
{
    br_json *step = node(l, BR_J_OBJ), *args = node(l, BR_J_ARR);

    if (!step || !args)
        return;
    put(l, step, "op", integer(l, t->op));
    for (uint32_t i = 0; i < t->n_in && br_low_ok(l); i++)
        put_arg(l, args, t->in[i]);
    put(l, step, "args", args);
    put_step_out(l, step, t->out);
    put(l, step, "params", br_mega_params(&l->b, t->params, t->n_params));
    if (br_low_ok(l) && !br_json_append(l->recipe.steps, step))
        out_of_memory(l);
    l->recipe.est_bytes += t->est_bytes;
    l->recipe.est_flops += t->est_flops;
}

void
br_low_recipe_open(br_lower *l, int32_t result)
{
    br_low_recipe *r = &l->recipe;

    r->out = add_tensor(l, result);
    r->result = result;
    r->n_in = r->n_waits = 0;
    r->scratch.n = 0;
    r->est_bytes = r->est_flops = 0;
    r->steps = node(l, BR_J_ARR);
    r->open = true;
}

void
br_low_recipe_close(br_lower *l, const char *label, int64_t counter)
{
    br_low_recipe *r = &l->recipe;
    br_json *recipe, *params;
    br_mega_task d = {.op = BR_MOP_FUSED,
                      .in = r->in,
                      .n_in = r->n_in,
                      .out = &r->out,
                      .n_out = 1,
                      .waits = r->waits,
                      .n_waits = r->n_waits,
                      .out_counter = counter,
                      .sm = BR_MEGA_SM_NONE,
                      .label = label,
                      .label_n = (uint32_t)strlen(label),
                      .est_bytes = r->est_bytes,
                      .est_flops = r->est_flops};

    r->open = false;
    recipe = node(l, BR_J_OBJ);
    if (!br_low_ok(l))
        return;
    put(l, recipe, "steps", r->steps);
    params = br_mega_params(&l->b, NULL, 0);
    if (!br_low_ok(l))
        return;
    br_mega_params_put(&l->b, params, BR_MP_recipe, recipe);
    d.params = params;
    br_mega_add_task(&l->b, &d);
    if (br_low_ok(l) && !br_vec_push(&l->units, BR_NET_NONE))
        out_of_memory(l);
    br_low_ready(l, r->result, counter, 1);
}
