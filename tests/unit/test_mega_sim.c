/* test_mega_sim.c - the two dry runs against their definitions.
 *
 * The definitions are loops over all tasks at every step; they stand here as
 * slow_* and are compared on random programs, good and broken. The vectors
 * hold what the reference says.
 * SPDX-License-Identifier: Apache-2.0 */
#include "unit/prog_make.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

typedef struct slow {
    int64_t *cval;
    bool *done;
    uint32_t *list;
    uint32_t n;
} slow;

static slow
slow_new(const br_mega_prog *p)
{
    slow s = {calloc(p->n_counters + 1, sizeof(int64_t)),
              calloc(p->n_tasks + 1, 1),
              calloc(p->n_tasks + 1, sizeof(uint32_t)), 0};

    for (size_t i = 0; i < p->n_counters; i++)
        s.cval[p->counters[i].id] = p->counters[i].init;
    return s;
}

static void
slow_free(slow *s)
{
    free(s->cval);
    free(s->done);
    free(s->list);
}

static bool
slow_ready(const br_mega_prog *p, const slow *s, uint32_t t)
{
    if (s->done[p->tasks[t].id])
        return false;
    for (uint32_t w = 0; w < p->tasks[t].n_waits; w++)
        if (s->cval[p->tasks[t].waits[w].counter] <
            p->tasks[t].waits[w].threshold)
            return false;
    return true;
}

static void
slow_fire(const br_mega_prog *p, slow *s, uint32_t t)
{
    s->done[p->tasks[t].id] = true;
    s->cval[p->tasks[t].out_counter]++;
}

static slow
slow_sweeps(const br_mega_prog *p)
{
    slow s = slow_new(p);
    bool progress = true;

    while (progress) {
        progress = false;
        for (uint32_t t = 0; t < p->n_tasks; t++) {
            if (!slow_ready(p, &s, t))
                continue;
            slow_fire(p, &s, t);
            s.list[s.n++] = (uint32_t)p->tasks[t].id;
            progress = true;
        }
    }
    return s;
}

/* The order of one seed of the adversary. */
static slow
slow_seed(const br_mega_prog *p, uint64_t seed)
{
    slow s = slow_new(p);
    uint32_t *ready = calloc(p->n_tasks + 1, sizeof *ready);

    for (;;) {
        uint32_t n = 0, t;
        for (uint32_t i = 0; i < p->n_tasks; i++)
            if (slow_ready(p, &s, i))
                ready[n++] = i;
        if (!n)
            break;
        t = ready[seed * 2654435761u % n];
        slow_fire(p, &s, t);
        s.list[s.n++] = t;
    }
    free(ready);
    return s;
}

static void
slow_seed_reads(const br_mega_prog *p, uint64_t seed, br_mega_sim *out)
{
    slow s = slow_seed(p, seed);
    bool *unwritten = calloc(p->n_buffers + 1, 1);

    for (size_t b = 0; b < p->n_buffers; b++) {
        unwritten[b] = p->buffers[b].kind == BR_MBK_ACTIVATION ||
                       p->buffers[b].kind == BR_MBK_IO_OUTPUT;
        for (size_t t = 0; t < p->n_tasks; t++)
            for (uint32_t k = 0; k < p->tasks[t].n_out; k++)
                if (p->tasks[t].out[k] == (int64_t)b &&
                    p->buffers[b].kind == BR_MBK_KV_CACHE)
                    unwritten[b] = true;
    }
    for (uint32_t i = 0; i < s.n; i++) {
        const br_mega_task *t = &p->tasks[s.list[i]];
        for (uint32_t k = 0; k < t->n_in; k++)
            if (unwritten[t->in[k]]) {
                char z[256];
                snprintf(z, sizeof z,
                         "[seed %u] task %u (%s) reads buffer #%u ('%s') "
                         "before any producer wrote it",
                         (unsigned)seed, (unsigned)t->id,
                         t->label_n ? t->label : br_mega_op_name(t->op),
                         (unsigned)t->in[k], p->buffers[t->in[k]].name);
                ck_assert(br_vec_push(&out->violations,
                                      strcpy(br_alloc(strlen(z) + 1), z)));
            }
        for (uint32_t k = 0; k < t->n_out; k++)
            unwritten[t->out[k]] = false;
    }
    free(unwritten);
    slow_free(&s);
}

static int
cmp_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
slow_adversarial(const br_mega_prog *p, int seeds, br_mega_sim *out)
{
    size_t k = 0;

    for (int s = 0; s < seeds && !out->violations.n; s++)
        slow_seed_reads(p, (uint64_t)s, out);
    if (out->violations.n)
        qsort(out->violations.at, out->violations.n, sizeof(char *), cmp_text);
    for (size_t i = 0; i < out->violations.n; i++)
        if (k && !strcmp(out->violations.at[k - 1], out->violations.at[i]))
            br_free(out->violations.at[i]);
        else
            out->violations.at[k++] = out->violations.at[i];
    out->violations.n = k;
}

/* A program of up to 60 tasks. broken: thresholds that never come, counters
 * that begin above zero, tasks in any order of ids. */
static mk
random_program(uint64_t *r, bool broken)
{
    size_t nt = 1 + t_rand(r) % 60, nc = 1 + t_rand(r) % (nt + 1), nb = 8;
    mk m = mk_new(nb, nc, nt);
    uint32_t *prod = calloc(nt, sizeof *prod);
    int64_t *count = calloc(nc, sizeof *count);

    for (size_t i = 0; i < nb; i++)
        mk_buf(&m, t_printf("b%zu", i), (br_mega_kind)(i % BR_MBK_COUNT), 1);
    for (size_t i = 0; i < nc; i++) {
        mk_ctr(&m);
        if (broken && t_rand(r) % 8 == 0)
            m.p->counters[i].init = (int64_t)(t_rand(r) % 3);
    }
    for (size_t i = 0; i < nt; i++)
        count[prod[i] = (uint32_t)(t_rand(r) % nc)]++;
    for (size_t i = 0; i < nt; i++) {
        int64_t io[5], w[6];
        uint32_t nw = (uint32_t)(t_rand(r) % 4) * 2;
        for (uint32_t k = 0; k < 5; k++)
            io[k] = (int64_t)(t_rand(r) % nb);
        for (uint32_t k = 0; k < nw; k += 2) {
            w[k] =
                i && !broken ? prod[t_rand(r) % i] : (int64_t)(t_rand(r) % nc);
            w[k + 1] = t_rand(r) % 3 ? count[w[k]] : (int64_t)(t_rand(r) % 4);
            if (broken && t_rand(r) % 16 == 0)
                w[k + 1] = (int64_t)(t_rand(r) % 100) - 50;
        }
        mk_task(&m, BR_MOP_ADD, prod[i],
                (mk_list){io, (uint32_t)(t_rand(r) % 4)},
                (mk_list){io + 3, (uint32_t)(t_rand(r) % 3)}, (mk_list){w, nw});
        if (t_rand(r) % 2)
            mk_label(&m, &m.p->tasks[i], t_printf("t%zu", i));
    }
    for (size_t i = nt; broken && i-- > 1;) {
        size_t j = t_rand(r) % (i + 1);
        br_mega_task x = m.p->tasks[i];
        m.p->tasks[i] = m.p->tasks[j];
        m.p->tasks[j] = x;
    }
    free(prod);
    free(count);
    return m;
}

static void
same_as_slow(const br_mega_prog *p)
{
    br_mega_sim fast = {0}, want = {0};
    br_status st = {0};
    slow s = slow_sweeps(p);
    size_t k = 0;

    t_ok(br_mega_simulate(p, &fast, &st), &st);
    ck_assert_uint_eq(fast.order.n, s.n);
    for (size_t i = 0; i < s.n; i++)
        ck_assert_uint_eq(fast.order.at[i], s.list[i]);
    for (size_t t = 0; t < p->n_tasks; t++)
        if (!s.done[p->tasks[t].id])
            ck_assert_uint_eq(fast.stuck.at[k++], p->tasks[t].id);
    ck_assert_uint_eq(fast.stuck.n, k);
    slow_free(&s);

    slow_adversarial(p, 6, &want);
    t_ok(br_mega_simulate_adversarial(p, 6, &fast, &st), &st);
    ck_assert_uint_eq(fast.violations.n, want.violations.n);
    for (size_t i = 0; i < want.violations.n; i++)
        ck_assert_str_eq(fast.violations.at[i], want.violations.at[i]);
    br_mega_sim_fini(&fast);
    br_mega_sim_fini(&want);
}

TEST(sim_equals_its_definition_on_random_programs)
{
    uint64_t r = 7;

    for (int i = 0; i < 400; i++) {
        mk m = random_program(&r, i % 2);
        same_as_slow(m.p);
        br_mega_free(m.p);
    }
}

TEST(sim_wakes_behind_the_cursor_wait_for_the_next_sweep)
{
    mk m = mk_new(0, 4, 4);
    br_mega_sim s = {0};
    br_status st = {0};

    for (int i = 0; i < 4; i++)
        mk_ctr(&m);
    /* 3 frees 0 and 2; 0 frees 1: sweep one fires 3, sweep two 0 1 2 */
    mk_task(&m, BR_MOP_NOP, 0, MK_NONE, MK_NONE, MK(3, 1));
    mk_task(&m, BR_MOP_NOP, 1, MK_NONE, MK_NONE, MK(0, 1));
    mk_task(&m, BR_MOP_NOP, 2, MK_NONE, MK_NONE, MK(3, 1));
    mk_task(&m, BR_MOP_NOP, 3, MK_NONE, MK_NONE, MK_NONE);
    t_ok(br_mega_simulate(m.p, &s, &st), &st);
    ck_assert_uint_eq(s.order.n, 4);
    ck_assert_uint_eq(s.order.at[0], 3);
    for (uint32_t i = 1; i < 4; i++)
        ck_assert_uint_eq(s.order.at[i], i - 1);
    br_mega_sim_fini(&s);
    br_mega_free(m.p);
}

TEST(sim_refuses_what_has_no_meaning)
{
    mk m = mk_new(1, 1, 2);
    br_mega_sim s = {0};
    br_status st = {0};

    mk_buf(&m, "a", BR_MBK_ACTIVATION, 1);
    mk_ctr(&m);
    mk_task(&m, BR_MOP_NOP, 0, MK_NONE, MK_NONE, MK_NONE);
    mk_task(&m, BR_MOP_NOP, 0, MK_NONE, MK_NONE, MK_NONE)->id = 9;
    ck_assert_int_eq(br_mega_simulate(m.p, &s, &st), BR_E_REJECTED);
    ck_assert_str_eq(st.msg, "simulate: tasks[1].id: 9 is not in 0..1");
    m.p->tasks[1].id = 1;
    m.p->buffers[0].id = 4;
    st = (br_status){0};
    t_ok(br_mega_simulate(m.p, &s, &st), &st);
    ck_assert_int_eq(br_mega_simulate_adversarial(m.p, 1, &s, &st),
                     BR_E_REJECTED);
    br_mega_sim_fini(&s);
    br_mega_free(m.p);
}

TEST(sim_of_nothing_is_nothing)
{
    mk m = mk_new(0, 0, 0);
    br_mega_sim s = {0};
    br_status st = {0};

    t_ok(br_mega_simulate(m.p, &s, &st), &st);
    t_ok(br_mega_simulate_adversarial(m.p, 16, &s, &st), &st);
    ck_assert_uint_eq(s.order.n + s.stuck.n + s.violations.n, 0);
    br_mega_sim_fini(&s);
    br_mega_free(m.p);
}

/* 100,000 tasks listed against their order would take the definition 10^10
 * steps; with a tree it is a blink. */
TEST(sim_of_a_long_backward_chain_is_not_quadratic)
{
    enum { N = 100000 };
    mk m = mk_new(0, N, N);
    br_mega_sim s = {0};
    br_status st = {0};

    for (int64_t i = 0; i < N; i++)
        mk_ctr(&m);
    for (int64_t i = 0; i < N; i++)
        mk_task(&m, BR_MOP_NOP, i, MK_NONE, MK_NONE,
                i + 1 < N ? MK(i + 1, 1) : MK_NONE);
    t_ok(br_mega_simulate(m.p, &s, &st), &st);
    t_ok(br_mega_simulate_adversarial(m.p, 16, &s, &st), &st);
    ck_assert_uint_eq(s.order.n, N);
    ck_assert_uint_eq(s.order.at[0], N - 1);
    ck_assert_uint_eq(s.order.at[N - 1], 0);
    br_mega_sim_fini(&s);
    br_mega_free(m.p);
}

static br_code
sim_all(void *arg, br_status *st)
{
    br_mega_sim s = {0};
    br_code rc = br_mega_simulate(arg, &s, st);

    if (rc == BR_OK)
        rc = br_mega_simulate_adversarial(arg, 3, &s, st);
    br_mega_sim_fini(&s);
    return rc;
}

TEST(sim_survives_every_failing_allocation)
{
    uint64_t r = 3;

    for (int i = 0; i < 4; i++) {
        mk m = random_program(&r, i % 2);
        t_each_oom(sim_all, m.p);
        br_mega_free(m.p);
    }
}

/* ---- vectors ----------------------------------------------------------- */

static void
same_ids(const char *id, const br_json *want, const uint32_t *got, size_t n)
{
    size_t k = 0;

    ck_assert_msg(want->n == n, "%s: %u ids, not %zu", id, want->n, n);
    for (const br_json *v = want->child; v; v = v->next, k++)
        ck_assert_msg(v->i == got[k], "%s: place %zu: %lld, not %u", id, k,
                      (long long)v->i, got[k]);
}

/* One entry of the manifest; returns 1 when it says what the runs give. */
static int
check_vector(const char *dir, const br_json *e)
{
    const br_json *verdict = br_json_get(e, "verdict"), *f, *sc, *sa, *v;
    const char *id = br_json_get(e, "id")->s;
    br_mega_prog *p = NULL;
    br_mega_sim s = {0};
    br_status st = {0};
    br_code rc;
    size_t k = 0;

    sc = verdict ? br_json_get(verdict, "simulate_counters") : NULL;
    if (!sc)
        return 0;
    sa = br_json_get(verdict, "simulate_adversarial_16");
    f = br_json_get(e, "file");
    f = f ? f : br_json_get(br_json_get(e, "input"), "file");
    t_ok(br_mega_load_file(&p, t_printf("%s/%s", dir, f->s), &st), &st);
    rc = br_mega_simulate(p, &s, &st);
    if (br_json_get(sc, "raises")) {
        ck_assert_msg(rc == BR_E_REJECTED, "%s: ran", id);
    } else {
        ck_assert_msg(rc == BR_OK, "%s: %s", id, st.msg);
        same_ids(id, br_json_get(sc, "order"), s.order.at, s.order.n);
        same_ids(id, br_json_get(sc, "stuck"), s.stuck.at, s.stuck.n);
    }
    st = (br_status){0};
    rc = br_mega_simulate_adversarial(p, 16, &s, &st);
    if (sa->kind == BR_J_OBJ) {
        ck_assert_msg(rc == BR_E_REJECTED, "%s: ran", id);
    } else {
        ck_assert_msg(rc == BR_OK, "%s: %s", id, st.msg);
        ck_assert_msg(sa->n == s.violations.n, "%s: %zu violations", id,
                      s.violations.n);
        for (v = sa->child; v; v = v->next)
            ck_assert_str_eq(v->s, s.violations.at[k++]);
    }
    br_mega_sim_fini(&s);
    br_mega_free(p);
    return 1;
}

TEST(sim_agrees_with_every_vector)
{
    static const char *const groups[] = {"valid", "invalid", "gaps",
                                         "canonical"};
    const char *dir = t_vectors("amk");
    br_arena a;
    br_json *m = NULL;
    br_status st = {0};
    char *text;
    size_t n;
    int seen = 0;

    if (!dir)
        t_skip("no ../shared/vectors here");
    br_arena_init(&a, 0);
    text = t_read(t_printf("%s/manifest.json", dir), &n);
    t_ok(br_json_parse(&m, &a, text, n, BR_JSON_LAX, &st), &st);
    for (size_t g = 0; g < BR_COUNT(groups); g++)
        for (const br_json *e = br_json_get(m, groups[g])->child; e;
             e = e->next)
            seen += check_vector(dir, e);
    ck_assert_int_gt(seen, 200);
    br_arena_fini(&a);
}

/* ---- the command ------------------------------------------------------- */

TEST(prog_sim_prints_json_and_text)
{
    static const char *const prog =
        "{\"buffers\": [{\"id\": 0, \"name\": \"a\", \"kind\": \"ACTIVATION\","
        " \"dtype\": \"F32\", \"shape\": [1], \"space\": \"HBM\"}],"
        " \"counters\": [{\"id\": 0}, {\"id\": 1}],"
        " \"tasks\": [{\"id\": 0, \"op\": \"GELU\", \"inputs\": [0],"
        " \"outputs\": [0], \"out_counter\": 0, \"waits\": []},"
        " {\"id\": 1, \"op\": \"NOP\", \"inputs\": [], \"outputs\": [],"
        " \"out_counter\": 1, \"waits\": [{\"counter\": 0,"
        " \"threshold\": 1}]},"
        " {\"id\": 2, \"op\": \"NOP\", \"inputs\": [], \"outputs\": [],"
        " \"out_counter\": 1, \"waits\": [{\"counter\": 1,"
        " \"threshold\": 3}]}]}";
    const char *path = t_printf("%s/p.json", t_tmpdir());
    t_proc r;

    t_write(path, prog, strlen(prog));
    t_run(&r, "prog", "sim", path, "--json");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_str_eq(r.out,
                     "{\"order\": [0, 1], \"stuck\": [2], \"violations\": "
                     "[\"[seed 0] task 0 (GELU) reads buffer #0 ('a') before "
                     "any producer wrote it\"]}\n");
    t_run(&r, "prog", "sim", path);
    ck_assert_int_eq(r.exit, 0);
    ck_assert_str_eq(r.out, "order    2 tasks: 0-1\n"
                            "stuck    1 task: 2\n"
                            "hunt     16 orders, 1 read before the write\n"
                            "  [seed 0] task 0 (GELU) reads buffer #0 ('a') "
                            "before any producer wrote it\n");
    t_run(&r, "prog", "sim", t_printf("%s/none.json", t_tmpdir()));
    ck_assert_int_eq(r.exit, 3);
}
