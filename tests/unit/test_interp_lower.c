/* test_interp_lower.c - lowered decoders on the reference VM: recorded greedy
 * sequences, and many schedules of one network against each other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lower_make.h"
#include "mega/dtype.h"
#include "mega/interp.h"
#include "mega/lower.h"
#include "mega/quantize.h"

static int64_t
buffer_named(const br_mega_prog *p, const char *name)
{
    for (size_t i = 0; i < p->n_buffers; i++)
        if (strcmp(p->buffers[i].name, name) == 0)
            return (int64_t)i;
    return -1;
}

static void
bind(br_mega_vm *vm, const br_mega_prog *p, int64_t id, int dtype,
     const void *data, size_t n)
{
    const br_mega_buffer *b = &p->buffers[id];
    br_mega_value v = {data, b->shape, n, b->rank, dtype};
    br_status st = {0};

    t_ok(br_mega_vm_bind(vm, id, &v, &st), &st);
}

static void
bind_step(br_mega_vm *vm, const br_mega_prog *p, const int32_t *token,
          int32_t pos, int n)
{
    int32_t positions[8], rows[8];

    for (int i = 0; i < n; i++) {
        positions[i] = pos;
        rows[i] = i;
    }
    bind(vm, p, 0, BR_MDT_I32, token, 4 * (size_t)n);
    bind(vm, p, 1, BR_MDT_I32, positions, 4 * (size_t)n);
    if (p->n_buffers > 2 && p->buffers[2].kind == BR_MBK_IO_INPUT)
        bind(vm, p, 2, BR_MDT_I32, rows, 4 * (size_t)n);
}

/* The caches of one step into the next, by name. */
static void
thread_caches(br_mega_vm *to, const br_mega_prog *p, const br_mega_vm *from,
              const br_mega_prog *q)
{
    for (size_t i = 0; i < q->n_buffers; i++)
        if (q->buffers[i].kind == BR_MBK_KV_CACHE) {
            br_mega_value v = br_mega_vm_get(from, (int64_t)i);
            br_status st = {0};

            t_ok(br_mega_vm_bind(to, buffer_named(p, q->buffers[i].name), &v,
                                 &st),
                 &st);
        }
}

static int32_t
argmax(const br_mega_vm *vm, const br_mega_prog *p)
{
    br_mega_value v = br_mega_vm_get(vm, buffer_named(p, "logits"));
    const float *x = v.data;
    int32_t best = 0;

    ck_assert_int_eq(v.dtype, BR_MDT_F32);
    for (int32_t i = 1; i < (int32_t)(v.nbytes / 4); i++)
        best = x[i] > x[best] ? i : best;
    return best;
}

/* ---- recorded sequences ----------------------------------------------- */

static void
bind_recorded(br_mega_vm *vm, const br_mega_prog *p, const char *dir,
              const br_json *weights)
{
    for (size_t i = 0; i < p->n_buffers; i++) {
        const br_mega_buffer *b = &p->buffers[i];
        const br_json *e = b->source ? br_json_get(weights, b->source) : NULL;
        size_t n;

        if (b->kind == BR_MBK_WEIGHT && e) {
            const char *data =
                t_read(t_printf("%s/%s", dir, br_json_get(e, "file")->s), &n);

            bind(vm, p, (int64_t)i, BR_MDT_F32, data, n);
        }
    }
}

static void
one_sequence(const char *dir, const br_json *e, br_json *pos)
{
    const br_json *prompt = br_json_get(e, "prompt")->child;
    const br_json *want = br_json_get(e, "expected_generated")->child;
    br_mega_prog *p, *last_p = NULL;
    br_mega_vm *vm, *last = NULL;
    br_status st = {0};
    int32_t token = (int32_t)prompt->i;

    for (pos->i = 0; want; pos->i++) {
        p = lm_spec(br_json_get(e, "lower_spec_pos0"), &st);
        ck_assert_msg(p != NULL, "%s", st.msg);
        t_ok(br_mega_vm_new(&vm, p, NULL, &st), &st);
        bind_recorded(vm, p, dir, br_json_get(e, "weights"));
        bind_step(vm, p, &token, (int32_t)pos->i, 1);
        if (last)
            thread_caches(vm, p, last, last_p);
        t_ok(br_mega_vm_run(vm, BR_MEGA_ORDER_RANDOM, (uint64_t)pos->i, &st),
             &st);
        prompt = prompt ? prompt->next : NULL;
        token = prompt ? (int32_t)prompt->i : argmax(vm, p);
        if (!prompt) {
            ck_assert_msg(token == want->i, "%s: position %d: %d, want %d",
                          br_json_get(e, "id")->s, (int)pos->i, (int)token,
                          (int)want->i);
            want = want->next;
        }
        br_mega_vm_free(last);
        br_mega_free(last_p);
        last = vm;
        last_p = p;
    }
    br_mega_vm_free(last);
    br_mega_free(last_p);
}

static br_json *
member(br_json *obj, const char *key)
{
    br_json *v = obj->child;

    while (v && strcmp(v->key, key) != 0)
        v = v->next;
    ck_assert_msg(v != NULL, "no %s", key);
    return v;
}

TEST_WITHIN(interp_decodes_the_recorded_sequences, 60)
{
    const char *dir = t_vectors("amk");
    br_status st = {0};
    br_arena a;
    br_json *m;
    char *text;
    size_t n;
    int count = 0;

    if (!dir)
        t_skip("no ../shared/vectors/amk here");
    text = t_read(t_printf("%s/manifest.json", dir), &n);
    br_arena_init(&a, 0);
    t_ok(br_json_parse(&m, &a, text, n, BR_JSON_LAX, &st), &st);
    for (br_json *e = member(m, "decode")->child; e; e = e->next, count++)
        one_sequence(dir, e, member(member(e, "lower_spec_pos0"), "pos"));
    ck_assert_int_ge(count, 2);
    br_arena_fini(&a);
}

/* ---- one network, many schedules -------------------------------------- */

/* Numbers in -1..1 that depend on the key alone. */
static float *
random_of(const char *key, size_t n)
{
    uint64_t s = 1469598103934665603u;
    float *x = t_keep(malloc(n * sizeof *x + 1));

    for (; *key; key++)
        s = (s ^ (unsigned char)*key) * 1099511628211u;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)(int64_t)t_rand(&s) / 9.3e18);
    return x;
}

static void
bind_quantised(br_mega_vm *vm, const br_mega_prog *p, size_t i, int64_t group)
{
    const br_mega_buffer *b = &p->buffers[i];
    br_quantize d = {b->shape[0], b->shape[1], group,
                     b->dtype == BR_MDT_I4 ? 4 : 8, true};
    size_t n = (size_t)(d.rows * d.cols);
    unsigned char *packed = t_keep(malloc(n));
    float *scales =
        t_keep(malloc((size_t)(d.rows * br_quantize_groups(&d)) * 4));
    const char *name = t_printf("%s.scales", b->source);
    br_status st = {0};

    t_ok(br_quantize_weights(&d, random_of(b->source, n), packed, scales, NULL,
                             &st),
         &st);
    bind(vm, p, (int64_t)i, b->dtype, packed,
         (size_t)(d.rows * br_quantize_row_bytes(&d)));
    for (size_t k = 0; k < p->n_buffers; k++)
        if (p->buffers[k].source && strcmp(p->buffers[k].source, name) == 0)
            bind(vm, p, (int64_t)k, BR_MDT_F32, scales,
                 (size_t)(d.rows * br_quantize_groups(&d)) * 4);
}

static void
bind_random(br_mega_vm *vm, const br_mega_prog *p, int64_t group)
{
    for (size_t i = 0; i < p->n_buffers; i++) {
        const br_mega_buffer *b = &p->buffers[i];
        size_t n = (size_t)br_mega_numel(b);

        if (b->kind == BR_MBK_KV_CACHE)
            bind(vm, p, (int64_t)i, BR_MDT_F32, random_of(b->name, n), n * 4);
        if (b->kind != BR_MBK_WEIGHT)
            continue;
        if (b->dtype == BR_MDT_I8 || b->dtype == BR_MDT_I4)
            bind_quantised(vm, p, i, group);
        else if (!strstr(b->source, ".scales"))
            bind(vm, p, (int64_t)i, BR_MDT_F32, random_of(b->source, n), n * 4);
    }
}

static br_mega_shape
small_shape(void)
{
    return (br_mega_shape){.hidden = 24,
                           .n_heads = 4,
                           .n_kv_heads = 2,
                           .head_dim = 6,
                           .intermediate = 40,
                           .vocab = 50,
                           .n_layers = 2,
                           .max_seq = 80,
                           .rms_eps = 1e-5,
                           .rope_theta = 10000,
                           .source = "test"};
}

typedef struct result {
    float *logits;
    size_t n;
    br_mega_lower_stats stats;
    size_t pages;
} result;

/* Runs the network as the config (JSON, or NULL) schedules it: first come
 * first served, then in unkind orders. */
static result
run(const br_mega_step *step, br_mega_style style, const char *config)
{
    br_mega_shape shape = small_shape();
    br_mega_lower_opts o = {.style = style,
                            .target = br_mega_target_find(BR_TEXT("h100"))};
    int32_t tokens[8] = {7, 3, 11, 49, 0, 1, 2, 5};
    br_status st = {0};
    br_mega_net *net;
    br_mega_prog *p;
    br_mega_vm *vm;
    br_mega_value v;
    br_arena a;
    br_json *j;
    result r = {.n = 0};

    br_arena_init(&a, 0);
    if (config) {
        t_ok(br_json_parse(&j, &a, config, strlen(config), 0, &st), &st);
        o.config = j;
    }
    t_ok(br_mega_net_model(&net, &shape, step, &st), &st);
    if (br_mega_lower(&p, net, &o, &r.stats, &st) != BR_OK)
        ck_abort_msg("%s: %s", config, st.msg);
    t_ok(br_mega_vm_new(&vm, p, NULL, &st), &st);
    bind_random(vm, p, step->quant_group);
    bind_step(vm, p, tokens, (int32_t)step->pos,
              step->batch ? (int)step->batch : 1);
    if (br_mega_vm_adversarial(vm, 4, BR_MEGA_ORDER_SWEEP, 0, &st) != BR_OK)
        ck_abort_msg("%s: %s", config, st.msg);
    v = br_mega_vm_get(vm, buffer_named(p, "logits"));
    r.n = (size_t)br_mega_numel(&p->buffers[buffer_named(p, "logits")]);
    r.logits = t_keep(malloc(r.n * 4));
    for (size_t i = 0; i < r.n; i++)
        r.logits[i] = (float)br_dt_get(v.dtype, v.data, (int64_t)i);
    r.pages = p->n_binds;
    br_mega_vm_free(vm);
    br_mega_free(p);
    br_mega_net_free(net);
    br_arena_fini(&a);
    return r;
}

static void
near(const result *a, const result *b, double tol, const char *what)
{
    ck_assert_uint_eq(a->n, b->n);
    for (size_t i = 0; i < a->n; i++)
        if (!(fabs((double)a->logits[i] - (double)b->logits[i]) <= tol))
            ck_abort_msg("%s: logit %zu: %g and %g", what, i,
                         (double)a->logits[i], (double)b->logits[i]);
}

/* What does not change the arithmetic must not change a bit. */
TEST_WITHIN(interp_schedules_of_one_network_agree, 60)
{
    static const char *const same[] = {
        "{\"tiling\": {\"gemv\": {\"N_tile\": 7}}}",
        "{\"tiling\": {\"gemv\": {\"N_tile\": 16}, \"gemm\": "
        "{\"N_tile\": 5}}, \"sm_assignment\": \"round_robin\"}",
        "{\"fusion_grouping\": [[\"gate\", \"up\", "
        "\"swiglu\"], [\"add\", \"rmsnorm\"]], \"tiling\": {\"gemv\": "
        "{\"N_tile\": 512}}}",
        "{\"fusion_grouping\": [[\"q\", \"k\", \"v\"]], "
        "\"page_allocation\": \"linear\"}",
        "{\"page_allocation\": \"graph_color\", \"pipelining_depth\": 3}",
        "{\"page_allocation\": \"none\", \"smem_bytes_per_block\": 4096}",
    };
    static const br_mega_step steps[] = {
        {.pos = 0},
        {.pos = 40},
        {.pos = 3, .batch = 3},
        {.pos = 17, .dtype = BR_MDT_BF16},
        {.pos = 5, .quant_bits = 8, .quant_group = 8},
        {.pos = 5, .quant_bits = 4, .quant_group = 16},
    };
    size_t fused = 0;

    for (size_t k = 0; k < BR_COUNT(steps); k++) {
        result want = run(&steps[k], BR_LOWER_AMK, NULL);

        for (size_t i = 0; i < BR_COUNT(same); i++) {
            result got = run(&steps[k], BR_LOWER_HOUSE, same[i]);

            near(&got, &want, 0, same[i]);
            fused += got.stats.fused_groups;
        }
    }
    ck_assert_uint_gt(fused, 0);
}

/* A split attention adds in another order. */
TEST_WITHIN(interp_split_attention_agrees_closely, 60)
{
    br_mega_step step = {.pos = 70};
    result want = run(&step, BR_LOWER_AMK, NULL), got;

    for (int parts = 2; parts <= 8; parts++) {
        const char *c = t_printf("{\"tiling\": {\"attention\": "
                                 "{\"n_partitions\": %d}}}",
                                 parts);

        got = run(&step, BR_LOWER_AMK, c);
        near(&got, &want, 2e-5, c);
        got = run(&step, BR_LOWER_HOUSE, c);
        near(&got, &want, 2e-5, c);
        ck_assert_uint_gt(got.stats.split_attentions, 0);
    }
}
