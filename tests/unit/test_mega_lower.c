/* test_mega_lower.c - the lowering: the reference's bytes, and the effect of
 * every field of a config. The rest: test_mega_net.c, test_mega_assign.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "lower_make.h"
#include "mega/assign.h"
#include "mega/lower.h"

T_ONE_THREAD();

/* ---- the reference's bytes ----------------------------------------------- */

static void
vector_is_byte_exact(const char *dir, const br_json *entry)
{
    br_status st = {0};
    const br_json *file = br_json_get(entry, "file");
    br_mega_prog *p = lm_spec(br_json_get(entry, "lower_spec"), &st);
    br_str got = {0};
    char *want;
    size_t n;

    if (!p)
        ck_abort_msg("%s: %s", file->s, st.msg);
    want = t_read(t_printf("%s/%s", dir, file->s), &n);
    t_ok(br_mega_save(p, &got, &st), &st);
    if (got.n != n || memcmp(got.at, want, n) != 0)
        ck_abort_msg("%s: bytes differ", file->s);
    br_str_fini(&got);
    br_mega_free(p);
}

TEST(lower_amk_reproduces_every_vector)
{
    const char *dir = t_vectors("amk");
    const br_json *m = lm_manifest();
    int n = 0;

    if (!m)
        t_skip("no ../shared/vectors here");
    for (const br_json *e = br_json_get(m, "valid")->child; e; e = e->next) {
        if (!br_json_get(e, "lower_spec"))
            continue;
        vector_is_byte_exact(dir, e);
        n++;
    }
    ck_assert_int_ge(n, 10);
    lm_manifest_done();
}

TEST(lower_amk_reproduces_every_digest)
{
    const br_json *m = lm_manifest();
    int n = 0;

    if (!m)
        t_skip("no ../shared/vectors here");
    for (const br_json *e = br_json_get(m, "lower_digests")->child; e;
         e = e->next, n++) {
        const br_json *want =
            br_json_get(br_json_get(e, "expected"), "sha256_to_json");
        br_status st = {0};
        br_mega_prog *p = lm_spec(br_json_get(e, "lower_spec"), &st);
        char hex[BR_SHA256_HEX];
        br_str got = {0};

        if (!p)
            ck_abort_msg("%s: %s", br_json_get(e, "id")->s, st.msg);
        t_ok(br_mega_save(p, &got, &st), &st);
        br_sha256_hex(got.at, got.n, hex);
        if (strcmp(hex, want->s) != 0)
            ck_abort_msg("%s: %s, not %s", br_json_get(e, "id")->s, hex,
                         want->s);
        br_str_fini(&got);
        br_mega_free(p);
    }
    ck_assert_int_ge(n, 5);
    lm_manifest_done();
}

TEST(lower_the_program_everybody_measures_on)
{
    br_status st = {0};
    br_mega_prog *p;

    t_ok(br_mega_lower_shape(&p, "llama-3-8b", BR_LOWER_AMK, &st), &st);
    ck_assert_uint_eq(p->n_tasks, 12738);
    br_mega_free(p);
    ck_assert_int_eq(br_mega_lower_shape(&p, "llama-9", BR_LOWER_AMK, &st),
                     BR_E_NOT_FOUND);
}

/* ---- house style --------------------------------------------------------- */

TEST(lower_every_shape_is_sound_on_targets)
{
    for (size_t i = 0; i < br_mega_shape_count(); i++)
        for (size_t k = 0; k < br_mega_target_count(); k += 5) {
            br_mega_shape s = *br_mega_shape_at(i);
            br_mega_step step = {.dtype = BR_MDT_BF16, .pos = 3};
            br_mega_lower_opts o = {.target = br_mega_target_at(k)};
            br_mega_report r = {0};
            br_status st = {0};
            br_mega_net *n;
            br_mega_prog *p;

            s.n_layers = 1;
            t_ok(br_mega_net_model(&n, &s, &step, &st), &st);
            t_ok(br_mega_lower(&p, n, &o, NULL, &st), &st);
            t_ok(br_mega_check(p, BR_MEGA_SOUND, &r, &st), &st);
            if (!r.ok)
                ck_abort_msg("%s on %s: %s", s.name, o.target->name,
                             r.errors.at[0]);
            br_mega_report_fini(&r);
            for (size_t t = 0; t < p->n_tasks; t++)
                if (p->tasks[t].sm < 0 || p->tasks[t].sm >= o.target->num_sms)
                    ck_abort_msg("%s on %s: task %zu", s.name, o.target->name,
                                 t);
            br_mega_free(p);
            br_mega_net_free(n);
        }
}

/* Every task stands after all it waits for. */
TEST(lower_lists_tasks_in_an_order_of_the_dependencies)
{
    br_status st = {0};
    br_mega_prog *p;
    int64_t *done;

    t_ok(br_mega_lower_shape(&p, "smollm2-135m", BR_LOWER_HOUSE, &st), &st);
    done = t_keep(calloc(p->n_counters, sizeof *done));
    for (size_t i = 0; i < p->n_tasks; i++) {
        const br_mega_task *t = &p->tasks[i];

        for (uint32_t k = 0; k < t->n_waits; k++)
            if (done[t->waits[k].counter] != t->waits[k].threshold)
                ck_abort_msg("task %zu", i);
        done[t->out_counter]++;
    }
    br_mega_free(p);
}

TEST(lower_without_a_target_assigns_nobody)
{
    br_mega_net *n = lm_net(1, NULL);
    br_mega_lower_opts o = {0};
    br_status st = {0};
    br_mega_prog *p;

    t_ok(br_mega_lower(&p, n, &o, NULL, &st), &st);
    ck_assert_ptr_null(p->target);
    for (size_t i = 0; i < p->n_tasks; i++)
        ck_assert_int_eq(p->tasks[i].sm, BR_MEGA_SM_NONE);
    br_mega_free(p);
    o.config = lm_json("{'sm_assignment':{'0':1}}");
    ck_assert_int_eq(br_mega_lower(&p, n, &o, NULL, &st), BR_E_FORMAT);
    br_mega_net_free(n);
    lm_forget();
}

/* What is written can be read, and says the same. */
TEST(lower_writes_what_loads)
{
    br_mega_net *n = lm_net(2, NULL);
    br_mega_prog *p = lm_lower(
        n, "h100",
        "{'fusion_grouping':[['rope','rope']],'sm_assignment':{'3':4}}", NULL);
    char *text = lm_text(p);
    br_status st = {0};
    br_mega_prog *q;

    t_ok(br_mega_load(&q, text, strlen(text), &st), &st);
    ck_assert_uint_eq(q->n_misfits, 0);
    ck_assert_str_eq(lm_text(q), text);
    br_mega_free(p);
    br_mega_free(q);
    br_mega_net_free(n);
    lm_forget();
}

TEST(lower_a_graph_that_is_too_large_is_an_error)
{
    br_mega_shape s = *br_mega_shape_find(BR_TEXT("llama-3-8b"));
    br_mega_step step = {.dtype = BR_MDT_F32};
    br_mega_lower_opts o = {.target = br_mega_target_find(BR_TEXT("h100")),
                            .config =
                                lm_json("{'tiling':{'gemv':{'N_tile':1}}}")};
    br_status st = {0};
    br_mega_net *n;
    br_mega_prog *p;

    s.vocab = 1 << 23;
    s.n_layers = 1;
    t_ok(br_mega_net_model(&n, &s, &step, &st), &st);
    ck_assert_int_eq(br_mega_lower(&p, n, &o, NULL, &st), BR_E_LIMIT);
    ck_assert_ptr_nonnull(strstr(st.msg, "more than 4194304 tasks"));
    br_mega_net_free(n);
    lm_forget();
}

typedef struct oom_case {
    br_mega_net *net;
    br_mega_lower_opts o;
} oom_case;

static br_code
lower_oom(void *arg, br_status *st)
{
    oom_case *c = arg;
    br_mega_prog *p;

    BR_TRY(br_mega_lower(&p, c->net, &c->o, NULL, st));
    br_mega_free(p);
    return BR_OK;
}

static void
each_oom(const br_mega_step *step, br_mega_style style, const char *config)
{
    oom_case c = {
        .net = lm_net(1, step),
        .o = {.style = style, .target = br_mega_target_find(BR_TEXT("t4"))}};

    c.o.config = config ? lm_json(config) : NULL;
    t_each_oom(lower_oom, &c);
    br_mega_net_free(c.net);
    lm_forget();
}

TEST(lower_survives_any_failed_allocation)
{
    br_mega_step split = {.pos = 40, .dtype = BR_MDT_F32};
    br_mega_step quant = {
        .dtype = BR_MDT_F16, .quant_bits = 4, .quant_group = 16};

    each_oom(NULL, BR_LOWER_AMK, NULL);
    each_oom(&quant, BR_LOWER_AMK, NULL);
    each_oom(&split, BR_LOWER_HOUSE,
             "{'tiling':{'attention':{'kv_block':16},'o_proj':{'N_tile':32}},"
             "'fusion_grouping':[['gate','up'],['o','residual']],"
             "'sm_assignment':{'1':2},'smem_bytes_per_block':4096}");
}
