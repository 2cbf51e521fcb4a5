/* test_sim.c - the simulated AMD GPU: instructions, dispatches, faults.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "cg/gcn/isa.h"
#include "sim_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

/* ---- which instructions have a meaning -------------------------------- */

static void
counted(const char *cpu, unsigned at_least)
{
    br_gcn_isa isa = {br_gcn_cpu_find(cpu), false};
    size_t n;
    const br_gcn_row *r = br_gcn_rows(isa.cpu, &n);
    unsigned known = 0, all = 0;

    for (size_t k = 0; k < n; k++) {
        br_gcn_inst in;
        bool y = r[k].fmt == BR_FMT_VOPD;

        if (!br_gcn_row_here(isa.cpu, &r[k]) || r[k].flags & BR_RF_ALIAS ||
            r[k].fmt == BR_FMT_VOPDY)
            continue;
        br_gcn_fresh(&in, &r[k],
                     y ? br_gcn_row_of(isa.cpu, BR_FMT_VOPDY, r[k].op) : NULL,
                     BR_EXT_NONE);
        all++;
        known += br_sim_knows(&isa, &in);
    }
    ck_assert_msg(known >= at_least, "%s: %u of %u", cpu, known, all);
}

TEST(sim_knows_most_instructions_of_gfx1100)
{
    counted("gfx1100", 1348);
}

TEST(sim_knows_most_instructions_of_gfx1201)
{
    counted("gfx1201", 1411);
}

/* ---- what instructions compute ---------------------------------------- */

typedef struct v_case {
    const char *text;
    uint64_t a, b, c, want, vcc;
} v_case;
static const v_case v_cases[] = {
#define V(text, a, b, c, want, vcc) {text, a, b, c, want, vcc},
#define S(text, a, b, want, scc)
#include "sim_cases.def"
#undef V
#undef S
};
static const struct {
    const char *text;
    uint64_t a, b, want;
    bool scc;
} s_cases[] = {
#define V(text, a, b, c, want, vcc)
#define S(text, a, b, want, scc) {text, a, b, want, scc},
#include "sim_cases.def"
#undef V
#undef S
};

/* gfx12 spells some names in another way. */
static const char *
spelled(const char *text, const char *cpu)
{
    static const char *const names[][2] = {
        {"_f32@ ", "_num_f32 "},       {"_f64@2 ", "_f64 "},
        {"_f16_f32@3 ", "_f16_f32 "},  {"v_mad_u64", "v_mad_co_u64"},
        {"s_add_u32", "s_add_co_u32"}, {"s_sub_u32", "s_sub_co_u32"},
        {"s_add_i32", "s_add_co_i32"},
    };
    bool new = strncmp(cpu, "gfx12", 5) == 0;
    char *s = t_printf("%s        ", text), *at;

    for (size_t k = 0; new &&k < BR_COUNT(names); k++)
        if ((at = strstr(s, names[k][0])))
            return t_printf("%.*s%s%s", (int)(at - s), s, names[k][1],
                            at + strlen(names[k][0]));
    if ((at = strchr(s, '@')))
        memmove(at, at + 1 + (at[1] != ' '),
                strlen(at + 1 + (at[1] != ' ')) + 1);
    return s;
}

static uint64_t
word64(const sim_kit *k, unsigned at)
{
    uint64_t v;

    memcpy(&v, k->memory + at, 8);
    return v;
}

static void
vector_cases(const char *cpu)
{
    const char *wait =
        strcmp(cpu, "gfx1201") ? "s_waitcnt lgkmcnt(0)" : "s_wait_kmcnt 0x0";
    unsigned wrong = 0;

    /* A sanitizer sees as much in every fourth, in a fourth of 12 s. */
    for (size_t i = 0; i < BR_COUNT(v_cases); i += t_sanitized() ? 4 : 1) {
        const v_case *c = &v_cases[i];
        sim_kit k = {.cpu = cpu};
        uint64_t in[3] = {c->a, c->b, c->c};

        memcpy(k.memory + SIM_KIT_IN, in, sizeof in);
        k.code = t_printf("s_load_b256 s[4:11], s[0:1], 0x800\n%s\n"
                          "v_mov_b32 v2, s4\nv_mov_b32 v3, s5\n"
                          "v_mov_b32 v4, s6\nv_mov_b32 v5, s7\n"
                          "v_mov_b32 v6, s8\nv_mov_b32 v7, s9\n"
                          "s_mov_b32 s10, 0\nv_mov_b32 v1, 0\n"
                          "v_mov_b32 v8, 0\nv_mov_b32 v9, 0\n"
                          "s_mov_b32 vcc_lo, 0\n%s\nv_mov_b32 v10, vcc_lo\n"
                          "s_mov_b32 exec_lo, 1\n"
                          "global_store_b64 v1, v[8:9], s[0:1]\n"
                          "global_store_b32 v1, v10, s[0:1] offset:8",
                          wait, spelled(c->text, cpu));
        if (sim_kit_run(&k) != BR_OK)
            ck_abort_msg("%s: %s", c->text, k.st.msg);
        if (word64(&k, 0) != c->want || (uint32_t)word64(&k, 8) != c->vcc) {
            fprintf(stderr,
                    "%s: %s of 0x%llx 0x%llx 0x%llx: 0x%llx vcc 0x%x, not "
                    "0x%llx 0x%llx\n",
                    cpu, c->text, (unsigned long long)c->a,
                    (unsigned long long)c->b, (unsigned long long)c->c,
                    (unsigned long long)word64(&k, 0), (unsigned)word64(&k, 8),
                    (unsigned long long)c->want, (unsigned long long)c->vcc);
            wrong++;
        }
    }
    ck_assert_uint_eq(wrong, 0);
}

TEST(sim_vector_instructions_compute_gfx1100)
{
    vector_cases("gfx1100");
}

TEST(sim_vector_instructions_compute_gfx1201)
{
    vector_cases("gfx1201");
}

static void
scalar_cases(const char *cpu)
{
    const char *wait =
        strcmp(cpu, "gfx1201") ? "s_waitcnt lgkmcnt(0)" : "s_wait_kmcnt 0x0";
    unsigned wrong = 0;

    for (size_t i = 0; i < BR_COUNT(s_cases); i++) {
        sim_kit k = {.cpu = cpu};
        uint64_t in[2] = {s_cases[i].a, s_cases[i].b};

        memcpy(k.memory + SIM_KIT_IN, in, sizeof in);
        k.code = t_printf("s_load_b128 s[4:7], s[0:1], 0x800\n%s\n"
                          "s_mov_b64 s[8:9], 0\ns_cmp_lg_u32 s8, s8\n%s\n"
                          "s_cselect_b32 s10, 1, 0\n"
                          "v_mov_b32 v1, 0\nv_mov_b32 v8, s8\n"
                          "v_mov_b32 v9, s9\nv_mov_b32 v10, s10\n"
                          "global_store_b64 v1, v[8:9], s[0:1]\n"
                          "global_store_b32 v1, v10, s[0:1] offset:8",
                          wait, spelled(s_cases[i].text, cpu));
        if (sim_kit_run(&k) != BR_OK)
            ck_abort_msg("%s: %s", s_cases[i].text, k.st.msg);
        if (word64(&k, 0) != s_cases[i].want ||
            word64(&k, 8) != s_cases[i].scc) {
            fprintf(stderr, "%s: %s of 0x%llx 0x%llx: 0x%llx scc %u\n", cpu,
                    s_cases[i].text, (unsigned long long)s_cases[i].a,
                    (unsigned long long)s_cases[i].b,
                    (unsigned long long)word64(&k, 0), (unsigned)word64(&k, 8));
            wrong++;
        }
    }
    ck_assert_uint_eq(wrong, 0);
}

TEST(sim_scalar_instructions_compute_gfx1100)
{
    scalar_cases("gfx1100");
}

TEST(sim_scalar_instructions_compute_gfx1201)
{
    scalar_cases("gfx1201");
}

/* ---- memory, lanes, work-groups --------------------------------------- */

static void
ran(sim_kit *k)
{
    if (sim_kit_run(k) != BR_OK)
        ck_abort_msg("%s", k->st.msg);
}

static uint32_t
word(const sim_kit *k, unsigned at)
{
    uint32_t v;

    memcpy(&v, k->memory + at, 4);
    return v;
}

/* Of scalars, with all lanes off, too; no register of lanes is written. */
TEST(sim_transcendental_scalars_are_scalars)
{
    sim_kit k = {.cpu = "gfx1201",
                 .code = "s_mov_b32 s4, 4.0\ns_mov_b32 s5, 0x12344400\n"
                         "v_mov_b32 v6, 7\nv_mov_b32 v8, 8\n"
                         "s_mov_b32 s12, exec_lo\ns_mov_b32 exec_lo, 0\n"
                         "v_s_rcp_f32 s6, s4\nv_s_sqrt_f32 s7, s4 mul:2\n"
                         "v_s_rcp_f16 s8, -s5\nv_s_exp_f32 s9, s4 clamp\n"
                         "s_mov_b32 exec_lo, s12\nv_mov_b32 v0, 0\n"
                         "v_mov_b32 v2, s6\nv_mov_b32 v3, s7\n"
                         "v_mov_b32 v4, s8\nv_mov_b32 v5, s9\n"
                         "global_store_b128 v0, v[2:5], s[0:1]\n"
                         "v_mov_b32 v7, v8\n"
                         "global_store_b64 v0, v[6:7], s[0:1] offset:16"};

    ran(&k);
    ck_assert_uint_eq(word(&k, 0), 0x3e800000);
    ck_assert_uint_eq(word(&k, 4), 0x40800000);
    ck_assert_uint_eq(word(&k, 8), 0xb400);
    ck_assert_uint_eq(word(&k, 12), 0x3f800000);
    ck_assert_uint_eq(word(&k, 16), 7);
    ck_assert_uint_eq(word(&k, 20), 8);
}

TEST(sim_atomics_of_memory_and_lds)
{
    static const struct {
        const char *op;
        uint32_t was, data, want;
    } t[] = {
        {"add_u32", 5, 1, 5 + 32},   {"sub_u32", 100, 2, 100 - 64},
        {"max_u32", 5, 9, 9},        {"min_i32", 5, 0xffffffff, 0xffffffff},
        {"and_b32", 0xff, 0xf, 0xf}, {"or_b32", 1, 6, 7},
        {"xor_b32", 1, 3, 1},        {"inc_u32", 0, 5, 32 % 6},
        {"dec_u32", 3, 5, 1},
    };

    for (size_t i = 0; i < BR_COUNT(t); i++) {
        sim_kit k = {.cpu = "gfx1201",
                     .kd = ".amdhsa_group_segment_fixed_size 64"};

        memcpy(k.memory + 8, &t[i].was, 4);
        k.code = t_printf("v_mov_b32 v1, 8\nv_mov_b32 v2, 0x%x\n"
                          "v_mov_b32 v3, 0x%x\nds_store_b32 v1, v3\n"
                          "global_atomic_%s v1, v2, s[0:1]\n"
                          "ds_%s v1, v2\nds_load_b32 v4, v1\n"
                          "s_wait_dscnt 0x0\n"
                          "global_store_b32 v1, v4, s[0:1] offset:8",
                          t[i].data, t[i].was, t[i].op, t[i].op);
        ran(&k);
        ck_assert_msg(word(&k, 8) == t[i].want, "%s: %u", t[i].op, word(&k, 8));
        ck_assert_msg(word(&k, 16) == t[i].want, "ds %s", t[i].op);
    }
}

TEST(sim_atomics_return_what_was_there)
{
    sim_kit k = {.cpu = "gfx1100",
                 .code =
                     "s_mov_b32 exec_lo, 1\nv_mov_b32 v1, 0\n"
                     "v_mov_b32 v2, 7\nv_mov_b32 v3, 41\n"
                     "global_atomic_cmpswap_b32 v4, v1, v[2:3], s[0:1] glc\n"
                     "s_waitcnt vmcnt(0)\n"
                     "global_store_b32 v1, v4, s[0:1] offset:4"};

    k.memory[0] = 41;
    ran(&k);
    ck_assert_uint_eq(word(&k, 0), 7);
    ck_assert_uint_eq(word(&k, 4), 41);
}

/* Each load and store of 16 bits or fewer, at both halves. */
TEST(sim_small_loads_and_stores)
{
    sim_kit k = {.cpu = "gfx1100",
                 .kd = ".amdhsa_private_segment_fixed_size 64\n"
                       ".amdhsa_enable_private_segment 1",
                 .code = "s_mov_b32 exec_lo, 1\nv_mov_b32 v1, 0\n"
                         "v_mov_b32 v5, 0x11112222\nv_mov_b32 v6, v5\n"
                         "global_load_i8 v2, v1, s[0:1] offset:1\n"
                         "global_load_u16 v3, v1, s[0:1]\n"
                         "global_load_d16_u8 v5, v1, s[0:1] offset:1\n"
                         "global_load_d16_hi_b16 v6, v1, s[0:1]\n"
                         "s_waitcnt vmcnt(0)\n"
                         "scratch_store_b32 off, v3, off offset:8\n"
                         "s_waitcnt_vscnt null, 0x0\n"
                         "scratch_load_u8 v4, off, off offset:9\n"
                         "s_waitcnt vmcnt(0)\n"
                         "global_store_b128 v1, v[2:5], s[0:1] offset:16\n"
                         "global_store_b32 v1, v6, s[0:1] offset:32\n"
                         "global_store_d16_hi_b8 v1, v6, s[0:1] offset:40"};

    memcpy(k.memory, "\x34\x92", 2);
    ran(&k);
    ck_assert_uint_eq(word(&k, 16), 0xffffff92);
    ck_assert_uint_eq(word(&k, 20), 0x9234);
    ck_assert_uint_eq(word(&k, 24), 0x92);
    ck_assert_uint_eq(word(&k, 28), 0x11110092);
    ck_assert_uint_eq(word(&k, 32), 0x92342222);
    ck_assert_uint_eq(word(&k, 40), 0x34);
}

/* The manual's examples, of inputs 1 to 0x20. */
TEST(sim_swizzles_go_round_and_in_the_order_of_an_fft)
{
    static const struct {
        unsigned offset;
        uint8_t want[8];
    } of[] = {{0xe000, {0x1, 0x11, 0x9, 0x19, 0x5, 0x15, 0xd, 0x1d}},
              {0xe010, {0x1, 0x9, 0x5, 0xd, 0x3, 0xb, 0x7, 0xf}},
              {0xe01f, {1, 2, 3, 4, 5, 6, 7, 8}},
              {0xc020, {2, 3, 4, 5, 6, 7, 8, 9}},
              {0xc420, {0x20, 1, 2, 3, 4, 5, 6, 7}},
              {0x80b1, {2, 1, 4, 3, 6, 5, 8, 7}},
              {0x041f, {2, 1, 4, 3, 6, 5, 8, 7}}};

    for (size_t n = 0; n < BR_COUNT(of); n++) {
        sim_kit k = {.cpu = "gfx1100"};

        k.code = t_printf("v_lshlrev_b32 v1, 2, v0\nv_add_nc_u32 v2, 1, v0\n"
                          "ds_swizzle_b32 v3, v2 offset:%u\n"
                          "s_waitcnt lgkmcnt(0)\n"
                          "global_store_b32 v1, v3, s[0:1]",
                          of[n].offset);
        ran(&k);
        for (unsigned i = 0; i < 8; i++)
            ck_assert_uint_eq(word(&k, 4 * i), of[n].want[i]);
    }
}

/* Lanes 0-31 of both halves: 64 sums with carries, and a vote. */
TEST(sim_wave64_has_two_halves)
{
    static const char *const waits[] = {"s_waitcnt vmcnt(0)",
                                        "s_wait_loadcnt 0x0"};

    for (int g = 0; g < 2; g++) {
        sim_kit k = {.cpu = g ? "gfx1200" : "gfx1151",
                     .kd = ".amdhsa_wavefront_size32 0"};
        uint64_t votes;

        k.code = t_printf("v_lshlrev_b32 v1, 3, v0\n"
                          "v_add_co_u32 v2, vcc, v0, -32\n"
                          "v_add_co_ci_u32 v3, vcc, 0, v1, vcc\n"
                          "v_cmp_lt_u32 s[4:5], 40, v0\n"
                          "global_store_b64 v1, v[2:3], s[0:1]\n"
                          "v_mov_b32 v4, s4\nv_mov_b32 v5, s5\n"
                          "v_permlane64_b32 v6, v0\n"
                          "v_mov_b32 v7, 0\n"
                          "global_store_b64 v7, v[4:5], s[0:1] offset:512\n"
                          "v_lshlrev_b32 v1, 2, v0\n"
                          "global_store_b32 v1, v6, s[0:1] offset:1024\n%s",
                          waits[g]);
        ran(&k);
        for (unsigned i = 0; i < 64; i++) {
            ck_assert_uint_eq(word(&k, 8 * i), i - 32);
            ck_assert_uint_eq(word(&k, 8 * i + 4), 8 * i + (i >= 32));
            ck_assert_uint_eq(word(&k, 1024 + 4 * i), i ^ 32);
        }
        memcpy(&votes, k.memory + 512, 8);
        ck_assert_uint_eq(votes, 0xfffffe0000000000);
    }
}

TEST(sim_buffers_stop_at_their_records)
{
    sim_kit k = {.cpu = "gfx1100",
                 .code = "s_mov_b32 s4, s0\ns_mov_b32 s5, s1\n"
                         "s_mov_b32 s6, 64\ns_mov_b32 s7, 0\n"
                         "v_lshlrev_b32 v1, 2, v0\nv_mov_b32 v2, 7\n"
                         "v_mov_b32 v3, 9\n"
                         "buffer_store_b32 v2, v1, s[4:7], 0 offen\n"
                         "buffer_load_b32 v3, v1, s[4:7], 0 offen offset:4\n"
                         "s_waitcnt vmcnt(0)\n"
                         "global_store_b32 v1, v3, s[0:1] offset:1024"};

    ran(&k);
    for (unsigned i = 0; i < 32; i++) {
        ck_assert_uint_eq(word(&k, 4 * i), i < 16 ? 7 : 0);
        ck_assert_uint_eq(word(&k, 1024 + 4 * i), i < 15 ? 7 : 0);
    }
}

/* One bit of a lane mask, and zeros above it; null has zeros only. */
TEST(sim_scc_and_null_are_sources_of_any_width)
{
    static const char *const code =
        "s_mov_b32 m0, -1\ns_cmp_eq_u32 s0, s0\n"
        "v_mov_b32 v2, 7\nv_mov_b32 v3, 9\n"
        "v_lshlrev_b32 v1, 2, v0\n"
        "v_cndmask_b32_e64 v4, v2, v3, src_scc\n"
        "global_store_b32 v1, v4, s[0:1]\n"
        "s_or_b64 s[4:5], null, src_scc\nv_mov_b32 v5, s5\n"
        "global_store_b32 v1, v5, s[0:1] offset:512\n"
        "v_cvt_f32_f64 v6, null\n"
        "global_store_b32 v1, v6, s[0:1] offset:1024";

    for (int wave64 = 0; wave64 < 2; wave64++) {
        sim_kit k = {.cpu = "gfx1100",
                     .kd = wave64 ? ".amdhsa_wavefront_size32 0" : NULL,
                     .code = code,
                     .check = true,
                     .items = 64};

        ran(&k);
        ck_assert_uint_eq(k.found, 0);
        for (unsigned i = 0; i < 64; i++) {
            bool first = i % (wave64 ? 64 : 32) == 0;

            ck_assert_uint_eq(word(&k, 4 * i), first ? 9 : 7);
            ck_assert_uint_eq(word(&k, 512 + 4 * i), 0);
            ck_assert_uint_eq(word(&k, 1024 + 4 * i), 0);
        }
    }
}

TEST(sim_flat_addresses_reach_lds_and_scratch)
{
    sim_kit k = {.cpu = "gfx1201",
                 .kd = ".amdhsa_group_segment_fixed_size 64\n"
                       ".amdhsa_private_segment_fixed_size 64\n"
                       ".amdhsa_enable_private_segment 1",
                 .code = "s_mov_b32 exec_lo, 1\nv_mov_b32 v1, 0\n"
                         "s_mov_b64 s[4:5], src_shared_base\n"
                         "s_mov_b64 s[6:7], src_private_base\n"
                         "v_mov_b32 v2, 4\nv_mov_b32 v3, s5\n"
                         "v_mov_b32 v4, 8\nv_mov_b32 v5, s7\n"
                         "v_mov_b32 v6, 77\nv_mov_b32 v7, 88\n"
                         "flat_store_b32 v[2:3], v6\n"
                         "flat_store_b32 v[4:5], v7\n"
                         "s_wait_storecnt_dscnt 0x0\n"
                         "ds_load_b32 v8, v2\n"
                         "scratch_load_b32 v9, off, off offset:8\n"
                         "s_wait_loadcnt_dscnt 0x0\n"
                         "global_store_b64 v1, v[8:9], s[0:1]"};

    ran(&k);
    ck_assert_uint_eq(word(&k, 0), 77);
    ck_assert_uint_eq(word(&k, 4), 88);
}

/* 16 by 16 by 16: A[r][k] = r + k, B[k][c] = k - c, as f16. */
static void
matrix(const char *cpu)
{
    static const uint16_t half[] = {
        0x0000, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700,
        0x4800, 0x4880, 0x4900, 0x4980, 0x4a00, 0x4a80, 0x4b00, 0x4b80,
        0x4c00, 0x4c40, 0x4c80, 0x4cc0, 0x4d00, 0x4d40, 0x4d80, 0x4dc0,
        0x4e00, 0x4e40, 0x4e80, 0x4ec0, 0x4f00, 0x4f40, 0x4f80};
    bool old = strcmp(cpu, "gfx1100") == 0;
    unsigned per = old ? 16 : 8;
    sim_kit k = {.cpu = cpu};

    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned i = 0; i < per; i++) {
            unsigned kk = old ? i : lane / 16 * 8 + i, r = lane % 16;
            uint16_t a = half[r + kk];
            uint16_t b = kk >= r ? half[kk - r] : half[r - kk] | 0x8000;

            memcpy(k.memory + lane * per * 2 + i * 2, &a, 2);
            memcpy(k.memory + 1024 + lane * per * 2 + i * 2, &b, 2);
        }
    k.code = old ? "v_lshlrev_b32 v1, 5, v0\n"
                   "global_load_b128 v[8:11], v1, s[0:1]\n"
                   "global_load_b128 v[12:15], v1, s[0:1] offset:16\n"
                   "global_load_b128 v[16:19], v1, s[0:1] offset:1024\n"
                   "global_load_b128 v[20:23], v1, s[0:1] offset:1040\n"
                   "s_waitcnt vmcnt(0)\n"
                   "v_wmma_f32_16x16x16_f16 v[24:31], v[8:15], v[16:23], 1.0\n"
                   "global_store_b128 v1, v[24:27], s[0:1] offset:2048\n"
                   "global_store_b128 v1, v[28:31], s[0:1] offset:2064\n"
                 : "v_lshlrev_b32 v1, 4, v0\nv_lshlrev_b32 v2, 5, v0\n"
                   "global_load_b128 v[8:11], v1, s[0:1]\n"
                   "global_load_b128 v[16:19], v1, s[0:1] offset:1024\n"
                   "s_wait_loadcnt 0x0\n"
                   "v_wmma_f32_16x16x16_f16 v[24:31], v[8:11], v[16:19], 1.0\n"
                   "global_store_b128 v2, v[24:27], s[0:1] offset:2048\n"
                   "global_store_b128 v2, v[28:31], s[0:1] offset:2064\n";
    ran(&k);
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned i = 0; i < 8; i++) {
            unsigned r = old ? 2 * i + lane / 16 : 8 * (lane / 16) + i;
            int c = (int)lane % 16, want = 1;
            float got;

            for (int kk = 0; kk < 16; kk++)
                want += ((int)r + kk) * (kk - c);
            memcpy(&got, k.memory + 2048 + lane * 32 + i * 4, 4);
            ck_assert_msg(got == (float)want, "%s %u,%d: %g not %d", cpu, r, c,
                          (double)got, want);
        }
}

TEST(sim_matrix_product_gfx1100)
{
    matrix("gfx1100");
}

TEST(sim_matrix_product_gfx1201)
{
    matrix("gfx1201");
}

/* Four registers of sums in each of 64 lanes, and not the fifth. */
TEST(sim_matrix_product_of_64_lanes)
{
    static const char *const b[] = {"v[8:15], v[8:15]", "v[8:9], v[8:9]"};

    for (int g = 0; g < 2; g++) {
        sim_kit k = {.cpu = g ? "gfx1201" : "gfx1100",
                     .kd = ".amdhsa_wavefront_size32 0"};
        br_str s = {0};

        for (int r = 8; r < (g ? 10 : 16); r++)
            br_str_printf(&s, "v_mov_b32 v%d, 0x3c003c00\n", r);
        for (int r = 0; r < 5; r++)
            br_str_printf(&s, "v_mov_b32 v%d, %d.0\n", 16 + r, 1 << r % 3);
        br_str_printf(&s,
                      "v_wmma_f32_16x16x16_f16 v[16:19], %s, v[16:19]\n"
                      "v_lshlrev_b32 v1, 5, v0\n"
                      "global_store_b128 v1, v[16:19], s[0:1]\n"
                      "global_store_b32 v1, v20, s[0:1] offset:16",
                      b[g]);
        k.code = s.at;
        ran(&k);
        br_str_fini(&s);
        for (unsigned i = 0; i < 64 * 5; i++) {
            unsigned r = i % 5;
            float got;

            memcpy(&got, k.memory + 32 * (i / 5) + 4 * r, 4);
            ck_assert(got == (float)((r < 4 ? 16 : 0) + (1 << r % 3)));
        }
    }
}

TEST(sim_work_groups_get_their_ids_and_a_barrier)
{
    static const char *const ids[] = {"s15", "ttmp9"};
    static const char *const bars[] = {
        "s_barrier", "s_barrier_signal -1\ns_barrier_wait -1"};
    static const char *const waits[] = {"s_waitcnt lgkmcnt(0)",
                                        "s_wait_dscnt 0x0"};

    for (int g = 0; g < 2; g++) {
        sim_kit k = {.cpu = g ? "gfx1201" : "gfx1101",
                     .groups = 3,
                     .items = 100,
                     .kd = ".amdhsa_group_segment_fixed_size 512"};

        /* Each item takes what item 99 - i put into LDS. */
        k.code = t_printf("s_mul_i32 s4, %s, 400\nv_lshlrev_b32 v1, 2, v0\n"
                          "v_sub_nc_u32 v2, 396, v1\nds_store_b32 v1, v0\n"
                          "%s\n%s\nds_load_b32 v3, v2\n%s\n"
                          "v_add_nc_u32 v1, s4, v1\n"
                          "global_store_b32 v1, v3, s[0:1]",
                          ids[g], waits[g], bars[g], waits[g]);
        for (k.seed = 0; k.seed < 3; k.seed++) {
            ran(&k);
            for (unsigned i = 0; i < 300; i++)
                ck_assert_uint_eq(word(&k, 4 * i), 99 - i % 100);
        }
    }
}

/* ---- what stops a kernel ---------------------------------------------- */

TEST(sim_faults_name_wave_pc_and_instruction)
{
    static const struct {
        const char *code, *want;
        br_code is;
        uint32_t items;
    } t[] = {
        {"v_mov_b32 v1, 0x1000\nglobal_load_b32 v2, v1, s[0:1]",
         "work-group 0,0,0 wave 0 pc 0x8: global_load_b32 v2, v1, s[0:1]: lane "
         "0: a read of 4 bytes at 0x11000 of memory, outside",
         BR_E_FAULT, 0},
        {"v_mov_b32 v1, 0xffe\nglobal_store_b32 v1, v0, s[0:1]",
         "a write of 4 bytes at 0x10ffe", BR_E_FAULT, 0},
        {"v_mov_b32 v1, 64\nds_store_b32 v1, v0", "local memory", BR_E_FAULT,
         0},
        {"s_mov_b64 s[4:5], s[0:1]\ns_mov_b32 s6, -1\ns_mov_b32 s7, 0\n"
         "buffer_store_b32 v0, v0, s[4:7], -1 offen",
         "a write of 4 bytes at 0x10000ffff of memory", BR_E_FAULT, 0},
        {"s_mov_b64 s[4:5], s[0:1]\ns_mov_b32 s6, -1\ns_mov_b32 s7, 0\n"
         "buffer_store_b32 v0, v0, s[4:7], 0.5 offen",
         "a write of 4 bytes at 0x3f010000 of memory", BR_E_FAULT, 0},
        {"scratch_load_b32 v1, off, off", "of scratch", BR_E_FAULT, 0},
        {"v_mov_b32 v1, 2\nglobal_atomic_add_u32 v1, v0, s[0:1]",
         "lane 0: an atomic of 4 bytes at 0x10002", BR_E_FAULT, 0},
        {"s_load_b32 s4, s[0:1], 0x1000", "a read of 4 bytes at 0x11000",
         BR_E_FAULT, 0},
        {".long 0xbfff0000", "0xbfff0000 is no instruction of gfx1100",
         BR_E_FAULT, 0},
        /* s_delay_alu: a distance, a dependence that is reserved */
        {".long 0xbf870060", "0xbf870060 is no instruction", BR_E_FAULT, 0},
        {".long 0xbf87000c", "0xbf87000c is no instruction", BR_E_FAULT, 0},
        {"s_delay_alu instid0(VALU_DEP_1)", "", BR_OK, 0},
        {"s_sethalt 1", "the simulator does not know: s_sethalt 1",
         BR_E_UNSUPPORTED, 0},
        {"s_mov_b64 s[4:5], 0\ns_setpc_b64 s[4:5]", "no code at 0x0",
         BR_E_FAULT, 0},
        {"v_cmp_eq_u32_e64 src_scc, v0, v0",
         "the simulator does not know: v_cmp_eq_u32_e64 src_scc, v0, v0",
         BR_E_UNSUPPORTED, 0},
        {"v_cmp_eq_u32_e64 src_shared_base, v0, v0",
         "the simulator does not know", BR_E_UNSUPPORTED, 0},
        {"v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], null",
         "the simulator does not know", BR_E_UNSUPPORTED, 0},
        {"s_trap 3", "trap 3", BR_E_FAULT, 0},
        {"s_mov_b32 m0, 0xff\nv_movrels_b32 v1, v2",
         "M0 names a register behind v255", BR_E_FAULT, 0},
        {"s_mov_b32 m0, 0xc8\ns_movrels_b32 s4, s5",
         "M0 names a register behind s105", BR_E_FAULT, 0},
        {"s_getreg_b32 s4, hwreg(HW_REG_GPR_ALLOC)", "hardware register 5",
         BR_E_UNSUPPORTED, 0},
        {"s_setreg_b32 hwreg(HW_REG_GPR_ALLOC), s0",
         "writing hardware register 5", BR_E_UNSUPPORTED, 0},
        {"s_sendmsg sendmsg(MSG_INTERRUPT)", "message 1", BR_E_UNSUPPORTED, 0},
        {"s_mov_b32 exec_lo, 1\n"
         "v_wmma_f32_16x16x16_f16 v[8:15], v[16:23], v[24:31], v[8:15]",
         "a matrix product with lanes off", BR_E_FAULT, 0},
        {"s_mov_b64 s[4:5], s[0:1]\ns_mov_b32 s6, 8\ns_mov_b32 s7, 0\n"
         "s_buffer_load_b32 s8, s[4:7], 0x8",
         "a scalar read past a buffer's end", BR_E_FAULT, 0},
        {"x: s_branch x", "more than 1048576 instructions", BR_E_TIMEOUT, 0},
        {"v_readfirstlane_b32 s4, v0\ns_cmp_eq_u32 s4, 0\n"
         "s_cbranch_scc1 x\ns_barrier\nx: s_barrier\n"
         "s_cbranch_scc1 y\ns_barrier\ns_barrier\n"
         "y: s_cbranch_scc0 z\ns_endpgm\nz: s_barrier\n",
         "", BR_OK, 64},
        {"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 2, 2), 1\n"
         "v_mov_b32 v1, 0\nv_add_f16 v1, v1, v1",
         "f16 rounded another way", BR_E_UNSUPPORTED, 0},
    };

    for (size_t i = 0; i < BR_COUNT(t); i++) {
        sim_kit k = {.cpu = "gfx1100", .code = t[i].code, .items = t[i].items};
        br_code c = sim_kit_run(&k);

        ck_assert_msg(c == t[i].is && strstr(k.st.msg, t[i].want), "%s -> %s",
                      t[i].code, k.st.msg);
    }
}

/* Both halves read before either writes. */
TEST(sim_dual_instructions_are_two_at_once)
{
    static const char *const cpus[] = {"gfx1100", "gfx1201"};

    for (int c = 0; c < 2; c++) {
        sim_kit k = {.cpu = cpus[c],
                     .check = true,
                     .code = "v_lshlrev_b32 v1, 2, v0\nv_mov_b32 v2, 3\n"
                             "s_mov_b32 exec_lo, 0xffff\n"
                             "v_dual_mov_b32 v2, v0 :: v_dual_add_nc_u32 v3, "
                             "v2, v0\n"
                             "s_mov_b32 exec_lo, -1\n"
                             "s_mov_b32 exec_lo, 0xffff\n"
                             "global_store_b32 v1, v3, s[0:1]\n"
                             "s_mov_b32 exec_lo, -1\n"
                             "global_store_b32 v1, v2, s[0:1] offset:128"};

        ran(&k);
        ck_assert_uint_eq(k.found, 0);
        for (unsigned i = 0; i < 32; i++) {
            ck_assert_uint_eq(word(&k, 128 + 4 * i), i < 16 ? i : 3);
            if (i < 16)
                ck_assert_uint_eq(word(&k, 4 * i), 3 + i);
        }
    }
}

/* Fields of a dual instruction set so that its halves may not go together. */
TEST(sim_dual_instructions_that_break_the_rules_fault)
{
    static const char fmac[] =
        "v_dual_fmac_f32 v0, v1, v2 :: v_dual_fmamk_f32 v7, v4, 0x40490fdb, v5";
    static const char mul[] =
        "v_dual_mul_f32 v0, s4, v2 :: v_dual_cndmask_b32 v7, v4, v5";
    static const char mov[] = "v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v7, v4";
    static const struct {
        const char *text;
        br_gcn_field field;
        uint32_t v;
        int legal_to; /* on processors before this one of cpus */
    } t[] = {
        {fmac, BR_GF_vsrcy1, 5, 2},
        {fmac, BR_GF_srcy0, 256 + 5, 0}, /* bank of v1 */
        {fmac, BR_GF_vsrcy1, 6, 0},      /* source 2: as even as v0 */
        {mul, BR_GF_vsrcy1, 7, 2},
        {mul, BR_GF_vsrcy1, 6, 0},      /* bank of v2 */
        {mul, BR_GF_srcy0, 4, 2},       /* the same scalar, VCC */
        {mul, BR_GF_srcy0, 5, 0},       /* a third one */
        {mov, BR_GF_srcy0, 256 + 5, 1}, /* not on gfx11 */
    };
    static const char *const cpus[] = {"gfx1201", "gfx1100"};

    for (size_t i = 0; i < 2 * BR_COUNT(t); i++) {
        br_gcn_isa isa = {br_gcn_cpu_find(cpus[i % 2]), false};
        sim_kit k = {.cpu = cpus[i % 2]};
        br_status st = {0};
        br_gcn_inst in;
        bool legal = (int)(i % 2) < t[i / 2].legal_to;
        br_code c;

        t_ok(br_gcn_parse(&isa, t[i / 2].text, strlen(t[i / 2].text), &in, &st),
             &st);
        br_gcn_set(&in, t[i / 2].field, t[i / 2].v);
        k.code = t_printf(".long 0x%x, 0x%x\n%s", in.w[0], in.w[1],
                          in.words > 2 ? t_printf(".long 0x%x", in.w[2]) : "");
        c = sim_kit_run(&k);
        ck_assert_msg(c == (legal ? BR_OK : BR_E_FAULT) &&
                          (legal || strstr(k.st.msg, "halves of a dual one")),
                      "%zu: %s -> %s", i / 2, k.code, k.st.msg);
    }
}

TEST(sim_dual_instructions_are_of_32_lanes)
{
    sim_kit k = {.cpu = "gfx1201",
                 .kd = ".amdhsa_wavefront_size32 0",
                 .code = ".long 0xca100080, 0x01000080"};

    ck_assert_int_eq(sim_kit_run(&k), BR_E_FAULT);
    ck_assert_msg(strstr(k.st.msg, "in a wave of 64") != NULL, "%s", k.st.msg);
}

/* gfx12 parts a barrier in two. */
TEST(sim_barriers_that_nobody_has_are_told)
{
    static const char *const rows[][2] = {
        {"s_barrier_signal 1", "a named barrier, or a signal twice"},
        {"s_barrier_signal -1\ns_barrier_signal -1",
         "a named barrier, or a signal twice"},
        {"s_barrier_wait -1", "waiting at a barrier without signal"},
    };

    for (size_t k = 0; k < BR_COUNT(rows); k++) {
        sim_kit t = {.cpu = "gfx1201", .code = rows[k][0], .items = 64};

        ck_assert_int_ne(sim_kit_run(&t), BR_OK);
        ck_assert_msg(strstr(t.st.msg, rows[k][1]) != NULL, "%s", t.st.msg);
    }
}

TEST(sim_waves_that_wait_for_nobody_are_found)
{
    sim_kit k = {.cpu = "gfx1201", .code = "s_barrier_wait -1"};

    ck_assert_int_eq(sim_kit_run(&k), BR_E_FAULT);
    ck_assert(strstr(k.st.msg, "waiting at a barrier without signal"));
}

TEST(sim_cli_runs_code_objects_of_clang)
{
    static const char *const cpus[] = {"gfx1100", "gfx1201"};
    const char *dir = t_tmpdir(), *in = t_printf("%s/a.bin", dir);
    const char *co = t_printf("%s/a.co", dir), *out = t_printf("%s/c", dir);
    float a[256], *c;
    t_proc r;

    for (int i = 0; i < 256; i++)
        a[i] = (float)i / 2;
    t_write(in, a, sizeof a);
    for (int g = 0; g < 2; g++) {
        t_run(&r, "gcn", "asm",
              t_repo(t_printf("tests/data/gcn/two_%s.s", cpus[g])), "--cpu",
              cpus[g], "-o", co);
        ck_assert_int_eq(r.exit, 0);
        t_run(&r, "gcn", "sim", co, "--kernel", "vadd", "--grid", "4",
              "--block", "64", "--arg", t_printf("buf:%s", in), "--arg",
              t_printf("buf:%s", in), "--arg", t_printf("buf:%s:out=1024", out),
              "--arg", "u32:200", "--json");
        ck_assert_str_eq(r.err, "");
        ck_assert(strstr(r.out, "\"findings\":0"));
        c = (float *)(void *)t_read(out, NULL);
        for (int i = 0; i < 256; i++)
            ck_assert(c[i] ==
                      (i < 200 ? a[i] + a[i] * (float)"\1\2\3\5"[i % 4] : 0));
        t_run(&r, "gcn", "sim", co, "--kernel", "reduce", "--grid", "4",
              "--block", "64", "--arg", t_printf("buf:%s", in), "--arg",
              t_printf("buf:%s:out=16", out));
        ck_assert_str_eq(r.err, "");
        c = (float *)(void *)t_read(out, NULL);
        ck_assert(c[0] == 1008 && c[3] == 7152);
    }
    t_run(&r, "gcn", "sim", co, "--arg", "u32:1");
    ck_assert_int_eq(r.exit, 2);
    ck_assert(strstr(r.err, "--kernel has to name one"));
    t_run(&r, "gcn", "sim", co, "--kernel", "nope");
    ck_assert_int_eq(r.exit, 3);
}

/* The register of a compare with a constant stands where results do. */
TEST(sim_compares_with_constants_write_no_register)
{
    sim_kit k = {.cpu = "gfx1100",
                 .code = "s_mov_b32 s4, 7\ns_cmpk_lg_i32 s4, 0x80\n"
                         "s_cselect_b32 s5, 3, 5\ns_add_u32 s4, s4, s5\n"
                         "v_lshlrev_b32 v1, 2, v0\nv_mov_b32 v2, s4\n"
                         "global_store_b32 v1, v2, s[0:1]"};

    ck_assert_int_eq(sim_kit_run(&k), BR_OK);
    ck_assert_uint_eq(k.memory[0], 10);
    br_str_fini(&k.findings);
}

/* A source of 64 bits that is SCC has zeros above it: behind it is no register. */
TEST(sim_scc_is_a_source_of_any_width)
{
    for (int i = 0; i < 8; i++) {
        const char *vcc = i & 1 ? "vcc_lo" : "vcc";
        sim_kit k = {.cpu = i & 2 ? "gfx1200" : "gfx1100",
                     .kd = i & 1 ? NULL : ".amdhsa_wavefront_size32 0"};

        k.code = t_printf("s_cmp_eq_u32 s0, s0\n"
                          "v_mad_u64_u32 v[2:3], %s, v0, 4, src_scc%s\n"
                          "v_lshlrev_b32 v1, 3, v0\n"
                          "global_store_b64 v1, v[2:3], s[0:1]",
                          vcc, i & 4 ? " clamp" : "");
        ran(&k);
        for (unsigned lane = 0; lane < (i & 1 ? 32u : 64u); lane++) {
            ck_assert_uint_eq(word(&k, 8 * lane), 4 * lane + 1);
            ck_assert_uint_eq(word(&k, 8 * lane + 4), 0);
        }
    }
}
