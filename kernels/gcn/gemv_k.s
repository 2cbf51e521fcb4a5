; gemv_k.s - y = m x of one row: bytes in blocks of 256, whose sub-blocks of 32 or 16
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

; v[d] = the sum of 16 products of bytes
	.macro	dot16 d, a, b
	v_dot4_i32_iu8 \d, v[\a], v[\b], 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 \d, v[\a+1], v[\b+1], \d neg_lo:[1,1,0]
	v_dot4_i32_iu8 \d, v[\a+2], v[\b+2], \d neg_lo:[1,1,0]
	v_dot4_i32_iu8 \d, v[\a+3], v[\b+3], \d neg_lo:[1,1,0]
	.endm

; d = the sum of 16 bytes
	.macro	sum16 d, a
	v_dot4_i32_iu8 \d, v[\a], s22, 0 neg_lo:[1,1,0]
	v_dot4_i32_iu8 \d, v[\a+1], s22, \d neg_lo:[1,1,0]
	v_dot4_i32_iu8 \d, v[\a+2], s22, \d neg_lo:[1,1,0]
	v_dot4_i32_iu8 \d, v[\a+3], s22, \d neg_lo:[1,1,0]
	.endm

; v = the sum over 16 lanes
	.macro	sum_row v
	add_quad \v, 1, 0, 3, 2
	add_quad \v, 2, 3, 0, 1
	add_row \v, row_xmask:4
	add_row \v, row_xmask:8
	.endm

; A block more for sum: weights w, activations x, the sub-block's factor s, the
; block's d, the activations' e, with min the least weight's l and the block's m.
	.macro	k_piece min, sum, w, x, s, d, e, l, m
	dot16 v5, \w, \x
	.if \min
	sum16 v6, \x
	.endif
	v_mul_i32_i24_e32 v5, v5, v[\s]
	.if \min
	v_mul_i32_i24_e32 v6, v6, v[\l]
	.endif
	sum_row v5
	.if \min
	sum_row v6
	.endif
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v[\d], v[\d], v[\e]
	v_mul_f32_e32 v5, v[\d], v5
	.if \min
	v_cvt_f32_i32_e32 v6, v6
	v_mul_f32_e32 v[\m], v[\m], v[\e]
	v_fma_f32 v5, -v[\m], v6, v5
	.endif
	v_add_f32_e32 \sum, \sum, v5
	.endm

; sub: the register of the sub-block's place
	.macro	k_loads min, w, x, s, d, e, l, m, sub, byte, block
	stream b128, v[\w:\w+3], v2, s[4:5], \byte
	global_load_i8 v[\s], \sub, s[32:33]
	.if \min
	global_load_i8 v[\l], \sub, s[34:35]
	.endif
	global_load_b32 v[\d], v3, s[36:37] offset:\block
	.if \min
	global_load_b32 v[\m], v3, s[38:39] offset:\block
	.endif
	global_load_b128 v[\x:\x+3], v2, s[24:25] offset:\byte
	global_load_b32 v[\e], v3, s[26:27] offset:\block
	.endm

; A piece of the rest: lanes behind the row's end have zeros.
	.macro	k_last_loads min
	zero4 8
	zero4 12
	zero4 16
	v_mov_b32_e32 v20, 0
	v_cmpx_gt_u32_e32 s9, v2
	k_loads \min, 8, 12, 18, 16, 17, 20, 19, v7, 0, 0
	s_mov_b32 exec_lo, -1
	.endm

; All pieces of a row.
	.macro	k_row min, sum
	s_cmp_eq_u32 s10, 0
	s_cbranch_scc1 .Lk_rest_\min
.Lk_pairs_\min:
	v_add_nc_u32_e32 v35, s30, v7
	.if \min
	s_clause 0xd
	.else
	s_clause 0x9
	.endif
	k_loads \min, 8, 12, 18, 16, 17, 20, 19, v7, 0, 0
	k_loads \min, 21, 25, 31, 29, 30, 33, 32, v35, 512, 8
	v_add_nc_u32_e32 v2, 0x400, v2
	v_add_nc_u32_e32 v3, 16, v3
	v_add_nc_u32_e32 v7, s30, v35
	s_minus s10, s10, 1
	.if \min
	wait_loads 7
	.else
	wait_loads 5
	.endif
	k_piece \min, v4, 8, 12, 18, 16, 17, 20, 19
	wait_loads 0
	k_piece \min, v34, 21, 25, 31, 29, 30, 33, 32
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .Lk_pairs_\min
.Lk_rest_\min:
	s_cmp_ge_u32 s11, s9
	s_cbranch_scc1 \sum
	k_last_loads \min
	v_add_nc_u32_e32 v2, 0x200, v2
	v_add_nc_u32_e32 v3, 8, v3
	v_add_nc_u32_e32 v7, s30, v7
	s_plus s11, s11, 0x200
	wait_loads 0
	k_piece \min, v4, 8, 12, 18, 16, 17, 20, 19
	s_cmp_ge_u32 s11, s9
	s_cbranch_scc1 \sum
	k_last_loads \min
	wait_loads 0
	k_piece \min, v34, 8, 12, 18, 16, 17, 20, 19
	.endm

	kernel br_nd_mul_int256
	s_load_b64 s[4:5], s[0:1], 0x60          ; m.q
	s_load_b128 s[32:35], s[0:1], 0x68       ; m.scale, m.min
	s_load_b128 s[36:39], s[0:1], 0x78       ; m.d, m.dmin
	s_load_b32 s31, s[0:1], 0x98             ; m.sub
	s_load_b64 s[8:9], s[0:1], 0x8c          ; m.n_out, m.n_in
	s_load_b128 s[24:27], s[0:1], 0x130      ; xq, xd
	s_load_b64 s[16:17], s[0:1], 0x40        ; y.p
	s_load_b64 s[28:29], s[0:1], 0x198       ; e.ids
	wave_and_lane
	v_lshlrev_b32_e32 v2, 4, v0
	s_mov_b32 s20, 0x76543210
	s_mov_b32 s21, 0xfedcba98
	s_mov_b32 s22, 0x01010101
	wait_scalars
	s_cmp_ge_u32 s2, s8
	s_cbranch_scc1 .Lk_end
	expert .Lk_one
	product s44, s9
	s_plus64 24, s18, s19
	plus_blocks 26, 8
.Lk_one:
	product s3, s9
	s_plus64 4, s18, s19
	s_cmp_eq_u32 s31, 32
	s_cselect_b32 s31, 5, 4            ; sub-blocks are 1 << s31 columns
	s_lshr_b64 s[46:47], s[18:19], s31
	s_plus64 32, s46, s47
	s_plus64 34, s46, s47
	plus_blocks 36, 8
	s_plus64 38, s18, s19
	s_lshr_b32 s30, 0x200, s31
	v_lshrrev_b32_e32 v3, 4, v0
	v_lshrrev_b32_e32 v7, s31, v2
	v_lshlrev_b32_e32 v3, 2, v3
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v34, 0
	s_lshr_b32 s10, s9, 10
	s_and_b32 s11, s9, 0xfffffc00
	s_load_b64 s[18:19], s[0:1], 0x70         ; m.min
	wait_scalars
	s_cmp_eq_u64 s[18:19], 0
	s_cbranch_scc1 .Lk_no_min
	k_row 1, .Lk_sum
	s_branch .Lk_sum
.Lk_no_min:
	k_row 0, .Lk_sum
.Lk_sum:
	v_permlanex16_b32 v5, v4, s20, s21
	v_permlanex16_b32 v6, v34, s20, s21
	v_add_f32_e32 v4, v4, v5
	v_add_f32_e32 v34, v34, v6
	v_add_f32_e32 v4, v4, v34
	s_lshl_b32 s2, s2, 2
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v5, s2
	global_store_b32 v5, v4, s[16:17]
.Lk_end:
	s_endpgm
	kernel_end br_nd_mul_int256, 36
