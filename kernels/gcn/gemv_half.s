; gemv_half.s - y = m x of one row: weights F16 or BF16, activations F32 (br_nd_mul_f16,
; br_nd_mul_bf16 of kernels/cuda/nodes.cu, to the bit); one matrix, or of each pair the
; rows of its expert.
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

; Two columns more for the chains v[c], v[c+1]: weights v[w], activations v[x], v[x+1].
	.macro	half_two bf16, c, w, x
	.if \bf16
	v_lshlrev_b32_e32 v12, 16, v[\w]
	v_and_b32_e32 v13, s20, v[\w]
	v_fmac_f32_e32 v[\c], v12, v[\x]
	v_fmac_f32_e32 v[\c+1], v13, v[\x+1]
	.else
	v_fma_mix_f32 v[\c], v[\x], v[\w], v[\c] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v[\c+1], v[\x+1], v[\w], v[\c+1] op_sel:[0,1,0] op_sel_hi:[0,1,0]
	.endif
	.endm

	.macro	half_piece bf16, w, x
	half_two \bf16, 4, \w, \x
	half_two \bf16, 6, \w+1, \x+2
	half_two \bf16, 8, \w+2, \x+4
	half_two \bf16, 10, \w+3, \x+6
	.endm

; at: bytes of m; x0, x1: of the two halves of x's eight
	.macro	half_loads w, x, at, x0, x1
	stream b128, v[\w:\w+3], v2, s[4:5], \at
	global_load_b128 v[\x:\x+3], v3, s[24:25] offset:\x0
	global_load_b128 v[\x+4:\x+7], v3, s[24:25] offset:\x1
	.endm

	.macro	half_swap_add v
	v_add_f32_dpp \v, \v, \v quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
	.endm

	.macro	gemv_half name, bf16
	kernel \name
	s_load_b64 s[4:5], s[0:1], 0x60          ; m.q
	s_load_b64 s[8:9], s[0:1], 0x8c          ; m.n_out, m.n_in
	s_load_b64 s[24:25], s[0:1], 0x10        ; x.p
	s_load_b64 s[16:17], s[0:1], 0x40        ; y.p
	s_load_b64 s[28:29], s[0:1], 0x198       ; e.ids
	wave_and_lane
	s_lshl_b32 s2, s2, 4
	v_lshrrev_b32_e32 v1, 1, v0
	.if \bf16
	s_mov_b32 s20, 0xffff0000
	.endif
	wait_scalars
	s_cmp_ge_u32 s2, s8
	s_cbranch_scc1 .Lhalf_end_\bf16
	expert .Lhalf_one_\bf16, 1
	product s44, s46
	s_lshl_b64 s[18:19], s[18:19], 2
	s_plus64 24, s18, s19
.Lhalf_one_\bf16:
	product s3, s9
	s_lshl_b64 s[18:19], s[18:19], 1
	s_plus64 4, s18, s19
	s_minus s12, s8, s2
	s_minus s13, s12, 1
	s_lshl_b32 s14, s9, 1
	s_lshr_b32 s10, s9, 7
	s_bfe_u32 s11, s9, 0x30004
	v_min_u32_e32 v2, s13, v1
	v_and_b32_e32 v0, 1, v0
	v_mul_lo_u32 v2, v2, s14
	v_lshlrev_b32_e32 v3, 5, v0
	v_lshl_add_u32 v2, v0, 4, v2
	zero4 4
	zero4 8
	s_cmp_eq_u32 s10, 0
	s_cbranch_scc1 .Lhalf_rest_\bf16
.Lhalf_eight_\bf16:
	s_clause 0x17
	half_loads 20, 52, 0, 0, 16
	half_loads 24, 60, 32, 64, 80
	half_loads 28, 68, 64, 128, 144
	half_loads 32, 76, 96, 192, 208
	half_loads 36, 84, 128, 256, 272
	half_loads 40, 92, 160, 320, 336
	half_loads 44, 100, 192, 384, 400
	half_loads 48, 108, 224, 448, 464
	v_add_nc_u32_e32 v2, 0x100, v2
	v_add_nc_u32_e32 v3, 0x200, v3
	s_minus s10, s10, 1
	wait_loads 21
	half_piece \bf16, 20, 52
	wait_loads 18
	half_piece \bf16, 24, 60
	wait_loads 15
	half_piece \bf16, 28, 68
	wait_loads 12
	half_piece \bf16, 32, 76
	wait_loads 9
	half_piece \bf16, 36, 84
	wait_loads 6
	half_piece \bf16, 40, 92
	wait_loads 3
	half_piece \bf16, 44, 100
	wait_loads 0
	half_piece \bf16, 48, 108
	s_cmp_lg_u32 s10, 0
	s_cbranch_scc1 .Lhalf_eight_\bf16
.Lhalf_rest_\bf16:
	s_cmp_eq_u32 s11, 0
	s_cbranch_scc1 .Lhalf_sum_\bf16
	half_loads 20, 52, 0, 0, 16
	v_add_nc_u32_e32 v2, 32, v2
	v_add_nc_u32_e32 v3, 64, v3
	s_minus s11, s11, 1
	wait_loads 0
	half_piece \bf16, 20, 52
	s_branch .Lhalf_rest_\bf16
.Lhalf_sum_\bf16:
	half_swap_add v4
	half_swap_add v5
	half_swap_add v6
	half_swap_add v7
	half_swap_add v8
	half_swap_add v9
	half_swap_add v10
	half_swap_add v11
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
	s_plus64 16, s2, 0
	v_lshlrev_b32_e32 v5, 2, v1
	global_store_b32 v5, v4, s[16:17]
.Lhalf_end_\bf16:
	s_endpgm
	kernel_end \name, 116
	.endm

	gemv_half br_nd_mul_f16, 0
	gemv_half br_nd_mul_bf16, 1
