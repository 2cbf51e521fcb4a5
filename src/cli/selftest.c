/* selftest.c - brass test-sched: the scheduler in virtual time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/thread.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "run/sched_sim.h"

#include <inttypes.h>

static void
at(void *ctx, const br_sim_report *r)
{
    br_progress_at(ctx, r->steps, br_now_ns());
}

static const struct {
    const char *key, *text;
    size_t offset;
} rows[] = {
    {"steps", "steps", offsetof(br_sim_report, steps)},
    {"worlds", "worlds", offsetof(br_sim_report, worlds)},
    {"rows", "rows", offsetof(br_sim_report, rows)},
    {"tokens", "tokens, each compared", offsetof(br_sim_report, tokens)},
    {"requests", "requests", offsetof(br_sim_report, requests)},
    {"cancelled", "cancelled", offsetof(br_sim_report, cancelled)},
    {"preempted", "preempted", offsetof(br_sim_report, preempted)},
    {"choices", "choices, each made again by brute force",
     offsetof(br_sim_report, choices)},
    {"hit_tokens", "prompt tokens found as prefixes",
     offsetof(br_sim_report, hit_tokens)},
};

static uint64_t
value(const br_sim_report *r, size_t i)
{
    return *(const uint64_t *)(const void *)((const char *)r + rows[i].offset);
}

static int
print_json(br_cli *cli, const br_sim_report *r)
{
    br_str doc = {0};
    br_json_writer w;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_json_w_key_u64(&w, rows[i].key, value(r, i));
    }
    br_json_w_obj_end(&w);
    return br_cli_json_out(cli, &doc);
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
    if (br_opt_bool(cli, BR_OPT_json))
        return print_json(cli, &r);
    for (size_t i = 0; i < BR_COUNT(rows); i++)
        (void)fprintf(cli->out, "%12" PRIu64 "  %s\n", value(&r, i),
                      rows[i].text);
    return 0;
}
