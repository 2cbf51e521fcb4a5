/* embed_ptx.c - the kernels' generated PTX, inside the binary.
 * Regenerate with `make ptx` (clang-19; no CUDA toolkit needed). `make
 * NVCC=nvcc` adds the decode kernel as a cubin for sm_90, `make PTXAS=ptxas` all of
 * them, from this PTX; else each is a zero.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/embed.h"
#include "drv/cuda/decode.h"

BR_EMBED("br_ptx_mega_decode", "kernels/cuda/ptx/mega_decode.ptx");
BR_EMBED("br_ptx_experts", "kernels/cuda/ptx/experts.ptx");
BR_EMBED("br_ptx_nodes", "kernels/cuda/ptx/nodes.ptx");
BR_EMBED("br_ptx_pick", "kernels/cuda/ptx/pick.ptx");
BR_EMBED("br_ptx_prog", "kernels/cuda/ptx/prog.ptx");
BR_EMBED("br_ptx_stay", "kernels/cuda/ptx/stay.ptx");
BR_EMBED("br_ptx_setup", "kernels/cuda/ptx/setup.ptx");

#if !defined BR_CUBIN && defined BR_CUBINS
#    define BR_CUBIN BR_CUBINS "/mega_decode.cubin"
#endif
#ifdef BR_CUBIN
BR_EMBED("br_cubin_mega_decode", BR_CUBIN);
#else
const char br_cubin_mega_decode[1] = {0};
#endif

#ifdef BR_CUBINS
BR_EMBED("br_cubin_experts", BR_CUBINS "/experts.cubin");
BR_EMBED("br_cubin_nodes", BR_CUBINS "/nodes.cubin");
BR_EMBED("br_cubin_pick", BR_CUBINS "/pick.cubin");
BR_EMBED("br_cubin_prog", BR_CUBINS "/prog.cubin");
BR_EMBED("br_cubin_setup", BR_CUBINS "/setup.cubin");
#else
const char br_cubin_experts[1] = {0}, br_cubin_nodes[1] = {0};
const char br_cubin_pick[1] = {0}, br_cubin_prog[1] = {0};
const char br_cubin_setup[1] = {0};
#endif

const void *
br_cuda_image(const br_cuda *cu, const char *ptx, const char *cubin)
{
    return cubin[0] && cu->major == 9 && cu->minor == 0 ? cubin : ptx;
}
