/* test_amd_hand.c - kernels by hand for AMD processors: the bits of the portable
 * ones, without a finding of the simulator, in fewer instructions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "base/rng.h"
#include "cg/gcn/gcn_kernel.h"
#include "cg/ptx/ptx.h"
#include "drv/nodes/amd_hand.h"
#include "drv/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

extern const char br_ptx_portable[], br_ptx_portable_end[];

enum {
    ARGS = (sizeof(struct br_nd_args) + 7) / 8 * 8,
    HIDDEN = 24,
    MAX_PIECES = 12
};
#define CODE_AT  0x100000000000ull
#define FIRST_AT 0x100000000ull
#define APART    0x10000000ull

static const char *const names[] = {
#define K(name) "br_nd_" #name,
#include "drv/cuda/cuda_nodes.def"
};

/* Memory of a launch: pieces that the record points to. The last is y's. */
typedef struct scene {
    struct br_nd_args a;
    br_nd_launch l;
    struct {
        uint8_t *at;
        size_t n;
    } piece[MAX_PIECES];
    size_t n_pieces;
    br_rng rng;
} scene;

static void *
piece(scene *s, size_t bytes, void **host)
{
    uint64_t va = FIRST_AT + APART * s->n_pieces;

    *host = t_keep(calloc(1, bytes + 64));
    s->piece[s->n_pieces].at = *host;
    s->piece[s->n_pieces++].n = bytes;
    return (void *)(uintptr_t)va;
}

static void *
bytes_of(scene *s, size_t n, uint8_t least, uint8_t span)
{
    void *h, *va = piece(s, n, &h);

    for (size_t i = 0; i < n; i++)
        ((uint8_t *)h)[i] = (uint8_t)(least + br_rng_u32(&s->rng) % span);
    return va;
}

/* Of either sign, some zero, none so large that sums of products overflow. */
static void *
floats_of(scene *s, size_t n)
{
    void *h, *va = piece(s, 4 * n, &h);

    for (size_t i = 0; i < n; i++) {
        uint32_t r = br_rng_u32(&s->rng);

        ((float *)h)[i] = r % 9 ? (float)(int32_t)r * 0x1p-36f : 0.0f;
    }
    return va;
}

/* ---- one run ------------------------------------------------------------- */

typedef struct result {
    uint8_t *y;
    size_t n;
    uint64_t steps;
} result;

static void
finding(void *arg, const char *text)
{
    ck_abort_msg("%s: %s", (const char *)arg, text);
}

static result
run(const scene *s, const br_gcn_co *co, const char *kernel,
    const uint32_t blocks[3], const char *what)
{
    const uint32_t groups[3] = {blocks[0], blocks[1], blocks[2]};
    const uint16_t group[3] = {BR_ND_WARPS * 32, 1, 1};
    uint8_t args[ARGS + HIDDEN] = {0};
    br_sim sim = {.cpu = co->isa.cpu,
                  .check = true,
                  .finding = finding,
                  .arg = (void *)(uintptr_t)what};
    const br_gcn_symbol *kd = br_gcn_kernel_find(co, kernel);
    const size_t last = s->n_pieces - 1;
    br_aql_launch l = {.kernarg = 0x10000, .group = {group[0], 1, 1}};
    br_kregion m = {l.kernarg, sizeof args, args, true, "arguments"};
    result r = {.n = s->piece[last].n};
    br_status st = {0};
    br_aql_packet p;

    ck_assert_ptr_nonnull(kd);
    memcpy(args, &s->a, sizeof s->a);
    memcpy(args + ARGS, groups, sizeof groups);
    memcpy(args + ARGS + 12, group, sizeof group);
    memcpy(l.groups, groups, sizeof groups);
    memcpy(&l.group_bytes, co->image + kd->at, 4);
    l.group_bytes += s->l.shared;
    l.kernel = CODE_AT + kd->at;
    t_ok(br_sim_map(&sim, &m, &st), &st);
    r.y = t_keep(calloc(1, r.n));
    for (size_t i = 0; i <= last; i++) {
        m = (br_kregion){FIRST_AT + APART * i, s->piece[i].n,
                         i == last ? r.y : s->piece[i].at, i != last, "memory"};
        t_ok(br_sim_map(&sim, &m, &st), &st);
    }
    t_ok(br_sim_load(&sim, co, CODE_AT, &st), &st);
    t_ok(br_aql_fill(&p, &l, &st), &st);
    t_ok(br_sim_dispatch(&sim, &p, &st), &st);
    r.steps = sim.steps;
    br_sim_fini(&sim);
    return r;
}

static br_kir *portable_m; /* all kernels; a test frees it */

static void
forget(void)
{
    br_kir_free(portable_m);
    portable_m = NULL;
}

/* The portable kernel, and the one by hand. */
static void
objects(br_gcn_co *portable, br_gcn_co *hand, const br_gcn_cpu *cpu,
        br_nd_fn fn)
{
    br_gcn_isa isa = {cpu, false};
    br_gcn_compiled k;
    br_str o = {0}, text = {0};
    br_status st = {0};

    if (!portable_m) {
        t_ok(br_ptx_parse(&portable_m, br_ptx_portable,
                          (size_t)(br_ptx_portable_end - br_ptx_portable), NULL,
                          &st),
             &st);
        t_ok(br_kir_optimise(portable_m, NULL, &st), &st);
    }
    t_ok(br_gcn_compile(&k, &isa, portable_m,
                        br_kir_find_fn(portable_m, br_text_z(names[fn])), &st),
         &st);
    t_ok(br_gcn_object(&o, &isa, &k.k, 1, &st), &st);
    t_ok(br_gcn_load(portable, o.at, o.n, &st), &st);
    br_gcn_compiled_fini(&k);
    br_str_fini(&o);
    br_hand_text(&text);
    t_ok(br_gcn_assemble(&o, cpu, text.at, text.n, &st), &st);
    br_str_fini(&text);
    t_ok(br_gcn_load(hand, o.at, o.n, &st), &st);
    br_str_fini(&o);
}

/* Both, on both generations; ratio: at least so many times fewer instructions. */
static void
compare(scene *s, const char *what, double ratio)
{
    static const char *const cpus[] = {"gfx1100", "gfx1201"};
    const uint32_t portable_blocks[3] = {s->l.blocks[0], s->l.blocks[1], 1};
    uint32_t blocks[3];
    br_hand hand_of;

    s->l.args = &s->a;
    hand_of = br_hand_takes(&s->l, blocks);
    ck_assert_msg(hand_of != BR_HANDS, "%s is not taken", what);
    for (size_t c = 0; c < BR_COUNT(cpus); c++) {
        br_gcn_co portable, hand;
        result want, got;

        objects(&portable, &hand, br_gcn_cpu_find(cpus[c]), s->l.fn);
        want = run(s, &portable, names[s->l.fn], portable_blocks, what);
        got = run(s, &hand, br_hand_name(hand_of), blocks, what);
        for (size_t i = 0; i < want.n; i += 4)
            ck_assert_msg(memcmp(want.y + i, got.y + i, 4) == 0,
                          "%s on %s: number %zu: %a, by hand %a", what, cpus[c],
                          i / 4, (double)*(float *)(void *)(want.y + i),
                          (double)*(float *)(void *)(got.y + i));
        if (getenv("HAND_COUNTS"))
            printf("| %s | %s | %llu | %llu | %.1f |\n", what, cpus[c],
                   (unsigned long long)want.steps,
                   (unsigned long long)got.steps,
                   (double)want.steps / (double)got.steps);
        ck_assert_msg((double)want.steps >= ratio * (double)got.steps,
                      "%s on %s: %llu instructions, by hand %llu", what,
                      cpus[c], (unsigned long long)want.steps,
                      (unsigned long long)got.steps);
        br_gcn_unload(&portable);
        br_gcn_unload(&hand);
    }
}

/* ---- products of integers ------------------------------------------------ */

typedef struct shape {
    br_nd_fn fn;
    uint32_t n_out, n_in, sub; /* sub 0: blocks of 32 */
    bool min;
    uint32_t experts, k, share; /* 0: one matrix */
    double ratio;
    uint32_t rows; /* 0: one */
} shape;

/* k experts of each row, and one word more. */
static int *
experts(scene *s, uint32_t k, uint32_t rows, uint32_t of)
{
    void *h, *va = piece(s, 4 * (size_t)(k + 1) * rows, &h);

    for (uint32_t i = 0; i < (k + 1) * rows; i++)
        ((int32_t *)h)[i] =
            i % (k + 1) < k ? (int32_t)(br_rng_u32(&s->rng) % of) : -1;
    return va;
}

/* Sanitizers watch who simulates, a hundred times slower: sizes that are but
 * larger show them nothing. */
static bool
is_too_much(const shape *p)
{
    const size_t most = t_sanitized() ? 200000 : SIZE_MAX;

    return (size_t)p->n_out * p->n_in * BR_MAX(p->rows, 1u) > most;
}

static void
product(const shape *p, uint64_t seed)
{
    const uint32_t block = p->sub ? 256 : 32, step = p->rows ? p->rows : 1;
    const uint32_t pairs = p->experts ? p->k * step : step;
    const size_t rows = (size_t)p->n_out * (p->experts ? p->experts : 1) + 3;
    const size_t n = rows * p->n_in, xs = p->share == 1 ? pairs : step;
    scene s = {.l = {.fn = p->fn}};
    void *h;

    if (is_too_much(p))
        return;
    br_rng_init(&s.rng, seed, p->n_in);
    s.a.n_rows = p->share == 1 ? pairs : step;
    s.a.m = (struct br_nd_mat){.kind = BR_ND_INT,
                               .n_out = p->n_out,
                               .n_in = p->n_in,
                               .block = block,
                               .sub = p->sub};
    s.a.m.q = bytes_of(&s, n, 128, 255);
    s.a.m.d = floats_of(&s, n / block);
    if (p->sub)
        s.a.m.scale = bytes_of(&s, n / p->sub, 192, 128);
    if (p->min) {
        s.a.m.min = bytes_of(&s, n / p->sub, 0, 64);
        s.a.m.dmin = floats_of(&s, n / block);
    }
    s.a.xq = bytes_of(&s, xs * p->n_in, 129, 255);
    s.a.xd = floats_of(&s, xs * p->n_in / block);
    if (p->experts) {
        s.a.e = (struct br_nd_route){.stride = p->k + 1,
                                     .k = p->k,
                                     .share = p->share,
                                     .rows = p->n_out,
                                     .first = 2};
        s.a.e.ids = experts(&s, p->k, step, p->experts);
    }
    s.a.y.stride = p->n_out + 5;
    s.a.y.p = piece(&s, 4 * (size_t)s.a.y.stride * pairs, &h);
    s.l.blocks[0] = (p->n_out + BR_ND_WARPS - 1) / BR_ND_WARPS;
    s.l.blocks[1] = p->experts ? pairs : (step + BR_ND_TILE - 1) / BR_ND_TILE;
    compare(&s,
            t_printf("%s %u x %u%s%s, %u rows", names[p->fn], p->n_out, p->n_in,
                     p->min ? " min" : "", p->experts ? " experts" : "", step),
            p->ratio);
}

TEST_WITHIN(amd_products_of_bytes_by_hand, 120)
{
    static const uint32_t cols[] = {32,  64,   96,   480,  512,  544,
                                    992, 1024, 1056, 1536, 2080, 4864};

    for (size_t i = 0; i < BR_COUNT(cols); i++)
        product(&(shape){.fn = BR_ND_FN_mul_int32,
                         .n_out = 11,
                         .n_in = cols[i],
                         .ratio = cols[i] < 512 ? 5 : 7},
                i + 1);
    product(&(shape){BR_ND_FN_mul_int32, 10, 1056, 0, false, 5, 3, 3, 10, 0},
            3);
    product(&(shape){BR_ND_FN_mul_int32, 9, 544, 0, false, 5, 4, 1, 8, 0}, 4);
    product(&(shape){BR_ND_FN_mul_int32, 10, 1056, 0, false, 5, 3, 3, 10, 4},
            5);
    product(&(shape){BR_ND_FN_mul_int32, 9, 544, 0, false, 5, 4, 1, 8, 3}, 6);
    product(&(shape){BR_ND_FN_mul_int32, 16, 4096, 0, false, 0, 0, 0, 25, 0},
            4);
    forget();
}

/* Groups and waves of which a part has no rows, of weights and of the prompt. */
TEST_WITHIN(amd_products_of_prompts_by_hand, 120)
{
    static const struct {
        uint32_t n_out, n_in, rows;
        double ratio;
    } of[] = {{1, 128, 2, 1},      {15, 256, 16, 50},   {33, 128, 17, 50},
              {130, 384, 33, 60},  {128, 512, 32, 140}, {72, 1152, 65, 90},
              {16, 4096, 32, 150}, {256, 1024, 64, 150}};

    for (size_t i = 0; i < BR_COUNT(of); i++)
        product(&(shape){.fn = BR_ND_FN_mul_int32,
                         .n_out = of[i].n_out,
                         .n_in = of[i].n_in,
                         .rows = of[i].rows,
                         .ratio = of[i].ratio},
                i + 31);
    forget();
}

/* The same of blocks of 256; with least weights and without. */
TEST_WITHIN(amd_products_of_prompts_in_sub_blocks_by_hand, 120)
{
    static const struct {
        uint32_t n_out, n_in, sub, rows;
        bool min;
        double ratio;
    } of[] = {{1, 256, 32, 2, true, 1},      {15, 512, 16, 16, false, 20},
              {33, 256, 32, 17, false, 60},  {20, 1280, 16, 33, true, 18},
              {130, 768, 32, 33, true, 40},  {32, 2304, 32, 32, true, 70},
              {32, 1280, 16, 32, false, 75}, {16, 4096, 32, 32, true, 70}};

    for (size_t i = 0; i < BR_COUNT(of); i++)
        product(&(shape){.fn = BR_ND_FN_mul_int256,
                         .n_out = of[i].n_out,
                         .n_in = of[i].n_in,
                         .sub = of[i].sub,
                         .min = of[i].min,
                         .rows = of[i].rows,
                         .ratio = of[i].ratio},
                i + 51);
    forget();
}

TEST_WITHIN(amd_products_of_sub_blocks_by_hand, 120)
{
    for (uint32_t k = 256; k <= 2304; k += k < 1280 ? 256 : 512)
        for (int sub = 16; sub <= 32; sub += 16)
            product(&(shape){.fn = BR_ND_FN_mul_int256,
                             .n_out = 11,
                             .n_in = k,
                             .sub = (uint32_t)sub,
                             .min = sub == 32,
                             .ratio = k < 512 ? 3 : 5},
                    k + (uint32_t)sub);
    product(&(shape){BR_ND_FN_mul_int256, 10, 1280, 32, true, 5, 3, 3, 10, 0},
            3);
    product(&(shape){BR_ND_FN_mul_int256, 9, 768, 16, true, 5, 4, 1, 8, 0}, 4);
    product(&(shape){BR_ND_FN_mul_int256, 10, 1280, 32, true, 5, 3, 3, 10, 4},
            5);
    product(&(shape){BR_ND_FN_mul_int256, 9, 768, 16, true, 5, 4, 1, 8, 3}, 6);
    product(&(shape){BR_ND_FN_mul_int256, 16, 4096, 32, true, 0, 0, 0, 14, 0},
            5);
    product(&(shape){BR_ND_FN_mul_int256, 16, 4096, 16, false, 0, 0, 0, 16, 0},
            6);
    forget();
}

/* ---- products of floats -------------------------------------------------- */

/* Floats of 16 bits, of either sign, some zero and some below the normal ones. */
static void *
halves_of(scene *s, size_t n, bool bf16)
{
    void *h, *va = piece(s, 2 * n, &h);

    for (size_t i = 0; i < n; i++) {
        uint32_t r = br_rng_u32(&s->rng);

        ((uint16_t *)h)[i] = (uint16_t)((r & (bf16 ? 0x80ff : 0xafff)) |
                                        (bf16 && r >> 16 & 7 ? 0x3f00 : 0));
    }
    return va;
}

static void
floats(const shape *p, uint64_t seed)
{
    const uint32_t step = p->rows ? p->rows : 1;
    const uint32_t pairs = p->experts ? p->k * step : 1;
    const size_t rows = (size_t)p->n_out * (p->experts ? p->experts : 1) + 3;
    scene s = {.l = {.fn = p->fn}};
    void *h;

    if (is_too_much(p))
        return;
    br_rng_init(&s.rng, seed, p->n_in);
    s.a.n_rows = p->share == 1 ? pairs : step;
    s.a.m.n_out = p->n_out;
    s.a.m.n_in = p->n_in;
    s.a.m.q = halves_of(&s, rows * p->n_in, p->fn == BR_ND_FN_mul_bf16);
    s.a.x.stride = p->n_in + 4;
    s.a.x.p = floats_of(&s, (size_t)s.a.x.stride * pairs);
    if (p->experts) {
        s.a.e = (struct br_nd_route){.stride = p->k + 1,
                                     .k = p->k,
                                     .share = p->share,
                                     .rows = p->n_out,
                                     .first = 2};
        s.a.e.ids = experts(&s, p->k, step, p->experts);
    }
    s.a.y.stride = p->n_out + 5;
    s.a.y.p = piece(&s, 4 * (size_t)s.a.y.stride * pairs, &h);
    s.l.blocks[0] = (p->n_out + 15) / 16;
    s.l.blocks[1] = pairs;
    compare(&s,
            t_printf("%s %u x %u%s", names[p->fn], p->n_out, p->n_in,
                     p->experts ? " experts" : ""),
            p->ratio);
}

TEST_WITHIN(amd_products_of_floats_by_hand, 120)
{
    static const uint32_t cols[] = {16, 48, 128, 144, 240, 256, 1040};

    for (int b = 0; b < 2; b++) {
        const br_nd_fn fn = b ? BR_ND_FN_mul_bf16 : BR_ND_FN_mul_f16;

        for (size_t i = 0; i < BR_COUNT(cols); i++)
            floats(
                &(shape){.fn = fn, .n_out = 19, .n_in = cols[i], .ratio = 12},
                i + 1);
        floats(&(shape){fn, 130, 272, 0, false, 0, 0, 0, 15, 0}, 3);
        floats(&(shape){fn, 37, 160, 0, false, 5, 3, 3, 15, 0}, 3);
        floats(&(shape){fn, 16, 160, 0, false, 5, 4, 1, 12, 0}, 4);
        floats(&(shape){fn, 37, 160, 0, false, 5, 3, 3, 15, 4}, 6);
        floats(&(shape){fn, 16, 160, 0, false, 5, 4, 1, 12, 3}, 7);
        floats(&(shape){fn, 64, 4096, 0, false, 0, 0, 0, 15, 0}, 5);
    }
    forget();
}

/* ---- norms --------------------------------------------------------------- */

static void
norm(uint32_t rows, uint32_t pieces, uint32_t n, double ratio)
{
    scene s = {.l = {.fn = BR_ND_FN_norm, .blocks = {pieces, rows}}};
    void *h;

    br_rng_init(&s.rng, n, rows);
    s.a.n_rows = rows;
    s.a.width = n;
    s.a.eps = 1e-6f;
    s.a.x.stride = pieces * n + 8;
    s.a.x.p = floats_of(&s, (size_t)s.a.x.stride * rows);
    s.a.w.p = floats_of(&s, n);
    s.a.y.stride = pieces * n + 4;
    s.a.y.p = piece(&s, 4 * (size_t)s.a.y.stride * rows, &h);
    compare(&s, t_printf("br_nd_norm %u x %u x %u", rows, pieces, n), ratio);
}

TEST_WITHIN(amd_norms_by_hand, 120)
{
    norm(3, 1, 256, 2);
    norm(1, 3, 768, 3);
    norm(2, 1, 1280, 3);
    norm(1, 1, 2048, 4);
    norm(1, 1, 4096, 4);
    norm(1, 1, 8192, 4);
    forget();
}

/* ---- attention ----------------------------------------------------------- */

enum { GROUPS_OF_PAGES = 3, PAGE = 16 };

/* Rows at positions, in pools whose pages lie about. */
static void
attention(uint32_t heads, uint32_t kv, uint32_t head_k, uint32_t head_v,
          uint32_t window, const int *at, uint32_t rows, double ratio)
{
    const uint32_t longest = 700, pages = longest / PAGE + 1;
    const uint32_t cols[2] = {kv * head_k, kv * head_v + 16};
    scene s = {.l = {.fn = BR_ND_FN_attend, .blocks = {heads, rows}}};
    struct br_nd_args *a = &s.a;
    int32_t *position;
    uint32_t *table, *of;
    void *h;

    br_rng_init(&s.rng, heads + head_k, head_v + window);
    s.l.shared = 4 * (head_k + head_v);
    a->n_rows = rows;
    a->heads = heads;
    a->per_kv = heads / kv;
    a->head_k = head_k;
    a->head_v = head_v;
    a->window = window;
    a->scale = 3.0f;
    a->x.stride = heads * head_k + 4;
    a->x.p = floats_of(&s, (size_t)a->x.stride * rows);
    a->k = (struct br_nd_cache){
        .page = PAGE * (cols[0] + 8), .first = 64, .cols = cols[0], .half = 1};
    a->v = (struct br_nd_cache){.page = PAGE * (cols[1] + 24),
                                .first = 128,
                                .cols = cols[1],
                                .group = 2,
                                .half = 1};
    a->k.pool = halves_of(&s, a->k.page * (pages * rows + 2), false);
    a->v.pool = halves_of(&s, a->v.page * (pages * rows + 2), false);
    a->s.position = piece(&s, 4 * rows, &h);
    position = h;
    a->s.n_groups = GROUPS_OF_PAGES;
    a->s.at = piece(&s, 4 * GROUPS_OF_PAGES * rows, &h);
    of = h;
    a->s.tables = piece(&s, 4 * pages * rows, &h);
    table = h;
    for (uint32_t t = 0; t < rows; t++) {
        position[t] = at[t];
        for (uint32_t g = 0; g < GROUPS_OF_PAGES; g++)
            of[t * GROUPS_OF_PAGES + g] = t * pages;
    }
    for (uint32_t k = 0; k < pages * rows; k++)
        table[k] = (k * 7 + 3) % (pages * rows + 1);
    a->y.stride = heads * head_v + 2;
    a->y.p = piece(&s, 4 * (size_t)a->y.stride * rows, &h);
    compare(&s,
            t_printf("br_nd_attend %u heads of %u, %u, at %d, window %u", heads,
                     head_k, head_v, at[0], window),
            ratio);
}

TEST_WITHIN(amd_attention_by_hand, 120)
{
    static const int few[] = {0, 5, 15, 16, 40}, far[] = {699},
                     some[] = {255, 256, 300};

    attention(4, 2, 64, 64, 0, few, 5, 3);
    attention(3, 1, 128, 128, 0, some, 3, 9);
    attention(4, 4, 64, 128, 37, some, 3, 4);
    attention(2, 1, 256, 256, 0, some, 1, 11);
    attention(4, 2, 128, 128, 0, far, 1, 10);
    forget();
}

/* Macros, conditions and sums of register numbers are what LLVM makes of them. */
/* ---- positions ----------------------------------------------------------- */

static void
rope(uint32_t heads, uint32_t head, bool neighbours, int32_t position,
     double ratio)
{
    const uint32_t pairs = heads * head / 2;
    scene s = {.l = {.fn = BR_ND_FN_rope,
                     .blocks = {(pairs + BR_ND_BLOCK - 1) / BR_ND_BLOCK, 1}}};
    void *h;

    br_rng_init(&s.rng, heads * head, (uint32_t)position);
    s.a.n_rows = 1;
    s.a.heads = heads;
    s.a.head_k = s.a.n_rot = head;
    s.a.neighbours = neighbours;
    s.a.scale = 1.25f;
    s.a.x.p = floats_of(&s, (size_t)heads * head);
    s.a.w.p = floats_of(&s, head / 2);
    s.a.s.position = piece(&s, sizeof position, &h);
    memcpy(h, &position, sizeof position);
    s.a.y.p = piece(&s, 4 * (size_t)heads * head, &h);
    compare(&s,
            t_printf("br_nd_rope %u x %u at %d%s", heads, head, position,
                     neighbours ? ", neighbours" : ""),
            ratio);
}

/* Angles of all four quarters, of none, of hundreds of turns; a group of which a
 * part has no pairs. */
TEST_WITHIN(amd_positions_by_hand, 120)
{
    rope(32, 128, false, 4000, 3);
    rope(8, 64, true, 77, 3);
    rope(1, 256, false, 130000, 3);
    rope(3, 32, true, 1 << 20, 2);
    rope(5, 64, false, 0, 2);
    rope(1, 2, false, 9, 1);
    forget();
}

TEST(amd_kernels_by_hand_are_llvms_bytes)
{
    static const char *const cpus[] = {"gfx1100", "gfx1201"};
    const char *s = t_printf("%s/hand.s", t_tmpdir());
    const char *to = t_printf("%s/hand.co", t_tmpdir()), *bytes;
    br_str text = {0}, o = {0};
    br_gcn_co ours, theirs;
    br_status st = {0};
    size_t n;
    t_proc r;

    if (!t_have_program("clang-19") || !t_have_program("ld.lld-19"))
        t_skip("clang-19 and ld.lld-19 are not here");
    br_hand_text(&text);
    t_write(s, text.at, text.n);
    for (size_t c = 0; c < BR_COUNT(cpus); c++) {
        t_exec(&r,
               (const char *[]){"clang-19", "--target=amdgcn-amd-amdhsa",
                                t_printf("-mcpu=%s", cpus[c]), "-nogpulib",
                                "-mcode-object-version=5", s, "-o", to, NULL},
               NULL, 0);
        ck_assert_msg(r.exit == 0, "%s", r.err);
        bytes = t_read(to, &n);
        t_ok(br_gcn_load(&theirs, bytes, n, &st), &st);
        t_ok(
            br_gcn_assemble(&o, br_gcn_cpu_find(cpus[c]), text.at, text.n, &st),
            &st);
        t_ok(br_gcn_load(&ours, o.at, o.n, &st), &st);
        ck_assert_uint_ge(ours.text_bytes, theirs.text_bytes);
        ck_assert_mem_eq(ours.image + ours.text_at,
                         theirs.image + theirs.text_at, theirs.text_bytes);
        for (size_t i = 0; i < BR_HANDS; i++) {
            const char *name = br_hand_name((br_hand)i);
            const br_gcn_symbol *a = br_gcn_kernel_find(&ours, name),
                                *b = br_gcn_kernel_find(&theirs, name);

            ck_assert(a && b);
            ck_assert_mem_eq(ours.image + a->at, theirs.image + b->at, 16);
            ck_assert_mem_eq(ours.image + a->at + 24, theirs.image + b->at + 24,
                             40);
        }
        br_gcn_unload(&ours);
        br_gcn_unload(&theirs);
        br_str_fini(&o);
    }
    br_str_fini(&text);
}

/* What they do not do stays with the portable kernels. */
TEST(amd_kernels_by_hand_know_what_they_do)
{
    struct br_nd_args a = {.n_rows = 1, .m = {.n_in = 64}};
    br_nd_launch l = {.fn = BR_ND_FN_mul_int32, .blocks = {1, 1}, .args = &a};
    uint32_t blocks[3];
    float min;

    ck_assert_int_eq(br_hand_takes(&l, blocks), BR_HAND_mul_int32);
    a.n_rows = 2;
    ck_assert_int_eq(br_hand_takes(&l, blocks), BR_HANDS);
    a.n_rows = 1;
    a.m.dmin = &min;
    ck_assert_int_eq(br_hand_takes(&l, blocks), BR_HANDS);
    a.m.dmin = NULL;
    a.n_rows = 2;
    a.m.n_in = 128;
    a.m.n_out = 130;
    ck_assert_int_eq(br_hand_takes(&l, blocks), BR_HAND_mul_int32_rows);
    ck_assert_uint_eq(blocks[0], 1);
    ck_assert_uint_eq(blocks[1], 2);
    a.e.ids = (int *)(void *)&a;
    a.e.k = 2;
    a.e.share = 1;
    ck_assert_int_eq(br_hand_takes(&l, blocks), BR_HANDS);
    l.fn = BR_ND_FN_quantise;
    ck_assert_int_eq(br_hand_takes(&l, blocks), BR_HANDS);
}
