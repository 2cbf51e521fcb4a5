/* prog_targets.c - brass prog targets: the machines a program can be for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/cli.h"
#include "mega/target.h"

static int
print_json(br_cli *cli)
{
    static const char *const names[BR_MT_COUNT] = {
#define T(name, def) #name,
#include "mega/target_field.def"
#undef T
    };
    br_arena a;
    br_str doc = {0};
    br_json_writer w;
    int ret;

    br_arena_init(&a, 0);
    br_json_w_begin(&w, &doc, 2);
    br_json_w_arr(&w);
    for (size_t i = 0; i < br_mega_target_count() && !doc.oom; i++) {
        const br_json *const *f =
            br_mega_target_fields(br_mega_target_at(i), &a);

        br_json_w_obj(&w);
        for (int k = 0; f && k < BR_MT_COUNT; k++) {
            br_json_w_key(&w, names[k]);
            br_json_w_tree(&w, f[k]);
        }
        br_json_w_obj_end(&w);
        doc.oom |= !f;
    }
    br_json_w_arr_end(&w);
    ret = br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    br_arena_fini(&a);
    return ret;
}

int
br_cmd_prog_targets(br_cli *cli)
{
    if (br_opt_bool(cli, BR_OPT_json))
        return print_json(cli);
    fprintf(cli->out, "%-14s %8s %10s %10s %8s %8s\n", "name", "workers",
            "GB/s", "measured", "TFLOPS", "GB");
    for (size_t i = 0; i < br_mega_target_count(); i++) {
        const br_mega_target *t = br_mega_target_at(i);

        fprintf(cli->out, "%-14s %8lld %10.0f ", t->name, (long long)t->num_sms,
                t->hbm_bandwidth_gbs);
        if (t->measured_bw_gbs > 0)
            fprintf(cli->out, "%10.0f", t->measured_bw_gbs);
        else
            fprintf(cli->out, "%10s", "-");
        fprintf(cli->out, " %8.0f %8.0f\n", t->fp16_tflops,
                (double)t->hbm_bytes / 1e9);
    }
    return 0;
}
