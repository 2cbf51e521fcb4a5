/* version.h - the interface that these headers follow.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_VERSION
#define BRASS_THRUST_VERSION
#define THRUST_VERSION          200000
#define THRUST_MAJOR_VERSION    2
#define THRUST_MINOR_VERSION    0
#define THRUST_SUBMINOR_VERSION 0
#define THRUST_PATCH_NUMBER     0
#endif
