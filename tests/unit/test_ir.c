/* test_ir.c - graphs: the verifier rule by rule, text, flat bytes, fused ops.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"
#include "logits_kit.h"
#include "model/qint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "t.h"

T_ONE_THREAD();

/* ---- the verifier ------------------------------------------------------- */

/* Nothing wrong with this one; each negative test changes a line of it. */
#define HEAD      "graph g stage=decode\n"
#define TOKEN     "value step.token I32 [T,1]\n"
#define POS       "value step.position I32 [T,1]\n"
#define TABLE     "value model.embed_table F32 [8,4]\n"
#define W         "value model.w F32 [4,4]\n"
#define X         "value t.x F32 [T,4]\n"
#define Y         "value t.y F32 [T,4]\n"
#define OUT       "value step.logits F32 [T,4]\n"
#define EMBED     "node EMBED step.token model.embed_table -> t.x\n"
#define MATMUL    "node MATMUL t.x model.w - -> t.y\n"
#define VALUES    TOKEN POS TABLE W X Y OUT
#define KV        "value state.kv_k[0] F32 [P,4] layer=0\n"
#define GOOD      HEAD VALUES EMBED MATMUL "node COPY t.y -> step.logits\n"
#define WITH(...) HEAD VALUES KV EMBED __VA_ARGS__

static void
accepts(const char *text)
{
    br_status st = {0};
    br_ir *g;

    t_ok(br_ir_parse(&g, text, strlen(text), &st), &st);
    br_ir_free(g);
}

static void
refuses(const char *text, const char *why)
{
    br_status st = {0};
    br_ir *g;

    ck_assert_msg(br_ir_parse(&g, text, strlen(text), &st) != BR_OK,
                  "accepted, though: %s", why);
    ck_assert_ptr_null(g);
    ck_assert_msg(strstr(st.msg, why) != NULL, "'%s' is not '%s'", st.msg, why);
}

TEST(ir_accepts_a_good_graph)
{
    accepts(GOOD);
    accepts(WITH(MATMUL
                 "node KV_WRITE_BATCHED t.x - step.position "
                 "state.kv_k[0] - window=0\n"
                 "node BARRIER state.kv_k[0] -\n"
                 "node FLASH_ATTN t.y state.kv_k[0] - step.position - -> "
                 "step.logits heads=1 kv_heads=1 head_dim=4 head_v=4 "
                 "scale=0x1p-1\n"));
}

TEST(ir_refuses_wrong_bindings)
{
    refuses(WITH("node MATMUL t.x model.w -> t.y\n"),
            "has not the bindings that its opcode names");
    refuses(WITH("node MATMUL - model.w - -> t.y\n"), "MATMUL x: is not bound");
    refuses(WITH("node MATMUL t.x model.v - -> t.y\n"),
            "no such value: 'model.v'");
    refuses(WITH("node NOTHING t.x -> t.y\n"), "no such opcode: 'NOTHING'");
    refuses(WITH("node ADD t.x t.x t.x t.x t.x t.x t.x t.x t.x -> t.y\n"),
            "more than 8 bindings");
    refuses(WITH("node ADD t.x t.x t.x t.x t.x -> t.y t.y t.y t.y\n"),
            "9 bindings, at most 8");
    refuses(WITH("node COPY t.x{2:4} -> t.y\n"),
            "binds columns that the value has not");
    refuses(WITH("node COPY t.x{0:2/1*2} -> t.y\n"),
            "binds columns that are none");
    refuses(WITH("node COPY t.x{0:0} -> t.y\n"), "binds columns that are none");
    refuses(WITH("node COPY t.x{4294967290:4} -> t.y\n"),
            "binds columns that the value has not");
}

TEST(ir_refuses_wrong_classes_and_formats)
{
    refuses(WITH("node COPY step.token -> t.y\n"), "has to be F32 rows");
    refuses(WITH("node MATMUL t.x t.x - -> t.y\n"),
            "w: has to be a matrix of the model");
    refuses(WITH("node EMBED t.x model.embed_table -> t.y\n"),
            "token: has to be I32 rows");
    refuses(WITH("node COPY t.x -> model.w\n"),
            "writes what is only read, or changed in place");
    refuses(WITH("node COPY t.x -> state.kv_k[0]\n"),
            "writes what is only read, or changed in place");
    refuses(WITH("node KV_WRITE_BATCHED t.x - step.position t.x -\n"),
            "kv_k: has to be a state");
    refuses(HEAD "value t.x Q8_0 [T,32]\n",
            "only weights may be other than F32 and I32");
    refuses(HEAD "value model.w Q8_0 [4,31]\n", "not whole blocks");
    refuses(HEAD "value model.w QX [4,31]\n", "no such number format");
}

TEST(ir_refuses_shapes_that_disagree)
{
    refuses(WITH("node MATMUL t.x{0:2} model.w - -> t.y\n"),
            "w is not columns of y by columns of x");
    refuses(WITH("node ADD t.x{0:2} t.x -> t.y\n"), "widths differ");
    refuses(WITH("node ADD t.x t.x{0:1} -> t.y\n"), "b is of another width");
    refuses(WITH("node RMS_NORM t.x - -> t.y eps=0x1p-9 width=3\n"),
            "width does not divide the columns");
    refuses(WITH("node RMS_NORM t.x - -> t.y eps=0x1p-9\n"),
            "width: there has to be this attribute");
    refuses(WITH("node RMS_NORM t.x - -> t.y eps=-0x1p-9 width=4\n"),
            "eps has to be 0..1");
    refuses(WITH("node GLU t.x t.x -> t.y act=9\n"), "no such act");
    refuses(WITH("node FLASH_ATTN t.x state.kv_k[0] - step.position - -> t.y "
                 "heads=3 kv_heads=2 head_dim=4 head_v=4 scale=0x1p+0\n"),
            "heads do not share kv_heads");
    refuses(WITH("node TEMP_SCALE t.x step.position -> t.y scale=0x1p+0 "
                 "field=0\n"),
            "field has to be 1 or more");
}

TEST(ir_refuses_wrong_order)
{
    refuses(HEAD VALUES MATMUL, "reads columns that nothing has written");
    refuses(WITH("node COPY t.x{0:2} -> t.y{0:2}\n"
                 "node COPY t.y -> step.logits\n"),
            "reads columns that nothing has written");
    refuses(WITH(MATMUL MATMUL), "writes columns that were written before");
    refuses(WITH("node COPY t.x{0:3} -> t.y{0:3}\n"
                 "node COPY t.x{0:2} -> t.y{2:2}\n"),
            "writes columns that were written before");
    refuses(WITH("node KV_WRITE_BATCHED t.x - step.position state.kv_k[0] - "
                 "window=0\n"
                 "node FLASH_ATTN t.x state.kv_k[0] - step.position - -> t.y "
                 "heads=1 kv_heads=1 head_dim=4 head_v=4 scale=0x1p-1\n"),
            "touches a state changed since the last BARRIER");
    refuses(WITH("node KV_WRITE_BATCHED t.x - step.position state.kv_k[0] - "
                 "window=0\n"
                 "node KV_WRITE_BATCHED t.x - step.position state.kv_k[0] - "
                 "window=0\n"),
            "touches a state changed since the last BARRIER");
    accepts(WITH("node COPY t.x{0:2} -> t.y{2:2}\n"
                 "node COPY t.x{2:2} -> t.y{0:2}\n"
                 "node COPY t.y -> step.logits\n"));
}

TEST(ir_refuses_wrong_names_and_dimensions)
{
    refuses(HEAD X X, "two values have this name");
    refuses(HEAD "value x F32 [T,4]\n", "names begin with");
    refuses(HEAD "value t.x F32 [4,4]\n", "rows of a step are T by columns");
    refuses(HEAD "value state.x F32 [4,4]\n", "positions or slots");
    refuses(HEAD "value model.w F32 [T,4]\n", "a weight's shape is numbers");
    refuses(HEAD "value t.x F32 [T,4,4,4,4]\n", "a shape is");
    refuses(HEAD "value t.x F32 [T,0]\n", "a shape is");
    refuses(HEAD "value model.w F32 [1000000000,1000000000]\n",
            "a dimension is out of range");
    refuses("", "line 1");
    refuses("graph g stage=other\n", "stage= is decode or prefill");
    refuses(GOOD "nonsense\n", "a line is value, const or node");
    refuses(WITH("node COPY t.x -> t.y scale=0.1\n"),
            "there has to be an f32 number");
    refuses(WITH("node COPY t.x -> t.y colour=1\n"), "no such attribute");
}

TEST(ir_builder_is_shut_after_freezing)
{
    br_ir_builder *b = br_ir_builder_new("g", BR_IR_DECODE);
    br_ir_desc d = {.name = "t.x", .rank = 2, .dim = {BR_DIM_T, 4}};
    br_status st = {0};
    br_ir *g, *again;

    (void)br_ir_add_value(b, &d);
    t_ok(br_ir_freeze(b, &g, &st), &st);
    d.name = "t.y";
    ck_assert_uint_eq(br_ir_add_value(b, &d), BR_IR_NONE);
    ck_assert_int_eq(br_ir_builder_status(b)->code, BR_E_REJECTED);
    ck_assert_str_eq(br_ir_builder_status(b)->msg,
                     "add value: the graph is frozen and takes no more");
    ck_assert_int_eq(br_ir_freeze(b, &again, &st), BR_E_REJECTED);
    ck_assert_uint_eq(g->n_values, 1);
    br_ir_free(g);
    br_ir_builder_free(b);
}

TEST(ir_opcodes_have_their_numbers)
{
    ck_assert_int_eq(BR_IR_EMBED, 0);
    ck_assert_int_eq(BR_IR_FLASH_ATTN, 6);
    ck_assert_int_eq(BR_IR_ARGMAX, 18);
    ck_assert_int_eq(BR_IR_VERIFY_K, 27);
    for (int op = 0; op < 28; op++)
        ck_assert_ptr_nonnull(br_ir_opinfo_of(op)->name);
    for (int op = 28; op < 32; op++)
        ck_assert_ptr_null(br_ir_opinfo_of(op)->name);
    for (int op = 0; op < BR_IR_OP_LIMIT; op++)
        for (int out = 0; out < 2 && br_ir_opinfo_of(op)->name; out++) {
            br_ir_role r;
            int n = 0;

            while (br_ir_role_at(op, out, n, &r))
                n++;
            ck_assert_int_le(n, BR_IR_MAX_BINDINGS);
        }
}

/* ---- text and bytes ----------------------------------------------------- */

TEST_WITHIN(ir_of_every_model_round_trips, 60)
{
    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);
        br_status st = {0};
        br_str text = {0}, again = {0};
        br_model *m;

        t_ok(br_model_open_mem(&m, c.file, c.file_n, &st), &st);
        for (int s = 0; s < BR_IR_STAGE_COUNT; s++) {
            br_ir *g, *parsed, *mapped;
            void *bytes;

            t_ok(br_ir_of_model(&g, m, (br_ir_stage)s, 256, &st), &st);
            br_str_clear(&text);
            br_str_clear(&again);
            br_ir_print(g, &text);
            t_ok(br_ir_parse(&parsed, text.at, text.n, &st), &st);
            br_ir_print(parsed, &again);
            ck_assert_str_eq(text.at, again.at);
            ck_assert_uint_eq(g->block_bytes, parsed->block_bytes);
            ck_assert_mem_eq(g->block, parsed->block, g->block_bytes);
            bytes = t_keep(malloc(g->block_bytes));
            memcpy(bytes, g->block, g->block_bytes);
            t_ok(br_ir_map(&mapped, bytes, g->block_bytes, &st), &st);
            ck_assert_ptr_eq(mapped->block, bytes);
            ck_assert_uint_eq(mapped->n_nodes, g->n_nodes);
            br_ir_free(mapped);
            br_ir_free(parsed);
            br_ir_free(g);
        }
        br_str_fini(&text);
        br_str_fini(&again);
        br_model_close(m);
    }
    lk_end();
}

/* Any byte of a serialised graph changed: mapped or refused, never worse. */
TEST_WITHIN(ir_survives_any_changed_byte, 60)
{
    br_status st = {0};
    uint64_t seed = 1;
    br_ir *g, *m;
    uint64_t *bytes;
    size_t refused = 0;

    t_ok(br_ir_parse(&g, GOOD, strlen(GOOD), &st), &st);
    bytes = t_keep(malloc(g->block_bytes));
    for (int round = 0; round < 20000; round++) {
        size_t at = t_rand(&seed) % g->block_bytes;

        memcpy(bytes, g->block, g->block_bytes);
        ((uint8_t *)bytes)[at] ^= (uint8_t)(1 + t_rand(&seed) % 255);
        if (br_ir_map(&m, bytes, g->block_bytes, NULL) == BR_OK)
            br_ir_free(m);
        else
            refused++;
        if (round < 500 && br_ir_map(&m, bytes, at, NULL) == BR_OK)
            ck_abort_msg("a piece of a graph was accepted");
    }
    ck_assert_uint_gt(refused, 5000);
    br_ir_free(g);
}

static br_code
parse_once(void *arg, br_status *st)
{
    br_ir *g;
    br_code code = br_ir_parse(&g, arg, strlen(arg), st);

    br_ir_free(g);
    return code;
}

TEST(ir_parser_survives_any_lack_of_memory)
{
    char text[] = GOOD;

    t_each_oom(parse_once, text);
}

TEST(ir_pictures_are_well_formed)
{
    br_status st = {0};
    br_str dot = {0}, svg = {0}, json = {0};
    br_ir *g;

    t_ok(br_ir_parse(&g, GOOD, strlen(GOOD), &st), &st);
    br_ir_dot(g, &dot);
    br_ir_svg(g, &svg);
    br_ir_json(g, &json);
    ck_assert_ptr_nonnull(strstr(dot.at, "n0 -> n1 [label=\"t.x\"]"));
    ck_assert_ptr_nonnull(strstr(svg.at, ">MATMUL</text>"));
    ck_assert_int_eq(strncmp(svg.at, "<svg ", 5), 0);
    ck_assert_ptr_nonnull(strstr(json.at, "\"op\": \"EMBED\", \"code\": 0"));
    br_str_fini(&dot);
    br_str_fini(&svg);
    br_str_fini(&json);
    br_ir_free(g);
}

/* ---- elementary functions ----------------------------------------------- */

static double
off_by(float got, double want)
{
    return want == 0 ? fabs((double)got)
                     : fabs((double)got - want) / fabs(want);
}

TEST(ref_functions_are_near_the_true_ones)
{
    double worst[5] = {0};

    for (double x = -87; x < 88; x += 0.00731) {
        float f = (float)x, s, c;

        worst[0] = fmax(worst[0], off_by(br_ref_exp(f), exp((double)f)));
        worst[1] = fmax(worst[1], off_by(br_ref_tanh(f), tanh((double)f)));
        if (f > 0)
            worst[2] =
                fmax(worst[2], fabs((double)br_ref_log(f) - log((double)f)));
        br_ref_sincos(1000.0f, f, &s, &c);
        worst[3] = fmax(worst[3], fabs((double)s - sin(1000.0 * (double)f)));
        worst[4] = fmax(worst[4], fabs((double)c - cos(1000.0 * (double)f)));
    }
    ck_assert_double_lt(worst[0], 1.5e-7);
    ck_assert_double_lt(worst[1], 3e-7);
    ck_assert_double_lt(worst[2], 4e-7);
    ck_assert_double_lt(worst[3], 1.5e-7);
    ck_assert_double_lt(worst[4], 1.5e-7);
    ck_assert(br_ref_exp(-200) == 0.0f);
    ck_assert(isinf(br_ref_exp(100)));
    ck_assert(br_ref_exp(0) == 1.0f);
    ck_assert(br_ref_log(1) == 0.0f);
    ck_assert(isnan(br_ref_exp(NAN)));
    ck_assert_double_lt(off_by(br_ref_log(1e-42f), log((double)1e-42f)), 1e-6);
}

TEST(ref_dot_runs_in_sixteen_lanes)
{
    float a[37], b[37], lane[16] = {0};
    uint64_t seed = 3;

    for (int i = 0; i < 37; i++) {
        a[i] = (float)(t_rand(&seed) % 1000) / 7.0f - 70;
        b[i] = (float)(t_rand(&seed) % 1000) / 9.0f - 50;
        lane[i % 16] = fmaf(a[i], b[i], lane[i % 16]);
    }
    for (int half = 8; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    ck_assert(br_ref_dot(a, b, 37) == lane[0]);
}

/* The integers of a block say the same as its floats. */
TEST(qint_is_what_dequantisation_says)
{
    uint64_t seed = 11;
    int types = 0;

    for (int type = 0; type < BR_Q_LIMIT; type++) {
        const br_qinfo *q = br_qinfo_of(type);
        uint8_t block[256];
        float w[256];
        br_qint i;

        if (!q->name || !br_qint_has(type))
            continue;
        types++;
        for (int round = 0; round < 100; round++) {
            double top = 0, worst = 0;

            for (uint32_t k = 0; k < q->bytes; k++)
                block[k] = (uint8_t)t_rand(&seed);
            br_dequant(type, block, w, q->elems);
            br_qint_block(type, block, &i);
            ck_assert_int_eq(i.n, (int)q->elems);
            for (int k = 0; k < i.n; k++) {
                double v = (double)i.d * i.scale[k / i.sub] * i.q[k];

                if (i.has_min)
                    v -= (double)i.dmin * i.min[k / i.sub];
                top = fmax(top, fabs(v));
                worst = fmax(worst, fabs(v - (double)w[k]));
            }
            if (isfinite(top))
                ck_assert_msg(worst <= top * 1e-6, "%s: %g of %g", q->name,
                              worst, top);
        }
    }
    ck_assert_int_eq(types, 13);
}

/* ---- fused opcodes are their parts -------------------------------------- */

typedef struct swap {
    const char *from, *to;
} swap;

/* The text with each line that begins with a `from` replaced. */
static char *
rewrite(const char *text, const swap *s, size_t n)
{
    br_str out = {0};
    char *copy;

    while (*text) {
        size_t len = strcspn(text, "\n") + 1;
        bool done = false;

        for (size_t i = 0; i < n && !done; i++)
            if (strncmp(text, s[i].from, strlen(s[i].from)) == 0) {
                br_str_puts(&out, s[i].to);
                done = true;
            }
        if (!done)
            br_str_put(&out, text, len);
        text += len;
    }
    copy = t_printf("%s", out.at);
    br_str_fini(&out);
    return copy;
}

static void
same_bits(lk_case *c, const swap *s, size_t n)
{
    br_status st = {0};
    br_str text = {0};
    const float *plain;
    float *fused;
    char *changed;
    br_ir *g;
    br_ref *ref, *was;
    lk_run r;

    t_ok(lk_open(&r, c, NULL), &r.st);
    plain = lk_logits(&r, c, c->n_tokens, 0);
    br_ir_print(r.o.graph[BR_IR_PREFILL], &text);
    changed = rewrite(text.at, s, n);
    ck_assert_str_ne(changed, text.at);
    t_ok(br_ir_parse(&g, changed, strlen(changed), &st), &st);
    t_ok(br_ref_prepare(&ref, r.model, g,
                        &(br_ref_config){.act = BR_REF_F32, .max_rows = 64},
                        &st),
         &st);
    was = r.o.ref[BR_IR_PREFILL];
    r.o.ref[BR_IR_PREFILL] = ref;
    fused = lk_logits(&r, c, c->n_tokens, 0);
    ck_assert_mem_eq(plain, fused,
                     (size_t)c->n_tokens * c->n_vocab * sizeof *plain);
    r.o.ref[BR_IR_PREFILL] = was;
    br_ref_free(ref);
    br_ir_free(g);
    br_str_fini(&text);
    lk_close(&r);
}

#define EPS "eps=0x1.a36e2ep-13"

static lk_case
get_or_skip(const char *name)
{
    size_t i = lk_find(name);

    if (i == lk_count()) {
        lk_end();
        t_skip("no ../shared/vectors/logits here");
    }
    return lk_get(i);
}

TEST(fused_norm_and_projections_are_their_parts)
{
    lk_case c = get_or_skip("llama-linear");
    const swap s[] = {
        {"node RMS_NORM layer=0 t.embed", ""},
        {"node MATMUL layer=0 t.att_norm[0] model.attn.q_weight[0]",
         "node RMS_NORM_FUSED_QKV layer=0 t.embed model.attn.norm_w[0] "
         "model.attn.q_weight[0] model.attn.k_weight[0] model.attn.v_weight[0] "
         "-> t.q[0] t.k[0] t.v[0] " EPS " width=64\n"},
        {"node MATMUL layer=0 t.att_norm[0] model.attn.k_weight[0]", ""},
        {"node MATMUL layer=0 t.att_norm[0] model.attn.v_weight[0]", ""},
        {"node RMS_NORM layer=1 t.after_att[1]", ""},
        {"node MATMUL layer=1 t.ffn_norm[1] model.ffn.gate_weight[1]",
         "node RMS_NORM_FUSED_MLP_GATE_UP layer=1 t.after_att[1] "
         "model.ffn.norm_w[1] model.ffn.gate_weight[1] model.ffn.up_weight[1] "
         "-> t.gate[1] t.up[1] " EPS " width=64\n"},
        {"node MATMUL layer=1 t.ffn_norm[1] model.ffn.up_weight[1]", ""}};

    same_bits(&c, s, BR_COUNT(s));
    lk_end();
}

TEST(fused_residual_and_norm_are_their_parts)
{
    lk_case c = get_or_skip("llama-linear");
    const swap s[] = {
        {"node ADD layer=0 t.att_out[0] t.embed", ""},
        {"node RMS_NORM layer=0 t.after_att[0]",
         "node RESIDUAL_RMS_NORM layer=0 t.att_out[0] t.embed "
         "model.ffn.norm_w[0] -> t.after_att[0] t.ffn_norm[0] " EPS
         " width=64\n"}};

    same_bits(&c, s, BR_COUNT(s));
    lk_end();
}

TEST(fused_norm_rope_and_write_are_their_parts)
{
    lk_case c = get_or_skip("qwen3");
    const swap s[] = {
        {"node RMS_NORM layer=0 t.k[0]", ""},
        {"node ROPE layer=0 t.k_norm[0]", ""},
        {"node KV_WRITE_BATCHED layer=0",
         "node RMS_NORM_FUSED_ROPE_KV_WRITE layer=0 t.k[0] "
         "model.attn.k_norm_w[0] model.rope.freq t.v[0] step.position "
         "state.kv_k[0] state.kv_v[0] eps=0x1.a36e2ep-14 heads=2 head_dim=64 "
         "n_rot=64 kind=2 scale=0x1p+0 window=0\n"}};

    same_bits(&c, s, BR_COUNT(s));
    lk_end();
}

TEST(fused_expert_sum_and_residual_are_their_parts)
{
    lk_case c = get_or_skip("llama-mixtral");
    const swap s[] = {
        {"node MOE_DOWN_ACC layer=0",
         "node MOE_DOWN_ACC layer=0 t.expert_act[0] model.moe.down_weight[0] "
         "t.expert_ids[0] t.expert_weights[0] - - t.after_att[0] -> "
         "t.after_ffn[0] k=2\n"},
        {"node ADD layer=0 t.experts[0]", ""}};

    same_bits(&c, s, BR_COUNT(s));
    lk_end();
}

TEST(fused_shared_expert_is_its_parts)
{
    lk_case c = get_or_skip("qwen2moe");
    const swap s[] = {
        {"node MATMUL layer=0 t.ffn_norm[0] model.moe.shared_", ""},
        {"node GLU layer=0 t.shared_gate[0]", ""},
        {"node MATMUL layer=0 t.shared_act[0]", ""},
        {"node ACT layer=0 t.shared_router[0]", ""},
        {"node MUL layer=0 t.shared_out[0]", ""},
        {"node ADD layer=0 t.experts[0] t.shared_gated[0]",
         "node SHARED_EXPERT layer=0 t.ffn_norm[0] "
         "model.moe.shared_gate_weight[0] model.moe.shared_up_weight[0] "
         "model.moe.shared_down_weight[0] model.moe.shared_router_weight[0] "
         "t.experts[0] -> t.with_shared[0] act=0\n"}};

    same_bits(&c, s, BR_COUNT(s));
    lk_end();
}
