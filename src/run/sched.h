/* sched.h - who runs, and what the next step is: a state machine without clock
 * or model.
 *
 *   add ---> queued --admit--> running (prefill, decode) --remove--> gone
 *               ^                 |
 *               |'---preempt------'|  at the boundary of a step only
 *               '--hold--> parked <-'  of who waits for its reader
 *
 * It owns slots, pages and prefixes by number; somebody else owns the bytes
 * and calls, for every step,
 *
 *   p = br_sched_plan(s, now)     what to do: states first, then the rows
 *   ... run the rows ...
 *   br_sched_stepped(s, now, ns)  they were fed: states to keep, prefixes
 *   br_sched_append(s, h, token)  for each row that wanted logits, or remove
 *
 * Who gets a slot. Tenants whose queue has a request that may start (slots,
 * pages and rates allow) are ordered by: owed first; class; lowest dominant
 * share; oldest request. The dominant share is the largest of slots, pages and
 * decoded tokens over quota, divided by the class's weight. A tenant is owed
 * when it waits and its service (rows over weight) is BR_SCHED_LAG behind that
 * of all who run, until it has caught up; nothing of an owed tenant is
 * preempted. So a batch tenant gets its weight's share however busy the better
 * classes are.
 *
 * Who loses one. A request without a slot takes that of a worse class; one
 * that needs a page and finds none, that of the worst request that is not
 * interactive, which may be itself: batch first, then the highest share, then
 * the youngest. A victim keeps its place in the queue, and its pages stay as a
 * prefix while there is room, so that it goes on with little to feed anew.
 *
 * Pages. A tenant's private pages count against its cap; those within its
 * reservation are always there for it. Interactive requests are promised all
 * the pages they could need when they are admitted, so they never lose a slot
 * while their readers keep up.
 *
 *   sum over tenants of max(private or promised, reserved) + prefix <= total
 *
 * Nothing is allocated after br_sched_new. One thread.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_SCHED_H
#define BR_SCHED_H

#include "run/plan.h"
#include "run/prefix.h"

enum {
    BR_SCHED_LAG = 512,    /* rows of weight 1 */
    BR_SCHED_BUCKETS = 10, /* of the 5 s that rates are means over */
    BR_SCHED_BUCKET_MS = 500,
};
#define BR_SCHED_NONE UINT32_MAX

typedef struct br_sched br_sched;

/* A choice as it is made, before anything changes: for tests that make it
 * again by other means. */
typedef enum br_choice { BR_CHOICE_START, BR_CHOICE_VICTIM } br_choice;
typedef struct br_sched_watch {
    /* h: the request chosen, or NONE. Of victims: classes worse than `than`
     * only; of one tenant, or NONE. */
    void (*chosen)(void *ctx, br_choice what, uint32_t h, int than,
                   uint32_t tenant);
    void *ctx;
} br_sched_watch;

typedef struct br_sched_config {
    uint32_t n_requests; /* handles are below */
    uint32_t n_slots, n_ctx;
    uint32_t max_rows; /* of a step */
    uint32_t max_want; /* of them that may want logits; 0: n_slots */
    const br_state_plan *plan;
    uint32_t n_pages[BR_MAX_KV_GROUPS];
    uint32_t prefix_percent; /* of the pages may be prefixes */
    uint32_t n_states;       /* states of recurrent models kept */
    br_sched_watch watch;
} br_sched_config;

br_code br_sched_new(br_sched **out, const br_sched_config *c,
                     br_status *st) BR_MUST_USE;
void br_sched_free(br_sched *s);

/* LIMIT: its reservation does not fit. */
br_code br_sched_tenant_set(br_sched *s, uint32_t tenant, const br_quota *q,
                            br_status *st) BR_MUST_USE;
/* Without requests; its prefixes are forgotten unless a group shares them. */
void br_sched_tenant_drop(br_sched *s, uint32_t tenant);
/* Tokens that one request of the tenant can ever have pages for. */
uint32_t br_sched_most_tokens(const br_sched *s, uint32_t tenant);

/* A request. tokens has room for n_max; n_prompt of them are there. n_max is
 * at most br_sched_most_tokens. */
void br_sched_add(br_sched *s, uint32_t h, uint32_t tenant,
                  const int32_t *tokens, uint32_t n_prompt, uint32_t n_max);
/* It shall have fewer tokens, and at least those that it has. */
void br_sched_limit(br_sched *s, uint32_t h, uint32_t n_max);
/* It is fed from its first token on, whatever is known of that beginning. */
void br_sched_whole(br_sched *s, uint32_t h);
/* Each row of its prompt wants logits; whole, too. There has to be room for such
 * rows: max_want above n_slots. */
void br_sched_score(br_sched *s, uint32_t h);
/* It is over or no longer wanted. */
void br_sched_remove(br_sched *s, uint32_t h);
/* Held: keeps the slot that it has, gets no rows; without one it is parked, in
 * no queue, until it is held no more. */
void br_sched_hold(br_sched *s, uint32_t h, bool held);
/* A held request is parked if it runs and any other waits. True: it was. */
bool br_sched_park(br_sched *s, uint32_t h);
/* tokens[] has one more. */
void br_sched_append(br_sched *s, uint32_t h);
/* Loses its slot now, for whatever reason of the caller's. forget: what it has
 * fed is not to be trusted. */
void br_sched_preempt(br_sched *s, uint32_t h, bool forget);
/* Steps of one request at a time, in turn: to find one that breaks them. */
void br_sched_solo(br_sched *s, bool on);

typedef struct br_sched_op {
    uint32_t h, slot;
    uint32_t state; /* NONE: the slot's state is zeroed */
} br_sched_op;

typedef struct br_plan {
    /* slots that begin a sequence: restore the state, or reset */
    const br_sched_op *begin;
    uint32_t n_begin;
    const uint32_t *preempted; /* handles, in order */
    uint32_t n_preempted;
    const uint32_t *admitted; /* handles, in order */
    uint32_t n_admitted;
    br_step step;
    const uint32_t *row_handle; /* [n_rows] */
    uint32_t n_decode;          /* rows; the others are prefill */
    uint32_t n_urgent;          /* of n_decode, the first: interactive ones */
    /* after the step: states to keep; filled in by br_sched_stepped */
    const br_sched_op *save;
    uint32_t n_save;
    int64_t wake_ns; /* nothing to run now but perhaps then; 0: no */
} br_plan;

const br_plan *br_sched_plan(br_sched *s, int64_t now_ns);
void br_sched_stepped(br_sched *s, int64_t now_ns, int64_t step_ns);

/* ---- looking at it ------------------------------------------------------- */

typedef struct br_sched_req_info {
    bool queued, running, held;
    bool blocked; /* its tenant, for the rest of this plan */
    uint32_t n_charged;
    uint32_t tenant, slot, n_fed, n_tokens, n_cached, n_pages;
    double page_ns; /* private pages times time */
    uint64_t order; /* of arrival */
} br_sched_req_info;
br_sched_req_info br_sched_req(const br_sched *s, uint32_t h);

typedef struct br_sched_info {
    uint32_t n_queued, n_running, n_pages, n_free, n_private, n_prefix;
    uint32_t n_prefix_limit;
    uint32_t n_reserved;
    uint64_t hit_tokens, looked_tokens;
    br_steptime time;
} br_sched_info;
br_sched_info br_sched_info_of(const br_sched *s);

typedef struct br_sched_tenant_info {
    bool known;
    uint32_t n_queued, n_running, n_parked, n_pages, n_pages_peak;
    uint64_t decode_window, prefill_window; /* tokens of the latest 5 s */
    uint64_t service;                       /* rows over weight, in 1/256 */
    bool owed;
} br_sched_tenant_info;
br_sched_tenant_info br_sched_tenant(const br_sched *s, uint32_t tenant);

/* Its cache, for keep.h: when nothing runs. The rest is the caller's. */
struct br_keeper;
void br_sched_keeper(br_sched *s, struct br_keeper *k);

/* Counts all anew and aborts where the books are wrong. */
void br_sched_audit(const br_sched *s);

#endif
