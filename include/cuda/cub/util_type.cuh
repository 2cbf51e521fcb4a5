/* util_type.cuh - CUB's types: pairs, double buffers, what is known of numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BRASS_CUB_UTIL_TYPE
#define BRASS_CUB_UTIL_TYPE
#include "../brass_push.h"

#include "../brass_collect.h"
#include "../cuda_bf16.h"
#include "../cuda_fp16.h"
#include "util_macro.cuh"

namespace cub
{
struct NullType {
    template <class T> BRASS_HD NullType &operator=(const T &) { return *this; }
    BRASS_HD bool operator==(const NullType &) const { return true; }
    BRASS_HD bool operator!=(const NullType &) const { return false; }
};
template <int N> struct Int2Type {
    enum { VALUE = N };
};
template <bool If_, class T, class F> struct If {
    typedef typename std::conditional<If_, T, F>::type Type;
};
template <class A, class B> struct Equals {
    enum { VALUE = std::is_same<A, B>::value, NEGATE = !VALUE };
};
template <int N> struct Log2 {
    enum { VALUE = N <= 1 ? 0 : 1 + Log2<(N + 1) / 2>::VALUE };
};
template <> struct Log2<1> {
    enum { VALUE = 0 };
};
template <> struct Log2<0> {
    enum { VALUE = 0 };
};
template <int N> struct PowerOfTwo {
    enum { VALUE = (N & (N - 1)) == 0 };
};
template <class T> struct IsPointer {
    enum { VALUE = std::is_pointer<T>::value };
};
template <class T> struct RemoveQualifiers {
    typedef typename std::remove_cv<T>::type Type;
};
template <bool Condition, class T = void> struct EnableIf {
};
template <class T> struct EnableIf<true, T> {
    typedef T Type;
};
template <class T> struct Uninitialized {
    typedef T DeviceWord;
    brass::raw<T> storage;
    BRASS_HD T &Alias() { return storage.it(); }
};
/* A block's collective, with memory of the caller's or its own. */
#define BRASS_CUB_STORAGE(name)                                               \
    struct TempStorage : Uninitialized<Memory> {                              \
    };                                                                        \
                                                                              \
  private:                                                                    \
    BRASS_ME static Memory &own()                                             \
    {                                                                         \
        __shared__ TempStorage t;                                             \
        return t.Alias();                                                     \
    }                                                                         \
                                                                              \
  public:                                                                     \
    BRASS_ME name() : m(own()), me(brass::rank<X, Y, Z>()) {}                 \
    BRASS_ME name(TempStorage &t) : m(t.Alias()), me(brass::rank<X, Y, Z>()) {}
template <class T, class B = T> struct AlignBytes {
    enum { ALIGN_BYTES = alignof(T) };
    typedef T Type;
};
template <class I> using value_t = typename brass::iter<I>::value;

template <class K, class V> struct KeyValuePair {
    typedef K Key;
    typedef V Value;
    K key;
    V value;
    KeyValuePair() = default;
    BRASS_HD KeyValuePair(const K &k, const V &v) : key(k), value(v) {}
    BRASS_HD bool operator==(const KeyValuePair &b) const
    {
        return key == b.key && value == b.value;
    }
    BRASS_HD bool operator!=(const KeyValuePair &b) const
    {
        return !(*this == b);
    }
};

/* Two buffers, one of which holds what is current. */
template <class T> struct DoubleBuffer {
    T *d_buffers[2];
    int selector;
    BRASS_HD DoubleBuffer() : d_buffers{0, 0}, selector(0) {}
    BRASS_HD DoubleBuffer(T *current, T *alternate)
        : d_buffers{current, alternate}, selector(0)
    {
    }
    BRASS_HD T *Current() { return d_buffers[selector]; }
    BRASS_HD T *Alternate() { return d_buffers[selector ^ 1]; }
};

/* ---- numbers ------------------------------------------------------------ */

enum Category {
    NOT_A_NUMBER,
    SIGNED_INTEGER,
    UNSIGNED_INTEGER,
    FLOATING_POINT
};
} // namespace cub

namespace brass
{
template <int Bytes> struct word;
template <> struct word<1> {
    typedef unsigned char type;
};
template <> struct word<2> {
    typedef unsigned short type;
};
template <> struct word<4> {
    typedef unsigned int type;
};
template <> struct word<8> {
    typedef unsigned long long type;
};
/* Bits whose unsigned order is the order of the numbers. */
template <class T, bool Float, bool Signed> struct number {
    typedef typename word<sizeof(T)>::type bits;
    static const bits high = (bits)((bits)1 << (8 * sizeof(bits) - 1));
    BRASS_HD static bits in(bits b)
    {
        if (Float)
            return (bits)(b & high ? ~b : b | high);
        return (bits)(Signed ? b ^ high : b);
    }
    BRASS_HD static bits out(bits b)
    {
        if (Float)
            return (bits)(b & high ? b ^ high : ~b);
        return (bits)(Signed ? b ^ high : b);
    }
    BRASS_HD static T of(bits b)
    {
        T v;

        memcpy((void *)&v, &b, sizeof v);
        return v;
    }
    /* Zeros of both signs are one number to a sort. Not by memcpy, which loads
     * byte by byte what lies in memory: a sort took 10 to 60 times as long. */
    BRASS_HD static bits order(const T &v)
    {
        bits b = __builtin_bit_cast(bits, v);

        return in(Float && b == high ? (bits)0 : b);
    }
};
} // namespace brass

namespace cub
{
template <cub::Category Kind, bool Primitive, bool Null, class U, class T>
struct BaseTraits {
    static const Category CATEGORY = Kind;
    enum { PRIMITIVE = Primitive, NULL_TYPE = Null };
};
template <class T, cub::Category Kind>
struct brass_number
    : BaseTraits<Kind, true, false,
                 typename brass::number<T, false, false>::bits, T> {
    typedef brass::number<T, Kind == FLOATING_POINT, Kind == SIGNED_INTEGER>
        how;
    typedef typename how::bits UnsignedBits;
    static const UnsignedBits HIGH_BIT = how::high;
    static const UnsignedBits LOWEST_KEY =
        Kind == FLOATING_POINT   ? (UnsignedBits)-1
        : Kind == SIGNED_INTEGER ? how::high
                                 : (UnsignedBits)0;
    static const UnsignedBits MAX_KEY = Kind == UNSIGNED_INTEGER
                                            ? (UnsignedBits)-1
                                            : (UnsignedBits)(how::high - 1);
    BRASS_HD static UnsignedBits TwiddleIn(UnsignedBits b)
    {
        return how::in(b);
    }
    BRASS_HD static UnsignedBits TwiddleOut(UnsignedBits b)
    {
        return how::out(b);
    }
};
/* Integers and what a program defines; the latter is no number. */
template <class T, bool Integer = std::is_integral<T>::value>
struct NumericTraits : BaseTraits<NOT_A_NUMBER, false, false, T, T> {
};
template <> struct NumericTraits<NullType, false> {
    static const Category CATEGORY = NOT_A_NUMBER;
    enum { PRIMITIVE = false, NULL_TYPE = true };
};
template <class T>
struct NumericTraits<T, true>
    : brass_number<T, std::is_signed<T>::value ? SIGNED_INTEGER
                                               : UNSIGNED_INTEGER> {
    BRASS_HD static T Max() { return std::numeric_limits<T>::max(); }
    BRASS_HD static T Lowest() { return std::numeric_limits<T>::lowest(); }
};
template <>
struct NumericTraits<float, false> : brass_number<float, FLOATING_POINT> {
    BRASS_HD static float Max() { return std::numeric_limits<float>::max(); }
    BRASS_HD static float Lowest() { return -Max(); }
};
template <>
struct NumericTraits<double, false> : brass_number<double, FLOATING_POINT> {
    BRASS_HD static double Max() { return std::numeric_limits<double>::max(); }
    BRASS_HD static double Lowest() { return -Max(); }
};
template <>
struct NumericTraits<__half, false> : brass_number<__half, FLOATING_POINT> {
    BRASS_HD static __half Max() { return how::of(0x7bff); }
    BRASS_HD static __half Lowest() { return how::of(0xfbff); }
};
template <>
struct NumericTraits<__nv_bfloat16, false>
    : brass_number<__nv_bfloat16, FLOATING_POINT> {
    BRASS_HD static __nv_bfloat16 Max() { return how::of(0x7f7f); }
    BRASS_HD static __nv_bfloat16 Lowest() { return how::of(0xff7f); }
};
template <class T>
struct Traits : NumericTraits<typename std::remove_cv<T>::type> {
};
} // namespace cub

#include "../brass_pop.h"
#endif
