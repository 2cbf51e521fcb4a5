/* test_step_run.c - programs of models on bound tensors, by one thread and by
 * several.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/step_run.h"

#include <stdlib.h>
#include <string.h>

#include "drv/cpu/cpu_walk.h"
#include "logits_kit.h"
#include "mega/lower.h"
#include "t.h"

enum { ROWS = 4 };

/* A case's model, its program for prefill, and where its tensors are. */
typedef struct fixture {
    lk_case c;
    lk_run r;
    br_mega_prog *p;
    br_step_run *run;
    br_mega_store *store;
    br_mega_walk *walk;
} fixture;

static br_mega_prog *
lowered(const br_ir *g, int64_t workers)
{
    br_step_config c = {workers, ROWS, 16};
    br_status st = {0};
    br_mega_prog *p;

    t_ok(br_mega_lower_graph(&p, g, &c, &st), &st);
    t_ok(br_mega_accept(p, &st), &st);
    return p;
}

static void
set_up(fixture *f, size_t i, uint32_t workers)
{
    br_step_run_config c = {.workers = workers, .max_bytes = 1ull << 30};
    br_status st = {0};

    f->c = lk_get(i);
    t_ok(lk_open(&f->r, &f->c, NULL), &f->r.st);
    f->p = lowered(f->r.o.graph[BR_IR_PREFILL], 3);
    t_ok(br_step_run_new(&f->run, f->p, f->r.model, &c, &st), &st);
    f->store = br_step_run_store(f->run);
    t_ok(br_mega_walk_new(&f->walk, f->p, &st), &st);
}

static void
tear_down(fixture *f)
{
    br_mega_walk_free(f->walk);
    br_step_run_free(f->run);
    br_mega_free(f->p);
    lk_close(&f->r);
}

static int64_t
id_of(const br_mega_prog *p, const char *name)
{
    for (size_t b = 0; b < p->n_buffers; b++)
        if (strcmp(p->buffers[b].name, name) == 0)
            return (int64_t)b;
    ck_abort_msg("no buffer %s", name);
}

static br_code
bind_i32(br_mega_store *s, const char *name, const int32_t *v, int64_t n,
         br_status *st)
{
    br_mega_value x = {v, &n, (size_t)n * 4, 1, BR_MDT_I32};

    return s->bind(s, id_of(s->prog, name), &x, st);
}

/* Rows [from, from + n) of the case's tokens. */
static br_code
bind_rows(const fixture *f, int32_t from, int64_t n, br_status *st)
{
    int32_t position[ROWS], want[ROWS];

    for (int32_t i = 0; i < n; i++) {
        position[i] = from + i;
        want[i] = 1;
    }
    BR_TRY(bind_i32(f->store, "step.token", f->c.tokens + from, n, st));
    BR_TRY(bind_i32(f->store, "step.position", position, n, st));
    return bind_i32(f->store, "step.want", want, n, st);
}

static void
logits_are(const fixture *f, const float *want, int64_t n)
{
    br_mega_value v = f->store->get(f->store, id_of(f->p, "step.logits"));

    ck_assert_uint_eq(v.nbytes, (size_t)n * f->c.n_vocab * sizeof *want);
    ck_assert_msg(memcmp(v.data, want, v.nbytes) == 0, "%s", f->c.name);
}

/* The second step goes on from the first by threads, and by whatever order. */
TEST_WITHIN(steps_of_every_architecture_have_the_bits_of_logits, 120)
{
    br_status st = {0};
    br_cpu_pool *pool;

    t_ok(br_cpu_pool_new(&pool, 5, &st), &st);
    for (size_t i = 0, n = 0; i < lk_count(); i++) {
        fixture f;
        br_cpu_walk *threads;
        const float *want;

        if (!lk_get(i).arch_first || (t_sanitized() && n++ % 6))
            continue;
        set_up(&f, i, 5);
        want = lk_logits(&f.r, &f.c, 7, 0);
        t_ok(br_cpu_walk_new(&threads, f.p, pool, &st), &st);
        t_ok(bind_rows(&f, 0, 3, &st), &st);
        t_ok(f.store->run(f.store, br_cpu_walk_runner(threads), &st), &st);
        logits_are(&f, want, 3);
        t_ok(bind_rows(&f, 3, 4, &st), &st);
        t_ok(br_mega_adversarial(f.store, f.walk, 2, BR_MEGA_ORDER_RANDOM, i,
                                 &st),
             &st);
        logits_are(&f, want + 3 * f.c.n_vocab, 4);
        br_cpu_walk_free(threads);
        tear_down(&f);
    }
    br_cpu_pool_free(pool);
    lk_end();
}

/* Steps of a case by a pool's threads, against `want` for rows 0 .. 6. */
static void
by_kernels(const lk_run *r, const lk_case *c, const br_step_run_config *config,
           bool fused, const float *want)
{
    fixture f = {.c = *c};
    br_status st = {0};
    br_cpu_walk *threads;
    br_ir *g = NULL;

    if (fused)
        t_ok(br_ir_fuse(&g, r->o.graph[BR_IR_PREFILL], &st), &st);
    f.p = lowered(g ? g : r->o.graph[BR_IR_PREFILL], 3);
    t_ok(br_step_run_new(&f.run, f.p, r->model, config, &st), &st);
    f.store = br_step_run_store(f.run);
    t_ok(br_cpu_walk_new(&threads, f.p, config->pool, &st), &st);
    for (int32_t at = 0; at < 7; at += 3 + (at > 0)) {
        t_ok(bind_rows(&f, at, 3 + (at > 0), &st), &st);
        t_ok(f.store->run(f.store, br_cpu_walk_runner(threads), &st), &st);
        logits_are(&f, want + (size_t)at * c->n_vocab, 3 + (at > 0));
    }
    br_cpu_walk_free(threads);
    br_step_run_free(f.run);
    br_mega_free(f.p);
    br_ir_free(g);
}

/* The CPU tier's tasks: with exact the ref tier's bits, else those of its own
 * steps; every architecture and format of weights, in two schedules. */
TEST_WITHIN(tasks_by_kernels_have_the_bits_of_their_tier, 120)
{
    br_cpu_pool *pool;
    br_status st = {0};

    t_ok(br_cpu_pool_new(&pool, 5, &st), &st);
    for (size_t i = 0, n = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);

        if (t_sanitized() && n++ % 8)
            continue;
        for (int exact = 0; exact < 2; exact++) {
            br_step_run_config sc = {5, 1ull << 30, pool, exact};
            br_oracle_config oc = {.act = BR_REF_QUANTISED,
                                   .pool = exact ? NULL : pool};
            lk_case mine = lk_get(i);
            const float *want;
            lk_run r;

            t_ok(lk_open(&r, &mine, &oc), &r.st);
            want = lk_logits(&r, &c, 7, 0);
            by_kernels(&r, &c, &sc, exact, want);
            lk_close(&r);
        }
    }
    br_cpu_pool_free(pool);
    lk_end();
}

static void
refuses(const fixture *f, const char *says)
{
    br_status st = {0};

    ck_assert_int_ne(f->store->run(f->store, br_mega_walk_runner(f->walk), &st),
                     BR_OK);
    ck_assert_msg(strstr(st.msg, says) != NULL, "%s", st.msg);
}

TEST(rows_of_a_step_make_sense)
{
    static const int32_t back[] = {1, 1}, minus[] = {-1}, big[] = {1 << 30};
    static const int32_t odd[] = {1 << 30, 2};
    br_status st = {0};
    fixture f;

    set_up(&f, 0, 1);
    ck_assert_int_eq(bind_i32(f.store, "step.token", odd, 0, &st), BR_E_FORMAT);
    st = (br_status){0};
    ck_assert_int_eq(bind_i32(f.store, "step.token", f.c.tokens, 5, &st),
                     BR_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(st.msg, "5 rows; the program takes 1 to 4"));
    st = (br_status){0};
    t_ok(bind_rows(&f, 0, 2, &st), &st);
    t_ok(bind_i32(f.store, "step.position", back, 2, &st), &st);
    refuses(&f, "step.position[1]: 1; positions are 0 or more and ascend");
    t_ok(bind_rows(&f, 0, 2, &st), &st);
    t_ok(bind_i32(f.store, "step.want", back, 1, &st), &st);
    refuses(&f, "differ in their number of rows");
    t_ok(bind_rows(&f, 0, 2, &st), &st);
    t_ok(bind_i32(f.store, "step.token", odd, 2, &st), &st);
    refuses(&f, "token 1073741824 is not in 0..");
    t_ok(bind_rows(&f, 0, 1, &st), &st);
    t_ok(bind_i32(f.store, "step.position", minus, 1, &st), &st);
    refuses(&f, "step.position[0]: -1;");
    t_ok(bind_i32(f.store, "step.position", big, 1, &st), &st);
    refuses(&f, "positions are more than memory holds");
    tear_down(&f);
    lk_end();
}

TEST(caches_fit_the_step)
{
    br_status st = {0};
    float *some;
    int64_t shape[2] = {3, 0}, kv;
    br_mega_value v = {.shape = shape, .rank = 2, .dtype = BR_MDT_F32};
    fixture f;

    set_up(&f, 0, 1);
    kv = id_of(f.p, "state.kv_k[0]");
    shape[1] = br_mega_numel(&f.p->buffers[kv]);
    some = t_keep(calloc(4u * (size_t)shape[1], sizeof *some));
    v.data = some;
    v.nbytes = 3u * (size_t)shape[1] * sizeof *some;
    t_ok(f.store->bind(f.store, kv, &v, &st), &st);
    t_ok(bind_rows(&f, 4, 1, &st), &st);
    refuses(&f, "holds 3 positions, and the step begins at 4");
    t_ok(bind_rows(&f, 3, 1, &st), &st);
    t_ok(f.store->run(f.store, br_mega_walk_runner(f.walk), &st), &st);
    ck_assert_int_eq(f.store->get(f.store, kv).shape[0], 4);
    shape[1]--;
    ck_assert_int_eq(f.store->bind(f.store, kv, &v, &st), BR_E_FORMAT);
    ck_assert_ptr_nonnull(strstr(st.msg, "has another shape"));
    tear_down(&f);
    lk_end();
}

/* ---- graphs from elsewhere ----------------------------------------------- */

/* The program of case i whose graph's text has `to` where it had `from`. */
static br_code
edited(size_t i, const char *from, const char *to, br_status *st)
{
    br_step_run_config c = {.workers = 1, .max_bytes = 1ull << 30};
    lk_case k = lk_get(i);
    br_str text = {0}, new = {0};
    br_mega_prog *p;
    br_step_run *run = NULL;
    const char *at;
    br_ir *g;
    br_code code;
    lk_run r;

    t_ok(lk_open(&r, &k, NULL), &r.st);
    br_ir_print(r.o.graph[BR_IR_PREFILL], &text);
    at = strstr(br_str_z(&text), from);
    ck_assert_msg(at != NULL, "no '%s' in the graph", from);
    br_str_printf(&new, "%.*s%s%s", (int)(at - text.at), text.at, to,
                  at + strlen(from));
    t_ok(br_ir_parse(&g, new.at, new.n, st), st);
    p = lowered(g, 1);
    code = br_step_run_new(&run, p, r.model, &c, st);
    br_step_run_free(run);
    br_mega_free(p);
    br_ir_free(g);
    br_str_fini(&text);
    br_str_fini(&new);
    lk_close(&r);
    return code;
}

/* Verified graphs, every one, which an executor of this model cannot run. */
TEST(graphs_that_are_not_the_models_are_refused)
{
    static const struct {
        const char *from, *to, *says;
    } bad[] = {
        {"EMBED step.token", "EMBED step.want", "takes it from the step"},
        {"value step.position I32 [T,1]",
         "value step.position I32 [T,1]\nvalue step.more F32 [T,1]",
         "step.more: a step has no such input"},
        {"value step.position I32 [T,1]",
         "value step.position I32 [T,1]\nvalue state.x F32 [P,64]",
         "state.x: no node writes it"},
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        br_status st = {0};

        ck_assert_int_eq(edited(0, bad[i].from, bad[i].to, &st), BR_E_REJECTED);
        ck_assert_msg(strstr(st.msg, bad[i].says) != NULL, "%s", st.msg);
    }
    lk_end();
}

/* A program of one model with the weights of another. */
TEST(a_program_wants_its_own_model)
{
    br_step_run_config c = {.workers = 1, .max_bytes = 1ull << 30};
    br_status st = {0};
    br_step_run *run;
    lk_case other;
    fixture f;
    lk_run r;

    set_up(&f, 0, 1);
    for (size_t i = 1; i < lk_count(); i++) {
        other = lk_get(i);
        if (!other.arch_first)
            continue;
        t_ok(lk_open(&r, &other, NULL), &r.st);
        st = (br_status){0};
        ck_assert_int_ne(br_step_run_new(&run, f.p, r.model, &c, &st), BR_OK);
        ck_assert_msg(strstr(st.msg, "made of another model") ||
                          strstr(st.msg, "has no such weight") ||
                          strstr(st.msg, "a row for each token"),
                      "%s: %s", other.name, st.msg);
        lk_close(&r);
    }
    tear_down(&f);
    lk_end();
}

static br_code
run_once(void *arg, br_status *st)
{
    fixture f = *(fixture *)arg;
    br_step_run_config c = {.workers = 1, .max_bytes = 1ull << 30};
    br_code code = br_step_run_new(&f.run, f.p, f.r.model, &c, st);

    f.walk = NULL;
    if (code == BR_OK) {
        f.store = br_step_run_store(f.run);
        code = br_mega_walk_new(&f.walk, f.p, st);
    }
    if (code == BR_OK)
        code = bind_rows(&f, 0, 2, st);
    if (code == BR_OK)
        code =
            br_mega_adversarial(f.store, f.walk, 1, BR_MEGA_ORDER_SWEEP, 0, st);
    br_mega_walk_free(f.walk);
    br_step_run_free(f.run);
    return code;
}

TEST_WITHIN(a_step_says_when_memory_is_out, 60)
{
    fixture f;

    set_up(&f, 0, 1);
    t_each_oom(run_once, &f);
    tear_down(&f);
    lk_end();
}

/* ---- threads ------------------------------------------------------------- */

static br_code
fails_at(void *ctx, uint32_t worker, uint32_t task, br_status *st)
{
    (void)worker;
    return task == *(uint32_t *)ctx
               ? br_fail(st, BR_E_REJECTED, "task %u", task)
               : BR_OK;
}

/* The others stop, whatever they wait for; the next run is a fresh one. */
TEST(a_task_that_fails_ends_the_run)
{
    br_status st = {0};
    br_cpu_walk *threads;
    br_cpu_pool *pool;
    uint32_t at;
    fixture f;

    set_up(&f, 0, 1);
    for (uint32_t n = 1; n < 6; n++) {
        t_ok(br_cpu_pool_new(&pool, n, &st), &st);
        t_ok(br_cpu_walk_new(&threads, f.p, pool, &st), &st);
        for (at = 0; at <= f.p->n_tasks; at += 7) {
            br_mega_runner *r = br_cpu_walk_runner(threads);

            st = (br_status){0};
            ck_assert_int_eq(r->run(r, fails_at, &at, &st),
                             at < f.p->n_tasks ? BR_E_REJECTED : BR_OK);
            ck_assert_uint_le(r->n_order, f.p->n_tasks);
        }
        at = UINT32_MAX;
        st = (br_status){0};
        t_ok(br_cpu_walk_runner(threads)->run(br_cpu_walk_runner(threads),
                                              fails_at, &at, &st),
             &st);
        ck_assert_uint_eq(br_cpu_walk_runner(threads)->n_order, f.p->n_tasks);
        br_cpu_walk_free(threads);
        br_cpu_pool_free(pool);
    }
    tear_down(&f);
    lk_end();
}
