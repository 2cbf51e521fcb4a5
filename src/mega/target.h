/* target.h - the machines a program can be lowered for: a table of facts.
 * A lowering, the cost model and the tools take a br_mega_target; nothing in
 * the code knows a machine by name.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_TARGET_H
#define BR_MEGA_TARGET_H

#include "mega/mega.h"

typedef struct br_mega_target {
    const char *name;
    int64_t sm_arch, num_sms;
    int64_t smem_bytes_per_sm, smem_bytes_per_block_optin;
    int64_t regs_per_sm, max_threads_per_sm, max_regs_per_thread;
    int64_t l2_bytes, hbm_bytes;
    double hbm_bandwidth_gbs, fp16_tflops, clock_ghz;
    bool supports_cooperative, wddm_tdr;
    double measured_bw_gbs;  /* 0: not known */
    double task_us, share_x; /* see targets.def; never in a file */
    const char *note;
} br_mega_target;

size_t br_mega_target_count(void);
const br_mega_target *br_mega_target_at(size_t i);       /* i < count */
const br_mega_target *br_mega_target_find(br_text name); /* NULL: none */
/* As find, and "host" is this machine, measured by asking the system. The
 * error names every target there is. */
br_code br_mega_target_get(br_mega_target *out, br_text name,
                           br_status *st) BR_MUST_USE;
/* This machine as a target: cores, caches, memory; bandwidth and flops are
 * those of the row "cpu", scaled by cores, because asking cannot tell. */
void br_mega_target_host(br_mega_target *out);

/* The target as the fields of a program file; NULL when out of memory. */
const br_json *const *br_mega_target_fields(const br_mega_target *t,
                                            br_arena *a);
/* The target of a program. What the file does not say (task_us, share_x) comes
 * from the row of the same name, else from defaults. Fails with FORMAT when
 * the program has no target or a needed number is missing or not positive. */
br_code br_mega_target_of(const br_mega_prog *p, br_mega_target *out,
                          br_status *st) BR_MUST_USE;
/* "name, name and name", for error messages. */
void br_mega_target_names(br_str *out);

#endif
