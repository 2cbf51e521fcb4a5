; gemv_q4k.s - y = m x of one row: bytes in blocks of 256, whose sub-blocks of 32 or 16
; have a factor each and, of some kinds, a least weight (br_nd_mul_int256 of
; kernels/cuda/nodes.cu, to the bit); one matrix, or of each pair the rows of its
; expert.
;
;   wave       a row of m, as there; groups of 8 waves
;   lane       16 bytes of each 512, within one sub-block: lanes 0 to 15 have a block,
;              16 to 31 the next
;   chain c    blocks c, c + 4 .. : v4 sums 0 and 1 in its two halves, v34 2 and 3
;
; Two pieces of 512 are under way. The rest, at most two pieces, has lanes off where
; the row is over.
;
; s[0:1] arguments, br_nd_args; s[4:5] weights, s[32:33] factors, s[34:35] least ones,
; s[36:37] s[38:39] the blocks' of both, s[24:25] activations, s[26:27] theirs, s8 rows,
; s9 columns, s2 row, s10 turns, s11 where the rest begins, s30 sub-blocks of 512
; columns; v2 a lane's byte, v7 its factor's, v3 its block's, v4 v34 sums
; SPDX-License-Identifier: Apache-2.0
	.text
	.globl	br_nd_mul_int256
	.p2align	8
	.type	br_nd_mul_int256,@function
br_nd_mul_int256:
	s_load_b64 s[4:5], s[0:1], 0x60          ; m.q
	s_load_b128 s[32:35], s[0:1], 0x68       ; m.scale, m.min
	s_load_b128 s[36:39], s[0:1], 0x78       ; m.d, m.dmin
	s_load_b32 s31, s[0:1], 0x98             ; m.sub
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
	s_mov_b32 s22, 0x01010101
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
	s_lshr_b64 s[18:19], s[18:19], 8
	s_lshl_b64 s[18:19], s[18:19], 2
	s_add_u32 s26, s26, s18
	s_addc_u32 s27, s27, s19
.Lone:
	s_mul_i32 s18, s3, s9
	s_mul_hi_u32 s19, s3, s9
	s_add_u32 s4, s4, s18
	s_addc_u32 s5, s5, s19
	s_cmp_eq_u32 s31, 32
	s_cselect_b32 s31, 5, 4            ; sub-blocks are 1 << s31 columns
	s_lshr_b64 s[46:47], s[18:19], s31
	s_add_u32 s32, s32, s46
	s_addc_u32 s33, s33, s47
	s_add_u32 s34, s34, s46
	s_addc_u32 s35, s35, s47
	s_lshr_b64 s[18:19], s[18:19], 8
	s_lshl_b64 s[18:19], s[18:19], 2
	s_add_u32 s36, s36, s18
	s_addc_u32 s37, s37, s19
	s_add_u32 s38, s38, s18
	s_addc_u32 s39, s39, s19
	s_lshr_b32 s30, 0x200, s31
	v_lshrrev_b32_e32 v3, 4, v0
	v_lshrrev_b32_e32 v7, s31, v2
	v_lshlrev_b32_e32 v3, 2, v3
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v34, 0
	s_lshr_b32 s10, s9, 10
	s_and_b32 s11, s9, 0xfffffc00
	s_load_b64 s[18:19], s[0:1], 0x70         ; m.min
	s_waitcnt lgkmcnt(0)
	s_cmp_eq_u64 s[18:19], 0
	s_cbranch_scc1 .Lbegin_no_min
	s_cmp_eq_u32 s10, 0
	s_cbranch_scc1 .Lrest
.Lpairs:
	v_add_nc_u32_e32 v35, s30, v7
	s_clause 0xd
	global_load_b128 v[8:11], v2, s[4:5] slc
	global_load_i8 v18, v7, s[32:33]
	global_load_i8 v20, v7, s[34:35]
	global_load_b32 v16, v3, s[36:37]
	global_load_b32 v19, v3, s[38:39]
	global_load_b128 v[12:15], v2, s[24:25]
	global_load_b32 v17, v3, s[26:27]
	global_load_b128 v[21:24], v2, s[4:5] offset:512 slc
	global_load_i8 v31, v35, s[32:33]
	global_load_i8 v33, v35, s[34:35]
	global_load_b32 v29, v3, s[36:37] offset:8
	global_load_b32 v32, v3, s[38:39] offset:8
	global_load_b128 v[25:28], v2, s[24:25] offset:512
	global_load_b32 v30, v3, s[26:27] offset:8
	v_add_nc_u32_e32 v2, 0x400, v2
	v_add_nc_u32_e32 v3, 16, v3
	v_add_nc_u32_e32 v7, s30, v35
	s_sub_u32 s10, s10, 1
	s_waitcnt vmcnt(7)
	v_dot4_i32_iu8 v5, v8, v12, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v9, v13, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v10, v14, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v11, v15, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v12, s22, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v13, s22, v6 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v14, s22, v6 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v15, s22, v6 neg_lo:[1,1,0]
	v_mul_i32_i24_e32 v5, v5, v18
	v_mul_i32_i24_e32 v6, v6, v20
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v16, v16, v17
	v_mul_f32_e32 v5, v16, v5
	v_cvt_f32_i32_e32 v6, v6
	v_mul_f32_e32 v19, v19, v17
	v_fma_f32 v5, -v19, v6, v5
	v_add_f32_e32 v4, v4, v5
	s_waitcnt vmcnt(0)
	v_dot4_i32_iu8 v5, v21, v25, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v22, v26, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v23, v27, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v24, v28, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v25, s22, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v26, s22, v6 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v27, s22, v6 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v28, s22, v6 neg_lo:[1,1,0]
	v_mul_i32_i24_e32 v5, v5, v31
	v_mul_i32_i24_e32 v6, v6, v33
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v29, v29, v30
	v_mul_f32_e32 v5, v29, v5
	v_cvt_f32_i32_e32 v6, v6
	v_mul_f32_e32 v32, v32, v30
	v_fma_f32 v5, -v32, v6, v5
	v_add_f32_e32 v34, v34, v5
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
	v_mov_b32_e32 v18, 0
	v_mov_b32_e32 v19, 0
	v_mov_b32_e32 v20, 0
	v_cmpx_gt_u32_e32 s9, v2
	global_load_b128 v[8:11], v2, s[4:5] slc
	global_load_i8 v18, v7, s[32:33]
	global_load_i8 v20, v7, s[34:35]
	global_load_b32 v16, v3, s[36:37]
	global_load_b32 v19, v3, s[38:39]
	global_load_b128 v[12:15], v2, s[24:25]
	global_load_b32 v17, v3, s[26:27]
	s_mov_b32 exec_lo, -1
	v_add_nc_u32_e32 v2, 0x200, v2
	v_add_nc_u32_e32 v3, 8, v3
	v_add_nc_u32_e32 v7, s30, v7
	s_add_u32 s11, s11, 0x200
	s_waitcnt vmcnt(0)
	v_dot4_i32_iu8 v5, v8, v12, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v9, v13, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v10, v14, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v11, v15, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v12, s22, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v13, s22, v6 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v14, s22, v6 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v15, s22, v6 neg_lo:[1,1,0]
	v_mul_i32_i24_e32 v5, v5, v18
	v_mul_i32_i24_e32 v6, v6, v20
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v16, v16, v17
	v_mul_f32_e32 v5, v16, v5
	v_cvt_f32_i32_e32 v6, v6
	v_mul_f32_e32 v19, v19, v17
	v_fma_f32 v5, -v19, v6, v5
	v_add_f32_e32 v4, v4, v5
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
	v_mov_b32_e32 v18, 0
	v_mov_b32_e32 v19, 0
	v_mov_b32_e32 v20, 0
	v_cmpx_gt_u32_e32 s9, v2
	global_load_b128 v[8:11], v2, s[4:5] slc
	global_load_i8 v18, v7, s[32:33]
	global_load_i8 v20, v7, s[34:35]
	global_load_b32 v16, v3, s[36:37]
	global_load_b32 v19, v3, s[38:39]
	global_load_b128 v[12:15], v2, s[24:25]
	global_load_b32 v17, v3, s[26:27]
	s_mov_b32 exec_lo, -1
	s_waitcnt vmcnt(0)
	v_dot4_i32_iu8 v5, v8, v12, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v9, v13, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v10, v14, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v11, v15, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v12, s22, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v13, s22, v6 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v14, s22, v6 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v6, v15, s22, v6 neg_lo:[1,1,0]
	v_mul_i32_i24_e32 v5, v5, v18
	v_mul_i32_i24_e32 v6, v6, v20
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v6, v6, v6 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v16, v16, v17
	v_mul_f32_e32 v5, v16, v5
	v_cvt_f32_i32_e32 v6, v6
	v_mul_f32_e32 v19, v19, v17
	v_fma_f32 v5, -v19, v6, v5
	v_add_f32_e32 v34, v34, v5
	s_branch .Lsum
.Lbegin_no_min:
	s_cmp_eq_u32 s10, 0
	s_cbranch_scc1 .Lrest_no_min
.Lpairs_no_min:
	v_add_nc_u32_e32 v35, s30, v7
	s_clause 0x9
	global_load_b128 v[8:11], v2, s[4:5] slc
	global_load_i8 v18, v7, s[32:33]
	global_load_b32 v16, v3, s[36:37]
	global_load_b128 v[12:15], v2, s[24:25]
	global_load_b32 v17, v3, s[26:27]
	global_load_b128 v[21:24], v2, s[4:5] offset:512 slc
	global_load_i8 v31, v35, s[32:33]
	global_load_b32 v29, v3, s[36:37] offset:8
	global_load_b128 v[25:28], v2, s[24:25] offset:512
	global_load_b32 v30, v3, s[26:27] offset:8
	v_add_nc_u32_e32 v2, 0x400, v2
	v_add_nc_u32_e32 v3, 16, v3
	v_add_nc_u32_e32 v7, s30, v35
	s_sub_u32 s10, s10, 1
	s_waitcnt vmcnt(5)
	v_dot4_i32_iu8 v5, v8, v12, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v9, v13, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v10, v14, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v11, v15, v5 neg_lo:[1,1,0]
	v_mul_i32_i24_e32 v5, v5, v18
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v16, v16, v17
	v_mul_f32_e32 v5, v16, v5
	v_add_f32_e32 v4, v4, v5
	s_waitcnt vmcnt(0)
	v_dot4_i32_iu8 v5, v21, v25, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v22, v26, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v23, v27, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v24, v28, v5 neg_lo:[1,1,0]
	v_mul_i32_i24_e32 v5, v5, v31
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v29, v29, v30
	v_mul_f32_e32 v5, v29, v5
	v_add_f32_e32 v34, v34, v5
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .Lpairs_no_min
.Lrest_no_min:
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
	v_mov_b32_e32 v18, 0
	v_mov_b32_e32 v19, 0
	v_mov_b32_e32 v20, 0
	v_cmpx_gt_u32_e32 s9, v2
	global_load_b128 v[8:11], v2, s[4:5] slc
	global_load_i8 v18, v7, s[32:33]
	global_load_b32 v16, v3, s[36:37]
	global_load_b128 v[12:15], v2, s[24:25]
	global_load_b32 v17, v3, s[26:27]
	s_mov_b32 exec_lo, -1
	v_add_nc_u32_e32 v2, 0x200, v2
	v_add_nc_u32_e32 v3, 8, v3
	v_add_nc_u32_e32 v7, s30, v7
	s_add_u32 s11, s11, 0x200
	s_waitcnt vmcnt(0)
	v_dot4_i32_iu8 v5, v8, v12, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v9, v13, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v10, v14, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v11, v15, v5 neg_lo:[1,1,0]
	v_mul_i32_i24_e32 v5, v5, v18
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v16, v16, v17
	v_mul_f32_e32 v5, v16, v5
	v_add_f32_e32 v4, v4, v5
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
	v_mov_b32_e32 v18, 0
	v_mov_b32_e32 v19, 0
	v_mov_b32_e32 v20, 0
	v_cmpx_gt_u32_e32 s9, v2
	global_load_b128 v[8:11], v2, s[4:5] slc
	global_load_i8 v18, v7, s[32:33]
	global_load_b32 v16, v3, s[36:37]
	global_load_b128 v[12:15], v2, s[24:25]
	global_load_b32 v17, v3, s[26:27]
	s_mov_b32 exec_lo, -1
	s_waitcnt vmcnt(0)
	v_dot4_i32_iu8 v5, v8, v12, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v9, v13, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v10, v14, v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v11, v15, v5 neg_lo:[1,1,0]
	v_mul_i32_i24_e32 v5, v5, v18
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_nc_u32_dpp v5, v5, v5 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v16, v16, v17
	v_mul_f32_e32 v5, v16, v5
	v_add_f32_e32 v34, v34, v5
.Lsum:
	v_permlanex16_b32 v5, v4, s20, s21
	v_permlanex16_b32 v6, v34, s20, s21
	v_add_f32_e32 v4, v4, v5
	v_add_f32_e32 v34, v34, v6
	v_add_f32_e32 v4, v4, v34
	s_lshl_b32 s2, s2, 2
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v5, s2
	global_store_b32 v5, v4, s[16:17]
.Lend:
	s_endpgm
.Lafter:
	.size	br_nd_mul_int256, .Lafter-br_nd_mul_int256
	.fill	96, 4, 0xbf9f0000 ; s_code_end: what is fetched behind
	.section	.rodata,"a"
	.p2align	6
	.amdhsa_kernel br_nd_mul_int256
		.amdhsa_group_segment_fixed_size 0
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 584
		.amdhsa_user_sgpr_count 13
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 1
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr 36
		.amdhsa_next_free_sgpr 48
		.amdhsa_wavefront_size32 1
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_workgroup_processor_mode 0
	.end_amdhsa_kernel
