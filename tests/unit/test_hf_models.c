/* test_hf_models.c - whole models of each family: from golden GGUF files into
 * the folders that their makers would have published, and back.
 *
 * The file that comes back holds the same weights, and says the golden logits:
 * neither was made by the converter. How theirs are called, and in which form
 * they are, is written down here a second time, on purpose.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"
#include "hf_kit.h"
#include "logits_kit.h"
#include "model/quant.h"

#include "t.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

/* ---- names -------------------------------------------------------------- */

/* Of one class, or NULL: of all that have no row of their own. E: the number
 * of an expert. */
static const struct {
    const char *class, *ours, *theirs;
} names[] = {
    {NULL, "token_embd.weight", "model.embed_tokens.weight"},
    {NULL, "output_norm.weight", "model.norm.weight"},
    {NULL, "output.weight", "lm_head.weight"},
    {NULL, "attn_norm", "input_layernorm"},
    {NULL, "attn_q", "self_attn.q_proj"},
    {NULL, "attn_k", "self_attn.k_proj"},
    {NULL, "attn_v", "self_attn.v_proj"},
    {NULL, "attn_output", "self_attn.o_proj"},
    {NULL, "attn_q_norm", "self_attn.q_norm"},
    {NULL, "attn_k_norm", "self_attn.k_norm"},
    {"Gemma", "ffn_norm", "pre_feedforward_layernorm"},
    {NULL, "ffn_norm", "post_attention_layernorm"},
    {"Glm4", "post_attention_norm", "post_self_attn_layernorm"},
    {NULL, "post_attention_norm", "post_attention_layernorm"},
    {"Glm4", "post_ffw_norm", "post_mlp_layernorm"},
    {NULL, "post_ffw_norm", "post_feedforward_layernorm"},
    {"Glm4", "ffn_up", "mlp.gate_up_proj"},
    {"Phi3", "ffn_up", "mlp.gate_up_proj"},
    {NULL, "ffn_gate", "mlp.gate_proj"},
    {NULL, "ffn_up", "mlp.up_proj"},
    {NULL, "ffn_down", "mlp.down_proj"},
    {"Mixtral", "ffn_gate_inp", "block_sparse_moe.gate"},
    {"GptOss", "ffn_gate_inp", "mlp.router"},
    {NULL, "ffn_gate_inp", "mlp.gate"},
    {"Mixtral", "ffn_gate_exps", "block_sparse_moe.experts.E.w1"},
    {"Mixtral", "ffn_down_exps", "block_sparse_moe.experts.E.w2"},
    {"Mixtral", "ffn_up_exps", "block_sparse_moe.experts.E.w3"},
    {NULL, "ffn_gate_exps", "mlp.experts.E.gate_proj"},
    {NULL, "ffn_up_exps", "mlp.experts.E.up_proj"},
    {NULL, "ffn_down_exps", "mlp.experts.E.down_proj"},
    {NULL, "ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
    {NULL, "ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    {NULL, "ffn_up_shexp", "mlp.shared_expert.up_proj"},
    {NULL, "ffn_down_shexp", "mlp.shared_expert.down_proj"},
    {"GptOss", "attn_sinks", "self_attn.sinks"},
};

static bool
is_class(const char *class, const char *begins)
{
    return strncmp(class, begins, strlen(begins)) == 0;
}

/* "blk.3.attn_q.weight" as 3, "attn_q", "weight"; false: not of a layer. */
static bool
of_layer(const char *name, int *il, char stem[32], char kind[16])
{
    return sscanf(name, "blk.%d.%31[a-z_].%15s", il, stem, kind) == 3;
}

static char *
their_name(const char *class, const char *ours)
{
    char stem[32], kind[16];
    int il = 0;
    bool layer = of_layer(ours, &il, stem, kind);

    for (size_t i = 0; i < BR_COUNT(names); i++) {
        if (strcmp(names[i].ours, layer ? stem : ours) != 0 ||
            (names[i].class && !is_class(class, names[i].class)))
            continue;
        if (!layer)
            return t_printf("%s", names[i].theirs);
        if (strcmp(stem, "attn_sinks") == 0)
            return t_printf("model.layers.%d.%s", il, names[i].theirs);
        return t_printf("model.layers.%d.%s.%s", il, names[i].theirs, kind);
    }
    ck_abort_msg("no name for %s", ours);
}

/* ---- tensors ------------------------------------------------------------ */

typedef struct job {
    const br_gguf *g;
    const char *class;
    st_make m;
} job;

static const char *
name_of(const br_gguf_tensor *t)
{
    return t_printf("%.*s", (int)t->name.n, t->name.p);
}

static const br_gguf_tensor *
tensor(const br_gguf *g, const char *name)
{
    const br_gguf_tensor *t = br_gguf_tensor_find(g, name);

    ck_assert_msg(t != NULL, "no %s", name);
    return t;
}

static double
arch_number(const br_gguf *g, const char *key)
{
    return hfk_number(
        g, t_printf("%s.%s", hfk_text(g, "general.architecture"), key));
}

static const char *
dtype_of(int type)
{
    return type == BR_Q_F16 ? "F16" : type == BR_Q_BF16 ? "BF16" : "F32";
}

/* The rows of q and k of a llama as its makers had them: a row 2i of a head
 * was row i, 2i + 1 was row i + half. */
static const uint8_t *
unpermute(const br_gguf_tensor *t, uint64_t heads)
{
    uint64_t rows = t->n_dims > 1 ? t->dim[1] : t->dim[0], n = rows / heads;
    uint64_t size = t->bytes / rows;
    uint8_t *p = t_keep(malloc(t->bytes));

    for (uint64_t r = 0; r < rows; r++) {
        uint64_t h = r / n, i = r % n, to = h * n + i / 2 + i % 2 * (n / 2);

        memcpy(p + to * size, t->data + r * size, size);
    }
    return p;
}

static float *
floats(const br_gguf_tensor *t)
{
    uint64_t n = t->dim[0] * t->dim[1] * t->dim[2];
    float *f = t_keep(malloc(n * sizeof *f));

    br_dequant(t->type, t->data, f, n);
    return f;
}

/* One matrix or vector: p in the format of t, or in F32 where t is packed. */
static void
add_as(job *j, const char *theirs, const br_gguf_tensor *t, const void *p)
{
    uint64_t dims[2] = {t->dim[1], t->dim[0]};
    uint64_t n = t->dim[0] * t->dim[1];
    const char *dtype = dtype_of(t->type);
    bool vector = t->n_dims == 1;

    if (strstr(theirs, "shared_expert_gate")) /* [1, width] */
        vector = false;
    st_add(&j->m, theirs, dtype, dims + vector, 2 - vector, p,
           n * (dtype[0] == 'F' && dtype[1] == '3' ? 4 : 2));
}

static void
add_experts(job *j, const br_gguf_tensor *t, const char *theirs)
{
    const char *mark = strstr(theirs, ".E.");
    uint64_t dims[2] = {t->dim[1], t->dim[0]}, bytes = t->bytes / t->dim[2];

    for (uint64_t e = 0; e < t->dim[2]; e++)
        st_add(&j->m,
               t_printf("%.*s.%d.%s", (int)(mark - theirs), theirs, (int)e,
                        mark + 3),
               dtype_of(t->type), dims, 2, t->data + e * bytes, bytes);
}

/* Rows of gate and up in turn, or those of one tensor; a block's 16 bytes as
 * neighbours in pairs. */
static void
add_packed(job *j, const char *prefix, const char *stem,
           const br_gguf_tensor *const *t, uint64_t n_t)
{
    uint64_t nb = t[0]->dim[0] / 32, rows = t[0]->dim[1], n = t[0]->dim[2];
    uint64_t dims[4] = {n, rows * n_t, nb, 16}, at = 0;
    uint8_t *blocks = t_keep(calloc(n * rows * n_t * nb, 16));
    uint8_t *scales = t_keep(malloc(n * rows * n_t * nb));

    for (uint64_t r = 0; r < n * rows * n_t; r++)
        for (uint64_t b = 0; b < nb; b++, at++) {
            const uint8_t *p = t[r % n_t]->data + 17 * (r / n_t * nb + b);

            scales[at] = p[0];
            for (int k = 0; k < 32; k++) {
                int v = k < 16 ? p[1 + k] & 15 : p[1 + k - 16] >> 4;

                blocks[16 * at + (uint64_t)k / 2] |=
                    (uint8_t)(v << (k % 2 * 4));
            }
        }
    st_add(&j->m, t_printf("%s%s_blocks", prefix, stem), "U8", dims, 4, blocks,
           at * 16);
    st_add(&j->m, t_printf("%s%s_scales", prefix, stem), "U8", dims, 3, scales,
           at);
}

/* The same as floats, [expert][column][row]. */
static void
add_turned(job *j, const char *name, const br_gguf_tensor *const *t,
           uint64_t n_t)
{
    uint64_t in = t[0]->dim[0], rows = t[0]->dim[1], n = t[0]->dim[2];
    uint64_t dims[3] = {n, in, rows * n_t}, size = t[0]->bytes / n / in / rows;
    uint8_t *p = t_keep(malloc(t[0]->bytes * n_t));

    for (uint64_t k = 0; k < n_t; k++)
        for (uint64_t e = 0; e < n; e++)
            for (uint64_t r = 0; r < rows; r++)
                for (uint64_t i = 0; i < in; i++)
                    memcpy(p + (((e * in + i) * rows + r) * n_t + k) * size,
                           t[k]->data + ((e * rows + r) * in + i) * size, size);
    st_add(&j->m, name, dtype_of(t[0]->type), dims, 3, p, t[0]->bytes * n_t);
}

static void
add_packed_bias(job *j, const char *name, const br_gguf_tensor *const *t,
                uint64_t n_t)
{
    uint64_t n = t[0]->dim[0] * t[0]->dim[1] * n_t;
    uint64_t dims[2] = {t[0]->dim[1], t[0]->dim[0] * n_t};
    float *f = t_keep(malloc(n * sizeof *f));

    for (uint64_t i = 0; i < n; i++)
        f[i] = floats(t[i % n_t])[i / n_t];
    st_add(&j->m, name, "F32", dims, 2, f, n * sizeof *f);
}

/* The experts of a layer of gpt-oss, once for the layer. */
static void
add_gpt_oss_experts(job *j, int il)
{
    static const char *const ours[] = {"gate", "up", "down"};
    const char *prefix = t_printf("model.layers.%d.mlp.experts.", il);
    const br_gguf_tensor *w[3], *b[3];

    for (int i = 0; i < 3; i++) {
        w[i] = tensor(j->g, t_printf("blk.%d.ffn_%s_exps.weight", il, ours[i]));
        b[i] = tensor(j->g, t_printf("blk.%d.ffn_%s_exps.bias", il, ours[i]));
    }
    if (w[0]->type == BR_Q_MXFP4) {
        add_packed(j, prefix, "gate_up_proj", w, 2);
        add_packed(j, prefix, "down_proj", w + 2, 1);
    } else {
        add_turned(j, t_printf("%sgate_up_proj", prefix), w, 2);
        add_turned(j, t_printf("%sdown_proj", prefix), w + 2, 1);
    }
    add_packed_bias(j, t_printf("%sgate_up_proj_bias", prefix), b, 2);
    add_packed_bias(j, t_printf("%sdown_proj_bias", prefix), b + 2, 1);
}

/* q, k and v of a layer as one matrix. */
static void
add_fused_qkv(job *j, int il)
{
    static const char *const ours[] = {"q", "k", "v"};
    uint64_t dims[2] = {0, 0}, bytes = 0;
    uint8_t *p = NULL;
    int type = 0;

    for (int i = 0; i < 3; i++) {
        const br_gguf_tensor *t =
            tensor(j->g, t_printf("blk.%d.attn_%s.weight", il, ours[i]));

        p = realloc(p, bytes + t->bytes);
        memcpy(p + bytes, t->data, t->bytes);
        bytes += t->bytes;
        dims[0] += t->dim[1];
        dims[1] = t->dim[0];
        type = t->type;
    }
    st_add(&j->m, t_printf("model.layers.%d.self_attn.qkv_proj.weight", il),
           dtype_of(type), dims, 2, p, bytes);
    free(p);
}

static void
add_back(job *j, const br_gguf_tensor *t)
{
    const char *ours = name_of(t), *theirs;
    bool llama = strcmp(hfk_text(j->g, "general.architecture"), "llama") == 0 ||
                 is_class(j->class, "Granite");
    char stem[32] = "", kind[16] = "";
    const void *p = t->data;
    int il = -1;

    if (strncmp(ours, "rope_", 5) == 0)
        return; /* of config.json */
    (void)of_layer(ours, &il, stem, kind);
    if (is_class(j->class, "GptOss") && strstr(stem, "_exps")) {
        if (strcmp(stem, "ffn_up_exps") == 0 && strcmp(kind, "weight") == 0)
            add_gpt_oss_experts(j, il);
        return;
    }
    if (is_class(j->class, "Phi3") && strlen(stem) == 6 &&
        strchr("qkv", stem[5])) {
        if (stem[5] == 'q')
            add_fused_qkv(j, il);
        return;
    }
    theirs = their_name(j->class, ours);
    if (strstr(theirs, ".E.")) {
        add_experts(j, t, theirs);
        return;
    }
    if (llama && (strcmp(stem, "attn_q") == 0 || strcmp(stem, "attn_k") == 0))
        p = unpermute(t, (uint64_t)arch_number(
                             j->g, stem[5] == 'q' ? "attention.head_count"
                                                  : "attention.head_count_kv"));
    if (br_qinfo_of(t->type)->elems > 1)
        p = floats(t); /* exact: they are floats of few bits */
    if (is_class(j->class, "Gemma") && strstr(ours, "norm.weight")) {
        float *f = floats(t);

        for (uint64_t i = 0; i < t->dim[0]; i++)
            f[i] -= 1;
        p = f;
    }
    add_as(j, theirs, t, p);
}

/* ---- config.json -------------------------------------------------------- */

static void
put_list(br_str *s, const char *name, const br_gguf_tensor *t)
{
    const float *f = floats(t);

    br_str_printf(s, "\"%s\":[", name);
    for (uint64_t i = 0; i < t->dim[0]; i++)
        br_str_printf(s, "%s%.9g", i ? "," : "", (double)f[i]);
    br_str_puts(s, "]");
}

static bool norm_unsaid;

/* What is not one key, one member. */
static void
put_class_members(br_str *s, const job *j)
{
    const br_gguf *g = j->g;

    if (is_class(j->class, "Qwen3Moe") && !norm_unsaid)
        br_str_puts(s, ",\"norm_topk_prob\":true");
    if (is_class(j->class, "Gemma"))
        br_str_printf(s,
                      ",\"hidden_activation\":\"gelu_pytorch_tanh\","
                      "\"query_pre_attn_scalar\":%d",
                      (int)arch_number(g, "attention.key_length"));
    if (is_class(j->class, "Glm4"))
        br_str_printf(s, ",\"partial_rotary_factor\":%.9g",
                      arch_number(g, "rope.dimension_count") /
                          arch_number(g, "attention.key_length"));
    if (is_class(j->class, "Olmo3"))
        br_str_puts(s, ",\"sliding_window\":8,\"layer_types\":["
                       "\"sliding_attention\",\"sliding_attention\"]");
    if (is_class(j->class, "GptOss"))
        br_str_printf(
            s,
            "%s,\"layer_types\":[\"sliding_attention\",\"full_attention\"],"
            "\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":%g,"
            "\"original_max_position_embeddings\":%d}",
            tensor(g, "blk.0.ffn_up_exps.weight")->type == BR_Q_MXFP4
                ? ",\"quantization_config\":{\"quant_method\":\"mxfp4\"}"
                : "",
            arch_number(g, "rope.scaling.factor"),
            (int)arch_number(g, "rope.scaling.original_context_length"));
    if (is_class(j->class, "Phi3")) {
        br_str_printf(
            s,
            ",\"original_max_position_embeddings\":%d,\"rope_scaling\":{"
            "\"type\":\"longrope\",\"attention_factor\":%.9g,",
            (int)arch_number(g, "rope.scaling.original_context_length"),
            arch_number(g, "rope.scaling.attn_factor"));
        put_list(s, "long_factor", tensor(g, "rope_factors_long.weight"));
        br_str_puts(s, ",");
        put_list(s, "short_factor", tensor(g, "rope_factors_short.weight"));
        br_str_puts(s, "}");
    }
}

static char *
config_back(const job *j)
{
    static const char *const keys[][2] = {
        {"num_hidden_layers", "block_count"},
        {"hidden_size", "embedding_length"},
        {"intermediate_size", "feed_forward_length"},
        {"num_attention_heads", "attention.head_count"},
        {"num_key_value_heads", "attention.head_count_kv"},
        {"head_dim", "attention.key_length"},
        {"max_position_embeddings", "context_length"},
        {"vocab_size", "vocab_size"},
        {"rms_norm_eps", "attention.layer_norm_rms_epsilon"},
        {"rope_theta", "rope.freq_base"},
        {"rope_local_base_freq", "rope.freq_base_swa"},
        {"sliding_window", "attention.sliding_window"},
        {"attn_logit_softcapping", "attn_logit_softcapping"},
        {"final_logit_softcapping", "final_logit_softcapping"},
        {"num_local_experts", "expert_count"},
        {"num_experts_per_tok", "expert_used_count"},
        {"moe_intermediate_size", "expert_feed_forward_length"},
        {"shared_expert_intermediate_size",
         "expert_shared_feed_forward_length"},
        {"embedding_multiplier", "embedding_scale"},
        {"residual_multiplier", "residual_scale"},
        {"attention_multiplier", "attention.scale"},
        {"logits_scaling", "logit_scale"},
    };
    const char *a = hfk_text(j->g, "general.architecture");
    br_str s = {0};
    char *kept;

    br_str_printf(&s, "{\"architectures\":[\"%s\"]", j->class);
    for (size_t i = 0; i < BR_COUNT(keys); i++) {
        const char *key = keys[i][1];
        const br_gguf_kv *kv;
        double v;

        if (is_class(j->class, "GptOss") && i == 2) /* all FFNs are experts */
            key = "expert_feed_forward_length";
        if (is_class(j->class, "GptOss") &&
            strcmp(keys[i][0], "moe_intermediate_size") == 0)
            continue;
        kv = br_gguf_find(j->g, t_printf("%s.%s", a, key));
        if (kv && br_gguf_f64(kv, 0, &v))
            br_str_printf(&s, ",\"%s\":%.9g", keys[i][0], v);
    }
    put_class_members(&s, j);
    br_str_puts(&s, "}");
    kept = t_printf("%s", br_str_z(&s));
    br_str_fini(&s);
    return kept;
}

/* ---- there and back ----------------------------------------------------- */

/* Bytes that have to be the same: all but those that are packed otherwise. */
static void
check_tensors(const job *j, const br_gguf *back)
{
    for (size_t i = 0; i < br_gguf_n_tensors(j->g); i++) {
        const br_gguf_tensor *a = br_gguf_tensor_at(j->g, i), *b;
        const char *name = name_of(a);

        b = br_gguf_tensor_find(back, name);
        if (!b && is_class(j->class, "Phi3") && strstr(name, ".attn_"))
            continue; /* one matrix for q, k and v */
        ck_assert_msg(b != NULL, "%s: no %s", j->class, name);
        ck_assert_msg(memcmp(a->dim, b->dim, sizeof a->dim) == 0, "%s: %s",
                      j->class, name);
        if (a->type == b->type &&
            !(is_class(j->class, "Gemma") && strstr(name, "norm.weight")))
            ck_assert_msg(memcmp(a->data, b->data, a->bytes) == 0, "%s: %s",
                          j->class, name);
    }
}

static void
check_keys(const job *j, const br_gguf *back)
{
    for (size_t i = 0; i < br_gguf_n_kv(j->g); i++) {
        const br_gguf_kv *kv = br_gguf_kv_at(j->g, i);
        char *key = t_printf("%.*s", (int)kv->key.n, kv->key.p);
        double v;

        if (strcmp(key, "gpt-oss.feed_forward_length") == 0)
            continue; /* of no tensor */
        if (strncmp(key, "tokenizer.", 10) != 0 && br_gguf_f64(kv, 0, &v))
            ck_assert_msg(v == hfk_number(back, key), "%s: %s is %g, not %g",
                          j->class, key, hfk_number(back, key), v);
    }
}

static void
there_and_back(const br_gguf *g, const char *class)
{
    const char *dir = t_tmpdir();
    job j = {.g = g, .class = class};
    br_gguf *back;

    hfk_put(dir, "config.json", config_back(&j));
    hfk_put_bpe(dir, HFK_QWEN2, "");
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++)
        add_back(&j, br_gguf_tensor_at(g, i));
    hfk_put_tensors(dir, &j.m);
    back = hfk_convert_ok(dir);
    check_tensors(&j, back);
    check_keys(&j, back);
    br_gguf_close(back);
}

/* Of a folder of this class whose config.json says more; "": none. */
static const char *
error_with(const br_gguf *g, const char *class, const char *more)
{
    const char *dir = t_tmpdir();
    job j = {.g = g, .class = class};
    br_hf_desc d = {0};
    br_hf_stats s;
    br_status st = {0};
    char *config = config_back(&j);

    config[strlen(config) - 1] = 0;
    hfk_put(dir, "config.json", t_printf("%s,%s}", config, more));
    (void)!br_hf_convert(dir, t_printf("%s/out.gguf", dir), &d, &s, &st);
    return t_printf("%s", st.msg);
}

TEST(hf_of_a_llama_gives_that_llama)
{
    br_status st = {0};
    br_gguf *g;

    t_ok(br_gguf_open(&g, t_repo("tests/data/gguf/ok_model.gguf"), &st), &st);
    there_and_back(g, "LlamaForCausalLM");
    br_gguf_close(g);
}

TEST(cli_convert_writes_to_standard_output)
{
    br_status st = {0};
    br_gguf *g;
    t_proc r;
    char *file;
    size_t n;

    t_ok(br_gguf_open(&g, t_repo("tests/data/gguf/ok_model.gguf"), &st), &st);
    there_and_back(g, "LlamaForCausalLM");
    br_gguf_close(g);
    file = t_read(t_printf("%s/out.gguf", t_tmpdir()), &n);
    t_run(&r, "convert", t_tmpdir(), "-o", "/dev/stdout");
    ck_assert_int_eq(r.exit, 0);
    ck_assert_uint_eq(r.n_out, n);
    ck_assert_mem_eq(r.out, file, n);
    ck_assert_ptr_nonnull(strstr(r.err, "llama, "));
    t_run(&r, "convert", t_tmpdir(), "-o", "-", "--json");
    ck_assert_int_eq(r.exit, 2);
}

static br_gguf *
golden(const char *name)
{
    br_status st = {0};
    br_gguf *g;
    lk_case c;

    if (lk_find(name) == lk_count())
        t_skip("no ../shared/vectors here");
    c = lk_get(lk_find(name));
    t_ok(br_gguf_open_mem(&g, c.file, c.file_n, &st), &st);
    return g;
}

/* Rnj-1: a Gemma 3 all of whose layers see all. */
TEST(hf_of_a_gemma_without_a_window_has_none)
{
    br_gguf *g = golden("gemma3");

    there_and_back(g, "Gemma3ForCausalLM");
    ck_assert_str_eq(error_with(g, "Gemma3ForCausalLM",
                                "\"sliding_window_pattern\":1,"
                                "\"layer_types\":[\"full_attention\"]"),
                     "");
    br_gguf_close(g);
    g = hfk_convert_ok(t_tmpdir());
    ck_assert_ptr_null(br_gguf_find(g, "gemma3.attention.sliding_window"));
    br_gguf_close(g);
    lk_end();
}

TEST(hf_of_an_olmo_3_has_its_window)
{
    br_gguf *g = golden("olmo2");

    there_and_back(g, "Olmo3ForCausalLM");
    br_gguf_close(g);
    g = hfk_convert_ok(t_tmpdir());
    ck_assert_double_eq(hfk_number(g, "olmo2.attention.sliding_window"), 8);
    br_gguf_close(g);
    lk_end();
}

/* As the class of that config: its default is false, though Qwen's say true. */
TEST(hf_weights_of_experts_are_normed_where_it_is_said)
{
    br_gguf *g = golden("qwen3moe");

    norm_unsaid = true;
    ck_assert_ptr_nonnull(
        strstr(error_with(g, "Qwen3MoeForCausalLM", "\"norm_topk_prob\":1"),
               "config.json: 'norm_topk_prob' is neither true nor false"));
    there_and_back(g, "Qwen3MoeForCausalLM");
    br_gguf_close(g);
    g = hfk_convert_ok(t_tmpdir());
    ck_assert_double_eq(hfk_number(g, "qwen3moe.expert_weights_norm"), 0);
    br_gguf_close(g);
    lk_end();
}

/* A model that ends its turns by a token of any name goes on for ever without. */
TEST(hf_all_that_end_an_answer_are_kept)
{
    const char *dir = t_tmpdir();
    br_status st = {0};
    br_gguf *g, *back;
    br_tok *t;
    size_t n;

    t_ok(br_gguf_open(&g, t_repo("tests/data/gguf/ok_model.gguf"), &st), &st);
    hfk_put(dir, "generation_config.json",
            "{\"eos_token_id\":[257,9,260,7,7,-1,99999]}");
    there_and_back(g, "LlamaForCausalLM");
    br_gguf_close(g);
    t_ok(br_gguf_open(&back, t_printf("%s/out.gguf", dir), &st), &st);
    t_ok(br_tok_from_gguf(&t, back, NULL, &st), &st);
    ck_assert_int_eq(br_tok_role_id(t, BR_TOK_EOS), 260);
    (void)br_tok_eog(t, &n);
    ck_assert_uint_eq(n, 3);
    ck_assert(br_tok_is_eog(t, 257) && br_tok_is_eog(t, 9) &&
              br_tok_is_eog(t, 260));
    br_tok_free(t);
    br_gguf_close(back);
}

/* "first": a blank goes before the text, not before what a special token is
 * followed by. None goes before another. */
TEST(hf_blank_before_the_first_piece_only)
{
    static const char *const rows[][3] = {
        {"first", "false", "3 6 2 6 2 7 6"},
        {"always", "false", "3 6 2 3 6 2 7 6"},
        {"never", "true", "6 2 6 2 3 3 6"}};
    const char *dir = t_tmpdir();
    br_status st = {0};
    br_gguf *g, *back;
    br_tok *t;

    t_ok(br_gguf_open(&g, t_repo("tests/data/gguf/ok_model.gguf"), &st), &st);
    there_and_back(g, "LlamaForCausalLM");
    br_gguf_close(g);
    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        hfk_put(dir, "tokenizer.json",
                t_printf("{\"added_tokens\":[{\"id\":2,\"content\":\"</s>\","
                         "\"special\":true}],\"pre_tokenizer\":{\"type\":"
                         "\"Metaspace\",\"replacement\":\"\u2581\","
                         "\"prepend_scheme\":\"%s\",\"split\":%s},\"model\":"
                         "{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"merges\":"
                         "[\"a b\",\"\u2581 \u2581\"],\"vocab\":{\"<unk>\":0,"
                         "\"<s>\":1,\"</s>\":2,\"\u2581\":3,\"a\":4,\"b\":5,"
                         "\"ab\":6,\"\u2581\u2581\":7}}}",
                         rows[i][0], rows[i][1]));
        back = hfk_convert_ok(dir);
        t_ok(br_tok_from_gguf(&t, back, NULL, &st), &st);
        ck_assert_str_eq(tk_ids(t, "ab</s>ab</s>  ab", BR_TOK_PARSE_SPECIAL),
                         rows[i][2]);
        br_tok_free(t);
        br_gguf_close(back);
    }
}

/* Members that make the model another one than its class says. */
TEST(hf_of_a_model_that_is_another_is_refused)
{
    br_status st = {0};
    br_gguf *g;

    t_ok(br_gguf_open(&g, t_repo("tests/data/gguf/ok_model.gguf"), &st), &st);
    there_and_back(g, "LlamaForCausalLM");
    ck_assert_str_eq(error_with(g, "LlamaForCausalLM", "\"is_causal\":true"),
                     "");
    ck_assert_ptr_nonnull(
        strstr(error_with(g, "LlamaForCausalLM", "\"is_causal\":false"),
               "tokens that see later ones are not computed here"));
    ck_assert_ptr_nonnull(
        strstr(error_with(g, "LlamaForCausalLM",
                          "\"use_bidirectional_attention\":true"),
               "tokens that see later ones are not computed here"));
    br_gguf_close(g);
    t_ok(br_gguf_open(&g, t_repo("tests/data/logits/gpt-oss.gguf"), &st), &st);
    there_and_back(g, "GptOssForCausalLM");
    ck_assert_str_eq(error_with(g, "GptOssForCausalLM", "\"swiglu_limit\":7.0"),
                     "");
    ck_assert_ptr_nonnull(
        strstr(error_with(g, "GptOssForCausalLM", "\"swiglu_limit\":5"),
               "config.json: 'swiglu_limit' is not 7"));
    br_gguf_close(g);
}

TEST(hf_yarn_that_is_not_rounded_is_kept)
{
    const char *key = "llama.rope.scaling.brass_yarn_exact", *rope;
    const char *dir = t_tmpdir();
    br_status st = {0};
    br_gguf *g, *back;
    int64_t v = 0;

    t_ok(br_gguf_open(&g, t_repo("tests/data/gguf/ok_model.gguf"), &st), &st);
    there_and_back(g, "LlamaForCausalLM");
    for (int i = 0; i < 3; i++) {
        static const char *const says[] = {"", ",\"truncate\":true",
                                           ",\"truncate\":false"};

        rope = t_printf("\"rope_scaling\":{\"rope_type\":\"yarn\","
                        "\"factor\":4%s}",
                        says[i]);
        ck_assert_str_eq(error_with(g, "LlamaForCausalLM", rope), "");
        t_ok(br_gguf_open(&back, t_printf("%s/out.gguf", dir), &st), &st);
        ck_assert_int_eq(br_gguf_i64(br_gguf_find(back, key), 0, &v), i == 2);
        br_gguf_close(back);
    }
    ck_assert_int_eq(v, 1);
    br_gguf_close(g);
}

/* What the folder's tokenizer does to a text, the file's does, too. */
TEST(hf_nfc_and_blanks_that_tokens_swallow_are_kept)
{
    static const char *const texts[] = {"e\xCC\x81", "<s>  ab", "ab  </s> ab",
                                        "ab <s> ab"};
    const char *dir = t_tmpdir(), *json = "tokenizer.json", *at;
    br_status st = {0};
    br_gguf *g, *back;
    br_tok *theirs, *ours;
    size_t n;

    t_ok(br_gguf_open(&g, t_repo("tests/data/gguf/ok_model.gguf"), &st), &st);
    there_and_back(g, "LlamaForCausalLM");
    br_gguf_close(g);
    at = strstr(t_read(t_printf("%s/%s", dir, json), &n), "\"pre_tokenizer");
    hfk_put(dir, json,
            t_printf("{\"normalizer\":{\"type\":\"NFC\"},\"added_tokens\":["
                     "{\"id\":258,\"content\":\"<s>\",\"special\":true,"
                     "\"rstrip\":true},{\"id\":260,\"content\":\"</s>\","
                     "\"special\":true,\"lstrip\":true}],"
                     "\"post_processor\":{\"type\":\"TemplateProcessing\","
                     "\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},"
                     "{\"SpecialToken\":{\"id\":\"</s>\"}},"
                     "{\"Sequence\":{\"id\":\"A\"}}]},%s",
                     at));
    back = hfk_convert_ok(dir);
    t_ok(br_tok_open(&theirs, dir, NULL, &st), &st);
    t_ok(br_tok_from_gguf(&ours, back, NULL, &st), &st);
    for (size_t i = 0; i < BR_COUNT(texts); i++)
        ck_assert_str_eq(tk_ids(ours, texts[i], BR_TOK_PARSE_SPECIAL),
                         tk_ids(theirs, texts[i], BR_TOK_PARSE_SPECIAL));
    ck_assert_str_eq(tk_ids(ours, "<s>  ab", BR_TOK_PARSE_SPECIAL), "258 256");
    ck_assert_str_eq(tk_ids(ours, "ab", BR_TOK_ADD_SPECIAL), "258 260 256");
    ck_assert_str_eq(tk_ids(theirs, "ab", BR_TOK_ADD_SPECIAL), "258 260 256");
    br_tok_free(theirs);
    br_tok_free(ours);
    br_gguf_close(back);
}

/* Logits without it would be wrong, and nothing would say so. */
TEST(a_bias_that_no_graph_asks_for_is_no_model)
{
    const char *dir = t_tmpdir();
    job j = {.class = "LlamaForCausalLM"};
    br_status st = {0};
    br_gguf *g, *back;
    br_model *m;

    t_ok(br_gguf_open(&g, t_repo("tests/data/gguf/ok_model.gguf"), &st), &st);
    there_and_back(g, j.class);
    t_ok(br_model_open(&m, t_printf("%s/out.gguf", dir), &st), &st);
    br_model_close(m);
    j.g = g;
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++)
        add_back(&j, br_gguf_tensor_at(g, i));
    hfk_add_bf16(&j.m, "model.layers.0.mlp.up_proj.bias",
                 br_gguf_tensor_find(g, "blk.0.ffn_up.weight")->dim[1], 0);
    hfk_put_tensors(dir, &j.m);
    back = hfk_convert_ok(dir);
    ck_assert_ptr_nonnull(br_gguf_tensor_find(back, "blk.0.ffn_up.bias"));
    br_gguf_close(back);
    ck_assert_int_eq(br_model_open(&m, t_printf("%s/out.gguf", dir), &st),
                     BR_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(
        st.msg,
        "blk.0.ffn_up.bias: models of llama are computed without it here"));
    br_gguf_close(g);
}

/* The golden logits of a case out of the file that came back. */
static void
says_the_golden_logits(lk_case *c, const char *class)
{
    br_status st = {0};
    br_gguf *g;
    lk_error e;
    lk_run r;

    t_ok(br_gguf_open_mem(&g, c->file, c->file_n, &st), &st);
    there_and_back(g, class);
    br_gguf_close(g);
    c->file = t_read(t_printf("%s/out.gguf", t_tmpdir()), &c->file_n);
    t_ok(lk_open(&r, c, NULL), &r.st);
    e = lk_compare(lk_logits(&r, c, c->n_tokens, 0), c->want, c->n_tokens,
                   c->n_vocab);
    ck_assert_msg(e.nmse < 1e-8, "%s as %s: NMSE %g", c->name, class, e.nmse);
    lk_close(&r);
}

static br_code
convert_once(void *arg, br_status *st)
{
    const char *dir = arg;
    br_hf_desc d = {0};
    br_hf_stats s;

    return br_hf_convert(dir, t_printf("%s/out.gguf", dir), &d, &s, st);
}

/* The families whose tensors take another way than a llama's. */
TEST_WITHIN(hf_of_a_phi_runs_out_of_memory_cleanly, 120)
{
    br_status st = {0};
    br_gguf *g;

    t_ok(br_gguf_open(&g, t_repo("tests/data/logits/phi3-long.gguf"), &st),
         &st);
    there_and_back(g, "Phi3ForCausalLM");
    br_gguf_close(g);
    t_each_oom(convert_once, (void *)(uintptr_t)t_tmpdir());
}

TEST_WITHIN(hf_of_a_gpt_oss_runs_out_of_memory_cleanly, 120)
{
    const char *dir = t_vectors("logits");
    const char *const files[] = {
        t_repo("tests/data/logits/gpt-oss.gguf"), /* experts are floats */
        dir ? t_printf("%s/gpt-oss-q-MXFP4.gguf", dir) : NULL};

    for (size_t i = 0; i < BR_COUNT(files) && files[i]; i++) {
        br_status st = {0};
        br_gguf *g;

        t_ok(br_gguf_open(&g, files[i], &st), &st);
        there_and_back(g, "GptOssForCausalLM");
        br_gguf_close(g);
        t_each_oom(convert_once, (void *)(uintptr_t)t_tmpdir());
    }
}

TEST_WITHIN(hf_folders_of_golden_models_say_the_golden_logits, 80)
{
    static const char *const models[][2] = {
        {"llama-untied-spm", "LlamaForCausalLM"},
        {"llama-mixtral", "MixtralForCausalLM"},
        {"qwen2", "Qwen2ForCausalLM"},
        {"qwen2moe", "Qwen2MoeForCausalLM"},
        {"qwen3", "Qwen3ForCausalLM"},
        {"qwen3moe", "Qwen3MoeForCausalLM"},
        {"granite", "GraniteForCausalLM"},
        {"olmo2", "Olmo2ForCausalLM"},
        {"gemma2", "Gemma2ForCausalLM"},
        {"gemma3", "Gemma3ForCausalLM"},
        {"phi3-long", "Phi3ForCausalLM"},
        {"phi3-short", "Phi3ForCausalLM"},
        {"glm4", "Glm4ForCausalLM"},
        {"gpt-oss", "GptOssForCausalLM"},
        {"gpt-oss-q-MXFP4", "GptOssForCausalLM"},
    };
    size_t n = 0;

    for (size_t i = 0; i < BR_COUNT(models); i++) {
        size_t at = lk_find(models[i][0]);
        lk_case c;

        if (at == lk_count()) /* phi3-long and gpt-oss are part of ours */
            continue;
        c = lk_get(at);
        says_the_golden_logits(&c, models[i][1]);
        n++;
    }
    ck_assert_uint_eq(n, lk_complete() ? BR_COUNT(models) : 2);
    lk_end();
}
