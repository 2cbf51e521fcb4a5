/* prog_sim.c - brass prog sim: the two dry runs of a program's counters.
 *
 * A report, not a verdict: the exit code is 0 whatever it says. The adversary
 * is the reference's, its known false alarm included (a KV_APPEND that reads
 * the cache it extends).
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/json.h"
#include "mega/mega.h"

static void
put_ids(br_json_writer *w, const char *key, const uint32_t *ids, size_t n)
{
    br_json_w_key(w, key);
    br_json_w_arr(w);
    for (size_t i = 0; i < n; i++)
        br_json_w_u64(w, ids[i]);
    br_json_w_arr_end(w);
}

static int
print_json(br_cli *cli, const br_mega_sim *s)
{
    br_str doc = {0};
    br_json_writer w;
    int code;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    put_ids(&w, "order", s->order.at, s->order.n);
    put_ids(&w, "stuck", s->stuck.at, s->stuck.n);
    br_json_w_key(&w, "violations");
    br_json_w_arr(&w);
    for (size_t i = 0; i < s->violations.n; i++)
        br_json_w_strz(&w, s->violations.at[i]);
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
    code = br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    return code;
}

/* Runs of consecutive ids as "3-7", wrapped at 72 columns under the title. */
static void
print_ids(FILE *f, const char *title, const uint32_t *ids, size_t n)
{
    int col = fprintf(f, "%-8s %zu task%s", title, n, n == 1 ? "" : "s");

    if (n)
        col += fprintf(f, ":");
    for (size_t i = 0, j; i < n; i = j) {
        char z[32];
        int len;
        for (j = i + 1; j < n && ids[j] == ids[j - 1] + 1;)
            j++;
        len = j - i > 1 ? snprintf(z, sizeof z, "%u-%u", ids[i], ids[j - 1])
                        : snprintf(z, sizeof z, "%u", ids[i]);
        if (col + 1 + len > 72)
            col = fprintf(f, "\n        ") - 1;
        col += fprintf(f, " %s", z);
    }
    fputc('\n', f);
}

static int
print_text(br_cli *cli, const br_mega_sim *s, int seeds)
{
    print_ids(cli->out, "order", s->order.at, s->order.n);
    print_ids(cli->out, "stuck", s->stuck.at, s->stuck.n);
    fprintf(cli->out, "hunt     %d order%s, %zu read%s before the write\n",
            seeds, seeds == 1 ? "" : "s", s->violations.n,
            s->violations.n == 1 ? "" : "s");
    for (size_t i = 0; i < s->violations.n; i++)
        fprintf(cli->out, "  %s\n", s->violations.at[i]);
    return 0;
}

int
br_cmd_prog_sim(br_cli *cli)
{
    int seeds = (int)br_opt_int(cli, BR_OPT_orders);
    br_mega_prog *p = NULL;
    br_mega_sim s = {0};
    br_status st = {0};
    br_code rc = br_mega_load_file(&p, cli->args[0], &st);
    int code;

    if (rc == BR_OK) {
        rc = br_mega_simulate(p, &s, &st);
        if (rc == BR_OK)
            rc = br_mega_simulate_adversarial(p, seeds, &s, &st);
        if (rc != BR_OK)
            rc = br_prefix(&st, "%s", cli->args[0]);
    }
    if (rc != BR_OK)
        code = br_cli_fail(cli, &st);
    else if (br_opt_bool(cli, BR_OPT_json))
        code = print_json(cli, &s);
    else
        code = print_text(cli, &s, seeds);
    br_mega_sim_fini(&s);
    br_mega_free(p);
    return code;
}
