/* save.c - a program as JSON text, byte for byte as the reference writes it.
 *
 * Keys in fixed order, defaults filled in, misfits as they were found. Misfits
 * are sorted by field, index and place, and the writer meets them in that very
 * order, so one cursor per field replaces any search.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/mega.h"

#include <string.h>

typedef struct saver {
    const br_mega_prog *p;
    br_json_writer w;
    uint32_t at[BR_MF_COUNT], end[BR_MF_COUNT]; /* cursors into misfits */
} saver;

/* The misfit at this place, or NULL; asked for in file order only. */
static inline const br_json *
misfit(saver *s, br_mega_field f, size_t index, size_t sub)
{
    const br_mega_misfit *m;

    if (s->at[f] == s->end[f])
        return NULL;
    m = &s->p->misfits[s->at[f]];
    if (m->index != index || m->sub != sub)
        return NULL;
    s->at[f]++;
    return m->value;
}

static inline bool
put_misfit(saver *s, br_mega_field f, size_t index, size_t sub)
{
    const br_json *v = misfit(s, f, index, sub);

    if (v)
        br_json_w_tree(&s->w, v);
    return v != NULL;
}

/* An integer at its place: field, index, sub. */
typedef struct place {
    br_mega_field field;
    size_t index, sub;
} place;

static inline void
put_int(saver *s, const char *key, int64_t v, place at)
{
    if (key)
        br_json_w_key(&s->w, key);
    if (!put_misfit(s, at.field, at.index, at.sub))
        br_json_w_i64(&s->w, v);
}

static inline void
put_text(saver *s, const char *key, br_text t, place at)
{
    br_json_w_key(&s->w, key);
    if (put_misfit(s, at.field, at.index, at.sub))
        return;
    if (t.p)
        br_json_w_str(&s->w, t);
    else
        br_json_w_null(&s->w);
}

static inline void
put_name(saver *s, const char *key, const char *name)
{
    br_json_w_key(&s->w, key);
    br_json_w_strz(&s->w, name);
}

static void
put_ints(saver *s, const char *key, const int64_t *v, uint32_t n, place at)
{
    br_json_w_key(&s->w, key);
    br_json_w_arr(&s->w);
    for (at.sub = 0; at.sub < n; at.sub++)
        put_int(s, NULL, v[at.sub], at);
    br_json_w_arr_end(&s->w);
}

static void
put_buffer(saver *s, size_t i)
{
    const br_mega_buffer *b = &s->p->buffers[i];

    br_json_w_obj(&s->w);
    put_int(s, "id", b->id, (place){BR_MF_BUF_ID, i, 0});
    put_text(s, "name", (br_text){b->name, b->name_n},
             (place){BR_MF_BUF_NAME, i, 0});
    put_name(s, "kind", br_mega_kind_name(b->kind));
    put_name(s, "dtype", br_mega_dtype_name(b->dtype));
    put_ints(s, "shape", b->shape, b->rank, (place){BR_MF_BUF_SHAPE, i, 0});
    put_name(s, "space", br_mega_space_name(b->space));
    put_text(s, "source", (br_text){b->source, b->source_n},
             (place){BR_MF_BUF_SOURCE, i, 0});
    br_json_w_obj_end(&s->w);
}

static void
put_counter(saver *s, size_t i)
{
    const br_mega_counter *c = &s->p->counters[i];

    br_json_w_obj(&s->w);
    put_int(s, "id", c->id, (place){BR_MF_CTR_ID, i, 0});
    put_int(s, "init", c->init, (place){BR_MF_CTR_INIT, i, 0});
    put_text(s, "note", (br_text){c->note, c->note_n},
             (place){BR_MF_CTR_NOTE, i, 0});
    br_json_w_obj_end(&s->w);
}

static void
put_waits(saver *s, const br_mega_task *t, size_t i)
{
    br_json_w_key(&s->w, "waits");
    br_json_w_arr(&s->w);
    for (uint32_t k = 0; k < t->n_waits; k++) {
        br_json_w_obj(&s->w);
        put_int(s, "counter", t->waits[k].counter,
                (place){BR_MF_TASK_WAIT_CTR, i, k});
        put_int(s, "threshold", t->waits[k].threshold,
                (place){BR_MF_TASK_WAIT_THR, i, k});
        br_json_w_obj_end(&s->w);
    }
    br_json_w_arr_end(&s->w);
}

static void
put_task(saver *s, size_t i)
{
    const br_mega_task *t = &s->p->tasks[i];

    br_json_w_obj(&s->w);
    put_int(s, "id", t->id, (place){BR_MF_TASK_ID, i, 0});
    put_name(s, "op", br_mega_op_name(t->op));
    put_ints(s, "inputs", t->in, t->n_in, (place){BR_MF_TASK_IN, i, 0});
    put_ints(s, "outputs", t->out, t->n_out, (place){BR_MF_TASK_OUT, i, 0});
    put_int(s, "out_counter", t->out_counter,
            (place){BR_MF_TASK_OUT_COUNTER, i, 0});
    put_waits(s, t, i);
    br_json_w_key(&s->w, "params");
    if (!put_misfit(s, BR_MF_TASK_PARAMS, i, 0))
        br_json_w_tree(&s->w, t->params);
    br_json_w_key(&s->w, "sm");
    if (!put_misfit(s, BR_MF_TASK_SM, i, 0)) {
        if (t->sm == BR_MEGA_SM_NONE)
            br_json_w_null(&s->w);
        else
            br_json_w_i64(&s->w, t->sm);
    }
    put_int(s, "est_bytes", t->est_bytes, (place){BR_MF_TASK_EST_BYTES, i, 0});
    put_int(s, "est_flops", t->est_flops, (place){BR_MF_TASK_EST_FLOPS, i, 0});
    put_text(s, "label", (br_text){t->label, t->label_n},
             (place){BR_MF_TASK_LABEL, i, 0});
    br_json_w_obj_end(&s->w);
}

static void
put_bind(saver *s, size_t i)
{
    const br_json *big = misfit(s, BR_MF_BIND_BUFFER, i, 0);
    br_str key = {0};

    if (big) {
        br_json_w_key_n(&s->w, (br_text){big->s, big->n});
    } else {
        br_str_printf(&key, "%lld", (long long)s->p->binds[i].buffer);
        br_json_w_key(&s->w, br_str_z(&key));
        s->w.out->oom |= key.oom;
        br_str_fini(&key);
    }
    if (!put_misfit(s, BR_MF_BIND_PAGE, i, 0))
        br_json_w_i64(&s->w, s->p->binds[i].page);
}

static void
put_page(saver *s, size_t i)
{
    const br_mega_page *g = &s->p->pages[i];

    br_json_w_obj(&s->w);
    put_int(s, "id", g->id, (place){BR_MF_PAGE_ID, i, 0});
    put_name(s, "space", br_mega_space_name(g->space));
    put_int(s, "nbytes", g->nbytes, (place){BR_MF_PAGE_NBYTES, i, 0});
    put_int(s, "live_start", g->live_start, (place){BR_MF_PAGE_START, i, 0});
    put_int(s, "live_end", g->live_end, (place){BR_MF_PAGE_END, i, 0});
    br_json_w_obj_end(&s->w);
}

static void
put_pages(saver *s)
{
    br_json_w_key(&s->w, "pages");
    if (!s->p->has_pages) {
        br_json_w_null(&s->w);
        return;
    }
    br_json_w_obj(&s->w);
    br_json_w_key(&s->w, "buffer_to_page");
    br_json_w_obj(&s->w);
    for (size_t i = 0; i < s->p->n_binds; i++)
        put_bind(s, i);
    br_json_w_obj_end(&s->w);
    br_json_w_key(&s->w, "pages");
    br_json_w_arr(&s->w);
    for (size_t i = 0; i < s->p->n_pages; i++)
        put_page(s, i);
    br_json_w_arr_end(&s->w);
    br_json_w_obj_end(&s->w);
}

/* A record kept as nodes, with texts for the absent ones. */
typedef struct field_text {
    const char *name, *def;
} field_text;

static void
put_fields(saver *s, const char *key, const br_json *const *v,
           const field_text *f, int n)
{
    br_json_w_key(&s->w, key);
    if (!v) {
        br_json_w_null(&s->w);
        return;
    }
    br_json_w_obj(&s->w);
    for (int k = 0; k < n; k++) {
        br_json_w_key(&s->w, f[k].name);
        if (v[k])
            br_json_w_tree(&s->w, v[k]);
        else
            br_json_w_raw(&s->w, br_text_z(f[k].def));
    }
    br_json_w_obj_end(&s->w);
}

static void
put_list(saver *s, const char *key, size_t n, void (*put)(saver *, size_t))
{
    br_json_w_key(&s->w, key);
    br_json_w_arr(&s->w);
    for (size_t i = 0; i < n; i++)
        put(s, i);
    br_json_w_arr_end(&s->w);
}

static void
begin(saver *s, const br_mega_prog *p, br_str *out)
{
    uint32_t n = 0;

    *s = (saver){.p = p};
    br_json_w_begin(&s->w, out, 2);
    for (int f = 0; f < BR_MF_COUNT; f++) {
        s->at[f] = n;
        while (n < p->n_misfits && p->misfits[n].field == (br_mega_field)f)
            n++;
        s->end[f] = n;
    }
    br_assert(n == p->n_misfits && "misfits are sorted by field");
}

br_code
br_mega_save(const br_mega_prog *p, br_str *out, br_status *st)
{
    static const field_text target[BR_MT_COUNT] = {
#define T(name, def) {#name, (def)},
#include "mega/target_field.def"
#undef T
    };
    static const field_text config[BR_MC_COUNT] = {
        {"tiling", "{}"},
        {"fusion_grouping", "[]"},
        {"sm_assignment", "\"load_balance\""},
        {"pipelining_depth", "2"},
        {"page_allocation", "\"graph_color\""},
        {"threads_per_block", "256"},
        {"smem_bytes_per_block", "0"},
    };
    saver s;

    begin(&s, p, out);
    br_json_w_obj(&s.w);
    br_json_w_key(&s.w, "ir_version");
    br_json_w_str(&s.w, (br_text){p->ir_version, p->ir_version_n});
    br_json_w_key(&s.w, "abi_version");
    br_json_w_str(&s.w, (br_text){p->abi_version, p->abi_version_n});
    br_json_w_key(&s.w, "meta");
    br_json_w_tree(&s.w, p->meta);
    put_fields(&s, "target", p->target, target, BR_MT_COUNT);
    put_list(&s, "buffers", p->n_buffers, put_buffer);
    put_list(&s, "counters", p->n_counters, put_counter);
    put_list(&s, "tasks", p->n_tasks, put_task);
    put_pages(&s);
    put_fields(&s, "config", p->config, config, BR_MC_COUNT);
    br_json_w_obj_end(&s.w);
    return out->oom ? br_fail(st, BR_E_OOM, "task program: out of memory")
                    : BR_OK;
}
