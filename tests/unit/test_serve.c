/* test_serve.c - brass serve as a command: what it refuses before it listens.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEN  "0123456789"
#define LONG TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN "01234567"

TEST(serve_says_at_once_what_would_fail_later)
{
    const struct {
        const char *option, *value, *says;
        int exit;
    } rows[] = {
        {"--keep", "README.md", "not a folder", 2},
        {"--keep", "README.md/x", "Not a directory", 1},
        {"--keep", "/proc/brass", "--keep: /proc/brass", 1},
        {"--name", "", "--name: 1 to 127 bytes", 2},
        {"--name", LONG, "--name: 1 to 127 bytes", 2},
        {"--unix", "README.md", "--unix README.md: it is there, no socket", 2},
        {"--host", "not..a..name", "--host not..a..name: ", 2},
        {"--price", "dmeo=150/15/600", "no model is called 'dmeo'", 2},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        t_proc r;

        t_run(&r, "serve", "models/demo.gguf", "--port", "0", rows[i].option,
              rows[i].value);
        ck_assert_msg(r.exit == rows[i].exit && strstr(r.err, rows[i].says) &&
                          !strstr(r.err, "others could reach it") && !r.out[0],
                      "%s %s: %d %s%s", rows[i].option, rows[i].value, r.exit,
                      r.out, r.err);
    }
}

/* Who starts it may not make one there, root neither. */
TEST(serve_says_why_a_folder_cannot_be_made)
{
    t_proc r;

    if (access("/sys/kernel", F_OK) != 0)
        t_skip("no /sys here");
    t_run(&r, "serve", "models/demo.gguf", "--port", "0", "--keep",
          "/sys/brass");
    ck_assert_int_eq(r.exit, 1);
    ck_assert_ptr_nonnull(strstr(r.err, "--keep: /sys/brass: "));
    ck_assert_ptr_null(strstr(r.err, "No such file"));
}

/* Each coming of a model would begin the file anew. */
TEST(serve_traces_one_model_that_stays)
{
    static const char *const rows[][2] = {
        {"--model-list", "README.md"},
        {"--unload-idle", "9"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        t_proc r;

        t_run(&r, "serve", "--port", "0", "--trace", "/nowhere/t", rows[i][0],
              rows[i][1]);
        ck_assert_msg(r.exit == 2 && strstr(r.err, "one model that stays"),
                      "%d %s", r.exit, r.err);
    }
}

/* One more than a tier takes is told the number; as many as it takes are, however
 * short the context: then it is the second model that ends the start. */
TEST(serve_says_how_many_slots_a_tier_has)
{
    const char *none = t_printf("%s/none.gguf", t_tmpdir());
    static const struct {
        const char *tier, *slots, *says;
        int exit;
    } rows[] = {
        {"cpu", "513",
         "demo.gguf: tier cpu makes at most 512 answers at once; --slots says "
         "513\n",
         3},
        {"ref", "65", "tier ref makes at most 64 answers at once", 3},
        {"cpu", "65", "none.gguf: no GGUF file", 3},
        {"ref", "64", "none.gguf: no GGUF file", 3},
        {"cuda", "2049", "2049 is not in 1..2048", 2},
    };

    t_write(none, "no model", 8);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        t_proc r;

        t_run(&r, "serve", t_repo("models/demo.gguf"), none, "--port", "0",
              "-t", "1", "--ctx", "32", "--tier", rows[i].tier, "--slots",
              rows[i].slots);
        ck_assert_msg(r.exit == rows[i].exit && strstr(r.err, rows[i].says),
                      "%zu: %d %s", i, r.exit, r.err);
    }
}

TEST(serve_reads_a_list_of_models_as_windows_writes_it)
{
    const char *list = t_printf("%s/list", t_tmpdir());
    char *text = t_printf("# models\r\n\r\n%s\r\n", t_repo("models/demo.gguf"));
    t_proc r;

    t_write(list, text, strlen(text));
    t_run(&r, "serve", "--port", "0", "--model-list", list, "--ctx", "1025");
    ck_assert_msg(r.exit == 2 && strstr(r.err, "was made for 1024 tokens"),
                  "%d %s", r.exit, r.err);
}

/* Of several models one that is none, or that --memory has no room for, ends the start
 * by its name, before or after those that load. */
TEST(serve_names_the_model_that_ends_its_start)
{
    const char *none = t_printf("%s/none.gguf", t_tmpdir());
    const char *good = t_repo("models/demo.gguf");
    const struct {
        const char *first, *second, *memory, *says;
        int exit;
    } rows[] = {
        {good, none, "0", ": no GGUF file", 3},
        {good, none, "1g", ": no GGUF file", 3},
        {none, good, "1g", ": no GGUF file", 3},
        {good, none, "12m",
         " MB, --memory gives 12 MB; fewer slots or a shorter context take "
         "less",
         3},
        {good, none, "1m", ": it takes 10 MB, --memory gives 1 MB\n", 3},
        {good, none, "11524767", /* of one byte more */
         ": it takes 11524768 bytes, --memory gives 11524767 bytes\n", 3},
        {good, none, "100k", ": it takes 11254 KB, --memory gives 100 KB\n", 3},
        {good, none, "9", ": it takes 11524768 bytes, --memory gives 9 bytes\n",
         3},
    };

    t_write(none, "no model", 8);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        const char *name = i < 3 ? none : good;
        t_proc r;

        t_run(&r, "serve", rows[i].first, rows[i].second, "--port", "0", "-t",
              "1", "--memory", rows[i].memory);
        ck_assert_msg(r.exit == rows[i].exit && strstr(r.err, rows[i].says) &&
                          strstr(r.err, t_printf("brass serve: %s: ", name)),
                      "%s: %d %s", rows[i].memory, r.exit, r.err);
    }
}

/* A model that cannot be read is told of at once: what stands before the server has
 * sent nobody there. */
TEST(serve_that_never_served_does_not_wait_to_be_left_alone)
{
    t_proc r;

    t_run(&r, "serve", "README.md", "--port", "0", "--drain-delay", "3600");
    ck_assert_msg(r.exit == 3 && strstr(r.err, "README.md: no GGUF file"),
                  "%d %s", r.exit, r.err);
}

/* --keep makes its folder; a model's name is one file's, whatever is in it. */
TEST(serve_keeps_sessions_of_a_model_with_a_slash_in_its_name)
{
    const char *script = t_printf(
        "cd %s && %s serve %s --name org/100%% --port 0 -t 1 --keep a/b "
        "--log-level info 2>log >said & pid=$!; for i in $(seq 600); do "
        "grep -q http_ready %s/log && break; sleep 0.05; done; kill $pid; "
        "wait $pid; code=$?; grep -E ' (warn|error) ' %s/log; exit $code",
        t_tmpdir(), t_brass(), t_repo("models/demo.gguf"), t_tmpdir(),
        t_tmpdir());
    t_proc r;

    t_exec(&r, (const char *[]){"sh", "-c", script, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0 && !r.out[0], "%d %s%s", r.exit, r.out, r.err);
    ck_assert_int_eq(
        access(t_printf("%s/a/b/org%%2F100%%25.keep", t_tmpdir()), F_OK), 0);
}

/* A terminal that is closed takes no answers and no --keep with it. */
TEST(serve_ends_at_a_hangup_as_it_does_when_it_is_told_to)
{
    static const struct {
        const char *trap, *then, *says;
    } rows[] = {
        {"-", "", "0\n"},
        {"''", "sleep 0.2; kill -0 $pid && echo alive; kill $pid;",
         "alive\n0\n"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        const char *script = t_printf(
            "cd %s && rm -f log; trap %s HUP; %s serve %s --port 0 -t 1 "
            "--log-level info 2>log >said & pid=$!; for i in $(seq 600); do "
            "grep -q http_ready %s/log && break; sleep 0.05; done; "
            "kill -HUP $pid; %s wait $pid; echo $?",
            t_tmpdir(), rows[i].trap, t_brass(), t_repo("models/demo.gguf"),
            t_tmpdir(), rows[i].then);
        t_proc r;

        t_exec(&r, (const char *[]){"sh", "-c", script, NULL}, NULL, 0);
        ck_assert_msg(strcmp(r.out, rows[i].says) == 0, "%s: %s%s",
                      rows[i].trap, r.out, r.err);
    }
}

/* What it was asked to write down is not there: no success. */
TEST(serve_that_lost_its_trace_fails)
{
    const char *script = t_printf(
        "cd %s && mkdir gone && %s serve %s --port 0 -t 1 --trace gone/t "
        "--log-level info 2>log >said & pid=$!; for i in $(seq 600); do "
        "grep -q http_ready %s/log && break; sleep 0.05; done; "
        "rm -r %s/gone; kill $pid; wait $pid; code=$?; "
        "tail -n 1 %s/log; exit $code",
        t_tmpdir(), t_brass(), t_repo("models/demo.gguf"), t_tmpdir(),
        t_tmpdir(), t_tmpdir());
    t_proc r;

    t_exec(&r, (const char *[]){"sh", "-c", script, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 3 && strncmp(r.out, "brass serve: ", 13) == 0 &&
                      strstr(r.out, "No such file or directory"),
                  "%d %s%s", r.exit, r.out, r.err);
}

/* Who looks while it runs finds it, also when it was killed; never a part of it
 * by its own name. */
TEST(a_servers_trace_is_there_as_a_part_until_it_ends)
{
    const char *script = t_printf(
        "cd %s; up() { %s serve %s --port 0 -t 1 --trace t --log-level info "
        "2>$1 >said & pid=$!; for i in $(seq 600); do grep -q http_ready $1 && "
        "break; sleep 0.05; done; }; "
        "umask 0; up log1; kill -9 $pid; wait $pid; ls t*; %s trace t.part "
        ">/dev/null; up log2; grep -c 't.part until the server ends' log2; "
        "%s serve %s --port 0 -t 1 --trace t | grep serving; "
        "kill $pid; wait $pid; echo $?; stat -c '%%a %%n' t*; %s trace t",
        t_tmpdir(), t_brass(), t_repo("models/demo.gguf"), t_brass(), t_brass(),
        t_repo("models/demo.gguf"), t_brass());
    t_proc r;

    t_exec(&r, (const char *[]){"bash", "-c", script, NULL}, NULL, 0);
    ck_assert_str_eq(r.out, "t.part\n1\n0\n600 t\n{\"traceEvents\": []}\n");
    ck_assert_msg(strstr(r.err, "brass: t.part: cut short: ") &&
                      strstr(r.err, "--trace: t.part: another process "
                                    "writes it\n"),
                  "%s", r.err);
}

TEST(serve_has_no_room_for_more_tokens_than_a_model_was_made_for)
{
    t_proc r;

    t_run(&r, "serve", "models/demo.gguf", "--port", "0", "--ctx", "1025");
    ck_assert_int_eq(r.exit, 2);
    ck_assert_str_eq(r.err,
                     "brass serve: models/demo.gguf: --ctx: the model was "
                     "made for 1024 tokens\n");
}

TEST(serve_calls_a_folder_as_without_the_slash_behind_it)
{
    t_proc r;

    t_run(&r, "serve", "tests//", "--port", "0"); /* which is no model */
    ck_assert_msg(strncmp(r.out, "loading tests on ", 17) == 0, "%s", r.out);
    ck_assert_ptr_eq(strstr(r.out, "serving"), NULL);
    ck_assert_int_eq(r.exit, 3);
}

/* As `brass serve ... | head -n 1` does, which then is told no more. */
TEST(serve_goes_on_when_nobody_reads_that_it_is_there)
{
    const char *script = t_printf(
        "cd %s && mkfifo said && { %s serve %s --port 0 -t 1 --log-level info "
        "2>log >said & } && pid=$! && read line <said && echo \"$line\" && "
        "for i in $(seq 600); do grep -q http_ready log && break; sleep 0.05; "
        "done; sleep 0.2; kill $pid; wait $pid",
        t_tmpdir(), t_brass(), t_repo("models/demo.gguf"));
    t_proc r;

    t_exec(&r, (const char *[]){"sh", "-c", script, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0 && strncmp(r.out, "loading demo on ", 16) == 0,
                  "%d %s%s", r.exit, r.out, r.err);
}

/* With so many open files allowed; ends it once it serves. */
static void
serve_with_files(t_proc *r, int n)
{
    const char *script = t_printf(
        "cd %s && : >said && ulimit -n %d && { %s serve %s --port 0 -t 1 "
        "--db tenants.db --responses responses.db >said & } && pid=$! && "
        "for i in $(seq 600); do kill -0 $pid 2>&- || break; "
        "grep -q serving said && break; sleep 0.05; done; "
        "kill $pid 2>&-; wait $pid; code=$?; cat said; exit $code",
        t_tmpdir(), n, t_brass(), t_repo("models/demo.gguf"));

    t_exec(r, (const char *[]){"sh", "-c", script, NULL}, NULL, 0);
}

/* It said that it serves, and had a 503 for everybody. With fewer files still it
 * lacks those of its models; how many those are depends on who starts it. */
TEST(serve_says_how_many_open_files_it_needs)
{
    const char *at = NULL;
    int may = 12, allowed = 0, need = 0;
    t_proc r;

    while (!at && may < 200) {
        serve_with_files(&r, ++may);
        ck_assert_msg(r.exit != 0 && !strstr(r.out, "serving"), "%d: %d %s%s",
                      may, r.exit, r.out, r.err);
        at = strstr(r.err, "no open file is left for a connection: ");
    }
    ck_assert_msg(at && r.exit == 3, "%d %s", r.exit, r.err);
    ck_assert_int_eq(sscanf(at,
                            "no open file is left for a connection: %d are "
                            "allowed (ulimit -n), at least %d are needed",
                            &allowed, &need),
                     2);
    ck_assert_int_eq(allowed, may);
    ck_assert_int_gt(need, may);
    serve_with_files(&r, need);
    ck_assert_msg(r.exit == 0 && strstr(r.out, "serving"), "%d: %d %s%s", need,
                  r.exit, r.out, r.err);
}
