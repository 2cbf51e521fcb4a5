/* check_task.c - the rules about one task, in the reference's words and order.
 *
 * Both modes come here: the compatible one for every task, the sound one only
 * for tasks that its own pass found wanting. The order of the texts within a
 * task is part of what is compared with the reference.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/check_compat.h"
#include "mega/check_int.h"
#include "mega/pyrepr.h"

/* In compatible mode ids are what the file says, in sound mode indices. */
static bool
known_buffer(const br_chk *k, uint32_t t, uint32_t i, bool write)
{
    const br_mega_task *task = &k->p->tasks[t];
    int64_t id;

    if (k->compat)
        return br_cm_known_buffer(k->compat, t, i, write);
    id = write ? task->out[i] : task->in[i];
    return id >= 0 && (uint64_t)id < k->p->n_buffers;
}

static bool
known_counter(const br_chk *k, uint32_t t, int64_t wait, int64_t id)
{
    if (k->compat)
        return br_cm_known_counter(k->compat, t, wait);
    return id >= 0 && (uint64_t)id < k->p->n_counters;
}

static void
refs(br_chk *k, uint32_t t)
{
    const br_mega_task *task = &k->p->tasks[t];

    for (uint32_t i = 0; i < task->n_in; i++)
        if (!known_buffer(k, t, i, false)) {
            br_put_task(&k->text, k->p, t);
            br_str_puts(&k->text, " reads missing buffer ");
            br_pv_put(&k->text, br_pv_in(k->p, t, i));
            br_chk_take_error(k);
        }
    for (uint32_t i = 0; i < task->n_out; i++)
        if (!known_buffer(k, t, i, true)) {
            br_put_task(&k->text, k->p, t);
            br_str_puts(&k->text, " writes missing buffer ");
            br_pv_put(&k->text, br_pv_out(k->p, t, i));
            br_chk_take_error(k);
        }
    if (!known_counter(k, t, -1, task->out_counter)) {
        br_put_task(&k->text, k->p, t);
        br_str_puts(&k->text, " increments missing counter ");
        br_pv_put(&k->text, br_pv_ctr(k->p, t));
        br_chk_take_error(k);
    }
}

static void
put_id(br_chk *k, uint32_t t)
{
    br_str_puts(&k->text, "task ");
    br_pv_put(&k->text, br_pv_id(k->p, t));
}

static void
put_id_op(br_chk *k, uint32_t t)
{
    put_id(k, t);
    br_str_printf(&k->text, " (%s)", br_mega_op_name(k->p->tasks[t].op));
}

static void
caps(br_chk *k, uint32_t t)
{
    const br_mega_task *task = &k->p->tasks[t];
    const struct {
        uint32_t n, max;
        const char *what, *cap;
    } row[] = {
        {task->n_in, BR_MEGA_MAX_INPUTS, "inputs", "INPUTS"},
        {task->n_out, BR_MEGA_MAX_OUTPUTS, "outputs", "OUTPUTS"},
        {task->n_waits, BR_MEGA_MAX_WAITS, "waits", "WAITS"},
    };

    for (size_t i = 0; i < BR_COUNT(row); i++)
        if (row[i].n > row[i].max) {
            put_id(k, t);
            br_str_printf(&k->text, " has %u %s > ABI_MAX_%s=%u", row[i].n,
                          row[i].what, row[i].cap, row[i].max);
            br_chk_take_error(k);
        }
}

/* False: the reference indexes its list with something that is no index. */
static bool
rank_of(br_chk *k, uint32_t t, uint32_t i, bool write)
{
    int64_t at = write ? k->p->tasks[t].out[i] : k->p->tasks[t].in[i];
    uint32_t rank;

    if (!known_buffer(k, t, i, write))
        return true;
    if (k->compat && !br_cm_buffer_at(k->compat, t, i, write, &at))
        return false;
    rank = k->p->buffers[at].rank;
    if (rank > BR_MEGA_MAX_RANK) {
        put_id(k, t);
        br_str_puts(&k->text, " buffer ");
        br_pv_put(&k->text,
                  write ? br_pv_out(k->p, t, i) : br_pv_in(k->p, t, i));
        br_str_printf(&k->text, " rank %u > ABI_MAX_RANK=%d", rank,
                      BR_MEGA_MAX_RANK);
        br_chk_take_error(k);
    }
    return true;
}

static bool
ranks(br_chk *k, uint32_t t)
{
    for (uint32_t i = 0; i < k->p->tasks[t].n_in; i++)
        if (!rank_of(k, t, i, false))
            return false;
    for (uint32_t i = 0; i < k->p->tasks[t].n_out; i++)
        if (!rank_of(k, t, i, true))
            return false;
    return true;
}

static bool
is_threshold(br_pv v)
{
    if (v.j && v.j->kind == BR_J_BIGINT)
        return v.j->s[0] != '-';
    return v.j ? v.j->kind == BR_J_INT && v.j->i >= 1 : v.i >= 1;
}

void
br_chk_threshold(br_chk *k, uint32_t t, uint32_t i)
{
    br_put_task(&k->text, k->p, t);
    br_str_puts(&k->text, " threshold ");
    br_pv_put_repr(&k->text, br_pv_thr(k->p, t, i));
    br_str_puts(&k->text, " on counter ");
    br_pv_put(&k->text, br_pv_wait(k->p, t, i));
    br_str_puts(&k->text, " is not a positive static int");
    br_chk_take_error(k);
}

static void
waits(br_chk *k, uint32_t t)
{
    const br_mega_task *task = &k->p->tasks[t];

    for (uint32_t i = 0; i < task->n_waits; i++) {
        br_pv ctr = br_pv_wait(k->p, t, i);

        if (!known_counter(k, t, i, task->waits[i].counter)) {
            br_put_task(&k->text, k->p, t);
            br_str_puts(&k->text, " waits on missing counter ");
            br_pv_put(&k->text, ctr);
            br_chk_take_error(k);
        }
        if (!is_threshold(br_pv_thr(k->p, t, i)))
            br_chk_threshold(k, t, i);
    }
    for (uint32_t i = 0; i < task->n_waits; i++) {
        br_pv ctr = br_pv_ctr(k->p, t);

        if (!br_pv_eq(br_pv_wait(k->p, t, i), ctr))
            continue;
        br_put_task(&k->text, k->p, t);
        br_str_puts(&k->text, " waits on its OWN out_counter ");
        br_pv_put(&k->text, ctr);
        br_str_puts(&k->text, ", self-deadlock");
        br_chk_take_error(k);
    }
}

static void
arity(br_chk *k, uint32_t t)
{
    const br_mega_task *task = &k->p->tasks[t];
    const br_mega_opinfo *op = br_mega_opinfo_of(task->op);
    int n_in = (int)task->n_in, n_out = (int)task->n_out;

    if (n_in < op->min_in || (op->max_in != -1 && n_in > op->max_in)) {
        put_id_op(k, t);
        br_str_printf(&k->text, " arity: %d inputs, expected [%d,%d]", n_in,
                      op->min_in, op->max_in);
        br_chk_take_error(k);
    }
    if (op->n_out >= 0 && n_out != op->n_out) {
        put_id_op(k, t);
        br_str_printf(&k->text, " expected %d outputs, got %d", op->n_out,
                      n_out);
        br_chk_take_error(k);
    }
    for (uint32_t i = 0; i < op->n_req; i++)
        if (!(task->param_mask >> op->req[i] & 1)) {
            put_id_op(k, t);
            br_str_printf(&k->text, " missing required param '%s'",
                          br_mega_param_name(op->req[i]));
            br_chk_take_error(k);
        }
}

static void
wrong_param(br_chk *k, uint32_t t, const br_json *m, const char *want)
{
    put_id(k, t);
    br_str_puts(&k->text, " param '");
    br_str_put(&k->text, m->key, m->key_n);
    br_str_puts(&k->text, "'=");
    br_py_repr(&k->text, m);
    br_str_printf(&k->text, " must be %s", want);
    br_chk_take_error(k);
}

static void
params(br_chk *k, uint32_t t)
{
    const br_mega_task *task = &k->p->tasks[t];
    const br_json *m;

    for (m = task->params->child; m; m = m->next) {
        char type = m->tag ? br_mega_param_type(m->tag - 1) : 0;

        if (type == 'I' || (type == 'E' && !k->compat)) {
            if (m->kind != BR_J_INT || m->i < INT32_MIN || m->i > INT32_MAX)
                wrong_param(k, t, m, "an int32");
        } else if (type == 'F') {
            if (m->kind != BR_J_INT && m->kind != BR_J_FLOAT &&
                m->kind != BR_J_BOOL && m->kind != BR_J_BIGINT)
                wrong_param(k, t, m, "a real number");
        } else if (type != 'R' || k->compat || task->op != BR_MOP_FUSED) {
            /* The sound mode checks the recipe of a FUSED task, and so has
             * nothing to warn about. */
            put_id_op(k, t);
            br_str_puts(&k->text, " param '");
            br_str_put(&k->text, m->key, m->key_n);
            br_str_puts(&k->text, "' is not a known amk_params_t field (will "
                                  "not marshal to the device)");
            br_chk_take_warning(k);
        }
    }
}

bool
br_chk_task(br_chk *k, uint32_t t)
{
    refs(k, t);
    caps(k, t);
    if (!ranks(k, t))
        return false;
    waits(k, t);
    arity(k, t);
    params(k, t);
    return true;
}

/* thr > np, for an int of any size. */
static bool
exceeds(br_pv thr, uint32_t np)
{
    int64_t v;

    if (br_pv_int(thr, &v))
        return v > (int64_t)np;
    return thr.j->s[0] != '-'; /* BIGINT */
}

static bool
is_int(br_pv v)
{
    return !v.j || v.j->kind == BR_J_INT || v.j->kind == BR_J_BOOL ||
           v.j->kind == BR_J_BIGINT;
}

void
br_chk_task_waits(br_chk *k, uint32_t t, const uint32_t *np)
{
    br_str *s = &k->text;

    for (uint32_t i = 0; i < k->p->tasks[t].n_waits; i++) {
        br_pv ctr = br_pv_wait(k->p, t, i), thr = br_pv_thr(k->p, t, i);
        int64_t v;

        if (np[i] == 0) {
            br_put_task(s, k->p, t);
            br_str_puts(s, " waits on counter ");
            br_pv_put(s, ctr);
            br_str_puts(s, " with NO producer, unsatisfiable (deadlock)");
        } else if (!is_int(thr)) {
            continue;
        } else if (exceeds(thr, np[i])) {
            br_put_task(s, k->p, t);
            br_str_puts(s, " threshold ");
            br_pv_put(s, thr);
            br_str_printf(s, " > %u producers of counter ", np[i]);
            br_pv_put(s, ctr);
            br_str_puts(s, ", unsatisfiable (deadlock)");
        } else if (np[i] > 1 && !(br_pv_int(thr, &v) && v == (int64_t)np[i])) {
            br_put_task(s, k->p, t);
            br_str_puts(s, " partial wait threshold ");
            br_pv_put(s, thr);
            br_str_puts(s, " on shared counter ");
            br_pv_put(s, ctr);
            br_str_printf(s,
                          " (%u producers), ambiguous which-producer RACE; a "
                          "shared counter must be an all-join (threshold == "
                          "%u)",
                          np[i], np[i]);
        } else {
            continue;
        }
        br_chk_take_error(k);
    }
}

/* produced[b]: some task writes the buffer with the id of buffers[b]. */
void
br_chk_outputs(br_chk *k, const uint8_t *produced)
{
    for (uint32_t b = 0; b < k->p->n_buffers; b++) {
        if (k->p->buffers[b].kind != BR_MBK_IO_OUTPUT || produced[b])
            continue;
        br_str_puts(&k->text, "IO_OUTPUT buffer '");
        br_put_buffer(&k->text, k->p, b);
        br_str_puts(&k->text, "'(#");
        br_pv_put(&k->text,
                  br_pv_of(k->p, BR_MF_BUF_ID, b, 0, k->p->buffers[b].id));
        br_str_puts(&k->text, ") is never produced");
        br_chk_take_error(k);
    }
}

/* meta is an object here. A falsy gpu is no gpu. */
void
br_chk_gpu_label(br_chk *k)
{
    const br_json *gpu = br_json_get(k->p->meta, "gpu"), *name;

    if (!k->p->target || !gpu || !br_truthy(gpu))
        return;
    name = k->p->target[BR_MT_name];
    if (!name || br_pv_eq((br_pv){gpu, 0}, (br_pv){name, 0}))
        return;
    br_str_puts(&k->text, "meta['gpu']=");
    br_py_repr(&k->text, gpu);
    br_str_puts(&k->text, " != target.name=");
    br_py_repr(&k->text, name);
    br_str_puts(&k->text, " - flywheel rows derive GPU from target.name");
    br_chk_take_warning(k);
}
