/* test_hf_f8.c - folders whose matrices have eight bits a weight: what each number is,
 * in memory and in a file, and what three tiers make of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/half.h"
#include "hf_kit.h"
#include "model/gguf_write.h"
#include "model/model.h"
#include "model/quant.h"
#include "run/oracle.h"
#include "run/tier_diff.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t.h"

enum { WIDTH = 128, HEADS = 2, DIM = 64, FF = 192, ROWS = 264 };

/* How a matrix is scaled. */
typedef enum scaled { ONCE, BY_ROW, BY_BLOCK } scaled;

typedef struct matrix {
    const char *name, *ours;
    uint64_t rows, cols;
    scaled how;
    bool wide; /* E5M2 */
} matrix;

static bool bare; /* codes are the numbers, no matrix has a scale */

static const matrix matrices[] = {
    {"self_attn.q_proj", "attn_q", HEADS *DIM, WIDTH, BY_BLOCK, false},
    {"self_attn.k_proj", "attn_k", DIM, WIDTH, ONCE, false},
    {"self_attn.v_proj", "attn_v", DIM, WIDTH, ONCE, true},
    {"self_attn.o_proj", "attn_output", WIDTH, HEADS *DIM, ONCE, false},
    {"mlp.gate_proj", "ffn_gate", FF, WIDTH, BY_BLOCK, false},
    {"mlp.up_proj", "ffn_up", FF, WIDTH, BY_ROW, true},
    {"mlp.down_proj", "ffn_down", WIDTH, FF, BY_BLOCK, false},
};

/* ---- what they are: by another way than the program's ------------------- */

static float
number(uint8_t code, bool wide)
{
    const int m = wide ? 2 : 3, bias = wide ? 15 : 7;
    const int e = (code & 0x7f) >> m, low = code & ((1 << m) - 1);
    const double x =
        e ? ldexp(low + (1 << m), e - bias - m) : ldexp(low, 1 - bias - m);

    return (float)(code & 0x80 ? -x : x);
}

static uint8_t
code_at(const matrix *a, uint64_t r, uint64_t c)
{
    uint64_t s = (r * 131 + c) * 0x9E3779B97F4A7C15u + (uint64_t)a->name[10];
    uint8_t code;

    s ^= s >> 29;
    s *= 0xBF58476D1CE4E5B9u;
    code = (uint8_t)(s >> 40);
    return a->wide ? (uint8_t)((code & 0x83) | (code & 0x1c) | 0x20)
           : (code & 0x7f) == 0x7f ? 0
                                   : code;
}

/* Of block (i, j), or row i. */
static float
scale_of(uint64_t i, uint64_t j)
{
    return ldexpf(1 + (float)((i * 3 + j) % 7) / 8, -11);
}

static float
weight_at(const matrix *a, uint64_t r, uint64_t c)
{
    const float x = number(code_at(a, r, c), a->wide);

    if (bare)
        return x;
    switch (a->how) {
    case ONCE: return x * scale_of(1, 1);
    case BY_ROW: return x * scale_of(r, 0);
    case BY_BLOCK: return x * scale_of(r / 128, c / 128);
    }
    return 0;
}

/* ---- a folder ----------------------------------------------------------- */

static void
add_scales(st_make *m, const matrix *a, const char *stem, bool damaged)
{
    const uint64_t by_block = a->how == BY_BLOCK;
    const uint64_t rows = a->how == ONCE     ? 1
                          : a->how == BY_ROW ? a->rows
                                             : (a->rows + 127) / 128 + damaged;
    const uint64_t cols = by_block ? (a->cols + 127) / 128 : 1;
    const uint64_t dims[2] = {rows, cols};
    float *f = t_keep(malloc(rows * cols * sizeof *f));
    uint16_t *h = t_keep(malloc(rows * cols * sizeof *h));

    for (uint64_t i = 0; i < rows * cols; i++) {
        f[i] = a->how == ONCE ? scale_of(1, 1) : scale_of(i / cols, i % cols);
        h[i] = br_f32_to_bf16(f[i]);
    }
    if (a->how == BY_ROW) /* as BF16: exact */
        st_add(m, t_printf("%s.weight_scale", stem), "BF16", dims, 2, h,
               rows * 2);
    else
        st_add(m, t_printf("%s.weight_scale%s", stem, by_block ? "_inv" : ""),
               "F32", dims, by_block ? 2 : 0, f, rows * cols * 4);
    if (a->how == ONCE)
        st_add(m, t_printf("%s.input_scale", stem), "F32", dims, 0, f, 4);
}

enum { GOOD, BAD_SCALES, NO_NUMBER, NO_BLOCKS, NO_SCALE };

static const char *
folder(const char *class, int fault)
{
    const char *dir = t_tmpdir();
    st_make m = {0};

    hfk_put(
        dir, "config.json",
        t_printf("{\"architectures\":[\"%s\"],\"num_hidden_layers\":1,"
                 "\"hidden_size\":128,\"intermediate_size\":192,"
                 "\"num_attention_heads\":2,\"num_key_value_heads\":1,"
                 "\"head_dim\":64,\"vocab_size\":264,\"rms_norm_eps\":1e-06,"
                 "\"max_position_embeddings\":1024,\"rope_theta\":500000.0,"
                 "\"tie_word_embeddings\":true,\"hidden_act\":\"silu\"%s}",
                 class,
                 bare                 ? ""
                 : fault == NO_BLOCKS ? ",\"quantization_config\":{"
                                        "\"quant_method\":\"fp8\"}"
                                      : ",\"quantization_config\":{"
                                        "\"quant_method\":\"fp8\","
                                        "\"fmt\":\"e4m3\","
                                        "\"weight_block_size\":[128,128]}"));
    hfk_put_bpe(dir, HFK_QWEN2, "");
    hfk_add_bf16(&m, "model.embed_tokens.weight", ROWS, WIDTH);
    hfk_add_bf16(&m, "model.norm.weight", WIDTH, 0);
    hfk_add_bf16(&m, "model.layers.0.input_layernorm.weight", WIDTH, 0);
    hfk_add_bf16(&m, "model.layers.0.post_attention_layernorm.weight", WIDTH,
                 0);
    if (class[0] == 'Q') {
        hfk_add_bf16(&m, "model.layers.0.self_attn.q_norm.weight", DIM, 0);
        hfk_add_bf16(&m, "model.layers.0.self_attn.k_norm.weight", DIM, 0);
    }
    for (size_t i = 0; i < BR_COUNT(matrices); i++) {
        const matrix *a = &matrices[i];
        const char *stem = t_printf("model.layers.0.%s", a->name);
        const uint64_t dims[2] = {a->rows, a->cols};
        uint8_t *p = t_keep(malloc(a->rows * a->cols));

        for (uint64_t k = 0; k < a->rows * a->cols; k++)
            p[k] = code_at(a, k / a->cols, k % a->cols);
        if (fault == NO_NUMBER && i == 5)
            p[1000] = 0xfd;
        st_add(&m, t_printf("%s.weight", stem), a->wide ? "F8_E5M2" : "F8_E4M3",
               dims, 2, p, a->rows * a->cols);
        if (!bare && !(fault == NO_SCALE && i == 1))
            add_scales(&m, a, stem, fault == BAD_SCALES && i == 4);
    }
    hfk_put_tensors(dir, &m);
    return dir;
}

/* ---- what comes of it --------------------------------------------------- */

/* Where row r of ours is theirs: heads of a llama are permuted. */
static uint64_t
their_row(const matrix *a, bool permuted, uint64_t r)
{
    const bool turns = strstr(a->ours, "attn_q") || strstr(a->ours, "attn_k");

    return permuted && turns ? r / DIM * DIM + r % 2 * (DIM / 2) + r % DIM / 2
                             : r;
}

static void
check_weights(const br_gguf *g, bool permuted, bool inside)
{
    float row[FF];

    for (size_t i = 0; i < BR_COUNT(matrices); i++) {
        const matrix *a = &matrices[i];
        const br_gguf_tensor *t =
            br_gguf_tensor_find(g, t_printf("blk.0.%s.weight", a->ours));

        ck_assert_msg(t && t->dim[0] == a->cols && t->dim[1] == a->rows, "%s",
                      a->ours);
        ck_assert_int_eq(t->type, !inside   ? BR_Q_BF16
                                  : a->wide ? BR_Q_F8_E5M2
                                            : BR_Q_F8_E4M3);
        for (uint64_t r = 0; r < a->rows; r++) {
            br_dequant(t->type, t->data + t->bytes / a->rows * r, row, a->cols);
            for (uint64_t c = 0; c < a->cols; c++) {
                const float w = weight_at(a, their_row(a, permuted, r), c);
                const float want =
                    inside ? w : br_bf16_to_f32(br_f32_to_bf16(w));

                ck_assert_msg(row[c] == want, "%s[%d][%d]: %g, not %g", a->ours,
                              (int)r, (int)c, (double)row[c], (double)want);
            }
        }
    }
}

TEST(hf_f8_has_the_numbers_of_the_folder)
{
    static const char *const classes[] = {"Qwen3ForCausalLM",
                                          "LlamaForCausalLM"};
    br_status st = {0};

    for (size_t i = 0; i < BR_COUNT(classes); i++) {
        const char *dir = folder(classes[i], GOOD);
        br_gguf *g = hfk_convert_ok(dir);
        br_model *m;

        check_weights(g, i == 1, false);
        br_gguf_close(g);
        t_ok(br_model_open(&m, dir, &st), &st);
        check_weights(m->gguf, i == 1, true);
        br_model_close(m);
    }
}

/* Without a word of scales in config.json codes are the numbers. */
TEST(hf_f8_without_scales_has_the_numbers_of_its_codes)
{
    br_status st = {0};
    const char *dir;
    br_model *m;

    bare = true;
    dir = folder("Qwen3ForCausalLM", GOOD);
    t_ok(br_model_open(&m, dir, &st), &st);
    check_weights(m->gguf, false, true);
    br_model_close(m);
}

static float *
logits_of(const br_model *m, const br_oracle_config *c)
{
    static const int32_t tokens[] = {3, 1, 200, 9, 17};
    enum { N = BR_COUNT(tokens) };
    float *out = t_keep(calloc(N * ROWS, sizeof *out));
    br_status st = {0};
    br_oracle o;

    t_ok(br_oracle_open(&o, m, c, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, tokens, N, 0, out, &st), &st);
    br_oracle_close(&o);
    return out;
}

TEST_WITHIN(hf_f8_runs_on_all_tiers, 120)
{
    br_status st = {0};
    br_cpu_pool *pool;
    br_model *m;

    t_ok(br_model_open(&m, folder("Qwen3ForCausalLM", GOOD), &st), &st);
    const float *want =
        logits_of(m, &(br_oracle_config){.act = BR_REF_F32, .kv = BR_Q_F32});
    t_ok(br_cpu_pool_new(&pool, 2, &st), &st);
    const float *cpu =
        logits_of(m, &(br_oracle_config){.pool = pool, .kv = BR_Q_F32});
    /* BF16 of the table is beside two BF16 of each number */
    ck_assert_msg(br_nmse(cpu, want, 5 * ROWS) < 1e-6, "cpu: %g",
                  br_nmse(cpu, want, 5 * ROWS));
    br_cpu_pool_free(pool);
    t_emulate_cuda();
    const float *cuda = logits_of(
        m, &(br_oracle_config){.gpu = {.tier = "cuda"}, .kv = BR_Q_F16});
    ck_assert_msg(br_nmse(cuda, want, 5 * ROWS) < 5e-6, "cuda: %g",
                  br_nmse(cuda, want, 5 * ROWS));
    const float *exact = logits_of(
        m, &(br_oracle_config){
               .gpu = {.tier = "cuda"}, .exact = true, .kv = BR_Q_F32});
    ck_assert_mem_eq(exact,
                     logits_of(m, &(br_oracle_config){.act = BR_REF_QUANTISED,
                                                      .kv = BR_Q_F32}),
                     5 * ROWS * sizeof *exact);
    br_model_close(m);
    t_emulate_end();
}

typedef struct told {
    uint64_t done, total;
    uint32_t times;
} told;

static void
tell(void *ctx, uint64_t done, uint64_t total)
{
    told *t = ctx;

    ck_assert(done >= t->done && done <= total);
    ck_assert(t->times == 0 || total == t->total);
    *t = (told){done, total, t->times + 1};
}

/* Who opens a folder hears of each tensor, and of all bytes in the end. */
TEST(hf_folder_tells_how_much_of_it_is_read)
{
    const char *dir = folder("Qwen3ForCausalLM", GOOD);
    told t = {0};
    br_status st = {0};
    br_model *m;

    t_ok(br_model_open_told(&m, dir, &(br_hf_desc){.progress = tell, .ctx = &t},
                            &st),
         &st);
    ck_assert_uint_gt(t.total, 128 * (ROWS * 2 + 3 * FF));
    ck_assert_uint_eq(t.done, t.total);
    ck_assert_uint_ge(t.times, 13);
    br_model_close(m);
}

static _Atomic bool stop;

static void
stop_at_the_second(void *ctx, uint64_t done, uint64_t total)
{
    tell(ctx, done, total);
    atomic_store_explicit(&stop, ((told *)ctx)->times == 2,
                          memory_order_relaxed);
}

/* A server that is told to end while it reads many gigabytes. */
TEST(hf_folder_is_no_further_read_when_that_is_stopped)
{
    const char *dir = folder("Qwen3ForCausalLM", GOOD);
    told t = {0};
    br_hf_desc d = {.progress = stop_at_the_second, .ctx = &t, .stop = &stop};
    br_status st = {0};
    br_model *m;

    ck_assert_int_eq(br_model_open_told(&m, dir, &d, &st), BR_E_CANCELLED);
    ck_assert_str_eq(st.msg,
                     t_printf("%s: stopped while its weights were read", dir));
    ck_assert_uint_eq(t.times, 2);
    ck_assert_ptr_null(m);
}

/* Wherever a model is named it may be a folder. */
TEST_WITHIN(hf_folder_is_a_model_for_every_command, 120)
{
    const char *dir = folder("Qwen3ForCausalLM", GOOD);
    const char *out = t_printf("%s/out", t_tmpdir());
    const char *const with[][6] = {
        {"model", "info", dir},
        {"tokenize", dir, "abc"},
        {"template", dir, "--context", t_printf("%s/context.json", dir)},
        {"ir", "show", dir},
        {"prog", "lower", dir, "-o", out},
        {"logits", dir, "--tokens", "1,2", "-o", out},
        {"bench", dir, "-p0", "-n2", "-r1"},
        {"validate", dir, "-p", "abc"},
        {"run", dir, "abc", "-n2"},
        {"model", "quantize", dir, out, "Q8_0"},
    };
    t_proc r;

    t_not_for_tsan("hf_f8_runs_on_all_tiers");
    hfk_put(dir, "context.json", "{\"messages\":[]}");
    for (size_t i = 0; i < BR_COUNT(with); i++) {
        const char *args[8] = {t_brass()};

        for (size_t k = 0; k < BR_COUNT(with[i]) && with[i][k]; k++)
            args[k + 1] = with[i][k];
        t_exec(&r, args, NULL, 0);
        ck_assert_msg(r.exit == 0, "%s %s: %s", with[i][0], with[i][1], r.err);
    }
}

/* A folder is no file to the server either: its bytes, sessions that are kept. */
TEST_WITHIN(hf_folder_is_served, 120)
{
    const char *dir = folder("Qwen3ForCausalLM", GOOD);
    const char *script = t_printf(
        "cd %s && %s serve %s --name f --port 0 -t 1 --keep kept --memory 100m "
        "--log-level info 2>log >said & pid=$!; for i in $(seq 600); do "
        "grep -q http_ready %s/log && break; sleep 0.05; done; kill $pid; "
        "wait $pid; code=$?; grep -E ' (warn|error) ' %s/log; exit $code",
        dir, t_brass(), dir, dir, dir);
    uint64_t bytes;
    br_status st = {0};
    t_proc r;

    t_not_for_tsan("hf_f8_runs_on_all_tiers");
    t_ok(br_gguf_bytes_at(dir, &bytes, &st), &st);
    ck_assert_uint_gt(bytes, 128 * (ROWS * 2 + 3 * FF));
    ck_assert_uint_lt(bytes, 1 << 20);
    t_exec(&r, (const char *[]){"sh", "-c", script, NULL}, NULL, 0);
    ck_assert_msg(r.exit == 0 && !r.out[0], "%d %s%s", r.exit, r.out, r.err);
    ck_assert_int_eq(access(t_printf("%s/kept/f.keep", dir), F_OK), 0);
}

TEST(hf_f8_that_is_refused)
{
    static const struct {
        int fault;
        const char *says;
    } bad[] = {{BAD_SCALES, "not scales of a matrix of 192 x 128"},
               {NO_NUMBER, "a weight is no number"},
               {NO_BLOCKS, "not scales of a matrix of 192 x 128"},
               {NO_SCALE,
                "tensor 'model.layers.0.self_attn.k_proj.weight': F8_E4M3 "
                "without "
                "model.layers.0.self_attn.k_proj.weight_scale_inv or _scale; "
                "config.json: 'quantization_config' says that there are "
                "scales"}};
    br_model *m;

    for (size_t i = 0; i < BR_COUNT(bad); i++) {
        br_status st = {0};

        ck_assert_int_eq(
            br_model_open(&m, folder("Qwen3ForCausalLM", bad[i].fault), &st),
            BR_E_FORMAT);
        ck_assert_msg(strstr(st.msg, bad[i].says) != NULL, "%s", st.msg);
    }
}

static br_code
open_folder(void *ctx, br_status *st)
{
    br_model *m;
    br_code code = br_model_open(&m, ctx, st);

    if (code == BR_OK)
        br_model_close(m);
    return code;
}

TEST_WITHIN(hf_f8_runs_out_of_memory_cleanly, 120)
{
    char *dir;

    t_not_for_tsan(NULL);
    dir = t_printf("%s", folder("LlamaForCausalLM", GOOD));
    t_each_oom(open_folder, dir);
}

/* No file has the format, whoever writes it. */
TEST(hf_f8_is_no_format_of_files)
{
    const char *dir = folder("Qwen3ForCausalLM", GOOD);
    const char *file = t_printf("%s/f8.gguf", dir);
    br_status st = {0};
    br_gguf_writer *w = br_gguf_w_new();
    br_str doc = {0};
    br_gguf *g;

    ck_assert_ptr_nonnull(w);
    br_gguf_w_tensor(w, &(br_gguf_w_info){.name = BR_TEXT("a"),
                                          .type = BR_Q_F8_E4M3,
                                          .n_dims = 1,
                                          .dim = {64}});
    ck_assert_int_eq(br_gguf_w_begin(w, file, &st), BR_E_UNSUPPORTED);
    br_gguf_w_free(w);
    st = (br_status){0};
    t_ok(br_hf_load(dir, &doc, NULL, &st), &st);
    t_write(file, doc.at, doc.n);
    br_str_fini(&doc);
    ck_assert_int_eq(br_gguf_open(&g, file, &st), BR_E_FORMAT);
    ck_assert_msg(strstr(st.msg, "no tensor type has the code 62") != NULL,
                  "%s", st.msg);
}
