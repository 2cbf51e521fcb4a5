/* unicode.h - the one Unicode table: classes, lower case, decompositions.
 *
 * Unicode 15.0, from unicode_table.def (tools/gen_unicode.c makes it). Code
 * points above U+10FFFF do not exist here: callers decode with br_utf8_next.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_UNICODE_H
#define BR_UNICODE_H

#include "base/base.h"

/* Major category, letters by their case. */
typedef enum br_uclass {
    BR_UC_NONE,  /* Cn: nothing is assigned there */
    BR_UC_OTHER, /* Cc Cf Cs Co */
    BR_UC_LU,
    BR_UC_LL,
    BR_UC_LT,
    BR_UC_LM,
    BR_UC_LO,
    BR_UC_M,
    BR_UC_N,
    BR_UC_P,
    BR_UC_S,
    BR_UC_Z,
    BR_UC_COUNT,
} br_uclass;

enum {
    BR_UC_SPACE = 0x10, /* with the class: property White_Space */
    BR_UNICODE_END = 0x110000,
    BR_REPLACEMENT = 0xFFFD,
};

extern const uint8_t *const br_ascii_class; /* [128], as br_unicode_class */
/* Class with BR_UC_SPACE: & 0x0F is a br_uclass. */
uint8_t br_unicode_class(uint32_t c);
uint32_t br_unicode_lower(uint32_t c); /* itself where it has none */
uint32_t br_unicode_upper(uint32_t c); /* the same; one code point: ß stays */
/* First code point of the canonical decomposition: é -> e, 각 -> ᄀ. */
uint32_t br_unicode_base(uint32_t c);
bool br_unicode_is_han(uint32_t c); /* CJK ideographs, by block */

/* Normalisation form C of UTF-8 text, appended. Bytes that are no UTF-8 come
 * out as U+FFFD. */
void br_unicode_nfc(br_str *out, br_text text);
/* False when the text may change under br_unicode_nfc; cheap. */
bool br_unicode_is_nfc(br_text text);

/* Decodes the character at p < end into *c and returns its bytes. What is not
 * UTF-8 (RFC 3629) gives U+FFFD and 1. */
size_t br_utf8_next(const uint8_t *p, const uint8_t *end, uint32_t *c);
/* Bytes of c at out: 1 to 4. Surrogates are written as they are (WTF-8). */
size_t br_utf8_put(char out[4], uint32_t c);
/* Bytes that a character with this first byte claims: 1 to 4. */
size_t br_utf8_claims(uint8_t first);
bool br_utf8_valid(br_text t);

#endif
