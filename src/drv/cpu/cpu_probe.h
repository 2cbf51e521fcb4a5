/* cpu_probe.h - what this machine can do at best, measured now.
 *
 * Bounds for kernels: one thread, a few milliseconds each. On a machine that
 * others use, or whose clock moves, take them around what they are compared to.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_PROBE_H
#define BR_CPU_PROBE_H

#include "drv/cpu/cpu_mat.h"

#include <string.h>

/* Reads n bytes, a multiple of 64, as fast as a thread can. Two words of each
 * line, in the order in which they lie: two threads of a Zen 4 read 62 to 66
 * GB/s so, with one word 53, and 50 with four lines in the order that a compiler
 * liked. */
static inline void
br_probe_lines(const void *p, size_t n)
{
    const uint8_t *at = p, *end = at + n;

    for (; at < end; at += 64) {
        uint64_t first, last;

        memcpy(&first, at, 8);
        __asm__ volatile("" ::"r"(first) : "memory");
        memcpy(&last, at + 48, 8);
        __asm__ volatile("" ::"r"(last) : "memory");
    }
}

/* Reads p once from front to back: GB/s. n: a multiple of 256. */
double br_probe_read(const void *p, size_t n);
/* Operations (two per product) with activations of a form, by the instruction
 * of the set that multiplies most at once: 10^9 a second. */
double br_probe_mul(br_isa isa, br_form form);

#endif
