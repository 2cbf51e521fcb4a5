/* test_cuda_nodes.c - the CUDA tier node by node, on the emulated device of
 * tests/emu: the kernels' own text, here without a GPU.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "logits_kit.h"
#include "shape_kit.h"

#include "model/gguf_write.h"
#include "run/sample.h"
#include "run/shape.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "t.h"

static const br_oracle_config exact_ref = {.act = BR_REF_QUANTISED};

/* Three rows, then one: every bit is the reference tier's. */
static void
same_bits(const lk_case *c, uint32_t n)
{
    br_oracle_config cc = {.gpu = {.tier = "cuda"}, .exact = true};
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

/* Of what is there: windows, caps, norms of heads, tables a layer, K-quants,
 * experts in groups, with biases, shared ones; convolutions, scans, delta. */
TEST_WITHIN(cuda_nodes_have_the_reference_bits, 120)
{
    static const char *const names[] = {
        "gemma2",       "gemma4",       "glm4",         "qwen3",
        "llama-q-Q4_K", "llama-q-Q6_K", "llama-q-Q4_0", "llama-q-Q8_0",
        "deepseek2",    "qwen2moe",     "glm4moe",      "gpt-oss-q-MXFP4",
        "mamba2",       "lfm2",         "falcon-h1",    "qwen35moe-q-Q4_K"};
    uint32_t done = 0;

    t_emulate_cuda();
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
    t_emulate_end();
}

/* A device without sm_90's tensor cores: the portable kernels, with the same bits; no
 * megakernel, no draw. */
TEST_WITHIN(cuda_older_devices_have_the_reference_bits, 120)
{
    static const char *const names[] = {"gemma2", "llama-q-Q4_K",
                                        "llama-q-Q8_0", "gpt-oss-q-MXFP4",
                                        "falcon-h1"};
    br_lm_config c = {.tier = "cuda", .n_ctx = 64};
    br_status st = {0};
    float *logits;

    t_emulate_cuda();
    ck_assert_int_eq(setenv("BR_EMU_MAJOR", "8", 1), 0);
    for (size_t i = 0; i < BR_COUNT(names); i++) {
        const size_t at = lk_find(names[i]);
        lk_case k = lk_get(at == lk_count() ? 0 : at);

        same_bits(&k, 4);
    }
    shaped on = open_shape("shape:llama-512:BF16", &c);
    const br_lm *lm = on.lm;
    ck_assert_str_eq(lm->tier, "cuda");
    ck_assert(!lm->draw && !lm->pick);
    logits = t_keep(calloc((size_t)lm->n_vocab, sizeof *logits));
    t_ok(lm->feed(lm->ctx, 0, 0, (int32_t[]){3, 1}, 2, logits, &st), &st);
    close_shape(&on);
    unsetenv("BR_EMU_MAJOR");
    lk_end();
    t_emulate_end();
}

static const int32_t token[] = {3, 1, 7, 9, 2, 5};
enum { N = BR_COUNT(token) };

/* The tier's tokens after a step are the host sampler's from its logits. */
static void
same_draws(const br_lm *lm, const br_step *step, const float *logits,
           uint32_t n)
{
    static const float temperature[] = {0, 1.5f, 0.7f, 1.2f};
    br_status st = {0};

    for (size_t k = 0; k < BR_COUNT(temperature); k++) {
        const br_sample_params *p[2];
        br_sample_params how = br_sample_defaults();
        uint32_t at[2] = {7, 1000};
        int32_t got[2] = {-9, -9}, want;

        how.seed = 77 + k;
        how.temperature = temperature[k];
        how.top_k = k == 2 ? 9 : 0;
        how.top_p = k == 2 ? 0.8f : 1;
        how.min_p = k == 3 ? 0.3f : 0;
        p[0] = p[1] = &how;
        t_ok(lm->step(lm->ctx, step, NULL, &st), &st);
        t_ok(lm->draw(lm->ctx, p, at, n, got, &st), &st);
        for (uint32_t i = 0; i < n; i++) {
            float *own = t_keep(calloc((size_t)lm->n_vocab, sizeof *own));
            br_sampler *s;

            memcpy(own, logits + i * (size_t)lm->n_vocab,
                   (size_t)lm->n_vocab * sizeof *own);
            t_ok(br_sampler_new(&s, lm->n_vocab, lm->n_ctx, &how, &st), &st);
            t_ok(br_sampler_pick(s, own, at[i], &want, &st), &st);
            br_sampler_free(s);
            ck_assert_int_eq(got[i], want);
        }
    }
}

/* Two slots in one step, rows of one between those of the other; slot 0 fed the
 * first one's tokens alone has its logits. */
static void
two_slots(const br_lm *lm, bool mixed, float *alone, float *both)
{
    /* slot 1: pages 3, 4; slot 2: page 5 */
    static const uint32_t page[3][2] = {{0, 1}, {3, 4}, {5, 6}};
    const uint32_t *tables[3 * BR_MAX_KV_GROUPS];
    int32_t slot[2 * N], position[2 * N], tokens[2 * N], want[2 * N] = {0};
    br_step s = {2 * N, slot, position, tokens, want, tables, false};
    br_status st = {0};

    for (uint32_t i = 0; i < 3 * lm->plan->n_groups; i++)
        tables[i] = page[i / lm->plan->n_groups];
    for (int i = 0; i < 2 * N; i++) {
        const int of = mixed ? i % 2 : i / N, at = mixed ? i / 2 : i % N;

        slot[i] = 1 + of;
        position[i] = at;
        tokens[i] = token[of ? N - 1 - at : at];
        want[i] = at == N - 1;
    }
    for (uint32_t i = 1; i < 3; i++)
        lm->reset(lm->ctx, i);
    t_ok(lm->step(lm->ctx, &s, both, &st), &st);
    ck_assert_mem_eq(both, alone, (size_t)lm->n_vocab * sizeof *both);
    ck_assert_mem_ne(both + lm->n_vocab, alone,
                     (size_t)lm->n_vocab * sizeof *both);
    if (!lm->plan->slot_elems)
        same_draws(lm, &s, both, 2);
}

static br_lm_model *
open_lm(const br_model *m, float **alone, float **both)
{
    br_lm_config c = {.tier = "cuda", .n_ctx = 32, .n_slots = 3};
    br_status st = {0};
    br_lm_model *r;
    const br_lm *lm;

    t_ok(br_lm_model_open(&r, m, &c, &st), &st);
    lm = br_lm_model_lm(r);
    ck_assert_str_eq(lm->tier, "cuda");
    ck_assert(lm->step && !lm->page);
    *alone = t_keep(calloc((size_t)lm->n_vocab, sizeof **alone));
    *both = t_keep(calloc(2 * (size_t)lm->n_vocab, sizeof **both));
    t_ok(lm->feed(lm->ctx, 0, 0, token, N, *alone, &st), &st);
    return r;
}

/* A slot that is cut and continued, too. */
TEST_WITHIN(cuda_steps_of_many_slots_agree, 60)
{
    br_status st = {0};
    br_str doc = {0};
    br_lm_model *r;
    br_model *m;
    float *alone, *both;

    t_emulate_cuda();
    t_ok(br_shape_model(&doc, "shape:toy:Q8_0", true, &st), &st);
    t_ok(br_model_open_mem(&m, doc.at, doc.n, &st), &st);
    r = open_lm(m, &alone, &both);
    const br_lm *lm = br_lm_model_lm(r);
    two_slots(lm, false, alone, both);
    lm->keep(lm->ctx, 0, 2);
    t_ok(lm->feed(lm->ctx, 0, 2, token + 2, N - 2, both, &st), &st);
    ck_assert_mem_eq(both, alone, (size_t)lm->n_vocab * sizeof *both);
    br_lm_model_close(r);
    br_model_close(m);
    br_str_fini(&doc);
    t_emulate_end();
}

/* Rows of a slot each, whose attention turns their heads and whose pieces are
 * added by who reads them: the bits of rows of one slot, by launches of their
 * own. */
static void
rows_alone(const char *spec)
{
    static const uint32_t page[3][5] = {{0}, {5, 6, 7, 8, 9}, {10, 11, 12, 13}};
    enum { LONG = 70, SHORT = 5 }; /* tokens before: two blocks of keys, one */
    const uint32_t *tables[3 * BR_MAX_KV_GROUPS];
    int32_t slot[LONG + SHORT], position[LONG + SHORT], tokens[LONG + SHORT];
    int32_t want[LONG + SHORT] = {0};
    br_lm_config c = {.tier = "cuda", .n_ctx = 80, .n_slots = 3};
    br_step s = {LONG + SHORT, slot, position, tokens, want, tables, false};
    br_status st = {0};

    shaped on = open_shape(spec, &c);
    const br_lm *lm = on.lm;
    const size_t row = (size_t)lm->n_vocab;
    float *all = t_keep(calloc(2 * row, sizeof *all));
    float *few = t_keep(calloc(2 * row, sizeof *all));
    for (uint32_t i = 0; i < 3 * lm->plan->n_groups; i++)
        tables[i] = page[i / lm->plan->n_groups];
    for (int i = 0; i < LONG + SHORT; i++) {
        slot[i] = 1 + (i >= LONG);
        position[i] = i < LONG ? i : i - LONG;
        tokens[i] = i * 37 % lm->n_vocab;
        want[i] = i == LONG - 1 || i == LONG + SHORT - 1;
    }
    t_ok(lm->step(lm->ctx, &s, all, &st), &st);
    for (int i = 0; i < 2; i++) { /* both last ones again */
        const int at = i ? LONG + SHORT - 1 : LONG - 1;

        slot[i] = slot[at];
        position[i] = position[at];
        tokens[i] = tokens[at];
    }
    s.n_rows = 2;
    s.want = NULL;
    t_ok(lm->step(lm->ctx, &s, few, &st), &st);
    ck_assert_msg(memcmp(all, few, 2 * row * sizeof *all) == 0, "%s", spec);
    close_shape(&on);
}

/* The same of more rows than are left in pieces: those of a step of few. */
static void
many_rows_alone(const char *spec)
{
    enum { MANY = 66, FEW = 3 };
    const uint32_t *tables[MANY * BR_MAX_KV_GROUPS];
    int32_t slot[MANY], position[MANY] = {0}, tokens[MANY];
    uint32_t page[MANY];
    br_lm_config c = {.tier = "cuda", .n_ctx = 80, .n_slots = MANY};
    br_step s = {MANY, slot, position, tokens, NULL, tables, false};
    br_status st = {0};

    shaped on = open_shape(spec, &c);
    const br_lm *lm = on.lm;
    const size_t row = (size_t)lm->n_vocab;
    float *all = t_keep(calloc(MANY * row, sizeof *all));
    float *few = t_keep(calloc(FEW * row, sizeof *all));
    for (uint32_t i = 0; i < MANY; i++) {
        slot[i] = (int32_t)i;
        tokens[i] = (int32_t)i;
        page[i] = i;
        for (uint32_t g = 0; g < lm->plan->n_groups; g++)
            tables[i * lm->plan->n_groups + g] = &page[i];
    }
    t_ok(lm->step(lm->ctx, &s, all, &st), &st);
    s.n_rows = FEW;
    t_ok(lm->step(lm->ctx, &s, few, &st), &st);
    ck_assert_msg(memcmp(all, few, FEW * row * sizeof *all) == 0, "%s", spec);
    close_shape(&on);
}

TEST_WITHIN(cuda_more_rows_than_pieces_agree, 60)
{
    t_emulate_cuda();
    many_rows_alone("shape:llama-256:BF16");
    t_emulate_end();
}

/* Rows at many depths, each of a slot of its own, by blocks of attention that stay
 * and take several: the bits of each one beside a single other. */
static void
rows_that_stay(const char *spec, int32_t rows)
{
    enum { MOST = 8, PAGES = 51 }; /* up to 816 tokens: 13 blocks, two rounds */
    static uint32_t page[MOST][PAGES];
    static int32_t slot[1024], position[1024], tokens[1024], want[1024];
    const uint32_t *tables[MOST * BR_MAX_KV_GROUPS];
    br_lm_config c = {
        .tier = "cuda", .n_ctx = PAGES * 16, .n_slots = (uint32_t)rows};
    br_step s = {0, slot, position, tokens, want, tables, false};
    br_status st = {0};

    shaped on = open_shape(spec, &c);
    const br_lm *lm = on.lm;
    const size_t row = (size_t)lm->n_vocab;
    float *all = t_keep(calloc(MOST * row, sizeof *all));
    float *two = t_keep(calloc(2 * row, sizeof *two));
    for (int32_t i = 0; i < rows;
         i++) { /* deeper by 13, but the last one: all */
        const int32_t n = i == rows - 1 ? PAGES * 16 - 1 : i * 13;

        for (uint32_t g = 0; g < lm->plan->n_groups; g++)
            tables[(uint32_t)i * lm->plan->n_groups + g] = page[i];
        for (uint32_t k = 0; k < PAGES; k++)
            page[i][k] = (uint32_t)i * PAGES + k;
        for (int32_t k = 0; k < n; k++, s.n_rows++) {
            slot[s.n_rows] = i;
            position[s.n_rows] = k;
            tokens[s.n_rows] = (k * 37 + i) % lm->n_vocab;
        }
        if (s.n_rows > 0)
            t_ok(lm->step(lm->ctx, &s, NULL, &st), &st);
        s.n_rows = 0;
    }
    for (int32_t i = 0; i < rows; i++) {
        slot[i] = i;
        position[i] = i == rows - 1 ? PAGES * 16 - 1 : i * 13;
        tokens[i] = i + 5;
    }
    s.want = NULL;
    s.n_rows = (uint32_t)rows;
    t_ok(lm->step(lm->ctx, &s, all, &st), &st);
    s.n_rows = 2;
    for (int32_t i = 0; i + 1 < rows; i += 3) {
        s.slot = slot + i;
        s.position = position + i;
        s.token = tokens + i;
        t_ok(lm->step(lm->ctx, &s, two, &st), &st);
        ck_assert_msg(
            memcmp(two, all + (size_t)i * row, 2 * row * sizeof *two) == 0,
            "%s: row %d", spec, i);
    }
    close_shape(&on);
}

TEST_WITHIN(cuda_rows_that_stay_agree, 240)
{
    t_emulate_cuda(); /* seven multiprocessors: more than 14 pairs stay */
    rows_that_stay("shape:llama-256:BF16", 8);
    t_emulate_end();
}

TEST_WITHIN(cuda_rows_of_slots_of_their_own_agree, 120)
{
    t_emulate_cuda();
    rows_alone("shape:llama-256:BF16");
    rows_alone("shape:qwen3-512:BF16");
    t_emulate_end();
}

/* n tokens after the prompt, the best each time; the last one drawn. */
static void
draw_tokens(const br_lm *lm, bool stays, int32_t *out, int n)
{
    br_sample_params p = {.temperature = 0, .seed = 7, .top_p = 1};
    float *logits = t_keep(calloc((size_t)lm->n_vocab, sizeof *logits));
    br_status st = {0};

    lm->keep(lm->ctx, 0, 0);
    t_ok(lm->feed(lm->ctx, 0, 0, token, N, NULL, &st), &st);
    for (int i = 0; i < n; i++) {
        p.temperature = i == n - 1 ? 1 : 0;
        t_ok(lm->pick(lm->ctx, &p, (uint64_t)(N + i), &out[i], &st), &st);
        t_ok(lm->feed(lm->ctx, 0, (uint32_t)(N + i), &out[i], 1,
                      stays ? NULL : logits, &st),
             &st);
    }
}

/* Whoever wants logits gets a launch a token; who does not, one that stays. */
TEST_WITHIN(cuda_the_launch_that_stays_gives_the_same_tokens, 120)
{
    br_lm_config c = {.tier = "cuda", .n_ctx = 128};
    int32_t one[4], stays[4];

    t_emulate_cuda();
    shaped on = open_shape("shape:llama-512:BF16", &c);
    const br_lm *lm = on.lm;
    ck_assert(lm->pick != NULL);
    draw_tokens(lm, false, one, 4);
    draw_tokens(lm, true, stays, 4);
    ck_assert_mem_eq(one, stays, sizeof one);
    close_shape(&on);
    t_emulate_end();
}

/* Two models of one process on one card, neither in the other's way. */
TEST_WITHIN(cuda_holds_two_models_at_once, 60)
{
    static const char *const specs[] = {"shape:toy:Q8_0", "shape:toy:BF16"};
    br_status st = {0};
    br_str doc[2] = {{0}};
    br_lm_model *r[2];
    br_model *m[2];
    float *logits[2], *both[2], *once;

    t_emulate_cuda();
    for (int i = 0; i < 2; i++) {
        t_ok(br_shape_model(&doc[i], specs[i], true, &st), &st);
        t_ok(br_model_open_mem(&m[i], doc[i].at, doc[i].n, &st), &st);
        r[i] = open_lm(m[i], &logits[i], &both[i]);
    }
    br_lm_model_close(r[0]); /* the other goes on */
    const br_lm *lm = br_lm_model_lm(r[1]);
    once = t_keep(calloc((size_t)lm->n_vocab, sizeof *once));
    lm->keep(lm->ctx, 0, 0);
    t_ok(lm->feed(lm->ctx, 0, 0, token, N, once, &st), &st);
    ck_assert_mem_eq(once, logits[1], (size_t)lm->n_vocab * sizeof *once);
    br_lm_model_close(r[1]);
    r[0] = open_lm(m[0], &both[0], &both[1]); /* and its place is free again */
    ck_assert_mem_eq(both[0], logits[0],
                     (size_t)m[0]->hp.n_vocab * sizeof *once);
    br_lm_model_close(r[0]);
    for (int i = 0; i < 2; i++) {
        br_model_close(m[i]);
        br_str_fini(&doc[i]);
    }
    t_emulate_end();
}

/* States: of slots that take turns, forgotten, kept and put back. */
TEST_WITHIN(cuda_slots_have_states_of_their_own, 60)
{
    const char *dir = t_vectors("logits");
    br_status st = {0};
    br_lm_model *r;
    br_model *m;
    float *alone, *both, *state;

    if (!dir)
        t_skip("no ../shared/vectors here");
    t_emulate_cuda();
    t_ok(br_model_open(&m, t_printf("%s/falcon-h1.gguf", dir), &st), &st);
    r = open_lm(m, &alone, &both);
    const br_lm *lm = br_lm_model_lm(r);
    two_slots(lm, true, alone, both);
    two_slots(lm, false, alone, both);
    state = t_keep(calloc(lm->plan->slot_elems + 1, sizeof *state));
    lm->save(lm->ctx, 1, state);
    lm->restore(lm->ctx, 0, state);
    memset(both, 0, (size_t)lm->n_vocab * sizeof *both);
    t_ok(lm->feed(lm->ctx, 0, N, token, 1, both, &st), &st);
    {
        static const uint32_t page[3][2] = {{0, 1}, {3, 4}, {5, 6}};
        const uint32_t *tables[3 * BR_MAX_KV_GROUPS];
        br_step s = {1,    &(int32_t){1}, &(int32_t){N}, token,
                     NULL, tables,        false};

        for (uint32_t i = 0; i < 3 * lm->plan->n_groups; i++)
            tables[i] = page[i / lm->plan->n_groups];
        t_ok(lm->step(lm->ctx, &s, alone, &st), &st);
    }
    ck_assert_mem_eq(both, alone, (size_t)lm->n_vocab * sizeof *both);
    br_lm_model_close(r);
    br_model_close(m);
    t_emulate_end();
}

/* Tensor cores: near the reference tier, and the same bits however a prompt is
 * cut: kernels for few rows and for many. */
static void
near_ref_by(const char *spec, uint32_t n, uint32_t step, double most)
{
    br_oracle_config rc = {.act = BR_REF_F32};
    br_oracle_config cc = {
        .gpu = {.tier = "cuda"}, .kv = BR_Q_F16, .max_rows = 128};
    static const uint32_t chunks[] = {0, 1, 3, 9}; /* 3: twelve queries */
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
        tokens[i] = (int32_t)(i * step % vocab);
    want = t_keep(calloc(n * vocab, sizeof *want));
    t_ok(br_oracle_open(&o, m, &rc, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, tokens, n, 0, want, &st), &st);
    br_oracle_close(&o);
    t_ok(br_oracle_open(&o, m, &cc, &st), &st);
    for (size_t k = 0; k < BR_COUNT(chunks); k++) {
        const uint32_t few = k ? BR_MIN(n, chunks[k] == 1 ? 4u : 9u) : n;

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

static void
near_ref(const char *spec, uint32_t n, double most)
{
    near_ref_by(spec, n, 37, most);
}

/* Models of the vectors, weights in blocks or not: tokens at once and one by
 * one. Some matrices' rows do not fill a tile, pieces of others do not meet. */
static void
alike_in_chunks(bool blocks)
{
    enum { TOKENS = 6 };
    const br_oracle_config cc = {.gpu = {.tier = "cuda"}, .kv = BR_Q_F16};
    uint32_t n = 0;

    t_emulate_cuda();
    for (size_t i = 0; i < lk_count(); i++) {
        lk_case c = lk_get(i);
        lk_run r;

        if ((strstr(c.name, "-q-") != NULL) != blocks)
            continue;
        n++;
        t_ok(lk_open(&r, &c, &cc), &r.st);
        const float *all = lk_logits(&r, &c, TOKENS, 0);
        const float *one = lk_logits(&r, &c, TOKENS, 1);
        ck_assert_msg(memcmp(all, one, TOKENS * sizeof *all * c.n_vocab) == 0,
                      "%s", c.name);
        lk_close(&r);
    }
    t_emulate_end();
    ck_assert(n || !lk_count());
    lk_end();
}

TEST_WITHIN(cuda_float_models_are_alike_in_chunks, 240)
{
    alike_in_chunks(false);
}

TEST_WITHIN(cuda_packed_models_are_alike_in_chunks, 240)
{
    alike_in_chunks(true);
}

/* Rows at the end of a prompt, whose queries fold several blocks of keys: many
 * at once, and alone or a few after all others. */
static void
same_folds(const char *spec, uint32_t n, uint32_t last)
{
    br_oracle_config cc = {
        .gpu = {.tier = "cuda"}, .kv = BR_Q_F16, .max_rows = 256};
    br_status st = {0};
    br_str doc = {0};
    int32_t tokens[256];
    br_model *m;
    br_oracle o;

    t_ok(br_shape_model(&doc, spec, true, &st), &st);
    t_ok(br_model_open_mem(&m, doc.at, doc.n, &st), &st);
    const size_t vocab = (size_t)m->hp.n_vocab, size = vocab * sizeof(float);
    float *all = t_keep(calloc(n, size)), *end = t_keep(calloc(last, size));
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (int32_t)(i * 41 % vocab);
    t_ok(br_oracle_open(&o, m, &cc, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, tokens, n, 0, all, &st), &st);
    for (uint32_t chunk = 1; chunk <= 4; chunk += 3) {
        t_ok(br_oracle_feed(&o, 0, n - last, tokens + n - last, last, chunk,
                            end, &st),
             &st);
        ck_assert_msg(memcmp(end, all + (n - last) * vocab, last * size) == 0,
                      "%s: chunks of %u", spec, chunk);
    }
    br_oracle_close(&o);
    br_model_close(m);
    br_str_fini(&doc);
}

TEST_WITHIN(cuda_nodes_fold_keys_alike, 240)
{
    t_emulate_cuda();
    same_folds("shape:llama-512:BF16", 150, 5);
    same_folds("shape:qwen3-512:BF16", 200, 5);
    t_emulate_end();
}

TEST_WITHIN(cuda_nodes_on_tensor_cores_are_near, 120)
{
    t_emulate_cuda();
    near_ref("shape:llama-512:BF16", 34, 1e-5);
    near_ref("shape:llama-256:BF16", 9, 1e-5);
    near_ref("shape:llama-2112:BF16", 9, 1e-5); /* no short rows */
    near_ref("shape:qwen3-512:BF16", 10, 1e-5);
    t_emulate_end();
}

/* Weights in blocks, of each form of packed tiles, and all formats that become
 * one: activations are not rounded to 8 bits, so the reference has none either. A
 * kernel for each number of rows. */
TEST_WITHIN(cuda_nodes_of_packed_weights_are_near, 240)
{
    t_emulate_cuda();
    near_ref("shape:llama-512:Q8_0", 34, 5e-6);
    near_ref("shape:llama-512:Q4_K_M", 70, 5e-6); /* and Q6_K */
    near_ref("shape:llama-512:Q5_K_S", 9, 5e-6);
    near_ref("shape:llama-256:Q4_0", 9, 5e-6); /* rows fill no tile */
    near_ref("shape:llama-256:Q4_1", 9, 5e-6);
    near_ref("shape:llama-256:Q5_0", 9, 5e-6);
    near_ref("shape:qwen3-512:Q5_1", 100, 5e-6);
    t_emulate_end();
}

/* Experts that stay packed, each form of them, by pairs (up to five rows) and by
 * lists: a kernel for few, some and many rows of one; more experts than a warp has
 * lanes; rows that fill no tile, columns in formats of their own. */
TEST_WITHIN(cuda_experts_of_packed_weights_are_near, 240)
{
    t_emulate_cuda();
    near_ref("shape:qwen3moe-256:MXFP4", 34, 5e-6);
    near_ref("shape:qwen3moe-256:Q4_K_M", 128, 5e-6);
    near_ref("shape:qwen3moe-256:Q8_0", 70, 5e-6);
    near_ref("shape:qwen3moe-256:Q6_K", 9, 5e-6);
    near_ref("shape:qwen3moe-128:Q4_0", 40, 5e-6);
    t_emulate_end();
}

TEST_WITHIN(cuda_experts_of_floats_are_near, 240)
{
    t_emulate_cuda();
    near_ref("shape:qwen3moe-256:BF16", 128, 1e-5);
    near_ref("shape:qwen3moe-128:F16", 34, 1e-5);
    t_emulate_end();
}

TEST_WITHIN(cuda_experts_of_mxfp4_are_near, 240)
{
    t_emulate_cuda();
    near_ref("shape:qwen3moe-256:MXFP4", 128, 5e-6);
    near_ref("shape:qwen3moe-128:MXFP4", 70, 5e-6);
    t_emulate_end();
}

/* Numbers of eight bits stay so on the device, of matrices that all rows pass and of
 * experts: by pairs and by lists, the head, too. */
TEST_WITHIN(cuda_weights_of_eight_bits_are_near, 240)
{
    t_emulate_cuda();
    near_ref("shape:llama-256:F8_E4M3", 40, 5e-6);
    near_ref("shape:qwen3-512:F8_E5M2", 9, 5e-6);
    near_ref("shape:qwen3moe-256:F8_E4M3", 34, 5e-6);
    t_emulate_end();
}

/* One token again and again: all rows pick the same experts, so that these have parts
 * one after another, none full or all, and nobody asks the others. */
TEST_WITHIN(cuda_experts_that_all_rows_pick_are_near, 240)
{
    t_emulate_cuda();
    near_ref_by("shape:qwen3moe-128:MXFP4", 128, 0, 5e-6);
    near_ref_by("shape:qwen3moe-256:Q8_0", 97, 0, 5e-6);
    near_ref_by("shape:qwen3moe-128:F16", 33, 0, 1e-5);
    t_emulate_end();
}

static br_code
open_with(const br_model *m, uint64_t memory, br_status *st)
{
    br_oracle_config cc = {
        .gpu = {.tier = "cuda"}, .kv = BR_Q_F16, .gpu_memory = memory};
    br_oracle o;
    br_code code = br_oracle_open(&o, m, &cc, st);

    if (code == BR_OK)
        br_oracle_close(&o);
    return code;
}

/* Logits of a few tokens by lists and by pairs, with so much memory; what it took. */
static br_cun_costs
costs_with(const br_model *m, uint64_t memory, float *logits)
{
    br_oracle_config cc = {
        .gpu = {.tier = "cuda"}, .gpu_memory = memory, .kv = BR_Q_F16};
    const int32_t tokens[] = {3, 1, 7, 9, 2, 5, 11, 100, 4};
    const size_t vocab = (size_t)m->hp.n_vocab;
    br_status st = {0};
    br_cun_costs c;
    br_oracle o;

    t_ok(br_oracle_open(&o, m, &cc, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, tokens, 8, 0, logits, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 8, tokens + 8, 1, 0, logits + 8 * vocab, &st),
         &st);
    c = br_cun_costs_of(o.cun);
    br_oracle_close(&o);
    return c;
}

/* The least memory that the model runs with. */
static uint64_t
least_of(const br_model *m)
{
    uint64_t low = 0, high = UINT64_C(1) << 30;
    br_status st = {0};

    while (high - low > 1) {
        const uint64_t mid = low + (high - low) / 2;
        const br_code code = open_with(m, mid, &st);

        ck_assert_msg(code == BR_OK || code == BR_E_OOM, "%s", st.msg);
        *(code == BR_OK ? &high : &low) = mid;
    }
    return high;
}

/* Experts that do not fit stay in the host's memory, op by op: the same bits, and
 * so many bytes less of the device's. */
static void
experts_in_host(const char *spec)
{
    br_status st = {0};
    br_str doc = {0};
    br_model *m;

    t_ok(br_shape_model(&doc, spec, true, &st), &st);
    t_ok(br_model_open_mem(&m, doc.at, doc.n, &st), &st);
    const size_t n = 9 * (size_t)m->hp.n_vocab;
    float *near = t_keep(calloc(n, sizeof *near));
    float *far = t_keep(calloc(n, sizeof *far));
    const br_cun_costs all = costs_with(m, 0, near);
    ck_assert_uint_eq(all.host, 0);
    ck_assert_uint_eq(all.host_ops, 0);
    ck_assert_uint_gt(all.experts, 0);
    const br_cun_costs none = costs_with(m, least_of(m), far);
    ck_assert_mem_eq(near, far, n * sizeof *near);
    ck_assert_uint_eq(all.weight_allocations, 2); /* one a class */
    ck_assert_uint_eq(none.weight_allocations, 1);
    ck_assert_uint_eq(none.experts, 0);
    ck_assert_uint_eq(none.host, all.experts);
    ck_assert_uint_eq(none.weights, all.weights - all.experts);
    ck_assert_uint_eq(none.rest, all.rest);
    ck_assert_uint_eq(none.host_ops, 2);
    /* room for one op's, and a byte less than for both */
    const uint64_t lots = UINT64_C(1) << 40;
    const br_cun_costs with = costs_with(m, lots, far);
    ck_assert_uint_eq(with.host_ops, 0);
    const br_cun_costs some =
        costs_with(m, lots - with.left + all.experts - 1, far);
    ck_assert_mem_eq(near, far, n * sizeof *near);
    ck_assert_uint_eq(some.left, all.experts - 1);
    ck_assert_uint_eq(some.host_ops, 1);
    ck_assert_uint_eq(some.host + some.experts, all.experts);
    ck_assert_uint_gt(some.experts, 0);
    ck_assert_uint_eq(
        costs_with(m, lots - with.left + all.experts, far).host_ops, 0);
    br_model_close(m);
    br_str_fini(&doc);
}

TEST_WITHIN(cuda_experts_that_do_not_fit_stay_in_the_hosts_memory, 240)
{
    t_emulate_cuda();
    experts_in_host("shape:qwen3moe-256:MXFP4");
    experts_in_host("shape:qwen3moe-256:Q4_K_M");
    experts_in_host("shape:qwen3moe-128:BF16");
    t_emulate_end();
}

typedef struct far_model {
    br_model *m;
    uint64_t memory;
} far_model;

static br_code
open_far(void *ctx, br_status *st)
{
    const far_model *f = ctx;

    return open_with(f->m, f->memory, st);
}

/* Each call for memory of the device, or of the host that the device reads, fails
 * once: an error of memory, and nothing is left (the emulated device looks). */
TEST_WITHIN(cuda_experts_give_back_what_they_had_of_too_little_memory, 240)
{
    br_oracle_config cc = {.gpu = {.tier = "cuda"}, .kv = BR_Q_F16};
    br_code code = BR_E_OOM;
    br_str doc = {0};
    br_status st = {0};
    br_model *m;
    br_oracle o;
    int n = 0;

    t_emulate_cuda();
    t_ok(br_shape_model(&doc, "shape:qwen3moe-128:MXFP4", true, &st), &st);
    t_ok(br_model_open_mem(&m, doc.at, doc.n, &st), &st);
    far_model far = {m, least_of(m)};
    for (int none = 0; none < 2; none++) {
        cc.gpu_memory = none ? far.memory : 0; /* of experts on the device */
        for (n = 1; n < 1000; n++) {
            ck_assert_int_eq(setenv("BR_EMU_NO_MEMORY", t_printf("%d", n), 1),
                             0);
            st = (br_status){0};
            code = br_oracle_open(&o, m, &cc, &st);
            if (code == BR_OK)
                break;
            ck_assert_msg(code == BR_E_OOM && st.msg[0], "call %d: %s: %s", n,
                          br_code_name(code), st.msg);
        }
        t_ok(code, &st);
        br_oracle_close(&o);
        ck_assert_int_gt(n, 20);
    }
    unsetenv("BR_EMU_NO_MEMORY");
    t_each_oom(open_far, &far);
    br_model_close(m);
    br_str_fini(&doc);
    t_emulate_end();
}

/* A model like that of g, with experts of so many rows (0: as they are), five of them, and
 * so many layers, all as g's first: in memory that is never read. NULL where there are no
 * addresses for it. */
static uint8_t *
model_like(const br_gguf *g, const char *arch, uint32_t rows, uint32_t layers,
           size_t *n)
{
    enum { FEW = 5 }; /* experts, as many as a token picks */
    br_gguf_writer *w = br_gguf_w_new();
    br_status st = {0};
    br_str head = {0};
    uint8_t *p;

    ck_assert_ptr_nonnull(w);
    for (size_t i = 0; i < br_gguf_n_kv(g); i++)
        br_gguf_w_copy(w, br_gguf_kv_at(g, i));
    br_gguf_w_u32(w, t_printf("%s.block_count", arch), layers);
    if (rows) {
        br_gguf_w_u32(w, "qwen3moe.expert_feed_forward_length", rows);
        br_gguf_w_u32(w, "qwen3moe.expert_count", FEW);
    }
    *n = 0;
    for (size_t i = 0; i < br_gguf_n_tensors(g); i++) {
        const br_gguf_tensor *t = br_gguf_tensor_at(g, i);
        const bool layer = t->name.n > 6 && memcmp(t->name.p, "blk.0.", 6) == 0;
        br_gguf_w_info info = {t->name, t->type, t->n_dims, {0}};
        uint64_t bytes, elems = 1;

        memcpy(info.dim, t->dim, sizeof info.dim);
        if (rows && t->n_dims > 1 && t->dim[t->n_dims - 1] == 40)
            info.dim[t->n_dims - 1] = FEW;
        if (rows && t->n_dims == 3)
            info.dim[t->dim[1] == 64 ? 1 : 0] = rows; /* down has columns */
        for (uint32_t d = 0; d < t->n_dims; d++)
            elems *= info.dim[d];
        ck_assert(br_qtype_bytes(t->type, elems, &bytes));
        for (uint32_t l = 0; l < (layer ? layers : 1); l++) {
            if (layer)
                info.name = br_text_z(t_printf(
                    "blk.%u.%.*s", l, (int)t->name.n - 6, t->name.p + 6));
            *n += (bytes + 31) / 32 * 32;
            br_gguf_w_tensor(w, &info);
        }
    }
    t_ok(br_gguf_w_begin_mem(w, &head, &st), &st);
    *n += (head.n + 31) / 32 * 32;
    p = mmap(NULL, *n, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p != MAP_FAILED)
        memcpy(p, head.at, head.n);
    br_gguf_w_free(w);
    br_str_fini(&head);
    return p == MAP_FAILED ? NULL : p;
}

/* What a row of a step takes in scratch, and so a slot that makes tokens: 256 KB at most
 * of all shapes but 70B's (three rows of 28,672 numbers about its GLU). */
TEST_WITHIN(cuda_rows_take_little_scratch, 120)
{
    enum { MOST = 256 << 10, ROWS = 3 };
    t_emulate_cuda();
    for (size_t i = 0; br_shape_name(i); i++) {
        br_cun_costs c = {0};
        br_cun_config cc = {.n_slots = 1,
                            .n_ctx = 4096,
                            .n_pages = {1, 1, 1, 1},
                            .max_rows = ROWS,
                            .max_want = 1,
                            .memory = 1,
                            .plan = &c};
        br_status st = {0};
        br_str doc = {0};
        br_cun *x;
        br_model *one, *m;
        br_ir *g;
        size_t n;

        t_ok(br_shape_model(&doc, t_printf("shape:%s:Q4_0", br_shape_name(i)),
                            true, &st),
             &st);
        t_ok(br_model_open_mem(&one, doc.at, doc.n, &st), &st);
        uint8_t *p = model_like(one->gguf, one->arch->name, 0, 4, &n);
        if (!p)
            t_skip("no room for so many addresses");
        t_ok(br_model_open_mem(&m, p, n, &st), &st);
        t_ok(br_ir_of_model(&g, m, BR_IR_PREFILL, cc.n_ctx, &st), &st);
        ck_assert_int_eq(br_cun_open(&x, m, g, &cc, &st), BR_E_OOM);
        ck_assert_uint_gt(c.row, 0);
        ck_assert_msg(c.row <= (strstr(br_shape_name(i), "70b") ? 2 : 1) * MOST,
                      "%s: %zu bytes", br_shape_name(i), (size_t)c.row);
        br_ir_free(g);
        br_model_close(m);
        munmap(p, n);
        br_model_close(one);
        br_str_fini(&doc);
    }
    t_emulate_end();
}

/* A byte less than what is not experts: said before a matrix is sent, with all that
 * counts; nothing is left of it. So of a model without experts, by either way. */
TEST_WITHIN(cuda_says_what_does_not_fit, 120)
{
    static const char *const specs[] = {"shape:qwen3moe-128:MXFP4",
                                        "shape:llama-512:BF16"};
    br_status st = {0};

    t_emulate_cuda();
    for (size_t i = 0; i < BR_COUNT(specs); i++) {
        br_lm_config c = {.tier = "cuda", .n_ctx = 64, .gpu_memory = 1 << 20};
        br_lm_model *lm;
        br_str doc = {0};
        br_model *m;

        t_ok(br_shape_model(&doc, specs[i], true, &st), &st);
        t_ok(br_model_open_mem(&m, doc.at, doc.n, &st), &st);
        const uint64_t least = least_of(m);
        st = (br_status){0};
        ck_assert_int_eq(open_with(m, least - 1, &st), BR_E_OOM);
        ck_assert_msg(
            strstr(st.msg, " MB are needed, ") &&
                strstr(st.msg, t_printf("%.1f MB are given (--gpu-memory)",
                                        (double)(least - 1) / (1 << 20))),
            "%s", st.msg);
        ck_assert((strstr(st.msg, "0.9 MB of experts can stay in the host's") !=
                   NULL) == (i == 0));
        st = (br_status){0};
        ck_assert_int_eq(br_lm_model_open(&lm, m, &c, &st), BR_E_OOM);
        ck_assert_ptr_nonnull(strstr(st.msg, "--gpu-memory"));
        st = (br_status){0};
        br_model_close(m);
        br_str_fini(&doc);
    }
    t_emulate_end();
}

/* More rows than a launch has tiles for are named, before anything is allocated. */
TEST_WITHIN(cuda_names_matrices_of_too_many_rows, 60)
{
    br_model *m, *wide;
    br_status st = {0};
    br_str doc = {0};
    uint8_t *p;
    size_t n;

    t_emulate_cuda();
    t_ok(br_shape_model(&doc, "shape:qwen3moe-128:MXFP4", true, &st), &st);
    t_ok(br_model_open_mem(&m, doc.at, doc.n, &st), &st);
    p = model_like(m->gguf, "qwen3moe", 65535 * 128 + 64, 1, &n);
    if (!p)
        t_skip("no room for so many addresses");
    t_ok(br_model_open_mem(&wide, p, n, &st), &st);
    ck_assert_int_eq(open_with(wide, 0, &st), BR_E_LIMIT);
    ck_assert_str_eq(st.msg, "blk.0.ffn_gate_exps.weight: 8388544 rows; tier "
                             "cuda takes up to 8388480 of its format");
    br_model_close(wide);
    munmap(p, n);
    br_model_close(m);
    br_str_fini(&doc);
    t_emulate_end();
}

/* What is drawn has its memory within the limit, too; nothing goes beyond it. */
TEST_WITHIN(cuda_stays_within_the_memory_that_is_given, 120)
{
    br_status st = {0};
    br_str doc = {0};
    br_model *m;

    t_emulate_cuda();
    t_ok(br_shape_model(&doc, "shape:qwen3moe-128:Q4_0", true, &st), &st);
    t_ok(br_model_open_mem(&m, doc.at, doc.n, &st), &st);
    br_oracle_config cc = {
        .gpu = {.tier = "cuda"}, .kv = BR_Q_F16, .gpu_memory = least_of(m)};
    br_oracle o;
    t_ok(br_oracle_open(&o, m, &cc, &st), &st);
    const int32_t slot = 0, position = 0, first = 3;
    br_step s = {1, &slot, &position, &first, NULL, NULL, false};
    const br_cun_pick p = {.seed = 1, .temperature = 1, .top_p = 1};
    int32_t got = -1;
    t_ok(br_oracle_step(&o, &s, BR_IR_DECODE, NULL, &st), &st);
    t_ok(br_cun_draw(o.cun, &p, 1, &got, &st), &st);
    ck_assert(got >= 0 && got < m->hp.n_vocab);
    ck_assert_uint_le(br_cun_costs_of(o.cun).all, cc.gpu_memory);
    br_oracle_close(&o);
    br_model_close(m);
    br_str_fini(&doc);
    t_emulate_end();
}

/* Experts stay packed: bits a weight on the device. */
TEST_WITHIN(cuda_experts_take_no_more_than_packed, 60)
{
    static const struct {
        const char *type;
        double bits;
    } form[] = {{"MXFP4", 4.5}, {"Q4_0", 5}, {"Q8_0", 9}, {"Q6_K", 9}};
    br_status st = {0};

    t_emulate_cuda();
    for (size_t i = 0; i < BR_COUNT(form); i++) {
        /* of eight; 192 rows fill two tiles of 128 but for 64 */
        const double weights = 8 * (2 * 256. * 256 + 256. * 192);
        br_str doc = {0};
        br_model *m;
        float *logits;

        t_ok(br_shape_model(&doc,
                            t_printf("shape:qwen3moe-256:%s", form[i].type),
                            true, &st),
             &st);
        t_ok(br_model_open_mem(&m, doc.at, doc.n, &st), &st);
        logits = t_keep(calloc(9 * (size_t)m->hp.n_vocab, sizeof *logits));
        const br_cun_costs c = costs_with(m, 0, logits);
        ck_assert_uint_eq(c.experts, (uint64_t)(weights * form[i].bits / 8));
        br_model_close(m);
        br_str_fini(&doc);
    }
    t_emulate_end();
}

/* Where memory went, and that packed weights stay packed: Q4_0 has 4.5 bits in a
 * file and 5 on the device, with a factor a row and rows that fill no tile. */
TEST_WITHIN(cuda_tells_what_a_model_takes, 60)
{
    br_oracle_config cc = {.gpu = {.tier = "cuda"}, .kv = BR_Q_F16};
    const int32_t tokens[] = {3, 1, 7};
    br_status st = {0};
    br_str doc = {0};
    br_model *m;
    br_oracle o;

    t_emulate_cuda();
    t_ok(br_shape_model(&doc, "shape:llama-512:Q4_0", true, &st), &st);
    t_ok(br_model_open_mem(&m, doc.at, doc.n, &st), &st);
    t_ok(br_oracle_open(&o, m, &cc, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, tokens, 3, 1, NULL, &st), &st);
    const br_cun_costs c = br_cun_costs_of(o.cun);
    ck_assert_uint_eq(c.steps, 3);
    ck_assert_uint_gt(c.submit_ns, 0);
    ck_assert_uint_gt(c.load_ns, 0);
    ck_assert_uint_gt(c.load_bytes, doc.n / 2);
    ck_assert_uint_le(c.load_bytes, doc.n);
    ck_assert_uint_gt(c.weights, c.load_bytes);
    ck_assert_uint_lt(c.weights, c.load_bytes * 5 / 4);
    ck_assert_uint_eq(c.weight_allocations, 1);
    ck_assert_uint_gt(c.pages, 0);
    ck_assert_uint_eq(c.states, 0);
    ck_assert_uint_lt(c.rest, UINT64_C(1) << 32); /* nothing counted twice */
    br_oracle_close(&o);
    br_model_close(m);
    br_str_fini(&doc);
    t_emulate_end();
}
