/* sim_lane_avx2.c - the same functions as sim_lane.c, compiled for AVX2 and
 * FMA: the same bits, for every operation is IEEE's and none is contracted.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined __AVX2__ && !defined BR_ONE_COPY /* of half a minute each */
#    define SIM_LANE_ROWS sim_lane_rows_avx2
#    include "drv/sim/sim_lane.c"
#else
typedef int sim_no_avx2;
#endif
