/* test_tuned.c - the database of tuned values: what is written is found, what is
 * damaged costs nothing but a line of warning, and who opens a model gets them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/log.h"
#include "run/tuned.h"
#include "shape_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t.h"

static uint32_t n_warned;
static char warned[BR_LOG_TEXT];

static void
put_warning(void *ctx, const br_log_record *r)
{
    (void)ctx;
    if (r->event != BR_EV_tuned_ignored)
        return;
    n_warned++;
    snprintf(warned, sizeof warned, "%s", r->text);
}

static const br_log_sink sink = {.put = put_warning, .level = BR_LOG_WARN};

static br_tuned_key
some_key(const char *model)
{
    br_tuned_key k = {.processor = "A Processor, family 1 model 2",
                      .isa = "avx512",
                      .processors = 4,
                      .threads = 0,
                      .shape = "llama 2 x 64, Q8_0"};

    snprintf(k.model, sizeof k.model, "%s", model);
    return k;
}

static void
put(const char *path, const br_tuned_key *k, br_cpu_knob knob, uint32_t value)
{
    br_cpu_tune t, def;
    br_status st = {0};

    br_cpu_tune_default(&def, 4);
    t = def;
    t.at[knob] = value;
    t_ok(br_tuned_put(path, k, &t, &def, "2026-11-29T18:00:00Z", &st), &st);
}

static int
find(const char *path, const br_tuned_key *k, br_cpu_tune *t)
{
    br_cpu_tune_default(t, 4);
    return br_tuned_find(path, k, 4, t);
}

TEST(tuned_values_are_found_by_their_key)
{
    const char *path = t_printf("%s/tuned.json", t_tmpdir());
    br_tuned_key a = some_key("aa"), b = some_key("bb"), other;
    br_cpu_tune t, def;

    br_cpu_tune_default(&def, 4);
    ck_assert_int_eq(find(path, &a, &t), -1); /* no file: nothing to say */
    ck_assert_int_eq(find(NULL, &a, &t), -1);
    put(path, &a, BR_CPU_KNOB_looks, 1000);
    put(path, &b, BR_CPU_KNOB_threads, 2);
    ck_assert_int_eq(find(path, &a, &t), 1);
    ck_assert_uint_eq(t.at[BR_CPU_KNOB_looks], 1000);
    ck_assert_uint_eq(t.at[BR_CPU_KNOB_threads], 4);
    ck_assert_int_eq(find(path, &b, &t), 1);
    ck_assert_uint_eq(t.at[BR_CPU_KNOB_threads], 2);
    /* another one in its place; none but the defaults */
    put(path, &a, BR_CPU_KNOB_share, 8);
    ck_assert_int_eq(find(path, &a, &t), 1);
    ck_assert_uint_eq(t.at[BR_CPU_KNOB_looks], 4000);
    ck_assert_uint_eq(t.at[BR_CPU_KNOB_share], 8);
    put(path, &a, BR_CPU_KNOB_share, def.at[BR_CPU_KNOB_share]);
    ck_assert_int_eq(find(path, &a, &t), 0);
    ck_assert_mem_eq(&t, &def, sizeof t);
    /* every part of a key counts */
    other = b;
    other.processor[0] = 'B';
    ck_assert_int_eq(find(path, &other, &t), -1);
    other = b;
    other.isa = "avx2";
    ck_assert_int_eq(find(path, &other, &t), -1);
    other = b;
    other.processors = 5;
    ck_assert_int_eq(find(path, &other, &t), -1);
    other = b;
    other.threads = 2;
    ck_assert_int_eq(find(path, &other, &t), -1);
    other = b;
    other.shape[0] = 'X'; /* but for what is for people */
    ck_assert_int_eq(find(path, &other, &t), 1);
}

TEST(tuned_entries_have_a_limit)
{
    const char *path = t_printf("%s/tuned.json", t_tmpdir());
    br_str doc = {0};
    br_tuned_key k;
    br_cpu_tune t;

    br_str_puts(&doc, "{\"brass_tuned\": 1, \"entries\": [");
    for (int i = 0; i < BR_TUNED_MAX_ENTRIES; i++)
        br_str_printf(&doc,
                      "%s{\"processor\": \"A Processor, family 1 model 2\", "
                      "\"isa\": \"avx512\", \"processors\": 4, \"threads\": 0, "
                      "\"model\": \"m%d\", \"values\": {\"looks\": 1}}",
                      i ? ", " : "", i);
    br_str_puts(&doc, "]}");
    t_write(path, doc.at, doc.n);
    br_str_fini(&doc);
    k = some_key("m0");
    ck_assert_int_eq(find(path, &k, &t), 1);
    k = some_key("new");
    put(path, &k, BR_CPU_KNOB_looks, 1000);
    ck_assert_int_eq(find(path, &k, &t), 1);
    k = some_key("m0");
    ck_assert_int_eq(find(path, &k, &t), -1);
    k = some_key("m1");
    ck_assert_int_eq(find(path, &k, &t), 1);
}

#define ENTRY                                                            \
    "{\"processor\": \"A Processor, family 1 model 2\", \"isa\": "       \
    "\"avx512\", \"processors\": 4, \"threads\": 0, \"model\": \"aa\", " \
    "\"values\": "
#define DOC(values) "{\"brass_tuned\": 1, \"entries\": [" ENTRY values "}]}"

/* What is not understood is left out, with one line; the rest holds. */
TEST(tuned_values_that_make_no_sense_are_left_out)
{
    static const struct {
        const char *text;
        int n;
        uint32_t warnings, looks;
    } rows[] = {
        {DOC("{}"), 0, 0, 4000},
        {DOC("{\"looks\": 1000}"), 1, 0, 1000},
        {DOC("{\"looks\": 999}"), 0, 1, 4000},
        {DOC("{\"looks\": -1000}"), 0, 1, 4000},
        {DOC("{\"looks\": 1000.0}"), 0, 1, 4000},
        {DOC("{\"looks\": \"1000\"}"), 0, 1, 4000},
        {DOC("{\"looks\": 99999999999999999999999}"), 0, 1, 4000},
        {DOC("{\"looks\": 4294968296}"), 0, 1, 4000}, /* 2^32 + 1000 */
        {DOC("{\"looks\": null, \"x\": 1, \"y\": []}"), 0, 1, 4000},
        {DOC("{\"looks\": 1000, \"knob\": 7}"), 1, 1, 1000},
        {DOC("{\"looks\\u0000\": 1000}"), 0, 1, 4000},
        {DOC("{\"threads\": 0}"), 0, 1, 4000},
        {DOC("{\"threads\": 5}"), 0, 1, 4000},
        {DOC("{\"threads\": 3, \"looks\": 1}"), 2, 0, 1},
        {DOC("7"), -1, 0, 4000},
        {DOC("[1000]"), -1, 0, 4000},
        {"", -1, 1, 4000},
        {"{", -1, 1, 4000},
        {"[]", -1, 1, 4000},
        {"{}", -1, 1, 4000},
        {"\xff\xfe", -1, 1, 4000},
        {"{\"brass_tuned\": 2, \"entries\": []}", -1, 1, 4000},
        {"{\"brass_tuned\": \"1\", \"entries\": []}", -1, 1, 4000},
        {"{\"brass_tuned\": 1}", -1, 1, 4000},
        {"{\"brass_tuned\": 1, \"entries\": {}}", -1, 1, 4000},
        {"{\"brass_tuned\": 1, \"entries\": [7, null, [], {}]}", -1, 0, 4000},
        {"{\"brass_tuned\": 1, \"entries\": [7, " ENTRY "{\"looks\": 20000}}]}",
         1, 0, 20000},
    };
    const char *path = t_printf("%s/tuned.json", t_tmpdir());
    br_tuned_key k = some_key("aa");
    br_cpu_tune t;

    br_log_install(&sink);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        n_warned = 0;
        t_write(path, rows[i].text, strlen(rows[i].text));
        ck_assert_msg(find(path, &k, &t) == rows[i].n, "row %zu", i);
        ck_assert_msg(n_warned == rows[i].warnings, "row %zu: %u warnings", i,
                      n_warned);
        ck_assert_msg(t.at[BR_CPU_KNOB_looks] == rows[i].looks, "row %zu: %u",
                      i, t.at[BR_CPU_KNOB_looks]);
        if (n_warned)
            ck_assert_ptr_nonnull(strstr(warned, "tuned.json"));
    }
    br_log_install(NULL);
}

/* Cut at any byte, with any byte changed: never more than a warning. */
TEST(tuned_file_may_be_damaged_anywhere)
{
    const char *path = t_printf("%s/tuned.json", t_tmpdir());
    br_tuned_key k = some_key("aa");
    br_cpu_tune t, def;
    uint64_t seed = 1;
    char *text;
    size_t n;

    br_cpu_tune_default(&def, 4);
    put(path, &k, BR_CPU_KNOB_looks, 1000);
    text = t_read(path, &n);
    for (size_t i = 0; i < n; i++) {
        char was = text[i];

        t_write(path, text, i);
        ck_assert_int_le(find(path, &k, &t), 1);
        text[i] = (char)t_rand(&seed);
        t_write(path, text, n);
        ck_assert_int_le(find(path, &k, &t), 1);
        text[i] = was;
        for (br_cpu_knob b = 0; b < BR_CPU_KNOBS; b++)
            if (!br_cpu_knob_takes(b, 4, t.at[b]))
                ck_abort_msg("byte %zu: %s", i, br_cpu_knob_name(b));
    }
}

/* What is no database is not written over: it may be somebody's. */
TEST(tuned_put_leaves_what_it_does_not_know)
{
    static const char *const texts[] = {"hello", "{\"brass_tuned\": 2}", ""};
    const char *path = t_printf("%s/tuned.json", t_tmpdir());
    br_tuned_key k = some_key("aa");
    br_cpu_tune def;

    br_cpu_tune_default(&def, 4);
    for (size_t i = 0; i < BR_COUNT(texts); i++) {
        br_status st = {0};

        t_write(path, texts[i], strlen(texts[i]));
        ck_assert_int_ne(br_tuned_put(path, &k, &def, &def, "now", &st), BR_OK);
        ck_assert_ptr_nonnull(strstr(st.msg, path));
        ck_assert_ptr_nonnull(strstr(st.msg, "remove it"));
        ck_assert_str_eq(t_read(path, NULL), texts[i]);
    }
}

static br_code
put_again(void *arg, br_status *st)
{
    br_tuned_key k = some_key("bb");
    br_cpu_tune def;

    br_cpu_tune_default(&def, 4);
    return br_tuned_put(arg, &k, &def, &def, "now", st);
}

TEST(tuned_put_without_memory_leaves_the_file)
{
    char *path = t_printf("%s/tuned.json", t_tmpdir());
    br_tuned_key k = some_key("aa");
    br_cpu_tune t;

    put(path, &k, BR_CPU_KNOB_looks, 1000);
    t_each_oom(put_again, path);
    ck_assert_int_eq(find(path, &k, &t), 1);
}

/* ---- who reads it -------------------------------------------------------- */

/* The entry of a shape for this machine. */
static void
put_here(const char *dir, const char *spec, uint32_t threads, br_cpu_knob knob,
         uint32_t value)
{
    char *path = t_printf("%s/tuned.json", dir);
    shaped on = open_shape_file(spec);
    br_tuned_key k;

    br_tuned_key_of(&k, on.m, br_isa_best(), threads);
    put(path, &k, knob, value);
    close_shape(&on);
}

TEST_WITHIN(a_model_is_opened_with_its_tuned_values, 60)
{
    const char *dir = t_tmpdir(), *spec = "shape:llama-256:Q8_0";
    br_lm_config c = {.threads = 2, .cache = dir, .cache_bytes = 0};
    shaped on;

    put_here(dir, spec, 2, BR_CPU_KNOB_chunk, 128);
    on = open_shape(spec, &c);
    ck_assert_uint_eq(on.lm->chunk, 128);
    close_shape(&on);
    c.n_slots = 200; /* a step has a row for each */
    on = open_shape(spec, &c);
    ck_assert_uint_eq(on.lm->chunk, 200);
    close_shape(&on);
    c.n_slots = 0;
    on = open_shape("shape:llama-256:BF16", &c); /* another format */
    ck_assert_uint_eq(on.lm->chunk, 512);
    close_shape(&on);
    c.threads = 3; /* other threads */
    on = open_shape(spec, &c);
    ck_assert_uint_eq(on.lm->chunk, 512);
    close_shape(&on);
    c.threads = 2;
    c.untuned = true;
    on = open_shape(spec, &c);
    ck_assert_uint_eq(on.lm->chunk, 512);
    close_shape(&on);
    t_write(t_printf("%s/tuned.json", dir), "[", 1);
    c.untuned = false;
    on = open_shape(spec, &c);
    ck_assert_uint_eq(on.lm->chunk, 512);
    close_shape(&on);
}

static const br_json *
bench(br_arena *a, const char *flag, const char **err)
{
    br_status st = {0};
    br_json *doc;
    t_proc r;

    t_run(&r, "bench", t_repo("models/demo.gguf"), "-p", "0", "-n", "2", "-r",
          "1", "-t", "2", "--json", flag);
    ck_assert_msg(r.exit == 0, "%s", r.err);
    *err = r.err;
    t_ok(br_json_parse(&doc, a, r.out, r.n_out, 0, &st), &st);
    return br_json_get(doc, "tuned");
}

TEST_WITHIN(bench_says_when_values_are_tuned, 120)
{
    const char *dir = t_tmpdir(), *err;
    char *path = t_printf("%s/brass/tuned.json", dir);
    const br_json *tuned;
    br_tuned_key k;
    br_status st = {0};
    br_str folder = {0};
    br_model *m;
    br_arena a;
    t_proc r;

    setenv("XDG_CACHE_HOME", dir, 1);
    br_str_printf(&folder, "%s/brass", dir);
    br_folder_make(&folder);
    br_str_fini(&folder);
    t_ok(br_model_open(&m, t_repo("models/demo.gguf"), &st), &st);
    br_tuned_key_of(&k, m, br_isa_best(), 2);
    br_model_close(m);
    br_arena_init(&a, 0);
    ck_assert_ptr_null(bench(&a, "--tuned", &err));
    put(path, &k, BR_CPU_KNOB_looks, 1000);
    tuned = bench(&a, "--tuned", &err);
    ck_assert_ptr_nonnull(tuned);
    ck_assert_uint_eq(tuned->n, 1);
    ck_assert_int_eq(br_json_get(tuned, "looks")->i, 1000);
    ck_assert_str_eq(err, "");
    ck_assert_ptr_null(bench(&a, "--no-tuned", &err));
    t_run(&r, "bench", t_repo("models/demo.gguf"), "-p", "0", "-n", "2", "-r",
          "1", "-t", "2");
    ck_assert_ptr_nonnull(strstr(r.out, "tuned: looks 1000 (4000 untuned)\n"));
    t_write(path, "{\"brass", 7);
    ck_assert_ptr_null(bench(&a, "--tuned", &err));
    ck_assert_ptr_nonnull(strstr(err, "tuned_ignored"));
    ck_assert_ptr_eq(strchr(err, '\n') + 1, err + strlen(err));
    setenv("BRASS_TUNED", "no", 1);
    ck_assert_ptr_null(bench(&a, "--json", &err));
    ck_assert_str_eq(err, "");
    br_arena_fini(&a);
}
