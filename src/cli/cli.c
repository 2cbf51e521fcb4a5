/* cli.c - what a handler calls: its options, its output, its one way to fail.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "model/quant.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "BRASS_"

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

const char *
br_cli_env(const br_cli *cli, const char *name)
{
    return br_env_find(cli->env, name);
}

bool
br_cli_dumb(const br_cli *cli)
{
    const char *term = br_cli_env(cli, "TERM");

    return term && strcmp(term, "dumb") == 0;
}

bool
br_cli_styled(const br_cli *cli, FILE *f)
{
    int fd = fileno(f);

    return fd >= 0 && isatty(fd) && !br_cli_env(cli, "NO_COLOR") &&
           !br_cli_dumb(cli);
}

bool
br_cli_folder(const br_cli *cli, const char *xdg, const char *home_path,
              br_str *out)
{
    return br_folder_user(cli->env, xdg, home_path, out);
}

int
br_cli_kv(const br_cli *cli, bool fast)
{
    static const int types[] = {BR_Q_F32, BR_Q_F16, BR_Q_Q8_0};
    int i = br_opt_enum(cli, BR_OPT_kv_type);

    return i >= 0 ? types[i] : fast ? BR_Q_F16 : BR_Q_F32;
}

const char *
br_cli_cache(const br_cli *cli, br_str *path)
{
    if (!br_cli_folder(cli, "XDG_CACHE_HOME", ".cache", path) || path->oom)
        return NULL;
    (void)br_folder_make(path);
    return path->at;
}

bool
br_cli_hold_interrupts(bool hold)
{
    sigset_t interrupt, before;

    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &interrupt, &before);
    return sigismember(&before, SIGINT);
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
    br_status st = {0};
    char text[sizeof st.msg];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    br_fail(&st, BR_E_USAGE, "%s (see brass%s%s --help)", text,
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

bool
br_cli_time(const char *text, int64_t *out)
{
    static const char *const forms[] = {
        "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S",
        "%Y-%m-%dT%H:%M", "%Y-%m-%d"};

    for (size_t i = 0; i < BR_COUNT(forms); i++) {
        struct tm tm = {0};
        const char *end = strptime(text, forms[i], &tm);
        int day = tm.tm_mday;

        if (end && !*end) {
            *out = (int64_t)timegm(&tm);
            return tm.tm_mday == day; /* there was no 30th of February */
        }
    }
    return false;
}

bool
br_cli_piped(const char **path)
{
    static const char out[] = "/dev/stdout";

    if (strcmp(*path, "-") != 0 && strcmp(*path, out) != 0)
        return false;
    *path = out;
    return true;
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

br_code
br_cli_options_of(const br_cmd *cmd, br_options *o, br_status *st)
{
    BR_TRY(br_options_init(o, br_cli_option_rows, BR_OPT_COUNT, PREFIX, st));
    for (const uint16_t *t = cmd ? cmd->takes : NULL; t && *t < BR_OPT_COUNT;
         t++)
        br_options_take(o, *t);
    return BR_OK;
}
