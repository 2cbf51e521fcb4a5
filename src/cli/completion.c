/* completion.c - a bash script that knows the words, flags and choices of every
 * command. It offers what may stand at the cursor: the choices of the option
 * before it, flags after a -, words of commands, else bash's file names.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <string.h>

static bool
takes(const br_cmd *cmd, size_t i)
{
    for (const uint16_t *t = cmd->takes; *t < BR_OPT_COUNT; t++)
        if (*t == i)
            return true;
    return br_cli_option_rows[i].global;
}

static void
flags_of(FILE *f, const br_cmd *cmd)
{
    for (size_t i = 0; i < BR_OPT_COUNT; i++)
        if (takes(cmd, i))
            fprintf(f, " --%s", br_cli_option_rows[i].name);
}

static void
words_of(FILE *f, const char *group)
{
    size_t n = strlen(group);

    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        const char *w = br_cli_cmd(i)->words;

        if (n && strncmp(w, group, n) == 0 && w[n] == ' ')
            fprintf(f, " %s", w + n + 1);
    }
    for (size_t i = 0; n == 0 && br_cli_page(i); i++)
        fprintf(f, " %s", br_cli_page(i));
}

static bool
shares_its_name(size_t i)
{
    for (size_t k = 0; k < BR_OPT_COUNT; k++)
        if (k != i &&
            strcmp(br_cli_option_rows[k].name, br_cli_option_rows[i].name) == 0)
            return true;
    return false;
}

/* *' --log-level') ...; an option that is another one elsewhere (--target) by
 * the commands that take it: 'kernel compile '*' --target') ... */
static void
choices_of(FILE *f)
{
    for (size_t i = 0; i < BR_OPT_COUNT; i++) {
        const br_option *r = &br_cli_option_rows[i];
        const char *before = "    ";

        if (r->type != BR_OPTION_ENUM)
            continue;
        if (!shares_its_name(i))
            fprintf(f, "%s*' --%s'", before, r->name);
        else
            for (size_t c = 0; c < br_cli_cmd_count(); c++)
                if (takes(br_cli_cmd(c), i)) {
                    fprintf(f, "%s'%s '*' --%s'", before, br_cli_cmd(c)->words,
                            r->name);
                    before = "|";
                }
        fputs(") COMPREPLY=($(compgen -W '", f);
        for (const char *p = r->choices; *p; p++)
            fputc(*p == '|' ? ' ' : *p, f);
        fputs("' -- \"$cur\")); return ;;\n", f);
    }
}

static void
bash_script(FILE *f)
{
    fputs("_brass() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} words= flags=\n"
          "    local before=${COMP_WORDS[COMP_CWORD-1]}\n"
          "    [[ $cur == = ]] && cur=\n"
          "    [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    case \"${COMP_WORDS[*]:1:COMP_CWORD} $before\" in\n",
          f);
    choices_of(f);
    fputs("    esac\n"
          "    case \"${COMP_WORDS[*]:1:COMP_CWORD}\" in\n",
          f);
    for (size_t i = 0; i < br_cli_cmd_count(); i++) {
        fprintf(f, "    '%s '*) flags='", br_cli_cmd(i)->words);
        flags_of(f, br_cli_cmd(i));
        fputs("'", f);
        if (strcmp(br_cli_cmd(i)->words, "help") == 0) {
            fputs(" words='", f);
            words_of(f, "");
            fputs("'", f);
        }
        fputs(" ;;\n", f);
    }
    for (size_t i = 0; br_cli_page(i); i++) {
        const char *page = br_cli_page(i);

        if (!br_cli_group(page))
            continue;
        fprintf(f, "    '%s '*) words='", page);
        words_of(f, page);
        fputs("' ;;\n", f);
    }
    fputs("    *) words='", f);
    words_of(f, "");
    fputs("' ;;\n"
          "    esac\n"
          "    [[ $cur == -* ]] && words=$flags\n"
          "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "}\n"
          "complete -o bashdefault -o default -F _brass brass\n",
          f);
}

int
br_cmd_completion(br_cli *cli)
{
    if (strcmp(cli->args[0], "bash") != 0)
        return br_cli_usage(cli, "'%.60s' is not a shell known here: bash",
                            cli->args[0]);
    bash_script(cli->out);
    return 0;
}
