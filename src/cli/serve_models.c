/* serve_models.c - the loader of brass serve: opens the models, starts their
 * engines, br_http_ready. After SIGHUP it reads --model-list again: some come,
 * some leave; so they do when the admin says so; with --memory, those asked for
 * come and the oldest leave.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve.h"

#include "base/hash.h"
#include "base/log.h"
#include "cli/catalogue.h"
#include "cli/progress.h"
#include "cli/tiers.h"
#include "drv/cuda/cuda_nodes.h"
#include "run/keep.h"

#include <string.h>
#include <unistd.h>

typedef br_serve_model served;
typedef br_serve_order order;
typedef br_serve server;

/* ---- the model ----------------------------------------------------------- */

static br_code
open_template(served *m, const char *path, br_status *st)
{
    enum { MOST = 1 << 20 };
    char *text;
    br_code code;
    size_t n;

    BR_TRY(br_file_read(path, MOST, &text, &n, st));
    code = br_chat_from_template(&m->chat, (br_text){text, n}, m->tok, st);
    br_free(text);
    return code == BR_OK ? code : br_prefix(st, "%s", path);
}

/* Which may want the same device's memory. */
static bool
has_others(const server *s)
{
    return s->cli->n_args > 1 || br_opt_given(s->cli, BR_OPT_models_file);
}

static br_code
open_model(server *s, served *m, br_status *st)
{
    const char *template = br_opt_str(s->cli, BR_OPT_chat_template);
    br_status none = {0};
    br_str cache = {0};
    br_lm_config c;
    br_code code;

    BR_TRY(br_progress_model(s->cli, &m->model, m->path.at, &s->stop, st));
    BR_TRY(br_cli_ctx_check(s->cli, m->model, st));
    BR_TRY(br_tok_from_gguf(&m->tok, m->model->gguf, NULL, st));
    /* Without a template texts can be continued, chats not held. */
    if (template)
        BR_TRY(open_template(m, template, st));
    else if (br_chat_new(&m->chat, m->model->gguf, m->tok, &none) != BR_OK &&
             none.code != BR_E_UNSUPPORTED)
        return br_fail(st, none.code, "%s", none.msg);
    c = br_cli_lm_config(s->cli, &cache);
    c.n_ctx = (uint32_t)br_opt_int(s->cli, BR_OPT_max_ctx);
    c.n_slots = (uint32_t)br_opt_int(s->cli, BR_OPT_slots);
    c.stop = &s->stop;
    if (c.gpu_dense == BR_CUN_DENSE_AUTO && has_others(s))
        c.gpu_dense = BR_CUN_DENSE_NO;
    code = br_progress_lm(s->cli, &m->lm, m->model, &c, st);
    br_str_fini(&cache);
    return code;
}

/* What the bits in a page depend on. */
static void
identify(const server *s, const br_lm *lm, const br_gguf *g,
         uint8_t out[BR_KEEP_IDENTITY])
{
    uint64_t about[] = {br_gguf_bytes(g),
                        (uint64_t)br_opt_enum(s->cli, BR_OPT_arith),
                        (uint64_t)br_opt_enum(s->cli, BR_OPT_kv_type),
                        (uint64_t)strcmp(lm->tier, "cpu")};
    br_sha256 h;

    br_sha256_begin(&h);
    br_sha256_add(&h, about, sizeof about);
    br_gguf_sample(g, &h);
    br_sha256_end(&h, out);
}

static br_code
keep_sessions(const server *s, served *m, br_engine_config *e, br_status *st)
{
    const char *folder = br_opt_str(s->cli, BR_OPT_keep);

    if (!folder)
        return BR_OK;
    br_str_printf(&m->keep, "%s/", folder);
    for (const char *p = m->name; *p; p++) /* org/model is one file's name */
        if (*p == '/' || *p == '%')
            br_str_printf(&m->keep, "%%%02X", (unsigned)*p);
        else
            br_str_putc(&m->keep, *p);
    br_str_puts(&m->keep, ".keep");
    if (m->keep.oom)
        return br_fail(st, BR_E_OOM, "out of memory");
    identify(s, e->lm, m->model->gguf, e->identity);
    e->keep = m->keep.at;
    return BR_OK;
}

static uint64_t
page_bytes(const br_lm *lm)
{
    uint64_t n = 0;

    for (uint32_t g = 0; g < BR_MAX_KV_GROUPS; g++)
        n += (uint64_t)lm->n_pages[g] * lm->page_bytes[g];
    return n;
}

static br_code
trace(const server *s, served *m, br_status *st)
{
    const char *path = br_opt_str(s->cli, BR_OPT_trace_file);

    if (!br_opt_given(s->cli, BR_OPT_trace_file))
        return BR_OK;
    if (br_trace_open(&m->trace, path, m->path.at, st) != BR_OK)
        return br_prefix(st, "--trace");
    br_log(BR_EV_http_trace, "%s until the server ends", br_trace_at(m->trace));
    return BR_OK;
}

static br_code
start_model(server *s, served *m, br_status *st)
{
    br_engine_config e = {.turns = &s->turns};
    br_http_model h = {.name = m->name, .owner = m};

    e.lm = br_lm_model_lm(m->lm);
    e.tok = m->tok;
    BR_TRY(trace(s, m, st));
    e.trace = m->trace;
    BR_TRY(keep_sessions(s, m, &e, st));
    BR_TRY(br_engine_new(&m->engine, &e, st));
    BR_TRY(br_serve_prices(s, m->name, &h.prices, st));
    if (s->books)
        BR_TRY(br_books_add(s->books, m->engine, m->name, &h.prices, st));
    h.engine = m->engine;
    h.tok = m->tok;
    h.chat = m->chat;
    h.n_ctx = e.lm->n_ctx;
    h.tier = e.lm->tier;
    h.weight_bytes = br_gguf_bytes(m->model->gguf);
    h.kv_bytes = page_bytes(e.lm);
    return br_http_ready(s->http, &h, st);
}

/* All but its path and its name. */
static void
unload(server *s, served *m)
{
    br_status st = {0};

    br_books_drop(s->books, m->engine);
    br_engine_free(m->engine);
    if (br_trace_close(m->trace, &st) != BR_OK) {
        br_log(BR_EV_http_failed, "--trace: %s", st.msg);
        s->untraced = st;
    }
    br_lm_model_close(m->lm);
    br_chat_free(m->chat);
    br_tok_free(m->tok);
    br_model_close(m->model);
    br_str_fini(&m->keep);
    m->engine = NULL;
    m->leaves = false;
    m->trace = NULL;
    m->lm = NULL;
    m->chat = NULL;
    m->tok = NULL;
    m->model = NULL;
    atomic_store_explicit(&m->gone, false, memory_order_relaxed);
}

static void
drop_model(server *s, served *m)
{
    unload(s, m);
    br_str_fini(&m->path);
    br_str_fini(&m->error);
    br_free(m);
}

static void
on_left(void *ctx, const br_http_model *h)
{
    server *s = ctx;

    /* partner: sweep */
    atomic_store_explicit(&((served *)h->owner)->gone, true,
                          memory_order_release);
    br_event_signal(&s->wake);
}

/* The books are opened before any model is offered. */
static void
on_done(void *ctx, const br_logged *r)
{
    const server *s = ctx;

    if (s->books)
        br_books_log(s->books, r);
}

/* It comes in its turn, as others who were asked for before. */
static void
want(server *s, served *m)
{
    uint64_t none = 0;

    /* release: partner is load_all */
    (void)atomic_compare_exchange_strong_explicit(
        &m->asked, &none, ++s->n_asked, memory_order_release,
        memory_order_relaxed);
}

/* One that there is no memory for, or that rests, comes when it is asked for;
 * of those that nobody names the first. */
static bool
on_wanted(void *ctx, const char *name, char *comes, size_t n)
{
    server *s = ctx;
    bool known = false;

    br_mutex_lock(&s->lock);
    for (served *m = s->models; m && !known; m = m->next)
        if (m->wanted && (!name || strcmp(m->name, name) == 0)) {
            want(s, m);
            (void)snprintf(comes, n, "%s", m->name);
            known = true;
        }
    br_mutex_unlock(&s->lock);
    if (known)
        br_event_signal(&s->wake);
    return known;
}

static void
on_listed(void *ctx, void (*name)(void *to, const char *name, const char *why),
          void *to)
{
    server *s = ctx;

    br_mutex_lock(&s->lock);
    for (const served *m = s->models; m; m = m->next)
        if (m->wanted || m->error.n)
            name(to, m->name, m->error.n ? m->error.at : NULL);
    br_mutex_unlock(&s->lock);
}

static void
send_away(server *s, served *m)
{
    if (!m->engine)
        return;
    m->leaves = true;
    br_http_leave(s->http, m);
}

/* Those that are no longer wanted go, in the end. */
static void
sweep(server *s)
{
    for (served **at = &s->models, *m; (m = *at);) {
        if (!m->wanted)
            send_away(s, m);
        if (atomic_load_explicit(&m->gone, memory_order_acquire)) {
            /* told to go, and wanted again meanwhile: it comes */
            m->rests = s->config.idle_ns > 0 && !m->leaves;
            unload(s, m);
            if (!s->memory && !m->rests) {
                br_mutex_lock(&s->lock);
                want(s, m);
                br_mutex_unlock(&s->lock);
            }
        }
        if (m->engine || m->wanted || m->error.n) {
            at = &m->next;
            continue;
        }
        br_mutex_lock(&s->lock);
        *at = m->next;
        br_mutex_unlock(&s->lock);
        br_http_failed(s->http, m->name, NULL); /* nobody waits for it */
        drop_model(s, m);
    }
}

static bool
is_asked(served *m)
{
    return !m->engine && m->wanted &&
           atomic_load_explicit(&m->asked, memory_order_acquire);
}

static bool
has_work(void *arg)
{
    server *s = arg;

    for (served *m = s->models; m; m = m->next)
        if (atomic_load_explicit(&m->gone, memory_order_acquire) ||
            (is_asked(m) && !s->waits))
            return true;
    return atomic_load_explicit(&s->again, memory_order_acquire) ||
           atomic_load_explicit(&s->ordered, memory_order_acquire) ||
           atomic_load_explicit(&s->stop, memory_order_acquire);
}

static uint64_t
used_bytes(const server *s)
{
    uint64_t n = 0;

    for (const served *m = s->models; m; m = m->next)
        n += m->engine ? m->bytes : 0;
    return n;
}

/* In the largest unit in which what is given is something, and less. */
static br_code
too_much(uint64_t takes, uint64_t gives, const char *more, br_status *st)
{
    static const char *const units[] = {"bytes", "KB", "MB"};
    unsigned u = 2;

    while (u && (gives >> 10 * u == 0 || gives >> 10 * u == takes >> 10 * u))
        u--;
    return br_fail(st, BR_E_LIMIT, "it takes %llu %s, --memory gives %llu %s%s",
                   (unsigned long long)(takes >> 10 * u), units[u],
                   (unsigned long long)(gives >> 10 * u), units[u], more);
}

/* Weights as they are in the files, and pages: these are known once it is open. */
static br_code
count_bytes(server *s, served *m, br_status *st)
{
    const br_lm *lm = m->lm ? br_lm_model_lm(m->lm) : NULL;

    if (!s->memory)
        return BR_OK;
    if (lm)
        m->bytes = br_gguf_bytes(m->model->gguf) + page_bytes(lm);
    else if (!m->bytes)
        BR_TRY(br_gguf_bytes_at(m->path.at, &m->bytes, st));
    if (m->bytes <= s->memory)
        return BR_OK;
    return too_much(m->bytes, s->memory,
                    lm ? "; fewer slots or a shorter context take less" : "",
                    st);
}

/* Another one of its name. */
static served *
namesake(const server *s, const served *m)
{
    served *o = s->models;

    while (o && (o == m || strcmp(o->name, m->name) != 0))
        o = o->next;
    return o;
}

static void
supersede(server *s, served *old)
{
    br_mutex_lock(&s->lock);
    old->wanted = false;
    br_str_clear(&old->error);
    br_mutex_unlock(&s->lock);
    send_away(s, old);
}

/* No room: it stays where it is, or the oldest goes if it is asked for. */
static bool
has_room(server *s, served *m)
{
    served *old = namesake(s, m);

    if (!s->memory || used_bytes(s) + m->bytes <= s->memory)
        return true;
    if (old && old->engine) { /* then it comes when that one is gone */
        supersede(s, old);
        s->waits = true;
        return false;
    }
    if (is_asked(m)) {
        br_http_leave_oldest(s->http);
        s->waits = true; /* for that one, or one that leaves already */
    }
    return false;
}

static br_code
try_load(server *s, served *m, br_status *st)
{
    br_code code = count_bytes(s, m, st);

    if (code == BR_OK && !has_room(s, m))
        return BR_OK;
    if (code == BR_OK)
        code = open_model(s, m, st);
    if (code == BR_OK)
        code = count_bytes(s, m, st);
    if (code == BR_OK && !has_room(s, m)) {
        unload(s, m);
        return BR_OK;
    }
    if (code == BR_OK)
        code = start_model(s, m, st);
    atomic_store_explicit(&m->asked, 0, memory_order_relaxed);
    m->rests = false;
    if (code == BR_OK) {
        m->was_here = true;
        br_mutex_lock(&s->lock);
        br_str_clear(&m->error);
        br_mutex_unlock(&s->lock);
        for (served *o = s->models; o; o = o->next)
            if (o != m && strcmp(o->name, m->name) == 0)
                supersede(s, o);
        return BR_OK;
    }
    unload(s, m);
    return strncmp(st->msg, m->path.at, m->path.n) == 0
               ? code
               : br_prefix(st, "%s", m->path.at);
}

/* What was here before may be again when it is asked for the next time, a file
 * that is written anew, say; what never was is left out. One that has its name
 * stays, and says why. */
static void
not_loaded(server *s, served *m, const br_status *st)
{
    served *old = namesake(s, m);

    br_log(BR_EV_http_failed, "%s", st->msg);
    br_mutex_lock(&s->lock);
    m->rests = m->was_here;
    m->wanted = m->was_here;
    br_str_clear(&m->error);
    if (old)
        br_str_clear(&old->error);
    br_str_puts(old ? &old->error : &m->error, st->msg);
    br_mutex_unlock(&s->lock);
    br_http_failed(s->http, m->name, st);
}

/* The one that was asked for first, since in turns all get theirs; NULL: none. */
static served *
next_asked(const server *s)
{
    served *first = NULL;
    uint64_t of_first = UINT64_MAX;

    for (served *m = s->models; m; m = m->next) {
        uint64_t n = atomic_load_explicit(&m->asked, memory_order_relaxed);

        if (is_asked(m) && n < of_first) {
            first = m;
            of_first = n;
        }
    }
    return first;
}

/* first: a mistake of who starts it, told at once; later on the others serve. */
static br_code
load_all(server *s, bool first)
{
    served *m, *next = s->models;
    br_code code = BR_OK;

    s->waits = false;
    while (!s->waits) {
        br_status st = {0};

        m = next_asked(s);
        if (!m) {
            m = next;
            if (!m)
                break;
            next = m->next;
            if (m->engine || !m->wanted || m->rests)
                continue;
        }
        code = try_load(s, m, &st);
        if (atomic_load_explicit(&s->stop, memory_order_acquire))
            return BR_OK; /* a model that did not come is no mistake now */
        if (code != BR_OK && first) {
            s->st = st;
            return code;
        }
        if (code != BR_OK)
            not_loaded(s, m, &st);
    }
    return code;
}

/* ---- what the admin says ------------------------------------------------- */

static br_code
check_order(server *s, const order *o, br_status *st)
{
    bool known = false;
    uint32_t n = 0;

    br_mutex_lock(&s->lock);
    for (const served *m = s->models; m; m = m->next, n++)
        known |= strcmp(m->name, o->name) == 0;
    br_mutex_unlock(&s->lock);
    if (!o->path.n)
        return known ? BR_OK
                     : br_fail(st, BR_E_NOT_FOUND, "there is no model '%s'",
                               o->name);
    if (br_opt_given(s->cli, BR_OPT_trace_file))
        return br_fail(st, BR_E_USAGE, "--trace is for one model alone");
    if (n >= BR_SERVE_MODELS)
        return br_fail(st, BR_E_USAGE, "there are %u models already", n);
    return access(o->path.at, R_OK) == 0
               ? BR_OK
               : br_fail(st, BR_E_USAGE, "%s: no file that can be read",
                         o->path.at);
}

static br_code
on_order(void *ctx, const char *name, const char *model, br_status *st)
{
    server *s = ctx;
    order *o = br_try_calloc(1, sizeof *o);
    br_code code = o ? BR_OK : br_fail(st, BR_E_OOM, "out of memory");

    if (code == BR_OK) {
        (void)snprintf(o->name, sizeof o->name, "%s", name);
        code = model ? br_cli_model(s->cli, model, &o->path, st) : BR_OK;
    }
    if (code == BR_OK)
        code = check_order(s, o, st);
    if (code != BR_OK) {
        if (o)
            br_str_fini(&o->path);
        br_free(o);
        return code;
    }
    br_mutex_lock(&s->lock);
    o->next = s->orders;
    s->orders = o;
    br_mutex_unlock(&s->lock);
    /* partner: load */
    atomic_store_explicit(&s->ordered, true, memory_order_release);
    br_event_signal(&s->wake);
    return BR_OK;
}

/* With the lock held. Under a name that is taken it is loaded beside the one
 * that has it, and then that one leaves. */
static void
obey(server *s, order *o)
{
    served *m = NULL, **end = &s->models;

    for (; *end; end = &(*end)->next)
        if (strcmp((*end)->name, o->name) == 0) {
            br_str_clear(&(*end)->error);
            (*end)->wanted &= o->path.n > 0;
            if (o->path.n && strcmp((*end)->path.at, o->path.at) == 0)
                m = *end;
        }
    if (o->path.n && !m) {
        m = *end = br_try_calloc(1, sizeof *m);
        if (!m) {
            br_log(BR_EV_http_failed, "%s: out of memory", o->name);
            return;
        }
        memcpy(m->name, o->name, sizeof m->name);
        m->path = o->path;
        o->path = (br_str){0};
    }
    if (m) {
        m->wanted = true;
        atomic_store_explicit(&m->asked, 0, memory_order_relaxed);
        if (!m->engine)
            want(s, m);
    }
}

static void
obey_all(server *s)
{
    order *o, *first = NULL, *next;

    br_mutex_lock(&s->lock);
    for (o = s->orders; o; o = next) { /* as they came */
        next = o->next;
        o->next = first;
        first = o;
    }
    s->orders = NULL;
    for (o = first; o; o = next) {
        next = o->next;
        obey(s, o);
        br_str_fini(&o->path);
        br_free(o);
    }
    br_mutex_unlock(&s->lock);
}

static br_code
open_books(server *s)
{
    bool lost;

    if (!s->config.db || br_books_open(&s->books, s->config.db, &s->stop, &lost,
                                       &s->st) == BR_OK)
        return BR_OK;
    if (s->st.code == BR_E_CANCELLED) /* no mistake now */
        s->st = (br_status){0};
    return BR_E_CANCELLED;
}

/* All that stays open is: who would be refused is told of in time. */
static br_code
may_be_asked(server *s)
{
    if (atomic_load_explicit(&s->stop, memory_order_acquire))
        return BR_OK;
    return br_http_room(s->http, &s->st);
}

void
br_serve_load(void *arg)
{
    server *s = arg;

    if (open_books(s) != BR_OK || load_all(s, true) != BR_OK ||
        may_be_asked(s) != BR_OK) {
        br_http_stop(s->http);
        return;
    }
    if (!atomic_load_explicit(&s->stop, memory_order_acquire))
        br_serve_tell(s, true);
    while (!atomic_load_explicit(&s->stop, memory_order_acquire)) {
        const char *list = br_opt_str(s->cli, BR_OPT_models_file);
        br_status st = {0};

        if (atomic_exchange_explicit(&s->again, false, memory_order_acquire) &&
            list && br_serve_list(s, list, &st) != BR_OK)
            br_log(BR_EV_http_failed, "%s", st.msg);
        if (atomic_exchange_explicit(&s->ordered, false, memory_order_acquire))
            obey_all(s);
        sweep(s);
        (void)load_all(s, false);
        (void)br_event_await(&s->wake, has_work, s, 0, -1);
    }
}

/* ---- life ---------------------------------------------------------------- */

void
br_serve_hooks(server *s)
{
    s->config.left = on_left;
    s->config.wanted = on_wanted;
    s->config.listed = on_listed;
    s->config.order = on_order;
    s->config.done = on_done;
    s->config.ctx = s;
}

void
br_serve_free_models(server *s)
{
    for (served *next; s->models; s->models = next) {
        next = s->models->next;
        drop_model(s, s->models);
    }
    for (order *o = s->orders, *next; o; o = next) {
        next = o->next;
        br_str_fini(&o->path);
        br_free(o);
    }
    s->orders = NULL;
}
