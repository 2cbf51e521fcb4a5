/* test_metrics.c - the text that Prometheus reads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "http/metrics.h"

#include "t.h"

TEST(metrics_name_a_model_in_utf8_whatever_its_file_is_called)
{
    static const struct {
        const char *model, *label;
    } rows[] = {
        {"demo", "demo"},
        {"a\"b\\c\nd", "a\\\"b\\\\c\\nd"},
        {"caf\xc3\xa9\t", "caf\xc3\xa9\t"},
        {"caf\xe9", "caf\xef\xbf\xbd"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xed\xa0\x80!", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd!"},
    };

    for (size_t i = 0; i < BR_COUNT(rows); i++) {
        br_str out = {0};

        br_metrics_name(&out, "brass_", "x", rows[i].model);
        ck_assert_str_eq(br_str_z(&out),
                         t_printf("brass_x{model_name=\"%s\"", rows[i].label));
        br_str_fini(&out);
    }
}
