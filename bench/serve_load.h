/* serve_load.h - a server in a process of its own, and clients that count tokens.
 *
 *   load_serve: fork --> the server of http.h, on a fake model or a file
 *   load_begin ... load_run: streams of /v1/completions on one epoll
 *
 * What the fake model has to say next is known, so every token of every stream
 * is compared, in order; a file's answers are compared with each other by the
 * seed of the prompt. Anything wrong ends the run with exit code 1.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "base/base.h"
#include "run/lm_fake.h"
#include "run/tstore.h"

enum { LOAD_TENANTS = 4, LOAD_STREAMS = 2048, LOAD_LINE = 1024 };

typedef struct load_spec {
    const char *model; /* NULL: the fake one */
    const char *tier;  /* of a file; NULL: cpu */
    br_lm_fake_config fake;
    uint32_t n_slots, n_ctx; /* of a file; of the fake they are above */
    uint32_t queue;
    uint32_t n_tenants; /* with keys; 0: nobody needs one */
    bool heap;          /* load_heap_kb is wanted */
    br_quota quota[LOAD_TENANTS];
} load_spec;

typedef struct load_heap {        /* bytes allocated and not freed */
    _Atomic uint64_t all, sqlite; /* the latter's cache, above all: 2 MB */
} load_heap;

typedef struct load_server {
    int pid;
    uint16_t port;
    bool fake;
    char folder[32], key[LOAD_TENANTS][BR_KEY_CHARS];
    br_str never;    /* tokens of a file that have no text, as a logit_bias */
    load_heap *heap; /* shared with the server; NULL: not wanted */
} load_server;

void load_serve(load_server *s, const load_spec *spec);
/* SIGTERM; the server has to end by itself, with 0. */
void load_end(load_server *s);
double load_rss_kb(const load_server *s);
/* What is allocated in the server and not freed, of some 20 ms ago; SQLite's
 * part of it. */
double load_heap_kb(const load_server *s, double *sqlite);
/* Seconds of a thread of the server's, by name ("http", "engine"). */
double load_cpu(const load_server *s, const char *thread, bool user);
/* How long threads of the server, and the clients' own, ran and waited for a
 * processor that another had (/proc/PID/task/TID/schedstat). Cheap enough to be
 * asked at every token. */
enum { LOAD_THREADS = 32 };
typedef struct load_times {
    int fd[LOAD_THREADS];
    char name[LOAD_THREADS][16]; /* "client": the caller */
    uint32_t n;
    int64_t ran[LOAD_THREADS], waited[LOAD_THREADS]; /* ns */
} load_times;
void load_times_open(load_times *t, const load_server *s);
void load_times_close(load_times *t);
void load_times_read(load_times *t);
/* Of all threads whose name begins so. */
int64_t load_times_ran(const load_times *t, const char *name);
int64_t load_times_waited(const load_times *t);
#define LOAD_ADMIN "the-key-of-the-bench-admin"
/* An answer, head and all; key: one of the tenants' or LOAD_ADMIN. */
void load_get(const load_server *s, const char *path, const char *key,
              br_str *out);
/* The number behind "name": in /state; -1: not there. */
double load_state(const load_server *s, const char *name);

/* The same of brass_NAME in /metrics. */
double load_metric(const load_server *s, const char *name);

typedef struct load_ask {
    uint32_t tenant; /* of load_server.key */
    uint32_t n_prompt, n_out;
    uint64_t seed;    /* of the prompt: the same one, the same prompt */
    bool may_fail;    /* an answer other than 200, or cut off, is no mistake */
    bool slow;        /* nothing is read before load_wake */
    int32_t first;    /* token of the prompt; 0: as the seed has it */
    const char *more; /* header lines, or NULL */
} load_ask;

typedef struct stream {
    load_ask ask;
    int fd; /* -1: free */
    int status;
    int64_t begun_ns, first_ns, last_ns;
    uint32_t n_out, n_preempted;
    bool done, failed; /* came to its end; said that it cannot go on */
    uint64_t next;     /* the fake's number before the next token */
    uint64_t hash;     /* of the text */
    char line[LOAD_LINE];
    size_t n_line;
} stream;

typedef struct load {
    const load_server *to;
    int ep;
    uint32_t n_open;
    uint64_t n_tokens, n_over;
    int64_t now;
    /* It reads so often at most, as a client across a network would be woken:
     * one that waits on the server's own processors is woken by each token, and
     * that is paid by who sends it. 0: at once; for times of single tokens. */
    int64_t nap_ns;
    /* A token came; the gap to the one before, 0 for the first. May be NULL. */
    void (*token)(struct load *l, stream *s, int64_t gap_ns);
    void (*over)(struct load *l, stream *s); /* its place is free behind it */
    void *ctx;
    stream *s; /* [LOAD_STREAMS] */
    struct load_text {
        uint64_t seed, hash;
        uint32_t n_prompt, n_out;
    } text[4096]; /* of a file's answers */
} load;

/* Where the process has real-time priority (chrt -f): this thread has so much
 * more of it, so that a token is on its way when it is made and not when a
 * processor has nothing to compute. */
void load_before_others(int by);
void load_init(load *l, const load_server *to);
void load_fini(load *l); /* closes what is open */
stream *load_begin(load *l, const load_ask *a);
void load_hang_up(load *l, stream *s);
void load_wake(load *l, stream *s);
/* Sends that, and reads until the server closes; the status, 0: none. */
int load_say(const load_server *s, const char *p, size_t n);
/* For so long, or (negative) until nothing is open. */
void load_run(load *l, int64_t ns);

void load_die(const char *fmt, ...) BR_PRINTF(1, 2) BR_NORETURN;

#endif
