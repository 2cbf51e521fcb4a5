/* encode_lanes_avx512.c - the same functions as encode_lanes.c, compiled for AVX-512:
 * the same bits, for every operation is IEEE's and none is contracted.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined __AVX512F__ && !defined BR_ONE_COPY
#    define ENC_LANES br_enc_lanes_avx512
#    include "model/encode_lanes.c"
#else
typedef int br_enc_no_avx512;
#endif
