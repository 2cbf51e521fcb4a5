/* ptx.h - PTX in, kernel IR out.
 *
 * Any ISA version is read. What an instruction says that is not known, or its
 * operands do not fit, costs that one instruction: a note in the module and a
 * trap where it would be executed; strict makes the first of them an error.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_PTX_H
#define BR_PTX_H

#include "cg/kir.h"

enum {
    BR_PTX_MAX_BYTES = 256 << 20,
    BR_PTX_MAX_REGS = 1 << 20,   /* of a function */
    BR_PTX_MAX_DEPTH = 64,       /* of braces */
    BR_PTX_MAX_CONST = 64 << 10, /* bytes of .const in all */
    BR_PTX_REF_BYTES = 128       /* of a .texref, which the runtime fills */
};

typedef struct br_ptx_opts {
    bool strict;
} br_ptx_opts;

/* A module that br_kir_verify accepts; br_kir_free it. */
br_code br_ptx_parse(br_kir **out, const char *text, size_t n,
                     const br_ptx_opts *opts, br_status *st) BR_MUST_USE;

#endif
