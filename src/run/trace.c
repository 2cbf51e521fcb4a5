/* trace.c - writing traces. See trace.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/trace.h"

#include "base/log.h"
#include "base/thread.h"
#include "run/ring.h"

#include <string.h>

struct br_trace {
    br_ring ring;
    br_out file;
    br_thread thread;
    br_event wake;
    atomic_bool stop;
    int64_t begun;
    uint32_t lost;
    br_str scratch;
    br_status st; /* the writer's first failure */
};

/* ---- bytes --------------------------------------------------------------- */

static void
put_u32(br_str *s, uint32_t v)
{
    uint8_t b[4];

    for (int i = 0; i < 4; i++)
        b[i] = (uint8_t)(v >> (8 * i));
    br_str_put(s, (char *)b, sizeof b);
}

static void
put_u64(br_str *s, uint64_t v)
{
    put_u32(s, (uint32_t)v);
    put_u32(s, (uint32_t)(v >> 32));
}

static void
put_f32(br_str *s, float f)
{
    uint32_t v;

    memcpy(&v, &f, sizeof v);
    put_u32(s, v);
}

/* ---- a request as bytes: trace_read.c reads in the same order ----------- */

static void
put_sample(br_str *s, const br_sample_params *p)
{
    put_u64(s, p->seed);
    put_f32(s, p->temperature);
    put_u32(s, (uint32_t)p->top_k);
    put_f32(s, p->top_p);
    put_f32(s, p->min_p);
    put_f32(s, p->typical);
    put_u32(s, (uint32_t)p->penalty_last_n);
    put_f32(s, p->repeat);
    put_f32(s, p->presence);
    put_f32(s, p->frequency);
    put_f32(s, p->dry_multiplier);
    put_f32(s, p->dry_base);
    put_u32(s, (uint32_t)p->dry_allowed);
    put_u32(s, (uint32_t)p->dry_last_n);
    put_u32(s, (uint32_t)p->n_logprobs);
    put_u32(s, (uint32_t)p->n_bias);
    put_u32(s, (uint32_t)p->n_dry_breakers);
    for (size_t i = 0; i < p->n_bias; i++) {
        put_u32(s, (uint32_t)p->bias[i].id);
        put_f32(s, p->bias[i].add);
    }
    for (size_t i = 0; i < p->n_dry_breakers; i++)
        put_u32(s, (uint32_t)p->dry_breakers[i]);
}

static void
put_desc(br_str *s, br_request_id id, const br_request_desc *d)
{
    put_u64(s, id);
    put_u32(s, d->tenant);
    put_u64(s, d->session);
    put_u64(s, (uint64_t)d->max_tokens);
    put_u32(s, (d->ignore_eog ? BR_TRACE_IGNORE_EOG : 0u) |
                   (d->show_special ? BR_TRACE_SHOW_SPECIAL : 0u) |
                   (d->sample.logprobs ? BR_TRACE_LOGPROBS : 0u) |
                   (d->hook.mask || d->hook.accept ? BR_TRACE_HOOKED : 0u) |
                   (d->embed ? BR_TRACE_EMBED : 0u) |
                   (d->n_done ? BR_TRACE_GOES_ON : 0u));
    put_sample(s, &d->sample);
    put_u32(s, (uint32_t)d->n_stop_tokens);
    for (size_t i = 0; i < d->n_stop_tokens; i++)
        put_u32(s, (uint32_t)d->stop_tokens[i]);
    put_u32(s, (uint32_t)d->n_tokens);
    for (size_t i = 0; i < d->n_tokens; i++)
        put_u32(s, (uint32_t)d->tokens[i]);
    put_u32(s, (uint32_t)d->n_stop);
    for (size_t i = 0; i < d->n_stop; i++) {
        put_u32(s, (uint32_t)strlen(d->stop[i]));
        br_str_puts(s, d->stop[i]);
    }
}

/* ---- writing ------------------------------------------------------------- */

static bool
has_more(void *arg)
{
    br_trace *t = arg;

    return !br_ring_empty(&t->ring) ||
           atomic_load_explicit(&t->stop, memory_order_acquire);
}

static void
write_all(void *arg)
{
    br_trace *t = arg;
    bool over;

    do {
        const void *rec;
        uint32_t n;

        (void)br_event_await(&t->wake, has_more, t, 0, -1);
        over = atomic_load_explicit(&t->stop, memory_order_acquire);
        while ((rec = br_ring_peek(&t->ring, &n))) {
            if (t->st.code == BR_OK &&
                br_out_put(&t->file, rec, n, &t->st) != BR_OK)
                br_log(BR_EV_trace_failed, "%s", t->st.msg);
            br_ring_pop(&t->ring);
        }
    } while (!over);
}

/* scratch holds the payload from byte 16 on. */
static void
begin_record(br_trace *t, br_trace_kind kind)
{
    br_str_clear(&t->scratch);
    put_u32(&t->scratch, 0);
    put_u32(&t->scratch, kind);
    put_u64(&t->scratch, (uint64_t)(br_now_ns() - t->begun));
}

static void
end_record(br_trace *t)
{
    br_str *s = &t->scratch;
    void *to;

    while (s->n % 8)
        br_str_putc(s, 0);
    if (s->oom || s->n > BR_TRACE_MAX_RECORD ||
        !(to = br_ring_put(&t->ring, (uint32_t)s->n))) {
        t->lost++;
        return;
    }
    for (int i = 0; i < 4; i++)
        s->at[i] = (char)(s->n >> (8 * i));
    memcpy(to, s->at, s->n);
    (void)br_ring_publish(&t->ring);
    br_event_signal(&t->wake);
}

void
br_trace_submit(br_trace *t, br_request_id id, const br_request_desc *d,
                int64_t submitted_ns)
{
    if (!t)
        return;
    begin_record(t, BR_TRACE_SUBMIT);
    put_u64(&t->scratch, (uint64_t)(submitted_ns - t->begun));
    put_desc(&t->scratch, id, d);
    end_record(t);
}

void
br_trace_event_put(br_trace *t, br_trace_kind kind, const br_trace_event *e)
{
    if (!t)
        return;
    begin_record(t, kind);
    put_u64(&t->scratch, e->id);
    put_u32(&t->scratch, e->a);
    put_u32(&t->scratch, e->b);
    put_u64(&t->scratch, (uint64_t)e->ns);
    end_record(t);
}

static br_code
start(br_trace *t, const char *path, const char *model, br_status *st)
{
    br_code code;

    br_str_put(&t->scratch, BR_TRACE_MAGIC, 8);
    put_u32(&t->scratch, (uint32_t)strlen(model));
    br_str_puts(&t->scratch, model);
    if (t->scratch.oom)
        return br_fail(st, BR_E_OOM, "trace: out of memory");
    BR_TRY(br_ring_init(&t->ring, BR_TRACE_RING, st));
    BR_TRY(br_out_begin_part(&t->file, path, st));
    code = br_out_put(&t->file, t->scratch.at, t->scratch.n, st);
    if (code == BR_OK)
        code = br_thread_start(&t->thread, "trace", write_all, t, st);
    if (code != BR_OK)
        br_out_drop(&t->file);
    return code;
}

br_code
br_trace_open(br_trace **out, const char *path, const char *model,
              br_status *st)
{
    br_trace *t;
    br_code code;

    *out = NULL;
    if (strlen(model) >= BR_TRACE_MAX_MODEL)
        return br_fail(st, BR_E_LIMIT,
                       "trace: the model's path is over %d bytes",
                       BR_TRACE_MAX_MODEL - 1);
    t = br_try_calloc(1, sizeof *t);
    if (!t)
        return br_fail(st, BR_E_OOM, "trace: out of memory");
    t->begun = br_now_ns();
    code = start(t, path, model, st);
    if (code == BR_OK) {
        *out = t;
        return BR_OK;
    }
    br_ring_fini(&t->ring);
    br_str_fini(&t->scratch);
    br_free(t);
    return code;
}

const char *
br_trace_at(const br_trace *t)
{
    return t->file.temp.n ? t->file.temp.at : t->file.path.at;
}

br_code
br_trace_close(br_trace *t, br_status *st)
{
    br_code code;

    if (!t)
        return BR_OK;
    /* partner: has_more() */
    atomic_store_explicit(&t->stop, true, memory_order_release);
    br_event_signal(&t->wake);
    br_thread_join(&t->thread);
    begin_record(t, BR_TRACE_LOST);
    put_u64(&t->scratch, 0);
    put_u32(&t->scratch, t->lost);
    put_u32(&t->scratch, 0);
    put_u64(&t->scratch, 0);
    t->scratch.at[0] = (char)t->scratch.n;
    if (t->st.code == BR_OK)
        (void)!br_out_put(&t->file, t->scratch.at, t->scratch.n, &t->st);
    if (t->st.code == BR_OK) {
        code = br_out_end(&t->file, st);
    } else {
        bool kept = t->file.temp.n > 0; /* what is whole in it can be read */

        code = br_fail(st, t->st.code, "%s%s%s", t->st.msg,
                       kept ? "; what was before that is in " : "",
                       kept ? t->file.temp.at : "");
        br_out_leave(&t->file);
    }
    br_ring_fini(&t->ring);
    br_str_fini(&t->scratch);
    br_free(t);
    return code;
}
