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

; weights v[w:w+3], activations v[x:x+3], their blocks' floats v[d], v[e]
	.macro	q8_piece w, x, d, e
	v_dot4_i32_iu8 v5, v[\w], v[\x], 0 neg_lo:[1,1,0]
	v_mul_f32_e32 v6, v[\d], v[\e]
	v_dot4_i32_iu8 v5, v[\w+1], v[\x+1], v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v[\w+2], v[\x+2], v5 neg_lo:[1,1,0]
	v_dot4_i32_iu8 v5, v[\w+3], v[\x+3], v5 neg_lo:[1,1,0]
	add_quad v5, 1, 0, 3, 2
	v_cvt_f32_i32_e32 v5, v5
	v_mul_f32_e32 v5, v6, v5
	v_permlanex16_b32 v6, v5, s20, s21
	v_add_f32_e32 v4, v4, v5
	v_add_f32_dpp v4, v5, v4 row_shl:8 row_mask:0xf bank_mask:0xf
	v_add_f32_e32 v4, v4, v6
	v_add_f32_dpp v4, v6, v4 row_shl:8 row_mask:0xf bank_mask:0xf
	.endm

	.macro	q8_loads w, x, d, e, byte, scale
	stream b128, v[\w:\w+3], v2, s[4:5], \byte
	stream b32, v[\d], v3, s[6:7], \scale
	global_load_b128 v[\x:\x+3], v2, s[24:25] offset:\byte
	global_load_b32 v[\e], v3, s[26:27] offset:\scale
	.endm

	kernel br_nd_mul_int32
	s_load_b64 s[4:5], s[0:1], 0x60          ; m.q
	s_load_b64 s[6:7], s[0:1], 0x78          ; m.d
	s_load_b64 s[8:9], s[0:1], 0x8c          ; m.n_out, m.n_in
	s_load_b128 s[24:27], s[0:1], 0x130      ; xq, xd
	s_load_b64 s[16:17], s[0:1], 0x40        ; y.p
	s_load_b64 s[28:29], s[0:1], 0x198       ; e.ids
	wave_and_lane
	v_lshlrev_b32_e32 v2, 4, v0
	s_mov_b32 s20, 0x76543210
	s_mov_b32 s21, 0xfedcba98
	wait_scalars
	s_cmp_ge_u32 s2, s8
	s_cbranch_scc1 .Lq8_end
	expert .Lq8_one
	product s44, s9
	s_plus64 24, s18, s19
	plus_blocks 26, 5
.Lq8_one:
	product s3, s9
	s_plus64 4, s18, s19
	plus_blocks 6, 5
	v_lshrrev_b32_e32 v3, 1, v0
	v_mov_b32_e32 v4, 0
	v_lshlrev_b32_e32 v3, 2, v3
	s_lshr_b32 s10, s9, 10
	s_and_b32 s11, s9, 0xfffffc00
	s_cmp_eq_u32 s10, 0
	s_cbranch_scc1 .Lq8_rest
.Lq8_pairs:
	s_clause 0x7
	q8_loads 8, 12, 16, 17, 0, 0
	q8_loads 20, 24, 28, 29, 512, 64
	v_add_nc_u32_e32 v2, 0x400, v2
	v_add_nc_u32_e32 v3, 0x80, v3
	s_minus s10, s10, 1
	wait_loads 4
	q8_piece 8, 12, 16, 17
	wait_loads 0
	q8_piece 20, 24, 28, 29
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .Lq8_pairs
.Lq8_rest:
	s_cmp_ge_u32 s11, s9
	s_cbranch_scc1 .Lq8_sum
	zero4 8
	zero4 12
	v_mov_b32_e32 v16, 0
	v_mov_b32_e32 v17, 0
	v_cmpx_gt_u32_e32 s9, v2
	q8_loads 8, 12, 16, 17, 0, 0
	s_mov_b32 exec_lo, -1
	v_add_nc_u32_e32 v2, 0x200, v2
	v_add_nc_u32_e32 v3, 64, v3
	s_plus s11, s11, 0x200
	wait_loads 0
	q8_piece 8, 12, 16, 17
	s_branch .Lq8_rest
.Lq8_sum:
	v_add_f32_dpp v4, v4, v4 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
	v_add_f32_dpp v4, v4, v4 row_shl:4 row_mask:0xf bank_mask:0xf
	s_lshl_b32 s2, s2, 2
	s_mov_b32 exec_lo, 1
	v_mov_b32_e32 v5, s2
	global_store_b32 v5, v4, s[16:17]
.Lq8_end:
	s_endpgm
	kernel_end br_nd_mul_int32, 30
