/* server.c - see http.h: life of the server, and what the loop calls.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/thread.h"
#include "http/gen.h"
#include "http/tale.h"

#include <string.h>

br_http_config
br_http_config_default(void)
{
    return (br_http_config){.host = "127.0.0.1",
                            .port = 8080,
                            .limits = br_http_limits_default(),
                            .most_awaiting = BR_ENGINE_QUEUE,
                            .sample = br_sample_defaults(),
                            .drain_ns = INT64_C(30000000000)};
}

/* ---- what the loop calls ------------------------------------------------- */

static void
on_request(void *ctx, br_http_conn *c)
{
    br_route(ctx, c);
}

static void
on_gone(void *ctx, br_http_conn *c, bool too_slow)
{
    br_await_gone(ctx, c);
    br_tale_gone(c);
    br_gen_gone(c, too_slow);
}

static void
on_drained(void *ctx, br_http_conn *c)
{
    (void)ctx;
    br_tale_drained(c);
    br_gen_drained(c);
}

static void
on_refuse(void *ctx, br_http_conn *c, int status, const char *why)
{
    br_reply_error(ctx, c, status, NULL, why);
}

void
br_http_adopt(br_http *h)
{
    br_status st = {0};
    br_served **end = &h->served, *m, *came;

    br_mutex_lock(&h->lock);
    m = h->offered;
    h->offered = NULL;
    while (*end)
        end = &(*end)->next;
    *end = m;
    br_mutex_unlock(&h->lock);
    came = m;
    for (; m; m = m->next) {
        atomic_store_explicit(&m->used, ++h->n_asked, memory_order_relaxed);
        m->asked_ns = br_now_ns();
        m->fresh = true;
        if (br_http_loop_watch(h->loop, br_engine_fd(m->m.engine), &st) !=
            BR_OK) {
            br_log(BR_EV_http_failed, "%s", st.msg);
            br_http_loop_stop(h->loop);
            return;
        }
        br_log(BR_EV_http_ready, "%s on %s", m->m.name, m->m.tier);
        br_resume_model(h, m);
    }
    if (came)
        br_resume_want(h);
}

/* Those that leave and have answered all they were asked, and those who waited
 * for them. */
static void
let_go(br_http *h)
{
    for (br_served **at = &h->served; *at;) {
        br_served *m = *at;

        if (!atomic_load_explicit(&m->leaves, memory_order_acquire) ||
            m->n_gens || m->fresh) {
            at = &m->next;
            continue;
        }
        br_mutex_lock(&h->lock);
        *at = m->next;
        br_mutex_unlock(&h->lock);
        br_http_loop_unwatch(h->loop, br_engine_fd(m->m.engine));
        for (size_t i = 0; i < BR_COUNT(h->kept); i++)
            if (h->kept[i].g && h->kept[i].vocab == m->vocab) {
                br_grammar_free(h->kept[i].g);
                h->kept[i].g = NULL;
            }
        br_vocab_free(m->vocab);
        br_log(BR_EV_http_left, "%s", m->m.name);
        if (h->config.left)
            h->config.left(h->config.ctx, &m->m);
        h->model = h->model == m ? NULL : h->model;
        br_free(m);
    }
}

static void
on_wake(void *ctx)
{
    enum { AT_ONCE = 256 }; /* then clients get their bytes */
    br_http *h = ctx;

    br_http_adopt(h);
    for (br_served *m = h->served; m; m = m->next)
        if (m->fresh) {
            m->fresh = false;
            br_await_came(h, m);
        }
    br_await_failed(h);
    br_reader_collect(h);
    /* An engine's file becomes readable once, until its ring has been seen
     * empty. */
    for (br_served *m = h->served; m; m = m->next)
        if (br_engine_drain(m->m.engine, AT_ONCE) == AT_ONCE)
            br_http_loop_wake(h->loop);
    let_go(h);
}

/* Partners: let_go, which is not to miss what was done before; br_served_find,
 * as who finds none of them sees that one may come. */
static void
tell_to_leave(br_http *h, br_served *m)
{
    atomic_store_explicit(&h->rests, true, memory_order_relaxed);
    atomic_store_explicit(&m->leaves, true, memory_order_release);
}

/* Nobody has asked them anything for long. */
static void
leave_idle(br_http *h, int64_t now_ns)
{
    for (br_served *m = h->served; m && h->config.idle_ns; m = m->next)
        if (!m->n_gens && now_ns - m->asked_ns > h->config.idle_ns) {
            tell_to_leave(h, m);
        }
    let_go(h);
}

static void
tend_databases(br_http *h)
{
    if (h->store)
        br_tstore_tend(h->store);
    if (h->talks) {
        br_talks_tend(h->talks);
        br_talks_look(h->talks); /* br_background_tick sees what it said */
    }
}

#define LAST_NS INT64_C(1000000000)

static bool
on_tick(void *ctx, int64_t now_ns, bool stopping)
{
    br_http *h = ctx;

    br_gen_tick(h, now_ns);
    br_come_back_tick(h, now_ns);
    br_tales_tick(h, now_ns);
    br_await_tick(h, now_ns);
    br_resume_tick(h, now_ns);
    tend_databases(h);
    if (!stopping) {
        leave_idle(h, now_ns);
        return true;
    }
    if (!h->leave_end_ns) {
        h->leaving = true;
        /* nobody sends requests where no model ever was */
        h->leave_end_ns = now_ns + (h->n_asked ? h->config.leave_ns : 0);
    }
    if (now_ns < h->leave_end_ns &&
        atomic_load_explicit(&h->stops, memory_order_relaxed) == 1)
        return true;
    if (!h->draining) {
        h->draining = true;
        h->last_ns = now_ns;
        h->drain_end_ns = now_ns + h->config.drain_ns;
        for (br_served *m = h->served; m; m = m->next)
            br_engine_begin_drain(m->m.engine);
        br_log(BR_EV_http_drain, "%u answers under way", h->n_gens);
    }
    if (now_ns >= h->drain_end_ns ||
        atomic_load_explicit(&h->stops, memory_order_relaxed) > 1)
        br_gen_cancel_all(h);
    if (h->n_gens)
        h->last_ns = now_ns;
    /* Connections that go on asking cannot keep it up. */
    return now_ns < h->last_ns + LAST_NS &&
           (h->n_gens || br_http_loop_conns(h->loop));
}

/* ---- life ---------------------------------------------------------------- */

enum { LEAST_KEY = 16, MOST_KEYS = 64 << 10 /* bytes of a file */ };

static bool
take_key(const char *p, size_t n, uint8_t out[BR_BLAKE2B_BYTES])
{
    while (n && (p[n - 1] == '\r' || p[n - 1] == ' '))
        n--;
    br_blake2b(p, n, out);
    return n >= LEAST_KEY;
}

/* Lines of a file; those that are empty or begin with # say nothing. */
static br_code
read_keys(const char *path, uint8_t (*out)[BR_BLAKE2B_BYTES], uint32_t most,
          uint32_t *n, br_status *st)
{
    br_code code = BR_OK;
    char *text, *end;
    size_t bytes;

    BR_TRY(br_file_read(path, MOST_KEYS, &text, &bytes, st));
    for (char *p = text; p < text + bytes && code == BR_OK; p = end + 1) {
        end = memchr(p, '\n', bytes - (size_t)(p - text));
        end = end ? end : text + bytes;
        if (p == end || *p == '#' || *p == '\r')
            continue;
        if (*n == most)
            code = br_fail(st, BR_E_FORMAT, "%s: more than %u %s", path, most,
                           most == 1 ? "key" : "keys");
        else if (!take_key(p, (size_t)(end - p), out[(*n)++]))
            code =
                br_fail(st, BR_E_FORMAT, "%s: a key has %d characters or more",
                        path, LEAST_KEY);
    }
    br_free(text);
    if (code == BR_OK && *n == 0)
        code = br_fail(st, BR_E_FORMAT, "%s: there is no key in it", path);
    return code;
}

static br_code
read_key_files(br_http *h, br_status *st)
{
    const br_http_config *k = &h->config;
    uint32_t n = 0;

    if (k->keys && k->db)
        return br_fail(st, BR_E_USAGE,
                       "--api-key-file: with --db keys are the tenants'");
    if (k->keys)
        BR_TRY(read_keys(k->keys, h->keys, BR_HTTP_KEYS, &h->n_keys, st));
    if (k->admin)
        BR_TRY(read_keys(k->admin, &h->admin, 1, &n, st));
    h->has_admin = n;
    return BR_OK;
}

static br_code
open_doors(br_http *h, br_status *st)
{
    const br_http_config *k = &h->config;
    bool own = true;

    h->open = !k->db && !k->keys;
    BR_TRY(read_key_files(h, st));
    if (k->db) {
        BR_TRY(br_tstore_open(&h->store, k->db, st));
        br_tstore_hurry(h->store);
    }
    if (k->talks.path && br_talks_open(&h->talks, &k->talks, st) != BR_OK)
        return br_prefix(st, "--responses");
    if (k->host && h->open && !k->insecure)
        BR_TRY(br_http_is_loopback(k->host, &own, st));
    if (!own)
        return br_fail(st, BR_E_USAGE,
                       "--host %s: others could reach it; give --db or "
                       "--api-key-file, or --insecure if that is meant",
                       k->host);
    if (!k->tls_cert != !k->tls_key)
        return br_fail(st, BR_E_USAGE, "--tls-cert and --tls-key go together");
    if (k->tls_cert)
        BR_TRY(br_http_loop_tls(h->loop, k->tls_cert, k->tls_key, st));
    h->port = k->port;
    if (k->host)
        BR_TRY(br_http_listen(h->loop, k->host, &h->port, st));
    if (k->unix_path)
        BR_TRY(br_http_listen_unix(h->loop, k->unix_path, st));
    return BR_OK;
}

br_code
br_http_new(br_http **out, const br_http_config *config, br_status *st)
{
    br_http *h = br_try_calloc(1, sizeof *h);
    const br_http_app app = {h,          on_request, on_gone,  on_wake,
                             on_drained, on_tick,    on_refuse};
    br_code code;

    *out = NULL;
    if (!h)
        return br_fail(st, BR_E_OOM, "http: out of memory");
    h->config = *config;
    h->lock = (br_mutex)BR_MUTEX;
    h->started_ns = br_now_ns();
    h->created = br_wall_ns() / 1000000000;
    h->work = br_tok_work_new();
    code = h->work ? BR_OK : br_fail(st, BR_E_OOM, "http: out of memory");
    if (code == BR_OK)
        code = br_http_loop_new(&h->loop, &config->limits, &app, st);
    if (code == BR_OK)
        code = br_reader_start(h, st);
    if (code == BR_OK)
        code = open_doors(h, st);
    if (code != BR_OK) {
        br_http_free(h);
        return code;
    }
    br_resume_load(h);
    *out = h;
    return BR_OK;
}

static void
free_models(br_served *m)
{
    br_served *next;

    for (; m; m = next) {
        next = m->next;
        br_vocab_free(m->vocab);
        br_free(m);
    }
}

void
br_http_free(br_http *h)
{
    if (!h)
        return;
    br_reader_stop(h);
    br_http_loop_free(h->loop);
    br_come_back_free(h);
    br_tales_free(h);
    br_check(!h->gens && "br_http_run leaves none");
    br_tok_work_free(h->work);
    for (size_t i = 0; i < BR_COUNT(h->kept); i++) {
        br_grammar_free(h->kept[i].g);
        br_str_fini(&h->kept[i].text);
    }
    free_models(h->served);
    free_models(h->offered);
    br_vec_fini(&h->ids);
    br_str_fini(&h->scratch);
    br_await_free(h);
    br_resume_free(h);
    br_tstore_close(h->store);
    br_talks_close(h->talks);
    br_free(h);
}

uint16_t
br_http_port(const br_http *h)
{
    return h->port;
}

br_code
br_http_room(const br_http *h, br_status *st)
{
    return br_http_loop_room(h->loop, st);
}

br_code
br_http_ready(br_http *h, const br_http_model *model, br_status *st)
{
    br_served *m = br_try_calloc(1, sizeof *m), **end;

    if (!m)
        return br_fail(st, BR_E_OOM, "%s: out of memory", model->name);
    m->m = *model;
    if (br_vocab_new(&m->vocab, model->tok,
                     model->chat ? br_chat_tools(model->chat) : NULL,
                     st) != BR_OK)
        br_log(BR_EV_http_failed, "%s", st->msg);
    br_mutex_lock(&h->lock);
    end = &h->offered;
    while (*end)
        end = &(*end)->next;
    *end = m;
    br_mutex_unlock(&h->lock);
    br_http_loop_wake(h->loop);
    return BR_OK;
}

void
br_http_leave(br_http *h, const void *owner)
{
    br_mutex_lock(&h->lock);
    for (int offered = 0; offered < 2; offered++)
        for (br_served *m = offered ? h->offered : h->served; m; m = m->next)
            if (m->m.owner == owner)
                tell_to_leave(h, m);
    br_mutex_unlock(&h->lock);
    br_http_loop_wake(h->loop);
}

void
br_http_leave_oldest(br_http *h)
{
    br_served *oldest = NULL;

    br_mutex_lock(&h->lock);
    for (int offered = 0; offered < 2 && !oldest; offered++)
        for (br_served *m = offered ? h->offered : h->served; m; m = m->next)
            if (!atomic_load_explicit(&m->leaves, memory_order_relaxed) &&
                (!oldest || m->used < oldest->used))
                oldest = m;
    if (oldest)
        tell_to_leave(h, oldest);
    br_mutex_unlock(&h->lock);
    br_http_loop_wake(h->loop);
}

br_served *
br_served_find(const br_http *h, const char *name)
{
    br_served *m = h->served;

    if (h->came && (!name || strcmp(name, h->came->m.name) == 0))
        return h->came;
    while (m && (atomic_load_explicit(&m->leaves, memory_order_acquire) ||
                 (name && strcmp(name, m->m.name) != 0)))
        m = m->next;
    return m;
}

void
br_http_run(br_http *h)
{
    /* Else a token waits for a slice of a thread that computes: 3 ms. */
    (void)br_os_thread_soon();
    br_http_loop_run(h->loop);
    br_reader_stop(h);
    /* What clients left behind ends, so that nothing of the engine's refers to
     * us any more. */
    while (h->n_gens) {
        br_gen_cancel_all(h);
        for (br_served *m = h->served; m; m = m->next)
            if (m->n_gens && br_engine_wait(m->m.engine, 100000000))
                br_engine_drain(m->m.engine, SIZE_MAX);
    }
    br_resume_save(h);
}

void
br_http_stop(br_http *h)
{
    atomic_fetch_add_explicit(&h->stops, 1, memory_order_relaxed);
    br_http_loop_stop(h->loop);
}
