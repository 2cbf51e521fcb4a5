/* cub_block.cu - CUB's collectives of blocks and warps, against plain loops.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cub/block/block_radix_sort.cuh>
#include <cub/cub.cuh>

#include "check.h"

#include <algorithm>
#include <string>

const int threads = 96, items = 3, total = threads * items;

/* Joins texts: an operator that does not commute. */
struct Word {
    int first, last, n;
};
struct Join {
    __device__ Word operator()(const Word &a, const Word &b) const
    {
        return {a.first, b.last, a.last + 1 == b.first ? a.n + b.n : -1000000};
    }
};

template <cub::BlockReduceAlgorithm How>
__global__ void
reduce(const int *in, int *out, Word *word)
{
    typedef cub::BlockReduce<int, 16, How, 3, 2> R;
    typedef cub::BlockReduce<Word, 16, How, 3, 2> W;
    __shared__ typename R::TempStorage t;
    __shared__ union {
        typename W::TempStorage words;
        int other;
    } u;
    int me = threadIdx.x + 16 * (threadIdx.y + 3 * threadIdx.z);
    int v[items];

    cub::LoadDirectBlocked(me, in, v);
    int a = R(t).Sum(v);
    __syncthreads();
    int b = R(t).Reduce(in[me], cub::Max());
    __syncthreads();
    int c = R(t).Sum(in[me], 37);
    __syncthreads();
    int d = R(t).Reduce(in[me], cub::Min(), 5);
    __syncthreads();
    int e = cub::BlockReduce<int, 16, How, 3, 2>().Reduce(v, cub::Min());
    Word w = W(u.words).Reduce(Word{me, me, 1}, Join());
    if (me == 0) {
        int r[] = {a, b, c, d, e};
        for (int k = 0; k < 5; k++)
            out[k] = r[k];
        *word = w;
    }
}
template <cub::BlockReduceAlgorithm How>
void
reduces(const std::vector<int> &v)
{
    Dev<int> in(v), out(5);
    Dev<Word> word(1);

    reduce<How><<<1, dim3(16, 3, 2)>>>(in, out, word);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> r = out.get();
    int sum = 0, sum37 = 0;
    for (int k = 0; k < total; k++)
        sum += v[k];
    for (int k = 0; k < 37; k++)
        sum37 += v[k];
    EXPECT(r[0] == sum);
    EXPECT(r[1] == *std::max_element(v.begin(), v.begin() + threads));
    EXPECT(r[2] == sum37);
    EXPECT(r[3] == *std::min_element(v.begin(), v.begin() + 5));
    EXPECT(r[4] == *std::min_element(v.begin(), v.end()));
    Word w = word.get()[0];
    EXPECT(w.first == 0 && w.last == threads - 1 && w.n == threads);
}

struct Before {
    int sum;
    __device__ int operator()(int all)
    {
        int r = sum;

        sum += all;
        return r;
    }
};
/* Two tiles, each a third of what the last ones wrote. */
template <cub::BlockScanAlgorithm How>
__global__ void
scan(const int *in, int *out, Word *words)
{
    typedef cub::BlockScan<int, threads, How> S;
    typedef cub::BlockScan<Word, threads, How> W;
    __shared__ typename S::TempStorage t;
    __shared__ typename W::TempStorage tw;
    int me = threadIdx.x, v[items], r[items], x, all, *o = out;
    Before before = {1000};

    cub::LoadDirectBlocked(me, in, v);
    S(t).ExclusiveSum(v, r);
    cub::StoreDirectBlocked(me, o, r);
    __syncthreads();
    S(t).InclusiveSum(v, r, all);
    cub::StoreDirectBlocked(me, o += total, r);
    __syncthreads();
    for (int k = 0; k < 2; k++) {
        S(t).ExclusiveSum(v, r, before);
        cub::StoreDirectBlocked(me, o += total, r);
        __syncthreads();
    }
    S(t).InclusiveScan(v, r, cub::Max());
    cub::StoreDirectBlocked(me, o += total, r);
    __syncthreads();
    S(t).ExclusiveScan(v, r, -5, cub::Max());
    cub::StoreDirectBlocked(me, o += total, r);
    __syncthreads();
    o += total;
    S(t).ExclusiveSum(in[me], x, all);
    o[me] = x;
    o[3 * threads] = all;
    __syncthreads();
    S(t).InclusiveSum(in[me], x, before);
    o[threads + me] = x;
    __syncthreads();
    S(t).ExclusiveScan(in[me], x, 7, cub::Sum(), all);
    o[2 * threads + me] = x;
    o[3 * threads + 1] = all;
    W(tw).InclusiveScan(Word{me, me, 1}, words[me], Join());
}
template <cub::BlockScanAlgorithm How>
void
scans(const std::vector<int> &v)
{
    Dev<int> in(v), out(8 * total);
    Dev<Word> words(threads);

    scan<How><<<1, threads>>>(in, out, words);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> r = out.get();
    int sum = 0, top = -5, one = 0;
    for (int k = 0; k < total; k++) {
        EXPECT(r[k] == sum && r[2 * total + k] == 1000 + sum);
        EXPECT(r[5 * total + k] == top);
        sum += v[k];
        top = std::max(top, v[k]);
        EXPECT(r[total + k] == sum && r[4 * total + k] == top);
    }
    for (int k = 0; k < total; k++)
        EXPECT(r[3 * total + k] == r[2 * total + k] + sum);
    const int *o = &r[6 * total];
    std::vector<Word> w = words.get();
    for (int k = 0; k < threads; k++) {
        EXPECT(o[k] == one && o[2 * threads + k] == one + 7);
        one += v[k];
        EXPECT(o[threads + k] == one + 1000 + 2 * sum);
        EXPECT(w[k].first == 0 && w[k].last == k && w[k].n == k + 1);
    }
    EXPECT(o[3 * threads] == one && o[3 * threads + 1] == one);
}

__global__ void
warps(const int *in, int *out)
{
    typedef cub::WarpReduce<int> R;
    typedef cub::WarpReduce<double, 8> R8;
    typedef cub::WarpScan<int, 16> S;
    typedef cub::WarpExchange<int, items, 8> X;
    __shared__ typename R::TempStorage t[2];
    __shared__ typename R8::TempStorage t8[8];
    __shared__ typename S::TempStorage ts[4];
    __shared__ typename X::TempStorage tx[8];
    int me = threadIdx.x, w = me / 32, v = in[me], x, y, all;

    out[me] = R(t[w]).Sum(v);
    out[64 + me] = R(t[w]).Reduce(v, cub::Max(), 11);
    out[128 + me] = R(t[w]).HeadSegmentedSum(v, me % 5 == 0);
    out[192 + me] = R(t[w]).TailSegmentedSum(v, me % 5 == 4);
    out[256 + me] = (int)R8(t8[me / 8]).Sum(v * 0.5);
    S(ts[me / 16]).InclusiveSum(v, x, all);
    out[320 + me] = x, out[384 + me] = all;
    S(ts[me / 16]).Scan(v, x, y, 100, cub::Max());
    out[448 + me] = x, out[512 + me] = y;
    S(ts[me / 16]).ExclusiveSum(v, x);
    out[576 + me] = x;
    int a[items], b[items];
    for (int k = 0; k < items; k++)
        a[k] = me % 8 * items + k;
    X(tx[me / 8]).BlockedToStriped(a, b);
    for (int k = 0; k < items; k++)
        out[640 + me * items + k] = b[k];
    X(tx[me / 8]).StripedToBlocked(b, a);
    for (int k = 0; k < items; k++)
        out[832 + me * items + k] = a[k];
}
static void
warp(const std::vector<int> &v)
{
    Dev<int> in(v), out(1024);

    warps<<<1, 64>>>(in, out);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> r = out.get();
    for (int w = 0; w < 64; w += 32) {
        int sum = 0, top = 0;
        for (int k = 0; k < 32; k++) {
            sum += v[w + k];
            top = k < 11 ? std::max(top, v[w + k]) : top;
        }
        EXPECT(r[w] == sum && r[64 + w] == top);
    }
    for (int k = 0; k < 64; k++) {
        int end = k - k % 5 + 5, sum = 0, incl = 0, top = 100, over;
        for (int i = k; i < end && i / 32 == k / 32; i++)
            sum += v[i];
        if (k % 5 == 0 || k % 32 == 0)
            EXPECT(r[128 + k] == sum && r[192 + k] == sum);
        for (int i = k / 16 * 16; i <= k; i++) {
            over = top;
            incl += v[i];
            top = std::max(top, v[i]);
        }
        EXPECT(r[320 + k] == incl && r[576 + k] == incl - v[k]);
        EXPECT(r[384 + k] == r[320 + k / 16 * 16 + 15]);
        EXPECT(r[448 + k] == top && r[512 + k] == over);
        for (int i = 0; i < items; i++) {
            EXPECT(r[640 + k * items + i] == i * 8 + k % 8);
            EXPECT(r[832 + k * items + i] == k % 8 * items + i);
        }
    }
    for (int k = 0; k < 64; k += 8) {
        double sum = 0;
        for (int i = 0; i < 8; i++)
            sum += v[k + i] * 0.5;
        EXPECT(r[256 + k] == (int)sum);
    }
}

/* Keys and where they were; even sorts are by some bits alone. */
template <class K, bool Down>
__global__ void
radix(const K *in, K *keys, int *values, K *some)
{
    typedef cub::BlockRadixSort<K, threads, items, int> S;
    typedef cub::BlockRadixSort<K, threads, items> Only;
    __shared__ typename S::TempStorage t;
    __shared__ typename Only::TempStorage to;
    K key[items];
    int v[items];

    cub::LoadDirectStriped<threads>(threadIdx.x, in, key);
    cub::BlockExchange<K, threads, items>().StripedToBlocked(key);
    for (int k = 0; k < items; k++)
        v[k] = threadIdx.x * items + k;
    if (Down)
        S(t).SortDescending(key, v);
    else
        S(t).SortBlockedToStriped(key, v);
    if (Down) {
        cub::StoreDirectBlocked(threadIdx.x, keys, key);
        cub::StoreDirectBlocked(threadIdx.x, values, v);
    } else {
        cub::StoreDirectStriped<threads>(threadIdx.x, keys, key);
        cub::StoreDirectStriped<threads>(threadIdx.x, values, v);
    }
    cub::LoadDirectBlocked(threadIdx.x, in, key);
    Only(to).Sort(key, 1, 4);
    cub::StoreDirectBlocked(threadIdx.x, some, key);
}
template <class K, bool Down>
void
sorts(K scale)
{
    std::vector<K> v(total);
    for (K &k : v)
        k = (K)((rnd() - (std::is_unsigned<K>::value ? 0 : 0.5f)) *
                (float)scale);
    Dev<K> in(v), keys(total), some(total);
    Dev<int> values(total);

    radix<K, Down><<<1, threads>>>(in, keys, values, some);
    CHECK(cudaDeviceSynchronize());
    std::vector<K> r = keys.get(), part = some.get(), sorted = v;
    std::vector<int> at = values.get();
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](K a, K b) { return Down ? b < a : a < b; });
    EXPECT(r == sorted);
    for (int k = 0; k < total; k++)
        EXPECT(at[k] >= 0 && at[k] < total && v[at[k]] == r[k] &&
               (k == 0 || !(r[k] == r[k - 1]) || at[k - 1] < at[k]));
    if (std::is_unsigned<K>::value) {
        std::stable_sort(v.begin(), v.end(), [](K a, K b) {
            return ((long long)a >> 1 & 7) < ((long long)b >> 1 & 7);
        });
        EXPECT(part == v);
    }
}

__global__ void
moves(const int *in, int *out, unsigned char *histogram)
{
    typedef cub::BlockExchange<int, threads, items> X;
    typedef cub::BlockLoad<int, threads, items, cub::BLOCK_LOAD_TRANSPOSE> L;
    typedef cub::BlockLoad<int, threads, items, cub::BLOCK_LOAD_STRIPED> LS;
    typedef cub::BlockStore<int, threads, items,
                            cub::BLOCK_STORE_WARP_TRANSPOSE>
        St;
    typedef cub::BlockHistogram<unsigned char, threads, items, 16,
                                cub::BLOCK_HISTO_SORT>
        H;
    __shared__ union {
        typename L::TempStorage load;
        typename LS::TempStorage striped;
        typename X::TempStorage x;
        typename St::TempStorage store;
        typename H::TempStorage h;
    } t;
    int v[items], r[items], *o = out;
    unsigned char c[items];

    L(t.load).Load(in, v, total - 10, -1);
    St(t.store).Store(o, v);
    LS(t.striped).Load(in, v);
    X(t.x).StripedToBlocked(v, r);
    St(t.store).Store(o += total, r, total - 1);
    __syncthreads();
    X(t.x).BlockedToWarpStriped(r);
    __syncthreads();
    X(t.x).WarpStripedToBlocked(r);
    St(t.store).Store(o += total, r);
    for (int k = 0; k < items; k++)
        v[k] = total - 1 - (int)(threadIdx.x * items + k);
    __syncthreads();
    X(t.x).ScatterToBlocked(r, v);
    St(t.store).Store(o += total, r);
    for (int k = 0; k < items; k++)
        c[k] = (unsigned char)(in[threadIdx.x * items + k] & 15);
    __syncthreads();
    H(t.h).Histogram(c, histogram);
}
static void
moved(const std::vector<int> &v)
{
    Dev<int> in(v), out(4 * total);
    Dev<unsigned char> histogram(16);

    CHECK(cudaMemset(out, 77, out.n * sizeof(int)));
    moves<<<1, threads>>>(in, out, histogram);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> r = out.get(), n(16);
    for (int k = 0; k < total; k++) {
        EXPECT(r[k] == (k < total - 10 ? v[k] : -1));
        EXPECT(r[total + k] == (k < total - 1 ? v[k] : 0x4d4d4d4d));
        EXPECT(r[2 * total + k] == v[k]);
        EXPECT(r[3 * total + k] == v[total - 1 - k]);
        n[v[k] & 15]++;
    }
    std::vector<unsigned char> h = histogram.get();
    for (int k = 0; k < 16; k++)
        EXPECT(h[k] == n[k]);
}

__global__ void
neighbours(const int *in, int *out)
{
    typedef cub::BlockDiscontinuity<int, threads> D;
    typedef cub::BlockAdjacentDifference<int, threads> A;
    typedef cub::BlockShuffle<int, threads> S;
    __shared__ typename D::TempStorage d;
    __shared__ typename A::TempStorage a;
    __shared__ typename S::TempStorage s;
    int me = threadIdx.x, v[items], head[items], tail[items], *o = out;

    cub::LoadDirectBlocked(me, in, v);
    D(d).FlagHeadsAndTails(head, tail, v, cub::Inequality());
    cub::StoreDirectBlocked(me, o, head);
    cub::StoreDirectBlocked(me, o += total, tail);
    __syncthreads();
    D(d).FlagHeads(head, v, cub::Inequality(), in[0]);
    cub::StoreDirectBlocked(me, o += total, head);
    A(a).SubtractLeft(v, head, cub::Difference());
    cub::StoreDirectBlocked(me, o += total, head);
    __syncthreads();
    A(a).SubtractRight(v, head, cub::Difference(), 1000);
    cub::StoreDirectBlocked(me, o += total, head);
    __syncthreads();
    A(a).SubtractLeftPartialTile(v, head, cub::Difference(), total - 4, 1000);
    cub::StoreDirectBlocked(me, o += total, head);
    o += total;
    S(s).Up(v, head, o[3 * threads + 1]);
    if (me == 0)
        head[0] = -1;
    cub::StoreDirectBlocked(me, o, head);
    __syncthreads();
    S(s).Rotate(in[me], o[3 * threads + 2 + me], 90);
}
static void
neighbour(const std::vector<int> &v)
{
    Dev<int> in(v), out(8 * total);

    neighbours<<<1, threads>>>(in, out);
    CHECK(cudaDeviceSynchronize());
    std::vector<int> r = out.get();
    for (int k = 0; k < total; k++) {
        int left = k ? v[k] != v[k - 1] : 1, end = total - 1;
        EXPECT(r[k] == left);
        EXPECT(r[total + k] == (k == end || v[k] != v[k + 1]));
        EXPECT(r[2 * total + k] == (k ? left : 0));
        EXPECT(r[3 * total + k] == (k ? v[k] - v[k - 1] : v[k]));
        EXPECT(r[4 * total + k] == v[k] - (k < end ? v[k + 1] : 1000));
        EXPECT(r[5 * total + k] ==
               (k >= total - 4 ? v[k] : v[k] - (k ? v[k - 1] : 1000)));
        EXPECT(r[6 * total + k] == (k ? v[k - 1] : -1));
    }
    const int *o = &r[6 * total + 3 * threads + 1];
    EXPECT(o[0] == v[total - 1]);
    for (int k = 0; k < threads; k++)
        EXPECT(o[1 + k] == v[(k + 90) % threads]);
}

struct Less {
    __device__ bool operator()(int a, int b) const { return a / 4 < b / 4; }
};
/* Pairs by a quarter of the key: what is equal keeps its order. */
__global__ void
merges(const int *in, int *keys, int *values, int *part, int *warp)
{
    typedef cub::BlockMergeSort<int, threads, items, int> S;
    typedef cub::BlockMergeSort<int, threads, items> Only;
    typedef cub::WarpMergeSort<int, items> W;
    __shared__ typename S::TempStorage t;
    __shared__ typename Only::TempStorage o;
    __shared__ typename W::TempStorage w[threads / 32];
    int me = threadIdx.x, k[items], v[items];

    cub::LoadDirectBlocked(me, in, k);
    for (int i = 0; i < items; i++)
        v[i] = me * items + i;
    S(t).Sort(k, v, Less());
    cub::StoreDirectBlocked(me, keys, k);
    cub::StoreDirectBlocked(me, values, v);
    cub::LoadDirectBlocked(me, in, k, 100);
    Only(o).StableSort(k, Less(), 100, 1 << 20);
    cub::StoreDirectBlocked(me, part, k);
    cub::LoadDirectBlocked(me, in, k);
    W(w[me / 32]).Sort(k, Less());
    cub::StoreDirectBlocked(me, warp, k);
}
static void
merged(std::vector<int> v)
{
    Dev<int> in(v), keys(total), values(total), part(total), warp(total);

    merges<<<1, threads>>>(in, keys, values, part, warp);
    CHECK(cudaDeviceSynchronize());
    auto less = [](int a, int b) { return a / 4 < b / 4; };
    std::vector<int> s = v, r = keys.get(), at = values.get(), p(v), q(v);
    std::stable_sort(s.begin(), s.end(), less);
    EXPECT(r == s);
    for (int k = 0; k < total; k++)
        EXPECT(v[at[k]] == r[k]);
    std::stable_sort(p.begin(), p.begin() + 100, less);
    std::fill(p.begin() + 100, p.end(), 1 << 20);
    EXPECT(part.get() == p);
    for (int k = 0; k < total; k += 32 * items)
        std::stable_sort(q.begin() + k, q.begin() + k + 32 * items, less);
    EXPECT(warp.get() == q);
}

/* Runs of 0 to 3, written out eight a thread. */
__global__ void
decode(int *out, int *place, unsigned *size)
{
    typedef cub::BlockRunLengthDecode<int, 32, 2, 4> R;
    __shared__ typename R::TempStorage t;
    int value[2], length[2], v[4], at[4];
    unsigned all;

    for (int k = 0; k < 2; k++) {
        value[k] = threadIdx.x * 2 + k;
        length[k] = value[k] % 4;
    }
    R runs(t, value, length, all);
    for (unsigned from = 0; from < all; from += 128) {
        runs.RunLengthDecode(v, at, from);
        for (int k = 0; k < 4; k++)
            if (from + threadIdx.x * 4 + k < all) {
                out[from + threadIdx.x * 4 + k] = v[k];
                place[from + threadIdx.x * 4 + k] = at[k];
            }
    }
    *size = all;
}

int
main()
{
    std::vector<int> v(total);
    for (int &k : v)
        k = (int)(rnd() * 50);
    reduces<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(v);
    reduces<cub::BLOCK_REDUCE_RAKING>(v);
    reduces<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(v);
    scans<cub::BLOCK_SCAN_RAKING>(v);
    scans<cub::BLOCK_SCAN_WARP_SCANS>(v);
    warp(v);
    sorts<int, false>(400);
    sorts<float, true>(1e3f);
    sorts<double, false>(10);
    sorts<unsigned char, true>(250);
    sorts<long long, true>(1ll << 50);
    sorts<unsigned short, false>(90);
    moved(v);
    neighbour(v);
    merged(v);

    Dev<int> out(256), place(256);
    Dev<unsigned> size(1);
    decode<<<1, 32>>>(out, place, size);
    std::vector<int> o = out.get(), p = place.get();
    EXPECT(size.get()[0] == 96);
    for (int r = 0, k = 0; r < 64; r++)
        for (int i = 0; i < r % 4; i++, k++)
            EXPECT(o[k] == r && p[k] == i);
    return done();
}
