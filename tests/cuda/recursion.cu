/* recursion.cu - functions that call themselves, each other, through pointers,
 * each lane to a depth of its own; what the host gives within them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#define FN __host__ __device__ __noinline__

/* What is live across two calls; arguments and results as structs. */
struct Pair {
    long long sum;
    int calls;
    char tag;
};
FN Pair walk(int lo, int hi, char tag)
{
    if (hi - lo <= 1)
        return {lo * 3ll, 1, tag};
    int mid = lo + (hi - lo) / 3 + 1;
    Pair a = walk(lo, mid < hi ? mid : hi - 1, (char)(tag + 1));
    Pair b = walk(mid < hi ? mid : hi - 1, hi, (char)(tag + 2));

    return {a.sum * 2 + b.sum - lo, a.calls + b.calls + hi,
            (char)(a.tag > b.tag ? a.tag : b.tag)};
}

/* Around three. */
FN int even(unsigned n, int *steps);
FN int third(unsigned n, int *steps) { return ++*steps, n ? even(n - 1, steps) : 7; }
FN int odd(unsigned n, int *steps)
{
    return ++*steps, n % 5 == 4 ? third(n - 1, steps) : n ? even(n - 1, steps) : 0;
}
FN int even(unsigned n, int *steps) { return ++*steps, n ? odd(n - 1, steps) : 1; }

/* A loop with phis around the call, and a local array. */
FN int ways(int n, int most)
{
    int w = 0, seen[4] = {0, 0, 0, 0};

    if (n == 0)
        return 1;
    for (int k = 1; k <= most && k <= n; k++) {
        int x = ways(n - k, k);

        seen[k & 3] += x;
        w += x;
    }
    return w == seen[0] + seen[1] + seen[2] + seen[3] ? w : -1;
}

/* Within it a function that calls itself by another way. */
FN int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }
FN int helper(int a, int b) { return gcd(a, b) + gcd(a + 1, b); }
FN int mixed(int n)
{
    if (n <= 1)
        return 1;
    switch (n % 4) {
    case 0: return helper(n, 12) + mixed(n - 1);
    case 1: return mixed(n / 2) ^ n;
    case 2: return mixed(n - 2) + mixed(n / 3);
    default: return mixed(n - 1) * 3 + 1;
    }
}

/* Through a pointer, which may lead back. */
typedef float (*Rule)(float, int);
FN float halve(float x, int n);
FN float grow(float x, int n);
FN float apply(Rule r, float x, int n) { return r(x, n); }
FN float halve(float x, int n) { return n ? apply(n & 1 ? grow : halve, x / 2, n - 1) + 1 : x; }
FN float grow(float x, int n) { return n ? apply(n & 2 ? halve : grow, x * 3, n - 1) - x : x; }

#define EACH(F)                              \
    F(0, walk(-i, 2 * i + 1, 'a').sum)       \
    F(1, walk(-i, 2 * i + 1, 'a').calls)     \
    F(2, walk(i, 9, 'A').tag)                \
    F(3, (steps = 0, even((unsigned)i, &steps) * 1000 + steps)) \
    F(4, ways(i % 14, 9))                    \
    F(5, mixed(i))                           \
    F(6, (long long)(halve((float)i, i % 9) * 64))

enum { KINDS = 7, LANES = 64 };

__global__ void all(long long *out)
{
    int i = threadIdx.x, steps;

    (void)steps;
#define DO(k, e)  out[k * LANES + i] = (e);
    EACH(DO)
#undef DO
}

/* A tree that each lane builds, sums and frees. */
struct Node {
    Node *l, *r;
    int v;
};
__device__ __noinline__ Node *grown(int depth, int *next)
{
    Node *n = (Node *)malloc(sizeof *n);

    if (!n)
        return nullptr;
    n->v = ++*next;
    n->l = depth > 0 ? grown(depth - 1, next) : nullptr;
    n->r = depth > 1 ? grown(depth - 2, next) : nullptr;
    return n;
}
__device__ __noinline__ int felled(Node *n)
{
    if (!n)
        return 0;
    int s = n->v + felled(n->l) - felled(n->r);

    free(n);
    return s;
}
__global__ void trees(int *out)
{
    int next = 0, i = threadIdx.x;

    out[i] = felled(grown(i % 7, &next)) * 100 + next;
}
static int felled_here(int depth, int *next)
{
    int v = ++*next, l = 0, r = 0;

    if (depth > 0)
        l = felled_here(depth - 1, next);
    if (depth > 1)
        r = felled_here(depth - 2, next);
    return v + l - r;
}

int main()
{
    Dev<long long> d(KINDS * LANES);
    Dev<int> t(LANES);

    all<<<1, LANES>>>(d);
    CHECK(cudaDeviceSynchronize());
    std::vector<long long> v = d.get();

    for (int i = 0; i < LANES; i++) {
        int steps;

        (void)steps;
#define SAME(k, e) EXPECT(v[k * LANES + i] == (long long)(e));
        EACH(SAME)
#undef SAME
    }
    for (int turn = 0; turn < 3; turn++) { /* what was freed is found again */
        trees<<<1, LANES>>>(t);
        CHECK(cudaDeviceSynchronize());
    }
    std::vector<int> s = t.get();

    for (int i = 0; i < LANES; i++) {
        int next = 0, sum = felled_here(i % 7, &next);

        EXPECT(s[i] == sum * 100 + next);
    }
    return done();
}
