/* config.c - reads a ScheduleConfig and refuses what no machine can do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shared memory of a block where no target says less. */
#define MAX_SMEM ((int64_t)1 << 30)

static const char *const field_names[BR_MC_COUNT] = {
    [BR_MC_tiling] = "tiling",
    [BR_MC_fusion_grouping] = "fusion_grouping",
    [BR_MC_sm_assignment] = "sm_assignment",
    [BR_MC_pipelining_depth] = "pipelining_depth",
    [BR_MC_page_allocation] = "page_allocation",
    [BR_MC_threads_per_block] = "threads_per_block",
    [BR_MC_smem_bytes_per_block] = "smem_bytes_per_block",
};

const char *
br_mega_config_field_name(br_mega_config_field f)
{
    return field_names[f];
}

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "config: out of memory");
}

/* A name of the file, short and printable, for an error. */
static const char *
quoted(char buf[48], const char *p, size_t n)
{
    size_t k = BR_MIN(n, (size_t)40);

    for (size_t i = 0; i < k; i++)
        buf[i] = (char)(p[i] >= 0x20 && p[i] < 0x7f ? p[i] : '?');
    memcpy(buf + k, n > k ? "..." : "", n > k ? 4 : 1);
    return buf;
}

static br_code
wrong_kind(const char *place, const br_json *v, const char *want, br_status *st)
{
    return br_fail(st, BR_E_FORMAT, "config.%s: %s, not %s", place,
                   br_json_kind_name((br_json_kind)v->kind), want);
}

br_code
br_mega_config_fields(const br_json **fields, const br_json *obj, br_status *st)
{
    char buf[48];

    memset(fields, 0, BR_MC_COUNT * sizeof *fields);
    if (obj->kind != BR_J_OBJ)
        return br_fail(st, BR_E_FORMAT, "config: %s, not an object",
                       br_json_kind_name((br_json_kind)obj->kind));
    for (const br_json *m = obj->child; m; m = m->next) {
        int f = 0;

        while (f < BR_MC_COUNT && strcmp(m->key, field_names[f]) != 0)
            f++;
        if (f == BR_MC_COUNT || strlen(m->key) != m->key_n)
            return br_fail(st, BR_E_FORMAT, "config: there is no field '%s'",
                           quoted(buf, m->key, m->key_n));
        fields[f] = m;
    }
    return BR_OK;
}

/* An integer in lo..hi at a place such as "tiling.gemv.N_tile". */
static br_code
int_in(const br_json *v, const char *place, int64_t lo, int64_t hi,
       int64_t *out, br_status *st)
{
    if (v->kind != BR_J_INT)
        return wrong_kind(place, v, "an integer", st);
    if (v->i < lo || v->i > hi)
        return br_fail(st, BR_E_FORMAT, "config.%s: %lld is not in %lld..%lld",
                       place, (long long)v->i, (long long)lo, (long long)hi);
    *out = v->i;
    return BR_OK;
}

/* ---- tiling -------------------------------------------------------------- */

static br_code
read_tile(br_cfg_tiling *t, const br_json *entry, br_status *st)
{
    bool attention = strcmp(t->op, "attention") == 0;
    const struct {
        const char *key;
        int64_t *at, max;
        bool attention;
    } known[] = {
        {"N_tile", &t->n_tile, INT32_MAX, false},
        {"M_tile", &t->m_tile, INT32_MAX, false},
        {"base_width", &t->base_width, INT32_MAX, false},
        {"kv_block", &t->kv_block, INT32_MAX, true},
        {"n_partitions", &t->n_partitions, BR_CFG_MAX_SHARDS, true},
    };
    char place[128], buf[48];

    for (const br_json *m = entry->child; m; m = m->next) {
        size_t i = 0;

        while (i < BR_COUNT(known) && (known[i].attention != attention ||
                                       strcmp(known[i].key, m->key) != 0))
            i++;
        if (i == BR_COUNT(known))
            return br_fail(st, BR_E_FORMAT,
                           "config.tiling.%s: there is no '%s'; there %s",
                           t->op, quoted(buf, m->key, m->key_n),
                           attention ? "are kv_block and n_partitions"
                                     : "are N_tile, M_tile and base_width");
        snprintf(place, sizeof place, "tiling.%s.%s", t->op, m->key);
        BR_TRY(int_in(m, place, 1, known[i].max, known[i].at, st));
    }
    return BR_OK;
}

static br_code
read_tiling(br_mega_config *c, br_arena *a, const br_json *v, br_status *st)
{
    char buf[48];

    if (v->kind != BR_J_OBJ)
        return wrong_kind("tiling", v, "an object", st);
    if (v->n > BR_CFG_MAX_TILINGS)
        return br_fail(st, BR_E_LIMIT, "config.tiling: more than %d entries",
                       BR_CFG_MAX_TILINGS);
    c->tilings = br_arena_new(a, br_cfg_tiling, v->n + 1);
    if (!c->tilings)
        return no_memory(st);
    for (const br_json *m = v->child; m; m = m->next) {
        br_cfg_tiling *t = &c->tilings[c->n_tilings++];

        /* Nodes are matched by it, and it is quoted in errors. */
        if (m->key_n == 0 || m->key_n > 40 || strlen(m->key) != m->key_n)
            return br_fail(st, BR_E_FORMAT,
                           "config.tiling: '%s' is no operation or role",
                           quoted(buf, m->key, m->key_n));
        t->op = m->key;
        if (m->kind != BR_J_OBJ)
            return br_fail(st, BR_E_FORMAT,
                           "config.tiling.%s: %s, not an "
                           "object",
                           t->op, br_json_kind_name((br_json_kind)m->kind));
        BR_TRY(read_tile(t, m, st));
    }
    return BR_OK;
}

/* ---- fusion_grouping ----------------------------------------------------- */

static br_code
read_group(br_cfg_group *g, br_arena *a, const br_json *v, size_t index,
           br_status *st)
{
    const char **names;

    if (v->kind != BR_J_ARR || v->n < 2 || v->n > BR_CFG_MAX_MEMBERS)
        return br_fail(st, BR_E_FORMAT,
                       "config.fusion_grouping[%zu]: not a list of 2..%d names",
                       index, BR_CFG_MAX_MEMBERS);
    names = br_arena_new(a, const char *, v->n);
    if (!names)
        return no_memory(st);
    for (const br_json *m = v->child; m; m = m->next) {
        if (m->kind != BR_J_STR || strlen(m->s) != m->n || m->n == 0)
            return br_fail(st, BR_E_FORMAT,
                           "config.fusion_grouping[%zu][%zu]: not a name",
                           index, g->n);
        names[g->n++] = m->s;
    }
    g->names = names;
    return BR_OK;
}

static br_code
read_groups(br_mega_config *c, br_arena *a, const br_json *v, br_status *st)
{
    if (v->kind != BR_J_ARR)
        return wrong_kind("fusion_grouping", v, "an array", st);
    if (v->n > BR_CFG_MAX_GROUPS)
        return br_fail(st, BR_E_LIMIT,
                       "config.fusion_grouping: more than %d groups",
                       BR_CFG_MAX_GROUPS);
    c->groups = br_arena_new(a, br_cfg_group, v->n + 1);
    if (!c->groups)
        return no_memory(st);
    for (const br_json *m = v->child; m; m = m->next, c->n_groups++)
        BR_TRY(read_group(&c->groups[c->n_groups], a, m, c->n_groups, st));
    return BR_OK;
}

/* ---- sm_assignment ------------------------------------------------------- */

static int
by_task(const void *x, const void *y)
{
    const br_cfg_pin *a = x, *b = y;

    return (a->task > b->task) - (a->task < b->task);
}

static br_code
read_pins(br_mega_config *c, br_arena *a, const br_json *v,
          const br_mega_target *t, br_status *st)
{
    int64_t sms = t ? t->num_sms : INT32_MAX;
    char place[96], buf[48];

    if (v->n > BR_MEGA_MAX_TASKS)
        return br_fail(st, BR_E_LIMIT, "config.sm_assignment: too many tasks");
    c->sm = BR_SM_EXPLICIT;
    c->pins = br_arena_new(a, br_cfg_pin, (size_t)v->n + 1);
    if (!c->pins)
        return no_memory(st);
    for (const br_json *m = v->child; m; m = m->next) {
        br_cfg_pin *p = &c->pins[c->n_pins++];

        /* "-0" is a number too, but the key would be "0" when read again. */
        if (m->key[0] == '-' ||
            !br_json_to_i64((br_text){m->key, m->key_n}, &p->task))
            return br_fail(st, BR_E_FORMAT,
                           "config.sm_assignment: '%s' is no task id",
                           quoted(buf, m->key, m->key_n));
        snprintf(place, sizeof place, "sm_assignment.%lld", (long long)p->task);
        BR_TRY(int_in(m, place, 0, sms - 1, &p->sm, st));
    }
    if (c->n_pins)
        qsort(c->pins, c->n_pins, sizeof *c->pins, by_task);
    for (size_t i = 1; i < c->n_pins; i++)
        if (c->pins[i].task == c->pins[i - 1].task)
            return br_fail(st, BR_E_FORMAT,
                           "config.sm_assignment: task %lld is there twice",
                           (long long)c->pins[i].task);
    return BR_OK;
}

static br_code
read_sm(br_mega_config *c, br_arena *a, const br_json *v,
        const br_mega_target *t, br_status *st)
{
    br_text s = {v->s, v->n};

    if (v->kind == BR_J_OBJ)
        return read_pins(c, a, v, t, st);
    if (v->kind == BR_J_STR && br_text_is(s, "round_robin"))
        c->sm = BR_SM_ROUND_ROBIN;
    else if (v->kind == BR_J_STR && br_text_is(s, "load_balance"))
        c->sm = BR_SM_LOAD_BALANCE;
    else
        return br_fail(st, BR_E_FORMAT,
                       "config.sm_assignment: not \"round_robin\", "
                       "\"load_balance\" or an object {task: sm}");
    return BR_OK;
}

/* ---- the rest ------------------------------------------------------------ */

static br_code
read_pages(br_mega_config *c, const br_json *v, br_status *st)
{
    static const char *const policies[] = {"linear", "graph_color", "none"};

    for (size_t i = 0; i < BR_COUNT(policies); i++)
        if (v->kind == BR_J_STR &&
            br_text_is((br_text){v->s, v->n}, policies[i])) {
            c->page_allocation = policies[i];
            return BR_OK;
        }
    return br_fail(st, BR_E_FORMAT,
                   "config.page_allocation: not \"linear\", \"graph_color\" "
                   "or \"none\"");
}

static br_code
read_launch(br_mega_config *c, const br_json *const *f, const br_mega_target *t,
            br_status *st)
{
    int64_t threads = t ? BR_MIN(t->max_threads_per_sm, 1024) : 1024;
    int64_t smem = t ? t->smem_bytes_per_block_optin : MAX_SMEM;

    if (f[BR_MC_pipelining_depth])
        BR_TRY(int_in(f[BR_MC_pipelining_depth], "pipelining_depth", 0,
                      BR_CFG_MAX_DEPTH, &c->pipelining_depth, st));
    if (f[BR_MC_threads_per_block])
        BR_TRY(int_in(f[BR_MC_threads_per_block], "threads_per_block", 32,
                      threads, &c->threads_per_block, st));
    if (c->threads_per_block % 32)
        return br_fail(st, BR_E_FORMAT,
                       "config.threads_per_block: %lld is no multiple of 32",
                       (long long)c->threads_per_block);
    if (f[BR_MC_smem_bytes_per_block])
        BR_TRY(int_in(f[BR_MC_smem_bytes_per_block], "smem_bytes_per_block", 0,
                      smem, &c->smem_bytes_per_block, st));
    return BR_OK;
}

br_code
br_mega_config_read(br_mega_config *c, br_arena *a,
                    const br_json *const *fields, const br_mega_target *t,
                    br_status *st)
{
    static const br_json *const none[BR_MC_COUNT];
    const br_json *const *f = fields ? fields : none;

    *c = (br_mega_config){.sm = BR_SM_LOAD_BALANCE,
                          .pipelining_depth = BR_CFG_DEFAULT_DEPTH,
                          .threads_per_block = 256,
                          .page_allocation = "graph_color"};
    if (f[BR_MC_tiling])
        BR_TRY(read_tiling(c, a, f[BR_MC_tiling], st));
    if (f[BR_MC_fusion_grouping])
        BR_TRY(read_groups(c, a, f[BR_MC_fusion_grouping], st));
    if (f[BR_MC_sm_assignment])
        BR_TRY(read_sm(c, a, f[BR_MC_sm_assignment], t, st));
    if (f[BR_MC_page_allocation])
        BR_TRY(read_pages(c, f[BR_MC_page_allocation], st));
    return read_launch(c, f, t, st);
}
