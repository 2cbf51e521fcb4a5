; gemm_q8.s - y = m x of the rows of a prompt: weights and activations are bytes, in
; blocks of 32 with a float each (br_nd_mul_int32 of kernels/cuda/nodes.cu, to the bit),
; by v_wmma: a block's sum of products is exact, whatever the order.
;
;   group      128 rows of m by Y, 32 rows of x by X: groups that run at once share rows
;              of m
;   wave       16 rows of m (A) by 32 of x (B, two times 16)
;   lane       row l mod 16 of A and of B; of the sum, row l mod 16 of x, and of m eight:
;              gfx11 2 i + l / 16, gfx12 8 (l / 16) + i
;   chain c    blocks c, c + 4 ..: v[32 + 32 j + 8 c + i] for rows 16 j .. of x
;   turn       four blocks, one of each chain: all loads, then block after block
;
; Columns are a multiple of 128. Rows that are not there are the last one, and not stored.
;
; A block of 16 by 16 takes two v_wmma, eight conversions and, two numbers each by dual
; instructions, four products of scales, four by sums, four additions.
;
; s[0:1] arguments, br_nd_args; s[4:5] weights, s[6:7] their scales, s[24:25]
; activations, s[26:27] theirs, s8 rows of m, s9 columns, s20 rows of x, s2 the wave's
; first of m, s3 the group's first of x, s10 turns, s21 bytes of a row's scales; v0 a
; lane's byte of m, v1, v2 of x, v3, v4 of x's scales, v[5:12] of m's, v13 its first row
; of the sum, v14 l mod 16, v15 l / 16; v[16:23] sums of a block, v[24:31] products of
; scales, v[96:127] m's scales, v[129:136] x's, from v140 on what is loaded
; SPDX-License-Identifier: Apache-2.0

; v13: the lane's first row of the sum; the next
	.macro	gemm_row_first
	.if .amdgcn.gfx_generation_number == 12
	v_lshlrev_b32_e32 v13, 3, v15
	.else
	v_mov_b32_e32 v13, v15
	.endif
	.endm

	.macro	gemm_row_next
	.if .amdgcn.gfx_generation_number == 12
	v_add_nc_u32_e32 v13, 1, v13
	.else
	v_add_nc_u32_e32 v13, 2, v13
	.endif
	.endm

; v[r]: where the scales of row v13 of the sum begin
	.macro	gemm_scales r
	v_min_u32_e32 v[\r], s13, v13
	gemm_row_next
	v_mul_lo_u32 v[\r], v[\r], s21
	.endm

; A block's bytes of m and of both 16 of x, from byte at on; half: 16 behind.
	.macro	gemm_loads a, b0, b1, at, half
	.if .amdgcn.gfx_generation_number == 12
	global_load_b128 v[\a:\a+3], v0, s[4:5] offset:\at
	global_load_b128 v[\b0:\b0+3], v1, s[24:25] offset:\at
	global_load_b128 v[\b1:\b1+3], v2, s[24:25] offset:\at
	.else
	global_load_b128 v[\a:\a+3], v0, s[4:5] offset:\at
	global_load_b128 v[\a+4:\a+7], v0, s[4:5] offset:\half
	global_load_b128 v[\b0:\b0+3], v1, s[24:25] offset:\at
	global_load_b128 v[\b0+4:\b0+7], v1, s[24:25] offset:\half
	global_load_b128 v[\b1:\b1+3], v2, s[24:25] offset:\at
	global_load_b128 v[\b1+4:\b1+7], v2, s[24:25] offset:\half
	.endif
	.endm

; v[24:25] and on: products of m's scales and x's, v[x]
	.macro	gemm_by w, x, t
	v_dual_mul_f32 v[\t], v[\w], v[\x] :: v_dual_mul_f32 v[\t+1], v[\x], v[\w+4]
	.endm

	.macro	gemm_add acc, s, t
	v_dual_mul_f32 v[\s], v[\s], v[\t] :: v_dual_mul_f32 v[\s+1], v[\s+1], v[\t+1]
	v_dual_add_f32 v[\acc], v[\acc], v[\s] :: v_dual_add_f32 v[\acc+1], v[\acc+1], v[\s+1]
	.endm

; A block more of 16 by 16: bytes v[a], v[b], scales v[w] and on, v[x], chain v[acc]
	.macro	gemm_block acc, a, b, w, x
	.if .amdgcn.gfx_generation_number == 12
	v_wmma_i32_16x16x16_iu8 v[16:23], v[\a:\a+1], v[\b:\b+1], 0 neg_lo:[1,1,0]
	v_wmma_i32_16x16x16_iu8 v[16:23], v[\a+2:\a+3], v[\b+2:\b+3], v[16:23] neg_lo:[1,1,0]
	.else
	v_wmma_i32_16x16x16_iu8 v[16:23], v[\a:\a+3], v[\b:\b+3], 0 neg_lo:[1,1,0]
	v_wmma_i32_16x16x16_iu8 v[16:23], v[\a+4:\a+7], v[\b+4:\b+7], v[16:23] neg_lo:[1,1,0]
	.endif
	gemm_by \w, \x, 24
	gemm_by \w+8, \x, 26
	gemm_by \w+16, \x, 28
	gemm_by \w+24, \x, 30
	v_cvt_f32_i32_e32 v16, v16
	v_cvt_f32_i32_e32 v17, v17
	v_cvt_f32_i32_e32 v18, v18
	v_cvt_f32_i32_e32 v19, v19
	v_cvt_f32_i32_e32 v20, v20
	v_cvt_f32_i32_e32 v21, v21
	v_cvt_f32_i32_e32 v22, v22
	v_cvt_f32_i32_e32 v23, v23
	gemm_add \acc, 16, 24
	gemm_add \acc+2, 18, 26
	gemm_add \acc+4, 20, 28
	gemm_add \acc+6, 22, 30
	.endm

; Chain c of both 16 of x, v[to], v[too] and on, once no more loads are under way than are for blocks behind.
	.macro	gemm_both c, to, too, n11, n12, a, b0, b1
	.if .amdgcn.gfx_generation_number == 12
	wait_loads \n12
	.else
	wait_loads \n11
	.endif
	gemm_block \to, \a, \b0, 96+\c, 129+\c
	gemm_block \too, \a, \b1, 96+\c, 133+\c
	.endm

; Chains 0 and 1, 2 and 3, then both, of v[r]
	.macro	gemm_sum r
	v_add_f32_e32 v[\r], v[\r], v[\r+8]
	v_add_f32_e32 v[\r+16], v[\r+16], v[\r+24]
	v_add_f32_e32 v[\r], v[\r], v[\r+16]
	.endm

; Row v13 of the sum, v[r], where it and the lane's row of x, lanes, are there.
	.macro	gemm_store at, r, lanes
	gemm_sum \r
	v_cmp_gt_u32_e32 vcc_lo, s12, v13
	v_lshl_add_u32 v6, v13, 2, v[\at]
	s_and_b32 exec_lo, vcc_lo, \lanes
	global_store_b32 v6, v[\r], s[16:17]
	s_mov_b32 exec_lo, -1
	gemm_row_next
	.endm

	.macro	gemm_stores at, r, lanes
	gemm_row_first
	gemm_store \at, \r, \lanes
	gemm_store \at, \r+1, \lanes
	gemm_store \at, \r+2, \lanes
	gemm_store \at, \r+3, \lanes
	gemm_store \at, \r+4, \lanes
	gemm_store \at, \r+5, \lanes
	gemm_store \at, \r+6, \lanes
	gemm_store \at, \r+7, \lanes
	.endm

	.macro	zero32 r
	zero4 \r
	zero4 \r+4
	zero4 \r+8
	zero4 \r+12
	zero4 \r+16
	zero4 \r+20
	zero4 \r+24
	zero4 \r+28
	.endm

; What both kernels of prompts begin and end with. Scalars: arguments and who it is
	.macro	gemm_who
	s_load_b32 s20, s[0:1], 0x0              ; n_rows
	s_load_b64 s[4:5], s[0:1], 0x60          ; m.q
	s_load_b64 s[8:9], s[0:1], 0x8c          ; m.n_out, m.n_in
	s_load_b128 s[24:27], s[0:1], 0x130      ; xq, xd
	s_load_b64 s[16:17], s[0:1], 0x40        ; y.p
	s_load_b32 s22, s[0:1], 0x48             ; y.stride
	v_lshrrev_b32_e32 v1, 5, v0
	v_and_b32_e32 v14, 15, v0
	v_bfe_u32 v15, v0, 4, 1
	v_readfirstlane_b32 s2, v1
	group_y s3
	s_lshl_b32 s3, s3, 3
	s_plus s2, s2, s3
	s_lshl_b32 s2, s2, 4
	group_x s3
	s_lshl_b32 s3, s3, 5
	.endm

; s[12:13]: rows of m that are left, and the last; s[14:15]: of x
	.macro	gemm_left end
	wait_scalars
	s_cmp_ge_u32 s2, s8
	s_cbranch_scc1 \end
	s_minus s12, s8, s2
	s_minus s13, s12, 1
	s_minus s14, s20, s3
	s_minus s15, s14, 1
	.endm

; s[16:17]: the first of y
	.macro	gemm_y
	s_lshl_b32 s22, s22, 2
	product s3, s22
	s_plus64 16, s18, s19
	s_lshl_b32 s18, s2, 2
	s_plus64 16, s18, 0
	.endm

; v[0:4]: a lane's rows; s[n]: bytes of a row of x's scales
	.macro	gemm_lanes n
	v_min_u32_e32 v0, s13, v14
	v_min_u32_e32 v1, s15, v14
	v_add_nc_u32_e32 v2, 16, v14
	v_min_u32_e32 v2, s15, v2
	v_mul_lo_u32 v0, v0, s9
	v_mul_lo_u32 v3, v1, s\n
	v_mul_lo_u32 v4, v2, s\n
	v_mul_lo_u32 v1, v1, s9
	v_mul_lo_u32 v2, v2, s9
	.endm

; The other half of a row's columns: 1 << by bytes on
	.macro	gemm_half by
	.if .amdgcn.gfx_generation_number == 12
	v_lshl_add_u32 v0, v15, \by, v0
	v_lshl_add_u32 v1, v15, \by, v1
	v_lshl_add_u32 v2, v15, \by, v2
	.endif
	.endm

	.macro	gemm_begin
	gemm_row_first
	gemm_scales 5
	gemm_scales 6
	gemm_scales 7
	gemm_scales 8
	gemm_scales 9
	gemm_scales 10
	gemm_scales 11
	gemm_scales 12
	zero32 32
	zero32 64
	.endm

	.macro	gemm_end
	v_mul_lo_u32 v7, v14, s22
	v_add_nc_u32_e32 v8, 16, v14
	v_cmp_gt_u32_e64 s18, s14, v14
	v_cmp_gt_u32_e64 s19, s14, v8
	v_mul_lo_u32 v8, v8, s22
	gemm_stores 7, 32, s18
	gemm_stores 8, 64, s19
	.endm

	kernel br_nd_mul_int32_rows
	s_load_b64 s[6:7], s[0:1], 0x78          ; m.d
	gemm_who
	gemm_left .Lgemm_end
	s_lshr_b32 s21, s9, 3
	s_lshr_b32 s10, s9, 7
	product s2, s9
	s_plus64 4, s18, s19
	product s2, s21
	s_plus64 6, s18, s19
	product s3, s9
	s_plus64 24, s18, s19
	product s3, s21
	s_plus64 26, s18, s19
	gemm_y
	gemm_lanes 21
	gemm_half 4
	gemm_begin
.Lgemm_turn:
	.if .amdgcn.gfx_generation_number == 12
	s_clause 0x15
	.else
	s_clause 0x21
	.endif
	global_load_b128 v[96:99], v5, s[6:7]
	global_load_b128 v[100:103], v6, s[6:7]
	global_load_b128 v[104:107], v7, s[6:7]
	global_load_b128 v[108:111], v8, s[6:7]
	global_load_b128 v[112:115], v9, s[6:7]
	global_load_b128 v[116:119], v10, s[6:7]
	global_load_b128 v[120:123], v11, s[6:7]
	global_load_b128 v[124:127], v12, s[6:7]
	global_load_b128 v[129:132], v3, s[26:27]
	global_load_b128 v[133:136], v4, s[26:27]
	.if .amdgcn.gfx_generation_number == 12
	gemm_loads 140, 144, 148, 0, 16
	gemm_loads 152, 156, 160, 32, 48
	gemm_loads 164, 168, 172, 64, 80
	gemm_loads 176, 180, 184, 96, 112
	.else
	gemm_loads 140, 148, 156, 0, 16
	gemm_loads 164, 172, 180, 32, 48
	gemm_loads 188, 196, 204, 64, 80
	gemm_loads 212, 220, 228, 96, 112
	.endif
	s_plus64 4, 0x80, 0
	s_plus64 24, 0x80, 0
	s_plus64 6, 16, 0
	s_plus64 26, 16, 0
	.if .amdgcn.gfx_generation_number == 12
	gemm_both 0, 32, 64, 18, 9, 140, 144, 148
	gemm_both 1, 40, 72, 12, 6, 152, 156, 160
	gemm_both 2, 48, 80, 6, 3, 164, 168, 172
	gemm_both 3, 56, 88, 0, 0, 176, 180, 184
	.else
	gemm_both 0, 32, 64, 18, 9, 140, 148, 156
	gemm_both 1, 40, 72, 12, 6, 164, 172, 180
	gemm_both 2, 48, 80, 6, 3, 188, 196, 204
	gemm_both 3, 56, 88, 0, 0, 212, 220, 228
	.endif
	s_minus s10, s10, 1
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .Lgemm_turn
	gemm_end
.Lgemm_end:
	s_endpgm
	.if .amdgcn.gfx_generation_number == 12
	kernel_end br_nd_mul_int32_rows, 188
	.else
	kernel_end br_nd_mul_int32_rows, 236
	.endif
