/* lower_fuse.c - fusion_grouping: which nodes go together, and how.
 *
 * A group is a list of names; it matches every run of adjacent nodes that have
 * these names, in this order. A name is an operation ("rmsnorm"), a role
 * ("gate_proj", or short "gate"), an alias, or the name of a node with or
 * without what stands before its last dot ("L0.swiglu", "swiglu"). Groups take
 * their runs in config order, and a node is in one run at most.
 *
 *   fused      every member is one task, one tensor leaves the run, and the
 *              run reads at most 8 buffers: one FUSED task whose recipe holds
 *              the members; what stays inside is scratch, not a buffer.
 *   resident   otherwise. The i-th task of every member runs on one worker, so
 *              an input is in its caches once, and sibling linears (same
 *              input, and one node reads both) share one counter.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/lower_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- names --------------------------------------------------------------- */

static const struct {
    const char *alias, *text;
} aliases[] = {
    {"gemv", "linear"},   {"gemm", "linear"},          {"norm", "rmsnorm"},
    {"silu", "swiglu"},   {"silu_mul", "swiglu"},      {"residual", "add"},
    {"reshape", "heads"}, {"sample_argmax", "argmax"},
};

static bool
role_is(const char *role, const char *name)
{
    size_t n = strlen(name);

    return strncmp(role, name, n) == 0 &&
           (role[n] == 0 || strcmp(role + n, "_proj") == 0);
}

static bool
node_is(const br_net_node *d, const char *name)
{
    const char *op = br_net_op_text(d->op), *dot = strrchr(d->name, '.');

    for (size_t i = 0; i < BR_COUNT(aliases); i++)
        if (strcmp(aliases[i].alias, name) == 0 &&
            strcmp(aliases[i].text, op) == 0)
            return true;
    return strcmp(op, name) == 0 || (d->role[0] && role_is(d->role, name)) ||
           strcmp(d->name, name) == 0 || (dot && strcmp(dot + 1, name) == 0);
}

/* ---- fused or resident --------------------------------------------------- */

/* Tasks of a node. */
static int64_t
tasks_of(br_lower *l, const br_net_node *d)
{
    br_low_cut c;
    int64_t keys;

    if (d->op == BR_NET_LINEAR) {
        c = br_low_cut_of(l, d);
        return c.m_tiles * c.n_tiles;
    }
    return d->op == BR_NET_ATTENTION ? br_low_shards(l, d, &keys) : 1;
}

/* Distinct buffers from outside that a run reads. */
typedef struct outside {
    int32_t id[BR_MEGA_MAX_INPUTS];
    int32_t n; /* may exceed the array: too many */
} outside;

enum { RESHAPE_IDS = -2, SCALES = 1 << 30 }; /* ids that are no tensors */

static void
reads(outside *o, int32_t id)
{
    for (int32_t i = 0; i < BR_MIN(o->n, BR_MEGA_MAX_INPUTS); i++)
        if (o->id[i] == id)
            return;
    if (o->n < BR_MEGA_MAX_INPUTS)
        o->id[o->n] = id;
    o->n++;
}

static bool
inside(const br_lower *l, const br_low_group *g, int32_t tensor)
{
    int32_t p = l->net->tensors.at[tensor].producer;

    return p >= g->first && p < g->first + g->n;
}

static void
reads_of(const br_lower *l, const br_low_group *g, const br_net_node *d,
         outside *o)
{
    const br_net_tensor *x = &l->net->tensors.at[d->in[0]];

    for (int i = 0; i < d->n_in; i++)
        if (!inside(l, g, d->in[i]))
            reads(o, d->in[i]);
    if ((d->op == BR_NET_HEADS || d->op == BR_NET_ROPE) && !x->headed)
        reads(o, RESHAPE_IDS);
    if (d->bias != BR_NET_NONE)
        reads(o, d->bias);
    if (d->weight == BR_NET_NONE)
        return;
    reads(o, d->weight);
    if (l->net->tensors.at[d->weight].quant)
        reads(o, d->weight | SCALES);
}

/* How often nodes of the run read a tensor. */
static int32_t
uses_inside(const br_lower *l, const br_low_group *g, int32_t tensor)
{
    int32_t n = 0;

    for (int32_t i = g->first; i < g->first + g->n; i++) {
        const br_net_node *d = &l->net->nodes.at[i];

        for (int k = 0; k < d->n_in; k++)
            n += d->in[k] == tensor;
    }
    return n;
}

/* The one tensor that leaves the run and that no member reads. */
static bool
find_result(const br_lower *l, br_low_group *g)
{
    g->result = BR_NET_NONE;
    for (int32_t i = g->first; i < g->first + g->n; i++) {
        int32_t id = l->net->nodes.at[i].out;
        const br_net_tensor *t = &l->net->tensors.at[id];
        int32_t in = uses_inside(l, g, id);

        if (t->uses == in && t->kind != BR_MBK_IO_OUTPUT)
            continue;
        if (in > 0 || g->result != BR_NET_NONE)
            return false;
        g->result = id;
    }
    return g->result != BR_NET_NONE;
}

/* Scratch has a dtype that recipes can name. */
static bool
has_recipe_dtype(const br_lower *l)
{
    br_mega_dtype d = l->net->dtype;

    return d == BR_MDT_F32 || d == BR_MDT_F16 || d == BR_MDT_BF16;
}

static bool
can_fuse(br_lower *l, br_low_group *g)
{
    outside o = {0};

    for (int32_t i = g->first; i < g->first + g->n; i++) {
        const br_net_node *d = &l->net->nodes.at[i];

        if (d->op == BR_NET_KV_APPEND || tasks_of(l, d) > 1)
            return false;
        reads_of(l, g, d, &o);
    }
    return o.n <= BR_MEGA_MAX_INPUTS && has_recipe_dtype(l) &&
           find_result(l, g);
}

/* ---- finding ------------------------------------------------------------- */

static bool
matches_at(const br_lower *l, const br_cfg_group *g, size_t first)
{
    if (first + g->n > l->net->nodes.n)
        return false;
    for (size_t i = 0; i < g->n; i++)
        if (l->group_of[first + i] != BR_NET_NONE ||
            !node_is(&l->net->nodes.at[first + i], g->names[i]))
            return false;
    return true;
}

static br_code
add_group(br_lower *l, size_t first, size_t n)
{
    br_low_group g = {.first = (int32_t)first, .n = (int32_t)n};
    int64_t slots = 1;

    for (size_t i = first; i < first + n; i++)
        l->group_of[i] = (int32_t)l->groups.n;
    g.fused = can_fuse(l, &g);
    if (!g.fused) {
        for (size_t i = first; i < first + n; i++)
            slots = BR_MAX(slots, tasks_of(l, &l->net->nodes.at[i]));
        if (slots > BR_MEGA_MAX_TASKS - l->n_units)
            return br_fail(l->st, BR_E_LIMIT, "program: more than %d tasks",
                           BR_MEGA_MAX_TASKS);
        g.unit = l->n_units;
        l->n_units += (int32_t)slots;
    }
    l->stats.fused_groups += g.fused;
    l->stats.resident_groups += !g.fused;
    if (!br_vec_push(&l->groups, g))
        return br_fail(l->st, BR_E_OOM, "lowering: out of memory");
    return BR_OK;
}

/* Every name of a group for an error: "'norm', 'q', ...". */
static void
group_text(char buf[128], const br_cfg_group *g)
{
    size_t n = 0;

    for (size_t i = 0; i < g->n && n < 90; i++)
        n += (size_t)snprintf(buf + n, 128 - n, "%s'%.24s'", i ? ", " : "",
                              g->names[i]);
    if (n >= 90)
        snprintf(buf + 90, 38, "...");
}

br_code
br_low_find_groups(br_lower *l)
{
    for (size_t g = 0; g < l->cfg.n_groups; g++) {
        const br_cfg_group *want = &l->cfg.groups[g];
        size_t before = l->groups.n;
        char names[128];

        for (size_t i = 0; i < l->net->nodes.n; i++)
            if (matches_at(l, want, i))
                BR_TRY(add_group(l, i, want->n));
        if (l->groups.n > before)
            continue;
        group_text(names, want);
        return br_fail(l->st, BR_E_FORMAT,
                       "config.fusion_grouping[%zu]: no free nodes %s stand "
                       "side by side in this graph",
                       g, names);
    }
    return BR_OK;
}

/* ---- lowering ------------------------------------------------------------ */

static void
lower_fused(br_lower *l, const br_low_group *g)
{
    br_str label = {0};
    int64_t counter;

    for (int32_t i = 0; i < g->n; i++)
        br_str_printf(&label, "%s%s", i ? "+" : "",
                      l->net->nodes.at[g->first + i].name);
    if (label.oom)
        br_low_fail(l, br_fail(l->st, BR_E_OOM, "lowering: out of memory"));
    if (br_low_ok(l)) {
        br_low_recipe_open(l, g->result);
        counter = br_mega_add_counter(&l->b, br_text_z(br_str_z(&label)));
        for (int32_t i = 0; i < g->n; i++)
            br_low_node(l, &l->net->nodes.at[g->first + i]);
        br_low_recipe_close(l, br_str_z(&label), counter);
    }
    br_str_fini(&label);
}

/* How many members from i on are linears of one input, read by one node. */
static int32_t
siblings(const br_lower *l, const br_low_group *g, int32_t i)
{
    const br_net_node *a = &l->net->nodes.at[g->first + i];
    int32_t n = 1;

    if (a->op != BR_NET_LINEAR || l->tensors[a->out].consumer == BR_NET_NONE)
        return 1;
    for (; i + n < g->n; n++) {
        const br_net_node *b = &l->net->nodes.at[g->first + i + n];

        if (b->op != BR_NET_LINEAR || b->in[0] != a->in[0] ||
            l->tensors[b->out].consumer != l->tensors[a->out].consumer)
            break;
    }
    return n;
}

static void
lower_siblings(br_lower *l, const br_net_node *d, int32_t n)
{
    br_str note = {0};
    int64_t tiles = 0;

    for (int32_t i = 0; i < n; i++) {
        br_str_printf(&note, "%s%s", i ? "+" : "", d[i].name);
        tiles += tasks_of(l, &d[i]);
    }
    br_str_printf(&note, " (%lld tiles)", (long long)tiles);
    if (note.oom)
        br_low_fail(l, br_fail(l->st, BR_E_OOM, "lowering: out of memory"));
    else
        l->shared_counter =
            br_mega_add_counter(&l->b, br_text_z(br_str_z(&note)));
    for (int32_t i = 0; i < n; i++) {
        l->slot = 0;
        br_low_node(l, &d[i]);
    }
    for (int32_t i = 0; i < n; i++)
        br_low_ready(l, d[i].out, l->shared_counter, tiles);
    l->shared_counter = -1;
    br_str_fini(&note);
}

static void
lower_resident(br_lower *l, const br_low_group *g)
{
    int32_t n;

    l->unit = g->unit;
    for (int32_t i = 0; i < g->n && br_low_ok(l); i += n) {
        const br_net_node *d = &l->net->nodes.at[g->first + i];

        n = siblings(l, g, i);
        l->slot = 0;
        if (n > 1)
            lower_siblings(l, d, n);
        else
            br_low_node(l, d);
    }
    l->unit = BR_NET_NONE;
}

void
br_low_group_lower(br_lower *l, const br_low_group *g)
{
    if (g->fused)
        lower_fused(l, g);
    else
        lower_resident(l, g);
}
