/* tale.c - see tale.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/tale.h"

#include "base/thread.h"

#include <stdio.h>
#include <string.h>

enum {
    PIECE = 16 << 10,
    AHEAD = 64 << 10, /* bytes that wait at a follower's door */
};
#define KEEP_ALIVE_NS INT64_C(15000000000)

typedef struct br_follower {
    br_tale *t;
    br_http_conn *c;
    size_t first; /* the first event that it wants */
    size_t at;    /* bytes of the tale that it has */
    struct br_follower *next;
} follower;

struct br_tale {
    br_http *h;
    uint32_t tenant;
    char id[40];
    br_str text;
    BR_VEC(size_t) event; /* where each begins: its number is its place */
    int64_t ended_ns;     /* 0: more comes */
    bool again, fails;    /* br_tale_again */
    follower *first;
    br_tale *next;
};

br_tale *
br_tale_new(br_http *h, uint32_t tenant, const char *id)
{
    br_tale *t = br_try_calloc(1, sizeof *t), **at = &h->tales;

    if (!t)
        return NULL;
    t->h = h;
    t->tenant = tenant;
    (void)snprintf(t->id, sizeof t->id, "%s", id);
    while (*at) /* the oldest stand first */
        at = &(*at)->next;
    *at = t;
    return t;
}

br_tale *
br_tale_of(const br_http *h, uint32_t tenant, br_text id)
{
    br_tale *t = h->tales;

    while (t && (t->tenant != tenant || !br_text_is(id, t->id)))
        t = t->next;
    return t;
}

/* ---- followers ----------------------------------------------------------- */

static void
let_go(follower *f)
{
    follower **at = &f->t->first;

    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    f->c->tale = NULL;
    br_free(f);
}

/* What it can take now; with the last of it, f is gone. */
static void
feed(follower *f)
{
    const br_tale *t = f->t;
    br_http_conn *c = f->c;

    if (f->first >= t->event.n && t->fails && t->ended_ns)
        f->first = t->event.n - 1;
    if (f->first >= t->event.n) /* it has been told already, elsewhere */
        f->at = t->text.n;
    else
        f->at = BR_MAX(f->at, t->event.at[f->first]);
    while (f->at < t->text.n && br_http_pending(c) < AHEAD && !c->closing) {
        size_t n = BR_MIN(t->text.n - f->at, (size_t)PIECE);

        br_http_put(c, t->text.at + f->at, n);
        f->at += n;
    }
    if (!t->ended_ns || f->at < t->text.n)
        return;
    let_go(f);
    br_http_end(c);
    br_metrics_answer(&t->h->metrics, 200);
}

void
br_tale_follow(br_tale *t, br_http_conn *c, int64_t after)
{
    follower *f = br_try_calloc(1, sizeof *f);

    if (!f) {
        br_reply_error(t->h, c, 503, NULL, "out of memory");
        return;
    }
    *f = (follower){
        .t = t, .c = c, .first = (uint64_t)after + 1, .next = t->first};
    t->first = f;
    c->tale = f;
    (void)snprintf(c->id, sizeof c->id, "%s", t->id);
    br_http_stream(c, 200, "text/event-stream; charset=utf-8",
                   "Cache-Control: no-cache\r\n");
    feed(f);
}

void
br_tale_gone(br_http_conn *c)
{
    if (c->tale)
        let_go(c->tale);
}

void
br_tale_drained(br_http_conn *c)
{
    if (c->tale)
        feed(c->tale);
}

/* ---- what is told -------------------------------------------------------- */

static void
destroy(br_tale *t)
{
    br_tale **at = &t->h->tales;

    while (t->first) { /* it has been told what there was */
        br_http_conn *c = t->first->c;

        let_go(t->first);
        br_http_end(c);
    }
    while (*at != t)
        at = &(*at)->next;
    *at = t->next;
    t->h->tale_bytes -= t->text.n;
    br_str_fini(&t->text);
    br_vec_fini(&t->event);
    br_free(t);
}

void
br_tale_break(br_tale *t, const char *why)
{
    char text[400];
    int n = snprintf(text, sizeof text,
                     "event: error\ndata: {\"type\":\"error\",\"code\":"
                     "\"server_error\",\"message\":\"%s\",\"param\":null}\n\n",
                     why);

    br_assert(n > 0 && (size_t)n < sizeof text && "our own words");
    for (follower *f = t->first; f; f = f->next)
        br_http_put(f->c, text, (size_t)n);
    destroy(t);
}

/* Those that have ended leave, the oldest first, until n more have room. */
static bool
make_room(br_http *h, size_t n)
{
    for (br_tale *t = h->tales, *next; t; t = next) {
        if (h->tale_bytes + n <= BR_TALES_BYTES)
            return true;
        next = t->next;
        if (t->ended_ns && !t->first)
            destroy(t);
    }
    return h->tale_bytes + n <= BR_TALES_BYTES;
}

/* JSON has no line's end inside: a blank line ends an event. */
static bool
note_events(br_tale *t, const char *p, size_t n)
{
    static const char name[] = "event: ";
    const char *end = p + n;

    for (const char *at = p; at < end;) {
        const char *blank = memmem(at, (size_t)(end - at), "\n\n", 2);

        br_assert(blank && "whole events");
        if ((size_t)(end - at) > sizeof name &&
            memcmp(at, name, sizeof name - 1) == 0 &&
            !br_vec_push(&t->event, t->text.n + (size_t)(at - p)))
            return false;
        at = blank ? blank + 2 : end;
    }
    return true;
}

bool
br_tale_put(br_tale *t, const char *p, size_t n)
{
    bool room = t->text.n + n <= BR_TALE_BYTES && make_room(t->h, n) &&
                note_events(t, p, n);

    if (room) {
        size_t was = t->text.n;

        br_str_put(&t->text, p, n);
        t->h->tale_bytes += t->text.n - was;
    }
    if (!room || t->text.oom) {
        br_tale_break(t, BR_TALE_HOLES);
        return false;
    }
    for (follower *f = t->first, *next; f; f = next) {
        next = f->next;
        feed(f);
    }
    return true;
}

void
br_tale_end(br_tale *t)
{
    t->ended_ns = br_now_ns();
    for (follower *f = t->first, *next; f; f = next) {
        next = f->next;
        feed(f);
    }
}

void
br_tale_again(br_tale *t, bool fails)
{
    t->again = true;
    t->fails |= fails;
}

bool
br_tale_is_followed(const br_tale *t)
{
    return t->first != NULL;
}

void
br_tale_drop(br_tale *t)
{
    t->id[0] = 0; /* nobody finds it; it goes with its last follower */
}

/* ---- time ---------------------------------------------------------------- */

void
br_tales_tick(br_http *h, int64_t now_ns)
{
    for (br_tale *t = h->tales, *next; t; t = next) {
        next = t->next;
        for (follower *f = t->first; f; f = f->next)
            if (f->at == t->text.n &&
                now_ns - f->c->last_put_ns > KEEP_ALIVE_NS)
                br_http_put(f->c, ": keep-alive\n\n", 14);
        if (t->ended_ns && !t->first &&
            (!t->id[0] || t->again || now_ns - t->ended_ns > BR_TALE_KEEP_NS))
            destroy(t);
    }
}

void
br_tales_free(br_http *h)
{
    while (h->tales)
        destroy(h->tales);
}
