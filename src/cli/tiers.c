/* tiers.c - brass tiers: what is here, and what auto picks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/tiers.h"

#include "base/json.h"
#include "base/log.h"

#include <string.h>
#include <unistd.h>

/* Best first. node: what the device's kernel driver puts into /dev. */
static const struct tier_row {
    const char *name, *what, *node;
    bool runs;  /* models, in this build */
    bool asked; /* some: auto leaves it alone */
} rows[BR_TIERS] = {
    {"cuda", "NVIDIA GPU", "/dev/nvidiactl", false, true},
    {"amd", "AMD GPU, the first of its two tiers", "/dev/kfd", false, true},
    {"amd-t1", "AMD GPU by /dev/kfd", "/dev/kfd", false, true},
    {"amd-t2", "AMD GPU by user queues", "/dev/dri/renderD128", false, true},
    {"vulkan", "GPU by Vulkan", "/dev/dri/renderD128", false, false},
    {"metal", "GPU of a Mac", NULL, false, false},
    {"intel", "Intel GPU", "/dev/dri/renderD128", false, false},
    {"cpu", "this processor, all threads", NULL, true, false},
    {"ref", "this processor, plain C, one thread", NULL, true, false},
};

void
br_tiers_look(br_tier_here out[BR_TIERS], const char *sim)
{
    for (size_t i = 0; i < BR_TIERS; i++) {
        const struct tier_row *r = &rows[i];
        br_tier_here *t = &out[i];
        bool node = r->node && access(r->node, F_OK) == 0;
        bool simulated = sim && strncmp(r->name, "amd", 3) == 0;

        *t = (br_tier_here){.name = r->name,
                            .available = r->runs || simulated,
                            .simulated = simulated};
        if (simulated) {
            snprintf(t->why, sizeof t->why, "%s: a simulated %s", r->what, sim);
            continue;
        }
        if (node)
            t->device = r->node;
        t->barred = node && access(r->node, R_OK | W_OK) != 0;
        if (r->asked && node && !t->barred) {
            t->available = true;
            snprintf(t->why, sizeof t->why, "%s: dense models, when asked for",
                     r->what);
        } else if (r->runs)
            snprintf(t->why, sizeof t->why, "%s", r->what);
        else if (r->node && !node)
            snprintf(t->why, sizeof t->why, "%s: there is no %s", r->what,
                     r->node);
        else
            snprintf(t->why, sizeof t->why, "%s: runs no models in this build",
                     r->what);
    }
}

const br_tier_here *
br_tiers_auto(const br_tier_here t[BR_TIERS])
{
    for (size_t i = 0; i < BR_TIERS; i++)
        if (t[i].available && (!rows[i].asked || t[i].simulated))
            return &t[i];
    br_unreachable("ref is always there");
}

static int
print_json(br_cli *cli, const br_tier_here *t)
{
    br_str doc = {0};
    br_json_writer w;
    int code;

    br_json_w_begin(&w, &doc, 0);
    br_json_w_obj(&w);
    br_json_w_key(&w, "tiers");
    br_json_w_arr(&w);
    for (size_t i = 0; i < BR_TIERS; i++) {
        br_json_w_obj(&w);
        br_json_w_key_strz(&w, "name", t[i].name);
        br_json_w_key_bool(&w, "available", t[i].available);
        br_json_w_key_strz(&w, "why", t[i].why);
        br_json_w_obj_end(&w);
    }
    br_json_w_arr_end(&w);
    br_json_w_key_strz(&w, "auto", br_tiers_auto(t)->name);
    br_json_w_key_strz(&w, "auto_why", "the best that runs models here");
    br_json_w_obj_end(&w);
    code = br_cli_json_out(cli, &doc);
    br_str_fini(&doc);
    return code;
}

const char *
br_cli_tier_said(const br_cli *cli, br_opt_id tier)
{
    const char *name = br_opt_str(cli, tier);

    return name && strcmp(name, "auto") == 0 ? NULL : name;
}

const char *
br_cli_tier(const br_cli *cli, br_opt_id tier)
{
    const char *name = br_cli_tier_said(cli, tier);

    return !name && br_opt_str(cli, BR_OPT_sim) ? "amd" : name;
}

br_nd_where
br_cli_where(const br_cli *cli, const char *tier)
{
    if (!tier || !br_nd_tier(br_text_z(tier)))
        return (br_nd_where){0};
    return (br_nd_where){tier, br_opt_str(cli, BR_OPT_sim),
                         br_opt_str(cli, BR_OPT_sim_opts),
                         br_opt_str(cli, BR_OPT_gpu_mode)};
}

br_lm_config
br_cli_lm_config(const br_cli *cli, br_str *cache)
{
    return (br_lm_config){
        .tier = br_cli_tier(cli, BR_OPT_on_tier),
        .sim = br_opt_str(cli, BR_OPT_sim),
        .sim_opts = br_opt_str(cli, BR_OPT_sim_opts),
        .mode = br_opt_str(cli, BR_OPT_gpu_mode),
        .threads = (uint32_t)br_opt_int(cli, BR_OPT_threads),
        .exact = br_opt_enum(cli, BR_OPT_arith) == 1,
        .kv = br_opt_str(cli, BR_OPT_kv_type),
        .cache = br_cli_cache(cli, cache),
        .cache_bytes = (uint64_t)br_opt_int(cli, BR_OPT_cache_bytes),
        .untuned = !br_opt_bool(cli, BR_OPT_tuned),
        .gpu_memory = (uint64_t)br_opt_int(cli, BR_OPT_gpu_memory),
        .gpu_dense = (uint8_t)br_opt_enum(cli, BR_OPT_gpu_dense),
        .gpu_timeout_s = (uint32_t)br_opt_int(cli, BR_OPT_gpu_timeout)};
}

br_code
br_cli_ctx_check(const br_cli *cli, const br_model *m, br_status *st)
{
    const int64_t trained = m->hp.n_ctx;

    if (trained <= 0 || !br_opt_given(cli, BR_OPT_max_ctx) ||
        br_opt_int(cli, BR_OPT_max_ctx) <= trained)
        return BR_OK;
    return br_fail(st, BR_E_USAGE, "--ctx: the model was made for %lld tokens",
                   (long long)trained);
}

br_code
br_cli_tier_check(const char *tier, br_status *st)
{
    if (!tier || strcmp(tier, "ref") == 0 || strcmp(tier, "cpu") == 0 ||
        br_nd_tier(br_text_z(tier)))
        return BR_OK;
    return br_fail(st, BR_E_NO_DEVICE,
                   "tier %.32s runs no models in this build; here are: amd cpu "
                   "cuda ref",
                   tier);
}

/* Where the command runs, as far as its options say: a tier, or several with commas
 * between; NULL: it has none. */
static const char *
tiers_of(const br_cli *cli)
{
    const bool *takes = cli->options.taken;
    const bool sim = takes[BR_OPT_sim] && br_opt_str(cli, BR_OPT_sim);
    const char *said = NULL;

    if (takes[BR_OPT_tiers])
        return br_opt_str(cli, BR_OPT_tiers);
    if (!takes[BR_OPT_tier] && !takes[BR_OPT_on_tier])
        return NULL;
    said = br_cli_tier_said(cli,
                            takes[BR_OPT_tier] ? BR_OPT_tier : BR_OPT_on_tier);
    return said ? said : sim ? "amd" : takes[BR_OPT_tier] ? "ref" : "cpu";
}

static bool
lists(const char *tiers, const char *tier)
{
    for (const char *at = tiers; *at; at += strcspn(at, ",")) {
        at += *at == ',';
        if (strncmp(at, tier, strlen(tier)) == 0) /* amd-t1 is amd's */
            return true;
    }
    return false;
}

void
br_cli_warn_of_tier(const br_cli *cli)
{
    const char *here = tiers_of(cli);

    for (const uint16_t *t = cli->cmd->takes; here && *t < BR_OPT_COUNT; t++) {
        const char *tier = br_cli_only_on((br_opt_id)*t);

        if (tier && cli->options.values[*t].from == BR_FROM_FLAG &&
            !lists(here, tier))
            br_log(BR_EV_option_unused,
                   "--%s is for tier %s: of no use on %.100s",
                   br_cli_option_rows[*t].name, tier, here);
    }
}

int
br_cmd_tiers(br_cli *cli)
{
    br_tier_here t[BR_TIERS];

    br_tiers_look(t, br_opt_str(cli, BR_OPT_sim));
    if (br_opt_bool(cli, BR_OPT_json))
        return print_json(cli, t);
    for (size_t i = 0; i < BR_TIERS; i++)
        fprintf(cli->out, "%-7s %-3s  %s\n", t[i].name,
                t[i].available ? "yes" : "no", t[i].why);
    fprintf(cli->out, "auto picks %s: the best that runs models here\n",
            br_tiers_auto(t)->name);
    return 0;
}
