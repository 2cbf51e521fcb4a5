/* prog_fmt.c - brass prog fmt: a task program in its one canonical form.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "mega/mega.h"

int
br_cmd_prog_fmt(br_cli *cli)
{
    br_status st = {0};
    br_str text = {0};
    br_mega_prog *p;
    int ret = 0;

    if (br_mega_load_file(&p, cli->args[0], &st) != BR_OK)
        return br_cli_fail(cli, &st);
    if (br_mega_save(p, &text, &st) != BR_OK ||
        br_cli_write(cli, br_opt_str(cli, BR_OPT_output), text.at, text.n,
                     &st) != BR_OK)
        ret = br_cli_fail(cli, &st);
    br_str_fini(&text);
    br_mega_free(p);
    return ret;
}
