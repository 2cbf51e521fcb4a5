/* prog_show.c - brass prog show: a task program as a picture.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "mega/show.h"

static br_code
draw(br_cli *cli, const br_mega_show_opts *o, br_status *st)
{
    br_mega_prog *p;
    br_str out = {0};
    br_code rc = br_mega_load_file(&p, cli->args[0], st);

    if (rc != BR_OK)
        return rc; /* names the file */
    rc = br_mega_show(p, o, &out, st);
    if (rc != BR_OK)
        rc = br_prefix(st, "%s", cli->args[0]);
    else
        rc = br_cli_write(cli, br_opt_str(cli, BR_OPT_output), out.at, out.n,
                          st);
    br_str_fini(&out);
    br_mega_free(p);
    return rc;
}

int
br_cmd_prog_show(br_cli *cli)
{
    bool svg = br_opt_bool(cli, BR_OPT_svg), dot = br_opt_bool(cli, BR_OPT_dot);
    bool text = br_opt_bool(cli, BR_OPT_text);
    const char *name = br_opt_str(cli, BR_OPT_target);
    br_mega_show_opts o = {.format = svg   ? BR_SHOW_SVG
                                     : dot ? BR_SHOW_DOT
                                           : BR_SHOW_TEXT};
    br_mega_target target;
    br_status st = {0};

    if (svg + dot + text > 1)
        return br_cli_usage(cli, "--svg, --dot and --text exclude each other");
    if (name) {
        if (br_mega_target_get(&target, br_text_z(name), &st) != BR_OK)
            return br_cli_fail(cli, &st);
        o.target = &target;
    }
    if (draw(cli, &o, &st) != BR_OK)
        return br_cli_fail(cli, &st);
    return 0;
}
