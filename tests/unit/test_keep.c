/* test_keep.c - sessions over a restart: found again, to the bit, or not at
 * all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "engine_kit.h"

#include "base/hash.h"
#include "base/thread.h"
#include "run/keep.h"
#include "run/lm_model.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 6, PROMPT = 70, OUT = 40 };

static void
open_tenants(ek *k, const br_lm_fake_config *fc, const char *path, uint8_t id)
{
    br_engine_config c = {.keep = path, .prefix_percent = 50};
    br_quota q = br_quota_defaults();
    br_status st = {0};

    c.identity[0] = id;
    ek_open(k, *fc, c);
    for (uint32_t t = 1; t < 3; t++)
        t_ok(br_engine_tenant_set(k->e, t, &q, &st), &st);
}

/* Prompt i is tenant i % 2 + 1's. Returns how many tokens were found. */
static uint32_t
ask_all(ek *k, ek_req *r, uint32_t tenants)
{
    ek_req *all[N];
    uint32_t found = 0;

    for (uint32_t i = 0; i < N; i++) {
        br_request_desc d;

        r[i] = (ek_req){0};
        ek_prompt(&r[i], PROMPT, i);
        d = ek_desc(&r[i], OUT);
        d.tenant = (i + tenants) % 2 + 1;
        all[i] = &r[i];
        ek_submit(k, &r[i], &d);
    }
    ek_await(k, all, N);
    for (uint32_t i = 0; i < N; i++) {
        ek_right(k, &r[i]);
        found += r[i].usage.n_cached;
    }
    return found;
}

static const br_lm_fake_config plain = {.n_slots = 3},
                               hybrid = {.n_slots = 3,
                                         .window = 40,
                                         .recurrent = true};

static void
over_a_restart(const br_lm_fake_config *fc, const char *path)
{
    static ek_req r[N];
    ek k;

    open_tenants(&k, fc, path, 1);
    ck_assert_uint_eq(ask_all(&k, r, 0), 0);
    ek_close(&k);
    open_tenants(&k, fc, path, 1);
    ck_assert_uint_eq(ask_all(&k, r, 0), N * 64);
    ek_close(&k);
    open_tenants(&k, fc, path, 1); /* and nobody finds what is another's */
    ck_assert_uint_eq(ask_all(&k, r, 1), 0);
    ek_close(&k);
    open_tenants(&k, fc, path, 2); /* nor in another model */
    ck_assert_uint_eq(ask_all(&k, r, 0), 0);
    ek_close(&k);
}

TEST(keep_finds_sessions_after_a_restart)
{
    char *path = t_printf("%s/a.keep", t_tmpdir());
    struct stat s;

    over_a_restart(&plain, path);
    ck_assert_int_eq(stat(path, &s), 0);
    ck_assert_int_eq(s.st_mode & 0777, 0600);
    over_a_restart(&hybrid, t_printf("%s/b.keep", t_tmpdir()));
}

TEST(keep_refuses_a_file_that_is_not_whole)
{
    static ek_req r[N];
    char *path = t_printf("%s/c.keep", t_tmpdir()), *text;
    br_status st = {0};
    size_t n;
    ek k;

    open_tenants(&k, &plain, path, 1);
    (void)ask_all(&k, r, 0);
    ek_close(&k);
    text = t_read(path, &n);
    for (size_t cut = 0; cut < n; cut += n / 9) {
        t_ok(br_file_write(path, text, cut, &st), &st);
        open_tenants(&k, &plain, path, 1);
        ck_assert_uint_eq(ask_all(&k, r, 0), 0);
        ek_close(&k);
    }
    text[n / 2] ^= 1;
    t_ok(br_file_write(path, text, n, &st), &st);
    open_tenants(&k, &plain, path, 1);
    ck_assert_uint_eq(ask_all(&k, r, 0), 0);
    ek_close(&k);
}

/* A link to a file that is not there yet: that file, for its owner alone. */
TEST(keep_by_a_link_is_private)
{
    static ek_req r[N];
    char *path = t_printf("%s/l.keep", t_tmpdir());
    char *real = t_printf("%s/elsewhere", t_tmpdir());
    struct stat s;
    ek k;

    ck_assert_int_eq(symlink(real, path), 0);
    open_tenants(&k, &plain, path, 1);
    (void)ask_all(&k, r, 0);
    ek_close(&k);
    ck_assert_int_eq(lstat(path, &s), 0);
    ck_assert(S_ISLNK(s.st_mode));
    ck_assert_int_eq(stat(real, &s), 0);
    ck_assert_int_eq(s.st_mode & 0777, 0600);
    ck_assert_int_gt(s.st_size, 100);
}

/* What finds no room on the disk leaves the old file, and no empty one. */
TEST(keep_that_fails_leaves_what_was_there)
{
    static ek_req r[N];
    char *path = t_printf("%s/f.keep", t_tmpdir()), *was = NULL, *is;
    struct rlimit full = {.rlim_cur = 100}, all;
    size_t n = 0, m = 0;
    ek k;

    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &all), 0);
    full.rlim_max = all.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    for (int there = 0; there < 2; there++) {
        open_tenants(&k, &plain, path, 1);
        (void)ask_all(&k, r, 0);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &full), 0);
        ek_close(&k);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &all), 0);
        if (!there) {
            ck_assert_int_ne(access(path, F_OK), 0);
            open_tenants(&k, &plain, path, 1);
            (void)ask_all(&k, r, 0);
            ek_close(&k);
            was = t_read(path, &n);
        } else {
            is = t_read(path, &m);
            ck_assert_uint_eq(m, n);
            ck_assert_mem_eq(is, was, n);
        }
    }
}

/* ---- a model's bits ------------------------------------------------------ */

typedef struct demo {
    br_model *m;
    br_tok *tok;
    br_lm_model *lm;
    ek k;
} demo;

static void
open_demo(demo *d, const char *path)
{
    br_lm_config c = {.n_ctx = 256, .n_slots = 2};
    br_status st = {0};

    *d = (demo){0};
    t_ok(br_model_open(&d->m, t_repo("models/demo.gguf"), &st), &st);
    t_ok(br_tok_open(&d->tok, t_repo("models/demo.gguf"), NULL, &st), &st);
    t_ok(br_lm_model_open(&d->lm, d->m, &c, &st), &st);
    d->k.c = (br_engine_config){
        .lm = br_lm_model_lm(d->lm), .tok = d->tok, .keep = path};
    t_ok(br_engine_new(&d->k.e, &d->k.c, &st), &st);
}

static void
close_demo(demo *d)
{
    br_engine_free(d->k.e);
    br_lm_model_close(d->lm);
    br_tok_free(d->tok);
    br_model_close(d->m);
}

/* From some token after the 50 that are waited for on the engine is so slow that who
 * stops it has twelve seconds for that: a fast machine has all tokens before. It
 * may not wait for who stops it, who waits for it. */
static bool
slow_from_60(void *ctx, float *logits, int32_t n_vocab)
{
    int *rows = ctx;

    (void)logits, (void)n_vocab;
    if (++*rows > 60)
        br_sleep_ns(200000000);
    return true;
}

static void
ask_demo(demo *d, ek_req *r, bool whole)
{
    ek_req *all[] = {r};
    static int rows;
    br_request_desc q;

    *r = (ek_req){0};
    rows = 0;
    ek_prompt(r, 50, 3);
    q = ek_desc(r, 120);
    q.sample = br_sample_defaults();
    q.sample.seed = 11;
    q.digest = true;
    if (!whole)
        q.hook = (br_logit_hook){.mask = slow_from_60, .ctx = &rows};
    ek_submit(&d->k, r, &q);
    while (!whole && r->n_out < 50)
        (void)br_engine_drain(d->k.e, 1);
    if (whole)
        ek_await(&d->k, all, 1);
}

TEST_WITHIN(keep_goes_on_with_the_same_bits, 60)
{
    static ek_req alone, broken, again;
    char *path = t_printf("%s/d.keep", t_tmpdir());
    ek_req *all[] = {&broken};
    demo d;

    open_demo(&d, NULL);
    ask_demo(&d, &alone, true);
    close_demo(&d);
    open_demo(&d, path);
    ask_demo(&d, &broken, false); /* the server is stopped in the middle */
    br_engine_stop(d.k.e, 0);
    ek_await(&d.k, all, 1);
    ck_assert_str_eq(br_finish_name(broken.usage.finish), "shutdown");
    close_demo(&d);
    open_demo(&d, path);
    ask_demo(&d, &again, true);
    ck_assert_uint_eq(again.usage.n_cached, 48);
    ck_assert_uint_eq(again.n_out, alone.n_out);
    ck_assert_mem_eq(again.out, alone.out, alone.n_out * sizeof *alone.out);
    ck_assert(again.usage.digest == alone.usage.digest);
    ck_assert_mem_eq(broken.out, alone.out, broken.n_out * sizeof *alone.out);
    close_demo(&d);
}

/* ---- no memory ----------------------------------------------------------- */

static br_code
load_kept(void *arg, br_status *st)
{
    const br_lm *lm = br_lm_fake_lm(arg);
    br_kv_config kc = {.n_slots = 1, .max_tokens = 64, .n_pages = {40}};
    br_prefix_config pc = {.n_blocks = 40, .n_scopes = 4};
    br_keeper k = {.lm = lm, .max_blocks = 40, .identity = {1}};
    br_code code = br_kv_new(&k.kv, lm->plan, &kc, st);

    if (code == BR_OK)
        code = br_prefix_new(&k.prefix, k.kv, lm->plan, &pc, st);
    if (code == BR_OK)
        code = br_keep_load(&k, t_printf("%s/e.keep", t_tmpdir()), st);
    br_prefix_free(k.prefix);
    br_kv_free(k.kv);
    return code;
}

TEST(keep_says_when_memory_runs_out)
{
    static ek_req r[N];
    br_lm_fake_config fc = plain;
    br_lm_fake *fake;
    br_status st = {0};
    ek k;

    open_tenants(&k, &plain, t_printf("%s/e.keep", t_tmpdir()), 1);
    (void)ask_all(&k, r, 0);
    fc.n_vocab = br_tok_count(k.tok);
    ek_close(&k);
    t_ok(br_lm_fake_open(&fake, &fc, &st), &st);
    t_each_oom(load_kept, fake);
    br_lm_fake_close(fake);
}
