/* bench_json.c - speed of the JSON reader, tree, writer and number texts.
 *
 *   bench_json [file.json]      without a file: a made-up program of 12,000
 *                               tasks at indent 2, about 6.5 MB
 *
 * Prints the best of REPEATS runs: on a shared machine the fastest run is the
 * one least disturbed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "kit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { REPEATS = 20, TASKS = 12000, DOUBLES = 100000 };

/* ---- the text --------------------------------------------------------- */

static void
ints(br_json_writer *w, const char *key, int n, int64_t first)
{
    int i;

    br_json_w_key(w, key);
    br_json_w_arr(w);
    for (i = 0; i < n; i++)
        br_json_w_i64(w, first + i);
    br_json_w_arr_end(w);
}

static void
pair(br_json_writer *w, const char *key, int64_t v)
{
    br_json_w_key(w, key);
    br_json_w_i64(w, v);
}

static void
task(br_json_writer *w, int i)
{
    char label[48];
    int j;

    br_json_w_obj(w);
    pair(w, "id", i);
    br_json_w_key(w, "op");
    br_json_w_strz(w, i % 13 ? "GEMV_TILE" : "RMSNORM");
    ints(w, "inputs", 2 + i % 2, i / 3);
    ints(w, "outputs", 1, i / 3 + 2);
    pair(w, "out_counter", i / 32);
    br_json_w_key(w, "waits");
    br_json_w_arr(w);
    for (j = 0; j < 1 + i % 3 / 2; j++) {
        br_json_w_obj(w);
        pair(w, "counter", i / 32 + j);
        pair(w, "threshold", 32);
        br_json_w_obj_end(w);
    }
    br_json_w_arr_end(w);
    br_json_w_key(w, "params");
    br_json_w_obj(w);
    if (i % 13 == 0) {
        br_json_w_key(w, "eps");
        br_json_w_f64(w, 1e-5);
    }
    pair(w, "K", 2048);
    pair(w, "N_tile", 32);
    pair(w, "n_off", i % 64 * 32);
    br_json_w_obj_end(w);
    br_json_w_key(w, "sm");
    br_json_w_null(w);
    pair(w, "est_bytes", 131072);
    pair(w, "est_flops", 131072);
    br_json_w_key(w, "label");
    snprintf(label, sizeof label, "L%d.q_proj[t%d]", i / 352, i % 64);
    br_json_w_strz(w, label);
    br_json_w_obj_end(w);
}

static void
make_text(br_str *s)
{
    br_json_writer w;
    int i;

    br_json_w_begin(&w, s, 2);
    br_json_w_obj(&w);
    br_json_w_key(&w, "ir_version");
    br_json_w_strz(&w, "0.2.0");
    br_json_w_key(&w, "tasks");
    br_json_w_arr(&w);
    for (i = 0; i < TASKS; i++)
        task(&w, i);
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
}

/* ---- what is measured ------------------------------------------------- */

static uint64_t sink; /* keeps the work from being optimised away */

static void
pull(const char *p, size_t n, bool numbers)
{
    br_status st = {0};
    br_json_reader r;
    br_json_tok tok;
    int64_t v;

    br_json_open(&r, p, n, BR_JSON_LAX, &st);
    while ((tok = br_json_next(&r)) > BR_JSON_END) {
        sink += tok;
        if (numbers && tok == BR_JSON_INT && br_json_to_i64(r.text, &v))
            sink += (uint64_t)v;
    }
    br_json_close(&r);
    if (tok == BR_JSON_ERROR)
        must(st.code, &st);
}

static void
run_pull(const char *p, size_t n, br_str *out)
{
    (void)out;
    pull(p, n, false);
}

static void
run_pull_ints(const char *p, size_t n, br_str *out)
{
    (void)out;
    pull(p, n, true);
}

static void
run_tree(const char *p, size_t n, br_str *out)
{
    br_status st = {0};
    br_arena a;
    br_json *v;

    (void)out;
    br_arena_init(&a, 0);
    must(br_json_parse(&v, &a, p, n, BR_JSON_LAX, &st), &st);
    sink += v->n;
    br_arena_fini(&a);
}

static void
run_tree_write(const char *p, size_t n, br_str *out)
{
    br_status st = {0};
    br_json_writer w;
    br_arena a;
    br_json *v;

    br_arena_init(&a, 0);
    must(br_json_parse(&v, &a, p, n, BR_JSON_LAX, &st), &st);
    br_str_clear(out);
    br_json_w_begin(&w, out, 2);
    br_json_w_tree(&w, v);
    sink += out->n;
    br_arena_fini(&a);
}

static void
measure(const char *name, void (*fn)(const char *, size_t, br_str *),
        const char *p, size_t n)
{
    br_str out = {0};
    double best = 1e9, t;
    int i;

    for (i = 0; i < REPEATS; i++) {
        t = kit_ms();
        fn(p, n, &out);
        t = kit_ms() - t;
        best = BR_MIN(best, t);
    }
    printf("%-22s %8.2f ms %8.0f MB/s\n", name, best, (double)n / best * 1e-3);
    br_str_fini(&out);
}

/* A number of each kind: short decimals, and random bits (17 digits). */
static double
sample(int i, bool random)
{
    static uint64_t x = 1;
    union {
        uint64_t u;
        double f;
    } v;

    if (!random)
        return (double)(i % 1000) / 8 + 0.1;
    do {
        x = x * 6364136223846793005u + 1442695040888963407u;
        v.u = x;
    } while ((v.u >> 52 & 0x7FF) == 0x7FF);
    return v.f;
}

static void
measure_numbers(const char *name, bool random)
{
    static char text[DOUBLES][32];
    static size_t len[DOUBLES];
    static double in[DOUBLES];
    double best_w = 1e9, best_r = 1e9, t, v;
    int i, k;

    for (i = 0; i < DOUBLES; i++)
        in[i] = sample(i, random);
    for (k = 0; k < 5; k++) {
        t = kit_ms();
        for (i = 0; i < DOUBLES; i++)
            len[i] = br_f64_repr(text[i], in[i]);
        t = kit_ms() - t;
        best_w = BR_MIN(best_w, t);
        t = kit_ms();
        for (i = 0; i < DOUBLES; i++) {
            if (!br_json_to_f64((br_text){text[i], len[i]}, &v) || v != in[i])
                abort(); /* a number without its check is worth nothing */
        }
        t = kit_ms() - t;
        best_r = BR_MIN(best_r, t);
    }
    printf("%-22s %8.1f ns to text %8.1f ns to double\n", name,
           best_w / DOUBLES * 1e6, best_r / DOUBLES * 1e6);
}

int
main(int argc, char **argv)
{
    br_status st = {0};
    br_str s = {0};
    char *p = NULL;
    size_t n;

    if (argc > 1) {
        must(br_file_read(argv[1], (size_t)1 << 32, &p, &n, &st), &st);
    } else {
        make_text(&s);
        p = s.at;
        n = s.n;
    }
    printf("%-22s %8.2f MB\n", "text", (double)n * 1e-6);
    measure("pull", run_pull, p, n);
    measure("pull, integers read", run_pull_ints, p, n);
    measure("tree", run_tree, p, n);
    measure("tree and write", run_tree_write, p, n);
    measure_numbers("short decimals", false);
    measure_numbers("random doubles", true);
    if (argc > 1)
        br_free(p);
    br_str_fini(&s);
    return sink == 0;
}
