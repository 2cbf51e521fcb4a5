; rope.s - pairs of one row turned by their position's angles (br_nd_rope of
; kernels/cuda/nodes.cu, to the bit): a lane a pair, of heads that turn whole and have
; a power of two of numbers, so that nothing is divided: pair i of half a head's n
; is number p = i & (n - 1) of it, and its numbers lie at 2i - p and n further, or at 2i
; and 2i + 1 where neighbours turn.
;
; The angle is reduced by multiples of a quarter turn in three pieces of pi/2, sine and
; cosine are polynomials, as in kernels/cuda/exact.cuh.
;
; s[0:1] arguments, br_nd_args; s[4:5] x, s[6:7] w, s[8:9] y, s24 n, s23 the position, s21
; neighbours, s22 the scale; v0 i, v1 p, v4 and v5 bytes, v6 and v7 the pair, v14 sine, v16
; cosine, v11 quarter turns
; SPDX-License-Identifier: Apache-2.0

; sine and cosine of v8 * v3 in v20 and v21; v9 to v19 and vcc are used
	.macro	turn
	v_mul_f32_e32 v9, v8, v3
	v_fma_f32 v10, v8, v3, -v9
	v_mul_f32_e32 v11, 0x3f22f983, v9        ; 2 / pi
	v_rndne_f32_e32 v11, v11
	v_fmamk_f32 v12, v11, 0xbfc90fdb, v9
	v_fmamk_f32 v12, v11, 0x333bbd2e, v12
	v_fmamk_f32 v12, v11, 0x26f72ced, v12
	v_add_f32_e32 v12, v12, v10
	v_mul_f32_e32 v13, v12, v12
	v_mov_b32_e32 v14, 0x3636df04
	v_mov_b32_e32 v16, 0x37cdec4e
	v_fmaak_f32 v14, v14, v13, 0xb95009d4
	v_fmaak_f32 v16, v16, v13, 0xbab60969
	v_fmaak_f32 v14, v14, v13, 0x3c088887
	v_fmaak_f32 v16, v16, v13, 0x3d2aaaaa
	v_fmaak_f32 v14, v14, v13, 0xbe2aaaab
	v_mul_f32_e32 v16, v16, v13
	v_mul_f32_e32 v14, v14, v13
	v_fma_f32 v17, v13, -0.5, 1.0
	v_cvt_i32_f32_e32 v18, v11
	v_fma_f32 v14, v14, v12, v12
	v_fma_f32 v16, v16, v13, v17
	v_and_b32_e32 v19, 1, v18                ; odd quarters change places
	v_cmp_eq_u32_e32 vcc_lo, 1, v19
	settle
	v_cndmask_b32_e32 v20, v14, v16, vcc_lo
	v_cndmask_b32_e32 v21, v16, v14, vcc_lo
	v_and_b32_e32 v19, 2, v18                ; sine: of 2 and 3 negative
	v_add_nc_u32_e32 v18, 1, v18
	v_lshlrev_b32_e32 v19, 30, v19
	v_and_b32_e32 v18, 2, v18                ; cosine: of 1 and 2
	v_xor_b32_e32 v20, v20, v19
	v_lshlrev_b32_e32 v18, 30, v18
	v_xor_b32_e32 v21, v21, v18
	.endm

	kernel br_nd_rope
	s_load_b64 s[10:11], s[0:1], 0xa8        ; s.position
	s_load_b64 s[4:5], s[0:1], 0x10          ; x.p
	s_load_b64 s[6:7], s[0:1], 0x30          ; w.p
	s_load_b64 s[8:9], s[0:1], 0x40          ; y.p
	s_load_b32 s12, s[0:1], 0x208            ; heads
	s_load_b64 s[20:21], s[0:1], 0x218       ; n_rot, neighbours
	s_load_b32 s22, s[0:1], 0x224            ; scale
	group_x s3
	s_lshl_b32 s3, s3, 8
	v_add_nc_u32_e32 v0, s3, v0
	wait_scalars
	s_load_b32 s23, s[10:11], 0x0
	s_lshr_b32 s24, s20, 1
	s_mul_i32 s25, s24, s12
	v_cmpx_gt_u32_e32 s25, v0
	s_cbranch_execz .Lrope_end
	s_minus s26, s24, 1
	v_and_b32_e32 v1, s26, v0
	v_lshlrev_b32_e32 v2, 2, v1
	global_load_b32 v3, v2, s[6:7]
	s_cmp_lg_u32 s21, 0
	s_cbranch_scc1 .Lrope_neighbours
	v_lshlrev_b32_e32 v4, 1, v0
	s_lshl_b32 s30, s24, 2
	v_sub_nc_u32_e32 v4, v4, v1
	v_lshlrev_b32_e32 v4, 2, v4
	v_add_nc_u32_e32 v5, s30, v4
	global_load_b32 v6, v4, s[4:5]
	global_load_b32 v7, v5, s[4:5]
	s_branch .Lrope_turn
.Lrope_neighbours:
	v_lshlrev_b32_e32 v4, 3, v0
	global_load_b64 v[6:7], v4, s[4:5]
.Lrope_turn:
	wait_scalars
	v_cvt_f32_i32_e32 v8, s23
	wait_loads 1
	turn
	v_mul_f32_e32 v20, s22, v20
	v_mul_f32_e32 v21, s22, v21
	wait_loads 0
	v_mul_f32_e32 v22, v7, v20
	v_mul_f32_e32 v23, v7, v21
	v_fma_f32 v22, v6, v21, -v22
	v_fma_f32 v23, v6, v20, v23
	s_cmp_lg_u32 s21, 0
	s_cbranch_scc1 .Lrope_beside
	global_store_b32 v4, v22, s[8:9]
	global_store_b32 v5, v23, s[8:9]
.Lrope_end:
	s_endpgm
.Lrope_beside:
	global_store_b64 v4, v[22:23], s[8:9]
	s_endpgm
	kernel_end br_nd_rope, 24
