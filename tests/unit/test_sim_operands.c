/* test_sim_operands.c - whatever an instruction's bits are, its operands are registers
 * that there are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"
#include "drv/sim/sim_int.h"
#include "t.h"

#include <string.h>

T_ONE_THREAD();

enum { TRIES = 20, WORDS = BR_GCN_MAX_WORDS };

/* A row's instruction: bits that most are those of a fresh one, half of them, or none. */
static void
draw(br_rng *rng, const br_gcn_row *row, unsigned how, uint32_t w[WORDS])
{
    const br_gcn_format *f = &br_gcn_formats[row->fmt];
    uint32_t op = f->mask;
    br_gcn_inst fresh;

    br_gcn_fresh(&fresh, row, NULL, BR_EXT_NONE);
    for (unsigned k = 0; k < WORDS; k++) {
        uint32_t r = br_rng_u32(rng), s = br_rng_u32(rng);

        w[k] = how == 0   ? fresh.w[k] ^ (r & s & br_rng_u32(rng))
               : how == 1 ? fresh.w[k] | (r & s)
                          : r;
    }
    for (unsigned b = f->op_lo; b < f->op_end && b < 32; b++)
        op |= 1u << b;
    w[0] = (w[0] & ~op) | (fresh.w[0] & op);
}

static bool
is_there(const sim_opnd *p, bool read)
{
    if (p->file == SIM_V)
        return p->reg + p->n <= 256;
    if (p->file != SIM_S)
        return true;
    return p->reg + p->n <= SIM_SGPRS || (read && p->reg == SIM_SCC);
}

static void
check(const br_gcn_isa *isa, const br_gcn_inst *in, const sim_op *o)
{
    bool ok = is_there(&o->dst, false) && is_there(&o->sdst, false) &&
              is_there(&o->mask, true) && o->n_src <= SIM_MAX_SRC;

    for (unsigned k = 0; k < SIM_MAX_SRC; k++)
        ok = ok && is_there(&o->src[k], true);
    ck_assert_msg(ok, "%s wave%d: %s %08x %08x", isa->cpu->name,
                  isa->wave64 ? 64 : 32, o->row->name, in->w[0], in->w[1]);
    if (o->y)
        check(isa, in, o->y);
}

static unsigned
all_rows(const br_gcn_isa *isa, br_rng *rng)
{
    unsigned known = 0;
    size_t n;
    const br_gcn_row *r = br_gcn_rows(isa->cpu, &n);
    br_arena arena;

    br_arena_init(&arena, 0);
    for (size_t k = 0; k < n; k++)
        for (unsigned i = 0; i < TRIES && br_gcn_row_here(isa->cpu, r + k);
             i++) {
            sim_op *o = sim_op_new(&arena);
            uint32_t w[WORDS];
            br_gcn_inst in;

            ck_assert(o);
            draw(rng, r + k, i % 3, w);
            if (br_gcn_decode(isa, w, WORDS, &in) &&
                sim_decode(&arena, isa, &in, o)) {
                check(isa, &in, o);
                known++;
            }
            br_arena_reset(&arena);
        }
    br_arena_fini(&arena);
    return known;
}

/* 124 and 253 are null and SCC among scalars alone. */
TEST(sim_knows_results_in_every_vector_register)
{
    for (unsigned c = 0; br_gcn_cpu_at(c); c++)
        for (unsigned v = 0; v < 256; v++) {
            br_gcn_isa isa = {br_gcn_cpu_at(c), false};
            bool old = isa.cpu->gen == 11;
            const char *const lines[] = {
                t_printf("v_mov_b32 v%u, v%u", v, v),
                t_printf("v_wmma_i32_16x16x16_iu8 v[%u:%u], v[0:%u], v[0:%u], "
                         "v[%u:%u]",
                         v, v + 7, old ? 3 : 1, old ? 3 : 1, v, v + 7)};

            for (unsigned k = 0; k < (v + 7 < 256 ? 2 : 1); k++) {
                br_gcn_inst in;
                br_status st = {0};

                t_ok(br_gcn_parse(&isa, lines[k], strlen(lines[k]), &in, &st),
                     &st);
                ck_assert_msg(br_sim_knows(&isa, &in), "%s: %s", isa.cpu->name,
                              lines[k]);
            }
        }
}

TEST(sim_operands_are_registers_that_there_are)
{
    br_rng rng;

    br_rng_init(&rng, 5, 0);
    for (unsigned c = 0; br_gcn_cpu_at(c); c++)
        for (int wave64 = 0; wave64 < 2; wave64++) {
            br_gcn_isa isa = {br_gcn_cpu_at(c), wave64};

            ck_assert_uint_gt(all_rows(&isa, &rng), 5000);
        }
}
