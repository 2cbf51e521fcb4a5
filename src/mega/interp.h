/* interp.h - the reference VM of the task program: slow, obvious, checked.
 *
 *   new(program) -> bind weights, inputs, caches -> run -> get outputs
 *                                                    ^------' next token
 *
 * It is the oracle for every fast tier: what each opcode computes is what
 * interp_ops*.c computes (docs/opcodes.md, "Semantics of the opcodes"). It
 * takes any program that loads, checked or not, and reads and writes only
 * what the program's buffers hold: a wrong index, shape or parameter is an
 * error that names the task. Bytes of activations and outputs that nobody has
 * written are not readable either (nor are bytes that another buffer of the
 * same page overwrote): that is the dynamic side of what br_mega_check proves.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_MEGA_INTERP_H
#define BR_MEGA_INTERP_H

#include "mega/store.h"

typedef struct br_mega_vm br_mega_vm;
struct br_vm_call;

/* Zero means the default. */
typedef struct br_mega_vm_desc {
    uint64_t max_bytes; /* of all buffers, and of one task's scratch; 16 GiB */
    /* Element steps of one run, for each worker; no limit. LIMIT beyond. */
    uint64_t max_work;
    uint32_t workers; /* tasks at once; 1 */
    /* br_vm_dot by vectors: the same bits; NULL: that */
    float (*dot)(const float *a, const float *b, size_t n);
    /* Does an op in the VM's place, or notes it (interp_int.h); never a FUSED,
     * whose steps come one by one. NULL: the VM does. */
    br_code (*op)(void *ctx, struct br_vm_call *c);
    void *ctx;
} br_mega_vm_desc;

/* The program must outlive the VM and stay as it is. */
br_code br_mega_vm_new(br_mega_vm **out, const br_mega_prog *p,
                       const br_mega_vm_desc *d, br_status *st) BR_MUST_USE;
void br_mega_vm_free(br_mega_vm *vm);

/* Copies a value into a WEIGHT, CONST, IO_INPUT or KV_CACHE buffer, rounding
 * to nearest even to its dtype; an integer dtype that does not hold an element
 * is an error. Shapes must agree up to dimensions of 1. An I4 buffer also
 * takes its packed bytes: U8 with ceil(columns / 2) columns. A cache that is
 * never bound is zeros. */
br_code br_mega_vm_bind(br_mega_vm *vm, int64_t buffer, const br_mega_value *v,
                        br_status *st) BR_MUST_USE;

/* Would this dtype and shape do? (data and nbytes are not looked at.) */
br_code br_mega_vm_bindable(const br_mega_vm *vm, int64_t buffer,
                            const br_mega_value *v, br_status *st) BR_MUST_USE;
br_mega_store *br_mega_vm_store(br_mega_vm *vm);
/* What br_mega_vm_run runs by. */
br_mega_runner *br_mega_vm_runner(br_mega_vm *vm);

/* One forward pass: counters start anew, activations and outputs unwritten,
 * caches as the last run left them. Every element of every IO_OUTPUT has to
 * be written. A program that gets stuck is an error naming who waits. */
br_code br_mega_vm_run(br_mega_vm *vm, br_mega_order order, uint64_t seed,
                       br_status *st) BR_MUST_USE;
/* The same by any runner of at most the VM's workers, for a program that the
 * sound check has accepted. */
br_code br_mega_vm_run_by(br_mega_vm *vm, br_mega_runner *r,
                          br_status *st) BR_MUST_USE;
/* br_mega_adversarial (store.h). */
br_code br_mega_vm_adversarial(br_mega_vm *vm, int orders, br_mega_order order,
                               uint64_t seed, br_status *st) BR_MUST_USE;

/* The value of a buffer as it stands, in the VM's memory. */
br_mega_value br_mega_vm_get(const br_mega_vm *vm, int64_t buffer);
/* Has every element of the buffer been written (or bound)? */
bool br_mega_vm_written(const br_mega_vm *vm, int64_t buffer);
/* Tasks in the order of the last run, and how many sweeps over the list that
 * took (0 unless in SWEEP order). */
const uint32_t *br_mega_vm_order(const br_mega_vm *vm, size_t *n);
size_t br_mega_vm_sweeps(const br_mega_vm *vm);

#endif
