/* cpu_probe.c - reads and multiplications that do nothing else.
 * SPDX-License-Identifier: Apache-2.0 */
#include "drv/cpu/cpu_probe.h"
#include "drv/cpu/mat_int.h"

#include "base/thread.h"

static int64_t
now_ns(bool own)
{
    return own ? br_thread_ns() : br_now_ns();
}

/* A line of each page well before the others: a Zen 5 reads 65 GB/s without and
 * 77 with, two threads in turn (docs/decisions/0029). */
static void
read_pages(const uint8_t *p, size_t n)
{
    enum { PAGE = 4 << 10, AHEAD = 32 << 10 };

    for (; n >= PAGE; n -= PAGE, p += PAGE) {
        __builtin_prefetch(p + AHEAD);
        br_probe_lines(p, PAGE);
    }
    br_probe_lines(p, n);
}

double
br_probe_read(const void *p, size_t n)
{
    bool own = br_thread_ns_is_fine();
    int64_t t0 = now_ns(own);

    if (br_calls_stay())
        read_pages(p, n);
    else
        br_probe_lines(p, n);
    return (double)n / (double)(now_ns(own) - t0);
}

double
br_probe_mul(br_isa isa, br_form form)
{
    bool own = br_thread_ns_is_fine();
    double best = 0;

    for (int i = 0; i < 3; i++) {
        int64_t t0 = now_ns(own);
        double ops = (double)mat_isas[isa].ops(form, 1 << 18);

        best = BR_MAX(best, ops / (double)(now_ns(own) - t0));
    }
    return best;
}
