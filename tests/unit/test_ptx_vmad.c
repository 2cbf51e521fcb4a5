/* test_ptx_vmad.c - vmad and vshl.sat beside what PTX's manual says, in 128 bits; what a
 * kernel asks about its place and memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ptx_kit.h"

#include "drv/sim/sim.h"

#include <string.h>

enum { ROWS = 256, WORDS = 12 };
#ifdef __SIZEOF_INT128__
__extension__ typedef __int128 wide;
#endif

/* A kernel k(in, out) of ROWS threads: three words each, WORDS results. */
static bool
run(const char *on, const char *text, uint32_t shared, uint32_t *in,
    uint32_t *out)
{
    br_ktarget sim;
    const br_ktarget *t = br_sim_target(&sim, on) ? &sim : br_ktarget_find(on);
    uint64_t params[2] = {0x100000000, 0x200000000};
    br_kregion at[2] = {
        {params[0], ROWS * 12, (uint8_t *)in, true, "in"},
        {params[1], ROWS * WORDS * 4, (uint8_t *)out, false, "out"}};
    br_klaunch l = {.grid = {1, 1, 1},
                    .block = {ROWS, 1, 1},
                    .shared_bytes = shared,
                    .params = (const uint8_t *)params,
                    .regions = at,
                    .n_regions = 2,
                    .threads = 1};
    br_kir *m = ptx_load(text);
    br_status st = {0};
    br_kcode *c = NULL;
    br_kimage *im;
    br_code e = t->compile(&c, m, &st);

    if (e == BR_E_NO_DEVICE) {
        br_kir_free(m);
        return false;
    }
    t_ok(e, &st);
    t_ok(br_kimage_new(&im, m, &st), &st);
    l.image = im;
    l.fn = br_kir_find_fn(m, BR_TEXT("k"));
    memset(out, 0xa5, ROWS * WORDS * 4);
    t_ok(t->launch(c, &l, &st), &st);
    t->free(c);
    br_kimage_free(im);
    br_kir_free(m);
    return true;
}

static const char *const everywhere[] = {"interp", "x86-64", "gfx1100",
                                         "gfx1201", "gfx1201-wave64"};

#define TOP                                                     \
    ".version 8.0\n.target sm_80\n.address_size 64\n"           \
    ".entry k(.param .u64 in, .param .u64 out) {\n"             \
    ".reg .b32 %r<9>, a, b, c, d; .reg .b64 %d<9>;\n"           \
    "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out];\n"        \
    "mov.u32 %r1, %tid.x; mad.wide.u32 %d1, %r1, 12, %d1;\n"    \
    "mad.wide.u32 %d2, %r1, 48, %d2; ld.global.u32 a, [%d1];\n" \
    "ld.global.u32 b, [%d1+4]; ld.global.u32 c, [%d1+8];\n"

#ifdef __SIZEOF_INT128__
typedef struct mad { /* s: of a, of b; n: what is negated, of product and c */
    const char *text;
    bool as, bs, np, nc, po, sat;
    int shift;
} mad;
static const mad mads[] = {
    {"vmad.u32.u32.u32 d, a, b, c", false, false, false, false, false, false,
     0},
    {"vmad.u32.u32.u32.sat d, a, b, c", false, false, false, false, false, true,
     0},
    {"vmad.s32.s32.u32.sat.shr7 d, a, b, c", true, false, false, false, false,
     true, 7},
    {"vmad.s32.u32.s32.shr15 d, a, -b, c", false, true, true, false, false,
     false, 15},
    {"vmad.s32.u32.u32.sat d, -a, b, c", false, false, true, false, false, true,
     0},
    {"vmad.s32.u32.u32.sat.shr15 d, a, -b, c", false, false, true, false, false,
     true, 15},
    {"vmad.s32.u32.u32.sat.shr7 d, a, b, -c", false, false, false, true, false,
     true, 7},
    {"vmad.s32.u32.u32.sat d, -a, -b, c", false, false, false, false, false,
     true, 0},
    {"vmad.u32.u32.u32.po.sat.shr15 d, a, b, c", false, false, false, false,
     true, true, 15},
    {"vmad.s32.s32.s32.po d, a, b, c", true, true, false, false, true, false,
     0},
};

static uint32_t
cut(wide v, bool to_signed)
{
    const wide low = to_signed ? INT32_MIN : 0;
    const wide high = to_signed ? INT32_MAX : UINT32_MAX;

    return (uint32_t)(v < low ? low : v > high ? high : v);
}

static uint32_t
mad_is(const mad *m, uint32_t a, uint32_t b, uint32_t c)
{
    const bool is_signed = m->as || m->bs || m->np || m->nc;
    wide x = m->as ? (wide)(int32_t)a : (wide)a;
    wide y = m->bs ? (wide)(int32_t)b : (wide)b;
    wide z = is_signed ? (wide)(int32_t)c : (wide)c;
    wide v = x * y;

    v = (m->np ? -v : v) + (m->nc ? -z : z) + m->po;
    v >>= m->shift;
    return m->sat ? cut(v, is_signed) : (uint32_t)v;
}

static uint32_t
shifted(uint32_t a, bool as, uint32_t by, bool ds)
{
    const wide v = as ? (wide)(int32_t)a : (wide)a;

    return cut(v * ((wide)1 << (by < 32 ? by : 32)), ds);
}

TEST(vmad_and_shifts_that_saturate_are_as_the_manual_says)
{
    static const uint32_t ends[] = {
        0, 1, 31, 32, 0x7fffffff, 0x80000000, 0xffffffff, 0x00010000};
    static uint32_t in[ROWS * 3], out[ROWS * WORDS];
    char *text = t_printf("%s", TOP);
    uint64_t seed = 7;

    for (size_t k = 0; k < BR_COUNT(mads); k++)
        text = t_printf("%s%s; st.global.u32 [%%d2+%d], d;\n", text,
                        mads[k].text, (int)k * 4);
    text = t_printf("%svshl.u32.u32.u32.sat.clamp d, a, b; st.global.u32 "
                    "[%%d2+40], d;\n"
                    "vshl.s32.s32.u32.sat.clamp d, a, b; st.global.u32 "
                    "[%%d2+44], d; ret; }\n",
                    text);
    for (uint32_t k = 0; k < ROWS * 3; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        in[k] = k < 64 * 3            ? ends[k % 3 == 0   ? k / 3 % 8
                                             : k % 3 == 1 ? k / 24 % 8
                                                          : k % 8]
                : k % 3 == 1 && k % 2 ? (uint32_t)(seed >> 59)
                                      : (uint32_t)(seed >> 32);
    }
    for (size_t n = 0; n < BR_COUNT(everywhere); n++) {
        if (!run(everywhere[n], text, 0, in, out))
            continue;
        for (uint32_t r = 0; r < ROWS; r++) {
            const uint32_t *x = in + 3 * r, *y = out + WORDS * r;

            for (size_t k = 0; k < BR_COUNT(mads); k++)
                ck_assert_msg(y[k] == mad_is(&mads[k], x[0], x[1], x[2]),
                              "%s: %s of %x %x %x: %x", everywhere[n],
                              mads[k].text, x[0], x[1], x[2], y[k]);
            ck_assert_uint_eq(y[10], shifted(x[0], false, x[1], false));
            ck_assert_uint_eq(y[11], shifted(x[0], true, x[1], true));
        }
    }
}
#endif

/* Nothing else has a register with a sign, and a product or c is negated. */
TEST(vmad_alone_negates_registers)
{
    static const char *const no[][2] = {
        {"vmad.s32.s32.s32 d, -a, b, -c", "the product is negated, or c"},
        {"vmad.s32.s32.s32.po d, a, b, -c", ".po negates nothing"},
        {"add.s32 d, -a, b", "only a predicate can be negated"}};
    const br_ptx_opts how = {.strict = true};
    br_kir *m;

    for (size_t k = 0; k < BR_COUNT(no); k++) {
        br_status st = {0};
        const char *text = t_printf("%s%s; ret; }\n", TOP, no[k][0]);

        ck_assert_int_ne(br_ptx_parse(&m, text, strlen(text), &how, &st),
                         BR_OK);
        ck_assert_msg(strstr(st.msg, no[k][1]) && strstr(st.msg, "line 10"),
                      "%s", st.msg);
    }
}

/* One multiprocessor of one; shared memory of the launch, and with the kernel's. */
TEST(kernels_are_told_of_their_place_and_memory)
{
    static uint32_t in[ROWS * 3], out[ROWS * WORDS];
    static const char text[] =
        TOP ".shared .align 4 .b8 s[40]; mov.u32 d, s; st.shared.u32 [s], d;\n"
            "mov.u32 d, %smid; st.global.u32 [%d2], d;\n"
            "mov.u32 d, %nsmid; st.global.u32 [%d2+4], d;\n"
            "mov.u32 d, %dynamic_smem_size; st.global.u32 [%d2+8], d;\n"
            "mov.u32 d, %total_smem_size; st.global.u32 [%d2+12], d; ret; }\n";

    for (size_t n = 0; n < BR_COUNT(everywhere); n++)
        if (run(everywhere[n], text, 96, in, out)) {
            static const uint32_t want[] = {0, 1, 96, 136};

            ck_assert_msg(memcmp(out, want, sizeof want) == 0,
                          "%s: %u %u %u %u", everywhere[n], out[0], out[1],
                          out[2], out[3]);
        }
}
