/* blake2b.c - BLAKE2b (RFC 7693), without a key, and comparing in constant
 * time. For secrets of 256 random bits: no salt, no stretching is needed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <string.h>

static const uint64_t iv[8] = {
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
    0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
    0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

/* Permutations of the message's words; rounds 10 and 11 are 0 and 1 again. */
static const uint8_t sigma[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
    {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
    {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
    {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
    {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static uint64_t
rotate(uint64_t x, unsigned n)
{
    return x >> n | x << (64 - n);
}

static void
mix(uint64_t *v, const uint8_t at[4], uint64_t x, uint64_t y)
{
    uint64_t *a = &v[at[0]], *b = &v[at[1]], *c = &v[at[2]], *d = &v[at[3]];

    *a += *b + x;
    *d = rotate(*d ^ *a, 32);
    *c += *d;
    *b = rotate(*b ^ *c, 24);
    *a += *b + y;
    *d = rotate(*d ^ *a, 16);
    *c += *d;
    *b = rotate(*b ^ *c, 63);
}

static void
compress(uint64_t h[8], const uint8_t block[128], uint64_t n, bool last)
{
    static const uint8_t at[8][4] = {
        {0, 4, 8, 12},  {1, 5, 9, 13},  {2, 6, 10, 14}, {3, 7, 11, 15},
        {0, 5, 10, 15}, {1, 6, 11, 12}, {2, 7, 8, 13},  {3, 4, 9, 14}};
    uint64_t v[16], m[16] = {0};

    for (int i = 0; i < 128; i++)
        m[i / 8] |= (uint64_t)block[i] << (8 * (i % 8));
    memcpy(v, h, 8 * sizeof *v);
    memcpy(v + 8, iv, sizeof iv);
    v[12] ^= n;
    v[14] ^= last ? UINT64_MAX : 0;
    for (int r = 0; r < 12; r++)
        for (int i = 0; i < 8; i++)
            mix(v, at[i], m[sigma[r % 10][2 * i]], m[sigma[r % 10][2 * i + 1]]);
    for (int i = 0; i < 8; i++)
        h[i] ^= v[i] ^ v[8 + i];
}

void
br_blake2b(const void *p, size_t n, uint8_t out[BR_BLAKE2B_BYTES])
{
    const uint8_t *from = p;
    uint8_t block[128] = {0};
    uint64_t h[8], done = 0;

    memcpy(h, iv, sizeof h);
    h[0] ^= 0x01010000 ^ BR_BLAKE2B_BYTES;
    for (; n - done > 128; done += 128)
        compress(h, from + done, done + 128, false);
    if (n)
        memcpy(block, from + done, n - done);
    compress(h, block, n, true);
    for (size_t i = 0; i < BR_BLAKE2B_BYTES; i++)
        out[i] = (uint8_t)(h[i / 8] >> (8 * (i % 8)));
}

bool
br_same_secret(const void *a, const void *b, size_t n)
{
    const volatile uint8_t *x = a, *y = b;
    uint8_t differ = 0;

    for (size_t i = 0; i < n; i++)
        differ = (uint8_t)(differ | (x[i] ^ y[i]));
    return differ == 0;
}
