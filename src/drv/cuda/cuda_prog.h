/* cuda_prog.h - a task program of tensors on a CUDA device, in one launch.
 *
 *   VM  --each op-->  noted as amk/abi.h's records  --launch-->  kernels/cuda/
 *   ^  its buffers, what is bound, what is checked               prog.cu
 *   '----------------- results ------------------------------------'
 *
 * The tensors stay the VM's (mega/interp.h). A run copies them to the device,
 * walks the program there, a queue a multiprocessor, and copies back what the
 * program writes. Only for programs that the sound check has accepted: the
 * kernels look at nothing that it proves.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CUDA_PROG_H
#define BR_CUDA_PROG_H

#include "mega/interp.h"

typedef struct br_cuda_prog br_cuda_prog;

/* The program outlives it. NO_DEVICE. */
br_code br_cuda_prog_new(br_cuda_prog **out, const br_mega_prog *p,
                         br_status *st) BR_MUST_USE;
void br_cuda_prog_free(br_cuda_prog *x);
/* The VM that it runs is made with this. */
void br_cuda_prog_desc(br_cuda_prog *x, br_mega_vm_desc *d);
/* TIMEOUT: a task waits for a count that does not come. */
br_mega_runner *br_cuda_prog_runner(br_cuda_prog *x);

#endif
