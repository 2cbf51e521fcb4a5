/* check_recipe.c - the recipe of a FUSED task, proved step by step.
 *
 *   {"steps": [{"op": 11, "args": [{"in": 0}, {"s": 2}], "out": 3,
 *               "params": {..}, "out_shape": [1, 16], "out_dtype": "float32"},
 *              {.., "out": "final"}]}
 *
 * A step is an op of the table on the task's inputs ("in") and on scratch that
 * an earlier step wrote ("s"); each meets the rule that it would meet as a
 * task (optype.c). Every step writes the whole of its output, so scratch holds
 * no surprise, and some step writes the task's output. Without a shape scratch
 * looks like the step's first argument. Not allowed: FUSED inside FUSED,
 * KV_APPEND (a cache is no scratch), reading the task's own output.
 *
 * Cost      O(steps * (inputs + log steps)); at most 1024 steps. A tree that
 *           the task before had too (load.c), on operands of the same shapes,
 *           is not looked at again: 100,000 of those take 15 ms, not 70.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mega/check_sound.h"
#include "mega/dtype.h"

enum { MAX_STEPS = 1024, MAX_SCRATCH = 1024 };

/* Kept from one recipe to the next: written by recipe number `by` or not at
 * all. */
typedef struct br_scratch {
    int64_t shape[BR_MEGA_MAX_RANK];
    br_op_val val;
    uint32_t by;
} scratch;

typedef struct recipe {
    br_snd *s;
    const br_op_call *task;
    scratch *slot; /* [MAX_SCRATCH] */
    bool final;
    int step;
    char *why;
} recipe;

BR_PRINTF(2, 3)
static bool
bad(recipe *r, const char *fmt, ...)
{
    int n = snprintf(r->why, 200, "recipe, step %d: ", r->step);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->why + n, 200 - (size_t)n, fmt, ap);
    va_end(ap);
    return false;
}

static bool
small_int(const br_json *v, int64_t lo, int64_t hi, int64_t *out)
{
    if (!v || v->kind != BR_J_INT || v->i < lo || v->i >= hi)
        return false;
    *out = v->i;
    return true;
}

static bool
take_arg(recipe *r, const br_json *a, const br_op_val **out)
{
    const br_json *in, *s;
    int64_t i;

    if (a->kind != BR_J_OBJ || a->n != 1)
        return bad(r, "an argument is {\"in\": k} or {\"s\": j}");
    in = br_json_get(a, "in");
    s = br_json_get(a, "s");
    if (in) {
        if (!small_int(in, 0, r->task->n_in, &i))
            return bad(r, "\"in\" must be an input, 0 to %u",
                       r->task->n_in - 1);
        *out = r->task->in[i];
        return true;
    }
    if (!s || !small_int(s, 0, MAX_SCRATCH, &i))
        return bad(r, "\"s\" must be a scratch index, 0 to %d",
                   MAX_SCRATCH - 1);
    if (r->slot[i].by != r->s->recipes)
        return bad(r, "reads scratch %lld before a step has written it",
                   (long long)i);
    *out = &r->slot[i].val;
    return true;
}

static bool
take_args(recipe *r, const br_json *step, br_op_call *c)
{
    const br_mega_opinfo *op = br_mega_opinfo_of(c->op);
    const br_json *args = br_json_get(step, "args"), *a;

    if (!args || args->kind != BR_J_ARR || args->n > BR_MEGA_MAX_INPUTS ||
        (int)args->n < op->min_in ||
        (op->max_in >= 0 && (int)args->n > op->max_in))
        return bad(r, "%s needs \"args\" of %d to %d", op->name, op->min_in,
                   op->max_in < 0 ? BR_MEGA_MAX_INPUTS : op->max_in);
    c->n_in = 0;
    for (a = args->child; a; a = a->next, c->n_in++)
        if (!take_arg(r, a, &c->in[c->n_in]))
            return false;
    return true;
}

static bool
take_params(recipe *r, const br_json *step, br_op_call *c)
{
    const br_mega_opinfo *op = br_mega_opinfo_of(c->op);
    const br_json *params = br_json_get(step, "params"), *m;
    int p;

    c->mask = 0;
    if (params && params->kind != BR_J_OBJ)
        return bad(r, "\"params\" must be an object");
    for (m = params ? params->child : NULL; m; m = m->next) {
        p = br_mega_param_find((br_text){m->key, m->key_n});
        if (p < 0)
            return bad(r, "param '%.40s' is not known", m->key);
        if (p == BR_MP_recipe || !br_op_param(c, p, m))
            return bad(r, "param '%s' has a wrong type", m->key);
        if (p >= BR_MP_eps && !isfinite(c->f[p - BR_MP_eps]))
            return bad(r, "param '%s' is not finite", m->key);
    }
    for (uint32_t i = 0; i < op->n_req; i++)
        if (!(c->mask >> op->req[i] & 1))
            return bad(r, "%s lacks the param '%s'", op->name,
                       br_mega_param_name(op->req[i]));
    return true;
}

static int
dtype_of(const br_json *v)
{
    static const struct {
        const char *name;
        int dtype;
    } row[] = {
        {"float32", BR_MDT_F32},   {"float16", BR_MDT_F16},
        {"bfloat16", BR_MDT_BF16}, {"float64", BR_DT_F64},
        {"int8", BR_MDT_I8},       {"int32", BR_MDT_I32},
    };

    for (size_t i = 0; v->kind == BR_J_STR && i < BR_COUNT(row); i++)
        if (br_text_is((br_text){v->s, v->n}, row[i].name))
            return row[i].dtype;
    return -1;
}

/* The shape and dtype of the scratch that this step writes, into fresh. */
static bool
shape_scratch(recipe *r, const br_json *step, const br_op_call *c,
              scratch *fresh)
{
    const br_json *shape = br_json_get(step, "out_shape"), *d;
    const br_json *dtype = br_json_get(step, "out_dtype");
    br_mega_buffer as = {.dtype = BR_MDT_F32, .shape = fresh->shape};
    int dt = c->in[0]->dtype;

    if (dtype && dtype->kind != BR_J_NULL)
        dt = dtype_of(dtype);
    if (dt < 0 || dt == BR_MDT_I4)
        return bad(r, "\"out_dtype\" is none that scratch can have");
    if (shape && shape->kind != BR_J_NULL) {
        if (shape->kind != BR_J_ARR || shape->n > BR_MEGA_MAX_RANK)
            return bad(r, "\"out_shape\" must be a list of at most %d",
                       BR_MEGA_MAX_RANK);
        for (d = shape->child; d; d = d->next)
            if (!small_int(d, 1, INT32_MAX, &fresh->shape[as.rank++]))
                return bad(r, "\"out_shape\" must hold positive integers");
    } else {
        as.rank = c->in[0]->rank;
        memcpy(fresh->shape, c->in[0]->shape, as.rank * sizeof(int64_t));
    }
    br_op_val_of(&fresh->val, &as);
    fresh->val.dtype = (uint8_t)dt;
    return fresh->val.ok || bad(r, "\"out_shape\" is too large");
}

static bool
take_step(recipe *r, const br_json *step)
{
    const br_json *out;
    br_op_call c;
    int64_t op, slot = -1;
    scratch fresh = {0};

    if (step->kind != BR_J_OBJ)
        return bad(r, "must be an object");
    if (!small_int(br_json_get(step, "op"), 0, BR_MOP_LIMIT, &op) ||
        !br_mega_opinfo_of((int)op)->name)
        return bad(r, "\"op\" is no opcode");
    if (op == BR_MOP_FUSED || op == BR_MOP_KV_APPEND || op == BR_MOP_NOP ||
        op >= BR_MOP_STEP)
        return bad(r, "%s cannot be a step", br_mega_op_name((int)op));
    c.op = (int)op;
    if (!take_args(r, step, &c) || !take_params(r, step, &c))
        return false;
    out = br_json_get(step, "out");
    if (out && ((out->kind == BR_J_INT && out->i == -1) ||
                (out->kind == BR_J_STR &&
                 br_text_is((br_text){out->s, out->n}, "final")))) {
        c.out = r->task->out;
        r->final = true;
    } else {
        if (!small_int(out, 0, MAX_SCRATCH, &slot))
            return bad(r,
                       "\"out\" must be \"final\" or a scratch index, 0 to "
                       "%d",
                       MAX_SCRATCH - 1);
        if (!shape_scratch(r, step, &c, &fresh))
            return false;
        c.out = &fresh.val;
    }
    if (!br_op_check(&c))
        return bad(r, "%s: %s", br_mega_op_name((int)op), c.why);
    if (c.partial & BR_OP_PART_OUT)
        return bad(r, "%s writes only a part of its output",
                   br_mega_op_name((int)op));
    if (slot >= 0) {
        r->slot[slot] = fresh;
        r->slot[slot].val.shape = r->slot[slot].shape;
        r->slot[slot].by = r->s->recipes;
    }
    return true;
}

static bool
alike(const br_op_val *a, const br_op_val *b)
{
    return a->rank == b->rank && a->dtype == b->dtype && a->kind == b->kind &&
           memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* Would the steps be judged as those of the latest good task were? */
static bool
judged(br_snd *s, const br_op_call *task, const br_json *steps)
{
    const br_judged *j = &s->judged;
    bool same =
        j->steps == steps && j->n_in == task->n_in && alike(j->out, task->out);

    for (uint32_t i = 0; same && i < task->n_in; i++)
        same = alike(j->in[i], task->in[i]);
    return same;
}

bool
br_chk_recipe(br_snd *s, const br_op_call *task, const br_json *json,
              char why[200])
{
    recipe r = {.s = s, .task = task, .why = why};
    const br_json *steps = NULL, *step;

    if (json && json->kind == BR_J_OBJ)
        steps = br_json_get(json, "steps");
    if (!steps || steps->kind != BR_J_ARR || steps->n == 0 ||
        steps->n > MAX_STEPS) {
        snprintf(why, 200, "the recipe needs a list of 1 to %d \"steps\"",
                 MAX_STEPS);
        return false;
    }
    if (judged(s, task, steps))
        return true;
    if (!s->scratch)
        s->scratch = br_chk_zero(s->k, MAX_SCRATCH, sizeof *s->scratch);
    r.slot = s->scratch;
    s->recipes++;
    if (!r.slot) {
        snprintf(why, 200, "out of memory");
        return br_snd_no_memory(s);
    }
    for (step = steps->child; step; step = step->next, r.step++)
        if (!take_step(&r, step))
            return false;
    if (!r.final)
        snprintf(why, 200, "no step of the recipe writes \"final\"");
    s->judged = (br_judged){
        .steps = r.final ? steps : NULL, .out = task->out, .n_in = task->n_in};
    memcpy(s->judged.in, task->in, task->n_in * sizeof(task->in[0]));
    return r.final;
}
