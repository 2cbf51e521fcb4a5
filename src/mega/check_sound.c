/* check_sound.c - the sound mode: one pass over the records, then the proofs.
 *
 *   misfits   ids, shapes, counters         every record is well formed
 *     |
 *   tasks     refs, caps, arity, params,    each task alone is legal
 *     |       op rules, recipes             -> dense arrays
 *   waits     threshold == producers        each wait is met, by all
 *     |
 *   order     dependency edges acyclic,     nobody waits for ever
 *     |       and with queue edges too
 *   race      reads after their writes      nobody reads or writes too early
 *     |
 *   places    pages, on-chip memory, configuration, outputs
 *
 * A stage whose ground is missing is left out: there is no race proof of a
 * program with a cycle or a dangling id, which is rejected anyway.
 *
 * Cost      O(records). For a lowered Llama of 12,738 tasks three quarters of
 *           the time is the pass over the records, bound by memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "mega/check_sound.h"
#include "mega/pyrepr.h"
#include "mega/step.h"

bool
br_snd_no_memory(br_snd *s)
{
    s->k->oom = true;
    return false;
}

void
br_snd_put(br_snd *s, uint32_t t, const char *sep)
{
    br_put_task(&s->k->text, s->p, t);
    br_str_puts(&s->k->text, sep);
}

void
br_snd_put_buffer(br_snd *s, uint32_t b)
{
    br_str_printf(&s->k->text, "buffer #%u ('", b);
    br_put_buffer(&s->k->text, s->p, b);
    br_str_puts(&s->k->text, "')");
}

bool
br_snd_graph(br_snd *s)
{
    br_mega_links l = {s->n, s->nc, s->ctr, s->wait_off, s->wait};

    if (s->have_graph)
        return true;
    if (br_mega_graph_from(&s->g, &l, &s->k->tmp, s->k->st) != BR_OK)
        return br_snd_no_memory(s);
    s->have_graph = true;
    return true;
}

/* ---- misfits ------------------------------------------------------------ */

/* The place and the type of a field, as a message says it. */
static const struct {
    const char *list, *field, *want;
} fields[BR_MF_COUNT] = {
    [BR_MF_BUF_ID] = {"buffers", "id", "an integer"},
    [BR_MF_BUF_NAME] = {"buffers", "name", "a string"},
    [BR_MF_BUF_SHAPE] = {"buffers", "shape", "a list of integers"},
    [BR_MF_BUF_SOURCE] = {"buffers", "source", "a string or null"},
    [BR_MF_CTR_ID] = {"counters", "id", "an integer"},
    [BR_MF_CTR_INIT] = {"counters", "init", "an integer"},
    [BR_MF_CTR_NOTE] = {"counters", "note", "a string"},
    [BR_MF_TASK_ID] = {"tasks", "id", "an integer"},
    [BR_MF_TASK_IN] = {"tasks", "inputs", "a list of integers"},
    [BR_MF_TASK_OUT] = {"tasks", "outputs", "a list of integers"},
    [BR_MF_TASK_OUT_COUNTER] = {"tasks", "out_counter", "an integer"},
    [BR_MF_TASK_WAIT_CTR] = {"tasks", "waits", "counters that are integers"},
    [BR_MF_TASK_WAIT_THR] = {"tasks", "waits", "thresholds that are integers"},
    [BR_MF_TASK_PARAMS] = {"tasks", "params", "an object"},
    [BR_MF_TASK_SM] = {"tasks", "sm", "an integer or null"},
    [BR_MF_TASK_EST_BYTES] = {"tasks", "est_bytes", "an integer"},
    [BR_MF_TASK_EST_FLOPS] = {"tasks", "est_flops", "an integer"},
    [BR_MF_TASK_LABEL] = {"tasks", "label", "a string"},
    [BR_MF_PAGE_ID] = {"pages.pages", "id", "an integer"},
    [BR_MF_PAGE_NBYTES] = {"pages.pages", "nbytes", "an integer"},
    [BR_MF_PAGE_START] = {"pages.pages", "live_start", "an integer"},
    [BR_MF_PAGE_END] = {"pages.pages", "live_end", "an integer"},
    [BR_MF_BIND_BUFFER] = {"pages.buffer_to_page", "key", "an integer"},
    [BR_MF_BIND_PAGE] = {"pages.buffer_to_page", "value", "an integer"},
};

static void
misfits(br_snd *s)
{
    for (size_t i = 0; i < s->p->n_misfits; i++) {
        const br_mega_misfit *m = &s->p->misfits[i];

        if (m->field == BR_MF_TASK_WAIT_THR) {
            br_chk_threshold(s->k, m->index, m->sub);
            continue;
        }
        br_str_printf(&s->k->text, "%s[%u]: %s holds ", fields[m->field].list,
                      m->index, fields[m->field].field);
        br_py_repr(&s->k->text, m->value);
        br_str_printf(&s->k->text, ", must be %s", fields[m->field].want);
        br_chk_take_error(s->k);
    }
    s->broken |= s->p->n_misfits != 0;
}

/* ---- buffers, counters -------------------------------------------------- */

static void
wrong_id(br_snd *s, const char *list, uint32_t at, int64_t id)
{
    br_chk_error(s->k,
                 "%s[%u] has id %lld; ids must be 0..n-1 in list order, so "
                 "that an id is a place",
                 list, at, (long long)id);
    s->broken = s->lost = true;
}

static void
bad_shape(br_snd *s, uint32_t b)
{
    const br_mega_buffer *buf = &s->p->buffers[b];

    for (uint32_t i = 0; i < buf->rank; i++)
        if (buf->shape[i] < 0) {
            br_snd_put_buffer(s, b);
            br_str_printf(&s->k->text, " has the negative dimension %lld",
                          (long long)buf->shape[i]);
            br_chk_take_error(s->k);
            return;
        }
    br_snd_put_buffer(s, b);
    br_str_puts(&s->k->text, " has more bytes than 64 bits count");
    br_chk_take_error(s->k);
}

static bool
read_buffers(br_snd *s)
{
    uint32_t n_values = s->p->graph ? s->p->graph->n_values : 0;

    if (n_values > s->nb) {
        br_chk_error(s->k, "the graph has %u values and there are %u buffers",
                     n_values, s->nb);
        s->broken = s->lost = true;
    }
    s->val = br_chk_get(s->k, s->nb, sizeof *s->val);
    s->ws = br_chk_zero(s->k, s->nb, sizeof *s->ws);
    if (!s->val || !s->ws)
        return br_snd_no_memory(s);
    for (uint32_t b = 0; b < s->nb; b++) {
        const br_mega_buffer *buf = &s->p->buffers[b];

        br_op_val_of(&s->val[b], buf);
        if (buf->id != b)
            wrong_id(s, "buffers", b, buf->id);
        if (!s->val[b].ok && br_mega_nbytes(buf) < 0) {
            bad_shape(s, b);
            s->broken = true;
        }
        s->any_onchip |=
            buf->space == BR_MSP_SMEM || buf->space == BR_MSP_REGISTER;
        if (b < n_values && br_step_mirrors(s->p->graph, b, buf)) {
            br_snd_put_buffer(s, b);
            br_str_printf(&s->k->text, " %s than value %u of the graph",
                          br_step_mirrors(s->p->graph, b, buf), b);
            br_chk_take_error(s->k);
            s->broken = s->lost = true;
        }
    }
    return true;
}

static bool
read_counters(br_snd *s)
{
    s->np = br_chk_zero(s->k, s->nc, sizeof *s->np);
    s->last = br_chk_get(s->k, s->nc, sizeof *s->last);
    if (!s->np || !s->last)
        return br_snd_no_memory(s);
    for (uint32_t c = 0; c < s->nc; c++) {
        const br_mega_counter *ctr = &s->p->counters[c];

        s->last[c] = BR_NONE;
        if (ctr->id != c)
            wrong_id(s, "counters", c, ctr->id);
        if (ctr->init != 0) {
            br_chk_error(s->k,
                         "counter %u starts at %lld; waits count producers "
                         "from 0",
                         c, (long long)ctr->init);
            s->broken = true;
        }
    }
    return true;
}

/* ---- one task ----------------------------------------------------------- */

/* Types of the known parameters by tag; 0: unknown. */
static const char tag_type[BR_MP_COUNT + 1] = {
#define P(name, type) [BR_MP_##name + 1] = #type[0],
#include "mega/param.def"
#undef P
};

/* Takes the parameters into the call. False when some value has a wrong type,
 * or some name is unknown: then the slow path says so. */
static bool
take_params(br_op_call *c, const br_mega_task *t, const br_json **recipe)
{
    bool clean = true;

    for (const br_json *m = t->params->child; m; m = m->next) {
        switch (tag_type[m->tag]) {
        case 'I':
        case 'E':
            clean &= m->kind == BR_J_INT && (int32_t)m->i == m->i;
            c->i[m->tag - 1] = m->i;
            break;
        case 'F': clean &= br_op_param(c, m->tag - 1, m); break;
        case 'R':
            clean &= t->op == BR_MOP_FUSED;
            *recipe = m;
            break;
        default: clean = false;
        }
    }
    c->mask = t->param_mask;
    return clean;
}

static bool
refs_ok(const br_snd *s, uint32_t id, const br_mega_task *t)
{
    const br_mega_opinfo *op = br_mega_opinfo_of(t->op);
    bool ok = op->name && t->n_in <= BR_MEGA_MAX_INPUTS &&
              (int)t->n_in >= op->min_in &&
              (op->max_in < 0 || (int)t->n_in <= op->max_in) &&
              (op->n_out < 0 ? t->n_out <= BR_MEGA_MAX_OUTPUTS
                             : (int)t->n_out == op->n_out) &&
              t->n_waits <= BR_MEGA_MAX_WAITS &&
              (uint64_t)t->out_counter < s->nc &&
              (t->param_mask & op->req_mask) == op->req_mask && t->id == id;

    if (!ok)
        return false;
    for (uint32_t i = 0; i < t->n_in; i++)
        ok &= (uint64_t)t->in[i] < s->nb && s->val[t->in[i]].ok;
    for (uint32_t i = 0; i < t->n_out; i++)
        ok &= (uint64_t)t->out[i] < s->nb && s->val[t->out[i]].ok;
    for (uint32_t i = 0; i < t->n_waits; i++)
        ok &= (uint64_t)t->waits[i].counter < s->nc &&
              t->waits[i].counter != t->out_counter &&
              t->waits[i].threshold >= 1;
    return ok;
}

/* Room for one task more in the growing lists. */
static bool
list_room(br_snd *s, uint32_t **list, uint32_t *cap, uint32_t used)
{
    uint32_t *more, want;

    if (used + BR_MEGA_MAX_INPUTS <= *cap)
        return true;
    if (*cap > BR_NONE / 2)
        return br_snd_no_memory(s);
    want = *cap ? *cap * 2 : s->n + s->n / 2 + 64;
    more = br_chk_get(s->k, want, sizeof *more);
    if (!more)
        return br_snd_no_memory(s);
    if (used)
        memcpy(more, *list, used * sizeof *more);
    *list = more;
    *cap = want;
    return true;
}

/* Waits on one counter twice are one wait; with different thresholds, one of
 * them is wrong: 0 says so, it is no counter's number of producers. */
static void
keep_waits(br_snd *s, uint32_t id, const br_mega_task *t)
{
    uint32_t from = s->wait_off[id], at = from, j;

    for (uint32_t i = 0; i < t->n_waits && i < BR_MEGA_MAX_WAITS; i++) {
        int64_t thr = t->waits[i].threshold;

        if ((uint64_t)t->waits[i].counter >= s->nc)
            continue;
        thr = thr < 0 || thr >= BR_NONE ? 0 : thr;
        for (j = from; j < at && s->wait[j] != t->waits[i].counter; j++)
            ;
        if (j < at) {
            if (s->thr[j] != thr)
                s->thr[j] = 0;
            continue;
        }
        s->wait[at] = (uint32_t)t->waits[i].counter;
        s->thr[at++] = (uint32_t)thr;
    }
    s->wait_off[id + 1] = at;
}

/* An empty window reads nothing, and so waits for nobody. */
static bool
reads_none(const br_op_call *c, uint32_t i)
{
    const br_mega_rect *r = &c->r[i];

    return (c->unread >> i & 1) ||
           ((c->partial >> i & 1) && (r->r0 >= r->r1 || r->c0 >= r->c1));
}

static void
keep_inputs(br_snd *s, uint32_t id, const br_mega_task *t, const br_op_call *c)
{
    uint32_t at = s->in_off[id];

    for (uint32_t i = 0; i < t->n_in; i++)
        if (!br_mega_kind_readonly(s->val[t->in[i]].kind) &&
            !(c && reads_none(c, i)))
            s->in[at++] = (uint32_t)t->in[i];
    s->in_off[id + 1] = at;
}

static void
says(br_snd *s, uint32_t id, const char *why)
{
    br_snd_put(s, id, ": ");
    br_str_printf(&s->k->text, "%s: %s", br_mega_op_name(s->p->tasks[id].op),
                  why);
    br_chk_take_error(s->k);
    s->broken = true;
}

/* An op that reads the buffer it writes must go element by element. */
static bool
in_place_fine(const br_op_call *c, uint32_t i)
{
    return br_op_in_place(c, i) || (c->op == BR_MOP_ROPE && i == 0);
}

/* Output k, of which the task writes `rect`, or all. False: no memory. */
static bool
note_write(br_snd *s, uint32_t id, const br_op_call *c, uint32_t k)
{
    uint32_t b = (uint32_t)s->p->tasks[id].out[k];
    const br_op_val *out = c->outs[k];
    const br_mega_rect *rect = br_mega_is_step(c->op) ? &c->ws[k] : &c->w;
    br_wsum *w = &s->ws[b];
    bool part = br_mega_is_step(c->op)
                    ? rect->r0 != 0 || rect->r1 != out->rows || rect->c0 != 0 ||
                          rect->c1 != out->cols
                    : c->partial & BR_OP_PART_OUT;

    s->out[s->out_off[id + 1]++] = b;
    if (br_mega_kind_readonly(out->kind)) {
        br_snd_put(s, id, " writes ");
        br_snd_put_buffer(s, b);
        br_str_printf(&s->k->text, ", which is %s: read only",
                      br_mega_kind_name(out->kind));
        br_chk_take_error(s->k);
        s->broken = true;
    }
    for (uint32_t i = 0; i < c->n_in; i++)
        if (c->in[i] == out && !(c->unread >> i & 1)) {
            w->complex = true;
            if (!br_mega_is_step(c->op) && !in_place_fine(c, i))
                says(s, id,
                     "reads the buffer it writes, but not element by "
                     "element");
        }
    if (w->n++ == 0) {
        w->counter = s->ctr[id];
        w->first = id;
    } else {
        w->complex |= !part;
        w->several |= w->counter != s->ctr[id];
    }
    if (out->kind == BR_MBK_KV_CACHE) {
        w->complex |= w->n > 1;
        return true;
    }
    if (!part) {
        w->lo = 0;
        w->hi = out->cols;
    }
    return !part || w->complex || br_snd_tile(s, id, b, rect);
}

/* What the slow path knows better: texts of broken rules, and warnings. */
static void
look_again(br_snd *s, uint32_t id)
{
    const br_mega_task *t = &s->p->tasks[id];
    size_t before = s->k->r->errors.n + s->k->r->more_errors;

    br_chk_task(s->k, id);
    if (t->id != id)
        wrong_id(s, "tasks", id, t->id);
    s->broken |= s->k->r->errors.n + s->k->r->more_errors != before;
    for (uint32_t i = 0; i < t->n_in + t->n_out; i++) {
        int64_t b = i < t->n_in ? t->in[i] : t->out[i - t->n_in];

        if ((uint64_t)b >= s->nb || s->val[b].ok ||
            s->p->buffers[b].rank > BR_MEGA_MAX_RANK)
            continue;
        br_snd_put(s, id, " uses ");
        br_snd_put_buffer(s, (uint32_t)b);
        br_str_puts(&s->k->text, ", which has no elements");
        br_chk_take_error(s->k);
        s->broken = true;
    }
}

static bool
reals_finite(br_snd *s, uint32_t id, br_op_call *c)
{
    for (int p = BR_MP_eps; p <= BR_MP_theta; p++)
        if ((c->mask >> p & 1) && !isfinite(c->f[p - BR_MP_eps])) {
            snprintf(c->why, sizeof c->why, "%s=%g is not finite",
                     br_mega_param_name(p), c->f[p - BR_MP_eps]);
            says(s, id, c->why);
            return false;
        }
    return true;
}

/* Tiles of a node stand in the list in ascending order without a gap: then
 * each column is computed once, and a state changed once. */
static bool
next_tile(br_snd *s, br_op_call *c)
{
    int64_t node = c->i[BR_MP_node], at = c->i[BR_MP_n_off];

    if (s->tiled[node] != at) {
        snprintf(c->why, sizeof c->why,
                 "tile of node %lld starts at column %lld, the one before it "
                 "ended at %lld",
                 (long long)node, (long long)at, (long long)s->tiled[node]);
        return false;
    }
    s->tiled[node] = at + c->i[BR_MP_N_tile];
    return true;
}

static bool
op_rules(br_snd *s, uint32_t id, br_op_call *c, const br_json *recipe)
{
    const br_mega_task *t = &s->p->tasks[id];
    const br_op_call *sound = NULL;

    c->op = t->op;
    c->n_in = t->n_in;
    c->graph = s->p->graph;
    c->task = t;
    for (uint32_t i = 0; i < t->n_in; i++)
        c->in[i] = &s->val[t->in[i]];
    for (uint32_t i = 0; i < t->n_out; i++)
        c->outs[i] = &s->val[t->out[i]];
    c->out = t->n_out ? &s->val[t->out[0]] : NULL;
    if ((c->mask >> BR_MP_eps & 7) && !reals_finite(s, id, c))
        return true;
    if (!br_op_check(c) ||
        (t->op == BR_MOP_FUSED && !br_chk_recipe(s, c, recipe, c->why)) ||
        (br_mega_is_step(t->op) && !next_tile(s, c))) {
        says(s, id, c->why);
    } else {
        sound = c;
        for (uint32_t k = 0; k < t->n_out; k++)
            if (!note_write(s, id, c, k))
                return false;
    }
    keep_inputs(s, id, t, sound);
    return true;
}

static bool
read_task(br_snd *s, uint32_t id, br_op_call *c)
{
    const br_mega_task *t = &s->p->tasks[id];
    const br_json *recipe = NULL;
    bool fine = refs_ok(s, id, t), typed = take_params(c, t, &recipe);

    if (!list_room(s, &s->in, &s->in_cap, s->in_off[id]) ||
        !list_room(s, &s->out, &s->out_cap, s->out_off[id]))
        return false;
    if (s->wait_off[id] + BR_MEGA_MAX_WAITS > s->wait_cap) {
        uint32_t cap = s->wait_cap;

        if (!list_room(s, &s->thr, &cap, s->wait_off[id]) ||
            !list_room(s, &s->wait, &s->wait_cap, s->wait_off[id]))
            return false;
    }
    s->ctr[id] =
        (uint64_t)t->out_counter < s->nc ? (uint32_t)t->out_counter : BR_NONE;
    s->out_off[id + 1] = s->out_off[id];
    s->in_off[id + 1] = s->in_off[id];
    keep_waits(s, id, t);
    if (s->ctr[id] != BR_NONE) {
        s->np[s->ctr[id]]++;
        s->last[s->ctr[id]] = id;
    }
    s->any_sm |= t->sm != BR_MEGA_SM_NONE;
    if (!fine || !typed) {
        bool before = s->broken;

        s->broken = false;
        look_again(s, id);
        fine = !s->broken; /* only warnings: an unknown parameter */
        s->broken |= before;
    }
    return !fine || op_rules(s, id, c, recipe);
}

static bool
read_tasks(br_snd *s)
{
    br_op_call c;
    size_t n = s->n;

    s->ctr = br_chk_get(s->k, n, 4);
    s->out_off = br_chk_get(s->k, n + 1, 4);
    s->tiled = br_chk_zero(s->k, s->p->graph ? s->p->graph->n_nodes : 0,
                           sizeof *s->tiled);
    s->in_off = br_chk_get(s->k, n + 1, 4);
    s->wait_off = br_chk_get(s->k, n + 1, 4);
    if (!s->ctr || !s->out_off || !s->tiled || !s->in_off || !s->wait_off)
        return br_snd_no_memory(s);
    s->in_off[0] = s->wait_off[0] = s->out_off[0] = 0;
    for (uint32_t t = 0; t < s->n; t++)
        if (!read_task(s, t, &c))
            return false;
    return true;
}

/* Every node that tasks compute is computed to its last column. */
static void
check_tiles(br_snd *s)
{
    const br_ir *g = s->p->graph;
    br_step_cut cut;

    for (uint32_t i = 0; g && !s->broken && i < g->n_nodes; i++)
        if (br_step_cut_of(&g->nodes[i], &cut) && s->tiled[i] != cut.cols)
            br_chk_error(s->k,
                         "node %u (%s) of the graph has tasks for %lld of its "
                         "%lld columns",
                         i, br_ir_opinfo_of(g->nodes[i].op)->name,
                         (long long)s->tiled[i], (long long)cut.cols);
}

/* ---- waits -------------------------------------------------------------- */

static void
say_waits(br_snd *s, uint32_t id)
{
    const br_mega_task *t = &s->p->tasks[id];
    uint32_t np[BR_MEGA_MAX_WAITS];

    s->broken = true;
    if (t->n_waits > BR_MEGA_MAX_WAITS)
        return; /* said already */
    for (uint32_t i = 0; i < t->n_waits; i++) {
        uint64_t c = (uint64_t)t->waits[i].counter;

        np[i] = c < s->nc ? s->np[c] : 0;
    }
    br_chk_task_waits(s->k, id, np);
}

/* Between 1 and the number of producers, and all of them when there are more
 * than one: that is, exactly the number of producers. */
static void
check_waits(br_snd *s)
{
    int64_t edges = 0;

    s->in_list_order = true;
    for (uint32_t t = 0; t < s->n; t++) {
        bool fine = true;

        for (uint32_t i = s->wait_off[t]; i < s->wait_off[t + 1]; i++) {
            uint32_t c = s->wait[i];

            fine &= s->thr[i] == s->np[c] && s->thr[i] != 0;
            s->in_list_order &= s->last[c] < t;
            edges += s->np[c];
        }
        if (!fine)
            say_waits(s, t);
    }
    s->k->r->n_edges = edges;
}

/* ---- cycle -------------------------------------------------------------- */

static bool
say_cycle(br_snd *s)
{
    uint32_t *lo = br_chk_get(s->k, s->n, 4), *hi = br_chk_get(s->k, s->n, 4);
    uint32_t *roots = br_chk_get(s->k, s->n, 4), *cycle = NULL, n;
    br_succs g = {s->n, lo, hi, s->g.waiter};
    br_str *out = &s->k->text;

    if (!lo || !hi || !roots)
        return br_snd_no_memory(s);
    for (uint32_t t = 0; t < s->n; t++) {
        uint32_t c = s->ctr[t];

        roots[t] = t;
        lo[t] = c == BR_NONE ? 0 : s->g.wait_off[c];
        hi[t] = c == BR_NONE ? 0 : s->g.wait_off[c + 1];
    }
    if (br_chk_cycle(s->k, &g, roots, s->n, &cycle, &n) != BR_OK)
        return br_snd_no_memory(s);
    br_str_puts(out, "producer\xe2\x86\x92"
                     "consumer graph has a CYCLE, structural deadlock. "
                     "cycle: ");
    for (uint32_t i = 0; i < n; i++) {
        br_str_printf(out, "%s%u:", i ? " -> " : "", cycle[i]);
        br_put_node(out, s->p, cycle[i]);
    }
    br_chk_take_error(s->k);
    return true;
}

static bool
check_order(br_snd *s)
{
    s->k->r->acyclic = true;
    if (s->in_list_order)
        return true;
    if (!br_snd_graph(s))
        return false;
    if (s->g.topo || s->n == 0)
        return true;
    s->k->r->acyclic = false;
    s->broken = true;
    return say_cycle(s);
}

/* ---- all together ------------------------------------------------------- */

static bool
outputs(br_snd *s)
{
    uint8_t *produced = br_chk_zero(s->k, s->nb, 1);

    if (!produced)
        return br_snd_no_memory(s);
    for (uint32_t b = 0; b < s->nb; b++)
        produced[b] = s->ws[b].n != 0;
    /* Tasks that break a rule are not among those: they may mean to write. */
    for (uint32_t t = 0; s->broken && t < s->n; t++)
        for (uint32_t i = 0; i < s->p->tasks[t].n_out; i++)
            if ((uint64_t)s->p->tasks[t].out[i] < s->nb)
                produced[s->p->tasks[t].out[i]] = 1;
    br_chk_outputs(s->k, produced);
    return true;
}

static bool
judge(br_snd *s)
{
    misfits(s);
    if (s->broken)
        return true; /* nothing below can be read with confidence */
    if (!read_buffers(s) || !read_counters(s) || !read_tasks(s))
        return false;
    if (s->lost)
        return true;
    check_tiles(s);
    check_waits(s);
    s->k->r->sm_assigned = s->any_sm;
    if (!check_order(s) || !br_snd_page_table(s) || !br_snd_onchip(s) ||
        !br_snd_queues(s) || (!s->broken && !br_snd_race(s)) ||
        (!s->broken && !br_snd_pages(s)) || !outputs(s))
        return false;
    br_snd_config(s);
    if (s->n == 0) /* any other JSON object reads as such a program */
        br_chk_warn(s->k, "there are no tasks: is this a task program?");
    if (s->p->meta->kind == BR_J_OBJ)
        br_chk_gpu_label(s->k);
    else
        br_chk_error(s->k, "meta must be an object, is %s",
                     br_json_kind_name((br_json_kind)s->p->meta->kind));
    return true;
}

br_code
br_chk_sound(br_chk *k)
{
    br_snd s = {.k = k,
                .p = k->p,
                .n = (uint32_t)k->p->n_tasks,
                .nb = (uint32_t)k->p->n_buffers,
                .nc = (uint32_t)k->p->n_counters};

    s.hb.k = k;
    br_arena_init(&s.region, 0);
    if (!judge(&s))
        k->oom = true;
    br_arena_fini(&s.region);
    br_hb_fini(&s.hb);
    br_vec_fini(&s.reads);
    br_vec_fini(&s.unread);
    br_vec_fini(&s.tiles);
    return BR_OK;
}
