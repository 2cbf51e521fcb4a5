/* cli_main.c - from argv to a handler, and to an exit code.
 *
 *   brass --log-level info prog check p.json --json
 *         leading globals  words      all options of the command
 *
 * Order of work: --help before anything that can fail on the machine's state;
 * then variables, defaults, the count of arguments, the handler, and last the
 * flush of standard output, whose failure turns success into exit code 1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/log.h"
#include "base/thread.h"
#include "cli/progress.h"
#include "cli/tiers.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int
print_help(br_cli *cli, const char *group)
{
    br_status st = {0};
    br_str text = {0};
    int code = 0;

    if (br_cli_help(cli->cmd, group, false, &text, &st) != BR_OK)
        code = br_cli_fail(cli, &st);
    else
        fwrite(text.at, 1, text.n, cli->out);
    br_str_fini(&text);
    return code;
}

/* What follows the words that matched is no subcommand. */
static int
unknown_command(br_cli *cli, const char *const *words, int n, int used)
{
    char hint[100];

    cli->name = used ? words[0] : "";
    if (used == n) {
        br_str list = {0};

        br_cli_group_words(words[0], &list);
        fprintf(cli->err, "brass %s: which one? %s (see brass %s --help)\n",
                words[0], br_str_z(&list), words[0]);
        br_str_fini(&list);
        return br_code_exit(BR_E_USAGE);
    }
    br_cli_suggest(words, used, hint, sizeof hint);
    return br_cli_usage(cli, "unknown command '%.60s'%s", words[used], hint);
}

static int
check_args(br_cli *cli)
{
    const br_cmd *cmd = cli->cmd;

    if (cli->n_args < cmd->lo)
        return br_cli_usage(cli, "missing argument: %s", cmd->args);
    if (cmd->hi >= 0 && cli->n_args > cmd->hi)
        return br_cli_usage(cli, "'%.60s' is one argument too many",
                            cli->args[cmd->hi]);
    return 0;
}

static int
fail_usage(br_cli *cli, const br_status *st)
{
    if (st->code != BR_E_USAGE)
        return br_cli_fail(cli, st);
    return br_cli_usage(cli, "%s", st->msg);
}

/* ---- log ---------------------------------------------------------------- */

typedef struct log_to {
    FILE *f;
    br_log_format format;
} log_to;

static void
put_log(void *ctx, const br_log_record *r)
{
    const log_to *to = ctx;
    char line[BR_LOG_LINE];

    br_progress_above(to->f, line, br_log_line(line, r, to->format));
}

static br_log_format
log_format(const br_cli *cli)
{
    int fd = fileno(cli->err);

    if (br_opt_enum(cli, BR_OPT_log_format) == 1)
        return BR_LOG_JSON;
    return fd >= 0 && isatty(fd) ? BR_LOG_PLAIN : BR_LOG_TIMED;
}

/* ---- one command -------------------------------------------------------- */

/* Of brasscc and of the programs it makes. */
static bool
is_of_another(const char *var)
{
    static const char *const names[] = {"BRASS_CLANG", "BRASS_CUDA_ON",
                                        "BRASS_CUDA_STRICT"};

    for (size_t i = 0; i < BR_COUNT(names); i++)
        if (strncmp(var, names[i], strlen(names[i])) == 0 &&
            var[strlen(names[i])] == '=')
            return true;
    return false;
}

static void
warn_of_typos(const br_cli *cli)
{
    char typo[200];

    for (size_t at = 0;
         br_options_env_typo(&cli->options, cli->env, &at, typo, sizeof typo);)
        if (!is_of_another(cli->env[at - 1])) /* the one it found */
            br_log(BR_EV_env_unknown, "%s", typo);
}

/* The handler, with the log going to stderr while it runs. */
static int
run_logged(br_cli *cli)
{
    log_to to = {cli->err, log_format(cli)};
    br_log_sink sink = {put_log, &to,
                        (br_log_level)br_opt_enum(cli, BR_OPT_log_level)};
    int64_t begin = br_now_ns();
    int code;

    br_log_install(&sink);
    warn_of_typos(cli);
    br_cli_warn_of_tier(cli);
    br_log(BR_EV_command_begins, "%s", cli->cmd->words);
    code = cli->cmd->run(cli);
    br_log(BR_EV_command_ends, "%s: exit code %d after %.3f s", cli->cmd->words,
           code, (double)(br_now_ns() - begin) * 1e-9);
    br_log_install(NULL);
    return code;
}

static int
run_command(br_cli *cli, int argc, char *const *argv, int at)
{
    br_options *o = &cli->options;
    br_status st = {0};
    int code;

    cli->name = cli->cmd->words;
    for (const uint16_t *t = cli->cmd->takes; *t < BR_OPT_COUNT; t++)
        br_options_take(o, *t);
    if (br_options_argv(o, argc, argv, &at, false, &st) != BR_OK)
        return fail_usage(cli, &st);
    if (o->stopped)
        return print_help(cli, "");
    if (br_options_env(o, cli->env, &st) != BR_OK ||
        br_options_defaults(o, &st) != BR_OK)
        return fail_usage(cli, &st);
    cli->n_args = (int)o->args.n;
    cli->args = (const char *const *)o->args.at;
    code = check_args(cli);
    return code ? code : run_logged(cli);
}

/* "brass --help", "brass --help prog", "brass prog --help": words are those of
 * the command, n of them. */
static int
help_on(br_cli *cli, const char *const *words, int n)
{
    int used = 0;

    cli->cmd = n ? br_cli_find(words, n, &used) : NULL;
    if (!cli->cmd && used < n)
        return unknown_command(cli, words, n, used);
    return print_help(cli, n ? words[0] : "");
}

/* Words that begin commands but are none: --help may follow, else it is an
 * error. */
static int
run_group(br_cli *cli, int argc, char *const *argv, int at, int n)
{
    const char *const *words = (const char *const *)argv + at;
    br_status st = {0};

    cli->name = words[0];
    at += n;
    if (br_options_argv(&cli->options, argc, argv, &at, true, &st) != BR_OK)
        return fail_usage(cli, &st);
    if (cli->options.stopped)
        return help_on(cli, words, n);
    return unknown_command(cli, words, n, n);
}

static int
dispatch(br_cli *cli, int argc, char *const *argv)
{
    static const char *const version = "version";
    int at = 1, n = 0, used = 0;
    const char *const *words;
    br_status st = {0};

    /* "brass --version" is what a packager's script will try. */
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        cli->cmd = br_cli_find(&version, 1, &used);
        return run_command(cli, argc, argv, 2);
    }
    if (br_options_argv(&cli->options, argc, argv, &at, true, &st) != BR_OK)
        return fail_usage(cli, &st);
    words = (const char *const *)argv + at;
    while (at + n < argc && words[n][0] != '-')
        n++;
    if (cli->options.stopped)
        return help_on(cli, words, n);
    if (n == 0) {
        cli->out = cli->err;
        return print_help(cli, "") ? 1 : br_code_exit(BR_E_USAGE);
    }
    cli->cmd = br_cli_find(words, n, &used);
    if (cli->cmd)
        return run_command(cli, argc, argv, at + used);
    if (used == n)
        return run_group(cli, argc, argv, at, n);
    return unknown_command(cli, words, n, used);
}

int
br_cli_main(int argc, char *const *argv, char *const *env, FILE *out, FILE *err)
{
    br_cli cli = {.out = out, .err = err, .env = env, .name = ""};
    br_status st = {0};
    int code;

    if (br_cli_options_of(NULL, &cli.options, &st) != BR_OK)
        return br_cli_fail(&cli, &st);
    code = dispatch(&cli, argc, argv);
    br_options_fini(&cli.options);
    errno = 0;
    if (fflush(out) != 0 || ferror(out)) {
        br_fail(&st, BR_E_IO, "standard output: %s",
                errno ? strerror(errno) : "not all was written");
        /* One line: a handler that failed has already had its say. */
        code = code ? code : br_cli_fail(&cli, &st);
    }
    return code;
}
