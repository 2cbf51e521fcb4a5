/* gcn_sim.c - brass gcn sim: a kernel of a code object on a simulated AMD GPU.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kernel.h"
#include "drv/sim/sim.h"

#include <string.h>

enum { MAX_ARGS = 1024 };
#define CODE_AT    0x100000000000ull /* buffers are far below */
#define KERNARG_AT 0x10000ull

typedef struct sim_job {
    br_kjob j;
    br_gcn_co co;
    br_sim sim;
    br_kfn fn; /* what the arguments say of its parameters */
} sim_job;

static void
print_finding(void *arg, const char *text)
{
    br_cli *cli = arg;

    fprintf(cli->err, "%s\n", text);
}

/* One parameter for each --arg, aligned to its size. */
static br_code
parameters(sim_job *s, br_status *st)
{
    const char *const *args;
    size_t n = br_opt_list(s->j.cli, BR_OPT_arg, &args);
    uint32_t at = 0;

    if (n > MAX_ARGS)
        return br_fail(st, BR_E_LIMIT, "%zu --arg, no more than %d", n,
                       MAX_ARGS);
    for (size_t k = 0; k < n; k++) {
        size_t raw = strlen(args[k]) / 2 - 2;
        uint32_t bytes = strncmp(args[k], "raw:", 4) == 0
                             ? (uint32_t)BR_MIN(raw, 4096u)
                         : strncmp(args[k] + 1, "32:", 3) == 0 ? 4u
                                                               : 8u;
        uint32_t align = bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : 1;
        br_kparam p = {.name = br_text_z("argument"), .bytes = bytes};

        at = (at + align - 1) & ~(align - 1);
        p.offset = at;
        at += bytes;
        if (!br_vec_push(&s->fn.params, p))
            return br_fail(st, BR_E_OOM, "out of memory");
    }
    s->fn.param_bytes = at;
    return BR_OK;
}

static br_code
kernel(sim_job *s, const br_gcn_symbol **out, br_status *st)
{
    const char *name = br_opt_str(s->j.cli, BR_OPT_entry_gcn);
    size_t n = 0;

    *out = name ? br_gcn_kernel_find(&s->co, name) : NULL;
    for (size_t k = 0; k < s->co.n_sym; k++)
        if (s->co.sym[k].entry) {
            n++;
            *out = name ? *out : &s->co.sym[k];
        }
    if (name && !*out)
        return br_fail(st, BR_E_NOT_FOUND, "%s: no kernel '%s'",
                       s->j.cli->args[0], name);
    if (!name && n != 1)
        return br_fail(st, BR_E_USAGE,
                       "%s holds %zu kernels: --kernel has to name one",
                       s->j.cli->args[0], n);
    s->fn.name = br_text_z((*out)->name);
    return BR_OK;
}

static br_code
map_all(sim_job *s, uint32_t kernarg_bytes, br_status *st)
{
    br_kregion k = {.addr = KERNARG_AT,
                    .read_only = true,
                    .bytes = BR_MAX(kernarg_bytes, 16u),
                    .name = "arguments"};
    void *p;

    if (s->fn.param_bytes > kernarg_bytes)
        return br_fail(st, BR_E_USAGE,
                       "%u bytes of arguments, the kernel takes %u",
                       s->fn.param_bytes, kernarg_bytes);
    /* What the compiler adds behind the arguments is zero. */
    p = br_try_realloc(s->j.params, k.bytes);
    if (!p)
        return br_fail(st, BR_E_OOM, "out of memory");
    s->j.params = p;
    memset(s->j.params + s->fn.param_bytes, 0, k.bytes - s->fn.param_bytes);
    k.host = s->j.params;
    BR_TRY(br_sim_map(&s->sim, &k, st));
    for (size_t i = 0; i < s->j.regions.n; i++)
        if (s->j.regions.at[i].bytes)
            BR_TRY(br_sim_map(&s->sim, &s->j.regions.at[i], st));
    return br_sim_load(&s->sim, &s->co, CODE_AT, st);
}

static br_code
run(sim_job *s, br_status *st)
{
    br_cli *cli = s->j.cli;
    const br_gcn_symbol *kd;
    br_aql_launch l = {.kernarg = KERNARG_AT};
    br_aql_packet packet;
    uint32_t w[3];
    char *bytes;
    size_t n;
    br_code code;

    BR_TRY(br_file_read(cli->args[0], BR_GCN_MAX_FILE, &bytes, &n, st));
    code = br_gcn_load(&s->co, bytes, n, st);
    br_free(bytes);
    if (code != BR_OK)
        return br_prefix(st, "%s", cli->args[0]);
    BR_TRY(kernel(s, &kd, st));
    BR_TRY(br_kjob_shape(cli, l.groups, l.group, st));
    BR_TRY(parameters(s, st));
    BR_TRY(br_kjob_args(&s->j, &s->fn, st));
    memcpy(w, s->co.image + kd->at, sizeof w);
    s->sim.cpu = s->co.isa.cpu;
    BR_TRY(map_all(s, w[2], st));
    l.kernel = CODE_AT + kd->at;
    l.group_bytes = w[0] + (uint32_t)br_opt_int(cli, BR_OPT_shared);
    l.private_bytes = w[1];
    BR_TRY(br_aql_fill(&packet, &l, st));
    s->sim.check = br_opt_bool(cli, BR_OPT_check);
    s->sim.seed = (uint64_t)br_opt_int(cli, BR_OPT_seed_order);
    s->sim.finding = print_finding;
    s->sim.arg = cli;
    BR_TRY(br_sim_dispatch(&s->sim, &packet, st));
    return br_kjob_write(&s->j, st);
}

int
br_cmd_gcn_sim(br_cli *cli)
{
    sim_job s = {.j = {.cli = cli}};
    br_status st = {0};
    int code = 0;

    if (run(&s, &st) != BR_OK)
        code = br_cli_fail(cli, &st);
    else if (br_opt_bool(cli, BR_OPT_json))
        fprintf(cli->out, "{\"instructions\":%llu,\"findings\":%llu}\n",
                (unsigned long long)s.sim.steps,
                (unsigned long long)s.sim.findings);
    if (s.sim.findings) {
        fprintf(cli->err, "%llu findings\n",
                (unsigned long long)s.sim.findings);
        code = code ? code : br_code_exit(BR_E_REJECTED);
    }
    br_sim_fini(&s.sim);
    br_gcn_unload(&s.co);
    br_vec_fini(&s.fn.params);
    br_kjob_fini(&s.j);
    return code;
}
