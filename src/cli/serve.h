/* serve.h - the halves of brass serve: what was asked for (serve.c), and the
 * thread that loads it (serve_models.c).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SERVE_H
#define BR_SERVE_H

#include "base/thread.h"
#include "cli/cli.h"
#include "http/http.h"
#include "run/books.h"
#include "run/lm_model.h"
#include "run/trace.h"

enum { BR_SERVE_NAME = 128, BR_SERVE_MODELS = 16 };

/* A model, from its file to its engine. The loader's, but for gone. */
typedef struct br_serve_model {
    br_str path, keep;
    char name[BR_SERVE_NAME];
    br_model *model;
    br_tok *tok;
    br_chat *chat;
    br_lm_model *lm;
    br_engine *engine;
    br_trace *trace;
    uint64_t bytes;
    bool wanted;
    bool leaves; /* told to go; it answers what it was asked */
    bool rests;  /* it was here, and comes when it is asked for */
    bool was_here;
    br_str error;     /* it could not be loaded; under the lock */
    atomic_bool gone; /* no request uses it any more */
    /* By a request that did not find it: the how manieth such; 0: by none. */
    _Atomic uint64_t asked;
    struct br_serve_model *next;
} br_serve_model;

/* Of the admin: a model comes, or goes. */
typedef struct br_serve_order {
    char name[BR_SERVE_NAME];
    br_str path; /* empty: it goes */
    struct br_serve_order *next;
} br_serve_order;

typedef struct br_serve {
    br_cli *cli;
    br_http_config config;
    br_http *http;
    br_thread loader;
    br_mutex lock; /* of which models are wanted: others read their names */
    br_serve_model *models;
    br_serve_order *orders; /* under the lock; newest first */
    uint64_t memory;        /* of all together; 0: no matter */
    uint64_t n_asked;       /* under the lock */
    bool waits;             /* for one to go, so that there is room */
    br_turns turns;
    br_str resume; /* a path */
    br_books *books;
    br_status st;       /* the loader's, until it is joined */
    br_status untraced; /* why --trace's file is not there */
    br_event wake;
    /* look at the list of models, at orders; end */
    atomic_bool again, ordered, stop;
} br_serve;

/* The lines of --model-list: those that are there stay, others come and go.
 * Not with s->lock. */
br_code br_serve_list(br_serve *s, const char *path, br_status *st) BR_MUST_USE;
/* Of --price; name NULL: all are looked at, and wrong ones named. */
br_code br_serve_prices(const br_serve *s, const char *name, br_prices *out,
                        br_status *st) BR_MUST_USE;

/* What s->config calls. */
void br_serve_hooks(br_serve *s);
/* The loader, until s->stop. */
void br_serve_load(void *arg);
/* What is where, on standard output: when it listens, when models are there. */
void br_serve_tell(const br_serve *s, bool there);
void br_serve_free_models(br_serve *s); /* and orders; no loader runs */

#endif
