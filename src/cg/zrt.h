/* zrt.h - .zrt files: one kernel as machine code, and what a launch has to
 * know of it.
 *
 *   0   64 bytes: magic "ZRT\0", abi version, target, sizes (zrt.c has them)
 *   64  code: of x86-64 the module and its code, of AMD a code object
 *       name of the kernel
 *       parts: tag and bytes, u32 each, then these, then zeros to a multiple
 *       of 4
 *         SLOT  places in the code that may be patched, by name
 *         DBUG  lines of the source
 *         SUM1  SipHash of all before it; the last
 *
 * A slot is a constant that a program fills in before it loads the code: the
 * bytes of a __constant__ variable. Code of x86-64 is Brass's own from one build
 * to the next: another build refuses it. It is a program: run what you trust.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_ZRT_H
#define BR_ZRT_H

#include "base/base.h"

enum {
    BR_ZRT_MAX_BYTES = 512 << 20,
    BR_ZRT_MAX_NAME = 4096,
    BR_ZRT_MAX_SLOTS = 1 << 16,
    BR_ZRT_MAX_LDS = 64 << 10,
    BR_ZRT_X86 = 0xff
};

typedef struct br_zrt_slot {
    br_text name;
    uint32_t at, bytes; /* within the code */
} br_zrt_slot;

typedef struct br_zrt {
    uint16_t target;              /* zrt.def */
    uint32_t entry;               /* within the code */
    uint32_t buffers, push_bytes; /* parameters of 8 bytes; all others' bytes */
    uint32_t subgroup, workgroup[3], lds_bytes, vgprs, sgprs;
    uint32_t occupancy; /* threads of a block at most; 0: not said */
    br_text name, code, debug;
    BR_VEC(br_zrt_slot) slots;
    bool summed; /* it was read with its sum */
} br_zrt;

/* Appends. */
br_code br_zrt_write(br_str *out, const br_zrt *z, br_status *st) BR_MUST_USE;
/* Any bytes; the texts of z lie in them. br_zrt_fini, whatever happens. */
br_code br_zrt_read(br_zrt *z, const void *file, size_t n,
                    br_status *st) BR_MUST_USE;
void br_zrt_fini(br_zrt *z);
/* NULL, 0: there is none of this name or number. */
const char *br_zrt_target_name(uint16_t target);
uint16_t br_zrt_target(const char *name);
bool br_zrt_is(const void *file, size_t n); /* begins like one */

#endif
