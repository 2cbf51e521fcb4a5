/* test_tier_diff.c - how far numbers are from those wanted, and the highest of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/tier_diff.h"

#include <math.h>

#include "t.h"

TEST(an_error_against_nothing_is_within_no_bound)
{
    const float want[] = {3, -4, 0}, near[] = {3, -4, 0.5f};
    const float none[] = {0, 0, 0}, odd[] = {3, NAN, 0};

    ck_assert(br_nmse(want, want, 3) == 0);
    ck_assert(br_nmse(near, want, 3) == 0.01);
    ck_assert(!(br_nmse(none, none, 3) <= 1e9));
    ck_assert(!(br_nmse(want, none, 3) <= 1e9));
    ck_assert(!(br_nmse(odd, want, 3) <= 1e9));
    ck_assert(!(br_nmse(want, odd, 3) <= 1e9));
}

TEST(the_first_of_the_highest_is_the_best)
{
    const float x[] = {-1, 2, 2, -INFINITY}, less[] = {-INFINITY, -3};

    ck_assert_uint_eq(br_argmax(x, 4), 1);
    ck_assert_uint_eq(br_argmax(less, 2), 1);
    ck_assert_uint_eq(br_argmax(x, 1), 0);
}
