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

#include <errno.h>
#include <string.h>

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
    print_line(cli->err, cli->cmd ? cli->cmd->words : "",
               *st->msg ? st->msg : br_code_text(st->code));
    return br_code_exit(st->code);
}

int
br_cli_usage(br_cli *cli, const char *fmt, ...)
{
    br_status st = {.code = BR_E_USAGE};
    const char *words = cli->cmd ? cli->cmd->words : "";
    char text[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    snprintf(st.msg, sizeof st.msg, "%s (see brass%s%s --help)", text,
             *words ? " " : "", words);
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

/* What follows the words that matched is no subcommand. */
static int
unknown_command(br_cli *cli, const char *const *words, int n, int used)
{
    const char *group = used ? words[0] : "";
    size_t skip = used ? strlen(group) + 1 : 0;
    char hint[100];
    br_suggest near;

    if (used == n) {
        fprintf(cli->err, "brass %s: which one? ", group);
        for (size_t i = 0; i < br_cli_cmd_count(); i++) {
            const char *w = br_cli_cmd(i)->words;

            if (strncmp(w, group, skip - 1) == 0 && w[skip - 1] == ' ')
                fprintf(cli->err, "%s ", w + skip);
        }
        fprintf(cli->err, "(see brass %s --help)\n", group);
        return br_code_exit(BR_E_USAGE);
    }
    br_suggest_begin(&near, br_text_z(words[used]));
    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        const char *w = br_cli_cmd(i)->words;

        if (used && (strncmp(w, group, skip - 1) != 0 || w[skip - 1] != ' '))
            continue;
        br_suggest_offer(&near, (br_text){w + skip, strcspn(w + skip, " ")});
    }
    br_suggest_text(&near, used ? "" : "brass ", hint, sizeof hint);
    return br_cli_usage(cli, "%s%sunknown command '%.60s'%s", group,
                        used ? ": " : "", words[used], hint);
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

static int
run_command(br_cli *cli, int argc, char *const *argv, int at)
{
    br_options *o = &cli->options;
    br_status st = {0};
    char typo[200];
    size_t var = 0;
    int code;

    for (const uint16_t *t = cli->cmd->takes; *t < BR_OPT_COUNT; t++)
        br_options_take(o, *t);
    if (br_options_argv(o, argc, argv, &at, false, &st) != BR_OK)
        return fail_usage(cli, &st);
    if (o->stopped)
        return print_help(cli, "");
    if (br_options_env(o, cli->env, &st) != BR_OK ||
        br_options_defaults(o, &st) != BR_OK)
        return fail_usage(cli, &st);
    while (br_options_env_typo(o, cli->env, &var, typo, sizeof typo))
        print_line(cli->err, "", typo);
    cli->n_args = (int)o->args.n;
    cli->args = (const char *const *)o->args.at;
    code = check_args(cli);
    return code ? code : cli->cmd->run(cli);
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
        const char *group = argv[at];

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
    br_cli cli = {.out = out, .err = err, .env = env};
    br_status st = {0};
    int code;

    if (br_cli_options_of(NULL, &cli.options, &st) != BR_OK)
        return br_cli_fail(&cli, &st);
    code = dispatch(&cli, argc, argv);
    br_options_fini(&cli.options);
    errno = 0;
    if (fflush(out) != 0 || ferror(out)) {
        print_line(err, "", errno ? strerror(errno) : "write failed");
        code = code ? code : 1;
    }
    return code;
}
