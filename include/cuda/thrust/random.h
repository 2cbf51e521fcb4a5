/* random.h - engines and distributions, for kernels too.
 *
 * The engines are those of the C++ standard and taus88 (L'Ecuyer, 1996): their
 * numbers are defined. A kernel's thread makes an engine and discards what belongs
 * to the others, which costs the logarithm of the distance with linear ones.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_THRUST_RANDOM
#define BRASS_THRUST_RANDOM
#include "../brass_push.h"

#include "../brass_collect.h"

#include <stdint.h>

namespace thrust
{
template <class U, U A_, U C_, U M_> struct linear_congruential_engine {
    typedef U result_type;
    static const U multiplier = A_, increment = C_, modulus = M_;
    static const U min = C_ == 0 ? 1 : 0, max = M_ - 1, default_seed = 1;
    U x;
    BRASS_HD explicit linear_congruential_engine(U s = default_seed)
    {
        seed(s);
    }
    BRASS_HD void seed(U s = default_seed)
    {
        x = s % M_;
        if (C_ == 0 && x == 0)
            x = 1;
    }
    BRASS_HD U operator()() { return x = (U)(((uint64_t)A_ * x + C_) % M_); }
    /* x -> a x + c, z times: squared for each bit of z. */
    BRASS_HD void discard(unsigned long long z)
    {
        uint64_t a = A_, c = C_;

        for (; z; z >>= 1) {
            if (z & 1)
                x = (U)((a * x + c) % M_);
            c = (a * c + c) % M_;
            a = a * a % M_;
        }
    }
    friend BRASS_HD bool operator==(const linear_congruential_engine &a,
                                    const linear_congruential_engine &b)
    {
        return a.x == b.x;
    }
};
typedef linear_congruential_engine<uint32_t, 16807, 0, 2147483647> minstd_rand0;
typedef linear_congruential_engine<uint32_t, 48271, 0, 2147483647> minstd_rand;
typedef minstd_rand default_random_engine;

struct taus88 {
    typedef uint32_t result_type;
    static const uint32_t min = 0, max = 0xffffffff, default_seed = 1;
    uint32_t s[3];
    BRASS_HD explicit taus88(uint32_t v = default_seed) { seed(v); }
    /* The parts need 2, 8 and 16 as their least values. */
    BRASS_HD void seed(uint32_t v = default_seed)
    {
        minstd_rand r(v);

        for (int k = 0; k < 3; k++)
            s[k] = r() + 16;
    }
    BRASS_HD uint32_t operator()()
    {
        s[0] = (s[0] & ~1u) << 12 ^ ((s[0] << 13 ^ s[0]) >> 19);
        s[1] = (s[1] & ~7u) << 4 ^ ((s[1] << 2 ^ s[1]) >> 25);
        s[2] = (s[2] & ~15u) << 17 ^ ((s[2] << 3 ^ s[2]) >> 11);
        return s[0] ^ s[1] ^ s[2];
    }
    BRASS_HD void discard(unsigned long long z)
    {
        while (z-- > 0)
            (*this)();
    }
};

/* [0, 1) with 53 bits, or 24 of a float, from as many words as it needs. */
template <class T, class E>
BRASS_HD T
brass_unit(E &e)
{
    const double range = (double)E::max - (double)E::min + 1;
    double v = (double)(e() - E::min);

    if (sizeof(T) > 4)
        v = (v + (double)(e() - E::min) / range);
    T r = (T)(v / range);
    return r < 1 ? r : (T)(1 - (sizeof(T) > 4 ? 1.1e-16 : 6e-8));
}
template <class T = double> struct uniform_real_distribution {
    typedef T result_type;
    T lo, hi;
    BRASS_HD explicit uniform_real_distribution(T a = 0, T b = 1) : lo(a), hi(b)
    {
    }
    BRASS_HD void reset() {}
    BRASS_HD T a() const { return lo; }
    BRASS_HD T b() const { return hi; }
    BRASS_HD T min() const { return lo; }
    BRASS_HD T max() const { return hi; }
    template <class E> BRASS_HD T operator()(E &e)
    {
        return lo + (hi - lo) * brass_unit<T>(e);
    }
};
template <class T = int> struct uniform_int_distribution {
    typedef T result_type;
    T lo, hi;
    BRASS_HD explicit uniform_int_distribution(
        T a = 0, T b = std::numeric_limits<T>::max())
        : lo(a), hi(b)
    {
    }
    BRASS_HD void reset() {}
    BRASS_HD T a() const { return lo; }
    BRASS_HD T b() const { return hi; }
    BRASS_HD T min() const { return lo; }
    BRASS_HD T max() const { return hi; }
    template <class E> BRASS_HD T operator()(E &e)
    {
        double n = (double)hi - (double)lo + 1;
        double k = brass_unit<double>(e) * n;

        return (T)(lo + (T)(uint64_t)(k < n ? k : n - 1));
    }
};
/* Box and Muller's, one of the two at a time. */
template <class T = double> struct normal_distribution {
    typedef T result_type;
    T mu, sigma;
    BRASS_HD explicit normal_distribution(T m = 0, T s = 1) : mu(m), sigma(s) {}
    BRASS_HD void reset() {}
    BRASS_HD T mean() const { return mu; }
    BRASS_HD T stddev() const { return sigma; }
    template <class E> BRASS_HD T operator()(E &e)
    {
        double u = 1 - brass_unit<double>(e), v = brass_unit<double>(e);

        return mu + sigma * (T)(::sqrt(-2 * ::log(u)) *
                                ::cos(6.283185307179586 * v));
    }
};
namespace random
{
using thrust::default_random_engine;
using thrust::linear_congruential_engine;
using thrust::minstd_rand;
using thrust::minstd_rand0;
using thrust::normal_distribution;
using thrust::taus88;
using thrust::uniform_int_distribution;
using thrust::uniform_real_distribution;
} // namespace random
} // namespace thrust

#include "../brass_pop.h"
#endif
