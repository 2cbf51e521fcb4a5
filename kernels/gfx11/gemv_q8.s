; gemv_q8.s - y = m x of one row: weights and activations are bytes, in blocks of 32
; with a float each (br_nd_mul_int32 of kernels/cuda/nodes.cu, to the bit); one
; matrix, or of each pair the rows of its expert.
;
;   wave       a row of m, as there; groups of 8 waves
;   lane       16 bytes of each 512: half of block l / 2, one load
;   chain c    blocks c, c + 4 .. : block b0 + 4 g + c is in lanes 8 g + 2 c; the sums
;              are lanes 0, 2, 4, 6 of v4, to which g = 0, 1, 2, 3 are added in order
;
; Two pieces of 512 are under way, all eight loads before the first wait. The rest,
; at most two pieces, has lanes off where the row is over; their weights are zero.
;
; s[0:1] arguments, br_nd_args; s[4:5] weights, s[6:7] their scales, s[24:25]
; activations, s[26:27] theirs, s8 rows, s9 columns, s2 row, s10 turns, s11 where the
; rest begins; v2 a lane's byte, v3 its scale's, v4 sums
; SPDX-License-Identifier: Apache-2.0
	.text
	.globl	br_nd_mul_int32
	.p2align	8
	.type	br_nd_mul_int32,@function
br_nd_mul_int32:
	s_load_b64 s[4:5], s[0:1], 0x60          ; m.q
	s_load_b64 s[6:7], s[0:1], 0x78          ; m.d
	s_load_b64 s[8:9], s[0:1], 0x8c          ; m.n_out, m.n_in
	s_load_b128 s[24:27], s[0:1], 0x130      ; xq, xd
	s_load_b64 s[16:17], s[0:1], 0x40        ; y.p
	s_load_b64 s[28:29], s[0:1], 0x198       ; e.ids
	v_lshrrev_b32_e32 v1, 5, v0
	v_and_b32_e32 v0, 31, v0
	v_readfirstlane_b32 s2, v1
	v_lshlrev_b32_e32 v2, 4, v0
	s_lshl_b32 s3, s13, 3
	s_add_u32 s2, s2, s3
	s_mov_b32 s20, 0x76543210
	s_mov_b32 s21, 0xfedcba98
	s_waitcnt lgkmcnt(0)
	s_cmp_ge_u32 s2, s8
	s_cbranch_scc1 .Lend
	s_mov_b32 s3, s2
	s_cmp_eq_u64 s[28:29], 0
	s_cbranch_scc1 .Lone
; An expert of pair t: its rows of m, y's row t, x's row t or, shared, 0.
	s_load_b64 s[40:41], s[0:1], 0x1a8       ; e.share, e.rows
	s_load_b32 s42, s[0:1], 0x1b0            ; e.first
	s_load_b32 s43, s[0:1], 0x48             ; y.stride
	s_mov_b32 s44, s14
	s_lshl_b32 s18, s44, 2
	s_add_u32 s28, s28, s18
	s_addc_u32 s29, s29, 0
	s_load_b32 s45, s[28:29], 0x0
	s_waitcnt lgkmcnt(0)
	s_mul_i32 s45, s45, s41
	s_add_u32 s3, s3, s45
	s_add_u32 s3, s3, s42
	s_mul_i32 s18, s44, s43
	s_mul_hi_u32 s19, s44, s43
	s_lshl_b64 s[18:19], s[18:19], 2
	s_add_u32 s16, s16, s18
	s_addc_u32 s17, s17, s19
	s_cmp_lg_u32 s40, 1
	s_cbranch_scc1 .Lone
	s_mul_i32 s18, s44, s9
	s_mul_hi_u32 s19, s44, s9
	s_add_u32 s24, s24, s18
	s_addc_u32 s25, s25, s19
	s_lshr_b64 s[18:19], s[18:19], 5
	s_lshl_b64 s[18:19], s[18:19], 2
	s_add_u32 s26, s26, s18
	s_addc_u32 s27, s27, s19
.Lone:
	s_mul_i32 s18, s3, s9
	s_mul_hi_u32 s19, s3, s9
	s_add_u32 s4, s4, s18
	s_addc_u32 s5, s5, s19
	s_lshr_b64 s[18:19], s[18:19], 5
	s_lshl_b64 s[18:19], s[18:19], 2
	s_add_u32 s6, s6, s18
	s_addc_u32 s7, s7, s19
	v_lshrrev_b32_e32 v3, 1, v0
	v_mov_b32_e32 v4, 0
	v_lshlrev_b32_e32 v3, 2, v3
	s_lshr_b32 s10, s9, 10
	s_and_b32 s11, s9, 0xfffffc00
	s_cmp_eq_u32 s10, 0
	s_cbranch_scc1 .Lrest
.Lpairs:
	s_clause 0x7
	global_load_b128 v[8:11], v2, s[4:5] slc
	global_load_b32 v16, v3, s[6:7] slc
	global_load_b128 v[12:15], v2, s[24:25]
	global_load_b32 v17, v3, s[26:27]
	global_load_b128 v[20:23], v2, s[4:5] offset:512 slc
	global_load_b32 v28, v3, s[6:7] offset:64 slc
	global_load_b128 v[24:27], v2, s[24:25] offset:512
	global_load_b32 v29, v3, s[26:27] offset:64
	v_add_nc_u32_e32 v2, 0x400, v2
	v_add_nc_u32_e32 v3, 0x80, v3
	s_sub_u32 s10, s10, 1
	s_waitcnt vmcnt(4)
	v_dot4_i32_iu8 v5, v8, v12, 0 neg_lo:[1,1,0]
	v_mul_f32_e32 v6, v16, v17
	v_dot4_i32_iu8 v5, v9, v13, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v10, v14, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v11, v15, v5 neg_lo:[1,1,0]
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v5, v6, v5
	v_permlanex16_b32 v6, v5, s20, s21
	v_add_f32_e32 v4, v4, v5
	v_add_f32_dpp v4, v5, v4 row_shl:8 row_mask:0xf bank_mask:0xf
	v_add_f32_e32 v4, v4, v6
	v_add_f32_dpp v4, v6, v4 row_shl:8 row_mask:0xf bank_mask:0xf
	s_waitcnt vmcnt(0)
	v_dot4_i32_iu8 v5, v20, v24, 0 neg_lo:[1,1,0]
	v_mul_f32_e32 v6, v28, v29
	v_dot4_i32_iu8 v5, v21, v25, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v22, v26, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v23, v27, v5 neg_lo:[1,1,0]
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v5, v6, v5
	v_permlanex16_b32 v6, v5, s20, s21
	v_add_f32_e32 v4, v4, v5
	v_add_f32_dpp v4, v5, v4 row_shl:8 row_mask:0xf bank_mask:0xf
	v_add_f32_e32 v4, v4, v6
	v_add_f32_dpp v4, v6, v4 row_shl:8 row_mask:0xf bank_mask:0xf
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .Lpairs
.Lrest:
	s_cmp_ge_u32 s11, s9
	s_cbranch_scc1 .Lsum
	v_mov_b32_e32 v8, 0
	v_mov_b32_e32 v9, 0
	v_mov_b32_e32 v10, 0
	v_mov_b32_e32 v11, 0
	v_mov_b32_e32 v12, 0
	v_mov_b32_e32 v13, 0
	v_mov_b32_e32 v14, 0
	v_mov_b32_e32 v15, 0
	v_mov_b32_e32 v16, 0
	v_mov_b32_e32 v17, 0
	v_cmpx_gt_u32_e32 s9, v2
	global_load_b128 v[8:11], v2, s[4:5] slc
	global_load_b32 v16, v3, s[6:7] slc
	global_load_b128 v[12:15], v2, s[24:25]
	global_load_b32 v17, v3, s[26:27]
	s_mov_b32 exec_lo, -1
	v_add_nc_u32_e32 v2, 0x200, v2
	v_add_nc_u32_e32 v3, 64, v3
	s_add_u32 s11, s11, 0x200
	s_waitcnt vmcnt(0)
	v_dot4_i32_iu8 v5, v8, v12, 0 neg_lo:[1,1,0]
	v_mul_f32_e32 v6, v16, v17
	v_dot4_i32_iu8 v5, v9, v13, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v10, v14, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v11, v15, v5 neg_lo:[1,1,0]
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v5, v6, v5
	v_permlanex16_b32 v6, v5, s20, s21
	v_add_f32_e32 v4, v4, v5
	v_add_f32_dpp v4, v5, v4 row_shl:8 row_mask:0xf bank_mask:0xf
	v_add_f32_e32 v4, v4, v6
	v_add_f32_dpp v4, v6, v4 row_shl:8 row_mask:0xf bank_mask:0xf
	s_branch .Lrest
.Lsum:
	v_add_f32_dpp v4, v4, v4 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_f32_dpp v4, v4, v4 row_shl:4 row_mask:0xf bank_mask:0xf
	s_lshl_b32 s2, s2, 2
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v5, s2
	global_store_b32 v5, v4, s[16:17]
.Lend:
	s_endpgm
.Lafter:
	.size	br_nd_mul_int32, .Lafter-br_nd_mul_int32
	.fill	96, 4, 0xbf9f0000 ; s_code_end: what is fetched behind
	.section	.rodata,"a"
	.p2align	6
	.amdhsa_kernel br_nd_mul_int32
		.amdhsa_group_segment_fixed_size 0
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 584
		.amdhsa_user_sgpr_count 13
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 1
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 30
		.amdhsa_next_free_sgpr 48
		.amdhsa_wavefront_size32 1
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_workgroup_processor_mode 0
	.end_amdhsa_kernel
