/* sm_70_rt.hpp - clang asks for it; what it would hold is in brass_device.h.
 * SPDX-License-Identifier: Apache-2.0 */
