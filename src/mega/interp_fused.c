/* interp_fused.c - FUSED: a recipe of ops over scratch that only it sees.
 *
 *   {"steps": [{"op": 11, "args": [{"in": 0}, {"in": 1}], "out": 0,
 *               "out_shape": [1, 16], "out_dtype": "float32"},
 *              {"op": 3, "args": [{"s": 0}, {"in": 2}], "out": "final",
 *               "params": {"eps": 1e-05, "hidden": 16}}]}
 *
 * {"in": k} is input k of the task, {"s": j} what an earlier step left in
 * scratch j. "final" (or -1) is the task's output. Scratch begins as zeros, of
 * out_shape (default: that of the first argument) and out_dtype (likewise), so
 * a step that rounds to the dtype of the buffer it replaces gives the bits of
 * the unfused tasks. Recipes do not nest.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/interp_int.h"

#include <string.h>

typedef struct slot {
    int64_t index;
    br_vmt *t;
} slot;

typedef struct fused {
    br_vm_call *task;
    br_vm_call c; /* of the step in hand */
    slot *slots;
    int64_t n_slots;
    bool final;
} fused;

static int
dtype_of(const br_json *v)
{
    static const struct {
        const char *name;
        int dtype;
    } rows[] = {
        {"float32", BR_MDT_F32},   {"float16", BR_MDT_F16},
        {"bfloat16", BR_MDT_BF16}, {"float64", BR_DT_F64},
        {"int8", BR_MDT_I8},       {"int32", BR_MDT_I32},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++)
        if (v->kind == BR_J_STR && strlen(rows[i].name) == v->n &&
            memcmp(rows[i].name, v->s, v->n) == 0)
            return rows[i].dtype;
    return -1;
}

static br_vmt *
find(const fused *f, int64_t index)
{
    for (int64_t i = f->n_slots - 1; i >= 0; i--)
        if (f->slots[i].index == index)
            return f->slots[i].t;
    return NULL;
}

/* A non-negative integer member, or -1. */
static int64_t
index_of(const br_json *v)
{
    return v && v->kind == BR_J_INT && v->i >= 0 ? v->i : -1;
}

static br_code
arg(fused *f, const br_json *v, uint32_t k)
{
    const br_json *in, *s;
    int64_t i;

    if (k >= BR_MEGA_MAX_INPUTS)
        return br_vm_fail(&f->c, BR_E_FORMAT, "more than %d args",
                          BR_MEGA_MAX_INPUTS);
    if (v->kind != BR_J_OBJ || v->n != 1)
        return br_vm_fail(&f->c, BR_E_FORMAT,
                          "arg %u is not {\"in\": k} or {\"s\": j}", k);
    in = br_json_get(v, "in");
    s = br_json_get(v, "s");
    i = index_of(in ? in : s);
    if (in && i >= 0 && i < f->task->n_in)
        f->c.in[k] = f->task->in[i];
    else if (s && i >= 0 && find(f, i))
        f->c.in[k] = find(f, i);
    else
        return br_vm_fail(&f->c, BR_E_FORMAT,
                          "arg %u: no such input, or no earlier step has "
                          "written that scratch",
                          k);
    f->c.n_in = k + 1;
    return BR_OK;
}

static br_code
shape_of(fused *f, const br_json *v, br_vmt *t)
{
    const br_json *d;

    if (v->kind != BR_J_ARR || v->n > BR_MEGA_MAX_RANK)
        return br_vm_fail(&f->c, BR_E_FORMAT,
                          "out_shape is no list of at most %d sizes",
                          BR_MEGA_MAX_RANK);
    t->rank = 0;
    for (d = v->child; d; d = d->next) {
        if (d->kind != BR_J_INT)
            return br_vm_fail(&f->c, BR_E_FORMAT, "out_shape holds %s",
                              br_json_kind_name((br_json_kind)d->kind));
        t->shape[t->rank++] = d->i;
    }
    return BR_OK;
}

/* A fresh scratch for the step: zeros. */
static br_code
scratch(fused *f, const br_json *step, int64_t index)
{
    const br_json *shape = br_json_get(step, "out_shape");
    const br_json *dtype = br_json_get(step, "out_dtype");
    br_vmt *t = br_arena_zero(f->c.tmp, 1, sizeof *t);

    if (!t)
        return br_vm_fail(&f->c, BR_E_OOM, "no memory for scratch");
    if (f->c.n_in) {
        memcpy(t->shape, f->c.in[0]->shape, sizeof t->shape);
        t->rank = f->c.in[0]->rank;
        t->dtype = f->c.in[0]->dtype;
    } else if (!shape || !dtype) {
        return br_vm_fail(&f->c, BR_E_FORMAT,
                          "without args it needs out_shape and out_dtype");
    }
    if (dtype && dtype->kind != BR_J_NULL) {
        int dt = dtype_of(dtype);

        if (dt < 0)
            return br_vm_fail(&f->c, BR_E_FORMAT, "unknown out_dtype");
        t->dtype = (uint8_t)dt;
    }
    if (shape && shape->kind != BR_J_NULL)
        BR_TRY(shape_of(f, shape, t));
    if (!br_vm_layout(t))
        return br_vm_fail(&f->c, BR_E_FORMAT, "out_shape is not possible");
    BR_TRY(br_vm_work(&f->c, t->numel));
    t->id = -1;
    t->clobbered_by = -1;
    t->name = "";
    t->data = br_arena_zero(f->c.tmp, BR_MAX(t->nbytes, (size_t)1), 1);
    if (!t->data)
        return br_vm_fail(&f->c, BR_E_OOM, "no memory for %zu bytes of scratch",
                          t->nbytes);
    f->slots[f->n_slots++] = (slot){index, t};
    f->c.out[0] = t;
    return BR_OK;
}

static br_code
output(fused *f, const br_json *step)
{
    const br_json *out = br_json_get(step, "out");

    f->c.n_out = 1;
    if (out && ((out->kind == BR_J_STR && strcmp(out->s, "final") == 0) ||
                (out->kind == BR_J_INT && out->i == -1))) {
        f->c.out[0] = f->task->out[0];
        f->final = true;
        return BR_OK;
    }
    if (index_of(out) < 0)
        return br_vm_fail(&f->c, BR_E_FORMAT,
                          "out is not \"final\" or a scratch index");
    return scratch(f, step, index_of(out));
}

static br_code
run_step(fused *f, const br_json *step)
{
    const br_json *op, *args, *params;
    uint32_t k = 0;

    f->c.op = BR_MOP_FUSED;
    if (step->kind != BR_J_OBJ)
        return br_vm_fail(&f->c, BR_E_FORMAT, "not an object");
    op = br_json_get(step, "op");
    args = br_json_get(step, "args");
    params = br_json_get(step, "params");
    if (!op || op->kind != BR_J_INT || op->i < 0 || op->i >= BR_MOP_STEP ||
        op->i == BR_MOP_FUSED || !br_mega_opinfo_of((int)op->i)->name)
        return br_vm_fail(&f->c, BR_E_FORMAT, "op is no opcode that can nest");
    f->c.op = (int)op->i;
    f->c.n_in = 0;
    if (args && args->kind != BR_J_ARR)
        return br_vm_fail(&f->c, BR_E_FORMAT, "args is not a list");
    for (const br_json *a = args ? args->child : NULL; a; a = a->next)
        BR_TRY(arg(f, a, k++));
    if (params && params->kind != BR_J_OBJ)
        return br_vm_fail(&f->c, BR_E_FORMAT, "params is not an object");
    f->c.params = params; /* NULL: none */
    BR_TRY(output(f, step));
    return br_vm_dispatch(&f->c);
}

br_code
br_vmop_FUSED(br_vm_call *c)
{
    const br_json *recipe = br_json_get(c->params, "recipe"), *steps, *s;
    fused f = {.task = c, .c = *c};

    steps = recipe && recipe->kind == BR_J_OBJ ? br_json_get(recipe, "steps")
                                               : NULL;
    if (!steps || steps->kind != BR_J_ARR || steps->n == 0)
        return br_vm_fail(c, BR_E_FORMAT, "recipe.steps is no list of steps");
    if (steps->n > BR_VM_MAX_STEPS)
        return br_vm_fail(c, BR_E_LIMIT, "%u steps, at most %d", steps->n,
                          BR_VM_MAX_STEPS);
    f.slots = br_arena_get(c->tmp, steps->n * sizeof *f.slots);
    if (!f.slots)
        return br_vm_fail(c, BR_E_OOM, "no memory for %u steps", steps->n);
    for (s = steps->child; s; s = s->next) {
        f.c.step++;
        BR_TRY(run_step(&f, s));
    }
    if (!f.final)
        return br_vm_fail(c, BR_E_FORMAT,
                          "the recipe never writes its final output");
    return BR_OK;
}
