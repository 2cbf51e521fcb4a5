/* embed_ptx.c - the kernels' generated PTX, inside the binary.
 * Regenerate with `make ptx` (clang-19; no CUDA toolkit needed). `make
 * NVCC=nvcc` adds the decode kernel as a cubin for sm_90; else that is a zero.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cuda/decode.h"

#define EMBED(symbol, path)                     \
    __asm__(".pushsection .rodata\n"            \
            ".globl " symbol "\n"               \
            ".hidden " symbol "\n" symbol ":\n" \
            ".incbin \"" path "\"\n"            \
            ".byte 0\n"                         \
            ".popsection\n")

EMBED("br_ptx_mega_decode", "kernels/cuda/ptx/mega_decode.ptx");
EMBED("br_ptx_pick", "kernels/cuda/ptx/pick.ptx");
EMBED("br_ptx_setup", "kernels/cuda/ptx/setup.ptx");

#ifdef BR_CUBIN
EMBED("br_cubin_mega_decode", BR_CUBIN);
#else
const char br_cubin_mega_decode[1] = {0};
#endif
