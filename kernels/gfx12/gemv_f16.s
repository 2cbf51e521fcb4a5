; gemv_f16.s - y = m x of one row: weights F16, activations F32 (br_nd_mul_f16 of
; kernels/cuda/nodes.cu, to the bit); one matrix, or of each pair the rows of its
; expert.
;
;   wave       16 rows of m, 128 a group: an eighth of the portable kernel's groups
;   lane       of row l / 2 eight of each 16 columns, one load: chains 8 (l mod 2) to
;              8 (l mod 2) + 7, which are v4 to v11; each adds up its columns in order
;   sum        chains r and r ^ 8, then ^ 4, ^ 2, ^ 1
;
; Eight times 16 columns are under way, all loads before the first wait. Rows that are
; not there are the last one, and not stored.
;
; s[0:1] arguments, br_nd_args; s[4:5] the wave's rows, s[24:25] activations, s8 rows, s9
; columns, s2 the wave's first row, s10 turns, s11 what is left of 16 columns each;
; v2 a lane's byte of m, v3 of x
; SPDX-License-Identifier: Apache-2.0
	.text
	.globl	br_nd_mul_f16
	.p2align	8
	.type	br_nd_mul_f16,@function
br_nd_mul_f16:
	s_load_b64 s[4:5], s[0:1], 0x60          ; m.q
	s_load_b64 s[8:9], s[0:1], 0x8c          ; m.n_out, m.n_in
	s_load_b64 s[24:25], s[0:1], 0x10        ; x.p
	s_load_b64 s[16:17], s[0:1], 0x40        ; y.p
	s_load_b64 s[28:29], s[0:1], 0x198       ; e.ids
	v_lshrrev_b32_e32 v1, 5, v0
	v_and_b32_e32 v0, 31, v0
	v_readfirstlane_b32 s2, v1
	s_lshl_b32 s3, ttmp9, 3
	s_add_co_u32 s2, s2, s3
	s_lshl_b32 s2, s2, 4
	v_lshrrev_b32_e32 v1, 1, v0
	s_wait_kmcnt 0x0
	s_cmp_ge_u32 s2, s8
	s_cbranch_scc1 .Lend
	s_mov_b32 s3, s2
	s_cmp_eq_u64 s[28:29], 0
	s_cbranch_scc1 .Lone
; An expert of pair t: its rows of m, y's row t, x's row t or, shared, 0.
	s_load_b64 s[40:41], s[0:1], 0x1a8       ; e.share, e.rows
	s_load_b32 s42, s[0:1], 0x1b0            ; e.first
	s_load_b32 s43, s[0:1], 0x48             ; y.stride
	s_load_b32 s46, s[0:1], 0x18             ; x.stride
	s_and_b32 s44, ttmp7, 0xffff
	s_lshl_b32 s18, s44, 2
	s_add_co_u32 s28, s28, s18
	s_add_co_ci_u32 s29, s29, 0
	s_load_b32 s45, s[28:29], 0x0
	s_wait_kmcnt 0x0
	s_mul_i32 s45, s45, s41
	s_add_co_u32 s3, s3, s45
	s_add_co_u32 s3, s3, s42
	s_mul_i32 s18, s44, s43
	s_mul_hi_u32 s19, s44, s43
	s_lshl_b64 s[18:19], s[18:19], 2
	s_add_co_u32 s16, s16, s18
	s_add_co_ci_u32 s17, s17, s19
	s_cmp_lg_u32 s40, 1
	s_cbranch_scc1 .Lone
	s_mul_i32 s18, s44, s46
	s_mul_hi_u32 s19, s44, s46
	s_lshl_b64 s[18:19], s[18:19], 2
	s_add_co_u32 s24, s24, s18
	s_add_co_ci_u32 s25, s25, s19
.Lone:
	s_mul_i32 s18, s3, s9
	s_mul_hi_u32 s19, s3, s9
	s_lshl_b64 s[18:19], s[18:19], 1
	s_add_co_u32 s4, s4, s18
	s_add_co_ci_u32 s5, s5, s19
	s_sub_co_u32 s12, s8, s2
	s_sub_co_u32 s13, s12, 1
	s_lshl_b32 s14, s9, 1
	s_lshr_b32 s10, s9, 7
	s_bfe_u32 s11, s9, 0x30004
	v_min_u32_e32 v2, s13, v1
	v_and_b32_e32 v0, 1, v0
	v_mul_lo_u32 v2, v2, s14
	v_lshlrev_b32_e32 v3, 5, v0
	v_lshl_add_u32 v2, v0, 4, v2
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v5, 0
	v_mov_b32_e32 v6, 0
	v_mov_b32_e32 v7, 0
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, 0
	v_mov_b32_e32 v10, 0
	v_mov_b32_e32 v11, 0
	s_cmp_eq_u32 s10, 0
	s_cbranch_scc1 .Lrest
.Leight:
	s_clause 0x17
	global_load_b128 v[20:23], v2, s[4:5] th:TH_LOAD_NT
	global_load_b128 v[52:55], v3, s[24:25]
	global_load_b128 v[56:59], v3, s[24:25] offset:16
	global_load_b128 v[24:27], v2, s[4:5] offset:32 th:TH_LOAD_NT
	global_load_b128 v[60:63], v3, s[24:25] offset:64
	global_load_b128 v[64:67], v3, s[24:25] offset:80
	global_load_b128 v[28:31], v2, s[4:5] offset:64 th:TH_LOAD_NT
	global_load_b128 v[68:71], v3, s[24:25] offset:128
	global_load_b128 v[72:75], v3, s[24:25] offset:144
	global_load_b128 v[32:35], v2, s[4:5] offset:96 th:TH_LOAD_NT
	global_load_b128 v[76:79], v3, s[24:25] offset:192
	global_load_b128 v[80:83], v3, s[24:25] offset:208
	global_load_b128 v[36:39], v2, s[4:5] offset:128 th:TH_LOAD_NT
	global_load_b128 v[84:87], v3, s[24:25] offset:256
	global_load_b128 v[88:91], v3, s[24:25] offset:272
	global_load_b128 v[40:43], v2, s[4:5] offset:160 th:TH_LOAD_NT
	global_load_b128 v[92:95], v3, s[24:25] offset:320
	global_load_b128 v[96:99], v3, s[24:25] offset:336
	global_load_b128 v[44:47], v2, s[4:5] offset:192 th:TH_LOAD_NT
	global_load_b128 v[100:103], v3, s[24:25] offset:384
	global_load_b128 v[104:107], v3, s[24:25] offset:400
	global_load_b128 v[48:51], v2, s[4:5] offset:224 th:TH_LOAD_NT
	global_load_b128 v[108:111], v3, s[24:25] offset:448
	global_load_b128 v[112:115], v3, s[24:25] offset:464
	v_add_nc_u32_e32 v2, 0x100, v2
	v_add_nc_u32_e32 v3, 0x200, v3
	s_sub_co_u32 s10, s10, 1
	s_wait_loadcnt 0x15
	v_fma_mix_f32 v4, v52, v20, v4 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v5, v53, v20, v5 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v6, v54, v21, v6 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v7, v55, v21, v7 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v8, v56, v22, v8 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v9, v57, v22, v9 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v10, v58, v23, v10 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v11, v59, v23, v11 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	s_wait_loadcnt 0x12
	v_fma_mix_f32 v4, v60, v24, v4 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v5, v61, v24, v5 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v6, v62, v25, v6 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v7, v63, v25, v7 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v8, v64, v26, v8 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v9, v65, v26, v9 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v10, v66, v27, v10 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v11, v67, v27, v11 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	s_wait_loadcnt 0xf
	v_fma_mix_f32 v4, v68, v28, v4 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v5, v69, v28, v5 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v6, v70, v29, v6 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v7, v71, v29, v7 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v8, v72, v30, v8 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v9, v73, v30, v9 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v10, v74, v31, v10 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v11, v75, v31, v11 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	s_wait_loadcnt 0xc
	v_fma_mix_f32 v4, v76, v32, v4 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v5, v77, v32, v5 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v6, v78, v33, v6 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v7, v79, v33, v7 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v8, v80, v34, v8 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v9, v81, v34, v9 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v10, v82, v35, v10 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v11, v83, v35, v11 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	s_wait_loadcnt 0x9
	v_fma_mix_f32 v4, v84, v36, v4 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v5, v85, v36, v5 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v6, v86, v37, v6 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v7, v87, v37, v7 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v8, v88, v38, v8 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v9, v89, v38, v9 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v10, v90, v39, v10 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v11, v91, v39, v11 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	s_wait_loadcnt 0x6
	v_fma_mix_f32 v4, v92, v40, v4 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v5, v93, v40, v5 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v6, v94, v41, v6 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v7, v95, v41, v7 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v8, v96, v42, v8 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v9, v97, v42, v9 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v10, v98, v43, v10 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v11, v99, v43, v11 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	s_wait_loadcnt 0x3
	v_fma_mix_f32 v4, v100, v44, v4 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v5, v101, v44, v5 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v6, v102, v45, v6 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v7, v103, v45, v7 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v8, v104, v46, v8 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v9, v105, v46, v9 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v10, v106, v47, v10 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v11, v107, v47, v11 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	s_wait_loadcnt 0x0
	v_fma_mix_f32 v4, v108, v48, v4 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v5, v109, v48, v5 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v6, v110, v49, v6 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v7, v111, v49, v7 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v8, v112, v50, v8 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v9, v113, v50, v9 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v10, v114, v51, v10 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v11, v115, v51, v11 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .Leight
.Lrest:
	s_cmp_eq_u32 s11, 0
	s_cbranch_scc1 .Lsum
	global_load_b128 v[20:23], v2, s[4:5] th:TH_LOAD_NT
	global_load_b128 v[52:55], v3, s[24:25]
	global_load_b128 v[56:59], v3, s[24:25] offset:16
	v_add_nc_u32_e32 v2, 32, v2
	v_add_nc_u32_e32 v3, 64, v3
	s_sub_co_u32 s11, s11, 1
	s_wait_loadcnt 0x0
	v_fma_mix_f32 v4, v52, v20, v4 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v5, v53, v20, v5 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v6, v54, v21, v6 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v7, v55, v21, v7 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v8, v56, v22, v8 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v9, v57, v22, v9 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v10, v58, v23, v10 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v11, v59, v23, v11 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	s_branch .Lrest
.Lsum:
	v_add_f32_dpp v4, v4, v4 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_f32_dpp v5, v5, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_f32_dpp v6, v6, v6 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_f32_dpp v7, v7, v7 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_f32_dpp v8, v8, v8 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_f32_dpp v9, v9, v9 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_f32_dpp v10, v10, v10 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_f32_dpp v11, v11, v11 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_f32_e32 v4, v4, v8
	v_add_f32_e32 v5, v5, v9
	v_add_f32_e32 v6, v6, v10
	v_add_f32_e32 v7, v7, v11
	v_add_f32_e32 v4, v4, v6
	v_add_f32_e32 v5, v5, v7
	v_add_f32_e32 v4, v4, v5
	; the first lane of a row that is there stores it
	v_cmp_gt_u32_e32 vcc_lo, s12, v1
	s_lshl_b32 s2, s2, 2
	s_mov_b32 s18, 0x55555555
	s_and_b32 exec_lo, vcc_lo, s18
	s_add_co_u32 s16, s16, s2
	s_add_co_ci_u32 s17, s17, 0
	v_lshlrev_b32_e32 v5, 2, v1
	global_store_b32 v5, v4, s[16:17]
.Lend:
	s_endpgm
.Lafter:
	.size	br_nd_mul_f16, .Lafter-br_nd_mul_f16
	.fill	96, 4, 0xbf9f0000 ; s_code_end: what is fetched behind
	.section	.rodata,"a"
	.p2align	6
	.amdhsa_kernel br_nd_mul_f16
		.amdhsa_group_segment_fixed_size 0
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 584
		.amdhsa_user_sgpr_count 2
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 1
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 116
		.amdhsa_next_free_sgpr 48
		.amdhsa_wavefront_size32 1
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_workgroup_processor_mode 0
	.end_amdhsa_kernel
