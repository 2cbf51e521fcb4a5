; gemm_k.s - y = m x of the rows of a prompt: bytes in blocks of 256, whose sub-blocks of
; 32 or 16 have a factor each and, of some kinds, a least weight (br_nd_mul_int256 of
; kernels/cuda/nodes.cu, to the bit), by v_wmma: a sub-block's sum of products is exact.
; Groups, waves and lanes are those of gemm_q8.s, which comes before.
;
;   sub-block  two v_wmma (of 16: one), then eight sums that the factors multiply; with
;              least weights the sum of a row of x, which they multiply
;   group      eight sub-blocks: of each row of m eight bytes of factors
;   turn       64 columns: all loads, then sub-block after sub-block
;   block      256 columns: sums become floats, and go to chain block mod 4
;
; gfx12 has 16 columns of a row in two lanes. Of sub-blocks of 32 the order of columns is
; nobody's business, so a lane loads 16 bytes at once; of 16 it loads eight of each.
;
; s[0:1] arguments, br_nd_args; s[4:5] weights, s[44:45] factors, s[46:47] least ones,
; s[48:49] s[50:51] the blocks' of both, s[24:25] activations, s[26:27] theirs, s8 rows of
; m, s9 columns, s20 rows of x, s10 blocks, s11 chain, s21 sub-blocks of a row, s33 from
; its place to that of its block; v0 a lane's byte of m, v1, v2 of x, v3, v4 of x's
; scales, v[5:12] of m's factors; v[16:23] sums of a sub-block, v[24:31] factors, v[32:95]
; chains, as gemm_q8.s, v[96:111] factors and v[112:127] least weights of a group,
; v[128:143] sums of a block and v[144:159] of its least weights, v[160:161] x's scales,
; v162, v163 sums of x, from v164 on what is loaded
; SPDX-License-Identifier: Apache-2.0

; v[24:31]: of each row the byte at bit sh of word w
	.macro	gk_bytes how, from, w, sh
	v_bfe_\how v24, v[\from+\w], \sh, 8
	v_bfe_\how v25, v[\from+\w+2], \sh, 8
	v_bfe_\how v26, v[\from+\w+4], \sh, 8
	v_bfe_\how v27, v[\from+\w+6], \sh, 8
	v_bfe_\how v28, v[\from+\w+8], \sh, 8
	v_bfe_\how v29, v[\from+\w+10], \sh, 8
	v_bfe_\how v30, v[\from+\w+12], \sh, 8
	v_bfe_\how v31, v[\from+\w+14], \sh, 8
	.endm

	.macro	gk_by_factors to
	v_mad_i32_i24 v[\to], v16, v24, v[\to]
	v_mad_i32_i24 v[\to+1], v17, v25, v[\to+1]
	v_mad_i32_i24 v[\to+2], v18, v26, v[\to+2]
	v_mad_i32_i24 v[\to+3], v19, v27, v[\to+3]
	v_mad_i32_i24 v[\to+4], v20, v28, v[\to+4]
	v_mad_i32_i24 v[\to+5], v21, v29, v[\to+5]
	v_mad_i32_i24 v[\to+6], v22, v30, v[\to+6]
	v_mad_i32_i24 v[\to+7], v23, v31, v[\to+7]
	.endm

	.macro	gk_by_least to, x
	v_mad_i32_i24 v[\to], v[\x], v24, v[\to]
	v_mad_i32_i24 v[\to+1], v[\x], v25, v[\to+1]
	v_mad_i32_i24 v[\to+2], v[\x], v26, v[\to+2]
	v_mad_i32_i24 v[\to+3], v[\x], v27, v[\to+3]
	v_mad_i32_i24 v[\to+4], v[\x], v28, v[\to+4]
	v_mad_i32_i24 v[\to+5], v[\x], v29, v[\to+5]
	v_mad_i32_i24 v[\to+6], v[\x], v30, v[\to+6]
	v_mad_i32_i24 v[\to+7], v[\x], v31, v[\to+7]
	.endm

; v[16:23]: the products of 16 columns, and of 16 more where there are to be
	.macro	gk_wmma sub, a, b
	.if .amdgcn.gfx_generation_number == 12
	v_wmma_i32_16x16x16_iu8 v[16:23], v[\a:\a+1], v[\b:\b+1], 0 neg_lo:[1,1,0]
	.if \sub == 32
	v_wmma_i32_16x16x16_iu8 v[16:23], v[\a+2:\a+3], v[\b+2:\b+3], v[16:23] neg_lo:[1,1,0]
	.endif
	.else
	v_wmma_i32_16x16x16_iu8 v[16:23], v[\a:\a+3], v[\b:\b+3], 0 neg_lo:[1,1,0]
	.if \sub == 32
	v_wmma_i32_16x16x16_iu8 v[16:23], v[\a+4:\a+7], v[\b+4:\b+7], v[16:23] neg_lo:[1,1,0]
	.endif
	.endif
	.endm

; v[d] plus the sum of eight bytes, first: from zero
	.macro	gk_sum8 d, b, from
	v_dot4_i32_iu8 v[\d], v[\b], s36, \from neg_lo:[1,1,0]
	v_dot4_i32_iu8 v[\d], v[\b+1], s36, v[\d] neg_lo:[1,1,0]
	.endm

; v[d]: the sum of a row of x in the sub-block
	.macro	gk_sum sub, d, b
	gk_sum8 \d, \b, 0
	.if .amdgcn.gfx_generation_number == 12
	.if \sub == 32
	gk_sum8 \d, \b+2, v[\d]
	.endif
	v_permlanex16_b32 v160, v[\d], s37, s38
	v_add_nc_u32_e32 v[\d], v[\d], v160
	.else
	gk_sum8 \d, \b+2, v[\d]
	.if \sub == 32
	gk_sum8 \d, \b+4, v[\d]
	gk_sum8 \d, \b+6, v[\d]
	.endif
	.endif
	.endm

; A sub-block more: bytes v[a] by v[b0] and v[b1], factors at bit sh of word w
	.macro	gk_sub sub, min, w, sh, a, b0, b1
	gk_bytes i32, 96, \w, \sh
	gk_wmma \sub, \a, \b0
	gk_by_factors 128
	gk_wmma \sub, \a, \b1
	gk_by_factors 136
	.if \min
	gk_sum \sub, 162, \b0
	gk_sum \sub, 163, \b1
	gk_bytes u32, 112, \w, \sh
	gk_by_least 144, 162
	gk_by_least 152, 163
	.endif
	.endm

; 32 columns: one sub-block, or two of 16, the second sh2 bits further.
	.macro	gk_part sub, min, w, sh, sh2, a, b0, b1
	.if \sub == 32
	gk_sub 32, \min, \w, \sh, \a, \b0, \b1
	.else
	gk_sub 16, \min, \w, \sh, \a, \b0, \b1
	.if .amdgcn.gfx_generation_number == 12
	gk_sub 16, \min, \w, \sh2, \a+2, \b0+2, \b1+2
	.else
	gk_sub 16, \min, \w, \sh2, \a+4, \b0+4, \b1+4
	.endif
	.endif
	.endm

	.macro	gk_halves d, at, base, off, too
	global_load_b64 v[\d:\d+1], \at, \base offset:\off
	global_load_b64 v[\d+2:\d+3], \at, \base offset:\too
	.endm

; Bytes of 32 columns from off on; half: 16 behind. 28: gfx12, sub-blocks of 16.
	.macro	gk_loads sub, a, b0, b1, off, half
	.if .amdgcn.gfx_generation_number + \sub == 28
	gk_halves \a, v0, s[4:5], \off, \half
	gk_halves \b0, v1, s[24:25], \off, \half
	gk_halves \b1, v2, s[24:25], \off, \half
	.else
	gemm_loads \a, \b0, \b1, \off, \half
	.endif
	.endm

; 64 columns, whose factors are at bits sh, sh2 (and sh3, sh4) of word w, w2
	.macro	gk_turn sub, min, w, sh, sh2, w2, sh3, sh4
	.if .amdgcn.gfx_generation_number == 12
	gk_loads \sub, 164, 168, 172, 0, 16
	gk_loads \sub, 176, 180, 184, 32, 48
	.else
	gk_loads \sub, 164, 172, 180, 0, 16
	gk_loads \sub, 188, 196, 204, 32, 48
	.endif
	s_plus64 4, 64, 0
	s_plus64 24, 64, 0
	.if .amdgcn.gfx_generation_number + \sub == 44
	wait_loads 3
	.else
	wait_loads 6
	.endif
	.if .amdgcn.gfx_generation_number == 12
	gk_part \sub, \min, \w, \sh, \sh2, 164, 168, 172
	wait_loads 0
	gk_part \sub, \min, \w2, \sh3, \sh4, 176, 180, 184
	.else
	gk_part \sub, \min, \w, \sh, \sh2, 164, 172, 180
	wait_loads 0
	gk_part \sub, \min, \w2, \sh3, \sh4, 188, 196, 204
	.endif
	.endm

; Eight bytes of each row of m
	.macro	gk_eight d, base
	global_load_b64 v[\d:\d+1], v5, \base
	global_load_b64 v[\d+2:\d+3], v6, \base
	global_load_b64 v[\d+4:\d+5], v7, \base
	global_load_b64 v[\d+6:\d+7], v8, \base
	global_load_b64 v[\d+8:\d+9], v9, \base
	global_load_b64 v[\d+10:\d+11], v10, \base
	global_load_b64 v[\d+12:\d+13], v11, \base
	global_load_b64 v[\d+14:\d+15], v12, \base
	.endm

	.macro	gk_group sub, min
	gk_eight 96, s[44:45]
	s_plus64 44, 8, 0
	.if \min
	gk_eight 112, s[46:47]
	s_plus64 46, 8, 0
	.endif
	.if \sub == 32
	gk_turn 32, \min, 0, 0, 0, 0, 8, 0
	gk_turn 32, \min, 0, 16, 0, 0, 24, 0
	gk_turn 32, \min, 1, 0, 0, 1, 8, 0
	gk_turn 32, \min, 1, 16, 0, 1, 24, 0
	.else
	gk_turn 16, \min, 0, 0, 8, 0, 16, 24
	gk_turn 16, \min, 1, 0, 8, 1, 16, 24
	.endif
	.endm

	.macro	gk_zero8 r
	zero4 \r
	zero4 \r+4
	.endm

	.macro	gk_word d, at, base
	global_load_b32 v[\d], v[\at], \base
	global_load_b32 v[\d+1], v[\at+1], \base
	global_load_b32 v[\d+2], v[\at+2], \base
	global_load_b32 v[\d+3], v[\at+3], \base
	global_load_b32 v[\d+4], v[\at+4], \base
	global_load_b32 v[\d+5], v[\at+5], \base
	global_load_b32 v[\d+6], v[\at+6], \base
	global_load_b32 v[\d+7], v[\at+7], \base
	.endm

; v[s] as a float, times the scales v[d] and v[x], less the least weights'
	.macro	gk_float min, s, l, d, x
	v_cvt_f32_i32_e32 v[\s], v[\s]
	v_mul_f32_e32 v16, v[\d], v[\x]
	v_mul_f32_e32 v[\s], v16, v[\s]
	.if \min
	v_cvt_f32_i32_e32 v[\l], v[\l]
	v_mul_f32_e32 v17, v[\d+8], v[\x]
	v_fma_f32 v[\s], -v17, v[\l], v[\s]
	.endif
	.endm

	.macro	gk_floats min, s, l, x
	gk_float \min, \s, \l, 164, \x
	gk_float \min, \s+1, \l+1, 165, \x
	gk_float \min, \s+2, \l+2, 166, \x
	gk_float \min, \s+3, \l+3, 167, \x
	gk_float \min, \s+4, \l+4, 168, \x
	gk_float \min, \s+5, \l+5, 169, \x
	gk_float \min, \s+6, \l+6, 170, \x
	gk_float \min, \s+7, \l+7, 171, \x
	.endm

; A block's sums as floats, in v[128:143]
	.macro	gk_block_end min
	v_lshrrev_b32_e32 v24, s33, v5
	v_lshrrev_b32_e32 v25, s33, v6
	v_lshrrev_b32_e32 v26, s33, v7
	v_lshrrev_b32_e32 v27, s33, v8
	v_lshrrev_b32_e32 v28, s33, v9
	v_lshrrev_b32_e32 v29, s33, v10
	v_lshrrev_b32_e32 v30, s33, v11
	v_lshrrev_b32_e32 v31, s33, v12
	gk_word 164, 24, s[48:49]
	.if \min
	gk_word 172, 24, s[50:51]
	.endif
	global_load_b32 v160, v3, s[26:27]
	global_load_b32 v161, v4, s[26:27]
	s_plus64 48, 4, 0
	s_plus64 50, 4, 0
	s_plus64 26, 4, 0
	wait_loads 0
	gk_floats \min, 128, 144, 160
	gk_floats \min, 136, 152, 161
	.endm

	.macro	gk_add2 acc, s
	v_dual_add_f32 v[\acc], v[\acc], v[\s] :: v_dual_add_f32 v[\acc+1], v[\acc+1], v[\s+1]
	.endm

	.macro	gk_chain acc
	gk_add2 \acc, 128
	gk_add2 \acc+2, 130
	gk_add2 \acc+4, 132
	gk_add2 \acc+6, 134
	gk_add2 \acc+32, 136
	gk_add2 \acc+34, 138
	gk_add2 \acc+36, 140
	gk_add2 \acc+38, 142
	.endm

; All blocks.
	.macro	gk_rows sub, min
.Lgk_block_\sub\min:
	gk_zero8 128
	gk_zero8 136
	.if \min
	gk_zero8 144
	gk_zero8 152
	.endif
	gk_group \sub, \min
	.if \sub == 16
	gk_group 16, \min
	.endif
	gk_block_end \min
	s_cmp_eq_u32 s11, 1
	s_cbranch_scc1 .Lgk_one_\sub\min
	s_cmp_eq_u32 s11, 2
	s_cbranch_scc1 .Lgk_two_\sub\min
	s_cmp_eq_u32 s11, 3
	s_cbranch_scc1 .Lgk_three_\sub\min
	gk_chain 32
	s_branch .Lgk_next_\sub\min
.Lgk_one_\sub\min:
	gk_chain 40
	s_branch .Lgk_next_\sub\min
.Lgk_two_\sub\min:
	gk_chain 48
	s_branch .Lgk_next_\sub\min
.Lgk_three_\sub\min:
	gk_chain 56
.Lgk_next_\sub\min:
	s_plus s11, s11, 1
	s_and_b32 s11, s11, 3
	s_minus s10, s10, 1
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .Lgk_block_\sub\min
	.endm

	kernel br_nd_mul_int256_rows
	s_load_b128 s[44:47], s[0:1], 0x68       ; m.scale, m.min
	s_load_b128 s[48:51], s[0:1], 0x78       ; m.d, m.dmin
	s_load_b32 s40, s[0:1], 0x98             ; m.sub
	gemm_who
	s_mov_b32 s36, 0x01010101
	s_mov_b32 s37, 0x76543210
	s_mov_b32 s38, 0xfedcba98
	gemm_left .Lgk_end
	s_cmp_eq_u64 s[46:47], 0
	s_cselect_b32 s41, 1, 0            ; no least weights
	s_cmp_eq_u32 s40, 32
	s_cselect_b32 s39, 5, 4            ; sub-blocks are 1 << s39 columns
	s_cselect_b32 s33, 1, 2
	s_lshr_b32 s21, s9, s39
	s_lshr_b32 s10, s9, 8
	s_mov_b32 s11, 0
	product s2, s9
	s_plus64 4, s18, s19
	product s2, s21
	s_plus64 44, s18, s19
	s_plus64 46, s18, s19
	product s2, s10
	s_lshl_b64 s[18:19], s[18:19], 2
	s_plus64 48, s18, s19
	s_plus64 50, s18, s19
	product s3, s9
	s_plus64 24, s18, s19
	product s3, s10
	s_lshl_b64 s[18:19], s[18:19], 2
	s_plus64 26, s18, s19
	gemm_y
	s_mov_b32 s42, s10                 ; VALU reads no scalar that changes
	gemm_lanes 42
	v_lshlrev_b32_e32 v3, 2, v3
	v_lshlrev_b32_e32 v4, 2, v4
	.if .amdgcn.gfx_generation_number == 12
	s_minus s39, s39, 1
	.endif
	gemm_half s39
	gemm_begin
	s_cmp_eq_u32 s40, 32
	s_cbranch_scc1 .Lgk_32
	s_cmp_eq_u32 s41, 1
	s_cbranch_scc1 .Lgk_16_0
	gk_rows 16, 1
	s_branch .Lgk_store
.Lgk_16_0:
	gk_rows 16, 0
	s_branch .Lgk_store
.Lgk_32:
	s_cmp_eq_u32 s41, 1
	s_cbranch_scc1 .Lgk_32_0
	gk_rows 32, 1
	s_branch .Lgk_store
.Lgk_32_0:
	gk_rows 32, 0
.Lgk_store:
	gemm_end
.Lgk_end:
	s_endpgm
	.if .amdgcn.gfx_generation_number == 12
	kernel_end br_nd_mul_int256_rows, 188
	.else
	kernel_end br_nd_mul_int256_rows, 212
	.endif
