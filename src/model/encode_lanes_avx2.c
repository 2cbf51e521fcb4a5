/* encode_lanes_avx2.c - the same functions as encode_lanes.c, compiled for AVX2:
 * the same bits, for every operation is IEEE's and none is contracted.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined __AVX2__ && !defined BR_ONE_COPY
#    define ENC_LANES br_enc_lanes_avx2
#    include "model/encode_lanes.c"
#else
typedef int br_enc_no_avx2;
#endif
