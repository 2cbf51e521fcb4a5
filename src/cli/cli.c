/* cli.c - from argv to a handler, and the few ways a handler can end.
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

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "BRASS_"

/* ---- what a handler calls ----------------------------------------------- */

static const br_option_value *
value_of(const br_cli *cli, br_opt_id id)
{
    br_assert((unsigned)id < BR_OPT_COUNT);
    br_assert(cli->options.taken[id] && "commands.def: T(id) is missing");
    return &cli->options.values[id];
}

bool
br_opt_given(const br_cli *cli, br_opt_id id)
{
    br_option_from from = value_of(cli, id)->from;

    return from == BR_FROM_FLAG || from == BR_FROM_ENV;
}

bool
br_opt_bool(const br_cli *cli, br_opt_id id)
{
    br_assert(br_cli_option_rows[id].type == BR_OPTION_BOOL);
    return value_of(cli, id)->b;
}

int64_t
br_opt_int(const br_cli *cli, br_opt_id id)
{
    br_assert(br_cli_option_rows[id].type == BR_OPTION_INT ||
              br_cli_option_rows[id].type == BR_OPTION_BYTES);
    return value_of(cli, id)->i;
}

double
br_opt_f64(const br_cli *cli, br_opt_id id)
{
    br_assert(br_cli_option_rows[id].type == BR_OPTION_FLOAT);
    return value_of(cli, id)->f;
}

int
br_opt_enum(const br_cli *cli, br_opt_id id)
{
    const br_option_value *v = value_of(cli, id);

    br_assert(br_cli_option_rows[id].type == BR_OPTION_ENUM);
    return v->from == BR_FROM_NOWHERE ? -1 : (int)v->i;
}

const char *
br_opt_str(const br_cli *cli, br_opt_id id)
{
    return value_of(cli, id)->s;
}

size_t
br_opt_list(const br_cli *cli, br_opt_id id, const char *const **out)
{
    const br_option_value *v = value_of(cli, id);

    br_assert(br_cli_option_rows[id].type == BR_OPTION_LIST);
    *out = (const char *const *)v->list.at;
    return v->list.n;
}

/* One line whatever the text holds: a file name may hold anything. */
static void
print_line(FILE *f, const char *who, const char *text)
{
    fprintf(f, "brass%s%s: ", *who ? " " : "", who);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c < 0x20 || c == 0x7f)
            fprintf(f, "\\x%02x", c);
        else
            fputc(c, f);
    }
    fputc('\n', f);
}

int
br_cli_fail(br_cli *cli, const br_status *st)
{
    br_assert(st->code != BR_OK && "there is a failure to report");
    fflush(cli->out);
    print_line(cli->err, cli->name,
               *st->msg ? st->msg : br_code_text(st->code));
    return br_code_exit(st->code);
}

int
br_cli_usage(br_cli *cli, const char *fmt, ...)
{
    br_status st = {.code = BR_E_USAGE};
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    snprintf(st.msg, sizeof st.msg, "%s (see brass%s%s --help)", text,
             *cli->name ? " " : "", cli->name);
    return br_cli_fail(cli, &st);
}

int
br_cli_json_out(br_cli *cli, const br_str *doc)
{
    br_status st = {0};

    if (doc->oom) {
        br_fail(&st, BR_E_OOM, "out of memory while writing the result");
        return br_cli_fail(cli, &st);
    }
    fwrite(doc->at, 1, doc->n, cli->out);
    fputc('\n', cli->out);
    return 0;
}

br_code
br_cli_write(br_cli *cli, const char *path, const void *p, size_t n,
             br_status *st)
{
    if (path && strcmp(path, "-") != 0)
        return br_file_write(path, p, n, st);
    if (fwrite(p, 1, n, cli->out) != n)
        return br_fail(st, BR_E_IO, "standard output: %s", strerror(errno));
    return BR_OK;
}

/* ---- dispatch ----------------------------------------------------------- */

br_code
br_cli_options_of(const br_cmd *cmd, br_options *o, br_status *st)
{
    BR_TRY(br_options_init(o, br_cli_option_rows, BR_OPT_COUNT, PREFIX, st));
    for (const uint16_t *t = cmd ? cmd->takes : NULL; t && *t < BR_OPT_COUNT;
         t++)
        br_options_take(o, *t);
    return BR_OK;
}

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

/* The words that commands have at place `skip` of their words, if they begin
 * with `group` and a blank; "" is every first word. */
static void
offer_words(const char *group, size_t skip, br_suggest *near, FILE *list)
{
    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        const char *w = br_cli_cmd(i)->words;

        if (skip && (strncmp(w, group, skip - 1) != 0 || w[skip - 1] != ' '))
            continue;
        if (list)
            fprintf(list, " %s", w + skip);
        else
            br_suggest_offer(near, (br_text){w + skip, strcspn(w + skip, " ")});
    }
}

/* What follows the words that matched is no subcommand. */
static int
unknown_command(br_cli *cli, const char *const *words, int n, int used)
{
    const char *group = used ? words[0] : "";
    size_t skip = used ? strlen(group) + 1 : 0;
    char hint[100];
    br_suggest near;

    cli->name = group;
    if (used == n) {
        fprintf(cli->err, "brass %s: which one?", group);
        offer_words(group, skip, NULL, cli->err);
        fprintf(cli->err, " (see brass %s --help)\n", group);
        return br_code_exit(BR_E_USAGE);
    }
    br_suggest_begin(&near, br_text_z(words[used]));
    offer_words(group, skip, &near, NULL);
    br_suggest_text(&near, "", hint, sizeof hint);
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

    /* One call, one write: stdio's lock keeps lines of threads apart. */
    fwrite(line, 1, br_log_line(line, r, to->format), to->f);
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

static void
warn_of_typos(const br_cli *cli)
{
    char typo[200];

    for (size_t at = 0;
         br_options_env_typo(&cli->options, cli->env, &at, typo, sizeof typo);)
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

static int
dispatch(br_cli *cli, int argc, char *const *argv)
{
    static const char *const version = "version";
    br_options *o = &cli->options;
    br_status st = {0};
    int at = 1, n = 0, used = 0;

    /* "brass --version" is what a packager's script will try. */
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        cli->cmd = br_cli_find(&version, 1, &used);
        return run_command(cli, argc, argv, 2);
    }
    if (br_options_argv(o, argc, argv, &at, true, &st) != BR_OK)
        return fail_usage(cli, &st);
    while (at + n < argc && argv[at + n][0] != '-')
        n++;
    if (o->stopped)
        return print_help(cli, "");
    if (n == 0) {
        cli->out = cli->err;
        return print_help(cli, "") ? 1 : br_code_exit(BR_E_USAGE);
    }
    cli->cmd = br_cli_find((const char *const *)argv + at, n, &used);
    if (cli->cmd)
        return run_command(cli, argc, argv, at + used);
    /* "brass prog --help" */
    if (used == n && at + n < argc) {
        const char *group = cli->name = argv[at];

        at += n;
        if (br_options_argv(o, argc, argv, &at, true, &st) != BR_OK)
            return fail_usage(cli, &st);
        if (o->stopped)
            return print_help(cli, group);
        at -= n;
    }
    return unknown_command(cli, (const char *const *)argv + at, n, used);
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
