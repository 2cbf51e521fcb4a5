/* gcn.c - brass gcn asm and disasm: AMD code objects from text, and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cg/gcn/gcn_file.h"
#include "cli/cli.h"

#include <string.h>

static br_code
assemble(br_cli *cli, br_status *st)
{
    const char *path = cli->args[0], *name = br_opt_str(cli, BR_OPT_cpu);
    const br_gcn_cpu *cpu = name ? br_gcn_cpu_find(name) : NULL;
    br_str out = {0}, list = {0};
    char *text;
    size_t n;
    br_code code;

    /* What is asked of compiled code (gfx1100-wave64) a file says itself. */
    if (!cpu || strcmp(cpu->name, name) != 0) {
        for (size_t k = 0; br_gcn_cpu_at(k); k++)
            br_str_printf(&list, " %s", br_gcn_cpu_at(k)->name);
        br_fail(st, BR_E_USAGE, "--cpu has to be one of:%s", br_str_z(&list));
        br_str_fini(&list);
        return BR_E_USAGE;
    }
    BR_TRY(br_file_read(path, BR_GCN_MAX_FILE, &text, &n, st));
    code = br_gcn_assemble(&out, cpu, text, n, st);
    if (code == BR_OK)
        code = br_cli_write(cli, br_opt_str(cli, BR_OPT_output), out.at, out.n,
                            st);
    else
        br_prefix(st, "%s", path);
    br_free(text);
    br_str_fini(&out);
    return code;
}

int
br_cmd_gcn_asm(br_cli *cli)
{
    br_status st = {0};

    if (!br_opt_str(cli, BR_OPT_output))
        br_fail(&st, BR_E_USAGE, "-o says where the code object goes");
    else if (assemble(cli, &st) == BR_OK)
        return 0;
    return br_cli_fail(cli, &st);
}

int
br_cmd_gcn_disasm(br_cli *cli)
{
    const char *path = cli->args[0], *to = br_opt_str(cli, BR_OPT_output);
    br_gcn_co co = {0};
    br_status st = {0};
    br_str out = {0};
    char *bytes = NULL;
    size_t n = 0;
    br_code code = br_file_read(path, BR_GCN_MAX_FILE, &bytes, &n, &st);

    if (code == BR_OK) {
        code = br_gcn_load(&co, bytes, n, &st);
        if (code == BR_OK)
            code = br_gcn_disassemble(&out, &co, &st);
        if (code != BR_OK)
            br_prefix(&st, "%s", path);
    }
    if (code == BR_OK)
        code = br_cli_write(cli, to, out.at, out.n, &st);
    br_gcn_unload(&co);
    br_str_fini(&out);
    br_free(bytes);
    return code == BR_OK ? 0 : br_cli_fail(cli, &st);
}
