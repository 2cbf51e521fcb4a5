/* man.c - man pages from the same tables as the screens.
 *
 * brass.1 lists the commands, variables and exit codes; brass-WORD.1 explains
 * one command, or all of a group such as prog.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <string.h>

static void
section(br_str *out, const char *name)
{
    br_str_printf(out, ".SH %s\n", name);
}

static void
line(br_str *out, const char *text)
{
    br_man_text(out, text);
    br_str_putc(out, '\n');
}

static void
paragraphs(br_str *out, const char *doc)
{
    br_str one = {0};

    while (*doc) {
        size_t n = strcspn(doc, "\n");

        br_str_clear(&one);
        br_str_put(&one, doc, n);
        br_str_puts(out, ".PP\n");
        line(out, br_str_z(&one));
        doc += n + (doc[n] == '\n');
    }
    out->oom |= one.oom;
    br_str_fini(&one);
}

static bool
on_page(const br_cmd *cmd, const char *page)
{
    size_t n = strlen(page);

    return strncmp(cmd->words, page, n) == 0 &&
           (cmd->words[n] == ' ' || cmd->words[n] == 0);
}

static void
synopsis(br_str *out, const br_cmd *cmd)
{
    br_str_puts(out, ".B brass ");
    line(out, cmd->words);
    if (*cmd->args) {
        br_str_puts(out, ".I ");
        line(out, cmd->args);
    }
    br_str_puts(out, "[option...]\n.br\n");
}

static br_code
command_page(const char *page, br_str *out, br_status *st)
{
    const char *what = br_cli_group(page);
    int used;

    br_str_printf(out, "brass\\-%s \\- ", page);
    line(out, what ? what : br_cli_find(&page, 1, &used)->summary);
    section(out, "SYNOPSIS");
    for (size_t i = 0; i < br_cli_cmd_count(); i++)
        if (on_page(br_cli_cmd(i), page))
            synopsis(out, br_cli_cmd(i));
    section(out, "COMMANDS");
    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        const br_cmd *c = br_cli_cmd(i);
        br_options o;

        if (!on_page(c, page))
            continue;
        br_str_puts(out, ".SS brass ");
        line(out, c->words);
        line(out, c->summary);
        paragraphs(out, c->doc);
        BR_TRY(br_cli_options_of(c, &o, st));
        br_options_man(&o, out);
        br_options_fini(&o);
    }
    section(out, "SEE ALSO");
    br_str_puts(out, ".BR brass (1)\n");
    return BR_OK;
}

static void
exit_codes(br_str *out)
{
    static const char *const what[] = {
        "Success.",
        "Anything else: input or output failed, out of memory, a bug.",
        "Wrong usage: the line on standard error says what.",
        "A bad input file: the line names the file, the place and the rule.",
        "Refused by a verifier.",
        "A device or tier is not available.",
    };

    section(out, "EXIT STATUS");
    for (size_t i = 0; i < BR_COUNT(what); i++)
        br_str_printf(out, ".TP\n.B %zu\n%s\n", i, what[i]);
}

static void
main_page(br_str *out)
{
    br_str_puts(out, "brass \\- run language models, from the model file to "
                     "the machine code\n");
    section(out, "SYNOPSIS");
    br_str_puts(out, ".B brass\n[option...]\n.I command\n[argument...]\n");
    section(out, "COMMANDS");
    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        br_str_puts(out, ".TP\n.B ");
        line(out, br_cli_cmd(i)->words);
        line(out, br_cli_cmd(i)->summary);
    }
    section(out, "ENVIRONMENT");
    br_str_puts(out, "Every option has a variable: BRASS_ and the name of the "
                     "flag in capitals,\nwith _ for each hyphen. A flag wins "
                     "over the variable, the variable over the\ndefault. "
                     "An empty variable is as good as none. Switches take "
                     "yes or no;\nlists are separated by semicolons.\n");
    exit_codes(out);
    section(out, "SEE ALSO");
    for (size_t i = 0; br_cli_page(i); i++)
        br_str_printf(out, ".BR brass\\-%s (1)%s\n", br_cli_page(i),
                      br_cli_page(i + 1) ? "," : "");
}

br_code
br_cli_man(const char *page, br_str *out, br_status *st)
{
    size_t i = 0;

    while (br_cli_page(i) && strcmp(br_cli_page(i), page) != 0)
        i++;
    if (*page && !br_cli_page(i))
        return br_fail(st, BR_E_USAGE, "there is no man page '%.60s'", page);
    br_str_puts(out, ".TH BRASS");
    for (const char *p = page; *p; p++)
        br_str_printf(out, "%s%c", p == page ? "\\-" : "",
                      *p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
    br_str_puts(out, " 1 \"\" \"brass\" \"Brass manual\"\n");
    section(out, "NAME");
    if (*page)
        BR_TRY(command_page(page, out, st));
    else
        main_page(out);
    if (out->oom)
        return br_fail(st, BR_E_OOM, "man: out of memory");
    return BR_OK;
}
