/* kernel_compile.c - brass kernel compile: a kernel file through the passes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/kernel.h"

#include "base/thread.h"
#include "cg/ktarget.h"

#include <string.h>

static bool
known_pass(const char *name)
{
    if (strcmp(name, "input") == 0 || strcmp(name, "asm") == 0)
        return true;
    for (const br_kpass *p = br_kpasses; p->name; p++)
        if (strcmp(name, p->name) == 0)
            return true;
    return false;
}

/* The function of --entry alone, or the module. */
static void
print(br_cli *cli, const br_kir *m, br_str *text)
{
    uint32_t fn;
    br_status st = {0};

    if (br_opt_given(cli, BR_OPT_entry) &&
        br_kernel_entry(cli, m, &fn, &st) == BR_OK)
        br_kfn_print(m, &m->fns.at[fn], text);
    else
        br_kir_print(m, text);
}

static bool
wants_zrt(br_cli *cli)
{
    const char *out = br_opt_str(cli, BR_OPT_output);
    size_t n = out ? strlen(out) : 0;

    return n > 4 && strcmp(out + n - 4, ".zrt") == 0;
}

/* Code of the kernels: the file that a loader takes where -o says where it
 * goes, else text. */
static br_code
code_text(br_cli *cli, const br_ktarget *t, const br_kir *m, br_str *text,
          int64_t *done, br_status *st)
{
    uint32_t only = BR_KNONE;
    bool dump = br_opt_given(cli, BR_OPT_dump);
    bool zrt = wants_zrt(cli) && !dump;
    bool file = (zrt || t->file) && br_opt_given(cli, BR_OPT_output) && !dump;
    br_kcode *code;
    br_code c = BR_OK;

    if (zrt || br_opt_given(cli, BR_OPT_entry))
        BR_TRY(br_kernel_entry(cli, m, &only, st));
    BR_TRY(t->compile(&code, m, st));
    done[1] = br_now_ns();
    if (zrt)
        c = br_ktarget_zrt(t, code, m, only,
                           br_opt_bool(cli, BR_OPT_debug_info), text, st);
    else if (file)
        c = t->file(code, only, text, st);
    for (uint32_t k = 0; k < m->fns.n && c == BR_OK && !file; k++)
        if (m->fns.at[k].blks.n && (only == BR_KNONE || only == k))
            c = t->text(code, k, text, st);
    t->free(code);
    return c;
}

static br_code
compile(br_cli *cli, br_kir *m, const br_ktarget *t, br_str *text,
        int64_t *done, br_status *st)
{
    const char *dump = br_opt_str(cli, BR_OPT_dump);
    uint32_t fn;

    if (br_opt_given(cli, BR_OPT_entry))
        BR_TRY(br_kernel_entry(cli, m, &fn, st));
    if (!dump || strcmp(dump, "input") != 0)
        BR_TRY(
            br_kir_optimise(m, dump && strcmp(dump, "asm") ? dump : NULL, st));
    done[0] = done[1] = br_now_ns(); /* passes; code */
    if (t && (!dump || strcmp(dump, "asm") == 0))
        BR_TRY(code_text(cli, t, m, text, done, st));
    else
        print(cli, m, text);
    return text->oom ? br_fail(st, BR_E_OOM, "out of memory") : BR_OK;
}

int
br_cmd_kernel_compile(br_cli *cli)
{
    const char *target = br_opt_str(cli, BR_OPT_ktarget);
    const char *dump = br_opt_str(cli, BR_OPT_dump);
    int64_t t0 = br_now_ns(), t1, done[2] = {0, 0};
    const br_ktarget *t;
    br_status st = {0};
    br_str text = {0};
    int code = 0;
    br_kir *m;

    if (dump && !known_pass(dump))
        return br_cli_usage(
            cli,
            "--dump: no pass '%s'; input inline ssa fold space flow gvn hoist "
            "join dce sched asm",
            dump);
    if (wants_zrt(cli) && !br_opt_given(cli, BR_OPT_ktarget))
        target = "x86-64";
    t = br_ktarget_find(target);
    if (strcmp(target, "kir") != 0 && (!t || !t->text)) {
        br_fail(&st, BR_E_NO_DEVICE,
                "target %s is not available; here are: kir x86-64 "
                "gfx1100 gfx1151 gfx1200 gfx1201",
                target);
        return br_cli_fail(cli, &st);
    }
    if (wants_zrt(cli) && !t)
        return br_cli_usage(cli, "a .zrt has code: --target x86-64 or gfx...");
    if (dump && strcmp(dump, "asm") == 0 && !t)
        return br_cli_usage(cli, "--dump asm needs a --target with code");
    if (br_kernel_load(cli, &m, NULL, &st) != BR_OK)
        return br_cli_fail(cli, &st);
    t1 = br_now_ns();
    if (compile(cli, m, t, &text, done, &st) != BR_OK ||
        br_cli_write(cli, br_opt_str(cli, BR_OPT_output), text.at, text.n,
                     &st) != BR_OK)
        code = br_cli_fail(cli, &st);
    if (code == 0 && br_opt_bool(cli, BR_OPT_time))
        fprintf(cli->err,
                "read %.2f ms, passes %.2f ms, code %.2f ms, text %.2f ms\n",
                (double)(t1 - t0) / 1e6, (double)(done[0] - t1) / 1e6,
                (double)(done[1] - done[0]) / 1e6,
                (double)(br_now_ns() - done[1]) / 1e6);
    br_str_fini(&text);
    br_kir_free(m);
    return code;
}
