/* rand_sobol.c - direction numbers of Sobol's sequence.
 *
 * A dimension has a primitive polynomial over bits and as many odd numbers,
 * m_k < 2^k, as its degree; the polynomial's recurrence gives the rest. The first
 * 53 are Joe and Kuo's. From there on the polynomials are the next ones, in
 * order, and the odd numbers come from SplitMix64: every such choice is a Sobol
 * sequence, with coarser pairs than theirs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/rand/rand.h"

static const uint16_t joe_kuo[][10] = {
#define X(...) {__VA_ARGS__},
#include "cuda/rand/joe_kuo.def"
#undef X
};

/* a b modulo p, polynomials of degree less than s, p's. */
static uint32_t
mul(uint32_t a, uint32_t b, uint32_t p, unsigned s)
{
    uint32_t r = 0;

    for (; b; b >>= 1) {
        r ^= b & 1 ? a : 0;
        a <<= 1;
        a ^= a >> s & 1 ? p : 0;
    }
    return r;
}

static uint32_t
power_of_x(uint32_t n, uint32_t p, unsigned s)
{
    uint32_t r = 1, x = 2;

    for (; n; n >>= 1) {
        r = n & 1 ? mul(r, x, p, s) : r;
        x = mul(x, x, p, s);
    }
    return r;
}

/* Whether x has the order 2^s - 1, which makes p primitive. */
static bool
primitive(uint32_t p, unsigned s)
{
    uint32_t n = (1u << s) - 1, left = n;

    if (power_of_x(n, p, s) != 1)
        return false;
    for (uint32_t f = 3; left > 1; f += 2) {
        if (f * f > left)
            f = left;
        if (left % f)
            continue;
        while (left % f == 0)
            left /= f;
        if (power_of_x(n / f, p, s) == 1)
            return false;
    }
    return true;
}

/* Bit j of a row counts from the left: v_(j+1) = m_(j+1) / 2^(j+1). */
static void
recur(uint64_t *v, unsigned s, unsigned a)
{
    for (unsigned k = s; k < 64; k++) {
        v[k] = v[k - s] ^ v[k - s] >> s;
        for (unsigned i = 1; i < s; i++)
            v[k] ^= a >> (s - 1 - i) & 1 ? v[k - i] : 0;
    }
}

void
rand_sobol(unsigned dims, uint64_t (*rows)[64])
{
    uint32_t p = 1u << 9; /* the next polynomial, once Joe and Kuo's end */
    unsigned s = 9;

    for (unsigned d = 0; d < dims; d++) {
        uint64_t *v = rows[d];
        unsigned long long seed = d;

        if (d == 0) {
            for (unsigned k = 0; k < 64; k++)
                v[k] = 1ull << (63 - k);
        } else if (d <= BR_COUNT(joe_kuo)) {
            const uint16_t *r = joe_kuo[d - 1];

            for (unsigned k = 0; k < r[0]; k++)
                v[k] = (uint64_t)r[2 + k] << (63 - k);
            recur(v, r[0], r[1]);
        } else {
            for (p++; !(p & 1) || !primitive(p, s); p++)
                s += p + 1 == 2u << s;
            for (unsigned k = 0; k < s; k++)
                v[k] = (brass_split_mix(&seed) >> (63 - k) | 1) << (63 - k);
            recur(v, s, (p & ((1u << s) - 1)) >> 1);
        }
    }
}
