/* embed_ptx.c - the kernels' generated PTX, inside the binary.
 * Regenerate with `make ptx` (clang-19; no CUDA toolkit needed).
 * SPDX-License-Identifier: Apache-2.0 */
#define EMBED(symbol, path)                     \
    __asm__(".pushsection .rodata\n"            \
            ".globl " symbol "\n"               \
            ".hidden " symbol "\n" symbol ":\n" \
            ".incbin \"" path "\"\n"            \
            ".byte 0\n"                         \
            ".popsection\n")

EMBED("br_ptx_mega_decode", "kernels/cuda/ptx/mega_decode.ptx");
EMBED("br_ptx_setup", "kernels/cuda/ptx/setup.ptx");

typedef int br_not_empty; /* ISO C wants a declaration */
