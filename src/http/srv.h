/* srv.h - what the parts of the server share. Everything here belongs to the
 * loop's thread, but for what the lock is for.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SRV_H
#define BR_SRV_H

#include "base/hash.h"
#include "base/thread.h"
#include "http/ask.h"
#include "http/http.h"
#include "http/metrics.h"
#include "run/grammar.h"
#include "run/tstore.h"

#include <stdatomic.h>

typedef struct br_gen br_gen;
typedef struct br_resumed br_resumed;

enum {
    BR_TIMELINES = 512,           /* of requests that have ended */
    BR_TIMELINE_MARKS = 1024,     /* of one; then each second token's goes */
    BR_TIMELINE_RING = 128 << 10, /* of all that have ended: 1 MB */
};

typedef struct br_timeline { /* of one choice (timeline.c) */
    char id[40];
    uint32_t tenant, choice, row;
    int64_t begun_ns; /* 0: none */
    bool ended;
    br_usage usage;          /* once ended */
    int64_t token_ns;        /* when the latest came; 0: none did */
    uint32_t n_tokens, thin; /* marked is each that 1 << thin divides */
    uint32_t left_out;       /* tokens and others that have no mark */
    BR_VEC(uint64_t) mark;   /* us << 1 | lost its slot, else a token */
    uint64_t first;   /* once ended: in the ring, of all there ever were */
    uint32_t n_marks; /* likewise */
} br_timeline;

typedef struct br_served {
    br_http_model m;
    br_vocab *vocab; /* NULL: there was no memory for it */
    uint32_t n_gens;
    br_model_metrics metrics;
    _Atomic uint64_t used; /* when it was asked last, of all requests */
    int64_t asked_ns;      /* the same by the clock, or when it had answered */
    _Atomic bool leaves;   /* no new requests; it goes when n_gens is 0 */
    bool fresh;            /* who waited for it was not asked again yet */
    struct br_served *next;
} br_served;

typedef struct br_reader { /* gen_read.c */
    br_thread thread;
    br_tok_work *work;
    br_event more;
    br_mutex lock; /* of what follows */
    br_gen *todo, **todo_end, *done, **done_end;
    bool started, stop;
} br_reader;

enum { BR_HTTP_MODEL = 128 }; /* bytes of a model's name that is waited for */

typedef struct br_awaiting { /* model_wait.c */
    br_http_conn *c;
    char name[BR_HTTP_MODEL];
} br_awaiting;

struct br_http {
    br_http_config config;
    br_tstore *store; /* NULL: nobody needs a key */
    br_talks *talks;  /* NULL: no responses are kept */
    br_http_loop *loop;
    uint16_t port;
    uint8_t admin[BR_BLAKE2B_BYTES]; /* digest of the admin's key */
    bool has_admin;
    uint8_t keys[BR_HTTP_KEYS][BR_BLAKE2B_BYTES]; /* of nobody's by name */
    uint32_t n_keys;
    bool open; /* whoever reaches it may ask: no keys */
    /* The lock is for others, who add and mark; the loop alone takes away. */
    br_mutex lock;
    struct br_served *served, *offered;
    /* Of the request that is read or the answer that is written; where none is
     * named, the first. NULL: none is there. */
    struct br_served *model;
    BR_VEC(br_awaiting) awaiting; /* requests, the oldest first */
    char comes[BR_HTTP_MODEL];    /* what br_choose_model was BUSY with */
    struct br_served *came;       /* who waited for it is asked again */
    struct br_not_come *not_come; /* under the lock, the newest first */
    br_tok_work *work;
    br_tok_ids ids; /* scratch */
    br_str scratch;
    struct br_tale *tales; /* the oldest first (tale.h) */
    size_t tale_bytes;
    struct br_waited *waited; /* responses whose end is waited for */
    br_gen *gens;             /* answers under way */
    uint32_t n_gens;
    br_resumed *resumed; /* of the run before */
    int64_t resume_beat_ns;
    br_str resume; /* for the next one */
    uint64_t n_asked;
    br_timeline timeline[BR_TIMELINES];
    uint32_t n_timelines, n_rows;              /* so far */
    uint64_t marks[BR_TIMELINE_RING], n_marks; /* likewise */
    /* leaving: nobody should send us more, so /health says 503, but what comes is
     * answered; draining: what comes is refused. */
    bool leaving, draining;
    /* One has left that may come when it is asked for. Whoever tells it to leave
     * says so before. */
    _Atomic bool rests;
    int64_t leave_end_ns; /* 0: nobody has stopped us */
    int64_t drain_end_ns;
    int64_t last_ns;             /* when an answer was under way last */
    int64_t started_ns, created; /* monotonic; seconds since 1970 */
    br_metrics metrics;
    struct br_kept {
        const br_vocab *vocab;
        br_grammar *g;
        br_str text;
        uint64_t used;
    } kept[16]; /* grammars asked for lately */
    uint64_t n_kept;
    _Atomic int stops; /* calls of br_http_stop */
    br_reader reader;
};

/* ---- routes (route.c) ---------------------------------------------------- */

typedef void (*br_handler)(br_http *h, br_http_conn *c);

#define X(method, path, handler, flags) \
    void br_on_##handler(br_http *h, br_http_conn *c);
#include "http/routes.def"
#undef X
void br_route(br_http *h, br_http_conn *c);
/* The same of a request that waited. */
void br_route_again(br_http *h, br_http_conn *c);
/* The one of that name that does not leave; name NULL: the first. */
br_served *br_served_find(const br_http *h, const char *name);
/* h->model becomes the one of that name; NULL: the first, or the only one that
 * whoever asks may have. NOT_FOUND names all that may be asked for; BUSY: h->comes. */
br_code br_choose_model(br_http *h, const br_http_conn *c, const char *name,
                        br_status *st) BR_MUST_USE;
/* Whether what waits for the one of that name may go on; it is asked for.
 * NOT_FOUND as above. */
br_code br_model_comes(br_http *h, const char *name, br_status *st) BR_MUST_USE;
/* The same without asking: one that could not be loaded is none. */
bool br_model_is_listed(const br_http *h, const char *name);
/* To look is not to ask: the same, but none is loaded, none stays for it, and what
 * would be BUSY is NOT_FOUND. */
br_code br_look_at_model(br_http *h, const br_http_conn *c, const char *name,
                         br_status *st) BR_MUST_USE;

/* After another code than OK: c waits for the model that comes, and is routed
 * again then, or is told why there is none. */
void br_no_model(br_http *h, br_http_conn *c, const br_status *st);
/* A 503 for who only looks: nothing is loaded for that. */
void br_reply_absent(br_http *h, br_http_conn *c);
/* Where none is there: one would come if it were asked for. */
bool br_may_come(const br_http *h);
void br_http_adopt(br_http *h); /* those that were offered are served */
void br_await_came(br_http *h, br_served *m);
void br_await_failed(br_http *h); /* br_http_failed has said so of some */
void br_await_gone(br_http *h, const br_http_conn *c);
void br_await_tick(br_http *h, int64_t now_ns);
void br_await_metrics(const br_http *h, br_str *out);
void br_await_free(br_http *h);

/* ---- answers (reply.c) --------------------------------------------------- */

/* {"error":{...}} as the API at this path shapes it. param may be NULL. */
void br_reply_error(br_http *h, br_http_conn *c, int status, const char *param,
                    const char *msg);
typedef struct br_error {
    int status;
    const char *msg;
    const char *param, *code; /* or NULL */
} br_error;
void br_reply_fail(br_http *h, br_http_conn *c, const br_error *e);
/* The object alone, without a newline. */
void br_error_json(br_str *out, bool anthropic, const br_error *e);
/* The status that a failure means, with Retry-After where that helps. */
void br_reply_status(br_http *h, br_http_conn *c, const br_status *st,
                     const char *param);
/* Answers with the JSON in out and frees it; 503 when memory ran out. */
void br_reply_json(br_http *h, br_http_conn *c, br_str *out);
/* A list of what goes into w until its end; that answers and frees out. */
void br_reply_list(br_json_writer *w, br_str *out);
void br_reply_list_end(br_http *h, br_http_conn *c, br_json_writer *w,
                       br_str *out);
bool br_is_anthropic(const br_http_conn *c);
/* The body as one JSON object in an arena; false: refused already. */
bool br_body_object(br_http *h, br_http_conn *c, br_arena *a,
                    const br_json **out);

/* What the query says of a name; empty: nothing. */
br_text br_query_of(const br_http_conn *c, const char *name);

/* ---- slots -------------------------------------------------------------- */

/* h->model becomes the one that ?model= names, or the only one that this key may see:
 * NULL, it is not loaded. False: refused, there is none of that name (plain.c). */
bool br_find_shown(br_http *h, br_http_conn *c);

/* Whether what a slot of that tenant does is shown to whoever asks (slots.c). */
bool br_may_see(const br_http *h, const br_http_conn *c, uint32_t tenant);

/* ---- timelines ---------------------------------------------------------- */

/* Now; a token's returns the time since the one before, 0 for the first. */
int64_t br_timeline_mark(br_timeline *t, bool preempted);
void br_timeline_keep(br_http *h, br_timeline *t); /* *t is empty then */
/* The marks of one that is kept that newer ones have not taken the place of, from
 * *first on in h->marks (modulo its size). */
size_t br_timeline_kept(const br_http *h, const br_timeline *t,
                        uint64_t *first);
void br_timeline_fini(br_timeline *t);

/* ---- answers over a restart (resume.c) ---------------------------------- */

void br_resume_load(br_http *h);
void br_resume_save(br_http *h); /* nothing is under way any more */
void br_resume_free(br_http *h);
void br_resume_model(br_http *h, br_served *m); /* it is there */
/* Those that none is there for (--memory) are asked for. */
void br_resume_want(br_http *h);
void br_resume_tick(br_http *h, int64_t now_ns);

/* ---- responses that are kept (stored.c) ---------------------------------- */

/* Notes what of a is to be kept. What came before it becomes part of c's body,
 * and a is read again. USAGE: nothing is kept here, or none of that id. */
br_code br_stored_begin(br_http *h, br_http_conn *c, br_ask *a,
                        br_status *st) BR_MUST_USE;
/* After a restart: what that noted, of the turn as resume.h has it. */
void br_stored_again(br_gen *g, const br_json *turn);
/* The answer has ended well, and is to be kept. */
void br_stored_keep(br_gen *g);
/* Of a turn that is kept or is being made (background.c). */
typedef struct br_turn_made {
    br_gen *g;
    bool ended;
    const br_error *e; /* NULL: all is well */
    int64_t alive_ms;
} br_turn_made;
/* False: it could not be kept. put: br_talks_put or br_talks_end. */
bool br_stored_put(const br_turn_made *m,
                   bool (*put)(br_talks *t, const br_turn_kept *turn));
/* The id in the path, before `tail`. */
br_text br_stored_id(const br_http_conn *c, const char *tail);
/* The turn of that id; false: refused. */
bool br_stored_find(br_http *h, br_http_conn *c, const char *tail,
                    br_turn_kept *t);

/* ---- conversations (conversation.c) ---------------------------------------- */

/* What is in it, without brackets. NOT_FOUND: the tenant has none of that id. */
br_code br_conversation_items(br_http *h, uint32_t tenant, const char *id,
                              br_str *out, br_status *st) BR_MUST_USE;
void br_conversation_add(br_gen *g); /* what it asked, and its answer */
/* Items, each an object, as they are told: with a type, an id, a status and lists
 * of parts. Behind what is there, with commas but no brackets. */
void br_items_tell(const br_json *list, br_str *out);
/* Answers with so many of a list as the query asks for (limit, order, after). */
void br_items_page(br_http *h, br_http_conn *c, br_text items);

/* ---- responses that nobody waits for (background.c) ----------------------- */

/* Its turn is put, its stream kept (tale.h). BUSY: it cannot be. */
br_code br_background_begin(br_gen *g, br_status *st) BR_MUST_USE;
void br_background_again(br_gen *g); /* after a restart */
void br_background_end(br_gen *g, const br_error *e);
void br_background_tick(br_gen *g, int64_t now_ns);
/* The one that is made here; NULL: none. */
br_gen *br_background_of(const br_http *h, uint32_t tenant, br_text id);
/* What there is to say of it now. */
void br_background_put(const br_gen *g, br_str *out);
/* The same of one that is kept: made here or elsewhere, now or before. */
void br_background_other(const br_turn_kept *t, br_str *out);
/* Of one that is made: its server was heard of lately. */
bool br_background_lives(const br_turn_kept *t);

/* ---- streams that clients come back to (come_back.c) ---------------------- */

/* The answer to c's request is the stream of the response that its path names,
 * from behind event `after` on; -1: all of it. */
void br_come_back(br_http *h, br_http_conn *c, int64_t after);
void br_come_back_tick(br_http *h, int64_t now_ns);
void br_come_back_free(br_http *h);

/* ---- generation (gen.c) -------------------------------------------------- */

void br_gen_gone(br_http_conn *c, bool too_slow); /* its client went away */
void br_gen_drained(br_http_conn *c);
void br_gen_tick(br_http *h, int64_t now_ns); /* keep-alive comments */
void br_gen_cancel_all(br_http *h);
/* The grammar of this text, kept for the next request that has it. USAGE: what
 * is wrong with it. */
br_code br_gen_grammar(br_http *h, br_text text, br_grammar **out,
                       br_status *st) BR_MUST_USE;
/* What the answer to g was asked to be like. */
br_code br_gen_form(br_gen *g, br_status *st) BR_MUST_USE;
/* Reading long prompts (gen_read.c): what has been read goes on. Stop may be
 * called twice; it ends what is being read. */
br_code br_reader_start(br_http *h, br_status *st) BR_MUST_USE;
void br_reader_collect(br_http *h);
void br_reader_stop(br_http *h);

#endif
