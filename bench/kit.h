/* kit.h - what the benchmarks share. SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_KIT_H
#define BENCH_KIT_H

#include "base/base.h"

double kit_ms(void);     /* by the clock on the wall */
double kit_cpu_ms(void); /* that this process has spent */
/* Ends the run with exit code 1 and the message unless the code is BR_OK. */
void must(br_code code, const br_status *st);
/* The value of nearest rank, ceil(q n), of n in nanoseconds; sorts v. NAN of
 * none. */
double kit_quantile_ms(int64_t *v, size_t n, double q);
/* The model name of the processor; how many of it there are. */
int kit_cpu(char *name, size_t size);

#endif
