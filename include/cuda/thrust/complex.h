/* complex.h - complex numbers: cuda/std's.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_COMPLEX
#define BRASS_THRUST_COMPLEX
#include "../cuda/std/complex"
namespace thrust
{
using ::cuda::std::abs;
using ::cuda::std::arg;
using ::cuda::std::complex;
using ::cuda::std::conj;
using ::cuda::std::cos;
using ::cuda::std::cosh;
using ::cuda::std::exp;
using ::cuda::std::log;
using ::cuda::std::norm;
using ::cuda::std::polar;
using ::cuda::std::pow;
using ::cuda::std::sin;
using ::cuda::std::sinh;
using ::cuda::std::sqrt;
using ::cuda::std::tan;
using ::cuda::std::tanh;
} // namespace thrust
#endif
