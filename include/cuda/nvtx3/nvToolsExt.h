/* nvToolsExt.h - where newer programs look for it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../nvToolsExt.h"
