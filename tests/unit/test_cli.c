/* test_cli.c - the command line as its user meets it: br_cli_main with streams
 * of the test's own, and the program itself where the process matters.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/json.h"
#include "base/thread.h"
#include "cli/progress.h"

#include "t.h"

#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

typedef struct said {
    int code;
    char *out, *err;
} said;

/* brass ARGS in this process; words are separated by blanks. */
static said
brass_env(const char *args, const char *env_text)
{
    char *argv[32] = {(char[]){"brass"}}, *env[16], *save;
    size_t n_out = 0, n_err = 0;
    said s = {0};
    int n = 1, k = 0;
    FILE *out = open_memstream(&s.out, &n_out);
    FILE *err = open_memstream(&s.err, &n_err);

    for (char *p = strtok_r(t_printf("%s", args), " ", &save); p && n < 31;
         p = strtok_r(NULL, " ", &save))
        argv[n++] = p;
    argv[n] = NULL;
    for (char *p = strtok_r(t_printf("%s", env_text), " ", &save); p && k < 15;
         p = strtok_r(NULL, " ", &save))
        env[k++] = p;
    env[k] = NULL;
    s.code = br_cli_main(n, argv, env, out, err);
    fclose(out);
    fclose(err);
    t_keep(s.out);
    t_keep(s.err);
    return s;
}

static said
brass(const char *args)
{
    return brass_env(args, "");
}

static int
lines_of(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

/* A bad line: nothing on stdout, one line on stderr, that exit code. */
static void
fails(const char *args, int code, const char *err)
{
    said s = brass(args);

    ck_assert_str_eq(s.err, err);
    ck_assert_str_eq(s.out, "");
    ck_assert_int_eq(s.code, code);
    ck_assert_int_eq(lines_of(s.err), 1);
}

/* ---- tables -------------------------------------------------------------- */

static bool
takes(const br_cmd *c, size_t id)
{
    for (const uint16_t *t = c->takes; *t < BR_OPT_COUNT; t++)
        if (*t == id)
            return true;
    return br_cli_option_rows[id].global;
}

/* No two options of one command share a flag, a letter or a variable. */
TEST(cli_options_do_not_collide)
{
    for (size_t c = 0; c < br_cli_cmd_count(); c++) {
        const br_cmd *cmd = br_cli_cmd(c);

        for (size_t i = 0; i < BR_OPT_COUNT; i++) {
            for (size_t k = i + 1; k < BR_OPT_COUNT; k++) {
                const br_option *a = &br_cli_option_rows[i];
                const br_option *b = &br_cli_option_rows[k];

                if (!takes(cmd, i) || !takes(cmd, k))
                    continue;
                ck_assert_str_ne(a->name, b->name);
                ck_assert(!a->letter || a->letter != b->letter);
            }
        }
    }
}

TEST(cli_rows_are_complete)
{
    br_status st = {0};
    br_options o;

    t_ok(br_cli_options_of(NULL, &o, &st), &st);
    t_ok(br_options_defaults(&o, &st), &st);
    br_options_fini(&o);
    for (size_t i = 0; i < BR_OPT_COUNT; i++) {
        const br_option *r = &br_cli_option_rows[i];
        bool choosy = r->type == BR_OPTION_ENUM;

        ck_assert_int_eq(r->value == NULL, r->type == BR_OPTION_BOOL);
        ck_assert_int_eq(r->choices != NULL, choosy);
        ck_assert(r->type != BR_OPTION_BOOL || r->def);
        /* -x would turn on what is on */
        ck_assert(r->type != BR_OPTION_BOOL || !r->letter ||
                  strcmp(r->def, "no") == 0);
        ck_assert(strncmp(r->name, "no-", 3) != 0);
        ck_assert(r->type != BR_OPTION_INT || r->lo < r->hi);
        ck_assert(r->type != BR_OPTION_FLOAT || r->flo < r->fhi);
        ck_assert(r->help[strlen(r->help) - 1] != '.');
    }
    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        const br_cmd *c = br_cli_cmd(i);
        int used;

        ck_assert_ptr_eq(br_cli_find((const char *const[]){c->words}, 1, &used),
                         strchr(c->words, ' ') ? NULL : c);
        ck_assert_int_eq(*c->args == 0, c->hi == 0);
        ck_assert_ptr_nonnull(c->doc);
        ck_assert(c->hi == -1 || c->lo <= c->hi);
    }
}

/* ---- help ---------------------------------------------------------------- */

static void
fits(const char *what, const char *text)
{
    int lines = 0;

    for (const char *p = text; *p; p += strcspn(p, "\n") + 1) {
        size_t n = strcspn(p, "\n");

        lines++;
        if (n >= 80)
            ck_abort_msg("%s: line %d has %zu columns: %.*s", what, lines, n,
                         (int)n, p);
        ck_assert_msg(p[n] == '\n', "%s: ends without a newline", what);
        ck_assert_msg(n == 0 || p[n - 1] != ' ', "%s: line %d ends in blanks",
                      what, lines);
    }
    /* The list of commands grows; the help of one has to fit. run and serve
     * have the most knobs: a few lines more than the smallest screens. */
    if (lines > (strcmp(what, "brass") == 0   ? 36
                 : strcmp(what, "run") == 0   ? 29
                 : strcmp(what, "serve") == 0 ? 41
                                              : 24))
        ck_abort_msg("%s: %d lines", what, lines);
}

static void
golden_help(const char *words, const char *text)
{
    char *path = t_printf("tests/golden/cli/help-%s.txt", words);

    for (char *p = path; *p; p++)
        *p = *p == ' ' ? '-' : *p;
    t_golden(path, text);
}

TEST(cli_help_fits_a_screen)
{
    fits("brass", brass("--help").out);
    for (size_t i = 0; br_cli_page(i); i++)
        fits(br_cli_page(i), brass(t_printf("%s --help", br_cli_page(i))).out);
    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        const char *words = br_cli_cmd(i)->words;
        said s = brass(t_printf("%s --help", words));

        fits(words, s.out);
        ck_assert_int_eq(s.code, 0);
        ck_assert_str_eq(s.err, "");
        ck_assert_str_eq(brass(t_printf("%s -h x y z", words)).out, s.out);
        golden_help(words, s.out);
    }
}

/* "  model quantize  write a model": the longest too. */
TEST(cli_lists_leave_a_gap_after_each_command)
{
    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        const char *words = br_cli_cmd(i)->words, *end = strchr(words, ' ');

        if (end) {
            const char *page = t_printf("%.*s", (int)(end - words), words);

            ck_assert_ptr_nonnull(strstr(brass(t_printf("%s --help", page)).out,
                                         t_printf("\n  %s  ", words)));
        }
    }
}

TEST(cli_help_is_the_same_by_every_road)
{
    said all = brass("help");

    ck_assert_int_eq(all.code, 0);
    ck_assert_str_eq(brass("--help").out, all.out);
    ck_assert_str_eq(brass("-h").out, all.out);
    ck_assert_str_eq(brass("--log-level debug --help").out, all.out);
    ck_assert_str_eq(brass("prog --help").out, brass("help prog").out);
    ck_assert_str_eq(brass("--help prog").out, brass("help prog").out);
    ck_assert_str_eq(brass("--help version").out, brass("version -h").out);
    fails("--help vers", 2,
          "brass: unknown command 'vers'; did you mean 'version'? (see brass "
          "--help)\n");
    /* Without a command: the same screen, as an error. */
    ck_assert_str_eq(brass("").err, all.out);
    ck_assert_int_eq(brass("").code, 2);
    /* The machine's state is no reason to withhold help. */
    ck_assert_int_eq(brass_env("help --help", "BRASS_LOG_LEVEL=x").code, 0);
}

TEST(cli_long_help_names_variables)
{
    said s = brass("help version");

    ck_assert_int_eq(s.code, 0);
    ck_assert_ptr_nonnull(strstr(s.out, "BRASS_JSON"));
    fails("help nothing", 2, "brass help: there is no command 'nothing'\n");
    fails("help sim", 2,
          "brass help: there is no command 'sim'; did you mean 'prog sim'?\n");
    fails("help prog nothing", 2,
          "brass help: there is no command 'nothing'\n");
    fails("help --man nothing", 2,
          "brass help: there is no man page 'nothing'\n");
}

/* ---- usage --------------------------------------------------------------- */

TEST(cli_mistypes_get_a_hint_and_exit_2)
{
    fails("vresion", 2,
          "brass: unknown command 'vresion'; did you mean 'version'? (see "
          "brass --help)\n");
    fails("sim", 2,
          "brass: unknown command 'sim'; did you mean 'prog sim'? (see brass "
          "--help)\n");
    fails("zzz --json", 2, "brass: unknown command 'zzz' (see brass --help)\n");
    fails("version --jsn", 2,
          "brass version: unknown option '--jsn'; did you mean '--json'? (see "
          "brass version --help)\n");
    fails("version -json", 2,
          "brass version: unknown option '-j' in '-json'; did you mean "
          "'--json'? (see brass version --help)\n");
    fails("version now", 2,
          "brass version: 'now' is one argument too many (see brass version "
          "--help)\n");
    fails("completion", 2,
          "brass completion: missing argument: bash (see brass completion "
          "--help)\n");
    fails("completion fish", 2,
          "brass completion: 'fish' is not a shell known here: bash (see "
          "brass completion --help)\n");
    fails("version --log-level=loud", 2,
          "brass version: --log-level: 'loud' is not one of "
          "error|warn|info|debug|trace (see brass version --help)\n");
    fails("--jsn version", 2,
          "brass: unknown option '--jsn' (see brass --help)\n");
    fails("--json version", 2,
          "brass: unknown option '--json' (see brass --help)\n");
    ck_assert_int_eq(brass("-- version").code, 0);
    fails("--log-level", 2,
          "brass: --log-level needs a value: LEVEL (see brass --help)\n");
}

TEST(cli_groups_ask_which_command)
{
    said s = brass("prog");

    ck_assert_int_eq(s.code, 2);
    ck_assert_int_eq(strncmp(s.err, "brass prog: which one? ", 23), 0);
    ck_assert_int_eq(lines_of(s.err), 1);
    fails("prog zzz", 2,
          "brass prog: unknown command 'zzz' (see brass prog --help)\n");
    fails("prog --zzz", 2,
          "brass prog: unknown option '--zzz' (see brass prog "
          "--help)\n");
}

TEST(cli_failure_is_one_line_of_visible_characters)
{
    br_status st = {0};
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    br_cli cli = {.name = "prog check", .out = stdout, .err = f};

    br_fail(&st, BR_E_FORMAT, "a\nb\x1b[31m\tc: \xc3\xa9");
    ck_assert_int_eq(br_cli_fail(&cli, &st), 3);
    fclose(f);
    ck_assert_str_eq(text, "brass prog check: a\\x0ab\\x1b[31m\\x09c: "
                           "\xc3\xa9\n");
    free(text);
}

TEST(cli_bad_variable_is_named)
{
    said s = brass_env("version", "BRASS_JSON=maybe");

    ck_assert_int_eq(s.code, 2);
    ck_assert_str_eq(s.err, "brass version: BRASS_JSON: 'maybe' is not yes or "
                            "no (see brass version --help)\n");
    /* help does not take --json and does not care. */
    ck_assert_int_eq(brass_env("help", "BRASS_JSON=maybe").code, 0);
    s = brass_env("version", "BRASS_JSON=yes");
    ck_assert_int_eq(s.out[0], '{');
    ck_assert_int_ne(brass_env("version --no-json", "BRASS_JSON=1").out[0],
                     '{');
}

TEST(cli_warns_of_unknown_variables)
{
    said s = brass_env("version", "BRASS_JSN=1");

    ck_assert_int_eq(s.code, 0);
    ck_assert_ptr_nonnull(
        strstr(s.err, "Z warn cli.env_unknown: BRASS_JSN is no variable of "
                      "this program; did you mean 'BRASS_JSON'?\n"));
    ck_assert_str_eq(brass_env("version --log-level=error", "BRASS_JSN=1").err,
                     "");
    /* Programs that brasscc makes have theirs. */
    ck_assert_str_eq(brass_env("version", "BRASS_CUDA_ON= BRASS_CLANG=x").err,
                     "");
    ck_assert_ptr_nonnull(
        strstr(brass_env("version", "BRASS_CUDA_ONE=1").err, "CUDA_ONE is no"));
    s = brass_env("version", "BRASS_JSN=1 BRASS_LOG_FORMAT=json");
    ck_assert_int_eq(strncmp(s.err, "{\"time\":", 8), 0);
    ck_assert_int_eq(lines_of(s.err), 1);
}

/* ---- version, man, completion ------------------------------------------- */

/* A flag for another tier than the one that runs is not ignored in silence; a variable
 * waits for its tier. */
TEST(cli_warns_of_flags_of_other_tiers)
{
    static const struct {
        const char *args, *env, *says;
    } on[] = {
        {"bench no.gguf --gpu-memory 1g", "",
         "cli.option_unused: --gpu-memory is for tier cuda: of no use on cpu"},
        {"chat no.gguf --gpu-timeout 9", "",
         "cli.option_unused: --gpu-timeout is for tier cuda: of no use on cpu"},
        {"run no.gguf hi --mode mega --tier cpu", "",
         "--mode is for tier amd: of no use on cpu"},
        {"bench no.gguf -t 2 --tier cuda", "",
         "--threads is for tier cpu: of no use on cuda"},
        {"bench no.gguf -t 2 --sim gfx1201", "",
         "--threads is for tier cpu: of no use on amd"},
        {"run no.gguf hi --sim gfx1201 --tier cuda", "",
         "--sim is for tier amd: of no use on cuda"},
        {"run no.gguf hi --cache-bytes 0 --tier ref", "",
         "--cache-bytes is for tier cpu: of no use on ref"},
        {"logits no.gguf --tokens 1 -o x -t 2", "",
         "--threads is for tier cpu: of no use on ref"},
        {"prog run no.json --bind . -o x -t 2", "",
         "--threads is for tier cpu: of no use on ref"},
        {"validate no.gguf -p hi --sim gfx1201", "",
         "--sim is for tier amd: of no use on ref,cpu"},
        {"bench no.gguf --gpu-memory 1g --tier cuda", "", NULL},
        {"bench no.gguf -t 2", "", NULL},
        {"run no.gguf hi --sim gfx1201 --mode mega", "", NULL},
        {"run no.gguf hi --tier amd-t2 --mode mega", "", NULL},
        {"validate no.gguf -p hi --tiers ref,amd-t1 --sim gfx1201", "", NULL},
        {"validate no.gguf -p hi -t 2", "", NULL},
        {"bench no.gguf", "BRASS_GPU_MEMORY=1g BRASS_THREADS=1", NULL},
    };

    for (size_t i = 0; i < BR_COUNT(on); i++) {
        said s = brass_env(on[i].args, on[i].env);

        if (on[i].says)
            ck_assert_msg(strstr(s.err, on[i].says) != NULL, "%s: %s",
                          on[i].args, s.err);
        else
            ck_assert_msg(!strstr(s.err, "option_unused"), "%s: %s", on[i].args,
                          s.err);
    }
}

TEST(cli_version_says_what_this_is)
{
    said s = brass("version --json");
    br_status st = {0};
    br_json *doc;
    br_arena a;

    br_arena_init(&a, 0);
    t_ok(br_json_parse(&doc, &a, s.out, strlen(s.out), 0, &st), &st);
    ck_assert(br_json_get(doc, "version") && br_json_get(doc, "commit") &&
              br_json_get(doc, "compiler") && br_json_get(doc, "features"));
    ck_assert_int_eq(lines_of(s.out), 1);
    br_arena_fini(&a);
    s = brass("--version");
    ck_assert_int_eq(strncmp(s.out, "brass ", 6), 0);
    ck_assert_str_eq(brass("version").out, s.out);
}

static void
lint_page(const char *page)
{
    said s = brass(t_printf("help --man %s", page));
    t_proc r;

    ck_assert_int_eq(s.code, 0);
    ck_assert_int_eq(strncmp(s.out, ".TH BRASS", 9), 0);
    if (t_have_program("groff")) {
        t_exec(&r, (const char *[]){"groff", "-man", "-Tutf8", "-ww", NULL},
               s.out, strlen(s.out));
        ck_assert_str_eq(r.err, "");
        ck_assert_int_eq(r.exit, 0);
    }
    if (t_have_program("mandoc")) {
        t_exec(&r, (const char *[]){"mandoc", "-Tlint", NULL}, s.out,
               strlen(s.out));
        ck_assert_str_eq(r.out, "");
    }
}

TEST(cli_man_pages_are_clean)
{
    said pages = brass("help --pages");
    char *save;
    int n = 0;

    lint_page("");
    for (char *p = strtok_r(pages.out, "\n", &save); p;
         p = strtok_r(NULL, "\n", &save), n++)
        lint_page(p);
    ck_assert_int_ge(n, 3);
}

static void
completes(const char *script, const char *line, const char *want)
{
    const char *run =
        "eval \"$1\"; COMP_WORDS=($2); [[ $2 == *' ' ]] && COMP_WORDS+=(''); "
        "COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _brass; echo \"${COMPREPLY[*]}\"";
    t_proc r;

    t_exec(&r, (const char *[]){"bash", "-c", run, "bash", script, line, NULL},
           NULL, 0);
    ck_assert_str_eq(r.err, "");
    ck_assert_str_eq(r.out, t_printf("%s\n", want));
}

TEST(cli_completion_offers_what_fits)
{
    const char *script = brass("completion bash").out;

    if (!t_have_program("bash"))
        t_skip("no bash here");
    completes(script, "brass ver", "version");
    completes(script, "brass version --js", "--json");
    completes(script, "brass version ", "");
    completes(script, "brass version --log-level ",
              "error warn info debug trace");
    completes(script, "brass version --log-format = j", "json");
    completes(script, "brass version --log-format =", "text json");
    completes(script, "brass help vers", "version");
    /* The same name, another option. */
    completes(script, "brass run m --tier a", "auto amd amd-t1 amd-t2");
    completes(script, "brass prog run m --tier a", "amd amd-t1 amd-t2");
    completes(script, "brass kernel bench x --on ",
              "interp x86-64 x86-64-avx2");
    completes(script, "brass kernel compile x --target = k", "kir");
    completes(script, "brass prog lower x --target ", "");
}

/* ---- the process --------------------------------------------------------- */

static br_code
help_with_little_memory(void *arg, br_status *st)
{
    br_str out = {0};
    br_code code = br_cli_help(br_cli_cmd(0), "", true, &out, st);

    (void)arg;
    if (code == BR_OK)
        code = br_cli_help(NULL, "", false, &out, st);
    if (code == BR_OK)
        code = br_cli_man("", &out, st);
    if (code == BR_OK)
        code = br_cli_man(br_cli_page(0), &out, st);
    br_str_fini(&out);
    return code;
}

TEST(cli_texts_survive_every_failed_allocation)
{
    t_each_oom(help_with_little_memory, NULL);
}

/* Every allocation of a whole command: exit code 1 and one line each time. */
TEST(cli_main_survives_every_failed_allocation)
{
    for (size_t i = 1; i < 200; i++) {
        said s;

        t_mem_fail_at(i);
        s = brass("version --json");
        if (!t_mem_failed()) {
            ck_assert_int_eq(s.code, 0);
            ck_assert_uint_gt(i, 3);
            return;
        }
        ck_assert_int_eq(s.code, 1);
        ck_assert_int_eq(lines_of(s.err), 1);
        ck_assert_str_eq(s.out, "");
    }
    ck_abort_msg("version --json allocates 200 times");
}

TEST(cli_notices_a_full_disk_and_a_closed_file)
{
    const char *full = t_printf("exec %s version >/dev/full", t_brass());
    const char *closed = t_printf("%s version 2>&1 >&-; echo $?", t_brass());
    t_proc r;

    t_exec(&r, (const char *[]){"sh", "-c", full, NULL}, NULL, 0);
    ck_assert_str_eq(r.err, "brass version: standard output: No space left on "
                            "device\n");
    ck_assert_int_eq(r.exit, 1);
    t_exec(&r, (const char *[]){"sh", "-c", closed, NULL}, NULL, 0);
    ck_assert_str_eq(r.out, "brass version: standard output: Bad file "
                            "descriptor\n1\n");
}

TEST(cli_ends_quietly_on_a_closed_pipe)
{
    const char *script;
    t_proc r;

    if (!t_have_program("bash"))
        t_skip("no bash here");
    /* The reader has ended before there is anything to write. */
    script = t_printf("exec 4> >(:); wait $!; %s completion bash >&4; echo $?",
                      t_brass());
    t_exec(&r, (const char *[]){"bash", "-c", script, NULL}, NULL, 0);
    ck_assert_str_eq(r.out, t_printf("%d\n", 128 + SIGPIPE));
    ck_assert_str_eq(r.err, "");
}

TEST(progress_shows_only_at_a_terminal_after_a_second)
{
    const int64_t second = 1000000000;
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    br_cli cli = {.err = f};
    br_progress p;
    int64_t t;

    br_progress_begin(&p, &cli, "lowering", 200);
    ck_assert(!p.terminal);
    t = p.begin_ns;
    br_progress_at(&p, 10, t + 5 * second);
    br_progress_end(&p);
    fflush(f);
    ck_assert_str_eq(text, "");
    p.terminal = true;
    br_progress_at(&p, 10, t + second / 2);
    br_progress_at(&p, 20, t + second);
    br_progress_at(&p, 30, t + second + second / 20);
    br_progress_at(&p, 200, t + second * 2);
    br_progress_end(&p);
    br_progress_end(&p);
    p.total = 0;
    br_progress_at(&p, 7, t + second * 3);
    br_progress_end(&p);
    fclose(f);
    ck_assert_str_eq(text, "\rlowering 10% (20 of 200, 1 s)\033[K"
                           "\rlowering 100% (200 of 200, 2 s)\033[K\r\033[K"
                           "\rlowering 7 (3 s)\033[K\r\033[K");
    free(text);
}

/* What is logged while a line is shown goes above it; elsewhere, and after it, it is
 * the log's lines alone. */
TEST(progress_stays_below_what_is_logged)
{
    char *text[2] = {NULL, NULL};
    size_t n[2];
    FILE *f = open_memstream(&text[0], &n[0]);
    FILE *other = open_memstream(&text[1], &n[1]);
    br_cli cli = {.err = f};
    br_progress p;

    br_progress_begin(&p, &cli, "packing weights", 4);
    p.terminal = true;
    br_progress_above(f, "a\n", 2);
    br_progress_at(&p, 1, p.begin_ns + INT64_C(1000000000));
    br_progress_above(f, "b\nc\n", 4);
    br_progress_above(other, "d\n", 2);
    br_progress_end(&p);
    br_progress_above(f, "e\n", 2);
    fclose(f);
    fclose(other);
    ck_assert_str_eq(text[0], "a\n\rpacking weights 25% (1 of 4, 1 s)\033[K"
                              "\r\033[Kb\nc\n"
                              "packing weights 25% (1 of 4, 1 s)"
                              "\r\033[Ke\n");
    ck_assert_str_eq(text[1], "d\n");
    free(text[0]);
    free(text[1]);
}

/* What a line at a terminal of so many columns is, of such a TERM. */
static const char *
line_at(unsigned short columns, const char *term)
{
    struct winsize size = {.ws_row = 24, .ws_col = columns};
    char *env[] = {t_printf("TERM=%s", term), NULL};
    static char got[200];
    ssize_t n = 0;
    br_progress p;
    int us, it;
    FILE *f;

    ck_assert_int_eq(openpty(&us, &it, NULL, NULL, &size), 0);
    f = fdopen(it, "w");
    br_progress_begin(&p, &(br_cli){.err = f, .env = env}, "packing weights",
                      4);
    br_progress_at(&p, 1, p.begin_ns + INT64_C(1000000000));
    if (p.shown)
        n = read(us, got, sizeof got - 1);
    ck_assert_int_ge(n, 0);
    got[n] = 0;
    fclose(f);
    close(us);
    return got;
}

/* A line that wraps cannot be rewritten: each time it leaves one behind. */
TEST(progress_fits_the_terminal)
{
    ck_assert_str_eq(line_at(80, "xterm"),
                     "\rpacking weights 25% (1 of 4, 1 s)\033[K");
    ck_assert_str_eq(line_at(20, "xterm"), "\rpacking weights 25%\033[K");
    ck_assert_str_eq(line_at(18, "xterm"), "\rpacking weights 2\033[K");
    ck_assert_str_eq(line_at(0, ""), "\rpacking weights 25% (1 of 4, 1 s)"
                                     "\033[K");
    ck_assert_str_eq(line_at(80, "dumb"), "");
}
