/* tenant.h - who asks, and how much of the machine is theirs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TENANT_H
#define BR_TENANT_H

#include "base/base.h"

enum {
    BR_MAX_TENANTS = 4096,
    BR_TENANT_LOCAL = 0, /* always there: whoever needs no key; no quota */
    /* What 9 * 10^12 tokens cost at that is still a 64-bit number; 20,000 a
     * second take 14 years. */
    BR_MAX_PRICE = 1000000,
    BR_MODEL_NAME = 64, /* bytes, NUL included */
};

/* Rows of qos.def. */
typedef enum br_qos {
#define X(name, text, weight_q8, ttft_ms, jitter_ms) BR_QOS_##name,
#include "run/qos.def"
#undef X
    BR_QOS_COUNT
} br_qos;
const char *br_qos_name(br_qos q);
bool br_qos_find(br_text name, br_qos *out);

/* What a token costs, in 10^-9 of whatever the currency is: 150 are 0.15 a
 * million. Of a prompt's tokens those that were cached have their own. */
typedef struct br_prices {
    uint32_t prompt, cached, generated;
} br_prices;
/* "150/15/600". USAGE: it is not that. */
br_code br_prices_read(br_prices *p, const char *text,
                       br_status *st) BR_MUST_USE;

typedef struct br_quota {
    uint32_t max_slots;            /* requests running at once */
    uint32_t max_queued;           /* and waiting */
    uint32_t max_kv_pages;         /* cap */
    uint32_t reserved_kv_pages;    /* kept free for this tenant */
    uint32_t decode_tokens_per_s;  /* mean over 5 s */
    uint32_t prefill_tokens_per_s; /* mean over 5 s */
    uint32_t max_context_tokens;   /* prompt and answer of a request */
    uint32_t isolation_group;      /* who shares prefixes with it; 0: nobody */
    /* br_prices; all 0: the tenant pays what each model costs. */
    uint32_t price_prompt, price_cached, price_generated;
    br_qos qos;
    char model[BR_MODEL_NAME]; /* all its requests are of that; "": of any */
} br_quota;

br_quota br_quota_defaults(void);
/* What of it holds on the engine of that model: pages are kept for a tenant
 * only where its requests can come. */
br_quota br_quota_on(const br_quota *q, const char *model);
/* USAGE names the field and its range. */
br_code br_quota_check(const br_quota *q, br_status *st) BR_MUST_USE;

/* What a tenant has had since the ledger began. Quantiles are those of a
 * histogram whose buckets are 1/16 wide: at most 6.25 % above the truth. */
typedef struct br_ledger {
    uint64_t tokens_prompted, tokens_cached, tokens_generated;
    uint64_t slots_admitted, slots_preempted, slots_parked;
    uint64_t requests_done, requests_rejected;
    double p50_ttft_ms, p99_ttft_ms, p50_decode_ms, p99_decode_ms;
    uint32_t kv_pages_peak;
    double prefix_hit_rate; /* of prompt tokens: mean that forgets */
    double kv_page_seconds;
    uint64_t cost_nano; /* the store's: at the prices when they were counted */
} br_ledger;

#endif
