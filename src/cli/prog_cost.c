/* prog_cost.c - brass prog cost: how long a task program would take.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"
#include "mega/cost.h"

static void
print_row(br_cli *cli, const char *name, const br_cost_row *r, double us)
{
    const br_cost_share *s = &r->critical;
    double critical = s->stream_us + s->compute_us + s->overhead_us;

    if (r->tasks)
        fprintf(cli->out, "  %-18s %8zu tasks %10.1f MB %10.1f us  %5.1f %%\n",
                name, r->tasks, r->bytes / 1e6, critical,
                us > 0 ? 100 * critical / us : 0);
}

static void
print_text(br_cli *cli, const br_mega_cost *c, const br_mega_target *t)
{
    double of_floor = c->us > 0 ? 100 * c->floor_us / c->us : 100;

    fprintf(cli->out,
            "%.1f us on %s, %.1f %% of the floor of %.1f us (%.3f GB at %.0f "
            "GB/s)\n",
            c->us, t->name, of_floor, c->floor_us, (double)c->bytes / 1e9,
            t->hbm_bandwidth_gbs);
    fprintf(cli->out,
            "%zu tasks on %zu of %lld workers; at the bandwidth that can be "
            "reached %.1f us\n",
            c->tasks, c->workers, (long long)t->num_sms, c->reach_us);
    fprintf(cli->out,
            "critical path: %zu tasks, %.1f us memory, %.1f us arithmetic, "
            "%.1f us fixed cost\n\nof it, by region\n",
            c->critical_tasks, c->critical.stream_us, c->critical.compute_us,
            c->critical.overhead_us);
    for (int i = 0; i < BR_CR_COUNT; i++)
        print_row(cli, br_cost_region_name((br_cost_region)i), &c->region[i],
                  c->us);
    fprintf(cli->out, "by operation\n");
    for (int i = 0; i < BR_MOP_LIMIT; i++)
        if (br_mega_op_name(i))
            print_row(cli, br_mega_op_name(i), &c->op[i], c->us);
}

static br_code
cost(br_cli *cli, const br_mega_prog *p, br_mega_cost *c, br_mega_target *t,
     br_status *st)
{
    const char *target = br_opt_str(cli, BR_OPT_target);
    br_mega_cost_opts o = {.target = t, .depth = -1};

    if (target)
        BR_TRY(br_mega_target_get(t, br_text_z(target), st));
    else
        BR_TRY(br_mega_target_of(p, t, st));
    return br_mega_cost_of(c, p, &o, st);
}

int
br_cmd_prog_cost(br_cli *cli)
{
    br_status st = {0};
    br_mega_prog *p;
    br_mega_target t;
    br_mega_cost c;
    br_str doc = {0};
    int ret = 0;

    if (br_mega_load_file(&p, cli->args[0], &st) != BR_OK)
        return br_cli_fail(cli, &st);
    if (cost(cli, p, &c, &t, &st) != BR_OK) {
        (void)!br_prefix(&st, "%s", cli->args[0]);
        br_mega_free(p);
        return br_cli_fail(cli, &st);
    }
    if (br_opt_bool(cli, BR_OPT_json)) {
        br_mega_cost_json(&c, &doc);
        ret = br_cli_json_out(cli, &doc);
        br_str_fini(&doc);
    } else {
        print_text(cli, &c, &t);
    }
    br_mega_cost_fini(&c);
    br_mega_free(p);
    return ret;
}
