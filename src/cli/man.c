/* man.c - man pages from the same tables as the screens.
 *
 * brass.1 lists the commands, variables and exit codes; brass-WORD.1 explains
 * one command, or all of a group such as prog.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/log.h"

#include <string.h>

static void
section(br_str *out, const char *name)
{
    br_str_printf(out, ".SH %s\n", name);
}

static void
paragraphs(br_str *out, const char *doc)
{
    while (*doc) {
        size_t n = strcspn(doc, "\n");
        br_str one = {0};

        br_str_put(&one, doc, n);
        br_str_puts(out, ".PP\n");
        br_man_lines(out, br_str_z(&one));
        out->oom |= one.oom;
        br_str_fini(&one);
        doc += n + (doc[n] == '\n');
    }
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
    br_man_lines(out, cmd->words);
    if (*cmd->args) {
        br_str_puts(out, ".I ");
        br_man_lines(out, cmd->args);
    }
    br_str_puts(out, "[option...]\n");
}

static br_code
command_page(const char *page, br_str *out, br_status *st)
{
    const char *what = br_cli_group(page);
    bool again = false;
    int used;

    br_str_printf(out, "brass\\-%s \\- ", page);
    br_man_lines(out, what ? what : br_cli_find(&page, 1, &used)->summary);
    section(out, "SYNOPSIS");
    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        if (!on_page(br_cli_cmd(i), page))
            continue;
        br_str_puts(out, again ? ".br\n" : "");
        synopsis(out, br_cli_cmd(i));
        again = true;
    }
    section(out, "COMMANDS");
    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        const br_cmd *c = br_cli_cmd(i);
        br_options o;

        if (!on_page(c, page))
            continue;
        br_str_puts(out, ".SS brass ");
        br_man_lines(out, c->words);
        br_man_lines(out, c->summary);
        paragraphs(out, c->doc);
        BR_TRY(br_cli_options_of(c, &o, st));
        br_options_man(&o, false, out);
        br_options_fini(&o);
    }
    section(out, "SEE ALSO");
    br_str_puts(out, ".BR brass (1)\n");
    return BR_OK;
}

/* "3: not found; malformed input; ...", from errors.def */
static void
exit_codes(br_str *out)
{
    section(out, "EXIT STATUS");
    br_str_puts(out, "What failed is told in one line on standard error.\n");
    for (int exit_code = 0; exit_code < 256; exit_code++) {
        br_str text = {0};

        for (int c = 0; c < BR_E_COUNT; c++)
            if (br_code_exit((br_code)c) == exit_code)
                br_str_printf(&text, "%s%s", text.n ? "; " : "",
                              br_code_text((br_code)c));
        if (text.n) {
            br_str_printf(out, ".TP\n.B %d\n", exit_code);
            br_man_lines(out, br_str_z(&text));
        }
        out->oom |= text.oom;
        br_str_fini(&text);
    }
}

static void
log_events(br_str *out)
{
    section(out, "DIAGNOSTICS");
    br_str_puts(out, "What is logged on standard error, by the names that the "
                     "lines carry:\n");
    for (int i = 0; i < BR_EV_COUNT; i++) {
        const br_log_eventinfo *e = br_log_event_of((br_log_event)i);

        br_str_printf(out, ".TP\n.B %s.%s\n(%s) ", e->room, e->name,
                      br_log_level_name(e->level));
        br_man_lines(out, e->text);
    }
}

static br_code
main_page(br_str *out, br_status *st)
{
    br_options o;

    br_str_puts(out, "brass \\- run language models, from the model file to "
                     "the machine code\n");
    section(out, "SYNOPSIS");
    br_str_puts(out, ".B brass\n[option...]\n.I command\n[argument...]\n");
    section(out, "COMMANDS");
    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        br_str_puts(out, ".TP\n.B ");
        br_man_lines(out, br_cli_cmd(i)->words);
        br_man_lines(out, br_cli_cmd(i)->summary);
    }
    section(out, "OPTIONS");
    br_str_puts(out, "Every command takes these besides its own.\n");
    BR_TRY(br_cli_options_of(NULL, &o, st));
    br_options_man(&o, true, out);
    br_options_fini(&o);
    section(out, "ENVIRONMENT");
    br_str_puts(out, "Every option has a variable: BRASS_ and the name of the "
                     "flag in capitals,\nwith _ for each hyphen. A flag wins "
                     "over the variable, the variable over the\ndefault. "
                     "An empty variable is as good as none. Switches take "
                     "yes or no;\nlists are separated by semicolons.\n");
    exit_codes(out);
    log_events(out);
    section(out, "SEE ALSO");
    for (size_t i = 0; br_cli_page(i); i++)
        br_str_printf(out, ".BR brass\\-%s (1)%s\n", br_cli_page(i),
                      br_cli_page(i + 1) ? "," : "");
    return BR_OK;
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
    br_str_printf(out, " 1 \"%s\" \"brass\" \"Brass manual\"\n", br_cli_date());
    section(out, "NAME");
    if (*page)
        BR_TRY(command_page(page, out, st));
    else
        BR_TRY(main_page(out, st));
    if (out->oom)
        return br_fail(st, BR_E_OOM, "man: out of memory");
    return BR_OK;
}
