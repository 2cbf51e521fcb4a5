/* prog_check.c - brass prog check: the verdict on a task program.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "base/json.h"
#include "mega/mega.h"

/* Names come from the file: what a terminal would obey is shown as \xNN. */
static void
print_line(FILE *f, const char *what, const char *text)
{
    fprintf(f, "%s: ", what);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (c[0] == 0xc0 && c[1] == 0x80) /* a NUL, as reports keep it */
            c++, fputs("\\x00", f);
        else if (*c < 0x20 || *c == 0x7f)
            fprintf(f, "\\x%02x", *c);
        else
            fputc(*c, f);
    fputc('\n', f);
}

static void
print_text(FILE *f, const br_mega_prog *p, const br_mega_report *r)
{
    size_t n = r->errors.n + r->more_errors;

    if (r->ok)
        fprintf(f, "accepted");
    else
        fprintf(f, "rejected: %zu error%s", n, n == 1 ? "" : "s");
    if (r->warnings.n)
        fprintf(f, ", %zu warning%s", r->warnings.n,
                r->warnings.n == 1 ? "" : "s");
    fputc('\n', f);
    for (size_t i = 0; i < r->errors.n; i++)
        print_line(f, "error", r->errors.at[i]);
    if (r->more_errors)
        fprintf(f, "... and %zu more\n", r->more_errors);
    for (size_t i = 0; i < r->warnings.n; i++)
        print_line(f, "warning", r->warnings.at[i]);
    fprintf(f,
            "%zu tasks, %zu buffers, %zu counters, %lld edges, %s; weights "
            "%.2f MB; workers %s\n",
            p->n_tasks, p->n_buffers, p->n_counters, (long long)r->n_edges,
            r->acyclic ? "acyclic" : "cyclic", r->weight_mb,
            r->sm_assigned ? "assigned" : "not assigned");
}

static int
print_json(br_cli *cli, const br_mega_prog *p, const br_mega_report *r)
{
    br_str doc = {0};
    int code;

    br_mega_report_json(p, r, &doc);
    code = br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    return code;
}

int
br_cmd_prog_check(br_cli *cli)
{
    br_mega_mode mode =
        br_opt_given(cli, BR_OPT_compat) ? BR_MEGA_COMPAT_0_2 : BR_MEGA_SOUND;
    br_status st = {0};
    br_mega_report r;
    br_mega_prog *p;
    int code = 0;

    if (br_mega_load_file(&p, cli->args[0], &st) != BR_OK)
        return br_cli_fail(cli, &st);
    if (br_mega_check(p, mode, &r, &st) != BR_OK) {
        br_mega_free(p);
        br_prefix(&st, "%s", cli->args[0]);
        return br_cli_fail(cli, &st);
    }
    if (br_opt_bool(cli, BR_OPT_json))
        code = print_json(cli, p, &r);
    else
        print_text(cli->out, p, &r);
    if (code == 0 && !r.ok)
        code = br_code_exit(BR_E_REJECTED);
    br_mega_report_fini(&r);
    br_mega_free(p);
    return code;
}
