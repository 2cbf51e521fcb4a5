/* test_cuda_nodes.c - the CUDA tier node by node, on the emulated device of
 * tests/emu: the kernels' own text, here without a GPU.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "logits_kit.h"

#include "run/lm_model.h"
#include "run/shape.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t.h"

/* The library that is open already is the one that the tier finds. */
static void
emulate(void)
{
    const char *lib = t_repo(t_printf("build/%s/emu/libcuda.so.1", t_conf()));

    if (access(lib, R_OK) != 0)
        t_skip("no emulated CUDA device in this build");
    ck_assert_msg(dlopen(lib, RTLD_NOW | RTLD_LOCAL), "%s", dlerror());
}

static void
end(void)
{
    unlink(t_printf("/run/lock/brass-gpu-emulated-%d.lock", (int)getppid()));
    unlink(t_printf("/tmp/brass-gpu-emulated-%d.lock", (int)getppid()));
}

static const br_oracle_config exact_ref = {.act = BR_REF_QUANTISED};

/* Three rows, then one: every bit is the reference tier's. */
static void
same_bits(const lk_case *c, uint32_t n)
{
    br_oracle_config cc = {.cuda = true, .exact = true};
    const float *want, *got;
    lk_run r;

    t_ok(lk_open(&r, c, &exact_ref), &r.st);
    want = lk_logits(&r, c, n, 0);
    lk_close(&r);
    t_ok(lk_open(&r, c, &cc), &r.st);
    got = lk_logits(&r, c, n, 3);
    ck_assert_msg(memcmp(got, want, n * sizeof *want * c->n_vocab) == 0, "%s",
                  c->name);
    lk_close(&r);
}

/* Of what is there: windows, caps, norms of heads, tables a layer, K-quants. */
TEST_WITHIN(cuda_nodes_have_the_reference_bits, 120)
{
    static const char *const names[] = {
        "gemma2",       "gemma4",       "glm4",         "qwen3",
        "llama-q-Q4_K", "llama-q-Q6_K", "llama-q-Q4_0", "llama-q-Q8_0"};
    uint32_t done = 0;

    emulate();
    for (size_t i = 0; i < BR_COUNT(names); i++) {
        size_t at = lk_find(names[i]);

        if (at == lk_count())
            continue;
        lk_case c = lk_get(at);
        same_bits(&c, 4);
        done++;
    }
    if (!done) {
        lk_case c = lk_get(0);
        same_bits(&c, 4);
    }
    lk_end();
    end();
}

/* What the tier lacks is refused by name. */
TEST_WITHIN(cuda_nodes_say_what_they_lack, 60)
{
    br_oracle_config cc = {.cuda = true, .kv = BR_Q_F16};
    size_t at = lk_find("mamba2");
    lk_case c;
    lk_run r;

    if (at == lk_count())
        t_skip("no ../shared/vectors here");
    emulate();
    c = lk_get(at);
    ck_assert_int_eq(lk_open(&r, &c, &cc), BR_E_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(r.st.msg, "recurrent"));
    lk_end();
    end();
}

/* Two slots in one step, each as if alone; a prompt in chunks; a slot that is
 * cut and continued. */
TEST_WITHIN(cuda_steps_of_many_slots_agree, 60)
{
    static const int32_t token[] = {3, 1, 7, 9, 2, 5};
    enum { N = BR_COUNT(token) };
    br_lm_config c = {.tier = "cuda", .n_ctx = 32, .n_slots = 3};
    br_status st = {0};
    br_str doc = {0};
    br_lm_model *r;
    br_model *m;
    float *alone, *both;

    emulate();
    t_ok(br_shape_model(&doc, "shape:toy:Q8_0", true, &st), &st);
    t_ok(br_model_open_mem(&m, doc.at, doc.n, &st), &st);
    t_ok(br_lm_model_open(&r, m, &c, &st), &st);
    const br_lm *lm = br_lm_model_lm(r);
    ck_assert_str_eq(lm->tier, "cuda");
    ck_assert(lm->step && !lm->page);
    alone = t_keep(calloc((size_t)lm->n_vocab, sizeof *alone));
    both = t_keep(calloc(2 * (size_t)lm->n_vocab, sizeof *both));
    t_ok(lm->feed(lm->ctx, 0, 0, token, N, alone, &st), &st);
    {
        /* slot 1: pages 3, 4; slot 2: page 5 */
        static const uint32_t page[3][2] = {{0, 1}, {3, 4}, {5, 6}};
        const uint32_t *tables[] = {page[0], page[1], page[2]};
        int32_t slot[2 * N], position[2 * N], tokens[2 * N], want[2 * N] = {0};
        br_step s = {2 * N, slot, position, tokens, want, tables};

        for (int i = 0; i < 2 * N; i++) {
            slot[i] = 1 + i / N;
            position[i] = i % N;
            tokens[i] = token[i < N ? i : N - 1 - i % N];
        }
        want[N - 1] = want[2 * N - 1] = 1;
        ck_assert_uint_eq(lm->plan->n_groups, 1);
        t_ok(lm->step(lm->ctx, &s, both, &st), &st);
    }
    ck_assert_mem_eq(both, alone, (size_t)lm->n_vocab * sizeof *both);
    ck_assert_mem_ne(both + lm->n_vocab, alone,
                     (size_t)lm->n_vocab * sizeof *both);
    lm->keep(lm->ctx, 0, 2);
    t_ok(lm->feed(lm->ctx, 0, 2, token + 2, N - 2, both, &st), &st);
    ck_assert_mem_eq(both, alone, (size_t)lm->n_vocab * sizeof *both);
    br_lm_model_close(r);
    br_model_close(m);
    br_str_fini(&doc);
    end();
}

/* Tensor cores: near the reference tier, and the same bits however a prompt is
 * cut: kernels for few rows and for many. */
static void
near_ref(const char *spec, uint32_t n, double most)
{
    br_oracle_config rc = {.act = BR_REF_QUANTISED};
    br_oracle_config cc = {.cuda = true, .kv = BR_Q_F16, .max_rows = 128};
    static const uint32_t chunks[] = {0, 1, 9};
    br_status st = {0};
    br_str doc = {0};
    double e = 0, s = 0;
    int32_t tokens[128];
    float *want, *got[BR_COUNT(chunks)];
    br_model *m;
    br_oracle o;

    t_ok(br_shape_model(&doc, spec, true, &st), &st);
    t_ok(br_model_open_mem(&m, doc.at, doc.n, &st), &st);
    size_t vocab = (size_t)m->hp.n_vocab;
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (int32_t)(i * 37 % vocab);
    want = t_keep(calloc(n * vocab, sizeof *want));
    t_ok(br_oracle_open(&o, m, &rc, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, tokens, n, 0, want, &st), &st);
    br_oracle_close(&o);
    t_ok(br_oracle_open(&o, m, &cc, &st), &st);
    for (size_t k = 0; k < BR_COUNT(chunks); k++) {
        const uint32_t few = k ? BR_MIN(n, 10u) : n;

        got[k] = t_keep(calloc(n * vocab, sizeof *want));
        br_oracle_reset(&o, 0);
        t_ok(br_oracle_feed(&o, 0, 0, tokens, few, chunks[k], got[k], &st),
             &st);
        ck_assert_msg(memcmp(got[0], got[k], few * vocab * sizeof *want) == 0,
                      "%s: chunks of %u", spec, chunks[k]);
    }
    br_oracle_close(&o);
    br_model_close(m);
    br_str_fini(&doc);
    for (size_t i = 0; i < n * vocab; i++) {
        double d = (double)got[0][i] - (double)want[i];
        e += d * d;
        s += (double)want[i] * (double)want[i];
    }
    ck_assert_msg(s > 0 && e / s < most, "%s: NMSE %g", spec, e / s);
}

TEST_WITHIN(cuda_nodes_on_tensor_cores_are_near, 120)
{
    emulate();
    near_ref("shape:llama-512:BF16", 34, 1e-5);
    near_ref("shape:qwen3-512:BF16", 10, 1e-5);
    near_ref("shape:llama-512:Q8_0", 9, 1e-3);
    end();
}
