/* test_cuda_nodes.c - the CUDA tier node by node, on the emulated device of
 * tests/emu: the kernels' own text, here without a GPU.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "logits_kit.h"
#include "shape_kit.h"

#include "base/thread.h"
#include "model/gguf_write.h"
#include "run/sample.h"
#include "run/shape.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

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

static void
one_expert(br_gguf_writer *w)
{
    br_gguf_w_u32(w, "deepseek2.expert_used_count", 1);
}
static void
one_of_a_group(br_gguf_writer *w)
{
    one_expert(w);
    br_gguf_w_u32(w, "deepseek2.expert_group_count", 2);
    br_gguf_w_u32(w, "deepseek2.expert_group_used_count", 1);
}

/* A DeepSeek V2: whose best expert is the best of all is the best group. */
TEST_WITHIN(cuda_groups_without_a_bias_go_by_their_best, 60)
{
    br_oracle_config cuda = {.gpu = {.tier = "cuda"}, .exact = true};
    const struct {
        void (*set)(br_gguf_writer *w);
        const br_oracle_config *how;
    } runs[] = {{one_expert, &exact_ref},
                {one_of_a_group, &exact_ref},
                {one_of_a_group, &cuda}};
    const float *one = NULL, *got;
    lk_case c;
    lk_run r;

    if (lk_find("deepseek2") == lk_count())
        t_skip("no ../shared/vectors here");
    t_emulate_cuda();
    for (size_t i = 0; i < BR_COUNT(runs); i++) {
        c = lk_get(lk_find("deepseek2"));
        lk_rewrite(&c, runs[i].set);
        t_ok(lk_open(&r, &c, runs[i].how), &r.st);
        got = lk_logits(&r, &c, c.n_tokens, 0);
        lk_close(&r);
        if (i > 0)
            lk_same(&c, got, one, "a group");
        else
            one = got;
    }
    t_emulate_end();
    lk_end();
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
        t_ok(lm->draw(lm->ctx, step, p, at, n, got, &st), &st);
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
    br_step s = {2 * N, slot, position, tokens, want, tables, false, NULL};
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
    br_lm_model *r;
    float *alone, *both;

    t_emulate_cuda();
    shaped on = open_shape_file("shape:toy:Q8_0");
    r = open_lm(on.m, &alone, &both);
    const br_lm *lm = br_lm_model_lm(r);
    two_slots(lm, false, alone, both);
    lm->keep(lm->ctx, 0, 2);
    t_ok(lm->feed(lm->ctx, 0, 2, token + 2, N - 2, both, &st), &st);
    ck_assert_mem_eq(both, alone, (size_t)lm->n_vocab * sizeof *both);
    br_lm_model_close(r);
    close_shape(&on);
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
    br_step s = {LONG + SHORT, slot,   position, tokens,
                 want,         tables, false,    NULL};
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
    br_step s = {MANY, slot, position, tokens, NULL, tables, false, NULL};
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

enum { NO_NUMBER = 255 }; /* the token of which nothing is one */

static shaped
open_with_no_number(const char *spec, const br_lm_config *c)
{
    br_status st = {0};
    shaped on = open_shape_file(spec);
    const br_gguf_tensor *t = br_model_tensor(on.m, BR_W_EMBED, 0);
    const size_t row = (size_t)t->dim[0] * 2; /* BF16 */
    memset(on.doc.at + ((const char *)t->data - on.doc.at) + NO_NUMBER * row,
           0xff, row);
    t_ok(br_lm_model_open(&on.r, on.m, c, &st), &st);
    on.lm = br_lm_model_lm(on.r);
    return on;
}

/* Rows at many depths, each of a slot of its own, by blocks of attention that stay
 * and take several: the bits of each one beside its own last one, which do not stay. Pages have
 * what another sequence left there: no numbers. */
static void
rows_that_stay(const char *spec, int32_t rows, int32_t deeper)
{
    enum { MOST = 40, PAGES = 51 /* 816 tokens: 13 blocks, two rounds */ };
    static uint32_t page[MOST][PAGES];
    static int32_t slot[1024], position[1024], tokens[1024], want[1024];
    const uint32_t *tables[MOST * BR_MAX_KV_GROUPS];
    br_lm_config c = {
        .tier = "cuda", .n_ctx = PAGES * 16, .n_slots = (uint32_t)rows};
    br_step s = {0, slot, position, tokens, want, tables, false, NULL};
    br_status st = {0};

    shaped on = open_with_no_number(spec, &c);
    const br_lm *lm = on.lm;
    const size_t row = (size_t)lm->n_vocab;
    float *all = t_keep(calloc(MOST * row, sizeof *all));
    float *two = t_keep(calloc(2 * row, sizeof *two));
    for (int32_t i = 0; i < rows; i++) { /* the last one: all */
        const int32_t n = i == rows - 1 ? PAGES * 16 - 1 : i * deeper;

        for (uint32_t g = 0; g < lm->plan->n_groups; g++)
            tables[(uint32_t)i * lm->plan->n_groups + g] = page[i];
        for (uint32_t k = 0; k < PAGES; k++)
            page[i][k] = (uint32_t)i * PAGES + k;
        for (int32_t k = 0; k < BR_MIN(n + 20, PAGES * 16); k++, s.n_rows++) {
            slot[s.n_rows] = i;
            position[s.n_rows] = k;
            tokens[s.n_rows] = NO_NUMBER;
        }
        t_ok(lm->step(lm->ctx, &s, NULL, &st), &st); /* and what pages had */
        s.n_rows = (uint32_t)n;
        for (int32_t k = 0; k < n; k++)
            tokens[k] = (k * 37 + i) % NO_NUMBER;
        if (s.n_rows > 0)
            t_ok(lm->step(lm->ctx, &s, NULL, &st), &st);
        s.n_rows = 0;
    }
    for (int32_t i = 0; i < rows; i++) {
        slot[i] = i;
        position[i] = i == rows - 1 ? PAGES * 16 - 1 : i * deeper;
        tokens[i] = i + 5;
    }
    s.want = NULL;
    s.n_rows = (uint32_t)rows;
    t_ok(lm->step(lm->ctx, &s, all, &st), &st);
    s.n_rows = 2; /* with the one before it: not by blocks that stay */
    for (int32_t i = 1; i < rows; i += i < rows - 3 ? 3 : 1) {
        const int32_t at = position[i], tok = tokens[i];

        s.slot = (int32_t[]){i, i};
        s.position = (int32_t[]){at - 1, at};
        s.token = (int32_t[]){((at - 1) * 37 + i) % NO_NUMBER, tok};
        t_ok(lm->step(lm->ctx, &s, two, &st), &st);
        ck_assert_msg(
            memcmp(two + row, all + (size_t)i * row, row * sizeof *two) == 0,
            "%s: row %d", spec, i);
    }
    close_shape(&on);
}

/* The same on a device that has this otherwise. */
static void
rows_that_stay_where(const char *name, const char *value, const char *spec,
                     int32_t rows, int32_t deeper)
{
    ck_assert_int_eq(setenv(name, value, 1), 0);
    rows_that_stay(spec, rows, deeper);
    unsetenv(name);
}

TEST_WITHIN(cuda_rows_that_stay_agree, 240)
{
    t_emulate_cuda(); /* seven multiprocessors: more than 14 pairs stay */
    rows_that_stay("shape:llama-256:BF16", 8, 13);
    /* eight pairs a block */
    rows_that_stay_where("BR_EMU_SM", "2", "shape:llama-256:BF16", 8, 13);
    t_emulate_end();
}

/* So many that the product before calls their keys: pages of it that are there. Some
 * warps are slower than others. */
TEST_WITHIN(cuda_rows_that_stay_and_are_called_agree, 240)
{
    t_emulate_cuda();
    rows_that_stay_where("BR_EMU_UNEVEN", "1", "shape:llama-256:BF16", 40, 3);
    t_emulate_end();
}

TEST_WITHIN(cuda_rows_of_long_heads_that_stay_agree, 240)
{
    t_emulate_cuda();
    rows_that_stay_where("BR_EMU_SM", "2", "shape:qwen3-512:BF16", 6, 13);
    t_emulate_end();
}

TEST_WITHIN(cuda_rows_of_slots_of_their_own_agree, 120)
{
    t_emulate_cuda();
    rows_alone("shape:llama-256:BF16");
    rows_alone("shape:qwen3-512:BF16");
    rows_alone("shape:llama-2112:BF16"); /* a norm by eight, and by one */
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

/* A token whose logits nobody asks for is a step that comes with the draw: one that is
 * drawn next, that another token follows, or that is taken back before. */
static void
draw_warm(const br_lm *lm, float *logits, int32_t *out, int n, float *end)
{
    const br_sample_params p = {.temperature = 1, .seed = 7, .top_p = 1};
    uint32_t at = N;
    br_status st = {0};

    lm->keep(lm->ctx, 0, 0);
    t_ok(lm->feed(lm->ctx, 0, 0, token, N, logits, &st), &st);
    for (int i = 0; i < n; i++) {
        const int32_t other = (i * 29 + 3) % lm->n_vocab;

        t_ok(lm->pick(lm->ctx, &p, at, &out[i], &st), &st);
        if (i % 3 == 1) {
            t_ok(lm->feed(lm->ctx, 0, at, &other, 1, logits, &st), &st);
            ck_assert_uint_eq(lm->keep(lm->ctx, 0, at), at);
        }
        t_ok(lm->feed(lm->ctx, 0, at++, &out[i], 1, logits, &st), &st);
        if (i % 3 == 2)
            t_ok(lm->feed(lm->ctx, 0, at++, &other, 1, logits, &st), &st);
    }
    t_ok(lm->feed(lm->ctx, 0, at, out, 1, end, &st),
         &st); /* of all before it */
}

/* Of the emulated device, which is open. */
static unsigned
graph_launches(void)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    unsigned (*count)(void);
    void *p = lib ? dlsym(lib, "emu_graph_launches") : NULL;

    ck_assert_ptr_nonnull(p);
    memcpy(&count, &p, sizeof p);
    dlclose(lib);
    return count();
}

TEST_WITHIN(cuda_a_step_and_its_draw_are_one_launch, 120)
{
    enum { DRAWN = 4 };
    const br_sample_params p = {.temperature = 1, .seed = 7, .top_p = 1};
    br_lm_config c = {.tier = "cuda", .n_ctx = 128};
    int32_t two[DRAWN], one[DRAWN], next;
    br_status st = {0};

    t_emulate_cuda();
    shaped on = open_shape("shape:llama-512:BF16", &c);
    const br_lm *lm = on.lm;
    const size_t n = (size_t)lm->n_vocab;
    float *logits = t_keep(calloc(3 * n, sizeof *logits));
    draw_warm(lm, NULL, one, DRAWN, logits + 2 * n);
    draw_warm(lm, logits, two, DRAWN, logits + n);
    ck_assert_mem_eq(two, one, sizeof two);
    ck_assert_mem_eq(logits + n, logits + 2 * n, n * sizeof *logits);
    for (unsigned by_itself = 0; by_itself < 2; by_itself++) {
        const unsigned before = graph_launches();

        lm->keep(lm->ctx, 0, N);
        t_ok(lm->feed(lm->ctx, 0, N, one, 1, by_itself ? logits : NULL, &st),
             &st);
        t_ok(lm->pick(lm->ctx, &p, N + 1, &next, &st), &st);
        ck_assert_uint_eq(graph_launches() - before, 1 + by_itself);
    }
    close_shape(&on);
    t_emulate_end();
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

typedef struct mover {
    const br_lm *lm;
    int32_t out[4];
} mover;

static void
draw_elsewhere(void *arg)
{
    mover *m = arg;

    draw_tokens(m->lm, true, m->out, 4);
}

/* One thread at a time, but not the same one: opened, asked, asked while the launch stays, and
 * closed. */
TEST_WITHIN(cuda_a_sequence_moves_between_threads, 120)
{
    br_lm_config c = {.tier = "cuda", .n_ctx = 128};
    mover all[2] = {{0}};
    int32_t here[4];
    br_thread thread;
    br_status st = {0};

    t_emulate_cuda();
    shaped on = open_shape("shape:llama-512:BF16", &c);
    draw_tokens(on.lm, true, here, 4);
    for (int i = 0; i < 2; i++) {
        all[i].lm = on.lm;
        t_ok(br_thread_start(&thread, "draws", draw_elsewhere, &all[i], &st),
             &st);
        br_thread_join(&thread);
        ck_assert_mem_eq(here, all[i].out, sizeof here);
    }
    close_shape(&on);
    t_emulate_end();
}

/* Two models of one process on one card, neither in the other's way. */
TEST_WITHIN(cuda_holds_two_models_at_once, 60)
{
    static const char *const specs[] = {"shape:toy:Q8_0", "shape:toy:BF16"};
    br_lm_model *r[2];
    br_status st = {0};
    shaped on[2];
    float *logits[2], *both[2], *once;

    t_emulate_cuda();
    for (int i = 0; i < 2; i++) {
        on[i] = open_shape_file(specs[i]);
        r[i] = open_lm(on[i].m, &logits[i], &both[i]);
    }
    br_lm_model_close(r[0]); /* the other goes on */
    const br_lm *lm = br_lm_model_lm(r[1]);
    once = t_keep(calloc((size_t)lm->n_vocab, sizeof *once));
    lm->keep(lm->ctx, 0, 0);
    t_ok(lm->feed(lm->ctx, 0, 0, token, N, once, &st), &st);
    ck_assert_mem_eq(once, logits[1], (size_t)lm->n_vocab * sizeof *once);
    br_lm_model_close(r[1]);
    r[0] =
        open_lm(on[0].m, &both[0], &both[1]); /* and its place is free again */
    ck_assert_mem_eq(both[0], logits[0],
                     (size_t)on[0].m->hp.n_vocab * sizeof *once);
    br_lm_model_close(r[0]);
    for (int i = 0; i < 2; i++)
        close_shape(&on[i]);
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
                     NULL, tables,        false,         NULL};

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
    double e = 0, s = 0;
    int32_t tokens[128];
    float *want, *got[BR_COUNT(chunks)];
    br_oracle o;

    shaped on = open_shape_file(spec);
    size_t vocab = (size_t)on.m->hp.n_vocab;
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (int32_t)(i * step % vocab);
    want = t_keep(calloc(n * vocab, sizeof *want));
    t_ok(br_oracle_open(&o, on.m, &rc, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, tokens, n, 0, want, &st), &st);
    br_oracle_close(&o);
    t_ok(br_oracle_open(&o, on.m, &cc, &st), &st);
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
    close_shape(&on);
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
    br_oracle_config cc = {.gpu = {.tier = "cuda"},
                           .kv = BR_Q_F16,
                           .max_rows = 256,
                           .n_ctx = 1024};
    br_status st = {0};
    int32_t tokens[1024];
    br_oracle o;

    shaped on = open_shape_file(spec);
    const size_t vocab = (size_t)on.m->hp.n_vocab, size = vocab * sizeof(float);
    float *all = t_keep(calloc(n, size)), *end = t_keep(calloc(last, size));
    for (uint32_t i = 0; i < n; i++)
        tokens[i] = (int32_t)(i * 41 % vocab);
    t_ok(br_oracle_open(&o, on.m, &cc, &st), &st);
    t_ok(br_oracle_feed(&o, 0, 0, tokens, n, 0, all, &st), &st);
    for (uint32_t chunk = 1; chunk <= 4; chunk += 3) {
        t_ok(br_oracle_feed(&o, 0, n - last, tokens + n - last, last, chunk,
                            end, &st),
             &st);
        ck_assert_msg(memcmp(end, all + (n - last) * vocab, last * size) == 0,
                      "%s: chunks of %u", spec, chunk);
    }
    br_oracle_close(&o);
    close_shape(&on);
}

TEST_WITHIN(cuda_nodes_fold_keys_alike, 240)
{
    t_emulate_cuda();
    same_folds("shape:llama-512:BF16", 150, 5);
    same_folds("shape:qwen3-512:BF16", 200, 5);
    t_emulate_end();
}

/* Rows by clusters: of two, one block without keys; of eight; in several rounds. */
TEST_WITHIN(cuda_clusters_fold_keys_alike, 240)
{
    t_emulate_cuda();
    ck_assert_int_eq(setenv("BR_EMU_SM", "33", 1), 0);
    same_folds("shape:llama-512:BF16", 40, 3);
    same_folds("shape:qwen3-512:BF16", 200, 3);
    ck_assert_int_eq(setenv("BR_EMU_SM", "9", 1), 0);
    same_folds("shape:llama-256:BF16", 840, 3);
    unsetenv("BR_EMU_SM");
    t_emulate_end();
}

TEST_WITHIN(cuda_nodes_on_tensor_cores_are_near, 120)
{
    t_emulate_cuda();
    near_ref("shape:llama-512:BF16", 34, 1e-5);
    near_ref("shape:llama-256:BF16", 9, 1e-5);
    near_ref("shape:llama-256:BF16", 20,
             1e-5); /* whole tiles, and pieces alone */
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
