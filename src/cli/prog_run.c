/* prog_run.c - brass prog run: a program on tensors from a folder.
 *
 *   PROG.json --check--> accepted --+
 *   DIR/manifest.json + files ------+--> tasks by a tier --> OUT/manifest.json
 *   --model M.gguf, by `source` ----+
 *
 *            tensors kept by          tasks run by
 *   ref      the reference VM, or     one thread, in any order
 *   cpu      run/step_run.h, if it    threads with queues and counters, by the
 *            is of a model            tier's kernels
 *   cuda     (not of a model)         one launch, a queue a multiprocessor
 *
 * A program that the sound check rejects is not run, whatever the options say.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "cli/progress.h"
#include "drv/cpu/cpu_ops.h"
#include "drv/cpu/cpu_walk.h"
#include "drv/cuda/cuda_prog.h"
#include "mega/bind.h"
#include "mega/interp.h"
#include "model/gguf.h"
#include "run/step_run.h"

#include <string.h>
#include <unistd.h>

/* What the command has opened. */
typedef struct job {
    br_cli *cli;
    br_mega_prog *p;
    br_model *model;      /* of a model's program */
    br_step_run *step;    /* either this */
    br_mega_vm *vm;       /* or that keeps the tensors: */
    br_mega_store *store; /* as which they do */
    br_cpu_pool *pool;    /* tier cpu */
    br_cpu_walk *threads;
    br_cuda_prog *device; /* tier cuda */
    br_mega_walk *walk;   /* tier ref */
    br_mega_runner *runner;
} job;

/* What there is, not what there will be. */
static br_code
tier_here(br_cli *cli, br_status *st)
{
    const char *tier = br_opt_str(cli, BR_OPT_tier);

    if (tier && strcmp(tier, "ref") != 0 && strcmp(tier, "cpu") != 0 &&
        strcmp(tier, "cuda") != 0)
        return br_fail(st, BR_E_NO_DEVICE,
                       "tier %s runs no programs in this build; here are: ref "
                       "cpu cuda",
                       tier);
    return BR_OK;
}

static bool
on(const br_cli *cli, const char *which)
{
    const char *tier = br_opt_str(cli, BR_OPT_tier);

    return strcmp(tier ? tier : "ref", which) == 0;
}

/* Physical memory: a file may not ask for more. */
static uint64_t
memory_here(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);

    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

static br_code
open_runner(job *j, br_status *st)
{
    if (on(j->cli, "cuda")) {
        if (j->p->graph)
            return br_fail(st, BR_E_UNSUPPORTED,
                           "tier cuda runs no programs of models yet; ref and "
                           "cpu do");
        BR_TRY(br_cuda_prog_new(&j->device, j->p, st));
        j->runner = br_cuda_prog_runner(j->device);
        return BR_OK;
    }
    if (on(j->cli, "ref")) {
        BR_TRY(br_mega_walk_new(&j->walk, j->p, st));
        j->runner = br_mega_walk_runner(j->walk);
        return BR_OK;
    }
    BR_TRY(br_cpu_pool_new(&j->pool,
                           (uint32_t)br_opt_int(j->cli, BR_OPT_threads), st));
    BR_TRY(br_cpu_walk_new(&j->threads, j->p, j->pool, st));
    j->runner = br_cpu_walk_runner(j->threads);
    return BR_OK;
}

/* A model's program takes the model's weights as they are. */
static br_code
open_step(job *j, const char *path, br_status *st)
{
    br_step_run_config c = {j->runner->workers, memory_here(), j->pool,
                            br_opt_enum(j->cli, BR_OPT_arith) == 1};

    BR_TRY(br_progress_model(j->cli, &j->model, path, NULL, st));
    if (br_step_run_new(&j->step, j->p, j->model, &c, st) != BR_OK)
        return br_prefix(st, "%s with %s", j->cli->args[0], path);
    j->store = br_step_run_store(j->step);
    return BR_OK;
}

static br_code
open_vm(job *j, const char *path, br_status *st)
{
    br_mega_vm_desc d = {.max_bytes = memory_here(),
                         .workers = j->runner->workers,
                         .dot = j->pool ? br_cpu_ops_of(br_isa_best())->dot
                                        : NULL};
    br_gguf *g;
    br_code code;

    if (j->device)
        br_cuda_prog_desc(j->device, &d);
    if (br_mega_vm_new(&j->vm, j->p, &d, st) != BR_OK)
        return br_prefix(st, "%s", j->cli->args[0]);
    j->store = br_mega_vm_store(j->vm);
    if (!path)
        return BR_OK;
    BR_TRY(br_gguf_open(&g, path, st));
    code = br_mega_bind_model(j->store, g, st);
    if (code != BR_OK)
        br_prefix(st, "%s", path);
    br_gguf_close(g);
    return code;
}

static br_code
run(job *j, br_status *st)
{
    br_cli *cli = j->cli;
    bool drawn = br_opt_given(cli, BR_OPT_seed);
    uint64_t seed = drawn ? (uint64_t)br_opt_int(cli, BR_OPT_seed) : 0;
    br_mega_order order = drawn ? BR_MEGA_ORDER_RANDOM : BR_MEGA_ORDER_SWEEP;

    if (br_opt_given(cli, BR_OPT_adversarial))
        return br_mega_adversarial(j->store, j->walk,
                                   (int)br_opt_int(cli, BR_OPT_adversarial),
                                   order, seed, st);
    if (j->walk)
        br_mega_walk_by(j->walk, order, seed);
    return j->store->run(j->store, j->runner, st);
}

static br_code
do_it(job *j, br_status *st)
{
    const char *path = br_opt_str(j->cli, BR_OPT_model);

    BR_TRY(br_mega_load_file(&j->p, j->cli->args[0], st));
    if (j->p->graph && !path)
        return br_fail(st, BR_E_USAGE,
                       "%s is a model's program: --model M.gguf is missing",
                       j->cli->args[0]);
    if (br_mega_accept(j->p, st) != BR_OK)
        return br_prefix(st, "%s", j->cli->args[0]);
    BR_TRY(open_runner(j, st));
    BR_TRY(j->p->graph ? open_step(j, path, st) : open_vm(j, path, st));
    BR_TRY(br_mega_bind_dir(j->store, br_opt_str(j->cli, BR_OPT_bind), st));
    if (run(j, st) != BR_OK)
        return br_prefix(st, "%s", j->cli->args[0]);
    return br_mega_write_dir(j->store, j->runner,
                             br_opt_str(j->cli, BR_OPT_out_dir), st);
}

int
br_cmd_prog_run(br_cli *cli)
{
    job j = {.cli = cli};
    br_status st = {0};
    br_code code;

    if (!br_opt_str(cli, BR_OPT_bind))
        return br_cli_usage(cli, "--bind DIR is missing");
    if (!br_opt_str(cli, BR_OPT_out_dir))
        return br_cli_usage(cli, "-o DIR is missing");
    if (!on(cli, "ref") && (br_opt_given(cli, BR_OPT_seed) ||
                            br_opt_given(cli, BR_OPT_adversarial)))
        return br_cli_usage(cli, "--seed and --adversarial are for tier ref: "
                                 "queues have an order of their own");
    code = tier_here(cli, &st);
    if (code == BR_OK)
        code = do_it(&j, &st);
    br_step_run_free(j.step);
    br_mega_vm_free(j.vm);
    br_model_close(j.model);
    br_cpu_walk_free(j.threads);
    br_cpu_pool_free(j.pool);
    br_cuda_prog_free(j.device);
    br_mega_walk_free(j.walk);
    br_mega_free(j.p);
    return code == BR_OK ? 0 : br_cli_fail(cli, &st);
}
