/* thrust.cu - every algorithm of Thrust's headers against the host's own, in kernels,
 * in one thread of the host and in one thread of a kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/equal.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/fill.h>
#include <thrust/find.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/generate.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/discard_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/reverse_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/logical.h>
#include <thrust/merge.h>
#include <thrust/mismatch.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/replace.h>
#include <thrust/reverse.h>
#include <thrust/scan.h>
#include <thrust/scatter.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/shuffle.h>
#include <thrust/sort.h>
#include <thrust/swap.h>
#include <thrust/tabulate.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/transform_scan.h>
#include <thrust/unique.h>

#include "check.h"

#include <algorithm>
#include <numeric>

#define HD __host__ __device__
typedef std::vector<int> Ints;
using namespace thrust::placeholders;

static Ints
numbers(int n, int most)
{
    Ints v(n);
    for (int &k : v)
        k = (int)(rnd() * most) - most / 4;
    return v;
}
struct Odd {
    HD bool operator()(int v) const { return v & 1; }
};
struct Half {
    HD bool operator()(int a, int b) const { return a / 2 == b / 2; }
};
struct Down {
    HD bool operator()(int a, int b) const { return a > b; }
};
/* Pairs of 16 bits: `a` is what they are ordered by, so that a sort that is not
 * stable is seen. */
struct ByHigh {
    HD bool operator()(int a, int b) const { return (a >> 4) < (b >> 4); }
};
/* x -> a x + b: composition does not commute. */
struct Line {
    unsigned a, b;
    HD bool operator==(const Line &o) const { return a == o.a && b == o.b; }
};
struct After {
    HD Line operator()(const Line &f, const Line &g) const
    {
        return {f.a * g.a, g.a * f.b + g.b};
    }
};
struct ToLine {
    HD Line operator()(int v) const { return {(unsigned)v | 1, (unsigned)v}; }
};
struct TimesTwo {
    HD int operator()(int v) const { return 2 * v; }
};

struct After2 {
    HD int operator()(int a, int b) const { return 2 * a - b; }
};
struct Grow {
    HD void operator()(int &v) const { v += 3; }
};

/* Kernels, or the host: one text for both. */
struct InKernels {
    template <class T> using vector = thrust::device_vector<T>;
};
struct OnHost {
    template <class T> using vector = thrust::host_vector<T>;
};
template <class V, class T>
static bool
same(const V &v, const std::vector<T> &want)
{
    thrust::host_vector<T> h(v);

    return h.size() == want.size() &&
           std::equal(h.begin(), h.end(), want.begin());
}
template <class V, class T>
static bool
same(const V &v, size_t n, const std::vector<T> &want)
{
    return same(V(v.begin(), v.begin() + n), want);
}

template <class S>
static void
each(const Ints &in)
{
    typedef typename S::template vector<int> V;
    int n = (int)in.size();
    V v(in), w(n), index(n);
    Ints want(n), perm(n);

    for (int i = 0; i < n; i++)
        perm[i] = (int)((i * 7919LL + 3) % n);
    index = perm;
    EXPECT(thrust::transform(v.begin(), v.end(), w.begin(), TimesTwo()) ==
           w.end());
    std::transform(in.begin(), in.end(), want.begin(), TimesTwo());
    EXPECT(same(w, want));
    thrust::transform(v.begin(), v.end(), w.begin(), w.begin(), _1 - _2 * 3);
    for (int i = 0; i < n; i++)
        want[i] = in[i] - want[i] * 3;
    EXPECT(same(w, want));
    thrust::transform_if(v.begin(), v.end(), w.begin(), thrust::negate<int>(),
                         Odd());
    for (int i = 0; i < n; i++)
        want[i] = in[i] & 1 ? -in[i] : want[i];
    EXPECT(same(w, want));
    thrust::gather(index.begin(), index.end(), v.begin(), w.begin());
    for (int i = 0; i < n; i++)
        want[i] = in[perm[i]];
    EXPECT(same(w, want));
    thrust::scatter(v.begin(), v.end(), index.begin(), w.begin());
    for (int i = 0; i < n; i++)
        want[perm[i]] = in[i];
    EXPECT(same(w, want));
    thrust::fill(w.begin(), w.end(), 7);
    thrust::scatter_if(v.begin(), v.end(), index.begin(), v.begin(), w.begin(),
                       Odd());
    std::fill(want.begin(), want.end(), 7);
    for (int i = 0; i < n; i++)
        if (in[i] & 1)
            want[perm[i]] = in[i];
    EXPECT(same(w, want));
    thrust::fill(w.begin(), w.end(), 9);
    thrust::gather_if(index.begin(), index.end(), v.begin(), v.begin(),
                      w.begin(), Odd());
    for (int i = 0; i < n; i++)
        want[i] = in[i] & 1 ? in[perm[i]] : 9;
    EXPECT(same(w, want));
    thrust::sequence(w.begin(), w.end(), 5, 3);
    for (int i = 0; i < n; i++)
        want[i] = 5 + 3 * i;
    EXPECT(same(w, want));
    thrust::tabulate(w.begin(), w.end(), TimesTwo());
    for (int i = 0; i < n; i++)
        want[i] = 2 * i;
    EXPECT(same(w, want));
    w = v;
    thrust::replace_if(w.begin(), w.end(), Odd(), -1);
    thrust::replace(w.begin(), w.end(), 0, 100);
    for (int i = 0; i < n; i++)
        want[i] = in[i] & 1 ? -1 : in[i] ? in[i] : 100;
    EXPECT(same(w, want));
    thrust::replace_copy_if(v.begin(), v.end(), w.begin(), Odd(), 4);
    for (int i = 0; i < n; i++)
        want[i] = in[i] & 1 ? 4 : in[i];
    EXPECT(same(w, want));
    thrust::reverse_copy(v.begin(), v.end(), w.begin());
    std::reverse_copy(in.begin(), in.end(), want.begin());
    EXPECT(same(w, want));
    thrust::reverse(w.begin(), w.end());
    EXPECT(same(w, in));
    thrust::fill_n(w.begin(), n / 2, 3);
    thrust::swap_ranges(v.begin(), v.begin() + n / 2, w.begin());
    EXPECT(thrust::count(v.begin(), v.begin() + n / 2, 3) == n / 2);
    EXPECT(same(w, in));
    v = in;
    thrust::adjacent_difference(v.begin(), v.end(), w.begin());
    std::adjacent_difference(in.begin(), in.end(), want.begin());
    EXPECT(same(w, want));
    w = v;
    thrust::adjacent_difference(w.begin(), w.end(), w.begin(), After2());
    for (int i = 0; i < n; i++)
        want[i] = i ? After2()(in[i], in[i - 1]) : in[i];
    EXPECT(same(w, want));
    thrust::for_each_n(w.begin(), n, Grow());
    for (int &x : want)
        x += 3;
    EXPECT(same(w, want));
    thrust::copy_n(v.begin(), n, w.begin());
    EXPECT(same(w, in));
}

template <class S>
static void
folds(const Ints &in)
{
    typedef typename S::template vector<int> V;
    int n = (int)in.size();
    V v(in), w(in);
    long long sum = std::accumulate(in.begin(), in.end(), 0LL), square = 0;

    for (int x : in)
        square += (long long)x * x;
    EXPECT(thrust::reduce(v.begin(), v.end()) == (int)sum);
    EXPECT(thrust::reduce(v.begin(), v.end(), 5LL) == sum + 5);
    EXPECT(
        thrust::reduce(v.begin(), v.end(), -1000, thrust::maximum<int>()) ==
        (n ? std::max(-1000, *std::max_element(in.begin(), in.end())) : -1000));
    EXPECT(thrust::transform_reduce(v.begin(), v.end(), TimesTwo(), 1LL,
                                    thrust::plus<long long>()) == 2 * sum + 1);
    EXPECT(thrust::inner_product(v.begin(), v.end(), w.begin(), 0LL) == square);
    EXPECT(thrust::inner_product(v.begin(), v.end(), w.begin(), 0,
                                 thrust::plus<int>(),
                                 thrust::equal_to<int>()) == n);
    EXPECT(thrust::count_if(v.begin(), v.end(), Odd()) ==
           std::count_if(in.begin(), in.end(), Odd()));
    EXPECT(thrust::count(v.begin(), v.end(), 3) ==
           std::count(in.begin(), in.end(), 3));
    EXPECT(thrust::find(v.begin(), v.end(), 3) - v.begin() ==
           std::find(in.begin(), in.end(), 3) - in.begin());
    EXPECT(thrust::find_if(v.begin(), v.end(), Odd()) - v.begin() ==
           std::find_if(in.begin(), in.end(), Odd()) - in.begin());
    EXPECT(thrust::find_if_not(v.begin(), v.end(), Odd()) - v.begin() ==
           std::find_if_not(in.begin(), in.end(), Odd()) - in.begin());
    EXPECT(thrust::any_of(v.begin(), v.end(), Odd()) ==
           std::any_of(in.begin(), in.end(), Odd()));
    EXPECT(thrust::all_of(v.begin(), v.end(), Odd()) ==
           std::all_of(in.begin(), in.end(), Odd()));
    EXPECT(thrust::none_of(v.begin(), v.end(), Odd()) ==
           std::none_of(in.begin(), in.end(), Odd()));
    EXPECT(thrust::min_element(v.begin(), v.end()) - v.begin() ==
           std::min_element(in.begin(), in.end()) - in.begin());
    EXPECT(thrust::max_element(v.begin(), v.end()) - v.begin() ==
           std::max_element(in.begin(), in.end()) - in.begin());
    EXPECT(thrust::max_element(v.begin(), v.end(), Down()) - v.begin() ==
           std::min_element(in.begin(), in.end()) - in.begin());
    auto both = thrust::minmax_element(v.begin(), v.end());
    EXPECT(both.first - v.begin() ==
           std::min_element(in.begin(), in.end()) - in.begin());
    EXPECT(both.second - v.begin() ==
           std::max_element(in.begin(), in.end()) - in.begin());
    EXPECT(thrust::equal(v.begin(), v.end(), w.begin()));
    EXPECT(v == w);
    EXPECT(thrust::is_sorted(v.begin(), v.end()) ==
           std::is_sorted(in.begin(), in.end()));
    EXPECT(thrust::is_sorted_until(v.begin(), v.end(), Down()) - v.begin() ==
           std::is_sorted_until(in.begin(), in.end(), Down()) - in.begin());
    EXPECT(thrust::is_partitioned(v.begin(), v.end(), Odd()) ==
           std::is_partitioned(in.begin(), in.end(), Odd()));
    if (n > 2) {
        w[n - 2] = w[n - 2] + 1;
        EXPECT(!thrust::equal(v.begin(), v.end(), w.begin()));
        EXPECT(v != w);
        auto at = thrust::mismatch(v.begin(), v.end(), w.begin());
        EXPECT(at.first - v.begin() == n - 2 && at.second - w.begin() == n - 2);
    }
}

template <class S>
static void
scans(const Ints &in)
{
    typedef typename S::template vector<int> V;
    typedef typename S::template vector<Line> L;
    int n = (int)in.size();
    V v(in), w(n), keys(n);
    L lines(n), out(n);
    std::vector<Line> line(n), to(n);
    Ints want(n), key(n), sums, firsts;

    for (int i = 0; i < n; i++)
        key[i] = i / 37 * 2 + (i % 37 > 11);
    keys = key;
    thrust::inclusive_scan(v.begin(), v.end(), w.begin());
    std::partial_sum(in.begin(), in.end(), want.begin());
    EXPECT(same(w, want));
    thrust::exclusive_scan(v.begin(), v.end(), w.begin(), 11);
    std::exclusive_scan(in.begin(), in.end(), want.begin(), 11);
    EXPECT(same(w, want));
    w = v;
    thrust::exclusive_scan(w.begin(), w.end(), w.begin());
    for (int &x : want)
        x -= 11;
    EXPECT(same(w, want));
    thrust::transform_inclusive_scan(v.begin(), v.end(), w.begin(), TimesTwo(),
                                     thrust::maximum<int>());
    for (int i = 0; i < n; i++)
        want[i] = std::max(2 * in[i], i ? want[i - 1] : 2 * in[i]);
    EXPECT(same(w, want));
    thrust::transform_exclusive_scan(v.begin(), v.end(), w.begin(), TimesTwo(),
                                     3, thrust::plus<int>());
    for (int i = 0; i < n; i++)
        want[i] = i ? want[i - 1] + 2 * in[i - 1] : 3;
    EXPECT(same(w, want));
    thrust::transform(v.begin(), v.end(), lines.begin(), ToLine());
    thrust::inclusive_scan(lines.begin(), lines.end(), out.begin(), After());
    std::transform(in.begin(), in.end(), line.begin(), ToLine());
    std::partial_sum(line.begin(), line.end(), to.begin(), After());
    EXPECT(same(out, to));
    thrust::exclusive_scan(lines.begin(), lines.end(), out.begin(), Line{3, 1},
                           After());
    for (int i = 0; i < n; i++)
        to[i] = i ? After()(to[i - 1], line[i - 1]) : Line{3, 1};
    EXPECT(same(out, to));

    thrust::inclusive_scan_by_key(keys.begin(), keys.end(), v.begin(),
                                  w.begin());
    for (int i = 0; i < n; i++)
        want[i] = in[i] + (i && key[i] == key[i - 1] ? want[i - 1] : 0);
    EXPECT(same(w, want));
    thrust::exclusive_scan_by_key(keys.begin(), keys.end(), v.begin(),
                                  w.begin(), 4, Half());
    for (int i = 0; i < n; i++)
        want[i] =
            i && key[i] / 2 == key[i - 1] / 2 ? want[i - 1] + in[i - 1] : 4;
    EXPECT(same(w, want));
    thrust::inclusive_scan_by_key(keys.begin(), keys.end(), lines.begin(),
                                  out.begin(), thrust::equal_to<int>(),
                                  After());
    for (int i = 0; i < n; i++)
        to[i] =
            i && key[i] == key[i - 1] ? After()(to[i - 1], line[i]) : line[i];
    EXPECT(same(out, to));

    for (int i = 0; i < n; i++)
        if (i && key[i] / 2 == key[i - 1] / 2) {
            sums.back() += in[i];
        } else {
            sums.push_back(in[i]);
            firsts.push_back(key[i]);
        }
    V k(n), s(n);
    auto end = thrust::reduce_by_key(keys.begin(), keys.end(), v.begin(),
                                     k.begin(), s.begin(), Half());
    EXPECT(end.first - k.begin() == (long)sums.size());
    EXPECT(end.second - s.begin() == (long)sums.size());
    EXPECT(same(k, firsts.size(), firsts) && same(s, sums.size(), sums));
    auto counts = thrust::reduce_by_key(
        keys.begin(), keys.end(), thrust::make_constant_iterator(1),
        thrust::make_discard_iterator(), s.begin());
    EXPECT(counts.second - s.begin() ==
           (n ? 1 + thrust::inner_product(
                        keys.begin(), keys.end() - 1, keys.begin() + 1, 0,
                        thrust::plus<int>(), thrust::not_equal_to<int>())
              : 0));
    if (n > 37)
        EXPECT(s[0] == 12 && s[1] == 25);
}

template <class S>
static void
selections(const Ints &in)
{
    typedef typename S::template vector<int> V;
    int n = (int)in.size();
    V v(in), w(n), u(n);
    Ints odd, even, rest = in;

    for (int x : in)
        (x & 1 ? odd : even).push_back(x);
    EXPECT(thrust::copy_if(v.begin(), v.end(), w.begin(), Odd()) - w.begin() ==
           (long)odd.size());
    EXPECT(same(w, odd.size(), odd));
    thrust::copy_if(thrust::counting_iterator<int>(0),
                    thrust::counting_iterator<int>(n), v.begin(), w.begin(),
                    Odd());
    for (size_t i = 0; i < odd.size(); i += 17)
        EXPECT(in[(int)w[i]] == odd[i]);
    EXPECT(thrust::remove_copy_if(v.begin(), v.end(), w.begin(), Odd()) -
               w.begin() ==
           (long)even.size());
    EXPECT(same(w, even.size(), even));
    w = v;
    EXPECT(thrust::remove_if(w.begin(), w.end(), Odd()) - w.begin() ==
           (long)even.size());
    EXPECT(same(w, even.size(), even));
    w = v;
    EXPECT(thrust::remove_if(w.begin(), w.end(), v.begin(), Odd()) -
               w.begin() ==
           (long)even.size());
    EXPECT(same(w, even.size(), even));
    w = v;
    w.erase(thrust::remove(w.begin(), w.end(), 2), w.end());
    rest.erase(std::remove(rest.begin(), rest.end(), 2), rest.end());
    EXPECT(same(w, rest));
    w = v;
    EXPECT(thrust::stable_partition(w.begin(), w.end(), Odd()) - w.begin() ==
           (long)odd.size());
    Ints parted = odd;
    parted.insert(parted.end(), even.begin(), even.end());
    EXPECT(same(w, parted));
    EXPECT(thrust::is_partitioned(w.begin(), w.end(), Odd()));
    EXPECT(thrust::partition_point(w.begin(), w.end(), Odd()) - w.begin() ==
           (long)odd.size());
    w.resize(n);
    auto ends =
        thrust::partition_copy(v.begin(), v.end(), w.begin(), u.begin(), Odd());
    EXPECT(ends.first - w.begin() == (long)odd.size());
    EXPECT(ends.second - u.begin() == (long)even.size());
    EXPECT(same(w, odd.size(), odd) && same(u, even.size(), even));

    Ints want = in;
    size_t m = std::unique(want.begin(), want.end(), Half()) - want.begin();
    want.resize(m);
    EXPECT(thrust::unique_copy(v.begin(), v.end(), w.begin(), Half()) -
               w.begin() ==
           (long)m);
    /* std::unique compares with the last that it kept, Thrust neighbours. */
    Ints near1, ranks;
    for (int i = 0; i < n; i++)
        if (i == 0 || !Half()(in[i - 1], in[i])) {
            near1.push_back(in[i]);
            ranks.push_back(i);
        }
    EXPECT(m == near1.size() && same(w, m, near1));
    w = v;
    EXPECT(thrust::unique(w.begin(), w.end(), Half()) - w.begin() == (long)m);
    EXPECT(same(w, m, near1));
    EXPECT(thrust::unique_count(v.begin(), v.end(), Half()) == (long)m);
    w = v;
    thrust::sequence(u.begin(), u.end());
    auto by = thrust::unique_by_key(w.begin(), w.end(), u.begin(), Half());
    EXPECT(by.first - w.begin() == (long)m && by.second - u.begin() == (long)m);
    EXPECT(same(w, m, near1) && same(u, m, ranks));
}

template <class S>
static void
sorts(const Ints &in)
{
    typedef typename S::template vector<int> V;
    int n = (int)in.size();
    V v(in), index(n);
    Ints want = in, order(n);
    std::vector<float> real(in.begin(), in.end());
    std::vector<double> wide(in.begin(), in.end());

    thrust::sort(v.begin(), v.end());
    std::sort(want.begin(), want.end());
    EXPECT(same(v, want) && thrust::is_sorted(v.begin(), v.end()));
    v = in;
    thrust::stable_sort(v.begin(), v.end(), ByHigh());
    want = in;
    std::stable_sort(want.begin(), want.end(), ByHigh());
    EXPECT(same(v, want));
    v = in;
    thrust::sequence(index.begin(), index.end());
    thrust::stable_sort_by_key(v.begin(), v.end(), index.begin(),
                               thrust::greater<int>());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return in[a] > in[b]; });
    EXPECT(same(index, order));
    v = in;
    thrust::sequence(index.begin(), index.end());
    thrust::stable_sort_by_key(v.begin(), v.end(), index.begin(), ByHigh());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return ByHigh()(in[a], in[b]); });
    EXPECT(same(index, order));
    /* Keys of two parts: the smaller first, then what stood first. */
    v = in;
    thrust::sequence(index.begin(), index.end());
    auto zip =
        thrust::make_zip_iterator(thrust::make_tuple(v.begin(), index.begin()));
    thrust::sort(zip, zip + n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return in[a] < in[b]; });
    EXPECT(same(index, order));
    for (float &x : real)
        x = (x + 0.5f) * (x < 0 ? 1e-3f : 3.0f);
    typename S::template vector<float> f(real);
    thrust::sort(f.begin(), f.end(), thrust::greater<float>());
    std::sort(real.begin(), real.end(), std::greater<float>());
    EXPECT(same(f, real));
    typename S::template vector<double> d(wide);
    thrust::sort(d.begin(), d.end());
    std::sort(wide.begin(), wide.end());
    EXPECT(same(d, wide));
}

/* f(first list, second, output) of both libraries. */
#define SET(name)                                                        \
    do {                                                                 \
        size_t n_ = thrust::name(a.begin(), a.end(), b.begin(), b.end(), \
                                 out.begin()) -                          \
                    out.begin();                                         \
        Ints want_;                                                      \
        std::name(x.begin(), x.end(), y.begin(), y.end(),                \
                  std::back_inserter(want_));                            \
        EXPECT(n_ == want_.size() && same(out, n_, want_));              \
    } while (0)
template <class S>
static void
sets(Ints x, Ints y)
{
    typedef typename S::template vector<int> V;

    std::sort(x.begin(), x.end());
    std::sort(y.begin(), y.end());
    V a(x), b(y), out(x.size() + y.size()), va(x.size()), vb(y.size()),
        vout(x.size() + y.size());

    SET(merge);
    SET(set_union);
    SET(set_intersection);
    SET(set_difference);
    SET(set_symmetric_difference);
    thrust::sequence(va.begin(), va.end());
    thrust::sequence(vb.begin(), vb.end(), -1, -1);
    auto end =
        thrust::merge_by_key(a.begin(), a.end(), b.begin(), b.end(), va.begin(),
                             vb.begin(), out.begin(), vout.begin());
    EXPECT(end.first == out.end() && end.second == vout.end());
    thrust::host_vector<int> k(out), v(vout);
    for (size_t i = 0; i < k.size(); i++)
        EXPECT(k[i] == (v[i] < 0 ? y[-1 - v[i]] : x[v[i]]));
    auto in =
        thrust::set_intersection_by_key(a.begin(), a.end(), b.begin(), b.end(),
                                        va.begin(), out.begin(), vout.begin());
    k = out, v = vout;
    for (long i = 0; i < in.first - out.begin(); i++)
        EXPECT(k[i] == x[v[i]]);

    /* Places of the second list's values in the first. */
    V at(y.size());
    Ints want(y.size());
    typename S::template vector<bool> is(y.size());
    thrust::lower_bound(a.begin(), a.end(), b.begin(), b.end(), at.begin());
    for (size_t i = 0; i < y.size(); i++)
        want[i] = (int)(std::lower_bound(x.begin(), x.end(), y[i]) - x.begin());
    EXPECT(same(at, want));
    thrust::upper_bound(a.begin(), a.end(), b.begin(), b.end(), at.begin());
    for (size_t i = 0; i < y.size(); i++)
        want[i] = (int)(std::upper_bound(x.begin(), x.end(), y[i]) - x.begin());
    EXPECT(same(at, want));
    thrust::binary_search(a.begin(), a.end(), b.begin(), b.end(), is.begin());
    for (size_t i = 0; i < y.size(); i += 13)
        EXPECT((bool)is[i] == std::binary_search(x.begin(), x.end(), y[i]));
    for (int t : {-1000, 0, 3, 100000}) {
        EXPECT(thrust::lower_bound(a.begin(), a.end(), t) - a.begin() ==
               std::lower_bound(x.begin(), x.end(), t) - x.begin());
        EXPECT(thrust::upper_bound(a.begin(), a.end(), t) - a.begin() ==
               std::upper_bound(x.begin(), x.end(), t) - x.begin());
        EXPECT(thrust::binary_search(a.begin(), a.end(), t) ==
               std::binary_search(x.begin(), x.end(), t));
        auto r = thrust::equal_range(a.begin(), a.end(), t);
        EXPECT(r.second - r.first == std::count(x.begin(), x.end(), t));
    }
}

template <class S>
static void
all(int n)
{
    Ints v = numbers(n, n < 100 ? 8 : 300);

    each<S>(v);
    folds<S>(v);
    scans<S>(v);
    selections<S>(v);
    sorts<S>(v);
    sets<S>(v, numbers(n / 2 + 3, n < 100 ? 8 : 200));
    typename S::template vector<int> shuffled(v);
    thrust::shuffle(shuffled.begin(), shuffled.end(),
                    thrust::default_random_engine(7));
    EXPECT(n < 50 || !same(shuffled, v));
    thrust::sort(shuffled.begin(), shuffled.end());
    std::sort(v.begin(), v.end());
    EXPECT(same(shuffled, v));
}

/* What one thread does inside of a kernel, where policies change nothing. */
__global__ void
inside(int *v, int *w, int n, int *sums)
{
    sums[0] = thrust::reduce(thrust::seq, v, v + n);
    sums[1] = *thrust::max_element(thrust::device, v, v + n);
    thrust::sequence(thrust::seq, w, w + n);
    thrust::stable_sort_by_key(thrust::seq, v, v + n, w);
    sums[2] = (int)(thrust::lower_bound(thrust::seq, v, v + n, 5) - v);
    sums[3] = (int)(thrust::unique(thrust::device, v, v + n) - v);
    thrust::exclusive_scan(thrust::seq, v, v + sums[3], v + n);
}
static void
in_a_kernel(int n)
{
    Ints in = numbers(n, 60), order(n), sorted = in;
    thrust::device_vector<int> v(in), w(n), sums(4);

    v.resize(2 * n);
    inside<<<1, 1>>>(thrust::raw_pointer_cast(v.data()),
                     thrust::raw_pointer_cast(&w[0]), n,
                     thrust::raw_pointer_cast(sums.data()));
    CHECK(cudaDeviceSynchronize());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return in[a] < in[b]; });
    std::sort(sorted.begin(), sorted.end());
    EXPECT(sums[0] == std::accumulate(in.begin(), in.end(), 0));
    EXPECT(sums[1] == sorted.back());
    EXPECT(same(w, order));
    EXPECT(sums[2] ==
           std::lower_bound(sorted.begin(), sorted.end(), 5) - sorted.begin());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    EXPECT(sums[3] == (int)sorted.size());
    EXPECT(same(v, sorted.size(), sorted));
    EXPECT(v[n + (int)sorted.size() - 1] ==
           std::accumulate(sorted.begin(), sorted.end() - 1, 0));
}

int
main()
{
    for (int n : {0, 1, 2, 33, 1000, 100001})
        all<InKernels>(n);
    for (int n : {0, 1, 2, 33, 1000})
        all<OnHost>(n);
    in_a_kernel(17);
    in_a_kernel(1000);
    return done();
}
