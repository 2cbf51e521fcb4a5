/* x86_pack.h - modules with their code as what .zrt files hold.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_X86_PACK_H
#define BR_X86_PACK_H

#include "cg/ktarget.h"

/* Names what the compiler was built from: other builds refuse the code. */
extern const char br_x86_build[];

/* Appends the module and its code; target, subgroup, entry and slots of z are
 * set. lines may be NULL. */
br_code br_x86_pack(br_zrt *z, br_str *out, br_str *lines, const br_kcode *code,
                    br_status *st) BR_MUST_USE;
/* The same of one kernel and what it calls; entry is the kernel's. */
br_code br_x86_zrt(const br_kcode *all, uint32_t fn, br_zrt *z, br_str *out,
                   br_str *lines, br_status *st) BR_MUST_USE;
/* Both are the caller's, the code freed first. */
br_code br_x86_unpack(br_kir **m, br_kcode **code, const br_zrt *z,
                      br_status *st) BR_MUST_USE;

#endif
