/* cost.c - pass 2, the critical path, and the entry. See cost.h.
 *
 *   ready(t)  = max(end of the task before it on its worker,
 *                   ends of all it waits for)
 *   end(t)    = max(ready + half the task's fixed cost + local + flops,
 *                   end of its last piece, end of its late part)
 *               + the other half
 *   a piece begins when the engine is free and the task it comes after has
 *               ended; a late part when the engine is free and the task ready
 *               and looked at (ready + half its fixed cost)
 *
 * All of it is max and plus over the order of pass 1, so it is monotone in
 * every duration.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/cost_internal.h"

#include <string.h>

#include "mega/assign.h"
#include "mega/config.h"

/* What memory gives when nobody has measured it: the three machines with a
 * measurement give 89, 92 and 92 % of their peak. */
#define REACHED 0.9

/* What ended last before a moment: an event, or the launch. */
typedef struct cause {
    uint32_t what; /* piece or task; BR_COST_NONE: the launch */
    uint8_t kind;  /* BR_CE_* */
} cause;

typedef struct replay {
    const br_cost_sim *s;
    double us_per_byte, us_per_flop, us_per_local, half; /* of task_us */
    double *ready, *end, *late_begin, *late_end;         /* of tasks */
    double *piece_begin, *piece_end;
    cause *ready_by, *end_by, *late_by, *piece_by;
    uint32_t *counter_by; /* counter -> its last producer to end */
    double *engine_free;  /* of a worker */
    cause *engine_last;
} replay;

static const cause launch = {BR_COST_NONE, BR_CE_END};

/* ---- pass 2 -------------------------------------------------------------- */

static double
compute_us(const replay *r, uint32_t t)
{
    const br_cost_work *w = &r->s->work[t];

    return w->local * r->us_per_local + w->flops * r->us_per_flop;
}

/* Sets ready and what made it so late. */
static void
replay_ready(replay *r, uint32_t t)
{
    const br_mega_task *task = &r->s->p->tasks[t];
    uint32_t prev = r->s->prev[t];

    r->ready[t] = prev == BR_COST_NONE ? 0 : r->end[prev];
    r->ready_by[t] = prev == BR_COST_NONE ? launch : (cause){prev, BR_CE_END};
    for (uint32_t k = 0; k < task->n_waits; k++) {
        uint32_t by = r->counter_by[task->waits[k].counter];

        if (r->end[by] > r->ready[t]) {
            r->ready[t] = r->end[by];
            r->ready_by[t] = (cause){by, BR_CE_END};
        }
    }
}

static void
replay_piece(replay *r, uint32_t k)
{
    const br_cost_sim *s = r->s;
    const br_cost_piece *piece = &s->pieces[k];
    int64_t w = s->sm[piece->task];
    double begin = r->engine_free[w];

    r->piece_by[k] = r->engine_last[w];
    if (piece->after >= 0) {
        uint32_t t = s->queue[s->queue_off[w] + (uint32_t)piece->after];

        if (r->end[t] > begin) {
            begin = r->end[t];
            r->piece_by[k] = (cause){t, BR_CE_END};
        }
    }
    r->piece_begin[k] = begin;
    r->piece_end[k] = begin + piece->time * r->us_per_byte;
    r->engine_free[w] = r->piece_end[k];
    r->engine_last[w] = (cause){k, BR_CE_PIECE};
}

static void
replay_late(replay *r, uint32_t t)
{
    int64_t w = r->s->sm[t];
    double begin = r->engine_free[w];

    replay_ready(r, t);
    r->late_by[t] = r->engine_last[w];
    if (r->ready[t] + r->half > begin) {
        begin = r->ready[t] + r->half;
        r->late_by[t] = r->ready_by[t];
        r->late_by[t].kind = BR_CE_KINDS; /* it is t itself, from ready on */
    }
    r->late_begin[t] = begin;
    r->late_end[t] = begin + r->s->late_time[t] * r->us_per_byte;
    r->engine_free[w] = r->late_end[t];
    r->engine_last[w] = (cause){t, BR_CE_LATE};
}

static void
replay_end(replay *r, uint32_t t)
{
    uint32_t last = r->s->last_piece[t];
    uint32_t *by = &r->counter_by[r->s->p->tasks[t].out_counter];
    double e;

    replay_ready(r, t);
    e = r->ready[t] + r->half + compute_us(r, t);
    r->end_by[t] = (cause){t, BR_CE_KINDS};
    if (last != BR_COST_NONE && r->piece_end[last] > e) {
        e = r->piece_end[last];
        r->end_by[t] = (cause){last, BR_CE_PIECE};
    }
    if (r->late_end[t] > e) {
        e = r->late_end[t];
        r->end_by[t] = (cause){t, BR_CE_LATE};
    }
    r->end[t] = e + r->half;
    if (*by == BR_COST_NONE || r->end[t] > r->end[*by])
        *by = t;
}

static void
replay_all(replay *r)
{
    for (uint32_t i = 0; i < r->s->n_events; i++) {
        uint32_t t = r->s->events[i] / BR_CE_KINDS;

        switch (r->s->events[i] % BR_CE_KINDS) {
        case BR_CE_PIECE: replay_piece(r, t); break;
        case BR_CE_LATE: replay_late(r, t); break;
        default: replay_end(r, t); break;
        }
    }
}

static bool
replay_init(replay *r, const br_cost_sim *s, br_mega_cost *c)
{
    size_t n = (size_t)s->n_tasks + 1, pieces = s->piece_off[s->n_workers];
    double *d = br_arena_new(&c->arena, double, 2 * n);
    double *x = br_arena_new(s->a, double, 2 * (n + pieces));
    cause *by = br_arena_new(s->a, cause, 3 * n + pieces);

    r->counter_by = br_arena_new(s->a, uint32_t, (size_t)s->g.n_counters + 1);
    r->engine_free = br_arena_new(s->a, double, s->n_workers);
    r->engine_last = br_arena_new(s->a, cause, s->n_workers);
    if (!d || !x || !by || !r->counter_by || !r->engine_free || !r->engine_last)
        return false;
    r->ready = d;
    r->end = d + n;
    r->late_begin = x;
    r->late_end = x + n;
    r->piece_begin = x + 2 * n;
    r->piece_end = x + 2 * n + pieces;
    r->ready_by = by;
    r->end_by = by + n;
    r->late_by = by + 2 * n;
    r->piece_by = by + 3 * n;
    for (uint32_t w = 0; w < s->n_workers; w++)
        r->engine_last[w] = launch;
    for (uint32_t k = 0; k < s->g.n_counters; k++)
        r->counter_by[k] = BR_COST_NONE;
    return true;
}

/* ---- the critical path --------------------------------------------------- */

static const struct {
    const char *part;
    br_cost_region region;
} regions[] = {
    {"lm_head", BR_CR_HEAD},
    {"logits", BR_CR_HEAD},
    {"argmax", BR_CR_HEAD},
    {"mlp", BR_CR_MLP},
    {"gate", BR_CR_MLP},
    {"up_proj", BR_CR_MLP},
    {"down", BR_CR_MLP},
    {"swiglu", BR_CR_MLP},
    {"post_norm", BR_CR_MLP},
    {"attn", BR_CR_ATTENTION},
    {"attention", BR_CR_ATTENTION},
    {"rope", BR_CR_ATTENTION},
    {"q_", BR_CR_ATTENTION},
    {"k_", BR_CR_ATTENTION},
    {"v_", BR_CR_ATTENTION},
    {"o_proj", BR_CR_ATTENTION},
    {"input_norm", BR_CR_ATTENTION},
};

const char *
br_cost_region_name(br_cost_region r)
{
    static const char *const names[BR_CR_COUNT] = {
        [BR_CR_ATTENTION] = "attention",
        [BR_CR_MLP] = "mlp",
        [BR_CR_HEAD] = "lm_head",
        [BR_CR_OTHER] = "other",
    };

    return names[r];
}

static br_cost_region
region_of_op(int op)
{
    switch (op) {
    case BR_MOP_ATTENTION_TILE:
    case BR_MOP_ATTENTION_COMBINE:
    case BR_MOP_ROPE:
    case BR_MOP_KV_APPEND:
    case BR_MOP_SOFTMAX: return BR_CR_ATTENTION;
    case BR_MOP_SILU_MUL:
    case BR_MOP_GELU: return BR_CR_MLP;
    case BR_MOP_SAMPLE_ARGMAX: return BR_CR_HEAD;
    default: return BR_CR_OTHER;
    }
}

br_cost_region
br_cost_region_of(const br_mega_task *t)
{
    for (size_t i = 0; i < BR_COUNT(regions); i++)
        if (memmem(t->label, t->label_n, regions[i].part,
                   strlen(regions[i].part)))
            return regions[i].region;
    return region_of_op(t->op);
}

typedef enum spent { STREAM, COMPUTE, OVERHEAD } spent;

static void
add_share(br_cost_share *to, spent what, double us)
{
    switch (what) {
    case STREAM: to->stream_us += us; return;
    case COMPUTE: to->compute_us += us; return;
    case OVERHEAD: to->overhead_us += us; return;
    }
}

static void
blame(br_mega_cost *c, const br_cost_sim *s, bool *on_path, uint32_t t,
      spent what, double us)
{
    const br_mega_task *task = &s->p->tasks[t];

    add_share(&c->critical, what, us);
    add_share(&c->op[task->op].critical, what, us);
    add_share(&c->region[s->region[t]].critical, what, us);
    c->critical_tasks += !on_path[t];
    on_path[t] = true;
}

/* One step back from the end of an event; the intervals telescope, so that
 * what is blamed sums to the makespan. */
static cause
step_back(br_mega_cost *c, const replay *r, bool *on_path, cause at)
{
    uint32_t t = at.what;
    double from, to;
    cause by;

    switch (at.kind) {
    case BR_CE_PIECE:
        blame(c, r->s, on_path, r->s->pieces[t].task, STREAM,
              r->piece_end[t] - r->piece_begin[t]);
        return r->piece_by[t];
    case BR_CE_LATE:
        blame(c, r->s, on_path, t, STREAM, r->late_end[t] - r->late_begin[t]);
        by = r->late_by[t];
        if (by.kind != BR_CE_KINDS)
            return by;
        blame(c, r->s, on_path, t, OVERHEAD, r->half);
        return r->ready_by[t];
    default: break;
    }
    by = r->end_by[t];
    blame(c, r->s, on_path, t, OVERHEAD, r->half);
    if (by.kind != BR_CE_KINDS)
        return by;
    from = r->ready[t] + r->half;
    to = r->end[t] - r->half;
    blame(c, r->s, on_path, t, COMPUTE, to - from);
    blame(c, r->s, on_path, t, OVERHEAD, r->half);
    return r->ready_by[t];
}

static void
critical_path(br_mega_cost *c, const replay *r, bool *on_path)
{
    cause at = launch;

    for (uint32_t t = 0; t < r->s->n_tasks; t++)
        if (at.what == BR_COST_NONE || r->end[t] > r->end[at.what])
            at = (cause){t, BR_CE_END};
    if (at.what != BR_COST_NONE)
        c->us = r->end[at.what];
    while (at.what != BR_COST_NONE)
        at = step_back(c, r, on_path, at);
}

/* ---- the simulation's input ---------------------------------------------- */

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "cost: out of memory");
}

static bool
ids_below(const int64_t *ids, uint32_t n, size_t limit)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint64_t)ids[i] >= limit)
            return false;
    return true;
}

/* Enough of the check that no index leaves its array. */
static br_code
check_ids(const br_mega_prog *p, br_status *st)
{
    bool ok = p->n_misfits == 0 && p->n_tasks <= BR_MEGA_MAX_TASKS;

    for (size_t i = 0; i < p->n_tasks && ok; i++) {
        const br_mega_task *t = &p->tasks[i];

        ok = t->id == (int64_t)i && ids_below(t->in, t->n_in, p->n_buffers) &&
             ids_below(t->out, t->n_out, p->n_buffers) &&
             ids_below(&t->out_counter, 1, p->n_counters);
        for (uint32_t k = 0; k < t->n_waits && ok; k++)
            ok = ids_below(&t->waits[k].counter, 1, p->n_counters);
    }
    for (size_t i = 0; i < p->n_buffers && ok; i++)
        ok = p->buffers[i].rank <= BR_MEGA_MAX_RANK;
    return ok ? BR_OK
              : br_fail(st, BR_E_FORMAT,
                        "cost: ids or ranks out of range; see brass prog "
                        "check");
}

static br_code
place_tasks(br_cost_sim *s)
{
    br_mega_assign_opts o = {.workers = s->t.num_sms};

    s->sm = br_arena_new(s->a, int64_t, (size_t)s->n_tasks + 1);
    if (!s->sm)
        return no_memory(s->st);
    for (uint32_t i = 0; i < s->n_tasks; i++)
        s->sm[i] = s->p->tasks[i].sm;
    return br_mega_assign_to(s->p, &o, s->sm, s->st);
}

static br_code
make_queues(br_cost_sim *s)
{
    size_t n = (size_t)s->n_tasks + 1;
    uint32_t *at;

    s->queue_off = br_arena_new(s->a, uint32_t, (size_t)s->n_workers + 1);
    s->queue = br_arena_new(s->a, uint32_t, n);
    s->prev = br_arena_new(s->a, uint32_t, n);
    s->place = br_arena_new(s->a, uint32_t, n);
    at = br_arena_new(s->a, uint32_t, (size_t)s->n_workers + 1);
    if (!s->queue_off || !s->queue || !s->prev || !s->place || !at)
        return no_memory(s->st);
    for (uint32_t i = 0; i < s->n_tasks; i++)
        s->queue_off[s->sm[i] + 1]++;
    for (uint32_t w = 0; w < s->n_workers; w++) {
        s->queue_off[w + 1] += s->queue_off[w];
        at[w] = s->queue_off[w];
    }
    for (uint32_t i = 0; i < s->n_tasks; i++) {
        uint32_t w = (uint32_t)s->sm[i];

        s->place[i] = at[w] - s->queue_off[w];
        s->prev[i] = s->place[i] ? s->queue[at[w] - 1] : BR_COST_NONE;
        s->queue[at[w]++] = i;
    }
    return BR_OK;
}

static br_code
config_int(const br_cost_sim *s, br_mega_config_field f, int64_t max,
           int64_t *out)
{
    const br_json *v = s->p->config ? s->p->config[f] : NULL;

    if (!v)
        return BR_OK;
    if (v->kind != BR_J_INT || v->i < 0 || v->i > max)
        return br_fail(s->st, BR_E_FORMAT,
                       "config.%s: not an integer in 0..%lld",
                       br_mega_config_field_name(f), (long long)max);
    *out = v->i;
    return BR_OK;
}

/* Bytes a worker holds ahead: its shared memory if the program opts in, else
 * its part of half the last-level cache, where the hint of the device goes;
 * the other half holds what is in use. The other fields of a config have done
 * their work when a program is made. */
static br_code
read_launch(br_cost_sim *s, const br_mega_cost_opts *o)
{
    int64_t smem = 0;

    s->depth = BR_CFG_DEFAULT_DEPTH;
    BR_TRY(config_int(s, BR_MC_pipelining_depth, BR_CFG_MAX_DEPTH, &s->depth));
    BR_TRY(config_int(s, BR_MC_smem_bytes_per_block, INT32_MAX, &smem));
    if (o->depth >= 0)
        s->depth = BR_MIN(o->depth, BR_CFG_MAX_DEPTH);
    s->window = smem > 0 ? (double)smem
                         : (double)s->t.l2_bytes / 2 / (double)s->t.num_sms;
    return BR_OK;
}

static br_code
prepare(br_cost_sim *s, const br_mega_cost_opts *o)
{
    BR_TRY(check_ids(s->p, s->st));
    if (o->target)
        s->t = *o->target;
    else
        BR_TRY(br_mega_target_of(s->p, &s->t, s->st));
    if (s->t.num_sms > BR_ASSIGN_MAX_WORKERS)
        return br_fail(s->st, BR_E_LIMIT, "target.num_sms: more than %d",
                       BR_ASSIGN_MAX_WORKERS);
    s->n_tasks = (uint32_t)s->p->n_tasks;
    s->n_workers = (uint32_t)s->t.num_sms;
    BR_TRY(read_launch(s, o));
    BR_TRY(br_mega_graph_build(&s->g, s->p, s->a, s->st));
    if (!s->g.topo)
        return br_fail(s->st, BR_E_REJECTED,
                       "cost: tasks depend on each other in a circle");
    BR_TRY(place_tasks(s));
    BR_TRY(make_queues(s));
    return br_cost_work_of(s);
}

/* ---- the result ---------------------------------------------------------- */

static double
reached_gbs(const br_mega_target *t)
{
    return t->measured_bw_gbs > 0
               ? BR_MIN(t->measured_bw_gbs, t->hbm_bandwidth_gbs)
               : t->hbm_bandwidth_gbs * REACHED;
}

/* Hints of a file can add up to more than 64 bits hold. */
static int64_t
whole(double v)
{
    return v < 0x1p63 ? (int64_t)v : INT64_MAX;
}

/* Sums by op and region, and the floors. */
static void
sum_up(br_mega_cost *c, const br_cost_sim *s, const replay *r)
{
    double bytes = 0, flops = 0, peak;

    for (uint32_t i = 0; i < s->n_tasks; i++) {
        const br_cost_work *w = &s->work[i];
        const br_mega_task *t = &s->p->tasks[i];
        br_cost_row *rows[2] = {&c->op[t->op], &c->region[s->region[i]]};

        bytes += w->weight + w->state;
        flops += w->flops;
        for (int k = 0; k < 2; k++) {
            rows[k]->tasks++;
            rows[k]->bytes += w->weight + w->state;
            rows[k]->flops += w->flops;
            rows[k]->busy_us += r->end[i] - r->ready[i];
        }
        c->workers += s->place[i] == 0;
    }
    c->tasks = s->n_tasks;
    c->bytes = whole(bytes);
    c->flops = whole(flops);
    peak = flops / (s->t.fp16_tflops * 1e6);
    c->floor_us = BR_MAX(bytes / (s->t.hbm_bandwidth_gbs * 1e3), peak);
    c->reach_us = BR_MAX(bytes * r->us_per_byte, peak);
    c->stream_us = s->makespan * r->us_per_byte;
}

static br_code
cost_of(br_mega_cost *c, br_cost_sim *s, const br_mega_cost_opts *o)
{
    replay r = {.s = s};
    bool *on_path;

    BR_TRY(prepare(s, o));
    BR_TRY(br_cost_stream(s));
    on_path = br_arena_new(&c->arena, bool, (size_t)s->n_tasks + 1);
    s->region = br_arena_new(s->a, uint8_t, (size_t)s->n_tasks + 1);
    if (!on_path || !s->region || !replay_init(&r, s, c))
        return no_memory(s->st);
    for (uint32_t i = 0; i < s->n_tasks; i++)
        s->region[i] = (uint8_t)br_cost_region_of(&s->p->tasks[i]);
    r.us_per_byte = 1 / (reached_gbs(&s->t) * 1e3);
    r.us_per_flop = (double)s->t.num_sms / (s->t.fp16_tflops * 1e6);
    r.us_per_local = r.us_per_byte * (double)s->t.num_sms / s->t.share_x;
    r.half = s->t.task_us / 2;
    replay_all(&r);
    critical_path(c, &r, on_path);
    sum_up(c, s, &r);
    /* True but for rounding: sums of durations, sums of bytes. */
    br_assert(c->us >= c->floor_us * (1 - 1e-9) && "the floor holds");
    c->us = BR_MAX(c->us, c->floor_us);
    c->start = r.ready;
    c->end = r.end;
    c->on_path = on_path;
    c->sm = br_arena_dup(&c->arena, s->sm, s->n_tasks * sizeof *s->sm);
    return c->sm ? BR_OK : no_memory(s->st);
}

br_code
br_mega_cost_of(br_mega_cost *c, const br_mega_prog *p,
                const br_mega_cost_opts *o, br_status *st)
{
    br_arena scratch;
    br_cost_sim s = {.p = p, .st = st, .a = &scratch};
    br_code code;

    *c = (br_mega_cost){0};
    br_arena_init(&c->arena, 0);
    br_arena_init(&scratch, 0);
    code = cost_of(c, &s, o);
    br_arena_fini(&scratch);
    if (code != BR_OK)
        br_mega_cost_fini(c);
    return code;
}

void
br_mega_cost_fini(br_mega_cost *c)
{
    br_arena_fini(&c->arena);
}

/* ---- as JSON ------------------------------------------------------------- */

static void
put_share(br_json_writer *w, const br_cost_share *s)
{
    br_json_w_key_f64(w, "stream_us", s->stream_us);
    br_json_w_key_f64(w, "compute_us", s->compute_us);
    br_json_w_key_f64(w, "overhead_us", s->overhead_us);
}

static void
put_row(br_json_writer *w, const char *name, const br_cost_row *r)
{
    const br_cost_share *s = &r->critical;

    if (!r->tasks)
        return;
    br_json_w_key(w, name);
    br_json_w_obj(w);
    br_json_w_key_i64(w, "tasks", (int64_t)r->tasks);
    br_json_w_key_i64(w, "bytes", whole(r->bytes));
    br_json_w_key_i64(w, "flops", whole(r->flops));
    br_json_w_key_f64(w, "busy_us", r->busy_us);
    br_json_w_key_f64(w, "critical_us",
                      s->stream_us + s->compute_us + s->overhead_us);
    br_json_w_obj_end(w);
}

void
br_mega_cost_json(const br_mega_cost *c, br_str *out)
{
    br_json_writer w;

    br_json_w_begin(&w, out, 2);
    br_json_w_obj(&w);
    br_json_w_key_f64(&w, "us", c->us);
    br_json_w_key_f64(&w, "floor_us", c->floor_us);
    br_json_w_key_f64(&w, "reach_us", c->reach_us);
    br_json_w_key_f64(&w, "percent_of_floor",
                      c->us > 0 ? 100 * c->floor_us / c->us : 100);
    br_json_w_key_i64(&w, "bytes", c->bytes);
    br_json_w_key_i64(&w, "flops", c->flops);
    br_json_w_key_i64(&w, "tasks", (int64_t)c->tasks);
    br_json_w_key_i64(&w, "workers", (int64_t)c->workers);
    br_json_w_key(&w, "critical");
    br_json_w_obj(&w);
    br_json_w_key_i64(&w, "tasks", (int64_t)c->critical_tasks);
    put_share(&w, &c->critical);
    br_json_w_obj_end(&w);
    br_json_w_key(&w, "regions");
    br_json_w_obj(&w);
    for (int i = 0; i < BR_CR_COUNT; i++)
        put_row(&w, br_cost_region_name((br_cost_region)i), &c->region[i]);
    br_json_w_obj_end(&w);
    br_json_w_key(&w, "ops");
    br_json_w_obj(&w);
    for (int i = 0; i < BR_MOP_LIMIT; i++)
        if (br_mega_op_name(i))
            put_row(&w, br_mega_op_name(i), &c->op[i]);
    br_json_w_obj_end(&w);
    br_json_w_obj_end(&w);
}
