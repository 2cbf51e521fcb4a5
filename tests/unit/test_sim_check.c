/* test_sim_check.c - every check of the simulated AMD GPU finds its fault, and
 * says nothing where there is none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "sim_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

T_ONE_THREAD();

#define LDS ".amdhsa_group_segment_fixed_size 512"
#define SCRATCH                               \
    ".amdhsa_private_segment_fixed_size 64\n" \
    ".amdhsa_enable_private_segment 1"
#define WAVE64  ".amdhsa_wavefront_size32 0"
/* s4 lane * 4 in v1; what is stored is lane's own word. */
#define HEAD    "v_lshlrev_b32 v1, 2, v0\n"
#define PRODUCT "v_wmma_f16_16x16x16_f16 v[8:15], "
#define ZEROS                                                \
    "v_mov_b32 v16, 0\nv_mov_b32 v17, 0\nv_mov_b32 v18, 0\n" \
    "v_mov_b32 v19, 0\nv_mov_b32 v20, 0\nv_mov_b32 v21, 0\n" \
    "v_mov_b32 v22, 0\nv_mov_b32 v23, 0\n"
#define TAIL "global_store_b32 v1, v2, s[0:1]\n"

static const struct {
    const char *cpu, *kd, *good, *bad;
    const char *says; /* of bad */
    uint32_t items;
} faults[] = {
    /* waits: missing, too weak, of the wrong counter */
    {"gfx1100", NULL,
     HEAD "global_load_b32 v2, v1, s[0:1]\ns_waitcnt vmcnt(0)\n" TAIL,
     HEAD "global_load_b32 v2, v1, s[0:1]\n" TAIL, "v2 is read before vmcnt",
     0},
    {"gfx1100", NULL,
     HEAD "global_load_b32 v2, v1, s[0:1]\nglobal_load_b32 v3, v1, s[0:1]\n"
          "s_waitcnt vmcnt(1)\n" TAIL,
     HEAD "global_load_b32 v3, v1, s[0:1]\nglobal_load_b32 v2, v1, s[0:1]\n"
          "s_waitcnt vmcnt(1)\n" TAIL,
     "v2 is read before vmcnt", 0},
    {"gfx1100", NULL,
     HEAD "global_load_b32 v2, v1, s[0:1]\ns_waitcnt vmcnt(0)\n" TAIL,
     HEAD "global_load_b32 v2, v1, s[0:1]\ns_waitcnt lgkmcnt(0)\n" TAIL,
     "v2 is read before vmcnt", 0},
    {"gfx1100", NULL,
     "s_load_b32 s4, s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_add_u32 s4, s4, 1",
     "s_load_b32 s4, s[0:1], 0x0\ns_add_u32 s4, s4, 1",
     "s4 is read before lgkmcnt", 0},
    /* scalar loads come back in any order */
    {"gfx1100", NULL,
     "s_load_b32 s4, s[0:1], 0x0\ns_load_b32 s5, s[0:1], 0x4\n"
     "s_waitcnt lgkmcnt(0)\ns_add_u32 s4, s4, 1",
     "s_load_b32 s4, s[0:1], 0x0\ns_load_b32 s5, s[0:1], 0x4\n"
     "s_waitcnt lgkmcnt(1)\ns_add_u32 s4, s4, 1",
     "s4 is read before lgkmcnt", 0},
    {"gfx1201", LDS,
     HEAD "ds_store_b32 v1, v0\nds_load_b32 v2, v1\ns_wait_dscnt 0x0\n" TAIL,
     HEAD "ds_store_b32 v1, v0\nds_load_b32 v2, v1\ns_wait_loadcnt 0x0\n" TAIL,
     "v2 is read before dscnt", 0},
    {"gfx1201", NULL,
     HEAD "global_load_b32 v2, v1, s[0:1]\ns_wait_loadcnt 0x0\n"
          "v_mov_b32 v2, 0\n" TAIL,
     HEAD "global_load_b32 v2, v1, s[0:1]\nv_mov_b32 v2, 0\n"
          "s_wait_loadcnt 0x0\n" TAIL,
     "v2 is written before loadcnt", 0},
    {"gfx1201", NULL,
     "s_load_b64 s[4:5], s[0:1], 0x0\ns_wait_kmcnt 0x0\ns_mov_b32 s5, 0",
     "s_load_b64 s[4:5], s[0:1], 0x0\ns_mov_b32 s5, 0\ns_wait_kmcnt 0x0",
     "s5 is written before kmcnt", 0},
    {"gfx1100", NULL,
     HEAD "v_add_co_u32 v2, vcc_lo, s0, v1\nv_mov_b32 v3, 0\n"
          "v_add_co_ci_u32 v3, vcc_lo, s1, v3, vcc_lo\n"
          "flat_load_b32 v2, v[2:3]\ns_waitcnt vmcnt(0) lgkmcnt(0)\n" TAIL,
     HEAD "v_add_co_u32 v2, vcc_lo, s0, v1\nv_mov_b32 v3, 0\n"
          "v_add_co_ci_u32 v3, vcc_lo, s1, v3, vcc_lo\n"
          "flat_load_b32 v2, v[2:3]\ns_waitcnt vmcnt(0)\n" TAIL,
     "v2 is read before lgkmcnt", 0},
    /* nothing was ever there */
    {"gfx1201", NULL, HEAD "v_mov_b32 v2, 1\n" TAIL, HEAD TAIL,
     "what is stored, v2 is read in lane 0, where nothing defined it", 0},
    {"gfx1201", NULL, HEAD "v_mov_b32 v2, 1\n" TAIL,
     HEAD "v_add_f32 v2, v3, v3\n" TAIL, "what is stored, v2", 0},
    {"gfx1201", NULL, "v_mov_b32 v1, 0\nv_mov_b32 v2, 1\n" TAIL,
     "v_mov_b32 v2, 1\n" TAIL, "the address v1 is read in lane 0", 0},
    {"gfx1100", NULL,
     HEAD "v_mov_b32 v2, 0\ns_mov_b32 exec_lo, 15\nv_mov_b32 v2, 1\n"
          "s_mov_b32 exec_lo, -1\n" TAIL,
     HEAD "s_mov_b32 exec_lo, 15\nv_mov_b32 v2, 1\n"
          "s_mov_b32 exec_lo, -1\n" TAIL,
     "read in lane 4", 0},
    /* s9: a user SGPR, too, which is nothing's */
    {"gfx1100", NULL, "s_mov_b32 s9, 1\ns_add_u32 s8, s9, s9",
     "s_add_u32 s8, s9, s9", "s9 is read, and nothing wrote it", 0},
    {"gfx1100", NULL, "v_mov_b32 v3, 1\nv_cmp_eq_u32 vcc_lo, 1, v3",
     "v_cmp_eq_u32 vcc_lo, 1, v3", "lane 0 of a vector source", 0},
    {"gfx1100", NULL, "v_readfirstlane_b32 s4, v0",
     "v_readfirstlane_b32 s4, v9", "lane 0 of a vector source", 0},
    {"gfx1201", LDS,
     HEAD "ds_store_b32 v1, v0\nds_load_b32 v2, v1\ns_wait_dscnt 0x0\n" TAIL,
     HEAD "ds_load_b32 v2, v1\ns_wait_dscnt 0x0\n" TAIL,
     "lane 0 reads LDS 0x0, which nothing wrote", 0},
    {"gfx1201", SCRATCH,
     HEAD "scratch_store_b32 off, v0, off\nscratch_load_b32 v2, off, off\n"
          "s_wait_loadcnt 0x0\n" TAIL,
     HEAD "scratch_store_b16 off, v0, off\nscratch_load_b32 v2, off, off\n"
          "s_wait_loadcnt 0x0\n" TAIL,
     "lane 0 reads scratch 0x2, which nothing wrote", 0},
    /* registers that the descriptor does not ask for */
    {"gfx1201", NULL, "v_mov_b32 v63, 1", "v_mov_b32 v64, 1",
     "v64 is used, and the descriptor asks for 64 registers", 0},
    {"gfx1100", NULL, "v_add_f32 v2, v0, v0", "v_add_f32 v2, v0, v70",
     "v70 is used", 0},
    {"gfx1100", NULL,
     HEAD "global_load_b64 v[62:63], v1, s[0:1]\ns_waitcnt vmcnt(0)\n",
     HEAD "global_load_b64 v[63:64], v1, s[0:1]\ns_waitcnt vmcnt(0)\n",
     "v64 is used", 0},
    {"gfx1201", WAVE64, "v_mov_b32 v63, 1", "v_mov_b32 v64, 1", "v64 is used",
     0},
    /* waves among each other */
    {"gfx1100", LDS,
     HEAD "v_xor_b32 v3, 0x80, v1\nds_store_b32 v1, v0\n"
          "s_waitcnt lgkmcnt(0)\ns_barrier\nds_load_b32 v2, v3\n"
          "s_waitcnt lgkmcnt(0)\n" TAIL,
     HEAD "v_xor_b32 v3, 0x80, v1\nds_store_b32 v1, v0\n"
          "s_waitcnt lgkmcnt(0)\nds_load_b32 v2, v3\n"
          "s_waitcnt lgkmcnt(0)\n" TAIL,
     "with no barrier between", 64},
    {"gfx1100", LDS,
     HEAD "v_xor_b32 v3, 0x80, v1\nds_store_b32 v1, v0\n"
          "s_waitcnt lgkmcnt(0)\ns_barrier\nds_load_b32 v2, v3\n"
          "s_waitcnt lgkmcnt(0)\n" TAIL,
     HEAD "v_xor_b32 v3, 0x80, v1\nds_store_b32 v1, v0\ns_barrier\n"
          "ds_load_b32 v2, v3\ns_waitcnt lgkmcnt(0)\n" TAIL,
     "which did not wait for that before the barrier", 64},
    {"gfx1201", LDS,
     HEAD "v_mov_b32 v3, 0\nds_store_b32 v1, v3\nds_add_u32 v1, v0\n"
          "s_wait_dscnt 0x0\ns_barrier_signal -1\ns_barrier_wait -1\n",
     HEAD "v_mov_b32 v3, 0\nds_store_b32 v3, v3\nds_store_b32 v1, v0\n"
          "s_wait_dscnt 0x0\ns_barrier_signal -1\ns_barrier_wait -1\n",
     "was written by wave", 64},
    {"gfx1100", NULL, "s_barrier\ns_barrier",
     "v_readfirstlane_b32 s4, v0\ns_cmp_eq_u32 s4, 0\n"
     "s_cbranch_scc1 x\ns_barrier\ns_endpgm\nx: s_barrier\n",
     "is at another barrier", 64},
    {"gfx1100", NULL, "s_barrier",
     "v_readfirstlane_b32 s4, v0\ns_cmp_eq_u32 s4, 0\n"
     "s_cbranch_scc1 x\ns_barrier\nx:\n",
     "1 waves have ended before this barrier", 64},
    /* hazards */
    {"gfx1100", NULL,
     "v_cvt_f32_u32 v2, v0\nv_exp_f32 v3, v2\ns_waitcnt_depctr 0xfff\n"
     "v_add_f32 v4, v3, v3",
     "v_cvt_f32_u32 v2, v0\nv_exp_f32 v3, v2\nv_add_f32 v4, v3, v3",
     "v3 comes from a transcendental instruction", 0},
    {"gfx1151", NULL,
     "v_cvt_f32_u32 v2, v0\nv_exp_f32 v3, v2\nv_add_f32 v4, v3, v3",
     "v_add_f32 v4, v3, v3\nglobal_store_b32 v4, v4, s[0:1]", "the address v4",
     0},
    {"gfx1100", WAVE64,
     "s_mov_b64 s[4:5], 1\nv_cndmask_b32 v2, v0, v0, s[4:5]\n"
     "s_mov_b64 s[4:5], 2\ns_waitcnt_depctr 0xfffe\n"
     "v_cndmask_b32 v2, v0, v0, s[4:5]",
     "s_mov_b64 s[4:5], 1\nv_cndmask_b32 v2, v0, v0, s[4:5]\n"
     "s_mov_b64 s[4:5], 2\nv_cndmask_b32 v2, v0, v0, s[4:5]",
     "s4 was a lane mask", 0},
    {"gfx1100", WAVE64,
     "v_cmp_gt_u32 vcc, 9, v0\nv_cndmask_b32 v2, v0, v0, vcc\n"
     "v_cmp_gt_u32 vcc, 7, v0\ns_waitcnt_depctr 0xfffd\n"
     "v_cndmask_b32 v2, v0, v0, vcc",
     "v_cmp_gt_u32 vcc, 9, v0\nv_cndmask_b32 v2, v0, v0, vcc\n"
     "v_cmp_gt_u32 vcc, 7, v0\nv_cndmask_b32 v2, v0, v0, vcc",
     "s106 was a lane mask, was written by VALU", 0},
    {"gfx1100", WAVE64,
     "s_mov_b64 s[4:5], exec\nv_add_nc_u32 v2, 1, v0\n"
     "s_mov_b64 exec, s[4:5]\nv_add_nc_u32 v3, 2, v0\n"
     "s_waitcnt_depctr 0xfff\nv_add_nc_u32 v4, v2, v3",
     "s_mov_b64 s[4:5], exec\nv_add_nc_u32 v2, 1, v0\n"
     "s_mov_b64 exec, s[4:5]\nv_add_nc_u32 v3, 2, v0\n"
     "v_add_nc_u32 v4, v2, v3",
     "v2 was written just before EXEC was", 0},
    /* three between, or five behind, or all after EXEC, are none */
    {"gfx1100", WAVE64,
     "s_mov_b64 s[4:5], exec\nv_add_nc_u32 v2, 1, v0\nv_nop\nv_nop\nv_nop\n"
     "s_mov_b64 exec, s[4:5]\nv_add_nc_u32 v3, 2, v0\n"
     "v_add_nc_u32 v4, v2, v3\ns_mov_b64 exec, s[4:5]\n"
     "v_add_nc_u32 v5, 2, v0\nv_nop\nv_nop\nv_nop\nv_nop\nv_nop\n"
     "v_add_nc_u32 v6, v5, v4\nv_add_nc_u32 v7, 1, v0\n"
     "v_add_nc_u32 v8, v6, v7",
     "s_mov_b64 s[4:5], exec\nv_add_nc_u32 v2, 1, v0\nv_nop\nv_nop\n"
     "s_and_saveexec_b64 s[6:7], s[4:5]\nv_add_nc_u32 v3, 2, v0\nv_nop\nv_nop\n"
     "v_nop\nv_nop\nv_add_nc_u32 v4, v2, v3",
     "v2 was written just before EXEC was", 0},
    {"gfx1201", NULL,
     "s_mov_b32 s4, 1\nv_mov_b32 v2, s4\ns_mov_b32 s4, 2\n"
     "s_wait_alu 0xfffe\nv_mov_b32 v2, s4",
     "s_mov_b32 s4, 1\nv_mov_b32 v2, s4\ns_mov_b32 s4, 2\nv_mov_b32 v2, s4",
     "s4 was read by VALU, written by SALU", 0},
    /* s5 is of the pair */
    {"gfx1201", NULL,
     "s_mov_b32 s4, 1\nv_mov_b32 v2, s4\ns_mov_b32 s6, 2\n"
     "v_mov_b32 v2, s6",
     "s_mov_b32 s4, 1\nv_mov_b32 v2, s4\ns_mov_b32 s5, 2\n"
     "v_mov_b32 v2, s5",
     "s5 was read by VALU, written by SALU", 0},
    {"gfx1201", NULL,
     "s_mov_b32 s4, 1\nv_mov_b32 v2, s4\ns_wait_alu 0xfffe\n"
     "v_readfirstlane_b32 s4, v0\ns_add_co_u32 s5, s4, 1\nv_mov_b32 v2, s4",
     "s_mov_b32 s4, 1\nv_mov_b32 v2, s4\ns_wait_alu 0xfffe\n"
     "v_readfirstlane_b32 s4, v0\nv_mov_b32 v2, s4",
     "s_wait_alu va_sdst(0)", 0},
    {"gfx1201", NULL,
     "v_add_co_u32 v2, vcc_lo, v0, v0\nv_add_co_ci_u32 v3, vcc_lo, v0, v0, "
     "vcc_lo\nv_add_co_u32 v2, vcc_lo, v0, v0\ns_wait_alu 0xfffd\n"
     "v_add_co_ci_u32 v3, vcc_lo, v0, v0, vcc_lo",
     "v_add_co_u32 v2, vcc_lo, v0, v0\nv_add_co_ci_u32 v3, vcc_lo, v0, v0, "
     "vcc_lo\nv_add_co_u32 v2, vcc_lo, v0, v0\n"
     "v_add_co_ci_u32 v3, vcc_lo, v0, v0, vcc_lo",
     "s_wait_alu va_vcc(0)", 0},
    {"gfx1100", NULL,
     "s_mov_b32 s4, 0\nv_cmpx_gt_u32 99, v0\nv_nop\n"
     "v_permlane16_b32 v2, v0, s4, s4",
     "s_mov_b32 s4, 0\nv_cmpx_gt_u32 99, v0\n"
     "v_permlane16_b32 v2, v0, s4, s4",
     "v_cmpx right before", 0},
    {"gfx1100", NULL,
     ZEROS PRODUCT "v[16:23], v[16:23], 0\nv_nop\n" PRODUCT
                   "v[8:15], v[16:23], 0",
     ZEROS PRODUCT "v[16:23], v[16:23], 0\n" PRODUCT "v[8:15], v[16:23], 0",
     "A or B is the result of the matrix product before", 0},
    {"gfx1201", NULL,
     "s_mov_b32 s4, 1\nv_mov_b32 v2, s4\ns_wait_alu 0xfffe\n"
     "v_cmp_eq_u32 s4, 1, v0\ns_wait_alu 0xf1ff\nv_mov_b32 v2, s4",
     "s_mov_b32 s4, 1\nv_mov_b32 v2, s4\ns_wait_alu 0xfffe\n"
     "v_cmp_eq_u32 s4, 1, v0\nv_mov_b32 v2, s4",
     "s4 was read and then written by VALU, and is read", 0},
    /* both halves of a dual instruction count */
    {"gfx1201", NULL,
     HEAD "v_dual_mov_b32 v3, 0 :: v_dual_mov_b32 v2, v1\n" TAIL,
     HEAD "v_dual_mov_b32 v3, 0 :: v_dual_mov_b32 v2, v9\n" TAIL,
     "what is stored, v2", 0},
    {"gfx1201", NULL,
     HEAD "global_load_b32 v3, v1, s[0:1]\ns_wait_loadcnt 0x0\n"
          "v_dual_mov_b32 v4, 0 :: v_dual_mov_b32 v5, v3",
     HEAD "global_load_b32 v3, v1, s[0:1]\n"
          "v_dual_mov_b32 v4, 0 :: v_dual_mov_b32 v5, v3\n"
          "s_wait_loadcnt 0x0",
     "v3 is read before loadcnt", 0},
    {"gfx1100", NULL,
     "v_cvt_f32_u32 v2, v0\nv_exp_f32 v3, v2\ns_waitcnt_depctr 0xfff\n"
     "v_dual_mov_b32 v4, v2 :: v_dual_add_f32 v5, v3, v2",
     "v_cvt_f32_u32 v2, v0\nv_exp_f32 v3, v2\n"
     "v_dual_mov_b32 v4, v2 :: v_dual_add_f32 v5, v3, v2",
     "v3 comes from a transcendental instruction", 0},
    {"gfx1201", NULL,
     "s_mov_b32 s4, 1\nv_mov_b32 v2, s4\ns_mov_b32 s4, 2\n"
     "s_wait_alu 0xfffe\nv_dual_mov_b32 v4, 0 :: v_dual_mov_b32 v5, s4",
     "s_mov_b32 s4, 1\nv_mov_b32 v2, s4\ns_mov_b32 s4, 2\n"
     "v_dual_mov_b32 v4, 0 :: v_dual_mov_b32 v5, s4",
     "s4 was read by VALU, written by SALU", 0},
    {"gfx1100", NULL, "s_nop 0\ns_sendmsg sendmsg(MSG_DEALLOC_VGPRS)",
     "s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)", "s_nop has to stand", 0},
};

TEST(sim_checks_find_each_planted_fault)
{
    for (size_t i = 0; i < BR_COUNT(faults); i++)
        for (int bad = 0; bad < 2; bad++) {
            sim_kit k = {.cpu = faults[i].cpu,
                         .kd = faults[i].kd,
                         .code = bad ? faults[i].bad : faults[i].good,
                         .items = faults[i].items,
                         .check = true};

            if (sim_kit_run(&k) != BR_OK)
                ck_abort_msg("%s\n%s", k.code, k.st.msg);
            if (bad)
                ck_assert_msg(k.found &&
                                  strstr(k.findings.at, faults[i].says) &&
                                  strstr(k.findings.at, " pc 0x"),
                              "%s\n-> %s, not %s", k.code,
                              br_str_z(&k.findings), faults[i].says);
            else
                ck_assert_msg(!k.found, "%s\n-> %s", k.code,
                              br_str_z(&k.findings));
            br_str_fini(&k.findings);
        }
}

/* gfx1100 and gfx1102, waves of 32 lanes: SGPRs are set wrong where fewer than 16 are
 * set up. */
TEST(sim_waves_that_start_with_few_scalars_are_reported)
{
    static const struct {
        const char *cpu, *kd;
        unsigned users;
        bool bad;
    } of[] = {{"gfx1100", NULL, 14, true},
              {"gfx1102", NULL, 2, true},
              {"gfx1100", NULL, 15, false}, /* and the work-group's number */
              {"gfx1100", ".amdhsa_system_sgpr_workgroup_id_y 1", 14, false},
              {"gfx1100", WAVE64, 2, false},
              {"gfx1101", NULL, 2, false},
              {"gfx1151", NULL, 2, false},
              {"gfx1201", NULL, 2, false}};

    for (size_t i = 0; i < BR_COUNT(of); i++) {
        sim_kit k = {.cpu = of[i].cpu,
                     .kd = of[i].kd,
                     .users = of[i].users,
                     .code = "s_nop 0",
                     .check = true};

        if (sim_kit_run(&k) != BR_OK)
            ck_abort_msg("%s", k.st.msg);
        ck_assert_msg(
            of[i].bad ? strstr(br_str_z(&k.findings), "sets them wrong") != NULL
                      : !k.found,
            "%zu: %s", i, br_str_z(&k.findings));
        br_str_fini(&k.findings);
    }
}

static br_code
checked(void *arg, br_status *st)
{
    br_gcn_co *co = arg;
    br_sim s = {.cpu = co->isa.cpu, .check = true};
    br_aql_launch l = {.groups = {1, 1, 1},
                       .group = {64, 1, 1},
                       .group_bytes = 64,
                       .private_bytes = 16};
    br_aql_packet p;
    br_code c = br_sim_load(&s, co, 0x100000, st);

    l.kernel = 0x100000 + br_gcn_kernel_find(co, "k")->at;
    if (c == BR_OK)
        c = br_aql_fill(&p, &l, st);
    if (c == BR_OK)
        c = br_sim_dispatch(&s, &p, st);
    br_sim_fini(&s);
    return c;
}

/* ---- mutants ---------------------------------------------------------- */

static bool
is_guard(const char *line)
{
    return strstr(line, "s_wait") || strstr(line, "s_barrier");
}

typedef struct mutants {
    const char *cpu;
    unsigned all, caught;
    br_str missed;
} mutants;

/* A kernel on 64 floats a group; what it left in memory. */
static br_code
run_kernel(const char *cpu, const char *text, size_t n, const char *name,
           uint64_t seed, float out[256], uint64_t *found)
{
    br_str o = {0};
    br_gcn_co co = {0};
    br_sim s = {.cpu = br_gcn_cpu_find(cpu),
                .check = true,
                .seed = seed,
                .max_steps = 100000};
    float in[256];
    struct {
        uint64_t a, b, c;
        uint32_t n, pad;
    } args = {0x10000, 0x10000, 0x30000, 200, 0};
    br_kregion r[] = {{.addr = 0x10000, .bytes = 1024, .host = (uint8_t *)in},
                      {.addr = 0x30000, .bytes = 1024, .host = (uint8_t *)out},
                      {.addr = 0x40000, .bytes = 32, .host = (uint8_t *)&args}};
    br_aql_launch l = {
        .groups = {4, 1, 1}, .group = {64, 1, 1}, .kernarg = 0x40000};
    br_aql_packet p;
    br_code c;

    for (int i = 0; i < 256; i++)
        in[i] = (float)(i * i % 61);
    memset(out, 0, 1024);
    c = br_gcn_assemble(&o, s.cpu, text, n, NULL);
    if (c == BR_OK)
        c = br_gcn_load(&co, o.at, o.n, NULL);
    for (int i = 0; i < 3 && c == BR_OK; i++)
        c = br_sim_map(&s, &r[i], NULL);
    if (c == BR_OK)
        c = br_sim_load(&s, &co, 0x100000, NULL);
    if (c == BR_OK) {
        const uint8_t *kd = co.image + br_gcn_kernel_find(&co, name)->at;

        memcpy(&l.group_bytes, kd, 4);
        l.kernel = 0x100000 + (uint64_t)(kd - co.image);
        c = br_aql_fill(&p, &l, NULL);
    }
    if (c == BR_OK)
        c = br_sim_dispatch(&s, &p, NULL);
    *found = s.findings;
    br_sim_fini(&s);
    br_gcn_unload(&co);
    br_str_fini(&o);
    return c;
}

/* One changed file: caught by a finding, a fault or another result. */
static void
mutant(mutants *m, const br_str *text, const char *name, const char *line,
       uint64_t usual, const float want[256])
{
    bool caught = false;

    for (uint64_t seed = 1; seed < 4 && !caught; seed++) {
        float got[256];
        uint64_t found;
        br_code c =
            run_kernel(m->cpu, text->at, text->n, name, seed, got, &found);

        caught = c != BR_OK || found > usual || memcmp(got, want, 1024) != 0;
    }
    m->all++;
    m->caught += caught;
    if (!caught)
        br_str_printf(&m->missed, "%s %s: %.60s\n", m->cpu, name, line);
}

/* The file with another line at `at`. */
static void
replaced(mutants *m, const char *text, const char *at, const char *line,
         const char *name, uint64_t usual, const float want[256])
{
    br_str s = {0};

    br_str_put(&s, text, (size_t)(at - text));
    br_str_puts(&s, line);
    br_str_puts(&s, strchr(at, '\n'));
    mutant(m, &s, name, line, usual, want);
    br_str_fini(&s);
}

static void
mutate(mutants *m, const char *file, const char *name)
{
    const char *path = t_repo(t_printf("tests/data/gcn/%s_%s.s", file, m->cpu));
    const char *text = t_read(path, NULL), *p, *end;
    float want[256];
    uint64_t usual;

    p = strstr(text, t_printf("\n%s:", name));
    end = strstr(p, "s_endpgm");
    ck_assert_int_eq(
        run_kernel(m->cpu, text, strlen(text), name, 1, want, &usual), BR_OK);
    for (p = strchr(p + 1, '\n'); p && p < end; p = strchr(p + 1, '\n')) {
        const char *e = strchr(p + 1, '\n');
        char line[80] = "", *digit;

        snprintf(line, sizeof line, "%.*s", (int)(e - p - 1), p + 1);
        if (!is_guard(line))
            continue;
        replaced(m, text, p + 1, "\ts_nop 1", name, usual, want);
        /* Waits for one less: "vmcnt(0)", "s_wait_loadcnt 0x0". */
        digit = strpbrk(line, "(");
        digit = digit ? digit : strstr(line, "0x") ? strstr(line, "0x") + 1 : 0;
        if (!digit || digit[1] < '0' || digit[1] > '8')
            continue;
        digit[1]++;
        replaced(m, text, p + 1, line, name, usual, want);
    }
}

/* Each wait and each barrier left out in turn, each wait for one less. */
TEST(sim_checks_catch_mutants_of_clangs_kernels)
{
    static const char *const cpus[] = {"gfx1100", "gfx1201"};

    for (int g = 0; g < 2; g++) {
        mutants m = {.cpu = cpus[g]};

        mutate(&m, "two", "vadd");
        mutate(&m, "mix", "mix");
        ck_assert_uint_ge(m.all, 30);
        ck_assert_msg(m.caught == m.all, "%u of %u\n%s", m.caught, m.all,
                      br_str_z(&m.missed));
        br_str_fini(&m.missed);
    }
}

TEST(sim_checks_survive_lack_of_memory)
{
    static const char text[] = "k: v_mov_b32 v1, v0\ns_endpgm\n"
                               ".amdhsa_kernel k\n"
                               ".amdhsa_float_denorm_mode_32 3\n"
                               ".amdhsa_next_free_vgpr 2\n"
                               ".amdhsa_next_free_sgpr 2\n"
                               ".end_amdhsa_kernel\n";
    br_str o = {0};
    br_gcn_co co;

    ck_assert_int_eq(br_gcn_assemble(&o, br_gcn_cpu_find("gfx1201"), text,
                                     sizeof text - 1, NULL),
                     BR_OK);
    ck_assert_int_eq(br_gcn_load(&co, o.at, o.n, NULL), BR_OK);
    t_each_oom(checked, &co);
    br_gcn_unload(&co);
    br_str_fini(&o);
}

/* A number behind those that the descriptor has is reported, and the same words
 * each time: zeros, whatever lay in memory before. */
TEST(sim_registers_that_are_not_there_are_zeros)
{
    sim_kit k = {.cpu = "gfx1201",
                 .check = true,
                 .code = "v_mov_b32 v1, v200\nv_lshlrev_b32 v0, 2, v0\n"
                         "s_wait_alu 0xfffd\nglobal_store_b32 v0, v1, s[0:1]"};
    void *dirt[8];

    for (int n = 0; n < 8; n++) {
        dirt[n] = malloc(40000u + 100000u * (unsigned)(n % 2));
        memset(dirt[n], 0xa5, 40000);
    }
    for (int n = 0; n < 8; n++)
        free(dirt[n]);
    memset(k.memory, 1, sizeof k.memory);
    ck_assert_int_eq(sim_kit_run(&k), BR_OK);
    ck_assert_uint_gt(k.found, 0);
    for (int i = 0; i < 4 * 32; i++)
        ck_assert_uint_eq(k.memory[i], 0);
    br_str_fini(&k.findings);
}
