/* prog_table.h - what a launch of prog.cu gets beside the program's tables.
 *
 *   program    amk/abi.h's records. A FUSED task is N instructions from K on,
 *              which stand behind the tasks' own and are in no queue; their
 *              scratch is buffers behind the program's.
 *   params     with their defaults put in: M_tile rows from m_off on are a
 *              product's, group is never 0 beside a qdtype
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_PROG_TABLE_H
#define BR_PROG_TABLE_H

#include "../../include/amk/abi.h"

enum {
    BR_PG_WARPS = 8,
    BR_PG_F64 = AMK_DTYPE_END_0_2, /* scratch of a recipe may be double */
    BR_PG_STUCK = 1                /* abort_flag: a wait took too long */
};

struct br_pg_bad { /* of a worker; 0: nothing is wrong */
    /* ~ of the first element that is no row, or no position, */
    unsigned long long value;
    unsigned long long fit; /* or that the output's dtype does not hold */
    int instruction, wait;  /* which; 1 + the place of the wait that is stuck */
};

struct br_pg_run {
    struct br_pg_bad *bad; /* [num_sms] */
    int *order;            /* the tasks as they began */
    unsigned int *begun;
    unsigned long long place; /* bytes of a worker's scratch for an output */
    unsigned long long line;  /* numbers of a warp's scores, behind it */
    unsigned int patience;    /* looks at a counter */
};

#endif
