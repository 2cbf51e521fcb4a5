/* help.c - brass help, and the screens that --help prints.
 *
 * A screen is 24 lines of 80 columns (tests/unit/test_cli.c measures each), so
 * it holds usage, one sentence and the options; `brass help CMD` adds the rest.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <string.h>

static bool
in_group(const br_cmd *cmd, const char *group)
{
    size_t n = strlen(group);

    return strncmp(cmd->words, group, n) == 0 && cmd->words[n] == ' ';
}

static void
list_row(br_str *out, const char *name, int column, const char *text)
{
    br_str_printf(out, "  %-*s", column - 2, name);
    br_text_wrap(out, text, column, column);
}

/* "task programs: check fmt sim", or the summary of a lone command */
static void
page_text(const char *page, br_str *out)
{
    const char *what = br_cli_group(page);
    int used;

    if (what) {
        br_str_printf(out, "%s: ", what);
        br_cli_group_words(page, out);
    } else {
        br_str_puts(out, br_cli_find(&page, 1, &used)->summary);
    }
}

/* One screen: pages from help on, and second names, are only named. */
static void
list_all(br_str *out)
{
    br_str also = {0};
    bool rest = false;

    for (size_t i = 0; br_cli_page(i); i++) {
        const char *page = br_cli_page(i);
        br_str text = {0};

        page_text(page, &text);
        rest = rest || strcmp(page, "help") == 0;
        if (rest || strncmp(br_str_z(&text), "the same as ", 12) == 0)
            br_str_printf(&also, "%s%s", also.n ? " " : "", page);
        else
            list_row(out, page, 16, br_str_z(&text));
        out->oom |= text.oom;
        br_str_fini(&text);
    }
    list_row(out, "also", 16, br_str_z(&also));
    out->oom |= also.oom;
    br_str_fini(&also);
}

static void
list_group(const char *group, br_str *out)
{
    size_t column = 16;

    for (size_t i = 0; i < br_cli_cmd_count(); i++)
        if (in_group(br_cli_cmd(i), group))
            column = BR_MAX(column, strlen(br_cli_cmd(i)->words) + 4);
    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        const br_cmd *c = br_cli_cmd(i);

        if (in_group(c, group))
            list_row(out, c->words, (int)column, c->summary);
    }
}

static void
help_of_list(const char *group, br_str *out)
{
    if (*group) {
        br_str_printf(out, "usage: brass %s COMMAND [option...]\n%s\n\n", group,
                      br_cli_group(group));
        list_group(group, out);
        br_str_printf(out, "\n'brass help %s COMMAND' says more.\n", group);
        return;
    }
    br_str_puts(out, "usage: brass [option...] COMMAND [argument...]\n"
                     "runs language models, from the model file to the "
                     "machine code\n\n");
    list_all(out);
    br_str_puts(out, "\n'brass help COMMAND' says more; 'brass COMMAND "
                     "--help' lists its options.\n");
}

static void
paragraphs(const char *doc, br_str *out)
{
    while (*doc) {
        size_t n = strcspn(doc, "\n");
        br_str line = {0};

        br_str_put(&line, doc, n);
        br_str_putc(out, '\n');
        br_text_wrap(out, br_str_z(&line), 0, 0);
        out->oom |= line.oom;
        br_str_fini(&line);
        doc += n + (doc[n] == '\n');
    }
}

br_code
br_cli_help(const br_cmd *cmd, const char *group, bool longer, br_str *out,
            br_status *st)
{
    br_options o;

    if (cmd) {
        BR_TRY(br_cli_options_of(cmd, &o, st));
        br_str_printf(out, "usage: brass %s%s%s [option...]\n", cmd->words,
                      *cmd->args ? " " : "", cmd->args);
        br_text_wrap(out, cmd->summary, 0, 0);
        if (longer)
            paragraphs(cmd->doc, out);
        br_options_help(&o, longer, out);
        if (!longer)
            br_str_printf(out, "'brass help %s' says more.\n", cmd->words);
        br_options_fini(&o);
    } else {
        help_of_list(group, out);
    }
    if (out->oom)
        return br_fail(st, BR_E_OOM, "help: out of memory");
    return BR_OK;
}

static br_code
help_text(br_cli *cli, br_str *out, br_status *st)
{
    const char *first = cli->n_args ? cli->args[0] : "";
    const br_cmd *cmd;
    char hint[100];
    int used;

    if (br_opt_bool(cli, BR_OPT_pages)) {
        for (size_t i = 0; br_cli_page(i); i++)
            br_str_printf(out, "%s\n", br_cli_page(i));
        return out->oom ? br_fail(st, BR_E_OOM, "help: out of memory") : BR_OK;
    }
    if (br_opt_bool(cli, BR_OPT_man))
        return br_cli_man(first, out, st);
    cmd = br_cli_find(cli->args, cli->n_args, &used);
    if (used < cli->n_args) {
        br_cli_suggest(cli->args, used, hint, sizeof hint);
        return br_fail(st, BR_E_USAGE, "there is no command '%.60s'%s",
                       cli->args[used], hint);
    }
    return br_cli_help(cmd, first, true, out, st);
}

int
br_cmd_help(br_cli *cli)
{
    br_status st = {0};
    br_str text = {0};
    int code = 0;

    if (help_text(cli, &text, &st) != BR_OK)
        code = br_cli_fail(cli, &st);
    else
        fwrite(text.at, 1, text.n, cli->out);
    br_str_fini(&text);
    return code;
}
