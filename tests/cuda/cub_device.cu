/* cub_device.cu - CUB's algorithms of a whole device, against plain loops, in
 * the sizes where they change their ways.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cub/cub.cuh>

#include "check.h"

#include <algorithm>
#include <map>

/* Asks for the size, then does it, in a stream. */
template <class F>
static void
twice(F f)
{
    size_t bytes = 0;
    void *temp = 0;

    CHECK(f(temp, bytes));
    EXPECT(bytes > 0);
    CHECK(cudaMalloc(&temp, bytes));
    CHECK(f(temp, bytes));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(temp));
}
static std::vector<int>
numbers(int n, int most)
{
    std::vector<int> v(n);
    for (int &k : v)
        k = (int)(rnd() * most) - most / 4;
    return v;
}

struct Odd {
    __device__ bool operator()(int v) const { return v & 1; }
};
struct Third {
    __device__ bool operator()(int v) const { return v % 4 == 0; }
};
/* A kernel's alone, of any two. */
struct Larger {
    template <class T, class U>
    __device__ auto operator()(T &&a, U &&b) const -> decltype(a < b ? b : a)
    {
        return a < b ? b : a;
    }
};
/* Matrices: their product does not commute. */
struct Mat {
    unsigned a, b, c, d;
};
struct Times {
    __host__ __device__ Mat operator()(const Mat &x, const Mat &y) const
    {
        return {x.a * y.a + x.b * y.c, x.a * y.b + x.b * y.d,
                x.c * y.a + x.d * y.c, x.c * y.b + x.d * y.d};
    }
};
static bool
operator!=(const Mat &x, const Mat &y)
{
    return x.a != y.a || x.b != y.b || x.c != y.c || x.d != y.d;
}

static void
reduces(const std::vector<int> &v, cudaStream_t s)
{
    typedef cub::KeyValuePair<int, int> Pair;
    int n = (int)v.size();
    Dev<int> in(v), out(4);
    Dev<Pair> at(2);
    Dev<double> mean(1);

    twice([&](void *t, size_t &b) {
        return cub::DeviceReduce::Sum(t, b, in.p, out.p, n, s);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceReduce::Max(t, b, in.p, out.p + 1, n, s);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceReduce::Min(t, b, in.p, out.p + 2, n);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceReduce::Reduce(t, b, in.p, out.p + 3, n, cub::Max(),
                                         1000);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceReduce::ArgMax(t, b, in.p, at.p, n);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceReduce::ArgMin(t, b, in.p, at.p + 1, n);
    });
    auto half = [] __device__(int k) { return k * 0.5; };
    cub::TransformInputIterator<double, decltype(half), int *> halves(in.p,
                                                                      half);
    twice([&](void *t, size_t &b) {
        return cub::DeviceReduce::Sum(t, b, halves, mean.p, n);
    });
    std::vector<int> r = out.get();
    std::vector<Pair> p = at.get();
    int sum = 0;
    for (int k : v)
        sum += k;
    EXPECT(r[0] == sum && mean.get()[0] == sum * 0.5);
    if (n == 0)
        return;
    auto top = std::max_element(v.begin(), v.end());
    auto low = std::min_element(v.begin(), v.end());
    EXPECT(r[1] == *top && r[2] == *low && r[3] == std::max(*top, 1000));
    EXPECT(p[0].key == top - v.begin() && p[0].value == *top);
    EXPECT(p[1].key == low - v.begin() && p[1].value == *low);
}

static void
scans(const std::vector<int> &v, cudaStream_t s)
{
    int n = (int)v.size(), sum = 0, top = 5;
    std::vector<unsigned char> flags(n);
    std::vector<Mat> m(n);
    for (int k = 0; k < n; k++) {
        flags[k] = v[k] & 1;
        m[k] = {(unsigned)v[k], 1, 3, (unsigned)k};
    }
    Dev<int> in(v), out(n), incl(n), scan(n), ones(n);
    Dev<unsigned char> f(flags);
    Dev<Mat> mi(m), mo(n);

    twice([&](void *t, size_t &b) {
        return cub::DeviceScan::ExclusiveSum(t, b, in.p, out.p, n, s);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceScan::InclusiveSum(t, b, in.p, incl.p, n, s);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceScan::ExclusiveScan(t, b, in.p, scan.p, Larger(), 5,
                                              n);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceScan::ExclusiveSum(t, b, f.p, ones.p, n);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceScan::InclusiveScan(t, b, mi.p, mo.p, Times(), n);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceScan::InclusiveSum(t, b, in.p, in.p, n);
    });
    std::vector<int> e = out.get(), i = incl.get(), x = scan.get(),
                     o = ones.get(), own = in.get();
    std::vector<Mat> r = mo.get();
    Mat all = {1, 0, 0, 1};
    for (int k = 0, odd = 0; k < n; k++) {
        EXPECT(e[k] == sum && x[k] == top && o[k] == odd);
        sum += v[k];
        top = std::max(top, v[k]);
        odd += flags[k];
        all = Times()(all, m[k]);
        EXPECT(i[k] == sum && own[k] == sum && !(r[k] != all));
    }
}

static void
by_keys(const std::vector<int> &v)
{
    int n = (int)v.size();
    std::vector<int> keys(n);
    for (int k = 1; k < n; k++)
        keys[k] = keys[k - 1] + (v[k] % 7 == 0) + 3 * (k == n / 2);
    Dev<int> in(v), key(keys), out(n), excl(n), runs(3), unique(n), sums(n),
        len(n), first(n), uk(n), uv(n), twos(n), where(n);

    twice([&](void *t, size_t &b) {
        return cub::DeviceScan::InclusiveSumByKey(t, b, key.p, in.p, out.p, n);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceScan::ExclusiveScanByKey(t, b, key.p, in.p, excl.p,
                                                   cub::Sum(), 100, n);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceReduce::ReduceByKey(t, b, key.p, unique.p, in.p,
                                              sums.p, runs.p, cub::Sum(), n);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceRunLengthEncode::Encode(t, b, key.p, first.p, len.p,
                                                  runs.p + 1, n);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceRunLengthEncode::NonTrivialRuns(
            t, b, key.p, where.p, twos.p, runs.p + 2, n);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceSelect::UniqueByKey(t, b, key.p, in.p, uk.p, uv.p,
                                              runs.p, n);
    });
    std::vector<int> i = out.get(), e = excl.get(), u = unique.get(),
                     s = sums.get(), l = len.get(), r = runs.get(),
                     k1 = uk.get(), v1 = uv.get(), w = where.get(),
                     tw = twos.get();
    int run = -1, sum = 0, at = 0, length = 0, longer = 0;
    for (int k = 0; k <= n; k++) {
        if (k == 0 || k == n || keys[k] != keys[k - 1]) {
            if (run >= 0) {
                EXPECT(u[run] == keys[at] && s[run] == sum);
                EXPECT(l[run] == length && k1[run] == keys[at]);
                EXPECT(v1[run] == v[at]);
                if (length > 1) {
                    EXPECT(w[longer] == at && tw[longer] == length);
                    longer++;
                }
            }
            run++, sum = 0, at = k, length = 0;
        }
        if (k == n)
            break;
        EXPECT(e[k] == sum + 100);
        sum += v[k];
        length++;
        EXPECT(i[k] == sum);
    }
    if (n)
        EXPECT(r[0] == run && r[1] == run && r[2] == longer);
}

static void
selects(const std::vector<int> &v)
{
    int n = (int)v.size();
    std::vector<char> flag(n);
    std::vector<int> odd, even, third, rest, flagged, unique;
    for (int k = 0; k < n; k++) {
        flag[k] = v[k] % 3 == 0;
        (v[k] & 1 ? odd : even).push_back(v[k]);
        if (!(v[k] & 1))
            (v[k] % 4 == 0 ? third : rest).push_back(v[k]);
        if (flag[k])
            flagged.push_back(v[k]);
        if (k == 0 || v[k] != v[k - 1])
            unique.push_back(v[k]);
    }
    Dev<int> in(v), out(n), count(2), o2(n), o3(n);
    Dev<char> f(flag);
    auto same = [&](const Dev<int> &d, const std::vector<int> &want, int have) {
        std::vector<int> r = d.get();
        r.resize(want.size());
        EXPECT(have == (int)want.size() && r == want);
    };

    twice([&](void *t, size_t &b) {
        return cub::DeviceSelect::If(t, b, in.p, out.p, count.p, n, Odd());
    });
    same(out, odd, count.get()[0]);
    twice([&](void *t, size_t &b) {
        return cub::DeviceSelect::Flagged(t, b, in.p, f.p, out.p, count.p, n);
    });
    same(out, flagged, count.get()[0]);
    twice([&](void *t, size_t &b) {
        return cub::DeviceSelect::Unique(t, b, in.p, out.p, count.p, n);
    });
    same(out, unique, count.get()[0]);
    twice([&](void *t, size_t &b) {
        return cub::DevicePartition::If(t, b, in.p, out.p, o2.p, o3.p, count.p,
                                        n, Odd(), Third());
    });
    same(out, odd, count.get()[0]);
    same(o2, third, count.get()[1]);
    same(o3, rest, (int)rest.size());
    std::vector<int> parts = odd;
    parts.insert(parts.end(), even.rbegin(), even.rend());
    twice([&](void *t, size_t &b) {
        return cub::DevicePartition::If(t, b, in.p, out.p, count.p, n, Odd());
    });
    same(out, parts, count.get()[0] + (int)even.size());
    twice([&](void *t, size_t &b) {
        return cub::DeviceSelect::If(t, b, in.p, in.p, count.p, n, Odd());
    });
    same(in, odd, count.get()[0]);
}

template <class K>
static void
sorts(int n, K scale)
{
    std::vector<K> v(n);
    std::vector<int> at(n);
    for (int k = 0; k < n; k++) {
        v[k] = (K)((rnd() - (std::is_unsigned<K>::value ? 0 : 0.5f)) *
                   (float)scale);
        at[k] = k;
    }
    Dev<K> in(v), out(n), merged(n);
    Dev<int> vi(at), vo(n);
    std::vector<K> up = v, down = v;
    std::stable_sort(up.begin(), up.end());
    std::stable_sort(down.begin(), down.end(), [](K a, K b) { return b < a; });

    twice([&](void *t, size_t &b) {
        return cub::DeviceRadixSort::SortPairs(t, b, in.p, out.p, vi.p, vo.p,
                                               n);
    });
    EXPECT(out.get() == up);
    std::vector<int> r = vo.get();
    for (int k = 0; k < n; k++)
        EXPECT(v[r[k]] == up[k] &&
               (k == 0 || up[k] != up[k - 1] || r[k - 1] < r[k]));
    twice([&](void *t, size_t &b) {
        return cub::DeviceRadixSort::SortKeysDescending(t, b, in.p, out.p, n);
    });
    EXPECT(out.get() == down);
    CHECK(cudaMemcpy(merged, in, n * sizeof(K), cudaMemcpyDeviceToDevice));
    twice([&](void *t, size_t &b) {
        return cub::DeviceMergeSort::SortPairs(
            t, b, merged.p, vi.p, n,
            [] __device__(const K &a, const K &c) { return c < a; });
    });
    EXPECT(merged.get() == down);
    r = vi.get();
    for (int k = 0; k < n; k++)
        EXPECT(v[r[k]] == down[k] &&
               (k == 0 || down[k] != down[k - 1] || r[k - 1] < r[k]));
    cub::DoubleBuffer<K> both(in.p, out.p);
    twice([&](void *t, size_t &b) {
        return cub::DeviceRadixSort::SortKeys(t, b, both, n);
    });
    std::vector<K> got(n);
    CHECK(cudaMemcpy(got.data(), both.Current(), n * sizeof(K),
                     cudaMemcpyDeviceToHost));
    EXPECT(got == up);
}
/* Bits 3 to 9 alone. */
static void
some_bits(int n)
{
    std::vector<unsigned> v(n);
    for (unsigned &k : v)
        k = (unsigned)(rnd() * 4e9f);
    Dev<unsigned> in(v), out(n);

    twice([&](void *t, size_t &b) {
        return cub::DeviceRadixSort::SortKeys(t, b, in.p, out.p, n, 3, 10);
    });
    std::stable_sort(v.begin(), v.end(), [](unsigned a, unsigned b) {
        return (a >> 3 & 127) < (b >> 3 & 127);
    });
    EXPECT(out.get() == v);
}

static void
segments(int n)
{
    std::vector<int> v = numbers(n, 100), first;
    for (int at = 0, step = 0; at < n; at += step++ % 5 * 40)
        first.push_back(at);
    first.push_back(n);
    int m = (int)first.size() - 1;
    Dev<int> in(v), at(first), out(n), down(n), vi(v), vo(n), sum(m);
    Dev<cub::KeyValuePair<int, int>> top(m);

    twice([&](void *t, size_t &b) {
        return cub::DeviceSegmentedReduce::Sum(t, b, in.p, sum.p, m, at.p,
                                               at.p + 1);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceSegmentedReduce::ArgMax(t, b, in.p, top.p, m, at.p,
                                                  at.p + 1);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceSegmentedRadixSort::SortPairs(
            t, b, in.p, out.p, vi.p, vo.p, n, m, at.p, at.p + 1);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceSegmentedSort::SortKeysDescending(
            t, b, in.p, down.p, n, m, at.p, at.p + 1);
    });
    std::vector<int> want = v, s = sum.get();
    std::vector<cub::KeyValuePair<int, int>> p = top.get();
    for (int g = 0; g < m; g++) {
        auto a = v.begin() + first[g], b = v.begin() + first[g + 1];
        int all = 0;
        for (auto k = a; k < b; ++k)
            all += *k;
        EXPECT(s[g] == all);
        if (a < b)
            EXPECT(p[g].key == std::max_element(a, b) - a &&
                   p[g].value == *std::max_element(a, b));
        std::sort(want.begin() + first[g], want.begin() + first[g + 1]);
    }
    EXPECT(out.get() == want && vo.get() == want);
    for (int g = 0; g < m; g++)
        std::reverse(want.begin() + first[g], want.begin() + first[g + 1]);
    EXPECT(down.get() == want);
}

static void
histograms(int n)
{
    std::vector<float> v(4 * n);
    std::vector<unsigned char> c(4 * n);
    for (int k = 0; k < 4 * n; k++) {
        v[k] = rnd() * 12 - 1;
        c[k] = (unsigned char)(rnd() * 256);
    }
    std::vector<float> levels = {0, 1, 4, 9};
    Dev<float> in(v), level(levels);
    Dev<unsigned char> pixels(c);
    Dev<int> even(10), range(3), rgb(3 * 16);

    twice([&](void *t, size_t &b) {
        return cub::DeviceHistogram::HistogramEven(t, b, in.p, even.p, 11, 0.0f,
                                                   10.0f, n);
    });
    twice([&](void *t, size_t &b) {
        return cub::DeviceHistogram::HistogramRange(t, b, in.p, range.p, 4,
                                                    level.p, n);
    });
    int *to[3] = {rgb.p, rgb.p + 16, rgb.p + 32};
    int bins[3] = {17, 17, 17}, lo[3] = {0, 0, 0}, hi[3] = {256, 256, 128};
    twice([&](void *t, size_t &b) {
        return cub::DeviceHistogram::MultiHistogramEven<4, 3>(
            t, b, pixels.p, to, bins, lo, hi, n);
    });
    std::vector<int> e(10), r(3), m(48);
    for (int k = 0; k < n; k++) {
        if (v[k] >= 0 && v[k] < 10)
            e[(int)v[k]]++;
        if (v[k] >= 0 && v[k] < 9)
            r[v[k] < 1 ? 0 : v[k] < 4 ? 1 : 2]++;
        m[c[4 * k] / 16]++;
        m[16 + c[4 * k + 1] / 16]++;
        if (c[4 * k + 2] < 128)
            m[32 + c[4 * k + 2] / 8]++;
    }
    EXPECT(even.get() == e && range.get() == r && rgb.get() == m);
}

__global__ void
iterators(int *out)
{
    cub::CountingInputIterator<int> count(5);
    cub::ConstantInputIterator<int> same(9);
    cub::DiscardOutputIterator<> gone;
    cub::ArgIndexInputIterator<int *> arg(out + 2);
    cub::CacheModifiedInputIterator<cub::LOAD_LDG, int> load(out);

    out[0] = count[3] + *(count + 2);
    out[1] = same[100];
    gone[4] = 17;
    *gone = 18;
    out[2] = 40;
    out[3] = (arg + 0)[0].value + (int)arg[0].key;
    out[4] = load[1];
    out[5] = (int)((count + 7) - count);
}
static void
others()
{
    std::vector<int> v = numbers(1000, 50);
    Dev<int> in(v), out(1000), i(6);
    cub::CachingDeviceAllocator cache;
    void *a, *b;

    int *p = out.p;
    CHECK(cub::DeviceFor::Bulk(1000, [=] __device__(int k) { p[k] = 3 * k; }));
    EXPECT(out.get()[999] == 2997);
    twice([&](void *t, size_t &n) {
        return cub::DeviceAdjacentDifference::SubtractLeft(t, n, in.p, 1000);
    });
    EXPECT(in.get()[0] == v[0] && in.get()[999] == v[999] - v[998]);
    iterators<<<1, 1>>>(i);
    EXPECT((i.get() == std::vector<int>{15, 9, 40, 40, 9, 7}));
    CHECK(cache.DeviceAllocate(&a, 1000));
    CHECK(cache.DeviceFree(a));
    CHECK(cache.DeviceAllocate(&b, 2000));
    EXPECT(a == b);
    CHECK(cache.DeviceAllocate(&a, 2000));
    EXPECT(a != b);
    CHECK(cache.DeviceFree(a));
    CHECK(cache.DeviceFree(b));
    EXPECT(cub::Traits<float>::TwiddleIn(0x80000000u) == 0x7fffffffu);
    EXPECT(cub::Traits<int>::TwiddleOut(cub::Traits<int>::TwiddleIn(77)) == 77);
    size_t bytes = 1;
    EXPECT(cub::DeviceScan::InclusiveSum(b, bytes, in.p, out.p, 1000) ==
           cudaErrorInvalidValue);
}

int
main()
{
    cudaStream_t s;

    CHECK(cudaStreamCreate(&s));
    for (int n : {0, 1, 47, 3000, 70001}) {
        std::vector<int> v = numbers(n, 60);
        reduces(v, s);
        scans(v, s);
        by_keys(v);
        selects(v);
    }
    for (int n : {0, 1, 30, 1000, 20011}) {
        sorts<int>(n, 400);
        sorts<float>(n, 1e3f);
        sorts<unsigned char>(n, 250);
        some_bits(n);
    }
    sorts<double>(5000, 100);
    sorts<long long>(5000, 1ll << 50);
    segments(5000);
    histograms(5000);
    others();
    CHECK(cudaStreamDestroy(s));
    return done();
}
