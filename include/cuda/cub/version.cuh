/* version.cuh - the CUB whose interface this is: that of CUDA 12.0.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_VERSION
#define BRASS_CUB_VERSION
#define CUB_VERSION          200001
#define CUB_MAJOR_VERSION    (CUB_VERSION / 100000)
#define CUB_MINOR_VERSION    (CUB_VERSION / 100 % 1000)
#define CUB_SUBMINOR_VERSION (CUB_VERSION % 100)
#define CUB_PATCH_NUMBER     0
#endif
