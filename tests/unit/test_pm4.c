/* test_pm4.c - command streams, dword for dword.
 * SPDX-License-Identifier: Apache-2.0 */
#include "t.h"

#include "drv/amd/pm4.h"

#include <string.h>

static const uint32_t want[] = {
    0xc0065800, 0,          0xffffffff, 0x00ffffff, 0,      0,  10, 0x3f0,
    0xc0027600, 0x20c,      0x1234,     0x0,                /* PGM */
    0xc0031500, 7,          2,          1,          0x8005, /* launch */
    0xc0004600, 0x407,                                      /* wait */
    0xc0064900, 0x0070f514, 0x20000000, 0x89abcde0, 0x4567, 42, 0,  0};

static void
build(br_pm4 *s)
{
    static const uint32_t groups[3] = {7, 2, 1}, pgm[2] = {0x1234, 0};
    uint32_t flush = BR_PM4_PARTIAL_FLUSH;

    br_pm4_acquire(s, BR_PM4_BEFORE);
    br_pm4_set_sh(s, 0x20c, pgm, 2);
    br_pm4_dispatch(s, groups, false);
    br_pm4_put(s, BR_PM4_EVENT_WRITE, &flush, 1);
    br_pm4_release(s, 0x456789abcde0, 42);
}

TEST(pm4_stream_of_one_dispatch)
{
    uint32_t w[64], n_packets = 0;
    br_pm4 s = {w, 0, BR_COUNT(w), false};
    br_pm4_view v;

    build(&s);
    ck_assert(!s.full);
    ck_assert_uint_eq(s.n, BR_COUNT(want));
    ck_assert(memcmp(w, want, sizeof want) == 0);
    for (size_t at = 0, k; at < s.n; at += k, n_packets++) {
        k = br_pm4_next(w + at, s.n - at, &v);
        ck_assert_uint_eq(k, v.n + 1);
        ck_assert_uint_eq(br_pm4_next(w + at, k - 1, &v), 0);
    }
    ck_assert_uint_eq(n_packets, 5);
}

TEST(pm4_stream_that_does_not_fit_says_so)
{
    for (size_t cap = 1; cap < BR_COUNT(want); cap++) {
        uint32_t w[64];
        br_pm4 s = {w, 0, cap, false};

        build(&s);
        ck_assert(s.full);
        ck_assert_uint_le(s.n, cap);
    }
}

TEST(pm4_reader_refuses_what_is_no_packet)
{
    uint32_t w[8] = {0};
    br_pm4_view v;
    static const uint32_t bad[] = {
        0x80031500, /* type 2 */
        0xc0021500, /* a dispatch of three dwords */
        0xc0051500, /* of six */
        0xc0036900, /* SET_CONTEXT_REG: no compute queue has it */
        0xc0031504, /* reserved bits */
        0xc0007600, /* registers without values */
    };

    for (size_t k = 0; k < BR_COUNT(bad); k++) {
        w[0] = bad[k];
        ck_assert_uint_eq(br_pm4_next(w, BR_COUNT(w), &v), 0);
    }
    w[0] = 0xc0031500;
    ck_assert_uint_eq(br_pm4_next(w, 5, &v), 5);
    ck_assert_uint_eq(br_pm4_next(w, 0, &v), 0);
}
