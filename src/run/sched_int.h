/* sched_int.h - what the files of the scheduler share.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SCHED_INT_H
#define BR_SCHED_INT_H

#include "run/sched.h"

#define NONE BR_SCHED_NONE

typedef enum req_state {
    REQ_FREE,
    REQ_QUEUED,
    REQ_RUNNING,
    REQ_PARKED /* held, without a slot: in no queue */
} req_state;

typedef struct req {
    req_state state;
    bool held, whole, scored,
        looked; /* looked: its first admission was counted */
    uint32_t tenant, slot, prev, next; /* of its tenant's queue */
    const int32_t *tokens;
    uint32_t n_prompt, n_tokens, n_max, n_fed, n_cached;
    uint32_t rows;     /* in the step at hand */
    uint32_t credit;   /* br_plan_want's */
    uint32_t leaf;     /* it stands on this block of the tree */
    uint32_t shared;   /* its blocks whose pages are the tree's */
    uint32_t charged;  /* private pages, had or promised */
    uint32_t boundary; /* tokens after which its prefix is kept; 0: was */
    uint64_t order;
    int64_t since_ns; /* page_ns is right up to then */
    double page_ns;
} req;

typedef struct tenant {
    bool known, owed, blocked;
    br_quota q;
    uint32_t head, tail;              /* of the queue, by order */
    uint32_t n_queued, n_running, at; /* at: in active[] */
    uint32_t n_parked;
    uint32_t used, peak; /* pages charged */
    uint64_t service;
    int64_t bucket; /* the latest one */
    uint32_t decode[BR_SCHED_BUCKETS], prefill[BR_SCHED_BUCKETS];
    uint64_t decode_sum, prefill_sum;
} tenant;

struct br_sched {
    br_arena arena;
    br_sched_config c;
    br_kv *kv;
    br_prefixes *prefix;
    bool recurrent, windows, solo;
    uint32_t solo_slot; /* whose turn it was */
    req *r;
    tenant *t;
    uint32_t *active;           /* tenants that run or wait */
    uint32_t n_active, n_known; /* ids known are below n_known */
    uint32_t *slot;             /* [n_slots]: handle or NONE */
    uint32_t n_free_slots, n_queued;
    uint32_t main;    /* group that is counted */
    uint32_t n_pages; /* of it */
    uint32_t prefix_limit;
    uint64_t claimed; /* sum over tenants of max(used, reserved) */
    uint64_t reserved, order;
    int64_t now;
    uint64_t hit_tokens, looked_tokens;
    uint64_t vtime; /* of services: see br_sched_find_owed */
    br_steptime time;
    br_qos best; /* of those who decode in this step; BR_QOS_COUNT: nobody */
    br_plan plan;
    br_sched_op *begin, *save;
    uint32_t *preempted, *admitted, *row_handle;
    int32_t *rows; /* slot, position, token, want: [max_rows] each */
    br_plan_want *want;
    uint32_t *want_of;
};

static inline uint32_t
blocks_of(uint32_t tokens)
{
    return tokens / BR_PAGE_TOKENS + (tokens % BR_PAGE_TOKENS != 0);
}

/* sched_pages.c */
uint32_t br_sched_scope(const br_sched *s, uint32_t tenant);
uint64_t br_sched_unclaimed(const br_sched *s); /* pages */
/* The tenant has n more pages charged; evicts prefixes for it. False: the pool
 * (or *own: its own cap) does not allow it; nothing changed but evictions. */
bool br_sched_charge(br_sched *s, uint32_t tenant, uint32_t n, bool *own);
void br_sched_discharge(br_sched *s, uint32_t tenant, uint32_t n);
/* Pages that would be free for others if these were discharged. */
uint32_t br_sched_frees(const br_sched *s, const req *r);
void br_sched_recharge(br_sched *s, req *r, uint32_t charged);
/* Full blocks of what it was fed, up to n, become the tree's. */
void br_sched_donate(br_sched *s, req *r, uint32_t n);
/* The slot has pages for n tokens. */
void br_sched_grow(br_sched *s, req *r, uint32_t n);

/* sched.c */
void br_sched_dequeue(br_sched *s, uint32_t h);

/* sched_admit.c */
uint32_t br_sched_worst(const br_sched *s); /* request to preempt, or NONE */
void br_sched_account(tenant *t, uint32_t decode, uint32_t prefill);
void br_sched_roll(const br_sched *s, tenant *t);
void br_sched_find_owed(br_sched *s); /* and who is blocked: nobody yet */
void br_sched_admit(br_sched *s);
void br_sched_feed_decoders(br_sched *s); /* pages for the next token */

#endif
