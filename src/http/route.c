/* route.c - who may ask, and who answers.
 *
 * A server on 127.0.0.1 without keys is reached by every program of the user,
 * and by every page in the user's browser. Programs are trusted; pages are not:
 * what comes with the Origin of another site is refused, and so is a Host that
 * is not this machine's name for itself (a name that an attacker's DNS points
 * here).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/log.h"
#include "base/options.h"
#include "http/srv.h"

#include <stdio.h>
#include <string.h>

enum {
    KEY = 1,
    MODEL = 2,
    ASK = 4,
    ADMIN = 8,
    STORE = 16,
    PICK = 32,
};

static const struct route {
    const char *method, *path;
    br_handler fn;
    int flags;
} routes[] = {
#define X(method, path, handler, flags) {method, path, br_on_##handler, flags},
#include "http/routes.def"
#undef X
};

/* ---- who may ask --------------------------------------------------------- */

/* "localhost:8080" and "[::1]:8080" without the port. */
static br_text
host_name(br_text host)
{
    const char *end =
        host.p && host.p[0] == '[' ? memchr(host.p, ']', host.n) : NULL;
    const char *colon;

    if (end)
        return (br_text){host.p, (size_t)(end - host.p) + 1};
    colon = host.n ? memchr(host.p, ':', host.n) : NULL;
    return (br_text){host.p, colon ? (size_t)(colon - host.p) : host.n};
}

/* 127.x.y.z, and not 127.x.example, which anybody may own. */
static bool
is_loopback(br_text name)
{
    size_t i = 0;

    while (i < name.n && (name.p[i] == '.' || (unsigned)name.p[i] - '0' < 10))
        i++;
    return i == name.n && i > 4 && memcmp(name.p, "127.", 4) == 0;
}

static bool
is_own_name(const br_http *h, br_text host)
{
    static const char local[] = ".localhost";
    size_t n = sizeof local - 1;
    br_text name = host_name(host);

    if (!host.p) /* HTTP/1.0: no browser's */
        return true;
    if (br_http_same(name, "localhost") || br_http_same(name, "[::1]") ||
        is_loopback(name))
        return true;
    if (name.n > n && br_http_same((br_text){name.p + name.n - n, n}, local))
        return true;
    return h->config.host && br_http_same(name, h->config.host);
}

static bool
is_same_site(const br_http_conn *c)
{
    br_text origin = br_http_header_of(&c->in, "origin");
    const char *slashes;

    if (!origin.p)
        return true;
    slashes = memmem(origin.p, origin.n, "://", 3);
    if (!slashes)
        return false;
    origin.n -= (size_t)(slashes + 3 - origin.p);
    origin.p = slashes + 3;
    return br_text_eq(origin, c->in.host);
}

static br_text
key_of(const br_http_conn *c)
{
    br_text key = br_http_header_of(&c->in, "authorization");

    if (key.n > 7 && br_http_same((br_text){key.p, 7}, "bearer "))
        return (br_text){key.p + 7, key.n - 7};
    return br_http_header_of(&c->in, "x-api-key");
}

/* Digests are compared, so lengths and beginnings take the same time. */
static bool
is_admin(const br_http *h, const uint8_t *digest)
{
    return h->has_admin && br_same_secret(digest, h->admin, sizeof h->admin);
}

static bool
is_known(const br_http *h, const uint8_t *digest)
{
    bool known = false;

    for (size_t i = 0; i < h->n_keys; i++)
        known |= br_same_secret(digest, h->keys[i], sizeof h->keys[i]);
    return known;
}

/* Whose key came with the request, in c->tenant; false: refused. */
static bool
has_key(br_http *h, br_http_conn *c, const uint8_t *digest)
{
    static br_log_limit limit = {.every_ns = INT64_C(60000000000), .burst = 1};
    br_key_owner who = {0};
    br_status st = {0};
    bool ok = is_known(h, digest);

    if (h->store &&
        br_tstore_key(h->store, key_of(c), &who, &ok, &st) != BR_OK) {
        br_log_limited(&limit, BR_EV_keys_failed, "%s", st.msg);
        br_reply_error(h, c, 503, NULL, "keys cannot be looked up just now");
        return false;
    }
    if (!ok)
        br_reply_error(h, c, 401, NULL,
                       "no valid API key: send Authorization: Bearer KEY");
    c->tenant = who.tenant;
    memcpy(c->model, who.model, sizeof c->model);
    return ok;
}

/* The admin asks for no answers of the model: those are somebody's. */
static bool
may_ask(br_http *h, br_http_conn *c, int flags)
{
    uint8_t digest[BR_BLAKE2B_BYTES];
    br_text key = key_of(c);

    br_blake2b(key.p ? key.p : "", key.n, digest);
    c->admin = is_admin(h, digest);
    if (flags & ADMIN) {
        if (!h->has_admin)
            br_reply_error(h, c, 403, NULL,
                           "this takes the admin's key, of --admin-key-file");
        else if (!c->admin)
            br_reply_error(h, c, 401, NULL, "this takes the admin's key");
        else if ((flags & STORE) && !h->store)
            br_reply_error(h, c, 404, NULL,
                           "there are no tenants without --db");
        return c->admin && (h->store || !(flags & STORE));
    }
    return !(flags & KEY) || h->open || (c->admin && !(flags & ASK)) ||
           has_key(h, c, digest);
}

/* ---- who answers --------------------------------------------------------- */

/* A path, or one with {} for words. */
static bool
is_path(br_text path, const char *route)
{
    const char *p = path.p, *end = p + path.n;

    while (*route) {
        const char *word = p;

        if (*route != '{') {
            if (p == end || *p++ != *route++)
                return false;
            continue;
        }
        while (p < end && *p != '/')
            p++;
        if (p == word)
            return false;
        route += 2;
    }
    return p == end;
}

/* OPTIONS asks for no more than that line. */
static void
wrong_method(br_http *h, br_http_conn *c)
{
    static const char head[] = "Allow: ";
    br_str s = {0}, allow = {0};
    int status = 405;
    char why[160];

    br_str_puts(&allow, head);
    for (size_t i = 0; i < BR_COUNT(routes); i++)
        if (is_path(c->in.path, routes[i].path))
            br_str_printf(&allow,
                          routes[i].method[0] == 'G' ? "%s, HEAD, " : "%s, ",
                          routes[i].method);
    br_str_puts(&allow, "OPTIONS");
    (void)snprintf(why, sizeof why,
                   "this path is not for that method; it takes %.*s",
                   allow.oom ? 0 : (int)(allow.n - (sizeof head - 1)),
                   allow.oom ? "" : allow.at + sizeof head - 1);
    br_str_puts(&allow, "\r\n");
    if (br_text_is(c->in.method, "OPTIONS"))
        status = 200;
    else
        br_error_json(&s, br_is_anthropic(c),
                      &(br_error){.status = status, .msg = why});
    br_http_answer(c, status, "application/json", br_str_z(&allow),
                   (br_text){br_str_z(&s), s.n});
    br_str_fini(&s);
    br_str_fini(&allow);
    br_metrics_answer(&h->metrics, status);
}

static void
no_path(br_http *h, br_http_conn *c)
{
    br_suggest near;
    char hint[100], why[140];

    br_suggest_begin(&near, c->in.path);
    for (size_t i = 0; i < BR_COUNT(routes); i++)
        if (!strchr(routes[i].path, '{') &&
            br_text_is(c->in.method, routes[i].method))
            br_suggest_offer(&near, br_text_z(routes[i].path));
    br_suggest_text(&near, "", hint, sizeof hint);
    (void)snprintf(why, sizeof why, "no such path%s", hint);
    br_reply_error(h, c, 404, NULL, why);
}

static const struct route *
find(br_http *h, br_http_conn *c)
{
    bool head = br_text_is(c->in.method, "HEAD");
    bool path = false;

    for (size_t i = 0; i < BR_COUNT(routes); i++) {
        const struct route *r = &routes[i];

        if (!is_path(c->in.path, r->path))
            continue;
        path = true;
        if (br_text_is(c->in.method, r->method) ||
            (head && r->method[0] == 'G'))
            return r;
    }
    if (path)
        wrong_method(h, c);
    else
        no_path(h, c);
    return NULL;
}

void
br_route(br_http *h, br_http_conn *c)
{
    br_log(BR_EV_http_request, "%.*s %.*s, %zu bytes",
           (int)BR_MIN(c->in.method.n, (size_t)16), c->in.method.p,
           (int)BR_MIN(c->in.path.n, (size_t)64), c->in.path.p, c->in.body.n);
    c->asked_ns = br_now_ns();
    br_route_again(h, c);
}

void
br_route_again(br_http *h, br_http_conn *c)
{
    const struct route *r;
    br_status st = {0};
    bool rests;

    c->tenant = BR_TENANT_LOCAL;
    c->id_twice = br_is_anthropic(c); /* its clients look for that one */
    c->model[0] = 0;
    if (h->open && !c->local && !h->config.insecure &&
        !is_own_name(h, c->in.host)) {
        br_reply_error(h, c, 403, NULL,
                       "the Host header names another machine");
        return;
    }
    if (!is_same_site(c)) {
        br_reply_error(h, c, 403, NULL, "pages of other sites may not ask");
        return;
    }
    r = find(h, c);
    if (!r)
        return;
    h->model = br_served_find(h, NULL);
    if (!may_ask(h, c, r->flags))
        return;
    rests = atomic_load_explicit(&h->rests, memory_order_relaxed);
    if ((r->flags & ASK) && h->draining)
        br_reply_error(h, c, 503, NULL, "the server is shutting down");
    else if ((r->flags & MODEL) && (r->flags & ADMIN) && rests &&
             br_choose_model(h, c, NULL, &st) != BR_OK)
        br_no_model(h, c, &st); /* quotas are held against its pages */
    else if ((r->flags & MODEL) && !h->model && !(rests && (r->flags & PICK)))
        br_reply_absent(h, c);
    else
        r->fn(h, c);
}
