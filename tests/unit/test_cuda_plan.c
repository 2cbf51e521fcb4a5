/* test_cuda_plan.c - what the CUDA tier's plan makes of real shapes, on an emulated device
 * that does nothing (BR_EMU_IDLE): launches that do the work of several.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/cuda_nodes_int.h"
#include "like_kit.h"
#include "run/shape.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "t.h"

typedef struct counted {
    uint32_t attentions; /* on tensor cores */
    uint32_t turns, joined;
    uint32_t picks, whole; /* rows for the head; who reads all as they are */
} counted;

enum { LAYERS = 2 };

/* Of some layers of a shape. */
static counted
count(const char *spec)
{
    br_cun_config cc = {.n_slots = 4,
                        .n_ctx = 4096,
                        .n_pages = {64, 64, 64, 64},
                        .max_rows = 512,
                        .max_want = 4};
    counted c = {0};
    br_status st = {0};
    br_str doc = {0};
    br_model *one, *m;
    br_cun *x;
    br_ir *g;
    size_t n;

    t_ok(br_shape_model(&doc, spec, true, &st), &st);
    t_ok(br_model_open_mem(&one, doc.at, doc.n, &st), &st);
    uint8_t *p = model_like(
        one->gguf, &(like){.arch = one->arch->name, .layers = LAYERS}, &n);
    if (!p)
        t_skip("no room for so many addresses");
    t_ok(br_model_open_mem(&m, p, n, &st), &st);
    t_ok(br_ir_of_model(&g, m, BR_IR_PREFILL, cc.n_ctx, &st), &st);
    t_ok(br_cun_open(&x, m, g, &cc, &st), &st);
    for (size_t i = 0; i < x->launches.n; i++) {
        const cun_launch *l = &x->launches.at[i];

        c.attentions += l->fn == CUN_flash_64 || l->fn == CUN_flash_128;
        c.turns += l->fn == CUN_turn;
        c.joined += l->fn == CUN_turn && l->turns;
        c.picks += l->picks;
        c.whole += l->whole;
    }
    br_cun_close(x);
    br_ir_free(g);
    br_model_close(m);
    munmap(p, n);
    br_model_close(one);
    br_str_fini(&doc);
    return c;
}

/* Rows of 4096 numbers in F32 are GBs of zeros to send, and lie as those of 3072. */
static bool
is_large(size_t i)
{
    return strstr(br_shape_name(i), "-7b") || strstr(br_shape_name(i), "-8b") ||
           strstr(br_shape_name(i), "-70b");
}

/* Attention turns its own queries, on their way from the product, in every shape whose
 * heads tensor cores take: rows between them written as f16 (Q4_0 becomes tiles) or as
 * f32, where attention's output may not lie in what its other blocks read. And a head
 * of tiles (all but the first shape's, which is a toy) reads what the last norm made, where
 * all rows want logits. */
TEST_WITHIN(cuda_attention_turns_its_queries_in_real_shapes, 120)
{
    static const char *const formats[] = {"Q4_0", "F32"};
    uint32_t shapes = 0;

    t_emulate_cuda();
    ck_assert_int_eq(setenv("BR_EMU_IDLE", "1", 1), 0);
    ck_assert_int_eq(setenv("BR_EMU_MEMORY", "100000000000", 1), 0);
    for (size_t i = 0; br_shape_name(i); i++)
        for (size_t k = 0; k < BR_COUNT(formats); k++) {
            const char *spec =
                t_printf("shape:%s:%s", br_shape_name(i), formats[k]);
            counted c;

            if (k == 1 && is_large(i))
                continue;
            c = count(spec);
            ck_assert(c.attentions == 0 || c.attentions == LAYERS);
            ck_assert_msg(c.turns == c.attentions && c.joined == c.turns,
                          "%s: %u of %u turns are attention's, of %u", spec,
                          c.joined, c.turns, c.attentions);
            ck_assert_msg(c.picks == c.whole && c.picks == (i > 0 && k == 0),
                          "%s: %u, %u", spec, c.picks, c.whole);
            shapes += c.joined > 0;
        }
    ck_assert_uint_ge(shapes, 32);
    unsetenv("BR_EMU_MEMORY");
    unsetenv("BR_EMU_IDLE");
    t_emulate_end();
}
