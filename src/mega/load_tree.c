/* load_tree.c - the exact reading of a program's records from document trees.
 *
 * This is the whole meaning of a file, value by value, as the reference's
 * constructor has it; load.c is only a faster way to the same for ordinary
 * records. The rules that surprise:
 *
 *   "shape": "12"      a list may be given as a string (its characters) or an
 *                      object (its keys); the values are then misfits
 *   "buffers": ""      an empty string or object is an empty list of records
 *   "pages": []        false, 0, "", [] and {} mean null for pages, target
 *                      and config
 *   "config": [["a",1]]  a list of pairs is an object
 *
 * What would raise there is an error here, naming the place. Trees live in
 * the program's arena, so values are referred to, not copied.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/load.h"

#include <string.h>

#define KEY(k)                     \
    {                              \
#        k, sizeof(#        k) - 1 \
    }
const br_text br_load_buffer_keys[] = {
    KEY(id),    KEY(name),  KEY(kind),   KEY(dtype),
    KEY(shape), KEY(space), KEY(source),
};
const br_text br_load_counter_keys[] = {KEY(id), KEY(init), KEY(note)};
const br_text br_load_task_keys[] = {
    KEY(id),          KEY(op),        KEY(inputs), KEY(outputs),
    KEY(out_counter), KEY(waits),     KEY(params), KEY(sm),
    KEY(est_bytes),   KEY(est_flops), KEY(label),
};
const br_text br_load_wait_keys[] = {KEY(counter), KEY(threshold)};

enum { PG_id, PG_space, PG_nbytes, PG_live_start, PG_live_end, PG_COUNT };
static const br_text page_keys[] = {
    KEY(id), KEY(space), KEY(nbytes), KEY(live_start), KEY(live_end),
};
static const br_text config_keys[BR_MC_COUNT] = {
    KEY(tiling),
    KEY(fusion_grouping),
    KEY(sm_assignment),
    KEY(pipelining_depth),
    KEY(page_allocation),
    KEY(threads_per_block),
    KEY(smem_bytes_per_block),
};
static const br_text target_keys[BR_MT_COUNT] = {
#define T(name, def) KEY(name),
#include "mega/target_field.def"
#undef T
};

/* ---- small readers ------------------------------------------------------ */

/* The members of obj that have a name in keys; the rest is dropped. */
static void
pick(const br_json *obj, const br_text *keys, int n, br_json **out)
{
    memset(out, 0, (size_t)n * sizeof *out);
    for (br_json *m = obj->child; m; m = m->next)
        for (int k = 0; k < n; k++)
            if (br_text_eq(keys[k], (br_text){m->key, m->key_n}))
                out[k] = m;
}

const char *
br_load_quote(char buf[40], br_text t)
{
    size_t n = BR_MIN(t.n, (size_t)32), i;

    for (i = 0; i < n; i++)
        buf[i] = t.p[i] >= ' ' && t.p[i] < 127 ? t.p[i] : '?';
    memcpy(buf + n, t.n > n ? "..." : "", t.n > n ? 4 : 1);
    return buf;
}

static bool
falsy(const br_json *v)
{
    switch ((br_json_kind)v->kind) {
    case BR_J_NULL: return true;
    case BR_J_BOOL: return !v->b;
    case BR_J_INT: return v->i == 0;
    case BR_J_BIGINT: return false;
    case BR_J_FLOAT: return v->f == 0;
    case BR_J_STR:
    case BR_J_ARR:
    case BR_J_OBJ: return v->n == 0;
    }
    br_unreachable("kind of a JSON node");
}

static br_code
misfit(br_load *l, br_mega_field f, size_t index, size_t sub, const br_json *v)
{
    int group = f < BR_MF_CTR_ID    ? BR_LM_BUFFERS
                : f < BR_MF_TASK_ID ? BR_LM_COUNTERS
                : f < BR_MF_PAGE_ID ? BR_LM_TASKS
                                    : BR_LM_PAGES;
    br_mega_misfit m = {f, (uint32_t)index, (uint32_t)sub, v};

    return br_vec_push(&l->misfits[group], m) ? BR_OK : br_load_oom(l);
}

/* Where a value goes if it is no misfit. */
typedef struct place {
    br_mega_field field;
    size_t index, sub;
} place;

static br_code
take_int(br_load *l, const br_json *v, int64_t *out, place at)
{
    if (v->kind == BR_J_INT) {
        *out = v->i;
        return BR_OK;
    }
    *out = 0;
    return misfit(l, at.field, at.index, at.sub, v);
}

static br_code
opt_int(br_load *l, const br_json *v, int64_t def, int64_t *out, place at)
{
    if (v)
        return take_int(l, v, out, at);
    *out = def;
    return BR_OK;
}

static br_code
take_str(br_load *l, const br_json *v, const char **out, uint32_t *n, place at)
{
    *out = "";
    *n = 0;
    if (!v)
        return BR_OK;
    if (v->kind != BR_J_STR)
        return misfit(l, at.field, at.index, at.sub, v);
    *out = v->s;
    *n = v->n;
    return BR_OK;
}

/* A name of a table. what is the key, list and index its record. */
typedef struct enum_at {
    const char *list;
    size_t index;
    const char *what;
} enum_at;

static br_code
take_enum(br_load *l, const br_json *v, int (*find)(br_text), enum_at at,
          uint8_t *out)
{
    char q[40];
    int code;

    if (v->kind != BR_J_STR)
        return BR_LOAD_BAD(l, "%s[%zu].%s: expected a name, found %s", at.list,
                           at.index, at.what, br_json_kind_name(v->kind));
    code = find((br_text){v->s, v->n});
    if (code < 0)
        return BR_LOAD_BAD(l, "%s[%zu].%s: no such %s '%s'", at.list, at.index,
                           at.what, at.what,
                           br_load_quote(q, (br_text){v->s, v->n}));
    *out = (uint8_t)code;
    return BR_OK;
}

static br_code
require(br_load *l, br_json *const *got, const br_text *keys, uint32_t need,
        const char *list, size_t index)
{
    for (int k = 0; need >> k; k++)
        if ((need >> k & 1) && !got[k])
            return BR_LOAD_BAD(l, "%s[%zu]: missing '%s'", list, index,
                               keys[k].p);
    return BR_OK;
}

/* ---- lists -------------------------------------------------------------- */

static const br_json *
text_node(br_load *l, br_text t)
{
    const br_json **cell =
        t.n == 1 && t.p[0] > 0 ? &l->ascii[(int)t.p[0]] : NULL;
    const br_json *v = cell ? *cell : NULL;

    if (!v)
        v = br_json_new_str(l->a, t);
    if (cell)
        *cell = v;
    return v;
}

static bool
push_text(br_load *l, br_text t)
{
    const br_json *v = text_node(l, t);

    return v && br_vec_push(&l->nodes, v);
}

static size_t
char_bytes(const char *p)
{
    unsigned char c = (unsigned char)*p;

    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* What iterating over v gives, in l->nodes. False: no memory. */
static bool
items(br_load *l, const br_json *v)
{
    bool ok = true;

    l->nodes.n = 0;
    if (v->kind == BR_J_STR)
        for (size_t i = 0, n; ok && i < v->n; i += n) {
            n = char_bytes(v->s + i);
            ok = push_text(l, (br_text){v->s + i, n});
        }
    else
        for (const br_json *m = v->child; ok && m; m = m->next)
            ok = v->kind == BR_J_ARR
                     ? br_vec_push(&l->nodes, m)
                     : push_text(l, (br_text){m->key, m->key_n});
    return ok;
}

static bool
iterable(const br_json *v)
{
    return v->kind == BR_J_ARR || v->kind == BR_J_OBJ || v->kind == BR_J_STR;
}

/* A list of integers; at.sub is the position. */
static br_code
take_ints(br_load *l, const br_json *v, const int64_t **out, uint32_t *n,
          place at)
{
    int64_t *ints;

    if (!items(l, v) || !(ints = br_arena_get(l->a, l->nodes.n * sizeof *ints)))
        return br_load_oom(l);
    for (at.sub = 0; at.sub < l->nodes.n; at.sub++)
        BR_TRY(take_int(l, l->nodes.at[at.sub], &ints[at.sub], at));
    *out = ints;
    *n = (uint32_t)l->nodes.n;
    return BR_OK;
}

static br_code
need_list(br_load *l, const br_json *v, const char *list, size_t index,
          const char *key)
{
    if (iterable(v))
        return BR_OK;
    return BR_LOAD_BAD(l, "%s[%zu].%s: expected an array, found %s", list,
                       index, key, br_json_kind_name(v->kind));
}

/* ---- records ------------------------------------------------------------ */

br_code
br_load_buffer(br_load *l, br_json *v)
{
    enum { NEED = (1 << BR_LB_source) - 1 }; /* all but source */
    const size_t i = l->buffers.n;
    br_json *got[BR_LB_COUNT];
    br_mega_buffer b = {0};

    pick(v, br_load_buffer_keys, BR_LB_COUNT, got);
    BR_TRY(require(l, got, br_load_buffer_keys, NEED, "buffers", i));
    BR_TRY(take_int(l, got[BR_LB_id], &b.id, (place){BR_MF_BUF_ID, i, 0}));
    BR_TRY(take_str(l, got[BR_LB_name], &b.name, &b.name_n,
                    (place){BR_MF_BUF_NAME, i, 0}));
    BR_TRY(take_enum(l, got[BR_LB_kind], br_mega_kind_find,
                     (enum_at){"buffers", i, "kind"}, &b.kind));
    BR_TRY(take_enum(l, got[BR_LB_dtype], br_mega_dtype_find,
                     (enum_at){"buffers", i, "dtype"}, &b.dtype));
    BR_TRY(need_list(l, got[BR_LB_shape], "buffers", i, "shape"));
    BR_TRY(take_ints(l, got[BR_LB_shape], &b.shape, &b.rank,
                     (place){BR_MF_BUF_SHAPE, i, 0}));
    BR_TRY(take_enum(l, got[BR_LB_space], br_mega_space_find,
                     (enum_at){"buffers", i, "space"}, &b.space));
    if (got[BR_LB_source] && got[BR_LB_source]->kind != BR_J_NULL) {
        BR_TRY(take_str(l, got[BR_LB_source], &b.source, &b.source_n,
                        (place){BR_MF_BUF_SOURCE, i, 0}));
        if (got[BR_LB_source]->kind != BR_J_STR)
            b.source = NULL;
    }
    return br_vec_push(&l->buffers, b) ? BR_OK : br_load_oom(l);
}

br_code
br_load_counter(br_load *l, br_json *v)
{
    const size_t i = l->counters.n;
    br_json *got[BR_LC_COUNT];
    br_mega_counter c = {0};

    pick(v, br_load_counter_keys, BR_LC_COUNT, got);
    BR_TRY(require(l, got, br_load_counter_keys, 1 << BR_LC_id, "counters", i));
    BR_TRY(take_int(l, got[BR_LC_id], &c.id, (place){BR_MF_CTR_ID, i, 0}));
    BR_TRY(
        opt_int(l, got[BR_LC_init], 0, &c.init, (place){BR_MF_CTR_INIT, i, 0}));
    BR_TRY(take_str(l, got[BR_LC_note], &c.note, &c.note_n,
                    (place){BR_MF_CTR_NOTE, i, 0}));
    return br_vec_push(&l->counters, c) ? BR_OK : br_load_oom(l);
}

uint32_t
br_load_tag_params(br_json *params)
{
    uint32_t mask = 0;

    for (br_json *m = params->child; m; m = m->next) {
        int p = br_mega_param_find((br_text){m->key, m->key_n});

        m->tag = (uint8_t)(p + 1);
        if (p >= 0)
            mask |= 1u << p;
    }
    return mask;
}

static br_code
take_wait(br_load *l, const br_json *v, size_t task, size_t sub)
{
    br_json *got[BR_LW_COUNT];
    br_mega_wait w;

    if (v->kind != BR_J_OBJ)
        return BR_LOAD_BAD(
            l, "tasks[%zu].waits[%zu]: expected an object, found %s", task, sub,
            br_json_kind_name(v->kind));
    pick(v, br_load_wait_keys, BR_LW_COUNT, got);
    for (int k = 0; k < BR_LW_COUNT; k++)
        if (!got[k])
            return BR_LOAD_BAD(l, "tasks[%zu].waits[%zu]: missing '%s'", task,
                               sub, br_load_wait_keys[k].p);
    BR_TRY(take_int(l, got[BR_LW_counter], &w.counter,
                    (place){BR_MF_TASK_WAIT_CTR, task, sub}));
    BR_TRY(take_int(l, got[BR_LW_threshold], &w.threshold,
                    (place){BR_MF_TASK_WAIT_THR, task, sub}));
    return br_vec_push(&l->waits, w) ? BR_OK : br_load_oom(l);
}

static br_code
take_waits(br_load *l, const br_json *v, size_t i, br_mega_task *t)
{
    l->waits.n = 0;
    if (!v)
        return BR_OK;
    BR_TRY(need_list(l, v, "tasks", i, "waits"));
    if (!items(l, v))
        return br_load_oom(l);
    for (size_t k = 0; k < l->nodes.n; k++)
        BR_TRY(take_wait(l, l->nodes.at[k], i, k));
    t->n_waits = (uint32_t)l->waits.n;
    t->waits =
        br_arena_dup(l->a, l->waits.at, l->waits.n * sizeof *l->waits.at);
    return t->waits ? BR_OK : br_load_oom(l);
}

static br_code
take_params(br_load *l, br_json *v, size_t i, br_mega_task *t)
{
    t->params = v && v->kind == BR_J_OBJ ? v : br_json_new(l->a, BR_J_OBJ);
    if (!t->params)
        return br_load_oom(l);
    t->param_mask = br_load_tag_params(t->params);
    if (v && v->kind != BR_J_OBJ)
        return misfit(l, BR_MF_TASK_PARAMS, i, 0, v);
    return BR_OK;
}

/* INT64_MIN stands for null in memory, so as a number it is a misfit. */
static br_code
take_sm(br_load *l, const br_json *v, size_t i, br_mega_task *t)
{
    t->sm = BR_MEGA_SM_NONE;
    if (!v || v->kind == BR_J_NULL)
        return BR_OK;
    if (v->kind != BR_J_INT || v->i == BR_MEGA_SM_NONE)
        return misfit(l, BR_MF_TASK_SM, i, 0, v);
    t->sm = v->i;
    return BR_OK;
}

br_code
br_load_task(br_load *l, br_json *v)
{
    enum { NEED = (1 << BR_LT_waits) - 1 }; /* id op inputs outputs counter */
    const size_t i = l->tasks.n;
    br_json *got[BR_LT_COUNT];
    br_mega_task t = {0};

    pick(v, br_load_task_keys, BR_LT_COUNT, got);
    BR_TRY(require(l, got, br_load_task_keys, NEED, "tasks", i));
    BR_TRY(take_int(l, got[BR_LT_id], &t.id, (place){BR_MF_TASK_ID, i, 0}));
    BR_TRY(take_enum(l, got[BR_LT_op], br_mega_op_find,
                     (enum_at){"tasks", i, "op"}, &t.op));
    BR_TRY(need_list(l, got[BR_LT_inputs], "tasks", i, "inputs"));
    BR_TRY(take_ints(l, got[BR_LT_inputs], &t.in, &t.n_in,
                     (place){BR_MF_TASK_IN, i, 0}));
    BR_TRY(need_list(l, got[BR_LT_outputs], "tasks", i, "outputs"));
    BR_TRY(take_ints(l, got[BR_LT_outputs], &t.out, &t.n_out,
                     (place){BR_MF_TASK_OUT, i, 0}));
    BR_TRY(take_int(l, got[BR_LT_out_counter], &t.out_counter,
                    (place){BR_MF_TASK_OUT_COUNTER, i, 0}));
    BR_TRY(take_waits(l, got[BR_LT_waits], i, &t));
    BR_TRY(take_params(l, got[BR_LT_params], i, &t));
    BR_TRY(take_sm(l, got[BR_LT_sm], i, &t));
    BR_TRY(opt_int(l, got[BR_LT_est_bytes], 0, &t.est_bytes,
                   (place){BR_MF_TASK_EST_BYTES, i, 0}));
    BR_TRY(opt_int(l, got[BR_LT_est_flops], 0, &t.est_flops,
                   (place){BR_MF_TASK_EST_FLOPS, i, 0}));
    BR_TRY(take_str(l, got[BR_LT_label], &t.label, &t.label_n,
                    (place){BR_MF_TASK_LABEL, i, 0}));
    return br_vec_push(&l->tasks, t) ? BR_OK : br_load_oom(l);
}

/* ---- pages -------------------------------------------------------------- */

static br_code
take_page(br_load *l, const br_json *v)
{
    enum { NEED = 1 << PG_id | 1 << PG_space | 1 << PG_nbytes };
    const size_t i = l->pages.n;
    br_json *got[PG_COUNT];
    br_mega_page g = {0};

    if (v->kind != BR_J_OBJ)
        return BR_LOAD_BAD(l, "pages.pages[%zu]: expected an object, found %s",
                           i, br_json_kind_name(v->kind));
    if (i >= BR_MEGA_MAX_PAGES)
        return br_fail(l->st, BR_E_LIMIT, "pages.pages: more than %d pages",
                       BR_MEGA_MAX_PAGES);
    pick(v, page_keys, PG_COUNT, got);
    BR_TRY(require(l, got, page_keys, NEED, "pages.pages", i));
    BR_TRY(take_int(l, got[PG_id], &g.id, (place){BR_MF_PAGE_ID, i, 0}));
    BR_TRY(take_enum(l, got[PG_space], br_mega_space_find,
                     (enum_at){"pages.pages", i, "space"}, &g.space));
    BR_TRY(take_int(l, got[PG_nbytes], &g.nbytes,
                    (place){BR_MF_PAGE_NBYTES, i, 0}));
    BR_TRY(opt_int(l, got[PG_live_start], -1, &g.live_start,
                   (place){BR_MF_PAGE_START, i, 0}));
    BR_TRY(opt_int(l, got[PG_live_end], -1, &g.live_end,
                   (place){BR_MF_PAGE_END, i, 0}));
    return br_vec_push(&l->pages, g) ? BR_OK : br_load_oom(l);
}

static br_code
take_bind(br_load *l, const br_json *m)
{
    const size_t i = l->binds.n;
    br_mega_bind b = {0};

    if (i >= BR_MEGA_MAX_PAGES)
        return br_fail(l->st, BR_E_LIMIT,
                       "pages.buffer_to_page: more than %d entries",
                       BR_MEGA_MAX_PAGES);
    if (!br_json_to_i64((br_text){m->key, m->key_n}, &b.buffer)) {
        br_json *big = br_json_new(l->a, BR_J_BIGINT);

        if (!big)
            return br_load_oom(l);
        big->s = m->key;
        big->n = m->key_n;
        BR_TRY(misfit(l, BR_MF_BIND_BUFFER, i, 0, big));
    }
    BR_TRY(take_int(l, m, &b.page, (place){BR_MF_BIND_PAGE, i, 0}));
    return br_vec_push(&l->binds, b) ? BR_OK : br_load_oom(l);
}

br_code
br_load_pages(br_load *l, br_json *v)
{
    static const br_text keys[] = {KEY(buffer_to_page), KEY(pages)};
    br_json *got[2];

    l->pages.n = l->binds.n = l->misfits[BR_LM_PAGES].n = 0;
    l->p->has_pages = !falsy(v);
    if (falsy(v))
        return BR_OK;
    if (v->kind != BR_J_OBJ)
        return BR_LOAD_BAD(l, "pages: expected an object, found %s",
                           br_json_kind_name(v->kind));
    pick(v, keys, 2, got);
    for (int k = 0; k < 2; k++)
        if (!got[k])
            return BR_LOAD_BAD(l, "pages: missing '%s'", keys[k].p);
    if (got[0]->kind != BR_J_OBJ)
        return BR_LOAD_BAD(l,
                           "pages.buffer_to_page: expected an object, found %s",
                           br_json_kind_name(got[0]->kind));
    BR_TRY(br_load_int_keys(l, got[0], "pages.buffer_to_page"));
    for (const br_json *m = got[0]->child; m; m = m->next)
        BR_TRY(take_bind(l, m));
    if (!iterable(got[1]))
        return BR_LOAD_BAD(l, "pages.pages: expected an array, found %s",
                           br_json_kind_name(got[1]->kind));
    if (!items(l, got[1]))
        return br_load_oom(l);
    for (size_t k = 0; k < l->nodes.n; k++)
        BR_TRY(take_page(l, l->nodes.at[k]));
    return BR_OK;
}

/* ---- target, config, versions ------------------------------------------- */

/* The picked nodes as a table in the arena. */
static const br_json *const *
keep(br_load *l, br_json *const *got, size_t n)
{
    return br_arena_dup(l->a, got, n * sizeof *got);
}

br_code
br_load_target(br_load *l, br_json *v)
{
    static const char *const defaults[BR_MT_COUNT] = {
#define T(name, def) (def),
#include "mega/target_field.def"
#undef T
    };
    br_json *got[BR_MT_COUNT];

    l->p->target = NULL;
    if (falsy(v))
        return BR_OK;
    if (v->kind != BR_J_OBJ)
        return BR_LOAD_BAD(l, "target: expected an object, found %s",
                           br_json_kind_name(v->kind));
    pick(v, target_keys, BR_MT_COUNT, got);
    for (int k = 0; k < BR_MT_COUNT; k++)
        if (!got[k] && !defaults[k][0])
            return BR_LOAD_BAD(l, "target: missing '%s'", target_keys[k].p);
    l->p->target = keep(l, got, BR_MT_COUNT);
    return l->p->target ? BR_OK : br_load_oom(l);
}

/* One element of a config given as a list of pairs: {key: value} in got. */
static br_code
take_pair(br_load *l, const br_json *v, size_t i, br_json **got)
{
    const br_json *key, *value;
    br_json *copy;

    if (!iterable(v))
        return BR_LOAD_BAD(l, "config[%zu]: expected a pair, found %s", i,
                           br_json_kind_name(v->kind));
    if (!items(l, v))
        return br_load_oom(l);
    if (l->nodes.n != 2)
        return BR_LOAD_BAD(l, "config[%zu]: expected a pair, found %zu values",
                           i, l->nodes.n);
    key = l->nodes.at[0];
    value = l->nodes.at[1];
    if (key->kind == BR_J_ARR || key->kind == BR_J_OBJ)
        return BR_LOAD_BAD(l, "config[%zu]: %s cannot be a key", i,
                           br_json_kind_name(key->kind));
    if (key->kind != BR_J_STR)
        return BR_OK; /* a key, but none we know */
    for (int k = 0; k < BR_MC_COUNT; k++)
        if (br_text_eq(config_keys[k], (br_text){key->s, key->n})) {
            copy = br_arena_dup(l->a, value, sizeof *value);
            if (!copy)
                return br_load_oom(l);
            got[k] = copy;
        }
    return BR_OK;
}

br_code
br_load_config(br_load *l, br_json *v)
{
    br_json *got[BR_MC_COUNT] = {0}, *sm;
    size_t i = 0;

    l->p->config = NULL;
    if (falsy(v))
        return BR_OK;
    if (v->kind == BR_J_OBJ)
        pick(v, config_keys, BR_MC_COUNT, got);
    else if (v->kind == BR_J_ARR)
        for (const br_json *m = v->child; m; m = m->next)
            BR_TRY(take_pair(l, m, i++, got));
    else
        return BR_LOAD_BAD(l, "config: expected an object, found %s",
                           br_json_kind_name(v->kind));
    sm = got[BR_MC_sm_assignment];
    if (sm && sm->kind == BR_J_OBJ)
        BR_TRY(br_load_int_keys(l, sm, "config.sm_assignment"));
    l->p->config = keep(l, got, BR_MC_COUNT);
    return l->p->config ? BR_OK : br_load_oom(l);
}

/* A version is text, or a number whose text is one: 0 and 0.25 are. */
br_code
br_load_version(br_load *l, const br_json *v, br_load_section which)
{
    const char *name = which == BR_LS_ir_version ? "ir_version" : "abi_version";
    char buf[32], q[40];
    br_text t = {v->s, v->n};

    if (v->kind == BR_J_INT && v->i == 0)
        t = BR_TEXT("0");
    else if (v->kind == BR_J_FLOAT)
        t = (br_text){buf, br_f64_repr(buf, v->f)};
    else if (v->kind == BR_J_INT)
        return br_fail(&l->bad, BR_E_VERSION,
                       "%s: version %lld is not supported; this reads 0.x",
                       name, (long long)v->i);
    else if (v->kind != BR_J_STR)
        return br_fail(&l->bad, BR_E_VERSION,
                       "%s: expected a version, found %s", name,
                       br_json_kind_name(v->kind));
    if (t.n == 0 || t.p[0] != '0' || (t.n > 1 && t.p[1] != '.'))
        return br_fail(&l->bad, BR_E_VERSION,
                       "%s: version '%s' is not supported; this reads 0.x",
                       name, br_load_quote(q, t));
    t.p = br_arena_str(l->a, t.p, t.n);
    if (!t.p)
        return br_load_oom(l);
    if (which == BR_LS_ir_version) {
        l->p->ir_version = t.p;
        l->p->ir_version_n = (uint32_t)t.n;
    } else {
        l->p->abi_version = t.p;
        l->p->abi_version_n = (uint32_t)t.n;
    }
    return BR_OK;
}
