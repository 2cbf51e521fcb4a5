/* execution_policy.h - see execution_policy.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_SYSTEM_OMP_EXECUTION_POLICY
#define BRASS_THRUST_SYSTEM_OMP_EXECUTION_POLICY
#include "../../execution_policy.h"
#endif
