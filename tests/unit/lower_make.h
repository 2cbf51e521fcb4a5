/* lower_make.h - makes networks, configs and programs for tests, and runs
 * programs on made-up weights.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LOWER_MAKE_H
#define LOWER_MAKE_H

#include "mega/lower.h"

/* manifest.json of the vectors; NULL where they are absent. */
const br_json *lm_manifest(void);
void lm_manifest_done(void);

/* The program that a lower_spec of the vectors describes, style amk; NULL and
 * *st on failure. */
br_mega_prog *lm_spec(const br_json *spec, br_status *st);

/* JSON text with ' for ", parsed into memory that lm_forget frees. */
const br_json *lm_json(const char *text);
void lm_forget(void);

/* One layer (or `layers`) of a small decoder: hidden 32, 4 heads of 8, 2 of
 * them for keys, intermediate 64, vocab 48, 64 places in the cache. */
br_mega_net *lm_net(int64_t layers, const br_mega_step *step);
/* Random shape: at most 3 layers, dimensions up to some 100. */
br_mega_net *lm_random_net(uint64_t *seed);
/* Text of a random config that is in range for this net and target. */
char *lm_random_config(uint64_t *seed, const br_mega_net *net,
                       const br_mega_target *t);

/* House style on "h100" (or `target`); fails the test when it does not
 * lower. config: text for lm_json, or NULL. */
br_mega_prog *lm_lower(const br_mega_net *net, const char *target,
                       const char *config, br_mega_lower_stats *stats);
char *lm_text(const br_mega_prog *p); /* saved; freed with the test */

/* Runs the program on values that depend on the names of its buffers alone,
 * and returns its first IO_OUTPUT as floats, *n of them. */
float *lm_run(const br_mega_prog *p, size_t *n);

/* The task with this label; fails the test when there is none. */
const br_mega_task *lm_task(const br_mega_prog *p, const char *label);
const br_mega_buffer *lm_buffer(const br_mega_prog *p, const char *name);
/* Tasks whose label begins so. */
size_t lm_count(const br_mega_prog *p, const char *prefix);

#endif
