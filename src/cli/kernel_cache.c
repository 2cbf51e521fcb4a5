/* kernel_cache.c - brass kernel cache: compiled kernels on disk.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kernel.h"

#include "cg/kcache.h"

int
br_cmd_kernel_cache(br_cli *cli)
{
    uint64_t most = (uint64_t)br_opt_int(cli, BR_OPT_kernel_cache);
    bool given = br_opt_given(cli, BR_OPT_kernel_cache);
    br_folder_sum sum;
    br_str path = {0};

    if (!br_cli_folder(cli, "XDG_CACHE_HOME", ".cache", &path))
        return br_cli_usage(cli, "neither XDG_CACHE_HOME nor HOME is set");
    br_str_puts(&path, "/kernels");
    sum = br_folder_trim(br_str_z(&path), ".zrt", given ? most : UINT64_MAX,
                         NULL, NULL);
    if (br_opt_bool(cli, BR_OPT_json)) {
        br_str doc = {0};
        br_json_writer w;
        int code;

        br_json_w_begin(&w, &doc, 0);
        br_json_w_obj(&w);
        br_json_w_key(&w, "folder");
        br_json_w_strz(&w, br_str_z(&path));
        br_json_w_key(&w, "modules");
        br_json_w_i64(&w, (int64_t)sum.files);
        br_json_w_key(&w, "bytes");
        br_json_w_i64(&w, (int64_t)sum.bytes);
        br_json_w_obj_end(&w);
        code = br_cli_json_out(cli, &doc);
        br_str_fini(&doc);
        br_str_fini(&path);
        return code;
    }
    fprintf(cli->out, "%s: %llu modules, %.1f MB of at most %.1f MB\n",
            br_str_z(&path), (unsigned long long)sum.files,
            (double)sum.bytes / 1e6, (double)most / 1e6);
    br_str_fini(&path);
    return 0;
}
