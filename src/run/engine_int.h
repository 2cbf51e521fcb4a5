/* engine_int.h - what the files of the engine share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_ENGINE_INT_H
#define BR_ENGINE_INT_H

#include "base/thread.h"
#include "run/engine.h"
#include "run/kv.h"
#include "run/ring.h"
#include "run/textout.h"

/* A request from submit to END. Made by the thread that submits, then the
 * engine's; what the drainer reads is written before the END record. */
typedef struct request {
    br_request_id id;
    struct request *next; /* of a list it stands in */
    br_arena mem;
    br_request_desc d; /* pointers lead into mem */
    int32_t *tokens;   /* [n_max] prompt and answer */
    uint32_t n_prompt, n_tokens, n_max;
    br_textout text;
    br_text piece; /* of text: what the next record brings */
    atomic_bool cancel, held;
    uint32_t slot;
    bool unsent; /* its latest token is not in the ring yet */
    bool ended;  /* usage.finish is set; END is not in the ring yet */
    bool closed; /* piece is the last one */
    int64_t submitted_ns, admitted_ns, first_ns, stuck_ns;
    br_usage usage;
    br_status error;
} request;

/* A record of the ring: this, logprobs, text. */
typedef struct out_rec {
    br_request_id id;
    request *r;
    br_output_head head;
    uint32_t kind, n_text;
} out_rec;

typedef struct eslot {
    request *r; /* NULL: free */
    br_sampler *sampler;
    uint32_t n_fed;
} eslot;

/* Ids: generation << 32 | place in the table. */
typedef struct request_table {
    request **at;
    uint32_t *generation;
    uint32_t *free; /* stack */
    uint32_t n, n_free;
} request_table;

struct br_engine {
    br_engine_config c;
    const br_lm *lm;
    br_thread thread;
    bool started;

    br_mutex lock; /* what stands up to the next line */
    request_table table;
    request *arrived, **arrived_end;
    uint32_t n_waiting; /* arrived or queued */
    br_quota *quota;    /* [BR_MAX_TENANTS] */
    bool *known;        /* [BR_MAX_TENANTS] */
    uint32_t *n_waiting_of;
    bool draining;
    int64_t ends[16]; /* when the latest requests ended */
    uint32_t n_ends;
    br_engine_stats stats;

    br_event wake; /* something for the engine's thread to do */
    atomic_bool stop, flags;
    _Atomic int64_t stop_at;

    br_event news; /* something for the drainer */
    int fd;
    atomic_bool armed; /* the drainer has seen the ring empty */

    br_ring ring;

    /* the engine's thread alone */
    br_kv *kv;
    eslot *slot;
    request *queued, **queued_end, *ending;
    int32_t *row_slot, *row_position, *row_token, *row_want;
    float *logits;
    br_engine_stats now;
    bool stopping;
};

/* engine_loop.c */
void br_engine_thread(void *arg);
/* engine.c: the request is over; called by the drainer after END. */
void br_engine_forget(br_engine *e, request *r);

#endif
