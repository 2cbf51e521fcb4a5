/* test_gcn_clock.c - clocks of AMD processors: that they go on, that they are the
 * same for who reads them together, and that whoever reads them waits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"

#include "cg/gcn/gcn_kernel.h"
#include "drv/sim/sim.h"

#include <stdlib.h>
#include <string.h>

/* Two looks at each clock and 100 instructions between, then a wait by one. */
static const char kernel[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".entry k(.param .u64 out) {\n"
    ".reg .b32 %r<20>; .reg .b64 %d<20>; .reg .pred %p<4>;\n"
    "ld.param.u64 %d0,[out]; mov.u32 %r0,%tid.x; mul.wide.u32 %d1,%r0,64;\n"
    "add.u64 %d0,%d0,%d1; mov.u32 %r7,0;\n"
    "mov.u32 %r1,%clock; mov.u64 %d2,%clock64; mov.u64 %d3,%globaltimer;\n"
    "mov.u32 %r2,%globaltimer_lo; mov.u32 %r8,%globaltimer_hi;\n"
    "mov.u32 %r9,%clock_hi;\n"
    "L: mad.lo.u32 %r3,%r7,%r7,%r0; add.u32 %r7,%r7,1; xor.b32 %r4,%r3,%r4;\n"
    "setp.lt.u32 %p1,%r7,25; @%p1 bra L;\n"
    "mov.u64 %d4,%globaltimer; mov.u64 %d5,%clock64; mov.u32 %r5,%clock;\n"
    "sub.u64 %d6,%d5,%d2; st.global.u64 [%d0],%d6;\n"
    "sub.u64 %d7,%d4,%d3; st.global.u64 [%d0+8],%d7;\n"
    "sub.u32 %r6,%r5,%r1; st.global.u32 [%d0+16],%r6;\n"
    "cvt.u32.u64 %r10,%d3; sub.u32 %r2,%r2,%r10; st.global.u32 [%d0+20],%r2;\n"
    "st.global.u32 [%d0+24],%r8; st.global.u32 [%d0+28],%r9;\n"
    "st.global.u64 [%d0+32],%d3;\n"
    "and.b32 %r11,%r0,1; setp.eq.u32 %p2,%r11,0; @%p2 bra E;\n"
    "mov.u64 %d8,%clock64;\n"
    "W: mov.u64 %d9,%clock64; sub.u64 %d9,%d9,%d8; setp.lt.u64 %p3,%d9,5000;\n"
    "@%p3 bra W; st.global.u64 [%d0+40],%d9;\n"
    "E: ret; }\n";

typedef struct row {
    uint64_t cycles, ns;
    uint32_t low_cycles, low_ns, high_ns, high_cycles;
    uint64_t begun, waited, none[2];
} row;
_Static_assert(sizeof(row) == 64, "as the kernel has it");

enum { N = 64 };

static void
found(void *arg, const char *text)
{
    (void)arg;
    ck_abort_msg("%s", text);
}

static void
run(const char *on, row out[N])
{
    br_kir *m = ptx_load(kernel);
    uint64_t at = 0x100000000;
    br_kregion r = {at, N * sizeof *out, (uint8_t *)out, false, "out"};
    br_klaunch l = {.grid = {1, 1, 1},
                    .block = {N, 1, 1},
                    .params = (const uint8_t *)&at,
                    .regions = &r,
                    .n_regions = 1,
                    .check = true,
                    .finding = found,
                    .max_steps = 1 << 20};
    br_status st = {0};
    br_kimage *im;
    br_ktarget t;
    br_kcode *c;

    memset(out, 0, N * sizeof *out);
    ck_assert(br_sim_target(&t, on));
    t_ok(t.compile(&c, m, &st), &st);
    t_ok(br_kimage_new(&im, m, &st), &st);
    l.image = im;
    t_ok(t.launch(c, &l, &st), &st);
    t.free(c);
    br_kimage_free(im);
    br_kir_free(m);
}

TEST(gcn_clocks_go_on)
{
    static const char *const on[] = {"gfx1100", "gfx1151", "gfx1201",
                                     "gfx1100-wave64", "gfx1200-wave64"};
    row *out = t_keep(malloc(N * sizeof *out));

    for (size_t k = 0; k < BR_COUNT(on); k++) {
        bool ns = on[k][4] == '1'; /* gfx11: cycles are of 20 bits */

        run(on[k], out);
        for (int t = 0; t < N; t++) {
            const row *r = &out[t];

            ck_assert_msg(!memcmp(r, out + (t & ~31), 40), "%s %d", on[k], t);
            ck_assert_uint_ge(r->cycles, ns ? 1000 : 100);
            ck_assert_uint_le(r->cycles, 20000);
            ck_assert_uint_ge(r->ns, 1000);
            ck_assert_uint_le(r->ns, 20000);
            ck_assert_uint_eq(r->ns % 10, 0);
            ck_assert_uint_ge(r->low_cycles, r->cycles);
            ck_assert_uint_le(r->low_cycles, r->cycles + 1000);
            ck_assert_uint_le(r->low_ns, 1000);
            ck_assert_uint_eq(r->high_ns, 0);
            ck_assert_uint_eq(r->high_cycles, 0);
            ck_assert_uint_eq(r->begun % 10, 0);
            ck_assert_uint_ge(r->waited, t % 2 ? 5000 : 0);
            ck_assert_uint_le(r->waited, t % 2 ? 9000 : 0);
        }
    }
}

/* The words of machine code, too, wait for what the clock answers. */
TEST(gcn_clocks_are_waited_for)
{
    static const struct {
        const char *cpu, *code;
        br_code is;
    } cases[] = {{"gfx1100",
                  "s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)\n"
                  "s_waitcnt lgkmcnt(0)\ns_mov_b32 s6, s4\ns_endpgm\n",
                  BR_OK},
                 {"gfx1100",
                  "s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)\n"
                  "s_mov_b32 s6, s5\ns_endpgm\n",
                  BR_E_FAULT},
                 {"gfx1201",
                  "s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)\n"
                  "s_wait_kmcnt 0x0\ns_mov_b32 s6, s4\ns_endpgm\n",
                  BR_OK},
                 {"gfx1201",
                  "s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)\n"
                  "s_wait_dscnt 0x0\ns_mov_b32 s6, s4\ns_endpgm\n",
                  BR_E_FAULT}};

    for (size_t k = 0; k < BR_COUNT(cases); k++) {
        br_gcn_isa isa = {.cpu = br_gcn_cpu_find(cases[k].cpu)};
        br_status st = {0};
        uint32_t words[16];
        size_t n = 0;
        const char *s = cases[k].code;

        while (*s) {
            const char *end = strchr(s, '\n');
            br_gcn_inst in;

            t_ok(br_gcn_parse(&isa, s, (size_t)(end - s), &in, &st), &st);
            memcpy(words + n, in.w, in.words * sizeof *words);
            n += in.words;
            s = end + 1;
        }
        ck_assert_int_eq(br_gcn_prove(&isa, words, n, &st), cases[k].is);
    }
}
