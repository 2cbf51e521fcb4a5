/* lower.c - the lowering from end to end.
 *
 *   config --read, range-checked--+
 *   groups found -----------------+--> for each node or group: tasks
 *                                        |
 *        house style only:  pins, workers, on-chip buffers, pages
 *                                        |
 *                                   meta, target, config --> program
 *
 * Where the reference leaves a field of the config alone (fusion_grouping,
 * sm_assignment, page_allocation, kv_block and the launch numbers), so does
 * the amk style; house style gives each its effect, and none may be ignored:
 * an entry of tiling for a role this net lacks is an error, for instance.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/assign.h"
#include "mega/lower_internal.h"
#include "mega/pages.h"

#include <string.h>

enum {
    AMK_WORKERS = 82,   /* what the reference assumes without a target */
    HOUSE_WORKERS = 64, /* tiles are sized for so many without a target */
    ON_CHIP_ALIGN = 256,
};

static br_code
no_memory(br_status *st)
{
    return br_fail(st, BR_E_OOM, "lowering: out of memory");
}

/* ---- config -------------------------------------------------------------- */

/* An integer of tiling.OP.KEY, clamped to 1..max as the reference does; 0 when
 * it is not there. */
static br_code
amk_int(br_lower *l, const br_json *op, const char *key, int64_t max,
        int64_t *out)
{
    const br_json *v = op ? br_json_get(op, key) : NULL;

    if (!v)
        return BR_OK;
    if (v->kind != BR_J_INT)
        return br_fail(l->st, BR_E_FORMAT,
                       "config.tiling: %s is %s, not an "
                       "integer",
                       key, br_json_kind_name((br_json_kind)v->kind));
    *out = BR_MIN(BR_MAX(v->i, 1), max);
    return BR_OK;
}

static const br_json *
amk_entry(const br_json *tiling, const char *op)
{
    const br_json *v =
        tiling && tiling->kind == BR_J_OBJ ? br_json_get(tiling, op) : NULL;

    return v && v->kind == BR_J_OBJ ? v : NULL;
}

/* The three numbers that the reference looks at; all else is carried along. A
 * map of workers is read all the same, since one with keys that are no task
 * ids would make a file that does not load. */
static br_code
amk_read_config(br_lower *l, const br_json *const *f)
{
    const br_json *sm = f[BR_MC_sm_assignment];
    const br_json *map[BR_MC_COUNT] = {0};
    const br_json *gemv = amk_entry(f[BR_MC_tiling], "gemv");
    const br_json *attention = amk_entry(f[BR_MC_tiling], "attention");
    br_cfg_tiling *t;

    if (sm && sm->kind == BR_J_OBJ)
        map[BR_MC_sm_assignment] = sm;
    BR_TRY(br_mega_config_read(&l->cfg, &l->scratch, map, NULL, l->st));
    t = br_arena_new(&l->scratch, br_cfg_tiling, 2);
    if (!t)
        return no_memory(l->st);
    l->cfg.tilings = t;
    l->cfg.n_tilings = 2;
    t[0].op = "gemv";
    t[1].op = "attention";
    BR_TRY(amk_int(l, gemv, "N_tile", INT32_MAX, &t[0].n_tile));
    BR_TRY(amk_int(l, gemv, "base_width", INT32_MAX, &t[0].base_width));
    return amk_int(l, attention, "n_partitions", BR_CFG_MAX_SHARDS,
                   &t[1].n_partitions);
}

static br_code
read_config(br_lower *l, const br_json *config)
{
    const br_json *f[BR_MC_COUNT] = {0};

    if (config)
        BR_TRY(br_mega_config_fields(f, config, l->st));
    if (l->amk)
        return amk_read_config(l, f);
    return br_mega_config_read(&l->cfg, &l->scratch, f, l->target, l->st);
}

static bool
has_role(const br_mega_net *n, const char *role)
{
    for (size_t i = 0; i < n->nodes.n; i++)
        if (strcmp(n->nodes.at[i].role, role) == 0 &&
            n->nodes.at[i].op == BR_NET_LINEAR)
            return true;
    return false;
}

/* Every entry of tiling is for an operation, or for a role that is here. */
static br_code
check_tilings(const br_lower *l)
{
    for (size_t i = 0; i < l->cfg.n_tilings && !l->amk; i++) {
        const char *op = l->cfg.tilings[i].op;

        if (strcmp(op, "gemv") && strcmp(op, "gemm") &&
            strcmp(op, "attention") && !has_role(l->net, op))
            return br_fail(l->st, BR_E_FORMAT,
                           "config.tiling.%.40s: neither gemv, gemm, attention "
                           "nor the role of a linear in this graph",
                           op);
    }
    return BR_OK;
}

/* ---- inputs -------------------------------------------------------------- */

static bool
cuts_heads(const br_mega_net *n)
{
    for (size_t i = 0; i < n->nodes.n; i++) {
        const br_net_node *d = &n->nodes.at[i];

        if ((d->op == BR_NET_HEADS || d->op == BR_NET_ROPE) &&
            !n->tensors.at[d->in[0]].headed)
            return true;
    }
    return false;
}

static void
add_inputs(br_lower *l)
{
    br_low_buffer ids = {.name = "reshape_id0",
                         .kind = BR_MBK_IO_INPUT,
                         .dtype = BR_MDT_I32,
                         .rank = 1,
                         .shape = {l->net->batch}};

    for (size_t i = 0; i < l->net->tensors.n; i++)
        if (l->net->tensors.at[i].kind == BR_MBK_IO_INPUT)
            (void)br_low_output(l, (int32_t)i);
    if (cuts_heads(l->net))
        l->reshape_ids = br_low_buffer_add(l, &ids);
}

/* ---- after the tasks (house) --------------------------------------------- */

static br_code
pin(br_lower *l)
{
    br_mega_prog *p = l->b.prog;

    if (l->cfg.sm == BR_SM_EXPLICIT && !l->target)
        return br_fail(l->st, BR_E_FORMAT,
                       "config.sm_assignment: a map needs a target");
    for (size_t i = 0; i < l->cfg.n_pins; i++) {
        const br_cfg_pin *w = &l->cfg.pins[i];

        if ((uint64_t)w->task >= p->n_tasks)
            return br_fail(l->st, BR_E_FORMAT,
                           "config.sm_assignment: there is no task %lld; this "
                           "lowering has %zu",
                           (long long)w->task, p->n_tasks);
        p->tasks[w->task].sm = w->sm;
    }
    return BR_OK;
}

static br_code
place(br_lower *l)
{
    br_mega_assign_opts o = {.workers = l->workers,
                             .round_robin = l->cfg.sm == BR_SM_ROUND_ROBIN,
                             .unit = l->units.at,
                             .n_units = l->n_units};

    BR_TRY(pin(l));
    return l->target ? br_mega_assign(l->b.prog, &o, l->st) : BR_OK;
}

/* The worker that touches each buffer; NOBODY, or SEVERAL. */
enum { NOBODY = -1, SEVERAL = -2 };

static void
touch(int64_t *who, const int64_t *ids, uint32_t n, int64_t sm)
{
    for (uint32_t i = 0; i < n; i++) {
        int64_t *w = &who[ids[i]];

        *w = *w == NOBODY || *w == sm ? sm : SEVERAL;
    }
}

/* Activations that live and die on one worker go to its shared memory while
 * smem_bytes_per_block lasts, in buffer order, each rounded up to 256. */
static br_code
move_on_chip(br_lower *l)
{
    br_mega_prog *p = l->b.prog;
    int64_t *who = br_arena_new(&l->scratch, int64_t, p->n_buffers + 1);
    int64_t *left = br_arena_new(&l->scratch, int64_t, (size_t)l->workers);

    if (!who || !left)
        return no_memory(l->st);
    for (size_t i = 0; i < p->n_buffers; i++)
        who[i] = NOBODY;
    for (int64_t w = 0; w < l->workers; w++)
        left[w] = l->cfg.smem_bytes_per_block;
    for (size_t i = 0; i < p->n_tasks; i++) {
        touch(who, p->tasks[i].in, p->tasks[i].n_in, p->tasks[i].sm);
        touch(who, p->tasks[i].out, p->tasks[i].n_out, p->tasks[i].sm);
    }
    for (size_t i = 0; i < p->n_buffers; i++) {
        br_mega_buffer *b = &p->buffers[i];
        int64_t bytes = br_mega_nbytes(b);

        bytes = (bytes + ON_CHIP_ALIGN - 1) / ON_CHIP_ALIGN * ON_CHIP_ALIGN;
        if (b->kind != BR_MBK_ACTIVATION || who[i] < 0 || bytes > left[who[i]])
            continue;
        b->space = BR_MSP_SMEM;
        left[who[i]] -= bytes;
        l->stats.on_chip++;
    }
    return BR_OK;
}

static br_code
give_pages(br_lower *l)
{
    int policy = br_mega_page_policy_find(br_text_z(l->cfg.page_allocation));

    br_assert(policy >= 0 && "config.c knows the policies of pages.h");
    return br_mega_pages_allocate(l->b.prog, (br_mega_page_policy)policy, NULL,
                                  l->st);
}

static br_code
count_workers(br_lower *l)
{
    const br_mega_prog *p = l->b.prog;
    bool *seen = br_arena_new(&l->scratch, bool, (size_t)l->workers);

    if (!seen)
        return no_memory(l->st);
    for (size_t i = 0; i < p->n_tasks; i++) {
        int64_t sm = p->tasks[i].sm;

        if (sm == BR_MEGA_SM_NONE || seen[sm])
            continue;
        seen[sm] = true;
        l->stats.workers++;
    }
    return BR_OK;
}

static br_code
schedule(br_lower *l)
{
    BR_TRY(place(l));
    if (l->target && l->cfg.smem_bytes_per_block > 0)
        BR_TRY(move_on_chip(l));
    BR_TRY(give_pages(l));
    return count_workers(l);
}

/* ---- what the file says besides tasks ------------------------------------ */

static bool
put_text(br_arena *a, br_json *o, const char *key, const char *v)
{
    return br_json_put(a, o, key, br_json_new_str(a, br_text_z(v)));
}

static bool
put_int(br_arena *a, br_json *o, const char *key, int64_t v)
{
    return br_json_put(a, o, key, br_json_new_i64(a, v));
}

static bool
put_true(br_arena *a, br_json *o, const char *key)
{
    br_json *v = br_json_new(a, BR_J_BOOL);

    if (v)
        v->b = true;
    return br_json_put(a, o, key, v);
}

static bool
put_quant(const br_lower *l, br_arena *a, br_json *meta)
{
    br_json *q = br_json_new(a, BR_J_OBJ);
    int64_t keys = 0;

    for (size_t i = 0; i < l->net->tensors.n; i++)
        keys += l->net->tensors.at[i].quant;
    return q && put_true(a, meta, "quantized") &&
           put_int(a, q, "group", l->net->quant_group) &&
           put_int(a, q, "bits", l->net->quant_bits) &&
           put_true(a, q, "symmetric") && put_int(a, q, "n_keys", keys) &&
           br_json_put(a, meta, "quant", q);
}

static br_code
put_meta(br_lower *l)
{
    br_mega_prog *p = l->b.prog;
    br_arena *a = &p->arena;
    br_json *m = p->meta;
    int64_t weights = br_mega_weight_bytes(p);
    bool ok;

    if (weights < 0)
        return br_fail(l->st, BR_E_LIMIT, "graph: its weights overflow");
    ok = put_text(a, m, "model", l->net->source) &&
         put_text(a, m, "gpu", l->target ? l->target->name : "?") &&
         put_text(a, m, "regime", "decode") &&
         put_int(a, m, "pos", l->net->pos) &&
         put_int(a, m, "kv_len", l->net->pos + 1) &&
         put_text(a, m, "dtype", br_mega_dtype_name((int)l->net->dtype));
    if (ok && l->net->n_layers != BR_NET_NONE)
        ok = put_int(a, m, "n_layers", l->net->n_layers);
    ok = ok && put_int(a, m, "weight_bytes", weights);
    if (ok && l->net->quant_bits)
        ok = put_quant(l, a, m);
    if (ok && !l->amk)
        ok = put_text(a, m, "lowering", "brass");
    return ok ? BR_OK : no_memory(l->st);
}

enum { COPY_DEPTH = 8 }; /* a checked config is no deeper than 3 */

/* A copy of a tree; NULL when out of memory or too deep. */
static br_json *
copy_tree(br_arena *a, const br_json *v, int depth)
{
    br_json *c = br_arena_dup(a, v, sizeof *v);
    const char *key = NULL;

    if (!c || depth > COPY_DEPTH)
        return NULL;
    if (v->key && !(key = br_arena_str(a, v->key, v->key_n)))
        return NULL;
    c->key = key;
    c->next = NULL;
    if (v->kind == BR_J_STR || v->kind == BR_J_BIGINT) {
        c->s = br_arena_str(a, v->s, v->n);
        return c->s ? c : NULL;
    }
    if (v->kind != BR_J_ARR && v->kind != BR_J_OBJ)
        return c;
    c->child = c->last = NULL;
    c->n = 0;
    for (const br_json *m = v->child; m; m = m->next) {
        br_json *k = copy_tree(a, m, depth + 1);

        if (!k)
            return NULL;
        if (!br_json_append(c, k))
            return NULL;
    }
    return c;
}

static br_code
put_config(br_lower *l, const br_json *config)
{
    br_mega_prog *p = l->b.prog;
    const br_json **f = br_arena_new(&p->arena, const br_json *, BR_MC_COUNT);

    if (!f)
        return no_memory(l->st);
    if (config)
        BR_TRY(br_mega_config_fields(f, config, l->st));
    for (int i = 0; i < BR_MC_COUNT; i++)
        if (f[i] && !(f[i] = copy_tree(&p->arena, f[i], 0)))
            return br_fail(l->st, BR_E_OOM,
                           "config.%s: out of memory, or nested too deeply",
                           br_mega_config_field_name(i));
    p->config = f;
    return BR_OK;
}

static br_code
put_head(br_lower *l, const br_json *config)
{
    br_mega_prog *p = l->b.prog;

    BR_TRY(put_meta(l));
    if (l->target) {
        p->target = br_mega_target_fields(l->target, &p->arena);
        if (!p->target)
            return no_memory(l->st);
    }
    /* The reference writes null for none; ours says what it lowered with. */
    return config || !l->amk ? put_config(l, config) : BR_OK;
}

/* ---- the whole ----------------------------------------------------------- */

static br_code
prepare(br_lower *l)
{
    size_t nt = l->net->tensors.n, nn = l->net->nodes.n;

    l->tensors = br_arena_new(&l->scratch, br_low_tensor, nt + 1);
    l->group_of = br_arena_new(&l->scratch, int32_t, nn + 1);
    if (!l->tensors || !l->group_of)
        return no_memory(l->st);
    for (size_t i = 0; i < nt; i++)
        l->tensors[i] = (br_low_tensor){
            .buffer = -1, .scales = -1, .counter = -1, .consumer = BR_NET_NONE};
    for (size_t i = 0; i < nn; i++) {
        const br_net_node *d = &l->net->nodes.at[i];

        l->group_of[i] = BR_NET_NONE;
        for (int k = 0; k < d->n_in; k++)
            if (l->net->tensors.at[d->in[k]].uses == 1)
                l->tensors[d->in[k]].consumer = (int32_t)i;
        if (d->op == BR_NET_LINEAR)
            l->tensors[d->in[0]].columns += l->net->tensors.at[d->out].shape[1];
    }
    return BR_OK;
}

static br_code
check_net(const br_lower *l)
{
    br_mega_dtype d = l->net->dtype;

    if (l->amk && l->net->quant_bits && l->net->batch > 1)
        return br_fail(l->st, BR_E_UNSUPPORTED,
                       "style amk: the reference does not lower quantised "
                       "weights for a batch");
    if (!l->amk && d != BR_MDT_F32 && d != BR_MDT_F16 && d != BR_MDT_BF16)
        return br_fail(l->st, BR_E_FORMAT,
                       "graph: dtype %s; activations are F32, F16 or BF16",
                       br_mega_dtype_name((int)d));
    return br_net_finish(l->net, l->st);
}

static void
lower_nodes(br_lower *l)
{
    int32_t n = (int32_t)l->net->nodes.n;

    for (int32_t i = 0; i < n && br_low_ok(l);) {
        int32_t g = l->group_of[i];

        if (g == BR_NET_NONE) {
            br_low_node(l, &l->net->nodes.at[i++]);
        } else {
            br_low_group_lower(l, &l->groups.at[g]);
            i += l->groups.at[g].n;
        }
    }
}

static br_code
lower(br_lower *l, const br_json *config)
{
    BR_TRY(read_config(l, config));
    BR_TRY(check_net(l));
    BR_TRY(check_tilings(l));
    BR_TRY(prepare(l));
    BR_TRY(br_low_find_groups(l));
    BR_TRY(br_mega_builder_open(&l->b, l->st));
    add_inputs(l);
    lower_nodes(l);
    BR_TRY(l->b.code);
    if (!l->amk)
        BR_TRY(schedule(l));
    return put_head(l, config);
}

br_code
br_mega_lower(br_mega_prog **out, const br_mega_net *net,
              const br_mega_lower_opts *opts, br_mega_lower_stats *stats,
              br_status *st)
{
    br_lower l = {.net = net,
                  .target = opts->target,
                  .amk = opts->style == BR_LOWER_AMK,
                  .st = st,
                  .unit = BR_NET_NONE,
                  .shared_counter = -1,
                  .reshape_ids = -1};
    br_code code;

    *out = NULL;
    l.workers =
        l.target ? l.target->num_sms : (l.amk ? AMK_WORKERS : HOUSE_WORKERS);
    br_arena_init(&l.scratch, 0);
    code = lower(&l, opts->config);
    if (code == BR_OK)
        *out = br_mega_builder_take(&l.b);
    if (stats)
        *stats = l.stats;
    br_mega_builder_close(&l.b);
    br_vec_fini(&l.groups);
    br_vec_fini(&l.units);
    br_vec_fini(&l.recipe.scratch);
    br_str_fini(&l.text);
    br_arena_fini(&l.scratch);
    return code;
}

br_code
br_mega_lower_shape(br_mega_prog **out, const char *shape, br_mega_style style,
                    br_status *st)
{
    const br_mega_shape *s = br_mega_shape_find(br_text_z(shape));
    br_mega_step step = {.dtype = BR_MDT_BF16};
    br_mega_lower_opts o = {.style = style};
    br_mega_net *net;
    br_code code;

    *out = NULL;
    if (!s)
        return br_fail(st, BR_E_NOT_FOUND, "shape '%.40s': not known", shape);
    o.target = br_mega_target_find(BR_TEXT("h100"));
    BR_TRY(br_mega_net_model(&net, s, &step, st));
    code = br_mega_lower(out, net, &o, NULL, st);
    br_mega_net_free(net);
    return code;
}
