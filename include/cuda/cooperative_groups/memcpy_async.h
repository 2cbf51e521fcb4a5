/* memcpy_async.h - these come with cooperative_groups.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../cooperative_groups.h"
