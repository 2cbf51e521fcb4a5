/* model_wait.c - which model a request is for, and waiting for one that comes.
 *
 *   request --br_choose_model--> it is there: the handler goes on
 *                |
 *                `--> BUSY: it comes --br_no_model--> awaiting
 *                                                        |
 *        br_http_ready  --> it is there  --> routed again, in the order they came
 *        br_http_failed --> it is not    --> an error that says why
 *        its client goes, its deadline passes, the server drains --> the same
 *
 * A model comes that rested (--unload-idle), that there was no room for
 * (--memory), that the admin loads, or that a start with several has yet to
 * load. Who waits holds a connection, as who waits in an engine's queue does, and
 * as many may. The request stands in its connection as it came, so that all it
 * asks for is looked at again, its key, too.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "http/gen.h"

#include <stdio.h>
#include <string.h>

typedef struct br_not_come {
    char name[BR_HTTP_MODEL];
    br_status why; /* OK: look again */
    struct br_not_come *next;
} not_come;

/* ---- which --------------------------------------------------------------- */

/* Once, though several have it: one that leaves and the next of its name. */
static void
put_name(void *to, const char *name, const char *why)
{
    char quoted[BR_HTTP_MODEL + 2];
    br_str *out = to;

    (void)why;
    (void)snprintf(quoted, sizeof quoted, "'%s'", name);
    if (!strstr(br_str_z(out), quoted))
        br_str_printf(out, "%s%s", out->n ? ", " : "", quoted);
}

/* The names a client could have asked for. */
static void
put_names(const br_http *h, br_str *out)
{
    if (h->config.listed) {
        h->config.listed(h->config.ctx, put_name, out);
        return;
    }
    for (const br_served *m = h->served; m; m = m->next)
        if (!atomic_load_explicit(&m->leaves, memory_order_relaxed))
            put_name(out, m->m.name, NULL);
}

static void
count_name(void *to, const char *name, const char *why)
{
    (void)name, (void)why;
    ++*(size_t *)to;
}

bool
br_may_come(const br_http *h)
{
    size_t n = 0;

    if (!atomic_load_explicit(&h->rests, memory_order_relaxed))
        return false;
    if (!h->config.listed)
        return true;
    h->config.listed(h->config.ctx, count_name, &n);
    return n > 0; /* else the admin has let the last one go */
}

/* name becomes the only one that c's key may have, where that is so. */
static br_code
may_have(const br_http_conn *c, const char **name, br_status *st)
{
    const char *only = c->model[0] ? c->model : NULL;

    if (only && *name && strcmp(*name, only) != 0)
        return br_fail(st, BR_E_NOT_FOUND,
                       "model: '%.80s' is not for this key, which has '%s'",
                       *name, only);
    *name = only ? only : *name;
    return BR_OK;
}

static br_served *
find(br_http *h, const char *name)
{
    br_served *m = br_served_find(h, name);

    if (m)
        return m;
    /* it leaves, and the next one of its name is offered by now */
    br_http_adopt(h);
    return br_served_find(h, name);
}

static br_code
not_here(const br_http *h, const char *name, br_status *st)
{
    br_str names = {0};
    br_code code;

    put_names(h, &names);
    code = br_fail(st, BR_E_NOT_FOUND,
                   "model: '%.80s' is not here; this server has %s",
                   name ? name : "", names.n ? br_str_z(&names) : "none");
    br_str_fini(&names);
    return code;
}

br_code
br_look_at_model(br_http *h, const br_http_conn *c, const char *name,
                 br_status *st)
{
    BR_TRY(may_have(c, &name, st));
    h->model = find(h, name);
    return h->model ? BR_OK : not_here(h, name, st);
}

br_code
br_choose_model(br_http *h, const br_http_conn *c, const char *name,
                br_status *st)
{
    BR_TRY(may_have(c, &name, st));
    h->model = find(h, name);
    if (h->model) {
        h->model->asked_ns = br_now_ns();
        return BR_OK;
    }
    if (h->config.wanted &&
        h->config.wanted(h->config.ctx, name, h->comes, sizeof h->comes))
        return name ? br_fail(st, BR_E_BUSY, "model: '%.80s' is being loaded",
                              name)
                    : br_fail(st, BR_E_BUSY, "the model is being loaded");
    return not_here(h, name, st);
}

br_code
br_model_comes(br_http *h, const char *name, br_status *st)
{
    bool comes = !h->served;

    if (find(h, name))
        return BR_OK;
    if (h->config.wanted)
        comes =
            h->config.wanted(h->config.ctx, name, h->comes, sizeof h->comes);
    return comes ? BR_OK : not_here(h, name, st);
}

typedef struct listed {
    const char *name;
    bool is;
} listed;

static void
is_listed(void *to, const char *name, const char *why)
{
    listed *l = to;

    l->is |= !why && strcmp(name, l->name) == 0;
}

bool
br_model_is_listed(const br_http *h, const char *name)
{
    listed l = {name, br_served_find(h, name) != NULL};

    if (!h->config.listed)
        return l.is || h->config.wanted || !h->served;
    h->config.listed(h->config.ctx, is_listed, &l);
    return l.is;
}

/* ---- waiting ------------------------------------------------------------- */

void
br_reply_absent(br_http *h, br_http_conn *c)
{
    br_reply_error(
        h, c, 503, NULL,
        atomic_load_explicit(&h->rests, memory_order_relaxed)
            ? "no model is loaded; one comes when it is asked something"
            : "the model is being loaded");
}

void
br_no_model(br_http *h, br_http_conn *c, const br_status *st)
{
    br_awaiting a = {.c = c};
    br_status why = *st;
    int64_t deadline;

    if (why.code == BR_E_BUSY) {
        memcpy(a.name, h->comes, sizeof a.name);
        why = (br_status){0};
        if (h->awaiting.n >= h->config.most_awaiting)
            (void)br_fail(&why, BR_E_BUSY,
                          "%.100s, and %zu requests are waiting already",
                          st->msg, h->awaiting.n);
        else if (br_deadline_of(c, &deadline, &why) == BR_OK &&
                 !br_vec_push(&h->awaiting, a))
            (void)br_fail(&why, BR_E_OOM, "out of memory");
    }
    if (why.code != BR_OK)
        br_reply_status(h, c, &why, "model");
}

/* The one at i is told: NULL, it is routed again. */
static void
answer(br_http *h, size_t i, const br_error *e)
{
    br_http_conn *c = h->awaiting.at[i].c;

    h->awaiting.n--;
    memmove(&h->awaiting.at[i], &h->awaiting.at[i + 1],
            (h->awaiting.n - i) * sizeof h->awaiting.at[0]);
    if (e)
        br_reply_fail(h, c, e);
    else
        br_route_again(h, c);
}

/* All who wait for that name; e as above. Who is routed again may wait again. */
static void
answer_all(br_http *h, const char *name, const br_error *e)
{
    size_t n = h->awaiting.n;

    for (size_t i = 0; n; n--)
        if (strcmp(h->awaiting.at[i].name, name) == 0)
            answer(h, i, e);
        else
            i++;
}

/* It may have been told already to make room for the next one: those who waited
 * for it come first, else two models that are asked for in turn could go round
 * without an answer. */
void
br_await_came(br_http *h, br_served *m)
{
    h->came = m;
    answer_all(h, m->m.name, NULL);
    h->came = NULL;
}

void
br_await_gone(br_http *h, const br_http_conn *c)
{
    for (size_t i = 0; i < h->awaiting.n; i++)
        if (h->awaiting.at[i].c == c) {
            h->awaiting.n--;
            memmove(&h->awaiting.at[i], &h->awaiting.at[i + 1],
                    (h->awaiting.n - i) * sizeof h->awaiting.at[0]);
            return;
        }
}

void
br_await_tick(br_http *h, int64_t now_ns)
{
    for (size_t i = h->awaiting.n; i--;) {
        br_status st = {0};
        int64_t deadline = 0;

        if (br_deadline_of(h->awaiting.at[i].c, &deadline, &st) != BR_OK)
            deadline = 0;
        if (h->draining)
            answer(h, i,
                   &(br_error){.status = 503,
                               .msg = "the server is shutting down"});
        else if (deadline && now_ns > deadline)
            answer(
                h, i,
                &(br_error){.status = 504, .msg = "the deadline has passed"});
    }
}

/* ---- how many wait ------------------------------------------------------- */

typedef struct waiters {
    const br_http *h;
    br_str *rows;
} waiters;

static void
put_waiters(void *to, const char *name, const char *why)
{
    waiters *w = to;
    br_str row = {0};
    size_t n = 0;

    (void)why;
    for (size_t i = 0; i < w->h->awaiting.n; i++)
        n += strcmp(w->h->awaiting.at[i].name, name) == 0;
    br_metrics_name(&row, "brass_", "requests_awaiting_model", name);
    br_str_puts(&row, "} ");
    if (!strstr(br_str_z(w->rows), br_str_z(&row)))
        br_str_printf(w->rows, "%s%zu\n", br_str_z(&row), n);
    w->rows->oom |= row.oom;
    br_str_fini(&row);
}

/* Of each that may be asked for, and of one that is no longer listed while its
 * waiters have not heard of it. */
void
br_await_metrics(const br_http *h, br_str *out)
{
    br_str rows = {0};
    waiters w = {h, &rows};

    if (h->config.listed)
        h->config.listed(h->config.ctx, put_waiters, &w);
    for (const br_served *m = h->served; m && !h->config.listed; m = m->next)
        put_waiters(&w, m->m.name, NULL);
    for (size_t i = 0; i < h->awaiting.n; i++)
        put_waiters(&w, h->awaiting.at[i].name, NULL);
    br_metrics_head(out, "brass_", "requests_awaiting_model", "gauge",
                    "Requests that wait for a model to be loaded.");
    br_str_put(out, br_str_z(&rows), rows.n);
    out->oom |= rows.oom;
    br_str_fini(&rows);
}

/* ---- it does not come ---------------------------------------------------- */

void
br_http_failed(br_http *h, const char *name, const br_status *why)
{
    not_come *n = br_try_calloc(1, sizeof *n);

    if (!n) { /* then they wait until they are told to look again */
        br_log(BR_EV_http_failed, "%s: out of memory", name);
        return;
    }
    (void)snprintf(n->name, sizeof n->name, "%s", name);
    if (why)
        n->why = *why;
    br_mutex_lock(&h->lock);
    n->next = h->not_come;
    h->not_come = n;
    br_mutex_unlock(&h->lock);
    br_http_loop_wake(h->loop);
}

static void
tell(br_http *h, const not_come *n)
{
    br_status st = n->why;
    br_error e = {.status = 500, .msg = st.msg, .param = "model"};

    if (st.code == BR_OK) {
        answer_all(h, n->name, NULL);
        return;
    }
    /* nothing that its client can mend by asking otherwise */
    if (br_code_http(st.code) == 503 || st.code == BR_E_LIMIT)
        e.status = 503;
    br_prefix(&st, "model: '%.80s' could not be loaded", n->name);
    answer_all(h, n->name, &e);
}

void
br_await_failed(br_http *h)
{
    not_come *n, *next, *first = NULL;

    br_mutex_lock(&h->lock);
    n = h->not_come;
    h->not_come = NULL;
    br_mutex_unlock(&h->lock);
    for (; n; n = next) { /* as they came */
        next = n->next;
        n->next = first;
        first = n;
    }
    for (n = first; n; n = next) {
        next = n->next;
        tell(h, n);
        br_free(n);
    }
}

void
br_await_free(br_http *h)
{
    for (not_come *n = h->not_come, *next; n; n = next) {
        next = n->next;
        br_free(n);
    }
    h->not_come = NULL;
    br_vec_fini(&h->awaiting);
}
