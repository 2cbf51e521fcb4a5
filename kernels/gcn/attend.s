; attend.s - attention of a head of a row over keys and values in pages, F16 (br_nd_attend
; of kernels/cuda/nodes.cu, to the bit): no cap, no sink, both sizes multiples of 64 and 256
; at most.
;
;   block      256 keys, a thread each: 16 chains of products, chain c has columns c,
;              c + 16 ..; 64 columns are under way
;   scores     exp(s - m) in LDS, at the key's place in the block; 0 where no key is
;   wave 7     adds them up in order
;   waves 0 .. two columns of the values a lane, keys in order, a page of 16 under way
;
; What a block gave is folded into what the ones before gave as soon as it is known.
;
; LDS: scores 0, the waves' largest 1024, the sum 1056, the query 1088
; s[4:5] query, s[8:9] y, s15 position, s[24:25] s[26:27] tables, s[36:37] s38 s[40:41] s42
; keys' pool, page, first number, columns, s[44:45] s46 s[48:49] s50 values', s53 s54 sizes,
; s57 first key, s58 the block's, s59 end, s60 wave, s66 waves that have columns, s74 bytes
; from a key's values to the next's; v1 4 times the thread, v3 v4 folded, v5 largest so
; far, v6 the sum, v7 key, v8 score, v40 v41 what was and what is new is multiplied by,
; v80 zero
; SPDX-License-Identifier: Apache-2.0

	.macro	larger d, a, b
	.if .amdgcn.gfx_generation_number == 12
	v_max_num_f32_e32 \d, \a, \b
	.else
	v_max_f32_e32 \d, \a, \b
	.endif
	.endm

; d = the larger of d and of d in the lane that how says, of 16
	.macro	larger_row d, how
	.if .amdgcn.gfx_generation_number == 12
	v_max_num_f32_dpp \d, \d, \d \how row_mask:0xf bank_mask:0xf
	.else
	v_max_f32_dpp \d, \d, \d \how row_mask:0xf bank_mask:0xf
	.endif
	.endm

; v[d] = e to v[x], which is not above 0; v[t] to v[t+3] and vcc are used (ex_exp)
	.macro	expo d, x, t
	v_mul_f32_e32 v[\t], 0x3fb8aa3b, v[\x]
	v_rndne_f32_e32 v[\t], v[\t]
	v_fma_f32 v[\t+1], v[\t], 0xbf317200, v[\x]
	v_fma_f32 v[\t+1], v[\t], 0xb5bfbe8e, v[\t+1]
	v_mov_b32_e32 v[\t+2], 0x3ab6887e
	v_fmaak_f32 v[\t+2], v[\t+2], v[\t+1], 0x3c0905b1
	v_fmaak_f32 v[\t+2], v[\t+2], v[\t+1], 0x3d2aaa8d
	v_fmaak_f32 v[\t+2], v[\t+2], v[\t+1], 0x3e2aaa6f
	v_fma_f32 v[\t+2], v[\t+2], v[\t+1], 0.5
	v_mul_f32_e32 v[\t+3], v[\t+2], v[\t+1]
	v_fma_f32 v[\t+2], v[\t+3], v[\t+1], v[\t+1]
	v_add_f32_e32 v[\t+2], 1.0, v[\t+2]
	v_cvt_i32_f32_e32 v[\t], v[\t]
	v_cmp_gt_f32_e32 vcc_lo, 0xc2d00000, v[\x]
	v_ldexp_f32 v[\t+2], v[\t+2], v[\t]
	settle
	v_cndmask_b32_e64 v[\d], v[\t+2], 0, vcc_lo
	.endm

; two columns c, c + 1 of 16: keys in v[k], the query's v[q], chains v[16+c]
	.macro	att_two c, k, q
	v_fma_mix_f32 v[16+\c], v[\q], v[\k], v[16+\c] op_sel_hi:[0,1,0]
	v_fma_mix_f32 v[17+\c], v[\q+1], v[\k], v[17+\c] op_sel:[0,1,0] op_sel_hi:[0,1,0]
	.endm

; 16 columns: keys in v[k:k+7], the query at byte at of v14
	.macro	att_sixteen k, n, at, at1, at2, at3
	ds_load_b128 v[64:67], v14 offset:\at
	ds_load_b128 v[68:71], v14 offset:\at1
	ds_load_b128 v[72:75], v14 offset:\at2
	ds_load_b128 v[76:79], v14 offset:\at3
	wait_loads \n
	wait_lds
	att_two 0, \k, 64
	att_two 2, \k+1, 66
	att_two 4, \k+2, 68
	att_two 6, \k+3, 70
	att_two 8, \k+4, 72
	att_two 10, \k+5, 74
	att_two 12, \k+6, 76
	att_two 14, \k+7, 78
	.endm

; a key's value in v[v], its score v[s]
	.macro	att_value v, s
	v_fma_mix_f32 v44, v[\s], v[\v], v44 op_sel_hi:[0,1,0]
	v_fma_mix_f32 v45, v[\s], v[\v], v45 op_sel:[0,1,0] op_sel_hi:[0,1,0]
	.endm

	.macro	att_values v, s
	att_value \v, \s
	att_value \v+1, \s+1
	att_value \v+2, \s+2
	att_value \v+3, \s+3
	.endm

	.macro	add_four r
	v_add_f32_e32 v42, v42, v[\r]
	v_add_f32_e32 v42, v42, v[\r+1]
	v_add_f32_e32 v42, v42, v[\r+2]
	v_add_f32_e32 v42, v42, v[\r+3]
	.endm

	.macro	att_load v
	global_load_b32 v[\v], v2, s[72:73]
	v_add_nc_u32_e32 v2, s74, v2
	.endm

	.macro	att_loads v
	att_load \v
	att_load \v+1
	att_load \v+2
	att_load \v+3
	.endm

; s[d:d+1] = from + 4 times index
	.macro	at_word d, from, from1, index
	s_mov_b32 s18, \index
	s_mov_b32 s19, 0
	s_lshl_b64 s[18:19], s[18:19], 2
	s_mov_b64 s[\d:\d+1], s[\from:\from1]
	s_plus64 \d, s18, s19
	.endm

; s[d:d+1] += 4 a b
	.macro	plus_words d, a, b
	product \a, \b
	s_lshl_b64 s[18:19], s[18:19], 2
	s_plus64 \d, s18, s19
	.endm

	kernel br_nd_attend
	s_load_b64 s[4:5], s[0:1], 0x10          ; x.p
	s_load_b32 s6, s[0:1], 0x18              ; x.stride
	s_load_b64 s[8:9], s[0:1], 0x40          ; y.p
	s_load_b32 s7, s[0:1], 0x48              ; y.stride
	s_load_b64 s[10:11], s[0:1], 0xa8        ; s.position
	s_load_b64 s[28:29], s[0:1], 0xc8        ; s.at
	s_load_b64 s[16:17], s[0:1], 0xd0        ; s.tables
	s_load_b32 s12, s[0:1], 0xd8             ; s.n_groups
	s_load_b128 s[36:39], s[0:1], 0xe0       ; k.pool, k.page
	s_load_b64 s[40:41], s[0:1], 0xf0        ; k.first
	s_load_b64 s[42:43], s[0:1], 0xf8        ; k.cols, k.group
	s_load_b128 s[44:47], s[0:1], 0x108      ; v.pool, v.page
	s_load_b64 s[48:49], s[0:1], 0x118       ; v.first
	s_load_b64 s[50:51], s[0:1], 0x120       ; v.cols, v.group
	s_load_b64 s[52:53], s[0:1], 0x20c       ; per_kv, head_k
	s_load_b32 s54, s[0:1], 0x214            ; head_v
	s_load_b64 s[62:63], s[0:1], 0x220       ; window, scale
	group_x s3
	group_y s2
	v_lshrrev_b32_e32 v2, 5, v0
	v_lshlrev_b32_e32 v1, 2, v0
	v_mov_b32_e32 v80, 0
	v_readfirstlane_b32 s60, v2
	v_cvt_f32_u32_e32 v2, s3
	v_add_f32_e32 v2, 0.5, v2
	wait_scalars
	s_mov_b32 s55, s62
	s_mov_b32 s56, s63
	at_word 10, 10, 11, s2
	s_load_b32 s15, s[10:11], 0x0
	s_mul_i32 s20, s2, s12
	s_plus s21, s20, s43
	at_word 30, 28, 29, s21
	s_load_b32 s21, s[30:31], 0x0
	s_plus s22, s20, s51
	at_word 34, 28, 29, s22
	s_load_b32 s22, s[34:35], 0x0
	plus_words 4, s2, s6
	plus_words 4, s3, s53
	plus_words 8, s2, s7
	plus_words 8, s3, s54
; Head of the keys: half more than h over per_kv, rounded down, right below 2^16.
	v_cvt_f32_u32_e32 v3, s52
	v_rcp_f32_e32 v3, v3
	settle
	v_mul_f32_e32 v3, v2, v3
	v_cvt_u32_f32_e32 v3, v3
	v_readfirstlane_b32 s23, v3
	wait_scalars
	at_word 24, 16, 17, s21
	at_word 26, 16, 17, s22
	s_mul_i32 s18, s23, s53
	s_plus64 40, s18, 0
	s_mul_i32 s18, s23, s54
	s_plus64 48, s18, 0
	s_lshl_b32 s74, s50, 1
	s_lshr_b32 s66, s54, 6
	s_mov_b32 s57, 0
	s_cmp_eq_u32 s55, 0
	s_cbranch_scc1 .Latt_first
	s_cmp_lt_u32 s15, s55
	s_cbranch_scc1 .Latt_first
	s_minus s57, s15, s55
	s_plus s57, s57, 1
.Latt_first:
	s_and_b32 s58, s57, 0xffffff00
	s_plus s59, s15, 1
	s_mov_b32 s61, 1
	s_mov_b32 s68, 0x76543210
	s_mov_b32 s69, 0xfedcba98
	v_cmpx_gt_u32_e32 s53, v0
	s_cbranch_execz .Latt_asked
	global_load_b32 v2, v1, s[4:5]
	wait_loads 0
	ds_store_b32 v1, v2 offset:1088
.Latt_asked:
	s_mov_b32 exec_lo, -1
	v_mov_b32_e32 v3, 0
	v_mov_b32_e32 v4, 0
	v_mov_b32_e32 v5, 0
	v_mov_b32_e32 v6, 0
.Latt_block:
	wait_lds
	barrier
	s_max_u32 s76, s57, s58            ; the block's keys: s76 to s77
	s_plus s64, s58, 0x100
	s_min_u32 s77, s64, s59
	settle
	v_add_nc_u32_e32 v7, s76, v0
	v_mov_b32_e32 v8, 0xff800000
	v_cmpx_gt_u32_e32 s77, v7
	s_cbranch_execz .Latt_scored
	v_lshrrev_b32_e32 v9, 4, v7
	v_lshlrev_b32_e32 v9, 2, v9
	global_load_b32 v10, v9, s[24:25]
	v_and_b32_e32 v11, 15, v7
	v_mul_lo_u32 v11, v11, s42
	wait_loads 0
	.if .amdgcn.gfx_generation_number == 12
	v_mad_co_u64_u32 v[12:13], null, v10, s38, s[40:41]
	.else
	v_mad_u64_u32 v[12:13], null, v10, s38, s[40:41]
	.endif
	v_add_co_u32 v12, vcc_lo, v12, v11
	settle
	v_add_co_ci_u32_e32 v13, vcc_lo, 0, v13, vcc_lo
	v_lshlrev_b64 v[12:13], 1, v[12:13]
	v_add_co_u32 v12, vcc_lo, s36, v12
	settle
	v_add_co_ci_u32_e32 v13, vcc_lo, s37, v13, vcc_lo
	zero4 16
	zero4 20
	zero4 24
	zero4 28
	v_mov_b32_e32 v14, 0x440           ; the query
	s_lshr_b32 s64, s53, 6
.Latt_dot:
	s_clause 0x7
	global_load_b128 v[32:35], v[12:13], off
	global_load_b128 v[36:39], v[12:13], off offset:16
	global_load_b128 v[40:43], v[12:13], off offset:32
	global_load_b128 v[44:47], v[12:13], off offset:48
	global_load_b128 v[48:51], v[12:13], off offset:64
	global_load_b128 v[52:55], v[12:13], off offset:80
	global_load_b128 v[56:59], v[12:13], off offset:96
	global_load_b128 v[60:63], v[12:13], off offset:112
	v_add_co_u32 v12, vcc_lo, 0x80, v12
	settle
	v_add_co_ci_u32_e32 v13, vcc_lo, 0, v13, vcc_lo
	s_minus s64, s64, 1
	att_sixteen 32, 6, 0, 16, 32, 48
	att_sixteen 40, 4, 64, 80, 96, 112
	att_sixteen 48, 2, 128, 144, 160, 176
	att_sixteen 56, 0, 192, 208, 224, 240
	v_add_nc_u32_e32 v14, 0x100, v14
	s_cmp_lg_u32 s64, 0
	s_cbranch_scc1 .Latt_dot
	v_add_f32_e32 v16, v16, v24
	v_add_f32_e32 v17, v17, v25
	v_add_f32_e32 v18, v18, v26
	v_add_f32_e32 v19, v19, v27
	v_add_f32_e32 v20, v20, v28
	v_add_f32_e32 v21, v21, v29
	v_add_f32_e32 v22, v22, v30
	v_add_f32_e32 v23, v23, v31
	v_add_f32_e32 v16, v16, v20
	v_add_f32_e32 v17, v17, v21
	v_add_f32_e32 v18, v18, v22
	v_add_f32_e32 v19, v19, v23
	v_add_f32_e32 v16, v16, v18
	v_add_f32_e32 v17, v17, v19
	v_add_f32_e32 v16, v16, v17
	v_mul_f32_e32 v8, s56, v16
.Latt_scored:
	s_mov_b32 exec_lo, -1
	v_mov_b32_e32 v15, v8
	v_lshrrev_b32_e32 v2, 3, v0
	v_permlanex16_b32 v9, v15, s68, s69
	v_and_b32_e32 v2, 0x7c, v2
	larger v15, v15, v9
	larger_row v15, row_xmask:8
	larger_row v15, row_xmask:4
	larger_row v15, row_xmask:2
	larger_row v15, row_xmask:1
	ds_store_b32 v2, v15 offset:1024
	wait_lds
	barrier
	ds_load_b128 v[32:35], v80 offset:1024
	ds_load_b128 v[36:39], v80 offset:1040
	v_subrev_nc_u32_e32 v2, s58, v7
	v_and_b32_e32 v2, 0xff, v2
	v_lshlrev_b32_e32 v2, 2, v2
	wait_lds
	larger v15, v15, v32
	larger v15, v15, v33
	larger v15, v15, v34
	larger v15, v15, v35
	larger v15, v15, v36
	larger v15, v15, v37
	larger v15, v15, v38
	larger v15, v15, v39
	v_sub_f32_e32 v32, v8, v15
	expo 33, 32, 34
	ds_store_b32 v2, v33
	v_mov_b32_e32 v40, 0
	v_mov_b32_e32 v41, 1.0
	s_cmp_lg_u32 s61, 0
	s_cbranch_scc1 .Latt_fold
	v_mov_b32_e32 v43, v15
	larger v15, v15, v5
	v_sub_f32_e32 v32, v5, v15
	expo 40, 32, 34
	v_sub_f32_e32 v32, v43, v15
	expo 41, 32, 34
.Latt_fold:
	v_mov_b32_e32 v5, v15
	wait_lds
	barrier
	s_cmp_lg_u32 s60, 7
	s_cbranch_scc1 .Latt_columns
	s_minus s64, s77, s58
	s_plus s64, s64, 15
	s_lshr_b32 s64, s64, 4
	v_mov_b32_e32 v42, 0
	v_mov_b32_e32 v2, 0
.Latt_add:
	ds_load_b128 v[32:35], v2
	ds_load_b128 v[36:39], v2 offset:16
	ds_load_b128 v[48:51], v2 offset:32
	ds_load_b128 v[52:55], v2 offset:48
	v_add_nc_u32_e32 v2, 64, v2
	s_minus s64, s64, 1
	wait_lds
	add_four 32
	add_four 36
	add_four 48
	add_four 52
	s_cmp_lg_u32 s64, 0
	s_cbranch_scc1 .Latt_add
	v_mul_f32_e32 v6, v6, v40
	v_fma_f32 v6, v42, v41, v6
.Latt_columns:
	s_cmp_ge_u32 s60, s66
	s_cbranch_scc1 .Latt_next
	v_mov_b32_e32 v44, 0
	v_mov_b32_e32 v45, 0
	s_mov_b32 s67, s76
.Latt_page:
	s_lshr_b32 s71, s67, 4
	at_word 72, 26, 27, s71
	s_load_b32 s70, s[72:73], 0x0
	s_and_b32 s71, s67, 15
	s_minus s64, s67, s58
	s_lshl_b32 s75, s64, 2
	s_mov_b64 s[72:73], s[48:49]
	wait_scalars
	product s70, s46
	s_plus64 72, s18, s19
	s_mul_i32 s18, s71, s50
	s_plus64 72, s18, 0
	s_lshl_b64 s[72:73], s[72:73], 1
	s_plus64 72, s44, s45
	settle
	v_mov_b32_e32 v47, s75
	s_plus s18, s67, 16
	s_cmp_lg_u32 s71, 0
	s_cbranch_scc1 .Latt_one
	s_cmp_gt_u32 s18, s77
	s_cbranch_scc1 .Latt_one
	v_mov_b32_e32 v2, v1
	att_loads 48
	att_loads 52
	att_loads 56
	att_loads 60
	ds_load_b128 v[64:67], v47
	ds_load_b128 v[68:71], v47 offset:16
	ds_load_b128 v[72:75], v47 offset:32
	ds_load_b128 v[76:79], v47 offset:48
	wait_lds
	wait_loads 12
	att_values 48, 64
	wait_loads 8
	att_values 52, 68
	wait_loads 4
	att_values 56, 72
	wait_loads 0
	att_values 60, 76
	s_mov_b32 s67, s18
	s_branch .Latt_more
.Latt_one:
	global_load_b32 v48, v1, s[72:73]
	ds_load_b32 v64, v47
	wait_lds
	wait_loads 0
	att_value 48, 64
	s_plus s67, s67, 1
.Latt_more:
	s_cmp_lt_u32 s67, s77
	s_cbranch_scc1 .Latt_page
	v_mul_f32_e32 v3, v3, v40
	v_mul_f32_e32 v4, v4, v40
	v_fma_f32 v3, v44, v41, v3
	v_fma_f32 v4, v45, v41, v4
.Latt_next:
	s_mov_b32 s61, 0
	s_plus s58, s58, 0x100
	settle
	s_cmp_lt_u32 s58, s59
	s_cbranch_scc1 .Latt_block
	s_cmp_lg_u32 s60, 7
	s_cbranch_scc1 .Latt_summed
	ds_store_b32 v80, v6 offset:1056
	wait_lds
.Latt_summed:
	barrier
	s_cmp_ge_u32 s60, s66
	s_cbranch_scc1 .Latt_end
	ds_load_b32 v6, v80 offset:1056
	v_lshlrev_b32_e32 v2, 3, v0
	wait_lds
	quotient 10, 3, 6, 16
	quotient 11, 4, 6, 16
	global_store_b64 v2, v[10:11], s[8:9]
.Latt_end:
	s_endpgm
	kernel_end br_nd_attend, 81, 1088
