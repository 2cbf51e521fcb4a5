/* tuned.h - the database of tuned values: what brass tune found on this machine.
 *
 *   {"brass_tuned": 1, "entries": [
 *     {"processor": "AMD EPYC, family 26 model 2", "isa": "avx512",
 *      "processors": 2, "threads": 0, "model": "0f3a...", "shape": "llama ...",
 *      "when": "2026-11-29T18:00:00Z", "values": {"looks": 1000}}, ...]}
 *
 * One entry for a processor, an instruction set, how many processors there are,
 * the threads that the user asked for (0: nobody did), and a model's tensors
 * with their formats, whatever its path. An entry without values says that the
 * defaults are best.
 *
 * The file may hold anything: what is not understood is left out with one line of
 * warning, and never stops a load. Numbers are those that the knobs take, so none
 * can do more than cost time.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_TUNED_H
#define BR_TUNED_H

#include "drv/cpu/cpu_tune.h"
#include "model/model.h"

enum {
    BR_TUNED_VERSION =
        1, /* changes when a knob's numbers mean something else */
    BR_TUNED_MAX_BYTES = 1 << 20,
    BR_TUNED_MAX_ENTRIES = 500, /* the oldest go */
};

typedef struct br_tuned_key {
    char processor[BR_CPU_NAME_BYTES];
    const char *isa;
    uint32_t processors, threads;
    char model[33]; /* digest of tensors: names, formats, shapes */
    char shape[96]; /* for people: "llama 16 x 2048, Q8_0" */
} br_tuned_key;

/* The file in the cache folder. */
void br_tuned_path(br_str *out, const char *folder);
/* threads: as the user asked; 0. */
void br_tuned_key_of(br_tuned_key *k, const br_model *m, br_isa isa,
                     uint32_t threads);
/* Puts the entry's values into t, which has the defaults of so many threads:
 * how many; -1: there is no entry. path NULL: none. */
int br_tuned_find(const char *path, const br_tuned_key *k, uint32_t n_threads,
                  br_cpu_tune *t);
/* The same for a model that is at work, by the file in that folder, t beginning
 * with the defaults. threads: as the user asked; 0. */
int br_tuned_here(const char *folder, const br_model *m, const br_cpu *c,
                  uint32_t threads, br_cpu_tune *t);
/* The entry of the key, in place of one that is there: what of t is not as in
 * def. A file that is no database is an error, not written over. */
br_code br_tuned_put(const char *path, const br_tuned_key *k,
                     const br_cpu_tune *t, const br_cpu_tune *def,
                     const char *when, br_status *st) BR_MUST_USE;

#endif
