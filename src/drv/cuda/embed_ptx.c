/* embed_ptx.c - the kernels' generated PTX, inside the binary.
 * Regenerate with `make ptx` (clang-19; no CUDA toolkit needed). `make
 * NVCC=nvcc` adds the decode kernel as a cubin for sm_90; else that is a zero.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/embed.h"
#include "drv/cuda/decode.h"

BR_EMBED("br_ptx_mega_decode", "kernels/cuda/ptx/mega_decode.ptx");
BR_EMBED("br_ptx_experts", "kernels/cuda/ptx/experts.ptx");
BR_EMBED("br_ptx_nodes", "kernels/cuda/ptx/nodes.ptx");
BR_EMBED("br_ptx_pick", "kernels/cuda/ptx/pick.ptx");
BR_EMBED("br_ptx_prog", "kernels/cuda/ptx/prog.ptx");
BR_EMBED("br_ptx_setup", "kernels/cuda/ptx/setup.ptx");

#ifdef BR_CUBIN
BR_EMBED("br_cubin_mega_decode", BR_CUBIN);
#else
const char br_cubin_mega_decode[1] = {0};
#endif
