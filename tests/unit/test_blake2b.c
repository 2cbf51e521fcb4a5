/* test_blake2b.c - BLAKE2b against digests that other programs made.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include "t.h"

#include <stdio.h>

static void
digest_is(const void *p, size_t n, const char *want)
{
    uint8_t d[BR_BLAKE2B_BYTES];
    char text[2 * BR_BLAKE2B_BYTES + 1];

    br_blake2b(p, n, d);
    for (size_t i = 0; i < sizeof d; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", d[i]);
    ck_assert_str_eq(text, want);
}

TEST(blake2b_gives_the_values_of_others)
{
    uint8_t b[200];

    for (size_t i = 0; i < sizeof b; i++)
        b[i] = (uint8_t)i;
    digest_is(
        "", 0,
        "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8");
    digest_is(
        "abc", 3,
        "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
    digest_is(
        b, 128,
        "c3582f71ebb2be66fa5dd750f80baae97554f3b015663c8be377cfcb2488c1d1");
    digest_is(
        b, 200,
        "63c3d97a9f8894d5e043a707b0fee7f7ec4c049a23bbf1079df20b4165f9e22d");
    ck_assert(br_same_secret("abc", "abc", 3) &&
              !br_same_secret("abc", "abd", 3));
}
