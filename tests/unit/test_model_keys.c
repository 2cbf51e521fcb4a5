/* test_model_keys.c - keys of a file that change what is computed: they are
 * obeyed, or the file is refused. Golden models with a key more.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"
#include "logits_kit.h"
#include "model/gguf_write.h"

#include "t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

/* Logits of the case's tokens, with what `set` adds; NULL: nothing. */
static const float *
logits_with(const char *name, void (*set)(br_gguf_writer *w), lk_case *c)
{
    const float *x;
    lk_run r;

    *c = lk_get(lk_find(name));
    if (set)
        lk_rewrite(c, set);
    t_ok(lk_open(&r, c, NULL), &r.st);
    x = lk_logits(&r, c, c->n_tokens, 0);
    lk_close(&r);
    return x;
}

static bool
have(const char *name)
{
    return lk_find(name) < lk_count();
}

/* The position of the first row that differs, or n. */
static uint32_t
first_other(const lk_case *c, const float *a, const float *b)
{
    for (uint32_t i = 0; i < c->n_tokens; i++)
        if (memcmp(a + (size_t)i * c->n_vocab, b + (size_t)i * c->n_vocab,
                   c->n_vocab * sizeof *a) != 0)
            return i;
    return c->n_tokens;
}

/* ---- refused, or obeyed by an older name --------------------------------- */

static const char *added_key, *added_text;

static void
add_false(br_gguf_writer *w)
{
    br_gguf_w_bool(w, added_key, false);
}

static void
add_true(br_gguf_writer *w)
{
    br_gguf_w_bool(w, added_key, true);
}

static void
add_text(br_gguf_writer *w)
{
    br_gguf_w_str(w, added_key, br_text_z(added_text));
}

/* Why the model is not opened that has `added_key`. */
static const char *
refusal(const char *name, void (*set)(br_gguf_writer *w))
{
    lk_case c = lk_get(lk_find(name));
    lk_run r;

    lk_rewrite(&c, set);
    ck_assert_int_eq(lk_open(&r, &c, NULL), BR_E_UNSUPPORTED);
    return t_printf("%s", r.st.msg);
}

TEST(what_no_graph_computes_is_refused_by_its_key)
{
    lk_case c;

    added_key = "mamba2.attention.causal";
    ck_assert_str_eq(refusal("mamba2", add_false),
                     "mamba2.attention.causal: it is not true: tokens that "
                     "see later ones are not computed here");
    (void)logits_with("mamba2", add_true, &c);
    if (have("granite")) {
        added_key = "granite.rope.scaling.finetuned";
        ck_assert_str_eq(refusal("granite", add_false),
                         "granite.rope.scaling.finetuned: it is not true: "
                         "positions without a rotation are not computed here");
        (void)logits_with("granite", add_true, &c);
    }
    lk_end();
}

TEST(a_file_that_goes_with_a_model_is_none)
{
    lk_case c;

    added_key = "general.type";
    added_text = "adapter";
    ck_assert_str_eq(refusal("mamba2", add_text),
                     "general.type is 'adapter': it goes with a model, and is "
                     "none");
    added_text = "model";
    (void)logits_with("mamba2", add_text, &c);
    lk_end();
}

static void
unequal(br_gguf_writer *w)
{
    static const float base[2] = {1e4f, 1e6f};

    br_gguf_w_array(w, "llama.rope.freq_base", BR_GGUF_F32, base, 2);
}

static void
equal(br_gguf_writer *w)
{
    static const float base[2] = {1e4f, 1e4f};

    br_gguf_w_array(w, "llama.rope.freq_base", BR_GGUF_F32, base, 2);
}

TEST(a_number_for_each_layer_is_no_number_for_all)
{
    lk_case c;

    if (!have("llama-untied-spm"))
        t_skip("no ../shared/vectors here");
    ck_assert_str_eq(refusal("llama-untied-spm", unequal),
                     "llama.rope.freq_base: layers that differ in it are not "
                     "computed here");
    (void)logits_with("llama-untied-spm", equal, &c);
    lk_end();
}

static void
linear(br_gguf_writer *w)
{
    br_gguf_w_f32(w, "llama.rope.scaling.factor", 4);
}

static void
linear_of_old(br_gguf_writer *w)
{
    br_gguf_w_f32(w, "llama.rope.scale_linear", 4);
}

TEST(an_old_name_of_the_linear_factor_counts)
{
    const float *plain, *now, *old;
    lk_case c;

    if (!have("llama-untied-spm"))
        t_skip("no ../shared/vectors here");
    plain = logits_with("llama-untied-spm", NULL, &c);
    now = logits_with("llama-untied-spm", linear, &c);
    old = logits_with("llama-untied-spm", linear_of_old, &c);
    ck_assert_uint_lt(first_other(&c, plain, now), 2);
    ck_assert_uint_eq(first_other(&c, now, old), c.n_tokens);
    lk_end();
}

/* ---- windows ------------------------------------------------------------ */

static void
narrow(br_gguf_writer *w)
{
    br_gguf_w_u32(w, "olmo2.attention.sliding_window", 8);
}

static void
narrow_nowhere(br_gguf_writer *w)
{
    static const bool none[2] = {false, false};

    narrow(w);
    br_gguf_w_array(w, "olmo2.attention.sliding_window_pattern", BR_GGUF_BOOL,
                    none, 2);
}

static void
narrow_in_one(br_gguf_writer *w)
{
    narrow(w);
    br_gguf_w_u32(w, "olmo2.attention.sliding_window_pattern", 2);
}

static void
yarn(br_gguf_writer *w)
{
    br_gguf_w_str(w, "olmo2.rope.scaling.type", BR_TEXT("yarn"));
    br_gguf_w_f32(w, "olmo2.rope.scaling.factor", 8);
    br_gguf_w_u32(w, "olmo2.rope.scaling.original_context_length", 256);
}

static void
wide(br_gguf_writer *w)
{
    br_gguf_w_u32(w, "olmo2.attention.sliding_window", 64);
}

static void
wide_and_yarn(br_gguf_writer *w)
{
    wide(w);
    yarn(w);
}

/* What OLMo 3 has beside OLMo 2, in files of either. */
TEST(olmo_sees_a_window_where_the_file_has_one)
{
    const float *plain, *window, *nowhere, *one;
    lk_case c;

    if (!have("olmo2"))
        t_skip("no ../shared/vectors here");
    plain = logits_with("olmo2", NULL, &c);
    window = logits_with("olmo2", narrow, &c);
    nowhere = logits_with("olmo2", narrow_nowhere, &c);
    one = logits_with("olmo2", narrow_in_one, &c);
    ck_assert_uint_gt(c.n_tokens, 16);
    ck_assert_uint_eq(first_other(&c, plain, window), 8);
    ck_assert_uint_eq(first_other(&c, plain, nowhere), c.n_tokens);
    ck_assert_uint_eq(first_other(&c, plain, one), 8);
    ck_assert_uint_eq(first_other(&c, window, one), 8);
    lk_end();
}

/* Both layers of this model see a window; what they turn by is not scaled. */
TEST(olmo_does_not_scale_the_rotation_of_windows)
{
    const float *plain, *scaled, *window, *both;
    lk_case c;

    if (!have("olmo2"))
        t_skip("no ../shared/vectors here");
    plain = logits_with("olmo2", NULL, &c);
    scaled = logits_with("olmo2", yarn, &c);
    window = logits_with("olmo2", wide, &c);
    both = logits_with("olmo2", wide_and_yarn, &c);
    ck_assert_uint_lt(first_other(&c, plain, scaled), 2);
    ck_assert_uint_eq(first_other(&c, plain, window), c.n_tokens);
    ck_assert_uint_eq(first_other(&c, plain, both), c.n_tokens);
    lk_end();
}

static void
narrow_lfm(br_gguf_writer *w)
{
    br_gguf_w_u32(w, "lfm2.attention.sliding_window", 8);
}

static void
linear_lfm(br_gguf_writer *w)
{
    br_gguf_w_f32(w, "lfm2.rope.scaling.factor", 4);
}

static void
linear_and_narrow_lfm(br_gguf_writer *w)
{
    linear_lfm(w);
    narrow_lfm(w);
}

/* All of its layers that attend; they are alike, and so is their rotation. */
TEST(lfm_sees_a_window_where_the_file_has_one)
{
    const float *plain, *window, *scaled, *both;
    lk_case c;

    if (!have("lfm2"))
        t_skip("no ../shared/vectors here");
    plain = logits_with("lfm2", NULL, &c);
    window = logits_with("lfm2", narrow_lfm, &c);
    scaled = logits_with("lfm2", linear_lfm, &c);
    both = logits_with("lfm2", linear_and_narrow_lfm, &c);
    ck_assert_uint_eq(first_other(&c, plain, window), 8);
    ck_assert_uint_lt(first_other(&c, plain, scaled), 2);
    ck_assert_uint_eq(first_other(&c, scaled, both), 8);
    lk_end();
}

static void
each_second(br_gguf_writer *w)
{
    br_gguf_w_u32(w, "gemma3.attention.sliding_window_pattern", 2);
}

static void
each_sixth(br_gguf_writer *w)
{
    br_gguf_w_u32(w, "gemma3.attention.sliding_window_pattern", 6);
}

static void
each_first(br_gguf_writer *w)
{
    br_gguf_w_u32(w, "gemma3.attention.sliding_window_pattern", 1);
}

static void
no_window(br_gguf_writer *w)
{
    br_gguf_w_remove(w, "gemma3.attention.sliding_window");
}

/* As Rnj-1, which is a Gemma 3 otherwise. */
TEST(a_gemma_without_a_window_sees_all)
{
    const float *plain, *all, *none;
    lk_case c;

    if (!have("gemma3"))
        t_skip("no ../shared/vectors here");
    plain = logits_with("gemma3", NULL, &c);
    all = logits_with("gemma3", each_first, &c);
    none = logits_with("gemma3", no_window, &c);
    ck_assert_uint_lt(first_other(&c, plain, all), c.n_tokens);
    ck_assert_uint_eq(first_other(&c, all, none), c.n_tokens);
    lk_end();
}

static void
no_pattern(br_gguf_writer *w)
{
    br_gguf_w_remove(w, "gemma4.attention.sliding_window_pattern");
}

/* Which layers of a Gemma 4 see one only its file knows. */
TEST(a_gemma_4_has_to_say_which_layers_see_a_window)
{
    lk_case c;
    lk_run r;

    if (!have("gemma4"))
        t_skip("no ../shared/vectors here");
    c = lk_get(lk_find("gemma4"));
    lk_rewrite(&c, no_pattern);
    ck_assert_int_eq(lk_open(&r, &c, NULL), BR_E_FORMAT);
    ck_assert_str_eq(r.st.msg, "gemma4.attention.sliding_window_pattern: there "
                               "has to be this key");
    lk_end();
}

TEST(a_file_says_which_layers_see_a_window)
{
    const float *plain, *second, *sixth;
    lk_case c;

    if (!have("gemma3"))
        t_skip("no ../shared/vectors here");
    plain = logits_with("gemma3", NULL, &c);
    second = logits_with("gemma3", each_second, &c);
    sixth = logits_with("gemma3", each_sixth, &c);
    ck_assert_uint_lt(first_other(&c, plain, second), c.n_tokens);
    ck_assert_uint_eq(first_other(&c, plain, sixth), c.n_tokens);
    lk_end();
}

/* ---- YaRN --------------------------------------------------------------- */

static void
exact(br_gguf_writer *w)
{
    br_gguf_w_bool(w, "llama.rope.scaling.brass_yarn_exact", true);
}

static void
rounded(br_gguf_writer *w)
{
    br_gguf_w_bool(w, "llama.rope.scaling.brass_yarn_exact", false);
}

/* Pairs from 0 to `end` glide from their own frequency to an eighth of it. */
static void
check_glide(void (*set)(br_gguf_writer *w), double end)
{
    lk_case c = lk_get(lk_find("llama-yarn"));
    br_status st = {0};
    br_ir *g;
    lk_run r;

    lk_rewrite(&c, set);
    t_ok(lk_open(&r, &c, NULL), &r.st);
    t_ok(br_ir_of_model(&g, r.model, BR_IR_DECODE, 256, &st), &st);
    ck_assert_uint_eq(g->n_data, 32);
    for (int i = 0; i < 32; i++) {
        double mix = 1 - fmin(i / end, 1);
        double want = pow(1e4, -i / 32.0) * ((1 - mix) / 8 + mix);

        ck_assert_double_eq_tol((double)g->data[i], want, 1e-6 * want);
    }
    br_ir_free(g);
    lk_close(&r);
}

/* Of 32 tokens before, heads of 64: where a pair turns once. */
TEST(yarn_glides_between_pairs_or_parts_of_them)
{
    double end = 64 * log(32 / (2 * 3.14159265358979)) / (2 * log(1e4));

    if (!have("llama-yarn"))
        t_skip("no ../shared/vectors here");
    check_glide(exact, end);
    check_glide(rounded, ceil(end));
    lk_end();
}

/* A DeepSeek V3: mscale_all_dim is 1, and files of it say 0.1. */
static void
deepseek_yarn(br_gguf_writer *w)
{
    br_gguf_w_str(w, "deepseek2.rope.scaling.type", BR_TEXT("yarn"));
    br_gguf_w_f32(w, "deepseek2.rope.scaling.factor", 40);
    br_gguf_w_u32(w, "deepseek2.rope.scaling.original_context_length", 64);
    br_gguf_w_f32(w, "deepseek2.rope.scaling.yarn_log_multiplier", 0.1f);
}

static const br_ir_node *
first_node(const br_ir *g, br_ir_op op)
{
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].op == op)
            return &g->nodes[i];
    ck_abort_msg("the graph has no such node");
}

/* Its makers' softmax_scale: mscale squared over the root of a head's width. */
TEST(latent_attention_is_scaled_as_its_yarn_says)
{
    double mscale = 1 + 0.1 * log(40), want = mscale * mscale / 8;
    br_status st = {0};
    lk_case c;
    br_ir *g;
    lk_run r;

    if (!have("deepseek2"))
        t_skip("no ../shared/vectors here");
    c = lk_get(lk_find("deepseek2"));
    lk_rewrite(&c, deepseek_yarn);
    t_ok(lk_open(&r, &c, NULL), &r.st);
    t_ok(br_ir_of_model(&g, r.model, BR_IR_DECODE, 256, &st), &st);
    ck_assert_double_eq_tol(
        br_ir_f(first_node(g, BR_IR_FLASH_ATTN), BR_IA_scale, 0), want, 1e-6);
    ck_assert_double_eq(br_ir_f(first_node(g, BR_IR_ROPE), BR_IA_scale, 0), 1);
    br_ir_free(g);
    lk_close(&r);
    lk_end();
}

/* ---- experts ------------------------------------------------------------ */

static void
no_gating(br_gguf_writer *w)
{
    br_gguf_w_remove(w, "deepseek2.expert_gating_func");
}

static void
chosen_with_a_bias(br_gguf_writer *w)
{
    static const float bias[4] = {0.5f, -0.5f, 0.25f, 0};

    lk_add_four(w, "blk.1.exp_probs_b.bias", bias);
    lk_add_four(w, "blk.2.exp_probs_b.bias", bias);
}

static void
bias_and_no_gating(br_gguf_writer *w)
{
    no_gating(w);
    chosen_with_a_bias(w);
}

static void
bias_and_sigmoid(br_gguf_writer *w)
{
    br_gguf_w_u32(w, "deepseek2.expert_gating_func", 2);
    chosen_with_a_bias(w);
}

/* GLM-4.7-Flash has files without the key; DeepSeek V2's never have it. */
TEST(experts_chosen_with_a_bias_are_scored_by_sigmoids)
{
    const float *plain, *unsaid, *bias, *sigmoid, *both;
    lk_case c;

    if (!have("deepseek2"))
        t_skip("no ../shared/vectors here");
    plain = logits_with("deepseek2", NULL, &c);
    unsaid = logits_with("deepseek2", no_gating, &c);
    bias = logits_with("deepseek2", chosen_with_a_bias, &c);
    sigmoid = logits_with("deepseek2", bias_and_sigmoid, &c);
    both = logits_with("deepseek2", bias_and_no_gating, &c);
    ck_assert_uint_eq(first_other(&c, plain, unsaid), c.n_tokens);
    ck_assert_uint_lt(first_other(&c, bias, sigmoid), c.n_tokens);
    ck_assert_uint_eq(first_other(&c, sigmoid, both), c.n_tokens);
    lk_end();
}
