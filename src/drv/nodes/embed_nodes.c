/* embed_nodes.c - the portable kernels' generated PTX, inside the binary: those
 * of kernels/cuda/nodes.cu that need no tensor cores. `make ptx` regenerates.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/embed.h"

extern const char br_ptx_portable[], br_ptx_mega_nodes[]; /* amd_nodes.c */

BR_EMBED("br_ptx_portable", "kernels/cuda/ptx/nodes_portable.ptx");
BR_EMBED("br_ptx_mega_nodes", "kernels/cuda/ptx/mega_nodes.ptx");
