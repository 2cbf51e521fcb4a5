/* model_quantize.c - brass model quantize: a model in another format.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "model/requant.h"

static br_code
no_such_mixture(const char *name, br_status *st)
{
    br_str list = {0};
    br_code code;

    for (size_t i = 0; br_qmix_at(i); i++)
        br_str_printf(&list, "%s%s", i ? " " : "", br_qmix_name(br_qmix_at(i)));
    code = br_fail(st, BR_E_USAGE, "'%.20s': not known; there are %s", name,
                   br_str_z(&list));
    br_str_fini(&list);
    return code;
}

static double
bits(const br_requant_stats *s, uint64_t bytes)
{
    return s->weights ? 8.0 * (double)bytes / (double)s->weights : 0;
}

static void
print_text(FILE *out, const char *path, const br_requant_stats *s)
{
    fprintf(out,
            "%s: %zu of %zu tensors encoded, %.3f to %.3f bits a weight, "
            "%.1f to %.1f MB\n",
            path, s->encoded, s->tensors, bits(s, s->bytes_in),
            bits(s, s->bytes_out), (double)s->bytes_in / 1e6,
            (double)s->bytes_out / 1e6);
    if (s->weighed)
        fprintf(out, "%zu with importances\n", s->weighed);
    if (s->fell_back)
        fprintf(out,
                "%zu in a larger format, as rows of 256 or 32 do not fit\n",
                s->fell_back);
    if (s->again)
        fprintf(out,
                "%zu were quantised already: both losses add up; start from "
                "F16 or BF16 where there is such a file\n",
                s->again);
}

static int
print_json(br_cli *cli, const br_requant_stats *s)
{
    const struct {
        const char *key;
        uint64_t v;
    } rows[] = {
        {"tensors", s->tensors},     {"encoded", s->encoded},
        {"fell_back", s->fell_back}, {"quantised_before", s->again},
        {"weighed", s->weighed},     {"parameters", s->weights},
        {"bytes_in", s->bytes_in},   {"bytes_out", s->bytes_out},
    };
    br_str doc = {0};
    br_json_writer w;
    int ret;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_json_w_key_u64(&w, rows[i].key, rows[i].v);
    }
    br_json_w_obj_end(&w);
    ret = br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    return ret;
}

static br_code
quantize(br_cli *cli, const char *path, br_requant_stats *stats, br_status *st)
{
    const char *importances = br_opt_str(cli, BR_OPT_imatrix);
    br_requant_desc d = {.mix = br_qmix_find(br_text_z(cli->args[2])),
                         .progress = br_progress_advance};
    br_imatrix *im = NULL;
    br_gguf *g = NULL;
    br_progress p;
    br_code code;

    if (!d.mix)
        return no_such_mixture(cli->args[2], st);
    br_progress_begin(&p, cli, "quantising", 0);
    d.ctx = &p;
    code = br_gguf_open(&g, cli->args[0], st);
    if (code == BR_OK && importances)
        code = br_imatrix_open(&im, importances, st);
    d.imatrix = im;
    if (code == BR_OK) {
        code = br_requant(g, path, &d, stats, st);
        br_progress_end(&p);
    }
    br_imatrix_close(im);
    br_gguf_close(g);
    return code;
}

int
br_cmd_model_quantize(br_cli *cli)
{
    const char *path = cli->args[1];
    bool piped = br_cli_piped(&path);
    br_status st = {0};
    br_requant_stats stats;

    if (piped && br_opt_bool(cli, BR_OPT_json))
        return br_cli_usage(cli, "--json and OUT -: both want the output");
    if (quantize(cli, path, &stats, &st) != BR_OK)
        return br_cli_fail(cli, &st);
    if (br_opt_bool(cli, BR_OPT_json))
        return print_json(cli, &stats);
    print_text(piped ? cli->err : cli->out, path, &stats);
    return 0;
}

int
br_cmd_quantize(br_cli *cli)
{
    return br_cmd_model_quantize(cli);
}
