/* test_cuda_dense.c - BF16 weights of the CUDA tier's nodes in 12 bits, on the emulated
 * device of tests/emu: steps of few rows have the bits of tiles, whatever the weights are.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "shape_kit.h"

#include "run/oracle.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t.h"

enum { MOST = 70 }; /* tokens: more than a step of few rows */

static br_cun_costs
logits_of(const br_model *m, br_oracle_config c, const uint32_t *chunks,
          size_t n, float *out)
{
    const size_t vocab = (size_t)m->hp.n_vocab;
    int32_t tokens[MOST];
    br_status st = {0};
    br_cun_costs costs;
    uint32_t at = 0;
    br_oracle o;

    for (int32_t i = 0; i < MOST; i++)
        tokens[i] = 3 + i * 37 % 200;
    c.gpu.tier = "cuda";
    c.kv = BR_Q_F16;
    c.max_rows = MOST;
    t_ok(br_oracle_open(&o, m, &c, &st), &st);
    for (size_t i = 0; i < n; at += chunks[i++])
        t_ok(br_oracle_feed(&o, 0, at, tokens + at, chunks[i], 0,
                            out + at * vocab, &st),
             &st);
    ck_assert_uint_eq(at, MOST);
    costs = br_cun_costs_of(o.cun);
    br_oracle_close(&o);
    return costs;
}

/* Such chunks with dense matrices and without, whose logits are `tiles`. Bytes that are
 * dense. */
static uint64_t
same_in_chunks(const br_model *m, const uint32_t *chunks, size_t n_chunks,
               float *tiles)
{
    const br_oracle_config no = {.gpu_dense = BR_CUN_DENSE_NO};
    const size_t n = MOST * (size_t)m->hp.n_vocab;
    float *other = t_keep(malloc(n * sizeof *other));
    const br_cun_costs plain = logits_of(m, no, chunks, n_chunks, tiles);
    const br_cun_costs both =
        logits_of(m, (br_oracle_config){0}, chunks, n_chunks, other);

    ck_assert_uint_eq(plain.dense, 0);
    ck_assert_uint_eq(both.weights, plain.weights + both.dense);
    ck_assert_mem_eq(tiles, other, n * sizeof *tiles);
    return both.dense;
}

/* Chunks of every kernel of few rows, and a prompt of tiles. Bytes that are dense. */
static uint64_t
same_bits(const br_model *m)
{
    static const uint32_t few[] = {1, 8, 16, 30, 15}, many[] = {MOST};
    const br_oracle_config dense = {.gpu_dense = BR_CUN_DENSE_YES};
    const size_t n = MOST * (size_t)m->hp.n_vocab;
    float *tiles = t_keep(malloc(n * sizeof *tiles));
    float *other = t_keep(malloc(n * sizeof *other));
    const uint64_t bytes = same_in_chunks(m, few, BR_COUNT(few), tiles);

    (void)logits_of(m, dense, many, 1, other);
    ck_assert_mem_eq(tiles, other, n * sizeof *tiles);
    (void)logits_of(m, dense, (const uint32_t[]){64, MOST - 64}, 2, other);
    ck_assert_mem_eq(tiles, other, n * sizeof *tiles);
    return bytes;
}

/* Pieces of 128 rows x 64 columns of a matrix, rows of several on top of each other. */
static uint64_t
dense_bytes(uint64_t rows, uint64_t cols)
{
    return (rows + 127) / 128 * (cols / 64) * (128 * 96 + 64 * 4);
}

static uint16_t *
weights_of(const shaped *on, const char *name)
{
    const br_gguf_tensor *t = br_gguf_tensor_find(on->m->gguf, name);

    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->type, BR_Q_BF16);
    return (uint16_t *)(uintptr_t)t->data;
}

/* llama-256: a layer, 256 x 768, the head is the table; heads 4 and 2 of 64. */
TEST_WITHIN(cuda_dense_matrices_have_the_bits_of_tiles, 240)
{
    static const uint16_t odd[] = {0, 0x8000, 0x0001, 0x807f, 0x0080, 0x3000};
    const uint64_t layer = dense_bytes(512, 256) + dense_bytes(256, 256) +
                           dense_bytes(1536, 256) + dense_bytes(256, 768);

    t_emulate_cuda();
    shaped on = open_shape_file("shape:llama-256:BF16");
    const uint64_t head = dense_bytes((uint64_t)on.m->hp.n_vocab, 256);
    ck_assert_int_eq(setenv("BR_EMU_SM", "2", 1), 0); /* blocks that stay */
    ck_assert_uint_eq(same_bits(on.m), layer + head);
    /* of eight blocks that all run at once stay as they are: attention's output, the head */
    ck_assert_int_eq(setenv("BR_EMU_SM", "8", 1), 0);
    ck_assert_uint_eq(same_bits(on.m), layer - dense_bytes(256, 256));
    ck_assert_int_eq(setenv("BR_EMU_SM", "4", 1), 0);
    /* A piece lists zeros, subnormal ones, others too small for 15 exponents ... */
    uint16_t *down = weights_of(&on, "blk.0.ffn_down.weight");
    for (uint32_t i = 0; i < 24; i++)
        down[(i * 4 + 1) * 768 + i * 2 % 64] = odd[i % 6];
    ck_assert_uint_eq(same_bits(on.m), layer + head);
    /* ... but no more than 8 of 16 rows: this matrix stays as it is */
    for (uint32_t i = 0; i < 6; i++)
        down[3 * 768 + i] = 0;
    ck_assert_uint_eq(same_bits(on.m), layer + head - dense_bytes(256, 768));
    /* as one with a row of zeros does */
    memset(weights_of(&on, "blk.0.attn_output.weight") + 5 * 256, 0, 512);
    ck_assert_uint_eq(same_bits(on.m), layer + head - dense_bytes(256, 768) -
                                           dense_bytes(256, 256));
    close_shape(&on);
    t_emulate_end();
}

/* On as many multiprocessors as its gate and up have blocks, down's are alone by
 * registers. */
TEST_WITHIN(cuda_dense_blocks_that_are_alone_have_the_bits_of_tiles, 240)
{
    static const uint32_t few[] = {1, 17, 52};

    t_emulate_cuda();
    ck_assert_int_eq(setenv("BR_EMU_SM", "68", 1), 0);
    shaped on = open_shape_file("shape:llama-640:BF16");
    const size_t n = MOST * (size_t)on.m->hp.n_vocab;
    float *tiles = t_keep(malloc(n * sizeof *tiles));
    ck_assert_uint_eq(same_in_chunks(on.m, few, BR_COUNT(few), tiles),
                      dense_bytes(8704, 640) + dense_bytes(640, 4352));
    unsetenv("BR_EMU_SM");
    close_shape(&on);
    t_emulate_end();
}

static br_cun_costs
costs_with(const br_model *m, uint64_t memory)
{
    br_oracle_config c = {.gpu = {.tier = "cuda"},
                          .kv = BR_Q_F16,
                          .gpu_memory = memory,
                          .gpu_dense = BR_CUN_DENSE_AUTO};
    br_status st = {0};
    br_cun_costs costs;
    br_oracle o;

    t_ok(br_oracle_open(&o, m, &c, &st), &st);
    costs = br_cun_costs_of(o.cun);
    br_oracle_close(&o);
    return costs;
}

static br_code
open_dense(void *m, br_status *st)
{
    br_oracle_config c = {.gpu = {.tier = "cuda"},
                          .kv = BR_Q_F16,
                          .gpu_dense = BR_CUN_DENSE_AUTO};
    br_oracle o;
    br_code code = br_oracle_open(&o, m, &c, st);

    if (code == BR_OK)
        br_oracle_close(&o);
    return code;
}

/* The last quarter of what is given stays free of them; memory that fails is an error
 * that leaves nothing behind. */
TEST_WITHIN(cuda_dense_matrices_have_what_memory_is_left, 120)
{
    br_status st = {0};
    int n = 1;

    t_emulate_cuda();
    shaped on = open_shape_file("shape:llama-256:BF16");
    const br_cun_costs all = costs_with(on.m, 0);
    const uint64_t least = all.all / 3 * 4;
    ck_assert_uint_gt(all.dense, 0);
    ck_assert_uint_eq(costs_with(on.m, least + (1 << 20)).dense, all.dense);
    ck_assert_uint_eq(costs_with(on.m, least - (1 << 16)).dense, 0);
    for (; n < 1000; n++) {
        ck_assert_int_eq(setenv("BR_EMU_NO_MEMORY", t_printf("%d", n), 1), 0);
        st = (br_status){0};
        if (open_dense(on.m, &st) == BR_OK)
            break;
        ck_assert_msg(st.code == BR_E_OOM && st.msg[0], "call %d: %s", n,
                      st.msg);
    }
    ck_assert(n > 20 && n < 1000);
    unsetenv("BR_EMU_NO_MEMORY");
    t_each_oom(open_dense, on.m);
    close_shape(&on);
    t_emulate_end();
}

/* Who asks in vain is told why. */
TEST_WITHIN(cuda_dense_says_where_it_does_nothing, 120)
{
    static const struct {
        const char *spec, *option, *value, *why;
    } of[] = {
        {"shape:llama-256:Q8_0", "-r", "1", "no matrix of BF16 fits 12 bits"},
        {"shape:llama-256:BF16", "--gpu-memory", "70m",
         "less than a quarter of memory would be free"},
        {"shape:llama-256:BF16", "--arith", "exact", "for fast arithmetic"},
        {"shape:llama-256:BF16", "-r", "1", NULL}};
    t_proc r;

    for (size_t i = 0; i < BR_COUNT(of); i++) {
        t_run_emulated(&r,
                       (const char *[]){"bench", of[i].spec, "--tier", "cuda",
                                        "--gpu-dense", "yes", "-n", "2", "-p",
                                        "0", of[i].option, of[i].value, NULL},
                       NULL, 0);
        ck_assert_msg(r.exit == 0, "%s", r.err);
        if (of[i].why)
            ck_assert_msg(strstr(r.err, of[i].why) != NULL, "%s", r.err);
        else
            ck_assert_ptr_null(strstr(r.err, "dense"));
    }
}

/* A model of BF16 with words: no number of its later matrices is zero. */
static const char *
bf16_model(void)
{
    const char *path = t_printf("%s/a.gguf", t_tmpdir());
    size_t n, head = 2 << 20;
    t_proc r;

    t_run(&r, "quantize", "models/demo.gguf", path, "bf16");
    ck_assert_msg(r.exit == 0, "%s", r.err);
    char *p = t_read(path, &n);
    ck_assert_uint_gt(n, head);
    for (size_t i = head; i + 1 < n; i += 2) {
        if (!p[i] && !(p[i + 1] & 0x7f))
            p[i + 1] = 0x3a;
    }
    t_write(path, p, n);
    return path;
}

/* What `brass serve` says of them until these models are there. */
static const char *
served(const char *models)
{
    const char *brass = t_brass();
    t_proc r;

    t_exec(&r,
           (const char *[]){
               "sh", "-c",
               t_printf("cd %s && : >said && { BR_EMU_SM=2 "
                        "LD_LIBRARY_PATH=$(dirname %s)/emu %s serve %s --tier "
                        "cuda --port 0 --ctx 64 --slots 1 --log-level info "
                        ">said 2>&1 & } && pid=$! && for i in $(seq 1200); do "
                        "kill -0 $pid 2>&- || break; grep -q http_ready said "
                        "&& break; sleep 0.05; done; kill $pid 2>&-; wait "
                        "$pid; cat said; rm -f "
                        "/run/lock/brass-gpu-emulated-$$.lock "
                        "/tmp/brass-gpu-emulated-$$.lock",
                        t_tmpdir(), brass, brass, models),
               NULL},
           NULL, 0);
    ck_assert_msg(strstr(r.out, "http_ready") != NULL, "%s", r.out);
    return t_keep(strdup(r.out));
}

/* Who serves several models has none of them twice, unless asked. */
TEST_WITHIN(cuda_dense_matrices_are_for_a_model_alone, 120)
{
    t_emulate_cuda();
    const char *path = bf16_model();
    const char *other = t_printf("%s/b.gguf", t_tmpdir());
    ck_assert_int_eq(symlink(path, other), 0);
    const char *both = t_printf("%s %s", path, other);
    ck_assert_ptr_nonnull(strstr(served(path), "cuda_dense"));
    ck_assert_ptr_null(strstr(served(both), "cuda_dense"));
    ck_assert_ptr_nonnull(
        strstr(served(t_printf("%s --gpu-dense yes", both)), "cuda_dense"));
    t_emulate_end();
}
