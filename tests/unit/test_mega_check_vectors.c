/* test_mega_check_vectors.c - both verdicts on every shared vector.
 *
 * Compatible: ok, errors, warnings and statistics equal the manifest's, byte
 * for byte. Sound: what is valid is accepted, with the same statistics; each
 * gap gets the verdict that its `why` asks for; what is invalid is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "base/hash.h"
#include "lower_make.h"
#include "prog_text.h"

#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

static const br_json *
manifest(const char **root)
{
    const br_json *m = lm_manifest();

    *root = t_vectors("amk");
    if (!m || !*root)
        t_skip("no ../shared/vectors here");
    return m;
}

/* The report as a tree, owned by the arena. */
static const br_json *
judge(const br_mega_prog *p, br_mega_mode mode, br_arena *a)
{
    br_status st = {0};
    br_mega_report r;
    br_str s = {0};
    br_json *out;

    t_ok(br_mega_check(p, mode, &r, &st), &st);
    br_mega_report_json(p, &r, &s);
    br_mega_report_fini(&r);
    t_ok(br_json_parse(&out, a, s.at, s.n, BR_JSON_LAX, &st), &st);
    br_str_fini(&s);
    return out;
}

static bool
is_ok(const br_json *report)
{
    return br_json_get(report, "ok")->b;
}

static void
same(const char *id, const br_json *got, const br_json *want, const char *key)
{
    const char *a = pt_dump(br_json_get(got, key));
    const char *b = pt_dump(br_json_get(want, key));

    if (strcmp(a, b) != 0)
        ck_abort_msg("%s: %s\n got  %s\n want %s", id, key, a, b);
}

/* NULL: it does not load. */
static br_mega_prog *
load(const char *root, const br_json *entry)
{
    const br_json *in = br_json_get(entry, "input");
    const char *file = br_json_get(in ? in : entry, "file")->s;
    br_status st = {0};
    br_mega_prog *p;
    size_t n;
    char *text = t_read(t_printf("%s/%s", root, file), &n);

    return br_mega_load(&p, text, n, &st) == BR_OK ? p : NULL;
}

static void
compare(const char *id, const br_mega_prog *p, const br_json *verdict)
{
    static const char *const keys[] = {"ok", "errors", "warnings", "stats"};
    br_arena a;

    br_arena_init(&a, 0);
    for (size_t i = 0; i < BR_COUNT(keys); i++)
        same(id, judge(p, BR_MEGA_COMPAT_0_2, &a), verdict, keys[i]);
    br_arena_fini(&a);
}

TEST(check_compat_equals_every_vector)
{
    static const char *const groups[] = {"valid", "invalid", "gaps",
                                         "canonical"};
    const char *root;
    const br_json *m = manifest(&root);
    int n = 0;

    for (size_t g = 0; g < BR_COUNT(groups); g++) {
        const br_json *e = br_json_get(m, groups[g])->child;

        for (; e; e = e->next) {
            const br_json *verdict = br_json_get(e, "verdict");
            const char *outcome = br_json_get(verdict, "outcome")->s;
            const char *id = br_json_get(e, "id")->s;
            br_mega_prog *p = load(root, e);
            br_arena a;

            if (!p) {
                ck_assert_str_eq(outcome, "load_error");
                continue;
            }
            br_arena_init(&a, 0);
            if (strcmp(outcome, "validate_raises") == 0)
                ck_assert_msg(!is_ok(judge(p, BR_MEGA_COMPAT_0_2, &a)),
                              "%s is accepted", id);
            else
                compare(id, p, verdict);
            br_arena_fini(&a);
            br_mega_free(p);
            n++;
        }
    }
    ck_assert_int_gt(n, 200);
    lm_manifest_done();
}

TEST(check_sound_accepts_what_is_valid)
{
    const char *root;
    const br_json *e = br_json_get(manifest(&root), "valid")->child, *r;

    for (; e; e = e->next) {
        const char *id = br_json_get(e, "id")->s;
        br_mega_prog *p = load(root, e);
        br_arena a;

        br_arena_init(&a, 0);
        r = judge(p, BR_MEGA_SOUND, &a);
        if (!is_ok(r))
            ck_abort_msg("%s: %s", id, pt_dump(br_json_get(r, "errors")));
        same(id, r, br_json_get(e, "verdict"), "stats");
        br_arena_fini(&a);
        br_mega_free(p);
    }
    lm_manifest_done();
}

TEST(check_sound_closes_the_gaps)
{
    const char *root;
    const br_json *e = br_json_get(manifest(&root), "gaps")->child, *r;

    for (; e; e = e->next) {
        const char *id = br_json_get(e, "id")->s;
        const char *rule = br_json_get(e, "rule")->s;
        br_mega_prog *p = load(root, e);
        br_arena a;

        br_arena_init(&a, 0);
        r = judge(p, BR_MEGA_SOUND, &a);
        if (strcmp(rule, "note") != 0 &&
            is_ok(r) != (strcmp(rule, "false_reject") == 0))
            ck_abort_msg("%s (%s): %s", id, rule, pt_dump(r));
        br_arena_fini(&a);
        br_mega_free(p);
    }
    lm_manifest_done();
}

/* Safe all the same: a GELU may work in place on a page, as gap g33 says. */
static bool
is_safe(const char *id)
{
    return strcmp(id, "i230_page_adjacent_chain") == 0 ||
           strcmp(id, "i231_page_three_way") == 0;
}

TEST(check_sound_refuses_what_is_invalid)
{
    const char *root;
    const br_json *e = br_json_get(manifest(&root), "invalid")->child, *r;

    for (; e; e = e->next) {
        const char *id = br_json_get(e, "id")->s;
        const char *expect = br_json_get(e, "expect")->s;
        br_mega_prog *p = load(root, e);
        br_arena a;

        if (!p)
            continue;
        br_arena_init(&a, 0);
        r = judge(p, BR_MEGA_SOUND, &a);
        if (strcmp(expect, "reject") == 0 && is_ok(r) != is_safe(id))
            ck_abort_msg("%s: %s", id, pt_dump(r));
        if (strcmp(expect, "accept") == 0 && !is_ok(r))
            ck_abort_msg("%s: %s", id, pt_dump(r));
        br_arena_fini(&a);
        br_mega_free(p);
    }
    lm_manifest_done();
}

/* ---- the families too big to store -------------------------------------- */

static void
check_generated(const br_json *e)
{
    const char *family = br_json_get(e, "family")->s;
    const char *id = br_json_get(e, "id")->s;
    int n = (int)br_json_get(e, "n")->i;
    const br_json *want, *got, *r;
    br_status st = {0};
    br_mega_prog *p;
    br_str s = {0};
    char hex[65];
    br_arena a;

    br_arena_init(&a, 0);
    br_str_puts(&s, "{\"meta\":{\"gpu\":\"rtx5090\"},");
    pt_family(&s, family, n);
    br_str_puts(&s, "}");
    t_ok(br_mega_load(&p, s.at, s.n, &st), &st);
    r = judge(p, BR_MEGA_COMPAT_0_2, &a);
    same(id, r, e, "ok");
    same(id, r, e, "warnings");
    same(id, r, e, "stats");
    got = br_json_get(r, "errors")->child;
    for (want = br_json_get(e, "errors_sha256")->child; want;
         want = want->next, got = got->next) {
        ck_assert_ptr_nonnull(got);
        br_sha256_hex(got->s, got->n, hex);
        ck_assert_str_eq(hex, want->s);
    }
    ck_assert_ptr_null(got);
    r = judge(p, BR_MEGA_SOUND, &a);
    same(id, r, e, "ok");
    same(id, r, e, "stats");
    br_mega_free(p);
    br_str_fini(&s);
    br_arena_fini(&a);
}

TEST(check_generated_families)
{
    const char *root;
    const br_json *e = br_json_get(manifest(&root), "generated")->child;

    for (; e; e = e->next)
        check_generated(e);
    lm_manifest_done();
}

/* ---- lowered programs --------------------------------------------------- */

TEST_WITHIN(check_accepts_what_is_lowered, 120)
{
    const char *root;
    const br_json *m = manifest(&root), *e;

    for (e = br_json_get(m, "lower_digests")->child; e; e = e->next) {
        const br_json *expected = br_json_get(e, "expected"), *r;
        const char *id = br_json_get(e, "id")->s;
        br_status st = {0};
        br_mega_prog *p = lm_spec(br_json_get(e, "lower_spec"), &st);
        br_arena a;

        if (!p)
            ck_abort_msg("%s: %s", id, st.msg);
        br_arena_init(&a, 0);
        r = judge(p, BR_MEGA_COMPAT_0_2, &a);
        same(id, r, expected, "ok");
        same(id, r, expected, "stats");
        same(id, r, expected, "warnings");
        r = judge(p, BR_MEGA_SOUND, &a);
        same(id, r, expected, "ok");
        same(id, r, expected, "stats");
        ck_assert_ptr_null(br_json_get(r, "warnings")->child);
        br_arena_fini(&a);
        br_mega_free(p);
    }
    lm_manifest_done();
}

TEST_WITHIN(check_accepts_random_schedules, 120)
{
    uint64_t seed = 7;
    int n = t_sanitized() ? 20 : 150;

    for (int i = 0; i < n; i++) {
        br_mega_net *net = lm_random_net(&seed);
        const br_mega_target *t = br_mega_target_find(br_text_z("h100"));
        char *config = lm_random_config(&seed, net, t);
        br_mega_prog *p = lm_lower(net, "h100", config, NULL);
        const br_json *r;
        br_arena a;

        br_arena_init(&a, 0);
        r = judge(p, BR_MEGA_SOUND, &a);
        if (!is_ok(r))
            ck_abort_msg("config %s: %s", config,
                         pt_dump(br_json_get(r, "errors")));
        br_arena_fini(&a);
        br_mega_free(p);
        br_mega_net_free(net);
        lm_forget();
    }
}

/* ---- memory ------------------------------------------------------------- */

typedef struct job {
    const br_mega_prog *p;
    br_mega_mode mode;
} job;

static br_code
check_once(void *arg, br_status *st)
{
    const job *j = arg;
    br_mega_report r;
    br_str s = {0};
    bool oom;

    BR_TRY(br_mega_check(j->p, j->mode, &r, st));
    br_mega_report_json(j->p, &r, &s);
    oom = s.oom;
    br_str_fini(&s);
    br_mega_report_fini(&r);
    return oom ? br_fail(st, BR_E_OOM, "no memory for the report") : BR_OK;
}

/* One program of each kind: accepted, lowered, pages, several errors, cycle,
 * multiple writers, fused. */
TEST_WITHIN(check_survives_without_memory, 60)
{
    static const char *const files[] = {
        "valid/v060_llama1_default.json",
        "valid/v045_pages_linear.json",
        "valid/v031_fused_add_rmsnorm.json",
        "invalid/i245_multi_all_sections.json",
        "invalid/i151_cycle_40.json",
        "invalid/i190_waw_two_whole_writers.json",
        "invalid/i172_raw_missing_wait.json",
        "invalid/i214_sm_swapped_task_list.json",
        "invalid/i231_page_three_way.json",
        "invalid/i398_buffer_ids_duplicate.json",
        "gaps/g30_false_reject_ordered_rewrite.json",
        "gaps/g31_false_reject_disjoint_two_counters.json",
    };

    if (!t_vectors("amk"))
        t_skip("no ../shared/vectors here");
    for (size_t i = 0; i < BR_COUNT(files); i++) {
        br_status st = {0};
        br_mega_prog *p;
        size_t n;
        char *text = t_read(t_printf("%s/%s", t_vectors("amk"), files[i]), &n);

        t_ok(br_mega_load(&p, text, n, &st), &st);
        t_each_oom(check_once, &(job){p, BR_MEGA_SOUND});
        t_each_oom(check_once, &(job){p, BR_MEGA_COMPAT_0_2});
        br_mega_free(p);
    }
}
