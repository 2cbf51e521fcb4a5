/* load.c - a program from its JSON text, in one pass.
 *
 *   {"ir_version": .. "meta": .. "target": ..          small: a tree each
 *    "buffers": [{..},   {..}, ..],  "counters": [..], } pulled token by token,
 *    "tasks":   [{..},   {..}, ..],                    } a record at a time
 *    "pages": ..  "config": ..}                         a tree each
 *
 * See load.h for the two readers. Sections may come in any order and more
 * than once (the last one holds), so lists gather on the heap and move to the
 * program's arena at the end; a section's soft error is kept until the text
 * is done.
 *
 * Cost: 12,738 tasks (6 MB) in 11 ms, the exact reader alone in 31; linear.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mega/load.h"
#include "mega/step.h"

#include <string.h>

/* ---- the fast reader: true, or give the record up ----------------------- */

/* Index of the key just read; at is where it would come in file order. */
static inline int
key_index(const br_load *l, const br_text *keys, int n, int at)
{
    br_text t = l->r.text;

    if (at < n && br_text_eq(keys[at], t))
        return at;
    for (int k = 0; k < n; k++)
        if (br_text_eq(keys[k], t))
            return k;
    return -1;
}

static inline bool
fast_int(br_load *l, int64_t *out)
{
    return br_json_next(&l->r) == BR_JSON_INT && br_json_to_i64(l->r.text, out);
}

/* The string just read, in the arena. Empty ones are all one. */
static bool
hold_text(br_load *l, const char **out, uint32_t *n)
{
    br_text t = l->r.text;

    *n = (uint32_t)t.n;
    *out = "";
    if (t.n == 0)
        return true;
    if (t.n >= UINT32_MAX)
        return false;
    *out = br_arena_str(l->a, t.p, t.n);
    if (!*out)
        br_load_oom(l);
    return *out != NULL;
}

static inline bool
fast_str(br_load *l, const char **out, uint32_t *n)
{
    return br_json_next(&l->r) == BR_JSON_STRING && hold_text(l, out, n);
}

static inline bool
fast_enum(br_load *l, int (*find)(br_text), uint8_t *out)
{
    int code;

    if (br_json_next(&l->r) != BR_JSON_STRING)
        return false;
    code = find(l->r.text);
    *out = (uint8_t)code;
    return code >= 0;
}

static bool
fast_ints(br_load *l, const int64_t **out, uint32_t *n)
{
    br_json_tok tok;
    int64_t v;

    l->ints.n = 0;
    if (br_json_next(&l->r) != BR_JSON_ARR_OPEN)
        return false;
    while ((tok = br_json_next(&l->r)) == BR_JSON_INT) {
        if (!br_json_to_i64(l->r.text, &v))
            return false;
        if (!br_vec_push(&l->ints, v)) {
            br_load_oom(l);
            return false;
        }
    }
    if (tok != BR_JSON_ARR_CLOSE)
        return false;
    *n = (uint32_t)l->ints.n;
    *out = br_arena_dup(l->a, l->ints.at, l->ints.n * sizeof v);
    if (!*out)
        br_load_oom(l);
    return *out != NULL;
}

static bool
fast_wait(br_load *l, br_mega_wait *w)
{
    bool seen[BR_LW_COUNT] = {false};

    for (int k = -1;;) {
        br_json_tok tok = br_json_next(&l->r);

        if (tok == BR_JSON_OBJ_CLOSE)
            return seen[0] && seen[1];
        if (tok != BR_JSON_KEY)
            return false;
        k = key_index(l, br_load_wait_keys, BR_LW_COUNT, k + 1);
        if (k < 0 || seen[k] ||
            !fast_int(l, k == BR_LW_counter ? &w->counter : &w->threshold))
            return false;
        seen[k] = true;
    }
}

static bool
fast_waits(br_load *l, br_mega_task *t)
{
    br_json_tok tok;
    br_mega_wait w;

    l->waits.n = 0;
    if (br_json_next(&l->r) != BR_JSON_ARR_OPEN)
        return false;
    while ((tok = br_json_next(&l->r)) == BR_JSON_OBJ_OPEN) {
        if (!fast_wait(l, &w))
            return false;
        if (!br_vec_push(&l->waits, w)) {
            br_load_oom(l);
            return false;
        }
    }
    if (tok != BR_JSON_ARR_CLOSE)
        return false;
    t->n_waits = (uint32_t)l->waits.n;
    t->waits = br_arena_dup(l->a, l->waits.at, l->waits.n * sizeof w);
    if (!t->waits)
        br_load_oom(l);
    return t->waits != NULL;
}

/* A scalar into a node; containers and integers beyond 64 bits are not fast. */
static bool
fast_scalar(br_load *l, br_json *v)
{
    br_json_tok tok = br_json_next(&l->r);

    switch (tok) {
    case BR_JSON_INT:
        v->kind = BR_J_INT;
        return br_json_to_i64(l->r.text, &v->i);
    case BR_JSON_FLOAT:
        v->kind = BR_J_FLOAT;
        return br_json_to_f64(l->r.text, &v->f);
    case BR_JSON_STRING: v->kind = BR_J_STR; return hold_text(l, &v->s, &v->n);
    case BR_JSON_TRUE:
    case BR_JSON_FALSE:
        v->kind = BR_J_BOOL;
        v->b = tok == BR_JSON_TRUE;
        return true;
    case BR_JSON_NULL: v->kind = BR_J_NULL; return true;
    case BR_JSON_ERROR:
    case BR_JSON_END:
    case BR_JSON_OBJ_OPEN:
    case BR_JSON_OBJ_CLOSE:
    case BR_JSON_ARR_OPEN:
    case BR_JSON_ARR_CLOSE:
    case BR_JSON_KEY: return false;
    }
    br_unreachable("token of the JSON reader");
}

/* A recipe as a tree. Tiles of a node have one and the same: in the bytes of
 * the one before it is that tree again, which nobody changes. */
static bool
fast_recipe(br_load *l, br_json *v)
{
    const char *from;
    br_json *tree;

    if (br_json_next(&l->r) != BR_JSON_OBJ_OPEN)
        return false;
    from = l->r.at;
    if (l->recipe.n && l->recipe.n <= (size_t)(l->r.end - from) &&
        memcmp(from, l->recipe.p, l->recipe.n) == 0) {
        l->r.p = from + l->recipe.n - 1; /* its last brace */
        tree = l->recipe_tree;
        if (br_json_next(&l->r) != BR_JSON_OBJ_CLOSE)
            return false;
    } else {
        if (br_json_value(&tree, l->a, &l->r, BR_JSON_OBJ_OPEN) != BR_OK)
            return false;
        l->recipe = (br_text){from, (size_t)(l->r.p - from)};
        l->recipe_tree = tree;
    }
    v->kind = BR_J_OBJ;
    v->n = tree->n;
    v->child = tree->child;
    v->last = tree->last;
    return true;
}

/* Parameters with known names, each once: gathered here, then one block of
 * the arena holds the object and its members. */
static bool
fast_params(br_load *l, br_mega_task *t)
{
    br_json m[1 + BR_MP_COUNT], *block;
    br_json_tok tok;
    uint32_t n = 0;

    if (br_json_next(&l->r) != BR_JSON_OBJ_OPEN)
        return false;
    t->param_mask = 0;
    while ((tok = br_json_next(&l->r)) == BR_JSON_KEY) {
        int p = br_mega_param_find(l->r.text);

        if (p < 0 || (t->param_mask >> p & 1))
            return false;
        t->param_mask |= 1u << p;
        m[++n] = (br_json){.tag = (uint8_t)(p + 1),
                           .key = br_mega_param_name(p),
                           .key_n = (uint32_t)l->r.text.n};
        if (!(p == BR_MP_recipe ? fast_recipe : fast_scalar)(l, &m[n]))
            return false;
    }
    if (tok != BR_JSON_OBJ_CLOSE)
        return false;
    m[0] = (br_json){.kind = BR_J_OBJ, .n = n};
    block = br_arena_dup(l->a, m, (n + 1) * sizeof *m);
    if (!block) {
        br_load_oom(l);
        return false;
    }
    for (uint32_t i = 1; i < n; i++)
        block[i].next = &block[i + 1];
    if (n) {
        block->child = &block[1];
        block->last = &block[n];
    }
    t->params = block;
    return true;
}

static bool
fast_sm(br_load *l, int64_t *sm)
{
    br_json_tok tok = br_json_next(&l->r);

    if (tok == BR_JSON_NULL) {
        *sm = BR_MEGA_SM_NONE;
        return true;
    }
    return tok == BR_JSON_INT && br_json_to_i64(l->r.text, sm) &&
           *sm != BR_MEGA_SM_NONE;
}

static bool
fast_task_field(br_load *l, br_mega_task *t, int key)
{
    switch (key) {
    case BR_LT_id: return fast_int(l, &t->id);
    case BR_LT_op: return fast_enum(l, br_mega_op_find, &t->op);
    case BR_LT_inputs: return fast_ints(l, &t->in, &t->n_in);
    case BR_LT_outputs: return fast_ints(l, &t->out, &t->n_out);
    case BR_LT_out_counter: return fast_int(l, &t->out_counter);
    case BR_LT_waits: return fast_waits(l, t);
    case BR_LT_params: return fast_params(l, t);
    case BR_LT_sm: return fast_sm(l, &t->sm);
    case BR_LT_est_bytes: return fast_int(l, &t->est_bytes);
    case BR_LT_est_flops: return fast_int(l, &t->est_flops);
    case BR_LT_label: return fast_str(l, &t->label, &t->label_n);
    default: return br_json_skip(&l->r) == BR_OK; /* of a newer writer */
    }
}

static bool
fast_buffer_field(br_load *l, br_mega_buffer *b, int key)
{
    br_json_tok tok;

    switch (key) {
    case BR_LB_id: return fast_int(l, &b->id);
    case BR_LB_name: return fast_str(l, &b->name, &b->name_n);
    case BR_LB_kind: return fast_enum(l, br_mega_kind_find, &b->kind);
    case BR_LB_dtype: return fast_enum(l, br_mega_dtype_find, &b->dtype);
    case BR_LB_shape: return fast_ints(l, &b->shape, &b->rank);
    case BR_LB_space: return fast_enum(l, br_mega_space_find, &b->space);
    case BR_LB_source:
        tok = br_json_next(&l->r);
        return tok == BR_JSON_NULL || (tok == BR_JSON_STRING &&
                                       hold_text(l, &b->source, &b->source_n));
    default: return br_json_skip(&l->r) == BR_OK;
    }
}

static bool
fast_counter_field(br_load *l, br_mega_counter *c, int key)
{
    switch (key) {
    case BR_LC_id: return fast_int(l, &c->id);
    case BR_LC_init: return fast_int(l, &c->init);
    case BR_LC_note: return fast_str(l, &c->note, &c->note_n);
    default: return br_json_skip(&l->r) == BR_OK;
    }
}

/* Steps to the next member of a record: its key, or -1 for one we do not
 * know. False at the end of the record and at a key that comes twice; then
 * *done tells them apart. seen has a bit for each key so far. */
static inline bool
next_key(br_load *l, const br_text *keys, int n, int *k, uint32_t *seen,
         bool *done)
{
    br_json_tok tok = br_json_next(&l->r);

    *done = tok == BR_JSON_OBJ_CLOSE;
    if (tok != BR_JSON_KEY)
        return false;
    *k = key_index(l, keys, n, *k + 1);
    if (*k < 0)
        return true;
    if (*seen >> *k & 1)
        return false;
    *seen |= 1u << *k;
    return true;
}

static bool
fast_task(br_load *l)
{
    enum { NEED = (1 << BR_LT_waits) - 1 };
    br_mega_task t = {.label = "", .sm = BR_MEGA_SM_NONE};
    uint32_t seen = 0;
    bool done;

    for (int k = -1;
         next_key(l, br_load_task_keys, BR_LT_COUNT, &k, &seen, &done);)
        if (!fast_task_field(l, &t, k))
            return false;
    if (!done || (seen & NEED) != NEED)
        return false;
    if (!t.params)
        t.params = br_json_new(l->a, BR_J_OBJ);
    if (t.params && br_vec_push(&l->tasks, t))
        return true;
    br_load_oom(l);
    return false;
}

static bool
fast_buffer(br_load *l)
{
    enum { NEED = (1 << BR_LB_source) - 1 };
    br_mega_buffer b = {0};
    uint32_t seen = 0;
    bool done;

    for (int k = -1;
         next_key(l, br_load_buffer_keys, BR_LB_COUNT, &k, &seen, &done);)
        if (!fast_buffer_field(l, &b, k))
            return false;
    if (!done || (seen & NEED) != NEED)
        return false;
    if (br_vec_push(&l->buffers, b))
        return true;
    br_load_oom(l);
    return false;
}

static bool
fast_counter(br_load *l)
{
    br_mega_counter c = {.note = ""};
    uint32_t seen = 0;
    bool done;

    for (int k = -1;
         next_key(l, br_load_counter_keys, BR_LC_COUNT, &k, &seen, &done);)
        if (!fast_counter_field(l, &c, k))
            return false;
    if (!done || !(seen & 1 << BR_LC_id))
        return false;
    if (br_vec_push(&l->counters, c))
        return true;
    br_load_oom(l);
    return false;
}

/* ---- sections ----------------------------------------------------------- */

/* Back to mark, a copy of the reader taken at a token's end. */
static void
rewind_to(br_json_reader *r, const br_json_reader *mark)
{
    br_str scratch = r->scratch; /* may have moved since */

    *r = *mark;
    r->scratch = scratch;
}

typedef struct record_list {
    const char *name;
    size_t max;
    bool (*fast)(br_load *l);
    br_code (*exact)(br_load *l, br_json *v);
} record_list;

static br_code
tree(br_load *l, br_json_tok tok, br_json **v)
{
    br_code code = br_json_value(v, l->a, &l->r, tok);

    return code == BR_OK ? BR_OK : br_fail(l->st, code, "task program");
}

static br_code
read_record(br_load *l, const record_list *k)
{
    br_json_reader mark = l->r;
    br_json *v;

    if (!l->exact && k->fast(l))
        return BR_OK;
    if (l->st->code != BR_OK)
        return l->st->code;
    rewind_to(&l->r, &mark);
    BR_TRY(tree(l, BR_JSON_OBJ_OPEN, &v));
    return k->exact(l, v);
}

/* Iterating over an empty string or object is as good as over []. */
static br_code
read_no_list(br_load *l, const record_list *k, br_json_tok tok)
{
    br_json *v;

    BR_TRY(tree(l, tok, &v));
    if ((v->kind == BR_J_STR || v->kind == BR_J_OBJ) && v->n == 0)
        return BR_OK;
    return BR_LOAD_BAD(l, "%s: expected an array, found %s", k->name,
                       br_json_kind_name(v->kind));
}

static br_code
read_list(br_load *l, const record_list *k)
{
    br_json_tok tok = br_json_next(&l->r);
    br_json *v;

    if (tok != BR_JSON_ARR_OPEN)
        return read_no_list(l, k, tok);
    for (size_t i = 0;; i++) {
        tok = br_json_next(&l->r);
        if (tok == BR_JSON_ARR_CLOSE)
            return BR_OK;
        if (i >= k->max)
            return br_fail(l->st, BR_E_LIMIT, "%s: more than %zu of them",
                           k->name, k->max);
        if (tok != BR_JSON_OBJ_OPEN) {
            BR_TRY(tree(l, tok, &v));
            return BR_LOAD_BAD(l, "%s[%zu]: expected an object, found %s",
                               k->name, i, br_json_kind_name(v->kind));
        }
        BR_TRY(read_record(l, k));
    }
}

static br_code
read_section(br_load *l, br_load_section s)
{
    static const record_list buffers = {"buffers", BR_MEGA_MAX_BUFFERS,
                                        fast_buffer, br_load_buffer};
    static const record_list counters = {"counters", BR_MEGA_MAX_COUNTERS,
                                         fast_counter, br_load_counter};
    static const record_list tasks = {"tasks", BR_MEGA_MAX_TASKS, fast_task,
                                      br_load_task};
    br_json *v;

    switch (s) {
    case BR_LS_buffers:
        l->buffers.n = l->misfits[BR_LM_BUFFERS].n = 0;
        return read_list(l, &buffers);
    case BR_LS_counters:
        l->counters.n = l->misfits[BR_LM_COUNTERS].n = 0;
        return read_list(l, &counters);
    case BR_LS_tasks:
        l->tasks.n = l->misfits[BR_LM_TASKS].n = 0;
        return read_list(l, &tasks);
    default: break;
    }
    BR_TRY(tree(l, BR_JSON_ERROR, &v));
    switch (s) {
    case BR_LS_ir_version:
    case BR_LS_abi_version: return br_load_version(l, v, s);
    case BR_LS_target: return br_load_target(l, v);
    case BR_LS_pages: return br_load_pages(l, v);
    case BR_LS_config: return br_load_config(l, v);
    case BR_LS_meta: l->p->meta = v; return BR_OK;
    case BR_LS_buffers:
    case BR_LS_counters:
    case BR_LS_tasks:
    case BR_LS_COUNT: break;
    }
    br_unreachable("section of a program");
}

/* The section just named by a key. A soft error goes to *verdict. */
static br_code
judge_section(br_load *l, br_load_section s, br_status *verdict)
{
    br_json_reader mark = l->r;

    l->bad.code = BR_OK;
    (void)read_section(l, s);
    *verdict = l->bad;
    if (l->st->code != BR_OK || l->bad.code == BR_OK)
        return l->st->code;
    rewind_to(&l->r, &mark); /* for the syntax of the rest */
    return br_json_skip(&l->r);
}

static int
section_find(br_text t)
{
#define NAME(s) [BR_LS_##s] = { #s, sizeof(#s) - 1 }
    static const br_text names[BR_LS_COUNT] = {
        NAME(ir_version), NAME(abi_version), NAME(target),
        NAME(buffers),    NAME(counters),    NAME(tasks),
        NAME(pages),      NAME(config),      NAME(meta),
    };
#undef NAME

    for (int s = 0; s < BR_LS_COUNT; s++)
        if (br_text_eq(names[s], t))
            return s;
    return -1;
}

static br_code
read_document(br_load *l)
{
    br_status verdict[BR_LS_COUNT];
    br_json_tok tok = br_json_next(&l->r);
    br_json *v;

    for (int s = 0; s < BR_LS_COUNT; s++)
        verdict[s].code = BR_OK;
    if (tok != BR_JSON_OBJ_OPEN) {
        BR_TRY(tree(l, tok, &v));
        return br_fail(l->st, BR_E_FORMAT,
                       "task program: expected an object, found %s",
                       br_json_kind_name(v->kind));
    }
    while ((tok = br_json_next(&l->r)) == BR_JSON_KEY) {
        int s = section_find(l->r.text);

        if (s < 0)
            BR_TRY(br_json_skip(&l->r));
        else
            BR_TRY(judge_section(l, (br_load_section)s, &verdict[s]));
    }
    if (tok != BR_JSON_OBJ_CLOSE || br_json_next(&l->r) != BR_JSON_END)
        return l->st->code;
    for (int s = 0; s < BR_LS_COUNT; s++)
        if (verdict[s].code != BR_OK) {
            *l->st = verdict[s];
            return l->st->code;
        }
    return BR_OK;
}

/* ---- the end: lists into the arena -------------------------------------- */

/* By field; within one they are in order already, by index and place. */
static bool
gather_misfits(br_load *l)
{
    size_t at[BR_MF_COUNT + 1] = {0};
    br_mega_prog *p = l->p;

    for (int g = 0; g < BR_LM_COUNT; g++)
        for (size_t i = 0; i < l->misfits[g].n; i++)
            at[l->misfits[g].at[i].field + 1]++;
    for (int f = 0; f < BR_MF_COUNT; f++)
        at[f + 1] += at[f];
    p->n_misfits = at[BR_MF_COUNT];
    p->misfits = br_arena_new(l->a, br_mega_misfit, p->n_misfits);
    if (!p->misfits)
        return false;
    for (int g = 0; g < BR_LM_COUNT; g++)
        for (size_t i = 0; i < l->misfits[g].n; i++)
            p->misfits[at[l->misfits[g].at[i].field]++] = l->misfits[g].at[i];
    return true;
}

#define HOLD(list)                                \
    (l->p->n_##list = l->list.n,                  \
     (l->p->list = br_arena_dup(l->a, l->list.at, \
                                l->list.n * sizeof *l->list.at)) != NULL)

static br_code
finish(br_load *l)
{
    if (HOLD(buffers) && HOLD(counters) && HOLD(tasks) && HOLD(pages) &&
        HOLD(binds) && gather_misfits(l))
        return BR_OK;
    return br_load_oom(l);
}

static void
drop_scratch(br_load *l)
{
    br_json_close(&l->r);
    br_vec_fini(&l->buffers);
    br_vec_fini(&l->counters);
    br_vec_fini(&l->tasks);
    br_vec_fini(&l->pages);
    br_vec_fini(&l->binds);
    for (int g = 0; g < BR_LM_COUNT; g++)
        br_vec_fini(&l->misfits[g]);
    br_vec_fini(&l->ints);
    br_vec_fini(&l->waits);
    br_vec_fini(&l->nodes);
}

br_code
br_load_text(br_mega_prog **out, br_text text, bool exact, br_status *st)
{
    br_status mine = {0};
    br_load l = {.st = st ? st : &mine, .exact = exact};
    br_code code;

    *out = NULL;
    br_assert(l.st->code == BR_OK && "a status starts empty");
    if (text.n > BR_MEGA_MAX_FILE_BYTES)
        return br_fail(st, BR_E_LIMIT, "task program: %zu bytes, more than %d",
                       text.n, BR_MEGA_MAX_FILE_BYTES);
    l.p = br_mega_new(text.n * BR_MEGA_MAX_GROWTH + (64u << 10));
    if (!l.p)
        return br_fail(st, BR_E_OOM, "task program: out of memory");
    l.a = &l.p->arena;
    br_json_open(&l.r, text.p, text.n, BR_JSON_LAX, l.st);
    code = read_document(&l);
    if (code == BR_OK)
        code = finish(&l);
    if (code == BR_OK)
        code = br_step_read_graph(l.p, l.st);
    drop_scratch(&l);
    if (code == BR_OK)
        *out = l.p;
    else
        br_mega_free(l.p);
    return code;
}

br_code
br_mega_load(br_mega_prog **out, const char *text, size_t n, br_status *st)
{
    return br_load_text(out, (br_text){text, n}, false, st);
}

br_code
br_mega_load_file(br_mega_prog **out, const char *path, br_status *st)
{
    size_t n;
    char *text;
    br_code code;

    *out = NULL;
    BR_TRY(br_file_read(path, BR_MEGA_MAX_FILE_BYTES, &text, &n, st));
    code = br_mega_load(out, text, n, st);
    br_free(text);
    return code == BR_OK ? BR_OK : br_prefix(st, "%s", path);
}
