/* doctor.c - brass doctor: can this machine run models, and what would help?
 *
 * Every finding that is not good has a fix beside it. READY: nothing to do;
 * WARNINGS: it works, not as well as it could; NOT READY: exit code 5.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/thread.h"
#include "cli/amd_probe.h"
#include "cli/http_get.h"
#include "cli/tiers.h"

#include <string.h>
#include <unistd.h>

typedef enum level { GOOD, WARN, BAD } level;
static const char *const level_names[] = {"ok", "warning", "failed"};
static const char *const verdicts[] = {"READY", "WARNINGS", "NOT READY"};

typedef struct finding {
    const char *what;
    level level;
    char text[160], fix[160]; /* fix: "" when it is good */
} finding;

enum { MAX_FINDINGS = 16, MAX_AMD = 8 };
typedef struct report {
    finding f[MAX_FINDINGS];
    size_t n;
    level worst;
} report;

BR_PRINTF(4, 5)
static finding *
find(report *r, const char *what, level l, const char *fmt, ...)
{
    finding *f = &r->f[r->n++];
    va_list ap;

    br_check(r->n <= MAX_FINDINGS);
    *f = (finding){.what = what, .level = l};
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
    r->worst = BR_MAX(r->worst, l);
    return f;
}

BR_PRINTF(2, 3)
static void
fix(finding *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(f->fix, sizeof f->fix, fmt, ap);
    va_end(ap);
}

#if defined __x86_64__
static bool
has_fma(void)
{
    return __builtin_cpu_supports("fma") != 0;
}
#else
static bool
has_fma(void)
{
    return true; /* part of every other 64-bit machine's base set */
}
#endif

static void
processor(report *r)
{
    int n = br_cpu_count();

    if (has_fma())
        find(r, "processor", GOOD, "%d threads at once, FMA", n);
    else
        fix(find(r, "processor", WARN, "%d threads at once, no FMA", n),
            "none; tier ref is about eight times slower without it");
}

static void
memory(report *r)
{
    const double gib = 1 << 30;
    uint64_t all, left;

    br_os_memory(&all, &left);
    if (left >= 512 << 20)
        find(r, "memory", GOOD, "%.1f of %.1f GiB are free", (double)left / gib,
             (double)all / gib);
    else
        fix(find(r, "memory", left ? WARN : BAD, "%.1f of %.1f GiB are free",
                 (double)left / gib, (double)all / gib),
            "end other programs; a model needs its file's size and more");
}

static void
devices(report *r, const br_tier_here *t)
{
    for (size_t i = 0; i < BR_TIERS; i++)
        if (t[i].barred && (i == 0 || !t[i - 1].device ||
                            strcmp(t[i].device, t[i - 1].device) != 0))
            fix(find(r, "permission", WARN, "%s may not be opened",
                     t[i].device),
                "usermod -aG render,video USER, then log in again");
    find(r, "tier", GOOD, "auto picks %s: %s", br_tiers_auto(t)->name,
         br_tiers_auto(t)->why);
}

/* Each AMD GPU of the kernel's topology, and whether it takes our packets. */
static void
amd(report *r, br_cli *cli)
{
    const br_amd_tell none = {NULL, NULL};
    const br_amd_os *os;
    br_simgpu *sim;
    br_status st = {0};
    br_code c = br_amd_probe_os(cli, &os, &sim, &st);

    for (unsigned k = 0; c == BR_OK && k < MAX_AMD; k++) {
        br_amd_node n;

        c = br_amd_node_get(&n, os, k, &st);
        if (c == BR_OK && br_amd_probe(os, &n, false, none, &st) == BR_OK)
            find(r, "amd", GOOD, "%s%s, %u CUs, %.0f GiB%s: takes every packet",
                 sim ? "simulated " : "", n.name,
                 (unsigned)(n.simds / n.simds_per_cu),
                 (double)n.vram_bytes / (1 << 30),
                 n.small_bar ? ", a small BAR" : "");
        else if (c == BR_OK)
            fix(find(r, "amd", WARN, "%s", st.msg),
                "brass test-pm4 says more; "
                "usermod -aG render,video USER where it may not be opened");
    }
    if (c != BR_OK && c != BR_E_NO_DEVICE && c != BR_E_NOT_FOUND)
        fix(find(r, "amd", WARN, "%s", st.msg), "none known");
    br_simgpu_free(sim);
}

#ifdef BR_HAVE_LIBEDIT
static void
editing(report *r)
{
    find(r, "editing", GOOD, "lines of brass chat, by libedit");
}
#else
static void
editing(report *r)
{
    fix(find(r, "editing", WARN, "brass chat edits no lines in this build"),
        "install libedit-dev and pkg-config, then make");
}
#endif

static void
downloads(report *r)
{
    if (br_http_here())
        find(r, "downloads", GOOD, "brass model pull, by libcurl");
    else
        fix(find(r, "downloads", WARN, "brass model pull is left out"),
            "install libcurl4-openssl-dev and pkg-config, then make");
}

static int
print_json(br_cli *cli, const report *r)
{
    br_str doc = {0};
    br_json_writer w;
    int code;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    br_json_w_key_strz(&w, "verdict", verdicts[r->worst]);
    br_json_w_key(&w, "findings");
    br_json_w_arr(&w);
    for (size_t i = 0; i < r->n; i++) {
        br_json_w_obj(&w);
        br_json_w_key_strz(&w, "what", r->f[i].what);
        br_json_w_key_strz(&w, "state", level_names[r->f[i].level]);
        br_json_w_key_strz(&w, "text", r->f[i].text);
        br_json_w_key_strz(&w, "fix", r->f[i].fix);
        br_json_w_obj_end(&w);
    }
    br_json_w_arr_end(&w);
    br_json_w_obj_end(&w);
    code = br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    return code;
}

int
br_cmd_doctor(br_cli *cli)
{
    br_tier_here t[BR_TIERS];
    report r = {.n = 0};
    int code = 0;

    br_tiers_look(t, br_opt_str(cli, BR_OPT_sim));
    processor(&r);
    memory(&r);
    devices(&r, t);
    amd(&r, cli);
    editing(&r);
    downloads(&r);
    if (br_opt_bool(cli, BR_OPT_json)) {
        code = print_json(cli, &r);
    } else {
        for (size_t i = 0; i < r.n; i++) {
            const finding *f = &r.f[i];

            fprintf(cli->out, "%-8s %-10s  %s\n", level_names[f->level],
                    f->what, f->text);
            if (*f->fix)
                fprintf(cli->out, "%21s fix: %s\n", "", f->fix);
        }
        fprintf(cli->out, "%s\n", verdicts[r.worst]);
    }
    return code ? code : r.worst == BAD ? br_code_exit(BR_E_NO_DEVICE) : 0;
}
