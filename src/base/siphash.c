/* siphash.c - the keyed hash of Aumasson and Bernstein, 2012.
 *
 * Words of eight bytes are mixed into four words of state with c rounds each,
 * the last word holds the rest of the bytes and the length, then d rounds
 * end it: c-d is 2-4 for digests and 1-3 for tables.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include "base/thread.h"

#include <string.h>

typedef struct sip {
    uint64_t v0, v1, v2, v3;
} sip;

static inline uint64_t
rotl(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static inline void
rounds(sip *s, int n)
{
    for (int i = 0; i < n; i++) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = rotl(s->v1, 13) ^ s->v0;
        s->v3 = rotl(s->v3, 16) ^ s->v2;
        s->v0 = rotl(s->v0, 32);
        s->v2 += s->v1;
        s->v0 += s->v3;
        s->v1 = rotl(s->v1, 17) ^ s->v2;
        s->v3 = rotl(s->v3, 21) ^ s->v0;
        s->v2 = rotl(s->v2, 32);
    }
}

/* Eight bytes, little endian: compilers make one load of it. */
static inline uint64_t
load8(const uint8_t *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 |
           (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 |
           (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

/* Fewer than eight. */
static inline uint64_t
load_rest(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++)
        v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static inline void
mix(sip *s, uint64_t word, int c)
{
    s->v3 ^= word;
    rounds(s, c);
    s->v0 ^= word;
}

/* Inlined, so that c and d are constants where the loops are. */
static inline uint64_t
hash(br_hash_key key, const void *data, size_t n, int c, int d)
{
    const uint8_t *p = data;
    size_t left = n;
    sip s = {key.k0 ^ 0x736f6d6570736575, key.k1 ^ 0x646f72616e646f6d,
             key.k0 ^ 0x6c7967656e657261, key.k1 ^ 0x7465646279746573};

    for (; left >= 8; left -= 8, p += 8)
        mix(&s, load8(p), c);
    mix(&s, (uint64_t)n << 56 | load_rest(p, left), c);
    s.v2 ^= 0xff;
    rounds(&s, d);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t
br_siphash(br_hash_key key, const void *p, size_t n)
{
    return hash(key, p, n, 2, 4);
}

uint64_t
br_siphash13(br_hash_key key, const void *p, size_t n)
{
    return hash(key, p, n, 1, 3);
}

uint64_t
br_siphash13_u64(br_hash_key key, uint64_t v)
{
    uint8_t bytes[8];

    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)(v >> 8 * i);
    return hash(key, bytes, sizeof bytes, 1, 3);
}

static br_once process_once = BR_ONCE;
static br_hash_key process_key;

static void
make_process_key(void)
{
    br_os_random(&process_key, sizeof process_key);
}

br_hash_key
br_hash_process_key(void)
{
    br_once_run(&process_once, make_process_key);
    return process_key;
}
