/* model_convert.c - brass model convert: a Hugging Face folder as a GGUF file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "ir/ir.h"
#include "model/hf.h"
#include "model/model.h"

#include <stdio.h>
#include <string.h>

static void
print_text(FILE *to, const char *path, const br_hf_stats *s)
{
    fprintf(to, "%s: %s, %zu tensors, %.3f G weights, %.1f MB\n", path, s->arch,
            s->tensors, (double)s->weights / 1e9, (double)s->bytes / 1e6);
    if (s->padded)
        fprintf(to,
                "%u unused tokens added, one for each row of the "
                "embedding table\n",
                s->padded);
    if (s->window)
        fprintf(to,
                "context cut to %lld tokens: the model's window, which is not "
                "written\n",
                (long long)s->window);
}

static int
print_json(br_cli *cli, const br_hf_stats *s)
{
    const struct {
        const char *key;
        uint64_t v;
    } rows[] = {
        {"tensors", s->tensors},
        {"parameters", s->weights},
        {"bytes", s->bytes},
        {"padded_tokens", s->padded},
        {"window", (uint64_t)s->window},
    };
    br_str doc = {0};
    br_json_writer w;
    int ret;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    br_json_w_key_strz(&w, "architecture", s->arch);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_json_w_key_u64(&w, rows[i].key, rows[i].v);
    }
    br_json_w_obj_end(&w);
    ret = br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    return ret;
}

/* A layer may be missing from the folder, or have another shape than the config
 * says: a file that cannot be opened as a model is none, and replaces none. */
static br_code
check(const void *file, size_t n, br_status *st)
{
    br_model *m = NULL;
    br_ir *g = NULL;
    br_code code = br_model_open_mem(&m, file, n, st);

    if (code == BR_OK)
        code = br_ir_of_model(&g, m, BR_IR_DECODE, 256, st);
    br_ir_free(g);
    br_model_close(m);
    return code;
}

int
br_cmd_model_convert(br_cli *cli)
{
    const char *path = br_opt_str(cli, BR_OPT_output);
    br_status st = {0};
    br_progress p;
    br_hf_desc d = {.progress = br_progress_advance, .ctx = &p, .check = check};
    br_hf_stats stats;
    br_code code;
    bool piped;

    if (!path)
        return br_cli_usage(cli, "--output is missing");
    piped = br_cli_piped(&path);
    if (piped && br_opt_bool(cli, BR_OPT_json))
        return br_cli_usage(cli, "--json and -o -: both want the output");
    br_progress_begin(&p, cli, "converting", 0);
    code = br_hf_convert(cli->args[0], path, &d, &stats, &st);
    br_progress_end(&p);
    if (code != BR_OK)
        return br_cli_fail(cli, &st);
    if (br_opt_bool(cli, BR_OPT_json))
        return print_json(cli, &stats);
    print_text(piped ? cli->err : cli->out, path, &stats);
    return 0;
}

int
br_cmd_convert(br_cli *cli)
{
    return br_cmd_model_convert(cli);
}
