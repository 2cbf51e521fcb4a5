/* hash.h - SipHash for tables that outsiders fill, SHA-256 for identity.
 *
 *   br_siphash     2-4: a keyed digest of 64 bits; use where a forged
 *                  collision would do harm
 *   br_siphash13   1-3: faster, for hash maps in memory
 *   br_sha256      names of contents: golden digests, downloads
 *   br_blake2b     what is stored in place of a secret
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_HASH_H
#define BR_HASH_H

#include "base/base.h"

typedef struct br_hash_key {
    uint64_t k0, k1; /* the 16 key bytes, little endian */
} br_hash_key;

uint64_t br_siphash(br_hash_key key, const void *p, size_t n);
uint64_t br_siphash13(br_hash_key key, const void *p, size_t n);
/* br_siphash13 of the eight bytes of v, little endian. */
uint64_t br_siphash13_u64(br_hash_key key, uint64_t v);
/* Random, the same for the life of the process. Any thread. */
br_hash_key br_hash_process_key(void);

enum { BR_SHA256_BYTES = 32, BR_SHA256_HEX = 65 };

typedef struct br_sha256 {
    uint32_t h[8];
    uint64_t n; /* bytes so far */
    uint8_t block[64];
} br_sha256;

void br_sha256_begin(br_sha256 *s);
void br_sha256_add(br_sha256 *s, const void *p, size_t n);
void br_sha256_end(br_sha256 *s, uint8_t out[BR_SHA256_BYTES]);
/* All at once, as 64 hexadecimal digits and a NUL. */
void br_sha256_hex(const void *p, size_t n, char out[BR_SHA256_HEX]);

enum { BR_BLAKE2B_BYTES = 32 };
void br_blake2b(const void *p, size_t n, uint8_t out[BR_BLAKE2B_BYTES]);
/* Takes as long whether they differ or not. */
bool br_same_secret(const void *a, const void *b, size_t n);

#endif
