/* footprint.c - the footprint of one operand of one task, for those who look
 * at a few tasks. The check goes through all of them in a loop of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/step.h"

bool
br_op_param(br_op_call *c, int p, const br_json *v)
{
    switch (br_mega_param_type(p)) {
    case 'I':
    case 'E':
        if (v->kind != BR_J_INT || v->i < INT32_MIN || v->i > INT32_MAX)
            return false;
        c->i[p] = v->i;
        break;
    case 'F':
        if (v->kind == BR_J_INT)
            c->f[p - BR_MP_eps] = (double)v->i;
        else if (v->kind == BR_J_FLOAT)
            c->f[p - BR_MP_eps] = v->f;
        else if (v->kind == BR_J_BOOL)
            c->f[p - BR_MP_eps] = v->b;
        else if (v->kind != BR_J_BIGINT ||
                 !br_json_to_f64((br_text){v->s, v->n}, &c->f[p - BR_MP_eps]))
            return false;
        break;
    default: break;
    }
    c->mask |= 1u << p;
    return true;
}

/* Operand k of the task: input k, or beyond the inputs its output. */
static int64_t
operand_id(const br_mega_task *t, uint32_t k)
{
    return k < t->n_in ? t->in[k] : t->out[k - t->n_in];
}

static bool
counts_fit(const br_mega_task *t, const br_mega_opinfo *info)
{
    return info->name && t->n_in <= BR_MEGA_MAX_INPUTS &&
           t->n_out <= BR_MEGA_MAX_OUTPUTS && (int)t->n_in >= info->min_in &&
           (info->n_out < 0 || (int)t->n_out == info->n_out) &&
           (info->max_in < 0 || (int)t->n_in <= info->max_in);
}

/* v[k]: the value of operand k; equal buffers, equal pointers. */
static bool
call_of(br_op_call *c, const br_mega_prog *p, const br_mega_task *t,
        const br_op_val *const *v)
{
    uint32_t req = br_mega_opinfo_of(t->op)->req_mask;
    const br_json *m;

    c->op = t->op;
    c->n_in = t->n_in;
    c->mask = 0;
    c->graph = p->graph;
    c->task = t;
    for (uint32_t k = 0; k < t->n_out; k++)
        c->outs[k] = v[t->n_in + k];
    c->out = t->n_out ? v[t->n_in] : NULL;
    for (uint32_t k = 0; k < t->n_in + t->n_out; k++)
        if (!v[k]->ok)
            return false;
    for (uint32_t k = 0; k < t->n_in; k++)
        c->in[k] = v[k];
    for (m = t->params->child; m; m = m->next)
        if (m->tag && !br_op_param(c, m->tag - 1, m))
            return false;
    return (c->mask & req) == req && br_op_check(c);
}

static bool
touched(const br_op_call *c, uint32_t operand, bool write, br_mega_rect *out)
{
    const br_op_val *v = write ? c->out : c->in[operand];

    if (write && br_mega_is_step(c->op)) {
        *out = c->ws[operand];
        return true;
    }
    if (!write && (c->unread >> operand & 1))
        return false;
    *out = (br_mega_rect){0, v->rows, 0, v->cols};
    if (write && (c->partial & BR_OP_PART_OUT))
        *out = c->w;
    if (!write && (c->partial >> operand & 1))
        *out = c->r[operand];
    return true;
}

bool
br_op_footprint(const br_mega_prog *p, const br_mega_task *t,
                const br_op_val *vals, uint32_t operand, bool write,
                br_mega_rect *out)
{
    const br_op_val *v[BR_MEGA_MAX_INPUTS + BR_MEGA_MAX_OUTPUTS];
    br_op_call c;

    if (operand >= (write ? t->n_out : t->n_in) ||
        !counts_fit(t, br_mega_opinfo_of(t->op)))
        return false;
    for (uint32_t k = 0; k < t->n_in + t->n_out; k++)
        v[k] = &vals[operand_id(t, k)];
    return call_of(&c, p, t, v) && touched(&c, operand, write, out);
}

bool
br_mega_footprint(const br_mega_prog *p, const br_mega_task *t,
                  uint32_t operand, bool write, br_mega_rect *out)
{
    br_op_val vals[BR_MEGA_MAX_INPUTS + BR_MEGA_MAX_OUTPUTS];
    const br_op_val *v[BR_MEGA_MAX_INPUTS + BR_MEGA_MAX_OUTPUTS];
    br_op_call c;

    if (operand >= (write ? t->n_out : t->n_in) ||
        !counts_fit(t, br_mega_opinfo_of(t->op)))
        return false;
    for (uint32_t k = 0; k < t->n_in + t->n_out; k++) {
        int64_t id = operand_id(t, k);

        v[k] = &vals[k];
        br_op_val_of(&vals[k], &p->buffers[id]);
        for (uint32_t j = 0; j < k; j++)
            if (operand_id(t, j) == id)
                v[k] = v[j];
    }
    return call_of(&c, p, t, v) && touched(&c, operand, write, out);
}
