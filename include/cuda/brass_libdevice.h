/* brass_libdevice.h - mathematics of the device.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_LIBDEVICE_H
#define BRASS_LIBDEVICE_H
#endif
