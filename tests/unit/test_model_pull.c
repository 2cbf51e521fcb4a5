/* test_model_pull.c - models by name: catalogue, download, the active one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/json.h"
#include "base/thread.h"
#include "cli/catalogue.h"
#include "cli/http_get.h"
#include "http_kit.h"
#include "model/gguf_write.h"
#include "model/quant.h"

#include "t.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

T_THREADS_OF("the_active_model_serves_where_none_is_named");

/* A home of the test's own, with a server and a catalogue that leads to it:
 * a model for each way it can misbehave, as "drop:Q8_0". */
typedef struct home {
    char *store, *model, sha[BR_SHA256_HEX];
    size_t n;
    int port;
} home;

static home
make_home(void)
{
    static const char *const ways[] = {"ok",    "drop", "whole", "wrong",
                                       "long",  "busy", "dead",  "moved",
                                       "short", "none", "else"};
    home h;
    char *text = t_printf("{\"models\":[");

    h.model = t_read(t_repo("tests/data/logits/mamba2.gguf"), &h.n);
    h.port = hk_serve(h.model, h.n);
    br_sha256_hex(h.model, h.n, h.sha);
    for (size_t i = 0; i < BR_COUNT(ways); i++)
        text =
            t_printf("%s%s{\"name\":\"%s\",\"quant\":\"Q8_0\",\"bytes\":%zu,"
                     "\"sha256\":\"%s\",\"url\":"
                     "\"http://127.0.0.1:%d/%s.gguf\"}",
                     text, i ? "," : "", ways[i], h.n, h.sha, h.port, ways[i]);
    text = t_printf("%s]}", text);
    mkdir(t_printf("%s/brass", t_tmpdir()), 0700);
    t_write(t_printf("%s/brass/catalogue.json", t_tmpdir()), text,
            strlen(text));
    h.store = t_printf("%s/store", t_tmpdir());
    setenv("XDG_CONFIG_HOME", t_tmpdir(), 1);
    setenv("BRASS_MODELS", h.store, 1);
    setenv("no_proxy", "*", 1);
    if (!br_http_here())
        t_skip("no libcurl in this build");
    return h;
}

static const char *
stored(const home *h, const char *name)
{
    return t_printf("%s/%s", h->store, name);
}

/* It is there, right, and nothing else is. */
static void
check_stored(const home *h, const char *name)
{
    size_t n;
    const char *got = t_read(stored(h, name), &n);

    ck_assert_uint_eq(n, h->n);
    ck_assert_mem_eq(got, h->model, n);
    ck_assert_int_ne(access(stored(h, t_printf(".part-%s", name)), F_OK), 0);
    ck_assert_int_ne(access(stored(h, t_printf(".from-%s", name)), F_OK), 0);
}

static void
pull_fails(const home *h, const char *what, int code, const char *words)
{
    t_proc r;

    t_run(&r, "model", "pull", what);
    ck_assert_msg(strstr(r.err, words) != NULL, "%s: %s", what, r.err);
    ck_assert_int_eq(r.exit, code);
    ck_assert_ptr_eq(strchr(r.err, '\n'), r.err + r.n_err - 1);
    ck_assert_str_eq(r.out, "");
    ck_assert_int_ne(access(stored(h, t_printf("%s-Q8_0.gguf", what)), F_OK),
                     0);
}

/* Nothing came, and nothing is left of it. */
static void
check_no_part(const home *h, const char *what)
{
    const char *part = t_printf(".part-%s-Q8_0.gguf", what);
    const char *from = t_printf(".from-%s-Q8_0.gguf", what);

    ck_assert_int_ne(access(stored(h, part), F_OK), 0);
    ck_assert_int_ne(access(stored(h, from), F_OK), 0);
}

TEST(pull_gets_a_model_of_the_catalogue)
{
    home h = make_home();
    t_proc r;

    t_run(&r, "model", "pull", "ok");
    ck_assert_str_eq(r.err, "");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_str_eq(r.out, t_printf("%s: %zu bytes, SHA-256 %s, as in the "
                                     "catalogue\n",
                                     stored(&h, "ok-Q8_0.gguf"), h.n, h.sha));
    check_stored(&h, "ok-Q8_0.gguf");
    t_run(&r, "model", "pull", "ok:Q8_0");
    ck_assert_ptr_nonnull(strstr(r.out, "is here already"));
    t_run(&r, "model", "pull", "moved");
    check_stored(&h, "moved-Q8_0.gguf");
    ck_assert_str_eq(hk_log(), "/ok.gguf 0-\n/moved.gguf 0-\n/ok.gguf 0-\n");
}

TEST(pull_goes_on_where_the_server_hung_up)
{
    home h = make_home();
    t_proc r;

    t_run(&r, "model", "pull", "drop");
    ck_assert_str_eq(r.err, "");
    check_stored(&h, "drop-Q8_0.gguf");
    ck_assert_str_eq(hk_log(), t_printf("/drop.gguf 0-\n/drop.gguf %zu-\n"
                                        "/drop.gguf %zu-\n",
                                        h.n / 3 + 1, 2 * (h.n / 3 + 1)));
}

TEST(pull_begins_anew_where_a_server_knows_no_ranges)
{
    home h = make_home();
    t_proc r;

    t_run(&r, "model", "pull", "whole");
    ck_assert_str_eq(r.err, "");
    check_stored(&h, "whole-Q8_0.gguf");
    ck_assert_str_eq(hk_log(),
                     t_printf("/whole.gguf 0-\n/whole.gguf %zu-\n", h.n / 2));
}

TEST(pull_waits_for_a_busy_server)
{
    home h = make_home();
    t_proc r;

    t_run(&r, "model", "pull", "busy");
    ck_assert_str_eq(r.err, "");
    check_stored(&h, "busy-Q8_0.gguf");
}

TEST(pull_refuses_what_is_not_the_model)
{
    home h = make_home();

    pull_fails(&h, "wrong", 3, "the SHA-256 is ");
    pull_fails(&h, "long", 3, t_printf("sends more than %zu bytes", h.n));
    pull_fails(&h, "none", 3, "none.gguf: the server answers 404");
    check_no_part(&h, "none");
    pull_fails(&h, "else", 3, "the server sends from byte 7 on, not from 0");
    pull_fails(&h, "dead", 1, "the server answers 503");
    pull_fails(&h, t_printf("http://127.0.0.1:%d/html.gguf", h.port), 3,
               "what came is thrown away: ");
    ck_assert_ptr_null(*t_ls(h.store, ""));
}

/* What a killed pull left is gone on with by the next; what comes from
 * elsewhere is not. */
TEST(pull_goes_on_after_a_kill)
{
    home h = make_home();
    const char *part = t_printf("%s/.part-ok-Q8_0.gguf", h.store);
    const char *from = t_printf("%s/.from-ok-Q8_0.gguf", h.store);
    const char *url = t_printf("http://127.0.0.1:%d/ok.gguf", h.port);
    t_proc r;

    mkdir(h.store, 0700);
    t_write(part, h.model, 5000);
    t_write(from, t_printf("%s\n\"v1\"\n", url), strlen(url) + 6);
    t_run(&r, "model", "pull", "ok");
    check_stored(&h, "ok-Q8_0.gguf");
    ck_assert_str_eq(hk_log(), "/ok.gguf 5000-\n");
    t_write(part, "from elsewhere", 14);
    unlink(stored(&h, "ok-Q8_0.gguf"));
    t_run(&r, "model", "pull", "ok");
    check_stored(&h, "ok-Q8_0.gguf");
    ck_assert_str_eq(hk_log(), "/ok.gguf 5000-\n/ok.gguf 0-\n");
    /* More than there is. */
    t_write(part, t_keep(calloc(1, h.n + 9)), h.n + 9);
    t_write(from, t_printf("%s\n\n", url), strlen(url) + 2);
    unlink(stored(&h, "ok-Q8_0.gguf"));
    t_run(&r, "model", "pull", "ok");
    check_stored(&h, "ok-Q8_0.gguf");
}

TEST(pull_takes_a_url_and_what_it_knows_then_is_its_length)
{
    home h = make_home();
    const char *url = t_printf("http://127.0.0.1:%d/drop.gguf?x=1", h.port);
    t_proc r;

    t_run(&r, "model", "pull", url);
    ck_assert_str_eq(r.err, "");
    check_stored(&h, "drop.gguf");
    t_run(&r, "model", "pull",
          t_printf("http://127.0.0.1:%d/short.gguf", h.port));
    ck_assert_int_eq(r.exit, 3);
    ck_assert_ptr_nonnull(strstr(r.err, "short.gguf"));
    t_run(&r, "model", "pull", "http://127.0.0.1:1/../x y.gguf");
    ck_assert_int_eq(r.exit, 2);
    t_run(&r, "model", "pull", "http://127.0.0.1:1/m-00001-of-02000.gguf");
    ck_assert_ptr_nonnull(strstr(r.err, "over 1024 files"));
    t_run(&r, "model", "pull", "file:///etc/passwd");
    ck_assert_int_eq(r.exit, 3);
    t_run(&r, "model", "pull", "whola");
    ck_assert_ptr_nonnull(strstr(r.err, "did you mean 'whole'?"));
}

/* ---- sets of files ------------------------------------------------------- */

enum { N_SET = 3 };

static char *
set_file(const char *dir, int no)
{
    return t_printf("%s/m-%05d-of-%05d.gguf", dir, no, N_SET);
}

/* What the server has of a set; file 2 may belong to another. */
static void
make_set(bool odd)
{
    const char *dir = t_printf("%s/files", t_tmpdir());

    mkdir(dir, 0700);
    for (int no = 1; no <= N_SET; no++) {
        char *name = t_printf("t%d", no);
        br_gguf_writer *w = br_gguf_w_new();
        uint8_t data[400];
        br_status st = {0};

        br_gguf_w_u32(w, "split.no", (uint32_t)(no - 1));
        br_gguf_w_u32(w, "split.count", N_SET + (odd && no == 2));
        br_gguf_w_u32(w, "split.tensors.count", N_SET);
        br_gguf_w_tensor(w,
                         &(br_gguf_w_info){br_text_z(name), BR_Q_I8, 1, {400}});
        memset(data, no, sizeof data);
        t_ok(br_gguf_w_begin(w, set_file(dir, no), &st), &st);
        t_ok(br_gguf_w_data(w, data, sizeof data, &st), &st);
        t_ok(br_gguf_w_end(w, &st), &st);
        br_gguf_w_free(w);
    }
}

static void
check_set(const home *h)
{
    br_status st = {0};
    br_gguf *g;

    t_ok(br_gguf_open(&g, set_file(h->store, 1), &st), &st);
    ck_assert_uint_eq(br_gguf_n_splits(g), N_SET);
    br_gguf_close(g);
    for (int no = 1; no <= N_SET; no++) {
        size_t n, m;
        const char *a = t_read(set_file(h->store, no), &n);
        const char *b =
            t_read(set_file(t_printf("%s/files", t_tmpdir()), no), &m);

        ck_assert_uint_eq(n, m);
        ck_assert_mem_eq(a, b, n);
    }
    ck_assert_uint_eq((size_t)(t_ls(h->store, ".gguf")[N_SET] == NULL), 1);
}

TEST(pull_gets_a_set_of_files_whole)
{
    home h = make_home();
    const char *url =
        t_printf("http://127.0.0.1:%d/files/m-00002-of-00003.gguf", h.port);
    t_proc r;

    make_set(false);
    t_run(&r, "model", "pull", url);
    ck_assert_str_eq(r.err, "");
    ck_assert_int_eq(r.exit, 0);
    check_set(&h);
    ck_assert_ptr_nonnull(strstr(r.out, "m-00001-of-00003.gguf: "));
    ck_assert_ptr_nonnull(strstr(r.out, ", compared with none\n"));
    t_run(&r, "model", "pull", url);
    ck_assert_ptr_nonnull(strstr(r.out, "m-00001-of-00003.gguf is here"));
    t_run(&r, "model", "list");
    ck_assert_ptr_nonnull(strstr(r.out, " m-00001-of-00003 "));
    ck_assert_ptr_null(strstr(r.out, " m-00002-of-00003 "));
    t_run(&r, "model", "rm", "m-00001-of-00003");
    ck_assert_str_eq(r.err, "");
    ck_assert_ptr_null(*t_ls(h.store, ".gguf"));
}

/* Killed while the files of a whole set went into their places. */
TEST(pull_goes_on_with_a_set_after_a_kill)
{
    home h = make_home();
    const char *url =
        t_printf("http://127.0.0.1:%d/files/m-00001-of-00003.gguf", h.port);
    t_proc r;

    make_set(false);
    mkdir(h.store, 0700);
    for (int no = 1; no <= N_SET; no++) {
        const char *file = set_file("", no) + 1;
        size_t n;
        const char *p = t_read(t_printf("%s/files/%s", t_tmpdir(), file), &n);
        const char *from = t_printf(
            "http://127.0.0.1:%d/files/%s\n\"v1\"\n%zu\n", h.port, file, n);

        t_write(stored(&h, t_printf("%s%s", no == 3 ? "" : ".part-", file)), p,
                no == 1 ? n / 2 : n);
        t_write(stored(&h, t_printf(".from-%s", file)), from, strlen(from));
    }
    t_run(&r, "model", "pull", url);
    ck_assert_str_eq(r.err, "");
    check_set(&h);
    ck_assert_ptr_null(strstr(hk_log(), "m-00002"));
    ck_assert_ptr_null(strstr(hk_log(), "m-00003"));
    /* What somebody else put there is left alone. */
    unlink(set_file(h.store, 1));
    t_run(&r, "model", "pull", url);
    ck_assert_int_eq(r.exit, 2);
    ck_assert_ptr_nonnull(strstr(r.err, "m-00003-of-00003.gguf is in the way"));
}

TEST(pull_refuses_a_set_that_does_not_fit_together)
{
    home h = make_home();
    t_proc r;

    make_set(true);
    t_run(&r, "model", "pull",
          t_printf("http://127.0.0.1:%d/files/m-00001-of-00003.gguf", h.port));
    ck_assert_int_eq(r.exit, 3);
    ck_assert_ptr_nonnull(strstr(r.err, "what came is thrown away: "));
    ck_assert_ptr_null(*t_ls(h.store, ".gguf"));
}

/* Rows of sets: the sum of the parts, a check for each. */
TEST(the_catalogue_has_sets)
{
    home h = make_home();
    const char *mine = t_printf("%s/brass/catalogue.json", t_tmpdir());
    char *row = t_printf(
        "{\"models\":[{\"name\":\"big\",\"quant\":\"I8\",\"url\":"
        "\"http://127.0.0.1:%d/files/m-00001-of-00003.gguf\",\"parts\":["
        "{\"bytes\":%d,\"sha256\":\"%064d\"},{},{}]}]}",
        h.port, 800, 7);
    t_proc r;

    make_set(false);
    t_write(mine, row, strlen(row));
    t_run(&r, "model", "pull", "big");
    ck_assert_int_eq(r.exit, 3);
    ck_assert_ptr_nonnull(strstr(r.err, "not the 800 of the catalogue"));
    row = t_read(mine, NULL);
    memset(strstr(row, "\"bytes\":800,"), ' ', strlen("\"bytes\":800,"));
    t_write(mine, row, strlen(row));
    t_run(&r, "model", "pull", "big");
    ck_assert_int_eq(r.exit, 3);
    ck_assert_ptr_nonnull(strstr(r.err, "not the 00000"));
    memset(strstr(row, "\"sha256\""), ' ', 8 + 1 + 66);
    t_write(mine, row, strlen(row));
    t_run(&r, "model", "pull", "big");
    ck_assert_str_eq(r.err, "");
    ck_assert_ptr_nonnull(strstr(r.out, "/big-I8-00003-of-00003.gguf: "));
    t_run(&r, "model", "info", "big");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_ptr_nonnull(strstr(r.out, " in 3 files"));
}

TEST(two_pulls_do_not_mix)
{
    home h = make_home();
    br_status st = {0};
    br_os_lock l;
    t_proc r;

    mkdir(h.store, 0700);
    t_ok(br_os_lock_take(&l, t_printf("%s/.pull.lock", h.store), &st), &st);
    t_run(&r, "model", "pull", "ok");
    ck_assert_ptr_nonnull(
        strstr(r.err, t_printf("in use by process %d", (int)getpid())));
    br_os_lock_drop(&l);
    t_run(&r, "model", "pull", "ok");
    ck_assert_int_eq(r.exit, 0);
}

/* ---- list, use, active, rm ----------------------------------------------- */

static const br_json *
model_named(const br_json *doc, const char *name)
{
    const br_json *j = br_json_get(doc, "models")->child;

    while (j && strcmp(br_json_get(j, "name")->s, name) != 0)
        j = j->next;
    ck_assert_msg(j != NULL, "%s is not listed", name);
    return j;
}

TEST(list_says_what_is_here_and_what_fits)
{
    home h = make_home();
    br_status st = {0};
    const br_json *j;
    br_json *doc;
    br_arena a;
    t_proc r;

    mkdir(h.store, 0700);
    t_write(stored(&h, "mine.gguf"), h.model, h.n);
    t_write(stored(&h, "ok-Q8_0.gguf"), h.model, h.n);
    t_write(stored(&h, "torn.gguf"), h.model, 100);
    t_write(stored(&h, "notes.txt"), "", 0);
    t_run(&r, "model", "use", "mine");
    ck_assert_int_eq(r.exit, 0);
    br_arena_init(&a, 0);
    t_run(&r, "model", "list", "--json");
    t_ok(br_json_parse(&doc, &a, r.out, r.n_out, 0, &st), &st);
    j = model_named(doc, "mine");
    ck_assert(br_json_get(j, "here")->b && br_json_get(j, "active")->b);
    ck_assert(br_json_get(j, "fits")->b);
    ck_assert_int_eq(br_json_get(j, "bytes")->i, (int64_t)h.n);
    ck_assert(br_json_get(model_named(doc, "ok:Q8_0"), "here")->b);
    ck_assert(!br_json_get(model_named(doc, "drop:Q8_0"), "here")->b);
    ck_assert_int_eq(br_json_get(model_named(doc, "torn"), "error")->kind,
                     BR_J_STR);
    (void)model_named(doc, "qwen3-0.6b:Q8_0"); /* the shipped rows are there */
    ck_assert_ptr_null(strstr(r.out, "notes"));
    t_run(&r, "model", "list");
    ck_assert_ptr_nonnull(strstr(r.out, "\n* mine "));
    ck_assert_ptr_nonnull(strstr(r.out, "damaged"));
    br_arena_fini(&a);
}

TEST(the_active_model_is_taken_where_none_is_named)
{
    home h = make_home();
    t_proc r, named;

    t_run(&r, "run", "-p", "x");
    ck_assert_int_eq(r.exit, 2);
    ck_assert_ptr_nonnull(strstr(r.err, "none is active"));
    t_run(&r, "model", "active");
    ck_assert_int_eq(r.exit, 3);
    t_run(&r, "model", "use", "ok");
    ck_assert_str_eq(r.err, "brass model use: ok is not here yet; brass model "
                            "pull ok gets it\n");
    t_run(&r, "model", "use", "models/demo.gguf");
    ck_assert_int_eq(r.exit, 0);
    t_run(&r, "model", "active");
    ck_assert_str_eq(r.out, t_printf("%s\n", t_repo("models/demo.gguf")));
    t_run(&r, "run", "-p", "Once", "-n", "3", "--temp", "0");
    t_run(&named, "run", "models/demo.gguf", "-p", "Once", "-n", "3", "--temp",
          "0");
    ck_assert_int_gt((int)r.n_out, 3);
    ck_assert_str_eq(r.out, named.out);
    t_run(&r, "model", "pull", "ok");
    t_run(&r, "model", "use", "ok");
    t_run(&r, "model", "info", "ok");
    ck_assert_ptr_nonnull(strstr(r.out, "mamba2 (verified)"));
    t_run(&r, "ir", "show", "ok");
    ck_assert_ptr_eq(strstr(r.out, "graph mamba2-decode"), r.out);
    t_run(&r, "logits", "ok", "--tokens", "1,2", "-o",
          t_printf("%s/l", t_tmpdir()));
    ck_assert_str_eq(r.err, "");
    t_run(&r, "tokenize", "okk", "x");
    ck_assert_ptr_nonnull(strstr(r.err, "did you mean 'ok'?"));
    t_run(&r, "model", "rm", "ok:Q8_0");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_int_ne(access(stored(&h, "ok-Q8_0.gguf"), F_OK), 0);
    t_run(&r, "model", "active");
    ck_assert_int_eq(r.exit, 3);
    t_run(&r, "model", "rm", "../store/ok-Q8_0");
    ck_assert_int_eq(r.exit, 3);
}

/* "No such file" of one that is there. */
TEST(what_is_removed_has_a_name_and_no_path)
{
    home h = make_home();
    const char *path = stored(&h, "ok.gguf");
    t_proc r;

    mkdir(h.store, 0700);
    t_write(path, "GGUF", 4);
    t_run(&r, "model", "rm", path);
    ck_assert_int_eq(r.exit, 3);
    ck_assert_str_eq(r.err,
                     t_printf("brass model rm: %s: is a path, no name; brass "
                              "model list shows the names of what can be "
                              "removed\n",
                              path));
    ck_assert_int_eq(access(path, F_OK), 0);
}

TEST(a_link_that_leads_nowhere_is_told_of_and_removed)
{
    home h = make_home();
    t_proc r;

    mkdir(h.store, 0700);
    ck_assert_int_eq(symlink("/no/such.gguf", stored(&h, "away.gguf")), 0);
    t_run(&r, "model", "list");
    ck_assert_ptr_nonnull(strstr(r.out, " away "));
    t_run(&r, "tokenize", "away", "x");
    ck_assert_ptr_nonnull(strstr(r.err, "away.gguf: cannot map: No such file"));
    t_run(&r, "model", "rm", "away");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_ptr_null(*t_ls(h.store, ".gguf"));
    /* of two formats the one that is there */
    t_write(stored(&h, "ok-Q8_0.gguf"), "GGUF", 4);
    ck_assert_int_eq(symlink("/no/such.gguf", stored(&h, "ok.gguf")), 0);
    t_run(&r, "model", "rm", "ok");
    ck_assert_ptr_nonnull(strstr(r.out, "ok-Q8_0.gguf is gone"));
}

TEST(a_file_with_blanks_in_its_name_has_that_name)
{
    home h = make_home();
    size_t n;
    const char *demo = t_read("models/demo.gguf", &n);
    t_proc r;

    mkdir(h.store, 0700);
    t_write(stored(&h, "my model (1).gguf"), demo, n);
    t_run(&r, "tokenize", "my model (1)", "x", "--ids");
    ck_assert_str_eq(r.err, "");
    t_run(&r, "model", "rm", "my model (1)");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    ck_assert_ptr_null(*t_ls(h.store, ".gguf"));
}

TEST(what_nothing_runs_is_not_made_the_active_model)
{
    const char *path = t_printf("%s/clip.gguf", t_tmpdir());
    br_gguf_writer *w = br_gguf_w_new();
    br_status st = {0};
    t_proc r;

    make_home();
    ck_assert_ptr_nonnull(w);
    br_gguf_w_str(w, "general.architecture", BR_TEXT("clip"));
    t_ok(br_gguf_w_begin(w, path, &st), &st);
    t_ok(br_gguf_w_end(w, &st), &st);
    br_gguf_w_free(w);
    t_run(&r, "model", "use", path);
    ck_assert_ptr_nonnull(strstr(r.err, "architecture 'clip' is not known"));
    ck_assert_int_eq(r.exit, 1);
    t_run(&r, "model", "active");
    ck_assert_int_eq(r.exit, 3);
}

TEST(a_name_is_a_model_s_where_the_file_of_that_name_is_none)
{
    t_proc r;

    make_home();
    t_run(&r, "model", "pull", "ok");
    ck_assert_int_eq(chdir(t_tmpdir()), 0);
    t_write("ok", "#!/bin/sh\n", 10);
    t_run(&r, "model", "info", "ok");
    ck_assert_ptr_nonnull(strstr(r.out, "mamba2 (verified)"));
    ck_assert_int_eq(unlink("ok"), 0);
    ck_assert_int_eq(mkdir("ok", 0700), 0);
    t_run(&r, "model", "info", "ok");
    ck_assert_ptr_nonnull(strstr(r.out, "mamba2 (verified)"));
    t_run(&r, "model", "info", "./ok");
    ck_assert_ptr_nonnull(strstr(r.err, "a folder without config.json"));
    t_write("other", "GGUF", 4);
    t_run(&r, "model", "info", "other");
    ck_assert_ptr_eq(strstr(r.err, "brass model info: other: "), r.err);
}

/* A link into nowhere cannot be made a folder of, whoever asks. */
TEST(a_folder_of_models_that_cannot_be_made_is_named)
{
    const char *words = t_printf("%s/nowhere/store: cannot make this folder of "
                                 "models: No such file or directory\n",
                                 t_tmpdir());
    t_proc r;

    make_home();
    ck_assert_int_eq(
        symlink("/nonexistent/x", t_printf("%s/nowhere", t_tmpdir())), 0);
    setenv("BRASS_MODELS", t_printf("%s/nowhere/store", t_tmpdir()), 1);
    t_run(&r, "model", "use", "models/demo.gguf");
    ck_assert_str_eq(r.err, t_printf("brass model use: %s", words));
    ck_assert_int_eq(r.exit, 1);
    t_run(&r, "model", "pull", "ok");
    ck_assert_str_eq(r.err, t_printf("brass model pull: %s", words));
    t_write(t_printf("%s/file", t_tmpdir()), "x", 1);
    setenv("BRASS_MODELS", t_printf("%s/file", t_tmpdir()), 1);
    t_run(&r, "model", "use", "models/demo.gguf");
    ck_assert_ptr_nonnull(strstr(r.err, "of models: Not a directory"));
}

/* A mistyped --models, a disk that is not mounted: nothing is left there. */
TEST(who_only_looks_makes_no_folder_of_models)
{
    const char *dir = t_printf("%s/typo", t_tmpdir());
    t_proc r;

    setenv("XDG_CONFIG_HOME", t_tmpdir(), 1);
    setenv("BRASS_MODELS", dir, 1);
    t_run(&r, "model", "list");
    ck_assert_int_eq(r.exit, 0);
    t_run(&r, "model", "list", "--models", dir);
    ck_assert_int_eq(r.exit, 0);
    t_run(&r, "model", "active");
    ck_assert_int_eq(r.exit, 3);
    t_run(&r, "run", "no-such", "-p", "a");
    ck_assert_ptr_nonnull(strstr(r.err, "no-such: no such file"));
    t_run(&r, "model", "rm", "no-such");
    ck_assert_int_eq(r.exit, 3);
    ck_assert_int_ne(access(dir, F_OK), 0);
    t_run(&r, "model", "use", "models/demo.gguf");
    ck_assert_int_eq(access(t_printf("%s/active", dir), F_OK), 0);
}

TEST(the_active_model_serves_where_none_is_named)
{
    const char *script =
        t_printf("cd %s && %s serve --port 0 >said & pid=$!; "
                 "for i in $(seq 200); do grep -q serving %s/said && break; "
                 "sleep 0.05; done; kill $pid && wait $pid && cat %s/said",
                 t_tmpdir(), t_brass(), t_tmpdir(), t_tmpdir());
    t_proc r;

    (void)make_home();
    t_run(&r, "serve");
    ck_assert_int_eq(r.exit, 2);
    ck_assert_ptr_nonnull(strstr(r.err, "none is active"));
    t_run(&r, "serve", "ok");
    ck_assert_int_eq(r.exit, 3);
    ck_assert_ptr_nonnull(strstr(r.err, "brass model pull ok gets it"));
    t_run(&r, "serve", "no/such.gguf");
    ck_assert_int_eq(r.exit, 3);
    ck_assert_str_eq(r.out, ""); /* nobody was told where to ask */
    ck_assert_ptr_nonnull(strstr(r.err, "no/such.gguf: No such file"));
    t_run(&r, "model", "use", "models/demo.gguf");
    t_exec(&r, (const char *[]){"sh", "-c", script, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0, "%d: %s", r.exit, r.err);
    ck_assert_ptr_eq(strstr(r.out, "loading demo on http://127.0.0.1:"), r.out);
    ck_assert_ptr_nonnull(strstr(r.out, "\nserving demo on http://127.0.0.1:"));
}

TEST(a_wrong_catalogue_is_named_with_its_place)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"[]", "models: expected a list"},
        {"{\"models\":[7]}", "models[0]: expected an object"},
        {"{\"models\":[{\"name\":\"a\",\"quant\":\"F16\"}]}",
         "models[0]: url: expected a text"},
        {"{\"models\":[{\"name\":\"../a\",\"quant\":\"F16\",\"url\":"
         "\"http://x\"}]}",
         "models[0]: name and quant: letters, digits and ._- only, at most "
         "100"},
        {"{\"models\":[{\"name\":\"a\",\"quant\":\"F16\",\"url\":\"ftp://"
         "x\"}]}",
         "models[0]: url: expected https:// or http://"},
        {"{\"models\":[{\"name\":\"a\",\"quant\":\"F16\",\"url\":\"http://x\","
         "\"sha256\":\"12\"}]}",
         "models[0]: sha256: expected 64 of 0123456789abcdef"},
        {"{\"models\":[{\"name\":\"a\",\"quant\":\"F16\",\"url\":\"http://x\","
         "\"bytes\":-1}]}",
         "models[0]: bytes: expected a number above 0"},
        {"{\"models\":[{\"name\":\"a\",\"quant\":\"F16\",\"url\":\"http://x/"
         "m-00001-of-00002.gguf\",\"parts\":[{}]}]}",
         "models[0]: parts: expected a list as long as the set of the url, 2"},
        {"{\"models\":[{\"name\":\"a\",\"quant\":\"F16\",\"url\":\"http://x\","
         "\"parts\":[]}]}",
         "models[0]: parts: expected a list as long as the set of the url, 0"},
        {"{\"models\":[{\"name\":\"a\",\"quant\":\"F16\",\"url\":\"http://x/"
         "m-00001-of-00001.gguf\",\"parts\":[{\"bytes\":0}]}]}",
         "models[0]: parts[0]: bytes: expected a number above 0"},
    };

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        br_catalogue c = {0};
        br_status st = {0};

        br_arena_init(&c.arena, 0);
        ck_assert_int_eq(
            br_catalogue_parse(&c, bad[i].text, strlen(bad[i].text), &st),
            BR_E_FORMAT);
        ck_assert_str_eq(st.msg, bad[i].says);
        br_catalogue_free(&c);
    }
}

static br_code
load_once(void *arg, br_status *st)
{
    br_catalogue c;

    (void)arg;
    BR_TRY(br_catalogue_load(&c, &(br_cli){0}, st));
    br_catalogue_free(&c);
    return BR_OK;
}

TEST(the_catalogue_survives_any_lack_of_memory)
{
    t_each_oom(load_once, NULL);
}

/* ---- locks --------------------------------------------------------------- */

TEST(a_lock_is_one_process_s_until_a_kill)
{
    const char *path = t_printf("%s/lock", t_tmpdir());
    br_status st = {0};
    br_os_lock l;
    int pipes[2], status;
    char c;
    pid_t pid;

    ck_assert_int_eq(pipe(pipes), 0);
    pid = fork();
    if (pid == 0) {
        c = br_os_lock_take(&l, path, &st) == BR_OK ? 'y' : 'n';
        if (write(pipes[1], &c, 1) == 1)
            pause();
        _exit(1);
    }
    ck_assert_int_eq((int)read(pipes[0], &c, 1), 1);
    ck_assert_int_eq(c, 'y');
    ck_assert_int_eq(br_os_lock_take(&l, path, &st), BR_E_NO_DEVICE);
    ck_assert_str_eq(st.msg,
                     t_printf("%s: in use by process %d", path, (int)pid));
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    st = (br_status){0};
    t_ok(br_os_lock_take(&l, path, &st), &st);
    br_os_lock_drop(&l);
    t_ok(br_os_lock_take(&l, path, &st), &st);
    br_os_lock_drop(&l);
}

TEST(a_device_lock_names_the_device)
{
    const char *device = t_printf("test-%d", (int)getpid());
    br_status st = {0};
    br_os_lock a, b;

    t_ok(br_os_lock_device(&a, device, &st), &st);
    ck_assert_int_eq(br_os_lock_device(&b, device, &st), BR_E_NO_DEVICE);
    ck_assert_int_eq(strncmp(st.msg, device, strlen(device)), 0);
    br_os_lock_drop(&a);
    st = (br_status){0};
    t_ok(br_os_lock_device(&b, device, &st), &st);
    br_os_lock_drop(&b);
    unlink(t_printf("/run/lock/brass-%s.lock", device));
    unlink(t_printf("/tmp/brass-%s.lock", device));
}

TEST(memory_of_the_machine_is_told)
{
    uint64_t all, left;

    br_os_memory(&all, &left);
    ck_assert_uint_gt(all, 64 << 20);
    ck_assert_uint_gt(left, 0);
    ck_assert_uint_le(left, all);
}
