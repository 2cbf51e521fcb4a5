/* kpack.h - modules as bytes: what .zrt files and the kernel cache hold.
 *
 * One set of functions writes and reads: with out set, what the pointers lead
 * to is appended; without, it is filled in from the bytes at. Numbers are
 * little-endian; a count stands before what it counts, and is believed only as
 * far as bytes follow. bad is sticky.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BR_KPACK_H
#define BR_KPACK_H

#include "cg/kir.h"
#include "cg/zrt.h"

typedef struct br_kpack {
    br_str *out;
    const uint8_t *at, *end;
    bool bad, oom;
    br_str *lines;                     /* written there, if at all; or */
    const uint8_t *line_at, *line_end; /* read from here, if there are any */
    br_zrt *slots;                     /* hears where constants lie */
    uint32_t only; /* written: this function and what it calls; or BR_KNONE */
} br_kpack;

void br_kpack_raw(br_kpack *p, void *v, size_t n);
#define br_kpack_of(p, x) br_kpack_raw((p), (x), sizeof *(x))
/* A count of things that take at least so many bytes each. */
bool br_kpack_count(br_kpack *p, size_t *n, size_t each);
br_text br_kpack_text(br_kpack *p, br_text t);

/* A module, in m. What was read has passed br_kir_verify; m is the caller's,
 * who frees it, whatever happens. */
br_code br_kpack_module(br_kpack *p, br_kir *m, br_status *st) BR_MUST_USE;
br_code br_kpack_end(const br_kpack *p, br_status *st); /* what went wrong */

#endif
