/* tenant.c - names and ranges.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tenant.h"

#include "base/json.h"

#include <string.h>

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

br_quota
br_quota_on(const br_quota *q, const char *model)
{
    br_quota on = *q;

    if (q->model[0] && strcmp(q->model, model) != 0)
        on.reserved_kv_pages = 0;
    return on;
}

static br_code
check_model(const char *name, br_status *st)
{
    static const char may[] = "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._@:+";

    if (memchr(name, 0, BR_MODEL_NAME) && !name[strspn(name, may)])
        return BR_OK;
    return br_fail(st, BR_E_USAGE,
                   "model: a name has letters, digits and -._@:+, at most %d",
                   BR_MODEL_NAME - 1);
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
    return check_model(q->model, st);
}

br_code
br_prices_read(br_prices *p, const char *text, br_status *st)
{
    uint32_t *const to[] = {&p->prompt, &p->cached, &p->generated};
    br_text left = br_text_z(text);

    for (size_t i = 0; i < BR_COUNT(to); i++) {
        const char *slash = memchr(left.p, '/', left.n);
        br_text word = {left.p, slash ? (size_t)(slash - left.p) : left.n};
        int64_t n;

        if ((slash != NULL) != (i + 1 < BR_COUNT(to)) ||
            !br_json_to_i64(word, &n) || n < 0 || n > BR_MAX_PRICE)
            return br_fail(st, BR_E_USAGE,
                           "'%.40s': must be three prices of 0 to %d, as "
                           "150/15/600: a token of a prompt, one that was "
                           "cached, one that is made",
                           text, BR_MAX_PRICE);
        *to[i] = (uint32_t)n;
        left.p += word.n + (slash != NULL);
        left.n -= word.n + (slash != NULL);
    }
    return BR_OK;
}
