/* selftest.c - brass test-sched and test-mem: what serving rests on, tried.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/thread.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "run/mem_sim.h"
#include "run/sched_sim.h"

#include <inttypes.h>

static void
at(void *ctx, const br_sim_report *r)
{
    br_progress_at(ctx, r->steps, br_now_ns());
}

typedef struct row {
    const char *key, *text;
    size_t offset;
} row;

static const row sched_rows[] = {
    {"steps", "steps", offsetof(br_sim_report, steps)},
    {"worlds", "worlds", offsetof(br_sim_report, worlds)},
    {"rows", "rows", offsetof(br_sim_report, rows)},
    {"tokens", "tokens, each compared", offsetof(br_sim_report, tokens)},
    {"requests", "requests", offsetof(br_sim_report, requests)},
    {"cancelled", "cancelled", offsetof(br_sim_report, cancelled)},
    {"preempted", "preempted", offsetof(br_sim_report, preempted)},
    {"parked", "parked", offsetof(br_sim_report, parked)},
    {"choices", "choices, each made again by brute force",
     offsetof(br_sim_report, choices)},
    {"hit_tokens", "prompt tokens found as prefixes",
     offsetof(br_sim_report, hit_tokens)},
};

static const row mem_rows[] = {
    {"operations", "operations, all counted anew after each",
     offsetof(br_mem_report, ops)},
    {"worlds", "worlds", offsetof(br_mem_report, worlds)},
    {"taken", "times pages were taken", offsetof(br_mem_report, taken)},
    {"full", "times there were none", offsetof(br_mem_report, full)},
    {"shared", "prefixes shared", offsetof(br_mem_report, shared)},
    {"added", "blocks added to prefixes", offsetof(br_mem_report, added)},
    {"evicted", "blocks evicted", offsetof(br_mem_report, evicted)},
    {"states", "states kept", offsetof(br_mem_report, states)},
    {"oom", "failing allocations, nothing leaked",
     offsetof(br_mem_report, oom)},
};

/* A report is a struct of uint64_t. */
static int
print(br_cli *cli, const void *report, const row *rows, size_t n)
{
    br_str doc = {0};
    br_json_writer w;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    for (size_t i = 0; i < n; i++) {
        uint64_t v = *(const uint64_t *)(const void *)((const char *)report +
                                                       rows[i].offset);

        br_json_w_key_u64(&w, rows[i].key, v);
        if (!br_opt_bool(cli, BR_OPT_json))
            (void)fprintf(cli->out, "%12" PRIu64 "  %s\n", v, rows[i].text);
    }
    br_json_w_obj_end(&w);
    if (br_opt_bool(cli, BR_OPT_json))
        return br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    return 0;
}

int
br_cmd_test_sched(br_cli *cli)
{
    uint64_t seed = (uint64_t)br_opt_int(cli, BR_OPT_first_seed);
    uint64_t steps = (uint64_t)br_opt_int(cli, BR_OPT_steps);
    br_sim_report r;
    br_progress p;
    br_status st = {0};
    br_code code;

    br_progress_begin(&p, cli, "scheduling", steps);
    code = br_sched_sim(seed, steps, &r, at, &p, &st);
    br_progress_end(&p);
    if (code != BR_OK)
        return br_cli_fail(cli, &st);
    return print(cli, &r, sched_rows, BR_COUNT(sched_rows));
}

int
br_cmd_test_mem(br_cli *cli)
{
    br_mem_report r;
    br_status st = {0};

    if (br_mem_sim((uint64_t)br_opt_int(cli, BR_OPT_first_seed),
                   (uint64_t)br_opt_int(cli, BR_OPT_operations), true, &r,
                   &st) != BR_OK)
        return br_cli_fail(cli, &st);
    return print(cli, &r, mem_rows, BR_COUNT(mem_rows));
}
