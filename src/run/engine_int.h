/* engine_int.h - what the files of the engine share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_ENGINE_INT_H
#define BR_ENGINE_INT_H

#include "base/thread.h"
#include "run/engine.h"
#include "run/ring.h"
#include "run/sched.h"
#include "run/textout.h"
#include "run/trace.h"

/* A request from submit to END. Made by the thread that submits, then the
 * engine's; what the drainer reads is written before the END record. */
typedef struct request {
    br_request_id id;
    struct request *next; /* of those that arrived, or that end */
    br_arena mem;
    br_request_desc d; /* pointers lead into mem */
    int32_t *tokens;   /* [n_max] prompt and answer */
    uint32_t n_prompt, n_tokens, n_max;
    br_textout text;
    br_text piece;      /* of text: what the next record brings */
    br_logprob *report; /* [1 + n_logprobs] of the latest token */
    uint32_t n_report;
    br_logprob *scores; /* [n_prompt][1 + n_logprobs]; NULL: not asked for */
    uint32_t n_scored;  /* final when it is n_prompt */
    double *sum; /* [n_embd] of its rows so far; NULL: wants no embedding */
    float *embedding;
    atomic_bool cancel, held;
    uint32_t slot, live_at;
    uint32_t suspect; /* so many tokens were fed in a step that failed; or 0 */
    bool unsent;      /* its latest token is not in the ring yet */
    bool moved;       /* PREEMPTED is not in the ring yet */
    bool closed;      /* piece is the last one */
    bool is_held;     /* as the scheduler knows it */
    bool owed;        /* its latest token is in e->owed */
    int64_t submitted_ns, admitted_ns, first_ns, last_ns, stuck_ns;
    int64_t behind_ns; /* in this slot, less the time in which it was not */
    br_usage usage;
    br_usage begun; /* what is known with the first token; then constant */
    br_status error;
} request;

/* A record of the ring: this, logprobs, text. */
typedef struct out_rec {
    br_request_id id;
    request *r;
    br_output_head head;
    uint32_t kind, n_text;
} out_rec;

/* Ids: generation << 32 | place in the table. */
typedef struct request_table {
    request **at;
    uint32_t *generation;
    uint32_t *free; /* stack */
    uint32_t n, n_free;
} request_table;

/* Of times: bucket i of octave o holds [2^o (1 + i/16), ...) microseconds. */
typedef struct histogram {
    uint32_t n[32 * 16];
    uint64_t sum;
} histogram;

/* A tenant as others see it; the lock's. */
typedef struct etenant {
    br_quota q;
    bool known, changed; /* changed: the scheduler has not heard of it */
    uint32_t n_waiting;
    uint64_t
        window; /* tokens of the latest 5 s, while something runs or waits */
    br_ledger ledger;
    histogram first, next;
} etenant;

/* A token of the step at hand, for the ledger. */
typedef struct token_note {
    uint32_t tenant;
    bool first;
    int64_t ns;
} token_note;

struct br_engine {
    br_engine_config c;
    const br_lm *lm;
    br_thread thread;
    bool started;
    uint32_t reservable; /* pages */

    br_mutex lock; /* what stands up to the next line */
    request_table table;
    request *arrived, **arrived_end;
    uint32_t n_waiting; /* never had a slot yet */
    etenant **tenant;   /* [BR_MAX_TENANTS], NULL: never seen */
    bool draining, tenants_changed;
    int64_t ends[16]; /* when the latest requests ended */
    uint32_t n_ends;
    br_engine_stats stats;
    br_slot_info *slots; /* [n_slots] */
    br_step_note *noted; /* [BR_ENGINE_NOTES]: a ring */
    uint64_t n_noted;

    br_event wake; /* something for the engine's thread to do */
    atomic_bool stop, flags;
    _Atomic int64_t stop_at;

    br_event news; /* something for the drainer */
    int fd;
    atomic_bool armed; /* the drainer has seen the ring empty */

    br_ring ring;

    /* the engine's thread alone */
    br_sched *sched;
    br_sampler **sampler; /* [n_slots] */
    request **live;
    uint32_t n_live, n_suspects;
    int64_t looked_ns, since_look_ns; /* at flags */
    request *ending;
    const br_plan
        *drawing;   /* whose tokens the tier draws at this moment; or NULL */
    int32_t *drawn; /* [max_want] by the tier, beside NULL logits */
    const float *hidden; /* of the latest step, if somebody sums it up */
    const struct br_sample_params **draws;
    uint32_t *draw_at;
    float *logits, *states; /* states: [n_checkpoints][slot_elems] */
    token_note *notes;
    uint32_t n_notes;
    /* Whose latest tokens are told while the device has the next step; what they
     * take of the ring. */
    request **owed; /* [n_slots] */
    uint32_t n_owed;
    uint64_t owed_bytes;
    br_step_note note; /* of the step at hand; rows 0: there was none */
    br_engine_stats now;
    br_turn turn;
    bool alone; /* nobody else wanted a turn when the latest step was over */
    bool stopping;
};

/* engine_loop.c */
void br_engine_thread(void *arg);
/* engine_out.c: what leaves. finish takes the request from the scheduler. */
void br_engine_finish(br_engine *e, request *r, br_finish why);
void br_engine_fail(br_engine *e, request *r, const br_status *st);
void br_engine_token(br_engine *e, request *r); /* its latest one */
/* The same, told with br_engine_settle: all that is owed. False: not that one. */
bool br_engine_owe(br_engine *e, request *r);
void br_engine_settle(br_engine *e);
void br_engine_progress(br_engine *e, request *r); /* if asked for */
void br_engine_flush(br_engine *e); /* what found no room before */
/* What is in the ring, to the drainer; publish: with what others see of e. */
void br_engine_tell(br_engine *e);
void br_engine_publish(br_engine *e);
/* ledger.c: with the lock held. */
void br_ledger_token(etenant *t, const token_note *n);
void br_ledger_end(etenant *t, const request *r);
br_ledger br_ledger_of(const etenant *t);
/* engine.c: the request is over; called by the drainer after END. */
void br_engine_forget(br_engine *e, request *r);

#endif
