/* bench.h - what the parts of brass bench share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_CLI_BENCH_H
#define BR_CLI_BENCH_H

#include "base/json.h"
#include "cli/cli.h"
#include "drv/cpu/cpu_tune.h"
#include "run/oracle.h"

enum { BR_BENCH_CHECKED = 3 }; /* tokens compared with the reference tier */

/* A model by name or file, or shape:..., whose bytes are then in file. */
br_code br_bench_open(br_cli *cli, const char *name, br_str *file, br_model **m,
                      br_status *st) BR_MUST_USE;
/* Values that are not the defaults of so many threads: a member of a JSON object;
 * a line, "tuned: looks 1000, ahead 8192" (tune.c). */
void br_bench_values(br_json_writer *w, const char *name, const br_cpu_tune *t,
                     uint32_t n_threads);
void br_bench_say_values(FILE *f, const char *what, const br_cpu_tune *t,
                         uint32_t n_threads);
/* A slot's token at a position: always the same. */
int32_t br_bench_token(const br_model *m, uint32_t slot, uint32_t position);
/* The oracle's logits beside the reference tier's, which slot 0 is used for.
 * logits: room for those of as many rows as are compared. */
br_code br_bench_check(br_oracle *o, const br_model *m, float *logits,
                       br_status *st) BR_MUST_USE;

#endif
