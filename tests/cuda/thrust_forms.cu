/* thrust_forms.cu - Thrust's vectors, pointers, iterators, policies, allocators,
 * tuples, random and complex numbers, in the forms that programs use.
 * SPDX-License-Identifier: Apache-2.0 */
#include <thrust/complex.h>
#include <thrust/copy.h>
#include <thrust/device_free.h>
#include <thrust/device_malloc.h>
#include <thrust/device_ptr.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/constant_iterator.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/reverse_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/transform_output_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/pair.h>
#include <thrust/random.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/system_error.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <thrust/universal_vector.h>
#include <thrust/zip_function.h>

#include "check.h"

#include <complex>
#include <list>
#include <map>
#include <string.h>
#include <string>

#define HD __host__ __device__
template <class T> using Dv = thrust::device_vector<T>;
template <class T> using Hv = thrust::host_vector<T>;

static void
vectors()
{
    std::vector<int> plain = {1, 2, 3, 4, 5};
    std::list<int> list = {9, 8, 7};
    int array[] = {4, 5, 6};
    Hv<int> h(plain.begin(), plain.end());
    Dv<int> d = h, e(4, 7), f = {1, 2, 3}, g(array, array + 3), z(3);

    EXPECT(d.size() == 5 && d[0] == 1 && d.back() == 5 && d == h && d == plain);
    EXPECT(e[3] == 7 && f == Hv<int>(std::vector<int>{1, 2, 3}) && g[2] == 6);
    EXPECT(z[0] == 0 && z[2] == 0);
    d.assign(list.begin(), list.end());
    EXPECT(d.size() == 3 && d[1] == 8);
    d[1] = 80;
    d[2] += 3;
    d.push_back(11);
    d.insert(d.begin() + 1, 5);
    d.insert(d.end(), plain.begin(), plain.end());
    EXPECT((d == std::vector<int>{9, 5, 80, 10, 11, 1, 2, 3, 4, 5}));
    d.erase(d.begin() + 1, d.begin() + 4);
    d.erase(d.begin());
    d.pop_back();
    EXPECT((d == std::vector<int>{11, 1, 2, 3, 4}) && d != plain);
    int first = d.front(), sum = d[0] + d[1];
    EXPECT(first == 11 && sum == 12 && *d.begin() == 11 && *(d.end() - 1) == 4);
    d.resize(7);
    d.resize(8, -1);
    EXPECT(d[6] == 0 && d[7] == -1 && d.capacity() >= 8 && !d.empty());
    d.swap(e);
    EXPECT(d.size() == 4 && e.size() == 8);
    Dv<int> moved = std::move(e), copy(moved);
    EXPECT(moved.size() == 8 && copy == moved && e.empty());
    copy.clear();
    copy.shrink_to_fit();
    EXPECT(copy.size() == 0 && copy.begin() == copy.end());
    Dv<double> wide(moved.begin(), moved.end());
    EXPECT(wide[0] == 11.0);
    std::vector<int> back(moved.size());
    thrust::copy(moved.begin(), moved.end(), back.begin());
    EXPECT(back[0] == 11 && back[7] == -1);
    thrust::copy(list.begin(), list.end(), moved.begin());
    EXPECT(moved[0] == 9 && moved[2] == 7);
    Hv<std::string> words(3, "copper");
    words.push_back("zinc");
    EXPECT(words[2] == "copper" && words[3] == "zinc");
    thrust::universal_vector<int> both(100);
    thrust::sequence(both.begin(), both.end());
    both[3] = 50;
    EXPECT(thrust::reduce(both.begin(), both.end()) == 4950 + 47);
}

__global__ void
twice(thrust::device_ptr<int> p, int *q, int n)
{
    if ((int)threadIdx.x < n) {
        p[threadIdx.x] = 2 * p[threadIdx.x];
        q[threadIdx.x] += 1;
    }
}
static void
pointers()
{
    thrust::device_ptr<int> p = thrust::device_malloc<int>(10), q(p.get() + 5);
    int *raw;

    thrust::sequence(p, p + 10);
    EXPECT(q - p == 5 && p < q && *q == 5 && p[7] == 7);
    EXPECT(thrust::raw_pointer_cast(&p[3]) == p.get() + 3);
    twice<<<1, 32>>>(p, thrust::raw_pointer_cast(q), 5);
    EXPECT(p[4] == 8 && q[4] == 10);
    thrust::device_free(p);
    CHECK(cudaMalloc(&raw, 40));
    thrust::device_ptr<int> w = thrust::device_pointer_cast(raw);
    thrust::fill(w, w + 10, 3);
    EXPECT(thrust::reduce(thrust::device, raw, raw + 10) == 30);
    EXPECT(thrust::reduce(w, w + 10, 0, thrust::maximum<int>()) == 3);
    thrust::device_ptr<const int> c = w;
    EXPECT(*c == 3 && (bool)c);
    CHECK(cudaFree(raw));
}

struct Norm {
    HD float operator()(const thrust::tuple<float, float> &t) const
    {
        return sqrtf(thrust::get<0>(t) * thrust::get<0>(t) +
                     thrust::get<1>(t) * thrust::get<1>(t));
    }
};
struct Saxpy {
    float a;
    Saxpy(float x) : a(x) {}
    template <class Tuple> HD void operator()(Tuple t) const
    {
        thrust::get<2>(t) = a * thrust::get<0>(t) + thrust::get<1>(t);
    }
};
/* A kernel's alone. */
struct Stretch {
    __device__ float operator()(float v) const { return __fmul_rn(v, 2.0f); }
};
struct Nth {
    int n;
    HD int operator()(int i) const { return i * n; }
};
static void
iterators()
{
    Dv<float> x(100), y(100), r(100);
    Dv<int> index(50);

    thrust::sequence(x.begin(), x.end());
    thrust::transform(x.begin(), x.end(), y.begin(), Stretch());
    auto zip = thrust::make_zip_iterator(
        thrust::make_tuple(x.begin(), y.begin(), r.begin()));
    thrust::for_each(zip, zip + 100, Saxpy(3));
    EXPECT(r[10] == 50 && r[99] == 99 * 5);
    thrust::for_each(
        thrust::make_zip_iterator(x.begin(), y.begin(), r.begin()),
        thrust::make_zip_iterator(x.end(), y.end(), r.end()),
        thrust::make_zip_function(
            [] __device__(float a, float b, float &c) { c = a - b; }));
    EXPECT(r[10] == -10);
    auto pairs =
        thrust::make_zip_iterator(thrust::make_tuple(x.begin(), y.begin()));
    EXPECT(near(thrust::transform_reduce(pairs, pairs + 100, Norm(), 0.0f,
                                         thrust::plus<float>()),
                4950 * sqrt(5.0), 1e-5));
    auto even = thrust::make_transform_iterator(
        thrust::make_counting_iterator(0), Nth{2});
    auto strided = thrust::make_permutation_iterator(x.begin(), even);
    EXPECT(thrust::reduce(strided, strided + 50) == 2450);
    thrust::copy(even, even + 50, index.begin());
    EXPECT(index[49] == 98);
    thrust::fill(strided, strided + 50, -1.0f);
    EXPECT(x[0] == -1 && x[1] == 1 && x[98] == -1);
    auto made = thrust::make_transform_iterator(y.begin(), Stretch());
    Hv<float> h(100);
    thrust::copy(made, made + 100, h.begin());
    EXPECT(h[7] == 28);
    EXPECT(thrust::reduce(made, made + 10) == 4 * 45);
    thrust::copy(thrust::make_reverse_iterator(y.end()),
                 thrust::make_reverse_iterator(y.begin()), r.begin());
    EXPECT(r[0] == 198 && r[99] == 0 && *y.rbegin() == 198);
    auto out = thrust::make_transform_output_iterator(
        r.begin(), [] __device__(float v) { return -v; });
    thrust::copy(y.begin(), y.end(), out);
    EXPECT(r[3] == -6);
    thrust::tuple<float, float, float> t = *(zip + 5);
    EXPECT(thrust::get<0>(t) == 5 && thrust::get<1>(t) == 10);
}

/* Blocks are given again by their size; a sort asks for some. */
struct Cached {
    typedef char value_type;
    std::map<char *, ptrdiff_t> live;
    std::multimap<ptrdiff_t, char *> idle;
    int asked = 0, made = 0;
    char *allocate(ptrdiff_t n)
    {
        char *p;
        auto at = idle.find(n);

        asked++;
        if (at != idle.end()) {
            p = at->second;
            idle.erase(at);
        } else {
            made++;
            p = thrust::cuda::pointer<char>(thrust::device_malloc<char>(n))
                    .get();
        }
        live[p] = n;
        return p;
    }
    void deallocate(char *p, size_t)
    {
        idle.insert(std::make_pair(live[p], p));
        live.erase(p);
    }
    ~Cached()
    {
        for (auto &i : idle)
            cudaFree(i.second);
    }
};
template <class T> struct Counting : thrust::device_allocator<T> {
    typedef thrust::device_allocator<T> base;
    static int gets, drops;
    template <class U> struct rebind {
        typedef Counting<U> other;
    };
    thrust::device_ptr<T> allocate(size_t n)
    {
        gets++;
        return base::allocate(n);
    }
    void deallocate(thrust::device_ptr<T> p, size_t n)
    {
        drops++;
        base::deallocate(p, n);
    }
};
template <class T> int Counting<T>::gets;
template <class T> int Counting<T>::drops;
static void
policies()
{
    cudaStream_t s;
    Cached cache;
    Dv<int> v(1000), w(1000);
    int *raw = thrust::raw_pointer_cast(v.data());

    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    thrust::sequence(thrust::cuda::par.on(s), v.begin(), v.end(), 1000, -1);
    thrust::sort(thrust::cuda::par.on(s), raw, raw + 1000);
    EXPECT(v[0] == 1 && v[999] == 1000);
    thrust::transform(thrust::cuda::par_nosync.on(s), v.begin(), v.end(),
                      w.begin(), thrust::negate<int>());
    CHECK(cudaStreamSynchronize(s));
    EXPECT(w[5] == -6);
    for (int i = 0; i < 3; i++)
        thrust::sort(thrust::cuda::par(cache).on(s), w.begin(), w.end(),
                     thrust::greater<int>());
    EXPECT(w[0] == -1 && cache.asked == 3 && cache.made == 1);
    EXPECT(thrust::reduce(thrust::device(cache), v.begin(), v.end()) == 500500);
    CHECK(cudaStreamDestroy(s));
    Hv<int> h = v;
    EXPECT(thrust::reduce(thrust::host, h.begin(), h.end()) == 500500);
    EXPECT(thrust::reduce(thrust::seq, h.begin(), h.end()) == 500500);
    EXPECT(thrust::reduce(h.data(), h.data() + 10) == 55);
    /* Lambdas are for both sides; kernels alone are called here. */
    auto sum = [&] { return thrust::reduce(v.begin(), v.end(), 7); };
    auto sorted = [=](int *a, int n) {
        thrust::sort(thrust::device, a, a + n, thrust::greater<int>());
        thrust::copy(thrust::device, a, a + 1, a + n - 1);
    };
    EXPECT(sum() == 500507);
    sorted(raw, 1000);
    EXPECT(v[0] == 1000 && v[1] == 999 && v[999] == 1000);
    thrust::sequence(v.begin(), v.end(), 1);
    {
        thrust::device_vector<int, Counting<int>> c(10, 3);
        EXPECT(thrust::reduce(c.begin(), c.end()) == 30);
    }
    EXPECT(Counting<int>::gets == 1 && Counting<int>::drops == 1);
    bool thrown = false;
    try {
        Dv<char> huge((size_t)1 << 60);
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    EXPECT(thrown);
    thrown = false;
    try {
        throw thrust::system_error(cudaErrorInvalidValue,
                                   thrust::cuda_category(), "here");
    } catch (const std::runtime_error &e) {
        thrown = strstr(e.what(), "invalid argument") != 0;
    }
    EXPECT(thrown);
}

__global__ void
in_tuples(float *out)
{
    thrust::tuple<int, float> t(3, 4.5f), u = thrust::make_tuple(5, 6.5f);
    thrust::pair<int, float> p = thrust::make_pair(7, 8.5f);
    int a;
    float b;

    t = u;
    thrust::get<0>(t) += 1;
    thrust::tie(a, b) = t;
    out[0] = (float)a + b;
    out[1] = (float)p.first + p.second;
    out[2] = t < u ? 1.0f : u < t ? 2.0f : 3.0f;
}
static void
tuples()
{
    Dv<float> out(3);

    in_tuples<<<1, 1>>>(thrust::raw_pointer_cast(out.data()));
    EXPECT(out[0] == 12.5f && out[1] == 15.5f && out[2] == 2);
    auto t = thrust::make_tuple(1, 2.5, 'c');
    auto [a, b, c] = t;
    EXPECT(a == 1 && b == 2.5 && c == 'c');
    EXPECT(t == thrust::make_tuple(1, 2.5, 'c'));
    EXPECT(t != thrust::make_tuple(1, 2.0, 'c'));
    EXPECT((thrust::tuple_size<decltype(t)>::value == 3));
    thrust::tuple<double, double, int> wide = t;
    EXPECT(thrust::get<2>(wide) == 'c');
    EXPECT(thrust::make_pair(1, 2) < thrust::make_pair(1, 3));
}

struct Draw {
    HD float operator()(unsigned n) const
    {
        thrust::default_random_engine e;
        thrust::uniform_real_distribution<float> u(2, 4);

        e.discard(n);
        return u(e);
    }
};
static void
numbers()
{
    thrust::minstd_rand0 old;
    thrust::minstd_rand now(1), far(1);
    unsigned v = 0;

    /* What the C++ standard says of the 10,000th. */
    for (int i = 0; i < 9999; i++)
        old();
    EXPECT(old() == 1043618065);
    for (int i = 0; i < 10000; i++)
        v = now();
    EXPECT(v == 399268537);
    far.discard(9999);
    EXPECT(far() == 399268537 && far == now);
    Dv<float> d(20000);
    thrust::transform(thrust::counting_iterator<unsigned>(0),
                      thrust::counting_iterator<unsigned>(20000), d.begin(),
                      Draw());
    Hv<float> h = d;
    double sum = 0;
    for (float x : h) {
        EXPECT(x >= 2 && x < 4);
        sum += x;
    }
    EXPECT(near(sum / 20000, 3, 0.01) && h[77] == Draw()(77));
    thrust::uniform_int_distribution<int> die(1, 6);
    thrust::random::normal_distribution<double> bell(5, 2);
    int seen[7] = {0};
    double square = 0, mean = 0;
    for (int i = 0; i < 60000; i++) {
        int k = die(now);
        double x = bell(now) - 5;

        EXPECT(k >= 1 && k <= 6);
        seen[k]++;
        mean += x;
        square += x * x;
    }
    for (int k = 1; k <= 6; k++)
        EXPECT(near(seen[k], 10000, 0.05));
    EXPECT(fabs(mean / 60000) < 0.05 && near(square / 60000, 4, 0.05));

    Dv<thrust::complex<float>> z(10, thrust::complex<float>(1, 2));
    thrust::transform(z.begin(), z.end(), z.begin(),
                      [] __device__(thrust::complex<float> c) {
                          return c * c + 1.0f / thrust::conj(c);
                      });
    std::complex<float> c(1, 2), want = c * c + 1.0f / std::conj(c);
    thrust::complex<float> got = z[9];
    EXPECT(near(got.real(), want.real(), 1e-6) &&
           near(got.imag(), want.imag(), 1e-6));
    std::complex<double> w(0.3, -1.2);
    thrust::complex<double> q = w;
    EXPECT(std::abs(std::sin(w) - std::complex<double>(thrust::sin(q))) <
           1e-14);
    EXPECT(std::abs(std::cos(w) - std::complex<double>(thrust::cos(q))) <
           1e-14);
    EXPECT(std::abs(std::tanh(w) - std::complex<double>(thrust::tanh(q))) <
           1e-14);
    EXPECT(near(thrust::abs(q), std::abs(w), 1e-15));
}

int
main()
{
    vectors();
    pointers();
    iterators();
    policies();
    tuples();
    numbers();
    return done();
}
