/* test_mega_load.c - programs from JSON and back.
 *
 * tests/data/amk holds a few programs written by the reference; the shared
 * vectors hold many more, with the digest of what it writes for each.
 * SPDX-License-Identifier: Apache-2.0 */
#include "prog_text.h"

#include "mega/load.h"

#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

/* ---- helpers ------------------------------------------------------------ */

static br_mega_prog *
load(const char *text, size_t n)
{
    br_status st = {0};
    br_mega_prog *p;

    t_ok(br_mega_load(&p, text, n, &st), &st);
    return p;
}

/* Loads, saves and frees; the text lives as long as the test. */
static br_text
canon(const char *text, size_t n)
{
    br_status st = {0};
    br_str out = {0};
    br_mega_prog *p = load(text, n);
    char *z;

    t_ok(br_mega_save(p, &out, &st), &st);
    br_mega_free(p);
    z = t_printf("%s", "");
    if (out.n) {
        z = t_keep(malloc(out.n + 1));
        memcpy(z, out.at, out.n + 1);
    }
    n = out.n;
    br_str_fini(&out);
    return (br_text){z, n};
}

static void
expect_text(const char *what, br_text got, const char *want, size_t n)
{
    size_t i = 0;

    while (i < got.n && i < n && got.p[i] == want[i])
        i++;
    if (got.n != n || i < n)
        ck_abort_msg("%s: differs at byte %zu: ...%.60s... not ...%.60s...",
                     what, i, got.p + i, want + i);
}

/* Every file of dir must be its own canonical form. Returns how many. */
static int
round_trip_all(const char *dir)
{
    char **names = t_ls(dir, ".json");
    int n = 0;

    for (; names[n]; n++) {
        size_t size;
        char *text = t_read(t_printf("%s/%s", dir, names[n]), &size);

        expect_text(names[n], canon(text, size), text, size);
    }
    return n;
}

static int
canonical_all(const char *dir)
{
    char **names = t_ls(dir, ".in.json");
    int n = 0;

    for (; names[n]; n++) {
        int stem = (int)(strlen(names[n]) - strlen(".in.json"));
        size_t n_in, n_out;
        char *in = t_read(t_printf("%s/%s", dir, names[n]), &n_in);
        char *out =
            t_read(t_printf("%s/%.*s.out.json", dir, stem, names[n]), &n_out);

        expect_text(names[n], canon(in, n_in), out, n_out);
        expect_text(names[n], canon(out, n_out), out, n_out);
    }
    return n;
}

/* The error that loading this text must give; "" when it loads. */
static const char *
error_of(const char *text, size_t n)
{
    br_status st = {0};
    br_mega_prog *p;

    if (br_mega_load(&p, text, n, &st) == BR_OK) {
        br_mega_free(p);
        return "";
    }
    ck_assert_ptr_null(p);
    ck_assert_int_ne(st.code, BR_OK);
    return t_printf("%s", st.msg);
}

/* ---- files -------------------------------------------------------------- */

TEST(mega_load_keeps_the_bytes_of_written_programs)
{
    const char *dir = t_vectors("amk/valid");

    ck_assert_int_ge(round_trip_all(t_repo("tests/data/amk/valid")), 17);
    ck_assert_int_ge(round_trip_all(t_repo("tests/data/amk/invalid")), 10);
    if (dir)
        ck_assert_int_ge(round_trip_all(dir), 57);
}

TEST(mega_load_makes_programs_canonical)
{
    const char *dir = t_vectors("amk/canonical");

    ck_assert_int_ge(canonical_all(t_repo("tests/data/amk/canonical")), 11);
    if (dir)
        ck_assert_int_ge(canonical_all(dir), 11);
}

TEST(mega_load_file_names_the_file)
{
    br_status st = {0};
    br_mega_prog *p;
    const char *dir = t_tmpdir();
    const char *path = t_printf("%s/x.json", dir);

    t_write(path, "{\"tasks\":[7]}", 13);
    ck_assert_int_eq(br_mega_load_file(&p, path, &st), BR_E_FORMAT);
    ck_assert_str_eq(
        st.msg,
        t_printf("%s: tasks[0]: expected an object, found an integer", path));
    st = (br_status){0};
    ck_assert_int_eq(br_mega_load_file(&p, t_printf("%s/no", dir), &st),
                     BR_E_NOT_FOUND);
    st = (br_status){0};
    t_ok(br_mega_load_file(&p, t_repo("tests/data/amk/valid/v001_nop.json"),
                           &st),
         &st);
    ck_assert_uint_eq(p->n_tasks, 1);
    br_mega_free(p);
}

/* ---- what is in memory -------------------------------------------------- */

static const char whole[] =
    "{\"ir_version\":\"0.2.0\",\"abi_version\":\"0.2\",\"meta\":{\"gpu\":\"x\"}"
    ","
    "\"buffers\":[{\"id\":0,\"name\":\"x\",\"kind\":\"IO_INPUT\","
    "\"dtype\":\"F16\",\"shape\":[2,16],\"space\":\"HBM\",\"source\":null},"
    "{\"id\":1,\"name\":\"w\",\"kind\":\"WEIGHT\",\"dtype\":\"I4\","
    "\"shape\":[3,5],\"space\":\"HBM\",\"source\":\"a.b\"}],"
    "\"counters\":[{\"id\":0},{\"id\":1,\"init\":2,\"note\":\"n\"}],"
    "\"tasks\":[{\"id\":0,\"op\":\"GEMV_TILE\",\"inputs\":[0,1],"
    "\"outputs\":[0],\"out_counter\":1,\"waits\":[{\"counter\":0,"
    "\"threshold\":3}],\"params\":{\"K\":16,\"N_tile\":4,\"n_off\":8,"
    "\"eps\":1e-6,\"mine\":[1]},\"sm\":5,\"est_bytes\":7,\"est_flops\":9,"
    "\"label\":\"t\"},"
    "{\"id\":1,\"op\":\"NOP\",\"inputs\":[],\"outputs\":[],\"out_counter\":0}],"
    "\"pages\":{\"buffer_to_page\":{\"1\":0},\"pages\":[{\"id\":0,"
    "\"space\":\"SMEM\",\"nbytes\":64}]},\"config\":{\"threads_per_block\":64}"
    "}";

TEST(mega_load_fills_the_model)
{
    br_mega_prog *p = load(whole, sizeof whole - 1);
    const br_mega_task *t = p->tasks;
    int64_t i;
    double f;

    ck_assert_uint_eq(p->n_buffers, 2);
    ck_assert_int_eq(p->buffers[0].kind, BR_MBK_IO_INPUT);
    ck_assert_ptr_null(p->buffers[0].source);
    ck_assert_int_eq(p->buffers[1].dtype, BR_MDT_I4);
    ck_assert_str_eq(p->buffers[1].source, "a.b");
    ck_assert_int_eq(p->buffers[0].shape[1], 16);
    ck_assert_uint_eq(p->n_counters, 2);
    ck_assert_int_eq(p->counters[1].init, 2);
    ck_assert_str_eq(p->counters[0].note, "");
    ck_assert_uint_eq(p->n_tasks, 2);
    ck_assert_int_eq(t->op, BR_MOP_GEMV_TILE);
    ck_assert_int_eq(t->in[1], 1);
    ck_assert_int_eq(t->waits[0].threshold, 3);
    ck_assert_int_eq(t->sm, 5);
    ck_assert_int_eq(t->est_bytes, 7);
    ck_assert_int_eq(t->est_flops, 9);
    ck_assert_str_eq(t->label, "t");
    ck_assert_uint_eq(t->param_mask, 1u << BR_MP_K | 1u << BR_MP_N_tile |
                                         1u << BR_MP_n_off | 1u << BR_MP_eps);
    ck_assert(br_mega_get_i(t, BR_MP_n_off, &i) && i == 8);
    ck_assert(br_mega_get_f(t, BR_MP_eps, &f) && f == 1e-6);
    ck_assert(!br_mega_get_i(t, BR_MP_hidden, &i));
    ck_assert_int_eq(t[1].sm, BR_MEGA_SM_NONE);
    ck_assert_int_eq(t[1].params->kind, BR_J_OBJ);
    ck_assert_uint_eq(t[1].params->n, 0);
    ck_assert(p->has_pages);
    ck_assert_int_eq(p->binds[0].buffer, 1);
    ck_assert_int_eq(p->pages[0].live_end, -1);
    ck_assert_ptr_null(p->target);
    ck_assert_int_eq(p->config[BR_MC_threads_per_block]->i, 64);
    ck_assert_ptr_null(p->config[BR_MC_tiling]);
    ck_assert_uint_eq(p->n_misfits, 0);
    br_mega_free(p);
}

/* A record must mean the same whichever of the two readers takes it: an
 * unknown parameter sends the task to the slow one. */
TEST(mega_load_readers_agree_on_tags)
{
    static const char text[] =
        "{\"tasks\":[{\"id\":0,\"op\":\"NOP\",\"inputs\":[],\"outputs\":[],"
        "\"out_counter\":0,\"params\":{\"K\":1,\"eps\":0.5,\"recipe\":null}},"
        "{\"id\":1,\"op\":\"NOP\",\"inputs\":[],\"outputs\":[],"
        "\"out_counter\":0,\"params\":{\"K\":1,\"eps\":0.5,\"recipe\":null,"
        "\"own\":0}}]}";
    br_mega_prog *p = load(text, sizeof text - 1);
    const br_json *a = p->tasks[0].params->child;
    const br_json *b = p->tasks[1].params->child;

    ck_assert_uint_eq(p->tasks[0].param_mask, p->tasks[1].param_mask);
    for (int i = 0; i < 3; i++, a = a->next, b = b->next) {
        ck_assert_str_eq(a->key, b->key);
        ck_assert_uint_eq(a->key_n, b->key_n);
        ck_assert_uint_eq(a->tag, b->tag);
        ck_assert_uint_eq(a->kind, b->kind);
    }
    ck_assert_ptr_null(a);
    ck_assert_uint_eq(b->tag, 0);
    ck_assert_uint_eq(p->tasks[0].params->n, 3);
    ck_assert_str_eq(p->tasks[0].params->last->key, "recipe");
    br_mega_free(p);
}

/* A recipe in the bytes of the one before is the same tree; in others it is
 * not, however they begin, and what follows it is read as ever. */
TEST(mega_load_reads_a_recipe_once)
{
#define HAS(id, recipe, more)                                        \
    "{\"id\":" #id ",\"op\":\"FUSED\",\"inputs\":[],\"outputs\":[]," \
    "\"out_counter\":0,\"params\":{\"recipe\":" recipe more "}}"
#define R1 "{\"steps\": [1, {\"a\": 2}]}"
    static const char text[] =
        "{\"tasks\":[" HAS(0, R1, "") "," HAS(1, R1, ",\"K\":7") "," HAS(
            2, "{\"steps\": [1, {\"a\": 3}]}",
            "") "," HAS(3, R1,
                        "") "," HAS(4, R1,
                                    ",\"own\":" R1) "," HAS(5, "{}",
                                                            "") "," HAS(6, "{}",
                                                                        "") "]"
                                                                            "}";
    static const char cut[] = "{\"tasks\":[" HAS(0, R1, "") "," HAS(1, R1, R1);
    br_text got = canon(text, sizeof text - 1), again = canon(got.p, got.n);
    br_mega_prog *p = load(text, sizeof text - 1);
    const br_json *r[7];

    expect_text("recipes", again, got.p, got.n);
    for (int i = 0; i < 7; i++)
        r[i] = p->tasks[i].params->child;
    ck_assert_ptr_eq(r[0]->child, r[1]->child);
    ck_assert_ptr_ne(r[0]->child, r[2]->child);
    ck_assert_str_eq(pt_dump(r[0]), R1);
    ck_assert_str_eq(pt_dump(r[2]), "{\"steps\": [1, {\"a\": 3}]}");
    ck_assert_str_eq(pt_dump(p->tasks[1].params),
                     "{\"recipe\": " R1 ", \"K\": 7}");
    ck_assert_str_eq(pt_dump(p->tasks[4].params),
                     "{\"recipe\": " R1 ", \"own\": " R1 "}");
    ck_assert_str_eq(pt_dump(r[6]), "{}");
    br_mega_free(p);
    ck_assert_str_ne(error_of(cut, sizeof cut - 1), "");
}

/* ---- errors ------------------------------------------------------------- */

#define BUF(rest)  "{\"buffers\":[{" rest "}]}"
#define BUF0       "\"id\":0,\"name\":\"x\","
#define TASK(rest) "{\"tasks\":[{" rest "}]}"
#define TASK0      "\"id\":0,\"op\":\"NOP\","
#define LISTS      "\"inputs\":[],\"outputs\":[],\"out_counter\":0"
#define PAGE(rest) "{\"pages\":{\"buffer_to_page\":{},\"pages\":[{" rest "}]}}"

static const struct {
    const char *text, *error;
} errors[] = {
    /* syntax: line and column */
    {"", "line 1 column 1: expected a value, found the end of the text"},
    {"{\n  \"tasks\": [,]}", "line 2 column 13: expected a value or ']', "
                             "found ','"},
    {"{} {}", "line 1 column 4: expected nothing after the document, "
              "found '{'"},
    {"{\"x\": [1 2]}", "line 1 column 10: expected ',' or ']', found '2'"},
    /* the document */
    {"[]", "task program: expected an object, found an array"},
    {"7", "task program: expected an object, found an integer"},
    /* versions */
    {"{\"ir_version\":\"1.0\"}",
     "ir_version: version '1.0' is not supported; this reads 0.x"},
    {"{\"ir_version\":\"\"}",
     "ir_version: version '' is not supported; this reads 0.x"},
    {"{\"ir_version\":\"00.1\"}",
     "ir_version: version '00.1' is not supported; this reads 0.x"},
    {"{\"abi_version\":2}",
     "abi_version: version 2 is not supported; this reads 0.x"},
    {"{\"abi_version\":-0.0}",
     "abi_version: version '-0.0' is not supported; this reads 0.x"},
    {"{\"abi_version\":null}", "abi_version: expected a version, found null"},
    {"{\"ir_version\":true}",
     "ir_version: expected a version, found true or false"},
    {"{\"ir_version\":99999999999999999999}",
     "ir_version: expected a version, found an integer beyond 64 bits"},
    /* sections */
    {"{\"buffers\":null}", "buffers: expected an array, found null"},
    {"{\"counters\":\"x\"}", "counters: expected an array, found a string"},
    {"{\"tasks\":{\"a\":1}}", "tasks: expected an array, found an object"},
    {"{\"tasks\":[[]]}", "tasks[0]: expected an object, found an array"},
    {"{\"target\":\"h100\"}", "target: expected an object, found a string"},
    {"{\"target\":{\"name\":\"x\"}}", "target: missing 'sm_arch'"},
    {"{\"config\":3}", "config: expected an object, found an integer"},
    {"{\"config\":[3]}", "config[0]: expected a pair, found an integer"},
    {"{\"config\":[[1,2],[1]]}", "config[1]: expected a pair, found 1 values"},
    {"{\"config\":[[[],2]]}", "config[0]: an array cannot be a key"},
    {"{\"config\":{\"sm_assignment\":{\"0x1\":2}}}",
     "config.sm_assignment: key '0x1' is not an integer"},
    /* records */
    {BUF(""), "buffers[0]: missing 'id'"},
    {BUF(BUF0 "\"kind\":\"CONST\""), "buffers[0]: missing 'dtype'"},
    {"{\"counters\":[{\"id\":0},{\"note\":\"\"}]}",
     "counters[1]: missing 'id'"},
    {BUF(BUF0 "\"kind\":\"W\\u0007\",\"dtype\":\"F32\",\"shape\":[],"
              "\"space\":\"HBM\""),
     "buffers[0].kind: no such kind 'W?'"},
    {BUF(BUF0 "\"kind\":\"CONST\",\"dtype\":\"F128\",\"shape\":[],"
              "\"space\":\"HBM\""),
     "buffers[0].dtype: no such dtype 'F128'"},
    {BUF(BUF0 "\"kind\":\"CONST\",\"dtype\":\"F32\",\"shape\":4,"
              "\"space\":\"HBM\""),
     "buffers[0].shape: expected an array, found an integer"},
    {BUF(BUF0 "\"kind\":\"CONST\",\"dtype\":\"F32\",\"shape\":[],"
              "\"space\":null"),
     "buffers[0].space: expected a name, found null"},
    {TASK("\"id\":0,\"op\":\"GEMV_TILES_THAT_HAVE_A_VERY_LONG_NAME\"," LISTS),
     "tasks[0].op: no such op 'GEMV_TILES_THAT_HAVE_A_VERY_LONG...'"},
    {TASK(TASK0 "\"inputs\":0,\"outputs\":[],\"out_counter\":0"),
     "tasks[0].inputs: expected an array, found an integer"},
    {TASK(TASK0 "\"inputs\":[],\"outputs\":null,\"out_counter\":0"),
     "tasks[0].outputs: expected an array, found null"},
    {TASK(TASK0 LISTS ",\"waits\":null"),
     "tasks[0].waits: expected an array, found null"},
    {TASK(TASK0 LISTS ",\"waits\":[{\"counter\":0,\"threshold\":1},{}]"),
     "tasks[0].waits[1]: missing 'counter'"},
    {TASK(TASK0 LISTS ",\"waits\":[{\"counter\":0}]"),
     "tasks[0].waits[0]: missing 'threshold'"},
    {TASK(TASK0 LISTS ",\"waits\":\"w\""),
     "tasks[0].waits[0]: expected an object, found a string"},
    /* pages */
    {"{\"pages\":true}", "pages: expected an object, found true or false"},
    {"{\"pages\":{\"pages\":[]}}", "pages: missing 'buffer_to_page'"},
    {"{\"pages\":{\"buffer_to_page\":[],\"pages\":[]}}",
     "pages.buffer_to_page: expected an object, found an array"},
    {"{\"pages\":{\"buffer_to_page\":{\"1__0\":0},\"pages\":[]}}",
     "pages.buffer_to_page: key '1__0' is not an integer"},
    {"{\"pages\":{\"buffer_to_page\":{},\"pages\":null}}",
     "pages.pages: expected an array, found null"},
    {"{\"pages\":{\"buffer_to_page\":{},\"pages\":[1]}}",
     "pages.pages[0]: expected an object, found an integer"},
    {PAGE("\"id\":0,\"space\":\"HBM\""), "pages.pages[0]: missing 'nbytes'"},
    {PAGE("\"id\":0,\"space\":\"L2\",\"nbytes\":1"),
     "pages.pages[0].space: no such space 'L2'"},
    /* the first section of the file order, and the last of its name */
    {"{\"tasks\":[1],\"buffers\":[2]}",
     "buffers[0]: expected an object, found an integer"},
    {"{\"tasks\":[],\"tasks\":[1]}",
     "tasks[0]: expected an object, found an integer"},
    /* syntax beats sense */
    {"{\"tasks\":[1],]}", "line 1 column 14: expected a key in double quotes "
                          "after ',', found ']'"},
};

TEST(mega_load_errors_name_the_place)
{
    for (size_t i = 0; i < BR_COUNT(errors); i++) {
        const char *got = error_of(errors[i].text, strlen(errors[i].text));

        if (strcmp(got, errors[i].error) != 0)
            ck_abort_msg("%s\n gives %s\n   not %s", errors[i].text, got,
                         errors[i].error);
    }
}

TEST(mega_load_tells_codes_apart)
{
    static const struct {
        const char *text;
        br_code code;
    } rows[] = {
        {"{\"ir_version\":\"1\"}", BR_E_VERSION},
        {"{\"abi_version\":{}}", BR_E_VERSION},
        {"{\"tasks\":0}", BR_E_FORMAT},
        {"{", BR_E_FORMAT},
    };
    br_mega_prog *p;
    char *deep = t_keep(malloc(2000));

    for (size_t i = 0; i < BR_COUNT(rows); i++)
        ck_assert_int_eq(
            br_mega_load(&p, rows[i].text, strlen(rows[i].text), NULL),
            rows[i].code);
    memcpy(deep, "{\"meta\":", 8);
    memset(deep + 8, '[', 1000);
    ck_assert_int_eq(br_mega_load(&p, deep, 1008, NULL), BR_E_LIMIT);
    memcpy(deep, "{\"else\":", 8); /* dropped, but nested all the same */
    ck_assert_int_eq(br_mega_load(&p, deep, 1008, NULL), BR_E_LIMIT);
}

/* ---- misfits ------------------------------------------------------------ */

#define BUFV(id, name, shape, source)                                    \
    "{\"buffers\":[{\"id\":" id ",\"name\":" name ",\"kind\":\"CONST\"," \
    "\"dtype\":\"F32\",\"shape\":" shape                                 \
    ",\"space\":\"HBM\",\"source\":" source "}]}"
#define TASKV(key, value) TASK(TASK0 LISTS ",\"" key "\":" value)

static const struct {
    const char *text;
    struct {
        br_mega_field field;
        uint32_t index, sub;
        br_json_kind kind;
    } want[4]; /* the first with kind 0 (null has 0 too: field != 0) ends it */
    int n;
} misfits[] = {
    {BUFV("true", "7", "[]", "[0]"),
     {{BR_MF_BUF_ID, 0, 0, BR_J_BOOL},
      {BR_MF_BUF_NAME, 0, 0, BR_J_INT},
      {BR_MF_BUF_SOURCE, 0, 0, BR_J_ARR}},
     3},
    {BUFV("9223372036854775808", "null", "[1,2.0,\"3\"]", "null"),
     {{BR_MF_BUF_ID, 0, 0, BR_J_BIGINT},
      {BR_MF_BUF_NAME, 0, 0, BR_J_NULL},
      {BR_MF_BUF_SHAPE, 0, 1, BR_J_FLOAT},
      {BR_MF_BUF_SHAPE, 0, 2, BR_J_STR}},
     4},
    /* lists given as strings and objects are their characters and keys */
    {BUFV("0", "\"\"", "\"1\\u00e9\"", "null"),
     {{BR_MF_BUF_SHAPE, 0, 0, BR_J_STR}, {BR_MF_BUF_SHAPE, 0, 1, BR_J_STR}},
     2},
    {BUFV("0", "\"\"", "{\"a\":1}", "null"),
     {{BR_MF_BUF_SHAPE, 0, 0, BR_J_STR}},
     1},
    {"{\"counters\":[{\"id\":0},{\"id\":null,\"init\":\"\",\"note\":0}]}",
     {{BR_MF_CTR_ID, 1, 0, BR_J_NULL},
      {BR_MF_CTR_INIT, 1, 0, BR_J_STR},
      {BR_MF_CTR_NOTE, 1, 0, BR_J_INT}},
     3},
    {TASKV("params", "null"), {{BR_MF_TASK_PARAMS, 0, 0, BR_J_NULL}}, 1},
    {TASKV("params", "[1]"), {{BR_MF_TASK_PARAMS, 0, 0, BR_J_ARR}}, 1},
    {TASKV("sm", "1.5"), {{BR_MF_TASK_SM, 0, 0, BR_J_FLOAT}}, 1},
    /* the number that stands for null in memory */
    {TASKV("sm", "-9223372036854775808"), {{BR_MF_TASK_SM, 0, 0, BR_J_INT}}, 1},
    {TASKV("est_bytes", "null"), {{BR_MF_TASK_EST_BYTES, 0, 0, BR_J_NULL}}, 1},
    {TASKV("est_flops", "1e3"), {{BR_MF_TASK_EST_FLOPS, 0, 0, BR_J_FLOAT}}, 1},
    {TASKV("label", "5"), {{BR_MF_TASK_LABEL, 0, 0, BR_J_INT}}, 1},
    {TASKV("waits", "[{\"counter\":0,\"threshold\":1},"
                    "{\"counter\":\"0\",\"threshold\":1.0}]"),
     {{BR_MF_TASK_WAIT_CTR, 0, 1, BR_J_STR},
      {BR_MF_TASK_WAIT_THR, 0, 1, BR_J_FLOAT}},
     2},
    {TASK("\"id\":\"0\",\"op\":\"NOP\",\"inputs\":[[0]],\"outputs\":\"4\","
          "\"out_counter\":null"),
     {{BR_MF_TASK_ID, 0, 0, BR_J_STR},
      {BR_MF_TASK_IN, 0, 0, BR_J_ARR},
      {BR_MF_TASK_OUT, 0, 0, BR_J_STR},
      {BR_MF_TASK_OUT_COUNTER, 0, 0, BR_J_NULL}},
     4},
    {PAGE("\"id\":{},\"space\":\"HBM\",\"nbytes\":1.0,\"live_start\":null,"
          "\"live_end\":\"\""),
     {{BR_MF_PAGE_ID, 0, 0, BR_J_OBJ},
      {BR_MF_PAGE_NBYTES, 0, 0, BR_J_FLOAT},
      {BR_MF_PAGE_START, 0, 0, BR_J_NULL},
      {BR_MF_PAGE_END, 0, 0, BR_J_STR}},
     4},
    {"{\"pages\":{\"buffer_to_page\":{\"1\":0,\"18446744073709551616\":null},"
     "\"pages\":[]}}",
     {{BR_MF_BIND_BUFFER, 1, 0, BR_J_BIGINT}, {BR_MF_BIND_PAGE, 1, 0, 0}},
     2},
};

TEST(mega_load_keeps_misfits)
{
    for (size_t i = 0; i < BR_COUNT(misfits); i++) {
        const char *text = misfits[i].text;
        br_mega_prog *p = load(text, strlen(text));
        br_text once = canon(text, strlen(text));

        ck_assert_msg((int)p->n_misfits == misfits[i].n, "%s: %zu misfits",
                      text, p->n_misfits);
        for (int k = 0; k < misfits[i].n; k++) {
            const br_mega_misfit *m = &p->misfits[k];

            ck_assert_int_eq(m->field, misfits[i].want[k].field);
            ck_assert_uint_eq(m->index, misfits[i].want[k].index);
            ck_assert_uint_eq(m->sub, misfits[i].want[k].sub);
            ck_assert_int_eq(m->value->kind, misfits[i].want[k].kind);
        }
        expect_text(text, canon(once.p, once.n), once.p, once.n);
        br_mega_free(p);
    }
}

TEST(mega_load_writes_misfits_where_they_were)
{
    static const char text[] =
        TASK("\"id\":\"0\",\"op\":\"NOP\",\"inputs\":[1,null],\"outputs\":[],"
             "\"out_counter\":-0,\"params\":[],\"sm\":-9223372036854775808");
    br_text t = canon(text, sizeof text - 1);

    ck_assert_ptr_nonnull(
        strstr(t.p, "      \"id\": \"0\",\n      \"op\": \"NOP\",\n"
                    "      \"inputs\": [\n        1,\n        null\n"
                    "      ],\n      \"outputs\": [],\n"
                    "      \"out_counter\": 0,\n      \"waits\": [],\n"
                    "      \"params\": [],\n"
                    "      \"sm\": -9223372036854775808,\n"));
}

/* ---- twice, and otherwise said ------------------------------------------ */

static const struct {
    const char *a, *b; /* two texts of one program */
} same[] = {
    /* duplicate keys: the last counts, whatever the first was */
    {"{\"tasks\":[1],\"tasks\":[]}", "{}"},
    {"{\"buffers\":null,\"buffers\":[]}", "{}"},
    {"{\"ir_version\":\"9\",\"ir_version\":\"0.2.0\"}", "{}"},
    {"{\"counters\":[{\"id\":1.5}],\"counters\":[{\"id\":1}]}",
     "{\"counters\":[{\"id\":1}]}"},
    {"{\"counters\":[{\"id\":[],\"id\":3}]}", "{\"counters\":[{\"id\":3}]}"},
    {BUF(BUF0 "\"kind\":\"CONST\",\"dtype\":\"F32\",\"shape\":[],"
              "\"space\":\"HBM\",\"source\":\"a\",\"source\":null"),
     BUF(BUF0 "\"kind\":\"CONST\",\"dtype\":\"F32\",\"shape\":[],"
              "\"space\":\"HBM\"")},
    {BUF("\"id\":true," BUF0 "\"kind\":\"CONST\",\"dtype\":\"F32\","
         "\"shape\":[],\"space\":\"HBM\""),
     BUF(BUF0 "\"kind\":\"CONST\",\"dtype\":\"F32\",\"shape\":[],"
              "\"space\":\"HBM\"")},
    {TASK(TASK0 LISTS ",\"op\":\"ADD\""),
     TASK("\"id\":0,\"op\":\"ADD\"," LISTS)},
    {TASK(TASK0 LISTS ",\"waits\":[{}],\"waits\":[]"), TASK(TASK0 LISTS)},
    {TASKV("params", "{\"K\":1,\"N\":2,\"K\":3}"),
     TASKV("params", "{\"K\":3,\"N\":2}")},
    {"{\"config\":{\"tiling\":1},\"config\":null}", "{}"},
    /* what counts as null or as an empty list */
    {"{\"target\":{},\"pages\":0.0,\"config\":\"\"}", "{}"},
    {"{\"target\":false,\"pages\":[],\"config\":{}}", "{}"},
    {"{\"buffers\":\"\",\"counters\":{},\"tasks\":\"\"}", "{}"},
    {TASK(TASK0 "\"inputs\":\"\",\"outputs\":{},\"out_counter\":0,"
                "\"waits\":\"\""),
     TASK(TASK0 LISTS)},
    /* unknown keys */
    {"{\"x\":{\"y\":[1,{}]},\"tasks\":[]}", "{}"},
    {TASK("\"z\":[{}],\"id\":0,\"op\":\"NOP\"," LISTS), TASK(TASK0 LISTS)},
    {TASK("\"id\\u0000\":1,\"id\":0,\"op\":\"NOP\"," LISTS), TASK(TASK0 LISTS)},
    /* a configuration as pairs; pairs of any sort */
    {"{\"config\":[[\"threads_per_block\",1],\"xy\",{\"a\":0,\"b\":0},"
     "[null,1],[\"threads_per_block\",64]]}",
     "{\"config\":{\"threads_per_block\":64}}"},
    /* keys that are integers, however written: first place, last value */
    {"{\"config\":{\"sm_assignment\":{\" +1_0\\t\":1,\"2\":2,\"10\":3,"
     "\"\\u0663\":4,\"\\u2003-0\":5}}}",
     "{\"config\":{\"sm_assignment\":{\"10\":3,\"2\":2,\"3\":4,\"0\":5}}}"},
    {"{\"pages\":{\"buffer_to_page\":{\"0\":1,\"5\":2,\"+0\":3,\"0\":4},"
     "\"pages\":[]}}",
     "{\"pages\":{\"buffer_to_page\":{\"0\":3,\"5\":2},\"pages\":[]}}"},
    {"{\"pages\":{\"buffer_to_page\":{\"0\":null,\"00\":3},\"pages\":{}}}",
     "{\"pages\":{\"buffer_to_page\":{\"0\":3},\"pages\":[]}}"},
    /* versions become text */
    {"{\"ir_version\":0.25,\"abi_version\":0}",
     "{\"ir_version\":\"0.25\",\"abi_version\":\"0\"}"},
};

TEST(mega_load_reads_the_same_program_from_both)
{
    for (size_t i = 0; i < BR_COUNT(same); i++) {
        br_text a = canon(same[i].a, strlen(same[i].a));
        br_text b = canon(same[i].b, strlen(same[i].b));

        expect_text(same[i].a, a, b.p, b.n);
    }
}

TEST(mega_load_replaces_a_section_with_its_misfits)
{
#define TWICE(key, misfit, plain) \
    "\"" key "\":[{" misfit "}],\"" key "\":[{" plain "}]"
#define BUFFER                                                         \
    "\"name\":\"\",\"kind\":\"CONST\",\"dtype\":\"F32\",\"shape\":[]," \
    "\"space\":\"HBM\""
#define PAGES(v)                                                        \
    "\"pages\":{\"buffer_to_page\":{\"0\":" v "},\"pages\":[{\"id\":" v \
    ",\"space\":\"HBM\",\"nbytes\":0}]}"
    /* clang-format off */
    static const char text[] = "{"
        TWICE("buffers", "\"id\":0.5," BUFFER, "\"id\":0," BUFFER) ","
        TWICE("counters", "\"id\":0.5", "\"id\":0") ","
        TWICE("tasks", TASK0 LISTS ",\"sm\":0.5", TASK0 LISTS ",\"sm\":5") ","
        PAGES("0.5") "," PAGES("3") "}";
    /* clang-format on */
    br_mega_prog *p = load(text, sizeof text - 1);

    ck_assert_uint_eq(p->n_misfits, 0);
    ck_assert_uint_eq(p->n_buffers, 1);
    ck_assert_uint_eq(p->n_counters, 1);
    ck_assert_uint_eq(p->n_tasks, 1);
    ck_assert_int_eq(p->tasks[0].sm, 5);
    ck_assert_uint_eq(p->n_pages, 1);
    ck_assert_int_eq(p->binds[0].page, 3);
    br_mega_free(p);
}

TEST(mega_load_keeps_a_nul_in_texts)
{
    static const char text[] =
        "{\"ir_version\":\"0.\\u0000x\",\"counters\":[{\"id\":0,"
        "\"note\":\"a\\u0000b\"}]}";
    br_text t = canon(text, sizeof text - 1);

    ck_assert_ptr_nonnull(strstr(t.p, "\"0.\\u0000x\""));
    ck_assert_ptr_nonnull(strstr(t.p, "\"a\\u0000b\""));
}

/* ---- integer keys ------------------------------------------------------- */

TEST(mega_load_int_keys_are_those_of_python)
{
    static const struct {
        const char *key, *digits; /* NULL: refused */
    } rows[] = {
        {"0", "0"},
        {"-0", "0"},
        {"+7", "7"},
        {"007", "7"},
        {"-0012", "-12"},
        {"0_0_5", "5"},
        {" \t\n\v\f\r3 ", "3"},
        {"99999999999999999999", "99999999999999999999"},
        {"\xd9\xa3", "3"},         /* U+0663 */
        {"\xf0\x9d\x9f\xa1", "9"}, /* U+1D7E1 */
        {"\xc2\xa0"
         "1\xe3\x80\x80",
         "1"}, /* U+00A0, U+3000 */
        {"", NULL},
        {" ", NULL},
        {"+", NULL},
        {"+ 3", NULL},
        {"--3", NULL},
        {"_3", NULL},
        {"3_", NULL},
        {"3__3", NULL},
        {"3 3", NULL},
        {"3_ ", NULL},
        {"0x3", NULL},
        {"3.", NULL},
        {"\x1c"
         "3",
         NULL},                 /* a blank elsewhere, not here */
        {"\xe2\x82\x82", NULL}, /* subscript two */
        {"\xed\xa0\x80", NULL}, /* half a surrogate pair */
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_str out = {0};
        bool ok = br_load_py_int(br_text_z(rows[i].key), &out);

        ck_assert_msg(ok == (rows[i].digits != NULL), "'%s'", rows[i].key);
        if (ok)
            ck_assert_str_eq(br_str_z(&out), rows[i].digits);
        br_str_fini(&out);
    }
}

TEST(mega_load_int_keys_have_a_limit)
{
    char *z = t_keep(malloc(BR_LOAD_MAX_DIGITS + 2));
    br_str out = {0};

    memset(z, '0', BR_LOAD_MAX_DIGITS + 1);
    ck_assert(br_load_py_int((br_text){z, BR_LOAD_MAX_DIGITS}, &out));
    ck_assert(!br_load_py_int((br_text){z, BR_LOAD_MAX_DIGITS + 1}, &out));
    br_str_fini(&out);
}

/* ---- memory ------------------------------------------------------------- */

static br_code
load_and_save(void *arg, br_status *st)
{
    const br_text *t = arg;
    br_mega_prog *p;
    br_str out = {0};
    br_code code = br_mega_load(&p, t->p, t->n, st);

    if (code != BR_OK)
        return code;
    code = br_mega_save(p, &out, st);
    br_str_fini(&out);
    br_mega_free(p);
    return code;
}

TEST(mega_load_survives_every_failed_allocation)
{
    br_text t = {whole, sizeof whole - 1};
    size_t n;
    char *text;

    t_each_oom(load_and_save, &t);
    for (size_t i = 0; i < BR_COUNT(misfits); i++) {
        t = br_text_z(misfits[i].text);
        t_each_oom(load_and_save, &t);
    }
    for (size_t i = 0; i < BR_COUNT(same); i++) {
        t = br_text_z(same[i].a);
        t_each_oom(load_and_save, &t);
    }
    text = t_read(
        t_repo("tests/data/amk/valid/v068_llama1_explicit_sm_map_config.json"),
        &n);
    t = (br_text){text, n};
    t_each_oom(load_and_save, &t);
}

/* before, then n times unit, then after */
static char *
repeat(const char *before, const char *unit, size_t n, const char *after,
       size_t *size)
{
    size_t b = strlen(before), u = strlen(unit), a = strlen(after);
    char *z = t_keep(malloc(b + n * u + a + 1));

    memcpy(z, before, b);
    for (size_t i = 0; i < n; i++)
        memcpy(z + b + i * u, unit, u);
    memcpy(z + b + n * u, after, a + 1);
    *size = b + n * u + a;
    return z;
}

/* The stated bound on memory, at texts that try to break it. */
TEST(mega_load_memory_is_bounded_by_the_file)
{
    static const struct {
        const char *before, *unit, *after;
    } rows[] = {
        {"{\"buffers\":[{\"id\":0,\"name\":\"\",\"kind\":\"CONST\","
         "\"dtype\":\"F32\",\"space\":\"HBM\",\"shape\":\"",
         "a", "\"}]}"},
        {"{\"buffers\":[{\"id\":0,\"name\":\"\",\"kind\":\"CONST\","
         "\"dtype\":\"F32\",\"space\":\"HBM\",\"shape\":\"",
         "\xc3\xa9", "\"}]}"},
        {"{\"buffers\":[{\"id\":0,\"name\":\"\",\"kind\":\"CONST\","
         "\"dtype\":\"F32\",\"space\":\"HBM\",\"shape\":[",
         "{},", "0]}]}"},
        {"{\"buffers\":[{\"id\":0,\"name\":\"\",\"kind\":\"CONST\","
         "\"dtype\":\"F32\",\"space\":\"HBM\",\"shape\":[",
         "[],", "0]}]}"},
        {"{\"tasks\":[", "{},", "{}]}"},
        {"{\"tasks\":[", TASK0, "]}"},
        {"{\"meta\":[", "0,", "0]}"},
        {"{\"meta\":[", "\"\",", "0]}"},
        {"{\"meta\":{", "\"\":0,", "\"\":0}}"},
        {"{", "\"tasks\":[],", "\"tasks\":[]}"},
        {"{\"tasks\":[",
         "{\"id\":0,\"op\":\"NOP\",\"inputs\":[],\"outputs\":[],"
         "\"out_counter\":0},",
         "{\"id\":0,\"op\":\"NOP\",\"inputs\":[],\"outputs\":[],"
         "\"out_counter\":0}]}"},
        {"{\"tasks\":[{\"id\":0,\"op\":\"NOP\",\"inputs\":[],\"outputs\":[],"
         "\"out_counter\":0,\"waits\":[",
         "{\"counter\":{},\"threshold\":[]},",
         "{\"counter\":0,\"threshold\":0}]}]}"},
        {"{\"tasks\":[{\"id\":0,\"op\":\"NOP\",\"inputs\":[],\"outputs\":[],"
         "\"out_counter\":0,\"waits\":[",
         "{\"counter\":{},\"threshold\":[]},", "0]}]}"},
        {"{\"counters\":[", "{\"id\":\"\"},", "{\"id\":0}]}"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        size_t n;
        char *text =
            repeat(rows[i].before, rows[i].unit, 30000, rows[i].after, &n);
        br_status st = {0};
        br_mega_prog *p;
        br_code code = br_mega_load(&p, text, n, &st);

        ck_assert_msg(code == BR_OK || code == BR_E_FORMAT, "row %zu: %s", i,
                      st.msg);
        if (code == BR_OK)
            ck_assert_uint_le(p->arena.used,
                              n * BR_MEGA_MAX_GROWTH + (64u << 10));
        br_mega_free(p);
    }
}

/* Time must not grow with the square of anything: each of these took minutes
 * with a quadratic loader, and takes milliseconds. */
TEST(mega_load_is_linear_in_hostile_files)
{
    size_t n;
    char *text =
        repeat("{", "\"tasks\":[{\"id\":0.5}],", 100000, "\"tasks\":[]}", &n);
    br_mega_prog *p = load(text, n);
    br_str keys = {0};

    br_mega_free(p);
    br_str_puts(&keys, "{\"pages\":{\"buffer_to_page\":{\"+0\":0");
    for (int i = 1; i < 100000; i++)
        br_str_printf(&keys, ",\"%d\":0", i);
    br_str_puts(&keys, "},\"pages\":[]}}");
    p = load(keys.at, keys.n);
    ck_assert_uint_eq(p->n_binds, 100000);
    br_mega_free(p);
    br_str_fini(&keys);
}
