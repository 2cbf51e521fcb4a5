/* sim_lane_avx512.c - the same functions as sim_lane.c, compiled for AVX-512:
 * 32 lanes are two registers, a lane mask is one of the processor's. The same
 * bits, as of sim_lane_avx2.c.
 * SPDX-License-Identifier: Apache-2.0 */
#if defined __AVX512F__ && !defined BR_ONE_COPY
#    define SIM_LANE_ROWS sim_lane_rows_avx512
#    include "drv/sim/sim_lane.c"
#else
typedef int sim_no_avx512;
#endif
