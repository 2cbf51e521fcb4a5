/* cpu_probe.h - what this machine can do at best, measured now.
 *
 * Bounds for kernels: one thread, a few milliseconds each. On a machine that
 * others use, or whose clock moves, take them around what they are compared to.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_PROBE_H
#define BR_CPU_PROBE_H

#include "drv/cpu/cpu_mat.h"

/* Reads p once from front to back: GB/s. n: a multiple of 256. */
double br_probe_read(const void *p, size_t n);
/* Operations (two per product) with activations of a form, by the instruction
 * of the set that multiplies most at once: 10^9 a second. */
double br_probe_mul(br_isa isa, br_form form);

#endif
