/* type_traits.h - the host's, under names that programs use.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_TYPE_TRAITS
#define BRASS_THRUST_TYPE_TRAITS
#include <type_traits>
namespace thrust
{
namespace detail
{
using namespace std;
}
} // namespace thrust
#endif
