/* check_config.c - does the configuration fit the machine?
 *
 * A program whose configuration cannot be launched as it says is refused: the
 * loader would refuse it later, with less to go by. An absent configuration or
 * target is fine; their fields are only looked at where they are used.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/check_sound.h"
#include "mega/pyrepr.h"

static void
say(br_snd *s, const char *what, const char *field, const br_json *v,
    const char *want)
{
    br_str_printf(&s->k->text, "%s.%s is ", what, field);
    br_py_repr(&s->k->text, v);
    br_str_printf(&s->k->text, ", must be %s", want);
    br_chk_take_error(s->k);
}

static void
in_range(br_snd *s, const char *what, const char *field, const br_json *v,
         int64_t lo, int64_t hi)
{
    if (!v || (v->kind == BR_J_INT && v->i >= lo && v->i <= hi))
        return;
    br_str_printf(&s->k->text, "%s.%s is ", what, field);
    br_py_repr(&s->k->text, v);
    br_str_printf(&s->k->text, ", must be an integer from %lld to %lld",
                  (long long)lo, (long long)hi);
    br_chk_take_error(s->k);
}

static bool
one_of(const br_json *v, const char *const *names, size_t n)
{
    for (size_t i = 0; v->kind == BR_J_STR && i < n; i++)
        if (br_text_is((br_text){v->s, v->n}, names[i]))
            return true;
    return false;
}

static void
check_target(br_snd *s)
{
    static const struct {
        br_mega_target_field field;
        const char *name;
        int64_t lo;
    } row[] = {
        {BR_MT_num_sms, "num_sms", 1},
        {BR_MT_smem_bytes_per_sm, "smem_bytes_per_sm", 0},
        {BR_MT_smem_bytes_per_block_optin, "smem_bytes_per_block_optin", 0},
        {BR_MT_regs_per_sm, "regs_per_sm", 0},
    };

    for (size_t i = 0; i < BR_COUNT(row); i++)
        in_range(s, "target", row[i].name, s->p->target[row[i].field],
                 row[i].lo, INT64_C(1) << 40);
}

static void
check_assignment(br_snd *s, const br_json *v)
{
    static const char *const names[] = {"round_robin", "load_balance"};
    const br_json *n = s->p->target ? s->p->target[BR_MT_num_sms] : NULL;
    int64_t max = n && n->kind == BR_J_INT ? n->i - 1 : INT64_MAX;
    const br_json *m;

    if (!v || one_of(v, names, BR_COUNT(names)))
        return;
    if (v->kind != BR_J_OBJ) {
        say(s, "config", "sm_assignment", v,
            "\"round_robin\", \"load_balance\" or a map from task to SM");
        return;
    }
    for (m = v->child; m; m = m->next)
        in_range(s, "config.sm_assignment", m->key, m, 0, max);
}

static bool
objects_of_objects(const br_json *v)
{
    const br_json *m;

    if (v->kind != BR_J_OBJ)
        return false;
    for (m = v->child; m; m = m->next)
        if (m->kind != BR_J_OBJ)
            return false;
    return true;
}

static bool
lists_of_names(const br_json *v)
{
    const br_json *g, *m;

    if (v->kind != BR_J_ARR)
        return false;
    for (g = v->child; g; g = g->next) {
        if (g->kind != BR_J_ARR)
            return false;
        for (m = g->child; m; m = m->next)
            if (m->kind != BR_J_STR)
                return false;
    }
    return true;
}

static void
check_launch(br_snd *s, const br_json *const *c)
{
    const br_json *threads = c[BR_MC_threads_per_block], *cap = NULL;
    int64_t max = INT64_C(1) << 40;

    if (s->p->target)
        cap = s->p->target[BR_MT_smem_bytes_per_block_optin];
    if (cap && cap->kind == BR_J_INT && cap->i >= 0)
        max = cap->i;
    in_range(s, "config", "pipelining_depth", c[BR_MC_pipelining_depth], 0,
             INT32_MAX);
    in_range(s, "config", "smem_bytes_per_block", c[BR_MC_smem_bytes_per_block],
             0, max);
    if (threads && (threads->kind != BR_J_INT || threads->i < 32 ||
                    threads->i > 1024 || threads->i % 32 != 0))
        say(s, "config", "threads_per_block", threads,
            "a multiple of 32 from 32 to 1024");
}

void
br_snd_config(br_snd *s)
{
    static const char *const policies[] = {"linear", "graph_color", "none"};
    const br_json *const *c = s->p->config, *v;

    if (s->p->target)
        check_target(s);
    if (!c)
        return;
    v = c[BR_MC_tiling];
    if (v && !objects_of_objects(v))
        say(s, "config", "tiling", v, "an object of objects");
    v = c[BR_MC_fusion_grouping];
    if (v && !lists_of_names(v))
        say(s, "config", "fusion_grouping", v, "a list of lists of names");
    check_assignment(s, c[BR_MC_sm_assignment]);
    v = c[BR_MC_page_allocation];
    if (v && !one_of(v, policies, BR_COUNT(policies)))
        say(s, "config", "page_allocation", v,
            "\"linear\", \"graph_color\" or \"none\"");
    check_launch(s, c);
}
