/* test_tstore_old.c - files of earlier formats are taken over.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tstore.h"

#include "t.h"

#include <string.h>

static br_tstore *
opened(const char *path)
{
    br_tstore *s;
    br_status st = {0};

    if (!br_tstore_here())
        t_skip("built without SQLite");
    t_ok(br_tstore_open(&s, path, &st), &st);
    return s;
}

static void
on_logged(void *ctx, const br_logged *r)
{
    *(br_logged *)ctx = *r;
}

/* tests/data/tenants3.db was made by the last program of format 3, which served
 * three requests; alice's key: */
#define OLD_KEY            \
    "br_d5bee1ed42cd9d4f_" \
    "259bc495a8fd941643524f477b3f966abc059b6187f43bb54c23ada28d9cba82"

TEST(a_store_of_the_format_before_is_taken_over)
{
    const char *path = t_printf("%s/brass.db", t_tmpdir());
    br_ledger_delta d = {.tenant = 1, .is.tokens_generated = 3};
    br_status st = {0};
    br_key_owner who;
    br_quota q;
    br_logged last = {0};
    br_tenant t;
    br_ledger l;
    size_t n;
    bool ok;
    char *old = t_read(t_repo("tests/data/tenants3.db"), &n);

    t_write(path, old, n);
    for (int again = 0; again < 2; again++) {
        br_tstore *s = opened(path);

        t_ok(br_tstore_find(s, "alice", &t, &st), &st);
        ck_assert(t.id == 1 && t.quota.qos == BR_QOS_INTERACTIVE &&
                  t.quota.max_slots == 2 && t.quota.reserved_kv_pages == 7 &&
                  t.quota.price_prompt == 0);
        t_ok(br_tstore_key(s, BR_TEXT(OLD_KEY), &who, &ok, &st), &st);
        ck_assert(ok && who.tenant == 1);
        t_ok(br_tstore_usage(s, 1, &l, &st), &st);
        ck_assert(l.tokens_generated == 24 + 3u * (unsigned)again);
        ck_assert_uint_eq(l.cost_nano, 3000u * (unsigned)again);
        t_ok(br_tstore_requests(s, &(br_log_query){.tenant = 1, .most = 1},
                                on_logged, &last, &st),
             &st);
        ck_assert_uint_eq(last.completion_tokens, 8);
        q = t.quota;
        q.price_generated = 1000;
        t_ok(br_tstore_set(s, "alice", &q, &st), &st);
        t_ok(br_tstore_add(s, &d, 1, &st), &st);
        br_tstore_close(s);
    }
}

/* So was tests/data/tenants4.db, which served nobody. */
#define KEY_4              \
    "br_487c430a1cf875ce_" \
    "50e024bc56fcd7043908fc7947afbaf180d117c4627f44d6a03e31e92b7a9450"

TEST(a_store_of_format_4_is_taken_over)
{
    const char *path = t_printf("%s/brass.db", t_tmpdir());
    br_status st = {0};
    br_key_owner who;
    br_tenant t;
    size_t n;
    bool ok;
    char *old = t_read(t_repo("tests/data/tenants4.db"), &n);

    t_write(path, old, n);
    for (int again = 0; again < 2; again++) {
        br_tstore *s = opened(path);

        t_ok(br_tstore_key(s, br_text_z(KEY_4), &who, &ok, &st), &st);
        ck_assert(ok && who.tenant == 1);
        ck_assert_str_eq(who.model, again ? "demo" : "");
        t_ok(br_tstore_find(s, "alice", &t, &st), &st);
        ck_assert_str_eq(t.quota.model, who.model);
        ck_assert_uint_eq(t.quota.price_prompt, 150);
        memcpy(t.quota.model, "demo", 5);
        t_ok(br_tstore_set(s, "alice", &t.quota, &st), &st);
        br_tstore_close(s);
    }
}
