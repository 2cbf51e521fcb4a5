/* cpu_tune.h - the numbers that change speed alone, as one value.
 *
 *     br_cpu_tune_default(&t, n_threads)    what this machine is taken for
 *     t.at[BR_CPU_KNOB_looks] = 1000
 *     br_cpu_set_tune(c, &t)                between steps; any time
 *
 * What a tier is prepared with has the defaults. `brass tune` looks for better
 * ones (run/tune_search.h), the database of tuned values keeps them (run/tuned.h).
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CPU_TUNE_H
#define BR_CPU_TUNE_H

#include "drv/cpu/cpu.h"

typedef enum br_cpu_knob {
#define K(id, ...) BR_CPU_KNOB_##id,
#include "drv/cpu/cpu_tune.def"
#undef K
    BR_CPU_KNOBS
} br_cpu_knob;

/* Kinds of steps: one row, one row at a deep past, few rows (of several
 * sequences), many rows (of a prompt). */
enum {
    BR_CPU_AT_ONE = 1,
    BR_CPU_AT_DEEP = 2,
    BR_CPU_AT_FEW = 4,
    BR_CPU_AT_MANY = 8,
    BR_CPU_TRIES = 8, /* values of a knob that are tried, at most */
};

typedef struct br_cpu_tune {
    uint32_t at[BR_CPU_KNOBS];
} br_cpu_tune;

const char *br_cpu_knob_name(br_cpu_knob k);
const char *br_cpu_knob_help(br_cpu_knob k);
int br_cpu_knob_steps(br_cpu_knob k);       /* BR_CPU_AT_... */
br_cpu_knob br_cpu_knob_find(br_text name); /* BR_CPU_KNOBS: none */
/* Does anything read it on this instruction set? */
bool br_cpu_knob_here(br_cpu_knob k, br_isa isa);
/* What is tried of a knob by so many threads, without `but`: how many. */
uint32_t br_cpu_knob_tries(br_cpu_knob k, uint32_t n_threads, uint32_t but,
                           uint32_t out[BR_CPU_TRIES]);
/* Is it one of those, or the default? A number of threads is up to n_threads. */
bool br_cpu_knob_takes(br_cpu_knob k, uint32_t n_threads, uint64_t value);

void br_cpu_tune_default(br_cpu_tune *t, uint32_t n_threads);
/* Values as br_cpu_knob_takes has them. */
void br_cpu_set_tune(br_cpu *c, const br_cpu_tune *t);
const br_cpu_tune *br_cpu_tune_of(const br_cpu *c);

/* The first knob from k on that has not its default in t; BR_CPU_KNOBS: none. */
br_cpu_knob br_cpu_tune_next(const br_cpu_tune *t, const br_cpu_tune *def,
                             br_cpu_knob k);

/* "AMD EPYC, family 26 model 2"; "unknown". */
enum { BR_CPU_NAME_BYTES = 96 };
void br_cpu_name(char out[BR_CPU_NAME_BYTES]);

#endif
