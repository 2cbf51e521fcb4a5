; norm.s - a row over the root of its mean square, times a model's vector (br_nd_norm of
; kernels/cuda/nodes.cu, to the bit); pieces of n columns, a group each.
;
;   all waves  take 1024 columns at a time, 16 bytes a lane, all loads under way; x and w
;              stay in registers, x goes to LDS
;   chain c    columns c, c + 16 .. : lane c of wave 0, and again lane c + 16, adds up its
;              squares in order, 16 loads of LDS under way; then lanes c and c ^ 8, ^ 4,
;              ^ 2, ^ 1
;
; n is a multiple of 256 and 8192 at most, everything begins on 16 bytes.
;
; s[0:1] arguments, br_nd_args; s[4:5] x, s[8:9] w, s[10:11] y, s12 n, s24 turns, s21 bytes
; of a piece; v1 a lane's byte, v4 sums, v10 the factor, v[16:47] x, v[48:79] w; LDS: the
; factor, x from 64 on
; SPDX-License-Identifier: Apache-2.0

; Columns more for the chain, each once no more loads are under way than n
	.macro	norm_four r, n1, n2, n3, n4
	wait_lds \n1
	v_fmac_f32_e32 v4, v[\r], v[\r]
	wait_lds \n2
	v_fmac_f32_e32 v4, v[\r+1], v[\r+1]
	wait_lds \n3
	v_fmac_f32_e32 v4, v[\r+2], v[\r+2]
	wait_lds \n4
	v_fmac_f32_e32 v4, v[\r+3], v[\r+3]
	.endm

	.macro	norm_chain r, a, b, c, d
	ds_load_b32 v[\r], v2 offset:\a
	ds_load_b32 v[\r+1], v2 offset:\b
	ds_load_b32 v[\r+2], v2 offset:\c
	ds_load_b32 v[\r+3], v2 offset:\d
	.endm

; The lanes that have columns from byte at of the piece on; to done where none has.
	.macro	norm_lanes at, done
	s_cmp_le_u32 s21, \at
	s_cbranch_scc1 \done
	v_cmpx_gt_u32_e32 s21, v2
	.endm

	.macro	norm_next
	s_mov_b32 exec_lo, -1
	v_add_nc_u32_e32 v2, 0x1000, v2
	.endm

	.macro	norm_load at, x, w
	norm_lanes \at, .Lnorm_loaded
	global_load_b128 v[\x:\x+3], v2, s[4:5]
	global_load_b128 v[\w:\w+3], v2, s[8:9]
	norm_next
	.endm

	.macro	norm_keep at, x
	norm_lanes \at, .Lnorm_kept
	ds_store_b128 v2, v[\x:\x+3] offset:64
	norm_next
	.endm

	.macro	norm_scale at, x, w
	norm_lanes \at, .Lnorm_end
	v_mul_f32_e32 v[\x], v[\x], v10
	v_mul_f32_e32 v[\x+1], v[\x+1], v10
	v_mul_f32_e32 v[\x+2], v[\x+2], v10
	v_mul_f32_e32 v[\x+3], v[\x+3], v10
	v_mul_f32_e32 v[\x], v[\x], v[\w]
	v_mul_f32_e32 v[\x+1], v[\x+1], v[\w+1]
	v_mul_f32_e32 v[\x+2], v[\x+2], v[\w+2]
	v_mul_f32_e32 v[\x+3], v[\x+3], v[\w+3]
	global_store_b128 v2, v[\x:\x+3], s[10:11]
	norm_next
	.endm

	kernel br_nd_norm
	s_load_b64 s[4:5], s[0:1], 0x10          ; x.p
	s_load_b32 s6, s[0:1], 0x18              ; x.stride
	s_load_b64 s[8:9], s[0:1], 0x30          ; w.p
	s_load_b64 s[10:11], s[0:1], 0x40        ; y.p
	s_load_b32 s7, s[0:1], 0x48              ; y.stride
	s_load_b32 s12, s[0:1], 0x184            ; width
	s_load_b32 s22, s[0:1], 0x22c            ; eps
	group_x s3
	group_y s2
	v_lshrrev_b32_e32 v1, 5, v0
	v_mov_b32_e32 v9, 0
	v_readfirstlane_b32 s16, v1
	wait_scalars
	product s2, s6
	s_lshl_b64 s[18:19], s[18:19], 2
	s_plus64 4, s18, s19
	product s2, s7
	s_lshl_b64 s[18:19], s[18:19], 2
	s_plus64 10, s18, s19
	product s3, s12
	s_lshl_b64 s[18:19], s[18:19], 2
	s_plus64 4, s18, s19
	s_plus64 10, s18, s19
	s_lshl_b32 s21, s12, 2
	v_lshlrev_b32_e32 v1, 4, v0
	v_mov_b32_e32 v2, v1
	norm_load 0x0, 16, 48
	norm_load 0x1000, 20, 52
	norm_load 0x2000, 24, 56
	norm_load 0x3000, 28, 60
	norm_load 0x4000, 32, 64
	norm_load 0x5000, 36, 68
	norm_load 0x6000, 40, 72
	norm_load 0x7000, 44, 76
.Lnorm_loaded:
	s_mov_b32 exec_lo, -1
	v_mov_b32_e32 v2, v1
	wait_loads 0
	norm_keep 0x0, 16
	norm_keep 0x1000, 20
	norm_keep 0x2000, 24
	norm_keep 0x3000, 28
	norm_keep 0x4000, 32
	norm_keep 0x5000, 36
	norm_keep 0x6000, 40
	norm_keep 0x7000, 44
.Lnorm_kept:
	s_mov_b32 exec_lo, -1
	wait_lds
	barrier
	s_cmp_lg_u32 s16, 0
	s_cbranch_scc1 .Lnorm_meet
	v_and_b32_e32 v2, 15, v0
	v_mov_b32_e32 v4, 0
	v_lshlrev_b32_e32 v2, 2, v2
	s_lshr_b32 s24, s12, 8
.Lnorm_sum:
	norm_chain 80, 64, 128, 192, 256
	norm_chain 84, 320, 384, 448, 512
	norm_chain 88, 576, 640, 704, 768
	norm_chain 92, 832, 896, 960, 1024
	v_add_nc_u32_e32 v2, 0x400, v2
	s_minus s24, s24, 1
	norm_four 80, 15, 14, 13, 12
	norm_four 84, 11, 10, 9, 8
	norm_four 88, 7, 6, 5, 4
	norm_four 92, 3, 2, 1, 0
	s_cmp_lg_u32 s24, 0
	s_cbranch_scc1 .Lnorm_sum
	v_add_f32_dpp v4, v4, v4 row_xmask:8 row_mask:0xf bank_mask:0xf
	v_add_f32_dpp v4, v4, v4 row_xmask:4 row_mask:0xf bank_mask:0xf
	v_add_f32_dpp v4, v4, v4 row_xmask:2 row_mask:0xf bank_mask:0xf
	v_add_f32_dpp v4, v4, v4 row_xmask:1 row_mask:0xf bank_mask:0xf
	v_cvt_f32_u32_e32 v5, s12
	quotient 6, 4, 5, 80
	v_add_f32_e32 v6, s22, v6
	root 7, 6, 80
	v_mov_b32_e32 v8, 1.0
	settle
	quotient 10, 8, 7, 80
	ds_store_b32 v9, v10
	wait_lds
.Lnorm_meet:
	barrier
	ds_load_b32 v10, v9
	v_mov_b32_e32 v2, v1
	wait_lds
	norm_scale 0x0, 16, 48
	norm_scale 0x1000, 20, 52
	norm_scale 0x2000, 24, 56
	norm_scale 0x3000, 28, 60
	norm_scale 0x4000, 32, 64
	norm_scale 0x5000, 36, 68
	norm_scale 0x6000, 40, 72
	norm_scale 0x7000, 44, 76
.Lnorm_end:
	s_endpgm
	kernel_end br_nd_norm, 96, 32832
