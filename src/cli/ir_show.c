/* ir_show.c - brass ir show: a model's graph for people and programs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/catalogue.h"
#include "cli/progress.h"
#include "ir/ir.h"
#include "model/model.h"

#include <string.h>

enum { MAX_TEXT_BYTES = 256 << 20 };

static br_code
graph_of_model(br_cli *cli, const char *path, br_ir **out, br_status *st)
{
    int64_t ctx =
        br_opt_given(cli, BR_OPT_ctx) ? br_opt_int(cli, BR_OPT_ctx) : 256;
    br_str file = {0};
    br_model *m = NULL;
    br_code code = br_cli_model(cli, path, &file, st);

    if (code == BR_OK)
        code = br_progress_model(cli, &m, file.at, NULL, st);
    br_str_fini(&file);
    BR_TRY(code);
    code = br_ir_of_model(out, m,
                          br_opt_enum(cli, BR_OPT_stage) == 1 ? BR_IR_PREFILL
                                                              : BR_IR_DECODE,
                          ctx, st);
    if (code != BR_OK)
        (void)br_prefix(st, "%s", path);
    br_model_close(m);
    return code;
}

static br_code
graph_of_text(const char *path, br_ir **out, br_status *st)
{
    char *text;
    size_t n;
    br_code code;

    BR_TRY(br_file_read(path, MAX_TEXT_BYTES, &text, &n, st));
    code = br_ir_parse(out, text, n, st);
    br_free(text);
    return code == BR_OK ? code : br_prefix(st, "%s", path);
}

bool
br_cli_is_ir(const char *path)
{
    size_t n = strlen(path);

    return n >= 3 && strcmp(path + n - 3, ".ir") == 0;
}

br_code
br_cli_graph(br_cli *cli, const char *path, br_ir **out, br_status *st)
{
    br_ir *g = NULL;
    br_code code = br_cli_is_ir(path) ? graph_of_text(path, &g, st)
                                      : graph_of_model(cli, path, &g, st);

    *out = g;
    if (code != BR_OK || !br_opt_bool(cli, BR_OPT_fused))
        return code;
    code = br_ir_fuse(out, g, st);
    br_ir_free(g);
    return code;
}

int
br_cmd_ir_show(br_cli *cli)
{
    bool dot = br_opt_bool(cli, BR_OPT_dot), svg = br_opt_bool(cli, BR_OPT_svg);
    bool json = br_opt_bool(cli, BR_OPT_json);
    br_status st = {0};
    br_str doc = {0};
    br_ir *g = NULL;
    br_code code;

    if (dot + svg + json > 1)
        return br_cli_usage(cli, "--dot, --svg and --json exclude each other");
    code = br_cli_graph(cli, cli->args[0], &g, &st);
    if (code == BR_OK) {
        if (dot)
            br_ir_dot(g, &doc);
        else if (svg)
            br_ir_svg(g, &doc);
        else if (json)
            br_ir_json(g, &doc);
        else
            br_ir_print(g, &doc);
        code = doc.oom ? br_fail(&st, BR_E_OOM, "graph: out of memory")
                       : br_cli_write(cli, br_opt_str(cli, BR_OPT_output),
                                      doc.at, doc.n, &st);
    }
    br_str_fini(&doc);
    br_ir_free(g);
    return code == BR_OK ? 0 : br_cli_fail(cli, &st);
}
