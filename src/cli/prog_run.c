/* prog_run.c - brass prog run: a program on tensors from a folder.
 *
 *   PROG.json --check--> accepted --+
 *   DIR/manifest.json + files ------+--> reference VM --> OUT/manifest.json
 *   --model M.gguf, by `source` ----+
 *
 * A program that the sound check rejects is not run, whatever the options say.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "mega/bind.h"
#include "model/gguf.h"

#include <string.h>
#include <unistd.h>

/* What there is, not what there will be. */
static br_code
tier_here(br_cli *cli, br_status *st)
{
    const char *tier = br_opt_str(cli, BR_OPT_tier);

    if (tier && strcmp(tier, "ref") != 0)
        return br_fail(st, BR_E_NO_DEVICE,
                       "tier %s is not available; here is: ref", tier);
    return BR_OK;
}

static br_code
run(br_cli *cli, br_mega_vm *vm, br_status *st)
{
    bool drawn = br_opt_given(cli, BR_OPT_seed);
    uint64_t seed = drawn ? (uint64_t)br_opt_int(cli, BR_OPT_seed) : 0;
    br_mega_order order = drawn ? BR_MEGA_ORDER_RANDOM : BR_MEGA_ORDER_SWEEP;

    if (br_opt_given(cli, BR_OPT_adversarial))
        return br_mega_vm_adversarial(
            vm, (int)br_opt_int(cli, BR_OPT_adversarial), order, seed, st);
    return br_mega_vm_run(vm, order, seed, st);
}

/* Physical memory: a file may not ask for more. */
static uint64_t
memory_here(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

static br_code
bind_model(br_cli *cli, br_mega_vm *vm, const br_mega_prog *p, br_status *st)
{
    const char *path = br_opt_str(cli, BR_OPT_model);
    br_gguf *g;
    br_code code;

    if (!path)
        return BR_OK;
    BR_TRY(br_gguf_open(&g, path, st));
    code = br_mega_bind_model(vm, p, g, st);
    if (code != BR_OK)
        br_prefix(st, "%s", path);
    br_gguf_close(g);
    return code;
}

static br_code
bind_and_run(br_cli *cli, const br_mega_prog *p, br_status *st)
{
    br_mega_vm_desc d = {.max_bytes = memory_here()};
    br_mega_vm *vm;
    br_code code = br_mega_vm_new(&vm, p, &d, st);

    if (code == BR_OK) {
        const char *dir = br_opt_str(cli, BR_OPT_bind);

        code = bind_model(cli, vm, p, st);
        if (code == BR_OK)
            code = br_mega_bind_dir(vm, p, dir, st);
        if (code == BR_OK && run(cli, vm, st) != BR_OK)
            code = br_prefix(st, "%s", cli->args[0]);
    } else {
        br_prefix(st, "%s", cli->args[0]);
    }
    if (code == BR_OK)
        code = br_mega_write_dir(vm, p, br_opt_str(cli, BR_OPT_out_dir), st);
    br_mega_vm_free(vm);
    return code;
}

int
br_cmd_prog_run(br_cli *cli)
{
    br_mega_prog *p = NULL;
    br_status st = {0};
    br_code code;

    if (!br_opt_str(cli, BR_OPT_bind))
        return br_cli_usage(cli, "--bind DIR is missing");
    if (!br_opt_str(cli, BR_OPT_out_dir))
        return br_cli_usage(cli, "-o DIR is missing");
    code = tier_here(cli, &st);
    if (code == BR_OK)
        code = br_mega_load_file(&p, cli->args[0], &st);
    if (code == BR_OK && br_mega_accept(p, &st) != BR_OK)
        code = br_prefix(&st, "%s", cli->args[0]);
    if (code == BR_OK)
        code = bind_and_run(cli, p, &st);
    br_mega_free(p);
    return code == BR_OK ? 0 : br_cli_fail(cli, &st);
}
