/* tenant.c - names and ranges.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tenant.h"

static const char *const qos_names[BR_QOS_COUNT] = {
#define X(name, text, weight_q8, ttft_ms, jitter_ms) text,
#include "run/qos.def"
#undef X
};

const char *
br_qos_name(br_qos q)
{
    return qos_names[q];
}

bool
br_qos_find(br_text name, br_qos *out)
{
    for (int q = 0; q < BR_QOS_COUNT; q++)
        if (br_text_is(name, qos_names[q])) {
            *out = (br_qos)q;
            return true;
        }
    return false;
}

br_quota
br_quota_defaults(void)
{
    return (br_quota){.max_slots = 4,
                      .max_queued = 256,
                      .max_kv_pages = 4096,
                      .decode_tokens_per_s = 1000,
                      .prefill_tokens_per_s = 100000,
                      .max_context_tokens = 128000,
                      .qos = BR_QOS_STANDARD};
}

br_code
br_quota_check(const br_quota *q, br_status *st)
{
    const struct {
        const char *name;
        uint32_t v, lo, hi; /* hi 0: INT32_MAX */
    } row[] = {
        {"slots", q->max_slots, 1, 0},
        {"queued requests", q->max_queued, 1, 0},
        {"KV pages", q->max_kv_pages, 1, 0},
        {"decoded tokens a second", q->decode_tokens_per_s, 1, 0},
        {"prompt tokens a second", q->prefill_tokens_per_s, 1, 0},
        {"context tokens", q->max_context_tokens, 2, 0},
        {"reserved KV pages", q->reserved_kv_pages, 0, 0},
        {"price of a prompt token", q->price_prompt, 0, BR_MAX_PRICE},
        {"price of a cached token", q->price_cached, 0, BR_MAX_PRICE},
        {"price of a generated token", q->price_generated, 0, BR_MAX_PRICE},
    };

    for (size_t i = 0; i < BR_COUNT(row); i++) {
        uint32_t hi = row[i].hi ? row[i].hi : INT32_MAX;

        if (row[i].v < row[i].lo || row[i].v > hi)
            return br_fail(st, BR_E_USAGE, "%s: %u is not between %u and %u",
                           row[i].name, row[i].v, row[i].lo, hi);
    }
    if (q->reserved_kv_pages > q->max_kv_pages)
        return br_fail(st, BR_E_USAGE,
                       "reserved KV pages: %u are more than the cap of %u",
                       q->reserved_kv_pages, q->max_kv_pages);
    if ((unsigned)q->qos >= BR_QOS_COUNT)
        return br_fail(st, BR_E_USAGE, "class of service: there is no %d",
                       (int)q->qos);
    return BR_OK;
}
