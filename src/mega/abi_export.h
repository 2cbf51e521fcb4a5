/* abi_export.h - a task program as the tables that a device reads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_ABI_EXPORT_H
#define BR_MEGA_ABI_EXPORT_H

#include "amk/abi.h"
#include "mega/mega.h"

/* The tables live in the arena. What only a launch knows is left zero: the
 * buffers' ptr, and the program's counters, scratch and abort_flag. */
typedef struct br_mega_abi {
    br_arena arena;
    amk_buffer_t *buffers;           /* [program.n_buffers] */
    amk_instruction_t *instructions; /* [program.n_instructions], task i at i */
    int32_t *queue;                  /* every worker's queue, end to end */
    amk_program_t program;           /* sm_queue[s] points into queue */
} br_mega_abi;

/* sm_of[i], below n_sms, is task i's worker; queues follow the topological
 * order. depth goes into M_tile of every GEMV_TILE: how many instructions
 * ahead weights may be fetched. Refuses (REJECTED) what the records cannot
 * hold; safety is for br_mega_check to prove. Nothing to free on failure. */
br_code br_mega_abi_export(br_mega_abi *out, const br_mega_prog *p,
                           const uint32_t *sm_of, uint32_t n_sms, int32_t depth,
                           br_status *st) BR_MUST_USE;
void br_mega_abi_fini(br_mega_abi *t);

#endif
