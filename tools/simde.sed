# simde.sed - AVX-512 as C: every intrinsic becomes SIMDe's function of that name.
# SPDX-License-Identifier: Apache-2.0
s/\b_mm512_/simde_mm512_/g
s/\b__m512/simde__m512/g
s/__AVX512/BR_AVX512/g
s/^\( *# *include <immintrin.h>\)/\1\n#include "simde_more.h"/
s/avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,fma,f16c/avx2,fma,f16c/
s/"+v"/"+m"/
s/__builtin_cpu_supports("avx512[a-z0-9]*")/1/
