/* lower_make.c - see lower_make.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lower_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mega/dtype.h"
#include "mega/interp.h"
#include "t.h"

static br_arena manifest_arena;

const br_json *
lm_manifest(void)
{
    const char *dir = t_vectors("amk");
    br_status st = {0};
    br_json *m;
    char *text;
    size_t n;

    if (!dir)
        return NULL;
    text = t_read(t_printf("%s/manifest.json", dir), &n);
    br_arena_init(&manifest_arena, 0);
    t_ok(br_json_parse(&m, &manifest_arena, text, n, BR_JSON_LAX, &st), &st);
    return m;
}

void
lm_manifest_done(void)
{
    br_arena_fini(&manifest_arena);
}

static int64_t
num(const br_json *o, const char *key)
{
    const br_json *v = br_json_get(o, key);

    ck_assert_msg(v && v->kind == BR_J_INT, "%s is an integer", key);
    return v->i;
}

static double
real(const br_json *o, const char *key)
{
    const br_json *v = br_json_get(o, key);

    ck_assert_msg(v && (v->kind == BR_J_FLOAT || v->kind == BR_J_INT), "%s",
                  key);
    return v->kind == BR_J_INT ? (double)v->i : v->f;
}

static const br_json *
given(const br_json *o, const char *key)
{
    const br_json *v = br_json_get(o, key);

    return v && v->kind != BR_J_NULL ? v : NULL;
}

br_mega_prog *
lm_spec(const br_json *spec, br_status *st)
{
    const br_json *m = br_json_get(spec, "model");
    const br_json *quant = given(spec, "quant");
    const br_json *target = given(spec, "target");
    const br_json *dtype = br_json_get(spec, "dtype");
    br_mega_shape s = {
        .hidden = num(m, "hidden"),
        .n_heads = num(m, "n_heads"),
        .n_kv_heads = num(m, "n_kv_heads"),
        .head_dim = num(m, "head_dim"),
        .intermediate = num(m, "intermediate"),
        .vocab = num(m, "vocab"),
        .n_layers = num(m, "n_layers"),
        .max_seq = num(m, "max_seq"),
        .rms_eps = real(m, "rms_eps"),
        .rope_theta = real(m, "rope_theta"),
        .tied = br_json_get(spec, "tied")->b,
        .hf_keys = strcmp(br_json_get(spec, "key_scheme")->s, "toy") != 0,
        .source = br_json_get(spec, "source")->s,
    };
    br_mega_step step = {.batch = num(spec, "B"), .pos = num(spec, "pos")};
    br_mega_lower_opts o = {.style = BR_LOWER_AMK,
                            .config = given(spec, "config")};
    br_mega_prog *p = NULL;
    br_mega_net *net;

    step.dtype =
        (br_mega_dtype)br_mega_dtype_find((br_text){dtype->s, dtype->n});
    if (quant) {
        step.quant_bits = (int)num(quant, "bits");
        step.quant_group = num(quant, "group");
    }
    if (target)
        o.target = br_mega_target_find((br_text){target->s, target->n});
    if (br_mega_net_model(&net, &s, &step, st) != BR_OK)
        return NULL;
    (void)!br_mega_lower(&p, net, &o, NULL, st);
    br_mega_net_free(net);
    return p;
}

/* ---- text ---------------------------------------------------------------- */

static br_arena json_arena;

const br_json *
lm_json(const char *text)
{
    char *s = t_keep(strdup(text));
    br_status st = {0};
    br_json *v;

    for (char *c = s; *c; c++)
        if (*c == '\'')
            *c = '"';
    t_ok(br_json_parse(&v, &json_arena, s, strlen(s), BR_JSON_LAX, &st), &st);
    return v;
}

void
lm_forget(void)
{
    br_arena_fini(&json_arena);
}

/* ---- networks and configs ------------------------------------------------ */

br_mega_net *
lm_net(int64_t layers, const br_mega_step *step)
{
    static const br_mega_step none = {.dtype = BR_MDT_F32};
    br_mega_shape s = {.hidden = 32,
                       .n_heads = 4,
                       .n_kv_heads = 2,
                       .head_dim = 8,
                       .intermediate = 64,
                       .vocab = 48,
                       .n_layers = layers,
                       .max_seq = 64,
                       .rms_eps = 1e-6,
                       .rope_theta = 10000.0,
                       .source = "test"};
    br_status st = {0};
    br_mega_net *n;

    t_ok(br_mega_net_model(&n, &s, step ? step : &none, &st), &st);
    return n;
}

static int64_t
pick(uint64_t *seed, int64_t lo, int64_t hi)
{
    return lo + (int64_t)(t_rand(seed) % (uint64_t)(hi - lo + 1));
}

br_mega_net *
lm_random_net(uint64_t *seed)
{
    static const br_mega_dtype dtypes[] = {BR_MDT_F32, BR_MDT_F32, BR_MDT_F16,
                                           BR_MDT_BF16};
    int64_t kv = pick(seed, 1, 3);
    br_mega_shape s = {.hidden = pick(seed, 1, 80),
                       .n_heads = kv * pick(seed, 1, 3),
                       .n_kv_heads = kv,
                       .head_dim = 2 * pick(seed, 1, 8),
                       .intermediate = pick(seed, 1, 120),
                       .vocab = pick(seed, 2, 200),
                       .n_layers = pick(seed, 1, 3),
                       .max_seq = pick(seed, 1, 100),
                       .rms_eps = 1e-5,
                       .rope_theta = 10000.0,
                       .tied = pick(seed, 0, 1),
                       .qk_norm = pick(seed, 0, 1),
                       .hf_keys = pick(seed, 0, 1),
                       .source = "random"};
    br_mega_step step = {.batch = pick(seed, 0, 2) ? 1 : pick(seed, 2, 5)};
    br_status st = {0};
    br_mega_net *n;

    step.pos = pick(seed, 0, s.max_seq - 1);
    step.dtype = dtypes[pick(seed, 0, 3)];
    if (pick(seed, 0, 3) == 0) {
        step.quant_bits = pick(seed, 0, 1) ? 4 : 8;
        step.quant_group = pick(seed, 1, 40);
    }
    t_ok(br_mega_net_model(&n, &s, &step, &st), &st);
    return n;
}

static void
random_tiling(uint64_t *seed, const br_mega_net *net, br_str *s)
{
    static const char *const roles[] = {"gemv",      "gemm",    "q_proj",
                                        "down_proj", "lm_head", "gate_proj"};
    bool first = true;

    br_str_puts(s, "{");
    for (size_t i = 0; i < BR_COUNT(roles); i++) {
        if (pick(seed, 0, 2))
            continue;
        br_str_printf(s, "%s\"%s\": {", first ? "" : ", ", roles[i]);
        first = false;
        if (pick(seed, 0, 1))
            br_str_printf(s, "\"N_tile\": %d", (int)pick(seed, 1, 90));
        else
            br_str_printf(s, "\"base_width\": %d", (int)pick(seed, 1, 90));
        if (pick(seed, 0, 1))
            br_str_printf(s, ", \"M_tile\": %d", (int)pick(seed, 1, 6));
        br_str_puts(s, "}");
    }
    if (net->batch == 1 && pick(seed, 0, 1)) {
        br_str_printf(s, "%s\"attention\": {\"n_partitions\": %d",
                      first ? "" : ", ", (int)pick(seed, 1, 8));
        if (pick(seed, 0, 1))
            br_str_printf(s, ", \"kv_block\": %d", (int)pick(seed, 1, 40));
        br_str_puts(s, "}");
    }
    br_str_puts(s, "}");
}

/* Runs of names as they stand in a decoder. */
static const char *const groups[] = {
    "[\"gate\", \"up\"]",
    "[\"gate\", \"up\", \"silu\"]",
    "[\"up_proj\", \"swiglu\", \"down_proj\"]",
    "[\"q_proj\", \"k_proj\", \"v_proj\"]",
    "[\"rope\", \"rope\"]",
    "[\"kv_append\", \"kv_append\", \"attention\"]",
    "[\"attention\", \"o_proj\", \"add\"]",
    "[\"add\", \"post_norm\"]",
    "[\"rmsnorm\", \"linear\"]",
    "[\"o\", \"residual\"]",
    "[\"down\", \"residual\"]",
    "[\"final_norm\", \"lm_head\"]",
};

static void
random_groups(uint64_t *seed, const br_mega_net *net, br_str *s)
{
    const char *g = groups[pick(seed, 0, BR_COUNT(groups) - 1)];
    bool qk_norm = br_net_find(net, "L0.qn") >= 0;

    /* One group only: a second may find its nodes taken, which is an error.
     * Norms stand between the ropes of some. */
    br_str_puts(s, "[");
    if (pick(seed, 0, 2) && !(qk_norm && strstr(g, "rope")))
        br_str_puts(s, g);
    br_str_puts(s, "]");
}

char *
lm_random_config(uint64_t *seed, const br_mega_net *net,
                 const br_mega_target *t)
{
    static const char *const pages[] = {"linear", "graph_color", "none"};
    br_str s = {0};
    char *out;

    br_str_puts(&s, "{\"tiling\": ");
    random_tiling(seed, net, &s);
    br_str_puts(&s, ", \"fusion_grouping\": ");
    random_groups(seed, net, &s);
    br_str_puts(&s, ", \"sm_assignment\": ");
    switch (pick(seed, 0, 2)) {
    case 0: br_str_puts(&s, "\"round_robin\""); break;
    case 1: br_str_puts(&s, "\"load_balance\""); break;
    default:
        br_str_printf(&s, "{\"0\": %d, \"3\": %d}",
                      (int)pick(seed, 0, t->num_sms - 1),
                      (int)pick(seed, 0, t->num_sms - 1));
    }
    br_str_printf(&s,
                  ", \"pipelining_depth\": %d, \"page_allocation\": \"%s\", "
                  "\"threads_per_block\": %d, \"smem_bytes_per_block\": %d}",
                  (int)pick(seed, 0, 6), pages[pick(seed, 0, 2)],
                  32 * (int)pick(seed, 1, 16), (int)pick(seed, 0, 20000));
    out = t_keep(strdup(br_str_z(&s)));
    br_str_fini(&s);
    return out;
}

br_mega_prog *
lm_lower(const br_mega_net *net, const char *target, const char *config,
         br_mega_lower_stats *stats)
{
    br_mega_lower_opts o = {.config = config ? lm_json(config) : NULL};
    br_status st = {0};
    br_mega_prog *p;

    o.target = br_mega_target_find(br_text_z(target ? target : "h100"));
    ck_assert_ptr_nonnull(o.target);
    if (br_mega_lower(&p, net, &o, stats, &st) != BR_OK)
        ck_abort_msg("%s: %s", config, st.msg);
    return p;
}

char *
lm_text(const br_mega_prog *p)
{
    br_status st = {0};
    br_str s = {0};
    char *out;

    t_ok(br_mega_save(p, &s, &st), &st);
    out = t_keep(strdup(br_str_z(&s)));
    br_str_fini(&s);
    return out;
}

/* ---- running ------------------------------------------------------------- */

static uint64_t
name_seed(const br_mega_buffer *b)
{
    uint64_t h = 14695981039346656037u;

    for (uint32_t i = 0; i < b->name_n; i++)
        h = (h ^ (uint8_t)b->name[i]) * 1099511628211u;
    return h;
}

/* Values in [-1, 1); ids, positions and small integers where they belong. */
static void
fill(const br_mega_prog *p, const br_mega_buffer *b, void *row, int64_t i,
     uint64_t *seed)
{
    double v = (double)(t_rand(seed) >> 11) * 0x1p-52 - 1;
    const br_json *pos = br_json_get(p->meta, "pos");

    if (strcmp(b->name, "token_id") == 0)
        v = (double)(t_rand(seed) % 2);
    else if (strcmp(b->name, "pos") == 0)
        v = (double)pos->i;
    else if (b->dtype == BR_MDT_I32)
        v = (double)i;
    else if (b->dtype == BR_MDT_I8)
        v = (double)(int)(v * 100);
    else if (b->dtype == BR_MDT_I4)
        v = (double)(int)(v * 7);
    else if (b->kind == BR_MBK_WEIGHT)
        v = b->rank == 1                 ? 1 + v / 4
            : strstr(b->name, ".scales") ? v / 99
                                         : v / 4;
    /* Not ck_assert, which writes to a pipe each time it holds. */
    if (!br_dt_put(b->dtype, row, i, v))
        ck_abort_msg("%s: %g", b->name, v);
}

static void
bind(br_mega_vm *vm, const br_mega_prog *p, const br_mega_buffer *b)
{
    int64_t last = b->shape[b->rank - 1], rows = br_mega_numel(b) / last;
    int64_t pitch = br_dt_row_bytes(b->dtype, last);
    br_mega_value v = {.shape = b->shape,
                       .rank = b->rank,
                       .dtype = b->dtype,
                       .nbytes = (size_t)(rows * pitch)};
    uint64_t seed = name_seed(b);
    char *data = calloc(v.nbytes + 1, 1);
    br_status st = {0};

    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < last; i++)
            fill(p, b, data + r * pitch, i, &seed);
    v.data = data;
    t_ok(br_mega_vm_bind(vm, b->id, &v, &st), &st);
    free(data);
}

float *
lm_run(const br_mega_prog *p, size_t *n)
{
    br_status st = {0};
    br_mega_vm *vm;
    float *out = NULL;

    t_ok(br_mega_vm_new(&vm, p, &(br_mega_vm_desc){0}, &st), &st);
    for (size_t i = 0; i < p->n_buffers; i++) {
        const br_mega_buffer *b = &p->buffers[i];

        if (br_mega_kind_readonly(b->kind) || b->kind == BR_MBK_KV_CACHE)
            bind(vm, p, b);
    }
    t_ok(br_mega_vm_run(vm, BR_MEGA_ORDER_SWEEP, 0, &st), &st);
    for (size_t i = 0; i < p->n_buffers && !out; i++) {
        const br_mega_buffer *b = &p->buffers[i];
        br_mega_value v;

        if (b->kind != BR_MBK_IO_OUTPUT)
            continue;
        v = br_mega_vm_get(vm, b->id);
        *n = (size_t)br_mega_numel(b);
        out = t_keep(malloc(*n * sizeof *out));
        for (size_t k = 0; k < *n; k++)
            out[k] = (float)br_dt_get(v.dtype, v.data, (int64_t)k);
    }
    br_mega_vm_free(vm);
    return out;
}

/* ---- looking ------------------------------------------------------------- */

const br_mega_task *
lm_task(const br_mega_prog *p, const char *label)
{
    for (size_t i = 0; i < p->n_tasks; i++)
        if (br_text_is((br_text){p->tasks[i].label, p->tasks[i].label_n},
                       label))
            return &p->tasks[i];
    ck_abort_msg("no task '%s'", label);
    return NULL;
}

const br_mega_buffer *
lm_buffer(const br_mega_prog *p, const char *name)
{
    for (size_t i = 0; i < p->n_buffers; i++)
        if (br_text_is((br_text){p->buffers[i].name, p->buffers[i].name_n},
                       name))
            return &p->buffers[i];
    ck_abort_msg("no buffer '%s'", name);
    return NULL;
}

size_t
lm_count(const br_mega_prog *p, const char *prefix)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_tasks; i++)
        n += strncmp(p->tasks[i].label, prefix, strlen(prefix)) == 0;
    return n;
}
