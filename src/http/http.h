/* http.h - the server: models behind the APIs that clients already speak.
 *
 *   loop (http_loop.h) --request--> routes.def --> ask.h: JSON to knobs
 *     ^                                             |
 *     |   <-- wire_*.c: events to the API's JSON <--+--> engine (run/engine.h)
 *
 * One thread, the one that calls br_http_run, does all of it, and is the
 * engine's drainer. Routes: docs/serve.md.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HTTP_H
#define BR_HTTP_H

#include "http/http_loop.h"
#include "run/chat.h"
#include "run/engine.h"
#include "run/talks.h"

typedef struct br_http br_http;
struct br_http_model;
struct br_logged;

enum { BR_HTTP_KEYS = 256 };

typedef struct br_http_config {
    const char *host;      /* NULL: no TCP */
    uint16_t port;         /* 0: any */
    const char *unix_path; /* or NULL */
    bool insecure;         /* may listen where others can reach it, keyless */
    const char *db;        /* tenants and their keys; NULL: there are none */
    const char *keys;      /* a file with a key a line, without db, or NULL */
    const char *tls_cert, *tls_key; /* PEM; NULL: none */
    const char *admin;              /* a file with the admin's key, or NULL */
    br_http_limits limits;
    uint32_t most_awaiting; /* requests that wait for models; BR_ENGINE_QUEUE */
    br_sample_params sample; /* where a request says nothing */
    /* The file in which answers wait for the next start (resume.c), or NULL. */
    const char *resume;
    br_talks_config talks; /* responses are kept; path NULL: none is */
    int64_t
        leave_ns; /* after br_http_stop: /health says 503, all else goes on */
    int64_t drain_ns; /* then for running requests */
    /* A model that was told to leave is no longer used; in the loop's thread.
     * NULL: nobody wants to know. */
    void (*left)(void *ctx, const struct br_http_model *m);
    /* A model that nobody has asked anything for so long leaves by itself; 0:
     * none does. The server is no less ready without it. */
    int64_t idle_ns;
    /* A model that is not there was asked for, by name or (NULL) any; in the
     * loop's thread. True: the one of the name in `comes` does, and br_http_ready
     * or br_http_failed follows. NULL: likewise. */
    bool (*wanted)(void *ctx, const char *name, char *comes, size_t n);
    /* Names every model that may be asked for, there or not, and those that could
     * not be loaded, with the reason (else NULL); in the loop's thread. NULL:
     * those that are there. */
    void (*listed)(void *ctx,
                   void (*name)(void *to, const char *name, const char *why),
                   void *to);
    /* The admin wants this file (or the name of one) served under that name, in
     * place of what may have it; NULL: the model of that name to go. In the
     * loop's thread; done later. NULL: models are as they are. */
    br_code (*order)(void *ctx, const char *name, const char *model,
                     br_status *st);
    /* An answer has ended; in the loop's thread. NULL: likewise. */
    void (*done)(void *ctx, const struct br_logged *r);
    void *ctx;
} br_http_config;
br_http_config br_http_config_default(void);

/* What is served; it outlives br_http_run, or `left`. */
typedef struct br_http_model {
    const char *name;
    br_engine *engine;
    const br_tok *tok;
    br_chat *chat; /* from now on used by the server's thread; NULL: none */
    uint32_t n_ctx;
    const char *tier;
    uint64_t weight_bytes, kv_bytes; /* of memory; 0: not known */
    br_prices prices;                /* all 0: not known */
    void *owner;                     /* for `left` */
} br_http_model;

/* Listens when it returns; everything but the user interface and /health
 * answers 503 until br_http_ready. USAGE: an address that others can reach,
 * without keys. Tenants get to the engine by br_books_open. */
br_code br_http_new(br_http **out, const br_http_config *c,
                    br_status *st) BR_MUST_USE;
void br_http_free(br_http *h);
uint16_t br_http_port(const br_http *h);
/* Any thread. Requests that name no model get the one that came first. */
br_code br_http_ready(br_http *h, const br_http_model *m,
                      br_status *st) BR_MUST_USE;
/* Any thread. LIMIT: so many files are open that nobody could connect. */
br_code br_http_room(const br_http *h, br_status *st) BR_MUST_USE;
/* Any thread. What `wanted` said comes does not: who waits for it is told why.
 * NULL: it is no longer what it was; they are looked up anew. */
void br_http_failed(br_http *h, const char *name, const br_status *why);
/* Any thread. The owner's model takes no more requests; when those it has are
 * answered, `left` says so. */
void br_http_leave(br_http *h, const void *owner);
/* Any thread. Likewise the one that was asked longest ago; one that nobody was
 * able to ask yet where there is no other. */
void br_http_leave_oldest(br_http *h);
/* Until br_http_stop; then for leave_ns, and until running requests are done, or
 * drain_ns. */
void br_http_run(br_http *h);
/* Any thread, signal handlers; a second call ends running requests at once. */
void br_http_stop(br_http *h);

#endif
