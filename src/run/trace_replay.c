/* trace_replay.c - see trace_replay.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/trace_replay.h"

#include "base/json.h"
#include "base/map.h"

#include <stdio.h>
#include <string.h>

/* A request of the trace. */
typedef struct asked {
    br_request_id id;
    br_request_desc desc;
    bool apart, ended, over;
    br_finish finish;
    BR_VEC(int32_t) said;
    uint32_t n, differs_at; /* of the new answer; differs_at: or UINT32_MAX */
    br_status st;           /* why the new one failed */
} asked;

typedef struct replay {
    br_arena arena;
    br_map by_id;
    BR_VEC(asked *) all;
    br_engine *e;
} replay;

static br_code
oom(br_status *st)
{
    return br_fail(st, BR_E_OOM, "replay: out of memory");
}

static asked *
find(replay *p, br_request_id id)
{
    br_map_value *v = br_map_get_u64(&p->by_id, id);

    return v ? v->p : NULL;
}

static br_code
add(replay *p, const br_trace_rec *rec, br_status *st)
{
    asked *a = br_arena_new(&p->arena, asked, 1);
    bool fresh = false;
    br_map_value *v = a ? br_map_put_u64(&p->by_id, rec->id, &fresh) : NULL;

    if (!v || !br_vec_push(&p->all, a))
        return oom(st);
    if (!fresh)
        return br_fail(st, BR_E_FORMAT, "trace: request %llx comes twice",
                       (unsigned long long)rec->id);
    *a = (asked){.id = rec->id,
                 .desc = rec->desc,
                 .apart = rec->apart,
                 .differs_at = UINT32_MAX};
    v->p = a;
    return BR_OK;
}

static br_code
take(replay *p, const br_trace_rec *rec, br_status *st)
{
    asked *a;

    if (rec->kind == BR_TRACE_SUBMIT)
        return add(p, rec, st);
    if (rec->kind == BR_TRACE_LOST && rec->event.a)
        return br_fail(st, BR_E_FORMAT, "trace: %u records were lost",
                       rec->event.a);
    if (rec->kind != BR_TRACE_TOKEN && rec->kind != BR_TRACE_END)
        return BR_OK;
    a = find(p, rec->event.id);
    if (a && a->apart)
        return BR_OK;
    if (!a || (rec->kind == BR_TRACE_TOKEN && rec->event.b != a->said.n) ||
        (rec->kind == BR_TRACE_END &&
         (a->ended || rec->event.a >= BR_FINISH_COUNT)))
        return br_fail(st, BR_E_FORMAT, "trace: request %llx: out of order",
                       (unsigned long long)rec->event.id);
    if (rec->kind == BR_TRACE_TOKEN)
        return br_vec_push(&a->said, (int32_t)rec->event.a) ? BR_OK : oom(st);
    a->ended = true;
    a->finish = (br_finish)rec->event.a;
    return BR_OK;
}

static br_code
read_all(replay *p, const void *trace, size_t n, bool *cut, br_status *st)
{
    br_trace_reader r;
    bool more = true;

    BR_TRY(br_trace_read(&r, trace, n, st));
    while (more) {
        br_trace_rec rec;

        BR_TRY(br_trace_next(&r, &p->arena, &rec, &more, st));
        BR_TRY(take(p, &rec, st));
        *cut = rec.kind == BR_TRACE_CUT;
    }
    return BR_OK;
}

/* The model ended it, or its own limits: it ends there again. */
static bool
ended_itself(const asked *a)
{
    return a->ended &&
           (a->finish == BR_FINISH_EOG || a->finish == BR_FINISH_STOP ||
            a->finish == BR_FINISH_LENGTH);
}

static void
hear(void *ctx, const br_output *o)
{
    asked *a = ctx;

    if (o->kind == BR_OUTPUT_TOKEN) {
        if (a->differs_at == UINT32_MAX &&
            (a->n >= a->said.n || a->said.at[a->n] != (int32_t)o->head.token))
            a->differs_at = a->n;
        a->n++;
    } else if (o->kind == BR_OUTPUT_END) {
        a->over = true;
        if (a->differs_at == UINT32_MAX && a->n != a->said.n)
            a->differs_at = a->n;
        if (o->usage->finish == BR_FINISH_FAILED)
            (void)br_fail(&a->st, o->code, "%s", o->error);
    }
}

static br_code
ask(replay *p, asked *a, br_status *st)
{
    br_request_desc d = a->desc;
    br_request_id id;
    br_code code;

    d.tenant = BR_TENANT_LOCAL;
    d.output = hear;
    d.ctx = a;
    if (!ended_itself(a))
        d.max_tokens = (int64_t)a->said.n;
    for (;;) {
        br_status why = {0};

        code = br_engine_submit(p->e, &d, &id, &why);
        if (code != BR_E_BUSY && code != BR_E_QUOTA)
            return code == BR_OK ? BR_OK
                                 : br_fail(st, code, "request %llx: %s",
                                           (unsigned long long)a->id, why.msg);
        (void)br_engine_wait(p->e, 10000000);
        (void)br_engine_drain(p->e, SIZE_MAX);
    }
}

static br_code
ask_all(replay *p, br_replay_report *out, br_status *st)
{
    for (size_t i = 0; i < p->all.n; i++)
        if (!p->all.at[i]->apart)
            BR_TRY(ask(p, p->all.at[i], st));
    for (size_t i = 0; i < p->all.n; i++) {
        asked *a = p->all.at[i];

        out->requests++;
        out->skipped += a->apart;
        while (!a->apart && !a->over) {
            (void)br_engine_wait(p->e, -1);
            (void)br_engine_drain(p->e, SIZE_MAX);
        }
        out->tokens += a->n;
        if (a->apart)
            continue;
        out->same += a->differs_at == UINT32_MAX;
        if (a->differs_at != UINT32_MAX && !out->differs) {
            out->differs = a->id;
            out->at = a->differs_at;
        }
    }
    return BR_OK;
}

br_code
br_replay(const void *trace, size_t n, const br_engine_config *c,
          br_replay_report *out, br_status *st)
{
    replay p = {0};
    br_code code;

    *out = (br_replay_report){0};
    br_arena_init(&p.arena, 0);
    code = read_all(&p, trace, n, &out->cut, st);
    if (code == BR_OK)
        code = br_engine_new(&p.e, c, st);
    if (code == BR_OK)
        code = ask_all(&p, out, st);
    br_engine_free(p.e);
    for (size_t i = 0; i < p.all.n; i++)
        br_vec_fini(&p.all.at[i]->said);
    br_vec_fini(&p.all);
    br_map_fini(&p.by_id);
    br_arena_fini(&p.arena);
    return code;
}

/* ---- a timeline ---------------------------------------------------------- */

/* ph "X": from ts on, dur long; "i": a moment. Microseconds. tid 0: steps. */
static void
mark(br_json_writer *w, const char *name, const br_trace_rec *rec, uint32_t tid)
{
    bool step = rec->kind == BR_TRACE_STEP;
    int64_t from = rec->t_ns - (step ? rec->event.ns : 0);

    br_json_w_obj(w);
    br_json_w_key_strz(w, "name", name);
    br_json_w_key_strz(w, "ph", step ? "X" : "i");
    br_json_w_key_f64(w, "ts", (double)from / 1e3);
    if (step)
        br_json_w_key_f64(w, "dur", (double)rec->event.ns / 1e3);
    else
        br_json_w_key_strz(w, "s", "t");
    br_json_w_key_u64(w, "pid", 1);
    br_json_w_key_u64(w, "tid", tid);
    br_json_w_obj_end(w);
}

/* A slot's request from BEGIN to where it leaves. */
static void
span(br_json_writer *w, const br_trace_rec *begun, int64_t end)
{
    char name[40];

    (void)snprintf(name, sizeof name, "request %llx",
                   (unsigned long long)begun->event.id);
    br_json_w_obj(w);
    br_json_w_key_strz(w, "name", name);
    br_json_w_key_strz(w, "ph", "X");
    br_json_w_key_f64(w, "ts", (double)begun->t_ns / 1e3);
    br_json_w_key_f64(w, "dur", (double)(end - begun->t_ns) / 1e3);
    br_json_w_key_u64(w, "pid", 1);
    br_json_w_key_u64(w, "tid", (uint64_t)begun->event.a + 1);
    br_json_w_obj_end(w);
}

/* Requests that ran when the trace, or what there is of it, ends. */
static void
span_all(br_json_writer *w, const br_map *slots, int64_t end)
{
    const br_map_entry *e;

    for (size_t i = 0; (e = br_map_next(slots, &i));)
        span(w, e->value.p, end);
}

static br_code
draw(br_json_writer *w, br_map *slots, br_arena *a, const br_trace_rec *rec,
     br_status *st)
{
    br_map_value *v;
    char name[64];

    switch (rec->kind) {
    case BR_TRACE_STEP:
        (void)snprintf(name, sizeof name, "%u rows, %u decode", rec->event.a,
                       rec->event.b);
        mark(w, name, rec, 0);
        return BR_OK;
    case BR_TRACE_BEGIN:
        v = br_map_put_u64(slots, rec->event.id, NULL);
        if (!v || !(v->p = br_arena_dup(a, rec, sizeof *rec)))
            return oom(st);
        return BR_OK;
    case BR_TRACE_PREEMPT:
    case BR_TRACE_END:
        v = br_map_get_u64(slots, rec->event.id);
        if (v)
            span(w, v->p, rec->t_ns);
        (void)br_map_del_u64(slots, rec->event.id);
        return BR_OK;
    case BR_TRACE_SUBMIT: mark(w, "submit", rec, 0); return BR_OK;
    case BR_TRACE_CUT:
    case BR_TRACE_TOKEN:
    case BR_TRACE_LOST:
    case BR_TRACE_KINDS: return BR_OK;
    }
    return BR_OK;
}

br_code
br_trace_timeline(const void *trace, size_t n, br_str *out, bool *cut,
                  br_status *st)
{
    br_trace_reader r;
    br_json_writer w;
    br_map slots = {0};
    br_arena a, parts;
    bool more = true;
    int64_t last = 0;
    br_code code;

    *cut = false;
    BR_TRY(br_trace_read(&r, trace, n, st));
    br_arena_init(&a, 0);
    br_arena_init(&parts, 0);
    br_json_w_begin(&w, out, 0);
    br_json_w_obj(&w);
    br_json_w_key(&w, "traceEvents");
    br_json_w_arr(&w);
    for (code = BR_OK; more && code == BR_OK;) {
        br_trace_rec rec;

        br_arena_reset(&parts);
        code = br_trace_next(&r, &parts, &rec, &more, st);
        if (code == BR_OK)
            code = draw(&w, &slots, &a, &rec, st);
        last = BR_MAX(last, rec.t_ns);
        *cut = rec.kind == BR_TRACE_CUT;
    }
    if (code == BR_OK)
        span_all(&w, &slots, last);
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
    br_map_fini(&slots);
    br_arena_fini(&a);
    br_arena_fini(&parts);
    return code;
}
