/* engine.h - many requests at once on one model.
 *
 *   any thread            engine thread                      the drainer
 *   submit            --> queue, admit, plan, step, sample
 *   cancel, hold            owns model, pages, scheduler --> one ring --> drain
 *   tenants, stats                                            calls output()
 *
 * A request belongs to a tenant (a session is a number of the tenant's
 * choosing) and waits until the scheduler gives it a slot. What it produces
 * goes through one ring to one thread, the drainer, which calls the request's
 * output function: tokens in order, then exactly one END. After END nothing is
 * called and the id is dead; calls with a dead id do nothing.
 *
 * The tokens of a request are a function of its prompt, its sampling and the
 * model: not of its neighbours, the order of arrival, preemption, or what a
 * cache knew.
 *
 * A reader that cannot keep up calls br_engine_hold: the slot makes no tokens
 * while held. Once it was held config.park_ns longer than not since it got the
 * slot, others that wait get that, and the request queues again when it is held
 * no more; held for config.hold_ns at a stretch it ends with TOO_SLOW. So does
 * every slot whose output finds the ring full for that long.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_ENGINE_H
#define BR_ENGINE_H

#include "model/tokenizer.h"
#include "run/lm.h"
#include "run/sample.h"
#include "run/tenant.h"
#include "run/turns.h"

enum {
    BR_ENGINE_QUEUE = 1024, /* requests waiting, where nobody says */
    BR_ENGINE_MAX_QUEUE = 65536,
    BR_ENGINE_MAX_SLOTS = 4096,
    BR_ENGINE_RING_BYTES = 4 << 20,
    BR_ENGINE_MAX_STOP_TOKENS = 8,
};

typedef struct br_engine br_engine;
typedef uint64_t br_request_id; /* 0: none */

/* Rows of finish.def. */
typedef enum br_finish {
#define X(name, text, openai) BR_FINISH_##name,
#include "run/finish.def"
#undef X
    BR_FINISH_COUNT
} br_finish;
const char *br_finish_name(br_finish f);   /* "client_too_slow" */
const char *br_finish_openai(br_finish f); /* "stop" "length" "error" */

/* ---- what comes out ------------------------------------------------------ */

/* The event as it stands in the ring and in binary WebSocket frames. */
typedef struct br_output_head {
    uint32_t slot, tenant, token;
    uint32_t generated_pos; /* 0: the first token of the answer */
    uint8_t eot;            /* 1: the answer is over */
    uint8_t preempted;      /* 1: lost its slot */
    uint16_t n_logprobs;
} br_output_head;
_Static_assert(sizeof(br_output_head) == 20, "layout of 18.9");

typedef enum br_output_kind {
    BR_OUTPUT_TOKEN,
    BR_OUTPUT_PREEMPTED, /* lost its slot; goes on later by itself */
    BR_OUTPUT_END,
    BR_OUTPUT_PROGRESS, /* of a prompt; before any token, where asked for */
} br_output_kind;

/* How far a prompt was read. */
typedef struct br_reading {
    uint32_t n_prompt, n_cached, n_read; /* n_cached of n_read were known */
    int64_t ns;                          /* since it had its slot */
} br_reading;

typedef struct br_usage {
    br_finish finish;
    uint32_t stop; /* which stop string, of STOP; UINT32_MAX: a token */
    uint32_t n_prompt, n_cached, n_out, n_preempted;
    uint32_t n_parked; /* lost its slot since its reader was behind */
    /* queue: until it had its first slot; prefill: from there to the first
     * token; first: from submit to the first token; decode: from there on */
    int64_t queue_ns, prefill_ns, first_ns, decode_ns;
    double kv_page_seconds;
    bool admitted;   /* it had a slot */
    uint64_t digest; /* of all rows of logits sampled from; 0: not asked for */
} br_usage;

/* Valid during the call. */
typedef struct br_output {
    br_output_kind kind;
    br_request_id id;
    br_output_head head;
    /* Whole characters of UTF-8, may be empty: what could begin a stop string
     * waits. END brings what was held back. */
    br_text text;
    const br_logprob *logprobs; /* the chosen one first, then the best */
    /* With the first token, or END where there is none: of one that asked for it
     * each token of the prompt, `row` of them one behind the other, and the best
     * ones. The first token of all has NaN. Where there are fewer than row, id
     * is -1. Else NULL. */
    const br_logprob *prompt;
    uint32_t n_prompt, row;
    const float *embedding; /* END of one that asked for it, or NULL */
    uint32_t n_embedding;
    const int32_t *tokens; /* END: of the answer, n_done among them */
    uint32_t n_tokens;
    /* END; with the first token, too: what its prompt took, n_out is 0 */
    const br_usage *usage;
    const br_reading *progress; /* PROGRESS */
    br_code code;               /* END of FAILED */
    const char *error;          /* END of FAILED, else "" */
} br_output;
/* In the drainer's thread. May call submit, cancel and hold. */
typedef void (*br_output_fn)(void *ctx, const br_output *o);

/* ---- what goes in -------------------------------------------------------- */

/* All of it is copied but hook's object. */
typedef struct br_request_desc {
    uint32_t tenant;
    uint64_t session; /* 0: none */
    const int32_t *tokens;
    size_t n_tokens; /* at least 1 */
    /* So many of them, the last ones, are of the answer already: it goes on
     * behind them, as if this request had made them. The text of them comes
     * with the next token's. */
    size_t n_done;
    /* What the tenant's ledger has of it, as it was broken off: the request, its
     * prompt, so many tokens of its answer. */
    bool counted, prompt_counted;
    size_t n_counted;
    br_sample_params sample;
    int64_t max_tokens; /* negative: as many as fit */
    const char *const *stop;
    size_t n_stop; /* br_gen limits hold */
    const int32_t *stop_tokens;
    size_t n_stop_tokens;
    bool ignore_eog, show_special;
    bool embed;          /* the prompt's embedding, of length 1; no answer */
    bool score;          /* the prompt's logprobs, n_logprobs beside each */
    bool progress;       /* events while its prompt is read; some may be lost */
    bool comes_again;    /* after QUOTA: that is not counted as rejected */
    bool taken;          /* before a restart: however many wait, it does, too */
    bool digest;         /* of the logits: costs a pass over each row */
    int64_t deadline_ns; /* br_now_ns() at which it is no longer wanted; 0 */
    br_logit_hook hook;
    br_output_fn output;
    void *ctx;
} br_request_desc;

br_request_desc br_request_defaults(void);

/* Any thread. USAGE, LIMIT: the request is bad (too long, a bad knob);
 * NOT_FOUND: no such tenant; QUOTA: the tenant has max_queued waiting; BUSY:
 * the queue is full, the engine drains, or the deadline cannot be met. After
 * QUOTA and BUSY ask br_engine_retry_ms. Unless OK, output is never called. */
br_code br_engine_submit(br_engine *e, const br_request_desc *d,
                         br_request_id *id, br_status *st) BR_MUST_USE;
/* Numbers of an embedding; 0: the model makes none. */
uint32_t br_engine_n_embd(const br_engine *e);
/* Any thread. The slot is free within one step; END says CANCELLED. */
void br_engine_cancel(br_engine *e, br_request_id id);
/* Any thread. True: makes no more tokens until false, or TOO_SLOW. */
void br_engine_hold(br_engine *e, br_request_id id, bool held);
/* When a queue place is likely to be free, from the rate at which requests
 * ended lately; at least 1000, at most 60000. */
uint32_t br_engine_retry_ms(br_engine *e);

/* ---- the drainer --------------------------------------------------------- */

/* One thread at a time. Calls output for what waits, at most `max` events;
 * returns how many. */
size_t br_engine_drain(br_engine *e, size_t max);
/* Readable while events wait: for poll and event loops. Drain until 0. */
int br_engine_fd(const br_engine *e);
/* Or sleep until there are some; false: timeout_ns passed. Negative: none. */
bool br_engine_wait(br_engine *e, int64_t timeout_ns);

/* ---- life ---------------------------------------------------------------- */

typedef struct br_trace br_trace; /* trace.h */

/* Zero: the default. */
typedef struct br_engine_config {
    const br_lm *lm;         /* with steps */
    const br_tok *tok;       /* of the same model */
    uint32_t queue_depth;    /* BR_ENGINE_QUEUE */
    uint32_t ring_bytes;     /* BR_ENGINE_RING_BYTES; a power of two */
    int64_t hold_ns;         /* 30 s */
    int64_t park_ns;         /* 1 s */
    uint32_t prefix_percent; /* of the pages, for prefixes; 20 */
    uint32_t n_checkpoints;  /* states of recurrent models kept; 64 */
    br_trace *trace;         /* closed after br_engine_stop; NULL: none */
    br_turns *turns;         /* with other engines; NULL: alone */
    /* Where the cache of beginnings is kept when the engine ends, and found
     * again (keep.h); outlives it. NULL: nowhere. identity: of the model, and
     * of whatever else its bits depend on. */
    const char *keep;
    uint8_t identity[32];
} br_engine_config;

/* Starts the engine's thread. Model and tokenizer outlive it. */
br_code br_engine_new(br_engine **out, const br_engine_config *c,
                      br_status *st) BR_MUST_USE;
/* Takes no more requests; those it has go on until they end or drain_ns have
 * passed, and then end with SHUTDOWN. The thread has ended when this returns;
 * the last events wait in the ring, which somebody must drain meanwhile. */
void br_engine_stop(br_engine *e, int64_t drain_ns);
/* Does not block: from now on submit says BUSY. */
void br_engine_begin_drain(br_engine *e);
/* After stop (or instead: stops at once). Events left are dropped. */
void br_engine_free(br_engine *e);

/* ---- tenants ------------------------------------------------------------- */

/* LIMIT: its reservation does not fit beside the others'. id BR_MAX_TENANTS:
 * one that has no number yet. */
br_code br_engine_tenant_fits(br_engine *e, uint32_t id, const br_quota *q,
                              br_status *st) BR_MUST_USE;
/* Adds or changes one; applies from the next step on. id below BR_MAX_TENANTS.
 * LIMIT: its reservation does not fit beside the others'. */
br_code br_engine_tenant_set(br_engine *e, uint32_t id, const br_quota *q,
                             br_status *st) BR_MUST_USE;
/* Its requests end with CANCELLED. */
void br_engine_tenant_drop(br_engine *e, uint32_t id);
/* False: no such tenant. */
bool br_engine_tenant_quota(br_engine *e, uint32_t id, br_quota *out);
bool br_engine_ledger(br_engine *e, uint32_t id, br_ledger *out);

/* ---- looking at it ------------------------------------------------------- */

typedef enum br_slot_state {
    BR_SLOT_FREE,
    BR_SLOT_ADMITTED,
    BR_SLOT_PREFILL,
    BR_SLOT_DECODE,
    BR_SLOT_PREEMPTED,
    BR_SLOT_DONE,
} br_slot_state;

typedef struct br_slot_info {
    br_slot_state state;
    bool held;
    br_qos qos;
    uint32_t tenant;
    uint64_t session;
    br_request_id request;
    uint32_t n_prompt, n_out, position, n_pages, n_cached;
} br_slot_info;

/* As of the latest step. */
typedef struct br_engine_stats {
    bool draining;
    uint32_t n_slots, n_running, n_prefilling, n_held, n_queued;
    uint32_t n_queued_of[BR_QOS_COUNT];
    /* pages of 16 tokens of the widest group; the sum is n_pages */
    uint32_t n_pages, pages_free, pages_private, pages_prefix;
    uint32_t pages_reserved; /* promised to tenants, used or not */
    uint64_t n_steps, rows_decode, rows_prefill;
    uint64_t n_done, n_rejected, n_preempted, n_parked, n_cancelled, n_failed;
    uint64_t prompt_tokens, cached_tokens, out_tokens;
    uint64_t prefix_hits, prefix_lookups; /* in tokens */
    int64_t step_ns, plan_ns;             /* of the latest step */
    double decode_step_ns, row_ns;        /* the planner's model of a step */
    br_lm_gpu gpu;
} br_engine_stats;
void br_engine_stats_get(br_engine *e, br_engine_stats *out);
/* A step, as it was. */
typedef struct br_step_note {
    int64_t begun_ns, ns, plan_ns; /* br_now_ns(); plan_ns: before it */
    uint32_t rows, decode;         /* decode: of them */
    uint32_t running, queued;      /* when it was over */
} br_step_note;
enum { BR_ENGINE_NOTES = 1024 }; /* kept: the latest */
/* Oldest first; returns how many. */
uint32_t br_engine_notes(br_engine *e, br_step_note out[BR_ENGINE_NOTES]);
/* At most max; returns how many slots there are. */
uint32_t br_engine_slots(br_engine *e, br_slot_info *out, uint32_t max);

/* A tenant of which something runs or waits. */
typedef struct br_tenant_info {
    uint32_t id, n_running, n_waiting, n_pages;
    br_qos qos;
    double slots, pages,
        rate; /* parts of its quotas; the largest is its share */
} br_tenant_info;
/* At most max, by number; returns how many. */
uint32_t br_engine_tenants(br_engine *e, br_tenant_info *out, uint32_t max);

#endif
