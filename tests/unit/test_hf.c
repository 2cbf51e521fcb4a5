/* test_hf.c - Hugging Face folders into GGUF files.
 *
 * Families and what is refused, on small folders; whole models of each family
 * are in test_hf_models.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "hf_kit.h"

#include "model/quant.h"
#include "t.h"
#include "tok_kit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* ---- tensors of a folder -------------------------------------------------- */

/* A tensor of numbers that say where they were: BF16, or F32. */
static void
add(st_make *m, const char *name, const char *dtype, uint64_t rows,
    uint64_t cols)
{
    const uint64_t dims[2] = {rows, cols};
    size_t n = (size_t)(rows * cols), size = dtype[0] == 'B' ? 2 : 4;
    uint8_t *p = malloc(n * size);

    for (size_t i = 0; i < n; i++) {
        float f = (float)((i + strlen(name)) % 256);
        uint16_t h = br_f32_to_bf16(f);

        if (size == 2)
            memcpy(p + 2 * i, &h, 2);
        else
            memcpy(p + 4 * i, &f, 4);
    }
    st_add(m, name, dtype, cols ? dims + (rows == 0) : dims, cols ? 2 : 1, p,
           n * size);
    free(p);
}

static void
add_vector(st_make *m, const char *name, uint64_t n)
{
    const uint64_t dims[1] = {n};
    uint16_t *p = malloc(n * 2);

    for (uint64_t i = 0; i < n; i++)
        p[i] = br_f32_to_bf16((float)i);
    st_add(m, name, "BF16", dims, 1, p, n * 2);
    free(p);
}

/* ---- a small dense model ------------------------------------------------ */

enum { WIDTH = 8, HEADS = 2, KV = 1, DIM = 4, FF = 6, ROWS = 264 };

static void
add_dense(st_make *m, bool qkv_bias, bool qk_norm)
{
    const char *l = "model.layers.0.";

    add(m, "model.embed_tokens.weight", "BF16", ROWS, WIDTH);
    add_vector(m, t_printf("%sinput_layernorm.weight", l), WIDTH);
    add(m, t_printf("%sself_attn.q_proj.weight", l), "BF16", HEADS * DIM,
        WIDTH);
    add(m, t_printf("%sself_attn.k_proj.weight", l), "BF16", KV * DIM, WIDTH);
    add(m, t_printf("%sself_attn.v_proj.weight", l), "BF16", KV * DIM, WIDTH);
    add(m, t_printf("%sself_attn.o_proj.weight", l), "BF16", WIDTH,
        HEADS * DIM);
    if (qkv_bias) {
        add_vector(m, t_printf("%sself_attn.q_proj.bias", l), HEADS * DIM);
        add_vector(m, t_printf("%sself_attn.k_proj.bias", l), KV * DIM);
        add_vector(m, t_printf("%sself_attn.v_proj.bias", l), KV * DIM);
    }
    if (qk_norm) {
        add_vector(m, t_printf("%sself_attn.q_norm.weight", l), DIM);
        add_vector(m, t_printf("%sself_attn.k_norm.weight", l), DIM);
    }
    add_vector(m, t_printf("%spost_attention_layernorm.weight", l), WIDTH);
    add_vector(m, "model.norm.weight", WIDTH);
}

static void
add_ffn(st_make *m, const char *prefix, uint64_t ff)
{
    add(m, t_printf("%sgate_proj.weight", prefix), "BF16", ff, WIDTH);
    add(m, t_printf("%sup_proj.weight", prefix), "BF16", ff, WIDTH);
    add(m, t_printf("%sdown_proj.weight", prefix), "BF16", WIDTH, ff);
}

#define CONFIG(name)                                             \
    "{\"architectures\":[\"" name "\"],\"num_hidden_layers\":1," \
    "\"hidden_size\":8,\"intermediate_size\":6,"                 \
    "\"num_attention_heads\":2,\"num_key_value_heads\":1,"       \
    "\"vocab_size\":264,\"rms_norm_eps\":1e-06,"                 \
    "\"max_position_embeddings\":1024,\"rope_theta\":500000.0,"  \
    "\"hidden_act\":\"silu\""

#define GELU ",\"hidden_activation\":\"gelu_pytorch_tanh\""
#define LONGROPE(long, short)                                    \
    ",\"original_max_position_embeddings\":64,\"rope_scaling\":" \
    "{\"type\":\"longrope\",\"long_factor\":" long ",\"short_factor\":" short "}}"

static const char *
make_folder(const char *config, bool qkv_bias, bool qk_norm)
{
    const char *dir = t_tmpdir();
    st_make m = {0};

    hfk_put(dir, "config.json", config);
    hfk_put_bpe(dir, HFK_QWEN2, "");
    add_dense(&m, qkv_bias, qk_norm);
    add_ffn(&m, "model.layers.0.mlp.", FF);
    hfk_put_tensors(dir, &m);
    return dir;
}
/* "2x3 BF16", or "none" */
static const char *
shape(const br_gguf *g, const char *name)
{
    const br_gguf_tensor *t = br_gguf_tensor_find(g, name);
    br_str s = {0};
    const char *kept;

    if (!t)
        return "none";
    for (uint32_t d = 0; d < t->n_dims; d++)
        br_str_printf(&s, "%s%d", d ? "x" : "", (int)t->dim[d]);
    kept = t_printf("%s %s", br_str_z(&s), br_qinfo_of(t->type)->name);
    br_str_fini(&s);
    return kept;
}

static float
weight(const br_gguf *g, const char *name, size_t i)
{
    const br_gguf_tensor *t = br_gguf_tensor_find(g, name);
    uint64_t at;
    float f;

    ck_assert_msg(t, "no %s", name);
    ck_assert(br_qtype_bytes(t->type, i, &at));
    br_dequant(t->type, t->data + at, &f, 1);
    return f;
}
/* ---- families ----------------------------------------------------------- */

TEST(hf_qwen2)
{
    const char *dir = make_folder(CONFIG("Qwen2ForCausalLM") "}", true, false);
    br_gguf *g = hfk_convert_ok(dir);

    ck_assert_str_eq(hfk_text(g, "general.architecture"), "qwen2");
    ck_assert_double_eq(hfk_number(g, "qwen2.block_count"), 1);
    ck_assert_double_eq(hfk_number(g, "qwen2.embedding_length"), 8);
    ck_assert_double_eq(hfk_number(g, "qwen2.attention.head_count"), 2);
    ck_assert_double_eq(hfk_number(g, "qwen2.attention.head_count_kv"), 1);
    ck_assert_double_eq(hfk_number(g, "qwen2.attention.key_length"), 4);
    ck_assert_double_eq(hfk_number(g, "qwen2.rope.dimension_count"), 4);
    ck_assert_double_eq(hfk_number(g, "qwen2.rope.freq_base"), 500000);
    ck_assert_double_eq(hfk_number(g, "qwen2.context_length"), 1024);
    ck_assert_double_eq(hfk_number(g, "general.file_type"), 32);
    ck_assert((float)hfk_number(g, "qwen2.attention.layer_norm_rms_epsilon") ==
              1e-6f);
    ck_assert_str_eq(shape(g, "token_embd.weight"), "8x264 BF16");
    ck_assert_str_eq(shape(g, "blk.0.attn_q.weight"), "8x8 BF16");
    ck_assert_str_eq(shape(g, "blk.0.attn_q.bias"), "8 F32");
    ck_assert_str_eq(shape(g, "blk.0.ffn_down.weight"), "6x8 BF16");
    ck_assert_str_eq(shape(g, "blk.0.ffn_norm.weight"), "8 F32");
    ck_assert_str_eq(shape(g, "output.weight"), "none");
    /* rows as they were: row 5 begins with 5 * WIDTH + name's mark */
    ck_assert(weight(g, "blk.0.attn_q.weight", 5 * WIDTH) -
                  weight(g, "blk.0.attn_q.weight", 0) ==
              5 * WIDTH);
    ck_assert(weight(g, "blk.0.attn_q.bias", 3) == 3);
    ck_assert_uint_eq(hfk_stats.padded, ROWS - 261);
    ck_assert_uint_eq(hfk_stats.tensors, 14);
    br_gguf_close(g);
}

TEST(hf_llama_permutes_q_and_k)
{
    const char *dir = make_folder(CONFIG("LlamaForCausalLM") "}", true, false);
    br_gguf *g = hfk_convert_ok(dir);
    /* theirs 0 1 | 2 3 in each head of 4 */
    static const int from[8] = {0, 2, 1, 3, 4, 6, 5, 7};
    float q0 = weight(g, "blk.0.attn_q.weight", 0);

    for (size_t r = 0; r < 8; r++) {
        ck_assert(weight(g, "blk.0.attn_q.weight", r * WIDTH) - q0 ==
                  (float)(from[r] * WIDTH));
        ck_assert(weight(g, "blk.0.attn_q.bias", r) == (float)from[r]);
    }
    ck_assert(weight(g, "blk.0.attn_k.bias", 1) == 2);
    ck_assert(weight(g, "blk.0.attn_v.weight", WIDTH) -
                  weight(g, "blk.0.attn_v.weight", 0) ==
              WIDTH);
    br_gguf_close(g);
}

TEST(hf_qwen3_heads_of_their_own_width)
{
    const char *dir = make_folder(
        CONFIG("Qwen3ForCausalLM") ",\"head_dim\":4,\"tie_word_embeddings\":"
                                   "true,\"sliding_window\":null}",
        false, true);
    br_gguf *g = hfk_convert_ok(dir);

    ck_assert_str_eq(hfk_text(g, "general.architecture"), "qwen3");
    ck_assert_str_eq(shape(g, "blk.0.attn_q_norm.weight"), "4 F32");
    br_gguf_close(g);
}

TEST(hf_experts_are_stacked)
{
    const char *dir = t_tmpdir();
    st_make m = {0};
    br_gguf *g;
    float first;

    hfk_put(
        dir, "config.json",
        CONFIG("Qwen2MoeForCausalLM") ",\"num_experts\":3,"
                                      "\"num_experts_per_tok\":2,"
                                      "\"moe_intermediate_size\":5,"
                                      "\"shared_expert_intermediate_size\":7,"
                                      "\"norm_topk_prob\":false}");
    hfk_put_bpe(dir, HFK_QWEN2, "");
    add_dense(&m, true, false);
    for (int e = 2; e >= 0; e--)
        add_ffn(&m, t_printf("model.layers.0.mlp.experts.%d.", e), 5);
    add(&m, "model.layers.0.mlp.gate.weight", "BF16", 3, WIDTH);
    add_ffn(&m, "model.layers.0.mlp.shared_expert.", 7);
    add(&m, "model.layers.0.mlp.shared_expert_gate.weight", "BF16", 1, WIDTH);
    hfk_put_tensors(dir, &m);
    g = hfk_convert_ok(dir);
    ck_assert_double_eq(hfk_number(g, "qwen2moe.expert_count"), 3);
    ck_assert_double_eq(hfk_number(g, "qwen2moe.expert_used_count"), 2);
    ck_assert_double_eq(hfk_number(g, "qwen2moe.expert_feed_forward_length"),
                        5);
    ck_assert_double_eq(
        hfk_number(g, "qwen2moe.expert_shared_feed_forward_length"), 7);
    ck_assert_double_eq(hfk_number(g, "qwen2moe.expert_weights_norm"), 0);
    ck_assert_str_eq(shape(g, "blk.0.ffn_gate_exps.weight"), "8x5x3 BF16");
    ck_assert_str_eq(shape(g, "blk.0.ffn_down_exps.weight"), "5x8x3 BF16");
    ck_assert_str_eq(shape(g, "blk.0.ffn_gate_inp.weight"), "8x3 F32");
    ck_assert_str_eq(shape(g, "blk.0.ffn_gate_inp_shexp.weight"), "8 F32");
    ck_assert_str_eq(shape(g, "blk.0.ffn_up_shexp.weight"), "8x7 BF16");
    first = weight(g, "blk.0.ffn_up_exps.weight", 0);
    ck_assert(weight(g, "blk.0.ffn_up_exps.weight", 2 * 5 * WIDTH) == first);
    ck_assert(weight(g, "blk.0.ffn_up_exps.weight", 5 * WIDTH + 9) ==
              first + 9);
    br_gguf_close(g);
}

TEST(hf_mixtral_names)
{
    const char *dir = t_tmpdir();
    st_make m = {0};
    br_gguf *g;

    hfk_put(dir, "config.json",
            CONFIG("MixtralForCausalLM") ",\"num_local_experts\":2,"
                                         "\"num_experts_per_tok\":2,"
                                         "\"sliding_window\":256}");
    hfk_put_bpe(dir, HFK_LLAMA3, ",\"ignore_merges\":true");
    add_dense(&m, false, false);
    for (int e = 0; e < 2; e++) {
        const char *p =
            t_printf("model.layers.0.block_sparse_moe.experts.%d.", e);

        add(&m, t_printf("%sw1.weight", p), "BF16", FF, WIDTH);
        add(&m, t_printf("%sw2.weight", p), "BF16", WIDTH, FF);
        add(&m, t_printf("%sw3.weight", p), "BF16", FF, WIDTH);
    }
    add(&m, "model.layers.0.block_sparse_moe.gate.weight", "BF16", 2, WIDTH);
    add(&m, "lm_head.weight", "F32", ROWS, WIDTH);
    hfk_put_tensors(dir, &m);
    g = hfk_convert_ok(dir);
    ck_assert_str_eq(hfk_text(g, "general.architecture"), "llama");
    ck_assert_str_eq(hfk_text(g, "tokenizer.ggml.pre"), "llama-bpe");
    ck_assert_str_eq(shape(g, "blk.0.ffn_down_exps.weight"), "6x8x2 BF16");
    ck_assert_str_eq(shape(g, "output.weight"), "8x264 F32");
    ck_assert_double_eq(hfk_number(g, "llama.context_length"), 256);
    ck_assert_int_eq(hfk_stats.window, 256);
    br_gguf_close(g);
}

TEST(hf_norms_after)
{
    const char *dir = t_tmpdir();
    st_make m = {0};
    br_gguf *g;

    hfk_put(dir, "config.json", CONFIG("Olmo2ForCausalLM") "}");
    hfk_put_bpe(dir, HFK_QWEN2, "");
    add(&m, "model.embed_tokens.weight", "BF16", ROWS, WIDTH);
    add_ffn(&m, "model.layers.0.mlp.", FF);
    add_vector(&m, "model.layers.0.post_attention_layernorm.weight", WIDTH);
    add_vector(&m, "model.layers.0.post_feedforward_layernorm.weight", WIDTH);
    hfk_put_tensors(dir, &m);
    g = hfk_convert_ok(dir);
    ck_assert_str_eq(shape(g, "blk.0.post_attention_norm.weight"), "8 F32");
    ck_assert_str_eq(shape(g, "blk.0.post_ffw_norm.weight"), "8 F32");
    ck_assert_str_eq(shape(g, "blk.0.ffn_norm.weight"), "none");
    br_gguf_close(g);
}

/* ---- rotation ----------------------------------------------------------- */

TEST(hf_scalings_of_the_rotation)
{
    br_gguf *g = hfk_convert_ok(make_folder(
        CONFIG("LlamaForCausalLM") ",\"rope_scaling\":{\"rope_type\":"
                                   "\"llama3\",\"factor\":8.0,"
                                   "\"low_freq_factor\":1.0,"
                                   "\"high_freq_factor\":4.0,"
                                   "\"original_max_position_embeddings\":64}}",
        false, false));

    ck_assert_str_eq(shape(g, "rope_freqs.weight"), "2 F32");
    /* wave lengths 2 pi, below 64 / 4, and 2 pi sqrt(500000), above 64 */
    ck_assert(weight(g, "rope_freqs.weight", 0) == 1);
    ck_assert(weight(g, "rope_freqs.weight", 1) == 8);
    br_gguf_close(g);
    g = hfk_convert_ok(make_folder(
        CONFIG("Qwen2ForCausalLM") ",\"rope_scaling\":{\"type\":\"yarn\","
                                   "\"factor\":4.0,\"beta_fast\":16,"
                                   "\"original_max_position_embeddings\":256}}",
        false, false));
    ck_assert_str_eq(hfk_text(g, "qwen2.rope.scaling.type"), "yarn");
    ck_assert_double_eq(hfk_number(g, "qwen2.rope.scaling.factor"), 4);
    ck_assert_double_eq(
        hfk_number(g, "qwen2.rope.scaling.original_context_length"), 256);
    ck_assert_double_eq(hfk_number(g, "qwen2.rope.scaling.yarn_beta_fast"), 16);
    ck_assert_str_eq(shape(g, "rope_freqs.weight"), "none");
    br_gguf_close(g);
    g = hfk_convert_ok(make_folder(
        CONFIG("Qwen2ForCausalLM") ",\"rope_scaling\":{\"type\":\"linear\","
                                   "\"factor\":2}}",
        false, false));
    ck_assert_str_eq(hfk_text(g, "qwen2.rope.scaling.type"), "linear");
    br_gguf_close(g);
}

static double
yarn_attn_factor(const char *more)
{
    br_gguf *g = hfk_convert_ok(make_folder(
        t_printf(CONFIG("Qwen2ForCausalLM") ",\"rope_scaling\":{\"rope_type\":"
                                            "\"yarn\",\"factor\":4.0,%s"
                                            "\"original_max_position_"
                                            "embeddings\":256}}",
                 more),
        false, false));
    double x = -1;

    (void)br_gguf_f64(br_gguf_find(g, "qwen2.rope.scaling.attn_factor"), 0, &x);
    br_gguf_close(g);
    return x;
}

/* Whoever reads a GGUF file stretches q and k by 1 + 0.1 ln 4 as well. */
TEST(hf_yarn_that_says_the_whole_stretch)
{
    ck_assert_double_eq(yarn_attn_factor(""), -1);
    ck_assert_double_eq(yarn_attn_factor("\"attention_factor\":null,"), -1);
    ck_assert_double_eq_tol(yarn_attn_factor("\"attention_factor\":1.0,"),
                            1 / (1 + 0.1 * log(4)), 1e-6);
    ck_assert_double_eq_tol(
        yarn_attn_factor("\"mscale\":1.0,\"mscale_all_dim\":0.5,"),
        1 / (1 + 0.05 * log(4)), 1e-6);
}

/* Between the two lengths the factor glides; by the formula of its makers. */
TEST(hf_llama3_factors_between_the_lengths)
{
    br_gguf *g = hfk_convert_ok(make_folder(
        CONFIG("LlamaForCausalLM") ",\"head_dim\":4,\"rope_scaling\":{"
                                   "\"rope_type\":\"llama3\",\"factor\":8.0,"
                                   "\"low_freq_factor\":1.0,"
                                   "\"high_freq_factor\":4.0,"
                                   "\"original_max_position_embeddings\":"
                                   "10000}}",
        false, false));
    double wave = 2 * acos(-1.0) * sqrt(500000), s = (10000 / wave - 1) / 3;

    ck_assert(s > 0 && s < 1);
    ck_assert_double_eq_tol((double)weight(g, "rope_freqs.weight", 1),
                            1 / ((1 - s) / 8 + s), 1e-6);
    br_gguf_close(g);
}

/* ---- tokenizer ---------------------------------------------------------- */

static void
expect_same_ids(const char *dir, const br_gguf *g)
{
    static const char *const texts[] = {
        "",           "abc ab", "  abc\n\n12345 ab's", "<s>abc</s>",
        "\xc3\xa4 1", "a b c",  "abcabcabc abc",
    };
    br_status st = {0};
    br_tok *a, *b;

    t_ok(br_tok_open(&a, dir, NULL, &st), &st);
    t_ok(br_tok_from_gguf(&b, g, NULL, &st), &st);
    for (size_t i = 0; i < BR_COUNT(texts); i++)
        for (int flags = 0; flags < 4; flags++)
            ck_assert_str_eq(tk_ids(a, texts[i], flags),
                             tk_ids(b, texts[i], flags));
    ck_assert_int_eq(br_tok_count(b), ROWS);
    ck_assert_int_eq(br_tok_role_id(a, BR_TOK_EOS),
                     br_tok_role_id(b, BR_TOK_EOS));
    br_tok_free(a);
    br_tok_free(b);
}

TEST(hf_tokenizer_gives_the_same_ids)
{
    const char *dir = make_folder(CONFIG("Qwen2ForCausalLM") "}", false, false);
    br_gguf *g = hfk_convert_ok(dir);

    ck_assert_str_eq(hfk_text(g, "tokenizer.ggml.model"), "gpt2");
    ck_assert_str_eq(hfk_text(g, "tokenizer.ggml.pre"), "qwen2");
    ck_assert_str_eq(hfk_text(g, "tokenizer.chat_template"), "{{ messages }}");
    ck_assert_double_eq(hfk_number(g, "tokenizer.ggml.eos_token_id"), 260);
    expect_same_ids(dir, g);
    br_gguf_close(g);
}

/* SentencePiece by merges: bytes, then letters, then what merges make. */
static void
put_spm(const char *dir)
{
    static const char *const pieces[] = {
        "<unk>",
        "<s>",
        "</s>",
        "\xe2\x96\x81",
        "a",
        "b",
        "c",
        "ab",
        "abc",
        ("\xe2\x96\x81"
         "abc"),
        "1",
        "2",
        "'",
    };
    tk_vocab *v = t_keep(calloc(1, sizeof *v));
    br_str s = {0};

    tk_add_bytes(v);
    for (size_t i = 0; i < BR_COUNT(pieces) && v->n < ROWS; i++)
        if (v->n + i < 600)
            tk_add(v, pieces[i], BR_TOK_NORMAL, 0);
    v->n = 0; /* specials first, 240 bytes and the pieces within the rows */
    for (size_t i = 0; i < BR_COUNT(pieces); i++)
        tk_add(v, pieces[i], BR_TOK_NORMAL, 0);
    for (int i = 0; i < 240; i++)
        tk_add(v, t_printf("<0x%02X>", i), BR_TOK_BYTE, 0);
    br_str_puts(
        &s, "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\",\"special\":"
            "true},{\"id\":1,\"content\":\"<s>\",\"special\":true},{\"id\":2,"
            "\"content\":\"</s>\",\"special\":true}],\"normalizer\":{\"type\":"
            "\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"
            "\"\xe2\x96\x81\"},{\"type\":\"Replace\",\"pattern\":{\"String\":"
            "\" \"},\"content\":\"\xe2\x96\x81\"}]},\"post_processor\":{"
            "\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{"
            "\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\","
            "\"type_id\":0}}]},\"model\":{\"type\":\"BPE\",\"unk_token\":"
            "\"<unk>\",\"byte_fallback\":true,\"merges\":[\"a b\",\"ab c\","
            "\"\xe2\x96\x81 abc\"],\"vocab\":{");
    hfk_json_vocab(&s, v);
    br_str_puts(&s, "}}}");
    hfk_put(dir, "tokenizer.json", br_str_z(&s));
    hfk_put(dir, "tokenizer_config.json",
            "{\"bos_token\":\"<s>\",\"eos_token\":\"</s>\"}");
    br_str_fini(&s);
}

TEST(hf_sentencepiece_gets_scores)
{
    const char *dir = make_folder(CONFIG("LlamaForCausalLM") "}", false, false);
    br_gguf *g;
    double v;

    put_spm(dir);
    g = hfk_convert_ok(dir);
    ck_assert_str_eq(hfk_text(g, "tokenizer.ggml.model"), "llama");
    ck_assert(br_gguf_f64(br_gguf_find(g, "tokenizer.ggml.scores"), 8, &v));
    ck_assert_double_eq(v, -2); /* abc: the second merge */
    ck_assert_double_eq(hfk_number(g, "tokenizer.ggml.add_bos_token"), 1);
    ck_assert_double_eq(hfk_number(g, "tokenizer.ggml.add_space_prefix"), 1);
    expect_same_ids(dir, g);
    br_gguf_close(g);
}

TEST(hf_templates_and_roles_from_elsewhere)
{
    const char *dir = make_folder(
        CONFIG("Qwen2ForCausalLM") ",\"bos_token_id\":7,\"eos_token_id\":[9,8]"
                                   "}",
        false, false);
    br_gguf *g;

    hfk_put(dir, "tokenizer_config.json",
            "{\"chat_template\":[{\"name\":\"default\",\"template\":\"D\"},"
            "{\"name\":\"tools\",\"template\":\"T\"}]}");
    g = hfk_convert_ok(dir);
    ck_assert_str_eq(hfk_text(g, "tokenizer.chat_template"), "D");
    ck_assert_str_eq(hfk_text(g, "tokenizer.chat_template.tools"), "T");
    ck_assert_str_eq(hfk_text(g, "tokenizer.chat_templates"), "tools");
    ck_assert_double_eq(hfk_number(g, "tokenizer.ggml.bos_token_id"), 7);
    ck_assert_double_eq(hfk_number(g, "tokenizer.ggml.eos_token_id"), 9);
    br_gguf_close(g);
    hfk_put(dir, "chat_template.jinja", "J\n");
    hfk_put(dir, "generation_config.json", "{\"eos_token_id\":4}");
    g = hfk_convert_ok(dir);
    ck_assert_str_eq(hfk_text(g, "tokenizer.chat_template"), "J\n");
    ck_assert_double_eq(hfk_number(g, "tokenizer.ggml.eos_token_id"), 4);
    br_gguf_close(g);
}

/* ---- what is refused ---------------------------------------------------- */

static const char *
error_of(const char *dir)
{
    br_hf_desc d = {0};
    br_status st = {0};
    char *out = t_printf("%s/out.gguf", dir);

    unlink(out);
    ck_assert_int_ne(br_hf_convert(dir, out, &d, &hfk_stats, &st), BR_OK);
    ck_assert_msg(access(out, F_OK) != 0, "a file was left: %s", st.msg);
    ck_assert_ptr_null(t_ls(dir, ".tmp")[0]);
    ck_assert_msg(strncmp(st.msg, dir, strlen(dir)) == 0, "%s", st.msg);
    return t_printf("%s", st.msg + strlen(dir));
}

static const char *
config_error(const char *config)
{
    return error_of(make_folder(config, false, false));
}

TEST(hf_configs_that_are_refused)
{
    ck_assert_str_eq(config_error("{}"), ": config.json: no 'architectures'");
    ck_assert_str_eq(config_error("[1]"), ": config.json: no object");
    ck_assert_ptr_nonnull(
        strstr(config_error(CONFIG("GPT2LMHeadModel") "}"),
               "'GPT2LMHeadModel' is not read; those that are: Llama"));
    ck_assert_str_eq(config_error("{\"architectures\":[\"Qwen2ForCausalLM\"]"
                                  "}"),
                     ": config.json: no 'num_hidden_layers'");
    ck_assert_str_eq(
        config_error(CONFIG("Qwen2ForCausalLM") ",\"rope_scaling\":{\"type\":"
                                                "\"dynamic\"}}"),
        ": config.json: 'rope_scaling': 'dynamic' is not read");
    ck_assert_str_eq(
        config_error(CONFIG("Qwen2ForCausalLM") ",\"hidden_act\":\"gelu\"}"),
        ": config.json: 'hidden_act' is not 'silu'");
    ck_assert_ptr_nonnull(
        strstr(config_error(CONFIG("Qwen2ForCausalLM") ",\"quantization_"
                                                       "config\":{}}"),
               "'quantization_config'"));
    ck_assert_ptr_nonnull(strstr(
        config_error(CONFIG("Qwen3ForCausalLM") ",\"layer_types\":[\"sliding_"
                                                "attention\"]}"),
        "'layer_types'"));
    ck_assert_ptr_nonnull(strstr(
        config_error(CONFIG("Qwen3MoeForCausalLM") ",\"decoder_sparse_step\":"
                                                   "2}"),
        "'decoder_sparse_step'"));
    ck_assert_ptr_nonnull(strstr(
        config_error(CONFIG("Qwen3MoeForCausalLM") ",\"mlp_only_layers\":[0]"
                                                   "}"),
        "'mlp_only_layers'"));
    ck_assert_str_eq(config_error(CONFIG("Qwen3MoeForCausalLM") "}"),
                     ": config.json: no 'num_local_experts'");
    ck_assert_ptr_nonnull(
        strstr(config_error(CONFIG("Qwen2ForCausalLM") ",\"head_dim\":3}"),
               "heads of 3 numbers"));
    ck_assert_ptr_nonnull(strstr(
        config_error(CONFIG("Qwen2ForCausalLM") ",\"rms_norm_eps\":\"x\"}"),
        "'rms_norm_eps' is no number"));
    ck_assert_ptr_nonnull(strstr(
        config_error(CONFIG("Qwen2ForCausalLM") ",\"rope_theta\":1e400}"),
        "'rope_theta' is out of range"));
    ck_assert_ptr_nonnull(strstr(config_error("{\"a\":"), "config.json: "));
}

TEST(hf_configs_of_other_families_that_are_refused)
{
    ck_assert_str_eq(config_error(CONFIG("Gemma2ForCausalLM") "}"),
                     ": config.json: 'hidden_activation' is not "
                     "'gelu_pytorch_tanh'");
    ck_assert_str_eq(config_error(CONFIG("Gemma2ForCausalLM") GELU "}"),
                     ": config.json: no 'sliding_window'");
    ck_assert_str_eq(
        config_error(CONFIG("Gemma3ForCausalLM") GELU
                     ",\"sliding_window\":4,\"layer_types\":"
                     "[\"full_attention\"]}"),
        ": config.json: 'layer_types': layer 0 is no sliding_attention");
    ck_assert_str_eq(
        config_error(CONFIG("Gemma3ForCausalLM") GELU
                     ",\"sliding_window\":4,\"sliding_window_pattern\":2}"),
        ": config.json: 'sliding_window_pattern' is not 6 or 1");
    ck_assert_str_eq(
        config_error(CONFIG("Gemma3ForCausalLM") GELU
                     ",\"sliding_window\":4,\"query_pre_attn_scalar\":0}"),
        ": config.json: 'query_pre_attn_scalar' is not above 0");
    ck_assert_str_eq(
        config_error(CONFIG("Phi3ForCausalLM") LONGROPE("[1,1]", "[1]")),
        ": config.json: 'rope_scaling': 'short_factor' is no list of 2 "
        "numbers");
    ck_assert_str_eq(
        config_error(CONFIG("Phi3ForCausalLM") LONGROPE("[1,0]", "[1,1]")),
        ": config.json: 'rope_scaling': 'long_factor'[1] is no number above 0");
    ck_assert_str_eq(
        config_error(
            CONFIG("Phi3ForCausalLM") ",\"rope_scaling\":{\"type\":\"su\"}}"),
        ": config.json: no 'original_max_position_embeddings'");
    ck_assert_str_eq(
        config_error(CONFIG("GptOssForCausalLM") ",\"sliding_window\":4,\"num_"
                                                 "local_experts\":2}"),
        ": tensor 'model.layers.0.mlp.experts.gate_up_proj_blocks' is missing");
    ck_assert_ptr_nonnull(strstr(
        config_error(CONFIG("GptOssForCausalLM") ",\"quantization_config\":{"
                                                 "\"quant_method\":\"awq\"}}"),
        "'quantization_config'"));
}

/* Without a factor in the file q and k are stretched by the formula. */
TEST(hf_longrope_stretches_by_the_context)
{
    br_gguf *g = hfk_convert_ok(make_folder(
        CONFIG("Phi3ForCausalLM") LONGROPE("[1,2]", "[3,4]"), false, false));
    double stretch = sqrt(1 + log(1024.0 / 64) / log(64));

    ck_assert(hfk_number(g, "phi3.rope.scaling.attn_factor") ==
              (double)(float)stretch);
    ck_assert(weight(g, "rope_factors_long.weight", 1) == 2);
    ck_assert(weight(g, "rope_factors_short.weight", 0) == 3);
    br_gguf_close(g);
}

/* Two layers' worth of rotations, as newer folders have them. */
TEST(hf_rotations_by_kind_of_layer)
{
    br_gguf *g = hfk_convert_ok(make_folder(
        CONFIG("Gemma3ForCausalLM") GELU
        ",\"sliding_window\":4,\"query_pre_attn_scalar\":16,"
        "\"rope_parameters\":{\"sliding_attention\":{\"rope_theta\":11},"
        "\"full_attention\":{\"rope_type\":\"linear\",\"factor\":8}}}",
        false, false));

    ck_assert_double_eq(hfk_number(g, "gemma3.rope.freq_base_swa"), 11);
    ck_assert_double_eq(hfk_number(g, "gemma3.rope.freq_base"), 500000);
    ck_assert_double_eq(hfk_number(g, "gemma3.rope.scaling.factor"), 8);
    ck_assert_double_eq(hfk_number(g, "gemma3.attention.scale"), 0.25);
    ck_assert(weight(g, "output_norm.weight", 3) == 4);
    br_gguf_close(g);
}

/* Where a file says nothing, its reader caps as the first of the family did. */
TEST(hf_caps_that_are_null_are_none)
{
    br_gguf *g = hfk_convert_ok(
        make_folder(CONFIG("Gemma2ForCausalLM") GELU
                    ",\"sliding_window\":4,\"attn_logit_softcapping\":null}",
                    false, false));

    ck_assert_double_eq(hfk_number(g, "gemma2.attn_logit_softcapping"), 0);
    ck_assert_ptr_null(br_gguf_find(g, "gemma2.final_logit_softcapping"));
    br_gguf_close(g);
}

TEST(hf_part_of_a_head_that_turns)
{
    br_gguf *g = hfk_convert_ok(make_folder(
        CONFIG("Phi3ForCausalLM") ",\"rope_parameters\":{\"rope_type\":"
                                  "\"default\",\"partial_rotary_factor\":"
                                  "0.5}}",
        false, false));

    ck_assert_double_eq(hfk_number(g, "phi3.rope.dimension_count"), 2);
    br_gguf_close(g);
}

static const char *
tensor_error(void (*more)(st_make *m))
{
    const char *dir = t_tmpdir();
    st_make m = {0};

    hfk_put(dir, "config.json", CONFIG("LlamaForCausalLM") "}");
    hfk_put_bpe(dir, HFK_QWEN2, "");
    more(&m);
    hfk_put_tensors(dir, &m);
    return error_of(dir);
}

static void
no_place(st_make *m)
{
    add_dense(m, false, false);
    add(m, "model.layers.0.mlp.fc1.weight", "BF16", 4, 4);
}

static void
second_layer(st_make *m)
{
    add_dense(m, false, false);
    add_vector(m, "model.layers.1.input_layernorm.weight", 4);
}

static void
odd_heads(st_make *m)
{
    add(m, "model.embed_tokens.weight", "BF16", ROWS, WIDTH);
    add(m, "model.layers.0.self_attn.q_proj.weight", "BF16", 6, WIDTH);
}

static void
no_table(st_make *m)
{
    add_vector(m, "model.norm.weight", WIDTH);
}

static void
few_rows(st_make *m)
{
    add(m, "model.embed_tokens.weight", "BF16", 260, WIDTH);
}

static void
integers(st_make *m)
{
    const uint64_t dims[2] = {1, 4};

    add(m, "model.embed_tokens.weight", "BF16", ROWS, WIDTH);
    st_add(m, "lm_head.weight", "I8", dims, 2, "abcd", 4);
}

static void
an_expert(st_make *m)
{
    add_dense(m, false, false);
    add_ffn(m, "model.layers.0.mlp.experts.0.", FF);
}

TEST(hf_tensors_that_are_refused)
{
    ck_assert_str_eq(tensor_error(no_place),
                     ": tensor 'model.layers.0.mlp.fc1.weight' has no place in "
                     "a file of llama");
    ck_assert_str_eq(tensor_error(second_layer),
                     ": tensor 'model.layers.1.input_layernorm.weight' has no "
                     "place in a file of llama");
    ck_assert_str_eq(tensor_error(odd_heads),
                     ": tensor 'model.layers.0.self_attn.q_proj.weight': 6 "
                     "rows, not 2 heads of 4");
    ck_assert_str_eq(tensor_error(no_table),
                     ": tensor 'model.embed_tokens.weight' is missing or no "
                     "matrix");
    ck_assert_ptr_nonnull(strstr(tensor_error(few_rows),
                                 "261 tokens, but the embedding table has 260 "
                                 "rows"));
    ck_assert_str_eq(
        tensor_error(integers),
        ": tensor 'lm_head.weight': dtype I8; F16, BF16, F32 and, of "
        "matrices, F8 are read");
    ck_assert_str_eq(tensor_error(an_expert),
                     ": tensor 'model.layers.0.mlp.experts.0.gate_proj.weight'"
                     ": a model without experts");
}

TEST(hf_head_that_is_not_the_table_is_there)
{
    const char *dir = make_folder(
        CONFIG("LlamaForCausalLM") ",\"tie_word_embeddings\":false}", true,
        false);

    ck_assert_str_eq(error_of(dir), ": tensor 'lm_head.weight' is missing, and "
                                    "tie_word_embeddings is false");
}

TEST(hf_experts_that_are_missing_or_unlike)
{
    const char *dir = t_tmpdir();
    st_make m = {0};

    hfk_put(dir, "config.json",
            CONFIG("Qwen3MoeForCausalLM") ",\"num_experts\":2}");
    hfk_put_bpe(dir, HFK_QWEN2, "");
    add_dense(&m, false, false);
    add_ffn(&m, "model.layers.0.mlp.experts.0.", FF);
    hfk_put_tensors(dir, &m);
    ck_assert_str_eq(error_of(dir), ": model.layers.0.mlp.experts.E.gate_proj:"
                                    " expert 1 of 2 is missing");
    add_dense(&m, false, false);
    add_ffn(&m, "model.layers.0.mlp.experts.0.", FF);
    add_ffn(&m, "model.layers.0.mlp.experts.1.", FF + 1);
    hfk_put_tensors(dir, &m);
    ck_assert_ptr_nonnull(
        strstr(error_of(dir), "not a matrix like that of expert 0"));
}

TEST(hf_tokenizers_that_are_refused)
{
    const char *dir = make_folder(CONFIG("Qwen2ForCausalLM") "}", false, false);

    hfk_put(dir, "tokenizer_config.json", "{}");
    ck_assert_str_eq(error_of(dir),
                     ": no 'eos_token_id' in tokenizer_config.json, "
                     "generation_config.json or config.json");
    hfk_put_bpe(dir, "[a-z]+|\\\\s", "");
#ifdef BR_HAVE_PCRE2
    ck_assert_ptr_nonnull(strstr(error_of(dir), "tokenizer.json"));
#else
    ck_assert_ptr_nonnull(strstr(error_of(dir), "pcre2-8"));
#endif
    unlink(t_printf("%s/tokenizer.json", dir));
    ck_assert_ptr_nonnull(strstr(error_of(dir), "tokenizer.json"));
}

static br_code
convert_once(void *arg, br_status *st)
{
    br_hf_desc d = {0};
    br_hf_stats s;

    return br_hf_convert(arg, t_printf("%s/out.gguf", (const char *)arg), &d,
                         &s, st);
}

TEST_WITHIN(hf_runs_out_of_memory_cleanly, 120)
{
    const char *dir = make_folder(
        CONFIG("LlamaForCausalLM") ",\"rope_scaling\":{\"rope_type\":"
                                   "\"llama3\",\"factor\":8.0,"
                                   "\"low_freq_factor\":1.0,"
                                   "\"high_freq_factor\":4.0,"
                                   "\"original_max_position_embeddings\":64}}",
        true, false);

    t_not_for_tsan(NULL);
    t_each_oom(convert_once, (void *)(uintptr_t)dir);
}
/* ---- the command -------------------------------------------------------- */

TEST(hf_command_end_to_end)
{
    const char *dir = make_folder(CONFIG("Qwen2ForCausalLM") "}", true, false);
    char *out = t_printf("%s/x.gguf", dir), *config;
    t_proc r;

    t_run(&r, "model", "convert", dir, "-o", out);
    ck_assert_str_eq(r.err, "");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_ptr_nonnull(strstr(r.out, "qwen2, 14 tensors"));
    t_run(&r, "convert", dir, "-o", out, "--json");
    ck_assert_ptr_nonnull(strstr(r.out, "\"architecture\": \"qwen2\""));
    t_run(&r, "convert", dir);
    ck_assert_int_eq(r.exit, 2);
    t_run(&r, "convert", "no/such", "-o", out);
    ck_assert_int_eq(r.exit, 3);
    t_run(&r, "quantize", out, t_printf("%s/q.gguf", dir), "Q8_0");
    ck_assert_int_eq(r.exit, 0);
    t_run(&r, "tokenize", out, "abc ab", "--ids");
    ck_assert_str_eq(r.out, "257 32 256\n");
    t_run(&r, "model", "info", dir); /* a folder is a model, too */
    ck_assert_int_eq(r.exit, 0);
    t_run(&r, "logits", dir, "--tokens", "1,2", "--tier", "ref", "-o",
          "/dev/null");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    /* the layers that the config promises and the folder lacks */
    config = t_keep(strdup(CONFIG("Qwen2ForCausalLM") "}"));
    strstr(config, "layers\":1")[8] = '2';
    dir = make_folder(config, true, false);
    out = t_printf("%s/x.gguf", dir);
    t_write(out, "kept", 4);
    t_run(&r, "convert", dir, "-o", out);
    ck_assert_int_eq(r.exit, 3);
    ck_assert_msg(strstr(r.err, "blk.1."), "%s", r.err);
    ck_assert_str_eq(t_read(out, NULL), "kept");
    t_run(&r, "run", dir, "-p", "x");
    ck_assert_int_eq(r.exit, 3);
    ck_assert_msg(strstr(r.err, "blk.1."), "%s", r.err);
    /* a folder of something else */
    t_run(&r, "run", t_repo("tests"), "-p", "x");
    ck_assert_int_eq(r.exit, 3);
    ck_assert_msg(strstr(r.err, "config.json"), "%s", r.err);
}
