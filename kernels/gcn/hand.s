; hand.s - what the kernels of this folder share. The folder is one text, this file
; first (src/drv/nodes/amd_hand.def), for gfx11 and gfx12: where the two part, a macro
; of this file says how.
;
; A kernel has s[0:1], its arguments (br_nd_args), groups of 8 waves, and the numbers
; of its group in X, Y and Z. SPDX-License-Identifier: Apache-2.0
	.text
	.if .amdgcn.gfx_generation_number == 12
	.set USERS, 2
	.else
	.set USERS, 13    ; user and system SGPRs are 16 together, or gfx1100 sets them wrong
	.endif

; ---- where gfx11 and gfx12 part ------------------------------------------------------

	.macro	s_plus d, a, b
	.if .amdgcn.gfx_generation_number == 12
	s_add_co_u32 \d, \a, \b
	.else
	s_add_u32 \d, \a, \b
	.endif
	.endm

	.macro	s_minus d, a, b
	.if .amdgcn.gfx_generation_number == 12
	s_sub_co_u32 \d, \a, \b
	.else
	s_sub_u32 \d, \a, \b
	.endif
	.endm

; s[d:d+1] += lo, hi
	.macro	s_plus64 d, lo, hi
	s_plus s[\d], s[\d], \lo
	.if .amdgcn.gfx_generation_number == 12
	s_add_co_ci_u32 s[\d+1], s[\d+1], \hi
	.else
	s_addc_u32 s[\d+1], s[\d+1], \hi
	.endif
	.endm

; d = 8 times the group's number in X
	.macro	group_x_8 d
	.if .amdgcn.gfx_generation_number == 12
	s_lshl_b32 \d, ttmp9, 3
	.else
	s_lshl_b32 \d, s13, 3
	.endif
	.endm

	.macro	group_x d
	.if .amdgcn.gfx_generation_number == 12
	s_mov_b32 \d, ttmp9
	.else
	s_mov_b32 \d, s13
	.endif
	.endm

	.macro	group_y d
	.if .amdgcn.gfx_generation_number == 12
	s_and_b32 \d, ttmp7, 0xffff
	.else
	s_mov_b32 \d, s14
	.endif
	.endm

	.macro	group_z d
	.if .amdgcn.gfx_generation_number == 12
	s_lshr_b32 \d, ttmp7, 16
	.else
	s_mov_b32 \d, s15
	.endif
	.endm

	.macro	wait_scalars
	.if .amdgcn.gfx_generation_number == 12
	s_wait_kmcnt 0x0
	.else
	s_waitcnt lgkmcnt(0)
	.endif
	.endm

; until n loads at most are under way
	.macro	wait_loads n
	.if .amdgcn.gfx_generation_number == 12
	s_wait_loadcnt \n
	.else
	s_waitcnt vmcnt(\n)
	.endif
	.endm

; until n operations of LDS at most are under way
	.macro	wait_lds n=0
	.if .amdgcn.gfx_generation_number == 12
	s_wait_dscnt \n
	.else
	s_waitcnt lgkmcnt(\n)
	.endif
	.endm

; all waves of the group
	.macro	barrier
	.if .amdgcn.gfx_generation_number == 12
	s_barrier_signal -1
	s_barrier_wait 0xffff
	.else
	s_barrier
	.endif
	.endm

; gfx11 reads a transcendental's result too early unless something is waited for; on
; gfx12 so does VALU a scalar that VALU wrote
	.macro	settle
	.if .amdgcn.gfx_generation_number == 12
	s_wait_alu 0xf19c
	.else
	s_waitcnt_depctr 0xfff
	.endif
	.endm

; a load of what is read once
	.macro	stream bits, d, at, from, off=0
	.if .amdgcn.gfx_generation_number == 12
	global_load_\bits \d, \at, \from offset:\off th:TH_LOAD_NT
	.else
	global_load_\bits \d, \at, \from offset:\off slc
	.endif
	.endm

; ---- begin and end ------------------------------------------------------------------

	.macro	kernel name
	.globl	\name
	.p2align	8
	.type	\name,@function
\name:
	.endm

	.macro	kernel_end name, vgprs, lds=0
.Lafter_\name:
	.size	\name, .Lafter_\name-\name
	.section	.rodata,"a"
	.p2align	6
	.amdhsa_kernel \name
		.amdhsa_group_segment_fixed_size \lds
		.amdhsa_private_segment_fixed_size 0
		.amdhsa_kernarg_size 584
		.amdhsa_user_sgpr_count USERS
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_system_sgpr_workgroup_id_x 1
		.amdhsa_system_sgpr_workgroup_id_y 1
		.amdhsa_system_sgpr_workgroup_id_z 1   ; 13 and 3 are 16
		.amdhsa_system_vgpr_workitem_id 0
		.amdhsa_next_free_vgpr \vgprs
		.amdhsa_next_free_sgpr 80
		.amdhsa_wavefront_size32 1
		.amdhsa_float_denorm_mode_32 3
		.amdhsa_float_denorm_mode_16_64 3
		.amdhsa_workgroup_processor_mode 0
	.end_amdhsa_kernel
	.text
	.endm

; s2: the number of the wave; v0: of the lane in it
	.macro	wave_and_lane
	v_lshrrev_b32_e32 v1, 5, v0
	v_and_b32_e32 v0, 31, v0
	v_readfirstlane_b32 s2, v1
	group_x_8 s3
	s_plus s2, s2, s3
	.endm

; ---- experts ------------------------------------------------------------------------

; s3, the row of m, s44, the row of x, and s[16:17], y, of a pair: of its expert's rows
; of m, and y's row of the pair. Group Y is the pair of a row, Z the row. Without
; experts: to one. stride: s46 is x's.
	.macro	expert one, stride=0
	s_mov_b32 s3, s2
	s_cmp_eq_u64 s[28:29], 0
	s_cbranch_scc1 \one
	s_load_b128 s[40:43], s[0:1], 0x1a0      ; e.stride, e.k, e.share, e.rows
	s_load_b32 s49, s[0:1], 0x1b0            ; e.first
	s_load_b32 s48, s[0:1], 0x48             ; y.stride
	.if \stride
	s_load_b32 s46, s[0:1], 0x18             ; x.stride
	.endif
	group_y s44
	group_z s45
	wait_scalars
	product s45, s40
	s_plus64 18, s44, 0
	s_lshl_b64 s[18:19], s[18:19], 2
	s_plus64 28, s18, s19
	s_load_b32 s47, s[28:29], 0x0
	s_mul_i32 s50, s45, s41
	s_plus s50, s50, s44
	s_cmp_eq_u32 s42, 1
	s_cselect_b32 s44, s50, s45
	product s50, s48
	s_lshl_b64 s[18:19], s[18:19], 2
	s_plus64 16, s18, s19
	wait_scalars
	s_mul_i32 s47, s47, s43
	s_plus s3, s3, s47
	s_plus s3, s3, s49
	.endm

; s[18:19] = a * b
	.macro	product a, b
	s_mul_i32 s18, \a, \b
	s_mul_hi_u32 s19, \a, \b
	.endm

; s[d:d+1] += a number of four bytes for each 1 << shift of s[18:19]
	.macro	plus_blocks d, shift
	s_lshr_b64 s[18:19], s[18:19], \shift
	s_lshl_b64 s[18:19], s[18:19], 2
	s_plus64 \d, s18, s19
	.endm

; ---- bytes --------------------------------------------------------------------------

	.macro	zero4 r
	v_mov_b32_e32 v[\r], 0
	v_mov_b32_e32 v[\r+1], 0
	v_mov_b32_e32 v[\r+2], 0
	v_mov_b32_e32 v[\r+3], 0
	.endm

; v[d] = v[a] / v[b], rounded to nearest; v[t] to v[t+5] and vcc are used
	.macro	quotient d, a, b, t
	v_div_scale_f32 v[\t], null, v[\b], v[\b], v[\a]
	v_div_scale_f32 v[\t+1], vcc_lo, v[\a], v[\b], v[\a]
	v_rcp_f32_e32 v[\t+2], v[\t]
	settle
	v_fma_f32 v[\t+3], -v[\t], v[\t+2], 1.0
	v_fma_f32 v[\t+3], v[\t+3], v[\t+2], v[\t+2]
	v_mul_f32_e32 v[\t+4], v[\t+1], v[\t+3]
	v_fma_f32 v[\t+5], -v[\t], v[\t+4], v[\t+1]
	v_fma_f32 v[\t+4], v[\t+5], v[\t+3], v[\t+4]
	v_fma_f32 v[\t+5], -v[\t], v[\t+4], v[\t+1]
	v_div_fmas_f32 v[\t+5], v[\t+5], v[\t+3], v[\t+4]
	v_cmp_u_f32_e32 vcc_lo, v[\t+5], v[\t+5]
	settle
	v_cndmask_b32_e64 v[\t+5], v[\t+5], 0x7f800000, vcc_lo
	v_div_fixup_f32 v[\d], v[\t+5], v[\b], v[\a]
	.endm

; v[d] = the root of v[a], rounded to nearest; v[t] to v[t+5], s[18:19] are used. v[a] is
; normal, and above 2^-96.
	.macro	root d, a, t
	v_sqrt_f32_e32 v[\t], v[\a]
	settle
	v_add_nc_u32_e32 v[\t+1], -1, v[\t]
	v_add_nc_u32_e32 v[\t+2], 1, v[\t]
	v_fma_f32 v[\t+3], -v[\t+1], v[\t], v[\a]
	v_fma_f32 v[\t+4], -v[\t+2], v[\t], v[\a]
	v_cmp_ge_f32_e64 s18, 0, v[\t+3]
	v_cmp_lt_f32_e64 s19, 0, v[\t+4]
	settle
	v_cndmask_b32_e64 v[\t+5], v[\t], v[\t+1], s18
	v_cndmask_b32_e64 v[\d], v[\t+5], v[\t+2], s19
	.endm

; d += d of lane a, b, c or e of the four lanes that this one, first to last, is among
	.macro	add_quad d, a, b, c, e
	v_add_nc_u32_dpp \d, \d, \d quad_perm:[\a,\b,\c,\e] row_mask:0xf bank_mask:0xf
	.endm

; d += d of the lane that how says, of 16
	.macro	add_row d, how
	v_add_nc_u32_dpp \d, \d, \d \how row_mask:0xf bank_mask:0xf
	.endm
