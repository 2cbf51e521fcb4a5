/* merging.cu - sorting: blocks by shuffles and shared memory, then merges whose
 * pieces are found by searching along diagonals; keys carry their values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <algorithm>

enum { BLOCK = 128, EACH = 4 };
struct Pair {
    unsigned key;
    int value;
};
__device__ bool
before(Pair a, Pair b)
{
    return a.key < b.key;
}

/* Odd and even neighbours change places; equal keys stay as they were. */
__global__ void
sort_blocks(Pair *v, int n)
{
    __shared__ Pair s[BLOCK];
    int i = threadIdx.x, at = blockIdx.x * BLOCK + i;

    s[i] = at < n ? v[at] : Pair{~0u, -1};
    __syncthreads();
    for (int round = 0; round < BLOCK; round++) {
        int k = 2 * i + (round & 1);

        if (k + 1 < BLOCK && before(s[k + 1], s[k])) {
            Pair t = s[k];

            s[k] = s[k + 1];
            s[k + 1] = t;
        }
        __syncthreads();
    }
    if (at < n)
        v[at] = s[i];
}
/* Each thread finds where its EACH outputs start in both runs. */
__global__ void
merge(const Pair *in, Pair *out, int n, int run)
{
    int o = (blockIdx.x * blockDim.x + threadIdx.x) * EACH;
    int start = o / (2 * run) * 2 * run;

    if (o >= n)
        return;
    int an = min(run, n - start), bn = min(run, n - start - an), d = o - start;
    const Pair *a = in + start, *b = a + an;
    int lo = max(0, d - bn), hi = min(d, an);
    while (lo < hi) {
        int mid = (lo + hi) / 2;

        if (before(b[d - 1 - mid], a[mid]))
            hi = mid;
        else
            lo = mid + 1;
    }
    for (int i = lo, j = d - lo, k = 0; k < EACH && d + k < an + bn; k++) {
        bool left = j >= bn || (i < an && !before(b[j], a[i]));

        out[o + k] = left ? a[i++] : b[j++];
    }
}

int
main()
{
    const int n = 1500;
    std::vector<Pair> v(n);

    for (int i = 0; i < n; i++)
        v[i] = {(unsigned)(rnd() * 300), i};
    Dev<Pair> a(v), b(n);
    Pair *from = a, *to = b;

    sort_blocks<<<(n + BLOCK - 1) / BLOCK, BLOCK>>>(from, n);
    for (int run = BLOCK; run < n; run *= 2) {
        merge<<<(n / EACH + 64) / 64, 64>>>(from, to, n, run);
        std::swap(from, to);
    }
    std::vector<Pair> got(n);
    CHECK(
        cudaMemcpy(got.data(), from, n * sizeof(Pair), cudaMemcpyDeviceToHost));
    std::stable_sort(v.begin(), v.end(),
                     [](Pair x, Pair y) { return x.key < y.key; });
    for (int i = 0; i < n; i++)
        EXPECT(got[i].key == v[i].key && got[i].value == v[i].value);
    return done();
}
